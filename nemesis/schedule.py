"""Random draws of a run, and the schedule of the random mode: the same seed gives the same draws."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from nemesis.fault import Fault


@dataclass(frozen=True)
class Drawn:
    """Inject ``fault`` ``at`` seconds after the schedule began; heal it ``hold`` seconds later."""

    at: float
    fault: Fault
    hold: float


def generator(seed: int, *purpose: int | str) -> Random:
    """The generator for one purpose (a step's number and a part of the step). Draws for another purpose do not change
    it."""
    return Random("/".join(map(str, (seed, *purpose))))


def random_schedule(random: Random, faults: Sequence[Fault], every: float, for_: float) -> list[Drawn]:
    """Draw one of ``faults`` for each whole period of ``every`` seconds within ``for_`` seconds, healed before the next
    one begins.

    A fault starts in the first quarter of its period and lasts one to three quarters of a period. (scenario/steps.py
    checks that the faults of a ``random`` step are ``drawable``, and that there is time for at least one.)
    """
    return [
        Drawn(
            at=period * every + random.uniform(0, every / 4),
            fault=random.choice(faults),
            hold=random.uniform(every / 4, every * 3 / 4),
        )
        for period in range(_whole(for_, every))
    ]


def _whole(for_: float, every: float) -> int:
    """How often ``every`` fits into ``for_``: 0.1 s fits ten times into 1 s, though the float 0.1 is a little too
    large."""
    return int(for_ / every + 1e-9)
