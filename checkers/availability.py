"""Service: how long nothing was acknowledged although writes were attempted, and how soon it was after each fault.

The sends are folded by Spark into slots of time that never straddle the beginning or the heal of a fault; what is told
of them is then arithmetic on a few thousand slots. Stretches longer than a slot (``resolution_ns``) are exact.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import accumulate
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from checkers.history import PARTITION, History

_FINEST_NS = 10_000_000
_MOST_SLOTS = 20_000
_SECOND_NS = 1_000_000_000
_MOST_BUCKETS = 600


@dataclass(frozen=True)
class Slot:
    """What happened in one slot of time: to one partition, or to all where they were added up."""

    topic: str
    partition: int
    slot: int
    era: int
    invoked: int
    completed: int
    acknowledged: int
    first_invoked_ns: int | None
    last_attempt_ns: int
    first_ack_ns: int | None
    last_ack_ns: int | None


@dataclass(frozen=True)
class Stretch:
    """A time without an acknowledgement. ``ended`` is false where none came until the last attempt."""

    from_ns: int
    to_ns: int
    ended: bool

    @property
    def lasted_ns(self) -> int:
        """Its length."""
        return self.to_ns - self.from_ns


def resolution(duration_ns: int, partitions: int) -> int:
    """The length of a slot, so that a run has a bounded number of them."""
    return max(_FINEST_NS, -(-duration_ns * max(partitions, 1) // _MOST_SLOTS))


def slots(sends: DataFrame, slot_ns: int, instants: Sequence[int]) -> list[Slot]:
    """The sends folded by partition, slot, and era: the number of ``instants`` that had passed.

    First by where they began and where they ended at once, so that the sends are read once.
    """
    ends = {end: _when(f"{end}_ns", slot_ns, instants) for end in ("invoked", "completed")}
    folded = (
        sends.selectExpr(*PARTITION, "invoked_ns", "completed_ns", "if(outcome = 'ok', completed_ns, null) as ack_ns")
        .groupBy(*PARTITION, *(sql.alias(f"{end}_{name}") for end, when in ends.items() for name, sql in when.items()))
        .agg(
            F.count("*").alias("invoked"),
            F.count("completed_ns").alias("completed"),
            F.count("ack_ns").alias("acknowledged"),
            *(F.min(at).alias(f"first_{at}") for at in ("invoked_ns", "ack_ns")),
            *(F.max(at).alias(f"last_{at}") for at in ("invoked_ns", "completed_ns", "ack_ns")),
        )
    )
    names = [field.name for field in fields(Slot)[2:]]
    begun = "invoked_slot, invoked_era, invoked, 0L, 0L, first_invoked_ns, last_invoked_ns, null, null"
    ended = "completed_slot, completed_era, 0L, completed, acknowledged, null, last_completed_ns"
    two = f"stack(2, {begun}, {ended}, first_ack_ns, last_ack_ns)"
    rows = (
        folded.selectExpr(*PARTITION, f"{two} as ({', '.join(names)})")
        .where("slot is not null")
        .groupBy(*PARTITION, "slot", "era")
        .agg(
            *(F.sum(name).alias(name) for name in ("invoked", "completed", "acknowledged")),
            F.min("first_invoked_ns").alias("first_invoked_ns"),
            F.max("last_attempt_ns").alias("last_attempt_ns"),
            F.min("first_ack_ns").alias("first_ack_ns"),
            F.max("last_ack_ns").alias("last_ack_ns"),
        )
        .collect()
    )
    return sorted((Slot(**row.asDict()) for row in rows), key=lambda s: (s.topic, s.partition, s.slot, s.era))


def _when(at: str, slot_ns: int, instants: Sequence[int]) -> dict[str, Column]:
    era = " + ".join(f"cast({at} >= {instant} as int)" for instant in instants) or "0"
    return {"slot": F.expr(f"{at} div {slot_ns}"), "era": F.expr(era)}


def together(parts: Iterable[Slot]) -> list[Slot]:
    """The slots of all partitions added up, in the order of time."""
    added: dict[tuple[int, int], Slot] = {}
    for part in parts:
        key = (part.slot, part.era)
        added[key] = _sum(added[key], part) if key in added else replace(part, topic="", partition=-1)
    return [added[key] for key in sorted(added)]


def _sum(one: Slot, other: Slot) -> Slot:
    return replace(
        one,
        invoked=one.invoked + other.invoked,
        completed=one.completed + other.completed,
        acknowledged=one.acknowledged + other.acknowledged,
        first_invoked_ns=_least(one.first_invoked_ns, other.first_invoked_ns),
        last_attempt_ns=max(one.last_attempt_ns, other.last_attempt_ns),
        first_ack_ns=_least(one.first_ack_ns, other.first_ack_ns),
        last_ack_ns=_most(one.last_ack_ns, other.last_ack_ns),
    )


def longest(timeline: Sequence[Slot]) -> Stretch | None:
    """The longest stretch without an acknowledgement while one was awaited; None where nothing was attempted."""
    return max(stretches(timeline), key=lambda s: (s.lasted_ns, -s.from_ns), default=None)


def stretches(timeline: Sequence[Slot]) -> list[Stretch]:
    """Every time between two acknowledgements, the first and the last one open, in the order of time.

    One begins with the acknowledgement before it if a write was pending then, and with the next attempt if none was.
    """
    found: list[Stretch] = []
    since: int | None = None
    pending = accumulate(slot.invoked - slot.completed for slot in timeline)
    for slot, in_flight in zip(timeline, pending, strict=True):
        if since is None:
            since = slot.first_invoked_ns
        if slot.first_ack_ns is None:
            continue
        if since is not None:
            found.append(Stretch(since, slot.first_ack_ns, ended=True))
        since = slot.last_ack_ns if in_flight > 0 else None
    if since is not None:
        end = timeline[-1].last_attempt_ns
        found.append(Stretch(since, max(end, since), ended=False))
    return found


def next_acknowledgement(timeline: Iterable[Slot], after_ns: int) -> int | None:
    """The first acknowledgement at or after an instant (one that ``slots`` was told of), or None."""
    return next((s.first_ack_ns for s in timeline if s.first_ack_ns is not None and s.first_ack_ns >= after_ns), None)


def awaited(unavailable: Iterable[Stretch], since_ns: int) -> Stretch | None:
    """How long the next acknowledgement after an instant was awaited: of ``stretches``, the first to end then or later,
    and no more of it than came after. None where none was awaited any more."""
    following = next((stretch for stretch in unavailable if stretch.to_ns >= since_ns), None)
    return None if following is None else replace(following, from_ns=max(following.from_ns, since_ns))


def per_bucket(timeline: Sequence[Slot], slot_ns: int) -> tuple[int, list[int]]:
    """The length of a bucket in ns (a second, or as many as it takes), and the acknowledgements in each."""
    last = timeline[-1].last_attempt_ns if timeline else 0
    bucket = _SECOND_NS * -(-(last + 1) // (_SECOND_NS * _MOST_BUCKETS))
    counts = [0] * (last // bucket + 1 if timeline else 0)
    for slot in timeline:
        counts[min(slot.slot * slot_ns // bucket, len(counts) - 1)] += slot.acknowledged
    return bucket, counts


def availability(history: History) -> dict[str, Any]:
    """The ``availability`` of verdict.json: by what brokers acknowledged, whatever became of its transaction."""
    faults = history.faults
    slot_ns = resolution(history.last_ns, len(history.ends))
    instants = sorted({at for row in faults for at in (row["injected_ns"], row["healed_ns"]) if at is not None})
    by_partition = slots(history.records("sends"), slot_ns, instants)
    overall = together(by_partition)
    bucket_ns, counts = per_bucket(overall, slot_ns)
    return {
        "resolution_ns": slot_ns,
        "longest_unavailable": _told(longest(overall)),
        "partitions": [
            {
                "topic": topic,
                "partition": partition,
                "longest_unavailable": _told(longest(own)),
                "after_faults": _recoveries(faults, own),
            }
            for (topic, partition), own in _grouped(by_partition).items()
        ],
        "after_faults": _recoveries(faults, overall),
        "bucket_ns": bucket_ns,
        "acknowledged": counts,
    }


def _grouped(parts: Iterable[Slot]) -> dict[tuple[str, int], list[Slot]]:
    grouped: dict[tuple[str, int], list[Slot]] = {}
    for part in parts:
        grouped.setdefault((part.topic, part.partition), []).append(part)
    return grouped


def _recoveries(faults: Iterable[Mapping[str, Any]], timeline: Sequence[Slot]) -> list[dict[str, Any]]:
    unavailable = stretches(timeline)
    return [
        {
            "fault": fault["fault"],
            "first_ack_after_injection_ns": _until_ack(timeline, fault["injected_ns"]),
            "first_ack_after_heal_ns": _until_ack(timeline, fault["healed_ns"]),
            "awaited_after_heal": None
            if fault["healed_ns"] is None
            else _told(awaited(unavailable, fault["healed_ns"])),
        }
        for fault in faults
    ]


def _until_ack(timeline: Sequence[Slot], since_ns: int | None) -> int | None:
    if since_ns is None:
        return None
    at = next_acknowledgement(timeline, since_ns)
    return None if at is None else at - since_ns


def _told(stretch: Stretch | None) -> dict[str, Any] | None:
    if stretch is None:
        return None
    return {
        "from_ns": stretch.from_ns,
        "to_ns": stretch.to_ns,
        "lasted_ns": stretch.lasted_ns,
        "ended": stretch.ended,
    }


def _least(one: int | None, other: int | None) -> int | None:
    return min((at for at in (one, other) if at is not None), default=None)


def _most(one: int | None, other: int | None) -> int | None:
    return max((at for at in (one, other) if at is not None), default=None)
