"""The one table that decides the outcome of a write from librdkafka's delivery report.

The outcome is ``fail`` only if it is proven that the record can never appear; when in doubt, it is ``info``.
librdkafka's own status (``rd_kafka_message_status``) is not enough: it calls NOT_LEADER_OR_FOLLOWER "not persisted"
(rd_kafka_err_action in rdkafka_request.c), though the old leader may have appended the record (KAFKA-13574).
"""

from dataclasses import dataclass

from confluent_kafka import KafkaError

from harness.core.clock import MS_NS
from harness.history.schema import Outcome
from workloads.clients.settings import RETRY_BACKOFF_MS, Acks

#: If a record is reported within this time after its hand-over, in ns, it was sent at most once. librdkafka never sends
#: a message again before its backoff is over (rd_kafka_retry_msgq in rdkafka_partition.c sets it on every retry, also
#: on those that ``retries`` does not count; rdkafka_msgset_writer.c honours it). The backoff is retry.backoff.ms minus
#: at most 20 % of jitter.
SENT_ONCE_WITHIN_NS = RETRY_BACKOFF_MS * MS_NS * 80 // 100


@dataclass(frozen=True)
class ErrorOutcome:
    """The meaning of one error in a delivery report. A ``fail`` is valid only for a record that was sent at most
    once."""

    error: str
    outcome: Outcome
    because: str
    source: str

    @property
    def code(self) -> int:
        """librdkafka's number of the error."""
        return int(getattr(KafkaError, self.error))


def _fail(error: str, because: str, source: str) -> ErrorOutcome:
    return ErrorOutcome(error, Outcome.FAIL, because, source)


def _info(error: str, because: str, source: str) -> ErrorOutcome:
    return ErrorOutcome(error, Outcome.INFO, because, source)


_HANDLER = "Kafka KafkaApis.handleProduceRequest"
_PURGE = "librdkafka rdkafka.h, rd_kafka_purge; rdkafka_partition.c, rd_kafka_retry_msgq"
_ACTIONS = "librdkafka rdkafka_request.c, rd_kafka_err_action and rd_kafka_handle_Produce_error"
_IDEMPOTENT = "librdkafka rdkafka_request.c, rd_kafka_handle_idempotent_Produce_error"

OUTCOMES: tuple[ErrorOutcome, ...] = (
    _fail(
        "NOT_ENOUGH_REPLICAS",
        "the leader looks at the ISR before it appends",
        "Kafka Partition.appendRecordsToLeader",
    ),
    _fail("MSG_SIZE_TOO_LARGE", "the leader validates a batch before it appends", "Kafka UnifiedLog.append"),
    _fail("RECORD_LIST_TOO_LARGE", "the leader validates a batch before it appends", "Kafka UnifiedLog.append"),
    _fail("INVALID_RECORD", "the leader validates a batch before it appends", "KIP-467"),
    _fail(
        "_INVALID_DIFFERENT_RECORD",
        "the leader refuses a batch as a whole where one of its records is invalid",
        "KIP-467; librdkafka rd_kafka_msgbatch_handle_Produce_result_record_errors",
    ),
    _fail("TOPIC_AUTHORIZATION_FAILED", "authorised before anything is appended", _HANDLER),
    _fail("CLUSTER_AUTHORIZATION_FAILED", "authorised before anything is appended", _HANDLER),
    _info("_PURGE_QUEUE", "also reported of a record that was sent, and waits in the queue to be sent again", _PURGE),
    _info("_PURGE_INFLIGHT", "purged while a request that has it was under way", _PURGE),
    _info("_MSG_TIMED_OUT", "librdkafka says it of sent and of unsent records alike", _ACTIONS),
    _info("_TIMED_OUT", "sent, and no answer came", _ACTIONS),
    _info("_TIMED_OUT_QUEUE", "an attempt before this one may have been sent", _ACTIONS),
    _info("_TRANSPORT", "the connection broke, perhaps after the request had arrived", _ACTIONS),
    _info("_DESTROY", "the client was closed with the record in it", _ACTIONS),
    _info("_BAD_MSG", "the answer could not be understood", _ACTIONS),
    _info("REQUEST_TIMED_OUT", "appended by the leader, not by all of the ISR in time", "Kafka DelayedProduce"),
    _info(
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
        "appended by the leader, then the ISR shrank",
        "Kafka Partition.checkEnoughReplicasReachOffset",
    ),
    _info(
        "NOT_LEADER_FOR_PARTITION",
        "also reported of a record that was appended before the leader stepped down",
        "KAFKA-13574; Kafka DelayedProduce",
    ),
    _info("LEADER_NOT_AVAILABLE", "an attempt before this one may have been appended", _ACTIONS),
    _info("UNKNOWN_TOPIC_OR_PART", "an attempt before this one may have been appended", _ACTIONS),
    _info("_UNKNOWN_PARTITION", "an attempt before this one may have been appended", _ACTIONS),
    _info("_UNKNOWN_TOPIC", "an attempt before this one may have been appended", _ACTIONS),
    _info("KAFKA_STORAGE_ERROR", "the disk failed in the middle of an append", "KAFKA-4763 (KIP-112)"),
    _info("INVALID_MSG", "damaged on its way, and re-sent until abandoned", _ACTIONS),
    _info("OUT_OF_ORDER_SEQUENCE_NUMBER", "what became of an earlier attempt is not known", _IDEMPOTENT),
    _info(
        "DUPLICATE_SEQUENCE_NUMBER",
        "only an idempotent producer knows it as an acknowledgement",
        _IDEMPOTENT,
    ),
    _info("UNKNOWN_PRODUCER_ID", "what became of an earlier attempt is not known", _IDEMPOTENT),
    _info("INVALID_PRODUCER_EPOCH", "what became of an earlier attempt is not known", _IDEMPOTENT),
    _info("_FATAL", "what became of an earlier attempt is not known", _IDEMPOTENT),
    _info("_GAPLESS_GUARANTEE", "what became of an earlier attempt is not known", _IDEMPOTENT),
    _info("UNKNOWN", "the broker does not know either", "Kafka Errors.UNKNOWN_SERVER_ERROR"),
)

_BY_CODE = {row.code: row for row in OUTCOMES}


def reported(code: int | None, acks: Acks, elapsed_ns: int) -> Outcome:
    """The outcome of a record by its delivery report.

    ``code``: the report's error, or None. ``elapsed_ns``: from before the hand-over until after the report. With acks=0
    no broker acknowledges anything, so the outcome is always info. Without an error it is ok, even if no offset is
    reported (an idempotent producer's DUPLICATE_SEQUENCE_NUMBER). An unknown error is info.
    """
    if acks == "0":
        return Outcome.INFO
    if code is None:
        return Outcome.OK
    row = _BY_CODE.get(code)
    if row is None or elapsed_ns >= SENT_ONCE_WITHIN_NS:
        return Outcome.INFO
    return row.outcome


def refused(acks: Acks) -> Outcome:
    """The outcome of a record that ``produce()`` itself refused: it never was in the client's queue.

    (With acks=0 it is still info: no outcome of such writes is certain.) A full queue is back-pressure, not a refusal.
    """
    return Outcome.INFO if acks == "0" else Outcome.FAIL
