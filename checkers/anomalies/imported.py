"""What can be told of a run whose logs nobody read to their end when all was over: an imported one.

Its only reads are those of its own consumers. They stopped somewhere: a record that none of them was given may be lost,
or may be where none of them came. Jepsen's rule tells the two apart: what a consumer of the partition was given at a
later offset proves that the record was passed over (jepsen.tests.kafka, lost-write-cases). An offset that the history
does not tell (UNTOLD) proves nothing.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from checkers.anomalies.records import OF_READ, OF_SEND, origins, proven
from checkers.history import PARTITION, History
from checkers.scan.record_bits import flagged


def lost(history: History, marks: DataFrame) -> DataFrame:
    """Acknowledged records that no one read, though their own offset or a later one of their partition was read.

    Guarantee: a committed message is not lost as long as one in-sync replica is alive (Kafka design, Replication).
    Returns: RECORD, read_to (the highest offset that was read)
    """
    return _unread(history, marks).where("offset <= read_to").selectExpr(*OF_SEND, "read_to")


def unseen(history: History, marks: DataFrame) -> DataFrame:
    """Acknowledged records that no one read, and that no one is known to have passed over: nobody came that far, or
    the acknowledgement told no offset.

    Returns: RECORD, read_to (the highest offset that was read; null where nothing was)
    """
    return _unread(history, marks).where("not coalesce(offset <= read_to, false)").selectExpr(*OF_SEND, "read_to")


def duplicated(history: History, marks: DataFrame) -> DataFrame:
    """Records that are told of at two or more offsets of one partition, by reads and by their acknowledgement.

    Guarantee: an idempotent producer's record is written to the log once (KIP-98; by default since 3.0, KIP-679).
    Returns: RECORD (``offset`` is the first), last_offset, copies
    """
    place = ["topic", "partition", "record_id", "offset"]
    read = flagged(history.reads.where("intact and offset >= 0"), marks).select(*place)
    acknowledged = flagged(history.sends.where("outcome = 'ok' and offset is not null"), marks).select(*place)
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
    return copies.join(origins(history, marks), on="record_id", how="left").selectExpr(
        *OF_READ, "last_offset", "copies"
    )


def _unread(history: History, marks: DataFrame) -> DataFrame:
    """The marked records that were acknowledged, each with how far its partition was read."""
    passed = history.whole.reads.groupBy(*PARTITION).agg(F.max("offset").alias("read_to"))
    acknowledged = flagged(history.sends.where("outcome = 'ok'"), marks)
    damaged = flagged(history.reads.where("not intact"), marks)
    read = proven(damaged, acknowledged).select(*PARTITION, "record_id")
    unread = acknowledged.join(read, on=read.columns, how="left_anti").select(*acknowledged.columns)
    return unread.join(F.broadcast(passed), on=PARTITION, how="left")
