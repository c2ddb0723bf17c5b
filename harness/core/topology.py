"""Nodes, the planes they talk on, and the addresses they have. Plain data: nothing here touches a network."""

from dataclasses import dataclass
from enum import StrEnum


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


CLIENT_PORT = 9092
CONTROLLER_PORT = 9093
REPLICATION_PORT = 9094
ZOOKEEPER_PORT = 2181
#: Where ZooKeeper's nodes follow their leader, and where they elect it.
ZOOKEEPER_PEER_PORTS = (2888, 3888)

#: TCP ports of each plane. Metadata in ZooKeeper belongs to the controller's plane. ``ALL`` is no port filter at all.
PORTS: dict[Plane, tuple[int, ...]] = {
    Plane.ALL: (),
    Plane.REPLICATION: (REPLICATION_PORT,),
    Plane.CONTROLLER: (CONTROLLER_PORT, ZOOKEEPER_PORT, *ZOOKEEPER_PEER_PORTS),
    Plane.CLIENT: (CLIENT_PORT,),
}


@dataclass(frozen=True, order=True)
class Node:
    """One node: ``b1``, ``c1``, ``z1`` …; ``id`` is its ``node.id`` (brokers 1…, controllers 101…) or myid."""

    name: str
    role: Role
    id: int
    address: str
    published: int | None = None

    @property
    def endpoint(self) -> str:
        """``host:port`` that clients use: the node's own, or a port published on loopback (Docker Desktop)."""
        return f"127.0.0.1:{self.published}" if self.published else f"{self.address}:{CLIENT_PORT}"


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


@dataclass(frozen=True)
class View:
    """Who has which role now, for the partition that the scenario watches: what targets are resolved against.

    ``coordinator``: of the first transactional producer.
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
