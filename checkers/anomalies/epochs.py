"""Leader epochs along a log: each leader appends behind the records of earlier leaders, under its own epoch."""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from checkers.history import PARTITION, History
from checkers.scan.log_order import BUCKET
from checkers.scan.running_max import greatest_before
from harness.history.schema import UNKNOWN_OFFSET

#: The columns that identify a log as one reader received it.
_LOG = ["phase", "reader", *PARTITION]


def may_have_epochs(history: History) -> bool:
    """Whether the reads may have more than one leader epoch, by the footers of the files."""
    return history.run_file.final_read and "leader_epoch" not in history.same("reads")


#: The rule of ``epoch_fell``.
BEHIND_A_LATER_EPOCH = "after_epoch > leader_epoch"


def epoch_fell(history: History) -> DataFrame | None:
    """Records of logs in which the epoch falls, each with the greatest epoch before it. Logs are those of the final
    read and of followers. The rule: that epoch is greater than the record's.

    Guarantee: a leader appends at the end of its log under its own epoch, which is greater than all before it
    (KIP-101). Returns: topic, partition, offset, record_id, read_ns, reader, leader_epoch, after_epoch, after_offset
    """
    logs = history.reads.where(f"phase in ('final', 'replica') and leader_epoch >= 0 and offset > {UNKNOWN_OFFSET}")
    extents = logs.groupBy(*_LOG, "leader_epoch").agg(F.min("offset").alias("first"), F.max("offset").alias("last"))
    broken = falls(row.asDict() for row in extents.collect())
    if not broken:
        return None
    suspicious = history.local(pa.Table.from_pylist(broken, _LOGS))
    records = (
        logs.join(F.broadcast(suspicious), on=_LOG, how="left_semi")
        .groupBy(*_LOG, "offset", "record_id", "leader_epoch")
        .agg(F.min("read_ns").alias("read_ns"))
    )
    greatest = {"before": F.struct("leader_epoch", "offset")}
    behind = greatest_before(records, _LOG, ["offset"], history.pieces(BUCKET), greatest)
    return behind.selectExpr(
        *(*PARTITION, "offset", "record_id", "read_ns", "reader", "leader_epoch"),
        *("before.leader_epoch as after_epoch", "before.offset as after_offset"),
    )


_LOGS = pa.schema([("phase", pa.string()), ("reader", pa.int32()), ("topic", pa.string()), ("partition", pa.int32())])


def falls(extents: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The logs in which a leader epoch begins before an earlier one has ended. ``extents``: the first and last offset
    of each epoch in each log. Returns: phase, reader, topic, partition"""
    logs: dict[tuple[Any, ...], list[tuple[int, int, int]]] = {}
    for row in extents:
        epoch = (row["leader_epoch"], row["first"], row["last"])
        logs.setdefault(tuple(row[name] for name in _LOG), []).append(epoch)
    broken = []
    for log, epochs in logs.items():
        reached = -1
        for _, first, last in sorted(epochs):
            if first < reached:
                broken.append(dict(zip(_LOG, log, strict=True)))
                break
            reached = max(reached, last)
    return broken
