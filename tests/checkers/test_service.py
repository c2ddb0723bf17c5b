"""The scenario's own limits: broken, kept, and not set."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from checkers.evaluate import judge
from checkers.service import SAID, overrun
from harness.core.guarantees import SERVICE
from harness.core.run_file import Limits
from harness.core.verdict import Expectation, Judgement, Standing
from tests.checkers.notation import SECOND, tell, write


def service(lasted_s: float | None, took_s: float | None) -> dict:
    stretch = None if lasted_s is None else {"from_ns": 0, "lasted_ns": int(lasted_s * SECOND), "ended": True}
    took = None if took_s is None else int(took_s * SECOND)
    return {
        "partitions": [{"topic": "trial", "partition": 0, "longest_unavailable": stretch}],
        "after_faults": [{"fault": "cut", "first_ack_after_heal_ns": took}],
    }


def broken(limits: dict, lasted_s: float | None, took_s: float | None, healed: int | None = 5) -> set[str]:
    faults = [{"fault": "cut", "healed_ns": None if healed is None else healed * SECOND}]
    return set(overrun(Limits.model_validate(limits), service(lasted_s, took_s), faults, last_ns=30 * SECOND))


@pytest.mark.parametrize(
    ("limits", "lasted", "took", "healed", "found"),
    [
        ({}, 999, 999, 5, set()),
        ({"unavailable": "30s"}, 30, 999, 5, set()),
        ({"unavailable": "30s"}, 30.1, None, None, {"unavailability"}),
        ({"unavailable": "30s"}, None, None, None, set()),
        ({"recovery": "20s"}, 999, 20, 5, set()),
        ({"recovery": "20s"}, 0, 20.1, 5, {"slow_recovery"}),
        ({"recovery": "20s"}, 0, None, 5, {"slow_recovery"}),
        ({"recovery": "20s"}, 0, None, 15, set()),
        ({"recovery": "20s"}, 0, None, None, set()),
        ({"unavailable": "1s", "recovery": "1s"}, 2, 2, 5, {"unavailability", "slow_recovery"}),
    ],
)
def test_which_limits_are_broken(
    limits: dict, lasted: float | None, took: float | None, healed: int | None, found: set[str]
) -> None:
    assert broken(limits, lasted, took, healed) == found


def test_each_limit_has_words_and_may_be_expected() -> None:
    assert SAID.keys() == SERVICE


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
