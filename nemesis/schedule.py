"""What a run draws, and the random mode's schedule: the same seed, the same draws."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from nemesis.fault import Fault


@dataclass(frozen=True)
class Planned:
    """Inject ``fault`` ``at`` seconds after the schedule began; heal it ``hold`` seconds later."""

    at: float
    fault: Fault
    hold: float


def generator(seed: int, *purpose: int | str) -> Random:
    """The generator of one purpose (a step by its number, and what in it): draws for others do not change its own."""
    return Random("/".join(map(str, (seed, *purpose))))


def random_plan(random: Random, faults: Sequence[Fault], every: float, for_: float) -> list[Planned]:
    """One of ``faults`` in each whole ``every`` seconds of ``for_`` seconds, healed before the next begins.

    A fault starts in the first quarter of its time and lasts one to three quarters of it. (A scenario's ``random`` step
    has faults that are ``drawable``, and time for one of them at least: scenario/steps.py.)
    """
    return [
        Planned(
            at=period * every + random.uniform(0, every / 4),
            fault=random.choice(faults),
            hold=random.uniform(every / 4, every * 3 / 4),
        )
        for period in range(_whole(for_, every))
    ]


def _whole(for_: float, every: float) -> int:
    """How often ``every`` fits into ``for_``: 100 ms into 1 s ten times, though 0.1 is a little more than a tenth."""
    return int(for_ / every + 1e-9)
