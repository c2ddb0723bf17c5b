"""Waiting for a condition, with a deadline, instead of sleeping."""

import time
from collections.abc import Callable
from typing import TypeVar

from harness.core.errors import ClusterError

T = TypeVar("T")


def wait_for(
    look: Callable[[], T],
    awaited: str,
    within: float,
    good: Callable[[T], bool] = bool,
    describe: Callable[[T], str] = repr,
    every: float = 0.1,
) -> T:
    """Call ``look`` every ``every`` seconds until ``good`` accepts what it returned, and return that.

    Raises ClusterError when ``within`` seconds have passed: says what was ``awaited`` and what was seen last.
    """
    deadline = time.monotonic() + within
    while True:
        seen = look()
        if good(seen):
            return seen
        if time.monotonic() >= deadline:
            raise ClusterError(f"awaited {awaited} for {within:g} s; last seen: {describe(seen)}")
        time.sleep(every)
