"""Service: the limits that a scenario sets to what ``checkers.availability`` tells.

Kafka promises no time: a limit is the scenario's own, and to break it is a violation of that. Where a scenario sets
none, nothing is judged.
"""

from collections.abc import Mapping
from typing import Any

from harness.core.anomalies import SLOW_RECOVERY, UNAVAILABILITY
from harness.core.verdict import FoundAnomaly, Standing
from harness.history.run_file import Limits

_EXAMPLES = 20
_SECOND_NS = 1_000_000_000

Row = Mapping[str, Any]


def overrun(limits: Limits, service: Row) -> dict[str, FoundAnomaly]:
    """The limits that a run broke, by its availability."""
    found = {
        UNAVAILABILITY.name: (limits.unavailable, unavailable(limits.unavailable, service)),
        SLOW_RECOVERY.name: (limits.recovery, slow(limits.recovery, service)),
    }
    return {
        name: FoundAnomaly(
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


def slow(limit_s: float | None, service: Row) -> list[dict[str, Any]]:
    """The heals, by partition, after which an acknowledgement was awaited for longer than the limit, and came or
    never did."""
    if limit_s is None:
        return []
    return [
        {"fault": told["fault"], "topic": part["topic"], "partition": part["partition"], **told["awaited_after_heal"]}
        for part in service["partitions"]
        for told in part["after_faults"]
        if told["awaited_after_heal"] and told["awaited_after_heal"]["lasted_ns"] > limit_s * _SECOND_NS
    ]
