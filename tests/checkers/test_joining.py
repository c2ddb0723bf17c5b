"""Which brokers joined the ISR after a record was written, and so must or may have it; and which need not."""

from typing import Any

import pytest

from harness.core.anomalies import VANISHED
from harness.core.verdict import Standing
from tests.checkers.test_holders import ALONE, PERMITTED, UNCLEAN, UNDECIDED, VIOLATION, decided, saw

ZOOKEEPER_2_6: dict[str, Any] = {"version": "2.6.0", "metadata": "zookeeper"}
ZOOKEEPER_2_7: dict[str, Any] = {"version": "2.7.0", "metadata": "zookeeper"}


@pytest.mark.parametrize(
    ("version", "high", "standing"),
    [("1.0.2", "", UNDECIDED), ("2.0.0", "", UNDECIDED), ("2.0.1", "", VIOLATION), ("1.0.2", "high=6", VIOLATION)],
)
def test_since_2_0_1_a_broker_that_joins_a_later_term_has_all_records_from_before_it(
    version: str, high: str, standing: Standing
) -> None:
    """b2 leads while b1 is down, then b1 again; b3 joins its ISR, and is elected. (ISRs are reported a minute late.)"""
    lines = [
        *[
            *saw("b1,b2,b3", "0..70", 1, 0, "1,2,3"),
            *saw("b1", "71..160", 1, 0, "1"),
            *saw("b3", "71..165", 1, 0, "1"),
            "fault k0 b2 70.5..165.5 kind=kill",
        ],
        *["fault k b1 160..200 kind=kill", *saw("b2,b3", "166..190", 2, 1, "2"), "fault k2 b2 190..400 kind=kill"],
        *[*saw("b3", "191..199", -1, 1, "2"), *saw("b1,b3", "200..280", 1, 2, "1", high)],
        *[
            *saw("b1,b3", "281..283", 1, 2, "1,3"),
            "fault k3 b1 283.5..700 kind=kill",
            *saw("b3", "290..500", 3, 3, "3"),
        ],
        *["final a @4 e0", "final b @5 e3", "send late ok @6 t455..456", "final late @6 e3", "end 0..7"],
    ]
    found = decided("send r ok @5 t80..81", *lines, **ALONE, version=version, metadata="zookeeper")
    assert found.standing is standing


def led_again(*second_term: str, before: str = "1,2,3", wiped: bool = False, **settings: Any) -> Standing:
    """b1 acknowledges r with acks=1, leads again with these reports of its second term, and dies; b2 follows it, and
    lacks r."""
    return decided(
        "send r ok @5 t8..8.1",
        *[*saw("b1,b2,b3", "0..11", 1, 0, before), "fault k3 b3 11.5..190 kind=kill", *second_term],
        *["fault k1 b1 60..90 kind=kill", *(["fault w b1 61..62 kind=wipe"] if wiped else [])],
        *[*saw("b2", "66..160", 2, 2, "2"), "final a @4 e0", "final b @5 e2", "send late ok @6 t155..156", "end 0..7"],
        **(ALONE | settings),
    ).standing


IN_FROM_ITS_BEGINNING = saw("b1,b2", "12..59", 1, 1, "1,2")


@pytest.mark.parametrize("unclean", [False, True])
@pytest.mark.parametrize("wiped", [False, True])
@pytest.mark.parametrize(
    ("isr", "joined"), [("1,2", "30..59"), ("1", "30..59"), ("1", "59.5..59.9")], ids=["again", "late", "at last"]
)
def test_a_broker_that_joins_in_the_second_term_of_its_leader_has_records_of_the_first(
    isr: str, joined: str, wiped: bool, unclean: bool
) -> None:
    """KAFKA-7128: the leader takes it into the ISR when it has reached the beginning of the second term."""
    led = [*saw("b1,b2", "12..19", 1, 1, isr), *saw("b1,b2", "20..29", 1, 1, "1"), *saw("b1,b2", joined, 1, 1, "1,2")]
    assert led_again(*led, wiped=wiped, unclean_election=unclean) is VIOLATION


@pytest.mark.parametrize(("wiped", "standing"), [(False, PERMITTED), (True, UNDECIDED)])
def test_a_broker_that_stays_in_the_isr_when_its_leader_leads_again_may_lack_the_record(
    wiped: bool, standing: Standing
) -> None:
    """With acks=1 b2 may still lack r; and it may have rejoined between two reports."""
    assert led_again(*IN_FROM_ITS_BEGINNING, wiped=wiped) is standing


@pytest.mark.parametrize("wiped", [False, True])
@pytest.mark.parametrize(
    ("led", "before", "version"),
    [
        (IN_FROM_ITS_BEGINNING, "1,3", "4.3.1"),
        ([*saw("b1,b2", "12..19", 1, 1, "1,2"), *saw("b1,b2", "50..59", 1, 1, "1,2")], "1,2,3", "4.3.1"),
        ([*saw("b1,b2", "12..29", 1, 1, "1"), *saw("b1,b2", "30..59", 1, 1, "1,2")], "1,2,3", "2.0.0"),
    ],
    ids=["before the first report", "in a silence", "before KAFKA-7128"],
)
def test_a_broker_that_may_have_joined_in_the_second_term_of_its_leader_may_have_the_record(
    led: list[str], before: str, version: str, wiped: bool
) -> None:
    settings = {"version": version, **({"metadata": "zookeeper"} if version < "3" else {})}
    assert led_again(*led, before=before, wiped=wiped, **settings) is UNDECIDED


@pytest.mark.parametrize(
    ("killed", "standing"),
    [("9..9.5", PERMITTED), ("10..10.8", UNDECIDED), ("30..31", UNDECIDED), ("61..63", PERMITTED)],
    ids=["well before", "just before", "in the second term", "after it"],
)
def test_a_restarted_broker_may_have_joined_in_the_second_term_of_its_leader(killed: str, standing: Standing) -> None:
    led = [*saw("b1", "12..28", 1, 1, "1,2"), *saw("b2", "12..29", 1, 1, "1,2"), *saw("b2", "31.5..59", 1, 1, "1,2")]
    assert led_again(*led, f"fault k2 b2 {killed} kind=kill") is standing


def test_a_restarted_broker_that_was_in_no_later_isr_did_not_join() -> None:
    led = [*saw("b1,b2", "12..29", 1, 1, "1,2"), *saw("b1", "30..59", 1, 1, "1"), *saw("b2", "30..44", 1, 1, "1")]
    led += [*saw("b2", "48..59", 1, 1, "1"), "fault k2 b2 45..47 kind=kill"]
    assert led_again(*led, unclean_election=True) is PERMITTED


@pytest.mark.parametrize(
    ("killed", "wiped", "standing"),
    [
        ("19..22", "20..21", VIOLATION),
        ("28.3..29.5", "27.2..27.8", VIOLATION),
        ("28.3..29.5", "28.5..28.8", UNDECIDED),
        ("45..47", "45.5..46", UNDECIDED),
        ("58.2..59.5", "58.5..58.7", PERMITTED),
    ],
    ids=["long before", "before", "perhaps since", "since", "at last"],
)
def test_a_wiped_broker_has_the_record_if_one_observer_reports_that_it_joined_later(
    killed: str, wiped: str, standing: Standing
) -> None:
    """b1 reports its ISR all the time. (b2 reports the ISR with it, too, and had reported another long before.)"""
    led = [*saw("b1", "12..29", 1, 1, "1"), *saw("b2", "12..18", 1, 1, "1"), *saw("b1,b2", "30..59", 1, 1, "1,2")]
    assert led_again(*led, f"fault k2 b2 {killed} kind=kill", f"fault w2 b2 {wiped} kind=wipe") is standing


#: b1 leads again, for less than a second, and dies; b2 follows it.
SHORT = [
    *[
        *saw("b1,b2,b3", "0..11", 1, 0, "1,2,3"),
        *saw("b1,b2", "12.4..12.8", 1, 1, "1,2"),
        *saw("b2", "13..60", 2, 2, "2"),
    ],
    *["fault k3 b3 11.5..190 kind=kill", "fault k1 b1 12.8..90 kind=kill", "send r ok @5 t8..8.1"],
    *["final a @4 e0", "final b @5 e2", "send late ok @6 t50..51", "end 0..7"],
]


@pytest.mark.parametrize(
    ("isr", "acks", "standing"), [("1", "1", VIOLATION), ("1,2", "1", PERMITTED), ("1", "all", VIOLATION)]
)
def test_a_broker_that_joins_in_a_term_below_one_second_has_earlier_records(
    isr: str, acks: str, standing: Standing
) -> None:
    """Reports of one observer on a term may be old, but they are in order."""
    found = decided(*SHORT, *saw("b1,b2", "12..12.2", 1, 1, isr), acks=acks, unclean_election=acks == "all")
    assert found.standing is standing


def test_a_broker_that_joins_the_isr_of_a_leader_without_the_record_lacks_it() -> None:
    led = [*saw("b1,b2,b3", "0..11", 1, 0, "1,2,3"), *saw("b2,b3", "12..12.2", 3, 1, "3")]
    led += [*saw("b2,b3", "12.4..12.8", 3, 1, "2,3"), *saw("b2", "13..60", 2, 2, "2")]
    faults = ["fault k1 b1 11.5..190 kind=kill", "fault k3 b3 12.8..90 kind=kill"]
    log = ["final a @4 e0", "final b @5 e2", "send late ok @6 t50..51", "end 0..7"]
    assert decided("send r ok @5 t8..8.1", *led, *faults, *log, **ALONE).standing is PERMITTED


def test_a_broker_that_was_reported_late_to_join_the_isr_may_have_joined_it_before_a_write_or_after() -> None:
    """A controller of Kafka 2.6 may hear of an ISR a minute later."""
    led = [*saw("b1,b2", "0..8", 1, 0, "1"), *saw("b1,b2", "9..40", 1, 0, "1,2"), *saw("b2", "46..160", 2, 1, "2")]
    log = ["final a @4 e0", "final b @5 e1", "send late ok @6 t150..151", "end 0..7"]
    settings = {**ALONE, "version": "2.6.0", "metadata": "zookeeper"}
    found = decided("send r ok @5 t7..7.9", *led, "fault k1 b1 40.5..190 kind=kill", *log, **settings)
    assert found.standing is UNDECIDED


def test_a_broker_that_joins_the_isr_in_the_term_of_a_write_need_not_have_it() -> None:
    led = [*saw("b1", "0..11", 1, 0, "1"), *saw("b1,b2", "12..59", 1, 0, "1,2")]
    log = ["final a @4 e0", "final b @5 e1", "send late ok @6 t155..156", "end 0..7"]
    faults = ["fault k1 b1 60..90 kind=kill", *saw("b2", "66..160", 2, 1, "2")]
    assert decided("send r ok @5 t8..8.1", *led, *faults, *log, **ALONE).standing is PERMITTED


@pytest.mark.parametrize("wiped", [False, True])
@pytest.mark.parametrize("before", ["1,3", "1,2,3"])
@pytest.mark.parametrize(
    ("out", "joined"), [("12..18.7", "19.7..24.5"), ("12..20", "21..24")], ids=["beside the leader", "after it"]
)
def test_a_join_counts_though_only_the_joining_broker_reports_it(
    out: str, joined: str, before: str, wiped: bool
) -> None:
    """b1 leads again, reports until 20 s that it is alone in the ISR, and dies; b2 reports that it joined."""
    lines = [
        *["send r ok @5 t8..8.1", *saw("b1,b2,b3", "0..11", 1, 0, before), "fault k3 b3 11.5..190 kind=kill"],
        *[*saw("b1", "12..20", 1, 1, "1"), *saw("b2", out, 1, 1, "1"), *saw("b2", joined, 1, 1, "1,2")],
        *["fault k1 b1 20.7..90 kind=kill", *(["fault w b1 25..25.5 kind=wipe"] if wiped else [])],
        *[*saw("b2", "26..160", 2, 2, "2"), "final a @4 e0", "final b @5 e2", "send late ok @6 t155..156", "end 0..7"],
    ]
    assert decided(*lines, **ALONE).standing is VIOLATION


def alone_then_joined(*led: str, killed: float, **settings: Any) -> Standing:
    """b1 acknowledges r with acks=all when it is alone in the ISR. b2 joins it; b1 dies; b2 leads, and dies; b3,
    outside of the ISR, is elected. So it is permitted."""
    lines = [
        *["send r ok @5 t10..10.1", *saw("b1,b2,b3", "0..4", 1, 0, "1,2,3"), *led],
        "fault c2 b1,b2 2..12 from=b1 to=b2 plane=replication",
        *[f"fault c{n} b{n},b3 2..60 from=b{n} to=b3 plane=replication" for n in (1, 2)],
        *[f"fault k1 b1 {killed}..90 kind=kill", "fault k2 b2 50.5..90 kind=kill", *saw("b3", "57..150", 3, 2, "3")],
        *["final a @4 e0", "final b @5 e2", "send late ok @6 t140..141", "final late @6 e2", "end 0..7"],
    ]
    return decided(*lines, acks="all", **(UNCLEAN | settings)).standing


@pytest.mark.parametrize("joined", [19.7, 20.3])
def test_a_broker_that_others_reported_in_the_isr_of_a_dead_leader_has_committed_records(joined: float) -> None:
    """Whether or not the leader could still report that."""
    led = [*saw("b1", "5..20", 1, 0, "1"), *saw("b2,b3", "5..18.7", 1, 0, "1")]
    led += [
        *saw("b2,b3", f"{joined}..25.7", 1, 0, "1,2"),
        *saw("b2", "27..50", 2, 1, "2"),
        *saw("b3", "27..56", 2, 1, "2"),
    ]
    assert alone_then_joined(*led, killed=20.1) is PERMITTED


@pytest.mark.parametrize(("version", "standing"), [(ZOOKEEPER_2_6, UNDECIDED), (ZOOKEEPER_2_7, PERMITTED)])
def test_a_broker_that_joins_sooner_than_isrs_are_reported_may_have_what_was_committed(
    version: dict[str, Any], standing: Standing
) -> None:
    led = [*saw("b1,b2,b3", "5..14", 1, 0, "1"), *saw("b1,b2,b3", "15..30", 1, 0, "1,2")]
    led += [*saw("b2,b3", "31..36", 1, 0, "1,2"), *saw("b2", "37..50", 2, 1, "2"), *saw("b3", "37..56", 2, 1, "2")]
    assert alone_then_joined(*led, killed=30.1, **version) is standing


@pytest.mark.parametrize(
    ("version", "killed", "wiped"),
    [(ZOOKEEPER_2_6, 17.5, 6), (ZOOKEEPER_2_7, 17.5, 6), ({}, 17.5, 6), (ZOOKEEPER_2_7, 23.4, 22.6), ({}, 23.4, 22.6)],
)
def test_a_wiped_broker_that_is_elected_cleanly_has_rejoined_the_isr(
    version: dict[str, Any], killed: float, wiped: float
) -> None:
    """b3 comes back with an empty disk, joins the ISR while b1 leads, and is elected; alone in the ISR, it loses its
    disk again, and leads on: that is permitted. Nobody reported that it joined."""
    lines = [
        *["send r ok @0 t2..2.1", *saw("b1,b2", "0..10", 1, 0, "1,2,3"), *saw("b3", "0..4", 1, 0, "1,2,3")],
        *[f"fault k3 b3 4.5..{wiped} kind=kill", f"fault w3 b3 5..{wiped} kind=wipe"],
        *saw("b1,b2,b3", "11..17", 1, 1, "1,2"),
        *[f"fault k1 b1 {killed}..60 kind=kill", *saw("b2,b3", "18..23", 1, 1, "1,2")],
        *[*saw("b2,b3", "24..39", 3, 2, "2,3"), "fault k2 b2 39.5..90 kind=kill", *saw("b3", "40..45", 3, 2, "2,3")],
        *[*saw("b3", "46..56", 3, 3, "3"), "fault k4 b3 56.5..62 kind=kill", "fault w4 b3 57..58 kind=wipe"],
        *[*saw("b1", "61..62", -1, 4, "3"), *saw("b1,b3", "63..150", 3, 5, "3")],
        *["final a @0 e5", "send late ok @1 t140..141", "final late @1 e5", "end 0..2"],
    ]
    assert decided(*lines, acks="all", unclean_election=False, **version).standing is UNDECIDED


@pytest.mark.parametrize(
    ("led", "more", "standing"),
    [
        (saw("b1,b2", "45..59", 1, 1, "1,2"), ["fault k3 b3 11.5..190 kind=kill"], UNDECIDED),
        (saw("b1,b2,b3", "12.9..59", 1, 1, "1,2,3"), ["fault k2 b2 11.2..12 kind=kill"], UNDECIDED),
        (saw("b1,b2,b3", "12.9..59", 1, 1, "1,2,3"), ["fault k2 b2 3..4 kind=kill"], PERMITTED),
        (saw("b1,b2,b3", "12.9..59", 1, 1, "1,2,3"), ["fault k2 b3 11.2..12 kind=kill"], PERMITTED),
    ],
    ids=["in a silence", "restarted", "restarted long before", "another was restarted"],
)
def test_a_broker_may_have_rejoined_before_the_first_report_of_the_second_term(
    led: list[str], more: list[str], standing: Standing
) -> None:
    lines = ["send r ok @5 t8..8.1", *saw("b1,b2,b3", "0..11", 1, 0, "1,2,3"), *more, *led]
    lines += ["fault k1 b1 60..90 kind=kill", *saw("b2", "66..160", 2, 2, "2")]
    log = ["final a @4 e0", "final b @5 e2", "send late ok @6 t155..156", "end 0..7"]
    assert decided(*lines, *log, **ALONE).standing is standing


@pytest.mark.parametrize("high", ["", "high=5", "high=6"])
def test_without_epochs_what_its_leader_reports_when_it_leads_again_commits_nothing_of_before(high: str) -> None:
    """b1 alone has r; b3 is elected without it; then b1 leads again, and reports later commits."""
    lines = [
        *["send r ok @5 t5..5.1", *saw("b1,b2,b3", "0..11", 1, None, "1,2,3"), "fault k1 b1 11.5..20 kind=kill"],
        *["fault c b1,b2,b3 4..12 from=b1 to=b2,b3 plane=replication", *saw("b2,b3", "12..17", 1, None, "1,2,3")],
        *[*saw("b2,b3", "18..25", 3, None, "2,3"), *saw("b1", "21..25", 3, None, "2,3")],
        *[*saw("b1,b2,b3", "26..40", 3, None, "1,2,3"), "fault k3 b3 40.5..52 kind=kill"],
        *[*saw("b1,b2", "41..46", 3, None, "1,2,3"), *saw("b1,b2", "47..60", 1, None, "1,2", high)],
        *[*saw("b3", "53..60", 1, None, "1,2"), "final a @4", "final b @5", "send late ok @6 t55..56", "final late @6"],
    ]
    settings = {"acks": "1", "unclean_election": False, "version": "3.9.0", "metadata": "zookeeper"}
    assert decided(*lines, "end 0..7", **settings).standing is PERMITTED


#: At the end b2 leads, and has another write at r's offset.
LED_BY_B2 = ["final a @4 e0", "final b @5 e2", "send late ok @6 t155..156", "end 0..7"]
WITHOUT_B3 = [*saw("b1,b2,b3", "0..11", 1, 0, "1,2,3"), "fault k3 b3 11.5..190 kind=kill"]


def test_a_broker_wiped_before_the_record_was_known_to_be_committed_lacks_it() -> None:
    """b2 joins the ISR in b1's second term, and is wiped; a consumer gets r only later."""
    led = [*saw("b1,b2", "12..19", 1, 1, "1"), *saw("b1,b2", "20..24", 1, 1, "1,2"), *saw("b1", "25..59", 1, 1, "1")]
    led += [*saw("b2", "31..66", 1, 1, "1"), *saw("b2", "67..160", 2, 2, "2")]
    faults = ["fault k2 b2 24.5..30 kind=kill", "fault w2 b2 25..26 kind=wipe", "fault k1 b1 60..190 kind=kill"]
    lines = ["send r info @5 t8..", "live r @5 e0 t48", *WITHOUT_B3, *led, *faults, *LED_BY_B2]
    assert decided(*lines, anomaly=VANISHED, acks="1", unclean_election=True).standing is PERMITTED


@pytest.mark.parametrize("acks", ["all", "1"])
def test_a_slow_broker_may_report_a_join_from_before_a_wipe(acks: str) -> None:
    """b2 joins the ISR at 20 s, and is wiped; b3, which is slow, reports at 24 s that it joined."""
    led = [
        *saw("b1,b2", "12..19", 1, 1, "1,3"),
        *saw("b3", "14.4..23.4", 1, 1, "1,3"),
        *saw("b1", "20..20", 1, 1, "1,2,3"),
    ]
    led += [
        *saw("b1", "23.4..59", 1, 1, "1,3"),
        *saw("b2", "24..66", 1, 1, "1,3"),
        *saw("b3", "24.4..25.4", 1, 1, "1,2,3"),
    ]
    led += [
        *saw("b3", "27.4..59", 1, 1, "1,3"),
        *saw("b2", "67..160", 2, 2, "2"),
        "fault s b3 11..40 kind=slow plane=all",
    ]
    faults = ["fault k2 b2 20.5..23 kind=kill", "fault w2 b2 21..22 kind=wipe", "fault k1 b1,b3 60..190 kind=kill"]
    lines = ["send r ok @5 t8..8.1", *saw("b1,b2,b3", "0..11", 1, 0, "1,2,3"), *led, *faults, *LED_BY_B2]
    assert decided(*lines, acks=acks, unclean_election=True).standing is UNDECIDED


def test_before_2_0_1_who_joined_before_it_was_committed_may_lack_it() -> None:
    """b3 joins when it has all below the high watermark, which is below r, and is dropped; then b1 commits r alone."""
    cuts = [("1", "b1,b2 79..390", "b2"), ("2", "b1,b3 79..87", "b3"), ("3", "b1,b3 88.5..390", "b3")]
    led = [*saw("b1,b2,b3", "0..85", 1, 0, "1,2,3", "high=5 controller=1")]
    led += saw("b1,b2,b3", "86..93", 1, 1, "1,2", "controller=1")
    led += saw("b1,b2,b3", "94..103", 1, 1, "1,2,3", "high=5 controller=1")
    led += saw("b1,b2,b3", "104..199", 1, 1, "1", "high=6 controller=1")
    led += saw("b3", "206..360", 3, 2, "3", "controller=1")
    faults = [f"fault c{n} {when} from=b1 to={to} plane=replication" for n, when, to in cuts]
    faults += ["fault k3 b3 85.5..87 kind=kill", "fault k1 b1,b2 200..390 kind=kill"]
    log = [line.replace("t155..156", "t355..356") for line in LED_BY_B2]
    settings = {"version": "2.0.0", "metadata": "zookeeper", "acks": "1", "unclean_election": True}
    assert decided("send r ok @5 t80..80.1", *led, *faults, *log, **settings).standing is UNDECIDED


def test_without_epochs_what_a_leader_reports_in_its_next_term_commits_nothing_of_its_first() -> None:
    """b2 led in between, and wrote something else at the offset of r."""
    led = [*saw("b1", "0..11", 1, None, "1,2,3", "high=5"), *saw("b2,b3", "0..17", 1, None, "1,2,3")]
    led += ["fault k1 b1 11.5..20 kind=kill", *saw("b2,b3", "18..29", 2, None, "2,3")]
    led += [*saw("b1", "21..29", 2, None, "2,3"), *saw("b2", "30..40", 2, None, "1,2,3")]
    led += saw("b1,b3", "30..46", 2, None, "1,2,3")
    led += ["fault k2 b2 40.5..190 kind=kill", *saw("b1,b3", "47..160", 1, None, "1,3", "high=8")]
    log = ["final a @4", "final b @5", "send late ok @6 t155..156", "end 0..6"]
    settings = {"version": "1.0.2", "metadata": "zookeeper", **ALONE}
    assert decided("send r ok @5 t8..8.1", *led, *log, **settings).standing is PERMITTED


def test_without_epochs_a_high_watermark_may_be_lower_in_its_leaders_next_term() -> None:
    """b1 commits r in its second term, with b2; in its first it had reported more, and lost it."""
    led = [*saw("b1", "0..11", 1, None, "1", "high=9"), *saw("b2,b3", "0..11", 1, None, "1")]
    led += [*saw("b2,b3", "12..17", 1, None, "1"), *saw("b2,b3", "18..25", 3, None, "2,3")]
    led += [*saw("b1", "21..25", 3, None, "2,3"), *saw("b1,b2,b3", "26..40", 3, None, "1,2,3")]
    led += [*saw("b1,b2", "41..46", 3, None, "1,2,3"), *saw("b1", "47..70", 1, None, "1,2", "high=5")]
    led += [*saw("b1", "71..85", 1, None, "1,2", "high=6"), *saw("b2", "47..91", 1, None, "1,2")]
    led += saw("b2", "92..160", 2, None, "2")
    faults = ["fault k1 b1 11.5..20 kind=kill", "fault k3 b3 40.5..190 kind=kill", "fault k4 b1 85.5..190 kind=kill"]
    log = ["final a @4", "final b @5", "send late ok @6 t155..156", "end 0..7"]
    settings = {"version": "3.9.0", "metadata": "zookeeper", "acks": "1", "unclean_election": True}
    found = decided("send r ok @5 t70..70.1", *led, *faults, *log, **settings)
    assert (found.standing, found.must) == (UNDECIDED, {1, 2})


@pytest.mark.parametrize("guarded", [False, True])
@pytest.mark.parametrize("acks", ["all", "1"])
@pytest.mark.parametrize("leader_wiped", [False, True])
def test_an_empty_broker_outside_the_isr_has_joined_it_if_its_election_was_clean(
    leader_wiped: bool, acks: str, guarded: bool
) -> None:
    """b3 comes back empty, and is in no ISR until b1, alone in it, dies. So b3 has joined it, and has all of b1."""
    led = [*saw("b1,b2", "0..6", 1, 0, "1,2,3"), *saw("b3", "0..4", 1, 0, "1,2,3"), *saw("b1,b2", "7..12", 1, 1, "1,2")]
    led += [*saw("b3", "10..12", 1, 1, "1,2"), *saw("b1,b3", "13.5..18.5", 1, 1, "1,2")]
    led += [*saw("b1,b3", "19..23", 1, 1, "1"), *saw("b3", "24..24", 1, 1, "1"), *saw("b3", "30..160", 3, 2, "3")]
    faults = ["fault k3 b3 4.5..7 kind=kill", "fault w3 b3 5..6 kind=wipe", "fault k1 b1 23.9..90 kind=kill"]
    faults += ["fault k2 b2 12.5..90 kind=kill", "fault w2 b2 13..14 kind=wipe"]
    faults += ["fault w1 b1 24.2..24.5 kind=wipe"] if leader_wiped else []
    log = ["final b @0 e2", "send late ok @1 t155..156", "final late @1 e2", "end 0..2"]
    lines = ["send r ok @0 t2..2.1", *led, *faults, *log]
    assert decided(*lines, guarded=guarded, acks=acks, unclean_election=False).standing is VIOLATION


@pytest.mark.parametrize(
    ("killed", "wiped", "standing"),
    [
        ("20.1..90", "20.2..20.3", VIOLATION),
        ("20.1..90", "21..21.5", VIOLATION),
        ("20..20.2", "20.1..20.15", UNDECIDED),
    ],
    ids=["dead meanwhile", "reported before", "up again"],
)
def test_a_join_reported_after_the_wipe_of_the_leader_happened_before_it(
    killed: str, wiped: str, standing: Standing
) -> None:
    led = [
        *saw("b1,b2", "12..19.5", 1, 1, "1"),
        *saw("b2", "20.4..24.4", 1, 1, "1,2"),
        *saw("b2", "26..160", 2, 2, "2"),
    ]
    faults = [f"fault k1 b1 {killed} kind=kill", f"fault w b1 {wiped} kind=wipe"]
    lines = ["send r ok @5 t8..8.1", *WITHOUT_B3, *led, *faults, *LED_BY_B2]
    assert decided(*lines, **ALONE).standing is standing


@pytest.mark.parametrize(
    ("fault", "standing"),
    [
        ("b2 20.3..24.3 kind=kill", UNDECIDED),
        ("b2 20.3..24.3 kind=pause", PERMITTED),
        ("b3 20.3..24.3 kind=kill", PERMITTED),
        ("b2 61..63 kind=kill", PERMITTED),
    ],
    ids=["killed", "paused", "another", "when its leader was dead"],
)
def test_a_restarted_broker_may_have_left_and_rejoined_the_isr_between_two_reports(
    fault: str, standing: Standing
) -> None:
    """In its leader's second term, between two reports."""
    led = [*IN_FROM_ITS_BEGINNING, "fault k1 b1 60..190 kind=kill", *saw("b2", "66..160", 2, 2, "2")]
    lines = ["send r ok @5 t8..8.1", *WITHOUT_B3, *led, f"fault f {fault}", *LED_BY_B2]
    assert decided(*lines, **ALONE).standing is standing


def test_a_silence_before_a_disk_was_wiped_says_nothing_of_who_lost_it() -> None:
    led = [*saw("b1,b2", "17..49", 1, 1, "1"), *saw("b1", "50..59", 1, 1, "1"), *saw("b2", "56..59", 1, 1, "1")]
    led += ["fault k2 b2 49.5..55 kind=kill", "fault w2 b2 50..51 kind=wipe", "fault k1 b1 60..190 kind=kill"]
    lines = ["send r ok @5 t8..8.1", *WITHOUT_B3, *led, *saw("b2", "66..160", 2, 2, "2"), *LED_BY_B2]
    assert decided(*lines, acks="1", unclean_election=True).standing is PERMITTED


def test_the_last_isr_may_have_been_another_if_epochs_are_missing() -> None:
    """b2 may have been alone in the ISR when its disk was wiped."""
    led = [*saw("b1,b2,b3", "0..3", 1, 0, "1,2,3"), *saw("b1,b2", "24.7..160", 2, 5, "1,2")]
    faults = ["fault k1 b1 3.5..14 kind=kill", "fault k3 b3 5.7..60 kind=kill", "fault k2 b2 8.9..19.2 kind=kill"]
    faults += ["fault k4 b2 20..23.4 kind=kill", "fault w b2 21..21.7 kind=wipe"]
    log = ["final a @4 e0", "final b @5 e5", "send late ok @6 t155..156", "end 0..7"]
    found = decided("send r ok @5 t1..1.1", *led, *faults, *log, acks="all", unclean_election=False)
    assert found.standing is UNDECIDED


@pytest.mark.parametrize("again", [[], ["fault w2 b1 20.32..20.35 kind=wipe"]], ids=["once", "twice"])
def test_a_broker_that_joined_before_its_leader_died_has_the_record_despite_repeated_wipes(again: list[str]) -> None:
    led = [
        *saw("b1,b2", "12..19.5", 1, 1, "1"),
        *saw("b2", "20.4..24.4", 1, 1, "1,2"),
        *saw("b2", "26..160", 2, 2, "2"),
    ]
    faults = ["fault k1 b1 20.1..90 kind=kill", "fault w b1 20.2..20.3 kind=wipe", *again]
    assert decided("send r ok @5 t8..8.1", *WITHOUT_B3, *led, *faults, *LED_BY_B2, **ALONE).standing is VIOLATION


def test_a_broker_that_joined_a_term_first_reported_after_its_leader_died_has_the_record() -> None:
    led = [
        *saw("b1,b2", "0..11", 1, 0, "1,2,3"),
        *saw("b3", "0..10", 1, 0, "1,2,3"),
        *saw("b2", "12.4..12.5", 1, 1, "1"),
    ]
    led += [*saw("b2", "12.6..17.6", 1, 1, "1,2"), *saw("b2", "19..160", 2, 2, "2"), "fault k3 b3 11..190 kind=kill"]
    faults = ["fault k1 b1 12.1..190 kind=kill", "fault w1 b1 12.2..12.25 kind=wipe"]
    assert decided("send r ok @5 t8..8.1", *led, *faults, *LED_BY_B2, **ALONE).standing is VIOLATION


@pytest.mark.parametrize("wiped", [[], ["fault w b2 30..31 kind=wipe"]])
def test_another_disk_that_is_wiped_says_nothing_of_who_joined_in_a_silence(wiped: list[str]) -> None:
    led = [
        *saw("b1,b2,b3", "0..4", 1, 0, "1,2,3"),
        *saw("b1,b2,b3", "5..12", 1, 0, "1"),
        *saw("b1", "24..40", 1, 0, "1"),
    ]
    led += [*saw("b3", "24..45", 1, 0, "1"), *saw("b3", "47..150", 3, 1, "3"), "fault kx b2 29..90 kind=kill"]
    log = ["final a @4 e0", "final b @5 e1", "send late ok @6 t140..141", "final late @6 e1", "end 0..7"]
    lines = ["send r ok @5 t10..10.1", *led, *wiped, "fault k1 b1 40.5..90 kind=kill", *log]
    assert decided(*lines, acks="all", **UNCLEAN).standing is UNDECIDED


def test_a_broker_wiped_before_its_join_was_reported_may_lack_the_record() -> None:
    """b2 joins the ISR at 20.2 s, and is wiped; then a consumer gets r, and b3 reports that b2 had joined."""
    led = [
        *saw("b1,b2,b3", "0..11", 1, 0, "1"),
        *saw("b1", "12..19.9", 1, 1, "1"),
        *saw("b1", "20.3..21.3", 1, 1, "1,2"),
    ]
    led += [*saw("b1", "23..59", 1, 1, "1"), *saw("b3", "12.1..20.1", 1, 1, "1"), *saw("b3", "21.1..22.1", 1, 1, "1,2")]
    led += [*saw("b3", "23.1..65", 1, 1, "1"), *saw("b2", "24..65", 1, 1, "1"), *saw("b2,b3", "66..160", 2, 2, "2")]
    faults = ["fault k2 b2 20.7..22.9 kind=kill", "fault w2 b2 20.72..20.75 kind=wipe", "fault k1 b1 60..190 kind=kill"]
    faults += ["fault cc b1,b2 22..59.9 from=b1 to=b2 plane=replication"]
    lines = ["send r info @5 t8..", "live r @5 e0 t20.8", *led, *faults, *LED_BY_B2]
    assert decided(*lines, anomaly=VANISHED, acks="1", unclean_election=True).standing is UNDECIDED


def test_a_broker_may_have_the_record_if_its_leader_may_have_been_wiped_during_the_term() -> None:
    led = [
        *saw("b1,b2", "0..11", 1, 0, "1,2,3"),
        *saw("b3", "0..10", 1, 0, "1,2,3"),
        *saw("b2", "12.15..12.15", 1, 1, "1"),
    ]
    led += [*saw("b2", "13.15..16.2", 1, 1, "1,2"), *saw("b2", "17..160", 2, 2, "2"), "fault k3 b3 11..190 kind=kill"]
    faults = ["fault k1 b1 12.1..13 kind=kill", "fault w1 b1 12.12..12.3 kind=wipe"]
    assert decided("send r ok @5 t8..8.1", *led, *faults, *LED_BY_B2, **ALONE).standing is UNDECIDED


def test_a_cleanly_elected_broker_that_was_wiped_before_the_delivery_lacks_the_record() -> None:
    """b3, which has r, is elected; alone in the ISR, it loses its disk. Only then b1, which is cut off, delivers r."""
    led = [*saw("b1", "0..14", 1, 0, "1,3"), *saw("b3", "0..9", 1, 0, "1,3"), *saw("b2", "0..1", 1, 0, "1,3")]
    led += [*saw("b3", "9.5..11.5", 3, 1, "3"), *saw("b1", "15..15", -1, 2, "3"), *saw("b1,b3", "16..20", 3, 3, "3")]
    led += saw("b1,b3", "21..160", 3, 3, "1,3")
    faults = ["fault k2 b2 1.5..190 kind=kill", "fault i b1,c1 3..14.1 from=b1 to=c1 plane=controller"]
    faults += ["fault k3 b3 11.8..14.7 kind=kill", "fault w3 b3 12.7..13.3 kind=wipe"]
    log = ["final a @4 e0", "send b ok @5 t100..101", "final b @5 e3", "send late ok @6 t155..156", "final late @6 e3"]
    lines = ["send r info @5 t5..", "live r @5 e0 t13.7", *led, *faults, *log, "end 0..7"]
    assert decided(*lines, anomaly=VANISHED, acks="all", unclean_election=False).standing is not VIOLATION
