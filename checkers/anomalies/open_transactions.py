"""Deliveries behind a record of an open transaction: they are behind the last stable offset.

A poll is compared with the transactions first; nearly always none is suspicious. Transactions of which nobody can tell
how long they were open do not count.
"""

from collections.abc import Iterable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from checkers.anomalies.hanging import TIMEOUT_MS
from checkers.anomalies.one_leader import STILL_LED, led_by_one
from checkers.history import PARTITION, History
from checkers.leadership import COMES_BACK_NS
from checkers.scan.in_log import retained
from checkers.scan.record_bits import computed_once
from checkers.scan.running_max import greatest_before
from harness.core.clock import MS_NS
from harness.core.faults import Row, may_have_acted
from harness.history.schema import TRANSACTION, UNKNOWN_OFFSET

#: One task sorts so many offsets of a partition at a time, as a number of bits.
_BUCKET_BITS = 11
_POLL = [*PARTITION, "reader", "incarnation", "read_ns"]


def past_open(history: History) -> DataFrame | None:
    """Records delivered to a read_committed reader from behind the first acknowledged record of a transaction that was
    open then. None if no poll is suspicious, or there is no partition without an election: elsewhere that record may
    have been lost before.

    Returns: topic, partition, offset, record_id, transaction (the open one), read_ns, ending_ns (until when it was open
    at least)
    """
    led = led_by_one(history)
    if led is None:
        return None
    deliveries = history.reads.where(f"({history.read_committed}) and intact and offset > {UNKNOWN_OFFSET}")
    polled = deliveries.groupBy(*_POLL).agg(F.max("offset").alias("offset")).selectExpr("*", "null as open")
    firsts = _first_records(history, led).selectExpr(
        *PARTITION,
        *(f"null as {name}" for name in _POLL[2:]),
        "offset",
        "struct(until_ns, offset as begins_at, transaction, led_epoch, led_to_ns) as open",
    )
    pieces = history.pieces(f"shiftright(offset, {_BUCKET_BITS})")
    rows = history.laid_out(firsts.unionByName(polled))
    before = greatest_before(rows, PARTITION, ["offset"], pieces, {"behind": F.col("open")})
    suspicious = computed_once(before.where("read_ns < behind.until_ns").selectExpr(*_POLL, "behind.*"))
    if suspicious is None:
        return None
    return (
        deliveries.drop("transaction")
        .join(suspicious, on=_POLL, how="inner")
        .where(f"offset > begins_at and {STILL_LED.format(at_ns='read_ns', epoch='leader_epoch')}")
        .groupBy(*PARTITION, "offset", "record_id")
        .agg(F.expr("min(struct(read_ns, until_ns, transaction))").alias("first"))
        .selectExpr(
            *(*PARTITION, "offset", "record_id", "first.transaction", "first.read_ns", "first.until_ns as ending_ns")
        )
    )


def _first_records(history: History, led: DataFrame) -> DataFrame:
    """The first acknowledged offset of each transaction in each partition, with the columns of ``led`` and until_ns."""
    acknowledged = history.table("sends").where("transaction is not null and outcome = 'ok' and offset is not null")
    return (
        retained(history, acknowledged)
        .join(open_until(history), on=TRANSACTION, how="inner")
        .join(F.broadcast(led), on=PARTITION, how="inner")
        .where("invoked_ns >= led_from_ns")
        .groupBy(*TRANSACTION, *PARTITION, "until_ns", "led_epoch", "led_to_ns")
        .agg(F.min("offset").alias("offset"))
    )


def open_until(history: History) -> DataFrame:
    """Until when each transaction was open at least: until its end was asked for (if that did not succeed, until its
    last acknowledged record was sent), or its timeout was over.

    A transaction does not count if something may have ended it earlier: it was given up, or one of its records was; the
    next incarnation of its producer had begun; a fault may have made the request for an earlier end come late
    (KAFKA-17754), or may have taken the coordinator's log. Returns: worker, transaction, until_ns
    """
    sends = history.table("sends").where("transaction is not null")
    shown = sends.groupBy(*TRANSACTION).agg(
        F.expr("max(invoked_ns) filter (where outcome = 'ok')").alias("shown_ns"),
        F.expr("bool_or(outcome != 'ok' and (outcome = 'fail' or completed_ns is not null))").alias("given_up"),
    )
    processes = (
        history.transactions.groupBy("worker", "incarnation")
        .agg(
            F.min("began_ns").alias("first_ns"),
            F.expr(f"min(began_ns) filter (where {_ended_late(history.faults)})").alias("late_ns"),
        )
        .groupBy("worker")
        .agg(F.collect_list(F.struct("incarnation", "first_ns", "late_ns")).alias("processes"))
    )
    # (One whose end failed may have been fenced before that.)
    asked = "if(outcome = 'ok', coalesce(ending_ns, shown_ns), shown_ns)"
    own = f"least({asked}, began_ns + {_timeout_ns(history)})"
    replaced = "exists(processes, p -> p.incarnation > incarnation and p.first_ns < until_ns)"
    late = "exists(processes, p -> p.incarnation = incarnation and coalesce(p.late_ns < began_ns, false))"
    return (
        history.transactions.where("outcome != 'fail'")
        .join(shown, on=TRANSACTION, how="inner")
        .where("not given_up")
        .join(processes, on="worker", how="inner")
        .withColumn("until_ns", F.expr(own))
        .where(f"not {replaced} and not {late} and until_ns <= {_in_doubt_ns(history)}")
        .select(*TRANSACTION, "until_ns")
    )


def _timeout_ns(history: History) -> str:
    """SQL on ``transactions``: the timeout that its producer has configured."""
    configured = {
        worker: int(settings["transaction.timeout.ms"])
        for worker, settings in history.run_file.workers("sends").items()
        if "transaction.timeout.ms" in settings
    }
    cases = "".join(f" when worker = {worker} then {ms * MS_NS}" for worker, ms in configured.items())
    return f"case{cases} else {TIMEOUT_MS * MS_NS} end" if cases else str(TIMEOUT_MS * MS_NS)


def _ended_late(faults: Iterable[Row]) -> str:
    """SQL on ``transactions``: a fault may have made its producer ask again for its end, so that one request came
    late."""
    times = [
        f"coalesce(ended_ns >= {row['injecting_ns']}, true)"
        + ("" if row["healed_ns"] is None else f" and ending_ns <= {row['healed_ns'] + COMES_BACK_NS}")
        for row in may_have_acted(faults)
    ]
    return f"ending_ns is not null and ({' or '.join(times)})" if times else "false"


def _in_doubt_ns(history: History) -> int:
    """From when on a fault may have taken the coordinator's log. (If data may be gone, no partition is judged.)"""
    uncleanly = history.run_file.configuration.elects_uncleanly
    return min((row["injecting_ns"] for row in may_have_acted(history.faults) if uncleanly), default=(1 << 63) - 1)
