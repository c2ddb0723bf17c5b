"""The images that are built here."""

import docker
import pytest

from harness.cluster.images import kafka_image
from harness.scenario.model import DEFAULT_VERSION

pytestmark = pytest.mark.cluster

#: Kafka asked for nothing, with each class and where it came from.
LOOK = (
    "java -Xshare:on -XX:SharedArchiveFile=/opt/kafka/classes.jsa -Xlog:class+load"
    " -cp \"$(printf '%s:' /opt/kafka/libs/*.jar)\" kafka.Kafka || true"
)


@pytest.mark.parametrize("version", [DEFAULT_VERSION, "3.9.2"])
def test_kafkas_classes_come_from_the_archive_of_the_image(engine: docker.DockerClient, version: str) -> None:
    image = kafka_image(engine, version)
    said = engine.containers.run(image, ["-c", LOOK], entrypoint="sh", remove=True).decode()
    assert "kafka.Kafka$ source: shared objects file (top)" in said
