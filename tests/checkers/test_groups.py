"""Records that a group committed and nobody processed: small histories by hand that have the anomaly, and twins."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import Row, SparkSession

from checkers.anomalies import groups
from checkers.anomalies.records import RECORD
from checkers.catalogue import GROUPS
from checkers.checker import Checker
from checkers.history import History
from checkers.judge import judge, ruling_of
from checkers.scan.polls import polls
from checkers.screening import records
from harness.core.verdict import Judgement, Standing
from harness.history.paths import ANOMALIES
from harness.history.run_file import RunFile
from harness.report.sentences import with_sentences
from tests.checkers.notation import SECOND, apart, by_hand, turned_round, write
from tests.checkers.test_delivery import Case, Sets, by_case, case, found_in, hand_histories
from tests.golden.sample import Judged

[MISSED] = GROUPS

ABC = (
    *("send a ok @0 t1..2", "send b ok @1 t2..3", "send c ok @2 t3..4"),
    *("final a @0", "final b @1", "final c @2", "end 0..3", "place assign r1 t1"),
)

CASES = [
    case(
        "what was committed past and processed by nobody is missed",
        *(*ABC, "live a @0 r1 t5", "place commit r1 @2 t6"),
        missed="b",
    ),
    case(
        "what nobody committed past is not",
        *(*ABC, "live a @0 r1 t5", "place commit r1 @1 t6"),
    ),
    case(
        "nor what another member processed, be it later",
        *(*ABC, "live a @0 r1 t5", "place commit r1 @2 t6", "place assign r2 @1 t7", "live b @1 r2 t8"),
    ),
    case(
        "nor what an earlier incarnation had processed",
        *(*ABC, "live a @0 r1 t5", "live b @1 r1 t5", "place assign r1 i1 @2 t7", "place commit r1 i1 @2 t8"),
    ),
    case(
        "the furthest commit counts, not the last, whoever made it",
        *(*ABC, "live a @0 r1 t5", "place commit r2 @3 t6", "place commit r1 @1 t7", "live b @1 r1 t7"),
        missed="c",
    ),
    case(
        "a commit that failed counts for nothing",
        *(*ABC, "live a @0 r1 t5", "place commit r1 @3 t6 failed", "place commit r1 @1 t7"),
    ),
    case(
        "one partition's commit says nothing of another",
        *("send a ok @0 p0", "send b ok @0 p1", "final a @0 p0", "final b @0 p1", "end 0..1 p0", "end 0..1 p1"),
        *("place commit r1 @1 p1 t6", "live b @0 p1 r1 t5"),
    ),
    case(
        "what stands before the place where the group began is none of its business",
        *(*ABC[:-1], "place assign r1 @1 t1", "place commit r1 @2 t6", "place assign r2 @2 t7", "live c @2 r2 t8"),
        *("place commit r2 @3 t9", "place assign r3 t10"),
        missed="b",
    ),
    case(
        "what was deleted before the log start is in no final log, and not missed",
        *("send a ok @0", "send b ok @1", "final b @1", "end 1..2", "place assign r1 t1", "live b @1 r1 t5"),
        *("place commit r1 @2 t6",),
    ),
    case(
        "a position is no delivery, nor is the final read, nor a look into a replica",
        *(*ABC, "replica a @0", "live a @0 r1 t5", "place commit r1 @3 t6", "place end-of-partition r1 @3 t6"),
        missed="b c",
        skipped="b c",
    ),
    case(
        "a damaged record was given all the same",
        *("send a ok @0", "final a @0 damaged", "end 0..1", "live a @0 r1 t5 damaged", "place commit r1 @1 t6"),
        corrupted="a",
    ),
    case(
        "each of two copies is to be given",
        *("send a ok @0", "final a @0", "final a @1", "end 0..2", "live a @0 r1 t5", "place commit r1 @2 t6"),
        duplicated="a",
        missed="a",
    ),
]


@pytest.fixture(scope="module")
def judged(of_corpus: Callable[[str], Judged]) -> dict[str, Sets]:
    return by_case(of_corpus("by hand committed by a group").run, CASES)


@pytest.mark.parametrize("one", CASES, ids=lambda one: one.says)
def test_each_case_has_exactly_its_anomalies(one: Case, judged: dict[str, Sets]) -> None:
    assert judged[one.says] == one.found


def test_a_missed_record_is_reported_with_its_send_and_how_far_the_group_had_committed(
    spark: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path, [by_hand(*ABC, "final b @1", "live a @0 r1 t5", "place commit r1 @2 t6")], grouped=True)
    [found] = records(History.read(tmp_path, spark), GROUPS)[1]
    [row] = pq.read_table(tmp_path / ANOMALIES / "missed").to_pylist()
    assert (found.count, list(row)) == (1, [*RECORD, "committed", "died", "unanswered"])
    assert (row["offset"], row["committed"], row["sent_ns"], row["acknowledged_ns"]) == (1, 2, 2 * SECOND, 3 * SECOND)


def test_the_group_checker_does_not_run_without_a_group(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, [by_hand(*ABC, "place commit r1 @3 t6")])
    asked = replace(MISSED, find=lambda *_: pytest.fail("it was asked"))
    assert records(History.read(tmp_path, spark), [asked])[1] == []


@pytest.mark.parametrize(
    ("then", "stands"), [("killed r1", Standing.PERMITTED), ("killed r2", Standing.VIOLATION)], ids=["it", "another"]
)
@pytest.mark.long
def test_it_is_permitted_where_a_member_that_commits_first_was_killed(
    then: str, stands: Standing, spark: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path, [by_hand(*ABC, "live a @0 r1 t5", "place commit r1 @3 t6", then)], grouped=True, commits_first=True)
    history = History.read(tmp_path, spark)
    _, [found] = records(history, GROUPS)
    ruled = ruling_of(history, found.checker, found.stored, [])
    assert ruled.standing is stands
    assert ("commits before processing" in ruled.because) == (stands is Standing.VIOLATION)


@pytest.mark.parametrize(("reader", "stands"), [(101, Standing.PERMITTED), (102, Standing.VIOLATION)])
@pytest.mark.long
def test_it_is_permitted_where_the_member_died_by_itself(
    reader: int, stands: Standing, spark: SparkSession, tmp_path: Path
) -> None:
    died = [{"worker": reader, "incarnation": 0}]
    lines = (*ABC, "live a @0 r1 t5", "place commit r1 @3 t6")
    write(tmp_path, [by_hand(*lines)], grouped=True, commits_first=True, died=died)
    history = History.read(tmp_path, spark)
    _, [found] = records(history, GROUPS)
    ruled = ruling_of(history, found.checker, found.stored, [])
    assert ruled.standing is stands


def test_of_a_group_that_commits_last_a_killed_member_excuses_nothing(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, [by_hand(*ABC, "live a @0 r1 t5", "place commit r1 @3 t6", "killed r1")], grouped=True)
    history = History.read(tmp_path, spark)
    _, [found] = records(history, GROUPS)
    ruled = ruling_of(history, found.checker, found.stored, [])
    assert (ruled.standing, "commits after processing" in ruled.because) == (Standing.VIOLATION, True)


@pytest.mark.heavy
def test_the_verdict_is_invalid_and_says_so_first(spark: SparkSession, tmp_path: Path) -> None:
    lines = (*ABC, "live a @0 r1 t5", "place commit r1 @3 t6", "saw b1 @0 leader=1 epoch=0 isr=1,2,3")
    write(tmp_path, [by_hand(*lines)], grouped=True)
    verdict = with_sentences(judge(tmp_path, spark), RunFile.read(tmp_path))
    assert verdict.verdict is Judgement.INVALID
    assert verdict.anomalies.keys() == {"missed"}
    assert verdict.reasons[0].startswith("missed: 2 records were committed past by the group")


#: A record in another partition, which the same member owns.
E_IN_ANOTHER = ("send e ok @0 p1 t4..5", "final e @0 p1", "end 0..1 p1", "place assign r1 p1 t1")
A_REFUSED_E_ANSWERED = (
    *("place committing r1 @1 t3", "place committing r1 @1 p1 t3"),
    *("place commit r1 @1 t4 failed", "place commit r1 @1 p1 t4"),
)
TO_R2 = (
    *("place revoke r1 t6", "place revoke r1 p1 t6", "place assign r2 @0 t7", "place assign r2 @1 p1 t7"),
    *("place committing r2 @1 t8", "place commit r2 @1 t8", "live a @0 r2 t8"),
)
THEN_C = (
    *("place revoke r2 t12", "place assign r3 @2 t13", "live c @2 r3 t14"),
    *("place committing r3 @3 t14", "place commit r3 @3 t14"),
)

#: Records of ``ABC`` that were committed and not processed, by offset: whether a kill excuses them.
KILLED = {
    "what it had committed past the last record that it was given": (
        ("live a @0 r1 t5", "place commit r1 @3 t6", "killed r1"),
        {1: True, 2: True},
    ),
    "nothing where it lives": (("live a @0 r1 t5", "place commit r1 @3 t6"), {1: False, 2: False}),
    "nothing where its partitions were taken before it was killed": (
        ("live a @0 r1 t5", "place commit r1 @3 t6", "place revoke r1 t7", "killed r1"),
        {1: False, 2: False},
    ),
    "nothing where it had lost them before it was killed": (
        ("live a @0 r1 t5", "place commit r1 @3 t6", "place lost r1 t7", "killed r1"),
        {1: False, 2: False},
    ),
    "nothing where another member was killed": (
        ("live a @0 r1 t5", "place commit r1 @3 t6", "killed r2"),
        {1: False, 2: False},
    ),
    "nothing where its next incarnation was killed": (
        ("live a @0 r1 t5", "place commit r1 @3 t6", "killed r1 i1"),
        {1: False, 2: False},
    ),
    "not what it had processed beyond, nor before that": (
        ("live a @0 r1 t5", "place commit r1 @3 t6", "live c @2 r1 t6", "killed r1"),
        {1: False},
    ),
    "what it had committed and not processed": (
        ("live a @0 r1 t5", "place commit r1 @2 t6", "killed r1"),
        {1: True},
    ),
    "what it had committed before it was given anything": (
        ("place commit r1 @3 t6", "killed r1"),
        {0: True, 1: True, 2: True},
    ),
    "not what it went past, whether or not it was killed later": (
        ("live b @1 r1 t5", "place commit r1 @3 t6", "killed r1"),
        {0: False, 2: True},
    ),
    "not behind the end of the partition, which it had come to": (
        ("live a @0 r1 t5", "place end-of-partition r1 @2 t6", "place commit r1 @3 t7", "killed r1"),
        {1: False, 2: True},
    ),
    "not what it had committed in an assignment that it gave up": (
        ("live a @0 r1 t5", "place commit r1 @3 t6", "place revoke r1 t7", "place assign r1 @1 t8"),
        ("place commit r1 @2 t9", "killed r1"),
        {1: True, 2: False},
    ),
    "not what stands before its place": (
        ("live a @0 r1 t5", "place commit r1 @2 t6", "place revoke r1 t7", "place assign r2 @2 t8"),
        ("place commit r2 @3 t9", "killed r2"),
        {1: False, 2: True},
    ),
    "not what another committed": (
        ("live a @0 r1 t5", "place commit r1 @2 t6", "place assign r2 @2 t8", "place commit r2 @3 t9", "killed r1"),
        {1: True, 2: False},
    ),
    "not another's, be they both killed, but in what was its own": (
        ("live a @0 r1 t5", "place commit r1 @2 t6", "place assign r2 @2 t8", "place commit r2 @3 t9"),
        ("killed r1", "killed r2"),
        {1: True, 2: True},
    ),
    "not what a later member went past, which lives": (
        ("place commit r1 @2 t6", "killed r1", "place assign r2 @0 t8", "live c @2 r2 t9", "place commit r2 @3 t10"),
        {0: False, 1: False},
    ),
    "what it had committed without a word, for its successor began behind it": (
        ("live a @0 r1 t5", "place assign r2 @2 t8", "place commit r2 @3 t9", "killed r1"),
        {1: True, 2: False},
    ),
    "not what it had not asked to commit, wherever its successor began": (
        ("live a @0 r1 t5", "place committing r1 @2 t6", "place commit r1 @2 t6", "killed r1"),
        ("place assign r2 @3 t8", "place committing r2 @3 t9", "place commit r2 @3 t9"),
        {1: True, 2: False},
    ),
    "not what its successor was placed before, and committed itself": (
        ("place commit r1 @3 t5", "killed r1", "place assign r2 @1 t8", "live b @1 r2 t9", "place commit r2 @3 t10"),
        {0: True, 2: False},
    ),
    "but what its successor was placed before, and committed nothing of": (
        ("place commit r1 @2 t5", "killed r1", "place assign r2 @0 t8", "place revoke r2 t9", "place commit r3 @3 t10"),
        {0: True, 1: True, 2: False},
    ),
    "be its successor killed, too": (
        ("place commit r1 @3 t5", "killed r1", "place assign r2 @1 t8", "live b @1 r2 t9", "place commit r2 @3 t10"),
        ("killed r2",),
        {0: True, 2: True},
    ),
    "what it had committed when it had sought another place itself": (
        ("live a @0 r1 t5", "place seek r1 @0 t6", "place commit r1 @3 t7", "killed r1"),
        {1: True, 2: True},
    ),
    "not what it had failed to commit": (
        ("live a @0 r1 t5", "place commit r1 @3 t6 failed", "place assign r2 @1 t8", "place commit r2 @2 t9"),
        ("killed r1",),
        {1: False},
    ),
    "where it was placed at nothing, from where the group stood": (
        ("place commit r1 @1 t5", "place revoke r1 t6", "place assign r2 t7", "place commit r2 @2 t8", "killed r2"),
        {0: False, 1: True},
    ),
    "not what it had committed before it asked to commit more": (
        ("place committing r1 @1 t2", "place commit r1 @1 t2", "live a @0 r1 t2", "place committing r1 @2 t6"),
        ("place commit r1 @2 t6", "place committing r1 @3 t8", "place commit r1 @3 t8", "killed r1"),
        {1: False, 2: True},
    ),
    "not what it had committed before it asked to commit in another partition": (
        (*E_IN_ANOTHER, "place committing r1 @3 t6", "place commit r1 @3 t7", "place committing r1 @1 p1 t8"),
        ("killed r1",),
        {0: False, 1: False, 2: False},
    ),
    "not what it had committed before it was given more, be it in another partition": (
        (*E_IN_ANOTHER, "place committing r1 @3 t6", "place commit r1 @3 t7", "live e @0 p1 r1 t8", "killed r1"),
        {0: False, 1: False, 2: False},
    ),
    "what it had committed while it was processing the records of the same poll": (
        (*E_IN_ANOTHER, "live e @0 p1 r1 t6", "place committing r1 @3 t6", "place committing r1 @1 p1 t6"),
        ("place commit r1 @3 t7", "place commit r1 @1 p1 t7", "killed r1"),
        {0: True, 1: True, 2: True},
    ),
    "what it held back, for another partition of the request was refused": (
        (*E_IN_ANOTHER, "place committing r1 @3 t6", "place committing r1 @1 p1 t6", "place commit r1 @3 t7"),
        ("place commit r1 @1 p1 t7 failed", "place committing r1 @3 t8", "place committing r1 @1 p1 t8", "killed r1"),
        {0: True, 1: True, 2: True},
    ),
    "not what the group left unprocessed when it had begun before it and was answered": (
        ("place commit r1 @3 t5", "killed r1", "place assign r2 @0 t8", "live a @0 r2 t9", "place commit r2 @1 t10"),
        ("place revoke r2 t11", "place assign r3 @2 t12", "live c @2 r3 t13", "place commit r3 @3 t14"),
        {1: False},
    ),
    "but what the group has not come to again since": (
        ("place commit r1 @3 t5", "killed r1", "place assign r2 @0 t8", "live a @0 r2 t9", "place commit r2 @1 t10"),
        {1: True, 2: True},
    ),
}


@pytest.fixture(scope="module")
def excuses(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[int, Row]]:
    """The missed records of each history of a group that commits first, by offset: all judged as one run."""
    run = tmp_path_factory.mktemp("run")
    said = [[line for part in parts for line in part] for *parts, _ in (*KILLED.values(), *UNANSWERED.values())]
    write(run, apart([*ABC, *lines] for lines in said), grouped=True, commits_first=True)
    history = History.read(run, spark)
    found: dict[str, dict[int, Row]] = {f"case-{n}": {} for n, _ in enumerate(said)}
    for row in groups.missed(history, polls(history)).collect():
        found[row["topic"]][row["offset"]] = row
    return dict(zip((*_named("killed", KILLED), *_named("unanswered", UNANSWERED)), found.values(), strict=True))


def _named(kind: str, cases: Iterable[str]) -> list[str]:
    return [f"{kind}: {says}" for says in cases]


@pytest.mark.heavy
@pytest.mark.parametrize("says", KILLED)
def test_a_killed_member_excuses_the_records_that_it_had_not_processed(
    says: str, excuses: dict[str, dict[int, Row]]
) -> None:
    *_, died = KILLED[says]
    assert {offset: row["died"] for offset, row in excuses[f"killed: {says}"].items()} == died


@pytest.mark.long
def test_one_partitions_kill_excuses_nothing_in_another(spark: SparkSession, tmp_path: Path) -> None:
    lines = (
        *("send a ok @0 p0", "send b ok @0 p1", "final a @0 p0", "final b @0 p1", "end 0..1 p0", "end 0..1 p1"),
        *("place assign r1 p0 t1", "place commit r1 @1 p0 t2", "killed r1"),
        *("place assign r2 p1 t1", "place commit r2 @1 p1 t2"),
    )
    write(tmp_path, [by_hand(*lines)], grouped=True, commits_first=True)
    history = History.read(tmp_path, spark)
    found = groups.missed(history, polls(history)).collect()
    assert {row["partition"]: row["died"] for row in found} == {0: True, 1: False}


#: Records of ``ABC`` that were committed and not processed, by offset: whether an unanswered commit excuses them.
UNANSWERED = {
    "what it asked to commit, and was refused before the partition was taken": (
        ("live a @0 r1 t5", "place committing r1 @2 t6", "place commit r1 @2 t7 failed", "place revoke r1 t8"),
        ("place assign r2 @2 t9", "place commit r2 @2 t10"),
        {1: True},
    ),
    "what it asked to commit, and never heard of": (
        ("place committing r1 @3 t6", "place lost r1 t8", "place commit r2 @3 t10"),
        {0: True, 1: True, 2: True},
    ),
    "the answer came when the partition was its own no more": (
        ("place committing r1 @3 t6", "place revoke r1 t8", "place commit r1 @3 t9"),
        {0: True, 1: True, 2: True},
    ),
    "not what it was answered for": (
        ("place committing r1 @2 t6", "place commit r1 @2 t7", "place committing r1 @3 t8", "place revoke r1 t9"),
        ("place commit r2 @3 t10",),
        {0: False, 1: False, 2: True},
    ),
    "not where it asked again, and was answered": (
        ("place committing r1 @3 t6", "place commit r1 @3 t7 failed", "place committing r1 @3 t8"),
        ("place commit r1 @3 t9", "place revoke r1 t10"),
        {0: False, 1: False, 2: False},
    ),
    "not where it was answered in an assignment that came after": (
        ("place committing r1 @2 t6", "place revoke r1 t7", "place assign r1 @2 t8", "place committing r1 @3 t9"),
        ("place commit r1 @3 t10",),
        {0: True, 1: True, 2: False},
    ),
    "not what stands before its place": (
        ("place committing r1 @1 t6", "place commit r1 @1 t7", "place revoke r1 t8", "place assign r2 @1 t9"),
        ("place committing r2 @3 t10", "place lost r2 t11", "place commit r3 @3 t12"),
        {0: False, 1: True, 2: True},
    ),
    "where it was placed at nothing, from where the group stood": (
        ("place committing r1 @1 t6", "place commit r1 @1 t7", "place revoke r1 t8", "place assign r2 t9"),
        ("place committing r2 @3 t10", "place lost r2 t11", "place commit r3 @3 t12"),
        {0: False, 1: True, 2: True},
    ),
    "behind which a later member, placed at nothing, began": (
        ("place committing r1 @2 t6", "place revoke r1 t8", "place assign r2 t9"),
        ("place committing r2 @3 t10", "place commit r2 @3 t11", "live c @2 r2 t12"),
        {0: True, 1: True},
    ),
    "not behind where a later member, placed at nothing, began": (
        ("place committing r1 @3 t6", "place revoke r1 t8", "place assign r2 t9"),
        ("place committing r2 @3 t10", "place commit r2 @3 t11", "live b @1 r2 t12"),
        {0: True, 2: False},
    ),
    "not what another went past": (
        ("place committing r1 @3 t6", "place revoke r1 t8", "place assign r2 @0 t9", "live a @0 r2 t10"),
        ("live c @2 r2 t11", "place commit r2 @3 t12"),
        {1: False},
    ),
    "not what another was given anew, and committed": (
        ("place committing r1 @3 t6", "place commit r1 @3 t7 failed", "place revoke r1 t8", "place assign r2 @1 t9"),
        ("place committing r2 @3 t11", "place commit r2 @3 t11"),
        {0: True, 1: False, 2: False},
    ),
    "not what it was given anew itself, and committed": (
        ("place committing r1 @3 t6", "place lost r1 t8", "place assign r1 t9", "place committing r1 @3 t11"),
        ("place commit r1 @3 t11",),
        {0: False, 1: False, 2: False},
    ),
    "be it that another had committed as much before": (
        ("place commit r1 @3 t2", "place revoke r1 t3", "place assign r2 @1 t4", "place committing r2 @3 t6"),
        ("place lost r2 t7",),
        {0: False, 1: True, 2: True},
    ),
    "not what a later member was placed before, when the group went on from its answered commit": (
        ("place committing r1 @2 t6", "place revoke r1 t8", "place assign r2 @0 t9", "place committing r2 @1 t10"),
        ("place commit r2 @1 t11", "live a @0 r2 t10", *THEN_C),
        {1: False},
    ),
    "be a later member placed before it, if its commit was refused": (
        ("place committing r1 @2 t6", "place revoke r1 t8", "place assign r2 @0 t9", "place committing r2 @1 t10"),
        ("place commit r2 @1 t11 failed", "live a @0 r2 t10", *THEN_C),
        {1: True},
    ),
    "what that later member asked to commit itself": (
        ("place committing r1 @2 t6", "place revoke r1 t8", "place assign r2 @0 t9", "place committing r2 @1 t10"),
        ("place commit r2 @1 t10", "live a @0 r2 t10", "place committing r2 @2 t11", *THEN_C),
        {1: True},
    ),
    "what stands before the place of the member that was answered": (
        ("place committing r1 @1 t6", "place revoke r1 t8", "place assign r2 @1 t9", "place committing r2 @2 t10"),
        ("place commit r2 @2 t11", "live b @1 r2 t10", *THEN_C),
        {0: True},
    ),
    "what it was answered for and held back, for another partition of the request was refused": (
        (*E_IN_ANOTHER, *A_REFUSED_E_ANSWERED, *TO_R2),
        {0: True},
    ),
    "not where it asked for both again, and was answered": (
        (*E_IN_ANOTHER, *A_REFUSED_E_ANSWERED, "place committing r1 @1 t5", "place committing r1 @1 p1 t5"),
        ("place commit r1 @1 t5", "place commit r1 @1 p1 t5", *TO_R2),
        {0: False},
    ),
    "not where another request was refused": (
        (*E_IN_ANOTHER, "place committing r1 @1 t2", "place commit r1 @1 t2 failed", "place committing r1 @1 p1 t3"),
        ("place commit r1 @1 p1 t4", *TO_R2),
        {0: False},
    ),
    "not what was committed without being asked for": (("place commit r1 @3 t6",), {0: False, 1: False, 2: False}),
}


@pytest.mark.parametrize("says", UNANSWERED)
def test_a_commit_request_without_an_answer_excuses_its_records(says: str, excuses: dict[str, dict[int, Row]]) -> None:
    *_, unanswered = UNANSWERED[says]
    assert {offset: row["unanswered"] for offset, row in excuses[f"unanswered: {says}"].items()} == unanswered


@pytest.mark.parametrize(("commits_first", "stands"), [(True, Standing.PERMITTED), (False, Standing.VIOLATION)])
@pytest.mark.heavy
def test_an_unanswered_commit_excuses_a_group_that_commits_first_alone(
    commits_first: bool, stands: Standing, spark: SparkSession, tmp_path: Path
) -> None:
    lines = ("place committing r1 @3 t6", "place revoke r1 t8", "place commit r2 @3 t10")
    write(tmp_path, [by_hand(*ABC, *lines)], grouped=True, commits_first=commits_first)
    history = History.read(tmp_path, spark)
    _, [found] = records(history, GROUPS)
    ruled = ruling_of(history, found.checker, found.stored, [])
    assert ruled.standing is stands


def test_one_partitions_unanswered_commit_excuses_nothing_in_another(spark: SparkSession, tmp_path: Path) -> None:
    lines = (
        *("send a ok @0 p0", "send b ok @0 p1", "final a @0 p0", "final b @0 p1", "end 0..1 p0", "end 0..1 p1"),
        *("place assign r1 p0 t1", "place committing r1 @1 p0 t2", "place revoke r1 p0 t3", "place commit r2 @1 p0 t4"),
        *("place assign r1 p1 t1", "place commit r1 @1 p1 t2"),
    )
    write(tmp_path, [by_hand(*lines)], grouped=True, commits_first=True)
    history = History.read(tmp_path, spark)
    found = groups.missed(history, polls(history)).collect()
    assert {row["partition"]: row["unanswered"] for row in found} == {0: True, 1: False}


@pytest.mark.long
def test_a_group_that_goes_on_behind_a_truncation_has_missed_nothing_at_offsets_that_it_was_given(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A record in the place of one that the group had got is reported as a rewritten offset."""
    lines = (
        *("send a ok @0 t1..2", "send b ok @1 t2..3", "place assign r1 t1", "live a @0 r1 t4", "live b @1 r1 t4"),
        *("place committing r1 @2 t5", "place commit r1 @2 t6", "send c ok @1 t7..8", "send d ok @2 t8..9"),
        *("live d @2 r1 t10", "place commit r1 @3 t11", "final a @0", "final c @1", "final d @2", "end 0..3"),
    )
    write(tmp_path, [by_hand(*lines)], grouped=True)
    history = History.read(tmp_path, spark)
    _, found = records(history)
    assert {one.checker.anomaly.name for one in found} == {"lost", "rewritten_offset", "vanished"}


#: Conditions turned round, as text of checkers/anomalies/groups.py.
INVERSIONS = {
    "behind": ("offset < committed", "offset >= committed"),
    "begun": ("offset >= begun", "offset < begun"),
    "undelivered": ("stand & ~delivered", "stand & delivered"),
    "failed": ("and error is null", "and error is not null"),
    "furthest": ("max(offset) filter (where {_COMMITTED})", "min(offset) filter (where {_COMMITTED})"),
}


def inverted(right: str, wrong: str) -> Checker:
    return turned_round(MISSED, groups, right, wrong)


@pytest.fixture(scope="module")
def judged_with_inversions(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[Sets]:
    """What the checker, and each that has a condition turned round, finds in each case."""
    run = tmp_path_factory.mktemp("run")
    write(run, hand_histories(CASES), grouped=True)
    named = {name: replace(MISSED.anomaly, name=name) for name in INVERSIONS}
    turned = [replace(inverted(*INVERSIONS[name]), anomaly=anomaly) for name, anomaly in named.items()]
    records(History.read(run, spark), [MISSED, *turned])
    return found_in(run, hand_histories(CASES))


@pytest.mark.parametrize("inversion", INVERSIONS)
@pytest.mark.heavy
def test_a_checker_with_a_condition_turned_round_is_found_out(
    inversion: str, judged_with_inversions: list[Sets]
) -> None:
    wanted = [one.found.get("missed", set()) for one in CASES]
    assert [sets.get("missed", set()) for sets in judged_with_inversions] == wanted
    assert [sets.get(inversion, set()) for sets in judged_with_inversions] != wanted
