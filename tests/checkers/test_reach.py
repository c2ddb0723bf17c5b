"""A fault, or a record that was given up, excuses only records that it reached: not earlier, later or elsewhere."""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from checkers.catalogue import CHECKERS, checkers_of
from checkers.evidence.intervals import NEVER
from checkers.evidence.late import addressed, resent_late
from checkers.evidence.reach import cut_off, disturbances, given_up_beside, held_back, resent, written_beside
from checkers.evidence.standing import possible_faults
from checkers.evidence.store import StoredRows
from checkers.history import History
from checkers.judge import judge
from harness.core.anomalies import DUPLICATED, REORDERED, Anomaly
from harness.core.faults import Row
from harness.core.verdict import Standing
from harness.history.paths import write_table
from harness.history.run_file import NodeAddress, Origin, RunFile
from harness.history.schema import TABLES, record_id
from harness.history.stored_run import StoredRun
from tests.checkers.notation import SECOND, by_hand, write
from tests.checkers.test_holders import evidence, saw
from tests.long_case import long_case


def none_late(_history: History, _anomaly: Anomaly, _found: StoredRows, _faults: Sequence[Row]) -> pa.Table:
    """No copy was appended late."""
    return pa.table({"topic": []})


def history(run: Path, rows: list[dict[str, Any]], *lines: str, **settings: Any) -> tuple[History, StoredRows]:
    """A hand history, and the rows of an anomaly that was found in it."""
    recorded = by_hand(*lines)
    for row in recorded.rows["sends"]:
        row["error"] = "_MSG_TIMED_OUT" if row["outcome"] == "info" else None
    write(run, [recorded], **settings)
    pq.write_table(pa.Table.from_pylist(rows), run / "rows.parquet")
    found = StoredRows((run / "rows.parquet",))
    return History(StoredRun.open(run), cast(SparkSession, None), run, one_task=True), found


_NODES = [
    *(NodeAddress(name=f"b{n}", role="broker", id=n, address=f"10.0.0.{n}") for n in (1, 2, 3)),
    *(NodeAddress(name=f"c{n}", role="controller", id=100 + n, address=f"10.0.1.{n}") for n in (1, 2)),
]
#: Two brokers name b1 as the coordinator, one b2.
_NAMED = (*(f"saw b{n} @0..200 leader=1 isr=1,2,3 coordinator={of}" for n, of in ((1, 2), (2, 1), (3, 1))),)


def named(when: str, coordinator: int) -> tuple[str, ...]:
    """Two of three brokers name this one as the coordinator."""
    return tuple(f"saw b{n} @{when} leader=1 isr=1,2,3 coordinator={coordinator}" for n in (1, 2))


#: Two members had a partition from 100 to 110 s.
OWNED = {"topic": "trial", "partition": 0, "since_ns": 100 * SECOND, "other_until_ns": 110 * SECOND}


def owned_twice(run: Path, owned: list[dict[str, Any]], *lines: str) -> tuple[bool, bool]:
    """Whether faults cut members off from their coordinator, and whether they perhaps did."""
    recorded, found = history(run, owned, "send a ok @0", "end 0..1", *lines, nodes=_NODES)
    certainly, perhaps = (cut_off(recorded, recorded.faults, found, perhaps=every) for every in (False, True))
    return certainly, perhaps


#: A cut of b1 from the clients, which was healed right before that.
_ISOLATED = "kind=isolate plane=all clients=cut"
_CUT_OFF = f"fault i b1 50..100 {_ISOLATED}"

REACHED, PERHAPS, NOT_REACHED = (True, True), (False, True), (False, False)


@pytest.mark.parametrize(
    ("fault", "reached"),
    [
        (_CUT_OFF, REACHED),
        (f"fault i b1 55..100 {_ISOLATED}", REACHED),
        (f"fault i b1 56..100 {_ISOLATED}", PERHAPS),
        (f"fault i b1 99..99.5 {_ISOLATED}", PERHAPS),
        (f"fault i b1 50..101 {_ISOLATED}", PERHAPS),
        (f"fault i b1 50..99 {_ISOLATED}", PERHAPS),
        (f"fault i b1 10..44 {_ISOLATED}", NOT_REACHED),
        (f"fault i b1 50.. {_ISOLATED}", PERHAPS),
        (f"fault i b1 101.. {_ISOLATED}", NOT_REACHED),
        (f"{_CUT_OFF} missed", NOT_REACHED),
        (f"fault i c1 50..100 {_ISOLATED}", PERHAPS),
        (f"fault i b2 50..100 {_ISOLATED}", PERHAPS),
        (f"fault i b1,b2,b3 50..100 {_ISOLATED}", REACHED),
        ("fault i b1 50..100 kind=isolate plane=all clients=kept", PERHAPS),
        ("fault i b1 50..100 kind=isolate plane=all", PERHAPS),
        ("fault i b1 50..100 kind=isolate clients=cut", PERHAPS),
        ("fault i b1 50..100 kind=isolate plane=controller", PERHAPS),
        ("fault c b1,clients 50..100 from=b1 to=clients plane=client", REACHED),
        ("fault c b1,clients 50..100 from=clients to=b1 plane=client", REACHED),
        ("fault c b1,clients 50..100 from=b1 to=clients plane=client one-way", PERHAPS),
        ("fault c b1,clients 50..100 from=b1 to=clients", PERHAPS),
        ("fault c b2,clients 50..100 from=b2 to=clients plane=client", PERHAPS),
        ("fault c b1,clients 50..100 from=b1 to=clients plane=controller", PERHAPS),
        ("fault c b1,b2,clients 50..100 from=b2 to=b1,clients plane=all", PERHAPS),
        ("fault c b1,b2,b3 50..100 from=b1 to=b2,b3 plane=all", PERHAPS),
        ("fault c b1,c1,c2 50..100 from=b1 to=c1,c2 plane=controller", PERHAPS),
        ("fault k b1 50..100 kind=kill", PERHAPS),
        ("fault k b1 50..100 kind=kill without=b1", PERHAPS),
        ("fault p b1 50..100 kind=pause", PERHAPS),
        ("fault s clients 50..100 kind=slow plane=all", PERHAPS),
        ("fault s b1 50..100 kind=slow plane=client", PERHAPS),
        ("fault d b1 50..100 kind=duplicate plane=client", PERHAPS),
        ("fault cut b1 50..100", PERHAPS),
    ],
    ids=[
        *("then", "for a session", "for less than a session", "for an instant", "until it was over", "until before"),
        *("long before", "for good", "for good, but after", "in vain", "of a controller", "of another broker"),
        *("of every broker", "but not from clients", "nobody knows from whom", "nobody knows of what"),
        *("from the controllers", "from clients", "from clients, told the other way round", "one way"),
        *("from clients, nobody knows of what", "of another from clients", "from clients, of controllers' traffic"),
        *("of another from it", "from brokers alone", "from all controllers", "killed", "it died otherwise", "paused"),
        *("late clients", "late answers", "packets come twice", "nobody knows from what"),
    ],
)
def test_a_cut_of_a_session_excuses_two_owners_when_it_is_healed(
    fault: str, reached: tuple[bool, bool], tmp_path: Path
) -> None:
    """A session takes 45 s."""
    assert owned_twice(tmp_path, [OWNED], *_NAMED, fault) == reached


@pytest.mark.parametrize(
    ("more", "reached"),
    [
        ({"healing_ns": 96 * SECOND}, REACHED),
        ({"healing_ns": 94 * SECOND}, PERHAPS),
        ({"healed_ns": None}, PERHAPS),
        ({"injected_ns": 55 * SECOND}, REACHED),
        ({"injected_ns": 56 * SECOND}, PERHAPS),
        ({"injected_ns": None}, PERHAPS),
    ],
    ids=[
        *("healed slowly", "healed very slowly", "healed as nobody knows", "injected slowly", "injected very slowly"),
        "injected as nobody knows",
    ],
)
def test_a_cut_lasts_from_when_it_was_injected_to_when_its_heal_begins(
    more: dict[str, Any], reached: tuple[bool, bool], tmp_path: Path
) -> None:
    recorded, found = history(tmp_path, [OWNED], "send a ok @0", "end 0..1", *_NAMED, _CUT_OFF, nodes=_NODES)
    faults = [{**row, **more} for row in recorded.faults]
    assert (cut_off(recorded, faults, found), cut_off(recorded, faults, found, perhaps=True)) == reached


@pytest.mark.parametrize(
    ("other", "reached"),
    [
        ("fault k b1 60..70 kind=kill", PERHAPS),
        ("fault k b1 60..70 kind=kill without=b1", PERHAPS),
        ("fault k b1 40.. kind=pause", PERHAPS),
        ("fault k b2 60..70 kind=kill", PERHAPS),
        ("fault k b1 30..40 kind=kill", PERHAPS),
        ("fault k b1 30..39 kind=kill", REACHED),
        ("fault k b1 101..110 kind=kill", REACHED),
        (f"fault j b1 20..65 {_ISOLATED}", PERHAPS),
    ],
    ids=[
        *("killed", "it died otherwise", "paused since before", "another killed", "killed shortly before"),
        *("killed before", "killed after it", "another cut"),
    ],
)
def test_nobody_knows_what_a_cut_did_beside_another_fault(
    other: str, reached: tuple[bool, bool], tmp_path: Path
) -> None:
    assert owned_twice(tmp_path, [OWNED], *_NAMED, _CUT_OFF, other) == reached


@pytest.mark.parametrize(
    "reports",
    [
        (),
        ("saw b1 @0..200 leader=1 isr=1,2,3", "saw b2 @0..200 leader=1 isr=1,2,3"),
        named("0..46", 1),
        named("51..200", 1),
        named("0..96", 1),
        named("0..200", 2),
        (*named("0..49", 1), *named("50..200", 2)),
        (*named("0..60", 1), *named("61..62", 2), *named("63..200", 1)),
        (*named("0..60", 1), *named("61..200", 2)),
        (named("0..200", 1)[0], named("0..200", 2)[1]),
        named("0..200", 1)[:1],
    ],
    ids=[
        *("no report", "it was not asked for", "too old", "only later", "too old at its end", "another"),
        *("another since", "another meanwhile", "another at its end", "either of two", "one alone"),
    ],
)
def test_a_fault_only_perhaps_reached_a_coordinator_that_is_not_known(reports: tuple[str, ...], tmp_path: Path) -> None:
    assert owned_twice(tmp_path, [OWNED], *reports, _CUT_OFF) == PERHAPS


@pytest.mark.parametrize(
    ("until_s", "faults", "reached"),
    [
        (110, ["50..100"], REACHED),
        (111, ["50..100"], PERHAPS),
        (165, ["50..100"], PERHAPS),
        (166, ["50..100"], NOT_REACHED),
        (400, ["50.."], PERHAPS),
        (170, ["50..100", "111..120"], PERHAPS),
        (170, ["50..100", "166..170"], NOT_REACHED),
    ],
    ids=["soon after it", "later", "a session after it", "longer", "for good", "another one meanwhile", "too late"],
)
def test_a_fault_excuses_two_owners_until_its_members_must_have_learnt_that_their_session_is_over(
    until_s: int, faults: list[str], reached: tuple[bool, bool], tmp_path: Path
) -> None:
    lines = [f"fault f{n} b1 {when} {_ISOLATED}" for n, when in enumerate(faults)]
    owned = OWNED | {"other_until_ns": until_s * SECOND}
    assert owned_twice(tmp_path, [owned], *_NAMED, *lines) == reached


def test_without_brokers_no_fault_reached_a_coordinator(tmp_path: Path) -> None:
    recorded, found = history(tmp_path, [OWNED], "send a ok @0", "end 0..1", _CUT_OFF, nodes=[])
    assert not cut_off(recorded, recorded.faults, found)


def test_a_cut_goes_on_while_nobody_knows_who_coordinates(tmp_path: Path) -> None:
    apart = (named("56..60", 1)[0], named("56..60", 2)[1])
    reports = [*named("0..55", 1), *apart, *named("61..200", 1)]
    assert owned_twice(tmp_path, [OWNED], *reports, _CUT_OFF) == REACHED


@pytest.mark.parametrize(
    ("members", "reached"),
    [
        ({"session.timeout.ms": 6000}, REACHED),
        ({"session.timeout.ms": "7000"}, PERHAPS),
        ({"session.timeout.ms": 6000, "group.protocol": "consumer"}, PERHAPS),
        ({}, PERHAPS),
    ],
    ids=["short", "longer", "brokers decide", "default"],
)
def test_the_settings_of_the_members_say_how_long_a_session_is(
    members: dict[str, Any], reached: tuple[bool, bool], tmp_path: Path
) -> None:
    lines = ["send a ok @0", "end 0..1", *_NAMED, _CUT_OFF.replace("50", "94")]
    recorded, found = history(tmp_path, [OWNED], *lines, nodes=_NODES, clients={"consumer 0": members})
    assert (
        cut_off(recorded, recorded.faults, found),
        cut_off(recorded, recorded.faults, found, perhaps=True),
    ) == reached


def test_brokers_may_say_how_long_a_session_of_their_own_protocol_is(tmp_path: Path) -> None:
    config = {"group.consumer.session.timeout.ms": 50_000}
    recorded, found = history(
        tmp_path,
        [OWNED],
        *("send a ok @0", "end 0..1", *_NAMED, _CUT_OFF),
        nodes=_NODES,
        clients={"consumer 0": {"group.protocol": "consumer"}},
        scenario={"cluster": {"config": config}},
    )
    assert cut_off(recorded, recorded.faults, found)
    recorded.run_file.scenario["cluster"]["config"]["group.consumer.session.timeout.ms"] = 51_000
    assert not cut_off(recorded, recorded.faults, found)


def test_a_coordinator_that_brokers_named_before_their_silence_does_not_count(tmp_path: Path) -> None:
    reports = [*named("0..30", 2), "saw b3 @0..200 leader=1 isr=1,2,3 coordinator=1"]
    assert owned_twice(tmp_path, [OWNED], *reports, _CUT_OFF.replace("b1", "b2")) == PERHAPS


def test_a_fault_excuses_no_other_time_that_two_had_one_partition(tmp_path: Path) -> None:
    later = OWNED | {"since_ns": 300 * SECOND, "other_until_ns": 310 * SECOND}
    assert owned_twice(tmp_path, [OWNED, later], *_NAMED, _CUT_OFF) == NOT_REACHED


@pytest.mark.parametrize(
    ("acknowledged", "stands", "epochs", "late"),
    [
        *((11, 1, [0, 1], True), (24, 1, [0, 1], True), (25, 1, [0, 1], False), (27, 1, [0, 1], False)),
        *((None, 1, [0, 1], False), (11, 0, [0, 0], False), (11, 0, [0, 1], False), (11, None, [0, 1], True)),
        *((27, None, [0, 1], False), (11, None, [-1, -1], False), (11, 2, [0, 2], True), (27, 2, [0, 2], False)),
    ],
    ids=[
        *("long before", "right before", "as it may have begun", "later", "never", "under the same epoch"),
        *("an older one stands", "all are gone", "all are gone, later", "no epoch known", "an untold one", "one later"),
    ],
)
def test_a_copy_came_late_under_an_epoch_that_began_when_it_had_been_acknowledged(
    acknowledged: int | None, stands: int | None, epochs: list[int], late: bool, tmp_path: Path
) -> None:
    """b2 was first seen to lead at 26 s; b1 was said to lead until 26 s."""
    led = [*saw("b1,b2", "0..26", 1, 0, "1"), *saw("b2", "26..60", 2, 1, "2")]
    at = {"acknowledged_ns": None if acknowledged is None else acknowledged * SECOND, "sent_ns": 10 * SECOND}
    row = {"topic": "trial", "partition": 0, "record_id": 0, "stands_epoch": stands, "epochs": epochs, **at}
    recorded, found = history(tmp_path, [row], *led, "send a ok @0", "end 0..1", "fault d b1 10.5..12 kind=slow")
    got = resent_late(found, evidence(by_hand(*led)).elections)
    # (No broker reported the leader of epoch 2.)
    row = {"topic": "trial", "partition": 0, **dict(reversed(at.items())), "addressed": max(epochs) == 2}
    assert got.to_pylist() == ([row] if late else [])
    if late:
        assert held_back(recorded, recorded.faults, got) is (max(epochs) == 2)
        assert not held_back(recorded, [], got)


@pytest.mark.parametrize(
    ("led", "until", "to"),
    [
        (["1,0 0..20", "2,1 21..60"], 11, [1]),
        (["1,0 0..20", "2,1 21..60"], 20, [1, 2]),
        (["2,0 0..5", "1,1 6..20", "2,2 21..60"], 11, [1, 2]),
        (["1,0 0..5", "3,2 6..20", "2,3 21..60"], 3, [1]),
        (["1,0 0..5", "3,2 6..20", "2,3 21..60"], 11, [1, 2, 3]),
        (["1,4 0..20", "2,5 21..60"], 11, [1, 2]),
        (["1, 0..20", "2, 21..60"], 11, [1, 2]),
    ],
    ids=[
        *("before it led", "as it may have begun", "it led before", "before an untold epoch", "after an untold epoch"),
        *("led unseen before all reports, perhaps", "without epochs"),
    ],
)
def test_a_producer_sends_to_no_broker_that_had_not_led_yet(led: list[str], until: int, to: list[int]) -> None:
    words = [re.fullmatch(r"(\d),(\d*) (.*)", line) for line in led]
    reported = [(int(word[1]), int(word[2]) if word[2] else None, word[3]) for word in words if word]
    lines = [line for leader, epoch, when in reported for line in saw("b1,b2,b3", when, leader, epoch, "1,2,3")]
    known = evidence(by_hand(*lines)).elections["trial", 0]
    last = {leader: -1 if epoch is None else epoch for leader, epoch, _ in reported}
    leaders, times = sorted(last), np.full(len(last), until * SECOND)
    found = addressed(known, np.array([last[leader] for leader in leaders]), times)
    assert [leader for leader, was in zip(leaders, found.tolist(), strict=True) if was] == to


def test_a_producer_sends_to_no_broker_before_an_unreported_leader_may_have_led() -> None:
    lines = [*saw("b1,b2,b3", "0..20", 1, 0, "1,2,3"), *saw("b1,b2,b3", "26..40", 2, 2, "1,2,3")]
    known = evidence(by_hand(*lines, *saw("b1,b2,b3", "41..60", 3, 3, "1,2,3"))).elections["trial", 0]
    first_ns = min(since for _, (since, _) in known.unreported)
    assert first_ns < known.terms[2].begins_ns
    found = addressed(known, np.array([3, 3]), np.array([first_ns - 1, first_ns]))
    assert found.tolist() == [False, True]


#: A record of worker 0 that was in flight from 10 to 40 s, and is there twice.
TWICE = {"worker": 0, "sent_ns": 10 * SECOND, "acknowledged_ns": 40 * SECOND}


@pytest.mark.parametrize(
    ("lines", "excused"),
    [
        (["send x info t9..39", "send r ok @1 t10..40"], True),
        (["send x info t1..9", "send r ok @1 t10..40"], False),
        (["send r ok @1 t10..40", "send x info t20..50"], False),
        (["send x info w1 t9..39", "send r ok @1 t10..40"], False),
        (["send y info t1..9", "send x info w1 t9..39", "send r ok @1 t10..40"], False),
        (["send x fail t9..39", "send r ok @1 t10..40"], False),
        (["send x info t9..", "send r ok @1 t10..40"], False),
    ],
    ids=["meanwhile", "before", "after", "another producer's", "each producer's", "refused", "never ended"],
)
def test_a_record_that_was_given_up_excuses_the_copies_of_what_was_in_flight(
    lines: list[str], excused: bool, tmp_path: Path
) -> None:
    assert given_up_beside(*history(tmp_path, [TWICE], *lines, "end 0..3")) is excused


def test_a_copy_from_a_later_incarnation_did_not_come_late(tmp_path: Path) -> None:
    led = [*saw("b1,b2", "0..26", 1, 0, "1"), *saw("b2", "26..60", 2, 1, "2")]
    at = {"acknowledged_ns": 11 * SECOND, "sent_ns": 10 * SECOND, "stands_epoch": 1, "epochs": [0, 1]}
    for which, late in (("across incarnations", 0), ("same incarnation", 1), ("idempotent producer", 1)):
        row = {"topic": "trial", "partition": 0, "which": which, **at}
        _, found = history(tmp_path / which, [row], *led, "send a ok @0", "end 0..1")
        assert len(resent_late(found, evidence(by_hand(*led)).elections)) == late


def test_it_excuses_no_record_that_was_not(tmp_path: Path) -> None:
    other = {"worker": 0, "sent_ns": 50 * SECOND, "acknowledged_ns": 51 * SECOND}
    lines = ["send x info t9..39", "send r ok @1 t10..40", "end 0..3"]
    assert not given_up_beside(*history(tmp_path / "a", [TWICE, other], *lines))
    unanswered = TWICE | {"acknowledged_ns": None}
    assert given_up_beside(*history(tmp_path / "b", [TWICE, unanswered], *lines))


def test_each_record_beside_one_that_was_given_up_is_known(tmp_path: Path) -> None:
    rows = [TWICE | {"record_id": 7}, TWICE | {"record_id": 8, "sent_ns": 50 * SECOND, "acknowledged_ns": 51 * SECOND}]
    rows += [TWICE | {"record_id": 9, "worker": None}, TWICE | {"record_id": 10, "sent_ns": None}]
    lines = ["send x info t9..39", "send r ok @1 t10..40", "end 0..3"]
    assert written_beside(*history(tmp_path / "a", rows, *lines)).to_pylist() == [7]
    assert written_beside(*history(tmp_path / "b", rows, lines[1], lines[2])).to_pylist() == []


@pytest.mark.parametrize(
    ("others", "excused"),
    [([], False), (["send x info t9..39"], True), (["send x info t9..41"], False)],
    ids=["alone", "beside another", "before the other"],
)
def test_a_record_that_was_given_up_does_not_excuse_its_own_copy(
    others: list[str], excused: bool, tmp_path: Path
) -> None:
    row = TWICE | {"acknowledged_ns": None, "record_id": record_id(0, 0)}
    lines = ["send r info t10..40", *others, "end 0..3"]
    assert given_up_beside(*history(tmp_path, [row], *lines)) is excused


def test_no_record_that_was_given_up_excuses_one_that_nobody_sent(tmp_path: Path) -> None:
    lines = ["send x info t9..39", "send r ok @1 t10..40", "end 0..3"]
    assert not given_up_beside(*history(tmp_path, [TWICE | {"sent_ns": None}], *lines))


@pytest.mark.parametrize(
    ("members", "reached"),
    [
        ([{"session.timeout.ms": 70_000}, {"session.timeout.ms": 10_000}], True),
        ([{"session.timeout.ms": 10_000}, {"session.timeout.ms": 10_000}], False),
        ([{"session.timeout.ms": 10_000}, {}], True),
        ([{"session.timeout.ms": 10_000, "group.protocol": "consumer"}], True),
        ([{"session.timeout.ms": 10_000, "group.protocol": "classic"}], False),
        ([], True),
    ],
    ids=["the longest", "all short", "one has the default", "the broker decides", "the member decides", "not known"],
)
def test_the_reach_of_a_fault_ends_one_session_timeout_after_it(
    members: list[dict[str, Any]], reached: bool, tmp_path: Path
) -> None:
    """The fault ended 55 s before two members had the partition."""
    clients = {f"consumer {101 + n}": member for n, member in enumerate(members)}
    recorded, found = history(
        tmp_path, [OWNED], "send a ok @0", "end 0..1", *_NAMED, "fault cut b1 30..45", clients=clients
    )
    assert cut_off(recorded, recorded.faults, found, perhaps=True) is reached


#: A record that was in flight from 10 to 12 s, and is there twice.
COPIED = {"topic": "trial", "partition": 0, "sent_ns": 10 * SECOND, "acknowledged_ns": 12 * SECOND}
ELSEWHERE = "saw b3 @0..40 p1 leader=3 epoch=0 isr=3 replicas=3"
LED = ("saw b1 @0..40 leader=1 epoch=0 isr=1,2 replicas=1,2", ELSEWHERE)


@pytest.mark.parametrize(
    ("lines", "row", "reached"),
    [
        ([], COPIED, (False, False)),
        (["fault cut b1 9..15"], COPIED, (True, False)),
        (["fault cut b1 12..15"], COPIED, (True, False)),
        (["fault cut b1 1..3"], COPIED, (True, False)),
        (["fault cut b1 0..0"], COPIED, (True, False)),
        (["fault cut b1 0..0.5"], COPIED | {"sent_ns": 11 * SECOND}, (False, False)),
        (["fault cut b1 12.5..15"], COPIED, (False, False)),
        (["fault cut b3 9..15"], COPIED, (False, False)),
        (["fault cut c1 9..15"], COPIED, (True, False)),
        (["fault cut b1 9.."], COPIED, (True, False)),
        (["fault cut b1 9..15 missed"], COPIED, (False, False)),
        ([], COPIED | {"acknowledged_ns": None}, (True, False)),
        ([], COPIED | {"acknowledged_ns": 40 * SECOND}, (True, False)),
        (["fault cut b1 9..15"], COPIED | {"sent_ns": None}, (False, False)),
        ([LED[0].replace("40", "10"), "saw b2 @11 leader=2 epoch=1 isr=2"], COPIED, (True, True)),
        ([LED[0].replace("40", "19"), "saw b2 @20 leader=2 epoch=1 isr=2"], COPIED, (False, False)),
        ([LED[0].replace("40", "4"), "saw b1 @5..40 leader=2 epoch=1 isr=1,2"], COPIED, (False, False)),
        ([*LED, "saw b2 @11 p1 leader=2 epoch=1 isr=2"], COPIED, (False, False)),
        ([LED[0].replace("40", "10"), "saw b1 @11..40 leader=1 epoch=0 isr=1"], COPIED, (True, False)),
        (["saw b1 @0..8 leader=1 epoch=0 isr=1", "saw b1 @9..40 leader=1 epoch=0 isr=1,2"], COPIED, (False, False)),
        ([LED[0].replace("40", "14"), "saw b1 @15..40 leader=1 epoch=0 isr=1"], COPIED, (False, False)),
        ([LED[0], "saw b3 @0..40 p2 leader=3 epoch=0 isr=3"], COPIED, (False, False)),
        (["saw b1 @0..11 leader=1 epoch=0 isr=1", "saw b1 @12..40 leader=1 epoch=0 isr=1,2"], COPIED, (False, False)),
    ],
    ids=[
        *(
            "nothing",
            "a fault",
            "just in time",
            "felt for a while",
            "for as long as that",
            "over for longer",
            "after it",
            "another replica's",
        ),
        *("a controller's", "for good", "in vain", "never acknowledged", "not for longer than a request", "never sent"),
        *("an election", "a later one", "one before, of which all knew", "of another partition"),
        *("too few in sync", "too few before", "too few later", "too few in another partition"),
        "too few at first",
    ],
)
def test_a_record_is_sent_again_only_after_a_disturbance_before_its_acknowledgement(
    lines: list[str], row: dict[str, Any], reached: tuple[bool, bool], tmp_path: Path
) -> None:
    led = (ELSEWHERE,) if lines and lines[0].startswith("saw") else LED
    rows = [{**row, "worker": 0}, {**row, "worker": 0}]
    recorded, found = history(tmp_path, rows, "send a ok @0", "end 0..1", *led, *lines, min_insync_replicas=2)
    one = resent(recorded, DUPLICATED, found, recorded.faults, none_late)
    assert (one.again, one.elected, one.held) == (*reached, False)


@pytest.mark.parametrize(
    ("fault", "acks_1", "acks_all"),
    [
        ("b1 9..15 kind=kill", True, True),
        ("b2 9..15 kind=kill", False, True),
        ("b3 9..15 kind=kill", False, False),
        ("c1 9..15 kind=kill", False, True),
        ("b1 9..15 kind=isolate plane=client", True, True),
        ("b2 9..15 kind=isolate plane=client", False, False),
        ("b2,clients 9..15 from=b2 to=clients plane=all", False, False),
        ("b1,clients 9..15 from=clients to=b1 plane=all", True, True),
        ("clients 9..15 kind=slow plane=all", True, True),
        ("b1 9..15 kind=slow plane=replication", False, True),
        ("b2 9..15 kind=slow plane=replication", False, True),
        ("b1 9..15 kind=isolate plane=controller", False, True),
        ("b1,b2 9..15 from=b1 to=b2 plane=all", False, True),
        ("b1,b2,clients 9..15 from=b1 to=b2,clients plane=all", True, True),
        ("b1,b2,clients 9..15 from=b2 to=b1,clients plane=all", False, True),
        ("b2,b3,clients 9..15 from=b3 to=b2,clients plane=all", False, False),
        ("b2,c1 9..15 from=b2 to=c1 plane=all", False, True),
        ("b1,c1 9..15 from=b1 to=c1 plane=all", False, True),
        ("b1,b2,b3,c1 9..15 from=b1 to=b2,b3,c1 plane=all", False, True),
        ("b1,b2,c1,clients 9..15 from=b1,clients to=b2,c1 plane=all", False, True),
        ("b1,c1 9..15 from=b1 to=c1 plane=controller", False, True),
        ("b1 9..15 kind=isolate plane=all clients=cut", True, True),
        ("b1 9..15 kind=isolate plane=all clients=spared", False, True),
    ],
    ids=[
        *("the leader", "a follower", "no replica", "a controller", "a leader from clients", "a follower from clients"),
        *("a follower, cut from clients", "a leader, cut from clients", "clients", "a leader from followers"),
        *("a follower from the leader", "from controllers", "cut between brokers", "cut from a follower and clients"),
        *("a follower, cut from the leader and clients", "no replica, cut from a follower and clients"),
        *(
            "a follower, cut from controllers",
            "a leader, cut from controllers",
            "a leader, cut from all nodes",
            "a leader with the clients",
            "a leader, from controllers alone",
        ),
        *("a leader, cut from all", "a leader, cut from all but clients"),
    ],
)
def test_only_what_may_keep_answers_makes_a_producer_send_again(
    fault: str, acks_1: bool, acks_all: bool, tmp_path: Path
) -> None:
    """With acks=1 the leader alone answers, and clients talk to leaders only. With acks=all it may have to wait, but it
    fails what it has written only if it needs a second broker for that."""
    lines = (*LED, f"fault f {fault}")
    for acks, least, sent_again in (("1", 1, acks_1), ("all", 1, acks_1), ("all", 2, acks_all)):
        settings = {"acks": acks, "min_insync_replicas": least, "idempotence": False}
        assert again(tmp_path / f"{acks}-{least}", COPIED, *lines, **settings) == (sent_again, False)


@pytest.mark.parametrize(
    ("fault", "held"),
    [
        ("b1 9..15 kind=pause", True),
        ("b2 9..15 kind=pause", False),
        ("c1 9..15 kind=pause", False),
        ("b1,b2 9..15 from=b1 to=b2 plane=all", False),
        ("b1,clients 9..15 from=clients to=b1 plane=all", True),
        ("b1 9..15 kind=isolate plane=all clients=spared", False),
    ],
)
@pytest.mark.parametrize("least", [1, 2])
def test_a_request_is_held_back_only_on_its_way_to_the_leader(
    fault: str, held: bool, least: int, tmp_path: Path
) -> None:
    recorded, _ = history(
        tmp_path, [COPIED], "send a ok @0", "end 0..1", *LED, f"fault f {fault}", min_insync_replicas=least
    )
    assert bool(disturbances(recorded, recorded.faults)["trial", 0].held) is held


@pytest.mark.parametrize(
    ("fault", "felt", "held"),
    [
        ("fault f b1 9..15", (9, 25), True),
        ("fault f b1 9..15 kind=slow", (9, 25), True),
        ("fault f b1 9..15 kind=pause", (9, 25), True),
        ("fault f b1 9..15 kind=kill", (9, 25), False),
        ("fault f b1 9..15 kind=wipe", (9, 25), False),
        ("fault f b1 9.. kind=pause", (9, None), True),
    ],
)
def test_a_fault_that_cuts_delays_or_pauses_may_hold_requests_back(
    fault: str, felt: tuple[int, int | None], held: bool, tmp_path: Path
) -> None:
    recorded, _ = history(tmp_path, [COPIED], "send a ok @0", "end 0..1", *LED, fault)
    one = disturbances(recorded, recorded.faults)["trial", 0]
    window = felt[0] * SECOND, NEVER if felt[1] is None else felt[1] * SECOND
    assert (one.faults, one.held) == ([window], [window] if held else [])


@pytest.mark.parametrize(
    ("lines", "again"),
    [
        (["saw b1 @0..11 leader=1 epoch=0 isr=1", "saw b1 @12..40 leader=1 epoch=0 isr=1,2"], True),
        (["saw b1 @0..8 leader=1 epoch=0 isr=1", "saw b1 @9..40 leader=1 epoch=0 isr=1,2"], False),
        ([LED[0]], False),
    ],
    ids=["until it came", "before", "never"],
)
def test_a_write_refused_for_too_few_in_sync_replicas_may_come_late(
    lines: list[str], again: bool, tmp_path: Path
) -> None:
    """The write was refused, so it makes no copy."""
    rows = [{**COPIED, "sent_ns": 11 * SECOND, "worker": 0}]
    recorded, found = history(tmp_path, rows, "send a ok @0", "end 0..1", ELSEWHERE, *lines, min_insync_replicas=2)
    assert resent(recorded, REORDERED, found, recorded.faults, none_late).again is again


def test_a_broker_that_is_behind_tells_of_no_isr_of_now(tmp_path: Path) -> None:
    lines = [
        *("saw b1 @0..3 leader=1 epoch=0 isr=1", "saw b1 @4..40 leader=1 epoch=0 isr=1,2"),
        *("saw b3 @0..40 leader=1 epoch=0 isr=1", "fault cut b3 2..45 kind=isolate"),
    ]
    recorded, _ = history(tmp_path, [COPIED], "send a ok @0", "end 0..1", *lines, min_insync_replicas=2)
    assert all(until < 10 * SECOND for _, until in disturbances(recorded, recorded.faults)["trial", 0].small)


@pytest.mark.parametrize(
    ("fault", "acks", "faults", "held"),
    [
        ("b2 9..15 kind=pause", "all", [], []),
        ("b2 9..35 kind=pause", "all", [(39, 45)], [(39, 45)]),
        ("b2 9..35 kind=kill", "all", [(39, 45)], []),
        ("b3 9..35 kind=pause", "all", [], []),
        ("c1 9..60 kind=pause", "all", [], []),
        ("b1 9..60 kind=isolate plane=controller", "all", [], []),
        ("b2,c1 9..60 from=b2 to=c1 plane=controller", "all", [], []),
        ("b2 9..60 kind=isolate plane=replication", "all", [(39, 70)], [(39, 70)]),
        ("b2,b3 9..60 from=b2 to=b3 plane=all", "all", [], []),
        ("b2 9..35 kind=pause", "1", [], []),
    ],
    ids=[
        *("no request timed out", "one did", "one did, none is held", "of no replica", "of a controller"),
        *("from the controllers", "a follower from them", "from the leader", "from no replica", "nobody waits for it"),
    ],
)
def test_a_follower_holds_back_what_stands_behind_a_request_that_timed_out(
    fault: str, acks: str, faults: list[tuple[int, int]], held: list[tuple[int, int]], tmp_path: Path
) -> None:
    lines = ("send a ok @0", "end 0..1", *LED, f"fault f {fault}")
    recorded, _ = history(tmp_path, [COPIED], *lines, acks=acks, min_insync_replicas=1)
    one = disturbances(recorded, recorded.faults)["trial", 0]
    seconds = [[(since // SECOND, until // SECOND) for since, until in windows] for windows in (one.faults, one.held)]
    assert seconds == [faults, held]


@pytest.mark.parametrize(
    ("led", "window"),
    [
        (["saw b1 @0..10 leader=1 epoch=0 isr=1,2", "saw b2 @11..40 leader=2 epoch=1 isr=2"], (9, 14)),
        (["saw b1 @0..4 leader=1 epoch=0 isr=1,2", "saw b3 @0..19 leader=1 epoch=0 isr=1,2"], (18, 21)),
    ],
    ids=["the old leader may go on for a while", "it was silent long before"],
)
def test_an_election_is_from_when_the_next_leader_may_have_begun_to_when_the_last_was_over(
    led: list[str], window: tuple[int, int], tmp_path: Path
) -> None:
    later = ["saw b2 @20..40 leader=2 epoch=1 isr=2"] if "b3" in led[1] else []
    recorded, _ = history(tmp_path, [COPIED], "send a ok @0", "end 0..1", *led, *later)
    assert disturbances(recorded, recorded.faults)["trial", 0].elections == [(window[0] * SECOND, window[1] * SECOND)]


@pytest.mark.parametrize(("leads_from", "excused"), [(11, True), (60, False)])
def test_a_fault_of_a_broker_excuses_only_what_was_sent_when_it_led(
    leads_from: int, excused: bool, tmp_path: Path
) -> None:
    """b2 follows at first. Nothing with acks=1 waits for it then, whoever leads later."""
    led = [*saw("b1,b2", f"0..{leads_from - 1}", 1, 0, "1,2,3"), *saw("b1,b2", f"{leads_from}..90", 2, 1, "1,2,3")]
    fault = "fault f b2,clients 9..15 from=b2 to=clients plane=all"
    assert again(tmp_path, COPIED, *led, fault, acks="1", idempotence=False)[0] is excused


@pytest.mark.parametrize(("sent_s", "excused"), [(6, False), (32, True)])
def test_a_fault_of_a_broker_excuses_nothing_that_was_sent_long_before_it_led(
    sent_s: int, excused: bool, tmp_path: Path
) -> None:
    """b2 is under a fault from 5 to 80 s, and leads from 31 s on."""
    led = [*saw("b1,b2", "0..30", 1, 0, "1,2,3"), *saw("b1,b2", "31..90", 2, 1, "1,2,3")]
    row = COPIED | {"sent_ns": sent_s * SECOND, "acknowledged_ns": sent_s * SECOND + SECOND // 2}
    fault = "fault f b2,clients 5..80 from=b2 to=clients plane=all"
    assert again(tmp_path, row, *led, fault, acks="1", idempotence=False)[0] is excused


@pytest.mark.parametrize(
    ("acks", "sent_s", "kind", "isr", "excused"),
    [
        ("1", 35, "kill", "2,3", False),
        ("1", 33, "kill", "2,3", True),
        ("1", 105, "kill", "2,3", False),
        ("1", 35, "pause", "2,3", True),
        ("1", 55, "pause", "2,3", False),
        ("all", 35, "kill", "2,3", True),
        ("1", 115, "kill", "1,2,3", True),
    ],
    ids=[
        *(
            "long after",
            "soon after",
            "as the fault is healed",
            "no answer, so clients ask late",
            "later than a request",
        ),
        *("its followers' answers are awaited", "it leads again"),
    ],
)
def test_a_fault_of_a_broker_excuses_nothing_that_was_sent_long_after_it_led(
    acks: str, sent_s: int, kind: str, isr: str, excused: bool, tmp_path: Path
) -> None:
    """b1 is under a fault from 10 to 110 s; it may have led until 23 s."""
    led = [*saw("b1,b2,b3", "0..20", 1, 0, "1,2,3"), *saw("b2,b3", "21..111", 2, 1, isr)]
    led += saw("b1,b2,b3", "112..150", 1, 2, "1,2,3") if isr == "1,2,3" else saw("b2,b3", "112..150", 2, 1, isr)
    row = COPIED | {"sent_ns": sent_s * SECOND, "acknowledged_ns": sent_s * SECOND + SECOND // 2}
    fault = f"fault k b1 10..110 kind={kind}"
    settings = {"acks": acks, "min_insync_replicas": 2, "idempotence": False}
    assert again(tmp_path, row, *led, fault, **settings)[0] is excused


def again(run: Path, row: dict[str, Any], *lines: str, **settings: Any) -> tuple[bool, bool]:
    """Whether a record that is there twice may have been sent again, and met an election."""
    recorded, found = history(run, [row], "send a ok @0", "end 0..1", *lines, **settings)
    one = resent(recorded, DUPLICATED, found, recorded.faults, none_late)
    return one.again, one.elected


def test_each_broker_may_have_a_replica_of_a_partition_without_reports(tmp_path: Path) -> None:
    assert again(tmp_path / "a", COPIED, "fault cut b3 9..15") == (True, False)
    assert again(tmp_path / "b", COPIED, *LED, "fault cut b3 9..15") == (False, False)


def test_a_producer_sends_again_after_its_request_timeout(tmp_path: Path) -> None:
    for timeout_ms, sent_again in ((2_000, True), (2_001, False), (60_000, False)):
        clients = {"producer 0": {"request.timeout.ms": timeout_ms}, "producer 1": {}}
        assert again(tmp_path / str(timeout_ms), COPIED, *LED, clients=clients) == (sent_again, False)


@pytest.mark.parametrize(
    ("sent", "fault", "sent_again"),
    [
        ("info t10..12", "30..31", False),
        ("info t10..12", "12..13", True),
        ("info t10..12", "12.5..13", False),
        ("fail t10..12", "30..31", False),
        ("info t10..", "30..31", True),
        ("info t10..39", "50..51", False),
        ("info t10..40", "50..51", True),
    ],
    ids=[
        *("a fault when it was given up", "a fault before", "one right after", "refused", "no report", "in good time"),
        "no answer in a request's time",
    ],
)
def test_a_producer_sends_nothing_again_after_it_gave_it_up(
    sent: str, fault: str, sent_again: bool, tmp_path: Path
) -> None:
    row = COPIED | {"acknowledged_ns": None, "record_id": record_id(0, 1)}
    fault = f"fault f b1 {fault} kind=kill"
    assert again(tmp_path, row, f"send r {sent}", *LED, fault) == (sent_again, False)


def test_of_what_was_handed_over_twice_the_last_report_counts(tmp_path: Path) -> None:
    row = COPIED | {"acknowledged_ns": None, "record_id": record_id(0, 1)}
    for ends, sent_again in (((12, 31), True), ((12, 29), False), ((12, None), True)):
        recorded, found = history(
            tmp_path / str(ends[1]),
            [row],
            *("send a ok @0", "send r info t10..12", "send r info t20..21", "end 0..1", *LED, "fault f b1 30..31"),
        )
        sends = recorded.stored.table("sends").to_pylist()
        for one, end in zip(sends[1:], ends, strict=True):
            one |= {"record_id": record_id(0, 1), "completed_ns": None if end is None else end * SECOND}
        write_table(recorded.directory, "sends", pa.Table.from_pylist(sends, TABLES["sends"]))
        assert resent(recorded, DUPLICATED, found, recorded.faults, none_late).again is sent_again


@pytest.mark.parametrize(
    ("anomaly", "fault", "sent_again"),
    [
        (DUPLICATED, "9..15", False),
        (REORDERED, "9..15", True),
        (REORDERED, "21..25", True),
        (REORDERED, "23..25", False),
        (REORDERED, "50..55", False),
    ],
)
def test_without_acknowledgements_nothing_is_sent_again_but_connections_may_change_the_order(
    anomaly: Anomaly, fault: str, sent_again: bool, tmp_path: Path
) -> None:
    """A request of acks=0 is over when it was written; the leader may read it later than one of a new connection."""
    row = COPIED | {"acknowledged_ns": None, "record_id": record_id(0, 1)}
    lines = ("send a info", "send r info t10..12", "end 0..1", *LED, f"fault f b1 {fault} kind=pause")
    recorded, found = history(tmp_path, [row], *lines, acks="0", idempotence=False)
    assert resent(recorded, anomaly, found, recorded.faults, none_late).again is sent_again


@pytest.mark.parametrize(
    ("copies", "which", "led", "got"),
    [
        (2, "same incarnation", LED, (True, False)),
        (3, "same incarnation", LED, (False, True)),
        (3, "across incarnations", LED, (True, False)),
        (3, "same incarnation", (LED[0].replace("40", "10"), "saw b2 @11 leader=2 epoch=1 isr=2"), (True, False)),
    ],
    ids=["as many as that", "one more", "handed over again", "one more, and an election"],
)
def test_a_record_has_no_more_copies_than_its_producer_may_send(
    copies: int, which: str, led: tuple[str, ...], got: tuple[bool, bool], tmp_path: Path
) -> None:
    row = COPIED | {"copies": copies, "which": which}
    lines = ("send a ok @0", "end 0..1", *led, "fault cut b1 9..15")
    recorded, found = history(tmp_path, [row], *lines, idempotence=False, retries=1)
    one = resent(recorded, DUPLICATED, found, recorded.faults, none_late)
    assert (one.again, one.too_many_copies) == got


def test_others_do_not_tell_what_was_in_the_way(tmp_path: Path) -> None:
    assert again(tmp_path, COPIED, *LED, origin=Origin.JEPSEN) == (True, True)


def test_each_of_them_did(tmp_path: Path) -> None:
    rows = [COPIED, COPIED | {"sent_ns": 30 * SECOND, "acknowledged_ns": 31 * SECOND}]
    recorded, found = history(tmp_path, rows, "send a ok @0", "end 0..1", *LED, "fault cut b1 9..15")
    assert not resent(recorded, DUPLICATED, found, recorded.faults, none_late).again


#: b is sent when a was acknowledged; a is at 0, and once more at 2.
AFTERWARDS = ("send a ok @0 t1..2", "send b ok @1 t3..4", "final a @0", "final b @1", "final a @2", "end 0..3")
#: b is sent while a is in flight.
MEANWHILE = tuple(line.replace("t3..4", "t1.5..4") for line in AFTERWARDS)
GIVEN_UP = tuple(line.replace("a ok @0", "a info") for line in MEANWHILE)
#: a stands behind b, which was sent when a was acknowledged.
LATE = ("send a ok @0 t1..2", "send b ok @1 t3..4", "final b @1", "final a @2", "end 0..3")
OVERTAKEN = tuple(line.replace("t3..4", "t1.5..4") for line in LATE)
GIVEN_UP_LATE = tuple(line.replace("a ok @0", "a info") for line in OVERTAKEN)
ONE_AT_A_TIME = {"max_in_flight": 1}
CUT_OFF = ("fault cut b1,b2,b3 0..5 kind=isolate clients=cut", "saw b1 @0..9 leader=1 epoch=0 isr=1,2,3")
KILLED = ("fault k b1,b2,b3 0..5 kind=kill", CUT_OFF[1])


#: a is there once more, or only, under the epoch of b2, which may have led from 7 s on.
LED_BY_B2 = (
    *saw("b1,b2,b3", "0..9", 1, 0, "1"),
    *saw("b1", "20..60", 2, 1, "1,2,3"),
    *saw("b2,b3", "10..60", 2, 1, "1,2,3"),
)
LATER_EPOCH = (
    *("send a ok @0 t1..2", "final a @0 e0", "final a @1 e1", "send c ok @2 t40..41", "final c @2 e1", "end 0..3"),
    *LED_BY_B2,
)
MOVED_BEHIND = (
    *("send a ok @1 t1..2", "send b ok @0 t1.5..3", "final b @0 e0", "final a @1 e1"),
    *("send c ok @2 t40..41", "final c @2 e1", "end 0..3", *LED_BY_B2),
)
#: The same, and b2 had led before b1.
LED_BEFORE = (
    *(line.replace(" e1", " e2").replace(" e0", " e1") for line in LATER_EPOCH[: -len(LED_BY_B2)]),
    *(*saw("b1,b2,b3", "0..0", 2, 0, "1"), *saw("b1,b2,b3", "1..9", 1, 1, "1")),
    *(*saw("b1", "20..60", 2, 2, "1,2,3"), *saw("b2,b3", "10..60", 2, 2, "1,2,3")),
)
B1_KILLED = "fault k b1 1.5..15 kind=kill"
B1_ISOLATED = "fault i b1 1.5..15 kind=isolate plane=all clients=cut"


def in_time(lines: Iterable[str]) -> tuple[str, ...]:
    """The same with an acknowledgement of a when b2 may have led."""
    return tuple(line.replace("t1..2", "t1..12") for line in lines)


#: The same as a consumer of an imported history saw it.
IMPORTED = {"origin": Origin.JEPSEN}
SEEN_AFTERWARDS = ("send a ok @0 t1..2", "send b ok @1 t3..4", "live a @0 r1 t5", "live b @1 r1 t6", "live a @2 r1 t7")
SEEN_MEANWHILE = tuple(line.replace("t3..4", "t1.5..4") for line in SEEN_AFTERWARDS)
SEEN_LATE = ("send a ok t1..2", "send b ok t3..4", "live b @1 r1 t6", "live a @2 r1 t7")
SEEN_OVERTAKEN = tuple(line.replace("t3..4", "t1.5..4") for line in SEEN_LATE)


#: a, given up, stands behind b. b1 leads.
PAUSED = "fault p b1 1..6 kind=pause"
B1_LEADS = tuple(saw("b1,b2,b3", "0..60", 1, 0, "1,2,3"))
#: a is given up after a pause of b1, and comes late; and, after b1 was killed, c is sent again to b2, behind d.
TWO_CAUSES = (
    *("send a info t0..4", "send b ok @0 t5..6", "send c ok @3 t56..61", "send d ok @2 t58..60"),
    *("final b @0 e0", "final a @1 e0", "final d @2 e1", "final c @3 e1", "end 0..4"),
    *("fault p b1 0..5 kind=pause", "fault k b1 55..65 kind=kill"),
    *saw("b1,b2,b3", "0..56", 1, 0, "1,2,3"),
    *saw("b2,b3", "57..66", 2, 1, "2,3"),
    *saw("b1,b2,b3", "67..80", 2, 1, "1,2,3"),
)


def behind(a: str, b: str, *more: str) -> tuple[str, ...]:
    """a was given up, and stands behind b, which was acknowledged."""
    return (f"send a info t{a}", f"send b ok @0 t{b}", "final b @0", "final a @1", "end 0..2", *more, *B1_LEADS)


@pytest.mark.parametrize(
    ("lines", "standing"),
    [
        (behind("0..4", "4.5..5", PAUSED), Standing.PERMITTED),
        (behind("0..4", "4.5..5", f"{PAUSED} unknown"), Standing.UNDECIDED),
        (behind("0..30", "1..2", PAUSED), Standing.VIOLATION),
        (TWO_CAUSES, Standing.PERMITTED),
        (tuple(line.replace("info t0..4", "info t0..9") for line in TWO_CAUSES), Standing.VIOLATION),
    ],
    ids=["held back", "held back perhaps", "waited for", "two causes", "one of two without a cause"],
)
@pytest.mark.long
def test_a_write_that_was_given_up_may_stand_behind_later_writes(
    lines: tuple[str, ...], standing: Standing, spark: SparkSession, tmp_path: Path
) -> None:
    in_flight = 5 if "send c ok" in " ".join(lines) else 1
    write(tmp_path, [by_hand(*lines)], idempotence=False, retries=0, max_in_flight=in_flight, acks="1")
    checkers = [checker for checker in checkers_of(RunFile.read(tmp_path)) if checker.name == "reordered"]
    assert judge(tmp_path, spark, checkers=checkers).anomalies["reordered"].standing is standing


@pytest.mark.parametrize(
    ("anomaly", "lines", "settings", "standing"),
    [
        ("duplicated", (*MEANWHILE, *CUT_OFF), {}, Standing.PERMITTED),
        long_case("duplicated", (*MEANWHILE, *KILLED), {}, Standing.PERMITTED),
        ("duplicated", (*MEANWHILE, CUT_OFF[1]), {}, Standing.VIOLATION),
        long_case("duplicated", (*MEANWHILE, *CUT_OFF), {"retries": 0}, Standing.VIOLATION),
        long_case("duplicated", (*MEANWHILE, *CUT_OFF), {"idempotence": True}, Standing.VIOLATION),
        ("duplicated", (*MEANWHILE[:-1], "final a @3", "end 0..4", *KILLED), {"retries": 1}, Standing.UNDECIDED),
        ("duplicated", (*GIVEN_UP, *KILLED), {}, Standing.PERMITTED),
        ("duplicated", (*GIVEN_UP, KILLED[1]), {}, Standing.VIOLATION),
        long_case("duplicated", (*GIVEN_UP, *KILLED), {"acks": "0"}, Standing.VIOLATION),
        ("duplicated", (*AFTERWARDS, *CUT_OFF), {}, Standing.UNDECIDED),
        ("duplicated", (*AFTERWARDS, *KILLED), {}, Standing.VIOLATION),
        long_case("duplicated", (*MEANWHILE, CUT_OFF[0] + " unknown", CUT_OFF[1]), {}, Standing.UNDECIDED),
        ("reordered", (*OVERTAKEN, *CUT_OFF), {}, Standing.PERMITTED),
        ("reordered", (*OVERTAKEN, CUT_OFF[1]), {}, Standing.VIOLATION),
        ("reordered", (*GIVEN_UP_LATE, *CUT_OFF), ONE_AT_A_TIME, Standing.PERMITTED),
        long_case("reordered", (*GIVEN_UP_LATE, *CUT_OFF), {"retries": 0}, Standing.PERMITTED),
        ("reordered", (*GIVEN_UP_LATE, CUT_OFF[1]), ONE_AT_A_TIME, Standing.VIOLATION),
        long_case("reordered", (*GIVEN_UP_LATE, *CUT_OFF), {"idempotence": True}, Standing.VIOLATION),
        ("reordered", (*OVERTAKEN, *CUT_OFF), ONE_AT_A_TIME, Standing.VIOLATION),
        long_case("reordered", (*OVERTAKEN, *CUT_OFF), {**ONE_AT_A_TIME, "acks": "0"}, Standing.PERMITTED),
        long_case("reordered", (*LATE, *KILLED), {}, Standing.VIOLATION),
        ("duplicated", (*LATER_EPOCH, B1_KILLED), {"acks": "1"}, Standing.VIOLATION),
        ("duplicated", (*LATER_EPOCH, B1_ISOLATED), {"acks": "1"}, Standing.VIOLATION),
        ("duplicated", (*LED_BEFORE, B1_ISOLATED), {"acks": "1"}, Standing.UNDECIDED),
        ("duplicated", in_time((*LATER_EPOCH, B1_KILLED)), {"acks": "1"}, Standing.PERMITTED),
        ("reordered", (*MOVED_BEHIND, B1_KILLED), {"acks": "1"}, Standing.VIOLATION),
        ("reordered", (*MOVED_BEHIND, B1_ISOLATED), {"acks": "1"}, Standing.VIOLATION),
        ("reordered", in_time((*MOVED_BEHIND, B1_KILLED)), {"acks": "1"}, Standing.PERMITTED),
        ("duplicated", SEEN_AFTERWARDS, IMPORTED, Standing.UNDECIDED),
        long_case("duplicated", SEEN_MEANWHILE, IMPORTED, Standing.PERMITTED),
        ("reordered", SEEN_LATE, IMPORTED, Standing.UNDECIDED),
        long_case("reordered", SEEN_OVERTAKEN, IMPORTED, Standing.PERMITTED),
    ],
    ids=[
        *("cut off meanwhile", "killed meanwhile", "no fault", "no retries", "idempotent"),
        *(
            "more copies than retries",
            "given up",
            "given up without a fault",
            "no acknowledgement to lose",
            "afterwards, held perhaps",
        ),
        *("afterwards, and nothing held it", "a fault perhaps", "overtaken", "overtaken without a fault"),
        *("given up, and overtaken", "without retries", "given up without a fault, and overtaken"),
        *("given up by an idempotent one", "acknowledged, one at a time", "without acknowledgements", "too late"),
        *("under a later epoch", "under that of one that nobody knew", "under a later epoch, held perhaps"),
        *("acknowledged under that epoch", "moved to a later epoch", "moved to that of one that nobody knew"),
        "moved, acknowledged under that epoch",
        *("imported, afterwards", "imported, meanwhile", "imported, too late", "imported, overtaken"),
    ],
)
@pytest.mark.long
def test_a_copy_is_permitted_where_it_may_have_been_sent_again(
    anomaly: str,
    lines: tuple[str, ...],
    settings: dict[str, Any],
    standing: Standing,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    run = tmp_path / "[1] {a,b}"
    write(run, [by_hand(*lines)], **{"idempotence": False, "retries": 5, **settings})
    applying = checkers_of(RunFile.read(run))
    checkers = [checker for checker in applying if checker.name == anomaly]
    assert judge(run, spark, checkers=checkers).anomalies[anomaly].standing is standing


#: r was acknowledged at 11 s at 1, under epoch 0. It stands behind y, under the epoch of b2, elected at 26 s.
MOVED = (
    *("send a ok @0 t1..2 w1", "final a @0 e0", "send r ok @1 t10..11", "send y ok @1 t30..31 w2"),
    *("final y @1 e1", "final r @2 e1", "send z ok @3 t50..51 w1", "final z @3 e1", "end 0..4"),
    *(*saw("b1,b2,b3", "0..4", 1, 0, "1,2,3"), *saw("b1", "5..20", 1, 0, "1"), *saw("b2,b3", "5..25", 1, 0, "1")),
    *("fault killed b1 20..40 kind=kill", *saw("b2,b3", "26..60", 2, 1, "2")),
)


#: The same, and b2 had led before b1, so that a producer may have sent r to it.
MOVED_BACK = (
    *(
        re.sub(r"( e|epoch=)(\d)\b", lambda epoch: f"{epoch[1]}{int(epoch[2]) + 1}", line).replace("@0..4", "@1..4")
        for line in MOVED
    ),
    *saw("b1,b2,b3", "0..0", 2, 0, "1,2,3"),
)
SLOW = "fault s b1,b2 9..15 kind=slow plane=all"
#: What the loss of a first copy does not permit: the lines, and the standings of ACKNOWLEDGED_ELSEWHERE and of
#: REAL_TIME_ORDER.
NOT_PERMITTED = [
    (MOVED, Standing.VIOLATION, Standing.VIOLATION),
    ((*MOVED, SLOW), Standing.VIOLATION, Standing.VIOLATION),
    (MOVED_BACK, Standing.VIOLATION, Standing.VIOLATION),
    ((*MOVED_BACK, SLOW), Standing.UNDECIDED, Standing.UNDECIDED),
]


@pytest.mark.parametrize(
    ("lines", "elsewhere", "behind"),
    [
        *NOT_PERMITTED,
        ((*MOVED, "fault s b1 12..15 kind=slow plane=all"), Standing.VIOLATION, Standing.VIOLATION),
        (tuple(line.replace("t10..11", "t10..27") for line in MOVED), Standing.UNDECIDED, Standing.UNDECIDED),
        (
            tuple(line.removesuffix(" e0").removesuffix(" e1") for line in MOVED),
            *(Standing.PERMITTED, Standing.VIOLATION),
        ),
    ],
    ids=[
        *("late", "of one that nobody knew", "nothing held it back", "held back perhaps", "slow after it"),
        *("acknowledged after the election", "without epochs"),
    ],
)
@pytest.mark.heavy
def test_the_loss_of_an_acknowledged_record_is_no_reason_to_send_it_again(
    lines: tuple[str, ...], elsewhere: Standing, behind: Standing, spark: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path / "run", [by_hand(*lines)], unclean_election=True, min_insync_replicas=1)
    standings = {"acknowledged_elsewhere": elsewhere, "real_time_order": behind}
    checkers = [checker for checker in CHECKERS if checker.name in standings]
    found = judge(tmp_path / "run", spark, checkers=checkers).anomalies
    assert {name: one.standing for name, one in found.items()} == standings


#: r stands where it was acknowledged, and y below it, which was sent later. Nothing has an epoch.
IN_PLACE = tuple(re.sub(r" e\d$", "", line).replace("send r ok @1", "send r ok @2") for line in MOVED)


@pytest.mark.parametrize(
    ("lines", "standing"),
    [
        (IN_PLACE, Standing.VIOLATION),
        ((*IN_PLACE, SLOW), Standing.UNDECIDED),
        (tuple(f"{line} e0" if line.startswith("final") else line for line in (*IN_PLACE, SLOW)), Standing.VIOLATION),
    ],
    ids=["taken by nothing", "perhaps a late copy in the same place", "with epochs"],
)
@pytest.mark.heavy
def test_no_election_took_what_stands_where_it_was_acknowledged(
    lines: tuple[str, ...], standing: Standing, spark: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path / "run", [by_hand(*lines)], unclean_election=True, min_insync_replicas=1)
    checkers = [checker for checker in CHECKERS if checker.name == "real_time_order"]
    assert judge(tmp_path / "run", spark, checkers=checkers).anomalies["real_time_order"].standing is standing


#: b1 acknowledged r at 9 at 11 s, in epoch 0, and had it at 1, too. The election of b2 took all above 1.
WRITTEN_TWICE = tuple(
    line.replace("send r ok @1", "send r ok @9").replace("r @2 e1", "r @1 e0").replace("y @1 e1", "y @2 e1")
    for line in (one.replace("send y ok @1", "send y ok @2") for one in MOVED)
)
NO_IDEMPOTENCE = {"idempotence": False, "retries": 5}


@pytest.mark.parametrize(
    ("lines", "settings", "standing"),
    [
        (WRITTEN_TWICE, {}, Standing.VIOLATION),
        ((*WRITTEN_TWICE, SLOW), NO_IDEMPOTENCE, Standing.PERMITTED),
        (WRITTEN_TWICE, NO_IDEMPOTENCE, Standing.VIOLATION),
        ((*WRITTEN_TWICE, SLOW), {"idempotence": False, "retries": 0}, Standing.VIOLATION),
        ((*WRITTEN_TWICE, "send x info t5..10.5"), {}, Standing.PERMITTED),
        ((*WRITTEN_TWICE, "send x info t5..9"), {}, Standing.VIOLATION),
        ((*WRITTEN_TWICE, "send x info t5..10.5"), {"idempotence": False, "retries": 0}, Standing.VIOLATION),
        (tuple(line.replace("t10..11", "t10..27") for line in WRITTEN_TWICE), {}, Standing.UNDECIDED),
    ],
    ids=[
        *("idempotent", "sent again", "no reason to send it again", "no retries", "one beside it given up"),
        *("one given up before it", "not idempotent, one given up", "perhaps of the next leader"),
    ],
)
@pytest.mark.heavy
def test_an_election_takes_no_second_copy_of_what_nobody_sent_again(
    lines: tuple[str, ...], settings: dict[str, Any], standing: Standing, spark: SparkSession, tmp_path: Path
) -> None:
    recorded = by_hand(*lines)
    for row in recorded.rows["sends"]:
        row["error"] = "_MSG_TIMED_OUT" if row["outcome"] == "info" else None
    write(tmp_path / "run", [recorded], unclean_election=True, min_insync_replicas=1, **settings)
    checkers = [checker for checker in CHECKERS if checker.name == "acknowledged_elsewhere"]
    assert judge(tmp_path / "run", spark, checkers=checkers).anomalies["acknowledged_elsewhere"].standing is standing


@pytest.mark.parametrize(
    ("lines", "found"),
    [(MOVED, {"acknowledged_elsewhere", "real_time_order"}), (WRITTEN_TWICE, {"acknowledged_elsewhere"})],
    ids=["late", "twice"],
)
@pytest.mark.heavy
def test_a_record_that_the_next_producer_sends_again_is_judged_by_its_loss_alone(
    lines: tuple[str, ...], found: set[str], spark: SparkSession, tmp_path: Path
) -> None:
    recorded = by_hand(*lines, "send again info i1 t28..29")
    recorded.rows["sends"][-1]["record_id"] = recorded.ids["r"]
    write(tmp_path / "run", [recorded], unclean_election=True, min_insync_replicas=1)
    checkers = [checker for checker in CHECKERS if checker.name in {"acknowledged_elsewhere", "real_time_order"}]
    judged = judge(tmp_path / "run", spark, checkers=checkers).anomalies
    assert {name: one.standing for name, one in judged.items()} == dict.fromkeys(found, Standing.PERMITTED)


@pytest.mark.parametrize("kind", ["slow", "flaky"])
def test_an_election_is_as_long_as_the_known_faults_let_it_be_unless_those_in_doubt_are_supposed(
    kind: str, tmp_path: Path
) -> None:
    """Only if the controller was cut off may b2 have led long before anybody reported it."""
    lines = (
        *(f"saw {one} @0..47 leader=1 epoch=0 isr=1,2,3" for one in ("b1", "b3")),
        *(f"saw {one} @50..80 leader=2 epoch=1 isr=2,3" for one in ("b2", "b3")),
        *("fault k b1 48..90 kind=kill", f"fault s c1 8..49 kind={kind} plane=controller unknown=c1"),
        *("send a ok @1 t20..21", "final a @1", "final a @2", "end 0..3"),
    )
    row = {"topic": "trial", "partition": 0, "record_id": 0, "sent_ns": 20 * SECOND, "acknowledged_ns": 21 * SECOND}
    recorded, found = history(
        tmp_path, [row | {"copies": 2, "which": "same incarnation"}], *lines, nodes=_NODES, acks="1"
    )
    got = [resent(recorded, DUPLICATED, found, faults, none_late).again for faults in possible_faults(recorded.faults)]
    assert got == [False, True]


def test_a_fault_that_ended_on_the_leader_reaches_what_was_sent_soon_after_that_alone(tmp_path: Path) -> None:
    lines = (*(f"saw b{n} @0..99 leader=1 epoch=0 isr=1,2,3" for n in (1, 2, 3)), "fault p b1,b2 5..80 kind=pause")
    recorded, _ = history(tmp_path, [], *lines, "send a ok @0 t1..2", "final a @0", "end 0..1", acks="1")
    at = np.array([20, 60]) * SECOND
    [whole] = recorded.faults
    apart = {**whole, "evidence": json.dumps({"ended": {"b1": 10 * SECOND}})}
    got = [disturbances(recorded, [row])["trial", 0].resent(at, at + 1).tolist() for row in (whole, apart)]
    assert got == [[True, True], [True, False]]
