"""Brings up a cluster of containers, and removes it whatever happens."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from zlib import crc32

from docker import DockerClient
from docker.models.containers import Container

from harness.cluster.distribution import SCRIPTS
from harness.cluster.kafka_config import properties, settings_of
from harness.cluster.one_at_a_time import one_at_a_time
from harness.cluster.provider import Diagnosis, last_words
from harness.cluster.spec import ClusterSpec, own_spec
from harness.core.clock import ClockOffset
from harness.core.errors import ClusterError, NoMeans
from harness.core.topology import Node, Topology
from harness.history.paths import COMPOSE_FILE, LOGS
from harness.providers.docker import compose
from harness.providers.docker.cleanup import cleanup
from harness.providers.docker.doctor import doctor
from harness.providers.docker.engine import ENGINE_FAILS, answering, compose_command, connect
from harness.providers.docker.engine import compose as run_compose
from harness.providers.docker.images import origin, toolbox_image
from harness.providers.docker.node_image import NodeImage, node_image
from harness.providers.docker.reaching import reaches_containers, wanted_clients
from harness.providers.docker.shell import DockerShell, labels_of_no_run, without_network
from harness.providers.docker.sources import sources
from harness.providers.docker.spec import DockerSpec
from harness.providers.docker.subnets import Subnet, chosen_subnet, free_ports, published, topology
from harness.resources import recipes
from nemesis.fault import Needs
from nemesis.preflight import lacking

_NOT_KEPT = (*ENGINE_FAILS, OSError)


@dataclass(frozen=True)
class DockerCluster:
    """A ``harness.cluster.provider.Cluster`` of containers."""

    run: str
    topology: Topology
    shell: DockerShell
    client: DockerClient
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def removed_by(self) -> str:
        """The command that removes its containers."""
        return f"kafka-trial cleanup {self.run}"

    def why_dead(self, node: Node) -> str | None:
        """The last lines that a node logged before it exited; None while it runs. Raises ClusterError."""
        try:
            container = self.client.containers.get(compose.container_name(self.run, node))
            if container.status == "running":
                return None
            log = container.logs(tail=200).decode(errors="replace")
        except ENGINE_FAILS as exc:
            raise ClusterError(f"{node.name}: cannot look at its container: {exc}") from exc
        return f"{node.name} exited with {container.attrs['State']['ExitCode']}: {last_words(log)}"

    def to_foreground(self) -> None:
        """Let its nodes have as much of the cores as other containers."""
        with answering("cores"):
            for node in self.topology.nodes:
                container = self.client.containers.get(compose.container_name(self.run, node))
                container.update(cpu_shares=compose.FOREGROUND)

    def clocks(self) -> dict[str, ClockOffset]:
        """Containers have this machine's clock."""
        return {}


class Docker:
    """A ``harness.cluster.provider.Provider`` of clusters of containers.

    ``connect`` gives the engine's client when it is first needed, or raises EnvironmentLacks. ``reaches`` says whether
    this machine reaches containers by their addresses; its argument is the toolbox image.
    """

    def __init__(
        self,
        connect: Callable[[], DockerClient] = connect,
        reaches: Callable[[DockerClient, str], bool] = reaches_containers,
    ) -> None:
        self._client = cache(connect)
        self._reaches = cache(lambda toolbox: reaches(self._client(), toolbox))

    def check(
        self, spec: ClusterSpec, needs: Iterable[Needs], progress: Callable[[str], None] = lambda _: None
    ) -> None:
        """Whether the engine answers, Compose is here, the image of nodes can be had, and this kernel has what faults
        need; and how nodes are reached. (Images are made here, and not while a cluster comes up: in a suite that may
        be during the timeline of another.)"""
        client, own, wanted = self._client(), own_spec(spec, DockerSpec), [need for need in needs if need]
        allowed = sources(own.images)
        compose_command()
        with answering("images" if own.image is None else f"cluster.image {own.image}"):
            node_image(client, spec.version, own.image, allowed, progress)
        with answering("images"):
            toolbox = toolbox_image(client, allowed, progress)
        if wanted:
            with answering("what faults need"), labels_of_no_run() as labels:
                missing = lacking(wanted, without_network(client, toolbox, labels))
            if missing:
                raise NoMeans("; ".join(missing))
        if wanted_clients(own.clients) is None:
            with answering("images"):
                self._reaches(toolbox)

    def has_background(self, spec: ClusterSpec) -> bool:  # noqa: ARG002
        """Whether the engine can give containers different shares of the cores: without root, it often cannot."""
        with answering("cores"):
            return bool(self._client().info().get("CPUShares"))

    @contextmanager
    def up(
        self,
        spec: ClusterSpec,
        run: str,
        directory: Path,
        note: Callable[[str], None],
        keep: bool = False,
        background: bool = False,
        progress: Callable[[str], None] = lambda _: None,
    ) -> Iterator[DockerCluster]:
        """Start a cluster. Its ``compose.yaml`` and ``config/`` are also put in ``directory``."""
        client, own = self._client(), own_spec(spec, DockerSpec)
        with answering("images"):
            allowed = sources(own.images)
            image = node_image(client, spec.version, own.image, allowed, progress)
            toolbox = toolbox_image(client, allowed, progress)
            clients = wanted_clients(own.clients) or ("direct" if self._reaches(toolbox) else "published")
            versions = {
                "image of nodes": origin(client, image.tag),
                "image of the toolbox": origin(client, toolbox),
                "clients": clients,
            }
        project = compose.project_of(run)
        with released(client, run, directory / LOGS, note, keep):
            with one_at_a_time("addresses"):  # two runs that start at once must not choose the same subnet
                with answering("addresses"):
                    subnet = chosen_subnet(client, own.subnet, run)
                    port = _ports(client, run) if clients == "published" else lambda: None
                nodes = topology(spec, subnet, port)
                _write(spec, run, nodes, subnet, image, directory, background)
                run_compose(directory, project, "up", "--detach")
            containers = {node.name: compose.container_name(run, node) for node in nodes.nodes}
            shell = DockerShell(nodes, containers, toolbox, compose.labels_of(run, directory), client)
            yield DockerCluster(run, nodes, shell, client, versions)

    def cleanup(self, spec: ClusterSpec, run: str | None, force: bool, dry_run: bool) -> list[str]:  # noqa: ARG002
        """Remove the containers, networks and volumes of one run, or of all."""
        return cleanup(run, self._client(), force=force, dry_run=dry_run)

    def doctor(self, spec: ClusterSpec) -> Iterator[Diagnosis]:
        """Compose, the engine, its images, and every fault of the catalogue."""
        with answering("doctor"):
            yield from doctor(self._client, sources(own_spec(spec, DockerSpec).images))


def _ports(client: DockerClient, run: str) -> Callable[[], int]:
    return partial(next, free_ports(published(client), start=crc32(run.encode())))


@contextmanager
def released(
    client: DockerClient, run: str, logs: Path, note: Callable[[str], None], keep: bool = False
) -> Iterator[None]:
    """At the end, however the block ends, store the logs of a run's containers in ``logs`` and remove all of the run.

    ``note`` gets a line for each thing that cannot be stored or removed; the rest is removed, and the run is judged
    nevertheless. ``keep`` removes nothing.
    """
    with ExitStack() as stack:
        if not keep:
            stack.callback(_remove, client, run, note)
        stack.callback(_keep_logs, client, run, logs, note)
        yield


def _write(
    spec: ClusterSpec,
    run: str,
    nodes: Topology,
    subnet: Subnet,
    image: NodeImage,
    directory: Path,
    background: bool,
) -> None:
    (directory / "config").mkdir(parents=True)
    for node in nodes.nodes:
        (directory / "config" / f"{node.name}.properties").write_text(
            properties(settings_of(node, nodes, spec)), encoding="utf-8"
        )
    mounts = {} if image.ours else {str(recipes() / "kafka" / name): f"/opt/kafka/{name}" for name in SCRIPTS}
    labels = compose.labels_of(run, directory)
    document = compose.document(run, nodes, subnet, image.tag, mounts, labels, image.libraries, background)
    (directory / COMPOSE_FILE).write_text(compose.text(document), encoding="utf-8")


def _remove(client: DockerClient, run: str, note: Callable[[str], None]) -> None:
    try:
        cleanup(run, client, force=True)
    except ClusterError as exc:
        note(f"{exc}; `kafka-trial cleanup {run}` removes what is left")


def _keep_logs(client: DockerClient, run: str, directory: Path, note: Callable[[str], None]) -> None:
    try:
        directory.mkdir(exist_ok=True)
        containers = client.containers.list(all=True, filters={"label": f"{compose.LABEL}={run}"})
    except _NOT_KEPT as exc:
        note(f"no node's log is stored: {exc}")
        return
    for container in containers:
        name = str(container.name).removeprefix(f"{compose.project_of(run)}-")
        try:
            _keep_log(container, directory / f"{name}.log")
        except _NOT_KEPT as exc:
            note(f"the log of {name} is not stored completely: {exc}")


def _keep_log(container: Container, path: Path) -> None:
    with path.open("wb") as file:
        for chunk in container.logs(stream=True, follow=False):
            file.write(chunk)
