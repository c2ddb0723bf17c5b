"""Cutting nodes from each other, and from their clients."""

from abc import abstractmethod
from collections.abc import Mapping

from pydantic import Field
from typing_extensions import override

from harness.core.errors import ClusterError
from harness.core.topology import Node, Plane, Topology
from nemesis.evidence import Effect, Evidence, Seen
from nemesis.fault import Aim
from nemesis.links import (
    Link,
    apply_rules,
    by_node,
    count_rules,
    dropped,
    has_rules,
    remove_rules,
    rules_for,
    secluded,
    severed,
)
from nemesis.network import NetworkFault, Scripts
from nemesis.targets import Expression


class _Cut(NetworkFault):
    plane: Plane = Field(Plane.ALL, description="cut only this traffic: all, replication, controller or client")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"iptables"})

    @abstractmethod
    def links(self, aim: Aim, topology: Topology) -> frozenset[Link]:
        """Who may not hear whom."""

    def check(self, aim: Aim, topology: Topology) -> None:
        super().check(aim, topology)
        if not self.links(aim, topology):
            raise ClusterError(f"{aim.name}: both sides are {aim.nodes[0].name}, there is nothing to cut")

    def scripts(self, aim: Aim, topology: Topology) -> Mapping[Node, Scripts]:
        return {
            node: Scripts(
                apply_rules(rules_for(node, links, aim.tag), aim.tag), count_rules(aim.tag), remove_rules(aim.tag)
            )
            for node, links in by_node(self.links(aim, topology), aim.nodes).items()
        }

    @override
    def seen(self, aim: Aim, topology: Topology, listings: Mapping[Node, str]) -> Evidence:
        """It acts on a node if packets of its own links were dropped, and on none of them the rules are gone."""
        shares = by_node(self.links(aim, topology), aim.nodes)
        packets = dict.fromkeys(aim.nodes, 0)
        leaking: set[Node] = set()
        for enforcing, listing in listings.items():
            for link in shares[enforcing]:
                ends = (link.sender, link.receiver)
                if not has_rules(listing, aim.tag):
                    leaking.update(ends)
                for node in packets.keys() & ends:
                    packets[node] += dropped(listing, link, enforcing)
        return {node: _cut_on(count, node in leaking) for node, count in packets.items()}


def _cut_on(packets: int, leaking: bool) -> Seen:
    if leaking:
        return Seen(Effect.DOES_NOT_HOLD, {"packets_dropped": packets, "rules": "gone"})
    return Seen(Effect.HOLDS if packets else Effect.NOT_KNOWN, {"packets_dropped": packets})


class Partition(_Cut):
    """Cut two groups of nodes from each other."""

    from_: Expression = Field(alias="from", description="one side of the cut: what it sends is lost")
    to: Expression = Field(description="the other side")
    both_ways: bool = Field(True, description="false: only what `from` sends to `to` is lost, not what it hears")

    def targets(self) -> Mapping[str, Expression]:
        return {"from": self.from_, "to": self.to}

    @override
    def links(self, aim: Aim, topology: Topology) -> frozenset[Link]:
        return severed(aim.parties["from"], aim.parties["to"], self.plane, self.both_ways)


class Isolate(_Cut):
    """Cut each node hit from every other node of the cluster, and from the clients."""

    target: Expression = Field(description="who is isolated")
    clients: bool = Field(True, description="false: it still hears its clients, and they hear it")

    def targets(self) -> Mapping[str, Expression]:
        return {"target": self.target}

    def links(self, aim: Aim, topology: Topology) -> frozenset[Link]:
        clients = (topology.clients,) if self.clients else ()
        return secluded(aim.parties["target"], (*topology.nodes, *clients), self.plane)
