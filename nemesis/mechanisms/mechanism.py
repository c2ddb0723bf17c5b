"""What acts on the packets of one node, in its network namespace: shell text, and what its counters say.

Nothing here, and in no mechanism, runs anything. A fault asks for what it wants done, and not how.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from harness.core.topology import Node, Plane
from nemesis.links import Link

#: What of a node's traffic a mechanism acts on, as evidence says it.
ARRIVING, LEAVING = "what arrives", "what leaves"

#: Seconds that a removal waits for packets that are held, at most.
DRAIN_S = 60.0


@dataclass(frozen=True)
class Counted:
    """What a mechanism's counters say: how many packets it acted on, and of which links, where it knows.

    ``facts`` is JSON. ``wrong``: why it did not do what it should, whatever it counts.
    """

    packets: int
    facts: Mapping[str, Any]
    links: Mapping[Link, int] = field(default_factory=dict)
    wrong: str | None = None


@dataclass(frozen=True)
class Late:
    """Packets of a plane are ``seconds`` late, give or take ``jitter``: what each mechanism that delays is asked for.

    ``distribution``: how it varies; None for evenly.
    """

    seconds: float
    jitter: float = 0.0
    distribution: str | None = None
    plane: Plane = Plane.ALL

    @property
    def drains_within(self) -> float:
        """Seconds in which all that is held has gone: the longest delay, and a moment."""
        return min(self.seconds + 4 * self.jitter + 1, DRAIN_S)


@dataclass(frozen=True)
class Overtaken:
    """A ``share`` of a plane's packets overtakes the others, which are ``seconds`` late."""

    share: float
    seconds: float
    plane: Plane = Plane.ALL

    @property
    def drains_within(self) -> float:
        """Seconds in which all that is held has gone: the delay, and a moment."""
        return min(self.seconds + 1, DRAIN_S)


@dataclass(frozen=True)
class Helper:
    """A program that has to run as long as a mechanism acts.

    ``script``, shell: what runs it. ``ready``, shell: gives it its work when it runs; fails where it does not.
    """

    script: str
    ready: str


class Mechanism(Protocol):
    """One injection's part in one node's namespace. ``tag``: eight hex digits that name the injection there."""

    @property
    def name(self) -> str:
        """What evidence calls it."""

    @property
    def probe(self) -> str:
        """Shell: fails where the kernel has not what it needs; leaves nothing."""

    @property
    def helped(self) -> bool:
        """Whether it may need a helper."""

    def apply(self, node: Node, tag: str) -> str:
        """Shell: put it there, whole, or print what ``helper`` needs to know; nothing where it is there already."""

    def helper(self, node: Node, tag: str, applied: str) -> Helper | None:
        """What has to be started now, by what ``apply`` printed: nothing for what was there already."""

    def count(self, tag: str) -> str:
        """Shell: print its counters."""

    def read(self, node: Node, tag: str, listing: str) -> Counted | None:
        """What ``count`` printed; None where it is not there. Raises ValueError, LookupError or TypeError."""

    def remove(self, node: Node, tag: str) -> str:
        """Shell: remove it, and nothing else; fails if anything of it is left."""


@dataclass(frozen=True)
class Either:
    """The first of two mechanisms, or the second where the kernel has not what the first one needs."""

    first: Mechanism
    second: Mechanism

    @property
    def name(self) -> str:
        """Both names: the evidence says which one it was."""
        return f"{self.first.name} or {self.second.name}"

    @property
    def probe(self) -> str:
        """Shell: fails where neither can be."""
        return f"{{ {self.first.probe}; }} 2>/dev/null || {{ {self.second.probe}; }}"

    @property
    def helped(self) -> bool:
        """Whether one of them may need a helper."""
        return self.first.helped or self.second.helped

    def apply(self, node: Node, tag: str) -> str:
        """Shell: put one of them there."""
        choice = f"if {{ {self.first.probe}; }} 2>/dev/null"
        return f"{choice}; then\n{self.first.apply(node, tag)}else\n{self.second.apply(node, tag)}fi\n"

    def helper(self, node: Node, tag: str, applied: str) -> Helper | None:
        """That of the one that was applied: what it printed is its own."""
        return self.first.helper(node, tag, applied) or self.second.helper(node, tag, applied)

    def count(self, tag: str) -> str:
        """Shell: print the counters of both, of which one is there."""
        return f"{self.first.count(tag)}echo {_OR}\n{self.second.count(tag)}"

    def read(self, node: Node, tag: str, listing: str) -> Counted | None:
        """The counters of the one that is there."""
        first, _, second = listing.partition(f"{_OR}\n")
        return self.first.read(node, tag, first) or self.second.read(node, tag, second)

    def remove(self, node: Node, tag: str) -> str:
        """Shell: remove whichever is there."""
        return self.first.remove(node, tag) + self.second.remove(node, tag)


#: Separates the counters of one mechanism from those of the other.
_OR = "KT-OR"
