"""Order: what stands in the log after something that it should stand before.

Only records of the final log are compared, each at its first offset: what is lost, or is a later copy, has no place in
an order. Both questions ask of each record for the greatest value before it in the log.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from checkers.before import greatest_before
from checkers.delivery import OF_SEND
from checkers.presence import BLOCK, PLACE, flagged
from checkers.tables import History

#: Offsets that one task sorts at a time.
_BUCKET = "shiftright(offset, 16)"

_PARTITION = ["topic", "partition"]
_PRODUCER = [*_PARTITION, "worker", "incarnation"]


def reordered(history: History, marks: DataFrame) -> DataFrame:
    """Every record with the latest one of its producer's incarnation that stands before it in its partition; the rule
    is that this was sent before it.

    Guarantee: records of one producer are appended in the order they are sent; with retries that needs idempotence, or
    max.in.flight.requests.per.connection=1 (producer configuration; KAFKA-5494). Returns: RECORD, after_record,
    after_offset, after_sequence
    """
    told = overtaken(standing(history, marks), _PRODUCER, "sequence")
    return told.selectExpr(*OF_SEND, *_witness("sequence", "after_sequence"))


def real_time_order(history: History, marks: DataFrame) -> DataFrame:
    """Every record with the last sent that stands before it in its partition; the rule is that this was sent before
    the record was acknowledged.

    A send is stamped before it is handed over, and an acknowledgement after it came: order that was kept is never told
    as broken. Guarantee: a leader appends at the end of the log, and acknowledges what it has appended (Kafka design,
    Replication). Returns: RECORD, after_record, after_offset, after_sent_ns
    """
    told = overtaken(standing(history, marks), _PARTITION, "invoked_ns")
    return told.selectExpr(*OF_SEND, *_witness("invoked_ns", "after_sent_ns"))


def standing(history: History, marks: DataFrame) -> DataFrame:
    """Every send that is in the final log, ``offset`` being where it stands first.

    ``marks`` has the records of all blocks where the acknowledgements do not tell that alone (presence.STANDS).
    Returns: the columns of ``sends``
    """
    sends = history.sends
    told = (
        sends.where("outcome = 'ok' and offset is not null")
        .withColumn("block", F.expr(BLOCK))
        .join(marks.select(*PLACE), on=PLACE, how="left_anti")
        .select(*sends.columns)
    )
    first = (
        flagged(history.reads.where("phase = 'final' and intact"), marks)
        .groupBy("topic", "partition", "record_id")
        .agg(F.min("offset").alias("offset"))
    )
    found = flagged(sends, marks).drop("offset").join(first, on=["topic", "partition", "record_id"], how="inner")
    return told.unionByName(found.select(*sends.columns))


def overtaken(rows: DataFrame, lane: list[str], value: str) -> DataFrame:
    """``rows`` with ``before``: of those at lower offsets of the same ``lane``, the one whose ``value`` is greatest.

    Returns: the columns of ``rows``, before (a struct of ``value``, record_id, offset; null for the first)
    """
    return greatest_before(rows, lane, ["offset"], _BUCKET, {"before": F.struct(value, "record_id", "offset")})


def _witness(value: str, name: str) -> list[str]:
    return ["before.record_id as after_record", "before.offset as after_offset", f"before.{value} as {name}"]
