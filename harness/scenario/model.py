"""A scenario: the shape of a cluster, its settings, a workload, a timeline of faults, and what is expected."""

from typing import TYPE_CHECKING, Annotated, Union

from pydantic import BeforeValidator, Field

from harness.cluster.spec import ClusterSpec, Part, TopicSpec
from harness.core.verdict import Expectation
from harness.history.run_file import Limits, Requirements
from harness.providers.catalogue import PROVIDERS, composed
from harness.scenario.steps import Injection, Step, injections
from workloads.catalogue import DEFAULT, WORKLOADS
from workloads.clients.settings import Isolation
from workloads.workload import Workload


def _of_a_kind(workload: object) -> object:
    """A workload that does not say its ``kind`` is the default one."""
    return {"kind": DEFAULT, **workload} if isinstance(workload, dict) else workload


#: A workload of the catalogue; ``kind`` says which.
if TYPE_CHECKING:
    AnyWorkload = Workload
else:
    AnyWorkload = Annotated[
        Union[tuple(WORKLOADS.values())],  # noqa: UP007 - made of data
        Field(discriminator="kind", description="who writes and reads, and with which settings"),
        BeforeValidator(_of_a_kind),
    ]


#: What any cluster has, and what each provider of the catalogue adds.
if TYPE_CHECKING:
    AnyCluster = ClusterSpec
else:
    AnyCluster = composed(PROVIDERS)


class FinalRead(Part):
    """How everything is read back."""

    isolation_level: Isolation | None = Field(None, alias="isolation.level", description="default: the workload's")
    down: list[str] = Field([], description="injections, nodes or pins that may stay as they are")
    replicas: bool = Field(False, description="also read the log of every follower in the ISR (Kafka 2.4 and later)")


class Scenario(Part):
    """A named experiment with an expectation. What contradicts itself is refused where one is loaded (loading.py)."""

    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$", description="default: the file's name"
    )
    source: str = Field("", description="where the claim comes from")
    claim: str = Field("", description="what it shows, in one sentence")
    notes: str = Field("", description="what was found when it was run")
    tags: list[str] = Field([], description="words by which suites and `kafka-trial scenarios --tag` choose it")
    cluster: AnyCluster = Field(AnyCluster(), description="which nodes, of which version, with which settings")
    topic: TopicSpec = Field(TopicSpec(), description="what is written to and read from")
    workload: AnyWorkload = WORKLOADS[DEFAULT]()
    timeline: list[Step] = Field([], description="what happens while the workload runs, one step after the other")
    watch: Annotated[str, BeforeValidator(str)] = Field(
        "0", pattern=r"^(.+/)?\d+$", description="the partition whose leader is meant: 0, or trial/0"
    )
    final_read: FinalRead = Field(FinalRead(), description="how everything is read back when all is over")
    requires: Requirements = Field(Requirements(), description="what must have happened, or the run is unknown")
    limits: Limits = Field(Limits(), description="what is invalid though Kafka promises nothing of it")
    expect: Expectation = Field(Expectation(), description="the verdict that is success; the default is valid")

    @property
    def faults(self) -> list[Injection]:
        """Every fault that the timeline injects, or may draw."""
        return [fault for step in self.timeline for fault in injections(step)]

    @property
    def watch_topic(self) -> str:
        """The topic of the partition whose leader the targets mean."""
        return self.watch.rpartition("/")[0] or self.topic.names[0]

    @property
    def watch_partition(self) -> int:
        """The number of the partition whose leader the targets mean."""
        return int(self.watch.rpartition("/")[2])

    @property
    def isolation_level(self) -> Isolation:
        """How the final read isolates."""
        return self.final_read.isolation_level or self.workload.isolation_level
