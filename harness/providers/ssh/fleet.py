"""Several machines at once."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from harness.core.errors import EnvironmentLacks, KafkaTrialError
from harness.providers.ssh.inventory import Host
from harness.providers.ssh.machine import KnownHosts, Machine

T = TypeVar("T")


@contextmanager
def connected(hosts: Mapping[str, Host], known: KnownHosts) -> Iterator[dict[str, Machine]]:
    """The machines of hosts. Each connects when it is first needed, and disconnects at the end of the block."""
    machines = {name: Machine(host, known) for name, host in hosts.items()}
    try:
        yield machines
    finally:
        for machine in machines.values():
            machine.close()


def on_all(machines: Mapping[str, Machine], act: Callable[[Machine], T]) -> dict[str, T | KafkaTrialError]:
    """Act on all machines at once. Returns for each the result, or the error."""

    def attempt(machine: Machine) -> T | KafkaTrialError:
        try:
            return act(machine)
        except KafkaTrialError as exc:
            return exc

    with ThreadPoolExecutor(max(len(machines), 1)) as pool:
        return dict(zip(machines, pool.map(attempt, machines.values()), strict=True))


def whole(tried: Mapping[str, T | KafkaTrialError]) -> dict[str, T]:
    """The results of all machines. Raises the first error, EnvironmentLacks before others."""
    failed = [found for found in tried.values() if isinstance(found, KafkaTrialError)]
    if failed:
        raise next((exc for exc in failed if isinstance(exc, EnvironmentLacks)), failed[0])
    return {name: found for name, found in tried.items() if not isinstance(found, KafkaTrialError)}
