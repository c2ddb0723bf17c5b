"""The evidence of an injection: on each of its nodes, whether the fault acts there."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from harness.core.topology import Node


class Effect(StrEnum):
    """Whether a fault acts on a node. ``IN_PART``: it acted, or may have acted, but not all the time, not as it should,
    or nobody knows until when. ``NOT_KNOWN``: no measurement shows it."""

    HOLDS = "holds"
    IN_PART = "in part"
    DOES_NOT_HOLD = "does not hold"
    NOT_KNOWN = "not known"


@dataclass(frozen=True)
class Seen:
    """What was measured on one node at one time. ``facts`` is JSON."""

    effect: Effect
    facts: Mapping[str, Any] = field(default_factory=dict)


#: One measurement of an injection, by node.
Evidence = Mapping[Node, Seen]


class Record:
    """All evidence of one injection, in the order it was measured.

    A fault that holds may stop holding: then it acted in part. Once a measurement shows that it did not hold on a node,
    or held in part, later ones do not change that.
    """

    def __init__(self) -> None:
        self.facts: dict[str, dict[str, Any]] = {}
        self._effects: dict[Node, Effect] = {}

    def add(self, when: str, evidence: Evidence) -> None:
        """Add one measurement; ``when`` is its key in the facts. A node that it does not contain, or that is NOT_KNOWN
        in it, keeps its effect."""
        for node, seen in evidence.items():
            before = self.on(node)
            if seen.effect is not Effect.NOT_KNOWN and before in {Effect.HOLDS, Effect.NOT_KNOWN}:
                stopped = before is Effect.HOLDS and seen.effect is Effect.DOES_NOT_HOLD
                self._effects[node] = Effect.IN_PART if stopped else seen.effect
            if seen.facts:
                self.facts.setdefault(when, {})[node.name] = dict(seen.facts)

    def lose_sight(self, nodes: Iterable[Node]) -> None:
        """The last measurement of these nodes failed: nobody knows until when a fault acted that held there before."""
        for node in nodes:
            if self.on(node) is Effect.HOLDS:
                self._effects[node] = Effect.IN_PART

    def note(self, when: str, **facts: Any) -> None:
        """Add facts that belong to no single node."""
        self.facts.setdefault(when, {}).update(facts)

    def on(self, node: Node) -> Effect:
        """Whether the fault acts on this node, or acted until it ended."""
        return self._effects.get(node, Effect.NOT_KNOWN)
