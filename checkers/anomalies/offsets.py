"""The log itself: offsets that were given to more than one record, records that moved, and followers that differ.

Guarantee: the log is append-only, and an offset is one record's for ever once that record is committed (KIP-101; Kafka
design, Replication).
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from checkers.anomalies.records import OF_SEND, proven, retained
from checkers.history import PARTITION, History
from checkers.scan.record_bits import few, flagged
from harness.history.schema import FINAL_READER, UNTOLD

_SLOT = [*PARTITION, "offset"]

#: One number for a slot, which Spark looks up faster than three columns. Slots of the same number are looked at
#: together, and told apart afterwards.
_NUMBER = "xxhash64(topic, partition, offset)"

#: A payload without an id is a record too: one that is none of the others.
_NO_ID = -1


def rewritten_offset(history: History, marks: DataFrame) -> DataFrame | None:
    """The records that were acknowledged at an offset, or read there by a consumer, the final read, or of a replica;
    the rule is that they are two or more.

    Two records can only be seen at one offset where one of them is not there in the final read, or where the final read
    itself shows both: ``marks`` has the records of which one may be, and of a large history only their offsets are
    looked at; of a small one, or one without a final read, those with two ids. A payload that fails its checksum shows
    no id to rely on. Guarantee: what is committed is not truncated, so that its offset is not given again (KIP-101,
    KIP-279). Returns: topic, partition, offset, record_id (one that is there no more), records (all ids seen there, -1
    for a payload without), stands (the one of the final log)
    """
    told, read = _at_offsets(history.whole)
    seen = _sights(told, "false").unionAll(_sights(read, "phase = 'final'")).withColumn("number", F.expr(_NUMBER))
    every = history.small or not history.run_file.final_read
    doubtful = few(_shared(seen) if every else _doubtful(history, marks))
    if doubtful is None:
        return None
    return (
        seen.join(doubtful, on="number", how="left_semi")
        .groupBy(*_SLOT)
        .agg(
            F.array_sort(F.collect_set("record_id")).alias("records"),
            F.expr("min(record_id) filter (where last)").alias("stands"),
        )
        .selectExpr(
            *_SLOT, "nullif(get(filter(records, r -> not (r <=> stands)), 0), -1) as record_id", "records", "stands"
        )
    )


def acknowledged_elsewhere(history: History, marks: DataFrame) -> DataFrame:
    """Records acknowledged at one offset, and where they are in the complete final log; the rule is that they are not
    there, but at others only. (What stood below the log's start was deleted by retention.)

    Guarantee: the offset in an acknowledgement is where the record is (RecordMetadata.offset). Returns: RECORD (as
    acknowledged), read_offset
    """
    whole = F.broadcast(history.log_ends.where("complete").select(*PARTITION))
    acknowledged = retained(history, flagged(history.sends.where("outcome = 'ok' and offset is not null"), marks))
    there = (
        proven(flagged(history.reads.where("phase = 'final'"), marks), flagged(history.sends, marks))
        .groupBy("topic", "partition", "record_id")
        .agg(F.collect_set("offset").alias("offsets"))
    )
    return (
        acknowledged.join(there, on=["topic", "partition", "record_id"], how="inner")
        .join(whole, on=PARTITION, how="left_semi")
        .selectExpr(*OF_SEND, "if(array_contains(offsets, offset), offset, array_min(offsets)) as read_offset")
    )


def diverged(history: History, _: DataFrame) -> DataFrame:
    """What followers in the ISR gave of their own logs where the final read found something, too; the rule is that it
    is no record that stands there.

    An offset that only one of them has proves nothing: each replica compacts its log by itself. Guarantee: the log of a
    follower is the leader's, the same records at the same offsets (Kafka design, Replication; KIP-101). Returns: topic,
    partition, offset, record_id, read_ns, broker, stand (all ids of the final log there, -1 for a payload without)
    """
    whole = history.reads.where("intact").withColumn("record", F.expr(f"coalesce(record_id, {_NO_ID}L)"))
    stand = whole.where("phase = 'final'").groupBy(*_SLOT).agg(F.array_sort(F.collect_set("record")).alias("stand"))
    followed = whole.where("phase = 'replica'").withColumn("broker", F.expr(f"reader - {FINAL_READER}"))
    each = followed.groupBy(*_SLOT, "record_id", "record", "broker").agg(F.min("read_ns").alias("read_ns"))
    return each.join(stand, on=_SLOT, how="inner")


def _at_offsets(history: History) -> tuple[DataFrame, DataFrame]:
    return history.sends.where("outcome = 'ok' and offset is not null"), history.reads.where(
        f"intact and offset > {UNTOLD}"
    )


def _sights(rows: DataFrame, last: str) -> DataFrame:
    return rows.selectExpr(*_SLOT, f"coalesce(record_id, {_NO_ID}L) as record_id", f"{last} as last")


def _shared(seen: DataFrame) -> DataFrame:
    """The slots where there is more than one. Returns: number"""
    extremes = seen.groupBy("number").agg(F.min("record_id").alias("least"), F.max("record_id").alias("most"))
    return extremes.where("least != most").select("number")


def _doubtful(history: History, marks: DataFrame) -> DataFrame:
    """The slots of marked acknowledgements and reads, but for those where one record was acknowledged, and is, once;
    and those of payloads without an id. Returns: number"""
    acknowledged, intact = _at_offsets(history)
    told = _sights(flagged(acknowledged, marks), "false").selectExpr("*", "1 as acknowledged")
    read = _sights(flagged(intact, marks), "phase = 'final'").selectExpr("*", "0 as acknowledged")
    slots = (
        told.unionAll(read)
        .groupBy(*_SLOT)
        .agg(
            F.sum("acknowledged").alias("acknowledged"),
            F.count_if("last").alias("found"),
            F.expr("min(record_id) = max(record_id)").alias("alone"),
        )
        .where("not (acknowledged = 1 and found = 1 and alone)")
        .select(*_SLOT)
    )
    copies = (
        flagged(intact.where("phase = 'final'"), marks)
        .groupBy(*PARTITION, "record_id")
        .agg(F.collect_set("offset").alias("offsets"))
        .where("size(offsets) > 1")
        .selectExpr(*PARTITION, "explode(offsets) as offset")
    )
    alien = intact.where("record_id is null").select(*_SLOT)
    return slots.unionAll(copies).unionAll(alien).selectExpr(f"{_NUMBER} as number").distinct()
