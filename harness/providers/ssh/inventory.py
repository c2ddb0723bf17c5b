"""The inventory: a file that lists the machines on which nodes may run. Pure, except for reading the file."""

import ipaddress
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, Self

import yaml
from pydantic import Field, ValidationError, field_validator, model_validator

from harness.cluster.spec import ClusterSpec, Part
from harness.core.errors import NoMeans, ScenarioError
from harness.core.quantities import WRITTEN, Duration
from harness.core.topology import Ports, Role

#: The names of the ports that an inventory may set.
_PORTS = tuple(field.name for field in fields(Ports))


#: A path or a command must be one line without control characters.
_PLAIN = r"^[^\x00-\x1f\x7f]*$"


class Host(Part):
    """One machine."""

    address: str = Field(
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$",
        max_length=253,
        description="IPv4 address or name for SSH and for Kafka: the other nodes and the clients use it, too",
    )
    name: str = Field(
        "", pattern=r"^[A-Za-z0-9._-]*$", max_length=64, description="what it is called (default: its address)"
    )
    port: int = Field(22, ge=1, le=65535, description="of sshd")
    user: str = Field("root", pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.@-]*$", max_length=64, description="who logs in")
    key: str | None = Field(
        None, pattern=_PLAIN, description="private key file, relative to the inventory (default: the agent, and ~/.ssh)"
    )
    become: Literal["root", "sudo"] = Field(
        "root", description="root: `user` is root; sudo: `user` becomes root by sudo without a password"
    )
    roles: list[Literal["broker", "controller", "zookeeper"]] = Field(
        ["broker", "controller", "zookeeper"], min_length=1, description="the nodes that it may have, one at a time"
    )
    java: str = Field("java", min_length=1, pattern=_PLAIN, description="the command, or its path")
    data: str = Field(
        "/var/lib/kafka-trial",
        pattern=r"^(/[A-Za-z0-9_][A-Za-z0-9._-]*)+$",
        description="a directory for kafka-trial alone: it is made, filled, and removed",
    )

    @property
    def called(self) -> str:
        """Its name; without one, its address."""
        return self.name or self.address


class Inventory(Part):
    """Machines, and what they have in common."""

    known_hosts: str = Field(
        "~/.ssh/known_hosts", pattern=_PLAIN, description="file of their host keys, relative to the inventory"
    )
    clients: str | None = Field(
        None, description="the IPv4 address at which they see this machine (default: that of the SSH connection)"
    )
    ports: dict[str, int] = Field({}, description=f"of the nodes, where not Kafka's usual: {', '.join(_PORTS)}")
    heals_after: Duration = Field(
        300.0,
        ge=30,
        le=24 * 3600,
        description="how long after the timeline's last deadline a machine by itself undoes what a fault did to it",
    )
    defaults: dict[str, Any] = Field({}, description="keys for every host that does not set them itself")
    hosts: list[Host] = Field(min_length=1, description="the machines")

    @model_validator(mode="before")
    @classmethod
    def _with_defaults(cls, written: Any) -> Any:
        if not isinstance(written, dict):
            raise ValueError("an inventory is a mapping with a list of hosts")
        defaults, hosts = written.get("defaults") or {}, written.get("hosts")
        if not isinstance(defaults, dict) or not isinstance(hosts, list):
            return written
        return {**written, "hosts": [{**defaults, **host} if isinstance(host, dict) else host for host in hosts]}

    @field_validator("clients")
    @classmethod
    def _an_address(cls, value: str | None) -> str | None:
        if value is not None:
            ipaddress.IPv4Address(value)
        return value

    @field_validator("ports")
    @classmethod
    def _ports_of_nodes(cls, value: dict[str, int]) -> dict[str, int]:
        if unknown := sorted(set(value) - set(_PORTS)):
            raise ValueError(f"{', '.join(unknown)}: not a port of a node; the ports are {', '.join(_PORTS)}")
        taken = [*{**vars(Ports()), **value}.values()]
        if len(set(taken)) < len(taken) or not all(0 < port < 65536 for port in taken):
            raise ValueError("the ports of a node must differ, and be from 1 to 65535")
        return value

    @model_validator(mode="after")
    def _hosts_apart(self) -> Self:
        for what, values in (
            ("called", [host.called for host in self.hosts]),
            ("at", [host.address for host in self.hosts]),
        ):
            twice = sorted({value for value in values if values.count(value) > 1})
            if twice:
                raise ValueError(f"two hosts are {what} {', '.join(twice)}: a machine has one node at a time")
        return self

    @property
    def node_ports(self) -> Ports:
        """The ports of every node."""
        return Ports(**self.ports)


def read_inventory(path: Path) -> Inventory:
    """The inventory in a file, with absolute paths. Raises ScenarioError with a line for each mistake."""
    written = _written(path)
    try:
        inventory = Inventory.model_validate(written, context=WRITTEN)
    except ValidationError as exc:
        raise ScenarioError("\n".join(f"{path}: {_line_of(error)}" for error in exc.errors())) from exc
    folder = path.absolute().parent

    def found(file: str | None) -> str | None:
        try:
            return None if file is None else str(folder / Path(file).expanduser())
        except RuntimeError as exc:
            raise ScenarioError(f"{path}: {file}: there is no such user here: write the whole path") from exc

    hosts = [host.model_copy(update={"key": found(host.key)}) for host in inventory.hosts]
    return inventory.model_copy(update={"known_hosts": found(inventory.known_hosts), "hosts": hosts})


def _written(path: Path) -> Any:
    """The content of a file. Raises ScenarioError, which does not quote the file: it may have a password in it."""
    try:
        loader = yaml.SafeLoader(path.read_text(encoding="utf-8"))
        root = loader.get_single_node()
        if root is None:
            return None
        _refuse_twice(path, root, set())
        return loader.construct_document(root)
    except OSError as exc:
        raise ScenarioError(f"{path}: the inventory cannot be read ({exc.strerror}): see docs/machines.md") from exc
    except yaml.MarkedYAMLError as exc:
        line = exc.problem_mark.line + 1 if exc.problem_mark else 1
        # (A problem with quotes quotes the file.)
        problem = exc.problem if exc.problem and "'" not in exc.problem else "what is here cannot be read: quote it"
        raise ScenarioError(f"{path}:{line}: no YAML ({problem})") from exc
    except (yaml.YAMLError, ValueError, RecursionError) as exc:
        raise ScenarioError(f"{path}: no YAML, or not text in UTF-8 ({type(exc).__name__})") from exc


def _refuse_twice(path: Path, node: yaml.Node, seen: set[int]) -> None:
    """Raises ScenarioError for a key that a mapping has twice: YAML would ignore one of two lists of hosts."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _refuse_twice(path, item, seen)
    elif isinstance(node, yaml.MappingNode):
        keys = set[str]()
        for key, value in node.value:
            if str(key.value) in keys:
                raise ScenarioError(f"{path}:{key.start_mark.line + 1}: {key.value!r} appears twice: remove one")
            keys.add(str(key.value))
            _refuse_twice(path, value, seen)


def _line_of(error: Any) -> str:
    where = ".".join(str(part) for part in error["loc"])
    message = str(error["msg"]).removeprefix("Value error, ")
    return f"{where}: {message}" if where else message


def placed(spec: ClusterSpec, hosts: Sequence[Host]) -> dict[str, Host]:
    """The host of each node of a cluster, by the node's name. A node gets the free host that has its role and the
    fewest other roles; among equals, the first one. Raises NoMeans if there are too few hosts."""
    chosen: dict[str, Host] = {}
    for name, role, _ in spec.roster:
        free = [host for host in hosts if role in host.roles and host not in chosen.values()]
        if not free:
            raise NoMeans(_too_few(spec, role, hosts))
        chosen[name] = min(free, key=lambda host: len(host.roles))
    return chosen


def _too_few(spec: ClusterSpec, role: Role, hosts: Sequence[Host]) -> str:
    wanted = sum(1 for _, asked, _ in spec.roster if asked is role)
    able = sum(1 for host in hosts if role in host.roles)
    return (
        f"the cluster has {len(spec.roster)} nodes, {wanted} of them {role}s, each on a machine of its own; of the"
        f" {len(hosts)} machines of the inventory {able} may be {role}s: add a host with `roles: [{role}]`, or ask for"
        " fewer nodes"
    )
