"""What netem does to the packets that a node sends: late, overtaken, lost, doubled or damaged."""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from harness.core.topology import Node, Plane
from nemesis.mechanisms.mechanism import Counted, Late, Overtaken
from nemesis.mechanisms.tc import LISTED, ROOM, Shape, Traffic, looks

#: Of so many that are to be expected one came at least, but for one time in a million: exp(-14).
_CERTAIN = 14

#: Bytes of what TCP hands down in one piece, at most; and of each of its segments but the last, at least: TCP's default
#: for a peer that names none (RFC 9293, 3.7.1).
_PIECE, _SEGMENT = 65_536, 536

#: How often a queue is looked at that reorders: so many processes of tc, each of which looks some times within a
#: millisecond, and seconds in which no more are begun. A process takes 2 ms, and 50 on a small machine.
_PROCESSES, _LOOKS, _LOOKING_S = 150, 10, 2


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
    """Of what a node sends, some packets overtake the others (netem).

    netem counts what it lets go at once, also where nothing waits that it could overtake. So its queue is looked at
    often: what still waits at a second look was overtaken by what was let go between the two.
    """

    @property
    def queue(self) -> str:
        """A netem queue."""
        return f"netem limit {ROOM} delay {_ms(self.seconds)} reorder {_percent(self.share)}"

    def count(self, tag: str) -> str:  # noqa: ARG002 - tc lists all queues
        """Shell: all queues with their counters, as JSON, many times."""
        return (
            "read -r since rest </proc/uptime\nnow=$since\ntries=0\n"
            f"while [ $tries -lt {_PROCESSES} ] && [ $((${{now%.*}} - ${{since%.*}})) -lt {_LOOKING_S} ]; do\n"
            f"tc -j -s -batch - <<'TC'\n{LISTED * _LOOKS}TC\n"
            "tries=$((tries + 1))\nread -r now rest </proc/uptime\ndone\n"
        )

    def read(self, node: Node, tag: str, listing: str) -> Counted | None:  # noqa: ARG002 - the same on every node
        """What was seen to overtake others, and all that went through its queue."""
        seen = looks(listing, tag)
        if not seen or (last := seen[-1]) is None:
            return None
        overtook = sum(overtaking(before, after) for before, after in pairwise(seen))
        means = {"by": self.name, "of": self.of, "seen_overtaking": overtook}
        return Counted(overtook, {**means, **self.facts(last)}, wrong=self.wrong(last))

    def hit(self, passed: Traffic) -> int:  # noqa: ARG002 - one look says nothing
        """Nothing: see ``read``."""
        return 0

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
        expected = sent_one_by_one(passed) * self.share
        return round(expected) if expected > _CERTAIN else 0

    def facts(self, passed: Traffic) -> dict[str, Any]:
        """That it is an expectation."""
        one_by_one = sent_one_by_one(passed)
        expected = round(one_by_one * self.share, 1)
        return {"packets": passed.packets, "one_by_one": one_by_one, "to_be_expected": expected}


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


def sent_one_by_one(passed: Traffic) -> int:
    """How many times netem drew at least: for what TCP hands down in one piece (up to 64 KiB) it draws once, and counts
    each segment that the device makes of it (include/net/sch_generic.h, bstats_update)."""
    further_segments = passed.bytes / _SEGMENT
    return max(0, math.floor(passed.packets - further_segments), math.floor(passed.bytes / _PIECE))


def overtaking(before: Traffic | None, after: Traffic | None) -> int:
    """How many packets are known to have overtaken one that waited at both looks; of a queue that is gone, none.

    The others leave in the order that they came in (one delay, without a jitter): if fewer of them left than waited
    before, the last of these was there all the time. (And one for certainty: a look takes a moment.)
    """
    if before is None or after is None:
        return 0
    at_once = after.requeues - before.requeues
    left_late = after.packets - before.packets - at_once
    return at_once if left_late + 1 < before.waiting else 0


def _full(passed: Traffic) -> str | None:
    return f"{passed.drops} packets were lost, for there was no room" if passed.drops else None


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:g}ms"


def _percent(share: float) -> str:
    return f"{share * 100:g}%"
