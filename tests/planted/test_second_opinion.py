"""The judge's standing of each lost record, against the second opinion; and that against the truth."""

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import NamedTuple

import pytest

from tests.checkers.notation import by_hand
from tests.planted.second_opinion import Opinion, Rules, Standing, opinions
from tests.simulated.decisions import decisions
from tests.simulated.play import play
from tests.simulated.settings import Seen, bug_of, settings_of
from tests.simulated.truth import Permits

#: Histories that lose records in most ways; and those in which an opinion was wrong once.
_SOME = [1, 4, 12, 15, 17, 20, 21, 23, 29, 89, 159, 161, 165, 236, 279]
_HUNDREDS = range(300)
_HUNDREDS_SELDOM_OBSERVED = range(120)
_CHUNK = 20

#: Of such a part of the records, at least, there is an opinion.
_MOSTLY = 0.5
#: Of such a part of those of which both name holders, at least, these are the same. (Each knows some that the other
#: leaves open.)
_NEARLY_ALL = 0.8

_CONTRARY = {("permitted", "violation"), ("violation", "permitted")}
_WRONG = {(Permits.YES, "violation"), (Permits.NO, "permitted"), (Permits.SHOWN, "permitted")}


class Compared(NamedTuple):
    """A lost record, and what the judges say about it."""

    seed: int
    anomaly: str
    partition: int
    offset: int
    truth: Permits
    judge: str
    second: str
    because: str
    must: frozenset[int]
    need_not: frozenset[int]
    second_must: frozenset[int]


def _compared(seeds: Iterable[int], seen: Seen = Seen.OFTEN) -> list[Compared]:
    return [one for seed in seeds for one in _of(seed, seen)]


def _of(seed: int, seen: Seen) -> Iterator[Compared]:
    played = play(seed, settings_of(seed, seen), bug_of(seed))
    configuration = played.settings.configuration
    names = {broker: f"b{broker}" for broker in played.brokers}
    said = opinions(played.tables, Rules(configuration.acks, configuration.elects_uncleanly, names))
    judged = {(anomaly.name, loss.record.id): (loss, decision) for anomaly, loss, decision in decisions(played)}
    assert judged.keys() == said.keys()
    for (anomaly, record_id), (loss, decision) in judged.items():
        opinion = said[anomaly, record_id]
        at = loss.place[1], loss.record.offset
        said_by = decision.standing, opinion.standing, opinion.because
        yield Compared(seed, anomaly, *at, loss.permits, *said_by, decision.must, decision.need_not, opinion.at_first)


def _agree(found: list[Compared]) -> None:
    assert [one for one in found if (one.judge, one.second) in _CONTRARY] == []
    assert [one for one in found if (one.truth, one.second) in _WRONG] == []
    reported = [one for one in found if one.second != Standing.UNDECIDED]
    assert {one.second for one in reported} == {Standing.PERMITTED, Standing.VIOLATION}
    assert len(reported) >= _MOSTLY * len(found)


def _agree_on_holders(found: list[Compared]) -> None:
    """The brokers that must have had a record at first."""
    assert [one for one in found if one.second_must & one.need_not] == []
    named = [one for one in found if one.must and one.second_must]
    assert len(named) >= _MOSTLY * len(found)
    assert sum(one.must == one.second_must for one in named) >= _NEARLY_ALL * len(named)


def test_the_judge_contradicts_the_second_opinion_of_no_lost_record() -> None:
    found = _compared(_SOME)
    _agree(found)
    _agree_on_holders(found)


@pytest.mark.parametrize(
    ("seeds", "seen"),
    [(_HUNDREDS, Seen.OFTEN), (_HUNDREDS_SELDOM_OBSERVED, Seen.SELDOM)],
    ids=["observed", "observed seldom"],
)
def test_of_hundreds_of_histories_it_contradicts_none(seeds: range, seen: Seen) -> None:
    chunks = [seeds[first : first + _CHUNK] for first in range(0, len(seeds), _CHUNK)]
    with ProcessPoolExecutor(max_workers=os.cpu_count(), mp_context=get_context("spawn")) as pool:
        found = [one for some in pool.map(partial(_compared, seen=seen), chunks) for one in some]
    _agree(found)
    # (If too little was reported to the second opinion, its last report of the ISR may be old: seed 80.)
    contrary = [one for one in found if one.second_must & one.need_not]
    assert [one for one in contrary if one.second != Standing.UNDECIDED] == []


#: Record a was sent to b1, whose ISR was everybody, and is not in the log, which ends below it.
_SENT = ("send z ok @0 t1..2", "send a ok @1 t3..4", "final z @0 e0", "end 0..1")
_ALL = ("saw b1 @0..9 leader=1 epoch=0 isr=1,2,3", "saw b2 @0..9 leader=1 epoch=0 isr=1,2,3")
_ALONE = ("saw b1 @0..9 leader=1 epoch=0 isr=1", "saw b2 @0..9 leader=1 epoch=0 isr=1")
_B2_LEADS = "saw b2 @10..60 leader=2 epoch=1 isr=2"
_KILLED = "fault kill-1 b1 5..60 kind=kill"
_WIPED = "fault wipe-1 b2 6..7 kind=wipe"


def _opinion(*lines: str, acks: str = "all", unclean: bool = False) -> Opinion:
    history = by_hand(*_SENT, *lines)
    history.rows["observations"].sort(key=lambda row: row["at_ns"])
    return opinions(history.rows, Rules(acks, unclean, {1: "b1", 2: "b2", 3: "b3"}))["lost", history.ids["a"]]


def test_all_of_the_isr_must_have_what_was_acknowledged_with_acks_all() -> None:
    opinion = _opinion(*_ALL, _B2_LEADS, _KILLED)
    assert (opinion.standing, opinion.must, opinion.took) == (Standing.VIOLATION, {1, 2, 3}, 1)


def test_the_leader_alone_must_have_what_was_acknowledged_with_acks_1() -> None:
    opinion = _opinion(*_ALL, _B2_LEADS, _KILLED, acks="1")
    assert (opinion.standing, opinion.must, opinion.took) == (Standing.PERMITTED, {1}, 1)


def test_all_of_the_isr_must_have_what_its_leader_reported_as_committed() -> None:
    committed = "saw b1 @6 leader=1 epoch=0 isr=1,2,3 high=2"
    assert _opinion(*_ALL, committed, _B2_LEADS, _KILLED, acks="1").standing is Standing.VIOLATION


def test_all_of_the_isr_must_have_what_was_delivered() -> None:
    opinion = _opinion(*_ALL, "live a @1 e0 r1 t6", _B2_LEADS, _KILLED, acks="1")
    assert opinion.standing is Standing.VIOLATION


@pytest.mark.parametrize(
    ("lines", "unclean", "standing"),
    [
        ((*_ALONE, _B2_LEADS, _KILLED), True, Standing.PERMITTED),
        ((*_ALONE, _B2_LEADS, _KILLED), False, Standing.VIOLATION),
        ((*_ALONE, _B2_LEADS), True, Standing.UNDECIDED),
        ((*_ALL, _B2_LEADS, _KILLED), True, Standing.VIOLATION),
        ((*_ALL, _B2_LEADS, _KILLED, _WIPED), False, Standing.UNDECIDED),
        (("saw b1 @0..60 leader=1 epoch=0 isr=1,2,3",), True, Standing.VIOLATION),
        (_ALL, True, Standing.UNDECIDED),
    ],
    ids=[
        "a leader from outside the ISR, if elections may be unclean",
        "which they may not be",
        "nothing had hit the leader",
        "a leader of the ISR",
        "it lost its disk, and was in the ISR still",
        "no election",
        "nobody saw the end",
    ],
)
def test_an_election_may_take_it_that_the_settings_allow(
    lines: tuple[str, ...], unclean: bool, standing: Standing
) -> None:
    assert _opinion(*lines, unclean=unclean).standing is standing
