"""Processes become workers and incarnations, keys partitions, values record ids."""

import pytest

from harness.history.schema import record_id
from harness.importing.naming import NOBODY, Keys, RecordIds, Threads


def test_a_crashed_process_goes_on_as_the_next_incarnation_of_its_thread() -> None:
    threads = Threads()
    assert [threads.thread(process) for process in (0, 1, 2)] == [(0, 0), (1, 0), (2, 0)]
    threads.ended(1)
    assert threads.thread(4) == (1, 1)
    assert threads.concurrency == 3
    threads.ended(4)
    assert [threads.thread(process) for process in (7, 0, 2)] == [(1, 2), (0, 0), (2, 0)]


def test_after_many_crashes_the_first_returning_process_shows_the_number_of_threads() -> None:
    threads = Threads()
    for process in range(5):
        threads.thread(process)
    for process in range(5):
        threads.ended(process)
    assert [threads.thread(process) for process in (7, 5, 9)] == [(2, 1), (0, 1), (4, 1)]


def test_a_thread_that_begins_late_is_not_taken_for_another() -> None:
    threads = Threads()
    threads.thread(3)
    threads.ended(3)
    assert [threads.thread(process) for process in (1, 0, 2)] == [(1, 0), (0, 0), (2, 0)]
    assert threads.concurrency is None


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [2, 5, 0, 3, 1, 4]])
def test_two_processes_are_never_the_same_incarnation(order: list[int]) -> None:
    threads = Threads()
    found = []
    for process in order:
        found.append(threads.thread(process))
        threads.ended(process)
    assert len(set(found)) == len(order)


def test_integers_are_their_own_partition() -> None:
    keys = Keys()
    assert [keys.partition(key) for key in (7, 0, 7)] == [7, 0, 7]
    assert keys.partition(-1) is None
    assert keys.partition(1 << 31) is None
    assert keys.partition(":x") is None


def test_other_keys_are_numbered_as_they_are_met() -> None:
    keys = Keys()
    assert [keys.partition(key) for key in (":y", ":x", ":y")] == [0, 1, 0]
    assert keys.named == {":y": 0, ":x": 1}
    assert keys.partition(0) is None


@pytest.mark.parametrize("value", [0, 1, 5000, 10**12, -3, "1", ":a", (1, 2), {"a": 1}, None])
def test_a_value_is_known_by_its_key(value: object) -> None:
    records = RecordIds()
    assert records.find(1, value) is None
    assert records.add(1, value, 42)
    assert records.find(1, value) == 42
    assert records.find(2, value) is None
    assert not records.add(1, value, 43)
    assert records.find(1, value) == 42


def test_a_value_that_was_far_off_stays_known_when_the_others_have_come_near() -> None:
    records = RecordIds()
    assert records.add(0, 6000, 42)
    assert all(records.add(0, value, value) for value in range(6000))
    assert not records.add(0, 6000, 43)
    assert records.find(0, 6000) == 42


def test_a_value_that_was_read_before_its_send_can_still_be_sent() -> None:
    records = RecordIds()
    assert records.add(0, 7, record_id(NOBODY, 0))
    assert records.add(0, 7, 5)
    assert records.find(0, 7) == 5
