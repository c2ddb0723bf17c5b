"""Rules that drop packets: their text, and what their counters mean."""

from harness.core.topology import Plane
from nemesis.links import Link, severed
from nemesis.mechanisms import iptables

from .conftest import B1, B2, B3, CLIENTS

HEADER = "Chain KT-x-I (1 references)\n    pkts      bytes target     prot opt in     out     source   destination\n"
LEAVING = "Chain KT-x-O (1 references)\n"


def test_rules_drop_incoming_and_outgoing_packets_in_their_own_chains() -> None:
    assert iptables.Cut(severed([B1], [B2], Plane.CONTROLLER)).apply(B1, "0123abcd") == (
        "iptables -w -t filter -nL KT-0123abcd-I >/dev/null 2>&1 || iptables-restore -w --noflush <<'RULES'\n"
        "*filter\n"
        ":KT-0123abcd-I - [0:0]\n"
        ":KT-0123abcd-O - [0:0]\n"
        "-A KT-0123abcd-O -d 10.0.0.2/32 -p tcp -m multiport --ports 9093,2181,2888,3888 -j DROP\n"
        "-A KT-0123abcd-I -s 10.0.0.2/32 -p tcp -m multiport --ports 9093,2181,2888,3888 -j DROP\n"
        "-I INPUT -j KT-0123abcd-I\n"
        "-I OUTPUT -j KT-0123abcd-O\n"
        "COMMIT\n"
        "RULES\n"
    )


def test_rules_of_all_traffic_name_no_port() -> None:
    assert iptables.Cut(frozenset({Link(CLIENTS, B1)})).rules(B1, "x") == ["-A KT-x-I -s 10.0.0.254/32 -j DROP"]


def test_a_node_has_no_rules_for_links_of_others() -> None:
    assert iptables.Cut(severed([B1], [B2])).rules(B3, "x") == []


def test_a_share_of_the_incoming_packets_is_lost() -> None:
    assert iptables.Lose(0.02, Plane.REPLICATION).rules(B1, "x") == [
        "-A KT-x-I ! -i lo -p tcp -m multiport --ports 9094 -m statistic --mode random --probability 0.020000 -j DROP"
    ]


def test_removing_names_no_chain_but_its_own() -> None:
    script = iptables.Lose(0.5).remove(B1, "0123abcd")
    assert "iptables -w -F KT-0123abcd-I " in script
    assert "-F\n" not in script
    assert "-X\n" not in script


def test_packets_are_counted_by_the_link_that_lost_them() -> None:
    listing = (
        f"{HEADER}      12      720 DROP       0    --  *      *       10.0.0.2             0.0.0.0/0\n"
        "       3      180 DROP       6    --  *      *       10.0.0.3             0.0.0.0/0\n"
        "      99      720 ACCEPT     0    --  *      *       10.0.0.2             0.0.0.0/0\n"
        f"{LEAVING}       5      180 DROP       0    --  *      *       0.0.0.0/0            10.0.0.2\n"
    )
    counted = iptables.Cut(severed([B1], [B2, B3])).read(B1, "x", listing)
    assert counted is not None
    assert counted.packets == 20
    assert counted.links == {Link(B2, B1): 12, Link(B3, B1): 3, Link(B1, B2): 5, Link(B1, B3): 0}
    assert iptables.Lose(0.5).read(B1, "x", listing).packets == 20  # type: ignore[union-attr]


def test_rules_count_as_gone_if_one_chain_is_gone() -> None:
    for listing in ("", HEADER, LEAVING, f"{HEADER}{LEAVING}".replace("KT-x", "KT-y")):
        assert iptables.Cut(severed([B1], [B2])).read(B1, "x", listing) is None
        assert iptables.Lose(0.5).read(B1, "x", listing) is None
