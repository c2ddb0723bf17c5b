"""Spare offsets: how many offsets of a leader's log writes may have taken of which nobody knows that they did.

Those are writes that nobody acknowledged, those that survive elsewhere, and those that were in flight across a later
election: they may have been appended before it, without an answer, and sent again to whoever led next, in whose log
they stand. What a producer that is not idempotent sends again may be appended more than once (KIP-98), and it sends
again what nobody answered in time, be it acknowledged by the same leader. Where a fault may have kept answers from
producers, nobody knows how many writes they sent again.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

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
    """How many acknowledged writes were in flight across the elections of their partition, or for so long that
    producers sent them again (``timeout_ns``; NEVER: that takes no offset more)."""

    def __init__(
        self,
        elections: Mapping[Partition, Elections],
        acting: Callable[[Elections], Acting],
        timeout_ns: int = NEVER,
    ) -> None:
        self._timeout_ns = timeout_ns
        self._led = {of: _led(own, acting(own)) for of, own in elections.items()}
        self._windows = {of: _windows(own, self._led[of][1]) for of, own in elections.items()}
        self._slow = {of: np.zeros(len(begins), np.int64) for of, (begins, _) in self._led.items()}
        self._counts = {of: np.zeros(len(begins) + 1, np.int64) for of, (begins, _) in self._windows.items()}
        self._any = _united(self._windows.values())
        self._held: list[pa.Table] = []

    def counting(self, sends: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """The same pieces of ``sends``, with COLUMNS_OF_SENT and more, counted as they pass."""
        for piece in sends:
            sent, until = piece["invoked_ns"].to_numpy(), piece["completed_ns"].to_numpy()
            across = (_across(*self._any, sent, until) > 0) | (until - sent >= self._timeout_ns)
            if across.any():
                self._held.append(piece.select(COLUMNS_OF_SENT).filter(pa.array(across)))
            if sum(map(len, self._held)) >= _FEWEST_ROWS:
                self._count()
            yield piece

    def after(self) -> dict[tuple[Partition, int], int]:
        """Of each term of each partition, how many were in flight across an election after it, or long in it."""
        self._count()
        return {
            (of, term): int(counts[term + 1 :].sum() + self._slow[of][term])
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
                slow = here[until[here] - sent[here] >= self._timeout_ns]
                for n, (begins, over) in enumerate(zip(*self._led[of], strict=True) if len(slow) else ()):
                    self._slow[of][n] += np.count_nonzero((until[slow] >= begins) & (sent[slow] <= over))


def _led(elections: Elections, acting: Acting) -> tuple[Times, Times]:
    """When each term began, and when its leader acknowledged nothing more."""
    begins, ends = elections.begins_and_ends
    over = np.minimum(ends, [acting.ended_ns(n) for n in range(len(ends))])
    for n, (_, to) in elections.again:
        over[n] = max(over[n], min(to, acting.ended_ns(n)))
    return begins, over


def disturbed(elections: Elections, acting: Acting, configuration: Configuration) -> list[int]:
    """The terms in which faults may have kept answers from producers, so that those sent again what its leader had
    appended: with acks=all that one refuses what it had appended where too few were left in sync."""
    if configuration.idempotence:
        return []
    of_all = configuration.acks_all and configuration.min_insync_replicas > 1
    led = zip(*_led(elections, acting), strict=True)
    return [n for n, (begins, over) in enumerate(led) if acting.keeps_answers(n, int(begins), int(over), of_all)]


def _windows(elections: Elections, over: Times) -> tuple[Times, Times]:
    """When each election after the first term began, and when no leader of before it acknowledged anything more; and
    one after the last report. ``over``: when each term was."""
    begins, _ = elections.begins_and_ends
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
    without: Collection[tuple[Partition, int]] = (),
) -> Mapping[tuple[Partition, int], int]:
    """For each partition and term, but those of which nobody knows (``without``), the most offsets that such writes
    take in its leader's log. Both kinds come piece by piece, with COLUMNS; a write whose partition is not known may be
    of any. ``in_flight``: across later elections, or for long."""
    found: Counter[Partition | None] = Counter()
    for piece in (*unacknowledged, *elsewhere):
        counts = piece.group_by(COLUMNS.names).aggregate([([], "count_all")])
        for topic, partition, count in zip(*(column.to_pylist() for column in counts.columns), strict=True):
            found[None if partition is None else (topic, partition)] += count
    times = 1 if configuration.idempotence else _TIMES
    return {
        (of, term): times * (found[of] + found[None] + count)
        for (of, term), count in in_flight.items()
        if (of, term) not in without
    }


def unacknowledged() -> pc.Expression:
    """Which rows of ``sends`` tell no acknowledgement, or none with an offset."""
    return (pc.field("outcome") != "ok") | pc.is_null(pc.field("offset"))
