"""When nothing was acknowledged: on writes folded by a slow and obvious way, and from histories."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from checkers.availability import availability, bins, committed, resolution
from checkers.availability import writes as writes_of
from checkers.evidence.intervals import merged
from checkers.history import History
from checkers.judge import judge
from checkers.stretches import Stretch, Timeline, per_bucket, stretches, timelines, together
from harness.core.verdict import Judgement
from harness.history.run_file import Limits
from tests.checkers.notation import SECOND, by_hand, write

PARTITION = ("t", 0)


@dataclass(frozen=True)
class Write:
    """A write, and when it ended: acknowledged, or not."""

    sent: int
    end: int
    acknowledged: bool = False
    partition: int = 0


def acked(sent: int, end: int, partition: int = 0) -> Write:
    return Write(sent, end, True, partition)


def failed(sent: int, end: int) -> Write:
    return Write(sent, end)


def folded(writes: Iterable[Write], bin_ns: int = 1, instants: Sequence[int] = ()) -> pa.Table:
    """The writes by partition, bin and era, as ``bins`` returns them."""
    groups: dict[tuple[str, int, int, int], list[Write]] = {}
    for one in writes:
        key = ("t", one.partition, one.end // bin_ns, bisect_right(instants, one.end))
        groups.setdefault(key, []).append(one)
    rows = [
        {
            **dict(zip(("topic", "partition", "bin", "era"), key, strict=True)),
            "earliest": min(one.sent for one in group),
            "last_end": max(one.end for one in group),
            "first_sent": min((one.sent for one in group if one.acknowledged), default=None),
            "first_ack": min((one.end for one in group if one.acknowledged), default=None),
            "last_ack": max((one.end for one in group if one.acknowledged), default=None),
            "acknowledged": sum(one.acknowledged for one in group),
        }
        for key, group in groups.items()
    ]
    names = ("bin", "era", "earliest", "last_end", "first_sent", "first_ack", "last_ack")
    whole = pa.schema([(name, pa.int64()) for name in names])
    fields = [pa.field("topic", pa.string()), pa.field("partition", pa.int64()), *whole]
    return pa.Table.from_pylist(rows, pa.schema([*fields, pa.field("acknowledged", pa.int64())]))


def line(*writes: Write, bin_ns: int = 1, abandoned: Sequence[tuple[int, int]] = ()) -> Timeline:
    """The timeline of one partition."""
    return timelines(folded(writes, bin_ns), {PARTITION: list(abandoned)} if abandoned else {})[PARTITION]


def certain_stretches(timeline: Timeline) -> list[Stretch]:
    """Every stretch that there was for certain."""
    found = stretches(timeline)
    return [
        Stretch(begun, to, ended)
        for begun, to, ended in zip(found.begun.tolist(), found.to.tolist(), found.ended.tolist(), strict=True)
    ]


def exactly(writes: Sequence[Write], abandoned: Sequence[tuple[int, int]] = ()) -> list[Stretch]:
    """Every stretch, by looking at every write for every acknowledgement."""
    acks = sorted({one.end for one in writes if one.acknowledged})
    last = max([one.end for one in writes] + [until for _, until in abandoned], default=-1)
    found = []
    for after, next_ack in zip([-1, *acks], [*acks, None], strict=True):
        to = last if next_ack is None else next_ack
        sent = [max(after, one.sent) for one in writes if one.end > after]
        awaited = [(min(sent), to)] if sent else []
        awaited += [
            (max(after, since), until if next_ack is None else min(until, next_ack))
            for since, until in abandoned
            if until > after and (next_ack is None or since < next_ack)
        ]
        found += [Stretch(begin, end, end == next_ack) for begin, end in merged(awaited)]
    return found


def test_a_stretch_runs_from_one_acknowledgement_to_the_next_while_a_write_is_pending() -> None:
    writes = (acked(1, 4), acked(2, 15), acked(3, 16))
    assert (
        certain_stretches(line(*writes))
        == exactly(writes)
        == [Stretch(1, 4, True), Stretch(4, 15, True), Stretch(15, 16, True)]
    )


def test_a_stretch_begins_with_the_next_attempt_if_no_write_is_pending() -> None:
    assert certain_stretches(line(acked(1, 4), acked(12, 15))) == [Stretch(1, 4, True), Stretch(12, 15, True)]


def test_a_failure_ends_an_attempt_but_not_the_stretch() -> None:
    assert certain_stretches(line(acked(1, 4), failed(2, 12), acked(21, 29)))[1:] == [Stretch(4, 29, True)]


def test_a_write_that_failed_before_the_acknowledgement_is_not_pending_then() -> None:
    assert certain_stretches(line(failed(0, 3), acked(1, 4), acked(21, 29))) == [
        Stretch(0, 4, True),
        Stretch(21, 29, True),
    ]


def test_the_last_stretch_ends_with_the_last_attempt() -> None:
    assert certain_stretches(line(acked(1, 4), failed(2, 18))) == [Stretch(1, 4, True), Stretch(4, 18, False)]


def test_a_stretch_covers_the_whole_run_if_nothing_is_acknowledged() -> None:
    assert certain_stretches(line(failed(1, 9), failed(2, 15))) == [Stretch(1, 15, False)]


def test_all_partitions_together_are_available_while_one_is() -> None:
    writes = [acked(1, 3), acked(2, 25), acked(11, 12, partition=1)]
    assert certain_stretches(timelines(folded(writes), {})["t", 0])[1:] == [Stretch(3, 25, True)]
    assert certain_stretches(together(folded(writes), {}))[1:] == [Stretch(3, 12, True), Stretch(12, 25, True)]


@pytest.mark.parametrize(
    ("abandoned", "found"),
    [
        # Nobody awaited anything from 7 to 50.
        ([(5, 7)], [Stretch(5, 7, False), Stretch(50, 51, True)]),
        ([(2, 7)], [Stretch(3, 7, False), Stretch(50, 51, True)]),
        ([(5, 7), (9, 9)], [Stretch(5, 7, False), Stretch(9, 9, False), Stretch(50, 51, True)]),
        ([(70, 80)], [Stretch(50, 51, True), Stretch(70, 80, False)]),
        # Somebody else awaited an answer when it was given up.
        ([(5, 50)], [Stretch(5, 51, True)]),
        ([(5, 60)], [Stretch(5, 51, True), Stretch(51, 60, False)]),
        ([(5, 20), (20, 50)], [Stretch(5, 51, True)]),
    ],
)
def test_a_write_that_died_with_its_producer_is_awaited_no_longer(
    abandoned: list[tuple[int, int]], found: list[Stretch]
) -> None:
    timeline = line(acked(1, 3), acked(50, 51), abandoned=merged(abandoned))
    assert certain_stretches(timeline)[1:] == found


def test_after_a_failure_the_next_attempt_counts_whether_or_not_it_lived_to_see_an_answer() -> None:
    assert certain_stretches(line(acked(1, 3), failed(5, 6), abandoned=[(70, 80)]))[1:] == [Stretch(5, 80, False)]
    assert certain_stretches(line(acked(1, 3), failed(5, 6), acked(90, 91), abandoned=[(70, 80)]))[1:] == [
        Stretch(5, 91, True)
    ]


def test_a_stretch_ends_when_all_pending_writes_are_abandoned() -> None:
    assert certain_stretches(line(abandoned=[(1, 5), (8, 9)])) == [Stretch(1, 5, False), Stretch(8, 9, False)]


def random_writes(random: Random) -> tuple[list[Write], list[tuple[int, int]]]:
    """A few writes within 60 ns, most of which overlap some others; and times when some were awaited in vain."""
    writes = []
    for _ in range(random.randint(0, 12)):
        sent = random.randint(0, 50)
        writes.append(Write(sent, sent + random.choice([0, 1, 3, 10, 25]), random.random() < 0.6))
    begun = [random.randint(0, 60) for _ in range(random.choice([0, 0, 1, 3]))]
    return writes, merged((at, at + random.choice([0, 2, 15])) for at in begun)


def test_random_stretches_are_exact_where_bins_are_and_never_too_long_or_too_short_where_they_are_not() -> None:
    random = Random(7)
    inexact = 0
    for _ in range(2000):
        writes, abandoned = random_writes(random)
        if not writes and not abandoned:
            continue
        bin_ns, exact = random.choice([2, 5, 13, 100]), exactly(writes, abandoned)
        fine, coarse = (line(*writes, bin_ns=length, abandoned=abandoned) for length in (1, bin_ns))
        assert certain_stretches(fine) == exact, writes
        since, until = sorted(random.sample(range(90), 2))
        for begin, end in ((0, 1000), (since, until)):
            lengths = [min(one.to_ns, end) - max(one.from_ns, begin) for one in exact]
            longest = max([0, *lengths])
            certain, at_most = stretches(coarse).longest(begin, end), stretches(coarse).at_most(begin, end)
            lasted = certain.lasted_ns if certain else 0
            assert lasted <= longest <= at_most, (writes, abandoned, bin_ns, begin, end)
            if longest > bin_ns:
                assert at_most - lasted < bin_ns
            inexact += lasted != at_most
    assert inexact > 100


def test_a_bin_begins_anew_with_each_instant() -> None:
    writes = [acked(1, 4), acked(2, 6), acked(3, 9)]
    assert folded(writes, 100, [5])["first_ack"].to_pylist() == [4, 6]


def between(since: int, until: int) -> tuple[Stretch | None, int]:
    found = stretches(line(acked(1, 4), acked(12, 15), failed(21, 28)))
    return found.longest(since, until), found.at_most(since, until)


@pytest.mark.parametrize(
    ("since", "until", "found"),
    [
        (2, 99, Stretch(21, 28, False)),
        (2, 15, Stretch(12, 15, True)),
        (2, 14, Stretch(2, 4, True)),
        (13, 14, Stretch(13, 14, False)),
        (14, 20, Stretch(14, 15, True)),
        (16, 20, None),
        (16, 99, Stretch(21, 28, False)),
        (23, 26, Stretch(23, 26, False)),
        (29, 99, None),
    ],
)
def test_between_two_instants_a_stretch_counts_as_far_as_it_lies_there(
    since: int, until: int, found: Stretch | None
) -> None:
    assert between(since, until) == (found, found.lasted_ns if found else 0)


@pytest.mark.parametrize(("seconds", "bucket"), [(1, 1), (600, 1), (601, 2), (3600, 6)])
def test_a_chart_has_at_most_600_buckets(seconds: int, bucket: int) -> None:
    timeline = line(*(acked(at * SECOND, at * SECOND) for at in range(seconds)), bin_ns=SECOND)
    length, counts = per_bucket(timeline, SECOND)
    assert length == bucket * SECOND
    assert len(counts) <= 600
    assert sum(counts) == seconds


@pytest.mark.parametrize(
    ("seconds", "chart"),
    [([-1e-9], [1]), ([-3], [1]), ([-3, 2], [1, 0, 1])],
    ids=["unknown", "before", "before and after"],
)
def test_acknowledgements_before_the_origin_are_in_the_first_bucket(seconds: list[float], chart: list[int]) -> None:
    """Jepsen writes -1 if it does not know the time."""
    ends = (int(at * SECOND) for at in seconds)
    assert per_bucket(line(*(acked(at, at) for at in ends), bin_ns=SECOND), SECOND) == (SECOND, chart)


def test_without_a_send_the_chart_is_empty() -> None:
    assert per_bucket(together(folded([]), {}), SECOND)[1] == []
    assert stretches(together(folded([]), {})).longest() is None


def test_bins_are_10_ms_unless_there_would_be_too_many() -> None:
    assert resolution(90 * SECOND, 1, Limits()) == 10_000_000
    assert resolution(3600 * SECOND, 100, Limits()) == 18 * SECOND


def test_bins_are_finer_than_the_limits_unless_there_would_be_far_too_many() -> None:
    ten_hours = 36_000 * SECOND
    assert resolution(ten_hours, 12, Limits(unavailable="10s")) == 2_500_000_000
    assert resolution(ten_hours, 12, Limits(unavailable="10s", recovery="1s")) == SECOND // 4
    assert resolution(ten_hours, 12, Limits(unavailable="10ms")) == 216_000_000
    assert resolution(ten_hours, 12, Limits(unavailable="500s")) == resolution(ten_hours, 12, Limits())


@pytest.mark.heavy
def test_availability_of_a_history(spark: SparkSession, tmp_path: Path) -> None:
    history = by_hand(
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
    write(tmp_path, [history])
    service = availability(History.read(tmp_path, spark))
    assert service["resolution_ns"] == 10_000_000
    assert service["longest_unavailable"] == stretch(2, 8, ended=True)
    assert [part["longest_unavailable"] for part in service["partitions"]] == [
        stretch(2, 8, ended=True),
        stretch(1, 2, ended=True),
    ]
    assert not any("at_most_ns" in part for part in service["partitions"])
    assert service["after_faults"] == [
        after("cut", 0, SECOND // 2, stretch(7.5, 8, ended=True)),
        after("late", None, None, None),
    ]
    assert [part["after_faults"] for part in service["partitions"]] == [
        [after("cut", 5 * SECOND + SECOND, SECOND // 2, stretch(7.5, 8, ended=True)), after("late", None, None, None)],
        [after("cut", 0, None, stretch(9, 9, ended=False)), after("late", None, None, None)],
    ]
    assert (service["bucket_ns"], service["acknowledged"]) == (SECOND, [0, 1, 1, 0, 0, 0, 0, 0, 1, 0])


@pytest.mark.heavy
def test_the_longest_possible_stretch_is_reported_if_the_order_in_a_bin_is_unknown(
    spark: SparkSession, tmp_path: Path
) -> None:
    history = by_hand(
        "send a ok @0 t1..2", "send b fail t1..2.001", "send c ok @1 t7..8", "fault cut b1 1..1.5", "end 0..2"
    )
    write(tmp_path, [history])
    service = availability(History.read(tmp_path, spark))
    # The time of b within its bin is not kept: 1 ms of 10 ms.
    assert service["longest_unavailable"] == stretch(2.001, 8, ended=True)
    assert service["partitions"][0]["at_most_ns"] == 6 * SECOND
    assert service["after_faults"][0]["at_most_after_heal_ns"] == 6 * SECOND


@pytest.mark.heavy
def test_a_write_without_an_end_is_awaited_until_its_worker_is_there_again_or_by_its_last_word(
    spark: SparkSession, tmp_path: Path
) -> None:
    history = by_hand(
        # Nobody is there from 3 to 60.
        *("send a ok @0 t1..2", "send b info t2.5..", "send c ok @0 p9 t2..3", "send d ok @1 w1 t60..61"),
        # The worker is there again at 40: until then it was not known to it.
        *("send e ok @0 p1 w2 t1..2", "send f info p1 w2 t3..", "send g ok @1 p1 w2 i2 t40..41"),
        # Another incarnation before is none that comes after; its own last word is in another partition.
        *("send h ok @0 p2 w3 i1 t1..2", "send i info p2 w3 i1 t5..", "send j ok @1 p9 w3 i1 t6..20"),
        *("send k ok @1 p2 w3 t50..51", "send l info p3 w3 t52.."),
    )
    write(tmp_path, [history])
    service = availability(History.read(tmp_path, spark))
    gone = {part["partition"]: part["longest_unavailable"] for part in service["partitions"]}
    assert gone == {
        0: stretch(1, 2, ended=True),
        1: stretch(3, 41, ended=True),
        2: stretch(5, 20, ended=False),
        3: stretch(52, 52, ended=False),
        9: stretch(6, 20, ended=True),
    }


@pytest.mark.heavy
@pytest.mark.parametrize("number", [1, 2, 3, 7, 8, 300])
def test_bins_begin_anew_with_each_instant_however_many_there_are(
    number: int, spark: SparkSession, tmp_path: Path
) -> None:
    random = Random(number)
    instants = sorted(random.sample(range(2000), number))
    writes = [
        acked(0, at, at % 2) for at in sorted({*random.sample(range(2000), 50), *instants, instants[0] - 1} - {-1})
    ]
    history = by_hand(*(f"send r{n} ok @{n} p{one.partition} t0..9" for n, one in enumerate(writes)))
    for row, one in zip(history.rows["sends"], writes, strict=True):
        row["completed_ns"] = one.end
    write(tmp_path, [history])
    found = bins(History.read(tmp_path, spark).records("sends"), 500, instants)
    order = [(name, "ascending") for name in ("partition", "bin", "era")]
    wanted = folded(writes, 500, instants).drop_columns("topic").sort_by(order)
    assert found.drop_columns("topic").sort_by(order).to_pylist() == wanted.to_pylist()


@pytest.mark.long
def test_a_soak_of_ten_thousand_faults_is_judged(spark: SparkSession, tmp_path: Path) -> None:
    number = 10_000
    sends = [f"send a{n} ok @{n} t{n}..{n + 0.4}" for n in range(0, number, 50)]
    late = "send late ok @5001 w1 t5000.1..5012.5"
    finals = [f"final a{n} @{n}" for n in range(0, number, 50)]
    history = by_hand(
        *sends, late, *finals, "final late @5001", f"end 0..{number}", "saw b1 @1 leader=1 epoch=0 isr=1,2,3"
    )
    history.add(f"fault f{n} b1 {n + 0.1}..{n + 0.2}" for n in range(number))
    write(tmp_path, [history], limits=Limits(recovery=0.7, unavailable=20))
    verdict = judge(tmp_path, spark)
    assert (verdict.verdict, verdict.anomalies.keys()) == (Judgement.INVALID, {"slow_recovery"})
    # From one heal to the next injection 0.9 s pass: until 5012 the late one is awaited, and from 5000.4 on alone.
    assert verdict.anomalies["slow_recovery"].count == 12 - 1
    reported = verdict.availability["after_faults"]
    assert len(reported) == number
    assert reported[50]["first_ack_after_injection_ns"] == reported[50]["first_ack_after_heal_ns"] + SECOND // 10


@pytest.mark.heavy
def test_a_transaction_that_is_aborted_is_no_unavailability(spark: SparkSession, tmp_path: Path) -> None:
    sends = [f"send a{n} ok @{n} x1 t{n}..{n + 1}" for n in range(8)]
    write(tmp_path, [by_hand("txn 1 abort ok 0..8..9", *sends, "end 0..0")], isolation_level="read_committed")
    history = History.read(tmp_path, spark)
    service = availability(history)
    assert service["longest_unavailable"] == stretch(0, 1, ended=True)
    assert sum(service["acknowledged"]) == 8
    assert committed(history, writes_of(history)) == {}


@pytest.mark.heavy
@pytest.mark.parametrize(("level", "number"), [("read_committed", 2), ("read_uncommitted", 3)])
def test_aborted_writes_do_not_count_as_acknowledged_with_read_committed(
    level: str, number: int, spark: SparkSession, tmp_path: Path
) -> None:
    transactions = ("txn 1 commit ok 0..3..4", "txn 2 abort ok 5..8..9")
    sends = ("send a ok @0 x1 t1..2", "send b ok @1 t2..3", "send c ok @2 x2 t6..7")
    write(tmp_path, [by_hand(*transactions, *sends, "end 0..5")], isolation_level=level)
    history = History.read(tmp_path, spark)
    [own] = committed(history, writes_of(history)).values()
    assert own.acknowledged.sum() == number
    assert own.last_ack_ns == (3 if number == 2 else 7) * SECOND


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
