"""What acts on the packets of one node, in its network namespace: shell text, and what its counters tell.

Nothing here, and in no mechanism, runs anything. A fault asks for what it wants done, and not how.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from harness.core.topology import Node
from nemesis.links import Link


@dataclass(frozen=True)
class Counted:
    """What a mechanism's counters tell: how many packets it acted on, and of which links, where it knows.

    ``facts`` is JSON.
    """

    packets: int
    facts: Mapping[str, Any]
    links: Mapping[Link, int] = field(default_factory=dict)


class Mechanism(Protocol):
    """One injection's part in one node's namespace. ``tag``: eight hex digits that name the injection there."""

    @property
    def name(self) -> str:
        """What evidence calls it."""

    @property
    def probe(self) -> str:
        """Shell: fails where the kernel has not what it needs; leaves nothing."""

    @property
    def helper(self) -> str | None:
        """Shell: a program that has to run as long as it acts, started before ``apply``; None where it needs none."""

    def apply(self, node: Node, tag: str) -> str:
        """Shell: put it there, whole; nothing where it is there already."""

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
    def helper(self) -> str | None:
        """Shell: the program of the one that is there; one that does nothing where that needs none."""
        if self.first.helper is None and self.second.helper is None:
            return None
        idle = "exec sleep infinity"
        choice = f"if {{ {self.first.probe}; }} 2>/dev/null"
        return f"{choice}; then\n{self.first.helper or idle}\nelse\n{self.second.helper or idle}\nfi\n"

    def apply(self, node: Node, tag: str) -> str:
        """Shell: put one of them there."""
        choice = f"if {{ {self.first.probe}; }} 2>/dev/null"
        return f"{choice}; then\n{self.first.apply(node, tag)}else\n{self.second.apply(node, tag)}fi\n"

    def count(self, tag: str) -> str:
        """Shell: print the counters of both, of which one is there."""
        return f"{self.first.count(tag)}echo {_OR}\n{self.second.count(tag)}"

    def read(self, node: Node, tag: str, listing: str) -> Counted | None:
        """What the one tells that is there."""
        first, _, second = listing.partition(f"{_OR}\n")
        return self.first.read(node, tag, first) or self.second.read(node, tag, second)

    def remove(self, node: Node, tag: str) -> str:
        """Shell: remove whichever is there."""
        return self.first.remove(node, tag) + self.second.remove(node, tag)


#: Parts the counters of one mechanism from those of the other.
_OR = "KT-OR"
