"""What a scenario says: a cluster, a topic, a workload, a timeline of faults, and what is expected of the verdict."""

import ipaddress
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializeAsAny,
    SerializerFunctionWrapHandler,
    ValidationError,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from harness.core.errors import ScenarioError
from harness.core.run_file import Requirements
from harness.core.verdict import Expectation
from harness.core.version import Version, parse_version
from harness.scenario.contradictions import contradictions
from harness.scenario.steps import AnyStep, refusal, unknown
from workloads.catalogue import WORKLOADS
from workloads.client_settings import Isolation
from workloads.queue import Queue

#: A setting under Kafka's own name.
Setting = str | int | float | bool

_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class ClusterSpec(_Part):
    """The shape of a cluster. Brokers are b1, b2 …, controllers c1 …, ZooKeeper nodes z1 …"""

    version: str = "4.3.1"
    metadata: Literal["kraft", "zookeeper"] = "kraft"
    brokers: int = Field(3, ge=1, le=50)
    controllers: int = Field(1, description="KRaft: dedicated controllers, 1 or 3")
    zookeepers: int = Field(1, description="ZooKeeper mode: ZooKeeper nodes, 1 or 3")
    image: str | None = Field(None, description="an image with Kafka in /opt/kafka; default: one built here")
    config: dict[str, Setting] = Field({}, description="any broker setting, under Kafka's name")
    subnet: str | None = Field(None, description="an IPv4 /24, such as 10.210.7.0/24; default: a free one")
    clients: Literal["direct", "published"] = Field(
        "direct", description="how clients reach brokers: at their addresses, or at ports on loopback (Docker Desktop)"
    )

    @field_validator("version", mode="before")
    @classmethod
    def _a_version(cls, given: object) -> str:
        try:
            parse_version(str(given))
        except ScenarioError:
            raise ValueError(f"{given!r} is no Kafka version such as 4.3.1") from None
        return str(given)

    @field_validator("controllers", "zookeepers")
    @classmethod
    def _one_or_three(cls, given: int) -> int:
        if given not in {1, 3}:
            raise ValueError(f"1 or 3 of them, not {given}")
        return given

    @field_validator("subnet")
    @classmethod
    def _a_24(cls, given: str | None) -> str | None:
        try:
            fits = given is None or ipaddress.IPv4Network(given).prefixlen == 24
        except ValueError:
            fits = False
        if not fits:
            raise ValueError(f"{given!r} is no IPv4 /24 such as 10.210.7.0/24")
        return given

    @model_serializer(mode="wrap")
    def _without_the_other_mode(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = dump(self)
        written.pop("zookeepers" if self.metadata == "kraft" else "controllers", None)
        return written

    @property
    def number(self) -> Version:
        """The version as numbers."""
        return parse_version(self.version)

    @property
    def node_names(self) -> list[str]:
        """The names of all nodes."""
        return [*self.broker_names, *self.controller_names, *self.zookeeper_names]

    @property
    def broker_names(self) -> list[str]:
        """b1, b2 …"""
        return [f"b{i}" for i in range(1, self.brokers + 1)]

    @property
    def controller_names(self) -> list[str]:
        """c1 …; none in ZooKeeper mode."""
        return [f"c{i}" for i in range(1, self.controllers + 1)] if self.metadata == "kraft" else []

    @property
    def zookeeper_names(self) -> list[str]:
        """z1 …; none in KRaft."""
        return [f"z{i}" for i in range(1, self.zookeepers + 1)] if self.metadata == "zookeeper" else []


class TopicSpec(_Part):
    """The topics of a run, all alike."""

    name: str = Field("trial", pattern=rf"^{_NAME}$", max_length=200)
    count: int = Field(1, ge=1, le=1000, description="how many topics; more than one are called name-0, name-1 …")
    partitions: int = Field(1, ge=1, le=10_000)
    replication: int = Field(3, ge=1)
    min_insync_replicas: int = Field(1, ge=1, alias="min.insync.replicas")
    unclean_election: bool | None = Field(None, alias="unclean.leader.election.enable", description="null: false")
    config: dict[str, Setting] = Field({}, description="any other topic setting, under Kafka's name")
    assignment: list[list[int]] | None = Field(None, description="broker ids of each partition's replicas")
    avoid: Literal["controller"] | None = Field(
        None, description="controller: replicas on other brokers than the controller (ZooKeeper mode)"
    )

    @property
    def names(self) -> list[str]:
        """The topics' names."""
        return [self.name] if self.count == 1 else [f"{self.name}-{i}" for i in range(self.count)]

    @property
    def settings(self) -> dict[str, str]:
        """What each topic is created with. Unclean election is always said: its default was another before 0.11."""
        given: dict[str, Setting] = {
            **self.config,
            "min.insync.replicas": self.min_insync_replicas,
            "unclean.leader.election.enable": bool(self.unclean_election),
        }
        return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in given.items()}


class FinalRead(_Part):
    """How everything is read back. ``down`` names nodes, pins or injections that stay down."""

    isolation_level: Isolation | None = Field(
        None, alias="isolation.level", description="default: that of the workload"
    )
    down: tuple[str, ...] = ()


def _workload(given: object) -> object:
    if not isinstance(given, Mapping):
        return given
    kind = given.get("kind", "queue")
    if kind not in WORKLOADS:
        raise refusal(unknown("workload", kind, WORKLOADS), "kind", value=kind)
    return WORKLOADS[kind].model_validate(given)


class Scenario(_Part):
    """One trial, whole: what is run, and what is expected."""

    name: str = Field(pattern=rf"^{_NAME}(/{_NAME})*$", max_length=200)
    source: str = Field("", description="where the claim comes from")
    claim: str = Field("", description="what is claimed, in one sentence")
    notes: str = Field("", description="what was found when it was run")
    cluster: ClusterSpec = ClusterSpec()
    topic: TopicSpec = TopicSpec()
    workload: Annotated[SerializeAsAny[Queue], BeforeValidator(_workload)] = Queue()
    watch: str = Field("0", description="the partition whose leader targets mean: 0, or trial/0")
    timeline: tuple[AnyStep, ...] = ()
    final_read: FinalRead = FinalRead()
    expect: Expectation = Expectation()
    requires: Requirements = Requirements()

    @field_validator("watch", mode="before")
    @classmethod
    def _a_partition(cls, given: object) -> object:
        written = str(given)
        if not re.fullmatch(rf"({_NAME}/)?\d+", written):
            raise ValueError(f"{given!r} is no partition such as 0 or trial/0")
        return written

    @model_validator(mode="after")
    def _no_contradiction(self) -> Self:
        found = contradictions(self)
        if found:
            raise ValidationError.from_exception_data(
                "scenario",
                [
                    InitErrorDetails(
                        type=PydanticCustomError("contradiction", "{says}", {"says": problem.says}),
                        loc=problem.where,
                        input=None,
                    )
                    for problem in found
                ],
            )
        return self

    @property
    def watch_topic(self) -> str:
        """The topic of the watched partition."""
        topic, _, _ = self.watch.rpartition("/")
        return topic or self.topic.names[0]

    @property
    def watch_partition(self) -> int:
        """The number of the watched partition."""
        return int(self.watch.rpartition("/")[2])

    @property
    def final_isolation(self) -> Isolation:
        """The isolation level of the final read."""
        return self.final_read.isolation_level or self.workload.isolation_level

    @property
    def timeline_seconds(self) -> float:
        """How long the timeline takes at most."""
        return sum(step.lasts for step in self.timeline)
