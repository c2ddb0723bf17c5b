"""Offsets that were acknowledged twice. A record was acknowledged, or delivered; then a write that was sent later is
acknowledged at the same offset, or below. So by then the log of that leader had been cut, and did not contain the
record.

It is not known whose log that was: a deposed leader may go on writing its own log, and acknowledge writes below the
record's offset. So this only shows that the record may have been gone.

An election can have taken the record only if it came before that write was appended. It did if the next term had been
seen when the write was sent; or if the leader epoch of the write is known from a consumer or the final read; or if no
earlier leader could acknowledge anything any more, and there was no unreported leader. Otherwise the earlier leader, or
an unreported one, may itself have lost the record, and have acknowledged another one in its place shortly before it was
deposed.

Times are known only by slices of a run, at most SLICES for each partition: the order of acknowledgements and sends in
the same slice is not known.
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
from checkers.evidence.elections import Elections
from checkers.evidence.final_logs import Log
from checkers.evidence.intervals import BEFORE, NEVER, Window
from checkers.evidence.store import each_partition
from checkers.leadership import Partition, known_epoch
from harness.history.schema import TRANSACTION

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]
Columns = Sequence[Numbers]

#: The columns read of ``sends``; with TRANSACTION if the final read is read_committed.
COLUMNS = ["topic", "partition", "invoked_ns", "completed_ns", "offset"]

#: The columns read of records that are not at their acknowledged offset.
COLUMNS_OF_GONE = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32())]
    + [(name, pa.int64()) for name in ("sent_ns", "acknowledged_ns", "offset")]
    + [("read_epoch", pa.int32())]
)

#: The columns read of records that were delivered and are gone.
COLUMNS_OF_VANISHED = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32())] + [(name, pa.int64()) for name in ("read_ns", "offset")]
)

#: Instead of a write's epoch: it is not known; and: it is that of the record at its offset in the final log.
_UNKNOWN = -1
_STANDS = -2

#: The bits of the transaction in a number that combines worker and transaction.
_BITS = 40

#: The most slices of a partition's time; the most slices of all partitions together; and the fewest of one partition. A
#: choice: more slices give the order of more writes, and take more memory.
SLICES = 4096
_ALL_SLICES = 1 << 19
_FEWEST_SLICES = 64

#: The fewest rows that are folded at once; and the most rows that are held before they are folded again. A choice:
#: each fold has a fixed cost, and rows that are held take memory.
FEWEST_ROWS = 1 << 17
MOST_HELD = 1 << 21


@dataclass(frozen=True)
class GoneBy:
    """A record may have been gone from its leader's log by ``by_ns``, before any term after ``term`` began."""

    term: int
    by_ns: int


@dataclass(frozen=True)
class Again:
    """Writes that were acknowledged at, or below, an offset that had been acknowledged, or delivered, before.

    For each write, ``last``: the last term that had certainly begun when it was appended; ``sent_ns``: it was sent then
    or later; ``lowest``: its offset; ``by_ns``: when it was acknowledged.
    """

    last: Numbers
    sent_ns: Numbers
    lowest: Numbers
    by_ns: Numbers

    def gone(self, offset: int, until_ns: int) -> GoneBy | None:
        """When a record may have been gone, if any write shows that; else None.

        ``offset`` is the record's; ``until_ns``: by when it was acknowledged.
        """
        shows = np.flatnonzero((self.lowest <= offset) & (self.sent_ns > until_ns))
        if not len(shows):
            return None
        return GoneBy(int(self.last[shows].min()), int(self.by_ns[shows].min()))


class _Folding:
    """Folds columns as they arrive, so that few unfolded rows are held at a time. The first column is the key by which
    ``each`` groups them."""

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
        """The other columns by the value of the first column, in order."""
        if not self._parts:
            return {}
        of, *columns = self._folded()
        names, begun = np.unique(of, return_index=True)
        apart = zip(*(np.split(column, begun[1:]) for column in columns), strict=True)
        return {int(name): [*own] for name, own in zip(names, apart, strict=True)}

    def _folded(self) -> Columns:
        return self._fold([np.concatenate(column) for column in zip(*self._parts, strict=True)])


def _highest(columns: Columns) -> Columns:
    """The highest offset of each slice. ``columns``: partition number, slice, offset."""
    *keys, offset = (column[np.lexsort(columns[1::-1])] for column in columns)
    begun = _begun(keys)
    return [*(key[begun] for key in keys), np.maximum.reduceat(offset, begun)]


def _lowest(columns: Columns) -> Columns:
    """For each slice and term, the writes for which no other write at the same offset or below was acknowledged as
    early. ``columns``: partition number, slice, term, offset, time of the acknowledgement."""
    order = np.lexsort(columns[2::-1])
    *keys, offset, by_ns = (column[order] for column in columns)
    begun = _begun(keys)
    group = np.repeat(np.arange(len(begun)), np.diff(np.append(begun, len(order))))
    # (The lowest offset is acknowledged before nearly all others.)
    lowest = np.minimum.reduceat(offset, begun)[group]
    first = np.minimum.reduceat(np.where(offset == lowest, by_ns, NEVER), begun)[group]
    few = np.flatnonzero(np.where(offset == lowest, by_ns == first, by_ns < first))
    few = few[np.lexsort((by_ns[few], offset[few], group[few]))]
    times, rank = np.unique(by_ns[few], return_inverse=True)
    # (The numbers fall from each group to the next, so a minimum so far is a minimum of its own group.)
    rank = rank - group[few] * len(times)
    earliest = few[np.append(True, rank[1:] < np.minimum.accumulate(rank)[:-1])]
    return [*(key[earliest] for key in keys), offset[earliest], by_ns[earliest]]


def _begun(keys: Columns) -> Numbers:
    """The index of the first row of each sequence of rows with the same keys."""
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
    """For each partition, the writes that show that its log was cut.

    ``sends``: acknowledged records with COLUMNS, piece by piece; ``gone``: those that are not at their acknowledged
    offset, with COLUMNS_OF_GONE; ``vanished``: delivered records that are gone, with COLUMNS_OF_VANISHED (some may
    never have been acknowledged). ``logs``: the final logs. ``end_ns``: the end of all writes. ``transactions``: if the
    final read is read_committed, the committed transactions, with TRANSACTION: records of other transactions were
    promised nothing, so no anomaly says that they are gone. Then ``sends`` have TRANSACTION, too.
    """
    slices = min(most_slices, max(_ALL_SLICES // max(len(elections), 1), _FEWEST_SLICES))
    width = max(end_ns // slices, 1)
    number = {of: n for n, of in enumerate(elections)}
    begun = {of: _BegunTerms(own, acting(own)) for of, own in elections.items()}
    by_sent, by_until = _Folding(_lowest, most_held), _Folding(_highest, most_held)
    done = None if transactions is None else np.sort(np.concatenate([np.array([-1]), *map(_keys, transactions)]))
    for piece, is_gone in _pieces(in_larger_pieces(sends, fewest_rows), gone, done):
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


def _pieces(
    sends: Iterable[pa.Table], gone: Iterable[pa.Table], done: Numbers | None
) -> Iterator[tuple[pa.Table, bool]]:
    """All pieces with the same columns, and whether a piece has records that are gone.

    (At the acknowledged offset of a gone record, the final log may have another one. So a gone record comes twice: also
    among ``sends``.)
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


def in_larger_pieces(pieces: Iterable[pa.Table], fewest_rows: int = FEWEST_ROWS) -> Iterator[pa.Table]:
    """The same rows in larger pieces of at least ``fewest_rows`` (except the last), because each piece costs something
    per partition."""
    held: list[pa.Table] = []
    for piece in filter(len, pieces):
        held.append(piece)
        if sum(map(len, held)) >= fewest_rows:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)


def _keys(rows: pa.Table) -> Numbers:
    """The transaction of each row as one number; -1 if it has none."""
    worker, transaction = (pc.fill_null(rows[name].cast(pa.int64()), -1).to_numpy() for name in TRANSACTION)
    known = (worker >= 0) & (transaction >= 0) & (transaction < 1 << _BITS)
    found: Numbers = np.where(known, (worker << _BITS) + transaction, -1)
    return found


def _among(known: Numbers, each: Numbers) -> Numbers:
    """For each of these numbers, whether it is in ``known``, which is sorted."""
    at = np.searchsorted(known, each)
    found: Numbers = (at < len(known)) & (known[np.minimum(at, len(known) - 1)] == each) & (each >= 0)
    return found


class _BegunTerms:
    """Finds the terms of a partition that had certainly begun when a write was appended."""

    def __init__(self, elections: Elections, acting: Acting) -> None:
        begins, ends = elections.begins_and_ends
        self._begins = np.minimum.accumulate(begins[::-1])[::-1]
        self._seen = np.array([term.seen_ns for term in elections.terms], np.int64)
        self._epochs = np.array([known_epoch(term.epoch) for term in elections.terms], np.int64)
        ended = np.array([acting.ended_ns(n) for n in range(len(ends))], np.int64)
        self._over = np.minimum(ends, ended)
        for n, (_, to) in elections.again:
            self._over[n] = max(self._over[n], min(to, ended[n]))
        unseen: dict[int, list[Window]] = {}
        for n, window in elections.unreported:
            unseen.setdefault(n, []).append(window)
        self._unseen = [(n, *_ordered(windows)) for n, windows in sorted(unseen.items())]

    def before(self, sent: Numbers, until: Numbers, epoch: Numbers) -> Numbers:
        """The last term that had certainly begun when each write was appended. ``epoch``: the epoch of the leader that
        appended it, if known."""
        may_have = np.searchsorted(self._begins, until, side="right") - 1
        found = np.clip(np.searchsorted(self._seen, sent) - 1, 0, may_have)
        known = (epoch > _UNKNOWN) & bool((self._epochs >= 0).any())
        # (A term may be reported late, so this may be later than ``may_have``.)
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
        """For each write, the last term before which an unreported leader may have acknowledged it; 0 if there is none.
        (See Elections.unseen.)"""
        found = np.zeros(len(sent), np.int64)
        for n, since, latest in self._unseen:
            found[latest[np.searchsorted(since, until, side="right")] >= sent] = n
        return found


def _ordered(times: Sequence[Window]) -> tuple[Numbers, Numbers]:
    """The beginnings of some times, in order; and before each, and at the end, the latest end of all that had begun."""
    since, over = np.array(sorted(times), np.int64).T
    return since, np.append(BEFORE - 1, np.maximum.accumulate(over))


def _again(width: int, writes: Sequence[Numbers], until: Numbers, highest: Numbers) -> Again | None:
    """The writes at or below an offset that had been acknowledged, or delivered, before the write was sent."""
    sent, last, lowest, by_ns = writes
    before = np.searchsorted(until, sent) - 1
    falls = (before >= 0) & (lowest <= np.maximum.accumulate(highest)[np.maximum(before, 0)])
    telling = np.array([*_telling(np.flatnonzero(falls), writes, until, highest)], np.int64)
    if not len(telling):
        return None
    return Again(last[telling], sent[telling] * width, lowest[telling], by_ns[telling])


def _telling(falls: Numbers, writes: Sequence[Numbers], until: Numbers, highest: Numbers) -> Iterator[int]:
    """The falls (see ``_again``) in the order of time, without those that show nothing more than an earlier fall.

    An earlier fall shows at least as much if it is as low, was acknowledged as early, and its last certain term is not
    later, and if nothing at or above the later fall's offset was acknowledged in between.
    """
    sent, last, lowest, by_ns = writes
    own: list[int] = []
    for n in falls.tolist():
        # (Of two equally low falls the later one shows no less: lower ones are before higher ones.)
        at = bisect_right(own, lowest[n], key=lambda k: lowest[k])
        if at and by_ns[own[at - 1]] <= by_ns[n] and last[own[at - 1]] <= last[n]:
            between = highest[np.searchsorted(until, sent[own[at - 1]]) : np.searchsorted(until, sent[n])]
            if not (len(between) and between.max() >= lowest[n]):
                continue
        own[bisect_left(own, lowest[n], key=lambda k: lowest[k]) :] = [n]
        yield n


def acknowledged() -> pc.Expression:
    """Selects the rows of ``sends`` that were acknowledged with an offset."""
    return (pc.field("outcome") == "ok") & pc.is_valid(pc.field("offset")) & pc.is_valid(pc.field("completed_ns"))


def committed() -> pc.Expression:
    """Selects the rows of ``transactions`` whose commit succeeded."""
    return (pc.field("intent") == "commit") & (pc.field("outcome") == "ok")
