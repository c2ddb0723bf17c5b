"""When nothing was acknowledged: on slots of a second, and once from a history."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from checkers.availability import (
    Slot,
    Stretch,
    availability,
    awaited,
    longest,
    next_acknowledgement,
    per_bucket,
    resolution,
    stretches,
    together,
)
from checkers.history import History
from tests.checkers.notation import SECOND, tell, write


def slot(
    at: int, invoked: Sequence[int] = (), acked: Sequence[int] = (), failed: Sequence[int] = (), partition=0
) -> Slot:
    """What happened in a slot, at the given seconds."""
    return Slot(
        topic="t",
        partition=partition,
        slot=at,
        era=0,
        invoked=len(invoked),
        completed=len(acked) + len(failed),
        acknowledged=len(acked),
        first_invoked_ns=min(invoked, default=None),
        last_attempt_ns=max([*invoked, *acked, *failed]),
        first_ack_ns=min(acked, default=None),
        last_ack_ns=max(acked, default=None),
    )


def test_a_stretch_runs_from_one_acknowledgement_to_the_next_while_a_write_is_pending() -> None:
    timeline = [slot(0, invoked=[1, 2, 3], acked=[4]), slot(10, acked=[15, 16])]
    assert stretches(timeline) == [Stretch(1, 4, True), Stretch(4, 15, True)]
    assert longest(timeline) == Stretch(4, 15, True)


def test_where_nothing_was_pending_it_begins_with_the_next_attempt() -> None:
    timeline = [slot(0, invoked=[1], acked=[4]), slot(10, invoked=[12], acked=[15])]
    assert stretches(timeline) == [Stretch(1, 4, True), Stretch(12, 15, True)]


def test_a_failure_ends_an_attempt_but_not_the_stretch() -> None:
    timeline = [slot(0, invoked=[1, 2], acked=[4]), slot(10, failed=[12]), slot(20, invoked=[21], acked=[29])]
    assert longest(timeline) == Stretch(4, 29, True)


def test_the_last_stretch_ends_with_the_last_attempt() -> None:
    assert longest([slot(0, invoked=[1, 2], acked=[4]), slot(10, failed=[18])]) == Stretch(4, 18, False)


def test_where_nothing_is_ever_acknowledged_it_lasts_throughout() -> None:
    assert longest([slot(0, invoked=[1, 2]), slot(10, invoked=[15])]) == Stretch(1, 15, False)


def test_where_nothing_was_attempted_there_is_none() -> None:
    assert longest([]) is None


def test_all_partitions_together_are_available_while_one_is() -> None:
    one = [slot(0, invoked=[1, 2], acked=[3]), slot(20, acked=[25])]
    other = [slot(10, invoked=[11], acked=[12], partition=1)]
    assert longest(one) == Stretch(3, 25, True)
    assert longest(together([*one, *other])) == Stretch(12, 25, True)


def test_the_next_acknowledgement_after_an_instant() -> None:
    timeline = [slot(0, invoked=[1], acked=[4]), slot(10, invoked=[12]), slot(20, acked=[25])]
    assert next_acknowledgement(timeline, 5) == 25
    assert next_acknowledgement(timeline, 26) is None


@pytest.mark.parametrize(
    ("since", "found"),
    [
        (2, Stretch(2, 4, True)),
        (4, Stretch(4, 4, True)),
        (5, Stretch(12, 15, True)),
        (14, Stretch(14, 15, True)),
        (16, Stretch(21, 28, False)),
        (23, Stretch(23, 28, False)),
        (29, None),
    ],
)
def test_after_an_instant_an_acknowledgement_is_awaited_from_when_one_was_asked_for(
    since: int, found: Stretch | None
) -> None:
    timeline = [slot(0, invoked=[1], acked=[4]), slot(10, invoked=[12], acked=[15]), slot(20, invoked=[21, 28])]
    assert awaited(stretches(timeline), since) == found


@pytest.mark.parametrize(("seconds", "bucket"), [(1, 1), (600, 1), (601, 2), (3600, 6)])
def test_a_chart_has_at_most_600_buckets(seconds: int, bucket: int) -> None:
    timeline = [slot(at, invoked=[at * SECOND], acked=[at * SECOND]) for at in range(seconds)]
    length, counts = per_bucket(timeline, SECOND)
    assert length == bucket * SECOND
    assert len(counts) <= 600
    assert sum(counts) == seconds


def test_without_a_send_the_chart_is_empty() -> None:
    assert per_bucket([], SECOND)[1] == []


def test_slots_are_10_ms_unless_there_would_be_too_many() -> None:
    assert resolution(90 * SECOND, 1) == 10_000_000
    assert resolution(3600 * SECOND, 100) == 18 * SECOND


def test_availability_of_a_history(spark: SparkSession, tmp_path: Path) -> None:
    told = tell(
        "send a ok @0 t1..1.5",
        "send b info t2..7",
        "send c fail t3..3.5",
        "send d ok @1 t7..8",
        "send e ok @0 p1 t1..2",
        "send f info p1 t9..",
        "fault cut b1 2..7.5",
        "fault late b1 9..",
        "end 0..2",
        "end 0..1 p1",
    )
    write(tmp_path, [told])
    service = availability(History.read(tmp_path, spark))
    assert service["resolution_ns"] == 10_000_000
    assert service["longest_unavailable"] == stretch(2, 8, ended=True)
    assert [part["longest_unavailable"] for part in service["partitions"]] == [
        stretch(2, 8, ended=True),
        stretch(1, 2, ended=True),
    ]
    assert service["after_faults"] == [
        after("cut", 0, SECOND // 2, stretch(7.5, 8, ended=True)),
        after("late", None, None, None),
    ]
    assert [part["after_faults"] for part in service["partitions"]] == [
        [after("cut", 5 * SECOND + SECOND, SECOND // 2, stretch(7.5, 8, ended=True)), after("late", None, None, None)],
        [after("cut", 0, None, stretch(9, 9, ended=False)), after("late", None, None, None)],
    ]
    assert (service["bucket_ns"], service["acknowledged"]) == (SECOND, [0, 1, 1, 0, 0, 0, 0, 0, 1, 0])


def test_a_transaction_that_is_aborted_is_no_unavailability(spark: SparkSession, tmp_path: Path) -> None:
    sends = [f"send a{n} ok @{n} x1 t{n}..{n + 1}" for n in range(8)]
    write(tmp_path, [tell("txn 1 abort ok 0..8..9", *sends, "end 0..0")], isolation_level="read_committed")
    service = availability(History.read(tmp_path, spark))
    assert service["longest_unavailable"] == stretch(0, 1, ended=True)
    assert sum(service["acknowledged"]) == 8


def stretch(begin: float, end: float, ended: bool) -> dict:
    from_ns, to_ns = int(begin * SECOND), int(end * SECOND)
    return {"from_ns": from_ns, "to_ns": to_ns, "lasted_ns": to_ns - from_ns, "ended": ended}


def after(fault: str, injection: int | None, heal: int | None, awaited_after_heal: dict | None) -> dict:
    return {
        "fault": fault,
        "first_ack_after_injection_ns": injection,
        "first_ack_after_heal_ns": heal,
        "awaited_after_heal": awaited_after_heal,
    }
