"""What a worker process reads on the first line of its standard input, and what it writes on its standard output."""

from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from harness.core.topology import Partition
from workloads.clients.settings import MOST_WAITING, Acks, Config

#: With acks=0 a producer finishes when all is sent: a broker under load appends it later.
_TAKEN_WITHIN_S = 3.0


class Spec(BaseModel):
    """What any worker needs. ``client``: ``module:function`` that does its work, of a spec, its commands and an
    ExitStack, and returns its last report. ``writes``: it finishes before those that read. ``tables``: those of the
    history that it writes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    client: ClassVar[str]
    writes: ClassVar[bool] = False
    tables: ClassVar[tuple[str, ...]]

    worker: int
    role: str = Field(description="what its work is called; its client in run.json by this and its number")
    config: Config = Field(description="librdkafka's settings")
    partitions: list[Partition] = Field(description="topic and partition")
    journals: Path
    origin_ns: int
    life: int = Field(0, description="how many processes of this worker there were before")

    @property
    def journal(self) -> str:
        """What its journals are called: those of its predecessors stay as they are."""
        return f"{self.worker}.{self.life}" if self.life else str(self.worker)

    @property
    def member(self) -> bool:
        """Whether it is a member of a consumer group."""
        return False

    @property
    def on_its_way_s(self) -> float:
        """How long brokers may still append what it sent, once it has finished, in seconds."""
        return 0.0


class WriterSpec(Spec):
    """Any producer. Each process of one worker has numbers of its own."""

    writes: ClassVar[bool] = True
    tables: ClassVar[tuple[str, ...]] = ("sends",)

    rate: float | None
    record_size: int
    seed: int

    @property
    def first(self) -> int:
        """The first sequence (and the first transaction) of this process: above all of its predecessors'."""
        return self.life << 32

    @property
    def first_incarnation(self) -> int:
        """What its first client is called: each process has a hundred."""
        return self.life * 100


class ProducerSpec(WriterSpec):
    """A producer. ``rate``: records/s of this process, null is as fast as possible; ``record_size`` in bytes."""

    client: ClassVar[str] = "workloads.clients.producing:produce"

    role: Literal["producer"] = "producer"
    acks: Acks
    keys: int | None
    most_waiting: int = MOST_WAITING

    @property
    def on_its_way_s(self) -> float:
        """How long brokers may still append what it sent: with acks=0 no answer tells that they have."""
        return _TAKEN_WITHIN_S if self.acks == "0" else super().on_its_way_s


class TransactorSpec(WriterSpec):
    """A producer of transactions of ``records`` each, ``aborted`` of them (a share) on purpose."""

    client: ClassVar[str] = "workloads.clients.transacting:transact"
    tables: ClassVar[tuple[str, ...]] = ("sends", "transactions")

    role: Literal["transactor"] = "transactor"
    records: int
    aborted: float


class ConsumerSpec(Spec):
    """A consumer: reads all its ``partitions``, or as a member of a group those of their topics that it is assigned.

    ``processing``: the seconds that the records of one poll take to be processed, null where reading them is all.
    ``commits_first``: before that, not after.
    """

    client: ClassVar[str] = "workloads.clients.consuming:consume"
    tables: ClassVar[tuple[str, ...]] = ("reads", "positions")

    role: Literal["consumer"] = "consumer"
    grouped: bool
    processing: float | None = None
    commits_first: bool = False

    @property
    def member(self) -> bool:
        return self.grouped


class Order(BaseModel):
    """The first line that a worker process reads: ``spec`` is ``module:class`` of ``values``."""

    spec: str
    values: dict[str, Any]

    @classmethod
    def to(cls, spec: Spec) -> "Order":
        """The order to do what ``spec`` says."""
        kind = type(spec)
        return cls(spec=f"{kind.__module__}:{kind.__qualname__}", values=spec.model_dump(mode="json"))


class Report(BaseModel):
    """One line of a worker's statistics; all of it is in the journals already. The last one says ``finished``.

    ``owned``: how many partitions a consumer is assigned, none while its group rebalances. ``processed``: how much
    of a poll's records a member of a group has processed, of 1; null between polls. ``behind``: a consumer was asked to
    finish, and did not come to the end of the log in time. ``last_acks``: when each partition that a producer wrote to
    acknowledged last, by its index; -1 where it never did.
    """

    sent: int = 0
    acknowledged: int = 0
    failed: int = 0
    indeterminate: int = 0
    read: int = 0
    owned: int = 0
    processed: float | None = None
    last_ack_ns: int | None = None
    last_acks: dict[int, int] = {}
    finished: bool = False
    behind: bool = False
    note: str | None = None
