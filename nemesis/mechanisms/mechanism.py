"""Mechanisms act on the packets of one node, in its network namespace: shell text, and parsers of their counters.

A mechanism runs nothing itself. A fault says what it wants done, and not how.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from harness.core.topology import Node, Plane
from nemesis.links import Link

#: Which part of a node's traffic a mechanism acts on, in the words of the evidence.
ARRIVING, LEAVING = "what arrives", "what leaves"

#: The longest time that a removal waits for held packets, in seconds.
DRAIN_S = 60.0


@dataclass(frozen=True)
class Counted:
    """The values of a mechanism's counters: how many packets it acted on, and for each link if it knows the links.

    ``facts`` is JSON. ``wrong``: why the mechanism did not do its work, whatever it counts. ``silent``: its helper did
    not answer, and may have ended.
    """

    packets: int
    facts: Mapping[str, Any]
    links: Mapping[Link, int] = field(default_factory=dict)
    wrong: str | None = None
    silent: bool = False


@dataclass(frozen=True)
class Late:
    """Packets of a plane are ``seconds`` late, plus or minus ``jitter``: the parameters of each mechanism that delays.

    ``distribution``: how the delay varies; None: evenly.
    """

    seconds: float
    jitter: float = 0.0
    distribution: str | None = None
    plane: Plane = Plane.ALL

    @property
    def drains_within(self) -> float:
        """Seconds until all held packets have left: the longest delay plus one second."""
        return min(self.seconds + 4 * self.jitter + 1, DRAIN_S)


@dataclass(frozen=True)
class Overtaken:
    """A ``share`` of a plane's packets overtakes the others, which are ``seconds`` late."""

    share: float
    seconds: float
    plane: Plane = Plane.ALL

    @property
    def drains_within(self) -> float:
        """Seconds until all held packets have left: the delay plus one second."""
        return min(self.seconds + 1, DRAIN_S)


@dataclass(frozen=True)
class Helper:
    """A program that must run as long as a mechanism acts.

    ``script``, shell: runs it. ``ready``, shell: waits until it runs, then sends it packets; fails if it does not run.
    """

    script: str
    ready: str


class Mechanism(Protocol):
    """What one injection does in one node's namespace. ``tag``: eight hex digits that name the injection there."""

    @property
    def name(self) -> str:
        """Its name in the evidence."""

    @property
    def probe(self) -> str:
        """Shell: fails if the kernel does not have what the mechanism needs; leaves nothing behind."""

    @property
    def helped(self) -> bool:
        """Whether it may need a helper."""

    def apply(self, node: Node, tag: str) -> str:
        """Shell: add the whole mechanism, or print what ``helper`` needs to know; does nothing if it is there
        already."""

    def helper(self, node: Node, tag: str, applied: str) -> Helper | None:
        """The helper to start now, by the output of ``apply``; None if the mechanism was there already or needs
        none."""

    def count(self, tag: str) -> str:
        """Shell: print its counters."""

    def read(self, node: Node, tag: str, listing: str) -> Counted | None:
        """Parse the output of ``count``; None if the mechanism is gone. Raises ValueError, LookupError or TypeError."""

    def remove(self, node: Node, tag: str) -> str:
        """Shell: remove the mechanism and nothing else; fails if a part of it is left."""


@dataclass(frozen=True)
class Either:
    """The first of two mechanisms, or the second if the kernel does not have what the first one needs."""

    first: Mechanism
    second: Mechanism

    @property
    def name(self) -> str:
        """Both names; the facts of the counters say which one acts."""
        return f"{self.first.name} or {self.second.name}"

    @property
    def probe(self) -> str:
        """Shell: fails if the kernel can do neither."""
        return f"{{ {self.first.probe}; }} 2>/dev/null || {{ {self.second.probe}; }}"

    @property
    def helped(self) -> bool:
        """Whether one of them may need a helper."""
        return self.first.helped or self.second.helped

    def apply(self, node: Node, tag: str) -> str:
        """Shell: add the one that the kernel can do."""
        choice = f"if {{ {self.first.probe}; }} 2>/dev/null"
        return f"{choice}; then\n{self.first.apply(node, tag)}else\n{self.second.apply(node, tag)}fi\n"

    def helper(self, node: Node, tag: str, applied: str) -> Helper | None:
        """The helper of the mechanism that was applied: each recognizes its own output."""
        return self.first.helper(node, tag, applied) or self.second.helper(node, tag, applied)

    def count(self, tag: str) -> str:
        """Shell: print the counters of both; only one of them is there."""
        return f"{self.first.count(tag)}echo {_OR}\n{self.second.count(tag)}"

    def read(self, node: Node, tag: str, listing: str) -> Counted | None:
        """The counters of the one that is there."""
        first, _, second = listing.partition(f"{_OR}\n")
        return self.first.read(node, tag, first) or self.second.read(node, tag, second)

    def remove(self, node: Node, tag: str) -> str:
        """Shell: remove the one that is there."""
        return self.first.remove(node, tag) + self.second.remove(node, tag)


#: Separates the counters of one mechanism from those of the other.
_OR = "KT-OR"
