"""Inventories: what may stand in one, and which machine has which node."""

from pathlib import Path
from typing import Any

import pytest

from harness.cluster.spec import ClusterSpec
from harness.core.errors import NoMeans, ScenarioError
from harness.providers.ssh.inventory import Host, Inventory, placed, read_inventory


def why_not(path: Path) -> str:
    try:
        read_inventory(path)
    except ScenarioError as exc:
        return str(exc)
    return ""


def inventory(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "machines.yaml"
    path.write_text(text)
    return path


def test_defaults_of_an_inventory_apply_to_all_its_hosts(tmp_path: Path) -> None:
    path = inventory(
        tmp_path,
        "known_hosts: keys/known\n"
        "heals_after: 2m\n"
        "ports: {client: 19092}\n"
        "defaults: {user: trial, key: id, become: sudo, roles: [broker]}\n"
        "hosts:\n"
        "  - {address: 10.0.0.1}\n"
        "  - {address: k2.example.org, name: two, user: root, become: root, key: ~/two, java: /opt/my java/bin/java}\n",
    )
    read = read_inventory(path)
    one, two = read.hosts
    assert (one.called, one.user, one.become, one.key) == ("10.0.0.1", "trial", "sudo", str(tmp_path / "id"))
    assert (two.called, two.user, two.become, two.key) == ("two", "root", "root", str(Path("~/two").expanduser()))
    assert two.java == "/opt/my java/bin/java"
    assert read.known_hosts == str(tmp_path / "keys/known")
    assert (read.heals_after, read.node_ports.client, read.node_ports.replication) == (120.0, 19092, 9094)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", ":1: an inventory is a mapping"),
        ("- a", ":1: an inventory is a mapping"),
        ("hosts: []", ":1: hosts: needs at least 1: the list is empty"),
        ("hosts: m1", ":1: hosts: should be a list"),
        ("hosts:\n- m1", ":2: hosts.0: should be a mapping of keys to values"),
        ("ports: {}", ": key 'hosts' is missing"),
        ("hosts:\n- address: a\n- name: m1", ":3: hosts.1: key 'address' is missing"),
        ("hosts: [{address: '10.0.0.1; reboot'}]", ":1: hosts.0.address: "),
        ("hosts: [{address: '-oProxyCommand=x'}]", ":1: hosts.0.address: "),
        # (A name with such parts is no name of a host: looking it up would be an error of Python's.)
        ("hosts: [{address: host..name}]", ":1: hosts.0.address: "),
        (f"hosts: [{{address: {'x' * 64}.org}}]", ":1: hosts.0.address: "),
        (f"hosts: [{{address: {'.'.join('x' * 128)}}}]", ":1: hosts.0.address: "),
        ("hosts:\n- address: 10", ":2: hosts.0.address: should be text: put it in quotes"),
        ('hosts: [{address: a, java: "a\\nb"}]', ":1: hosts.0.java: "),
        ('hosts: [{address: a, key: "a\\0"}]', ":1: hosts.0.key: "),
        ('known_hosts: "a\\e[2J"\nhosts: [{address: a}]', ":1: known_hosts: "),
        ("hosts: [{address: a, user: '-l root'}]", ":1: hosts.0.user: "),
        ("hosts: [{address: a, name: 'x\ny'}]", ":1: hosts.0.name: "),
        ("hosts: [{address: a, data: /}]", ":1: hosts.0.data: "),
        ("hosts: [{address: a, data: relative}]", ":1: hosts.0.data: "),
        ("hosts: [{address: a, data: '/srv/../etc'}]", ":1: hosts.0.data: "),
        ("hosts: [{address: a, data: '/srv/$(reboot)'}]", ":1: hosts.0.data: "),
        ("hosts: [{address: a, password: secret}]", ":1: hosts.0.password: no such key; known: address, name, port"),
        ("hosts:\n- address: a\n  usr: x", ":3: hosts.0.usr: no such key; did you mean 'user'?"),
        ("host: [{address: a}]\nhosts: [{address: a}]", ":1: host: no such key; did you mean 'hosts'?"),
        ("hosts: [{address: a, become: su}]", ":1: hosts.0.become: should be 'root' or 'sudo'"),
        ("hosts:\n- address: a\n  roles:\n  - broker\n  - leader", ":5: hosts.0.roles.1: should be 'broker', "),
        ("hosts: [{address: a, port: '22'}]", ":1: hosts.0.port: should be a whole number"),
        ("hosts: [{address: a, port: yes}]", ":1: hosts.0.port: should be a whole number"),
        ("hosts:\n- address: a\n- address: a\n  name: b", ":3: hosts.1.address: an earlier host is at this address"),
        ("hosts:\n- {address: a, name: x}\n- {address: b, name: x}", ":3: hosts.1.name: an earlier host is called so"),
        ("hosts:\n- {address: a}\n- {address: b, name: a}", ":3: hosts.1.name: an earlier host is called so"),
        ("hosts: [{address: a}]\nports: {ssh: 22}", ":2: ports.ssh: not a port of a node; known: client, controller"),
        (
            "hosts: [{address: a}]\nports: {cliend: 22}",
            ":2: ports.cliend: not a port of a node; did you mean 'client'?",
        ),
        ("hosts: [{address: a}]\nports: {client: '22'}", ":2: ports.client: should be a whole number"),
        ("hosts: [{address: a}]\nports: {client: 9094}", ":2: ports: the ports of a node must differ"),
        ("hosts: [{address: a}]\nheals_after: 5", ":2: heals_after: should be a duration such as 250ms"),
        ("hosts: [{address: a}]\nheals_after: 0s", ":2: heals_after: should be greater than or equal to 30"),
        ("hosts: [{address: a}]\nheals_after: 2d", ":2: heals_after: should be a duration such as 250ms"),
        ("hosts: [{address: a}]\nclients: here", ":2: clients: should be an IPv4 address"),
        ("hosts:\n- address: a\n  key: ~nobody-of-that-name/k", ":3: hosts.0.key: there is no such user here"),
        ("hosts: [{address: a}]\nknown_hosts: ~nobody-of-that-name/k", ":2: known_hosts: there is no such user here"),
        # What stands under `defaults` is wrong there, and wrong once.
        (
            "hosts: [{address: a}, {address: b}]\ndefaults:\n  usr: x",
            ":3: defaults.usr: no such key; did you mean 'user'?",
        ),
        (
            "hosts: [{address: a}, {address: b}]\ndefaults:\n  roles: [leader]",
            ":3: defaults.roles.0: should be 'broker',",
        ),
        ("hosts: [{address: a}]\ndefaults:\n  key: ~nobody-of-that-name/k", ":3: defaults.key: there is no such user"),
        ("hosts: [{address: a}]\ndefaults: [a]", ":2: defaults: should be a mapping of keys to values"),
    ],
)
def test_an_error_in_an_inventory_is_one_line_with_its_place(text: str, says: str, tmp_path: Path) -> None:
    path = inventory(tmp_path, text)
    with pytest.raises(ScenarioError) as raised:
        read_inventory(path)
    assert str(raised.value).startswith(f"{path}{says}")
    assert "secret" not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_each_mistake_has_a_line(tmp_path: Path) -> None:
    path = inventory(tmp_path, "ports: {client: x}\nhosts:\n  - {address: a, usr: x}\n  - {address: b, become: su}\n")
    with pytest.raises(ScenarioError) as raised:
        read_inventory(path)
    assert [line.partition(":")[2].partition(": ")[0] for line in str(raised.value).splitlines()] == ["1", "3", "4"]


def test_one_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="the inventory cannot be read"):
        read_inventory(tmp_path / "none.yaml")


def host(name: str, *roles: str) -> Host:
    return Host.model_validate({"address": name, **({"roles": list(roles)} if roles else {})})


@pytest.mark.parametrize(
    ("spec", "hosts", "where"),
    [
        (
            {"brokers": 3},
            [host("m1", "broker"), host("m2", "broker"), host("m3", "broker"), host("m4", "controller", "zookeeper")],
            {"b1": "m1", "b2": "m2", "b3": "m3", "c1": "m4"},
        ),
        ({"brokers": 2}, [host("m1"), host("m2", "broker"), host("m3")], {"b1": "m2", "b2": "m1", "c1": "m3"}),
        (
            {"brokers": 1, "version": "3.9.2", "metadata": "zookeeper"},
            [host("m1", "zookeeper"), host("m2", "broker")],
            {"b1": "m2", "z1": "m1"},
        ),
    ],
)
def test_each_node_is_on_a_machine_of_its_own(spec: dict[str, Any], hosts: list[Host], where: dict[str, str]) -> None:
    chosen = placed(ClusterSpec.model_validate(spec), hosts)
    assert {name: one.called for name, one in chosen.items()} == where


def test_too_few_machines_are_said_to_be_so() -> None:
    hosts = [host("m1", "broker"), host("m2", "broker"), host("m3", "controller")]
    with pytest.raises(NoMeans, match=r"4 nodes, 3 of them brokers, .* of the 3 machines .* 2 may be brokers"):
        placed(ClusterSpec(brokers=3), hosts)


SECRET = "hunter2"


@pytest.mark.parametrize(
    "text",
    [
        f"hosts: [{{address: a, password: {SECRET}: x}}]",
        f"hosts:\n  - address: a\n  password: {SECRET}\n",
        f"hosts:\n  - address: a\n    password: '{SECRET}\n",
        f"hosts:\n  - {{address: a, password: !!python/{SECRET} 1}}\n",
        f"hosts: [*{SECRET}]",
        "hosts: {",
        f"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n{SECRET}\n",
    ],
)
def test_an_inventory_that_is_no_yaml_is_refused_by_its_line_without_its_text(text: str, tmp_path: Path) -> None:
    path = inventory(tmp_path, text)
    with pytest.raises(ScenarioError, match=r"^[^\n]*machines.yaml:\d+: no valid YAML: ") as raised:
        read_inventory(path)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize("secret", [SECRET, "/ 4711 /", "4711"])
@pytest.mark.parametrize("of", ["host", "defaults"])
def test_no_value_of_an_inventory_is_quoted(of: str, secret: str, tmp_path: Path) -> None:
    """Whatever key a password was put under."""
    keys = [*Host.model_fields, "password"] if of == "host" else [*Inventory.model_fields, "password"]
    for key in keys:
        for value in (secret, f"'{secret}'", f"[{secret}]", f"{{name: {secret}}}"):
            text = f"hosts:\n- address: a\n{'  ' if of == 'host' else ''}{key}: {value}\n"
            path = inventory(tmp_path, text.replace("- address: a\n", "- user: a\n") if key == "address" else text)
            assert secret not in why_not(path).replace(str(path), "")


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ("hosts: [{address: a}]\nhosts: [{address: b}]\n", 2, "hosts"),
        ("hosts:\n  - {address: a}\n  - address: b\n    user: x\n    user: y\n", 5, "user"),
    ],
)
def test_a_key_that_stands_there_twice_is_refused(text: str, line: int, key: str, tmp_path: Path) -> None:
    """Of two lists of hosts one would be passed over in silence."""
    path = inventory(tmp_path, text)
    with pytest.raises(ScenarioError, match=rf"machines.yaml:{line}: '{key}' appears twice"):
        read_inventory(path)
