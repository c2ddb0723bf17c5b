"""Intervals of time with a fast lookup. Pure."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate

import numpy as np
import numpy.typing as npt

#: Instead of a time: earlier than any, and later than any.
BEFORE = -(1 << 62)
NEVER = 1 << 62

Times = npt.NDArray[np.int64]
#: The beginning and end of a time.
Window = tuple[int, int]

#: The end of no interval: the smallest int64, which even ``BEFORE`` is after.
_NONE = -(1 << 63)


class Intervals:
    """Intervals of time, which may overlap, in the order of their beginnings."""

    def __init__(self, times: Iterable[tuple[int, int]]) -> None:
        each = sorted((begun, over, n) for n, (begun, over) in enumerate(times))
        self._times = [(begun, over) for begun, over, _ in each]
        self._which = [n for _, _, n in each]
        self._begun = [begun for begun, _ in self._times]
        #: For each interval, the latest end of all up to it.
        self._latest = list(accumulate((over for _, over in self._times), max))

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(self._times)

    def cover(self, from_ns: int, to_ns: int) -> bool:
        """Whether the intervals cover another interval completely: one alone, or several that overlap by more than an
        instant."""
        latest = self._latest_begun_by(from_ns)
        while latest < to_ns:
            before = bisect_left(self._begun, latest)
            if not before or self._latest[before - 1] <= latest:
                return False
            latest = self._latest[before - 1]
        return True

    def meet(self, from_ns: int, to_ns: int) -> bool:
        """Whether any interval overlaps the given one, or shares its first or last instant."""
        return self._latest_begun_by(to_ns) >= from_ns

    def meeting(self, from_ns: int, to_ns: int) -> list[tuple[int, int]]:
        """The intervals that overlap the given one, or share its first or last instant, in order."""
        return [self._times[n] for n in self._meeting(from_ns, to_ns)]

    def which(self, from_ns: int, to_ns: int) -> list[int]:
        """The indices of these intervals in the constructor's argument."""
        return [self._which[n] for n in self._meeting(from_ns, to_ns)]

    def _meeting(self, from_ns: int, to_ns: int) -> list[int]:
        found = []
        for n in range(bisect_right(self._begun, to_ns) - 1, -1, -1):
            if self._latest[n] < from_ns:
                break
            if self._times[n][1] >= from_ns:
                found.append(n)
        return found[::-1]

    def left(self, at_ns: int) -> int:
        """The first instant from a time on that no interval contains, except as its last instant."""
        while (latest := self._latest_begun_by(at_ns)) > at_ns:
            at_ns = latest
        return at_ns

    def next(self, at_ns: int, default: int) -> int:
        """The first instant from a time on that one of them has."""
        if self.meet(at_ns, at_ns):
            return at_ns
        n = bisect_right(self._begun, at_ns)
        return self._begun[n] if n < len(self._begun) else default

    def _latest_begun_by(self, at_ns: int) -> int:
        n = bisect_right(self._begun, at_ns)
        return self._latest[n - 1] if n else _NONE


def merged(times: Iterable[Window]) -> list[Window]:
    """Merge times that touch or overlap."""
    apart: list[Window] = []
    for begin, end in sorted(times):
        if apart and begin <= apart[-1][1]:
            apart[-1] = (apart[-1][0], max(end, apart[-1][1]))
        else:
            apart.append((begin, end))
    return apart
