"""What packets meet between nodes in namespaces, seen by whoever sends them; and faults that act by one means alone."""

import statistics
from pathlib import Path
from typing import Any, cast

from typing_extensions import override

from harness.core.topology import Node, Ports
from harness.core.waiting import wait_for
from nemesis.catalogue import FAULTS
from nemesis.fault import Fault
from nemesis.mechanisms.mechanism import Either, Mechanism

from .namespaces import NamespaceShell

PORTS = Ports()


def by(means: str, kind: str, **written: Any) -> Fault:
    """A fault as a scenario writes it, that acts by ``netem`` or by ``nfqueue``, whatever the kernel has."""
    usual: Any = FAULTS[kind]

    class Only(usual):  # type: ignore[misc]
        @override
        def mechanism(self) -> Mechanism:
            either = super().mechanism()
            assert isinstance(either, Either)
            return next(one for one in (either.first, either.second) if one.name == means)

    return cast(Fault, Only.model_validate(written))


def node(shell: NamespaceShell, name: str) -> Node:
    found = shell.topology.named(name)
    assert found is not None
    return found


def connects(shell: NamespaceShell, sender: str, receiver: str, port: int = PORTS.replication, times: int = 5) -> float:
    """Seconds that a connection takes: the median of so many, one after the other (a busy machine may delay some)."""
    address = node(shell, receiver).address
    once = f"t=$EPOCHREALTIME; : <>/dev/tcp/{address}/{port}; u=$EPOCHREALTIME; echo $((${{u/./}} - ${{t/./}}))"
    said = shell.in_network_of(node(shell, sender), f"bash -c 'for i in $(seq {times}); do {once}; done'")
    return statistics.median(int(line) / 1e6 for line in said.split())


#: Sends numbered datagrams and prints, of those that came, number and seconds under way.
DATAGRAMS = """
import socket, sys, threading, time
address, count, within = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
receiving = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiving.bind((address, 0))
receiving.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)  # SO_RCVBUFFORCE: whoever reads slowly loses nothing
receiving.settimeout(30)
print(receiving.getsockname()[1], flush=True)
for _ in range(count):
    try:
        number, sent = receiving.recv(64).split()
    except TimeoutError:
        break
    receiving.settimeout(within)
    print(int(number), time.monotonic() - float(sent), flush=True)
"""
SENDING = """
import socket, sys, time
to = (sys.argv[1], int(sys.argv[2]))
sending = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for number in range(int(sys.argv[3])):
    sending.sendto(b"%d %f" % (number, time.monotonic()), to)
    time.sleep(float(sys.argv[4]))
"""


def sent(shell: NamespaceShell, tmp_path: Path, count: int, every: float = 0.001) -> list[tuple[int, float]]:
    """Datagrams from b2 to b1, in the order that they came: the number of each, and seconds under way."""
    for name, text in (("receive", DATAGRAMS), ("send", SENDING)):
        (tmp_path / name).write_text(text)
    b1, b2, _ = shell.topology.nodes
    came = tmp_path / "came"
    came.unlink(missing_ok=True)
    shell.start_helper(b1, "receive", f"exec python3 {tmp_path}/receive {b1.address} {count} 2 >{came}")
    try:
        (port,) = wait_for(lambda: came.exists() and came.read_text().splitlines()[:1], "the receiver", 10, every=0.02)
        shell.in_network_of(b2, f"python3 {tmp_path}/send {b1.address} {port} {count} {every}")
        shell.helper(b1, "receive").wait(60)
    finally:
        shell.stop_helper(b1, "receive")
    return [(int(number), float(took)) for number, took in map(str.split, came.read_text().splitlines()[1:])]


#: Sends what it can to a port, and prints how many megabytes a second that is.
STREAM = """
import socket, sys, time
to = socket.create_connection((sys.argv[1], 9094))
began = time.monotonic()
to.sendall(bytes(20_000_000))
to.shutdown(socket.SHUT_WR)
to.recv(1)
print(20 / (time.monotonic() - began))
"""


def throughput(shell: NamespaceShell, tmp_path: Path, sender: Node, receiver: Node) -> float:
    """Megabytes a second of one connection."""
    (tmp_path / "stream").write_text(STREAM)
    return float(shell.in_network_of(sender, f"python3 {tmp_path}/stream {receiver.address}"))
