"""What a row of the table of faults tells, of whichever version."""

import json
from typing import Any

import pytest

from harness.core.faults import (
    ELECTION,
    Does,
    acted_on,
    by_end,
    cuts_only,
    does,
    hit,
    in_doubt,
    loses,
    may_be_behind,
    moves_controller,
    sides,
    started,
    supposing_it_acted,
    unreached,
)


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
        ("reorder", {Does.DELAYS}),
        ("flaky", {Does.DELAYS}),
        ("throttle", {Does.DELAYS}),
        ("corrupt", {Does.DELAYS}),
        ("duplicate", set()),
        ("of another tool", set()),
    ],
)
def test_the_effects_of_a_fault_in_an_old_run_follow_from_its_kind(kind: str, did: set[Does]) -> None:
    assert {what for what in Does if does(row(kind), what)} == did
    assert {what for what in Does if does(row(kind, **dict.fromkeys(Does)), what)} == did


def test_the_recorded_columns_decide_and_not_the_name_of_the_fault() -> None:
    assert does(row("power_cut", destroys_data=True), Does.DESTROYS_DATA)
    assert not does(row("wipe", destroys_data=False), Does.DESTROYS_DATA)


def test_a_run_of_before_denies_that_packets_come_late_that_are_lost_or_wait() -> None:
    assert all(does(row(kind, delays=False), Does.DELAYS) for kind in ("flaky", "throttle", "corrupt"))
    assert not any(does(row(kind, delays=False), Does.DELAYS) for kind in ("slow", "duplicate", "pause"))
    assert not does(row("flaky", cuts=False), Does.CUTS)


def test_a_fault_acted_where_there_is_evidence_and_on_some_nodes_if_not_on_all() -> None:
    assert acted_on(row()) == {"b1", "b2"}
    assert acted_on(row(effective=False)) == frozenset()
    assert acted_on(row(nodes_without_effect=[])) == {"b1", "b2"}
    assert acted_on(row(effective=False, nodes_without_effect=["b2"])) == {"b1"}
    assert acted_on(row(effective=False, nodes_without_effect=["b1", "b2"])) == frozenset()


@pytest.mark.parametrize(
    ("reported", "doubt", "acted_if_so"),
    [
        (row(injected_ns=1), False, {"b1", "b2"}),
        (row(effective=False, injected_ns=1), False, set()),
        (row(effective=False, injected_ns=None), True, {"b1", "b2"}),
        (row(effective=False, injected_ns=None, nodes_without_effect=["b2"]), True, {"b1", "b2"}),
        (row(effective=False, injected_ns=None, nodes_without_effect=["b2"], nodes_not_known=[]), False, {"b1"}),
        (row(effective=False, injected_ns=1, nodes_without_effect=["b1", "b2"], nodes_not_known=["b2"]), True, {"b2"}),
    ],
    ids=[
        "acted",
        "did not",
        "under way when the harness ended",
        "half way",
        "half way, measured",
        "on one not measured",
    ],
)
def test_a_fault_is_in_doubt_where_nothing_was_measured(
    reported: dict[str, Any], doubt: bool, acted_if_so: set[str]
) -> None:
    assert in_doubt(reported) is doubt
    assert acted_on(supposing_it_acted(reported)) == acted_if_so
    assert supposing_it_acted(reported)["effective"] == (acted_if_so == {"b1", "b2"})


def test_the_sides_of_a_cut_are_columns_and_were_evidence() -> None:
    assert sides(row(cut_from=["b1"], cut_to=["b2", "clients"])) == ({"b1"}, {"b2", "clients"})
    then = json.dumps({"sides": {"from": ["b1"], "to": ["b2"]}, "injected": {}})
    assert sides(row(evidence=then)) == ({"b1"}, {"b2"})
    assert sides(row(evidence=then, cut_from=None, cut_to=None)) == ({"b1"}, {"b2"})
    assert sides(row()) == ()


def test_when_a_process_ran_again_is_evidence_and_what_is_no_time_is_none() -> None:
    released = {"b1": {"at_ns": 7}, "b2": {"at_ns": None}, "b3": {}, "b4": [8], "b5": {"at_ns": "9"}, "b6": None}
    released["b7"] = {"at_ns": 1 << 63}
    assert started(row(evidence=json.dumps({"released": released}))) == {"b1": 7}


@pytest.mark.parametrize("of_another_shape", [[], None, 7, "b1", {"b1": 7}])
def test_evidence_of_another_shape_tells_nothing(of_another_shape: object) -> None:
    reported = row(evidence=json.dumps({"released": of_another_shape, "sides": of_another_shape}))
    assert (started(reported), sides(reported)) == ({}, ())
    bare = row(evidence=json.dumps(of_another_shape))
    assert (started(bare), sides(bare)) == ({}, ())


@pytest.mark.parametrize("broken", ["", "{", "9" * 5000, "[" * 100_000], ids=["empty", "cut off", "a number", "deep"])
def test_evidence_that_is_no_json_tells_nothing(broken: str) -> None:
    assert (started(row(evidence=broken)), sides(row(evidence=broken))) == ({}, ())


def at(nodes: str, effective: bool = True, **more: object) -> dict[str, object]:
    """A fault of nodes, or of both sides of a cut: ``b1 | b2 b3``."""
    sides = [side.split() for side in nodes.split("|")]
    evidence = {"sides": dict(zip(("from", "to"), sides, strict=True))} if len(sides) > 1 else {}
    names = [node for side in sides for node in side]
    return {"nodes": names, "effective": effective, "evidence": json.dumps(evidence), **more}


@pytest.mark.parametrize(
    ("row", "nodes"),
    [
        (at("b1 b2"), {"b1", "b2"}),
        (at("b1", effective=False), set()),
        (at("c1 clients"), set()),
        (at("b1 | b2 b3"), {"b1"}),
        (at("b1 b2 | c1"), {"b1", "b2"}),
        (at("clients | b1 b2"), {"b1", "b2"}),
        (at("b1 b2 b3", effective=False, nodes_without_effect=["b3"]), {"b1", "b2"}),
        (at("b1 b2 b3", cut_from=["b1"], cut_to=["b2", "b3"]), {"b1"}),
    ],
)
def test_a_fault_hits_the_nodes_it_acted_on_and_a_cut_hits_the_smaller_side(
    row: dict[str, object], nodes: set[str]
) -> None:
    assert hit(row, frozenset({"b1", "b2", "b3"})) == nodes


@pytest.mark.parametrize(
    ("more", "only"),
    [
        ({"cut_from": ["b1"], "cut_to": ["b2", "b3"]}, True),
        ({"cut_from": ["b1"], "cut_to": ["b2", "c1"]}, False),
        ({"kind": "partition", "nodes": ["b1", "b2"]}, True),
        ({"kind": "partition", "nodes": ["b1", "c1"]}, False),
        ({"kind": "isolate", "nodes": ["b1", "b2"]}, False),
    ],
    ids=["brokers", "a controller, too", "as it was reported before", "a controller then", "one from all"],
)
def test_a_cut_may_be_between_brokers_alone(more: dict[str, Any], only: bool) -> None:
    assert cuts_only(row(**more), frozenset({"b1", "b2", "b3"})) is only


@pytest.mark.parametrize(
    ("more", "apart"),
    [
        ({"plane": "all"}, True),
        ({"plane": "replication"}, True),
        ({"plane": "controller"}, False),
        ({"plane": "client"}, False),
        ({}, False),
        ({"plane": "all", "cuts": False}, False),
        ({"plane": "all", "cut_from": None}, False),
        ({"plane": "all", "cut_to": ["b3"]}, False),
        ({"plane": "all", "cut_from": ["b3"]}, False),
        ({"plane": "all", "cut_from": ["b1", "b2"], "cut_to": ["b3"]}, False),
        ({"plane": "all", "nodes_without_effect": ["b1"]}, False),
        ({"plane": "all", "nodes_without_effect": ["b2"]}, False),
        ({"plane": "all", "nodes_without_effect": ["b3"]}, True),
    ],
    ids=[
        *("all", "replication", "of the controller", "of clients", "not recorded", "late", "one side", "another side"),
        *("from another", "both from another", "not on one", "not on the other", "not on another"),
    ],
)
def test_a_cut_keeps_two_from_replicating_where_it_is_known_to_act_on_both_sides(
    more: dict[str, Any], apart: bool
) -> None:
    cut = {"nodes": ["b1", "b2", "b3"], "cuts": True, "cut_from": ["b1"], "cut_to": ["b2", "b3"], "both_ways": True}
    one = row(**cut | {"nodes_without_effect": []} | more)
    assert loses(one, "b1", "b2") is apart
    assert loses(one, "b2", "b1") is apart


@pytest.mark.parametrize("both_ways", [False, None])
def test_a_one_way_cut_does_not_lose_the_other_direction(both_ways: bool | None) -> None:
    cut = {"cuts": True, "plane": "all", "cut_from": ["b1"], "cut_to": ["b2"], "both_ways": both_ways}
    assert loses(row(**cut), "b1", "b2")
    assert not loses(row(**cut), "b2", "b1")


@pytest.mark.parametrize(
    ("more", "lost"),
    [
        ({"plane": "all"}, True),
        ({"plane": "replication"}, True),
        ({"plane": "controller"}, False),
        ({"plane": "client"}, False),
        ({}, False),
        ({"plane": "all", "nodes": ["b3"]}, False),
        ({"plane": "all", "nodes_without_effect": ["b1"]}, False),
        ({"plane": "all", "kind": "partition", "nodes": ["b1", "b2"]}, False),
        ({"plane": "all", "kind": "partition"}, True),
        ({"plane": "all", "kind": "slow"}, False),
    ],
    ids=[
        *("all", "replication", "of the controller", "of clients", "not recorded", "of another", "it did not act"),
        *("two sides that nobody knows", "one side", "late"),
    ],
)
def test_an_isolated_node_receives_and_sends_nothing(more: dict[str, Any], lost: bool) -> None:
    alone = row(**{"kind": "isolate", "nodes": ["b1"]} | more)
    assert loses(alone, "b1", "b2") is lost
    assert loses(alone, "b2", "b1") is lost
    assert not loses(alone, "b2", "b4")


#: A cut from all others, clients among them.
ALONE = {"kind": "isolate", "cuts_clients": True}


@pytest.mark.parametrize(
    ("more", "away"),
    [
        (ALONE, {"b1", "b2"}),
        ({**ALONE, "plane": "all", "nodes_without_effect": ["b2"]}, {"b1"}),
        ({**ALONE, "plane": "client"}, {"b1", "b2"}),
        ({**ALONE, "plane": "controller"}, set()),
        ({**ALONE, "plane": "replication"}, set()),
        ({**ALONE, "cuts_clients": False}, set()),
        ({**ALONE, "cuts_clients": None}, set()),
        ({"kind": "isolate"}, set()),
        ({"kind": "partition"}, set()),
        ({"kind": "slow"}, set()),
        ({"kind": "partition", "cut_from": ["b1"], "cut_to": ["clients", "b2"]}, {"b1"}),
        ({"kind": "partition", "cut_from": ["clients", "b2"], "cut_to": ["b1"]}, {"b1"}),
        ({"kind": "partition", "cut_from": ["b1"], "cut_to": ["b2"]}, set()),
    ],
    ids=[
        *("alone", "one of them", "from clients", "from controllers", "from others", "but not from clients"),
        *("from clients, as nobody knows", "as reported before", "two sides that nobody knows"),
        *("late", "two sides", "the other way round", "from brokers alone"),
    ],
)
def test_clients_reach_no_broker_that_is_cut_from_them(more: dict[str, Any], away: set[str]) -> None:
    assert unreached(row(**more)) == away


@pytest.mark.parametrize(
    ("more", "behind", "with_zookeeper"),
    [
        ({"kind": "isolate", "plane": "all"}, {"b1"}, {"b1"}),
        ({"kind": "isolate", "plane": "replication"}, set(), set()),
        ({"kind": "isolate"}, {"b1"}, {"b1"}),
        ({"kind": "slow", "plane": "client"}, set(), set()),
        ({"kind": "kill", "plane": "client"}, {"b1"}, {"b1"}),
        ({"kind": "wipe"}, set(), set()),
        ({"kind": "isolate", "effective": False}, set(), set()),
        ({"kind": "partition", "plane": "all"}, {"b1"}, {"b1"}),
        ({"kind": "partition", "nodes": ["b1", "b2"]}, set(), {"b1", "b2"}),
        ({"nodes": ["b1", "c1"], "cut_from": ["b1"], "cut_to": ["c1"], "effective": False}, set(), set()),
        ({"kind": "pause", "nodes": ["c1"]}, {"b1", "b2"}, {"b1", "b2"}),
        ({"nodes": ["b1", "b2"], "cut_from": ["b1"], "cut_to": ["b2"]}, set(), {"b1", "b2"}),
        ({"nodes": ["b1", "c1"], "cut_from": ["b1"], "cut_to": ["c1"]}, {"b1"}, {"b1", "b2"}),
        ({"nodes": ["b1", "c1"], "cut_from": ["c1"], "cut_to": ["b1"]}, {"b1"}, {"b1", "b2"}),
        ({"nodes": ["b1", "c1"], "cut_from": ["b1"], "cut_to": ["c1"], "plane": "replication"}, set(), set()),
        ({"nodes": ["b1", "clients"], "cut_from": ["b1"], "cut_to": ["clients"]}, set(), set()),
        ({"nodes": ["c1", "c2"], "cut_from": ["c1"], "cut_to": ["c2"]}, {"b1", "b2"}, {"b1", "b2"}),
    ],
    ids=[
        *("cut off", "from brokers alone", "from whom is not known", "late for clients", "dead", "wiped", "in vain"),
        *("one from all", "two from each other", "a cut in vain"),
        *("a halted controller", "from a broker", "from a controller", "and the other way"),
        *("what no controller hears", "from clients"),
        "controllers from each other",
    ],
)
def test_a_broker_may_be_behind_where_it_may_not_hear_from_the_controllers(
    more: dict[str, Any], behind: set[str], with_zookeeper: set[str]
) -> None:
    fault = row(**{"kind": "partition", "nodes": ["b1"], **more})
    brokers = frozenset({"b1", "b2"})
    assert {name for name in brokers if may_be_behind(fault, name, brokers, kraft=True)} == behind
    assert {name for name in brokers if may_be_behind(fault, name, brokers, False, brokers)} == with_zookeeper


@pytest.mark.parametrize(
    ("cut", "behind"),
    [
        (("b1", "z1"), {"b1"}),
        (("z1", "b1"), {"b1"}),
        (("b1,clients", "z1"), {"b1"}),
        (("b3", "z1"), {"b1", "b2", "b3"}),
        (("z1", "b1,b3"), {"b1", "b2", "b3"}),
        (("z1", "z2"), {"b1", "b2", "b3"}),
        (("b1", "b2"), set()),
        (("b1", "b3"), {"b1"}),
        (("b3", "b1"), {"b1"}),
        (("b3", "b1,b2"), {"b1", "b2"}),
        (("b1", "clients"), set()),
        (("b3", "clients"), set()),
        (("b1", "b3,clients"), {"b1"}),
    ],
    ids=" ".join,
)
def test_with_zookeeper_a_cut_keeps_metadata_from_those_that_it_parts_from_the_controller(
    cut: tuple[str, str], behind: set[str]
) -> None:
    """b3 is the controller: where it is cut from ZooKeeper, any broker may be it."""
    one, other = cut[0].split(","), cut[1].split(",")
    brokers, nodes = frozenset({"b1", "b2", "b3"}), [*one, *other]
    fault = row(kind="partition", nodes=nodes, cut_from=one, cut_to=other, plane="all")
    assert {name for name in brokers if may_be_behind(fault, name, brokers, False, frozenset({"b3"}))} == behind
    nowhere = {**fault, "nodes_without_effect": nodes}
    assert not any(may_be_behind(nowhere, name, brokers, False, frozenset({"b3"})) for name in brokers)


@pytest.mark.parametrize(
    ("more", "kraft", "moved"),
    [
        ({"kind": "kill", "nodes": ["c1"]}, True, {"b1", "b2", "b3"}),
        ({"kind": "kill", "nodes": ["c1", "b1"]}, True, {"b2", "b3"}),
        ({"kind": "kill", "nodes": ["b1"]}, True, set()),
        ({"kind": "kill", "nodes": ["b3"]}, False, {"b1", "b2"}),
        ({"kind": "kill", "nodes": ["b2", "b3"]}, False, {"b1"}),
        ({"kind": "kill", "nodes": ["b1", "b2"]}, False, set()),
        ({"kind": "isolate", "nodes": ["c1"], "plane": "all"}, True, {"b1", "b2", "b3"}),
        ({"kind": "isolate", "nodes": ["c1"], "plane": "replication"}, True, set()),
        ({"kind": "slow", "nodes": ["c1"], "plane": "all"}, True, set()),
        ({"nodes": ["b1", "c1"], "cut_from": ["b1"], "cut_to": ["c1"]}, True, set()),
        ({"nodes": ["c2", "c1"], "cut_from": ["c2"], "cut_to": ["c1"]}, True, set()),
        ({"kind": "kill", "nodes": ["c1"], "effective": False}, True, set()),
    ],
    ids=[
        *("a controller", "a broker, too", "a broker", "the controller", "another, too", "other brokers"),
        *("cut off", "from brokers alone", "late", "a broker from it", "controllers from each other", "in vain"),
    ],
)
def test_another_controller_is_elected_where_one_is_dead_or_cut_off(
    more: dict[str, Any], kraft: bool, moved: set[str]
) -> None:
    """b3 is the controller, with ZooKeeper."""
    fault, brokers = row(**{"kind": "partition", **more}), frozenset({"b1", "b2", "b3"})
    controllers = frozenset[str]() if kraft else frozenset({"b3"})
    assert {name for name in brokers if moves_controller(fault, name, brokers, kraft, controllers)} == moved


def test_a_fault_that_ended_on_one_node_first_is_a_row_for_each_end() -> None:
    whole = row("pause", injecting_ns=1, healing_ns=8, healed_ns=9, nodes_without_effect=["b2"], nodes_not_known=["b2"])
    assert by_end(whole) == [whole]
    asked = row(ELECTION, nodes=[], healed_ns=9)
    assert by_end(asked) == [asked]
    for damaged in (f'{{"ended": {{"b1": {1 << 63}}}}}', '{"ended": {"b1": "5"}}', '{"ended": [5]}'):
        assert len(by_end({**whole, "evidence": damaged})) == 1
    first, last = by_end({**whole, "evidence": '{"ended": {"b1": 5}}'})
    assert (acted_on(first), first["healing_ns"], first["healed_ns"], in_doubt(first)) == ({"b1"}, 5, 5, False)
    assert (last["nodes"], last["healing_ns"], last["healed_ns"], in_doubt(last)) == (["b2"], 8, 9, True)
    still = by_end({**whole, "healed_ns": None, "evidence": '{"ended": {"b1": 5}}'})
    assert [(one["nodes"], one["healed_ns"]) for one in still] == [(["b1"], 5), (["b2"], None)]
