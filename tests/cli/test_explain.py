"""``kafka-trial explain``: what is told of a record, and how it is asked for."""

import json
from pathlib import Path

import pytest

from harness.cli import codes
from tests.cli.test_commands import assert_one_line
from tests.command import Invoke
from tests.report.verdicts import lost, verdict


def test_explain_tells_the_life_of_a_record(stored: Path, kafka_trial: Invoke) -> None:
    done = kafka_trial("explain", stored, "--record", 1)
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        "record 1: worker 0 #1\n"
        "     1.000 s  sent by worker 0 (incarnation 0) to trial-0\n"
        "              b1: b1 leads (epoch 0), ISR b1 b2 b3\n"
        "              b2: b2 leads (epoch 1), ISR b2 b3\n"
        "              faults active: none\n"
        "     2.000 s  acknowledged at offset 1\n"
        "      ended:  not in the final log of trial-0 (from 0, ends before 2, read whole);"
        " nothing of ours stands at offset 1\n"
        "    anomaly:  not judged yet: `kafka-trial check` does that\n"
    )


@pytest.mark.parametrize("asked", [("--offset", "trial-0:1"), ("--worker", "0", "--sequence", "1"), ("--record", "1")])
def test_explain_finds_a_record_by_each_of_its_names(asked: tuple[str, ...], stored: Path, kafka_trial: Invoke) -> None:
    told = json.loads(kafka_trial("explain", stored, *asked, "--json").out)
    assert told["run"] == "by-hand/1"
    assert [record["record_id"] for record in told["records"]] == [1]
    assert [moment["event"] for moment in told["records"][0]["moments"]] == ["sent", "acknowledged"]


def test_explain_without_a_record_tells_the_causes(stored: Path, kafka_trial: Invoke) -> None:
    found = lost().model_copy(update={"runs": [{"text": "trial-0: because"}]})
    (stored / "verdict.json").write_text(verdict(anomalies={"lost": found, "phantom": lost()}).to_json())
    assert kafka_trial("explain", stored).out.splitlines() == [
        "lost",
        "  trial-0: because",
        "phantom",
        "  its records are in no runs: see the examples in verdict.json",
    ]
    told = json.loads(kafka_trial("explain", stored, "--json").out)
    assert told == {"run": "by-hand/1", "runs": {"lost": ["trial-0: because"], "phantom": []}}


def test_explain_says_where_there_is_nothing_to_explain(stored: Path, kafka_trial: Invoke) -> None:
    (stored / "verdict.json").write_text(verdict().to_json())
    assert kafka_trial("explain", stored).out.startswith("no anomaly")


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ((), "not judged yet"),
        (("--record", "99"), "nothing is known of record 99 (worker 0 #99); worker 0 sent #0–#1"),
        (("--offset", "trial-0:9"), "offsets 0–1 are known there"),
        (("--offset", "trial"), "'trial' is not TOPIC-PARTITION:OFFSET"),
        (("--worker", "0"), "--worker and --sequence name a record together"),
        (("--record", "1", "--offset", "trial-0:1"), "not several"),
    ],
)
def test_explain_tells_in_one_line_what_is_wrong(
    asked: tuple[str, ...], says: str, stored: Path, kafka_trial: Invoke
) -> None:
    assert_one_line(kafka_trial("explain", stored, *asked), codes.BAD_INPUT, says)
