"""Append-only Arrow IPC streams: what a worker recorded, readable up to its last whole batch even after ``kill -9``."""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from harness.core.errors import HistoryError

SUFFIX = ".arrows"


def journal_path(directory: Path, table: str, worker: str) -> Path:
    """``<directory>/<table>.<worker>.arrows``."""
    return directory / f"{table}.{worker}{SUFFIX}"


def table_of(path: Path) -> str:
    """The table that a journal file holds rows of."""
    return path.name.split(".", 1)[0]


class Journal:
    """One writer's rows of one table, for one thread. When ``append`` returns, the kernel has the rows.

    After a failed write (a full disk) a journal accepts no more rows: a reader would take the next batch for the rest
    of the broken one. All earlier rows can be read; the journal is not sealed.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.path = path
        self._schema = schema
        self._failure: OSError | None = None
        self._sink = pa.OSFile(str(path), "wb")
        self._stream = pa.ipc.new_stream(self._sink, schema)

    def append(self, batch: pa.RecordBatch) -> None:
        """Write one whole batch. Raises OSError if this write fails, or an earlier one failed."""
        if self._failure is not None:
            raise OSError(self._failure.errno, f"an earlier write failed ({self._failure})", str(self.path))
        try:
            self._stream.write_batch(batch)
            self._sink.flush()
        except OSError as exc:
            self._failure = exc
            raise

    def append_rows(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write rows as one batch; missing columns are null."""
        listed = list(rows)
        if listed:
            self.append(pa.RecordBatch.from_pylist(listed, schema=self._schema))

    def close(self) -> None:
        """Seal the stream: a reader can see that nothing is missing. Closing twice is harmless.

        Raises OSError where the seal cannot be written.
        """
        if self._sink.closed:
            return
        try:
            if self._failure is None:
                self._stream.close()
        finally:
            self._sink.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_journal(
    path: Path, schema: pa.Schema, later: Collection[str] = (), former: Collection[str] = ()
) -> tuple[pa.Table, bool]:
    """Every whole batch of a journal, and whether its writer closed it.

    Columns of ``later`` that it lacks are null; those of ``former`` are left out.

    Raises HistoryError where the file holds rows of another schema.
    """
    batches: list[pa.RecordBatch] = []
    with pa.OSFile(str(path), "rb") as source:
        end = source.size()
        try:
            with pa.ipc.open_stream(source) as stream:
                found = stream.schema
                for batch in stream:
                    batches.append(batch)
            closed = _ends_with_marker(path)
        except (pa.ArrowInvalid, OSError):
            # Cut in the middle of a message (kill -9, full disk): what came before is whole.
            if not batches:
                return schema.empty_table(), False
            found, closed = batches[0].schema, False
    expected = pa.schema([field for field in schema if field.name not in later or field.name in found.names])
    table = pa.Table.from_batches(batches, found).drop_columns([name for name in found.names if name in former])
    if not table.schema.equals(expected):
        raise HistoryError(
            f"{path}: journal of another schema ({_first_difference(table.schema, expected)}), {end} bytes"
        )
    for index, field in enumerate(schema):
        if field.name not in table.column_names:
            table = table.add_column(index, field, pa.nulls(len(table), field.type))
    return table, closed


def has_rows(path: Path) -> bool:
    """Whether a journal has a row. Reads no more than is needed to know."""
    with pa.OSFile(str(path), "rb") as source:
        try:
            with pa.ipc.open_stream(source) as stream:
                return any(batch.num_rows for batch in stream)
        except (pa.ArrowInvalid, OSError):
            # (Cut in its first message.)
            return False


_END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"


def _ends_with_marker(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-len(_END_OF_STREAM), 2)
        return file.read() == _END_OF_STREAM


def _first_difference(found: pa.Schema, wanted: pa.Schema) -> str:
    for name in wanted.names:
        if name not in found.names:
            return f"no column {name}"
        if found.field(name) != wanted.field(name):
            return f"{name} is {found.field(name).type}, not {wanted.field(name).type}"
    return "columns that this version does not know"
