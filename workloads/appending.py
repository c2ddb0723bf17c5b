"""What workloads that append numbered records without transactions have in common: their producers."""

from pydantic import Field

from harness.core.quantities import Positive
from workloads.clients.settings import producer_config
from workloads.clients.specs import ProducerSpec
from workloads.protocol import Spec
from workloads.workload import Surroundings, Workload


class Appending(Workload):
    """Producers that append numbered records, without transactions."""

    keys: Positive | None = Field(None, description="distinct keys, each always in one partition; null: no keys")

    def producer_specs(self, surroundings: Surroundings) -> list[Spec]:
        """The producers: workers 1, 2 …"""
        return [
            ProducerSpec(
                worker=worker,
                config=producer_config(self, surroundings.bootstrap, f"kafka-trial-{worker}", self.record_size),
                acks=self.acks,
                rate=self.rate_of_each,
                record_size=self.record_size,
                keys=self.keys,
                seed=surroundings.seed,
                **surroundings.of_every_spec,
            )
            for worker in range(1, self.producers + 1)
        ]
