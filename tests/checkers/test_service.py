"""The scenario's own limits: broken, kept, and not set."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from checkers.judge import judge
from checkers.limits import overrun
from harness.core.anomalies import BY_NAME
from harness.core.verdict import Expectation, Judgement, Standing
from harness.history.run_file import Limits
from tests.checkers.notation import SECOND, tell, write


def lasting(seconds: float | None) -> dict | None:
    return None if seconds is None else {"from_ns": 0, "lasted_ns": int(seconds * SECOND), "ended": True}


def broken(limits: dict, lasted: float | None, after_heal: float | None) -> set[str]:
    part = {
        "topic": "trial",
        "partition": 0,
        "longest_unavailable": lasting(lasted),
        "after_faults": [{"fault": "cut", "awaited_after_heal": lasting(after_heal)}],
    }
    return set(overrun(Limits.model_validate(limits), {"partitions": [part]}))


@pytest.mark.parametrize(
    ("limits", "lasted", "after_heal", "found"),
    [
        ({}, 999, 999, set()),
        ({"unavailable": "30s"}, 30, 999, set()),
        ({"unavailable": "30s"}, 30.1, None, {"unavailability"}),
        ({"unavailable": "30s"}, None, None, set()),
        ({"recovery": "20s"}, 999, 20, set()),
        ({"recovery": "20s"}, 0, 20.1, {"slow_recovery"}),
        ({"recovery": "20s"}, 0, None, set()),
        ({"unavailable": "1s", "recovery": "1s"}, 2, 2, {"unavailability", "slow_recovery"}),
    ],
)
def test_which_limits_are_broken(limits: dict, lasted: float | None, after_heal: float | None, found: set[str]) -> None:
    assert broken(limits, lasted, after_heal) == found


def test_what_breaks_no_promise_is_a_limit() -> None:
    assert {name for name, anomaly in BY_NAME.items() if anomaly.promise is None} == broken(
        {"unavailable": "1s", "recovery": "1s"}, 2, 2
    )


def test_a_broken_limit_makes_a_run_invalid(spark: SparkSession, tmp_path: Path) -> None:
    lines = ("send a ok @0 t1..2", "send b ok @1 t3..9", "final a @0", "final b @1", "end 0..2")
    saw = "saw b1 @1 leader=1 epoch=0 isr=1,2,3"
    expect = Expectation(verdict=Judgement.INVALID, anomalies=["unavailability"])
    write(tmp_path, [tell(*lines, saw)], limits=Limits(unavailable=5), expect=expect)
    verdict = judge(tmp_path, spark)
    assert (verdict.verdict, verdict.expected) == (Judgement.INVALID, True)
    assert verdict.anomalies["unavailability"].standing is Standing.VIOLATION
    assert verdict.anomalies["unavailability"].examples[0]["lasted_ns"] == 6 * SECOND
    assert verdict.reasons == [
        "unavailability: 1 partitions acknowledged nothing for longer than the scenario allows; "
        "violation: the scenario allows 5 s"
    ]


def test_one_partition_that_is_slow_after_a_heal_makes_a_run_invalid(spark: SparkSession, tmp_path: Path) -> None:
    quick = [f"send a{n} ok @{n} t{n}..{n + 1}" for n in range(9)]
    slow = ["send b ok @0 p1 t1..2", "send c ok @1 p1 t5..9"]
    finals = [*(f"final a{n} @{n}" for n in range(9)), "final b @0 p1", "final c @1 p1"]
    saw = [f"saw b1 @1 p{p} leader=1 epoch=0 isr=1,2,3" for p in (0, 1)]
    told = tell(*quick, *slow, *finals, "fault cut b1 2..4", "end 0..9", "end 0..2 p1", *saw)
    write(tmp_path, [told], limits=Limits(recovery=3))
    slowed = judge(tmp_path, spark).anomalies["slow_recovery"]
    assert (slowed.count, slowed.standing) == (1, Standing.VIOLATION)
    assert slowed.examples == [
        {
            "fault": "cut",
            "topic": "trial",
            "partition": 1,
            "from_ns": 5 * SECOND,
            "to_ns": 9 * SECOND,
            "lasted_ns": 4 * SECOND,
            "ended": True,
        }
    ]
