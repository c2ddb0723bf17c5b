"""Which brokers may not have had the latest metadata, and when: a fault may have kept it from them. Their reports are
not current then."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.evidence.intervals import NEVER, Intervals, Window
from checkers.leadership import COMES_BACK_NS
from harness.core.faults import Does, Row, acted_on, does, may_be_behind, may_unseat, moves_controller
from harness.core.topology import Role

#: Without a fault, a broker reports a leader or ISR at most this long after the controller decided it. (In 184 runs on
#: two cores, brokers that no fault kept from the controllers reported 516 changes at most 0.42 s after the first broker
#: did, the observer's 0.25 s included; 99 of 100 within 0.28 s.)
LAG_NS = 1_000_000_000


class Behind(Protocol):
    """Whether a broker may have known less than others at some time between two; or, with ``leads``, whether what it
    reported on a partition that it leads may be older than the ISR that it uses."""

    def __call__(self, observer: str, from_ns: int, to_ns: int, leads: bool = False) -> bool: ...


def over(row: Row) -> int:
    """The time when a fault was healed; NEVER if it was not."""
    return NEVER if row["healed_ns"] is None else int(row["healed_ns"])


def begun_to_heal(row: Row) -> int:
    """The time when the heal of a fault began; NEVER if it was not healed."""
    return min(over(row), NEVER if row.get("healing_ns") is None else int(row["healing_ns"]))


class Controllers:
    """Which brokers may have been the controller, with ZooKeeper: ``reported`` has what each broker reported, in order,
    as the first and last time of the same report, and the controller's name. (KRaft's controllers are no brokers.)"""

    def __init__(self, reported: Iterable[Sequence[tuple[int, int, str]]] = ()) -> None:
        self._reported = [
            ([at for at, _, _ in own], [at for _, at, _ in own], [who for *_, who in own]) for own in reported
        ]

    def under(self, faults: Sequence[Row], brokers: frozenset[str]) -> list[frozenset[str]]:
        """For each fault, the brokers that may have been the controller while it, or its after-effects, were in force:
        those that were reported; any, if none was, or if another fault may have moved the controller then."""
        felt = Intervals(map(_felt, faults))
        others = ([faults[n] for n in felt.which(*_felt(row)) if faults[n] is not row] for row in faults)
        return [self._under(row, upon, brokers) for row, upon in zip(faults, others, strict=True)]

    def _under(self, row: Row, upon: Iterable[Row], brokers: frozenset[str]) -> frozenset[str]:
        named = brokers.intersection(*[{name for own in self._reported for name in _around(*own, *_felt(row))}])
        moved = any(may_unseat(other, brokers, named) for other in upon)
        return named if named and not moved else brokers


def _felt(row: Row) -> Window:
    return int(row["injecting_ns"]) - COMES_BACK_NS, over(row) + COMES_BACK_NS


def _around(begun: Sequence[int], ended: Sequence[int], names: Sequence[str], since: int, until: int) -> Iterable[str]:
    """The names in reports between two times, in the last before them, and in the first after."""
    return names[max(0, bisect_right(begun, since) - 1) : bisect_left(ended, until) + 1]


def reported_controllers(observations: pa.Table, names: Mapping[int, str]) -> Controllers:
    """The controllers that brokers reported. ``names``: brokers by their ids."""
    rows = observations.select(["observer", "at_ns", "controller"]).filter(pc.is_valid(observations["controller"]))
    rows = rows.sort_by([("observer", "ascending"), ("at_ns", "ascending")])
    if not len(rows):
        return Controllers()
    observers = rows["observer"].combine_chunks().dictionary_encode()
    who, at, ids = observers.indices.to_numpy(), rows["at_ns"].to_numpy(), rows["controller"].to_numpy()
    edges = [0, *(np.flatnonzero((np.diff(who) != 0) | (np.diff(ids) != 0)) + 1).tolist(), len(rows)]
    found: dict[int, list[tuple[int, int, str]]] = {}
    for first, end in pairwise(edges):
        if ids[first] in names:
            found.setdefault(int(who[first]), []).append((int(at[first]), int(at[end - 1]), names[int(ids[first])]))
    return Controllers(found.values())


@dataclass(frozen=True)
class Propagation:
    """How the controllers' decisions reach the brokers. Without a fault that takes at most ``lag_ns``.

    ``controllers``: with ZooKeeper, the brokers that were reported to be the controller.
    """

    brokers: frozenset[str]
    kraft: bool
    lag_ns: int
    controllers: Controllers


class BehindTimes:
    """The times in which faults, or their after-effects, may have kept the latest metadata from each broker.

    ``faults``: each, with the brokers that may have been the controller while it was in force (none in KRaft).
    """

    def __init__(self, faults: Sequence[Row], propagation: Propagation) -> None:
        self.propagation = propagation
        brokers, reported = propagation.brokers, propagation.controllers
        under = [frozenset[str]()] * len(faults) if propagation.kraft else reported.under(faults, brokers)
        self.faults = [*zip(faults, under, strict=True)]
        self._of: dict[tuple[str, bool], Intervals] = {}

    def of(self, observer: str, leads: bool = False) -> Intervals:
        """The times of one broker. With ``leads``: those in which its reports on a partition that it leads may be older
        than the ISR that it uses. It learns that ISR from the controller's answer, and reports what is in the metadata:
        these come apart where packets are late, and after a cut, as their connections come back one after the other.
        (Before 2.7 it decides the ISR itself: there they come apart during a cut, too.)"""
        if (observer, leads) not in self._of:
            self._of[observer, leads] = Intervals(self._times(observer, leads))
        return self._of[observer, leads]

    def _times(self, observer: str, leads: bool) -> Iterator[Window]:
        brokers, kraft, lag_ns = self.propagation.brokers, self.propagation.kraft, self.propagation.lag_ns
        for row, controllers in self.faults:
            begun, healed = int(row["injecting_ns"]), over(row)
            if leads and not does(row, Does.DELAYS):
                if not does(row, Does.CUTS):
                    continue
                begun = begun_to_heal(row) if lag_ns <= LAG_NS else begun
            until = healed + (max(lag_ns, COMES_BACK_NS) if does(row, Does.CUTS) else lag_ns)
            who = (row, observer, brokers, kraft, controllers)
            if moves_controller(*who):
                if not acted_on(row) - {Role.CLIENTS} <= brokers:
                    yield begun, min(begun + COMES_BACK_NS, until)
                    yield healed, until
                # (Before 2.7 the leader decides its ISR: the controller only reports it, and late.)
                elif lag_ns <= LAG_NS:
                    yield begun, begun + COMES_BACK_NS
            elif may_be_behind(*who):
                yield begun, until


def current_reports(observations: pa.Table, behind: BehindTimes, brokers: Iterable[str]) -> pa.Table:
    """The observations of brokers that were not behind at that time."""
    at, counts = observations["at_ns"].to_numpy(), np.ones(len(observations), bool)
    for name in brokers:
        own = pc.equal(observations["observer"], name).to_numpy()
        for since, until in behind.of(name):
            counts[own & (since <= at) & (at <= until)] = False
    return observations if counts.all() else observations.filter(pa.array(counts))
