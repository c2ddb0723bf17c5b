import pytest
from confluent_kafka import KafkaError

from harness.core.history import Outcome
from workloads.outcomes import RULES, SENT_ONCE_WITHIN_NS, Rule, refused, reported

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
    "_PURGE_QUEUE",
}
INDETERMINATE = {
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
    assert [rule.error for rule in RULES if rule.outcome is Outcome.FAIL] == sorted(PROVEN_ABSENT, key=order)
    assert [rule.error for rule in RULES if rule.outcome is Outcome.INFO] == sorted(INDETERMINATE, key=order)
    assert len(RULES) == len(PROVEN_ABSENT) + len(INDETERMINATE) == len({rule.code for rule in RULES})


def order(error: str) -> int:
    return [rule.error for rule in RULES].index(error)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.error)
def test_every_row_decides_says_why_and_names_its_source(rule: Rule) -> None:
    expected = Outcome.FAIL if rule.error in PROVEN_ABSENT else Outcome.INFO
    assert reported(rule.code, "all", AT_ONCE) is expected
    assert reported(rule.code, "1", AT_ONCE) is expected
    assert KafkaError(rule.code).name() == rule.error
    assert rule.because
    assert rule.source


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.error)
def test_no_error_proves_anything_of_a_record_that_may_have_been_sent_twice(rule: Rule) -> None:
    assert reported(rule.code, "all", SENT_ONCE_WITHIN_NS) is Outcome.INFO


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.error)
def test_with_acks_0_nothing_is_known(rule: Rule) -> None:
    assert reported(rule.code, "0", AT_ONCE) is Outcome.INFO


def test_a_report_without_error_is_an_acknowledgement_unless_acks_is_0() -> None:
    late = 10**12
    assert reported(None, "all", late) is Outcome.OK
    assert reported(None, "1", late) is Outcome.OK
    assert reported(None, "0", AT_ONCE) is Outcome.INFO


def test_an_unknown_error_is_indeterminate() -> None:
    assert reported(4711, "all", AT_ONCE) is Outcome.INFO


def test_what_produce_itself_refuses_was_never_sent() -> None:
    assert refused("all") is Outcome.FAIL
    assert refused("1") is Outcome.FAIL
    assert refused("0") is Outcome.INFO
