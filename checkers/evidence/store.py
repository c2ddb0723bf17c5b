"""The anomaly store: all records of an anomaly, ``<results>/anomalies/<name>/*.parquet``."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from checkers.evidence.leadership import Partition
from harness.history.paths import ANOMALIES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: The order of its rows; those that are equal here, by all other columns.
_ORDER = ("topic", "partition", "sent_ns", "record_id", "offset")


def directory_of(results: Path, anomaly: str) -> Path:
    """The directory of an anomaly among the results of a judgement."""
    return results / ANOMALIES / anomaly


def store(found: "DataFrame", stored: Path) -> int:
    """Store all rows of ``found``. Returns: how many they are. Without rows, nothing is stored."""
    found.write.parquet(str(stored.absolute()))
    number: int = sum(pq.read_metadata(part).num_rows for part in _parts(stored))
    if not number:
        shutil.rmtree(stored)
    return number


def pieces(stored: Path, schema: pa.Schema | None = None, wanted: pc.Expression | None = None) -> Iterator[pa.Table]:
    """The stored rows that meet an expression, piece by piece, with the columns of ``schema`` where one is given (null
    where an anomaly has none)."""
    files = [str(part) for part in _parts(stored)]
    if files:
        for batch in ds.dataset(files, schema, format="parquet").to_batches(filter=wanted):
            # (Of a part without rows there is a batch without rows.)
            if batch.num_rows:
                yield pa.Table.from_batches([batch])


def first(stored: Path, number: int) -> list[dict[str, Any]]:
    """The first so many stored rows."""
    least: pa.Table | None = None
    for piece in pieces(stored):
        least = _sorted(piece if least is None else pa.concat_tables([least, piece])).slice(0, number)
    return [] if least is None else least.to_pylist()


def each_partition(topic: Any, partition: Any) -> Iterator[tuple[Partition, np.ndarray]]:
    """Each partition among some records, and which of them are its own."""
    topics = topic.combine_chunks().dictionary_encode()
    lanes = (topics.indices.to_numpy().astype(np.int64) << 32) + partition.to_numpy()
    order = np.argsort(lanes, kind="stable")
    each, first = np.unique(lanes[order], return_index=True)
    for lane, here in zip(each, np.split(order, first[1:]), strict=True):
        yield (topics.dictionary[lane >> 32].as_py(), int(lane & 0xFFFFFFFF)), here


def extent(stored: Path) -> int:
    """From the lowest to the highest offset, by the statistics in the files' footers; 0 where none is."""
    lowest: list[int] = []
    highest: list[int] = []
    for part in _parts(stored):
        footer = pq.read_metadata(part)
        column = footer.schema.to_arrow_schema().get_field_index("offset")
        for group in range(footer.num_row_groups):
            statistics = footer.row_group(group).column(column).statistics
            if statistics is not None and statistics.has_min_max:
                lowest.append(statistics.min)
                highest.append(statistics.max)
    return max(highest) - min(lowest) + 1 if lowest else 0


def _sorted(piece: pa.Table) -> pa.Table:
    flat = (field.name for field in piece.schema if not pa.types.is_nested(field.type))
    keys = [(name, "ascending", "at_start") for name in dict.fromkeys((*_ORDER, *flat))]
    return piece.take(pc.sort_indices(piece, keys))


def _parts(stored: Path) -> list[Path]:
    return sorted(stored.glob("*.parquet"))
