"""What a transactional producer does after an error, and the outcome of its transaction.

librdkafka classifies the errors of its transactional calls by three flags (rdkafka.h, "Transactional producer API",
error handling), which KafkaError carries. The table below says what each one means here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from confluent_kafka import KafkaError

from harness.history.schema import Outcome


class Action(StrEnum):
    """The next action: the same call again, an abort, or a new producer with the same transactional.id."""

    AGAIN = "again"
    ABORT = "abort"
    REPLACE = "replace"


@dataclass(frozen=True)
class ErrorAction:
    """The meaning of one kind of error. The first row that holds applies."""

    kind: str
    holds: Callable[[KafkaError], bool]
    action: Action
    because: str
    source: str


_API = "librdkafka rdkafka.h, transactional producer API"

ACTIONS: tuple[ErrorAction, ...] = (
    ErrorAction(
        "fatal",
        lambda error: bool(error.fatal()),
        Action.REPLACE,
        "fenced, or its state at the coordinator is gone: this producer can never write again",
        f"{_API}, rd_kafka_error_is_fatal; KIP-98, fencing",
    ),
    ErrorAction(
        "abortable",
        lambda error: bool(error.txn_requires_abort()),
        Action.ABORT,
        "the transaction cannot be committed any more; the producer can go on after an abort",
        f"{_API}, rd_kafka_error_txn_requires_abort; KIP-360",
    ),
    ErrorAction(
        "retriable",
        lambda error: bool(error.retriable()),
        Action.AGAIN,
        "the call is still under way: calling it again resumes it",
        f"{_API}, rd_kafka_error_is_retriable",
    ),
    ErrorAction(
        "other",
        lambda _: True,
        Action.REPLACE,
        "the producer refuses the call: what state it is in is not known",
        f"{_API}, RD_KAFKA_RESP_ERR__STATE",
    ),
)


def after(error: KafkaError) -> ErrorAction:
    """What to do after this error of a transactional call."""
    return next(row for row in ACTIONS if row.holds(error))


def outcome(intent: str, commit_invoked: bool, succeeded: bool) -> Outcome:
    """The outcome of a transaction that is over.

    ``ok``: it ended as intended. ``fail``: a commit was intended but never requested. A commit that was requested but
    did not succeed is ``info``, whatever the error: the coordinator may have written its decision before the answer was
    lost, and it completes that decision even if the producer has been fenced meanwhile (KIP-98, 5.2; KIP-360).
    """
    if succeeded:
        return Outcome.OK
    return Outcome.FAIL if intent == "commit" and not commit_invoked else Outcome.INFO
