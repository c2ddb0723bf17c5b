"""Which brokers may not have had the latest metadata, and when: a fault may have kept it from them. Their reports are
not current then."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.evidence.intervals import NEVER, Intervals, Window
from harness.core.faults import Does, Row, acted_on, does, may_be_behind, may_unseat, moves_controller

LAG_NS = 1_000_000_000
#: After a heal it may take a broker this long to be a candidate again (it must start, register, and rejoin the ISR), or
#: to hear from the controllers again; and this long to have another controller. (After cuts of 12 to 15 s, brokers went
#: on reporting the old leader for up to 3.6 s.)
COMES_BACK_NS = 10_000_000_000

#: A function: whether a broker may have known less than others at some time between two.
Behind = Callable[[str, int, int], bool]


def over(row: Row) -> int:
    """The time when a fault was healed; NEVER if it was not."""
    return NEVER if row["healed_ns"] is None else int(row["healed_ns"])


class Controllers:
    """Which brokers may have been the controller, with ZooKeeper: ``reported`` has what each broker reported, in order,
    as the first time of the same report and the controller's name. (KRaft's controllers are no brokers.)"""

    def __init__(self, reported: Iterable[Sequence[tuple[int, str]]] = ()) -> None:
        self._reported = [([at for at, _ in own], [name for _, name in own]) for own in reported]

    def under(self, faults: Sequence[Row], brokers: frozenset[str]) -> list[frozenset[str]]:
        """For each fault, the brokers that may have been the controller while it, or its after-effects, were in force:
        those that were reported; any, if none was, or if another fault may have moved the controller then."""
        unseating = [row for row in faults if may_unseat(row)]
        felt = Intervals(map(_felt, unseating))
        return [
            self._under(row, [unseating[n] for n in felt.which(*_felt(row)) if unseating[n] is not row], brokers)
            for row in faults
        ]

    def _under(self, row: Row, upon: Iterable[Row], brokers: frozenset[str]) -> frozenset[str]:
        named = {name for own in self._reported for name in _around(*own, *_felt(row))} & brokers
        moved = any(not acted_on(other) <= brokers - named for other in upon)
        return frozenset(named) if named and not moved else brokers


def _felt(row: Row) -> Window:
    return int(row["injecting_ns"]) - COMES_BACK_NS, over(row) + COMES_BACK_NS


def _around(begun: Sequence[int], names: Sequence[str], since: int, until: int) -> Iterable[str]:
    """The names in reports between two times, in the last before them, and in the first after."""
    return names[max(0, bisect_right(begun, since) - 1) : bisect_right(begun, until) + 1]


def controllers(observations: pa.Table, names: Mapping[int, str]) -> Controllers:
    """The controllers that brokers reported. ``names``: brokers by their ids."""
    rows = observations.select(["observer", "at_ns", "controller"]).filter(pc.is_valid(observations["controller"]))
    rows = rows.sort_by([("observer", "ascending"), ("at_ns", "ascending")])
    if not len(rows):
        return Controllers()
    observers = rows["observer"].combine_chunks().dictionary_encode()
    who, at, ids = observers.indices.to_numpy(), rows["at_ns"].to_numpy(), rows["controller"].to_numpy()
    edges = [0, *(np.flatnonzero((np.diff(who) != 0) | (np.diff(ids) != 0)) + 1).tolist()]
    found: dict[int, list[tuple[int, str]]] = {}
    for first in edges:
        if ids[first] in names:
            found.setdefault(int(who[first]), []).append((int(at[first]), names[int(ids[first])]))
    return Controllers(found.values())


class BehindTimes:
    """The times in which faults, or their after-effects, may have kept the latest metadata from each broker."""

    def __init__(
        self,
        faults: Sequence[Row],
        brokers: frozenset[str],
        kraft: bool,
        lag_ns: int,
        controllers: Controllers,
    ) -> None:
        self._brokers, self._kraft, self._lag_ns = brokers, kraft, lag_ns
        under = [frozenset[str]()] * len(faults) if kraft else controllers.under(faults, brokers)
        self._rows = [*zip(faults, under, strict=True)]
        self._of: dict[str, Intervals] = {}

    def of(self, observer: str) -> Intervals:
        """The times of one broker."""
        if observer not in self._of:
            self._of[observer] = Intervals(self._times(observer))
        return self._of[observer]

    def _times(self, observer: str) -> Iterator[Window]:
        for row, controllers in self._rows:
            begun, healed = int(row["injecting_ns"]), over(row)
            until = healed + (max(self._lag_ns, COMES_BACK_NS) if does(row, Does.CUTS) else self._lag_ns)
            who = (row, observer, self._brokers, self._kraft, controllers)
            if moves_controller(*who):
                if not acted_on(row) <= self._brokers:
                    yield begun, min(begun + COMES_BACK_NS, until)
                    yield healed, until
                # (Before 2.7 the leader decides its ISR: the controller only reports it, and late.)
                elif self._lag_ns <= LAG_NS:
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
