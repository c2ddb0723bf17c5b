"""Times looked up by a time: as a walk through all of them would find them."""

from random import Random

import pytest

from checkers.evidence.intervals import Intervals


@pytest.mark.parametrize("seed", range(30))
def test_it_finds_what_a_walk_through_all_finds(seed: int) -> None:
    random = Random(seed)
    times = [
        (begun, begun + random.randrange(12)) for begun in (random.randrange(60) for _ in range(random.randrange(9)))
    ]
    found = Intervals(times)
    assert [*found] == sorted(times)
    for _ in range(200):
        since = random.randrange(-5, 70)
        until = since + random.randrange(15)
        reached = max([over for begun, over in times if begun <= since], default=-99)
        for begun, over in sorted(times):
            reached = max(reached, over) if begun < reached else reached
        assert found.cover(since, until) == (until <= reached)
        held = [max(begun, since) for begun, over in times if over >= since]
        assert found.next(since, 99) == min(held, default=99)
        meeting = [(begun, over) for begun, over in sorted(times) if begun <= until and since <= over]
        assert found.meeting(since, until) == meeting
        assert [times[n] for n in found.which(since, until)] == meeting
        assert found.meet(since, until) == bool(meeting)
        at = since
        for begun, over in sorted(times):
            at = over if begun <= at < over else at
        assert found.left(since) == at


def test_times_that_overlap_cover_what_they_have_together_and_those_that_touch_do_not() -> None:
    assert Intervals([(0, 5), (4, 9), (8, 12)]).cover(1, 12)
    assert not Intervals([(0, 5), (4, 9), (8, 12)]).cover(1, 13)
    assert not Intervals([(0, 5), (5, 9)]).cover(1, 9)
    assert not Intervals([(0, 5), (6, 9)]).cover(1, 9)
    assert Intervals([(0, 5), (5, 9)]).cover(5, 9)
