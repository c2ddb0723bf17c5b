"""A cluster of containers: brought up, ready, and gone again whatever happens."""

import fcntl
import ipaddress
import socket
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from docker import DockerClient
from docker.errors import DockerException
from docker.models.containers import Container
from requests.exceptions import RequestException
from urllib3.exceptions import HTTPError

from harness.cluster.kafka_config import properties, settings_of
from harness.core.errors import ClusterError, EnvironmentLacks
from harness.core.topology import Node, Topology
from harness.history.paths import LOGS
from harness.providers.docker import compose
from harness.providers.docker.cleanup import cleanup
from harness.providers.docker.engine import compose as run_compose
from harness.providers.docker.images import CACHE, kafka_image, toolbox_image
from harness.providers.docker.shell import DockerShell
from harness.providers.docker.subnets import Subnet, free_subnet, topology
from harness.resources import recipes
from harness.scenario.model import ClusterSpec

_LAST_LINES = 5

#: How the engine's client fails; urllib3's own errors where an answer is read in pieces, as a log is.
_ENGINE_FAILS = (DockerException, RequestException, HTTPError)
_NOT_KEPT = (*_ENGINE_FAILS, OSError)


@dataclass(frozen=True)
class DockerCluster:
    """A running cluster: its nodes, how to get hold of one, and what they said."""

    run: str
    spec: ClusterSpec
    topology: Topology
    image: str
    shell: DockerShell
    client: DockerClient

    def why_dead(self, node: Node) -> str | None:
        """The last lines that a node said before it exited; None while it runs."""
        container = self.client.containers.get(compose.container_name(self.run, node))
        if container.status == "running":
            return None
        lines = container.logs(tail=200).decode(errors="replace").splitlines()
        telling = [line for line in lines if " ERROR " in line or " FATAL " in line or "xception" in line] or lines
        return f"{node.name} exited with {container.attrs['State']['ExitCode']}: {' | '.join(telling[-_LAST_LINES:])}"


@contextmanager
def up(
    spec: ClusterSpec,
    run: str,
    directory: Path,
    client: DockerClient,
    note: Callable[[str], None],
    keep: bool = False,
) -> Iterator[DockerCluster]:
    """Start a cluster, its ``compose.yaml`` and ``config/`` in ``directory``; in the end keep its logs and remove it.

    ``keep`` leaves it running. ``note`` takes a line for what cannot be kept or removed. Raises EnvironmentLacks (no
    image, no address left) and ClusterError.
    """
    image = kafka_image(client, spec.version, spec.image)
    toolbox = toolbox_image(client)
    with released(client, run, directory / LOGS, note, keep):
        with _addresses():
            subnet = _subnet(client, spec.subnet, run)
            nodes = topology(spec, subnet, _free_port if spec.clients == "published" else lambda: None)
            _write(spec, run, nodes, subnet, image, directory)
            run_compose(directory, compose.project_of(run), "up", "--no-start")
        run_compose(directory, compose.project_of(run), "start")
        containers = {node.name: compose.container_name(run, node) for node in nodes.nodes}
        shell = DockerShell(nodes, containers, toolbox, compose.labels_of(run, directory), client)
        yield DockerCluster(run, spec, nodes, image, shell, client)


@contextmanager
def released(
    client: DockerClient, run: str, logs: Path, note: Callable[[str], None], keep: bool = False
) -> Iterator[None]:
    """In the end keep the logs of a run's containers in ``logs`` and remove all that the run has, however it ends.

    What cannot be kept or removed is a line for ``note``: it keeps nothing else from being removed, and what was
    recorded from nothing. ``keep`` removes nothing.
    """
    with ExitStack() as stack:
        if not keep:
            stack.callback(_remove, client, run, note)
        stack.callback(_keep_logs, client, run, logs, note)
        yield


def _write(spec: ClusterSpec, run: str, nodes: Topology, subnet: Subnet, image: str, directory: Path) -> None:
    (directory / "config").mkdir(parents=True)
    for node in nodes.nodes:
        (directory / "config" / f"{node.name}.properties").write_text(
            properties(settings_of(node, nodes, spec)), encoding="utf-8"
        )
    ours = {str(recipes() / "kafka" / name): f"/opt/kafka/{name}" for name in ("start", *_LOGGING)}
    document = compose.document(
        run, nodes, subnet, image, ours if spec.image else {}, compose.labels_of(run, directory)
    )
    (directory / "compose.yaml").write_text(compose.text(document), encoding="utf-8")


_LOGGING = ("log4j.properties", "log4j2.properties")


@contextmanager
def _addresses() -> Iterator[None]:
    """Two runs that start at once must not choose the same subnet: one after the other."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "addresses.lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _subnet(client: DockerClient, wanted: str | None, run: str) -> Subnet:
    taken = {**_routes(), **_networks(client)}
    if wanted is not None:
        chosen = ipaddress.IPv4Network(wanted)
        clash = next((name for subnet, name in taken.items() if chosen.overlaps(subnet)), None)
        if clash is not None:
            raise EnvironmentLacks(f"cluster.subnet {wanted} is taken by {clash}: name another, or leave it out")
        return chosen
    free = free_subnet(taken, start=zlib.crc32(run.encode()))
    if free is None:
        raise EnvironmentLacks("no free /24 is left in 10.201.0.0 – 10.216.255.0: `kafka-trial cleanup` frees some")
    return free


def _networks(client: DockerClient) -> dict[Subnet, str]:
    return {
        ipaddress.IPv4Network(config["Subnet"]): f"Docker network {network.name}"
        for network in client.networks.list()
        for config in (network.attrs.get("IPAM", {}).get("Config") or [])
        if ":" not in config.get("Subnet", ":")
    }


def _routes() -> dict[Subnet, str]:
    """What this machine's routing table knows, the default route apart (Linux; elsewhere Docker's list must do)."""
    table = Path("/proc/net/route")
    lines = [line.split() for line in table.read_text(encoding="utf-8").splitlines()[1:]] if table.exists() else []
    found = {}
    for name, destination, *_, mask, _mtu, _window, _irtt in lines:
        subnet = Subnet((_address(destination), _address(mask)))
        if subnet.prefixlen:
            found[subnet] = f"this machine's route by {name}"
    return found


def _address(hexadecimal: str) -> str:
    return socket.inet_ntoa(bytes.fromhex(hexadecimal)[::-1])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _remove(client: DockerClient, run: str, note: Callable[[str], None]) -> None:
    try:
        cleanup(run, client, force=True)
    except (ClusterError, *_ENGINE_FAILS) as exc:
        note(f"{exc}; `kafka-trial cleanup {run}` removes what is left")


def _keep_logs(client: DockerClient, run: str, directory: Path, note: Callable[[str], None]) -> None:
    try:
        directory.mkdir(exist_ok=True)
        containers = client.containers.list(all=True, filters={"label": f"{compose.LABEL}={run}"})
    except _NOT_KEPT as exc:
        note(f"no node's log is kept: {exc}")
        return
    for container in containers:
        name = str(container.name).removeprefix(f"{compose.project_of(run)}-")
        try:
            _keep_log(container, directory / f"{name}.log")
        except _NOT_KEPT as exc:
            note(f"the log of {name} is not kept whole: {exc}")


def _keep_log(container: Container, path: Path) -> None:
    with path.open("wb") as file:
        for chunk in container.logs(stream=True, follow=False):
            file.write(chunk)
