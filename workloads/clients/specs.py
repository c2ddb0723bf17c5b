"""What each client is given: the specs of producers, of producers of transactions, and of consumers."""

from typing import ClassVar, Literal

from harness.core.errors import ClusterError
from workloads.clients.settings import MOST_WAITING, Acks
from workloads.protocol import CLIENTS, Spec, WriterSpec

#: With acks=0 a producer finishes when all is sent, but a broker under load may append the records later.
_TAKEN_WITHIN_S = 3.0


class ProducerSpec(WriterSpec):
    """A producer. ``rate``: records/s of this process, None: as fast as possible; ``record_size`` in bytes."""

    client: ClassVar[str] = "workloads.clients.producing:produce"

    role: Literal["producer"] = "producer"
    acks: Acks
    keys: int | None
    most_waiting: int = MOST_WAITING

    @property
    def append_delay_s(self) -> float:
        """How long brokers may still append its records: with acks=0 no answer says that they are appended."""
        return _TAKEN_WITHIN_S if self.acks == "0" else super().append_delay_s


class TransactorSpec(WriterSpec):
    """A producer of transactions with ``records`` each. It aborts the share ``aborted`` of them on purpose."""

    client: ClassVar[str] = "workloads.clients.transacting:transact"
    tables: ClassVar[tuple[str, ...]] = ("sends", "transactions")

    role: Literal["transactor"] = "transactor"
    records: int
    aborted: float

    def incarnation_after(self, incarnation: int) -> int:
        """The incarnation of the client that replaces one of this process. Raises ClusterError if that number is the
        next process's."""
        following = incarnation + 1
        if following >= self.first_incarnation + CLIENTS:
            raise ClusterError(f"{self.role} {self.worker} replaced {CLIENTS - 1} dead clients: it may have no more")
        return following


class ConsumerSpec(Spec):
    """A consumer: it reads all ``partitions``, or, as a member of a group, the partitions that the group assigns to it.

    ``processing``: seconds to process the records of one poll; None: it only reads them. ``commits_first``: it commits
    before it processes, not after.
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
