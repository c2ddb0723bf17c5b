"""A program next to a node holds arriving packets in a netfilter queue: they are late, lost, or overtaken.

This is for kernels without netem, and for delays that correlate: netem's do not. Packets are held on arrival (mangle
PREROUTING): a packet held at its sender still belongs to its socket, and TCP sends hardly two such packets at a time.
"""

import json
import shlex
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from harness.core.topology import Node, Plane
from nemesis.mechanisms.iptables import at_once, none_left, on_plane, reached, spared
from nemesis.mechanisms.mechanism import ARRIVING, Counted, Helper, Late, Overtaken

_PROGRAM = Path(__file__).with_name("hold_packets.py").read_text(encoding="utf-8")

#: What ``apply`` prints if its rule is not there: the program must be started first.
_NEEDED = "KT-HOLD"

#: Seconds for the program to start.
_START_S = 10


def program(*arguments: str) -> str:
    """Shell: run the program that holds packets. The script contains its text, so no node needs it on disk."""
    return f"python3 -S -E - {shlex.join(arguments)} <<'PROGRAM'\n{_PROGRAM}PROGRAM\n"


class _Held(ABC):
    """A rule that sends a plane's packets to the injection's own queue, and the program that holds them."""

    plane: Plane

    name: ClassVar[str] = "nfqueue"
    probe: ClassVar[str] = "iptables -w -t mangle -nL PREROUTING >/dev/null"
    helped: ClassVar[bool] = True

    @property
    @abstractmethod
    def asked(self) -> dict[str, Any]:
        """Options of the program."""

    @abstractmethod
    def hit(self, counters: dict[str, Any]) -> int:
        """How many packets the fault acted on, by the program's counters."""

    @property
    def drains_within(self) -> float:
        """Seconds until all held packets have left."""
        return 0.0

    def apply(self, node: Node, tag: str) -> str:  # noqa: ARG002 - the same on every node
        """Shell: print the word that makes ``helper`` start the program, unless the rule is there already. The rule is
        added after the program has started. So each step can be repeated, and a program that has a rule is not started
        again."""
        return f"iptables -w -t mangle -nL {chain_of(tag)} >/dev/null 2>&1 || echo {_NEEDED}\n"

    def helper(self, node: Node, tag: str, applied: str) -> Helper | None:
        """The program, then the rule that sends packets to it."""
        if _NEEDED not in applied.split():
            return None
        options = [word for option, value in self.asked.items() for word in (f"--{option}", str(value))]
        hold = program("hold", tag, "--queue", str(queue_of(tag)), "--seed", tag, *options)
        return Helper(f"exec {hold}", f"{program('ask', tag, '--within', str(_START_S))}{self.rule(node, tag)}")

    def rule(self, node: Node, tag: str) -> str:
        """Shell: send a plane's packets to the queue. While no program serves the queue, they pass at once."""
        chain = chain_of(tag)
        queue = f"-j NFQUEUE --queue-num {queue_of(tag)} --queue-bypass"
        lines = [
            f":{chain} - [0:0]",
            *spared(node, chain, "dport"),
            f"-A {chain} ! -i lo {on_plane(self.plane, node.ports)}{queue}",
            f"-I PREROUTING -j {chain}",
        ]
        return at_once("mangle", chain, lines)

    def count(self, tag: str) -> str:
        """Shell: print the rule and the program's counters; nothing for one that is not there."""
        return (
            f"iptables -w -t mangle -nL {chain_of(tag)} 2>/dev/null || true\n"
            f"{{ {program('ask', tag)}}} 2>/dev/null || true\n"
        )

    def read(self, node: Node, tag: str, listing: str) -> Counted | None:  # noqa: ARG002 - the same on every node
        """Parse the program's counters. The fault is wrong if the program does not answer, or if packets were lost
        because the queue was full: they should be late, not lost."""
        if not reached(listing, chain_of(tag)):
            return None
        means: dict[str, Any] = {"by": self.name, "of": ARRIVING}
        last = listing.strip().splitlines()[-1]
        if not last.startswith("{"):
            return Counted(0, means, wrong="the program that held packets did not answer", silent=True)
        counters = json.loads(last)
        lost = f"{counters['overflowed']} packets were lost, for there was no room" if counters["overflowed"] else None
        return Counted(self.hit(counters), {**means, **self.facts(counters)}, wrong=lost)

    def facts(self, counters: dict[str, Any]) -> dict[str, Any]:
        """The program's counters, as facts of the evidence."""
        return counters

    def remove(self, node: Node, tag: str) -> str:  # noqa: ARG002 - the same on every node
        """Shell: remove the rule, wait until all held packets have left, end the program, and check that no rule is
        left."""
        chain = chain_of(tag)
        return (
            f"while iptables -w -t mangle -D PREROUTING -j {chain} 2>/dev/null; do :; done\n"
            f"if iptables -w -t mangle -F {chain} 2>/dev/null; then iptables -w -t mangle -X {chain}; fi\n"
            f"{{ {program('ask', tag, '--until', 'empty', '--within', f'{self.drains_within:g}', '--end')}}}"
            " >/dev/null 2>&1 || true\n"
            f"{none_left(chain)}"
        )


@dataclass(frozen=True)
class Delay(Late, _Held):
    """Packets that arrive at a node are late. ``correlation``: how much a delay is like the one before."""

    correlation: float | None = None

    @property
    def asked(self) -> dict[str, Any]:
        """Delay, jitter, correlation and distribution."""
        return {
            "delay": self.seconds,
            "jitter": self.jitter,
            "correlation": self.correlation or 0.0,
            "distribution": self.distribution or "uniform",
        }

    def hit(self, counters: dict[str, Any]) -> int:
        """Packets that were late, and those that still wait."""
        return int(counters["released"] + counters["waiting"])


@dataclass(frozen=True)
class Lose(_Held):
    """A ``share`` of the packets that arrive at a node is lost. ``correlation``: how much a loss is like the one
    before."""

    share: float
    correlation: float = 0.0
    plane: Plane = Plane.ALL

    @property
    def asked(self) -> dict[str, Any]:
        """The share, and the correlation."""
        return {"loss": self.share, "loss-correlation": self.correlation}

    def hit(self, counters: dict[str, Any]) -> int:
        """The lost packets."""
        return int(counters["dropped"])

    def facts(self, counters: dict[str, Any]) -> dict[str, Any]:
        """The counters under the names that other mechanisms use for lost packets."""
        return {"packets_dropped": counters["dropped"], "packets": counters["received"]}


@dataclass(frozen=True)
class Reorder(Overtaken, _Held):
    """Some of the packets that arrive at a node overtake the others."""

    @property
    def asked(self) -> dict[str, Any]:
        """The share that overtakes, and the delay of the others."""
        return {"overtake": self.share, "delay": self.seconds}

    def hit(self, counters: dict[str, Any]) -> int:
        """Packets that passed others which had arrived earlier."""
        return int(counters["overtook"])


def chain_of(tag: str) -> str:
    """The chain of one injection."""
    return f"KT-{tag}-H"


def queue_of(tag: str) -> int:
    """The queue of one injection: never 0, which is the default of other programs."""
    return 1 + int(tag, 16) % 0xFFFF
