"""Converts the operations of a Jepsen history of ``jepsen.tests.kafka``, one by one, to rows (docs/jepsen.md).

Operations are maps ``{:index :time :type :process :f :value}``, an invocation and later its completion. The
micro-operations of a send, poll or txn are ``[:send k v]``, completed ``[:send k [offset v]]``, and ``[:poll]``,
completed ``[:poll {k [[offset v] …]}]``. Source: jepsen/src/jepsen/tests/kafka.clj.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harness.core.errors import HistoryError
from harness.history.schema import UNKNOWN_OFFSET, Outcome, Phase, PositionEvent, record_id
from harness.importing.edn import EdnFile
from harness.importing.naming import MOST_WORKERS, NOBODY, Keys, RecordIds, Threads
from harness.importing.readers import ReaderState
from harness.importing.tables import TableFile

TOPIC = "jepsen"

_INVOKE = ":invoke"
_OUTCOMES = {":ok": Outcome.OK.value, ":fail": Outcome.FAIL.value, ":info": Outcome.INFO.value}
_MOVES_RECORDS = frozenset({":send", ":poll", ":txn"})
_CHOOSES_KEYS = frozenset({":assign", ":subscribe"})
_REBALANCES = ":rebalance-log"
_FUNCTIONS = _MOVES_RECORDS | _CHOOSES_KEYS | {":crash", ":debug-topic-partitions"}

_LIVE = Phase.LIVE.value
#: A choice: so many examples of values that nobody sent are named on import. The judge counts them all.
_MOST_NOTES = 20
#: The columns have 64 bits, that of incarnations 32.
_MOST, _MOST_INCARNATIONS = (1 << 63) - 1, 1 << 31
_OTHER_SENDS = "an operation completes other sends than it invoked"


@dataclass(frozen=True)
class Pending:
    """An invoked operation: its time, the partition, record, worker's sequence and value of each send, and the number
    of polls."""

    function: str
    invoked_ns: int
    sends: list[tuple[int, int, int, Any]]
    polls: int


@dataclass(frozen=True)
class Moved:
    """The partitions that a group moved. ``any``: and others whose names are not known."""

    partitions: frozenset[int]
    any: bool


@dataclass(frozen=True)
class Tables:
    """The tables that an imported history fills."""

    sends: TableFile
    reads: TableFile
    positions: TableFile
    transactions: TableFile


class Conversion:
    """Converts the operations of one history, in their order, to rows of ``tables``."""

    def __init__(self, file: EdnFile, tables: Tables) -> None:
        self.notes: list[str] = []
        self._file = file
        self._tables = tables
        self._threads = Threads()
        self._keys = Keys()
        self._records = RecordIds()
        self._sequences: Counter[int] = Counter()
        self._transactions: Counter[int] = Counter()
        self._pending: dict[int, Pending] = {}
        self._readers: dict[int, ReaderState] = {}
        self._operations = 0

    def summary(self) -> dict[str, Any]:
        """The keys of run.json that describe the imported history."""
        return {
            "operations": self._operations,
            "concurrency": self._threads.concurrency,
            "keys": self._keys.named,
        }

    def take(self, operation: Any) -> None:
        """Add one operation. Raises HistoryError if it is not one of this workload."""
        if not isinstance(operation, dict) or not operation.keys() >= {":type", ":process", ":f"}:
            raise self._file.error("not an operation of a Jepsen history: it needs :type, :process and :f")
        process = operation[":process"]
        if type(process) is not int:
            return  # the nemesis
        function, kind, at_ns = operation[":f"], operation[":type"], operation.get(":time")
        if not isinstance(function, str) or function not in _FUNCTIONS:
            raise self._file.error(
                f":f {_edn(function)} is another workload's: {_those(_FUNCTIONS)} are jepsen.tests.kafka's"
            )
        if type(at_ns) is not int:
            raise self._file.error("an operation without a :time")
        if not -_MOST <= at_ns <= _MOST:
            raise self._file.error(f":time {at_ns} is beyond 64 bits")
        self._operations += 1
        if kind == _INVOKE:
            self._invoked(process, function, at_ns, operation.get(":value"))
        elif isinstance(kind, str) and kind in _OUTCOMES:
            self._completed(process, at_ns, operation)
        else:
            raise self._file.error(f":type {_edn(kind)} is none of {_INVOKE}, {', '.join(_OUTCOMES)}")

    def finish(self) -> None:
        """Add the operations that are still pending: nobody knows their outcome."""
        if not self._operations:
            raise HistoryError(f"{self._file.path}: no operation of jepsen.tests.kafka in it")
        for process, pending in sorted(self._pending.items()):
            if pending.function in _MOVES_RECORDS:
                self._moved(process, pending, None, {":type": ":info"}, ())

    def _invoked(self, process: int, function: str, at_ns: int, value: Any) -> None:
        if process in self._pending:
            raise self._file.error(f"process {process} invokes an operation before it completed its last")
        worker, _ = self._thread(process)
        micros = self._micro(function, value)
        sends = [self._sent(worker, *self._send_of(micro)) for micro in micros if micro[0] == ":send"]
        polls = max(function == ":poll", sum(micro[0] == ":poll" for micro in micros))
        self._pending[process] = Pending(function, at_ns, sends, polls)

    def _sent(self, worker: int, partition: int, value: Any) -> tuple[int, int, int, Any]:
        sequence = self._sequences[worker]
        record = record_id(worker, sequence)
        if not self._records.add(partition, value, record):
            raise self._file.error(f"value {value} is sent to partition {partition} twice: values must be unique")
        self._sequences[worker] += 1
        return partition, record, sequence, value

    def _completed(self, process: int, at_ns: int, operation: dict[Any, Any]) -> None:
        pending = self._pending.pop(process, None)
        function, outcome = operation[":f"], _OUTCOMES[operation[":type"]]
        if pending is None or pending.function != function:
            raise self._file.error(f"process {process} completes a {function} that it did not invoke")
        if function in _MOVES_RECORDS:
            self._moved(process, pending, at_ns, operation, self._micro(function, operation.get(":value")))
        elif function in _CHOOSES_KEYS and outcome != Outcome.FAIL.value:
            self._chosen(process, at_ns, operation)
        if outcome == Outcome.INFO.value or operation.get(":end-process?"):
            self._threads.ended(process)
            if reader := self._readers.get(process):
                # If the process continues nevertheless, it has a new client.
                self._readers[process] = ReaderState(polls=reader.polls, moved=1)

    def _moved(
        self, process: int, pending: Pending, at_ns: int | None, operation: Mapping[Any, Any], micros: tuple[Any, ...]
    ) -> None:
        """Add what an operation sent and polled. ``at_ns`` is None if it never completed."""
        offsets = self._offsets(pending, micros)
        outcome = _OUTCOMES[operation[":type"]]
        failed = outcome == Outcome.FAIL.value
        # A failed operation with an acknowledged send was undone as a whole: it was a transaction.
        undone = _aborted(operation) or _acknowledged_any(pending, micros)
        is_one = pending.function == ":txn" or (undone if failed else len(pending.sends) > 1)
        transaction = self._transaction(process, pending, at_ns, outcome) if is_one else None
        of_sends = Outcome.INFO.value if failed and transaction is not None else outcome
        self._send_rows(process, pending, at_ns, of_sends, operation.get(":error"), offsets, transaction)
        polls = [micro for micro in micros if micro[0] == ":poll"]
        if pending.polls or polls or operation.get(_REBALANCES):
            self._polled_rows(process, pending, at_ns or pending.invoked_ns, operation, polls, transaction)

    def _transaction(self, process: int, pending: Pending, at_ns: int | None, outcome: str) -> int:
        """Add the row of a transaction, and return its number. The file does not say when its end was asked for: at its
        invocation at the earliest."""
        worker, incarnation = self._thread(process)
        number = self._transactions[worker]
        self._transactions[worker] += 1
        failed = outcome == Outcome.FAIL.value
        intent, ended = ("abort", Outcome.OK.value) if failed else ("commit", outcome)
        began_ns = pending.invoked_ns
        self._tables.transactions.append((worker, incarnation, number, intent, began_ns, began_ns, at_ns, ended, None))
        return number

    def _micro(self, function: str, value: Any) -> tuple[Any, ...]:
        """The micro-operations of an operation; none if it does not list them, as may happen with a crashed one."""
        if function not in _MOVES_RECORDS or value is None:
            return ()
        if not isinstance(value, tuple):
            raise self._file.error(f"the :value of a {function} must be a vector: another workload's?")
        for micro in value:
            if not isinstance(micro, tuple) or not micro or micro[0] not in {":send", ":poll"}:
                raise self._file.error(f"{_edn(micro)} is neither a [:send k v] nor a [:poll …]: another workload's?")
        return value

    def _send_of(self, micro: tuple[Any, ...]) -> tuple[int, Any]:
        """The partition and value of a send."""
        if len(micro) != 3:
            raise self._file.error(f"{_edn(micro)} is no [:send k v]")
        return self._partition(micro[1]), micro[2]

    def _offsets(self, pending: Pending, micros: tuple[Any, ...]) -> list[int | None]:
        """The offset of each pending send; None if the completion has none."""
        completed = [self._send_of(micro) for micro in micros if micro[0] == ":send"]
        if not completed:
            return [None] * len(pending.sends)
        if len(completed) != len(pending.sends):
            raise self._file.error(_OTHER_SENDS)
        return [
            self._offset_of(raw, value, partitions=(completed_in, partition))
            for (completed_in, raw), (partition, _, _, value) in zip(completed, pending.sends, strict=True)
        ]

    def _offset_of(self, raw: Any, value: Any, partitions: tuple[int, int]) -> int | None:
        """The offset in the completion of a send of ``value``: ``[offset value]``, or only the value as invoked.
        ``partitions``: those of completion and invocation."""
        completed, invoked = partitions
        if completed != invoked or raw == value:
            offset, completed_value = None, raw
        else:
            offset, completed_value = raw if isinstance(raw, tuple) and len(raw) == 2 else (None, raw)
        if completed != invoked or completed_value != value:
            raise self._file.error(_OTHER_SENDS)
        return self._offset(offset, f"{_edn(raw)}, completed of {_edn(value)}, is no [offset v]")

    def _offset(self, raw: Any, wrong: str) -> int | None:
        """The offset; None for nil, and for -1, which Java's client returns if it does not know the offset
        (RecordMetadata.offset). A log ends below 2^63, so no record is at 2^63 - 1."""
        if raw is None or (type(raw) is int and raw == UNKNOWN_OFFSET):
            return None
        if type(raw) is not int or not 0 <= raw < _MOST:
            raise self._file.error(wrong)
        return raw

    def _send_rows(
        self,
        process: int,
        pending: Pending,
        at_ns: int | None,
        outcome: str,
        error: Any,
        offsets: list[int | None],
        transaction: int | None,
    ) -> None:
        if not pending.sends:
            return
        worker, incarnation = self._thread(process)
        why = None if error is None else _edn(error)
        self._tables.sends.extend(
            (
                *(worker, incarnation, sequence, TOPIC, partition, record, _edn(value)),
                *(pending.invoked_ns, at_ns, outcome, why, offset, transaction),
            )
            for (partition, record, sequence, value), offset in zip(pending.sends, offsets, strict=True)
        )

    def _polled_rows(
        self,
        process: int,
        pending: Pending,
        at_ns: int,
        operation: Mapping[Any, Any],
        polls: list[tuple[Any, ...]],
        transaction: int | None,
    ) -> None:
        """Add what the polls of one operation brought, and the changes of the reader's positions in between."""
        reader = self._readers.setdefault(process, ReaderState())
        moved = self._moved_by_group(operation)
        reader.tells_rebalances |= moved is not None
        reader.begins()
        last = set[int]()
        for micro in polls:
            last.clear()
            for key, pairs in self._polled(micro):
                partition, offsets = self._partition(key), self._offsets_of(key, pairs)
                last |= {partition} if offsets else set()
                if moved is not None and (moved.any or partition in moved.partitions):
                    reader.moves([partition])
                event = reader.arrives(partition, offsets) if offsets else None
                if event is not None:
                    self._position(process, at_ns, partition, *event)
                self._read_rows(process, at_ns, partition, zip(offsets, pairs or (), strict=True), transaction)
            reader.polls += 1
        if moved is not None:
            # A consumer learns of a move at the begin of a poll, before the poll brings records
            # (ConsumerRebalanceListener): no move came after the records of the last poll.
            reader.moves((reader.positions.keys() if moved.any else moved.partitions) - last)
        if operation[":type"] != ":ok" and (polls or pending.polls):
            # (A poll with the value of its invocation says nothing about what it brought.)
            with_records = sum(len(micro) > 1 and micro[1] is not None for micro in polls)
            reader.failed(all_recorded=with_records >= pending.polls)

    def _read_rows(
        self, process: int, at_ns: int, partition: int, pairs: Iterator[tuple[int | None, Any]], transaction: int | None
    ) -> None:
        worker, incarnation = self._thread(process)
        reader = self._readers[process]
        before: int | None = None
        for offset, (raw, value) in pairs:
            if before is not None and offset is not None and offset < before:
                # The order within one poll is known, too: a step back counts like the begin of another poll.
                reader.polls += 1
            before = before if offset is None else offset
            record = self._records.find(partition, value)
            if record is None:
                record = self._stranger(partition, raw, value)
            self._tables.reads.append(
                (
                    *(worker, incarnation, _LIVE, TOPIC, partition),
                    *(UNKNOWN_OFFSET if offset is None else offset, None, record, True),
                    *(at_ns, reader.polls, transaction),
                )
            )

    def _offsets_of(self, key: Any, pairs: Any) -> list[int | None]:
        return [
            self._offset(raw, f"{_edn((raw, value))}, polled of key {_edn(key)}, is no [offset v]")
            for raw, value in self._pairs(key, pairs)
        ]

    def _moved_by_group(self, operation: Mapping[Any, Any]) -> "Moved | None":
        """What a group moved during an operation; None if the operation does not say it."""
        log = operation.get(_REBALANCES)
        if log is None:
            return None
        if not isinstance(log, tuple) or not all(isinstance(event, dict) for event in log):
            raise self._file.error(f"{_edn(log)} is no {_REBALANCES} [{{:keys […]}} …]")
        keys = [event.get(":keys") for event in log]
        named = [key for of_event in keys if isinstance(of_event, tuple) for key in of_event]
        return Moved(frozenset(map(self._partition, named)), any=not all(isinstance(key, tuple) for key in keys))

    def _polled(self, micro: tuple[Any, ...]) -> Iterator[tuple[Any, Any]]:
        if len(micro) > 1 and micro[1] is not None:
            if not isinstance(micro[1], dict):
                raise self._file.error(f"{_edn(micro)} is no [:poll {{k [[offset v] …]}}]")
            yield from micro[1].items()

    def _pairs(self, key: Any, pairs: Any) -> Any:
        if not isinstance(pairs, tuple | None):
            raise self._file.error(f"{_edn(pairs)}, polled of key {_edn(key)}, is no [[offset v] …]")
        for pair in pairs or ():
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise self._file.error(f"{_edn(pair)}, polled of key {_edn(key)}, is no [offset v]")
        return pairs or ()

    def _stranger(self, partition: int, offset: Any, value: Any) -> int:
        """The record id of a value that nobody sent."""
        if len(self.notes) < _MOST_NOTES:
            line = f"{TOPIC}-{partition} at {_edn(offset)}: no one sent the value {_edn(value)}"
            self.notes.append(f"{line} (line {self._file.line})")
        _, record, _, _ = self._sent(NOBODY, partition, value)
        return record

    def _chosen(self, process: int, at_ns: int, operation: dict[Any, Any]) -> None:
        """Add a new choice of keys. (A subscription does not say which keys the group assigns to whom, and when.)"""
        keys = operation.get(":value")
        if keys is not None and not isinstance(keys, tuple):
            raise self._file.error(f"the :value of an {operation[':f']} must be keys")
        chosen = frozenset(self._partition(key) for key in keys or ())
        reader = self._readers.setdefault(process, ReaderState())
        for event, partition in reader.chooses(chosen, subscribed=operation[":f"] == ":subscribe"):
            self._position(process, at_ns, partition, event)
        if operation.get(":seek-to-beginning?"):
            reader.seeks(chosen)
            for partition in sorted(chosen):
                self._position(process, at_ns, partition, PositionEvent.SEEK, 0)

    def _position(
        self, process: int, at_ns: int, partition: int, event: PositionEvent, offset: int | None = None
    ) -> None:
        worker, incarnation = self._thread(process)
        before = self._readers[process].polls
        self._tables.positions.append((worker, incarnation, at_ns, event, TOPIC, partition, offset, None, before))

    def _thread(self, process: int) -> tuple[int, int]:
        worker, incarnation = self._threads.thread(process)
        if process < 0 or worker >= MOST_WORKERS - 1 or incarnation >= _MOST_INCARNATIONS:
            raise self._file.error(f"process {process}: there cannot be so many")
        return worker, incarnation

    def _partition(self, key: Any) -> int:
        partition = self._keys.partition(key)
        if partition is None:
            raise self._file.error(f"{_edn(key)} is not a key: all are integers from 0, or none is")
        return partition


def _edn(value: Any) -> str:
    """A value about as Clojure writes it, so that one can find it in the file."""
    if isinstance(value, tuple):
        return f"[{' '.join(map(_edn, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_edn(key)} {_edn(part)}' for key, part in value.items())}}}"
    if value is None or isinstance(value, bool):
        return "nil" if value is None else str(value).lower()
    return str(value)


def _aborted(operation: Mapping[Any, Any]) -> bool:
    """Whether a failed operation says that its transaction was aborted."""
    error = operation.get(":error")
    return isinstance(error, dict) and error.get(":type") == ":abort"


def _acknowledged_any(pending: Pending, micros: tuple[Any, ...]) -> bool:
    """Whether a send was completed as ``[offset value]``, also where the offset is not known."""
    completed = [micro[2] for micro in micros if micro[0] == ":send"]
    return any(raw != value for raw, (*_, value) in zip(completed, pending.sends, strict=False))


def _those(names: frozenset[str]) -> str:
    return ", ".join(sorted(names))
