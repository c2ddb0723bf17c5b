"""The final logs: the offsets of each leader epoch in them, and the offsets that are missing. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from checkers.evidence.intervals import NEVER
from checkers.leadership import Partition
from harness.history.schema import PARTITION
from harness.history.stored_run import StoredRun

Offsets = npt.NDArray[np.int64]

#: By partition: the first and the last offsets of its holes, in order.
Holes = Mapping[Partition, tuple[np.ndarray, np.ndarray]]

#: The epoch of a record without one.
NO_EPOCH = -1

_SPAN = ("leader_epoch", "first", "last")


@dataclass(frozen=True)
class Log:
    """The final log of a partition: the first and last offset of each leader epoch, and the log's start and end.
    (Before 0.11 there are no epochs.)

    ``sparse``: it may lack offsets for other reasons than an election: transaction markers, or compaction. ``start``:
    retention deleted everything below it. ``whole``: nothing can stand at its end or above. (A read of committed
    records alone ends at the last stable offset: where that is in the log, nobody may know.) ``unseen``: at most this
    many offsets have a marker, or a record that a reader of committed records does not see.
    """

    epochs: Offsets
    first: Offsets
    last: Offsets
    end: int
    sparse: bool = False
    start: int = 0
    whole: bool = True
    unseen: int = 0

    def begun_at(self, delivered: Mapping[int, int]) -> "Log":
        """The same log, in which an epoch begins no later than its first delivered record. ``delivered``: by epoch, the
        first offset of records that were delivered but are gone.

        All records of an epoch come from one leader, so in every log that has some of them the epoch begins at the same
        offset.
        """
        begun = [delivered.get(epoch, NEVER) for epoch in self.epochs.tolist()]
        return replace(self, first=np.minimum(self.first, np.array(begun, np.int64)))

    def shows_cut(self, epoch: int | None, offset: int | None) -> bool:
        """Whether the log shows that an election after ``epoch`` cut it at ``offset`` or below. A sparse log may not
        show it: a marker at that offset may be the first record of a later epoch, or the last of this one."""
        if offset is None:
            return False
        if epoch is None or not self.sparse or (self.whole and offset >= self.end):
            return True
        later, older = self.epochs > epoch, self.epochs < epoch
        return bool((self.first[later] <= offset).any() or (self.last[older] >= offset).any())

    def reaches(self, epoch: int | None, offset: int | None) -> bool:
        """Whether the log has a record of ``epoch`` at ``offset`` or above."""
        if epoch is None or offset is None:
            return False
        return bool((self.last[self.epochs == epoch] >= offset).any())

    def next_offset(self, offset: int) -> int:
        """Where the next epoch begins above an offset, or else the log ends; the offset itself if it is not below."""
        above = self.first[self.first > offset]
        return max(offset, int(above.min()) if len(above) else self.end)

    def epochs_at(self, offsets: Offsets) -> Offsets:
        """The epoch of the record at each of these offsets. NO_EPOCH if there is no record, or if the epoch is not
        known because epochs overlap there."""
        begun = np.searchsorted(np.sort(self.first), offsets, side="right")
        over = np.searchsorted(np.sort(self.last), offsets)
        # (If exactly one of the epochs that have begun is not over, the difference of the sums is that epoch.)
        left = self._summed(self.first)[begun] - self._summed(self.last)[over]
        return np.where(begun - over == 1, left, NO_EPOCH)

    def _summed(self, by: Offsets) -> Offsets:
        """The cumulative sums of the epochs, in the order of ``by``, from 0 on."""
        return np.append(0, np.cumsum(self.epochs[np.argsort(by)]))

    @property
    def starts_later(self) -> bool:
        """Whether the first record is above the log start: if so, no broker without any record began the log anew."""
        begins = int(self.first.min()) if len(self.first) else self.end
        return not self.sparse and begins > self.start

    def cut(self, epoch: int | None, offset: int | None) -> tuple[bool, int | None]:
        """Whether an election after ``epoch`` may have taken the record at ``offset``; and the epoch by which it was
        taken, if known.

        It cannot have taken it if the log has a record of the epoch at that offset or above. If an older epoch reaches
        beyond the offset, an earlier leader was elected again out of sync, with records that only it had.
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
    """Whether the logs of a run may lack offsets though no record was taken: transaction markers, or compaction."""
    return stored.count("transactions") > 0 or stored.file.compacted


def logs(stored: StoredRun, epochs: pa.Table) -> dict[Partition, Log]:
    """The final logs of a run that were read to the end.

    ``epochs``: topic, partition, leader_epoch (NO_EPOCH if records have none), first, last; in order.
    """
    ends = {of: (row["log_start"], row["log_end"]) for of, row in stored.ends.items() if row["complete"]}
    known = epochs.filter(pc.greater(epochs["leader_epoch"], NO_EPOCH))
    each = known.group_by(PARTITION, use_threads=False).aggregate([(name, "list") for name in _SPAN])
    rows = {(row["topic"], row["partition"]): row for row in each.to_pylist()}
    read_committed, found = stored.file.configuration.read_committed, dict[Partition, Log]()
    unseen = stored.count("transactions") + (stored.count("sends") if read_committed else 0)
    unseen = NEVER if stored.file.compacted else unseen
    for of, (start, end) in ends.items():
        row = rows.get(of, {})
        each_epoch, first, last = (np.array(row.get(f"{name}_list", ()), np.int64) for name in _SPAN)
        whole = not read_committed or of in stored.stable_ends
        found[of] = Log(each_epoch, first, last, end, sparse(stored), start, whole, unseen)
    return found


def inside(holes: Holes, of: Partition, offsets: np.ndarray) -> np.ndarray:
    """For each of these offsets of a partition, whether it is in a hole."""
    if of not in holes:
        return np.zeros(len(offsets), bool)
    first, last = holes[of]
    nearest = np.searchsorted(first, offsets, side="right") - 1
    return np.asarray((nearest >= 0) & (offsets <= last[np.maximum(nearest, 0)]))
