"""The scan over live deliveries: one row per poll and partition; assigns, seeks and ends of partition are rows too.

A reader gets hundreds of records at a time, in the order of the log. Where they are consecutive, and begin at its
position, none of them needs a look.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from checkers.history import PARTITION, History
from checkers.scan.running_max import greatest_before
from harness.history.schema import UNKNOWN_OFFSET

#: A reader and a partition that it reads.
READER = ["reader", "incarnation", *PARTITION]
#: An assignment interval: what a reader reads of a partition from one assign, seek, revoke or lost to the next.
ASSIGNMENT = [*READER, "assignment"]
#: What identifies a delivery's poll.
POLL = [*READER, "at_ns", "poll"]

#: SQL on ``reads``: live deliveries whose offset is known.
LIVE = f"phase = 'live' and offset > {UNKNOWN_OFFSET}"

#: SQL on a poll, and on a delivery: the offset behind it. (Behind the greatest of 64 bits there is none.)
BEHIND_LAST = f"least(last, {(1 << 63) - 2}) + 1"
BEHIND_IT = f"least(offset, {(1 << 63) - 2}) + 1"

_RESETS = "('assign', 'revoke', 'lost', 'seek')"
#: SQL on a reset ``r`` and a row: it came first.
_BEFORE = "r.at_ns < at_ns or r.at_ns = at_ns and r.poll <= poll"
#: What one task sorts at a time: a second of a reader's polls.
_BUCKET = "at_ns div 1000000000"
#: The order of rows of one moment: a start, the poll, then ends of the partition. An end that was reported within the
#: poll's records puts nobody behind those that came after it.
_ORDER_WITHIN_NS = "case when first is not null then 1 when arrived is null then 0 else 2 end"


def polls(history: History) -> DataFrame:
    """One row per poll and partition, per start of an assignment that is known, and per end of a partition.

    Returns: reader, incarnation, topic, partition, assignment (the interval: how many resets came before), at_ns, poll
    (as in ``delivered``), first and last (offsets of a poll's records; null for other rows), records (how many),
    distinct (how many offsets they have), arrived (the offset where the reader came of itself; null for a start), next
    (its position afterwards), ended_by (the event that ended the interval, or null), position_before (its position
    right before), furthest_before (its furthest position of the interval before); null where there was none
    """
    resets = (
        history.table("positions")
        .where(f"event in {_RESETS}")
        .withColumn("poll", F.expr(_number(history)))
        .groupBy(*READER)
        .agg(F.array_sort(F.collect_list(F.struct("at_ns", "poll", "event"))).alias("resets"))
    )
    rows = (
        _polled(history)
        .unionByName(_positioned(history))
        .join(F.broadcast(resets), on=READER, how="left")
        .withColumn("assignment", F.expr(f"coalesce(size(filter(resets, r -> {_BEFORE})), 0)"))
        .selectExpr("*", "get(resets, assignment).event as ended_by", f"{_ORDER_WITHIN_NS} as order_within_ns")
        .drop("resets")
    )
    before = {"latest": F.struct("at_ns", "poll", "next"), "furthest_before": F.col("next")}
    order = ["at_ns", "poll", "order_within_ns", "next"]
    return (
        greatest_before(rows, ASSIGNMENT, order, history.pieces(_BUCKET), before)
        .withColumn("position_before", F.col("latest.next"))
        .drop("latest", "order_within_ns")
    )


def delivered(history: History) -> DataFrame:
    """Every live delivery. Of one moment an imported history knows which came first: ``poll`` is the number of the
    poll, and 0 in our own, where time alone tells.

    Returns: reader, incarnation, topic, partition, at_ns, poll, offset, record_id
    """
    return history.reads.where(LIVE).selectExpr(
        *READER, "read_ns as at_ns", f"{_number(history)} as poll", "offset", "record_id"
    )


def _number(history: History) -> str:
    """SQL on ``reads`` and ``positions``: what tells the order of one moment."""
    return "0L" if history.run_file.final_read else "coalesce(poll, 0L)"


def _polled(history: History) -> DataFrame:
    """The live deliveries, folded 64 offsets to a row before they are counted: so no offset is counted twice."""
    return (
        delivered(history)
        .selectExpr(*POLL, "offset", "shiftright(offset, 6) as span")
        .groupBy(*POLL, "span")
        .agg(
            F.min("offset").alias("first"),
            F.max("offset").alias("last"),
            F.count("*").alias("records"),
            F.expr("bit_count(bit_or(shiftleft(1L, cast(offset & 63 as int))))").alias("distinct"),
        )
        .groupBy(*POLL)
        .agg(
            F.min("first").alias("first"),
            F.max("last").alias("last"),
            F.sum("records").alias("records"),
            F.sum("distinct").alias("distinct"),
        )
        .selectExpr("*", "first as arrived", f"{BEHIND_LAST} as next")
    )


def _positioned(history: History) -> DataFrame:
    """Starts of assignments, and ends of partitions, as rows of ``polls``."""
    none = "cast(null as bigint)"
    return (
        history.table("positions")
        .where("event in ('assign', 'seek', 'end-of-partition') and offset is not null")
        .selectExpr(
            *READER,
            "at_ns",
            f"{_number(history)} as poll",
            *(f"{none} as {name}" for name in ("first", "last", "records", "distinct")),
            "if(event = 'end-of-partition', offset, null) as arrived",
            "offset as next",
        )
    )
