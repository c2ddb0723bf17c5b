"""The effect of faults on the brokers of a partition, at the edges of their times and of the nodes that they hit."""

import json
from typing import Any

import pytest

from checkers.evidence.acting import Acting
from checkers.evidence.intervals import BEFORE, NEVER
from harness.core.faults import Row
from tests.checkers.notation import SECOND, HandHistory, by_hand
from tests.checkers.test_holders import ALONE, TRIAL, acting_on, evidence, saw

#: b1 led with all in the ISR, and said so until 20 s; b2 leads since 26 s.
TWO_TERMS = [
    *saw("b1", "0..20", 1, 0, "1,2,3"),
    *saw("b2,b3", "0..25", 1, 0, "1,2,3"),
    *saw("b2,b3", "26..60", 2, 1, "2,3"),
]
#: The same, but only b2 reports anything while the others are down.
ONE_WATCHES = [
    *saw("b1,b2,b3", "0..20", 1, 0, "1,2,3"),
    *saw("b2", "21..25", 1, 0, "1,2,3"),
    *saw("b2", "26..60", 2, 1, "2"),
    *saw("b1,b3", "30..60", 2, 1, "2"),
]
WITHOUT_EPOCHS = [
    *saw("b1", "0..8", 1, None, "1,2,3"),
    *saw("b1", "9..20", 1, None, "1"),
    *saw("b2", "0..30", 1, None, "1"),
    *saw("b2,b3", "40..60", 2, None, "2,3"),
]


def acting(*faults: str, reports: list[str] = TWO_TERMS, kraft: bool = True, **of_each: Any) -> Acting:
    """How these faults acted; ``of_each``: columns that differ in each of their rows."""
    rows: list[Row] = [{**row, **of_each} for row in by_hand(*faults).rows["faults"]]
    return acting_on(evidence(by_hand(*reports), **ALONE).elections[TRIAL], rows, kraft, frozenset({"c1"}))


def faulted_of(recorded: HandHistory, metadata: str = "kraft", **settings: Any) -> bool:
    """Whether all of the ISR from which the second leader was elected were faulted."""
    elections = evidence(recorded, metadata=metadata, **settings).elections[TRIAL]
    return acting_on(elections, recorded.rows["faults"], metadata == "kraft").isr_faulted(1)


@pytest.mark.parametrize(
    ("faults", "ended"),
    [
        ([], NEVER),
        (["fault k b1 25..50 kind=kill"], 26),
        (["fault k b1 20..50 kind=kill"], 21),
        (["fault k b1 10..11 kind=kill"], NEVER),
        (["fault k b1 10..11 kind=kill", "fault l b1 25..50 kind=kill"], 26),
        (["fault k b1 25..50 kind=kill", "fault l b1 55..58 kind=kill"], 26),
        (["fault k b1 25..50 kind=pause"], NEVER),
        (["fault k b2 25..50 kind=kill"], NEVER),
    ],
    ids=[
        *("nothing", "killed", "as it said it for the last time", "before", "before and after", "twice"),
        *("halted", "another"),
    ],
)
def test_a_leader_is_over_with_its_process_once_it_said_for_the_last_time_that_it_leads(
    faults: list[str], ended: int
) -> None:
    assert acting(*faults).ended_ns(0) == (ended if ended == NEVER else ended * SECOND)


@pytest.mark.parametrize(
    ("back", "ended"), [("30", 26), ("29", NEVER), ("31", 26), ("", 26)], ids=["then", "before", "later", "never"]
)
def test_without_epochs_it_is_if_it_was_not_begun_again_before_others_said_so_for_the_last_time(
    back: str, ended: int
) -> None:
    known = acting(f"fault k b1 25..{back} kind=kill", reports=WITHOUT_EPOCHS)
    assert known.ended_ns(0) == (ended if ended == NEVER else ended * SECOND)


def test_without_epochs_what_was_killed_before_it_last_said_so_led_on() -> None:
    assert acting("fault k b1 10..50 kind=kill", reports=WITHOUT_EPOCHS).ended_ns(0) == NEVER


@pytest.mark.parametrize(("healing", "ended"), [(29 * SECOND, NEVER), (30 * SECOND, 26 * SECOND), (None, 26 * SECOND)])
def test_it_may_have_begun_again_as_soon_as_it_was_being_healed(healing: int | None, ended: int) -> None:
    known = acting("fault k b1 25..35 kind=kill", reports=WITHOUT_EPOCHS, healing_ns=healing)
    assert known.ended_ns(0) == ended


def test_a_fault_that_was_never_injected_takes_no_broker_down() -> None:
    never = acting("fault k b1 25..35 kind=kill", injected_ns=None, nodes_without_effect=[])
    assert never.ended_ns(0) == NEVER
    assert not never.down(1, 25 * SECOND, 26 * SECOND)


#: b2 was not heard after 4 s, and is heard again from 24 s on, or never.
NOT_HEARD = [*saw("b1", "0..60", 1, 0, "1,2"), *saw("b2", "0..4", 1, 0, "1,2")]
HEARD_AGAIN = [*NOT_HEARD, *saw("b2", "24..60", 1, 0, "1")]


@pytest.mark.parametrize(
    ("reports", "nodes", "started", "down_until"),
    [
        (NOT_HEARD, "b2", {}, 23),
        (NOT_HEARD, "b2,b3", {}, None),
        (HEARD_AGAIN, "b2,b3", {}, 23),
        (NOT_HEARD, "b2,b3", {"b2": 23.5, "b3": 8}, 23),
        (NOT_HEARD, "b2,b3", {"b2": 8, "b3": 23.5}, 8),
        (HEARD_AGAIN, "b2,b3", {"b2": 8, "b3": 23.5}, 8),
        (NOT_HEARD, "b2,b3", {"b3": 8}, None),
        (HEARD_AGAIN, "b2,b3", {"b2": 4}, 23),
    ],
    ids=[
        *("alone", "one of two", "one of two, heard again", "begun again with it", "begun again before"),
        *("begun again before, unheard for long", "the other alone", "begun again before it was killed"),
    ],
)
def test_one_of_several_that_were_killed_is_down_no_longer_than_until_it_was_begun_again(
    reports: list[str], nodes: str, started: dict[str, float], down_until: int | None
) -> None:
    """Killed at 5 s; the heal of the last of them had begun at 23 s."""
    evidence = json.dumps({"released": {name: {"at_ns": int(at * SECOND)} for name, at in started.items()}})
    known = acting(f"fault k {nodes} 5..23 kind=kill", reports=reports, evidence=evidence)
    assert list(known.down_times(2)) == ([] if down_until is None else [(5 * SECOND, down_until * SECOND)])


def test_another_fault_tells_when_one_of_several_was_begun_again() -> None:
    rows = by_hand("fault k b2,b3 5..23 kind=kill", "fault s b2 8..8 kind=start").rows["faults"]
    rows[1]["evidence"] = json.dumps({"released": {"b2": {"at_ns": 8 * SECOND}}})
    known = acting_on(evidence(by_hand(*NOT_HEARD), **ALONE).elections[TRIAL], rows, kraft=True)
    assert list(known.down_times(2)) == [(5 * SECOND, 8 * SECOND)]


def test_records_before_and_after_the_release_of_one_node_are_judged_apart() -> None:
    recorded = by_hand(*NOT_HEARD, "fault k b2,b3 5..23 kind=kill")
    recorded.rows["faults"][0]["evidence"] = json.dumps({"released": {"b2": {"at_ns": 8_500_000_000}}})
    assert 8_500_000_000 in evidence(recorded, **ALONE).moments(TRIAL)


def test_several_that_were_never_healed_are_down_for_ever() -> None:
    assert acting("fault k b2,b3 5.. kind=kill", reports=NOT_HEARD).down(2, 5 * SECOND, 60 * SECOND)


@pytest.mark.parametrize(
    ("fault", "behind"),
    [
        ("fault f b1 10..12 kind=isolate", True),
        ("fault f b1 10..12 kind=kill", True),
        ("fault f b1 10..12 kind=pause", True),
        ("fault f b1 10..12 kind=slow", True),
        ("fault f b1 10..12 kind=flaky", True),
        ("fault f b1 10..12 kind=throttle", True),
        ("fault f b1 10..12 kind=corrupt", True),
        ("fault f b1 10..12 kind=duplicate", False),
        ("fault f b1 10..12 kind=wipe", False),
        ("fault f c1 10..12 kind=isolate", True),
        ("fault f c1 10..12 kind=wipe", False),
        ("fault f b2 10..12 kind=isolate", False),
        ("fault f b1,b2,b3,b4 10..12 kind=partition", False),
        ("fault f b1 10..12 kind=isolate missed", False),
    ],
    ids=[
        *("cut off", "dead", "halted", "late", "lost packets", "limited", "corrupt packets", "packets twice"),
        *("without its disk", "the controller", "that without its disk"),
        *("another", "brokers from each other", "in vain"),
    ],
)
def test_a_broker_may_be_behind_where_it_or_the_controllers_may_not_be_heard(fault: str, behind: bool) -> None:
    known = acting(fault)
    assert known.behind("b1", 11 * SECOND, 11 * SECOND) is behind
    # A lag after it was healed it is behind still, and no longer; after a cut it may need longer to hear again.
    until = (22 if "isolate" in fault else 13) * SECOND
    assert known.behind("b1", until, 30 * SECOND) is behind
    assert not known.behind("b1", until + 1, 30 * SECOND)
    assert not known.behind("b1", 0, 10 * SECOND - 1)


def test_brokers_of_zookeeper_are_behind_where_they_are_cut_from_each_other() -> None:
    """One of them is the controller."""
    assert acting("fault f b1,b2 10..12 kind=partition", kraft=False).behind("b1", 11 * SECOND, 11 * SECOND)


@pytest.mark.parametrize(
    ("when", "under"),
    [
        *(("26..27", True), ("27..28", False), ("26.001..27", False)),
        *(("10..16", True), ("10..15.999", False), ("10..", True)),
    ],
    ids=["from then on", "later", "a moment later", "just not back", "back", "never healed"],
)
def test_a_broker_is_under_a_fault_from_its_injection_until_ten_seconds_after_it_was_healed(
    when: str, under: bool
) -> None:
    """b2 was first seen to lead at 26 s."""
    known = acting(f"fault f b1 {when} kind=isolate")
    assert known.all_under(frozenset({1}), 1) is under
    assert not known.all_under(frozenset({1, 3}), 1)


@pytest.mark.parametrize(
    ("cut", "kraft", "under"),
    [
        ((["b1"], ["c1"]), True, True),
        ((["b1"], ["b2", "b3"]), True, False),
        ((["b1"], ["b2", "b3", "b4"]), True, False),
        ((["b1"], ["b2", "b3"]), False, True),
        ((None, None), True, True),
    ],
    ids=["the controller", "others", "all others", "others of ZooKeeper", "no two sides"],
)
def test_brokers_that_are_cut_from_each_other_are_led_by_kraft_all_the_same(
    cut: tuple[list[str] | None, list[str] | None], kraft: bool, under: bool
) -> None:
    nodes = sorted({name for side in cut for name in side or ["b1"]})
    known = acting(f"fault f {','.join(nodes)} 20..30", kraft=kraft, cut_from=cut[0], cut_to=cut[1])
    assert known.all_under(frozenset({1}), 1) is under
    assert not known.all_under(frozenset({2}), 1)


@pytest.mark.parametrize(
    ("fault", "faulted", "maybe"),
    [
        ("b1,b3 20..30 kind=kill", True, True),
        ("b1,b3 20..30 kind=pause plane=client", True, True),
        ("b1,b3 20..30 kind=wipe", True, True),
        ("b1,b3 20..30 kind=isolate", True, True),
        ("b1,b3 20..30 kind=isolate plane=controller", True, True),
        ("b1,b3 20..30 kind=isolate plane=replication", False, False),
        ("b1,b3 20..30 kind=isolate plane=client", False, False),
        ("b1,b3 20..30 kind=slow plane=all", False, True),
        ("b1,b3 20..30 kind=slow plane=client", False, False),
        ("b1,b3 20..30 kind=duplicate plane=client", False, False),
        ("b1,b3,c1 20..30 from=b1,b3 to=c1 plane=controller", True, True),
        ("b1,b3,c1 20..30 from=c1,b2 to=b1,b3 plane=all", True, True),
        ("b1,b3,c1 20..30 from=c1,b1,b3 to=b2 plane=all", False, False),
        ("b1,b3,c2 20..30 from=b1,b3 to=c2 plane=controller", False, True),
        ("b1,b3,c1 20..30 from=b1,b3 to=c1 plane=replication", False, False),
        ("b1,b3,clients 20..30 from=b1,b3 to=clients plane=all", False, False),
        ("b1,b3 5..16 kind=slow plane=client", False, False),
        ("b1,b3 20..21.9 kind=pause", False, True),
        ("b1,b3 20..24 kind=pause", False, True),
        ("b1,b3 20..24.1 kind=pause", True, True),
        ("b1,b3 20..21.9 kind=isolate", False, True),
        ("b1,b3 20..21.9 kind=kill", True, True),
    ],
    ids=[
        *("dead", "halted", "without their disks", "cut off", "from the controller", "from other brokers"),
        *("from clients", "late", "to clients", "twice to clients", "two sides", "the other way round"),
        *("on its side", "from one that is not all", "of what they replicate", "from clients alone", "healed"),
        *("halted for a moment", "until it was reported in sync", "for longer", "cut off for a moment"),
        "ended for a moment",
    ],
)
def test_an_isr_is_faulted_if_none_of_its_members_could_be_elected(fault: str, faulted: bool, maybe: bool) -> None:
    known = acting(f"fault f {fault}", reports=ONE_WATCHES)
    assert known.isr_faulted(1) is faulted
    assert known.isr_may_be_faulted(1) is maybe


def test_brokers_cut_from_one_controller_may_be_cut_from_all_if_no_controller_is_known() -> None:
    reported, cut = by_hand(*TWO_TERMS), by_hand("fault f b1,b3,c1 20..30 from=b1,b3 to=c1 plane=all").rows["faults"]
    known = acting_on(evidence(reported, **ALONE).elections[TRIAL], cut, kraft=True)
    assert (known.isr_faulted(1), known.isr_may_be_faulted(1)) == (False, True)


def test_of_a_cut_without_its_sides_nobody_knows_whom_it_kept_from_the_controller() -> None:
    known = acting("fault f b1,b3 20..30")
    assert (known.isr_faulted(1), known.isr_may_be_faulted(1)) == (False, True)


def test_with_zookeeper_who_is_cut_from_its_nodes_cannot_be_elected() -> None:
    recorded = by_hand(*TWO_TERMS)
    for other, faulted in (("z1", True), ("b2", False)):
        cut = by_hand(f"fault f b1,b3,{other} 20..30 from=b1,b3 to={other} plane=all").rows["faults"]
        known = acting_on(evidence(recorded, **ALONE).elections[TRIAL], cut, False, frozenset({"z1"}))
        assert (known.isr_faulted(1), known.all_under(frozenset({1}), 1)) == (faulted, faulted)


def test_of_the_isr_before_the_first_term_nobody_knows_whether_faults_hit_it() -> None:
    known = acting("fault f b1,b3 20..30 kind=isolate")
    assert not known.isr_faulted(0)
    assert known.isr_faulted(1)
    assert not acting("fault f b1 20..30 kind=isolate").isr_faulted(1)


@pytest.mark.parametrize(
    ("leader", "other", "faulted"),
    [
        ("19..90", "19..90", True),
        ("20.1..90", "20.1..90", True),
        ("20.5..90", "20.1..90", True),
        ("20.1..90", "20.9..90", False),
        ("20.1..90", "21.1..90", False),
        ("17..19.5", "18..90", True),
        ("10..12", "18..90", False),
        ("50..90", "20.9..90", False),
    ],
    ids=[
        *("before", "at once", "the other first", "the other later", "after it was seen"),
        *("healed", "healed, and it led again", "no reason"),
    ],
)
def test_a_fault_that_began_after_an_election_may_have_come_does_not_excuse_it(
    leader: str, other: str, faulted: bool
) -> None:
    """b2, of the ISR as b1 was, was passed over for b3: between two samples, at 20 s and 21 s."""
    lines = [f"fault k b1 {leader} kind=stop", f"fault k2 b2 {other} kind=stop", *saw("b3", "21..60", 3, 1, "3")]
    watched = [*saw("b1,b2", "0..17", 1, 0, "1,2"), *saw("b3", "0..20", 1, 0, "1,2")]
    recorded = by_hand(*watched, *lines)
    known = acting_on(evidence(recorded).elections[TRIAL], recorded.rows["faults"], kraft=True)
    assert known.isr_faulted(1) is faulted
    assert known.isr_may_be_faulted(1) is (other != "21.1..90" and leader != "50..90")


#: b1 leads with ``isr`` in sync, as it and b3 report, and is stopped at 30 s; b3, outside, leads from 31 s on.
def passed_over(*lines: str, isr: str = "1,2") -> Acting:
    watched = [*saw("b1,b3", "0..30", 1, 0, isr), "fault k b1 30.1..90 kind=stop", *saw("b3", "31..60", 3, 1, "3")]
    recorded = by_hand(*watched, *lines)
    return acting_on(evidence(recorded).elections[TRIAL], recorded.rows["faults"], kraft=True)


@pytest.mark.parametrize(
    ("fault", "heard", "faulted"),
    [
        ("kind=kill", "25..30", False),
        ("kind=kill", "30..30", True),
        ("kind=kill", "61..61", True),
        ("kind=pause", "25..30", False),
        ("kind=isolate", "25..30", False),
        ("kind=wipe", "25..30", False),
    ],
    ids=["back", "just back", "never back in time", "halted", "cut off", "wiped"],
)
def test_a_broker_that_is_back_in_the_isr_of_another_could_be_elected(fault: str, heard: str, faulted: bool) -> None:
    """b2 was healed at 24 s."""
    known = passed_over(*saw("b2", "0..9", 1, 0, "1,2"), f"fault f b2 10..24 {fault}", *saw("b2", heard, 1, 0, "1,2"))
    assert (known.isr_faulted(1), known.isr_may_be_faulted(1)) == (faulted, True)


@pytest.mark.parametrize(("healed", "faulted"), [("29.1", True), ("29", False), ("", True)])
def test_a_cut_counts_until_a_lag_after_the_broker_is_reported_in_the_isr(healed: str, faulted: bool) -> None:
    assert passed_over(f"fault f b2 20..{healed} kind=isolate").isr_faulted(1) is faulted


@pytest.mark.parametrize(
    ("released", "heard", "faulted"),
    [(12, [], False), (29.5, [], True), (None, ["12..30"], False), (None, ["60..60"], True), (None, [], False)],
    ids=["begun again", "begun again just now", "heard since", "heard after the heal", "never heard again"],
)
def test_one_of_several_could_be_elected_once_it_had_been_begun_again(
    released: float | None, heard: list[str], faulted: bool
) -> None:
    """One fault killed b2 and b4 at 5 s, and the last of them was begun again at 50 s."""
    lines = [*saw("b2", "0..4", 1, 0, "1,2"), "fault f b2,b4 5..50 kind=kill"]
    lines += [line for times in heard for line in saw("b2", times, 1, 0, "1,2")]
    recorded = by_hand(
        *saw("b1,b3", "0..30", 1, 0, "1,2"), *lines, "fault k b1 30.1..90 kind=stop", *saw("b3", "31..60", 3, 1, "3")
    )
    if released is not None:
        recorded.rows["faults"][0]["evidence"] = json.dumps({"released": {"b2": {"at_ns": int(released * SECOND)}}})
    assert faulted_of(recorded) is faulted


@pytest.mark.parametrize(
    ("faults", "faulted"),
    [
        (["20..25"], False),
        (["20..25", "58..90"], False),
        (["20..25", "30..90"], True),
        (["20..90"], True),
    ],
    ids=["before", "before and as it was seen", "twice", "throughout"],
)
def test_it_had_to_be_unfit_over_all_the_time_in_which_the_election_may_have_come(
    faults: list[str], faulted: bool
) -> None:
    """b1 was killed at 24.5 s; nobody reported anything until b3 led at 60 s."""
    lines = [f"fault f{n} b2 {when} kind=kill" for n, when in enumerate(faults)]
    watched = [*saw("b1,b3", "0..24", 1, 0, "1,2"), *saw("b2", "0..19", 1, 0, "1,2"), *saw("b3", "60..90", 3, 1, "3")]
    recorded = by_hand(*watched, "fault k b1 24.5..90 kind=kill", *lines)
    assert faulted_of(recorded) is faulted


@pytest.mark.parametrize(
    ("kind", "seen", "faulted"),
    [
        *(("pause", 21, False), ("pause", 22, False), ("pause", 26, True)),
        *(("isolate", 22, False), ("isolate", 26, True), ("kill", 21, True), ("stop", 26, True)),
    ],
)
def test_a_silent_isr_is_faulted_only_after_its_session_timed_out(kind: str, seen: int, faulted: bool) -> None:
    """b1 and b2, the ISR, are hit at 20.5 s; b3 is first seen to lead later."""
    watched = [*saw("b1,b2,b3", "0..20", 1, 0, "1,2"), *saw("b3", f"{seen}..60", 3, 1, "3")]
    watched += saw("b3", f"21..{seen - 1}", 1, 0, "1,2") if seen > 21 else []
    recorded = by_hand(*watched, f"fault k b1 20.5..90 kind={kind}", f"fault l b2 20.5..90 kind={kind}")
    assert faulted_of(recorded) is faulted


@pytest.mark.parametrize(
    ("watched", "more", "faulted"),
    [
        ("0..20", [], False),
        ("0..20", ["fault c b1,b2 5..60 from=b1 to=b2 plane=replication"], True),
        ("0..20", ["fault c b2 20..60 kind=kill"], True),
        ("0..28", [], True),
    ],
    ids=["it may have joined", "it was cut off", "it was dead", "no silence"],
)
def test_the_isr_is_not_faulted_if_a_live_broker_may_have_joined_it_unseen(
    watched: str, more: list[str], faulted: bool
) -> None:
    """b1, alone in the ISR, was killed at 30 s; b2 reported the same. b3 was down until 38 s."""
    lines = [*saw("b1,b2", watched, 1, 0, "1"), *saw("b3", "0..14", 1, 0, "1"), *saw("b3", "40..90", 3, 1, "3")]
    lines += ["fault k3 b3 15..38 kind=kill", "fault k b1 30..90 kind=kill", *more]
    recorded = by_hand(*lines)
    assert faulted_of(recorded) is faulted


#: b1 led alone in the ISR until it was killed at 30 s; nobody but b4, which has no replica, reported anything from 21 s
#: to 39 s; b2 was up.
HOLE = [
    *saw("b1,b2", "0..20", 1, 0, "1"),
    *saw("b3", "0..14", 1, 0, "1"),
    *saw("b4", "0..39", 1, 0, "1"),
    *saw("b2,b3", "40..90", 3, 1, "3"),
    "fault k3 b3 15..38 kind=kill",
    "fault k b1 30..90 kind=kill",
]


@pytest.mark.parametrize(
    ("fault", "faulted"),
    [
        ("b4 15..45 kind=isolate plane=all", False),
        ("b4 15..45 kind=isolate plane=controller", False),
        ("b4 15..45 kind=slow plane=all", False),
        ("b4,c1 15..45 from=b4 to=c1 plane=controller", False),
        ("c1 15..45 kind=pause", True),
        ("c1 15..45 kind=slow", False),
        ("b4 15..45 kind=isolate plane=replication", True),
        ("b4 15..45 kind=slow plane=client", True),
        ("b4,b2 15..45 from=b4 to=b2 plane=all", True),
        ("b4 5..15 kind=isolate plane=all", True),
        ("b4 15..26 kind=isolate plane=all", True),
        ("b4 15..29 kind=isolate plane=all", False),
        ("b4 32..45 kind=isolate plane=all", True),
        ("b4 25..28 kind=isolate plane=all", True),
    ],
    ids=[
        *("cut off", "from the controllers", "late", "two sides", "a halted controller"),
        *("a late controller", "from brokers"),
        *("late for clients", "from a broker", "before", "until long before", "until just before", "after"),
        "in between",
    ],
)
def test_a_broker_that_may_miss_isr_changes_does_not_prove_that_there_were_none(fault: str, faulted: bool) -> None:
    recorded = by_hand(*HOLE, f"fault f {fault}")
    assert faulted_of(recorded) is faulted


@pytest.mark.parametrize(
    ("epoch", "more", "faulted"),
    [
        (1, [], True),
        (2, [], False),
        (2, ["fault l b2 24..61 kind=kill"], False),
    ],
    ids=["nobody led in between", "somebody may have", "it was dead since"],
)
def test_the_isr_is_not_faulted_if_another_broker_may_have_led_an_unreported_epoch(
    epoch: int, more: list[str], faulted: bool
) -> None:
    """b1, alone in the ISR, was killed at 21 s; b3 leads at 60 s, in the next epoch or the one after it."""
    led = [*saw("b1,b3", "0..20", 1, 0, "1"), *saw("b2", "0..18", 1, 0, "1"), *saw("b3", "60..90", 3, epoch, "3")]
    recorded = by_hand(*led, "fault k b1 20.5..120 kind=kill", *more)
    assert faulted_of(recorded) is faulted


@pytest.mark.parametrize(
    ("before", "faulted"),
    [
        ([], False),
        (["fault p b1 20.5..23.5 kind=pause"], False),
        (["fault p b1 20.5..60 kind=pause"], True),
        (["fault p b1 20.5..23.5 kind=pause", "fault c b1,b2 10..60 from=b1 to=b2 plane=replication"], True),
        (["fault p b1 20.5..23.5 kind=pause", "fault c b2 20.5..41 kind=kill"], True),
    ],
    ids=["killed alone", "and halted before", "and halted until then", "cut off meanwhile", "dead meanwhile"],
)
def test_a_leader_may_have_led_on_after_a_fault_that_was_healed(before: list[str], faulted: bool) -> None:
    """b1 was alone in the ISR, and was killed at 33 s; nobody reported anything until b3 led at 41 s."""
    lines = [*saw("b1,b2", "0..20", 1, 0, "1"), *saw("b3", "0..14", 1, 0, "1"), *saw("b2,b3", "41..60", 3, 1, "3")]
    recorded = by_hand(*lines, "fault k3 b3 15..38 kind=kill", *before, "fault k b1 33..90 kind=kill")
    assert faulted_of(recorded) is faulted


@pytest.mark.parametrize(("plane", "faulted"), [("controller", False), ("replication", True), ("client", True)])
def test_the_last_isr_is_that_of_brokers_that_were_not_behind(plane: str, faulted: bool) -> None:
    """b2 is in the ISR since 20 s, as b1 and b2 report; b3, late, reports the ISR of before from 22 s on."""
    led = [
        *saw("b1,b2", "0..4", 1, 0, "1,2,3"),
        *saw("b1,b2", "5..19", 1, 0, "1"),
        *saw("b1,b2", "20..39", 1, 0, "1,2"),
    ]
    led += [*saw("b3", "0..21", 1, 0, "1,2,3"), *saw("b3", "22..39", 1, 0, "1"), *saw("b2,b3", "40..60", 3, 1, "3")]
    recorded = by_hand(*led, f"fault s b3 2..60 kind=slow plane={plane}", "fault k b1 39.5..90 kind=stop")
    assert faulted_of(recorded) is faulted


@pytest.mark.parametrize(
    ("kind", "faulted"), [("isolate plane=all", False), ("pause", False), ("slow plane=client", True)]
)
@pytest.mark.parametrize(("hit", "kraft"), [("b4", False), ("z1", False), ("c1", True)])
def test_while_another_controller_is_elected_nobody_tells_of_a_new_isr(
    hit: str, kraft: bool, kind: str, faulted: bool
) -> None:
    """b1, alone in the ISR as b2 and b3 report until 24 s, was killed; b3 was elected, and not b2. With ZooKeeper any
    broker may have been the controller."""
    led = [*saw("b1,b2,b3", "0..24", 1, 0, "1"), *saw("b2,b3", "30..60", 3, 1, "3")]
    recorded = by_hand(*led, f"fault f {hit} 20.5..60 kind={kind}", "fault k b1 24.5..90 kind=stop")
    settings = {"version": "3.9.2", "metadata": "kraft" if kraft else "zookeeper"}
    assert faulted_of(recorded, **settings) is faulted


@pytest.mark.parametrize(
    ("fault", "kraft", "until"),
    [
        ("b1 10..20 kind=pause", True, [9, 10, 10, 21]),
        ("b2 10..20 kind=pause", True, [9, 15, 20, 21]),
        ("b1 10..20 kind=isolate plane=all", False, [9, 10, 10, 21]),
        ("b1,c1 10..20 from=b1 to=c1 plane=controller", True, [9, 10, 10, 21]),
        ("b1,c1 10..20 from=b1 to=c1 plane=controller", False, [9, 15, 20, 21]),
    ],
    ids=["halted", "another", "cut off", "cut from the controllers", "cut from ZooKeeper, not from the controller"],
)
def test_a_leader_lets_nobody_in_that_is_halted_or_cannot_ask(fault: str, kraft: bool, until: list[int]) -> None:
    known = acting(f"fault f {fault}", kraft=kraft)
    assert [known.admits_until(1, at * SECOND) for at in (9, 15, 20, 21)] == [at * SECOND for at in until]


def test_a_leader_may_let_others_in_as_soon_as_it_is_being_healed() -> None:
    known = acting("fault f b1,b4 10..30 kind=isolate plane=all", healing_ns=20 * SECOND)
    assert [known.admits_until(1, at * SECOND) for at in (15, 20, 21, 29)] == [at * SECOND for at in (10, 10, 21, 29)]


@pytest.mark.parametrize(("nodes", "barred"), [("b1,b4", False), ("b1", True)])
def test_one_of_several_that_was_started_again_before_the_others_may_let_others_in(nodes: str, barred: bool) -> None:
    evidence = json.dumps({"released": {"b1": {"at_ns": 13 * SECOND}} if nodes != "b1" else {}})
    known = acting(
        f"fault f {nodes} 10..30 kind=kill", reports=["saw b2 @0..40 leader=1 epoch=0 isr=1"], evidence=evidence
    )
    assert (known.admits_until(1, 20 * SECOND) == 10 * SECOND) is barred


def test_a_time_that_no_clock_tells_is_no_crash() -> None:
    led = [*saw("b1,b2,b3", "0..24", 1, 0, "1,2"), *saw("b2,b3", "30..60", 3, 1, "3")]
    recorded = by_hand(*led, "fault k b1 24.5..90 kind=stop", "fault i b2 10..20 kind=isolate plane=all")
    recorded.rows["faults"][1]["healed_ns"] = (1 << 62) + SECOND
    assert faulted_of(recorded)


@pytest.mark.parametrize("kind", ["pause", "isolate plane=all", "slow plane=controller", "flaky plane=all"])
@pytest.mark.parametrize(
    ("controller", "more", "faulted"),
    [
        ({}, [], False),
        ({"b1,b2,b3": 4}, [], False),
        ({"b1,b2,b3": 2}, [], True),
        ({"b1": 4, "b2,b3": 2}, [], False),
        ({"b1,b2,b3": -1}, [], False),
        ({"b1,b2,b3": 2}, ["fault s b2 12..13 kind=pause"], False),
        ({"b1,b2,b3": 2}, ["fault s z1 12..13 kind=slow plane=controller"], False),
        ({"b1,b2,b3": 2}, ["fault s b3 12..13 kind=pause"], True),
        ({"b1,b2,b3": 2}, ["fault s b2,b3 12..13 from=b2 to=b3 plane=all"], True),
        ({"b1,b2,b3": 2}, ["fault s b4,clients 12..13 from=b4 to=clients plane=all"], True),
        ({"b1,b2,b3": 2}, ["fault s b4,z1 12..13 from=b4 to=z1 plane=controller"], True),
        ({"b1,b2,b3": 2}, ["fault s b2,z1 12..13 from=b2 to=z1 plane=controller"], False),
    ],
    ids=[
        *("not recorded", "it", "another", "one says it", "nobody", "it may be now", "or now", "nor now"),
        *("nor by a cut from brokers", "nor from clients", "nor of another", "but by one from ZooKeeper"),
    ],
)
def test_with_zookeeper_only_a_fault_of_the_controller_makes_others_late(
    controller: dict[str, int], more: list[str], faulted: bool, kind: str
) -> None:
    """b1, alone in the ISR as b2 and b3 report, was killed under a fault of b4; b3 was elected, and not b2."""
    led = [*saw("b1,b2,b3", "0..24", 1, 0, "1"), *saw("b2,b3", "30..60", 3, 1, "3")]
    for line in range(len(led)):
        of = next((number for names, number in controller.items() if led[line].split()[1] in names), None)
        led[line] += "" if of is None else f" controller={of}"
    recorded = by_hand(*led, f"fault f b4 20.5..60 kind={kind}", "fault k b1 24.5..90 kind=stop", *more)
    assert faulted_of(recorded, version="3.9.2", metadata="zookeeper") is faulted


@pytest.mark.parametrize(("version", "behind"), [("2.6.0", []), ("2.7.0", [(20, 30)])])
def test_before_the_controller_decides_isrs_nobody_is_behind_for_another_brokers_fault(
    version: str, behind: list[tuple[int, int]]
) -> None:
    recorded = by_hand(*TWO_TERMS, "fault k b3 20..21 kind=kill")
    elections = evidence(recorded, version=version, metadata="zookeeper").elections[TRIAL]
    known = acting_on(elections, recorded.rows["faults"], kraft=False)
    seconds = [at for at in range(60) if known.behind("b1", at * SECOND, at * SECOND)]
    assert seconds == [at for since, until in behind for at in range(since, until + 1)]


@pytest.mark.parametrize(("hole", "faulted"), [(True, False), (False, True)])
def test_without_epochs_anybody_may_have_led_in_a_silence(hole: bool, faulted: bool) -> None:
    """b1, alone in the ISR since 81 s, was killed at 120 s; b2 is cut off from it, and b3 leads at 160 s."""
    led = [*saw("b1,b2,b3", "0..80", 1, None, "1,2"), *saw("b1,b2,b3", "81..120", 1, None, "1")]
    led += [*([] if hole else saw("b2,b3", "121..159", 1, None, "1")), *saw("b2,b3", "160..205", 3, None, "3")]
    cuts = [f"fault c{other} b1,b{other} 78.5..170 from=b1 to=b{other} plane=replication" for other in (2, 3)]
    recorded = by_hand(*led, *cuts, "fault k b1 120.1..270 kind=kill")
    assert faulted_of(recorded, version="1.1.1", metadata="zookeeper") is faulted


def test_another_controller_is_elected_within_seconds() -> None:
    """One of several controllers is halted all the time; the ISR that is reported later is not an old one."""
    led = [*saw("b1,b2,b3", "0..24", 1, 0, "1"), *saw("b2,b3", "25..60", 3, 1, "3")]
    recorded = by_hand(*led, "fault f c2 5..60 kind=pause", "fault k b1 24.5..90 kind=stop")
    assert faulted_of(recorded)


@pytest.mark.parametrize(("epoch", "faulted"), [(1, True), (2, False)])
def test_a_missing_epoch_is_a_leader_whom_nobody_reported_however_short_the_time(epoch: int, faulted: bool) -> None:
    """b1, the ISR, was stopped at 20.1 s; b3 is seen to lead at 21 s; b2 was up."""
    led = [*saw("b1,b2,b3", "0..20", 1, 0, "1"), *saw("b2,b3", "21..60", 3, epoch, "3")]
    recorded = by_hand(*led, "fault k b1 20.1..90 kind=stop")
    assert faulted_of(recorded) is faulted


def test_a_broker_cut_from_replication_may_have_led_unseen() -> None:
    """b2 is cut from all brokers, and not from the controllers; it may have led in the missing epoch."""
    led = [*saw("b1,b2,b3", "0..20", 1, 0, "1"), *saw("b2,b3", "24..60", 3, 2, "3")]
    recorded = by_hand(*led, "fault k b1 20.1..90 kind=stop", "fault i b2 5..60 kind=isolate plane=replication")
    assert not faulted_of(recorded)


@pytest.mark.parametrize(("b2", "faulted"), [("9..61", True), ("9..49", False), ("19.5..61", False)])
def test_a_broker_that_was_dead_all_the_time_did_not_lead_unseen(b2: str, faulted: bool) -> None:
    """b1, the ISR, is dead since 10 s, and nobody led in epoch 1; b3 leads at 60 s in epoch 3."""
    led = [*saw("b1,b3", "0..9", 1, 0, "1"), *saw("b2", "0..8", 1, 0, "1"), *saw("b3", "11..20", -1, 1, "1")]
    recorded = by_hand(
        *led, *saw("b3", "60..90", 3, 3, "3"), "fault k b1 10..120 kind=kill", f"fault l b2 {b2} kind=kill"
    )
    assert faulted_of(recorded) is faulted


@pytest.mark.parametrize(
    ("settings", "cut", "faulted"),
    [
        ({"version": "2.6.0", "metadata": "zookeeper"}, [], False),
        (
            {"version": "2.6.0", "metadata": "zookeeper"},
            ["fault c b1,b2 45..190 from=b1 to=b2 plane=replication"],
            False,
        ),
        ({"version": "2.7.0", "metadata": "zookeeper"}, [], True),
        ({"version": "2.6.0", "metadata": "zookeeper"}, ["fault c b1,b2 9..190 from=b1 to=b2 plane=replication"], True),
    ],
    ids=["reported late", "cut off since", "reported at once", "cut off for so long"],
)
def test_another_broker_may_have_joined_an_isr_that_is_reported_late(
    settings: dict[str, str], cut: list[str], faulted: bool
) -> None:
    """b1, reported alone in the ISR for 80 s, was stopped; b3 was elected, and not b2."""
    led = [*saw("b1,b2,b3", "0..80", 1, 0, "1"), *saw("b2,b3", "81..190", 3, 1, "3")]
    recorded = by_hand(*led, "fault k b1 80.5..190 kind=stop", *cut)
    assert faulted_of(recorded, **settings) is faulted


@pytest.mark.parametrize(("cut", "faulted"), [("48..190", True), ("50..190", False)])
def test_an_isr_that_is_reported_late_held_when_it_was_first_reported(cut: str, faulted: bool) -> None:
    """Kafka 2.6: b1 is reported alone in the ISR from 50 s on; b2 is cut off from b1, and was not elected."""
    led = [
        *saw("b1,b2,b3", "0..49", 1, 0, "1,2"),
        *saw("b1,b2,b3", "50..80", 1, 0, "1"),
        *saw("b2,b3", "81..190", 3, 1, "3"),
    ]
    faults = [f"fault c b1,b2 {cut} from=b1 to=b2 plane=replication", "fault k b1 80.5..190 kind=stop"]
    recorded = by_hand(*led, *faults)
    assert faulted_of(recorded, version="2.6.0", metadata="zookeeper") is faulted


@pytest.mark.parametrize(
    ("version", "joined", "faulted"),
    [("2.6.0", 26, False), ("2.6.0", 23, True), ("2.7.0", 26, False), ("2.7.0", 23, False)],
)
def test_a_broker_that_is_reported_in_the_isr_again_after_a_heal_is_back(
    version: str, joined: int, faulted: bool
) -> None:
    """b2 was cut off until 24 s, and is reported in the ISR from some time on. (If ISRs are reported late, one that was
    reported before the heal may be the ISR from before the cut.)"""
    led = [*saw("b1,b3", "0..9", 1, 0, "1,2"), *saw("b1,b3", f"10..{joined - 1}", 1, 0, "1")]
    led += [
        *saw("b1,b2,b3", f"{joined}..30", 1, 0, "1,2"),
        *saw("b2,b3", "31..60", 3, 1, "3"),
        *saw("b1", "95..99", 3, 1, "2,3"),
    ]
    faults = ["fault f b2 9.5..24 kind=isolate plane=all", "fault k b1 30.1..90 kind=stop"]
    cut = ["fault c b1,b3 0..90 from=b1 to=b3 plane=replication"]
    recorded = by_hand(*led, *faults, *cut)
    assert faulted_of(recorded, version=version, metadata="zookeeper") is faulted


@pytest.mark.parametrize(
    ("cut", "faulted"),
    [
        ("fault c b1,b4,b2 20.5..60 from=b1,b4 to=b2,c1 plane=all", False),
        ("fault c b1,b4,b2 20.5..60 from=b1 to=b2,b4,c1 plane=all", False),
        ("fault c b1,b4,b2 20.5..60 from=b1,b4 to=b2 plane=all", True),
    ],
    ids=["on the larger side", "on the smaller side", "from brokers alone"],
)
def test_a_leader_that_is_cut_from_the_controllers_may_be_deposed_since_then(cut: str, faulted: bool) -> None:
    """b2, in the ISR as b1 was, lived until 35 s; b3 leads at 40 s."""
    led = [*saw("b1,b2", "0..20", 1, 0, "1,2"), *saw("b3", "0..14", 1, 0, "1,2"), *saw("b3", "40..105", 3, 1, "3")]
    recorded = by_hand(*led, "fault k3 b3 15..33.2 kind=kill", cut, "fault k b1,b2 35.1..120 kind=kill")
    known = acting_on(evidence(recorded).elections[TRIAL], recorded.rows["faults"], True, frozenset({"c1"}))
    assert known.isr_faulted(1) is faulted


def test_a_cut_goes_on_when_a_process_behind_it_is_begun_again() -> None:
    """b1, the ISR, is cut off from 20 s on and begun again within; b3, down until 50 s, leads at 58 s."""
    led = [*saw("b1,b2,b3", "0..19", 1, 0, "1"), *saw("b3", "52..57", 1, 0, "1"), *saw("b3", "58..90", 3, 1, "3")]
    faults = [
        "fault k b2,b3 20..50 kind=kill",
        "fault i b1 20..90 kind=isolate plane=all",
        "fault r b1 22..24 kind=restart",
    ]
    recorded = by_hand(*led, *faults)
    recorded.rows["faults"][2]["evidence"] = json.dumps({"released": {"b1": {"at_ns": 24 * SECOND}}})
    assert faulted_of(recorded)


@pytest.mark.parametrize(
    ("died", "by_hand_too", "epoch", "faulted"),
    [(24, True, 1, True), (24, True, 2, False), (24, False, 1, False), (41, True, 1, False)],
    ids=["before", "it may have made another term", "nobody asked", "after"],
)
def test_an_election_by_hand_came_no_sooner_than_it_was_asked_for(
    died: int, by_hand_too: bool, epoch: int, faulted: bool
) -> None:
    """b1 was killed at 20.5 s, b2, in sync too, later; nobody reported anything until b3 led at 41 s."""
    led = saw("b3", "41..90", 3, epoch, "3")
    lines = [*saw("b1,b2", "0..20", 1, 0, "1,2"), *saw("b3", "0..14", 1, 0, "1,2"), *led]
    lines += ["fault k3 b3 15..38 kind=kill", "fault k b1 20.5..90 kind=kill", f"fault l b2 {died}..90 kind=kill"]
    recorded = by_hand(*lines, *(["fault e - 40..40.5 p0 unclean"] if by_hand_too else []))
    assert faulted_of(recorded) is faulted


@pytest.mark.parametrize(("killed", "faulted"), [("20.5..90", True), ("39.5..90", False)])
def test_nobody_joins_the_isr_of_a_leader_that_is_dead(killed: str, faulted: bool) -> None:
    """b1 was alone in the ISR; b3 was elected by hand at 40 s; nobody reported anything since 20 s, and b2 was up."""
    lines = [*saw("b1,b2", "0..20", 1, 0, "1"), *saw("b3", "0..14", 1, 0, "1"), *saw("b3", "41..90", 3, 1, "3")]
    recorded = by_hand(
        *lines, "fault k3 b3 15..38 kind=kill", f"fault k b1 {killed} kind=kill", "fault e - 40..40.5 p0 unclean"
    )
    assert faulted_of(recorded) is faulted


@pytest.mark.parametrize(
    ("asked", "made"),
    [
        ("25..26", True),
        ("26..27", True),
        ("26.001..27", False),
        ("20..23", True),
        ("20..22.999", False),
    ],
    ids=["before it was seen", "as it was seen", "later", "as it may have begun", "too early"],
)
def test_an_election_by_hand_made_the_first_term_that_was_seen_after_it(asked: str, made: bool) -> None:
    """b2 was first seen to lead at 26 s, and may have begun from 24 s on."""
    known = acting(f"fault e - {asked} unclean")
    assert known.any_by_hand
    assert known.by_hand(1) is made
    assert not known.by_hand(0)
    assert known.unseen_by_hand is not made


@pytest.mark.parametrize(
    ("asked", "reported", "next_ns", "made"),
    [
        ("24..25", "26..30", 26, {1, 2}),
        ("24..25", "25..30", 26, {1, 2}),
        ("24..25", "40..45", 26, {1, 2}),
        ("24..25", "25..28", 29, {1}),
        ("24..26", "25..28", 29, {1, 2}),
        ("24..25 unknown", "25..28", 29, {1, 2}),
        ("24..25 unknown", "25..49", 50, {1, 2}),
        ("27..28", "25..27", 28, {2}),
        ("27..28 unknown", "25..27", 28, {2}),
    ],
    ids=["at once", "before", "late", "long before", "both may be", "no answer", "none for long", "then", "then, late"],
)
def test_an_election_by_hand_made_any_term_of_its_time(asked: str, reported: str, next_ns: int, made: set[int]) -> None:
    """b3 was first seen to lead in epoch 2; b2 led in epoch 1."""
    lines = [f"fault e - {asked} unclean", *saw("b3", f"{next_ns}..60", 3, 2, "3"), *saw("b2", reported, 2, 1, "2")]
    seen = by_hand(*saw("b1", "0..23", 1, 0, "1,2"), *lines)
    seen.rows["faults"][0]["effective"] = True
    known = acting_on(evidence(seen).elections[TRIAL], seen.rows["faults"], kraft=True)
    assert {n for n in range(3) if known.may_be_by_hand(n)} == made
    assert {n for n in range(3) if known.by_hand(n)} == (made if len(made) == 1 else set())
    assert not known.unseen_by_hand


@pytest.mark.parametrize(
    ("epoch", "more", "made", "unseen"),
    [
        (1, [], True, False),
        (2, [], False, True),
        (2, ["saw b2 @24 leader=-1 epoch=1 isr=1,2"], True, False),
        (3, ["saw b2 @24 leader=-1 epoch=1 isr=1,2"], False, True),
    ],
    ids=["the next epoch", "one is missing", "nobody led in it", "another is missing"],
)
def test_an_election_by_hand_made_no_term_for_certain_where_an_epoch_before_it_is_missing(
    epoch: int, more: list[str], made: bool, unseen: bool
) -> None:
    lines = [*saw("b1", "0..23", 1, 0, "1,2"), *more, "fault e - 24.5..25 unclean", *saw("b3", "26..60", 3, epoch, "3")]
    seen = by_hand(*lines)
    known = acting_on(evidence(seen).elections[TRIAL], seen.rows["faults"], kraft=True)
    assert (known.by_hand(1), known.may_be_by_hand(1), known.unseen_by_hand) == (made, True, unseen)


@pytest.mark.parametrize(("until", "epoch", "made"), [(28, 2, True), (26, 3, False), (27, 3, False), (28, 3, True)])
def test_an_election_by_hand_made_no_term_for_certain_where_another_may_have_followed(
    until: int, epoch: int, made: bool
) -> None:
    """It came by 25 s; b2 led in epoch 1; b3 was seen to lead from 40 s on."""
    seen = by_hand(
        *saw("b1", "0..23", 1, 0, "1,2"),
        *saw("b2", f"25..{until}", 2, 1, "2"),
        *saw("b3", "40..60", 3, epoch, "3"),
        "fault e - 24..25 unclean",
    )
    known = acting_on(evidence(seen).elections[TRIAL], seen.rows["faults"], kraft=True)
    assert known.may_be_by_hand(1)
    assert (known.by_hand(1), known.unseen_by_hand) == (made, not made)


def test_of_two_elections_by_hand_one_may_not_have_been_seen() -> None:
    known = acting("fault e - 25..26 unclean", "fault f - 50..51 unclean")
    assert (known.by_hand(1), known.unseen_by_hand) == (True, True)
    assert not acting("fault e - 25..26 unclean missed").any_by_hand
    assert not acting("fault e - 25..26 p1 unclean").any_by_hand


def test_all_is_healed_when_the_last_was() -> None:
    assert acting("fault f b1 3..9", "fault g b1 4..7", "fault h b2 5..").healed_ns == 9 * SECOND
    assert acting("fault h b2 5..").healed_ns == BEFORE


@pytest.mark.parametrize(
    ("fault", "late"),
    [
        ("c1 12..25 kind=pause", True),
        ("c1 12..25 kind=kill", True),
        ("c1 12..25 kind=slow", True),
        ("c1 12..25 kind=slow plane=client", False),
        *((f"{node} 12..25 kind={kind}", True) for node in ("c1", "b1") for kind in ("flaky", "throttle", "corrupt")),
        *((f"{node} 12..25 kind=duplicate", False) for node in ("c1", "b1")),
        ("b2 12..25 kind=flaky", False),
        ("b1 12..25 kind=flaky plane=replication", False),
        ("c1,c2 12..25 from=c1 to=c2 plane=all", True),
        ("b1 12..25 kind=isolate", True),
        ("b1 12..26 kind=isolate", True),
        ("b1 12..27 kind=isolate", False),
        ("b1 12.. kind=isolate", False),
        ("b1 12..25 kind=isolate plane=replication", False),
        ("b1,c1 12..25 from=b1 to=c1 plane=controller", True),
        ("b1,c1 12..27 from=b1 to=c1 plane=controller", False),
        ("b2,c1 12..25 from=b2 to=c1 plane=controller", False),
        ("b1,b2 12..25 from=b1 to=b2 plane=all", False),
        ("b1,clients 12..25 from=b1 to=clients plane=all", False),
        ("b1,b2 12..25 kind=partition", False),
        ("b1 12..27 kind=slow", True),
        ("b1 12..25 kind=kill", False),
        ("b1 12..25 kind=pause", False),
        ("b2 12..25 kind=isolate", False),
        ("c1 5..8 kind=pause", False),
        ("c1 5..9 kind=pause", True),
    ],
    ids=[
        *("controllers halted", "ended", "slow", "slow to clients"),
        *(f"{whose} {what}" for whose in ("their packets", "its own") for what in ("lost", "limited", "corrupt")),
        *("their packets twice", "its own twice", "those of another", "its own to followers", "cut from each other"),
        *("cut off", "until it was elected", "longer", "for ever", "from followers", "from the controllers"),
        *("from them for longer", "another from them", "brokers", "from clients", "brokers, as reported before"),
        *("slow itself", "dead", "halted", "another", "long before", "before"),
    ],
)
def test_a_controller_may_decide_late_on_a_request_that_a_fault_held_back(fault: str, late: bool) -> None:
    assert acting(f"fault f {fault}").asks_late(1, 10 * SECOND, 26 * SECOND) is late


@pytest.mark.parametrize(("cut", "late"), [("from=b1 to=b2,b3", True), ("from=b2 to=b3", False)])
def test_with_zookeeper_another_broker_may_be_the_controller_that_it_asked(cut: str, late: bool) -> None:
    known = acting(f"fault f b1,b2,b3 12..25 {cut} plane=all", kraft=False)
    assert known.asks_late(1, 10 * SECOND, 26 * SECOND) is late
    assert acting("fault p b3 12..25 kind=pause", kraft=False).asks_late(1, 10 * SECOND, 26 * SECOND)


@pytest.mark.parametrize(
    ("fault", "late"),
    [
        ("b2 12..25 kind=slow plane=all", True),
        ("b2 12..25 kind=pause", True),
        ("b1 12..25 kind=slow plane=all", True),
        ("b3 12..25 kind=slow plane=all", False),
        ("b3 12..25 kind=pause", False),
        ("b1,b2,b3 12..25 from=b1 to=b2,b3 plane=all", True),
        ("b1,b2,b3 12..25 from=b3 to=b1,b2 plane=all", False),
    ],
    ids=["slow", "halted", "slow leader", "slow other", "halted other", "cut from the leader", "other cut from both"],
)
def test_with_zookeeper_only_the_reported_controller_decides_late(fault: str, late: bool) -> None:
    reports = [f"{line} controller=2" for line in TWO_TERMS]
    known = acting(f"fault f {fault}", reports=reports, kraft=False)
    assert known.asks_late(1, 10 * SECOND, 26 * SECOND) is late


@pytest.mark.parametrize(
    ("faults", "got_nothing", "asked_nothing"),
    [
        (["c b1,b2 10..30 from=b1 to=b2 plane=all"], True, True),
        (["c b1,b2 10..30 from=b1 to=b2 plane=all one-way"], True, True),
        (["c b1,b2 10..30 from=b2 to=b1 plane=all one-way"], False, True),
        (["c b2 10..30 kind=isolate plane=replication"], True, True),
        (["c b1 10..30 kind=isolate plane=all"], True, True),
        (["c b3 10..30 kind=isolate plane=all"], False, False),
        (["c b1,b2 10..20.6 from=b1 to=b2 plane=all", "d b1,b2 20.4..30 from=b1 to=b2 plane=all"], True, True),
        (["c b1,b2 10..20.4 from=b1 to=b2 plane=all", "d b1,b2 20.6..30 from=b1 to=b2 plane=all"], False, False),
        (["k b2 10..20.6 kind=kill", "c b1,b2 20.4..30 from=b1 to=b2 plane=all"], True, True),
        (["c b1,b2 10..20.6 from=b1 to=b2 plane=all", "k b1 20.4..30 kind=kill"], False, True),
        (["p b1 10..20.6 kind=pause", "c b1,b2 20.4..30 from=b1 to=b2 plane=all"], False, False),
        (
            ["c b1,b2 10..20.6 from=b1 to=b2 plane=all", "d b1,b2 20.4..30 from=b1 to=b2 plane=all one-way"],
            *(True, False),
        ),
        (
            ["c b1,b2 10..20.6 from=b1 to=b2 plane=all", "d b1,b2 20.4..30 from=b2 to=b1 plane=all one-way"],
            *(False, True),
        ),
        (
            ["c b1,b2 10..20.6 from=b1 to=b2 plane=all one-way", "d b1,b2 20.4..30 from=b2 to=b1 plane=all one-way"],
            *(False, False),
        ),
    ],
    ids=[
        *("both ways", "of the leader alone", "of the follower alone", "alone", "the leader alone", "another alone"),
        *("two cuts", "a moment between", "dead, then cut", "cut, then the leader dead", "halted, then cut"),
        *("then answered nothing", "then not heard", "the one, then the other"),
    ],
)
def test_a_follower_gets_nothing_where_all_that_comes_from_its_leader_is_lost(
    faults: list[str], got_nothing: bool, asked_nothing: bool
) -> None:
    """A cut holds back a follower's request, which reaches the leader after the heal: the follower may join an ISR."""
    reports = [*saw("b1,b2,b3", "0..10", 1, 0, "1"), *saw("b3", "11..60", 1, 0, "1")]
    known = acting(*(f"fault {fault}" for fault in faults), reports=reports)
    assert known.cannot_fetch(2, 1, 12 * SECOND, 28 * SECOND) is got_nothing
    assert known.cannot_join(2, 1, 12 * SECOND, 28 * SECOND) is asked_nothing


def test_records_before_and_after_a_broker_catches_up_are_judged_apart() -> None:
    recorded = by_hand(*NOT_HEARD, "fault k c1 5..40 kind=pause")
    assert {5 * SECOND, 15 * SECOND, 40 * SECOND, 50 * SECOND} <= set(
        evidence(recorded, **ALONE).moments(TRIAL).tolist()
    )
