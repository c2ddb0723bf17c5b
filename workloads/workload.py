"""The base class of workloads: settings, workers, the steps that it adds to a timeline, and what others must know."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from harness.core.clock import Clock
from harness.core.quantities import Positive, Whole
from harness.core.step import TimelineStep
from harness.core.topology import Partition
from workloads.clients.payload import HEADER_SIZE
from workloads.clients.settings import ClientSettings
from workloads.processes import Workers
from workloads.protocol import Spec


@dataclass(frozen=True)
class Surroundings:
    """Where a workload runs. ``topics``: the number of partitions by topic. ``journals``: an existing directory."""

    bootstrap: str
    topics: Mapping[str, int]
    journals: Path
    clock: Clock
    seed: int

    @property
    def partitions(self) -> list[Partition]:
        """Every topic-partition."""
        return [(topic, partition) for topic, count in self.topics.items() for partition in range(count)]

    @property
    def group(self) -> str:
        """The ``group.id`` of its consumers."""
        return f"kafka-trial-{self.clock.origin_ns}"

    @property
    def of_every_spec(self) -> dict[str, Any]:
        """The fields that the specs of all workers share."""
        return {"partitions": self.partitions, "journals": self.journals, "origin_ns": self.clock.origin_ns}


class WorkloadStep(TimelineStep):
    """A step of a timeline that belongs to one workload. ``elsewhere``: the error message for any other workload."""

    elsewhere: ClassVar[str]

    def play(self, workers: Workers) -> str:
        """Play the step; return what was done, in a few words. Raises ClusterError if that is not possible."""
        raise NotImplementedError


@dataclass(frozen=True)
class Contradiction:
    """An error in a timeline: the number of the step, the path below it, and one clear line."""

    step: int
    path: tuple[str, ...]
    says: str


class Workload(ClientSettings):
    """The keys of a scenario's ``workload:`` of any kind, in addition to the client settings.

    A workload is a class and a line in workloads/catalogue.py. Its ``kind`` is its name there.
    """

    steps: ClassVar[tuple[type[WorkloadStep], ...]] = ()

    #: With all consumers the workers are fewer than ``FINAL_READER``: readers have that number, and those above it.
    producers: Whole = Field(2, ge=1, le=900, description="producer processes")
    rate: Positive | None = Field(None, description="records/s over all producers; null: as fast as possible")
    #: A choice: half of what librdkafka takes in one answer (``receive.message.max.bytes``).
    record_size: Whole = Field(64, ge=HEADER_SIZE, le=50_000_000, alias="record.size", description="bytes of a value")

    @property
    def grouped(self) -> bool:
        """Whether its consumers share the partitions as a group."""
        return False

    @property
    def commits_first(self) -> bool:
        """Whether a member of its group commits the records of a poll before it processes them."""
        return False

    @property
    def rate_of_each(self) -> float | None:
        """Records/s of one producer."""
        return None if self.rate is None else self.rate / self.producers

    @property
    def settles_within(self) -> float | None:
        """Seconds after its end until every log is stable; None if it has no transactions, so that logs are always
        stable."""
        return None

    def transactional_id(self, origin_ns: int) -> str | None:  # noqa: ARG002 - called for every workload
        """The transactional.id whose coordinator is observed, if any; the run's clock began at ``origin_ns``."""
        return None

    @property
    def transactional(self) -> bool:
        """Whether it has transactions: then a fault can target their coordinator."""
        return self.settles_within is not None

    def worker_specs(self, surroundings: Surroundings) -> list[Spec]:
        """The spec of each worker. Producers are 1, 2 …, the consumers have the next numbers."""
        raise NotImplementedError

    def contradictions(self, timeline: Iterable[tuple[int, WorkloadStep]]) -> Iterator[Contradiction]:  # noqa: ARG002 - as above
        """The errors among the workload's own steps; each step comes with its number in the timeline."""
        yield from ()


def start(workload: Workload, surroundings: Surroundings) -> Workers:
    """The workers of a workload, not yet running. Entering the result starts their processes, ``begin`` their work."""
    return Workers(workload.worker_specs(surroundings))
