import json
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from harness.core.waiting import wait_for
from harness.history.schema import Outcome
from tests.workloads.mocking import PRODUCE, Scripted
from workloads.clients.outcomes import OUTCOMES, SENT_ONCE_WITHIN_NS, ErrorOutcome, refused, reported
from workloads.clients.settings import producer_config, transactor_config
from workloads.queue import Queue

AT_ONCE = 0

#: What the table must say, written down a second time: by hand, from DESIGN and the sources that the rows name.
PROVEN_ABSENT = {
    "NOT_ENOUGH_REPLICAS",
    "MSG_SIZE_TOO_LARGE",
    "RECORD_LIST_TOO_LARGE",
    "INVALID_RECORD",
    "_INVALID_DIFFERENT_RECORD",
    "TOPIC_AUTHORIZATION_FAILED",
    "CLUSTER_AUTHORIZATION_FAILED",
}
INDETERMINATE = {
    "_PURGE_QUEUE",
    "_PURGE_INFLIGHT",
    "_MSG_TIMED_OUT",
    "_TIMED_OUT",
    "_TIMED_OUT_QUEUE",
    "_TRANSPORT",
    "_DESTROY",
    "_BAD_MSG",
    "REQUEST_TIMED_OUT",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    "NOT_LEADER_FOR_PARTITION",
    "LEADER_NOT_AVAILABLE",
    "UNKNOWN_TOPIC_OR_PART",
    "_UNKNOWN_PARTITION",
    "_UNKNOWN_TOPIC",
    "KAFKA_STORAGE_ERROR",
    "INVALID_MSG",
    "OUT_OF_ORDER_SEQUENCE_NUMBER",
    "DUPLICATE_SEQUENCE_NUMBER",
    "UNKNOWN_PRODUCER_ID",
    "INVALID_PRODUCER_EPOCH",
    "_FATAL",
    "_GAPLESS_GUARANTEE",
    "UNKNOWN",
}


def test_the_table_has_exactly_these_rows() -> None:
    assert [row.error for row in OUTCOMES if row.outcome is Outcome.FAIL] == sorted(PROVEN_ABSENT, key=order)
    assert [row.error for row in OUTCOMES if row.outcome is Outcome.INFO] == sorted(INDETERMINATE, key=order)
    assert len(OUTCOMES) == len(PROVEN_ABSENT) + len(INDETERMINATE) == len({row.code for row in OUTCOMES})


def order(error: str) -> int:
    return [row.error for row in OUTCOMES].index(error)


@pytest.mark.parametrize("row", OUTCOMES, ids=lambda row: row.error)
def test_every_row_decides_says_why_and_names_its_source(row: ErrorOutcome) -> None:
    expected = Outcome.FAIL if row.error in PROVEN_ABSENT else Outcome.INFO
    assert reported(row.code, "all", AT_ONCE) is expected
    assert reported(row.code, "1", AT_ONCE) is expected
    assert KafkaError(row.code).name() == row.error
    assert row.because
    assert row.source


@pytest.mark.parametrize("row", OUTCOMES, ids=lambda row: row.error)
def test_no_error_proves_anything_of_a_record_that_may_have_been_sent_twice(row: ErrorOutcome) -> None:
    assert reported(row.code, "all", SENT_ONCE_WITHIN_NS) is Outcome.INFO


@pytest.mark.parametrize("row", OUTCOMES, ids=lambda row: row.error)
def test_with_acks_0_nothing_is_known(row: ErrorOutcome) -> None:
    assert reported(row.code, "0", AT_ONCE) is Outcome.INFO


def test_a_report_without_error_is_an_acknowledgement_unless_acks_is_0() -> None:
    late = 10**12
    assert reported(None, "all", late) is Outcome.OK
    assert reported(None, "1", late) is Outcome.OK
    assert reported(None, "0", AT_ONCE) is Outcome.INFO


def test_an_unknown_error_is_indeterminate() -> None:
    assert reported(4711, "all", AT_ONCE) is Outcome.INFO


def test_a_record_that_produce_itself_refuses_was_never_sent() -> None:
    assert refused("all") is Outcome.FAIL
    assert refused("1") is Outcome.FAIL
    assert refused("0") is Outcome.INFO


#: What is to be sent again waits until the test is over.
PATIENT = {"retry.backoff.ms": 60_000, "retry.backoff.max.ms": 60_000, "linger.ms": 0, "statistics.interval.ms": 10}


class Watched:
    """A producer of ours that sends one record to each of some partitions, and tells what became of them."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.reports: dict[int, KafkaError | None] = {}
        self._partitions: dict[str, dict[str, int]] = {}
        self.producer = Producer({**config, **PATIENT, "stats_cb": self._heard})

    def send(self, *partitions: int) -> None:
        for partition in partitions:
            self.producer.produce("t", b"record", partition=partition, on_delivery=self._reported)

    def wait_until_to_be_sent_again(self, partition: int) -> None:
        """Wait until the record of a partition was sent, is under way no more, and was not reported."""

        def waits() -> bool:
            self.producer.poll(0.01)
            statistics = self._partitions.get(str(partition), {})
            return (
                bool(statistics)
                and statistics["txmsgs"] >= 1
                and statistics["msgs_inflight"] == 0
                and partition not in self.reports
            )

        wait_for(waits, "the record to wait for its second sending", 30, every=0.01)

    def purge(self) -> None:
        self.producer.purge()
        self.producer.flush(10)

    def _reported(self, error: KafkaError | None, message: Any) -> None:
        self.reports[message.partition()] = error

    def _heard(self, statistics: str) -> None:
        self._partitions = json.loads(statistics)["topics"].get("t", {}).get("partitions", {})


@pytest.mark.parametrize("idempotence", [True, False], ids=["idempotent", "plain"])
@pytest.mark.parametrize("answer", ["NOT_ENOUGH_REPLICAS_AFTER_APPEND", "NOT_LEADER_FOR_PARTITION", "_TRANSPORT"])
def test_a_record_that_was_sent_and_is_purged_while_it_waits_to_be_sent_again_may_be_in_the_log(
    answer: str, idempotence: bool, scripted: Scripted
) -> None:
    scripted.topic("t", 1)
    settings = Queue(enable_idempotence=idempotence)
    sender = Watched(producer_config(settings, scripted.bootstrap, "test", 64))
    scripted.answer(PRODUCE, [getattr(KafkaError, answer)])
    sender.send(0)
    sender.wait_until_to_be_sent_again(0)
    sender.purge()
    error = sender.reports[0]
    assert error is not None
    assert error.name() == "_PURGE_QUEUE"
    assert reported(error.code(), settings.acks, AT_ONCE) is Outcome.INFO


def test_an_aborted_transaction_purges_records_that_were_already_sent(scripted: Scripted) -> None:
    scripted.topic("t", 2)
    sender = Watched(transactor_config(Queue(), scripted.bootstrap, "test", 64, "id", 30_000))
    sender.producer.init_transactions(30)
    sender.producer.begin_transaction()
    scripted.answer(PRODUCE, [KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND])
    sender.send(0)
    sender.wait_until_to_be_sent_again(0)
    scripted.answer(PRODUCE, [KafkaError.TOPIC_AUTHORIZATION_FAILED])
    sender.send(1)
    wait_for(lambda: sender.producer.poll(0.01) or 1 in sender.reports, "the report of the other record", 30)
    with pytest.raises(KafkaException):
        sender.producer.commit_transaction(30)
    sender.producer.abort_transaction(30)
    sender.producer.flush(10)
    error = sender.reports[0]
    assert error is not None
    assert error.name() == "_PURGE_QUEUE"
    assert reported(error.code(), "all", AT_ONCE) is Outcome.INFO
