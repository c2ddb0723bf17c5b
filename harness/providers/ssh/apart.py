"""Machines in several inventories. All must give a machine one address, or nobody sees that two clusters need it."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

from harness.core.errors import ScenarioError
from harness.providers.ssh.fleet import connected, on_all
from harness.providers.ssh.inventory import Host, Inventory, read_inventory
from harness.providers.ssh.looking import MachineFacts, alike, look
from harness.providers.ssh.machine import KnownHosts
from harness.providers.ssh.spec import SshSpec


def check_addresses(clusters: Sequence[SshSpec], report: Callable[[str], None]) -> None:
    """Check that all inventories, if there are several, give each machine one address. A machine that does not answer
    is left to the runs that need it. ``report`` gets a line for each host key that is accepted.

    Raises ScenarioError with a line for each inventory that cannot be read, and for each two that give a machine
    different addresses.
    """
    wrong, read, accept = list[str](), dict[str, Inventory](), set[str]()
    for own in clusters:
        if own.machines is None:
            continue
        if own.accept_new:
            accept.add(own.machines)
        if own.machines not in read:
            try:
                read[own.machines] = read_inventory(Path(own.machines))
            except ScenarioError as exc:
                wrong += str(exc).splitlines()
    if len(read) > 1 and not wrong:
        wrong = list(two_addresses(read, _machines(read, accept, report)))
    if wrong:
        raise ScenarioError("\n".join(dict.fromkeys(wrong)))


def _machines(
    read: Mapping[str, Inventory], accept: Collection[str], report: Callable[[str], None]
) -> dict[str, MachineFacts]:
    """The facts of each machine that answered, by its address. ``accept``: the inventories whose new host keys are
    accepted."""
    found = dict[str, MachineFacts]()
    for path, inventory in read.items():
        hosts = {host.called: host for host in inventory.hosts if host.address.lower() not in found}
        with connected(hosts, KnownHosts(Path(inventory.known_hosts), path in accept, report)) as machines:
            for name, facts in on_all(machines, look).items():
                if isinstance(facts, MachineFacts):
                    found[hosts[name].address.lower()] = facts
    return found


def _host_of(path: str, host: Host) -> str:
    name = f" ({host.name})" if host.name not in {"", host.address} else ""
    return f"{host.address}{name} of {path}"


def two_addresses(read: Mapping[str, Inventory], facts: Mapping[str, MachineFacts]) -> Iterator[str]:
    """A line for each two inventories that have a machine in common, but no address of it. (Two hosts of one inventory
    that are one machine are reported by its runs.) ``facts``: those of each machine, by its address."""
    for addresses in alike(facts):
        named = {
            path: [host for host in inventory.hosts if host.address.lower() in addresses]
            for path, inventory in read.items()
        }
        for (left, ours), (right, theirs) in combinations(named.items(), 2):
            common = {host.address.lower() for host in ours} & {host.address.lower() for host in theirs}
            if ours and theirs and not common:
                both = f"{_host_of(left, ours[0])} and {_host_of(right, theirs[0])}"
                yield f"{both} are one machine: name it by one address in all inventories of a suite"
