"""Spare offsets: the most offsets of a leader's log that may belong to writes which are not known to be there.

Such writes are those that were never acknowledged, those that are at another offset in the final log, and those that
were in flight across a later election. The last may have been appended before the election without an answer, and sent
again to the next leader, whose log has them. A producer that is not idempotent may append a record more than once when
it sends it again (KIP-98), and it sends a record again if no answer comes in time, even if the same leader acknowledges
it later. If a fault may have kept answers from producers, it is not known how many writes were sent again.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.evidence.acting import Acting
from checkers.evidence.elections import Elections
from checkers.evidence.intervals import NEVER, Times
from checkers.evidence.store import each_partition
from checkers.leadership import Partition
from harness.core.guarantees import Configuration

#: The columns read of unacknowledged ``sends``, and of records acknowledged elsewhere.
COLUMNS = pa.schema([("topic", pa.string()), ("partition", pa.int32())])

#: The columns read of acknowledged ``sends``.
COLUMNS_OF_SENT = ["topic", "partition", "invoked_ns", "completed_ns"]

#: How often one write may have been appended to one log, at most. It is a choice: each time after the first needs one
#: more request whose answer was lost. A higher number leaves more losses undecided.
_TIMES = 4

#: The fewest rows that are counted at once. A choice: a call costs as much for fewer.
_FEWEST_ROWS = 1 << 17


class InFlight:
    """Counts acknowledged writes that were in flight across elections of their partition, or for ``timeout_ns`` or
    longer, so that producers sent them again (NEVER: with idempotence that takes no more offsets)."""

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
        self._any = _union(self._windows.values())
        self._held: list[pa.Table] = []

    def counting(self, sends: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Pass on the pieces of ``sends``, and count them. They have at least COLUMNS_OF_SENT."""
        for piece in sends:
            sent, until = piece["invoked_ns"].to_numpy(), piece["completed_ns"].to_numpy()
            across = (last_window(*self._any, sent, until) > 0) | (until - sent >= self._timeout_ns)
            if across.any():
                self._held.append(piece.select(COLUMNS_OF_SENT).filter(pa.array(across)))
            if sum(map(len, self._held)) >= _FEWEST_ROWS:
                self._count()
            yield piece

    def after(self) -> dict[tuple[Partition, int], int]:
        """For each term of each partition, the number of writes in flight across a later election, or too long in this
        term."""
        self._count()
        return {
            (of, term): int(counts[term + 1 :].sum() + self._slow[of][term])
            for of, counts in self._counts.items()
            for term in range(len(self._slow[of]))
        }

    def _count(self) -> None:
        held, self._held = self._held, []
        if not held:
            return
        topic, partition, *times = pa.concat_tables(held).columns
        sent, until = (column.to_numpy() for column in times)
        for of, here in each_partition(topic, partition):
            if of in self._windows:
                last = last_window(*self._windows[of], sent[here], until[here])
                self._counts[of] += np.bincount(last, minlength=len(self._counts[of]))
                slow = here[until[here] - sent[here] >= self._timeout_ns]
                for n, (begins, over) in enumerate(zip(*self._led[of], strict=True) if len(slow) else ()):
                    self._slow[of][n] += np.count_nonzero((until[slow] >= begins) & (sent[slow] <= over))


def _led(elections: Elections, acting: Acting) -> tuple[Times, Times]:
    """The beginning of each term, and the time after which its leader acknowledged nothing more."""
    begins, ends = elections.begins_and_ends
    over = np.minimum(ends, [acting.ended_ns(n) for n in range(len(ends))])
    for n, (_, to) in elections.again:
        over[n] = max(over[n], min(to, acting.ended_ns(n)))
    return begins, over


def disturbed(elections: Elections, acting: Acting, configuration: Configuration) -> list[int]:
    """The terms in which faults may have kept answers from producers, so that they sent again what the leader had
    appended. With acks=all this includes faults after which too few brokers were in sync: then the leader refuses
    records that it has appended."""
    if configuration.idempotence:
        return []
    of_all = configuration.acks_all and configuration.min_insync_replicas > 1
    led = zip(*_led(elections, acting), strict=True)
    return [n for n, (begins, over) in enumerate(led) if acting.keeps_answers(n, int(begins), int(over), of_all)]


def _windows(elections: Elections, over: Times) -> tuple[Times, Times]:
    """For each election after the first term, its beginning, and the time after which no earlier leader acknowledged
    anything more; and one window after the last report. ``over``: the end of each term."""
    begins, _ = elections.begins_and_ends
    seen = np.array([term.seen_ns for term in elections.terms[1:]], np.int64)
    last_ns = max(span.to_ns for span in elections.spans)
    return np.append(begins[1:], last_ns), np.append(np.maximum.accumulate(np.maximum(over[:-1], seen)), NEVER)


def _union(windows: Iterable[tuple[Times, Times]]) -> tuple[Times, Times]:
    """The union of several lists of windows."""
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


def last_window(begins: Times, overs: Times, sent: Times, until: Times) -> Times:
    """For each write the last window in which it was in flight, counted from 1; 0 if there is none."""
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
    """For each partition and term, the most offsets of the leader's log that such writes take; terms in ``without``,
    for which this is not known, are left out. ``unacknowledged`` and ``elsewhere`` come piece by piece, with COLUMNS. A
    write with an unknown partition counts for every partition. ``in_flight``: as ``InFlight.after`` returns it."""
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
    """Selects the rows of ``sends`` without an acknowledgement, or without its offset."""
    return (pc.field("outcome") != "ok") | pc.is_null(pc.field("offset"))
