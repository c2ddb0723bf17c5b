"""Records, folded into ranges."""

from collections.abc import Iterable
from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from checkers.evidence.decision import Decision
from checkers.evidence.losses import by_transaction
from checkers.evidence.record_ranges import (
    COLUMNS,
    RecordRange,
    bucket_width,
    claims,
    joined,
    reattributed,
    record_ranges,
    with_rows,
)
from checkers.leadership import LeaderTerm
from harness.core.guarantees import Ruling
from harness.core.verdict import Standing
from tests.checkers.notation import SECOND, by_hand
from tests.checkers.ranges import BOTH, NAMES, SEEN, TRIAL, record_range
from tests.checkers.test_holders import evidence, saw


def _rows(acknowledged: Iterable[tuple[str, int, int, int]]) -> pa.Table:
    """Records sent at 0: topic, partition, offset, acknowledged_ns."""
    nothing = {**dict.fromkeys(COLUMNS.names), "sent_ns": 0}
    names = ("topic", "partition", "offset", "acknowledged_ns")
    return pa.Table.from_pylist([nothing | dict(zip(names, row, strict=True)) for row in acknowledged], COLUMNS)


@pytest.mark.parametrize("size", [7, 10_000], ids="in pieces of {}".format)
def test_folded_ranges_have_every_record(size: int) -> None:
    offsets = [*range(1000), *range(2000, 2100), 5000]
    table = _rows(("trial", 0, n, (n % 10) * SECOND) for n in offsets)
    parts = record_ranges((table[at : at + size] for at in range(0, len(table), size)), {TRIAL: BOTH}, 64)
    assert sum(part.count for part in parts) == len(offsets)
    assert {(part.term, part.first_ns // SECOND, part.last_ns // SECOND) for part in parts if part.count > 9} == {
        (1, 0, 7),
        (2, 8, 9),
    }
    assert sorted((part.term, part.first_offset, part.last_offset, part.count) for part in joined(parts, 64)) == [
        (1, 0, 997, 800),
        (1, 2000, 2097, 80),
        (1, 5000, 5000, 1),
        (2, 8, 999, 200),
        (2, 2008, 2099, 20),
    ]


def test_a_range_has_the_earliest_and_latest_times_of_its_records() -> None:
    times = ("sent_ns", "acknowledged_ns", "read_ns")
    each = [{"topic": "trial", "partition": 0, "offset": n} | dict.fromkeys(times, 0) for n in range(2)]
    rows = [each[0] | {"read_ns": 6}, each[1] | dict(zip(times, (1, 3, 4), strict=True))]
    [part] = record_ranges([pa.Table.from_pylist(rows, COLUMNS)], {}, 64)
    case = part.case
    assert case is not None
    assert (case.sent_ns, case.last_sent_ns, case.first_until_ns, case.until_ns, case.delivered_ns) == (0, 1, 0, 3, 6)


@pytest.mark.parametrize(("grouped", "fetched_ns"), [(False, 15 * SECOND), (True, None)])
def test_a_consumer_fetched_what_it_hands_on_within_5_s_unless_it_is_of_a_group(
    grouped: bool, fetched_ns: int | None
) -> None:
    row = {"topic": "trial", "partition": 0, "offset": 0, "sent_ns": 0, "last_read_ns": 20 * SECOND}
    known = evidence(by_hand("send a ok @0"), grouped=grouped)
    [part] = record_ranges([pa.Table.from_pylist([row], COLUMNS)], {}, 64, evidence=known)
    assert part.case is not None
    assert part.case.fetched_ns == fetched_ns


#: b1 leads until 9 s, and b2, of the next epoch, from 20 s on.
_MOVED = (*saw("b1,b2", "0..9", 1, 0, "1,2"), *saw("b1,b2", "20..30", 2, 1, "2"))


@pytest.mark.parametrize(
    ("first", "other", "apart"),
    [
        ({"sent_ns": 1, "acknowledged_ns": 25}, {"sent_ns": 2, "acknowledged_ns": 25}, False),
        ({"sent_ns": 1, "acknowledged_ns": 25}, {"sent_ns": 21, "acknowledged_ns": 25}, True),
        ({"sent_ns": 1, "acknowledged_ns": 2}, {"sent_ns": 1, "acknowledged_ns": 25}, True),
        ({"sent_ns": 1, "read_ns": 2}, {"sent_ns": 1, "read_ns": 25}, True),
        (
            {"sent_ns": 1, "acknowledged_ns": 2, "read_ns": 3},
            {"sent_ns": 1, "acknowledged_ns": 2, "read_ns": 25},
            True,
        ),
    ],
    ids=["alike", "sent", "acknowledged", "delivered only", "delivered"],
)
def test_records_before_and_after_an_event_are_not_in_one_range(
    first: dict[str, int], other: dict[str, int], apart: bool
) -> None:
    rows = [
        {"topic": "trial", "partition": 0, "offset": n} | {name: at * SECOND for name, at in one.items()}
        for n, one in enumerate((first, other))
    ]
    known = evidence(by_hand("send a ok @0", *_MOVED))
    # (Without the terms, nothing else sets them apart.)
    assert len(record_ranges([pa.Table.from_pylist(rows, COLUMNS)], {}, 64, evidence=known)) == 1 + apart


def test_ranges_with_different_decisions_are_not_joined() -> None:
    decisions = [Decision(Ruling(standing, "why", "source")) for standing in (Standing.PERMITTED, Standing.VIOLATION)]
    parts = [replace(record_range(5 * n, 5 * n + 4), decision=one) for n, one in enumerate(decisions)]
    assert joined(parts, 64) == parts
    alike = [replace(one, decision=decisions[0]) for one in parts]
    assert [(one.first_offset, one.last_offset) for one in joined(alike, 64)] == [(0, 9)]


def test_the_rows_of_each_range_are_known() -> None:
    rows = [(f"trial-{n % 3}", n % 2, n, (n % 10) * SECOND) for n in range(500)]
    Random(1).shuffle(rows)
    table = _rows(rows)
    pieces = [table[at : at + 70] for at in range(0, len(table), 70)]
    known = with_rows(pieces, {TRIAL: BOTH}, 64, {}, None)
    assert [part for part, _ in known] == record_ranges(pieces, {TRIAL: BOTH}, 64)
    assert sorted(n for _, numbers in known for n in numbers.tolist()) == [*range(len(table))]
    for part, numbers in known:
        of = table.take(numbers)
        assert ({*of["topic"].to_pylist()}, {*of["partition"].to_pylist()}) == ({part.topic}, {part.partition})
        reported = min(of["offset"].to_pylist()), max(of["offset"].to_pylist()), len(of)
        assert reported == (part.first_offset, part.last_offset, part.count)


def test_a_transaction_counts_once_in_the_worst_range_that_has_a_record_of_it() -> None:
    decisions = [Decision(Ruling(standing, "why", "source")) for standing in Standing]
    of = {decision.standing: replace(record_range(0, 4), decision=decision) for decision in decisions}
    parts = [of[Standing.PERMITTED], of[Standing.VIOLATION], of[Standing.UNDECIDED], of[Standing.PERMITTED]]
    # worker, transaction, range
    rows = [(0, 1, 0), (0, 1, 2), (0, 2, 3), (0, 2, 3), (1, 1, 0), (1, 1, 1), (1, 2, 2), (1, 2, 1), (2, 1, 0)]
    Random(1).shuffle(rows)
    numbers = [np.array([n for n, row in enumerate(rows) if row[2] == number], int) for number in range(len(parts))]
    worker, transaction, _ = zip(*rows, strict=True)
    counted = by_transaction(
        parts, numbers, pa.table({"worker": worker, "transaction": transaction, "nth": range(len(rows))})
    )
    assert [(one.standing, one.count, one.acknowledged) for one in counted] == [
        (Standing.PERMITTED, 1, 1),
        (Standing.VIOLATION, 2, 2),
        (Standing.UNDECIDED, 1, 1),
        (Standing.PERMITTED, 1, 1),
    ]


@pytest.mark.parametrize(
    ("offsets", "partitions", "width"), [(0, 0, 64), (1_000, 1, 64), (10**8, 1, 8192), (10**8, 12, 65536)]
)
def test_there_is_a_bounded_number_of_buckets(offsets: int, partitions: int, width: int) -> None:
    assert bucket_width(offsets, partitions) == width
    assert offsets * partitions // width <= 20_000


def test_record_ranges_as_near_as_a_bucket_is_wide_are_one_and_farther_ones_are_not() -> None:
    near = joined([record_range(64, 70, 6, 9), record_range(0, 6, 5, 7)], 64)
    assert near == [record_range(0, 70, 5, 9, count=14, acknowledged=14)]
    assert len(joined([record_range(0, 6), record_range(71, 80)], 64)) == 2
    assert len(joined([record_range(0, 6), record_range(7, 8, term=2)], 64)) == 2
    assert len(joined([record_range(0, 6), record_range(None, None)], 64)) == 2


def test_a_run_has_the_times_of_what_was_acknowledged_in_it() -> None:
    [whole] = joined([record_range(0, 1, 1, 2, acknowledged=0), record_range(2, 3, 5, 6)], 64)
    assert (whole.first_ns, whole.last_ns, whole.acknowledged) == (5 * SECOND, 6 * SECOND, 2)


def test_records_of_a_deposed_leader_before_it_knew_are_its_own() -> None:
    parts = [record_range(0, 9), record_range(10, 19, 9, 11, term=2)]
    assert joined(reattributed(parts, 64, {TRIAL: BOTH}, claims(SEEN, NAMES)), 64) == [record_range(0, 19, 5, 11)]


@pytest.mark.parametrize(
    "later",
    [record_range(10, 19, 13, 14, term=2), record_range(200, 210, 9, 11, term=2), record_range(5, 9, 9, 11, term=2)],
)
def test_records_that_a_deposed_leader_did_not_claim_or_continue_are_of_its_successor(later: RecordRange) -> None:
    parts = [record_range(0, 9), later]
    assert later in reattributed(parts, 64, {TRIAL: BOTH}, claims(SEEN, NAMES))


def test_an_offset_as_great_as_can_be_has_a_bucket_too() -> None:
    assert bucket_width((1 << 63) - 1, 1_000_000) == 1 << 62


def test_records_before_the_first_report_are_of_the_first_leader() -> None:
    row = {"topic": "trial", "offset": 1, "sent_ns": 1, "acknowledged_ns": 2}
    table = pa.Table.from_pylist([{**row, "partition": 0}, {**row, "partition": 1}], COLUMNS)
    parts = record_ranges([table], {TRIAL: [LeaderTerm(1, 0, 9)], ("trial", 1): []}, 64)
    assert [(part.partition, part.term) for part in parts] == [(0, 1), (1, 0)]
