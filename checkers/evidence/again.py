"""Offsets that were acknowledged twice. A record is acknowledged; a write that is sent later is acknowledged at its
offset, or below: by then the leader's log had been cut, and the record was no longer in it.

Only acknowledgements by the record's own leader or a later one count: a deposed leader may go on writing its own log.
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
    """A record was gone from the leader's log by ``by_ns``, in ``term`` at the latest: no later term took it."""

    term: int
    by_ns: int


@dataclass(frozen=True)
class Again:
    """Groups of writes that were acknowledged at offsets which had been acknowledged before. A row is a group.

    ``first``, ``last``: the terms that its writes may be of. ``sent``: how many of the partition's moments had passed
    when they were sent. ``lowest``: the lowest of their offsets. ``by_ns``: when the last was acknowledged.
    """

    first: Numbers
    last: Numbers
    sent: Numbers
    lowest: Numbers
    by_ns: Numbers

    def gone(self, term: int, offset: int, until: int) -> Gone | None:
        """When a record was gone, where a write shows it; None where none does.

        ``term`` and ``offset`` are the record's; ``until``: how many of the partition's moments had passed when it was
        acknowledged.
        """
        shows = np.flatnonzero((self.first >= term) & (self.lowest <= offset) & (self.sent > until))
        if not len(shows):
            return None
        one = shows[np.lexsort((self.by_ns[shows], self.last[shows]))[0]]
        return Gone(int(self.last[one]), int(self.by_ns[one]))


def acknowledged_again(
    sends: Iterable[pa.Table], elections: Mapping[Partition, Elections], moments: Mapping[Partition, Numbers]
) -> dict[Partition, Again]:
    """Of each partition, the writes that show that its log was cut.

    ``sends``: acknowledged records with COLUMNS, piece by piece. ``moments``: of each partition, ns since origin,
    between two of which all records are judged alike.
    """
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
    begins, ends = (
        np.array([getattr(term, name) for term in elections.terms], np.int64) for name in ("begins_ns", "ends_ns")
    )
    # The first term that was not over yet when it was sent; the last that had begun when it was acknowledged.
    first = np.searchsorted(np.maximum.accumulate(ends), sent)
    last = np.searchsorted(np.minimum.accumulate(begins[::-1])[::-1], until, side="right") - 1
    for n, (since, to) in elections.again:
        first = np.where((since <= until) & (sent <= to), np.minimum(first, n), first)
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
