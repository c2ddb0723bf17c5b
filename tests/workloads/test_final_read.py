import re
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from harness.core.topology import Partition
from harness.history.journal import read_journal
from harness.history.schema import LOG_ENDS, record_id
from tests.workloads.conftest import mock_ends
from workloads.clients.payload import Encoder
from workloads.clients.settings import Isolation
from workloads.readback.final_read import FinalReadResult, LogEnd, LogEnds, PartitionProgress, read_to_end
from workloads.workload import Surroundings

Journalled = Callable[[str], pa.Table]


def written(surroundings: Surroundings, payloads: list[bytes]) -> None:
    (topic,) = surroundings.topics
    producer = Producer({"bootstrap.servers": surroundings.bootstrap})
    for index, payload in enumerate(payloads):
        producer.produce(topic, payload, partition=index % 2)
    assert producer.flush(20) == 0


@pytest.mark.parametrize("isolation_level", ["read_uncommitted", "read_committed"])
def test_every_partition_is_read_from_its_start_to_its_end(
    isolation_level: Isolation, surroundings: Surroundings, journalled: Journalled
) -> None:
    written(surroundings, Encoder(100)(record_id(5, 0), 5000))
    rows = read_to_end(
        mock_ends(surroundings),
        surroundings.topics,
        isolation_level,
        surroundings.journals,
        surroundings.clock,
        60,
        "b{}".format,
    ).rows
    assert [(r["partition"], r["log_start"], r["log_end"], r["read_to"], r["complete"]) for r in rows] == [
        (0, 0, 2500, 2500, True),
        (1, 0, 2500, 2500, True),
        (2, 0, 0, 0, True),
        (3, 0, 0, 0, True),
    ]
    assert read_journal(surroundings.journals / "log_ends.1000.arrows", LOG_ENDS) == (journalled("log_ends"), True)
    reads = journalled("reads").to_pylist()
    assert {row["record_id"] for row in reads} == {record_id(5, index) for index in range(5000)}
    assert {(row["reader"], row["phase"], row["intact"]) for row in reads} == {(1000, "final", True)}
    assert {row["leader_epoch"] is not None for row in reads} == {True}


def test_foreign_and_damaged_payloads_are_recorded_as_such(surroundings: Surroundings, journalled: Journalled) -> None:
    ours = Encoder(64)(record_id(1, 7), 1)[0]
    written(surroundings, [ours, b"somebody else's", ours[:-1] + b"!"])
    read(surroundings, mock_ends(surroundings))
    found = {(r["partition"], r["offset"]): (r["record_id"], r["intact"]) for r in journalled("reads").to_pylist()}
    assert found == {(0, 0): (record_id(1, 7), True), (1, 0): (None, False), (0, 1): (record_id(1, 7), False)}


def nobody(_: Collection[Partition]) -> dict[Partition, LogEnd]:
    return {}


@pytest.mark.parametrize(("within", "led"), [(1.5, True), (60, False)])
def test_a_log_whose_leader_does_not_answer_is_incomplete(
    within: float, led: bool, surroundings: Surroundings, journalled: Journalled
) -> None:
    began = time.monotonic()
    read = read_to_end(
        nobody, {"t": 1}, "read_uncommitted", surroundings.journals, surroundings.clock, within, str, led=lambda tp: led
    )
    assert time.monotonic() - began < 30
    row = {"topic": "t", "partition": 0, "log_start": -1, "log_end": -1, "read_to": -1, "complete": False}
    assert read == FinalReadResult([row], ["t-0 has no leader that answered"], {})
    assert journalled("log_ends").to_pylist() == [row]
    assert journalled("reads").num_rows == 0


class Ends:
    """The ends of a mock cluster's logs as ``changed`` tells them, by how often they were asked for before."""

    def __init__(
        self, surroundings: Surroundings, changed: Callable[[int, dict[Partition, LogEnd]], dict[Partition, LogEnd]]
    ) -> None:
        self.asked = 0
        self._real = mock_ends(surroundings)
        self._changed = changed

    def __call__(self, partitions: Collection[Partition]) -> dict[Partition, LogEnd]:
        reported = self._changed(self.asked, self._real(partitions))
        self.asked += 1
        return reported


def every(reported: dict[Partition, LogEnd], **changes: Any) -> dict[Partition, LogEnd]:
    return {tp: replace(end, **changes) for tp, end in reported.items()}


def read(surroundings: Surroundings, ends: LogEnds, within: float = 60, **more: Any) -> FinalReadResult:
    return read_to_end(
        ends,
        surroundings.topics,
        "read_uncommitted",
        surroundings.journals,
        surroundings.clock,
        within,
        "b{}".format,
        **more,
    )


def unavailable(_: dict[str, Any]) -> Consumer:
    raise KafkaException(KafkaError(KafkaError._CRIT_SYS_RESOURCE, "no thread to be had"))


class BreaksDown(Consumer):
    """A client that breaks down as soon as it reads."""

    def consume(self, *args: Any, **kwargs: Any) -> Any:
        raise KafkaException(KafkaError(KafkaError._FATAL, "broken"))


@pytest.mark.parametrize(("client", "why"), [(unavailable, "no thread to be had"), (BreaksDown, "broken")])
def test_a_client_that_cannot_be_had_or_breaks_down_leaves_every_log_incomplete(
    client: Callable[[dict[str, Any]], Consumer], why: str, surroundings: Surroundings, journalled: Journalled
) -> None:
    written(surroundings, Encoder(64)(0, 10))
    done = read(surroundings, mock_ends(surroundings), client=client)
    assert [row["complete"] for row in done.rows] == [False] * 4
    (topic,) = surroundings.topics
    assert done.missed == [f"{topic}-{partition} was not read: {why}" for partition in range(4)]
    assert journalled("log_ends").to_pylist() == done.rows


def test_ctrl_c_while_the_client_is_made_leaves_whole_journals(surroundings: Surroundings) -> None:
    def interrupted(_: dict[str, Any]) -> Consumer:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read(surroundings, mock_ends(surroundings), client=interrupted)
    assert read_journal(surroundings.journals / "log_ends.1000.arrows", LOG_ENDS)[1]


def test_a_leader_that_does_not_answer_is_asked_again(surroundings: Surroundings) -> None:
    written(surroundings, Encoder(64)(0, 10))
    done = read(surroundings, Ends(surroundings, lambda asked, reported: reported if asked >= 3 else {}))
    assert ([row["complete"] for row in done.rows], done.missed) == ([True] * 4, [])


def test_the_final_read_waits_until_the_high_watermark_reaches_the_log_end(
    surroundings: Surroundings, journalled: Journalled
) -> None:
    """With acks=1 it is acknowledged, and a consumer is not given it yet."""
    written(surroundings, Encoder(64)(0, 10))

    def lagging(asked: int, reported: dict[Partition, LogEnd]) -> dict[Partition, LogEnd]:
        return reported if asked >= 3 else every(reported, high=0, readable=0)

    done = read(surroundings, Ends(surroundings, lagging))
    assert [(row["log_end"], row["read_to"], row["complete"]) for row in done.rows] == [
        (5, 5, True),
        (5, 5, True),
        (0, 0, True),
        (0, 0, True),
    ]
    places = [(row["partition"], row["offset"]) for row in journalled("reads").to_pylist()]
    assert sorted(places) == [(p, offset) for p in range(2) for offset in range(5)]


def test_a_log_with_a_high_watermark_behind_its_end_is_incomplete_but_read(
    surroundings: Surroundings, journalled: Journalled
) -> None:
    (topic,) = surroundings.topics
    written(surroundings, Encoder(64)(0, 10))
    ends = Ends(
        surroundings, lambda _, reported: {tp: replace(end, end=9) if end.end else end for tp, end in reported.items()}
    )
    done = read(surroundings, ends, within=3)
    assert [(row["log_end"], row["read_to"], row["complete"]) for row in done.rows] == [
        (9, 5, False),
        (9, 5, False),
        (0, 0, True),
        (0, 0, True),
    ]
    assert done.missed == [f"{topic}-{p} ends at 9, and its high watermark stayed at 5" for p in range(2)]
    assert journalled("reads").num_rows == 10


def test_a_log_that_never_settled_and_that_another_leads_by_now_is_incomplete_though_it_was_read_so_far(
    surroundings: Surroundings,
) -> None:
    """A leader that went before its high watermark was reported anew: of its successor's log nothing was read."""
    written(surroundings, Encoder(64)(0, 10))

    def gone(asked: int, reported: dict[Partition, LogEnd]) -> dict[Partition, LogEnd]:
        return (
            every(reported, epoch=1)
            if asked
            else {s: replace(e, high=3, readable=3) if e.end else e for s, e in reported.items()}
        )

    (topic,) = surroundings.topics
    done = read(surroundings, Ends(surroundings, gone), led=lambda tp: False)
    assert [(row["log_end"], row["read_to"], row["complete"]) for row in done.rows[:2]] == [(5, 5, False)] * 2
    assert done.missed[0].startswith(f"{topic}-0 was led by b")


@pytest.mark.parametrize("readable", [3, 0])
def test_records_read_before_a_new_epoch_do_not_complete_the_log_of_that_epoch(
    readable: int, surroundings: Surroundings
) -> None:
    """Where nothing was read yet, the log is that of whoever leads it then."""
    written(surroundings, Encoder(64)(0, 10))

    def again(asked: int, reported: dict[Partition, LogEnd]) -> dict[Partition, LogEnd]:
        lagging = {s: replace(e, high=readable, readable=readable) if e.end else e for s, e in reported.items()}
        return every(reported, epoch=7) if asked else lagging

    done = read(
        surroundings,
        Ends(surroundings, lambda asked, reported: {s: e for s, e in again(asked, reported).items() if s[1] == 0}),
        5,
    )
    assert [row["complete"] for row in done.rows] == [readable == 0, False, False, False]


def test_with_read_committed_the_end_is_the_last_stable_offset(surroundings: Surroundings) -> None:
    written(surroundings, Encoder(64)(0, 10))
    done = read(surroundings, Ends(surroundings, lambda _, reported: every(reported, readable=0)))
    assert [(row["log_end"], row["complete"]) for row in done.rows] == [(0, True)] * 4


def test_records_that_another_than_the_leader_gave_make_a_log_incomplete(surroundings: Surroundings) -> None:
    (topic,) = surroundings.topics
    written(surroundings, Encoder(64)(0, 10))
    done = read(surroundings, Ends(surroundings, lambda _, reported: every(reported, leader=7)))
    assert [row["complete"] for row in done.rows] == [False, False, True, True]
    assert re.fullmatch(rf"{topic}-0 was read from b[123], and is led by b7", done.missed[0])


LATER = {
    "another leader": (lambda end: replace(end, leader=end.leader % 3 + 1), "and is led by b"),
    "another epoch": (lambda end: replace(end, epoch=1), "(epoch 1) by now"),
}


@pytest.mark.parametrize(("later", "says"), LATER.values(), ids=LATER)
def test_a_log_that_another_leads_when_it_was_read_is_incomplete(
    later: Callable[[LogEnd], LogEnd], says: str, surroundings: Surroundings
) -> None:
    written(surroundings, Encoder(64)(0, 10))
    ends = Ends(
        surroundings, lambda asked, reported: {tp: later(end) if asked else end for tp, end in reported.items()}
    )
    done = read(surroundings, ends)
    assert [row["complete"] for row in done.rows] == [False] * 4
    assert all(says in line for line in done.missed)


def test_a_leader_that_answers_no_more_when_all_is_read_makes_it_incomplete(surroundings: Surroundings) -> None:
    written(surroundings, Encoder(64)(0, 10))
    done = read(surroundings, Ends(surroundings, lambda asked, reported: {} if asked else reported), within=3)
    assert [row["complete"] for row in done.rows] == [False] * 4
    assert all(line.endswith("which no longer answers") for line in done.missed)


def test_a_partition_that_does_not_exist_is_incomplete_and_the_others_are_read(surroundings: Surroundings) -> None:
    written(surroundings, Encoder(64)(0, 10))
    (topic,) = surroundings.topics
    done = read(replace(surroundings, topics={topic: 5}), mock_ends(surroundings), led=lambda tp: tp[1] < 4)
    assert [row["complete"] for row in done.rows] == [True, True, True, True, False]


def test_the_settings_of_its_client_are_recorded(surroundings: Surroundings) -> None:
    written(surroundings, Encoder(64)(0, 10))
    done = read(surroundings, mock_ends(surroundings))
    assert done.config["isolation.level"] == "read_uncommitted"
    assert {*str(done.config["bootstrap.servers"]).split(",")} <= {*surroundings.bootstrap.split(",")}


def test_complete_is_all_that_the_leader_said_there_is() -> None:
    assert PartitionProgress(0, 10, 10).complete
    assert PartitionProgress(10, 10, 10).complete
    assert not PartitionProgress(0, 10, 9).complete
    assert not PartitionProgress(0, 10, 10, given_up=True).complete
    assert not PartitionProgress().complete
