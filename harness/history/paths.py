"""Paths inside a run directory, and how a table of its history is stored."""

import os
import shlex
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from harness.history.schema import TABLES

if TYPE_CHECKING:
    import pyarrow.dataset as ds

#: What a provider started: with Docker, what Compose reads; with SSH, which machine has which node.
COMPOSE_FILE = "compose.yaml"
MACHINES_FILE = "machines.yaml"
#: The settings that each broker reported.
SETTINGS_FILE = "settings.json"
HISTORY = "history"
JOURNALS = "journals"
LOGS = "logs"
#: Tracebacks of the observer's threads that failed, beside the logs of the nodes.
OBSERVER_LOG = "observer.log"
ANOMALIES = "anomalies"
VERDICT_FILE = "verdict.json"
REPORT_FILE = "report.html"
#: A suite's directory has one, too, and a folder of logs.
JUNIT_FILE = "junit.xml"
#: In a suite's directory: its runs.
SUITE_FILE = "suite.json"
#: Tracebacks of checkers that failed, beside the anomalies.
CHECKERS_LOG = "checkers.log"

#: A folder at the top of each ext4 filesystem: only root may read it, and it has no runs.
_OF_VOLUME = "lost+found"

#: Rows of a row group, the least that one Spark task reads. Small enough that two cores share a history of 10^6.
_ROW_GROUP = 1 << 19


def table_directory(run: Path, table: str) -> Path:
    """``<run>/history/<table>``."""
    return run / HISTORY / table


def parts(run: Path, table: str) -> list[Path]:
    """The Parquet files of a table, in the order of their names."""
    return sorted(table_directory(run, table).glob("*.parquet"))


def stored(run: Path, table: str) -> "ds.Dataset":
    """The ``parts`` of a table, to be read in pieces. A table without parts has no rows."""
    import pyarrow.dataset as ds  # (Not needed by recorders.)

    files = [str(path) for path in parts(run, table)]
    schema = TABLES[table]
    return ds.dataset(files, schema, format="parquet") if files else ds.dataset(schema.empty_table())


def write_table(run: Path, table: str, rows: pa.Table, part: str = "part") -> Path:
    """Store ``rows`` in this order as ``<run>/history/<table>/<part>.parquet``, zstd; return that path.

    One part for each journal keeps a worker's records together: that makes the checkers' first scan fast.
    """
    directory = table_directory(run, table)
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{part}.parquet"
    pq.write_table(rows.cast(TABLES[table]), path, **_encoding(TABLES[table]), row_group_size=_ROW_GROUP)
    return path


def parquet_writer(run: Path, table: str, schema: pa.Schema, part: str = "part") -> pq.ParquetWriter:
    """Open the same file for rows that come in batches: each of its ``write_table`` calls makes a row group.

    ``schema``: the table's, or some of its columns.
    """
    directory = table_directory(run, table)
    directory.mkdir(parents=True, exist_ok=True)
    return pq.ParquetWriter(directory / f"{part}.parquet", schema, **_encoding(schema))


def _encoding(schema: pa.Schema) -> dict[str, Any]:
    texts = [field.name for field in schema if pa.types.is_string(field.type)]
    return {"compression": "zstd", "use_dictionary": texts, "write_page_checksum": True}


def files_below(
    folder: Path, name: str, unreadable: Callable[[OSError], None], nested: bool = True, instead: str | None = None
) -> list[Path]:
    """Every file of this name in ``folder`` and below, in order, or the one that is there ``instead``. Unless
    ``nested``, the search does not go below a folder that has one. Folders that are removed meanwhile are skipped, and
    so is a filesystem's `lost+found`; ``unreadable`` is called for every other folder that this user cannot read."""

    def skip_or_report(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError) and Path(error.filename).name != _OF_VOLUME:
            unreadable(error)

    found = []
    for at, below, files in os.walk(folder, onerror=skip_or_report):
        here = next((one for one in (name, instead) if one in files), None)
        if here is not None:
            found.append(Path(at, here))
            if not nested:
                below.clear()
    return sorted(found)


def checking(folder: Path) -> str:
    """The shell command that judges all runs below a folder, as a sentence quotes it."""
    return f"`kafka-trial check {shlex.quote(str(folder))}`"


def is_there(path: Path) -> bool:
    """Whether a file or folder of this name exists. True if this user may not see whether it does."""
    with suppress(PermissionError):
        try:
            path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return False
    return True
