"""What a row of the table of faults tells, of whichever version."""

import json
from typing import Any

import pytest

from harness.core.faults import Does, acted_on, does, sides


def row(kind: str = "kill", effective: bool = True, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "nodes": ["b1", "b2"], "effective": effective, "evidence": "{}", **more}


@pytest.mark.parametrize(
    ("kind", "did"),
    [
        ("kill", {Does.ENDS_PROCESS}),
        ("stop", {Does.ENDS_PROCESS}),
        ("restart", {Does.ENDS_PROCESS}),
        ("pause", {Does.HALTS_PROCESS}),
        ("wipe", {Does.DESTROYS_DATA}),
        ("isolate", {Does.CUTS}),
        ("slow", {Does.DELAYS}),
        ("flaky", set()),
        ("of another tool", set()),
    ],
)
def test_a_run_of_before_tells_by_the_kind_what_a_fault_did(kind: str, did: set[Does]) -> None:
    assert {what for what in Does if does(row(kind), what)} == did
    assert {what for what in Does if does(row(kind, **dict.fromkeys(Does)), what)} == did


def test_what_is_recorded_counts_whatever_a_fault_is_called() -> None:
    assert does(row("power_cut", destroys_data=True), Does.DESTROYS_DATA)
    assert not does(row("wipe", destroys_data=False), Does.DESTROYS_DATA)


def test_a_fault_acted_where_there_is_evidence_and_on_some_nodes_if_not_on_all() -> None:
    assert acted_on(row()) == {"b1", "b2"}
    assert acted_on(row(effective=False)) == frozenset()
    assert acted_on(row(nodes_without_effect=[])) == {"b1", "b2"}
    assert acted_on(row(effective=False, nodes_without_effect=["b2"])) == {"b1"}
    assert acted_on(row(effective=False, nodes_without_effect=["b1", "b2"])) == frozenset()


def test_the_sides_of_a_cut_are_columns_and_were_evidence() -> None:
    assert sides(row(cut_from=["b1"], cut_to=["b2", "clients"])) == ({"b1"}, {"b2", "clients"})
    then = json.dumps({"sides": {"from": ["b1"], "to": ["b2"]}, "injected": {}})
    assert sides(row(evidence=then)) == ({"b1"}, {"b2"})
    assert sides(row(evidence=then, cut_from=None, cut_to=None)) == ({"b1"}, {"b2"})
    assert sides(row()) == ()
