"""Late, lossy and thin traffic: which mechanism a fault asks for, and of what kernel."""

from typing import Any

import pytest
from pydantic import ValidationError

from harness.core.topology import Plane
from nemesis.catalogue import FAULTS
from nemesis.fault import Aim
from nemesis.faults.network import NetworkFault
from nemesis.mechanisms import iptables, netem, nfqueue, tc
from nemesis.mechanisms.mechanism import Either, Mechanism

from .conftest import B2, B3, TOPOLOGY

AIM = Aim("it", {"target": (B2, B3)})
NETEM = frozenset({"htb", "netem"})
HELD = frozenset({"nfqueue"})


def fault(kind: str, **written: Any) -> NetworkFault:
    made = FAULTS[kind].model_validate({"target": "followers", **written})
    assert isinstance(made, NetworkFault)
    return made


@pytest.mark.parametrize(
    ("kind", "written", "mechanism"),
    [
        (
            "slow",
            {"delay": "250ms", "plane": "replication"},
            Either(netem.Delay(0.25, plane=Plane.REPLICATION), nfqueue.Delay(0.25, plane=Plane.REPLICATION)),
        ),
        (
            "slow",
            {"delay": "1s", "jitter": "50ms", "distribution": "pareto"},
            Either(netem.Delay(1.0, 0.05, "pareto"), nfqueue.Delay(1.0, 0.05, "pareto")),
        ),
        # netem's delays do not correlate, though it takes the option: never by netem.
        (
            "slow",
            {"delay": "1s", "jitter": "50ms", "correlation": "25%", "distribution": "pareto"},
            nfqueue.Delay(1.0, 0.05, "pareto", correlation=0.25),
        ),
        ("flaky", {"loss": "2%"}, Either(netem.Lose(0.02), iptables.Lose(0.02))),
        ("flaky", {"loss": "2%", "correlation": "10%"}, Either(netem.Lose(0.02, 0.1), nfqueue.Lose(0.02, 0.1))),
        ("reorder", {"share": "25%"}, Either(netem.Reorder(0.25, 0.01), nfqueue.Reorder(0.25, 0.01))),
        ("duplicate", {"share": "5%", "plane": "client"}, netem.Duplicate(0.05, Plane.CLIENT)),
        ("corrupt", {"share": "5%"}, netem.Corrupt(0.05)),
        ("throttle", {"rate": "10kbit", "plane": "client"}, tc.Limit(10_000, Plane.CLIENT)),
    ],
)
def test_a_fault_asks_for_the_same_on_every_node_hit(kind: str, written: dict[str, Any], mechanism: Mechanism) -> None:
    assert fault(kind, **written).mechanisms(AIM, TOPOLOGY) == {B2: mechanism, B3: mechanism}


def test_a_delay_without_jitter_does_not_vary() -> None:
    with pytest.raises(ValidationError, match="give a jitter as well"):
        fault("slow", delay="1s", correlation="25%")


@pytest.mark.parametrize("rate", ["0bit", "7bit", 7])
def test_a_rate_of_no_byte_per_second_is_a_cut(rate: object) -> None:
    with pytest.raises(ValidationError, match="lets nothing through; to cut traffic use `partition` or `isolate`"):
        fault("throttle", rate=rate)
    assert fault("throttle", rate="8bit")


@pytest.mark.parametrize(
    ("kind", "written", "needs"),
    [
        ("slow", {"delay": "1s"}, (NETEM, HELD)),
        ("slow", {"delay": "1s", "jitter": "50ms", "correlation": "0%"}, (HELD,)),
        ("flaky", {"loss": "2%"}, (NETEM, frozenset({"iptables"}))),
        ("flaky", {"loss": "2%", "correlation": "10%"}, (NETEM, HELD)),
        ("reorder", {"share": "25%"}, (NETEM, HELD)),
        ("duplicate", {"share": "5%"}, (NETEM,)),
        ("corrupt", {"share": "5%"}, (NETEM,)),
        ("throttle", {"rate": "10kbit"}, (frozenset({"htb", "tbf", "ifb"}),)),
    ],
)
def test_each_fault_names_the_kernel_features_it_needs(kind: str, written: dict[str, Any], needs: object) -> None:
    assert fault(kind, **written).needs == needs


CLIENT, REPLICATION = {"plane": "client"}, {"plane": "replication"}
LATE, TWICE = {"delay": "1s"}, {"share": "5%"}


@pytest.mark.parametrize(
    ("one", "other", "why"),
    [
        (
            ("slow", {**LATE, **CLIENT}),
            ("slow", {**LATE, **CLIENT}),
            "traffic of b1 is shaped by 'it' already",
        ),
        (("slow", {**LATE}), ("corrupt", {**TWICE, **CLIENT}), "the same traffic of b1"),
        (("slow", {**LATE, **CLIENT}), ("corrupt", {**TWICE, **REPLICATION}), None),
        (("throttle", {"rate": "1mbit", **CLIENT}), ("slow", {**LATE, **REPLICATION}), None),
        # The kernel has a netem that duplicates beside no other.
        (("duplicate", {**TWICE, **CLIENT}), ("slow", {**LATE, **REPLICATION}), "a netem that duplicates"),
        (("flaky", {"loss": "2%", **CLIENT}), ("duplicate", {**TWICE, **REPLICATION}), "and traffic of b1 is shaped"),
        (
            ("duplicate", {**TWICE, **CLIENT}),
            ("duplicate", {**TWICE, **REPLICATION}),
            "a netem that duplicates",
        ),
        # Beside what is not netem's it may be.
        (("duplicate", {**TWICE, **CLIENT}), ("throttle", {"rate": "1mbit", **REPLICATION}), None),
        (
            ("slow", {**LATE, "jitter": "5ms", "correlation": "50%", **CLIENT}),
            ("duplicate", {**TWICE, **REPLICATION}),
            None,
        ),
    ],
)
def test_faults_that_shape_the_same_traffic_of_a_node_clash(one: Any, other: Any, why: str | None) -> None:
    (kind, written), (other_kind, other_written) = one, other
    mine, theirs = fault(kind, **written), fault(other_kind, **other_written)
    assert mine.clashes(theirs) == theirs.clashes(mine)
    said = mine.clashes(theirs)
    assert (said is None) == (why is None)
    assert why is None or why in (said or "").format(of=" of b1", other="'it'")


def test_of_two_mechanisms_the_one_that_is_there_counts() -> None:
    either = Either(netem.Lose(0.5), iptables.Lose(0.5))
    number, chains = tc.minor(AIM.tag), f"Chain KT-{AIM.tag}-I (1 references)\nChain KT-{AIM.tag}-O (1 references)\n"
    queue = f'[{{"handle":"{number}:","packets":9,"bytes":9,"drops":2,"qlen":0,"overlimits":0,"requeues":0}}]\n'
    rule = "   4   200 DROP  0  --  *  *  0.0.0.0/0  0.0.0.0/0\n"
    for listing, facts in (
        (f"{queue}KT-OR\n", {"by": "netem", "of": "what leaves", "packets_dropped": 2}),
        (f"[]\nKT-OR\n{chains}{rule}", {"by": "iptables statistic", "of": "what arrives", "packets_dropped": 4}),
        (f"[]\nKT-OR\n{chains}", {"by": "iptables statistic", "of": "what arrives", "packets_dropped": 0}),
    ):
        counted = either.read(B2, AIM.tag, listing)
        assert counted is not None
        assert counted.facts == facts
    assert either.read(B2, AIM.tag, "[]\nKT-OR\n") is None
