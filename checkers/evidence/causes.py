"""Cause: the records of an anomaly grouped into runs, each told as one sentence from observations and faults.

A run is what stood close together in one partition's log and was acknowledged under one leader and epoch. Spark folds
the records into buckets of offsets; what is told of them is then arithmetic on a few thousand buckets. Records that
share a bucket, or stand in neighbouring ones no farther apart than a bucket is wide, are of one run: between the
acknowledged ones stand others that were not.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.evidence.faults import active, overlapping
from checkers.evidence.leadership import Partition, Reign, Span, isr_before, reigns
from checkers.evidence.store import extent, pieces, place
from checkers.history import PARTITION, History
from harness.core.anomalies import Anomaly

#: How many runs of an anomaly are told, the biggest first.
TOLD = 20

_NARROWEST = 64
_MOST_BUCKETS = 20_000
_WIDEST = 1 << 62
_SECOND_NS = 1_000_000_000

#: The columns of any anomaly that runs are made of; one that an anomaly lacks is null.
COLUMNS = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32())]
    + [(name, pa.int64()) for name in ("offset", "sent_ns", "acknowledged_ns", "read_ns", "last_offset")]
)
_BUCKET = [*PARTITION, "reign", "bucket"]
#: What is told of the records of a bucket, and how that is put together.
_FOLDS = {
    **{"first_offset": "min", "last_offset": "max", "again_to": "max", "count": "sum", "acknowledged": "sum"},
    **{"from_ns": "min", "to_ns": "max", "acknowledged_from_ns": "min", "acknowledged_to_ns": "max"},
}


@dataclass(frozen=True)
class Island:
    """Records of one partition and reign that stand close together. Offsets are None where Kafka told none.

    ``reign`` counts the reigns of the partition that had begun (0: none was ever seen); ``first_ns`` and ``last_ns``
    are of acknowledgements, and of sends (or reads) where ``acknowledged`` is 0.
    """

    topic: str
    partition: int
    reign: int
    first_offset: int | None
    last_offset: int | None
    again_to: int | None
    count: int
    acknowledged: int
    first_ns: int
    last_ns: int

    @property
    def of(self) -> Partition:
        """Its partition."""
        return self.topic, self.partition


def runs(history: History, anomaly: Anomaly) -> list[dict[str, Any]]:
    """The ``runs`` of an anomaly that was found in ``history`` and kept beside it: at most TOLD, the biggest first.

    Each is {text, topic, partition, first_offset, last_offset, count, first_ns, last_ns, leader, leader_epoch, isr,
    elected, faults}; none of an anomaly that does not come in runs.
    """
    if not anomaly.comes_in_runs:
        return []
    kept, seen = place(history.results, anomaly.name), history.seen
    partitions = {(row["topic"], row["partition"]) for row in history.ends} | {(s.topic, s.partition) for s in seen}
    led = {of: reigns(seen, of) for of in sorted(partitions)}
    width = bucket_width(extent(kept), len(led))
    names = {node.id: node.name for node in history.run_file.nodes if node.role == "broker"}
    found = joined(islands(pieces(kept, COLUMNS), led, width), width)
    found = joined(reattributed(found, width, led, claims(seen, names)), width)
    return [
        told(
            anomaly,
            island,
            led.get(island.of, []),
            [span for span in seen if (span.topic, span.partition) == island.of],
            history.faults,
            names,
        )
        for island in biggest(found)
    ]


def bucket_width(offsets: int, partitions: int) -> int:
    """The offsets of a bucket: a power of two, so that a run has a bounded number of buckets."""
    least = max(_NARROWEST, -(-offsets * max(partitions, 1) // _MOST_BUCKETS))
    return min(1 << (least - 1).bit_length(), _WIDEST)


def islands(found: Iterable[pa.Table], led: Mapping[Partition, Sequence[Reign]], width: int) -> list[Island]:
    """The records of an anomaly (columns as in COLUMNS) folded by partition, reign and bucket of offsets."""
    folded = [_folded(_marked(piece, led, width)) for piece in found]
    if not folded:
        return []
    return sorted((_island(row) for row in _folded(pa.concat_tables(folded)).to_pylist()), key=_place)


def _marked(piece: pa.Table, led: Mapping[Partition, Sequence[Reign]], width: int) -> pa.Table:
    """A row for each record: the bucket that it belongs to, and what is folded."""
    topic, partition, offset, sent_ns, acknowledged_ns, read_ns, last_offset = piece.columns
    at_ns = pc.coalesce(acknowledged_ns, sent_ns, read_ns, 0)
    reign = _reigns(topic, partition, at_ns, led)
    acknowledged = pc.is_valid(acknowledged_ns).cast(pa.int64())
    of = [topic, partition, reign, pc.divide(offset, width)]
    told = [offset, offset, last_offset, pa.repeat(1, len(piece)), acknowledged]
    return pa.table([*of, *told, at_ns, at_ns, acknowledged_ns, acknowledged_ns], [*_BUCKET, *_FOLDS])


def _reigns(topic: Any, partition: Any, at_ns: Any, led: Mapping[Partition, Sequence[Reign]]) -> pa.Array:
    """How many reigns of its partition had begun, for each record. (Who led first led before that was first seen.)"""
    topics = topic.combine_chunks().dictionary_encode()
    lanes = (topics.indices.to_numpy().astype(np.int64) << 32) + partition.to_numpy()
    at, reigns = at_ns.to_numpy(), np.zeros(len(lanes), np.int64)
    for lane in np.unique(lanes):
        here = lanes == lane
        own = led.get((topics.dictionary[lane >> 32].as_py(), int(lane & 0xFFFFFFFF)), [])
        begun = np.searchsorted([reign.from_ns for reign in own], at[here], side="right")
        reigns[here] = np.maximum(begun, 1) if own else 0
    return pa.array(reigns)


def _folded(marked: pa.Table) -> pa.Table:
    """Marked records, or what they were folded into before, folded."""
    folded = marked.group_by(_BUCKET).aggregate(list(_FOLDS.items()))
    return folded.select([*_BUCKET, *("_".join(fold) for fold in _FOLDS.items())]).rename_columns([*_BUCKET, *_FOLDS])


def _island(row: Mapping[str, Any]) -> Island:
    prefix = "acknowledged_" if row["acknowledged"] else ""
    first_ns, last_ns = row[f"{prefix}from_ns"], row[f"{prefix}to_ns"]
    told = ("topic", "partition", "reign", "first_offset", "last_offset", "again_to", "count", "acknowledged")
    return Island(**{name: row[name] for name in told}, first_ns=first_ns, last_ns=last_ns)


def joined(parts: Iterable[Island], width: int) -> list[Island]:
    """Islands no farther apart than ``width`` offsets made one, in the order of their places."""
    found: list[Island] = []
    for part in sorted(parts, key=_place):
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
    parts: Iterable[Island],
    width: int,
    led: Mapping[Partition, Sequence[Reign]],
    own: Mapping[tuple[Partition, int, int | None], Sequence[Span]],
) -> list[Island]:
    """Islands that continue the log of a leader that did not know yet that another led are that leader's.

    A deposed leader goes on acknowledging until it hears of its successor (with acks=1: KIP-101, Kafka design). What
    it took then stands right behind what it took before, while the successor's log goes on where it had come to.
    """
    found: list[Island] = []
    ending: dict[tuple[Partition, int], list[Island]] = {}
    for part in sorted(parts, key=_place):
        bucket = 0 if part.first_offset is None else part.first_offset // width
        neighbours = (one for at in (bucket - 1, bucket) for one in ending.get((part.of, at), []))
        fitting = (one for one in neighbours if _continues(one, part, width) and _claimed(one, part, led, own))
        before = min(fitting, key=_place, default=None)
        found.append(part if before is None else replace(part, reign=before.reign))
        if part.last_offset is not None:
            ending.setdefault((part.of, part.last_offset // width), []).append(found[-1])
    return found


def _continues(one: Island, other: Island, width: int) -> bool:
    if one.of != other.of or one.reign >= other.reign or one.last_offset is None or other.first_offset is None:
        return False
    return 0 < other.first_offset - one.last_offset <= width


def _claimed(
    one: Island,
    other: Island,
    led: Mapping[Partition, Sequence[Reign]],
    own: Mapping[tuple[Partition, int, int | None], Sequence[Span]],
) -> bool:
    if not one.reign:
        return False
    reign = led[one.of][one.reign - 1]
    spans = own.get((one.of, reign.leader, reign.leader_epoch), [])
    return any(span.from_ns <= other.first_ns <= span.to_ns for span in spans)


def biggest(found: Iterable[Island]) -> list[Island]:
    """Those that are told, the biggest first."""
    return sorted(found, key=lambda island: (-island.count, *_place(island)))[:TOLD]


def told(
    anomaly: Anomaly,
    island: Island,
    led: Sequence[Reign],
    seen: Sequence[Span],
    faults: Sequence[Mapping[str, Any]],
    names: Mapping[int, str],
) -> dict[str, Any]:
    """A run as verdict.json has it. ``seen`` is of its partition; ``names`` gives brokers by their id."""
    reign = led[island.reign - 1] if island.reign else None
    following = led[island.reign] if island.reign < len(led) else None
    isrs = [] if reign is None else isrs_of(seen, reign, island, names)
    elected = None
    if following is not None:
        before = isr_before(seen, following)
        elected = {
            "leader": following.leader,
            "leader_epoch": following.leader_epoch,
            "at_ns": following.from_ns,
            "in_isr": None if before is None else following.leader in before,
        }
    deposed_ns = None if following is None or following.from_ns > island.last_ns else following.from_ns
    since, until = (island.first_ns, island.last_ns) if following is None else (island.last_ns, following.from_ns)
    again = reign is not None and following is not None and following.leader == reign.leader
    sentence = (
        f"{island.topic}-{island.partition}: {_offsets(island)}, "
        f"{_acknowledged(island, reign, isrs, names)}{_deposed(deposed_ns)}, "
        f"{_fate(anomaly, island, elected, faults, names, again)}"
    )
    return {
        "text": sentence,
        "topic": island.topic,
        "partition": island.partition,
        "first_offset": island.first_offset,
        "last_offset": island.last_offset,
        "count": island.count,
        "first_ns": island.first_ns,
        "last_ns": island.last_ns,
        "leader": None if reign is None else reign.leader,
        "leader_epoch": None if reign is None else reign.leader_epoch,
        "isr": isrs,
        "elected": elected,
        "faults": overlapping(faults, min(since, until), until),
    }


def isrs_of(seen: Iterable[Span], reign: Reign, island: Island, names: Mapping[int, str]) -> list[list[int]]:
    """The ISRs of a reign while a run was acknowledged, in order: the leader's own word, or else the others'.

    Where no observation falls into that time, the last one before it.
    """
    under = [s for s in seen if (s.leader, s.leader_epoch) == (reign.leader, reign.leader_epoch)]
    own = [s for s in under if s.observer == names.get(s.leader)] or under
    during = [s for s in own if s.from_ns <= island.last_ns and s.to_ns >= island.first_ns]
    before = [s for s in own if s.from_ns <= island.first_ns][-1:]
    isrs: list[list[int]] = []
    for span in during or before or own[:1]:
        if not isrs or isrs[-1] != list(span.isr):
            isrs.append(list(span.isr))
    return isrs


def _place(island: Island) -> tuple[str, int, int, int, int]:
    offset = -1 if island.first_offset is None else island.first_offset
    return island.topic, island.partition, island.reign, offset, island.first_ns


def _adjoin(one: Island, other: Island, width: int) -> bool:
    if (one.of, one.reign) != (other.of, other.reign):
        return False
    if one.last_offset is None or other.first_offset is None:
        return one.last_offset is other.first_offset
    return other.first_offset - one.last_offset <= width


def _sum(one: Island, other: Island) -> Island:
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


def _offsets(island: Island) -> str:
    records = f"{island.count:,} record{'' if island.count == 1 else 's'}"
    first, last = island.first_offset, island.last_offset
    if first is None or last is None:
        return f"{records} whose offsets Kafka did not tell"
    if first == last:
        return f"offset {first} ({records})"
    dense = island.count == last - first + 1
    return f"offsets {first}–{last} ({records}{'' if dense else ' among them'})"


def _acknowledged(island: Island, reign: Reign | None, isrs: Sequence[Sequence[int]], names: Mapping[int, str]) -> str:
    some = f"{island.acknowledged:,} of them " if island.acknowledged < island.count else ""
    verb = f"{some}acknowledged" if island.acknowledged else "never acknowledged, sent"
    when = _times(island.first_ns, island.last_ns)
    if reign is None:
        return f"{verb} {when} under a leader that nobody observed"
    who = "by" if island.acknowledged else "while the leader was"
    return f"{verb} {when} {who} {_leader(reign.leader, reign.leader_epoch, names)} {_isrs(reign.leader, isrs, names)}"


def _deposed(at_ns: int | None) -> str:
    return "" if at_ns is None else f" (though another led from {_seconds(at_ns)} s)"


def _isrs(leader: int, isrs: Sequence[Sequence[int]], names: Mapping[int, str]) -> str:
    return ", then ".join(
        "alone in the ISR"
        if list(isr) == [leader]
        else f"with the ISR {' '.join(_name(b, names) for b in isr) or 'empty'}"
        for isr in isrs
    )


def _fate(
    anomaly: Anomaly,
    island: Island,
    elected: Mapping[str, Any] | None,
    faults: Sequence[Mapping[str, Any]],
    names: Mapping[int, str],
    again: bool,
) -> str:
    fate = f"{anomaly.fate}"
    if island.again_to is not None:
        fate += f" (again up to offset {island.again_to})"
    if elected is None:
        during = overlapping(faults, island.first_ns, island.last_ns)
        seen = f"{fate}; no election was seen after them"
        return f"{seen}; {_all(during)} {_were(during)} active then" if during else seen
    at = elected["at_ns"]
    then = active(faults, at)
    ended = [fault for fault in overlapping(faults, min(island.last_ns, at), at) if fault not in then]
    stood = {True: "in the ISR", False: "not in the ISR", None: "of whose ISR nothing was seen"}[elected["in_isr"]]
    # An election from outside of the ISR explains the loss; of any other it is only known that it came next.
    how = ("when" if elected["in_isr"] is False else "after") if anomaly.is_loss else "; next,"
    return (
        f"{fate}{'' if how.startswith(';') else ' '}{how} {_name(elected['leader'], names)}, {stood}, was elected"
        f"{' again' if again else ''} at {_seconds(at)} s{_epoch(elected['leader_epoch'])}"
        + (f" after {_all(ended)}" if ended else "")
        + (" and" if ended and then else "")
        + (f" while {_all(then)} {_were(then)} active" if then else "")
    )


def _times(first_ns: int, last_ns: int) -> str:
    first, last = _seconds(first_ns), _seconds(last_ns)
    return f"at {first} s" if first == last else f"{first}–{last} s"


def _seconds(at_ns: int) -> str:
    return f"{at_ns / _SECOND_NS:.1f}"


def _leader(leader: int, epoch: int | None, names: Mapping[int, str]) -> str:
    return _name(leader, names) + _epoch(epoch)


def _epoch(epoch: int | None) -> str:
    return "" if epoch is None else f" (epoch {epoch})"


def _name(broker: int, names: Mapping[int, str]) -> str:
    return names.get(broker, f"broker {broker}")


def _all(faults: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(faults[:-1]), *faults[-1:]]))


def _were(faults: Sequence[str]) -> str:
    return "was" if len(faults) == 1 else "were"
