"""Maps processes, keys and values of a Jepsen history to workers, partitions and records."""

from array import array
from typing import Any

from harness.history.schema import SEQUENCE_BITS, worker_of

#: The number of workers that fit into a record id, which is an int64.
MOST_WORKERS = 1 << (63 - SEQUENCE_BITS)
#: The worker of the records that nobody sent.
NOBODY = MOST_WORKERS - 1
_MOST_PARTITIONS = 1 << 31
_NONE = -1
#: A value that is at most this much greater than all earlier ones still gets an entry in the array.
_LEAP = 1 << 12


class Threads:
    """Which thread a process belongs to, and which incarnation of the thread it is.

    If a process crashes, its thread continues as a process whose number is higher by the number of threads (Jepsen's
    ``concurrency``; jepsen.generator.context, with-next-process). The file does not have that number. It becomes known
    when the first process appears that replaces a crashed one. Two processes are never taken for one in any case.
    """

    def __init__(self) -> None:
        self.concurrency: int | None = None
        self._highest = -1
        self._ended: set[int] = set()

    def thread(self, process: int) -> tuple[int, int]:
        """The worker and incarnation of a process."""
        if self.concurrency is None and process > self._highest:
            self.concurrency = self._gap(process)
            self._highest = process
        return (process, 0) if self.concurrency is None else (process % self.concurrency, process // self.concurrency)

    def ended(self, process: int) -> None:
        """Note that a process has ended: it has no more operations."""
        if self.concurrency is None:
            self._ended.add(process)

    def _gap(self, process: int) -> int | None:
        gaps = (process - ended for ended in self._ended)
        return min((gap for gap in gaps if gap > self._highest), default=None)


class Keys:
    """The partition of a key: an integer is its own number; other keys are numbered in the order of their first use."""

    def __init__(self) -> None:
        self.named: dict[str, int] = {}
        self._are_integers = False

    def partition(self, key: Any) -> int | None:
        """The partition of a key; None if it cannot be a key of this history."""
        if type(key) is int:
            self._are_integers = True
            return key if 0 <= key < _MOST_PARTITIONS and not self.named else None
        if self._are_integers:
            return None
        return self.named.setdefault(str(key), len(self.named))


class RecordIds:
    """The record id of each value of a key. Small integers, as Jepsen writes them, take eight bytes each."""

    def __init__(self) -> None:
        self._small: dict[int, array[int]] = {}
        self._others: dict[tuple[int, str], int] = {}

    def add(self, partition: int, value: Any, record: int) -> bool:
        """Add a record. False if somebody already sent this value of the key."""
        known = self.find(partition, value)
        if known is not None and worker_of(known) != NOBODY:
            return False
        small = self._small.setdefault(partition, array("q"))
        if type(value) is int and 0 <= value < len(small) + _LEAP and (partition, repr(value)) not in self._others:
            small.extend([_NONE] * (value + 1 - len(small)))
            small[value] = record
        else:
            self._others[partition, repr(value)] = record
        return True

    def find(self, partition: int, value: Any) -> int | None:
        """The record; None if nobody sent this value of the key."""
        small = self._small.get(partition, ())
        if type(value) is int and 0 <= value < len(small) and small[value] != _NONE:
            return small[value]
        return self._others.get((partition, repr(value))) if self._others else None
