"""Mechanisms that act as long as a helper runs: the death of a helper revokes the effect recorded before."""

import json
from random import Random
from typing import Any

import pytest

from harness.core.clock import Clock
from nemesis.catalogue import FAULTS
from nemesis.fault import Aim
from nemesis.mechanisms import iptables, netem, nfqueue
from nemesis.mechanisms.mechanism import Either
from nemesis.nemesis import Nemesis

from .conftest import B1, B2, VIEW, FakeShell, Rows

LATE = FAULTS["slow"].model_validate({"target": "leader", "delay": "1s"})
HELPED = {
    "slow": {"target": "leader", "delay": "1s"},
    "reorder": {"target": "leader", "share": "25%"},
    "flaky": {"target": "leader", "loss": "2%", "correlation": "50%"},
}
RESTART = FAULTS["restart"].model_validate({"target": "b1"})
START = FAULTS["start"].model_validate({"target": "b1"})


@pytest.fixture
def nemesis(shell: FakeShell, rows: Rows) -> Nemesis:
    shell.netem = False
    return Nemesis(shell, lambda: VIEW, rows.journal, Clock.start(), Random(1))


@pytest.mark.parametrize("kind", HELPED)
def test_a_helper_runs_beside_its_mechanism_until_the_heal(
    kind: str, nemesis: Nemesis, shell: FakeShell, rows: Rows
) -> None:
    nemesis.inject(FAULTS[kind].model_validate(HELPED[kind]), "it")
    assert shell.done == ["b1 network", "b1 helper"]
    (script,) = shell.helpers.values()
    assert script.startswith(f"exec python3 -S -E - hold {Aim('it', {}).tag} ")
    nemesis.heal("it")
    assert shell.helpers == {}
    assert shell.left == {}
    row = rows.last("it")
    assert row["effective"]
    assert json.loads(row["evidence"])["healing"]["b1"]["by"] == "nfqueue"


def test_a_kernel_with_netem_needs_no_helper(nemesis: Nemesis, shell: FakeShell, rows: Rows) -> None:
    shell.netem = True
    nemesis.inject(LATE, "it")
    assert shell.helpers == {}
    nemesis.heal("it")
    row = rows.last("it")
    assert row["effective"]
    assert json.loads(row["evidence"])["healing"]["b1"]["by"] == "netem"


@pytest.mark.parametrize("kind", HELPED)
def test_the_death_of_a_helper_revokes_the_effect_recorded_before(
    kind: str, nemesis: Nemesis, shell: FakeShell, rows: Rows
) -> None:
    fault = FAULTS[kind].model_validate(HELPED[kind])
    nemesis.inject(fault, "it")
    nemesis.inject(fault.model_copy(update={"target": "b2"}), "other")
    nemesis.inject(RESTART, "again")
    assert rows.last("it")["effective"]
    shell.helpers = {key: script for key, script in shell.helpers.items() if key[0] != B1}
    nemesis.heal_all()
    assert [rows.last(name)["effective"] for name in ("it", "other")] == [False, True]
    assert json.loads(rows.last("it")["evidence"])["healing"]["b1"]["wrong"].endswith("did not answer: it has ended")


def test_a_helper_that_runs_but_does_not_answer_is_not_reported_as_ended(
    nemesis: Nemesis, shell: FakeShell, rows: Rows
) -> None:
    nemesis.inject(LATE, "it")
    shell.hung = {B1}
    nemesis.heal("it")
    row = rows.last("it")
    assert (row["effective"], row["nodes_not_known"]) == (False, ["b1"])
    assert json.loads(row["evidence"])["healing"]["b1"]["wrong"].endswith("did not answer: it runs")


def test_an_engine_that_does_not_say_whether_a_helper_runs_hides_no_counters(
    nemesis: Nemesis, shell: FakeShell, rows: Rows
) -> None:
    nemesis.inject(LATE.model_copy(update={"target": ("b1", "b2")}), "it")
    shell.hung, shell.unseen_helpers = {B1}, True
    nemesis.heal("it")
    row = rows.last("it")
    assert (row["effective"], row["nodes_without_effect"]) == (False, ["b1"])
    assert "nobody knows whether it runs" in json.loads(row["evidence"])["healing"]["b1"]["wrong"]


def test_a_helper_that_died_on_one_of_two_nodes_is_reported_for_that_node(
    nemesis: Nemesis, shell: FakeShell, rows: Rows
) -> None:
    nemesis.inject(LATE.model_copy(update={"target": ("b1", "b2")}), "it")
    del shell.helpers[B2, Aim("it", {}).tag]
    nemesis.heal("it")
    assert rows.last("it")["nodes_without_effect"] == ["b2"]


def test_a_node_that_was_started_again_has_its_helper_again(nemesis: Nemesis, shell: FakeShell, rows: Rows) -> None:
    nemesis.inject(LATE, "it")
    shell.helpers.clear()
    nemesis.inject(RESTART)
    assert len(shell.helpers) == 1
    assert not rows.last("it")["effective"], "it had died before that"


def test_a_helper_that_died_is_not_started_again_as_if_nothing_had_been(
    nemesis: Nemesis, shell: FakeShell, rows: Rows
) -> None:
    nemesis.inject(LATE, "it")
    shell.helpers.clear()
    nemesis.inject(START)
    assert shell.helpers == {}
    nemesis.heal("it")
    assert not rows.last("it")["effective"]


def test_packets_that_were_lost_for_there_was_no_room_were_not_late(
    nemesis: Nemesis, shell: FakeShell, rows: Rows
) -> None:
    nemesis.inject(LATE, "it")
    shell.overflowed = 3
    nemesis.heal("it")
    assert not rows.last("it")["effective"]
    assert "3 packets were lost" in rows.last("it")["evidence"]


def test_a_rule_that_somebody_removed_takes_the_effect_back(nemesis: Nemesis, shell: FakeShell, rows: Rows) -> None:
    nemesis.inject(LATE, "it")
    shell.flushed = {B1}
    nemesis.heal("it")
    assert not rows.last("it")["effective"]


def probed(rows: Rows, name: str) -> Any:
    return json.loads(rows.last(name)["evidence"]).get("probed")


def test_round_trips_are_timed_once_it_is_known_to_act(nemesis: Nemesis, shell: FakeShell, rows: Rows) -> None:
    nemesis.inject(LATE, "it")
    nemesis.heal("it")
    assert shell.done.index("b1 probe") > shell.done.index("b1 count")
    asked = {"delay": 1000.0, "jitter": 0.0}
    measured = {"asked": asked, "p50": 250.0, "p95": 250.0, "tried": 16, "answered": 16}
    assert probed(rows, "it") == {"b1": {"round_trip_ms": measured}}


def test_no_traffic_of_our_own_proves_that_a_fault_acts(nemesis: Nemesis, shell: FakeShell, rows: Rows) -> None:
    shell.silent = {B2}
    nemesis.inject(LATE.model_copy(update={"target": ("b1", "b2")}), "it")
    nemesis.heal("it")
    assert "b1 probe" not in shell.done
    assert probed(rows, "it") is None


def test_no_traffic_of_our_own_proves_that_another_fault_acts(nemesis: Nemesis, shell: FakeShell, rows: Rows) -> None:
    nemesis.inject(FAULTS["partition"].model_validate({"from": "b2", "to": "b3"}), "cut")
    nemesis.inject(LATE, "it")
    nemesis.heal("it")
    assert probed(rows, "it") is None
    nemesis.inject(RESTART)
    nemesis.inject(LATE, "again")
    nemesis.heal("again")
    assert probed(rows, "again"), "that the cut acts was counted before the restart"


def test_round_trips_are_timed_to_those_that_live(nemesis: Nemesis, shell: FakeShell, rows: Rows) -> None:
    nemesis.inject(LATE.model_copy(update={"target": "b2"}), "it")
    nemesis.inject(FAULTS["kill"].model_validate({"target": "b1"}), "dead")
    nemesis.heal("it")
    assert probed(rows, "it")["b2"]["round_trip_ms"]["tried"] == 12, "four to each of b3, c1 and the clients' machine"


def test_a_delay_that_is_too_long_to_wait_for_is_not_timed(nemesis: Nemesis, shell: FakeShell, rows: Rows) -> None:
    nemesis.inject(LATE.model_copy(update={"delay": 20.0}), "it")
    nemesis.heal("it")
    assert probed(rows, "it") == {} or probed(rows, "it") is None
    assert rows.last("it")["effective"]


def test_of_two_mechanisms_one_may_need_a_helper() -> None:
    assert not Either(netem.Lose(0.5), iptables.Lose(0.5)).helped
    assert Either(netem.Lose(0.5, 0.5), nfqueue.Lose(0.5, 0.5)).helped
