"""The tables of a history written as they grow, a batch at a time."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from harness.history.paths import parquet_writer
from harness.history.schema import TABLES

#: Rows that are held before they are written: a row group.
_BATCH = 1 << 16

#: Columns that no imported history has: left out, so that no checker reads them. (What a poll brought has no key
#: but the value, by which the record is known.)
LEFT_OUT = {"reads": frozenset({"key"})}

Row = tuple[Any, ...]


class TableFile:
    """One table of a run, its rows appended as tuples in the order of the schema's columns, but for those LEFT_OUT."""

    def __init__(self, run: Path, table: str) -> None:
        columns = [field for field in TABLES[table] if field.name not in LEFT_OUT.get(table, ())]
        self._schema = pa.schema(columns)
        self._waiting: list[Row] = []
        self._file: pq.ParquetWriter = parquet_writer(run, table, self._schema)

    def __enter__(self) -> "TableFile":
        return self

    def __exit__(self, *_: object) -> None:
        self._flush()
        self._file.close()

    def append(self, row: Row) -> None:
        """Add a row."""
        self._waiting.append(row)
        if len(self._waiting) >= _BATCH:
            self._flush()

    def extend(self, rows: Iterable[Row]) -> None:
        """Add some rows."""
        self._waiting.extend(rows)
        if len(self._waiting) >= _BATCH:
            self._flush()

    def _flush(self) -> None:
        if not self._waiting:
            return
        columns = zip(*self._waiting, strict=True)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, self._schema, strict=True)]
        self._file.write_table(pa.Table.from_arrays(arrays, schema=self._schema))
        self._waiting.clear()
