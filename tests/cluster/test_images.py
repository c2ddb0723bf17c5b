"""The images that are built here."""

import re
import tarfile
from pathlib import Path

import docker
import pytest

from harness.cluster.spec import DEFAULT_VERSION
from harness.providers.docker.bootstrap import make_base
from harness.providers.docker.images import LIBRARIES, build_kafka, java_image, kafka_image
from harness.providers.docker.sources import SUITE

pytestmark = pytest.mark.cluster

#: A node as it is always started; it ends soon, for nobody gave it settings.
START = "sh /opt/kafka/start broker || true"
#: The classes of the archive.
ARCHIVED = (
    "java -XX:SharedArchiveFile=/opt/kafka/classes.jsa -XX:+PrintSharedArchiveAndExit"
    ' -cp "$(printf %s: /opt/kafka/libs/*.jar)"'
)
#: Java tells each class, and where it came from.
TELLING = {"HEAP": "-Xmx256m", "JAVA_TOOL_OPTIONS": "-Xlog:class+load"}


@pytest.mark.parametrize("version", [DEFAULT_VERSION, "3.9.2"])
def test_kafkas_classes_come_from_the_archive_of_the_image(engine: docker.DockerClient, version: str) -> None:
    image = kafka_image(engine, version)
    said = engine.containers.run(image, ["-c", START], entrypoint="sh", environment=TELLING, remove=True).decode()
    assert "kafka.Kafka$ source: shared objects file (top)" in said


@pytest.mark.parametrize("version", [DEFAULT_VERSION, "3.9.2"])
def test_classes_that_a_broker_needs_for_clients_come_from_the_archive(
    engine: docker.DockerClient, version: str
) -> None:
    said = engine.containers.run(kafka_image(engine, version), ["-c", ARCHIVED], entrypoint="sh", remove=True).decode()
    assert re.search(r"^ *\d+: kafka\.cluster\.Partition\$ ", said, re.MULTILINE), said[-2000:]


def test_a_user_who_is_not_root_makes_a_base_in_a_container(engine: docker.DockerClient, tmp_path: Path) -> None:
    before = {tag for image in engine.images.list() for tag in image.tags}
    make_base(engine, ["procps"], SUITE, tmp_path / "base.tar", root=False)
    with tarfile.open(tmp_path / "base.tar") as archive:
        names = set(archive.getnames())
    assert {"./usr/bin/ps", "./etc/debian_version", "./var/lib/dpkg/status"} <= names
    assert [path.name for path in tmp_path.iterdir()] == ["base.tar"]
    assert {tag for image in engine.images.list() for tag in image.tags} == before


def test_a_stage_of_the_image_gets_the_same_jars_as_maven_here(engine: docker.DockerClient) -> None:
    def jars(image: str) -> list[str]:
        said = engine.containers.run(image, [LIBRARIES], entrypoint="ls", remove=True)
        return sorted(said.decode().split())

    tag = "kafka-trial-test/maven:1"
    build_kafka(engine, tag, DEFAULT_VERSION, java_image(engine), maven=False)
    try:
        assert jars(tag) == jars(kafka_image(engine, DEFAULT_VERSION))
        assert f"kafka_2.13-{DEFAULT_VERSION}.jar" in jars(tag)
    finally:
        engine.images.remove(tag, force=True)
