"""A record that was acknowledged with acks=all while its leader still reported that it was not committed."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from checkers.evidence import holders
from checkers.evidence.decision import Case
from checkers.evidence.high_watermarks import risen
from checkers.evidence.intervals import BEFORE
from checkers.evidence.record_ranges import COLUMNS, record_ranges
from harness.core.anomalies import LOST
from harness.core.verdict import Standing
from tests.checkers.notation import SECOND, by_hand
from tests.checkers.ranges import TRIAL
from tests.checkers.test_holders import UNCLEAN, decided, evidence, saw

PERMITTED, UNDECIDED, VIOLATION = Standing.PERMITTED, Standing.UNDECIDED, Standing.VIOLATION

#: b1 is cut off from its replicas, alone in the ISR from 14 s on, and killed at 20 s. b2 is elected without offset 5.
CUT_OFF = [
    *saw("b2,b3", "0..13", 1, 0, "1,2,3"),
    *saw("b2,b3", "14..25", 1, 0, "1"),
    "fault cut b1,b2,b3 5..40 from=b1 to=b2,b3 plane=replication",
    "fault k b1 20..40 kind=kill",
    *saw("b2,b3", "26..60", 2, 1, "2,3"),
    *("final a @4 e0", "final b @5 e1", "end 0..6"),
]


def reported(high: Callable[[int], int | None], by: str = "b1", epoch: int = 0) -> list[str]:
    """A broker's reports of every second, each with a high watermark."""
    return [
        f"saw {by} @{at} leader=1 epoch={epoch} isr={'1,2,3' if at < 14 else '1'}"
        + ("" if high(at) is None else f" high={high(at)}")
        for at in range(21)
    ]


@pytest.mark.parametrize(
    ("sent", "reports", "standing"),
    [
        ("13..13.9", reported(lambda at: 3 if at < 15 else 6), UNDECIDED),
        ("13..14", reported(lambda at: 3 if at < 17 else 6), UNDECIDED),
        ("13..14", reported(lambda at: 5 if at < 17 else 6), UNDECIDED),
        ("13..14", reported(lambda at: 3 if at < 15 else 6), UNDECIDED),
        ("13..15.1", reported(lambda at: 3 if at < 16 else 6), PERMITTED),
        ("13..14.1", reported(lambda at: 3 if at < 14 else 6), PERMITTED),
        ("13..14.1", reported(lambda _: None), PERMITTED),
        ("13..14.1", [*reported(lambda _: None), *saw("b2", "14.5..16.5", 1, 0, "1 high=3")], PERMITTED),
        ("13..14.1", reported(lambda at: 3 if at < 13 else None), PERMITTED),
    ],
    ids=[
        *("a report after it", "three", "a high watermark at it", "the first of which may be older"),
        *("a report before it", "it rose", "no high watermark", "a follower's", "none since"),
    ],
)
def test_a_loss_is_undecided_if_the_leader_reported_the_record_as_uncommitted(
    sent: str, reports: list[str], standing: Standing
) -> None:
    assert decided(f"send r ok @5 t{sent}", *reports, *CUT_OFF, **UNCLEAN).standing is standing


def test_that_is_said_and_no_neighbour_takes_it_along() -> None:
    surely = decided("send r ok @5 t13..14.1", *reported(lambda at: 3 if at < 17 else 6), *CUT_OFF, **UNCLEAN)
    assert (surely.ruling.because, surely.may_have) == (
        "its leader still reported a high watermark not above it after it had acknowledged it with acks=all",
        frozenset(),
    )
    perhaps = decided("send r ok @5 t13..14.1", *reported(lambda at: 3 if at < 15.1 else 6), *CUT_OFF, **UNCLEAN)
    assert (perhaps.standing, perhaps.may_have) == (UNDECIDED, {1})


def test_records_acknowledged_between_two_reports_are_judged_apart() -> None:
    recorded = evidence(by_hand("send r ok @5 t13..14", *reported(lambda at: 3 if at < 17 else 6), *CUT_OFF), **UNCLEAN)

    def key(until: float) -> tuple[object, ...]:
        return recorded.alike(Case(TRIAL, 13 * SECOND, int(until * SECOND), True, 5, 5))

    assert key(14.9) == key(14.95) != key(15.05)
    assert key(15.3) != key(16.5)
    assert key(17.1) == key(17.3)


@pytest.mark.parametrize(
    ("first", "since", "until", "standing"),
    [(7, 14.9, 17.5, UNDECIDED), (5, 14.9, 17.5, PERMITTED), (5, 12, 14.9, UNDECIDED), (7, 17.2, 17.5, PERMITTED)],
)
def test_of_several_the_first_was_acknowledged_first_and_the_last_last(
    first: int, since: float, until: float, standing: Standing
) -> None:
    recorded = evidence(by_hand("send r ok @5 t13..14", *reported(lambda at: 7 if at < 17 else 9), *CUT_OFF), **UNCLEAN)
    by, first_by = int(until * SECOND), int(since * SECOND)
    case = Case(TRIAL, 13 * SECOND, by, True, first, 8, last_sent_ns=13 * SECOND, first_until_ns=first_by)
    assert holders.decided(recorded, LOST, case).standing is standing


def test_with_acks_1_a_leader_acknowledges_what_is_not_committed() -> None:
    late = reported(lambda at: 3 if at < 17 else 6)
    assert decided("send r ok @5 t13..14.1", *late, *CUT_OFF, **UNCLEAN, acks="1").standing is PERMITTED


def test_a_report_tells_of_a_time_after_the_one_before_it() -> None:
    highs = risen(np.array([10, 20, 30, 40, 50]), np.array([3, 3, 3, 7, 7]))
    assert [part.tolist() for part in highs] == [[10, 40], [3, 7], [30, 50], [20, 40]]
    once = risen(np.array([10, 20]), np.array([3, 7]))
    assert [part.tolist() for part in once] == [[10, 20], [3, 7], [10, 20], [BEFORE, 10]]
    assert [len(part) for part in risen(np.empty(0, np.int64), np.empty(0, np.int64))] == [0, 0, 0, 0]


def every_quarter(by: str, since: float, until: float, rest: Callable[[float], str]) -> list[str]:
    """A broker's reports of every quarter of a second."""
    times = [since + n / 4 for n in range(int((until - since) * 4) + 1)]
    return [f"saw {by} @{at} leader=1 epoch=0 isr={rest(at)}" for at in times]


#: b1 is alone in the ISR from 5 s on. Its high watermark is 7, 8 from 7.5 s on, and 10 from 10.25 s on.
ALONE = [
    *every_quarter("b1", 0, 4.75, lambda _: "1,2,3 high=4"),
    *every_quarter("b1", 5, 20, lambda at: f"1 high={7 if at < 7.5 else 8 if at < 10.2 else 10}"),
    *(line for by in ("b2", "b3") for line in every_quarter(by, 0, 4.75, lambda _: "1,2,3")),
    *(line for by in ("b2", "b3") for line in every_quarter(by, 5, 25.75, lambda _: "1")),
    "fault killed b1 20..40 kind=kill",
    *saw("b2,b3", "26..60", 2, 1, "2"),
    *("final a @4 e0", "final b @5 e1", "send late ok @11 t50..51", "final late @11 e1", "end 0..12"),
]


def test_one_that_was_is_not_folded_with_others_that_were_not() -> None:
    known = evidence(by_hand("send r ok @8 t8..8.5", *ALONE), **UNCLEAN)
    rows = [
        {"topic": TRIAL[0], "partition": TRIAL[1], "offset": offset, "last_offset": offset}
        | {"sent_ns": int(sent * SECOND), "acknowledged_ns": int(by * SECOND)}
        for offset, sent, by in ((7, 8.2, 8.3), (8, 8.3, 8.4), (9, 8.5, 10.4))
    ]
    found = record_ranges([pa.Table.from_pylist(rows, COLUMNS)], {}, 64, {}, known)
    standings = {one.first_offset: holders.decided(known, LOST, one.case).standing for one in found if one.case}
    assert (standings, sum(one.count for one in found)) == ({7: PERMITTED, 8: UNDECIDED}, 3)


def test_a_deposed_leader_reports_nothing_of_what_its_successor_acknowledged() -> None:
    """b1 is cut off, and goes on to report its last high watermark. b3, out of the ISR, is elected after b2."""
    lines = [
        *(f"saw b1 @{at} leader=1 epoch=0 isr=1,2 high=3" for at in range(40)),
        *saw("b2,b3", "0..19", 1, 0, "1,2"),
        *saw("b2,b3", "20..45", 2, 1, "2"),
        "fault cut b1 12..70 kind=isolate clients=kept",
        "fault k b2 45..70 kind=kill",
        *saw("b3", "46..49", 2, 1, "2"),
        *saw("b3", "50..80", 3, 2, "3"),
        *("final x @2 e0", "final y @3 e2", "end 0..4"),
    ]
    assert decided("send r ok @5 t30..30.1", *lines, **UNCLEAN).standing is PERMITTED
