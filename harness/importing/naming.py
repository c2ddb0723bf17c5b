"""How the processes, keys and values of a Jepsen history are called in ours."""

from array import array
from typing import Any

from harness.history.schema import SEQUENCE_BITS, worker_of

#: A record id is an int64: this many workers have room in it.
MOST_WORKERS = 1 << (63 - SEQUENCE_BITS)
#: The worker of the records that nobody sent.
NOBODY = MOST_WORKERS - 1
_MOST_PARTITIONS = 1 << 31
_NONE = -1
#: How far beyond the values so far one may be and still have its entry in the array.
_LEAP = 1 << 12


class Threads:
    """Which thread a process belongs to, and which incarnation of it the process is.

    Where a process crashed, its thread goes on as the process whose number is higher by the number of threads (Jepsen's
    ``concurrency``; jepsen.generator.context, with-next-process). The file does not have that number: it shows when the
    first process appears that took over from a crashed one. Two processes are never taken for one, whatever it is.
    """

    def __init__(self) -> None:
        self.concurrency: int | None = None
        self._highest = -1
        self._ended: set[int] = set()

    def thread(self, process: int) -> tuple[int, int]:
        """The worker and incarnation that a process is."""
        if self.concurrency is None and process > self._highest:
            self.concurrency = self._gap(process)
            self._highest = process
        return (process, 0) if self.concurrency is None else (process % self.concurrency, process // self.concurrency)

    def ended(self, process: int) -> None:
        """Note that no operation of a process can follow."""
        if self.concurrency is None:
            self._ended.add(process)

    def _gap(self, process: int) -> int | None:
        gaps = (process - ended for ended in self._ended)
        return min((gap for gap in gaps if gap > self._highest), default=None)


class Keys:
    """The partition that a key is: an integer is its own number, other keys are numbered as they are met."""

    def __init__(self) -> None:
        self.named: dict[str, int] = {}

    def partition(self, key: Any) -> int | None:
        """None for what cannot be a key of this history."""
        if type(key) is int:
            return key if 0 <= key < _MOST_PARTITIONS and not self.named else None
        return self.named.setdefault(str(key), len(self.named))


class Records:
    """The record id of each value of a key. Small integers, as Jepsen writes them, take eight bytes each."""

    def __init__(self) -> None:
        self._small: dict[int, array[int]] = {}
        self._others: dict[tuple[int, str], int] = {}

    def add(self, partition: int, value: Any, record: int) -> bool:
        """Whether no one had sent this value of the key so far."""
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
        """The record, or None where no one sent this value of the key."""
        small = self._small.get(partition, ())
        if type(value) is int and 0 <= value < len(small) and small[value] != _NONE:
            return small[value]
        return self._others.get((partition, repr(value))) if self._others else None
