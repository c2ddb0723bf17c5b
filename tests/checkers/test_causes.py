"""Ranges of records, and the sentence about each."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from checkers.catalogue import CHECKERS
from checkers.evidence.causes import MOST_RANGES, biggest, facts
from checkers.evidence.record_ranges import RecordRange
from checkers.judge import judge
from checkers.leadership import LeaderTerm
from harness.core.anomalies import BY_NAME
from harness.core.guarantees import PERMISSIONS
from harness.core.verdict import Standing
from harness.history.run_file import RunFile
from harness.report.sentences import sentence, with_sentences
from tests.checkers.notation import SECOND, by_hand, write
from tests.checkers.ranges import BOTH, NAMES, SEEN, record_range
from tests.golden.sample import Judged

Ranges = Callable[..., Mapping[str, list[dict[str, Any]]]]


def fault(name: str, begun: float, healed: float | None, effective: bool = True) -> dict[str, Any]:
    at = None if healed is None else int(healed * SECOND)
    return {"fault": name, "injecting_ns": int(begun * SECOND), "healed_ns": at, "effective": effective}


@pytest.fixture
def found(spark: SparkSession, tmp_path: Path) -> Ranges:
    """Writes a hand history, judges it, and gives the ranges of each anomaly."""

    def write_and_judge(*lines: str) -> Mapping[str, list[dict[str, Any]]]:
        write(tmp_path, [by_hand(*lines)], unclean_election=True)
        judged = with_sentences(judge(tmp_path, spark), RunFile.read(tmp_path))
        return {name: anomaly.runs for name, anomaly in judged.anomalies.items()}

    return write_and_judge


@pytest.mark.long
def test_records_lost_under_one_leader_are_one_range(found: Ranges) -> None:
    ranges = found(
        "send a ok @0 t1..2",
        "send b ok @1 t4..5",
        "send c ok @2 t5..6",
        "live b @1",
        "send d ok @1 t12..13",
        "send e ok @2 t13..14",
        "final a @0 e0",
        "final d @1 e1",
        "final e @2 e1",
        "end 0..3",
        "fault cut b1 3..12 kind=isolate",
        "fault blip b2 6..7",
        "saw b1 @1..3 leader=1 epoch=0 isr=1,2,3",
        "saw b1 @4..7 leader=1 epoch=0 isr=1",
        "saw b2 @4..7 leader=1 epoch=0 isr=1",
        "saw b2 @8 leader=2 epoch=1 isr=2",
    )
    assert ranges["lost"] == [
        {
            "text": "trial-0: offsets 1–2 (2 records), acknowledged 5.0–6.0 s by b1 (epoch 0) alone in the ISR, "
            "lost when b2, not in the ISR, was elected at 8.0 s (epoch 1) after blip and while cut was active",
            "topic": "trial",
            "partition": 0,
            "first_offset": 1,
            "last_offset": 2,
            "count": 2,
            "first_ns": 5 * SECOND,
            "last_ns": 6 * SECOND,
            "leader": 1,
            "leader_epoch": 0,
            "isr": [[1]],
            "elected": {
                "leader": 2,
                "leader_epoch": 1,
                "at_ns": 8 * SECOND,
                "in_isr": False,
                "name": "b2",
                "faults": ["cut"],
            },
            "faults": ["cut", "blip"],
            "acknowledged": 2,
            "again_to": None,
            "leader_name": "b1",
            "isr_names": [["b1"]],
            "hole": False,
            "standing": Standing.PERMITTED,
            "because": next(row.because for row in PERMISSIONS if row.name == "unclean election, one in-sync replica"),
            "source": next(row.source for row in PERMISSIONS if row.name == "unclean election, one in-sync replica"),
            "must": ["b1"],
            "need_not": ["b2", "b3"],
            "unknown": [],
            "taken_by": {"event": "election", "at_ns": 8 * SECOND, "leader": 2, "leader_epoch": 1, "name": "b2"},
        }
    ]
    assert [part["text"].split(", ")[0] for part in ranges["vanished"]] == ["trial-0: offset 1 (1 record)"]


@pytest.mark.heavy
def test_leaders_partitions_and_distances_part_runs(found: Ranges) -> None:
    ranges = found(
        "send a ok @0 t1..2",
        "send b ok @1 t1..2",
        "send far ok @500 t1..2",
        "send later ok @2 t10..11",
        "send other ok @0 p1 t1..2",
        "send none ok t1..2",
        "end 0..0",
        "end 0..0 p1",
        "saw b1 @1 leader=1 epoch=0 isr=1,2,3",
        "saw b2 @8 leader=2 epoch=1 isr=2",
    )["lost"]
    assert [(part["partition"], part["first_offset"], part["last_offset"], part["leader"]) for part in ranges] == [
        (0, 0, 1, 1),
        (0, None, None, 1),
        (0, 500, 500, 1),
        (0, 2, 2, 2),
        (1, 0, 0, None),
    ]
    assert "1 record, offset unknown" in ranges[1]["text"]
    assert "under a leader that nobody observed" in ranges[4]["text"]


@pytest.mark.heavy
def test_duplicates_are_reported_with_their_second_place(found: Ranges) -> None:
    [part] = found("send a info t1..2", "final a @0", "final a @7", "end 0..8", "saw b1 @1 leader=1 epoch=0 isr=1,2,3")[
        "duplicated"
    ]
    assert part["text"] == (
        "trial-0: offset 0 (1 record), not acknowledged there, sent at 1.0 s while the leader was b1 (epoch 0) "
        "with the ISR b1 b2 b3, in the log more than once (again up to offset 7); no election was seen after them"
    )


def test_the_biggest_are_reported_and_equal_ones_in_the_order_of_their_places() -> None:
    many = [record_range(1000 * n, 1000 * n + n % 3) for n in range(40)]
    first = biggest(reversed(many))
    assert len(first) == MOST_RANGES
    assert first == sorted(many, key=lambda one: (-one.count, one.first_offset))[:MOST_RANGES]


@pytest.mark.parametrize(
    ("anomaly", "part", "led", "faults", "says"),
    [
        (
            "lost",
            record_range(0, 9, 2, 5),
            BOTH,
            [],
            "with the ISR b1 b2, then alone in the ISR, lost when b2, not in the",
        ),
        ("lost", record_range(0, 9, count=7), BOTH, [], "offsets 0–9 (7 records among them)"),
        ("fractured", record_range(0, 9, count=2), BOTH, [], "offsets 0–9 (2 transactions among them)"),
        ("lost", record_range(0, 1233), BOTH, [], "(1,234 records)"),
        ("lost", record_range(0, 9, 5, 9), BOTH, [], "alone in the ISR (though another led from 8.0 s), lost when b2"),
        (
            "lost",
            record_range(0, 9),
            BOTH,
            [fault("cut", 1, None), fault("kill", 5, 9)],
            "while cut and kill were active",
        ),
        (
            "lost",
            record_range(0, 9),
            BOTH,
            [fault("cut", 1, None), fault("in vain", 1, None, False)],
            "while cut was active",
        ),
        ("lost", record_range(0, 9), BOTH[:1], [fault("in vain", 1, None, False)], "no election was seen after them"),
        (
            "vanished",
            record_range(0, 9, acknowledged=4),
            BOTH,
            [],
            "(10 records), 4 of them acknowledged 5.0–6.0 s by b1",
        ),
        (
            "vanished",
            record_range(0, 9, acknowledged=0),
            BOTH,
            [],
            "(10 records), not acknowledged there, sent 5.0–6.0 s while",
        ),
        ("lost", record_range(0, 9), BOTH, [fault("wipe", 7, 7.5), fault("old", 1, 2)], "(epoch 1) after wipe"),
        (
            "lost",
            record_range(0, 9),
            BOTH[:1],
            [fault("cut", 5, 7)],
            "lost; no election was seen after them; cut was active",
        ),
        (
            "lost",
            record_range(0, 9),
            [BOTH[0], LeaderTerm(1, 1, 8 * SECOND)],
            [],
            "lost after b1, in the ISR, was elected again",
        ),
        (
            "reordered",
            record_range(0, 9),
            BOTH,
            [],
            "in another order than they were sent; next, b2, not in the ISR, was",
        ),
        ("fractured", record_range(0, 9), BOTH[:1], [], ", fractured; no election was seen after them"),
        (
            "vanished",
            record_range(0, 9),
            [BOTH[0], LeaderTerm(7, 1, 8 * SECOND)],
            [],
            "vanished when broker 7, not in the ISR",
        ),
    ],
)
def test_the_sentence_of_a_range_says_what_brokers_reported(
    anomaly: str, part: RecordRange, led: list, faults: list, says: str
) -> None:
    text = sentence(BY_NAME[anomaly], facts(part, led, SEEN, faults, NAMES))
    assert says in text
    assert "in vain" not in text


def test_every_anomaly_that_comes_in_ranges_has_a_checker() -> None:
    assert {anomaly for anomaly in BY_NAME.values() if anomaly.comes_in_ranges} <= {c.anomaly for c in CHECKERS}


@pytest.mark.long
def test_the_recorded_run_is_reported_as_it_was(of_corpus: Callable[[str], Judged]) -> None:
    verdict = of_corpus("recorded jepsen-2013 unclean-election").verdict
    assert verdict is not None
    lost = verdict.anomalies["lost"]
    assert [part["count"] for part in lost.runs] == [lost.count]
    assert verdict.reasons[1] == (
        "lost: trial-0: offsets 1095–3325 (2,231 records), acknowledged 17.4–22.7 s by b2 (epoch 0) alone in the ISR, "
        "lost when b3, not in the ISR, was elected at 28.3 s (epoch 1) while cut and alone were active"
    )
