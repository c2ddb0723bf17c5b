"""Packets held beside real namespaces: as late, as lossy and as disordered as asked, measured by whoever sends them."""

import json
import signal
from typing import Any

import pytest

from harness.core.errors import ClusterError
from harness.core.topology import Plane
from harness.core.waiting import wait_for
from nemesis.fault import Aim
from nemesis.mechanisms import netem, nfqueue, round_trips
from nemesis.mechanisms.mechanism import Either
from nemesis.nemesis import Nemesis
from nemesis.preflight import lacking

from .conftest import B2, Rows, nemesis_on
from .measured import by, connects, node
from .namespaces import NamespaceShell, possible

TAG = "0123abcd"

needs_root = pytest.mark.skipif(not possible(), reason="making network namespaces needs root, iproute2 and iptables")


@pytest.mark.parametrize("tag", ["00000000", "ffffffff", "0000fffe", "deadbeef"])
def test_a_queue_has_a_number_that_netfilter_allows(tag: str) -> None:
    assert 0 < nfqueue.queue_of(tag) <= 0xFFFF


def test_a_planes_packets_are_held_where_they_arrive_and_pass_where_nobody_holds_them() -> None:
    text = nfqueue.Delay(1.0, plane=Plane.REPLICATION).rule(B2, TAG)
    queue = f"NFQUEUE --queue-num {nfqueue.queue_of(TAG)} --queue-bypass"
    assert f"-A KT-{TAG}-H ! -i lo -p tcp -m multiport --ports 9094 -j {queue}" in text
    assert f"-I PREROUTING -j KT-{TAG}-H" in text


def test_the_program_is_started_for_a_rule_that_is_new_alone() -> None:
    late = nfqueue.Delay(0.25, 0.05, "pareto", correlation=0.25)
    assert late.helper(B2, TAG, "") is None
    helper = late.helper(B2, TAG, "KT-HOLD\n")
    assert helper is not None
    given = "--delay 0.25 --jitter 0.05 --correlation 0.25 --distribution pareto <<'PROGRAM'"
    assert given in helper.script.splitlines()[0]
    assert Either(netem.Delay(0.25), late).helper(B2, TAG, "") is None


def test_counters_are_unknown_if_the_iptables_rule_is_gone() -> None:
    assert nfqueue.Delay(1.0).read(B2, TAG, '{"released": 9, "waiting": 0, "overflowed": 0}') is None


@pytest.mark.parametrize(
    ("mechanism", "hit"),
    [(nfqueue.Delay(1.0), 5 + 3), (nfqueue.Lose(0.5, 0.5), 2), (nfqueue.Reorder(0.5, 0.01), 4)],
    ids=lambda value: type(value).__name__,
)
def test_packets_that_it_acted_on_are_those_late_or_lost_or_early(mechanism: Any, hit: int) -> None:
    counters = {"received": 20, "released": 5, "dropped": 2, "overtook": 4, "passed": 6, "waiting": 3, "overflowed": 0}
    chain = f"Chain KT-{TAG}-H (1 references)\n"
    counted = mechanism.read(B2, TAG, f"{chain}{json.dumps(counters)}\n")
    assert (counted.packets, counted.wrong) == (hit, None)
    full = mechanism.read(B2, TAG, f"{chain}{json.dumps({**counters, 'overflowed': 1})}\n")
    assert full.wrong == "1 packets were lost, for there was no room"
    unanswered = mechanism.read(B2, TAG, chain)
    assert (unanswered.wrong, unanswered.silent) == ("the program that held packets did not answer", True)
    unhooked = chain.replace("(1 ", "(0 ")
    assert mechanism.read(B2, TAG, f"{unhooked}{json.dumps(counters)}\n") is None, "no packet comes to it"


def test_of_connections_those_that_were_answered_are_round_trips() -> None:
    said = "KT-BEGAN\nKT-TRIED 250000\nKT-TRIED main: connect: Connection refused main: x: Connection refused 300000\n"
    unreachable = "KT-BEGAN\nKT-TRIED main: connect: No route to host main: x: No route to host 3000000\n"
    measured = round_trips.read(said + unreachable, 1)
    assert measured == {"p50": 300.0, "p95": 300.0, "tried": 4, "answered": 2}
    assert round_trips.read(unreachable, 1) == {"tried": 4, "answered": 0}


@pytest.fixture
def shell(greeted: NamespaceShell) -> NamespaceShell:
    return greeted


@pytest.fixture
def nemesis(shell: NamespaceShell, rows: Rows) -> Nemesis:
    return nemesis_on(shell, rows.journal)


@needs_root
def test_this_machine_holds_packets(shell: NamespaceShell) -> None:
    assert lacking([(frozenset({"nfqueue"}),)], shell.scratch) == []


@needs_root
def test_removing_the_rule_ends_the_program_that_holds_packets(shell: NamespaceShell) -> None:
    b1, late = shell.topology.nodes[0], nfqueue.Delay(0.05)
    helper = late.helper(b1, TAG, shell.in_network_of(b1, late.apply(b1, TAG)))
    assert helper is not None
    shell.start_helper(b1, TAG, helper.script)
    shell.in_network_of(b1, helper.ready)
    shell.in_network_of(b1, late.remove(b1, TAG))
    assert shell.helper(b1, TAG).wait(10) == 0
    shell.stop_helper(b1, TAG)


@needs_root
def test_packets_lost_for_want_of_room_are_counted(shell: NamespaceShell) -> None:
    b1, b2, _ = shell.topology.nodes
    late = nfqueue.Delay(0.5)
    narrow = nfqueue.program("hold", TAG, "--queue", str(nfqueue.queue_of(TAG)), "--delay", "0.5", "--room", "10")
    shell.in_network_of(b1, late.rule(b1, TAG))
    shell.start_helper(b1, TAG, f"exec {narrow}")
    try:
        shell.in_network_of(b1, nfqueue.program("ask", TAG, "--within", "10"))
        shell.in_network_of(b2, f"bash -c 'for i in $(seq 50); do echo >/dev/udp/{b1.address}/9; done'")
        counted = late.read(b1, TAG, shell.in_network_of(b1, late.count(TAG)))
        shell.in_network_of(b1, late.remove(b1, TAG))
    finally:
        shell.stop_helper(b1, TAG)
    assert counted is not None
    lost = counted.facts["overflowed"]
    # (Others than those fifty may come, too.)
    assert lost > 0
    assert counted.wrong == f"{lost} packets were lost, for there was no room"
    assert counted.facts["waiting"] <= 10


@needs_root
def test_a_holder_that_was_killed_delays_nothing_and_says_so(
    nemesis: Nemesis, shell: NamespaceShell, rows: Rows
) -> None:
    clean = shell.traces()
    with nemesis:
        nemesis.inject(by("nfqueue", "slow", target="b1", delay="200ms"), "late")
        assert connects(shell, "b2", "b1") >= 0.2
        shell.helper(node(shell, "b1"), Aim("late", {}).tag).send_signal(signal.SIGKILL)
        wait_for(lambda: connects(shell, "b2", "b1") < 0.1, "packets to pass", 10)
    row = rows.last("late")
    assert not row["effective"]
    wrong = json.loads(row["evidence"])["healing"]["b1"]["wrong"]
    assert wrong == "the program that held packets did not answer: it has ended"
    assert shell.traces() == clean


@needs_root
def test_a_holder_that_was_killed_on_one_node_of_two_is_reported_for_that_one(
    nemesis: Nemesis, shell: NamespaceShell, rows: Rows
) -> None:
    with nemesis:
        nemesis.inject(by("nfqueue", "slow", target=["b1", "b2"], delay="50ms"), "late")
        connects(shell, "b1", "b2")
        shell.helper(node(shell, "b2"), Aim("late", {}).tag).kill()
    assert rows.last("late")["nodes_without_effect"] == ["b2"]


@needs_root
def test_a_queue_that_another_serves_is_no_fault_of_ours(nemesis: Nemesis, shell: NamespaceShell, rows: Rows) -> None:
    queue, b1 = nfqueue.queue_of(Aim("late", {}).tag), node(shell, "b1")
    shell.start_helper(b1, "other", f"exec {nfqueue.program('hold', 'other', '--queue', str(queue))}")
    shell.in_network_of(b1, nfqueue.program("ask", "other", "--within", "10"))
    try:
        with pytest.raises(ClusterError, match=f"queue {queue} cannot be opened"), nemesis:
            nemesis.inject(by("nfqueue", "slow", target="b1", delay="50ms"), "late")
    finally:
        shell.stop_helper(b1, "other")
    assert not rows.last("late")["effective"]
