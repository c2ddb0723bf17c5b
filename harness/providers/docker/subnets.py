"""The addresses of a cluster's nodes, in a /24 of its own."""

import ipaddress
import socket
import zlib
from collections.abc import Callable, Container, Iterable, Iterator
from itertools import count
from pathlib import Path

from docker import DockerClient

from harness.cluster.spec import ClusterSpec
from harness.core.errors import EnvironmentLacks
from harness.core.topology import Node, Role, Topology

Subnet = ipaddress.IPv4Network

#: The ports that nodes publish. Systems choose the clients' own ports elsewhere (Linux: from 32768 on, others 49152):
#: otherwise a client that tries to reach a dead node might occupy the node's port.
_PORTS = range(20_000, 30_000)

#: The first address of each role within the /24. Nodes see the clients at .1, the bridge.
_FIRST = {Role.BROKER: 11, Role.CONTROLLER: 101, Role.ZOOKEEPER: 201}


def topology(spec: ClusterSpec, subnet: Subnet, port: Callable[[], int | None] = lambda: None) -> Topology:
    """The nodes of ``spec`` within ``subnet``; ``port`` gives a broker's published port, or None for none."""
    free = {role: count(first) for role, first in _FIRST.items()}
    nodes = tuple(
        Node(name, role, number, str(subnet[next(free[role])]), port() if role is Role.BROKER else None)
        for name, role, number in spec.roster
    )
    return Topology(nodes, clients=Node("clients", Role.CLIENTS, 0, str(subnet[1])))


def free_subnet(taken: Iterable[Subnet], start: int) -> Subnet | None:
    """The first private /24, from the ``start``-th candidate on, that overlaps none of ``taken``; None without one."""
    occupied = list(taken)
    candidates = [Subnet(f"10.{high}.{low}.0/24") for high in range(201, 217) for low in range(256)]
    for index in range(len(candidates)):
        candidate = candidates[(start + index) % len(candidates)]
        if not any(candidate.overlaps(other) for other in occupied):
            return candidate
    return None


def chosen_subnet(client: DockerClient, wanted: str | None, run: str) -> Subnet:
    """The ``wanted`` /24, else a free one. Raises EnvironmentLacks if it is taken, or none is free."""
    taken = {**_routes(), **_networks(client)}
    if wanted is not None:
        chosen = Subnet(wanted)
        clash = next((name for subnet, name in taken.items() if chosen.overlaps(subnet)), None)
        if clash is not None:
            raise EnvironmentLacks(f"cluster.subnet {wanted} is taken by {clash}: name another, or leave it out")
        return chosen
    free = free_subnet(taken, start=zlib.crc32(run.encode()))
    if free is None:
        raise EnvironmentLacks("no free /24 is left in 10.201.0.0 – 10.216.255.0: `kafka-trial cleanup` frees some")
    return free


def _networks(client: DockerClient) -> dict[Subnet, str]:
    return {
        Subnet(config["Subnet"]): f"Docker network {network.name}"
        for network in client.networks.list()
        for config in (network.attrs.get("IPAM", {}).get("Config") or [])
        if ":" not in config.get("Subnet", ":")
    }


def _routes() -> dict[Subnet, str]:
    """The routes of this machine, without the default route (only on Linux; elsewhere Docker's list has to suffice)."""
    table = Path("/proc/net/route")
    lines = [line.split() for line in table.read_text(encoding="utf-8").splitlines()[1:]] if table.exists() else []
    found = {}
    for name, destination, *_, mask, _mtu, _window, _irtt in lines:
        subnet = Subnet((_address(destination), _address(mask)))
        if subnet.prefixlen:
            found[subnet] = f"this machine's route by {name}"
    return found


def _address(hexadecimal: str) -> str:
    return socket.inet_ntoa(bytes.fromhex(hexadecimal)[::-1])


def free_ports(taken: Container[int], start: int) -> Iterator[int]:
    """Free loopback ports that are not ``taken``, from the ``start``-th candidate on.

    Raises EnvironmentLacks if none is left.
    """
    for index in range(len(_PORTS)):
        port = _PORTS[(start + index) % len(_PORTS)]
        if port not in taken and _free(port):
            yield port
    raise EnvironmentLacks(f"no free port is left in {_PORTS[0]} – {_PORTS[-1]}: `kafka-trial cleanup` frees some")


def published(client: DockerClient) -> set[int]:
    """The ports that containers publish. Stopped containers count too: they may be started again."""
    return {
        int(binding["HostPort"])
        for container in client.containers.list(all=True, ignore_removed=True)
        for bindings in (container.attrs["HostConfig"]["PortBindings"] or {}).values()
        for binding in bindings or []
        if binding["HostPort"].isdecimal()
    }


def _free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
