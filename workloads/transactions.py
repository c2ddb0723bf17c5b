"""The workload ``transactions``: producers write in transactions and abort some on purpose; consumers of both isolation
levels read them."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from harness.core.quantities import Positive, Share, Whole
from workloads.clients.settings import Isolation, consumer_config, transactor_config
from workloads.clients.specs import ConsumerSpec, TransactorSpec
from workloads.processes import Workers
from workloads.protocol import PROCESSES, Spec
from workloads.workload import Contradiction, Surroundings, Workload, WorkloadStep

#: librdkafka wants its socket.timeout.ms (10 s here) to fit into a transaction (rdkafka_conf.c, finalize).
_SHORTEST_TIMEOUT_MS = 10_000

#: The longest time from a transaction's timeout until its coordinator aborts it, with room to spare: the coordinator
#: checks every 10 s (transaction.abort.timed.out.transaction.cleanup.interval.ms), and may first have to be elected and
#: load its log.
_SETTLING_S = 30.0


class Replacement(BaseModel):
    """A transactional producer of the workload."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    producer: Whole = Field(ge=1, description="which one: 1 is the first")

    def __str__(self) -> str:
        return f"producer {self.producer}"


class Replace(WorkloadStep):
    """Kill a transactional producer in the middle of its work, and start another with the same transactional.id.

    The new one fences what is left of the dead one (KIP-98, 2.5).
    """

    elsewhere: ClassVar[str] = "only a transactional producer is replaced: use kind: transactions"

    replace: Replacement

    def play(self, workers: Workers) -> str:
        return workers.replace(self.replace.producer)


class Transactions(Workload):
    """The keys of a scenario's ``workload:`` with ``kind: transactions``, in addition to the client settings."""

    steps: ClassVar = (Replace,)

    kind: Literal["transactions"] = "transactions"
    #: With consumers of both levels the workers are fewer than ``FINAL_READER``, as in any workload.
    producers: Whole = Field(2, ge=1, le=900, description="producer processes, each with a transactional.id of its own")
    consumers: Whole = Field(
        1, ge=0, le=49, description="consumers of each isolation level; each reads every partition while the run lasts"
    )
    records: Whole = Field(6, ge=1, le=10_000, description="records of a transaction, over all partitions in turn")
    aborted: Share = Field(0.2, description="share of the transactions that are aborted on purpose, drawn by the seed")
    rate: Positive | None = Field(200, description="records/s over all producers; null: as fast as possible")
    transaction_timeout_ms: Whole = Field(
        30_000,
        ge=_SHORTEST_TIMEOUT_MS,
        le=900_000,
        alias="transaction.timeout.ms",
        description="900000 is the most that brokers allow by default",
    )
    isolation_level: Isolation = Field(
        "read_committed", alias="isolation.level", description="of the final read; the live consumers have both"
    )

    @model_validator(mode="after")
    def _transactional(self) -> Self:
        if not self.enable_idempotence:
            raise ValueError("transactions need enable.idempotence: true and acks: all (KIP-98): remove what says else")
        if self.delivery_timeout_ms > self.transaction_timeout_ms:
            raise ValueError(
                f"delivery.timeout.ms ({self.delivery_timeout_ms}) must not exceed transaction.timeout.ms "
                f"({self.transaction_timeout_ms}): librdkafka refuses it"
            )
        return self

    @property
    def settles_within(self) -> float:
        """A transaction is over when its timeout has passed and its coordinator has noticed that."""
        return self.transaction_timeout_ms / 1e3 + _SETTLING_S

    def transactional_id(self, origin_ns: int) -> str:
        """The transactional.id of the first producer."""
        return transactional_id(origin_ns, 1)

    def contradictions(self, timeline: Iterable[tuple[int, WorkloadStep]]) -> Iterator[Contradiction]:
        """Only an existing producer can be replaced, and not more often than record ids have room for."""
        replaced = Counter[int]()
        for index, step in timeline:
            if not isinstance(step, Replace):
                continue
            number = step.replace.producer
            replaced[number] += 1
            if number > self.producers:
                says = f"there is no producer {number}: they are 1 to {self.producers}"
                yield Contradiction(index, ("replace", "producer"), says)
            elif replaced[number] == PROCESSES:
                says = f"producer {number} is replaced {PROCESSES} times: it may be {PROCESSES - 1} times"
                yield Contradiction(index, ("replace", "producer"), says)

    def worker_specs(self, surroundings: Surroundings) -> list[Spec]:
        """The producers, and live consumers of each isolation level."""
        return [*self._transactors(surroundings), *self._consumers(surroundings)]

    def _transactors(self, surroundings: Surroundings) -> list[Spec]:
        return [
            TransactorSpec(
                worker=worker,
                config=transactor_config(
                    self,
                    surroundings.bootstrap,
                    f"kafka-trial-{worker}",
                    self.record_size,
                    transactional_id(surroundings.clock.origin_ns, worker),
                    self.transaction_timeout_ms,
                ),
                rate=self.rate_of_each,
                record_size=self.record_size,
                records=self.records,
                aborted=self.aborted,
                seed=surroundings.seed,
                **surroundings.of_every_spec,
            )
            for worker in range(1, self.producers + 1)
        ]

    def _consumers(self, surroundings: Surroundings) -> list[Spec]:
        levels: list[Isolation] = ["read_committed", "read_uncommitted"]
        return [
            ConsumerSpec(
                worker=worker,
                config=consumer_config(
                    self.model_copy(update={"isolation_level": level}),
                    surroundings.bootstrap,
                    f"kafka-trial-{worker}",
                    surroundings.group,
                ),
                grouped=False,
                **surroundings.of_every_spec,
            )
            for worker, level in enumerate(levels * self.consumers, self.producers + 1)
        ]


def transactional_id(origin_ns: int, worker: int) -> str:
    """The transactional.id of a worker in the run whose clock began at ``origin_ns``."""
    return f"kafka-trial-{origin_ns}-{worker}"
