"""What the program that holds packets decides of each: pure numbers, without a network."""

import argparse
import math
import statistics
from random import Random

import pytest

from nemesis.mechanisms.hold_packets import PacketLoss, Policy, deviation, parse

#: Even steps from 0 to 1: what a generator gives in the long run.
EVENLY = [(step + 0.5) / 100_000 for step in range(100_000)]


def asked(*options: str) -> argparse.Namespace:
    return parse(["hold", "it", "--queue", "1", *options])


def held(*options: str, packets: int = 20_000) -> list[float | None]:
    policy = Policy(asked(*options))
    return [policy.decide() for _ in range(packets)]


@pytest.mark.parametrize(
    ("distribution", "mean", "spread", "least", "most"),
    [
        ("uniform", 0.0, 1 / math.sqrt(3), -1.0, 1.0),
        ("normal", 0.0, 1.0, -4.0, 4.0),
        ("pareto", 0.0, 0.85, -2 / 3, 4.0),
        ("paretonormal", 0.0, 0.7, -3.0, 4.0),
    ],
)
def test_delays_vary_as_netems_tables_have_it(
    distribution: str, mean: float, spread: float, least: float, most: float
) -> None:
    values = [deviation(distribution, uniform) for uniform in EVENLY]
    assert statistics.fmean(values) == pytest.approx(mean, abs=0.06)
    if distribution in {"uniform", "normal"}:
        assert statistics.pstdev(values) == pytest.approx(spread, rel=0.01)
    assert least - 0.01 <= min(values)
    assert max(values) <= most


def test_a_normal_distribution_has_its_quantiles() -> None:
    for uniform, expected in ((0.5, 0.0), (0.8413447, 1.0), (0.1586553, -1.0), (0.9772499, 2.0)):
        assert deviation("normal", uniform) == pytest.approx(expected, abs=1e-6)


def test_a_pareto_distribution_has_a_long_tail_on_one_side_alone() -> None:
    values = [deviation("pareto", uniform) for uniform in EVENLY]
    assert sum(value > 2 for value in values) > 1000
    assert statistics.median(values) < 0 < statistics.fmean(value for value in values if value > 0)


def test_without_jitter_every_packet_is_held_as_long() -> None:
    assert set(held("--delay", "0.25")) == {0.25}


def test_with_jitter_no_packet_is_due_before_it_came() -> None:
    assert min(hold for hold in held("--delay", "0.01", "--jitter", "0.05") if hold is not None) == 0.0


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_a_delay_is_like_the_one_before_as_far_as_is_asked(correlation: float) -> None:
    delays = [hold for hold in held("--delay", "1", "--jitter", "0.1", "--correlation", str(correlation)) if hold]
    assert statistics.correlation(delays[1:], delays[:-1]) == pytest.approx(correlation, abs=0.03)


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("distribution", ["uniform", "normal", "pareto"])
@pytest.mark.heavy
def test_delays_vary_as_asked_however_they_correlate(distribution: str, correlation: float) -> None:
    options = ("--delay", "10", "--jitter", "1", "--distribution", distribution, "--correlation", str(correlation))
    delays = sorted(hold for hold in held(*options, packets=200_000) if hold is not None)
    for part in (0.05, 0.25, 0.5, 0.75, 0.95):
        assert delays[int(len(delays) * part)] == pytest.approx(10 + deviation(distribution, part), abs=0.1), part


@pytest.mark.parametrize("share", [0.02, 0.3])
@pytest.mark.parametrize("correlation", [0.0, 0.25, 0.8])
def test_losses_keep_their_share_however_they_correlate(share: float, correlation: float) -> None:
    losses = PacketLoss(Random(1), share, correlation)
    lost = [float(losses.next()) for _ in range(300_000)]
    assert statistics.fmean(lost) == pytest.approx(share, rel=0.1)
    assert statistics.correlation(lost[1:], lost[:-1]) == pytest.approx(correlation, abs=0.04)


def test_a_share_overtakes_and_the_others_are_late() -> None:
    delays = held("--delay", "0.05", "--overtake", "0.25")
    assert set(delays) == {0.0, 0.05}
    assert delays.count(0.0) == pytest.approx(5000, rel=0.05)


def test_a_lost_packet_is_not_held() -> None:
    assert held("--delay", "0.05", "--loss", "0.1").count(None) == pytest.approx(2000, rel=0.1)


def test_the_same_seed_decides_the_same() -> None:
    options = ("--delay", "1", "--jitter", "0.5", "--distribution", "pareto", "--loss", "0.1")
    assert held(*options, "--seed", "a") == held(*options, "--seed", "a")
    assert held(*options, "--seed", "a") != held(*options, "--seed", "b")
