"""Which finders a checker of records runs, and on what. Without Spark."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest

from checkers.checker import RecordChecker
from checkers.scans import Scan, Scans
from harness.core.anomalies import REWRITTEN_OFFSET


@dataclass
class Counted:
    """Scans of known counts. ``waited``: the scans whose count was asked for."""

    candidates_there: int
    shared: int
    compares_all: bool
    every_record: str = "every record"

    def __post_init__(self) -> None:
        self.history = SimpleNamespace(compares_all=self.compares_all)
        self.waited: list[Scan] = []

    def count(self, scan: Scan, _name: str) -> int:
        self.waited.append(scan)
        return self.candidates_there if scan is Scan.RECORD_BITS else self.shared

    def candidates(self, _bits: str, number: int) -> str:
        return f"{number} candidates"


def looked_at(checker: RecordChecker, scans: Counted) -> list[Any]:
    """What the finders get, one after the other."""
    return [question() for question in checker.questions(cast(Scans, scans))]


def of(in_order: str | None) -> RecordChecker:
    return RecordChecker(REWRITTEN_OFFSET, candidates="found", in_order=in_order, find=lambda rows: cast(Any, rows))


@pytest.mark.parametrize(
    ("there", "shared", "compares_all", "expected"),
    [
        (0, 0, False, []),
        (3, 0, False, ["3 candidates"]),
        (3, 2, False, ["3 candidates", "every record"]),
        (0, 2, False, ["every record"]),
        (3, 0, True, ["every record"]),
        (0, 2, True, ["every record"]),
        (0, 0, True, []),
    ],
)
def test_a_finder_that_compares_records_gets_all_where_the_log_order_shows_more(
    there: int, shared: int, compares_all: bool, expected: list[str]
) -> None:
    assert looked_at(of("shared"), Counted(there, shared, compares_all)) == expected


@pytest.mark.parametrize("compares_all", [True, False])
def test_another_finder_gets_candidates_and_does_not_wait_for_the_log_order(compares_all: bool) -> None:
    scans = Counted(3, 2, compares_all)
    assert looked_at(of(None), scans) == ["3 candidates"]
    assert Scan.LOG_ORDER not in scans.waited


def test_candidates_do_not_wait_for_the_log_order() -> None:
    scans = Counted(3, 2, compares_all=False)
    questions = of("shared").questions(cast(Scans, scans))
    assert cast(Any, next(questions)()) == "3 candidates"
    assert scans.waited == [Scan.RECORD_BITS]


@pytest.mark.parametrize(
    ("in_order", "there", "compares_all", "at_once"),
    [("shared", 3, False, False), ("shared", 3, True, True), ("shared", 0, True, False), (None, 3, False, True)],
)
def test_a_checker_applies_at_once_if_the_log_order_cannot_add_candidates(
    in_order: str | None, there: int, compares_all: bool, at_once: bool
) -> None:
    assert of(in_order).applies_at_once(cast(Scans, Counted(there, 0, compares_all))) is at_once
