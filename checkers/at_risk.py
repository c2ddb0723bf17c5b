"""How strong a test a run was: how many records were acknowledged while at risk, by the number of brokers that had to
have them.

A fault may take effect while no acknowledged record depends on it. A record is *at risk* if it was acknowledged while a
fault was in force on a broker that may have had to have records of its partition: with acks=all, any that was in an ISR
reported by the end of the fault; with acks=1, any that led. A fault of clients' traffic alone takes no record. A fault
that destroys data or elects a leader also puts records at risk that were acknowledged before it. A fault of a node that
is not a broker (a controller, a ZooKeeper) counts for every partition: without that node no ISR changes and no leader
is elected.

The brokers that had to have a record are the same as for a lost record (checkers/evidence/holders.py): with acks=all
the brokers in every ISR reported around the acknowledgement, with acks=1 only the leader. All records acknowledged
within one bin of time (checkers/availability.py) count with the bin's smallest number.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from checkers.evidence.behind import over
from checkers.evidence.decision import Case
from checkers.evidence.evidence import Evidence
from checkers.evidence.holders import had_to_have
from checkers.evidence.intervals import BEFORE
from checkers.evidence.leadership import Partition
from checkers.stretches import Timeline
from harness.core.faults import Does, Row, acted_on, does, evidence_of, hits_clients_only, in_force_since_ns

Flags = npt.NDArray[np.bool_]


#: Instead of a number of brokers: no ISR was reported.
NOT_KNOWN = 0


def at_risk(writes: Mapping[Partition, Timeline], evidence: Evidence) -> dict[int, int]:
    """How many records were acknowledged while at risk, by the smallest number of brokers that had to have them
    (NOT_KNOWN if no ISR was reported)."""
    effective = [row for row in evidence.faults[0] if row["effective"]]
    found: Counter[int] = Counter()
    for of, own in writes.items():
        had = _had_since(evidence, of)
        in_force = [when for row in effective for when in _in_force(row, of, had, evidence.names)]
        hit = np.flatnonzero(_bins_hit(own, in_force))
        for one, count in zip(_fewest(of, own, hit, evidence), own.acknowledged[hit].tolist(), strict=True):
            found[one] += count
    return {fewest: found[fewest] for fewest in sorted(found) if found[fewest]}


def _fewest(of: Partition, own: Timeline, bins: npt.NDArray[np.int64], evidence: Evidence) -> list[int]:
    """For each of these bins, the smallest number of brokers that had to have its records. Bins between the same two
    moments have the same number, so it is computed once for them."""
    if not evidence.configuration.acks_all:
        return [1] * len(bins)
    moments = evidence.moments(of)
    times = [own.earliest[bins], np.maximum(own.last_ack, own.earliest)[bins]]
    alike = np.stack([np.searchsorted(moments, at, side="right") for at in times])
    _, first, each = np.unique(alike, axis=1, return_index=True, return_inverse=True)
    known = [had_to_have(evidence, Case(of, int(times[0][n]), int(times[1][n]), acknowledged=True)) for n in first]
    fewest = [min(map(len, terms), default=NOT_KNOWN) for terms in known]
    return [fewest[n] for n in each.ravel().tolist()]


def _had_since(evidence: Evidence, of: Partition) -> dict[int, int]:
    """The brokers that may have had to have an acknowledged record, each with the time from which on: with acks=all it
    was first reported in an ISR, with acks=1 as the leader."""
    known, since = evidence.elections.get(of), dict[int, int]()
    for span in () if known is None else known.spans:
        for broker in span.isr if evidence.configuration.acks_all else [span.leader]:
            since[broker] = min(span.from_ns, since.get(broker, span.from_ns))
    return since


def _in_force(
    fault: Row, of: Partition, had: Mapping[int, int], brokers: Mapping[int, str]
) -> Iterable[tuple[int, int]]:
    """The time in which a fault puts a partition's records at risk; empty if the fault does not reach a broker that
    ``had`` any by its end (since when), or reaches its clients alone."""
    since, until = in_force_since_ns(fault), over(fault)
    if not fault["nodes"]:
        evidence = evidence_of(fault)
        reaches = (evidence.get("topic"), evidence.get("partition")) == of
        return [(BEFORE, until)] if reaches else []
    hit, names = acted_on(fault), {brokers.get(broker) for broker, at_ns in had.items() if at_ns <= until}
    if hits_clients_only(fault) or not (hit & names or hit - set(brokers.values())):
        return []
    return [(BEFORE if does(fault, Does.DESTROYS_DATA) else since, until)]


def _bins_hit(own: Timeline, in_force: Iterable[tuple[int, int]]) -> Flags:
    """The bins in which a record was acknowledged at such a time."""
    hit = np.zeros(len(own.bin), bool)
    for since, until in in_force:
        hit |= (own.last_ack >= since) & (own.first_ack <= until)
    return hit & (own.acknowledged > 0)
