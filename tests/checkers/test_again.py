"""What was acknowledged where something had been acknowledged before."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from checkers.evidence.again import COLUMNS, Again, Gone, acknowledged_again
from checkers.evidence.elections import elections
from checkers.evidence.leadership import spans
from harness.core.guarantees import Configuration
from harness.history.schema import OBSERVATIONS, SENDS
from tests.checkers.notation import SECOND, by_hand

TRIAL = ("trial", 0)

#: b1 led, from 10 s on alone in the ISR; b2 from 20 s on.
LED = (
    "saw b1 @0..9 leader=1 epoch=0 isr=1,2",
    "saw b1 @10..17 leader=1 epoch=0 isr=1",
    "saw b1 @21..60 leader=2 epoch=1 isr=2",
    "saw b2 @30..60 leader=2 epoch=1 isr=2",
)
_SENT = pa.schema([SENDS.field(name) for name in COLUMNS])


def again(*sends: str, pieces: int = 1, led: Sequence[str] = LED) -> Again | None:
    """What shows that the log was cut. What was sent is told in ``pieces``."""
    told = by_hand(*led, *sends)
    observations = pa.Table.from_pylist(told.rows["observations"], OBSERVATIONS)
    known = elections(observations, spans(observations), {1: "b1", 2: "b2"}, Configuration(version="4.3.1"))
    rows = [{name: row[name] for name in COLUMNS} for row in told.rows["sends"]]
    parts = [pa.Table.from_pylist(rows[n::pieces], _SENT) for n in range(pieces)]
    return acknowledged_again(parts, known, {of: known[of].moments for of in known}).get(TRIAL)


def moments(led: Sequence[str] = LED) -> np.ndarray:
    observations = pa.Table.from_pylist(by_hand(*led).rows["observations"], OBSERVATIONS)
    return elections(observations, spans(observations), {1: "b1", 2: "b2"}, Configuration(version="4.3.1"))[
        TRIAL
    ].moments


def gone(found: Again | None, term: int, offset: int, until: float, led: Sequence[str] = LED) -> Gone | None:
    assert found is not None
    return found.gone(term, offset, int(np.searchsorted(moments(led), int(until * SECOND), side="right")))


RISING = [f"send s{n} ok @{n} t{n}..{n + 0.5}" for n in range(1, 60)]


@pytest.mark.parametrize(
    "sends", [[], RISING, [*RISING, "send x ok @40 t39..45"], ["send a ok @5 t1..2", "send b ok @5 t1..3"]]
)
def test_offsets_that_rise_show_nothing(sends: Sequence[str]) -> None:
    assert again(*sends) is None


@pytest.mark.parametrize("pieces", [1, 2, 7])
def test_one_that_falls_shows_that_what_stood_there_or_above_was_gone(pieces: int) -> None:
    found = again(*RISING[:7], "send x ok @5 t50..51", pieces=pieces)
    assert gone(found, 0, 5, 7.5) == gone(found, 1, 9, 7.5) == Gone(1, 51 * SECOND)
    assert gone(found, 0, 4, 7.5) is None
    assert gone(found, 2, 9, 7.5) is None
    assert gone(found, 0, 9, 50) is None


def test_one_that_an_earlier_leader_may_have_acknowledged_shows_nothing_of_a_later_ones_log() -> None:
    found = again(*RISING[:7], "send x ok @5 t12..12.5")
    assert gone(found, 0, 5, 7.5) == Gone(0, int(12.5 * SECOND))
    assert gone(found, 1, 5, 7.5) is None


def test_one_that_a_deposed_leader_may_have_acknowledged_when_it_answered_again_shows_nothing_of_a_later_one() -> None:
    """b1 answers at 41 s, and knows then that b2 leads."""
    told = [*RISING[:7], "send y ok @9 t23..23.5"]
    led = [*(line for line in LED if "@21" not in line), "saw b1 @41..60 leader=2 epoch=1 isr=2"]
    shows = again(*told, "send x ok @5 t30..40.2", led=led)
    assert gone(shows, 0, 9, 23.5, led) == Gone(1, int(40.2 * SECOND))
    assert gone(shows, 1, 9, 23.5, led) is None
    for when in ("t30..31", "t43..44"):
        assert gone(again(*told, f"send x ok @5 {when}", led=led), 1, 9, 23.5, led) is not None


def test_of_several_the_one_of_the_earliest_leader_counts() -> None:
    found = again(*RISING[:7], "send x ok @5 t50..51", "send y ok @6 t12..12.5")
    assert gone(found, 0, 9, 7.5) == Gone(0, int(12.5 * SECOND))
    assert gone(found, 0, 5, 7.5) == Gone(1, 51 * SECOND)


def test_where_nobody_told_who_led_nothing_is_shown() -> None:
    rows = pa.Table.from_pylist(
        [{"topic": "other", "partition": 0, "invoked_ns": 1, "completed_ns": 2, "offset": 3}], _SENT
    )
    assert acknowledged_again([rows], {}, {}) == {}
