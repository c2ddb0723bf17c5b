"""The inventory: a file that lists the machines on which nodes may run. Pure, except for reading the file."""

import ipaddress
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from harness.cluster.spec import ClusterSpec, Part
from harness.core.complaints import complaints, near
from harness.core.errors import NoMeans, ScenarioError
from harness.core.quantities import WRITTEN, Duration, Whole
from harness.core.topology import Ports, Role
from harness.core.written import KeyPath, Written, parsed

#: The names of the ports that an inventory may set.
_PORTS = tuple(field.name for field in fields(Ports))


_ONE_NODE = "a machine has one node at a time"

_WANTED = "an inventory is a mapping with a list of hosts"

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
    port: Whole = Field(22, ge=1, le=65535, description="of sshd")
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
    ports: dict[str, Whole] = Field({}, description=f"of the nodes, where not Kafka's usual: {', '.join(_PORTS)}")
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
            return written
        defaults, hosts = written.get("defaults") or {}, written.get("hosts")
        if not isinstance(defaults, dict) or not isinstance(hosts, list):
            return written
        return {**written, "hosts": [{**defaults, **host} if isinstance(host, dict) else host for host in hosts]}

    @field_validator("clients")
    @classmethod
    def _an_address(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                ipaddress.IPv4Address(value)
            except ValueError:
                raise ValueError("should be an IPv4 address") from None
        return value

    @field_validator("ports")
    @classmethod
    def _ports_apart(cls, value: dict[str, int]) -> dict[str, int]:
        taken = [*{**vars(Ports()), **value}.values()]
        if len(set(taken)) < len(taken) or not all(0 < port < 65536 for port in taken):
            raise ValueError("the ports of a node must differ, and be from 1 to 65535")
        return value

    @property
    def node_ports(self) -> Ports:
        """The ports of every node."""
        return Ports(**self.ports)


def read_inventory(path: Path) -> Inventory:
    """The inventory in a file, with absolute paths. Raises ScenarioError with a line for each mistake, which quotes
    keys, but no value: that may be a password."""
    written = parsed(_text(path), str(path), _WANTED, secret=True)
    try:
        inventory = Inventory.model_validate(written.data, context=WRITTEN)
    except ValidationError as exc:
        errors = ({**error, "loc": _written_at(error["loc"], written)} for error in exc.errors(include_url=False))
        raise ScenarioError("\n".join(complaints(errors, written, _keys_at, secret=True))) from exc
    messages = {_written_at(where, written): says for where, says in _mistakes(inventory)}
    if messages:
        raise ScenarioError("\n".join(written.lines({written.resolved(where): messages[where] for where in messages})))
    folder = path.absolute().parent

    def found(file: str | None) -> str | None:
        return None if file is None else str(folder / Path(file).expanduser())

    hosts = [host.model_copy(update={"key": found(host.key)}) for host in inventory.hosts]
    return inventory.model_copy(update={"known_hosts": found(inventory.known_hosts), "hosts": hosts})


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as exc:
        raise ScenarioError(f"{path}: the inventory cannot be read ({exc.strerror}): see docs/machines.md") from exc
    except UnicodeDecodeError as exc:
        raise ScenarioError(f"{path}: is not text in UTF-8") from exc


def _written_at(where: KeyPath, written: Written) -> KeyPath:
    """Where a key of a host is written: at the host, or under ``defaults``."""
    if where[:1] != ("hosts",) or len(where) < 3 or where[2] in written.data["hosts"][where[1]]:
        return where
    return ("defaults", *where[2:]) if where[2] in (written.data.get("defaults") or {}) else where


def _keys_at(where: KeyPath) -> list[str] | None:
    """The allowed keys below a key."""
    if not where:
        return [*Inventory.model_fields]
    of_a_host = where == ("defaults",) or (where[0] == "hosts" and len(where) == 2)
    return [*Host.model_fields] if of_a_host else None


def _mistakes(inventory: Inventory) -> Iterator[tuple[KeyPath, str]]:
    """What is wrong with valid keys: unknown ports and users, and hosts that are the same."""
    for port in inventory.ports.keys() - {*_PORTS}:
        yield ("ports", port), f"not a port of a node; {near(port, _PORTS)}"
    named: dict[KeyPath, str | None] = {("known_hosts",): inventory.known_hosts}
    named |= {("hosts", index, "key"): host.key for index, host in enumerate(inventory.hosts)}
    for where, file in named.items():
        if file is not None and not _has_a_home(file):
            yield where, "there is no such user here: write the whole path"
    names, addresses = Counter[str](), Counter[str]()
    for index, host in enumerate(inventory.hosts):
        if names[host.called]:
            yield ("hosts", index, "name"), f"an earlier host is called so, too: {_ONE_NODE}"
        elif addresses[host.address]:
            yield ("hosts", index, "address"), f"an earlier host is at this address, too: {_ONE_NODE}"
        names[host.called] += 1
        addresses[host.address] += 1


def _has_a_home(file: str) -> bool:
    """Whether a path has no user's name in it (``~name/…``), or that of a user of this machine."""
    try:
        Path(file).expanduser()
    except RuntimeError:
        return False
    return True


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
