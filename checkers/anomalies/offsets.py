"""Offsets: those that had more than one record, records that moved, and followers whose log differs.

Guarantee: the log is append-only, and once a record is committed its offset belongs to it for ever (KIP-101; Kafka
design, Replication).
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from checkers.anomalies.records import OF_SEND, in_transaction
from checkers.anomalies.transactions import aborted_read
from checkers.history import PARTITION, History
from checkers.scan.in_log import proven, retained
from checkers.scan.record_bits import BIT, BLOCK, OF_BLOCK, OFFSET_BIT, OFFSET_BLOCK, Candidates, computed_once
from harness.history.schema import FINAL_READER, UNKNOWN_OFFSET

_OFFSET = [*PARTITION, "offset"]

#: One number for an offset of a partition, which Spark joins faster than three columns. Offsets with the same number
#: are first looked at together, then separated.
_NUMBER = "xxhash64(topic, partition, offset)"

#: The id for payloads without one. Such a payload is a record that differs from all others.
_NO_ID = -1


#: SQL on the sightings of a record at an offset: what is known of its deliveries.
_DELIVERIES = [
    *("min(read_ns) as first_read_ns", "max(read_ns) as last_read_ns"),
    *("min(epoch) as first_epoch", "max(epoch) as last_epoch"),
]
#: One leader writes an offset once: deliveries under one leader epoch are of one copy. Where nobody knows which record
#: stands there, it may be this one.
_OF_ONE_COPY = "stands is not null and its.first_epoch >= 0 and its.first_epoch = its.last_epoch"
_OF_THE_COPY = {"read_ns": "its.first_read_ns", "read_epoch": "its.first_epoch"}

#: The rule of ``rewritten_offset``.
SEVERAL_RECORDS = "size(records) > 1"


def rewritten_offset(candidates: Candidates) -> DataFrame | None:
    """The records of an offset: those acknowledged there, and those read there by a consumer, by the final read, or
    from a replica. The rule: they are two or more.

    If two records were seen at one offset, at least one of them is missing there in the final read, or the final read
    shows both. One that is missing is a candidate, so only the offsets of candidates are looked at; two that the final
    read shows are ``shared`` in the log order, and then every record is a candidate. The id in a payload that
    fails its checksum is not reliable. Guarantee: a committed record is not truncated, so its offset is not used again
    (KIP-101, KIP-279). Returns: topic, partition, offset, record_id (one that is no longer there), records (all ids
    seen there, -1 for a payload without an id), stands (the one in the final log), first_read_ns and last_read_ns (when
    a consumer first and last received ``record_id`` there); and, if another stands there and all deliveries had one
    leader epoch, so that they are of one copy, read_epoch, and read_ns (as first_read_ns)
    """
    history = candidates.history
    acknowledged = history.sends.where("outcome = 'ok' and offset is not null")
    read = history.reads.where(f"intact and offset > {UNKNOWN_OFFSET}")
    of_acknowledged = _sights(acknowledged, "1", "false", "null", "null")
    read_ns, epoch = (f"if(phase = 'live', {fact}, null)" for fact in ("read_ns", "coalesce(leader_epoch, -1)"))
    of_read = _sights(read, "0", "phase = 'final'", read_ns, epoch)
    sightings = of_acknowledged.unionAll(of_read)
    seen = history.laid_out(sightings).withColumn("number", F.expr(_NUMBER))
    suspicious = computed_once(_shared(seen) if candidates.bits is None else _of_candidates(seen, candidates.bits))
    if suspicious is None:
        return None
    return (
        seen.join(suspicious, on="number", how="left_semi")
        .groupBy(*_OFFSET, "record_id")
        .agg(F.expr("bool_or(last)").alias("last"), F.expr(f"struct({', '.join(_DELIVERIES)})").alias("read"))
        .groupBy(*_OFFSET)
        .agg(
            F.array_sort(F.collect_set("record_id")).alias("records"),
            F.expr("min(record_id) filter (where last)").alias("stands"),
            F.expr("map_from_entries(collect_list(struct(record_id, read)))").alias("read"),
        )
        .selectExpr(*_OFFSET, "get(filter(records, r -> not (r <=> stands)), 0) as gone", "records", "stands", "read")
        .selectExpr(*_OFFSET, "nullif(gone, -1) as record_id", "records", "stands", "try_element_at(read, gone) as its")
        .selectExpr(
            *(*_OFFSET, "record_id", "records", "stands", "its.first_read_ns", "its.last_read_ns"),
            *(f"if({_OF_ONE_COPY}, {fact}, null) as {name}" for name, fact in _OF_THE_COPY.items()),
        )
    )


#: The rule of ``acknowledged_elsewhere``.
AT_ANOTHER_OFFSET = "read_offset != offset"


def acknowledged_elsewhere(unsettled: Candidates) -> DataFrame:
    """Records acknowledged at one offset, and their offset in the complete final log. The rule: they are only at other
    offsets. (Records below the log's start were deleted by retention.)

    Guarantee: the offset in an acknowledgement is the record's offset (RecordMetadata.offset). Returns: RECORD (as
    acknowledged), read_offset, in_transaction (as for ``lost``)
    """
    history = unsettled.history
    whole = F.broadcast(history.log_ends.where("complete").select(*PARTITION))
    acknowledged = retained(history, unsettled.sends("outcome = 'ok' and offset is not null"))
    there = (
        proven(unsettled.reads("phase = 'final'"), unsettled.sends())
        .groupBy("topic", "partition", "record_id")
        .agg(F.collect_set("offset").alias("offsets"))
    )
    return (
        acknowledged.join(there, on=["topic", "partition", "record_id"], how="inner")
        .join(whole, on=PARTITION, how="left_semi")
        .selectExpr(
            *(*OF_SEND, "if(array_contains(offsets, offset), offset, array_min(offsets)) as read_offset"),
            *in_transaction(history),
        )
    )


#: The rule of ``diverged``.
NOT_THE_LEADER_S = "lacks or not array_contains(stand, record)"

_REPLICA = ["broker", *PARTITION]


def diverged(history: History) -> DataFrame:
    """Compares what followers in the ISR served from their own logs with the final read. The rule: at an offset of the
    final log the follower served another record, or a record where the final log has none, or it lacks the record.

    In a compacted topic an offset that only one of them has proves nothing: each replica compacts its log by itself.
    With read_committed, both hide what was aborted. What is served of a transaction whose commit was never requested,
    where the final log has nothing, is an ``aborted_read``. (Behind the log's end something may have come later.)
    Guarantee: a follower's log has the same records at the same offsets as the leader's (Kafka design, Replication;
    KIP-101). Returns: topic, partition, offset, record_id, read_ns, broker, stand (all ids of the final log there, -1
    for a payload without an id), lacks
    """
    whole = history.reads.withColumn("record", F.expr(f"if(intact, coalesce(record_id, {_NO_ID}L), null)"))
    stand = whole.where("phase = 'final'").groupBy(*_OFFSET).agg(F.array_sort(F.collect_set("record")).alias("stand"))
    followed = whole.where("phase = 'replica' and intact").withColumn("broker", F.expr(f"reader - {FINAL_READER}"))
    each = followed.groupBy(*_OFFSET, "record_id", "record", "broker").agg(F.min("read_ns").alias("read_ns"))
    columns = [*_OFFSET, "record_id", "record", "broker", "read_ns", "stand", "lacks"]
    hole = "false" if history.run_file.compacted else "stand is null and offset >= log_start and offset < log_end"
    ends = F.broadcast(history.log_ends.where("complete").select(*PARTITION, "log_start", "log_end"))
    compared = each.join(stand, on=_OFFSET, how="left").join(ends, on=PARTITION, how="left")
    if history.run_file.configuration.read_committed and history.transactional:
        compared = compared.join(_aborted(history), on=[*_OFFSET, "record_id"], how="left")
        hole = f"({hole}) and aborted is null"
    compared = (
        compared.where(f"size(stand) > 0 or ({hole})")
        .withColumns({"stand": F.expr("coalesce(stand, array())"), "lacks": F.lit(False)})
        .select(*columns)
    )
    if history.run_file.compacted:
        return compared
    return compared.unionByName(_lacking(history).selectExpr(*columns[:-1], "true as lacks"))


def _aborted(history: History) -> DataFrame:
    """Where a record is an ``aborted_read``. Returns: topic, partition, offset, record_id, aborted (true)"""
    return aborted_read(history).groupBy(*_OFFSET, "record_id").agg(F.expr("bool_and(true)").alias("aborted"))


def _lacking(history: History) -> DataFrame:
    """Records of the final log at whose offset a follower in the ISR served nothing, though it served records behind
    them; and acknowledged ones behind all that it served, but before the end of its log. (A follower serves only up to
    the high watermark that it knows: what is below was committed, acknowledged or not. Where retention deleted, it may
    have deleted more on the follower: what was not acknowledged counts only behind something that it served.)

    Returns: topic, partition, offset, record_id, record, broker, read_ns (of the final read), stand
    """
    served = history.reads.where("phase = 'replica'").selectExpr(
        f"reader - {FINAL_READER} as broker", *PARTITION, "offset", f"{OFFSET_BLOCK} as block", f"{OFFSET_BIT} as bit"
    )
    own = F.bit_or("bit").alias("served"), F.min("offset").alias("first"), F.max("offset").alias("last")
    blocks = served.groupBy(*_REPLICA, "block").agg(*own)
    came = blocks.selectExpr(*_REPLICA, "last + 1 as reach", "first", "last").unionByName(
        history.table("positions")
        .where(f"event = 'end-of-partition' and offset is not null and reader > {FINAL_READER}")
        .selectExpr(
            f"reader - {FINAL_READER} as broker", *PARTITION, "offset as reach", "null as first", "null as last"
        )
    )
    reach = (
        came.groupBy(*_REPLICA)
        .agg(F.max("reach").alias("reach"), F.min("first").alias("first"), F.max("last").alias("last"))
        .join(F.broadcast(history.log_ends.select(*PARTITION, "log_start")), on=PARTITION, how="left")
        .selectExpr(*_REPLICA, "reach", "if(log_start > 0, first, -1) as first", "last")
    )
    final = history.reads.where("phase = 'final' and intact and record_id is not null").selectExpr(
        *_OFFSET, "record_id", "read_ns", f"{OFFSET_BLOCK} as block", f"{OFFSET_BIT} as bit"
    )
    missing = (
        final.groupBy(*PARTITION, "block")
        .agg(F.bit_or("bit").alias("stand"))
        .join(F.broadcast(reach), on=PARTITION, how="inner")
        .join(blocks.select(*_REPLICA, "block", "served"), on=[*_REPLICA, "block"], how="left")
        .selectExpr(*_REPLICA, "block", "reach", "first", "last", "stand & ~coalesce(served, 0L) as bits")
        .where("bits != 0 and shiftleft(block, 6) < reach")
    )
    acknowledged = history.sends.where("outcome = 'ok'").selectExpr(*PARTITION, "record_id", "true as acknowledged")
    return (
        final.join(missing, on=[*PARTITION, "block"], how="inner")
        .where("bits & bit != 0 and offset < reach")
        .join(acknowledged, on=[*PARTITION, "record_id"], how="left")
        .where("acknowledged or first < offset and offset < last")
        .groupBy(*_OFFSET, "record_id", "broker")
        .agg(F.min("read_ns").alias("read_ns"))
        .selectExpr(*_OFFSET, "record_id", "record_id as record", "broker", "read_ns", "array(record_id) as stand")
    )


def _sights(rows: DataFrame, acknowledged: str, last: str, read_ns: str, epoch: str) -> DataFrame:
    record = f"coalesce(record_id, {_NO_ID}L) as record_id"
    facts = f"{acknowledged} as acknowledged", f"{last} as last"
    return rows.selectExpr(
        *_OFFSET, record, *facts, f"cast({read_ns} as bigint) as read_ns", f"cast({epoch} as int) as epoch"
    )


def _shared(seen: DataFrame) -> DataFrame:
    """The offsets with more than one record. Returns: number"""
    extremes = seen.groupBy("number").agg(F.min("record_id").alias("least"), F.max("record_id").alias("most"))
    return extremes.where("least != most").select("number")


def _of_candidates(seen: DataFrame, bits: DataFrame) -> DataFrame:
    """The offsets where a candidate, or a payload without an id, was seen. An offset is left out if only one record was
    seen there, acknowledged once and found once in the final log, unless the final log has copies in the record's
    block. Returns: number"""
    sightings = (
        seen.withColumn("block", F.expr(BLOCK))
        .join(bits.select(*OF_BLOCK, "bits", "copied"), on=OF_BLOCK, how="left")
        .where(f"record_id = {_NO_ID} or bits & {BIT} != 0")
    )
    settled = (
        "sum(acknowledged) = 1 and count_if(last) = 1 and min(record_id) = max(record_id)"
        f" and min(record_id) != {_NO_ID} and not bool_or(copied)"
    )
    offsets = sightings.groupBy(*_OFFSET).agg(F.expr(settled).alias("settled")).where("not settled")
    return offsets.selectExpr(f"{_NUMBER} as number").distinct()
