"""A mistake in a scenario, as data: a line that says what to change, and its key."""

from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches

#: Keys and indices from the top of a scenario down to one value.
KeyPath = tuple[str | int, ...]

#: A line lists no more known names than these.
_MOST_LISTED = 40


@dataclass(frozen=True)
class Problem:
    """A line that says what to change, and where: the keys and indices from the top of the scenario."""

    where: KeyPath
    says: str


def unknown(what: str, name: object, known: Collection[str]) -> str:
    """``no fault is called 'kil'; did you mean 'kill'?``, or the known names if none is similar."""
    return f"no {what} is called {name!r}; {near(name, known)}"


def near(name: object, known: Collection[str]) -> str:
    """``did you mean 'kill'?``, or the known names if none is similar."""
    found = get_close_matches(str(name), known, n=1)
    if found:
        return f"did you mean {found[0]!r}?"
    return f"known: {', '.join(known)}" if len(known) <= _MOST_LISTED else "no known name is similar"
