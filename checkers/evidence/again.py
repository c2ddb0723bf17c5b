"""Offsets that were acknowledged again: an acknowledgement at or below a record's offset, of what was sent once that
record had been acknowledged, shows that its leader's log had been cut by then, whatever became of it later.

Only what can be told of leaders from the record's own on: one that was deposed may go on in a log of its own.
"""

from collections.abc import Iterable, Mapping
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
_KEYS = ["first", "last", "sent", "until"]


@dataclass(frozen=True)
class Gone:
    """A record was gone from its leader's log by ``by_ns``: no leader after ``term`` was the first to lack it."""

    term: int
    by_ns: int


@dataclass(frozen=True)
class Again:
    """What was acknowledged at an offset that had been acknowledged before, alike in the terms that it may be of (from
    ``first`` to ``last``) and in the moments before which it was sent (``sent``, a number of them).

    ``lowest``: the lowest such offset, ``by_ns``: when the last was acknowledged.
    """

    first: Numbers
    last: Numbers
    sent: Numbers
    lowest: Numbers
    by_ns: Numbers

    def gone(self, term: int, offset: int, until: int) -> Gone | None:
        """Whether a record of a term was gone before the final read: one at this offset that was acknowledged before
        that many moments were over."""
        shows = np.flatnonzero((self.first >= term) & (self.lowest <= offset) & (self.sent > until))
        if not len(shows):
            return None
        one = shows[np.lexsort((self.by_ns[shows], self.last[shows]))[0]]
        return Gone(int(self.last[one]), int(self.by_ns[one]))


def acknowledged_again(
    sends: Iterable[pa.Table], elections: Mapping[Partition, Elections], moments: Mapping[Partition, Numbers]
) -> dict[Partition, Again]:
    """Of each partition, what shows that its log was cut. ``sends``: acknowledged records, piece by piece, with
    COLUMNS; ``moments``: between two of a partition's all records are alike."""
    folded: dict[Partition, list[pa.Table]] = {}
    for piece in filter(len, sends):
        topic, partition, *columns = (piece[name] for name in COLUMNS)
        sent, until, offset = (column.to_numpy() for column in columns)
        for of, here in each_partition(topic, partition):
            if of in elections:
                marked = _marked(elections[of], moments[of], sent[here], until[here], offset[here])
                folded.setdefault(of, []).append(_folded(marked))
    return {
        of: again for of, parts in folded.items() if (again := _again(_folded(pa.concat_tables(parts)))) is not None
    }


def _marked(elections: Elections, moments: Numbers, sent: Numbers, until: Numbers, offset: Numbers) -> pa.Table:
    begins, ends = (np.array([getattr(term, name) for term in elections.terms]) for name in ("begins_ns", "ends_ns"))
    # The first term that was not over yet when it was sent; the last that had begun when it was acknowledged.
    first = np.searchsorted(np.maximum.accumulate(ends), sent) if len(ends) else np.zeros(len(sent), np.int64)
    last = np.searchsorted(begins, until, side="right") - 1
    which = [np.searchsorted(moments, at, side="right") for at in (sent, until)]
    return pa.table([first, last, *which, offset, offset, until], [*_KEYS, "lowest", "highest", "by_ns"])


def _folded(marked: pa.Table) -> pa.Table:
    how = [("lowest", "min"), ("highest", "max"), ("by_ns", "max")]
    folded = marked.group_by(_KEYS, use_threads=False).aggregate(how)
    names = {"_".join(one): one[0] for one in how}
    return folded.rename_columns([names.get(name, name) for name in folded.column_names])


def _again(folded: pa.Table) -> Again | None:
    """What is at or below an offset that had been acknowledged before it was sent."""
    by_until = folded.sort_by("until")
    until, highest = by_until["until"].to_numpy(), np.maximum.accumulate(by_until["highest"].to_numpy())
    sent, lowest = folded["sent"].to_numpy(), folded["lowest"].to_numpy()
    before = np.searchsorted(until, sent) - 1
    falls = (before >= 0) & (lowest <= highest[np.maximum(before, 0)])
    known = falls & (folded["first"].to_numpy() <= folded["last"].to_numpy())
    if not known.any():
        return None
    left = folded.filter(pa.array(known))
    return Again(*(left[name].to_numpy() for name in ("first", "last", "sent", "lowest", "by_ns")))


def acknowledged() -> pc.Expression:
    """Which rows of ``sends`` tell an offset at which they were acknowledged."""
    return (pc.field("outcome") == "ok") & pc.is_valid(pc.field("offset")) & pc.is_valid(pc.field("completed_ns"))
