"""The lab's machines, and plain nodes on three of them. ``scripts/lab`` brings them up, and removes them if it did."""

import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from harness.core.topology import Node, Plane, Role, Topology
from harness.providers.ssh import text
from harness.providers.ssh.fleet import connected, on_all, whole
from harness.providers.ssh.inventory import Inventory, read_inventory
from harness.providers.ssh.looking import Owner, look
from harness.providers.ssh.machine import KnownHosts, Machine
from harness.providers.ssh.shell import SshShell
from harness.providers.ssh.text import MachinePaths
from nemesis.mechanisms import round_trips
from tests.cluster.conftest import Plain

LAB = Path(__file__).parents[2] / "scripts" / "lab"
INVENTORY = Path.home() / ".kafka-trial/lab/lab.yaml"

#: What a plain node runs instead of Kafka: it waits while it is held, and exits on SIGTERM.
START = """\
trap 'exit 0' TERM
while [ -e "$KAFKA_TRIAL_HELD" ]; do sleep 0.05; done
echo went on
echo data >"$KAFKA_TRIAL_DATA/one"
while :; do sleep 1 & wait $!; done
"""

#: All that a run, or a fault, could leave on a machine. (A shell that has forked and not yet called exec looks like two
#: of itself: each process is listed once.)
TRACES = (
    "iptables-save | grep KT || true\ntc qdisc show\nip -o link | cut -d: -f2\n"
    "find /var/lib/kafka-trial/node/switches /var/lib/kafka-trial/node/helpers 2>/dev/null || true\n"
    "ps -eo args | grep -v grep | grep -E 'kafka|KT-|sleep [0-9]{2,}' | sort -u\n"
)


def lab(*command: str) -> str:
    done = subprocess.run([LAB, *command], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def brought_up(lab: Callable[..., str]) -> Iterator[Path]:
    """Four machines that are up, or as many as there were. Where there were none before, there are none afterwards."""
    before = [int(number) for number in re.findall(r"^m(\d+) ", lab("status"), re.MULTILINE)]
    try:
        lab("up", str(max([4, *before])))
        yield INVENTORY
    finally:
        if not before:
            lab("down")


@pytest.fixture(scope="session")
def inventory() -> Iterator[Path]:
    with brought_up(lab) as written:
        yield written


@pytest.fixture(scope="session")
def machines(inventory: Path) -> Iterator[dict[str, Machine]]:
    """Connections to all machines of the lab."""
    read = read_inventory(inventory)
    known = KnownHosts(Path(read.known_hosts), accept=False, report=print)
    with connected({host.called: host for host in read.hosts}, known) as them:
        yield them


def traces(machines: dict[str, Machine]) -> dict[str, str]:
    """All that a run, or a fault, could leave on the machines."""
    return whole(on_all(machines, lambda machine: machine.run(TRACES, "look for traces")))


def topology_of(machines: dict[str, Machine], read: Inventory) -> Topology:
    facts = whole(on_all(machines, look))
    nodes = tuple(
        Node(
            f"b{number}", Role.BROKER, number, machine.host.address, ports=read.node_ports, control=facts[name].control
        )
        for number, (name, machine) in enumerate(machines.items(), 1)
    )
    return Topology(nodes, Node("clients", Role.CLIENTS, 0, facts["m1"].client))


@dataclass(frozen=True)
class OnMachines(Plain):
    """Three plain nodes on machines instead of brokers, and this machine instead of the clients."""


class CountingShell(SshShell):
    """Counts the scripts that it sends to each node's machine, in ``sent``; so does what is made of it."""

    def __init__(self, *of: Any, **more: Any) -> None:
        super().__init__(*of, **more)
        self.sent: Counter[str] = Counter()

    def _run(self, node: Node, doing: str, script: str, within: float = 90.0, again: bool = True) -> str:
        self.sent[node.name] += 1
        return super()._run(node, doing, script, within, again)


@contextmanager
def plain_nodes(inventory: Path) -> Iterator[tuple[CountingShell, Machine]]:
    """Three plain nodes on three machines: what acts on them, and the first one's machine."""
    read = read_inventory(inventory)
    hosts = {host.called: host for host in read.hosts[:3]}
    with connected(hosts, KnownHosts(Path(read.known_hosts), accept=False, report=print)) as three:
        topology = topology_of(three, read)
        by_node = dict(zip((node.name for node in topology.nodes), three.values(), strict=True))

        def begin(machine: Machine) -> None:
            paths = MachinePaths(machine.host.data)
            node = next(node for node in topology.nodes if by_node[node.name] is machine)
            owner = Owner("tests/plain", "/nowhere", "tests").line()
            written = {"start": START, "keeper": text.keeper(paths, node, "sh", paths.node, {})}
            files = "".join(text.written(f"{paths.node}/{name}", content) for name, content in written.items())
            machine.run(f"{text.claim(paths.data, owner)}{files}{text.start(paths, held=False)}", "start a plain node")

        def remove(machine: Machine) -> None:
            machine.run(text.remove_node(text.MachinePaths(machine.host.data)), "remove")
            machine.run(text.remove_kafka(machine.host.data), "remove")

        try:
            whole(on_all(three, begin))
            yield CountingShell(topology, by_node, heals_after=300.0), three["m1"]
        finally:
            whole(on_all(three, remove))


@pytest.fixture(scope="module")
def plain(inventory: Path) -> Iterator[OnMachines]:
    with plain_nodes(inventory) as (shell, first):
        yield OnMachines(
            cast(Any, None),
            cast(Any, shell),
            lambda script: first.run(text.quoted("unshare", "--net", "sh", "-euc", script), "trial"),
            {},
        )


def connects(plain: OnMachines, plane: Plane) -> float:
    """How many milliseconds a connection from b2 to a port of b1 takes, in the middle of some."""
    b1 = plain.node("b1")
    said = plain.shell.in_network_of(plain.node("b2"), round_trips.script([b1], b1.ports, plane, 5))
    return float(round_trips.read(said, 1)["p50"])
