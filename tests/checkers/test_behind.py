"""Which brokers may have been ZooKeeper's controller while a fault was in force."""

from typing import Any

import pyarrow as pa
import pytest

from checkers.evidence.behind import reported_controllers
from harness.history.schema import OBSERVATIONS
from tests.checkers.notation import SECOND, by_hand
from tests.checkers.test_holders import NAMES

BROKERS = frozenset(NAMES.values())


def controller_reports(*reports: tuple[str, int, int]) -> pa.Table:
    """Reports of a broker, at a second, that this broker is the controller."""
    lines = (f"saw {by} @{at} leader=1 epoch=0 isr=1 controller={number}" for by, at, number in reports)
    return pa.Table.from_pylist(by_hand(*lines).rows["observations"], OBSERVATIONS)


def fault(nodes: str, since: int, until: int, kind: str = "slow") -> dict[str, Any]:
    [row] = by_hand(f"fault f {nodes} {since}..{until} kind={kind} plane=all").rows["faults"]
    return row


@pytest.mark.parametrize(
    ("reports", "under"),
    [
        ([("b1", 40, 2), ("b1", 60, 2)], {"b2"}),
        ([("b1", 10, 3), ("b1", 20, 2), ("b1", 70, 2)], {"b2"}),
        ([("b1", 10, 3), ("b1", 41, 2), ("b1", 70, 2)], {"b2", "b3"}),
        ([("b1", 10, 2), ("b1", 55, 3), ("b1", 70, 3)], {"b2", "b3"}),
        ([("b1", 10, 2), ("b1", 71, 3)], {"b2", "b3"}),
        ([("b1", 10, 2), ("b1", 30, 2), ("b2", 50, 3), ("b1", 65, 2)], {"b2", "b3"}),
        ([("b1", 10, 2), ("b1", 80, 4), ("b1", 90, 3), ("b2", 50, 3)], {"b2", "b3", "b4"}),
        ([*(("b1", at, 2) for at in range(10, 81)), ("b1", 81, 3)], {"b2"}),
        ([*(("b1", at, 2) for at in range(10, 70)), ("b1", 71, 3)], {"b2", "b3"}),
        ([("b1", 80, 2)], {"b2"}),
        ([("b1", 50, 9)], BROKERS),
        ([("b1", 50, -1)], BROKERS),
        ([], BROKERS),
    ],
    ids=[
        *("the same", "since before", "changed just before", "changed meanwhile", "changed in a silence"),
        *("another broker says otherwise", "another says what one says last"),
        *("changed after it", "changed as it may have been", "the first report"),
        *("no broker of the run", "nobody", "not recorded"),
    ],
)
def test_a_reported_controller_is_the_one(reports: list[tuple[str, int, int]], under: set[str]) -> None:
    slow = fault("b1", 50, 60)
    assert reported_controllers(controller_reports(*reports), NAMES).under([slow], BROKERS) == [under]


@pytest.mark.parametrize(
    ("other", "under"),
    [
        (fault("b2", 10, 20, "pause"), {"b2"}),
        (fault("b2", 10, 31, "pause"), BROKERS),
        (fault("b2", 79, 90, "kill"), BROKERS),
        (fault("b2", 81, 90, "kill"), {"b2"}),
        (fault("b3", 50, 60, "kill"), {"b2"}),
        (fault("b1,b3,b4", 50, 60, "kill"), {"b2"}),
        (fault("z1", 50, 60, "slow"), BROKERS),
        (fault("b2", 50, 60, "wipe"), {"b2"}),
    ],
    ids=[
        "long before",
        "just before",
        "just after",
        "long after",
        "of another",
        "of all others",
        "of ZooKeeper",
        "that stops nothing",
    ],
)
def test_another_fault_may_have_made_any_broker_the_controller(other: dict[str, Any], under: set[str]) -> None:
    slow = fault("b1", 50, 60)
    known = reported_controllers(controller_reports(("b1", 10, 2), ("b1", 90, 2)), NAMES)
    assert known.under([other, slow], BROKERS)[1] == under


def test_times_are_in_order_whatever_the_order_of_the_rows() -> None:
    slow = fault("b1", 50, 60)
    rows = controller_reports(("b1", 70, 2), ("b3", 50, 2), ("b1", 41, 2), ("b1", 10, 3))
    assert reported_controllers(rows, NAMES).under([slow], BROKERS) == [{"b2", "b3"}]
    assert rows["at_ns"][0].as_py() == 70 * SECOND
