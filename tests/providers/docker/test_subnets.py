"""The addresses of a cluster's nodes."""

import ipaddress

from harness.cluster.spec import ClusterSpec
from harness.core.topology import Role
from harness.providers.docker.subnets import Subnet, free_subnet, topology
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


def test_published_ports_are_what_clients_bootstrap_from() -> None:
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
