"""A cluster as plain data: nodes, their roles, and a fake shell that records what was done to them."""

import errno
import json
import re
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from harness.core.clock import Clock
from harness.core.errors import ClusterError
from harness.core.topology import Node, Role, Topology, View
from harness.history.journal import Journal, read_journal
from harness.history.schema import FAULTS as SCHEMA
from nemesis.nemesis import Nemesis
from nemesis.shell import NodeShell, ProcessState, Signal, Switch

from .namespaces import NamespaceShell, namespaces

B1, B2, B3 = (Node(f"b{i}", Role.BROKER, i, f"10.0.0.{i}") for i in (1, 2, 3))
C1 = Node("c1", Role.CONTROLLER, 101, "10.0.0.101")
CLIENTS = Node("clients", Role.CLIENTS, 0, "10.0.0.254")
TOPOLOGY = Topology((B1, B2, B3, C1), CLIENTS)
VIEW = View(leader=B1, replicas=(B1, B2, B3), isr=(B1, B2, B3), controller=C1, coordinator=B2)

_STATES = {"KILL": ProcessState.EXITED, "STOP": ProcessState.STOPPED, "CONT": ProcessState.RUNNING}


@contextmanager
def again_and_again(act: Callable[[], object]) -> Iterator[None]:
    """Repeat ``act`` in a thread during the block; the last call has ended when the block is left."""
    over = threading.Event()

    def go_on() -> None:
        while not over.is_set():
            act()

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class FakeShell:
    """A shell that keeps processes, namespaces and files as data. A namespace contains the tags of the mechanisms in
    it.

    ``packets``: the count that every rule and queue reports; for links of ``silent`` nodes it is 0. ``netem``: whether
    the kernel has netem; without it a helper holds packets, and ``overflowed`` of them were lost. ``flushed``: nodes
    whose rules somebody else removed. ``hung``: nodes whose helpers run, but do not answer. ``garbled``: the report of
    tc cannot be parsed.
    """

    topology = TOPOLOGY
    network_ends_with_process = True
    unseen_helpers = False

    def __init__(self) -> None:
        self.to_last: list[float] = []
        self.states = dict.fromkeys(TOPOLOGY.nodes, ProcessState.RUNNING)
        self.files = dict.fromkeys(TOPOLOGY.nodes, 3)
        self.namespaces: dict[Node, set[str]] = defaultdict(set)
        self.done: list[str] = []
        self.packets = 7
        self.shapes: dict[str, str] = {}
        self.rules: dict[tuple[Node, str], list[str]] = {}
        self.silent: set[Node] = set()
        self.flushed: set[Node] = set()
        self.held: set[Node] = set()
        self.helpers: dict[tuple[Node, str], str] = {}
        self.hung: set[Node] = set()
        self.exit_codes: dict[Node, int] = {}
        self.shutdown_seconds = 1.0
        self.ends_by_itself: set[Node] = set()
        self.netem = True
        self.broken = False
        self.garbled = False
        self.overflowed = 0

    def lasting(self, seconds: float) -> "FakeShell":
        self.to_last.append(seconds)
        return self

    def in_network_of(self, node: Node, script: str, arm: Switch | None = None, disarm: str | None = None) -> str:
        if self.broken:
            raise ClusterError(f"{node.name}: network script failed: broken")
        if self.states[node] is ProcessState.EXITED:
            raise ClusterError(f"{node.name}: no such namespace")
        if "KT-TRIED" in script:
            self.done.append(f"{node.name} probe")
            return "KT-BEGAN\n" + "KT-TRIED 250000\n" * script.count("\ntry ")
        counts = "iptables -w -nvxL" in script or "tc -j -s" in script
        if script.startswith("python3"):
            self.namespaces[node] |= {f"held {tag}" for tag in re.findall(r"^:KT-(\w{8})-H", script, re.MULTILINE)}
            return self._counters(node, script)
        self.done.append(f"{node.name} {'count' if counts else 'network'}")
        rules, queues, held = (
            re.findall(r"KT-(\w{8})-[IO]", script)[:1],
            re.findall(r"qdisc add .* handle (\w+): ((?:tbf|netem) .*)", script),
            re.findall(r"KT-(\w{8})-H", script)[:1],
        )
        if counts:
            return self._listing(node, script)
        if queues and not ((rules or held) and not self.netem):
            self.namespaces[node] |= {f"queue {queues[0][0]}"}
            self.shapes |= dict(queues)
        elif rules and "iptables-restore" in script:
            self.namespaces[node] |= {f"rules {rules[0]}"}
            self.rules[node, rules[0]] = re.findall(rf"^-A (KT-{rules[0]}-.*)", script, flags=re.MULTILINE)
        elif held and "echo KT-HOLD" in script:
            return "" if f"held {held[0]}" in self.namespaces[node] else "KT-HOLD\n"
        else:
            self.namespaces[node] -= {f"rules {tag}" for tag in rules} | {f"held {tag}" for tag in held}
            self.namespaces[node] -= {f"queue {minor}" for minor in re.findall(r'in \*" (\w+): "\*', script)}
        return ""

    def start_helper(self, node: Node, name: str, script: str) -> None:
        self.done.append(f"{node.name} helper")
        self.helpers[node, name] = script

    def helper_runs(self, node: Node, name: str) -> bool:
        if self.unseen_helpers:
            raise ClusterError("the engine does not answer")
        return (node, name) in self.helpers

    def stop_helper(self, node: Node, name: str) -> None:
        self.helpers.pop((node, name), None)

    def _listing(self, node: Node, script: str) -> str:
        """The output of a counting script, line by line."""
        said = ""
        for line in script.splitlines():
            if chain := re.search(r"nvxL KT-(\w{8})-([IO])", line):
                there = f"rules {chain[1]}" in self.namespaces[node] and node not in self.flushed
                said += self._chain(node, chain[1], chain[2]) if there else ""
            elif "tc -j" in line:
                looks = 2 if "-batch" in line else 1
                listed = "".join(self._queues(node, look) for look in range(looks))
                said += '[{"handle":"4b54:","pac\n' if self.garbled else listed
            elif chain := re.search(r"mangle -nL KT-(\w{8})-H", line):
                there = f"held {chain[1]}" in self.namespaces[node] and node not in self.flushed
                said += f"Chain KT-{chain[1]}-H (1 references)\n" if there else ""
            elif "- ask " in line:
                said += self._counters(node, line)
            elif line.startswith("echo "):
                said += f"{line.removeprefix('echo ')}\n"
        return said

    def _counters(self, node: Node, script: str) -> str:
        """The counters of the program that holds packets, if it runs."""
        (tag,) = re.findall(r"- ask (\w{8})", script)
        packets = 0 if node in self.silent else self.packets
        names = ("received", "released", "dropped", "overtook", "waiting")
        counters = {**dict.fromkeys(names, packets), "overflowed": self.overflowed, "held_ms": {}}
        answers = (node, tag) in self.helpers and node not in self.hung
        return f"{json.dumps(counters)}\n" if answers else ""

    def _queues(self, node: Node, look: int) -> str:
        """The queues of a node, as tc lists them. At each look more packets have overtaken two waiting ones."""
        packets = 0 if node in self.silent else self.packets
        queues = [{"handle": "4b54:", "packets": packets}]
        for name in [tag.removeprefix("queue ") for tag in self.namespaces[node] if tag.startswith("queue ")]:
            more = look * packets
            lost, waiting = (packets if what in self.shapes[name] else 0 for what in (" loss ", " reorder "))
            counters = {"bytes": 1, "qlen": waiting, "overlimits": packets, "requeues": packets + more}
            queues.append({"handle": f"{name}:", "packets": 100 * packets + more, "drops": lost, **counters})
        return json.dumps(queues if node not in self.flushed else []) + "\n"

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
        if node in self.ends_by_itself:
            self.exit_codes[node] = 1

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
        """The content of the namespaces, by node, without empty ones."""
        return {node.name: set(tags) for node, tags in self.namespaces.items() if tags}


class FullDisk(Journal):
    """A journal that accepts only a number of rows."""

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
        """The last row of a fault, which is the one that counts."""
        return self.all(fault)[-1]


def nemesis_on(shell: NodeShell, journal: Journal) -> Nemesis:
    """A nemesis on three running nodes: the first one leads, the last one is the controller."""
    b1, _, b3 = nodes = shell.topology.nodes
    view = View(leader=b1, replicas=nodes, isr=nodes, controller=b3)
    return Nemesis(shell, lambda: view, journal, Clock.start(), Random(0))


def rows_by_name(journal: Journal) -> dict[str, dict[str, Any]]:
    """Close a journal of faults, and the last row of each."""
    journal.close()
    table, whole = read_journal(journal.path, SCHEMA)
    assert whole
    return {row["fault"]: row for row in table.to_pylist()}


@pytest.fixture
def shell() -> FakeShell:
    return FakeShell()


@pytest.fixture(scope="module")
def running() -> Iterator[NamespaceShell]:
    """Nodes in network namespaces."""
    with namespaces() as shell:
        yield shell


@pytest.fixture
def greeted(running: NamespaceShell) -> NamespaceShell:
    """Running nodes in network namespaces, which have sent packets to each other."""
    for each in running.topology.nodes:
        running.listens(each)
    return running


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[Rows]:
    rows = Rows(tmp_path / "faults.nemesis.arrows")
    with rows.journal:
        yield rows
