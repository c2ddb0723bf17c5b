"""Which brokers must have had a lost record, and what took it: more histories that a rule must, or must not, reach."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from checkers.evidence import holders
from checkers.evidence.decision import Case
from checkers.evidence.evidence import possible_terms
from checkers.evidence.holders import stories
from checkers.evidence.intervals import NEVER
from checkers.evidence.standing import delivered
from checkers.judge import judge
from harness.core.anomalies import HANGING_TRANSACTION, LOST, VANISHED
from harness.core.verdict import Standing
from tests.checkers.notation import SECOND, by_hand, write
from tests.checkers.test_holders import (
    ALONE,
    CUT,
    LONELY,
    PERMITTED,
    TRIAL,
    UNCLEAN,
    UNDECIDED,
    VIOLATION,
    WHOLE,
    decided,
    evidence,
    saw,
)

SENT = "send r ok @5 t10..11"
WIPES = [f"fault w{n} b{n} 21..22 kind=wipe" for n in (1, 2, 3)]
#: b1 leads in one term. All are killed at 20 s, and wiped.
ALL_WIPED = [
    *saw("b1,b2,b3", "0..19", 1, 0, "1,2,3"),
    "fault k b1,b2,b3 20..25 kind=kill",
    *WIPES,
    *saw("b1,b2,b3", "30..60", 1, 0, "1,2,3"),
]


@pytest.mark.parametrize(
    ("log", "standing"),
    [
        (["end 0..0"], PERMITTED),
        (["final a @0 e0", "end 0..1"], UNDECIDED),
        (["final a @3 e1", "end 0..4"], UNDECIDED),
        (["final a @0 e1", "end 0..1"], PERMITTED),
        (["final a @3 e1", "end 3..4"], PERMITTED),
    ],
    ids=["empty", "of its epoch", "it goes on", "begun anew", "retention took what stood below"],
)
def test_after_all_disks_were_wiped_the_old_log_may_not_continue(log: list[str], standing: Standing) -> None:
    found = decided(SENT, *ALL_WIPED, *log)
    assert found.standing is standing
    if standing is PERMITTED:
        assert found.ruling.because.startswith("all disks")
        assert found.event is not None
        assert (found.event.leader, found.event.at_ns) == (None, 22 * SECOND)
        assert decided(SENT, *ALL_WIPED, *log, **ALONE).ruling.because.startswith("acks=1")


def test_a_wipe_that_was_never_over_took_them_when_it_began() -> None:
    lines = [line.replace("21..22", "21..") for line in ALL_WIPED]
    found = decided(SENT, *lines, "end 0..0")
    assert found.event is not None
    assert found.event.at_ns == 21 * SECOND


def test_the_wipe_of_the_only_sure_holder_decides_nothing_if_another_may_have_the_record() -> None:
    """The ISR shrank while r was in flight."""
    lines = [
        *saw("b1,b2,b3", "0..10", 1, 0, "1,2"),
        *saw("b1,b2,b3", "11..19", 1, 0, "1"),
        "fault k b1 20..25 kind=kill",
        WIPES[0],
        *saw("b1,b2,b3", "30..60", 1, 0, "1"),
    ]
    assert decided(SENT, *lines, "end 0..0").standing is UNDECIDED
    assert decided("send r ok @5 t14..15", *lines, "end 0..0").standing is PERMITTED


def test_a_delivered_record_without_a_known_send_is_lost_with_all_disks() -> None:
    known = evidence(by_hand(*ALL_WIPED, "end 0..0"))
    delivered = Case(TRIAL, None, 12 * SECOND, False, 5, 5, 0, 12 * SECOND)
    assert holders.decided(known, VANISHED, delivered).standing is PERMITTED


def test_a_disk_that_was_wiped_before_it_was_sent_takes_nothing_acknowledged_by_one_alone() -> None:
    lines = [
        "fault before b1 2..4 kind=kill",
        "fault w b1 3..3 kind=wipe",
        *saw("b2,b3", "0..20", 1, 0, "1"),
        *saw("b1", "5..20", 1, 0, "1"),
        "fault killed b1 20..25 kind=kill",
        *saw("b1,b2,b3", "26..60", 1, 1, "1"),
        *CUT,
    ]
    assert decided(SENT, *lines, **ALONE).standing is VIOLATION
    during = [line.replace("w b1 3..3", "w b1 21..21") for line in lines]
    assert decided(SENT, *during, **ALONE).standing is PERMITTED


def test_a_holder_stays_one_whatever_one_that_may_be_behind_tells_of_it() -> None:
    lines = [
        *saw("b2,b3", "0..25", 1, 0, "1,2,3"),
        "fault late b3 11.5..12 kind=isolate",
        "fault killed b1 20..60 kind=kill",
        *saw("b2,b3", "26..60", 2, 1, "2,3"),
        *CUT,
    ]
    assert decided(SENT, *lines, **UNCLEAN).standing is VIOLATION


def test_a_holder_stays_one_while_nobody_reports_anything() -> None:
    lines = [
        *saw("b1,b2,b3", "0..15", 1, 0, "1,2"),
        "fault killed b1 25..60 kind=kill",
        *saw("b2,b3", "26..60", 2, 1, "2"),
        *CUT,
    ]
    assert decided(SENT, *lines, **UNCLEAN).standing is VIOLATION


def test_without_a_final_log_an_election_may_have_taken_it_all_the_same() -> None:
    assert decided(SENT, *LONELY, **UNCLEAN).standing is PERMITTED


def test_a_record_of_two_possible_leaders_goes_only_with_a_permitted_election() -> None:
    """b1 was deposed by b2, and goes on until it hears of it; then b3 leads. b2 alone had its own records."""
    lines = [
        *saw("b1", "0..12", 1, 0, "1,2,3"),
        *saw("b2,b3", "0..9", 1, 0, "1,2,3"),
        *saw("b2,b3", "10..60", 2, 1, "2,3"),
        *saw("b1", "13..60", 2, 1, "2,3"),
        *["final a @4 e0", "final b @5 e1", "end 0..6"],
    ]
    found = decided("send r ok @5 t11..12", *lines, **ALONE)
    assert [(one.term, one.standing) for one in found.possible_terms] == [(0, PERMITTED), (1, VIOLATION)]
    assert (found.standing, found.may_have) == (UNDECIDED, frozenset({1}))


def two_terms(*more: str) -> list[str]:
    """b1 is killed at 20 s, and b2 leads from 22 s on."""
    return [
        *saw("b1", "0..19", 1, 0, "1,2,3"),
        *saw("b2,b3", "0..21", 1, 0, "1,2,3"),
        "fault killed b1 20..60 kind=kill",
        *saw("b2,b3", "22..60", 2, 1, "2,3"),
        *more,
    ]


@pytest.mark.parametrize(
    ("sent", "until", "terms"),
    [
        (10.0, 11.0, [0]),
        (10.0, None, [0, 1]),
        (None, 11.0, [0]),
        (21.0, 23.0, [0, 1]),
        (21.001, 23.0, [1]),
    ],
    ids=["between", "never acknowledged", "nobody knows when it was sent", "as its process ended", "later"],
)
def test_possible_leaders_of_a_record_led_between_its_send_and_its_acknowledgement(
    sent: float | None, until: float | None, terms: list[int]
) -> None:
    """(A broker is heard of for a second.)"""
    known = evidence(by_hand(*two_terms()))
    elections = known.elections[TRIAL]
    sent_ns, until_ns = (None if at is None else int(at * SECOND) for at in (sent, until))
    assert possible_terms(elections, Case(TRIAL, sent_ns, until_ns, True, 5, 5), known.acting(elections)) == terms


def test_when_a_marker_was_written_is_left_out_where_nobody_knows_it() -> None:
    known = evidence(by_hand(*two_terms()))
    each = stories(known, HANGING_TRANSACTION, Case(TRIAL, 10 * SECOND, None, False, 5, 5))
    assert each
    assert all(0 <= change.at_ns < NEVER for story in each for change in story.changes)


def test_in_a_run_that_nothing_disturbed_no_coordinator_lost_anything() -> None:
    """Nobody observes the log of the transaction coordinator: a loss there may hide committed records."""
    committed = {"isolation_level": "read_committed", "unclean_election": True}
    calm = [*saw("b1,b2,b3", "0..60", 1, 0, "1,2,3"), "txn 1 commit ok 0..5..6", "final a @6 e0", "end 0..7"]
    assert decided(SENT, *calm, **committed).standing is VIOLATION
    for more in ("fault elect-1 - 8..8 p1 unclean", "fault f b3 8..9 kind=pause"):
        assert decided(SENT, *calm, more, **committed).standing is UNDECIDED
        assert decided(SENT, *calm, f"{more} missed", **committed).standing is VIOLATION


def test_without_an_observer_a_wipe_that_did_not_act_permits_nothing() -> None:
    assert decided(SENT, "fault w b1 20..21 kind=wipe", *CUT).standing is UNDECIDED
    assert decided(SENT, "fault w b1 20..21 kind=wipe missed", *CUT).standing is VIOLATION
    assert decided(SENT, "fault w c1 20..21 kind=wipe", *CUT).standing is VIOLATION
    assert decided(SENT, "fault w b1 5..6 kind=wipe", *CUT).standing is VIOLATION


def test_of_what_a_consumer_got_with_an_epoch_and_nobody_acknowledged_no_unseen_leader_is_asked() -> None:
    """No broker reported the leader of epoch 1."""
    lines = [line.replace("epoch=1", "epoch=2") for line in LONELY]
    cut = [line.replace("e1", "e2") for line in CUT]
    got = ["send r info t19..", "live r @5 e0 t25"]
    found = decided(*got, *lines, *cut, anomaly=VANISHED, **UNCLEAN)
    assert [one.term for one in found.possible_terms] == [0]
    acknowledged = decided("send r ok @5 t19..26", *lines, *cut, **UNCLEAN)
    assert [one.term for one in acknowledged.possible_terms] == [0, 1, None]


def test_in_a_log_without_epochs_two_leaders_leave_open_who_must_have_had_what_is_in_a_hole() -> None:
    lines = [line.replace("epoch=0", "").replace("epoch=1", "") for line in WHOLE]
    hole = ["final a @4", "final b @6", "end 0..7"]
    both, first = (
        decided(f"send r ok @5 t{when}", *lines, *hole, **ALONE | {"version": "0.10.2.2"})
        for when in ("19..27", "8..9")
    )
    assert (both.standing, first.standing) == (VIOLATION, VIOLATION)
    assert both.must == frozenset()
    assert first.must == frozenset({1})


@pytest.mark.parametrize(
    ("wiped", "joined", "standing"),
    [("b1", "1,2", UNDECIDED), ("b3", "1,2", UNDECIDED), ("b1", "1", PERMITTED), ("b1,b2", "1,2", PERMITTED)],
    ids=["who must have had it", "who was elected", "nobody else may have", "all that may have, too"],
)
def test_the_disks_of_all_that_must_have_had_it_are_not_all_disks_where_another_may_have_it(
    wiped: str, joined: str, standing: Standing
) -> None:
    """The ISR grew while it was in flight, as only b2 reports; then b3 is elected, outside of it."""
    lines = [
        *saw("b1,b2,b3", "0..4", 1, 0, "1"),
        *[*saw("b2", "5..5", 1, 0, joined), *saw("b3", "5..6", 1, 0, "1")],
        f"fault k {'b1,b2' if wiped == 'b1,b2' else 'b1'} 4.9..20 kind=kill",
        f"fault w {wiped} 5.6..6.6 kind=wipe",
        *saw("b3", "8.9..60", 3, 1, "3"),
        *CUT,
    ]
    assert decided("send r ok @5 t4.2..4.8", *lines, **UNCLEAN).standing is standing


@pytest.mark.parametrize(("down", "standing"), [(30, UNDECIDED), (36, VIOLATION)])
@pytest.mark.parametrize("last", [(), saw("b1,b2,b3", "56..60", 1, 4, "1,2")], ids=["who took it", "another"])
def test_a_later_leader_that_may_have_the_record_may_have_brought_it_back(
    down: int, standing: Standing, last: list[str]
) -> None:
    """b2 took it; b1 may have followed it, if it was back by then, and leads; then b2 is elected again."""
    hand = ["fault e1 - 25..25.5 p0 unclean", "fault e2 - 35.2..35.5 p0 unclean"]
    lines = [
        *[*saw("b1", "0..20", 1, 0, "1"), *saw("b2,b3", "0..25", 1, 0, "1"), f"fault killed b1 20..{down} kind=kill"],
        *[*saw("b2,b3", "26..35", 2, 1, "2"), "fault killed2 b2 35..37 kind=kill", *saw("b1,b3", "36..50", 1, 2, "1")],
        *[*saw("b1,b2,b3", "51..55", 2, 3, "2"), *last, "final a @4 e0", "final b @5 e3", "end 0..6", *hand],
    ]
    assert decided(SENT, *lines, unclean_election=False).standing is standing


@pytest.mark.parametrize(
    ("high", "more", "standing"),
    [
        ("", [], PERMITTED),
        ("high=5", [], PERMITTED),
        ("high=6", [], VIOLATION),
        ("", ["live x @7 e1 t9.2"], VIOLATION),
        ("", ["live x @4 e1 t9.2"], PERMITTED),
        ("high=6", ["fault w b1 8.6..8.7 kind=wipe"], PERMITTED),
    ],
    ids=["not reported", "below it", "reported", "delivered above", "delivered below", "its disk was wiped before"],
)
def test_no_clean_election_takes_a_record_that_was_reported_committed_in_the_next_epoch(
    high: str, more: list[str], standing: Standing
) -> None:
    lines = [
        *saw("b1,b2,b3", "0..8", 1, 0, "1,2,3"),
        *[*saw("b1", "9..9", 1, 1, "1,2,3", high), *saw("b2,b3", "9..14", 1, 1, "1,2,3")],
        *["fault killed b1 9.5..40 kind=kill", *saw("b2,b3", "15..60", 2, 2, "2,3")],
        *["final a @4 e0", "final b @5 e2", "end 0..6"],
    ]
    known = evidence(by_hand("send r ok @5 t3..4", "send x ok @7 t8..8.5", *lines, *more), **ALONE)
    read = [Case(TRIAL, None, int(9.2 * SECOND), False, at, at, 1, int(9.2 * SECOND)) for at in delivered_at(more)]
    known = replace(known, delivered=delivered(read, known), _edges={}, _moments={})
    case = Case(TRIAL, 3 * SECOND, 4 * SECOND, True, 5, 5)
    assert holders.decided(known, LOST, case).standing is standing


def delivered_at(lines: list[str]) -> list[int]:
    return [int(line.split("@")[1].split()[0]) for line in lines if line.startswith("live")]


@pytest.mark.parametrize(
    ("wipe", "reported", "standing"),
    [
        (["fault w b3 6..8 kind=wipe"], saw("b2,b3", "20..25", 1, 0, "1,3"), VIOLATION),
        (["fault w b3 6..8 kind=wipe"], ["saw b1 @19.4 leader=1 epoch=0 isr=1,3"], VIOLATION),
        (["fault w b3 22..24.5 kind=wipe"], saw("b2,b3", "20..25", 1, 0, "1,3"), PERMITTED),
        ([], saw("b2,b3", "20..25", 1, 0, "1,3"), VIOLATION),
    ],
    ids=["before it joined", "its leader reported that it joined", "since it joined", "never"],
)
def test_a_broker_that_is_reported_to_join_the_isr_after_its_leaders_last_report_has_filled_its_disk(
    wipe: list[str], reported: list[str], standing: Standing
) -> None:
    lines = [
        *[*saw("b1,b2", "0..19", 1, 0, "1"), *saw("b3", "0..5", 1, 0, "1"), *saw("b3", "9..19", 1, 0, "1"), *reported],
        *["fault k b3 6..8 kind=kill", *wipe, "fault killed b1 19.6..90 kind=kill", *saw("b2,b3", "26..60", 3, 1, "3")],
    ]
    assert decided("send r ok @5 t3..4", *lines, *CUT, unclean_election=False).standing is standing


@pytest.mark.parametrize(
    ("sent", "isr", "fault", "last", "standing"),
    [
        ("18.1..18.3", "1", "stopped b1 19.6..40 kind=stop", 19, UNDECIDED),
        ("17..17.2", "1", "stopped b1 19.6..40 kind=stop", 19, VIOLATION),
        ("17..17.2", "1,3", "stopped b1 19.6..40 kind=stop", 19, UNDECIDED),
        ("3..3.2", "1", "stopped b1 19.6..40 kind=stop", 19, VIOLATION),
        ("17..17.2", "1,3", "killed b1 19.2..40 kind=kill", 24, VIOLATION),
        ("17..17.2", "1,3", "killed b1 19.2..40 kind=kill", 20, UNDECIDED),
        ("17..17.2", "1,3", "cut b1,b2 19.2..40 from=b1 to=b2 plane=all", 24, VIOLATION),
        ("17..17.2", "1,3", "cut b1,b2 19.2..40 from=b1 to=b2 plane=all", 20, UNDECIDED),
        ("17..17.2", "1,3", "cut b1,b2 19.2..40 from=b1 to=b2 plane=all missed", 24, UNDECIDED),
        ("17..17.2", "1,3", "cut b1,b3 19.2..40 from=b1 to=b3 plane=all", 24, UNDECIDED),
    ],
    ids=[
        *("as it may have grown", "it had been before", "its ISR's others may lack it", "before the ISR shrank"),
        *("its process had ended before", "it ended then", "it was cut off before", "it was cut off then"),
        *("it was not cut off", "another was"),
    ],
)
def test_an_isr_may_grow_after_its_last_report_where_that_would_not_have_what_was_acknowledged_then(
    sent: str, isr: str, fault: str, last: int, standing: Standing
) -> None:
    lines = [
        *[*saw("b1,b2,b3", "0..4", 1, 0, "1,2,3"), *saw("b1", "5..19", 1, 0, isr)],
        *[*saw("b2,b3", f"5..{last}", 1, 0, isr), f"fault {fault}", *saw("b2,b3", f"{last + 1}..60", 2, 1, "2"), *CUT],
    ]
    assert decided(f"send r ok @5 t{sent}", *lines, **ALONE).standing is standing


@pytest.mark.parametrize(("sent", "standing"), [("3..4", UNDECIDED), ("12..13", PERMITTED)])
def test_a_wiped_broker_that_rejoins_may_lack_what_only_its_leader_acknowledged(sent: str, standing: Standing) -> None:
    lines = [
        *[*saw("b1,b2", "0..5", 1, 0, "1,2,3"), *saw("b3", "0..5", 1, 0, "1,2,3"), "fault k b3 5.5..8 kind=kill"],
        *["fault w b3 6..7 kind=wipe", *saw("b1,b2", "6..14", 1, 0, "1,2"), *saw("b3", "9..14", 1, 0, "1,2")],
        *[*saw("b1,b2,b3", "15..20", 1, 0, "1,2,3"), "fault killed b1 20.5..90 kind=kill"],
        *[*saw("b2,b3", "26..60", 3, 1, "2,3"), *CUT],
    ]
    assert decided(f"send r ok @5 t{sent}", *lines, **ALONE).standing is standing


ENDED = ["final a @4 e0", "final b @5 e1", "send late ok @6 t100..101", "final late @6 e1", "end 0..7"]
ZOOKEEPER = {"version": "3.9.2", "metadata": "zookeeper"}


@pytest.mark.parametrize(
    ("own", "controller", "until", "standing"),
    [
        ("0.5..4.5", "", 6.6, UNDECIDED),
        ("0.5..4.5", "controller=4", 6.6, UNDECIDED),
        ("0.5..4.5", "controller=3", 6.6, VIOLATION),
        ("0.5..4.5", "controller=4", 40, UNDECIDED),
        ("0.5..11.5", "controller=4", 6.6, VIOLATION),
        ("0.5..11.5", "controller=4", 40, UNDECIDED),
    ],
    ids=[
        *("who is the controller?", "the controller is late", "another", "to the end"),
        *("the leader reports it afterwards", "late, too"),
    ],
)
def test_a_broker_reported_in_the_isr_before_and_after_late_reports_was_in_it(
    own: str, controller: str, until: float, standing: Standing
) -> None:
    """b2, cut from b1, gets nothing; it is reported in the ISR before r was acknowledged, and until 11.5 s."""
    led = [*saw("b1", own, 1, 0, "1,2", controller), *saw("b2,b3", "0.5..11.5", 1, 0, "1,2", controller)]
    led += [*saw("b1,b2,b3", "12..23.7", 1, 0, "1", controller), *saw("b2,b3", "31..110", 2, 1, "2", controller)]
    faults = ["fault c b1,b2 1..98 from=b1 to=b2 plane=replication", "fault k b1 24.2..95 kind=kill"]
    faults += [f"fault f b4 5.6..{until} kind=slow plane=all"]
    assert decided("send r ok @5 t5.9..6.1", *led, *faults, *ENDED, **UNCLEAN, **ZOOKEEPER).standing is standing


@pytest.mark.parametrize("epoch", [0, 1], ids=["the same epoch", "a later epoch"])
def test_a_broker_in_the_isr_before_and_after_was_in_it_in_each_epoch_of_its_leader(epoch: int) -> None:
    """b1 reports nothing from 4.5 s to 12 s; the reports of b2 from 8 s on are not late. b3 is
    killed at 8.1 s: the controller may raise the epoch. b2, cut from b1, was in the ISR until 11.5 s."""
    led = [*saw("b1", "0.5..4.5", 1, 0, "1,2,3"), *saw("b2", "0.5..7.9", 1, 0, "1,2,3")]
    led += [*saw("b3", "0.5..7.5", 1, 0, "1,2,3"), *saw("b2", "8.5..11.5", 1, epoch, "1,2")]
    led += [*saw("b1,b2", "12..23.7", 1, epoch, "1"), *saw("b2", "31..110", 2, epoch + 1, "2")]
    faults = ["fault c b1,b2 1..98 from=b1 to=b2 plane=replication", "fault k b1 24.2..95 kind=kill"]
    faults += ["fault k3 b3 8.1..98 kind=kill", "fault f c1 5.6..7 kind=slow plane=all"]
    log = [line.replace("e1", f"e{epoch + 1}") for line in ENDED]
    assert decided("send r ok @5 t5.9..6.1", *led, *faults, *log, **UNCLEAN).standing is VIOLATION


@pytest.mark.parametrize("later", ["1,2", "1"], ids=["b2 joins later", "nobody joins"])
@pytest.mark.parametrize(("min_isr", "standing"), [(2, UNDECIDED), (1, PERMITTED)])
def test_a_broker_that_joins_later_is_not_the_second_isr_member_of_the_write(
    min_isr: int, later: str, standing: Standing
) -> None:
    """r was acknowledged while b2 and b3 were cut from b1: too early, if either was in the ISR; b3 was elected."""
    led = [*saw("b1,b2,b3", "0.5..8.5", 1, 0, "1,2,3"), *saw("b1,b2,b3", "10.8..13.8", 1, 0, "1")]
    led += [*saw("b1,b2", "14..23", 1, 0, later), *saw("b3", "14..29", 1, 0, later), *saw("b3", "31..110", 3, 1, "3")]
    faults = ["fault f c1 8.8..9.7 kind=slow plane=all", "fault k b1,b2 24.2..95 kind=kill"]
    faults += [
        f"fault c{other} b1,b{other} 5..{to} from=b1 to=b{other} plane=replication" for other, to in ((2, 12), (3, 95))
    ]
    settings = {**UNCLEAN, "min_insync_replicas": min_isr}
    assert decided("send r ok @5 t9..9.2", *led, *faults, *ENDED, **settings).standing is standing


@pytest.mark.parametrize("isr", ["1,2,3", "1"])
def test_a_broker_that_joins_the_isr_of_a_wiped_leader_has_no_earlier_record(isr: str) -> None:
    """r was acknowledged by b1 alone, which was killed, wiped, and elected again with its empty disk."""
    led = [*saw("b1,b2,b3", "0..20.9", 1, 0, "1,2,3"), *saw("b1,b2,b3", "21.2..22.2", 1, 0, "1")]
    led += [*saw("b2,b3", "23.2..25.2", 1, 0, "1"), *saw("b2,b3", "26..28", -1, 1, "1")]
    led += [*saw("b1,b2,b3", "29..29", 1, 2, "1"), *saw("b1,b2,b3", "30..60", 1, 2, isr)]
    faults = ["fault c b1,b2,b3 18.2..25.2 from=b1 to=b2,b3 plane=replication", "fault k b1 22.9..28.4 kind=kill"]
    faults += ["fault w b1 23.7..23.8 kind=wipe", "final late @0 e2", "send late ok @0 t50..51", "end 0..1"]
    assert decided("send r ok @5 t21.94..21.96", *led, *faults, **ZOOKEEPER).standing is PERMITTED


@pytest.mark.parametrize(
    "fault", ["b1 5..60 kind=slow plane=all", "b1,b2,b3 5..60 kind=flaky plane=all", "c1 5..60 kind=slow"]
)
def test_with_acks_1_only_the_leader_must_have_the_record_though_its_reports_are_late(fault: str) -> None:
    """acks=1: the leader is killed, and the records that no follower had fetched are gone."""
    led = [
        *saw("b1", "0..20", 1, 0, "1,2,3"),
        *saw("b2,b3", "0..25", 1, 0, "1,2,3"),
        *saw("b2,b3", "26..110", 2, 1, "2,3"),
    ]
    faults = [f"fault s {fault}", "fault k b1 20.5..40 kind=kill"]
    assert decided("send r ok @5 t15..15.1", *led, *faults, *ENDED, **ALONE).standing is PERMITTED


@pytest.mark.parametrize(
    ("late", "standing"), [("b1,b2,b3 8..15", VIOLATION), ("c1 8..15", VIOLATION), ("b1,b2,b3 8..100", UNDECIDED)]
)
def test_a_broker_still_in_the_isr_after_late_reports_end_must_have_the_record(late: str, standing: Standing) -> None:
    led = [*saw("b1,b2,b3", "0..90", 1, 0, "1,2,3"), *saw("b2,b3", "96..190", 2, 1, "2,3")]
    faults = [f"fault s {late} kind=slow plane=all", "fault k b1 90.5..180 kind=kill"]
    log = [line.replace("t100..101", "t150..151") for line in ENDED]
    assert decided("send r ok @5 t11..11.1", *led, *faults, *log, **UNCLEAN).standing is standing


@pytest.mark.parametrize(
    ("fault", "until", "standing"),
    [
        ("b1,c1 11..16 from=b1 to=c1 plane=controller", 19, UNDECIDED),
        ("b1 11..16 kind=isolate plane=all", 19, UNDECIDED),
        ("b1 11..16 kind=isolate plane=all", 16, PERMITTED),
        ("b1 11..16 kind=isolate plane=replication", 19, VIOLATION),
        ("b1 1..4 kind=isolate plane=all", 19, VIOLATION),
    ],
    ids=["cut from the controller", "isolated", "it reports the new one", "from brokers alone", "long before"],
)
def test_after_a_cut_a_leader_may_report_an_older_isr_than_it_uses(fault: str, until: int, standing: Standing) -> None:
    """b2 is killed; healed, b1 learns the ISR of b1 and b3, but reports the old ISR for some more seconds."""
    led = [*saw("b1", f"0..{until}", 1, 0, "1,2,3"), *saw("b1", f"{until + 1}..24", 1, 0, "1,3")]
    led += [*saw("b3", "0..16", 1, 0, "1,2,3"), *saw("b3", "17..24", 1, 0, "1,3"), *saw("b2", "27..31", 1, 0, "1,3")]
    faults = ["fault k2 b2 8..26 kind=kill", f"fault f {fault}", "fault k b1,b3 25..95 kind=kill"]
    lines = [*led, *faults, *saw("b2", "33..110", 2, 1, "2"), *ENDED]
    assert decided("send r ok @5 t16.9..17.2", *lines, **UNCLEAN).standing is standing


@pytest.mark.parametrize(
    ("fault", "version", "standing"),
    [
        ("b4,b1,b2,b3 15..160 from=b4 to=b1,b2,b3 plane=controller", "2.6.0", UNDECIDED),
        ("b4,b1,b2,b3 15..160 from=b4 to=b1,b2,b3 plane=controller", "2.7.0", VIOLATION),
        ("b4,b1,b2,b3 15..160 from=b4 to=b1,b2,b3 plane=client", "2.6.0", VIOLATION),
        ("b4 15..160 kind=slow plane=controller", "2.6.0", UNDECIDED),
        ("b4 15..160 kind=slow plane=controller", "2.7.0", UNDECIDED),
        ("b4 15..70 kind=slow plane=controller", "2.7.0", VIOLATION),
    ],
    ids=[
        *("cut, before 2.7", "the controller decides", "clients cut from it"),
        *("slow, before 2.7", "slow", "slow until before"),
    ],
)
def test_a_leader_may_report_an_older_isr_than_it_uses_where_the_controller_is_late(
    fault: str, version: str, standing: Standing
) -> None:
    """b1 takes b2 out of the ISR, and reports the ISR that the controller, b4, had sent to all."""
    led = [*saw("b1,b3", "0..149", 1, 0, "1,2,3", "controller=4"), *saw("b2", "0..161", 1, 0, "1,2,3", "controller=4")]
    faults = [f"fault f {fault}", "fault c b1,b2 20..155 from=b1 to=b2 plane=replication"]
    faults += ["fault k b1,b3 150..320 kind=kill", *saw("b2", "163..310", 2, 1, "2", "controller=4")]
    log = ["final a @4 e0", "final b @5 e1", "send late ok @6 t300..301", "final late @6 e1", "end 0..7"]
    settings = {**UNCLEAN, "version": version, "metadata": "zookeeper"}
    assert decided("send r ok @5 t75..76", *led, *faults, *log, **settings).standing is standing


@pytest.mark.parametrize(("unclean", "standing"), [(True, UNDECIDED), (False, VIOLATION)])
def test_a_broker_that_was_briefly_in_the_isr_may_have_earlier_committed_records(
    unclean: bool, standing: Standing
) -> None:
    """b1, which committed r alone, leads again, with b2 in the ISR for too short a time to be sure of it. (A clean
    election shows that b2 was in it.)"""
    found = decided(
        "send r ok @5 t8..8.1",
        *[*saw("b1,b2,b3", "0..11", 1, 0, "1"), "fault k3 b3 4..90 kind=kill", *saw("b1,b2", "12..12.6", 1, 1, "1,2")],
        *["fault k1 b1 12.8..50 kind=kill", "fault w b1 13..14 kind=wipe", *saw("b2", "18..60", 2, 2, "2")],
        *["final a @4 e0", "final b @5 e2", "send late ok @6 t55..56", "end 0..7"],
        unclean_election=unclean,
    )
    assert found.standing is standing


#: b1, alone with b2 in the ISR, is killed; b3 was outside the ISR, and is elected.
OUTSIDE = [
    *saw("b1,b2,b3", "0..9", 1, 0, "1,2,3"),
    *saw("b1", "10..20", 1, 0, "1,2"),
    *saw("b2,b3", "10..25", 1, 0, "1,2"),
    "saw b1 @10.5 leader=1 epoch=0 isr=1,2 high=6",
    "fault killed b1 20..40 kind=kill",
    *saw("b2,b3", "26..60", 3, 1, "3"),
    *("send a ok @4 t1..2", "send r ok @5 t9.5..9.6", "send s ok @6 t19.75..19.76", "final a @4 e0"),
    *("send b ok @5 t54..55", "final b @5 e1", "send late ok @6 t55..56", "final late @6 e1", "end 4..7"),
]


@pytest.mark.heavy
@pytest.mark.parametrize("wipe", [[], ["fault w b1 21..22 kind=wipe"], ["fault w b1 30..31 kind=wipe"]])
def test_a_disk_that_is_wiped_excuses_no_election_of_who_may_lack_what_another_must_have(
    wipe: list[str], spark: SparkSession, tmp_path: Path
) -> None:
    """r is committed, so b2 has it, whatever happens to b1; s, above it, is not, and was permitted to be lost."""
    write(tmp_path, [by_hand(*OUTSIDE, *wipe)], acks="1", unclean_election=True)
    lost = judge(tmp_path, spark).anomalies["lost"]
    assert lost.standing is UNDECIDED
    assert [run["standing"] for run in lost.runs if run["first_offset"] <= 6 <= run["last_offset"]] == [PERMITTED]


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("fifth", "standing"),
    [
        (["send v ok @5 t5..6"], UNDECIDED),
        (["send v info t5..", "live v @5 e0 t7"], UNDECIDED),
        (["send v info t5..", "live v @5 e0 t32"], PERMITTED),
    ],
    ids=["acknowledged", "delivered", "delivered when the ISR was one broker"],
)
def test_above_a_violation_of_any_anomaly_the_same_election_excuses_nothing_undecided(
    fifth: list[str], standing: Standing, spark: SparkSession, tmp_path: Path
) -> None:
    lines = [
        *[*saw("b1,b2,b3", "0..9", 1, 0, "1,2,3"), *saw("b1,b2,b3", "10..29", 1, 0, "1")],
        *["fault killed b1 30..50 kind=kill", *saw("b2,b3", "36..60", 2, 1, "2,3")],
        *["send a ok @4 t1..2", "final a @4 e0", *fifth, "send p ok @6 t9..10", "send q ok @7 t17..18"],
        *["send b ok @5 t54..55", "final b @5 e1", "send late ok @6 t55..56", "final late @6 e1", "end 4..7"],
    ]
    write(tmp_path, [by_hand(*lines)], acks="all", unclean_election=True, min_insync_replicas=1)
    lost = judge(tmp_path, spark).anomalies["lost"].runs
    assert [run["standing"] for run in lost if run["first_offset"] <= 6 <= run["last_offset"]] == [standing]


@pytest.mark.parametrize("acks", ["1", "all"])
@pytest.mark.parametrize("wiped", [[], [1], [1, 2], [3]])
def test_disks_lost_after_a_doubtful_election_do_not_excuse_the_next(acks: str, wiped: list[int]) -> None:
    """b3, outside the ISR, is elected, and may have r; b4 joins its ISR, and is elected next. If b3 had r, so has b4;
    if not, the election of b3 took it."""
    replicas = "replicas=1,2,3,4"
    led = [*saw("b1,b2,b3,b4", "0..9", 1, 0, "1,2,3", replicas), *saw("b1", "10..20", 1, 0, "1,2", replicas)]
    led += [f"saw b1 @10.5 leader=1 epoch=0 isr=1,2 high=6 {replicas}"]
    led += [*saw("b2,b3,b4", "10..25", 1, 0, "1,2", replicas), *saw("b3,b4", "26..35", 3, 1, "3")]
    led += [*saw("b3,b4", "36..50", 3, 1, "3,4"), *saw("b4", "57..100", 4, 2, "3,4")]
    faults = ["fault k1 b1 20..80 kind=kill", "fault k2 b2 27..80 kind=kill", "fault k3 b3 50.5..80 kind=kill"]
    faults += [f"fault w{one} b{one} 30..31 kind=wipe" for one in wiped]
    log = ["final a @4 e0", "final b @5 e2", "send late ok @6 t95..96", "final late @6 e2", "end 4..7"]
    found = decided("send r ok @5 t9.5..9.6", *led, *faults, *log, acks=acks, unclean_election=True)
    assert (found.standing, found.may_have) == (UNDECIDED, frozenset())


@pytest.mark.parametrize(("wiped", "may_have"), [([], {1}), ([1], {1}), ([1, 2], {1}), ([1, 2, 3], {1})])
def test_a_broker_that_joined_the_isr_of_a_doubtful_leader_may_still_have_the_record(
    wiped: list[int], may_have: set[int]
) -> None:
    """All others that may have had r are wiped before b4 is elected: if b3 had r, b4 has it."""
    replicas = "replicas=1,2,3,4"
    led = [*saw("b1,b2,b3,b4", "0..9", 1, 0, "1,2,3", replicas), *saw("b1", "10..20", 1, 0, "1,2", replicas)]
    led += [f"saw b1 @10.5 leader=1 epoch=0 isr=1,2 high=6 {replicas}", *saw("b3,b4", "10..25", 1, 0, "1,2", replicas)]
    led += [*saw("b3,b4", "26..35", 3, 1, "3", replicas), *saw("b3,b4", "36..50", 3, 1, "3,4", replicas)]
    led += [*saw("b4", "51..56", 3, 1, "3,4", replicas), *saw("b4", "57..100", 4, 2, "4", replicas)]
    faults = ["fault k1 b1 20..80 kind=kill", "fault k2 b2 20..80 kind=kill", "fault k3 b3 50.5..80 kind=kill"]
    faults += [f"fault w{one} b{one} 51..52 kind=wipe" for one in wiped]
    log = ["final a @4 e0", "send b ok @5 t93..94", "final b @5 e2", "send late ok @6 t95..96", "final late @6 e2"]
    found = decided("send r ok @5 t9.5..9.6", *led, *faults, *log, "end 4..7", acks="1", unclean_election=True)
    assert (found.standing, found.may_have) == (UNDECIDED, may_have)


def test_an_empty_leader_out_of_an_isr_without_it_is_a_violation_in_whichever_of_its_epochs() -> None:
    """b3, empty, is elected from the ISR of b2 alone, which has r and is dead; next it is alone in the ISR."""
    led = [*saw("b1,b2", "0..6", 1, 0, "1,2,3"), *saw("b3", "0..4", 1, 0, "1,2,3"), *saw("b1,b2", "7..12", 1, 1, "1,2")]
    led += [*saw("b3", "10..12", 1, 1, "1,2"), *saw("b2,b3", "15..25", 2, 2, "2"), *saw("b3", "26.5..27.5", -1, 3, "2")]
    led += [*saw("b3", "30..38", 3, 4, "3"), *saw("b3", "39..160", 3, 5, "3"), *saw("b2", "42..160", 3, 5, "3")]
    faults = ["fault k3 b3 4.5..9 kind=kill", "fault w3 b3 5..6 kind=wipe", "fault k1 b1 12.5..90 kind=kill"]
    log = ["final b @0 e5", "send b ok @0 t41..42", "send late ok @1 t155..156", "final late @1 e5", "end 0..2"]
    lines = ["send r ok @0 t2..2.1", *led, *faults, "fault k2 b2 25.5..41 kind=kill", *log]
    assert decided(*lines, acks="all", unclean_election=False).standing is VIOLATION


@pytest.mark.parametrize("unclean", [False, True])
def test_a_follower_of_a_wiped_last_replica_takes_nothing_when_it_leads(unclean: bool) -> None:
    """b3, alone in the ISR, loses its disk and leads on; b2 joins it without r, and is elected; b1 has it."""
    led = [
        *saw("b1,b2,b3", "0..11", 1, 0, "1,3"),
        *saw("b2,b3", "12..17", 1, 0, "1,3"),
        *saw("b2,b3", "18..20", 3, 1, "3"),
    ]
    led += [*saw("b2", "21..24", 3, 1, "3"), *saw("b2", "25..25", -1, 2, "3"), *saw("b2,b3", "26..27", 3, 3, "3")]
    led += [*saw("b2,b3", "28..35", 3, 3, "2,3"), *saw("b2", "36..41", 3, 3, "2,3"), *saw("b2", "42..160", 2, 4, "2")]
    led += saw("b1", "91..160", 2, 4, "1,2")
    faults = ["fault c b1,b2,b3 1..27 from=b1,b3 to=b2 plane=replication", "fault k1 b1 11.5..90 kind=kill"]
    faults += ["fault k3 b3 20.5..25 kind=kill", "fault w3 b3 21..22 kind=wipe", "fault k4 b3 35.5..150 kind=kill"]
    log = ["final b @5 e4", "send b ok @5 t60..61", "send late ok @6 t155..156", "final late @6 e4", "end 0..7"]
    found = decided("send r ok @5 t10..10.1", *led, *faults, *log, acks="all", unclean_election=unclean)
    assert found.standing is PERMITTED


def test_an_unreported_isr_before_an_election_may_have_been_another() -> None:
    """b3 is dead when r is acknowledged: so it was not in the ISR, though it is in the last that was reported."""
    led = [
        *saw("b1,b2,b3", "0..6", 1, 0, "1,2,3"),
        *saw("b2,b3", "8..10", 2, 1, "2,3"),
        *saw("b3", "28..160", 3, 2, "3"),
    ]
    led += [*saw("b1,b2", "61..160", 3, 2, "3"), "fault k1 b1 6.5..60 kind=kill", "fault k3 b3 12..26 kind=kill"]
    log = ["final a @4 e0", "send b ok @5 t70..71", "final b @5 e2", "send late ok @6 t155..156", "final late @6 e2"]
    lines = ["send r ok @5 t20..20.1", *led, "fault k2 b2 22.5..60 kind=kill", *log, "end 0..7"]
    assert decided(*lines, acks="all", **UNCLEAN).standing is UNDECIDED


def test_a_leader_whose_term_was_reported_late_may_have_lost_its_disk_when_it_led() -> None:
    """b3 is elected with r, alone in the ISR, dies, and leads on with an empty disk."""
    led = [
        *saw("b1,b2,b3", "0..2", 1, 0, "1,2,3"),
        *saw("b2", "17..18", 3, 1, "3"),
        *saw("b3", "18.3..18.3", -1, 2, "3"),
    ]
    led += [
        *saw("b2,b3", "19..36", 3, 3, "3"),
        *saw("b2,b3", "37..160", 3, 3, "2,3"),
        *saw("b1", "61..160", 3, 3, "2,3"),
    ]
    faults = ["fault k1 b1 3..60 kind=kill", "fault c2 b3,b2 7..35 from=b3 to=b2 plane=replication"]
    faults += ["fault k3 b3 14.8..17.9 kind=kill", "fault w3 b3 15.7..16.3 kind=wipe"]
    log = ["send b ok @0 t70..71", "final b @0 e3", "send late ok @1 t155..156", "final late @1 e3", "end 0..2"]
    found = decided("send r ok @0 t0.5..0.9", *led, *faults, *log, acks="all", unclean_election=False)
    assert found.standing is UNDECIDED


def deposed(*then: str, killed: float = 15.9) -> Standing:
    """b1 is cut off, and b3 is elected; b1 writes r, and a consumer gets it. The final log has at its offset what b3
    wrote in its first term: it seems that its first election took r."""
    lines = [
        *[*saw("b1", "0..16", 1, 0, "1,2,3"), *saw("b2,b3", "0..10", 1, 0, "1,2,3")],
        *[f"fault k2 b2 {killed}..70 kind=kill", *saw("b2,b3", "10.7..15.5", 3, 1, "2,3"), *then],
        *["send r ok @5 t14.8..14.9", "live r @5 e0 t19.4", "send a ok @4 t1..2", "final a @4 e0"],
        *["send b ok @5 t12..13", "final b @5 e1", "send late ok @6 t55..56", "final late @6 e3", "end 0..7"],
    ]
    return decided(*lines, anomaly=VANISHED, acks="1", unclean_election=True).standing


def test_records_of_a_deposed_leader_may_be_committed_when_it_leads_again() -> None:
    """b1 leads again, alone in the ISR, before the consumer got r: so r was committed then. At last b3 is elected
    without r, as the settings permit."""
    cut = ["fault i1 b1 9..16 kind=isolate plane=all", "fault i3 b3 14..29.6 kind=isolate plane=all"]
    again = [*saw("b1", "17.5..29", 1, 2, "1"), "fault k1 b1 29..70 kind=kill", *saw("b3", "30.2..60", 3, 3, "3")]
    assert deposed(*cut, *again) is UNDECIDED


def test_a_second_term_after_the_delivery_did_not_commit_the_record() -> None:
    cut = ["fault i1 b1 9..24 kind=isolate plane=all", "fault i3 b3 14..29.6 kind=isolate plane=all"]
    led = [*saw("b2", "16..24", 3, 1, "2,3"), *saw("b1", "25.5..29", 1, 2, "1"), *saw("b3", "30.2..60", 3, 3, "3")]
    assert deposed(*cut, *led, "fault k1 b1 29..70 kind=kill", killed=24.2) is VIOLATION


def test_a_record_delivered_by_a_leader_that_never_led_again_was_not_committed() -> None:
    cut = ["fault i1 b1 9..70 kind=isolate plane=all", "fault i3 b3 14..25 kind=isolate plane=all"]
    led = [*saw("b3", "16..20", 3, 1, "2,3"), *saw("b3", "21..29", 3, 2, "3"), *saw("b3", "30..60", 3, 3, "3")]
    assert deposed(*cut, *led) is VIOLATION


@pytest.mark.parametrize(
    ("third", "standing"),
    [
        (["fault k3 b3 12..14.5 kind=kill", "fault w3 b3 12.6..12.9 kind=wipe"], UNDECIDED),
        (["fault k3 b3 12..20 kind=kill", "fault w3 b3 16..17 kind=wipe"], UNDECIDED),
        (["fault k3 b3 12..20 kind=kill"], VIOLATION),
        (["fault k3 b3 13.7..20 kind=kill", "fault w3 b3 14..15 kind=wipe"], VIOLATION),
        (
            ["fault k3 b3 12..13.2 kind=kill", "fault k4 b3 13.9..20 kind=kill", "fault w3 b3 14..15 kind=wipe"],
            VIOLATION,
        ),
    ],
    ids=["wiped before", "wiped later", "not wiped", "it ran", "it ran again"],
)
def test_nobody_may_have_followed_an_empty_leader_before_the_last_disk_was_lost(
    third: list[str], standing: Standing
) -> None:
    """b1 dies, and its disk is wiped; it gets a new epoch while it is dead. b3 has r until its disk is wiped, too."""
    led = [
        *saw("b1,b2,b3", "0..2.5", 1, 0, "1,2,3"),
        *saw("b1", "2.6..6", 1, 0, "1,2,3"),
        *saw("b3", "2.6..8", 1, 0, "1,2,3"),
    ]
    led += [
        *saw("b3", "9.4..11.9", 1, 1, "1,3"),
        "saw b1 @14.5 leader=-1 epoch=3 isr=3",
        *saw("b1", "17..60", 1, 4, "1"),
    ]
    led += [*saw("b2", "17..60", 1, 4, "1"), *saw("b3", "21..60", 1, 4, "1")]
    faults = ["fault k2 b2 3..13.5 kind=kill", "fault w2 b2 6..8 kind=wipe", "fault k1 b1 6.2..13.4 kind=kill"]
    faults += ["fault w1 b1 8.3..9.8 kind=wipe", *third]
    log = ["final b @0 e4", "send b ok @0 t41..42", "send late ok @1 t55..56", "final late @1 e4", "end 0..2"]
    assert decided("send r ok @0 t0.5..0.9", *led, *faults, *log, acks="all", **UNCLEAN).standing is standing


@pytest.mark.parametrize(
    ("joined", "wrote", "back", "standing"),
    [
        ("1,2", 3, 32, UNDECIDED),
        ("2", 3, 32, PERMITTED),
        ("1,2", 2, 32, UNDECIDED),
        ("2", 2, 32, UNDECIDED),
        ("1,2", 2, 30, UNDECIDED),
    ],
)
def test_joins_and_writes_of_a_term_happened_before_its_leader_was_wiped(
    joined: str, wrote: int, back: int, standing: Standing
) -> None:
    """b2, alone in the ISR, acknowledges r, is killed, leads again, is killed again, and loses its disk before its
    second term is reported. If b1 joined the ISR, or b2 wrote in the place of r, that was before."""
    led = [*saw("b1,b2,b3", "0..9", 2, 0, "1,2,3"), *saw("b1,b2,b3", "10..15", 2, 0, "2")]
    led += [*saw("b1,b3", "16..27", -1, 1, "2"), *saw("b1,b3", "28.2..30.2", 2, 2, joined)]
    led += [*saw("b1,b3", "31..60", 1, 3, "1"), *saw("b2", "33..60", 1, 3, "1")]
    faults = [
        "fault k1 b2 15.5..26.8 kind=kill",
        f"fault k2 b2 27.5..{back} kind=kill",
        "fault w b2 28..28.1 kind=wipe",
    ]
    log = ["final a @4 e0", "send b info t27..", f"final b @5 e{wrote}", "send late ok @6 t50..51", "final late @6 e3"]
    found = decided("send r ok @5 t12..12.1", *led, *faults, *log, "end 0..7", acks="1", **UNCLEAN)
    assert found.standing is standing


#: b1 is killed at 20.2 s, and b2 elected.
B2_LEADS = ["fault k b1 20.2..60 kind=kill", *saw("b2,b3", "26..60", 2, 1, "2"), *CUT]
BY_HAND = "fault elect-1 - 25.8..26 p0 unclean"


@pytest.mark.parametrize(
    ("to", "since", "more", "settings"),
    [
        ("10", "18..20", [], UNCLEAN),
        ("10", "18..20", ["fault q b1 10.4..17.5 kind=isolate plane=client clients=cut"], UNCLEAN),
        ("13", "15.9..19.9", [], UNCLEAN),
        ("10", None, [], UNCLEAN),
        ("10", "18..20", [], UNCLEAN | {"version": "2.8.1", "metadata": "zookeeper"}),
        ("10", "18..20", [BY_HAND], {"unclean_election": False}),
    ],
    ids=["nothing", "to nobody", "for less than 3 s", "any more", "with ZooKeeper", "and an election by hand"],
)
def test_a_broker_that_joined_while_its_leader_was_silent_must_have_committed_records(
    to: str, since: str | None, more: list[str], settings: dict[str, Any]
) -> None:
    own = [*saw("b1", f"0..{to}", 1, 0, "1"), *(saw("b1", since, 1, 0, "1") if since else [])]
    others = [*saw("b2,b3", "0..13", 1, 0, "1"), *saw("b2,b3", "13.5..15.5", 1, 0, "1,2")]
    others += saw("b2,b3", "16..25", 1, 0, "1")
    assert decided("send r ok @5 t5..6", *own, *others, *more, *B2_LEADS, **settings).standing is VIOLATION


@pytest.mark.parametrize(
    ("sent", "standing"),
    [("10..10.2", VIOLATION), ("11.2..11.4", VIOLATION), ("11.6..11.8", UNDECIDED), ("14..14.2", PERMITTED)],
)
def test_the_isr_that_others_report_while_the_leader_is_silent_is_in_doubt(sent: str, standing: Standing) -> None:
    """b1 reports nothing from 10 s to 12.9 s."""
    own = [*saw("b1", "0..10", 1, 0, "1"), *saw("b1", "12.9..19.9", 1, 0, "1")]
    others = [*saw("b2,b3", "0..10", 1, 0, "1"), *saw("b2,b3", "10.5..12.5", 1, 0, "1,2")]
    others += saw("b2,b3", "12.8..25.8", 1, 0, "1")
    assert decided(f"send r ok @5 t{sent}", *own, *others, *B2_LEADS, **UNCLEAN).standing is standing


#: b2 and b3 report from 19.7 s on that b2 joined; b1 reported last at 20 s that it had not.
JOINED_LAST = [
    *saw("b1", "0..20", 1, 0, "1"),
    *saw("b2,b3", "0..19", 1, 0, "1"),
    *saw("b2,b3", "19.7..25.7", 1, 0, "1,2"),
]


@pytest.mark.parametrize("sent", ["18.2..18.4", "18.5..18.9", "18.5..19.01"])
@pytest.mark.parametrize(
    ("more", "settings"),
    [(["fault w b1 20.3..40 kind=wipe"], UNCLEAN), ([BY_HAND], {"unclean_election": False})],
    ids=["all disks", "by hand"],
)
def test_a_broker_still_in_the_isr_one_lag_after_the_commit_must_have_the_record(
    sent: str, more: list[str], settings: dict[str, Any]
) -> None:
    assert decided(f"send r ok @5 t{sent}", *JOINED_LAST, *more, *B2_LEADS, **settings).standing is VIOLATION


def test_a_broker_in_the_isr_for_less_than_a_lag_after_the_commit_may_have_the_record() -> None:
    """r was committed at 19.3 s: an ISR that was reported until 20.2 s may be older."""
    lines = [line.replace("@19.7..25.7", "@19.7") for line in JOINED_LAST]
    lines += [*saw("b2,b3", "20.2..20.2", 1, 0, "1,2"), *saw("b2,b3", "20.5..25.5", 1, 0, "1")]
    assert decided("send r ok @5 t19..19.3", *lines, *B2_LEADS, **UNCLEAN).standing is UNDECIDED


@pytest.mark.parametrize("again", [False, True], ids=["one that fell silent", "nobody"])
def test_an_isr_that_others_left_behind_is_not_the_last_though_its_report_began_last(again: bool) -> None:
    """b3 reports at 11 s that b1 is alone in the ISR, and is killed. b2 is reported in it until 23 s; b3 is elected."""
    lines = [*saw("b1,b2,b3", "0..10", 1, 0, "1,2"), *saw("b3", "11..11", 1, 0, "1")]
    lines += ["fault k3 b3 11.2..22 kind=kill", *saw("b1", "12..20", 1, 0, "1,2"), *saw("b2", "12..23", 1, 0, "1,2")]
    lines += ["fault k1 b1 20.2..60 kind=kill", *saw("b2,b3", "24..60", 3, 1, "3"), *CUT]
    lines = [line for line in lines if again or "@11..11" not in line]
    assert decided("send r ok @5 t14..15", *lines, **UNCLEAN).standing is UNDECIDED


@pytest.mark.parametrize("reported", [False, True], ids=["nobody", "one that fell silent"])
@pytest.mark.parametrize(
    ("sent", "settings", "standing"), [("15..16", UNCLEAN, PERMITTED), ("19.5..20", ALONE, VIOLATION)]
)
def test_an_isr_that_others_left_behind_makes_no_election_clean(
    sent: str, settings: dict[str, Any], standing: Standing, reported: bool
) -> None:
    """b3 was in the ISR at 10.5 s, as b4 reports late, and last. Then b1 was alone; b3 is elected."""
    lines = [*saw("b1,b2,b3,b4", "0..10", 1, 0, "1"), *saw("b1,b2,b3", "10.5..10.5", 1, 0, "1,3")]
    lines += [*(saw("b4", "11.1..11.1", 1, 0, "1,3") if reported else []), "fault k4 b4 11.2..90 kind=kill"]
    lines += [*saw("b1", "11..20", 1, 0, "1"), *saw("b2,b3", "11..24", 1, 0, "1"), "fault k1 b1 20.2..60 kind=kill"]
    lines += [*saw("b2,b3", "25..60", 3, 1, "3"), *CUT]
    found = decided(f"send r ok @5 t{sent}", *lines, **settings)
    assert (found.standing, found.event and found.event.in_isr) == (standing, False)


def test_the_old_isr_that_a_broker_behind_still_reports_does_not_count() -> None:
    """b4 is cut off, and still reports that b2 was in the ISR when b1, alone in it, is killed."""
    lines = [*saw("b1,b2,b3,b4", "0..10", 1, 0, "1,2"), "fault c b4 10.2..60 kind=isolate plane=all clients=kept"]
    lines += [*saw("b1", "11..20", 1, 0, "1"), *saw("b2,b3", "11..20", 1, 0, "1"), *saw("b4", "11..23", 1, 0, "1,2")]
    lines += ["fault k1 b1 20.2..60 kind=kill", *saw("b2,b3", "22..60", 3, 1, "3"), *CUT]
    assert decided("send r ok @5 t14..15", *lines, **UNCLEAN).standing is PERMITTED


@pytest.mark.parametrize("reported", ["25.8", "26", "26.2"])
def test_a_term_that_was_first_reported_after_the_next_one_had_an_isr_of_its_own(reported: str) -> None:
    """b2 led from an ISR of its own before b3; it runs, and b3 is elected all the same."""
    lines = [
        *saw("b1,b2,b3", "0..11", 1, 0, "1,2"),
        *saw("b1", "12..20", 1, 0, "1"),
        *saw("b2,b3", "12..25", 1, 0, "1"),
    ]
    lines += ["fault k b1 20.2..90 kind=kill", *saw("b2", f"{reported}..{reported}", 2, 1, "2")]
    lines += [*saw("b3", "26..60", 3, 2, "3"), *saw("b2", "27..60", 3, 2, "3")]
    log = ["final a @4 e0", "final b @5 e2", "send late ok @6 t50..51", "final late @6 e2", "end 0..7"]
    assert decided("send r ok @5 t5..6", *lines, *log, **UNCLEAN).standing is UNDECIDED


@pytest.mark.parametrize("sent", ["9.5..9.85", "11.2..11.4"])
def test_an_isr_that_others_report_just_before_the_leader_is_silent_counts(sent: str) -> None:
    own = [*saw("b1", "0..10", 1, 0, "1"), *saw("b1", "12.9..19.9", 1, 0, "1")]
    others = [*saw("b2,b3", "0..9", 1, 0, "1"), *saw("b2,b3", "9.8..12.8", 1, 0, "1,2")]
    others += saw("b2,b3", "13..25", 1, 0, "1")
    assert decided(f"send r ok @5 t{sent}", *own, *others, *B2_LEADS, **UNCLEAN).standing is VIOLATION


def test_the_isr_last_reported_before_a_send_in_a_silence_is_in_doubt() -> None:
    own = [*saw("b1", "0..10", 1, 0, "1"), *saw("b1", "12.9..19.9", 1, 0, "1")]
    others = [*saw("b2,b3", "0..10", 1, 0, "1"), *saw("b2,b3", "10.5..12.5", 1, 0, "1,2")]
    others += saw("b2,b3", "12.8..25.8", 1, 0, "1")
    assert decided("send r ok @5 t12.55..12.7", *own, *others, *B2_LEADS, **UNCLEAN).standing is UNDECIDED


@pytest.mark.parametrize("fault", [[], ["fault c b2,b3 12.6..12.8 kind=isolate plane=all clients=kept"]])
def test_a_fault_after_a_report_does_not_take_it_away(fault: list[str]) -> None:
    own = [*saw("b1", "0..10", 1, 0, "1"), *saw("b1", "12.9..19.9", 1, 0, "1")]
    others = [*saw("b2,b3", "0..10", 1, 0, "1"), *saw("b2,b3", "10.5..11.5", 1, 0, "1,2")]
    others += saw("b2,b3", "12.7..25.7", 1, 0, "1")
    assert decided("send r ok @5 t11.4..11.8", *own, *others, *fault, *B2_LEADS, **UNCLEAN).standing is UNDECIDED


@pytest.mark.parametrize("when", ["0..10", "14.2..19.2"], ids=["at first", "late"])
def test_a_leader_that_reports_nothing_at_first_pauses(when: str) -> None:
    others = [*saw("b2,b3", "0..11", 1, 0, "1"), *saw("b2,b3", "11.5..13.5", 1, 0, "1,2")]
    others += saw("b2,b3", "14..25", 1, 0, "1")
    own = saw("b1", when, 1, 0, "1")
    assert decided("send r ok @5 t5..6", *own, *others, *B2_LEADS, **UNCLEAN).standing is VIOLATION


@pytest.mark.parametrize("between", ["1,3", "1,2,3"])
def test_a_broker_reported_in_the_isr_all_the_time_did_not_join_after_its_wipe(between: str) -> None:
    """b1 reports nothing from 10 s to 12.9 s. b2 loses its disk at 17.2 s."""
    own = [*saw("b1", "0..10", 1, 0, "1"), *saw("b1", "12.9..19.9", 1, 0, "1,2,3")]
    others = [*saw("b2,b3", "0..10", 1, 0, "1"), *saw("b3", "10.5..11.5", 1, 0, between)]
    others += [*saw("b3", "12.2..20.2", 1, 0, "1,2,3"), *saw("b2", "12.2..16.2", 1, 0, "1,2,3")]
    others += [*saw("b2,b3", "21..25", 1, 0, "1,2")]
    lost = ["fault k2 b2 17..18.2 kind=kill", "fault w2 b2 17.2..18 kind=wipe"]
    assert decided("send r ok @5 t5..6", *own, *others, *lost, *B2_LEADS, **UNCLEAN).standing is UNDECIDED


@pytest.mark.parametrize("again", [[], ["saw b4 @30 leader=1 epoch=0 isr=1"]], ids=["nothing", "what it did before"])
def test_a_report_repeated_after_a_pause_does_not_cover_the_pause(again: list[str]) -> None:
    """b4 reports at 11 s that b1 is alone, and is paused. b2 is in sync and up, and b3 elected."""
    lines = [*saw("b1,b2,b3,b4", "0..10", 1, 0, "1,2"), "saw b4 @11 leader=1 epoch=0 isr=1"]
    lines += ["fault p4 b4 11.6..29.8 kind=pause", *again, *saw("b4", "31..60", 3, 1, "3")]
    lines += [*saw("b1", "12..20", 1, 0, "1,2"), *saw("b2,b3", "12..23", 1, 0, "1,2")]
    lines += ["fault k1 b1 20.2..60 kind=kill", *saw("b2,b3", "24..60", 3, 1, "3"), *CUT]
    assert decided("send r ok @5 t14..15", *lines, **UNCLEAN).standing is UNDECIDED


@pytest.mark.parametrize("sent", ["4.41..4.5", "15..15.2"])
@pytest.mark.parametrize("again", [[], ["saw b3 @30 leader=1 epoch=0 isr=1,2"]], ids=["nothing", "what it did before"])
def test_a_report_repeated_after_a_pause_accuses_nobody(sent: str, again: list[str]) -> None:
    """b3 reports at 5 s that b2 is in sync, which b1 and b2 do not any more, and is paused."""
    lines = [*saw("b1", "0..4", 1, 0, "1,2"), *saw("b1", "4.4..19.4", 1, 0, "1"), *saw("b2", "0..4", 1, 0, "1,2")]
    lines += [*saw("b2", "4.4..25.4", 1, 0, "1"), "saw b3 @5 leader=1 epoch=0 isr=1,2"]
    lines += ["fault p b3 5.6..29.8 kind=pause", *again, "fault k b1 20.2..60 kind=kill"]
    lines += [*saw("b2", "26..60", 2, 1, "2"), *saw("b3", "31..60", 2, 1, "2"), *CUT]
    assert decided(f"send r ok @5 t{sent}", *lines, **UNCLEAN).standing is PERMITTED


@pytest.mark.parametrize("reported", ["25.8", "26.2"], ids=["before", "after"])
@pytest.mark.parametrize(
    ("report", "later"),
    [("leader=-1 epoch=1 isr=2", 2), ("leader=1 epoch=0 isr=1,2", 1)],
    ids=["without a leader", "of the leader before"],
)
def test_nobody_knows_of_which_isr_a_leader_was_elected_if_one_is_reported_afterwards(
    report: str, later: int, reported: str
) -> None:
    lines = [
        *saw("b1,b2,b3", "0..4", 1, 0, "1,2"),
        *saw("b1", "4.5..20", 1, 0, "1"),
        *saw("b2,b3", "4.5..25", 1, 0, "1"),
    ]
    lines += ["fault k b1 20.2..90 kind=kill", f"saw b2 @{reported} {report}"]
    lines += [*saw("b3", "26..60", 3, later, "3"), *saw("b2", "27..60", 3, later, "3")]
    log = [line.replace("e1", f"e{later}") for line in CUT]
    assert decided("send r ok @5 t15..16", *lines, *log, **UNCLEAN).standing is UNDECIDED


#: b1 is alone in the ISR since 4.5 s, and killed at 20.2 s; b3 is elected.
ALONE_AT_LAST = [
    *saw("b1,b2,b3", "0..4", 1, 0, "1,2"),
    *saw("b1", "4.5..19.5", 1, 0, "1"),
    *saw("b2,b3", "4.5..25.5", 1, 0, "1"),
]


@pytest.mark.parametrize(
    "lines",
    [
        ["fault k b1 20.2..90 kind=kill", *saw("b2", "26.2..32.2", 1, 0, "1,2"), *saw("b2", "45..60", 3, 1, "3")],
        [
            *("fault k b1 20.2..90 kind=kill", *saw("b2", "26.2..32.2", 1, 0, "1,2"), *saw("b2", "45..60", 3, 1, "3")),
            "fault i b2 26.5..40 kind=isolate plane=all clients=kept",
        ],
        [
            *("fault k b1 25.85..90 kind=kill", "fault m c1 25.8..28 kind=kill"),
            *("saw b2 @26.2 leader=1 epoch=0 isr=1,2", *saw("b2", "27..60", 3, 1, "3")),
        ],
    ],
    ids=["reported late", "and cut off afterwards", "by one that may be behind, but had reported the other"],
)
def test_an_isr_that_is_reported_late_is_newer_than_what_the_same_broker_reported_before(lines: list[str]) -> None:
    led = [*ALONE_AT_LAST, *saw("b3", "26..60", 3, 1, "3"), *CUT]
    assert decided("send r ok @5 t15..16", *lines, *led, **UNCLEAN).standing is UNDECIDED


@pytest.mark.parametrize(
    ("late", "standing"),
    [
        ("leader=1 epoch=0 isr=1", PERMITTED),
        ("leader=-1 epoch=0 isr=1,2", PERMITTED),
        ("leader=1 epoch=0 isr=3", UNDECIDED),
    ],
    ids=["fewer", "the same", "the elected one"],
)
def test_an_isr_that_is_reported_late_admits_nobody_else_if_it_is_a_part_of_the_other(
    late: str, standing: Standing
) -> None:
    """b1 and b2, the ISR, are killed; b3 is elected."""
    led = [*saw("b1,b2,b3", "0..20", 1, 0, "1,2"), *saw("b3,b4", "21..25", 1, 0, "1,2"), f"saw b4 @26.2 {late}"]
    led += ["fault k b1,b2 20.2..90 kind=kill", *saw("b3", "26..60", 3, 1, "3"), *saw("b4", "27..60", 3, 1, "3"), *CUT]
    assert decided("send r ok @5 t15..16", *led, **UNCLEAN).standing is standing


@pytest.mark.parametrize("reported", ["25.8", "26.2"])
def test_nobody_knows_whether_an_election_was_clean_if_another_isr_is_reported_late(reported: str) -> None:
    led = [
        *saw("b1", "0..20", 1, 0, "1,3"),
        *saw("b2,b3", "0..25", 1, 0, "1,3"),
        f"saw b2 @{reported} leader=1 epoch=0 isr=1",
    ]
    led += ["fault k b1 20.2..90 kind=kill", *saw("b3", "26..60", 3, 1, "3"), *saw("b2", "27..60", 3, 1, "3"), *CUT]
    assert decided("send r ok @5 t19.5..20", *led, **ALONE).standing is UNDECIDED


def test_no_election_before_a_delivery_took_the_delivered_record() -> None:
    """b2 may have had r when it was elected, or not. A consumer got r when b1 was over: b3's election took it."""
    led = [*saw("b1,b2,b3", "0..9", 1, 0, "1"), *saw("b2,b3", "9.6..9.6", 1, 0, "1,2"), "fault k b1 9.7..90 kind=kill"]
    led += [*saw("b2", "10..20", 2, 1, "2"), *saw("b3", "10..25", 2, 1, "2"), "fault k2 b2 20.2..90 kind=kill"]
    log = ["final a @4 e0", "final b @5 e2", "final c @6 e2", "send late ok @7 t55..56", "final late @7 e2", "end 0..8"]
    got = ["live r @5 e0 r1 t19"]
    found = decided("send r ok @5 t9.2..9.3", *got, *led, *saw("b3", "26..60", 3, 2, "3"), *log, **UNCLEAN)
    assert (found.standing, found.may_not_have) == (UNDECIDED, frozenset())


def test_a_decision_names_permitted_and_forbidden_elections_apart() -> None:
    """r was acknowledged while the ISR shrank; b2 was elected out of sync, and b3 from b2's ISR."""
    led = [
        *saw("b1,b2,b3", "0..9", 1, 0, "1,2,3"),
        *saw("b1,b2,b3", "10..29", 1, 0, "1"),
        "fault k b1 30..90 kind=kill",
    ]
    led += [*saw("b2,b3", "36..36", 2, 1, "2"), *saw("b2,b3", "38..59", 2, 1, "2,3"), "fault k2 b2 60..90 kind=kill"]
    log = [line.replace("e1", "e2") for line in CUT]
    found = decided("send r ok @5 t9..10", *led, *saw("b3", "66..90", 3, 2, "3"), *log, **UNCLEAN)
    assert (found.standing, found.may_have, found.may_not_have) == (UNDECIDED, {1}, {2})


def test_a_record_of_either_of_two_leaders_may_go_with_the_records_of_the_first() -> None:
    led = [*saw("b1,b2,b3", "0..20", 1, 0, "1,2,3"), *saw("b1,b2,b3", "21..60", 2, 1, "1,2,3")]
    found = decided("send r ok @5 t19..20", *led, *CUT, **ALONE)
    assert (found.standing, len(found.possible_terms), found.may_have) == (UNDECIDED, 2, {1})


@pytest.mark.parametrize("cut", [[], ["fault q b2 4.3..26.1 kind=isolate plane=client clients=cut"]])
def test_a_report_repeated_after_the_next_term_began_is_new_if_the_broker_is_not_behind(cut: list[str]) -> None:
    """b2, which nobody could ask for a time, reports the same ISR as before that."""
    lines = [
        *saw("b1,b2,b3", "0..4", 1, 0, "1,2"),
        *saw("b1", "4.5..19.5", 1, 0, "1"),
        *saw("b3", "4.5..25.5", 1, 0, "1"),
    ]
    lines += ["fault k b1 20.2..90 kind=kill", *cut, "saw b2 @26.2 leader=1 epoch=0 isr=1,2"]
    lines += [*saw("b3", "26..60", 3, 1, "3"), *saw("b2", "27..60", 3, 1, "3"), *CUT]
    assert decided("send r ok @5 t15..16", *lines, **UNCLEAN).standing is UNDECIDED


def test_an_epoch_that_nobody_had_reported_is_newer_though_a_broker_that_may_be_behind_reports_it() -> None:
    lines = [
        *saw("b1,b2,b3", "0..4", 1, 0, "1,2"),
        *saw("b1", "4.5..19.5", 1, 0, "1"),
        *saw("b3", "4.5..25.5", 1, 0, "1"),
    ]
    lines += ["fault k b1 20.2..90 kind=kill", "fault i b2 4.3..26.1 kind=isolate plane=all clients=cut"]
    lines += ["saw b2 @26.2 leader=-1 epoch=1 isr=2", *saw("b3", "26..60", 3, 2, "3"), *saw("b2", "28..60", 3, 2, "3")]
    log = [line.replace("e1", "e2") for line in CUT]
    assert decided("send r ok @5 t15..16", *lines, *log, **UNCLEAN).standing is UNDECIDED


#: b1, which leads with b2 in the ISR, is stopped at 20.2 s, and b3 elected at once.
STOPPED = [
    *saw("b1,b3", "0..20", 1, 0, "1,2"),
    "fault k b1 20.2..60 kind=stop",
    *saw("b3", "21..60", 3, 1, "3"),
    *saw("b2", "45..60", 3, 1, "3"),
    *CUT,
]


@pytest.mark.parametrize("kind", ["pause", "isolate plane=all clients=cut"])
@pytest.mark.parametrize(("when", "standing"), [("17..19.1", UNDECIDED), ("17..40", UNDECIDED), ("12..40", PERMITTED)])
def test_a_broker_whose_session_did_not_expire_could_be_elected(when: str, standing: Standing, kind: str) -> None:
    """b2 was silent before the election of b3, for less than a session or for longer."""
    lines = [*STOPPED, *saw("b2", f"0..{int(when[:2]) - 1}", 1, 0, "1,2"), f"fault f b2 {when} kind={kind}"]
    assert decided(SENT, *lines, silence_ns=5 * SECOND, **UNCLEAN).standing is standing


def test_sessions_may_be_shorter() -> None:
    lines = [*STOPPED, *saw("b2", "0..16", 1, 0, "1,2"), "fault f b2 17..40 kind=pause"]
    assert decided(SENT, *lines, silence_ns=2 * SECOND, **UNCLEAN).standing is PERMITTED


@pytest.mark.parametrize("faults", [["fault p b1,b2 14..80 kind=pause ended=b2:16"], ["p1 b1 14..80", "p2 b2 14..16"]])
def test_a_fault_that_ended_earlier_on_a_broker_does_not_prevent_its_election(faults: list[str]) -> None:
    """No client hears b2; it runs again long before b3 is elected."""
    lines = [*saw("b1", "0..13", 1, 0, "1,2"), *saw("b2", "0..12", 1, 0, "1,2"), *saw("b3", "0..25", 1, 0, "1,2")]
    lines += ["fault c b2 13..84 kind=isolate plane=client", *saw("b3", "26..90", 3, 1, "3")]
    lines += [*saw("b1,b2", "85..90", 3, 1, "3"), *CUT]
    lines += [one if one.startswith("fault") else f"fault {one} kind=pause" for one in faults]
    assert decided(SENT, *lines, **UNCLEAN).standing is UNDECIDED


def test_a_deposed_leader_on_which_a_fault_ended_earlier_may_go_on() -> None:
    """No client hears b1 from 13 s on; b2 leads from 20 s on."""
    led = [*saw("b1", "0..13", 1, 0, "1,3"), *saw("b2,b3", "0..19", 1, 0, "1,3"), *saw("b2,b3", "20..90", 2, 1, "2")]
    each = [["p b1,b3 14..80 kind=pause ended=b1:16"], ["p b1 14..16 kind=pause", "q b3 14..80 kind=pause"]]
    each += [["p b1,b3 14..80 kind=pause"]]
    ended, apart, whole = (
        evidence(by_hand(SENT, *led, *(f"fault {one}" for one in rows)), **UNCLEAN).elections[TRIAL].terms[0]
        for rows in each
    )
    assert ended.again_ns == apart.again_ns != whole.again_ns


@pytest.mark.parametrize("faults", [["fault p b1,b3 14..80 kind=pause ended=b1:16"], ["p1 b1 14..16", "p3 b3 14..80"]])
def test_a_leader_on_which_a_fault_ended_earlier_may_have_admitted_others(faults: list[str]) -> None:
    """No client hears b1 and b3; b1 leads on from 16 s to 25.2 s, and b2 is elected."""
    lines = [*saw("b1,b3", "0..13", 1, 0, "1,3"), *saw("b2", "0..25", 1, 0, "1,3")]
    lines += ["fault c b1,b3 13..84 kind=isolate plane=client", "fault s b1 25.2..90 kind=stop"]
    lines += [*saw("b2", "26..90", 2, 1, "2"), *saw("b1,b3", "91..95", 2, 1, "2"), *CUT]
    lines += [one if one.startswith("fault") else f"fault {one} kind=pause" for one in faults]
    assert decided(SENT, *lines, acks="1", unclean_election=False).standing is UNDECIDED


@pytest.mark.parametrize(
    ("cut", "standing"),
    [
        ("from=c1 to=b1 plane=controller one-way", UNDECIDED),
        ("from=b1 to=c1 plane=controller one-way", PERMITTED),
        ("from=c1 to=b1 plane=controller", PERMITTED),
    ],
    ids=["no answers", "no requests", "neither"],
)
def test_a_leader_that_gets_no_answers_may_have_admitted_others(cut: str, standing: Standing) -> None:
    """Nobody hears b1 from 18 s on, when it is alone in the ISR; b3 is elected."""
    lines = [*saw("b1,b2,b3", "0..18", 1, 0, "1"), "fault s b1,b2,b3 18..27 kind=isolate plane=client"]
    lines += [f"fault c b1,c1 18..60 {cut}", *saw("b2,b3", "27..60", 3, 1, "3"), *CUT]
    assert decided(SENT, *lines, **UNCLEAN).standing is standing
