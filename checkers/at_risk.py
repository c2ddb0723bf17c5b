"""How strong a test a run was: how many records were acknowledged while at risk, by the number of brokers that had to
have them.

A fault may take effect while no acknowledged record depends on it. A record is *at risk* if it was acknowledged while a
fault was in force on a broker that had to have records of its partition: with acks=all one that was in a reported ISR,
with acks=1 one that led. It must have been that by the end of the fault, and after the record was sent. (Or after the
injection began and a record was sent: then the fault itself took it out, with what it had.) A fault of clients' traffic
alone takes no record. A fault that destroys data or elects a leader also puts records at risk that were acknowledged
before it. A cut between two groups reaches a broker if it cuts it from another replica of the partition, or from a
controller. A fault of a controller (or of a ZooKeeper node) counts for every partition: it may be the active one, and
until another is, no ISR changes and no leader is elected. A cut between two groups does so only if it leaves no
majority of the controllers.

The brokers that had to have a record are the same as for a lost record (checkers/evidence/holders.py): with acks=all
the brokers in every ISR reported around the acknowledgement, with acks=1 only the leader. All records acknowledged
within one bin of time (checkers/availability.py) count with the bin's smallest number.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from checkers.evidence.behind import over
from checkers.evidence.decision import Case
from checkers.evidence.evidence import Evidence
from checkers.evidence.holders import had_to_have
from checkers.evidence.intervals import BEFORE, NEVER, Window
from checkers.leadership import FRESH_NS, Partition, Span
from checkers.stretches import Timeline
from harness.core.faults import (
    Does,
    Row,
    acted_on,
    does,
    evidence_of,
    hits_clients_only,
    hits_heartbeats,
    in_force_since_ns,
    opposite,
    sides,
)
from harness.core.topology import Role

Flags = npt.NDArray[np.bool_]


#: Instead of a number of brokers: no ISR was reported.
NOT_KNOWN = 0


def at_risk(writes: Mapping[Partition, Timeline], evidence: Evidence) -> dict[int, int]:
    """How many records were acknowledged while at risk, by the smallest number of brokers that had to have them
    (NOT_KNOWN if no ISR was reported)."""
    effective = [row for row in evidence.faults[0] if row["effective"]]
    found: Counter[int] = Counter()
    for of, own in writes.items():
        had = _had(evidence, of)
        risks = [risk for row in effective if (risk := _risk(row, of, had, evidence)) is not None]
        hit = np.flatnonzero(_bins_hit(own, risks))
        for one, count in zip(_fewest(of, own, hit, evidence), own.acknowledged[hit].tolist(), strict=True):
            found[one] += count
    return {fewest: found[fewest] for fewest in sorted(found) if found[fewest]}


def _fewest(of: Partition, own: Timeline, bins: npt.NDArray[np.int64], evidence: Evidence) -> list[int]:
    """For each of these bins, the smallest number of brokers that had to have its records. Bins between the same two
    moments have the same number, so it is computed once for them."""
    if not evidence.configuration.acks_all:
        return [1] * len(bins)
    moments = evidence.moments(of)
    times = [own.first_sent[bins], np.maximum(own.last_ack, own.first_sent)[bins]]
    alike = np.stack([np.searchsorted(moments, at, side="right") for at in times])
    _, first, each = np.unique(alike, axis=1, return_index=True, return_inverse=True)
    known = [had_to_have(evidence, Case(of, int(times[0][n]), int(times[1][n]), acknowledged=True)) for n in first]
    fewest = [min(map(len, terms), default=NOT_KNOWN) for terms in known]
    return [fewest[n] for n in each.ravel().tolist()]


def _had(evidence: Evidence, of: Partition) -> dict[int, list[Window]]:
    """For each broker, the times in which it may have had to have acknowledged records: with acks=all in an ISR, with
    acks=1 as the leader. A report counts while it is fresh, and until another one says otherwise; those of brokers that
    were behind do not count, except a leader's own."""
    known, acks_all = evidence.elections.get(of), evidence.configuration.acks_all
    if known is None:
        return {}
    own = (span for span in known.spans if evidence.names.get(span.leader) == span.observer)
    reports = sorted({*known.current, *own}, key=lambda span: span.from_ns)
    had = [frozenset(span.isr if acks_all else [span.leader]) for span in reports]
    brokers = frozenset[int]().union(*had)
    return {broker: _while_reported(reports, [broker in those for those in had]) for broker in brokers}


def _while_reported(reports: Sequence[Span], so: Sequence[bool]) -> list[Window]:
    """The times in which something may have been ``so``. ``reports``: in the order of their beginnings."""
    others = [span for span, says in zip(reports, so, strict=True) if not says]
    begun, until = [span.from_ns for span in others], [*accumulate((span.to_ns for span in others), max)]
    found = []
    for span in (span for span, says in zip(reports, so, strict=True) if says):
        n = bisect_right(begun, span.to_ns)
        otherwise_ns = span.to_ns if n and until[n - 1] > span.to_ns else begun[n] if n < len(begun) else NEVER
        found.append((span.from_ns, max(otherwise_ns, span.to_ns + FRESH_NS)))
    return found


@dataclass(frozen=True)
class _Risk:
    """A fault puts what was acknowledged from ``since_ns`` to ``until_ns`` at risk, if it was sent by ``had_ns``, when
    one of its brokers last may have had to have records; or if that was after ``injecting_ns``."""

    since_ns: int
    until_ns: int
    injecting_ns: int
    had_ns: int


def _risk(fault: Row, of: Partition, had: Mapping[int, list[Window]], evidence: Evidence) -> _Risk | None:
    """None if the fault does not reach a broker that ``had`` to have any by its end, or reaches clients alone."""
    since, until, injecting = in_force_since_ns(fault), over(fault), int(fault["injecting_ns"])
    if not fault["nodes"]:
        election = evidence_of(fault)
        reaches = (election.get("topic"), election.get("partition")) == of
        return _Risk(BEFORE, until, injecting, NEVER) if reaches else None
    known = evidence.elections.get(of)
    replicas = {evidence.names.get(broker, "") for broker in (had if known is None else known.replicas)}
    hit, all_are_hit = _reached(fault, replicas, evidence)
    mine = [when for broker, times in had.items() if evidence.names.get(broker) in hit for when in times]
    ends = [NEVER] if all_are_hit else [end for begin, end in mine if begin <= until]
    if hits_clients_only(fault) or not ends:
        return None
    return _Risk(BEFORE if does(fault, Does.DESTROYS_DATA) else since, until, injecting, max(ends))


def _reached(fault: Row, replicas: Set[str], evidence: Evidence) -> tuple[frozenset[str], bool]:
    """Which ``replicas`` of a partition a fault reaches; and whether it reaches the controllers. (If these are not
    known, any node that is no broker counts as one. With ZooKeeper a broker is the controller.)"""
    acted, brokers = acted_on(fault) - {Role.CLIENTS}, frozenset(evidence.names.values())
    controllers = evidence.controllers or acted - brokers
    if not sides(fault):
        return acted & replicas, bool(acted & controllers)
    decide = controllers if evidence.configuration.metadata == "kraft" else controllers | brokers
    from_these = replicas | (decide if hits_heartbeats(fault) else frozenset())
    cut = (one for one, other in opposite(fault) if other & from_these)
    together = max(len(one & controllers) for one in sides(fault))
    apart = controllers <= frozenset[str]().union(*sides(fault)) and 2 * together <= len(controllers)
    return acted & replicas & frozenset[str]().union(*cut), bool(controllers) and apart


def _bins_hit(own: Timeline, risks: Iterable[_Risk]) -> Flags:
    """The bins in which a record was acknowledged at risk."""
    acknowledged = own.acknowledged > 0
    hit = np.zeros(len(own.bin), bool)
    first_ns = min(own.first_sent[acknowledged].tolist(), default=NEVER)
    for risk in risks:
        in_force = (own.last_ack >= risk.since_ns) & (own.first_ack <= risk.until_ns)
        hit |= in_force & (np.maximum(np.minimum(own.first_sent, risk.injecting_ns), first_ns) <= risk.had_ns)
    return hit & acknowledged
