"""Spare offsets: how many offsets of a leader's log writes may have taken of which nobody knows that they did.

Those are writes that nobody acknowledged, those that survive elsewhere, and those that were in flight across a later
election: they may have been appended before it, without an answer, and sent again to whoever led next, in whose log
they stand. What a producer that is not idempotent sends again may be appended more than once (KIP-98).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.evidence.acting import Acting
from checkers.evidence.elections import NEVER, Elections, Times
from checkers.evidence.leadership import Partition
from checkers.evidence.store import each_partition
from harness.core.guarantees import Configuration

#: What is read of ``sends`` that nobody acknowledged, and of records that are acknowledged elsewhere.
COLUMNS = pa.schema([("topic", pa.string()), ("partition", pa.int32())])

#: What is read of ``sends`` that are acknowledged.
COLUMNS_OF_SENT = ["topic", "partition", "invoked_ns", "completed_ns"]

#: So often one write may have been appended to one log.
_TIMES = 4

#: So many rows are counted at once, at least.
_FEWEST_ROWS = 1 << 17


class InFlight:
    """How many acknowledged writes were in flight across the elections of their partition."""

    def __init__(self, elections: Mapping[Partition, Elections], acting: Callable[[Elections], Acting]) -> None:
        self._windows = {of: _windows(own, acting(own)) for of, own in elections.items()}
        self._counts = {of: np.zeros(len(begins) + 1, np.int64) for of, (begins, _) in self._windows.items()}
        self._any = _united(self._windows.values())
        self._held: list[pa.Table] = []

    def counting(self, sends: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """The same pieces of ``sends``, with COLUMNS_OF_SENT and more, counted as they pass."""
        for piece in sends:
            across = _across(*self._any, piece["invoked_ns"].to_numpy(), piece["completed_ns"].to_numpy()) > 0
            if across.any():
                self._held.append(piece.select(COLUMNS_OF_SENT).filter(pa.array(across)))
            if sum(map(len, self._held)) >= _FEWEST_ROWS:
                self._count()
            yield piece

    def after(self) -> dict[tuple[Partition, int], int]:
        """Of each term of each partition, how many were in flight across an election after it."""
        self._count()
        return {
            (of, term): int(counts[term + 1 :].sum())
            for of, counts in self._counts.items()
            for term in range(len(counts) - 1)
        }

    def _count(self) -> None:
        held, self._held = self._held, []
        if not held:
            return
        topic, partition, *times = pa.concat_tables(held).columns
        sent, until = (column.to_numpy() for column in times)
        for of, here in each_partition(topic, partition):
            if of in self._windows:
                last = _across(*self._windows[of], sent[here], until[here])
                self._counts[of] += np.bincount(last, minlength=len(self._counts[of]))


def _windows(elections: Elections, acting: Acting) -> tuple[Times, Times]:
    """When each election after the first term began, and when no leader of before it acknowledged anything more; and
    one after the last report."""
    begins, ends = elections.begins_and_ends
    over = np.minimum(ends, [acting.ended_ns(n) for n in range(len(ends))])
    for n, (_, to) in elections.again:
        over[n] = max(over[n], min(to, acting.ended_ns(n)))
    seen = np.array([term.seen_ns for term in elections.terms[1:]], np.int64)
    last_ns = max(span.to_ns for span in elections.spans)
    return np.append(begins[1:], last_ns), np.append(np.maximum.accumulate(np.maximum(over[:-1], seen)), NEVER)


def _united(windows: Iterable[tuple[Times, Times]]) -> tuple[Times, Times]:
    """Times as they are covered by any of some."""
    found: list[tuple[int, int]] = []
    for begun, over in sorted(
        (int(one), int(to)) for begins, overs in windows for one, to in zip(begins, overs, strict=True)
    ):
        if found and begun <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], over))
        else:
            found.append((begun, over))
    begins, overs = np.array(found, np.int64).reshape(-1, 2).T
    return begins, overs


def _across(begins: Times, overs: Times, sent: Times, until: Times) -> Times:
    """The last of these windows in which each write was in flight, counted from 1; 0 where it was in none."""
    last = np.searchsorted(begins, until, side="right")
    overs = np.append(np.int64(-NEVER), overs)
    found: Times = np.where(overs[last] >= sent, last, 0)
    return found


def spare_offsets(
    unacknowledged: Iterable[pa.Table],
    elsewhere: Iterable[pa.Table],
    in_flight: Mapping[tuple[Partition, int], int],
    configuration: Configuration,
) -> Mapping[tuple[Partition, int], int]:
    """For each partition and term, the most offsets that such writes take in its leader's log. Both kinds come piece by
    piece, with COLUMNS; a write whose partition is not known may be of any. ``in_flight``: across later elections."""
    found: Counter[Partition | None] = Counter()
    for piece in (*unacknowledged, *elsewhere):
        counts = piece.group_by(COLUMNS.names).aggregate([([], "count_all")])
        for topic, partition, count in zip(*(column.to_pylist() for column in counts.columns), strict=True):
            found[None if partition is None else (topic, partition)] += count
    times = 1 if configuration.idempotence else _TIMES
    return {(of, term): times * (found[of] + found[None] + count) for (of, term), count in in_flight.items()}


def unacknowledged() -> pc.Expression:
    """Which rows of ``sends`` tell no acknowledgement, or none with an offset."""
    return (pc.field("outcome") != "ok") | pc.is_null(pc.field("offset"))
