"""Faults in real network namespaces: what acted says so, and what cannot have acted does not."""

import json
from contextlib import nullcontext
from typing import Any

import pytest

from harness.core.errors import ClusterError
from harness.core.topology import Node
from nemesis.catalogue import FAULTS
from nemesis.nemesis import Nemesis
from nemesis.preflight import lacking

from .conftest import Rows, again_and_again, nemesis_on
from .controls import ACTS, IDLE, Control
from .namespaces import NamespaceShell, possible

pytestmark = pytest.mark.skipif(not possible(), reason="making network namespaces needs root, iproute2 and iptables")


@pytest.fixture
def shell(greeted: NamespaceShell) -> NamespaceShell:
    return greeted


@pytest.fixture
def nemesis(shell: NamespaceShell, rows: Rows) -> Nemesis:
    return nemesis_on(shell, rows.journal)


def inject(nemesis: Nemesis, kind: str, name: str, **parameters: Any) -> None:
    nemesis.inject(FAULTS[kind].model_validate(parameters), name)


def node(shell: NamespaceShell, name: str) -> Node:
    found = shell.topology.named(name)
    assert found is not None
    return found


def speak(shell: NamespaceShell, sender: str, receiver: str, size: int = 1000, port: int = 9094) -> None:
    shell.speak(node(shell, sender), node(shell, receiver), size, port)


def lacks(kind: str, control: Control, shell: NamespaceShell) -> bool:
    """Whether this kernel has not what a fault needs."""
    return bool(lacking([FAULTS[kind].model_validate(control.fault).needs], shell.scratch))


def play(kind: str, control: Control, nemesis: Nemesis, shell: NamespaceShell) -> None:
    """Inject a fault as a control has it, and heal it."""
    speaking = again_and_again(lambda: speak(shell, "b1", "b2", size=100_000))
    with speaking if control.until_healed else nullcontext(), nemesis:
        for number, (earlier, parameters) in enumerate(control.before):
            inject(nemesis, earlier, f"before-{number}", **parameters)
        inject(nemesis, kind, "it", **control.fault)
        for _ in range(control.speak):
            speak(shell, "b1", "b2", size=100_000)


def test_every_fault_of_the_catalogue_has_its_controls() -> None:
    assert set(ACTS) == set(IDLE) == set(FAULTS)


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_that_acted_is_effective(kind: str, nemesis: Nemesis, shell: NamespaceShell, rows: Rows) -> None:
    clean = shell.traces()
    if lacks(kind, ACTS[kind], shell):
        with pytest.raises(ClusterError, match="Specified qdisc kind is unknown"):
            play(kind, ACTS[kind], nemesis, shell)
        assert not rows.last("it")["effective"]
    else:
        play(kind, ACTS[kind], nemesis, shell)
        assert rows.last("it")["effective"]
        assert rows.last("it")["nodes_without_effect"] == []
    assert shell.traces() == clean


@pytest.mark.parametrize(
    ("kind", "control"), [pytest.param(k, c, id=f"{k}-{n}") for k, cases in IDLE.items() for n, c in enumerate(cases)]
)
def test_a_fault_that_cannot_have_acted_is_not_effective(
    kind: str, control: Control, nemesis: Nemesis, shell: NamespaceShell, rows: Rows
) -> None:
    clean = shell.traces()
    try:
        play(kind, control, nemesis, shell)
    except ClusterError:
        assert lacks(kind, control, shell)
    assert not rows.last("it")["effective"]
    assert rows.last("it")["nodes_without_effect"]
    assert shell.traces() == clean


def datagrams(shell: NamespaceShell, sender: Node, receiver: Node, count: int) -> None:
    """Have a node send datagrams of 1000 bytes, which nobody sends again."""
    send = f"head -c 1000 /dev/zero >/dev/udp/{receiver.address}/9"
    shell.in_network_of(sender, f"bash -c 'for i in $(seq {count}); do {send}; done'")


@pytest.mark.parametrize("sh", [["sh"], ["bash", "--posix"]], ids=" ".join)
def test_scripts_do_the_same_whichever_shell_is_sh(
    sh: list[str], nemesis: Nemesis, shell: NamespaceShell, rows: Rows
) -> None:
    """On a machine it may be dash, or bash: two queues of a node, and rules, last over its restart."""
    clean = shell.traces()
    shell.sh = sh
    with nemesis:
        for plane in ("replication", "client"):
            inject(nemesis, "throttle", plane, target="b1", rate="40kbit", plane=plane)
        inject(nemesis, "flaky", "lossy", target="b1", loss="1%", plane="controller")
        inject(nemesis, "restart", "again", target="b1")
        shell.listens(node(shell, "b1"))
        speak(shell, "b1", "b2", 100_000, port=9094)
        speak(shell, "b1", "b2", 100_000, port=9092)
    for name in ("replication", "client"):
        assert rows.last(name)["effective"]
        assert "failed" not in json.loads(rows.last(name)["evidence"])["applied_again"]["b1"]
    assert shell.traces() == clean


def test_a_throttle_above_the_traffic_did_not_act(nemesis: Nemesis, shell: NamespaceShell, rows: Rows) -> None:
    with nemesis:
        inject(nemesis, "throttle", "wide", target="b1", rate="1gbit")
        for _ in range(20):
            speak(shell, "b1", "b2", 200_000)
    assert not rows.last("wide")["effective"]


def test_a_throttle_below_the_traffic_acted(nemesis: Nemesis, shell: NamespaceShell, rows: Rows) -> None:
    with nemesis:
        inject(nemesis, "throttle", "narrow", target="b1", rate="400kbit")
        speak(shell, "b1", "b2", 200_000)
    assert rows.last("narrow")["effective"]


def test_a_throttle_does_not_act_by_another_shape_of_its_node(
    nemesis: Nemesis, shell: NamespaceShell, rows: Rows
) -> None:
    with nemesis:
        inject(nemesis, "throttle", "narrow", target="b1", rate="400kbit", plane="replication")
        inject(nemesis, "throttle", "wide", target="b1", rate="1gbit", plane="client")
        speak(shell, "b1", "b2", 200_000)
        speak(shell, "b1", "b2", 1000, port=9092)
    assert rows.last("narrow")["effective"]
    assert not rows.last("wide")["effective"]


def test_healing_a_throttle_throws_nothing_away(nemesis: Nemesis, shell: NamespaceShell, rows: Rows) -> None:
    b1, b2, _ = shell.topology.nodes
    assert heard(shell, "b2", "b1") == 0
    with nemesis:
        inject(nemesis, "throttle", "narrow", target="b1", rate="8kbit")
        shell.in_network_of(
            b1, f"bash -c 'for i in $(seq 40); do head -c 1000 /dev/zero >/dev/udp/{b2.address}/9; done'"
        )
        assert heard(shell, "b2", "b1") < 40
    assert heard(shell, "b2", "b1") == 40
    shell.in_network_of(b2, "iptables -w -F INPUT")
    assert json.loads(rows.last("narrow")["evidence"])["healing"]["b1"]["waiting"] > 0


def test_a_shape_applied_twice_keeps_the_waiting_packets(nemesis: Nemesis, shell: NamespaceShell, rows: Rows) -> None:
    b1, b2, _ = shell.topology.nodes
    with nemesis:
        inject(nemesis, "throttle", "narrow", target="b1", rate="8kbit")
        shell.in_network_of(
            b1, f"bash -c 'for i in $(seq 40); do head -c 1000 /dev/zero >/dev/udp/{b2.address}/9; done'"
        )
        inject(nemesis, "start", "nothing", target="b1")
    assert json.loads(rows.last("narrow")["evidence"])["healing"]["b1"]["waiting"] > 20


@pytest.mark.parametrize("kind", ["partition", "isolate"])
def test_a_cut_that_no_packet_comes_to_any_more_acts_no_longer(
    kind: str, nemesis: Nemesis, shell: NamespaceShell, rows: Rows
) -> None:
    sides = {"from": "b1", "to": "b2"} if kind == "partition" else {"target": "b1"}
    with nemesis:
        inject(nemesis, kind, "cut", **sides)
        speak(shell, "b1", "b2", 1000)
        for cut in ("b1", "b2"):
            shell.in_network_of(node(shell, cut), "iptables -w -F INPUT; iptables -w -F OUTPUT")
        speak(shell, "b1", "b2", 1000)
    assert not rows.last("cut")["effective"]


def heard(shell: NamespaceShell, by: str, sender: str) -> int:
    """How many packets a node has heard from another one since it was asked first."""
    address = node(shell, sender).address
    count = f"iptables -w -C INPUT -s {address}/32 2>/dev/null || iptables -w -A INPUT -s {address}/32\n"
    listing = shell.in_network_of(node(shell, by), f"{count}iptables -w -nvxL INPUT")
    return sum(int(line.split()[0]) for line in listing.splitlines() if address in line)


@pytest.mark.parametrize("again", ["restart", "heal"])
def test_a_node_that_is_started_again_says_no_word_across_its_cut(
    again: str, nemesis: Nemesis, shell: NamespaceShell, rows: Rows
) -> None:
    assert heard(shell, "b2", "b1") == 0
    with nemesis:
        inject(nemesis, "isolate", "cut", target="b1")
        if again == "heal":
            inject(nemesis, "kill", "dead", target="b1")
            nemesis.heal("dead")
        else:
            inject(nemesis, "restart", "again", target="b1")
        shell.listens(node(shell, "b1"))
        assert heard(shell, "b2", "b1") == 0
        nemesis.heal("cut")
        inject(nemesis, "restart", "uncut", target="b1")
        shell.listens(node(shell, "b1"))
        assert heard(shell, "b2", "b1") > 0
    shell.in_network_of(node(shell, "b2"), "iptables -w -F INPUT")
    assert rows.last("cut")["effective"]
