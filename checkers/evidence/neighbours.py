"""Gives undecided record ranges the decision of a permitted neighbour, where one election took both.

An election cuts a log at one offset, and takes everything from there on.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Self

from checkers.evidence.decision import Case, Decision, in_each
from checkers.evidence.final_logs import Log
from checkers.evidence.intervals import BEFORE, NEVER
from checkers.evidence.record_ranges import BESIDE, RecordRange, merged, near
from checkers.evidence.written import LeaderWrites
from checkers.leadership import Partition
from harness.core.verdict import Standing


@dataclass(frozen=True)
class _Chain:
    """Records without a gap that the same election took, all permitted: the first offset, and the number of records."""

    first: int
    count: int


@dataclass(frozen=True)
class _Violations:
    """The lowest offset of the records that were lost in violation of a promise: by the election that took them
    (``taken``), and by the term whose log lost them (``of``)."""

    taken: dict[tuple[Partition, int], int] = field(default_factory=dict)
    of: dict[tuple[Partition, int], int] = field(default_factory=dict)

    @classmethod
    def among(cls, parts: Iterable[RecordRange]) -> Self:
        found = cls()
        for part in parts:
            decision, at = part.decision, part.first_offset
            if decision is None or decision.standing is not Standing.VIOLATION or at is None or part.hole:
                continue
            terms = ((found.taken, None if decision.event is None else decision.event.term), (found.of, decision.term))
            for lowest, term in terms:
                if term is not None:
                    lowest[part.of, term] = min(at, lowest.get((part.of, term), NEVER))
        return found

    def took_below(self, part: RecordRange, term: int) -> bool:
        """Whether the election of a term also took records below or among these, in violation."""
        lowest = self.taken.get((part.of, term), NEVER)
        return lowest <= (-1 if part.last_offset is None else part.last_offset)

    def lost_by(self, part: RecordRange, term: int | None) -> bool:
        """Whether the log of a term lost records in violation, at or below the offsets of these."""
        lowest = NEVER if term is None else self.of.get((part.of, term), NEVER)
        return lowest <= (NEVER if part.last_offset is None else part.last_offset) < NEVER


def along_the_log(part: RecordRange) -> tuple[Partition, int, int]:
    """A key that puts ranges in the order of the logs: that of what ``attached`` returns."""
    return part.of, -1 if part.first_offset is None else part.first_offset, part.first_ns


def attached(
    parts: Iterable[RecordRange],
    width: int,
    logs: Mapping[Partition, Log],
    others: Iterable[RecordRange] = (),
    spare: Mapping[tuple[Partition, int], int] = MappingProxyType({}),
    written: Mapping[tuple[Partition, int], LeaderWrites] = MappingProxyType({}),
    wrong: Iterable[RecordRange] = (),
) -> list[RecordRange]:
    """Give undecided record ranges the decision of a permitted neighbour, if the same event may have taken them: an
    election cuts a log at one offset, and takes everything from there on. ``logs``: the final logs. ``others``: record
    ranges of another anomaly that the event may have taken. ``wrong``: record ranges of any anomaly, of which only the
    violations count.

    Exceptions: Records are of another leader's log if more of them were acknowledged there than one log has offsets, or
    if they were acknowledged after records above them were; so are records that continue them. No election alone took
    records in a hole of the final log. Records may also be of another log if another leader may have written them and
    the final log has no record of that leader's epoch at their offsets or above, or that leader lost some of its own
    below: then the end of its log may have been lost by some other event. But if that leader is the one that the event
    elected, it reached these offsets only if it wrote all offsets in between again. It did not if fewer writes than
    that can be there: ``spare`` of a partition and term (checkers/evidence/spare_offsets.py; none: any number). And
    what lies above a violation stays undecided if the same election took both: the broker lacked what it had to have,
    so it may have lost these, too.
    """
    ordered = sorted(
        [*((part, True) for part in parts), *((part, False) for part in others)],
        key=lambda one: along_the_log(one[0]),
    )
    found = [part for part, _ in ordered]
    apart, violations = _kept_apart(found, width), _Violations.among([*found, *wrong])
    for order, upwards in ((range(len(found) - 1, -1, -1), False), (range(len(found)), True)):
        permitted: dict[tuple[Partition, int], RecordRange] = {}
        crowds: dict[tuple[Partition, int, int], RecordRange] = {}
        chains: dict[tuple[Partition, int], _Chain] = {}
        below: Counter[Partition] = Counter()
        for n in order:
            part = found[n]
            decision = part.decision
            assert decision is not None
            sure = upwards or _near_a_cut(part, logs.get(part.of))
            if decision.standing is Standing.UNDECIDED and not apart[n] and sure:
                for term in sorted(decision.may_have):
                    # (The cut of records above may be above these: then another took them.)
                    if violations.took_below(part, term) or (not upwards and decision.may_be_forbidden(term)):
                        continue
                    chain = chains.get((part.of, term)) if upwards and (part.of, term) in spare else None
                    unknown = 0 if chain is None else spare[part.of, term] + below[part.of] - chain.count
                    its = written.get((part.of, term))
                    by_then = None if its is None or part.case is None else its.by(part.case.until_ns)
                    if _may_be_anothers(part, decision, term, logs.get(part.of), violations, chain, unknown, by_then):
                        continue
                    beside = permitted.get((part.of, term))
                    crowd = _crowd(crowds, part, term, width)
                    if beside is not None and near(beside, part, BESIDE) and _fits(crowd):
                        decision = _taken_too(decision, beside.decision)
                        found[n] = part = replace(part, term=beside.term, decision=decision)
                        break
            event = decision.taken_by
            below[part.of] += part.count
            if decision.standing is Standing.PERMITTED and event is not None and event.term is not None:
                chains[part.of, event.term] = _chain(chains, permitted, part, event.term)
                permitted[part.of, event.term] = part
                crowds[part.of, event.term, (part.first_offset or 0) // width] = _crowd(crowds, part, event.term, width)
    return [replace(part, case=None) for part, (_, own) in zip(found, ordered, strict=True) if own]


def _taken_too(decision: Decision, beside: Decision | None) -> Decision:
    """The decision about records that the same event took as those ``beside`` them.

    If only one leader may have acknowledged what the event took, it is theirs where the same brokers must have had
    both. Otherwise the holders are known as far as it holds for every such leader. (The neighbours may have been
    acknowledged by another, or with another ISR.) The ruling is their own: what permits the loss of the neighbours may
    not be what permits theirs."""
    if beside is None or beside.event is None or beside.event.term is None:
        return decision
    took = beside.event.term
    ruling = decision.rulings.get(took, beside.ruling)
    each = [one for one in decision.possible_terms if one.may_go_with(took)]
    must, need_not = in_each(each or [decision])
    if must == beside.must and len({one.term for one in each}) <= 1:
        return replace(beside, ruling=ruling)
    unknown = (decision.must | decision.unknown | decision.need_not) - must - need_not
    return replace(
        decision,
        ruling=ruling,
        event=beside.event,
        only_event=beside.only_event,
        must=must,
        unknown=unknown,
        need_not=need_not,
    )


def _chain(
    chains: Mapping[tuple[Partition, int], _Chain],
    permitted: Mapping[tuple[Partition, int], RecordRange],
    part: RecordRange,
    term: int,
) -> _Chain:
    """The chain of records that an election took, up to this record range."""
    before = permitted.get((part.of, term))
    if before is None or not near(before, part, BESIDE):
        return _Chain(part.first_offset or 0, part.count)
    return replace(chains[part.of, term], count=chains[part.of, term].count + part.count)


def _may_be_anothers(
    part: RecordRange,
    decision: Decision,
    term: int,
    log: Log | None,
    violations: _Violations,
    chain: _Chain | None = None,
    unknown: int = 0,
    written: int | None = None,
) -> bool:
    """Whether records may be of a leader for which it is not known to be permitted that the election of ``term`` took
    them, and whose epoch the final log lacks at their offsets and above. ``chain``: the records that this election took
    right below; ``unknown``: how many other writes may be there; ``written``: how much of its part of the final log
    that leader may have written when these records had been acknowledged (None: not known)."""
    others = [possible for possible in decision.possible_terms if not possible.may_go_with(term)]
    return any(
        log is None
        or not (
            (
                not log.sparse
                and log.reaches(possible.epoch, part.last_offset)
                and not violations.lost_by(part, possible.term)
            )
            or (possible.term == term and _beyond(part, log, possible.epoch, chain, unknown, written))
        )
        for possible in others
    )


def _near_a_cut(part: RecordRange, log: Log | None) -> bool:
    """Whether the log may go on with a later epoch at these records: so few offsets are between them and its first
    record that all may be markers."""
    if log is None or not log.sparse or part.first_offset is None:
        return True
    return log.next_offset(part.first_offset) - part.first_offset <= log.unseen


def _beyond(
    part: RecordRange, log: Log, epoch: int | None, chain: _Chain | None, unknown: int, written: int | None = None
) -> bool:
    """Whether the leader of an epoch, which begins at or below the records that its election took, cannot have written
    as far as these records: neither in the final log, nor (``written``) by the time when they were acknowledged."""
    own = log.epochs == epoch
    # (In a sparse log it is not known how far a leader wrote.)
    if log.sparse or chain is None or part.first_offset is None or not own.any():
        return False
    first = int(log.first[own].min())
    if first > chain.first:
        return False
    if written is not None and part.first_offset - (first + written) > unknown:
        return True
    return part.first_offset - max(int(log.last[own].max()) + 1, chain.first) > unknown


def _crowd(
    crowds: Mapping[tuple[Partition, int, int], RecordRange], part: RecordRange, term: int, width: int
) -> RecordRange:
    """A record range, joined with the records of its bucket that the same election took."""
    before = crowds.get((part.of, term, (part.first_offset or 0) // width))
    if before is None or part.first_offset is None or before.first_offset is None:
        return part
    return replace(merged(before, part), first_offset=min(before.first_offset, part.first_offset))


def _fits(crowd: RecordRange) -> bool:
    """Whether one log has enough offsets for these records."""
    if crowd.first_offset is None or crowd.last_offset is None:
        return True
    return crowd.count <= crowd.last_offset - crowd.first_offset + 1


def _kept_apart(found: Sequence[RecordRange], width: int) -> list[bool]:
    """For each of these ranges, in order, whether it must be kept apart: it is in a hole, or of another leader's log
    than the records above it (some of it was sent after records above were acknowledged), or it continues such a range
    (some of that was acknowledged before some of it was sent, and no permitted range that was sent later is in
    between)."""
    above, apart = _acknowledged_above(found), [False] * len(found)
    # (A range below that was acknowledged later than one above it shows nothing more than that one.)
    others: dict[Partition, list[RecordRange]] = {}
    for n, part in enumerate(found):
        case, own = part.case, others.setdefault(part.of, [])
        if case is None:
            continue
        own[:] = [other for other in own if near(other, part, width)]
        apart[n] = case.hole or above[n] or any(_last_sent(case) > _first_until(other.case) for other in own)
        if part.standing is Standing.PERMITTED:
            own[:] = [other for other in own if _sent(case) <= _until(other.case)]
        elif apart[n] and not case.hole:
            while own and _is_no_earlier(own[-1].case, case):
                own.pop()
            own.append(part)
    return apart


def _sent(case: Case) -> int:
    return BEFORE if case.sent_ns is None else case.sent_ns


def _last_sent(case: Case) -> int:
    return _sent(case) if case.last_sent_ns is None else case.last_sent_ns


def _until(case: Case | None) -> int:
    return NEVER if case is None or case.until_ns is None else case.until_ns


def _first_until(case: Case | None) -> int:
    return _until(case) if case is None or case.first_until_ns is None else case.first_until_ns


def _is_no_earlier(one: Case | None, other: Case) -> bool:
    """Whether neither the first nor the last acknowledgement of ``one`` is before that of ``other``."""
    return _first_until(one) >= _first_until(other) and _until(one) >= _until(other)


def _acknowledged_above(found: Sequence[RecordRange]) -> list[bool]:
    """For each of these ranges, in order, whether some of it was sent after a record at a higher offset was
    acknowledged. (It is not known which offsets of a range were sent late. So a record within the range counts only if
    the whole range was sent after it.)"""
    starts = [(part.of, -1 if part.first_offset is None else part.first_offset) for part in found]
    earliest = [NEVER] * (len(found) + 1)
    for n in range(len(found) - 1, -1, -1):
        goes_on = n + 1 < len(found) and found[n + 1].of == found[n].of
        earliest[n] = min(_first_until(found[n].case), earliest[n + 1] if goes_on else NEVER)

    def from_(of: Partition, offset: int) -> int:
        n = bisect_right(starts, (of, offset))
        return earliest[n] if n < len(found) and found[n].of == of else NEVER

    return [
        part.case is not None
        and (
            _last_sent(part.case) > from_(part.of, start if part.last_offset is None else part.last_offset)
            or _sent(part.case) > from_(part.of, start)
        )
        for part, (_, start) in zip(found, starts, strict=True)
    ]
