"""Durations, shares and rates as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.quantities import (
    duration_text,
    parse_duration,
    parse_rate,
    parse_share,
    rate_text,
    share_text,
    written_duration,
    written_rate,
    written_share,
)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("250ms", 0.25), ("10s", 10), ("1.5m", 90), ("2 h", 7200), ("5us", 5e-6), (3, 3), (0.5, 0.5), (" 1s ", 1)],
)
def test_a_duration_is_seconds(written: object, seconds: float) -> None:
    assert parse_duration(written) == pytest.approx(seconds)


@pytest.mark.parametrize(("written", "seconds"), [("250ms", 0.25), ("1.5m", 90), (" 2h", 7200)])
def test_a_written_number_with_a_unit_is_a_duration(written: str, seconds: float) -> None:
    assert written_duration(written) == pytest.approx(seconds)


@pytest.mark.parametrize("written", [200, 1.5, 0, "200", "1.5", " 90 "])
def test_a_written_duration_without_a_unit_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match=r"has no unit: write .*ms or .*s"):
        written_duration(written)


@pytest.mark.parametrize("written", ["", "10 parsecs", True, None, "-1", -1])
def test_a_written_duration_that_makes_no_sense_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match=r"is not a duration such as 250ms|has no unit"):
        written_duration(written)


@pytest.mark.parametrize(("written", "fraction"), [("2%", 0.02), ("0.5%", 0.005), ("100%", 1), (0.02, 0.02)])
def test_a_share_is_a_fraction(written: object, fraction: float) -> None:
    assert parse_share(written) == pytest.approx(fraction)


@pytest.mark.parametrize(("written", "bits"), [("10kbit", 10_000), ("1.5mbit", 1_500_000), ("1gbit", 10**9), (80, 80)])
def test_a_rate_is_bits_per_second(written: object, bits: int) -> None:
    assert parse_rate(written) == bits


@given(st.integers(0, 10**6))
def test_a_parsed_duration_parses_to_itself(milliseconds: int) -> None:
    seconds = parse_duration(f"{milliseconds}ms")
    assert parse_duration(seconds) == seconds


@pytest.mark.parametrize(
    "written", ["", "10", "10 parsecs", "-1s", -1, None, True, [], "1s2s", "5S", "٥s", "5s\n", float("inf")]
)
def test_an_invalid_duration_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match="is not a duration such as 250ms"):
        parse_duration(written)


@pytest.mark.parametrize(
    ("written", "why"),
    [(2, "more than 100%"), ("101%", "more than 100%"), ("2", "such as 2%")],
)
def test_an_invalid_share_is_refused(written: object, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_share(written)


@pytest.mark.parametrize(("written", "why"), [(20, "write 20%"), (1, "write 1%"), (1.0, "write 1%"), ("101%", "100%")])
def test_a_written_percentage_without_its_sign_is_refused(written: object, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        written_share(written)


@pytest.mark.parametrize(("written", "fraction"), [("2%", 0.02), ("100%", 1), (0.02, 0.02), (0, 0)])
def test_a_written_share_is_a_fraction(written: object, fraction: float) -> None:
    assert written_share(written) == pytest.approx(fraction)


@pytest.mark.parametrize("written", [10, 1.5, "10", " 8 "])
def test_a_written_rate_without_a_unit_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match=r"has no unit: write \S+kbit or \S+mbit"):
        written_rate(written)


@pytest.mark.parametrize(("written", "why"), [("10", "such as 10kbit"), ("10kb", "10kbit")])
def test_an_invalid_rate_is_refused(written: object, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_rate(written)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (5.0, "5s"),
        (0.25, "250ms"),
        (0.0, "0s"),
        (90.0, "90s"),
        (1.5, "1.5s"),
        (1e-9, "0.000001ms"),
        (1e11, "100000000000s"),
    ],
)
def test_a_duration_is_written_as_it_is_read(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("share", "text"), [(0.02, "2%"), (0.07, "7%"), (1.0, "100%"), (0.005, "0.5%"), (1e-9, "0.0000001%")]
)
def test_a_share_is_written_as_it_is_read(share: float, text: str) -> None:
    assert share_text(share) == text
    assert parse_share(text) == share


@pytest.mark.parametrize(("rate", "text"), [(5000, "5kbit"), (8, "8bit"), (2_000_000, "2mbit"), (1500, "1500bit")])
def test_a_rate_is_written_as_it_is_read(rate: int, text: str) -> None:
    assert rate_text(rate) == text
    assert parse_rate(text) == rate
