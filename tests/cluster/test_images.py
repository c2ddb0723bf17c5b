"""The images that are built here."""

import docker
import pytest

from harness.cluster.spec import DEFAULT_VERSION
from harness.providers.docker.images import kafka_image

pytestmark = pytest.mark.cluster

#: A node as it is always started; it ends soon, for nobody gave it settings.
START = "sh /opt/kafka/start broker || true"
#: Java tells each class, and where it came from.
TELLING = {"HEAP": "-Xmx256m", "JAVA_TOOL_OPTIONS": "-Xlog:class+load"}


@pytest.mark.parametrize("version", [DEFAULT_VERSION, "3.9.2"])
def test_kafkas_classes_come_from_the_archive_of_the_image(engine: docker.DockerClient, version: str) -> None:
    image = kafka_image(engine, version)
    said = engine.containers.run(image, ["-c", START], entrypoint="sh", environment=TELLING, remove=True).decode()
    assert "kafka.Kafka$ source: shared objects file (top)" in said
