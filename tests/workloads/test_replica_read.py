"""The read of the replicas, from a cluster whose leaders send nobody to a follower."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from harness.history.schema import record_id
from workloads.clients.payload import Encoder
from workloads.readback.final_read import FetchSources
from workloads.readback.replica_read import read_replicas
from workloads.workload import Surroundings

Journalled = Callable[[str], pa.Table]
RECORDS = 300


def written(surroundings: Surroundings) -> tuple[str, int]:
    """Records in the first partition of the topic; returns its name, and who leads that partition."""
    (topic,) = surroundings.topics
    producer = Producer({"bootstrap.servers": surroundings.bootstrap})
    for payload in Encoder(100)(record_id(5, 0), RECORDS):
        producer.produce(topic, payload, partition=0)
    assert producer.flush(20) == 0
    return topic, producer.list_topics(topic, timeout=20).topics[topic].partitions[0].leader


def ends(topic: str, log_end: int) -> list[dict[str, Any]]:
    reported = [(0, 0, log_end), (1, 0, 0), (2, -1, -1)]
    return [{"topic": topic, "partition": p, "log_start": start, "log_end": end} for p, start, end in reported]


def replicas_read(surroundings: Surroundings, broker: int, topic: str, log_end: int, within: float = 60) -> list[str]:
    partitions = [(topic, partition) for partition in range(3)]
    return read_replicas(
        surroundings.bootstrap,
        {broker: partitions},
        ends(topic, log_end),
        "read_uncommitted",
        surroundings.journals,
        surroundings.clock,
        within,
        "b{}".format,
    )


def test_records_of_a_broker_count_for_its_replica_and_logs_without_records_are_not_read(
    surroundings: Surroundings, journalled: Journalled
) -> None:
    topic, leader = written(surroundings)
    assert replicas_read(surroundings, leader, topic, RECORDS) == []
    reads = journalled("reads").to_pylist()
    assert [(row["partition"], row["offset"]) for row in reads] == [(0, offset) for offset in range(RECORDS)]
    assert {(row["reader"], row["phase"], row["intact"]) for row in reads} == {(1000 + leader, "replica", True)}


def test_an_answer_from_the_leader_in_place_of_its_follower_is_reported(surroundings: Surroundings) -> None:
    topic, leader = written(surroundings)
    follower = leader % 3 + 1
    [line] = replicas_read(surroundings, follower, topic, RECORDS)
    assert line == f"{topic}-0 of b{follower} was read from b{leader}"


def test_a_client_that_cannot_be_had_leaves_its_followers_log_unread_and_no_other(surroundings: Surroundings) -> None:
    topic, leader = written(surroundings)
    made: list[int] = []

    def client(config: dict[str, Any]) -> Consumer:
        made.append(len(made))
        if made == [0]:
            raise KafkaException(KafkaError(KafkaError._CRIT_SYS_RESOURCE, "no thread to be had"))
        return Consumer(config)

    followers = {broker: [(topic, 0)] for broker in (0, leader)}
    missed = read_replicas(
        surroundings.bootstrap,
        followers,
        ends(topic, RECORDS),
        "read_uncommitted",
        surroundings.journals,
        surroundings.clock,
        60,
        "b{}".format,
        client,
    )
    assert missed == [f"{topic}-0 of b0 was not read: no thread to be had"]


def test_a_log_that_ends_too_early_is_said_so(surroundings: Surroundings, journalled: Journalled) -> None:
    topic, leader = written(surroundings)
    [line] = replicas_read(surroundings, leader, topic, RECORDS + 1, within=3)
    assert line == f"{topic}-0 of b{leader} read to {RECORDS} of {RECORDS + 1}"
    assert journalled("reads").num_rows == RECORDS


def test_a_broker_counts_as_a_source_once_it_gave_a_record_though_another_does_now() -> None:
    sources = FetchSources()
    for broker, given in ((1, 0), (2, 10), (3, 10)):
        sources(f'{{"topics": {{"t": {{"partitions": {{"0": {{"broker": {broker}, "rxmsgs": {given}}}}}}}}}}}')
    assert sources.of(("t", 0)) == {2, 3}
    assert sources.of(("t", 1)) == {-1}
