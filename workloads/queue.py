"""The workload ``queue``: producers append numbered records, consumers read them; every record is accounted for."""

from typing import Literal

from pydantic import Field

from workloads.client_settings import ClientSettings
from workloads.payload import HEADER_SIZE


class Appending(ClientSettings):
    """Producers that append numbered records, without transactions."""

    producers: int = Field(2, ge=1, le=900, description="producer processes")
    rate: int | None = Field(None, ge=1, description="records/s over all producers; null: as fast as possible")
    record_size: int = Field(64, ge=HEADER_SIZE, le=50_000_000, alias="record.size", description="bytes of a value")
    keys: int | None = Field(None, ge=1, description="distinct keys, each always in one partition; null: no keys")


class Queue(Appending):
    """What a scenario's ``workload:`` with ``kind: queue`` may say, besides the client settings."""

    kind: Literal["queue"] = "queue"
    consumers: int = Field(1, ge=0, le=99, description="processes that read while the run lasts")
    consume: Literal["assign", "group"] = Field(
        "assign", description="assign: every consumer reads every partition; group: they share them as a consumer group"
    )

    @property
    def grouped(self) -> bool:
        """Whether its consumers share the partitions as a group."""
        return self.consume == "group"
