"""Checkers for imported runs: nobody read the logs to their end after the run.

The only reads are those of the run's own consumers, which stopped somewhere. A record that none of them got may be
lost, or may lie behind the last offset that they read. Jepsen's rule distinguishes the two: if a consumer of the
partition got a record at a later offset, the missing record was skipped (jepsen.tests.kafka, lost-write-cases). An
unknown offset (UNKNOWN_OFFSET) proves nothing.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from checkers.anomalies.records import OF_READ, OF_SEND, origins
from checkers.history import PARTITION
from checkers.scan.in_log import proven
from checkers.scan.record_bits import Candidates


def lost(candidates: Candidates) -> DataFrame:
    """Acknowledged records that no consumer read, though their own offset or a later one of their partition was read.

    Guarantee: a committed message is not lost as long as one in-sync replica is alive (Kafka design, Replication).
    Returns: RECORD, read_to (the highest offset that was read)
    """
    return _unread(candidates).where("offset <= read_to").selectExpr(*OF_SEND, "read_to")


def unseen(candidates: Candidates) -> DataFrame:
    """Acknowledged records that no consumer read, and that no consumer is known to have skipped: nobody read that far,
    or the acknowledgement had no offset.

    Returns: RECORD, read_to (the highest offset that was read; null if nothing was read)
    """
    return _unread(candidates).where("not coalesce(offset <= read_to, false)").selectExpr(*OF_SEND, "read_to")


def duplicated(candidates: Candidates) -> DataFrame:
    """Records that were seen at two or more offsets of one partition, in reads or in their acknowledgement.

    Guarantee: an idempotent producer's record is written to the log once (KIP-98; by default since 3.0, KIP-679).
    Returns: RECORD (``offset`` is the first), last_offset, copies
    """
    found_at = ["topic", "partition", "record_id", "offset"]
    read = candidates.reads("intact and offset >= 0").select(*found_at)
    acknowledged = candidates.sends("outcome = 'ok' and offset is not null").select(*found_at)
    copies = (
        read.unionAll(acknowledged)
        .groupBy("topic", "partition", "record_id")
        .agg(
            F.min("offset").alias("offset"),
            F.max("offset").alias("last_offset"),
            F.count_distinct("offset").alias("copies"),
        )
        .where("copies > 1")
    )
    return copies.join(origins(candidates), on="record_id", how="left").selectExpr(*OF_READ, "last_offset", "copies")


def _unread(candidates: Candidates) -> DataFrame:
    """The candidates that were acknowledged and not read. Returns: the columns of ``sends``, read_to (the highest
    offset of the partition that was read)"""
    passed = candidates.history.reads.groupBy(*PARTITION).agg(F.max("offset").alias("read_to"))
    acknowledged = candidates.sends("outcome = 'ok'")
    damaged = candidates.reads("not intact")
    read = proven(damaged, acknowledged).select(*PARTITION, "record_id")
    unread = acknowledged.join(read, on=read.columns, how="left_anti").select(*acknowledged.columns)
    return unread.join(F.broadcast(passed), on=PARTITION, how="left")
