"""A run directory has one owner, which knows its state, without Spark."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.core.errors import HistoryError
from harness.history.paths import table_directory, write_table
from harness.history.schema import FORMER, TABLES
from harness.history.stored_run import StoredRun
from tests.checkers.notation import by_hand, write
from tests.history.test_run_file import run_file


@pytest.fixture
def run(tmp_path: Path) -> StoredRun:
    lines = ("send a ok @0", "final a @0", "end 0..1 p1", "end 0..1", "fault late b2 5..6", "fault early b1 2..3")
    write(tmp_path, [by_hand(*lines, "place assign r1 t0")])
    return StoredRun.open(tmp_path)


def test_faults_come_in_the_order_of_their_injection(run: StoredRun) -> None:
    assert [row["fault"] for row in run.faults] == ["early", "late"]


def test_ends_are_by_partition(run: StoredRun) -> None:
    assert [(of, row["log_end"]) for of, row in run.ends.items()] == [(("trial", 0), 1), (("trial", 1), 1)]


def test_brokers_have_names_by_their_ids_and_other_nodes_are_none(run: StoredRun) -> None:
    assert run.brokers
    roles = {node.name: node.role for node in run.file.nodes}
    assert {roles[name] for name in run.brokers.values()} == {"broker"}


def test_the_latest_time_and_the_size_are_in_the_footers(run: StoredRun) -> None:
    assert (run.last_ns, run.records, run.count("faults")) == (1_000_000_000, 2, 2)


def test_a_damaged_file_is_named_when_its_rows_are_read(run: StoredRun) -> None:
    [path] = run.files("log_ends")
    whole = path.read_bytes()
    path.write_bytes(whole[:4] + bytes(60) + whole[64:])
    with pytest.raises(HistoryError, match="log_ends: "):
        _ = StoredRun.open(run.directory).ends


@pytest.mark.parametrize(("table", "column"), [(table, name) for table, names in FORMER.items() for name in names])
def test_a_run_with_a_former_column_is_read_as_before(table: str, column: str, run: StoredRun) -> None:
    rows = run.rows(table)
    earlier = pa.Table.from_pylist(rows, TABLES[table])
    earlier = earlier.append_column(column, pa.array([7] * len(earlier), pa.int64()))
    for file in table_directory(run.directory, table).glob("*.parquet"):
        file.unlink()
    pq.write_table(earlier, table_directory(run.directory, table) / "earlier.parquet")
    again = StoredRun.open(run.directory).rows(table)
    assert [{name: value for name, value in row.items() if name != column} for row in again] == rows


def test_a_missing_table_is_named(run: StoredRun) -> None:
    for path in table_directory(run.directory, "sends").iterdir():
        path.unlink()
    with pytest.raises(HistoryError, match="history/sends: no Parquet here"):
        StoredRun.open(run.directory)


def test_a_part_that_run_json_names_the_writer_of_and_that_is_not_there_is_named(tmp_path: Path) -> None:
    clients = {"producer 0": {}, "consumer 3": {}, "final 1000": {}, "replica 1002": {}, "admin 0": {}}
    rows = by_hand("send a ok @0", "final a @0", "end 0..1").rows
    for table in ("sends", "log_ends"):
        write_table(tmp_path, table, pa.Table.from_pylist(rows[table], TABLES[table]))
    for table in ("faults", "observations"):
        write_table(tmp_path, table, TABLES[table].empty_table())
    for reader in ("3.1", "1000"):
        write_table(tmp_path, "reads", TABLES["reads"].empty_table(), reader)
    write_table(tmp_path, "positions", TABLES["positions"].empty_table(), "3")
    run_file(clients=clients).write(tmp_path)
    assert StoredRun.open(tmp_path).missing == ["reads of replica 1002 are not there"]
    (table_directory(tmp_path, "positions") / "3.parquet").unlink()
    run_file(clients={**clients, "producer 1": {}, "transactor 0": {}}).write(tmp_path)
    assert StoredRun.open(tmp_path).missing == [
        "positions of consumer 3 are not there",
        "reads of replica 1002 are not there",
        "sends of producer 1 are not there",
        "transactions of transactor 0 are not there",
    ]
    run_file(clients={"ticker 4": {}}, writes={"ticker 4": ("sends",)}).write(tmp_path)
    assert StoredRun.open(tmp_path).missing == ["sends of ticker 4 are not there"]


@pytest.mark.parametrize(
    ("table", "column", "value", "says"),
    [
        ("sends", "outcome", None, "1 rows have no outcome"),
        ("sends", "record_id", None, "1 rows have no record_id"),
        ("log_ends", "complete", None, "2 rows have no complete"),
        ("sends", "outcome", "OK", "outcome is 'OK' in some rows: it is one of ok, fail, info"),
        ("reads", "phase", "last", "phase is 'last' in some rows: it is one of live, final, replica"),
        ("positions", "event", "assigned", "event is 'assigned' in some rows: it is one of assign, revoke, lost, "),
    ],
)
def test_rows_that_no_checker_would_count_are_refused(
    table: str, column: str, value: object, says: str, run: StoredRun
) -> None:
    [path] = run.files(table)
    rows = pq.read_table(path)
    kind = TABLES[table].field(column).type
    index = rows.column_names.index(column)
    other = rows.set_column(index, pa.field(column, kind), pa.array([value] * rows.num_rows, kind))
    pq.write_table(other, path)
    with pytest.raises(HistoryError, match=f"^{path}: {says}"):
        StoredRun.open(run.directory)
