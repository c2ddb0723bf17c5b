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
        assert found.cover(since, until) == any(begun <= since and until <= over for begun, over in times)
        meeting = [(begun, over) for begun, over in sorted(times) if begun <= until and since <= over]
        assert found.meeting(since, until) == meeting
        assert [times[n] for n in found.which(since, until)] == meeting
        assert found.meet(since, until) == bool(meeting)
        at = since
        for begun, over in sorted(times):
            at = over if begun <= at < over else at
        assert found.left(since) == at
