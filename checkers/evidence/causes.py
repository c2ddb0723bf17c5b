"""Cause: the records of an anomaly grouped into runs, each with what observations and faults say of it.

A run is what stood close together in one partition's log and was acknowledged under one leader and epoch. Spark folds
the records into buckets of offsets; the rest is arithmetic on a few thousand buckets. Records that
share a bucket, or stand in neighbouring ones no farther apart than a bucket is wide, are of one run: between the
acknowledged ones stand others that were not.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.evidence.elections import BEFORE, NEVER
from checkers.evidence.faults import active, overlapping
from checkers.evidence.final_logs import Holes, Log, inside
from checkers.evidence.holders import Case, Decision, Evidence
from checkers.evidence.leadership import LeaderTerm, Partition, Span, isr_before, leader_terms
from checkers.evidence.store import AnomalyStore, StoredRows, each_partition
from harness.core.anomalies import ACKNOWLEDGED_ELSEWHERE, LOST, Anomaly
from harness.core.topology import broker_name
from harness.core.verdict import Standing

if TYPE_CHECKING:
    from checkers.history import History

#: So many runs of an anomaly are in a verdict, the biggest first.
MOST_RUNS = 20

_NARROWEST = 64
_MOST_BUCKETS = 20_000
_WIDEST = 1 << 62

#: The columns of any anomaly that runs are made of; one that an anomaly lacks is null.
COLUMNS = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32())]
    + [(name, pa.int64()) for name in ("offset", "sent_ns", "acknowledged_ns", "read_ns", "last_offset")]
    + [("read_epoch", pa.int32()), ("in_transaction", pa.bool_())]
)
_BUCKET = ["topic", "partition", "term", "hole", "bucket", "read_epoch", "sent_at", "until_at", "read_at", "of_epoch"]
_BUCKET += ["has_time", "in_transaction"]
#: What is known of the records of a bucket, and how it is folded.
_FOLDS = {
    **{"first_offset": "min", "last_offset": "max", "again_to": "max", "count": "sum", "acknowledged": "sum"},
    **{"from_ns": "min", "to_ns": "max", "acknowledged_from_ns": "min", "acknowledged_to_ns": "max"},
    **{"sent_ns": "min", "until_ns": "max", "read_ns": "max", "last_sent_ns": "max", "first_until_ns": "min"},
}


@dataclass(frozen=True)
class RecordRange:
    """Records of one partition and leader term that stand close together. Offsets are None where they are not known.

    ``hole``: the final log has records of one leader epoch below and above each of them (checkers.evidence.holes).
    ``term`` counts the leader terms of the partition that had begun (0: none was ever seen); ``first_ns`` and
    ``last_ns`` are of acknowledgements, and of sends (or reads) where ``acknowledged`` is 0. ``case``: what their
    ``decision`` is made of, once it is (checkers.evidence.holders).
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
    """The records of an anomaly that was ``found`` in ``history``, where there is anything to tell of them together;
    with ``evidence``, each with the decision what took it."""
    if not anomaly.comes_in_runs and evidence is None:
        return []
    stored, led = found.of(anomaly), terms_led(history)
    width = bucket_width(stored.extent(), len(led))
    parts = record_ranges(stored.pieces(COLUMNS), led, width, holes, evidence)
    if evidence is not None:
        known = decided(parts, anomaly, evidence)
        # Of another anomaly its records may be the same ones that are lost.
        beside = anomaly is ACKNOWLEDGED_ELSEWHERE and any(_is_undecided(part) for part in known)
        others = _lost_beside(found.of(LOST), led, holes, evidence) if beside else []
        parts = attached(known, width, evidence.logs, others, evidence.spare if anomaly is LOST else {})
    return joined(reattributed(joined(parts, width), width, led, claims(history.seen, history.stored.brokers)), width)


def _lost_beside(
    lost: StoredRows, led: Mapping[Partition, Sequence[LeaderTerm]], holes: Holes, evidence: Evidence
) -> list[RecordRange]:
    """What was lost: a cut that took it may have taken what is undecided and stands elsewhere, too."""
    width = bucket_width(lost.extent(), len(led))
    return decided(record_ranges(lost.pieces(COLUMNS), led, width, holes, evidence), LOST, evidence)


def decided(parts: Iterable[RecordRange], anomaly: Anomaly, evidence: Evidence) -> list[RecordRange]:
    """Record ranges, each with its decision. Those that are alike in all that is known of them are decided once."""
    known: dict[tuple[object, ...], Decision] = {}
    found = []
    for part in parts:
        assert part.case is not None
        alike = evidence.alike(part.case)
        if alike not in known:
            known[alike] = evidence.decided(anomaly, part.case)
        decision = known[alike]
        term = part.term if decision.term is None else decision.term + 1
        hole = part.hole and decision.standing is not Standing.PERMITTED
        found.append(replace(part, term=term, hole=hole, decision=decision))
    return found


@dataclass(frozen=True)
class _Chain:
    """What the same election took without a gap, all of it permitted: from which offset on, and how many records."""

    first: int
    count: int


def attached(
    parts: Iterable[RecordRange],
    width: int,
    logs: Mapping[Partition, Log],
    others: Iterable[RecordRange] = (),
    spare: Mapping[tuple[Partition, int], int] = MappingProxyType({}),
) -> list[RecordRange]:
    """Undecided record ranges that stand next to what an event took that is permitted, and may have been taken by it,
    were taken by it: an election cuts a log at one offset, and takes all from there on. ``logs``: the final ones.
    ``others``: record ranges of another anomaly that it may have taken.

    But those of which more were acknowledged there than one log has offsets, or after what stands above them, are of
    another leader's log, and so is what continues it; and what is in a hole of the final log, no election took alone.
    Nor need it be of the log that was taken, where another leader may have written it, and the final log has nothing
    of that one's epoch there or above: then the end of what that one wrote may have been lost, by whatever took it.
    But if that one is the leader whom the event made, it came that far only if it wrote all offsets again in between.
    It did not where fewer writes can stand there that nobody knows of: ``spare`` of a partition
    and term (checkers/evidence/spare_offsets.py; none: any number).
    """
    ordered = sorted(
        [*((part, True) for part in parts), *((part, False) for part in others)],
        key=lambda one: (one[0].of, -1 if one[0].first_offset is None else one[0].first_offset, one[0].first_ns),
    )
    found = [part for part, _ in ordered]
    apart = _apart(found, width)
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
                    chain = chains.get((part.of, term)) if upwards and (part.of, term) in spare else None
                    unknown = 0 if chain is None else spare[part.of, term] + below[part.of] - chain.count
                    if _may_be_anothers(part, decision, term, logs.get(part.of), chain, unknown):
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


def _chain(
    chains: Mapping[tuple[Partition, int], _Chain],
    permitted: Mapping[tuple[Partition, int], RecordRange],
    part: RecordRange,
    term: int,
    width: int,
) -> _Chain:
    """What an election took up to this record range."""
    before = permitted.get((part.of, term))
    if before is None or not _near(before, part, width):
        return _Chain(part.first_offset or 0, part.count)
    return replace(chains[part.of, term], count=chains[part.of, term].count + part.count)


def _may_be_anothers(
    part: RecordRange, decision: Decision, term: int, log: Log | None, chain: _Chain | None = None, unknown: int = 0
) -> bool:
    """Whether records may be of a leader of which nobody knows that what an election took of it is permitted, and of
    whose epoch the final log has nothing as far as they stand. ``chain``: what that election took right below, and
    ``unknown``: how many writes besides may stand there."""
    others = [candidate for candidate in decision.candidates if not candidate.may_go_with(term)]
    return any(
        log is None
        or not (
            log.reaches(candidate.epoch, part.last_offset)
            or (candidate.term == term and _beyond(part, log, candidate.epoch, chain, unknown))
        )
        for candidate in others
    )


def _beyond(part: RecordRange, log: Log, epoch: int | None, chain: _Chain | None, unknown: int) -> bool:
    """Whether the leader of an epoch, who began it at or below what its election took, cannot have written as far as
    these records."""
    own = log.epochs == epoch
    # (Of a log that lacks offsets which nothing took, nobody knows how far a leader wrote.)
    if log.sparse or chain is None or part.first_offset is None or not own.any():
        return False
    if int(log.first[own].min()) > chain.first:
        return False
    return part.first_offset - max(int(log.last[own].max()) + 1, chain.first) > unknown


def _is_undecided(part: RecordRange) -> bool:
    return _standing(part) is Standing.UNDECIDED


def _crowd(
    crowds: Mapping[tuple[Partition, int, int], RecordRange], part: RecordRange, term: int, width: int
) -> RecordRange:
    """A record range, and all of its bucket that the same election took."""
    before = crowds.get((part.of, term, (part.first_offset or 0) // width))
    if before is None or part.first_offset is None or before.first_offset is None:
        return part
    return replace(_sum(before, part), first_offset=min(before.first_offset, part.first_offset))


def _fits(crowd: RecordRange) -> bool:
    """Whether one log has offsets for so many records."""
    if crowd.first_offset is None or crowd.last_offset is None:
        return True
    return crowd.count <= crowd.last_offset - crowd.first_offset + 1


def _apart(found: Sequence[RecordRange], width: int) -> list[bool]:
    """Which of these, in order, no election took alone, or are of another leader's log than what stands above them, or
    continue what is: some was acknowledged before some of them was sent, and nothing permitted that was sent later
    stands in between."""
    above, apart = _acknowledged_above(found), [False] * len(found)
    # (Of others that stand below, those that were acknowledged later than one above them show nothing more.)
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
    """Whether neither the first nor the last of some records was acknowledged before that of others."""
    return _first_until(one) >= _first_until(other) and _until(one) >= _until(other)


def _acknowledged_above(found: Sequence[RecordRange]) -> list[bool]:
    """For each of these, in order, whether some of it was sent after something at a higher offset was acknowledged.
    (Which offsets of a range were sent late is not known: of what stands above its first alone, that counts after
    which all of it was sent.)"""
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
    leader_name, leader_epoch, isr, isr_names, elected, faults, hole}. The
    ``faults`` were active from the last record to the election (without one, among the records), ``elected.faults`` at
    it.
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
    """The offsets of a bucket: a power of two, so that a run has a bounded number of buckets."""
    least = max(_NARROWEST, -(-offsets * max(partitions, 1) // _MOST_BUCKETS))
    return min(1 << (least - 1).bit_length(), _WIDEST)


def record_ranges(
    found: Iterable[pa.Table],
    led: Mapping[Partition, Sequence[LeaderTerm]],
    width: int,
    holes: Holes | None = None,
    evidence: Evidence | None = None,
) -> list[RecordRange]:
    """The records of an anomaly (columns as in COLUMNS) folded by partition, leader term, hole or not, bucket of
    offsets and, where there is ``evidence``, all that a decision depends on."""
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
    """A row for each record: the bucket that it belongs to, and what is folded."""
    topic, partition, offset, sent_ns, acknowledged_ns, read_ns, last_offset, read_epoch, in_transaction = piece.columns
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
        # (The first began before it was first seen.)
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
    keys = [*of_bucket, sent_at, until_at, read_at, of_epoch, has_time, in_transaction]
    columns = [offset, offset, last_offset, pa.repeat(1, length), has_time.cast(pa.int64())]
    times = [at_ns, at_ns, acknowledged_ns, acknowledged_ns, sent_ns, until_ns, read_ns]
    times += [sent_ns, until_ns]
    return pa.table([*keys, *columns, *times], [*_BUCKET, *_FOLDS])


def _folded(marked: pa.Table) -> pa.Table:
    """Marked records, or what they were folded into before, folded."""
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
    )
    return RecordRange(**{name: row[name] for name in columns}, first_ns=first_ns, last_ns=last_ns, case=case)


def joined(parts: Iterable[RecordRange], width: int) -> list[RecordRange]:
    """Record ranges no farther apart than ``width`` offsets made one, in the order of their places."""
    found: list[RecordRange] = []
    # Records of two decisions may stand between each other: each is a run of its own.
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
    """The spans in which a broker said of itself that it led, by partition, leader and epoch."""
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
    """Record ranges that continue the log of a leader that did not know yet that another led are that leader's.

    A deposed leader goes on acknowledging until it hears of its successor (with acks=1: KIP-101, Kafka design). What
    it took then stands right behind what it took before, while the successor's log goes on where it had come to.
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
    """At most MOST_RUNS of them, holes first, then the biggest."""
    return sorted(found, key=lambda one: (not one.hole, -one.count, *_place(one)))[:MOST_RUNS]


def facts(
    record_range: RecordRange,
    led: Sequence[LeaderTerm],
    seen: Sequence[Span],
    faults: Sequence[Mapping[str, Any]],
    names: Mapping[int, str],
) -> dict[str, Any]:
    """A run as verdict.json has it: facts alone. ``seen`` is of its partition; ``names`` gives brokers by their id."""
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
    """The keys of a run that tell its standing, why, who must have had its records, and what took them."""
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
    """The ISRs of a term while a run was acknowledged, in order: the leader's own report, or else the others'.

    Where no observation falls into that time, the last one before it.
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
    # The times of what was acknowledged count; those of a part where nothing was are of another kind.
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
