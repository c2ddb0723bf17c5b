"""A record that a consumer still got after an event was not taken by that event."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from checkers.judge import judge
from harness.core.anomalies import LOST, VANISHED, Anomaly
from harness.core.verdict import Standing
from tests.checkers.notation import by_hand, write
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


def test_one_that_only_an_earlier_leader_can_have_served_is_no_doubt_of_a_violation() -> None:
    lines = ["send r ok @5 t10..11", "live r @5 e0 r1 t40", *saw("b1", "0..20", 1, 0, "1,2,3")]
    lines += [*saw("b2,b3", "0..25", 1, 0, "1,2,3"), "fault killed b1 20..40 kind=kill"]
    assert decided(*lines, *saw("b2,b3", "26..60", 2, 1, "2,3"), *CUT, **UNCLEAN).standing is VIOLATION


CUT_SEEN = [
    "fault cut b1 3..12 kind=isolate clients=kept",
    *saw("b1,b2", "0..3", 1, 0, "1,2,3"),
    *saw("b1,b2", "4..7", 1, 0, "1"),
    *saw("b2", "8..60", 2, 1, "2"),
    *saw("b1", "14..60", 2, 1, "2"),
]
_AS_RECEIVED = ("offset", "sent_ns", "acknowledged_ns", "read_epoch", "last_read_ns")
RESTARTED = ["place r2 assign @0 t30", "live z @0 e0 r2 t39"]


@pytest.mark.parametrize(("got", "standing"), [("r2 t40", UNDECIDED), ("r1 t6", PERMITTED)])
@pytest.mark.heavy
def test_all_anomalies_of_the_record_agree(got: str, standing: Standing, spark: SparkSession, tmp_path: Path) -> None:
    lines = ["send z ok @0 t0..1", "send a ok @1 t4..5", "send f ok @1 t45..46", f"live a @1 e0 {got}"]
    lines += ["live f @1 e1 r3 t47", "final z @0 e0", "final f @1 e1", "end 0..2"]
    write(tmp_path, [by_hand(*lines, *RESTARTED, *CUT_SEEN)], unclean_election=True, min_insync_replicas=1)
    found = judge(tmp_path, spark).anomalies
    assert {found[name].standing for name in ("lost", "vanished", "rewritten_offset")} == {standing}


_IN_P1 = ["send q ok @0 p1 x1 w2 t4..5", "final q @0 p1 e0", "end 0..1 p1"]


@pytest.mark.parametrize(("found_too", "anomaly"), [([], "committed_lost"), (_IN_P1, "fractured")])
@pytest.mark.parametrize(
    ("got", "standing"),
    [(["r2 t40"], UNDECIDED), (["r1 t6"], PERMITTED), (["r1 t6", "r2 t40"], UNDECIDED), ([], PERMITTED)],
)
@pytest.mark.heavy
def test_so_does_the_transaction_of_a_missing_record(
    got: list[str], standing: Standing, found_too: list[str], anomaly: str, spark: SparkSession, tmp_path: Path
) -> None:
    lines = ["send z ok @0 t0..1", "txn 1 commit ok 3..6..7 w2", "send a ok @1 x1 w2 t4..5", "send f ok @1 t45..46"]
    lines += ["live f @1 e1 r3 t47", "final z @0 e0", "final f @1 e1", "end 0..2", *found_too]
    lines += [f"live a @1 e0 {one}" for one in got]
    settings: dict[str, Any] = {"unclean_election": True, "min_insync_replicas": 1, "isolation_level": "read_committed"}
    write(tmp_path, [by_hand(*lines, *RESTARTED, *CUT_SEEN)], **settings)
    found = judge(tmp_path, spark).anomalies
    assert {name: found[name].standing for name in ("lost", anomaly)} == {"lost": standing, anomaly: standing}
    told = [{name: found[one].examples[0][name] for name in _AS_RECEIVED} for one in ("lost", anomaly)]
    assert told[0] == told[1]


@pytest.mark.parametrize("earlier", [[], ["live a @2 e0 r1 t5"]])
@pytest.mark.heavy
def test_a_record_that_was_there_under_two_epochs_vanished_twice(
    earlier: list[str], spark: SparkSession, tmp_path: Path
) -> None:
    lines = ["send z ok @0 t0..1", "send y info t4..", "send a info t4..", "send f ok @1 t13..14"]
    lines += ["live f @1 e1 r2 t39", "live a @2 e1 r2 t40", "final z @0 e0", "final f @1 e1", "end 0..2", *earlier]
    write(tmp_path, [by_hand(*lines, *RESTARTED, *CUT_SEEN)], unclean_election=True, min_insync_replicas=1)
    found = judge(tmp_path, spark).anomalies["vanished"]
    assert (found.count, found.standing) == (1 + len(earlier), VIOLATION)


@pytest.mark.parametrize(
    ("acknowledged", "standing"),
    [("@1 t4..45", PERMITTED), ("t4..45", UNDECIDED), ("@2 t4..45", UNDECIDED), ("@3 t4..45", UNDECIDED)],
)
@pytest.mark.heavy
def test_a_copy_is_not_acknowledged_that_stands_above_the_one_that_was(
    acknowledged: str, standing: Standing, spark: SparkSession, tmp_path: Path
) -> None:
    lines = ["send z ok @0 t0..1", f"send a ok {acknowledged}", "send f ok @2 t13..14", "live a @2 e0 r1 t6"]
    lines += ["final z @0 e0", "final a @1 e1", "final f @2 e1", "end 0..3", *CUT_SEEN]
    write(tmp_path, [by_hand(*lines)], unclean_election=True, min_insync_replicas=1, idempotence=False)
    found = judge(tmp_path, spark).anomalies["vanished"]
    assert (found.count, found.standing) == (1, standing)
    assert (found.examples[0]["acknowledged_ns"] is None) is (standing is PERMITTED)


#: What b1 acknowledged above it, when nobody else was in the ISR that was told, makes it no less committed.
TOLD_ALONE = [
    *(*saw("b1,b2,b3", "0..2", 1, 0, "1"), *saw("b1", "3..40", 1, 0, "1"), *saw("b2,b3", "3..45", 1, 0, "1")),
    *("fault k b1 40..60 kind=kill", *saw("b2,b3", "46..90", 2, 1, "2")),
]


@pytest.mark.heavy
def test_an_acknowledgement_above_it_in_the_same_log_counts_for_what_vanished(
    spark: SparkSession, tmp_path: Path
) -> None:
    lines = ["send z ok @0 t0..1", "send f ok @1 t63..64", "send a ok @2 t4..5", "live a @1 e0 r1 t20"]
    lines += ["final z @0 e0", "final f @1 e1", "end 0..2", *TOLD_ALONE]
    write(tmp_path, [by_hand(*lines)], unclean_election=True, min_insync_replicas=2, idempotence=False, retries=5)
    assert {one.standing for one in judge(tmp_path, spark).anomalies.values()} == {UNDECIDED}


@pytest.mark.heavy
def test_what_a_member_of_a_group_held_shows_nothing(spark: SparkSession, tmp_path: Path) -> None:
    lines = ["send z ok @0 t0..1", "send a ok @1 t4..5", "send f ok @1 t45..46", "live a @1 e0 r2 t40"]
    lines += ["final z @0 e0", "final f @1 e1", "end 0..2"]
    members: dict[str, Any] = {"consumer 102": {}}
    settings: dict[str, Any] = {"unclean_election": True, "min_insync_replicas": 1, "grouped": True, "clients": members}
    write(tmp_path, [by_hand(*lines, *RESTARTED, *CUT_SEEN)], **settings)
    assert judge(tmp_path, spark).anomalies["lost"].standing is PERMITTED


@pytest.mark.heavy
def test_a_record_that_was_gone_before_is_not_shown_by_another_at_its_offset(
    spark: SparkSession, tmp_path: Path
) -> None:
    lines = ["send z ok @0 t0..1", "send a ok @1 t4..5", "send b ok @1 t22..23", "send c ok @1 t60..61"]
    lines += ["live b @1 e1 r1 t25", "final z @0 e0", "final c @1 e2", "end 0..2"]
    lines += ["fault cut b1 3..12 kind=isolate clients=kept", "fault cut-2 b2 30..50 kind=isolate clients=kept"]
    lines += [*saw("b1,b2,b3", "0..3", 1, 0, "1,2,3"), *saw("b1,b2,b3", "4..7", 1, 0, "1")]
    lines += [*saw("b1,b2,b3", "8..40", 2, 1, "2"), *saw("b1,b2,b3", "41..80", 3, 2, "3")]
    write(tmp_path, [by_hand(*lines)], unclean_election=True, min_insync_replicas=1)
    found = judge(tmp_path, spark).anomalies
    assert {name: found[name].standing for name in ("lost", "vanished", "rewritten_offset")} == {
        "lost": PERMITTED,
        "vanished": PERMITTED,
        "rewritten_offset": PERMITTED,
    }


@pytest.mark.heavy
def test_a_delivery_without_an_epoch_is_that_of_the_known_one(spark: SparkSession, tmp_path: Path) -> None:
    lines = ["send z ok @0 t0..1", "send a ok @1 t4..5", "send f ok @1 t45..46", "live a @1 e0 r1 t6"]
    lines += ["live a @1 r2 t6", "final z @0 e0", "final f @1 e1", "end 0..2"]
    write(tmp_path, [by_hand(*lines, *CUT_SEEN)], unclean_election=True, min_insync_replicas=1)
    found = judge(tmp_path, spark).anomalies["vanished"]
    assert (found.count, found.standing) == (1, PERMITTED)


@pytest.mark.parametrize(
    ("got", "standings"),
    [
        (["live r @5 r1 t13"], {"lost": VIOLATION, "vanished": VIOLATION}),
        (["live r @5 e0 r1 t13"], {"lost": VIOLATION, "vanished": VIOLATION}),
        ([], {"lost": PERMITTED}),
        (["live q @5 r1 t13"], {"lost": VIOLATION, "vanished": VIOLATION}),
        (["live q @5 r1 t47"], {"lost": PERMITTED}),
    ],
    ids=["it", "it, with an epoch", "nothing", "another at its offset", "another, perhaps of the next leader"],
)
@pytest.mark.heavy
def test_without_epochs_what_a_consumer_got_was_committed_and_a_clean_election_may_not_take_it(
    got: list[str], standings: dict[str, Standing], spark: SparkSession, tmp_path: Path
) -> None:
    lines = ["send r ok @5 t10..11", "send q info t10..", "send late ok @4 t50..51", "final late @4", "end 0..5", *got]
    write(tmp_path, [by_hand(*lines, *without_epochs(WHOLE))], **ALONE, **OLD)
    found = judge(tmp_path, spark).anomalies
    assert {name: found[name].standing for name in standings} == standings


@pytest.mark.heavy
def test_so_is_what_another_record_took_the_place_of(spark: SparkSession, tmp_path: Path) -> None:
    lines = ["send r ok @5 t10..11", "live r @5 r1 t13", "send z ok @4 t0..1", "final z @4", "send late ok @5 t50..51"]
    lines += ["final late @5", "end 4..6", *without_epochs(WHOLE)]
    write(tmp_path, [by_hand(*lines)], **ALONE, **OLD)
    found = judge(tmp_path, spark).anomalies
    assert {found[name].standing for name in ("lost", "vanished", "rewritten_offset")} == {VIOLATION}


_ABOVE = ["send v info t14..", "live v @7 r1 t16"]


@pytest.mark.parametrize(
    ("above", "more", "standing"),
    [
        (["send v info t14..", "live v @7 r1 t16"], [], VIOLATION),
        (["send v info t14..", "live v @4 r1 t16"], [], PERMITTED),
        (["send v info t45..", "live v @7 r1 t47"], [], PERMITTED),
        (["send v info t14..", "live v @7 r1 t47"], [], PERMITTED),
        (["send v info p1 t14..", "live v @7 p1 r1 t16"], [], PERMITTED),
        (_ABOVE, ["fault w b1 2..3 kind=wipe"], UNDECIDED),
        (_ABOVE, ["fault w b3 2..3 kind=wipe"], VIOLATION),
    ],
    ids=["above", "below", "of the next term", "of either", "in another partition", "leader wiped", "other wiped"],
)
@pytest.mark.heavy
def test_without_epochs_what_stood_below_what_a_consumer_got_was_committed_too(
    above: list[str], more: list[str], standing: Standing, spark: SparkSession, tmp_path: Path
) -> None:
    lines = ["send r ok @5 t10..11", "send late ok @3 t50..51", "final late @3", "end 0..4", "end 0..0 p1"]
    write(tmp_path, [by_hand(*lines, *above, *more, *without_epochs(WHOLE))], **ALONE, **OLD)
    found = judge(tmp_path, spark).anomalies
    assert (found["lost"].count, found["lost"].standing) == (1, standing)
