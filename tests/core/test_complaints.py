"""What is wrong with a file is a line for each key, which says where it is and what to change."""

from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.core.complaints import KeysAt, Special, complaints, unknown
from harness.core.written import KeyPath, parsed


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")

    size: int = 1
    color: Literal["red", "blue"] = "red"


class Whole(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field("x", max_length=5)
    part: Part = Part()
    parts: list[Part] = Field([], min_length=1)


KEYS: dict[KeyPath, list[str]] = {
    (): ["name", "part", "parts"],
    ("part",): ["size", "color", "config"],
    ("parts", 0): ["size", "color"],
}


def lines(text: str, special: Special = lambda _, __: None, secret: bool = False) -> list[str]:
    """What is said of a file with this text."""
    written = parsed(text, "a.yaml", "a mapping")
    keys_at: KeysAt = KEYS.get
    with pytest.raises(ValidationError) as refused:
        Whole.model_validate(written.data)
    return complaints(refused.value.errors(), written, keys_at, special, secret)


def test_each_key_has_a_line_in_the_order_of_the_file() -> None:
    assert lines("parts:\n- size: x\n- color: green\nname: 5\npart: 7\n") == [
        "a.yaml:2: parts.0.size: should be a whole number, not 'x'",
        "a.yaml:3: parts.1.color: should be 'red' or 'blue', not 'green'",
        "a.yaml:4: name: should be text, not 5: put it in quotes",
        "a.yaml:5: part: should be a mapping of keys to values, not 7",
    ]


def test_a_file_with_secrets_is_not_quoted() -> None:
    assert lines("parts:\n- {size: hush, color: hush}\nname: hushed\n", secret=True) == [
        "a.yaml:2: parts.0.size: should be a whole number",
        "a.yaml:2: parts.0.color: should be 'red' or 'blue'",
        "a.yaml:3: name: is longer than 5 characters: shorten it",
    ]


def test_what_one_kind_of_file_says_itself_comes_first() -> None:
    def special(error: object, where: KeyPath) -> str | None:
        return "ours" if where == ("name",) else None

    assert lines("name: 5\nparts: []\n", special) == [
        "a.yaml:1: name: ours",
        "a.yaml:2: parts: needs at least 1: the list is empty",
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nam: x", "nam: no such key; did you mean 'name'?"),
        ("other: x", "other: no such key; known: name, part, parts"),
        ("part: {'size:1': }", "part.size:1: no such key; put a space after size:"),
        # A key with dots is a path, a setting of Kafka's, or a slip.
        ("part.size: 2", "part.size: no such key; write size below part"),
        ("part: {retention.ms: 2}", "part.retention.ms: no such key; a setting of Kafka's belongs under part.config"),
        ("retention.ms: 2", "retention.ms: no such key; a setting of Kafka's belongs under part.config"),
        (
            "part.retention.ms: 2",
            "part.retention.ms: no such key; a setting of Kafka's belongs under part.config, as retention.ms",
        ),
        ("parts: [{retention.ms: 2}]", "parts.0.retention.ms: no such key; known: size, color"),
    ],
)
def test_an_unknown_key_is_a_slip_or_belongs_elsewhere(text: str, says: str) -> None:
    assert lines(text) == [f"a.yaml:1: {says}"]


def test_a_name_that_is_like_no_other_is_answered_with_all_unless_they_are_many() -> None:
    assert unknown("fault", "kil", ["kill", "pause"]) == "no fault is called 'kil'; did you mean 'kill'?"
    assert unknown("fault", "xyz", ["kill", "pause"]) == "no fault is called 'xyz'; known: kill, pause"
    many = [f"setting-{n}" for n in range(41)]
    assert unknown("setting", "xyz", many) == "no setting is called 'xyz'; no known name is similar"
    assert unknown("setting", "xyz", many[1:]).endswith(f"known: {', '.join(many[1:])}")
