"""Which undecided records an election took beside those that it is known to have taken."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from checkers.evidence.decision import Case, Decision, LossEvent, PossibleTerm
from checkers.evidence.final_logs import Log
from checkers.evidence.neighbours import attached
from checkers.evidence.record_ranges import RecordRange
from checkers.evidence.written import MOST_SENT, LeaderWrites
from checkers.leadership import Partition
from harness.core.guarantees import Ruling
from harness.core.verdict import Standing
from tests.checkers.notation import SECOND
from tests.checkers.ranges import TRIAL, record_range

PERMITTED_BY = Ruling(Standing.PERMITTED, "because", "source")
TAKEN = Decision(PERMITTED_BY, event=LossEvent(8 * SECOND, 1, 2, 1), term=0, may_have=frozenset({1}))
PERMITTED = Standing.PERMITTED
UNSURE = Decision(Ruling(Standing.UNDECIDED, "unsure", "source"), may_have=frozenset({1}))


def part(first: int, last: int, decision: Decision, sent: float = 5, until: float = 6, **changes: Any) -> RecordRange:
    case = Case(TRIAL, int(sent * SECOND), int(until * SECOND), True, first, last)
    return record_range(first, last, until, until, case=case, decision=decision, **changes)


def standings(*parts: RecordRange, logs: Mapping[Partition, Log] | None = None) -> list[tuple[int | None, Standing]]:
    found = attached(parts, 64, logs or {})
    assert all(one.case is None for one in found)
    return [(one.first_offset, one.decision.standing) for one in found if one.decision]


def test_an_undecided_range_beside_a_taken_range_was_taken_by_the_same_election() -> None:
    assert standings(part(0, 9, UNSURE), part(10, 19, TAKEN)) == [(0, Standing.PERMITTED), (10, Standing.PERMITTED)]
    assert standings(part(0, 9, TAKEN), part(10, 19, UNSURE)) == [(0, Standing.PERMITTED), (10, Standing.PERMITTED)]


@pytest.mark.parametrize(
    ("own", "beside", "reported"),
    [
        ({1}, {1}, {1}),
        ({1, 3}, {1}, {1, 3}),
        ({1, 3}, set(), {1, 3}),
        ({1}, {1, 3}, {1}),
        ({1, 4}, {1, 3}, {1, 4}),
        (set(), {1}, set()),
    ],
)
def test_the_holders_of_a_range_come_from_its_own_leader_and_isr(
    own: set[int], beside: set[int], reported: set[int]
) -> None:
    """Broker 2 was elected, and need not have had either range."""
    brokers = frozenset({1, 3, 4})
    taken = replace(TAKEN, must=frozenset(beside), need_not=brokers - frozenset(beside) | {2})
    unsure = replace(UNSURE, must=frozenset(own), unknown=brokers - frozenset(own) | {2})
    for parts in ([part(0, 9, unsure), part(10, 19, taken)], [part(10, 19, taken), part(20, 29, unsure)]):
        [found] = [one.decision for one in attached(parts, 64, {}) if one.first_offset != 10]
        assert found is not None
        assert (found.ruling, found.event, found.must) == (taken.ruling, taken.event, reported)
        assert not found.must & (found.need_not | found.unknown)


@pytest.mark.parametrize("must", [set(), {1}], ids=["other holders", "the same holders"])
def test_a_range_may_have_another_permission_than_its_neighbour(must: set[int]) -> None:
    """The neighbours were acknowledged by their leader alone; this range was committed."""
    committed, brokers = Ruling(Standing.PERMITTED, "unclean", "source"), frozenset({1, 3})
    taken = replace(TAKEN, must=frozenset(must), need_not=brokers - must)
    unsure = replace(UNSURE, must=frozenset({1}), unknown=frozenset({3}), rulings={1: committed})
    for parts in ([part(0, 9, unsure), part(10, 19, taken)], [part(10, 19, taken), part(20, 29, unsure)]):
        [found] = [one.decision for one in attached(parts, 64, {}) if one.first_offset != 10]
        assert found is not None
        assert (found.ruling, found.event) == (committed, TAKEN.event)


def test_neighbours_of_a_neighbour_were_taken_too() -> None:
    found = standings(part(0, 9, TAKEN), part(60, 69, UNSURE), part(133, 139, UNSURE), part(204, 209, UNSURE))
    assert found[1:] == [(60, Standing.PERMITTED), (133, Standing.PERMITTED), (204, Standing.UNDECIDED)]


@pytest.mark.parametrize("width", [64, 65_536])
@pytest.mark.parametrize(("first", "standing"), [(73, Standing.PERMITTED), (74, Standing.UNDECIDED)])
def test_how_near_that_is_does_not_depend_on_the_size_of_the_history(
    first: int, standing: Standing, width: int
) -> None:
    found = attached([part(0, 9, UNSURE), part(first, 99, TAKEN)], width, {})
    assert [one.standing for one in found] == [standing, Standing.PERMITTED]


@pytest.mark.parametrize(
    "beside",
    [
        replace(TAKEN, ruling=Ruling(Standing.VIOLATION, "broken", "source")),
        replace(TAKEN, ruling=Ruling(Standing.UNDECIDED, "unsure", "source"), may_have=frozenset()),
        replace(TAKEN, event=None),
        replace(TAKEN, event=LossEvent(8 * SECOND)),
    ],
    ids=["a violation", "undecided", "by no event", "by the loss of every disk"],
)
def test_nothing_was_taken_by_what_is_not_a_permitted_election(beside: Decision) -> None:
    assert standings(part(0, 9, beside), part(10, 19, UNSURE))[1] == (10, Standing.UNDECIDED)


def test_ranges_of_another_anomaly_decide_but_are_not_reported_again() -> None:
    found = attached([part(10, 19, UNSURE)], 64, {}, [part(0, 9, TAKEN)])
    assert [(one.first_offset, one.decision and one.decision.standing) for one in found] == [(10, Standing.PERMITTED)]


def test_a_range_sent_later_is_of_the_same_log_if_nothing_above_it_was_acknowledged() -> None:
    for hole, standing in ((False, Standing.PERMITTED), (True, Standing.UNDECIDED)):
        below = part(10, 13, UNSURE, 6, 7)
        assert below.case is not None
        below = replace(below, case=replace(below.case, hole=hole))
        found = standings(part(0, 9, TAKEN), below, part(15, 19, UNSURE, 8, 9))
        assert found[1:] == [(10, standing), (15, Standing.PERMITTED)]


def test_the_lowest_of_all_may_be_of_another_log_too() -> None:
    assert standings(part(10, 14, UNSURE, 20, 21), part(15, 19, TAKEN, 6, 7))[0] == (10, Standing.UNDECIDED)


def test_of_what_nobody_knows_the_place_nobody_knows_what_took_it() -> None:
    nowhere = replace(part(0, 0, UNSURE), first_offset=None, last_offset=None)
    assert standings(part(0, 9, TAKEN), nowhere, nowhere)[:2] == [(None, Standing.UNDECIDED)] * 2


def without(one: RecordRange, **known: None) -> RecordRange:
    assert one.case is not None
    return replace(one, case=replace(one.case, **known))


def test_a_range_without_a_known_time_is_neither_later_nor_earlier() -> None:
    above = part(15, 19, TAKEN, 6, 7)
    for unknown in (without(part(10, 14, UNSURE, 20, 21), sent_ns=None), part(10, 14, UNSURE, 7, 21)):
        assert (10, Standing.PERMITTED) in standings(part(0, 9, TAKEN), unknown, above)
    apart = without(part(10, 13, UNSURE, 20, 21), until_ns=None)
    found = standings(part(0, 9, TAKEN), apart, part(14, 14, TAKEN, 6, 7), part(15, 19, UNSURE, 22, 23))
    assert (found[1], found[3]) == ((10, Standing.UNDECIDED), (15, Standing.PERMITTED))
    hanging = without(above, until_ns=None)
    assert (10, Standing.PERMITTED) in standings(part(0, 9, TAKEN), part(10, 14, UNSURE, 20, 21), hanging)


OF_B1 = PossibleTerm(0, 0, Standing.PERMITTED, frozenset({1}))


def final_log(*epochs: tuple[int, int, int]) -> Log:
    """A final log, by each epoch and the first and the last offset of it."""
    columns = np.array(epochs, np.int64).reshape(-1, 3).T
    return Log(*columns, int(columns[2].max(initial=-1)) + 1)


@pytest.mark.parametrize(
    ("other", "must", "need_not"),
    [
        (PossibleTerm(1, 1, Standing.VIOLATION, must=frozenset({3}), need_not=frozenset({2, 4})), {1}, {2, 3, 4}),
        (PossibleTerm(1, 1, Standing.PERMITTED, must=frozenset({3}), need_not=frozenset({2, 4})), set(), {2, 4}),
        (PossibleTerm(1, 1, Standing.PERMITTED, must=frozenset({1, 3}), need_not=frozenset({2, 4})), {1}, {2, 4}),
        (PossibleTerm(None, None, Standing.PERMITTED), set(), set()),
    ],
    ids=["the event took nothing of it", "another leader", "its heir", "an unreported one"],
)
def test_a_holder_must_be_one_for_each_possible_leader_that_the_event_took_from(
    other: PossibleTerm, must: set[int], need_not: set[int]
) -> None:
    """Its neighbour is a range that only b1 must have had. (The final log has the records of b2.)"""
    taken = replace(TAKEN, must=frozenset({1}), need_not=frozenset({2, 3, 4}))
    of_b1 = replace(OF_B1, must=frozenset({1}), need_not=frozenset({2, 3, 4}))
    unsure = replace(UNSURE, unknown=frozenset({1, 2, 3, 4}), possible_terms=(of_b1, other))
    parts = [part(0, 9, taken), part(10, 19, unsure)]
    found = attached(parts, 64, {TRIAL: final_log((0, 0, 4), (1, 5, 30))})[1].decision
    assert found is not None
    assert (found.standing, found.event) == (Standing.PERMITTED, taken.event)
    assert (found.must, found.need_not, found.unknown) == (must, need_not, {1, 2, 3, 4} - must - need_not)


@pytest.mark.parametrize(
    ("log", "standing"),
    [
        (final_log((0, 0, 4), (1, 5, 9)), Standing.UNDECIDED),
        (final_log((0, 0, 4), (1, 5, 18)), Standing.UNDECIDED),
        (final_log((0, 0, 4), (1, 5, 18), (2, 19, 40)), Standing.UNDECIDED),
        (final_log((0, 0, 4), (2, 5, 40)), Standing.UNDECIDED),
        (final_log((0, 0, 4), (1, 5, 19)), Standing.PERMITTED),
        (final_log((0, 0, 4), (1, 5, 30), (2, 31, 40)), Standing.PERMITTED),
        (None, Standing.UNDECIDED),
    ],
    ids=[
        *("it ends below", "it has some of them", "a later epoch goes on", "it has none of its epoch"),
        *("it has its epoch there", "and a later one above", "nobody read it"),
    ],
)
def test_a_range_is_undecided_if_another_leader_may_have_lost_it_with_its_log_end(
    log: Log | None, standing: Standing
) -> None:
    """The range is b1's, and b2's election took it with its neighbour; or it is b2's, whose log survived."""
    of_b2 = [PossibleTerm(1, 1, Standing.VIOLATION), PossibleTerm(1, 1, Standing.UNDECIDED, frozenset({2}))]
    logs = {} if log is None else {TRIAL: log}
    for other in of_b2:
        unsure = replace(UNSURE, possible_terms=(OF_B1, other))
        assert standings(part(0, 9, TAKEN), part(10, 19, unsure), logs=logs)[1] == (10, standing)
        assert standings(part(10, 19, unsure), part(20, 29, TAKEN), logs=logs) == [(10, standing), (20, PERMITTED)]


@pytest.mark.parametrize(
    ("possible_terms", "standing"),
    [
        ([], Standing.PERMITTED),
        ([OF_B1], Standing.PERMITTED),
        ([OF_B1, PossibleTerm(1, 1, Standing.PERMITTED, frozenset({2}))], Standing.PERMITTED),
        ([OF_B1, PossibleTerm(1, 1, Standing.UNDECIDED, frozenset({1}))], Standing.PERMITTED),
        ([OF_B1, PossibleTerm(1, 1, Standing.UNDECIDED)], Standing.UNDECIDED),
        ([OF_B1, PossibleTerm(1, 1, Standing.VIOLATION, frozenset({1}))], Standing.UNDECIDED),
        ([OF_B1, PossibleTerm(None, None, Standing.UNDECIDED)], Standing.UNDECIDED),
        ([OF_B1, PossibleTerm(2, None, Standing.UNDECIDED)], Standing.UNDECIDED),
    ],
    ids=[
        *("not known", "one alone", "permitted of either", "the same may have taken it of either"),
        *("nobody knows what took it", "a violation", "a leader whom nobody reported", "without an epoch"),
    ],
)
def test_it_may_be_of_another_leader_only_where_that_would_not_be_permitted(
    possible_terms: list[PossibleTerm], standing: Standing
) -> None:
    unsure = replace(UNSURE, possible_terms=tuple(possible_terms))
    logs = {TRIAL: final_log((0, 0, 4), (2, 5, 40)), ("trial", 1): final_log((0, 0, 4), (1, 5, 40))}
    assert standings(part(0, 9, TAKEN), part(10, 19, unsure), logs=logs)[1] == (10, standing)


#: b1's, or of b2, whose election took what stands at 5..69, and of which the log has what it wrote at 5..9.
EITHER = replace(UNSURE, possible_terms=(OF_B1, PossibleTerm(1, 1, Standing.VIOLATION)))
ENDED_AT_9 = final_log((0, 0, 4), (1, 5, 9))
#: Offsets between what it wrote and what may be its own.
FAR = 60


def standing_above(
    spare: int | None,
    *besides: RecordRange,
    log: Log = ENDED_AT_9,
    unsure: Decision = EITHER,
    taken: Sequence[RecordRange] = (part(5, 69, TAKEN),),
) -> Standing:
    """How what stands at 70 does, above what an election took, where so many writes are not known."""
    parts = [*taken, part(70, 79, unsure), *besides]
    found = attached(parts, 64, {TRIAL: log}, spare={} if spare is None else {(TRIAL, 1): spare})
    [own] = [one.decision for one in found if one.first_offset == 70]
    assert own is not None
    return own.standing


@pytest.mark.parametrize(
    ("written", "spare", "standing"),
    [
        (0, 0, Standing.PERMITTED),
        (64, 0, Standing.PERMITTED),
        (64, 1, Standing.UNDECIDED),
        (65, 0, Standing.UNDECIDED),
        (MOST_SENT, 0, Standing.UNDECIDED),
        (None, 0, Standing.UNDECIDED),
        (0, None, Standing.UNDECIDED),
    ],
    ids=[
        *("nothing", "one too few", "one may be elsewhere", "just as many", "more than are kept", "nobody knows"),
        "nobody knows how many are elsewhere",
    ],
)
def test_a_leader_is_not_searched_beyond_what_it_had_written_at_the_acknowledgement(
    written: int | None, spare: int | None, standing: Standing
) -> None:
    """b2's log has 65 records, from 5 to 69. The record at 70 was acknowledged at 6 s: was it b2's next?"""
    times = None if written is None else np.array([6 * SECOND] * written + [6 * SECOND + 1] * (65 - written), np.int64)
    found = attached(
        [part(5, 69, TAKEN), part(70, 79, EITHER)],
        64,
        {TRIAL: final_log((0, 0, 4), (1, 5, 69))},
        spare={} if spare is None else {(TRIAL, 1): spare},
        written={} if times is None else {(TRIAL, 1): LeaderWrites(times)},
    )
    assert found[1].decision is not None
    assert found[1].decision.standing is standing


def test_a_range_taken_above_does_not_show_how_far_the_leader_wrote() -> None:
    parts, nothing = [part(62, 69, EITHER), part(70, 79, TAKEN)], LeaderWrites(np.empty(0, np.int64))
    found = attached(parts, 64, {TRIAL: ENDED_AT_9}, spare={(TRIAL, 1): 0}, written={(TRIAL, 1): nothing})
    assert [one.decision.standing for one in found if one.decision] == [Standing.UNDECIDED, Standing.PERMITTED]


BROKEN = Decision(Ruling(Standing.VIOLATION, "broken", "source"), term=1)
BROKE = replace(BROKEN, term=0, event=LossEvent(8 * SECOND, 1, 2, 1))


@pytest.mark.parametrize(
    ("lost", "standing"),
    [
        (None, Standing.PERMITTED),
        (part(60, 61, BROKEN), Standing.UNDECIDED),
        (part(79, 79, BROKEN), Standing.UNDECIDED),
        (part(80, 81, BROKEN), Standing.PERMITTED),
        (part(60, 61, replace(BROKEN, term=2)), Standing.PERMITTED),
        (part(60, 61, BROKEN, hole=True), Standing.PERMITTED),
        (part(60, 61, BROKE), Standing.UNDECIDED),
        (part(80, 81, BROKE), Standing.PERMITTED),
        (part(60, 61, replace(BROKE, event=LossEvent(8 * SECOND, 2, 3, 2))), Standing.PERMITTED),
    ],
    ids=[
        *("nothing else", "of its own below", "of its own there", "of its own above", "of another leader", "in a hole"),
        *("with the same election below", "with it above", "with another election"),
    ],
)
def test_a_log_that_goes_on_above_may_have_lost_them_if_it_lost_others_below(
    lost: RecordRange | None, standing: Standing
) -> None:
    """b2 wrote from 5 to 99. Did it lose the record at 70, or did its election take it?"""
    parts = [part(62, 69, TAKEN), part(70, 79, EITHER), *([] if lost is None else [lost])]
    found = standings(*parts, logs={TRIAL: final_log((0, 0, 4), (1, 5, 99))})
    assert dict(found)[70] is standing


def test_the_leader_whom_it_made_came_no_further_than_writes_are_not_known() -> None:
    assert standing_above(FAR - 1) is Standing.PERMITTED
    assert standing_above(FAR) is Standing.UNDECIDED
    assert standing_above(None) is Standing.UNDECIDED


def test_a_range_above_the_reach_of_a_leader_continues_a_taken_range() -> None:
    parts = [part(5, 69, TAKEN), part(70, 79, EITHER), part(80, 89, EITHER, 6, 7)]
    found = attached(parts, 64, {TRIAL: ENDED_AT_9}, spare={(TRIAL, 1): FAR - 1})
    assert [one.decision.standing for one in found if one.decision] == [Standing.PERMITTED] * 3


@pytest.mark.parametrize(
    "log",
    [
        final_log((0, 0, 4), (1, 5, 69)),
        final_log((0, 0, 4), (1, 5, 10)),
        final_log((0, 0, 5), (1, 6, 9)),
        final_log((0, 0, 4), (2, 5, 9)),
        final_log((0, 0, 9)),
        replace(ENDED_AT_9, sparse=True),
    ],
    ids=[
        *("it wrote up to there", "it wrote more", "it began above what it took", "another epoch"),
        *("nothing of its own", "what it wrote may be compacted"),
    ],
)
def test_a_leader_that_wrote_as_far_or_began_elsewhere_may_have_written_the_range(log: Log) -> None:
    assert standing_above(FAR - 1, log=log) is Standing.UNDECIDED


@pytest.mark.parametrize(
    "other",
    [PossibleTerm(2, 2, Standing.VIOLATION), PossibleTerm(None, None, Standing.UNDECIDED)],
    ids=["of a later leader", "of a leader whom nobody reported"],
)
def test_another_leader_may_have_had_what_that_one_lacked(other: PossibleTerm) -> None:
    unsure = replace(UNSURE, possible_terms=(OF_B1, other))
    assert standing_above(FAR - 1, unsure=unsure) is Standing.UNDECIDED


@pytest.mark.parametrize("offset", [0, 12, 69])
def test_another_acknowledged_record_below_may_be_of_the_same_log(offset: int) -> None:
    broken = replace(UNSURE, ruling=Ruling(Standing.VIOLATION, "broken", "source"))
    assert standing_above(FAR - 1, part(offset, offset, broken)) is Standing.UNDECIDED
    assert standing_above(FAR - 2, part(offset, offset, broken)) is Standing.PERMITTED
    elsewhere = part(offset, offset, broken, partition=1)
    assert standing_above(FAR - 1, elsewhere) is Standing.PERMITTED


@pytest.mark.parametrize(("spare", "standing"), [(4, Standing.PERMITTED), (5, Standing.UNDECIDED)])
def test_from_what_it_took_far_below_nobody_counts(spare: int, standing: Standing) -> None:
    parts = [part(5, 9, TAKEN), part(200, 209, TAKEN), part(210, 219, EITHER)]
    found = attached(parts, 64, {TRIAL: ENDED_AT_9}, spare={(TRIAL, 1): spare})
    own = found[-1].decision
    assert own is not None
    assert own.standing is standing


@pytest.mark.parametrize(
    "other",
    [
        part(10, 19, replace(UNSURE, may_have=frozenset({2}))),
        part(10, 19, replace(UNSURE, may_have=frozenset())),
        part(200, 209, UNSURE),
        part(10, 19, UNSURE, partition=1),
        part(5, 9, UNSURE),
    ],
    ids=["another election", "no election", "far away", "another partition", "where others stood"],
)
@pytest.mark.parametrize("at", [0, 64, 1000])
def test_a_range_of_another_election_or_place_is_not_attached(other: RecordRange, at: int) -> None:
    first, last = (other.first_offset or 0) + at, (other.last_offset or 0) + at
    other = replace(other, first_offset=first, last_offset=last)
    assert (first, Standing.UNDECIDED) in standings(part(at, at + 9, TAKEN), other)


def test_a_range_far_below_is_not_attached() -> None:
    assert standings(part(0, 9, UNSURE), part(200, 209, TAKEN))[0] == (0, Standing.UNDECIDED)


def test_a_range_sent_after_a_higher_offset_was_acknowledged_is_of_another_log() -> None:
    found = standings(part(0, 9, TAKEN), part(10, 14, UNSURE, 20, 21), part(15, 19, UNSURE, 6, 7))
    assert (10, Standing.UNDECIDED) in found
    elsewhere = standings(part(0, 9, TAKEN), part(10, 14, UNSURE, 20, 21), part(15, 19, UNSURE, 6, 7, partition=1))
    assert (10, Standing.PERMITTED) in elsewhere
    above_its_first = standings(part(0, 9, TAKEN), part(10, 14, UNSURE, 20, 21), part(14, 14, TAKEN, 6, 7))
    assert (10, Standing.UNDECIDED) in above_its_first
    some = part(10, 14, UNSURE, 20, 21, count=3)
    at_its_first = standings(part(0, 9, TAKEN), some, part(10, 10, TAKEN, 6, 7))
    assert (10, Standing.UNDECIDED) not in at_its_first


@pytest.mark.parametrize(
    ("parts", "standing"),
    [
        ([part(15, 19, UNSURE, 22, 23)], Standing.UNDECIDED),
        ([part(15, 19, UNSURE, 20.5, 23)], Standing.PERMITTED),
        ([part(15, 19, UNSURE, 21, 23)], Standing.PERMITTED),
        ([part(15, 16, TAKEN, 21.2, 21.5), part(17, 19, UNSURE, 22, 23)], Standing.PERMITTED),
        ([part(100, 109, UNSURE, 22, 23), part(120, 129, TAKEN, 24, 25)], Standing.PERMITTED),
        ([part(12, 14, TAKEN, partition=1), part(15, 19, UNSURE, 22, 23, partition=1)], Standing.PERMITTED),
    ],
    ids=["it", "sent before", "sent in that moment", "something permitted since", "far away", "another partition"],
)
def test_a_range_that_continues_another_log_belongs_to_it(parts: list[RecordRange], standing: Standing) -> None:
    """The records from 10 to 13 were sent when 14, of the log that was taken, had been acknowledged."""
    found = standings(part(0, 9, TAKEN), part(10, 13, UNSURE, 20, 21), part(14, 14, TAKEN, 6, 7), *parts)
    assert (10, Standing.UNDECIDED) in found
    last = next(one for one in found if one[0] == next(p.first_offset for p in parts if p.decision is UNSURE))
    assert last[1] is standing


_BROKEN = Decision(Ruling(Standing.VIOLATION, "broken", "source"))


@pytest.mark.parametrize(
    "parts",
    [
        [part(0, 9, TAKEN, 5, 24), part(10, 13, UNSURE, 20, 21), part(14, 14, TAKEN, 6, 7)],
        [part(0, 9, TAKEN), part(10, 13, _BROKEN, 20, 21), part(14, 14, TAKEN, 6, 7)],
        [part(0, 9, TAKEN), part(10, 12, UNSURE, 20, 21), part(13, 13, UNSURE, 30, 31), part(14, 14, TAKEN, 6, 7)],
    ],
    ids=["some of it below was acknowledged late", "a violation", "another of it in between"],
)
def test_whatever_stands_around_it_what_continues_another_log_is_of_it(parts: list[RecordRange]) -> None:
    assert (15, Standing.UNDECIDED) in standings(*parts, part(15, 19, UNSURE, 22, 23))


def test_a_range_of_another_election_far_below_does_not_separate_logs() -> None:
    before = replace(TAKEN, event=LossEvent(200 * SECOND, 3, 1, 3), may_have=frozenset({3}))
    found = standings(
        *(part(0, 4, before, 99, 100), part(5000, 5009, TAKEN), part(5010, 5013, UNSURE, 20, 21)),
        *(part(5014, 5014, TAKEN, 6, 7), part(5015, 5019, UNSURE, 22, 23)),
    )
    assert found[-1] == (5015, Standing.UNDECIDED)


def test_a_violation_beside_what_was_permitted_stays_one() -> None:
    broken = Decision(Ruling(Standing.VIOLATION, "broken", "source"))
    for one in (broken, replace(broken, may_have=frozenset({1}))):
        assert standings(part(0, 9, TAKEN), part(10, 19, one))[1] == (10, Standing.VIOLATION)


@pytest.mark.parametrize("at", [4, 5, 7, 9, 10])
def test_nothing_is_taken_beside_it_at_or_above_what_the_same_election_took_in_violation(at: int) -> None:
    found = attached([part(5, 9, UNSURE), part(10, 19, TAKEN)], 64, {}, wrong=[part(at, at, BROKE)])
    assert found[0].standing is (Standing.UNDECIDED if at < 10 else Standing.PERMITTED)


def test_a_range_of_either_of_two_elections_decides_no_neighbour() -> None:
    either = replace(TAKEN, only_event=False)
    assert standings(part(0, 9, UNSURE), part(10, 19, either))[0] == (0, Standing.UNDECIDED)


@pytest.mark.parametrize(("may_not", "below"), [(set(), PERMITTED), ({2}, Standing.UNDECIDED)])
def test_a_range_that_a_forbidden_election_may_have_taken_does_not_go_with_the_one_above(
    may_not: set[int], below: Standing
) -> None:
    """The cut of the range above may be above this range. The cut of the range below is not."""
    unsure = replace(UNSURE, may_not_have=frozenset(may_not))
    assert standings(part(0, 9, unsure), part(10, 19, TAKEN))[0] == (0, below)
    assert standings(part(0, 9, TAKEN), part(10, 19, unsure))[1] == (10, PERMITTED)


def test_in_a_sparse_log_a_record_above_does_not_show_that_one_stands_there() -> None:
    unsure = replace(UNSURE, possible_terms=(OF_B1, PossibleTerm(1, 1, Standing.VIOLATION)))
    log = final_log((0, 0, 4), (1, 5, 30))
    for known, standing in ((log, PERMITTED), (replace(log, sparse=True, unseen=9), Standing.UNDECIDED)):
        assert standings(part(0, 9, TAKEN), part(10, 19, unsure), logs={TRIAL: known})[1] == (10, standing)


@pytest.mark.parametrize(
    ("log", "standing"),
    [
        (final_log((0, 0, 4), (1, 10, 30)), PERMITTED),
        (replace(final_log((0, 0, 4), (1, 10, 30)), sparse=True, unseen=5), PERMITTED),
        (replace(final_log((0, 0, 4), (1, 10, 30)), sparse=True, unseen=4), Standing.UNDECIDED),
        (replace(final_log((0, 0, 4)), end=10, sparse=True, unseen=5), PERMITTED),
        (replace(final_log((0, 0, 4)), end=10, sparse=True, unseen=4), Standing.UNDECIDED),
        (replace(final_log((0, 0, 4)), sparse=True), PERMITTED),
    ],
    ids=["no marker", "as many markers", "too few", "at the end", "too few there", "the log had ended"],
)
def test_in_a_sparse_log_an_election_took_what_markers_may_stand_for(log: Log, standing: Standing) -> None:
    parts = [part(5, 9, replace(UNSURE, possible_terms=(OF_B1,))), part(10, 19, TAKEN)]
    assert standings(*parts, logs={TRIAL: log})[0] == (5, standing)
