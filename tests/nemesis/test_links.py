"""Who may not hear whom."""

from hypothesis import given
from hypothesis import strategies as st

from harness.core.topology import Node, Plane
from nemesis.links import Link, by_node, secluded, severed

from .conftest import B1, B2, B3, C1, CLIENTS

GROUPS = st.sets(st.sampled_from([B1, B2, B3, C1, CLIENTS]))


def test_a_cut_both_ways_is_a_link_each_way() -> None:
    assert severed([B1], [B2]) == {Link(B1, B2), Link(B2, B1)}


def test_a_one_way_cut_loses_packets_sent_by_the_first_side() -> None:
    assert severed([B1], [B2, B3], Plane.REPLICATION, both_ways=False) == {
        Link(B1, B2, Plane.REPLICATION),
        Link(B1, B3, Plane.REPLICATION),
    }


@given(GROUPS, GROUPS)
def test_a_cut_is_symmetric_and_never_of_a_node_from_itself(a: set[Node], b: set[Node]) -> None:
    links = severed(a, b)
    assert links == severed(b, a)
    assert {(link.sender, link.receiver) for link in links} == {
        (x, y) for x in a | b for y in a | b if x != y and ((x in a and y in b) or (x in b and y in a))
    }


def test_the_secluded_hear_nobody_not_even_each_other() -> None:
    assert secluded([B1, B2], [B1, B2, B3]) == severed([B1, B2], [B1, B2, B3])
    assert Link(B1, B2) in secluded([B1, B2], [B3])


@given(GROUPS, GROUPS)
def test_every_link_is_enforced_once_by_a_node_at_one_of_its_ends(a: set[Node], b: set[Node]) -> None:
    links = severed(a, b - {CLIENTS})
    nodes = (a | b) - {CLIENTS}
    shares = by_node(links, nodes)
    assert set(shares) <= nodes
    assert sorted(link for share in shares.values() for link in share) == sorted(links)
    assert all(node in (link.sender, link.receiver) for node, share in shares.items() for link in share)


def test_one_node_enforces_its_cut_from_many_alone() -> None:
    assert set(by_node(severed([B1], [B2, B3, C1]), [B1, B2, B3, C1])) == {B1}
    assert set(by_node(severed([B2, B3], [B1]), [B1, B2, B3])) == {B1}
