"""How much of its part of the final log a leader may have written by a time. A log of one term only grows, and a write
that was sent later was not in it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from checkers.evidence.again import COLUMNS
from checkers.evidence.elections import Elections
from checkers.evidence.final_logs import Log
from checkers.evidence.intervals import Times
from checkers.evidence.store import each_partition
from checkers.leadership import Partition

#: How many writes of each term have the time kept at which they were sent. Those of a leader that has just been elected
#: and those of its predecessor that does not know of it yet are in flight beside each other: some hundreds.
MOST_SENT = 4096

#: The same of records that are gone, with the names of COLUMNS.
_GONE = ["topic", "partition", "sent_ns", "acknowledged_ns", "offset"]

_NONE = np.empty(0, np.int64)


@dataclass(frozen=True)
class LeaderWrites:
    """What is known of the writes in a leader's part of the final log. ``sent``: when those were sent that were
    acknowledged there, in order, the first MOST_SENT. ``others``: how many offsets of it have something else, as a
    write without an answer, or a copy: it may have been written at any time. ``twice``: the highest offset of it where
    two acknowledged records are gone, one of them since the term began. One log has an offset once: so one of these was
    perhaps the leader's own, and its log reached as far before it wrote what stands there now."""

    sent: Times
    others: int = 0
    twice: int = -1

    def by(self, at_ns: int | None) -> int | None:
        """How many the leader may have written by a time, at most; None if that is not known."""
        if at_ns is None:
            return None
        count = int(np.searchsorted(self.sent, at_ns, side="right"))
        return None if count == MOST_SENT else count + self.others


@dataclass
class _Part:
    """The part of a final log from one term: how many acknowledged writes stand in it, and the offsets of those that
    are gone, with the times of their acknowledgements."""

    begins_ns: int
    first: int
    last: int
    sent: Times
    in_log: int = 0
    gone: list[tuple[Times, Times]] = field(default_factory=list)

    def here(self, offset: Times) -> Times:
        """Which offsets belong to it, as indices."""
        return np.flatnonzero((self.first <= offset) & (offset <= self.last))

    @property
    def twice(self) -> int:
        """The highest offset where two records are gone, one of them acknowledged since the term began; or -1."""
        gone, until = (np.concatenate(each) for each in zip(*self.gone, strict=True)) if self.gone else (_NONE, _NONE)
        offsets, which, count = np.unique(gone, return_inverse=True, return_counts=True)
        since = np.zeros(len(offsets), bool)
        since[which[until >= self.begins_ns]] = True
        return int(offsets[(count > 1) & since].max(initial=-1))


class WriteCounter:
    """Counts writes in the parts of the final ``logs`` of all terms but the first."""

    def __init__(self, elections: Mapping[Partition, Elections], logs: Mapping[Partition, Log]) -> None:
        self._parts = {of: dict(_parts(own, logs[of])) for of, own in elections.items() if of in logs}

    def counting(self, sends: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Pass on the pieces of acknowledged ``sends``, and count them. They have at least COLUMNS of
        checkers/evidence/again.py."""
        for piece in sends:
            for part, sent, until, _ in self._of_each(piece.select(COLUMNS)):
                own = sent[until >= part.begins_ns]
                part.in_log += len(own)
                early = own[own < part.sent[-1]] if len(part.sent) == MOST_SENT else own
                if len(early):
                    part.sent = np.sort(np.append(part.sent, early))[:MOST_SENT].copy()
            yield piece

    def without(self, gone: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Pass on the pieces of records that are not at their acknowledged offset, and no longer count them as there.
        They have COLUMNS_OF_GONE."""
        for piece in gone:
            for part, _, until, offset in self._of_each(piece.select(_GONE).rename_columns(COLUMNS).drop_null()):
                part.in_log -= int(np.count_nonzero(until >= part.begins_ns))
                part.gone.append((offset, until))
            yield piece

    def _of_each(self, writes: pa.Table) -> Iterator[tuple[_Part, Times, Times, Times]]:
        """Each part with writes, and when these were sent and acknowledged, and where."""
        sent, until, offset = (writes[name].to_numpy() for name in COLUMNS[2:])
        for of, here in each_partition(writes["topic"], writes["partition"]):
            for part in self._parts.get(of, {}).values():
                if len(its := here[part.here(offset[here])]):
                    yield part, sent[its], until[its], offset[its]

    def each(self) -> Mapping[tuple[Partition, int], LeaderWrites]:
        """For each partition and term with a part of its own in the final log, what was counted."""
        return {
            (of, n): LeaderWrites(part.sent, max(part.last + 1 - part.first - part.in_log, 0), part.twice)
            for of, parts in self._parts.items()
            for n, part in parts.items()
        }


def _parts(elections: Elections, log: Log) -> Iterator[tuple[int, _Part]]:
    for n, term in enumerate(elections.terms):
        own = log.epochs == term.epoch
        if n and own.any():
            first, last = int(log.first[own].min()), int(log.last[own].max())
            yield n, _Part(term.begins_ns, first, last, _NONE)
