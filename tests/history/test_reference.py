"""docs/history.md is made from the schemas, and leaves nothing out."""

import re
from pathlib import Path
from typing import Any

import duckdb
import pytest

from harness.history.reference import COLUMNS, EXAMPLE, PYTHON, ROWS, page
from harness.history.schema import TABLES, PositionEvent

ROOT = Path(__file__).parents[2]


def test_the_page_is_what_the_code_says() -> None:
    page_path = ROOT / "docs" / "history.md"
    assert page_path.read_text() == page(), "python -m harness.history.reference >docs/history.md"


def test_every_table_and_column_has_its_meaning_and_no_other_has() -> None:
    assert set(ROWS) == set(TABLES)
    columns = {f"{table}.{name}": name for table, schema in TABLES.items() for name in schema.names}
    assert set(columns.values()) <= set(COLUMNS) <= {*columns, *columns.values()}


def test_every_event_of_a_position_is_described() -> None:
    assert set(re.findall(r"[\w-]+", COLUMNS["event"])) >= {*PositionEvent}


def test_its_query_reads_the_shipped_example() -> None:
    found = dict(duckdb.sql(EXAMPLE.replace("examples/", f"{ROOT}/examples/")).fetchall())
    assert found["ok"] == 6734


def test_its_lines_of_python_read_the_shipped_example(capsys: pytest.CaptureFixture[str]) -> None:
    known: dict[str, Any] = {}
    exec(PYTHON.replace("examples/", f"{ROOT}/examples/"), known)
    assert known["acknowledged"].num_rows == 6734
    assert re.search(r"^0 +6734$", capsys.readouterr().out, re.MULTILINE)
