"""docs/anomalies.md is made from the registry, and leaves nothing out."""

from pathlib import Path

from checkers.catalogue import CHECKERS, WITHOUT_FINAL_READ
from harness.core.anomalies import BY_NAME
from harness.core.verdict import CauseOf, Finding
from harness.report.anomalies import ELSEWHERE, EVENTS, KEYS, page

PAGE = Path(__file__).parents[2] / "docs" / "anomalies.md"


def test_the_page_is_what_the_code_says() -> None:
    assert PAGE.read_text() == page(), "python -m harness.report.anomalies >docs/anomalies.md"


def test_every_anomaly_has_its_place() -> None:
    assert {f"## {name}" for name in BY_NAME} <= set(page().splitlines())


def test_its_table_of_others_has_what_checkers_find() -> None:
    assert set(ELSEWHERE) <= {checker.anomaly for checker in (*CHECKERS, *WITHOUT_FINAL_READ)}


def test_every_key_of_a_finding_and_every_event_has_its_row() -> None:
    assert {*KEYS, "source", "remedy"} == set(Finding.model_fields)
    assert set(EVENTS) == set(CauseOf)
