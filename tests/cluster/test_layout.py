"""Addresses, settings and the Compose document: plain data, no Docker."""

import ipaddress
from pathlib import Path

import pytest
import yaml

from harness.cluster.distribution import cluster_id, extras, pom
from harness.cluster.kafka_config import QUICK, QUICK_KRAFT, QUICK_ZOOKEEPER, properties, settings_of
from harness.cluster.spec import ClusterSpec
from harness.core.errors import EnvironmentLacks, ScenarioError
from harness.core.topology import PORTS, Plane, Role, Topology
from harness.core.version import parse_version
from harness.providers.docker import compose
from harness.providers.docker.cleanup import still_going
from harness.providers.docker.images import check_version, version_in
from harness.providers.docker.shell import labels_of_no_run
from harness.providers.docker.subnets import Subnet, free_subnet, topology
from harness.scenario.kafka_settings import RESERVED

SUBNET = Subnet("10.201.7.0/24")


def nodes_of(**fields: object) -> tuple[ClusterSpec, Topology]:
    spec = ClusterSpec.model_validate(fields)
    return spec, topology(spec, SUBNET)


def test_a_kraft_cluster_has_brokers_and_dedicated_controllers() -> None:
    _, nodes = nodes_of(brokers=3, controllers=3)
    assert [n.name for n in nodes.nodes] == ["b1", "b2", "b3", "c1", "c2", "c3"]
    assert [n.id for n in nodes.having(Role.CONTROLLER)] == [101, 102, 103]
    assert len({n.address for n in (*nodes.nodes, nodes.clients)}) == 7
    assert all(ipaddress.ip_address(n.address) in SUBNET for n in nodes.nodes)


def test_a_zookeeper_cluster_has_no_controllers() -> None:
    _, nodes = nodes_of(version="3.9.2", metadata="zookeeper", brokers=4, zookeepers=3)
    assert [n.name for n in nodes.nodes] == ["b1", "b2", "b3", "b4", "z1", "z2", "z3"]


def test_published_ports_are_what_clients_bootstrap_from() -> None:
    ports = iter([40001, 40002, 40003])
    nodes = topology(ClusterSpec(), SUBNET, lambda: next(ports))
    assert nodes.bootstrap == "127.0.0.1:40001,127.0.0.1:40002,127.0.0.1:40003"


def test_a_free_subnet_overlaps_nothing_that_is_taken() -> None:
    first = free_subnet([], start=5)
    second = free_subnet([first], start=5) if first else None
    assert first is not None
    assert second is not None
    assert not first.overlaps(second)


def test_no_subnet_is_free_where_all_are_taken() -> None:
    assert free_subnet([Subnet("10.0.0.0/8")], start=0) is None


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
def test_what_a_scenario_says_reaches_java_as_it_is(value: str) -> None:
    assert properties({"a.key": value, value: "x"}) == "".join(
        f"{line}\n" for _, line in sorted([("a.key", f"a.key={WRITTEN[value]}"), (value, f"{WRITTEN[value]}=x")])
    )


def test_zookeepers_among_themselves_talk_on_the_controllers_plane() -> None:
    spec, nodes = nodes_of(version="3.9.2", metadata="zookeeper", zookeepers=3)
    settings = settings_of(nodes.having(Role.ZOOKEEPER)[0], nodes, spec)
    ports = {int(port) for key, value in settings.items() if key.startswith("server.") for port in value.split(":")[1:]}
    assert ports <= set(PORTS[Plane.CONTROLLER])
    assert len(ports) == 2


def test_everything_in_the_compose_document_carries_the_label_of_the_run() -> None:
    _, nodes = nodes_of()
    labels = compose.labels_of("s/1-2", Path("/store/s/1-2"))
    document = compose.document("s/1-2", nodes, SUBNET, "image:1", {}, labels)
    marked = {name: value for name, value in labels.items() if name.startswith("kafka-trial.")}
    assert all(service["labels"] == marked for service in document["services"].values())
    assert document["networks"]["trial"]["labels"] == marked
    assert all(volume["labels"] == marked for volume in document["volumes"].values())
    assert yaml.safe_load(compose.text(document)) == document


def test_a_path_with_signs_that_compose_reads_is_taken_as_it_is() -> None:
    _, nodes = nodes_of(brokers=1)
    labels = compose.labels_of("s/1-2", Path("/a$HOME/${b}:c"))
    mounts = {"/opt/a:b/start": "/opt/kafka/start"}
    document = yaml.safe_load(compose.text(compose.document("s/1-2", nodes, SUBNET, "image:1", mounts, labels)))
    assert document["networks"]["trial"]["labels"][compose.DIRECTORY_LABEL] == "/a$$HOME/$${b}:c"
    bound = [volume for volume in document["services"]["b1"]["volumes"] if isinstance(volume, dict)]
    assert [(volume["source"], volume["target"]) for volume in bound] == [
        ("./config/b1.properties", "/etc/kafka-trial/node.properties"),
        ("/opt/a:b/start", "/opt/kafka/start"),
    ]


def test_two_runs_share_no_names() -> None:
    assert compose.project_of("s/1-2") != compose.project_of("s/1-3")
    assert cluster_id("s/1-2") != cluster_id("s/1-3")


def test_no_cluster_id_looks_like_an_option() -> None:
    ids = [cluster_id(f"s/1-{n}") for n in range(1_000)]
    assert not [one for one in ids if one.startswith("-")]
    assert {len(one) for one in ids} == {22}


@pytest.mark.parametrize(
    ("version", "scala", "backend"),
    [
        ("4.3.1", "2.13", "log4j-slf4j-impl"),
        ("3.9.2", "2.13", "slf4j-reload4j"),
        ("2.8.2", "2.13", "slf4j-log4j12"),
        ("2.3.1", "2.12", "slf4j-log4j12"),
    ],
)
def test_a_version_is_built_with_its_scala_and_a_logging_backend(version: str, scala: str, backend: str) -> None:
    assert f"<artifactId>kafka_{scala}</artifactId>" in pom(version)
    assert backend in {artifact for _, artifact, _ in extras(parse_version(version))}


JARS = "jline-3.25.jar\nkafka-clients-{0}.jar\nkafka_2.13-{0}.jar\nkafka-server-common-{0}.jar\n"


@pytest.mark.parametrize(
    ("listing", "held"),
    [
        (JARS.format("3.9.2"), "3.9.2"),
        (JARS.format("3.9.2") + "kafka_2.13-3.9.2-javadoc.jar\nkafka_2.13-3.9.2.jar.asc\n", "3.9.2"),
        ("kafka_2.11-0.10.2.2.jar\n", "0.10.2.2"),
        ("kafka_2.13-3.5.1.redhat-00001.jar\n", "3.5.1"),
        ("kafka-clients-3.9.2.jar\n", None),
        (JARS.format("3.9.2") + JARS.format("4.3.1"), None),
        ("", None),
    ],
)
def test_the_version_in_an_image_is_that_of_its_servers_jar(listing: str, held: str | None) -> None:
    assert version_in(listing) == held


def test_an_image_of_another_version_is_refused_and_one_of_none_too() -> None:
    check_version("3.9.2", "3.9.2", "mine:1")
    with pytest.raises(ScenarioError, match=r"cluster.image mine:1 holds Kafka 4.3.1, and cluster.version says 3.9.2"):
        check_version("3.9.2", "4.3.1", "mine:1")
    with pytest.raises(EnvironmentLacks, match=r"cluster.image mine:1 has no kafka_2.x jar"):
        check_version("3.9.2", None, "mine:1")


def test_containers_of_no_run_are_left_alone_while_they_are_needed_and_no_longer() -> None:
    with labels_of_no_run() as one, labels_of_no_run() as other:
        assert one[compose.LABEL] != other[compose.LABEL]
        assert still_going([one, other]).keys() == {one[compose.LABEL], other[compose.LABEL]}
    assert still_going([one, other]) == {}


def test_what_is_no_version_is_said_so() -> None:
    with pytest.raises(ScenarioError, match="'latest' is no Kafka version"):
        pom("latest")
