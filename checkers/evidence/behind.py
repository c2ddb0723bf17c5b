"""Which brokers may not have had the latest metadata, and when: a fault may have kept it from them. Their reports are
not current then."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.evidence.intervals import NEVER, Intervals
from harness.core.faults import Does, Row, acted_on, does, may_be_behind, moves_controller

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


def behind_times(faults: Iterable[Row], observer: str, brokers: frozenset[str], kraft: bool, lag_ns: int) -> Intervals:
    """The times in which a fault, or its after-effects, may have kept the latest metadata from a broker, or from the
    controllers."""
    found = []
    for row in faults:
        begun, healed = int(row["injecting_ns"]), over(row)
        until = healed + (max(lag_ns, COMES_BACK_NS) if does(row, Does.CUTS) else lag_ns)
        if moves_controller(row, observer, brokers, kraft):
            if not acted_on(row) <= brokers:
                found += [(begun, min(begun + COMES_BACK_NS, until)), (healed, until)]
            # (Before 2.7 the leader decides its ISR: the controller only reports it, and late.)
            elif lag_ns <= LAG_NS:
                found.append((begun, begun + COMES_BACK_NS))
        elif may_be_behind(row, observer, brokers, kraft):
            found.append((begun, until))
    return Intervals(found)


def current_reports(observations: pa.Table, behind: Mapping[str, Intervals]) -> pa.Table:
    """The observations of brokers that were not behind at that time."""
    at, counts = observations["at_ns"].to_numpy(), np.ones(len(observations), bool)
    for name, times in behind.items():
        own = pc.equal(observations["observer"], name).to_numpy()
        for since, until in times:
            counts[own & (since <= at) & (at <= until)] = False
    return observations if counts.all() else observations.filter(pa.array(counts))
