"""What is held against an image that a scenario names."""

import pytest
from pydantic import ValidationError

from harness.core.errors import EnvironmentLacks, ScenarioError
from harness.providers.docker.node_image import LAYOUTS, check_version, kafkas, looked_into, official, version_in
from harness.providers.docker.spec import DockerSpec

JARS = "jline-3.25.jar\nkafka-clients-{0}.jar\nkafka_2.13-{0}.jar\nkafka-server-common-{0}.jar\n"


@pytest.mark.parametrize(
    ("listing", "held"),
    [
        (JARS.format("3.9.2"), (3, 9, 2)),
        (JARS.format("3.9.2") + "kafka_2.13-3.9.2-javadoc.jar\nkafka_2.13-3.9.2.jar.asc\n", (3, 9, 2)),
        ("kafka_2.11-0.10.2.2.jar\n", (0, 10, 2, 2)),
        ("kafka_2.13-3.5.1.redhat-00001.jar\n", (3, 5, 1)),
        (JARS.format("7.6.1-ccs"), (3, 6)),
        (JARS.format("8.0.0-ccs"), (4, 0)),
        ("kafka-clients-3.9.2.jar\n", None),
        (JARS.format("3.9.2") + JARS.format("4.3.1"), None),
        ("", None),
    ],
)
def test_the_version_in_an_image_is_that_of_its_servers_jar(listing: str, held: tuple[int, ...] | None) -> None:
    assert version_in(listing) == held


@pytest.mark.parametrize(
    ("confluent", "kafka"), [((5, 5, 2), (2, 5)), ((6, 0, 0), (2, 6)), ((6, 2, 1), (2, 8)), ((7, 9, 0), (3, 9))]
)
def test_confluents_numbers_tell_kafkas_first_two(confluent: tuple[int, ...], kafka: tuple[int, ...]) -> None:
    assert kafkas(confluent) == kafka


def test_an_image_of_another_version_is_refused() -> None:
    check_version("3.9.2", (3, 9, 2), "mine:1")
    check_version("3.9.2", (3, 9), "mine:1")
    with pytest.raises(ScenarioError, match=r"cluster.image mine:1 holds Kafka 4.3.1, and cluster.version says 3.9.2"):
        check_version("3.9.2", (4, 3, 1), "mine:1")
    with pytest.raises(ScenarioError, match=r"cluster.image mine:1 holds Kafka 3.8, and cluster.version says 3.9.2"):
        check_version("3.9.2", (3, 8), "mine:1")


@pytest.mark.parametrize("folder", LAYOUTS)
def test_an_image_with_a_known_layout_is_a_node(folder: str) -> None:
    assert looked_into(f"{folder}\n{JARS.format('3.9.2')}", "mine:1") == (folder, (3, 9, 2))


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("", "has no kafka_2.x jar, or several"),
        (f"/opt/kafka/libs\n{JARS.format('3.9.2')}{JARS.format('4.3.1')}", "has no kafka_2.x jar, or several"),
        (f"lacks java\n/opt/kafka/libs\n{JARS.format('3.9.2')}", "has no java"),
        ("lacks rm\nlacks java\n", "has no rm and no java"),
    ],
)
def test_an_unfit_image_is_refused_in_one_line_with_the_requirements(said: str, why: str) -> None:
    with pytest.raises(EnvironmentLacks) as refused:
        looked_into(said, "mine:1")
    assert str(refused.value) == (
        f"cluster.image mine:1 {why}: an image must have sh, rm, java on its PATH, and Kafka's jars, of one version, in"
        " /opt/kafka/libs (as apache/kafka) or /usr/share/java/kafka (as confluentinc/cp-kafka)"
    )


def test_the_official_image_has_the_version_of_the_cluster() -> None:
    assert official("4.3.1") == "apache/kafka:4.3.1"
    assert official("3.7.0") == "apache/kafka:3.7.0"
    with pytest.raises(ScenarioError, match=r"official is for Kafka 3.7 and later, and cluster.version says 3.6.2"):
        official("3.6.2")


@pytest.mark.parametrize(
    "image", ["official", "mine:1", "mirror:5000/mine:4.3.1-b2", f"mine@sha256:{'a' * 64}", f"mine:1@sha256:{'a' * 64}"]
)
def test_an_image_is_pinned_by_its_version_or_digest(image: str) -> None:
    assert DockerSpec(image=image).image == image


@pytest.mark.parametrize(
    "image", ["mine", "mirror:5000/mine", "mine:latest", "mirror:5000/mine:latest", "mine@sha256:12"]
)
def test_an_image_that_is_another_tomorrow_is_refused(image: str) -> None:
    with pytest.raises(
        ValidationError, match=f"{image} may be another image tomorrow: pin it by digest or version, never latest"
    ):
        DockerSpec(image=image)
