"""How far each log was stable once all transactions should have been over. Without Spark.

What workloads/readback/last_stable.py recorded.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from harness.core.topology import Partition

#: The rows of positions that say how far each log was stable.
STABILITY = pc.field("event").isin(["last-stable", "high-watermark"])


class StableEnds(NamedTuple):
    """Where a log was stable and where it ended, as both were reported last."""

    last_stable: int
    high_watermark: int

    @property
    def hang(self) -> bool:
        """Whether a transaction there is ended by nobody."""
        return self.last_stable < self.high_watermark


def stable_ends(rows: pa.Table) -> dict[Partition, StableEnds]:
    """The last stable offset and the high watermark of each partition of which both are known.

    ``rows``: the rows of positions that are STABILITY.
    """
    last: dict[Partition, dict[str, Any]] = {}
    for row in rows.sort_by("at_ns").to_pylist():
        ends = last.setdefault((row["topic"], row["partition"]), dict.fromkeys(("last-stable", "high-watermark")))
        ends[row["event"]] = row["offset"]
    return {
        of: StableEnds(at["last-stable"], at["high-watermark"]) for of, at in last.items() if None not in at.values()
    }


def held_back(rows: Iterable[Mapping[str, Any]], stable: Mapping[Partition, StableEnds]) -> list[dict[str, Any]]:
    """The ``rows`` of log_ends with read_committed, as they are where a transaction hangs.

    The read was complete at the last stable offset, and says nothing about the records from there to the high
    watermark, where the log ends.
    """
    return [
        {**row, "log_end": ends.high_watermark, "complete": False}
        if row["complete"] and (ends := stable.get((row["topic"], row["partition"]))) and ends.hang
        else {**row}
        for row in rows
    ]
