import pytest

from workloads.clients.pace import Pace

SECOND = 1_000_000_000


@pytest.mark.parametrize("rate", [0.5, 1, 100, 3333, 50_000])
def test_a_steady_rate_whenever_it_is_asked(rate: float) -> None:
    pace = Pace(rate, start_ns=0)
    now = given = 0
    while now < 10 * SECOND:
        given += pace.due(now, most=500)
        assert given == pytest.approx(now / SECOND * rate, abs=2 + rate * pace.tick_ns / SECOND)
        now += max(1_000_000, pace.wait_ns(now))


def test_nothing_is_due_before_its_time() -> None:
    pace = Pace(10, start_ns=0)
    assert pace.due(0, most=500) == 1
    assert pace.due(50_000_000, most=500) == 0
    assert pace.wait_ns(50_000_000) == 50_000_000
    assert pace.due(100_000_000, most=500) == 1


def test_a_high_rate_is_handed_over_tick_by_tick() -> None:
    pace = Pace(10_000, start_ns=0)
    assert pace.due(0, most=500) == 1
    assert pace.due(4_000_000, most=500) == 0
    assert pace.wait_ns(4_000_000) == 1_000_000
    assert pace.due(5_000_000, most=500) == 50


def test_as_fast_as_possible_is_all_that_there_is_room_for() -> None:
    pace = Pace(None, start_ns=0)
    assert pace.due(0, most=500) == pace.due(0, most=500) == 500
    assert pace.wait_ns(0) == 0


def test_a_worker_that_was_held_back_catches_up_on_half_a_second_only() -> None:
    pace = Pace(1000, start_ns=0)
    pace.due(0, most=1)
    assert pace.due(60 * SECOND, most=10**6) == pytest.approx(500, abs=2)
    assert pace.due(61 * SECOND, most=10**6) == pytest.approx(500, abs=2)
