"""What a worker process is told on the first line of its standard input, and what it tells on its standard output."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from workloads.client_settings import MOST_WAITING, Acks, Config

Slot = tuple[str, int]


class _Spec(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    worker: int
    config: Config = Field(description="what librdkafka is given")
    slots: list[Slot] = Field(description="topic and partition")
    journals: Path
    origin_ns: int
    life: int = Field(0, description="how many processes of this worker there were before")

    @property
    def journal(self) -> str:
        """What its journals are called: those of its predecessors stay as they are."""
        return f"{self.worker}.{self.life}" if self.life else str(self.worker)


class ProducerSpec(_Spec):
    """A producer. ``rate``: records/s of this process, null is as fast as possible; ``record_size`` in bytes."""

    role: Literal["producer"] = "producer"
    acks: Acks
    rate: float | None
    record_size: int
    keys: int | None
    seed: int
    most_waiting: int = MOST_WAITING


class TransactorSpec(_Spec):
    """A producer of transactions of ``records`` each, ``aborted`` of them (a share) on purpose.

    Each process of one worker has numbers of its own: see ``first``.
    """

    role: Literal["transactor"] = "transactor"
    rate: float | None
    record_size: int
    records: int
    aborted: float
    seed: int

    @property
    def first(self) -> int:
        """The first sequence, and the first transaction, of this process: above all of its predecessors'."""
        return self.life << 32


class ConsumerSpec(_Spec):
    """A consumer: reads all its ``slots``, or as a member of a group those of their topics that it is given.

    ``processing``: the seconds that the records of one poll take to be processed, null where reading them is all.
    ``commits_first``: before that, not after.
    """

    role: Literal["consumer"] = "consumer"
    grouped: bool
    processing: float | None = None
    commits_first: bool = False


AnySpec = ProducerSpec | TransactorSpec | ConsumerSpec

WorkerSpec = TypeAdapter[AnySpec](Annotated[AnySpec, Field(discriminator="role")])


class Report(BaseModel):
    """One line of a worker's statistics; all of it is in the journals already. The last one says ``finished``.

    ``owned``: how many partitions a consumer has been given, none while its group rebalances. ``processed``: how much
    of a poll's records a member of a group has processed, of 1; null between polls. ``behind``: a consumer was told to
    finish, and did not come to the end of the log in time.
    """

    sent: int = 0
    acknowledged: int = 0
    failed: int = 0
    indeterminate: int = 0
    read: int = 0
    owned: int = 0
    processed: float | None = None
    last_ack_ns: int | None = None
    finished: bool = False
    behind: bool = False
    note: str | None = None
