"""Offsets that were acknowledged twice. A record is acknowledged; a write that is sent later is acknowledged at its
offset, or below: by then the leader's log had been cut, and the record was no longer in it.

Whose log that was is not known: a deposed leader may go on writing its own, and acknowledge there what stands below.
So it shows no more than that the record may have been gone.

What is acknowledged when the next term may have begun is held to be of it, seen or not: a leader that loses a record on
its own, and acknowledges another in its place so shortly before it is deposed, is not told apart from its successor.

Times are known by slices of a run, SLICES at most of each partition: what was acknowledged and what was sent in the
same slice are not distinguished.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.evidence.elections import Elections
from checkers.evidence.leadership import Partition
from checkers.evidence.store import each_partition

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]

#: What is read of ``sends``.
COLUMNS = ["topic", "partition", "invoked_ns", "completed_ns", "offset"]

#: Into so many slices the time of a partition is cut; and that of all partitions together, where they are many.
SLICES = 4096
_ALL_SLICES = 1 << 19
_FEWEST_SLICES = 64

#: So many rows are held at most before they are folded again.
MOST_HELD = 1 << 21


@dataclass(frozen=True)
class Gone:
    """A record may have been gone from its leader's log by ``by_ns``, and in ``term`` at the latest."""

    term: int
    by_ns: int


@dataclass(frozen=True)
class Again:
    """Groups of writes that were acknowledged at offsets which had been acknowledged before. A row is a group.

    ``last``: the last term that its writes may be of. ``sent_ns``: they were sent then, or later. ``lowest``: the
    lowest of their offsets. ``by_ns``: when the last was acknowledged.
    """

    last: Numbers
    sent_ns: Numbers
    lowest: Numbers
    by_ns: Numbers

    def gone(self, offset: int, until_ns: int) -> Gone | None:
        """When a record may have been gone, where a write says so; None where none does.

        ``offset`` is the record's; ``until_ns``: by when it was acknowledged.
        """
        shows = np.flatnonzero((self.lowest <= offset) & (self.sent_ns > until_ns))
        if not len(shows):
            return None
        return Gone(int(self.last[shows].min()), int(self.by_ns[shows].min()))


class _Folding:
    """Rows folded by some columns as they come, so that no more than some are held that were not."""

    def __init__(self, by: list[str], how: dict[str, str], most: int) -> None:
        self._by, self._how, self._most = by, how, most
        self._parts: list[pa.Table] = []

    def add(self, *columns: Numbers) -> None:
        """``columns``: those by which, and those that are folded."""
        if not len(columns[0]):
            return
        self._parts.append(self._folded(pa.table([*columns], [*self._by, *self._how])))
        if sum(map(len, self._parts)) > self._most:
            self._parts = [self._folded(pa.concat_tables(self._parts))]

    def each(self) -> dict[int, list[Numbers]]:
        """By the first of the columns, the others, in their order."""
        if not self._parts:
            return {}
        found = self._folded(pa.concat_tables(self._parts)).sort_by([(name, "ascending") for name in self._by])
        of, *columns = (column.to_numpy() for column in found.columns)
        names, begun = np.unique(of, return_index=True)
        apart = zip(*(np.split(column, begun[1:]) for column in columns), strict=True)
        return {int(name): [*own] for name, own in zip(names, apart, strict=True)}

    def _folded(self, rows: pa.Table) -> pa.Table:
        folded = rows.group_by(self._by, use_threads=False).aggregate([*self._how.items()])
        folded = folded.select([*self._by, *("_".join(one) for one in self._how.items())])
        return folded.rename_columns([*self._by, *self._how])


def acknowledged_again(
    sends: Iterable[pa.Table],
    elections: Mapping[Partition, Elections],
    end_ns: int,
    most_slices: int = SLICES,
    most_held: int = MOST_HELD,
) -> dict[Partition, Again]:
    """Of each partition, the writes that show that its log was cut.

    ``sends``: acknowledged records with COLUMNS, piece by piece. ``end_ns``: when nothing was written any more.
    """
    slices = min(most_slices, max(_ALL_SLICES // max(len(elections), 1), _FEWEST_SLICES))
    width = max(end_ns // slices, 1)
    number = {of: n for n, of in enumerate(elections)}
    by_sent = _Folding(["of", "sent", "last"], {"lowest": "min", "by_ns": "max"}, most_held)
    by_until = _Folding(["of", "until"], {"highest": "max"}, most_held)
    for piece in filter(len, sends):
        topic, partition, *columns = (piece[name] for name in COLUMNS)
        sent, until, offset = (column.to_numpy() for column in columns)
        which, last = np.full(len(piece), -1, np.int64), np.full(len(piece), -1, np.int64)
        for of, here in each_partition(topic, partition):
            if of in number:
                which[here] = number[of]
                last[here] = _last_term(elections[of], until[here])
        own = which >= 0
        by_sent.add(*(each[own] for each in (which, sent // width, last, offset, until)))
        by_until.add(*(each[own] for each in (which, until // width, offset)))
    acknowledged, names = by_until.each(), {n: of for of, n in number.items()}
    found = {names[n]: _again(width, own, *acknowledged[n]) for n, own in by_sent.each().items()}
    return {of: again for of, again in found.items() if again is not None}


def _last_term(elections: Elections, until: Numbers) -> Numbers:
    """The last term that had begun when each was acknowledged."""
    begins, _ = elections.begins_and_ends
    return np.searchsorted(np.minimum.accumulate(begins[::-1])[::-1], until, side="right") - 1


def _again(width: int, writes: Sequence[Numbers], until: Numbers, highest: Numbers) -> Again | None:
    """What is at or below an offset that had been acknowledged before it was sent."""
    sent, last, lowest, by_ns = writes
    before = np.searchsorted(until, sent) - 1
    falls = (before >= 0) & (lowest <= np.maximum.accumulate(highest)[np.maximum(before, 0)])
    telling = np.array([*_telling(np.flatnonzero(falls), writes, until, highest)], np.int64)
    if not len(telling):
        return None
    return Again(last[telling], sent[telling] * width, lowest[telling], by_ns[telling])


def _telling(falls: Numbers, writes: Sequence[Numbers], until: Numbers, highest: Numbers) -> Iterator[int]:
    """Those of the falls, in the order of their time, that show more than one before.

    All that a fall shows is shown by one before it that is as low, and was over as early, where nothing at or above it
    was acknowledged in between.
    """
    sent, _, lowest, by_ns = writes
    own: list[int] = []
    for n in falls.tolist():
        # (The later of two that are as low shows no less: lower ones stand before higher ones.)
        at = bisect_right(own, lowest[n], key=lambda k: lowest[k])
        if at and by_ns[own[at - 1]] <= by_ns[n]:
            between = highest[np.searchsorted(until, sent[own[at - 1]]) : np.searchsorted(until, sent[n])]
            if not (len(between) and between.max() >= lowest[n]):
                continue
        own[bisect_left(own, lowest[n], key=lambda k: lowest[k]) :] = [n]
        yield n


def acknowledged() -> pc.Expression:
    """Which rows of ``sends`` tell an offset at which they were acknowledged."""
    return (pc.field("outcome") == "ok") & pc.is_valid(pc.field("offset")) & pc.is_valid(pc.field("completed_ns"))
