"""The facts about machines, and what machines lack."""

import json
import re
import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from harness.core import java
from harness.core.clock import SECOND_NS
from harness.core.errors import ClusterError, EnvironmentLacks, HistoryError
from harness.core.topology import Ports
from harness.history.lock import is_recorded
from harness.providers.ssh import text
from harness.providers.ssh.inventory import Host
from harness.providers.ssh.machine import Machine
from nemesis.fault import Needs
from nemesis.mechanisms.tc import IFB, ROOT
from nemesis.preflight import Kernel

#: A queue as tc lists it: `qdisc fq 8001: dev eth0 root refcnt 2 …`.
_QUEUE = re.compile(r"qdisc \S+ \S+ dev \S+ ")


@dataclass(frozen=True)
class Owner:
    """The owner of the node on a machine: the run, its directory, and the host of that directory."""

    run: str
    directory: str
    harness: str

    def line(self) -> str:
        """The line that is written on the machine."""
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, line: str) -> "Owner":
        """The owner that a line names. Raises HistoryError if the line is not one of ours."""
        try:
            return cls(**{key: str(value) for key, value in json.loads(line).items()})
        except (ValueError, TypeError, AttributeError) as exc:
            raise HistoryError(f"no owner of a node can be read in {line[:80]!r}") from exc

    def going(self, here: str) -> str | None:
        """Why the run counts as still going; None if it has ended. ``here``: this host."""
        if self.harness != here:
            return f"whether it is still going cannot be seen from here: it was started on {self.harness}"
        try:
            return "it is still going" if is_recorded(Path(self.directory)) else None
        except OSError as exc:
            return f"whether it is still going cannot be seen ({self.directory}: {exc.strerror})"


@dataclass(frozen=True)
class MachineFacts:
    """The facts about a machine.

    ``client``: this host's address as the machine sees it. ``control``: the port of its sshd. ``owner``: the owner's
    line of its node. ``ports``: the ports on which something listens. ``machine``: its identity, under whatever name.
    ``other_nodes``: the directory and owner of each node that runs in another directory than the inventory's.
    ``devices``: the device of each of its IPv4 addresses. ``queues``: its queues, as tc lists them.
    """

    client: str
    control: int
    kernel: str
    missing: tuple[str, ...]
    java: str | None
    owner: str | None
    ports: frozenset[int]
    machine: str = ""
    other_nodes: tuple[tuple[str, str], ...] = ()
    devices: Mapping[str, str] = field(default_factory=dict)
    queues: tuple[str, ...] = ()

    @classmethod
    def read(cls, printed: str) -> "MachineFacts":
        """The facts that ``text.facts`` printed."""
        pairs = [line.partition("=")[::2] for line in printed.splitlines()]
        values = dict(pairs)
        return cls(
            client=values.get("client", ""),
            control=int(values["control"]) if values.get("control", "").isdigit() else 22,
            kernel=values.get("kernel", ""),
            missing=tuple(values.get("missing", "").split()),
            java=values.get("java"),
            owner=values.get("owner"),
            ports=frozenset(int(value, 16) for key, value in pairs if key == "port"),
            machine=values.get("machine", ""),
            other_nodes=tuple(_node_and_owner(value) for key, value in pairs if key == "other_node"),
            # (If several devices have an address, the first one counts, as for a fault.)
            devices=dict(reversed([value.split()[:2] for key, value in pairs if key == "address"])),
            # (tc prints several lines for some queues.)
            queues=tuple(value for key, value in pairs if key == "queue" and _QUEUE.match(value)),
        )

    def lacks(self, host: Host, ports: Ports) -> Iterator[str]:
        """A line for each thing that the machine lacks to run a node."""
        if self.java is None:
            yield (
                f"{host.called}: no Java at `{host.java}`: install one of {java.OLDEST} or later"
                f" (Debian: {java.PACKAGE}), or set `java` to its path"
            )
        elif (version := java_version(self.java)) is None or version < java.OLDEST:
            needed = f"Java {java.OLDEST} or later is needed: set `java` to one"
            yield f"{host.called}: `{host.java}` is {self.java}; {needed}"
        for tool in self.missing:
            yield f"{host.called}: no {tool}: install it (Debian: {text.TOOLS.get(tool, tool)})"
        if self.owner is None:
            for port in sorted({*vars(ports).values()} & self.ports):
                yield f"{host.called}: port {port} is taken: end what listens there, or set another in `ports`"

    def without_device(self, address: str) -> str | None:
        """Why no fault finds the device with the machine's address, on which it has to act. Loopback addresses have a
        line of their own (``loopbacks``)."""
        device = self.devices.get(address)
        if address.startswith("127.") or not self.devices or device not in {None, "lo"}:
            return None
        if device == "lo":
            return f"its address {address} is on the loopback interface, where no fault acts: name one of a network"
        has = ", ".join(sorted(own for own in self.devices if not own.startswith("127.")))
        return (
            f"it does not have the address {address} itself (it has {has or 'none'}), so no fault finds its traffic:"
            " name it by an address of its own at which this machine and the others reach it"
        )

    def taken(self, address: str) -> Mapping[str, str]:
        """The needs (keys of ``nemesis.preflight.NEEDS``) that cannot be used on the device of an address, because
        somebody else has put a queue there; with the reason."""
        device, ours = self.devices.get(address), any(f" dev {IFB} " in queue for queue in self.queues)
        found: dict[str, str] = {}
        for queue in self.queues:
            # (A queue that the kernel itself puts there has the handle 0.)
            _, kind, handle, _, on, *rest = queue.split()
            if on != device or handle in {"0:", f"{ROOT}:"}:
                continue
            why = f"{device} has a queue that is not ours ({kind} {handle})"
            if rest[:1] == ["root"]:
                found |= dict.fromkeys(("htb", "netem", "tbf"), f"{why}: remove it (tc qdisc del dev {device} root)")
            elif kind in {"ingress", "clsact"} and not ours:
                found["ifb"] = f"{why}, where a fault puts one of its own: remove it (tc qdisc del dev {device} {kind})"
        return found


def named_twice(facts: Mapping[str, MachineFacts]) -> list[str]:
    """A line for each machine that has several hosts. ``facts``: those of each host's machine, by the host's name."""
    return [
        f"{' and '.join(several)} are one machine: name it once, it has one node at a time" for several in alike(facts)
    ]


def alike(facts: Mapping[str, MachineFacts]) -> list[list[str]]:
    """The names of each machine that has several. A machine without a known identity counts as a separate one."""
    names: dict[str, list[str]] = {}
    for name, found in facts.items():
        names.setdefault(found.machine, []).append(name)
    return [several for machine, several in names.items() if machine and len(several) > 1]


def java_version(printed: str) -> int | None:
    """The feature release in the output of ``java -version``: 17 of ``openjdk version "17.0.2"``, 8 of ``1.8.0``."""
    found = re.search(r'version "(?:1\.)?(\d+)', printed)
    return None if found is None else int(found[1])


@contextmanager
def room_for(what: str, machine: Machine) -> Iterator[None]:
    """Raises EnvironmentLacks if the block fails because a machine has too little space."""
    try:
        yield
    except ClusterError as exc:
        if "No space left" not in str(exc):
            raise
        raise EnvironmentLacks(
            f"{machine.called}: no space for {what} in {machine.host.data}: free some, or name another `data`"
        ) from exc


def look(machine: Machine) -> MachineFacts:
    """The facts about a machine. Raises ClusterError."""
    return MachineFacts.read(machine.run(text.facts(machine.host.data, machine.host.java), "look at it"))


def address_of(host: Host) -> str:
    """The IPv4 address of a host. Raises EnvironmentLacks."""
    try:
        found = socket.getaddrinfo(host.address, None, socket.AF_INET, socket.SOCK_STREAM)
    except OSError as exc:
        raise EnvironmentLacks(f"{host.called}: {host.address} has no IPv4 address ({exc.strerror})") from exc
    return str(found[0][4][0])


def loopbacks(hosts: Iterable[Host]) -> list[str]:
    """A line for each host whose address is a loopback address, such as Debian's 127.0.1.1 for a machine's own name:
    other machines would look for its node on themselves. (A host without an address is reported later.)"""
    lines = list[str]()
    for host in hosts:
        with suppress(EnvironmentLacks):
            if (address := address_of(host)).startswith("127."):
                loopback = f"{host.address} is {address}, which is each machine itself"
                lines.append(f"{host.called}: {loopback}: name it by an address of its network")
    return lines


def kernel_of(machine: Machine) -> Kernel:
    """What a machine's kernel has for faults, tried in temporary network namespaces."""
    return Kernel(lambda script: machine.run(text.quoted("unshare", "--net", "sh", "-euc", script), "trial"))


def lacking_for_faults(machine: Machine, facts: MachineFacts, needs: Iterable[Needs]) -> Sequence[str]:
    """A line for each thing that a machine's kernel lacks for faults, or that blocks them on its device."""
    kernel, wanted, address = kernel_of(machine), list(needs), address_of(machine.host)
    lines = [*kernel.lacking(wanted), *in_the_way(kernel, facts, address, wanted)]
    return [f"{machine.called}: {line}" for line in lines]


def in_the_way(kernel: Kernel, facts: MachineFacts, address: str, needs: Iterable[Needs]) -> list[str]:
    """A line for each thing that blocks the kernel's mechanisms on the device of an address. (A fault uses the first
    mechanism that the kernel has, even if only another one would work.)"""
    used = [name for alternatives in needs for name in sorted(kernel.used(alternatives) or ())]
    if not used:
        return []
    no_device, taken = facts.without_device(address), facts.taken(address)
    lines = [] if no_device is None else [no_device]
    return list(dict.fromkeys([*lines, *(taken[name] for name in used if name in taken)]))


def left_there(machine: Machine, facts: MachineFacts) -> str | None:
    """A line if another run's node is on a machine, in whichever directory; else None. A fault in a machine's network
    would hit every node there."""
    if facts.owner is not None:
        return _another(machine, _run_of(facts.owner), "INVENTORY")
    return other_node(machine, facts)


def other_node(machine: Machine, facts: MachineFacts) -> str | None:
    """A line if a node runs on a machine in another directory than the inventory's; else None."""
    if not facts.other_nodes:
        return None
    node, owner = facts.other_nodes[0]
    return _another(machine, f"{_run_of(owner)}, in {node}", "the inventory that names that directory")


def _another(machine: Machine, whose: str, inventory: str) -> str:
    return (
        f"{machine.called}: a node of another run is there ({whose}): wait for its end, or remove it with"
        f" `kafka-trial cleanup --machines {inventory}`"
    )


def _node_and_owner(printed: str) -> tuple[str, str]:
    node, _, owner = printed.partition("\t")
    return node, owner


def _run_of(owner: str) -> str:
    try:
        return Owner.read(owner).run
    except HistoryError:
        return "an unknown one"


def offset(machine: Machine, tries: int = 5) -> tuple[float, float]:
    """How many seconds a machine's wall clock is ahead of this one's, and the largest possible error.

    The fastest of several answers counts (as in NTP: the clock was read between question and answer). Raises
    ClusterError.
    """
    readings = [_reading(machine) for _ in range(tries)]
    return min(readings, key=lambda reading: reading[1])


def _reading(machine: Machine) -> tuple[float, float]:
    asked = time.time_ns()
    began = time.monotonic_ns()
    answer = machine.run("date +%s%N", "read its clock")
    took = time.monotonic_ns() - began
    try:
        clock_ns = int(answer)
    except ValueError as exc:
        raise ClusterError(f"{machine.called}: its clock cannot be read: {answer[:80]!r}") from exc
    return (clock_ns - asked - took / 2) / SECOND_NS, took / 2 / SECOND_NS
