"""From a history to its verdict: the merge, the headline, the examples, and that nothing but the run decides."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from checkers.catalogue import CHECKERS, WITHOUT_FINAL_READ
from checkers.checker import Checker
from checkers.evidence.circumstances import nothing
from checkers.evidence.copies import copies_vanished
from checkers.evidence.store import StoredRows
from checkers.findings import Observed, findings
from checkers.judge import active, judge, moment
from checkers.summary import summary
from harness.core.anomalies import BY_NAME, READ_CYCLE, SKIPPED, WENT_BACK
from harness.core.errors import HistoryError
from harness.core.guarantees import PERMISSIONS
from harness.core.verdict import Expectation, FoundAnomaly, Judgement, Precondition, Standing, Verdict
from harness.history.paths import ANOMALIES, CHECKERS_LOG, write_table
from harness.history.run_file import RunFile
from harness.history.schema import TABLES
from harness.report.sentences import with_sentences
from tests.checkers.notation import SECOND, by_hand, without_keys, write
from tests.checkers.test_holders import CUT as LOG_OF_B2
from tests.checkers.test_holders import LONELY, WHOLE
from tests.checkers.toy import CHECKER, EVEN
from tests.long_case import long_case
from tests.report.test_report import on_terminal
from tests.report.verdicts import run_file
from tests.report.verdicts import verdict as made

Judge = Callable[..., Verdict]

#: What 2013 found, in small: a is on all replicas, b and c were on a leader alone, d was not acknowledged but is there.
#: Healed, f is served.
STORY = (
    "send a ok @0 t1..2",
    "send b ok @1 t4..5",
    "send c ok @2 t5..6",
    "send d info t9..",
    "send e fail t7..7",
    "send f ok @2 t12..13",
    "live a @0 t3",
    "live b @1 t6",
    "final a @0 e0",
    "final d @1 e1",
    "final f @2 e1",
    "end 0..3",
    "fault cut b1 3..12 kind=isolate",
    "saw b1 @1..3 leader=1 epoch=0 isr=1,2,3",
    "saw b2 @1..3 leader=1 epoch=0 isr=1,2,3",
    "saw b1 @4..7 leader=1 epoch=0 isr=1",
    "saw b2 @4..7 leader=1 epoch=0 isr=1",
    "saw b2 @8..12 leader=2 epoch=1 isr=2",
)
CLEAN = ("send a ok @0", "final a @0", "end 0..1", "saw b1 @0 leader=1 epoch=0 isr=1,2,3")
UNCLEAN = {"unclean_election": True, "min_insync_replicas": 1}


@pytest.fixture
def judged(spark: SparkSession, tmp_path: Path) -> Judge:
    """Writes a hand history and judges it."""

    def write_and_judge(*lines: str, **settings: Any) -> Verdict:
        write(tmp_path, [by_hand(*lines)], **settings)
        return with_sentences(judge(tmp_path, spark), RunFile.read(tmp_path))

    return write_and_judge


@pytest.mark.long
def test_the_story_of_2013(judged: Judge, tmp_path: Path) -> None:
    verdict = judged(
        *STORY,
        **UNCLEAN,
        expect=Expectation(verdict=Judgement.INVALID, anomalies=["lost", "vanished", "rewritten_offset"]),
    )
    assert (verdict.verdict, verdict.expected) == (Judgement.INVALID, True)
    assert verdict.reasons[0] == (
        "lost: 2 of 4 acknowledged writes are not in the final log "
        "(by the same cause: vanished 1, rewritten_offset 2); permitted: min.insync.replicas=1 "
        "with unclean leader election: the ISR may shrink to the leader, "
        "and a replica that lacks what it alone acknowledged may be elected"
    )
    assert verdict.summary.model_dump() == {
        "attempted": 6,
        "acknowledged": 4,
        "survivors": 3,
        "lost": 2,
        "unacknowledged_present": 1,
        "duplicated": 0,
        "ack_rate": 0.666667,
        "loss_rate": 0.5,
        "unacknowledged_present_rate": 0.25,
    }
    assert {name: (a.count, a.standing) for name, a in verdict.anomalies.items()} == {
        "lost": (2, Standing.PERMITTED),
        "vanished": (1, Standing.PERMITTED),
        "rewritten_offset": (2, Standing.PERMITTED),
    }
    assert verdict.anomalies["lost"].examples[0] == {
        "topic": "trial",
        "partition": 0,
        "offset": 1,
        "record_id": 1,
        "worker": 0,
        "sequence": 1,
        "sent_ns": 4 * SECOND,
        "acknowledged_ns": 5 * SECOND,
        "read_epoch": None,
        "first_read_ns": 6 * SECOND,
        "last_read_ns": 6 * SECOND,
        "leader": 1,
        "leader_epoch": 0,
        "isr": [1],
        "faults": ["cut"],
    }
    assert [row["record_id"] for row in pq.read_table(tmp_path / ANOMALIES / "lost").to_pylist()] == [1, 2]
    [finding] = verdict.findings
    assert finding.anomalies == {"lost": 2, "vanished": 1, "rewritten_offset": 2}
    assert (finding.standing, finding.cause["event"]) == (Standing.PERMITTED, "election")
    assert finding.because == verdict.anomalies["lost"].because
    assert all(held.met for held in verdict.preconditions)


def test_a_run_without_anomalies_whose_assumptions_held_is_valid(judged: Judge, tmp_path: Path) -> None:
    (tmp_path / ANOMALIES / "lost").mkdir(parents=True)
    verdict = judged(*CLEAN)
    assert (verdict.verdict, verdict.expected, verdict.anomalies) == (Judgement.VALID, True, {})
    assert verdict.reasons == ["no anomaly: all 1 acknowledged writes are in the final log"]
    assert not (tmp_path / ANOMALIES).exists()


def test_one_whose_fault_never_bit_is_unknown(judged: Judge) -> None:
    verdict = judged(*CLEAN, "fault cut b1 0..1 missed")
    assert (verdict.verdict, verdict.expected) == (Judgement.UNKNOWN, False)
    assert verdict.reasons == [
        "unknown: faults took effect: no evidence: cut",
        "not as expected: expected valid, judged unknown",
    ]


def test_an_anomaly_outweighs_an_assumption(judged: Judge) -> None:
    verdict = judged("send a ok @0", "end 0..0")
    assert verdict.verdict is Judgement.INVALID
    assert verdict.reasons[0].startswith("lost: 1 of 1 acknowledged writes")
    assert verdict.reasons[2] == "unknown: cluster observed: no observation at all"


@pytest.mark.parametrize(("named", "expected"), [([], False), (["cluster observed"], True)])
def test_an_anomaly_that_is_expected_is_not_where_an_assumption_did_not_hold(
    named: list[str], expected: bool, judged: Judge
) -> None:
    standing = Standing.VIOLATION
    expect = Expectation(verdict=Judgement.INVALID, anomalies=["lost"], standing=standing, not_met=named)
    verdict = judged("send a ok @0", "end 0..0", expect=expect)
    assert (verdict.verdict, verdict.expected) == (Judgement.INVALID, expected)
    assert ("not as expected: not met: cluster observed" in verdict.reasons[-1]) is not expected


def test_of_many_records_20_are_shown_and_all_are_kept(judged: Judge, tmp_path: Path) -> None:
    sends = [f"send r{n} ok @{n} t{30 - n}..99" for n in range(30)]
    verdict = judged(*sends, "end 0..0")
    examples = verdict.anomalies["lost"].examples
    assert verdict.anomalies["lost"].count == 30
    assert [example["offset"] for example in examples] == list(range(29, 9, -1))
    assert pq.read_table(tmp_path / ANOMALIES / "lost").num_rows == 30


def test_nothing_at_all_is_unknown_not_valid(judged: Judge) -> None:
    verdict = judged()
    assert verdict.verdict is Judgement.UNKNOWN
    assert "unknown: something attempted: not one write" in verdict.reasons
    assert verdict.summary.ack_rate is None


@pytest.mark.heavy
def test_records_that_a_group_got_again_are_counted_by_cause_and_are_no_anomaly(judged: Judge) -> None:
    verdict = judged(
        *(
            "send a ok @0",
            "send b ok @1",
            "final a @0",
            "final b @1",
            "end 0..2",
            "saw b1 @0 leader=1 epoch=0 isr=1,2,3",
        ),
        *("place r1 assign @0 t1", "live a @0 r1 t2", "live b @1 r1 t3", "place r1 revoke @2 t4"),
        *("place r2 assign @1 t5", "live b @1 r2 t6"),
        *("place r3 assign @0 t8", "live a @0 r3 t9", "place r3 seek @0 t10", "live a @0 r3 t11"),
        # r2 got b last, and still has the partition.
        "live b @1 r3 t12",
        grouped=True,
    )
    assert verdict.redelivered == {"crash": 1, "rebalance": 2, "uncommitted": 1}
    assert (verdict.verdict, verdict.anomalies) == (Judgement.VALID, {})


@pytest.mark.parametrize(("elsewhere", "stands"), [("p1", Standing.VIOLATION), ("p0", Standing.PERMITTED)])
def test_no_election_excuses_what_another_partition_lost(elsewhere: str, stands: Standing, judged: Judge) -> None:
    saw = ("saw b1 @0..5 leader=1 epoch=0 isr=1,2,3 {}", "saw b2 @5 leader=2 epoch=1 isr=2,3 {}")
    lines = ("send a ok @0", "end 0..0", "end 0..0 p1", saw[0].format("p0"), *(one.format(elsewhere) for one in saw))
    assert judged(*lines, acks="1").anomalies["lost"].standing is stands


@pytest.mark.heavy
def test_a_file_that_is_damaged_inside_is_named(judged: Judge, spark: SparkSession, tmp_path: Path) -> None:
    judged(*STORY)
    [damaged] = (tmp_path / "history" / "reads").glob("*.parquet")
    whole = bytearray(damaged.read_bytes())
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    whole[4:footer] = bytes(footer - 4)
    damaged.write_bytes(whole)
    with pytest.raises(HistoryError, match=f"^{damaged}: damaged inside"):
        judge(tmp_path, spark)


def test_rows_that_spark_did_not_read_are_no_rows_that_are_not_there(
    judged: Judge, spark: SparkSession, tmp_path: Path
) -> None:
    judged(*CLEAN)
    rows = pa.Table.from_pylist(by_hand("send b ok @1", "final b @1").rows["reads"], TABLES["reads"])
    damaged = write_table(tmp_path, "reads", rows, "damaged")
    whole = bytearray(damaged.read_bytes())
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    whole[4:footer] = bytes(footer - 4)
    damaged.write_bytes(whole)
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    try:
        with pytest.raises(HistoryError, match=f"^{tmp_path}: Spark read 2 sends and reads, and their files have 3: "):
            judge(tmp_path, spark)
    finally:
        spark.conf.set("spark.sql.files.ignoreCorruptFiles", "false")


def test_a_run_is_judged_by_its_own_files_beside_one_whose_name_its_own_matches(
    spark: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path / "a1", [by_hand(*CLEAN)])
    write(tmp_path / "a[1]", [by_hand("send b ok @1", *CLEAN)])
    verdict = judge(tmp_path / "a[1]", spark)
    assert (verdict.verdict, list(verdict.anomalies)) == (Judgement.INVALID, ["lost"])


@pytest.mark.heavy
def test_of_several_runs_each_has_its_standing_and_the_anomaly_the_worst_of_all(judged: Judge) -> None:
    """b and c were on a leader alone; e was acknowledged when that was over, and nothing came after it."""
    knows = [f"saw {broker} @13..25 leader=2 epoch=1 isr=2" for broker in ("b1", "b2")]
    late = ("send e ok @3 t20..21", "send z ok @4 t21..22", "final z @4", *knows)
    before = [line for line in STORY if not line.startswith(("send e", "end"))]
    verdict = judged(*before, *late, "end 0..5", **UNCLEAN)
    lost = verdict.anomalies["lost"]
    assert {(run["first_offset"], run["standing"]) for run in lost.runs} == {
        (1, Standing.PERMITTED),
        (3, Standing.VIOLATION),
    }
    assert (lost.standing, lost.because[:30]) == (Standing.VIOLATION, "1 of them: Kafka promises: a c")


@pytest.mark.heavy
def test_a_fault_of_which_nobody_knows_neither_excuses_nor_accuses(judged: Judge) -> None:
    lines = [line for line in STORY if not line.startswith("fault")]
    perhaps = "fault elect-1 - 7..7 unclean unknown"
    expect = Expectation(verdict=Judgement.INVALID, anomalies=["lost", "vanished", "rewritten_offset"])
    verdict = judged(*lines, perhaps, expect=expect)
    assert (verdict.verdict, verdict.expected) == (Judgement.INVALID, False)
    assert verdict.anomalies["lost"].standing is Standing.UNDECIDED
    assert "undecided: 1 of them: nobody knows whether every fault acted; if it did, this is " in verdict.reasons[0]
    assert "unknown: faults took effect: no evidence: elect-1" in verdict.reasons


def anomaly(standing: Standing) -> FoundAnomaly:
    return FoundAnomaly(count=2, standing=standing, because="because", source="source")


def test_violations_come_before_what_is_permitted() -> None:
    counts = {"attempted": 9, "acknowledged": 8, "survivors": 6, "unacknowledged_present": 0}
    found = {"lost": anomaly(Standing.PERMITTED), "phantom": anomaly(Standing.VIOLATION)}
    met = [Precondition(name="timeline followed", met=False, detail="not met")]
    caused = findings(found, {}, Observed({}, [], [], {}))
    bare = made(Judgement.INVALID, summary=summary(counts, 2, 0), anomalies=found, findings=caused, preconditions=met)
    assert with_sentences(bare, run_file()).reasons == [
        "phantom: 2 records were read that nobody sent; violation: because",
        "lost: 2 of 8 acknowledged writes are not in the final log; permitted: because",
        "unknown: timeline followed: not met",
        "not as expected: expected valid, judged invalid",
    ]


def test_without_acknowledgements_the_reason_counts_attempted_writes_that_are_missing() -> None:
    counts = {"attempted": 9, "acknowledged": 0, "survivors": 6, "unacknowledged_present": 6}
    assert with_sentences(made(summary=summary(counts, 0, 0)), run_file()).reasons == [
        "no anomaly: nothing was acknowledged; 3 of 9 writes are not in the final log"
    ]


@pytest.mark.parametrize(
    ("example", "at"),
    [
        ({"acknowledged_ns": 3, "sent_ns": 2}, 3),
        ({"acknowledged_ns": None, "sent_ns": 2, "read_ns": 5}, 2),
        ({"acknowledged_ns": None, "sent_ns": None, "read_ns": 5}, 5),
        ({"acknowledged_ns": 0, "sent_ns": 2}, 0),
    ],
)
def test_the_moment_of_an_example(example: dict[str, int | None], at: int) -> None:
    assert moment(example) == at


@pytest.mark.parametrize(("at", "names"), [(0, []), (1, ["cut"]), (4, ["cut", "kill"]), (5, ["kill"]), (99, ["kill"])])
def test_active_names_the_effective_faults_at_a_time(at: int, names: list[str]) -> None:
    faults = [
        {"fault": "cut", "injecting_ns": 1, "healed_ns": 5, "effective": True},
        {"fault": "in vain", "injecting_ns": 0, "healed_ns": None, "effective": False},
        {"fault": "kill", "injecting_ns": 4, "healed_ns": None, "effective": True},
    ]
    assert active(faults, at) == names


@pytest.mark.parametrize("lines", [STORY, CLEAN, (*CLEAN, "live a @0 elsewhere")], ids=["lost", "clean", "misplaced"])
@pytest.mark.long
def test_a_history_of_before_keys_were_read_is_judged_as_it_was(
    lines: tuple[str, ...], spark: SparkSession, tmp_path: Path
) -> None:
    without = [by_hand(*lines)]
    write(tmp_path, without)
    reported = judge(tmp_path, spark).to_json()
    for n, row in enumerate(without[0].rows["sends"]):
        row["key"] = f"k{n}"
    write(tmp_path, without)
    without_keys(tmp_path)
    assert judge(tmp_path, spark).to_json() == reported


@pytest.mark.heavy
def test_a_record_under_another_key_is_a_violation_whoever_was_given_it(judged: Judge) -> None:
    verdict = judged("send a ok @0 k1", "live a @0 k2 t9", *CLEAN[1:])
    assert verdict.verdict is Judgement.INVALID
    assert verdict.reasons[0].startswith(
        "misplaced: 1 records are in another partition than they were sent to, or under another key; violation: "
    )
    [example] = verdict.anomalies["misplaced"].examples
    assert (example["sent_key"], example["key"], example["sent_partition"], example["partition"]) == ("k1", "k2", 0, 0)


def test_every_anomaly_that_has_a_promise_is_looked_for_and_no_other() -> None:
    promised = {anomaly for anomaly in BY_NAME.values() if anomaly.promise is not None}
    assert {checker.anomaly for checker in (*CHECKERS, *WITHOUT_FINAL_READ)} == promised
    assert len({checker.anomaly for checker in CHECKERS}) == len(CHECKERS)
    assert all(BY_NAME[anomaly.name] is anomaly for anomaly in BY_NAME.values())


def test_each_checker_of_an_excusable_anomaly_says_what_happened() -> None:
    """The settings alone excuse a cycle of reads; for readers that a group moved, the rows say what happened."""
    otherwise = {READ_CYCLE, SKIPPED, WENT_BACK}
    excused = {one for row in PERMISSIONS for one in row.anomalies if not one.judged_by_record} - otherwise
    looking = [checker for checker in (*CHECKERS, *WITHOUT_FINAL_READ) if checker.anomaly in excused]
    assert {checker.anomaly for checker in looking} == excused
    assert [checker.name for checker in looking if checker.happened is nothing] == []


def test_an_anomaly_is_a_row_and_a_checker(spark: SparkSession, tmp_path: Path) -> None:
    """As docs/adding.md says."""
    write(tmp_path, [by_hand(*CLEAN)])
    verdict = with_sentences(judge(tmp_path, spark, checkers=[CHECKER]), RunFile.read(tmp_path), {EVEN.name: EVEN})
    assert (verdict.verdict, verdict.anomalies["even"].standing) == (Judgement.INVALID, Standing.VIOLATION)
    headline = "even: 1 of 1 records have an even number; violation"
    assert verdict.reasons[0] == f"{headline}: Kafka promises: no promise at all"
    text = on_terminal(verdict)
    assert all(f"{said}\n" in text for said in (headline, "even 1  violation"))
    assert ", even; no election was seen after them\n" in text


@pytest.mark.heavy
def test_the_checkers_that_judge_decide_what_the_verdict_is(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, [by_hand(*CLEAN)])
    doubtful = replace(CHECKER, judged=Judgement.UNKNOWN)
    verdict = judge(tmp_path, spark, checkers=[doubtful])
    assert (verdict.verdict, verdict.anomalies.keys()) == (Judgement.UNKNOWN, {"even"})


@pytest.mark.parametrize(
    "known",
    ["send b ok @0 p1", "saw b1 @0 p1 leader=1 epoch=0 isr=1,2,3"],
    ids=["written to", "reported by a broker"],
)
def test_a_partition_that_nobody_read_to_its_end_is_never_valid(judged: Judge, known: str) -> None:
    verdict = judged(*CLEAN, known)
    assert verdict.verdict is Judgement.UNKNOWN
    assert "trial-1 not read at all" in [held.detail for held in verdict.preconditions if not held.met]


#: A run whose consumer read all, and whose fault was healed before the last acknowledgement. (b1 reports all the time.)
GOOD = (
    *("send a ok @0 t0..3", "send b ok @1 t5..6", "final a @0", "final b @1", "end 0..2", "fault cut b2 2..4"),
    *("place r1 assign t0", "live a @0 r1 t3", "live b @1 r1 t6"),
    *(f"saw b1 @{at} leader=1 epoch=0 isr=1,2,3" for at in (0, 2, 4)),
)
CUT = {"timeline": [{"inject": {"fault": "partition", "as": "cut"}}]}
CLIENTS = {"producer 0": {}, "consumer 101": {}, "final 100": {}}


def _without(*lines: str) -> tuple[str, ...]:
    assert set(lines) <= set(GOOD)
    return tuple(line for line in GOOD if line not in lines)


#: Runs without an anomaly that prove nothing: the history, more settings of run.json, and the reason.
VACUOUS = {
    "a consumer that read nothing": (
        _without("live a @0 r1 t3", "live b @1 r1 t6"),
        {"clients": {"producer 0": {}}},
        "consumers read to the end: consumer 101 got nothing of trial-0, before 2 records",
    ),
    "a consumer that was never assigned anything": (
        _without("place r1 assign t0", "live a @0 r1 t3", "live b @1 r1 t6"),
        {},
        "consumers read to the end: consumer 101 got nothing of trial-0, before 2 records",
    ),
    "a partition that no member of a group ever owned": (
        (
            *(*GOOD, "send c ok @0 p1 t0..6", "final c @0 p1", "end 0..1 p1"),
            *(f"saw b1 @{at} p1 leader=1 epoch=0 isr=1,2,3" for at in (0, 2, 4)),
        ),
        {"grouped": True},
        "consumers read to the end: no consumer was ever assigned any of trial-1, before 1 records",
    ),
    "a partition that acknowledged nothing after the heal": (
        (*GOOD, "send c ok @0 p1 t0..1", "final c @0 p1", "end 0..1 p1", "saw b1 @0 p1 leader=1 epoch=0 isr=1,2,3"),
        {},
        "partitions served: nothing acknowledged after 4.0 s, when the last fault was over: trial-1",
    ),
    "a fault of the timeline without a row": (
        _without("fault cut b2 2..4"),
        {},
        "faults recorded: no row of cut",
    ),
    "a time of writing in which no broker reported anything": (
        _without("saw b1 @2 leader=1 epoch=0 isr=1,2,3"),
        {},
        "cluster observed: no broker reported trial-0 from 3.0 s to 4.0 s, while it was written to",
    ),
    "a fault that nothing acknowledged depended on": (
        (*_without("fault cut b2 2..4"), "fault cut b2 4..5"),
        {},
        "records at risk: no write was acknowledged that any fault could take",
    ),
    "a replica that was read, and whose records are not there": (
        GOOD,
        {"clients": {**CLIENTS, "replica 1002": {}}},
        "history whole: reads of replica 1002 are not there",
    ),
}


@pytest.mark.parametrize("says", VACUOUS)
@pytest.mark.heavy
def test_a_run_that_proves_nothing_is_unknown(says: str, judged: Judge) -> None:
    lines, settings, reason = VACUOUS[says]
    verdict = judged(*lines, **{"scenario": CUT, "clients": CLIENTS, **settings})
    assert verdict.verdict is Judgement.UNKNOWN
    assert verdict.reasons[0] == f"unknown: {reason}"
    assert sum(not held.met for held in verdict.preconditions) == 1


def test_the_twin_of_the_runs_that_prove_nothing_is_valid(judged: Judge) -> None:
    verdict = judged(*GOOD, scenario=CUT, clients=CLIENTS)
    assert verdict.reasons == ["no anomaly: all 2 acknowledged writes are in the final log"]
    assert verdict.verdict is Judgement.VALID


def failing(name: str) -> tuple[Checker, ...]:
    """The checkers of a run, one of which fails whatever it is asked of."""

    def find(*_: object) -> DataFrame:
        raise ValueError("a defect of the finder")

    return tuple(replace(c, find=find) if c.name == name else c for c in CHECKERS)


def test_a_finder_that_fails_makes_its_own_answer_unknown_and_no_other(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, [by_hand("send a ok @0", "send b fail", "final b @1", "end 0..2")])
    verdict = judge(tmp_path, spark, checkers=failing("lost"))
    assert {name: found.count for name, found in verdict.anomalies.items()} == {"failed_but_present": 1}
    assert (verdict.summary.lost, verdict.summary.loss_rate) == (None, None)
    assert [held.detail for held in verdict.preconditions if held.name == "checkers answered"] == [
        "failed: lost (ValueError): see checkers.log"
    ]
    assert "a defect of the finder" in (tmp_path / CHECKERS_LOG).read_text()


def test_a_run_whose_only_finder_failed_is_unknown(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, [by_hand("send a ok @0", "end 0..1")])
    verdict = with_sentences(judge(tmp_path, spark, checkers=failing("lost")), RunFile.read(tmp_path))
    assert (verdict.verdict, verdict.expected) == (Judgement.UNKNOWN, False)
    assert "unknown: checkers answered: failed: lost (ValueError): see checkers.log" in verdict.reasons
    assert judge(tmp_path, spark).verdict is Judgement.INVALID
    assert not (tmp_path / CHECKERS_LOG).exists()


def test_a_finder_without_candidates_is_not_asked_and_cannot_fail(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, [by_hand(*CLEAN)])
    verdict = judge(tmp_path, spark, checkers=failing("lost"))
    assert verdict.verdict is Judgement.VALID


@pytest.mark.heavy
@pytest.mark.parametrize(("within", "stands"), [("", Standing.PERMITTED), ("x1", Standing.VIOLATION)])
def test_beside_transactions_what_is_in_none_was_acknowledged_by_its_leader_alone(
    within: str, stands: Standing, judged: Judge
) -> None:
    """b2, in sync, was elected; r is gone, and c has its offset."""
    lines = [f"send r ok @5 {within} t10..11", *WHOLE, *LOG_OF_B2, "txn 1 commit ok 9..12..13"]
    verdict = judged(*lines, acks="1", idempotence=False)
    assert [verdict.anomalies[name].standing for name in ("lost", "rewritten_offset")] == [stands, stands]


def rows_in(directory: Path, *rows: dict[str, Any]) -> StoredRows:
    """Rows of an anomaly, each in a file of its own."""
    directory.mkdir()
    files = [directory / f"{n}.parquet" for n in range(len(rows))]
    for file, row in zip(files, rows, strict=True):
        pq.write_table(pa.Table.from_pylist([row]), file)
    return StoredRows(tuple(files))


COPIES = {"topic": "trial", "partition": 0, "record_id": 7, "offset": 5, "copies": 2, "in_log": 1}
COPIES |= {"epochs": [0, 1], "stands_epoch": 1}


@pytest.mark.parametrize(
    ("gone", "excused"),
    [
        ([(0, 7, 5)], True),
        ([(0, 7, 5), (1, 8, 3)], True),
        ([(1, 7, 5)], False),
        ([(0, 8, 5)], False),
        ([], False),
    ],
    ids=["it", "another, too", "another partition's", "another record", "nothing"],
)
def test_copies_that_are_gone_are_excused_where_each_of_them_vanished(
    gone: list[tuple[int, int, int]], excused: bool, tmp_path: Path
) -> None:
    """Record 7 was read at two offsets; the final log has it at one."""
    vanished = [{"topic": "trial", "partition": p, "record_id": record, "offset": at} for p, record, at in gone]
    duplicated = rows_in(tmp_path / "duplicated", COPIES)
    assert copies_vanished(duplicated, rows_in(tmp_path / "vanished", *vanished)) is excused


@pytest.mark.parametrize(
    ("but", "excused"),
    [([], False), ([8], True), ([7], False), ([7, 8], False)],
    ids=["none", "the other", "it", "both"],
)
def test_a_copy_that_something_else_excuses_need_not_have_vanished(
    but: list[int], excused: bool, tmp_path: Path
) -> None:
    """Both copies of record 8 are of one term, and stand."""
    other = COPIES | {"record_id": 8, "offset": 6, "in_log": 2, "epochs": [1, 1]}
    duplicated = rows_in(tmp_path / "duplicated", COPIES, other)
    vanished = rows_in(tmp_path / "vanished", {"topic": "trial", "partition": 0, "record_id": 7, "offset": 5})
    assert copies_vanished(duplicated, vanished, pa.array(but, pa.int64())) is excused


@pytest.mark.parametrize(
    ("copies", "in_log", "excused"), [(2, 1, True), (3, 1, False), (2, 0, False), (3, 2, False), (2, None, False)]
)
def test_of_each_record_all_copies_but_one_vanished(
    copies: int, in_log: int | None, excused: bool, tmp_path: Path
) -> None:
    """One offset was acknowledged twice: two producers sent its record."""
    one = {name: COPIES[name] for name in ("topic", "partition", "record_id", "offset")}
    duplicated = rows_in(tmp_path / "duplicated", COPIES | {"copies": copies, "in_log": in_log})
    assert copies_vanished(duplicated, rows_in(tmp_path / "vanished", one, one)) is excused


@pytest.mark.parametrize(
    ("epochs", "stands", "excused"),
    [
        ([0, 1], 1, True),
        ([0, 0], 0, False),
        ([0, 1], 0, None),
        ([0, 2, 5], 5, True),
        ([0, 0, 1], 1, False),
        ([-1, 1], 1, None),
        ([-1, -1], -1, None),
        ([-1, 0, 0], 0, False),
        ([0, 1], None, True),
        ([0, 0], None, False),
    ],
    ids=[
        *("a later one", "the same", "the one that is gone is later", "of two terms", "two of one term are gone"),
        *("one is not known", "none is known", "two of one term, and one is not known", "all are gone"),
        "all are gone, of one term",
    ],
)
def test_copies_that_are_gone_are_excused_where_each_was_of_another_epoch_and_the_last_stands(
    epochs: list[int], stands: int | None, excused: bool | None, tmp_path: Path
) -> None:
    duplicated = rows_in(tmp_path / "duplicated", COPIES | {"epochs": epochs, "stands_epoch": stands})
    one = {name: COPIES[name] for name in ("topic", "partition", "record_id", "offset")}
    assert copies_vanished(duplicated, rows_in(tmp_path / "vanished", one)) is excused


#: b1, alone in the ISR, was killed; r, delivered at offset 5 at 12 s, was taken by the election of b2 at 26 s.
TAKEN = [*LONELY, "send a ok @4 t1..2", "final a @4 e0", "live r @5 e0 t12"]


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("lines", "stands"),
    [
        (["send r info t10..", "final b @5 e1", "final r @6 e1"], Standing.PERMITTED),
        (["send r ok @6 t10..27", "final b @5 e1", "final r @6 e1"], Standing.UNDECIDED),
        long_case(["send r ok @5 t10..27", "final r @5 e1", "final b @6 e1"], None),
        (["send r ok @5 t10..11", "send b ok @5 t50..51", "final b @5 e1", "final r @6 e1"], Standing.VIOLATION),
        long_case(["send r ok @5 t10..11", "final b @5 e1", "final r @6 e1"], Standing.VIOLATION),
        long_case(["send r ok @7 t10..27", "live r @6 e0 t12", "final b @5 e1", "final r @7 e1"], Standing.VIOLATION),
        long_case(["send r ok @5 t10..11", "live r @6 e0 t12", "final r @5 e0", "final b @6 e1"], Standing.VIOLATION),
    ],
    ids=[
        *("sent again", "and acknowledged by either", "at the same offset", "behind what was sent later"),
        "under an epoch of later",
        *("two of one term", "one of two of one term"),
    ],
)
def test_only_the_copy_of_a_lost_record_that_was_sent_again_is_excused(
    lines: list[str], stands: Standing | None, judged: Judge
) -> None:
    verdict = judged(*lines, *TAKEN, "send late ok @8 t52..53", "final late @8 e1", "end 4..9", **UNCLEAN)
    found = verdict.anomalies.get("duplicated")
    assert (None if found is None else found.standing) is stands
