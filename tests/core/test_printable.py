"""What anybody wrote is shown by a terminal, and not obeyed."""

from datetime import date

import pytest

from harness.core.printable import all_printable, printable, shown, tame

EVIL = "cut\x1b]0;title\x07\x1b[2J\r\x9b1A\u202ened"


def test_control_characters_are_shown_as_escapes() -> None:
    assert printable(EVIL) == "cut\\x1b]0;title\\x07\\x1b[2J\\r\\x9b1A\\u202ened"
    assert printable("á – 中 \ud800") == "á – 中 \\ud800"


def test_control_characters_are_shown_as_escapes_in_every_text_of_a_value() -> None:
    assert all_printable({"\x07": ["\x1b", {"a": ("\r", 1, None, True)}]}) == {
        "\\x07": ["\\x1b", {"a": ["\\r", 1, None, True]}]
    }


@pytest.mark.parametrize("styled", ["plain", "\x1b[1;31mred\x1b[0m", "one\n\ttwo\n"])
def test_lines_and_styles_stay(styled: str) -> None:
    assert tame(styled) == styled


@pytest.mark.parametrize(
    "obeyed", ["\x1b[2J", "\x1b]0;title\x07", "\x1b[1A", "\x1bc", "\r", "\x08", "\x9b2J", "\u202e"]
)
def test_whatever_else_is_obeyed_is_tamed(obeyed: str) -> None:
    assert not set(tame(obeyed)) & {"\x1b", "\x07", "\r", "\x08", "\x9b", "\u202e"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (float("inf"), ".inf"),
        (float("-inf"), "-.inf"),
        (float("nan"), ".nan"),
        (1.5, "1.5"),
        ("a", "'a'"),
        (["a", None], "['a', None]"),
        (date(2020, 1, 1), "2020-01-01"),
        ("a" * 200, f"'{'a' * 79}…"),
    ],
)
def test_a_value_is_shown_as_yaml_has_it_and_cut_to_fit_a_line(value: object, text: str) -> None:
    assert shown(value) == text
