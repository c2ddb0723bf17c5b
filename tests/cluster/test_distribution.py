"""Which jars a version needs, and what a node is started with."""

import pytest

from harness.cluster.distribution import cluster_id, environment, extras, pom
from harness.core.errors import ScenarioError
from harness.core.topology import Node, Role, Topology
from harness.core.version import parse_version


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


def test_an_invalid_kafka_version_is_named_in_the_error() -> None:
    with pytest.raises(ScenarioError, match="'latest' is no Kafka version"):
        pom("latest")


def test_a_broker_finds_zookeeper_again_though_no_dns_answers() -> None:
    """Its client looks up names before it connects, but for where SASL is off; in KRaft nobody has such a client."""
    broker, clients = Node("b1", Role.BROKER, 1, "10.0.0.1"), Node("clients", Role.CLIENTS, 0, "10.0.0.254")
    keeper, controller = (Node(role[0] + "1", role, 4, "10.0.0.4") for role in (Role.ZOOKEEPER, Role.CONTROLLER))
    off = {"JAVA_TOOL_OPTIONS": "-Dzookeeper.sasl.client=false"}
    assert off.items() <= environment("a/run", broker, Topology((broker, keeper), clients)).items()
    assert "JAVA_TOOL_OPTIONS" not in environment("a/run", broker, Topology((broker, controller), clients))
