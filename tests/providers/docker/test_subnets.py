"""The addresses of a cluster's nodes."""

import ipaddress
import socket
from itertools import islice
from types import SimpleNamespace
from typing import cast

import pytest
from docker import DockerClient

from harness.cluster.spec import ClusterSpec
from harness.core.errors import EnvironmentLacks
from harness.core.topology import Role
from harness.providers.docker.subnets import Subnet, free_ports, free_subnet, published, topology
from tests.providers.docker.nodes import SUBNET, nodes_of


def test_a_kraft_cluster_has_brokers_and_dedicated_controllers() -> None:
    _, nodes = nodes_of(brokers=3, controllers=3)
    assert [n.name for n in nodes.nodes] == ["b1", "b2", "b3", "c1", "c2", "c3"]
    assert [n.id for n in nodes.having(Role.CONTROLLER)] == [101, 102, 103]
    assert len({n.address for n in (*nodes.nodes, nodes.clients)}) == 7
    assert all(ipaddress.ip_address(n.address) in SUBNET for n in nodes.nodes)


def test_a_zookeeper_cluster_has_no_controllers() -> None:
    _, nodes = nodes_of(version="3.9.2", metadata="zookeeper", brokers=4, zookeepers=3)
    assert [n.name for n in nodes.nodes] == ["b1", "b2", "b3", "b4", "z1", "z2", "z3"]


def test_clients_bootstrap_from_published_ports() -> None:
    ports = iter([40001, 40002, 40003])
    nodes = topology(ClusterSpec(), SUBNET, lambda: next(ports))
    assert nodes.bootstrap == "127.0.0.1:40001,127.0.0.1:40002,127.0.0.1:40003"


def test_a_free_subnet_overlaps_nothing_that_is_taken() -> None:
    first = free_subnet([], start=5)
    second = free_subnet([first], start=5) if first else None
    assert first is not None
    assert second is not None
    assert not first.overlaps(second)


def test_no_subnet_is_free_where_all_are_taken() -> None:
    assert free_subnet([Subnet("10.0.0.0/8")], start=0) is None


def test_published_ports_are_none_that_a_client_is_given_to_call_from() -> None:
    """Or who tries to reach a dead node holds its port, and keeps it from coming back."""
    found = list(islice(free_ports([], start=9_999), 100))
    assert len(set(found)) == 100
    assert all(20_000 <= port < 30_000 for port in found)


def test_a_port_that_is_listened_on_or_a_dead_node_has_is_passed_over() -> None:
    first, second, third = islice(free_ports([], start=77), 3)
    with socket.create_server(("127.0.0.1", first)):
        assert next(free_ports([second], start=77)) == third


def test_a_range_without_a_free_port_is_reported() -> None:
    with pytest.raises(EnvironmentLacks, match="no free port is left in 20000 – 29999"):
        next(free_ports(range(20_000, 30_000), start=0))


def test_nodes_that_are_dead_keep_the_ports_that_they_publish() -> None:
    def container(bindings: object) -> SimpleNamespace:
        return SimpleNamespace(attrs={"HostConfig": {"PortBindings": bindings}})

    dead = container({"9092/tcp": [{"HostIp": "127.0.0.1", "HostPort": "20001"}], "1/tcp": None})
    listed = {True: [dead, container(None), container({"9092/tcp": [{"HostIp": "", "HostPort": ""}]})]}
    engine = SimpleNamespace(containers=SimpleNamespace(list=lambda **asked: listed[asked["all"]]))
    assert published(cast(DockerClient, engine)) == {20_001}
