"""The one pass over live deliveries: what each poll gave of a partition is a row, as is each place told besides.

A reader is given hundreds of records at a time, in the order of the log. Where they are consecutive, and begin where
the reader stood, there is nothing to ask of any single one.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from checkers.history import PARTITION, History
from checkers.scan.running_max import greatest_before
from harness.history.schema import UNTOLD

#: A reader's place in a partition.
SEAT = ["reader", "incarnation", *PARTITION]

#: What one reader has of a partition between two events that put it somewhere or take it away.
STAY = [*SEAT, "stay"]
#: What tells a delivery's poll.
POLL = [*SEAT, "at_ns"]

#: SQL on ``reads``: deliveries, as far as the history tells where they stood.
GIVEN = f"phase = 'live' and offset > {UNTOLD}"

#: SQL on a poll, and on a delivery: the offset behind it. (Behind the greatest of 64 bits there is none.)
BEHIND_LAST = f"least(last, {(1 << 63) - 2}) + 1"
BEHIND_IT = f"least(offset, {(1 << 63) - 2}) + 1"

_RESETS = "('assign', 'revoke', 'lost', 'seek')"
#: What one task sorts at a time: a second of a reader's polls.
_BUCKET = "at_ns div 1000000000"
#: Of one moment: a start, the poll, then ends of the partition: one that was told amid the poll's records puts nobody
#: behind those that came after it.
_TURN = "case when first is not null then 1 when arrived is null then 0 else 2 end"


def polls(history: History) -> DataFrame:
    """One row for each poll of a partition, each start that is known, and each end of a partition that was told.

    Returns: reader, incarnation, topic, partition, stay (how many resets came before), at_ns, first and last (offsets
    of a poll's records; null for others), given (records), distinct (offsets of those), arrived (the offset it came to
    without being told to; null for a start), next, ended_by (the event that ended the stay, or null), left_at (where
    the stay stood right before), gone_to (the furthest place of the stay before); null where there was none
    """
    resets = (
        history.table("positions")
        .where(f"event in {_RESETS}")
        .groupBy(*SEAT)
        .agg(F.array_sort(F.collect_list(F.struct("at_ns", "event"))).alias("resets"))
    )
    placed = (
        _polled(history)
        .unionByName(_told(history))
        .join(F.broadcast(resets), on=SEAT, how="left")
        .withColumn("stay", F.expr("coalesce(size(filter(resets, r -> r.at_ns <= at_ns)), 0)"))
        .selectExpr("*", "get(resets, stay).event as ended_by", f"{_TURN} as turn")
        .drop("resets")
    )
    before = {"left": F.struct("at_ns", "next"), "gone_to": F.col("next")}
    return (
        greatest_before(placed, STAY, ["at_ns", "turn", "next"], None if history.small else _BUCKET, before)
        .withColumn("left_at", F.col("left.next"))
        .drop("left", "turn")
    )


def _polled(history: History) -> DataFrame:
    """The live deliveries, folded 64 offsets to a row before they are counted: so no offset is counted twice."""
    return (
        history.reads.where(GIVEN)
        .selectExpr(*SEAT, "read_ns as at_ns", "offset", "shiftright(offset, 6) as span")
        .groupBy(*POLL, "span")
        .agg(
            F.min("offset").alias("first"),
            F.max("offset").alias("last"),
            F.count("*").alias("given"),
            F.expr("bit_count(bit_or(shiftleft(1L, cast(offset & 63 as int))))").alias("distinct"),
        )
        .groupBy(*POLL)
        .agg(
            F.min("first").alias("first"),
            F.max("last").alias("last"),
            F.sum("given").alias("given"),
            F.sum("distinct").alias("distinct"),
        )
        .selectExpr("*", "first as arrived", f"{BEHIND_LAST} as next")
    )


def _told(history: History) -> DataFrame:
    none = "cast(null as bigint)"
    return (
        history.table("positions")
        .where("event in ('assign', 'seek', 'end-of-partition') and offset is not null")
        .selectExpr(
            *POLL,
            *(f"{none} as {name}" for name in ("first", "last", "given", "distinct")),
            "if(event = 'end-of-partition', offset, null) as arrived",
            "offset as next",
        )
    )
