"""Drops packets by iptables. Each injection has two chains of its own: for arriving and for leaving packets.

All rules of a node take effect at one instant. Their packet counters are the evidence.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

from harness.core.topology import Node, Plane, Ports
from nemesis.links import Link
from nemesis.mechanisms.mechanism import ARRIVING, Counted, Helper

_ANY = "0.0.0.0/0"

#: pkts, bytes, target, prot, opt, in, out, source, destination
_DROPPED = re.compile(r"^\s*(\d+)\s+\d+\s+DROP\s+\S+\s+\S+\s+\S+\s+\S+\s+(\S+)\s+(\S+)", re.MULTILINE)


class _Rules(ABC):
    """Mechanisms that consist of iptables rules alone."""

    name = "iptables"
    probe = "iptables -w -nL INPUT >/dev/null"
    helped = False

    @abstractmethod
    def rules(self, node: Node, tag: str) -> list[str]:
        """The node's rules, as iptables-restore reads them."""

    def apply(self, node: Node, tag: str) -> str:
        """Shell: add all rules at once, or none; does nothing if they are there already."""
        arriving, leaving = chains(tag)
        lines = [
            f":{arriving} - [0:0]",
            f":{leaving} - [0:0]",
            *spared(node, arriving, "dport"),
            *spared(node, leaving, "sport"),
            *self.rules(node, tag),
            f"-I INPUT -j {arriving}",
            f"-I OUTPUT -j {leaving}",
        ]
        return at_once("filter", arriving, lines)

    def helper(self, node: Node, tag: str, applied: str) -> Helper | None:  # noqa: ARG002 - rules act alone
        """None."""
        return None

    def count(self, tag: str) -> str:
        """Shell: print the rules with their packet counters; nothing if there are none."""
        return "".join(f"iptables -w -nvxL {chain} 2>/dev/null || true\n" for chain in chains(tag))

    def remove(self, node: Node, tag: str) -> str:  # noqa: ARG002 - the chains have the same names everywhere
        """Shell: unhook and delete exactly these chains; fails if anything of them is left."""
        arriving, leaving = chains(tag)
        unhook = [
            f"while iptables -w -D {hook} -j {chain} 2>/dev/null; do :; done\n"
            f"if iptables -w -F {chain} 2>/dev/null; then iptables -w -X {chain}; fi\n"
            for hook, chain in (("INPUT", arriving), ("OUTPUT", leaving))
        ]
        return "".join(unhook) + none_left(f"KT-{tag}")


@dataclass(frozen=True)
class Cut(_Rules):
    """A node drops the packets of ``links`` at its own end."""

    links: frozenset[Link]

    def rules(self, node: Node, tag: str) -> list[str]:
        """One rule for each link with the node at one end."""
        arriving, leaving = chains(tag)
        return [
            f"-A {arriving} -s {link.sender.address}/32 {on_plane(link.plane, node.ports)}-j DROP"
            if link.receiver == node
            else f"-A {leaving} -d {link.receiver.address}/32 {on_plane(link.plane, node.ports)}-j DROP"
            for link in sorted(self.links)
            if node in (link.sender, link.receiver)
        ]

    def read(self, node: Node, tag: str, listing: str) -> Counted | None:
        """The number of dropped packets of each link."""
        if not reached(listing, *chains(tag)):
            return None
        drops = _drops(listing)
        links = {link: sum(count for *ends, count in drops if tuple(ends) == _ends(link, node)) for link in self.links}
        return Counted(sum(links.values()), {"packets_dropped": sum(links.values())}, links)


@dataclass(frozen=True)
class Lose(_Rules):
    """A random ``share`` of the packets that arrive at a node is lost."""

    share: float
    plane: Plane = Plane.ALL

    name = "iptables statistic"

    def rules(self, node: Node, tag: str) -> list[str]:
        """One rule for all arriving packets."""
        arriving, _ = chains(tag)
        random = f"-m statistic --mode random --probability {self.share:.6f} "
        return [f"-A {arriving} ! -i lo {on_plane(self.plane, node.ports)}{random}-j DROP"]

    def read(self, node: Node, tag: str, listing: str) -> Counted | None:  # noqa: ARG002 - the same on every node
        """The number of dropped packets."""
        if not reached(listing, *chains(tag)):
            return None
        dropped = sum(count for *_, count in _drops(listing))
        return Counted(dropped, {"by": self.name, "of": ARRIVING, "packets_dropped": dropped})


def chains(tag: str) -> tuple[str, str]:
    """The two chains of one injection: for arriving and for leaving packets."""
    return f"KT-{tag}-I", f"KT-{tag}-O"


def on_plane(plane: Plane, ports: Ports) -> str:
    """The iptables match for packets to and from a plane's ports; empty for all packets."""
    if not ports.of(plane):
        return ""
    return f"-p tcp -m multiport --ports {','.join(map(str, ports.of(plane)))} "


def spared(node: Node, chain: str, end: str) -> list[str]:
    """The first rule of a chain: it spares the harness's own connection to the node's machine."""
    return [] if node.control is None else [f"-A {chain} -p tcp --{end} {node.control} -j RETURN"]


def at_once(table: str, chain: str, lines: Iterable[str]) -> str:
    """Shell: add these lines to a table, all or none; does nothing if ``chain`` is there already."""
    rules = "".join(f"{line}\n" for line in (f"*{table}", *lines, "COMMIT"))
    there = f"iptables -w -t {table} -nL {chain} >/dev/null 2>&1"
    return f"{there} || iptables-restore -w --noflush <<'RULES'\n{rules}RULES\n"


def none_left(name: str) -> str:
    """Shell: fails if rules of this name are left, or if the rules cannot be listed."""
    # (A command of its own: in a pipe its failure would look like an empty list.)
    left = f"echo 'rules of {name} are left' >&2\n  exit 1"
    return f'kt_left=$(iptables-save)\ncase "$kt_left" in *{name}*)\n  {left} ;;\nesac\n'


def reached(listing: str, *chains: str) -> bool:
    """Whether the chains exist and are still referenced: after a flush by somebody else a chain has no reference."""
    return all(re.search(rf"^Chain {chain} \([1-9]\d* references\)", listing, re.MULTILINE) for chain in chains)


def _ends(link: Link, node: Node) -> tuple[str, str]:
    """The source and destination of the rule by which a node enforces a link, as iptables lists them."""
    return (link.sender.address, _ANY) if link.receiver == node else (_ANY, link.receiver.address)


def _drops(listing: str) -> list[tuple[str, str, int]]:
    return [(source, destination, int(packets)) for packets, source, destination in _DROPPED.findall(listing)]
