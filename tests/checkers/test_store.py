"""The stored rows of an anomaly: they are read in one order, however they were written."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from checkers.evidence.store import AnomalyStore, StoredRows
from harness.core.anomalies import ACKNOWLEDGED_ELSEWHERE, LOST, UNSEEN, VANISHED, Gone

_SCHEMA = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32())]
    + [(name, pa.int64()) for name in ("offset", "record_id", "sent_ns", "read_ns")]
    + [("records", pa.list_(pa.int64()))]
)
#: In the order in which they are read: unknown values come first, and equal rows by the time of their read.
_ROWS = [
    dict(zip(_SCHEMA.names, row, strict=True))
    for row in [
        ("a", 0, None, None, None, 3, []),
        ("a", 0, 4, 1, 7, 1, [1, 2]),
        ("a", 0, 4, 1, 7, 2, [1]),
        ("a", 0, 5, 1, 7, 1, [2]),
        ("a", 0, 1, 0, 8, 1, [3]),
        ("a", 1, 0, 2, 0, 1, [4]),
        ("b", 0, 9, 0, 0, 1, [5]),
    ]
]


def _write(directory: Path, parts: list[list[int]]) -> StoredRows:
    files = []
    for number, part in enumerate(parts):
        files.append(directory / f"part-{number}.parquet")
        pq.write_table(pa.Table.from_pylist([_ROWS[n] for n in part], _SCHEMA), files[-1], row_group_size=2)
    return StoredRows(tuple(files))


@pytest.mark.parametrize("parts", [[[0, 1, 2, 3, 4, 5, 6]], [[6, 5, 4], [3, 2, 1, 0]], [[2, 6], [], [0, 3, 5], [4, 1]]])
@pytest.mark.parametrize("number", [0, 1, 3, 7, 20])
def test_the_first_are_the_same_in_whatever_parts_they_were_written(
    parts: list[list[int]], number: int, tmp_path: Path
) -> None:
    assert _write(tmp_path, parts).first(number) == _ROWS[:number]


def test_of_nothing_there_is_nothing() -> None:
    none = StoredRows()
    assert (none.count, none.first(20), list(none.pieces()), none.extent()) == (0, [], [], 0)


def test_the_extent_is_of_all_parts(tmp_path: Path) -> None:
    assert _write(tmp_path, [[6], [0], [2, 5]]).extent() == 10


def test_a_column_that_an_anomaly_has_not_is_null_and_only_what_is_wanted_is_read(tmp_path: Path) -> None:
    schema = pa.schema([("offset", pa.int64()), ("last_offset", pa.int64())])
    reported = _write(tmp_path, [[6, 2], [3]]).pieces(schema, pc.field("offset") < 9)
    assert sorted(row["offset"] for piece in reported for row in piece.to_pylist() if row["last_offset"] is None) == [
        4,
        5,
    ]


def test_a_part_without_rows_is_no_piece(tmp_path: Path) -> None:
    rows = _write(tmp_path, [[], [6, 0], []])
    assert ([len(piece) for piece in rows.pieces()], rows.count) == ([2], 2)


def test_lost_records_are_found_by_the_rows_of_their_anomalies(tmp_path: Path) -> None:
    rows = _write(tmp_path, [[0]])
    store = AnomalyStore({anomaly.name: rows for anomaly in (VANISHED, ACKNOWLEDGED_ELSEWHERE, LOST, UNSEEN)})
    assert store.gone(Gone.ACKNOWLEDGED, Gone.MOVED) == [(LOST, rows), (ACKNOWLEDGED_ELSEWHERE, rows)]
    assert store.gone(Gone.DELIVERED) == [(VANISHED, rows)]
    assert AnomalyStore({VANISHED.name: StoredRows()}).gone(*Gone) == []
