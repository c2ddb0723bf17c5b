"""When the next records are due: pure arithmetic on clock readings."""

from dataclasses import dataclass

_NS = 1_000_000_000


@dataclass
class Pace:
    """A steady rate, in records/s; None is as fast as possible.

    A worker that was held back catches up on at most ``most_behind_ns`` worth of records: a blocked cluster is not met
    with a flood when it comes back.
    """

    rate: float | None
    start_ns: int
    most_behind_ns: int = _NS // 2
    _given: int = 0

    def due(self, now_ns: int, most: int) -> int:
        """How many records to hand over now, at most ``most``; they count as handed over."""
        if self.rate is None:
            return most
        behind_ns = now_ns - self._due_ns(self._given)
        if behind_ns > self.most_behind_ns:
            self.start_ns += behind_ns - self.most_behind_ns
        owed = int((now_ns - self.start_ns) * self.rate / _NS) + 1 - self._given
        count = max(0, min(most, owed))
        self._given += count
        return count

    def wait_ns(self, now_ns: int) -> int:
        """How long it is until the next record is due."""
        return 0 if self.rate is None else max(0, self._due_ns(self._given) - now_ns)

    def _due_ns(self, index: int) -> int:
        assert self.rate is not None
        return self.start_ns + int(index * _NS / self.rate)
