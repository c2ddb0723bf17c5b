"""Service: the limits that a scenario sets to what ``checkers.availability`` tells.

Kafka promises no time: a limit is the scenario's own, and to break it is a violation of that. Where a scenario sets
none, nothing is judged.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from harness.core.run_file import Limits
from harness.core.verdict import Anomaly, Standing

#: What each is in words, beside those of the catalogue.
SAID = {
    "unavailability": "partitions acknowledged nothing for longer than the scenario allows",
    "slow_recovery": "faults were healed, and nothing was acknowledged in the time that the scenario allows",
}

_EXAMPLES = 20
_SECOND_NS = 1_000_000_000

Row = Mapping[str, Any]


def overrun(limits: Limits, service: Row, faults: Sequence[Row], last_ns: int) -> dict[str, Anomaly]:
    """The limits that a run broke.

    ``service``: the availability of the run; ``faults``: rows of the table; ``last_ns``: when writes were last tried.
    """
    found = {
        "unavailability": (limits.unavailable, unavailable(limits.unavailable, service)),
        "slow_recovery": (limits.recovery, slow(limits.recovery, service, faults, last_ns)),
    }
    return {
        name: Anomaly(
            count=len(examples),
            standing=Standing.VIOLATION,
            because=f"the scenario allows {limit:g} s",
            source="the scenario's limits",
            examples=examples[:_EXAMPLES],
        )
        for name, (limit, examples) in found.items()
        if examples
    }


def unavailable(limit_s: float | None, service: Row) -> list[dict[str, Any]]:
    """The partitions whose longest time without an acknowledgement, while one was awaited, exceeds the limit."""
    if limit_s is None:
        return []
    return [
        {"topic": part["topic"], "partition": part["partition"], **part["longest_unavailable"]}
        for part in service["partitions"]
        if part["longest_unavailable"] and part["longest_unavailable"]["lasted_ns"] > limit_s * _SECOND_NS
    ]


def slow(limit_s: float | None, service: Row, faults: Sequence[Row], last_ns: int) -> list[dict[str, Any]]:
    """The faults after whose heal the next acknowledgement came later than the limit, or never.

    Never counts only where writes were still tried when the time was over.
    """
    if limit_s is None:
        return []
    late = []
    for told, fault in zip(service["after_faults"], faults, strict=True):
        took, healed = told["first_ack_after_heal_ns"], fault["healed_ns"]
        lasted = took if took is not None or healed is None else last_ns - healed
        if lasted is not None and lasted > limit_s * _SECOND_NS:
            late.append({"fault": fault["fault"], "healed_ns": healed, "lasted_ns": lasted, "ended": took is not None})
    return late
