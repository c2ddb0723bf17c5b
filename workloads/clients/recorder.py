"""Recorders of what a worker did: columns in memory, one Arrow batch for each flush.

What a flush has written survives ``kill -9`` of the worker. A send is written at the first flush after its hand-over,
completed or still in flight, and again when it completes after that: of a sequence the last row counts
(harness.history.schema.KEYS). So a killed worker's journal lacks at most what happened since its last flush, and a
record
found in the log whose sequence lies beyond all of its worker's journalled ones is unrecorded, not a phantom.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import Message
from numpy.typing import NDArray

from harness.history.journal import Journal
from harness.history.schema import READS, SENDS, Outcome, Phase, record_id
from workloads.clients.outcomes import refused, reported
from workloads.clients.payload import decode
from workloads.clients.settings import Acks

Ints = NDArray[np.int64]

_OUTCOMES = tuple(Outcome)
_OK, _FAIL, _INFO = (_OUTCOMES.index(outcome) for outcome in (Outcome.OK, Outcome.FAIL, Outcome.INFO))
_OUTCOME_NAMES = pa.array([str(outcome) for outcome in _OUTCOMES])
_UNKNOWN = -1


@dataclass
class Tally:
    """What a worker's journals hold so far; ``last_ack_ns`` is None as long as nothing was acknowledged."""

    sent: int = 0
    acknowledged: int = 0
    failed: int = 0
    indeterminate: int = 0
    read: int = 0
    last_ack_ns: int | None = None


@dataclass(frozen=True)
class _Sends:
    """Columns of sends, in order of ``sequence``."""

    sequence: Ints
    slot: Ints
    key: Ints
    invoked_ns: Ints
    incarnation: Ints
    transaction: Ints

    @classmethod
    def joined(cls, parts: "Sequence[_Sends]") -> "_Sends":
        names = ("sequence", "slot", "key", "invoked_ns", "incarnation", "transaction")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def where(self, chosen: NDArray[np.bool_]) -> "_Sends":
        return _Sends(*(column[chosen] for column in vars(self).values()))


def _none_sent() -> _Sends:
    empty = np.empty(0, np.int64)
    return _Sends(empty, empty, empty, empty, empty, empty)


class SendRecorder:
    """Records the sends of one worker. ``slots``: its topic-partitions; ``keys``: its keys, empty where it has none."""

    def __init__(
        self, journal: Journal, worker: int, acks: Acks, slots: Sequence[tuple[str, int]], keys: Sequence[str]
    ) -> None:
        self.tally = Tally()
        self._journal = journal
        self._worker = worker
        self._acks: Acks = acks
        self._topics = pa.array([topic for topic, _ in slots], pa.string())
        self._partitions = np.array([partition for _, partition in slots], np.int32)
        self._keys = pa.array(keys, pa.string())
        self._acknowledged_as = _OUTCOMES.index(reported(None, acks, 0))
        self._refused_as = _OUTCOMES.index(refused(acks))
        self._error_names: dict[str, int] = {}
        self._open = _none_sent()
        self._invoked: list[_Sends] = []
        self._delivered: list[tuple[Ints, Ints, int]] = []
        self._failed: list[tuple[int, int, int | None, int]] = []

    def invoked(
        self, first: int, slot: Ints, key: Ints | None, at_ns: int, incarnation: int, transaction: int = _UNKNOWN
    ) -> None:
        """Records from sequence ``first`` on are about to be handed over, each to its slot and with its key."""
        count = len(slot)
        self._invoked.append(
            _Sends(
                np.arange(first, first + count),
                slot,
                np.full(count, _UNKNOWN) if key is None else key,
                np.full(count, at_ns),
                np.full(count, incarnation),
                np.full(count, transaction),
            )
        )

    def delivered(self, sequences: Ints, offsets: Sequence[int | None], at_ns: int) -> None:
        """Delivery reports without error came, at ``at_ns`` at the latest."""
        known = pa.array(offsets, pa.int64()).fill_null(_UNKNOWN).to_numpy()
        self._delivered.append((sequences, known, at_ns))

    def failed(self, sequence: int, error: str, code: int | None, at_ns: int) -> None:
        """A delivery report with this error came; ``code`` is None where ``produce()`` itself refused the record."""
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
        self._open = sends.where(~done)
        self._invoked.clear()
        self._delivered.clear()
        self._failed.clear()

    def still_open(self) -> int:
        """How many records were in flight at the last flush."""
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

    def _write(self, sends: _Sends, completed: Ints, outcome: Ints, error: Ints, offset: Ints) -> None:
        count = len(sends.sequence)
        columns = {
            "worker": np.full(count, self._worker, np.int32),
            "incarnation": sends.incarnation.astype(np.int32),
            "sequence": sends.sequence,
            "topic": self._topics.take(pa.array(sends.slot)),
            "partition": self._partitions[sends.slot],
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


class ReadRecorder:
    """Records what one reader was given."""

    def __init__(self, journal: Journal, reader: int, phase: Phase, incarnation: int = 0) -> None:
        self.read = 0
        self._journal = journal
        self._constant = {"reader": reader, "incarnation": incarnation, "phase": str(phase)}
        self._poll = 0
        self._columns = _read_columns()

    def delivered(self, messages: Sequence[Message], at_ns: int) -> None:
        """One poll returned these records (not errors), at ``at_ns`` at the latest."""
        columns = self._columns
        columns["topic"] += [message.topic() for message in messages]
        columns["partition"] += [message.partition() for message in messages]
        columns["offset"] += [message.offset() for message in messages]
        columns["leader_epoch"] += [message.leader_epoch() for message in messages]
        columns["timestamp_ms"] += [message.timestamp()[1] for message in messages]
        decoded = [decode(message.value()) for message in messages]
        columns["record_id"] += [found for found, _ in decoded]
        columns["intact"] += [intact for _, intact in decoded]
        keys = [message.key() for message in messages]
        columns["key"] += [None if key is None else key.decode(errors="backslashreplace") for key in keys]
        columns["poll"] += [self._poll] * len(messages)
        columns["read_ns"] += [at_ns] * len(messages)
        self._poll += 1

    def flush(self) -> None:
        """Write all records delivered since the last flush."""
        count = len(self._columns["offset"])
        if not count:
            return
        columns = self._columns | {name: [value] * count for name, value in self._constant.items()}
        arrays = [pa.array(columns[field.name], field.type) for field in READS]
        self._journal.append(pa.record_batch(arrays, schema=READS))
        self.read += count
        self._columns = _read_columns()


def _read_columns() -> dict[str, list[Any]]:
    written_per_flush = {"reader", "incarnation", "phase"}
    return {name: [] for name in READS.names if name not in written_per_flush}


class PositionRecorder:
    """Records what became of a reader's place in its partitions."""

    def __init__(self, journal: Journal, reader: int, incarnation: int = 0) -> None:
        self._journal = journal
        self._constant = {"reader": reader, "incarnation": incarnation}
        self._rows: list[Mapping[str, Any]] = []

    def happened(
        self, event: str, topic: str, partition: int, at_ns: int, offset: int | None = None, error: str | None = None
    ) -> None:
        """``event`` is one of those that harness.history.schema.POSITIONS names.

        A negative ``offset`` (a logical one of librdkafka) is no offset.
        """
        told = offset if offset is not None and offset >= 0 else None
        row = {"event": event, "topic": topic, "partition": partition, "at_ns": at_ns, "offset": told, "error": error}
        self._rows.append(row | self._constant)

    def flush(self) -> None:
        """Write all events since the last flush."""
        self._journal.append_rows(self._rows)
        self._rows.clear()


class TransactionRecorder:
    """Records the transactions of one worker. A row is in the journal before what it tells of is asked for.

    So even of a worker that was killed everything is known: a transaction whose row has no ``ending_ns`` was neither
    committed nor aborted by it.
    """

    def __init__(self, journal: Journal, worker: int) -> None:
        self._journal = journal
        self._worker = worker
        self._row: dict[str, Any] = {}

    def began(self, transaction: int, incarnation: int, intent: str, at_ns: int) -> None:
        """A transaction is about to begin; ``intent`` is commit or abort."""
        self._row = {
            "worker": self._worker,
            "incarnation": incarnation,
            "transaction": transaction,
            "intent": intent,
            "began_ns": at_ns,
            "outcome": str(Outcome.INFO),
        }
        self._journal.append_rows([self._row])

    def ending(self, at_ns: int) -> None:
        """Its commit or abort is about to be asked for."""
        self._row["ending_ns"] = at_ns
        self._journal.append_rows([self._row])

    def ended(self, outcome: Outcome, at_ns: int, error: str | None) -> None:
        """It is over, as far as its producer can tell."""
        self._row |= {"ended_ns": at_ns, "outcome": str(outcome), "error": error}
        self._journal.append_rows([self._row])
