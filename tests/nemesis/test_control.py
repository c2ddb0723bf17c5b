"""The connection over which the harness reaches a node's machine: no fault on the machine's network hits it."""

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from harness.core.clock import Clock
from harness.core.topology import Node, Plane, Role, View
from nemesis.catalogue import FAULTS
from nemesis.links import severed
from nemesis.mechanisms import iptables, tc
from nemesis.nemesis import Nemesis
from nemesis.preflight import lacking

from .conftest import Rows
from .namespaces import NamespaceShell, namespaces, possible

#: A port of the nodes here, in the place of sshd's.
CONTROL = 9092
OTHER = 9094

#: Each fault that lives in networks, at its worst, and on every node.
WORST: dict[str, dict[str, Any]] = {
    "partition": {"from": "all", "to": ["all", "clients"]},
    "isolate": {"target": "all"},
    "slow": {"target": "all", "delay": "2s"},
    "flaky": {"target": "all", "loss": "100%"},
    "throttle": {"target": "all", "rate": "5kbit"},
    "reorder": {"target": "all", "share": "1%", "delay": "2s"},
    "duplicate": {"target": "all", "share": "100%"},
    "corrupt": {"target": "all", "share": "100%"},
}


@pytest.fixture(scope="module")
def shell() -> Iterator[NamespaceShell]:
    with namespaces(control=CONTROL) as running:
        yield running


def test_every_fault_that_lives_in_networks_is_tried() -> None:
    assert set(WORST) == {kind for kind, fault in FAULTS.items() if fault.lives_in_network}


@pytest.mark.skipif(not possible(), reason="making network namespaces needs root, iproute2 and iptables")
@pytest.mark.parametrize("kind", WORST)
def test_the_harness_still_talks_to_every_machine(kind: str, shell: NamespaceShell, rows: Rows) -> None:
    fault = FAULTS[kind].model_validate(WORST[kind])
    if lacking([fault.needs], shell.scratch):
        pytest.skip("this kernel has not what it needs: tried in the lab")
    b1, *_ = nodes = shell.topology.nodes
    view = View(leader=b1, replicas=nodes, isr=nodes, controller=b1)
    for node in nodes:
        shell.listens(node)
    clean = shell.traces()
    with Nemesis(shell, lambda: view, rows.journal, Clock.start(), Random(0)) as nemesis:
        nemesis.inject(fault, "it")
        for node in nodes:
            assert shell.speak(shell.topology.clients, node, 5_000_000, CONTROL, seconds=5), node.name
            # What is sent twice arrives.
            heard = shell.speak(shell.topology.clients, node, 5_000_000, OTHER, seconds=1)
            assert heard == (kind == "duplicate"), node.name
    assert shell.traces() == clean


def test_rules_let_the_control_connection_through_before_they_drop_anything() -> None:
    node, peer = (Node(f"b{n}", Role.BROKER, n, f"10.0.0.{n}", control=22) for n in (1, 2))
    lines = iptables.Cut(severed([node], [peer])).apply(node, "x").splitlines()
    spared = [number for number, line in enumerate(lines) if line.endswith("RETURN")]
    dropped = [number for number, line in enumerate(lines) if line.endswith("DROP")]
    assert [lines[number] for number in spared] == [
        "-A KT-x-I -p tcp --dport 22 -j RETURN",
        "-A KT-x-O -p tcp --sport 22 -j RETURN",
    ]
    assert max(spared) < min(dropped)
    assert "RETURN" not in iptables.Lose(0.5).apply(Node("b1", Role.BROKER, 1, "10.0.0.1"), "x")


def test_queues_have_a_filter_for_it_that_is_asked_first() -> None:
    node = Node("b1", Role.BROKER, 1, "10.0.0.1", control=2222)
    text = tc.Limit(10_000, Plane.ALL).apply(node, "0123abcd")
    for device in ("$dev", "kt-ifb"):
        assert f"\nfilter add dev {device} parent 4b54: protocol ip prio 1 u32" in text
    assert text.count(" 2222 0xffff flowid 4b54:0") == 4
    assert "flowid 4b54:0" not in tc.Limit(10_000).apply(Node("b1", Role.BROKER, 1, "10.0.0.1"), "0123abcd")
