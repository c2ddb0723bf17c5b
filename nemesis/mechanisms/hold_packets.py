"""A program that runs next to a node: it holds packets of a netfilter queue, and lets each go when it is due.

``hold NAME`` serves a queue of its network namespace until it is asked to end. A rule sends packets there (``-j NFQUEUE
--queue-num N --queue-bypass``); if no program serves the queue, they pass at once. ``ask NAME`` prints the counters of
that holder as one line of JSON, and fails if none answers; ``--end`` then ends the holder. ``try`` fails if a queue
cannot be opened.

It speaks raw netlink (linux/netfilter/nfnetlink_queue.h) and needs only Python 3.8, because it runs on the nodes'
machines. It answers on an abstract unix socket: like the queue, the socket's name belongs to one network namespace.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import heapq
import json
import math
import select
import socket
import struct
import sys
import time
from collections import deque
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Numbers of linux/netlink.h, linux/netfilter/nfnetlink.h and nfnetlink_queue.h: a family, messages, and flags.
_NETLINK_NETFILTER = 12
_QUEUE_SUBSYSTEM = 3 << 8
_PACKET, _VERDICT, _CONFIG = _QUEUE_SUBSYSTEM, _QUEUE_SUBSYSTEM | 1, _QUEUE_SUBSYSTEM | 2
_REQUEST, _ACK = 1, 4
#: Attributes of a configuration, and of a packet and its verdict.
_COMMAND, _COPY, _LENGTH, _MASK, _FLAGS = 1, 2, 3, 4, 5
_HEADER, _WHAT = 1, 2
_BIND, _COPY_NOTHING = 1, 1
_DROP, _ACCEPT = 0, 1
#: NFQA_CFG_F_GSO: a large packet that the network card would split stays whole.
_KEEP_WHOLE = 1 << 2
_FORCE_BUFFER = 33  # SO_RCVBUFFORCE

#: The most packets that may be held at a time, and bytes for the kernel's messages about them. More are lost, and
#: counted.
_ROOM = 100_000
_BUFFER = 64 << 20

#: Seconds in which a living holder answers, even on a busy machine.
_PATIENCE_S = 10

#: The first word of a client that asks.
_COUNTERS, _END = b"counters", b"end"

#: The hold times in the counters are those of this many last packets.
_SAMPLES = 10_000


class Correlated:
    """Random numbers from 0 to 1, each correlated with the one before. They are evenly distributed for any correlation.

    (A weighted mean of the last number and a new one is not: it stays near the middle, so delays would vary too
    little.)
    """

    def __init__(self, random: Random, correlation: float) -> None:
        self._random, self._correlation, self._last = random, correlation, random.gauss(0.0, 1.0)
        self._new = math.sqrt(1 - correlation * correlation)

    def next(self) -> float:
        """The next number: a correlated normal one, mapped by the normal distribution function to an even one."""
        self._last = self._correlation * self._last + self._new * self._random.gauss(0.0, 1.0)
        return 0.5 * (1 + math.erf(self._last / math.sqrt(2)))


class PacketLoss:
    """Decides which packets are lost: ``share`` of all, with this ``correlation`` of neighbours.

    The model of Gilbert: the correlation does not change the share.
    """

    def __init__(self, random: Random, share: float, correlation: float) -> None:
        self._random, self._share, self._correlation = random, share, correlation
        self._lost = False

    def next(self) -> bool:
        """Whether the next packet is lost."""
        chance = self._share * (1 - self._correlation) + (self._correlation if self._lost else 0.0)
        self._lost = self._random.random() < chance
        return self._lost


def deviation(distribution: str, uniform: float) -> float:
    """The deviation of a delay, in units of the jitter, for a number from 0 to 1: as in netem's tables (iproute2,
    netem/)."""
    if distribution == "uniform":
        return 2 * uniform - 1
    if distribution == "normal":
        return _normal(uniform)
    if distribution == "pareto":
        return _pareto(uniform)
    return 0.25 * _normal(uniform) + 0.75 * _pareto(uniform)


def _normal(uniform: float) -> float:
    """The inverse of the normal distribution (Odeh and Evans, 1974), limited to four times the jitter."""
    tail = math.sqrt(-2 * math.log(max(min(uniform, 1 - uniform), 1e-5)))
    above = (((4.53642210148e-5 * tail + 0.0204231210245) * tail + 0.342242088547) * tail + 1) * tail + 0.322232431088
    below = (((0.0038560700634 * tail + 0.103537752850) * tail + 0.531103462366) * tail + 0.588581570495) * tail
    return max(-4.0, min(4.0, math.copysign(tail - above / (below + 0.0993484626060), uniform - 0.5)))


def _pareto(uniform: float) -> float:
    """A pareto distribution of shape 3 and mean 0, limited to four times the jitter."""
    return min(4.0, (math.pow(max(1 - uniform, 1e-9), -1 / 3) - 1.5) * 4 / 3)


class Policy:
    """Decides about each packet: it is lost, overtakes the held ones, or is held for some seconds."""

    def __init__(self, options: argparse.Namespace) -> None:
        random = Random(options.seed)
        self._delay: float = options.delay
        self._jitter: float = options.jitter
        self._distribution: str = options.distribution
        self._overtake: float = options.overtake
        self._random = random
        self._losses = PacketLoss(random, options.loss, options.loss_correlation)
        self._deviations = Correlated(random, options.correlation)

    def decide(self) -> float | None:
        """Seconds to hold the next packet; 0: it passes at once; None: it is lost."""
        if self._losses.next():
            return None
        if self._overtake and self._random.random() < self._overtake:
            return 0.0
        if not self._jitter:
            return self._delay
        return max(0.0, self._delay + self._jitter * deviation(self._distribution, self._deviations.next()))


class Queue:
    """One netfilter queue of this network namespace. Raises OSError if it cannot be opened."""

    def __init__(self, number: int, room: int = _ROOM) -> None:
        self._number, self._sequence = number, 0
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_NETFILTER)
        self.socket.bind((0, 0))
        try:
            self.socket.setsockopt(socket.SOL_SOCKET, _FORCE_BUFFER, _BUFFER)
        except PermissionError:  # root of a user namespace only: the machine's limit applies
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        self._configure(_attribute(_COMMAND, struct.pack(">BxH", _BIND, socket.AF_UNSPEC)))
        self._configure(_attribute(_COPY, struct.pack(">IB", 0, _COPY_NOTHING)))
        self._configure(_attribute(_LENGTH, struct.pack(">I", room)))
        whole = struct.pack(">I", _KEEP_WHOLE)
        self._configure(_attribute(_MASK, whole) + _attribute(_FLAGS, whole))

    def arrived(self) -> list[int]:
        """The ids of the packets that arrived since the last call. It does not wait."""
        found: list[int] = []
        while True:
            try:
                found += _packets(self.socket.recv(1 << 20, socket.MSG_DONTWAIT))
            except BlockingIOError:
                return found
            except OSError as exc:
                # The kernel had more messages than the buffer holds: ``overflowed`` counts the packets lost by that.
                if exc.errno != errno.ENOBUFS:
                    raise

    def decide(self, packet: int, what: int) -> None:
        """Let a packet go on, or drop it."""
        self._send(_VERDICT, _REQUEST, _attribute(_WHAT, struct.pack(">II", what, packet)))

    def overflowed(self) -> int:
        """How many packets the kernel dropped because the queue or its buffer was full."""
        for line in Path("/proc/net/netfilter/nfnetlink_queue").read_text(encoding="ascii").splitlines():
            number, _, _, _, _, queue_dropped, user_dropped, *_ = map(int, line.split())
            if number == self._number:
                return queue_dropped + user_dropped
        return 0

    def _configure(self, attributes: bytes) -> None:
        self._send(_CONFIG, _REQUEST | _ACK, attributes)
        [code] = struct.unpack_from("i", self.socket.recv(4096), 16)
        if code:
            raise OSError(-code, f"queue {self._number} cannot be opened")

    def _send(self, kind: int, flags: int, attributes: bytes) -> None:
        self._sequence += 1
        body = struct.pack(">BBH", socket.AF_UNSPEC, 0, self._number) + attributes
        self.socket.send(struct.pack("IHHII", 16 + len(body), kind, flags, self._sequence, 0) + body)


def _attribute(kind: int, data: bytes) -> bytes:
    return struct.pack("HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)


def _packets(data: bytes) -> Iterator[int]:
    """The ids of the packets in the kernel's messages, each of which has attributes."""
    at = 0
    while at + 16 <= len(data):
        length, kind = struct.unpack_from("IH", data, at)
        inner = at + 20
        while kind == _PACKET and inner < at + length:
            size, attribute = struct.unpack_from("HH", data, inner)
            if attribute == _HEADER:
                yield struct.unpack_from(">I", data, inner + 4)[0]
                break
            inner += (size + 3) & ~3
        at += (length + 3) & ~3


class Holder:
    """Holds the packets of a queue, and counts them."""

    def __init__(self, queue: Queue, policy: Policy) -> None:
        self._queue, self._policy = queue, policy
        self._held: list[tuple[float, int, float]] = []
        self._counts: dict[str, int] = {"received": 0, "released": 0, "dropped": 0, "overtook": 0, "passed": 0}
        self._hold_times: deque[float] = deque(maxlen=_SAMPLES)

    def serve(self, name: str) -> None:
        """Hold and release packets, and answer clients that ask for counters, until a client asks to end."""
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(_address(name))
            listener.listen()
            word = b""
            while word != _END:
                self._release(time.monotonic())
                until = max(0.0, self._held[0][0] - time.monotonic()) if self._held else None
                ready, _, _ = select.select([self._queue.socket, listener], [], [], until)
                if self._queue.socket in ready:
                    self._take(time.monotonic())
                if listener in ready:
                    with listener.accept()[0] as client, contextlib.suppress(OSError):
                        client.settimeout(1)
                        word = client.recv(16)
                        client.sendall(json.dumps(self.counters()).encode())

    def counters(self) -> dict[str, object]:
        """Counts of the packets so far. ``waiting``: held now; ``held_ms``: median and 95th percentile of hold
        times."""
        times = sorted(self._hold_times)
        parts = {"p50": 0.5, "p95": 0.95} if times else {}
        held = {name: round(times[int(len(times) * part)] * 1e3, 1) for name, part in parts.items()}
        counts = {**self._counts, "waiting": len(self._held), "overflowed": self._queue.overflowed()}
        return {**counts, "held_ms": held}

    def _take(self, now: float) -> None:
        for packet in self._queue.arrived():
            self._counts["received"] += 1
            hold = self._policy.decide()
            if hold is None:
                self._queue.decide(packet, _DROP)
                self._counts["dropped"] += 1
            elif hold == 0.0:
                self._queue.decide(packet, _ACCEPT)
                self._counts["overtook" if self._held else "passed"] += 1
            else:
                heapq.heappush(self._held, (now + hold, packet, now))

    def _release(self, now: float) -> None:
        while self._held and self._held[0][0] <= now:
            _, packet, since = heapq.heappop(self._held)
            self._queue.decide(packet, _ACCEPT)
            self._counts["released"] += 1
            self._hold_times.append(now - since)


def refuse(name: str, why: str) -> None:
    """Tell the first client that asks why no packets are held."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(_address(name))
        listener.listen()
        listener.settimeout(_PATIENCE_S)
        with listener.accept()[0] as client:
            client.recv(16)
            client.sendall(json.dumps({"failed": why}).encode())


def ask(name: str, until: str, within: float) -> str | None:
    """The counters of the holder of this name, once it answers or its queue is empty (``until``), or after ``within``
    seconds; None if it does not answer."""
    deadline = time.monotonic() + within
    while True:
        counters = _answer(name, _COUNTERS)
        empty = counters is None or not json.loads(counters).get("waiting")
        if (counters is not None if until == "answers" else empty) or time.monotonic() >= deadline:
            return counters
        time.sleep(0.02)


def _answer(name: str, word: bytes) -> str | None:
    try:
        with socket.socket(socket.AF_UNIX) as asking:
            asking.settimeout(_PATIENCE_S)
            asking.connect(_address(name))
            asking.sendall(word)
            return asking.makefile().read() or None
    except OSError:
        return None


def _address(name: str) -> str:
    return f"\0kafka-trial-{name}"


def parse(arguments: list[str]) -> argparse.Namespace:
    """Parse the command line. Durations are in seconds; shares and correlations are from 0 to 1."""
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("try")
    asking = commands.add_parser("ask")
    asking.add_argument("name")
    asking.add_argument("--until", choices=["answers", "empty"], default="answers")
    asking.add_argument("--within", type=float, default=0.0)
    asking.add_argument("--end", action="store_true")
    holding = commands.add_parser("hold")
    holding.add_argument("name")
    holding.add_argument("--queue", type=int, required=True)
    holding.add_argument("--room", type=int, default=_ROOM)
    holding.add_argument("--seed", default="")
    for number in ("delay", "jitter", "correlation", "loss", "loss-correlation", "overtake"):
        holding.add_argument(f"--{number}", type=float, default=0.0)
    kinds = ["uniform", "normal", "pareto", "paretonormal"]
    holding.add_argument("--distribution", choices=kinds, default="uniform")
    return parser.parse_args(arguments)


def main() -> int:
    """Do what the command line says; return an exit code."""
    options = parse(sys.argv[1:])
    if options.command == "try":
        Queue(1)
        return 0
    if options.command == "hold":
        try:
            queue = Queue(options.queue, options.room)
        except OSError as exc:
            refuse(options.name, str(exc))
            return 1
        Holder(queue, Policy(options)).serve(options.name)
        return 0
    counters = ask(options.name, options.until, options.within)
    if options.end:
        _answer(options.name, _END)
    failed = "nobody who holds packets answers" if counters is None else json.loads(counters).get("failed")
    if failed:
        print(failed, file=sys.stderr)
        return 1
    print(counters)
    return 0


if __name__ == "__main__":
    sys.exit(main())
