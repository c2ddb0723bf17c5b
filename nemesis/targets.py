"""Resolves the target expressions of a scenario to nodes, by the roles as they are known now."""

from collections.abc import Callable, Collection, Iterable, Mapping
from random import Random
from typing import Annotated

from pydantic import BeforeValidator

from harness.core.complaints import similar
from harness.core.errors import ClusterError, ScenarioError
from harness.core.printable import shown
from harness.core.topology import Node, Role, Topology, View


def _expression(value: object) -> object:
    named = (value,) if isinstance(value, str) else value
    if not isinstance(named, list | tuple) or not named or not all(isinstance(v, str) and v.strip() for v in named):
        raise ValueError(f"{shown(value)} names no target: write a role, a node, a pinned name, or a list of those")
    return value


#: ``leader``, ``b1``, ``one-of followers``, the name of a pin, or a list of those.
Expression = Annotated[str | tuple[str, ...], BeforeValidator(_expression)]

Pins = Mapping[str, tuple[Node, ...]]

_ONE_OF = "one-of "

#: Roles that move between nodes; at times no node has one.
_MOVING: dict[str, Callable[[View], tuple[Node, ...]]] = {
    "leader": lambda view: _present(view.leader),
    "followers": lambda view: view.followers,
    "controller": lambda view: _present(view.controller),
    "coordinator": lambda view: _present(view.coordinator),
}

#: Groups of nodes that a cluster always has: the roles of their nodes.
GROUPS: Mapping[str, frozenset[Role]] = {
    "brokers": frozenset({Role.BROKER}),
    "controllers": frozenset({Role.CONTROLLER}),
    "zookeeper": frozenset({Role.ZOOKEEPER}),
    "all": frozenset({Role.BROKER, Role.CONTROLLER, Role.ZOOKEEPER}),
}

#: The target that means the machine of the clients.
CLIENTS = "clients"

ROLES: tuple[str, ...] = (*_MOVING, *GROUPS, CLIENTS)


#: What each target means, for the author of a scenario.
MEANT: dict[str, str] = {
    "leader": "the leader of the watched partition",
    "followers": "its other replicas",
    "controller": "the active controller (in ZooKeeper mode a broker)",
    "coordinator": "the transaction coordinator of the first transactional producer",
    "brokers": "every broker",
    "controllers": "every KRaft controller",
    "zookeeper": "every ZooKeeper node",
    "all": "every node",
    "clients": "the machine of the clients: it can be a side of a cut, but is never hit itself",
    "b1, c1, z1 …": "the node of this name",
    "NAME": "the nodes of an earlier injection (`as`), or of a pinned name (`pin`)",
    "one-of TARGET": "one of its nodes, drawn by the seed",
}


def _present(node: Node | None) -> tuple[Node, ...]:
    return () if node is None else (node,)


def parts(expression: Expression) -> tuple[str, ...]:
    """The single expressions in a list."""
    return (expression,) if isinstance(expression, str) else tuple(expression)


def drawn_from(part: str) -> str | None:
    """The expression that a ``one-of`` draws from; None for any other expression."""
    return part.removeprefix(_ONE_OF).strip() if part.startswith(_ONE_OF) else None


def bare(part: str) -> str:
    """An expression's role or name, without any ``one-of`` before it."""
    while (inner := drawn_from(part)) is not None:
        part = inner
    return part


def resolve(expression: Expression, view: View, topology: Topology, pins: Pins, random: Random) -> tuple[Node, ...]:
    """The nodes that ``expression`` means now, each once, in the order of the expression.

    Raises ScenarioError for a name that is unknown in this cluster, ClusterError for a role that no node has now.
    """
    found = (node for part in parts(expression) for node in _resolve(part, view, topology, pins, random))
    return tuple(dict.fromkeys(found))


def _resolve(part: str, view: View, topology: Topology, pins: Pins, random: Random) -> tuple[Node, ...]:
    if (inner := drawn_from(part)) is not None:
        return (random.choice(_resolve(inner, view, topology, pins, random)),)
    if part in pins:
        return pins[part]
    if part in _MOVING:
        if not (now := _MOVING[part](view)):
            raise ClusterError(f"target {part!r}: no node has this role now")
        return now
    if part in GROUPS:
        if not (nodes := tuple(node for node in topology.nodes if node.role in GROUPS[part])):
            raise ScenarioError(f"target {part!r}: this cluster has no such nodes")
        return nodes
    if part == CLIENTS:
        return (topology.clients,)
    if (node := topology.named(part)) is not None:
        return (node,)
    raise ScenarioError(_unknown(part, [n.name for n in topology.nodes], pins))


def check_names(expression: Expression, node_names: Collection[str], pins: Iterable[str]) -> None:
    """Raise ScenarioError if a part of ``expression`` is neither a role, nor a node's name, nor a pin so far."""
    pinned = tuple(pins)
    for name in map(bare, parts(expression)):
        if name not in {*ROLES, *node_names, *pinned}:
            raise ScenarioError(_unknown(name, node_names, pinned))


def check_new_name(name: str, node_names: Collection[str]) -> None:
    """Raise ScenarioError if a pin or an injection may not have this name: it would hide a role or a node."""
    if name in {*ROLES, *node_names} or drawn_from(name) is not None:
        raise ScenarioError(f"{name!r} is a role or a node: choose another name to remember it by")


def _unknown(name: str, node_names: Iterable[str], pins: Iterable[str]) -> str:
    known = [*ROLES, *node_names, *pins]
    hint = similar(name, known) or f"known: {', '.join(known)}, or one-of followed by one of them"
    return f"target {name!r} is no role, node or pinned name; {hint}"
