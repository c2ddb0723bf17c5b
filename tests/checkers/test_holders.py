"""Which brokers must have had a lost record, and what took it: each rule with the histories that it must not reach."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from checkers.evidence import holders
from checkers.evidence.acting import Acting
from checkers.evidence.again import COLUMNS as COLUMNS_OF_SENDS
from checkers.evidence.again import (
    COLUMNS_OF_GONE,
    COLUMNS_OF_VANISHED,
    TRANSACTION,
    acknowledged_again,
    committed,
)
from checkers.evidence.behind import BehindTimes
from checkers.evidence.causes import decided as each_decided
from checkers.evidence.decision import Case, Decision
from checkers.evidence.elections import Elections, elections
from checkers.evidence.evidence import Evidence
from checkers.evidence.final_logs import Log, logs
from checkers.evidence.neighbours import attached
from checkers.evidence.record_ranges import COLUMNS, HANDED_ON_NS, RecordRange, record_ranges
from checkers.evidence.standing import begun_at, delivered, possible_faults
from checkers.evidence.written import LeaderWrites
from checkers.leadership import spans
from harness.core.anomalies import ACKNOWLEDGED_ELSEWHERE, FRACTURED, HANGING_TRANSACTION, LOST, VANISHED, Anomaly
from harness.core.faults import Row
from harness.core.guarantees import Configuration
from harness.core.verdict import Standing
from harness.history.schema import OBSERVATIONS, SENDS, TRANSACTIONS
from harness.history.stored_run import StoredRun
from tests.checkers.notation import SECOND, SILENCE_NS, HandHistory, by_hand, write

NAMES = {1: "b1", 2: "b2", 3: "b3", 4: "b4"}
TRIAL = ("trial", 0)
_SENT = pa.schema([SENDS.field(name) for name in [*COLUMNS_OF_SENDS, *TRANSACTION]])
PERMITTED, VIOLATION, UNDECIDED = Standing.PERMITTED, Standing.VIOLATION, Standing.UNDECIDED

#: Settings under which a replica outside of the ISR may be elected, and with which each leader acknowledges alone.
UNCLEAN: dict[str, Any] = {"unclean_election": True}
ALONE: dict[str, Any] = {"acks": "1", "unclean_election": False}


def several_of(decision: Decision) -> bool:
    """Whether records may be of several terms."""
    return len({one.term for one in decision.possible_terms}) > 1


def evidence(recorded: HandHistory, **settings: Any) -> Evidence:
    """All that is known of a hand history, without the records that were delivered and are gone."""
    observations = pa.Table.from_pylist(recorded.rows["observations"], OBSERVATIONS)
    configuration = Configuration(**{"version": "4.3.1", "min_insync_replicas": 1, **settings})
    sent = [at for row in recorded.rows["sends"] for at in (row["invoked_ns"], row["completed_ns"]) if at is not None]
    known = Evidence(
        configuration=configuration,
        elections=elections(observations, spans(observations), NAMES, configuration, recorded.rows["faults"]),
        names=NAMES,
        faults=possible_faults(recorded.rows["faults"]),
        logs={(end["topic"], end["partition"]): log_of(recorded, end) for end in recorded.rows["log_ends"]},
        end_ns=max(sent, default=0),
        coordinated=bool(recorded.rows["transactions"]),
        controllers=frozenset({"c1"}),
        silence_ns=SILENCE_NS,
    )
    again = [row for row in recorded.rows["sends"] if row["outcome"] == "ok" and row["offset"] is not None]
    table = pa.Table.from_pylist([{name: row[name] for name in _SENT.names} for row in again], _SENT)
    done = pa.Table.from_pylist(recorded.rows["transactions"], TRANSACTIONS).filter(committed())
    promised = again
    if configuration.read_committed:
        of = {(row["worker"], row["transaction"]) for row in done.to_pylist()}
        promised = [r for r in again if r["transaction"] is None or (r["worker"], r["transaction"]) in of]
    gone = pa.Table.from_pylist(
        [row for row in map(row_of_gone(recorded), promised) if row is not None], COLUMNS_OF_GONE
    )
    known_of, transactions = (known.elections, known.acting), [done] if configuration.read_committed else None
    again_at = acknowledged_again(
        [table], [gone], [vanished(recorded)], *known_of, known.logs, known.end_ns, transactions
    )
    return Evidence(**{**vars(known), "again": again_at, "_edges": {}, "_moments": {}})


def acting_on(
    known: Elections, faults: Sequence[Row], kraft: bool = True, controllers: frozenset[str] = frozenset()
) -> Acting:
    """These faults, as they acted on a partition."""
    behind = BehindTimes(faults, replace(known.propagation, kraft=kraft))
    return Acting(known, faults, behind, controllers, SILENCE_NS)


def row_of_gone(recorded: HandHistory) -> Callable[[dict[str, Any]], dict[str, Any] | None]:
    """The row of a record that is not where it was acknowledged; None where it is there."""
    reads = {(row["phase"], row["record_id"], row["offset"]): row["leader_epoch"] for row in recorded.rows["reads"]}

    def row_of(send: dict[str, Any]) -> dict[str, Any] | None:
        place = (send["record_id"], send["offset"])
        if ("final", *place) in reads:
            return None
        return {
            **{name: send[name] for name in ("topic", "partition", "offset")},
            "sent_ns": send["invoked_ns"],
            "acknowledged_ns": send["completed_ns"],
            "read_epoch": reads.get(("live", *place)),
        }

    return row_of


def vanished(recorded: HandHistory) -> pa.Table:
    """Deliveries that the final log does not have at their offset."""
    rows = recorded.rows["reads"]
    there = {(row["record_id"], row["offset"]) for row in rows if row["phase"] == "final"}
    live = (row for row in rows if row["phase"] == "live" and (row["record_id"], row["offset"]) not in there)
    return pa.Table.from_pylist(
        [{name: row[name] for name in COLUMNS_OF_VANISHED.names} for row in live], COLUMNS_OF_VANISHED
    )


def log_of(recorded: HandHistory, end: dict[str, Any]) -> Log:
    epochs: dict[int, list[int]] = {}
    for row in recorded.rows["reads"]:
        if row["phase"] == "final" and row["leader_epoch"] is not None and row["partition"] == end["partition"]:
            epochs.setdefault(row["leader_epoch"], []).append(row["offset"])
    found = sorted((epoch, min(offsets), max(offsets)) for epoch, offsets in epochs.items())
    each = np.array(found, np.int64).reshape(-1, 3).T
    transactions = len(recorded.rows["transactions"])
    return Log(*each, end["log_end"], sparse=bool(transactions), start=end["log_start"], unseen=transactions)


def in_hole(recorded: HandHistory, send: dict[str, Any]) -> bool:
    """Whether records of one epoch, or without any, stand below a record's offset and above it, and none there."""
    there = {row["offset"]: row["leader_epoch"] for row in recorded.rows["reads"] if row["phase"] == "final"}
    offset = send["offset"]
    if offset is None or offset in there or recorded.rows["transactions"]:
        return False
    below, above = (
        max((o for o in there if o < offset), default=-1),
        min((o for o in there if o > offset), default=-1),
    )
    return min(below, above) >= 0 and there[below] == there[above]


def decided(
    *lines: str, anomaly: Anomaly = LOST, guarded: bool = False, silence_ns: int = SILENCE_NS, **settings: Any
) -> Decision:
    """The decision about the record r."""
    recorded = by_hand(*lines)
    known = evidence(recorded, **settings)
    [send] = [row for row in recorded.rows["sends"] if row["record_id"] == recorded.ids["r"]]
    read = [row for row in recorded.rows["reads"] if row["phase"] == "live" and row["record_id"] == recorded.ids["r"]]
    acknowledged = send["outcome"] == "ok"
    delivered = min((row["read_ns"] for row in read), default=None) if anomaly is VANISHED else None
    last = max((row["read_ns"] for row in read if row["offset"] == send["offset"]), default=None)
    case = Case(
        ("trial", send["partition"]),
        send["invoked_ns"],
        send["completed_ns"] if acknowledged else delivered,
        acknowledged,
        send["offset"],
        send["offset"],
        read[0]["leader_epoch"] if read and (anomaly is VANISHED or read[0]["offset"] == send["offset"]) else None,
        delivered,
        in_hole(recorded, send),
        in_transaction=send["transaction"] is not None,
        fetched_ns=None if last is None else last - HANDED_ON_NS,
    )
    known = Evidence(**{**vars(known), "last_replica_guarded": guarded, "silence_ns": silence_ns, "_acting": {}})
    return holders.decided(known, anomaly, case)


def names(brokers: frozenset[int]) -> list[int]:
    return sorted(brokers)


def saw(by: str, when: str, leader: int, epoch: int | None, isr: str, more: str = "") -> list[str]:
    """Several brokers reported the same, each second: ``by`` is like b2,b3."""
    reported = "" if epoch is None else f"epoch={epoch}"
    return [f"saw {one} @{when} leader={leader} {reported} isr={isr} {more}" for one in by.split(",")]


#: b1 led with the whole ISR until it was killed at 20 s; b2 leads since 26 s.
WHOLE = [
    *saw("b1", "0..20", 1, 0, "1,2,3"),
    *saw("b2,b3", "0..25", 1, 0, "1,2,3"),
    "fault killed b1 20..40 kind=kill",
    *saw("b2,b3", "26..60", 2, 1, "2,3"),
]
#: b1 led alone in the ISR from 5 s on, until it was killed; b2 leads since 26 s.
LONELY = [
    *saw("b1,b2,b3", "0..4", 1, 0, "1,2,3"),
    *saw("b1", "5..20", 1, 0, "1"),
    *saw("b2,b3", "5..25", 1, 0, "1"),
    "fault killed b1 20..40 kind=kill",
    *saw("b2,b3", "26..60", 2, 1, "2"),
]
#: b1 led alone in the ISR from the beginning.
LONELY_EARLY = [line.replace("isr=1,2,3", "isr=1") for line in LONELY]
#: The log of b2: the records of b1 from offset 5 on are gone.
CUT = ["final a @4 e0", "final b @5 e1", "send late ok @6 t50..51", "final late @6 e1", "end 0..7"]
LOST_ALONE = ["send r ok @5 t10..11", *LONELY, *CUT]


def test_a_leader_that_was_in_the_isr_must_have_had_what_was_acknowledged_with_acks_all() -> None:
    found = decided("send r ok @5 t10..11", *WHOLE, *CUT, **UNCLEAN)
    assert found.standing is VIOLATION
    assert (names(found.must), names(found.need_not), names(found.unknown)) == ([1, 2, 3], [], [])
    assert found.event is not None
    assert (found.event.leader, found.event.epoch, found.event.at_ns) == (2, 1, 26 * SECOND)


def test_one_that_was_not_need_not_have_had_it() -> None:
    found = decided(*LOST_ALONE, **UNCLEAN)
    assert found.standing is PERMITTED
    assert (names(found.must), names(found.need_not), names(found.unknown)) == ([1], [2, 3], [])
    assert found.event is not None
    assert (found.event.leader, found.event.epoch) == (2, 1)
    assert found.term == 0


@pytest.mark.parametrize(
    ("settings", "standing"),
    [
        ({"unclean_election": True}, PERMITTED),
        ({"unclean_election": True, "min_insync_replicas": 2}, UNDECIDED),
        ({"unclean_election": False}, VIOLATION),
        ({"unclean_election": True, "version": "3.8.1"}, VIOLATION),
    ],
)
def test_the_settings_must_allow_that_election(settings: dict[str, Any], standing: Standing) -> None:
    assert decided(*LOST_ALONE, **settings).standing is standing


@pytest.mark.parametrize(
    ("when", "standing", "unknown"),
    [
        ("t4.2..4.8", UNDECIDED, [2, 3]),
        ("t2..2.5", VIOLATION, []),
        ("t3.5..3.9", UNDECIDED, [2, 3]),
        ("t5.1..6", PERMITTED, []),
        ("t4.9..6", UNDECIDED, [2, 3]),
    ],
)
def test_while_an_isr_changed_between_two_samples_it_is_unknown_who_had_it(
    when: str, standing: Standing, unknown: list[int]
) -> None:
    found = decided(f"send r ok @5 {when}", *LONELY, *CUT, **UNCLEAN)
    assert (found.standing, names(found.unknown)) == (standing, unknown)


@pytest.mark.parametrize(
    ("fault", "standing"),
    [
        ("b2 18..40 kind=pause", PERMITTED),
        ("b2 18..40 kind=slow plane=client", UNDECIDED),
        ("b2,c1 18..40 from=b2 to=c1 plane=controller", PERMITTED),
        ("b2,c2 18..40 from=b2 to=c2 plane=controller", UNDECIDED),
    ],
    ids=["halted", "late to clients", "cut from the controller", "cut from another"],
)
@pytest.mark.parametrize("least", [1, 2])
def test_one_outside_the_isr_is_elected_where_nobody_of_it_could_be(fault: str, standing: Standing, least: int) -> None:
    lines = [
        *saw("b1,b3", "0..20", 1, 0, "1,2"),
        *saw("b2", "0..17", 1, 0, "1,2"),
        "fault k b1 20..60 kind=kill",
        f"fault f {fault}",
        *saw("b3", "21..25", 1, 0, "1,2"),
        *saw("b3", "26..60", 3, 1, "3"),
        *CUT,
    ]
    found = decided("send r ok @5 t10..11", *lines, unclean_election=True, min_insync_replicas=least)
    assert found.standing is standing


@pytest.mark.parametrize(
    ("isr", "elr", "standing"),
    [
        ("", "", UNDECIDED),
        ("", "elr=1", PERMITTED),
        ("", "elr=1,2", UNDECIDED),
        ("1", "", UNDECIDED),
        ("1", "elr=", PERMITTED),
        ("1", "elr=2", UNDECIDED),
        ("1,4", "", PERMITTED),
    ],
    ids=[
        *("nobody reported", "none but the dead", "another", "beside the leader", "nobody", "another beside it"),
        "enough in the ISR",
    ],
)
def test_a_loss_is_undecided_if_a_live_broker_may_be_in_the_elr(isr: str, elr: str, standing: Standing) -> None:
    """b1 and b4 were in the ISR and are dead; b2, which had left it, lives; b3 was elected."""
    epoch = 1 if isr else 2
    last = saw("b2,b3", "17..22", 1 if isr else -1, epoch - 1, isr, elr)
    last = [*saw("b1,b2,b3", "13..15", 1, 0, isr or "1", elr), *last]
    lines = [*saw("b1,b2,b3", "0..12", 1, 0, "1,2", "elr="), *last, *saw("b2,b3", "23..60", 3, epoch, "3")]
    lines += [f"fault k b1 {'20' if isr else '16'}..60 kind=kill", "fault l b4 16..60 kind=kill"]
    lines += ["final a @4 e0", f"final x @5 e{epoch}", "end 0..6"]
    settings: dict[str, Any] = {"unclean_election": True, "min_insync_replicas": 2}
    assert decided("send r ok @5 t10..11", *lines, guarded=True, **settings).standing is standing
    assert decided("send r ok @5 t10..11", *lines, **settings).standing in {PERMITTED, standing}


@pytest.mark.parametrize(
    ("first", "last", "standing"),
    [("elr=", "", UNDECIDED), ("", "", UNDECIDED), ("elr=", "elr=2", UNDECIDED), ("elr=", "elr=", PERMITTED)],
    ids=["reported before", "never reported", "another", "nobody"],
)
def test_an_elr_that_was_reported_with_the_same_isr_before_another_is_not_that_of_the_election(
    first: str, last: str, standing: Standing
) -> None:
    """b2 joined the ISR of b1, and left it below min.insync.replicas: it is eligible, reported or not."""
    led = [*saw("b1,b2,b3", "0..9", 1, 0, "1", first), *saw("b1,b2,b3", "10..14", 1, 0, "1,2", "elr=")]
    led += [*saw("b1,b2,b3", "15..20", 1, 0, "1", last), *saw("b2,b3", "21..26", 1, 0, "1", last)]
    lines = [*led, "fault k b1 20.5..90 kind=kill", *saw("b3", "27..90", 3, 1, "3", "elr="), *CUT]
    settings: dict[str, Any] = {"unclean_election": True, "min_insync_replicas": 2}
    assert decided("send r ok @5 t11..12", *lines, guarded=True, **settings).standing is standing


@pytest.mark.parametrize(("fault", "standing"), [("isolate plane=all", UNDECIDED), ("isolate plane=client", PERMITTED)])
def test_the_elr_that_an_isolated_broker_reports_does_not_count(fault: str, standing: Standing) -> None:
    """b2 is eligible since it left the ISR of b1 at 15 s; b4, which has no replica, reports the old ELR."""
    led = [*saw("b1,b2,b3", "0..9", 1, 0, "1", "elr="), *saw("b1,b2,b3", "10..14", 1, 0, "1,2", "elr=")]
    led += [
        *saw("b1,b2,b3", "15..20", 1, 0, "1"),
        *saw("b2,b3", "21..26", 1, 0, "1"),
        *saw("b4", "0..26", 1, 0, "1", "elr="),
    ]
    lines = [*led, "fault k b1 20.5..90 kind=kill", *saw("b3", "27..90", 3, 1, "3", "elr="), *CUT]
    settings: dict[str, Any] = {"unclean_election": True, "min_insync_replicas": 2}
    found = decided("send r ok @5 t11..12", *lines, f"fault i b4 6..60 kind={fault}", guarded=True, **settings)
    assert found.standing is standing


@pytest.mark.parametrize(
    ("cuts", "standing"),
    [
        ([], UNDECIDED),
        (["0..60"], PERMITTED),
        (["21..39"], PERMITTED),
        (["22.9..60"], UNDECIDED),
        (["0..37.2"], UNDECIDED),
        (["0..30", "31..60"], UNDECIDED),
        (["0..30.1", "30..60"], PERMITTED),
    ],
    ids=[
        "none",
        "whole",
        "a lag within",
        "not from the start",
        "not to the end",
        "two with a seam",
        "two that overlap",
    ],
)
def test_a_moment_of_a_silence_is_enough_to_join_the_isr(cuts: list[str], standing: Standing) -> None:
    """Nobody reported anything from 20 s to 40 s; b2, that may have joined the ISR of b1 with r, leads since 56 s."""
    led = [*saw("b1,b2,b3", "0..20", 1, 0, "1"), *saw("b1", "40..50", 1, 0, "1"), *saw("b2,b3", "40..55", 1, 0, "1")]
    lines = [*led, "fault k b1 50.2..120 kind=kill", *saw("b2,b3", "56..105", 2, 1, "2")]
    lines += [f"fault c{n} b1,b2 {cut} from=b1 to=b2 plane=replication" for n, cut in enumerate(cuts)]
    log = ["final a @4 e0", "final b @5 e1", "send late ok @6 t100..101", "final late @6 e1", "end 0..7"]
    assert decided("send r ok @5 t10..11", *lines, *log, **UNCLEAN).standing is standing


@pytest.mark.parametrize(
    ("once", "plane", "standing"),
    [(["20.9"], "all", UNDECIDED), ([], "all", UNDECIDED), (["20.9"], "client", UNDECIDED), (["23"], "all", PERMITTED)],
    ids=["right then", "not any more", "nobody was late", "long after"],
)
def test_of_two_isrs_of_which_nobody_knows_which_is_newer_both_had_to_be_preferred(
    once: list[str], plane: str, standing: Standing
) -> None:
    """b2 joined the ISR at 20.5 s, as all late brokers report; b4, which is not late, reports the old ISR once more."""
    led = [*saw("b1,b2,b3", "0..20", 1, 0, "1"), *saw("b4", "0..20", 1, 0, "1"), *saw("b1", "20.5..22.5", 1, 0, "1,2")]
    led += [
        *saw("b2,b3", "20.5..28.5", 1, 0, "1,2"),
        *(line for at in once for line in saw("b4", f"{at}..{at}", 1, 0, "1")),
    ]
    faults = [f"fault s b1,b2,b3 2..60 kind=slow plane={plane}", "fault k b1 22.8..90 kind=kill"]
    faults += [
        "fault c b1,b3 1..95 from=b1 to=b3 plane=replication",
        "fault d b1,b2 22.8..95 from=b1 to=b2 plane=replication",
    ]
    lines = [*led, *faults, *saw("b2,b3", "29.5..105", 3, 1, "3"), *CUT]
    assert decided("send r ok @5 t10..11", *lines, **UNCLEAN).standing is standing


@pytest.mark.parametrize(
    ("once", "late", "standing"),
    [(["20.9"], "b1,b2", UNDECIDED), ([], "b1,b2", UNDECIDED), ([], "b2", PERMITTED)],
    ids=["reported once more", "not any more", "the leader is not late"],
)
def test_a_broker_in_only_one_of_two_reported_isrs_may_be_elected_uncleanly(
    once: list[str], late: str, standing: Standing
) -> None:
    """b2 left the ISR at 20.5 s, as b1 and b2 report; b3 was isolated, b1 killed, and b2 elected."""
    led = [*saw("b1,b2,b3", "0..20", 1, 0, "1,2,3"), *saw("b1", "20.5..23.5", 1, 0, "1,3")]
    led += [
        *saw("b2", "20.5..29.5", 1, 0, "1,3"),
        *(line for at in once for line in saw("b3", f"{at}..{at}", 1, 0, "1,2,3")),
    ]
    faults = [f"fault s {late} 2..60 kind=slow plane=all", "fault k b1 24..60 kind=kill"]
    faults += ["fault i b3 21..60 kind=isolate plane=all clients=cut"]
    log = ["final a @4 e0", "final b @5 e1", "send late ok @6 t100..101", "final late @6 e1", "end 0..7"]
    lines = [*led, *faults, *saw("b2", "30..105", 2, 1, "2"), *log]
    assert decided("send r ok @5 t22..22.5", *lines, **UNCLEAN).standing is standing


@pytest.mark.parametrize("fault", ["kill", "pause", "isolate plane=all clients=cut", "isolate plane=controller"])
@pytest.mark.parametrize("version", ["4.3.1", "3.9.2", "2.3.1"])
def test_a_leader_that_is_halted_or_cut_off_widens_no_isr(version: str, fault: str) -> None:
    """The plain case: b1, alone in the ISR, is hit, and b2 elected: whichever way the cluster is controlled."""
    led = [*saw("b1,b2,b3", "0..4", 1, 0, "1,2,3"), *saw("b1", "5..20", 1, 0, "1"), *saw("b2,b3", "5..25", 1, 0, "1")]
    faults = [f"fault k b1 20.2..40 kind={fault}", "fault c b1,b2,b3 2..40 from=b1 to=b2,b3 plane=replication"]
    lines = [*led, *faults, *saw("b2,b3", "26..60", 2, 1, "2"), *CUT]
    settings = {"version": version, "metadata": "kraft" if version == "4.3.1" else "zookeeper"}
    assert decided("send r ok @5 t10..11", *lines, **UNCLEAN, **settings).standing is PERMITTED


@pytest.mark.parametrize(("elr", "reported"), [("elr=", True), ("", False)])
def test_an_elr_that_was_reported_with_the_only_isr_is_that_of_the_election(elr: str, reported: bool) -> None:
    led = [
        *saw("b1,b2,b3", "0..20", 1, 0, "1", elr),
        *saw("b2,b3", "21..26", 1, 0, "1"),
        *saw("b3", "27..90", 3, 1, "3"),
    ]
    assert evidence(by_hand(*led)).elections[TRIAL].elr_reported(1) is reported


@pytest.mark.parametrize("others", ["0..39", "0..20"])
def test_an_isolated_broker_does_not_prove_that_nobody_joined_the_isr(others: str) -> None:
    """b1 acknowledged r alone at 25 s; b3, elected cleanly, may have joined the ISR without it at 22 s: with acks=1
    that is permitted. b4, which has no replica, reports the old ISR."""
    led = [*saw("b1,b2,b3", "0..20", 1, 0, "1"), *saw("b4", others, 1, 0, "1"), *saw("b2,b3", "40..105", 3, 1, "3")]
    faults = ["fault i b4 15..45 kind=isolate plane=all clients=kept", "fault k b1 30..120 kind=kill"]
    log = ["final a @4 e0", "final b @5 e1", "send late ok @6 t100..101", "final late @6 e1", "end 0..7"]
    found = decided("send r ok @5 t24..25", *led, *faults, *log, acks="1", unclean_election=False)
    assert found.standing is UNDECIDED


def test_a_loss_is_undecided_if_no_broker_reported_at_the_time() -> None:
    gap = [*saw("b1,b2,b3", "0..8", 1, 0, "1"), *saw("b1", "16..20", 1, 0, "1"), *saw("b2", "16..25", 1, 0, "1")]
    after = ["fault killed b1 20..40 kind=kill", *saw("b2,b3", "26..60", 2, 1, "2")]
    assert decided("send r ok @5 t10..11", *gap, *after, *CUT, **UNCLEAN).standing is UNDECIDED
    assert decided("send r ok @5 t17..18", *gap, *after, *CUT, **UNCLEAN).standing is PERMITTED


@pytest.mark.parametrize(
    ("settings", "standing"),
    [(UNCLEAN, UNDECIDED), ({"unclean_election": False}, VIOLATION), (ALONE, UNDECIDED)],
    ids=["may elect uncleanly", "elects cleanly alone", "acks=1"],
)
def test_without_an_observer_only_the_settings_accuse(settings: dict[str, Any], standing: Standing) -> None:
    assert decided("send r ok @5 t10..11", *CUT, **settings).standing is standing


def test_a_follower_that_was_cut_off_does_not_tell_the_isr_of_a_leader_that_tells_its_own() -> None:
    stale = saw("b4", "0..60", 1, 0, "1,2,3")
    assert decided(*LOST_ALONE, *stale, **UNCLEAN).standing is PERMITTED


@pytest.mark.parametrize(
    ("record", "standing"),
    [("send r ok @8 t50..51", VIOLATION), ("send r ok @5 t10..11", PERMITTED)],
    ids=["after", "before"],
)
def test_an_election_takes_nothing_that_came_after_it(record: str, standing: Standing) -> None:
    log = ["final a @4 e0", "final b @5 e1", "send late ok @6 t55..56", "end 0..7"]
    assert decided(record, *LONELY, *log, **UNCLEAN).standing is standing


def test_an_election_takes_nothing_of_another_partition() -> None:
    elsewhere = [line.replace("leader=", "p1 leader=") for line in LONELY if line.startswith("saw")]
    here = saw("b1,b2,b3", "0..60", 1, 0, "1")
    log = ["final a @4 e0", "send late ok @4 t55..56", "end 0..5"]
    assert decided("send r ok @5 t10..11", *here, *elsewhere, *log, **UNCLEAN).standing is VIOLATION


@pytest.mark.parametrize(
    ("log", "standing"),
    [
        (["final a @4 e0", "final b @5 e1", "end 0..6"], PERMITTED),
        (["final a @4 e0", "end 0..5"], PERMITTED),
        (["final a @4 e0", "final c @6 e0", "final b @7 e1", "end 0..8"], VIOLATION),
        (["final a @4 e0", "final b @6 e1", "end 0..7"], VIOLATION),
        (["final a @3 e0", "final b @4 e1", "end 0..7"], PERMITTED),
        (["final a @4", "final b @5", "end 0..6"], PERMITTED),
    ],
    ids=[
        *("a later epoch begins there", "it ends there", "its own goes on", "a later begins above", "begins below"),
        "no epochs are reported",
    ],
)
def test_an_election_took_only_what_the_log_lacks_from_one_offset_on(log: list[str], standing: Standing) -> None:
    assert decided("send r ok @5 t10..11", *LONELY, *log, **UNCLEAN).standing is standing


@pytest.mark.parametrize(
    ("log", "standing"),
    [
        (["final a @4 e0", "final b @5 e1", "end 0..7"], PERMITTED),
        (["final a @4 e0", "end 0..5"], PERMITTED),
        (["final a @4 e0", "final b @6 e1", "end 0..7"], UNDECIDED),
        (["final a @4 e0", "end 0..7"], UNDECIDED),
        (["end 0..7"], UNDECIDED),
        (["final a @4 e0", "final c @6 e0", "final b @7 e1", "end 0..8"], VIOLATION),
    ],
    ids=[
        *("a later epoch begins there", "it ends there", "a later begins above", "markers may stand there"),
        *("markers alone", "its own goes on"),
    ],
)
@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
def test_a_later_epoch_may_begin_with_a_transaction_marker(log: list[str], standing: Standing, level: str) -> None:
    """In the third log, 5 has the marker of a later epoch, or nothing: then no election took r."""
    lines = ["txn 1 commit ok 0..5..6", *log, "send late ok @7 t50..51"]
    found = decided("send r ok @5 x1 t2..3", *LONELY_EARLY, *lines, isolation_level=level, **UNCLEAN)
    coordinated = level == "read_committed" and standing is VIOLATION
    assert found.standing is (UNDECIDED if coordinated else standing)


@pytest.mark.parametrize(("offset", "standing"), [(6, PERMITTED), (500, UNDECIDED)], ids=["next to it", "far from it"])
def test_a_lost_record_where_a_marker_may_stand_goes_with_its_neighbour(offset: int, standing: Standing) -> None:
    log = ["txn 1 commit ok 0..5..6", "final a @4 e0", "final b @6 e1", "end 0..7", "send late ok @7 t50..51"]
    known = evidence(by_hand(*LONELY_EARLY, *log), **UNCLEAN)
    table = [
        {"topic": "trial", "partition": 0, "offset": at, "sent_ns": 2 * SECOND, "acknowledged_ns": 3 * SECOND}
        for at in (5, offset)
    ]
    ranges = record_ranges([pa.Table.from_pylist(table, COLUMNS)], {}, 64, {}, known)
    first, _ = attached(each_decided(ranges, LOST, known), 64, known.logs)
    assert first.decision is not None
    assert first.decision.standing is standing


def test_a_log_that_ends_below_it_without_an_election_was_cut_by_nothing() -> None:
    here = saw("b1,b2,b3", "0..60", 1, 0, "1,2,3")
    log = ["final a @4 e0", "send late ok @4 t55..56", "end 0..5"]
    assert decided("send r ok @5 t10..11", *here, *log, **UNCLEAN).standing is VIOLATION
    assert decided("send r ok @5 t10..11", *here, *log, **ALONE).standing is VIOLATION
    ended = saw("b1,b2,b3", "0..30", 1, 0, "1,2,3")
    assert decided("send r ok @5 t10..11", *ended, *log, **ALONE).standing is UNDECIDED


def test_an_election_that_only_the_log_tells_of_may_have_taken_it() -> None:
    here = saw("b1,b2,b3", "0..60", 1, 0, "1")
    assert decided("send r ok @5 t10..11", *here, *CUT, **UNCLEAN).standing is UNDECIDED
    missed = [*saw("b1,b2,b3", "0..25", 1, 0, "1,2,3"), *saw("b1,b2,b3", "26..60", 1, 2, "1,2,3")]
    log = ["final a @4 e0", "final b @5 e2", "send late ok @6 t55..56", "end 0..7"]
    assert decided("send r ok @5 t10..11", *missed, *log, **UNCLEAN).standing is UNDECIDED
    leaderless = ["saw b2 @25 leader=-1 epoch=1 isr=1,2,3"]
    assert decided("send r ok @5 t10..11", *missed, *leaderless, *log, **UNCLEAN).standing is VIOLATION


def test_an_unclean_election_past_a_broker_of_the_isr_that_no_fault_hit_is_undecided() -> None:
    two = [
        *saw("b1", "0..20", 1, 0, "1,2"),
        *saw("b2,b3", "0..25", 1, 0, "1,2"),
        "fault killed b1 20..40 kind=kill",
        *saw("b2,b3", "26..60", 3, 1, "3"),
    ]
    assert decided("send r ok @5 t10..11", *two, *CUT, **UNCLEAN).standing is UNDECIDED
    both = "fault cut b2 21..40 kind=isolate"
    assert decided("send r ok @5 t10..11", *two, both, *CUT, **UNCLEAN).standing is PERMITTED
    long_before = "fault cut b2 1..2 kind=isolate"
    assert decided("send r ok @5 t10..11", *two, long_before, *CUT, **UNCLEAN).standing is UNDECIDED
    in_vain = "fault cut b2 21..40 kind=isolate missed"
    assert decided("send r ok @5 t10..11", *two, in_vain, *CUT, **UNCLEAN).standing is UNDECIDED


@pytest.mark.parametrize(
    ("cut", "standings"),
    [([], [UNDECIDED, PERMITTED]), (["fault cut b2 20..40 kind=isolate"], [PERMITTED, PERMITTED])],
    ids=["nobody knows why b2 was not elected", "b2 was cut off"],
)
def test_a_committed_record_is_judged_apart_from_an_uncommitted_neighbour(
    cut: list[str], standings: list[Standing]
) -> None:
    """b1 and b2 must have the record at 5, and only b1 the one at 6. b3, elected, lacks both."""
    lines = [
        *[*saw("b1,b2,b3", "0..9", 1, 0, "1,2,3"), *saw("b1", "10..20", 1, 0, "1,2")],
        *[*saw("b2,b3", "10..25", 1, 0, "1,2"), "saw b1 @19.5 leader=1 epoch=0 isr=1,2 high=6"],
        *["fault killed b1 20..40 kind=kill", *saw("b2,b3", "26..60", 3, 1, "3")],
        *["final a @4 e0", "final b @5 e1", "send late ok @6 t55..56", "end 0..7"],
    ]
    known = evidence(by_hand(*lines, *cut), acks="1", unclean_election=True)
    rows = [
        {"topic": "trial", "partition": 0, "offset": at, "sent_ns": sent, "acknowledged_ns": sent + 1}
        for at, sent in ((5, 18 * SECOND), (6, 19 * SECOND + SECOND * 3 // 4))
    ]
    ranges = record_ranges([pa.Table.from_pylist(rows, COLUMNS)], {}, 64, {}, known)
    found = attached(each_decided(ranges, LOST, known), 64, known.logs)
    assert [one.decision.standing for one in found if one.decision] == standings


@pytest.mark.parametrize(
    ("isr", "wiped", "standing"),
    [("2,3", "b3", VIOLATION), ("3", "b3", PERMITTED), ("2,3", "b1", VIOLATION)],
    ids=["b2 was reported in it", "b2 was not", "another disk was wiped"],
)
def test_a_broker_that_joined_just_before_the_wipe_of_its_leader_has_the_record(
    isr: str, wiped: str, standing: Standing
) -> None:
    """b3 must have r, leads from 20 s on, and is killed soon; b2, which reported both ISRs of b3's term, is elected."""
    lines = [
        *[*saw("b1,b2,b3", "0..19", 1, 0, "1,3"), "fault k b1 19..50 kind=kill"],
        *[*saw("b2,b3", "20..20", 3, 1, "3"), f"saw b2 @20.5..29 leader=3 epoch=1 isr={isr}"],
        *["fault l b3 20.6..50 kind=kill", f"fault w {wiped} 20.7..20.8 kind=wipe", *saw("b2", "30..60", 2, 2, "2")],
        *["final a @4 e0", "final b @5 e2", "send late ok @6 t55..56", "end 0..7"],
    ]
    assert decided("send r ok @5 t10..11", *lines, **UNCLEAN).standing is standing


def test_an_undecided_record_above_a_violation_stays_undecided() -> None:
    """b2, elected, lacks 5, which it had to have; it may have had 6, and need not have had 7."""
    lines = [
        *[*saw("b1,b2,b3", "0..9", 1, 0, "1,2,3"), *saw("b1,b2,b3", "10..29", 1, 0, "1")],
        *["fault killed b1 30..50 kind=kill", *saw("b2,b3", "36..60", 2, 1, "2,3")],
        *["final a @4 e0", "final b @5 e1", "send late ok @6 t55..56", "end 0..7"],
    ]

    def standings(*records: tuple[int, int, int]) -> list[Standing]:
        known = evidence(by_hand(*lines), acks="all", unclean_election=True, min_insync_replicas=1)
        rows = [
            {"topic": "trial", "partition": 0, "offset": at, "sent_ns": sent, "acknowledged_ns": until}
            for at, sent, until in ((at, sent * SECOND, until * SECOND) for at, sent, until in records)
        ]
        ranges = record_ranges([pa.Table.from_pylist(rows, COLUMNS)], {}, 64, {}, known)
        found = attached(each_decided(ranges, LOST, known), 64, known.logs)
        return [one.decision.standing for one in found if one.decision]

    sure, perhaps, alone = (5, 5, 6), (6, 9, 10), (7, 17, 18)
    assert standings(sure, perhaps, alone) == [VIOLATION, UNDECIDED, PERMITTED]
    assert standings(perhaps, alone) == [PERMITTED, PERMITTED]


def joined(leader: int, joining: str = "1,2") -> list[str]:
    """b1 led alone; from 12 s on with ``joining``; then a ``leader`` was elected, and the others were down."""
    return [
        *saw("b1,b2,b3", "0..11", 1, 0, "1"),
        *saw("b1,b2,b3", "12..20", 1, 0, joining),
        *saw(f"b{leader}", "21..25", 1, 0, joining),
        f"fault killed b1,b{5 - leader} 20..40 kind=kill",
        *saw(f"b{leader}", "26..40", leader, 1, f"{leader}"),
        *saw("b1,b2,b3", "41..60", leader, 1, f"{leader}"),
    ]


def test_a_broker_that_joins_the_isr_of_a_leader_with_the_record_must_have_it() -> None:
    assert decided("send r ok @5 t8..9", *joined(2), *CUT, **UNCLEAN).standing is VIOLATION
    assert decided("send r ok @5 t8..9", *joined(3), *CUT, **UNCLEAN).standing is PERMITTED
    assert decided("send r ok @5 t8..9", *joined(2, joining="1"), *CUT, **UNCLEAN).standing is PERMITTED


def test_a_holder_that_leaves_the_isr_remains_one() -> None:
    left = [
        *saw("b1,b2,b3", "0..12", 1, 0, "1,2,3"),
        *saw("b1", "13..20", 1, 0, "1"),
        *saw("b2,b3", "13..25", 1, 0, "1"),
        "fault killed b1 20..40 kind=kill",
        *saw("b2,b3", "26..60", 2, 1, "2"),
    ]
    assert decided("send r ok @5 t8..9", *left, *CUT, **UNCLEAN).standing is VIOLATION
    assert decided("send r ok @5 t15..16", *left, *CUT, **UNCLEAN).standing is PERMITTED


def test_a_follower_of_a_leader_without_the_record_is_no_longer_a_holder() -> None:
    twice = [
        *LONELY[:-2],
        *saw("b2,b3", "26..40", 2, 1, "2"),
        *saw("b1", "34..40", 2, 1, "1,2"),
        *saw("b1,b2,b3", "41..60", 1, 2, "1,2"),
    ]
    log = ["final a @4 e0", "final b @5 e2", "send late ok @6 t55..56", "end 0..7"]
    found = decided("send r ok @5 t10..11", *twice, *log, **UNCLEAN)
    assert (found.standing, found.event and found.event.leader) == (PERMITTED, 2)


def test_with_acks_1_the_leader_alone_must_have_it_however_long_others_are_in_the_isr() -> None:
    found = decided("send r ok @5 t10..11", *WHOLE, *CUT, **ALONE)
    assert (found.standing, names(found.must), names(found.need_not)) == (PERMITTED, [1], [2, 3])


@pytest.mark.parametrize(
    ("reported", "standing"),
    [
        ("saw b1 @12 leader=1 epoch=0 isr=1,2,3 high=6", VIOLATION),
        ("saw b1 @12 leader=1 epoch=0 isr=1,2,3 high=5", PERMITTED),
        ("saw b2 @27 leader=2 epoch=1 isr=2,3 high=6", PERMITTED),
        ("saw b2 @12 leader=1 epoch=0 isr=1,2,3 high=6", PERMITTED),
        ("saw b1 @12 leader=1 epoch=0 isr=1,2,3 high=6 p1", PERMITTED),
    ],
    ids=["above it", "at it", "the next leader's", "not the leader's", "another partition's"],
)
def test_the_whole_isr_must_have_what_its_own_leader_reported_as_committed(reported: str, standing: Standing) -> None:
    assert decided("send r ok @5 t10..11", *WHOLE, reported, *CUT, **ALONE).standing is standing


def test_a_high_watermark_that_is_reported_with_another_epoch_than_its_terms_commits_nothing() -> None:
    recorded = by_hand("send r ok @5 t10..11", *WHOLE, "saw b1 @12 leader=1 epoch=0 isr=1,2,3 high=6", *CUT)
    recorded.rows["observations"][-1]["high_epoch"] = 1
    case = Case(TRIAL, 10 * SECOND, 11 * SECOND, True, 5, 5)
    assert holders.decided(evidence(recorded, **ALONE), LOST, case).standing is PERMITTED


@pytest.mark.parametrize(
    ("epoch", "offset", "standing"), [(0, 5, VIOLATION), (0, 7, VIOLATION), (0, 4, PERMITTED), (1, 7, PERMITTED)]
)
def test_a_record_below_a_delivered_offset_of_its_epoch_was_committed(
    epoch: int, offset: int, standing: Standing
) -> None:
    recorded = by_hand("send r ok @5 t10..11", *WHOLE, *CUT)
    delivered = {(TRIAL, epoch): (np.array([offset]), np.array([12 * SECOND]))}
    known = Evidence(**{**vars(evidence(recorded, **ALONE)), "delivered": delivered})
    assert holders.decided(known, LOST, Case(TRIAL, 10 * SECOND, 11 * SECOND, True, 5, 5)).standing is standing


_LOST_WITHOUT_EPOCHS = ["send r ok @5 t10..11", "send late ok @3 t55..56", "final late @3", "end 0..4"]
#: b1 led until it was killed at 30 s, as it and b2 reported; then b2.
_LED = [*saw("b1", "0..30", 1, None, "1,2,3"), *saw("b2", "0..35", 1, None, "1,2,3")]
_LED += ["fault killed b1 30..40 kind=kill", *saw("b2,b3", "36..60", 2, None, "2")]


def _of_b3(until: int, leader: int, then: int) -> list[str]:
    """b3 reported another leader, or none, for some seconds."""
    before, after = saw("b3", f"0..{until}", 1, None, "1,2,3"), saw("b3", f"{then}..35", 1, None, "1,2,3")
    return [*before, *saw("b3", f"{until + 1}..{then - 1}", leader, None, "1,2,3"), *after]


@pytest.mark.parametrize("reported", ["delivered", "high"])
@pytest.mark.parametrize(
    ("more", "at", "high", "standing"),
    [
        (saw("b3", "0..35", 1, None, "1,2,3"), 20, 8, VIOLATION),
        (_of_b3(14, 2, 16), 20, 8, UNDECIDED),
        (_of_b3(14, 2, 16), 20, 5, PERMITTED),
        (_of_b3(14, -1, 16), 20, 8, VIOLATION),
        (_of_b3(24, 2, 27), 20, 8, VIOLATION),
        (_of_b3(3, 2, 5), 2, 8, UNDECIDED),
    ],
    ids=["nobody else led", "another did", "it reported less", "nobody did", "another did later", "another did before"],
)
def test_without_epochs_reports_of_it_prove_nothing_if_another_leader_may_have_cut_that_log(
    reported: str, more: list[str], at: int, high: int, standing: Standing
) -> None:
    seen = [f"saw b1 @{at} leader=1 isr=1,2,3 high={high}"] if reported == "high" else []
    known = evidence(by_hand(*_LOST_WITHOUT_EPOCHS, *_LED, *more, *seen), **ALONE, **OLD)
    if reported == "delivered":
        known = replace(known, delivered={(TRIAL, 0): (np.array([high - 1]), np.array([at * SECOND]))}, _edges={})
    assert holders.decided(known, LOST, Case(TRIAL, 10 * SECOND, 11 * SECOND, True, 5, 5)).standing is standing


@pytest.mark.parametrize(("silent", "standing"), [(1, VIOLATION), (4, UNDECIDED)])
def test_without_epochs_reports_prove_nothing_across_a_silence(silent: int, standing: Standing) -> None:
    led = [*saw("b1,b2,b3", "0..14", 1, None, "1,2,3"), *saw("b1,b2,b3", f"{14 + silent}..30", 1, None, "1,2,3")]
    known = evidence(
        by_hand(*_LOST_WITHOUT_EPOCHS, *led, *saw("b2,b3", "31..35", 1, None, "1,2,3"), *_LED[2:]), **ALONE, **OLD
    )
    known = replace(known, delivered={(TRIAL, 0): (np.array([7]), np.array([24 * SECOND]))}, _edges={})
    assert holders.decided(known, LOST, Case(TRIAL, 10 * SECOND, 11 * SECOND, True, 5, 5)).standing is standing


@pytest.mark.parametrize("reported", [["high=8"], []], ids=["reported", "unreported"])
def test_a_leaders_reports_of_its_next_term_prove_nothing_if_an_unreported_one_led_before_that(
    reported: list[str],
) -> None:
    """b1 led again, alone, when nobody had led. Only b3 reported that b2 led in between, and b2 may have lacked it."""
    led = [
        *saw("b1", "0..10", 1, None, "1,2"),
        *saw("b2,b3", "0..17", 1, None, "1,2"),
        *saw("b3", "18..29", 2, None, "2"),
    ]
    led += ["fault k1 b1 10.5..20 kind=kill", "fault k2 b2 29.5..190 kind=kill", *saw("b1", "21..29", 2, None, "2")]
    led += [*saw("b1,b3", "30..45", -1, None, "1,2"), *saw("b1,b3", "46..160", 1, None, "1", *reported)]
    log = ["final a @4", "final b @5", "send late ok @6 t155..156", "end 0..7"]
    assert decided("send r ok @5 t8..8.1", *led, *log, **ALONE, **OLD).standing is UNDECIDED


@pytest.mark.parametrize(
    ("b2", "standing"),
    [([], UNDECIDED), (["saw b2 @36..60 leader=2 isr=2"], PERMITTED), (["saw b2 @39..60 leader=2 isr=2"], PERMITTED)],
    ids=["never", "at once", "later than another"],
)
def test_without_epochs_a_leader_that_others_reported_may_have_taken_it(b2: list[str], standing: Standing) -> None:
    led = [*_LED[:3], *saw("b3", "0..35", 1, None, "1,2,3"), *saw("b3", "36..60", 2, None, "2")]
    assert decided(*_LOST_WITHOUT_EPOCHS, *led, *b2, **ALONE, **OLD).standing is standing


@pytest.mark.parametrize(("isr", "standing"), [(WHOLE, VIOLATION), (LONELY, PERMITTED)], ids=["in the ISR", "not"])
def test_a_record_that_a_consumer_was_given_was_committed_acknowledged_or_not(
    isr: list[str], standing: Standing
) -> None:
    given = ["send r info @5 t10..", "live r @5 e0 t12", *isr, *CUT]
    assert decided(*given, anomaly=VANISHED, acks="1", **UNCLEAN).standing is standing


def test_it_may_be_of_two_leaders_as_long_as_nobody_knows_whether_one_was_ended() -> None:
    """b1 is deposed, and goes on unless it was killed. The log of b2 goes on above r."""
    deposed = [*saw("b1", "0..20", 1, 0, "1,2,3"), *saw("b2,b3", "0..19", 1, 0, "1,2,3")]
    deposed += [*saw("b2,b3", "20..60", 2, 1, "2,3"), *saw("b1", "41..60", 2, 1, "2,3")]
    log = ["final a @4 e0", "final b @5 e1", "final late @9 e1", "send late ok @9 t50..51", "end 0..10"]
    lines = ["send r ok @6 t30..31", *deposed, *log]
    for fault, standing, several in (
        ([], UNDECIDED, True),
        (["fault k b1 21..22 kind=kill"], VIOLATION, False),
        (["fault k b1 21..22 kind=kill unknown=b1"], UNDECIDED, True),
    ):
        found = decided(*lines, *fault, **ALONE)
        assert (found.standing, several_of(found)) == (standing, several)


@pytest.mark.parametrize(
    ("given", "standing"),
    [
        ([], UNDECIDED),
        (["live r @5 e0 t32"], PERMITTED),
        (["live r @5 e1 t32"], VIOLATION),
        (["live r @6 e0 t32"], UNDECIDED),
        (["live x @5 e0 t32"], UNDECIDED),
        (["live r @5 t32"], UNDECIDED),
    ],
    ids=["nobody", "as the one's", "as the other's", "at another place", "another record", "without an epoch"],
)
def test_a_consumer_that_was_given_it_knows_which_of_two_leaders_acknowledged_it(
    given: list[str], standing: Standing
) -> None:
    """b1 is cut off and goes on; b2 leads since 20 s, and has more than r at its end."""
    deposed = [*saw("b1", "0..40", 1, 0, "1"), *saw("b2,b3", "0..19", 1, 0, "1")]
    deposed += [*saw("b2,b3", "20..60", 2, 1, "2,3"), *saw("b1", "41..60", 2, 1, "2,3")]
    log = ["final a @4 e0", "final b @5 e1", "final late @9 e1", "send late ok @9 t50..51", "end 0..10"]
    lines = ["send r ok @5 t30..31", "send x info t30..", *deposed, *log, *given]
    assert decided(*lines, acks="1", **UNCLEAN).standing is standing


#: b1 alone was in sync, and cut off; b2 had fetched r, led uncleanly, and was killed; then b3 led, cleanly.
_HEIR_IN_SYNC = [
    *saw("b1", "0..40", 1, 0, "1"),
    *saw("b2,b3", "0..21", 1, 0, "1"),
    "fault c b1 20..41 kind=isolate",
    *saw("b2,b3", "22..40", 2, 1, "2,3"),
    "fault k b2 40..70 kind=kill",
    *saw("b1", "42..60", 3, 2, "3"),
    *saw("b3", "41..60", 3, 2, "3"),
]
#: All were in sync, says b1, which was cut off; b2 led alone, and was killed; then b3 led, uncleanly.
_HEIR_ALONE = [
    *saw("b1", "0..40", 1, 0, "1,2,3"),
    *saw("b2", "0..21", 1, 0, "1,2,3"),
    *saw("b3", "0..18", 1, 0, "1,2,3"),
    "fault k b3 19..41 kind=kill",
    "fault c b1 20.5..60 kind=isolate",
    *saw("b2", "22..40", 2, 1, "2"),
    "fault l b2 40..70 kind=kill",
    *saw("b3", "42..60", 3, 2, "3"),
    *saw("b1", "61..62", 3, 2, "3"),
]
_HEIR_CUT = ["final a @4 e0", "final b @5 e2", "send late ok @6 t50..51", "final late @6 e2", "end 0..7"]


@pytest.mark.parametrize("anomaly", [LOST, VANISHED], ids=lambda one: one.name)
@pytest.mark.parametrize(
    ("sent", "led", "standing"),
    [
        ("t20..30", _HEIR_IN_SYNC, UNDECIDED),
        ("t20..20.5", _HEIR_IN_SYNC, PERMITTED),
        ("t23..30", _HEIR_IN_SYNC, PERMITTED),
        ("t20..25", _HEIR_ALONE, UNDECIDED),
        ("t17..18", _HEIR_ALONE, VIOLATION),
    ],
    ids=[
        *("the heir in sync with others", "it had not begun", "it had begun before r was sent"),
        *("the heir alone", "it had not begun then, either"),
    ],
)
def test_the_heir_of_who_appended_it_may_have_acknowledged_a_retry(
    sent: str, led: list[str], standing: Standing, anomaly: Anomaly
) -> None:
    """A consumer got r of b1. Where b2 acknowledged it, b2 and its ISR must have had it, and not those of b1's."""
    lines = [f"send r ok @5 {sent}", "live r @5 e0 t24", *led, *_HEIR_CUT]
    assert decided(*lines, anomaly=anomaly, **UNCLEAN).standing is standing


@pytest.mark.parametrize(
    ("epoch", "reported", "standing"),
    [(0, "3", UNDECIDED), (0, "2", PERMITTED), (1, "3", UNDECIDED)],
    ids=["after its leader", "before none but a reported one", "itself"],
)
def test_the_heir_of_who_appended_it_need_not_have_been_reported(epoch: int, reported: str, standing: Standing) -> None:
    """Somebody led between b1 and b3, with epoch 1, and nobody reported it, or b2 did, which nobody doubts."""
    led = [
        *saw("b1", "0..40", 1, 0, "1"),
        *saw("b2,b3", "0..21", 1, 0, "1"),
        "fault c b1 20..41 kind=isolate",
        *saw("b2", "22..24", int(reported), int(reported) - 1, "2,3"),
        *saw("b2,b3", "25..60", 3, 2, "2,3"),
        *saw("b1", "42..60", 3, 2, "2,3"),
    ]
    sent = "t20..21.8" if reported == "3" else "t19..20"
    lines = [f"send r ok @5 {sent}", f"live r @5 e{epoch} t24", *led, *_HEIR_CUT]
    assert decided(*lines, **UNCLEAN).standing is standing


@pytest.mark.parametrize("acks", ["all", "1"])
def test_an_earlier_delivery_tells_nothing_about_a_record_that_was_sent_again(acks: str) -> None:
    """b1 led until it was killed; b2 leads since 26 s, and acknowledged r at 51 s where b1 had written it."""
    led = [
        *saw("b1", "0..20", 1, 0, "1"),
        *saw("b2,b3", "0..21", 1, 0, "1"),
        "fault k b1 20..40 kind=kill",
        *saw("b2,b3", "26..60", 2, 1, "2,3"),
        *saw("b1", "42..60", 2, 1, "2,3"),
    ]
    lines = ["live r @5 e0 t19.5", *led, "final a @4 e0", "end 0..5"]
    assert decided("send r ok @5 t50..51", *lines, acks=acks, **UNCLEAN).standing is VIOLATION
    assert decided("send r ok @5 t18..19", *lines, acks=acks, **UNCLEAN).standing is PERMITTED
    later = [line.replace("e0 t19.5", "e1 t40") for line in lines]
    assert decided("send r ok @5 t18..19", *later, acks=acks, **UNCLEAN).standing is UNDECIDED
    # (The election of b2 took the record that the consumer got from b1; b2 may have acknowledged another.)
    again = decided("send r ok @5 t50..51", *lines, anomaly=VANISHED, acks=acks, **UNCLEAN)
    assert again.standing is not PERMITTED


@pytest.mark.parametrize(
    ("led", "settings", "standing"),
    [
        (WHOLE, {"unclean_election": True}, VIOLATION),
        (WHOLE, {"acks": "1", "unclean_election": True}, PERMITTED),
        (saw("b1,b2,b3", "0..60", 1, 0, "1,2,3"), {"acks": "1"}, VIOLATION),
    ],
    ids=["acks=all", "acks=1", "no election"],
)
@pytest.mark.parametrize("given", [[], ["live r @5 e0 t12"]], ids=["nobody", "a consumer"])
def test_an_epoch_that_a_consumer_got_tells_no_term_where_brokers_report_none(
    given: list[str], led: list[str], settings: dict[str, Any], standing: Standing
) -> None:
    reported = [line.replace("epoch=0", "").replace("epoch=1", "") for line in led]
    found = decided("send r ok @5 t10..11", *given, *reported, *CUT, version="2.7.2", **settings)
    assert found.standing is standing


@pytest.mark.parametrize(
    ("when", "first", "standing"),
    [
        ("t10..11", None, UNDECIDED),
        ("t14.9..16", None, UNDECIDED),
        ("t15.9..17", None, UNDECIDED),
        ("t16.1..17", None, PERMITTED),
        ("t10..11", 0, PERMITTED),
        ("t10..11", 1, UNDECIDED),
    ],
    ids=["before", "in flight then", "soon after", "after", "of the first epoch", "of a later one"],
)
def test_before_the_first_report_another_may_have_led_unless_epochs_show_that_none_did(
    when: str, first: int | None, standing: Standing
) -> None:
    """Nobody reported anything before 15 s."""
    led = [*saw("b1", "15..20", 1, first, "1"), *saw("b2,b3", "15..25", 1, first, "1"), "fault k b1 20..40 kind=kill"]
    led += saw("b2", "26..60", 2, None if first is None else first + 1, "2")
    log = ["send late ok @6 t50..51", "end 0..7"]
    log += ["final a @4", "final b @5", "final late @6"] if first is None else []
    log += (
        [f"final a @4 e{first}", f"final b @5 e{first + 1}", f"final late @6 e{first + 1}"] if first is not None else []
    )
    settings = {"version": "2.7.2", "metadata": "zookeeper", "acks": "1", **UNCLEAN}
    assert decided(f"send r ok @5 {when}", *led, *log, **settings).standing is standing


@pytest.mark.parametrize("reported", ["40..41", "21..22", None], ids=["late", "at once", "never"])
def test_a_leader_that_tells_late_that_it_led_may_have_acknowledged_it_before_the_next_was_seen(
    reported: str | None,
) -> None:
    """b2 was elected after 20 s and cut off; b3 leads since 25 s. The log of b2 goes on above r."""
    lines = [*saw("b1,b2,b3", "0..20", 1, 0, "1,2,3"), *saw("b1,b3", "25..60", 3, 2, "1,3")]
    lines += [] if reported is None else saw("b2", reported, 2, 1, "2,3")
    log = ["final a @4 e0", "final b @5 e1", "final c @6 e1", "final late @7 e2", "send late ok @7 t50..51", "end 0..8"]
    assert decided("send r ok @5 t23..24", *lines, *log, **ALONE).standing is UNDECIDED


def test_a_record_that_two_leaders_may_have_acknowledged_is_undecided() -> None:
    """b1 is cut off and goes on; b2 leads since 20 s."""
    deposed = [*saw("b1", "0..40", 1, 0, "1,2,3"), *saw("b2,b3", "0..19", 1, 0, "1,2,3")]
    deposed += [*saw("b2,b3", "20..60", 2, 1, "2,3"), *saw("b1", "41..60", 2, 1, "2,3")]
    found = decided("send r ok @5 t30..31", *deposed, *CUT, **ALONE)
    assert (found.standing, found.may_have, names(found.must)) == (UNDECIDED, {1}, [])
    assert decided("send r ok @5 t10..11", *deposed, *CUT, **ALONE).standing is PERMITTED
    assert decided("send r ok @8 t50..51", *deposed, *CUT, "send end ok @6 t55..56", **ALONE).standing is VIOLATION


def wiped(*faults: str, leader: int = 2, isr: str = "2,3") -> list[str]:
    """The whole ISR had it; then disks were wiped, and another leads."""
    return [
        "send r ok @5 t10..11",
        *saw("b1", "0..20", 1, 0, "1,2,3"),
        *saw("b2,b3", "0..25", 1, 0, "1,2,3"),
        *faults,
        *saw("b2,b3", "26..60", leader, 1, isr),
        *CUT,
    ]


def begun_anew(lines: list[str]) -> list[str]:
    """The same, where the log of CUT has nothing of epoch 0, and begins with epoch 1."""
    return [line.replace("final b @5 e1", "final b @0 e1") for line in lines if line != CUT[0]]


@pytest.mark.parametrize(
    ("faults", "standing"),
    [
        (["fault w b1,b2,b3 20..24 kind=wipe"], PERMITTED),
        (["fault w b1,b2 20..24 kind=wipe"], VIOLATION),
        (["fault w b1,b2,b3 20..24 kind=wipe without=b3"], VIOLATION),
        (["fault w b1,b2,b3 20..24 kind=wipe unknown=b3"], UNDECIDED),
        (["fault w b1,b2,b3 2..4 kind=wipe"], VIOLATION),
        (["fault w b4,b1,b2 20..24 kind=wipe"], VIOLATION),
        (["fault w b2,b3 20..24 kind=wipe"], VIOLATION),
        (["fault w b1,b2,b3 20..24 kind=kill"], VIOLATION),
        ([], VIOLATION),
    ],
    ids=[
        "all",
        "two of three",
        "one without",
        "one unknown",
        "before",
        "another's disk",
        "one in sync lives",
        "killed alone",
        "none",
    ],
)
def test_records_go_with_every_disk_that_must_have_had_them(faults: list[str], standing: Standing) -> None:
    lines = begun_anew(wiped(*faults, leader=3, isr="3"))
    assert decided(*lines, unclean_election=False).standing is standing


def test_a_disk_that_was_filled_again_is_a_holders() -> None:
    refilled = [
        *saw("b1,b3", "0..60", 3, 0, "1,2,3"),
        "fault w b1 20..22 kind=wipe",
        *saw("b3", "23..30", 3, 0, "2,3"),
        *saw("b3", "31..60", 3, 0, "1,2,3"),
        "fault v b2,b3 40..42 kind=wipe",
    ]
    lines = ["send r ok @5 t10..11", "final a @4 e0", "send late ok @4 t58..59", "end 0..5"]
    reported = [line for line in refilled if not line.startswith("saw b3 @0") and not line.startswith("saw b1")]
    own = saw("b3", "0..22", 3, 0, "1,2,3")
    assert decided(*lines, *own, *reported, unclean_election=False).standing is VIOLATION
    never = [line for line in reported if "@31" not in line]
    still = saw("b3", "31..60", 3, 0, "2,3")
    assert decided(*lines, *own, *never, *still, unclean_election=False).standing is PERMITTED


def last_standing(*faults: str) -> list[str]:
    """b1 was alone in the ISR at last, lost its disk, and leads again."""
    return [
        "send r ok @5 t2..3",
        *saw("b1,b2,b3", "0..9", 1, 0, "1,2,3"),
        *saw("b1", "10..20", 1, 0, "1"),
        *saw("b2,b3", "10..25", 1, 0, "1"),
        *faults,
        *saw("b1,b2,b3", "26..60", 1, 2, "1"),
        "saw b2 @25 leader=-1 epoch=1 isr=1",
        "final b @5 e2",
        "send late ok @6 t50..51",
        "end 0..7",
    ]


def test_the_last_in_sync_replica_takes_all_with_its_disk_unless_it_is_guarded() -> None:
    down = ["fault k b1 20..24 kind=kill", "fault w b1 21..22 kind=wipe"]
    assert decided(*last_standing(*down), unclean_election=False).standing is PERMITTED
    # (With eligible leader replicas it may have been elected as the last known leader.)
    assert decided(*last_standing(*down), unclean_election=False, guarded=True).standing is UNDECIDED
    assert decided(*last_standing(down[0]), unclean_election=False).standing is VIOLATION


def emptied(beside: str, epoch: int = 1) -> list[str]:
    """b1 led with b2 in the ISR, lost its disk, and leads again."""
    return [
        *saw("b1", "0..20", 1, 0, "1,2"),
        *saw("b3", "0..25", 1, 0, "1,2"),
        *("fault k b1 20..24 kind=kill", "fault w b1 21..22 kind=wipe", f"fault f b2 {beside} kind=kill"),
        *saw("b1,b3", "26..60", 1, epoch, "1"),
        *("final a @4 e0", f"final b @5 e{epoch}", "send late ok @6 t50..51", "end 0..7"),
    ]


@pytest.mark.parametrize(("beside", "standing"), [("18..60", PERMITTED), ("25..60", UNDECIDED), ("40..60", VIOLATION)])
def test_an_empty_leader_is_permitted_only_if_no_other_isr_member_was_alive(beside: str, standing: Standing) -> None:
    assert decided("send r ok @5 t10..11", *emptied(beside), unclean_election=False).standing is standing


@pytest.mark.parametrize(("epoch", "standing"), [(1, VIOLATION), (2, UNDECIDED)])
def test_an_empty_leader_after_an_unreported_term_is_undecided(epoch: int, standing: Standing) -> None:
    assert decided("send r ok @5 t10..11", *emptied("40..60", epoch), **UNCLEAN).standing is standing


def last_known(wiped: str = "b1", eligible: str = "1", isr: str = "", elr: str = "", between: str = "") -> list[str]:
    """b1 was alone in the ISR at last, and down; then nobody was in it or eligible, and b1 leads again."""
    led = saw("b2,b3", "22..23", 2, 2, "2") if between else []
    epoch = 4 if between else 2
    return [
        "send r ok @5 t2..3",
        *saw("b1,b2,b3", "0..9", 1, 0, "1,2,3"),
        *saw("b1", "10..20", 1, 0, "1"),
        *saw("b2,b3", "10..20", 1, 0, "1"),
        "fault k b1 20..24 kind=kill",
        f"fault w {wiped} 21..22 kind=wipe",
        *saw("b2,b3", "21..21" if between else "21..23", -1, 1, "", f"elr={eligible}"),
        *(led if between == "reported" else []),
        *saw("b2,b3", "24..25", -1, epoch - 1, isr, f"elr={elr}"),
        *saw("b1,b2,b3", "26..60", 1, epoch, "1"),
        f"final b @5 e{epoch}",
        "send late ok @6 t50..51",
        "end 0..7",
    ]


def elr_at_last(*, b2: str, b3: str, before: str = "elr=2") -> list[str]:
    """The same; what was reported at last of who is eligible, by whom, and at 24 s by both."""
    return [
        *(line for line in last_known() if "@24..25" not in line),
        *saw("b2,b3", "24..24", -1, 1, "", before),
        *saw("b2", "25..25", -1, 1, "", b2),
        *saw("b3", "25..25", -1, 1, "", b3),
    ]


#: b2 was killed too, so that it may have ceased to be eligible.
OTHER_KILLED = "fault j b2 24.5..25.5 kind=kill"
UNWATCHED = [line for line in last_known() if not line.startswith(("saw b2 @2", "saw b3 @2")) or "@26" in line]


@pytest.mark.parametrize(
    ("lines", "standing"),
    [
        (last_known(), PERMITTED),
        (last_known(eligible="1,2"), PERMITTED),
        (last_known(eligible="2"), PERMITTED),
        (last_known(wiped="b2"), VIOLATION),
        (last_known(between="reported"), VIOLATION),
        (last_known(between="unseen"), UNDECIDED),
        (last_known(elr="2"), VIOLATION),
        ([*last_known(elr="2"), OTHER_KILLED], UNDECIDED),
        ([*last_known(elr="2"), "fault j b3 24.5..25.5 kind=kill"], VIOLATION),
        ([*last_known(elr="2"), "fault j b2 5..6 kind=kill"], VIOLATION),
        (last_known(elr="1"), UNDECIDED),
        (last_known(isr="2"), VIOLATION),
        (elr_at_last(b2="elr=2", b3=""), VIOLATION),
        (elr_at_last(b2="", b3=""), VIOLATION),
        (elr_at_last(b2="elr=2", b3="elr="), UNDECIDED),
        (elr_at_last(b2="elr=", b3=""), PERMITTED),
        (elr_at_last(b2="", b3="", before=""), UNDECIDED),
        ([*elr_at_last(b2="elr=2", b3=""), *saw("b4", "23..40", -1, 1, "", "elr=")], UNDECIDED),
        (UNWATCHED, UNDECIDED),
        ([line.replace("20..24", "1..1.5").replace("21..22", "1..1.5") for line in last_known()], VIOLATION),
        ([line.replace("21..22", "40..41") for line in last_known()], VIOLATION),
        ([*last_known(), "final z @7 e0", "final y @4 e0"], VIOLATION),
    ],
    ids=[
        *("it led last, empty", "another was eligible too", "another alone was eligible", "its disk is whole"),
        *("another led last", "another may have led last", "another is eligible", "and was killed"),
        *("and a third was killed", "and was killed before", "it is still eligible", "another is in sync"),
        *("one did not report that another is eligible", "at last neither did", "one may report another late"),
        *("nobody is any more, says one", "nobody ever reported it", "nobody is, says one that is cut off"),
        *("nobody reported", "wiped before", "wiped after", "a hole"),
    ],
)
def test_the_last_known_leader_takes_all_with_its_disk_where_nobody_else_is_eligible(
    lines: list[str], standing: Standing
) -> None:
    """As two runs of lose-messages/leader-wiped on 4.3.1 showed: the wiped broker left the ELR, and led 1 s later."""
    assert decided(*lines, unclean_election=False, guarded=True).standing is standing


def test_without_eligible_leader_replicas_nobody_is_elected_for_having_led_last() -> None:
    for lines in (last_known(), elr_at_last(b2="", b3="", before="")):
        found = decided(*lines, unclean_election=False)
        assert "last known leader" not in found.ruling.because


@pytest.mark.parametrize(("more", "standing"), [([], UNDECIDED), (["fault j b2 20..60 kind=kill"], PERMITTED)])
def test_an_unclean_election_needs_that_no_eligible_broker_could_be_elected(
    more: list[str], standing: Standing
) -> None:
    """b1 left the ISR as it was killed; b2 was eligible, and b3 was elected."""
    lines = [
        "send r ok @5 t2..3",
        *saw("b1,b2,b3", "0..9", 1, 0, "1,2"),
        *saw("b2,b3", "10..20", 1, 0, "1", "elr=2"),
        "fault k b1 20..60 kind=kill",
        *saw("b3", "21..23", -1, 1, "", "elr=1,2"),
        *saw("b3", "26..60", 3, 2, "3"),
        "final b @5 e2",
        "send late ok @6 t50..51",
        "end 0..7",
    ]
    settings = {**UNCLEAN, "min_insync_replicas": 2}
    assert decided(*lines, *more, guarded=True, **settings).standing is standing


def elected_dead(killed: str) -> list[str]:
    """b2 was killed and wiped when the controller made it leader; then b3, which was never in sync, led."""
    return [
        "send r ok @5 t2..3",
        *saw("b1,b2,b3", "0..19", 1, 0, "1,2"),
        *saw("b4", "0..21", 1, 0, "1,2"),
        f"fault k b1,b2 {killed} kind=kill",
        "fault w b2 21..22 kind=wipe",
        *saw("b3,b4", "22..24", 2, 1, "2"),
        *saw("b3,b4", "25..60", 3, 2, "3"),
        *saw("b2", "41..60", 3, 2, "3"),
        "final b @5 e2",
        "send late ok @6 t50..51",
        "end 0..7",
    ]


@pytest.mark.parametrize(
    ("killed", "led", "standing"),
    [
        ("20..28", [], PERMITTED),
        ("20..23", [], PERMITTED),
        ("20..23", saw("b2", "23.5..24", 2, 1, "2"), VIOLATION),
        ("20..21.5", [], VIOLATION),
        ("20..28 without=b2", [], VIOLATION),
    ],
    ids=["it did not run", "it began anew", "and led", "before it was elected", "it was not killed"],
)
def test_a_leader_that_did_not_run_took_nothing_with_its_empty_disk(
    killed: str, led: list[str], standing: Standing
) -> None:
    assert decided(*elected_dead(killed), *led, guarded=True, **UNCLEAN).standing is standing


@pytest.mark.parametrize(("killed", "took"), [("20..28", 2), ("20..23", 1)], ids=["it did not run", "it began anew"])
def test_without_eligible_leader_replicas_it_may_lead_with_an_empty_disk(killed: str, took: int) -> None:
    found = decided(*elected_dead(killed), **UNCLEAN)
    assert found.event is not None
    assert (found.standing, found.event.term) == (PERMITTED, took)


def test_without_eligible_leader_replicas_there_is_no_last_known_leader() -> None:
    lines = [*last_known(eligible="", isr="2"), OTHER_KILLED]
    assert decided(*lines, unclean_election=False, guarded=True).standing is UNDECIDED
    assert decided(*lines, unclean_election=False).standing is VIOLATION


def test_a_wiped_leader_out_of_a_whole_isr_that_no_fault_hit_is_a_violation() -> None:
    found = decided(*wiped("fault w b2 20..24 kind=wipe"), unclean_election=False)
    assert found.standing is VIOLATION or found.standing is UNDECIDED
    assert (
        decided(*wiped("fault w b2 20..24 kind=wipe", leader=3, isr="3"), unclean_election=False).standing is VIOLATION
    )


def test_an_eligible_leader_replica_has_what_was_committed() -> None:
    """b2 left the ISR as an eligible leader replica, and is elected when b1 is killed."""
    eligible = [
        *saw("b1,b2,b3", "0..12", 1, 0, "1,2"),
        *saw("b1", "13..20", 1, 0, "1", "elr=2"),
        *saw("b2,b3", "13..25", 1, 0, "1", "elr=2"),
        "fault killed b1 20..40 kind=kill",
        *saw("b2,b3", "26..60", 2, 1, "2"),
    ]
    assert decided("send r ok @5 t13..14", *eligible, *CUT, **UNCLEAN).standing is VIOLATION
    other = [line.replace("elr=2", "elr=3") for line in eligible]
    assert decided("send r ok @5 t14..15", *other, *CUT, **UNCLEAN).standing is UNDECIDED  # (Why was it not b3?)
    faulted = "fault cut b3 20..40 kind=isolate"
    assert decided("send r ok @5 t14..15", *other, faulted, *CUT, **UNCLEAN).standing is PERMITTED


BY_HAND = "fault elect-1 - 25..26 unclean"


@pytest.mark.parametrize(
    ("asked", "standing"),
    [
        ("fault elect-1 - 25..26 unclean", PERMITTED),
        ("fault elect-1 - 25..26 unclean missed", VIOLATION),
        ("fault elect-1 - 25..26 p1 unclean", VIOLATION),
        ("fault elect-1 - 25..26 unclean unknown", UNDECIDED),
        ("fault elect-1 - 2..3 unclean", VIOLATION),
        ("fault elect-1 - 50..51 unclean", VIOLATION),
    ],
    ids=["came", "in vain", "another partition", "perhaps", "before", "after"],
)
def test_an_election_by_hand_excuses_what_it_took_and_nothing_else(asked: str, standing: Standing) -> None:
    assert decided(*LOST_ALONE, asked, unclean_election=False).standing is standing


def test_an_election_by_hand_of_one_that_must_have_it_excuses_nothing() -> None:
    assert decided("send r ok @5 t10..11", *WHOLE, *CUT, BY_HAND, unclean_election=False).standing is VIOLATION


@pytest.mark.parametrize(
    ("of_b2", "standing"),
    [
        ([], UNDECIDED),
        (["fault f b2 5..8 kind=kill"], UNDECIDED),
        (["fault f b2 20..60 kind=kill"], PERMITTED),
        (["fault f b2 20..60 kind=kill without=b2"], UNDECIDED),
        (["fault f b2 20..60 kind=kill unknown=b2"], UNDECIDED),
    ],
    ids=["alive", "back long before", "dead", "in vain", "perhaps"],
)
@pytest.mark.parametrize("settings", [{}, {"min_insync_replicas": 2}, {"acks": "1"}], ids=["all", "all of 2", "acks=1"])
def test_an_election_by_hand_of_another_while_one_of_the_isr_lives_excuses_nothing(
    of_b2: list[str], standing: Standing, settings: dict[str, Any]
) -> None:
    """b1 was killed; b2 is in the ISR; b3, of outside it, was elected: Kafka takes one of the ISR first, if it can."""
    reported = [*saw("b1", "0..20", 1, 0, "1,2"), *saw("b3", "0..25", 1, 0, "1,2"), *saw("b3", "26..60", 3, 1, "3")]
    lines = ["send r ok @5 t10..11", *reported, "fault killed b1 20..60 kind=kill", *of_b2, *CUT]
    assert decided(*lines, BY_HAND, unclean_election=False, **settings).standing is standing
    assert decided(*lines, unclean_election=False, **settings).standing is VIOLATION


@pytest.mark.parametrize(
    ("epoch", "more", "standing"),
    [
        (1, [], PERMITTED),
        (2, [], UNDECIDED),
        (2, ["saw b3 @23.5 leader=-1 epoch=1 isr=1"], PERMITTED),
    ],
    ids=["the next epoch", "one is missing", "nobody led in it"],
)
def test_an_election_by_hand_excuses_no_other_that_came_after_one_that_nobody_saw(
    epoch: int, more: list[str], standing: Standing
) -> None:
    """b1, alone in the ISR, was killed; an election by hand came at 25 s; b3 was seen to lead from 26 s on, and lacks
    it."""
    reported = [*saw("b1", "0..20", 1, 0, "1"), *saw("b3", "0..23", 1, 0, "1"), *saw("b3", "26..60", 3, epoch, "3")]
    log = ["final a @4 e0", f"final b @5 e{epoch}", "send late ok @6 t50..51", f"final late @6 e{epoch}", "end 0..7"]
    lines = ["send r ok @5 t10..11", *reported, "fault k b1 20..60 kind=kill", BY_HAND, *more, *log]
    assert decided(*lines, unclean_election=False).standing is standing


@pytest.mark.parametrize(
    ("asked", "isr", "taken_in", "standing"),
    [
        ("30..31", "1,2", 2, VIOLATION),
        ("30..36", "1,2", 2, UNDECIDED),
        ("33..36", "1,2", 2, PERMITTED),
        ("30..31", "1", 1, PERMITTED),
        ("30..36", "1", 1, UNDECIDED),
        ("33..36", "1", 1, VIOLATION),
    ],
    ids=[f"{made}, the {by} took it" for by in ("second", "first") for made in ("the first", "either", "the second")],
)
def test_of_two_elections_in_the_time_of_one_by_hand_nobody_knows_which_it_made(
    asked: str, isr: str, taken_in: int, standing: Standing
) -> None:
    """b1 was killed, and b2, seen to lead at 31 s, right after; b3 was seen to lead from 35 s on."""
    reported = [*saw("b1", "0..23", 1, 0, isr), *saw("b2,b3", "0..30", 1, 0, isr), *saw("b2,b3", "31..31", 2, 1, "2")]
    reported += [*saw("b3", "32..34", 2, 1, "2"), *saw("b3", "35..60", 3, 2, "3")]
    killed = ["fault k b1 24..60 kind=kill", "fault l b2 31.5..60 kind=kill", f"fault e - {asked} unclean"]
    log = ["final a @4 e0", f"final x @5 e{taken_in}", "end 0..6"]
    lines = ["send r ok @5 t17..18", *reported, *killed, *log]
    assert decided(*lines, unclean_election=False).standing is standing


@pytest.mark.parametrize(
    ("answer", "standing"),
    [(" unknown", UNDECIDED), ("", VIOLATION), (" missed", VIOLATION)],
    ids=["none", "it came", "in vain"],
)
def test_an_election_by_hand_that_nobody_answered_may_come_at_any_time_later(answer: str, standing: Standing) -> None:
    """b1, alone in the ISR, was killed; b3 is seen to lead 17 s after the request was given up."""
    reported = [*saw("b1", "0..23", 1, 0, "1"), *saw("b2,b3", "0..61", 1, 0, "1"), *saw("b2,b3", "62..90", 3, 1, "3")]
    faults = ["fault k b1 24..90 kind=kill", f"fault e - 30..45 unclean{answer}"]
    assert decided("send r ok @5 t10..11", *reported, *faults, *CUT, unclean_election=False).standing is standing


@pytest.mark.parametrize(
    ("minimum", "version", "high", "standing"),
    [
        (1, "4.3.1", "", VIOLATION),
        (2, "4.3.1", "", UNDECIDED),
        (2, "3.7.0", "", UNDECIDED),
        (2, "3.6.2", "", VIOLATION),
        (2, "4.3.1", "high=6", VIOLATION),
    ],
    ids=["at its minimum", "below it", "since 3.7", "before 3.7", "reported to be committed"],
)
def test_a_leader_alone_in_the_isr_commits_at_once_unless_below_min_insync(
    minimum: int, version: str, high: str, standing: Standing
) -> None:
    """b1, alone in the ISR, was killed right after it was last heard; b2 may have joined the ISR by then, at the high
    watermark, and lack what was not committed (acks=1)."""
    reported = [
        *saw("b1", "0..20", 1, 0, "1", high),
        *saw("b2,b3", "0..20", 1, 0, "1"),
        "fault k b1 20.9..60 kind=kill",
    ]
    lines = ["send r ok @5 t18..18.5", *reported, *saw("b2,b3", "21..60", 2, 1, "2"), *CUT]
    assert decided(*lines, **ALONE, min_insync_replicas=minimum, version=version).standing is standing


@pytest.mark.parametrize(("alone", "standing"), [(17, VIOLATION), (20, UNDECIDED)])
def test_an_isr_that_was_reported_only_for_a_moment_may_not_have_been_the_last(alone: int, standing: Standing) -> None:
    """b3 left the ISR of b1, which was killed right after it was last heard; b2 may have joined it by then."""
    reported = [*saw("b1,b2,b3", f"0..{alone - 1}", 1, 0, "1,3"), *saw("b1,b2,b3", f"{alone}..20", 1, 0, "1")]
    lines = [*reported, "fault k b1 20.9..60 kind=kill", *saw("b2,b3", "21..60", 2, 1, "2"), *CUT]
    assert decided("send r ok @5 t18..18.5", *lines, **ALONE).standing is standing


@pytest.mark.parametrize(("other", "standing"), [("1,3", VIOLATION), ("1", UNDECIDED)])
def test_an_empty_leader_may_be_outside_the_last_isr_if_the_reports_differ(other: str, standing: Standing) -> None:
    """b3 is elected, but not because b1 was under a fault; b4, which is cut off, reported another ISR in the end."""
    lines = [*saw("b1,b2,b4", "0..4", 1, 0, "1,2,3"), *saw("b1,b2", "5..25", 1, 0, "1,3")]
    lines += [*saw("b4", "5..24", 1, 0, "1,3"), *saw("b4", "25", 1, 0, other), "fault i b4 2..60 kind=isolate"]
    lines += saw("b1,b2,b3", "26..60", 3, 1, "3")
    lines += ["fault k b3 20..25.5 kind=kill", "fault w b3 21..22 kind=wipe"]
    assert decided("send r ok @5 t10..11", *lines, *CUT, **UNCLEAN).standing is standing


#: Before KIP-497 a reported ISR may be a minute old; before KIP-320 no epoch is reported.
OLD: dict[str, Any] = {"version": "0.10.2.2", "metadata": "zookeeper"}


def without_epochs(lines: Sequence[str]) -> list[str]:
    return [line.replace("epoch=0", "").replace("epoch=1", "") for line in lines]


@pytest.mark.parametrize(
    ("log", "standing"),
    [
        (["final a @4", "final b @6", "send late ok @6 t50..51", "end 0..7"], VIOLATION),
        (["final a @4", "final b @5", "send late ok @5 t50..51", "end 0..6"], PERMITTED),
        (["final a @4", "send late ok @4 t50..51", "end 0..5"], PERMITTED),
    ],
    ids=["a gap", "another stands there", "it ends there"],
)
@pytest.mark.parametrize("settings", [ALONE, {"acks": "1", **UNCLEAN}], ids=["cleanly", "uncleanly"])
def test_a_gap_in_a_log_without_epochs_was_cut_by_nothing(
    log: list[str], standing: Standing, settings: dict[str, Any]
) -> None:
    assert decided("send r ok @5 t10..11", *without_epochs(WHOLE), *log, **settings, **OLD).standing is standing


def test_a_gap_in_a_log_of_records_without_epochs_was_cut_by_nothing_whatever_epochs_brokers_report() -> None:
    sent, hole = "send r ok @5 t10..11", ["final a @4", "final b @6", "end 0..7"]
    assert decided(sent, *LONELY, *hole[:1], "end 0..5", **UNCLEAN).standing is PERMITTED
    assert decided(sent, *LONELY, *hole, **UNCLEAN).standing is VIOLATION


def test_an_isr_that_is_reported_late_proves_nothing_soon() -> None:
    lines = ["send r ok @5 t10..11", "end 0..5", "send late ok @4 t50..51"]
    assert decided(*lines, *without_epochs(LONELY), **UNCLEAN, **OLD).standing is UNDECIDED
    assert decided(*lines, *without_epochs(WHOLE), **UNCLEAN, **OLD).standing is UNDECIDED


def test_without_epochs_and_with_late_isrs_a_clean_election_is_of_one_that_must_have_it() -> None:
    lines = ["send r ok @5 t10..11", "end 0..5", "send late ok @4 t50..51"]
    assert decided(*lines, *without_epochs(WHOLE), unclean_election=False, **OLD).standing is VIOLATION
    assert decided(*lines, *without_epochs(WHOLE), **ALONE, **OLD).standing is PERMITTED


def test_a_hanging_transactions_marker_goes_where_its_log_was_cut() -> None:
    recorded = by_hand(
        "txn 1 commit ok 0..5..6", *LONELY, "final a @4 e0", "final b @5 e1", "send late ok @6 t50..51", "end 0..7"
    )
    case = Case(TRIAL, None, None, False, 5, 5)
    assert holders.decided(evidence(recorded, unclean_election=False), HANGING_TRANSACTION, case).standing is VIOLATION
    assert holders.decided(evidence(recorded, **UNCLEAN), HANGING_TRANSACTION, case).standing is UNDECIDED


def test_a_loss_without_offset_and_time_is_a_violation_if_no_event_can_explain_it() -> None:
    quiet = by_hand(*saw("b1,b2,b3", "0..60", 1, 0, "1,2,3"), "end 0..5", "send late ok @4 t50..51")
    nothing = Case(TRIAL, None, None, True)
    assert holders.decided(evidence(quiet, **UNCLEAN), LOST, nothing).standing is VIOLATION
    assert holders.decided(evidence(by_hand(*LONELY, *CUT), **UNCLEAN), LOST, nothing).standing is UNDECIDED


def test_a_wipe_after_the_election_that_took_it_excuses_nothing() -> None:
    """b1 was restarted, came back without r and wrote on from its offset; its disk was wiped 24 s later."""
    lines = [
        "send r ok @5 t10..11",
        *saw("b1,b2,b3", "0..20", 1, 0, "1"),
        "fault k b1 20..24 kind=kill",
        "saw b2 @25 leader=-1 epoch=1 isr=1",
        *saw("b1,b2,b3", "26..48", 1, 2, "1"),
        *saw("b2,b3", "50..60", 2, 3, "2,3"),
        *("final a @4 e0", "final b @5 e2", "send late ok @6 t40..41", "final late @6 e2", "end 0..7"),
    ]
    wipe = "fault w b1 49..52 kind=wipe"
    assert decided(*lines, **ALONE).standing is VIOLATION
    assert decided(*lines, wipe, **ALONE).standing is VIOLATION
    assert decided(*lines, wipe, unclean_election=True, min_insync_replicas=1).standing is VIOLATION


@pytest.mark.parametrize("more", [{"unclean_election": True}, {"unclean_election": False}], ids=["unclean", "by hand"])
def test_the_loss_of_a_record_acknowledged_below_min_insync_is_never_permitted(more: dict[str, Any]) -> None:
    """b1 reported itself alone in the ISR from 5 s on; min.insync.replicas is 2, and r was acknowledged at 11 s."""
    asked = [] if more["unclean_election"] else [BY_HAND]
    assert decided(*LOST_ALONE, *asked, min_insync_replicas=2, **more).standing is not PERMITTED
    assert decided(*LOST_ALONE, *asked, min_insync_replicas=1, **more).standing is PERMITTED


def test_a_record_in_a_hole_is_attached_to_no_election() -> None:
    """b1, deposed at 20 s, goes on until 40 s (acks=1); b2 goes on from 5 and lacks 21 between records of its own."""
    deposed = [*saw("b1", "0..40", 1, 0, "1,2,3"), *saw("b2,b3", "0..19", 1, 0, "1,2,3")]
    deposed += [*saw("b2,b3", "20..60", 2, 1, "2,3"), *saw("b1", "41..60", 2, 1, "2,3")]
    recorded = by_hand(
        "send x ok @1 t50..51", *deposed, "final a @4 e0", "final b @5 e1", "final c @40 e1", "end 0..41"
    )
    known = evidence(recorded, **ALONE)
    lost = [(o, 10 + 0.3 * o, 10.2 + 0.3 * o) for o in range(5, 21)] + [(21, 24.0, 24.5)]
    rows = [
        {"topic": "trial", "partition": 0, "offset": o, "sent_ns": int(s * SECOND), "acknowledged_ns": int(a * SECOND)}
        for o, s, a in lost
    ]
    holes = {TRIAL: (np.array([21]), np.array([21]))}
    parts = record_ranges([pa.Table.from_pylist(rows, COLUMNS)], {}, 64, holes, known)
    last = attached(each_decided(parts, LOST, known), 64, known.logs)[-1]
    assert (last.first_offset, last.decision.standing) != (21, PERMITTED)


@pytest.mark.parametrize(("version", "standing"), [("3.5.1", PERMITTED), ("4.3.1", VIOLATION)])
def test_a_hanging_transaction_is_permitted_where_partitions_are_not_verified(version: str, standing: Standing) -> None:
    recorded = by_hand(
        "txn 1 commit ok 0..5..6", *saw("b1,b2,b3", "0..60", 1, 0, "1,2,3"), "final a @4 e0", "final b @5 e0"
    )
    case = Case(TRIAL, None, None, False, 5, 5)
    known = evidence(recorded, unclean_election=False, version=version)
    assert holders.decided(known, HANGING_TRANSACTION, case).standing is standing
    assert holders.decided(known, LOST, Case(TRIAL, 2 * SECOND, 3 * SECOND, True, 5, 5)).standing is VIOLATION
    unwatched = evidence(by_hand("txn 1 commit ok 0..5..6"), unclean_election=False, version=version)
    assert holders.decided(unwatched, HANGING_TRANSACTION, case).standing is standing


@pytest.mark.parametrize(("version", "if_it_ended_before"), [("3.5.1", UNDECIDED), ("4.3.1", VIOLATION)])
def test_a_hanging_transaction_is_not_permitted_if_its_first_write_came_in_time(
    version: str, if_it_ended_before: Standing
) -> None:
    recorded = by_hand("txn 1 commit ok 0..5..6", *saw("b1,b2,b3", "0..60", 1, 0, "1,2,3"), "final a @4 e0")
    in_time = Case(TRIAL, None, None, False, 5, 5, in_time=True)
    for lines in (recorded, by_hand("txn 1 commit ok 0..5..6")):
        known = evidence(lines, unclean_election=False, version=version)
        assert holders.decided(known, HANGING_TRANSACTION, in_time).standing is VIOLATION
        may_have_ended = replace(in_time, in_time=None)
        assert holders.decided(known, HANGING_TRANSACTION, may_have_ended).standing is if_it_ended_before
        assert known.alike(in_time) != known.alike(may_have_ended)


@pytest.mark.parametrize(("over", "standing"), [("40", VIOLATION), ("", UNDECIDED)])
def test_of_a_transaction_that_a_fault_may_still_hold_up_nobody_knows_whether_it_hangs(
    over: str, standing: Standing
) -> None:
    """The log of the coordinator needs two replicas (transaction.state.log.min.isr)."""
    lines = ("txn 1 commit info 0..5..", *saw("b1,b2,b3", "0..60", 1, 0, "1,2,3"), f"fault k b2,b3 3..{over} kind=kill")
    case = Case(TRIAL, None, None, False, 5, 5, in_time=True)
    for version in ("3.5.1", "4.3.1"):
        known = evidence(by_hand(*lines), unclean_election=False, version=version)
        assert holders.decided(known, HANGING_TRANSACTION, case).standing is standing


def test_of_a_record_without_an_offset_nobody_knows_whether_it_was_cut() -> None:
    """s was sent after r was acknowledged, in the same term, and survives: r stood below it, where nothing was cut."""
    log = ["final a @4 e0", "final s @9 e0", "final b @10 e1", "send late ok @11 t50..51", "end 0..12"]
    found = decided("send r ok t10..11", "send s ok @9 t18..19", *WHOLE, *log, **ALONE)
    assert found.standing is not PERMITTED


def test_a_record_acknowledged_after_its_leader_died_may_be_of_the_successor() -> None:
    """b1 was killed at 18 s; its term was last reported at 20 s, that of b2 first at 23 s. r was sent in between."""
    lines = [
        *saw("b1,b2,b3", "0..18", 1, 0, "1,2,3"),
        "fault killed b1 18..60 kind=kill",
        *saw("b2,b3", "19..20", 1, 0, "1,2,3"),
        *saw("b2,b3", "23..60", 2, 1, "2,3"),
        *CUT,
    ]
    found = decided("send r ok @5 t21..21.5", *lines, **ALONE)
    assert found.standing is not PERMITTED


#: Epoch 1 began at 3, and lost its first records, 3 to 5, without an election.
BEGINNING_GONE = Log(np.array([0, 1]), np.array([0, 6]), np.array([2, 9]), 10)


def test_an_epoch_begins_where_a_consumer_was_given_its_first_record() -> None:
    assert BEGINNING_GONE.cut(0, 4) == (False, None)
    assert BEGINNING_GONE.begun_at({1: 3}).cut(0, 4) == (True, 1)
    assert BEGINNING_GONE.begun_at({1: 3}).cut(1, 4) == (False, None)


@pytest.mark.parametrize("each", [(3, 5), (5, 3)])
def test_of_what_vanished_the_lowest_begins_its_epoch(each: tuple[int, int]) -> None:
    gone = [Case(TRIAL, None, SECOND, False, offset, offset, 1, SECOND) for offset in each]
    assert begun_at({TRIAL: BEGINNING_GONE}, gone)[TRIAL].first.tolist() == [0, 3]


@pytest.mark.parametrize(("times", "committed"), [((30, 20), [20, 20]), ((10, 20), [10, 20])])
def test_a_vanished_record_was_committed_by_the_first_delivery_at_or_above_it(
    times: tuple[int, int], committed: list[int]
) -> None:
    gone = [Case(TRIAL, None, at, False, offset, offset, 0, at) for offset, at in zip((5, 7), times, strict=True)]
    [(offsets, by)] = delivered(gone, evidence(by_hand(*WHOLE))).values()
    assert (offsets.tolist(), by.tolist()) == ([5, 7], committed)


_SILENCE = [*saw("b1,b2,b3", "0..8", 1, 0, "1,2,3"), *saw("b1,b2,b3", "15..24", 1, 0, "1,2,3")]


@pytest.mark.parametrize(
    ("sent", "at", "seen", "terms"),
    [
        (6, 9, WHOLE, [0]),
        (50, 52, WHOLE, [1]),
        (None, 9, WHOLE, []),
        (6, 52, WHOLE, []),
        (19, 21, WHOLE, [0]),
        (19, 24, WHOLE, []),
        (6, None, WHOLE, []),
        (6, 9, [*WHOLE, "fault w b1 2..3 kind=wipe"], []),
        (6, 9, [*WHOLE, "fault w b1 50..53 kind=wipe"], []),
        (6, 9, [*WHOLE, "fault w b1 2..3 kind=wipe missed"], [0]),
        (6, 9, [*WHOLE, "fault w b1 2..3 kind=wipe unknown"], []),
        (6, 9, [*WHOLE, "fault w b2,b3 2..3 kind=wipe"], [0]),
        (6, 12, [*_SILENCE, *WHOLE[3:]], []),
        (5, 7, [*_SILENCE, *WHOLE[3:]], [0]),
        (6, 9, [], []),
    ],
)
def test_without_epochs_what_vanished_is_of_the_only_term_of_its_time(
    sent: float | None, at: float | None, seen: list[str], terms: list[int]
) -> None:
    sent_ns, at_ns = (None if one is None else int(one * SECOND) for one in (sent, at))
    gone = Case(TRIAL, sent_ns, at_ns, False, 5, 5, 0, at_ns)
    known = evidence(by_hand(*without_epochs(seen)), **ALONE, **OLD)
    assert [number for _, number in delivered([gone], known)] == terms


@pytest.mark.parametrize(("epoch", "terms"), [(0, [0]), (1, [1]), (2, []), (None, [])])
def test_with_epochs_it_is_of_its_own(epoch: int | None, terms: list[int]) -> None:
    gone = Case(TRIAL, 6 * SECOND, 9 * SECOND, False, 5, 5, epoch, 9 * SECOND)
    known = evidence(by_hand(*WHOLE, "fault w b1 2..3 kind=wipe"), **ALONE)
    assert [number for _, number in delivered([gone], known)] == terms


@pytest.mark.parametrize("given", [{}, {1: 7}, {2: 3}])
def test_it_begins_no_later_and_an_epoch_that_is_not_in_the_log_begins_nowhere(given: dict[int, int]) -> None:
    assert BEGINNING_GONE.begun_at(given).first.tolist() == [0, 6]


def test_an_epoch_takes_no_record_below_its_first_delivered_offset() -> None:
    assert BEGINNING_GONE.begun_at({1: 5}).cut(0, 4) == (False, None)


def test_a_wiped_disk_that_stays_in_every_reported_isr_may_have_been_filled_again() -> None:
    """One disk after the other was wiped, 10 s apart; each broker was reported in the ISR long after its heal."""
    rolling = [
        "send r ok @5 t10..11",
        *saw("b1,b2,b3", "0..39", 1, 0, "1,2,3"),
        "fault w1 b2 20..21 kind=wipe",
        "fault w2 b3 30..31 kind=wipe",
        "fault w3 b1 40..41 kind=wipe",
        *saw("b2,b3", "42..60", 2, 1, "2,3"),
        *CUT,
    ]
    assert decided(*rolling, unclean_election=False).standing is UNDECIDED
    one = ["fault w b2 15..16 kind=wipe", "fault k b1 20..40 kind=kill", "fault l b3 20..40 kind=isolate"]
    assert decided(*wiped(*one), **UNCLEAN).standing is UNDECIDED
    at_once = [line.replace("20..21", "40..41").replace("30..31", "40..41") for line in rolling]
    assert decided(*begun_anew(at_once), unclean_election=False).standing is PERMITTED
    soon = ["fault w b2 18.5..19.5 kind=wipe", *one[1:]]
    assert decided(*wiped(*soon), **UNCLEAN).standing is PERMITTED


def led_again(down: str = "20..40 kind=kill", joined: str = "2") -> list[str]:
    """b1 alone had r, and was down. b2 led from 26 to 38 s, and wrote nothing that is left; b1 leads since 44 s."""
    return [
        "send r ok @5 t10..11",
        *saw("b1,b2,b3", "0..20", 1, 0, "1"),
        *saw("b2,b3", "21..25", 1, 0, "1"),
        f"fault k b1 {down}",
        *saw("b2,b3", "26..33", 2, 1, "2"),
        *saw("b2,b3", "34..38", 2, 1, joined),
        "fault q b2,b3 38..60 kind=kill",
        "saw b3 @39 leader=-1 epoch=2 isr=2",
        *saw("b1", "44..60", 1, 3, "1"),
    ]


@pytest.mark.parametrize("log", [["final b @5 e3", "end 0..7"], ["end 0..5"]], ids=["it wrote there", "nobody did"])
@pytest.mark.parametrize("acks", ["all", "1"])
@pytest.mark.parametrize(
    ("lines", "standing"),
    [
        (led_again(), VIOLATION),
        (led_again("20..40 kind=pause"), VIOLATION),
        (led_again("20..30 kind=kill"), UNDECIDED),
        (led_again("20..40 kind=isolate"), UNDECIDED),
        (led_again("20..40 kind=kill without=b1"), UNDECIDED),
        ([line for line in led_again() if "@21" not in line], UNDECIDED),
        (led_again("20..30 kind=kill", joined="1,2"), PERMITTED),
    ],
    ids=[
        *("down all along", "halted all along", "up for a while", "cut off", "not down"),
        *("nobody reported when b2 began", "it followed"),
    ],
)
def test_a_broker_that_was_down_under_another_leader_remains_a_holder(
    lines: list[str], standing: Standing, acks: str, log: list[str]
) -> None:
    more = ["final a @4 e0", *log, "send late ok @6 t55..56"]
    assert decided(*lines, *more, acks=acks, **UNCLEAN).standing is standing


def test_an_election_without_the_record_takes_it_even_if_a_holder_leads_later() -> None:
    """The log of b2 continues at the offset of r: that election took r, even if a broker had kept it."""
    lines = [*led_again(), "final a @4 e0", "final b @5 e1", "send late ok @6 t55..56", "end 0..7"]
    assert decided(*lines, **UNCLEAN).standing is PERMITTED


@pytest.mark.parametrize(
    ("wipe", "log", "standing"),
    [
        ("fault w b1 20..30 kind=wipe", ["final a @4 e0", "final b @5 e1"], UNDECIDED),
        ("fault w b1 20..30 kind=wipe", ["final b @5 e1"], UNDECIDED),
        ("fault w b1 20..30 kind=wipe", [], UNDECIDED),
        ("fault w b1 20..30 kind=wipe", ["final b @0 e1"], PERMITTED),
        ("fault w b1 20..30 kind=wipe", ["final b @5 e1", "retained"], PERMITTED),
        ("fault w b1 20..30 kind=wipe", ["final b @5 e1", "txn 1 commit ok 0..5..6"], PERMITTED),
        ("fault w b2 20..30 kind=wipe", ["final b @0 e1"], VIOLATION),
        ("fault w b1 20..30 kind=wipe without=b1", ["final b @0 e1"], VIOLATION),
    ],
    ids=[
        *("older records survived", "no older ones, but their offsets", "no records, but their offsets"),
        *("nothing did", "retention took what was below", "markers may stand below", "another disk", "in vain"),
    ],
)
def test_a_log_whose_older_records_survived_was_not_wiped(wipe: str, log: list[str], standing: Standing) -> None:
    """Replication factor 1: the record before r, of the same epoch, was on the same disk."""
    led = [*saw("b1", "0..20", 1, 0, "1", "replicas=1"), wipe, *saw("b1", "32..60", 1, 1, "1", "replicas=1")]
    end = "end 5..7" if "retained" in log else "end 0..7"
    lines = [*led, "send a ok @4 t1..2", *(one for one in log if one != "retained"), "send late ok @6 t50..51", end]
    found = decided("send r ok @5 t10..11", *lines, replication=1, unclean_election=False)
    assert found.standing is standing


def test_of_disks_wiped_in_turn_one_may_have_filled_another() -> None:
    lines = [
        *saw("b1,b2,b3", "0..20", 1, 0, "1,2", "replicas=1,2"),
        "fault w b2 12..14 kind=wipe",
        "fault v b1 20..22 kind=wipe",
        *saw("b1,b2,b3", "26..60", 2, 1, "2", "replicas=1,2"),
    ]
    reported = [line.replace("@0..20", "@0..13") for line in lines]
    reported += saw("b1,b2,b3", "14..20", 1, 0, "1", "replicas=1,2")
    found = decided("send r ok @5 t10..11", *reported, *CUT, unclean_election=True)
    assert found.standing is PERMITTED


#: A transaction wrote to the log, of which 5 is missing between two records of one epoch.
_MARKED = ["txn 1 commit ok 0..5..6", "final a @4 e0", "final c @6 e0", "end 0..7"]
_QUIET = saw("b1,b2,b3", "0..60", 1, 0, "1,2,3")


@pytest.mark.parametrize(
    ("more", "settings", "anomaly", "standing"),
    [
        (_QUIET, UNCLEAN, LOST, VIOLATION),
        (_QUIET, UNCLEAN, HANGING_TRANSACTION, VIOLATION),
        (WHOLE, UNCLEAN, LOST, VIOLATION),
        (WHOLE, UNCLEAN, HANGING_TRANSACTION, UNDECIDED),
        (WHOLE, {**UNCLEAN, "isolation_level": "read_committed"}, LOST, UNDECIDED),
        (WHOLE, {"unclean_election": False, "isolation_level": "read_committed"}, LOST, VIOLATION),
        ([*_QUIET, "fault k b3 20..30 kind=kill"], UNCLEAN, HANGING_TRANSACTION, UNDECIDED),
        ([*_QUIET, "fault k b3 20..30 kind=kill missed"], UNCLEAN, HANGING_TRANSACTION, VIOLATION),
        (WHOLE, UNCLEAN, replace(LOST, name="new"), VIOLATION),
        (WHOLE, UNCLEAN, replace(LOST, name="new", by_coordinator=True), UNDECIDED),
    ],
    ids=[
        *("no fault", "no fault, a marker", "all is read", "an election, a marker", "committed is read"),
        *("clean elections", "a fault, a marker", "a fault in vain"),
        *("a new anomaly", "a new anomaly that a coordinator may cause"),
    ],
)
def test_an_anomaly_is_undecided_if_the_coordinator_log_may_have_lost_records(
    more: list[str], settings: dict[str, Any], anomaly: Anomaly, standing: Standing
) -> None:
    found = decided("send r ok @5 x1 t2..3", *more, *_MARKED, anomaly=anomaly, **settings)
    assert found.standing is standing


@pytest.mark.parametrize(
    ("log", "standing"),
    [
        (["final a @4 e0", "final b @5 e1", "end 0..7"], VIOLATION),
        (["final a @4 e0", "end 0..5"], VIOLATION),
        (["final b @0 e1", "end 0..7"], VIOLATION),
        (["final a @4 e0", "final b @6 e1", "end 0..7"], UNDECIDED),
        (["final a @4 e0", "final x @5 e0", "end 0..7"], UNDECIDED),
        (["final b @5 e1", "final x @6 e0", "end 0..7"], UNDECIDED),
    ],
    ids=[
        *("a later epoch is there", "it ends there", "begun anew", "a later epoch is above", "its own is there"),
        "its own is above, too",
    ],
)
def test_a_record_that_a_cut_took_is_gone_whatever_the_coordinator_log_lost(log: list[str], standing: Standing) -> None:
    settings: dict[str, Any] = {**UNCLEAN, "isolation_level": "read_committed"}
    lines = ["send r ok @5 x1 t2..3", "txn 1 commit ok 0..5..6", *WHOLE, "send late ok @7 t50..51", *log]
    assert decided(*lines, anomaly=FRACTURED, **settings).standing is standing


def test_the_coordinator_log_is_not_in_doubt_without_transactions() -> None:
    settings: dict[str, Any] = {**UNCLEAN, "isolation_level": "read_committed"}
    for log in (CUT, []):
        assert decided("send r ok @5 t10..11", *WHOLE, *log, **settings).standing is VIOLATION


#: b1 led until 20 s, b2 from 19 s on, and then b3.
_THREE_LED = (
    *("saw b1 @0..20 leader=1 epoch=0 isr=1,2,3", "saw b2 @0..18 leader=1 epoch=0 isr=1,2,3"),
    *("saw b2 @19..30 leader=2 epoch=1 isr=2,3", "saw b3 @19..35 leader=2 epoch=1 isr=2,3"),
    "saw b3 @36..60 leader=3 epoch=2 isr=3",
    *("fault i b1 17..40 kind=isolate plane=all", "fault k b2 30..50 kind=kill"),
)


@pytest.mark.parametrize(("sent", "taken_by"), [("10..11", 1), ("19.5..19.8", None)])
def test_a_loss_that_two_permitted_events_may_explain_names_neither(sent: str, taken_by: int | None) -> None:
    """b3 goes on at the record's place."""
    log = ("final a @4 e0", "final b @5 e2", "send late ok @6 t55..56", "final late @6 e2", "end 0..7")
    found = decided(f"send r ok @5 t{sent}", *_THREE_LED, *log, **ALONE)
    assert (found.standing, found.taken_by and found.taken_by.epoch) == (PERMITTED, taken_by)


@pytest.mark.parametrize(
    ("fault", "stands"),
    [
        ("fault d b3 25..28 kind=pause", PERMITTED),
        ("fault d b3 25..28 kind=pause unknown=b3", UNDECIDED),
        ("fault d b2,b3 25..28 kind=isolate unknown=b2,b3", UNDECIDED),
    ],
    ids=["no doubt", "a pause", "a cut"],
)
def test_a_neighbour_decides_nothing_that_a_later_fault_in_doubt_leaves_open(fault: str, stands: Standing) -> None:
    log = ("final a @4 e0", "final b @5 e2", "send late ok @40 t55..56", "final late @40 e2", "end 0..41")
    known = evidence(by_hand(*_THREE_LED, fault, *log), **ALONE)
    rows = [
        {"topic": "trial", "partition": 0, "offset": offset, "sent_ns": sent * 10**8, "acknowledged_ns": until * 10**8}
        for offset, sent, until in ((5, 100, 105), (6, 106, 109), (7, 195, 198))
    ]
    parts = each_decided(record_ranges([pa.Table.from_pylist(rows, COLUMNS)], {}, 64, {}, known), LOST, known)
    found = [(one.first_offset, one.standing) for one in attached(parts, 64, known.logs)]
    assert found == [(5, PERMITTED), (7, stands)]


@pytest.mark.parametrize(("since", "stands"), [(20, UNDECIDED), (27, PERMITTED)])
def test_a_doubt_matters_to_a_deposed_leaders_record_until_it_was_acknowledged(since: int, stands: Standing) -> None:
    """b2 leads since 19 s; b1 hears of it at 41 s."""
    led = (
        "saw b1 @0..40 leader=1 epoch=0 isr=1,2,3",
        *(f"saw b{n} @0..18 leader=1 epoch=0 isr=1,2,3" for n in (2, 3)),
        *(f"saw b{n} @19..60 leader=2 epoch=1 isr=2,3" for n in (2, 3)),
        *("fault i b1 17..40 kind=isolate plane=all clients=kept", "saw b1 @41..60 leader=2 epoch=1 isr=2,3"),
    )
    log = ("final a @4 e0", "final b @5 e1", "send late ok @6 t55..56", "final late @6 e1", "end 0..7")
    doubt = f"fault d b1,b2 {since}..35 kind=pause unknown=b1,b2"
    assert decided("send r ok @5 t25..26", "live r @5 e0 t27", *led, doubt, *log, **ALONE).standing is stands


def test_a_log_read_as_committed_shows_no_cut_at_its_end() -> None:
    log = Log(*np.array([[0], [0], [4]], np.int64), 5, sparse=True)
    assert log.shows_cut(0, 5)
    assert not replace(log, whole=False).shows_cut(0, 5)


@pytest.mark.parametrize(
    ("isolation", "more", "whole"),
    [
        ("read_committed", ("stable @2 high=2",), True),
        ("read_committed", (), False),
        ("read_committed", ("stable @2 p1 high=2",), False),
        ("read_uncommitted", (), True),
    ],
    ids=["stable to its end", "not known", "another partition's is known", "all was read"],
)
def test_a_log_is_whole_if_its_last_stable_offset_is_known_or_everything_was_read(
    isolation: str, more: tuple[str, ...], whole: bool, tmp_path: Path
) -> None:
    lines = ("txn 1 commit ok 0..5..6", "send a ok @0 x1 t1..2", "final a @0 e0", "end 0..2", *more)
    write(tmp_path, [by_hand(*lines)], isolation_level=isolation)
    row = {"topic": "trial", "partition": 0, "leader_epoch": 0, "first": 0, "last": 0}
    assert logs(StoredRun.open(tmp_path), pa.Table.from_pylist([row]))[TRIAL].whole is whole


_B3_OUT_OF_SYNC = (
    *("send r ok @5 t25..26", *(f"saw b{n} @0..47 leader=1 epoch=0 isr=1,2 replicas=1,2,3" for n in (1, 2, 3))),
    *("saw b3 @50..80 leader=3 epoch=1 isr=3 replicas=1,2,3", "fault k b1 49..90 kind=kill"),
    *("fault l b2 48.5..90 kind=kill", "final a @4 e0", "final b @5 e1", "send late ok @6 t75..76"),
    *("final late @6 e1", "end 0..7", "saw b4 @0..80 p1 leader=4 epoch=0 isr=4 replicas=4"),
)
_NOBODY_KNOWS = "unknown=b1,b2"


@pytest.mark.parametrize(
    ("fault", "stands"),
    [
        (f"fault a b1,b2 8..49 kind=isolate {_NOBODY_KNOWS}", UNDECIDED),
        ("fault a b1,b2 8..49 kind=isolate without=b1,b2", PERMITTED),
        ("fault a b1,b2 8..49 kind=isolate", PERMITTED),
        (f"fault a b1,b2 51..60 kind=isolate {_NOBODY_KNOWS}", PERMITTED),
        ("fault a b4 8..49 kind=isolate unknown=b4", PERMITTED),
        ("fault a c1 8..49 kind=pause unknown=c1", UNDECIDED),
        ("fault a - 8..49 p1 unclean unknown", PERMITTED),
        ("fault a - 8..49 unclean unknown", UNDECIDED),
        ("fault a b1,b2 1..3 kind=flaky unknown=b1,b2", PERMITTED),
        ("fault a b1,b2 1..15 kind=flaky unknown=b1,b2", UNDECIDED),
    ],
    ids=[
        *("nobody knows where", "nowhere", "everywhere", "after the election", "on another partition's broker"),
        *("on a controller", "another partition was asked for", "asked for", "long before it", "shortly before it"),
    ],
)
def test_a_fault_that_may_have_acted_in_part_leaves_what_all_or_nothing_permits_undecided(
    fault: str, stands: Standing
) -> None:
    """If it acted on b1 alone, b3 may have been elected while b2, of the ISR, was up."""
    assert decided(*_B3_OUT_OF_SYNC, fault, **UNCLEAN).standing is stands


def test_with_zookeeper_any_broker_may_be_the_controller_that_a_fault_in_doubt_hit() -> None:
    settings: dict[str, Any] = {**UNCLEAN, "version": "3.9.1", "metadata": "zookeeper"}
    assert decided(*_B3_OUT_OF_SYNC, **settings).standing is PERMITTED
    assert decided(*_B3_OUT_OF_SYNC, "fault a b4 49.1..49.5 kind=pause unknown=b4", **settings).standing is UNDECIDED


def test_an_offset_of_another_record_is_judged_apart_from_one_of_a_possible_marker() -> None:
    log = ["txn 1 commit ok 0..5..6", "final a @4 e0", "final b @6 e1", "end 0..7", "send late ok @7 t50..51"]
    known = evidence(by_hand(*LONELY, *log), **UNCLEAN)
    times = {"topic": "trial", "partition": 0, "sent_ns": 10 * SECOND, "acknowledged_ns": 11 * SECOND}
    rows = pa.Table.from_pylist([{**times, "offset": offset} for offset in (4, 5)], COLUMNS)
    found = each_decided(record_ranges([rows], {}, 64, {}, known), LOST, known)
    assert [(one.first_offset, one.decision and one.decision.standing) for one in found] == [
        *((4, VIOLATION), (5, UNDECIDED))
    ]


def elsewhere(anomaly: Anomaly, offset: int, beside: Anomaly = LOST, partition: int = 0, end: int = 41) -> Standing:
    """The standing of a record at an offset that either of two leaders may have acknowledged, where what b1 alone
    acknowledged before, from 5 to 8, is lost. b2 goes on from 5 to the end of the final log."""
    deposed = [*saw("b1", "0..40", 1, 0, "1,2,3"), *saw("b2,b3", "0..19", 1, 0, "1,2,3")]
    deposed += [*saw("b2,b3", "20..60", 2, 1, "2,3"), *saw("b1", "41..60", 2, 1, "2,3")]
    deposed += [line.replace("leader=", "p1 leader=") for line in deposed]
    recorded = by_hand(
        "send x ok @1 t50..51",
        *deposed,
        "final a @4 e0",
        "final b @5 e1",
        f"final c @{end - 1} e1",
        "final a @4 e0 p1",
        f"end 0..{end}",
        "end 0..5 p1",
    )
    known = evidence(recorded, **ALONE)

    def ranges(of: Anomaly, *rows: tuple[int, int, float]) -> list[RecordRange]:
        table = [
            {"topic": "trial", "partition": p, "offset": o, "sent_ns": at, "acknowledged_ns": at}
            for p, o, at in ((p, o, int(t * SECOND)) for p, o, t in rows)
        ]
        return each_decided(record_ranges([pa.Table.from_pylist(table, COLUMNS)], {}, 64, {}, known), of, known)

    parts = ranges(anomaly, (partition, offset, 25.0))
    lost = ranges(beside, *((0, o, 10.0 + o / 10) for o in range(5, 9)))
    [found] = attached(parts, 64, known.logs, lost)
    assert found.decision is not None
    assert found.count == 1
    return found.decision.standing


def test_a_record_acknowledged_elsewhere_is_judged_by_lost_records_of_the_same_cut() -> None:
    assert elsewhere(ACKNOWLEDGED_ELSEWHERE, 9) is PERMITTED
    assert elsewhere(ACKNOWLEDGED_ELSEWHERE, 500) is UNDECIDED
    assert elsewhere(ACKNOWLEDGED_ELSEWHERE, 9, partition=1) is UNDECIDED
    assert elsewhere(ACKNOWLEDGED_ELSEWHERE, 5) is UNDECIDED


@pytest.mark.parametrize("anomaly", [LOST, ACKNOWLEDGED_ELSEWHERE], ids=lambda one: one.name)
@pytest.mark.parametrize(
    ("offset", "end", "standing"),
    [(9, 9, UNDECIDED), (9, 7, UNDECIDED), (12, 9, UNDECIDED), (9, 10, PERMITTED), (12, 41, PERMITTED)],
    ids=["at it", "above it", "behind a gap", "below it", "far below it"],
)
def test_the_surviving_leader_may_have_lost_the_end_of_its_own_log(
    anomaly: Anomaly, offset: int, end: int, standing: Standing
) -> None:
    """b2 drops the end of its log without an election, right behind the records of b1 that its own election took."""
    assert elsewhere(anomaly, offset, end=end) is standing


def stands_beside(known: Evidence, until: float, offset: int = 9) -> tuple[Decision, Standing]:
    """What is decided of a lost record that was acknowledged by 26 s, alone; and beside those from 5 to 8, that b1
    had acknowledged at 10 s."""
    rows = [*((o, 10 + o / 10, 10 + o / 10) for o in range(5, offset)), (offset, until - 1, until)]
    table = [
        {"topic": "trial", "partition": 0, "offset": o, "sent_ns": int(s * SECOND), "acknowledged_ns": int(a * SECOND)}
        for o, s, a in rows
    ]
    parts = each_decided(record_ranges([pa.Table.from_pylist(table, COLUMNS)], {}, 64, {}, known), LOST, known)
    last = attached(parts, 64, known.logs)[-1].decision
    assert parts[-1].decision is not None
    assert last is not None
    return parts[-1].decision, last.standing


#: b1 goes on until 40 s; b2 leads since 20 s, and writes from 5 to 8.
_TWO_LEADERS = [
    *saw("b1", "0..40", 1, 0, "1"),
    *saw("b2,b3", "0..19", 1, 0, "1"),
    "fault c b1 18..40 kind=isolate",
    *saw("b2,b3", "20..44", 2, 1, "2,3"),
    *saw("b1", "41..44", 2, 1, "2,3"),
    *("send x ok @1 t50..51", "final a @4 e0", "final b @5 e1"),
]


@pytest.mark.parametrize(
    ("log", "standing"),
    [
        (["final c @8 e1", "end 0..9"], UNDECIDED),
        (["final c @8 e1", "final d @9 e2", "final e @11 e2", "end 0..12"], UNDECIDED),
        (["final c @10 e1", "final d @11 e2", "end 0..12"], PERMITTED),
    ],
    ids=["nobody went on", "its next leader went on", "it had gone on itself"],
)
@pytest.mark.parametrize(
    ("led", "settings"),
    [
        (saw("b1,b2,b3", "45..60", 2, 2, "2,3"), ALONE),
        (["fault k b2 44..70 kind=kill", *saw("b1,b3", "46..60", 3, 2, "3")], UNCLEAN),
    ],
    ids=["itself, without its end", "another, cleanly, without it"],
)
def test_a_surviving_log_may_lack_its_end_whichever_leader_continues_it(
    led: list[str], settings: dict[str, Any], log: list[str], standing: Standing
) -> None:
    """b1 or b2 acknowledged 9 at 25 s: if it was b2, it may not have been lost."""
    two = [line.replace("isr=1", "isr=1,2,3") if settings is ALONE else line for line in _TWO_LEADERS]
    alone, beside = stands_beside(evidence(by_hand(*two, *led, *log), **settings), 25)
    assert (alone.standing, several_of(alone)) == (UNDECIDED, True)
    assert beside is standing


def test_a_record_is_of_an_unreported_leader_if_a_fault_killed_the_known_one() -> None:
    """b1 led until nobody reported anything any more; whether it was killed before r was sent, nobody knows."""
    led = [*saw("b1,b2,b3", "0..20", 1, 0, "1,2,3"), "final a @4 e0", "end 0..5"]
    sent = "send r ok @5 t30..31"
    found = decided(sent, *led, "fault k b1 21..40 kind=kill unknown=b1", **ALONE)
    assert (found.standing, {one.term for one in found.possible_terms}) == (UNDECIDED, {0, None})
    assert (names(found.must), names(found.unknown)) == ([], [1, 2, 3])
    dead = decided(sent, *led, "fault k b1 21..40 kind=kill", **ALONE)
    assert (dead.standing, [one.term for one in dead.possible_terms]) == (UNDECIDED, [None])


@pytest.mark.parametrize(
    ("died", "must", "unknown"),
    [(22, [2], []), (40, [], [1, 2])],
    ids=["the one was dead", "it was of either"],
)
def test_of_what_may_be_of_two_leaders_a_broker_must_have_only_what_it_must_have_of_both(
    died: int, must: list[int], unknown: list[int]
) -> None:
    """b1 was cut off and went on; b2 led since 20 s. Both were killed, and b3 led, uncleanly."""
    led = [
        *saw("b1", f"0..{died}", 1, 0, "1"),
        f"fault k b1 {died}..70 kind=kill",
        *saw("b2,b3", "0..19", 1, 0, "1"),
        *saw("b2,b3", "20..40", 2, 1, "2"),
        "fault l b2 40..70 kind=kill",
        *saw("b3", "42..60", 3, 2, "3"),
    ]
    found = decided("send r ok @5 t30..31", *led, *_HEIR_CUT, acks="1", **UNCLEAN)
    assert found.standing is PERMITTED
    assert (names(found.must), names(found.unknown)) == (must, unknown)


def test_a_record_that_is_undecided_for_each_of_two_leaders_may_be_of_either() -> None:
    """b2 may have fetched it of b1 while it was in sync; and nobody watched b2 to the end."""
    led = [
        *saw("b1", "0..17", 1, 0, "1"),
        *saw("b1", "18..19", 1, 0, "1,2"),
        *saw("b1", "20..40", 1, 0, "1"),
        *saw("b2,b3", "0..19", 1, 0, "1"),
        "fault c b1 15..40 kind=isolate",
        *saw("b2,b3", "20..60", 2, 1, "2,3"),
        *saw("b1", "41..60", 2, 1, "2,3"),
        *("send x ok @1 t80..81", "final a @4 e0", "final b @5 e1", "final c @8 e1", "end 0..9"),
    ]
    alone, beside = stands_beside(evidence(by_hand(*led), **UNCLEAN), 19.6)
    assert (alone.standing, several_of(alone), alone.may_have) == (UNDECIDED, True, {1})
    assert (names(alone.must), {one.term for one in alone.possible_terms}) == ([], {0, 1})
    assert beside is UNDECIDED


@pytest.mark.parametrize(
    ("reported", "standing"),
    [("26..41", UNDECIDED), ("25..41", PERMITTED), ("22..41", PERMITTED)],
    ids=["after it", "with it", "before it"],
)
def test_a_broker_that_was_elected_after_a_leader_that_was_reported_late_may_not_have_been_in_sync(
    reported: str, standing: Standing
) -> None:
    """b2, cut off, acknowledges r alone; b3 is elected. Before, only the ISR of b1 was reported, not that of b2."""
    lines = [
        *saw("b1", "0..20", 1, 0, "1,2,3"),
        *saw("b2,b3", "0..20", 1, 0, "1,2,3"),
        "fault k b1 20.5..24 kind=kill",
        "fault c b2 21..42 kind=isolate",
        *saw("b2", reported, 2, 1, "2"),
        *saw("b1,b3", "25..60", 3, 2, "1,3"),
        *saw("b2", "44..60", 3, 2, "1,3"),
        *_HEIR_CUT,
    ]
    # (A delivery shows that b2 appended r before b3 led; r was sent after the first report of b3.)
    assert decided("send r ok @5 t30..31", "live r @5 e1 t32", *lines, **UNCLEAN).standing is standing


@pytest.mark.parametrize(
    ("other", "standing"),
    [
        ("send x ok @5 t12..13", UNDECIDED),
        ("send x ok @3 t18..19", UNDECIDED),
        ("send x ok @6 t12..13", PERMITTED),
        ("send x ok @5 t10.5..13", PERMITTED),
        ("send x info t12..13", PERMITTED),
        ("send x ok @5 p1 t12..13", PERMITTED),
        ("send x ok @5 t27..28", PERMITTED),
        ("send x ok @5 t9..9.5", PERMITTED),
    ],
    ids=[
        *(
            "in its place",
            "below",
            "above",
            "sent before",
            "unacknowledged",
            "of another partition",
            "by the next leader",
        ),
        "before it",
    ],
)
def test_no_election_excuses_what_was_gone_before_it(other: str, standing: Standing) -> None:
    """Nothing else happened from 5 s to 20 s, when b1 was killed."""
    log = ["final a @2 e0", "final b @3 e1", "send late ok @6 t50..51", "final late @6 e1", "end 0..7"]
    assert decided("send r ok @5 t10..11", other, *LONELY, *log, **UNCLEAN).standing is standing


def test_nothing_shows_when_a_record_without_a_known_place_or_time_was_gone() -> None:
    log = ["final a @2 e0", "final b @3 e1", "send late ok @6 t50..51", "final late @6 e1", "end 0..7"]
    found = decided("send r ok t10..11", "send x ok @5 t12..13", *LONELY, *log, **UNCLEAN)
    assert (found.standing, "where it stood" in found.ruling.because) == (UNDECIDED, True)
    known = evidence(by_hand("send s ok @5 t10..11", "send x ok @5 t12..13", *LONELY, *log), **UNCLEAN)
    assert known.gone(Case(TRIAL, SECOND, 11 * SECOND, True, 5, 5)) is not None
    assert known.gone(Case(TRIAL, SECOND, None, True, 5, 5)) is None


@pytest.mark.parametrize(("when", "took"), [("t12..13", []), ("t27..28", [1])], ids=["before the election", "after it"])
def test_an_election_does_not_take_beside_others_what_was_gone_before_it(when: str, took: list[int]) -> None:
    """r was acknowledged while the ISR shrank: b2 may have it, and its election may have taken it."""
    log = ["final a @2 e0", "final b @3 e1", "send late ok @6 t50..51", "final late @6 e1", "end 0..7"]
    found = decided("send r ok @5 t4.2..4.8", f"send x ok @5 {when}", *LONELY, *log, **UNCLEAN)
    assert found.standing is UNDECIDED
    assert sorted(found.may_have) == took


@pytest.mark.parametrize(("twice", "standing"), [(4, PERMITTED), (5, UNDECIDED), (6, UNDECIDED)])
def test_an_election_does_not_take_a_record_that_the_new_leader_may_have_dropped(
    twice: int, standing: Standing
) -> None:
    known = evidence(by_hand(*LOST_ALONE), **UNCLEAN)
    written = {(TRIAL, 1): LeaderWrites(np.empty(0, np.int64), twice=twice)}
    case = Case(TRIAL, 10 * SECOND, 11 * SECOND, True, 5, 5)
    assert holders.decided(replace(known, written=written, _edges={}), LOST, case).standing is standing


#: The only replica was killed, and led again; then its disk was wiped. All that is left was written after that.
_ONE_DISK = [
    *saw("b1", "0..20", 1, 0, "1", "replicas=1"),
    "fault k b1 20..24 kind=kill",
    *saw("b1", "26..40", 1, 1, "1", "replicas=1"),
    "fault w b1 41..43 kind=wipe",
    *saw("b1", "45..60", 1, 2, "1", "replicas=1"),
    *("final b @0 e2", "send late ok @1 t50..51", "final late @1 e2", "end 0..2"),
]
#: b1 and b2 were in sync. b1 was killed, and b2 led; then it was killed, too, and b3, out of sync, cut the log at 3.
_TWO_ELECTIONS = [
    *saw("b1", "0..20", 1, 0, "1,2"),
    *saw("b2,b3", "0..25", 1, 0, "1,2"),
    "fault k b1,b2 20..60 kind=kill without=b2",
    *saw("b2,b3", "26..35", 2, 1, "2"),
    "fault l b2 36..60 kind=kill",
    *saw("b3", "36..40", 2, 1, "2"),
    *saw("b3", "41..60", 3, 2, "3"),
    *("final a @2 e0", "final b @3 e2", "send late ok @4 t50..51", "final late @4 e2", "end 0..5"),
]


@pytest.mark.parametrize(
    ("also", "standing"),
    [
        ([], PERMITTED),
        (["send x ok @5 t30..31"], UNDECIDED),
        (["send x ok @2 t30..31"], UNDECIDED),
        (["send x ok @6 t30..31"], PERMITTED),
        (["send x ok @5 t10.5..31"], PERMITTED),
        (["send x info @5 t30..31"], PERMITTED),
        (["send x ok @5 p1 t30..31"], PERMITTED),
        (["send x ok @0 t46..47"], PERMITTED),
    ],
    ids=[
        *("nothing", "at its place", "below it", "above it", "sent before", "not acknowledged", "another partition"),
        "after the wipe",
    ],
)
def test_a_later_wipe_need_not_have_taken_a_record_whose_offset_was_written_again(
    also: list[str], standing: Standing
) -> None:
    lines = ["send r ok @5 t10..11", *_ONE_DISK, *also]
    assert decided(*lines, replication=1, unclean_election=False).standing is standing


@pytest.mark.parametrize(
    ("also", "standing", "took"),
    [
        ([], PERMITTED, 2),
        (["send x ok @5 t30..31"], UNDECIDED, None),
        (["send x ok @5 t46..47"], PERMITTED, 2),
    ],
    ids=["nothing", "under the leader that must have had it", "under the one that need not"],
)
def test_a_later_election_need_not_have_taken_a_record_whose_offset_was_written_again(
    also: list[str], standing: Standing, took: int
) -> None:
    found = decided("send r ok @5 t10..11", *_TWO_ELECTIONS, *also, **UNCLEAN)
    assert (found.standing, found.event and found.event.epoch) == (standing, took)


@pytest.mark.parametrize(
    ("when", "standing"), [("t30..31", UNDECIDED), ("t50..51", PERMITTED)], ids=["before", "after"]
)
def test_a_later_loss_of_every_disk_need_not_have_taken_such_a_record(when: str, standing: Standing) -> None:
    """b1 lost its disk at 20 s, and b2 and b3 theirs at 40 s."""
    seen = [*saw("b3", "0..22", 3, 0, "1,2,3"), *saw("b3", "23..60", 3, 0, "2,3")]
    wipes = ["fault w b1 20..22 kind=wipe", "fault v b2,b3 40..42 kind=wipe"]
    lines = ["send r ok @5 t10..11", f"send x ok @5 {when}", "final a @4 e0", "send late ok @4 t58..59", "end 0..5"]
    assert decided(*lines, *seen, *wipes, unclean_election=False).standing is standing


def test_a_permitted_election_keeps_its_losses_whichever_broker_leads_later() -> None:
    later = [*saw("b3", "61..70", 3, 2, "3"), "fault q b2 60..70 kind=kill"]
    lines = [line.replace("final b @5 e1", "final b @5 e2") for line in LOST_ALONE if "late" not in line]
    lines += [*later, "send x ok @5 t30..31", "send late ok @6 t65..66", "final late @6 e2"]
    found = decided(*lines, **UNCLEAN)
    assert (found.standing, found.event and found.event.epoch) == (PERMITTED, 1)


#: b1 led until it was cut off, b2 until it was killed; then b3, which was not in sync, cut the log at 3.
_DEPOSED = [
    *saw("b2,b3", "0..19", 1, 0, "1,2,3"),
    *saw("b2,b3", "20..44", 2, 1, "2"),
    "fault c b1 19..40",
    "fault k b2 45..70 kind=kill",
    *saw("b3", "45..46", 2, 1, "2"),
    *saw("b1,b3", "47..70", 3, 2, "3"),
    *("final a @2 e0", "final b @3 e2", "send late ok @4 t60..61", "final late @4 e2", "end 0..5"),
]
_OF_B1 = {
    "knows soon": [*saw("b1", "0..30", 1, 0, "1,2,3"), *saw("b1", "42..46", 2, 1, "2")],
    "silent": saw("b1", "0..30", 1, 0, "1,2,3"),
    "goes on": saw("b1", "0..40", 1, 0, "1,2,3"),
}


@pytest.mark.parametrize("of_b1", _OF_B1.values(), ids=_OF_B1)
@pytest.mark.parametrize(
    ("also", "standing"),
    [
        ([], PERMITTED),
        (["send x ok @4 t43.2..43.5"], UNDECIDED),
        (["send x ok @5 t37..37.5"], UNDECIDED),
        (["send x ok @6 t43.2..43.5"], PERMITTED),
        (["send x ok @4 t36.2..43.5"], PERMITTED),
        (["send x ok @4 p1 t43.2..43.5"], PERMITTED),
        (["send x ok @4 t50..51"], PERMITTED),
    ],
    ids=["nothing", "below", "in its place", "above", "sent before", "another partition", "under the one that took it"],
)
def test_a_later_election_need_not_take_a_record_whose_offset_a_deposed_leader_wrote_again(
    of_b1: list[str], also: list[str], standing: Standing
) -> None:
    """b2 acknowledged r. The record below it may be b1's, which goes on with its own log, or b2's, whose log was cut
    without an election."""
    lines = ["send r ok @5 t36..36.5", *of_b1, *_DEPOSED, *also]
    assert decided(*lines, acks="1", **UNCLEAN).standing is standing


#: b1 led alone in the ISR. It was cut from all brokers and controllers, and b2 elected, which nobody knew before 26 s:
#: either may have acknowledged records from 24 s on. b1 reports until 29 s that it leads.
_CUT_OFF = [
    *saw("b1,b2,b3", "0..4", 1, 0, "1,2,3"),
    *saw("b1", "5..29", 1, 0, "1"),
    *saw("b2,b3", "5..25", 1, 0, "1"),
    "fault c b1 18..35 kind=isolate",
    *saw("b2,b3", "26..60", 2, 1, "2"),
    *saw("b1", "36..60", 2, 1, "2"),
]
#: The records of b1 from 5 on are gone, and those of b2 from 6 on.
_OF_B2 = ["final a @4 e0", "final b @5 e1", "send late ok @6 t50..51", "final late @6 e1", "end 0..7"]
#: b1 was killed before.
_KILLED = [line.replace("5..29", "5..18").replace("kind=isolate", "kind=kill") for line in _CUT_OFF]


@pytest.mark.parametrize(
    ("also", "standing"),
    [
        (["send x ok @5 t24.5..25.5"], UNDECIDED),
        (["send x ok @4 t24.5..25.5"], UNDECIDED),
        (["send x ok @5 t25.9..28"], UNDECIDED),
        (["send x ok @5 t24.5..25.5", "live x @5 e0 t26"], UNDECIDED),
        (["send x ok @4 t24.5..25.5", "final x @4 e0"], UNDECIDED),
        (["send x ok @5 t24.5..25.5", "live x @5 e1 t26"], PERMITTED),
        (["send x ok @5 t24.5..25.5", "final x @5 e1"], PERMITTED),
        (["send x ok @5 t26.1..27"], PERMITTED),
        (["send x ok @6 t24.5..25.5"], PERMITTED),
        (["send x ok @5 t10.5..25.5"], PERMITTED),
        (["send x ok @5 p1 t24.5..25.5"], PERMITTED),
        (["send x ok t24.5..25.5"], PERMITTED),
        (["send x info @5 t24.5..25.5"], PERMITTED),
    ],
    ids=[
        *("in its place", "below", "in flight when the next was seen", "read under the old leader", "and left by it"),
        *("read under the next", "and left by it", "sent when that one was seen", "above", "sent before"),
        *("another partition", "nobody knows where", "not acknowledged"),
    ],
)
def test_the_next_election_need_not_take_a_record_whose_offset_the_old_leader_wrote_again(
    also: list[str], standing: Standing
) -> None:
    lines = [*_CUT_OFF, *(line for line in _OF_B2 if not (line == "final b @5 e1" and "final x @5 e1" in also))]
    lines = [line for line in lines if not (line == "final a @4 e0" and "final x @4 e0" in also)]
    assert decided("send r ok @5 t10..11", *lines, *also, **UNCLEAN).standing is standing


@pytest.mark.parametrize(
    ("x", "standing"),
    [("t24.5..25.5", PERMITTED), ("t19.1..25.5", PERMITTED), ("t18.9..25.5", UNDECIDED)],
    ids=["long after", "a second after", "before that"],
)
def test_a_leader_that_was_killed_acknowledged_nothing_more_in_its_place(x: str, standing: Standing) -> None:
    lines = ["send r ok @5 t10..11", *_KILLED, *_OF_B2, f"send x ok @5 {x}"]
    assert decided(*lines, **UNCLEAN).standing is standing


#: From 20 s to 26 s nobody reports anything, while b3 leads or may; then b2 does, that was not in the ISR.
_UNHEARD = [*saw("b1,b2,b3", "0..20", 1, 0, "1,3"), "fault k1 b1 20..90 kind=kill", "fault k3 b3 24..90 kind=kill"]
_THEN_B2 = saw("b2", "26..60", 2, 2, "2")


@pytest.mark.parametrize("epochs", [True, False])
@pytest.mark.parametrize(
    ("between", "died", "x", "standing"),
    [
        ([], 24, "t22..23", UNDECIDED),
        (["saw b3 @21 leader=3 epoch=1 isr=3"], 24, "t22..23", UNDECIDED),
        ([], 20, "t26.1..27", PERMITTED),
    ],
    ids=["nobody reported b3", "it was reported", "b2 was seen"],
)
def test_a_leader_whom_nobody_reported_may_have_acknowledged_that_in_its_place(
    epochs: bool, between: list[str], died: int, x: str, standing: Standing
) -> None:
    """b3 had r, and may have acknowledged x in its place: then its log was cut before b2 was elected."""
    log = ["final a @4 e0", "final c @5 e2", "send late ok @6 t50..51", "final late @6 e2", "end 0..7"]
    lines = [*(line.replace("b3 24..", f"b3 {died}..") for line in _UNHEARD), *between, *_THEN_B2, *log]
    reported = [line if epochs else re.sub(r" e(poch=)?\d\b", "", line) for line in lines]
    assert decided("send r ok @5 t10..11", *reported, f"send x ok @5 {x}", **UNCLEAN).standing is standing


@pytest.mark.parametrize("x", ["t24..26.5", "t24.5..27"])
@pytest.mark.parametrize(
    ("b1", "reported", "standing"),
    [
        (["fault k1 b1 20..21 kind=kill"], "21..27", UNDECIDED),
        (["fault k1 b1 20..21 kind=kill", *saw("b1", "23..26", 1, None, "1")], "21..27", UNDECIDED),
        (["fault k1 b1 20..26.5 kind=kill"], "21..25", PERMITTED),
        (["fault k1 b1 20..21 kind=kill", *saw("b1", "22..23", 2, None, "2")], "21..27", PERMITTED),
    ],
    ids=["back", "and heard to lead", "back when others reported another", "back and heard to follow"],
)
def test_without_epochs_a_leader_that_was_killed_and_is_back_may_have_led_on(
    b1: list[str], reported: str, standing: Standing, x: str
) -> None:
    """b2 and b3 report for long that b1 leads, which was alone in the ISR; then it is killed for good, and b2 leads."""
    led = [
        *saw("b1,b2,b3", "0..20", 1, None, "1"),
        *saw("b2,b3", reported, 1, None, "1"),
        *saw("b3", "26", 1, None, "1"),
    ]
    led += ["fault k2 b1 27..90 kind=kill", *saw("b2,b3", "28..60", 2, None, "2")]
    log = ["final a @4", "final c @5", "send late ok @6 t50..51", "final late @6", "end 0..7"]
    assert decided("send r ok @5 t10..11", *led, *b1, *log, **UNCLEAN).standing is PERMITTED
    found = decided("send r ok @5 t10..11", *led, *b1, f"send x ok @5 {x}", *log, **UNCLEAN)
    assert found.standing is standing


@pytest.mark.parametrize("r", ["info", "ok"])
@pytest.mark.parametrize(
    ("x", "standing"),
    [
        ("@5 t12..13", UNDECIDED),
        ("@4 t12..13", UNDECIDED),
        ("@6 t12..13", PERMITTED),
        ("@4 p1 t12..13", PERMITTED),
        ("@4 t6.5..13", PERMITTED),
    ],
    ids=["there", "below", "above", "in another partition", "sent before it was delivered"],
)
def test_a_delivered_record_may_be_gone_before_its_offset_was_written_again(r: str, x: str, standing: Standing) -> None:
    """r was acknowledged, or nobody knows whether it was; a consumer was given it at 7 s, and x is gone as well."""
    log = ["final a @2 e0", "final b @3 e1", "send late ok @6 t50..51", "final late @6 e1", "end 0..7"]
    reported = [f"send r {r} @5 t6..7", "live r @5 e0 t7", *LONELY, f"send x ok {x}", *log]
    assert decided(*reported, anomaly=VANISHED, **UNCLEAN).standing is standing


@pytest.mark.parametrize(
    ("x", "more", "standing"),
    [
        ("t22..23", ["final x @5 e1"], PERMITTED),
        ("t22..23", ["live x @5 e1 t26", "final c @5 e1"], PERMITTED),
        ("t22..23", ["final c @5 e1"], UNDECIDED),
        ("t22..23", ["live x @5 e0 t24", "final c @5 e1"], UNDECIDED),
        ("t25.1..25.5", ["final x @5 e1"], PERMITTED),
        ("t25.1..25.5", ["final c @5 e1"], UNDECIDED),
    ],
    ids=["there", "read under the next", "gone", "read under that before", "late", "gone, late"],
)
def test_an_epoch_tells_that_a_term_had_begun_before_anybody_was_heard_to_know_of_it(
    x: str, more: list[str], standing: Standing
) -> None:
    """b1 and b3 are cut off, and report until 25 s that b1 leads; b2, the next leader, reports from 26 s on."""
    led = [
        *saw("b1,b3", "0..4", 1, 0, "1,2,3"),
        *saw("b1,b3", "5..25", 1, 0, "1"),
        "fault c b1,b3 15..25 kind=isolate plane=all",
    ]
    log = ["final a @4 e0", "send late ok @6 t50..51", "final late @6 e1", "end 0..7"]
    reported = ["send r ok @5 t10..11", *led, *saw("b1,b2,b3", "26..60", 2, 1, "2"), *log]
    assert decided(*reported, f"send x ok @5 {x}", *more, **UNCLEAN).standing is standing


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
@pytest.mark.parametrize(
    ("of", "x", "standing"),
    [
        (["txn 1 abort ok 23..26..27 w1"], "x1 w1", UNDECIDED),
        (["txn 1 commit info 23..26.. w1"], "x1 w1", UNDECIDED),
        (["txn 1 commit ok 23..26..27 w1"], "x1 w1", UNDECIDED),
        (["txn 1 commit ok 23..26..27 w1", "final x @5 e1"], "x1 w1", PERMITTED),
        (["txn 1 commit ok 23..26..27 w2", "final x @5 e1"], "w2", PERMITTED),
    ],
    ids=["aborted", "perhaps committed", "committed and gone", "committed and there", "of no transaction"],
)
def test_an_uncommitted_record_is_not_of_the_epoch_that_holds_its_offset(
    of: list[str], x: str, standing: Standing, level: str
) -> None:
    """b1, which is cut off, may have acknowledged x. An uncommitted record is not reported as gone."""
    lines = [line for line in _OF_B2 if not (line == "final b @5 e1" and "final x @5 e1" in of)]
    reported = ["send r ok @5 t10..11", f"send x ok @5 t24.5..25.5 {x}", *of, *_CUT_OFF, *lines]
    assert decided(*reported, isolation_level=level, **UNCLEAN).standing is standing


@pytest.mark.parametrize(("at", "standing"), [(6, UNDECIDED), (8, PERMITTED)], ids=["there", "elsewhere"])
def test_an_epoch_that_may_be_anothers_at_that_place_tells_nothing(at: int, standing: Standing) -> None:
    """The final log goes back to an older epoch at 7."""
    log = ["final b @5 e0", "final c @6 e1", "final a @7 e0", "final d @8 e1", "send late ok @9 t50..51", "end 0..10"]
    log = [line.replace(line[6], "x") if f"@{at} " in line else line for line in [*log, "final late @9 e1"]]
    lines = ["send r ok @9 t10..11", f"send x ok @{at} t24.5..25.5", *_CUT_OFF, *log]
    assert decided(*lines, **UNCLEAN).standing is standing
