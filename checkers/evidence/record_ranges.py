"""Folds the records of an anomaly into ranges.

A range has records that were close together in one partition's log, and were acknowledged under one leader and epoch.
The records are folded into buckets of offsets; the rest is arithmetic on a few thousand buckets. Records in one bucket,
or in neighbouring buckets but no farther apart than the width of a bucket, belong to one range: there may be
unacknowledged records between them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.evidence.decision import Case, Decision
from checkers.evidence.evidence import Evidence
from checkers.evidence.final_logs import Holes, inside
from checkers.evidence.intervals import BEFORE, NEVER
from checkers.evidence.store import each_partition
from checkers.leadership import LeaderTerm, Partition, Span
from harness.core.guarantees import Configuration
from harness.core.verdict import Standing

#: Undecided records may follow a permitted neighbour only so many offsets away (``neighbours``, which also looks
#: whether one log has room for them); and the least width of a bucket. It is a choice: producers wrote other records in
#: between, or some without an acknowledgement.
BESIDE = 64
#: The arithmetic on buckets is Python, so their number must not grow with the history: then buckets become wider.
_MOST_BUCKETS = 20_000
#: The highest power of two that an int64 has.
_WIDEST = 1 << 62

#: The columns of any anomaly from which ranges are made; a column that an anomaly lacks is null.
COLUMNS = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32())]
    + [(name, pa.int64()) for name in ("offset", "sent_ns", "acknowledged_ns")]
    + [(name, pa.int64()) for name in ("read_ns", "first_read_ns", "last_read_ns", "last_offset")]
    + [("read_epoch", pa.int32()), ("in_transaction", pa.bool_()), ("in_time", pa.bool_())]
)
_BUCKET = ["topic", "partition", "term", "hole", "bucket", "read_epoch", "sent_at", "until_at", "read_at", "of_epoch"]
_BUCKET += ["received_at", "fetched_at", "early", "has_time", "in_transaction", "in_time"]
#: The facts about the records of a bucket, and how each is folded.
_FOLDS = {
    **{"first_offset": "min", "last_offset": "max", "again_to": "max", "count": "sum", "acknowledged": "sum"},
    **{"from_ns": "min", "to_ns": "max", "acknowledged_from_ns": "min", "acknowledged_to_ns": "max"},
    **{"sent_ns": "min", "until_ns": "max", "read_ns": "max", "last_sent_ns": "max", "first_until_ns": "min"},
    **{"received_ns": "max", "fetched_ns": "max"},
}

#: A consumer hands on what it fetched within a second: it polls all the time. It is a choice: a delivery so long after
#: an event shows that the event did not take the record. (If the consumer was stopped, the loss is left undecided
#: needlessly.)
HANDED_ON_NS = 5_000_000_000


def shows_when_fetched(configuration: Configuration) -> bool:
    """Whether consumers hand on at once what they fetched. Members of a group hold it while they process it, or until
    their commit is answered."""
    return not configuration.grouped


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

    @property
    def standing(self) -> Standing | None:
        """That of its decision, if it has one."""
        return None if self.decision is None else self.decision.standing


def bucket_width(offsets: int, partitions: int) -> int:
    """The number of offsets in a bucket: a power of two, chosen so that the number of buckets is bounded."""
    least = max(BESIDE, -(-offsets * max(partitions, 1) // _MOST_BUCKETS))
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
    return sorted((_record_range(row) for row in _folded(pa.concat_tables(folded)).to_pylist()), key=order_of)


def with_rows(
    found: Iterable[pa.Table],
    led: Mapping[Partition, Sequence[LeaderTerm]],
    width: int,
    holes: Holes,
    evidence: Evidence | None,
) -> list[tuple[RecordRange, np.ndarray]]:
    """As ``record_ranges``: each range with the numbers of its records, from 0 on through all pieces of ``found``."""
    marked = [_marked(piece, led, width, holes, evidence) for piece in found]
    if not marked:
        return []
    rows = pa.concat_tables(marked)
    rows = rows.append_column("row", pa.array(np.arange(len(rows))))
    folded = rows.group_by(_BUCKET).aggregate([*_FOLDS.items(), ("row", "list")])
    ranges = map(_record_range, _named(folded).to_pylist())
    numbers = (number.values.to_numpy() for number in folded["row_list"])
    return sorted(zip(ranges, numbers, strict=True), key=lambda one: order_of(one[0]))


def _marked(
    piece: pa.Table,
    led: Mapping[Partition, Sequence[LeaderTerm]],
    width: int,
    holes: Holes,
    evidence: Evidence | None,
) -> pa.Table:
    """A row for each record: its bucket, and the facts to fold."""
    topic, partition, offset, sent_ns, acknowledged_ns, read_ns, first_read_ns, last_read_ns, last_offset, *known = (
        piece.columns
    )
    known_when = evidence is not None and shows_when_fetched(evidence.configuration)
    fetched_ns = pc.subtract(last_read_ns, HANDED_ON_NS) if known_when else pa.nulls(len(piece), pa.int64())
    at_ns = pc.coalesce(acknowledged_ns, sent_ns, read_ns, 0)
    until_ns = pc.coalesce(acknowledged_ns, read_ns)
    length = len(piece)
    term, sent_at, until_at, read_at, of_epoch = (np.zeros(length, np.int64) for _ in range(5))
    received_at, fetched_at = (np.zeros(length, np.int64) for _ in range(2))
    received = np.full(length, NEVER)
    hole, early = np.zeros(length, bool), np.zeros(length, bool)
    at, offsets = at_ns.to_numpy(), pc.fill_null(offset, -1).to_numpy()
    sent, until = pc.fill_null(sent_ns, BEFORE).to_numpy(), pc.fill_null(until_ns, NEVER).to_numpy()
    read, fetched = pc.fill_null(read_ns, NEVER).to_numpy(), pc.fill_null(fetched_ns, BEFORE).to_numpy()
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
            if evidence.without_epochs(of):
                received[here] = pc.fill_null(first_read_ns, NEVER).to_numpy()[here]
                received_at[here] = np.searchsorted(moments, received[here], side="right")
            fetched_at[here] = np.searchsorted(moments, fetched[here], side="right")
            if of in evidence.elections and (evidence.configuration.acks_all or evidence.coordinated):
                early[here] = evidence.elections[of].not_committed_by(offsets[here], until[here])
            of_epoch[here] = np.searchsorted(edges, offsets[here], side="right")
    has_time = pc.is_valid(acknowledged_ns)
    read_epoch, *known = known
    of_bucket = [topic, partition, term, hole, pc.divide(offset, width), read_epoch]
    keys = [*of_bucket, sent_at, until_at, read_at, of_epoch, received_at, fetched_at, early, has_time, *known]
    columns = [offset, offset, last_offset, pa.repeat(1, length), has_time.cast(pa.int64())]
    times = [at_ns, at_ns, acknowledged_ns, acknowledged_ns, sent_ns, until_ns, read_ns]
    times += [sent_ns, until_ns, pa.array(received), fetched_ns]
    return pa.table([*keys, *columns, *times], [*_BUCKET, *_FOLDS])


def _folded(marked: pa.Table) -> pa.Table:
    """Fold marked records, or rows that are folded already."""
    return _named(marked.group_by(_BUCKET).aggregate(list(_FOLDS.items())))


def _named(folded: pa.Table) -> pa.Table:
    """Folded rows under the names of the facts."""
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
        row["fetched_ns"],
        None if row["received_ns"] == NEVER else row["received_ns"],
    )
    return RecordRange(**{name: row[name] for name in columns}, first_ns=first_ns, last_ns=last_ns, case=case)


def joined(parts: Iterable[RecordRange], width: int) -> list[RecordRange]:
    """Join record ranges that are no farther apart than ``width`` offsets; in the order of their offsets."""
    found: list[RecordRange] = []
    # Records with different decisions may be mixed: each decision has its own ranges.
    number: dict[Decision | None, int] = {}
    in_order = sorted(parts, key=order_of)
    for part in in_order:
        number.setdefault(part.decision, len(number))
    for part in sorted(in_order, key=lambda one: (order_of(one)[:4], number[one.decision])):
        if found and _adjoin(found[-1], part, width):
            found[-1] = merged(found[-1], part)
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
    for part in sorted(parts, key=order_of):
        bucket = 0 if part.first_offset is None else part.first_offset // width
        neighbours = (one for at in (bucket - 1, bucket) for one in ending.get((part.of, at), []))
        fitting = (one for one in neighbours if _continues(one, part, width) and _claimed(one, part, led, own))
        before = min(fitting, key=order_of, default=None)
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


def near(one: RecordRange, other: RecordRange, width: int) -> bool:
    """Whether two ranges of a partition, in either order, are no farther apart than ``width`` offsets."""
    if None in (one.first_offset, one.last_offset, other.first_offset, other.last_offset):
        return False
    below, above = sorted((one, other), key=lambda part: part.first_offset or 0)
    return (above.first_offset or 0) - (below.last_offset or 0) <= width


def order_of(one: RecordRange) -> tuple[str, int, int, bool, int, int]:
    """A key that puts ranges in the order of partitions, terms and offsets."""
    offset = -1 if one.first_offset is None else one.first_offset
    return one.topic, one.partition, one.term, one.hole, offset, one.first_ns


def _adjoin(one: RecordRange, other: RecordRange, width: int) -> bool:
    if (one.of, one.term, one.hole, one.decision) != (other.of, other.term, other.hole, other.decision):
        return False
    if one.last_offset is None or other.first_offset is None:
        return one.last_offset is other.first_offset
    return other.first_offset - one.last_offset <= width


def merged(one: RecordRange, other: RecordRange) -> RecordRange:
    """Two ranges of one partition as one."""
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
