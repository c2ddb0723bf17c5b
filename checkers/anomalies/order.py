"""Order: records that are in the log after another record that should come after them.

Only records of the final log are compared, each at its first offset: lost records and later copies have no place in the
order. (Without a final read, a record's offset is that of its acknowledgement, or else that of its first read.) Both
finders need, for each record, the greatest value before it in the log. One scan first computes both on numbers alone
(checkers/scan/log_order.py). The finders run only if it found any broken order.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from checkers.anomalies.records import OF_SEND, in_transaction
from checkers.history import PARTITION
from checkers.scan.in_log import in_log
from checkers.scan.log_order import BUCKET
from checkers.scan.record_bits import Candidates
from checkers.scan.running_max import greatest_before

_PRODUCER = [*PARTITION, "worker", "incarnation"]


#: The rule of ``reordered``.
AFTER_ITS_SUCCESSOR = "after_sequence > sequence"


def reordered(unsettled: Candidates) -> DataFrame:
    """Every record with the latest record of the same producer incarnation that is before it in its partition. The
    rule: the record was sent before that one.

    Guarantee: records of one producer are appended in the order they are sent; with retries that needs idempotence, or
    max.in.flight.requests.per.connection=1 (producer configuration; KAFKA-5494). Returns: RECORD, after_record,
    after_offset, after_sequence
    """
    after = overtaken(unsettled, _PRODUCER, "sequence")
    return after.selectExpr(*OF_SEND, *_witness("sequence", "after_sequence"))


#: The rule of ``real_time_order``.
AFTER_A_LATER_SEND = "after_sent_ns > acknowledged_ns"


def real_time_order(unsettled: Candidates) -> DataFrame:
    """Every record with the last-sent record that is before it in its partition. The rule: the record was acknowledged
    before that one was sent. (It need not stand where it was acknowledged: then the first copy is gone from there.)

    A send is stamped before its hand-over, and an acknowledgement after its arrival, so a correct order never looks
    broken. Guarantee: a leader appends at the end of the log, and acknowledges what it has appended (Kafka design,
    Replication). Returns: RECORD (as acknowledged), read_offset (where it stands), after_record, after_offset,
    after_sent_ns, in_transaction (as of what is lost)
    """
    after = overtaken(unsettled, PARTITION, "invoked_ns")
    as_acknowledged = ["acknowledged_at as offset" if name == "offset" else name for name in OF_SEND]
    columns = [*as_acknowledged, "offset as read_offset", *_witness("invoked_ns", "after_sent_ns")]
    return after.selectExpr(*columns, *in_transaction(unsettled.history))


def overtaken(unsettled: Candidates, lane: list[str], value: str) -> DataFrame:
    """``in_log``, each record with the one that has the greatest ``value`` at lower offsets of the same ``lane``.

    Returns: the columns of ``in_log``, before (a struct of ``value``, record_id, offset; null for the first)
    """
    greatest = {"before": F.struct(value, "record_id", "offset")}
    return greatest_before(in_log(unsettled), lane, ["offset"], unsettled.history.pieces(BUCKET), greatest)


def _witness(value: str, name: str) -> list[str]:
    return ["before.record_id as after_record", "before.offset as after_offset", f"before.{value} as {name}"]
