"""Text from others, such as names in a stored run: escaped, so that a terminal shows it and obeys nothing in it."""

import re
from typing import Any

#: What a terminal obeys; of what styles a text (SGR, ECMA-48) no more than the look of it changes.
_OBEYED = re.compile(r"\x1b\[[0-9;]*m|[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """``text`` with what moves a terminal's cursor, or is no character at all, as an escape."""
    return "".join(char if char.isprintable() else _escape(char) for char in text)


def is_text(value: Any) -> bool:
    """Whether UTF-8 can say every text in a value of YAML: not where one has a lone surrogate, as a path of other bytes
    does."""
    left, seen = [value], set[int]()
    while left:
        one = left.pop()
        if isinstance(one, str) and any("\ud800" <= char <= "\udfff" for char in one):
            return False
        # (What is written may be a part of itself.)
        if isinstance(one, dict | list) and id(one) not in seen:
            seen.add(id(one))
            left += [*one, *one.values()] if isinstance(one, dict) else one
    return True


def all_printable(value: Any) -> Any:
    """A value of JSON with every text in it, keys too, ``printable``."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable(str(key)): all_printable(one) for key, one in value.items()}
    return [all_printable(one) for one in value] if isinstance(value, list | tuple) else value


def tame(text: str) -> str:
    """``text``, lines and styles as they are, with everything else that a terminal obeys as an escape."""
    return _OBEYED.sub(lambda found: _escape(found[0]) if len(found[0]) == 1 else found[0], text)


def _escape(char: str) -> str:
    return char.encode("unicode_escape", "surrogatepass").decode()
