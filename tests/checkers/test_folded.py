"""Records that share a bucket of offsets: each is decided as if it were alone."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from checkers.evidence import holders
from checkers.evidence.causes import decided
from checkers.evidence.decision import Case
from checkers.evidence.evidence import Evidence
from checkers.evidence.neighbours import attached
from checkers.evidence.record_ranges import COLUMNS, RecordRange, record_ranges
from harness.core.anomalies import LOST, VANISHED, Anomaly
from harness.core.verdict import Standing
from tests.checkers.notation import SECOND, by_hand
from tests.checkers.test_holders import (
    ALONE,
    CUT,
    PERMITTED,
    TRIAL,
    UNCLEAN,
    UNDECIDED,
    VIOLATION,
    WHOLE,
    evidence,
    saw,
)

WIDTH = 64
UNCLEAN_ALONE: dict[str, Any] = {"acks": "1", "unclean_election": True}


def gone(
    offset: int, sent: float, acknowledged: float | None, read: float | None = None, epoch: int | None = None
) -> dict[str, Any]:
    at = {"sent_ns": sent, "acknowledged_ns": acknowledged, "read_ns": read}
    times = {name: None if second is None else int(second * SECOND) for name, second in at.items()}
    return {"topic": "trial", "partition": 0, "offset": offset, **times, "read_epoch": epoch}


def ranges(known: Evidence, anomaly: Anomaly, rows: Iterable[dict[str, Any]]) -> list[RecordRange]:
    table = pa.Table.from_pylist([{name: row.get(name) for name in COLUMNS.names} for row in rows], COLUMNS)
    return decided(record_ranges([table], {}, WIDTH, {}, known), anomaly, known)


def standings(parts: Iterable[RecordRange]) -> list[Standing]:
    return [part.decision.standing for part in parts if part.decision is not None]


def alone_and_together(
    known: Evidence, anomaly: Anomaly, rows: Sequence[dict[str, Any]]
) -> tuple[list[Standing], list[Standing]]:
    """The standing of each record alone, in the order of their offsets, and of all of them together."""
    alone = [standing for row in rows for standing in standings(ranges(known, anomaly, [row]))]
    together = ranges(known, anomaly, rows)
    return alone, [standing for part in together for standing in [*standings([part])] * part.count]


#: b1 led, and reported a high watermark of 20 at 12 s; b2, in sync, leads since 26 s.
REPORTED_ONCE = [
    *saw("b1", "0..11", 1, 0, "1,2,3"),
    *saw("b1", "12..20", 1, 0, "1,2,3", "high=20"),
    *saw("b2,b3", "0..25", 1, 0, "1,2,3"),
    "fault killed b1 20..40 kind=kill",
    *saw("b2,b3", "26..60", 2, 1, "2,3"),
    *CUT,
]
#: b1 led, and reported a high watermark of 20 while b2 was in sync, and one of 40 when it was not. b2 leads since 46 s.
REPORTED_TWICE = [
    *saw("b1", "0..11", 1, 0, "1,2,3"),
    *saw("b1", "12..14", 1, 0, "1,2,3", "high=20"),
    *saw("b1", "15..30", 1, 0, "1,3", "high=20"),
    *saw("b1", "31..40", 1, 0, "1,3", "high=40"),
    *saw("b2,b3", "0..14", 1, 0, "1,2,3"),
    *saw("b2", "15..45", 1, 0, "1,3"),
    *saw("b3", "15..40", 1, 0, "1,3"),
    "fault killed b1,b3 40..90 kind=kill",
    *saw("b2", "46..60", 2, 1, "2"),
    *CUT,
]


def test_records_below_the_high_watermark_are_judged_apart() -> None:
    known = evidence(by_hand(*REPORTED_ONCE), **ALONE)
    rows = [gone(offset, 10, 11) for offset in (10, 19, 20, 30)]
    expected = [VIOLATION, VIOLATION, PERMITTED, PERMITTED]
    assert alone_and_together(known, LOST, rows) == (expected, expected)


def test_records_are_judged_apart_from_those_committed_when_others_were_in_sync() -> None:
    known = evidence(by_hand(*REPORTED_TWICE), **UNCLEAN_ALONE)
    rows = [gone(10, 10, 11), gone(30, 10.1, 11.1)]
    assert alone_and_together(known, LOST, rows) == ([VIOLATION, UNDECIDED], [VIOLATION, UNDECIDED])


def test_records_are_judged_apart_from_those_reported_as_committed_in_a_later_term() -> None:
    lines = [
        *saw("b1", "0..14", 1, 0, "1,2"),
        *saw("b1", "15..17", 1, 1, "1,2"),
        *saw("b1", "18..30", 1, 1, "1,2", "high=20"),
        *saw("b2,b3", "0..14", 1, 0, "1,2"),
        *saw("b2,b3", "15..35", 1, 1, "1,2"),
        "fault killed b1 30..90 kind=kill",
        *saw("b2,b3", "36..60", 2, 2, "2"),
        *("final a @4 e0", "final b @5 e2", "send late ok @6 t50..51", "final late @6 e2", "end 0..7"),
    ]
    known = evidence(by_hand(*lines), **ALONE)
    rows = [gone(10, 5, 6), gone(30, 5, 6)]
    assert alone_and_together(known, LOST, rows) == ([VIOLATION, PERMITTED], [VIOLATION, PERMITTED])


def test_records_below_a_delivered_offset_are_judged_apart() -> None:
    known = evidence(by_hand(*[line.replace("high=20", "") for line in REPORTED_ONCE]), **ALONE)
    given = {(TRIAL, 0): (np.array([19]), np.array([12 * SECOND]))}
    known = replace(known, delivered=given, _edges={}, _moments={})
    rows = [gone(offset, 10, 11) for offset in (10, 19, 20, 30)]
    expected = [VIOLATION, VIOLATION, PERMITTED, PERMITTED]
    assert alone_and_together(known, LOST, rows) == (expected, expected)


#: b1, killed at 20.5 s, may have acknowledged records that were sent by 21.5 s. b3 leads since 27 s.
KILLED = [
    *saw("b1", "0..20", 1, 0, "1,2"),
    *saw("b2,b3", "0..21", 1, 0, "1,2"),
    "fault k b1 20.5..60 kind=kill",
    *saw("b2,b3", "27..60", 3, 1, "3"),
    *CUT,
]
#: b1 led alone in the ISR, as it reported until 9 s and b3 until 25 s; b2, which may be slow, reports another ISR.
BEHIND = [
    *saw("b1", "0..9", 1, 0, "1"),
    *saw("b3", "0..25", 1, 0, "1"),
    *saw("b2", "0..25", 1, 0, "1,2"),
    "fault s b2 13.3..15.3 kind=slow",
    "fault killed b1 20..60 kind=kill",
    *saw("b2,b3", "26..60", 2, 1, "2,3"),
    *CUT,
]
#: No broker reports from 5.25 s until 20 s; b2 is dead but from 9.6 s to 12 s, and leads since 26 s.
UNHEARD = [
    *saw("b1", "0..5", 1, 0, "1"),
    *saw("b1", "20..21", 1, 0, "1"),
    *("fault k b2 3.3..9.6 kind=kill", "fault l b2 12.0..16.3 kind=kill", "fault m b1 21.5..60 kind=kill"),
    *saw("b2,b3", "26..60", 2, 1, "2,3"),
    *CUT,
]


@pytest.mark.parametrize(
    ("lines", "settings", "times", "expected"),
    [
        ([*WHOLE, *CUT], ALONE, [(20.3, 20.6), (21.3, 21.6)], [PERMITTED, UNDECIDED]),
        (KILLED, UNCLEAN, [(21.2, 21.35), (21.7, 21.9)], [UNDECIDED, VIOLATION]),
        (BEHIND, UNCLEAN, [(9.1, 12.1), (9.3, 12.35)], [UNDECIDED, PERMITTED]),
    ],
    ids=["after all may have reported it", "after its leader had ended", "as who tells another ISR was behind"],
)
def test_records_sent_longer_after_a_fault_are_judged_apart(
    lines: list[str], settings: dict[str, Any], times: list[tuple[float, float]], expected: list[Standing]
) -> None:
    rows = [gone(10 + n, *at) for n, at in enumerate(times)]
    assert alone_and_together(evidence(by_hand(*lines), **settings), LOST, rows) == (expected, expected)


@pytest.mark.parametrize("settings", [UNCLEAN, ALONE, UNCLEAN_ALONE])
@pytest.mark.parametrize(
    "lines",
    [KILLED, BEHIND, UNHEARD, REPORTED_ONCE, [*WHOLE, *CUT]],
    ids=["killed", "behind", "unheard", "reported", "whole"],
)
def test_all_that_is_alike_is_decided_alike(lines: list[str], settings: dict[str, Any]) -> None:
    known = evidence(by_hand(*lines), **settings)
    found: dict[object, set[Standing]] = {}
    for sent in (3.07 + n / 8 for n in range(200)):
        for until in (sent + 0.21, sent + 1.13, sent + 3.03, sent + 6.05):
            times = int(sent * SECOND), int(until * SECOND)
            case = Case(TRIAL, *times, acknowledged=True, first_offset=10, last_offset=10)
            found.setdefault(known.alike(case), set()).add(holders.decided(known, LOST, case).standing)
    assert {len(standings) for standings in found.values()} == {1}


def test_only_the_last_high_watermark_between_two_changes_parts_them() -> None:
    reported = [line for line in REPORTED_ONCE if "high=20" not in line]
    rising = [f"saw b1 @{12 + n / 100} leader=1 epoch=0 isr=1,2,3 high={10 + n}" for n in range(700)]
    known = evidence(by_hand(*reported, *rising, *saw("b1", "19..20", 1, 0, "1,2,3", "high=709")), **ALONE)
    assert len(known.elections[TRIAL].terms[0].highs[0]) == 700
    assert 709 in known.edges(TRIAL)
    assert len(known.edges(TRIAL)) < 12


@pytest.mark.parametrize("acknowledged", [11.0, None])
def test_records_delivered_under_another_isr_are_judged_apart(acknowledged: float | None) -> None:
    lines = [
        *saw("b1", "0..14", 1, 0, "1,2"),
        *saw("b1", "15..40", 1, 0, "1"),
        *saw("b2,b3", "0..14", 1, 0, "1,2"),
        *saw("b2,b3", "15..45", 1, 0, "1"),
        "fault k b1 40..90 kind=kill",
        *saw("b2,b3", "46..60", 2, 1, "2"),
        *CUT,
    ]
    known = evidence(by_hand(*lines), **UNCLEAN_ALONE)
    rows = [gone(10, 10, acknowledged, 12, 0), gone(30, 10, acknowledged, 30, 0)]
    assert alone_and_together(known, VANISHED, rows) == ([VIOLATION, UNDECIDED], [VIOLATION, UNDECIDED])


def test_one_of_a_bucket_that_is_of_another_log_is_not_taken_with_those_that_are_not() -> None:
    """b1, cut off, goes on until 40 s; b2 leads since 20 s. A record that was sent at 26 s stands below
    one that was acknowledged by 25.2 s, and is of another log; one that was sent at 24 s shares its bucket."""
    lines = [
        *saw("b1", "0..40", 1, 0, "1"),
        *saw("b2,b3", "0..19", 1, 0, "1"),
        "fault c b1 19..40 kind=isolate",
        *saw("b2,b3", "20..60", 2, 1, "2,3"),
        *saw("b1", "41..60", 2, 1, "2,3"),
        *("send late ok @1 t50..51", "final a @4 e0", "final b @5 e1", "final c @40 e1", "end 0..41"),
    ]
    known = evidence(by_hand(*lines), **UNCLEAN_ALONE)
    taken = [gone(offset, 10 + offset / 10, 10.05 + offset / 10) for offset in range(5, 9)]
    before, after, above = gone(9, 24, 24.5), gone(10, 26, 26.5), gone(70, 24.8, 25.2)

    def judged(*rows: dict[str, Any]) -> dict[int | None, Standing]:
        parts = attached(ranges(known, LOST, [*taken, *rows]), WIDTH, known.logs)
        return {part.first_offset: part.decision.standing for part in parts if part.decision is not None}

    assert judged(after, above)[10] is UNDECIDED
    assert judged(before, above)[9] is PERMITTED
    assert judged(before, after, above)[9] is UNDECIDED


def test_the_acks_setting_of_the_producer_counts_only_outside_transactions() -> None:
    """b2, in sync, need not have a record that b1 alone acknowledged, but must have one of a transaction."""
    known = evidence(by_hand(*WHOLE, *CUT, "txn 1 commit ok 0..5..6 w3"), **ALONE)
    rows = [{**gone(offset, 10, 11), "in_transaction": within} for offset, within in ((5, False), (6, True), (7, None))]
    expected = [PERMITTED, VIOLATION, VIOLATION]
    assert alone_and_together(known, LOST, rows) == (expected, expected)
    everywhere = evidence(by_hand(*WHOLE, *CUT, "txn 1 commit ok 0..5..6 w3"), acks="all")
    assert {*alone_and_together(everywhere, LOST, rows)[0]} == {VIOLATION}
