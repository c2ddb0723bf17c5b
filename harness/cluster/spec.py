"""What a scenario says about its cluster and its topics, for any provider."""

from dataclasses import dataclass
from typing import Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from harness.core.errors import ScenarioError
from harness.core.printable import shown
from harness.core.quantities import Flag, Whole
from harness.core.topology import Role
from harness.core.version import parse_version
from workloads.clients.librdkafka import Value

DEFAULT_VERSION = "4.3.1"

Setting = Value

#: org.apache.kafka.common.internals.Topic, MAX_NAME_LENGTH.
_LONGEST_NAME = 249


class Part(BaseModel):
    """A part of a scenario file. It cannot be changed, and refuses unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


@dataclass(frozen=True)
class NamesFile:
    """Marks a setting that names a file. A relative path starts at the folder of the scenario's own file."""


@dataclass(frozen=True)
class CommandOption:
    """A setting of a cluster that is an option of commands, too: ``accept_new`` is ``--accept-new``.

    Its value is one of ``choices``, a path (``file`` is its name in the help), or any text; a ``flag`` has none.
    ``locates``: it says where nodes are. `cleanup` takes only such options, `suite` only others.
    """

    key: str
    help: str
    choices: tuple[str, ...] = ()
    file: str | None = None
    flag: bool = False
    locates: bool = False


class ClusterSpec(Part):
    """Which nodes, of which version, with which settings."""

    version: str = Field(DEFAULT_VERSION, description="of Kafka, in quotes where YAML would read a number")
    metadata: Literal["kraft", "zookeeper"] = Field(
        "kraft", description="who keeps it: kraft from 3.3 on, zookeeper before 4.0"
    )
    brokers: Whole = Field(3, ge=1, le=30, description="how many: b1, b2 …")
    controllers: Whole | None = Field(None, description="dedicated KRaft controllers, 1 or 3 (default 1)")
    zookeepers: Whole | None = Field(None, description="ZooKeeper nodes, 1 or 3 (default 1)")
    config: dict[str, Setting] = Field({}, description="any broker setting, under Kafka's name")

    @field_validator("version", mode="before")
    @classmethod
    def _a_version(cls, value: object) -> str:
        try:
            # A number is not what was written: YAML reads 3.10 as 3.1.
            parse_version(value if isinstance(value, str) else "")
        except ScenarioError:
            raise ValueError(f"{shown(value)} is no Kafka version such as {DEFAULT_VERSION}") from None
        return str(value)

    @property
    def roster(self) -> list[tuple[str, Role, int]]:
        """Name, role and id of every node: ``b1`` …, ``c1`` … or ``z1`` … (see ``Node``)."""
        kraft = self.metadata == "kraft"
        controllers = (self.controllers or 1) if kraft else 0
        zookeepers = 0 if kraft else (self.zookeepers or 1)
        return [
            *((f"b{i}", Role.BROKER, i) for i in range(1, self.brokers + 1)),
            *((f"c{i}", Role.CONTROLLER, 100 + i) for i in range(1, controllers + 1)),
            *((f"z{i}", Role.ZOOKEEPER, i) for i in range(1, zookeepers + 1)),
        ]

    @property
    def node_names(self) -> list[str]:
        """The names of all nodes."""
        return [name for name, _, _ in self.roster]


class TopicSpec(Part):
    """The topics of a run, all with the same settings: ``name``, or ``name-0`` … if there are several."""

    name: str = Field("trial", pattern="^[a-zA-Z0-9._-]+$", description="of the topic; of several, how they begin")
    #: Both limits are choices, far above what any scenario here has.
    count: Whole = Field(1, ge=1, le=1_000, description="how many topics")
    partitions: Whole = Field(1, ge=1, le=10_000, description="of each topic")
    replication: Whole = Field(3, ge=1, description="replicas of each partition")
    min_isr: Whole = Field(
        1, ge=1, alias="min.insync.replicas", description="in-sync replicas without which acks: all is refused"
    )
    unclean: Flag | None = Field(None, alias="unclean.leader.election.enable", description="default false (KIP-106)")
    config: dict[str, Setting] = Field({}, description="any other topic setting, under Kafka's name")
    assignment: list[list[Whole]] | None = Field(None, description="broker ids of each partition's replicas")
    avoid: Literal["controller"] | None = Field(
        None, description="controller: no replica on the broker that is the controller (ZooKeeper mode)"
    )

    @model_validator(mode="after")
    def _names_that_kafka_takes(self) -> Self:
        wrong = next((name for name in self.names if len(name) > _LONGEST_NAME or name in {".", ".."}), None)
        if wrong is not None:
            raise ValueError(
                f"{wrong!r} is not a valid name for a topic: at most {_LONGEST_NAME} characters, and not . or .."
            )
        if self.name.startswith("__"):
            raise ValueError(f"{self.name!r}: topics that begin with __ are Kafka's own: choose another name")
        return self

    @property
    def names(self) -> list[str]:
        """The topics' names."""
        return [self.name] if self.count == 1 else [f"{self.name}-{i}" for i in range(self.count)]

    @property
    def settings(self) -> dict[str, str]:
        """The topic settings as Kafka takes them. With ELR (KIP-966) the topic itself must set min.insync.replicas."""
        settings: dict[str, Setting] = {
            **self.config,
            "min.insync.replicas": self.min_isr,
            "unclean.leader.election.enable": bool(self.unclean),
        }
        return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in settings.items()}


OwnSpec = TypeVar("OwnSpec", bound=Part)


def own_spec(cluster: ClusterSpec, kind: type[OwnSpec]) -> OwnSpec:
    """The settings of a cluster that only one provider knows, with that provider's defaults."""
    return kind.model_validate({key: getattr(cluster, key) for key in kind.model_fields if hasattr(cluster, key)})
