"""Records the outcome of each record that a producer sends: columns in memory, one Arrow batch for each flush.

What a flush has written survives ``kill -9`` of the worker. A send is written at the first flush after its hand-over,
completed or still in flight, and again if it completes later: the last row of a sequence counts
(harness.history.schema.KEYS). So a killed worker's journal lacks at most what happened since its last flush. A record
in the log whose sequence is above all journalled ones of its worker is unrecorded, not a phantom.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harness.history.journal import Journal
from harness.history.schema import SENDS, Outcome, record_id
from workloads.clients.outcomes import refused, reported
from workloads.clients.settings import Acks

Ints = NDArray[np.int64]
_OUTCOMES = tuple(Outcome)
_OK, _FAIL, _INFO = (_OUTCOMES.index(outcome) for outcome in (Outcome.OK, Outcome.FAIL, Outcome.INFO))
_OUTCOME_NAMES = pa.array([str(outcome) for outcome in _OUTCOMES])
_UNKNOWN = -1


@dataclass
class Tally:
    """The counts of what a worker has journalled so far; ``last_ack_ns`` is None until a record is acknowledged.

    ``last_acks``: by the index of each partition that was written to, the time of its last acknowledgement, or -1.
    """

    sent: int = 0
    acknowledged: int = 0
    failed: int = 0
    indeterminate: int = 0
    read: int = 0
    last_ack_ns: int | None = None
    last_acks: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Sends:
    """Columns of sends, in order of ``sequence``."""

    sequence: Ints
    index: Ints
    key: Ints
    invoked_ns: Ints
    incarnation: Ints
    transaction: Ints

    @classmethod
    def joined(cls, parts: "Sequence[_Sends]") -> "_Sends":
        names = ("sequence", "index", "key", "invoked_ns", "incarnation", "transaction")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def where(self, chosen: NDArray[np.bool_]) -> "_Sends":
        return _Sends(*(column[chosen] for column in vars(self).values()))


def _none_sent() -> _Sends:
    empty = np.empty(0, np.int64)
    return _Sends(empty, empty, empty, empty, empty, empty)


class SendRecorder:
    """Records the sends of one worker to ``partitions``. ``keys``: the record keys, empty if there are none."""

    def __init__(
        self, journal: Journal, worker: int, acks: Acks, partitions: Sequence[tuple[str, int]], keys: Sequence[str]
    ) -> None:
        self.tally = Tally()
        self._journal = journal
        self._worker = worker
        self._acks: Acks = acks
        self._topics = pa.array([topic for topic, _ in partitions], pa.string())
        self._partitions = np.array([partition for _, partition in partitions], np.int32)
        self._keys = pa.array(keys, pa.string())
        self._acknowledged_as = _OUTCOMES.index(reported(None, acks, 0))
        self._refused_as = _OUTCOMES.index(refused(acks))
        self._error_names: dict[str, int] = {}
        self._open = _none_sent()
        self._invoked: list[_Sends] = []
        self._delivered: list[tuple[Ints, Ints, int]] = []
        self._failed: list[tuple[int, int, int | None, int]] = []

    def invoked(
        self, first: int, index: Ints, key: Ints | None, at_ns: int, incarnation: int, transaction: int = _UNKNOWN
    ) -> None:
        """Records from sequence ``first`` on are about to be handed over. ``index``: the index of each record's
        partition."""
        count = len(index)
        self._invoked.append(
            _Sends(
                np.arange(first, first + count),
                index,
                np.full(count, _UNKNOWN) if key is None else key,
                np.full(count, at_ns),
                np.full(count, incarnation),
                np.full(count, transaction),
            )
        )

    def delivered(self, sequences: Ints, offsets: Sequence[int | None], at_ns: int) -> None:
        """Delivery reports without an error came, not later than ``at_ns``."""
        known = pa.array(offsets, pa.int64()).fill_null(_UNKNOWN).to_numpy()
        self._delivered.append((sequences, known, at_ns))

    def failed(self, sequence: int, error: str, code: int | None, at_ns: int) -> None:
        """A delivery report with this error came; ``code`` is None if ``produce()`` itself refused the record."""
        error_index = self._error_names.setdefault(error, len(self._error_names))
        self._failed.append((sequence, error_index, code, at_ns))

    def flush(self) -> None:
        """Write every record handed over or completed since the last flush."""
        before = len(self._open.sequence)
        sends = _Sends.joined([self._open, *self._invoked])
        count = len(sends.sequence)
        completed = np.full(count, _UNKNOWN)
        outcome = np.full(count, _INFO)
        offset = np.full(count, _UNKNOWN)
        error = np.full(count, _UNKNOWN)
        for sequences, offsets, at_ns in self._delivered:
            rows = np.searchsorted(sends.sequence, sequences)
            completed[rows], outcome[rows], offset[rows] = at_ns, self._acknowledged_as, offsets
        for sequence, error_index, code, at_ns in self._failed:
            row = int(np.searchsorted(sends.sequence, sequence))
            completed[row], error[row] = at_ns, error_index
            outcome[row] = self._outcome_of(code, at_ns - int(sends.invoked_ns[row]))
        done = completed != _UNKNOWN
        changed = done.copy()
        changed[before:] = True
        if changed.any():
            self._write(sends.where(changed), completed[changed], outcome[changed], error[changed], offset[changed])
        self._count(count - before, completed[done], outcome[done])
        self._count_partitions(sends.index, np.where(outcome == _OK, completed, _UNKNOWN))
        self._open = sends.where(~done)
        self._invoked.clear()
        self._delivered.clear()
        self._failed.clear()

    def still_open(self) -> int:
        """The number of records in flight at the last flush."""
        return len(self._open.sequence)

    def _outcome_of(self, code: int | None, elapsed_ns: int) -> int:
        if code is None:
            return self._refused_as
        return _OUTCOMES.index(reported(code, self._acks, elapsed_ns))

    def _count(self, invoked: int, completed_ns: Ints, outcome: Ints) -> None:
        tally = self.tally
        tally.sent += invoked
        acknowledged = outcome == _OK
        if acknowledged.any():
            tally.acknowledged += int(acknowledged.sum())
            tally.last_ack_ns = int(completed_ns[acknowledged].max())
        tally.failed += int((outcome == _FAIL).sum())
        tally.indeterminate += int((outcome == _INFO).sum())

    def _count_partitions(self, index: Ints, acknowledged_ns: Ints) -> None:
        latest = np.full(len(self._partitions), _UNKNOWN)
        np.maximum.at(latest, index, acknowledged_ns)
        for written in np.unique(index).tolist():
            self.tally.last_acks[written] = max(int(latest[written]), self.tally.last_acks.get(written, _UNKNOWN))

    def _write(self, sends: _Sends, completed: Ints, outcome: Ints, error: Ints, offset: Ints) -> None:
        count = len(sends.sequence)
        columns = {
            "worker": np.full(count, self._worker, np.int32),
            "incarnation": sends.incarnation.astype(np.int32),
            "sequence": sends.sequence,
            "topic": self._topics.take(pa.array(sends.index)),
            "partition": self._partitions[sends.index],
            "record_id": sends.sequence + record_id(self._worker, 0),
            "key": self._keys.take(_known(sends.key)),
            "invoked_ns": sends.invoked_ns,
            "completed_ns": _known(completed),
            "outcome": _OUTCOME_NAMES.take(pa.array(outcome)),
            "error": pa.array(list(self._error_names), pa.string()).take(_known(error)),
            "offset": _known(offset),
            "transaction": _known(sends.transaction),
        }
        self._journal.append(pa.record_batch([columns[name] for name in SENDS.names], schema=SENDS))


def _known(column: Ints) -> pa.Array:
    return pa.array(column, mask=column == _UNKNOWN)
