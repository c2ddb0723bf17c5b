"""What netem does to the packets that a node sends: late, overtaken, lost, doubled or damaged."""

from dataclasses import dataclass
from typing import Any

from harness.core.topology import Plane
from nemesis.mechanisms.mechanism import Late, Overtaken
from nemesis.mechanisms.tc import ROOM, Shape, Traffic

#: Of so many that are to be expected one came at least, but for one time in a million: exp(-14).
_CERTAIN = 14


@dataclass(frozen=True)
class Delay(Late, Shape):
    """What a node sends is late (netem).

    It has no correlation. netem takes one, and then draws from its table by ``number % size`` (sch_netem.c, tabledist):
    of a number that is like the one before it keeps the low bits, which are not.
    """

    @property
    def queue(self) -> str:
        """A netem queue."""
        text = f"netem limit {ROOM} delay {_ms(self.seconds)}"
        if self.jitter:
            text += f" {_ms(self.jitter)}"
        # Uniform is what netem does without a table; tc has none of that name.
        if self.distribution not in {None, "uniform"}:
            text += f" distribution {self.distribution}"
        return text

    def hit(self, passed: Traffic) -> int:
        """What was late, or still waits: netem counts what leaves."""
        return passed.packets + passed.waiting

    def wrong(self, passed: Traffic) -> str | None:
        """What is late is not to be lost as well."""
        return _full(passed)


@dataclass(frozen=True)
class Reorder(Overtaken, Shape):
    """Of what a node sends, some packets overtake the others (netem)."""

    @property
    def queue(self) -> str:
        """A netem queue."""
        return f"netem limit {ROOM} delay {_ms(self.seconds)} reorder {_percent(self.share)}"

    def hit(self, passed: Traffic) -> int:
        """What overtook others."""
        return passed.requeues

    def wrong(self, passed: Traffic) -> str | None:
        """What is overtaken is not to be lost as well."""
        return _full(passed)


@dataclass(frozen=True)
class Lose(Shape):
    """Of what a node sends a random ``share`` of the packets is lost (netem).

    With a ``correlation`` of neighbours by the model of Gilbert, which keeps the share: netem's own correlation of
    losses does not (tc-netem(8), loss random).
    """

    share: float
    correlation: float | None = None
    plane: Plane = Plane.ALL

    @property
    def queue(self) -> str:
        """A netem queue."""
        if self.correlation is None:
            return f"netem limit {ROOM} loss {_percent(self.share)}"
        begins, ends = self.share * (1 - self.correlation), (1 - self.share) * (1 - self.correlation)
        return f"netem limit {ROOM} loss gemodel {_percent(begins)} {_percent(ends)}"

    def hit(self, passed: Traffic) -> int:
        """What was lost."""
        return passed.drops

    def facts(self, passed: Traffic) -> dict[str, Any]:
        """As other mechanisms that lose packets report it."""
        return {"packets_dropped": passed.drops}


class _Unseen(Shape):
    """What netem does to a ``share`` of the packets that a node sends, and does not count."""

    share: float

    def hit(self, passed: Traffic) -> int:
        """As many as are to be expected, where it is certain that it was one at least."""
        expected = passed.packets * self.share
        return round(expected) if expected > _CERTAIN else 0

    def facts(self, passed: Traffic) -> dict[str, Any]:
        """That it is an expectation."""
        return {"packets": passed.packets, "to_be_expected": round(passed.packets * self.share, 1)}


@dataclass(frozen=True)
class Duplicate(_Unseen):
    """Of what a node sends a random ``share`` of the packets is sent twice (netem)."""

    share: float
    plane: Plane = Plane.ALL

    @property
    def queue(self) -> str:
        """A netem queue."""
        return f"netem limit {ROOM} duplicate {_percent(self.share)}"


@dataclass(frozen=True)
class Corrupt(_Unseen):
    """In a random ``share`` of the packets that a node sends one bit is wrong (netem)."""

    share: float
    plane: Plane = Plane.ALL

    @property
    def queue(self) -> str:
        """A netem queue."""
        return f"netem limit {ROOM} corrupt {_percent(self.share)}"


def _full(passed: Traffic) -> str | None:
    return f"{passed.drops} packets were lost, for there was no room" if passed.drops else None


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:g}ms"


def _percent(share: float) -> str:
    return f"{share * 100:g}%"
