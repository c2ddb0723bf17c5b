"""Stretches, that is, times without an acknowledgement: arithmetic on the bins in which writes ended. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from checkers.evidence.intervals import BEFORE, NEVER, Times, merged
from checkers.history import PARTITION
from harness.core.clock import SECOND_NS
from harness.core.topology import Partition

#: A choice: verdict.json stays small, and a bucket of the report's chart is wider than a pixel.
_MOST_BUCKETS = 600


@dataclass(frozen=True)
class Timeline:
    """The writes to a partition, or to all, by the bins in which they ended, in the order of time.

    For each bin: its number, when the first of its writes was sent (``earliest``), when the last one ended, when the
    first of those acknowledged was sent, its first and last acknowledgement (NEVER, NEVER and BEFORE if there is none)
    and their number. ``abandoned``: times in which a worker waited for writes that never ended; they do not overlap,
    and are in the order of time.
    """

    bin: Times
    earliest: Times
    last_end: Times
    first_sent: Times
    first_ack: Times
    last_ack: Times
    acknowledged: Times
    abandoned: Sequence[tuple[int, int]] = ()

    @property
    def first_ns(self) -> int | None:
        """When the first attempt began; None if there was none."""
        begins = [*self.earliest.tolist(), *(since for since, _ in self.abandoned)]
        return min(begins, default=None)

    @property
    def last_ack_ns(self) -> int | None:
        """When the last acknowledgement came; None if none came."""
        return max(self.last_ack[self.acknowledged > 0].tolist(), default=None)

    @property
    def last_ns(self) -> int | None:
        """When the last attempt ended; None if there was none."""
        ends = [*self.last_end[-1:].tolist(), *(until for _, until in self.abandoned)]
        return max(ends, default=None)


@dataclass(frozen=True)
class Stretch:
    """A time without an acknowledgement. ``ended`` is false if no acknowledgement ended it."""

    from_ns: int
    to_ns: int
    ended: bool

    @property
    def lasted_ns(self) -> int:
        """Its length."""
        return self.to_ns - self.from_ns


@dataclass(frozen=True)
class Stretches:
    """Times without an acknowledgement, without overlaps and in the order of time: the certain ones (``begun``, ``to``;
    ``ended`` as in Stretch), and the possible ones."""

    begun: Times
    to: Times
    ended: npt.NDArray[np.bool_]
    may_have_begun: Times
    may_have_ended: Times

    def longest(self, since_ns: int = 0, until_ns: int = NEVER) -> Stretch | None:
        """The longest certain stretch between two instants (the first one of several), cut to that time; None if there
        is none."""
        some = slice(np.searchsorted(self.to, since_ns), np.searchsorted(self.begun, until_ns, "right"))
        begun, to = np.maximum(self.begun[some], since_ns), np.minimum(self.to[some], until_ns)
        if not begun.size:
            return None
        one = np.argmax(to - begun)
        return Stretch(int(begun[one]), int(to[one]), bool(self.ended[some][one] and to[one] == self.to[some][one]))

    def at_most(self, since_ns: int = 0, until_ns: int = NEVER) -> int:
        """The greatest possible length of a stretch between two instants."""
        some = slice(
            np.searchsorted(self.may_have_ended, since_ns), np.searchsorted(self.may_have_begun, until_ns, "right")
        )
        begun, to = self.may_have_begun[some], self.may_have_ended[some]
        lasted = np.minimum(to, until_ns) - np.maximum(begun, since_ns)
        certain = self.longest(since_ns, until_ns)
        return max(int(lasted.max(initial=0)), certain.lasted_ns if certain else 0)


def timelines(folded: pa.Table, awaited: Mapping[Partition, Sequence[tuple[int, int]]]) -> dict[Partition, Timeline]:
    """The timeline of each partition that was written to, in the order of partitions."""
    rows = folded.sort_by([(name, "ascending") for name in (*PARTITION, "bin", "era")])
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
    """The timeline of all partitions together: an acknowledgement in any of them counts."""
    kinds = {
        "earliest": "min",
        "last_end": "max",
        "first_sent": "min",
        "first_ack": "min",
        "last_ack": "max",
        "acknowledged": "sum",
    }
    added = folded.group_by(["bin", "era"]).aggregate(list(kinds.items()))
    rows = added.rename_columns({f"{name}_{kind}": name for name, kind in kinds.items()})
    ordered = rows.sort_by([("bin", "ascending"), ("era", "ascending")])
    return _timeline(ordered, merged(time for times in awaited.values() for time in times))


def _timeline(rows: pa.Table, awaited: Sequence[tuple[int, int]]) -> Timeline:
    def times(name: str, otherwise: int = 0) -> Times:
        column: Times = rows[name].cast(pa.int64()).fill_null(otherwise).to_numpy()
        return column

    return Timeline(
        times("bin"),
        times("earliest"),
        times("last_end"),
        times("first_sent", NEVER),
        times("first_ack", NEVER),
        times("last_ack", BEFORE),
        times("acknowledged"),
        awaited,
    )


def stretches(timeline: Timeline) -> Stretches:
    """Every time between two acknowledgements while a write was pending; also the times before the first and after the
    last.

    A stretch begins with the acknowledgement before it if a write was pending then, else with the next attempt. A
    failed write does not end a stretch: the next attempt may succeed. An abandoned write is no longer pending.
    """
    acked = np.flatnonzero(timeline.acknowledged)
    # The gaps: before the first acknowledgement, and from the last one of each bin to the next one.
    after = np.concatenate([[BEFORE], timeline.last_ack[acked]])
    next_ack = np.concatenate([timeline.first_ack[acked], [NEVER]])
    # The time when the first of the writes that ended in later bins was sent. Of writes that ended later in the same
    # bin it is only known that they were sent before they ended.
    first_sent = np.minimum.accumulate(np.append(timeline.earliest, NEVER)[::-1])[::-1]
    sent = first_sent[np.concatenate([[0], acked + 1])]
    last_end = np.concatenate([[BEFORE], timeline.last_end[acked]])
    also = last_end > after
    begun = np.where(also, np.minimum(np.maximum(after, sent), last_end), np.maximum(after, sent))
    may_have_begun = np.where(also, after, begun)
    to = next_ack.copy()
    to[-1] = max(timeline.last_end, default=BEFORE)
    some = also | (sent != NEVER)
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
    ended = next_ack != NEVER
    alone_begun, alone_to = np.array(apart, np.int64).reshape(-1, 2).T
    # A possible stretch lies between the first and the last acknowledgement of one bin.
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


def per_bucket(timeline: Timeline, bin_ns: int) -> tuple[int, list[int]]:
    """The length of a bucket in ns (one second, or more for a long run), and the number of acknowledgements in each.
    The first bucket also has those before the clock's origin."""
    if timeline.last_ns is None:
        return SECOND_NS, []
    last_ns = max(timeline.last_ns, 0)
    bucket = SECOND_NS * -(-(last_ns + 1) // (SECOND_NS * _MOST_BUCKETS))
    number = last_ns // bucket + 1
    of_bins = np.clip(timeline.bin * bin_ns // bucket, 0, number - 1)
    return bucket, np.bincount(of_bins, timeline.acknowledged, number).astype(np.int64).tolist()
