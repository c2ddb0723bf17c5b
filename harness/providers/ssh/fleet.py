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
    """Machines, connected to when they are first needed; in the end no more."""
    machines = {name: Machine(host, known) for name, host in hosts.items()}
    try:
        yield machines
    finally:
        for machine in machines.values():
            machine.close()


def on_all(machines: Mapping[str, Machine], act: Callable[[Machine], T]) -> dict[str, T | KafkaTrialError]:
    """Act on all machines at once; what each returned, or why it failed."""

    def attempt(machine: Machine) -> T | KafkaTrialError:
        try:
            return act(machine)
        except KafkaTrialError as exc:
            return exc

    with ThreadPoolExecutor(max(len(machines), 1)) as pool:
        return dict(zip(machines, pool.map(attempt, machines.values()), strict=True))


def whole(tried: Mapping[str, T | KafkaTrialError]) -> dict[str, T]:
    """What all returned. Raises the first error: EnvironmentLacks before others."""
    failed = [found for found in tried.values() if isinstance(found, KafkaTrialError)]
    if failed:
        raise next((exc for exc in failed if isinstance(exc, EnvironmentLacks)), failed[0])
    return {name: found for name, found in tried.items() if not isinstance(found, KafkaTrialError)}
