"""The scan of the log order: how often it is broken, computed on numbers alone."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from checkers.scan.in_log import in_log
from checkers.scan.record_bits import Candidates

#: Offsets that one task sorts at a time.
BUCKET = "shiftright(offset, 11)"


def log_order(unsettled: Candidates) -> DataFrame:
    """How often the order of a log is broken, for each producer incarnation and bucket of a partition's offsets.

    Within a bucket one sort of the log serves all counts; between buckets it is enough to compare extremes. A bucket
    and a producer are one number each, because rows of few numbers sort several times as fast. (The chance that buckets
    of two partitions have the same number is less than 2^-40.) ``unsettled``: as in ``in_log``. Returns: lane,
    producer, moved (records whose first offset is not the acknowledged one), shared (records at the same offset as
    another), reordered and overtaken (how many records are in that anomaly; at least 1 if any is)
    """
    rows = in_log(unsettled).selectExpr(
        f"xxhash64(topic, partition) ^ {BUCKET} as lane",
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
        F.min(F.expr(BUCKET)).alias("bucket"),
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
