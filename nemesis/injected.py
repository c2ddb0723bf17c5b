"""One injection of a fault: what it acts on, what was seen of it, and its row of the table ``faults``."""

import json
from dataclasses import dataclass, field
from typing import Any

from harness.core.faults import Does
from harness.core.topology import Node
from nemesis.catalogue import kind_of
from nemesis.evidence import Effect, Record
from nemesis.fault import Aim, Fault


@dataclass
class InjectedFault:
    """One fault that was injected, as far as it is known: a row of the table ``faults``."""

    fault: Fault
    aim: Aim
    injecting_ns: int
    injected_ns: int | None = None
    healing_ns: int | None = None
    healed_ns: int | None = None
    seen: Record = field(default_factory=Record)
    ended: set[Node] = field(default_factory=set)
    counted: set[Node] = field(default_factory=set)

    @property
    def without_effect(self) -> list[str]:
        """The nodes on which it is not known to act, or known not to."""
        return [node.name for node in self.aim.nodes if self.seen.on(node) is not Effect.HOLDS]

    @property
    def not_known(self) -> list[str]:
        """The nodes on which it may have acted: nothing shows that it did, and nothing that it did not."""
        without = (node for node in self.aim.nodes if self.seen.on(node) is Effect.NOT_KNOWN)
        return [node.name for node in without if node not in self.counted]

    @property
    def remaining(self) -> tuple[Node, ...]:
        """The nodes that it still lasts on."""
        return tuple(node for node in self.aim.nodes if node not in self.ended)

    def row(self) -> dict[str, Any]:
        """As the journal has it."""
        return {
            "fault": self.aim.name,
            "kind": kind_of(self.fault),
            "nodes": [node.name for node in self.aim.nodes],
            "injecting_ns": self.injecting_ns,
            "injected_ns": self.injected_ns,
            "healing_ns": self.healing_ns,
            "healed_ns": self.healed_ns,
            "effective": self.injected_ns is not None and not self.without_effect,
            "evidence": json.dumps(self.seen.facts),
            "nodes_without_effect": self.without_effect,
            "nodes_not_known": self.not_known,
            **{what: getattr(self.fault, what) for what in Does},
            **self._sides,
            "both_ways": getattr(self.fault, "both_ways", None),
            "plane": getattr(self.fault, "plane", None),
            "injection": self.aim.name,
        }

    @property
    def _sides(self) -> dict[str, list[str]]:
        """Who stood on which side of a cut; of one that has no sides, nothing."""
        sides = [[node.name for node in nodes] for nodes in self.aim.parties.values()]
        return dict(zip(("cut_from", "cut_to"), sides, strict=True)) if len(sides) > 1 else {}


@dataclass(frozen=True)
class Active:
    """A fault that lasts, for display."""

    name: str
    kind: str
    nodes: tuple[str, ...]
