from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Producer

from harness.core.topology import Partition
from harness.core.waiting import wait_for
from harness.history.journal import Journal, journal_path
from harness.history.schema import SENDS
from workloads.clients.producing import Producing
from workloads.clients.send_recorder import SendRecorder
from workloads.clients.settings import Config
from workloads.clients.specs import ProducerSpec
from workloads.queue import Queue
from workloads.workload import Surroundings

Journalled = Callable[[str], pa.Table]


@contextmanager
def producing(
    surroundings: Surroundings,
    *,
    config: Config | None = None,
    partitions: list[Partition] | None = None,
    record_size: int = 64,
    client: Callable[[Config], Producer] = Producer,
) -> Iterator[tuple[Producing, SendRecorder]]:
    """A producer in this process, some of its settings changed."""
    spec = Queue(producers=1, consumers=0, record_size=record_size).worker_specs(surroundings)[0]
    assert isinstance(spec, ProducerSpec)
    changed = spec.model_copy(
        update={"config": spec.config | (config or {}), "partitions": partitions or spec.partitions}
    )
    with Journal(journal_path(surroundings.journals, "sends", "1"), SENDS) as journal:
        recorder = SendRecorder(journal, 1, "all", changed.partitions, [])
        yield Producing(changed, recorder, surroundings.clock, client), recorder
        recorder.flush()


def drain(producer: Producing) -> None:
    def waiting() -> int:
        producer.drain(0.1)
        return producer.waiting

    wait_for(waiting, "all delivery reports", 60, good=lambda count: not count)


def test_a_full_queue_holds_the_producer_back_and_is_no_outcome(
    surroundings: Surroundings, journalled: Journalled
) -> None:
    with producing(surroundings, config={"queue.buffering.max.messages": 30}) as (producer, _):
        for _ in range(3):
            producer.step(0.1)
        drain(producer)
    rows = journalled("sends").to_pylist()
    assert len(rows) == 1500
    assert {(row["outcome"], row["error"]) for row in rows} == {("ok", None)}
    for partition in range(4):
        offsets = [row["offset"] for row in rows if row["partition"] == partition]
        assert all(earlier < later for earlier, later in pairwise(offsets))


def test_a_record_refused_by_produce_can_never_appear(surroundings: Surroundings, journalled: Journalled) -> None:
    (topic,) = surroundings.topics
    with producing(surroundings, partitions=[(topic, 0), (topic, 99)]) as (producer, _):
        # The number of partitions is known once something was delivered.
        producer.step(0.1)
        drain(producer)
        producer.step(0.1)
        drain(producer)
    rows = journalled("sends").to_pylist()
    assert {row["outcome"] for row in rows if row["partition"] == 0} == {"ok"}
    refused = [row for row in rows if row["partition"] == 99]
    assert {row["error"] for row in refused} == {"_UNKNOWN_PARTITION"}
    assert {row["outcome"] for row in refused if row["sequence"] >= 500} == {"fail"}


def test_a_record_that_is_too_large_for_the_client_is_refused(
    surroundings: Surroundings, journalled: Journalled
) -> None:
    with producing(surroundings, config={"message.max.bytes": 1000}, record_size=5000) as (producer, _):
        producer.step(0.1)
        drain(producer)
    rows = journalled("sends").to_pylist()
    assert {(row["outcome"], row["error"]) for row in rows} == {("fail", "MSG_SIZE_TOO_LARGE")}


class DeadOnce:
    """A client factory whose first producer is declared dead by librdkafka at its second batch."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self, config: Config) -> Any:
        self.made += 1
        real = Producer(config)
        return Dying(real) if self.made == 1 else real


class Dying:
    """Takes one batch, then refuses everything as after a fatal error."""

    def __init__(self, real: Producer) -> None:
        self._real = real
        self._batches = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def produce_batch(self, topic: str, messages: list[dict[str, Any]], **how: Any) -> int:
        self._batches += 1
        if self._batches == 1:
            return self._real.produce_batch(topic, messages, **how)
        for message in messages:
            message["_error"] = KafkaError(KafkaError._FATAL)
        return 0


def test_a_producer_that_is_dead_is_replaced_by_its_next_incarnation(
    surroundings: Surroundings, journalled: Journalled
) -> None:
    clients = DeadOnce()
    (topic,) = surroundings.topics
    with producing(surroundings, partitions=[(topic, 0)], client=clients) as (producer, _):
        for _ in range(3):
            producer.step(0.1)
            drain(producer)
    rows = journalled("sends").to_pylist()
    assert clients.made == 2
    assert [row["sequence"] for row in rows] == list(range(1500))
    assert {(row["outcome"], row["error"]) for row in rows if 500 <= row["sequence"] < 1000} == {("fail", "_FATAL")}
    assert {row["incarnation"] for row in rows if row["sequence"] < 1000} == {0}
    assert {(row["incarnation"], row["outcome"]) for row in rows if row["sequence"] >= 1000} == {(1, "ok")}


class FatalWhenPolled:
    """Raises a fatal error at its first poll, as librdkafka does for OUT_OF_ORDER_SEQUENCE_NUMBER."""

    def __init__(self, real: Producer) -> None:
        self._real = real
        self._polled = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def poll(self, timeout: float = -1) -> int:
        if not self._polled:
            self._polled = True
            raise KafkaException(KafkaError(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, "desynchronized", True))
        return self._real.poll(timeout)


def test_a_fatal_error_that_librdkafka_raises_ends_the_incarnation_not_the_worker(
    surroundings: Surroundings, journalled: Journalled
) -> None:
    made: list[Any] = []

    def client(config: Config) -> Any:
        made.append(FatalWhenPolled(Producer(config)) if not made else Producer(config))
        return made[-1]

    (topic,) = surroundings.topics
    with producing(surroundings, partitions=[(topic, 0)], client=client) as (producer, _):
        for _ in range(3):
            producer.step(0.1)
            drain(producer)
    assert len(made) == 2
    rows = journalled("sends").to_pylist()
    assert [row["sequence"] for row in rows] == list(range(len(rows)))
    assert {row["incarnation"] for row in rows} == {0, 1}
