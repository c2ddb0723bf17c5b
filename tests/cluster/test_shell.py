"""The Docker shell, on real containers."""

import pytest

from harness.core.errors import ClusterError
from harness.core.waiting import wait_for
from nemesis.fault import on_each
from nemesis.shell import ProcessState

from .conftest import Plain

pytestmark = pytest.mark.cluster


def test_a_script_that_fails_says_why_in_one_line(plain: Plain) -> None:
    with pytest.raises(ClusterError, match=r"^b1: network script failed: no such luck$"):
        plain.shell.in_network_of(plain.node("b1"), "echo first >&2; echo no such luck >&2; exit 1")


def test_the_toolbox_may_only_administer_the_network(plain: Plain) -> None:
    effective = plain.shell.in_network_of(plain.node("b1"), "grep CapEff /proc/self/status")
    assert int(effective.split()[1], 16) == (1 << 12 | 1 << 13), "NET_ADMIN and NET_RAW"


def test_data_of_a_running_node_is_not_wiped(plain: Plain) -> None:
    with pytest.raises(ClusterError, match="b1: its data cannot be wiped while it runs"):
        plain.shell.wipe(plain.node("b1"))


def test_a_wipe_deletes_every_file_of_one_node_and_counts_them(plain: Plain) -> None:
    b1 = plain.node("b1")
    plain.shell.stop(b1, 60)
    assert plain.shell.wipe(b1) == 2
    assert plain.shell.wipe(b1) == 0
    plain.shell.stop(plain.node("b2"), 60)
    assert plain.shell.wipe(plain.node("b2")) == 2


def test_processes_are_seen_as_they_are(plain: Plain) -> None:
    b1 = plain.node("b1")
    seen = []
    for act in (
        lambda: plain.shell.signal(b1, "STOP"),
        lambda: plain.shell.signal(b1, "CONT"),
        lambda: plain.shell.signal(b1, "KILL"),
        lambda: plain.shell.start(b1),
        lambda: plain.shell.start(b1),
        lambda: plain.shell.stop(b1, 60),
    ):
        act()
        seen.append(str(plain.shell.process(b1)))
    assert seen == ["stopped", "running", "exited", "running", "running", "exited"]


def test_an_exit_code_tells_a_shutdown_from_a_kill(plain: Plain) -> None:
    b1, b2, b3 = plain.shell.topology.nodes
    plain.shell.stop(b1, 60)
    plain.shell.signal(b2, "KILL")
    plain.shell.signal(b3, "STOP")
    plain.shell.stop(b3, 1)
    wait_for(lambda: plain.shell.process(b2) is ProcessState.EXITED, "b2 to exit", 10)
    assert [plain.shell.exit_code(node) for node in (b1, b2, b3)] == [0, 137, 137]


def test_a_started_node_has_its_network_and_waits_to_be_released(plain: Plain) -> None:
    b1 = plain.node("b1")
    wait_for(lambda: plain.went_on("b1"), "b1 to go on", 10)
    plain.shell.signal(b1, "KILL")
    wait_for(lambda: plain.shell.process(b1) is ProcessState.EXITED, "b1 to exit", 10)
    plain.shell.start(b1)
    assert b1.address in plain.shell.in_network_of(b1, "ip -o -4 addr show dev eth0")
    assert plain.went_on("b1") == 1
    plain.shell.release(b1)
    plain.shell.release(b1)
    wait_for(lambda: plain.went_on("b1") == 2, "b1 to go on", 10)
    plain.shell.start(b1)
    plain.shell.stop(b1, 60)
    plain.shell.start(b1)
    plain.shell.stop(b1, 60)
    assert plain.shell.exit_code(b1) == 0, "one that waits can be stopped as well"
    assert plain.went_on("b1") == 2


def test_a_helper_runs_in_a_nodes_network_until_it_ends_or_is_stopped(plain: Plain) -> None:
    b1 = plain.node("b1")
    plain.shell.stop_helper(b1, "mine")
    plain.shell.start_helper(b1, "mine", "iptables -w -N KT-MINE; exec sleep 1000")
    wait_for(lambda: "KT-MINE" in plain.shell.in_network_of(b1, "iptables-save"), "the helper's chain", 10)
    (first,) = plain.helpers("b1")
    assert first.status == "running"
    assert plain.shell.helper_runs(b1, "mine")
    plain.shell.start_helper(b1, "mine", "exit 1")
    wait_for(lambda: [each.status for each in plain.helpers("b1")] == ["exited"], "the next one to end", 10)
    assert not plain.shell.helper_runs(b1, "mine")
    plain.shell.start_helper(b1, "mine", "exec sleep 1000")
    plain.shell.stop_helper(b1, "mine")
    assert plain.helpers("b1") == []
    assert not plain.shell.helper_runs(b1, "mine")


def test_a_node_that_has_exited_has_no_network_and_leaves_no_container(plain: Plain) -> None:
    plain.shell.stop(plain.node("b1"), 60)
    with pytest.raises(ClusterError, match=r"^b1: network script failed: cannot join network of a non running"):
        plain.shell.in_network_of(plain.node("b1"), "true")


def test_a_signal_to_a_node_that_has_exited_says_so_in_one_line(plain: Plain) -> None:
    plain.shell.stop(plain.node("b1"), 60)
    with pytest.raises(ClusterError, match=r"^b1: cannot SIGSTOP: .*is not running"):
        plain.shell.signal(plain.node("b1"), "STOP")


def test_several_nodes_are_acted_on_at_once(plain: Plain) -> None:
    nodes = plain.shell.topology.nodes
    said = on_each(nodes, lambda node: plain.shell.in_network_of(node, "ip -o -4 addr show dev eth0"))
    assert all(node.address in said[node] for node in nodes)
    assert plain.states() == dict.fromkeys(["b1", "b2", "b3"], ProcessState.RUNNING)
