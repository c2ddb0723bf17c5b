"""Order: what stands in the log after something that it should stand before.

Only records of the final log are compared, each at its first offset: what is lost, or is a later copy, has no part in
an order. (Without a final read, each is where it was acknowledged, or else where a reader first got it.) Both questions
need, for each record, the greatest value before it in the log. A scan first answers both together, on numbers alone
(``log_order``). Which record was overtaken by which is only looked up where any was.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from checkers.anomalies.records import OF_SEND, proven, retained
from checkers.history import PARTITION, History
from checkers.scan.record_bits import BIT, BLOCK, OF_BLOCK, Candidates
from checkers.scan.running_max import greatest_before
from harness.history.schema import UNKNOWN_OFFSET

#: Offsets that one task sorts at a time.
_BUCKET = "shiftright(offset, 11)"

_PRODUCER = [*PARTITION, "worker", "incarnation"]


def log_order(unsettled: Candidates) -> DataFrame:
    """How often the order of a log is broken, for each producer's incarnation and bucket of a partition's offsets.

    One sort of the log answers for all in one bucket; between buckets it is enough to compare extremes. The
    buckets of all partitions, and the producers, have one number each: rows of few numbers sort several times as fast.
    (Of less than one pair of partitions in 2^40 do any buckets have one number.) ``unsettled`` as in ``in_log``.
    Returns: lane, producer, moved (records that stand first where they were not acknowledged), shared (offsets where
    two records stand at one offset), and how many records are in the anomaly, or at least 1 where any is: reordered,
    overtaken
    """
    rows = in_log(unsettled).selectExpr(
        f"xxhash64(topic, partition) ^ {_BUCKET} as lane",
        "shiftleft(cast(worker as bigint), 32) | incarnation as producer",
        *("offset", "sequence", "acknowledged_at != offset as moved"),
        *("invoked_ns as sent_ns", "if(outcome = 'ok', completed_ns, null) as acknowledged_ns"),
    )
    earlier = "order by offset rows between unbounded preceding and 1 preceding"
    near = rows.selectExpr(
        "*",
        f"max(sent_ns) over (partition by lane {earlier}) as sent_before_ns",
        f"max(offset) over (partition by lane {earlier}) as offset_before",
        f"max(sequence) over (partition by lane, producer {earlier}) as sequence_before",
    )
    folded = near.groupBy("lane", "producer").agg(
        F.min(F.expr(_BUCKET)).alias("bucket"),
        F.count_if("moved").alias("moved"),
        F.expr("count_if(offset_before = offset)").alias("shared"),
        F.expr("count_if(sequence_before > sequence)").alias("reordered"),
        F.expr("count_if(sent_before_ns > acknowledged_ns)").alias("overtaken"),
        F.expr("struct(min(sequence) as least, max(sequence) as most)").alias("sequences"),
        F.min("acknowledged_ns").alias("acknowledged_ns"),
        F.max("sent_ns").alias("sent_ns"),
    )
    earlier = "order by bucket range between unbounded preceding and 1 preceding"
    across = folded.selectExpr(
        "*",
        f"max(sequences.most) over (partition by lane ^ bucket, producer {earlier}) > sequences.least as behind",
        f"max(sent_ns) over (partition by lane ^ bucket {earlier}) > acknowledged_ns as late",
    )
    return across.selectExpr(
        *("lane", "producer", "moved", "shared"),
        "reordered + if(behind, 1, 0) as reordered",
        "overtaken + if(late, 1, 0) as overtaken",
    )


#: The rule of ``reordered``.
AFTER_ITS_SUCCESSOR = "after_sequence > sequence"


def reordered(unsettled: Candidates) -> DataFrame:
    """Every record with the latest one of its producer's incarnation that stands before it in its partition. The rule
    is that it was sent before that.

    Guarantee: records of one producer are appended in the order they are sent; with retries that needs idempotence, or
    max.in.flight.requests.per.connection=1 (producer configuration; KAFKA-5494). Returns: RECORD, after_record,
    after_offset, after_sequence
    """
    after = overtaken(unsettled, _PRODUCER, "sequence")
    return after.selectExpr(*OF_SEND, *_witness("sequence", "after_sequence"))


#: The rule of ``real_time_order``.
AFTER_A_LATER_SEND = "after_sent_ns > acknowledged_ns"


def real_time_order(unsettled: Candidates) -> DataFrame:
    """Every record with the last sent that stands before it in its partition. The rule is that the record was
    acknowledged before that was sent.

    A send is stamped before it is handed over, and an acknowledgement after it came: order that was kept never looks
    broken. Guarantee: a leader appends at the end of the log, and acknowledges what it has appended (Kafka design,
    Replication). Returns: RECORD, after_record, after_offset, after_sent_ns
    """
    after = overtaken(unsettled, PARTITION, "invoked_ns")
    return after.selectExpr(*OF_SEND, *_witness("invoked_ns", "after_sent_ns"))


def in_log(unsettled: Candidates) -> DataFrame:
    """Every send that is in the log: ``offset`` is where it stands first, ``acknowledged_at`` where it should.
    (Of what was acknowledged below the log's start, no more than a copy can be left.)

    ``unsettled``: the records of all blocks whose acknowledgements alone do not say where they are. These are looked
    up in the log. Returns: the columns of ``sends``, acknowledged_at (null where Kafka reported no offset)
    """
    history = unsettled.history
    acknowledged_at = F.expr("if(outcome = 'ok', offset, null)").alias("acknowledged_at")
    sends = retained(history, history.sends).select("*", acknowledged_at)
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
    """Those of ``sends`` that have a place by what was acknowledged and read: an acknowledged offset, unless others
    got what comes after it and nobody the record, which is lost; or else the first where a reader got it."""
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
    """Those of ``sends`` that are in the log, each at its first offset there."""
    record = [*PARTITION, "record_id"]
    first = log.groupBy(*record).agg(F.min("offset").alias("offset"))
    return sends.drop("offset").join(first, on=record, how="inner").select(*sends.columns)


def overtaken(unsettled: Candidates, lane: list[str], value: str) -> DataFrame:
    """``in_log`` and, of those at lower offsets of the same ``lane``, the one whose ``value`` is greatest.

    Returns: the columns of ``in_log``, before (a struct of ``value``, record_id, offset; null for the first)
    """
    greatest = {"before": F.struct(value, "record_id", "offset")}
    return greatest_before(in_log(unsettled), lane, ["offset"], unsettled.history.pieces(_BUCKET), greatest)


def _witness(value: str, name: str) -> list[str]:
    return ["before.record_id as after_record", "before.offset as after_offset", f"before.{value} as {name}"]
