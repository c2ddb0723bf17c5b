"""Who may not hear whom, and the rules for it."""

from hypothesis import given
from hypothesis import strategies as st

from harness.core.topology import Node, Plane
from nemesis.links import Link, by_node, packets_dropped, remove_rules, rules_for, rules_losing, secluded, severed

from .conftest import B1, B2, B3, C1, CLIENTS

GROUPS = st.sets(st.sampled_from([B1, B2, B3, C1, CLIENTS]))


def test_a_cut_both_ways_is_a_link_each_way() -> None:
    assert severed([B1], [B2]) == {Link(B1, B2), Link(B2, B1)}


def test_a_cut_one_way_loses_what_the_first_side_sends() -> None:
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


def test_rules_drop_what_arrives_and_what_leaves_in_chains_of_their_own() -> None:
    assert rules_for(B1, severed([B1], [B2], Plane.CONTROLLER), "0123abcd") == (
        "*filter\n"
        ":KT-0123abcd-I - [0:0]\n"
        ":KT-0123abcd-O - [0:0]\n"
        "-A KT-0123abcd-O -d 10.0.0.2/32 -p tcp -m multiport --ports 9093,2181,2888,3888 -j DROP\n"
        "-A KT-0123abcd-I -s 10.0.0.2/32 -p tcp -m multiport --ports 9093,2181,2888,3888 -j DROP\n"
        "-I INPUT -j KT-0123abcd-I\n"
        "-I OUTPUT -j KT-0123abcd-O\n"
        "COMMIT\n"
    )


def test_rules_of_all_traffic_name_no_port() -> None:
    assert "-A KT-x-I -s 10.0.0.254/32 -j DROP\n" in rules_for(B1, [Link(CLIENTS, B1)], "x")


def test_a_node_has_no_rules_for_links_of_others() -> None:
    assert "-A" not in rules_for(B3, severed([B1], [B2]), "x")


def test_a_share_of_what_arrives_is_lost() -> None:
    rule = (
        "-A KT-x-I ! -i lo -p tcp -m multiport --ports 9094 -m statistic --mode random --probability 0.020000 -j DROP\n"
    )
    assert rule in rules_losing(0.02, Plane.REPLICATION, "x")


def test_removing_names_no_chain_but_its_own() -> None:
    script = remove_rules("0123abcd")
    assert "iptables -w -F KT-0123abcd-I " in script
    assert "-F\n" not in script
    assert "-X\n" not in script


def test_only_packets_that_were_dropped_count() -> None:
    listing = """Chain KT-x-I (1 references)
    pkts      bytes target     prot opt in     out     source               destination
      12      720 DROP       0    --  *      *       10.0.0.2             0.0.0.0/0
       3      180 DROP       6    --  *      *       10.0.0.3             0.0.0.0/0
      99      720 ACCEPT     0    --  *      *       10.0.0.4             0.0.0.0/0
"""
    assert packets_dropped(listing) == 15
    assert packets_dropped("") == 0
