import time
from collections.abc import Callable

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from harness.core.history import LOG_ENDS, record_id
from harness.core.journal import read_journal
from workloads.client_settings import Isolation
from workloads.final_read import Progress, read_to_end
from workloads.payload import Encoder
from workloads.plan import Plan

Journalled = Callable[[str], pa.Table]


def written(plan: Plan, payloads: list[bytes]) -> None:
    (topic,) = plan.topics
    producer = Producer({"bootstrap.servers": plan.bootstrap})
    for index, payload in enumerate(payloads):
        producer.produce(topic, payload, partition=index % 2)
    assert producer.flush(20) == 0


@pytest.mark.parametrize("isolation_level", ["read_uncommitted", "read_committed"])
def test_every_partition_is_read_from_its_start_to_its_end(
    isolation_level: Isolation, plan: Plan, journalled: Journalled
) -> None:
    written(plan, Encoder(100)(record_id(5, 0), 5000))
    rows = read_to_end(plan.bootstrap, plan.topics, isolation_level, plan.journals, plan.clock, within=60)
    assert [(r["partition"], r["log_start"], r["log_end"], r["read_to"], r["complete"]) for r in rows] == [
        (0, 0, 2500, 2500, True),
        (1, 0, 2500, 2500, True),
        (2, 0, 0, 0, True),
        (3, 0, 0, 0, True),
    ]
    assert read_journal(plan.journals / "log_ends.1000.arrows", LOG_ENDS) == (journalled("log_ends"), True)
    reads = journalled("reads").to_pylist()
    assert {row["record_id"] for row in reads} == {record_id(5, index) for index in range(5000)}
    assert {(row["reader"], row["phase"], row["intact"]) for row in reads} == {(1000, "final", True)}
    assert {row["leader_epoch"] is not None for row in reads} == {True}


def test_foreign_and_damaged_payloads_are_recorded_as_what_they_are(plan: Plan, journalled: Journalled) -> None:
    ours = Encoder(64)(record_id(1, 7), 1)[0]
    written(plan, [ours, b"somebody else's", ours[:-1] + b"!"])
    read_to_end(plan.bootstrap, plan.topics, "read_uncommitted", plan.journals, plan.clock, within=60)
    found = {(r["partition"], r["offset"]): (r["record_id"], r["intact"]) for r in journalled("reads").to_pylist()}
    assert found == {(0, 0): (record_id(1, 7), True), (1, 0): (None, False), (0, 1): (record_id(1, 7), False)}


@pytest.mark.parametrize(("within", "led"), [(1.5, True), (60, False)])
def test_a_cluster_that_does_not_answer_makes_it_incomplete(
    within: float, led: bool, plan: Plan, journalled: Journalled
) -> None:
    began = time.monotonic()
    rows = read_to_end(
        "127.0.0.1:9", {"t": 1}, "read_uncommitted", plan.journals, plan.clock, within, led=lambda slot: led
    )
    assert time.monotonic() - began < 30
    assert rows == [{"topic": "t", "partition": 0, "log_start": -1, "log_end": -1, "read_to": -1, "complete": False}]
    assert journalled("log_ends").to_pylist() == rows
    assert journalled("reads").num_rows == 0


class Deaf(Consumer):
    """Hears no leader at first."""

    questions = 0

    def get_watermark_offsets(self, *asked: object, **how: object) -> tuple[int, int] | None:
        self.questions += 1
        if self.questions <= 6:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        return super().get_watermark_offsets(*asked, **how)


def test_a_leader_that_does_not_answer_is_asked_again(plan: Plan) -> None:
    written(plan, Encoder(64)(0, 10))
    rows = read_to_end(
        plan.bootstrap, plan.topics, "read_uncommitted", plan.journals, plan.clock, within=60, client=Deaf
    )
    assert [row["complete"] for row in rows] == [True] * 4


def test_a_partition_that_does_not_exist_is_incomplete_and_the_others_are_read(plan: Plan) -> None:
    written(plan, Encoder(64)(0, 10))
    (topic,) = plan.topics
    rows = read_to_end(
        plan.bootstrap,
        {topic: 5},
        "read_uncommitted",
        plan.journals,
        plan.clock,
        within=60,
        led=lambda slot: slot[1] < 4,
    )
    assert [row["complete"] for row in rows] == [True, True, True, True, False]


def test_complete_is_all_that_the_leader_said_there_is() -> None:
    assert Progress(0, 10, 10).complete
    assert Progress(10, 10, 10).complete
    assert not Progress(0, 10, 9).complete
    assert not Progress(0, 10, 10, given_up=True).complete
    assert not Progress().complete
