"""Scenario files with random damage: what a slip of the editor, or a bad disk, makes of a good one."""

from collections.abc import Sequence
from random import Random

#: What is put in: what YAML gives a meaning, what it does not allow, and values of other types.
_PIECES = (
    *"\x00\x01\x07\x1b\x7f\t\r\n:{}[],&*!|>'\"%@`#-?~ ",
    *("\u0085", "\u2028", "\ufeff", "\ufffe", "\ud800", "😀", "é"),
    *("null", "true", "~", "-1", "0", "1e999", ".nan", "2026-99-99", "0x1g", "1_0", "12:30:45", "9" * 5000, "=", "<<"),
    *(
        "&a",
        "*a",
        "!!binary x",
        "!!python/object:os.system x",
        "? [a]",
        "- - -",
        "{}",
        "[]",
        "\n---\n",
        "\n...\n",
        "%YAML 9.9\n",
    ),
)


def mutated(text: str, others: Sequence[str], random: Random) -> str:
    """``text`` with one to four changes; some bring in parts of ``others``."""
    for _ in range(random.randint(1, 4)):
        text = random.choice(_CHANGES)(text, random.choice(others), random)
    return text


def _put_in(text: str, _: str, random: Random) -> str:
    at = random.randint(0, len(text))
    return text[:at] + random.choice(_PIECES) + text[at:]


def _take_out(text: str, _: str, random: Random) -> str:
    at = random.randint(0, len(text))
    return text[:at] + text[at + random.randint(1, 20) :]


def _replace_a_word(text: str, other: str, random: Random) -> str:
    words, theirs = text.split(" "), other.split(" ")
    words[random.randrange(len(words))] = random.choice([*theirs, *_PIECES])
    return " ".join(words)


def _move_a_line(text: str, _: str, random: Random) -> str:
    lines = text.split("\n")
    lines.insert(random.randrange(len(lines)), lines.pop(random.randrange(len(lines))))
    return "\n".join(lines)


def _splice(text: str, other: str, random: Random) -> str:
    return text[: random.randint(0, len(text))] + other[random.randint(0, len(other)) :]


def _indent_a_line(text: str, _: str, random: Random) -> str:
    lines = text.split("\n")
    at = random.randrange(len(lines))
    lines[at] = " " * random.randint(0, 6) + lines[at].strip()
    return "\n".join(lines)


_CHANGES = (_put_in, _take_out, _replace_a_word, _move_a_line, _splice, _indent_a_line)
