"""What is held against an image that a scenario names."""

import pytest

from harness.core.errors import EnvironmentLacks, ScenarioError
from harness.providers.docker.images import check_version, version_in

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
