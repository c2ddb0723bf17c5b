"""A stored run as DataFrames, each table checked against the schema that its recorders promised."""

import re
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom
from pyspark.sql import types as T  # noqa: N812

from checkers.evidence.last_stable import STABILITY, hanging, held_back
from checkers.evidence.leadership import Span, spans
from harness.core.errors import HistoryError
from harness.history.paths import parts, stored, table_directory
from harness.history.run_file import RunFile
from harness.history.schema import TABLES, UNTOLD, Phase
from harness.history.stored_run import constants, faults, latest, may_lack, metadata, rows, tells, verify

#: What Spark says of a file that it cannot read to its end.
_DAMAGED = re.compile(r"FAILED_READ_FILE\S*\].*? file:(?://)?(/\S+?\.parquet)")

#: The columns that tell a partition.
PARTITION = ["topic", "partition"]

#: So few rows are read by one task: a question of them is then one stage, without exchanges between tasks.
OF_ONE_TASK = 1_000_000

_TYPES: dict[pa.DataType, T.DataType] = {
    pa.string(): T.StringType(),
    pa.int32(): T.IntegerType(),
    pa.int64(): T.LongType(),
    pa.bool_(): T.BooleanType(),
    pa.list_(pa.string()): T.ArrayType(T.StringType()),
    pa.list_(pa.int32()): T.ArrayType(T.IntegerType()),
}


def damaged_file(error: Exception) -> str | None:
    """The path of the file that Spark could not read to its end; None where it failed for another reason."""
    found = _DAMAGED.search(str(error))
    return unquote(found[1]) if found else None


def spark_schema(schema: pa.Schema) -> T.StructType:
    """The Spark schema of a table of the history. (Spark reads every Parquet column as nullable.)"""
    return T.StructType([T.StructField(field.name, _TYPES[field.type]) for field in schema])


@dataclass(frozen=True)
class History:
    """All that is known of a run: its run.json and its tables; and where what is found is kept."""

    directory: Path
    spark: SparkSession
    run_file: RunFile
    results: Path
    excerpt_of: "History | None" = None

    @classmethod
    def read(cls, directory: Path, spark: SparkSession, results: Path | None = None) -> "History":
        """Look at every table's files, and read none yet. ``results``: where to keep what is found, beside the run
        where it is not told.

        Raises HistoryError where run.json or a table is missing, or a file is no Parquet of the table's schema.
        """
        history = cls(directory, spark, RunFile.read(directory), results or directory)
        for table in TABLES:
            verify(directory, table)
        return history

    def excerpt(self, sends: DataFrame, reads: DataFrame) -> "History":
        """This history with no more than these of its records."""
        excerpt = replace(self, excerpt_of=self.whole)
        vars(excerpt).update(sends=sends, reads=reads)
        return excerpt

    @property
    def whole(self) -> "History":
        """The history with all of its records."""
        return self.excerpt_of or self

    def table(self, name: str) -> DataFrame:
        """The rows of a table; of an optional one that was not recorded, none.

        Where there are none, Spark knows so as it plans, and leaves out what is asked of them.
        """
        schema = spark_schema(TABLES[name])
        files = [_literal(path) for path in parts(self.directory, name) if metadata(path).num_rows]
        if not files:
            return self.local(TABLES[name].empty_table())
        found = self.spark.read.schema(schema).parquet(*files)
        return found.coalesce(1) if self.small else found

    def records(self, name: str) -> DataFrame:
        """The rows of a table of records, of which Spark also knows as it plans what is the same in all of them.

        But for their partition: what Spark knows it does not join or group by.
        """
        same = {column: value for column, value in self.same(name).items() if column not in PARTITION}
        return self.table(name).select(*(same.get(c, F.col(c)).alias(c) for c in TABLES[name].names))

    def same(self, *tables: str) -> dict[str, Column]:
        """The columns that have one and the same value in every row of these tables, as that value."""
        footers = [metadata(path) for table in tables for path in parts(self.directory, table)]
        types = {field.name: _TYPES[field.type] for table in tables for field in TABLES[table]}
        return {name: F.lit(value).cast(types[name]) for name, value in constants(footers).items() if name in types}

    def may_lack(self, table: str, column: str) -> bool:
        """Whether a row of a table may have no value in a column, as far as the footers tell it."""
        return any(may_lack(metadata(path), column) for path in parts(self.directory, table))

    @cached_property
    def sends(self) -> DataFrame:
        """Every record handed to a producer.

        Where the final read is read_committed, a record of a transaction is acknowledged only with its commit: without
        one, a delivery report promises nothing, and ``outcome`` is info (KIP-98, 4).
        """
        sends = self.records("sends")
        in_doubt = self.transactional and self.run_file.configuration.read_committed
        return _committed(sends, self.transactions) if in_doubt else sends

    @cached_property
    def reads(self) -> DataFrame:
        """Every record delivered to a reader."""
        return self.records("reads")

    @property
    def log(self) -> DataFrame:
        """The rows of ``reads`` that tell what is in the logs, and where: the final read; without one, whatever a
        reader was given at an offset that the history tells."""
        return self.reads.where("phase = 'final'" if self.run_file.final_read else f"offset > {UNTOLD}")

    @cached_property
    def transactions(self) -> DataFrame:
        """Every transaction."""
        return self.table("transactions")

    @cached_property
    def transactional(self) -> bool:
        """Whether there are any transactions."""
        return any(metadata(path).num_rows for path in parts(self.directory, "transactions"))

    @cached_property
    def keyed(self) -> bool:
        """Whether a record can have been read under another key than it was sent with: the history tells the keys of
        reads, and those and the keys of sends are not all one and the same (or all none)."""
        return tells(self.directory, "reads", "key") and "key" not in self.same("sends", "reads")

    @cached_property
    def read_live(self) -> bool:
        """Whether anybody read while the run went on, or was given a place to."""
        placed = any(metadata(path).num_rows for path in parts(self.directory, "positions"))
        return placed or not self._phases <= {Phase.FINAL, Phase.REPLICA}

    @cached_property
    def followed(self) -> bool:
        """Whether anybody read a follower's own log."""
        return not self._phases <= {Phase.FINAL, Phase.LIVE}

    @cached_property
    def _phases(self) -> set[str | None]:
        """The phase of each file of reads that has rows; None where it has several, or its footer does not tell."""
        footers = (metadata(path) for path in parts(self.directory, "reads"))
        return {constants([footer]).get("phase") for footer in footers if footer.num_rows}

    @property
    def read_committed(self) -> str:
        """SQL on ``reads``: delivered to a reader of isolation level read_committed."""
        workers = self.run_file.workers().items()
        readers = [str(number) for number, config in workers if config.get("isolation.level") == "read_committed"]
        live = f"phase = 'live' and reader in ({', '.join(readers)})" if readers else "false"
        return f"({live}) or phase = 'final'" if self.run_file.configuration.read_committed else live

    @cached_property
    def seen(self) -> list[Span]:
        """What the brokers told of the partitions."""
        return spans(stored(self.directory, "observations").to_table())

    @cached_property
    def log_ends(self) -> DataFrame:
        """``ends`` as a table."""
        return self.local(pa.Table.from_pylist(self.ends, TABLES["log_ends"]))

    @cached_property
    def ends(self) -> list[dict[str, Any]]:
        """Where the final read had to reach, and whether it is all that can be there: one row for each partition.

        Raises HistoryError where a partition has two.
        """
        rows = sorted(self._rows("log_ends"), key=lambda row: (row["topic"], row["partition"]))
        for one, other in pairwise(rows):
            if all(one[column] == other[column] for column in PARTITION):
                told = f"{one['topic']}-{one['partition']}"
                raise HistoryError(f"{table_directory(self.directory, 'log_ends')}: two rows of partition {told}")
        if not self.run_file.configuration.read_committed:
            return rows
        return held_back(rows, hanging(stored(self.directory, "positions").to_table(filter=STABILITY)))

    @cached_property
    def faults(self) -> list[dict[str, Any]]:
        """``faults`` as rows, in the order of their injection."""
        return faults(self._rows("faults"))

    @cached_property
    def last_ns(self) -> int:
        """The latest time in ``sends``, from the statistics in the files' footers; 0 where nothing was sent."""
        footers = (metadata(path) for path in parts(self.directory, "sends"))
        return max((at for footer in footers for at in latest(footer)), default=0)

    @cached_property
    def small(self) -> bool:
        """Whether one task reads all of it: then to look at every record again costs less than to find out at which."""
        return rows(self.directory) < OF_ONE_TASK

    def local(self, rows: pa.Table) -> DataFrame:
        """A few rows that are a part of the plan itself."""
        return self.spark.createDataFrame(rows, spark_schema(rows.schema))

    def _rows(self, table: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = stored(self.directory, table).to_table().to_pylist()
        return found


def _literal(path: Path) -> str:
    """The name of a file as Spark takes it for that file's alone: it expands its input paths as globs."""
    return re.sub(r"[{}\[\]*?\\]", r"\\\g<0>", str(path.absolute()))


def _committed(sends: DataFrame, transactions: DataFrame) -> DataFrame:
    """``sends`` where a delivery report within a transaction counts only if its commit succeeded."""
    committed = transactions.where("intent = 'commit' and outcome = 'ok'").selectExpr(
        "worker", "transaction", "true as committed"
    )
    void = "outcome = 'ok' and transaction is not null and committed is null"
    columns = [f"if({void}, 'info', outcome) as outcome" if name == "outcome" else name for name in sends.columns]
    return sends.join(committed, on=["worker", "transaction"], how="left").selectExpr(*columns)
