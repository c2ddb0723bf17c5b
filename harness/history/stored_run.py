"""The files of a stored run's tables: what their footers tell, and whether they can be judged. Without Spark."""

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from harness.core.errors import HistoryError
from harness.history.paths import parts, table_directory
from harness.history.schema import LATER, TABLES

#: Tables that a run without groups or transactions has no rows of, and may lack.
OPTIONAL = frozenset({"positions", "transactions"})

#: How the names of files begin that Spark takes for its own, and passes over (HadoopFSUtils.shouldFilterOutPathName).
_UNREAD = ("_", ".")

#: In place of a value that is not known, or not the same everywhere.
_VARIOUS = object()


def rows(directory: Path) -> int:
    """How many sends and reads a run has, by its files' footers. Raises HistoryError where one has none."""
    return sum(metadata(path).num_rows for table in ("sends", "reads") for path in parts(directory, table))


def metadata(path: Path) -> pq.FileMetaData:
    """The footer of a Parquet file. Raises HistoryError where it has none."""
    try:
        return pq.read_metadata(path)
    except (pa.ArrowInvalid, OSError) as exc:
        raise HistoryError(f"{path}: not a whole Parquet file ({str(exc).splitlines()[0]})") from exc


def constants(footers: Iterable[pq.FileMetaData]) -> dict[str, Any]:
    """The columns with one value in every row of these files (None: they have none), as the footers tell it.

    One whose statistics a writer left out, or cut short, is not told as constant: of a cut value the least and the
    greatest differ (parquet.thrift, Statistics).
    """
    told: dict[str, set[Any]] = {}
    for footer in footers:
        for group in _groups(footer):
            for column in map(group.column, range(group.num_columns)):
                told.setdefault(column.path_in_schema, set()).update(_values(column))
    return {name: values.pop() for name, values in told.items() if len(values) == 1 and _VARIOUS not in values}


def may_lack(footer: pq.FileMetaData, column: str) -> bool:
    """Whether a row of this file may have no value in this column, as far as the footer tells it."""
    chunks = (chunk for group in _groups(footer) for chunk in map(group.column, range(group.num_columns)))
    told = [chunk.statistics for chunk in chunks if chunk.path_in_schema == column]
    return any(one is None or not one.has_null_count or one.null_count for one in told)


def _groups(footer: pq.FileMetaData) -> Iterator[pq.RowGroupMetaData]:
    return (group for group in map(footer.row_group, range(footer.num_row_groups)) if group.num_rows)


def _values(column: pq.ColumnChunkMetaData) -> set[Any]:
    """The one value of a column in a row group; or else more than that, whichever they are."""
    statistics = column.statistics
    if statistics is None or not statistics.has_null_count:
        return {_VARIOUS}
    if statistics.null_count == column.num_values:
        return {None}
    if statistics.null_count or not statistics.has_min_max:
        return {_VARIOUS}
    return {statistics.min, statistics.max}


def verify(directory: Path, table: str) -> None:
    """Raises HistoryError where a run lacks this table, or has a file of it that cannot be judged."""
    found = parts(directory, table)
    if not found and table not in OPTIONAL:
        raise HistoryError(f"{table_directory(directory, table)}: no Parquet here, and there is no verdict without it")
    for path in found:
        if path.name.startswith(_UNREAD):
            raise HistoryError(
                f"{path}: Spark reads no file whose name begins so: rename it, or take it out of the run"
            )
    schemas = {path: metadata(path).schema.to_arrow_schema() for path in found}
    lacking = {name for name in LATER.get(table, ()) if not any(name in schema.names for schema in schemas.values())}
    for path, schema in schemas.items():
        different = differences(schema, TABLES[table], lacking)
        if different:
            raise HistoryError(f"{path}: not the {table} of this version ({'; '.join(different)})")


def tells(directory: Path, table: str, column: str) -> bool:
    """Whether a stored table has a column that it may lack (LATER)."""
    return all(column in metadata(path).schema.names for path in parts(directory, table))


def faults(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of the table of faults in the order of their injection, without the later columns that they lack."""
    later = LATER["faults"]
    told = ({k: v for k, v in row.items() if v is not None or k not in later} for row in rows)
    return sorted(told, key=lambda row: (row["injecting_ns"], row["fault"]))


def differences(found: pa.Schema, wanted: pa.Schema, lacking: Collection[str] = ()) -> list[str]:
    """What keeps ``found`` from being read as ``wanted``, one phrase for each column; order does not matter.

    ``lacking``: columns that it need not have.
    """
    missing = [f"no column {name}" for name in wanted.names if name not in found.names and name not in lacking]
    unknown = [f"unknown column {name}" for name in found.names if name not in wanted.names]
    other = [
        f"{name} is {found.field(name).type}, not {wanted.field(name).type}"
        for name in wanted.names
        if name in found.names and not _same(found.field(name).type, wanted.field(name).type)
    ]
    return missing + unknown + other


def _same(found: pa.DataType, wanted: pa.DataType) -> bool:
    # The name of a list's element ("item", "element") is a writer's habit, not a difference.
    if pa.types.is_list(found) and pa.types.is_list(wanted):
        return bool(found.value_type == wanted.value_type)
    return bool(found == wanted)


def latest(footer: pq.FileMetaData) -> Iterator[int]:
    """The greatest time in each group of rows of ``sends``, as far as the footer tells it."""
    for group in map(footer.row_group, range(footer.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            statistics = column.statistics if column.path_in_schema in {"invoked_ns", "completed_ns"} else None
            if statistics is not None and statistics.has_min_max:
                yield statistics.max
