"""Nodes and the roles they have."""

import pytest

from harness.core.topology import Node, Plane, Ports, Role, Topology, View

B1, B2, B3 = (Node(f"b{n}", Role.BROKER, n, f"10.0.0.{n}") for n in (1, 2, 3))
C1 = Node("c1", Role.CONTROLLER, 101, "10.0.0.101")
CLIENTS = Node("clients", Role.CLIENTS, 0, "10.0.0.254")
TOPOLOGY = Topology((C1, B2, B1, B3), CLIENTS)


def test_nodes_of_a_role_come_in_the_order_of_their_ids() -> None:
    assert TOPOLOGY.brokers == (B1, B2, B3)
    assert TOPOLOGY.having(Role.CONTROLLER) == (C1,)
    assert TOPOLOGY.having(Role.ZOOKEEPER) == ()


@pytest.mark.parametrize(("broker", "node"), [(2, B2), (-1, None), (101, None)])
def test_a_broker_is_found_by_its_id_and_no_leader_is_none(broker: int, node: Node | None) -> None:
    assert TOPOLOGY.broker(broker) == node


@pytest.mark.parametrize(("name", "node"), [("c1", C1), ("clients", CLIENTS), ("b9", None)])
def test_a_node_is_found_by_its_name(name: str, node: Node | None) -> None:
    assert TOPOLOGY.named(name) == node


def test_clients_begin_with_every_broker() -> None:
    assert TOPOLOGY.bootstrap == "10.0.0.1:9092,10.0.0.2:9092,10.0.0.3:9092"


def test_followers_are_the_replicas_that_do_not_lead() -> None:
    assert View(B1, (B1, B2, B3), (B1,), C1).followers == (B2, B3)
    assert View(None, (B1, B2), (), None).followers == (B1, B2)


def test_no_two_planes_share_a_port() -> None:
    ports = [port for plane in Plane for port in Ports().of(plane)]
    assert len(ports) == len(set(ports))
    assert Ports().of(Plane.ALL) == ()
