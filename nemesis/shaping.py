"""Shaping a node's traffic with tc, as shell text. Nothing here runs anything.

All shapes of a node share one htb root per direction; each injection has a class of its own there, with one queue as
its leaf, and filters that send a plane's packets to it. What no filter matches is not shaped. What arrives cannot be
queued where it arrives: it is redirected to an ifb device and shaped there.
"""

import json
import math
from dataclasses import dataclass

from harness.core.topology import PORTS, Node, Plane

_ROOT = "4b54"  # "KT"
_IFB = "kt-ifb"
_UNLIMITED = "10gbit"

#: Seconds between two looks at a queue that drains.
_LOOK_S = 0.1


@dataclass(frozen=True)
class Shape:
    """A class of one injection: the tc text of the queue that it sends from, and what goes through it.

    A queue that is removed is empty, or ``drains_within`` so many seconds are over: packets that are thrown away are
    sent again only after a timeout that was learnt from their delay. ``drains_as`` is what it becomes to be empty soon.
    """

    queue: str
    plane: Plane = Plane.ALL
    arriving_too: bool = False
    drains_within: float = 0.0
    drains_as: str | None = None


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


def minor(tag: str) -> str:
    """The class of an injection, in hexadecimal: never 0, and below the root and all that tc reserves."""
    return f"{int(tag, 16) % 0x4000 + 0x10:x}"


def apply_shape(node: Node, shape: Shape, tag: str) -> str:
    """Shell: put the shape on the device that has the node's address; nothing where it is there already."""
    script = _remove(tag) + _class("$dev", shape, tag)
    if shape.arriving_too:
        script += (
            f"if ! ip link show {_IFB} >/dev/null 2>&1; then\n"
            f"  ip link add {_IFB} txqueuelen 10000 type ifb\n"
            f"  ip link set {_IFB} up\n"
            "  tc qdisc add dev $dev handle ffff: ingress\n"
            "  tc filter add dev $dev parent ffff: protocol ip prio 1 u32 match u32 0 0"
            f" action mirred egress redirect dev {_IFB}\n"
            "fi\n"
        ) + _class(_IFB, shape, tag)
    last = _IFB if shape.arriving_too else "$dev"
    there = f"tc filter show dev {last} parent {_ROOT}: 2>/dev/null | grep -q 'flowid {_ROOT}:{minor(tag)} '"
    return f"{_find(node)}if ! {there}; then\n{script}fi\n"


def remove_shape(node: Node, shape: Shape, tag: str) -> str:
    """Shell: let what waits in this injection's queues go, and nothing more in; then remove its classes, and the root
    with the last of them. Fails if any of it is left."""
    number = minor(tag)
    release = ""
    if shape.drains_as is not None:
        release = f"    tc qdisc change dev $d parent {_ROOT}:{number} handle {number}: {shape.drains_as}\n"
    drain = (
        f"for d in $dev {_IFB}; do\n"
        f"  if tc class show dev $d 2>/dev/null | grep -q ' {_ROOT}:{number} '; then\n"
        f"    tc filter del dev $d parent {_ROOT}: prio {int(number, 16)} 2>/dev/null || true\n"
        f"{release}"
        "  fi\n"
        "done\n"
        "tries=0\n"
        f"while [ $tries -lt {math.ceil(shape.drains_within / _LOOK_S)} ] &&"
        f" tc -s qdisc show | sed -n '/ {number}: /,/backlog/p' | grep backlog | grep -qv ' 0b 0p '; do\n"
        f"  sleep {_LOOK_S}; tries=$((tries + 1))\n"
        "done\n"
    )
    return _find(node) + drain + _remove(tag)


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


def count_shape() -> str:
    """Shell: all queues with their counters, as JSON."""
    return "tc -j -s qdisc show\n"


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


def _class(dev: str, shape: Shape, tag: str) -> str:
    number = minor(tag)
    add = f"tc filter add dev {dev} parent {_ROOT}: protocol ip prio {int(number, 16)} u32"
    filters = "".join(f"{add} {match} flowid {_ROOT}:{number}\n" for match in _matches(shape.plane))
    return (
        f"tc qdisc show dev {dev} root | grep -q ' {_ROOT}: ' || tc qdisc add dev {dev} root handle {_ROOT}: htb\n"
        f"tc class add dev {dev} parent {_ROOT}: classid {_ROOT}:{number} htb rate {_UNLIMITED} quantum 1514\n"
        f"tc qdisc add dev {dev} parent {_ROOT}:{number} handle {number}: {shape.queue}\n"
        f"{filters}"
    )


def _matches(plane: Plane) -> list[str]:
    if not PORTS[plane]:
        return ["match u32 0 0"]
    return [
        f"match ip protocol 6 0xff match ip {end} {port} 0xffff" for port in PORTS[plane] for end in ("sport", "dport")
    ]
