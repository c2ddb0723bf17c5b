"""What is wrong with a scenario, as data: a line that says what to change, and the key it is about."""

from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches

#: Keys and indices from the top of a scenario to what is meant.
KeyPath = tuple[str | int, ...]

#: More names than these are no help in one line.
_MOST_LISTED = 40


@dataclass(frozen=True)
class Problem:
    """A line that says what to change, and where that stands: the keys and indices from the top of the scenario."""

    where: KeyPath
    says: str


def unknown(what: str, name: object, known: Collection[str]) -> str:
    """``no fault is called 'kil'; did you mean 'kill'?``, or what is known where nothing is near."""
    return f"no {what} is called {name!r}; {near(name, known)}"


def near(name: object, known: Collection[str]) -> str:
    """``did you mean 'kill'?``, or what is known where nothing is near."""
    found = get_close_matches(str(name), known, n=1)
    if found:
        return f"did you mean {found[0]!r}?"
    return f"known: {', '.join(known)}" if len(known) <= _MOST_LISTED else "none is near it"
