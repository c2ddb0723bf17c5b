"""Which node may not receive packets from which other, as plain data."""

from collections.abc import Iterable
from dataclasses import dataclass

from harness.core.topology import Node, Plane


@dataclass(frozen=True, order=True)
class Link:
    """A cut link: ``receiver`` gets nothing from ``sender`` on this plane."""

    sender: Node
    receiver: Node
    plane: Plane = Plane.ALL


def severed(
    from_: Iterable[Node], to: Iterable[Node], plane: Plane = Plane.ALL, both_ways: bool = True
) -> frozenset[Link]:
    """Links that lose what ``from_`` sends to ``to``, and with ``both_ways`` also what ``to`` sends back. No node is
    cut from itself."""
    senders, receivers = frozenset(from_), frozenset(to)
    there = {Link(a, b, plane) for a in senders for b in receivers if a != b}
    back = {Link(link.receiver, link.sender, plane) for link in there} if both_ways else set()
    return frozenset(there | back)


def secluded(nodes: Iterable[Node], others: Iterable[Node], plane: Plane = Plane.ALL) -> frozenset[Link]:
    """Links that cut each of ``nodes``, both ways, from every other one of them and from ``others``."""
    alone = frozenset(nodes)
    return severed(alone, alone | frozenset(others), plane)


def by_node(links: Iterable[Link], nodes: Iterable[Node]) -> dict[Node, frozenset[Link]]:
    """Assign each link to the one of its two ends that drops its packets. A greedy choice keeps the nodes few.

    If one node enforces a whole cut, the cut begins at one instant. Every link needs an end in ``nodes``.
    """
    candidates = sorted(set(nodes))
    left = set(links)
    shares: dict[Node, frozenset[Link]] = {}
    while left:
        node = max(candidates, key=lambda n: sum(n in (link.sender, link.receiver) for link in left))
        shares[node] = frozenset(link for link in left if node in (link.sender, link.receiver))
        candidates.remove(node)
        left -= shares[node]
    return shares
