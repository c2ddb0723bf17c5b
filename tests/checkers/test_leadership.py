"""Observations as spans, and what they show."""

from random import Random

import pyarrow as pa
import pytest

from checkers.leadership import (
    LeaderTerm,
    Span,
    isr_before,
    leader_terms,
    leaders,
    refilled,
    spans,
    views,
    who_led,
)
from harness.history.schema import OBSERVATIONS
from tests.checkers.notation import SECOND, by_hand

TRIAL = ("trial", 0)
NAMES = {1: "b1", 2: "b2", 3: "b3"}


def span(
    observer: str, begin: int, end: int, leader: int, epoch: int | None, isr: tuple[int, ...], partition=0
) -> Span:
    return Span(observer, "trial", partition, begin * SECOND, end * SECOND, leader, epoch, isr)


def seen(*lines: str) -> list[Span]:
    return spans(pa.Table.from_pylist(by_hand(*lines).rows["observations"], OBSERVATIONS))


def test_equal_observations_are_one_span_and_each_change_begins_another() -> None:
    assert seen(
        "saw b1 @1 leader=1 epoch=0 isr=1,2",
        "saw b1 @2 leader=1 epoch=0 isr=2,1",
        "saw b2 @2 leader=1 epoch=0 isr=1,2",
        "saw b1 @5 leader=1 epoch=0 isr=1",
        "saw b1 @6 leader=1 epoch=0 isr=1,2",
        "saw b1 @7 leader=2 epoch=1 isr=1,2",
        "saw b1 @9 leader=2 epoch=1 isr=1,2",
        "saw b1 @3 leader=2 epoch=1 isr=2 p1",
    ) == [
        span("b1", 1, 2, 1, 0, (1, 2)),
        span("b2", 2, 2, 1, 0, (1, 2)),
        span("b1", 3, 3, 2, 1, (2,), partition=1),
        span("b1", 5, 5, 1, 0, (1,)),
        span("b1", 6, 6, 1, 0, (1, 2)),
        span("b1", 7, 9, 2, 1, (1, 2)),
    ]


def test_an_epoch_that_is_not_reported_differs_from_one_that_is() -> None:
    lines = [f"saw b1 @{at} leader=1 {reported} isr=1" for at, reported in enumerate(["", "", "epoch=5", "", "", ""])]
    assert seen(*lines) == [
        *(span("b1", 0, 1, 1, None, (1,)), span("b1", 2, 2, 1, 5, (1,)), span("b1", 3, 5, 1, None, (1,)))
    ]


def test_repeated_observations_are_one_span_in_any_order() -> None:
    lines = [
        "saw b1 @1 leader=1 epoch=0 isr=1,2",
        "saw b1 @2 leader=1 epoch=0 isr=2,1",
        "saw b1 @3 leader=1 epoch=0 isr=2,1",
        "saw b1 @4 leader=1 isr=1,2",
        "saw b1 @5 leader=1 isr=1,2",
        "saw b1 @6 leader=1 epoch=1 isr=1",
        "saw b1 @7 leader=1 epoch=1 isr=1",
        "saw b1 @8 leader=1 epoch=1 isr=1",
        "saw b1 @9 leader=2 epoch=1 isr=1",
    ]
    reported = [
        span("b1", 1, 3, 1, 0, (1, 2)),
        span("b1", 4, 5, 1, None, (1, 2)),
        span("b1", 6, 8, 1, 1, (1,)),
        span("b1", 9, 9, 2, 1, (1,)),
    ]
    assert [seen(*order) for order in (lines, lines[::-1], Random(1).sample(lines, len(lines)))] == [reported] * 3


@pytest.mark.parametrize("count", range(4))
def test_no_one_two_and_three_observations_are_as_they_are(count: int) -> None:
    assert len(seen(*(f"saw b{n} @1 leader=1 epoch=0 isr=1" for n in range(count)))) == count


def test_the_last_report_of_each_broker_is_its_view_unless_it_fell_silent() -> None:
    reported = [span("b2", 0, 9, 1, 0, (1, 2)), span("b1", 0, 4, 1, 0, (1, 2)), span("b1", 5, 9, 1, 0, (1,))]
    assert views([*reported, span("b3", 0, 1, 1, 0, (1,))], TRIAL, 6 * SECOND) == [reported[2], reported[0]]


def test_terms_come_by_epoch_and_each_had_begun_when_a_later_one_was_reported() -> None:
    reported = [
        span("b1", 0, 9, 1, 0, (1,)),
        span("b2", 3, 9, 2, 1, (2,)),
        span("b3", 2, 2, -1, 1, (1,)),
        span("b3", 4, 9, 1, 2, (1,)),
        span("b3", 5, 9, 2, 1, (2,)),
        span("b1", 1, 9, 3, 0, (3,), partition=1),
    ]
    assert leader_terms(reported, TRIAL) == [
        LeaderTerm(1, 0, 0),
        LeaderTerm(2, 1, 3 * SECOND),
        LeaderTerm(1, 2, 4 * SECOND),
    ]
    late = [span("b1", 5, 9, 1, 0, (1,)), span("b2", 3, 9, 2, 1, (2,))]
    assert leader_terms(late, TRIAL) == [LeaderTerm(1, 0, 3 * SECOND), LeaderTerm(2, 1, 3 * SECOND)]
    assert isr_before(late, LeaderTerm(1, 0, 3 * SECOND)) is None


def test_a_term_had_begun_when_any_later_one_was_seen() -> None:
    reported = [span("b1", 8, 9, 1, 0, (1,)), span("b2", 3, 9, 2, 1, (2,)), span("b3", 5, 9, 3, 2, (3,))]
    assert [term.from_ns for term in leader_terms(reported, TRIAL)] == [3 * SECOND, 3 * SECOND, 5 * SECOND]


def test_a_broker_of_the_lowest_id_leads_as_any_other() -> None:
    reported = [span("b0", 0, 4, 0, 3, (0, 1)), span("b1", 5, 9, 1, 3, (1,))]
    assert leaders(reported, TRIAL) == [0, 1]
    assert who_led(reported[:1], TRIAL, 2 * SECOND, {}) == {"leader": 0, "leader_epoch": 3, "isr": [0, 1]}
    assert isr_before(reported, LeaderTerm(1, 3, 5 * SECOND)) is None
    assert [term.leader for term in leader_terms(reported, TRIAL)] == [0, 1]


def test_without_reported_epochs_terms_come_as_they_were_seen() -> None:
    reported = [span("b2", 3, 9, 2, None, (2,)), span("b1", 0, 9, 1, None, (1,))]
    assert leader_terms(reported, TRIAL) == [LeaderTerm(1, None, 0), LeaderTerm(2, None, 3 * SECOND)]


def test_a_leader_is_elected_from_the_isr_that_was_last_reported_before_it() -> None:
    reported = [
        span("b1", 0, 3, 1, 0, (1, 2)),
        span("b3", 0, 9, 1, 0, (1, 2, 3)),
        span("b1", 4, 9, 1, 0, (1,)),
        span("b2", 6, 9, 2, 1, (2,)),
        span("b1", 8, 9, 1, 0, (1, 2, 3)),
    ]
    assert isr_before(reported, LeaderTerm(2, 1, 6 * SECOND)) == (1,)
    assert isr_before(reported, LeaderTerm(1, 0, 0)) is None
    leaderless = span("b3", 5, 9, -1, 1, (1, 3))
    assert isr_before([*reported, leaderless], LeaderTerm(2, 1, 6 * SECOND)) == (1, 3)
    unnumbered = [span("b1", 0, 5, 1, None, (1,)), span("b2", 6, 9, 2, None, (2,))]
    assert isr_before(unnumbered, LeaderTerm(2, None, 6 * SECOND)) == (1,)


def test_leaders_come_in_the_order_they_were_seen_and_no_leader_is_none() -> None:
    reported = [
        span("b1", 0, 9, 1, 0, (1,)),
        span("b2", 1, 2, -1, 0, (1,)),
        span("b2", 3, 9, 2, 1, (2,)),
        span("b1", 0, 9, 3, 0, (3,), partition=1),
    ]
    assert leaders(reported, TRIAL) == [1, 2]
    assert leaders(reported, ("trial", 7)) == []


def test_the_leaders_own_word_counts_before_the_others() -> None:
    reported = [span("b1", 0, 10, 1, 0, (1,)), span("b2", 0, 10, 1, 0, (1, 2, 3))]
    assert who_led(reported, TRIAL, 5 * SECOND, NAMES) == {"leader": 1, "leader_epoch": 0, "isr": [1]}


def test_of_two_that_claim_to_lead_the_newer_one_does_and_the_other_is_reported() -> None:
    reported = [span("b1", 0, 10, 1, 0, (1, 2)), span("b2", 4, 10, 2, 1, (2,))]
    assert who_led(reported, TRIAL, 5 * SECOND, NAMES) == {
        "leader": 2,
        "leader_epoch": 1,
        "isr": [2],
        "also_leading": [{"leader": 1, "leader_epoch": 0, "isr": [1, 2]}],
    }
    assert who_led(reported, TRIAL, 3 * SECOND, NAMES)["leader"] == 1


def test_a_time_between_two_observations_is_reported_with_both() -> None:
    reported = [span("b1", 0, 4, 1, 0, (1, 2)), span("b1", 6, 10, 1, 0, (1,))]
    assert who_led(reported, TRIAL, 5 * SECOND, NAMES) == {
        "leader": 1,
        "leader_epoch": 0,
        "isr": [1, 2],
        "changed_to": {"leader": 1, "leader_epoch": 0, "isr": [1]},
    }
    another = span("b3", 6, 10, 1, 0, (1, 3))
    assert who_led([reported[0], another, reported[1]], TRIAL, 5 * SECOND, NAMES)["changed_to"]["isr"] == [1]
    assert "changed_to" not in who_led([reported[0], another], TRIAL, 5 * SECOND, NAMES)
    before = [span("b1", 0, 2, 1, 0, (1, 2)), span("b1", 3, 4, 1, 0, (1,)), span("b1", 6, 10, 1, 0, (1, 3))]
    assert who_led(before, TRIAL, 5 * SECOND, NAMES)["changed_to"]["isr"] == [1, 3]
    assert "changed_to" not in who_led(reported, TRIAL, 4 * SECOND, NAMES)
    assert "changed_to" not in who_led(reported, TRIAL, 11 * SECOND, NAMES)


def test_a_leader_that_fell_silent_long_ago_is_not_asked() -> None:
    reported = [span("b1", 0, 1, 1, 0, (1, 2)), span("b2", 6, 10, 2, 1, (2,))]
    assert who_led(reported, TRIAL, 7 * SECOND, NAMES) == {"leader": 2, "leader_epoch": 1, "isr": [2]}
    assert who_led(reported, TRIAL, 4 * SECOND, NAMES)["leader"] == 1
    assert who_led(reported, TRIAL, 4 * SECOND + 1, NAMES)["leader"] is None
    assert who_led(reported, TRIAL, 6 * SECOND, NAMES)["leader"] == 2


def test_without_reports_nobody_led() -> None:
    nobody = {"leader": None, "leader_epoch": None, "isr": None}
    assert who_led([], TRIAL, 5, NAMES) == nobody
    assert who_led([span("b1", 0, 9, -1, 0, (1,))], TRIAL, 5, NAMES) == nobody


@pytest.mark.parametrize(
    ("reported", "at"),
    [
        ([span("b2", 0, 9, 2, 0, (1, 2))], None),
        ([span("b2", 0, 4, 2, 0, (1, 2)), span("b2", 6, 9, 2, 0, (1, 2))], 6),
        ([span("b2", 0, 4, 2, 0, (1, 2)), span("b2", 5, 9, 2, 0, (1, 2))], None),
        ([span("b1", 0, 4, 1, 0, (1, 2)), span("b1", 6, 9, 1, 1, (1,))], None),
        (
            [
                span("b2", 0, 4, 2, 0, (1, 2)),
                span("b2", 0, 4, 2, 0, (1, 2), partition=1),
                span("b2", 6, 9, 2, 0, (1, 2)),
                span("b2", 8, 9, 2, 0, (1, 2), partition=1),
            ],
            8,
        ),
        ([span("b2", 0, 4, 2, 0, (1, 2)), span("b2", 0, 4, 2, 0, (1, 2), 1), span("b2", 6, 9, 2, 0, (1, 2))], None),
    ],
)
def test_a_wiped_broker_is_refilled_when_it_follows_another_everywhere(reported: list[Span], at: int | None) -> None:
    assert refilled(reported, 1, 5 * SECOND) == (None if at is None else at * SECOND)
