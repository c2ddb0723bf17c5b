"""A node's traffic in queues of tc: late, lossy, or thin.

All shapes of a node share one htb root per direction; each injection has a class of its own there, with one queue as
its leaf, and filters that send a plane's packets to it. What no filter matches is not shaped. What arrives cannot be
queued where it arrives: it is redirected to an ifb device and shaped there.
"""

import json
import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from harness.core.topology import PORTS, Node, Plane
from nemesis.mechanisms.mechanism import Counted

_ROOT = "4b54"  # "KT"
_IFB = "kt-ifb"
_UNLIMITED = "10gbit"

#: Seconds between two looks at a queue that drains.
_LOOK_S = 0.1

#: Packets that a queue holds: what is late is not to be lost as well. (netem's own limit is 1000.)
_ROOM = 100_000

#: An Ethernet frame's bytes.
_FRAME = 1514

#: Seconds of a rate that may pass at once. What comes in such a time is not faster than the rate, however it comes.
_BURST_S = 0.1

#: Seconds for a queue to drain, at most: of one that is longer the rest is thrown away.
_DRAIN_S = 60.0


@dataclass(frozen=True)
class Traffic:
    """What went through an injection's own queues.

    ``waiting``: packets that are in them now. ``overlimits``: how often one was held back because its rate was used up
    (tbf counts it where a packet is at hand; htb does whenever a packet is larger than its burst).
    """

    packets: int
    bytes: int
    drops: int
    waiting: int
    overlimits: int


class _Shape(ABC):
    """A class of one injection, with a queue that a plane's packets wait in."""

    plane: Plane
    #: Whether what arrives is shaped too.
    arriving_too: ClassVar[bool] = False
    #: What the queue becomes to be empty soon.
    drains_as: ClassVar[str | None] = None

    name: ClassVar[str] = "netem"
    probe: ClassVar[str] = "tc qdisc add dev lo root netem && tc qdisc del dev lo root"
    helper: ClassVar[str | None] = None

    @property
    @abstractmethod
    def queue(self) -> str:
        """The tc text of the queue."""

    @property
    def drains_within(self) -> float:
        """Seconds that its removal waits for what is in the queue.

        Packets that are thrown away are sent again only after a timeout that was learnt from their delay.
        """
        return 0.0

    @abstractmethod
    def hit(self, passed: Traffic) -> int:
        """How many packets it acted on."""

    def apply(self, node: Node, tag: str) -> str:
        """Shell: put it on the device that has the node's address; nothing where it is there already."""
        script = _remove(tag) + self._class("$dev", tag)
        if self.arriving_too:
            script += (
                f"if ! ip link show {_IFB} >/dev/null 2>&1; then\n"
                f"  ip link add {_IFB} txqueuelen 10000 type ifb\n"
                f"  ip link set {_IFB} up\n"
                "  tc qdisc add dev $dev handle ffff: ingress\n"
                "  tc filter add dev $dev parent ffff: protocol ip prio 1 u32 match u32 0 0"
                f" action mirred egress redirect dev {_IFB}\n"
                "fi\n"
            ) + self._class(_IFB, tag)
        last = _IFB if self.arriving_too else "$dev"
        there = f"tc filter show dev {last} parent {_ROOT}: 2>/dev/null | grep -q 'flowid {_ROOT}:{minor(tag)} '"
        return f"{_find(node)}if ! {there}; then\n{script}fi\n"

    def count(self, tag: str) -> str:  # noqa: ARG002 - tc lists all queues
        """Shell: all queues with their counters, as JSON."""
        return "tc -j -s qdisc show\n"

    def read(self, node: Node, tag: str, listing: str) -> Counted | None:  # noqa: ARG002 - the same on every node
        """What went through its own queues."""
        passed = traffic(listing, tag)
        return None if passed is None else Counted(self.hit(passed), self.facts(passed))

    def facts(self, passed: Traffic) -> dict[str, Any]:
        """The counters, as evidence has them."""
        return asdict(passed)

    def remove(self, node: Node, tag: str) -> str:
        """Shell: let what waits in its queues go, and nothing more in; then remove its classes, and the root with the
        last of them. Fails if any of it is left."""
        number = minor(tag)
        release = ""
        if self.drains_as is not None:
            release = f"    tc qdisc change dev $d parent {_ROOT}:{number} handle {number}: {self.drains_as}\n"
        drain = (
            f"for d in $dev {_IFB}; do\n"
            f"  if tc class show dev $d 2>/dev/null | grep -q ' {_ROOT}:{number} '; then\n"
            f"    tc filter del dev $d parent {_ROOT}: prio {int(number, 16)} 2>/dev/null || true\n"
            f"{release}"
            "  fi\n"
            "done\n"
            "tries=0\n"
            f"while [ $tries -lt {math.ceil(self.drains_within / _LOOK_S)} ] &&"
            f" tc -s qdisc show | sed -n '/ {number}: /,/backlog/p' | grep backlog | grep -qv ' 0b 0p '; do\n"
            f"  sleep {_LOOK_S}; tries=$((tries + 1))\n"
            "done\n"
        )
        return _find(node) + drain + _remove(tag)

    def _class(self, dev: str, tag: str) -> str:
        number = minor(tag)
        add = f"tc filter add dev {dev} parent {_ROOT}: protocol ip prio {int(number, 16)} u32"
        filters = "".join(f"{add} {match} flowid {_ROOT}:{number}\n" for match in _matches(self.plane))
        return (
            f"tc qdisc show dev {dev} root | grep -q ' {_ROOT}: ' || tc qdisc add dev {dev} root handle {_ROOT}: htb\n"
            f"tc class add dev {dev} parent {_ROOT}: classid {_ROOT}:{number} htb rate {_UNLIMITED} quantum {_FRAME}\n"
            f"tc qdisc add dev {dev} parent {_ROOT}:{number} handle {number}: {self.queue}\n"
            f"{filters}"
        )


@dataclass(frozen=True)
class Delay(_Shape):
    """What a node sends is ``seconds`` late, give or take ``jitter`` (netem)."""

    seconds: float
    jitter: float = 0.0
    correlation: float | None = None
    distribution: str | None = None
    plane: Plane = Plane.ALL

    @property
    def drains_within(self) -> float:
        """What is late has left by then."""
        return min(self.seconds + 4 * self.jitter + 1, _DRAIN_S)

    @property
    def queue(self) -> str:
        """A netem queue."""
        text = f"netem limit {_ROOM} delay {_ms(self.seconds)}"
        if self.jitter:
            text += f" {_ms(self.jitter)}"
        if self.correlation is not None:
            text += f" {_percent(self.correlation)}"
        if self.distribution is not None:
            text += f" distribution {self.distribution}"
        return text

    def hit(self, passed: Traffic) -> int:
        """What was late, or still waits: netem counts what leaves."""
        return passed.packets + passed.waiting


@dataclass(frozen=True)
class Lose(_Shape):
    """Of what a node sends a random ``share`` of the packets is lost (netem)."""

    share: float
    correlation: float | None = None
    plane: Plane = Plane.ALL

    @property
    def queue(self) -> str:
        """A netem queue."""
        correlation = "" if self.correlation is None else f" {_percent(self.correlation)}"
        return f"netem limit {_ROOM} loss {_percent(self.share)}{correlation}"

    def hit(self, passed: Traffic) -> int:
        """What was lost."""
        return passed.drops

    def facts(self, passed: Traffic) -> dict[str, Any]:
        """As other ways of losing packets tell it."""
        return {"packets_dropped": passed.drops, "by": self.name}


@dataclass(frozen=True)
class Limit(_Shape):
    """A node sends and receives no faster than ``rate`` bits a second (tbf)."""

    rate: int
    plane: Plane = Plane.ALL
    arriving_too: ClassVar[bool] = True
    drains_as: ClassVar[str | None] = f"tbf rate {_UNLIMITED} burst 1mb limit {_ROOM * _FRAME}"
    name: ClassVar[str] = "tbf"
    probe: ClassVar[str] = "tc qdisc add dev lo root tbf rate 1mbit burst 3028 limit 9000 && tc qdisc del dev lo root"

    @property
    def drains_within(self) -> float:
        """Few moments, as fast as it then sends."""
        return _DRAIN_S

    @property
    def queue(self) -> str:
        """A tbf queue."""
        burst = max(2 * _FRAME, round(self.rate / 8 * _BURST_S))
        return f"tbf rate {self.rate}bit burst {burst} limit {_ROOM * _FRAME}"

    def hit(self, passed: Traffic) -> int:
        """What had to wait for its turn."""
        return passed.overlimits + passed.waiting


def minor(tag: str) -> str:
    """The class of an injection, in hexadecimal: never 0, and below the root and all that tc reserves."""
    return f"{int(tag, 16) % 0x4000 + 0x10:x}"


def traffic(listing: str, tag: str) -> Traffic | None:
    """What a ``tc -j -s qdisc show`` listing says of an injection's queues; None where it has none."""
    queues = json.loads(listing or "[]")
    mine = [q for q in queues if q.get("handle") == f"{minor(tag)}:"]
    if not mine:
        return None
    return Traffic(
        packets=sum(q["packets"] for q in mine),
        bytes=sum(q["bytes"] for q in mine),
        drops=sum(q["drops"] for q in mine),
        waiting=sum(q["qlen"] for q in mine),
        overlimits=sum(q["overlimits"] for q in mine),
    )


def _find(node: Node) -> str:
    return f"set -- $(ip -o -4 addr show to {node.address}/32)\ndev=$2\n"


def _remove(tag: str) -> str:
    number = minor(tag)
    return (
        f"for d in $dev {_IFB}; do\n"
        f"  if tc class show dev $d 2>/dev/null | grep -q ' {_ROOT}:{number} '; then\n"
        f"    tc filter del dev $d parent {_ROOT}: prio {int(number, 16)} 2>/dev/null || true\n"
        f"    tc class del dev $d classid {_ROOT}:{number}\n"
        f"    if ! tc class show dev $d | grep -q .; then tc qdisc del dev $d root; fi\n"
        "  fi\n"
        "done\n"
        f"if ip link show {_IFB} >/dev/null 2>&1 && ! tc class show dev {_IFB} | grep -q .; then\n"
        "  tc qdisc del dev $dev ingress\n"
        f"  ip link del {_IFB}\n"
        "fi\n"
        f"if tc qdisc show | grep ' {number}: '; then echo 'queue {number}: is left' >&2; exit 1; fi\n"
    )


def _matches(plane: Plane) -> list[str]:
    if not PORTS[plane]:
        return ["match u32 0 0"]
    return [
        f"match ip protocol 6 0xff match ip {end} {port} 0xffff" for port in PORTS[plane] for end in ("sport", "dport")
    ]


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:g}ms"


def _percent(share: float) -> str:
    return f"{share * 100:g}%"
