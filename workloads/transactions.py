"""The workload ``transactions``: producers write in transactions, some aborted on purpose; readers of both isolation
levels stand side by side."""

from typing import Literal, Self

from pydantic import Field, model_validator

from harness.core.quantities import Share
from workloads.client_settings import ClientSettings, Isolation
from workloads.payload import HEADER_SIZE

#: librdkafka wants its socket.timeout.ms (10 s here) to fit into a transaction (rdkafka_conf.c, finalize).
_SHORTEST_TIMEOUT_MS = 10_000


class Transactions(ClientSettings):
    """What a scenario's ``workload:`` with ``kind: transactions`` may say, besides the client settings."""

    kind: Literal["transactions"] = "transactions"
    producers: int = Field(2, ge=1, le=900, description="producer processes, each with a transactional.id of its own")
    consumers: int = Field(
        1, ge=0, le=49, description="processes of each isolation level that read every partition while the run lasts"
    )
    records: int = Field(6, ge=1, le=10_000, description="records of a transaction, over all partitions in turn")
    aborted: Share = Field(0.2, description="share of the transactions that are aborted on purpose, drawn by the seed")
    rate: int | None = Field(200, ge=1, description="records/s over all producers; null: as fast as possible")
    record_size: int = Field(64, ge=HEADER_SIZE, le=50_000_000, alias="record.size", description="bytes of a value")
    transaction_timeout_ms: int = Field(
        30_000,
        ge=_SHORTEST_TIMEOUT_MS,
        le=900_000,
        alias="transaction.timeout.ms",
        description="900000 is a broker's most",
    )
    isolation_level: Isolation = Field(
        "read_committed", alias="isolation.level", description="of the final read; live readers have one each"
    )

    @property
    def grouped(self) -> bool:
        """Whether its consumers share partitions as a group: they never do."""
        return False

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


def transactional_id(origin_ns: int, worker: int) -> str:
    """The transactional.id of a worker in the run whose clock began at ``origin_ns``."""
    return f"kafka-trial-{origin_ns}-{worker}"
