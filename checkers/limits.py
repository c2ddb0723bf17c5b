"""Service: the limits that a scenario sets for the measurements of ``checkers.availability``.

Kafka promises no times. A limit is the scenario's own, and to break it is a violation. If a scenario sets none, nothing
is judged.
"""

from collections.abc import Mapping
from typing import Any

from harness.core.anomalies import SLOW_RECOVERY, UNAVAILABILITY
from harness.core.verdict import FoundAnomaly, Standing
from harness.history.run_file import Limits, RunFile

_EXAMPLES = 20
_SECOND_NS = 1_000_000_000

Row = Mapping[str, Any]


def overrun(limits: Limits, service: Row) -> dict[str, FoundAnomaly]:
    """The limits that a run broke, judged by its availability."""
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


def limits_of(run: RunFile) -> Limits:
    """The limits that apply to a run: none if nothing is ever acknowledged (acks=0)."""
    return Limits() if run.configuration.acks == "0" else run.limits


def undecided(run: RunFile, service: Row) -> list[str] | None:
    """Why it is not known whether a limit was broken, a line for each partition; None for a run without limits.

    It is not known if the limit lies between the certain and the greatest possible length of a stretch.
    """
    if run.limits == Limits():
        return None
    limits = limits_of(run)
    if limits == Limits():
        return ["with acks=0 nothing is ever acknowledged"]
    found = []
    for part in service["partitions"]:
        name = f"{part['topic']}-{part['partition']}"
        if _between(part["longest_unavailable"], limits.unavailable, part.get("at_most_ns")):
            found.append(f"{name} acknowledged nothing for up to {part['at_most_ns'] / _SECOND_NS:g} s")
        found += [
            f"{name} acknowledged nothing for up to {at_most / _SECOND_NS:g} s after the heal of {after['fault']}"
            for after in part["after_faults"]
            for at_most in [after.get("at_most_after_heal_ns")]
            if _between(after["awaited_after_heal"], limits.recovery, at_most)
        ]
    return found


def _between(lasted: Row | None, limit_s: float | None, at_most_ns: int | None) -> bool:
    if limit_s is None or at_most_ns is None:
        return False
    return (lasted["lasted_ns"] if lasted else 0) <= limit_s * _SECOND_NS < at_most_ns


def unavailable(limit_s: float | None, service: Row) -> list[dict[str, Any]]:
    """The partitions whose longest time without an acknowledgement, while a write was pending, exceeds the limit."""
    if limit_s is None:
        return []
    return [
        {"topic": part["topic"], "partition": part["partition"], **part["longest_unavailable"]}
        for part in service["partitions"]
        if part["longest_unavailable"] and part["longest_unavailable"]["lasted_ns"] > limit_s * _SECOND_NS
    ]


def slow(limit_s: float | None, service: Row) -> list[dict[str, Any]]:
    """The heals, by partition, after which a pending write waited longer than the limit for an acknowledgement, before
    the next injection. It may have come or not."""
    if limit_s is None:
        return []
    return [
        {"fault": after["fault"], "topic": part["topic"], "partition": part["partition"], **after["awaited_after_heal"]}
        for part in service["partitions"]
        for after in part["after_faults"]
        if after["awaited_after_heal"] and after["awaited_after_heal"]["lasted_ns"] > limit_s * _SECOND_NS
    ]
