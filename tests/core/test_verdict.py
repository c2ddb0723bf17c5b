"""How verdicts merge, what is expected of one, and the text of verdict.json."""

import json

import pytest

from harness.core.verdict import (
    PRECONDITIONS,
    SCHEMA,
    Expectation,
    FoundAnomaly,
    Judgement,
    Precondition,
    Standing,
    Summary,
    Verdict,
    worst,
)

VALID, UNKNOWN, INVALID = Judgement.VALID, Judgement.UNKNOWN, Judgement.INVALID


def anomaly(standing: Standing = Standing.PERMITTED) -> FoundAnomaly:
    return FoundAnomaly(count=1, standing=standing, because="…", source="…")


@pytest.mark.parametrize(
    ("judgements", "merged"),
    [
        ([], VALID),
        ([VALID, VALID], VALID),
        ([VALID, UNKNOWN], UNKNOWN),
        ([UNKNOWN, INVALID, VALID], INVALID),
        ([INVALID, UNKNOWN], INVALID),
    ],
)
def test_the_worst_judgement_counts(judgements: list[Judgement], merged: Judgement) -> None:
    assert worst(judgements) is merged


@pytest.mark.parametrize(
    ("expectation", "verdict", "found"),
    [
        (Expectation(), VALID, {}),
        (Expectation(verdict=[VALID, UNKNOWN]), UNKNOWN, {}),
        (Expectation(verdict=INVALID, anomalies=["lost"]), INVALID, {"lost": anomaly()}),
        (
            Expectation(verdict=INVALID, anomalies=["lost"], allowed=["vanished"]),
            INVALID,
            dict.fromkeys(("lost", "vanished"), anomaly()),
        ),
        (Expectation(verdict=[VALID, INVALID], anomalies=["lost"]), VALID, {}),
        (Expectation(verdict=INVALID, anomalies=["lost"], standing=Standing.PERMITTED), INVALID, {"lost": anomaly()}),
        (
            Expectation(verdict=INVALID, anomalies=["lost"], standing=Standing.VIOLATION),
            INVALID,
            {"lost": anomaly(Standing.VIOLATION)},
        ),
        (
            Expectation(verdict=INVALID, anomalies=["unavailability"]),
            INVALID,
            {"unavailability": anomaly(Standing.VIOLATION)},
        ),
    ],
)
def test_an_expectation_that_is_met(expectation: Expectation, verdict: Judgement, found: dict) -> None:
    assert expectation.unmet(verdict, found) is None


@pytest.mark.parametrize(
    ("expectation", "verdict", "found", "why"),
    [
        (Expectation(), UNKNOWN, {}, "expected valid, judged unknown"),
        (Expectation(verdict=[VALID, UNKNOWN]), INVALID, {}, "expected valid or unknown, judged invalid"),
        (
            Expectation(verdict=INVALID, anomalies=["lost"]),
            INVALID,
            {"phantom": anomaly()},
            "expected lost, found none",
        ),
        (
            Expectation(verdict=INVALID, anomalies=["lost"]),
            INVALID,
            dict.fromkeys(("lost", "phantom"), anomaly()),
            "found phantom, not expected",
        ),
        (
            Expectation(verdict=INVALID, anomalies=["lost"], standing=Standing.PERMITTED),
            INVALID,
            {"lost": anomaly(Standing.VIOLATION)},
            "expected standing permitted, not so for lost",
        ),
        (
            Expectation(verdict=INVALID, anomalies=["lost"], standing=Standing.PERMITTED),
            INVALID,
            {"lost": anomaly(Standing.UNDECIDED)},
            "expected standing permitted, not so for lost",
        ),
        (
            Expectation(verdict=INVALID, anomalies=["lost"], allowed=["vanished"]),
            INVALID,
            {"lost": anomaly(), "vanished": anomaly(Standing.VIOLATION)},
            "vanished is a violation; where that is expected, say standing: violation",
        ),
    ],
)
def test_one_that_is_not_says_why(expectation: Expectation, verdict: Judgement, found: dict, why: str) -> None:
    assert expectation.unmet(verdict, found) == why


@pytest.mark.parametrize(
    ("expectation", "verdict"),
    [
        (Expectation(verdict=INVALID, anomalies=["lost"]), INVALID),
        (Expectation(verdict=INVALID, anomalies=["lost"], not_met=["log retained"]), INVALID),
        (Expectation(verdict=[VALID, UNKNOWN]), UNKNOWN),
    ],
)
def test_a_precondition_that_is_not_met_is_expected_only_if_not_met_names_it(
    expectation: Expectation, verdict: Judgement
) -> None:
    found = dict.fromkeys(expectation.anomalies, anomaly())
    held = Precondition(name="log retained", met=True, detail="…")
    doubt = Precondition(name="timeline followed", met=False, detail="…")
    why = "not met: timeline followed; where that is expected, name it in expect.not_met"
    assert expectation.unmet(verdict, found, [held, doubt]) == why
    named = expectation.model_copy(update={"not_met": ["timeline followed"]})
    assert named.unmet(verdict, found, [held, doubt]) is None


def test_verdict_json_names_its_schema() -> None:
    summary = Summary(
        attempted=0,
        acknowledged=0,
        survivors=0,
        lost=0,
        unacknowledged_present=0,
        duplicated=0,
        ack_rate=None,
        loss_rate=None,
        unacknowledged_present_rate=None,
    )
    verdict = Verdict(
        run="s/1",
        scenario="s",
        verdict=VALID,
        expected=True,
        reasons=["…"],
        summary=summary,
        anomalies={},
        preconditions=[],
        availability={},
        faults=[],
        versions={},
    )
    reported = json.loads(verdict.to_json())
    assert (reported["schema"], reported["verdict"]) == (SCHEMA, "valid")
    assert "\n" not in verdict.to_json()
    assert Verdict.model_validate_json(verdict.to_json(indent=2)) == verdict


def test_the_old_name_of_a_precondition_is_read_as_its_new_name() -> None:
    assert Precondition.model_validate({"name": "faults bit", "met": True, "detail": ""}).name == "faults took effect"
    expect = Expectation.model_validate({"verdict": "unknown", "not_met": ["faults bit", "faults healed"]})
    assert expect.not_met == ["faults took effect", "faults healed"]
    assert set(expect.not_met) <= set(PRECONDITIONS)
