"""What a run draws, and the random mode's schedule: the same seed, the same draws."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from harness.core.errors import ScenarioError
from nemesis.catalogue import kind_of
from nemesis.fault import Fault


@dataclass(frozen=True)
class Planned:
    """Inject ``fault`` ``at`` seconds after the schedule began; heal it ``hold`` seconds later."""

    at: float
    fault: Fault
    hold: float


def generator(seed: int, *purpose: int | str) -> Random:
    """The generator of one purpose (a step by its number, and what of it): no other purpose's draws change its own."""
    return Random("/".join(map(str, (seed, *purpose))))


def random_plan(random: Random, faults: Sequence[Fault], every: float, for_: float) -> list[Planned]:
    """One of ``faults`` in each whole ``every`` seconds of ``for_`` seconds, healed before the next begins.

    A fault starts in the first quarter of its time and lasts one to three quarters of it. Raises ScenarioError
    for a schedule without faults, and for a fault that presumes another.
    """
    if every <= 0 or for_ < every:
        raise ScenarioError(f"random: nothing fits: `for` ({for_:g} s) must be at least `every` ({every:g} s), above 0")
    if not faults:
        raise ScenarioError("random: name at least one fault")
    for fault in faults:
        if not fault.drawable:
            raise ScenarioError(f"random: `{kind_of(fault)}` presumes another fault before it; write it as a step")
    return [
        Planned(
            at=slot * every + random.uniform(0, every / 4),
            fault=random.choice(faults),
            hold=random.uniform(every / 4, every * 3 / 4),
        )
        for slot in range(int(for_ // every))
    ]
