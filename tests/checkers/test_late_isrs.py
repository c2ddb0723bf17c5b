"""Before KIP-497 a leader decides its ISR, and brokers report it up to a minute later."""

from collections.abc import Sequence
from typing import Any

import pytest

from harness.core.verdict import Standing
from tests.checkers.notation import by_hand
from tests.checkers.ranges import TRIAL
from tests.checkers.test_holders import ALONE, CUT, UNCLEAN, decided, evidence, names, saw, without_epochs

PERMITTED, VIOLATION, UNDECIDED = Standing.PERMITTED, Standing.VIOLATION, Standing.UNDECIDED

OLD: dict[str, Any] = {"version": "2.6.0", "metadata": "zookeeper"}
NEWER: dict[str, Any] = {"version": "2.7.0", "metadata": "zookeeper"}

#: b1 was cut off from 5 s on, and killed at 30 s. Until then all reported that b2 is in sync.
_CUT_OFF = [
    "fault cut b1,b2,b3 5..40 from=b1 to=b2,b3 plane=all",
    "fault k b1 30..90 kind=kill",
    *saw("b1", "0..30", 1, 0, "1,2,3"),
    *saw("b2,b3", "0..36", 1, 0, "1,2,3"),
    *saw("b2,b3", "37..120", 2, 1, "2"),
]
_LOG = ["final a @4 e0", "send late ok @5 t110..111", "final late @5 e1", "end 0..6"]


@pytest.mark.parametrize(
    ("settings", "standing"),
    [
        ({**UNCLEAN, **OLD}, UNDECIDED),
        ({**UNCLEAN, **NEWER}, VIOLATION),
        ({"unclean_election": False, **OLD}, VIOLATION),
    ],
    ids=["late", "at once", "late, and cleanly"],
)
def test_a_broker_reported_in_sync_may_have_left_the_isr_and_be_elected_uncleanly(
    settings: dict[str, Any], standing: Standing
) -> None:
    assert decided("send r ok @5 t20..21", *_CUT_OFF, *_LOG, **settings).standing is standing


def test_a_broker_in_the_first_isr_reported_after_an_election_may_have_joined_since() -> None:
    """(It is propagated at the next of the leader's ticks, every 2.5 s: ReplicaManager, IsrChangePropagation.)"""
    lines = [*_CUT_OFF[:-2], *saw("b2,b3", "37..120", 2, 1, "2,3")]
    assert decided("send r ok @5 t20..21", *lines, *_LOG, **UNCLEAN, **OLD).standing is UNDECIDED


def test_a_broker_that_lost_its_disk_may_have_joined_the_isr_since() -> None:
    wiped = ["fault k2 b2 22..25 kind=kill", "fault w b2 22.5..24 kind=wipe"]
    wiped += [line for line in _CUT_OFF if "saw b2 @0" not in line] + saw("b2", "0..21", 1, 0, "1,2,3")
    assert decided("send r ok @5 t20..21", *wiped, *_LOG, **UNCLEAN, **OLD).standing is UNDECIDED


@pytest.mark.parametrize(
    ("reported", "need_not", "unknown"),
    [
        (saw("b1", "22..30", 1, 0, "1"), [2, 3], []),
        (saw("b1", "22..30", 1, 0, "1,2"), [3], [2]),
        (saw("b1", "22..30", 1, 0, "1,2,3"), [], [2, 3]),
        (saw("b2,b3", "37..60", 2, 1, "2"), [], [1, 2, 3]),
    ],
    ids=["both out", "one out", "none out", "by the next leader"],
)
def test_a_broker_that_fetched_nothing_need_not_have_the_record_if_reported_out_of_the_isr(
    reported: list[str], need_not: list[int], unknown: list[int]
) -> None:
    """If that is never reported, an acknowledgement may have come too early."""
    cut = ["fault cut b1,b2,b3 5..90 from=b1 to=b2,b3 plane=all", *saw("b1", "0..21", 1, 0, "1,2,3")]
    found = decided(
        "send r ok @5 t20..20.5", *cut, *reported, *_LOG, min_insync_replicas=1, unclean_election=True, **OLD
    )
    assert (names(found.need_not), names(found.unknown)) == (need_not, unknown)


@pytest.mark.parametrize(
    ("wipe", "standing"), [([], VIOLATION), (["fault w b2 20..22 kind=wipe"], UNDECIDED)], ids=["no wipe", "wiped"]
)
def test_a_silence_may_hide_the_election_of_one_that_lost_its_disk(wipe: list[str], standing: Standing) -> None:
    """b1 leads and has it; b2 rejoined the ISR after its disk was lost, as far as is known."""
    seen = [
        *saw("b1,b3", "0..30", 1, 0, "1,2,3"),
        *saw("b2", "0..19", 1, 0, "1,2,3"),
        *saw("b2", "25..30", 1, 0, "1,2,3"),
    ]
    seen += [*saw("b1,b2,b3", "45..160", 1, 0, "1,2,3"), *wipe, "final a @4", "end 0..5", "send late ok @4 t150..151"]
    settings = {"version": "2.0.1", "metadata": "zookeeper", "unclean_election": False}
    assert decided("send r ok @5 t5..6", *without_epochs(seen), **settings).standing is standing


#: b2 was out of the ISR from 5 s on; b1 was killed at 60 s, and b2 elected uncleanly.
_OUT = [
    *saw("b1,b2,b3", "0..4", 1, 0, "1,2,3"),
    *saw("b1", "5..60", 1, 0, "1"),
    *saw("b2,b3", "5..65", 1, 0, "1"),
    "fault k b1 60..200 kind=kill",
    *saw("b2,b3", "66..190", 2, 1, "2"),
]
_CUT_FROM_B1 = "from=b1 to=b2,b3 plane=all"


@pytest.mark.parametrize(
    ("faults", "late"),
    [
        ([], UNDECIDED),
        ([f"fault cut b1,b2,b3 3..90 {_CUT_FROM_B1}"], PERMITTED),
        ([f"fault cut b1,b2,b3 3..40 {_CUT_FROM_B1}"], UNDECIDED),
        ([f"fault cut b1,b2,b3 10..90 {_CUT_FROM_B1}"], PERMITTED),
        ([f"fault cut b1,b2,b3 12..90 {_CUT_FROM_B1}"], UNDECIDED),
        (["fault cut b1,b3 3..90 from=b1 to=b3 plane=all"], UNDECIDED),
        (["fault k2 b2 4.5..60.5 kind=kill"], PERMITTED),
        (["fault p2 b2 3..60.5 kind=pause"], UNDECIDED),
    ],
    ids=["reachable", "cut", "cut until then", "cut since the write", "cut soon after", "another", "down", "paused"],
)
@pytest.mark.parametrize("settings", [OLD, NEWER], ids=["late", "at once"])
def test_a_broker_out_of_the_isr_may_have_rejoined_before_its_election(
    faults: Sequence[str], late: Standing, settings: dict[str, Any]
) -> None:
    reported = (
        _OUT if not any("k2" in fault for fault in faults) else [line for line in _OUT if "saw b2 @5" not in line]
    )
    found = decided("send r ok @5 t10..10.5", *reported, *faults, *CUT, acks="1", **UNCLEAN, **settings)
    assert found.standing is (late if settings is OLD else PERMITTED)
    assert found.may_have == (frozenset() if found.standing is UNDECIDED else {1})


def test_a_leader_that_lacks_it_gives_it_to_nobody() -> None:
    """b3 follows b2, and leads after it. Both were cut off from b1."""
    seen = [*_OUT[:-2], *saw("b2,b3", "66..80", 2, 1, "2"), *saw("b2,b3", "81..100", 2, 1, "2,3")]
    seen += ["fault k2 b2 100..200 kind=kill"]
    seen += [*saw("b3", "106..190", 3, 2, "3"), f"fault cut b1,b2,b3 3..90 {_CUT_FROM_B1}"]
    seen += ["fault k b1 60..300 kind=kill", *(line.replace(" e1", " e2") for line in CUT)]
    assert decided("send r ok @5 t10..10.5", *seen, acks="1", **UNCLEAN, **OLD).standing is PERMITTED


@pytest.mark.parametrize(
    ("struck", "standing"),
    [
        ("b1,b2 3..8 from=b1 to=b2 plane=all", UNDECIDED),
        ("b3 3..8 kind=pause", PERMITTED),
        ("b1,b2 59..80 from=b1 to=b2 plane=all", PERMITTED),
    ],
    ids=["it was cut off", "another was halted", "it was cut off later"],
)
def test_an_isolated_broker_may_have_left_and_rejoined_the_isr_unreported(struck: str, standing: Standing) -> None:
    seen = [*saw("b1", "0..60", 1, 0, "1,2,3"), *saw("b2,b3", "0..65", 1, 0, "1,2,3"), f"fault cut {struck}"]
    seen += ["fault k b1 60..200 kind=kill", *saw("b2,b3", "66..190", 2, 1, "2,3")]
    found = decided("send r ok @5 t10..10.5", *seen, *CUT, acks="1", **UNCLEAN, **OLD)
    assert found.standing is standing


@pytest.mark.parametrize(
    ("wiped", "back", "standing"), [("6..8", 8, UNDECIDED), ("6..60", 60, PERMITTED)], ids=["ran again", "never ran"]
)
def test_a_wiped_broker_may_have_rejoined_the_isr(wiped: str, back: float, standing: Standing) -> None:
    seen = [*saw("b1,b3", "0..30", 1, 0, "1"), "fault k b1 30..200 kind=kill", *saw("b3", "31..59", -1, 0, "1")]
    seen += [*saw("b2,b3", "61..190", 2, 1, "2"), f"fault w b2 {wiped} kind=wipe", f"fault k2 b2 5.9..{back} kind=kill"]
    found = decided("send r ok @5 t3..4", *seen, *CUT, acks="1", **UNCLEAN, **OLD)
    assert found.standing is standing


@pytest.mark.parametrize(
    ("faults", "may"),
    [
        ([], frozenset()),
        (["fault halt b3 5..12 kind=pause"], frozenset()),
        (["fault slow b2 60..61 kind=slow"], frozenset()),
        (["fault halt b2 5..8.9 kind=pause"], frozenset()),
        (["fault halt b2 5..9 kind=pause"], {1}),
        (["fault halt b1 5..9 kind=pause"], {1}),
        (["fault cut2 b1,b2 10.5..200 from=b1 to=b2 plane=all"], frozenset()),
    ],
    ids=["none", "another", "later", "earlier", "elected one", "leader", "both a moment before"],
)
def test_the_election_of_one_that_could_fetch_it_is_not_taken_to_have_taken_it(
    faults: Sequence[str], may: frozenset[int]
) -> None:
    """b3 was killed at 25 s. b1 was cut off at 30 s, led on alone, and was killed at 70 s; then b2 was elected."""
    seen = [*saw("b1,b2", "0..40", 1, 0, "1,2"), *saw("b1", "41..70", 1, 0, "1"), *saw("b2", "41..75", 1, 0, "1")]
    seen += [
        *saw("b3", "0..24", 1, 0, "1,2"),
        "fault k3 b3 25..200 kind=kill",
        "fault cut b1,b2 30..200 from=b1 to=b2 plane=all",
    ]
    seen += ["fault k b1 70..200 kind=kill", *saw("b2", "76..190", 2, 1, "2")]
    found = decided("send r ok @5 t10..11", *seen, *faults, *CUT, min_insync_replicas=1, unclean_election=True, **OLD)
    assert (found.standing, found.may_have) == (UNDECIDED, may)


def test_the_election_of_one_that_just_joined_the_isr_is_not_taken_to_have_taken_it() -> None:
    """b2 was back at 8 s, and only its next report shows that it joined."""
    seen = [*saw("b1,b3", "0..11", 1, 0, "1,3"), *saw("b1,b3", "12..40", 1, 0, "1,2,3"), "fault k2 b2 3..8 kind=kill"]
    seen += [*saw("b2", "9..11", 1, 0, "1,3"), *saw("b2", "12..40", 1, 0, "1,2,3")]
    seen += [*saw("b1", "41..70", 1, 0, "1"), *saw("b2", "41..75", 1, 0, "1")]
    seen += ["fault cut b1,b2,b3 13..200 from=b1 to=b2,b3 plane=all", "fault k b1 70..200 kind=kill"]
    seen += ["fault k3 b3 40.5..200 kind=kill", *saw("b2", "76..190", 2, 1, "2")]
    found = decided("send r ok @5 t11..12", *seen, *CUT, min_insync_replicas=1, unclean_election=True, **OLD)
    assert (found.standing, found.may_have) == (UNDECIDED, frozenset())


_LED = [*saw("b1,b2,b3", "0..20", 1, 0, "1"), *saw("b1,b2,b3", "30..60", 1, 0, "1")]
_HALVES = [*saw("b2,b3", "0..60", 1, 0, "1"), *saw("b1", "0..20", 1, 0, "1"), *saw("b1", "30..60", 1, 0, "1")]
#: b1 was cut off from the observer when it led again.
_REPORTED_BY_OTHERS = [*saw("b1", "0..20", 1, 0, "1"), *saw("b2,b3", "0..20", 1, 0, "1")]
_REPORTED_BY_OTHERS += [*saw("b2,b3", "22..28", -1, 0, "1"), *saw("b2,b3", "29..60", 1, 0, "1")]
#: b2 had not heard that b1 leads no more, or heard late that it leads again.
_LATE = [*saw("b1", "0..20", 1, 0, "1"), *saw("b1", "30..60", 1, 0, "1"), *saw("b3", "22..29", -1, 0, "1")]
_LATE += [*saw("b3", "0..20", 1, 0, "1"), *saw("b3", "30..60", 1, 0, "1")]


@pytest.mark.parametrize(
    ("seen", "terms"),
    [
        ([*_LED, *saw("b2,b3", "22..28", -1, 0, "1")], [(1, 0), (1, 30)]),
        ([*_LED, "saw b2 @25 leader=-1 isr=1"], [(1, 0), (1, 30)]),
        (_LED, [(1, 0)]),
        (_HALVES, [(1, 0)]),
        ([*saw("b1,b3", "0..60", 1, 0, "1"), *saw("b2", "22..28", -1, 0, "1")], [(1, 0)]),
        (_REPORTED_BY_OTHERS, [(1, 0), (1, 29)]),
        ([*_LED, *saw("b2,b3", "62..68", -1, 0, "1")], [(1, 0)]),
        ([*_LATE, *saw("b2", "0..24", 1, 0, "1")], [(1, 0), (1, 30)]),
        ([*_LATE, *saw("b2", "0..23", 1, 0, "1"), *saw("b2", "24..60", 1, 0, "1,2")], [(1, 0), (1, 30)]),
        ([*_LATE, *saw("b2", "22..35", -1, 0, "1"), *saw("b2", "36..60", 1, 0, "1")], [(1, 0), (1, 30)]),
        ([*_LATE[:2], *saw("b2,b3", "22..35", -1, 0, "1"), *saw("b2", "36..60", 1, 0, "1")], [(1, 0), (1, 30)]),
        ([*_LED, "saw b2 @21 leader=1 isr=1", "saw b2 @25 leader=-1 isr=1"], [(1, 0), (1, 30)]),
        ([*_LED, "saw b4 @3 leader=-1 isr=1", "saw b4 @63 leader=-1 isr=1"], [(1, 0)]),
    ],
    ids=[
        *["nobody led", "once", "silence", "others reported it", "it led on", "others reported both", "later"],
        *[
            "one reported late",
            "and of another ISR",
            "one reported nobody late",
            "all did",
            "one in time",
            "amid a silence",
        ],
    ],
)
def test_without_epochs_a_term_begins_again_where_nobody_led_in_between(
    seen: list[str], terms: list[tuple[int, int]]
) -> None:
    known = evidence(by_hand(*without_epochs(seen)), **ALONE, version="1.0.2", metadata="zookeeper")
    found = [(term.leader, term.seen_ns // 1_000_000_000) for term in known.elections[TRIAL].terms]
    assert found == terms


@pytest.mark.parametrize("until", [90, 92], ids=["at once", "late"])
def test_a_wiped_leader_that_leads_again_took_the_record_though_another_broker_reports_late(until: int) -> None:
    """b1 and b2 were killed; b1 lost its disk, and was elected from the ISR."""
    seen = [*saw("b1,b3", "0..90", 1, 0, "1,2"), *saw("b2", f"0..{until}", 1, 0, "1,2")]
    seen += [*saw("b3", "91..100", -1, 0, "1,2"), "fault k1 b1 90.5..100 kind=kill", "fault w1 b1 92..93 kind=wipe"]
    seen += ["fault k2 b2 92.5..160 kind=kill", *saw("b1,b3", "101..160", 1, 0, "1")]
    log = ["final a @4", "send late ok @5 t155..156", "final late @5", "end 0..6"]
    settings = {"version": "2.0.1", "metadata": "zookeeper", "min_insync_replicas": 2, "unclean_election": False}
    assert decided("send r ok @5 t5..6", *without_epochs(seen), *log, **settings).standing is PERMITTED


@pytest.mark.parametrize(("leader", "unseen"), [(2, True), (1, False)], ids=["another", "the same"])
@pytest.mark.parametrize("isr", ["2,3", "3"], ids=["as before", "another ISR"])
def test_without_epochs_a_leader_may_be_unreported_that_another_reports_after_a_silence_of_its_own(
    leader: int, unseen: bool, isr: str
) -> None:
    """b2 led first, and then b1. b3 was silent in between, and then reported for some seconds that b2 leads."""
    seen = [*saw("b2,b3", "0..10", 2, 0, "2,3"), *saw("b1", "11..60", 1, 0, "1"), *saw("b2", "11..60", 1, 0, "1")]
    seen += [*saw("b3", "30..33", leader, 0, isr), *saw("b3", "34..60", 1, 0, "1")]
    known = evidence(by_hand(*without_epochs(seen)), **ALONE, version="1.0.2", metadata="zookeeper")
    assert known.elections[TRIAL].unseen(31_000_000_000, 32_000_000_000) is unseen


@pytest.mark.parametrize(("leader", "unseen"), [(2, True), (1, False)], ids=["another", "the same"])
@pytest.mark.parametrize("led", ["b1,b2,b3", "b2,b3"], ids=["by itself", "by others"])
def test_without_epochs_a_leader_may_be_unreported_before_a_term_that_only_others_reported(
    leader: int, unseen: bool, led: str
) -> None:
    seen = [*saw("b1,b2", "0..18", 1, 0, "1"), *saw("b3", "0..9", 1, 0, "1"), *saw("b3", "10..12", leader, 0, "1")]
    seen += [*saw("b3", "13..18", 1, 0, "1"), *saw("b2,b3", "19..29", -1, 0, "1"), *saw(led, "30..40", 1, 0, "1")]
    seen += saw("b2,b3", "46..60", 2, 0, "2")
    known = evidence(by_hand(*without_epochs(seen)), **ALONE, version="1.0.2", metadata="zookeeper")
    assert known.elections[TRIAL].unseen(11_000_000_000, 12_000_000_000) is unseen


@pytest.mark.parametrize(
    ("wiped", "version", "standing"),
    [
        ("w b1 91..92", "2.0.1", UNDECIDED),
        ("w b1 91..92", "2.6.0", VIOLATION),
        ("w b2 91..92", "2.0.1", VIOLATION),
        ("w b1 91..92 missed", "2.0.1", VIOLATION),
    ],
    ids=["leader", "leader, with epochs", "another", "missed"],
)
def test_without_epochs_a_leader_that_lost_its_disk_may_lead_again_before_anybody_is_asked(
    wiped: str, version: str, standing: Standing
) -> None:
    """b1 was alone in the ISR, and was killed for less than a moment longer than its session."""
    seen = [
        *saw("b1,b2,b3", "0..75", 1, 0, "1,2,3"),
        *saw("b2,b3", "76..160", 1, 0, "1"),
        *saw("b1", "76..90", 1, 0, "1"),
    ]
    seen += [*saw("b1", "94..160", 1, 0, "1"), "fault k1 b1 90.5..93 kind=kill", f"fault {wiped} kind=wipe"]
    log = ["final a @4 e0", "send late ok @5 t155..156", "final late @5 e0", "end 0..6"]
    seen, log = (seen, log) if version == "2.6.0" else (without_epochs(seen), [line.replace(" e0", "") for line in log])
    settings = {"version": version, "metadata": "zookeeper", "min_insync_replicas": 2, "unclean_election": False}
    assert decided("send r ok @5 t5..6", *seen, *log, **settings).standing is standing


def test_not_if_it_lost_it_before_it_led() -> None:
    """b2 lost its disk, and joined the ISR again long before it was asked to lead."""
    seen = [
        *saw("b1,b3", "0..75", 1, 0, "1,2,3"),
        *saw("b2", "0..6", 1, 0, "1,2,3"),
        *saw("b1,b3", "76..90", 1, 0, "1,3"),
    ]
    seen += ["fault k2 b2 7..9 kind=kill", "fault w b2 7.5..8 kind=wipe", *saw("b2", "12..75", 1, 0, "1,2,3")]
    seen += [*saw("b2", "76..90", 1, 0, "1,3"), *saw("b1,b2,b3", "91..180", 1, 0, "1,2,3")]
    seen += saw("b1,b2,b3", "181..300", 2, 0, "1,2,3")
    log = ["final a @4", "send late ok @5 t295..296", "final late @5", "end 0..6"]
    settings = {"version": "2.0.1", "metadata": "zookeeper", "min_insync_replicas": 2, "unclean_election": False}
    assert decided("send r ok @5 t5..6", *without_epochs(seen), *log, **settings).standing is VIOLATION
