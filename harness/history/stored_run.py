"""A stored run, read: its run.json, the files of its tables and their rows. Without Spark."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from harness.core.errors import HistoryError
from harness.core.faults import injection_of
from harness.core.topology import Partition
from harness.history.footers import beyond, constants, differences, footer, greatest, may_be_null, nulls, within
from harness.history.last_stable import STABILITY, StableEnds, held_back, stable_ends
from harness.history.paths import parts, stored, table_directory
from harness.history.run_file import RunFile
from harness.history.schema import FORMER, LATER, TABLES, WORDS
from harness.history.seal import Seal

#: Tables that may be missing: a run without groups or transactions has no rows of them.
OPTIONAL = frozenset({"positions", "transactions"})

#: Spark skips files whose names begin so, as its own (HadoopFSUtils.shouldFilterOutPathName).
_UNREAD = ("_", ".")

#: The columns with the number of the client that wrote the row. (A table without such a column has one writer.)
_WRITERS = ("worker", "reader")

Row = dict[str, Any]


@dataclass(frozen=True)
class StoredRun:
    """A run whose history is whole and can be judged. Files are read when they are needed.

    ``sealed``: it has a seal. Runs of early versions, and those made by hand, have none.
    """

    directory: Path
    file: RunFile
    sealed: bool = False

    @classmethod
    def open(cls, directory: Path) -> Self:
        """Check the seal, run.json and the footer of every file.

        Raises HistoryError if a file differs from the seal, run.json is missing or not ours, a table is missing, or
        a file is not Parquet of its table's schema. The message names the file.
        """
        seal = Seal.read(directory)
        if seal is not None:
            seal.check(directory)
        run = cls(directory, RunFile.read(directory), sealed=seal is not None)
        for table in TABLES:
            run._check(table)
        return run

    def _check(self, table: str) -> None:
        files = self._footers[table]
        if not files and table not in OPTIONAL:
            where = table_directory(self.directory, table)
            raise HistoryError(f"{where}: no Parquet here, and there is no verdict without it")
        for path in files:
            if path.name.startswith(_UNREAD):
                raise HistoryError(
                    f"{path}: Spark reads no file whose name begins so: rename it, or take it out of the run"
                )
        schemas = {path: footer.schema.to_arrow_schema() for path, footer in files.items()}
        known = {name for schema in schemas.values() for name in schema.names}
        for path, schema in schemas.items():
            lacking = LATER.get(table, frozenset()) - known
            different = differences(schema, TABLES[table], lacking, FORMER.get(table, ()))
            if different:
                raise HistoryError(f"{path}: not the {table} of this version ({'; '.join(different)})")
        for path, of_file in files.items():
            _check_values(path, table, of_file)

    @cached_property
    def _footers(self) -> dict[str, dict[Path, pq.FileMetaData]]:
        return {table: {path: footer(path) for path in parts(self.directory, table)} for table in TABLES}

    def footers(self, *tables: str) -> list[pq.FileMetaData]:
        """The footers of all files of these tables."""
        return [one for table in tables for one in self._footers[table].values()]

    def files(self, table: str) -> list[Path]:
        """The files of a table that have rows, in the order of their names."""
        return [path for path, one in self._footers[table].items() if one.num_rows]

    def count(self, *tables: str) -> int:
        """How many rows these tables have."""
        return sum(one.num_rows for one in self.footers(*tables))

    @cached_property
    def missing(self) -> list[str]:
        """A line for each table and client of run.json without rows: the table has no part of that client, and, as far
        as the footers say, no other part has rows of it."""
        return [
            f"{table} of {client} are not there"
            for client in self.file.clients
            for table in self.file.written_by(client)
            if not self._has(table, int(client.split()[1]))
        ]

    def _has(self, table: str, writer: int) -> bool:
        column = next((name for name in _WRITERS if name in TABLES[table].names), None)
        named = {path.name.split(".")[0] for path in self._footers[table]}
        footers = self.footers(table)
        if column is None:
            return bool(footers)
        return str(writer) in named or any(within(one, column, writer) for one in footers)

    @property
    def records(self) -> int:
        """How many sends and reads there are: the size of a history."""
        return self.count("sends", "reads")

    def has_column(self, table: str, column: str) -> bool:
        """Whether a table has an optional column (LATER)."""
        return all(column in one.schema.names for one in self.footers(table))

    def may_be_null(self, table: str, column: str) -> bool:
        """Whether some row of a table may have no value in a column, as far as the footers say."""
        return any(may_be_null(one, column) for one in self.footers(table))

    def constants(self, *tables: str) -> dict[str, Any]:
        """The columns that have one and the same value in every row of these tables (None: null everywhere)."""
        return constants(self.footers(*tables))

    def table(self, name: str, wanted: pc.Expression | None = None, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows of a table that meet an expression, with these columns or all.

        Raises HistoryError if the rows of a file are damaged.
        """
        try:
            return stored(self.directory, name).to_table(columns=columns, filter=wanted)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OSError) as exc:
            raise HistoryError(f"{table_directory(self.directory, name)}: {str(exc).splitlines()[0]}") from exc

    def pieces(self, name: str, wanted: pc.Expression, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The same as ``table``, piece by piece."""
        try:
            for batch in stored(self.directory, name).to_batches(columns=columns, filter=wanted):
                if batch.num_rows:
                    yield pa.Table.from_batches([batch])
        except (pa.ArrowInvalid, pa.ArrowTypeError, OSError) as exc:
            raise HistoryError(f"{table_directory(self.directory, name)}: {str(exc).splitlines()[0]}") from exc

    def rows(self, table: str, wanted: pc.Expression | None = None) -> list[Row]:
        """``table`` as a list of dicts."""
        found: list[Row] = self.table(table, wanted).to_pylist()
        return found

    @cached_property
    def faults(self) -> list[Row]:
        """The rows of ``faults`` in the order of their injection. Later columns that are null are left out."""
        later = LATER["faults"]
        known = ({k: v for k, v in row.items() if v is not None or k not in later} for row in self.rows("faults"))
        return sorted(known, key=lambda row: (row["injecting_ns"], injection_of(row)))

    @cached_property
    def ends(self) -> dict[Partition, Row]:
        """The rows of ``log_ends``: how far the final read of each partition had to come, and whether it read all.

        With read_committed it did not read all if a transaction hangs. Raises HistoryError if a partition has two rows.
        """
        rows = sorted(self.rows("log_ends"), key=lambda row: (row["topic"], row["partition"]))
        for one, other in pairwise((row["topic"], row["partition"]) for row in rows):
            if one == other:
                where = table_directory(self.directory, "log_ends")
                raise HistoryError(f"{where}: two rows of partition {one[0]}-{one[1]}")
        if self.file.configuration.read_committed:
            rows = held_back(rows, self.stable_ends)
        return {(row["topic"], row["partition"]): row for row in rows}

    @cached_property
    def stable_ends(self) -> dict[Partition, StableEnds]:
        """The last stable offset of each log, once all transactions should have ended."""
        return stable_ends(self.table("positions", STABILITY))

    @cached_property
    def brokers(self) -> dict[int, str]:
        """The names of the brokers by their ids."""
        return self.file.brokers

    @cached_property
    def last_ns(self) -> int:
        """The latest time in ``sends``, as the footers say; 0 if nothing was sent."""
        footers = self.footers("sends")
        return max((at for one in footers for at in greatest(one, {"invoked_ns", "completed_ns"})), default=0)


def _check_values(path: Path, table: str, footer: pq.FileMetaData) -> None:
    """Raises HistoryError if the footer shows a value that no recorder writes: no checker would count such a row."""
    for field in TABLES[table]:
        if not field.nullable and (lacking := nulls(footer, field.name)):
            raise HistoryError(f"{path}: {lacking} rows have no {field.name}, and every row has one")
    for column, words in WORDS.get(table, {}).items():
        if word := beyond(footer, column, words):
            raise HistoryError(f"{path}: {column} is {word!r} in some rows: it is one of {', '.join(words)}")
