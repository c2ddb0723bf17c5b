"""Faults that cut nodes from each other and from their clients."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field
from typing_extensions import override

from harness.core.errors import ClusterError
from harness.core.quantities import Flag
from harness.core.topology import Node, Plane, Topology
from nemesis.evidence import Evidence
from nemesis.fault import Aim, Needs
from nemesis.faults.network import NetworkFault, judged
from nemesis.links import Link, by_node, secluded, severed
from nemesis.mechanisms import catalogue
from nemesis.mechanisms.mechanism import Counted, Mechanism
from nemesis.targets import Expression


class _Cut(NetworkFault):
    plane: Plane = Field(Plane.ALL, description="cut only this traffic: all, replication, controller or client")

    cuts: ClassVar[bool] = True

    @property
    @override
    def traffic_plane(self) -> Plane | None:
        return self.plane

    @property
    def needs(self) -> Needs:
        return catalogue.CUT.needs

    @abstractmethod
    def links(self, aim: Aim, topology: Topology) -> frozenset[Link]:
        """The links to cut."""

    def check(self, aim: Aim, topology: Topology) -> None:
        super().check(aim, topology)
        if not self.links(aim, topology):
            raise ClusterError(f"{aim.name}: both sides are {aim.nodes[0].name}, there is nothing to cut")

    def mechanisms(self, aim: Aim, topology: Topology) -> Mapping[Node, Mechanism]:
        shares = by_node(self.links(aim, topology), aim.nodes)
        return {node: catalogue.CUT.mechanism(links) for node, links in shares.items()}

    @override
    def seen(self, aim: Aim, topology: Topology, counted: Mapping[Node, Counted | None]) -> Evidence:
        """The fault acts on a node if packets of the node's links were dropped and no rule for these links is gone.

        A node without dropped packets is left out if rules for its links ended with some node's process.
        """
        shares = by_node(self.links(aim, topology), aim.nodes)
        packets = dict.fromkeys(aim.nodes, 0)
        leaking: set[Node] = set()
        ended = {end for node in shares.keys() - counted.keys() for link in shares[node] for end in _ends(link)}
        for enforcing, count in counted.items():
            for link in shares[enforcing]:
                ends = _ends(link) & packets.keys()
                if count is None:
                    leaking |= ends
                for node in ends:
                    packets[node] += count.links[link] if count else 0
        return {
            node: judged(None if node in leaking else Counted(dropped, {"packets_dropped": dropped}))
            for node, dropped in packets.items()
            if dropped or node in leaking or node not in ended
        }


class Partition(_Cut):
    """Cut two groups of nodes from each other."""

    from_: Expression = Field(alias="from", description="one side of the cut: what it sends is lost")
    to: Expression = Field(description="the other side")
    both_ways: Flag = Field(True, description="false: only what `from` sends to `to` is lost, not what it hears")

    @property
    @override
    def cuts_both_ways(self) -> bool | None:
        return self.both_ways

    def targets(self) -> Mapping[str, Expression]:
        return {"from": self.from_, "to": self.to}

    @override
    def links(self, aim: Aim, topology: Topology) -> frozenset[Link]:
        return severed(aim.parties["from"], aim.parties["to"], self.plane, self.both_ways)


class Isolate(_Cut):
    """Cut each node hit from every other node of the cluster, and from the clients."""

    target: Expression = Field(description="the nodes to isolate")
    clients: Flag = Field(True, description="false: it still hears its clients, and they hear it")

    @property
    @override
    def cuts_clients(self) -> bool | None:
        return self.clients

    def targets(self) -> Mapping[str, Expression]:
        return {"target": self.target}

    def links(self, aim: Aim, topology: Topology) -> frozenset[Link]:
        clients = (topology.clients,) if self.clients else ()
        return secluded(aim.parties["target"], (*topology.nodes, *clients), self.plane)


def _ends(link: Link) -> set[Node]:
    return {link.sender, link.receiver}
