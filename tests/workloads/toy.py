"""A workload of a test's own: a writer that hands over one record at a time, a reader, and a step."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import ClassVar, Literal

import numpy as np
from confluent_kafka import Producer

from harness.core.clock import Clock
from harness.history.journal import Journal, journal_path
from harness.history.schema import SENDS
from workloads.clients.deliveries import Deliveries
from workloads.clients.send_recorder import SendRecorder
from workloads.clients.settings import consumer_config, producer_config
from workloads.clients.specs import ConsumerSpec
from workloads.loop import Commands, run
from workloads.processes import Workers
from workloads.protocol import Report, Spec, WriterSpec
from workloads.workload import Contradiction, Surroundings, Workload, WorkloadStep


class Tickle(WorkloadStep):
    """Kill a writer; another takes its place."""

    elsewhere: ClassVar[str] = "only a toy is tickled"

    tickle: int

    def play(self, workers: Workers) -> str:
        return workers.replace(self.tickle)


class TickerSpec(WriterSpec):
    """A writer of one record at a time."""

    client: ClassVar[str] = "tests.workloads.toy:tick"

    role: Literal["ticker"] = "ticker"


class Toy(Workload):
    """What a scenario may say of it."""

    steps: ClassVar = (Tickle,)

    kind: Literal["toy"] = "toy"
    producers: int = 1

    def worker_specs(self, surroundings: Surroundings) -> list[Spec]:
        config = producer_config(self, surroundings.bootstrap, "toy", self.record_size)
        return [
            TickerSpec(
                worker=1,
                config=config,
                rate=1,
                record_size=self.record_size,
                seed=surroundings.seed,
                **surroundings.of_every_spec,
            ),
            ConsumerSpec(
                worker=2,
                config=consumer_config(self, surroundings.bootstrap, "toy-reader", surroundings.group),
                grouped=False,
                **surroundings.of_every_spec,
            ),
        ]

    def contradictions(self, timeline: Iterable[tuple[int, WorkloadStep]]) -> Iterator[Contradiction]:
        for index, step in timeline:
            if isinstance(step, Tickle) and step.tickle > 1:
                yield Contradiction(index, ("tickle",), "there is one to tickle")


def tick(spec: TickerSpec, commands: Commands, stack: ExitStack) -> Report:
    """Hand over a record, and await its report."""
    clock = Clock(spec.origin_ns)
    journal = stack.enter_context(Journal(journal_path(spec.journals, "sends", spec.journal), SENDS))
    recorder = SendRecorder(journal, spec.worker, "all", spec.partitions, [])
    stack.callback(recorder.flush)
    producer = Producer(spec.config)
    deliveries = Deliveries(spec.worker, spec.record_size, recorder, clock)
    following = spec.first

    def step(at_most_s: float) -> None:
        nonlocal following
        if not deliveries.waiting:
            topic, partition = spec.partitions[0]
            recorder.invoked(following, np.zeros(1, np.int64), None, clock.now(), spec.first_incarnation)
            [payload] = deliveries.payloads(following, 1)
            producer.produce(topic, payload, partition=partition, on_delivery=deliveries.reported)
            following += 1
        producer.poll(at_most_s)
        deliveries.collect()

    def flush() -> Report:
        recorder.flush()
        return Report(**vars(recorder.tally))

    def finished(at_most_s: float) -> bool:
        producer.poll(at_most_s)
        deliveries.collect()
        return not deliveries.waiting

    return run(commands, step, finished, flush)
