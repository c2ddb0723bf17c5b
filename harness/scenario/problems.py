"""A mistake in a scenario, as data: a line that says what to change, and its key."""

from dataclasses import dataclass

from harness.core.written import KeyPath


@dataclass(frozen=True)
class Problem:
    """A line that says what to change, and where: the keys and indices from the top of the scenario."""

    where: KeyPath
    says: str
