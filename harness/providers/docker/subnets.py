"""Which nodes a cluster has, and their addresses in a /24 of its own. Pure."""

import ipaddress
from collections.abc import Callable, Iterable

from harness.core.topology import Node, Role, Topology
from harness.scenario.model import ClusterSpec

Subnet = ipaddress.IPv4Network

#: Where each role's addresses (and ids, for controllers) begin within the /24; .1 is the bridge, seen as the clients.
_FIRST = {Role.BROKER: 10, Role.CONTROLLER: 100, Role.ZOOKEEPER: 200}


def topology(spec: ClusterSpec, subnet: Subnet, port: Callable[[], int | None] = lambda: None) -> Topology:
    """The nodes of ``spec`` within ``subnet``; ``port`` gives a broker's published port, or None for none."""
    kraft = spec.metadata == "kraft"
    seats = [
        *((f"b{i}", Role.BROKER, i) for i in range(1, spec.brokers + 1)),
        *((f"c{i}", Role.CONTROLLER, 100 + i) for i in range(1, ((spec.controllers or 1) if kraft else 0) + 1)),
        *((f"z{i}", Role.ZOOKEEPER, i) for i in range(1, (0 if kraft else (spec.zookeepers or 1)) + 1)),
    ]
    nodes = tuple(
        Node(
            name,
            role,
            number,
            str(subnet[_FIRST[role] + int(name[1:])]),
            port() if role is Role.BROKER else None,
        )
        for name, role, number in seats
    )
    return Topology(nodes, clients=Node("clients", Role.CLIENTS, 0, str(subnet[1])))


def free_subnet(taken: Iterable[Subnet], start: int) -> Subnet | None:
    """A private /24 that overlaps none of ``taken``, looked for from the ``start``-th candidate on; None if none is."""
    occupied = list(taken)
    candidates = [Subnet(f"10.{high}.{low}.0/24") for high in range(201, 217) for low in range(256)]
    for index in range(len(candidates)):
        candidate = candidates[(start + index) % len(candidates)]
        if not any(candidate.overlaps(other) for other in occupied):
            return candidate
    return None
