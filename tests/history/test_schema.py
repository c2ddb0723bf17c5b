"""The tables of a history, and how they are stored."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.history.paths import table_directory, write_table
from harness.history.schema import KEYS, TABLES, record_id, sequence_of, worker_of


@given(st.integers(0, (1 << 23) - 1), st.integers(0, (1 << 40) - 1))
def test_a_record_id_tells_its_worker_and_sequence(worker: int, sequence: int) -> None:
    record = record_id(worker, sequence)
    assert (worker_of(record), sequence_of(record)) == (worker, sequence)
    assert 0 <= record < 1 << 63


@pytest.mark.parametrize("table", KEYS)
def test_keys_are_columns(table: str) -> None:
    assert set(KEYS[table]) <= set(TABLES[table].names)


@pytest.mark.parametrize("table", TABLES)
def test_a_table_is_stored_with_its_schema(table: str, tmp_path: Path) -> None:
    path = write_table(tmp_path, table, TABLES[table].empty_table(), "worker-0")
    assert path == table_directory(tmp_path, table) / "worker-0.parquet"
    assert pq.read_schema(path).equals(TABLES[table])


def test_rows_are_stored_in_the_order_given(tmp_path: Path) -> None:
    rows = [
        {"topic": "t", "partition": p, "log_start": 0, "log_end": 1, "read_to": 1, "complete": True} for p in (2, 0, 1)
    ]
    path = write_table(tmp_path, "log_ends", pa.Table.from_pylist(rows, TABLES["log_ends"]))
    assert pq.read_table(path).to_pylist() == rows
