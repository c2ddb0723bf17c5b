"""Offsets that were acknowledged twice. A record is acknowledged, or delivered; a write that is sent later is
acknowledged at its offset, or below: by then the leader's log had been cut, and the record was no longer in it.

Whose log that was is not known: a deposed leader may go on writing its own, and acknowledge there what stands below.
So it shows no more than that the record may have been gone.

An election takes what is gone only if it came before that write was appended. It did where the next term had been seen
when the write was sent; or where a consumer, or the final read, was given the write with a leader epoch; or where no
leader of before could acknowledge anything any more, and nobody led unseen. Else the leader of before, or one whom
nobody reported, may have lost the record on its own, and have acknowledged another in its place shortly before it was
deposed.

Times are known by slices of a run, SLICES at most of each partition: what was acknowledged and what was sent in the
same slice are not distinguished.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.evidence.acting import Acting
from checkers.evidence.elections import BEFORE, NEVER, Elections, Silence
from checkers.evidence.final_logs import Log
from checkers.evidence.leadership import Partition, known_epoch
from checkers.evidence.store import each_partition

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]
Columns = Sequence[Numbers]

#: What is read of ``sends``.
COLUMNS = ["topic", "partition", "invoked_ns", "completed_ns", "offset"]

#: What names a transaction; read of ``sends``, too, where the final read is read_committed.
TRANSACTION = ["worker", "transaction"]

#: What is read of the records that are not where they were acknowledged.
COLUMNS_OF_GONE = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32())]
    + [(name, pa.int64()) for name in ("sent_ns", "acknowledged_ns", "offset")]
    + [("read_epoch", pa.int32())]
)

#: What is read of the records that were delivered and are gone.
COLUMNS_OF_VANISHED = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32())] + [(name, pa.int64()) for name in ("read_ns", "offset")]
)

#: In place of the epoch of a write that nobody was given with one; and of one that is that of the record which stands
#: there in the final log.
_UNKNOWN = -1
_STANDS = -2

#: So many bits a transaction has in a number of it and its worker.
_BITS = 40

#: Into so many slices the time of a partition is cut; and that of all partitions together, where they are many.
SLICES = 4096
_ALL_SLICES = 1 << 19
_FEWEST_SLICES = 64

#: So many rows are folded at once, at least; and so many are held at most before they are folded again.
FEWEST_ROWS = 1 << 17
MOST_HELD = 1 << 21


@dataclass(frozen=True)
class Gone:
    """A record may have been gone from its leader's log by ``by_ns``, and before any term after ``term`` began."""

    term: int
    by_ns: int


@dataclass(frozen=True)
class Again:
    """Writes that were acknowledged at offsets which had been acknowledged, or delivered, before.

    ``last``: the last term that had surely begun when each was appended. ``sent_ns``: it was sent then, or later.
    ``lowest``: its offset. ``by_ns``: when it was acknowledged.
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
    """Columns that are folded as they come, so that few unfolded rows are held at a time. The first column names what
    they are of."""

    def __init__(self, fold: Callable[[Columns], Columns], most: int) -> None:
        self._fold, self._most = fold, most
        self._parts: list[Columns] = []

    def add(self, *columns: Numbers) -> None:
        if not len(columns[0]):
            return
        self._parts.append(self._fold(columns))
        if sum(len(part[0]) for part in self._parts) > self._most:
            self._parts = [self._folded()]

    def each(self) -> dict[int, Columns]:
        """By the first of the columns, the others, in order."""
        if not self._parts:
            return {}
        of, *columns = self._folded()
        names, begun = np.unique(of, return_index=True)
        apart = zip(*(np.split(column, begun[1:]) for column in columns), strict=True)
        return {int(name): [*own] for name, own in zip(names, apart, strict=True)}

    def _folded(self) -> Columns:
        return self._fold([np.concatenate(column) for column in zip(*self._parts, strict=True)])


def _highest(columns: Columns) -> Columns:
    """The highest offset of each slice. ``columns``: of what, slice, offset."""
    *keys, offset = (column[np.lexsort(columns[1::-1])] for column in columns)
    begun = _begun(keys)
    return [*(key[begun] for key in keys), np.maximum.reduceat(offset, begun)]


def _lowest(columns: Columns) -> Columns:
    """Of each slice and term, the writes for which no other at the same offset or below was acknowledged as early.
    ``columns``: of what, slice, term, offset, when acknowledged."""
    order = np.lexsort(columns[2::-1])
    *keys, offset, by_ns = (column[order] for column in columns)
    begun = _begun(keys)
    group = np.repeat(np.arange(len(begun)), np.diff(np.append(begun, len(order))))
    # (The lowest of all is acknowledged before nearly all.)
    lowest = np.minimum.reduceat(offset, begun)[group]
    first = np.minimum.reduceat(np.where(offset == lowest, by_ns, NEVER), begun)[group]
    few = np.flatnonzero(np.where(offset == lowest, by_ns == first, by_ns < first))
    few = few[np.lexsort((by_ns[few], offset[few], group[few]))]
    times, rank = np.unique(by_ns[few], return_inverse=True)
    # (A number that falls from each group to the next: what is least so far is so in its own group.)
    rank = rank - group[few] * len(times)
    earliest = few[np.append(True, rank[1:] < np.minimum.accumulate(rank)[:-1])]
    return [*(key[earliest] for key in keys), offset[earliest], by_ns[earliest]]


def _begun(keys: Columns) -> Numbers:
    """The first of each of the rows that have the same keys and stand one behind the other."""
    other = np.ones(len(keys[0]), bool)
    other[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    return np.flatnonzero(other)


def acknowledged_again(
    sends: Iterable[pa.Table],
    gone: Iterable[pa.Table],
    vanished: Iterable[pa.Table],
    elections: Mapping[Partition, Elections],
    acting: Callable[[Elections], Acting],
    logs: Mapping[Partition, Log],
    end_ns: int,
    transactions: Iterable[pa.Table] | None = None,
    most_slices: int = SLICES,
    most_held: int = MOST_HELD,
    fewest_rows: int = FEWEST_ROWS,
) -> dict[Partition, Again]:
    """Of each partition, the writes that show that its log was cut.

    ``sends``: acknowledged records with COLUMNS, piece by piece; ``gone``: those of them that are not where they were
    acknowledged, with COLUMNS_OF_GONE; ``vanished``: what was delivered and is gone, with COLUMNS_OF_VANISHED (one may
    never have been acknowledged). ``logs``: the final ones. ``end_ns``: when nothing was written any more.
    ``transactions``: with TRANSACTION, those that were committed, where the final read is read_committed: what is of
    another promised nothing, so that nobody tells of it that it is gone. Such sends have TRANSACTION, too.
    """
    slices = min(most_slices, max(_ALL_SLICES // max(len(elections), 1), _FEWEST_SLICES))
    width = max(end_ns // slices, 1)
    number = {of: n for n, of in enumerate(elections)}
    begun = {of: _Begun(own, acting(own)) for of, own in elections.items()}
    by_sent, by_until = _Folding(_lowest, most_held), _Folding(_highest, most_held)
    done = None if transactions is None else np.sort(np.concatenate([np.array([-1]), *map(_keys, transactions)]))
    for piece, is_gone in _each(_joined(sends, fewest_rows), gone, done):
        topic, partition, *columns = piece.columns
        sent, until, offset, read = (column.to_numpy() for column in columns)
        which, last, epoch = np.full(len(piece), -1, np.int64), np.full(len(piece), -1, np.int64), read.copy()
        for of, here in each_partition(topic, partition):
            if of in number:
                which[here] = number[of]
                if not is_gone and of in logs:
                    stands = here[epoch[here] == _STANDS]
                    epoch[stands] = logs[of].epochs_at(offset[stands])
                last[here] = begun[of].before(sent[here], until[here], epoch[here])
        own = which >= 0
        by_sent.add(*(each[own] for each in (which, sent // width, last, offset, until)))
        if not is_gone:
            by_until.add(*(each[own] for each in (which, until // width, offset)))
    known = (piece.select(COLUMNS_OF_VANISHED.names).drop_null() for piece in vanished)
    for piece in filter(len, known):
        topic, partition, *columns = piece.columns
        read, offset = (column.to_numpy() for column in columns)
        which = np.full(len(read), -1, np.int64)
        for of, here in each_partition(topic, partition):
            which[here] = number.get(of, -1)
        own = which >= 0
        by_until.add(*(each[own] for each in (which, read // width, offset)))
    acknowledged, names = by_until.each(), {n: of for of, n in number.items()}
    found = {names[n]: _again(width, own, *acknowledged[n]) for n, own in by_sent.each().items()}
    return {of: again for of, again in found.items() if again is not None}


def _each(sends: Iterable[pa.Table], gone: Iterable[pa.Table], done: Numbers | None) -> Iterator[tuple[pa.Table, bool]]:
    """All pieces with the same columns, and whether they are of what is gone.

    (Where a record that is gone was acknowledged, the final log may have another one: then the former comes twice.)
    """
    for piece in sends:
        epochs = np.full(len(piece), _STANDS, np.int64)
        if done is not None:
            plain = pc.is_null(piece["transaction"]).to_numpy()
            epochs[~(plain | _among(done, _keys(piece)))] = _UNKNOWN
        yield piece.select(COLUMNS).append_column("read_epoch", pa.array(epochs)), False
    for piece in gone:
        known = (pc.is_valid(pc.field(name)) for name in ("sent_ns", "acknowledged_ns", "offset"))
        rows = piece.select(COLUMNS_OF_GONE.names).filter(reduce(and_, known))
        if len(rows):
            epochs = pc.fill_null(rows["read_epoch"], _UNKNOWN)
            yield rows.set_column(len(rows.columns) - 1, "read_epoch", epochs), True


def _joined(pieces: Iterable[pa.Table], fewest_rows: int) -> Iterator[pa.Table]:
    """The same rows in pieces of so many at least, but for the last: each costs something for each partition."""
    held: list[pa.Table] = []
    for piece in filter(len, pieces):
        held.append(piece)
        if sum(map(len, held)) >= fewest_rows:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)


def _keys(rows: pa.Table) -> Numbers:
    """The transaction of each row as one number; -1 where it has none."""
    worker, transaction = (pc.fill_null(rows[name].cast(pa.int64()), -1).to_numpy() for name in TRANSACTION)
    known = (worker >= 0) & (transaction >= 0) & (transaction < 1 << _BITS)
    found: Numbers = np.where(known, (worker << _BITS) + transaction, -1)
    return found


def _among(known: Numbers, each: Numbers) -> Numbers:
    """Which of these numbers are among others, which are in order."""
    at = np.searchsorted(known, each)
    found: Numbers = (at < len(known)) & (known[np.minimum(at, len(known) - 1)] == each) & (each >= 0)
    return found


class _Begun:
    """Which terms of a partition had surely begun when a write was appended."""

    def __init__(self, elections: Elections, acting: Acting) -> None:
        begins, ends = elections.begins_and_ends
        self._begins = np.minimum.accumulate(begins[::-1])[::-1]
        self._seen = np.array([term.seen_ns for term in elections.terms], np.int64)
        self._epochs = np.array([known_epoch(term.epoch) for term in elections.terms], np.int64)
        ended = np.array([acting.ended_ns(n) for n in range(len(ends))], np.int64)
        self._over = np.minimum(ends, ended)
        for n, (_, to) in elections.again:
            self._over[n] = max(self._over[n], min(to, ended[n]))
        unseen: dict[int, list[Silence]] = {}
        for n, window in elections.untold:
            unseen.setdefault(n, []).append(window)
        self._unseen = [(n, *_ordered(windows)) for n, windows in sorted(unseen.items())]

    def before(self, sent: Numbers, until: Numbers, epoch: Numbers) -> Numbers:
        """The last of them. ``epoch``: of the leader that appended each, where it is known."""
        may_have = np.searchsorted(self._begins, until, side="right") - 1
        found = np.clip(np.searchsorted(self._seen, sent) - 1, 0, may_have)
        known = (epoch > _UNKNOWN) & bool((self._epochs >= 0).any())
        # (That may be told late: it need not have been told by then that the term may have begun.)
        found[known] = np.maximum(found[known], np.searchsorted(self._epochs, epoch[known], side="right") - 1)
        doubtful = np.flatnonzero((found < may_have) & ~known)
        unseen = self._unseen_before(sent[doubtful], until[doubtful])
        while len(doubtful):
            on = (self._over[found[doubtful]] < sent[doubtful]) & (unseen <= found[doubtful])
            doubtful, unseen = doubtful[on], unseen[on]
            found[doubtful] += 1
            on = found[doubtful] < may_have[doubtful]
            doubtful, unseen = doubtful[on], unseen[on]
        return found

    def _unseen_before(self, sent: Numbers, until: Numbers) -> Numbers:
        """The last term before which somebody whom nobody reported may have acknowledged each write; 0 where none is.
        (See Elections.unseen.)"""
        found = np.zeros(len(sent), np.int64)
        for n, since, latest in self._unseen:
            found[latest[np.searchsorted(since, until, side="right")] >= sent] = n
        return found


def _ordered(times: Sequence[Silence]) -> tuple[Numbers, Numbers]:
    """When each of some times began, in order; and the latest end of those that had begun before each, and at last."""
    since, over = np.array(sorted(times), np.int64).T
    return since, np.append(BEFORE - 1, np.maximum.accumulate(over))


def _again(width: int, writes: Sequence[Numbers], until: Numbers, highest: Numbers) -> Again | None:
    """What is at or below an offset that had been acknowledged, or delivered, before it was sent."""
    sent, last, lowest, by_ns = writes
    before = np.searchsorted(until, sent) - 1
    falls = (before >= 0) & (lowest <= np.maximum.accumulate(highest)[np.maximum(before, 0)])
    telling = np.array([*_telling(np.flatnonzero(falls), writes, until, highest)], np.int64)
    if not len(telling):
        return None
    return Again(last[telling], sent[telling] * width, lowest[telling], by_ns[telling])


def _telling(falls: Numbers, writes: Sequence[Numbers], until: Numbers, highest: Numbers) -> Iterator[int]:
    """The falls, in the order of their time, without those that show nothing more than an earlier one.

    All that a fall shows is shown by one before it that is as low, was over as early, and surely came after no later
    election, where nothing at or above it was acknowledged in between.
    """
    sent, last, lowest, by_ns = writes
    own: list[int] = []
    for n in falls.tolist():
        # (The later of two that are as low shows no less: lower ones stand before higher ones.)
        at = bisect_right(own, lowest[n], key=lambda k: lowest[k])
        if at and by_ns[own[at - 1]] <= by_ns[n] and last[own[at - 1]] <= last[n]:
            between = highest[np.searchsorted(until, sent[own[at - 1]]) : np.searchsorted(until, sent[n])]
            if not (len(between) and between.max() >= lowest[n]):
                continue
        own[bisect_left(own, lowest[n], key=lambda k: lowest[k]) :] = [n]
        yield n


def acknowledged() -> pc.Expression:
    """Which rows of ``sends`` tell an offset at which they were acknowledged."""
    return (pc.field("outcome") == "ok") & pc.is_valid(pc.field("offset")) & pc.is_valid(pc.field("completed_ns"))


def committed() -> pc.Expression:
    """Which rows of ``transactions`` tell of a commit that was answered."""
    return (pc.field("intent") == "commit") & (pc.field("outcome") == "ok")
