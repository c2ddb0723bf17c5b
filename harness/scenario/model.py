"""A scenario: the shape of a cluster, its settings, a workload, a timeline of faults, and what is expected."""

import ipaddress
from typing import TYPE_CHECKING, Annotated, Literal, Self, Union

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from harness.core.errors import ScenarioError
from harness.core.verdict import Expectation
from harness.core.version import parse_version
from harness.history.run_file import Limits, Requirements
from harness.scenario.contradictions import contradictions
from harness.scenario.problems import Problem
from harness.scenario.steps import Inject, Injection, Random, Step
from workloads.catalogue import DEFAULT, WORKLOADS
from workloads.clients.librdkafka import Value
from workloads.clients.settings import Isolation
from workloads.workload import Workload

DEFAULT_VERSION = "4.3.1"

Setting = Value


def _of_a_kind(workload: object) -> object:
    """A workload that does not say its ``kind`` is the default one."""
    return {"kind": DEFAULT, **workload} if isinstance(workload, dict) else workload


#: A workload of the catalogue, told apart by ``kind``.
if TYPE_CHECKING:
    AnyWorkload = Workload
else:
    AnyWorkload = Annotated[
        Union[tuple(WORKLOADS.values())],  # noqa: UP007 - made of data
        Field(discriminator="kind", description="who writes and reads, and with which settings"),
        BeforeValidator(_of_a_kind),
    ]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class ClusterSpec(_Part):
    """Which nodes, of which version, with which settings."""

    version: str = Field(DEFAULT_VERSION, description="of Kafka, in quotes where YAML would read a number")
    metadata: Literal["kraft", "zookeeper"] = Field(
        "kraft", description="who keeps it: kraft from 3.3 on, zookeeper before 4.0"
    )
    brokers: int = Field(3, ge=1, le=30, description="how many: b1, b2 …")
    controllers: int | None = Field(None, description="dedicated KRaft controllers, 1 or 3 (default 1)")
    zookeepers: int | None = Field(None, description="ZooKeeper nodes, 1 or 3 (default 1)")
    image: str | None = Field(
        None, description="an image to use instead of the one built here: jars in /opt/kafka/libs"
    )
    config: dict[str, Setting] = Field({}, description="any broker setting, under Kafka's name")
    subnet: str | None = Field(None, description="an IPv4 /24 for the nodes (default: a free one)")
    clients: Literal["direct", "published"] = Field(
        "direct", description="direct: by the nodes' addresses (Linux); published: by loopback ports (Docker Desktop)"
    )

    @field_validator("version", mode="before")
    @classmethod
    def _a_version(cls, value: object) -> str:
        try:
            # A number has lost what was written: YAML reads 3.10 as 3.1.
            parse_version(value if isinstance(value, str) else "")
        except ScenarioError:
            raise ValueError(f"{value!r} is no Kafka version such as {DEFAULT_VERSION}") from None
        return str(value)

    @field_validator("subnet")
    @classmethod
    def _a_subnet(cls, value: str | None) -> str | None:
        try:
            fits = value is None or ipaddress.IPv4Network(value).prefixlen == 24
        except ValueError:
            fits = False
        if not fits:
            raise ValueError(f"{value!r} is no IPv4 /24 such as 10.210.7.0/24")
        return value

    @property
    def node_names(self) -> list[str]:
        """``b1`` …, ``c1`` … or ``z1`` …"""
        kraft = self.metadata == "kraft"
        return [
            *(f"b{i + 1}" for i in range(self.brokers)),
            *(f"c{i + 1}" for i in range((self.controllers or 1) if kraft else 0)),
            *(f"z{i + 1}" for i in range(0 if kraft else (self.zookeepers or 1))),
        ]


class TopicSpec(_Part):
    """The topics of a run, all alike: ``name``, or ``name-0`` … where there are several."""

    name: str = Field("trial", pattern="^[a-zA-Z0-9._-]+$", description="of the topic; of several, how they begin")
    count: int = Field(1, ge=1, le=1_000, description="how many topics")
    partitions: int = Field(1, ge=1, le=10_000, description="of each topic")
    replication: int = Field(3, ge=1, description="replicas of each partition")
    min_isr: int = Field(
        1, ge=1, alias="min.insync.replicas", description="in-sync replicas without which acks: all is refused"
    )
    unclean: bool | None = Field(None, alias="unclean.leader.election.enable", description="default false (KIP-106)")
    config: dict[str, Setting] = Field({}, description="any other topic setting, under Kafka's name")
    assignment: list[list[int]] | None = Field(None, description="broker ids of each partition's replicas")
    avoid: Literal["controller"] | None = Field(
        None, description="controller: no replica on the broker that is the controller (ZooKeeper mode)"
    )

    @property
    def names(self) -> list[str]:
        """The topics' names."""
        return [self.name] if self.count == 1 else [f"{self.name}-{i}" for i in range(self.count)]

    @property
    def settings(self) -> dict[str, str]:
        """The topic settings as Kafka takes them. With ELR (KIP-966) min.insync.replicas must be the topic's."""
        given: dict[str, Setting] = {
            **self.config,
            "min.insync.replicas": self.min_isr,
            "unclean.leader.election.enable": bool(self.unclean),
        }
        return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in given.items()}


class FinalRead(_Part):
    """How everything is read back."""

    isolation_level: Isolation | None = Field(None, alias="isolation.level", description="default: the workload's")
    down: list[str] = Field([], description="injections, nodes or pins that may stay as they are")
    replicas: bool = Field(False, description="also read the log of every follower in the ISR (Kafka 2.4 and later)")


class Scenario(_Part):
    """A named experiment with an expectation."""

    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$", description="default: the file's name"
    )
    source: str = Field("", description="where the claim comes from")
    claim: str = Field("", description="what it shows, in one sentence")
    notes: str = Field("", description="what was found when it was run")
    cluster: ClusterSpec = Field(ClusterSpec(), description="which nodes, of which version, with which settings")
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

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if problems := contradictions(self):
            raise ValidationError.from_exception_data("scenario", [_refused(problem) for problem in problems])
        return self

    @property
    def faults(self) -> list[Injection]:
        """Every fault that the timeline injects, or may draw."""
        injected = [step.inject for step in self.timeline if isinstance(step, Inject)]
        drawn = [fault for step in self.timeline if isinstance(step, Random) for fault in step.random.faults]
        return [*injected, *drawn]

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


def _refused(problem: Problem) -> InitErrorDetails:
    says = PydanticCustomError("contradiction", "{says}", {"says": problem.says})
    return InitErrorDetails(type=says, loc=problem.where, input=None)
