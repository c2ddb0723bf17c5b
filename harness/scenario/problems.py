"""What is wrong with a scenario, as data: a line that says what to change, and the place it is about."""

from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches

Place = tuple[str | int, ...]

#: More names than these are no help in one line.
_MOST_LISTED = 40


@dataclass(frozen=True)
class Problem:
    """A line that says what to change, and where that stands: the keys and indices from the top of the scenario."""

    where: Place
    says: str


def printable(line: str) -> str:
    """The line without what a terminal would obey, or nobody would see: those characters as Python writes them."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in line)


def unknown(what: str, given: object, known: Collection[str]) -> str:
    """``no fault is called 'kil'; did you mean 'kill'?``, or what is known where nothing is near."""
    return f"no {what} is called {given!r}; {near(given, known)}"


def near(given: object, known: Collection[str]) -> str:
    """``did you mean 'kill'?``, or what is known where nothing is near."""
    found = get_close_matches(str(given), known, n=1)
    if found:
        return f"did you mean {found[0]!r}?"
    return f"known: {', '.join(known)}" if len(known) <= _MOST_LISTED else "none is near it"
