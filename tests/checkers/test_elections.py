"""What is known of elections: when each term began and ended, whose word tells its ISR, and what nobody told.

Each rule with the histories that it must not reach.
"""

from typing import Any

import pytest

from harness.core.verdict import Standing
from tests.checkers.test_holders import (
    ALONE,
    CUT,
    PERMITTED,
    UNCLEAN,
    UNDECIDED,
    VIOLATION,
    decided,
    saw,
)


def silent_before(killed: str = "25", first: str = "0..20") -> list[str]:
    """b1 was alone in the ISR when it was last told, at 20 s; nobody told anything until b2 led, at 26 s."""
    return [
        *saw("b1,b2,b3", first, 1, 0, "1"),
        f"fault killed b1 {killed}..60 kind=kill",
        *saw("b2,b3", "26..60", 2, 1, "2,3"),
        *CUT,
    ]


@pytest.mark.parametrize(
    ("settings", "killed", "standing"),
    [
        (UNCLEAN, "25", UNDECIDED),
        (UNCLEAN, "20.5", PERMITTED),
        (ALONE, "25", UNDECIDED),
        (ALONE, "20.5", VIOLATION),
    ],
    ids=["it may have it", "its leader was dead", "a clean election perhaps", "a clean election never"],
)
def test_who_may_have_joined_the_isr_in_a_silence(settings: dict[str, Any], killed: str, standing: Standing) -> None:
    assert decided("send r ok @5 t10..11", *silent_before(killed), **settings).standing is standing


def test_a_silence_before_it_was_sent_lets_nobody_have_it() -> None:
    lines = [*saw("b1,b2,b3", "0..2", 1, 0, "1"), *silent_before(killed="20.5", first="8..20")]
    assert decided("send r ok @5 t10..11", *lines, **UNCLEAN).standing is PERMITTED


def test_a_silence_with_others_before_and_after_it_may_hide_who_joined_and_left_the_isr() -> None:
    lines = [*saw("b1,b2,b3", "0..11", 1, 0, "1"), *silent_before(killed="20.5", first="16..20")]
    assert decided("send r ok @5 t9..9.5", *lines, **UNCLEAN).standing is UNDECIDED
    assert decided("send r ok @5 t9..9.5", *lines, acks="1", **UNCLEAN).standing is PERMITTED
