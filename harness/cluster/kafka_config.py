"""The settings of every node, as text. Pure: a topology and a cluster specification in, ``.properties`` out."""

from collections.abc import Mapping

from harness.cluster.distribution import DATA
from harness.cluster.spec import ClusterSpec
from harness.core.topology import Node, Role, Topology
from harness.core.version import CONTROL_PLANE_LISTENER_SINCE, NAMED_LISTENERS_SINCE, Version, parse_version

Settings = dict[str, str]

_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"} | {char: f"\\{char}" for char in "=:#!"}

#: Shorter times than Kafka's defaults, so that a fault shows its effect within seconds. A scenario may override each.
QUICK: Settings = {
    "replica.lag.time.max.ms": "5000",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "log.cleaner.dedupe.buffer.size": "33554432",
}
QUICK_KRAFT: Settings = {"broker.session.timeout.ms": "6000", "broker.heartbeat.interval.ms": "1000"}
QUICK_ZOOKEEPER: Settings = {"zookeeper.session.timeout.ms": "6000", "zookeeper.connection.timeout.ms": "30000"}

#: KIP-392: consumers may read from a follower, of their own rack.
_FOLLOWER_FETCH_SINCE: Version = (2, 4)


def properties(settings: Mapping[str, str]) -> str:
    """Sorted lines of ``key=value`` in ASCII. java.util.Properties reads them back unchanged."""
    return "".join(f"{_escaped(key)}={_escaped(value)}\n" for key, value in sorted(settings.items()))


def _escaped(text: str) -> str:
    """Escape a value for Java: it drops a lone backslash, ends a value at a newline, strips leading blanks, and reads
    ISO 8859-1."""
    written = "".join(_ESCAPES.get(char) or (char if " " <= char <= "~" else _units(char)) for char in text)
    return f"\\{written}" if written.startswith(" ") else written


def _units(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


def settings_of(node: Node, topology: Topology, spec: ClusterSpec, data: str = DATA) -> Settings:
    """All settings of a node, with its files below ``data``. A scenario's ``cluster.config`` overrides those of brokers
    and controllers."""
    if node.role is Role.ZOOKEEPER:
        return _zookeeper(node, topology, data)
    own = _controller(node, topology) if node.role is Role.CONTROLLER else _broker(node, topology, spec)
    chosen = {key: _text(value) for key, value in spec.config.items()}
    return {**_common(topology, data), **own, **chosen}


def _text(value: str | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _common(topology: Topology, data: str) -> Settings:
    copies = str(min(3, len(topology.brokers)))
    return {
        **QUICK,
        "log.dirs": f"{data}/kafka",
        "offsets.topic.replication.factor": copies,
        "offsets.topic.num.partitions": "3",
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.num.partitions": "3",
        "transaction.state.log.min.isr": str(min(2, len(topology.brokers))),
    }


def _broker(node: Node, topology: Topology, spec: ClusterSpec) -> Settings:
    if not topology.having(Role.ZOOKEEPER):
        return {
            **QUICK_KRAFT,
            **_quorum(topology),
            "process.roles": "broker",
            "node.id": str(node.id),
            **_rack(node),
            **_listeners(node, ["CLIENT", "INTERNAL"]),
        }
    version = parse_version(spec.version)
    zookeepers = ",".join(f"{z.address}:{z.ports.zookeeper}" for z in topology.having(Role.ZOOKEEPER))
    common = {**QUICK_ZOOKEEPER, "broker.id": str(node.id), "zookeeper.connect": zookeepers}
    if version < NAMED_LISTENERS_SINCE:
        return {**common, "listeners": f"PLAINTEXT://{node.address}:{node.ports.client}"}
    if version < CONTROL_PLANE_LISTENER_SINCE:
        return {**common, **_listeners(node, ["CLIENT", "INTERNAL"])}
    names = ["CLIENT", "INTERNAL", "CONTROLLER"]
    rack = _rack(node) if version >= _FOLLOWER_FETCH_SINCE else {}
    return {**common, **rack, **_listeners(node, names), "control.plane.listener.name": "CONTROLLER"}


def _rack(node: Node) -> Settings:
    """Each broker is a rack of its own: a client in that rack is served by this broker (KIP-392)."""
    return {
        "broker.rack": str(node.id),
        "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    }


def _controller(node: Node, topology: Topology) -> Settings:
    return {
        **QUICK_KRAFT,
        **_quorum(topology),
        "process.roles": "controller",
        "node.id": str(node.id),
        "listeners": f"CONTROLLER://:{node.ports.controller}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,CLIENT:PLAINTEXT,INTERNAL:PLAINTEXT",
    }


def _quorum(topology: Topology) -> Settings:
    voters = ",".join(f"{c.id}@{c.address}:{c.ports.controller}" for c in topology.having(Role.CONTROLLER))
    return {"controller.quorum.voters": voters, "controller.listener.names": "CONTROLLER"}


def _listeners(node: Node, names: list[str]) -> Settings:
    """A listener for each plane, so that a fault can cut one plane of a node (KIP-103)."""
    ports = {"CLIENT": node.ports.client, "INTERNAL": node.ports.replication, "CONTROLLER": node.ports.controller}
    addresses = {name: f"{node.address}:{ports[name]}" for name in names} | {"CLIENT": node.endpoint}
    mapped = dict.fromkeys([*names, "CONTROLLER"], "PLAINTEXT")
    return {
        "listeners": ",".join(f"{name}://:{ports[name]}" for name in names),
        "advertised.listeners": ",".join(f"{name}://{addresses[name]}" for name in names),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in mapped.items()),
        "inter.broker.listener.name": "INTERNAL",
    }


def _zookeeper(node: Node, topology: Topology, data: str) -> Settings:
    peers = topology.having(Role.ZOOKEEPER)
    talking = {f"server.{z.id}": f"{z.address}:{z.ports.follow}:{z.ports.elect}" for z in peers}
    ensemble = talking if len(peers) > 1 else {}
    return {
        "tickTime": "1000",
        "initLimit": "10",
        "syncLimit": "5",
        "dataDir": f"{data}/zookeeper",
        "clientPort": str(node.ports.zookeeper),
        "admin.enableServer": "false",
        "maxClientCnxns": "0",
        **ensemble,
    }
