"""Text from others, such as names in a stored run: escaped, so that a terminal shows it and obeys nothing in it."""

import math
import re
from datetime import date
from typing import Any

#: A line shows no more characters of a value.
_MOST_SHOWN = 80

#: What a terminal obeys. A whole style sequence (SGR, ECMA-48) is harmless: it changes only how text looks.
_OBEYED = re.compile(r"\x1b\[[0-9;]*m|[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """``text`` with every character that is not printable written as an escape."""
    return "".join(char if char.isprintable() else _escape(char) for char in text)


def shown(value: object) -> str:
    """A value of a user's file as YAML writes it, cut to fit a line: ``null``, ``true``, ``.inf``, ``'three'``."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    text = value.isoformat() if isinstance(value, date) else repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def is_text(value: Any) -> bool:
    """Whether UTF-8 can encode every text in a value of YAML. It cannot encode a lone surrogate, which stands for a
    byte of a path that is not UTF-8."""
    pending, seen = [value], set[int]()
    while pending:
        part = pending.pop()
        if isinstance(part, str) and any("\ud800" <= char <= "\udfff" for char in part):
            return False
        # (A value may contain itself.)
        if isinstance(part, dict | list) and id(part) not in seen:
            seen.add(id(part))
            pending += [*part, *part.values()] if isinstance(part, dict) else part
    return True


def all_printable(value: Any) -> Any:
    """A JSON value in which every text, also of keys, is ``printable``."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable(str(key)): all_printable(part) for key, part in value.items()}
    return [all_printable(part) for part in value] if isinstance(value, list | tuple) else value


def tame(text: str) -> str:
    """``text`` with its lines and styles, and with all else that a terminal obeys written as an escape."""
    return _OBEYED.sub(lambda found: _escape(found[0]) if len(found[0]) == 1 else found[0], text)


def _escape(char: str) -> str:
    return char.encode("unicode_escape", "surrogatepass").decode()
