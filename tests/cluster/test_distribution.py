"""Which jars a version needs, and what a node is started with."""

import pytest

from harness.cluster.distribution import cluster_id, extras, pom
from harness.core.errors import ScenarioError
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


def test_what_is_no_version_is_said_so() -> None:
    with pytest.raises(ScenarioError, match="'latest' is no Kafka version"):
        pom("latest")
