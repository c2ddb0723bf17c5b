"""Packets that arrive at a node, held in a netfilter queue by a program beside it: late, lost, or overtaken.

For kernels without netem, and for delays that correlate: netem's do not. Packets are held where they arrive (mangle
PREROUTING): one that is held where it leaves still belongs to its socket, and TCP keeps hardly two of those under way.
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

#: What ``apply`` prints where its rule is not there: first the program is needed.
_NEEDED = "KT-HOLD"

#: Seconds for the program to start.
_START_S = 10


def program(*arguments: str) -> str:
    """Shell: run the program that holds packets (its text goes with it: it is on no node's disk)."""
    return f"python3 -S -E - {shlex.join(arguments)} <<'PROGRAM'\n{_PROGRAM}PROGRAM\n"


class _Held(ABC):
    """A rule that sends a plane's packets to a queue of the injection's own, and the program that holds them."""

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
        """How many packets it acted on, by the program's counters."""

    @property
    def drains_within(self) -> float:
        """Seconds in which all that is held has gone."""
        return 0.0

    def apply(self, node: Node, tag: str) -> str:  # noqa: ARG002 - the same on every node
        """Shell: whether the rule is there already. It comes after its program: each step can be done twice, and the
        program of a rule of before is not started again."""
        return f"iptables -w -t mangle -nL {chain_of(tag)} >/dev/null 2>&1 || echo {_NEEDED}\n"

    def helper(self, node: Node, tag: str, applied: str) -> Helper | None:
        """The program, and then the rule that sends it packets."""
        if _NEEDED not in applied.split():
            return None
        options = [word for option, value in self.asked.items() for word in (f"--{option}", str(value))]
        hold = program("hold", tag, "--queue", str(queue_of(tag)), "--seed", tag, *options)
        return Helper(f"exec {hold}", f"{program('ask', tag, '--within', str(_START_S))}{self.rule(node, tag)}")

    def rule(self, node: Node, tag: str) -> str:
        """Shell: send a plane's packets to the program. As long as nobody serves the queue, they pass at once."""
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
        """Shell: the rule and the program's counters; nothing of what is not there."""
        return (
            f"iptables -w -t mangle -nL {chain_of(tag)} 2>/dev/null || true\n"
            f"{{ {program('ask', tag)}}} 2>/dev/null || true\n"
        )

    def read(self, node: Node, tag: str, listing: str) -> Counted | None:  # noqa: ARG002 - the same on every node
        """What the program did. It does nothing any longer where it does not answer, nor where packets were lost for
        there was no room: what is asked is that they are late."""
        if not reached(listing, chain_of(tag)):
            return None
        means: dict[str, Any] = {"by": self.name, "of": ARRIVING}
        last = listing.strip().splitlines()[-1]
        if not last.startswith("{"):
            return Counted(0, means, wrong="the program that held packets has ended")
        counters = json.loads(last)
        lost = f"{counters['overflowed']} packets were lost, for there was no room" if counters["overflowed"] else None
        return Counted(self.hit(counters), {**means, **self.facts(counters)}, wrong=lost)

    def facts(self, counters: dict[str, Any]) -> dict[str, Any]:
        """The program's counters, as evidence has them."""
        return counters

    def remove(self, node: Node, tag: str) -> str:  # noqa: ARG002 - the same on every node
        """Shell: let nothing more in, wait until all that is held has gone, end the program, and see that no rule is
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
    """What arrives at a node is late. ``correlation``: how much a delay is like the one before."""

    correlation: float | None = None

    @property
    def asked(self) -> dict[str, Any]:
        """All of it."""
        return {
            "delay": self.seconds,
            "jitter": self.jitter,
            "correlation": self.correlation or 0.0,
            "distribution": self.distribution or "uniform",
        }

    def hit(self, counters: dict[str, Any]) -> int:
        """What was late, or still waits."""
        return int(counters["released"] + counters["waiting"])


@dataclass(frozen=True)
class Lose(_Held):
    """Of what arrives at a node a ``share`` of the packets is lost, and one loss is like the one before."""

    share: float
    correlation: float = 0.0
    plane: Plane = Plane.ALL

    @property
    def asked(self) -> dict[str, Any]:
        """Both."""
        return {"loss": self.share, "loss-correlation": self.correlation}

    def hit(self, counters: dict[str, Any]) -> int:
        """What was lost."""
        return int(counters["dropped"])

    def facts(self, counters: dict[str, Any]) -> dict[str, Any]:
        """As other mechanisms that lose packets report it."""
        return {"packets_dropped": counters["dropped"], "packets": counters["received"]}


@dataclass(frozen=True)
class Reorder(Overtaken, _Held):
    """Of what arrives at a node, some packets overtake the others."""

    @property
    def asked(self) -> dict[str, Any]:
        """Both."""
        return {"overtake": self.share, "delay": self.seconds}

    def hit(self, counters: dict[str, Any]) -> int:
        """What went on before others that had come earlier."""
        return int(counters["overtook"])


def chain_of(tag: str) -> str:
    """The chain of one injection."""
    return f"KT-{tag}-H"


def queue_of(tag: str) -> int:
    """The queue of one injection: never 0, which is what others take who name none."""
    return 1 + int(tag, 16) % 0xFFFF
