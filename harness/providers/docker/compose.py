"""The Compose document of a cluster. Pure: Compose starts exactly what the document says."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from harness.cluster.distribution import START, environment
from harness.core.topology import Node, Topology
from harness.providers.docker.subnets import Subnet

#: Every container, network and volume of a run has these labels: the run's name, and its directory.
LABEL = "kafka-trial.run"
DIRECTORY_LABEL = "kafka-trial.directory"

#: Compose sets this label on all that it starts; we set it on what we start without Compose.
PROJECT_LABEL = "com.docker.compose.project"

#: The shares of the cores of containers that start in the background, and of all others: Docker's least and default.
BACKGROUND, FOREGROUND = 2, 1024


def project_of(run: str) -> str:
    """The Compose project of a run: short, and unique to it."""
    return f"kt-{hashlib.sha256(run.encode()).hexdigest()[:10]}"


def container_name(run: str, node: Node) -> str:
    """The name of a node's container."""
    return f"{project_of(run)}-{node.name}"


def labels_of(run: str, directory: Path) -> dict[str, str]:
    """The labels that show any process what belongs to a run, and whether the run is still going."""
    return {LABEL: run, DIRECTORY_LABEL: str(directory), PROJECT_LABEL: project_of(run)}


def is_ours(labels: Mapping[str, str]) -> bool:
    """Whether a thing with these labels belongs to the run that they name. Anybody can set one label by hand."""
    return LABEL in labels and labels.get(PROJECT_LABEL) == project_of(labels[LABEL])


def document(
    run: str,
    topology: Topology,
    subnet: Subnet,
    image: str,
    mounts: Mapping[str, str],
    labels: Mapping[str, str],
    libraries: str = "",
    background: bool = False,
) -> dict[str, Any]:
    """The services, network and volumes of a run. ``background``: nodes have the least share of the cores.

    ``mounts``: files of this machine, and their paths in every node (the start script, if the image is not ours).
    ``libraries``: the folder of Kafka's jars in the image, if the image is not ours. Each node's settings are mounted
    from ``./config/<node>.properties``.
    """
    share = {"cpu_shares": BACKGROUND} if background else {}
    marked = {name: value for name, value in labels.items() if name != PROJECT_LABEL}  # which Compose sets itself
    nodes = {node.name: _service(run, node, topology, image, mounts, libraries) for node in topology.nodes}
    return {
        "services": {name: {**service, **share, "labels": dict(marked)} for name, service in nodes.items()},
        "networks": {
            "trial": {
                "driver": "bridge",
                "labels": dict(marked),
                "ipam": {"config": [{"subnet": str(subnet), "gateway": topology.clients.address}]},
            }
        },
        "volumes": {_volume(node): {"labels": dict(marked)} for node in topology.nodes},
    }


def text(compose: Mapping[str, Any]) -> str:
    """The text of compose.yaml. Compose takes ``$`` for a variable, so a literal one is doubled."""
    return yaml.safe_dump(_literal(dict(compose)), sort_keys=False)


def _literal(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: _literal(value) for key, value in part.items()}
    if isinstance(part, list):
        return [_literal(value) for value in part]
    return part.replace("$", "$$") if isinstance(part, str) else part


def _volume(node: Node) -> str:
    return f"{node.name}-data"


def _mounted(file: str, target: str) -> dict[str, Any]:
    """The mount of a file of this machine. (In Compose's short form, a ``:`` in the path would end the path.)"""
    return {"type": "bind", "source": file, "target": target, "read_only": True}


def _service(
    run: str, node: Node, topology: Topology, image: str, mounts: Mapping[str, str], libraries: str
) -> dict[str, Any]:
    return {
        "image": image,
        "container_name": container_name(run, node),
        "hostname": node.name,
        "user": "0",
        "entrypoint": ["sh", f"/opt/kafka/{START}"],
        "command": [str(node.role)],
        "environment": environment(run, node, topology, libraries),
        "volumes": [
            f"{_volume(node)}:/data",
            _mounted(f"./config/{node.name}.properties", "/etc/kafka-trial/node.properties"),
            *(_mounted(file, target) for file, target in mounts.items()),
        ],
        "networks": {"trial": {"ipv4_address": node.address}},
        **({"ports": [f"127.0.0.1:{node.published}:{node.ports.client}"]} if node.published else {}),
        "restart": "no",
    }
