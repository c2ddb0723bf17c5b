"""The anomaly store: all records of an anomaly, ``<results>/anomalies/<name>/*.parquet``."""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from checkers.leadership import Partition
from harness.core.anomalies import BY_NAME, Anomaly, Gone
from harness.history.paths import ANOMALIES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: The order of the rows; rows that are equal in these are ordered by all other columns.
_ORDER = ("topic", "partition", "sent_ns", "record_id", "offset")


@dataclass(frozen=True)
class StoredRows:
    """All rows of one anomaly, in files. Without files there are no rows."""

    files: tuple[Path, ...] = ()

    def count_of(self, wanted: pc.Expression) -> int:
        """The number of rows that match an expression."""
        return sum(len(piece) for piece in self.pieces(wanted=wanted))

    @property
    def count(self) -> int:
        """The number of rows."""
        return sum(pq.read_metadata(file).num_rows for file in self.files)

    def pieces(self, schema: pa.Schema | None = None, wanted: pc.Expression | None = None) -> Iterator[pa.Table]:
        """The rows that match an expression, piece by piece, with the columns of ``schema`` if one is passed (null if
        an anomaly lacks a column)."""
        if self.files:
            files = [str(file) for file in self.files]
            for batch in ds.dataset(files, schema, format="parquet").to_batches(filter=wanted):
                # (A file without rows gives a batch without rows.)
                if batch.num_rows:
                    yield pa.Table.from_batches([batch])

    def first(self, number: int, wanted: pc.Expression | None = None) -> list[dict[str, Any]]:
        """The first ``number`` rows of those that match an expression."""
        least: pa.Table | None = None
        for piece in self.pieces(wanted=wanted):
            least = _sorted(piece if least is None else pa.concat_tables([least, piece])).slice(0, number)
        return [] if least is None else least.to_pylist()

    def extent(self) -> int:
        """The distance from the lowest to the highest offset, by the statistics in the files' footers; 0 if there are
        none."""
        lowest: list[int] = []
        highest: list[int] = []
        for file in self.files:
            footer = pq.read_metadata(file)
            column = footer.schema.to_arrow_schema().get_field_index("offset")
            for group in range(footer.num_row_groups):
                statistics = footer.row_group(group).column(column).statistics
                if statistics is not None and statistics.has_min_max:
                    lowest.append(statistics.min)
                    highest.append(statistics.max)
        return max(highest) - min(lowest) + 1 if lowest else 0


#: The rows of an anomaly that was not found.
NO_ROWS = StoredRows()


@dataclass(frozen=True)
class AnomalyStore:
    """The stored rows of a run's anomalies, by the anomaly's name."""

    rows: Mapping[str, StoredRows] = field(default_factory=dict)

    @classmethod
    def read(cls, results: Path) -> "AnomalyStore":
        """The rows that an earlier judgement stored in ``results``."""
        names = sorted({file.parent.name for file in (results / ANOMALIES).glob("*/*.parquet")})
        return cls({name: _rows_in(_directory(results, name)) for name in names})

    def of(self, anomaly: Anomaly) -> StoredRows:
        """The rows of an anomaly; none if it was not found."""
        return self.rows.get(anomaly.name, NO_ROWS)

    def gone(self, *kinds: Gone) -> list[tuple[Anomaly, StoredRows]]:
        """The anomalies that were found, and prove that records are gone in one of these ways, with their rows."""
        found = ((anomaly, self.of(anomaly)) for anomaly in BY_NAME.values() if anomaly.gone in kinds)
        return [(anomaly, rows) for anomaly, rows in found if rows.files]


def store(found: "DataFrame", results: Path, anomaly: str) -> StoredRows:
    """Store all rows of ``found``. Without rows, nothing is stored."""
    directory = _directory(results, anomaly)
    found.write.parquet(str(directory.absolute()))
    rows = _rows_in(directory)
    if not rows.count:
        shutil.rmtree(directory)
        return NO_ROWS
    return rows


def discard(results: Path, anomaly: str) -> None:
    """Remove the stored rows of an anomaly, if there are any."""
    shutil.rmtree(_directory(results, anomaly), ignore_errors=True)


def each_partition(topic: Any, partition: Any) -> Iterator[tuple[Partition, np.ndarray]]:
    """Each partition in two columns of some records, with the indices of its records."""
    if not len(topic):
        return
    topics = topic.combine_chunks().dictionary_encode()
    lanes = (topics.indices.to_numpy().astype(np.int64) << 32) + partition.to_numpy()
    order = np.argsort(lanes, kind="stable")
    each, first = np.unique(lanes[order], return_index=True)
    for lane, here in zip(each, np.split(order, first[1:]), strict=True):
        yield (topics.dictionary[lane >> 32].as_py(), int(lane & 0xFFFFFFFF)), here


def _sorted(piece: pa.Table) -> pa.Table:
    flat = (field.name for field in piece.schema if not pa.types.is_nested(field.type))
    keys = [(name, "ascending", "at_start") for name in dict.fromkeys((*_ORDER, *flat))]
    return piece.take(pc.sort_indices(piece, keys))


def _directory(results: Path, anomaly: str) -> Path:
    return results / ANOMALIES / anomaly


def _rows_in(directory: Path) -> StoredRows:
    return StoredRows(tuple(sorted(directory.glob("*.parquet"))))
