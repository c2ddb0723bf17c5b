"""What the footers of a table's Parquet files say, without reading a row."""

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from harness.core.errors import HistoryError

#: Marks a column whose value is unknown, or differs between rows.
_VARIOUS = object()


def footer(path: Path) -> pq.FileMetaData:
    """The footer of a Parquet file. Raises HistoryError where it has none."""
    try:
        return pq.read_metadata(path)
    except (pa.ArrowInvalid, OSError) as exc:
        raise HistoryError(f"{path}: not a whole Parquet file ({str(exc).splitlines()[0]})") from exc


def constants(footers: Iterable[pq.FileMetaData]) -> dict[str, Any]:
    """The columns that have one value in every row of these files (None: null everywhere).

    A column is missing from the result if its statistics are missing, or truncated: then its minimum and maximum differ
    (parquet.thrift, Statistics).
    """
    values: dict[str, set[Any]] = {}
    for one in footers:
        for group in _groups(one):
            for column in map(group.column, range(group.num_columns)):
                values.setdefault(column.path_in_schema, set()).update(_values(column))
    return {name: one.pop() for name, one in values.items() if len(one) == 1 and _VARIOUS not in one}


def may_be_null(footer: pq.FileMetaData, column: str) -> bool:
    """Whether a row of this file may have no value in this column. True where the footer does not say."""
    chunks = (chunk for group in _groups(footer) for chunk in map(group.column, range(group.num_columns)))
    statistics = [chunk.statistics for chunk in chunks if chunk.path_in_schema == column]
    return any(one is None or not one.has_null_count or one.null_count for one in statistics)


def nulls(footer: pq.FileMetaData, column: str) -> int:
    """How many rows of this file have no value in a column, as far as the footer says."""
    chunks = (chunk for group in _groups(footer) for chunk in map(group.column, range(group.num_columns)))
    statistics = [chunk.statistics for chunk in chunks if chunk.path_in_schema == column]
    return sum(one.null_count for one in statistics if one is not None and one.has_null_count)


def beyond(footer: pq.FileMetaData, column: str, values: Collection[str]) -> str | None:
    """A value of a text column that is not in ``values``, if the footer shows one. The footer has only the minimum and
    the maximum of each row group."""
    chunks = (chunk for group in _groups(footer) for chunk in map(group.column, range(group.num_columns)))
    statistics = [chunk.statistics for chunk in chunks if chunk.path_in_schema == column]
    ends = (end for one in statistics if one is not None and one.has_min_max for end in (one.min, one.max))
    return next((str(end) for end in ends if end not in values), None)


def greatest(footer: pq.FileMetaData, columns: Collection[str]) -> Iterator[int]:
    """The greatest value of these columns in each row group, where the footer says it."""
    for group in map(footer.row_group, range(footer.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            statistics = column.statistics if column.path_in_schema in columns else None
            if statistics is not None and statistics.has_min_max:
                yield statistics.max


def within(footer: pq.FileMetaData, column: str, value: int) -> bool:
    """Whether a row of this file may have this value in a column. True where the footer does not say."""
    chunks = (chunk for group in _groups(footer) for chunk in map(group.column, range(group.num_columns)))
    statistics = [chunk.statistics for chunk in chunks if chunk.path_in_schema == column]
    return any(one is None or not one.has_min_max or one.min <= value <= one.max for one in statistics)


def differences(
    found: pa.Schema, wanted: pa.Schema, lacking: Collection[str] = (), former: Collection[str] = ()
) -> list[str]:
    """Why ``found`` cannot be read as ``wanted``: one phrase for each column. The order of columns does not matter.

    ``lacking``: columns that ``found`` need not have; ``former``: columns that it may have in addition.
    """
    missing = [f"no column {name}" for name in wanted.names if name not in found.names and name not in lacking]
    unknown = [f"unknown column {name}" for name in found.names if name not in {*wanted.names, *former}]
    other = [
        f"{name} is {found.field(name).type}, not {wanted.field(name).type}"
        for name in wanted.names
        if name in found.names and not _same(found.field(name).type, wanted.field(name).type)
    ]
    return missing + unknown + other


def _groups(footer: pq.FileMetaData) -> Iterator[pq.RowGroupMetaData]:
    return (group for group in map(footer.row_group, range(footer.num_row_groups)) if group.num_rows)


def _values(column: pq.ColumnChunkMetaData) -> set[Any]:
    """The only value of a column in a row group. If the column has several, or may have, any two values."""
    statistics = column.statistics
    if statistics is None or not statistics.has_null_count:
        return {_VARIOUS}
    if statistics.null_count == column.num_values:
        return {None}
    if statistics.null_count or not statistics.has_min_max:
        return {_VARIOUS}
    return {statistics.min, statistics.max}


def _same(found: pa.DataType, wanted: pa.DataType) -> bool:
    # Writers name the element of a list differently ("item", "element"): that is no difference.
    if pa.types.is_list(found) and pa.types.is_list(wanted):
        return bool(found.value_type == wanted.value_type)
    return bool(found == wanted)
