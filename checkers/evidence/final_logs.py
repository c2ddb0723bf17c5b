"""The final logs as they were read: where each leader epoch stands in them, and where offsets are missing. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from checkers.evidence.elections import NEVER
from checkers.evidence.leadership import Partition
from harness.history.stored_run import StoredRun

Offsets = npt.NDArray[np.int64]

#: The first and the last offset of each hole of a partition, in order.
Holes = Mapping[Partition, tuple[np.ndarray, np.ndarray]]

#: In place of the epoch of a record that has none.
NO_EPOCH = -1

_PLACE = ["topic", "partition"]
_SPAN = ("leader_epoch", "first", "last")


@dataclass(frozen=True)
class Log:
    """The final log of a partition: where each leader epoch begins and ends in it, and where the log does. (Before 0.11
    there are no epochs.)

    ``sparse``: it may lack offsets that no election took: of markers of transactions, or compacted. ``start``: below
    it, retention took all.
    """

    epochs: Offsets
    first: Offsets
    last: Offsets
    end: int
    sparse: bool = False
    start: int = 0

    def begun_at(self, delivered: Mapping[int, int]) -> "Log":
        """The same log, where records of some epochs were once delivered from these offsets on, and are gone.

        A leader appends all of its epoch: a log that has some of it begins it where that leader did.
        """
        begun = [delivered.get(epoch, NEVER) for epoch in self.epochs.tolist()]
        return replace(self, first=np.minimum(self.first, np.array(begun, np.int64)))

    def tells_cut(self, epoch: int | None, offset: int | None) -> bool:
        """Whether it tells that an election after an epoch cut it at an offset or below. Where a marker may stand
        there, it does not: that may be the first of a later epoch, or the last of this one."""
        if offset is None:
            return False
        if epoch is None or not self.sparse or offset >= self.end:
            return True
        later, older = self.epochs > epoch, self.epochs < epoch
        return bool((self.first[later] <= offset).any() or (self.last[older] >= offset).any())

    def reaches(self, epoch: int | None, offset: int | None) -> bool:
        """Whether it has records of an epoch at an offset or above."""
        if epoch is None or offset is None:
            return False
        return bool((self.last[self.epochs == epoch] >= offset).any())

    def epochs_at(self, offsets: Offsets) -> Offsets:
        """The epoch of the record that stands at each of these offsets; NO_EPOCH where none does, or its epoch is not
        known: where epochs fall along the log, records of several may stand there."""
        begun = np.searchsorted(np.sort(self.first), offsets, side="right")
        over = np.searchsorted(np.sort(self.last), offsets)
        # (Of what has begun all but one is over: the rest of their sum is its own.)
        left = self._summed(self.first)[begun] - self._summed(self.last)[over]
        return np.where(begun - over == 1, left, NO_EPOCH)

    def _summed(self, by: Offsets) -> Offsets:
        """The sum of none of the epochs, of the first, of the first two and so on, in some order."""
        return np.append(0, np.cumsum(self.epochs[np.argsort(by)]))

    @property
    def goes_on(self) -> bool:
        """Whether it begins above its start: it was not begun anew by a broker without any record."""
        begins = int(self.first.min()) if len(self.first) else self.end
        return not self.sparse and begins > self.start

    def cut(self, epoch: int | None, offset: int | None) -> tuple[bool, int | None]:
        """Whether an election after an epoch may have taken what stood at an offset; and the epoch by which one had.

        It has not where the log goes on in that epoch, or has another record of it there. Where an older epoch goes on,
        a leader of before was elected again, out of sync, with what it had written alone.
        """
        if epoch is None or offset is None or not len(self.epochs):
            return True, None
        if self.reaches(epoch, offset):
            return False, None
        later = self.epochs > epoch
        by = self.epochs[later & (self.first <= offset)]
        if len(by) or offset >= self.end:
            return True, int(by.min()) if len(by) else None
        if bool((self.last[self.epochs < epoch] >= offset).any()):
            return True, int(self.epochs[later].min()) if later.any() else None
        return self.sparse, None


def sparse(stored: StoredRun) -> bool:
    """Whether the logs of a run may lack offsets that nothing took: markers of transactions, or compacted."""
    return stored.count("transactions") > 0 or stored.file.compacted


def logs(stored: StoredRun, epochs: pa.Table) -> dict[Partition, Log]:
    """The final logs of a run that were read to their ends.

    ``epochs``: topic, partition, leader_epoch (NO_EPOCH where records have none), first, last; in order.
    """
    ends = {of: (row["log_start"], row["log_end"]) for of, row in stored.ends.items() if row["complete"]}
    known = epochs.filter(pc.greater(epochs["leader_epoch"], NO_EPOCH))
    each = known.group_by(_PLACE, use_threads=False).aggregate([(name, "list") for name in _SPAN])
    rows = {(row["topic"], row["partition"]): row for row in each.to_pylist()}
    found: dict[Partition, Log] = {}
    for of, (start, end) in ends.items():
        row = rows.get(of, {})
        each_epoch, first, last = (np.array(row.get(f"{name}_list", ()), np.int64) for name in _SPAN)
        found[of] = Log(each_epoch, first, last, end, sparse(stored), start)
    return found


def inside(holes: Holes, of: Partition, offsets: np.ndarray) -> np.ndarray:
    """Which of these offsets of a partition are in a hole."""
    if of not in holes:
        return np.zeros(len(offsets), bool)
    first, last = holes[of]
    nearest = np.searchsorted(first, offsets, side="right") - 1
    return np.asarray((nearest >= 0) & (offsets <= last[np.maximum(nearest, 0)]))
