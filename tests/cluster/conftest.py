"""Plain containers in the place of nodes: what faults do to them is seen without waiting for Kafka."""

import re
import socket
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import docker
import pytest
from docker.models.containers import Container

from harness.cluster.distribution import HELD
from harness.core.topology import Node, Plane, Role, Topology
from harness.history.lock import RecordingLock
from harness.providers.docker.compose import labels_of
from harness.providers.docker.images import toolbox_image
from harness.providers.docker.shell import DockerShell, without_network
from nemesis.fault import on_each
from nemesis.mechanisms import round_trips
from nemesis.shell import ProcessState

#: PID 1 of a plain node: waits while it is held, and exits on SIGTERM, as Kafka does.
MAIN = (
    f"trap 'exit 0' TERM; while [ -e {HELD} ]; do sleep 0.05; done; echo went on; "
    "echo data >/data/one; echo data >/data/two; while :; do sleep 1 & wait $!; done"
)


@dataclass(frozen=True)
class Plain:
    """Three plain containers in the place of brokers, and this machine in the place of the clients."""

    engine: docker.DockerClient
    shell: DockerShell
    try_script: Callable[[str], str]
    containers: Mapping[str, Container]

    def went_on(self, name: str) -> int:
        """How often a node's main process has been started and released."""
        return self.containers[name].logs().decode().splitlines().count("went on")

    def node(self, name: str) -> Node:
        found = self.shell.topology.named(name)
        assert found is not None
        return found

    def ping(self, from_: str, to: str, count: int = 2) -> int:
        """How many of ``count`` pings were answered."""
        script = f"ping -n -q -c {count} -i 0.05 -W 1 {self.node(to).address} || true"
        answered = re.search(r"(\d+) received", self.shell.in_network_of(self.node(from_), script))
        assert answered is not None
        return int(answered[1])

    def pinged(self, from_: str, to: str, count: int) -> list[int]:
        """The numbers of the pings that were answered, in the order of the answers."""
        # (By itself it awaits no answer for longer than those before took to reach the device, held or not.)
        script = f"ping -n -c {count} -i 0.02 -w 3 {self.node(to).address} || true"
        return [int(number) for number in re.findall(r"icmp_seq=(\d+)", self._in(from_, script))]

    def round_trip(self, from_: str, to: str) -> float:
        """How many milliseconds a connection takes, in the middle of some."""
        script = round_trips.script([self.node(to)], self.node(to).ports, Plane.ALL, 5)
        return float(round_trips.read(self._in(from_, script), 1)["p50"])

    def kill_helpers(self, name: str) -> None:
        """SIGKILL to the helpers of a node, and wait until they have exited."""
        for helper in self.helpers(name):
            helper.kill(signal="SIGKILL")
            helper.wait(timeout=10)

    def helpers(self, name: str) -> list[Container]:
        """The helpers of a node."""
        named = f"{self.containers[name].name}-"
        found = self.engine.containers.list(all=True, filters={"name": named})
        return [container for container in found if str(container.name).startswith(named)]

    def _in(self, name: str, script: str) -> str:
        return self.shell.in_network_of(self.node(name), script)

    def answered(self, count: int = 2) -> dict[tuple[str, str], int]:
        """How many of ``count`` pings were answered, from each node and to each."""
        nodes = self.shell.topology.nodes
        script = "".join(f"ping -n -q -c {count} -i 0.05 -W 1 {node.address} || true\n" for node in nodes)
        said = on_each(nodes, lambda node: self.shell.in_network_of(node, script))
        return {
            (node.name, to.name): int(received)
            for node, text in said.items()
            for to, received in zip(nodes, re.findall(r"(\d+) received", text), strict=True)
        }

    def states(self) -> dict[str, ProcessState]:
        return {n.name: state for n, state in on_each(self.shell.topology.nodes, self.shell.process).items()}

    def traces(self) -> dict[str, str]:
        """All that a fault could leave in the nodes' network namespaces."""
        look = "iptables-save | grep KT || true; tc qdisc show; ip -o link | cut -d: -f2 | cut -d@ -f1"
        return {
            n.name: said
            for n, said in on_each(self.shell.topology.nodes, lambda node: self.shell.in_network_of(node, look)).items()
        }

    def received(self, by: str, port: int) -> int:
        """Bytes that a node receives within a second from a server on this machine that sends what it can."""
        clients = self.shell.topology.clients.address
        with _serving(clients, port):
            download = f"bash -c 'timeout 1 cat </dev/tcp/{clients}/{port} | wc -c'"
            return int(self.shell.in_network_of(self.node(by), download))


@contextmanager
def _serving(address: str, port: int) -> Iterator[None]:
    def serve() -> None:
        connection, _ = listening.accept()
        connection.settimeout(3)
        with connection, suppress(OSError):
            while True:
                connection.send(bytes(65_536))

    with socket.create_server((address, port)) as listening:
        listening.settimeout(10)
        thread = threading.Thread(target=serve)
        thread.start()
        yield
        thread.join(30)
        assert not thread.is_alive()


@pytest.fixture(scope="module")
def engine() -> Iterator[docker.DockerClient]:
    with closing(docker.from_env(timeout=120)) as client:
        yield client


@pytest.fixture(scope="module")
def toolbox(engine: docker.DockerClient) -> str:
    return toolbox_image(engine)


@pytest.fixture
def plain(engine: docker.DockerClient, toolbox: str, tmp_path: Path) -> Iterator[Plain]:
    run = f"faults-{uuid.uuid4().hex[:8]}"
    # While it is locked, `kafka-trial cleanup` of another process takes none of it.
    lock = RecordingLock(tmp_path)
    labels = labels_of(run, tmp_path)
    network = engine.networks.create(run, labels=labels)
    try:
        network.reload()
        names = {f"b{i}": f"{run}-b{i}" for i in (1, 2, 3)}
        nodes, containers = [], {}
        for number, (name, container_name) in enumerate(names.items(), 1):
            container = engine.containers.run(
                toolbox,
                ["sh", "-c", MAIN],
                detach=True,
                name=container_name,
                labels=labels,
                network=run,
                volumes=["/data"],
            )
            containers[name] = container
            container.reload()
            address = container.attrs["NetworkSettings"]["Networks"][run]["IPAddress"]
            nodes.append(Node(name, Role.BROKER, number, address))
        clients = Node("clients", Role.CLIENTS, 0, network.attrs["IPAM"]["Config"][0]["Gateway"])
        shell = DockerShell(Topology(tuple(nodes), clients), names, toolbox, labels, engine)
        yield Plain(engine, shell, without_network(engine, toolbox, labels), containers)
        left = [c.name for c in engine.containers.list(all=True, filters={"label": f"kafka-trial.run={run}"})]
        assert sorted(left) == sorted(names.values()), "a toolbox container stayed"
    finally:
        for container in engine.containers.list(all=True, filters={"label": f"kafka-trial.run={run}"}):
            container.remove(force=True, v=True)
        network.remove()
        lock.release()
