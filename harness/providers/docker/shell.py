"""What faults do to the nodes of a run, through the Docker engine."""

import io
import math
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from docker import DockerClient
from docker.errors import APIError, DockerException, NotFound
from docker.models.containers import Container
from requests.exceptions import RequestException

from harness.cluster.distribution import DATA, HELD
from harness.core.errors import ClusterError
from harness.core.topology import Node, Topology
from harness.history.lock import RecordingLock
from harness.providers.docker.compose import labels_of
from harness.providers.docker.engine import connect
from nemesis.shell import ProcessState, Signal, Switch

T = TypeVar("T")

#: The capabilities of a script in a network namespace. Without NET_RAW neither ping nor iptables-legacy starts.
_POWERS: dict[str, Any] = {"cap_drop": ["ALL"], "cap_add": ["NET_ADMIN", "NET_RAW"]}

_WIPE = (
    f"test -d {DATA} || {{ echo 'it has no volume at {DATA}' >&2; exit 1; }}\n"
    f"find {DATA} -mindepth 1 -type f | wc -l\n"
    f"find {DATA} -mindepth 1 -delete\n"
)


class DockerShell:
    """A ``nemesis.shell.NodeShell`` for nodes that are containers of a local Docker engine.

    Takes the name of each node's container by the node's name, the toolbox image, the labels for the toolbox's
    short-lived containers (any process can remove them by these), and the engine's client, which it does not close.
    """

    network_ends_with_process: ClassVar[bool] = True

    def __init__(
        self,
        topology: Topology,
        containers: Mapping[str, str],
        toolbox_image: str,
        labels: Mapping[str, str],
        client: DockerClient | None = None,
    ) -> None:
        self.topology = topology
        self._containers = dict(containers)
        self._image = toolbox_image
        self._labels = dict(labels)
        self._client = client or connect()

    def lasting(self, seconds: float) -> "DockerShell":  # noqa: ARG002 - a network ends with its container
        """The same shell: what a run leaves is removed with its containers."""
        return self

    def in_network_of(
        self,
        node: Node,
        script: str,
        arm: Switch | None = None,  # noqa: ARG002
        disarm: str | None = None,  # noqa: ARG002
    ) -> str:
        """Run ``sh -euc script`` as root of only the node's network namespace; return its output."""
        return run_toolbox(
            self._client,
            self._image,
            script,
            self._labels,
            doing=f"{node.name}: network script",
            network_mode=f"container:{self._containers[node.name]}",
            **_POWERS,
        )

    def start_helper(self, node: Node, name: str, script: str) -> None:
        """Run a script in a toolbox container of its own, in the node's network namespace, until it is stopped."""
        self.stop_helper(node, name)
        self._engine(
            f"{node.name}: start helper {name}",
            lambda: self._client.containers.run(
                self._image,
                ["sh", "-euc", script],
                detach=True,
                init=True,
                name=self._helper(node, name),
                labels=self._labels,
                user="root",
                network_mode=f"container:{self._containers[node.name]}",
                **_POWERS,
            ),
        )

    def helper_runs(self, node: Node, name: str) -> bool:
        """Whether that container is there and runs."""

        def look() -> bool:
            with suppress(NotFound):
                return bool(self._client.containers.get(self._helper(node, name)).attrs["State"]["Running"])
            return False

        return self._engine(f"{node.name}: look at helper {name}", look)

    def stop_helper(self, node: Node, name: str) -> None:
        """Remove that container."""

        def remove() -> None:
            with suppress(NotFound):
                self._client.containers.get(self._helper(node, name)).remove(force=True)

        self._engine(f"{node.name}: stop helper {name}", remove)

    def signal(self, node: Node, signal: Signal) -> None:
        """Send a signal to the container's PID 1."""
        self._on(node, f"SIG{signal}", lambda container: container.kill(signal=f"SIG{signal}"))

    def start(self, node: Node) -> None:
        """Start the node's container, which then waits for ``release``. A running container is left alone."""
        self._on(node, "start", _start_held)

    def release(self, node: Node) -> None:
        """Let the container's main process continue."""
        self._on(node, "release it", _release)

    def stop(self, node: Node, grace: float) -> None:
        """Send SIGTERM; after ``grace`` seconds SIGKILL to what has not exited."""
        self._on(node, "stop", lambda container: container.stop(timeout=math.ceil(grace)))

    def process(self, node: Node) -> ProcessState:
        """The present state of the container's PID 1."""
        return self._on(node, "look at its process", _state)

    def exit_code(self, node: Node) -> int:
        """The exit code of the container's PID 1."""
        return int(self._on(node, "look at its process", lambda container: container.attrs["State"]["ExitCode"]))

    def wipe(self, node: Node) -> int:
        """Delete everything below /data of a node that has exited. Returns the number of files."""
        if self.process(node) is not ProcessState.EXITED:
            raise ClusterError(f"{node.name}: its data cannot be wiped while it runs")
        counted = run_toolbox(
            self._client,
            self._image,
            _WIPE,
            self._labels,
            doing=f"{node.name}: wipe",
            network_mode="none",
            volumes_from=[self._containers[node.name]],
        )
        return int(counted)

    def _helper(self, node: Node, name: str) -> str:
        return f"{self._containers[node.name]}-{name}"

    def _engine(self, doing: str, act: Callable[[], T]) -> T:
        try:
            return act()
        except (DockerException, RequestException) as exc:
            raise ClusterError(f"{doing} failed: {_why(exc)}") from exc

    def _on(self, node: Node, doing: str, act: Callable[[Container], T]) -> T:
        try:
            return act(self._client.containers.get(self._containers[node.name]))
        except (DockerException, RequestException) as exc:
            raise ClusterError(f"{node.name}: cannot {doing}: {_why(exc)}") from exc


def run_toolbox(
    client: DockerClient, image: str, script: str, labels: Mapping[str, str], doing: str, **options: Any
) -> str:
    """Run ``sh -euc script`` as root in a temporary toolbox container; return its standard output.

    Raises ClusterError with ``doing`` and, if the script failed, the last line of its standard error.
    """
    try:
        container = client.containers.create(image, ["sh", "-euc", script], labels=dict(labels), user="root", **options)
        try:
            container.start()
            status: int = container.wait()["StatusCode"]
            output = container.logs(stdout=True, stderr=False).decode(errors="replace")
            complained = container.logs(stdout=False, stderr=True).decode(errors="replace")
        finally:
            container.remove(force=True)
    except (DockerException, RequestException) as exc:
        raise ClusterError(f"{doing} failed: {_why(exc)}") from exc
    if status != 0:
        raise ClusterError(f"{doing} failed: {_last_line(complained) or f'it exited with {status} without a message'}")
    return output


def without_network(client: DockerClient, image: str, labels: Mapping[str, str]) -> Callable[[str], str]:
    """A function that runs a script as root of a new network namespace, to try what this kernel has."""
    return lambda script: run_toolbox(client, image, script, labels, doing="trial", network_mode="none", **_POWERS)


@contextmanager
def labels_of_no_run() -> Iterator[dict[str, str]]:
    """Labels for containers that belong to no run. Any process may remove such containers when this block has ended."""
    with tempfile.TemporaryDirectory(prefix="kafka-trial-") as scratch:
        directory = Path(scratch)
        lock = RecordingLock(directory)
        try:
            yield labels_of(f"no-run/{directory.name}", directory)
        finally:
            lock.release()


def _start_held(container: Container) -> None:
    container.reload()
    if container.attrs["State"]["Running"]:
        return
    held = Path(HELD)
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as files:
        files.addfile(tarfile.TarInfo(held.name))
    container.put_archive(str(held.parent), archive.getvalue())
    container.start()


def _release(container: Container) -> None:
    done = container.exec_run(["rm", "-f", HELD], user="root")
    if done.exit_code != 0:
        raise ClusterError(f"{container.name}: cannot release it: rm exited with {done.exit_code}")


def _state(container: Container) -> ProcessState:
    container.reload()
    state = container.attrs["State"]
    if not state["Running"]:
        return ProcessState.EXITED
    try:
        table = container.top(ps_args="-o pid,stat")
    except APIError:
        container.reload()
        if container.attrs["State"]["Running"]:
            raise
        return ProcessState.EXITED
    stat = next((row[1] for row in table["Processes"] if row[0] == str(state["Pid"])), "")
    return ProcessState.STOPPED if stat.startswith("T") else ProcessState.RUNNING


def _why(exc: Exception) -> str:
    """The engine's message, in one line."""
    if isinstance(exc, APIError) and exc.explanation:
        return _last_line(str(exc.explanation))
    return _last_line(str(exc)) or type(exc).__name__


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
