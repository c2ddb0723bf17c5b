"""What reached records that are there: a fault, where a group's partition had two owners; a record that their producer
gave up, where an idempotent one's were written twice."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from checkers.evidence.store import directory_of, pieces
from checkers.history import History
from harness.core.anomalies import DUPLICATED, TWO_OWNERS
from harness.core.faults import Row, hit

#: The default of session.timeout.ms: a member that is cut off learns no sooner that its session is over.
_SESSION_MS = 45_000
_NS_PER_MS = 1_000_000

#: The error of a record that librdkafka gave up.
_GIVEN_UP = "_MSG_TIMED_OUT"


def faulted(history: History, faults: Iterable[Row]) -> bool:
    """Whether brokers were under a fault each time that two members had one partition, or a session before it."""
    brokers = frozenset(history.stored.brokers.values())
    hits = [row for row in faults if hit(row, brokers)]
    told = (client.get("session.timeout.ms") for client in history.run_file.workers("consumer").values())
    session_ns = max([_SESSION_MS, *(int(ms) for ms in told if ms is not None)]) * _NS_PER_MS
    for piece in pieces(directory_of(history.results, TWO_OWNERS.name)):
        since, until = piece["since_ns"].to_numpy() - session_ns, piece["other_until_ns"].to_numpy()
        reached = np.zeros(len(piece), bool)
        for row in hits:
            going_on = row["healed_ns"] is None
            reached |= (row["injecting_ns"] <= until) & (going_on or since <= row["healed_ns"])
        if not reached.all():
            return False
    return bool(hits)


def given_up_beside(history: History) -> bool:
    """Whether each record that is there twice was in flight when its producer gave up another one.

    An idempotent producer of librdkafka then begins a new epoch, and sends what is left of a batch under it: a broker
    that had written the batch does not know it again (librdkafka#4953; #2188).
    """
    stored = directory_of(history.results, DUPLICATED.name)
    given_up = history.stored.table("sends", pc.field("error") == _GIVEN_UP, ["worker", "completed_ns"])
    given_up = given_up.filter(pc.is_valid(given_up["completed_ns"]))
    if not len(given_up):
        return False
    workers, ended = given_up["worker"].to_numpy(), given_up["completed_ns"].to_numpy()
    at = {int(worker): np.sort(ended[workers == worker]) for worker in np.unique(workers)}
    return all(
        _amid(at.get(row["worker"], ended[:0]), row["sent_ns"], row["acknowledged_ns"])
        for piece in pieces(stored)
        for row in piece.select(["worker", "sent_ns", "acknowledged_ns"]).to_pylist()
    )


def _amid(times: npt.NDArray[np.int64], sent_ns: int | None, acknowledged_ns: int | None) -> bool:
    if sent_ns is None:
        return False
    until = np.iinfo(np.int64).max if acknowledged_ns is None else acknowledged_ns
    first, last = np.searchsorted(times, [sent_ns, until], side="right")
    return bool(first < last)
