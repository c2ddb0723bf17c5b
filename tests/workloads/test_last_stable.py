"""Awaiting that every log is stable to its end, and the journal of it."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import IsolationLevel, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from checkers.preconditions import followed
from harness.history.schema import FINAL_READER
from harness.run.new_run import new_run
from harness.run.recovery import settle
from harness.run.timeline import Stage
from harness.scenario.model import Scenario
from workloads.clients.settings import Config
from workloads.readback.last_stable import Ends, await_stable, watch
from workloads.workload import Surroundings

Journalled = Callable[[str], pa.Table]


def answers(*rounds: tuple[Ends, Ends]) -> Callable[[IsolationLevel], Ends]:
    """The last stable offsets and high watermarks that the leaders report, round by round; the last round repeats."""
    reported = [one for both in rounds for one in both]

    def ask(_: IsolationLevel) -> Ends:
        return reported.pop(0) if len(reported) > 2 else reported[0 if _ == IsolationLevel.READ_COMMITTED else 1]

    return ask


def events(journalled: Journalled) -> set[tuple]:
    rows = journalled("positions").to_pylist()
    assert {row["reader"] for row in rows} <= {FINAL_READER}
    return {(row["event"], row["topic"], row["partition"], row["offset"]) for row in rows}


def test_it_waits_until_every_log_is_stable_and_tells_the_last_word(
    surroundings: Surroundings, journalled: Journalled
) -> None:
    open_, over = ({("t", 0): 3, ("t", 1): 5}, {("t", 0): 7, ("t", 1): 5}), ({("t", 0): 8, ("t", 1): 5},) * 2
    assert watch(answers(open_, over), [("t", 0), ("t", 1)], surroundings.journals, surroundings.clock, within=60) == []
    assert events(journalled) == {
        ("last-stable", "t", 0, 8),
        ("high-watermark", "t", 0, 8),
        ("last-stable", "t", 1, 5),
        ("high-watermark", "t", 1, 5),
    }


def test_a_log_that_is_not_stable_in_time_is_reported_as_it_is(
    surroundings: Surroundings, journalled: Journalled
) -> None:
    open_ = ({("t", 0): 3}, {("t", 0): 7})
    assert watch(answers(open_), [("t", 0)], surroundings.journals, surroundings.clock, within=0) == [("t", 0)]
    assert events(journalled) == {("last-stable", "t", 0, 3), ("high-watermark", "t", 0, 7)}


@pytest.mark.parametrize("missing", [({}, {("t", 0): 7}), ({("t", 0): 7}, {}), ({}, {})])
def test_a_partition_that_somebody_does_not_tell_of_is_asked_again(
    missing: tuple[Ends, Ends], surroundings: Surroundings, journalled: Journalled
) -> None:
    reported = ({("t", 0): 7}, {("t", 0): 7})
    assert watch(answers(missing, reported), [("t", 0)], surroundings.journals, surroundings.clock, within=60) == []
    assert events(journalled) == {("last-stable", "t", 0, 7), ("high-watermark", "t", 0, 7)}


@pytest.mark.parametrize("missing", [({}, {("t", 0): 7}), ({("t", 0): 7}, {}), ({}, {})])
def test_a_log_that_is_not_reported_in_time_is_not_known_to_be_stable(
    missing: tuple[Ends, Ends], surroundings: Surroundings
) -> None:
    assert watch(answers(missing), [("t", 0)], surroundings.journals, surroundings.clock, within=0) == [("t", 0)]


def test_the_leaders_are_asked_for_both_ends(surroundings: Surroundings, journalled: Journalled) -> None:
    assert (
        await_stable(surroundings.bootstrap, surroundings.topics, surroundings.journals, surroundings.clock, within=60)
        == []
    )
    (topic,) = surroundings.topics
    ends = {
        (event, topic, p, 0) for event in ("last-stable", "high-watermark") for p in range(surroundings.topics[topic])
    }
    assert events(journalled) == ends


def test_without_a_client_no_log_is_known_to_be_stable(surroundings: Surroundings, journalled: Journalled) -> None:
    def unavailable(_: Config) -> AdminClient:
        raise KafkaException(KafkaError(KafkaError._CRIT_SYS_RESOURCE, "no thread to be had"))

    (topic,) = surroundings.topics
    unstable = await_stable(
        surroundings.bootstrap, surroundings.topics, surroundings.journals, surroundings.clock, 60, unavailable
    )
    assert unstable == [(topic, partition) for partition in range(surroundings.topics[topic])]
    assert journalled("positions").num_rows == 0


@pytest.mark.parametrize("beyond", [0, 1])
def test_a_run_names_the_logs_whose_stability_nobody_reported(
    beyond: int, surroundings: Surroundings, tmp_path: Path
) -> None:
    record = new_run(Scenario(name="a/story"), 7, tmp_path / "store")
    cluster: Any = SimpleNamespace(bootstrap=surroundings.bootstrap)
    nobody: Any = None
    (topic,) = surroundings.topics
    partitions = surroundings.topics[topic]
    stage = Stage(record, cluster, nobody, nobody, nobody, nobody, nobody)
    settle(stage, {topic: partitions + beyond}, within=0 if beyond else 60)
    record.release()
    held = followed(record.file)
    assert held.met is not bool(beyond)
    if beyond:
        assert held.detail == f"not met: every log stable to its end (not known of {topic}-{partitions} after 0 s)"
