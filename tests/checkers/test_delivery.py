"""Each anomaly in the smallest history that has it, beside its twin: the nearest history that has not."""

from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from checkers.catalogue import CHECKERS
from checkers.evaluate import records
from checkers.tables import History
from harness.core.layout import ANOMALIES
from tests.checkers.notation import WORKERS_OF_A_HISTORY, Told, write

Sets = dict[str, set[str]]


@dataclass(frozen=True)
class Case:
    """A hand history, and the records that each anomaly is to be found in: these and no others."""

    says: str
    lines: tuple[str, ...]
    found: dict[str, set[str]]


def case(says: str, *lines: str, **found: str) -> Case:
    return Case(says, lines, {anomaly: set(names.split()) for anomaly, names in found.items()})


CASES = [
    case(
        "an acknowledged record missing from the final log is lost",
        *("send a ok @0", "send b ok @1", "final a @0", "end 0..2"),
        lost="b",
    ),
    case(
        "an acknowledged record whose offset nobody told is lost all the same",
        *("send a ok", "end 0..0"),
        lost="a",
    ),
    case(
        "an unacknowledged record missing from the final log is not lost",
        *("send a ok @0", "send b info", "send c fail", "final a @0", "end 0..1"),
    ),
    case(
        "a record still in flight is not lost",
        *("send a info t0..", "end 0..0"),
    ),
    case(
        "nothing is lost where the final read is not complete",
        *("send a ok @0", "send b ok @1", "final a @0", "end 0..2 read 1"),
    ),
    case(
        "one partition's incomplete read hides nothing of another",
        *("send a ok @0 p0", "send b ok @0 p1", "end 0..1 p0 read 0", "end 0..1 p1"),
        lost="b",
    ),
    case(
        "what retention deleted is not lost, what stood above it is",
        *("send a ok @0", "send b ok @1", "send c ok @2", "final c @2", "end 1..3"),
        lost="b",
    ),
    case(
        "a record that only one replica still has is lost",
        *("send a ok @0", "replica a @0", "end 0..0"),
        lost="a",
    ),
    case(
        "a damaged record is there: corrupted, not lost",
        *("send a ok @0", "final a @0 damaged", "end 0..1"),
        corrupted="a",
    ),
    case(
        "records of different workers with the same sequence are told apart",
        *("send a ok @0 w0", "send b ok @1 w1", "final a @0", "end 0..2"),
        lost="b",
    ),
    case(
        "a proven failure that is present is an anomaly",
        *("send a fail", "final a @0", "end 0..1"),
        failed_but_present="a",
    ),
    case(
        "a proven failure that a consumer saw is one too, though it is gone",
        *("send a fail", "live a @0", "end 0..0"),
        failed_but_present="a",
        vanished="a",
    ),
    case(
        "an undecided write that is present is none",
        *("send a info", "final a @0", "end 0..1"),
    ),
    case(
        "a record at two offsets is duplicated",
        *("send a ok @0", "final a @0", "final a @1", "end 0..2"),
        duplicated="a",
    ),
    case(
        "one that was never acknowledged, too",
        *("send a info", "send b ok @2", "final a @0", "final a @1", "final b @2", "end 0..3"),
        duplicated="a",
    ),
    case(
        "a redelivery of one offset is no duplicate",
        *("send a ok @0", "live a @0", "live a @0", "final a @0", "final a @0", "end 0..1"),
    ),
    case(
        "a neighbour of a duplicate is none",
        *("send a ok @0", "send b ok @2", "final a @0", "final a @1", "final b @2", "final b @2", "end 0..3"),
        duplicated="a",
    ),
    case(
        "a record that nobody sent is a phantom",
        *("send a ok @0", "final a @0", "final x @1", "end 0..2"),
        phantom="x",
    ),
    case(
        "a payload without an id is a phantom",
        *("final ? @0", "end 0..1"),
        phantom="?",
    ),
    case(
        "a whole history knows what its workers never sent",
        *("send a ok @0", "final a @0", "final w0#9 @1", "end 0..2"),
        phantom="w0#9",
    ),
    case(
        "a phantom that fails its checksum is corrupted",
        *("final x @0 damaged", "final ? @1 damaged", "end 0..2"),
        corrupted="x ?",
    ),
    case(
        "a record in another partition than it was sent to is misplaced",
        *("send a info p0", "final a @0 p1", "end 0..0 p0", "end 0..1 p1"),
        misplaced="a",
    ),
    case(
        "a record in another topic is misplaced; an acknowledged one is lost where it belongs",
        *("send a ok @0", "final a @0 elsewhere", "end 0..1", "end 0..1 elsewhere"),
        misplaced="a",
        lost="a",
    ),
    case(
        "records of one worker in the partitions they were sent to are not misplaced",
        *("send a ok @0 p0", "send b ok @0 p1", "final a @0 p0", "final b @0 p1", "end 0..1 p0", "end 0..1 p1"),
    ),
    case(
        "a record that a consumer read and the final read did not has vanished",
        *("send a info", "live a @0", "end 0..0"),
        vanished="a",
    ),
    case(
        "a record that is still there has not vanished",
        *("send a ok @0", "live a @0", "final a @0", "end 0..1"),
    ),
    case(
        "nothing vanishes where the final read is not complete",
        *("send a info", "live a @0", "end 0..1 read 0"),
    ),
    case(
        "what retention deleted has not vanished",
        *("send a ok @0", "live a @0", "end 1..1"),
    ),
    case(
        "a record that only one replica has did not vanish: nobody was given it",
        *("send a info", "replica a @0", "end 0..0"),
    ),
]

#: Those that are asked of single records; the others have cases of their own.
OF_RECORDS = [checker for checker in CHECKERS if checker.when is None]

PARTIAL = [
    case(
        "where a journal was cut off, what its worker sent after it is unrecorded, not a phantom",
        *("send a ok @0", "final a @0", "final w0#9 @1", "end 0..2"),
    ),
    case(
        "but a worker that does not exist sent nothing",
        *("send a ok @0", "final a @0", "final w0#9 @1", "final x @2", "final ? @3", "end 0..4"),
        phantom="x ?",
    ),
]


def told(cases: list[Case]) -> list[Told]:
    return [Told(f"case-{n}", n * WORKERS_OF_A_HISTORY).tell(one.lines) for n, one in enumerate(cases)]


def found_in(run: Path, histories: list[Told]) -> list[Sets]:
    """The names of the records in each anomaly, by history."""
    sets: list[Sets] = [{} for _ in histories]
    by_topic = {one.topic: n for n, one in enumerate(histories)}
    for kept in (run / ANOMALIES).glob("*"):
        for row in pq.read_table(kept).to_pylist():
            n = by_topic[row["topic"].removesuffix("-elsewhere")]
            sets[n].setdefault(kept.name, set()).add(histories[n].name_of(row["record_id"]))
    return sets


@pytest.fixture(scope="module")
def judged(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Sets]:
    """All cases judged as one run, each a topic of its own, and the partial ones as another."""
    found: dict[str, Sets] = {}
    for cases, partial in ((CASES, False), (PARTIAL, True)):
        run = tmp_path_factory.mktemp("run")
        write(run, told(cases), partial=partial)
        records(History.read(run, spark))
        found |= dict(zip((one.says for one in cases), found_in(run, told(cases)), strict=True))
    return found


@pytest.mark.parametrize("one", [*CASES, *PARTIAL], ids=lambda one: one.says)
def test_what_is_found(one: Case, judged: dict[str, Sets]) -> None:
    assert judged[one.says] == one.found


@pytest.mark.parametrize("checker", OF_RECORDS, ids=lambda checker: checker.anomaly)
def test_every_checker_has_a_case_and_a_twin(checker) -> None:
    assert any(checker.anomaly in one.found for one in CASES)
    assert any(checker.anomaly not in one.found for one in CASES)


@pytest.fixture(scope="module")
def inverted(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[Sets]:
    """The cases judged by checkers that each suspect exactly the records that they should not."""
    run = tmp_path_factory.mktemp("inverted")
    write(run, told(CASES))
    seen = "(acknowledged | failed | undecided | found | delivered | whole | damaged)"
    wrong = [replace(c, suspects=f"{seen} & ~({c.suspects})", besides="0L") for c in OF_RECORDS]
    records(History.read(run, spark), wrong)
    return found_in(run, told(CASES))


@pytest.mark.parametrize("checker", OF_RECORDS, ids=lambda checker: checker.anomaly)
def test_an_inverted_checker_is_found_out(checker, inverted: list[Sets]) -> None:
    expected = [one.found.get(checker.anomaly, set()) for one in CASES]
    assert [sets.get(checker.anomaly, set()) for sets in inverted] != expected


@pytest.mark.parametrize("checker", OF_RECORDS, ids=lambda checker: checker.anomaly)
def test_a_checker_that_is_switched_off_is_found_out(checker) -> None:
    assert any(one.found.get(checker.anomaly) for one in CASES)
