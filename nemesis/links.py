"""Who may not hear whom, as plain data, and the iptables rules that make it so. Nothing here runs anything."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from harness.core.topology import PORTS, Node, Plane


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


def chains(tag: str) -> tuple[str, str]:
    """The two chains of one injection: for what arrives, and for what leaves."""
    return f"KT-{tag}-I", f"KT-{tag}-O"


def rules_for(node: Node, links: Iterable[Link], tag: str) -> str:
    """Input of ``iptables-restore --noflush``: ``node`` drops what ``links`` forbid, in chains of this injection."""
    arriving, leaving = chains(tag)
    rules = [
        f"-A {arriving} -s {link.sender.address}/32 {on_plane(link.plane)}-j DROP"
        if link.receiver == node
        else f"-A {leaving} -d {link.receiver.address}/32 {on_plane(link.plane)}-j DROP"
        for link in sorted(links)
        if node in (link.sender, link.receiver)
    ]
    return _ruleset(tag, rules)


def rules_losing(share: float, plane: Plane, tag: str) -> str:
    """Input of ``iptables-restore --noflush``: of what arrives, a random ``share`` of the packets is lost."""
    arriving, _ = chains(tag)
    random = f"-m statistic --mode random --probability {share:.6f} "
    return _ruleset(tag, [f"-A {arriving} ! -i lo {on_plane(plane)}{random}-j DROP"])


def on_plane(plane: Plane) -> str:
    """The iptables match for a plane's packets, those sent to its ports and those sent from them; empty for all."""
    if not PORTS[plane]:
        return ""
    return f"-p tcp -m multiport --ports {','.join(map(str, PORTS[plane]))} "


def _ruleset(tag: str, rules: Iterable[str]) -> str:
    arriving, leaving = chains(tag)
    lines = [
        "*filter",
        f":{arriving} - [0:0]",
        f":{leaving} - [0:0]",
        *rules,
        f"-I INPUT -j {arriving}",
        f"-I OUTPUT -j {leaving}",
        "COMMIT",
    ]
    return "\n".join(lines) + "\n"


def apply_rules(ruleset: str, tag: str) -> str:
    """Shell: all rules at once, or none; nothing where they are there already."""
    arriving, _ = chains(tag)
    return f"iptables -w -nL {arriving} >/dev/null 2>&1 || iptables-restore -w --noflush <<'RULES'\n{ruleset}RULES\n"


def count_rules(tag: str) -> str:
    """Shell: the rules with their packet counters, nothing where they are not there."""
    return "".join(f"iptables -w -nvxL {chain} 2>/dev/null || true\n" for chain in chains(tag))


def remove_rules(tag: str) -> str:
    """Shell: unhook and delete exactly these chains; fails if anything of them is left."""
    arriving, leaving = chains(tag)
    unhook = [
        f"while iptables -w -D {hook} -j {chain} 2>/dev/null; do :; done\n"
        f"if iptables -w -F {chain} 2>/dev/null; then iptables -w -X {chain}; fi\n"
        for hook, chain in (("INPUT", arriving), ("OUTPUT", leaving))
    ]
    check = f"if iptables-save | grep -F 'KT-{tag}'; then echo 'rules of KT-{tag} are left' >&2; exit 1; fi\n"
    return "".join(unhook) + check


def has_rules(listing: str, tag: str) -> bool:
    """Whether both chains of an injection are in an ``iptables -nvxL`` listing."""
    return all(f"Chain {chain} " in listing for chain in chains(tag))


def packets_dropped(listing: str) -> int:
    """The packets that the DROP rules of an ``iptables -nvxL`` listing have counted."""
    return sum(packets for _, _, packets in _drops(listing))


def dropped(listing: str, link: Link, enforcing: Node) -> int:
    """Of those, the packets of one link that this node enforces."""
    wanted = (link.sender.address, _ANY) if link.receiver == enforcing else (_ANY, link.receiver.address)
    return sum(packets for source, destination, packets in _drops(listing) if (source, destination) == wanted)


_ANY = "0.0.0.0/0"

#: pkts, bytes, target, prot, opt, in, out, source, destination
_DROP = re.compile(r"^\s*(\d+)\s+\d+\s+DROP\s+\S+\s+\S+\s+\S+\s+\S+\s+(\S+)\s+(\S+)", re.MULTILINE)


def _drops(listing: str) -> list[tuple[str, str, int]]:
    return [(source, destination, int(packets)) for packets, source, destination in _DROP.findall(listing)]
