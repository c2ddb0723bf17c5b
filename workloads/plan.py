"""What each worker of a workload is told."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.core.clock import Clock
from workloads.client_settings import Isolation, consumer_config, producer_config, transactor_config
from workloads.groups import Groups
from workloads.queue import Appending, Queue
from workloads.specs import AnySpec, ConsumerSpec, ProducerSpec, Slot, TransactorSpec
from workloads.transactions import Transactions, transactional_id


@dataclass(frozen=True)
class Plan:
    """Where a workload runs: ``topics`` by their number of partitions, ``journals`` a directory that exists."""

    bootstrap: str
    topics: Mapping[str, int]
    journals: Path
    clock: Clock
    seed: int

    @property
    def slots(self) -> list[Slot]:
        """Every topic-partition."""
        return [(topic, partition) for topic, count in self.topics.items() for partition in range(count)]


AnyWorkload = Queue | Groups | Transactions


def worker_specs(workload: AnyWorkload, plan: Plan) -> list[AnySpec]:
    """What each worker is told: producers are 1, 2 …, the consumers follow them."""
    match workload:
        case Queue():
            return [*_producers(workload, plan), *_consumers(workload, plan)]
        case Groups():
            return [*_producers(workload, plan), *_members(workload, plan)]
        case Transactions():
            return _of_transactions(workload, plan)


def _common(plan: Plan) -> dict[str, Any]:
    return {"slots": plan.slots, "journals": plan.journals, "origin_ns": plan.clock.origin_ns}


def _producers(spec: Appending, plan: Plan) -> list[ProducerSpec]:
    return [
        ProducerSpec(
            worker=worker,
            config=producer_config(spec, plan.bootstrap, f"kafka-trial-{worker}", spec.record_size),
            acks=spec.acks,
            rate=None if spec.rate is None else spec.rate / spec.producers,
            record_size=spec.record_size,
            keys=spec.keys,
            seed=plan.seed,
            **_common(plan),
        )
        for worker in range(1, spec.producers + 1)
    ]


def _consumers(queue: Queue, plan: Plan) -> list[ConsumerSpec]:
    return [
        ConsumerSpec(
            worker=worker,
            config=consumer_config(queue, plan.bootstrap, f"kafka-trial-{worker}", _group(plan)),
            grouped=queue.grouped,
            **_common(plan),
        )
        for worker in range(queue.producers + 1, queue.producers + queue.consumers + 1)
    ]


def _members(spec: Groups, plan: Plan) -> list[ConsumerSpec]:
    return [
        ConsumerSpec(
            worker=worker,
            config=consumer_config(
                spec, plan.bootstrap, f"kafka-trial-{worker}", _group(plan), spec.session_timeout_ms
            ),
            grouped=True,
            processing=spec.processing,
            commits_first=spec.commits_first,
            **_common(plan),
        )
        for worker in range(spec.producers + 1, spec.producers + spec.members + 1)
    ]


def _group(plan: Plan) -> str:
    return f"kafka-trial-{plan.clock.origin_ns}"


def _of_transactions(spec: Transactions, plan: Plan) -> list[AnySpec]:
    producers = [
        TransactorSpec(
            worker=worker,
            config=transactor_config(
                spec,
                plan.bootstrap,
                f"kafka-trial-{worker}",
                spec.record_size,
                transactional_id(plan.clock.origin_ns, worker),
                spec.transaction_timeout_ms,
            ),
            rate=None if spec.rate is None else spec.rate / spec.producers,
            record_size=spec.record_size,
            records=spec.records,
            aborted=spec.aborted,
            seed=plan.seed,
            **_common(plan),
        )
        for worker in range(1, spec.producers + 1)
    ]
    levels: list[Isolation] = ["read_committed", "read_uncommitted"]
    readers = enumerate(levels * spec.consumers, spec.producers + 1)
    consumers = [
        ConsumerSpec(
            worker=worker,
            config=consumer_config(
                spec.model_copy(update={"isolation_level": level}),
                plan.bootstrap,
                f"kafka-trial-{worker}",
                _group(plan),
            ),
            grouped=False,
            **_common(plan),
        )
        for worker, level in readers
    ]
    return [*producers, *consumers]
