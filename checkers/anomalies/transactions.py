"""Transactions: what read_committed must never show, and whether the log has each transaction completely or not at all.

The commit of a transaction was *requested* if its intent is commit, its row has ``ending_ns``, and no record of it is
known to have failed by then: a row is journalled before the producer does what it announces
(harness.history.schema.TRANSACTIONS), and after a failure that is an abort. If the producer learned that the
commit succeeded, the transaction is *committed*. If the commit was requested but its result is not known, the
transaction is *unknown*: the log may have all of it, or nothing.

A record that was sent more than once counts for a transaction only at the offset that was acknowledged to it: elsewhere
it may be of the other send.
"""

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from checkers.anomalies import cycles
from checkers.anomalies.hanging import in_time
from checkers.anomalies.open_transactions import past_open
from checkers.anomalies.records import DELIVERED, OF_READ, OF_WORKER, with_asked, with_deliveries
from checkers.history import PARTITION, History
from checkers.scan.in_log import proven
from checkers.scan.record_bits import computed_once
from harness.history.schema import TRANSACTION

_HANGING = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("record_id", pa.int64()),
        ("worker", pa.int32()),
        *((name, pa.int64()) for name in ("sequence", "sent_ns", "acknowledged_ns", "high_watermark")),
        ("in_time", pa.bool_()),
    ]
)


def has_transactions(history: History) -> bool:
    """Whether the history has transactions."""
    return history.transactional


def aborted_read(history: History) -> DataFrame:
    """Records delivered to a read_committed reader although the commit of their transaction was never requested.

    Records of unknown transactions do not count, and neither do records that a read_uncommitted reader got. Guarantee:
    with read_committed, only records of committed transactions are returned (KIP-98, 4; consumer configuration,
    isolation.level). Returns: RECORD, transaction, intent, read_ns
    """
    never = with_asked(history).where("not asked").select(*TRANSACTION, "intent")
    return delivered_of(history, never).selectExpr(*OF_READ, "transaction", "intent", "read_ns")


def early_read(history: History) -> DataFrame:
    """Records delivered to a read_committed reader before the commit of their transaction was requested. This follows
    from the time of the request; or the transaction itself polled them; or the transaction later polled records that
    were sent only then (a transaction polls before it commits). Also records of anyone from behind a record of an open
    transaction.

    Guarantee: read_committed returns records up to the last stable offset, which an open transaction holds back
    (KIP-98, 4). Returns: RECORD, transaction (its own, or else the open one), read_ns, ending_ns (the earliest possible
    time of the request), by_itself
    """
    asked = with_asked(history).where("asked").select(*TRANSACTION, "ending_ns")
    if cycles.reads_transactionally(history):
        asked = asked.join(cycles.not_committed_before(history), on=TRANSACTION, how="left").selectExpr(
            *TRANSACTION, "greatest(ending_ns, least_ns) as ending_ns"
        )
    early = (
        delivered_of(history, asked)
        .selectExpr("*", "array_contains(by_its_worker, transaction) as by_itself")
        .where("read_ns < ending_ns or by_itself")
        .selectExpr(*OF_READ, "transaction", "read_ns", "ending_ns", "by_itself")
    )
    behind = past_open(history)
    if behind is None:
        return early
    of_others = behind.join(early, on=[*PARTITION, "offset", "record_id"], how="left_anti")
    times = history.sends.groupBy("record_id").agg(
        F.min("invoked_ns").alias("sent_ns"),
        F.expr("min(completed_ns) filter (where outcome = 'ok')").alias("acknowledged_ns"),
    )
    timed = of_others.join(times, on="record_id", how="left")
    return early.unionByName(timed.selectExpr(*OF_READ, "transaction", "read_ns", "ending_ns", "false as by_itself"))


def fractured(history: History) -> DataFrame | None:
    """Transactions, committed or unknown, of which the final read_committed log has only a part.

    One row for each missing record. Records that retention deleted, or of partitions that were not read to their end,
    do not count.
    Guarantee: writes to several partitions are atomic: all are read or none is (KIP-98, 1).
    Returns: RECORD, transaction, outcome, records, found, nth (1 for the first missing record of a transaction),
    read_epoch, first_read_ns and last_read_ns (as for ``lost``)
    """
    return _missing(history, records_found(history).where("0 < found and found < records"))


def committed_lost(history: History) -> DataFrame | None:
    """Transactions whose commit succeeded, but of which the final read_committed log has no record.

    One row for each of its records. A transaction with a record in a partition that was not read to its end is not
    judged. Guarantee: once the coordinator has answered, the transaction is committed for good (KIP-98, 5.2.4); its
    records are not lost as long as one in-sync replica lives. Returns: as for ``fractured``
    """
    return _missing(history, records_found(history).where("outcome = 'ok' and found = 0 and records = written"))


def hanging_transaction(history: History) -> DataFrame:
    """Partitions whose last stable offset stayed below the high watermark long after every transaction's timeout.

    Nobody commits or aborts a transaction there, so read_committed readers wait for ever. Guarantee: the coordinator
    aborts a transaction after transaction.timeout.ms (KIP-98, 5.2; KAFKA-14402 and KIP-890 describe ways in which that
    failed; KIP-664 finds such transactions by this sign).
    Returns: RECORD (``offset`` is the last stable one, without a record), high_watermark, in_time (whether the write at
    this offset had reached the leader before its transaction ended; null if nothing shows it)
    """
    rows = [
        {
            **{"topic": topic, "partition": partition, "offset": ends.last_stable},
            **{"high_watermark": ends.high_watermark, "in_time": in_time(history.stored, (topic, partition), ends)},
        }
        for (topic, partition), ends in history.stored.stable_ends.items()
        if ends.hang
    ]
    return history.local(pa.Table.from_pylist(rows, _HANGING))


def records_found(history: History) -> DataFrame:
    """How many records of each transaction with a requested commit are in the final read_committed log. (Without a
    final read: how many the consumers got, and how many they skipped.)

    A record without a delivery report counts, too: a commit waits for all reports, and fails if a record failed
    (librdkafka rdkafka.h, rd_kafka_commit_transaction); our producers do not even ask for it then
    (workloads/clients/transacting.py). So if anything of the transaction is committed, all its records were delivered.
    Returns: worker, transaction, outcome, written (records that did not fail), records (those of them that can be
    judged), found, missing (the records not found, as structs)
    """
    if history.run_file.configuration.isolation_level != "read_committed":
        return _records_found(history, history.transactions.where("false"))
    return _records_found(history, with_asked(history).where("asked"))


def _records_found(history: History, asked: DataFrame) -> DataFrame:
    if history.run_file.final_read:
        log = "phase = 'final'"
        ends = history.log_ends.select(*PARTITION, "log_start", "complete")
        judged = "coalesce(complete, false) and coalesce(offset, 0) >= log_start"
    else:
        log = "true"
        ends = history.reads.groupBy(*PARTITION).agg(F.max("offset").alias("read_to"))
        judged = "there or coalesce(offset <= read_to, false)"
    sent = (
        _transactional_sends(history)
        .where("outcome != 'fail'")
        .drop("outcome")
        .join(asked.select(*TRANSACTION, "outcome"), on=TRANSACTION, how="inner")
        .join(F.broadcast(ends), on=PARTITION, how="left")
    )
    again = _sent_again(history)
    there = [F.expr("bool_and(true)").alias("there")]
    there += [] if again is None else [F.collect_set("offset").alias("offsets")]
    shown = proven(history.reads.where(log), _transactional_sends(history)).groupBy(*PARTITION, "record_id").agg(*there)
    each = sent.join(shown, on=[*PARTITION, "record_id"], how="left")
    if again is not None:
        own = F.expr("if(again is null or array_contains(offsets, offset), there, null)")
        each = each.join(again, on="record_id", how="left").where("again is null or offset is not null")
        each = each.withColumn("there", own)
    gone = "judged and there is null"
    record = "struct(record_id, topic, partition, offset, invoked_ns as sent_ns, completed_ns as acknowledged_ns)"
    return (
        each.withColumn("judged", F.expr(judged))
        .groupBy(*TRANSACTION, "outcome")
        .agg(
            F.count("*").alias("written"),
            F.count_if(F.col("judged")).alias("records"),
            F.count_if(F.expr("judged and there")).alias("found"),
            F.expr(f"collect_list({record}) filter (where {gone})").alias("missing"),
        )
    )


def report(history: History) -> dict[str, Any]:
    """The ``transactions`` of verdict.json: how many ended in which way, and the fate of the unknown ones.

    ``unknown_resolved``: how many were found completely (``whole``) and how many not at all (``absent``). Neither is an
    anomaly.
    """
    if not history.transactional:
        return {}
    counts = {
        "committed": "outcome = 'ok' and intent = 'commit'",
        "aborted": "outcome = 'ok' and intent = 'abort'",
        "failed": "outcome = 'fail'",
        "abort_unknown": "outcome = 'info' and (intent = 'abort' or ending_ns is not null and not asked)",
        "never_ended": "outcome = 'info' and intent = 'commit' and ending_ns is null",
        "unknown": "outcome = 'info' and asked",
    }
    [totals] = (
        with_asked(history).agg(*(F.expr(f"count_if({sql})").alias(name) for name, sql in counts.items())).collect()
    )
    unknown = records_found(history).where("outcome = 'info'")
    [resolved] = unknown.agg(
        F.expr("count_if(found = written)").alias("whole"),
        F.expr("count_if(found = 0 and records = written)").alias("absent"),
    ).collect()
    return {**totals.asDict(), "unknown_resolved": resolved.asDict()}


def _transactional_sends(history: History) -> DataFrame:
    """The sends within transactions, each with the outcome of its own delivery report."""
    return history.table("sends").where("transaction is not null")


def _sent_again(history: History) -> DataFrame | None:
    """The records with several sends; most histories have none. Returns: record_id, again (true)"""
    sends = history.table("sends").groupBy("record_id").agg(F.count("*").alias("sends"))
    return computed_once(sends.where("sends > 1").selectExpr("record_id", "true as again"))


def delivered_of(history: History, transactions: DataFrame) -> DataFrame:
    """Each offset at which a read_committed reader got a record of ``transactions``, with the time of the first read.

    Returns: the columns of ``transactions``, topic, partition, offset, record_id, read_ns, by_its_worker (the
    transactions in which the worker that sent the record also polled it), sent_ns, acknowledged_ns
    """
    sent = _transactional_sends(history).selectExpr(
        *(
            *TRANSACTION,
            "record_id",
            "invoked_ns as sent_ns",
            "if(outcome = 'ok', completed_ns, null) as acknowledged_ns",
        ),
        "if(outcome = 'ok', offset, null) as acknowledged_at",
    )
    delivered = (
        history.reads.where(history.read_committed)
        .where("intact")
        .groupBy("topic", "partition", "offset", "record_id")
        .agg(
            F.min("read_ns").alias("read_ns"),
            F.expr(f"collect_set(transaction) filter (where reader = {OF_WORKER})").alias("by_its_worker"),
        )
    )
    of_each = sent.join(transactions, on=TRANSACTION, how="inner")
    found = delivered.join(of_each, on="record_id", how="inner")
    if (again := _sent_again(history)) is not None:
        found = found.join(again, on="record_id", how="left").where("again is null or offset = acknowledged_at")
    return found.drop("acknowledged_at", "again")


def _missing(history: History, transactions: DataFrame) -> DataFrame | None:
    """A row for each missing record of ``transactions``, those of one transaction numbered in the order of their
    ids. (Most runs have none: then nobody looks who received them.)"""
    columns = ["transaction", "outcome", "records", "found"]
    each = transactions.selectExpr(*columns, "posexplode(array_sort(missing)) as (before, gone)")
    missing = computed_once(each.selectExpr("gone.*", *columns, "before + 1 as nth"))
    if missing is None:
        return None
    return with_deliveries(history, missing).selectExpr(*OF_READ, *columns, "nth", *DELIVERED)
