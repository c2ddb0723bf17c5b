"""``kafka-trial explain``: what it prints about a record, and which options ask for one."""

import json
import shutil
from pathlib import Path

import pytest

from harness.cli import codes
from harness.core.verdict import Finding, Standing
from harness.history.seal import SEAL_FILE
from tests.checkers.notation import SECOND, by_hand, write
from tests.checkers.test_holders import LOST_ALONE
from tests.cli.conftest import judging
from tests.cli.test_commands import assert_one_line
from tests.command import Invoke
from tests.report.verdicts import lost, verdict


def test_explain_tells_the_life_of_a_record(stored: Path, kafka_trial: Invoke) -> None:
    done = kafka_trial("explain", stored, "--record", 1)
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        "worker 0 #1\n"
        "     1.000 s  sent by worker 0 (incarnation 0) to trial-0\n"
        "              b1: b1 leads (epoch 0), ISR b1 b2 b3\n"
        "              b2: b2 leads (epoch 1), ISR b2 b3\n"
        "              faults active: none\n"
        "     2.000 s  acknowledged at offset 1\n"
        "      ended:  not in the final log of trial-0 (from 0, ends before 2, read completely);"
        " offset 1 has no record of ours\n"
        f"    anomaly:  not judged yet: `kafka-trial check {stored}` does that\n"
    )


def test_explain_quotes_its_suggested_command_for_a_shell(stored: Path, tmp_path: Path, kafka_trial: Invoke) -> None:
    moved = stored.rename(tmp_path / "my run")
    assert f"`kafka-trial check '{moved}'` does that" in kafka_trial("explain", moved, "--record", 1).out


@pytest.mark.parametrize(
    "asked",
    [
        *(("--offset", "trial-0:1"), ("--worker", "0", "--sequence", "1"), ("--record", "1")),
        *(("--record", "worker 0 #1"), ("--record", "0#1")),
    ],
)
def test_explain_finds_a_record_by_each_of_its_names(asked: tuple[str, ...], stored: Path, kafka_trial: Invoke) -> None:
    reported = json.loads(kafka_trial("explain", stored, *asked, "--json").out)
    assert reported["run"] == "by-hand/1"
    assert [record["record_id"] for record in reported["records"]] == [1]
    assert [moment["event"] for moment in reported["records"][0]["moments"]] == ["sent", "acknowledged"]


def test_explain_without_a_record_tells_the_causes(stored: Path, kafka_trial: Invoke) -> None:
    found = lost().model_copy(update={"runs": [{"text": "trial-0: because"}]})
    (stored / "verdict.json").write_text(verdict(anomalies={"lost": found, "phantom": lost()}).to_json())
    assert kafka_trial("explain", stored).out.splitlines() == [
        "lost",
        "  trial-0: because",
        "phantom",
        "  its records are in no runs: see the examples in verdict.json",
    ]
    reported = json.loads(kafka_trial("explain", stored, "--json").out)
    assert reported == {"run": "by-hand/1", "runs": {"lost": ["trial-0: because"], "phantom": []}, "findings": []}


def test_explain_tells_a_cause_once_whatever_anomalies_came_of_it(stored: Path, kafka_trial: Invoke) -> None:
    run = {"text": "trial-0: b1 was elected", "topic": "trial", "partition": 0, "first_offset": 0, "last_offset": 9}
    both = {"lost": 520, "vanished": 1}
    one = Finding(
        standing=Standing.PERMITTED,
        because="b",
        source="s",
        anomalies=both,
        text="b1 was elected",
        runs=[{**run, "standing": "permitted", "anomalies": both}],
    )
    several = one.model_copy(update={"anomalies": {"lost": 9}, "runs": one.runs * 2, "more_runs": 3})
    anomalies = {
        name: lost().model_copy(
            update={"runs": [run], "examples": [{**run, "record_id": 1, "offset": 1, "acknowledged_ns": None}]}
        )
        for name in both
    }
    judged = verdict(anomalies=anomalies, findings=[one, several])
    (stored / "verdict.json").write_text(judged.to_json())
    assert kafka_trial("explain", stored).out.splitlines() == [
        "lost 520, vanished 1 (permitted)",
        "  trial-0: b1 was elected",
        "lost 9 (permitted)",
        "  b1 was elected",
        "  trial-0: b1 was elected",
        "  trial-0: b1 was elected",
        "  … and 3 more ranges of records",
    ]
    reported = json.loads(kafka_trial("explain", stored, "--json").out)
    assert reported["findings"][0] == {"anomalies": both, "standing": "permitted", "text": "b1 was elected"}
    text = kafka_trial("explain", stored, "--record", 1).out
    assert "    anomaly:  lost, vanished (permitted)\n              trial-0: b1 was elected\n" in text
    assert text.count("b1 was elected") == 1


def test_nothing_that_a_run_says_is_obeyed_by_a_terminal(tmp_path: Path, kafka_trial: Invoke) -> None:
    evil, cut = "cut\x1b]0;title\x07\x1b[8m", "fault cut\x1b]0;title\x07\x1b[8m b1 0..1"
    run = tmp_path / "run"
    write(run, [by_hand("send a ok @0", "final a @0", "end 0..1", cut, "saw b1 @0 leader=1 isr=1,2,3")])
    found = lost().model_copy(update={"because": evil, "runs": [], "examples": [{"faults": [evil]}]})
    judged = verdict(anomalies={"lost": found}, reasons=[evil])
    reported = found.model_copy(update={"runs": [{"text": evil}]})
    (run / "verdict.json").write_text(verdict(anomalies={"lost": reported}).to_json())
    for asked in (["explain", run], ["explain", run, "--offset", "trial-0:0"], ["check", run]):
        done = kafka_trial(*asked, backends=judging(judged))
        assert done.code == 0, done.err
        assert "cut\\x1b]0;title\\x07" in done.out
        assert not {"\x1b", "\x07"} & set(done.out)


def test_explain_says_where_there_is_nothing_to_explain(stored: Path, kafka_trial: Invoke) -> None:
    (stored / "verdict.json").write_text(verdict().to_json())
    assert kafka_trial("explain", stored).out.startswith("no anomaly")


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ((), "not judged yet"),
        (("--record", "99"), "nothing is known about worker 0 #99; worker 0 sent #0–#1"),
        (("--offset", "trial-0:9"), "offsets 0–1 are known there"),
        (("--offset", "trial"), "'trial' is not TOPIC-PARTITION:OFFSET"),
        (("--worker", "0"), "--worker and --sequence name a record together"),
        (("--record", "1", "--offset", "trial-0:1"), "not several"),
        (("--record", str(10**26 - 1)), f"'--record': {10**26 - 1} is too large: it must be below 2^63"),
        (("--record", "-1"), "'-1' is not a number from 0"),
        (("--worker", "0", "--sequence", str(1 << 40)), f"'--sequence': {1 << 40} is too large: it must be below 2^40"),
        (("--worker", str(1 << 23), "--sequence", "0"), f"'--worker': {1 << 23} is too large: it must be below 2^23"),
        (("--offset", f"trial-0:{10**23 - 1}"), f"'--offset': {10**23 - 1} is too large: it must be below 2^63"),
        (("--offset", f"trial-{1 << 31}:0"), f"'--offset': {1 << 31} is too large: it must be below 2^31"),
        (("--offset", f"trial-0:{'9' * 5000}"), "is too large"),
        (("--record", str((1 << 63) - 1)), "nothing is known about worker"),
        (("--worker", str((1 << 23) - 1), "--sequence", str((1 << 40) - 1)), "nothing is known about worker"),
        (("--offset", f"trial-{(1 << 31) - 1}:{(1 << 63) - 1}"), "nothing was acknowledged or read at"),
    ],
)
def test_explain_reports_an_error_in_one_line(
    asked: tuple[str, ...], says: str, stored: Path, kafka_trial: Invoke
) -> None:
    assert_one_line(kafka_trial("explain", stored, *asked), codes.BAD_INPUT, says)


def test_explain_refuses_a_run_with_a_missing_table(stored: Path, kafka_trial: Invoke) -> None:
    (stored / SEAL_FILE).unlink()
    shutil.rmtree(stored / "history" / "reads")
    assert_one_line(kafka_trial("explain", stored, "--record", 1), codes.BAD_INPUT, "history/reads: no Parquet here")


def test_explain_names_the_runs_of_a_store(stored: Path, kafka_trial: Invoke) -> None:
    store = stored.parents[1]
    said = f"{store}: not a run itself: name one of those below, {stored}\n"
    assert_one_line(kafka_trial("explain", store), codes.BAD_INPUT, said)
    for number in range(2, 8):
        shutil.copytree(stored, stored.parent / str(number))
    assert_one_line(kafka_trial("explain", store), codes.BAD_INPUT, f"{stored.parent / '5'} and 2 more\n")
    assert_one_line(kafka_trial("explain", stored / "history"), codes.BAD_INPUT, "name the directory of a run")


def test_explain_names_the_brokers_that_had_a_lost_record(tmp_path: Path, kafka_trial: Invoke) -> None:
    run = tmp_path / "run"
    write(run, [by_hand(*LOST_ALONE)], unclean_election=True)
    example = {"topic": "trial", "partition": 0, "offset": 5, "record_id": 0}
    times = {"sent_ns": 10 * SECOND, "acknowledged_ns": 11 * SECOND}
    found = lost().model_copy(update={"runs": [], "examples": [example | times]})
    (run / "verdict.json").write_text(verdict(anomalies={"lost": found}).to_json())
    assert (
        "    holders:  b1 (epoch 0) appended it\n"
        "                  11.000 s  b1 (epoch 0) led, and must have had it\n"
        "                  11.000 s  b2 and b3 need not have had it\n"
        "                  26.000 s  b2 (epoch 1) was elected, and need not have had it: this took it\n"
        "                  40.000 s  b1 may no longer have had it: up while b2 (epoch 1) led, which lacked it\n"
        "    anomaly:  lost (permitted)\n"
    ) in kafka_trial("explain", run, "--record", 0).out
    assert "holders:" not in kafka_trial("explain", run, "--record", 1).out
    [record] = json.loads(kafka_trial("explain", run, "--record", 0, "--json").out)["records"]
    assert record["holders"][0]["changes"][2] == {
        "at_ns": 26 * SECOND,
        "event": "took",
        "brokers": ["b2"],
        "has": "need not",
        "leader": "b2",
        "leader_epoch": 1,
        "fault": None,
    }


def test_of_many_moments_the_first_and_the_last_are_shown(tmp_path: Path, kafka_trial: Invoke) -> None:
    run = tmp_path / "run"
    seen = [f"saw b3 @{2 * n} leader={1 + n % 2} epoch={n} isr=1,2,3" for n in range(90)]
    write(run, [by_hand("send r ok @5 t0..1", *seen, "end 0..5")], unclean_election=True)
    example = {"topic": "trial", "partition": 0, "offset": 5, "record_id": 0}
    found = lost().model_copy(update={"runs": [], "examples": [example | {"sent_ns": 0, "acknowledged_ns": SECOND}]})
    (run / "verdict.json").write_text(verdict(anomalies={"lost": found}).to_json())
    lines = kafka_trial("explain", run, "--record", 0).out.splitlines()
    left = [line.strip() for line in lines if line.strip().startswith("… and")]
    assert left == ["… and 52 more", "… and 51 more", "… and 50 more"]
    assert sum("was elected" in line for line in lines) <= 3 * 40
