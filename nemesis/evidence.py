"""What is known of an injection: on each of its nodes, whether it acts there."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from harness.core.topology import Node


class Effect(StrEnum):
    """Whether a fault acts on a node. ``NOT_KNOWN``: no measurement shows it."""

    HOLDS = "holds"
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

    What holds may stop doing so. Where it once did not, though it should have, it is not said to have held.
    """

    def __init__(self) -> None:
        self.facts: dict[str, dict[str, Any]] = {}
        self._effects: dict[Node, Effect] = {}

    def add(self, when: str, evidence: Evidence) -> None:
        """Note what was measured ``when``. A measurement that says nothing of a node takes back nothing."""
        for node, seen in evidence.items():
            if seen.effect is not Effect.NOT_KNOWN and self.on(node) is not Effect.DOES_NOT_HOLD:
                self._effects[node] = seen.effect
            if seen.facts:
                self.facts.setdefault(when, {})[node.name] = dict(seen.facts)

    def note(self, when: str, **facts: Any) -> None:
        """Note what is of no node alone."""
        self.facts.setdefault(when, {}).update(facts)

    def on(self, node: Node) -> Effect:
        """Whether it acts, or acted as long as it lasted, on this node."""
        return self._effects.get(node, Effect.NOT_KNOWN)
