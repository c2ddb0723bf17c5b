"""The operations of a Jepsen history of ``jepsen.tests.kafka``, taken one by one, as rows of ours (docs/jepsen.md).

They are maps ``{:index :time :type :process :f :value}``, an invocation and later its completion. The micro-operations
of a send, poll or txn are ``[:send k v]``, completed ``[:send k [offset v]]``, and ``[:poll]``, completed
``[:poll {k [[offset v] …]}]``. Source: jepsen/src/jepsen/tests/kafka.clj.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from harness.core.errors import HistoryError
from harness.history.schema import UNTOLD, Outcome, Phase, record_id
from harness.importing.edn import EdnFile
from harness.importing.naming import MOST_WORKERS, NOBODY, Keys, Records, Threads
from harness.importing.tables import TableFile

TOPIC = "jepsen"

_INVOKE = ":invoke"
_OUTCOMES = {":ok": Outcome.OK.value, ":fail": Outcome.FAIL.value, ":info": Outcome.INFO.value}
_MOVES_RECORDS = frozenset({":send", ":poll", ":txn"})
_CHOOSES_KEYS = frozenset({":assign", ":subscribe"})
_FUNCTIONS = _MOVES_RECORDS | _CHOOSES_KEYS | {":crash", ":debug-topic-partitions"}

_LIVE = Phase.LIVE.value
_NO_TIMESTAMP = -1
_MOST_NOTES = 20
#: The columns are of 64 and, for incarnations, of 32 bits.
_MOST, _MOST_INCARNATIONS = (1 << 63) - 1, 1 << 31
_OTHER_SENDS = "an operation completes other sends than it invoked"


@dataclass(frozen=True)
class Pending:
    """An operation that was invoked: when, the partition, record, worker's sequence and value of each send, and whether
    it polls."""

    function: str
    invoked_ns: int
    sends: list[tuple[int, int, int, Any]]
    polls: bool


@dataclass
class Reader:
    """What is known of a consumer's place: the partitions it was assigned, and why the next poll may begin anywhere:
    ``polled`` has how often it had been rolled back when each partition was polled last."""

    assigned: frozenset[int] = frozenset()
    polls: int = 0
    shared: bool = False
    rollbacks: int = 0
    polled: dict[int, int] = field(default_factory=dict)


class Conversion:
    """The operations of one history, taken in their order, as rows of sends, reads and positions."""

    def __init__(self, file: EdnFile, sends: TableFile, reads: TableFile, positions: TableFile) -> None:
        self.notes: list[str] = []
        self._file = file
        self._sends = sends
        self._reads = reads
        self._positions = positions
        self._threads = Threads()
        self._keys = Keys()
        self._records = Records()
        self._sequences: Counter[int] = Counter()
        self._pending: dict[int, Pending] = {}
        self._readers: dict[int, Reader] = {}
        self._operations = 0

    def summary(self) -> dict[str, Any]:
        """What run.json says of the history besides its tables."""
        return {
            "operations": self._operations,
            "concurrency": self._threads.concurrency,
            "keys": self._keys.named,
        }

    def take(self, operation: Any) -> None:
        """Add one operation. Raises HistoryError where it is not one of this workload."""
        if not isinstance(operation, dict) or not operation.keys() >= {":type", ":process", ":f"}:
            raise self._file.error("no operation of a Jepsen history: it needs :type, :process and :f")
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
        """Add what is still pending: nobody knows what became of it."""
        if not self._operations:
            raise HistoryError(f"{self._file.path}: no operation of jepsen.tests.kafka in it")
        for process, pending in sorted(self._pending.items()):
            self._send_rows(process, pending, None, Outcome.INFO.value, None, self._offsets(pending, ()))

    def _invoked(self, process: int, function: str, at_ns: int, value: Any) -> None:
        if process in self._pending:
            raise self._file.error(f"process {process} invokes an operation before it completed its last")
        worker, _ = self._place(process)
        micros = self._micro(function, value)
        sends = [self._sent(worker, *self._send_of(micro)) for micro in micros if micro[0] == ":send"]
        polls = function == ":poll" or any(micro[0] == ":poll" for micro in micros)
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
        value, error = operation.get(":value"), operation.get(":error")
        if function in _MOVES_RECORDS:
            micros = self._micro(function, value)
            self._send_rows(process, pending, at_ns, outcome, error, self._offsets(pending, micros))
            self._read_rows(process, pending, at_ns, [micro for micro in micros if micro[0] == ":poll"])
            if pending.polls and outcome != Outcome.OK.value:
                self._readers.setdefault(process, Reader()).rollbacks += 1
        elif function in _CHOOSES_KEYS and outcome != Outcome.FAIL.value:
            self._assigned(process, at_ns, operation)
        if outcome == Outcome.INFO.value or operation.get(":end-process?"):
            self._threads.ended(process)
            self._readers.pop(process, None)

    def _micro(self, function: str, value: Any) -> tuple[Any, ...]:
        """The micro-operations of an operation; none where it does not tell them, as a crashed one may not."""
        if function not in _MOVES_RECORDS or value is None:
            return ()
        if not isinstance(value, tuple):
            raise self._file.error(f"the :value of a {function} must be a vector: another workload's?")
        for micro in value:
            if not isinstance(micro, tuple) or not micro or micro[0] not in {":send", ":poll"}:
                raise self._file.error(f"{_edn(micro)} is neither a [:send k v] nor a [:poll …]: another workload's?")
        return value

    def _send_of(self, micro: tuple[Any, ...]) -> tuple[int, Any]:
        """The partition and value of a send that was invoked."""
        if len(micro) != 3:
            raise self._file.error(f"{_edn(micro)} is no [:send k v]")
        return self._partition(micro[1]), micro[2]

    def _offsets(self, pending: Pending, micros: tuple[Any, ...]) -> list[int | None]:
        """The offset of each pending send, None where the completion tells none."""
        completed = [self._send_of(micro) for micro in micros if micro[0] == ":send"]
        if not completed:
            return [None] * len(pending.sends)
        if len(completed) != len(pending.sends):
            raise self._file.error(_OTHER_SENDS)
        return [
            self._offset_of(told, value, at=(of, partition))
            for (of, told), (partition, _, _, value) in zip(completed, pending.sends, strict=True)
        ]

    def _offset_of(self, told: Any, value: Any, at: tuple[int, int]) -> int | None:
        """The offset in what a send of ``value`` was completed with: ``[offset value]``, or the value as invoked."""
        completed, invoked = at
        if completed != invoked or told == value:
            offset, of = None, told
        else:
            offset, of = told if isinstance(told, tuple) and len(told) == 2 else (None, told)
        if completed != invoked or of != value:
            raise self._file.error(_OTHER_SENDS)
        return self._offset(offset, f"{_edn(told)}, completed of {_edn(value)}, is no [offset v]")

    def _offset(self, told: Any, wrong: str) -> int | None:
        """An offset that was told; None for nil, and for -1, which Java's client tells where it knows none
        (RecordMetadata.offset). A log ends below 2^63, so that no record is at 2^63 - 1."""
        if told is None or (type(told) is int and told == UNTOLD):
            return None
        if type(told) is not int or not 0 <= told < _MOST:
            raise self._file.error(wrong)
        return told

    def _send_rows(
        self,
        process: int,
        pending: Pending,
        at_ns: int | None,
        outcome: str,
        error: Any,
        offsets: list[int | None],
    ) -> None:
        if not pending.sends:
            return
        worker, incarnation = self._place(process)
        why = None if error is None else _edn(error)
        self._sends.extend(
            (
                *(worker, incarnation, sequence, TOPIC, partition, record, _edn(value)),
                *(pending.invoked_ns, at_ns, outcome, why, offset, None),
            )
            for (partition, record, sequence, value), offset in zip(pending.sends, offsets, strict=True)
        )

    def _read_rows(self, process: int, pending: Pending, at_ns: int, polls: list[tuple[Any, ...]]) -> None:
        if not polls:
            return
        worker, incarnation = self._place(process)
        reader = self._readers.setdefault(process, Reader())
        for micro in polls:
            reader.polls += 1
            for key, pairs in self._polled(micro):
                partition = self._partition(key)
                if reader.shared or reader.polled.get(partition, 0) < reader.rollbacks:
                    event = "assign" if reader.shared else "seek"
                    self._position(worker, incarnation, pending.invoked_ns, event, partition)
                reader.polled[partition] = reader.rollbacks
                for told, value in self._pairs(key, pairs):
                    offset = self._offset(told, f"{_edn((told, value))}, polled of key {_edn(key)}, is no [offset v]")
                    record = self._records.find(partition, value)
                    if record is None:
                        record = self._stranger(partition, offset, value)
                    place = UNTOLD if offset is None else offset
                    self._reads.append(
                        (
                            *(worker, incarnation, _LIVE, reader.polls, TOPIC, partition, place),
                            *(None, record, True, _NO_TIMESTAMP, at_ns),
                        )
                    )

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
        """The record id of a value that no one sent."""
        if len(self.notes) < _MOST_NOTES:
            told = f"{TOPIC}-{partition} at {_edn(offset)}: no one sent the value {_edn(value)}"
            self.notes.append(f"{told} (line {self._file.line})")
        _, record, _, _ = self._sent(NOBODY, partition, value)
        return record

    def _assigned(self, process: int, at_ns: int, operation: dict[Any, Any]) -> None:
        """A new choice of keys. Which of them a group gives to whom, and when, a subscription does not tell."""
        keys = operation.get(":value")
        if keys is not None and not isinstance(keys, tuple):
            raise self._file.error(f"the :value of an {operation[':f']} must be keys")
        chosen = frozenset(self._partition(key) for key in keys or ())
        worker, incarnation = self._place(process)
        reader = self._readers.setdefault(process, Reader())
        subscribed = operation[":f"] == ":subscribe"
        events = [
            *(("revoke", partition, None) for partition in sorted(reader.assigned - chosen)),
            *(("assign", partition, None) for partition in sorted(chosen - reader.assigned) if not subscribed),
            *(("seek", partition, 0) for partition in sorted(chosen) if operation.get(":seek-to-beginning?")),
        ]
        for event, partition, offset in events:
            self._position(worker, incarnation, at_ns, event, partition, offset)
        reader.assigned = frozenset() if subscribed else chosen
        reader.shared = subscribed

    def _position(
        self, worker: int, incarnation: int, at_ns: int, event: str, partition: int, offset: int | None = None
    ) -> None:
        self._positions.append((worker, incarnation, at_ns, event, TOPIC, partition, offset, None))

    def _place(self, process: int) -> tuple[int, int]:
        worker, incarnation = self._threads.place(process)
        if process < 0 or worker >= MOST_WORKERS - 1 or incarnation >= _MOST_INCARNATIONS:
            raise self._file.error(f"process {process}: there cannot be so many")
        return worker, incarnation

    def _partition(self, key: Any) -> int:
        partition = self._keys.partition(key)
        if partition is None:
            raise self._file.error(f"{_edn(key)} is no key: all are integers from 0, or none is")
        return partition


def _edn(value: Any) -> str:
    """A value as Clojure would write it, near enough to be found in the file."""
    if isinstance(value, tuple):
        return f"[{' '.join(map(_edn, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_edn(key)} {_edn(of)}' for key, of in value.items())}}}"
    if value is None or isinstance(value, bool):
        return "nil" if value is None else str(value).lower()
    return str(value)


def _those(names: frozenset[str]) -> str:
    return ", ".join(sorted(names))
