"""Recorders of what a worker read, of its readers' positions, and of its transactions."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from confluent_kafka import Message

from harness.history.journal import Journal
from harness.history.schema import READS, Outcome, Phase, PositionEvent
from workloads.clients.payload import decode


class ReadRecorder:
    """Records what one reader received: one Arrow batch for each flush."""

    def __init__(self, journal: Journal, reader: int, phase: Phase, incarnation: int = 0) -> None:
        self.read = 0
        self._journal = journal
        self._constant = {"reader": reader, "incarnation": incarnation, "phase": str(phase)}
        self._constant |= {"poll": None, "transaction": None}
        self._columns = _read_columns()

    def delivered(self, messages: Sequence[Message], at_ns: int) -> None:
        """One poll returned these records (no errors), not later than ``at_ns``."""
        columns = self._columns
        columns["topic"] += [message.topic() for message in messages]
        columns["partition"] += [message.partition() for message in messages]
        columns["offset"] += [message.offset() for message in messages]
        columns["leader_epoch"] += [message.leader_epoch() for message in messages]
        decoded = [decode(message.value()) for message in messages]
        columns["record_id"] += [found for found, _ in decoded]
        columns["intact"] += [intact for _, intact in decoded]
        keys = [message.key() for message in messages]
        columns["key"] += [None if key is None else key.decode(errors="backslashreplace") for key in keys]
        columns["read_ns"] += [at_ns] * len(messages)

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
    written_per_flush = {"reader", "incarnation", "phase", "poll", "transaction"}
    return {name: [] for name in READS.names if name not in written_per_flush}


class PositionRecorder:
    """Records the events that change or show a reader's positions."""

    def __init__(self, journal: Journal, reader: int, incarnation: int = 0) -> None:
        self._journal = journal
        self._constant = {"reader": reader, "incarnation": incarnation}
        self._rows: list[Mapping[str, Any]] = []

    def happened(
        self,
        event: PositionEvent,
        topic: str,
        partition: int,
        at_ns: int,
        offset: int | None = None,
        error: str | None = None,
    ) -> None:
        """Record an event.

        A negative ``offset`` (a logical one of librdkafka) is recorded as null.
        """
        known = offset if offset is not None and offset >= 0 else None
        row = {"event": event, "topic": topic, "partition": partition, "at_ns": at_ns, "offset": known, "error": error}
        self._rows.append(row | self._constant)

    def flush(self) -> None:
        """Write all events since the last flush."""
        self._journal.append_rows(self._rows)
        self._rows.clear()


class TransactionRecorder:
    """Records the transactions of one worker. Each row is in the journal before the producer does what it announces.

    So everything is known even if the worker is killed: if a row has no ``ending_ns``, the worker neither committed nor
    aborted the transaction.
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
        """The producer is about to ask for its commit or abort."""
        self._row["ending_ns"] = at_ns
        self._journal.append_rows([self._row])

    def ended(self, outcome: Outcome, at_ns: int, error: str | None) -> None:
        """The transaction is over, as far as its producer knows."""
        self._row |= {"ended_ns": at_ns, "outcome": str(outcome), "error": error}
        self._journal.append_rows([self._row])
