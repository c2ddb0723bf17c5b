"""Injecting, remembering, proving and healing, against a shell of plain data."""

import json
from collections.abc import Iterator
from itertools import count
from random import Random
from typing import Any

import pytest
from pydantic import PrivateAttr

from harness.core.clock import Clock
from harness.core.errors import ClusterError, ScenarioError
from harness.core.faults import Does, acted_on, does
from harness.core.topology import Node, View
from nemesis.catalogue import FAULTS, kind_of
from nemesis.evidence import Effect, Record, Seen
from nemesis.fault import Aim, Fault
from nemesis.faults.process import Kill, Pause
from nemesis.nemesis import Nemesis
from nemesis.shell import NodeShell, ProcessState, Signal, Switch

from .conftest import B1, B2, B3, C1, CLIENTS, TOPOLOGY, VIEW, FakeShell, FullDisk, Rows
from .controls import PRESUMED, WRITTEN

#: What acts on the traffic of nodes.
TRAFFIC = ("slow", "flaky", "throttle", "reorder", "duplicate", "corrupt")

#: What a history may have that lacks these columns.
WHEN_NO_COLUMN_SAID_IT = {
    *("partition", "isolate", "slow", "flaky", "throttle"),
    *("kill", "stop", "restart", "start", "pause", "resume", "wipe"),
}


def fault(kind: str, **parameters: Any) -> Fault:
    return FAULTS[kind].model_validate({**WRITTEN[kind], **parameters})


@pytest.fixture
def nemesis(shell: FakeShell, rows: Rows) -> Nemesis:
    return Nemesis(shell, lambda: VIEW, rows.journal, Clock.start(), Random(1))


def test_every_fault_of_the_catalogue_is_tried() -> None:
    assert set(WRITTEN) == set(FAULTS)


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_has_its_name_from_the_catalogue(kind: str) -> None:
    assert kind_of(fault(kind)) == kind


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_is_journalled_acts_and_heals_to_nothing(
    kind: str, nemesis: Nemesis, shell: FakeShell, rows: Rows
) -> None:
    if kind in PRESUMED:
        nemesis.inject(fault(PRESUMED[kind]), "presumed")
    with nemesis:
        name = nemesis.inject(fault(kind), "it")
    before, *_, healed = rows.all(name)
    assert before["injected_ns"] is None
    assert not before["effective"]
    assert before["injecting_ns"] <= healed["injected_ns"] <= healed["healing_ns"] <= healed["healed_ns"]
    assert healed["effective"]
    assert healed["kind"] == kind
    assert json.loads(healed["evidence"])
    assert shell.left == {}
    assert set(shell.states.values()) == {ProcessState.RUNNING}
    assert nemesis.active == ()


@pytest.mark.parametrize("kind", FAULTS)
def test_the_effects_and_the_sides_of_a_fault_are_columns(kind: str, nemesis: Nemesis, rows: Rows) -> None:
    if kind in PRESUMED:
        nemesis.inject(fault(PRESUMED[kind]), "presumed")
    nemesis.inject(fault(kind), "it")
    row = rows.last("it")
    assert {what: row[what] for what in Does} == {what: getattr(FAULTS[kind], what) for what in Does}
    if kind in WHEN_NO_COLUMN_SAID_IT:
        assert {what for what in Does if row[what]} == {what for what in Does if does({"kind": kind}, what)}
    cut = (["b1"], ["b2", "b3"]) if kind == "partition" else (None, None)
    assert (row["cut_from"], row["cut_to"]) == cut
    assert row["plane"] == getattr(fault(kind), "plane", None)
    assert row["cuts_clients"] is (True if kind == "isolate" else None)
    assert row["both_ways"] == getattr(fault(kind), "both_ways", None)
    assert (row["plane"] is None) is not FAULTS[kind].lives_in_network


@pytest.mark.parametrize("kind", ["partition", "isolate", *TRAFFIC])
def test_a_network_fault_that_no_packet_met_had_no_effect(
    kind: str, nemesis: Nemesis, shell: FakeShell, rows: Rows
) -> None:
    shell.packets = 0
    with nemesis:
        nemesis.inject(fault(kind), "it")
    assert not rows.last("it")["effective"]


@pytest.mark.parametrize(
    ("kind", "before"),
    [
        ("start", None),
        ("resume", None),
        ("resume", "kill"),
        ("kill", "kill"),
        ("kill", "stop"),
        ("stop", "kill"),
        ("restart", "kill"),
        ("pause", "pause"),
        ("pause", "kill"),
    ],
)
def test_an_act_that_found_nothing_to_do_had_no_effect(
    kind: str, before: str | None, nemesis: Nemesis, rows: Rows
) -> None:
    if before:
        nemesis.inject(fault(before), "before")
    nemesis.inject(fault(kind), "it")
    assert not rows.last("it")["effective"]
    assert rows.last("it")["nodes_without_effect"] == ["b1"]


@pytest.mark.parametrize("kind", ["kill", "stop", "pause"])
def test_of_two_nodes_one_was_in_that_state_already(kind: str, nemesis: Nemesis, rows: Rows) -> None:
    nemesis.inject(fault(kind, target="b1"), "first")
    nemesis.inject(fault(kind, target=["b1", "b2"]), "both")
    assert rows.last("first")["effective"]
    assert not rows.last("both")["effective"]
    assert rows.last("both")["nodes_without_effect"] == ["b1"]


@pytest.mark.parametrize("kind", ["isolate", *TRAFFIC])
def test_a_fault_of_several_nodes_acts_on_each_of_them(
    kind: str, nemesis: Nemesis, shell: FakeShell, rows: Rows
) -> None:
    shell.silent = {B3}
    with nemesis:
        nemesis.inject(fault(kind, target=["b2", "b3"]), "it")
    assert not rows.last("it")["effective"]
    assert rows.last("it")["nodes_without_effect"] == ["b3"]


def test_a_cut_acts_on_every_node_of_both_sides(nemesis: Nemesis, shell: FakeShell, rows: Rows) -> None:
    shell.silent = {B3}
    with nemesis:
        nemesis.inject(fault("partition"), "cut")
        nemesis.inject(fault("partition", to="b2"), "half")
    assert rows.last("cut")["nodes_without_effect"] == ["b3"]
    assert not rows.last("cut")["effective"]
    assert rows.last("half")["effective"]


def test_a_wipe_of_several_deletes_something_of_each(nemesis: Nemesis, shell: FakeShell, rows: Rows) -> None:
    shell.files[B2] = 0
    nemesis.inject(fault("kill", target=["b1", "b2"]))
    nemesis.inject(fault("wipe", target=["b1", "b2"]), "gone")
    assert rows.last("gone")["nodes_without_effect"] == ["b2"]
    assert not rows.last("gone")["effective"]


@pytest.mark.parametrize("kind", ["partition", "isolate", *TRAFFIC])
def test_rules_that_somebody_else_removed_take_the_effect_back(
    kind: str, nemesis: Nemesis, shell: FakeShell, rows: Rows
) -> None:
    nemesis.inject(fault(kind), "it")
    nemesis.inject(fault("kill", target="all"), "dead")
    nemesis.heal("dead")
    shell.flushed = {B1, B2, B3}
    nemesis.heal("it")
    assert not rows.last("it")["effective"]


@pytest.mark.parametrize(
    ("kind", "state"), [("kill", ProcessState.RUNNING), ("stop", ProcessState.RUNNING), ("pause", ProcessState.RUNNING)]
)
def test_a_process_that_runs_again_before_the_heal_takes_the_effect_back(
    kind: str, state: ProcessState, nemesis: Nemesis, shell: FakeShell, rows: Rows
) -> None:
    nemesis.inject(fault(kind), "it")
    assert rows.last("it")["effective"]
    shell.states[B1] = state
    nemesis.heal("it")
    assert not rows.last("it")["effective"]


def test_counters_that_began_again_with_a_restart_take_nothing_back(
    nemesis: Nemesis, shell: FakeShell, rows: Rows
) -> None:
    nemesis.inject(fault("partition"), "cut")
    nemesis.inject(fault("restart"))
    shell.packets = 0
    nemesis.heal("cut")
    assert rows.last("cut")["effective"]


def test_what_cannot_be_measured_in_the_end_is_in_doubt(nemesis: Nemesis, shell: FakeShell, rows: Rows) -> None:
    nemesis.inject(fault("partition"), "seen")
    nemesis.inject(fault("restart"))
    assert rows.last("seen")["effective"]
    nemesis.inject(fault("partition"), "unseen")
    shell.broken = True
    with pytest.raises(ClusterError):
        nemesis.heal_all()
    for name in ("seen", "unseen"):
        row = rows.last(name)
        assert (row["effective"], row["nodes_not_known"]) == (False, row["nodes"])


def test_flaky_loses_packets_with_iptables_where_the_kernel_has_no_netem(
    nemesis: Nemesis, shell: FakeShell, rows: Rows
) -> None:
    shell.netem = False
    with nemesis:
        nemesis.inject(fault("flaky"), "it")
    assert json.loads(rows.last("it")["evidence"])["healing"]["b1"] == {
        "packets_dropped": 7,
        "by": "iptables statistic",
        "of": "what arrives",
    }


def test_a_partition_is_applied_again_when_its_node_was_started(nemesis: Nemesis, shell: FakeShell, rows: Rows) -> None:
    nemesis.inject(fault("partition"), "cut")
    cut = shell.left
    nemesis.inject(fault("kill"), "dead")
    assert shell.left == {}
    nemesis.inject(fault("start"))
    assert shell.left == cut != {}
    assert [a.name for a in nemesis.active] == ["cut"]
    nemesis.heal("cut")
    evidence = json.loads(rows.last("cut")["evidence"])
    assert set(evidence) == {"injected", "before_process_ended", "applied_again", "healing"}


def test_a_partition_is_applied_again_after_a_restart_and_after_a_kill_is_healed(
    nemesis: Nemesis, shell: FakeShell
) -> None:
    nemesis.inject(fault("isolate"))
    cut = shell.left
    nemesis.inject(fault("restart"))
    assert shell.left == cut
    nemesis.inject(fault("kill"), "dead")
    nemesis.heal("dead")
    assert shell.left == cut


@pytest.mark.parametrize("again", ["start", "restart", "heal"])
def test_a_node_is_released_when_all_faults_on_its_network_are_there_again(
    again: str, nemesis: Nemesis, shell: FakeShell, rows: Rows
) -> None:
    nemesis.inject(fault("isolate"), "cut")
    nemesis.inject(fault("slow", target="leader"), "late")
    if again != "restart":
        nemesis.inject(fault("kill"), "dead")
    shell.done.clear()
    if again == "heal":
        nemesis.heal("dead")
    else:
        nemesis.inject(fault(again), "again")
    since = shell.done[shell.done.index("b1 start") :]
    assert since == ["b1 start", "b1 network", "b1 network", "b1 release"]
    assert len(shell.left["b1"]) == 2
    started = json.loads(rows.last("dead" if again == "heal" else "again")["evidence"])["released"]["b1"]
    for name in ("cut", "late"):
        assert 0 < json.loads(rows.last(name)["evidence"])["applied_again"]["at_ns"] <= started["at_ns"]


def test_nobody_waits_for_ever_for_rules_that_cannot_be_applied_again(
    nemesis: Nemesis, shell: FakeShell, rows: Rows
) -> None:
    nemesis.inject(fault("isolate"), "cut")
    nemesis.inject(fault("kill"), "dead")
    shell.broken = True
    nemesis.heal("dead")
    assert shell.held == set()
    assert rows.last("dead")["healed_ns"] is not None
    shell.broken = False
    nemesis.heal("cut")
    assert not rows.last("cut")["effective"]


def test_targets_are_resolved_after_the_counters_are_read(shell: FakeShell, rows: Rows) -> None:
    counted: list[int] = []

    def look() -> View:
        counted.append(len(shell.done))
        return VIEW

    nemesis = Nemesis(shell, look, rows.journal, Clock.start(), Random(1))
    nemesis.inject(fault("isolate"), "cut")
    done = len(shell.done)
    nemesis.inject(fault("kill"), "dead")
    assert counted[-1] == done + 1
    assert shell.done[done:] == ["b1 count", "b1 KILL"]


def test_a_started_node_ends_the_kill_of_that_node_alone(nemesis: Nemesis, rows: Rows) -> None:
    nemesis.inject(fault("kill", target=["b1", "b2"]), "dead")
    nemesis.inject(fault("start", target="b1"))
    assert [(a.kind, a.nodes) for a in nemesis.active] == [("kill", ("b2",))]
    assert rows.last("dead")["healed_ns"] is None
    nemesis.inject(fault("start", target="b2"))
    assert nemesis.active == ()
    assert rows.last("dead")["healed_ns"] is not None
    assert rows.last("dead")["nodes"] == ["b1", "b2"]


def test_a_node_that_is_to_stay_down_stays_down(nemesis: Nemesis, shell: FakeShell) -> None:
    nemesis.inject(fault("kill", target=["b1", "b2"]), "dead", pin={"old_leader": "leader"})
    nemesis.inject(fault("partition", **{"from": "b1", "to": "b3"}))
    nemesis.heal_all(except_=["old_leader"])
    assert shell.states[B1] is ProcessState.EXITED
    assert shell.states[B2] is ProcessState.RUNNING
    assert [(a.name, a.nodes) for a in nemesis.active] == [("dead", ("b1",))]
    nemesis.heal_all(except_=["dead"])
    assert shell.states[B1] is ProcessState.EXITED
    nemesis.heal_all()
    assert shell.states[B1] is ProcessState.RUNNING


def test_pins_and_injections_resolve_to_the_nodes_that_stay_down(nemesis: Nemesis) -> None:
    nemesis.inject(fault("kill", target="b2"), "dead", pin={"old_leader": "leader"})
    assert nemesis.meant(["old_leader", "b3", "dead", "never"]) == {"old_leader": (B1,), "b3": (B3,)}


def test_pins_are_roles_as_they_were_before_and_nodes_that_were_hit(nemesis: Nemesis) -> None:
    nemesis.inject(fault("partition", to="one-of followers"), "cut", pin={"old_leader": "leader"})
    assert nemesis.pins["old_leader"] == (B1,)
    assert nemesis.pins["cut"] in {(B1, B2), (B1, B3)}
    nemesis.inject(fault("isolate", target="old_leader"), "alone")
    assert nemesis.pins["alone"] == (B1,)


@pytest.mark.parametrize("kind", ["kill", "stop", "pause"])
def test_healing_leaves_a_state_that_another_fault_still_holds(kind: str, nemesis: Nemesis, shell: FakeShell) -> None:
    nemesis.inject(fault(kind), "first")
    held = shell.states[B1]
    nemesis.inject(fault(kind, target=["b1", "b2"]), "second")
    nemesis.heal("second")
    assert (shell.states[B1], shell.states[B2]) == (held, ProcessState.RUNNING)
    nemesis.heal("first")
    assert shell.states[B1] is ProcessState.RUNNING


@pytest.mark.parametrize("kind", ["kill", "stop", "pause"])
def test_healing_the_first_fault_leaves_the_state_of_the_second(kind: str, nemesis: Nemesis, shell: FakeShell) -> None:
    nemesis.inject(fault(kind), "first")
    held = shell.states[B1]
    nemesis.inject(fault(kind), "second")
    nemesis.heal("first")
    assert shell.states[B1] is held
    nemesis.heal_all()
    assert shell.states[B1] is ProcessState.RUNNING


def test_a_kill_and_a_stop_of_one_node_hold_it_both(nemesis: Nemesis, shell: FakeShell) -> None:
    nemesis.inject(fault("kill"), "killed")
    nemesis.inject(fault("stop"), "stopped")
    nemesis.heal("killed")
    assert shell.states[B1] is ProcessState.EXITED
    nemesis.heal("stopped")
    assert shell.states[B1] is ProcessState.RUNNING


@pytest.mark.parametrize("kind", ["kill", "stop", "restart"])
def test_the_end_of_a_paused_process_ends_its_pause(kind: str, nemesis: Nemesis, shell: FakeShell, rows: Rows) -> None:
    nemesis.inject(fault("pause", target=["b1", "b2"]), "asleep")
    nemesis.inject(fault(kind), "it")
    assert ("asleep", ("b2",)) in [(a.name, a.nodes) for a in nemesis.active]
    nemesis.heal("it")
    assert (shell.states[B1], shell.states[B2]) == (ProcessState.RUNNING, ProcessState.STOPPED)
    nemesis.heal("asleep")
    assert shell.states[B2] is ProcessState.RUNNING
    assert rows.last("asleep")["effective"]


def test_unnamed_injections_get_names_of_their_own(nemesis: Nemesis) -> None:
    assert [nemesis.inject(fault("restart")) for _ in range(3)] == ["restart-1", "restart-2", "restart-3"]


def test_healing_twice_changes_nothing(nemesis: Nemesis, shell: FakeShell, rows: Rows) -> None:
    nemesis.inject(fault("partition"), "cut")
    nemesis.heal("cut")
    once = rows.all("cut"), list(shell.done)
    nemesis.heal("cut")
    nemesis.heal_all()
    assert (rows.all("cut"), shell.done) == once


def test_an_injection_that_failed_is_healed_as_well(nemesis: Nemesis, shell: FakeShell, rows: Rows) -> None:
    shell.broken = True
    with nemesis:
        with pytest.raises(ClusterError, match="broken"):
            nemesis.inject(fault("partition"), "cut")
        assert [a.name for a in nemesis.active] == ["cut"]
        shell.broken = False
    assert rows.last("cut")["healed_ns"] is not None
    assert rows.last("cut")["injected_ns"] is None
    assert not rows.last("cut")["effective"]


def test_a_failed_heal_does_not_stop_the_other_heals(nemesis: Nemesis, shell: FakeShell) -> None:
    nemesis.inject(fault("partition"), "cut")
    nemesis.inject(fault("pause", target="c1"), "asleep")
    shell.broken = True
    with pytest.raises(ClusterError, match=r"^not healed: b1: network script failed: broken$"):
        nemesis.heal_all()
    assert [a.name for a in nemesis.active] == ["cut"]
    shell.broken = False
    nemesis.heal_all()
    assert nemesis.active == ()


def test_a_cut_is_being_healed_since_the_first_try(nemesis: Nemesis, shell: FakeShell, rows: Rows) -> None:
    nemesis.inject(fault("partition"), "cut")
    shell.broken = True
    with pytest.raises(ClusterError):
        nemesis.heal_all()
    first = rows.last("cut")["healing_ns"]
    shell.broken = False
    nemesis.heal_all()
    assert rows.last("cut")["healing_ns"] == first < rows.last("cut")["healed_ns"]


def test_a_rule_that_cannot_be_removed_is_not_healed_if_the_network_outlives_the_process(
    nemesis: Nemesis, shell: FakeShell, rows: Rows
) -> None:
    """On a machine the rules stay even after the process of its node has ended."""
    shell.network_ends_with_process = False
    nemesis.inject(fault("partition"), "cut")
    shell.states[B1], shell.broken = ProcessState.EXITED, True
    with pytest.raises(ClusterError, match=r"^not healed: b1: network script failed: broken$"):
        nemesis.heal_all()
    assert [a.name for a in nemesis.active] == ["cut"]
    assert rows.last("cut")["healed_ns"] is None
    assert "not_measured" in json.loads(rows.last("cut")["evidence"])["healing"]


def test_counters_that_cannot_be_read_keep_nothing_from_being_healed(
    nemesis: Nemesis, shell: FakeShell, rows: Rows
) -> None:
    nemesis.inject(fault("slow"), "late")
    nemesis.inject(fault("partition"), "cut")
    nemesis.inject(fault("pause", target="c1"), "asleep")
    shell.garbled = True
    nemesis.heal_all()
    assert nemesis.active == ()
    assert shell.left == {}
    assert [rows.last(name)["effective"] for name in ("late", "cut", "asleep")] == [False, True, True]
    assert "its counters cannot be read" in json.loads(rows.last("late")["evidence"])["healing"]["not_measured"]
    assert rows.last("late")["healed_ns"] is not None


class Defective(Kill):
    """Its heal has a defect."""

    def heal(self, shell: NodeShell, aim: Aim) -> None:
        raise RuntimeError("a defect")


def test_a_defect_in_one_heal_is_raised_when_all_others_are_healed(nemesis: Nemesis, shell: FakeShell) -> None:
    nemesis.inject(Defective(target="b1"), "broken")
    nemesis.inject(fault("pause", target="c1"), "asleep")
    with pytest.raises(RuntimeError, match="a defect"):
        nemesis.heal_all()
    assert [a.name for a in nemesis.active] == ["broken"]
    assert shell.states[C1] is ProcessState.RUNNING


class WithoutB2(FakeShell):
    """A shell that cannot start b2."""

    def start(self, node: Node) -> None:
        if node == B2:
            raise ClusterError("b2: cannot start")
        super().start(node)


def test_a_node_that_cannot_be_started_keeps_no_other_waiting(rows: Rows) -> None:
    shell = WithoutB2()
    nemesis = Nemesis(shell, lambda: VIEW, rows.journal, Clock.start(), Random(1))
    nemesis.inject(fault("kill", target=("b1", "b2")), "dead")
    with pytest.raises(ClusterError, match="b2: cannot start"):
        nemesis.heal_all()
    assert shell.states[B1] is ProcessState.RUNNING
    assert not shell.held
    assert [a.name for a in nemesis.active] == ["dead"]


class WipesAllButB2(FakeShell):
    """A shell that cannot wipe b2."""

    def wipe(self, node: Node) -> int:
        if node == B2:
            raise ClusterError("b2: wipe failed")
        return super().wipe(node)


def test_a_wipe_that_failed_half_way_is_known_to_have_acted_where_it_did(rows: Rows) -> None:
    nemesis = Nemesis(WipesAllButB2(), lambda: VIEW, rows.journal, Clock.start(), Random(1))
    nemesis.inject(fault("kill", target=("b1", "b2")), "dead")
    with pytest.raises(ClusterError, match="b2: wipe failed"):
        nemesis.inject(fault("wipe", target=("b2", "b1")), "gone")
    nemesis.heal_all()
    row = rows.last("gone")
    assert not row["effective"]
    assert acted_on(row) == {"b1"}


class SparesB2(FakeShell):
    """A shell that cannot do to b2's process what was asked."""

    def signal(self, node: Node, signal: Signal) -> None:
        if node == B2 and signal in {"KILL", "STOP"}:
            raise ClusterError(f"b2: SIG{signal} failed")
        super().signal(node, signal)

    def stop(self, node: Node, grace: float) -> None:
        if node == B2:
            raise ClusterError("b2: stop failed")
        super().stop(node, grace)


@pytest.mark.parametrize("kind", ["kill", "stop", "restart", "pause"])
@pytest.mark.parametrize("target", [("b1", "b2"), ("b2", "b1")])
def test_a_fault_that_failed_on_one_node_is_known_to_have_acted_on_the_other(
    kind: str, target: tuple[str, str], rows: Rows
) -> None:
    shell = SparesB2()
    nemesis = Nemesis(shell, lambda: VIEW, rows.journal, Clock.start(), Random(1))
    with pytest.raises(ClusterError, match=r"b2: .* failed"):
        nemesis.inject(fault(kind, target=target), "half")
    assert acted_on(rows.last("half")) == {"b1"}
    nemesis.heal_all()
    row = rows.last("half")
    assert not row["effective"]
    assert acted_on(row) == {"b1"}
    assert set(shell.states.values()) == {ProcessState.RUNNING}


def test_a_node_that_was_continued_for_a_stop_that_failed_is_not_known_to_be_stopped(rows: Rows) -> None:
    nemesis = Nemesis(SparesB2(), lambda: VIEW, rows.journal, Clock.start(), Random(1))
    nemesis.inject(fault("pause", target="b1"))
    with pytest.raises(ClusterError, match="b2: stop failed"):
        nemesis.inject(fault("stop", target="b2"), "half")
    assert acted_on(rows.last("half")) == frozenset()


@pytest.mark.parametrize("kind", ["restart", "start"])
def test_a_node_that_was_started_before_another_failed_is_released(kind: str, rows: Rows) -> None:
    shell = WithoutB2()
    nemesis = Nemesis(shell, lambda: VIEW, rows.journal, Clock.start(), Random(1))
    if kind == "start":
        nemesis.inject(fault("kill", target=("b1", "b2")))
    with pytest.raises(ClusterError, match="b2: cannot start"):
        nemesis.inject(fault(kind, target=("b1", "b2")), "half")
    assert shell.states[B1] is ProcessState.RUNNING
    assert not shell.held
    assert acted_on(rows.last("half")) == {"b1"}


@pytest.mark.parametrize("kind", FAULTS)
def test_the_effect_of_a_fault_is_in_doubt_until_it_is_measured(
    kind: str, nemesis: Nemesis, shell: FakeShell, rows: Rows
) -> None:
    shell.packets = 0
    if kind in PRESUMED:
        nemesis.inject(fault(PRESUMED[kind], target=("b1", "b2", "b3")), "before")
    nemesis.inject(fault(kind), "it")
    first, second, *_ = rows.all("it")
    assert first["nodes_not_known"] == first["nodes"]
    assert second["nodes_not_known"] == (second["nodes"] if fault(kind).lives_in_network else [])
    nemesis.heal_all()
    assert rows.last("it")["nodes_not_known"] == []


def test_an_effect_that_was_never_measured_stays_in_doubt(nemesis: Nemesis, shell: FakeShell, rows: Rows) -> None:
    shell.packets = 0
    nemesis.inject(fault("throttle", target=("b1", "b2")), "thin")
    shell.garbled = True
    nemesis.heal_all()
    assert rows.last("thin")["nodes_not_known"] == ["b1", "b2"]


@pytest.mark.parametrize(("garbled", "doubtful"), [(True, ["b1", "b2"]), (False, [])])
def test_what_held_once_but_could_not_be_measured_in_the_end_acted_in_part(
    garbled: bool, doubtful: list[str], nemesis: Nemesis, shell: FakeShell, rows: Rows
) -> None:
    nemesis.inject(fault("throttle", target=("b1", "b2")), "thin")
    nemesis.inject(fault("restart", target="b1"))
    assert rows.last("thin")["effective"]
    shell.garbled = garbled
    nemesis.heal_all()
    last = rows.last("thin")
    assert (last["effective"], last["nodes_without_effect"]) == (not doubtful, doubtful)
    assert last["nodes_not_known"] == doubtful


@pytest.mark.parametrize(("ends", "doubtful"), [(True, ["b1", "b2"]), (False, [])])
def test_a_fault_whose_counters_ended_unread_with_a_process_acted_in_part(
    ends: bool, doubtful: list[str], nemesis: Nemesis, shell: FakeShell, rows: Rows
) -> None:
    """Whatever the new network of that process counts."""
    shell.network_ends_with_process = ends
    nemesis.inject(fault("throttle", target=("b1", "b2")), "thin")
    shell.garbled = True
    nemesis.inject(fault("restart", target="b1"))
    shell.garbled = False
    nemesis.heal_all()
    assert rows.last("thin")["nodes_without_effect"] == doubtful


@pytest.mark.parametrize(("crashed", "doubtful"), [(B2, ["b1", "b3", "b2"]), (B3, [])])
def test_a_cut_is_in_doubt_where_its_rules_ended_with_a_process_before_anybody_looked(
    crashed: Node, doubtful: list[str], nemesis: Nemesis, shell: FakeShell, rows: Rows
) -> None:
    shell.packets = 0
    nemesis.inject(fault("partition", **{"from": ("b1", "b3"), "to": "b2"}), "cut")
    assert set(shell.left) == {"b2"}
    shell.states[crashed] = ProcessState.EXITED
    nemesis.heal_all()
    assert rows.last("cut")["nodes_not_known"] == doubtful
    assert not rows.last("cut")["effective"]


def test_a_process_that_came_back_by_itself_was_dead_for_a_time(nemesis: Nemesis, shell: FakeShell, rows: Rows) -> None:
    nemesis.inject(fault("kill", target=("b1", "b2")), "dead")
    shell.states[B1] = ProcessState.RUNNING
    nemesis.heal_all()
    assert (rows.last("dead")["nodes_without_effect"], rows.last("dead")["nodes_not_known"]) == (["b1"], ["b1"])


def test_a_cut_whose_rules_somebody_removed_may_have_acted_until_then(
    nemesis: Nemesis, shell: FakeShell, rows: Rows
) -> None:
    nemesis.inject(fault("isolate", target="b2"), "cut")
    shell.flushed = {B2}
    nemesis.heal_all()
    assert (rows.last("cut")["nodes_without_effect"], rows.last("cut")["nodes_not_known"]) == (["b2"], ["b2"])


def test_its_end_on_some_of_its_nodes_is_recorded(nemesis: Nemesis, rows: Rows) -> None:
    nemesis.inject(fault("pause", target=("b1", "b2")), "still")
    nemesis.heal_all(("b2",))
    nemesis.heal_all()
    last = rows.last("still")
    ended = json.loads(last["evidence"])["ended"]
    assert ended["b1"] < ended["b2"] <= last["healed_ns"]
    nemesis.inject(fault("pause", target=("b1", "b2")), "again")
    nemesis.heal_all()
    assert "ended" not in json.loads(rows.last("again")["evidence"])


class StartsB2AtTheSecondTime(FakeShell):
    tries = 0

    def start(self, node: Node) -> None:
        self.tries += node is B2
        if node is B2 and self.tries == 1:
            raise ClusterError("b2: cannot start")
        super().start(node)


def test_a_node_that_a_heal_started_was_dead_only_until_then(rows: Rows) -> None:
    nemesis = Nemesis(StartsB2AtTheSecondTime(), lambda: VIEW, rows.journal, Clock.start(), Random(1))
    nemesis.inject(fault("kill", target=("b1", "b2")), "dead")
    with pytest.raises(ClusterError, match="cannot start"):
        nemesis.heal_all()
    nemesis.heal_all()
    last = rows.last("dead")
    assert (last["effective"], last["nodes_without_effect"], last["nodes_not_known"]) == (False, ["b1"], ["b1"])


class KeepsRulesOfB2AtFirst(FakeShell):
    tries = 0

    def in_network_of(self, node: Node, script: str, arm: Switch | None = None, disarm: str | None = None) -> str:
        self.tries += node is B2 and disarm is not None
        if node is B2 and disarm is not None and self.tries == 1:
            raise ClusterError("b2: network script failed")
        return super().in_network_of(node, script, arm, disarm)


def test_rules_that_a_heal_removed_had_acted_until_then(rows: Rows) -> None:
    nemesis = Nemesis(KeepsRulesOfB2AtFirst(), lambda: VIEW, rows.journal, Clock.start(), Random(1))
    nemesis.inject(fault("throttle", target=("b1", "b2")), "thin")
    with pytest.raises(ClusterError, match="script failed"):
        nemesis.heal_all()
    nemesis.heal_all()
    assert (rows.last("thin")["effective"], rows.last("thin")["nodes_not_known"]) == (True, [])


def test_a_fault_that_could_not_be_applied_again_acted_in_part(nemesis: Nemesis, shell: FakeShell, rows: Rows) -> None:
    nemesis.inject(fault("isolate", target="b2"), "cut")
    nemesis.inject(fault("kill", target="b2"), "dead")
    shell.broken = True
    nemesis.heal("dead")
    shell.broken = False
    nemesis.heal_all()
    assert (rows.last("cut")["effective"], rows.last("cut")["nodes_not_known"]) == (False, ["b2"])


def test_a_shutdown_that_had_to_be_killed_ended_its_process_all_the_same(
    nemesis: Nemesis, shell: FakeShell, rows: Rows
) -> None:
    shell.shutdown_seconds = 1000
    nemesis.inject(fault("stop", target="b1"), "it")
    nemesis.heal_all()
    assert (rows.last("it")["effective"], rows.last("it")["nodes_not_known"]) == (False, ["b1"])


@pytest.mark.parametrize("later", [Effect.HOLDS, Effect.DOES_NOT_HOLD, Effect.NOT_KNOWN])
@pytest.mark.parametrize(
    ("first", "stays"),
    [
        ([Effect.HOLDS, Effect.DOES_NOT_HOLD], Effect.IN_PART),
        ([Effect.IN_PART], Effect.IN_PART),
        ([Effect.DOES_NOT_HOLD], Effect.DOES_NOT_HOLD),
    ],
)
def test_an_effect_that_once_failed_never_counts_as_whole_again(
    first: list[Effect], stays: Effect, later: Effect
) -> None:
    record = Record()
    for n, effect in enumerate([*first, later]):
        record.add(str(n), {B1: Seen(effect)})
    assert record.on(B1) is stays


def test_a_delay_that_also_lost_packets_acted_in_part(nemesis: Nemesis, shell: FakeShell, rows: Rows) -> None:
    shell.netem, shell.overflowed = False, 3
    nemesis.inject(fault("slow", target="b1"), "late")
    nemesis.heal_all()
    assert (rows.last("late")["nodes_without_effect"], rows.last("late")["nodes_not_known"]) == (["b1"], ["b1"])


def test_a_kill_that_failed_on_a_node_that_then_was_gone_may_have_killed_it(rows: Rows) -> None:
    shell = SparesB2()
    nemesis = Nemesis(shell, lambda: VIEW, rows.journal, Clock.start(), Random(1))
    with pytest.raises(ClusterError, match="SIGKILL failed"):
        nemesis.inject(fault("kill", target=("b1", "b2", "b3")), "half")
    assert rows.last("half")["nodes_not_known"] == ["b2"]
    shell.states[B2] = ProcessState.EXITED
    nemesis.heal_all()
    assert rows.last("half")["nodes_not_known"] == ["b2"]


def test_a_kill_that_failed_on_a_node_that_ran_on_did_not_kill_it(rows: Rows) -> None:
    nemesis = Nemesis(SparesB2(), lambda: VIEW, rows.journal, Clock.start(), Random(1))
    with pytest.raises(ClusterError, match="SIGKILL failed"):
        nemesis.inject(fault("kill", target=("b1", "b2")), "half")
    nemesis.heal_all()
    assert rows.last("half")["nodes_not_known"] == []


def test_a_wipe_that_was_refused_did_nothing(nemesis: Nemesis, rows: Rows) -> None:
    with pytest.raises(ClusterError, match="has not exited"):
        nemesis.inject(fault("wipe"), "gone")
    assert (rows.last("gone")["effective"], rows.last("gone")["nodes_not_known"]) == (False, [])


class Interrupted(Pause):
    """Somebody presses Ctrl-C while it is healed for the first time."""

    _heals: Iterator[int] = PrivateAttr(default_factory=count)

    def heal(self, shell: NodeShell, aim: Aim) -> None:
        if next(self._heals) == 0:
            raise KeyboardInterrupt
        super().heal(shell, aim)


def test_ctrl_c_in_one_heal_goes_up_when_all_others_are_healed(nemesis: Nemesis, shell: FakeShell) -> None:
    with nemesis:
        nemesis.inject(Interrupted(target="b1"), "first")
        nemesis.inject(fault("pause", target="c1"), "asleep")
        with pytest.raises(KeyboardInterrupt):
            nemesis.heal_all()
        assert [a.name for a in nemesis.active] == ["first"]
    assert nemesis.active == ()
    assert set(shell.states.values()) == {ProcessState.RUNNING}


def test_a_second_ctrl_c_breaks_healing_off(nemesis: Nemesis) -> None:
    for node in ("b1", "b2", "b3"):
        nemesis.inject(Interrupted(target=node), f"of-{node}")
    nemesis.inject(fault("pause", target="c1"), "asleep")
    with pytest.raises(KeyboardInterrupt):
        nemesis.heal_all()
    assert [a.name for a in nemesis.active] == ["of-b1", "of-b2", "of-b3", "asleep"]


def test_a_failed_heal_ends_no_run_and_is_journalled_as_not_healed(
    nemesis: Nemesis, shell: FakeShell, rows: Rows
) -> None:
    with nemesis:
        nemesis.inject(fault("partition"), "cut")
        nemesis.inject(fault("pause", target="c1"), "asleep")
        shell.broken = True
    assert [a.name for a in nemesis.active] == ["cut"]
    assert rows.last("asleep")["healed_ns"] is not None
    cut = rows.last("cut")
    assert cut["healed_ns"] is None
    assert json.loads(cut["evidence"])["healing"]["not_healed"] == "b1: network script failed: broken"


def test_sparing_an_unknown_injection_does_not_stop_the_other_heals(nemesis: Nemesis, shell: FakeShell) -> None:
    nemesis.inject(fault("kill"), "dead")
    with pytest.raises(ClusterError, match="'never' is no injection, pinned name or node"):
        nemesis.heal_all(except_=["never"])
    assert nemesis.active == ()
    assert set(shell.states.values()) == {ProcessState.RUNNING}


@pytest.mark.parametrize("kind", ["stop", "restart"])
def test_a_shutdown_that_had_to_be_killed_was_none(kind: str, nemesis: Nemesis, shell: FakeShell, rows: Rows) -> None:
    shell.shutdown_seconds = 100.0
    with nemesis:
        nemesis.inject(fault(kind), "short")
    assert not rows.last("short")["effective"]
    assert json.loads(rows.last("short")["evidence"])["injected"]["b1"]["exit_code"] == 137
    with nemesis:
        nemesis.inject(fault(kind, grace="6m"), "long")
    assert rows.last("long")["effective"]


@pytest.mark.parametrize("kind", ["kill", "stop", "restart"])
def test_a_process_that_ended_by_itself_was_not_ended_by_the_fault(
    kind: str, nemesis: Nemesis, shell: FakeShell, rows: Rows
) -> None:
    shell.ends_by_itself = {B1}
    nemesis.inject(fault(kind), "it")
    assert not rows.last("it")["effective"]


def test_a_stop_of_a_paused_node_lets_it_go_first(nemesis: Nemesis, shell: FakeShell) -> None:
    nemesis.inject(fault("pause"))
    nemesis.inject(fault("stop"))
    assert shell.done == ["b1 STOP", "b1 CONT", "b1 stop"]


@pytest.mark.parametrize(
    ("wrong", "name", "why"),
    [
        (fault("kill"), "first", "was injected as 'first' before"),
        (fault("kill"), "leader", "'leader' is a role or a node"),
        (fault("kill"), "b1", "'b1' is a role or a node"),
        (fault("kill", target="clients"), None, "there is no node to hit"),
        (fault("kill", target="folowers"), None, "did you mean 'followers'"),
        (fault("partition", to="leader"), None, "both sides are b1"),
        (fault("slow", delay="1s"), None, "the same traffic of b2, b3 is shaped by 'first' already"),
    ],
)
def test_an_impossible_injection_gives_its_reason_and_does_nothing(
    wrong: Fault, name: str | None, why: str, nemesis: Nemesis, shell: FakeShell, rows: Rows
) -> None:
    nemesis.inject(fault("throttle"), "first")
    done = list(shell.done)
    with pytest.raises((ScenarioError, ClusterError), match=why):
        nemesis.inject(wrong, name)
    assert [act for act in shell.done if not act.endswith("count")] == done
    assert [a.name for a in nemesis.active] == ["first"]


def test_two_shapes_of_different_planes_go_together(nemesis: Nemesis, shell: FakeShell) -> None:
    nemesis.inject(fault("throttle"))
    nemesis.inject(fault("throttle", plane="client"))
    assert {name: len(held) for name, held in shell.left.items()} == {"b2": 2, "b3": 2}


def test_healing_an_unknown_injection_lists_the_known_ones(nemesis: Nemesis) -> None:
    nemesis.inject(fault("pause"), "asleep")
    with pytest.raises(ScenarioError, match="nothing was injected as 'asleeep'; injected: asleep"):
        nemesis.heal("asleeep")


def test_data_of_a_running_node_is_not_wiped(nemesis: Nemesis, shell: FakeShell) -> None:
    with pytest.raises(ClusterError, match="wipe-1: b1 has not exited"):
        nemesis.inject(fault("wipe"))
    assert set(shell.files.values()) == {3}


def test_the_clients_machine_is_cut_but_never_entered(nemesis: Nemesis, shell: FakeShell) -> None:
    nemesis.inject(fault("partition", **{"from": "clients", "to": "all"}), "cut")
    assert set(shell.left) == {node.name for node in TOPOLOGY.nodes}
    assert CLIENTS not in nemesis.pins["cut"]


@pytest.mark.parametrize("kind", ["partition", "slow", "throttle", "kill", "pause"])
def test_a_journal_that_takes_nothing_more_leaves_no_fault_behind(kind: str, shell: FakeShell) -> None:
    nemesis = Nemesis(shell, lambda: VIEW, FullDisk(4), Clock.start(), Random(1))
    nemesis.inject(fault(kind))
    nemesis.inject(fault("pause", target="b3"))
    with nemesis, pytest.raises(ClusterError, match="No space left"):
        nemesis.heal_all()
    assert set(shell.states.values()) == {ProcessState.RUNNING}
    assert not any(shell.namespaces.values())
    assert not shell.held
    assert nemesis.active == ()


def test_a_journal_that_takes_nothing_more_keeps_no_started_node_waiting(shell: FakeShell) -> None:
    nemesis = Nemesis(shell, lambda: VIEW, FullDisk(5), Clock.start(), Random(1))
    nemesis.inject(fault("kill"), "dead")
    nemesis.inject(fault("partition"))
    with pytest.raises(OSError, match="No space left"):
        nemesis.heal("dead")
    assert not shell.held
