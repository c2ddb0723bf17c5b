"""Every fault of the catalogue, on real containers: it bites, its evidence says so, and nothing of it is left."""

import re
import socket
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import docker
import pytest

from harness.cluster.images import toolbox_image
from harness.cluster.shell import DockerShell, without_network
from harness.core.clock import Clock
from harness.core.errors import ClusterError
from harness.core.history import FAULTS as SCHEMA
from harness.core.journal import Journal, read_journal
from harness.core.topology import CLIENT_PORT, REPLICATION_PORT, Node, Role, Topology, View
from nemesis.catalogue import FAULTS
from nemesis.fault import on_each
from nemesis.nemesis import Nemesis
from nemesis.preflight import NEEDS, lacking
from nemesis.shell import ProcessState

pytestmark = pytest.mark.cluster

#: PID 1 of a plain node: exits on SIGTERM, as Kafka does.
MAIN = "echo data >/data/one; echo data >/data/two; trap 'exit 0' TERM; while :; do sleep 1 & wait $!; done"


@dataclass(frozen=True)
class Plain:
    """Three plain containers in the place of brokers, and this machine in the place of the clients."""

    shell: DockerShell
    try_script: Callable[[str], str]

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
def plain(engine: docker.DockerClient, toolbox: str) -> Iterator[Plain]:
    run = f"faults-{uuid.uuid4().hex[:8]}"
    labels = {"kafka-trial.run": run}
    network = engine.networks.create(run, labels=labels)
    try:
        network.reload()
        names = {f"b{i}": f"{run}-b{i}" for i in (1, 2, 3)}
        nodes = []
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
            container.reload()
            address = container.attrs["NetworkSettings"]["Networks"][run]["IPAddress"]
            nodes.append(Node(name, Role.BROKER, number, address))
        clients = Node("clients", Role.CLIENTS, 0, network.attrs["IPAM"]["Config"][0]["Gateway"])
        shell = DockerShell(Topology(tuple(nodes), clients), names, toolbox, labels, engine)
        yield Plain(shell, without_network(engine, toolbox, labels))
        left = [c.name for c in engine.containers.list(all=True, filters={"label": f"kafka-trial.run={run}"})]
        assert sorted(left) == sorted(names.values()), "a toolbox container stayed"
    finally:
        for container in engine.containers.list(all=True, filters={"label": f"kafka-trial.run={run}"}):
            container.remove(force=True, v=True)
        network.remove()


@dataclass(frozen=True)
class Trial:
    """A fault as a scenario writes it, what has to go before it, and how it shows while it lasts."""

    fault: dict[str, Any]
    shows: Callable[[Plain], bool]
    before: tuple[tuple[str, dict[str, Any]], ...] = ()


def _cut_from_b2_not_b3(plain: Plain) -> bool:
    return plain.ping("b1", "b2") == 0 and plain.ping("b2", "b1") == 0 and plain.ping("b1", "b3") == 2


def _alone(plain: Plain) -> bool:
    return all(plain.ping("b1", other) == 0 for other in ("b2", "b3", "clients")) and plain.ping("b2", "b3") == 2


def _b1(state: ProcessState) -> Callable[[Plain], bool]:
    return lambda plain: plain.states() == {"b1": state, "b2": ProcessState.RUNNING, "b3": ProcessState.RUNNING}


def _late(plain: Plain) -> bool:
    return plain.ping("b1", "b2") == 2


def _lossy(plain: Plain) -> bool:
    return 0 < plain.ping("b1", "b2", count=40) < 40


def _replication_is_thin(plain: Plain) -> bool:
    return plain.received("b1", REPLICATION_PORT) < 100_000 and plain.received("b1", CLIENT_PORT) > 1_000_000


TRIALS: dict[str, Trial] = {
    "partition": Trial({"from": "b1", "to": "b2"}, _cut_from_b2_not_b3),
    "isolate": Trial({"target": "b1"}, _alone),
    "kill": Trial({"target": "b1"}, _b1(ProcessState.EXITED)),
    "stop": Trial({"target": "b1"}, _b1(ProcessState.EXITED)),
    "restart": Trial({"target": "b1"}, _b1(ProcessState.RUNNING)),
    "start": Trial({"target": "b1"}, _b1(ProcessState.RUNNING), before=(("kill", {"target": "b1"}),)),
    "pause": Trial({"target": "b1"}, _b1(ProcessState.STOPPED)),
    "resume": Trial({"target": "b1"}, _b1(ProcessState.RUNNING), before=(("pause", {"target": "b1"}),)),
    "slow": Trial({"target": "b1", "delay": "200ms"}, _late),
    "flaky": Trial({"target": "b1", "loss": "50%"}, _lossy),
    "throttle": Trial({"target": "b1", "rate": "80kbit", "plane": "replication"}, _replication_is_thin),
    "wipe": Trial({"target": "b1"}, _b1(ProcessState.EXITED), before=(("kill", {"target": "b1"}),)),
}


def test_every_fault_of_the_catalogue_is_tried() -> None:
    assert set(TRIALS) == set(FAULTS)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "faults.nemesis.arrows", SCHEMA) as journal:
        yield journal


def _nemesis(plain: Plain, journal: Journal) -> Nemesis:
    b1, b2, b3 = plain.shell.topology.nodes
    view = View(leader=b1, replicas=(b1, b2, b3), isr=(b1, b2, b3), controller=b3)
    return Nemesis(plain.shell, lambda: view, journal, Clock.start(), Random(0))


def _rows(journal: Journal) -> dict[str, dict[str, Any]]:
    journal.close()
    table, whole = read_journal(journal.path, SCHEMA)
    assert whole
    return {row["fault"]: row for row in table.to_pylist()}


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_bites_and_heals_to_nothing(kind: str, plain: Plain, journal: Journal) -> None:
    trial = TRIALS[kind]
    fault = FAULTS[kind].model_validate(trial.fault)
    lines = lacking(fault.needs, plain.try_script)
    if lines:
        assert all(any(line.startswith(need.missing) for need in NEEDS.values()) for line in lines)
        return
    clean = plain.traces()
    with _nemesis(plain, journal) as nemesis:
        for earlier, parameters in trial.before:
            nemesis.inject(FAULTS[earlier].model_validate(parameters))
        name = nemesis.inject(fault)
        shows = trial.shows(plain)
    assert shows
    rows = _rows(journal)
    assert all(row["effective"] and row["healed_ns"] >= row["healing_ns"] for row in rows.values()), rows
    assert rows[name]["nodes"] == (["b1", "b2"] if kind == "partition" else ["b1"])
    assert set(plain.states().values()) == {ProcessState.RUNNING}
    assert plain.traces() == clean
    assert all(plain.ping(a.name, b.name) == 2 for a in plain.shell.topology.nodes for b in plain.shell.topology.nodes)


def test_what_is_needed_is_had_or_named_in_one_line(plain: Plain) -> None:
    for need in NEEDS:
        assert all("\n" not in line and NEEDS[need].missing in line for line in lacking({need}, plain.try_script))


def test_a_partition_outlives_the_restart_of_a_node(plain: Plain, journal: Journal) -> None:
    with _nemesis(plain, journal) as nemesis:
        cut = nemesis.inject(FAULTS["partition"].model_validate({"from": "b1", "to": ["b2", "b3"]}), "cut")
        assert plain.ping("b1", "b2") == 0
        nemesis.inject(FAULTS["kill"].model_validate({"target": "b1"}), "dead")
        nemesis.inject(FAULTS["start"].model_validate({"target": "b1"}))
        assert plain.ping("b1", "b2") == 0
        nemesis.heal(cut)
        assert plain.ping("b1", "b2") == 2
        assert nemesis.active == ()
    assert _rows(journal)["cut"]["effective"]


def test_a_partition_bites_within_half_a_second_of_the_decision(plain: Plain, journal: Journal) -> None:
    with _nemesis(plain, journal) as nemesis:
        nemesis.inject(FAULTS["partition"].model_validate({"from": "leader", "to": "followers"}), "cut")
    took = (row := _rows(journal)["cut"])["injected_ns"] - row["injecting_ns"]
    assert took < 500_000_000, f"{took / 1e9:.2f} s"


def test_an_isolated_node_can_keep_its_clients(plain: Plain, journal: Journal) -> None:
    with _nemesis(plain, journal) as nemesis:
        nemesis.inject(FAULTS["isolate"].model_validate({"target": "leader", "clients": False}))
        assert plain.ping("b1", "clients") == 2
        assert plain.ping("b1", "b2") == 0


def test_a_cut_of_one_plane_leaves_the_others(plain: Plain, journal: Journal) -> None:
    with _nemesis(plain, journal) as nemesis:
        cut = FAULTS["partition"].model_validate({"from": "clients", "to": "leader", "plane": "client"})
        nemesis.inject(cut)
        assert plain.received("b1", REPLICATION_PORT) > 1_000_000
        assert plain.ping("b1", "clients") == 2


def test_a_script_that_fails_says_why_in_one_line(plain: Plain) -> None:
    with pytest.raises(ClusterError, match=r"^b1: network script failed: no such luck$"):
        plain.shell.in_network_of(plain.node("b1"), "echo first >&2; echo no such luck >&2; exit 1")


def test_the_toolbox_may_only_administer_the_network(plain: Plain) -> None:
    effective = plain.shell.in_network_of(plain.node("b1"), "grep CapEff /proc/self/status")
    assert int(effective.split()[1], 16) == (1 << 12 | 1 << 13), "NET_ADMIN and NET_RAW"


def test_data_of_a_running_node_is_not_wiped(plain: Plain) -> None:
    with pytest.raises(ClusterError, match="b1: its data cannot be wiped while it runs"):
        plain.shell.wipe(plain.node("b1"))
