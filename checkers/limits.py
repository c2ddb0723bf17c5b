"""Service: the limits that a scenario sets for the measurements of ``checkers.availability``.

Kafka promises no times. A limit is the scenario's own, and to break it is a violation. If a scenario sets none, nothing
is judged.

Recovery is judged from a heal to the next injection, if no other fault was in force at the heal: what that one does is
no recovery.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from checkers.evidence.intervals import NEVER
from harness.core.anomalies import SLOW_RECOVERY, UNAVAILABILITY
from harness.core.clock import SECOND_NS
from harness.core.faults import acted_on, in_doubt
from harness.core.verdict import MOST_EXAMPLES, FoundAnomaly, Standing
from harness.history.run_file import Limits, RunFile

Row = Mapping[str, Any]


def overrun(limits: Limits, service: Row, faults: Sequence[Row]) -> dict[str, FoundAnomaly]:
    """The limits that a run broke, judged by its availability and its faults."""
    found = {
        UNAVAILABILITY.name: (limits.unavailable, unavailable(limits.unavailable, service)),
        SLOW_RECOVERY.name: (limits.recovery, slow(limits.recovery, service, faults)),
    }
    return {
        name: FoundAnomaly(
            count=len(examples),
            standing=Standing.VIOLATION,
            because=f"the scenario allows {limit:g} s",
            source="the scenario's limits",
            examples=examples[:MOST_EXAMPLES],
        )
        for name, (limit, examples) in found.items()
        if examples
    }


def limits_of(run: RunFile) -> Limits:
    """The limits that apply to a run: none if nothing is ever acknowledged (acks=0)."""
    return Limits() if run.configuration.acks == "0" else run.limits


def undecided(run: RunFile, service: Row, faults: Sequence[Row]) -> list[str] | None:
    """Why it is not known whether a limit was broken, a line for each partition; None for a run without limits.

    It is not known if the limit lies between the certain and the greatest possible length of a stretch; of recovery,
    also if no time in which it is judged has an acknowledgement, and none is longer than the limit.
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
            found.append(f"{name} acknowledged nothing for up to {part['at_most_ns'] / SECOND_NS:g} s")
        if limits.recovery is not None:
            found += [f"{name} acknowledged nothing {when}" for when in _in_doubt(part, limits.recovery, faults)]
    return found


def _in_doubt(part: Row, limit_s: float, faults: Sequence[Row]) -> Iterator[str]:
    """When a partition may have taken longer than the limit to recover."""
    seen = False
    known = [*_recovering(part, faults)]
    for heal in _recovering(part, faults, doubts=False):
        after, _ = heal
        lasted, longest_ns = after["awaited_after_heal"], after.get("at_most_after_heal_ns")
        if heal not in known and (_longer(lasted, limit_s) or _between(lasted, limit_s, longest_ns)):
            after_heal = f"after the heal of {after['fault']}"
            yield f"for longer than {limit_s:g} s {after_heal}, perhaps: another fault may have been in force"
    for after, lasted_ns in known:
        awaited: Row | None = after["awaited_after_heal"]
        at_most: int | None = after.get("at_most_after_heal_ns")
        seen = seen or _acknowledged(after, lasted_ns) or _longer(awaited, limit_s)
        if at_most is not None and _between(awaited, limit_s, at_most):
            yield f"for up to {at_most / SECOND_NS:g} s after the heal of {after['fault']}"
    if not seen:
        yield "from any heal to the next injection with no other fault in force"


def _recovering(part: Row, faults: Sequence[Row], doubts: bool = True) -> Iterator[tuple[Row, int]]:
    """The heals of a partition's ``after_faults`` (of ``faults``, in their order) at which no other fault was in force,
    each with the time from there to the next injection. ``doubts``: whether a fault counts of which nobody knows
    whether it acted."""
    for after, row in zip(part["after_faults"], faults, strict=True):
        healed: int | None = row["healed_ns"]
        if healed is None or any(other is not row and _in_force(other, healed, doubts) for other in faults):
            continue
        following = (other["injecting_ns"] for other in faults if other["injecting_ns"] >= healed)
        yield after, min(following, default=NEVER) - healed


def _in_force(fault: Row, at_ns: int, doubts: bool) -> bool:
    """Whether a fault acts at an instant; with ``doubts`` also whether it may. One that is known to have done nothing
    does not."""
    acts = fault["effective"] or acted_on(fault) or (doubts and in_doubt(fault))
    over = NEVER if fault["healed_ns"] is None else fault["healed_ns"]
    return bool(acts and fault["injecting_ns"] <= at_ns < over)


def _acknowledged(after: Row, within_ns: int) -> bool:
    first: int | None = after["first_ack_after_heal_ns"]
    return first is not None and first < within_ns


def _longer(lasted: Row | None, limit_s: float) -> bool:
    return lasted is not None and bool(lasted["lasted_ns"] > limit_s * SECOND_NS)


def _between(lasted: Row | None, limit_s: float | None, at_most_ns: int | None) -> bool:
    if limit_s is None or at_most_ns is None:
        return False
    return (lasted["lasted_ns"] if lasted else 0) <= limit_s * SECOND_NS < at_most_ns


def unavailable(limit_s: float | None, service: Row) -> list[dict[str, Any]]:
    """The partitions whose longest time without an acknowledgement, while a write was pending, exceeds the limit."""
    if limit_s is None:
        return []
    return [
        {"topic": part["topic"], "partition": part["partition"], **part["longest_unavailable"]}
        for part in service["partitions"]
        if _longer(part["longest_unavailable"], limit_s)
    ]


def slow(limit_s: float | None, service: Row, faults: Sequence[Row]) -> list[dict[str, Any]]:
    """The heals, by partition, after which a pending write waited longer than the limit for an acknowledgement, before
    the next injection, while no fault was in force. It may have come or not."""
    if limit_s is None:
        return []
    return [
        {"fault": after["fault"], "topic": part["topic"], "partition": part["partition"], **after["awaited_after_heal"]}
        for part in service["partitions"]
        for after, _ in _recovering(part, faults)
        if _longer(after["awaited_after_heal"], limit_s)
    ]
