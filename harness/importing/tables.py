"""Writes the tables of a history batch by batch, while they grow."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from harness.history.paths import parquet_writer
from harness.history.schema import TABLES

#: The rows of a batch, which becomes a row group.
_BATCH = 1 << 16

#: Columns that imported histories lack: they are left out, so that no checker reads them. (A polled record has no key,
#: only the value that identifies it.)
LEFT_OUT = {"reads": frozenset({"key"})}

Row = tuple[Any, ...]


class TableFile:
    """One table of a run. Rows are tuples in the order of the schema's columns, without those LEFT_OUT."""

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
