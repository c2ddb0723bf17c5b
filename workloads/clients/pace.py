"""When the next records are due: pure arithmetic on clock readings."""

from dataclasses import dataclass

from harness.core.clock import SECOND_NS


@dataclass
class Pace:
    """A steady rate, in records/s; None is as fast as possible.

    A worker that was blocked catches up on at most ``most_behind_ns`` worth of records, so that it does not flood a
    cluster that comes back. Records that are due within one ``tick_ns`` are handed over together, late by at most that
    time: to wake up for each record would cost more than the record.
    """

    rate: float | None
    start_ns: int
    most_behind_ns: int = SECOND_NS // 2
    tick_ns: int = 5_000_000
    _handed: int = 0
    _ticked_ns: int | None = None

    def due(self, now_ns: int, most: int) -> int:
        """How many records to hand over now, at most ``most``; they count as handed over."""
        if self.rate is None:
            return most
        if self.wait_ns(now_ns):
            return 0
        behind_ns = now_ns - self._due_ns(self._handed)
        if behind_ns > self.most_behind_ns:
            self.start_ns += behind_ns - self.most_behind_ns
        owed = int((now_ns - self.start_ns) * self.rate / SECOND_NS) + 1 - self._handed
        count = max(0, min(most, owed))
        self._handed += count
        self._ticked_ns = now_ns if count == owed else None
        return count

    def wait_ns(self, now_ns: int) -> int:
        """The time until the next record is due."""
        if self.rate is None:
            return 0
        due_ns = self._due_ns(self._handed)
        if self._ticked_ns is not None:
            due_ns = max(due_ns, self._ticked_ns + self.tick_ns)
        return max(0, due_ns - now_ns)

    def _due_ns(self, index: int) -> int:
        assert self.rate is not None
        return self.start_ns + int(index * SECOND_NS / self.rate)
