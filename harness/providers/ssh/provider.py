"""Brings up a cluster on machines reached by SSH, and removes it whatever happens."""

import shlex
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import yaml

from harness.cluster.distribution import environment
from harness.cluster.kafka_config import properties, settings_of
from harness.cluster.provider import Diagnosis, last_words
from harness.cluster.spec import ClusterSpec, own_spec
from harness.core.clock import ClockOffset
from harness.core.errors import ClusterError, EnvironmentLacks, KafkaTrialError, NoMeans, ScenarioError
from harness.core.topology import Node, Role, Topology
from harness.history.paths import LOGS, MACHINES_FILE
from harness.providers.ssh import text
from harness.providers.ssh.bundle import bundle, copy
from harness.providers.ssh.cleanup import cleanup
from harness.providers.ssh.doctor import doctor
from harness.providers.ssh.fleet import connected, on_all, whole
from harness.providers.ssh.inventory import Host, Inventory, placed, read_inventory
from harness.providers.ssh.looking import (
    MachineFacts,
    Owner,
    address_of,
    lacking_for_faults,
    left_there,
    look,
    loopbacks,
    named_twice,
    offset,
    other_node,
    room_for,
)
from harness.providers.ssh.machine import KnownHosts, Machine
from harness.providers.ssh.shell import SshShell
from harness.providers.ssh.spec import SshSpec
from harness.providers.ssh.text import MachinePaths
from nemesis.fault import Needs


@dataclass(frozen=True)
class SshCluster:
    """A ``harness.cluster.provider.Cluster`` of processes on machines.

    ``owner``: the line that identifies its nodes. ``inventory``: the path of the inventory.
    """

    run: str
    owner: str
    topology: Topology
    shell: SshShell
    machines: Mapping[str, Machine]
    inventory: str
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def removed_by(self) -> str:
        """The command that removes its nodes."""
        return f"kafka-trial cleanup --machines {shlex.quote(self.inventory)} {self.run}"

    def why_dead(self, node: Node) -> str | None:
        """The last lines that a node logged before it exited; None while it runs. Raises ClusterError."""
        machine = self.machines[node.name]
        paths = MachinePaths(machine.host.data, self.owner)
        printed = machine.run(text.last_words(paths), f"{node.name}: look at its process")
        code, _, log = printed.partition("\n")
        return None if code == "running" else f"{node.name} exited with {code or '?'}: {last_words(log)}"

    def to_foreground(self) -> None:
        """Nothing: it has its machines to itself."""

    def clocks(self) -> dict[str, ClockOffset]:
        """How far each machine's clock is ahead of this one's."""
        tried = on_all(self.machines, offset)
        return {name: ClockOffset(*found) for name, found in tried.items() if not isinstance(found, KafkaTrialError)}


def say(line: str) -> None:
    """Print a line about a change of the user's files."""
    print(line, file=sys.stderr, flush=True)


def this_host() -> str:
    """A name of this host that no other host has."""
    try:
        number = Path("/etc/machine-id").read_text(encoding="ascii").strip()[:8]
    except (OSError, UnicodeDecodeError):
        number = ""
    return f"{socket.gethostname()} {number}".strip()


class Ssh:
    """A ``harness.cluster.provider.Provider`` of clusters on the machines of an inventory.

    ``report`` gets a line for each host key that is accepted; ``here``: this host's name, written on the machines.
    """

    def __init__(self, report: Callable[[str], None] = say, here: str | None = None) -> None:
        self._report = report
        self._here = here or this_host()

    def check(
        self,
        spec: ClusterSpec,
        needs: Iterable[Needs],
        progress: Callable[[str], None] = lambda _: None,  # noqa: ARG002 - machines answer within seconds
    ) -> None:
        """Check that the inventory has machines for such a cluster, and that these have what nodes and faults need."""
        inventory, own, wanted = self._inventory(spec), own_spec(spec, SshSpec), list(needs)
        with connected(placed(spec, inventory.hosts), self._known(inventory, own)) as machines:

            def lacks(machine: Machine) -> tuple[MachineFacts, list[str], Sequence[str]]:
                facts = look(machine)
                occupied = left_there(machine, facts)
                missing = [*facts.lacks(machine.host, inventory.node_ports), *([] if occupied is None else [occupied])]
                return facts, missing, [] if facts.missing else lacking_for_faults(machine, facts, wanted)

            tried = on_all(machines, lacks)
        lines, without, facts = list[str](), list[str](), dict[str, MachineFacts]()
        for name, found in tried.items():
            if isinstance(found, KafkaTrialError):
                lines.append(str(found))
            else:
                facts[machines[name].called], missing, means = found
                lines += missing
                without += means
        lines = [*named_twice(facts), *lines, *loopbacks(placed(spec, inventory.hosts).values())]
        if lines or without:
            raise (EnvironmentLacks if lines else NoMeans)("; ".join(dict.fromkeys([*lines, *without])))

    def has_background(self, spec: ClusterSpec) -> bool:  # noqa: ARG002
        """No: machines have one cluster at a time."""
        return False

    @contextmanager
    def up(
        self,
        spec: ClusterSpec,
        run: str,
        directory: Path,
        note: Callable[[str], None],
        keep: bool = False,
        background: bool = False,  # noqa: ARG002
        progress: Callable[[str], None] = lambda _: None,
    ) -> Iterator[SshCluster]:
        """Start a cluster. What is started where is also written to ``machines.yaml`` and ``config/`` of
        ``directory``."""
        inventory, own = self._inventory(spec), own_spec(spec, SshSpec)
        hosts = placed(spec, inventory.hosts)
        kafka = bundle(spec.version)
        with ExitStack() as stack:
            machines = stack.enter_context(connected(hosts, self._known(inventory, own)))
            facts = whole(on_all(machines, look))
            nodes = topology(spec, hosts, inventory, facts)
            owner = Owner(run, str(directory), self._here)
            stack.enter_context(claimed(machines, owner, directory / LOGS, note, keep))
            homes = whole(on_all(machines, partial(copy, kafka, progress=progress)))
            _write(spec, nodes, machines, homes, directory)

            def begin(machine: Machine) -> None:
                node = next(node for node in nodes.nodes if machines[node.name] is machine)
                _begin(machine, node, nodes, spec, owner, homes[node.name])

            whole(on_all(machines, begin))
            whole(on_all(machines, alone))
            shell = SshShell(nodes, machines, inventory.heals_after, owner.line())
            jars = {"jars": f"sha256:{kafka.digest}"}
            yield SshCluster(run, owner.line(), nodes, shell, machines, str(own.machines), jars)

    def cleanup(self, spec: ClusterSpec, run: str | None, force: bool, dry_run: bool) -> list[str]:
        """Remove the nodes of one run, or of all, from the machines of an inventory; without one do nothing."""
        own = own_spec(spec, SshSpec)
        if own.machines is None:
            return []
        inventory = self._inventory(spec)
        with connected(_by_name(inventory), self._known(inventory, own)) as machines:
            return cleanup(machines, run, force, dry_run, self._here)

    def doctor(self, spec: ClusterSpec) -> Iterator[Diagnosis]:
        """Check every machine of an inventory, and every fault of the catalogue; without an inventory nothing."""
        own = own_spec(spec, SshSpec)
        if own.machines is None:
            return
        inventory = self._inventory(spec)
        with connected(_by_name(inventory), self._known(inventory, own)) as machines:
            yield from doctor(machines, inventory.node_ports)

    def _inventory(self, spec: ClusterSpec) -> Inventory:
        own = own_spec(spec, SshSpec)
        if own.machines is None:
            raise ScenarioError("cluster.accept_new is for machines: name an inventory in cluster.machines")
        return read_inventory(Path(own.machines))

    def _known(self, inventory: Inventory, own: SshSpec) -> KnownHosts:
        return KnownHosts(Path(inventory.known_hosts), own.accept_new, self._report)


def _by_name(inventory: Inventory) -> dict[str, Host]:
    return {host.called: host for host in inventory.hosts}


def topology(
    spec: ClusterSpec, hosts: Mapping[str, Host], inventory: Inventory, facts: Mapping[str, MachineFacts]
) -> Topology:
    """The nodes at their machines' addresses, and this host at the address that they see. Raises EnvironmentLacks."""
    ports = inventory.node_ports
    nodes = tuple(
        Node(name, role, number, address_of(hosts[name]), None, ports, facts[name].control)
        for name, role, number in spec.roster
    )
    seen = {inventory.clients} if inventory.clients else {found.client for found in facts.values()}
    if len(seen) > 1:
        raise EnvironmentLacks(
            f"the machines see this one at several addresses ({', '.join(sorted(map(str, seen)))}): set `clients` to"
            " the one at which the brokers see it"
        )
    return Topology(nodes, clients=Node("clients", Role.CLIENTS, 0, str(seen.pop())))


@contextmanager
def claimed(
    machines: Mapping[str, Machine], owner: Owner, logs: Path, note: Callable[[str], None], keep: bool
) -> Iterator[None]:
    """Make a directory for a node on each machine, with its owner's line. At the end store the nodes' logs, undo what
    was done, and remove the directory. ``note`` gets a line for each thing that fails. ``keep`` removes nothing."""

    def claim(machine: Machine) -> None:
        try:
            with room_for("a node", machine):
                machine.run(text.claim(machine.host.data, owner.line()), "claim it for a node", again=False)
        except ClusterError as exc:
            facts = look(machine)
            # (If the connection broke before the answer, the claim may have succeeded.)
            if facts.owner == owner.line():
                return
            if (occupied := left_there(machine, facts)) is not None:
                raise EnvironmentLacks(occupied) from exc
            raise

    tried = on_all(machines, claim)
    ours = {name: machine for name, machine in machines.items() if not isinstance(tried[name], KafkaTrialError)}
    with ExitStack() as stack:
        if not keep:
            stack.callback(_remove, ours, owner, note)
        stack.callback(keep_logs, ours, owner, logs, note)
        whole(tried)
        yield


def alone(machine: Machine) -> None:
    """Raises EnvironmentLacks if another node runs on the machine by now. If two runs start at once, both give up."""
    if (occupied := other_node(machine, look(machine))) is not None:
        raise EnvironmentLacks(occupied)


def _remove(machines: Mapping[str, Machine], owner: Owner, note: Callable[[str], None]) -> None:
    def remove(machine: Machine) -> str:
        paths = MachinePaths(machine.host.data, owner.line())
        return machine.run(text.remove_node(paths), "remove its node", within=text.REMOVED_WITHIN_S)

    tried = on_all(machines, remove)
    for found in tried.values():
        if isinstance(found, KafkaTrialError):
            note(f"{found}; `kafka-trial cleanup --machines INVENTORY {owner.run}` removes what is left")


def keep_logs(machines: Mapping[str, Machine], owner: Owner, directory: Path, note: Callable[[str], None]) -> None:
    def keep(name: str) -> None:
        machine = machines[name]
        with (directory / f"{name}.log").open("wb") as file:
            for chunk in machine.read(text.log(MachinePaths(machine.host.data, owner.line())), "read its log"):
                file.write(chunk)

    for name in machines:
        try:
            directory.mkdir(exist_ok=True)
            keep(name)
        except (KafkaTrialError, OSError) as exc:
            note(f"the log of {name} is not stored completely: {exc}")


def _begin(machine: Machine, node: Node, nodes: Topology, spec: ClusterSpec, owner: Owner, home: str) -> None:
    """Write a node's settings, and start it."""
    paths = MachinePaths(machine.host.data, owner.line())
    keeper = text.keeper(paths, node, machine.host.java, home, environment(owner.run, node, nodes))
    settings = properties(settings_of(node, nodes, spec, paths.files))
    written = "".join(
        text.written(f"{paths.node}/{name}", content)
        for name, content in (("node.properties", settings), ("keeper", keeper))
    )
    # (Sync the files: if a fault reboots the machine, the heal starts the node again from them.)
    synced = f"{text.quoted('sync', *(f'{paths.node}/{name}' for name in ('node.properties', 'keeper')))} || sync\n"
    with room_for("a node", machine):
        machine.run(written + synced + text.start(paths, held=False), f"{node.name}: start")


def _write(
    spec: ClusterSpec, nodes: Topology, machines: Mapping[str, Machine], homes: Mapping[str, str], directory: Path
) -> None:
    """Store in the run's directory what is started where."""
    (directory / "config").mkdir(parents=True)
    started = {}
    for node in nodes.nodes:
        host = machines[node.name].host
        settings = properties(settings_of(node, nodes, spec, MachinePaths(host.data).files))
        (directory / "config" / f"{node.name}.properties").write_text(settings, encoding="utf-8")
        started[node.name] = {
            "host": host.called,
            "address": node.address,
            "directory": MachinePaths(host.data).node,
            "kafka": homes[node.name],
            "java": host.java,
        }
    (directory / MACHINES_FILE).write_text(yaml.safe_dump(started, sort_keys=False), encoding="utf-8")
