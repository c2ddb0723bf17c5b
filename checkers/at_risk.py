"""How strongly a run was tested: the records that were acknowledged while at risk, by how few brokers had to have them.

A fault may take effect while nothing that was acknowledged depends on it. A record is *at risk* where it was
acknowledged while a fault was in force on a replica of its partition; what destroys data, or elects a leader, puts at
risk what was acknowledged before it, too. A fault of another node than a broker (a controller, a ZooKeeper) is one of
every partition: no ISR changes, and nobody is elected, without it.

How few brokers had to have it: with acks=all those that are in every ISR that was reported from its sending until a
second after its acknowledgement, by its leader where that answered; with acks=1 the leader alone. What was acknowledged
within one bin of time (checkers/availability.py) is counted by the fewest of it.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from checkers.evidence.leadership import FRESH_NS, Partition, Span
from checkers.stretches import Timeline
from harness.core.faults import Does, Row, acted_on, does

Flags = npt.NDArray[np.bool_]

#: A broker reports an ISR that changed after this time at most.
_LAG_NS = 1_000_000_000
_ALWAYS = np.iinfo(np.int64).min
_FOREVER = np.iinfo(np.int64).max

#: Instead of a number of brokers: nobody reported an ISR.
NOT_KNOWN = 0


def at_risk(
    writes: Mapping[Partition, Timeline],
    spans: Sequence[Span],
    faults: Iterable[Row],
    brokers: Mapping[int, str],
    acks_all: bool,
) -> dict[int, int]:
    """How many records were acknowledged while at risk, by the fewest brokers that had to have them (NOT_KNOWN where
    nobody reported an ISR). ``brokers``: their names by their ids; ``faults``: rows of the table."""
    effective = [row for row in faults if row["effective"]]
    of_each: dict[Partition, list[Span]] = {}
    for span in spans:
        of_each.setdefault((span.topic, span.partition), []).append(span)
    found: Counter[int] = Counter()
    for of, own in writes.items():
        own_spans = of_each.get(of, [])
        hit = _hit(own, [when for row in effective for when in _in_force(row, of, _replicas(own_spans), brokers)])
        number = own.acknowledged[hit]
        fewest = holders(own, own_spans, brokers)[hit] if acks_all else np.ones(len(number), np.int64)
        for one, count in zip(fewest.tolist(), number.tolist(), strict=True):
            found[one] += count
    return {fewest: found[fewest] for fewest in sorted(found) if found[fewest]}


def holders(own: Timeline, told: Sequence[Span], brokers: Mapping[int, str]) -> npt.NDArray[np.int64]:
    """Of each bin, how many brokers are in every ISR that was reported of one leader and epoch while its writes were
    under way: of several, which may each have acknowledged some of them, the fewest."""
    until = list(zip(told, _until(told), strict=True))
    by_leaders = [(span, end) for span, end in until if brokers.get(span.leader) == span.observer]
    begun, over = own.earliest, np.maximum(own.last_ack, own.earliest) + _LAG_NS
    terms: dict[tuple[int, int | None], list[tuple[Span, Flags]]] = {}
    for span, end in by_leaders or until:
        during = (begun < end) & (over >= span.from_ns)
        terms.setdefault((span.leader, span.leader_epoch), []).append((span, during))
    fewest = np.full(len(own.bin), _FOREVER)
    for reported in terms.values():
        some = np.logical_or.reduce([during for _, during in reported])
        count = np.zeros(len(own.bin), np.int64)
        for broker in _replicas(told):
            without = [during for span, during in reported if broker not in span.isr]
            count += ~np.logical_or.reduce(without) if without else True
        fewest = np.where(some, np.minimum(fewest, count), fewest)
    return np.where(fewest == _FOREVER, NOT_KNOWN, fewest)


def _until(spans: Sequence[Span]) -> list[int]:
    """Until when each report counts: until another of its observer, or until that has been silent for too long."""
    following: dict[str, int] = {}
    until = [_FOREVER] * len(spans)
    for n in sorted(range(len(spans)), key=lambda n: -spans[n].from_ns):
        until[n] = min(following.get(spans[n].observer, _FOREVER), spans[n].to_ns + FRESH_NS)
        following[spans[n].observer] = spans[n].from_ns
    return until


def _replicas(spans: Iterable[Span]) -> set[int]:
    """The brokers that are known to have had a replica: those that were ever in the ISR, or led."""
    return {broker for span in spans for broker in (*span.isr, span.leader) if broker >= 0}


def _in_force(
    fault: Row, of: Partition, replicas: Iterable[int], brokers: Mapping[int, str]
) -> Iterable[tuple[int, int]]:
    """From when until when a fault puts at risk what a partition acknowledges; nothing where it does not reach it."""
    until = _FOREVER if fault["healed_ns"] is None else fault["healed_ns"]
    since = fault["injecting_ns"] if fault["injected_ns"] is None else fault["injected_ns"]
    if not fault["nodes"]:
        evidence: dict[str, Any] = json.loads(fault["evidence"])
        reaches = (evidence.get("topic"), evidence.get("partition")) == of
        return [(_ALWAYS, until)] if reaches else []
    hit, names = acted_on(fault), {brokers.get(broker) for broker in replicas}
    if not (hit & names or hit - set(brokers.values())):
        return []
    return [(_ALWAYS if does(fault, Does.DESTROYS_DATA) else since, until)]


def _hit(own: Timeline, in_force: Iterable[tuple[int, int]]) -> Flags:
    """The bins in which something was acknowledged at such a time."""
    hit = np.zeros(len(own.bin), bool)
    for since, until in in_force:
        hit |= (own.last_ack >= since) & (own.first_ack <= until)
    return hit & (own.acknowledged > 0)
