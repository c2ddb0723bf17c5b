"""A stored run that cannot be judged is refused in one line, which names the file and the difference."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from checkers.history import History, spark_schema
from harness.core.errors import HistoryError
from harness.history.paths import parts, table_directory, write_table
from harness.history.run_file import RUN_FILE
from harness.history.schema import FAULTS, TABLES
from harness.history.stored_run import OPTIONAL
from tests.checkers.notation import by_hand, without_keys, write


@pytest.fixture
def run(tmp_path: Path) -> Path:
    write(tmp_path, [by_hand("send a ok @0", "final a @0", "live a @0", "end 0..1", "fault cut b1 2..3")])
    return tmp_path


@pytest.mark.parametrize("table", TABLES)
def test_every_table_of_the_contract_can_be_read_by_spark(table: str) -> None:
    assert spark_schema(TABLES[table]).names == TABLES[table].names


def test_a_run_is_read(run: Path, spark: SparkSession) -> None:
    history = History.read(run, spark)
    assert [row.outcome for row in history.sends.collect()] == ["ok"]
    assert [end["log_end"] for end in history.ends] == [1]
    assert [fault["fault"] for fault in history.faults] == ["cut"]
    assert history.last_ns == 1_000_000_000
    assert history.stored.records == 3


@pytest.mark.parametrize(
    ("also", "live"),
    [("end 0..1", False), ("live a @0", True), ("replica a @0 b2", True), ("place assign r1 @0 t1", True)],
)
def test_a_run_is_read_live_where_anybody_read_or_was_to_before_its_end(
    also: str, live: bool, tmp_path: Path, spark: SparkSession
) -> None:
    write(tmp_path, [by_hand("send a ok @0", "final a @0", also)])
    assert History.read(tmp_path, spark).read_live is live


@pytest.mark.parametrize(
    ("phases", "live", "followed"),
    [("", False, False), ("live", True, False), ("replica", False, True), ("live replica", True, True)],
)
def test_files_of_one_reader_each_tell_who_read(
    phases: str, live: bool, followed: bool, run: Path, spark: SparkSession
) -> None:
    for path in parts(run, "reads"):
        path.unlink()
    for phase in ("final", *phases.split()):
        rows = by_hand("send a ok @0", f"{phase} a @0").rows["reads"]
        write_table(run, "reads", pa.Table.from_pylist(rows, TABLES["reads"]), phase)
    write_table(run, "reads", TABLES["reads"].empty_table(), "nobody")
    history = History.read(run, spark)
    assert (history.read_live, history.followed) == (live, followed)


def test_a_file_of_several_phases_may_be_of_anybody(tmp_path: Path, spark: SparkSession) -> None:
    write(tmp_path, [by_hand("send a ok @0", "final a @0", "live a @0", "end 0..1")])
    assert History.read(tmp_path, spark).followed


@pytest.mark.parametrize("table", sorted(TABLES.keys() - OPTIONAL))
def test_a_missing_table_is_named(table: str, run: Path, spark: SparkSession) -> None:
    for path in parts(run, table):
        path.unlink()
    with pytest.raises(HistoryError, match=f"history/{table}: no Parquet here"):
        History.read(run, spark)


@pytest.mark.parametrize("table", sorted(OPTIONAL))
def test_a_table_that_a_run_need_not_have_is_empty_where_it_is_missing(
    table: str, run: Path, spark: SparkSession
) -> None:
    for path in parts(run, table):
        path.unlink()
    assert History.read(run, spark).table(table).count() == 0


@pytest.mark.parametrize("content", [b"", b"PAR1", b"not a Parquet file at all", None], ids=str)
def test_a_file_that_is_cut_or_no_parquet_is_named(content: bytes | None, run: Path, spark: SparkSession) -> None:
    path = parts(run, "reads")[0]
    path.write_bytes(path.read_bytes()[:-20] if content is None else content)
    with pytest.raises(HistoryError, match=r"reads/part\.parquet: not a whole Parquet file") as raised:
        History.read(run, spark)
    assert "\n" not in str(raised.value)


def test_a_parquet_of_another_table_is_named_with_what_differs(run: Path, spark: SparkSession) -> None:
    pq.write_table(FAULTS.empty_table(), table_directory(run, "log_ends") / "other.parquet")
    with pytest.raises(HistoryError, match=r"log_ends/other\.parquet: not the log_ends .*no column topic"):
        History.read(run, spark)


def test_a_partition_whose_log_ends_twice_is_refused(tmp_path: Path, spark: SparkSession) -> None:
    write(tmp_path, [by_hand("end 0..1", "end 0..2", "end 0..1 p1")])
    with pytest.raises(HistoryError, match=r"history/log_ends: two rows of partition trial-0$"):
        _ = History.read(tmp_path, spark).ends


def test_a_column_that_came_later_may_be_lacking_in_all_parts_but_not_in_some(run: Path, spark: SparkSession) -> None:
    assert History.read(run, spark).stored.has_column("reads", "key")
    without_keys(run)
    history = History.read(run, spark)
    assert not history.stored.has_column("reads", "key")
    assert [row.key for row in history.reads.collect()] == [None, None]
    write_table(run, "reads", TABLES["reads"].empty_table(), "later")
    with pytest.raises(HistoryError, match=r"reads/part\.parquet: not the reads of this version \(no column key\)"):
        History.read(run, spark)


def test_without_run_json_there_is_no_run(run: Path, spark: SparkSession) -> None:
    (run / RUN_FILE).unlink()
    with pytest.raises(HistoryError, match="no run here"):
        History.read(run, spark)


@pytest.mark.parametrize("key", [None, "", "k1", r"it's \"${env:HOME}\" \\u0041\n", "schlüssel \0 \U0001f511"])
def test_a_column_with_one_value_is_read_as_it_was_written(key: str | None, run: Path, spark: SparkSession) -> None:
    for path in (part for table in ("sends", "reads") for part in parts(run, table)):
        rows = pq.read_table(path)
        column = rows.column_names.index("key")
        pq.write_table(rows.set_column(column, "key", pa.array([key] * len(rows), pa.string())), path)
    history = History.read(run, spark)
    assert "key" in history.same("sends", "reads")
    for name in ("sends", "reads"):
        written = [row for path in parts(run, name) for row in pq.read_table(path, schema=TABLES[name]).to_pylist()]
        assert [row.asDict() for row in history.records(name).collect()] == written
        assert history.records(name).dtypes == history.table(name).dtypes


@pytest.mark.parametrize("part", ["_part.parquet", ".part.parquet", "_a=b.parquet"])
def test_a_part_that_spark_would_pass_over_is_refused_by_name(part: str, run: Path, spark: SparkSession) -> None:
    [whole] = parts(run, "reads")
    whole.rename(whole.with_name(part))
    with pytest.raises(HistoryError, match=rf"reads/{part}: Spark reads no file whose name begins so"):
        History.read(run, spark)


@pytest.mark.parametrize(
    "name", ["a[1]", "b{1}", "{a,b}", "c*", "d?", "[!e]", "f\\1", "\\", "g%20h", "i j", "k:l", "m#n"]
)
def test_only_the_files_of_the_run_are_read_whatever_its_directory_is_called(
    name: str, tmp_path: Path, spark: SparkSession
) -> None:
    for other in ("a1", "b1", "a", "b", "cc", "dd", "e", "f1", "g h", "k:k"):
        write(tmp_path / other, [by_hand(*(f"send {other}{n} ok @{n}" for n in range(3)))])
    write(tmp_path / name, [by_hand("send a fail")])
    assert [row.outcome for row in History.read(tmp_path / name, spark).sends.collect()] == ["fail"]
