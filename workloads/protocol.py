"""What a worker process reads (the first line of its standard input) and writes (its standard output)."""

from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field

from harness.core.errors import ClusterError
from harness.core.topology import Partition
from workloads.clients.settings import Config

#: Each process of a producer has so many sequences. A record's id has 40 bits for them (``SEQUENCE_BITS``), which is
#: room for so many processes.
_SEQUENCES, PROCESSES = 1 << 32, 1 << 8
#: A choice: an incarnation, written in decimal, shows the process and which of its clients this is.
CLIENTS = 100


class Spec(BaseModel):
    """What any worker needs. ``client``: ``module:function`` that does the work; it takes a spec, the commands and an
    ExitStack, and returns the last report. ``writes``: it is a producer, and finishes before the consumers. ``tables``:
    the tables of the history that it writes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    client: ClassVar[str]
    writes: ClassVar[bool] = False
    tables: ClassVar[tuple[str, ...]]

    worker: int
    role: str = Field(description="the name of its work; run.json names its client by this and its number")
    config: Config = Field(description="librdkafka's settings")
    partitions: list[Partition] = Field(description="topic and partition")
    journals: Path
    origin_ns: int
    process: int = Field(0, description="the number of earlier processes of this worker")

    @property
    def journal(self) -> str:
        """The name of its journals. Each process of a worker has its own, so those of earlier processes stay."""
        return f"{self.worker}.{self.process}" if self.process else str(self.worker)

    @property
    def member(self) -> bool:
        """Whether it is a member of a consumer group."""
        return False

    @property
    def append_delay_s(self) -> float:
        """How long brokers may still append its records after it has finished, in seconds."""
        return 0.0

    def successor(self) -> Self:
        """The spec of the next process of this worker. Raises ClusterError if it may have no more."""
        return self.model_copy(update={"process": self.process + 1})


class WriterSpec(Spec):
    """Any producer. Each process of one worker has its own range of sequences."""

    writes: ClassVar[bool] = True
    tables: ClassVar[tuple[str, ...]] = ("sends",)

    rate: float | None
    record_size: int
    seed: int

    @property
    def first(self) -> int:
        """The first sequence (and the first transaction) of this process: above those of all earlier processes."""
        return self.process * _SEQUENCES

    @property
    def first_incarnation(self) -> int:
        """The incarnation of its first client. Each process has a range of ``CLIENTS``."""
        return self.process * CLIENTS

    def successor(self) -> Self:
        if self.process + 1 >= PROCESSES:
            raise ClusterError(f"{self.role} {self.worker} was replaced {self.process} times: it may be no more often")
        return super().successor()


class NamedSpec(BaseModel):
    """The first line that a worker process reads: ``spec`` is the ``module:class`` of a spec, ``values`` its fields."""

    spec: str
    values: dict[str, Any]

    @classmethod
    def to(cls, spec: Spec) -> "NamedSpec":
        """This spec, with the name of its class."""
        kind = type(spec)
        return cls(spec=f"{kind.__module__}:{kind.__qualname__}", values=spec.model_dump(mode="json"))


class Report(BaseModel):
    """One line of a worker's statistics. What it counts is already in the journals. The last report says ``finished``.

    ``owned``: the number of partitions assigned to a consumer, 0 while its group rebalances. ``processed``: the share
    of a poll's records that a member of a group has processed, 0 to 1; null between polls. ``behind``: a consumer was
    asked to finish, but did not reach the end of the log in time. ``last_acks``: by the index of each partition that a
    producer wrote to, the time of the last acknowledgement; -1: none.
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
