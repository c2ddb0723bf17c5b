"""No election took records that are missing within one leader epoch: they are a violation under all settings."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from checkers.evidence.final_logs import inside
from checkers.evidence.holes import epochs, final_offsets, holes, read_final_logs, unread, with_final_logs
from checkers.evidence.standing import observed
from checkers.evidence.store import AnomalyStore
from checkers.history import History
from checkers.judge import judge
from harness.core.verdict import Standing, Verdict
from harness.history.run_file import Origin
from tests.checkers.notation import by_hand, write

#: b1 led with the whole ISR; then b2, with another epoch, once b1 was cut off: with acks=1 records of b1 may be lost.
ELECTED = (
    "saw b1 @0..30 leader=1 epoch=0 isr=1,2,3",
    "saw b2 @0..30 leader=1 epoch=0 isr=1,2,3",
    "saw b2 @31..60 leader=2 epoch=1 isr=2,3",
    "fault cut b1 20..40",
)
Judge = Callable[..., Verdict]


@pytest.fixture
def judged(spark: SparkSession, tmp_path: Path) -> Judge:
    def judged(*lines: str, **settings: object) -> Verdict:
        write(tmp_path, [by_hand(*lines, *ELECTED)], **{"acks": "1", **settings})
        return judge(tmp_path, spark)

    return judged


def sent(*names: str) -> list[str]:
    return [f"send {name} ok @{offset} t{offset}..{offset + 1}" for offset, name in enumerate(names)]


def standings(verdict: Verdict, anomaly: str = "lost") -> dict[tuple[int, int], Standing]:
    found = verdict.anomalies[anomaly]
    return {(run["first_offset"], run["last_offset"]): run["standing"] for run in found.runs}


@pytest.mark.heavy
def test_each_run_has_a_standing_of_its_own_and_the_anomaly_the_worst(judged: Judge) -> None:
    verdict = judged(
        *sent(*"abcdef"), "send g ok @4 t40..41", "final a @0 e0", "final c @2 e0", "final d @3 e0", "final g @4 e1",
        "end 0..5",
    )  # fmt: skip
    assert standings(verdict) == {(1, 1): Standing.VIOLATION, (4, 5): Standing.PERMITTED}
    assert verdict.anomalies["lost"].standing is Standing.VIOLATION


@pytest.mark.heavy
def test_a_hole_is_reported_before_what_is_bigger(judged: Judge) -> None:
    many = [f"send m{n} ok @{n} t{n}..{n + 1}" for n in range(3, 25)]
    verdict = judged(*sent(*"abc"), *many, "final a @0 e0", "final c @2 e0", "end 0..3")
    assert [run["count"] for run in verdict.anomalies["lost"].runs] == [1, 22]


@pytest.mark.heavy
def test_records_that_an_election_cut_off_the_log_end_stay_permitted(judged: Judge) -> None:
    verdict = judged(*sent(*"abc"), "send d ok @1 t40..41", "final a @0 e0", "final d @1 e1", "end 0..2")
    assert verdict.anomalies["lost"].standing is Standing.PERMITTED
    assert set(standings(verdict).values()) == {Standing.PERMITTED}


def found(spark: SparkSession, run: Path, *lines: str, **settings: object) -> dict[int, list[tuple[int, int]]]:
    """The holes of each partition."""
    write(run, [by_hand(*lines)], **settings)
    history = History.read(run, spark)
    offsets = final_offsets(history)
    every = holes(history, offsets, epochs(history, offsets))
    return {of[1]: [(int(a), int(b)) for a, b in zip(*every[of], strict=True)] for of in every}


def test_a_hole_is_what_is_missing_between_records_of_one_epoch(spark: SparkSession, tmp_path: Path) -> None:
    several = ["final a @0 e0", "final b @5 e0", "final c @6 e0", "final d @9 e0", "final e @12 e1", "final f @13 e1"]
    only_once_read = ["live lost @2 e0", "live gone @7 e0"]
    each_of_its_own = ["final s @0 p7 e0", "final t @2 p7 e0", "final u @5 p7 e1", "final v @7 p7 e1"]
    epochs_fall = ["final w @0 p8 e1", "final x @2 p8 e1", "final y @5 p8 e0", "final z @7 p8 e0"]
    far = ["final far @0 p9 e0", "final farther @9223372036854775807 p9 e0"]
    # 64 offsets are one word of bits.
    across_words = [f"final o{offset} @{offset} p10 e0" for offset in (0, 1, 62, 63, 64, 65, 127, 128, 130)]
    whole_words = [f"final p{offset} @{offset} p11 e0" for offset in (*range(64), *range(128, 193))]
    whole = ["final g @0 p1 e0", "final h @1 p1 e0", "final i @2 p1 e1"]
    a_later_leader_may_have_begun_below = ["final j @0 p2 e0", "final k @2 p2 e1"]
    nobody_told_the_epochs = ["final l @0 p3", "final m @2 p3"]
    read_twice_is_not_two = ["final n @0 p4 e0", "final n @0 p4 e0", "final o @2 p4 e0"]
    not_read_to_the_end = ["final p @0 p5 e0", "final q @2 p5 e0"]
    the_start_moved = ["final r @7 p6 e0", "final s @8 p6 e0"]
    ends = [
        "end 0..14",
        "end 0..3 p1",
        "end 0..3 p2",
        "end 0..3 p3",
        "end 0..3 p4",
        "end 0..4 p5 read 3",
        "end 7..9 p6",
        "end 0..8 p7",
        "end 0..8 p8",
        "end 0..9223372036854775807 p9",
        "end 0..131 p10",
        "end 0..193 p11",
    ]
    lines = [
        *several, *whole, *a_later_leader_may_have_begun_below, *nobody_told_the_epochs, *read_twice_is_not_two,
        *not_read_to_the_end, *the_start_moved, *only_once_read, *each_of_its_own, *epochs_fall, *far, *across_words,
        *whole_words, *ends,
    ]  # fmt: skip
    assert found(spark, tmp_path, *lines) == {
        0: [(1, 4), (7, 8)],
        3: [(1, 1)],
        4: [(1, 1)],
        7: [(1, 1), (6, 6)],
        8: [(1, 1), (6, 6)],
        9: [(1, 9223372036854775806)],
        10: [(2, 61), (66, 126), (129, 129)],
        11: [(64, 127)],
    }


def test_each_epoch_has_its_first_and_last_offset_and_whether_it_is_broken(spark: SparkSession, tmp_path: Path) -> None:
    two = ["final a @3 e0", "final b @4 e0", "final c @5 e0", "final d @6 e1", "final e @8 e1", "final f @8 e1"]
    uneven = ["final g @1 p1 e2", "final h @2 p1 e2", "final i @6 p1 e2", "final j @7 p1", "final k @8 p1"]
    # As many as there are places, and their offsets as great together.
    ends_twice = ["final l @0 p2 e0", "final m @0 p2 e0", "final n @3 p2 e0", "final o @3 p2 e0"]
    far_apart = [f"final r{offset} @{offset} p4 e0" for offset in (0, 1, 62, 63, 64, 65, 127, 128)]
    words = [f"final s{offset} @{offset} p5 e0" for offset in range(60, 200)]
    not_whole = ["final p @0 p3 e0"]
    twice_and_whole = ["final t @0 p6 e0", "final t @0 p6 e0", "final u @1 p6 e0"]
    ends = ["end 3..9", "end 1..9 p1", "end 0..4 p2", "end 0..4 p3 read 1", "end 0..129 p4", "end 60..200 p5"]
    more = [*not_whole, *twice_and_whole, *ends, "end 0..2 p6"]
    write(tmp_path, [by_hand(*two, *uneven, *ends_twice, *far_apart, *words, *more)])
    history = History.read(tmp_path, spark)
    rows = epochs(history, final_offsets(history)).to_pylist()
    names = ("partition", "leader_epoch", "first", "last", "broken")
    assert [tuple(row[name] for name in names) for row in rows] == [
        (0, 0, 3, 5, False),
        (0, 1, 6, 8, True),
        (1, -1, 7, 8, False),
        (1, 2, 1, 6, True),
        (2, 0, 0, 3, True),
        (4, 0, 0, 128, True),
        (5, 0, 60, 199, False),
        (6, 0, 0, 1, False),
    ]


def test_without_a_final_read_there_are_neither_logs_nor_holes(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, [by_hand("send a ok @0", "live a @0 e0", "live b @2 e0", "end 0..3")], origin=Origin.JEPSEN)
    history = History.read(tmp_path, spark)
    known, missing = with_final_logs(
        history, observed(history.stored, history.seen), AnomalyStore(), read_final_logs(history)
    )
    assert (known.logs, missing) == ({}, {})


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_a_compacted_log_has_holes_of_its_own(policy: str, spark: SparkSession, tmp_path: Path) -> None:
    scenario = {"topic": {"config": {"cleanup.policy": policy}}}
    assert found(spark, tmp_path, "final a @0 e0", "final b @2 e0", "end 0..3", scenario=scenario) == {}


def test_an_offset_where_a_transaction_marker_may_stand_is_no_hole(spark: SparkSession, tmp_path: Path) -> None:
    lines = ["txn 1 commit ok 0..5..6", "final a @0 e0", "final b @2 e0", "end 0..3"]
    assert found(spark, tmp_path, *lines) == {}


def test_an_offset_is_inside_from_the_first_to_the_last_of_a_hole() -> None:
    holes = {("trial", 0): (np.array([1, 7]), np.array([4, 8]))}
    asked = np.array([-1, 0, 1, 4, 5, 6, 7, 8, 9])
    assert asked[inside(holes, ("trial", 0), asked)].tolist() == [1, 4, 7, 8]
    assert not inside(holes, ("trial", 1), asked).any()


#: Of p0 offsets 1 and 2 are missing, of p2 all; p3 begins at 5, p4 has another's record.
_SOME_MISSING = [
    *("final a @0 e0", "final b @3 e1", "end 0..4"),
    "end 0..2 p2",
    *("final d @5 p3", "end 5..6 p3"),
    *("final e @0 p4", "final ? @1 p4", "end 0..2 p4"),
]


@pytest.mark.parametrize(
    ("lines", "settings", "missing"),
    [
        (_SOME_MISSING, {}, {0: 2, 2: 2}),
        (["final a @0", "final b @1", "end 0..2"], {}, {}),
        (["final a @0", "final a @0", "final b @2", "end 0..3"], {}, {0: 1}),
        (["final a @0 e0", "final a @0 e1", "final b @2 e1", "end 0..3"], {}, {0: 1}),
        (["final a @0", "final b @2", "final c @3", "end 0..3 read 4"], {}, {0: 1}),
        (["final a @0", "final b @1", "final b @2", "end 0..3"], {}, {}),
        ([*_SOME_MISSING, "final c @0 p1", "end 0..5 read 1 p1"], {}, {}),
        (["txn 1 commit ok 0..5..6", *_SOME_MISSING], {}, {}),
        (_SOME_MISSING, {"scenario": {"topic": {"config": {"cleanup.policy": "compact"}}}}, {}),
    ],
    ids=[
        *("of each log", "of none", "one was read twice", "under two epochs", "more was read", "one stands twice"),
        *("a log was not read to its end", "markers may be there", "compacted"),
    ],
)
def test_of_each_log_it_is_counted_at_how_many_offsets_it_has_nothing(
    lines: list[str], settings: dict[str, Any], missing: dict[int, int], spark: SparkSession, tmp_path: Path
) -> None:
    recorded = by_hand(*[f"send {name} info" for name in "abcde"], *lines)
    write(tmp_path, [recorded], **settings)
    final = [row for row in recorded.rows["reads"] if row["phase"] == "final"]
    in_logs = len({(row["partition"], row["record_id"]) for row in final if row["record_id"] is not None})
    history = History.read(tmp_path, spark)
    assert {of[1]: count for of, count in unread(history, in_logs, {}).items()} == missing
    assert ("trial", 0) not in unread(history, in_logs, {("trial", 0): 2})


@pytest.mark.heavy
def test_a_hole_where_nobody_knows_of_a_record_is_not_valid(judged: Judge) -> None:
    """With acks=0, or without an answer, no record is known to be lost."""
    sends = ["send a info @0 t0..", "send b info @2 t2..", "send c info t1.."]
    finals = ["final a @0 e0", "final b @2 e0"]
    verdict = judged(*sends, *finals, "end 0..3")
    assert verdict.anomalies == {}
    assert final_read(verdict) == (False, "trial-0 has no record at 1 of its offsets")
    assert final_read(judged(*sends, *finals, "final c @1 e0", "end 0..3"))[0]


@pytest.mark.heavy
@pytest.mark.parametrize(("beside", "unmet"), [(False, None), (True, "trial-1 has no record at 1 of its offsets")])
def test_a_lost_record_is_reported_as_lost_and_not_as_a_hole(judged: Judge, beside: bool, unmet: str | None) -> None:
    """No other log is whole for that."""
    log = ["final a @0 e0", "final c @2 e0", "end 0..3"]
    other = ["send x info @0 t9.. p1", "send y info @2 t9.. p1", "final x @0 e0 p1", "final y @2 e0 p1", "end 0..3 p1"]
    verdict = judged(*sent(*"abc"), *log, *(other if beside else ()))
    assert standings(verdict) == {(1, 1): Standing.VIOLATION}
    met, detail = final_read(verdict)
    assert (None if met else detail) == unmet


def final_read(verdict: Verdict) -> tuple[bool, str]:
    """Whether the final read was complete, and the sentence about it."""
    [found] = [one for one in verdict.preconditions if one.name == "final read complete"]
    return found.met, found.detail
