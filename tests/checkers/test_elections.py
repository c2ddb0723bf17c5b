"""What is known of elections: when each term began and ended, which reports show its ISR, and what no report shows.

Each rule with the histories that it must not reach.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from checkers.evidence import holders
from checkers.evidence.decision import Case
from checkers.evidence.elections import OtherReports, fresher
from checkers.evidence.final_logs import Log
from checkers.evidence.own_reports import OwnReports
from checkers.evidence.spare_offsets import InFlight
from checkers.evidence.standing import over_ns
from checkers.leadership import Span
from harness.core.anomalies import LOST, VANISHED
from harness.core.guarantees import Configuration
from harness.core.verdict import Standing
from harness.history.run_file import PhaseReport, RunFile
from tests.checkers.notation import SECOND, by_hand
from tests.checkers.test_holders import (
    ALONE,
    CUT,
    LOST_ALONE,
    PERMITTED,
    TRIAL,
    UNCLEAN,
    UNDECIDED,
    VIOLATION,
    acting_on,
    decided,
    evidence,
    saw,
)


def test_an_earlier_term_of_the_same_leader_is_another() -> None:
    reported = [(0, 10, 2, 0), (11, 20, 1, 1), (21, 30, 1, 2)]
    own = OwnReports([Span("b1", *TRIAL, since, to, leader, epoch, (1,)) for since, to, leader, epoch in reported], ())
    assert [own.of_another_ns(1, epoch, 25) for epoch in (2, 1)] == [20, 30]
    assert [own.later_ns(epoch) for epoch in (0, 1)] == [11, 21]


def test_only_what_is_long_of_a_silence_counts_and_only_before_the_next_terms() -> None:
    """Nobody reported epoch 1, nor anything from 20 to 26 s."""
    lines = [*saw("b1,b2,b3", "0..20", 1, 0, "1,2"), *saw("b1,b2,b3", "26..60", 2, 2, "2")]
    known = evidence(by_hand(*lines)).elections[TRIAL]
    assert known.unheard_times(0, 22 * SECOND) == []
    assert known.unheard_times(0, 24 * SECOND) == [(20 * SECOND, 24 * SECOND)]
    assert [known.unseen(21 * SECOND, 22 * SECOND, after) for after in (0, 1, 2)] == [True, True, False]


@pytest.mark.parametrize(("epoch", "from_s", "is_fresher"), [(1, 10, True), (0, 10, False), (0, 16, True)])
def test_a_report_of_a_later_epoch_or_time_is_fresher(epoch: int, from_s: int, is_fresher: bool) -> None:
    current, other = Span("b1", *TRIAL, 0, 15, 1, 0, (1, 2)), Span("b2", *TRIAL, from_s, 20, 2, epoch, (2,))
    assert fresher(other, current) is (other if is_fresher else current)


def silent_before(killed: str = "25", first: str = "0..20") -> list[str]:
    """b1 was alone in the ISR in the last report, at 20 s; the next report says that b2 leads, at 26 s."""
    return [
        *saw("b1,b2,b3", first, 1, 0, "1"),
        f"fault killed b1 {killed}..60 kind=kill",
        *saw("b2,b3", "26..60", 2, 1, "2,3"),
        *CUT,
    ]


@pytest.mark.parametrize(
    ("settings", "killed", "standing"),
    [
        (UNCLEAN, "25", UNDECIDED),
        (UNCLEAN, "20.5", PERMITTED),
        (ALONE, "25", UNDECIDED),
        (ALONE, "20.5", VIOLATION),
    ],
    ids=["it may have it", "its leader was dead", "a clean election perhaps", "a clean election never"],
)
def test_a_broker_may_have_joined_the_isr_in_a_silence(
    settings: dict[str, Any], killed: str, standing: Standing
) -> None:
    assert decided("send r ok @5 t10..11", *silent_before(killed), **settings).standing is standing


def test_a_silence_before_it_was_sent_lets_nobody_have_it() -> None:
    lines = [*saw("b1,b2,b3", "0..2", 1, 0, "1"), *silent_before(killed="20.5", first="8..20")]
    assert decided("send r ok @5 t10..11", *lines, **UNCLEAN).standing is PERMITTED


def test_a_silence_with_others_before_and_after_it_may_hide_who_joined_and_left_the_isr() -> None:
    lines = [*saw("b1,b2,b3", "0..11", 1, 0, "1"), *silent_before(killed="20.5", first="16..20")]
    assert decided("send r ok @5 t9..9.5", *lines, **UNCLEAN).standing is UNDECIDED
    assert decided("send r ok @5 t9..9.5", *lines, acks="1", **UNCLEAN).standing is PERMITTED


def dead_before(down: str = "b2 16..25 kind=kill", more: Sequence[str] = ()) -> list[str]:
    """As above, and b1 lives until 25 s; b2, which leads since 26 s, was down before."""
    return [
        *saw("b1,b3", "0..20", 1, 0, "1"),
        *saw("b2", "0..15", 1, 0, "1"),
        *more,
        "fault apart b1,b3 5..25 from=b1 to=b3 plane=replication",
        f"fault dead {down}",
        "fault killed b1 25..60 kind=kill",
        *saw("b2,b3", "26..60", 2, 1, "2,3"),
        *CUT,
    ]


@pytest.mark.parametrize(
    ("lines", "standing"),
    [
        (dead_before(), PERMITTED),
        (dead_before("b2 16..25 kind=pause"), PERMITTED),
        (dead_before("b2 16..24 kind=kill"), PERMITTED),
        (dead_before("b2 16..21 kind=kill"), UNDECIDED),
        (dead_before("b2 24..25.5 kind=kill"), UNDECIDED),
        (dead_before("b3 16..25 kind=kill"), UNDECIDED),
        (dead_before("b2 16..25 kind=kill without=b2"), UNDECIDED),
        (dead_before("b2 16..25 kind=kill unknown=b2"), UNDECIDED),
        (dead_before("b2 16..25 kind=isolate"), UNDECIDED),
        (dead_before("b2,b3 16..25 kind=kill", saw("b2", "18..20", 1, 0, "1")), UNDECIDED),
    ],
    ids=[
        *("dead", "halted", "until a second before", "up for most of it", "dead afterwards", "another"),
        *("in vain", "perhaps", "cut off", "it came back before the other"),
    ],
)
def test_a_broker_that_was_down_in_a_silence_joined_no_isr(lines: list[str], standing: Standing) -> None:
    assert decided("send r ok @5 t10..11", *lines, **UNCLEAN).standing is standing


def alone_since(cut: str, isr: str = "1") -> list[str]:
    """b1 reported the ISR 1,2,3 until 10 s, and itself alone from 11 s on; b2 leads since 26 s."""
    return [
        *saw("b1,b2,b3", "0..10", 1, 0, "1,2,3"),
        *saw("b1,b2,b3", "11..20", 1, 0, isr),
        f"fault cut b1,b2,b3 {cut}",
        "fault killed b1 20..60 kind=kill",
        *saw("b2,b3", "26..60", 2, 1, "2"),
        *CUT,
    ]


@pytest.mark.parametrize(
    ("cut", "standing"),
    [
        ("5..15 from=b1 to=b2,b3 plane=all", PERMITTED),
        ("5..15 from=b1 to=b2,b3 plane=replication", PERMITTED),
        ("5..15 from=b3,b2 to=b1 plane=replication", PERMITTED),
        ("5..15 from=b1 to=b2,b3 plane=all one-way", PERMITTED),
        ("5..15 from=b3,b2 to=b1 plane=all one-way", UNDECIDED),
        ("8..12 from=b1 to=b2,b3 plane=all", PERMITTED),
        ("5.. from=b1 to=b2,b3 plane=all", PERMITTED),
        ("5..15 from=b1 to=b2,b3 plane=controller", UNDECIDED),
        ("5..15 from=b1 to=b2,b3 plane=client", UNDECIDED),
        ("5..15 from=b1 to=b2,b3", UNDECIDED),
        ("5..15 plane=all", UNDECIDED),
        ("5..15 from=b1 to=b3 plane=all", UNDECIDED),
        ("5..15 from=b3 to=b1,b2 plane=all", UNDECIDED),
        ("8.001..15 from=b1 to=b2,b3 plane=all", UNDECIDED),
        ("5..11.999 from=b1 to=b2,b3 plane=all", UNDECIDED),
        ("5..15 from=b1 to=b2,b3 plane=all without=b2", UNDECIDED),
        ("5..15 from=b1 to=b2,b3 plane=all without=b1", UNDECIDED),
        ("5..15 from=b1 to=b2,b3 plane=all unknown=b2", UNDECIDED),
        ("5..15 from=b1 to=b2,b3 plane=all kind=slow", UNDECIDED),
        ("5..15 kind=isolate plane=all without=b1,b3", PERMITTED),
        ("5..15 kind=isolate plane=replication without=b2,b3", PERMITTED),
        ("5..15 kind=isolate plane=controller", UNDECIDED),
        ("5..15 kind=isolate", UNDECIDED),
    ],
    ids=[
        *("all traffic", "replication", "either way", "what it sends"),
        *("what it hears", "just then", "never healed", "from the controller"),
        *("from clients", "nobody knows of what", "no two sides", "another", "both from another", "sent before"),
        *("healed before", "in vain", "in vain for its leader", "perhaps", "it was late only"),
        *("alone", "its leader alone", "alone without controllers", "alone, nobody knows of what"),
    ],
)
def test_a_broker_cut_from_its_leader_was_in_no_isr_that_had_the_record(cut: str, standing: Standing) -> None:
    """r was sent at 8 s, and committed by 12 s; no report shows whether b2 was in the ISR then."""
    assert decided("send r ok @5 t8..12", *alone_since(cut), **UNCLEAN).standing is standing


@pytest.mark.parametrize(
    ("faults", "standing"),
    [
        (("c b1,b2 5..60 from=b1 to=b2 plane=all", "k b1 25.2..60 kind=kill"), VIOLATION),
        (("c b1,b2 5..25.5 from=b1 to=b2 plane=all", "k b1 25.2..60 kind=kill"), VIOLATION),
        (("c b1,b2 5..25.1 from=b1 to=b2 plane=all", "k b1 25.2..60 kind=kill"), UNDECIDED),
        (("c b1,b2 5..60 from=b2 to=b1 plane=all one-way", "k b1 25.2..60 kind=kill"), VIOLATION),
        (("c b2 5..60 kind=isolate plane=replication", "k b1 25.2..60 kind=kill"), VIOLATION),
        (("c b2 5..60 kind=isolate plane=client", "k b1 25.2..60 kind=kill"), UNDECIDED),
        (("k b1 25.2..60 kind=kill",), UNDECIDED),
    ],
    ids=[
        *("all the while", "until its leader was dead", "until just before", "it was not heard", "alone"),
        *("from clients", "only the leader was dead"),
    ],
)
def test_a_broker_that_could_not_fetch_from_its_leader_joined_no_isr(faults: Sequence[str], standing: Standing) -> None:
    """b1 wrote r alone at 15 s; b2, which was not in the ISR, is elected, though none may be that is not."""
    lines = [*saw("b1", "0..20", 1, 0, "1,3"), *saw("b2,b3", "0..25", 1, 0, "1,3"), *(f"fault {f}" for f in faults)]
    lines += [*saw("b2,b3", "26..60", 2, 1, "2,3"), *CUT]
    assert decided("send r ok @5 t15..15.5", *lines, **ALONE).standing is standing


def test_a_broker_that_was_in_every_reported_isr_must_have_had_it_cut_off_or_not() -> None:
    """It was acknowledged too early."""
    lines = alone_since("5..15 from=b1 to=b2,b3 plane=all", isr="1,2,3")
    assert decided("send r ok @5 t8..12", *lines, **UNCLEAN).standing is VIOLATION
    lines = alone_since("5..15 from=b1 to=b2,b3 plane=all")
    assert decided("send r ok @5 t8..12", *lines, **ALONE | {"acks": "all"}).standing is VIOLATION


@pytest.mark.parametrize(
    ("cut", "epoch", "unknown"),
    [("from=b1 to=b2", 1, {2, 3}), ("from=b1,b3 to=b2", 1, {3}), ("from=b1,b3 to=b2", 2, {2, 3})],
    ids=["not from the next leader", "from that, too", "from whoever led in between nobody knows"],
)
def test_a_broker_cut_from_its_leader_may_have_the_record_from_the_next_leader(
    cut: str, epoch: int, unknown: set[int]
) -> None:
    """b1 wrote r at 8 s, and was killed; b3 has it, leads since 10 s, and gave it to a consumer at 12 s."""
    lines = [
        *saw("b1", "0..8", 1, 0, "1,2,3"),
        *saw("b2,b3", "0..9", 1, 0, "1,2,3"),
        f"fault cut b1,b2,b3 5..15 {cut} plane=all",
        "fault killed b1 9..60 kind=kill",
        *saw("b2,b3", "10..12", 3, epoch, "2,3"),
        *saw("b2,b3", "13..20", 3, epoch, "3"),
        "fault gone b3 20..60 kind=kill",
        *saw("b2", "26..60", 2, 3, "2"),
        *["final a @4 e0", "final b @5 e3", "end 0..6"],
    ]
    got = ["send r info @5 t8..", "live r @5 e0 t12"]
    assert decided(*got, *lines, anomaly=VANISHED, **UNCLEAN).unknown == unknown


@pytest.mark.parametrize(("least", "standing"), [(1, PERMITTED), (2, UNDECIDED)])
def test_if_too_few_brokers_could_fetch_the_record_another_may_have_been_in_sync(
    least: int, standing: Standing
) -> None:
    """Two brokers had to have r. It was acknowledged too early, or the cut or the kill did less than was recorded."""
    dead = [
        *saw("b1", "0..10", 1, 0, "1,2,3"),
        *saw("b2,b3", "0..4", 1, 0, "1,2,3"),
        "fault dead b2,b3 5..15 kind=kill",
        *saw("b1", "11..20", 1, 0, "1"),
        *saw("b2,b3", "16..20", 1, 0, "1"),
        "fault killed b1 20..60 kind=kill",
        *saw("b2,b3", "26..60", 2, 1, "2"),
        *CUT,
    ]
    for lines in (alone_since("5..15 from=b1 to=b2,b3 plane=all"), dead):
        found = decided("send r ok @5 t8..12", *lines, min_insync_replicas=least, **UNCLEAN)
        assert found.standing is standing
        assert found.unknown == (frozenset({2, 3}) if least == 2 else frozenset())


def test_records_sent_while_a_cut_was_being_made_are_judged_apart() -> None:
    recorded = by_hand(*alone_since("5..15 from=b1 to=b2,b3 plane=all"))
    [row, *_] = recorded.rows["faults"]
    row |= {"injecting_ns": 5 * SECOND, "injected_ns": 8 * SECOND, "healing_ns": 13 * SECOND, "healed_ns": 15 * SECOND}
    known = evidence(recorded, **UNCLEAN)
    sent_and_by = [(7, 12), (8, 12), (9, 12), (9, 13.5)]
    cases = [Case(TRIAL, int(sent * SECOND), int(by * SECOND), True, 5, 5) for sent, by in sent_and_by]
    standings = [holders.decided(known, LOST, case).standing for case in cases]
    assert standings == [UNDECIDED, PERMITTED, PERMITTED, UNDECIDED]
    assert len({known.alike(case) for case in (cases[0], cases[2], cases[3])}) == 3


def shrank(*down: str) -> list[str]:
    """acks=1; b1 reported the ISR 1,2,3 until 12 s, and then itself alone, with r committed; b2 leads since 26 s."""
    return [
        *saw("b1,b2,b3", "0..7", 1, 0, "1,2,3"),
        *saw("b1,b3", "8..12", 1, 0, "1,2,3"),
        *saw("b1", "13..20", 1, 0, "1", "high=6"),
        *saw("b3", "13..25", 1, 0, "1"),
        *down,
        "fault killed b1 20..60 kind=kill",
        *saw("b2,b3", "26..60", 2, 1, "2"),
        *CUT,
    ]


@pytest.mark.parametrize(
    ("down", "standing"),
    [
        ([], UNDECIDED),
        (["fault dead b2 8..24 kind=kill"], PERMITTED),
        (["fault dead b2 10.5..24 kind=kill"], UNDECIDED),
        (["fault dead b2 8..12.5 kind=kill"], UNDECIDED),
        (["fault dead b3 8..24 kind=kill"], UNDECIDED),
        (["fault dead b2 8..24 kind=pause"], UNDECIDED),
        (["fault dead b2 8..24 kind=kill missed"], UNDECIDED),
    ],
    ids=["up", "dead", "it died later", "it came back", "another", "halted: an answer may wait for it", "in vain"],
)
def test_a_broker_dead_since_before_the_send_has_not_fetched_the_record(down: list[str], standing: Standing) -> None:
    assert decided("send r ok @5 t10..11", *shrank(*down), acks="1", **UNCLEAN).standing is standing


def test_a_dead_broker_that_stays_in_every_isr_must_have_had_the_record() -> None:
    """It cannot have it: then r was acknowledged too early, which nothing permits."""
    lines = [
        *saw("b1,b3", "0..20", 1, 0, "1,2"),
        *saw("b2", "0..7", 1, 0, "1,2"),
        "fault dead b2 8..24 kind=kill",
        "fault killed b1 20..60 kind=kill",
        *saw("b2,b3", "26..60", 2, 1, "2"),
        *CUT,
    ]
    assert decided("send r ok @5 t10..11", *lines, **UNCLEAN).standing is VIOLATION


def by_hand_first(isr: str = "1", asked: str = "25..26 unclean", again: int = 2) -> list[str]:
    """b1 was killed, b2 elected by hand at 26 s; from 36 s on nobody led, until one was elected cleanly at 40 s."""
    return [
        *saw("b1", "0..20", 1, 0, isr),
        *saw("b2,b3", "0..25", 1, 0, isr),
        "fault killed b1 20..38 kind=kill",
        f"fault elect-1 - {asked}",
        *saw("b2,b3", "26..35", 2, 1, "2"),
        *saw("b3", "36..39", -1, 2, "2"),
        *saw("b1,b2,b3", "40..60", again, 3, f"{again}"),
        *("final a @4 e0", "final b @5 e3", "send late ok @6 t50..51", "final late @6 e3", "end 0..7"),
    ]


@pytest.mark.parametrize(
    ("lines", "standing"),
    [
        (by_hand_first(), PERMITTED),
        (by_hand_first(isr="1,2"), VIOLATION),
        (by_hand_first(asked="25..26 unclean missed"), VIOLATION),
        (by_hand_first(asked="25..26 p1 unclean"), VIOLATION),
        (by_hand_first(again=1), VIOLATION),
    ],
    ids=["it lacked it", "it had it", "in vain", "of another partition", "the holder leads again"],
)
def test_after_an_election_by_hand_a_clean_one_is_of_one_that_has_what_that_leader_had(
    lines: list[str], standing: Standing
) -> None:
    assert decided("send r ok @5 t10..11", *lines, unclean_election=False).standing is standing


def test_a_broker_elected_twice_may_have_lacked_the_record_the_first_time() -> None:
    """r was acknowledged while the ISR shrank to b1; b2 led, then b3, which had lost its disk, then b2 again: both of
    these past a broker of the ISR that no fault hit, so that they permit nothing."""
    lines = [
        *saw("b1,b2,b3", "0..10", 1, 0, "1,2,3"),
        *saw("b1", "11..20", 1, 0, "1"),
        *saw("b2,b3", "11..24", 1, 0, "1"),
        "fault killed b1 20..60 kind=kill",
        "fault w b3 25..26 kind=wipe",
        *saw("b2", "26..30", 2, 1, "2"),
        *saw("b3", "34..38", 3, 2, "3"),
        *saw("b2,b3", "42..60", 2, 3, "2"),
        *("final a @4 e0", "final b @5 e3", "send late ok @6 t50..51", "final late @6 e3", "end 0..7"),
    ]
    found = decided("send r ok @5 t10.2..10.4", *lines, **UNCLEAN)
    assert (found.standing, found.may_have) == (UNDECIDED, {1})


#: b2, whose disk was wiped, leads since 26 s, and wrote from 0 on.
EMPTY = ["final b @0 e1", "send late ok @6 t50..51", "final late @6 e1", "end 0..7"]


def emptied(*reported: str) -> list[str]:
    """The whole ISR had r; b2 was elected from the ISR."""
    return ["send r ok @5 t10..11", *reported, *saw("b2,b3", "26..60", 2, 1, "2"), *EMPTY]


def joining(joined: str, restarted: str) -> list[str]:
    """b1 alone had r. b2 was seen to join its ISR at ``joined``; its disk was wiped at 20 s, while it was down."""
    return emptied(
        *saw("b1,b3", "0..19", 1, 0, "1"),
        *saw("b1,b3", joined, 1, 0, "1,2"),
        f"fault dead b2 19.95..{restarted} kind=kill",
        "fault w b2 20..20 kind=wipe",
        "fault killed b1 25..60 kind=kill",
    )


@pytest.mark.parametrize(
    ("lines", "standing"),
    [
        (joining("20.2..24.2", restarted="25.5"), PERMITTED),
        (joining("20.2..24.2", restarted="20.5"), UNDECIDED),
        (joining("22..24", restarted="20.5"), VIOLATION),
    ],
    ids=["before its wipe, reported late", "and it was up soon", "after it"],
)
def test_a_wiped_disk_is_filled_by_a_later_join_and_not_by_a_late_report(lines: list[str], standing: Standing) -> None:
    assert decided(*lines, unclean_election=False).standing is standing


def dead_in_the_isr(restarted: str) -> list[str]:
    """b2 is dead, and stays in the ISR until its session is over, also when b3 has left it."""
    return emptied(
        *saw("b1,b2,b3", "0..19", 1, 0, "1,2,3"),
        *saw("b1,b3", "20..22", 1, 0, "1,2,3"),
        *saw("b1,b3", "23..24", 1, 0, "1,2"),
        f"fault dead b2 19.5..{restarted} kind=kill",
        "fault w b2 20..20 kind=wipe",
        "fault killed b1 24.5..60 kind=kill",
    )


@pytest.mark.parametrize(("restarted", "standing"), [("25", PERMITTED), ("20.5", UNDECIDED)], ids=["dead", "up"])
def test_a_wiped_disk_of_a_dead_broker_that_is_reported_in_the_isr_stays_empty(
    restarted: str, standing: Standing
) -> None:
    assert decided(*dead_in_the_isr(restarted), unclean_election=False).standing is standing


def reported_by_one(isr: str, *cut: str) -> list[str]:
    """Only b3 reported the ISR when r was acknowledged; b2 leads since 26 s."""
    return [
        *saw("b1,b2", "0..8", 1, 0, isr),
        *saw("b3", "0..19", 1, 0, isr),
        *cut,
        *saw("b1,b3", "20..24", 1, 0, "1"),
        "fault killed b1,b3 24.5..60 kind=kill",
        *saw("b2", "26..60", 2, 1, "2"),
        *CUT,
    ]


@pytest.mark.parametrize(
    ("lines", "standing"),
    [
        (reported_by_one("1,2,3"), VIOLATION),
        (reported_by_one("1,2,3", "fault cut b3 7..24 kind=isolate"), UNDECIDED),
        (reported_by_one("1,2,3", "fault cut c1 7..24 kind=isolate"), UNDECIDED),
        (reported_by_one("1,2,3", "fault slow b3 7..24 kind=slow"), UNDECIDED),
        (reported_by_one("1,2,3", "fault cut b3 7..24 kind=isolate missed"), VIOLATION),
        (reported_by_one("1,2,3", "fault cut b3 0..0.9 kind=isolate"), VIOLATION),
        (reported_by_one("1,2,3", "fault cut b3 0..1 kind=isolate"), UNDECIDED),
        (reported_by_one("1,2,3", "fault cut b2 7..24 kind=isolate"), VIOLATION),
    ],
    ids=["heard", "cut off", "its controller cut off", "slow", "in vain", "long before", "just before", "another"],
)
def test_a_broker_that_may_be_behind_proves_no_broker_in_sync(lines: list[str], standing: Standing) -> None:
    assert decided("send r ok @5 t11..12", *lines, **UNCLEAN).standing is standing


@pytest.mark.parametrize(
    ("cut", "standing"), [([], PERMITTED), (["fault cut b3 7..24 kind=isolate"], UNDECIDED)], ids=["heard", "cut off"]
)
def test_a_broker_that_may_be_behind_does_not_prove_that_another_was_out_of_sync(
    cut: list[str], standing: Standing
) -> None:
    assert decided("send r ok @5 t11..12", *reported_by_one("1", *cut), **UNCLEAN).standing is standing


@pytest.mark.parametrize(
    ("cut", "standing"),
    [([], UNDECIDED), (["fault cut b3 13.5..24 kind=isolate"], PERMITTED)],
    ids=["heard", "cut off"],
)
def test_the_report_of_an_isolated_broker_does_not_contradict_the_others(cut: list[str], standing: Standing) -> None:
    """b1 died right after it acknowledged r alone; b4 reports the ISR 1 since 14 s, b3 still 1,2,3."""
    lines = [
        *saw("b1,b4", "0..13", 1, 0, "1,2,3"),
        *saw("b3", "0..24", 1, 0, "1,2,3"),
        *saw("b1", "14..17", 1, 0, "1"),
        *saw("b4", "14..25", 1, 0, "1"),
        *cut,
        "fault killed b1 17.5..60 kind=kill",
        *saw("b2,b4", "26..60", 2, 1, "2"),
        *CUT,
    ]
    assert decided("send r ok @5 t15..17", *lines, **UNCLEAN).standing is standing


def nothing_took_it(until: str, *more: str) -> list[str]:
    """The log ends below r, and b1 led with the whole ISR until the last report."""
    return [
        *saw("b1,b2,b3", f"0..{until}", 1, 0, "1,2,3"),
        *more,
        "final a @4 e0",
        "send late ok @4 t19..20",
        "end 0..5",
    ]


@pytest.mark.parametrize(
    ("lines", "standing"),
    [
        (nothing_took_it("30"), VIOLATION),
        (nothing_took_it("30", "fault k b3 25..40 kind=kill"), UNDECIDED),
        (nothing_took_it("39", "fault k b3 25..40 kind=kill"), VIOLATION),
        (nothing_took_it("30", "fault k b3 25.. kind=kill"), VIOLATION),
        (
            nothing_took_it("30", "saw b4 @0..45 leader=1 epoch=0 isr=1,2,3", "fault cut b4,b3 9..44 kind=isolate"),
            UNDECIDED,
        ),
        (
            nothing_took_it("30", "saw b4 @0..45 leader=1 epoch=0 isr=1,2,3", "fault cut b3 9..44 kind=isolate"),
            VIOLATION,
        ),
    ],
    ids=[
        *("to the end", "a fault lasted longer", "no longer", "it was never healed"),
        *("one who was cut off reported longer", "another reported longer"),
    ],
)
def test_nothing_took_it_only_where_it_was_observed_until_no_fault_was_in_force(
    lines: list[str], standing: Standing
) -> None:
    assert decided("send r ok @5 t10..11", *lines, **ALONE).standing is standing


def test_an_empty_disk_may_have_been_elected_unseen() -> None:
    """Under settings that elect cleanly alone."""
    lines = [
        "send r ok @5 t10..11",
        *saw("b1,b2,b3", "0..24", 1, 0, "1,2,3"),
        *saw("b3", "25..30", 1, 0, "1,2,3"),
        "fault k b1,b2 25..40 kind=kill",
        *("final a @4 e0", "send late ok @4 t19..20", "end 0..5"),
    ]
    wiped = "fault w b2 26..27 kind=wipe"
    assert decided(*lines, unclean_election=False).standing is VIOLATION
    assert decided(*lines, wiped, unclean_election=False).standing is UNDECIDED
    longer = [*lines, *saw("b1,b2,b3", "41..60", 1, 0, "1,2,3"), *saw("b3", "31..40", 1, 0, "1,2,3")]
    assert decided(*longer, wiped, unclean_election=False).standing is VIOLATION


def test_one_that_tells_late_is_not_another_that_left_and_joined() -> None:
    """b1 reported nothing; b2's disk was wiped at 20 s; b4 first reported when b3 had reported that b2 left the ISR."""
    lines = emptied(
        *saw("b3", "0..22", 1, 0, "1,2,3"),
        *saw("b3", "23..25", 1, 0, "1,3"),
        *saw("b4", "24..25", 1, 0, "1,2,3"),
        "fault dead b2 19..25 kind=kill",
        "fault w b2 20..20 kind=wipe",
        "fault killed b1,b3 25..60 kind=kill",
    )
    assert decided(*lines, **UNCLEAN).standing is not VIOLATION


def test_it_is_over_when_the_final_read_begins() -> None:
    phases = [PhaseReport(phase=phase, at_ns=at) for phase, at in (("timeline", 5), ("final read", 40), ("seal", 90))]
    run = RunFile(run="r", scenario_name="s", scenario={}, configuration=Configuration(version="4.3.1"), phases=phases)
    assert (over_ns(run, 20), over_ns(run, 50)) == (40, 50)
    assert over_ns(run.model_copy(update={"phases": phases[:1]}), 20) == 20


def test_an_election_may_have_come_after_the_last_report_and_before_the_final_read() -> None:
    recorded = by_hand("send r ok @5 t10..11", *nothing_took_it("30"))
    case = Case(TRIAL, 10 * SECOND, 11 * SECOND, True, 5, 5)
    for over, standing in ((20, VIOLATION), (33, VIOLATION), (34, UNDECIDED)):
        known = replace(evidence(recorded, **ALONE), end_ns=over * SECOND)
        assert holders.decided(known, LOST, case).standing is standing


def test_a_disk_that_was_wiped_in_flight_may_have_had_it_or_not() -> None:
    """r was acknowledged by the whole ISR after b2's disk was wiped, or b2 had it before."""
    lines = emptied(
        *saw("b1,b3", "0..24", 1, 0, "1,2,3"),
        *saw("b2", "13..25", 1, 0, "1,2,3"),
        "fault dead b2 11..12 kind=kill",
        "fault w b2 11.2..11.3 kind=wipe",
        "fault killed b1,b3 24.5..60 kind=kill",
    )
    flight = [line.replace("t10..11", "t10..14") for line in lines]
    assert decided(*flight, unclean_election=False).standing is UNDECIDED
    assert decided(*lines, unclean_election=False).standing is UNDECIDED


@pytest.mark.parametrize(
    ("since", "when", "must"),
    [("26", "t22..30", {2, 3}), ("26", "t22..25.5", {2}), ("30", "t22..34", {2})],
    ids=["in flight at the election", "acknowledged before anybody reported it", "nobody reported anything for long"],
)
def test_a_record_in_flight_at_an_election_is_with_the_isr_of_the_new_term(
    since: str, when: str, must: set[int]
) -> None:
    """b1 was killed at 20 s; b2 led since with b3 in sync, which leads next, and lacks r."""
    lines = [
        *saw("b1", "0..20", 1, 0, "1,2,3"),
        *saw("b2,b3", "0..25", 1, 0, "1,2,3"),
        "fault killed b1 20.1..60 kind=kill",
        *saw("b2,b3", f"{since}..40", 2, 1, "2,3"),
        "fault dead b2 40.5..60 kind=kill",
        *saw("b3", "44..60", 3, 2, "3"),
        *("final a @4 e0", "final b @5 e2", "send late ok @6 t50..51", "end 0..7"),
    ]
    assert decided(f"send r ok @5 {when}", *lines, **UNCLEAN).must == must


def soak(kills: int) -> list[str]:
    """Broker after broker is killed, each for five of ten seconds, and the next leads."""
    lines, leader = [], 1
    for n in range(kills):
        at, dead = 10 * n, 1 + n % 3
        alive = [broker for broker in (1, 2, 3) if broker != dead]
        lines += [f"fault k{n} b{dead} {at}.5..{at + 5}.5 kind=kill"]
        lines += saw("b1,b2,b3", f"{at}..{at}", leader, n, "1,2,3")
        leader = 1 + dead % 3
        for by in alive:
            lines += saw(f"b{by}", f"{at + 2}..{at + 5}", leader, n + 1, ",".join(map(str, alive)))
        lines += saw("b1,b2,b3", f"{at + 6}..{at + 9}", leader, n + 1, "1,2,3")
    return lines


class Counted(dict[str, Any]):
    """A row that counts how often any such row is read."""

    reads = 0

    def __getitem__(self, key: str) -> Any:
        Counted.reads += 1
        return super().__getitem__(key)


@pytest.mark.parametrize(("version", "metadata"), [("4.3.1", "kraft"), ("3.9.2", "zookeeper")])
def test_of_a_soak_each_record_is_decided_without_a_walk_through_all_faults_and_words(
    version: str, metadata: str
) -> None:
    """(Else, three thousand faults take half an hour: the time grew with their number to the third.)"""
    lines = [f"{line} controller=3" if line.startswith("saw") else line for line in soak(500)]
    recorded = by_hand(*lines, "send late ok @9 t4998..4999", "end 0..10")
    recorded.rows["faults"] = faults = [Counted(row) for row in recorded.rows["faults"]]
    Counted.reads = 0
    known = evidence(recorded, **{**ALONE, "version": version, "metadata": metadata})
    known = replace(known, logs={TRIAL: Log(np.array([500]), np.array([0]), np.array([9]), 10)})
    each = [Case(TRIAL, at * SECOND, at * SECOND, True, 5, 5) for at in (7, 2257, 4507)]
    assert [holders.decided(known, LOST, case).standing for case in each] == [PERMITTED] * 3
    assert Counted.reads < 200 * len(faults)


def test_a_leader_that_tells_nothing_any_more_acknowledges_nothing_any_more() -> None:
    """b1 is cut off at 20 s, and never reported again: a record that is acknowledged at 40 s is b2's."""
    cut = "fault c b1 20.. kind=isolate clients=cut"
    seen = [
        cut,
        *saw("b1", "0..20", 1, 0, "1,2,3"),
        *saw("b2,b3", "0..25", 1, 0, "1,2,3"),
        *saw("b2,b3", "26..60", 2, 1, "2,3"),
    ]
    log = ["final a @4 e0", "final b @5 e1", "final c @9 e1", "send late ok @9 t50..51", "end 0..10"]
    assert decided("send r ok @8 t40..41", *seen, *log, **ALONE).term == 1
    assert decided("send r ok @8 t21..22", *seen, *log, **ALONE).term == 0
    assert "either of two leaders" in decided("send r ok @8 t24..26", *seen, *log, **ALONE).ruling.because
    unheard = [line for line in seen if not line.startswith("saw b1")]
    assert decided("send r ok @8 t40..41", *unheard, *log, **ALONE).term == 1
    for lines in (seen, unheard):
        healed = [line.replace("20..", "20..38") if line == cut else line for line in lines]
        assert "either of two leaders" in decided("send r ok @8 t40..41", *healed, *log, **ALONE).ruling.because
        assert decided("send r ok @8 t36..37", *healed, *log, **ALONE).term == 1
    assert "either of two leaders" in decided("send r ok @8 t28..29", *unheard, *log, **ALONE).ruling.because


@pytest.mark.parametrize(
    ("fault", "standing"),
    [
        ((), VIOLATION),
        (("fault c c1 9..21 kind=pause",), UNDECIDED),
        (("fault c c1 9..21 kind=slow",), UNDECIDED),
        (("fault c b1,c1 9..21 from=b1 to=c1 plane=controller",), UNDECIDED),
        (("fault c b2 9..21 kind=pause",), VIOLATION),
    ],
    ids=["nothing", "controllers halted", "late", "cut from the leader", "another broker halted"],
)
@pytest.mark.parametrize("isr", ["1,3", "1"])
def test_a_leader_may_have_asked_for_a_wider_isr_that_the_controller_gave_it_later(
    isr: str, fault: Sequence[str], standing: Standing
) -> None:
    """b1 wrote r alone, and was killed: b2, which is elected, had all that b1 had just before."""
    lines = [*saw("b1", "0..10", 1, 0, isr), *saw("b2,b3", "0..21", 1, 0, isr), "fault k b1 10.5..60 kind=kill", *fault]
    lines += [*saw("b2,b3", "22..60", 2, 1, "2,3"), *CUT]
    assert decided("send r ok @5 t10.1..10.2", *lines, **ALONE).standing is standing


@pytest.mark.parametrize("asked", [(), ("fault c c1 9..21 kind=pause",)])
def test_a_broker_that_joined_the_isr_later_has_all_committed_records(asked: Sequence[str]) -> None:
    lines = [*saw("b1,b3", "0..20", 1, 0, "1,3"), *asked, "fault k b1 20.5..60 kind=kill", *CUT]
    lines += [*saw("b2", "0..21", 1, 0, "1,3"), *saw("b2,b3", "22..60", 2, 1, "2,3")]
    assert decided("send r ok @5 t10.1..10.2", *lines, unclean_election=False).standing is VIOLATION


@pytest.mark.parametrize(
    ("fault", "standing"),
    [
        ("b1 20..60 kind=isolate plane=all clients=cut", VIOLATION),
        ("b1 20..60 kind=isolate plane=all clients=kept", UNDECIDED),
        ("b1 20..60 kind=isolate plane=all", UNDECIDED),
        ("b1 20..60 kind=isolate plane=client clients=cut", VIOLATION),
        ("b1 20..60 kind=isolate plane=controller clients=cut", UNDECIDED),
        ("b1 20..60 kind=isolate plane=replication clients=cut", UNDECIDED),
        ("b1,b2,clients 20..60 from=b1 to=b2,clients plane=all", VIOLATION),
        ("b1,c1 20..60 from=b1 to=c1 plane=all", UNDECIDED),
        ("b1,c1,clients 20..60 from=b1,clients to=c1 plane=all", UNDECIDED),
        ("b1,c1 20..60 kind=partition", UNDECIDED),
    ],
    ids=[
        *("from all", "from all but clients", "from all, clients perhaps", "from its clients", "from the controller"),
        *("from followers", "from its clients, too"),
        *("from the controller alone", "with its clients", "nobody knows from whom"),
    ],
)
def test_a_leader_that_is_cut_off_goes_on_acknowledging_to_clients_that_reach_it(
    fault: str, standing: Standing
) -> None:
    """b1, whose observer died at 19 s, may have acknowledged r at 33 s; b2 leads since 30 s."""
    lines = [
        *saw("b1", "0..19", 1, 0, "1,2,3"),
        *saw("b2,b3", "0..29", 1, 0, "1,2,3"),
        *saw("b2,b3", "30..80", 2, 1, "2,3"),
        f"fault i {fault}",
    ]
    assert decided("send r ok @6 t33..33.5", *lines, *CUT, **ALONE).standing is standing


@pytest.mark.parametrize(
    ("when", "reported", "fault", "leaders"),
    [
        ("t30..40.2", 41, "p b1 20..40 kind=pause", {0, 1}),
        ("t30..40.2", 41, "c b1 20..40 kind=isolate clients=cut", {0, 1}),
        ("t30..31", 41, "p b1 20..40 kind=pause", {1}),
        ("t30..37.9", 41, "p b1 20..40 kind=pause", {1}),
        ("t30..39.9", 41, "p b1 20..40 kind=pause", {1}),
        ("t39.9..40.1", 41, "p b1 20..40 kind=pause", {0, 1}),
        ("t30..39.9", 41, "c b1 20..40 kind=isolate clients=cut", {1}),
        ("t30..39.9", 41, "p b1 20..40 kind=pause missed", {0, 1}),
        ("t30..39.9", 41, "p b3 20..40 kind=pause", {0, 1}),
        ("t30..39.9", 41, "s b1 20..40 kind=slow", {0, 1}),
        ("t30..39.9", 41, "p b1 20..40 kind=pause unknown", {0, 1}),
        ("t39..40.2", 45, "p b1 20..40 kind=pause", {0, 1}),
        ("t40.1..40.3", 45, "p b1 20..40 kind=pause", {0, 1}),
        ("t44..45", 50, "p b1 20..40 kind=pause", {0, 1}),
        ("t39..40.2", None, "p b1 20..40 kind=pause", {0, 1}),
        ("t30..39.9", None, "p b1 20..40 kind=pause", {1}),
        ("t41.9..43", 41, "p b1 20..40 kind=pause", {0, 1}),
        ("t42..43", 41, "p b1 20..40 kind=pause", {0, 1}),
        ("t42.1..43", 41, "p b1 20..40 kind=pause", {1}),
        ("t30..39.9", 40, "p b1 20..40 kind=pause", {1}),
        ("t24.2..24.8", 24, "p b3 20..22 kind=pause", {0, 1}),
        ("t25.1..25.3", 24, "p b3 20..22 kind=pause", {1}),
        ("t30..40.2", 41, "k b1 20.5..30 kind=kill", {1}),
        ("t21..40.2", 23, "p b1 20..22 kind=pause", {0, 1}),
        ("t24.1..40.2", 23, "p b1 20..22 kind=pause", {1}),
        ("t30..40.2", 58, "p b1 20..57 kind=pause", {1}),
    ],
    ids=[
        *(
            "paused",
            "cut off",
            "acknowledged before",
            "long before it answers",
            "just before the pause is over",
            "just after it",
            "just before the cut is healed",
            "it was not paused",
            "another was paused",
            "it was slow",
            "perhaps it was paused",
            "not heard for a while after",
            "sent and acknowledged meanwhile",
            "much later",
            "never heard again",
            "never heard, and before the pause was over",
            "sent as it knew",
            "sent in the last moment of that",
            "sent after it knew",
            "it answers at once when the pause is over",
            "it knew soon",
            "sent after it knew soon",
            "its process ended",
        ),
        *("silent for a moment", "and sent after it knew", "it answers later"),
    ],
)
def test_a_leader_that_was_silent_may_acknowledge_once_more_when_it_answers_again(
    when: str, reported: int | None, fault: str, leaders: set[int]
) -> None:
    """With acks=1 a deposed leader answers the requests that reached it before it learns that b2 leads."""
    seen = [
        *saw("b1", "0..20", 1, 0, "1,2,3"),
        *saw("b2,b3", "0..25", 1, 0, "1,2,3"),
        *saw("b2,b3", "26..60", 2, 1, "2,3"),
        *([] if reported is None else saw("b1", f"{reported}..60", 2, 1, "2,3")),
        f"fault {fault}",
    ]
    log = ["final a @4 e0", "final b @5 e1", "final c @20 e1", "send late ok @21 t55..56", "end 0..22"]
    found = decided(f"send r ok @6 {when}", *seen, *log, **ALONE)
    assert ("either of two leaders" in found.ruling.because) == (len(leaders) > 1)
    assert found.standing is (UNDECIDED if len(leaders) > 1 else VIOLATION)
    assert found.term == (None if len(leaders) > 1 else 1)


def test_a_leader_that_only_others_reported_may_acknowledge_when_it_answers_again() -> None:
    seen = [
        *saw("b1", "0..10", 3, 0, "1,2,3"),
        *saw("b2,b3", "0..10", 3, 0, "1,2,3"),
        *saw("b2,b3", "11..25", 1, 1, "1,2,3"),
        *saw("b2,b3", "26..60", 2, 2, "2,3"),
        *saw("b1", "41..60", 2, 2, "2,3"),
    ]
    [_, second, _] = evidence(by_hand(*seen), **ALONE).elections[TRIAL].terms
    assert (second.ends_ns, second.again_ns) == (29 * SECOND, ((29 * SECOND, 42 * SECOND),))


@pytest.mark.parametrize(
    ("when", "killed", "standing"),
    [
        ("t39..40.2", "40.6..70", UNDECIDED),
        ("t39..40.2", "40.6..43", UNDECIDED),
        ("t42..43", "40.6..41", VIOLATION),
        ("t39..40.2", "20.5..30", VIOLATION),
    ],
    ids=["and stays dead", "and comes back", "before it was sent", "while it was paused"],
)
def test_a_leader_that_was_silent_acknowledges_nothing_more_when_its_process_was_ended(
    when: str, killed: str, standing: Standing
) -> None:
    """b1 is paused until 40 s, and is killed before it reports that b2 leads."""
    seen = [
        *saw("b1", "0..20", 1, 0, "1,2,3"),
        *saw("b2,b3", "0..25", 1, 0, "1,2,3"),
        *saw("b2,b3", "26..60", 2, 1, "2,3"),
        *([] if killed.endswith("70") else saw("b1", "44..60", 2, 1, "2,3")),
        "fault p b1 20..40 kind=pause",
        f"fault k b1 {killed} kind=kill",
    ]
    log = ["final a @4 e0", "final b @5 e1", "final c @20 e1", "send late ok @21 t55..56", "end 0..22"]
    assert decided(f"send r ok @6 {when}", *seen, *log, **ALONE).standing is standing


def test_without_epochs_too_a_leader_that_was_silent_may_acknowledge_once_more() -> None:
    seen = [
        *saw("b1", "0..20", 1, None, "1,2,3"),
        *saw("b2,b3", "0..25", 1, None, "1,2,3"),
        *saw("b2,b3", "26..60", 2, None, "2,3"),
        *saw("b1", "45..60", 2, None, "2,3"),
        "fault p b1 20..40 kind=pause",
    ]
    log = ["final a @4", "final b @5", "send late ok @21 t55..56", "end 0..22"]
    for when, standing in (("t39..40.2", UNDECIDED), ("t30..31", VIOLATION)):
        found = decided(f"send r ok @8 {when}", *seen, *log, version="0.10.2.2", **ALONE)
        assert found.standing is standing


@pytest.mark.parametrize(
    ("when", "fault", "standing"),
    [
        ("t38.8..39.3", "p b3 10.5..39 kind=pause", UNDECIDED),
        ("t30..31", "p b3 10.5..39 kind=pause", VIOLATION),
        ("t38.8..39.3", "k b3 10.5..39 kind=kill", VIOLATION),
        ("t42..43", "p b3 10.5..39 kind=pause", VIOLATION),
        ("t30..31", "p b2 10.5..11 kind=pause", UNDECIDED),
    ],
    ids=["once more", "while it was paused", "its process ended", "after it knew", "nobody knows why it was silent"],
)
def test_a_leader_whom_nobody_reported_may_acknowledge_once_more(when: str, fault: str, standing: Standing) -> None:
    """Nobody reported epoch 1: b3, which answers again at 40 s, may have led."""
    seen = [*saw("b1,b2,b3", "0..9", 1, 0, "1,2,3"), *saw("b1,b2", "12..60", 2, 2, "1,2")]
    seen += [*saw("b3", "40..60", 2, 2, "1,2"), f"fault {fault}"]
    log = ["final a @4 e0", "final b @5 e2", "send late ok @6 t50..51", "final late @6 e2", "end 0..7"]
    assert decided(f"send r ok @5 {when}", *seen, *log, **ALONE).standing is standing


@pytest.mark.parametrize(
    ("when", "epoch", "more", "standing"),
    [
        ("t5..6", 3, [], UNDECIDED),
        ("t9.9..10.5", 3, [], UNDECIDED),
        ("t10.9..12", 3, [], UNDECIDED),
        ("t11.1..12", 3, [], VIOLATION),
        ("t5..6", 1, [], UNDECIDED),
        ("t5..6", 0, [], VIOLATION),
        ("t5..6", 1, ["saw b1 @9 leader=-1 epoch=0 isr=1,2,3"], VIOLATION),
        ("t5..6", 2, ["saw b1 @9 leader=-1 epoch=0 isr=1,2,3"], UNDECIDED),
    ],
    ids=[
        "before",
        "sent before",
        "soon after",
        "after",
        "one before",
        "none before",
        "nobody led before",
        "nor in one of two",
    ],
)
def test_a_record_sent_before_the_first_report_may_be_of_an_earlier_leader(
    when: str, epoch: int, more: Sequence[str], standing: Standing
) -> None:
    seen = [*saw("b1,b2,b3", "10..60", 2, epoch, "1,2,3"), *more]
    log = ["final a @4 e0", f"final b @5 e{epoch}", f"final late @6 e{epoch}", "send late ok @6 t50..51", "end 0..7"]
    for settings in (ALONE, UNCLEAN):
        assert decided(f"send r ok @5 {when}", *seen, *log, **settings).standing is standing


@pytest.mark.parametrize("epoch", [3, None])
@pytest.mark.parametrize(
    ("when", "b2", "standing"),
    [
        ("t10.9..12", [], UNDECIDED),
        ("t40..41", [], UNDECIDED),
        ("t12.9..14", ["saw b2 @12..60 leader=1 epoch=3 isr=1,3"], UNDECIDED),
        ("t13.1..14", ["saw b2 @12..60 leader=1 epoch=3 isr=1,3"], VIOLATION),
        ("t11.1..12", ["fault k b2 5..20 kind=kill"], VIOLATION),
        ("t11.4..12", ["fault k b2 11.5..20 kind=kill"], UNDECIDED),
        ("t11.6..12", ["fault k b2 11.5..20 kind=kill"], VIOLATION),
        ("t15..16", ["fault p b2 5..20 kind=pause"], VIOLATION),
        ("t20.1..21", ["fault p b2 5..20 kind=pause"], UNDECIDED),
    ],
    ids=[
        *("soon", "long after", "not heard yet", "heard", "dead before", "dead soon", "dead then", "paused"),
        "paused no more",
    ],
)
def test_a_leader_before_the_first_report_may_go_on_until_it_knows_its_successor(
    when: str, b2: Sequence[str], standing: Standing, epoch: int | None
) -> None:
    """No broker reported before 10 s: b2 may have led, and does not report."""
    log = ["final a @4 e1", "final c @5 e3", "final late @9 e3", "send late ok @9 t50..51", "end 0..10"]
    lines = [*saw("b1,b3", "10..60", 1, 3, "1,3"), *b2, *log]
    reported = [line if epoch else re.sub(r" e(poch=)?\d\b", "", line) for line in lines]
    assert decided(f"send r ok @5 {when}", *reported, **ALONE).standing is standing


@pytest.mark.parametrize(
    ("others", "when", "standing"),
    [
        ([], "t1.1..2", VIOLATION),
        ([], "t0.9..2", UNDECIDED),
        (["saw b4 @0 leader=3 isr=3"], "t1.1..2", UNDECIDED),
        (["saw b4 @0 leader=3 isr=3"], "t4..5", VIOLATION),
    ],
    ids=["reported by others", "soon after", "another led", "after it reported so itself"],
)
def test_without_epochs_the_first_term_had_begun_when_others_reported_no_other(
    others: Sequence[str], when: str, standing: Standing
) -> None:
    """b1 itself is first heard at 2 s."""
    lines = [*saw("b1", "2..20", 1, None, "1,2,3"), *saw("b2,b3", "0..25", 1, None, "1,2,3"), *others]
    lines += ["fault killed b1 20..40 kind=kill", *saw("b2,b3", "26..60", 2, None, "2,3")]
    log = ["final a @4", "final b @5", "send late ok @6 t50..51", "end 0..6"]
    assert decided(f"send r ok @5 {when}", *lines, *log, **UNCLEAN).standing is standing


@pytest.mark.parametrize(("over", "standing"), [("23", PERMITTED), ("22.9", VIOLATION)])
def test_an_election_by_hand_made_the_term_that_began_within_a_lag_of_it(over: str, standing: Standing) -> None:
    """The term of b2 began at 24 s or later: until 25 s other brokers reported that b1 leads."""
    asked = f"fault e - 22..{over} unclean"
    assert decided(*LOST_ALONE, asked, unclean_election=False).standing is standing


@pytest.mark.parametrize(
    ("reported", "standing"), [("27..30", PERMITTED), ("40..45", UNDECIDED), ("32..35", UNDECIDED)]
)
def test_an_election_by_hand_made_a_term_that_nobody_reported_before_or_the_next(
    reported: str, standing: Standing
) -> None:
    """b2, of the ISR, leads in epoch 1; at 31 s an election by hand makes b3 the leader, reported from 32 s on."""
    lines = [*saw("b1", "0..20", 1, 0, "1,2"), *saw("b2,b3", "0..25", 1, 0, "1,2"), "fault k b1 20..90 kind=kill"]
    lines += [
        *saw("b2", reported, 2, 1, "2"),
        "fault k2 b2 29..39 kind=isolate plane=all",
        "fault e1 - 31..31.5 p0 unclean",
    ]
    log = ["final a @4 e0", "final b @5 e2", "send late ok @6 t55..56", "final late @6 e2", "end 0..7"]
    found = decided("send r ok @5 t10..11", *lines, *saw("b3", "32..60", 3, 2, "3"), *log, unclean_election=False)
    assert found.standing is standing


#: b1 led, and no broker reported after 20 s; b3 wrote from 7 on in an epoch that no broker reported.
DIED = [*saw("b1,b2,b3", "0..20", 1, 0, "1,2,3"), "fault c b1 22..40 kind=isolate"]
WENT_ON = ["final a @6 e0", "final b @7 e3", "send late ok @8 t50..51", "end 0..9"]


@pytest.mark.parametrize(
    ("when", "more", "settings", "standing"),
    [
        ("t30..31", [], UNCLEAN, UNDECIDED),
        ("t30..31", [], ALONE, UNDECIDED),
        ("t22..23.5", [], UNCLEAN, UNDECIDED),
        ("t15..16", [], UNCLEAN, VIOLATION),
        ("t21..22", [], UNCLEAN, VIOLATION),
        ("t30..31", [], {"unclean_election": False}, VIOLATION),
        ("t30..31", ["final c @4 e0"], UNCLEAN, VIOLATION),
        ("t30..31", saw("b2", "21..60", 1, 0, "1,2,3"), UNCLEAN, VIOLATION),
    ],
    ids=[
        *("after", "acks=1", "acknowledged after", "before", "while a word was fresh", "none may lose it"),
        *("a hole", "somebody reported on"),
    ],
)
def test_a_record_acknowledged_after_the_last_report_may_be_of_an_unreported_leader(
    when: str, more: Sequence[str], settings: dict[str, Any], standing: Standing
) -> None:
    """The final log has b1's epoch beyond it: no election took it from b1, but another may have written it."""
    found = decided(f"send r ok @5 {when}", *DIED, *WENT_ON, *more, **settings)
    assert found.standing is standing
    assert standing is VIOLATION or not found.must


@pytest.mark.parametrize(
    ("when", "reported", "standing"),
    [
        ("t21..22", (), UNDECIDED),
        ("t10..11", (), VIOLATION),
        ("t24.8..24.9", (), UNDECIDED),
        ("t25.1..26", (), VIOLATION),
        ("t21..22", ("saw b2 @20.5 leader=-1 epoch=1 isr=1,2,3",), VIOLATION),
        ("t21..22", ("saw b2 @20.5 leader=-1 epoch=4 isr=1,2,3",), UNDECIDED),
    ],
    ids=["amid", "before", "shortly after", "after", "nobody led in that epoch", "nobody led in another"],
)
def test_a_record_acknowledged_near_an_unreported_epoch_may_be_of_its_leader(
    when: str, reported: Sequence[str], standing: Standing
) -> None:
    seen = [*saw("b1,b2,b3", "0..20", 1, 0, "1,2,3"), *saw("b1,b2,b3", "21..60", 2, 2, "2"), *reported]
    log = ["final a @4 e0", "final b @5 e0", "final c @6 e2", "final d @7 e2", "send z ok @7 t50..51", "end 0..8"]
    offset = 6 if when.startswith(("t24", "t25")) else 4
    assert decided(f"send r ok @{offset} {when}", *seen, *log, **UNCLEAN).standing is standing


@pytest.mark.parametrize(
    ("asked", "standing"),
    [
        ("fault e - 30..31 unclean", UNDECIDED),
        ("fault e - 30..31 unclean missed", VIOLATION),
        ("fault e - 30..31 p1 unclean", VIOLATION),
        ("fault e - 15..16 unclean", UNDECIDED),
    ],
    ids=["came", "was refused", "of another partition", "before the record was lost"],
)
def test_an_unclean_election_by_hand_that_nobody_saw_may_have_taken_it(asked: str, standing: Standing) -> None:
    lines = ["send r ok @7 t10..11", *DIED, *WENT_ON]
    assert decided(*lines, asked, unclean_election=False).standing is standing


def test_a_term_may_have_begun_in_a_silence_before_it_was_seen() -> None:
    """No broker reports from 20 s to 40 s: then b2 leads."""
    silent = [*saw("b1,b2,b3", "0..20", 1, 0, "1,2,3"), *saw("b2,b3", "40..60", 2, 1, "2,3")]
    [_, term] = evidence(by_hand(*silent), **ALONE).elections[TRIAL].terms
    assert term.begins_ns == 19 * SECOND
    late = evidence(by_hand(*silent, *saw("b1", "40..40", 1, 0, "1,2,3")), **ALONE).elections[TRIAL]
    assert late.terms[1].begins_ns == 19 * SECOND
    heard = [*silent, *saw("b3", "21..39", 1, 0, "1,2,3")]
    [_, term] = evidence(by_hand(*heard), **ALONE).elections[TRIAL].terms
    assert term.begins_ns == 38 * SECOND


@pytest.mark.parametrize(
    ("fault", "standing"),
    [([], VIOLATION), (["fault cut b3 3..30 kind=isolate"], UNDECIDED), (["fault cut b3 3..30 kind=kill"], UNDECIDED)],
    ids=["it knows", "it may not know", "dead, it tells nothing new"],
)
def test_an_isr_that_is_reported_by_a_broker_that_may_not_know_makes_nobody_a_holder(
    fault: list[str], standing: Standing
) -> None:
    """b2 reports b1 alone in the ISR when r is written, and nothing later; b3 reports another ISR after that."""
    seen = [*saw("b2", "0..13", 1, 0, "1"), *saw("b3", "14..25", 1, 0, "1,2,3"), *saw("b2,b3", "27..60", 2, 1, "2")]
    assert decided("send r ok @5 t10..11", *seen, *fault, *CUT, **UNCLEAN).standing is standing


@pytest.mark.parametrize(
    ("last", "standing"), [(3, PERMITTED), (1, UNDECIDED)], ids=["one that lacked it", "who had it once"]
)
def test_a_leader_between_two_leaders_without_the_record_does_not_save_it(last: int, standing: Standing) -> None:
    """b2, without r, leads; then b1 again, which had r; then b3 without r, or b1 to the end."""
    seen = [
        *saw("b1,b2,b3", "0..20", 1, 0, "1"),
        "fault k b1 20..31 kind=isolate",
        "fault l b1,b2 40.5..50 kind=isolate",
        *saw("b2,b3", "22..30", 2, 1, "2"),
        *saw("b1,b3", "32..40", 1, 2, "1"),
        *(saw("b3", "43..60", 3, 3, "3") if last == 3 else saw("b1", "41..60", 1, 2, "1")),
    ]
    epoch = {3: 3, 1: 2}[last]
    log = ["final a @4 e0", f"final b @5 e{epoch}", "send late ok @6 t55..56", "end 0..7"]
    assert decided("send r ok @5 t10..11", *seen, *log, **UNCLEAN).standing is standing


def test_a_record_lost_with_all_disks_needs_no_offset() -> None:
    wiped = [
        *saw("b1,b2,b3", "0..20", 1, 0, "1,2,3"),
        "fault w b1,b2,b3 21..24 kind=wipe",
        *saw("b2,b3", "26..60", 2, 1, "2,3"),
    ]
    assert decided("send r ok t10..11", *wiped, *EMPTY, unclean_election=False).standing is PERMITTED
    some = [line.replace("b1,b2,b3 21", "b1,b2 21") for line in wiped]
    assert decided("send r ok t10..11", *some, *EMPTY, unclean_election=False).standing is not PERMITTED


@pytest.mark.parametrize("seed", range(40))
def test_the_last_reports_of_others_are_those_that_a_walk_through_all_finds(seed: int) -> None:
    random = Random(seed)
    seen = [
        Span("b1", "trial", 0, begun, begun + random.randrange(9), random.randrange(3), random.randrange(2), ())
        for begun in sorted(random.randrange(30) for _ in range(12))
    ]
    for span in seen:
        what, by = (span.leader, span.leader_epoch), span.from_ns
        others = [one.to_ns for one in seen if one.from_ns <= by and (one.leader, one.leader_epoch) != what]
        assert OtherReports(seen).last_ns(what, by) == ([max(others)] if others else [])


@pytest.mark.parametrize(
    ("metadata", "version", "standing"), [("kraft", "4.3.1", VIOLATION), ("zookeeper", "3.5.1", UNDECIDED)]
)
def test_a_cut_between_brokers_may_be_one_from_the_controller_where_a_broker_is_the_controller(
    metadata: str, version: str, standing: Standing
) -> None:
    lines = reported_by_one("1,2,3", "fault cut b2,b3 7..24 kind=partition")
    found = decided("send r ok @5 t11..12", *lines, metadata=metadata, version=version, **UNCLEAN)
    assert found.standing is standing


@pytest.mark.parametrize(
    ("fault", "standing"),
    [("20..60", PERMITTED), ("20..38.1", PERMITTED), ("20..38", UNDECIDED), ("41..60", UNDECIDED)],
    ids=["under a fault", "just healed", "healed, and told to lead", "after it"],
)
def test_a_broker_that_was_just_healed_need_not_have_been_there_to_be_elected(fault: str, standing: Standing) -> None:
    seen = [*saw("b1,b2,b3", "0..20", 1, 0, "1"), f"fault cut b1 {fault} kind=isolate"]
    seen += [*saw("b2,b3", "21..39", 1, 0, "1"), *saw("b2,b3", "40..60", 2, 1, "2")]
    assert decided("send r ok @5 t10..11", *seen, *CUT, **UNCLEAN).standing is standing


@pytest.mark.parametrize(
    ("fault", "standing"),
    [([], VIOLATION), (["fault cut b3 18..24.5 kind=isolate"], UNDECIDED)],
    ids=["it knows", "it may not know"],
)
def test_a_wiped_disk_is_not_filled_by_the_word_of_one_that_may_tell_of_before(
    fault: list[str], standing: Standing
) -> None:
    """Only b3 reported while b1 led: b2, whose disk was wiped at 20 s, joined the ISR at 22 s."""
    lines = emptied(
        *saw("b3", "0..19", 1, 0, "1"),
        *saw("b3", "20..21", 1, 0, "1"),
        *saw("b3", "22..24", 1, 0, "1,2"),
        *fault,
        "fault dead b2 19.95..20.5 kind=kill",
        "fault w b2 20..20 kind=wipe",
        "fault killed b1 25..60 kind=kill",
    )
    assert decided(*lines, unclean_election=False).standing is standing


def test_a_fault_of_several_nodes_may_be_healed_on_one_of_them_before() -> None:
    """b1 and b2 are killed at 15 s; from 20 s on they are started one after the other, and all is healed at 30 s."""
    recorded = by_hand(
        *saw("b1,b3", "0..14", 1, 0, "1,2,3"), *saw("b2", "0..14", 1, 0, "1,2,3"), *saw("b2", "21..40", 1, 0, "1")
    )
    [row] = by_hand("fault k b1,b2 15..30 kind=kill").rows["faults"]
    known = evidence(recorded, **ALONE).elections[TRIAL]
    acting = acting_on(known, [row | {"healing_ns": 20 * SECOND}], kraft=True)
    assert acting.down(2, 16 * SECOND, 20 * SECOND)
    assert not acting.down(2, 16 * SECOND, 21 * SECOND)
    assert not acting_on(known, [row], kraft=True).down(2, 16 * SECOND, 20 * SECOND)
    assert acting.up_ns(2, 16 * SECOND) == 20 * SECOND


def test_an_offset_that_holds_an_older_epoch_was_cut_by_the_next_leader() -> None:
    log = Log(np.array([0, 2, 4]), np.array([0, 8, 9]), np.array([7, 8, 9]), 10)
    assert log.cut(1, 5) == (True, 2)
    assert log.cut(3, 5) == (True, 4)
    assert log.cut(0, 5) == (False, None)


@pytest.mark.parametrize("reported", ["40..41", "24..24"], ids=["late", "at once"])
@pytest.mark.parametrize("last", ["22", "24"], ids=["nobody reported for a while", "others went on telling"])
def test_a_leader_that_is_reported_late_began_before_the_next_one(reported: str, last: str) -> None:
    """b2 was elected after 22 s and cut off; b3 leads since 25 s, and b1 since 45 s. b2's log goes on above r."""
    lines = [
        *saw("b1,b3", f"0..{last}", 1, 0, "1,2,3"),
        *saw("b2", "0..22", 1, 0, "1,2,3"),
        *saw("b1,b3", "25..44", 3, 2, "1,3"),
        *saw("b2", reported, 2, 1, "2,3"),
        *saw("b2", "43..44", 3, 2, "1,3"),
        *saw("b1,b2,b3", "45..60", 1, 3, "1,2,3"),
        *("final a @4 e0", "final z @5 e1", "final c @7 e1", "final late @8 e3"),
        *("send late ok @8 t50..51", "end 0..9"),
    ]
    terms = evidence(by_hand(*lines), **ALONE).elections[TRIAL].terms
    assert [term.begins_ns for term in terms] == sorted(term.begins_ns for term in terms)
    assert decided("send r ok @6 t23.6..23.9", *lines, **ALONE).standing is UNDECIDED


@pytest.mark.parametrize(
    ("of_b2", "epoch", "missed"),
    [
        (saw("b2", "22..41", 2, 1, "2"), 2, False),
        (saw("b2", "25..41", 2, 1, "2"), 2, False),
        (saw("b2", "26..41", 2, 1, "2"), 2, True),
        (saw("b2", "22..41", 2, 1, "2"), 3, True),
        ([], 1, False),
        ([], 2, True),
        (saw("b2", "23..24", -1, 1, "2"), 2, False),
        (saw("b2", "22..24", 2, None, "2"), None, False),
    ],
    ids=[
        *("reported before", "with it", "late", "and another unseen", "nobody between", "one unseen", "no leader"),
        "without epochs",
    ],
)
def test_the_isr_of_an_election_is_that_of_the_term_before(of_b2: list[str], epoch: int | None, missed: bool) -> None:
    first = None if epoch is None else 0
    lines = [*saw("b1", "0..20", 1, first, "1,2,3"), *of_b2, *saw("b1,b3", "25..60", 3, epoch, "1,3")]
    found = evidence(by_hand(*lines), **UNCLEAN).elections[TRIAL]
    assert found.isr_missed(len(found.terms) - 1) is missed
    assert not found.isr_missed(0)


def never(observer: str, from_ns: int, to_ns: int) -> bool:
    """Nobody may know less than others."""
    return False


@pytest.mark.parametrize(
    ("number", "until", "whole"),
    [(1, 60, False), (1, 30, True), (1, 31, False), (0, 30, False)],
    ids=["a silence in it", "before that", "until that", "a silence in the term before"],
)
def test_without_epochs_nothing_was_missed_where_nobody_was_silent_since_a_term_began(
    number: int, until: int, whole: bool
) -> None:
    lines = [*saw("b1", "0..5", 1, None, "1"), *saw("b1", "10..20", 1, None, "1")]
    lines += [*saw("b2", "21..30", 2, None, "2"), *saw("b2", "35..60", 2, None, "2")]
    known = evidence(by_hand(*lines)).elections[TRIAL]
    assert known.seen_whole(number, until * SECOND, never) is whole


def test_whose_word_came_last_counts_whenever_it_began() -> None:
    known = evidence(by_hand(*saw("b1", "0..60", 1, 0, "1"), *saw("b2", "5..10", 1, 0, "1"))).elections[TRIAL]
    for behind, whole in (("b2", True), ("b1", False)):
        assert known.seen_whole(0, 60 * SECOND, lambda observer, *_, of=behind: observer == of) is whole


def test_a_silence_may_begin_and_end_with_a_report() -> None:
    lines = [*saw("b1", "0..5", 1, 0, "1"), *saw("b1", "15..20", 1, 0, "1"), *saw("b2", "0..20", 1, 0, "1")]
    known = evidence(by_hand(*lines)).elections[TRIAL]
    asked = [(5, 15), (4, 15), (5, 16), (20, 30), (19, 30), (-5, 0), (-5, 1)]
    silent = [known.reported_nothing("b1", begun * SECOND, over * SECOND) for begun, over in asked]
    assert silent == [True, False, False, True, False, True, False]
    assert not known.reported_nothing("b3", 5 * SECOND, 15 * SECOND)


@pytest.mark.parametrize(("heard", "times_of_it"), [(41, {14, 42}), (12, {13})], ids=["late", "soon"])
def test_all_changes_at_the_times_at_which_a_term_begins_or_is_over_or_goes_on_once_more(
    heard: int, times_of_it: set[int]
) -> None:
    lines = [*saw("b1", "0..10", 1, 0, "1"), *saw("b2", "0..60", 2, 1, "2"), *saw("b1", f"{heard}..60", 2, 1, "2")]
    known = evidence(by_hand(*saw("b2", "0..9", 1, 0, "1"), *(line.replace("@0..60", "@11..60") for line in lines)))
    elections = known.elections[TRIAL]
    times = [at for term in elections.terms for at in (term.begins_ns, term.ends_ns)]
    times += [at for term in elections.terms for more in term.again_ns for at in more]
    assert {at * SECOND for at in times_of_it} <= {*times}
    assert {*times} <= {*elections.moments.tolist()}


def test_a_high_watermark_from_an_observer_that_is_no_broker_is_not_a_leaders() -> None:
    known = evidence(by_hand("saw someone @1 leader=0 epoch=0 isr=0 high=7")).elections[TRIAL]
    assert known.committed_ns(0, 5) is None


@pytest.mark.parametrize("b2", ["10..20", "11..20"])
def test_without_epochs_two_may_first_say_in_the_same_instant_that_they_lead(b2: str) -> None:
    lines = [
        *saw("b1", "10..20", 1, None, "1,2,3"),
        *saw("b2", b2, 2, None, "2,3"),
        *saw("b3", "10..20", 1, None, "1,2,3"),
    ]
    lines += saw("b3", "21..30", 3, None, "3")
    known = evidence(by_hand(*lines)).elections[TRIAL]
    assert [(term.leader, {one.observer for one in term.reports}) for term in known.terms] == [
        *((1, {"b1", "b3"}), (2, {"b2"}), (3, {"b3"}))
    ]
    assert decided("send r ok @5 t15..16", *lines, "final a @4", "end 0..5", **UNCLEAN).standing is VIOLATION


@pytest.mark.parametrize("more", [[], ["fault c c1 15..25 kind=kill"], ["fault s b2,b3 3..60 kind=slow plane=all"]])
def test_a_broker_that_reports_another_leader_does_not_lead_itself(more: list[str]) -> None:
    """b2, the leader of epoch 1, reported until 25 s that b1 leads: no other report is needed."""
    led = [*saw("b1,b2,b3", "0..20", 1, 0, "1"), *saw("b2,b3", "21..25", 1, 0, "1"), *saw("b2,b3", "26..60", 2, 1, "2")]
    known = evidence(by_hand(*led, "fault k b1 20.2..90 kind=kill", *more)).elections[TRIAL]
    assert known.terms[1].begins_ns == 24 * SECOND


@pytest.mark.parametrize(
    ("fault", "controller", "begins"),
    [
        ([], 3, 24),
        (["fault s b2 3..60 kind=slow plane=controller"], 3, 19),
        (["fault s b2 3..60 kind=slow plane=controller"], 2, 1),
    ],
    ids=["nothing", "itself", "all others, too"],
)
def test_with_zookeeper_a_leader_that_is_late_may_tell_of_another(
    fault: list[str], controller: int, begins: int
) -> None:
    """It first hears that it leads (LeaderAndIsr), and then the metadata that it reports (UpdateMetadata)."""
    led = [*saw("b1,b2", "0..20", 1, 0, "1"), *saw("b2", "21..25", 1, 0, "1"), *saw("b2", "26..60", 2, 1, "2")]
    led = [f"{line} controller={controller}" for line in led]
    recorded = by_hand(*led, "fault k b1 20.2..90 kind=kill", *fault)
    known = evidence(recorded, version="2.3.1", metadata="zookeeper").elections[TRIAL]
    assert known.terms[1].begins_ns == begins * SECOND


@pytest.mark.parametrize(
    ("since", "until", "isr"),
    [(0, 4, "1"), (0, 5, "1,2"), (10, 30, "1,2"), (11, 30, ""), (20, 40, "1,3"), (10, 20, "1,2"), (8, 9, "1,2")],
    ids=["before", "from then on", "until then", "after", "a later epoch of the leader", "another leader", "within"],
)
def test_the_isrs_of_a_leader_between_two_times_include_every_reported_member(since: int, until: int, isr: str) -> None:
    lines = [*saw("b1", "0..4", 1, 0, "1"), *saw("b2", "5..10", 1, 0, "1,2"), *saw("b2", "12..19", 2, 1, "2")]
    lines += saw("b1", "31..40", 1, 2, "1,3")
    known = evidence(by_hand(*lines)).elections[TRIAL]
    number = 2 if until == 40 else 0
    assert known.reported_in_sync(number, since * SECOND, until * SECOND) == {int(one) for one in isr.split(",") if one}


def test_one_report_without_an_epoch_makes_any_leader_possible() -> None:
    """The twin: nobody reported an epoch."""
    none = [re.sub(r"epoch=\d+", "", line) for line in LOST_ALONE]
    for one, standing in (("epoch=0", UNDECIDED), ("", PERMITTED)):
        reported = [line.replace("saw b3 @0..4 leader=1", f"saw b3 @0..4 leader=1 {one}") for line in none]
        assert decided(*reported, **UNCLEAN).standing is standing
        assert evidence(by_hand(*reported)).elections[TRIAL].some_epochs is bool(one)


def test_a_report_without_an_epoch_takes_those_of_no_other_partition_nor_counts_without_a_leader() -> None:
    others = [f"{line} p1" for line in [*saw("b1", "0..9", 1, 0, "1"), *saw("b1", "10..12", 1, None, "1")]]
    recorded = by_hand(*saw("b1", "0..20", 1, 4, "1"), *saw("b2", "0..20", -1, None, ""), *others)
    known = evidence(recorded).elections
    assert [(term.leader, term.epoch) for term in known[TRIAL].terms] == [(1, 4)]
    assert [(term.leader, term.epoch) for term in known["trial", 1].terms] == [(1, None)]


def random_reports(rng: Random, without: float) -> list[str]:
    """What three brokers reported of any leaders, in any order of epochs, with silences; some ``without`` an epoch."""
    found = []
    for name in ("b1", "b2", "b3"):
        at = 0
        while at < 40:
            until, leader, epoch = at + rng.choice([0, 2, 8]), rng.choice([-1, 1, 2, 3]), rng.randrange(4)
            isr = rng.choice(["1", "1,2", "1,2,3", "2", "2,3"])
            found += saw(name, f"{at}..{until}", leader, None if rng.random() < without else epoch, isr)
            at = until + rng.choice([1, 1, 1, 6])
    return found


@pytest.mark.parametrize("settings", [UNCLEAN, ALONE, {}], ids=["unclean", "alone", "clean"])
@pytest.mark.parametrize("without", [0, 0.1, 0.5, 1])
@pytest.mark.heavy
def test_any_reports_are_judged_and_none_is_surer_when_some_epochs_are_missing(
    without: float, settings: dict[str, Any]
) -> None:
    record = "send r ok @5 t10..11"
    for seed in range(60):
        reported, every = (random_reports(Random(seed), share) for share in (without, 0))
        known = evidence(by_hand(record, *reported, *CUT))
        after = InFlight(known.elections, known.acting, 5).after()
        assert all((TRIAL, n) in after for n, _ in enumerate(known.elections[TRIAL].terms))
        found = decided(record, *reported, *CUT, **settings).standing
        if known.elections[TRIAL].some_epochs:
            assert found in {UNDECIDED, decided(record, *every, *CUT, **settings).standing}
            assert found is not PERMITTED
