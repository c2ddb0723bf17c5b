"""Which brokers had a record over time: each moment of a change, and the histories in which nothing changed."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.archive import Archive
from checkers.evidence import holders
from checkers.evidence.decision import Case
from checkers.evidence.holding import Has, Why
from checkers.trace import by_record
from harness.core.anomalies import LOST
from harness.report.sentences import HELD, held
from tests.checkers.notation import SECOND, by_hand, write
from tests.checkers.test_holders import ALONE, CUT, LONELY, LOST_ALONE, NAMES, TRIAL, UNCLEAN, WHOLE, evidence, saw

Changes = list[tuple[int, Why, list[int]]]


def story_of(*lines: str, **settings: Any) -> Changes:
    """The story of the record r: the time, the event and the brokers of each change."""
    [each] = stories(*lines, **settings)
    return each


def stories(*lines: str, **settings: Any) -> list[Changes]:
    history = by_hand(*lines)
    [send] = [row for row in history.rows["sends"] if row["record_id"] == history.ids["r"]]
    case = Case(TRIAL, send["invoked_ns"], send["completed_ns"], True, send["offset"], send["offset"])
    found = []
    for story in holders.stories(evidence(history, **settings), LOST, case):
        together: dict[tuple[int, Why], list[int]] = {}
        for change in story.changes:
            together.setdefault((change.at_ns // SECOND, change.why), []).append(change.broker)
        found.append([(at, why, brokers) for (at, why), brokers in together.items()])
    return found


def test_a_broker_in_the_isr_must_have_the_record_and_is_elected_with_it() -> None:
    assert story_of("send r ok @5 t10..11", *WHOLE, *CUT, **UNCLEAN) == [
        (11, Why.LED, [1]),
        (11, Why.IN_SYNC, [2, 3]),
        (26, Why.ELECTED, [2]),
    ]


def test_a_broker_outside_the_isr_need_not_have_the_record_and_takes_it() -> None:
    assert story_of(*LOST_ALONE, **UNCLEAN) == [
        (11, Why.LED, [1]),
        (11, Why.NOT_IN_SYNC, [2, 3]),
        (26, Why.TOOK, [2]),
        (40, Why.PERHAPS_FOLLOWED, [1]),
    ]


@pytest.mark.parametrize(
    ("fault", "then"),
    [
        ("fault gone b2 14..16 kind=wipe", [(14, Why.WIPED, [2])]),
        ("fault gone b4 14..16 kind=wipe", []),
        ("fault gone b2 14..16 kind=wipe missed", []),
        ("fault gone b2 2..4 kind=wipe", []),
        ("fault gone b2 14..16 kind=kill", []),
    ],
    ids=["its own", "of another partition", "without effect", "before it was sent", "not of the disk"],
)
def test_a_wiped_disk_ends_what_its_broker_had(fault: str, then: Changes) -> None:
    after = story_of("send r ok @5 t10..11", *WHOLE, fault, *CUT, **UNCLEAN)[2:]
    assert [one for one in after if one[1] is Why.WIPED] == then


def lonely_after_a_wipe(*then: str) -> Changes:
    """b2 loses its disk at 14 s, and leaves the ISR; b1 leads to the end."""
    return story_of(
        "send r ok @5 t10..11",
        *saw("b1,b2,b3", "0..14", 1, 0, "1,2,3"),
        "fault gone b2 14..16 kind=wipe",
        *saw("b1,b3", "15..20", 1, 0, "1,3"),
        *then,
        "end 0..9",
        **UNCLEAN,
    )


def test_a_broker_that_comes_back_in_sync_has_it_again() -> None:
    gone = [(11, Why.LED, [1]), (11, Why.IN_SYNC, [2, 3]), (14, Why.WIPED, [2])]
    assert lonely_after_a_wipe(*saw("b1,b2,b3", "21..60", 1, 0, "1,2,3")) == [*gone, (21, Why.JOINED, [2])]
    assert lonely_after_a_wipe(*saw("b1,b3", "21..60", 1, 0, "1,3")) == gone


def test_a_broker_that_joins_the_isr_of_a_later_leader_has_the_record_too() -> None:
    early = ["send r ok @5 t10..11", *saw("b1", "0..20", 1, 0, "1,2"), *saw("b2", "0..25", 1, 0, "1,2")]
    early += ["fault killed b1 20.. kind=kill"]
    later = [*saw("b2,b3", "26..40", 2, 1, "2"), *saw("b2,b3", "41..60", 2, 1, "2,3"), "end 0..9"]
    assert story_of(*early, *later) == [
        (11, Why.LED, [1]),
        (11, Why.IN_SYNC, [2]),
        (11, Why.NOT_IN_SYNC, [3]),
        (26, Why.ELECTED, [2]),
        (41, Why.JOINED, [3]),
    ]
    without = [line for line in later if "isr=2,3" not in line]
    assert story_of(*early, *without, *saw("b2,b3", "41..60", 2, 1, "2"))[-1] == (26, Why.ELECTED, [2])


def test_with_acks_1_only_a_high_watermark_above_it_makes_the_isr_have_it() -> None:
    begun = ["send r ok @5 t10..11", *saw("b1,b2,b3", "0..13", 1, 0, "1,2,3", "high=5")]
    assert story_of(*begun, *saw("b1,b2,b3", "14..60", 1, 0, "1,2,3", "high=6"), "end 0..9", **ALONE) == [
        (11, Why.LED, [1]),
        (14, Why.IN_SYNC, [2, 3]),
    ]
    assert story_of(*begun, *saw("b1,b2,b3", "14..60", 1, 0, "1,2,3", "high=5"), "end 0..9", **ALONE) == [
        (11, Why.LED, [1]),
        (11, Why.NOT_IN_SYNC, [2, 3]),
    ]


#: b2 lacked it, and led; then b1 leads again.
AGAIN = ["final a @4 e0", "final b @5 e2", "end 0..7"]
BACK = [*LONELY[:-3], *saw("b2,b3", "26..39", 2, 1, "2")]


@pytest.mark.parametrize(
    ("isr", "then"),
    [("1,2", [(41, Why.FOLLOWED, [1])]), ("2", [(26, Why.PERHAPS_FOLLOWED, [1])])],
    ids=["joined its isr", "was up"],
)
def test_a_holder_that_follows_a_leader_that_lacks_it_lacks_it_too(isr: str, then: Changes) -> None:
    killed = "fault killed b1 20..25 kind=kill"
    seen = [*BACK, killed, *saw("b1,b2,b3", "41..60", 2, 1, isr), "end 0..7"]
    assert story_of("send r ok @5 t10..11", *seen, **UNCLEAN)[2:] == [(26, Why.TOOK, [2]), *then]


def test_one_that_was_down_all_that_time_did_not_follow_it() -> None:
    killed = "fault killed b1 20.. kind=kill"
    seen = [*BACK, killed, *saw("b2,b3", "41..60", 2, 1, "2"), "end 0..7"]
    assert story_of("send r ok @5 t10..11", *seen, **UNCLEAN)[2:] == [(26, Why.TOOK, [2])]


def test_of_each_leader_that_may_have_appended_it_there_is_a_story() -> None:
    both = [
        "send r ok @5 t24..29",
        *saw("b1", "0..30", 1, 0, "1,2,3"),
        *saw("b2,b3", "0..25", 1, 0, "1,2,3"),
        *saw("b2,b3", "26..60", 2, 1, "2,3"),
        "end 0..5",
    ]
    assert [story[0] for story in stories(*both, **ALONE)] == [(29, Why.LED, [1]), (29, Why.LED, [2])]
    assert (26, Why.TOOK, [2]) in stories(*both, **ALONE)[0]


def test_both_stories_are_given_if_a_wipe_is_not_certain() -> None:
    wipe = "fault gone b2 14..16 kind=wipe without=b2 unknown=b2"
    as_known, supposed = stories("send r ok @5 t10..11", *WHOLE, wipe, *CUT, **UNCLEAN)
    assert (14, Why.WIPED, [2]) in supposed
    assert (14, Why.WIPED, [2]) not in as_known


def test_every_change_has_a_sentence() -> None:
    assert set(HELD) == {why.value for why in Why}
    row = {"brokers": ["b1", "b2"], "leader": "b3", "leader_epoch": 7, "fault": "gone"}
    for why in Why:
        said = held({**row, "event": why.value})
        assert "{" not in said
        assert "b1 and b2" in said or "b3 (epoch 7)" in said


def test_a_record_has_a_story_only_if_its_loss_was_judged(tmp_path: Path) -> None:
    run = tmp_path / "run"
    write(run, [by_hand(*LOST_ALONE)], unclean_election=True)
    archive = Archive.open(run)
    assert by_record(archive, 0).holders == []
    place = run / "anomalies" / "lost"
    place.mkdir(parents=True)
    row = {"topic": "trial", "partition": 0, "offset": 5, "record_id": 0}
    times = {"sent_ns": 10 * SECOND, "acknowledged_ns": 11 * SECOND}
    pq.write_table(pa.Table.from_pylist([row | times]), place / "part.parquet")
    (run / "verdict.json").write_text(json.dumps({"anomalies": {"lost": {"count": 1, "standing": "permitted"}}}))
    [story] = by_record(Archive.open(run), 0).holders
    assert (story.leader, story.leader_epoch, story.anomalies, story.supposed) == ("b1", 0, ["lost"], False)
    assert [(one["at_ns"] // SECOND, one["event"], one["brokers"], one["has"]) for one in story.changes] == [
        (11, "led", ["b1"], "must"),
        (11, "not in sync", ["b2", "b3"], "need not"),
        (26, "took", ["b2"], "need not"),
        (40, "perhaps followed", ["b1"], "may"),
    ]
    assert (story.changes[2]["leader"], story.changes[2]["leader_epoch"]) == ("b2", 1)
    assert by_record(Archive.open(run), 1).holders == []


def test_in_a_hole_nothing_took_it() -> None:
    log = ["final a @4 e0", "final b @6 e0", "final c @7 e1", "end 0..8"]
    assert story_of("send r ok @5 t10..11", *LONELY, *log, **UNCLEAN) == [
        (11, Why.LED, [1]),
        (11, Why.NOT_IN_SYNC, [2, 3]),
    ]


def test_has_is_given_for_each_change() -> None:
    history = by_hand(*LOST_ALONE)
    case = Case(TRIAL, 10 * SECOND, 11 * SECOND, True, 5, 5)
    [story] = holders.stories(evidence(history, **UNCLEAN), LOST, case)
    assert [change.has for change in story.changes] == [Has.MUST, None, None, None, Has.MAY]
    assert NAMES[story.leader] == "b1"


def test_an_election_only_may_take_a_record_that_an_earlier_leader_may_have_lacked() -> None:
    """b2 was in only some of the ISRs that were reported around the acknowledgement, b3 in none."""
    seen = [
        *saw("b1,b2,b3", "0..10", 1, 0, "1,2"),
        *saw("b1", "11..19", 1, 0, "1"),
        *saw("b2,b3", "11..25", 1, 0, "1"),
        "fault killed b1 20.. kind=kill",
        *saw("b2,b3", "26..35", 2, 1, "2"),
        "fault ended b2 35.. kind=kill",
        *saw("b3", "36..60", 3, 2, "3"),
    ]
    cut = ["final a @4 e0", "final b @5 e2", "end 0..6"]
    each = story_of("send r ok @5 t10..11", *seen, *cut, **UNCLEAN | {"min_insync_replicas": 1})
    assert [one for one in each if one[1] in {Why.ELECTED, Why.PERHAPS_ELECTED, Why.TOOK, Why.LACKED}] == [
        (26, Why.PERHAPS_ELECTED, [2]),
        (36, Why.LACKED, [3]),
    ]


def test_an_election_only_may_take_a_record_whose_offset_was_written_again() -> None:
    seen = [
        *saw("b1", "0..40", 1, 0, "1"),
        *saw("b2,b3", "0..45", 1, 0, "1"),
        "fault killed b1 40.. kind=kill",
        *saw("b2,b3", "46..60", 2, 1, "2"),
    ]
    lines = ["send r ok @5 t10..11", "send q ok @5 t20..21", "final a @4 e0", "final b @5 e1", "end 0..6"]
    assert (46, Why.LACKED, [2]) in story_of(*lines, *seen, **UNCLEAN | {"min_insync_replicas": 1})
