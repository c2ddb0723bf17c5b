"""Members that began behind all that their group had asked to commit: pure, on rows of positions."""

from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from checkers.anomalies.groups import skipping_starts, skipping_starts_in
from checkers.history import History
from harness.history.paths import parts
from tests.checkers.notation import by_hand, write


def skipped(*rows: str, recorded: bool = True) -> list[tuple[int, int, int]]:
    """Partition, and from where to where, of what was skipped. A row: ``event @offset t1 p0``, by reader 3; or
    ``… p0 4``: by reader 4; or ``… p0 4 failed``."""
    split = [(row.split() + ["3", ""][len(row.split()) - 4 :]) for row in rows]
    table = pa.Table.from_pylist(
        [
            {
                "topic": "t",
                "partition": int(partition[1:]),
                "at_ns": int(at[1:]),
                "event": event,
                "offset": int(offset[1:]),
                "reader": int(reader),
                "incarnation": 0,
                "error": failed or None,
            }
            for event, offset, at, partition, reader, failed in split
        ],
        pa.schema(
            [
                *(("topic", pa.string()), ("partition", pa.int32()), ("at_ns", pa.int64())),
                *(("event", pa.string()), ("offset", pa.int64()), ("reader", pa.int32())),
                *(("incarnation", pa.int32()), ("error", pa.string())),
            ]
        ),
    )
    return [(one["partition"], one["passed_from"], one["passed_to"]) for one in skipping_starts_in(table, recorded)]


@pytest.mark.parametrize(
    ("rows", "passed"),
    [
        (("assign @0 t1 p0", "committing @4 t2 p0", "assign @4 t3 p0"), []),
        (("assign @0 t1 p0", "committing @4 t2 p0", "assign @3 t3 p0"), []),
        (("assign @0 t1 p0", "committing @4 t2 p0", "assign @6 t3 p0"), [(0, 4, 6)]),
        (("assign @6 t3 p0", "committing @4 t2 p0"), [(0, 4, 6)]),
        (("committing @4 t2 p0", "committing @2 t3 p0", "assign @6 t4 p0"), [(0, 4, 6)]),
        (("committing @4 t2 p0", "assign @6 t4 p0", "committing @6 t5 p0", "assign @6 t6 p0"), [(0, 4, 6)]),
        (("committing @6 t4 p0", "assign @6 t4 p0"), []),
        (("committing @4 t2 p1", "assign @6 t4 p0"), [(0, 0, 6)]),
        (("committing @4 t2 p1", "assign @0 t4 p0"), []),
        (("assign @6 t1 p0", "committing @8 t4 p0"), [(0, 0, 6)]),
        (("assign @0 t1 p0", "assign @6 t4 p0"), [(0, 0, 6)]),
        (("commit @4 t2 p0 3 failed", "assign @4 t3 p0"), []),
        ((), []),
    ],
)
def test_the_next_owner_may_begin_no_later_than_the_group_asked_to_commit(
    rows: tuple[str, ...], passed: list[tuple[int, int, int]]
) -> None:
    assert skipped(*rows) == passed


#: Reader 4 began before an unanswered request of reader 3.
BEGAN_BEFORE = ("assign @0 t1 p0 3", "committing @6 t2 p0 3", "assign @0 t3 p0 4", "committing @2 t5 p0 4")


@pytest.mark.parametrize(
    ("rows", "passed"),
    [
        (("commit @2 t6 p0 4", "assign @6 t8 p0 5"), [(0, 2, 6)]),
        (("commit @2 t6 p0 4", "assign @2 t8 p0 5"), []),
        (("commit @2 t6 p0 4", "commit @6 t7 p0 3 failed", "assign @6 t8 p0 5"), [(0, 2, 6)]),
        (("commit @2 t6 p0 4", "commit @6 t7 p0 3", "assign @6 t8 p0 5"), []),
        (("commit @2 t6 p0 4", "committing @4 t7 p0 4", "assign @6 t8 p0 5"), [(0, 4, 6)]),
        (("committing @6 t5 p0 4", "commit @2 t6 p0 4", "assign @6 t8 p0 5"), []),
        (("committing @6 t4 p0 3", "commit @2 t6 p0 4", "assign @6 t8 p0 5"), []),
        (("commit @2 t6 p0 4 failed", "assign @6 t8 p0 5"), []),
        (("commit @1 t6 p0 4", "assign @6 t8 p0 5"), []),
        (("commit @2 t6 p0 5", "assign @6 t8 p0 5"), []),
        (("commit @2 t6 p1 4", "assign @6 t8 p0 5"), []),
        (("assign @0 t6 p0 4", "commit @2 t7 p0 4", "assign @6 t8 p0 5"), []),
        (("assign @0 t6 p0 4", "committing @2 t7 p0 4", "commit @2 t7 p0 4", "assign @6 t8 p0 5"), []),
        (("assign @6 t6 p0 5", "committing @8 t7 p0 5", "commit @8 t7 p0 5", "assign @6 t8 p0 4"), []),
        (("committing @1 t4 p0 3", "commit @2 t6 p0 4", "commit @1 t7 p0 3", "assign @6 t8 p0 5"), [(0, 2, 6)]),
        (
            (
                *("commit @2 t6 p0 4", "committing @6 t7 p0 3", "assign @0 t8 p0 4"),
                *("committing @2 t9 p0 4", "commit @2 t10 p0 4", "assign @6 t11 p0 5"),
            ),
            [(0, 2, 6)],
        ),
    ],
)
def test_a_request_counts_until_a_later_member_that_began_before_it_was_answered(
    rows: tuple[str, ...], passed: list[tuple[int, int, int]]
) -> None:
    assert skipped(*BEGAN_BEFORE, *rows) == passed


@pytest.mark.parametrize(
    ("rows", "passed"),
    [
        (("assign @0 t1 p0", "assign @6 t4 p0"), []),
        (("commit @4 t2 p1", "assign @6 t4 p0"), []),
        (("commit @4 t2 p0", "assign @6 t4 p0"), [(0, 4, 6)]),
    ],
)
def test_only_a_commit_shows_where_to_begin_if_requests_are_not_recorded(
    rows: tuple[str, ...], passed: list[tuple[int, int, int]]
) -> None:
    assert skipped(*rows, recorded=False) == passed


@pytest.mark.parametrize("tells", [False, True])
def test_a_group_without_any_request_starts_at_the_log_start_if_its_run_would_record_one(
    tells: bool, tmp_path: Path
) -> None:
    members = {"consumer 101": {}, "consumer 102": {}}
    writes = {"writes": dict.fromkeys(members, ("reads", "positions"))} if tells else {}
    lines = ("place assign r1 @0 t1", "place revoke r1 t2", "place assign r2 @2 t3")
    write(tmp_path, [by_hand(*lines)], grouped=True, clients=members, **writes)
    found = skipping_starts(History.read(tmp_path, cast(Any, None)))
    assert [(one["passed_from"], one["passed_to"]) for one in found] == [(0, 2)] * tells


@pytest.mark.parametrize("commits_first", [False, True])
def test_the_last_commit_of_a_killed_member_may_be_unrecorded_if_requests_are_not_recorded(
    commits_first: bool, tmp_path: Path
) -> None:
    lines = ("place assign r1 @0 t1", "place commit r1 @1 t2", "place assign r2 @2 t3")
    write(tmp_path, [by_hand(*lines)], grouped=True, commits_first=commits_first)
    found = skipping_starts(History.read(tmp_path, cast(Any, None)))
    assert [(one["passed_from"], one["passed_to"]) for one in found] == [(1, 2)] * (not commits_first)


@pytest.mark.parametrize("missing", [False, True])
def test_commit_requests_are_unknown_if_the_journals_of_a_member_are_missing(missing: bool, tmp_path: Path) -> None:
    lines = ("place assign r1 @0 t1", "place committing r1 @1 t2", "place assign r1 @2 t3")
    write(tmp_path, [by_hand(*lines)], grouped=True, clients={"consumer 101": {}, "consumer 102": {}})
    if missing:
        [path] = [path for path in parts(tmp_path, "positions") if path.name.startswith("102")]
        path.unlink()
    history = History.read(tmp_path, cast(Any, None))
    assert [(one["passed_from"], one["passed_to"]) for one in skipping_starts(history)] == [(1, 2)] * (not missing)


#: A member processed one record, and asked to commit it. The next one does not learn where it begins.
TO_UNKNOWN = (
    *("place assign r1 @0 t1", "live a @0 r1 t2", "place committing r1 @1 t3", "place commit r1 @1 t3"),
    *("place revoke r1 t4", "place assign r2 t5"),
)


@pytest.mark.parametrize(
    ("lines", "passed"),
    [
        (("live d @3 r2 t6",), [(1, 3)]),
        (("live b @1 r2 t6", "live d @3 r2 t7"), []),
        (("live d @3 r2 t6", "live b @1 r2 t6"), []),
        (("live a @0 r2 t6",), []),
        (("place end-of-partition r2 @3 t6",), [(1, 3)]),
        (("live b @1 r2 t6", "place end-of-partition r2 @3 t6"), []),
        (("place end-of-partition r2 @1 t6", "live d @3 r2 t7"), []),
        (("place end-of-partition r2 t6",), []),
        (("place seek r2 @0 t6", "live d @3 r2 t7"), []),
        (("place revoke r2 t6", "live d @3 r2 t7"), []),
        (("place revoke r2 t6", "place assign r2 t6", "live d @3 r2 t7"), []),
        (("live b @1 r2 t6", "place revoke r2 t7", "place assign r2 @1 t8", "live d @3 r2 t9"), []),
        (("place lost r2 t6", "live d @3 r2 t7"), []),
        (("live b @1 r2 t5", "live d @3 r2 t7"), []),
        (("live d @3 r2 t6", "place seek r2 t6"), []),
        (("place revoke r2 t6", "place assign r2 t7", "live d @3 r2 t8"), [(1, 3)]),
        (("live d @3 r2 i1 t6",), []),
        (("live d @3 r1 t6",), []),
        (("live d @3 p1 r2 t6",), []),
        (("replica d @3 r2 t6",), []),
        (("place committing r1 @3 t6", "live d @3 r2 t7"), []),
        ((), []),
    ],
)
def test_a_member_that_did_not_learn_its_start_offset_began_at_its_first_delivery(
    lines: tuple[str, ...], passed: list[tuple[int, int]], tmp_path: Path
) -> None:
    write(tmp_path, [by_hand(*TO_UNKNOWN, *lines)], grouped=True)
    found = skipping_starts(History.read(tmp_path, cast(Any, None)))
    assert [(one["passed_from"], one["passed_to"]) for one in found] == passed


def test_without_a_commit_request_a_member_begins_at_the_log_start_or_skips_records(tmp_path: Path) -> None:
    lines = ("place assign r1 t1", "live d @3 r1 t6", "place committing r1 @4 t7", "place commit r1 @4 t8 failed")
    write(tmp_path, [by_hand(*lines)], grouped=True)
    [found] = skipping_starts(History.read(tmp_path, cast(Any, None)))
    assert (found["passed_from"], found["passed_to"], found["reader"]) == (0, 3, 101)


def test_if_no_member_asked_to_commit_an_unrecorded_start_stays_unknown(tmp_path: Path) -> None:
    members = {"consumer 101": {}}
    writes = {"writes": dict.fromkeys(members, ("reads", "positions"))}
    write(tmp_path, [by_hand("place assign r1 t1", "live d @3 r1 t6")], grouped=True, clients=members, **writes)
    assert skipping_starts(History.read(tmp_path, cast(Any, None))) == []
