"""Late, lossy and disordered traffic as asked, measured by whoever sends it: by each means that this kernel has."""

import json
import re
import statistics
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from harness.core.topology import Node
from nemesis.nemesis import Nemesis
from nemesis.shell import Switch

from .conftest import Rows, nemesis_on
from .measured import PORTS, by, connects, node, sent, throughput
from .namespaces import NamespaceShell, has_netem, possible

pytestmark = pytest.mark.skipif(not possible(), reason="making network namespaces needs root, iproute2 and iptables")

#: netem is tried on kernels that have it: those of the lab's machines, and Ubuntu's.
MEANS = ("nfqueue", "netem") if has_netem() else ("nfqueue",)

#: On whom a fault acts for datagrams from b2 to b1.
HIT = {"nfqueue": "b1", "netem": "b2"}


@pytest.fixture(params=MEANS)
def means(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def shell(greeted: NamespaceShell) -> NamespaceShell:
    return greeted


@pytest.fixture
def nemesis(shell: NamespaceShell, rows: Rows) -> Nemesis:
    return nemesis_on(shell, rows.journal)


def inject(nemesis: Nemesis, means: str, kind: str, name: str, **written: Any) -> None:
    nemesis.inject(by(means, kind, **written), name)


def test_a_round_trip_takes_as_long_as_is_asked(
    means: str, nemesis: Nemesis, shell: NamespaceShell, rows: Rows
) -> None:
    with nemesis:
        inject(nemesis, means, "slow", "late", target="b1", delay="120ms")
        there, back = connects(shell, "b1", "b2"), connects(shell, "b2", "b1")
        assert connects(shell, "b2", "b3") < 0.1
    assert 0.12 <= there < 0.3
    assert 0.12 <= back < 0.3
    row = rows.last("late")
    assert row["effective"]
    evidence = json.loads(row["evidence"])
    assert evidence["healing"]["b1"]["by"] == means
    if means == "nfqueue":
        assert evidence["healing"]["b1"]["held_ms"]["p50"] >= 120
    measured = evidence["probed"]["b1"]["round_trip_ms"]
    assert measured["asked"] == {"delay": 120.0, "jitter": 0.0}
    assert measured["answered"] >= measured["tried"] / 2
    assert measured["p95"] >= measured["p50"] >= 120
    assert connects(shell, "b1", "b2") < 0.1


def test_two_planes_of_a_node_are_each_as_late_as_its_own(
    means: str, nemesis: Nemesis, shell: NamespaceShell, rows: Rows
) -> None:
    with nemesis:
        inject(nemesis, means, "slow", "replication", target="b1", delay="100ms", plane="replication")
        inject(nemesis, means, "slow", "client", target="b1", delay="300ms", plane="client")
        assert 0.1 <= connects(shell, "b2", "b1", PORTS.replication) < 0.25
        assert 0.3 <= connects(shell, "b2", "b1", PORTS.client) < 0.5
        assert connects(shell, "b2", "b1", PORTS.controller) < 0.1
    seen = [json.loads(rows.last(name)["evidence"])["healing"]["b1"] for name in ("replication", "client")]
    if means == "nfqueue":
        assert 100 <= seen[0]["held_ms"]["p50"] < 250
        assert 300 <= seen[1]["held_ms"]["p50"] < 450


def test_a_delay_does_not_act_by_that_of_another_plane(
    means: str, nemesis: Nemesis, shell: NamespaceShell, rows: Rows
) -> None:
    with nemesis:
        inject(nemesis, means, "slow", "used", target="b1", delay="50ms", plane="replication")
        inject(nemesis, means, "slow", "unused", target="b1", delay="50ms", plane="client")
        connects(shell, "b2", "b1", PORTS.replication)
    assert rows.last("used")["effective"]
    assert not rows.last("unused")["effective"]


def test_of_three_nodes_the_one_without_traffic_is_named(
    means: str, nemesis: Nemesis, shell: NamespaceShell, rows: Rows
) -> None:
    with nemesis:
        inject(nemesis, means, "slow", "late", target=["b1", "b2", "b3"], delay="50ms", plane="replication")
        connects(shell, "b1", "b2")
    row = rows.last("late")
    assert not row["effective"]
    assert row["nodes_without_effect"] == ["b3"]
    assert "probed" not in json.loads(row["evidence"]), "no traffic of our own is to make up for it"


def test_traffic_between_two_delays_counts_for_neither(
    means: str, nemesis: Nemesis, shell: NamespaceShell, rows: Rows
) -> None:
    with nemesis:
        inject(nemesis, means, "slow", "first", target="b1", delay="50ms")
        nemesis.heal("first")
        connects(shell, "b2", "b1")
        inject(nemesis, means, "slow", "second", target="b1", delay="50ms")
    assert not rows.last("first")["effective"]
    assert not rows.last("second")["effective"]


@pytest.mark.parametrize(("distribution", "mean", "spread"), [("normal", 60, 10), ("uniform", 60, 5.8)])
def test_delays_vary_as_asked(
    distribution: str, mean: float, spread: float, means: str, nemesis: Nemesis, shell: NamespaceShell, tmp_path: Path
) -> None:
    with nemesis:
        inject(
            nemesis, means, "slow", "late", target=HIT[means], delay="60ms", jitter="10ms", distribution=distribution
        )
        took = [1e3 * seconds for _, seconds in sent(shell, tmp_path, 600)]
    assert len(took) == 600
    inner = sorted(took)[30:-30]
    # A busy machine releases late, never early.
    assert mean - 2 <= statistics.median(took) < mean + 25
    assert (inner[-1] - inner[0]) > 2 * spread


def test_pareto_delays_have_a_tail(means: str, nemesis: Nemesis, shell: NamespaceShell, tmp_path: Path) -> None:
    with nemesis:
        inject(nemesis, means, "slow", "late", target=HIT[means], delay="60ms", jitter="20ms", distribution="pareto")
        took = sorted(1e3 * seconds for _, seconds in sent(shell, tmp_path, 600))
    assert took[0] >= 60 - 20 * 2 / 3
    assert took[int(len(took) * 0.95)] > 60 + 20


@pytest.mark.parametrize("correlation", [0.3, 0.8])
def test_losses_come_together_and_keep_their_share(
    correlation: float, means: str, nemesis: Nemesis, shell: NamespaceShell, rows: Rows, tmp_path: Path
) -> None:
    with nemesis:
        inject(nemesis, means, "flaky", "lossy", target=HIT[means], loss="20%", correlation=f"{correlation:.0%}")
        came = {number for number, _ in sent(shell, tmp_path, 4000, every=0.0001)}
    lost = [float(number not in came) for number in range(4000)]
    assert statistics.fmean(lost) == pytest.approx(0.2, abs=0.06)
    assert statistics.correlation(lost[1:], lost[:-1]) == pytest.approx(correlation, abs=0.1)
    facts = json.loads(rows.last("lossy")["evidence"])["healing"][HIT[means]]
    assert facts["by"] == means
    assert facts["packets_dropped"] >= sum(lost)


def test_a_share_of_the_packets_overtakes_the_others_and_none_is_lost(
    means: str, nemesis: Nemesis, shell: NamespaceShell, rows: Rows, tmp_path: Path
) -> None:
    with nemesis:
        inject(nemesis, means, "reorder", "it", target=HIT[means], share="25%", delay="30ms")
        came = sent(shell, tmp_path, 500)
    assert sorted(number for number, _ in came) == list(range(500))
    early = sum(seconds < 0.03 for _, seconds in came)
    assert 75 < early < 175
    numbers = [number for number, _ in came]
    assert sum(later < earlier for earlier, later in pairwise(numbers)) > 25
    facts = json.loads(rows.last("it")["evidence"])["healing"][HIT[means]]
    assert facts["by"] == means
    assert facts["overtook" if means == "nfqueue" else "requeues"] > 50


def test_held_packets_leave_when_due_and_healing_loses_none(
    means: str, nemesis: Nemesis, shell: NamespaceShell, tmp_path: Path
) -> None:
    clean = shell.traces()
    with nemesis:
        inject(nemesis, means, "slow", "late", target=HIT[means], delay="1500ms")
        b1, b2, _ = shell.topology.nodes
        shell.in_network_of(b1, "iptables -w -A INPUT -p udp --dport 9")
        shell.in_network_of(b2, f"bash -c 'for i in $(seq 40); do echo >/dev/udp/{b1.address}/9; done'")
        nemesis.heal("late")
        listing = shell.in_network_of(b1, "iptables -w -nvxL INPUT; iptables -w -F INPUT")
    assert re.search(r"^\s*40 .*udp dpt:9", listing, re.MULTILINE), listing
    assert shell.traces() == clean


def test_a_stream_is_not_strangled(means: str, nemesis: Nemesis, shell: NamespaceShell, tmp_path: Path) -> None:
    b1, b2, _ = shell.topology.nodes
    with nemesis:
        inject(nemesis, means, "slow", "late", target="b2", delay="50ms")
        megabytes = throughput(shell, tmp_path, b1, b2)
    # Held where packets leave, TCP has two segments under way in 50 ms: not 1 MB in a second.
    assert megabytes > 1


def test_a_delay_outlives_the_restart_of_its_node_from_the_first_packet_on(
    means: str, nemesis: Nemesis, shell: NamespaceShell, rows: Rows
) -> None:
    clean = shell.traces()
    with nemesis:
        inject(nemesis, means, "slow", "late", target="b1", delay="150ms")
        connects(shell, "b2", "b1")
        inject(nemesis, means, "restart", "again", target="b1")
        shell.listens(node(shell, "b1"))
        assert connects(shell, "b2", "b1") >= 0.15
    assert rows.last("late")["effective"]
    assert shell.traces() == clean


@pytest.mark.skipif(len(MEANS) < 2, reason="this kernel has no netem to compare with")
def test_both_means_are_alike(nemesis: Nemesis, shell: NamespaceShell, tmp_path: Path) -> None:
    took: dict[str, list[float]] = {}
    streams: dict[str, float] = {}
    b1, b2, _ = shell.topology.nodes
    with nemesis:
        for each in MEANS:
            written = {"delay": "60ms", "jitter": "10ms", "distribution": "normal"}
            inject(nemesis, each, "slow", f"late by {each}", target=HIT[each], **written)
            took[each] = sorted(1e3 * seconds for _, seconds in sent(shell, tmp_path, 1000, every=0.005))
            nemesis.heal(f"late by {each}")
            inject(nemesis, each, "slow", f"steady by {each}", target="b2", delay="50ms")
            streams[each] = throughput(shell, tmp_path, b1, b2)
            nemesis.heal(f"steady by {each}")
    assert {each: len(times) for each, times in took.items()} == dict.fromkeys(MEANS, 1000)
    # A program is not woken as promptly as a kernel's timer: on a machine of one slow processor some ms later.
    for part in (0.05, 0.25, 0.5, 0.75):
        one, other = (took[each][int(len(took[each]) * part)] for each in MEANS)
        assert one == pytest.approx(other, abs=25), part
    assert 0.05 < streams["nfqueue"] / streams["netem"] < 20


class Stuttering:
    """A shell whose every script runs twice, as where a connection broke before the answer came."""

    def __init__(self, shell: NamespaceShell) -> None:
        self._shell = shell

    def __getattr__(self, name: str) -> Any:
        return getattr(self._shell, name)

    def lasting(self, seconds: float) -> "Stuttering":
        return self

    def in_network_of(self, node: Node, script: str, arm: Switch | None = None, disarm: str | None = None) -> str:
        self._shell.in_network_of(node, script, arm, disarm)
        return self._shell.in_network_of(node, script, arm, disarm)

    def start_helper(self, node: Node, name: str, script: str) -> None:
        self._shell.start_helper(node, name, script)
        self._shell.start_helper(node, name, script)


def test_a_connection_that_breaks_before_an_answer_makes_no_fault_another_one(
    means: str, shell: NamespaceShell, rows: Rows
) -> None:
    clean = shell.traces()
    with nemesis_on(Stuttering(shell), rows.journal) as nemesis:
        inject(nemesis, means, "slow", "late", target="b1", delay="120ms")
        assert 0.12 <= connects(shell, "b2", "b1") < 0.3
    assert rows.last("late")["effective"]
    assert shell.traces() == clean
