"""Which nodes a target means."""

from dataclasses import replace
from random import Random

import pytest
from pydantic import TypeAdapter, ValidationError

from harness.core.errors import ClusterError, ScenarioError
from harness.core.topology import Node, Role, Topology, View
from nemesis.targets import ROLES, Expression, check_names, check_new_name, resolve

from .conftest import B1, B2, B3, C1, CLIENTS, TOPOLOGY, VIEW

Z1 = Node("z1", Role.ZOOKEEPER, 1, "10.0.0.201")
WITH_ZOOKEEPER = Topology((B1, B2, B3, Z1), CLIENTS)
LEADERLESS = View(leader=None, replicas=(), isr=(), controller=None)
NAMES = [node.name for node in TOPOLOGY.nodes]


def who(expression: Expression, view: View = VIEW, topology: Topology = TOPOLOGY, seed: int = 0) -> tuple[Node, ...]:
    return resolve(expression, view, topology, {"old_leader": (B3,)}, Random(seed))


MEANT: dict[str, tuple[Node, ...]] = {
    "leader": (B1,),
    "followers": (B2, B3),
    "controller": (C1,),
    "coordinator": (B2,),
    "brokers": (B1, B2, B3),
    "controllers": (C1,),
    "all": (B1, B2, B3, C1),
    "clients": (CLIENTS,),
}


@pytest.mark.parametrize("role", MEANT)
def test_a_role_means_the_node_that_has_it(role: str) -> None:
    assert who(role) == MEANT[role]


def test_zookeeper_means_its_nodes_and_the_controller_is_then_a_broker() -> None:
    assert who("zookeeper", topology=WITH_ZOOKEEPER) == (Z1,)
    assert who("controller", replace(VIEW, controller=B2), WITH_ZOOKEEPER) == (B2,)


def test_every_role_is_tried() -> None:
    assert {*MEANT, "zookeeper"} == set(ROLES)


def test_nodes_and_pins_mean_themselves() -> None:
    assert who("b2") == (B2,)
    assert who("old_leader") == (B3,)


def test_a_list_means_all_of_it_each_node_once() -> None:
    assert who(["b2", "followers", "old_leader", "clients"]) == (B2, B3, CLIENTS)  # type: ignore[arg-type]


def test_one_of_draws_from_the_seed() -> None:
    drawn = [who("one-of followers", seed=seed) for seed in range(20)]
    assert set(drawn) == {(B2,), (B3,)}
    assert drawn == [who("one-of followers", seed=seed) for seed in range(20)]


@pytest.mark.parametrize("role", ["leader", "followers", "controller", "coordinator", "one-of followers"])
def test_a_role_that_nobody_has_now_is_the_clusters_error(role: str) -> None:
    with pytest.raises(ClusterError, match="no node has this role now"):
        who(role, LEADERLESS)


def test_a_kind_of_node_that_the_cluster_never_has_is_the_scenarios_error() -> None:
    with pytest.raises(ScenarioError, match="'zookeeper': this cluster has no such nodes"):
        who("zookeeper")
    with pytest.raises(ScenarioError, match="'controllers': this cluster has no such nodes"):
        who("controllers", topology=WITH_ZOOKEEPER)


@pytest.mark.parametrize("expression", ["leadr", "one-of leadr", ("b1", "leadr")])
def test_a_name_that_means_nothing_is_refused_before_anything_starts(expression: Expression) -> None:
    with pytest.raises(ScenarioError, match="'leadr' is no role, node or pinned name; did you mean 'leader'"):
        check_names(expression, NAMES, [])
    with pytest.raises(ScenarioError, match="did you mean 'leader'"):
        who(expression)


def test_a_name_with_nothing_near_it_gets_the_list() -> None:
    with pytest.raises(ScenarioError, match=r"known: leader, followers, .*, c1, mine, or one-of"):
        check_names("xyzzy", NAMES, ["mine"])


@pytest.mark.parametrize("expression", ["leader", "b1", "mine", "one-of one-of brokers", ("clients", "one-of mine")])
def test_names_that_mean_something_pass(expression: Expression) -> None:
    check_names(expression, NAMES, ["mine"])


@pytest.mark.parametrize("name", ["leader", "b1", "one-of us"])
def test_no_pin_hides_a_role_or_a_node(name: str) -> None:
    with pytest.raises(ScenarioError, match="choose another name"):
        check_new_name(name, NAMES)
    check_new_name("old_leader", NAMES)


@pytest.mark.parametrize("written", ["", [], None, 3, ["b1", ""], {"b1": 1}])
def test_an_empty_or_invalid_target_is_refused(written: object) -> None:
    with pytest.raises(ValidationError, match="names no target"):
        TypeAdapter(Expression).validate_python(written)


@pytest.mark.parametrize("written", ["leader", ["b1", "b2"]])
def test_a_name_or_a_list_of_names_is_a_target(written: object) -> None:
    assert TypeAdapter(Expression).validate_python(written) in ("leader", ("b1", "b2"))
