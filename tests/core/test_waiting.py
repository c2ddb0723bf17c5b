"""Waiting: for a condition, with a deadline that tells what was seen."""

from itertools import count

import pytest

from harness.core.errors import ClusterError
from harness.core.waiting import wait_for


def test_wait_for_returns_the_awaited_value() -> None:
    seen = count()
    assert wait_for(lambda: next(seen), "three", within=5, good=lambda n: n == 3, every=0) == 3


def test_a_condition_that_already_holds_costs_one_look() -> None:
    looks: list[int] = []
    wait_for(lambda: looks.append(1) or True, "nothing", within=0)
    assert looks == [1]


def test_an_expired_wait_names_its_condition_and_the_last_value_seen() -> None:
    with pytest.raises(ClusterError, match=r"awaited a new leader for 0 s; last seen: still b1"):
        wait_for(lambda: "b1", "a new leader", within=0, good=lambda _: False, describe=lambda seen: f"still {seen}")


def test_the_deadline_is_kept_to() -> None:
    seen = count()
    with pytest.raises(ClusterError):
        wait_for(lambda: next(seen), "never", within=0.02, good=lambda _: False, every=0.005)
    assert 2 <= next(seen) <= 6
