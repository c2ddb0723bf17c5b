"""The last stable offset of each log, once all transactions should have ended. Without Spark.

workloads/readback/last_stable.py records it.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from harness.core.topology import Partition
from harness.history.schema import PositionEvent

_LAST_STABLE, _HIGH_WATERMARK = PositionEvent.LAST_STABLE, PositionEvent.HIGH_WATERMARK
#: The rows of ``positions`` that have a last stable offset or a high watermark.
STABILITY = pc.field("event").isin([_LAST_STABLE, _HIGH_WATERMARK])


class StableEnds(NamedTuple):
    """The last stable offset of a log and its high watermark, as last reported."""

    last_stable: int
    high_watermark: int

    @property
    def hang(self) -> bool:
        """Whether the log has a transaction that nobody ends."""
        return self.last_stable < self.high_watermark


def stable_ends(rows: pa.Table) -> dict[Partition, StableEnds]:
    """The last stable offset and the high watermark of each partition, if both are known.

    ``rows``: the rows of ``positions`` that STABILITY selects.
    """
    last: dict[Partition, dict[str, Any]] = {}
    for row in rows.sort_by("at_ns").to_pylist():
        ends = last.setdefault((row["topic"], row["partition"]), dict.fromkeys((_LAST_STABLE, _HIGH_WATERMARK)))
        ends[row["event"]] = row["offset"]
    return {
        partition: StableEnds(ends[_LAST_STABLE], ends[_HIGH_WATERMARK])
        for partition, ends in last.items()
        if None not in ends.values()
    }


def held_back(rows: Iterable[Mapping[str, Any]], stable: Mapping[Partition, StableEnds]) -> list[dict[str, Any]]:
    """The ``rows`` of ``log_ends`` of a read with read_committed: if a transaction hangs, a row is not complete.

    The read ended at the last stable offset, and did not see the records from there to the high watermark, where the
    log ends.
    """
    return [
        {**row, "log_end": ends.high_watermark, "complete": False}
        if row["complete"] and (ends := stable.get((row["topic"], row["partition"]))) and ends.hang
        else {**row}
        for row in rows
    ]
