"""Whether the first write of a transaction that hangs had reached its leader before the transaction ended."""

from pathlib import Path

import pytest

from checkers.anomalies.hanging import in_time
from harness.history.stored_run import StoredRun
from tests.checkers.notation import by_hand, write

ONE = ("txn 1 commit ok 0..5..6", "send a ok @0 x1 t1..2", "stable @0 high=1")
#: Two transactions of one worker. The second hangs.
TWO = (
    *("txn 1 commit ok 0..5..6", "txn 2 commit ok 7..30..31", "send a ok @0 x1 t1..2", "send b ok @2 x2 t8..9"),
    "stable @2 high=3",
)
#: A copy of a stands where the log is no longer stable.
COPY = ("txn 1 abort ok 0..5..6", "send a ok @0 x1 t1..2", "stable @2 high=3")
#: It was acknowledged without an offset, and is read where the log is no longer stable, after its end was asked for.
SILENT = ("txn 1 commit info 0..5..", "send a ok x1 t1..2", "live a @1 r4 t7", "stable @1 high=2")
#: Another worker's record stood there before, and came after its end.
OTHER = ("txn 5 abort ok 0..1..2 w1", "send x info x5 w1 t0.1..", "live x @0 r4 t3", "txn 1 commit info 4..")
UNANSWERED = ("txn 1 commit info 0..5..", "send a info x1 t1..", "stable @0 high=1")


@pytest.mark.parametrize(
    ("lines", "came"),
    [
        (ONE, True),
        (("txn 1 commit info 0..", *ONE[1:]), True),
        (("txn 1 commit info 0..", *ONE[1:], "txn 2 commit ok 5..6..7 i1"), True),
        (("txn 1 commit ok 0..5..6", "send a ok @0 x1 t1..5", ONE[2]), False),
        (("txn 1 commit ok 0..5..6", "send a ok @0 x1 t1..2", "stable @1 high=2"), False),
        (("txn 1 commit ok 0..5..6", "send a ok @0 x1 t1..2 p1", "stable @0 high=1"), False),
        (("txn 1 commit ok 0..5..6", "send a ok @0 t1..2", "stable @0 high=1"), False),
        (COPY, False),
        ((*COPY, "live a @2 r4 t7"), False),
        ((*COPY, "live a @2 r4 t4"), True),
        (UNANSWERED, False),
        ((*UNANSWERED, "live a @0 r4 t4"), True),
        ((*UNANSWERED, "live a @0 r4 t4 damaged"), False),
        ((*UNANSWERED, "live a @0 r4 t5"), False),
        (("txn 1 commit info 0..", *UNANSWERED[1:], "live a @0 r4 t4"), True),
        (("txn 1 commit info 0..", *UNANSWERED[1:], "live a @0 r4 t60"), None),
        (("txn 1 commit info 0..", *UNANSWERED[1:], "live a @0 r4 t4", "txn 2 commit ok 5..6..7 i1"), None),
        (("txn 1 commit ok 0..70..71", "send a ok @0 x1 t1..59", "stable @0 high=1"), True),
        (("txn 1 commit ok 0..70..71", "send a ok @0 x1 t1..60", "stable @0 high=1"), None),
        (TWO, True),
        ((*TWO, "fault f b1 5..6 kind=pause"), None),
        ((*TWO, "fault f b1 0.. kind=pause"), None),
        ((*TWO, "fault f b1 7..9 kind=pause"), True),
        ((*TWO, "fault f b1 5..6 kind=pause missed"), True),
        ((*TWO, "fault f b1 5..6 kind=pause unknown"), None),
        ((*TWO[1:], "txn 1 commit ok 20..25..26", "fault f b1 20..26 kind=pause"), True),
        ((*TWO[1:], "txn 1 commit info 0..5..", "fault f b1 8..12 kind=pause"), None),
        (("txn 1 commit ok 0..5..6", "send a ok x1 t1..2", "stable @0 high=1"), None),
        (("txn 1 commit info 0..", "send a ok x1 t1..2", "stable @0 high=1"), None),
        (("txn 1 commit ok 0..5..6", "send a ok x1 t1..5", "stable @0 high=1"), False),
        (("txn 1 commit ok 0..5..6", "send a ok t1..2", "stable @0 high=1"), False),
        (("txn 1 commit ok 0..5..6", "send a ok x1 t1..2 p1", "stable @0 high=1"), False),
        ((*COPY, "send b ok x1 t1..2", "live a @2 r4 t7"), False),
        (("txn 1 commit ok 0..5..6", "send a ok x1 t1..2", "final a @0", "stable @3 high=4"), False),
        (("txn 1 commit ok 0..5..6", "send a ok x1 t1..2", "live a @0 r4 t7", "stable @3 high=4"), None),
        (("txn 1 commit ok 0..5..6", "send a ok x1 t1..2", "final a @0 p1", "stable @3 high=4"), None),
        (("txn 1 commit ok 0..5..6", "send a ok x1 t1..2", "final a @5", "stable @3 high=6"), None),
        (SILENT, True),
        (("txn 1 commit info 0..", *SILENT[1:], "txn 2 commit ok 3..5..6 i1"), True),
        ((SILENT[0], "send a ok x1 t1..5", *SILENT[2:]), False),
        ((SILENT[0], "send a ok x1 t1..5", "live a @1 r4 t4", SILENT[3]), True),
        ((SILENT[0], "send a info x1 t1..2", *SILENT[2:]), False),
        ((*SILENT, "final a @0"), None),
        ((*SILENT, "final a @0 p1"), True),
        ((SILENT[0], "send a ok x1 t1..5", *SILENT[2:], "final a @0"), False),
        ((*OTHER, "send a ok @0 x1 t5..6", "stable @0 high=1"), None),
        ((*OTHER, "send a ok @0 x1 t5..64", "stable @0 high=1"), None),
        ((*OTHER, "send a ok @0 x1 w1 t5..6", "stable @0 high=1"), False),
        ((TWO[0], *(f"{line} i1" for line in TWO[1:2]), "send b ok @2 x2 i1 t8..9", TWO[4], "fault f b1 5..6"), True),
    ],
    ids=[
        *("acknowledged before its end", "nobody asked for its end", "acknowledged, and its producer was replaced"),
        "acknowledged when its end was asked for",
        *("nothing is known of what stands there", "another partition", "outside of transactions"),
        *("its copy", "its copy, read after its end", "its copy, read before its end"),
        *(
            "without an answer",
            "without an answer, and read",
            "with a wrong checksum",
            "read when its end was asked for",
        ),
        *(
            "read, and nobody asked for its end",
            "read when its timeout was over",
            "read, but its producer was replaced",
        ),
        *("just before its timeout", "its timeout was over"),
        *("the next transaction", "a fault held the end before back", "a fault all the time", "a fault after that end"),
        *("a fault that did not act", "a fault that may have acted", "the end of a later one"),
        *("acknowledged without an offset", "of a transaction without an end", "acknowledged so after its end"),
        *("acknowledged so outside of transactions", "so in another partition", "so, and another stands there"),
        *(
            "so, and it stands elsewhere in the end",
            "so, and it stood elsewhere",
            "so, and it stands in another partition",
            "so, and it stands above",
        ),
        "an end before without an answer",
        *("acknowledged without an offset, and read there late", "so, and its producer was replaced"),
        *("both after its end was asked for", "and read before", "without an answer, and read there late"),
        *("so acknowledged, and it stands below, too", "and in another partition, too", "below, too, and all late"),
        *("in time where another came late", "late where another came late", "of no transaction known"),
        "an end of its first incarnation",
    ],
)
def test_the_first_write_came_in_time_if_it_is_known_to_be_there_before_the_end(
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
