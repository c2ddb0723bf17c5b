"""Queues of tc: their text, and what their counters mean."""

import json

import pytest

from harness.core.topology import Plane
from nemesis.mechanisms import tc

from .conftest import B2

TAG = "0123abcd"
CLASS = f"4b54:{tc.minor(TAG)}"


@pytest.mark.parametrize(
    ("mechanism", "queue"),
    [
        (tc.Delay(0.25), "netem limit 100000 delay 250ms"),
        (tc.Delay(10.0, 0.05), "netem limit 100000 delay 10000ms 50ms"),
        (tc.Delay(1.0, 0.05, 0.25, "pareto"), "netem limit 100000 delay 1000ms 50ms 25% distribution pareto"),
        (tc.Lose(0.02), "netem limit 100000 loss 2%"),
        (tc.Lose(0.005, 0.25), "netem limit 100000 loss 0.5% 25%"),
    ],
)
def test_a_queue_is_written_as_netem_reads_it(mechanism: tc.Delay | tc.Lose, queue: str) -> None:
    assert mechanism.queue == queue


@pytest.mark.parametrize(("rate", "burst"), [(5_000, 3028), (1_000_000_000, 12_500_000)])
def test_a_tenth_of_a_second_of_a_rate_may_pass_at_once_and_two_frames_at_least(rate: int, burst: int) -> None:
    assert tc.Limit(rate).queue.startswith(f"tbf rate {rate}bit burst {burst} limit ")


def test_a_limit_shapes_a_planes_packets_both_ways() -> None:
    text = tc.Limit(10_000, Plane.REPLICATION).apply(B2, TAG)
    assert "show to 10.0.0.2/32" in text
    for device in ("$dev", "kt-ifb"):
        assert f"tc class add dev {device} parent 4b54: classid {CLASS} htb rate 10gbit" in text
        assert f"handle {tc.minor(TAG)}: tbf rate 10000bit burst 3028 " in text
        for end in ("sport", "dport"):
            assert f"match ip {end} 9094 0xffff" in text


def test_a_queue_for_all_traffic_matches_every_packet() -> None:
    assert "u32 match u32 0 0 flowid" in tc.Delay(1.0).apply(B2, TAG)


@pytest.mark.parametrize("tag", ["00000000", "ffffffff", "0000efff", "deadbeef"])
def test_a_class_has_a_number_that_tc_allows(tag: str) -> None:
    assert 0x10 <= int(tc.minor(tag), 16) < 0x4B54
    assert f"4b54:{tc.minor(tag)}" in tc.Lose(0.5).remove(B2, tag)


def queues(**mine: int) -> str:
    counters = {"packets": 0, "bytes": 0, "drops": 0, "qlen": 0, "overlimits": 0}
    return json.dumps(
        [
            {"handle": "0:", **counters, "packets": 99},
            {"handle": "4b54:", **counters, "packets": 99, "overlimits": 99},
            {"handle": f"{tc.minor(TAG)}:", **counters, **mine},
        ]
    )


def test_only_the_injections_own_queues_count() -> None:
    counted = tc.Delay(1.0).read(B2, TAG, queues(packets=5, bytes=500, overlimits=2))
    assert counted is not None
    assert counted.facts == {"packets": 5, "bytes": 500, "drops": 0, "waiting": 0, "overlimits": 2}


@pytest.mark.parametrize("mechanism", [tc.Delay(1.0), tc.Lose(0.5), tc.Limit(1000)], ids=lambda m: type(m).__name__)
def test_a_queue_that_is_not_there_counts_nothing(mechanism: tc.Delay | tc.Lose | tc.Limit) -> None:
    assert mechanism.read(B2, TAG, "") is None
    assert mechanism.read(B2, TAG, "[]") is None
    assert mechanism.read(B2, "00000000", queues(packets=5)) is None


@pytest.mark.parametrize(
    ("mechanism", "counters", "hit"),
    [
        (tc.Limit(1000), {"packets": 5, "overlimits": 2}, 2),
        (tc.Limit(1000), {"packets": 5, "qlen": 3}, 3),
        (tc.Limit(1000), {"packets": 5}, 0),
        (tc.Delay(1.0), {"packets": 5}, 5),
        (tc.Delay(1.0), {"qlen": 5}, 5),
        (tc.Delay(1.0), {"overlimits": 5}, 0),
        (tc.Lose(0.5), {"packets": 50, "drops": 1}, 1),
        (tc.Lose(0.5), {"packets": 50}, 0),
    ],
)
def test_packets_that_it_acted_on_are_those_held_back_or_late_or_lost(
    mechanism: tc.Delay | tc.Lose | tc.Limit, counters: dict[str, int], hit: int
) -> None:
    counted = mechanism.read(B2, TAG, queues(**counters))
    assert counted is not None
    assert counted.packets == hit


@pytest.mark.parametrize(("mechanism", "tries"), [(tc.Delay(0.25), 13), (tc.Delay(10, 1), 150), (tc.Delay(200), 600)])
def test_a_queue_of_late_packets_is_removed_when_they_have_gone(mechanism: tc.Delay, tries: int) -> None:
    remove = mechanism.remove(B2, TAG)
    steps = [remove.index(f"tc {step} del dev $d") for step in ("filter", "class")]
    assert steps[0] < remove.index(f"[ $tries -lt {tries} ]") < steps[1]
    assert "tc qdisc change" not in remove


def test_a_limit_lets_all_go_at_once_before_it_is_removed() -> None:
    remove = tc.Limit(10_000).remove(B2, TAG)
    assert remove.index(f"handle {tc.minor(TAG)}: tbf rate 10gbit") < remove.index("while [ $tries")
