"""A cluster that exists on paper: nodes, who has which role, and a shell that remembers what was done to them."""

import errno
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.core.errors import ClusterError
from harness.core.topology import Node, Role, Topology, View
from harness.history.journal import Journal, read_journal
from harness.history.schema import FAULTS as SCHEMA
from nemesis.shell import ProcessState, Signal

B1, B2, B3 = (Node(f"b{i}", Role.BROKER, i, f"10.0.0.{i}") for i in (1, 2, 3))
C1 = Node("c1", Role.CONTROLLER, 101, "10.0.0.101")
CLIENTS = Node("clients", Role.CLIENTS, 0, "10.0.0.254")
TOPOLOGY = Topology((B1, B2, B3, C1), CLIENTS)
VIEW = View(leader=B1, replicas=(B1, B2, B3), isr=(B1, B2, B3), controller=C1, coordinator=B2)

_STATES = {"KILL": ProcessState.EXITED, "STOP": ProcessState.STOPPED, "CONT": ProcessState.RUNNING}


class FakeShell:
    """Keeps processes, namespaces and files as data. A namespace holds the tags of what was applied in it.

    ``packets`` is how many packets every rule and queue reports, but none of links with ``silent`` nodes; ``netem`` is
    whether the kernel has it. Of ``flushed`` nodes somebody else removed the rules. ``garbled``: nobody can read
    what tc reports.
    """

    topology = TOPOLOGY

    def __init__(self) -> None:
        self.states = dict.fromkeys(TOPOLOGY.nodes, ProcessState.RUNNING)
        self.files = dict.fromkeys(TOPOLOGY.nodes, 3)
        self.namespaces: dict[Node, set[str]] = defaultdict(set)
        self.done: list[str] = []
        self.packets = 7
        self.rules: dict[tuple[Node, str], list[str]] = {}
        self.silent: set[Node] = set()
        self.flushed: set[Node] = set()
        self.held: set[Node] = set()
        self.helpers: dict[tuple[Node, str], str] = {}
        self.exit_codes: dict[Node, int] = {}
        self.shutdown_seconds = 1.0
        self.ends_by_itself: set[Node] = set()
        self.netem = True
        self.broken = False
        self.garbled = False

    def in_network_of(self, node: Node, script: str) -> str:
        if self.broken:
            raise ClusterError(f"{node.name}: network script failed: broken")
        if self.states[node] is ProcessState.EXITED:
            raise ClusterError(f"{node.name}: no such namespace")
        counts = "iptables -w -nvxL" in script or "tc -j -s" in script
        self.done.append(f"{node.name} {'count' if counts else 'network'}")
        rules, queues = (
            re.findall(r"KT-(\w{8})-I", script)[:1],
            re.findall(r"qdisc add .* handle (\w+): (tbf|netem)", script),
        )
        if counts:
            return self._listing(node, script)
        if queues and not (rules and not self.netem):
            self.namespaces[node] |= {f"queue {queues[0][0]}"}
        elif rules and "iptables-restore" in script:
            self.namespaces[node] |= {f"rules {rules[0]}"}
            self.rules[node, rules[0]] = re.findall(rf"^-A (KT-{rules[0]}-.*)", script, flags=re.MULTILINE)
        else:
            self.namespaces[node] -= {f"rules {tag}" for tag in rules}
            self.namespaces[node] -= {f"queue {minor}" for minor in re.findall(r"grep ' (\w+): '", script)}
        return ""

    def start_helper(self, node: Node, name: str, script: str) -> None:
        self.done.append(f"{node.name} helper")
        self.helpers[node, name] = script

    def helper_runs(self, node: Node, name: str) -> bool:
        return (node, name) in self.helpers

    def stop_helper(self, node: Node, name: str) -> None:
        self.helpers.pop((node, name), None)

    def _listing(self, node: Node, script: str) -> str:
        """What a script that counts prints, line by line."""
        said = ""
        for line in script.splitlines():
            if chain := re.search(r"nvxL KT-(\w{8})-([IO])", line):
                there = f"rules {chain[1]}" in self.namespaces[node] and node not in self.flushed
                said += self._chain(node, chain[1], chain[2]) if there else ""
            elif "tc -j" in line:
                said += '[{"handle":"4b54:","pac\n' if self.garbled else self._queues(node)
            elif line.startswith("echo "):
                said += f"{line.removeprefix('echo ')}\n"
        return said

    def _queues(self, node: Node) -> str:
        """The queues of a node, as tc lists them."""
        packets = 0 if node in self.silent else self.packets
        names = ["4b54", *(tag.removeprefix("queue ") for tag in self.namespaces[node] if node not in self.flushed)]
        counters = f'"packets":{packets},"bytes":1,"drops":{packets},"qlen":0,"overlimits":{packets}'
        return "[" + ",".join(f'{{"handle":"{name}:",{counters}}}' for name in names) + "]\n"

    def _chain(self, node: Node, tag: str, end: str) -> str:
        """A chain as iptables lists it."""
        said = f"Chain KT-{tag}-{end} (1 references)\n    pkts      bytes target     prot opt in     out     source\n"
        silent = {other.address for other in self.silent}
        for rule in self.rules[node, tag]:
            if rule.startswith(f"KT-{tag}-{end} "):
                ends = [re.search(rf"-{way} ([\d.]+)/32", rule) for way in "sd"]
                source, destination = (found[1] if found else "0.0.0.0/0" for found in ends)
                packets = 0 if node in self.silent or silent & {source, destination} else self.packets
                said += f"  {packets}  400 DROP  0  --  *  *  {source}  {destination}\n"
        return said

    def signal(self, node: Node, signal: Signal) -> None:
        self.done.append(f"{node.name} {signal}")
        self._becomes(node, _STATES[signal])
        if signal == "KILL":
            self.exit_codes[node] = 1 if node in self.ends_by_itself else 137

    def start(self, node: Node) -> None:
        self.done.append(f"{node.name} start")
        self._becomes(node, ProcessState.RUNNING)
        self.held.add(node)

    def release(self, node: Node) -> None:
        if node in self.held:
            self.done.append(f"{node.name} release")
            self.held.remove(node)

    def stop(self, node: Node, grace: float) -> None:
        self.done.append(f"{node.name} stop")
        self._becomes(node, ProcessState.EXITED)
        self.exit_codes[node] = 137 if self.shutdown_seconds > grace else 143

    def exit_code(self, node: Node) -> int:
        return self.exit_codes[node]

    def process(self, node: Node) -> ProcessState:
        return self.states[node]

    def wipe(self, node: Node) -> int:
        deleted, self.files[node] = self.files[node], 0
        return deleted

    def _becomes(self, node: Node, state: ProcessState) -> None:
        self.states[node] = state
        if state is ProcessState.EXITED:
            self.namespaces[node].clear()

    @property
    def left(self) -> dict[str, set[str]]:
        """What is in the namespaces, by node, where anything is."""
        return {node.name: set(tags) for node, tags in self.namespaces.items() if tags}


class FullDisk(Journal):
    """A journal that takes so many rows, and nothing more."""

    def __init__(self, room: int) -> None:
        self.room = room

    def append_rows(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self.room -= len(list(rows))
        if self.room < 0:
            raise OSError(errno.ENOSPC, "No space left on device")


class Rows:
    """The journal that a nemesis writes, and its rows as a reader sees them."""

    def __init__(self, path: Path) -> None:
        self.journal = Journal(path, SCHEMA)

    def all(self, fault: str) -> list[dict[str, Any]]:
        """Every row of a fault, in the order written."""
        table, _ = read_journal(self.journal.path, SCHEMA)
        return [row for row in table.to_pylist() if row["fault"] == fault]

    def last(self, fault: str) -> dict[str, Any]:
        """The row that counts."""
        return self.all(fault)[-1]


@pytest.fixture
def shell() -> FakeShell:
    return FakeShell()


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[Rows]:
    rows = Rows(tmp_path / "faults.nemesis.arrows")
    with rows.journal:
        yield rows
