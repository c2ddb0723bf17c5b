"""Transactions on librdkafka's mock cluster: what is journalled, in which order, and after which error what is done.

(The mock cluster has a coordinator, but what it keeps of a transaction no consumer can read: _BAD_MSG.)
"""

from collections import Counter
from collections.abc import Callable

import psutil
import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException

from harness.core.errors import ClusterError
from harness.core.waiting import wait_for
from harness.history.journal import Journal, journal_path, read_journal
from harness.history.schema import SENDS, TRANSACTIONS, Outcome
from tests.workloads.begun import begun
from workloads.clients.recorder import TransactionRecorder
from workloads.clients.send_recorder import SendRecorder
from workloads.clients.specs import TransactorSpec
from workloads.clients.transacting import Transacting
from workloads.clients.transaction_errors import ACTIONS, Action, after, outcome
from workloads.transactions import Transactions
from workloads.workload import Surroundings, start

Journalled = Callable[[str], pa.Table]


def last_rows(table: pa.Table, key: str) -> list[dict]:
    return list({(row["worker"], row[key]): row for row in table.to_pylist()}.values())


def test_every_transaction_ends_as_intended_and_its_records_say_which_it_is(
    surroundings: Surroundings, journalled: Journalled
) -> None:
    with begun(Transactions(rate=600, records=6, aborted=0.3, consumers=0), surroundings) as workload:
        wait_for(workload.counts, "300 acknowledged", 30, good=lambda counts: counts.acknowledged >= 300)
        assert workload.finish(within=60) == []
    transactions = last_rows(journalled("transactions"), "transaction")
    sends = last_rows(journalled("sends"), "sequence")
    assert {row["outcome"] for row in transactions} == {row["outcome"] for row in sends} == {"ok"}
    assert {row["intent"] for row in transactions} == {"commit", "abort"}
    assert all(row["began_ns"] < row["ending_ns"] <= row["ended_ns"] for row in transactions)
    sizes = Counter((row["worker"], row["transaction"]) for row in sends)
    assert sizes.keys() <= {(row["worker"], row["transaction"]) for row in transactions}
    assert sum(size == 6 for size in sizes.values()) >= len(sizes) - 2
    assert {row["worker"] for row in sends} == {1, 2}
    spread = {(row["worker"], row["transaction"], row["partition"]) for row in sends}
    assert len(spread) > 3 * len(sizes), "several partitions to a transaction"


def test_readers_of_both_isolation_levels_stand_side_by_side(surroundings: Surroundings) -> None:
    workload = start(Transactions(consumers=2), surroundings)
    levels = [config.get("isolation.level") for name, config in workload.clients.items() if name.startswith("consumer")]
    assert levels == ["read_committed", "read_uncommitted"] * 2
    ids = [config["transactional.id"] for name, config in workload.clients.items() if name.startswith("transactor")]
    assert len(set(ids)) == 2


def test_a_killed_producer_is_replaced_and_its_numbers_are_never_used_again(
    surroundings: Surroundings, journalled: Journalled
) -> None:
    with begun(Transactions(rate=400, producers=1, consumers=0), surroundings) as workload:
        wait_for(workload.counts, "100 acknowledged", 30, good=lambda counts: counts.acknowledged >= 100)
        (first,) = workload.workers
        assert "killed process" in workload.replace(1)
        assert not psutil.pid_exists(first.pid)
        replaced_at = surroundings.clock.now()
        wait_for(lambda: workload.acknowledged_since(replaced_at), "the replacement's acknowledgements", 60)
        assert workload.deaths() == []
        with pytest.raises(ClusterError, match="no producer 7"):
            workload.replace(7)
        assert workload.finish(within=60) == []
    assert not read_journal(journal_path(surroundings.journals, "sends", "1"), SENDS)[1]
    rows = journalled("transactions").to_pylist()
    assert {row["incarnation"] for row in rows} == {0, 100}
    numbers = {life: {r["transaction"] for r in rows if r["incarnation"] == life} for life in (0, 100)}
    assert max(numbers[0]) < min(numbers[100])


@pytest.mark.parametrize(
    ("intent", "commit_invoked", "succeeded", "expected"),
    [
        ("commit", True, True, Outcome.OK),
        ("commit", True, False, Outcome.INFO),
        ("commit", False, False, Outcome.FAIL),
        ("abort", False, True, Outcome.OK),
        ("abort", False, False, Outcome.INFO),
    ],
)
def test_the_outcome_of_a_transaction_follows_from_its_intent_and_its_calls(
    intent: str, commit_invoked: bool, succeeded: bool, expected: Outcome
) -> None:
    assert outcome(intent, commit_invoked, succeeded) is expected


FLAGS = {
    "fatal": ({"fatal": True}, Action.REPLACE),
    "abortable": ({"txn_requires_abort": True}, Action.ABORT),
    "retriable": ({"retriable": True}, Action.AGAIN),
    "other": ({}, Action.REPLACE),
}


def error(kind: str) -> KafkaError:
    return KafkaError(KafkaError.UNKNOWN, kind, **FLAGS[kind][0])


@pytest.mark.parametrize("row", ACTIONS, ids=lambda row: row.kind)
def test_every_kind_of_error_has_its_action(row) -> None:
    assert after(error(row.kind)) is row
    assert row.action is FLAGS[row.kind][1]
    assert row.because
    assert row.source


class Scripted:
    """A producer of transactions that acknowledges everything, apart from what the script says."""

    def __init__(self, config: dict, said: list[str], errors: dict[str, list[KafkaError]]) -> None:
        self.said, self.errors, self.reports = said, errors, []
        said.append("new")

    def __getattr__(self, name: str) -> Callable:
        def call(*_: object) -> int:
            self.said.append(name)
            if self.errors.get(name):
                raise KafkaException(self.errors[name].pop(0))
            return 0

        return call

    def produce(self, topic: str, payload: bytes, partition: int, on_delivery: Callable) -> None:
        class Delivered:
            value = staticmethod(lambda: payload)
            offset = staticmethod(lambda: 5)

        failure = self.errors["report"].pop(0) if self.errors.get("report") else None
        self.reports.append(lambda: on_delivery(failure, Delivered))

    def poll(self, _: float) -> int:
        while self.reports:
            self.reports.pop()()
        return 0


@pytest.mark.parametrize(
    ("errors", "aborted", "says", "expected"),
    [
        ({}, 0.0, ["commit_transaction"], ("ok", None)),
        ({}, 1.0, ["abort_transaction"], ("ok", None)),
        ({"commit_transaction": ["retriable"]}, 0.0, ["commit_transaction"] * 2, ("ok", None)),
        ({"commit_transaction": ["abortable"]}, 0.0, ["commit_transaction", "abort_transaction"], ("info", "UNKNOWN")),
        ({"commit_transaction": ["fatal"]}, 0.0, ["commit_transaction", "new"], ("info", "UNKNOWN")),
        ({"report": ["other"]}, 0.0, ["abort_transaction"], ("fail", "UNKNOWN")),
        ({"abort_transaction": ["fatal"]}, 1.0, ["abort_transaction", "new"], ("info", "UNKNOWN")),
        ({"begin_transaction": ["fatal"]}, 0.0, ["new"], ("fail", "UNKNOWN")),
    ],
    ids=str,
)
def test_each_error_of_a_transaction_has_its_own_next_call(
    errors: dict, aborted: float, says: list[str], expected: tuple, surroundings: Surroundings, journalled: Journalled
) -> None:
    workload = Transactions(rate=None, records=3, aborted=aborted, producers=1, consumers=0)
    (spec,) = workload.worker_specs(surroundings)
    assert isinstance(spec, TransactorSpec)
    said: list[str] = []
    script = {call: [error(kind) for kind in kinds] for call, kinds in errors.items()}
    with (
        Journal(journal_path(surroundings.journals, "sends", "1"), SENDS) as sends_journal,
        Journal(journal_path(surroundings.journals, "transactions", "1"), TRANSACTIONS) as transactions_journal,
    ):
        sends = SendRecorder(sends_journal, 1, "all", surroundings.partitions, [])
        transacting = Transacting(
            spec,
            sends,
            TransactionRecorder(transactions_journal, 1),
            surroundings.clock,
            lambda config: Scripted(config, said, script),  # type: ignore[arg-type, return-value]
        )
        for _ in range(30):
            transacting.step(0)
            ended = [row for row in journalled("transactions").to_pylist() if row["ended_ns"] is not None]
            if ended:
                break
    assert (ended[0]["outcome"], ended[0]["error"]) == expected
    calls = [name for name in said[1:] if name in {"new", "commit_transaction", "abort_transaction"}]
    assert calls == says
