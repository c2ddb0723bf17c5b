"""Order: what stands in the log after something that it should stand before.

Only records of the final log (without a final read: those that a reader was given) are compared, each at its first
offset: what is lost, or is a later copy, has no place in an order. Both questions ask of each record for the greatest
value before it in the log. They are first asked together, of numbers alone (``crossings``); who was overtaken by whom
is only told where anything was.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from checkers.anomalies.records import OF_SEND, proven, retained
from checkers.history import PARTITION, History
from checkers.scan.record_bits import BLOCK, PLACE, flagged
from checkers.scan.running_max import greatest_before

#: Offsets that one task sorts at a time.
_BUCKET = "shiftright(offset, 11)"

_PRODUCER = [*PARTITION, "worker", "incarnation"]


def crossings(history: History, marks: DataFrame) -> DataFrame:
    """How often the order of a log is broken, for each producer's incarnation and bucket of a partition's offsets.

    One sort of the log answers for all in one bucket (a small history's partition is one); between buckets it is
    enough to compare extremes. What tells the buckets of all partitions, and the producers, is one number each: rows of
    few numbers sort several times as fast. (Of less than one pair of partitions in 2^40 do any buckets have one
    number.) ``marks`` as in ``standing``.
    Returns: lane, producer, moved (records that stand first where they were not acknowledged), shared (places where two
    records stand at one offset), and how many records are in the anomaly, or at least 1 where any is: reordered,
    overtaken
    """
    bucket = "0L" if history.small else _BUCKET
    rows = standing(history, marks).selectExpr(
        f"xxhash64(topic, partition) ^ {bucket} as lane",
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
        F.min(F.expr(bucket)).alias("bucket"),
        F.count_if("moved").alias("moved"),
        F.expr("count_if(offset_before = offset)").alias("shared"),
        F.expr("count_if(sequence_before > sequence)").alias("reordered"),
        F.expr("count_if(sent_before_ns > acknowledged_ns)").alias("overtaken"),
        F.expr("struct(min(sequence) as least, max(sequence) as most)").alias("sequences"),
        F.min("acknowledged_ns").alias("acknowledged_ns"),
        F.max("sent_ns").alias("sent_ns"),
    )
    if history.small:
        return folded.select("lane", "producer", "moved", "shared", "reordered", "overtaken")
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


def reordered(history: History, marks: DataFrame) -> DataFrame:
    """Every record with the latest one of its producer's incarnation that stands before it in its partition; the rule
    is that this was sent before it.

    Guarantee: records of one producer are appended in the order they are sent; with retries that needs idempotence, or
    max.in.flight.requests.per.connection=1 (producer configuration; KAFKA-5494). Returns: RECORD, after_record,
    after_offset, after_sequence
    """
    told = overtaken(history, marks, _PRODUCER, "sequence")
    return told.selectExpr(*OF_SEND, *_witness("sequence", "after_sequence"))


def real_time_order(history: History, marks: DataFrame) -> DataFrame:
    """Every record with the last sent that stands before it in its partition; the rule is that this was sent before
    the record was acknowledged.

    A send is stamped before it is handed over, and an acknowledgement after it came: order that was kept is never told
    as broken. Guarantee: a leader appends at the end of the log, and acknowledges what it has appended (Kafka design,
    Replication). Returns: RECORD, after_record, after_offset, after_sent_ns
    """
    told = overtaken(history, marks, PARTITION, "invoked_ns")
    return told.selectExpr(*OF_SEND, *_witness("invoked_ns", "after_sent_ns"))


def standing(history: History, marks: DataFrame) -> DataFrame:
    """Every send that is in the final log: ``offset`` is where it stands first, ``acknowledged_at`` where it should.
    (Of what was acknowledged below the log's start, no more than a copy can be left.)

    ``marks`` has the records of all blocks where the acknowledgements do not tell that alone (presence.UNSETTLED); of a
    small history, and of one without a final read, every record is looked up.
    Returns: the columns of ``sends``, acknowledged_at (null where no offset was told)
    """
    acknowledged_at = F.expr("if(outcome = 'ok', offset, null)").alias("acknowledged_at")
    every, sends = (retained(history, of.sends).select("*", acknowledged_at) for of in (history.whole, history))
    if history.small or not history.run_file.final_read:
        return _in_log(sends, proven(history.log, sends))
    told = (
        every.where("outcome = 'ok' and offset is not null")
        .withColumn("block", F.expr(BLOCK))
        .join(marks.select(*PLACE), on=PLACE, how="left_anti")
        .select(*sends.columns)
    )
    marked = flagged(sends, marks)
    return told.unionByName(_in_log(marked, proven(flagged(history.log, marks), marked)))


def _in_log(sends: DataFrame, final: DataFrame) -> DataFrame:
    record = [*PARTITION, "record_id"]
    first = final.groupBy(*record).agg(F.min("offset").alias("offset"))
    return sends.drop("offset").join(first, on=record, how="inner").select(*sends.columns)


def overtaken(history: History, marks: DataFrame, lane: list[str], value: str) -> DataFrame:
    """``standing`` and, of those at lower offsets of the same ``lane``, the one whose ``value`` is greatest.

    Returns: the columns of ``standing``, before (a struct of ``value``, record_id, offset; null for the first)
    """
    greatest = {"before": F.struct(value, "record_id", "offset")}
    return greatest_before(standing(history, marks), lane, ["offset"], None if history.small else _BUCKET, greatest)


def _witness(value: str, name: str) -> list[str]:
    return ["before.record_id as after_record", "before.offset as after_offset", f"before.{value} as {name}"]
