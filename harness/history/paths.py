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

HISTORY = "history"
JOURNALS = "journals"
LOGS = "logs"
ANOMALIES = "anomalies"
VERDICT_FILE = "verdict.json"
#: Tracebacks of checkers that failed, beside the anomalies.
CHECKERS_LOG = "checkers.log"

#: At the top of a filesystem of its own (ext4): only root may look into it, and no run is put there.
_OF_VOLUME = "lost+found"

#: Rows of a row group: what one Spark task reads at least. Small enough for two cores to share a history of 10^6.
_ROW_GROUP = 1 << 19


def table_directory(run: Path, table: str) -> Path:
    """``<run>/history/<table>``."""
    return run / HISTORY / table


def parts(run: Path, table: str) -> list[Path]:
    """The Parquet files of a table, in the order of their names."""
    return sorted(table_directory(run, table).glob("*.parquet"))


def stored(run: Path, table: str) -> "ds.Dataset":
    """The ``parts`` of a table, to be read a piece at a time; where there are none, no rows."""
    import pyarrow.dataset as ds  # (and with it pandas: half a second that who records does without)

    files = [str(path) for path in parts(run, table)]
    schema = TABLES[table]
    return ds.dataset(files, schema, format="parquet") if files else ds.dataset(schema.empty_table())


def write_table(run: Path, table: str, rows: pa.Table, part: str = "part") -> Path:
    """Store ``rows`` in this order as ``<run>/history/<table>/<part>.parquet``, zstd; return that path.

    One part for each journal keeps a worker's records together, which is what the checkers' first pass thrives on.
    """
    directory = table_directory(run, table)
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{part}.parquet"
    pq.write_table(rows.cast(TABLES[table]), path, **_encoding(TABLES[table]), row_group_size=_ROW_GROUP)
    return path


def parquet_writer(run: Path, table: str, schema: pa.Schema, part: str = "part") -> pq.ParquetWriter:
    """The same file open, for rows that come in batches: each ``write_table`` of it makes a row group.

    ``schema`` is the table's, or only the named columns of it.
    """
    directory = table_directory(run, table)
    directory.mkdir(parents=True, exist_ok=True)
    return pq.ParquetWriter(directory / f"{part}.parquet", schema, **_encoding(schema))


def _encoding(schema: pa.Schema) -> dict[str, Any]:
    texts = [field.name for field in schema if pa.types.is_string(field.type)]
    return {"compression": "zstd", "use_dictionary": texts, "write_page_checksum": True}


def files_below(folder: Path, name: str, unreadable: Callable[[OSError], None], nested: bool = True) -> list[Path]:
    """Every file of this name at and below ``folder``, in order; unless ``nested``, none below a folder that has one.
    What is removed meanwhile is skipped, and so is a volume's own `lost+found`; another folder that this user cannot
    look into is ``unreadable``."""

    def skip_or_report(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError) and Path(error.filename).name != _OF_VOLUME:
            unreadable(error)

    found = []
    for at, below, files in os.walk(folder, onerror=skip_or_report):
        if name in files:
            found.append(Path(at, name))
            if not nested:
                below.clear()
    return sorted(found)


def checking(folder: Path) -> str:
    """The command that judges what is recorded below a folder, as a shell takes it, to be named in a sentence."""
    return f"`kafka-trial check {shlex.quote(str(folder))}`"


def is_there(path: Path) -> bool:
    """Whether there is something of this name, or nobody can tell this user."""
    with suppress(PermissionError):
        try:
            path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return False
    return True
