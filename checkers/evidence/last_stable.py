"""How far each log was stable once all transactions should have been over. Without Spark.

What workloads/readback/last_stable.py recorded.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from checkers.evidence.leadership import Partition

#: The rows of positions that tell how far each log was stable.
STABILITY = pc.field("event").isin(["last-stable", "high-watermark"])


class Gap(NamedTuple):
    """What stands behind a transaction that nobody ends: from the last stable offset to the high watermark."""

    last_stable: int
    high_watermark: int


def hanging(told: pa.Table) -> dict[Partition, Gap]:
    """The partitions whose last stable offset was below the high watermark when both were told last.

    ``told``: the rows of positions that are STABILITY.
    """
    last: dict[Partition, dict[str, Any]] = {}
    for row in told.sort_by("at_ns").to_pylist():
        ends = last.setdefault((row["topic"], row["partition"]), dict.fromkeys(("last-stable", "high-watermark")))
        ends[row["event"]] = row["offset"]
    gaps = {of: Gap(at["last-stable"], at["high-watermark"]) for of, at in last.items() if None not in at.values()}
    return {of: gap for of, gap in gaps.items() if gap.last_stable < gap.high_watermark}


def held_back(ends: Iterable[Mapping[str, Any]], gaps: Mapping[Partition, Gap]) -> list[dict[str, Any]]:
    """``ends`` of a final read with read_committed, as it is where a transaction hangs: the read was at its end at the
    last stable offset, and tells nothing of what stands from there to the high watermark, where the log ends.
    """
    return [
        {**row, "log_end": gaps[of].high_watermark, "complete": False}
        if row["complete"] and (of := (row["topic"], row["partition"])) in gaps
        else {**row}
        for row in ends
    ]
