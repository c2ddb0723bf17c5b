"""What footers show, and how a stored schema may differ from the contract."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.history.footers import constants, differences
from harness.history.paths import parts, write_table
from harness.history.schema import FAULTS, FORMER, LATER, LOG_ENDS, TABLES


@pytest.mark.parametrize("table", LATER)
def test_optional_columns_are_nullable(table: str) -> None:
    assert all(TABLES[table].field(name).nullable for name in LATER[table])


@pytest.mark.parametrize(
    ("found", "difference"),
    [
        (LOG_ENDS, []),
        (pa.schema(list(reversed(list(LOG_ENDS)))), []),
        (LOG_ENDS.remove(0), ["no column topic"]),
        (LOG_ENDS.append(pa.field("more", pa.int8())), ["unknown column more"]),
        (LOG_ENDS.set(1, pa.field("partition", pa.int64())), ["partition is int64, not int32"]),
    ],
    ids=["same", "other order", "less", "more", "other type"],
)
def test_how_schemas_differ(found: pa.Schema, difference: list[str]) -> None:
    assert differences(found, LOG_ENDS) == difference


def test_a_former_column_is_no_difference() -> None:
    assert differences(LOG_ENDS.append(pa.field("more", pa.int8())), LOG_ENDS, former={"more"}) == []


@pytest.mark.parametrize("table", FORMER)
def test_a_former_column_is_recorded_no_more(table: str) -> None:
    assert not FORMER[table] & {*TABLES[table].names}


def test_the_name_of_a_lists_element_is_no_difference() -> None:
    other = FAULTS.set(2, pa.field("nodes", pa.list_(pa.field("element", pa.string()))))
    assert differences(other, FAULTS) == []


def test_parts_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    for part in ("b", "a"):
        write_table(tmp_path, "log_ends", LOG_ENDS.empty_table(), part)
    assert [path.stem for path in parts(tmp_path, "log_ends")] == ["a", "b"]


SAME = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()), ("intact", pa.bool_())])


@pytest.mark.parametrize(
    ("files", "same"),
    [
        ([[("t", 0, 5, True)]], {"topic": "t", "partition": 0, "offset": 5, "intact": True}),
        ([[("t", 0, 5, True), ("t", 0, 6, False)]], {"topic": "t", "partition": 0}),
        ([[("t", 0, 5, True)], [("u", 0, 5, False)]], {"partition": 0, "offset": 5}),
        ([[("t", None, None, None)], [("t", None, 5, None)]], {"topic": "t", "partition": None, "intact": None}),
        ([[("t", 0, 5, True), ("t", None, 5, True)]], {"topic": "t", "offset": 5, "intact": True}),
        ([[("t", 0, 5, True)], []], {"topic": "t", "partition": 0, "offset": 5, "intact": True}),
        ([[]], {}),
        ([], {}),
    ],
)
@pytest.mark.parametrize("group_rows", [1, 1000])
def test_the_footers_tell_what_is_the_same_in_every_row(
    files: list[list[tuple[object, ...]]], same: dict[str, object], group_rows: int, tmp_path: Path
) -> None:
    for n, rows_of_file in enumerate(files):
        table = pa.Table.from_pylist([dict(zip(SAME.names, row, strict=True)) for row in rows_of_file], SAME)
        pq.write_table(table, tmp_path / f"{n}.parquet", row_group_size=group_rows)
    assert constants(pq.read_metadata(path) for path in tmp_path.iterdir()) == same


def test_footers_without_statistics_prove_nothing_to_be_the_same(tmp_path: Path) -> None:
    reported, unreported = tmp_path / "reported.parquet", tmp_path / "unreported.parquet"
    table = pa.Table.from_pylist([dict(zip(SAME.names, ("t", 0, 5, True), strict=True))], SAME)
    pq.write_table(table, reported)
    pq.write_table(table, unreported, write_statistics=["topic"])
    assert constants(map(pq.read_metadata, (reported, unreported))) == {"topic": "t"}
