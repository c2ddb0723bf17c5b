"""The eight records of the example in checkers/scan/record_bits.py, as bits, and each condition on them."""

from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from checkers.catalogue import CHECKERS
from checkers.checker import RecordChecker
from checkers.history import History
from checkers.scan import record_bits as bits
from checkers.scan.record_bits import record_bits
from tests.checkers.notation import by_hand, write

EIGHT = (
    *("send 0 ok @0", "send 1 ok @1", "send 2 ok @2", "send 3 info", "send 4 fail", "send 5 ok @5", "send 6 ok @8"),
    *("final 0 @0", "final 2 @2", "final 2 @7", "final 3 @3", "final 4 @4", "final 5 @6", "final 6 @8 damaged"),
    *("final w0#7 @9", "end 0..10"),
)
#: The eight when the final read did not come to the end.
INCOMPLETE = (*EIGHT[:-1], "end 0..11 read 10")
#: The eight with what consumers got: record 0 twice, once damaged, record 5 at another offset than the final read.
CONSUMED = (
    *EIGHT,
    *("live 0 @0", "live 0 @0 damaged", "live 1 @1", "live 4 @4", "live 5 @5", "live w0#7 @9"),
)
#: Records that stand where they were acknowledged.
SETTLED = ("send a ok @0", "send b ok @1", "final a @0", "final b @1", "end 0..2")

#: Each condition on the eight: of bits, the records, and of others, whether it is true.
EXPECTED = {
    "acknowledged": {0, 1, 2, 5, 6},
    "undecided": {3},
    "failed": {4},
    "found": {0, 2, 3, 4, 5, 7},
    "damaged": {6},
    bits.SENT: {0, 1, 2, 3, 4, 5, 6},
    bits.ABSENT: {1, 6},
    bits.UNREAD: {0, 1, 2, 5, 6},
    bits.SURVIVED: {0, 2, 3, 4, 5},
    bits.UNDECIDED_BUT_FOUND: {3},
    bits.FAILED_BUT_READ: {4},
    bits.COPIED: {0, 2, 3, 4, 5, 7},
    bits.MAY_BE_DAMAGED_IN_PLACE: {6},
    bits.DAMAGED_AND_FOUND: set(),
    bits.ONLY_DAMAGED: {6},
    bits.UNSENT: {7},
    bits.READ_ELSEWHERE: set(),
    bits.MAY_HAVE_VANISHED: {6},
    bits.STRAYED: {0, 1, 2, 3, 4, 5, 6, 7},
    bits.UNSETTLED: {0, 1, 2, 3, 4, 5, 6, 7},
    bits.REKEYED: set(),
    bits.EVERY: {0, 1, 2, 3, 4, 5, 6, 7},
    bits.HAS_COPIES: True,
    bits.MOVED: True,
    bits.SEEN_ELSEWHERE: False,
    bits.SETTLED: False,
}
OF_INCOMPLETE = {"complete": False, bits.ABSENT: set(), bits.MAY_HAVE_VANISHED: set()}
OF_CONSUMED = {
    "delivered": {0, 1, 4, 5, 7},
    "damaged": {0, 6},
    bits.ABSENT: {1, 6},
    bits.UNREAD: {2, 6},
    bits.FAILED_BUT_READ: {4},
    bits.MAY_BE_DAMAGED_IN_PLACE: {0, 6},
    bits.DAMAGED_AND_FOUND: {0},
    bits.ONLY_DAMAGED: {6},
    bits.SEEN_ELSEWHERE: True,
    bits.READ_ELSEWHERE: {0, 1, 4, 5, 7},
    bits.MAY_HAVE_VANISHED: {0, 1, 4, 5, 6, 7},
    bits.without_final_read(bits.SURVIVED): {0, 1, 4, 5},
    bits.without_final_read(bits.UNDECIDED_BUT_FOUND): set(),
    bits.without_final_read(bits.ONLY_DAMAGED): {6},
}
#: Those that are otherwise of records that stand where they were acknowledged.
OF_SETTLED = {
    bits.COPIED: set(),
    bits.STRAYED: set(),
    bits.UNSETTLED: set(),
    bits.EVERY: {0, 1},
    bits.HAS_COPIES: False,
    bits.MOVED: False,
    bits.SETTLED: True,
}


def _evaluated(run: Path, spark: SparkSession, lines: tuple[str, ...], conditions: list[str]) -> Row:
    write(run, [by_hand(*lines)])
    [row] = (
        record_bits(History.read(run, spark))
        .selectExpr(*(f"{sql} as c{n}" for n, sql in enumerate(conditions)))
        .collect()
    )
    return row


def _as_expected(value: int | bool) -> set[int] | bool:
    return value if isinstance(value, bool) else {bit for bit in range(64) if value >> bit & 1}


#: SQL on a row of ``sends`` or ``reads``, not on one of record bits.
OF_A_ROW = {"BLOCK", "BIT", "OFFSET_BLOCK", "OFFSET_BIT"}


def test_each_named_condition_is_tried_on_the_eight() -> None:
    named = {
        name: sql for name, sql in vars(bits).items() if name.isupper() and name[0] != "_" and isinstance(sql, str)
    }
    assert {name for name, sql in named.items() if sql not in EXPECTED} == OF_A_ROW


@pytest.mark.parametrize(
    ("lines", "expected"),
    [(EIGHT, EXPECTED), (INCOMPLETE, OF_INCOMPLETE), (CONSUMED, OF_CONSUMED), (SETTLED, OF_SETTLED)],
    ids=["eight", "incomplete", "consumed", "settled"],
)
def test_each_condition_on_record_bits(
    lines: tuple[str, ...], expected: dict[str, object], spark: SparkSession, tmp_path: Path
) -> None:
    row = _evaluated(tmp_path, spark, lines, [*expected])
    assert dict(zip(expected, map(_as_expected, row), strict=True)) == expected


#: Two records where they were acknowledged.
TWO = ("final a @0", "final b @1")


@pytest.mark.parametrize(
    ("reads", "elsewhere"),
    [
        (TWO, False),
        ((*TWO, "live a @0", "live b @1"), False),
        ((*TWO, "live a @0", "live b @1", "replica a @0", "replica b @1"), False),
        ((*TWO, "live a @0", "live b @1", "replica a @0", "replica b @2"), True),
        ((*TWO, "live a @1", "live b @0"), True),
        ((*TWO, "live a @0", "live a @0 r1", "live b @1"), True),
        ((*TWO, "live a @0"), True),
        (("final a @0", "live a @1"), True),
        (("final a @0", "live a @0", "live a @1", "live a @1 r1"), True),
        (("final a @0", "final a @2", "live a @0", "live a @2"), False),
        (("final a @0", "final a @2", "live a @0", "live a @0 r1"), True),
        (("final a @0", "live a @0", "live a @0 damaged"), True),
        (("final a @0", "live a @0", "live a @0 r1", "live a @1 damaged"), True),
        (("live a @0",), True),
        (("final a @0", "live a @0", "replica a @0"), False),
        (("final a @0", "live a @0", "replica a @0 k2"), True),
    ],
    ids=[
        *("not seen", "in place", "by a replica, too", "by a replica elsewhere", "in each other's place"),
        *("one more often", "one not seen", "at another offset", "twice at another offset", "at both of its copies"),
        *("twice at one of its copies", "beside damaged bytes", "beside damaged bytes elsewhere", "not in the log"),
        *("under its key", "under another key"),
    ],
)
def test_records_are_seen_elsewhere_unless_all_were_seen_equally_often_in_place(
    reads: tuple[str, ...], elsewhere: bool, spark: SparkSession, tmp_path: Path
) -> None:
    lines = ("send a ok @0 k1", "send b ok @1", "end 0..3", *reads)
    [found] = _evaluated(tmp_path, spark, lines, [bits.SEEN_ELSEWHERE])
    assert found is elsewhere


def test_records_that_consumers_and_all_replicas_served_in_place_are_no_candidates(
    spark: SparkSession, tmp_path: Path
) -> None:
    reads = [f"{reader} {record} @{n}" for n, record in enumerate("ab") for reader in ("live", "replica", "replica")]
    lines = ("send a ok @0", "send b ok @1", *TWO, "end 0..2", *reads)
    asked = [checker.candidates for checker in CHECKERS if isinstance(checker, RecordChecker)]
    assert asked
    assert set(_evaluated(tmp_path, spark, lines, asked)) == {0}
