"""The records in the log, each at its first offset."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from checkers.history import PARTITION, History
from checkers.scan.record_bits import BIT, BLOCK, OF_BLOCK, Candidates
from harness.history.schema import UNKNOWN_OFFSET

#: The columns that identify a record at an offset.
IN_LOG = [*PARTITION, "record_id", "offset"]


def in_log(unsettled: Candidates) -> DataFrame:
    """Every send that is in the log. ``offset`` is the record's first offset there, ``acknowledged_at`` the
    acknowledged one. (Records acknowledged below the log's start are left out: at most a copy can remain of them.)

    ``unsettled``: the records of blocks whose acknowledgements do not suffice to say where they are. These are looked
    up in the log. Returns: the columns of ``sends``, acknowledged_at (null if Kafka reported no offset)
    """
    history = unsettled.history
    acknowledged_at = F.expr("if(outcome = 'ok', offset, null)")
    sends = retained(history, history.sends.withColumn("acknowledged_at", acknowledged_at), of="acknowledged_at")
    if not history.run_file.final_read:
        return _placed(history, sends)
    if unsettled.bits is None:
        return _found(sends, proven(unsettled.log(), sends))
    bits = unsettled.bits.select(*OF_BLOCK, "bits")
    of_block = sends.withColumn("block", F.expr(BLOCK)).join(bits, on=OF_BLOCK, how="left")
    settled = of_block.where("bits is null and acknowledged_at is not null").select(*sends.columns)
    looked_up = of_block.where(f"bits & {BIT} != 0").select(*sends.columns)
    found = _found(looked_up, proven(unsettled.log(), looked_up))
    return history.laid_out(settled.unionByName(found))


def _placed(history: History, sends: DataFrame) -> DataFrame:
    """The ``sends`` with an offset in a run without a final read: the acknowledged offset, unless the record is lost (a
    later offset was read, the record never), or else the first offset at which a reader got it."""
    record = [*PARTITION, "record_id"]
    read_at = F.min(F.expr(f"if(offset > {UNKNOWN_OFFSET}, offset, null)")).alias("read_at")
    read = proven(history.reads, sends).groupBy(*record).agg(read_at, F.expr("bool_and(true) as read"))
    passed = history.reads.groupBy(*PARTITION).agg(F.max("offset").alias("read_to"))
    return (
        sends.drop("offset")
        .join(read, on=record, how="left")
        .join(F.broadcast(passed), on=PARTITION, how="left")
        .withColumn("offset", F.expr("coalesce(acknowledged_at, read_at)"))
        .where("offset is not null and (read or offset > coalesce(read_to, -1))")
        .select(*sends.columns)
    )


def _found(sends: DataFrame, log: DataFrame) -> DataFrame:
    """The ``sends`` that are in the log, each at its first offset there."""
    record = [*PARTITION, "record_id"]
    first = log.groupBy(*record).agg(F.min("offset").alias("offset"))
    return sends.drop("offset").join(first, on=record, how="inner").select(*sends.columns)


def proven(reads: DataFrame, sends: DataFrame) -> DataFrame:
    """The ``reads`` that prove that a record was there: intact reads, and damaged ones with the id of one of ``sends``
    at the offset of its acknowledgement. At any other offset the id in damaged bytes proves nothing.

    Returns: the columns of ``reads``
    """
    own = sends.where("outcome = 'ok'").select(*IN_LOG)
    damaged = reads.where("not intact").join(own, on=IN_LOG, how="left_semi")
    return reads.where("intact").unionByName(damaged.select(*reads.columns))


def retained(history: History, rows: DataFrame, maybe_deleted: bool = True, of: str = "offset") -> DataFrame:
    """``rows`` without those whose offset (the column ``of``) is below the start of the log. ``maybe_deleted``: keep
    rows with an unknown offset, even if their log does not begin at 0."""
    if not any(row["log_start"] for row in history.ends):
        return rows
    starts = history.log_ends.select(*PARTITION, "log_start")
    return (
        rows.join(F.broadcast(starts), on=PARTITION, how="inner")
        .where(f"{of} is null or {of} >= log_start" if maybe_deleted else f"coalesce({of}, 0) >= log_start")
        .select(*rows.columns)
    )
