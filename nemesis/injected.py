"""One injection of a fault: its nodes, its evidence, and its row of the table ``faults``."""

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
    """One injected fault and everything known about it: a row of the table ``faults``. ``tried``: a heal was
    tried. Rules that are gone afterwards may be gone by it."""

    fault: Fault
    aim: Aim
    injecting_ns: int
    injected_ns: int | None = None
    healing_ns: int | None = None
    healed_ns: int | None = None
    seen: Record = field(default_factory=Record)
    ended: set[Node] = field(default_factory=set)
    counted: set[Node] = field(default_factory=set)
    tried: bool = False

    @property
    def without_effect(self) -> list[str]:
        """The nodes on which the fault is not known to act, or is known not to act."""
        return [node.name for node in self.aim.nodes if self.seen.on(node) is not Effect.HOLDS]

    @property
    def not_known(self) -> list[str]:
        """The nodes on which the fault may have acted: in part, or nothing shows that it did not."""
        return [node.name for node in self.aim.nodes if self._may_have_acted(node)]

    def _may_have_acted(self, node: Node) -> bool:
        effect = self.seen.on(node)
        return effect is Effect.IN_PART or (effect is Effect.NOT_KNOWN and node not in self.counted)

    @property
    def measurable(self) -> tuple[Node, ...]:
        """The nodes whose state still shows what the fault does."""
        if self.fault.lives_in_network:
            return () if self.tried else self.aim.nodes
        return self.remaining

    @property
    def remaining(self) -> tuple[Node, ...]:
        """The nodes on which the fault still lasts."""
        return tuple(node for node in self.aim.nodes if node not in self.ended)

    def row(self) -> dict[str, Any]:
        """The row that is written to the journal."""
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
            "both_ways": self.fault.cuts_both_ways,
            "cuts_clients": self.fault.cuts_clients,
            "plane": self.fault.traffic_plane,
            "injection": self.aim.name,
        }

    @property
    def _sides(self) -> dict[str, list[str]]:
        """The nodes on each side of a cut; empty if the fault has no sides."""
        sides = [[node.name for node in nodes] for nodes in self.aim.parties.values()]
        return dict(zip(("cut_from", "cut_to"), sides, strict=True)) if len(sides) > 1 else {}


@dataclass(frozen=True)
class Active:
    """A fault that lasts now, for display."""

    name: str
    kind: str
    nodes: tuple[str, ...]
