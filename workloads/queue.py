"""The workload ``queue``: producers append numbered records, consumers read them; every record is accounted for."""

from typing import Literal

from pydantic import Field

from harness.core.quantities import Whole
from workloads.appending import Appending
from workloads.clients.settings import consumer_config
from workloads.clients.specs import ConsumerSpec
from workloads.protocol import Spec
from workloads.workload import Surroundings


class Queue(Appending):
    """The keys of a scenario's ``workload:`` with ``kind: queue``, in addition to the client settings."""

    kind: Literal["queue"] = "queue"
    consumers: Whole = Field(1, ge=0, le=99, description="processes that read while the run lasts")
    consume: Literal["assign", "group"] = Field(
        "assign", description="assign: every consumer reads every partition; group: they share them as a consumer group"
    )

    @property
    def grouped(self) -> bool:
        """Whether its consumers share the partitions as a group."""
        return self.consume == "group"

    def worker_specs(self, surroundings: Surroundings) -> list[Spec]:
        """The producers, and the live consumers."""
        return [*self.producer_specs(surroundings), *self._consumers(surroundings)]

    def _consumers(self, surroundings: Surroundings) -> list[Spec]:
        return [
            ConsumerSpec(
                worker=worker,
                config=consumer_config(self, surroundings.bootstrap, f"kafka-trial-{worker}", surroundings.group),
                grouped=self.grouped,
                **surroundings.of_every_spec,
            )
            for worker in range(self.producers + 1, self.producers + self.consumers + 1)
        ]
