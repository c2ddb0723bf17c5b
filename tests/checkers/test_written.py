"""How much of its part of the final log a leader may have written by a time."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from checkers.evidence.again import COLUMNS, COLUMNS_OF_GONE
from checkers.evidence.intervals import NEVER
from checkers.evidence.written import MOST_SENT, LeaderWrites, WriteCounter
from checkers.judge import judge
from harness.core.verdict import Standing
from tests.checkers.notation import SECOND, by_hand, write
from tests.checkers.test_holders import evidence, saw

ONE, OTHER = ("trial", 0), ("trial", 1)
#: b1 leads to 19 s, and b2 from 22 s on.
ELECTED = [
    *saw("b1,b2,b3", "0..19", 1, 0, "1,2,3"),
    "fault k b1 20..90 kind=kill",
    *saw("b2,b3", "22..60", 2, 1, "2,3"),
]
BOTH = [*ELECTED, *[f"{line} p1" for line in ELECTED if line.startswith("saw")]]
#: The part of the second term: from 5 to 9.
LOG = ("final a @0 e0", "final b @4 e0", "final c @5 e1", "final d @9 e1", "end 0..10")


def sends(*rows: tuple[int, float, float, int]) -> pa.Table:
    """Acknowledged writes: partition, sent and acknowledged (seconds), offset."""
    each = [("trial", of, int(sent * SECOND), int(until * SECOND), offset) for of, sent, until, offset in rows]
    types = [("topic", pa.string()), ("partition", pa.int32()), *((name, pa.int64()) for name in COLUMNS[2:])]
    return pa.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in each], pa.schema(types))


def gone(*rows: tuple[int, float, float, int]) -> pa.Table:
    """The same of records that are not at their acknowledged offset."""
    columns = [*sends(*rows).columns, pa.nulls(len(rows), pa.int32())]
    return pa.Table.from_arrays(columns, schema=COLUMNS_OF_GONE)


def counted(pieces: list[pa.Table], *lost: pa.Table) -> LeaderWrites:
    known = evidence(by_hand(*ELECTED, *LOG))
    writes = WriteCounter(known.elections, known.logs)
    assert [*writes.counting(pieces)] == pieces
    assert [*writes.without(lost)] == list(lost)
    [(of, written)] = writes.each().items()
    assert of == (ONE, 1)
    return written


@pytest.mark.parametrize(
    ("row", "seen"),
    [
        ((0, 23, 24, 5), True),
        ((0, 15, 24, 5), True),
        ((0, 23, 24, 9), True),
        ((0, 23, 24, 4), False),
        ((0, 23, 24, 10), False),
        ((1, 23, 24, 5), False),
        ((0, 15, 16, 5), False),
    ],
    ids=[
        *("its own", "sent before its term", "its last", "below its log", "above its log", "another partition"),
        "acknowledged before its term",
    ],
)
def test_its_writes_were_acknowledged_in_its_part_of_the_log_since_its_term_began(
    row: tuple[int, float, float, int], seen: bool
) -> None:
    written = counted([sends((0, 30, 31, 6)), sends(row), sends((0, 29, 31, 7))])
    ours = [int(row[1] * SECOND)] if seen else []
    assert written.sent.tolist() == sorted([29 * SECOND, 30 * SECOND, *ours])
    assert written.others == 5 - len(written.sent)


def test_from_the_instant_on_at_which_its_term_began() -> None:
    begins_ns = evidence(by_hand(*ELECTED, *LOG)).elections[ONE].terms[1].begins_ns
    for until_ns, seen in ((begins_ns, 1), (begins_ns - 1, 0)):
        assert len(counted([sends((0, 15, until_ns / SECOND, 5))]).sent) == seen


def test_other_records_of_the_epoch_may_have_been_written_at_any_time() -> None:
    each = sends(*((0, 23 + n, 23.5 + n, n) for n in range(5, 10)))
    assert (counted([each]).others, counted([each]).by(28 * SECOND)) == (0, 1)
    assert (counted([each.slice(0, 3)]).others, counted([each.slice(0, 3)]).by(28 * SECOND)) == (2, 3)
    assert counted([]).by(0) == counted([sends()], gone()).by(0) == 5


def test_a_record_that_is_gone_from_there_is_something_else_and_was_sent_when_it_was() -> None:
    each = [(0, 23 + n, 23.5 + n, n) for n in range(5, 10)]
    written = counted([sends(*each)], gone(each[1]), gone((0, 15, 16, 7), (1, 23, 24, 7), (0, 23, 24, 10)))
    assert (written.others, len(written.sent)) == (1, 5)
    assert [written.by(at * SECOND) for at in (27, 28, 29, 40)] == [1, 2, 3, 6]


def test_a_log_with_one_offset_twice_has_no_fewer_than_nothing_else() -> None:
    twice = sends(*((0, 23, 24, 5) for _ in range(9)))
    assert counted([twice]).others == 0


def test_of_many_the_first_are_kept() -> None:
    known = evidence(by_hand(*ELECTED, "final a @4 e0", "final b @5 e1", "final c @99999 e1", "end 0..100000"))
    writes = WriteCounter(known.elections, known.logs)
    late = [(0, 30 + n / MOST_SENT, 38, 5 + n) for n in range(MOST_SENT)]
    early = [(0, 25 + n / MOST_SENT, 38, 9000 + n) for n in range(1000)]
    assert len([*writes.counting([sends(*late), sends((0, 36, 38, 9)), sends(*early)])]) == 3
    [written] = writes.each().values()
    assert (len(written.sent), written.others) == (MOST_SENT, 99995 - MOST_SENT - 1001)
    assert written.sent[999] < 26 * SECOND < 30 * SECOND == written.sent[1000]
    few = LeaderWrites(written.sent)
    assert [few.by(at) for at in (30 * SECOND, 30 * SECOND - 1, NEVER, None)] == [1001, 1000, None, None]


def test_each_partition_has_its_own() -> None:
    known = evidence(by_hand(*BOTH, *LOG, *(f"{line} p1" for line in LOG)))
    writes = WriteCounter(known.elections, known.logs)
    rows = [(0, 30, 31, 6), (1, 32, 33, 6), (1, 33, 34, 7)]
    assert len([*writes.counting([sends(*rows)])]) == 1
    assert {of: (each.sent.tolist(), each.others) for of, each in writes.each().items()} == {
        (ONE, 1): ([30 * SECOND], 4),
        (OTHER, 1): ([32 * SECOND, 33 * SECOND], 3),
    }


#: b2, elected while b1 is cut off and goes on acknowledging, wrote from 5 on. Records from 69 to 80 are gone.
CUT = [
    *[*saw("b1", "0..40", 1, 0, "1,2,3"), *saw("b2,b3", "0..19", 1, 0, "1,2,3")],
    "fault c b1 9..40 kind=isolate clients=kept",
    *[*saw("b2,b3", "20..60", 2, 1, "2,3"), *saw("b1", "41..60", 2, 1, "2,3"), "send a ok @4 t1..2", "final a @4 e0"],
    *[f"send l{n} ok @{n} w1 t{26 + n / 1000}..{26.05 + n / 1000}" for n in range(69, 81)],
    "end 4..69",
]
#: b1 wrote these before, or only when the records had been acknowledged that are gone.
BEFORE, AFTER = (
    [f"send o{n} ok @{n} t{at + n / 1000}..{at + 0.05 + n / 1000}" for n in range(5, 50)] for at in (10, 27)
)
#: b2 has each of 32 writes twice: the producer lost the connection, and sent them again.
COPIES = [
    *[f"send k{n} ok @{n + 1} w1 t{24 + n / 1000}..{24.05 + n / 1000}" for n in range(5, 69, 2)],
    *[f"final k{n} @{n + copy} e1" for n in range(5, 69, 2) for copy in (0, 1)],
]
#: Nobody knows of 44 writes that worker 1 sent them.
UNKNOWN = [
    *[f"send k{n} ok @{n} w1 t{24 + n / 1000}..{24.05 + n / 1000}" for n in range(5, 25)],
    *[f"final k{n} @{n} e1" for n in range(5, 25)],
    *[f"final w1#{n - 5} @{n} e1" for n in range(25, 69)],
]
#: The most that b2 can have written when they were acknowledged: it wrote the rest later.
LATER = [
    *[f"send k{n} ok @{n} w1 t{24 + n / 1000}..{24.05 + n / 1000}" for n in range(5, 25)],
    *[f"send k{n} ok @{n} w1 t{27 + n / 1000}..{27.05 + n / 1000}" for n in range(25, 69)],
    *[f"final k{n} @{n} e1" for n in range(5, 69)],
]


@pytest.mark.long
@pytest.mark.parametrize(
    ("lines", "settings", "standing"),
    [
        ([*BEFORE, *COPIES], {}, Standing.UNDECIDED),
        ([*AFTER, *COPIES], {}, Standing.UNDECIDED),
        ([*BEFORE, *UNKNOWN], {"partial": True}, Standing.UNDECIDED),
        ([*BEFORE, *LATER], {}, Standing.PERMITTED),
    ],
    ids=[
        *("copies", "copies, and the other goes on at the same offsets", "writes of which nobody knows"),
        "it wrote too little",
    ],
)
def test_a_loss_is_not_permitted_if_the_leader_may_have_written_and_dropped_the_record(
    lines: list[str], settings: dict[str, Any], standing: Standing, spark: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path, [by_hand(*CUT, *lines)], acks="1", idempotence=False, **settings)
    assert judge(tmp_path, spark).anomalies["lost"].standing is standing


def test_offsets_may_be_far_apart() -> None:
    known = evidence(
        by_hand(*ELECTED, "final a @4 e0", "final b @5 e1", f"final c @{10**15} e1", f"end 0..{10**15 + 1}")
    )
    writes = WriteCounter(known.elections, known.logs)
    far = [(0, 23, 24, 10**15 - 1), (0, 10, 11, 10**15 - 1)]
    assert len([*writes.counting([sends(*far)])]) == len([*writes.without([gone(*far)])]) == 1
    assert writes.each()[ONE, 1].twice == 10**15 - 1


@pytest.mark.parametrize(
    ("lost", "twice"),
    [
        ([(0, 23, 24, 7), (0, 10, 11, 7)], 7),
        ([(0, 23, 24, 7), (0, 23, 24, 7)], 7),
        ([(0, 23, 24, 7), (0, 10, 11, 7), (0, 23, 24, 6), (0, 10, 11, 6)], 7),
        ([(0, 10, 11, 7), (0, 11, 12, 7)], -1),
        ([(0, 23, 24, 7), (0, 10, 11, 8)], -1),
        ([(0, 23, 24, 10), (0, 10, 11, 10)], -1),
        ([(0, 23, 24, 4), (0, 10, 11, 4)], -1),
        ([(0, 23, 24, 7), (1, 10, 11, 7)], -1),
        ([(0, 23, 24, 7)], -1),
    ],
    ids=[
        *("its own, and that of the leader before", "both since it leads", "at two offsets"),
        *("both before it led", "at different offsets", "above its log", "below its log", "in another partition"),
        "one alone",
    ],
)
def test_two_records_are_gone_from_one_offset(lost: list[tuple[int, float, float, int]], twice: int) -> None:
    assert counted([], gone(*lost)).twice == twice
    assert counted([], *map(gone, lost)).twice == twice
    assert counted([], gone(*reversed(lost))).twice == twice


#: b2, elected uncleanly, had all up to 9, wrote 10 to 12, dropped its records from 5 on, and wrote on there.
DROPPED = [
    *[*saw("b1,b2,b3", "0..9", 1, 0, "1,2,3"), *saw("b1,b2,b3", "10..19", 1, 0, "1"), "fault k b1 20..90 kind=kill"],
    *[*saw("b2,b3", "22..60", 2, 1, "2,3"), "send a ok @4 t1..2", "final a @4 e0"],
    *[f"send o{n} ok @{n} t{14 + n / 10}..{14.05 + n / 10}" for n in range(5, 14)],
    *[f"send l{n} ok @{n} w1 t{22 + n / 10}..{22.05 + n / 10}" for n in range(10, 13)],
    *[f"send k{n} ok @{n} w1 t{30 + n / 10}..{30.05 + n / 10}" for n in range(5, 20)],
    *[f"final k{n} @{n} e1" for n in range(5, 20)],
    "end 4..20",
]


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("without", "found"),
    [
        ((), {"violation": range(10, 13), "undecided": range(5, 13), "permitted": range(13, 14)}),
        ((*(f"send l{n}" for n in range(10, 13)),), {"permitted": range(5, 14)}),
    ],
    ids=["two records are gone from one offset", "one is"],
)
def test_an_election_is_no_excuse_for_what_its_leader_may_have_dropped_itself(
    without: tuple[str, ...], found: dict[str, range], spark: SparkSession, tmp_path: Path
) -> None:
    lines = [line for line in DROPPED if not line.startswith(without or "\0")]
    write(tmp_path, [by_hand(*lines)], acks="all", unclean_election=True, min_insync_replicas=1)
    runs = judge(tmp_path, spark).anomalies["lost"].runs
    assert {str(run["standing"]): range(run["first_offset"], run["last_offset"] + 1) for run in runs} == found
