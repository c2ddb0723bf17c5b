"""Records that were acknowledged at an offset at which another had been acknowledged before."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from checkers.evidence.acting import Acting
from checkers.evidence.again import (
    COLUMNS,
    COLUMNS_OF_GONE,
    MOST_HELD,
    SLICES,
    Again,
    GoneBy,
    acknowledged,
    acknowledged_again,
)
from checkers.evidence.elections import Elections, elections
from checkers.evidence.final_logs import Log
from checkers.leadership import spans
from harness.core.guarantees import Configuration
from harness.history.schema import OBSERVATIONS, SENDS
from tests.checkers.notation import SECOND, HandHistory, by_hand
from tests.checkers.test_holders import acting_on

TRIAL = ("trial", 0)

#: b1 led, from 10 s on alone in the ISR; b2 from 20 s on.
LED = (
    "saw b1 @0..9 leader=1 epoch=0 isr=1,2",
    "saw b1 @10..17 leader=1 epoch=0 isr=1",
    "saw b1 @21..60 leader=2 epoch=1 isr=2",
    "saw b2 @30..60 leader=2 epoch=1 isr=2",
)
_SENT = pa.schema([SENDS.field(name) for name in COLUMNS])


def again(
    *sends: str,
    pieces: int = 1,
    led: Sequence[str] = LED,
    slices: int = SLICES,
    held: int = MOST_HELD,
    fewest: int = 1,
    gone: Sequence[tuple[str, int | None]] = (),
    log: Log | None = None,
    lacks: str | None = None,
) -> Again | None:
    """What shows that the log was cut. The sends come in ``pieces``. ``gone``: those that are gone, each with the epoch
    in which it was read before; each ``lacks`` a column."""
    recorded = by_hand(*led, *sends)
    observations = pa.Table.from_pylist(recorded.rows["observations"], OBSERVATIONS)
    configuration, faults = Configuration(version="4.3.1"), recorded.rows["faults"]
    known = elections(observations, spans(observations), {1: "b1", 2: "b2"}, configuration, faults)
    rows = [{name: row[name] for name in COLUMNS} for row in recorded.rows["sends"]]
    parts = [pa.Table.from_pylist(rows[n::pieces], _SENT) for n in range(pieces)]
    rows_of_gone = [_gone(recorded, *one) | ({lacks: None} if lacks else {}) for one in gone]
    lacking = pa.Table.from_pylist(rows_of_gone, COLUMNS_OF_GONE)

    def acting(elections: Elections) -> Acting:
        return acting_on(elections, faults, kraft=True)

    logs = {} if log is None else {TRIAL: log}
    most = {"most_slices": slices, "most_held": held, "fewest_rows": fewest}
    found = acknowledged_again(parts, [lacking[:1], lacking[1:]], [], known, acting, logs, 60 * SECOND, **most)
    return found.get(TRIAL)


def _gone(recorded: HandHistory, name: str, epoch: int | None) -> dict[str, Any]:
    [send] = [row for row in recorded.rows["sends"] if row["record_id"] == recorded.ids[name]]
    return {
        **{column: send[column] for column in ("topic", "partition", "offset")},
        "sent_ns": send["invoked_ns"],
        "acknowledged_ns": send["completed_ns"] if send["outcome"] == "ok" else None,
        "read_epoch": epoch,
    }


def gone(found: Again | None, offset: int, until: float) -> GoneBy | None:
    assert found is not None
    return found.gone(offset, int(until * SECOND))


RISING = [f"send s{n} ok @{n} t{n}..{n + 0.5}" for n in range(1, 60)]


@pytest.mark.parametrize(
    "sends", [[], RISING, [*RISING, "send x ok @40 t39..45"], ["send a ok @5 t1..2", "send b ok @5 t1..3"]]
)
def test_offsets_that_rise_show_nothing(sends: Sequence[str]) -> None:
    assert again(*sends) is None


def test_a_later_write_belongs_to_no_term_if_no_leader_was_reported() -> None:
    found = again("send a ok @5 t1..2", "send b ok @3 t5..6", led=["saw b1 @0..60 leader=-1 epoch=0 isr=1,2"])
    assert gone(found, 5, 2) == GoneBy(-1, 6 * SECOND)


#: b1 was last heard at 17 s, and b2 first at 30 s.
_UNHEARD = ["saw b1 @0..17 leader=1 epoch=0 isr=1"]
_KILLED = [*_UNHEARD, "fault k b1 18..90 kind=kill"]


@pytest.mark.parametrize(
    ("led", "term"),
    [
        ([*_KILLED, "saw b2 @30..60 leader=2 epoch=1 isr=2"], 1),
        ([*_KILLED, "saw b2 @30..60 leader=2 epoch=2 isr=2"], 0),
        ([*_UNHEARD, *(f"saw {by} leader=2 epoch=1 isr=2" for by in ("b2 @30..60", "b1 @40..60"))], 0),
    ],
    ids=["the next", "one whom nobody reported", "the one before, until it hears of the next"],
)
def test_a_leader_that_may_not_have_been_over_may_have_acknowledged_it(led: Sequence[str], term: int) -> None:
    found = again("send a ok @5 t1..2", "send x ok @5 t24..25", led=led)
    assert gone(found, 5, 2) == GoneBy(term, 25 * SECOND)


@pytest.mark.parametrize(("pieces", "fewest"), [(1, 1), (2, 1), (7, 1), (7, 2), (7, 3), (7, 100)])
def test_one_that_falls_shows_that_what_stood_there_or_above_was_gone(pieces: int, fewest: int) -> None:
    found = again(*RISING[:7], "send x ok @5 t50..51", pieces=pieces, fewest=fewest)
    assert gone(found, 5, 7.5) == gone(found, 9, 7.5) == GoneBy(1, 51 * SECOND)
    assert gone(found, 4, 7.5) is None
    assert gone(found, 9, 50) is None


@pytest.mark.parametrize(
    ("x", "term"),
    [("t12..12.5", 0), ("t12..15.9", 0), ("t12..16", 0), ("t12..21", 0), ("t21..22", 0), ("t21.1..22", 1)],
    ids=["before", "just before", "perhaps after", "seen then", "sent then", "sent after that"],
)
def test_it_tells_of_the_terms_that_had_surely_begun_when_it_was_appended(x: str, term: int) -> None:
    until = int(float(x.split("..")[1]) * SECOND)
    assert gone(again(*RISING[:7], f"send x ok @5 {x}"), 5, 7.5) == GoneBy(term, until)


#: b1 was heard until 40 s to lead, cut off from 15 s on; b2 led from 20 s on at the earliest.
_BOTH = [
    *("saw b1 @0..40 leader=1 epoch=0 isr=1", "saw b1 @41..60 leader=2 epoch=1 isr=2"),
    "saw b2 @21..60 leader=2 epoch=1 isr=2",
    "fault c b1 15..40 kind=isolate",
]
_LOG = Log(*np.array([[0, 0, 4], [1, 5, 8]]).T, end=9)


@pytest.mark.parametrize(
    ("at", "missing", "log", "term"),
    [
        (5, [], _LOG, 1),
        (5, [], None, 0),
        (4, [], _LOG, 0),
        (5, [("x", None)], _LOG, 0),
        (5, [("x", 0)], _LOG, 0),
        (5, [("x", 1)], _LOG, 1),
        (5, [("s6", 0), ("s7", None)], _LOG, 1),
        (5, [], replace(_LOG, epochs=np.array([0, 2])), 1),
        (5, [], replace(_LOG, epochs=np.array([0, 0])), 0),
        (4, [], replace(_LOG, first=np.array([0, 4])), 0),
        (5, [], replace(_LOG, last=np.array([5, 8])), 0),
        (5, [], replace(_LOG, first=np.array([0, 4])), 1),
        (5, [], replace(_LOG, first=np.array([6, 7])), 0),
    ],
    ids=[
        *("under the next", "nobody read the log", "under the one before", "it is gone", "read before under that"),
        *("read before under the next", "others are gone", "under a later one", "under the first again"),
        *("the log falls back there", "it may fall back there", "it falls back elsewhere"),
        "below the log",
    ],
)
def test_the_epoch_that_it_was_read_with_tells_which_term_had_begun(
    at: int, missing: Sequence[tuple[str, int | None]], log: Log | None, term: int
) -> None:
    """b1 was cut off from 15 s on, and led until 40 s as far as anybody heard."""
    found = again(*RISING[:7], f"send x ok @{at} t19.5..20.5", led=_BOTH, gone=missing, log=log)
    assert gone(found, 5, 7.5) == GoneBy(term, int(20.5 * SECOND))


@pytest.mark.parametrize(
    ("x", "term"),
    [("t11.1..13", 0), ("t11.1..27.9", 0), ("t11.1..28", 1), ("t11..28", 0), ("t10.9..28", 0)],
    ids=["while nobody led", "just before the next", "as it may have begun", "in the last moment", "before that"],
)
def test_a_write_acknowledged_after_a_leader_was_killed_may_be_of_the_next_term(x: str, term: int) -> None:
    """b1 is killed at 10 s, b2 seen to lead at 30 s."""
    led = ["saw b1 @0..9 leader=1 epoch=0 isr=1", "saw b2 @0..29 leader=1 epoch=0 isr=1", "fault k b1 10..60 kind=kill"]
    found = again(*RISING[:7], f"send x ok @5 {x}", led=[*led, "saw b2 @30..60 leader=2 epoch=1 isr=2"])
    assert gone(found, 5, 7.5) == GoneBy(term, int(float(x.split("..")[1]) * SECOND))


def test_a_lost_write_without_an_offset_or_a_time_tells_nothing() -> None:
    """x is gone, and lacks one of these columns, as in an imported history."""
    for lacks in ("sent_ns", "acknowledged_ns", "offset"):
        found = again(*RISING[:7], "send x ok @5 t19.5..20.5", led=_BOTH, gone=[("x", 0)], log=_LOG, lacks=lacks)
        assert gone(found, 5, 7.5) == GoneBy(1, int(20.5 * SECOND))


def test_a_later_leader_that_was_seen_first_had_begun() -> None:
    """Only b2 knows of the epoch between, and reports it late."""
    led = ["saw b1 @0..24 leader=1 epoch=0 isr=1", "saw b1 @25..60 leader=1 epoch=2 isr=1"]
    led.append("saw b2 @30 leader=2 epoch=1 isr=2")
    assert gone(again(*RISING[:7], "send x ok @5 t25.1..26", led=led), 5, 7.5) == GoneBy(2, 26 * SECOND)


def test_one_that_a_deposed_leader_may_have_acknowledged_shows_that_the_next_ones_log_may_have_been_cut() -> None:
    """b1 is paused until 40 s, or silent and nobody knows why; it answers at 41 s, and knows then that b2 leads."""
    reported = [*RISING[:7], "send y ok @9 t23..23.5"]
    silent = [*(line for line in LED if "@21" not in line), "saw b1 @41..60 leader=2 epoch=1 isr=2"]
    for led in (silent, [*silent, "fault p b1 18..40 kind=pause"]):
        for when, by in (("t30.5..31", 31), ("t30.5..40.2", 40.2), ("t43..44", 44)):
            assert gone(again(*reported, f"send x ok @5 {when}", led=led), 9, 23.5) == GoneBy(1, int(by * SECOND))


def test_one_that_was_sent_in_the_moment_of_the_acknowledgement_shows_nothing() -> None:
    found = again(*RISING[:7], "send x ok @5 t50..51")
    assert found is not None
    [sent] = found.sent_ns.tolist()
    assert found.gone(5, sent) is None
    assert found.gone(5, sent - 1) is not None


def test_of_several_the_one_of_the_earliest_leader_counts() -> None:
    found = again(*RISING[:7], "send x ok @5 t50..51", "send y ok @6 t12..12.5")
    assert gone(found, 9, 7.5) == GoneBy(0, int(12.5 * SECOND))
    assert gone(found, 5, 7.5) == GoneBy(1, 51 * SECOND)


@pytest.mark.parametrize(
    ("x", "slices", "shows"),
    [
        ("send x ok @3 t4..5", SLICES, True),
        ("send x ok @3 t3.7..5", SLICES, True),
        ("send x ok @3 t3.4..5", SLICES, False),
        ("send x ok @4 t4..5", SLICES, False),
        ("send x ok @3 t4..5", 6, False),
        ("send x ok @3 t10..11", 6, True),
    ],
    ids=["while nothing else happened", "soon after", "sent before", "above", "in the same slice", "in a later slice"],
)
def test_one_that_falls_shows_that_while_nothing_else_happened(x: str, slices: int, shows: bool) -> None:
    """No broker reported anything new from 0 s to 10 s."""
    found = again(*RISING[:3], x, slices=slices)
    assert (found is not None and gone(found, 3, 3.5) is not None) == shows


def test_only_the_first_of_those_is_kept_that_show_the_same_and_each_that_shows_more() -> None:
    """The log is cut at 5 and at 7 of the second time, and at 3 of the third."""
    cuts = [f"send a{n} ok @{n} t{10 + n / 2}..{10 + n / 2}" for n in range(5, 10)]
    second = [f"send b{n} ok @{n} t{20 + n / 2}..{20 + n / 2}" for n in range(7, 12)]
    third = [f"send c{n} ok @{n} t{30 + n / 2}..{30 + n / 2}" for n in range(3, 6)]
    found = again(*RISING[:9], *cuts, *second, *third, led=LED[:1])
    assert found is not None
    assert found.lowest.tolist() == [5, 7, 3]
    assert [gone(found, offset, until) is None for offset, until in ((5, 9.6), (7, 13.6), (6, 13.6), (3, 9.6))] == [
        *(False, False, False, False)
    ]
    assert gone(found, 2, 9.6) is None


@pytest.mark.parametrize("y", ["t13..19", "t13..13.5"])
def test_a_fall_shows_what_stood_between_two_others_and_was_acknowledged_between_them(y: str) -> None:
    """At 3 the log is cut before 4 and 6 are written; then at 5, and at 4 while 5 is still in flight."""
    found = again(
        *("send a ok @9 t5..5.5", "send x ok @3 t6..6.5", "send r ok @4 t10..10.5", "send c ok @6 t11..11.5"),
        *(f"send y ok @5 {y}", "send z ok @4 t15..15.5"),
        led=LED[:1],
    )
    assert gone(found, 4, 10.5) == GoneBy(0, int(15.5 * SECOND))
    assert gone(found, 6, 11.5) is not None
    assert gone(found, 3, 10.5) is None


def test_a_fall_shows_what_stood_at_its_own_place_and_was_acknowledged_since_the_one_before() -> None:
    found = again(*RISING[:5], "send x ok @3 t6..6.5", "send r ok @5 t10..10.5", "send y ok @5 t13..13.5", led=LED[:1])
    assert gone(found, 5, 10.5) == GoneBy(0, int(13.5 * SECOND))


def test_a_fall_that_was_over_earlier_is_kept_beside_one_that_shows_as_much() -> None:
    found = again(*RISING[:9], "send x ok @3 t20..50", "send y ok @4 t30..31", led=LED[:1])
    assert gone(found, 5, 9.6) == GoneBy(0, 31 * SECOND)


def test_a_fall_that_came_before_the_next_leader_is_kept_beside_one_that_came_after() -> None:
    """x is of b2; y was sent later, and is b1's."""
    sends = ["send x ok @5 t19.2..20.2", "send y ok @6 t19.5..20.5"]
    found = again(*RISING[:7], *sends, led=_BOTH, gone=[("y", 0)], log=_LOG)
    assert gone(found, 6, 7.5) == GoneBy(0, int(20.2 * SECOND))
    assert gone(found, 5, 7.5) == GoneBy(1, int(20.2 * SECOND))


@pytest.mark.parametrize(
    ("also", "by"),
    [
        ([], 31),
        (["send y ok @6 t30..44"], 31),
        (["send y ok @900 t30..30.5"], 31),
        (["send y ok @6 t30..30.5"], 30.5),
        (["send y ok @5 t30..30.5"], 30.5),
        (["send y ok @3 t30..44"], 31),
        (["send y ok @3 t30..44", "send z ok @6 t30..30.7", "send q ok @900 t30..30.5"], 30.7),
        (["send y ok @3 t30..30.2", "send z ok @6 t30..30.7"], 30.2),
    ],
    ids=[
        *("alone", "later", "where nothing was", "above, and earlier", "there, and earlier", "below, and later"),
        *("between two others", "below, and earlier"),
    ],
)
@pytest.mark.parametrize("held", [1, MOST_HELD])
def test_of_those_that_were_sent_in_the_same_slice_each_tells_of_its_own_offset_and_time(
    also: Sequence[str], by: float, held: int
) -> None:
    found = again(*RISING[:9], "send x ok @5 t30..31", *also, led=LED[:1], held=held)
    assert gone(found, 8, 9.6) == GoneBy(0, int(by * SECOND))


def test_the_writes_that_are_kept_show_the_same_as_all_writes() -> None:
    random = Random(1)
    for _ in range(20):
        writes = [(random.randrange(1, 12), random.randrange(25), random.randrange(1, 8)) for _ in range(60)]
        sends = [f"send s{n} ok @{at} t{sent}..{sent + took}" for n, (at, sent, took) in enumerate(writes)]
        found = again(*sends, led=LED[:1], slices=60, held=random.choice([1, 20, MOST_HELD]))
        for at, sent, took in writes:
            shows = [begun + more for own, begun, more in writes if own <= at and begun > sent + took]
            known = None if found is None else found.gone(at, (sent + took) * SECOND)
            assert known == (GoneBy(0, min(shows) * SECOND) if shows else None)


def test_rows_are_folded_again_where_many_are_held() -> None:
    whole, few = (again(*RISING[:7], "send x ok @5 t50..51", pieces=4, held=held) for held in (MOST_HELD, 2))
    assert whole is not None
    assert few is not None
    assert [each.tolist() for each in vars(whole).values()] == [each.tolist() for each in vars(few).values()]


def test_only_what_was_acknowledged_at_an_offset_that_is_known_counts() -> None:
    rows = [
        {"outcome": outcome, "offset": offset, "completed_ns": at}
        for outcome, offset, at in (("ok", 1, 1), ("info", 2, 2), ("ok", None, 3), ("ok", 4, None), ("fail", None, 5))
    ]
    assert pa.Table.from_pylist(rows).filter(acknowledged())["offset"].to_pylist() == [1]


def _nothing_acted(elections: Elections) -> Acting:
    return acting_on(elections, [], kraft=True)


def test_a_run_without_length_is_one_slice() -> None:
    rows = pa.Table.from_pylist(
        [{"topic": "trial", "partition": 0, "invoked_ns": 0, "completed_ns": 0, "offset": at} for at in (1, 0)], _SENT
    )
    observations = pa.Table.from_pylist(by_hand(*LED).rows["observations"], OBSERVATIONS)
    known = elections(observations, spans(observations), {1: "b1", 2: "b2"}, Configuration(version="4.3.1"))
    assert acknowledged_again([rows], [], [], known, _nothing_acted, {}, 0) == {}


def test_nothing_is_shown_where_nobody_reported_a_leader() -> None:
    rows = pa.Table.from_pylist(
        [{"topic": "other", "partition": 0, "invoked_ns": 1, "completed_ns": 2, "offset": 3}], _SENT
    )
    assert acknowledged_again([rows], [], [], {}, _nothing_acted, {}, 60 * SECOND) == {}
