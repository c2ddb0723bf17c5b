"""Transactions: what read_committed must never show, and whether each one stands whole in the log, or not at all.

A transaction was *asked to be committed* where its intent is commit and its row has ``ending_ns``: rows are journalled
before what they tell of (harness.history.schema.TRANSACTIONS). One whose producer was told that the commit succeeded is
*committed*; one that was asked for, and of which nobody knows, is *unknown*: it may stand whole, or be absent.
"""

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from checkers.anomalies.records import OF_READ, proven
from checkers.history import PARTITION, History

_ASKED = "intent = 'commit' and ending_ns is not null and outcome != 'fail'"
_KEY = ["worker", "transaction"]


def recorded(history: History) -> bool:
    """Whether there is anything to ask."""
    return history.transactional


def aborted_read(history: History, _: DataFrame) -> DataFrame:
    """Records of transactions that nobody ever asked to commit, delivered to a read_committed reader.

    A record of an unknown transaction is none, nor one that a read_uncommitted reader was given.
    Guarantee: with read_committed, only records of committed transactions are returned (KIP-98, 4; consumer
    configuration, isolation.level). Returns: RECORD, transaction, intent, read_ns
    """
    never = history.transactions.where(f"not ({_ASKED})").select(*_KEY, "intent")
    return _delivered_of(history, never).selectExpr(*OF_READ, "transaction", "intent", "read_ns")


def early_read(history: History, _: DataFrame) -> DataFrame:
    """Records delivered to a read_committed reader before the commit of their transaction was asked for.

    Guarantee: read_committed returns records up to the last stable offset, which an open transaction holds back
    (KIP-98, 4). Returns: RECORD, transaction, read_ns, ending_ns
    """
    asked = history.transactions.where(_ASKED).select(*_KEY, "ending_ns")
    return (
        _delivered_of(history, asked)
        .where("read_ns < ending_ns")
        .selectExpr(*OF_READ, "transaction", "read_ns", "ending_ns")
    )


def fractured(history: History, _: DataFrame) -> DataFrame:
    """Transactions, committed or unknown, of which a part is in the final read_committed log and a part is not.

    One row for each: the first record that is missing. What retention deleted, or was not read to its end, is neither.
    Guarantee: writes to several partitions are atomic: all are read or none is (KIP-98, 1).
    Returns: RECORD, transaction, outcome, records, found
    """
    return _first_missing(standing(history).where("0 < found and found < records"))


def committed_lost(history: History, _: DataFrame) -> DataFrame:
    """Transactions whose commit succeeded, and no record of which is in the final read_committed log.

    One row for each: its first record. Those of a partition that was not read to its end are not judged.
    Guarantee: once the coordinator has answered, the transaction is committed for good (KIP-98, 5.2.4); its records are
    not lost as long as one in-sync replica lives. Returns: RECORD, transaction, outcome, records, found
    """
    return _first_missing(standing(history).where("outcome = 'ok' and found = 0 and records = written"))


def hanging_transaction(history: History, _: DataFrame) -> DataFrame:
    """Partitions whose last stable offset stayed below the high watermark, long after every transaction's timeout.

    A transaction there is neither committed nor aborted by anybody: read_committed readers wait for ever.
    Guarantee: the coordinator aborts a transaction after transaction.timeout.ms (KIP-98, 5.2; KAFKA-14402 and KIP-890
    are of the ways in which that failed; KIP-664 finds them by this sign).
    Returns: RECORD (``offset`` is the last stable one, without a record), high_watermark
    """
    none = "cast(null as bigint)"
    return (
        history.table("positions")
        .where("event in ('last-stable', 'high-watermark')")
        .groupBy("topic", "partition")
        .agg(
            F.expr("max_by(offset, at_ns) filter (where event = 'last-stable')").alias("offset"),
            F.expr("max_by(offset, at_ns) filter (where event = 'high-watermark')").alias("high_watermark"),
        )
        .where("offset < high_watermark")
        .selectExpr(
            "topic",
            "partition",
            "offset",
            f"{none} as record_id",
            "cast(null as int) as worker",
            *(f"{none} as {name}" for name in ("sequence", "sent_ns", "acknowledged_ns")),
            "high_watermark",
        )
    )


def standing(history: History) -> DataFrame:
    """How much of each transaction that was asked to commit is in the final read_committed log; nothing of another.

    Returns: worker, transaction, outcome, written (acknowledged records), records (those of them that can be judged),
    found, missing (the first record that is not found, as a struct)
    """
    if history.run_file.configuration.isolation_level != "read_committed":
        return _standing(history, history.transactions.where("false"))
    return _standing(history, history.transactions.where(_ASKED))


def _standing(history: History, asked: DataFrame) -> DataFrame:
    ends = history.log_ends.select(*PARTITION, "log_start", "complete")
    sent = (
        _sends(history)
        .where("outcome = 'ok'")
        .drop("outcome")
        .join(asked.select(*_KEY, "outcome"), on=_KEY, how="inner")
        .join(F.broadcast(ends), on=PARTITION, how="left")
        .withColumn("judged", F.expr("coalesce(complete, false) and (offset is null or offset >= log_start)"))
    )
    there = F.expr("bool_and(true)").alias("there")
    shown = proven(history.reads.where("phase = 'final'"), _sends(history))
    final = shown.groupBy(*PARTITION, "record_id").agg(there)
    gone = "judged and there is null"
    record = "struct(record_id, topic, partition, offset, invoked_ns as sent_ns, completed_ns as acknowledged_ns)"
    return (
        sent.join(final, on=[*PARTITION, "record_id"], how="left")
        .groupBy(*_KEY, "outcome")
        .agg(
            F.count("*").alias("written"),
            F.count_if(F.col("judged")).alias("records"),
            F.count_if(F.expr("judged and there")).alias("found"),
            F.expr(f"min({record}) filter (where {gone})").alias("missing"),
        )
    )


def report(history: History) -> dict[str, Any]:
    """The ``transactions`` of verdict.json: how many ended how, and what became of the unknown ones.

    ``unknown_resolved``: found whole, found absent. Neither is an anomaly.
    """
    if not history.transactional:
        return {}
    counts = {
        "committed": "outcome = 'ok' and intent = 'commit'",
        "aborted": "outcome = 'ok' and intent = 'abort'",
        "failed": "outcome = 'fail'",
        "abort_unknown": "outcome = 'info' and intent = 'abort'",
        "never_ended": "outcome = 'info' and intent = 'commit' and ending_ns is null",
        "unknown": f"outcome = 'info' and {_ASKED}",
    }
    [told] = history.transactions.agg(
        *(F.expr(f"count_if({sql})").alias(name) for name, sql in counts.items())
    ).collect()
    unknown = standing(history).where("outcome = 'info'")
    [resolved] = unknown.agg(
        F.expr("count_if(found = written)").alias("whole"),
        F.expr("count_if(found = 0 and records = written)").alias("absent"),
    ).collect()
    return {**told.asDict(), "unknown_resolved": resolved.asDict()}


def _sends(history: History) -> DataFrame:
    """The sends of transactions, each as its own delivery report told it."""
    return history.table("sends").where("transaction is not null")


def _delivered_of(history: History, transactions: DataFrame) -> DataFrame:
    """Each offset of a record of ``transactions`` that a read_committed reader was given, when it first was.

    Returns: the columns of ``transactions``, topic, partition, offset, record_id, read_ns, sent_ns, acknowledged_ns
    """
    sent = _sends(history).selectExpr(
        *_KEY, "record_id", "invoked_ns as sent_ns", "if(outcome = 'ok', completed_ns, null) as acknowledged_ns"
    )
    given = (
        history.reads.where(history.read_committed)
        .where("intact")
        .groupBy("topic", "partition", "offset", "record_id")
        .agg(F.min("read_ns").alias("read_ns"))
    )
    return given.join(sent.join(transactions, on=_KEY, how="inner"), on="record_id", how="inner").drop("worker")


def _first_missing(transactions: DataFrame) -> DataFrame:
    return transactions.selectExpr("missing.*", "transaction", "outcome", "records", "found").selectExpr(
        *OF_READ, "transaction", "outcome", "records", "found"
    )
