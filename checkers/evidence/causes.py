"""Causes: the ranges of an anomaly's records, each with its observations, its decision and its faults.

The records are folded into ranges (checkers/evidence/record_ranges.py). Those of records that are gone are decided
(checkers/evidence/losses.py).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from checkers.evidence import holders
from checkers.evidence.decision import Decision
from checkers.evidence.evidence import Evidence
from checkers.evidence.faults import active, overlapping
from checkers.evidence.record_ranges import (
    COLUMNS,
    RecordRange,
    bucket_width,
    claims,
    joined,
    order_of,
    reattributed,
    record_ranges,
)
from checkers.evidence.store import StoredRows
from checkers.leadership import LeaderTerm, Partition, Span, isr_before, leader_terms
from harness.core.anomalies import Anomaly
from harness.core.topology import broker_name
from harness.core.verdict import MOST_EXAMPLES, Standing

if TYPE_CHECKING:
    from checkers.history import History

#: The most ranges of an anomaly in a verdict, the biggest first.
MOST_RANGES = MOST_EXAMPLES


def found_ranges(history: "History", anomaly: Anomaly, found: StoredRows) -> list[RecordRange]:
    """The ranges of an anomaly's records in ``history``; none if it does not come in ranges. (Those of records that are
    gone: checkers/evidence/losses.py.)"""
    if not anomaly.comes_in_ranges:
        return []
    led = terms_led(history)
    width = bucket_width(found.extent(), len(led))
    return in_terms(history, record_ranges(found.pieces(COLUMNS), led, width), width, led)


def in_terms(
    history: "History", parts: Iterable[RecordRange], width: int, led: Mapping[Partition, Sequence[LeaderTerm]]
) -> list[RecordRange]:
    """Record ranges, joined, and each given to the leader's term to which it belongs."""
    return joined(reattributed(joined(parts, width), width, led, claims(history.seen, history.stored.brokers)), width)


def decided(parts: Iterable[RecordRange], anomaly: Anomaly, evidence: Evidence) -> list[RecordRange]:
    """Record ranges, each with its decision. Ranges with the same evidence are decided only once."""
    known: dict[tuple[object, ...], Decision] = {}
    found = []
    for part in parts:
        assert part.case is not None
        alike = evidence.alike(part.case)
        if alike not in known:
            known[alike] = holders.decided(evidence, anomaly, part.case)
        decision = known[alike]
        term = part.term if decision.term is None else decision.term + 1
        hole = part.hole and decision.standing is not Standing.PERMITTED
        found.append(replace(part, term=term, hole=hole, decision=decision))
    return found


def range_facts(history: "History", found: Iterable[RecordRange]) -> list[dict[str, Any]]:
    """Record ranges as the ``runs`` of verdict.json: at most MOST_RANGES, holes first, then the biggest.

    Each is {topic, partition, first_offset, last_offset, count, acknowledged, again_to, first_ns, last_ns, leader,
    leader_name, leader_epoch, isr, isr_names, elected, faults, hole}. The ``faults``: active between the last record
    and the election (without an election: during the records); ``elected.faults``: active at the election.
    """
    seen, led, names = history.seen, terms_led(history), history.stored.brokers
    return [
        facts(
            record_range,
            led.get(record_range.of, []),
            [span for span in seen if (span.topic, span.partition) == record_range.of],
            history.faults,
            names,
        )
        for record_range in biggest(found)
    ]


def terms_led(history: "History") -> dict[Partition, list[LeaderTerm]]:
    seen = history.seen
    partitions = {(row["topic"], row["partition"]) for row in history.ends} | {(s.topic, s.partition) for s in seen}
    return {of: leader_terms(seen, of) for of in sorted(partitions)}


def biggest(found: Iterable[RecordRange]) -> list[RecordRange]:
    """At most MOST_RANGES of these ranges, in the order of ``worst_and_biggest``."""
    return sorted(found, key=lambda one: (*worst_and_biggest(one), *order_of(one)))[:MOST_RANGES]


def worst_and_biggest(one: RecordRange) -> tuple[int, bool, int]:
    """A key that puts the worst standing first, then holes, then the biggest ranges."""
    return 0 if one.decision is None else one.decision.rank, not one.hole, -one.count


def facts(
    record_range: RecordRange,
    led: Sequence[LeaderTerm],
    seen: Sequence[Span],
    faults: Sequence[Mapping[str, Any]],
    names: Mapping[int, str],
) -> dict[str, Any]:
    """A range in verdict.json, as facts. ``seen``: the spans of its partition; ``names``: brokers by their id."""
    term = led[record_range.term - 1] if record_range.term else None
    following = led[record_range.term] if record_range.term < len(led) else None
    decision = record_range.decision
    taken_by = None if decision is None else decision.taken_by
    if taken_by is not None and taken_by.epoch is not None:
        following = led[taken_by.term] if taken_by.term is not None else following
    isrs = [] if term is None else isrs_of(seen, term, record_range, names)
    elected = None
    if following is not None:
        before = isr_before(seen, following)
        in_isr = None if before is None else following.leader in before
        if taken_by is not None and taken_by.leader == following.leader:
            in_isr = taken_by.in_isr
        elected = {
            "leader": following.leader,
            "leader_epoch": following.leader_epoch,
            "at_ns": following.from_ns,
            "in_isr": in_isr,
            "name": broker_name(following.leader, names),
            "faults": active(faults, following.from_ns),
        }
    since, until = (
        (record_range.first_ns, record_range.last_ns)
        if following is None
        else (record_range.last_ns, following.from_ns)
    )
    return {
        "topic": record_range.topic,
        "partition": record_range.partition,
        "first_offset": record_range.first_offset,
        "last_offset": record_range.last_offset,
        "count": record_range.count,
        "first_ns": record_range.first_ns,
        "last_ns": record_range.last_ns,
        "leader": None if term is None else term.leader,
        "leader_epoch": None if term is None else term.leader_epoch,
        "isr": isrs,
        "elected": elected,
        "faults": overlapping(faults, min(since, until), until),
        "acknowledged": record_range.acknowledged,
        "again_to": record_range.again_to,
        "leader_name": None if term is None else broker_name(term.leader, names),
        "isr_names": [[broker_name(broker, names) for broker in isr] for isr in isrs],
        "hole": record_range.hole,
        **({} if decision is None else _decided(decision, names)),
    }


def _decided(decision: Decision, names: Mapping[int, str]) -> dict[str, Any]:
    """The keys of a range for its standing and the reason, the brokers that must have had its records, and the event
    that took them."""
    event, ruling = decision.taken_by, decision.ruling
    groups = {"must": decision.must, "need_not": decision.need_not, "unknown": decision.unknown}
    taken_by = None
    if event is not None:
        elected = (
            {"leader": event.leader, "leader_epoch": event.epoch, "name": broker_name(event.leader, names)}
            if event.leader is not None
            else {}
        )
        taken_by = {"event": "disks lost" if event.leader is None else "election", "at_ns": event.at_ns, **elected}
    return {
        "standing": ruling.standing,
        "because": ruling.because,
        "source": ruling.source,
        **{name: [broker_name(broker, names) for broker in sorted(brokers)] for name, brokers in groups.items()},
        "taken_by": taken_by,
    }


def isrs_of(
    seen: Iterable[Span], term: LeaderTerm, record_range: RecordRange, names: Mapping[int, str]
) -> list[list[int]]:
    """The ISRs of a term while a range was acknowledged, in order: from the leader's own reports, or else from those of
    others.

    If there is no report in that time, the last one before it counts.
    """
    under = [s for s in seen if (s.leader, s.leader_epoch) == (term.leader, term.leader_epoch)]
    own = [s for s in under if s.observer == names.get(s.leader)] or under
    during = [s for s in own if s.from_ns <= record_range.last_ns and s.to_ns >= record_range.first_ns]
    before = [s for s in own if s.from_ns <= record_range.first_ns][-1:]
    isrs: list[list[int]] = []
    for span in during or before or own[:1]:
        if not isrs or isrs[-1] != list(span.isr):
            isrs.append(list(span.isr))
    return isrs
