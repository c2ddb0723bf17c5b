"""Which faults of a run were in force at a time. A fault without effect never was. Pure: on rows of the table
``faults``."""

from collections.abc import Iterable

from harness.core.faults import Row, injection_of


def active(faults: Iterable[Row], at_ns: int) -> list[str]:
    """The names of the injections that were in force at a time."""
    return overlapping(faults, at_ns, at_ns)


def overlapping(faults: Iterable[Row], from_ns: int, to_ns: int) -> list[str]:
    """The names of the injections that were in force at any time between two instants."""
    return [
        injection_of(row)
        for row in faults
        if row["effective"] and row["injecting_ns"] <= to_ns and not _healed(row, from_ns)
    ]


def _healed(row: Row, at_ns: int) -> bool:
    return row["healed_ns"] is not None and row["healed_ns"] <= at_ns
