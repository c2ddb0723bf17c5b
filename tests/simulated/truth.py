"""What truly took each lost record, and whether the settings permit that: from what happened, never from what was seen.

A record is owed by every replica that could be elected cleanly once it is committed: acknowledged with acks=all, or
below the high watermark of a leader that had it. The first leader after which no leader had it any more took it. That
is permitted where the election could not help it: an unclean one that the settings, or a hand, allow; a clean one of a
replica whose disk was wiped; a clean one of a replica that did not owe the record.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from harness.history.schema import Outcome
from tests.simulated.chronicle import Acknowledgement, Chronicle, Election, Kind, Office, Place, Why
from tests.simulated.log import Record
from tests.simulated.play import Played
from tests.simulated.settings import Settings
from tests.simulated.world import SECOND

_UNCLEAN = frozenset({Kind.UNCLEAN, Kind.BY_HAND})


class Permits(StrEnum):
    """Whether the settings permit that a record was lost."""

    YES = "permitted"
    NO = "violation"
    #: A bug took it before an election could that the settings permit, and a write in its place showed that.
    SHOWN = "not permitted"
    #: A bug took it, and nothing that was recorded tells that from what the settings permit: an election that they
    #: permit would have taken it, too; or it was owed by nobody; or the controller alone knew who could lead.
    EITHER = "either"


@dataclass(frozen=True)
class Loss:
    """A record that was acknowledged, or delivered to a reader, and is not in the final log.

    ``holders``: who had it when it was acknowledged; None where it never was.
    """

    place: Place
    record: Record
    acknowledged_ns: int | None
    holders: frozenset[int] | None
    permits: Permits
    event: str


@dataclass(frozen=True)
class Known:
    """What was recorded of a partition: the highest high watermark that the leader of each epoch reported itself, and
    each with its time; the highest offset of each epoch that a reader was given; every write of which its producer
    heard; and when which brokers were under a fault, or had just been healed. ``doubled``: what was written where, or
    below where, its leader's log had records of the same term."""

    high: dict[int, int]
    highs: list[tuple[int, int, int]]
    given: dict[int, int]
    heard: list[tuple[Acknowledgement, int]]
    faulted: list[tuple[frozenset[str], int, int]]
    doubled: frozenset[Record]

    def known_committed(self, record: Record) -> bool:
        """Whether anybody could know that a record was committed."""
        return self.high.get(record.epoch, 0) > record.offset or self.given.get(record.epoch, -1) >= record.offset

    def hit(self, broker: int, at: int) -> bool:
        """Whether a broker was under a fault at a time, or had just been healed."""
        return any(f"b{broker}" in nodes and begun <= at <= over for nodes, begun, over in self.faulted)


#: The longest slice of time within which nobody distinguishes what was acknowledged from what was sent.
_SLICE = SECOND

#: A broker that was healed may not lead again for so long, as far as anybody else knows.
_COMES_BACK = 10 * SECOND


def known(played: Played, place: Place) -> Known:
    """What was recorded of a partition."""
    facts, high, given = played.chronicles[place], dict[int, int](), dict[int, int]()
    highs: list[tuple[int, int, int]] = []
    for row in played.tables["observations"]:
        own = (row["topic"], row["partition"]) == place and row["observer"] == f"b{row['leader']}"
        if own and row["high"] is not None:
            high[row["high_epoch"]] = max(row["high"], high.get(row["high_epoch"], 0))
            highs.append((row["high_epoch"], row["high"], row["at_ns"]))
    for record in facts.delivered:
        given[record.epoch] = max(record.offset, given.get(record.epoch, -1))
    sent = {row["record_id"]: row for row in played.tables["sends"] if row["outcome"] == Outcome.OK}
    heard = [
        (one, sent[record_id]["invoked_ns"])
        for record_id, answers in facts.acknowledged.items()
        for one in answers
        if record_id in sent and sent[record_id]["offset"] == one.record.offset
    ]
    faulted = [
        (frozenset(row["nodes"]), row["injecting_ns"], (row["healed_ns"] or played.ended_ns) + _COMES_BACK)
        for row in played.tables["faults"]
    ]
    return Known(high, highs, given, heard, faulted, frozenset(_out_of_order(facts)))


def _out_of_order(facts: Chronicle) -> Iterator[Record]:
    """Records of an epoch that were written at or below others of it, and those at the same offset: only a bug cuts the
    log of a leader in its own term."""
    first: dict[Record, int] = {}
    standing: dict[tuple[int, int], set[Record]] = {}
    for (_, record), times in facts.appended.items():
        first[record] = min(times[0], first.get(record, times[0]))
        standing.setdefault((record.offset, record.epoch), set()).add(record)
    yield from (record for some in standing.values() if len(some) > 1 for record in some)
    highest: dict[int, int] = {}
    for record in sorted(first, key=lambda one: (first[one], one.offset)):
        if record.offset <= highest.get(record.epoch, -1):
            yield record
        highest[record.epoch] = max(record.offset, highest.get(record.epoch, -1))


def losses(played: Played) -> list[Loss]:
    """Every lost record of the partitions that were read in the end."""
    offsets = {row["record_id"]: row["offset"] for row in played.tables["sends"] if row["outcome"] == Outcome.OK}
    return [
        _loss(place, played.chronicles[place], recorded, record, answer, played.settings)
        for place, log in played.final.items()
        for recorded in [known(played, place)]
        for record, answer in _lost(played.chronicles[place], offsets, {one.id for one in log})
    ]


def vanished_from(played: Played, place: Place, offset: int, record_id: int) -> Loss | None:
    """Of a record that is in the final log elsewhere, why it is gone from where it was delivered; None: it was not."""
    facts = played.chronicles[place]
    given = [one for one in facts.delivered if (one.offset, one.id) == (offset, record_id)]
    recorded = known(played, place)
    return _loss(place, facts, recorded, given[0], None, played.settings) if given and place in played.final else None


def _lost(
    facts: Chronicle, offsets: dict[int, int], there: set[int]
) -> Iterator[tuple[Record, Acknowledgement | None]]:
    """One copy of each record that is not there: the acknowledged one, or else the one that was delivered first.

    ``offsets``: of each record of which a producer heard, what it heard.
    """
    found: dict[int, tuple[Record, Acknowledgement | None]] = {
        record.id: (record, None) for record in reversed(facts.delivered)
    }
    for record_id, answers in facts.acknowledged.items():
        heard = [one for one in answers if one.record.offset == offsets.get(record_id)]
        if heard:
            found[record_id] = heard[0].record, heard[0]
    return (one for record_id, one in sorted(found.items()) if record_id not in there)


def _loss(
    place: Place,
    facts: Chronicle,
    recorded: Known,
    record: Record,
    answer: Acknowledgement | None,
    settings: Settings,
) -> Loss:
    promised = settings.acks_all and answer is not None
    permits, event = _Lost(facts, recorded, record, answer, promised, settings.configuration.elects_uncleanly).verdict()
    at, holders = (None, None) if answer is None else (answer.at, answer.holders)
    return Loss(place, record, at, holders, permits, event)


@dataclass(frozen=True)
class _Lost:
    """A lost record. ``promised``: it was acknowledged with acks=all. ``elects_uncleanly``: anybody may be
    elected where no one of the ISR can be: whether one could is not recorded."""

    facts: Chronicle
    recorded: Known
    record: Record
    answer: Acknowledgement | None
    promised: bool
    elects_uncleanly: bool

    def verdict(self) -> tuple[Permits, str]:
        """Whether its loss is permitted, and what took it."""
        # One that learns late that it was elected may do so when another leads already.
        record, offices = self.record, sorted(self.facts.offices, key=lambda office: office.epoch)
        last = [n for n, office in enumerate(offices) if office.epoch == record.epoch or record in office.records][-1]
        office, following = offices[last], offices[last + 1 :]
        # It leads until another is elected, whenever that one learns of it.
        until = min((one.at for one in self.facts.elections if one.epoch > office.epoch), default=None)
        for removal in self.facts.removals:
            in_office = removal.at >= office.at and (until is None or removal.at < until)
            if removal.record == record and removal.broker == office.leader and in_office and removal.why is Why.BUG:
                event = f"a bug at {removal.at / SECOND:.1f} s, in the term of {office.leader} (epoch {office.epoch})"
                anyway = self._goes_anyway(office, following)
                if anyway is None:
                    other = self._goes_anyway(office, following, beyond=True)
                    unseen = other is not None and not self._written_again(removal.at, other.at)
                    unseen = unseen or self._unseen_there(offices[:last], office, removal.at)
                    return Permits.EITHER if unseen else Permits.NO, event
                return Permits.SHOWN if self._written_again(removal.at, anyway.at) else Permits.EITHER, event
        assert following, f"{record} went without an event"
        permits, event = self._by_election(office, following[0])
        if permits is Permits.NO and self._goes_anyway(office, following[1:]) is not None:
            return Permits.EITHER, event
        why = self._spoilt(following[1:]) if permits is Permits.YES else None
        return (permits, event) if why is None else (Permits.EITHER, f"{event} ({why})")

    def _spoilt(self, later: Sequence[Office]) -> str | None:
        """How a bug changed what is seen of an election that took it and is permitted."""
        record, facts = self.record, self.facts
        if record in self.recorded.doubled:
            return "a bug had cut its leader's log in that term"
        here = (one.record for one in facts.removals if one.why is Why.BUG and one.record.offset == record.offset)
        if any(one.epoch > record.epoch for one in here):
            return "a bug took what was written in its place"
        saved = next((one for one in later if facts.gone(one.leader, record, one.at) is Why.BUG), None)
        return None if saved is None else f"a bug took it from {saved.leader}, who led later"

    def _goes_anyway(self, office: Office, later: Sequence[Office], beyond: bool = False) -> Office | None:
        """Had no bug taken it, a later election might have: of a leader that lacked it, and did not owe it. Its log
        ended there, or (``beyond``) went on with something else."""
        return next(
            (
                one
                for one in later
                if (one.end <= self.record.offset or (beyond and not self.facts.had(one.leader, self.record, one.at)))
                and self.facts.gone(one.leader, self.record, one.at) is not Why.TRUNCATED
                and self._by_election(office, one)[0] is not Permits.NO
            ),
            None,
        )

    def _unseen_there(self, before: Sequence[Office], office: Office, until_ns: int) -> bool:
        """Nothing that was recorded tells that a leader had it whose election might have taken it: before the bug
        struck, nobody heard of a write of its own above, nor was given this record first by it."""
        record = self.record
        owed = [one for one in before if one.epoch >= record.epoch]
        if not owed or self._by_election(owed[-1], office)[0] is Permits.NO:
            return False
        wrote = [one.record for one, _ in self.recorded.heard if one.at < until_ns]
        wrote += [one for one, at in self.facts.delivered.items() if at < until_ns]
        above = any(one.epoch == office.epoch and one.offset > record.offset for one in wrote)
        highs = (high for epoch, high, at in self.recorded.highs if epoch == office.epoch and at < until_ns)
        above_it = any(high > record.offset for high in highs)
        return not above and not above_it and not office.at <= self.facts.delivered.get(record, -1) < until_ns

    def _written_again(self, from_ns: int, to_ns: int) -> bool:
        """Whether a producer sent something, well after this was acknowledged, that was acknowledged in its place or
        below between two times."""
        if self.answer is None:
            return False
        since = self.answer.at + _SLICE
        return any(
            one.record.offset <= self.record.offset
            and one.record.epoch >= self.record.epoch
            and sent > since
            and from_ns < one.at < to_ns
            for one, sent in self.recorded.heard
        )

    def _by_election(self, office: Office, following: Office) -> tuple[Permits, str]:
        """Whether the elections from one office to a following one may take it, as the first leader had it."""
        facts, record, leader = self.facts, self.record, following.leader
        chain = [one for one in facts.elections if office.epoch < one.epoch <= following.epoch]
        gone = facts.gone(leader, record, following.at)
        exposed = self.promised or self.recorded.known_committed(record)
        owed_ns = self._owed_ns
        # Who acknowledged it has it, but where it may have followed another.
        own = all(leader == one.leader for one in facts.elections if record.epoch <= one.epoch <= following.epoch)
        owed = (own and self.answer is not None) or (
            exposed and owed_ns is not None and facts.was_in_sync(leader, owed_ns, chain[-1].at)
        )
        early = self.promised and self.answer is not None and leader in self.answer.isr - self.answer.holders
        committed_ns = facts.committed.get(record)
        early |= self.answer is None and committed_ns is not None and self._not_waited_for(leader, committed_ns)
        wiped = any(one == leader and owed_ns is not None and owed_ns <= at <= following.at for at, one in facts.wipes)
        kinds = {one.kind for one in chain}
        # Had it left the ISR by then, the record would have been acknowledged without it.
        clean = Permits.NO if kinds == {Kind.CLEAN} else Permits.EITHER
        cases = (
            (gone is Why.BUG, Permits.NO if owed else Permits.EITHER, "which a bug made to lack it"),
            (
                early and gone is None and not wiped,
                clean,
                "which was in sync when it was acknowledged or delivered, and did not have it",
            ),
            (Kind.ILLEGAL in kinds, self._illegal(chain, exposed), "which was not in sync"),
            (bool(kinds & _UNCLEAN), Permits.YES, "which need not have it"),
            (gone is Why.WIPED or wiped, Permits.YES, "whose disk was wiped"),
            (exposed, Permits.NO, "which had to have it"),
            (record in facts.committed, Permits.EITHER, "when it was committed but nobody could know"),
            (True, Permits.YES, "which need not have it"),
        )
        permits, why = next((permits, why) for holds, permits, why in cases if holds)
        if permits is Permits.NO and self._hidden(chain, leader):
            permits = Permits.EITHER
        return permits, f"{'; '.join(map(_said, chain))}, {why}"

    def _not_waited_for(self, broker: int, at_ns: int) -> bool:
        """Whether a broker was in the ISR at a time, and did not have the record."""
        return self.facts.was_in_sync(broker, at_ns, at_ns + 1) and not self.facts.had(broker, self.record, at_ns)

    def _hidden(self, chain: Sequence[Election], leader: int) -> bool:
        """Another was elected in between who lacked it, as is permitted, and never led: nobody knows that."""
        others = [one for one in chain if one.leader != leader and not self.facts.had(one.leader, self.record, one.at)]
        gone = [(one.kind, self.facts.gone(one.leader, self.record, one.at)) for one in others]
        return any(why is Why.WIPED or (why is None and kind in _UNCLEAN) for kind, why in gone)

    @property
    def _owed_ns(self) -> int | None:
        """Since when all in the ISR have it."""
        return self.answer.at if self.promised and self.answer else self.facts.committed.get(self.record)

    def _illegal(self, chain: Sequence[Election], exposed: bool) -> Permits:
        """No rule allows this election where one who was eligible could lead. But if no one that could be elected had
        the record, or had to, any other would have taken it, too; and whether one of those could lead that a fault had
        hit, the controller alone knew."""
        first = next((one for one in chain if one.kind is Kind.ILLEGAL), None)
        if first is None:
            return Permits.EITHER
        could = first.eligible & first.active
        if self.elects_uncleanly and not could:
            return Permits.YES
        if not exposed:
            return Permits.EITHER
        if self.elects_uncleanly:
            return Permits.EITHER if all(self.recorded.hit(broker, first.at) for broker in could) else Permits.NO
        had = (broker for broker in first.eligible if self.facts.had(broker, self.record, first.at))
        return Permits.NO if any(had) else Permits.EITHER


def _said(election: Election) -> str:
    return f"{election.leader} elected at {election.at / SECOND:.1f} s (epoch {election.epoch}, {election.kind})"
