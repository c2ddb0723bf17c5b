"""The scenario's own limits: broken, kept, and not set."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from checkers.availability import availability
from checkers.history import History
from checkers.judge import judge
from checkers.limits import overrun, undecided
from harness.core.anomalies import BY_NAME
from harness.core.guarantees import Configuration
from harness.core.verdict import Expectation, Judgement, Standing
from harness.history.run_file import Limits, Requirements, RunFile
from harness.report.sentences import with_sentences
from tests.checkers.notation import SECOND, by_hand, write

HEALED = {"injecting_ns": 0, "healed_ns": SECOND, "effective": True}
STAYS = {"injecting_ns": 9 * SECOND, "healed_ns": None, "effective": True}


def lasting(seconds: float | None) -> dict | None:
    return None if seconds is None else {"from_ns": 0, "lasted_ns": int(seconds * SECOND), "ended": True}


def broken(limits: dict, lasted: float | None, after_heal: float | None) -> set[str]:
    part = {
        "topic": "trial",
        "partition": 0,
        "longest_unavailable": lasting(lasted),
        "after_faults": [{"fault": "cut", "awaited_after_heal": lasting(after_heal)}],
    }
    return set(overrun(Limits.model_validate(limits), {"partitions": [part]}, [HEALED]))


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
def test_broken_names_the_limits_that_were_exceeded(
    limits: dict, lasted: float | None, after_heal: float | None, found: set[str]
) -> None:
    assert broken(limits, lasted, after_heal) == found


def test_anomalies_without_a_promise_are_the_limits() -> None:
    assert {name for name, anomaly in BY_NAME.items() if anomaly.promise is None} == broken(
        {"unavailable": "1s", "recovery": "1s"}, 2, 2
    )


@pytest.mark.parametrize(
    ("limits", "lasted", "at_most", "doubts"),
    [
        ({}, 9, 99, None),
        ({"unavailable": "10s"}, 9, 10, []),
        ({"unavailable": "10s"}, 9, 10.5, ["trial-0 acknowledged nothing for up to 10.5 s"]),
        ({"unavailable": "10s"}, None, 10.5, ["trial-0 acknowledged nothing for up to 10.5 s"]),
        # Broken for certain.
        ({"unavailable": "10s"}, 10.1, 10.5, []),
        ({"recovery": "10s"}, 9, 10, []),
        ({"recovery": "10s"}, 9, 10.5, ["trial-0 acknowledged nothing for up to 10.5 s after the heal of cut"]),
        ({"recovery": "10s"}, 10.1, 10.5, []),
    ],
)
def test_a_limit_between_what_lasted_for_certain_and_at_most_is_not_decided(
    limits: dict, lasted: float | None, at_most: float, doubts: list[str] | None
) -> None:
    part = {
        **{"topic": "trial", "partition": 0, "longest_unavailable": lasting(lasted)},
        "at_most_ns": int(at_most * SECOND),
        "after_faults": [
            {
                "fault": "cut",
                "first_ack_after_heal_ns": 5,
                "awaited_after_heal": lasting(lasted),
                "at_most_after_heal_ns": int(at_most * SECOND),
            },
            {"fault": "stays", "awaited_after_heal": None},
        ],
    }
    run = RunFile(
        run="r",
        scenario_name="s",
        scenario={},
        configuration=Configuration(version="4.3.1"),
        limits=Limits.model_validate(limits),
    )
    assert undecided(run, {"partitions": [part]}, [HEALED, STAYS]) == doubts


@pytest.mark.heavy
def test_a_gap_longer_than_a_limit_is_seen_in_a_run_of_ten_hours(spark: SparkSession, tmp_path: Path) -> None:
    # A bin of 12 partitions would be 21.6 s long: in the second of one lies the gap, with acknowledgements around it.
    sends, finals = [], []
    for partition in range(12):
        at = [0, 6, 12, 18, 22, 23, 43, *range(49, 36_001, 6)] if partition == 7 else [0, 36_000]
        sends += [f"send a{partition}-{n} ok @{n} p{partition} t{max(end - 9, 0)}..{end}" for n, end in enumerate(at)]
        finals += [f"final a{partition}-{n} @{n} p{partition}" for n in range(len(at))]
        finals += [f"end 0..{len(at)} p{partition}", f"saw b1 @1 p{partition} leader=1 epoch=0 isr=1,2,3"]
    recorded = by_hand(*sends, "send late info p7 t22..43", *finals)
    write(tmp_path, [recorded], limits=Limits(unavailable=10))
    verdict = judge(tmp_path, spark)
    assert (verdict.verdict, verdict.anomalies.keys()) == (Judgement.INVALID, {"unavailability"})
    [gone] = verdict.anomalies["unavailability"].examples
    assert (gone["partition"], gone["from_ns"], gone["to_ns"]) == (7, 23 * SECOND, 43 * SECOND)
    assert verdict.availability["resolution_ns"] == 2_500_000_000


def test_nothing_is_acknowledged_with_acks_0_and_no_limit_is_broken(spark: SparkSession, tmp_path: Path) -> None:
    saw = [f"saw b1 @{at} leader=1 epoch=0 isr=1,2,3" for at in (1, 4, 7)]
    recorded = by_hand("send a info t1..9", "final a @0", "end 0..1", *saw)
    write(
        tmp_path,
        [recorded],
        limits=Limits(unavailable=1),
        acks="0",
        idempotence=False,
        requires=Requirements(acknowledged=0),
    )
    verdict = with_sentences(judge(tmp_path, spark), RunFile.read(tmp_path))
    assert (verdict.verdict, verdict.anomalies) == (Judgement.UNKNOWN, {})
    assert verdict.reasons[0] == "unknown: limits judged: with acks=0 nothing is ever acknowledged"


def recovery(spark: SparkSession, run: Path, *lines: str) -> list[tuple[float, float]]:
    """From when until when (s) a partition acknowledged nothing for longer than 10 s after a heal."""
    write(run, [by_hand(*lines, "end 0..0")], limits=Limits(recovery=10))
    history = History.read(run, spark)
    found = overrun(history.run_file.limits, availability(history), history.faults).get("slow_recovery")
    return [(one["from_ns"] / SECOND, one["to_ns"] / SECOND) for one in found.examples] if found else []


@pytest.mark.parametrize(
    ("lines", "slow"),
    [
        # The first acknowledgement after the heal is of a write that was under way.
        (("send a ok t20..30.5", "send b ok t30.2..60"), [(30.5, 60)]),
        (("send a ok t30..30.5", "send b ok t31..32", "send c ok t33..60"), [(33, 60)]),
        (("send a ok t20..30.5", "send b ok t30.2..40.4"), []),
        # Nobody awaited anything.
        (("send a ok t20..30.5", "send b ok t59..60"), []),
        # From the next injection on it is that fault's.
        (("send a ok t20..30.5", "send b ok t30.2..60", "fault next b2 40..70"), []),
        (("send a ok t20..30.5", "send b ok t30.2..60", "fault next b2 41..70"), [(30.5, 41)]),
        # While another fault is in force it is that one's.
        (("send a ok t20..30.5", "send b ok t30.2..60", "fault before b2 29..70"), []),
        (("send a ok t20..30.5", "send b ok t30.2..60", "fault before b2 29.."), []),
        (("send a ok t20..30.5", "send b ok t30.2..60", "fault before b2 29..70 unknown"), []),
        (("send a ok t20..30.5", "send b ok t30.2..60", "fault before b2,b3 29..70 without=b3"), []),
        # From its own heal on there is none.
        (("send a ok t20..30.5", "send b ok t30.2..60", "fault before b2 29..45"), [(45, 60)]),
        (("send a ok t20..30.5", "send b ok t30.2..60", "fault before b2 29..30"), [(30.5, 60), (30.5, 60)]),
        (("send a ok t20..30.5", "send b ok t30.2..60", "fault before b2 29..70 missed"), [(30.5, 60)]),
        # Before the heal.
        (("send a ok t1..29.9", "send b ok t29..31"), []),
    ],
)
def test_recovery_lasts_as_long_as_nothing_is_acknowledged_until_the_next_injection(
    lines: tuple[str, ...], slow: list[tuple[float, float]], spark: SparkSession, tmp_path: Path
) -> None:
    assert recovery(spark, tmp_path, *lines, "fault cut b1 10..30") == slow


HANGS = ("send a ok @0 t1..2", "send b ok @1 t4..39", "send c ok @2 t39..40", "final a @0", "final b @1", "final c @2")


@pytest.mark.parametrize(
    ("lines", "judged"),
    [
        (("fault c1 b3 3..10", "fault c2 b3 10.1..38"), True),
        # Nothing was acknowledged in the only time without a fault.
        (("fault c1 b3 3..10", "fault c2 b3 10.1..45"), False),
        (("fault c1 b3 3..10", "fault c2 b2 5..45"), False),
        (("fault c1 b3 3..10", "fault c2 b2 5.."), False),
        (("fault c1 b3 3..",), False),
        ((), False),
        # A short time, in which the partition recovered.
        (("fault c1 b3 3..38.9", "fault c2 b3 39.2..45"), True),
    ],
)
def test_a_recovery_that_nobody_saw_is_not_known_to_be_within_its_limit(
    lines: tuple[str, ...], judged: bool, spark: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path, [by_hand(*HANGS, *lines, "end 0..3")], limits=Limits(recovery=5))
    history = History.read(tmp_path, spark)
    known = history.run_file, availability(history), history.faults
    assert overrun(history.run_file.limits, *known[1:]) == {}
    why = "trial-0 acknowledged nothing from any heal to the next injection with no other fault in force"
    assert undecided(*known) == ([] if judged else [why])


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (
            "5..60 unknown",
            [
                "trial-0 acknowledged nothing for longer than 5 s after the heal of c1, perhaps: "
                "another fault may have been in force"
            ],
        ),
        ("5..60", []),
        ("40..60 unknown", []),
    ],
    ids=["in doubt", "in force", "over"],
)
def test_a_recovery_beside_a_fault_in_doubt_is_not_known_to_be_within_its_limit(
    other: str, says: list[str], spark: SparkSession, tmp_path: Path
) -> None:
    lines = (
        "send a ok @0 t1..2",
        "send b ok @1 t12..38",
        "send c ok @2 t75..76",
        "fault c1 b1 10..20",
        "fault c3 b3 70..74",
    )
    write(tmp_path, [by_hand(*lines, f"fault c2 b2 {other}", "end 0..3")], limits=Limits(recovery=5))
    history = History.read(tmp_path, spark)
    known = history.run_file, availability(history), history.faults
    assert overrun(history.run_file.limits, *known[1:]).keys() == ({"slow_recovery"} if "40" in other else set())
    assert undecided(*known) == says


def test_a_broken_limit_makes_a_run_invalid(spark: SparkSession, tmp_path: Path) -> None:
    lines = ("send a ok @0 t1..2", "send b ok @1 t3..9", "final a @0", "final b @1", "end 0..2")
    saw = [f"saw b1 @{at} leader=1 epoch=0 isr=1,2,3" for at in (1, 4, 7)]
    expect = Expectation(verdict=Judgement.INVALID, anomalies=["unavailability"])
    write(tmp_path, [by_hand(*lines, *saw)], limits=Limits(unavailable=5), expect=expect)
    verdict = with_sentences(judge(tmp_path, spark), RunFile.read(tmp_path))
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
    recorded = by_hand(*quick, *slow, *finals, "fault cut b1 2..4", "end 0..9", "end 0..2 p1", *saw)
    write(tmp_path, [recorded], limits=Limits(recovery=3))
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
