"""A record that a consumer still got after an event was not taken by that event."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from checkers.evidence.causes import range_facts
from checkers.evidence.holes import read_final_logs
from checkers.evidence.losses import losses_of
from checkers.evidence.standing import observed, worst_ruling
from checkers.evidence.store import AnomalyStore
from checkers.history import History
from checkers.judge import judge
from harness.core.anomalies import BY_NAME, LOST, VANISHED, Anomaly
from harness.core.verdict import Standing
from harness.history.paths import ANOMALIES
from tests.checkers.notation import SECOND, apart, by_hand, write
from tests.checkers.test_holders import ALONE, CUT, LONELY, OLD, UNCLEAN, WHOLE, decided, saw, without_epochs

PERMITTED, VIOLATION, UNDECIDED = Standing.PERMITTED, Standing.VIOLATION, Standing.UNDECIDED

#: As LONELY, but b1 was only cut off, and led on until it heard of b2 at 41 s.
CUT_OFF = [
    *saw("b1,b2,b3", "0..4", 1, 0, "1,2,3"),
    *saw("b1", "5..40", 1, 0, "1"),
    *saw("b2,b3", "5..25", 1, 0, "1"),
    "fault cut b1 20..40 kind=isolate clients=kept",
    *saw("b2,b3", "26..60", 2, 1, "2"),
    *saw("b1", "41..60", 2, 1, "2"),
]
#: The only replica lost its disk at 20 s.
WIPED = [
    *saw("b1", "0..19", 1, 0, "1"),
    "fault wiped b1 20..30 kind=wipe",
    *saw("b1", "31..60", 1, 1, "1"),
]


@pytest.mark.parametrize("anomaly", [LOST, VANISHED])
@pytest.mark.parametrize(
    ("seen", "at", "standing"),
    [
        (LONELY, 12, PERMITTED),
        (LONELY, 24, PERMITTED),
        (LONELY, 40, UNDECIDED),
        (CUT_OFF, 40, PERMITTED),
        (CUT_OFF, 45, PERMITTED),
        (CUT_OFF, 55, UNDECIDED),
    ],
)
def test_an_election_did_not_take_what_was_fetched_when_every_leader_before_was_over(
    seen: list[str], at: int, standing: Standing, anomaly: Anomaly
) -> None:
    found = decided("send r ok @5 t10..11", f"live r @5 e0 r1 t{at}", *seen, *CUT, anomaly=anomaly, **UNCLEAN)
    assert found.standing is standing
    assert not found.may_have or standing is PERMITTED


@pytest.mark.parametrize(("at", "standing"), [(12, PERMITTED), (24, PERMITTED), (50, UNDECIDED)])
def test_a_disk_that_was_lost_before_did_not_take_it(at: int, standing: Standing) -> None:
    logged = ["send late ok @0 t55..56", "final late @0 e1", "end 0..1"]
    lines = ["send r ok @5 t10..11", f"live r @5 e0 r1 t{at}", *WIPED, *logged]
    assert decided(*lines, min_insync_replicas=1, replication=1).standing is standing


@pytest.mark.parametrize(("at", "standing"), [(38, PERMITTED), (58, UNDECIDED)])
def test_it_was_there_until_the_last_disk_was_lost(at: int, standing: Standing) -> None:
    """b1 lost its disk at 20 s, and b2 and b3 theirs at 40 s."""
    seen = [*saw("b3", "0..22", 3, 0, "1,2,3"), *saw("b3", "23..60", 3, 0, "2,3")]
    wipes = ["fault w b1 20..22 kind=wipe", "fault v b2,b3 40..42 kind=wipe"]
    lines = ["send r ok @5 t10..11", f"live r @5 e0 r1 t{at}", "final a @4 e0", "send late ok @4 t58..59", "end 0..5"]
    assert decided(*lines, *seen, *wipes, unclean_election=False).standing is standing


@pytest.mark.parametrize(("at", "took"), [(19, 1), (35, 2), (50, None)])
def test_an_election_that_cannot_have_taken_it_is_no_cause_of_a_violation(at: int, took: int | None) -> None:
    """b2 was elected at 26 s, b3 at 40 s, all of them in sync."""
    seen = [
        *saw("b1,b2,b3", "0..25", 1, 0, "1,2,3"),
        *saw("b1,b2,b3", "26..39", 2, 1, "1,2,3"),
        *saw("b1,b2,b3", "40..60", 3, 2, "1,2,3"),
    ]
    lines = ["send r ok @5 t10..11", f"live r @5 e0 r1 t{at}", "final a @4 e0", "final b @5 e2", "end 0..6"]
    found = decided(*lines, *seen, unclean_election=False)
    assert (found.standing, found.taken_by and found.taken_by.epoch) == (VIOLATION, took)


@pytest.mark.parametrize(("at", "standing", "wipes"), [(38, PERMITTED, ("v", "w")), (48, UNDECIDED, None)])
def test_a_disk_that_was_empty_already_takes_nothing(
    at: int, standing: Standing, wipes: tuple[str, ...] | None
) -> None:
    """b1 lost its disk at 20 s and at 50 s, b2 and b3 theirs at 40 s."""
    seen = [*saw("b3", "0..22", 3, 0, "1,2,3"), *saw("b3", "23..60", 3, 0, "2,3")]
    faults = ["fault w b1 20..22 kind=wipe", "fault v b2,b3 40..42 kind=wipe", "fault x b1 50..52 kind=wipe"]
    lines = ["send r ok @5 t10..11", f"live r @5 e0 r1 t{at}", "final a @4 e0", "send late ok @4 t58..59", "end 0..5"]
    found = decided(*lines, *seen, *faults, unclean_election=False)
    assert (found.standing, found.event and found.event.wipes) == (standing, wipes)
    assert found.event is None or found.event.at_ns == 42 * SECOND


@pytest.mark.parametrize("at", [45, 55])
def test_a_violation_is_not_of_an_election_that_it_outlived(at: int) -> None:
    """b2 lost its disk, led from 25 s to 39 s, and b3 after it."""
    seen = [
        *saw("b1,b2,b3", "0..20", 1, 0, "1,2,3"),
        *("fault w b2 21..23 kind=wipe", "fault killed b1 24..30 kind=kill"),
        *saw("b2,b3", "25..39", 2, 1, "2,3"),
        *saw("b2,b3", "40..60", 3, 2, "2,3"),
    ]
    lines = ["send r ok @5 t10..11", f"live r @5 e0 r1 t{at}", "final a @4 e0", "final b @5 e1", "end 0..6"]
    found = decided(*lines, *seen, unclean_election=False)
    assert (found.standing, found.event) == (VIOLATION, None)


def test_a_violation_is_not_of_an_election_before_a_leader_that_must_have_had_it() -> None:
    seen = [
        *saw("b1", "0..20", 1, 0, "1"),
        *saw("b2,b3", "0..25", 1, 0, "1"),
        "fault killed b1 20..40 kind=kill",
        *saw("b2,b3", "26..39", 2, 1, "2"),
        *saw("b1,b2,b3", "40..60", 1, 2, "1"),
    ]
    lines = ["send r ok @5 t10..11", "final a @4 e0", "final b @5 e2", "end 0..6"]
    found = decided(*lines, *seen, **UNCLEAN | {"min_insync_replicas": 1})
    assert (found.standing, found.event and found.event.epoch) == (VIOLATION, 2)


def test_a_violation_is_not_of_an_election_after_another_write_in_its_place() -> None:
    seen = [*saw("b1,b2,b3", "0..40", 1, 0, "1,2,3"), *saw("b1,b2,b3", "41..60", 2, 1, "1,2,3")]
    lines = ["send r ok @5 t10..11", "send q ok @5 t20..21", "final a @4 e0", "final b @5 e1", "end 0..6"]
    found = decided(*lines, *seen, unclean_election=False)
    assert (found.standing, found.event) == (VIOLATION, None)


def test_one_that_only_an_earlier_leader_can_have_served_is_no_doubt_of_a_violation() -> None:
    lines = ["send r ok @5 t10..11", "live r @5 e0 r1 t40", *saw("b1", "0..20", 1, 0, "1,2,3")]
    lines += [*saw("b2,b3", "0..25", 1, 0, "1,2,3"), "fault killed b1 20..40 kind=kill"]
    assert decided(*lines, *saw("b2,b3", "26..60", 2, 1, "2,3"), *CUT, **UNCLEAN).standing is VIOLATION


Lines = tuple[str, ...]


@dataclass(frozen=True)
class Found:
    """The rows of one anomaly in one history."""

    count: int
    standing: Standing
    rows: list[dict[str, Any]]


Outcomes = dict[Lines, dict[str, Found]]


def judged(run: Path, spark: SparkSession, histories: Collection[Lines], **settings: Any) -> Outcomes:
    """The losses of each history, by their names. All are judged as one run, each a topic of its own. Their faults are
    the same, and happen once."""
    [faults] = {tuple(line for line in lines if line.startswith("fault")) for lines in histories}
    each = apart([line for line in lines if line not in faults] for lines in histories)
    write(run, [by_hand(*faults), *each], **settings)
    anomalies, history = judge(run, spark).anomalies, History.read(run, spark)
    losses = losses_of(
        history, AnomalyStore.read(run), observed(history.stored, history.seen), read_final_logs(history)
    )
    outcomes: Outcomes = {lines: {} for lines in histories}
    for name in {name for name in anomalies if BY_NAME[name].judged_by_record}:
        ranges, rows = losses.ranges(BY_NAME[name]), pq.read_table(run / ANOMALIES / name).to_pylist()
        ruling, _, count = worst_ruling(ranges)
        assert (anomalies[name].count, anomalies[name].standing) == (count, ruling.standing)
        assert anomalies[name].runs == (range_facts(history, ranges) if BY_NAME[name].comes_in_ranges else [])
        for lines, reported in zip(histories, each, strict=True):
            own = [one for one in ranges if one.topic == reported.topic]
            if own:
                ruling, _, count = worst_ruling(own)
                its = [row for row in rows if row["topic"] == reported.topic]
                outcomes[lines][name] = Found(count, ruling.standing, its)
    return outcomes


CUT_SEEN = [
    "fault cut b1 3..12 kind=isolate clients=kept",
    *saw("b1,b2", "0..3", 1, 0, "1,2,3"),
    *saw("b1,b2", "4..7", 1, 0, "1"),
    *saw("b2", "8..60", 2, 1, "2"),
    *saw("b1", "14..60", 2, 1, "2"),
]
_AS_RECEIVED = ("offset", "sent_ns", "acknowledged_ns", "read_epoch", "last_read_ns")
RESTARTED = ["place r2 assign @0 t30", "live z @0 e0 r2 t39"]
AT_RISK: dict[str, Any] = {"unclean_election": True, "min_insync_replicas": 1}

AGREEING = {"r2 t40": UNDECIDED, "r1 t6": PERMITTED}
EARLIER: list[list[str]] = [[], ["live a @2 e0 r1 t5"]]


def overwritten(got: str) -> Lines:
    lines = ["send z ok @0 t0..1", "send a ok @1 t4..5", "send f ok @1 t45..46", f"live a @1 e0 {got}"]
    lines += ["live f @1 e1 r3 t47", "final z @0 e0", "final f @1 e1", "end 0..2"]
    return (*lines, *RESTARTED, *CUT_SEEN)


def under_two_epochs(earlier: list[str]) -> Lines:
    lines = ["send z ok @0 t0..1", "send y info t4..", "send a info t4..", "send f ok @1 t13..14"]
    lines += ["live f @1 e1 r2 t39", "live a @2 e1 r2 t40", "final z @0 e0", "final f @1 e1", "end 0..2", *earlier]
    return (*lines, *RESTARTED, *CUT_SEEN)


def also_without_epoch() -> Lines:
    lines = ["send z ok @0 t0..1", "send a ok @1 t4..5", "send f ok @1 t45..46", "live a @1 e0 r1 t6"]
    lines += ["live a @1 r2 t6", "final z @0 e0", "final f @1 e1", "end 0..2"]
    return (*lines, *CUT_SEEN)


@pytest.fixture(scope="module")
def of_cut(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    histories = [*map(overwritten, AGREEING), *map(under_two_epochs, EARLIER), also_without_epoch()]
    return judged(tmp_path_factory.mktemp("cut"), spark, histories, **AT_RISK)


@pytest.mark.parametrize(("got", "standing"), AGREEING.items())
@pytest.mark.heavy
def test_all_anomalies_of_the_record_agree(got: str, standing: Standing, of_cut: Outcomes) -> None:
    found = of_cut[overwritten(got)]
    assert {found[name].standing for name in ("lost", "vanished", "rewritten_offset")} == {standing}


@pytest.mark.parametrize("earlier", EARLIER)
@pytest.mark.heavy
def test_a_record_that_was_there_under_two_epochs_vanished_twice(earlier: list[str], of_cut: Outcomes) -> None:
    found = of_cut[under_two_epochs(earlier)]["vanished"]
    assert (found.count, found.standing) == (1 + len(earlier), VIOLATION)


@pytest.mark.heavy
def test_a_delivery_without_an_epoch_is_that_of_the_known_one(of_cut: Outcomes) -> None:
    found = of_cut[also_without_epoch()]["vanished"]
    assert (found.count, found.standing) == (1, PERMITTED)


_IN_P1 = ["send q ok @0 p1 x1 w2 t4..5", "final q @0 p1 e0", "end 0..1 p1"]
FOUND_TOO: list[tuple[list[str], str]] = [([], "committed_lost"), (_IN_P1, "fractured")]
RECEIVED: list[tuple[list[str], Standing]] = [
    (["r2 t40"], UNDECIDED),
    (["r1 t6"], PERMITTED),
    (["r1 t6", "r2 t40"], UNDECIDED),
    ([], PERMITTED),
]


def in_transaction(got: list[str], found_too: list[str]) -> Lines:
    lines = ["send z ok @0 t0..1", "txn 1 commit ok 3..6..7 w2", "send a ok @1 x1 w2 t4..5", "send f ok @1 t45..46"]
    lines += ["live f @1 e1 r3 t47", "final z @0 e0", "final f @1 e1", "end 0..2", *found_too]
    return (*lines, *(f"live a @1 e0 {one}" for one in got), *RESTARTED, *CUT_SEEN)


@pytest.fixture(scope="module")
def of_transactions(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    histories = [in_transaction(got, found_too) for got, _ in RECEIVED for found_too, _ in FOUND_TOO]
    run = tmp_path_factory.mktemp("transactions")
    return judged(run, spark, histories, isolation_level="read_committed", **AT_RISK)


@pytest.mark.parametrize(("found_too", "anomaly"), FOUND_TOO)
@pytest.mark.parametrize(("got", "standing"), RECEIVED)
@pytest.mark.heavy
def test_the_transaction_of_a_missing_record_has_the_known_epoch(
    got: list[str], standing: Standing, found_too: list[str], anomaly: str, of_transactions: Outcomes
) -> None:
    found = of_transactions[in_transaction(got, found_too)]
    assert {name: found[name].standing for name in ("lost", anomaly)} == {"lost": standing, anomaly: standing}
    [lost], [of_transaction] = found["lost"].rows, found[anomaly].rows
    assert {name: lost[name] for name in _AS_RECEIVED} == {name: of_transaction[name] for name in _AS_RECEIVED}


COPIES = {
    "info t4..": PERMITTED,
    "ok @1 t4..45": PERMITTED,
    "ok t4..45": UNDECIDED,
    "ok @2 t4..45": UNDECIDED,
    "ok @3 t4..45": UNDECIDED,
}
OTHER_EPOCHS = ["live a @2 e1 r2 t7", "live a @2 r2 t7"]
#: It was sent to another partition, and acknowledged there.
IN_ANOTHER_PARTITION = ("ok @3 p1 t4..45", "final a @3 p1 e0", "end 0..4 p1")


def copied(outcome: str, *more: str) -> Lines:
    lines = ["send z ok @0 t0..1", f"send a {outcome}", "send f ok @2 t13..14", "live a @2 e0 r1 t6", *more]
    return (*lines, "final z @0 e0", "final a @1 e1", "final f @2 e1", "end 0..3", *CUT_SEEN)


@pytest.fixture(scope="module")
def of_copies(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    histories = [*map(copied, COPIES), *(copied("ok @1 t4..45", other) for other in OTHER_EPOCHS)]
    histories.append(copied(*IN_ANOTHER_PARTITION))
    return judged(tmp_path_factory.mktemp("copies"), spark, histories, idempotence=False, **AT_RISK)


@pytest.mark.parametrize(("outcome", "standing"), COPIES.items())
@pytest.mark.heavy
def test_a_copy_is_not_acknowledged_that_stands_above_the_one_that_was(
    outcome: str, standing: Standing, of_copies: Outcomes
) -> None:
    for name in ("vanished", "rewritten_offset"):
        found = of_copies[copied(outcome)][name]
        assert (found.count, found.standing) == (1, standing), name
        [row] = found.rows
        assert (row["acknowledged_ns"] is None) is (standing is PERMITTED)
        assert (row["read_epoch"], row["read_ns"], row["last_read_ns"]) == (0, 6 * SECOND, 6 * SECOND)


@pytest.mark.heavy
def test_an_acknowledgement_counts_in_its_own_partition_alone(of_copies: Outcomes) -> None:
    for name in ("vanished", "rewritten_offset"):
        found = of_copies[copied(*IN_ANOTHER_PARTITION)][name]
        assert [(row["sent_ns"], row["acknowledged_ns"]) for row in found.rows] == [(None, None)], name


@pytest.mark.parametrize("other", OTHER_EPOCHS)
@pytest.mark.heavy
def test_a_rewritten_offset_has_no_epoch_where_deliveries_do_not_have_one_epoch(
    other: str, of_copies: Outcomes
) -> None:
    found = of_copies[copied("ok @1 t4..45", other)]["rewritten_offset"]
    assert (found.count, found.standing) == (1, UNDECIDED)
    [row] = found.rows
    assert (row["read_epoch"], row["read_ns"]) == (None, None)
    assert (row["first_read_ns"], row["last_read_ns"]) == (6 * SECOND, 7 * SECOND)


_STANDS = ["send f ok @5 t50..51", "final f @5 e1", "end 4..6"]
#: What was read at 5, by whom, and what stands there; and what becomes of ``rewritten_offset``.
READ_AT_5: dict[str, tuple[list[str], Standing]] = {
    "one copy": (["live r @5 e0 r1 t12", *_STANDS], PERMITTED),
    "twice": (["live r @5 e0 r1 t12", "live r @5 e1 r2 t28", *_STANDS], UNDECIDED),
    "perhaps twice": (["live r @5 r1 t12", "live r @5 e1 r2 t29", *_STANDS], UNDECIDED),
    "of an unknown leader": (["live r @5 r1 t12", *_STANDS], UNDECIDED),
    "nobody knows what stands there": (
        ["send f ok @5 t10..11", "live f @5 e0 r1 t12", "live r @5 e1 r2 t30", "end 4..8 read 5"],
        UNDECIDED,
    ),
}


def read_at_5(lines: list[str]) -> Lines:
    return ("send z ok @4 t0..1", "send r info t10..", *lines, "final z @4 e0", *LONELY)


@pytest.fixture(scope="module")
def of_offset_5(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    histories = [read_at_5(lines) for lines, _ in READ_AT_5.values()]
    return judged(tmp_path_factory.mktemp("at-5"), spark, histories, idempotence=False, retries=5, **AT_RISK)


@pytest.mark.parametrize(("lines", "standing"), READ_AT_5.values(), ids=READ_AT_5)
@pytest.mark.heavy
def test_only_the_leader_of_one_copy_tells_who_held_a_record_at_a_rewritten_offset(
    lines: list[str], standing: Standing, of_offset_5: Outcomes
) -> None:
    found = of_offset_5[read_at_5(lines)]["rewritten_offset"]
    assert (found.count, found.standing) == (1, standing)


#: What b1 acknowledged above it, when nobody else was in the reported ISR, makes it no less committed.
REPORTED_ALONE = [
    *(*saw("b1,b2,b3", "0..2", 1, 0, "1"), *saw("b1", "3..40", 1, 0, "1"), *saw("b2,b3", "3..45", 1, 0, "1")),
    *("fault k b1 40..60 kind=kill", *saw("b2,b3", "46..90", 2, 1, "2")),
]


@pytest.mark.long
def test_an_acknowledgement_above_it_in_the_same_log_counts_for_what_vanished(
    spark: SparkSession, tmp_path: Path
) -> None:
    lines = ["send z ok @0 t0..1", "send f ok @1 t63..64", "send a ok @2 t4..5", "live a @1 e0 r1 t20"]
    lines += ["final z @0 e0", "final f @1 e1", "end 0..2", *REPORTED_ALONE]
    write(tmp_path, [by_hand(*lines)], unclean_election=True, min_insync_replicas=2, idempotence=False, retries=5)
    assert {one.standing for one in judge(tmp_path, spark).anomalies.values()} == {UNDECIDED}


@pytest.mark.long
def test_a_delivery_to_a_group_member_does_not_prove_that_an_election_spared_the_record(
    spark: SparkSession, tmp_path: Path
) -> None:
    lines = ["send z ok @0 t0..1", "send a ok @1 t4..5", "send f ok @1 t45..46", "live a @1 e0 r2 t40"]
    lines += ["final z @0 e0", "final f @1 e1", "end 0..2"]
    members: dict[str, Any] = {"consumer 102": {}}
    write(tmp_path, [by_hand(*lines, *RESTARTED, *CUT_SEEN)], grouped=True, clients=members, **AT_RISK)
    assert judge(tmp_path, spark).anomalies["lost"].standing is PERMITTED


@pytest.mark.long
def test_a_record_that_was_gone_before_is_not_shown_by_another_at_its_offset(
    spark: SparkSession, tmp_path: Path
) -> None:
    lines = ["send z ok @0 t0..1", "send a ok @1 t4..5", "send b ok @1 t22..23", "send c ok @1 t60..61"]
    lines += ["live b @1 e1 r1 t25", "final z @0 e0", "final c @1 e2", "end 0..2"]
    lines += ["fault cut b1 3..12 kind=isolate clients=kept", "fault cut-2 b2 30..50 kind=isolate clients=kept"]
    lines += [*saw("b1,b2,b3", "0..3", 1, 0, "1,2,3"), *saw("b1,b2,b3", "4..7", 1, 0, "1")]
    lines += [*saw("b1,b2,b3", "8..40", 2, 1, "2"), *saw("b1,b2,b3", "41..80", 3, 2, "3")]
    write(tmp_path, [by_hand(*lines)], **AT_RISK)
    found = judge(tmp_path, spark).anomalies
    assert {name: found[name].standing for name in ("lost", "vanished", "rewritten_offset")} == {
        "lost": PERMITTED,
        "vanished": PERMITTED,
        "rewritten_offset": PERMITTED,
    }


GIVEN: dict[str, tuple[list[str], dict[str, Standing]]] = {
    "it": (["live r @5 r1 t13"], {"lost": VIOLATION, "vanished": VIOLATION}),
    "it, with an epoch": (["live r @5 e0 r1 t13"], {"lost": VIOLATION, "vanished": VIOLATION}),
    "nothing": ([], {"lost": PERMITTED}),
    "another at its offset": (["live q @5 r1 t13"], {"lost": VIOLATION, "vanished": VIOLATION}),
    "another, perhaps of the next leader": (["live q @5 r1 t47"], {"lost": PERMITTED}),
}
_ABOVE = ["send v info t14..", "live v @7 r1 t16"]
ABOVE = {
    "above": (_ABOVE, VIOLATION),
    "below": (["send v info t14..", "live v @4 r1 t16"], PERMITTED),
    "of the next term": (["send v info t45..", "live v @7 r1 t47"], PERMITTED),
    "of either": (["send v info t14..", "live v @7 r1 t47"], PERMITTED),
    "in another partition": (["send v info p1 t14..", "live v @7 p1 r1 t16"], PERMITTED),
}


def given(got: list[str]) -> Lines:
    lines = ["send r ok @5 t10..11", "send q info t10..", "send late ok @4 t50..51", "final late @4", "end 0..5", *got]
    return (*lines, *without_epochs(WHOLE))


def given_and_replaced() -> Lines:
    lines = ["send r ok @5 t10..11", "live r @5 r1 t13", "send z ok @4 t0..1", "final z @4", "send late ok @5 t50..51"]
    return (*lines, "final late @5", "end 4..6", *without_epochs(WHOLE))


def below(above: list[str], *more: str) -> Lines:
    lines = ["send r ok @5 t10..11", "send late ok @3 t50..51", "final late @3", "end 0..4", "end 0..0 p1"]
    return (*lines, *above, *more, *without_epochs(WHOLE))


@pytest.fixture(scope="module")
def of_old(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    histories = [*(given(got) for got, _ in GIVEN.values()), given_and_replaced()]
    histories += [below(above) for above, _ in ABOVE.values()]
    return judged(tmp_path_factory.mktemp("old"), spark, histories, **ALONE, **OLD)


@pytest.mark.parametrize(("got", "standings"), GIVEN.values(), ids=GIVEN)
@pytest.mark.heavy
def test_without_epochs_what_a_consumer_got_was_committed_and_a_clean_election_may_not_take_it(
    got: list[str], standings: dict[str, Standing], of_old: Outcomes
) -> None:
    found = of_old[given(got)]
    assert {name: found[name].standing for name in standings} == standings


@pytest.mark.heavy
def test_without_epochs_what_a_consumer_got_was_committed_though_another_record_stands_there(of_old: Outcomes) -> None:
    found = of_old[given_and_replaced()]
    assert {found[name].standing for name in ("lost", "vanished", "rewritten_offset")} == {VIOLATION}


@pytest.mark.parametrize(("above", "standing"), ABOVE.values(), ids=ABOVE)
@pytest.mark.heavy
def test_without_epochs_what_stood_below_what_a_consumer_got_was_committed_too(
    above: list[str], standing: Standing, of_old: Outcomes
) -> None:
    found = of_old[below(above)]["lost"]
    assert (found.count, found.standing) == (1, standing)


@pytest.mark.parametrize(
    ("wiped", "standing"), [("b1", UNDECIDED), ("b3", VIOLATION)], ids=["leader wiped", "other wiped"]
)
@pytest.mark.heavy
def test_without_epochs_it_was_not_certainly_committed_where_its_leader_was_wiped(
    wiped: str, standing: Standing, spark: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path, [by_hand(*below(_ABOVE, f"fault w {wiped} 2..3 kind=wipe"))], **ALONE, **OLD)
    found = judge(tmp_path, spark).anomalies["lost"]
    assert (found.count, found.standing) == (1, standing)
