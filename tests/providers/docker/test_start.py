"""What docker/kafka/start does before a node's JVM begins, with a JVM that only notes what it was asked."""

import os
import subprocess
from pathlib import Path

import pytest

from harness.cluster.distribution import START
from harness.resources import recipes


@pytest.fixture
def home(tmp_path: Path) -> Path:
    java = tmp_path / "java"
    java.write_text(f'#!/bin/sh\necho "$*" >>{tmp_path}/log\n')
    java.chmod(0o755)
    (tmp_path / "node.properties").write_text("")
    return tmp_path


def started(home: Path, role: str, **environment: str) -> list[str]:
    """The classes and commands that Java was asked for."""
    own = {"KAFKA_TRIAL_HOME": home, "KAFKA_TRIAL_DATA": home / "data", "KAFKA_TRIAL_HELD": home / "held"}
    own |= {"KAFKA_TRIAL_SETTINGS": home / "node.properties", "KAFKA_TRIAL_JAVA": home / "java"}
    given = {name: str(value) for name, value in own.items()} | {"HEAP": "", "NODE_ID": "2", **environment}
    subprocess.run(["sh", recipes() / "kafka" / START, role], env={**os.environ, **given}, check=True)
    lines = (home / "log").read_text().splitlines()
    return [name for line in lines for name in ("kafka.tools.StorageTool format", "kafka.Kafka") if f" {name} " in line]


def test_a_broker_is_formatted_without_a_jvm_and_only_once(home: Path) -> None:
    meta = home / "data" / "kafka" / "meta.properties"
    assert started(home, "broker", CLUSTER_ID="abc") == ["kafka.Kafka"]
    assert meta.read_text() == "version=1\ncluster.id=abc\nnode.id=2\n"
    meta.write_text("version=1\ncluster.id=abc\nnode.id=2\ndirectory.id=xyz\n")
    started(home, "broker", CLUSTER_ID="abc")
    assert "directory.id=xyz" in meta.read_text()
    assert [path.name for path in meta.parent.iterdir()] == ["meta.properties"]


FORMATTED_BY_KAFKA = ["kafka.tools.StorageTool format", "kafka.Kafka"]


def test_a_controller_gets_the_features_that_the_image_keeps_for_new_clusters(home: Path) -> None:
    (home / "bootstrap.checkpoint").write_bytes(b"features")
    assert started(home, "controller", CLUSTER_ID="abc") == ["kafka.Kafka"]
    disk = home / "data" / "kafka"
    assert (disk / "bootstrap.checkpoint").read_bytes() == b"features"
    assert (disk / "meta.properties").read_text() == "version=1\ncluster.id=abc\nnode.id=2\n"


def test_a_controller_of_an_image_without_them_is_formatted_by_kafka(home: Path) -> None:
    assert started(home, "controller", CLUSTER_ID="abc") == FORMATTED_BY_KAFKA


def test_a_controller_with_an_older_protocol_is_formatted_by_kafka(home: Path) -> None:
    (home / "bootstrap.checkpoint").write_bytes(b"features")
    (home / "node.properties").write_text("a=b\ninter.broker.protocol.version=3.5\n")
    assert started(home, "controller", CLUSTER_ID="abc") == FORMATTED_BY_KAFKA


def test_a_zookeeper_cluster_formats_no_storage(home: Path) -> None:
    assert started(home, "broker") == ["kafka.Kafka"]
    assert not (home / "data" / "kafka").exists()
