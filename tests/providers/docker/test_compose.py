"""The Compose document: plain data, no Docker."""

from pathlib import Path

import pytest
import yaml

from harness.cluster.distribution import cluster_id
from harness.providers.docker import compose
from tests.providers.docker.nodes import SUBNET, nodes_of


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


@pytest.mark.parametrize("background", [False, True])
def test_nodes_in_the_background_have_the_least_share_of_the_cores(background: bool) -> None:
    _, nodes = nodes_of()
    document = compose.document("s/1-2", nodes, SUBNET, "image:1", {}, {}, background=background)
    shares = {service.get("cpu_shares") for service in document["services"].values()}
    assert shares == {compose.BACKGROUND if background else None}


def test_two_runs_share_no_names() -> None:
    assert compose.project_of("s/1-2") != compose.project_of("s/1-3")
    assert cluster_id("s/1-2") != cluster_id("s/1-3")
