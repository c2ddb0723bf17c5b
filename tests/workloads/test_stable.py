"""Awaiting that every log is stable to its end, and what is journalled of it."""

from collections.abc import Callable

import pyarrow as pa
from confluent_kafka import IsolationLevel

from workloads.final_read import FINAL_READER
from workloads.plan import Plan
from workloads.stable import Ends, await_stable, watch

Journalled = Callable[[str], pa.Table]


def answers(*rounds: tuple[Ends, Ends]) -> Callable[[IsolationLevel], Ends]:
    """The last stable offsets and the high watermarks that are told, round by round, the last one for ever."""
    told = [one for both in rounds for one in both]

    def ask(_: IsolationLevel) -> Ends:
        return told.pop(0) if len(told) > 2 else told[0 if _ == IsolationLevel.READ_COMMITTED else 1]

    return ask


def events(journalled: Journalled) -> set[tuple]:
    rows = journalled("positions").to_pylist()
    assert {row["reader"] for row in rows} <= {FINAL_READER}
    return {(row["event"], row["topic"], row["partition"], row["offset"]) for row in rows}


def test_it_waits_until_every_log_is_stable_and_tells_the_last_word(plan: Plan, journalled: Journalled) -> None:
    open_, over = ({("t", 0): 3, ("t", 1): 5}, {("t", 0): 7, ("t", 1): 5}), ({("t", 0): 8, ("t", 1): 5},) * 2
    assert watch(answers(open_, over), plan.journals, plan.clock, within=60) == []
    assert events(journalled) == {
        ("last-stable", "t", 0, 8),
        ("high-watermark", "t", 0, 8),
        ("last-stable", "t", 1, 5),
        ("high-watermark", "t", 1, 5),
    }


def test_what_is_not_stable_in_time_is_told_as_it_is(plan: Plan, journalled: Journalled) -> None:
    open_ = ({("t", 0): 3}, {("t", 0): 7})
    assert watch(answers(open_), plan.journals, plan.clock, within=0) == [("t", 0)]
    assert events(journalled) == {("last-stable", "t", 0, 3), ("high-watermark", "t", 0, 7)}


def test_a_partition_that_nobody_tells_of_is_not_waited_for(plan: Plan, journalled: Journalled) -> None:
    assert watch(answers(({}, {("t", 0): 7})), plan.journals, plan.clock, within=60) == []
    assert events(journalled) == {("high-watermark", "t", 0, 7)}


def test_the_leaders_are_asked_for_both_ends(plan: Plan, journalled: Journalled) -> None:
    assert await_stable(plan.bootstrap, plan.topics, plan.journals, plan.clock, within=60) == []
    (topic,) = plan.topics
    ends = {(event, topic, p, 0) for event in ("last-stable", "high-watermark") for p in range(plan.topics[topic])}
    assert events(journalled) == ends
