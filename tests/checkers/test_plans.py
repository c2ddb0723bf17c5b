"""How Spark means to answer: no question is a product of two tables, and none is one task's alone, nor is what it
sorts of one partition."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession

from checkers.anomalies import groups
from checkers.catalogue import CHECKERS, WITHOUT_FINAL_READ
from checkers.checker import Checker, OrderChecker, PollChecker, RecordChecker, TableChecker
from checkers.history import History
from checkers.scan.log_order import log_order
from checkers.scan.polls import polls
from checkers.scan.record_bits import EVERY, UNSETTLED, Candidates, candidates, record_bits
from tests.checkers.notation import by_hand, write

pytestmark = pytest.mark.long

EVERY_KIND_OF_ROW = (
    *("send a ok @0 t1..2 x1 k1", "send b ok @1 t2..3", "send c info t3"),
    *("final a @0 e1", "final b @2 e0 damaged", "end 0..6"),
    *("txn 2 commit ok 4..5..6", "send d ok @3 t4..5 x2 k1", "txn 3 commit ok 7..8..9", "send e ok @4 t7..8 x3 k1"),
    *("send f ok @5 t7..8 x3 k1", "final e @4 e1"),
    *("live a @0 r1 t4", "live c @0 r1 t4", "live b @2 r1 t5", "txn 1 commit ok 0..2..3"),
    *("place assign r1 @0 t1", "place commit r1 @3 t6", "killed r1"),
)

#: A partition of which the checkers sort so many pieces apart (of 2^11 offsets, or of a second), each so many records.
PIECES, EACH = 8, 64


def _hot(n: int) -> Iterator[str]:
    """Its ``n``-th record: one of sixteen of a poll, which gives each twice; the next offset has none."""
    at, sent, polled = n // EACH << 11 | n % EACH << 1, 5 + n / EACH, 5 + n // 16 * 16 / EACH
    yield f"send {n} ok @{at} t{sent}..{sent + 1}"
    yield f"final {n} @{at} e{0 if n == EACH else 1}"
    yield from 2 * [f"live {n} @{at} r1 t{polled}"]


def _candidates(history: History, bits: str) -> Candidates:
    """What a finder looks at: every record, or candidates of which Spark does not know that they are few."""
    if history.compares_all:
        return Candidates(history, None)
    return candidates(history, record_bits(history), bits, number=1 << 40)


def _found(checker: Checker) -> Callable[[History], DataFrame]:
    def find(history: History) -> DataFrame:
        match checker:
            case RecordChecker() | OrderChecker():
                found = checker.find(_candidates(history, EVERY))
            case PollChecker():
                found = checker.find(history, polls(history))
            case TableChecker():
                found = checker.find(history)
        assert found is not None
        return found.where(checker.rule)

    return find


QUESTIONS: dict[str, Callable[[History], DataFrame]] = {
    "record bits": record_bits,
    "polls": polls,
    "log order": lambda history: log_order(_candidates(history, UNSETTLED)),
    "unprocessed": lambda history: groups.unprocessed(history, polls(history)),
    "went past": lambda history: groups.went_past(polls(history)),
    "unanswered": groups.unanswered,
    **{checker.name: _found(checker) for checker in CHECKERS},
    **{f"{checker.name} without a final read": _found(checker) for checker in WITHOUT_FINAL_READ},
}

#: Those that sort records, or polls.
SORTED = ["polls", "log order", "reordered", "real_time_order", "skipped", "went_back", "epoch_fell"]

#: Those that Spark reads no records for.
LOCAL = ["hanging_transaction"]


@pytest.fixture(scope="module")
def history(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> History:
    run: Path = tmp_path_factory.mktemp("run")
    level = "read_committed"
    clients = {"consumer 1": {"isolation.level": level}}
    write(run, [by_hand(*EVERY_KIND_OF_ROW)], grouped=True, isolation_level=level, clients=clients)
    return History.read(run, spark, one_task=False)


@pytest.fixture(scope="module")
def hot(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> History:
    """A history of one partition, of which nothing is few enough to be broadcast unasked."""
    run: Path = tmp_path_factory.mktemp("run")
    records = (line for n in range(PIECES * EACH) for line in _hot(n))
    write(run, [by_hand(*records, f"end 0..{PIECES << 11}", "place assign r1 @0 t5", "killed r1")], grouped=True)
    apart = spark.newSession()
    apart.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    apart.conf.set("spark.sql.shuffle.partitions", "8")
    return History.read(run, apart, one_task=False)


def plan_of(frame: DataFrame) -> str:
    plan = frame._jdf.queryExecution().executedPlan().toString()  # type: ignore[operator]
    return str(plan)


@pytest.mark.parametrize("question", QUESTIONS)
def test_no_question_is_a_product_or_one_task_s_alone(question: str, history: History) -> None:
    plan = plan_of(QUESTIONS[question](history))
    assert ("FileScan parquet" in plan or "InMemoryTableScan" in plan) == (question not in LOCAL)
    assert ("Window" in plan) == (question in SORTED)
    assert re.findall(r"CartesianProduct|BroadcastNestedLoopJoin|Exchange SinglePartition", plan) == []


def exchanges(plan: JavaObject) -> Iterator[JavaObject]:
    """Every exchange of rows between tasks in a physical plan."""
    children = plan.children()
    for n in range(children.size()):
        yield from exchanges(children.apply(n))
    if plan.nodeName() == "Exchange":
        yield plan


def of_one_task(frame: DataFrame) -> list[int]:
    """How many rows each exchange has that gives all of them to one task, as ``frame`` is computed."""
    scala = frame.sparkSession._jvm.scala.concurrent  # type: ignore[union-attr]
    plan = frame._jdf.queryExecution().executedPlan()  # type: ignore[operator]
    plan.execute().count()
    found = []
    for exchange in exchanges(plan):
        given = scala.Await.result(exchange.mapOutputStatisticsFuture(), scala.duration.Duration.Inf())
        if sum(size > 0 for size in given.bytesByPartitionId()) == 1:
            found.append(exchange.metrics().apply("shuffleRecordsWritten").value())
    return found


@pytest.mark.parametrize("question", SORTED)
def test_of_one_hot_partition_a_task_sorts_alone_no_more_than_a_row_for_each_piece(question: str, hot: History) -> None:
    assert [rows for rows in of_one_task(QUESTIONS[question](hot)) if rows > PIECES] == []


@pytest.mark.parametrize("question", ["record bits", "polls", "log order", "rewritten_offset"])
def test_all_of_a_small_history_is_one_task_s(question: str, history: History) -> None:
    assert "Exchange hashpartitioning" in plan_of(QUESTIONS[question](history))
    plan = plan_of(QUESTIONS[question](History.read(history.directory, history.spark)))
    assert "FileScan parquet" in plan
    assert re.findall(r"Exchange (?:hash|range)partitioning", plan) == []


def test_all_three_would_be_seen(history: History, hot: History) -> None:
    sends = history.sends
    assert "CartesianProduct" in plan_of(sends.hint("shuffle_replicate_nl").crossJoin(sends))
    assert "Exchange SinglePartition" in plan_of(sends.selectExpr("lag(offset) over (order by offset) as before"))
    of_partition = "lag(offset) over (partition by topic, partition order by offset) as before"
    assert of_one_task(hot.sends.selectExpr(of_partition)) == [PIECES * EACH]
