"""Late, lossy and thin traffic: the tc text, and what its counters mean."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from harness.core.topology import Plane
from nemesis.catalogue import FAULTS
from nemesis.evidence import Effect
from nemesis.fault import Aim
from nemesis.shaping import Shape, apply_shape, minor, remove_shape, traffic
from nemesis.traffic import Flaky, Slow, Throttle

from .conftest import B2, B3, TOPOLOGY

AIM = Aim("it", {"target": (B2, B3)})


def slow(**written: Any) -> Slow:
    return Slow.model_validate({"target": "b2", **written})


@pytest.mark.parametrize(
    ("written", "queue"),
    [
        ({"delay": "250ms"}, "netem limit 100000 delay 250ms"),
        ({"delay": "10s", "jitter": "50ms"}, "netem limit 100000 delay 10000ms 50ms"),
        (
            {"delay": "1s", "jitter": "50ms", "correlation": "25%", "distribution": "pareto"},
            "netem limit 100000 delay 1000ms 50ms 25% distribution pareto",
        ),
    ],
)
def test_a_delay_is_written_as_netem_reads_it(written: dict[str, Any], queue: str) -> None:
    assert slow(**written).queue() == queue


def test_a_loss_is_written_as_netem_reads_it() -> None:
    assert Flaky(target="b2", loss="2%").queue() == "netem limit 100000 loss 2%"  # type: ignore[arg-type]
    correlated = Flaky.model_validate({"target": "b2", "loss": "0.5%", "correlation": "25%"})
    assert correlated.queue() == "netem limit 100000 loss 0.5% 25%"


def test_a_delay_without_jitter_does_not_vary() -> None:
    with pytest.raises(ValidationError, match="give a jitter as well"):
        slow(delay="1s", correlation="25%")


@pytest.mark.parametrize(
    ("kind", "written", "needs"),
    [
        ("slow", {"delay": "1s"}, {"netem", "htb"}),
        ("flaky", {"loss": "2%"}, {"iptables"}),
        ("flaky", {"loss": "2%", "correlation": "10%"}, {"netem", "htb"}),
        ("throttle", {"rate": "10kbit"}, {"htb", "tbf", "ifb"}),
    ],
)
def test_what_a_fault_needs_of_the_kernel(kind: str, written: dict[str, Any], needs: set[str]) -> None:
    assert FAULTS[kind].model_validate({"target": "b1", **written}).needs == needs


def test_correlated_loss_has_no_second_best() -> None:
    correlated = Flaky.model_validate({"target": "b2", "loss": "2%", "correlation": "10%"})
    assert "iptables-restore" not in correlated.scripts(AIM, TOPOLOGY)[B2].apply
    plain = Flaky.model_validate({"target": "b2", "loss": "2%"})
    assert "iptables-restore" in plain.scripts(AIM, TOPOLOGY)[B2].apply


def test_a_throttle_shapes_a_planes_packets_both_ways_on_every_node_hit() -> None:
    scripts = Throttle.model_validate({"target": "followers", "rate": "10kbit", "plane": "replication"}).scripts(
        AIM, TOPOLOGY
    )
    assert set(scripts) == {B2, B3}
    text = scripts[B2].apply
    assert "show to 10.0.0.2/32" in text
    for device in ("$dev", "kt-ifb"):
        assert f"tc class add dev {device} parent 4b54: classid 4b54:{minor(AIM.tag)} htb rate 10gbit" in text
        assert f"handle {minor(AIM.tag)}: tbf rate 10000bit burst 3028 " in text
        for end in ("sport", "dport"):
            assert f"match ip {end} 9094 0xffff" in text


@pytest.mark.parametrize(("rate", "burst"), [("5kbit", 3028), ("1gbit", 12_500_000)])
def test_a_tenth_of_a_second_of_a_rate_may_pass_at_once_and_two_frames_at_least(rate: str, burst: int) -> None:
    throttle = Throttle.model_validate({"target": "b2", "rate": rate})
    assert f" burst {burst} " in throttle.queue()


def test_a_shape_of_all_traffic_matches_every_packet() -> None:
    assert "u32 match u32 0 0 flowid" in apply_shape(B2, Shape("pfifo limit 1", plane=Plane.ALL), AIM.tag)


@pytest.mark.parametrize("tag", ["00000000", "ffffffff", "0000efff", "deadbeef"])
def test_a_class_has_a_number_that_tc_allows(tag: str) -> None:
    assert 0x10 <= int(minor(tag), 16) < 0x4B54
    assert f"4b54:{minor(tag)}" in remove_shape(B2, Shape("pfifo"), tag)


def queues(**mine: int) -> str:
    counters = {"packets": 0, "bytes": 0, "drops": 0, "qlen": 0, "overlimits": 0}
    return json.dumps(
        [
            {"handle": "0:", **counters, "packets": 99},
            {"handle": "4b54:", **counters, "packets": 99, "overlimits": 99},
            {"handle": f"{minor(AIM.tag)}:", **counters, **mine},
        ]
    )


def test_only_the_injections_own_queues_count() -> None:
    counted = traffic(queues(packets=5, bytes=500, overlimits=2), AIM.tag)
    assert counted is not None
    assert (counted.packets, counted.bytes, counted.overlimits) == (5, 500, 2)
    assert traffic("", AIM.tag) is None


@pytest.mark.parametrize(
    ("counters", "bit"),
    [
        ({"packets": 5, "overlimits": 2}, True),
        ({"packets": 5, "qlen": 2}, True),
        ({"qlen": 2}, True),
        ({"packets": 5}, False),
    ],
)
def test_a_throttle_bit_if_its_packets_had_to_wait(counters: dict[str, int], bit: bool) -> None:
    throttle = Throttle.model_validate({"target": "b2", "rate": "10kbit"})
    assert (throttle.counted(AIM, queues(**counters)).effect is Effect.HOLDS) is bit


@pytest.mark.parametrize(
    ("counters", "acts"), [({"packets": 5}, True), ({"qlen": 5}, True), ({}, False), ({"overlimits": 5}, False)]
)
def test_slow_acts_if_packets_were_late_or_still_wait(counters: dict[str, int], acts: bool) -> None:
    seen = slow(delay="250ms").counted(AIM, queues(**counters))
    assert (seen.effect is Effect.HOLDS) is acts


@pytest.mark.parametrize(
    ("written", "tries"), [({"delay": "250ms"}, 13), ({"delay": "10s", "jitter": "1s"}, 150), ({"delay": "200s"}, 600)]
)
def test_a_queue_of_late_packets_is_removed_when_they_have_gone(written: dict[str, Any], tries: int) -> None:
    remove = slow(**written).scripts(AIM, TOPOLOGY)[B2].remove
    steps = [remove.index(f"tc {step} del dev $d") for step in ("filter", "class")]
    assert steps[0] < remove.index(f"[ $tries -lt {tries} ]") < steps[1]
    assert "tc qdisc change" not in remove


def test_a_throttle_lets_all_go_at_once_before_it_is_removed() -> None:
    throttle = Throttle.model_validate({"target": "b2", "rate": "10kbit"})
    remove = throttle.scripts(Aim("it", {"target": (B2,)}), TOPOLOGY)[B2].remove
    assert remove.index(f"handle {minor(AIM.tag)}: tbf rate 10gbit") < remove.index("while [ $tries")


def test_flaky_bit_if_netem_or_iptables_lost_packets() -> None:
    flaky = Flaky.model_validate({"target": "b2", "loss": "2%"})
    lost = flaky.counted(AIM, f"QUEUES\n{queues(packets=50, drops=1)}")
    assert (lost.effect, lost.facts["by"]) == (Effect.HOLDS, "netem")
    chains = f"Chain KT-{AIM.tag}-I (1 references)\nChain KT-{AIM.tag}-O (1 references)\n"
    lost = flaky.counted(AIM, f"{chains}   4   200 DROP  0  --  *  *  0.0.0.0/0  0.0.0.0/0\nQUEUES\n[]")
    assert (lost.effect, lost.facts["by"]) == (Effect.HOLDS, "iptables statistic")
    lost = flaky.counted(AIM, f"{chains}   0     0 DROP  0  --  *  *  0.0.0.0/0  0.0.0.0/0\nQUEUES\n[]")
    assert lost.effect is Effect.NOT_KNOWN


@pytest.mark.parametrize(
    "fault",
    [slow(delay="1s"), Flaky(target="b2", loss="2%"), Throttle(target="b2", rate="1mbit")],  # type: ignore[arg-type]
    ids=lambda fault: fault.kind(),
)
def test_traffic_whose_rules_are_gone_is_not_shaped(fault: Slow | Flaky | Throttle) -> None:
    assert fault.counted(AIM, "QUEUES\n[]" if isinstance(fault, Flaky) else "[]").effect is Effect.DOES_NOT_HOLD
