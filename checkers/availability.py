"""Service: how long nothing was acknowledged although writes were attempted, and how soon it was after each fault.

Spark folds the sends into slots of time by when they ended; no slot straddles the beginning or the heal of a fault.
What is told of them is then arithmetic on some thousand rows. In which order writes ended within a slot is not known: a
stretch is told as long as it lasted for certain (``lasted_ns``), and beside it how long the longest may have lasted
(``at_most_ns``). They differ by less than a slot (``resolution_ns``), and hardly ever.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from checkers.history import PARTITION, History
from harness.history.run_file import Limits

Times = npt.NDArray[np.int64]
Partition = tuple[str, int]
Row = Mapping[str, Any]

_FINEST_NS = 10_000_000
#: So many slots are told of a run, and so many where its limits are finer than that.
_SLOTS = 20_000
_MOST_SLOTS = 2_000_000
_SECOND_NS = 1_000_000_000
_MOST_BUCKETS = 600

#: In place of a time: later and earlier than any.
_NEVER = np.iinfo(np.int64).max
_BEFORE = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Timeline:
    """The writes to a partition, or to all, by the slots in which they ended, in the order of time.

    Of each slot: its number, when the first of its writes was sent (``earliest``), when the last one ended, and its
    first and last acknowledgement (_NEVER, _BEFORE where there is none) and their number. ``abandoned``: from when
    until when somebody awaited the end of writes that have none, apart from each other and in the order of time.
    """

    slot: Times
    earliest: Times
    last_end: Times
    first_ack: Times
    last_ack: Times
    acknowledged: Times
    abandoned: Sequence[tuple[int, int]] = ()

    @property
    def last_ns(self) -> int | None:
        """When the last attempt ended; None where nothing was attempted."""
        ends = [*self.last_end[-1:].tolist(), *(until for _, until in self.abandoned)]
        return max(ends, default=None)


@dataclass(frozen=True)
class Stretch:
    """A time without an acknowledgement. ``ended`` is false where none came while one was awaited."""

    from_ns: int
    to_ns: int
    ended: bool

    @property
    def lasted_ns(self) -> int:
        """Its length."""
        return self.to_ns - self.from_ns


@dataclass(frozen=True)
class Stretches:
    """Times without an acknowledgement, apart from each other and in the order of time: those that there were for
    certain (``begun``, ``to``; ``ended`` as of a Stretch), and those that there may have been."""

    begun: Times
    to: Times
    ended: npt.NDArray[np.bool_]
    may_have_begun: Times
    may_have_ended: Times

    def longest(self, since_ns: int = 0, until_ns: int = _NEVER) -> Stretch | None:
        """The longest one, and the first of those, as far as it lies between two instants; None where none does."""
        some = slice(np.searchsorted(self.to, since_ns), np.searchsorted(self.begun, until_ns, "right"))
        begun, to = np.maximum(self.begun[some], since_ns), np.minimum(self.to[some], until_ns)
        if not begun.size:
            return None
        one = np.argmax(to - begun)
        return Stretch(int(begun[one]), int(to[one]), bool(self.ended[some][one] and to[one] == self.to[some][one]))

    def at_most(self, since_ns: int = 0, until_ns: int = _NEVER) -> int:
        """How long the longest between two instants may have lasted."""
        some = slice(
            np.searchsorted(self.may_have_ended, since_ns), np.searchsorted(self.may_have_begun, until_ns, "right")
        )
        begun, to = self.may_have_begun[some], self.may_have_ended[some]
        lasted = np.minimum(to, until_ns) - np.maximum(begun, since_ns)
        certain = self.longest(since_ns, until_ns)
        return max(int(lasted.max(initial=0)), certain.lasted_ns if certain else 0)


def resolution(duration_ns: int, partitions: int, limits: Limits) -> int:
    """The length of a slot: a run has a bounded number of them, and each limit several, as far as that goes."""
    in_all = duration_ns * max(partitions, 1)
    given = [limit for limit in (limits.unavailable, limits.recovery) if limit is not None]
    wanted = min([-(-in_all // _SLOTS), *(int(limit * _SECOND_NS) // 4 for limit in given)])
    return max(_FINEST_NS, wanted, -(-in_all // _MOST_SLOTS))


def slots(sends: DataFrame, slot_ns: int, instants: Sequence[int]) -> pa.Table:
    """The writes that ended, folded by partition, slot, and era: the number of ``instants`` that had passed.

    Returns: topic, partition, slot, era, earliest, last_end, first_ack, last_ack (null where none was acknowledged),
    acknowledged
    """
    ended = sends.where("completed_ns is not null").selectExpr(
        *PARTITION,
        "invoked_ns",
        "completed_ns",
        "if(outcome = 'ok', completed_ns, null) as ack_ns",
        f"completed_ns div {slot_ns} as slot",
    )
    return (
        _with_era(ended, instants)
        .groupBy(*PARTITION, "slot", "era")
        .agg(
            F.min("invoked_ns").alias("earliest"),
            F.max("completed_ns").alias("last_end"),
            F.min("ack_ns").alias("first_ack"),
            F.max("ack_ns").alias("last_ack"),
            F.count("ack_ns").alias("acknowledged"),
        )
        .toArrow()
    )


def _with_era(ended: DataFrame, instants: Sequence[int]) -> DataFrame:
    """How many of the sorted ``instants`` had passed by ``completed_ns``: a binary search, a step for each doubling of
    their number."""
    depth = len(instants).bit_length()
    padded = [*instants, *[_NEVER] * ((1 << depth) - 1 - len(instants))]
    listed = f"cast(split('{','.join(map(str, padded))}', ',') as array<bigint>)"
    ended = ended.withColumn("era", F.lit(0))
    for step in (1 << power for power in reversed(range(depth))):
        passed = f"get({listed}, era + {step - 1}) <= completed_ns"
        ended = ended.withColumn("era", F.expr(f"era + if({passed}, {step}, 0)"))
    return ended


def abandoned(sends: DataFrame) -> dict[Partition, list[tuple[int, int]]]:
    """From when until when somebody awaited the end of writes that have none, by partition.

    Who awaited one is dead: until its worker's next incarnation, or its own last word where there is none.
    """
    last = "greatest(invoked_ns, coalesce(completed_ns, invoked_ns))"
    words = (
        sends.groupBy("worker", "incarnation")
        .agg(F.min("invoked_ns").alias("first"), F.expr(f"max({last})").alias("last"))
        .collect()
    )
    begun: dict[int, list[tuple[int, int]]] = {}
    for row in words:
        begun.setdefault(row["worker"], []).append((row["incarnation"], row["first"]))
    until = {
        (row["worker"], row["incarnation"]): max(
            row["last"], min((at for later, at in begun[row["worker"]] if later > row["incarnation"]), default=0)
        )
        for row in words
    }
    open_ended = (
        sends.where("completed_ns is null")
        .groupBy(*PARTITION, "worker", "incarnation")
        .agg(F.min("invoked_ns").alias("first"))
        .collect()
    )
    found: dict[Partition, list[tuple[int, int]]] = {}
    for row in open_ended:
        awaited = (row["first"], until[row["worker"], row["incarnation"]])
        found.setdefault((row["topic"], row["partition"]), []).append(awaited)
    return {partition: united(awaited) for partition, awaited in found.items()}


def united(times: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same times, those in one that touch each other."""
    apart: list[tuple[int, int]] = []
    for begin, end in sorted(times):
        if apart and begin <= apart[-1][1]:
            apart[-1] = (apart[-1][0], max(end, apart[-1][1]))
        else:
            apart.append((begin, end))
    return apart


def timelines(folded: pa.Table, awaited: Mapping[Partition, Sequence[tuple[int, int]]]) -> dict[Partition, Timeline]:
    """The timeline of each partition that was written to, in their order."""
    rows = folded.sort_by([(name, "ascending") for name in (*PARTITION, "slot", "era")])
    topics, numbers = rows["topic"].to_pylist(), rows["partition"].to_pylist()
    begins = [i for i in range(len(rows)) if not i or (topics[i], numbers[i]) != (topics[i - 1], numbers[i - 1])]
    found = {
        (topics[begin], numbers[begin]): _timeline(
            rows.slice(begin, end - begin), awaited.get((topics[begin], numbers[begin]), ())
        )
        for begin, end in pairwise([*begins, len(rows)])
    }
    never_ended = {partition: _timeline(rows.slice(0, 0), awaited[partition]) for partition in awaited.keys() - found}
    return dict(sorted((found | never_ended).items()))


def together(folded: pa.Table, awaited: Mapping[Partition, Sequence[tuple[int, int]]]) -> Timeline:
    """The timeline of all partitions together: available while one is."""
    kinds = {"earliest": "min", "last_end": "max", "first_ack": "min", "last_ack": "max", "acknowledged": "sum"}
    added = folded.group_by(["slot", "era"]).aggregate(list(kinds.items()))
    rows = added.rename_columns({f"{name}_{kind}": name for name, kind in kinds.items()})
    ordered = rows.sort_by([("slot", "ascending"), ("era", "ascending")])
    return _timeline(ordered, united(time for times in awaited.values() for time in times))


def _timeline(rows: pa.Table, awaited: Sequence[tuple[int, int]]) -> Timeline:
    def times(name: str, otherwise: int = 0) -> Times:
        column: Times = rows[name].cast(pa.int64()).fill_null(otherwise).to_numpy()
        return column

    return Timeline(
        times("slot"),
        times("earliest"),
        times("last_end"),
        times("first_ack", _NEVER),
        times("last_ack", _BEFORE),
        times("acknowledged"),
        awaited,
    )


def stretches(timeline: Timeline) -> Stretches:
    """Every time between two acknowledgements, the first and the last one open, as long as one was awaited.

    One begins with the acknowledgement before it if a write was pending then, and with the next attempt if none was. A
    write that fails ends no stretch: the next attempt may do better. One that was abandoned is awaited no more.
    """
    acked = np.flatnonzero(timeline.acknowledged)
    # Before the first acknowledgement, and after each that is the last of its slot, until the next one.
    after = np.concatenate([[_BEFORE], timeline.last_ack[acked]])
    next_ack = np.concatenate([timeline.first_ack[acked], [_NEVER]])
    # The first of the writes that ended in later slots was sent then; of those that ended later in the same slot
    # nobody knows more than that they were sent before they ended.
    first_sent = np.minimum.accumulate(np.append(timeline.earliest, _NEVER)[::-1])[::-1]
    sent = first_sent[np.concatenate([[0], acked + 1])]
    last_end = np.concatenate([[_BEFORE], timeline.last_end[acked]])
    also = last_end > after
    begun = np.where(also, np.minimum(np.maximum(after, sent), last_end), np.maximum(after, sent))
    may_have_begun = np.where(also, after, begun)
    to = next_ack.copy()
    to[-1] = max(timeline.last_end, default=_BEFORE)
    some = also | (sent != _NEVER)
    apart: list[tuple[int, int]] = []
    for since, until in reversed(timeline.abandoned):
        there = (after < until) & (next_ack > since)
        begin, end = np.maximum(after, since), np.minimum(next_ack, until)
        joins = there & some & (end >= begun)
        begun = np.where(joins, np.minimum(begun, begin), begun)
        may_have_begun = np.where(there & (end >= may_have_begun), np.minimum(may_have_begun, begin), may_have_begun)
        to[-1] = max(to[-1], until) if joins[-1] else to[-1]
        alone = there & ~joins
        apart += zip(begin[alone].tolist(), end[alone].tolist(), strict=True)
    ended = next_ack != _NEVER
    alone_begun, alone_to = np.array(apart, np.int64).reshape(-1, 2).T
    # Between two acknowledgements of one slot there may be any of its time.
    several = acked[timeline.acknowledged[acked] > 1]
    certain = _in_order(
        np.concatenate([begun[some], alone_begun]),
        np.concatenate([to[some], alone_to]),
        np.concatenate([ended[some], np.zeros(len(apart), bool)]),
    )
    possible = _in_order(
        np.concatenate([may_have_begun[some], timeline.first_ack[several]]),
        np.concatenate([to[some], timeline.last_ack[several]]),
    )
    return Stretches(*certain, *possible)


def _in_order(begun: Times, to: Times, *more: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], ...]:
    order = np.lexsort((to, begun))
    return tuple(column[order] for column in (begun, to, *more))


def per_bucket(timeline: Timeline, slot_ns: int) -> tuple[int, list[int]]:
    """The length of a bucket in ns (a second, or as many as it takes), and the acknowledgements in each: in the first,
    also those of before the origin."""
    if timeline.last_ns is None:
        return _SECOND_NS, []
    last_ns = max(timeline.last_ns, 0)
    bucket = _SECOND_NS * -(-(last_ns + 1) // (_SECOND_NS * _MOST_BUCKETS))
    number = last_ns // bucket + 1
    of_slots = np.clip(timeline.slot * slot_ns // bucket, 0, number - 1)
    return bucket, np.bincount(of_slots, timeline.acknowledged, number).astype(np.int64).tolist()


def availability(history: History) -> dict[str, Any]:
    """The ``availability`` of verdict.json: by what brokers acknowledged, whatever became of its transaction."""
    faults, sends = history.faults, history.records("sends")
    slot_ns = resolution(history.last_ns, len(history.ends), history.run_file.limits)
    instants = sorted({at for row in faults for at in (row["injected_ns"], row["healed_ns"]) if at is not None})
    folded = slots(sends, slot_ns, instants)
    awaited = abandoned(sends) if history.may_lack("sends", "completed_ns") else {}
    overall = together(folded, awaited)
    bucket_ns, counts = per_bucket(overall, slot_ns)
    windows = list(_windows(faults))
    service = _told(overall, windows)
    return {
        "resolution_ns": slot_ns,
        "longest_unavailable": service["longest_unavailable"],
        "partitions": [
            {"topic": topic, "partition": partition, **_told(own, windows)}
            for (topic, partition), own in timelines(folded, awaited).items()
        ],
        "after_faults": service["after_faults"],
        "bucket_ns": bucket_ns,
        "acknowledged": counts,
    }


def _windows(faults: Sequence[Row]) -> Iterator[tuple[str, int | None, int | None, int]]:
    """Of each fault its name, when it was injected and healed, and the next injection after the heal."""
    injecting = np.sort(np.array([row["injecting_ns"] for row in faults], np.int64))
    for row in faults:
        following = injecting[np.searchsorted(injecting, row["healed_ns"] or 0) :]
        yield row["fault"], row["injected_ns"], row["healed_ns"], int(following[0]) if following.size else _NEVER


def _told(timeline: Timeline, windows: Iterable[tuple[str, int | None, int | None, int]]) -> dict[str, Any]:
    """How long service was gone, in all and from the heal of each fault to the next injection."""
    gone = stretches(timeline)
    acks = timeline.first_ack[timeline.acknowledged > 0]
    return {
        **_longest(gone, "longest_unavailable", "at_most_ns"),
        "after_faults": [
            {
                "fault": fault,
                "first_ack_after_injection_ns": _until_ack(acks, injected),
                "first_ack_after_heal_ns": _until_ack(acks, healed),
                **(
                    {"awaited_after_heal": None}
                    if healed is None
                    else _longest(gone, "awaited_after_heal", "at_most_after_heal_ns", healed, following)
                ),
            }
            for fault, injected, healed, following in windows
        ],
    }


def _longest(
    gone: Stretches, name: str, at_most: str, since_ns: int = 0, until_ns: int = _NEVER
) -> dict[str, dict[str, Any] | int | None]:
    """The longest stretch under ``name``, and under ``at_most`` how long it may have been where that is longer."""
    longest, most = gone.longest(since_ns, until_ns), gone.at_most(since_ns, until_ns)
    more = {at_most: most} if most > (longest.lasted_ns if longest else 0) else {}
    return {name: _of(longest), **more}


def _until_ack(acks: Times, since_ns: int | None) -> int | None:
    """How long it was from an instant (one that ``slots`` was told of) to the first acknowledgement."""
    following = acks[np.searchsorted(acks, since_ns) :] if since_ns is not None else acks[:0]
    return int(following[0]) - since_ns if since_ns is not None and following.size else None


def _of(stretch: Stretch | None) -> dict[str, Any] | None:
    if stretch is None:
        return None
    return {
        "from_ns": stretch.from_ns,
        "to_ns": stretch.to_ns,
        "lasted_ns": stretch.lasted_ns,
        "ended": stretch.ended,
    }
