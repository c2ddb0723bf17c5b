"""One clock for every process of a run: nanoseconds of CLOCK_MONOTONIC since the run's origin."""

import time
from dataclasses import dataclass

#: Nanoseconds of a second, and of a millisecond.
SECOND_NS = 1_000_000_000
MS_NS = 1_000_000


@dataclass(frozen=True)
class ClockOffset:
    """How many seconds another wall clock is ahead of this machine's, and the largest possible error."""

    seconds: float
    error: float


@dataclass(frozen=True)
class Clock:
    """CLOCK_MONOTONIC is the same for every process of a machine, so workers need to share only the origin."""

    origin_ns: int

    @classmethod
    def start(cls) -> "Clock":
        """A clock that reads 0 now."""
        return cls(time.monotonic_ns())

    def now(self) -> int:
        """Nanoseconds since the origin."""
        return time.monotonic_ns() - self.origin_ns
