"""Inventories: what may stand in one, and which machine has which node."""

from pathlib import Path
from typing import Any

import pytest

from harness.cluster.spec import ClusterSpec
from harness.core.errors import NoMeans, ScenarioError
from harness.providers.ssh.inventory import Host, placed, read_inventory


def inventory(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "machines.yaml"
    path.write_text(text)
    return path


def test_an_inventory_says_what_its_hosts_have_in_common(tmp_path: Path) -> None:
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
        ("", "an inventory is a mapping"),
        ("hosts: []", "hosts: "),
        ("hosts: [{name: m1}]", "hosts.0.address: Field required"),
        ("hosts: [{address: '10.0.0.1; reboot'}]", "hosts.0.address: "),
        ("hosts: [{address: '-oProxyCommand=x'}]", "hosts.0.address: "),
        # (A name with such parts is no name of a host: looking it up would be an error of Python's.)
        ("hosts: [{address: host..name}]", "hosts.0.address: "),
        (f"hosts: [{{address: {'x' * 64}.org}}]", "hosts.0.address: "),
        (f"hosts: [{{address: {'.'.join('x' * 128)}}}]", "hosts.0.address: "),
        ('hosts: [{address: a, java: "a\\nb"}]', "hosts.0.java: "),
        ('hosts: [{address: a, key: "a\\0"}]', "hosts.0.key: "),
        ('known_hosts: "a\\e[2J"\nhosts: [{address: a}]', "known_hosts: "),
        ("hosts: [{address: a, user: '-l root'}]", "hosts.0.user: "),
        ("hosts: [{address: a, name: 'x\ny'}]", "hosts.0.name: "),
        ("hosts: [{address: a, data: /}]", "hosts.0.data: "),
        ("hosts: [{address: a, data: relative}]", "hosts.0.data: "),
        ("hosts: [{address: a, data: '/srv/../etc'}]", "hosts.0.data: "),
        ("hosts: [{address: a, data: '/srv/$(reboot)'}]", "hosts.0.data: "),
        ("hosts: [{address: a, password: secret}]", "hosts.0.password: Extra inputs are not permitted"),
        ("hosts: [{address: a, become: su}]", "hosts.0.become: "),
        ("hosts: [{address: a, roles: [leader]}]", "hosts.0.roles.0: "),
        ("hosts: [{address: a}, {address: a, name: b}]", "two hosts are at a"),
        ("hosts: [{address: a, name: x}, {address: b, name: x}]", "two hosts are called x"),
        ("hosts: [{address: a}]\nports: {ssh: 22}", "ports: ssh: not a port of a node"),
        ("hosts: [{address: a}]\nports: {client: 9094}", "ports: the ports of a node must differ"),
        ("hosts: [{address: a}]\nheals_after: 5", "heals_after: 5 has no unit"),
        ("hosts: [{address: a}]\nheals_after: 0s", "heals_after: "),
        ("hosts: [{address: a}]\nheals_after: 2d", "heals_after: "),
        ("hosts: [{address: a}]\nclients: here", "clients: "),
        ("hosts: [{address: a, key: ~nobody-of-that-name/k}]", "~nobody-of-that-name/k: there is no such user here"),
        ("known_hosts: ~nobody-of-that-name/k\nhosts: [{address: a}]", "~nobody-of-that-name/k: there is no such"),
    ],
)
def test_what_is_wrong_with_one_is_a_line(text: str, says: str, tmp_path: Path) -> None:
    path = inventory(tmp_path, text)
    with pytest.raises(ScenarioError) as told:
        read_inventory(path)
    assert str(told.value).startswith(f"{path}: {says}")
    assert "secret" not in str(told.value)
    assert "\n" not in str(told.value)


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
def test_an_inventory_that_is_no_yaml_is_told_by_its_line_and_not_by_what_stands_there(
    text: str, tmp_path: Path
) -> None:
    path = inventory(tmp_path, text)
    with pytest.raises(ScenarioError, match=r"^[^\n]*machines.yaml:\d+: no YAML \(") as told:
        read_inventory(path)
    assert SECRET not in str(told.value)


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
