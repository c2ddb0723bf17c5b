"""The random mode's schedule."""

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.catalogue import FAULTS, kind_of
from nemesis.fault import Fault
from nemesis.schedule import random_schedule

DRAWABLE: list[Fault] = [
    FAULTS["kill"].model_validate({"target": "one-of brokers"}),
    FAULTS["isolate"].model_validate({"target": "leader"}),
    FAULTS["restart"].model_validate({"target": "controller"}),
]
SEEDS = st.integers(0, 2**32)


@given(SEEDS, st.floats(0.1, 60), st.integers(1, 50))
def test_one_fault_in_each_period_healed_before_the_next(seed: int, every: float, periods: int) -> None:
    schedule = random_schedule(Random(seed), DRAWABLE, every, every * (periods + 0.5))
    assert len(schedule) == periods
    for slot, drawn in enumerate(schedule):
        assert slot * every <= drawn.at
        assert drawn.at + drawn.hold <= (slot + 1) * every + 1e-6
        assert drawn.hold >= every / 4
        assert drawn.fault in DRAWABLE


@given(SEEDS)
def test_the_same_seed_is_the_same_schedule(seed: int) -> None:
    assert random_schedule(Random(seed), DRAWABLE, 10, 60) == random_schedule(Random(seed), DRAWABLE, 10, 60)


def test_another_seed_is_another_schedule_and_every_fault_comes() -> None:
    schedules = [random_schedule(Random(seed), DRAWABLE, 10, 60) for seed in range(20)]
    assert all(a != b for a, b in pairwise(schedules))
    assert {kind_of(drawn.fault) for schedule in schedules for drawn in schedule} == {"kill", "isolate", "restart"}


@pytest.mark.parametrize(("for_", "every", "times"), [(1.0, 0.1, 10), (0.9, 0.3, 3), (60.0, 10.0, 6), (0.99, 0.1, 9)])
def test_a_period_that_just_fits_is_one(for_: float, every: float, times: int) -> None:
    assert len(random_schedule(Random(1), DRAWABLE, every, for_)) == times
