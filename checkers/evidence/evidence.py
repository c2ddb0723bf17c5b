"""All that is known about the records of a run for a decision, and to which terms records may belong."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from checkers.evidence.acting import Acting
from checkers.evidence.again import Again, GoneBy
from checkers.evidence.behind import LAG_NS, BehindTimes, Propagation, over
from checkers.evidence.decision import Case
from checkers.evidence.elections import Elections
from checkers.evidence.final_logs import Log, Offsets
from checkers.evidence.intervals import BEFORE, NEVER
from checkers.evidence.written import LeaderWrites
from checkers.leadership import COMES_BACK_NS, FRESH_NS, Partition
from harness.core.faults import Does, Row, acted_on, does, started
from harness.core.guarantees import Configuration, asked_by_hand
from harness.history.run_file import QUICK_SILENCE_NS

_TIMES_OF_FAULT = ("injecting_ns", "injected_ns", "healing_ns", "healed_ns")


@dataclass(frozen=True)
class Evidence:
    """All evidence for a decision. ``faults``: the faults as known; and, if the effect of some is not known, a second
    list that assumes that they acted.

    ``delivered``: by partition and the number of a term, offsets in order, and when a consumer had received one at or
    above each.
    ``again``: acknowledgements at offsets that had been acknowledged before. ``spare``: the most offsets of a term that
    may belong to writes not known to be there (checkers/evidence/spare_offsets.py); ``written``: how much of its part
    of the final log a term's leader may have written by a time. ``end_ns``: the end of all writes.
    ``coordinated``: there were transactions, and the log of their coordinator is not observed. ``controllers``: the
    names of the controllers, or of the ZooKeeper nodes. ``silence_ns``: the shortest silence after which they may
    replace a leader (RunFile.silence_ns).
    """

    configuration: Configuration
    elections: Mapping[Partition, Elections]
    names: Mapping[int, str]
    faults: Sequence[Sequence[Row]]
    logs: Mapping[Partition, Log] = field(default_factory=dict)
    delivered: Mapping[tuple[Partition, int], tuple[Offsets, Offsets]] = field(default_factory=dict)
    again: Mapping[Partition, Again] = field(default_factory=dict)
    spare: Mapping[tuple[Partition, int], int] = field(default_factory=dict)
    written: Mapping[tuple[Partition, int], LeaderWrites] = field(default_factory=dict)
    end_ns: int = 0
    last_replica_guarded: bool = False
    coordinated: bool = False
    controllers: frozenset[str] = frozenset()
    silence_ns: int = QUICK_SILENCE_NS
    _moments: dict[Partition, Offsets] = field(default_factory=dict)
    _edges: dict[Partition, Offsets] = field(default_factory=dict)
    _behind: dict[int, BehindTimes] = field(default_factory=dict)
    _acting: dict[tuple[Partition, int], Acting] = field(default_factory=dict)
    _losing: dict[tuple[Partition, int], tuple[int, bool]] = field(default_factory=dict)

    def moments(self, of: Partition) -> Offsets:
        """The times of a partition at which its evidence changes: all records between two of them are decided alike.
        They include times after the end of a fault, when it may still have effects, and times when enough of a silence
        is left to count."""
        if of not in self._moments:
            known = self.elections.get(of)
            faults = [row[at] for row in self.faults[-1] for at in _TIMES_OF_FAULT if row.get(at) is not None]
            faults += [at for row in self.faults[-1] for at in started(row).values()]
            lag_ns = LAG_NS if known is None else known.lag_ns
            times = [
                at + more for at in faults for more in (0, lag_ns, -lag_ns, LAG_NS, LAG_NS - FRESH_NS, COMES_BACK_NS)
            ]
            times += [] if of not in self.again else self.again[of].sent_ns.tolist()
            observed = np.empty(0, np.int64) if known is None else known.moments
            self._moments[of] = np.unique(np.concatenate([observed, np.array(times, np.int64)]))
        return self._moments[of]

    def moment(self, of: Partition, at_ns: int) -> int:
        """The last of these moments by a time; before the first moment, the time itself."""
        n = int(np.searchsorted(self.moments(of), at_ns, side="right"))
        return int(self.moments(of)[n - 1]) if n else at_ns

    def edges(self, of: Partition) -> Offsets:
        """The offsets of a partition at which the evidence changes: all records between two of them are alike for the
        final log, for repeated acknowledgements, for what leaders wrote, and for the time of their commit."""
        if of not in self._edges:
            log, again = self.logs.get(of), self.again.get(of)
            edges = [] if log is None else [*log.first.tolist(), *(log.last + 1).tolist(), log.end]
            edges += [] if again is None else again.lowest.tolist()
            edges += [written.twice + 1 for (where, _), written in self.written.items() if where == of]
            self._edges[of] = np.unique(np.concatenate([np.array(edges, np.int64), *self._committed(of)]))
        return self._edges[of]

    def _committed(self, of: Partition) -> Iterator[Offsets]:
        """For each term, the offsets below which everything was known to be committed, one for each moment."""
        terms = () if of not in self.elections else self.elections[of].terms
        deliveries = (self.delivered.get((of, number)) for number in range(len(terms)))
        below = ((by, offsets + 1) for offsets, by in filter(None, deliveries))
        for by, offsets in (*(term.highs[:2] for term in terms), *below):
            at = np.searchsorted(self.moments(of), by, side="right")
            yield offsets[np.append(at[1:] != at[:-1], True)[: len(at)]]

    def alike(self, case: Case) -> tuple[object, ...]:
        """A key: records with the same key have the same decision."""
        times = [case.sent_ns, case.until_ns, case.delivered_ns, case.received_ns, case.fetched_ns]
        moments = self.moments(case.of)
        indices = [None if at is None else int(np.searchsorted(moments, at, side="right")) for at in times]
        offset = case.first_offset
        segment = None if offset is None else int(np.searchsorted(self.edges(case.of), offset, side="right"))
        early = tuple(self._acknowledged_early(case))
        return (
            case.of,
            case.acknowledged,
            case.in_transaction,
            case.in_time,
            case.epoch,
            case.hole,
            segment,
            early,
            *indices,
        )

    def acting(self, elections: Elections, supposed: int = 0) -> Acting:
        """The faults as they acted on a partition. ``supposed``: the index of the list in ``faults``."""
        key = elections.of, supposed
        if key not in self._acting:
            behind = self._behind_times(elections.propagation, supposed)
            faults = self.faults[supposed]
            self._acting[key] = Acting(elections, faults, behind, self.controllers, self.silence_ns)
        return self._acting[key]

    def _behind_times(self, propagation: Propagation, supposed: int) -> BehindTimes:
        """When faults kept metadata from each broker: the same for all partitions."""
        if supposed not in self._behind:
            self._behind[supposed] = BehindTimes(self.faults[supposed], propagation)
        return self._behind[supposed]

    @property
    def disturbed(self) -> bool:
        """Whether any fault may have acted in the run, or any partition had a second term."""
        return any(row["effective"] or acted_on(row) for row in self.faults[-1]) or any(
            len(elections.terms) > 1 for elections in self.elections.values()
        )

    def acks_all(self, case: Case) -> bool:
        return case.delivered_ns is not None or self.acknowledged_by_all(case)

    def acknowledged_by_all(self, case: Case) -> bool:
        """Whether the whole ISR acknowledged these records. Records in a transaction always need that (KIP-98)."""
        transactional = self.coordinated and case.in_transaction is not False
        return case.acknowledged and (self.configuration.acks_all or transactional)

    def may_lose_committed(self, case: Case, supposed: int) -> bool:
        """Whether the settings, or a fault, make it possible at all that a committed record is lost."""
        since = BEFORE if case.sent_ns is None else case.sent_ns
        key = case.of, supposed
        if key not in self._losing:
            names, faults = frozenset(self.names.values()), self.faults[supposed]
            wiped = (over(row) for row in faults if does(row, Does.DESTROYS_DATA) and acted_on(row) & names)
            by_hand = any(asked_by_hand(row, case.of) for row in faults)
            self._losing[key] = max(wiped, default=BEFORE - 1), by_hand
        until, by_hand = self._losing[key]
        return self.configuration.elects_uncleanly or until >= since or by_hand

    def gone(self, case: Case) -> GoneBy | None:
        """When records may have been gone from their leader's log already before the final read, because another write
        was acknowledged in their place; None if there is no such write."""
        again = self.again.get(case.of)
        if again is None or case.first_offset is None or case.until_ns is None:
            return None
        return again.gone(case.first_offset, case.until_ns)

    def committed_ns(self, elections: Elections, number: int, case: Case) -> int | None:
        """The time by which records of a term were certainly committed; None if no such time is known."""
        if self.acknowledged_by_all(case):
            return NEVER if case.until_ns is None else case.until_ns
        known = [case.delivered_ns, case.received_ns, self.reported_committed_ns(elections, number, number, case)]
        return min((at for at in known if at is not None), default=None)

    def acknowledged_early(self, elections: Elections, number: int, case: Case, surely: bool = True) -> bool:
        """Whether records of a term were acknowledged with acks=all while its leader's high watermark was not above
        them yet, by its own reports; or perhaps were. (A leader answers when it is: DelayedProduce.)"""
        known = self._acknowledged(case)
        # (Without epochs a leader may have lost its log and lead again: then its high watermark fell.)
        if known is None or (surely and elections.terms[number].epoch is None):
            return False
        first_offset, last_offset, first_ns, last_ns = known
        # (Of several, whatever was acknowledged first had an offset from the first on; whatever last, up to the last.)
        return (
            elections.uncommitted_ns(number, first_offset, surely) >= first_ns
            or elections.uncommitted_ns(number, last_offset, surely) >= last_ns
        )

    def _acknowledged(self, case: Case) -> tuple[int, int, int, int] | None:
        """The first and last offset of records that were acknowledged with acks=all, and the first and last time of
        that; None if they were not, or if one is not known."""
        if not self.acknowledged_by_all(case) or case.until_ns is None or case.first_offset is None:
            return None
        first_ns = case.until_ns if case.first_until_ns is None else case.first_until_ns
        last_offset = case.first_offset if case.last_offset is None else case.last_offset
        return case.first_offset, last_offset, first_ns, case.until_ns

    def _acknowledged_early(self, case: Case) -> list[tuple[int, bool]]:
        """Of which terms the records are if they were, perhaps, and whether they surely were."""
        elections, known = self.elections.get(case.of), self._acknowledged(case)
        if elections is None or known is None:
            return []
        _, last_offset, first_ns, _ = known
        perhaps = (
            number
            for number in elections.may_not_have_committed(last_offset, first_ns)
            if self.acknowledged_early(elections, number, case, surely=False)
        )
        return [(number, self.acknowledged_early(elections, number, case)) for number in perhaps]

    def without_epochs(self, of: Partition) -> bool:
        """Whether brokers reported leaders of a partition, and not their epochs."""
        return of in self.elections and self.elections[of].without_epochs

    def reported_committed_ns(
        self, elections: Elections, wrote: int, number: int, case: Case, surely: bool = True
    ) -> int | None:
        """The time by which the log of a term's leader was certainly committed up to these records, which the leader of
        the term ``wrote`` wrote, by the reports in that term and by deliveries; None if no such time is known. (Without
        epochs, another leader may have led in between, and have cut that log: then it does not show ``surely`` of
        records that were sent before, or since.)"""
        if case.last_offset is None:
            return None
        offsets, by = self.delivered.get((elections.of, number), ((), ()))
        above = int(np.searchsorted(offsets, case.last_offset))
        reported_ns = elections.committed_ns(number, case.last_offset)
        known = [reported_ns, int(by[above]) if above < len(offsets) else None]
        at_ns = min((at for at in known if at is not None), default=None)
        if at_ns is None or not (surely and elections.without_epochs):
            return at_ns
        sent_ns, until_ns = (BEFORE if case.sent_ns is None else case.sent_ns), case.until_ns or at_ns
        since = max(min(sent_ns, at_ns), elections.terms[wrote].begins_ns)
        return None if elections.unseen(since, max(at_ns, until_ns)) else at_ns


def possible_terms(elections: Elections, case: Case, acting: Acting) -> list[int]:
    """The terms whose leaders may have acknowledged these records: terms that had begun and were not over. A leader
    whose process had ended acknowledges nothing more.

    If a consumer got them with an epoch, it is the leader of that epoch, or a later one: a retry of an idempotent
    producer is acknowledged by the leader of that time, which already has the records. But a later leader's term must
    not have been seen before they were sent. The epoch says nothing if brokers report no epochs, or if its leader
    cannot have acknowledged anything at that time.
    """
    sent = BEFORE if case.sent_ns is None else case.sent_ns
    until = NEVER if case.until_ns is None else case.until_ns
    by_time = [n for n in elections.open(sent, until) if sent <= acting.ended_ns(n)]
    if not tells_term(elections, case):
        return by_time
    own = [n for n, term in enumerate(elections.terms) if term.epoch == case.epoch]
    if not own or not case.acknowledged:
        return own
    if not {*own} & {*by_time}:
        before = case.delivered_ns is None and bool(by_time) and own[-1] < by_time[0]
        return by_time if before else sorted({*own, *by_time})
    return [*own, *(n for n in by_time if n > own[-1] and sent < elections.terms[n].seen_ns)]


def tells_term(elections: Elections, case: Case) -> bool:
    """Whether the epoch with which a consumer got the records identifies a term."""
    return case.epoch is not None and not elections.without_epochs
