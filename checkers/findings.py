"""Findings: each is one cause with all the anomalies that it caused. Pure.

An election may cut off the end of a log: its records are lost, those that consumers had read vanished, and other
records get their offsets. That is one finding. One event in several partitions is one finding, too: elections that were
seen at about the same time under the same faults (without faults: of the same broker), or disks that were lost
together. Records with an unknown cause are one finding for each range of offsets. An anomaly whose standing does not
depend on single records is one finding.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from typing import Any

from checkers.evidence.causes import MOST_RANGES, facts, worst_and_biggest
from checkers.evidence.decision import WORST_FIRST, LossEvent
from checkers.evidence.faults import active
from checkers.evidence.record_ranges import RecordRange
from checkers.evidence.standing import worst_ruling
from checkers.leadership import FRESH_NS, LeaderTerm, Partition, Span
from harness.core.anomalies import BY_NAME, Anomaly
from harness.core.faults import Row, injection_of
from harness.core.topology import broker_name
from harness.core.verdict import CauseOf, Finding, FoundAnomaly, Standing

#: The most findings with an unknown cause that are listed separately, the worst and biggest first; the rest become one.
MOST_UNKNOWN = 20


@dataclass(frozen=True)
class Records:
    """A range of records of one anomaly."""

    anomaly: str
    range: RecordRange

    @property
    def event(self) -> LossEvent | None:
        """The event that took the records."""
        return None if self.range.decision is None else self.range.decision.taken_by


@dataclass(frozen=True)
class Observed:
    """Observations of a run: leader terms, brokers' reports, faults, and the names of brokers by id."""

    led: Mapping[Partition, Sequence[LeaderTerm]]
    seen: Sequence[Span]
    faults: Sequence[Row]
    names: Mapping[int, str]

    @cached_property
    def _spans_by_partition(self) -> dict[Partition, list[Span]]:
        apart: dict[Partition, list[Span]] = {}
        for span in self.seen:
            apart.setdefault((span.topic, span.partition), []).append(span)
        return apart

    def of(self, partition: Partition) -> list[Span]:
        """The reports about one partition."""
        return self._spans_by_partition.get(partition, [])


@dataclass
class _Range:
    """A range of offsets: the records of the first anomaly there, and how many records of each anomaly are there."""

    first: RecordRange
    worst: RecordRange
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def decided(self) -> RecordRange:
        """Its records, with the worst decision about any of them."""
        return replace(self.first, decision=self.worst.decision)


def findings(
    anomalies: Mapping[str, FoundAnomaly],
    found: Mapping[str, Sequence[RecordRange]],
    observed: Observed,
    rows: Mapping[str, Anomaly] = BY_NAME,
) -> list[Finding]:
    """The findings of a verdict, the worst first. ``found``: the stored records of each anomaly; each range of a loss
    has its decision. ``rows``: what each anomaly is. Over all findings the counts of an anomaly add up to the anomaly's
    count."""
    records = [Records(name, one) for name in anomalies for one in found.get(name, ()) if one.decision is not None]
    decided = {one.anomaly for one in records}
    made = [_finding(group, anomalies, observed) for group in grouped(records, observed.faults)]
    rest = {name: one for name, one in anomalies.items() if name not in decided}
    made += [_finding_of_run(rows[name], one, found.get(name, ())) for name, one in rest.items()]
    order = {name: n for n, name in enumerate(anomalies)}
    return sorted(
        made,
        key=lambda one: (WORST_FIRST.index(one.standing), order[one.first], -one.anomalies[one.first]),
    )


def grouped(found: Iterable[Records], faults: Sequence[Row]) -> list[list[Records]]:
    """Records with a decision, grouped by the event that took them."""
    every = list(found)
    taken = [one for one in every if one.event is not None]
    untaken = _by_offsets(one for one in every if one.event is None)
    untaken.sort(key=lambda group: (min(map(_badness, group)), -sum(one.range.count for one in group)))
    apart, rest = untaken[:MOST_UNKNOWN], untaken[MOST_UNKNOWN:]
    return [*_by_event(taken, faults), *apart, *([[one for group in rest for one in group]] if rest else [])]


def _by_event(taken: Iterable[Records], faults: Sequence[Row]) -> list[list[Records]]:
    each: dict[tuple[Partition, LossEvent], list[Records]] = {}
    for one in taken:
        assert one.event is not None
        each.setdefault((one.range.of, one.event), []).append(one)
    groups: list[list[tuple[Partition, LossEvent]]] = []
    latest: dict[object, list[tuple[Partition, LossEvent]]] = {}
    for of, event in sorted(each, key=lambda one: (one[1].at_ns, one[0], -1 if one[1].term is None else one[1].term)):
        alike = _event_key(event, faults)
        group = latest.get(alike)
        # (Two elections of one partition are two events, no matter how soon the second came.)
        if group is None or event.at_ns - group[-1][1].at_ns > FRESH_NS or any(of == other for other, _ in group):
            latest[alike] = group = []
            groups.append(group)
        group.append((of, event))
    return [[one for key in group for one in each[key]] for group in groups]


def _event_key(event: LossEvent, faults: Sequence[Row]) -> object:
    """A key: events of several partitions with the same key are one event if they are also close in time."""
    if event.leader is None:
        return CauseOf.DISKS_LOST
    return CauseOf.ELECTION, tuple(active(faults, event.at_ns)) or event.leader


def _by_offsets(untaken: Iterable[Records]) -> list[list[Records]]:
    """Groups records without a known event: those with overlapping offsets together, those without offsets together;
    holes are separate."""
    groups: list[list[Records]] = []

    def log_and_kind(one: Records) -> tuple[Partition, bool, bool]:
        return one.range.of, one.range.hole, one.range.first_offset is None

    for _, some in groupby(sorted(untaken, key=lambda one: (log_and_kind(one), _first(one.range))), log_and_kind):
        end: int | None = None
        for one in some:
            if end is None or _first(one.range) > end:
                groups.append([])
            groups[-1].append(one)
            end = max(_last(one.range), _last(one.range) if end is None else end)
    return groups


def _finding(group: Sequence[Records], anomalies: Mapping[str, FoundAnomaly], observed: Observed) -> Finding:
    counts = {name: sum(one.range.count for one in group if one.anomaly == name) for name in anomalies}
    counts = {name: count for name, count in counts.items() if count}
    worst = min(map(_badness, group))
    first = next(name for name in counts if any(one.anomaly == name and _badness(one) == worst for one in group))
    ruling, count, total = worst_ruling(one.range for one in group if one.anomaly == first)
    of_some = f"{count} of them: " if count < total else ""
    if first != next(iter(counts)):
        of_some = f"{count} {first}: "
    ranges = _ranges(group, list(counts))
    shown = sorted(ranges, key=lambda one: worst_and_biggest(one.decided))[:MOST_RANGES]
    facts_of_ranges = [_facts(one, observed) for one in shown]
    return Finding(
        standing=ruling.standing,
        because=f"{of_some}{ruling.because}",
        source=ruling.source,
        remedy=ruling.remedy,
        cause=_cause(group, observed),
        evidence=_evidence(facts_of_ranges, ruling.standing),
        anomalies=counts,
        runs=facts_of_ranges,
        more_runs=len(ranges) - len(facts_of_ranges),
    )


def _finding_of_run(row: Anomaly, found: FoundAnomaly, ranges: Sequence[RecordRange]) -> Finding:
    """The finding of an anomaly that is judged by what happened in the run, or by a limit of the scenario."""
    ruled = {"standing": found.standing}
    return Finding(
        standing=found.standing,
        because=found.because,
        source=found.source,
        remedy=found.remedy,
        cause={"event": CauseOf.LIMIT if row.promise is None else CauseOf.RUN},
        anomalies={row.name: found.count},
        runs=[{**ruled, **part, "anomalies": {row.name: part["count"]}} for part in found.runs],
        more_runs=max(len(ranges) - len(found.runs), 0),
    )


def _ranges(group: Sequence[Records], names: Sequence[str]) -> list[_Range]:
    """The ranges of a finding: those of its first anomaly, each with the other anomalies there; then the remaining
    ones."""
    ranges: list[_Range] = []
    placed: dict[Partition, list[_Range]] = {}
    for one in sorted(group, key=lambda one: (names.index(one.anomaly), one.range.of, _first(one.range))):
        here = placed.setdefault(one.range.of, [])
        at = bisect_right(here, _last(one.range), key=lambda known: _first(known.first))
        before = here[at - 1] if at else None
        there = before is not None and _last(before.first) >= _first(one.range)
        if before is not None and there and one.anomaly != next(iter(before.counts)):
            before.counts[one.anomaly] = before.counts.get(one.anomaly, 0) + one.range.count
            before.worst = min(before.worst, one.range, key=lambda part: _badness(Records("", part)))
        else:
            ranges.append(_Range(one.range, one.range, {one.anomaly: one.range.count}))
            here.insert(bisect_right(here, _first(one.range), key=lambda known: _first(known.first)), ranges[-1])
    return ranges


def _facts(part: _Range, observed: Observed) -> dict[str, Any]:
    of = part.first.of
    known = facts(part.decided, observed.led.get(of, ()), observed.of(of), observed.faults, observed.names)
    return {**known, "anomalies": part.counts}


def _evidence(ranges: Iterable[Mapping[str, Any]], standing: Standing) -> dict[str, Any]:
    """Which brokers must have had the records of the first range with this standing, and the event that took them."""
    part = next((one for one in ranges if one.get("standing") is standing), None)
    return {} if part is None else {key: part[key] for key in ("must", "need_not", "unknown", "taken_by")}


def _cause(group: Sequence[Records], observed: Observed) -> dict[str, Any]:
    """The cause of all these records, as facts."""
    events = dict.fromkeys((one.range.of, one.event) for one in group)
    taken = [(of, event) for of, event in events if event is not None]
    if not taken:
        known = all(one.range.decision and one.range.decision.standing is Standing.VIOLATION for one in group)
        return {"event": CauseOf.NOTHING if known else CauseOf.UNKNOWN, "hole": all(one.range.hole for one in group)}
    at = [event.at_ns for _, event in taken]
    if taken[0][1].leader is None:
        names = {name for one in group if one.event is not None for name in one.event.wipes}
        wipes = [row for row in observed.faults if injection_of(row) in names]
        from_ns = min([*(row["injecting_ns"] for row in wipes), *at])
        faults = [injection_of(row) for row in wipes]
        return {"event": CauseOf.DISKS_LOST, "from_ns": from_ns, "to_ns": max(at), "faults": faults}
    elections = [*_elections(sorted(taken, key=lambda one: one[0]), observed)]
    stood = {one["in_isr"] for one in elections}
    return {
        "event": CauseOf.ELECTION,
        "from_ns": min(at),
        "to_ns": max(at),
        "faults": active(observed.faults, min(at)),
        "leaders": list(dict.fromkeys(one["name"] for one in elections)),
        **({"in_isr": stood.pop()} if len(stood) == 1 else {}),
        "partitions": len(elections),
        "elections": elections[:MOST_RANGES],
    }


def _elections(taken: Iterable[tuple[Partition, LossEvent]], observed: Observed) -> Iterator[dict[str, Any]]:
    for of, event in taken:
        assert event.leader is not None
        yield {
            "topic": of[0],
            "partition": of[1],
            "leader": event.leader,
            "name": broker_name(event.leader, observed.names),
            "leader_epoch": event.epoch,
            "at_ns": event.at_ns,
            "in_isr": event.in_isr,
        }


def _badness(one: Records) -> int:
    assert one.range.decision is not None
    return one.range.decision.rank


def _first(part: RecordRange) -> int:
    return -1 if part.first_offset is None else part.first_offset


def _last(part: RecordRange) -> int:
    return -1 if part.last_offset is None else part.last_offset
