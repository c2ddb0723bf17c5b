"""The scan of live deliveries: one row per poll and partition; assigns, seeks and ends of partition are rows too.

A reader gets hundreds of records at a time, in the order of the log. If they are consecutive and begin at its position,
no checker needs to look at them.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from checkers.history import PARTITION, History
from checkers.scan.record_bits import OFFSET_BIT, OFFSET_BLOCK
from checkers.scan.running_max import greatest_before
from harness.core.clock import SECOND_NS
from harness.history.schema import ENDS_INTERVAL, UNKNOWN_OFFSET

#: The columns of a reader and a partition that it reads.
READER = ["reader", "incarnation", *PARTITION]
#: The columns of an assignment interval: a reader's time with a partition, from one assign, seek, revoke or lost to the
#: next.
ASSIGNMENT = [*READER, "assignment"]
#: The columns that identify a poll.
POLL = [*READER, "at_ns", "poll"]

#: SQL on ``reads``: live deliveries with a known offset.
LIVE = f"phase = 'live' and offset > {UNKNOWN_OFFSET}"

#: SQL on a poll, and on a delivery: the offset behind it. (There is none behind the greatest number of 64 bits.)
BEHIND_LAST = f"least(last, {(1 << 63) - 2}) + 1"
BEHIND_IT = f"least(offset, {(1 << 63) - 2}) + 1"

#: SQL: the events that begin another assignment interval.
RESETS = str(tuple(map(str, ENDS_INTERVAL)))
#: One task sorts one second of a reader's polls at a time.
_BUCKET = f"at_ns div {SECOND_NS}"
#: The order of rows with the same time: a start, the poll, then ends of the partition. An end within the poll's records
#: does not move the reader behind later records of that poll.
_ORDER_WITHIN_NS = "case when first is not null then 1 when arrived is null then 0 else 2 end"


def polls(history: History) -> DataFrame:
    """One row per poll and partition, per known start of an assignment, and per end of a partition.

    Returns: reader, incarnation, topic, partition, assignment (the number of the interval: how many resets came
    before), at_ns, poll (as in ``delivered``), first and last (offsets of the poll's records; null for other rows),
    records (their number), distinct (the number of their offsets), arrived (the offset that the reader reached; null
    for a start), next (its position afterwards), ended_by (the event that ended the interval, or null), position_before
    (its position right before), furthest_before (its furthest position before in the interval); null if there was none
    """
    resets = (
        history.table("positions")
        .where(f"event in {RESETS}")
        .withColumn("poll", F.expr(_number(history)))
        .groupBy(*READER)
        .agg(F.array_sort(F.collect_list(F.struct("at_ns", "poll", "event"))).alias("resets"))
    )
    rows = (
        _polled(history)
        .unionByName(_positioned(history))
        .join(F.broadcast(resets), on=READER, how="left")
        .withColumn("assignment", F.expr(f"coalesce(size(filter(resets, r -> {_before(history)})), 0)"))
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
    """Every live delivery. In an imported history ``poll`` is the number of the poll, which gives the order of polls at
    the same time. In our own it is 0: time alone gives the order.

    Returns: reader, incarnation, topic, partition, at_ns, poll, offset, record_id, leader_epoch
    """
    return history.reads.where(LIVE).selectExpr(
        *READER, "read_ns as at_ns", f"{_number(history)} as poll", "offset", "record_id", "leader_epoch"
    )


def _before(history: History) -> str:
    """SQL on a reset ``r`` and a row of ``polls``: the reset came first.

    At the same time, a poll of our own readers comes before a seek: it is why they had to seek. Partitions are
    assigned and taken within a poll, before its time (workloads/clients/consuming.py).
    """
    before = "r.at_ns < at_ns or r.at_ns = at_ns and r.poll <= poll"
    return f"{before} and (r.event != 'seek' or arrived is null)" if history.run_file.final_read else before


def _number(history: History) -> str:
    """SQL on ``reads`` and ``positions``: the number that orders rows with the same time."""
    return "0L" if history.run_file.final_read else "coalesce(poll, 0L)"


def _polled(history: History) -> DataFrame:
    """The live deliveries, folded to a row per poll. They are first folded 64 offsets to a row, so that no offset
    counts twice."""
    return (
        delivered(history)
        .selectExpr(*POLL, "offset", f"{OFFSET_BLOCK} as span")
        .groupBy(*POLL, "span")
        .agg(
            F.min("offset").alias("first"),
            F.max("offset").alias("last"),
            F.count("*").alias("records"),
            F.expr(f"bit_count(bit_or({OFFSET_BIT}))").alias("distinct"),
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
    position = f"if(event = 'end-of-partition', offset, {_start(history)})"
    return (
        history.table("positions")
        .where(f"event in ('assign', 'seek', 'end-of-partition') and {position} is not null")
        .selectExpr(
            *READER,
            "at_ns",
            f"{_number(history)} as poll",
            *(f"{none} as {name}" for name in ("first", "last", "records", "distinct")),
            "if(event = 'end-of-partition', offset, null) as arrived",
            f"{position} as next",
        )
    )


def _start(history: History) -> str:
    """SQL on an assign or a seek: the offset from which on the reader is to be given the log; null if unknown.

    Our own readers seek to the log start only (OFFSET_BEGINNING, workloads/clients/consuming.py), and without a group
    they are assigned from there. That is 0, whatever offset brokers reported, or if none answered: the final log has
    nothing below its start. In an imported history the offset is what its client asked for.
    """
    if not history.run_file.final_read:
        return "offset"
    return "if(event = 'assign', offset, 0L)" if history.run_file.configuration.grouped else "0L"
