"""The settings of each node, as text."""

from dataclasses import replace

import pytest

from harness.cluster.kafka_config import QUICK, QUICK_KRAFT, QUICK_ZOOKEEPER, properties, settings_of
from harness.core.topology import Plane, Ports, Role, Topology
from harness.scenario.kafka_settings import RESERVED
from tests.providers.docker.nodes import nodes_of


def test_each_plane_of_a_broker_has_a_listener_of_its_own() -> None:
    spec, nodes = nodes_of()
    settings = settings_of(nodes.brokers[0], nodes, spec)
    assert settings["listeners"] == "CLIENT://:9092,INTERNAL://:9094"
    assert settings["inter.broker.listener.name"] == "INTERNAL"
    assert settings["controller.quorum.voters"] == f"101@{nodes.having(Role.CONTROLLER)[0].address}:9093"


def test_in_zookeeper_mode_the_controller_speaks_on_a_listener_of_its_own() -> None:
    spec, nodes = nodes_of(version="3.9.2", metadata="zookeeper")
    settings = settings_of(nodes.brokers[0], nodes, spec)
    assert settings["control.plane.listener.name"] == "CONTROLLER"
    assert settings["zookeeper.connect"] == f"{nodes.having(Role.ZOOKEEPER)[0].address}:2181"
    assert "process.roles" not in settings


@pytest.mark.parametrize(
    ("version", "metadata", "racks"),
    [("4.3.1", "kraft", ["1", "2", "3"]), ("2.4.0", "zookeeper", ["1", "2", "3"]), ("2.3.1", "zookeeper", [None] * 3)],
)
def test_every_broker_is_a_rack_where_followers_may_be_read(
    version: str, metadata: str, racks: list[str | None]
) -> None:
    spec, nodes = nodes_of(version=version, metadata=metadata)
    settings = [settings_of(broker, nodes, spec) for broker in nodes.brokers]
    assert [own.get("broker.rack") for own in settings] == racks
    assert ["replica.selector.class" in own for own in settings] == [rack is not None for rack in racks]


def test_a_broker_setting_of_the_scenario_wins() -> None:
    spec, nodes = nodes_of(config={"replica.lag.time.max.ms": 12000, "auto.create.topics.enable": True})
    text = properties(settings_of(nodes.brokers[0], nodes, spec))
    assert "replica.lag.time.max.ms=12000\n" in text
    assert "auto.create.topics.enable=true\n" in text


SHAPES: list[dict[str, object]] = [
    {},
    {"controllers": 3},
    *(
        {"version": version, "metadata": "zookeeper", "zookeepers": zookeepers}
        for version in ("3.9.2", "2.4.0", "2.1.1", "0.10.2.2", "0.10.1.1")
        for zookeepers in (1, 3)
    ),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_setting_that_says_where_a_node_is_cannot_be_given_by_a_scenario(shape: dict[str, object]) -> None:
    spec, nodes = nodes_of(**shape)
    kafka = [*nodes.brokers, *nodes.having(Role.CONTROLLER)]
    written = {key for node in kafka for key in settings_of(node, nodes, spec)}
    internal = {key for key in written if key.startswith(("offsets.topic.", "transaction.state.log."))}
    assert written - internal - {*QUICK, *QUICK_KRAFT, *QUICK_ZOOKEEPER} <= RESERVED


#: A value, and how a file for java.util.Properties has it.
WRITTEN = {
    "C:\\data": "C\\:\\\\data",
    "one\nlog.dirs=/tmp": "one\\nlog.dirs\\=/tmp",
    " blank": "\\ blank",
    "a\tb\r\f": "a\\tb\\r\\f",
    "#no comment!": "\\#no comment\\!",
    "ž€😀": "\\u017e\\u20ac\\ud83d\\ude00",
    "plain value": "plain value",
}


@pytest.mark.parametrize("value", WRITTEN)
def test_settings_of_a_scenario_reach_java_unchanged(value: str) -> None:
    assert properties({"a.key": value, value: "x"}) == "".join(
        f"{line}\n" for _, line in sorted([("a.key", f"a.key={WRITTEN[value]}"), (value, f"{WRITTEN[value]}=x")])
    )


def test_ports_and_the_data_directory_are_the_nodes_own() -> None:
    spec, nodes = nodes_of(version="4.3.1")
    ports = Ports(client=19092, controller=19093, replication=19094)
    moved = Topology(tuple(replace(node, ports=ports) for node in nodes.nodes), nodes.clients)
    broker = settings_of(moved.brokers[0], moved, spec, "/srv/kafka/b1")
    assert broker["listeners"] == "CLIENT://:19092,INTERNAL://:19094"
    assert broker["controller.quorum.voters"].endswith(":19093")
    assert broker["log.dirs"] == "/srv/kafka/b1/kafka"
    assert moved.bootstrap == ",".join(f"{node.address}:19092" for node in moved.brokers)
    controller = settings_of(moved.having(Role.CONTROLLER)[0], moved, spec, "/srv/kafka/c1")
    assert controller["listeners"] == "CONTROLLER://:19093"


def test_zookeepers_among_themselves_talk_on_the_controllers_plane() -> None:
    spec, nodes = nodes_of(version="3.9.2", metadata="zookeeper", zookeepers=3)
    settings = settings_of(nodes.having(Role.ZOOKEEPER)[0], nodes, spec)
    ports = {int(port) for key, value in settings.items() if key.startswith("server.") for port in value.split(":")[1:]}
    assert ports <= set(Ports().of(Plane.CONTROLLER))
    assert len(ports) == 2
