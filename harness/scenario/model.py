"""A scenario: the shape of a cluster, its settings, a workload, a timeline of faults, and what is expected."""

from typing import TYPE_CHECKING, Annotated, Union

from pydantic import BeforeValidator, Field

from harness.cluster.spec import ClusterSpec, Part, TopicSpec
from harness.core.quantities import Flag
from harness.core.verdict import Expectation
from harness.history.run_file import Limits, Requirements
from harness.providers.catalogue import PROVIDERS, composed
from harness.scenario.steps import Injection, Step, injections
from workloads.catalogue import DEFAULT, WORKLOADS
from workloads.clients.settings import Isolation
from workloads.workload import Workload

#: A name is a folder of the store, and file systems allow 255 bytes for one.
LONGEST_NAME = 200


def _of_a_kind(workload: object) -> object:
    """A workload without ``kind`` is the default one."""
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
    """How every log is read back."""

    isolation_level: Isolation | None = Field(None, alias="isolation.level", description="default: the workload's")
    down: list[str] = Field([], description="injections, nodes or pins that may stay as they are")
    replicas: Flag = Field(False, description="also read the log of every follower in the ISR (Kafka 2.4 and later)")


class Scenario(Part):
    """A named experiment with an expectation. Loading refuses one that contradicts itself (loading.py)."""

    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$",
        max_length=LONGEST_NAME,
        description="default: the file's name",
    )
    source: str = Field("", description="the source of the claim")
    claim: str = Field("", description="what it shows, in one sentence")
    notes: str = Field("", description="what was found when it was run")
    tags: list[str] = Field([], description="words that suites and `kafka-trial scenarios --tag` choose by")
    cluster: AnyCluster = Field(AnyCluster(), description="which nodes, of which version, with which settings")
    topic: TopicSpec = Field(TopicSpec(), description="what is written to and read from")
    workload: AnyWorkload = WORKLOADS[DEFAULT]()
    timeline: list[Step] = Field([], description="what happens while the workload runs, one step after the other")
    watch: Annotated[str, BeforeValidator(str)] = Field(
        "0", pattern=r"^(.+/)?\d+$", description="the partition whose leader and ISR count: 0, or trial/0"
    )
    final_read: FinalRead = Field(FinalRead(), description="how every log is read back at the end")
    requires: Requirements = Field(Requirements(), description="what must happen, or the run is unknown")
    limits: Limits = Field(Limits(), description="your own limits: beyond them a run is invalid")
    expect: Expectation = Field(Expectation(), description="the verdict that counts as success; the default is valid")

    @property
    def faults(self) -> list[Injection]:
        """Every fault that the timeline injects, or may choose at random."""
        return [fault for step in self.timeline for fault in injections(step)]

    @property
    def watch_topic(self) -> str:
        """The topic of the watched partition, whose leader and ISR the targets mean."""
        return self.watch.rpartition("/")[0] or self.topic.names[0]

    @property
    def watch_partition(self) -> int:
        """The number of the watched partition."""
        return int(self.watch.rpartition("/")[2])

    @property
    def isolation_level(self) -> Isolation:
        """The isolation level of the final read."""
        return self.final_read.isolation_level or self.workload.isolation_level
