"""Nodes, the planes they talk on, and the addresses they have. Plain data: nothing here touches a network."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

#: A topic, and the number of one of its partitions.
Partition = tuple[str, int]


class Role(StrEnum):
    """What a node is. ``CLIENTS`` is the machine that the workers run on: a party to a partition, not a node."""

    BROKER = "broker"
    CONTROLLER = "controller"
    ZOOKEEPER = "zookeeper"
    CLIENTS = "clients"


class Plane(StrEnum):
    """A kind of traffic that a fault can hit alone; each has its own port on every node that serves it."""

    ALL = "all"
    REPLICATION = "replication"
    CONTROLLER = "controller"
    CLIENT = "client"


@dataclass(frozen=True, order=True)
class Ports:
    """The TCP ports that a node listens on. They are the same on every node of a cluster, so that both ends know the
    packets of a plane. ``follow`` and ``elect``: the traffic between ZooKeeper's nodes."""

    client: int = 9092
    controller: int = 9093
    replication: int = 9094
    zookeeper: int = 2181
    follow: int = 2888
    elect: int = 3888

    def of(self, plane: Plane) -> tuple[int, ...]:
        """The ports of one plane; none for ``ALL``, which is not limited to ports. ZooKeeper's ports belong to the
        controller's plane."""
        if plane is Plane.CONTROLLER:
            return (self.controller, self.zookeeper, self.follow, self.elect)
        return {Plane.REPLICATION: (self.replication,), Plane.CLIENT: (self.client,)}.get(plane, ())


@dataclass(frozen=True, order=True)
class Node:
    """One node: ``b1``, ``c1``, ``z1`` …; ``id`` is its ``node.id`` (brokers 1…, controllers 101…) or myid.

    ``control``: the TCP port on which the harness reaches the node's machine, if it shares the network that faults act
    on. No fault hits this port.
    """

    name: str
    role: Role
    id: int
    address: str
    published: int | None = None
    ports: Ports = Ports()
    control: int | None = None

    @property
    def endpoint(self) -> str:
        """``host:port`` that clients use: the node's own, or a port published on loopback (Docker Desktop)."""
        return f"127.0.0.1:{self.published}" if self.published else f"{self.address}:{self.ports.client}"


@dataclass(frozen=True)
class Topology:
    """All nodes of a run, and the address the clients are seen from."""

    nodes: tuple[Node, ...]
    clients: Node

    def having(self, role: Role) -> tuple[Node, ...]:
        """The nodes of one role, in order of their ids."""
        return tuple(sorted((n for n in self.nodes if n.role is role), key=lambda n: n.id))

    @property
    def brokers(self) -> tuple[Node, ...]:
        """The brokers, in order of their ids."""
        return self.having(Role.BROKER)

    def broker(self, broker_id: int) -> Node | None:
        """The broker with this ``node.id``, or None (-1 is Kafka's word for no leader)."""
        return next((n for n in self.brokers if n.id == broker_id), None)

    def named(self, name: str) -> Node | None:
        """The node of this name (``clients`` included), or None."""
        return next((n for n in (*self.nodes, self.clients) if n.name == name), None)

    @property
    def bootstrap(self) -> str:
        """``bootstrap.servers`` for clients on this machine."""
        return ",".join(n.endpoint for n in self.brokers)


def broker_name(number: int, names: Mapping[int, str]) -> str:
    """The name of a broker by its id; ``names`` has those that are known."""
    return names.get(number, f"broker {number}")


@dataclass(frozen=True)
class View:
    """Who has which role now in the partition that the scenario watches. Targets are resolved from it.

    ``coordinator``: that of the first transactional producer.
    """

    leader: Node | None
    replicas: tuple[Node, ...]
    isr: tuple[Node, ...]
    controller: Node | None
    coordinator: Node | None = None

    @property
    def followers(self) -> tuple[Node, ...]:
        """The replicas that do not lead."""
        return tuple(n for n in self.replicas if n != self.leader)
