"""What an ``until`` awaits, on plain data."""

import pytest

from harness.core.topology import Node, Role, View
from harness.run.timeline import met
from harness.scenario.steps import Condition

B1, B2, B3 = (Node(f"b{i}", Role.BROKER, i, f"10.201.0.{10 + i}") for i in (1, 2, 3))
ALL = (B1, B2, B3)
NODES = {"old_leader": frozenset({B1}), "b2": frozenset({B2})}


def holds(condition: dict[str, object], view: View, acknowledged: int = 0, before: Node | None = B1) -> bool:
    def nodes(expression: object) -> frozenset[Node]:
        names = [expression] if isinstance(expression, str) else list(expression)  # type: ignore[call-overload]
        return frozenset().union(*(NODES[name] for name in names))

    return met(Condition.model_validate(condition), view, acknowledged, before, nodes)


@pytest.mark.parametrize(("isr", "expected"), [((B1,), True), ((B1, B2), False), ((B2,), False), ((), False)])
def test_an_isr_is_exactly_the_nodes_named(isr: tuple[Node, ...], expected: bool) -> None:
    assert holds({"isr": ["old_leader"]}, View(B1, ALL, isr, None)) is expected


@pytest.mark.parametrize(("leader", "expected"), [(B2, True), (B1, False), (None, False)])
def test_changed_is_another_leader_than_before(leader: Node | None, expected: bool) -> None:
    assert holds({"leader": "changed"}, View(leader, ALL, ALL, None)) is expected


@pytest.mark.parametrize(
    ("view", "expected"),
    [(View(None, ALL, (), None), True), (View(B1, ALL, ALL, None), False), (View(None, (), (), None), False)],
)
def test_none_is_a_partition_that_is_told_of_and_has_no_leader(view: View, expected: bool) -> None:
    assert holds({"leader": "none"}, view) is expected


def test_a_leader_may_be_named() -> None:
    assert holds({"leader": "b2"}, View(B2, ALL, ALL, None))
    assert not holds({"leader": "b2"}, View(B1, ALL, ALL, None))


@pytest.mark.parametrize(("acknowledged", "expected"), [(99, False), (100, True)])
def test_acknowledged_is_at_least_so_many(acknowledged: int, expected: bool) -> None:
    assert holds({"acknowledged": 100}, View(B1, ALL, ALL, None), acknowledged) is expected
