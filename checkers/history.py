"""A stored run as DataFrames. Each table has the schema of its recorders."""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812

from checkers.leadership import Span, spans
from harness.history import schema
from harness.history.footers import constants
from harness.history.run_file import RunFile
from harness.history.schema import TABLES, TRANSACTION, UNKNOWN_OFFSET, Phase, PositionEvent
from harness.history.stored_run import StoredRun

#: Spark's message about a file that it cannot read completely.
_DAMAGED = re.compile(r"FAILED_READ_FILE\S*\].*? file:(?://)?(/\S+?\.parquet)")

#: The columns that identify a partition.
PARTITION = schema.PARTITION

#: A history with fewer rows is read by one task, so that a query is one stage without exchanges between tasks.
ROWS_OF_ONE_TASK = 1_000_000

_TYPES: dict[pa.DataType, T.DataType] = {
    pa.string(): T.StringType(),
    pa.int32(): T.IntegerType(),
    pa.int64(): T.LongType(),
    pa.bool_(): T.BooleanType(),
    pa.list_(pa.string()): T.ArrayType(T.StringType()),
    pa.list_(pa.int32()): T.ArrayType(T.IntegerType()),
}


def damaged_file(error: Exception) -> str | None:
    """The path of the file that Spark could not read completely; None if the error has another reason."""
    found = _DAMAGED.search(str(error))
    return unquote(found[1]) if found else None


def spark_schema(schema: pa.Schema) -> T.StructType:
    """The Spark schema of a table of the history. (Spark reads every Parquet column as nullable.)"""
    return T.StructType([T.StructField(field.name, _TYPES[field.type]) for field in schema])


@dataclass(frozen=True)
class History:
    """A stored run as DataFrames, and the directory for the results."""

    stored: StoredRun
    spark: SparkSession
    results: Path
    one_task: bool

    @classmethod
    def read(
        cls, directory: Path, spark: SparkSession, results: Path | None = None, one_task: bool | None = None
    ) -> "History":
        """The history of the run in ``directory``. No row is read yet.

        ``results``: the directory for what checkers find; by default the run's. ``one_task``: whether one task reads
        all rows of a table; this changes the layout of the work, and which records finders compare (``compares_all``),
        never an answer; by default true for a history with less than ROWS_OF_ONE_TASK rows. Raises HistoryError as
        StoredRun.open does.
        """
        stored = StoredRun.open(directory)
        few = stored.records < ROWS_OF_ONE_TASK if one_task is None else one_task
        return cls(stored, spark, results or directory, few)

    @property
    def directory(self) -> Path:
        """The run's directory."""
        return self.stored.directory

    @property
    def run_file(self) -> RunFile:
        """Its run.json."""
        return self.stored.file

    def table(self, name: str) -> DataFrame:
        """The rows of a table; none if the table is optional and was not recorded.

        If there are none, Spark knows that when it plans, and leaves out everything that depends on them.
        """
        schema = spark_schema(TABLES[name])
        files = [literal_path(path) for path in self.stored.files(name)]
        if not files:
            return self.local(TABLES[name].empty_table())
        found = self.spark.read.schema(schema).parquet(*files)
        return self.laid_out(found)

    @property
    def compares_all(self) -> bool:
        """Whether finders that compare records with each other look at all records, and not only at candidates.

        Without a final read, every record is a candidate. If one task reads all rows, to look at every record costs
        less than to find the candidates: to judge 30,000 records again takes 2.7 s of CPU instead of 4.0; their first
        judgement takes 15.5 s instead of 20. Size decides what is computed only here and in ``pieces``.
        """
        return self.one_task or not self.run_file.final_read

    def pieces(self, bucket: str) -> str | None:
        """``bucket`` (SQL that cuts rows into pieces for one task each); None if one task has all rows: then a running
        maximum is not cut (scan/running_max.py)."""
        return None if self.one_task else bucket

    def laid_out(self, rows: DataFrame) -> DataFrame:
        """``rows`` in one task if the history is read by one: a union of two tables would have two."""
        return rows.coalesce(1) if self.one_task else rows

    def records(self, name: str) -> DataFrame:
        """The rows of a table of records. A column with one value in all rows becomes a constant that Spark knows when
        it plans.

        Except topic and partition: Spark does not join or group by constants.
        """
        same = {column: value for column, value in self.same(name).items() if column not in PARTITION}
        return self.table(name).selectExpr(*(f"{same.get(c, c)} as {c}" for c in TABLES[name].names))

    def same(self, *tables: str) -> dict[str, str]:
        """The columns with one value in all rows of these tables, and that value as SQL."""
        types = {field.name: _TYPES[field.type].simpleString() for table in tables for field in TABLES[table]}
        values = self.stored.constants(*tables)
        return {name: f"cast({_in_sql(value)} as {types[name]})" for name, value in values.items() if name in types}

    def may_lack(self, table: str, column: str) -> bool:
        """Whether a column of a table may contain nulls, by the footers of the files."""
        return self.stored.may_be_null(table, column)

    @cached_property
    def sends(self) -> DataFrame:
        """Every record handed to a producer.

        If the final read is read_committed, a record of a transaction is acknowledged only with the commit: without a
        commit, a delivery report promises nothing, and ``outcome`` is info (KIP-98, 4).
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
        """The rows of ``reads`` that show the content of the logs: the final read; without one, everything that a
        reader got at a known offset."""
        return self.reads.where("phase = 'final'" if self.run_file.final_read else f"offset > {UNKNOWN_OFFSET}")

    @cached_property
    def transactions(self) -> DataFrame:
        """Every transaction."""
        return self.table("transactions")

    @cached_property
    def transactional(self) -> bool:
        """Whether there are any transactions."""
        return self.stored.count("transactions") > 0

    @cached_property
    def keyed(self) -> bool:
        """Whether a record can have been read under another key than it was sent with: the history has the keys of
        reads, and not all keys of sends and reads are the same (or null)."""
        return self.stored.has_column("reads", "key") and "key" not in self.same("sends", "reads")

    @cached_property
    def read_live(self) -> bool:
        """Whether a consumer read during the run, or had a partition assigned."""
        return self.stored.count("positions") > 0 or not self._phases <= {Phase.FINAL, Phase.REPLICA}

    @cached_property
    def moved_unseen(self) -> bool:
        """Whether a group may have moved partitions between readers at times that the history does not know."""
        if self.run_file.final_read:
            return False
        event = pc.field("event") == PositionEvent.MAY_HAVE_MOVED
        return bool(self.stored.table("positions", event, ["event"]).num_rows)

    @cached_property
    def followed(self) -> bool:
        """Whether a follower's own log was read."""
        return not self._phases <= {Phase.FINAL, Phase.LIVE}

    @cached_property
    def _phases(self) -> set[str | None]:
        """The phase of each file of reads that has rows; None for a file with several, or whose footer does not say."""
        return {constants([one]).get("phase") for one in self.stored.footers("reads") if one.num_rows}

    @property
    def read_committed(self) -> str:
        """SQL on ``reads``: delivered to a reader with isolation level read_committed. The readers of the final log and
        of the replicas have that of the run: a follower serves up to its last stable offset, too (KIP-392; KIP-98, 4).
        (An imported history does not know the level of a single reader: all readers have that of the run.)"""
        if not self.run_file.final_read:
            return "phase = 'live'" if self.run_file.configuration.read_committed else "false"
        live = f"phase = 'live' and {self._reads_at('read_committed')}"
        afterwards = "phase in ('final', 'replica')"
        return f"({live}) or {afterwards}" if self.run_file.configuration.read_committed else live

    @property
    def receives_all(self) -> str:
        """SQL on rows with a live ``reader``: it is known to be read_uncommitted, so it receives every record. (In an
        imported history nobody knows the level of a single reader.)"""
        return self._reads_at("read_uncommitted") if self.run_file.final_read else "false"

    def _reads_at(self, level: str) -> str:
        """SQL on rows with a live ``reader``: it was configured with this isolation level."""
        workers = self.run_file.workers().items()
        readers = [str(number) for number, config in workers if config.get("isolation.level") == level]
        return f"reader in ({', '.join(readers)})" if readers else "false"

    @cached_property
    def seen(self) -> list[Span]:
        """The brokers' reports on the partitions."""
        return spans(self.stored.table("observations"))

    @cached_property
    def log_ends(self) -> DataFrame:
        """``ends`` as a table."""
        return self.local(pa.Table.from_pylist(self.ends, TABLES["log_ends"]))

    @cached_property
    def ends(self) -> list[dict[str, Any]]:
        """The log ends that the final read had to reach, and whether it did: one row for each partition.

        Raises HistoryError if a partition has two rows.
        """
        return list(self.stored.ends.values())

    @property
    def faults(self) -> list[dict[str, Any]]:
        """``faults`` as rows, in the order of their injection."""
        return self.stored.faults

    @property
    def last_ns(self) -> int:
        """The latest time in ``sends``; 0 if nothing was sent."""
        return self.stored.last_ns

    def local(self, rows: pa.Table) -> DataFrame:
        """A few rows that become a part of the plan itself."""
        return self.spark.createDataFrame(rows, spark_schema(rows.schema))


def _in_sql(value: str | int | bool | None) -> str:
    """A value as a literal in SQL: Spark's parser is faster than calls that build the literal."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return "'{}'".format(re.sub(r"[^\w.-]", lambda found: f"\\U{ord(found[0]):08x}", value))
    return str(value).lower()


def literal_path(path: Path) -> str:
    """The path of a file, escaped: Spark expands its input paths as globs."""
    return re.sub(r"[{}\[\]*?\\]", r"\\\g<0>", str(path.absolute()))


def _committed(sends: DataFrame, transactions: DataFrame) -> DataFrame:
    """``sends``, in which a delivery report within a transaction counts only if the commit succeeded."""
    committed = transactions.where("intent = 'commit' and outcome = 'ok'").selectExpr(*TRANSACTION, "true as committed")
    void = "outcome = 'ok' and transaction is not null and committed is null"
    columns = [f"if({void}, 'info', outcome) as outcome" if name == "outcome" else name for name in sends.columns]
    return sends.join(committed, on=TRANSACTION, how="left").selectExpr(*columns)
