"""Puts a node's traffic into queues of tc: packets are late, lost, or limited in rate.

All shapes of a node share one htb root per direction. Each injection has its own class there, with one queue as its
leaf, and filters that send a plane's packets to it. A packet that no filter matches is not shaped. tc cannot queue
arriving packets on their own device: they are redirected to an ifb device and shaped there.
"""

import json
import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from harness.core.topology import Node, Plane, Ports
from nemesis.mechanisms.mechanism import ARRIVING, DRAIN_S, LEAVING, Counted, Helper

ROOT = "4b54"  # "KT"
IFB = "kt-ifb"

#: Shell: load the module without the two devices that it makes by default.
LOAD_IFB = "[ -d /sys/module/ifb ] || modprobe -q ifb numifbs=0 2>/dev/null || true\n"

#: htb and tbf need a rate. A choice, so high that it should hold nothing back.
_UNLIMITED = "10gbit"

#: Filters match in the order of their numbers; those of injections begin with 16 (``minor``).
_FIRST = 1

#: Seconds between two looks at a draining queue.
_LOOK_S = 0.1

#: tc's command that lists all queues.
LISTED = "qdisc show\n"

#: Packets that a queue can hold: enough that late packets are not lost. (netem's own limit is 1000.)
ROOM = 100_000


#: Bytes of an Ethernet frame.
_FRAME = 1514

#: How many seconds' worth of a rate may pass at once: within such a time packets may come in any pattern.
_BURST_S = 0.1

#: Shell: test whether a queue of netem can be a leaf of an htb root, with filters that send packets to it. If all
#: modules are loaded it need not try: to add and remove a root costs two grace periods of the kernel.
_PROBE = (
    "[ -d /sys/module/sch_htb ] && [ -d /sys/module/sch_netem ] && [ -d /sys/module/cls_u32 ] || {"
    " tc qdisc add dev lo root handle 1: htb && {"
    " printf '%s\\n' 'class add dev lo parent 1: classid 1:10 htb rate 10gbit'"
    " 'qdisc add dev lo parent 1:10 netem'"
    " 'filter add dev lo parent 1: protocol ip prio 1 u32 match ip sport 9 0xffff flowid 1:10'"
    " 'qdisc del dev lo root' | tc -batch - || { tc qdisc del dev lo root; false; }; }; }"
)

#: Shell functions. ``kt_tc`` runs several commands of tc, one a line, in one process, because starting a process is
#: what costs on a small machine. ``kt_list`` puts all that is on a device into ``kt_listed``. ``kt_has``: whether an
#: injection has a class on a device. ``kt_ifb``: whether the ifb device is there. ``kt_look`` calls ``kt_list`` for
#: ``$dev``, and puts the list of the ifb device into ``kt_arrives``.
_FUNCTIONS = f"""\
kt_tc() {{
  kt_said=$(tc -batch - 2>&1) || {{
    echo "${{kt_said%
Command failed*}}" >&2
    return 1
  }}
}}
kt_list() {{
  kt_listed=$(tc -force -batch - 2>/dev/null <<TC
filter show dev $1 parent {ROOT}:
class show dev $1
qdisc show dev $1
TC
) || true
}}
kt_has() {{ case "$(tc class show dev "$1" 2>/dev/null)" in *" {ROOT}:$2 "*) ;; *) return 1 ;; esac; }}
kt_ifb() {{
  while read -r kt_name kt_rest; do if [ "$kt_name" = {IFB}: ]; then return 0; fi; done </proc/net/dev
  return 1
}}
kt_look() {{
  kt_arrives=
  if kt_ifb; then kt_list {IFB}; kt_arrives=$kt_listed; fi
  kt_list $dev
}}
"""


#: Shell, after ``kt_look``: redirect arriving packets to the ifb device; ``kt_failed`` undoes that. (If the device
#: exists, the ingress queue is ours, because both are always removed together.)
_ARRIVES = f"""\
kt_failed() {{ return 1; }}
if ! kt_ifb; then
  case "$kt_listed" in *" ffff: parent ffff:fff1"*)
    echo "$dev has an ingress queue that is not ours: what arrives there cannot be shaped" >&2
    exit 1 ;;
  esac
  {LOAD_IFB}\
  ip -batch - <<IP
link add {IFB} txqueuelen 10000 type ifb
link set {IFB} up
IP
  kt_failed() {{
    tc qdisc del dev $dev ingress 2>/dev/null || true
    ip link del {IFB}
    return 1
  }}
  kt_batch="qdisc add dev $dev handle ffff: ingress
filter add dev $dev parent ffff: protocol ip prio 1 u32 match u32 0 0 action mirred egress redirect dev {IFB}
"
fi
"""


@dataclass(frozen=True)
class Traffic:
    """The traffic of an injection's own queues.

    ``waiting``: packets in the queues now. ``overlimits``: how often a packet was held back because the rate was used
    up (tbf counts this when a packet is ready; htb also counts each packet larger than its burst). ``requeues``: how
    many packets netem let go at once, whether or not they overtook others (sch_netem.c, netem_enqueue).
    """

    packets: int
    bytes: int
    drops: int
    waiting: int
    overlimits: int
    requeues: int


class Shape(ABC):
    """One injection's class, with a queue in which a plane's packets wait."""

    plane: Plane
    #: Whether arriving packets are shaped too.
    arriving_too: ClassVar[bool] = False
    #: The queue's new settings at its removal, so that it is soon empty.
    drains_as: ClassVar[str | None] = None

    name: ClassVar[str] = "netem"
    probe: ClassVar[str] = _PROBE
    helped: ClassVar[bool] = False
    of: ClassVar[str] = LEAVING

    @property
    @abstractmethod
    def queue(self) -> str:
        """The tc text of the queue."""

    @property
    def drains_within(self) -> float:
        """Seconds that the removal waits for the packets in the queue.

        If they were dropped, TCP would send them again only after a timeout, which it has adapted to their delay.
        """
        return 0.0

    @abstractmethod
    def hit(self, passed: Traffic) -> int:
        """How many packets the fault acted on."""

    def apply(self, node: Node, tag: str) -> str:
        """Shell: add the class on the device with the node's address; does nothing if it is there already."""
        number = minor(tag)
        filtered, classed = f'*"flowid {ROOT}:{number} "*', f'*"class htb {ROOT}:{number} "*'
        # One process of tc adds all. A class without its filters, from an unfinished attempt, is removed first.
        if self.arriving_too:
            look, last = "kt_look\n", "$kt_arrives"
            arrives = f"kt_listed=$kt_arrives\n{self._class(IFB, node, tag)}"
            begun, add = _ARRIVES, f"{arrives}kt_tc <<TC || kt_failed\n$kt_batch\nTC\n"
        else:
            look, last = "kt_arrives=\nkt_list $dev\n", "$kt_listed"
            begun, add = "", "kt_tc <<TC\n$kt_batch\nTC\n"
        return (
            f"{_find(node)}{look}"
            f'case "{last}" in {filtered}) ;; *)\n'
            f'case "$kt_arrives$kt_listed" in {classed})\n{_clear(tag)}{look};;\nesac\n'
            f"kt_batch=\n{begun}{self._class('$dev', node, tag)}{add};;\nesac\n"
        )

    def helper(self, node: Node, tag: str, applied: str) -> Helper | None:  # noqa: ARG002 - queues act alone
        """None."""
        return None

    def count(self, tag: str) -> str:  # noqa: ARG002 - tc lists all queues
        """Shell: print all queues with their counters, as JSON."""
        return f"tc -j -s {LISTED}"

    def read(self, node: Node, tag: str, listing: str) -> Counted | None:  # noqa: ARG002 - the same on every node
        """The traffic of its own queues."""
        passed = traffic(listing, tag)
        if passed is None:
            return None
        return Counted(
            self.hit(passed), {"by": self.name, "of": self.of, **self.facts(passed)}, wrong=self.wrong(passed)
        )

    def facts(self, passed: Traffic) -> dict[str, Any]:
        """The counters, as facts of the evidence."""
        return asdict(passed)

    def wrong(self, passed: Traffic) -> str | None:  # noqa: ARG002 - for subclasses
        """Why the shape did not do its work; None if it did."""
        return None

    def remove(self, node: Node, tag: str) -> str:
        """Shell: let no more packets in, wait until the queues are empty, then remove the classes, and with the last
        class the root. Fails if anything is left."""
        number = minor(tag)
        release = ""
        if self.drains_as is not None:
            release = f"    tc qdisc change dev $d parent {ROOT}:{number} handle {number}: {self.drains_as}\n"
        drain = (
            "for d in $devices; do\n"
            f"  if kt_has $d {number}; then\n"
            f"    tc filter del dev $d parent {ROOT}: prio {int(number, 16)} 2>/dev/null || true\n"
            f"{release}"
            "  fi\n"
            "done\n"
            "read -r since rest </proc/uptime\nnow=$since\n"
            f"while [ $((${{now%.*}} - ${{since%.*}})) -le {math.ceil(self.drains_within)} ] &&"
            f" tc -s qdisc show | sed -n '/ {number}: /,/backlog/p' | grep backlog | grep -qv ' 0b 0p '; do\n"
            f"  sleep {_LOOK_S}; read -r now rest </proc/uptime\n"
            "done\n"
        )
        left = f"echo 'queue {number}: is left' >&2\n  exit 1"
        # (A command of its own, so that its failure does not look like an empty list.)
        check = f'kt_left=$(tc qdisc show)\ncase "$kt_left" in *" {number}: "*)\n  {left} ;;\nesac\n'
        return f"{_find(node)}{drain}{_clear(tag)}{check}"

    def _class(self, dev: str, node: Node, tag: str) -> str:
        """Shell, after ``kt_list`` of the device: add the class to ``kt_batch``, before it the root if this is the
        first class."""
        number = minor(tag)
        add = f"filter add dev {dev} parent {ROOT}: protocol ip prio {int(number, 16)} u32"
        filters = "".join(f"{add} {match} flowid {ROOT}:{number}\n" for match in _matches(self.plane, node.ports))
        return (
            "kt_root=\n"
            f'case "$kt_listed" in *"qdisc htb {ROOT}: "*) ;; *)\n'
            f'kt_root="qdisc add dev {dev} root handle {ROOT}: htb\n{_spared(dev, node)}" ;;\nesac\n'
            'kt_batch="$kt_batch$kt_root\n'
            f"class add dev {dev} parent {ROOT}: classid {ROOT}:{number} htb rate {_UNLIMITED} quantum {_FRAME}\n"
            f"qdisc add dev {dev} parent {ROOT}:{number} handle {number}: {self.queue}\n"
            f'{filters}"\n'
        )


@dataclass(frozen=True)
class Limit(Shape):
    """A node sends and receives no faster than ``rate`` bits a second (tbf)."""

    rate: int
    plane: Plane = Plane.ALL
    arriving_too: ClassVar[bool] = True
    of: ClassVar[str] = f"{ARRIVING}, and {LEAVING}"
    drains_as: ClassVar[str | None] = f"tbf rate {_UNLIMITED} burst 1mb limit {ROOM * _FRAME}"
    name: ClassVar[str] = "tbf"
    probe: ClassVar[str] = "tc qdisc add dev lo root tbf rate 1mbit burst 3028 limit 9000 && tc qdisc del dev lo root"

    @property
    def drains_within(self) -> float:
        """The longest time that a removal waits. It takes far less: ``drains_as`` lifts the limit."""
        return DRAIN_S

    @property
    def queue(self) -> str:
        """A tbf queue."""
        burst = max(2 * _FRAME, round(self.rate / 8 * _BURST_S))
        return f"tbf rate {self.rate}bit burst {burst} limit {ROOM * _FRAME}"

    def hit(self, passed: Traffic) -> int:
        """Packets that had to wait."""
        return passed.overlimits + passed.waiting


def minor(tag: str) -> str:
    """The minor number of an injection's class, in hexadecimal: never 0, and below the root's and those that tc
    reserves."""
    return f"{int(tag, 16) % 0x4000 + 0x10:x}"


def traffic(listing: str, tag: str) -> Traffic | None:
    """The traffic of an injection's queues in a ``tc -j -s qdisc show`` listing; None if it has no queue."""
    return _of(json.loads(listing or "[]"), tag)


def looks(listing: str, tag: str) -> list[Traffic | None]:
    """The same for several listings, one after the other."""
    decoder, found, rest = json.JSONDecoder(), list[Traffic | None](), listing.strip()
    while rest:
        queues, end = decoder.raw_decode(rest)
        found.append(_of(queues, tag))
        rest = rest[end:].lstrip()
    return found


def _of(queues: list[dict[str, Any]], tag: str) -> Traffic | None:
    mine = [q for q in queues if q.get("handle") == f"{minor(tag)}:"]
    if not mine:
        return None
    return Traffic(
        packets=sum(q["packets"] for q in mine),
        bytes=sum(q["bytes"] for q in mine),
        drops=sum(q["drops"] for q in mine),
        waiting=sum(q["qlen"] for q in mine),
        overlimits=sum(q["overlimits"] for q in mine),
        requeues=sum(q["requeues"] for q in mine),
    )


def _find(node: Node) -> str:
    return (
        f"{_FUNCTIONS}set -- $(ip -o -4 addr show to {node.address}/32)\n"
        f'if [ $# -lt 2 ]; then echo "it has not the address {node.address} itself" >&2; exit 1; fi\ndev=$2\n'
        f'devices=$dev\nif kt_ifb; then devices="$dev {IFB}"; fi\n'
    )


def _clear(tag: str) -> str:
    """Shell: remove the classes of an injection, and the root and the ifb device if no other class needs them."""
    number = minor(tag)
    return (
        "for d in $devices; do\n"
        f"  if kt_has $d {number}; then\n"
        f"    tc filter del dev $d parent {ROOT}: prio {int(number, 16)} 2>/dev/null || true\n"
        f"    tc class del dev $d classid {ROOT}:{number}\n"
        '    if [ -z "$(tc class show dev $d)" ]; then tc qdisc del dev $d root; fi\n'
        "  fi\n"
        "done\n"
        f'if kt_ifb && [ -z "$(tc class show dev {IFB})" ]; then\n'
        "  tc qdisc del dev $dev ingress\n"
        f"  ip link del {IFB}\n"
        "fi\n"
    )


def _matches(plane: Plane, ports: Ports) -> list[str]:
    if not ports.of(plane):
        return ["match u32 0 0"]
    return [_tcp(end, port) for port in ports.of(plane) for end in ("sport", "dport")]


def _spared(dev: str, node: Node) -> str:
    """A filter before those of all injections: the harness's own connection to the node's machine waits in no queue."""
    if node.control is None:
        return ""
    add = f"filter add dev {dev} parent {ROOT}: protocol ip prio {_FIRST} u32"
    return "".join(f"{add} {_tcp(end, node.control)} flowid {ROOT}:0\n" for end in ("sport", "dport"))


def _tcp(end: str, port: int) -> str:
    return f"match ip protocol 6 0xff match ip {end} {port} 0xffff"
