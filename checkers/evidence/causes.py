"""Causes: groups the records of an anomaly into runs, each with its observations and faults.

A run is a range of records that were close together in one partition's log, and were acknowledged under one leader and
epoch. The records are folded into buckets of offsets; the rest is arithmetic on a few thousand buckets. Records in one
bucket, or in neighbouring buckets but no farther apart than the width of a bucket, belong to one run: there may be
unacknowledged records between them.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.evidence import holders
from checkers.evidence.decision import Case, Decision
from checkers.evidence.evidence import Evidence
from checkers.evidence.faults import active, overlapping
from checkers.evidence.final_logs import Holes, Log, inside
from checkers.evidence.intervals import BEFORE, NEVER
from checkers.evidence.leadership import LeaderTerm, Partition, Span, isr_before, leader_terms
from checkers.evidence.store import AnomalyStore, each_partition
from checkers.evidence.written import Written
from harness.core.anomalies import Anomaly, Gone
from harness.core.topology import broker_name
from harness.core.verdict import Standing

if TYPE_CHECKING:
    from checkers.history import History

#: The most runs of an anomaly in a verdict, the biggest first.
MOST_RUNS = 20

#: The least width of a bucket, in offsets. It is a choice: lost records with fewer offsets than this between them are
#: of one run, and undecided records may follow a permitted neighbour only so far (``attached``, which also looks
#: whether one log has room for them). Producers wrote other records in between, or some without an acknowledgement.
_NARROWEST = 64
#: The arithmetic on buckets is Python, so their number must not grow with the history: then buckets become wider.
_MOST_BUCKETS = 20_000
#: The highest power of two that an int64 has.
_WIDEST = 1 << 62

#: The columns of any anomaly from which runs are made; a column that an anomaly lacks is null.
COLUMNS = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32())]
    + [(name, pa.int64()) for name in ("offset", "sent_ns", "acknowledged_ns", "read_ns", "last_offset")]
    + [("read_epoch", pa.int32()), ("in_transaction", pa.bool_()), ("in_time", pa.bool_())]
)
_BUCKET = ["topic", "partition", "term", "hole", "bucket", "read_epoch", "sent_at", "until_at", "read_at", "of_epoch"]
_BUCKET += ["has_time", "in_transaction", "in_time"]
#: The facts about the records of a bucket, and how each is folded.
_FOLDS = {
    **{"first_offset": "min", "last_offset": "max", "again_to": "max", "count": "sum", "acknowledged": "sum"},
    **{"from_ns": "min", "to_ns": "max", "acknowledged_from_ns": "min", "acknowledged_to_ns": "max"},
    **{"sent_ns": "min", "until_ns": "max", "read_ns": "max", "last_sent_ns": "max", "first_until_ns": "min"},
}


@dataclass(frozen=True)
class RecordRange:
    """Records of one partition and leader term that are close together in the log. Offsets are None if not known.

    ``hole``: the final log has records of one leader epoch below and above each of them (checkers.evidence.holes).
    ``term``: the number of leader terms of the partition that had begun (0: none was ever seen). ``first_ns`` and
    ``last_ns``: times of acknowledgements, or of sends (or reads) if ``acknowledged`` is 0. ``case``: the facts from
    which the ``decision`` is made (checkers.evidence.holders).
    """

    topic: str
    partition: int
    term: int
    first_offset: int | None
    last_offset: int | None
    again_to: int | None
    count: int
    acknowledged: int
    first_ns: int
    last_ns: int
    hole: bool = False
    case: Case | None = field(default=None, compare=False)
    decision: Decision | None = None

    @property
    def of(self) -> Partition:
        """Its partition."""
        return self.topic, self.partition


def found_ranges(
    history: "History", anomaly: Anomaly, found: AnomalyStore, holes: Holes, evidence: Evidence | None = None
) -> list[RecordRange]:
    """The ranges of an anomaly's records in ``history``, if the anomaly comes in runs or there is ``evidence``. With
    ``evidence`` each range has a decision about what took it."""
    if not anomaly.comes_in_runs and evidence is None:
        return []
    stored, led = found.of(anomaly), terms_led(history)
    width = bucket_width(stored.extent(), len(led))
    parts = record_ranges(stored.pieces(COLUMNS), led, width, holes, evidence)
    if evidence is not None:
        known = decided(parts, anomaly, evidence)
        # Acknowledged records that are in no log may have been taken by the same cut.
        beside = anomaly.gone is Gone.MOVED and any(_is_undecided(part) for part in known)
        others = _lost_beside(found, led, holes, evidence) if beside else []
        spare = evidence.spare if anomaly.gone is Gone.ACKNOWLEDGED else {}
        parts = attached(known, width, evidence.logs, others, spare, evidence.written)
    return joined(reattributed(joined(parts, width), width, led, claims(history.seen, history.stored.brokers)), width)


def _lost_beside(
    found: AnomalyStore, led: Mapping[Partition, Sequence[LeaderTerm]], holes: Holes, evidence: Evidence
) -> list[RecordRange]:
    """The ranges of acknowledged records that are in no log: a cut that took them may also have taken undecided records
    of another anomaly."""
    ranges = []
    for anomaly, lost in found.gone(Gone.ACKNOWLEDGED):
        width = bucket_width(lost.extent(), len(led))
        ranges += decided(record_ranges(lost.pieces(COLUMNS), led, width, holes, evidence), anomaly, evidence)
    return ranges


def decided(parts: Iterable[RecordRange], anomaly: Anomaly, evidence: Evidence) -> list[RecordRange]:
    """Record ranges, each with its decision. Ranges with the same evidence are decided only once."""
    known: dict[tuple[object, ...], Decision] = {}
    found = []
    for part in parts:
        assert part.case is not None
        alike = evidence.alike(part.case)
        if alike not in known:
            known[alike] = holders.decided(evidence, anomaly, part.case)
        decision = known[alike]
        term = part.term if decision.term is None else decision.term + 1
        hole = part.hole and decision.standing is not Standing.PERMITTED
        found.append(replace(part, term=term, hole=hole, decision=decision))
    return found


@dataclass(frozen=True)
class _Chain:
    """Records without a gap that the same election took, all permitted: the first offset, and the number of records."""

    first: int
    count: int


def attached(
    parts: Iterable[RecordRange],
    width: int,
    logs: Mapping[Partition, Log],
    others: Iterable[RecordRange] = (),
    spare: Mapping[tuple[Partition, int], int] = MappingProxyType({}),
    written: Mapping[tuple[Partition, int], Written] = MappingProxyType({}),
) -> list[RecordRange]:
    """Give undecided record ranges the decision of a permitted neighbour, if the same event may have taken them: an
    election cuts a log at one offset, and takes everything from there on. ``logs``: the final logs. ``others``: record
    ranges of another anomaly that the event may have taken.

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
        key=lambda one: (one[0].of, -1 if one[0].first_offset is None else one[0].first_offset, one[0].first_ns),
    )
    found = [part for part, _ in ordered]
    apart, violations = _kept_apart(found, width), _Violations.among(found)
    for order, upwards in ((range(len(found) - 1, -1, -1), False), (range(len(found)), True)):
        permitted: dict[tuple[Partition, int], RecordRange] = {}
        crowds: dict[tuple[Partition, int, int], RecordRange] = {}
        chains: dict[tuple[Partition, int], _Chain] = {}
        below: Counter[Partition] = Counter()
        for n in order:
            part = found[n]
            decision = part.decision
            assert decision is not None
            if decision.standing is Standing.UNDECIDED and not apart[n]:
                for term in sorted(decision.may_have):
                    if violations.took_below(part, term):
                        continue
                    chain = chains.get((part.of, term)) if upwards and (part.of, term) in spare else None
                    unknown = 0 if chain is None else spare[part.of, term] + below[part.of] - chain.count
                    its = written.get((part.of, term))
                    by_then = None if its is None or part.case is None else its.by(part.case.until_ns)
                    if _may_be_anothers(part, decision, term, logs.get(part.of), violations, chain, unknown, by_then):
                        continue
                    beside = permitted.get((part.of, term))
                    crowd = _crowd(crowds, part, term, width)
                    if beside is not None and _near(beside, part, width) and _fits(crowd):
                        found[n] = part = replace(part, term=beside.term, decision=beside.decision)
                        decision = part.decision or decision
                        break
            event = decision.event
            below[part.of] += part.count
            if decision.standing is Standing.PERMITTED and event is not None and event.term is not None:
                chains[part.of, event.term] = _chain(chains, permitted, part, event.term, width)
                permitted[part.of, event.term] = part
                crowds[part.of, event.term, (part.first_offset or 0) // width] = _crowd(crowds, part, event.term, width)
    return [replace(part, case=None) for part, (_, own) in zip(found, ordered, strict=True) if own]


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
        """Whether the election of a term also took records below these, in violation."""
        lowest = self.taken.get((part.of, term), NEVER)
        return lowest < (-1 if part.first_offset is None else part.first_offset)

    def lost_by(self, part: RecordRange, term: int | None) -> bool:
        """Whether the log of a term lost records in violation, at or below the offsets of these."""
        lowest = NEVER if term is None else self.of.get((part.of, term), NEVER)
        return lowest <= (NEVER if part.last_offset is None else part.last_offset) < NEVER


def _chain(
    chains: Mapping[tuple[Partition, int], _Chain],
    permitted: Mapping[tuple[Partition, int], RecordRange],
    part: RecordRange,
    term: int,
    width: int,
) -> _Chain:
    """The chain of records that an election took, up to this record range."""
    before = permitted.get((part.of, term))
    if before is None or not _near(before, part, width):
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
    others = [candidate for candidate in decision.candidates if not candidate.may_go_with(term)]
    return any(
        log is None
        or not (
            (log.reaches(candidate.epoch, part.last_offset) and not violations.lost_by(part, candidate.term))
            or (candidate.term == term and _beyond(part, log, candidate.epoch, chain, unknown, written))
        )
        for candidate in others
    )


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


def _is_undecided(part: RecordRange) -> bool:
    return _standing(part) is Standing.UNDECIDED


def _crowd(
    crowds: Mapping[tuple[Partition, int, int], RecordRange], part: RecordRange, term: int, width: int
) -> RecordRange:
    """A record range, joined with the records of its bucket that the same election took."""
    before = crowds.get((part.of, term, (part.first_offset or 0) // width))
    if before is None or part.first_offset is None or before.first_offset is None:
        return part
    return replace(_sum(before, part), first_offset=min(before.first_offset, part.first_offset))


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
        own[:] = [other for other in own if _near(other, part, width)]
        apart[n] = case.hole or above[n] or any(_last_sent(case) > _first_until(other.case) for other in own)
        if _standing(part) is Standing.PERMITTED:
            own[:] = [other for other in own if _sent(case) <= _until(other.case)]
        elif apart[n] and not case.hole:
            while own and _is_no_earlier(own[-1].case, case):
                own.pop()
            own.append(part)
    return apart


def _standing(part: RecordRange) -> Standing | None:
    return None if part.decision is None else part.decision.standing


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
    places = [(part.of, -1 if part.first_offset is None else part.first_offset) for part in found]
    earliest = [NEVER] * (len(found) + 1)
    for n in range(len(found) - 1, -1, -1):
        goes_on = n + 1 < len(found) and found[n + 1].of == found[n].of
        earliest[n] = min(_first_until(found[n].case), earliest[n + 1] if goes_on else NEVER)

    def from_(of: Partition, offset: int) -> int:
        n = bisect_right(places, (of, offset))
        return earliest[n] if n < len(found) and found[n].of == of else NEVER

    return [
        part.case is not None
        and (
            _last_sent(part.case) > from_(part.of, place if part.last_offset is None else part.last_offset)
            or _sent(part.case) > from_(part.of, place)
        )
        for part, (_, place) in zip(found, places, strict=True)
    ]


def _near(one: RecordRange, other: RecordRange, width: int) -> bool:
    if None in (one.first_offset, one.last_offset, other.first_offset, other.last_offset):
        return False
    below, above = sorted((one, other), key=lambda part: part.first_offset or 0)
    return (above.first_offset or 0) - (below.last_offset or 0) <= width


def runs(history: "History", found: Iterable[RecordRange]) -> list[dict[str, Any]]:
    """Record ranges as the ``runs`` of verdict.json: at most MOST_RUNS, holes first, then the biggest.

    Each is {topic, partition, first_offset, last_offset, count, acknowledged, again_to, first_ns, last_ns, leader,
    leader_name, leader_epoch, isr, isr_names, elected, faults, hole}. The ``faults``: active between the last record
    and the election (without an election: during the records); ``elected.faults``: active at the election.
    """
    seen, led, names = history.seen, terms_led(history), history.stored.brokers
    return [
        facts(
            record_range,
            led.get(record_range.of, []),
            [span for span in seen if (span.topic, span.partition) == record_range.of],
            history.faults,
            names,
        )
        for record_range in biggest(found)
    ]


def terms_led(history: "History") -> dict[Partition, list[LeaderTerm]]:
    seen = history.seen
    partitions = {(row["topic"], row["partition"]) for row in history.ends} | {(s.topic, s.partition) for s in seen}
    return {of: leader_terms(seen, of) for of in sorted(partitions)}


def bucket_width(offsets: int, partitions: int) -> int:
    """The number of offsets in a bucket: a power of two, chosen so that the number of buckets is bounded."""
    least = max(_NARROWEST, -(-offsets * max(partitions, 1) // _MOST_BUCKETS))
    return min(1 << (least - 1).bit_length(), _WIDEST)


def record_ranges(
    found: Iterable[pa.Table],
    led: Mapping[Partition, Sequence[LeaderTerm]],
    width: int,
    holes: Holes | None = None,
    evidence: Evidence | None = None,
) -> list[RecordRange]:
    """The records of an anomaly (columns as in COLUMNS), folded by partition, leader term, hole or not, bucket of
    offsets and, with ``evidence``, by everything on which a decision depends."""
    folded = [_folded(_marked(piece, led, width, holes or {}, evidence)) for piece in found]
    if not folded:
        return []
    return sorted((_record_range(row) for row in _folded(pa.concat_tables(folded)).to_pylist()), key=_place)


def _marked(
    piece: pa.Table,
    led: Mapping[Partition, Sequence[LeaderTerm]],
    width: int,
    holes: Holes,
    evidence: Evidence | None,
) -> pa.Table:
    """A row for each record: its bucket, and the facts to fold."""
    topic, partition, offset, sent_ns, acknowledged_ns, read_ns, last_offset, read_epoch, *known = piece.columns
    at_ns = pc.coalesce(acknowledged_ns, sent_ns, read_ns, 0)
    until_ns = pc.coalesce(acknowledged_ns, read_ns)
    length = len(piece)
    term, sent_at, until_at, read_at, of_epoch = (np.zeros(length, np.int64) for _ in range(5))
    hole = np.zeros(length, bool)
    at, offsets = at_ns.to_numpy(), pc.fill_null(offset, -1).to_numpy()
    sent, until = pc.fill_null(sent_ns, BEFORE).to_numpy(), pc.fill_null(until_ns, NEVER).to_numpy()
    read = pc.fill_null(read_ns, NEVER).to_numpy()
    for of, here in each_partition(topic, partition):
        own = led.get(of, [])
        # (The first term began before it was first seen.)
        begun = np.searchsorted([one.from_ns for one in own], at[here], side="right")
        term[here] = np.maximum(begun, 1) if own else 0
        if holes:
            hole[here] = inside(holes, of, offsets[here])
        if evidence is not None:
            moments, edges = evidence.moments(of), evidence.edges(of)
            sent_at[here] = np.searchsorted(moments, sent[here], side="right")
            until_at[here] = np.searchsorted(moments, until[here], side="right")
            read_at[here] = np.searchsorted(moments, read[here], side="right")
            of_epoch[here] = np.searchsorted(edges, offsets[here], side="right")
    has_time = pc.is_valid(acknowledged_ns)
    of_bucket = [topic, partition, term, hole, pc.divide(offset, width), read_epoch]
    keys = [*of_bucket, sent_at, until_at, read_at, of_epoch, has_time, *known]
    columns = [offset, offset, last_offset, pa.repeat(1, length), has_time.cast(pa.int64())]
    times = [at_ns, at_ns, acknowledged_ns, acknowledged_ns, sent_ns, until_ns, read_ns]
    times += [sent_ns, until_ns]
    return pa.table([*keys, *columns, *times], [*_BUCKET, *_FOLDS])


def _folded(marked: pa.Table) -> pa.Table:
    """Fold marked records, or rows that are folded already."""
    folded = marked.group_by(_BUCKET).aggregate(list(_FOLDS.items()))
    return folded.select([*_BUCKET, *("_".join(fold) for fold in _FOLDS.items())]).rename_columns([*_BUCKET, *_FOLDS])


def _record_range(row: Mapping[str, Any]) -> RecordRange:
    prefix = "acknowledged_" if row["acknowledged"] else ""
    first_ns, last_ns = row[f"{prefix}from_ns"], row[f"{prefix}to_ns"]
    columns = ("topic", "partition", "term", "hole", "first_offset", "last_offset", "again_to", "count", "acknowledged")
    case = Case(
        (row["topic"], row["partition"]),
        row["sent_ns"],
        row["until_ns"],
        bool(row["acknowledged"]),
        row["first_offset"],
        row["last_offset"],
        row["read_epoch"],
        row["read_ns"],
        row["hole"],
        row["last_sent_ns"],
        row["first_until_ns"],
        row["in_transaction"],
        row["in_time"],
    )
    return RecordRange(**{name: row[name] for name in columns}, first_ns=first_ns, last_ns=last_ns, case=case)


def joined(parts: Iterable[RecordRange], width: int) -> list[RecordRange]:
    """Join record ranges that are no farther apart than ``width`` offsets; in the order of their places."""
    found: list[RecordRange] = []
    # Records with different decisions may be mixed: each decision has its own runs.
    number: dict[Decision | None, int] = {}
    in_order = sorted(parts, key=_place)
    for part in in_order:
        number.setdefault(part.decision, len(number))
    for part in sorted(in_order, key=lambda one: (_place(one)[:4], number[one.decision])):
        if found and _adjoin(found[-1], part, width):
            found[-1] = _sum(found[-1], part)
        else:
            found.append(part)
    return found


def claims(seen: Iterable[Span], names: Mapping[int, str]) -> dict[tuple[Partition, int, int | None], list[Span]]:
    """The spans in which a broker reported itself as leader, by partition, leader and epoch."""
    own: dict[tuple[Partition, int, int | None], list[Span]] = {}
    for span in seen:
        if names.get(span.leader) == span.observer:
            own.setdefault(((span.topic, span.partition), span.leader, span.leader_epoch), []).append(span)
    return own


def reattributed(
    parts: Iterable[RecordRange],
    width: int,
    led: Mapping[Partition, Sequence[LeaderTerm]],
    own: Mapping[tuple[Partition, int, int | None], Sequence[Span]],
) -> list[RecordRange]:
    """Assign record ranges to the deposed leader whose log they continue, if it did not yet know of its successor.

    A deposed leader goes on acknowledging until it hears of its successor (with acks=1: KIP-101, Kafka design). These
    records are right behind its earlier ones, while the successor's records begin at the end of the successor's log.
    """
    found: list[RecordRange] = []
    ending: dict[tuple[Partition, int], list[RecordRange]] = {}
    for part in sorted(parts, key=_place):
        bucket = 0 if part.first_offset is None else part.first_offset // width
        neighbours = (one for at in (bucket - 1, bucket) for one in ending.get((part.of, at), []))
        fitting = (one for one in neighbours if _continues(one, part, width) and _claimed(one, part, led, own))
        before = min(fitting, key=_place, default=None)
        found.append(part if before is None else replace(part, term=before.term))
        if part.last_offset is not None:
            ending.setdefault((part.of, part.last_offset // width), []).append(found[-1])
    return found


def _continues(one: RecordRange, other: RecordRange, width: int) -> bool:
    if (
        one.of != other.of
        or one.term >= other.term
        or one.decision != other.decision
        or one.last_offset is None
        or other.first_offset is None
    ):
        return False
    return 0 < other.first_offset - one.last_offset <= width


def _claimed(
    one: RecordRange,
    other: RecordRange,
    led: Mapping[Partition, Sequence[LeaderTerm]],
    own: Mapping[tuple[Partition, int, int | None], Sequence[Span]],
) -> bool:
    if not one.term:
        return False
    term = led[one.of][one.term - 1]
    spans = own.get((one.of, term.leader, term.leader_epoch), [])
    return any(span.from_ns <= other.first_ns <= span.to_ns for span in spans)


def biggest(found: Iterable[RecordRange]) -> list[RecordRange]:
    """At most MOST_RUNS of these ranges, in the order of ``worst_and_biggest``."""
    return sorted(found, key=lambda one: (*worst_and_biggest(one), *_place(one)))[:MOST_RUNS]


def worst_and_biggest(one: RecordRange) -> tuple[int, bool, int]:
    """A key that puts the worst standing first, then holes, then the biggest ranges."""
    return 0 if one.decision is None else one.decision.rank, not one.hole, -one.count


def facts(
    record_range: RecordRange,
    led: Sequence[LeaderTerm],
    seen: Sequence[Span],
    faults: Sequence[Mapping[str, Any]],
    names: Mapping[int, str],
) -> dict[str, Any]:
    """A run in verdict.json, as facts. ``seen``: the spans of its partition; ``names``: brokers by their id."""
    term = led[record_range.term - 1] if record_range.term else None
    following = led[record_range.term] if record_range.term < len(led) else None
    decision = record_range.decision
    if decision is not None and decision.event is not None and decision.event.epoch is not None:
        following = led[decision.event.term] if decision.event.term is not None else following
    isrs = [] if term is None else isrs_of(seen, term, record_range, names)
    elected = None
    if following is not None:
        before = isr_before(seen, following)
        elected = {
            "leader": following.leader,
            "leader_epoch": following.leader_epoch,
            "at_ns": following.from_ns,
            "in_isr": None if before is None else following.leader in before,
            "name": broker_name(following.leader, names),
            "faults": active(faults, following.from_ns),
        }
    since, until = (
        (record_range.first_ns, record_range.last_ns)
        if following is None
        else (record_range.last_ns, following.from_ns)
    )
    return {
        "topic": record_range.topic,
        "partition": record_range.partition,
        "first_offset": record_range.first_offset,
        "last_offset": record_range.last_offset,
        "count": record_range.count,
        "first_ns": record_range.first_ns,
        "last_ns": record_range.last_ns,
        "leader": None if term is None else term.leader,
        "leader_epoch": None if term is None else term.leader_epoch,
        "isr": isrs,
        "elected": elected,
        "faults": overlapping(faults, min(since, until), until),
        "acknowledged": record_range.acknowledged,
        "again_to": record_range.again_to,
        "leader_name": None if term is None else broker_name(term.leader, names),
        "isr_names": [[broker_name(broker, names) for broker in isr] for isr in isrs],
        "hole": record_range.hole,
        **({} if decision is None else _decided(decision, names)),
    }


def _decided(decision: Decision, names: Mapping[int, str]) -> dict[str, Any]:
    """The keys of a run for its standing and the reason, the brokers that must have had its records, and the event that
    took them."""
    event, ruling = decision.event, decision.ruling
    groups = {"must": decision.must, "need_not": decision.need_not, "unknown": decision.unknown}
    taken_by = None
    if event is not None:
        elected = (
            {"leader": event.leader, "leader_epoch": event.epoch, "name": broker_name(event.leader, names)}
            if event.leader is not None
            else {}
        )
        taken_by = {"event": "disks lost" if event.leader is None else "election", "at_ns": event.at_ns, **elected}
    return {
        "standing": ruling.standing,
        "because": ruling.because,
        "source": ruling.source,
        **{name: [broker_name(broker, names) for broker in sorted(brokers)] for name, brokers in groups.items()},
        "taken_by": taken_by,
    }


def isrs_of(
    seen: Iterable[Span], term: LeaderTerm, record_range: RecordRange, names: Mapping[int, str]
) -> list[list[int]]:
    """The ISRs of a term while a run was acknowledged, in order: from the leader's own reports, or else from those of
    others.

    If there is no report in that time, the last one before it counts.
    """
    under = [s for s in seen if (s.leader, s.leader_epoch) == (term.leader, term.leader_epoch)]
    own = [s for s in under if s.observer == names.get(s.leader)] or under
    during = [s for s in own if s.from_ns <= record_range.last_ns and s.to_ns >= record_range.first_ns]
    before = [s for s in own if s.from_ns <= record_range.first_ns][-1:]
    isrs: list[list[int]] = []
    for span in during or before or own[:1]:
        if not isrs or isrs[-1] != list(span.isr):
            isrs.append(list(span.isr))
    return isrs


def _place(one: RecordRange) -> tuple[str, int, int, bool, int, int]:
    offset = -1 if one.first_offset is None else one.first_offset
    return one.topic, one.partition, one.term, one.hole, offset, one.first_ns


def _adjoin(one: RecordRange, other: RecordRange, width: int) -> bool:
    if (one.of, one.term, one.hole, one.decision) != (other.of, other.term, other.hole, other.decision):
        return False
    if one.last_offset is None or other.first_offset is None:
        return one.last_offset is other.first_offset
    return other.first_offset - one.last_offset <= width


def _sum(one: RecordRange, other: RecordRange) -> RecordRange:
    # If one part has acknowledged records, only times of acknowledgements count: the other times are of sends or reads.
    kinds = [part for part in (one, other) if part.acknowledged] or [one, other]
    return replace(
        one,
        last_offset=max((o for o in (one.last_offset, other.last_offset) if o is not None), default=None),
        again_to=max((o for o in (one.again_to, other.again_to) if o is not None), default=None),
        count=one.count + other.count,
        acknowledged=one.acknowledged + other.acknowledged,
        first_ns=min(part.first_ns for part in kinds),
        last_ns=max(part.last_ns for part in kinds),
    )
