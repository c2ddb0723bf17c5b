"""netem acts on the packets that a node sends: they are late, overtaken, lost, doubled or corrupt."""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from harness.core.topology import Node, Plane
from nemesis.mechanisms.mechanism import Counted, Late, Overtaken
from nemesis.mechanisms.tc import LISTED, ROOM, Shape, Traffic, looks

#: If so many events are expected, at least one happened, except one time in a million: exp(-14).
_CERTAIN = 14

#: The most bytes that TCP hands down in one piece; and the fewest bytes of each of its segments but the last: TCP's
#: default for a peer that does not name a size (RFC 9293, 3.7.1).
_PIECE, _SEGMENT = 65_536, 536

#: How often ``Reorder`` looks at its queue: the most processes of tc, how often each one looks (within a millisecond),
#: and the seconds after which no new process starts. A process takes 2 ms, or 50 ms on a small machine.
_PROCESSES, _LOOKS, _LOOKING_S = 150, 10, 2


@dataclass(frozen=True)
class Delay(Late, Shape):
    """Packets that a node sends are late (netem).

    It has no correlation. netem accepts one, but then draws from its table by ``number % size`` (sch_netem.c,
    tabledist): that keeps the low bits of a correlated number, and the low bits do not correlate.
    """

    @property
    def queue(self) -> str:
        """A netem queue."""
        text = f"netem limit {ROOM} delay {_ms(self.seconds)}"
        if self.jitter:
            text += f" {_ms(self.jitter)}"
        # Without a table netem's delays are uniform; tc has no table of that name.
        if self.distribution not in {None, "uniform"}:
            text += f" distribution {self.distribution}"
        return text

    def hit(self, passed: Traffic) -> int:
        """Packets that were late, and those that still wait: netem counts a packet when it leaves."""
        return passed.packets + passed.waiting

    def wrong(self, passed: Traffic) -> str | None:
        """Packets were lost that should only be late."""
        return _full(passed)


@dataclass(frozen=True)
class Reorder(Overtaken, Shape):
    """Some of the packets that a node sends overtake the others (netem).

    netem counts each packet that it lets go at once, even if no packet waits that it could overtake. So ``count`` looks
    at the queue often: a packet that waits at two looks was overtaken by those let go between them.
    """

    @property
    def queue(self) -> str:
        """A netem queue."""
        return f"netem limit {ROOM} delay {_ms(self.seconds)} reorder {_percent(self.share)}"

    def count(self, tag: str) -> str:  # noqa: ARG002 - tc lists all queues
        """Shell: print all queues with their counters, as JSON, many times."""
        return (
            "read -r since rest </proc/uptime\nnow=$since\ntries=0\n"
            f"while [ $tries -lt {_PROCESSES} ] && [ $((${{now%.*}} - ${{since%.*}})) -lt {_LOOKING_S} ]; do\n"
            f"tc -j -s -batch - <<'TC'\n{LISTED * _LOOKS}TC\n"
            "tries=$((tries + 1))\nread -r now rest </proc/uptime\ndone\n"
        )

    def read(self, node: Node, tag: str, listing: str) -> Counted | None:  # noqa: ARG002 - the same on every node
        """The packets that were seen to overtake others, and all traffic of the queue."""
        seen = looks(listing, tag)
        if not seen or (last := seen[-1]) is None:
            return None
        overtook = sum(overtaking(before, after) for before, after in pairwise(seen))
        means = {"by": self.name, "of": self.of, "seen_overtaking": overtook}
        unseen = (
            "packets were let go at once, and none was seen to overtake" if last.requeues and not overtook else None
        )
        return Counted(overtook, {**means, **self.facts(last)}, wrong=self.wrong(last) or unseen)

    def hit(self, passed: Traffic) -> int:  # noqa: ARG002 - one look says nothing
        """0: see ``read``."""
        return 0

    def wrong(self, passed: Traffic) -> str | None:
        """Packets were lost that should only be overtaken."""
        return _full(passed)


@dataclass(frozen=True)
class Lose(Shape):
    """A random ``share`` of the packets that a node sends is lost (netem).

    A ``correlation`` of neighbours uses the model of Gilbert, which keeps the share. netem's own correlation of losses
    does not keep it (tc-netem(8), loss random).
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
        """The lost packets."""
        return passed.drops

    def facts(self, passed: Traffic) -> dict[str, Any]:
        """The counter under the name that other mechanisms use for lost packets."""
        return {"packets_dropped": passed.drops}


class _Uncounted(Shape):
    """netem acts on a ``share`` of the packets that a node sends, but does not count them."""

    share: float

    def hit(self, passed: Traffic) -> int:
        """The expected number of packets, if it is certain that there was at least one; else 0."""
        expected = sent_one_by_one(passed) * self.share
        return round(expected) if expected > _CERTAIN else 0

    def wrong(self, passed: Traffic) -> str | None:
        """Too few packets were sent for that, but some may have been hit."""
        few = passed.packets and not self.hit(passed)
        return f"of {passed.packets} packets perhaps none was hit" if few else None

    def facts(self, passed: Traffic) -> dict[str, Any]:
        """The packets sent, and how many of them are expected to be hit."""
        one_by_one = sent_one_by_one(passed)
        expected = round(one_by_one * self.share, 1)
        return {"packets": passed.packets, "one_by_one": one_by_one, "to_be_expected": expected}


@dataclass(frozen=True)
class Duplicate(_Uncounted):
    """A random ``share`` of the packets that a node sends is sent twice (netem)."""

    share: float
    plane: Plane = Plane.ALL

    @property
    def queue(self) -> str:
        """A netem queue."""
        return f"netem limit {ROOM} duplicate {_percent(self.share)}"


@dataclass(frozen=True)
class Corrupt(_Uncounted):
    """In a random ``share`` of the packets that a node sends one bit is wrong (netem)."""

    share: float
    plane: Plane = Plane.ALL

    @property
    def queue(self) -> str:
        """A netem queue."""
        return f"netem limit {ROOM} corrupt {_percent(self.share)}"


def sent_one_by_one(passed: Traffic) -> int:
    """The least number of draws by netem. It draws once for each piece that TCP hands down (up to 64 KiB), but counts
    each segment that the device makes of a piece (include/net/sch_generic.h, bstats_update)."""
    further_segments = passed.bytes / _SEGMENT
    return max(0, math.floor(passed.packets - further_segments), math.floor(passed.bytes / _PIECE))


def overtaking(before: Traffic | None, after: Traffic | None) -> int:
    """How many packets have certainly overtaken one that waited at both looks; 0 if the queue is gone.

    Late packets leave in the order of their arrival (one delay, no jitter). If fewer late packets left than waited
    before, the last of those that waited was there all the time. (One is added to be safe: a look takes a moment.)
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
