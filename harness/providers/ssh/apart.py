"""Machines that several inventories name: one has one address, or nobody could tell that two clusters need it."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from harness.core.errors import ScenarioError
from harness.providers.ssh.fleet import connected, on_all
from harness.providers.ssh.inventory import Host, Inventory, read_inventory
from harness.providers.ssh.looking import Facts, alike, look
from harness.providers.ssh.machine import KnownHosts
from harness.providers.ssh.spec import SshSpec


def told_apart(clusters: Sequence[SshSpec], report: Callable[[str], None]) -> None:
    """Look at the machines of all inventories, where there are several. One that does not answer is told of by the runs
    that need it. ``report`` gets a line for each host key that is accepted.

    Raises ScenarioError: a line for each inventory that cannot be read, and for each machine that has two addresses.
    """
    wrong, read = list[str](), dict[str, tuple[Inventory, bool]]()
    for own in clusters:
        if own.machines is not None and own.machines not in read:
            try:
                read[own.machines] = read_inventory(Path(own.machines)), own.accept_new
            except ScenarioError as exc:
                wrong += str(exc).splitlines()
    if len(read) > 1 and not wrong:
        wrong = two_addresses(_machines(read, report))
    if wrong:
        raise ScenarioError("\n".join(dict.fromkeys(wrong)))


def _machines(read: Mapping[str, tuple[Inventory, bool]], report: Callable[[str], None]) -> dict[str, Facts]:
    """By host and inventory, what each address answered that did."""
    answered, found = set[str](), dict[str, Facts]()
    for path, (inventory, accept) in read.items():
        hosts = {host.called: host for host in inventory.hosts if host.address.lower() not in answered}
        with connected(hosts, KnownHosts(Path(inventory.known_hosts), accept, report)) as machines:
            for name, facts in on_all(machines, look).items():
                if isinstance(facts, Facts):
                    answered.add(hosts[name].address.lower())
                    found[_said(hosts[name], path)] = facts
    return found


def _said(host: Host, path: str) -> str:
    called = f" ({host.name})" if host.name not in {"", host.address} else ""
    return f"{host.address}{called} of {path}"


def two_addresses(facts: Mapping[str, Facts]) -> list[str]:
    """A line for each machine that has several addresses: by each, and its inventory, what its machine is like."""
    return [
        f"{' and '.join(several)} are one machine: name it by one address in all inventories of a suite"
        for several in alike(facts)
    ]
