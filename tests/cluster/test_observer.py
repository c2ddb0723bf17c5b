"""Which of several brokers' words counts, on plain data."""

from harness.cluster.observer import Sight, prevailing

SECOND = 1_000_000_000


def sight(observer: str, leader: int, epoch: int | None, isr: tuple[int, ...] = (1, 2, 3), at: int = 0) -> Sight:
    return Sight(observer, at * SECOND, "trial", 0, leader, epoch, (1, 2, 3), isr)


def test_nobody_told_nothing() -> None:
    assert prevailing([], 0) is None


def test_the_newest_epoch_counts_however_few_know_it() -> None:
    told = [sight("b1", 1, 4), sight("b2", 1, 4), sight("b3", 2, 5)]
    assert prevailing(told, 0) == told[2]


def test_among_equal_epochs_the_majority_counts() -> None:
    told = [sight("b1", 1, 4, isr=(1, 2, 3)), sight("b2", 1, 4, isr=(1,)), sight("b3", 1, 4, isr=(1,))]
    found = prevailing(told, 0)
    assert found is not None
    assert found.isr == (1,)


def test_a_broker_that_went_silent_counts_only_where_no_other_tells() -> None:
    told = [sight("b1", 1, 9, at=0), sight("b2", 2, 5, at=10)]
    assert prevailing(told, 10 * SECOND) == told[1]
    assert prevailing(told[:1], 10 * SECOND) == told[0]


def test_before_epochs_the_majority_decides() -> None:
    told = [sight("b1", 1, None), sight("b2", 2, None), sight("b3", 2, None)]
    found = prevailing(told, 0)
    assert found is not None
    assert found.leader == 2
