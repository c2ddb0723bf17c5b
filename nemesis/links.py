"""Who may not hear whom, as plain data."""

from collections.abc import Iterable
from dataclasses import dataclass

from harness.core.topology import Node, Plane


@dataclass(frozen=True, order=True)
class Link:
    """``receiver`` hears nothing from ``sender`` on this plane."""

    sender: Node
    receiver: Node
    plane: Plane = Plane.ALL


def severed(
    from_: Iterable[Node], to: Iterable[Node], plane: Plane = Plane.ALL, both_ways: bool = True
) -> frozenset[Link]:
    """What ``from_`` sends to ``to`` is lost; both ways, also what ``to`` sends. Nobody is cut from itself."""
    senders, receivers = frozenset(from_), frozenset(to)
    there = {Link(a, b, plane) for a in senders for b in receivers if a != b}
    back = {Link(link.receiver, link.sender, plane) for link in there} if both_ways else set()
    return frozenset(there | back)


def secluded(nodes: Iterable[Node], others: Iterable[Node], plane: Plane = Plane.ALL) -> frozenset[Link]:
    """Each of ``nodes`` is alone: cut, both ways, from every other node and from ``others``."""
    alone = frozenset(nodes)
    return severed(alone, alone | frozenset(others), plane)


def by_node(links: Iterable[Link], nodes: Iterable[Node]) -> dict[Node, frozenset[Link]]:
    """Which of ``nodes`` drops the packets of which links, at either end: as few nodes as a greedy choice finds.

    A cut that one node enforces alone is there at one instant. Every link needs an end among ``nodes``.
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
