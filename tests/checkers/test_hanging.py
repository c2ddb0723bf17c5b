"""Whether the first write of a transaction that hangs had reached its leader before the transaction ended."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from checkers.anomalies.hanging import in_time
from harness.history.stored_run import StoredRun
from tests.checkers.notation import by_hand, write
from tests.checkers.test_holders import saw

LED = saw("b1,b2,b3", "0..60", 1, 0, "1,2,3")
ONE = ("txn 1 commit ok 0..5..6", "send a ok @0 x1 t1..2", "stable @0 high=1")
#: Two transactions of one worker. The second hangs.
TWO = (
    *("txn 1 commit ok 0..5..6", "txn 2 commit ok 7..30..31", "send a ok @0 x1 t1..2", "send b ok @2 x2 t8..9"),
    "stable @2 high=3",
)
#: The log is no longer stable behind a, and the marker of its transaction.
ABOVE = ("txn 1 abort ok 0..5..6", "send a ok @0 x1 t1..2", "stable @2 high=3", *LED)
#: It was acknowledged without an offset, and is read where the log is no longer stable, after its end was asked for.
SILENT = ("txn 1 commit info 0..5..", "send a ok x1 t1..2", "live a @1 r4 t7", "stable @1 high=2")
#: Another worker's record stood there before, and came after its end.
OTHER = ("txn 5 abort ok 0..1..2 w1", "send x info x5 w1 t0.1..", "live x @0 r4 t3", "txn 1 commit info 4..")
UNANSWERED = ("txn 1 commit info 0..5..", "send a info x1 t1..", "stable @0 high=1")
UNASKED = ("txn 1 commit info 0..", *UNANSWERED[1:])
#: Records of another worker's transaction that may have come late.
LATE = ("txn 1 abort ok 0..5..6 w1", "send x info x1 w1 t1..5")
NEXT = "txn 2 commit ok 5..6..7 i1"

HISTORIES: Mapping[str, tuple[tuple[str, ...], bool | None]] = {
    "acknowledged before its end": (ONE, True),
    "nobody asked for its end": (("txn 1 commit info 0..", *ONE[1:]), True),
    "acknowledged, and its producer was replaced": (("txn 1 commit info 0..", *ONE[1:], NEXT), True),
    "acknowledged when its end was asked for": ((ONE[0], "send a ok @0 x1 t1..5", ONE[2]), None),
    "its copy, read after its end": ((*ABOVE, "live a @2 r4 t7"), None),
    "its copy, read before its end": ((*ABOVE, "live a @2 r4 t4"), True),
    "without an answer": (UNANSWERED, None),
    "without an answer, and read": ((*UNANSWERED, "live a @0 r4 t4"), True),
    "with a wrong checksum": ((*UNANSWERED, "live a @0 r4 t4 damaged"), None),
    "read when its end was asked for": ((*UNANSWERED, "live a @0 r4 t5"), None),
    "read, and nobody asked for its end": ((*UNASKED, "live a @0 r4 t4"), True),
    "read when its timeout was over": ((*UNASKED, "live a @0 r4 t60"), None),
    "read, but its producer was replaced": ((*UNASKED, "live a @0 r4 t4", NEXT), None),
    "just before its timeout": (("txn 1 commit ok 0..70..71", "send a ok @0 x1 t1..59", ONE[2]), True),
    "its timeout was over": (("txn 1 commit ok 0..70..71", "send a ok @0 x1 t1..60", ONE[2]), None),
    "the next transaction": (TWO, True),
    "a fault held the end before back": ((*TWO, "fault f b1 5..6 kind=pause"), None),
    "a fault all the time": ((*TWO, "fault f b1 0.. kind=pause"), None),
    "a fault after that end": ((*TWO, "fault f b1 7..9 kind=pause"), True),
    "a fault that did not act": ((*TWO, "fault f b1 5..6 kind=pause missed"), True),
    "a fault that may have acted": ((*TWO, "fault f b1 5..6 kind=pause unknown"), None),
    "the end of a later one": ((*TWO[1:], "txn 1 commit ok 20..25..26", "fault f b1 20..26 kind=pause"), True),
    "an end before without an answer": ((*TWO[1:], "txn 1 commit info 0..5..", "fault f b1 8..12 kind=pause"), None),
    "acknowledged without an offset, and read there late": (SILENT, True),
    "so, and its producer was replaced": (("txn 1 commit info 0..", *SILENT[1:], "txn 2 commit ok 3..5..6 i1"), True),
    "both after its end was asked for": ((SILENT[0], "send a ok x1 t1..5", *SILENT[2:]), None),
    "and read before": ((SILENT[0], "send a ok x1 t1..5", "live a @1 r4 t4", SILENT[3]), True),
    "without an answer, and read there late": ((SILENT[0], "send a info x1 t1..2", *SILENT[2:]), None),
    "so acknowledged, and it stands below, too": ((*SILENT, "final a @0"), None),
    "and in another partition, too": ((*SILENT, "final a @0 p1"), True),
    "below, too, and all late": ((SILENT[0], "send a ok x1 t1..5", *SILENT[2:], "final a @0"), None),
    "in time where another came late": ((*OTHER, "send a ok @0 x1 t5..6", "stable @0 high=1"), None),
    "late where another came late": ((*OTHER, "send a ok @0 x1 t5..64", "stable @0 high=1"), None),
    "of no transaction known, where another came late": ((*OTHER, "send a ok @0 x1 w1 t5..6", ONE[2]), None),
    "of no transaction known": (("txn 9 commit ok 0..5..6 w1", *ONE[1:]), None),
    "an end of its first incarnation": (
        (TWO[0], f"{TWO[1]} i1", "send b ok @2 x2 i1 t8..9", TWO[4], "fault f b1 5..6"),
        True,
    ),
}
#: Nobody knows which write stands where the log is no longer stable.
UNKNOWN: Mapping[str, tuple[tuple[str, ...], bool | None]] = {
    "all were acknowledged below": (ABOVE, True),
    "all were acknowledged in another partition": ((ONE[0], "send a ok @0 x1 t1..2 p1", ONE[2]), True),
    "one outside of transactions was": ((ONE[0], "send a ok @0 t1..2", ONE[2]), True),
    "one was given up outside of transactions": ((*ABOVE, "send x info t1..5"), True),
    "one was given up": ((*ABOVE, "send x info x1 t1..5"), False),
    "one of another worker was given up": ((*ABOVE, *LATE), None),
    "one that was refused is in no log": ((*ABOVE, LATE[0], "send x fail x1 w1 t1..5"), True),
    "one was given up in another partition": ((*ABOVE, LATE[0], f"{LATE[1]} p1"), True),
    "one was given up, and is found below": ((*ABOVE, *LATE, "final x @1"), True),
    "one of no transaction known was given up": ((*ABOVE, LATE[1]), None),
    "one is of nobody": ((*ABOVE, "live w9#1 @2 r4 t4"), None),
    "nobody asked for its end before the log was asked": (
        (UNASKED[0], "send a info x1 t1..", "stable @0 high=1"),
        None,
    ),
    "nobody asked, and its timeout was not over": (("txn 1 commit info 1..", *UNASKED[1:]), None),
    "nobody asked, and its producer was replaced": (("txn 1 commit info 1..", *UNASKED[1:], NEXT), None),
    "acknowledged without an offset": ((ONE[0], "send a ok x1 t1..2", ONE[2]), True),
    "so, of a transaction without an end": ((UNASKED[0], "send a ok x1 t1..2", ONE[2]), True),
    "so, after its end": ((ONE[0], "send a ok x1 t1..5", ONE[2]), None),
    "so, after and before its end": ((ONE[0], "send a ok x1 t1..5", "send b ok x1 t1..2", ONE[2]), True),
    "so, outside of transactions": ((ONE[0], "send a ok t1..2", ONE[2]), True),
    "so, and a copy of another stands there": ((*ABOVE, "send b ok x1 t1..2", "live a @2 r4 t7"), None),
    "so, and another was given up": ((ONE[0], "send a ok x1 t1..2", ONE[2], *LATE), None),
    "so late, and it stands below": ((ONE[0], "send a ok x1 t1..5", "final a @0", "stable @3 high=4"), True),
    "so late, and it stood below": ((ONE[0], "send a ok x1 t1..5", "live a @0 r4 t7", "stable @3 high=4"), None),
    "so late, and it is in another partition": ((ONE[0], "send a ok x1 t1..5", "final a @0 p1", ONE[2]), None),
}
ELECTED = (*saw("b1,b2,b3", "0..9", 1, 0, "1,2,3"), *saw("b1,b2,b3", "10..60", 2, 1, "1,2,3"))
#: a was given up, and is read at 0 after its end was asked for; b stands above.
PASSED = (
    *("txn 1 abort ok 0..5..6", "send a info x1 t1..5", "send b ok @1 w1 t2..3", "live a @0 r4 t7"),
    "stable @0 high=2",
)
#: The end that nobody asked for; nothing is read.
OPEN = ("txn 1 commit info 0..", "send a info x1 t1..", "send b ok @1 w1 t2..3", "stable @0 high=2")
#: The log went on above the last stable offset.
BY_ORDER: Mapping[str, tuple[tuple[str, ...], bool | None]] = {
    "something above was acknowledged before its end": ((*PASSED, *LED), True),
    "nobody reported who led": (PASSED, None),
    "another was elected": ((*PASSED, *ELECTED), None),
    "nobody reported who led to the end": ((*PASSED, *saw("b1,b2,b3", "0..56", 1, 0, "1,2,3")), None),
    "who led reported no epoch": ((*PASSED, *saw("b1,b2,b3", "0..60", 1, None, "1,2,3")), None),
    "a leader that nobody reported wrote": ((*PASSED, *LED, "live b @1 r4 t7 e1"), None),
    "acknowledged when its end was asked for": ((*PASSED[:2], "send b ok @1 w1 t2..5", *PASSED[3:], *LED), None),
    "acknowledged below": ((*PASSED[:3], "live a @2 r4 t7", "stable @2 high=3", *LED), None),
    "acknowledged in another partition": ((*PASSED[:2], "send b ok @1 p1 w1 t2..3", *PASSED[3:], *LED), None),
    "not acknowledged": ((*PASSED[:2], "send b info w1 t2..3", *PASSED[3:], *LED), None),
    "read above before its end": ((*PASSED[:2], "send b info w1 t2..", *PASSED[3:], "live b @1 r4 t4", *LED), True),
    "read on a follower": ((*PASSED[:2], "send b info w1 t2..", *PASSED[3:], "replica b @1 r902 t4", *LED), None),
    "read above, of the last leader": (
        ("txn 1 abort ok 0..15..16", *PASSED[1:], "live b @1 r4 t12 e1", "send c ok @0 w2 t1..2", *ELECTED),
        True,
    ),
    "read above, of a leader before": ((*PASSED, "live b @1 r4 t4 e0", *ELECTED), None),
    "nobody knows what stands there, nor asked for an end": ((*OPEN, *LED), True),
    "one of no transaction known was sent later": ((*OPEN, "send x info x9 w2 t4..6", *LED), True),
    "one of no transaction known was sent before": ((*OPEN, "send x info x9 w2 t2..6", *LED), None),
    "of the same transaction": (
        ("txn 1 commit info 0..5..", "send a info x1 t1..", "send c ok @1 x1 t1..2", *PASSED[3:], *LED),
        True,
    ),
}
#: a was given up, and came late. Its producer's next transaction, with b above it, was ended.
ENDED = (
    *("txn 1 abort ok 0..5..6", "send a info x1 t1..5", "live a @1 r4 t7", "txn 2 commit ok 10..15..16"),
    *("send b ok @2 x2 t11..12", "stable @1 high=4"),
)
BY_THE_NEXT: Mapping[str, tuple[tuple[str, ...], bool | None]] = {
    "a later end above": ((*ENDED, *LED), True),
    "nobody knows what stands there": ((*ENDED[:2], *ENDED[3:], *LED), True),
    "of the next incarnation": (
        (*ENDED[:3], f"{ENDED[3]} i1", "send b ok @2 x2 i1 t11..12", ENDED[5], *LED),
        True,
    ),
    "of an aborted one": ((*ENDED[:3], "txn 2 abort ok 10..15..16", *ENDED[4:], *LED), True),
    "of another producer": ((*ENDED[:3], f"{ENDED[3]} w1", "send b ok @2 x2 w1 t11..12", ENDED[5], *LED), None),
    "without an answer": ((*ENDED[:3], "txn 2 commit info 10..15..", *ENDED[4:], *LED), None),
    "below": ((*ENDED[:2], "live a @3 r4 t7", *ENDED[3:5], "stable @3 high=4", *LED), None),
    "elsewhere": ((*ENDED[:4], "send b ok @2 p1 x2 t11..12", ENDED[5], *LED), None),
    "of which nothing is known to have come in time": ((*ENDED[:4], "send b ok @2 x2 t11..15", ENDED[5], *LED), None),
    "a fault held an end back": ((*ENDED, "fault f b1 5..6 kind=pause", *LED), None),
    "another was elected": ((*ENDED, *ELECTED), None),
    "another was elected, and has what stands above": (
        (*ENDED, "live b @2 r4 t12 e1", *ELECTED),
        True,
    ),
    "of a copy of what stands below": (
        (*ABOVE[:2], "live a @2 r4 t7", ENDED[3], "send b ok @3 x2 t11..12", "stable @2 high=5", *LED),
        None,
    ),
}

#: x was given up, and may stand where the log is no longer stable; a, of its transaction, stands below.
BEHIND = ("txn 1 abort ok 2..5..6", "send x info x1 t4..5", "stable @2 high=3")
A = "send a ok @0 x1 t3..4"
LED_LATER = saw("b1,b2,b3", "0..60", 1, 1, "1,2,3")
LATER = ("txn 9 commit ok 7..9..10", "send b ok @1 x9 t8..9")
#: A fault held back the end of a transaction before.
EARLIER = ("txn 8 commit ok 0..1..1.5", "fault f b1 1..2 kind=pause")
#: x came late, if it is there; c did not.
GIVEN_UP = (
    *("txn 1 abort ok 0..1..2", "send a ok @0 x1 t0..0.5", "send x info x1 t0.6..1", "stable @2 high=4"),
    *("txn 1 abort ok 0..5..6 w2", "send c info x1 w2 t1..5", "send b ok @3 w1 t2..3"),
)
BY_A_MARKER_BELOW: Mapping[str, tuple[tuple[str, ...], bool | None]] = {
    "of its transaction": ((A, *BEHIND, *LED), False),
    "sent later": ((*BEHIND, A, *LED), None),
    "of its transaction, and it is read there late": ((A, *BEHIND, "live x @2 r4 t7", *LED), False),
    "of its transaction, but it was read there before": ((A, *BEHIND, "live x @2 r4 t4.5", *LED), True),
    "nobody reported who led": ((A, *BEHIND), None),
    "nobody reported who led, and it is in the final log": ((A, *BEHIND, "final a @0"), False),
    "nobody reported who led, and a follower has it": ((A, *BEHIND, "replica a @0 r902"), None),
    "another was elected": ((A, *BEHIND, *ELECTED), None),
    "another was elected, and wrote it": ((A, *BEHIND, "live a @0 r4 t4 e1", *ELECTED), False),
    "another was elected, and it was read before": ((A, *BEHIND, "live a @0 r4 t4 e0", *ELECTED), None),
    "another was elected, and it is in the final log": ((A, *BEHIND, "final a @0", *ELECTED), False),
    "another was elected after it was read there late": (
        (A, *BEHIND, "final a @0", "live x @2 r4 t7 e0", *ELECTED),
        None,
    ),
    "another was elected, and has what was read there late": (
        (A, *BEHIND, "final a @0", "live x @2 r4 t12 e1", *ELECTED),
        False,
    ),
    "it is above": (("send a ok @3 x1 t5..6", *BEHIND[:2], "stable @2 high=4", *LED), None),
    "it has no answer": (("send a info x1 t3..4", *BEHIND, "live a @0 r4 t9", *LED), None),
    "in another partition": ((f"{A} p1", *BEHIND, *LED), None),
    "of another worker's": (("txn 1 abort ok 2..5..6 w1", f"{A} w1", *BEHIND, *LED), None),
    "outside of transactions": (("send a ok @0 t3..4", *BEHIND, *LED), None),
    "of an earlier transaction": (("txn 9 commit ok 0..1..2", "send a ok @0 x9 t0..1", *BEHIND, *LED), None),
    "of a later one": ((*BEHIND, *LATER, *LED), None),
    "of it and of a later one": ((A, *BEHIND, *LATER, *LED), None),
    "of it, and of a later one elsewhere": ((A, *BEHIND, LATER[0], f"{LATER[1]} p1", *LED), False),
    "of it and of the next incarnation": ((A, *BEHIND, *(f"{line} i1" for line in LATER), *LED), None),
    "nobody asked for its end": ((A, "txn 1 abort info 2..", *BEHIND[1:], *LED), None),
    "nobody knows whether its end came": ((A, "txn 1 abort info 2..5..", *BEHIND[1:], *LED), None),
    "its end failed": ((A, "txn 1 abort fail 2..5..6", *BEHIND[1:], *LED), None),
    "its timeout was over": ((A, "txn 1 abort ok 2..62..63", *BEHIND[1:], *LED), None),
    "just before its timeout": ((A, "txn 1 abort ok 2..61.9..63", *BEHIND[1:], *LED), False),
    "a fault held the end before back": ((A, *BEHIND, *EARLIER, *LED), None),
    "a fault after that end": ((A, *BEHIND, EARLIER[0], "fault f b1 2..3 kind=pause", *LED), False),
    "its copy": (("txn 1 abort ok 2..5..6", A, "live a @2 r4 t7", BEHIND[2], *LED), None),
    "its copy, behind another": (
        (
            "txn 1 abort ok 2..5..6",
            "send o ok @0 x1 t2..3",
            "send a ok @1 x1 t3..4",
            "live a @3 r4 t7",
            "stable @3 high=4",
            *LED,
        ),
        None,
    ),
    "a record is of a leader that nobody reported": ((A, *BEHIND, "live w5#0 @1 r4 t1 e0", *LED_LATER), None),
    "every leader was reported": ((A, *BEHIND, "live w5#0 @1 r4 t4 e1", *LED_LATER), False),
    "the log begins there": ((A, *BEHIND, "end 2..2", *LED), None),
    "the log begins below": ((A, *BEHIND, "end 1..2", *LED), False),
    "of two acknowledged without an offset the last came late": (
        (BEHIND[0], "send b ok x1 t3..4", "send a ok x1 t3..7", BEHIND[2], *LED),
        None,
    ),
    "both in time": ((BEHIND[0], "send b ok x1 t3..4", "send a ok x1 t3..4.5", BEHIND[2], *LED), True),
    "another may be there, which was in time": ((*GIVEN_UP, *LED), None),
    "and that was not sent": ((*(line for line in GIVEN_UP if "send c" not in line), *LED), False),
    "and another is read elsewhere": ((*GIVEN_UP, "live x @1 r4 t9", *LED), True),
}


ALL = {"known": HISTORIES, "unknown": UNKNOWN, "order": BY_ORDER, "next": BY_THE_NEXT, "below": BY_A_MARKER_BELOW}


@pytest.mark.parametrize(
    ("lines", "came"),
    [pytest.param(*history, id=f"{of}: {says}") for of, each in ALL.items() for says, history in each.items()],
)
def test_the_first_write_came_in_time_or_late_only_if_something_shows_it(
    lines: tuple[str, ...], came: bool | None, tmp_path: Path
) -> None:
    write(tmp_path, [by_hand(*lines)])
    stored = StoredRun.open(tmp_path)
    [(of, ends)] = stored.stable_ends.items()
    assert in_time(stored, of, ends) is came


@pytest.mark.parametrize(("timeout_ms", "came"), [(1999, None), (2000, None), (2001, True)])
def test_a_producers_own_timeout_counts(timeout_ms: int, came: bool | None, tmp_path: Path) -> None:
    write(tmp_path, [by_hand(*ONE)], clients={"producer 0": {"transaction.timeout.ms": timeout_ms}})
    stored = StoredRun.open(tmp_path)
    [(of, ends)] = stored.stable_ends.items()
    assert in_time(stored, of, ends) is came


@pytest.mark.parametrize(
    ("lines", "came"),
    [
        (ABOVE, True),
        ((A, *BEHIND, *LED), False),
        (("txn 1 commit info 0..", *ONE[1:]), True),
        (ONE, True),
    ],
    ids=["a write that came late", "a write in time", "the request for its end", "nothing that matters"],
)
def test_nothing_is_known_if_a_partial_history_may_lack(
    lines: tuple[str, ...], came: bool, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    for partial in (False, True):
        write(tmp_path / str(partial), [by_hand(*lines)], partial=partial)
        stored = StoredRun.open(tmp_path / str(partial))
        [(of, ends)] = stored.stable_ends.items()
        known = not partial or "nothing that matters" in request.node.name
        assert in_time(stored, of, ends) is (came if known else None)
