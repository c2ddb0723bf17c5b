"""All anomalies of one cause are one finding; no record is left out of the findings, or reported twice."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.evidence.causes import MOST_RANGES
from checkers.evidence.decision import Decision, LossEvent
from checkers.evidence.record_ranges import RecordRange
from checkers.findings import MOST_UNKNOWN, Observed, Records, findings, grouped
from checkers.leadership import LeaderTerm, Span
from harness.core.anomalies import BY_NAME
from harness.core.guarantees import Ruling
from harness.core.verdict import CauseOf, Finding, FoundAnomaly, Standing
from tests.checkers.notation import SECOND

CUT = {"injection": "cut", "injecting_ns": 5 * SECOND, "healed_ns": 90 * SECOND, "effective": True}
NAMES = {1: "b1", 2: "b2", 3: "b3"}


def ruling(standing: Standing, because: str = "because") -> Ruling:
    return Ruling(standing, because, "source", "remedy" if standing is Standing.PERMITTED else None)


def elected(at: float, leader: int = 1, term: int = 1, standing: Standing = Standing.PERMITTED) -> Decision:
    """Taken by an election: b3 must have had it."""
    event = LossEvent(int(at * SECOND), term, leader, term, in_isr=False)
    return Decision(ruling(standing), frozenset({3}), frozenset(), frozenset({1, 2}), event, 0)


def wiped(at: float) -> Decision:
    return Decision(ruling(Standing.PERMITTED), frozenset({1, 2, 3}), event=LossEvent(int(at * SECOND)))


UNTAKEN = Decision(ruling(Standing.VIOLATION), frozenset({1, 2, 3}))
UNSURE = Decision(ruling(Standing.UNDECIDED, "nobody reported who led"), frozenset(), frozenset({1, 2, 3}))


def part(
    first: int | None, last: int | None, decision: Decision | None, partition: int = 0, **more: Any
) -> RecordRange:
    count = 1 if first is None or last is None else last - first + 1
    at = [7 * SECOND, 8 * SECOND]
    whole = RecordRange("trial", partition, 1, first, last, None, count, count, *at, decision=decision)
    return replace(whole, **more)


def observed(faults: Sequence[Mapping[str, Any]] = (CUT,)) -> Observed:
    terms = [LeaderTerm(3, 0, 0), *(LeaderTerm(1, n, (19 + n) * SECOND) for n in range(1, 5))]
    led = {("trial", n): terms for n in range(4)}
    spans = [Span("b3", "trial", n, 0, 9 * SECOND, 3, 0, (3,)) for n in range(4)]
    return Observed(led, spans, faults, NAMES)


def anomaly(ranges: Sequence[RecordRange], standing: Standing = Standing.PERMITTED, **more: Any) -> FoundAnomaly:
    count = more.pop("count", sum(one.count for one in ranges))
    return FoundAnomaly(count=count, standing=standing, because="of the run", source="source", **more)


def made(found: Mapping[str, Sequence[RecordRange]], faults: Sequence[Mapping[str, Any]] = (CUT,)) -> list[Finding]:
    return findings({name: anomaly(ranges) for name, ranges in found.items()}, found, observed(faults))


@pytest.mark.parametrize("in_isr", [None, False, True])
def test_whether_the_leader_was_in_the_isr_is_as_the_decision_knows_it(in_isr: bool | None) -> None:
    """Only b3's own report, of an ISR without b1, was seen here."""
    took = elected(20)
    assert took.event is not None
    [one] = made({"lost": [part(10, 29, replace(took, event=replace(took.event, in_isr=in_isr)))]})
    assert one.cause["in_isr"] is in_isr
    assert [each["in_isr"] for each in one.cause["elections"]] == [in_isr]
    assert [run["elected"]["in_isr"] for run in one.runs] == [in_isr]


def test_all_anomalies_of_one_election_are_one_finding() -> None:
    took = elected(20)
    [one] = made(
        {
            "lost": [part(10, 29, took)],
            "vanished": [part(10, 19, took), part(25, 29, took)],
            "rewritten_offset": [part(12, 28, took)],
        }
    )
    assert one.anomalies == {"lost": 20, "vanished": 15, "rewritten_offset": 17}
    assert (one.first, one.standing, one.because, one.remedy) == ("lost", "permitted", "because", "remedy")
    assert one.cause == {
        "event": "election",
        "from_ns": 20 * SECOND,
        "to_ns": 20 * SECOND,
        "faults": ["cut"],
        "leaders": ["b1"],
        "in_isr": False,
        "partitions": 1,
        "elections": [
            {
                "topic": "trial",
                "partition": 0,
                "leader": 1,
                "name": "b1",
                "leader_epoch": 1,
                "at_ns": 20 * SECOND,
                "in_isr": False,
            }
        ],
    }
    assert {key: one.evidence[key] for key in ("must", "need_not", "unknown")} == {
        "must": ["b3"],
        "need_not": ["b1", "b2"],
        "unknown": [],
    }
    assert one.evidence["taken_by"]["name"] == "b1"
    [run] = one.runs
    assert (run["first_offset"], run["last_offset"], run["count"]) == (10, 29, 20)
    assert run["anomalies"] == one.anomalies
    assert one.more_runs == 0


def places(found: Sequence[Finding]) -> list[list[int]]:
    return [sorted({run["partition"] for run in one.runs}) for one in found]


@pytest.mark.parametrize(
    ("decisions", "faults", "apart"),
    [
        ([elected(20), elected(20.4), elected(21)], [CUT], [[0, 1, 2]]),
        ([elected(20), elected(20.4, leader=2)], [CUT], [[0, 1]]),
        ([elected(20), elected(50)], [CUT], [[0], [1]]),
        ([elected(20), elected(20.4)], [], [[0, 1]]),
        ([elected(20), elected(20.4, leader=2)], [], [[0], [1]]),
        ([elected(89), elected(91)], [CUT], [[0], [1]]),
        ([wiped(20), wiped(20)], [CUT], [[0, 1]]),
        ([wiped(20), elected(20)], [CUT], [[0], [1]]),
        ([UNTAKEN, UNTAKEN], [CUT], [[0], [1]]),
        ([UNSURE, UNSURE], [CUT], [[0], [1]]),
    ],
    ids=[
        "one broker, three partitions",
        "one fault, two brokers elected",
        "one fault, long after",
        "no fault, one broker",
        "no fault, two brokers",
        "the fault was healed in between",
        "disks lost together",
        "a disk lost and an election",
        "nothing took either",
        "nobody knows of either",
    ],
)
def test_partitions_share_a_finding_where_one_event_took_both(
    decisions: list[Decision], faults: list[dict[str, Any]], apart: list[list[int]]
) -> None:
    ranges = [part(0, 9, decision, partition) for partition, decision in enumerate(decisions)]
    assert sorted(places(made({"lost": ranges}, faults))) == apart


def test_lost_disks_are_reported_with_the_faults_that_wiped_them() -> None:
    rows = [
        {"injection": "slow", "injecting_ns": 5 * SECOND, "healed_ns": 40 * SECOND, "effective": True},
        {"injection": "wipe1", "injecting_ns": 10 * SECOND, "healed_ns": 15 * SECOND, "effective": True},
        {"injection": "wipe2", "injecting_ns": 20 * SECOND, "healed_ns": 30 * SECOND, "effective": True},
    ]
    event = LossEvent(30 * SECOND, wipes=("wipe1", "wipe2"))
    [one] = made({"lost": [part(0, 9, replace(wiped(30), event=event))]}, rows)
    assert one.cause == {
        "event": CauseOf.DISKS_LOST,
        "from_ns": 10 * SECOND,
        "to_ns": 30 * SECOND,
        "faults": ["wipe1", "wipe2"],
    }


def test_one_loss_of_disks_is_one_finding_with_all_their_wipes() -> None:
    rows = [{"injection": f"wipe{n}", "injecting_ns": n * SECOND, "healed_ns": None, "effective": True} for n in (1, 2)]
    events = [LossEvent(2 * SECOND, wipes=wipes) for wipes in (("wipe1", "wipe2"), ("wipe2",))]
    parts = [part(n * 10, n * 10 + 9, replace(wiped(2), event=event)) for n, event in enumerate(events)]
    [one] = made({"lost": parts}, rows)
    assert (one.anomalies, one.cause["faults"]) == ({"lost": 20}, ["wipe1", "wipe2"])


def test_two_elections_of_one_partition_are_two_events_however_soon() -> None:
    found = made({"lost": [part(0, 9, elected(20)), part(20, 29, elected(21, leader=2, term=2))]})
    assert [one.anomalies for one in found] == [{"lost": 10}, {"lost": 10}]
    assert [one.cause["from_ns"] for one in found] == [20 * SECOND, 21 * SECOND]


def test_a_hole_is_a_finding_of_its_own_and_comes_first() -> None:
    hole = part(3, 7, UNTAKEN, hole=True)
    found = made({"lost": [hole, part(20, 99, elected(20))], "vanished": [hole, part(20, 99, elected(20))]})
    assert [(one.standing, one.anomalies) for one in found] == [
        ("violation", {"lost": 5, "vanished": 5}),
        ("permitted", {"lost": 80, "vanished": 80}),
    ]
    assert found[0].cause == {"event": "nothing", "hole": True}
    assert [run["hole"] for run in found[0].runs] == [True]


def test_a_place_of_which_nobody_knows_is_a_finding_of_its_own() -> None:
    found = made({"lost": [part(0, 9, UNSURE), part(200, 219, UNSURE)], "vanished": [part(205, 230, UNSURE)]})
    assert [one.anomalies for one in found] == [{"lost": 20, "vanished": 26}, {"lost": 10}]
    assert [one.cause for one in found] == [{"event": "unknown", "hole": False}] * 2


def test_the_standing_of_a_finding_is_the_worst_of_its_parts_and_says_of_how_many() -> None:
    accused = elected(20, standing=Standing.VIOLATION)
    [one] = made({"lost": [part(0, 9, elected(20)), part(100, 104, accused)]})
    assert (one.standing, one.because, one.anomalies) == ("violation", "5 of them: because", {"lost": 15})
    assert {run["first_offset"]: run["standing"] for run in one.runs} == {0: "permitted", 100: "violation"}
    [other] = made({"lost": [part(0, 9, elected(20))], "vanished": [part(5, 9, accused)]})
    assert (other.standing, other.because) == ("violation", "5 vanished: because")
    assert [run["standing"] for run in other.runs] == ["violation"]


def test_an_anomaly_that_no_record_decides_is_a_finding_of_its_own() -> None:
    runs = [{"topic": "trial", "partition": 0, "count": 2}]
    reported = anomaly([], count=2, runs=runs)
    limit = anomaly([], Standing.VIOLATION, count=1)
    found = findings({"duplicated": reported, "unavailability": limit}, {"duplicated": [part(0, 1, None)]}, observed())
    assert [(one.first, one.cause["event"], one.because) for one in found] == [
        ("unavailability", CauseOf.LIMIT, "of the run"),
        ("duplicated", CauseOf.RUN, "of the run"),
    ]
    assert found[1].runs == [{"standing": "permitted", **runs[0], "anomalies": {"duplicated": 2}}]


def test_of_very_many_runs_some_are_reported_and_all_are_counted() -> None:
    [one] = made({"lost": [part(n * 100, n * 100 + n, elected(20)) for n in range(MOST_RANGES + 5)]})
    assert (len(one.runs), one.more_runs) == (MOST_RANGES, 5)
    assert one.anomalies == {"lost": sum(n + 1 for n in range(MOST_RANGES + 5))}
    assert one.runs[0]["count"] == MOST_RANGES + 5


def test_the_run_that_breaks_a_promise_is_shown_before_bigger_ones_that_are_permitted() -> None:
    broken = replace(elected(20, standing=Standing.VIOLATION), must=frozenset({1, 3}))
    small = part(9_000, 9_000, broken)
    [one] = made({"lost": [*(part(n * 100, n * 100 + n, elected(20)) for n in range(MOST_RANGES + 5)), small]})
    assert one.standing is Standing.VIOLATION
    assert [run["standing"] for run in one.runs][:2] == [Standing.VIOLATION, Standing.PERMITTED]
    assert one.runs[0]["first_offset"] == 9_000
    assert one.evidence


def test_of_very_many_places_without_a_known_cause_the_smallest_are_reported_as_one() -> None:
    found = made({"lost": [part(n * 100, n * 100 + n, UNSURE) for n in range(MOST_UNKNOWN + 3)]})
    assert len(found) == MOST_UNKNOWN + 1
    assert {"lost": 1 + 2 + 3} in [one.anomalies for one in found]


LOSSES = sorted(name for name, one in BY_NAME.items() if one.judged_by_record)
DECISIONS = st.one_of(
    st.sampled_from([UNTAKEN, UNSURE]),
    st.builds(wiped, st.integers(10, 60)),
    st.builds(elected, st.integers(10, 60), st.integers(1, 3), st.integers(1, 4), st.sampled_from(Standing)),
)


@st.composite
def parts(draw: st.DrawFn) -> RecordRange:
    first = draw(st.none() | st.integers(0, 60))
    last = None if first is None else first + draw(st.integers(0, 20))
    return part(first, last, draw(DECISIONS), draw(st.integers(0, 3)), hole=draw(st.booleans()))


@given(
    st.dictionaries(st.sampled_from(LOSSES), st.lists(parts(), min_size=1, max_size=30), max_size=4),
    st.dictionaries(st.sampled_from(["duplicated", "skipped", "unavailability"]), st.integers(1, 99)),
)
def test_every_record_of_every_anomaly_is_of_one_finding(
    losses: dict[str, list[RecordRange]], others: dict[str, int]
) -> None:
    reported = {name: anomaly(ranges) for name, ranges in losses.items()}
    reported |= {name: anomaly([], Standing.UNDECIDED, count=count) for name, count in others.items()}
    found = findings(reported, losses, observed())
    counted: Counter[str] = Counter()
    for one in found:
        counted.update(one.anomalies)
    assert counted == {name: one.count for name, one in reported.items()}
    groups = grouped([Records(name, one) for name, ranges in losses.items() for one in ranges], [CUT])
    assert sorted(id(one.range) for group in groups for one in group) == sorted(
        id(one) for ranges in losses.values() for one in ranges
    )
    order = [Standing.VIOLATION, Standing.UNDECIDED, Standing.PERMITTED]
    assert [order.index(one.standing) for one in found] == sorted(order.index(one.standing) for one in found)
    for one in found:
        shown: Counter[str] = Counter()
        for run in one.runs:
            shown.update(run["anomalies"])
        whole = not one.more_runs and one.cause["event"] not in {CauseOf.RUN, CauseOf.LIMIT}
        assert (shown == one.anomalies) if whole else all(shown[name] <= n for name, n in one.anomalies.items())


@given(st.lists(parts(), min_size=1, max_size=30))
def test_the_records_of_one_finding_have_one_event_in_each_partition(ranges: list[RecordRange]) -> None:
    for group in grouped([Records("lost", one) for one in ranges], [CUT]):
        events = {(one.range.of, one.event) for one in group}
        assert len({of for of, _ in events}) == len(events)
        assert len({None if event is None else event.leader is None for _, event in events}) == 1
