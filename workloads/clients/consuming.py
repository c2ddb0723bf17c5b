"""The consumer's side of a worker: read along, and record what was read and where the reader stood."""

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_STORED,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from harness.core.clock import Clock
from harness.history.journal import Journal, journal_path
from harness.history.schema import POSITIONS, READS, Phase
from workloads.clients.recorder import PositionRecorder, ReadRecorder
from workloads.loop import Commands, run, tell
from workloads.protocol import ConsumerSpec, Report, Slot

_BATCH = 5_000
_ASK_S = 2.0
#: After so long without an answer a commit is asked for again.
_COMMIT_S = 10.0
#: So many steps it takes to process what a poll brought: a kill finds some of it done, and some not.
_PARTS = 10

#: The log no longer has the position (auto.offset.reset=error turns every such case into an error).
_POSITION_LOST = {KafkaError._AUTO_OFFSET_RESET, KafkaError._LOG_TRUNCATION, KafkaError.OFFSET_OUT_OF_RANGE}


@dataclass(frozen=True)
class Position:
    """Where a reader stands in a log: its next offset (or one of librdkafka's logical ones), and the leader epoch of
    the record before it, None where that is not known.

    By the epoch a leader tells whether the log is still the one that was read (KIP-320); without it, a reader whose log
    was truncated and has grown again goes on in the middle of records that it never saw.
    """

    offset: int
    epoch: int | None = None


class Consuming:
    """One consumer, of all its slots or as a member of a group.

    Where the log no longer has its position (it was truncated, or a new group has none) it goes on from the log start,
    and says so: a ``seek``. A member of a group commits after what it read is in the journal: after it was processed,
    for that is what its rows of ``reads`` say. Or before (``commits_first``): then nothing is processed until its
    commit was answered, and what was not is held back. What a commit asks for is journalled before it is asked: a
    ``committing``. ``processed`` is told how much of what a poll brought a member has processed, of 1, before it goes
    on: all that went before is in the journals then.
    """

    def __init__(
        self,
        spec: ConsumerSpec,
        reads: ReadRecorder,
        positions: PositionRecorder,
        clock: Clock,
        client: Callable[[dict[str, Any]], Consumer] = Consumer,
        work: Callable[[float], None] = time.sleep,
        processed: Callable[[float], None] = lambda _: None,
        commit_within: float = _COMMIT_S,
    ) -> None:
        self._reads = reads
        self._positions = positions
        self._clock = clock
        self._grouped = spec.grouped
        self._processing = spec.processing
        self._commits_first = spec.commits_first
        self._work = work
        self._processed = processed
        self._commit_within = commit_within
        # librdkafka's call that waits for the answer has no limit of its own.
        self._commits = ThreadPoolExecutor(1, "commit")
        self._held: list[Message] = []
        self._next: dict[Slot, Position] = {}
        self._to_commit: dict[Slot, Position] = {}
        self._goals: dict[Slot, int | None] = {}
        self._placed = False
        told = {} if spec.commits_first else {"on_commit": self._committed}
        self._consumer = client({**spec.config, "error_cb": self._client_error, **told})
        if spec.grouped:
            self._consumer.subscribe(
                sorted({topic for topic, _ in spec.slots}),
                on_assign=self._assigned,
                on_revoke=self._revoked,
                on_lost=self._lost,
            )
        else:
            self._assign(dict.fromkeys(spec.slots, Position(OFFSET_BEGINNING)))

    def step(self, at_most_s: float) -> None:
        """Read what has come, waiting for it ``at_most_s`` seconds at most, and process it."""
        self._poll(at_most_s)
        now = self._clock.now()
        records = [message for message in self._held if message.error() is None]
        ends = _ends(records)
        if ends and self._commits_first and not self._commit(ends):
            return
        # Between the answer and this nothing is polled: no rebalance takes away what was committed and not processed.
        messages, self._held = self._held, []
        if records:
            self._process(records, now)
            self._next |= ends
            if self._grouped and not self._commits_first:
                self._to_commit |= ends
        for message in messages:
            if (error := message.error()) is not None:
                self._error(error, message.topic() or "", _partition_of(message), message.offset(), now)
        if self._processing is not None:
            self.flush()

    def _poll(self, at_most_s: float) -> None:
        """Wait for one message alone: what is read is stamped when it comes, not when there are many."""
        # Rebalances happen in here, and take from what is held.
        first = self._consumer.poll(at_most_s)
        if first is not None:
            self._held += [first, *self._consumer.consume(_BATCH - 1, timeout=0)]

    def _commit(self, ends: Mapping[Slot, Position]) -> bool:
        """Whether the group's place is known to be behind all that is held: the answer is awaited, within a limit."""
        self._announce(ends)
        asked = self._commits.submit(self._consumer.commit, offsets=_partitions(ends), asynchronous=False)
        try:
            answered = asked.result(self._commit_within)
        except TimeoutError:
            asked.cancel()
            self._client_error(KafkaError(KafkaError._TIMED_OUT))
            return False
        except KafkaException as exc:
            self._client_error(exc.args[0])
            return False
        self._committed(None, answered)
        return all(p.error is None for p in answered)

    def _announce(self, ends: Mapping[Slot, Position]) -> None:
        """That a commit is asked for is in the journal before it is."""
        self._tell("committing", ends)
        self._positions.flush()

    def _process(self, records: list[Message], now: int) -> None:
        """Journal ``records``, where processing takes time part by part: as if each part were a poll of its own."""
        if self._processing is None:
            self._reads.delivered(records, now)
            return
        self._positions.flush()
        size = -(-len(records) // _PARTS)
        for first in range(0, len(records), size):
            part = records[first : first + size]
            self._processed(first / len(records))
            self._work(self._processing * len(part) / len(records))
            self._reads.delivered(part, now)
            self._reads.flush()

    def flush(self) -> None:
        """Write where the reader stood, and what was read; then, as a member of a group, commit it."""
        self._positions.flush()
        self._reads.flush()
        if self._to_commit:
            ends = dict(self._to_commit)
            self._to_commit.clear()
            self._announce(ends)
            try:
                self._consumer.commit(offsets=_partitions(ends), asynchronous=True)
            except KafkaException as exc:
                self._client_error(exc.args[0])

    @property
    def owned(self) -> int:
        """How many partitions it has been given; none while its group rebalances."""
        return len(self._next) if self._placed else 0

    def caught_up(self) -> bool:
        """Whether all was read that was in its partitions' logs when this was first asked of each.

        A member of a group that has not been told its partitions (yet, or anew after a rebalance took those it had) has
        caught up with nothing.
        """
        for slot in self._next:
            if self._goals.get(slot) is None:
                self._goals[slot] = self._log_end(slot)
        return self._placed and all(self._reached(slot) for slot in self._next)

    def _reached(self, slot: Slot) -> bool:
        goal = self._goals[slot]
        return goal is not None and self._next[slot].offset >= goal

    def leave(self) -> None:
        """Leave the group, if any: the others need not wait until its session expires. Waits for brokers."""
        if self._grouped:
            self.flush()
            self._consumer.close()

    def _log_end(self, slot: Slot) -> int | None:
        try:
            watermarks = self._consumer.get_watermark_offsets(TopicPartition(*slot), timeout=_ASK_S, cached=False)
        except KafkaException:
            return None
        return None if watermarks is None else watermarks[1]

    def _assign(self, positions: dict[Slot, Position]) -> None:
        self._consumer.assign(_partitions(positions))
        self._next = dict(positions)
        self._placed = True
        self._tell("assign", positions)

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        try:
            committed = consumer.committed(partitions, timeout=_ASK_S)
        except KafkaException:
            committed = [TopicPartition(p.topic, p.partition, OFFSET_STORED) for p in partitions]
        self._assign({(p.topic, p.partition): _begin_at(p) for p in committed})

    def _revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._give_up("revoke", partitions)

    def _lost(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._give_up("lost", partitions)

    def _give_up(self, event: str, partitions: list[TopicPartition]) -> None:
        gone = [(p.topic, p.partition) for p in partitions]
        self._placed = False
        self._tell(event, {slot: self._next.pop(slot, Position(OFFSET_BEGINNING)) for slot in gone})
        for slot in gone:
            self._to_commit.pop(slot, None)
        self._held = [message for message in self._held if _slot_of(message) not in gone]

    def _error(self, error: KafkaError, topic: str, partition: int, offset: int | None, now: int) -> None:
        slot = (topic, partition)
        if error.code() == KafkaError._PARTITION_EOF:
            self._positions.happened("end-of-partition", topic, partition, now, offset)
            # Of the same poll, records may have come after it. Where it is behind all records, markers stand between.
            if slot in self._next and offset is not None and offset > self._next[slot].offset:
                self._next[slot] = Position(offset)
            return
        self._positions.happened("error", topic, partition, now, offset, error.name())
        if error.code() in _POSITION_LOST and slot in self._next:
            # librdkafka has stopped fetching it and refuses to seek: assign anew, the others from where they stand.
            self._to_commit.pop(slot, None)
            self._next[slot] = Position(OFFSET_BEGINNING)
            self._consumer.assign(_partitions(self._next))
            self._tell("seek", {slot: self._next[slot]})

    def _client_error(self, error: KafkaError) -> None:
        self._positions.happened("error", "", -1, self._clock.now(), error=error.name())

    def _committed(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        for p in partitions:
            failed = error or p.error
            name = None if failed is None else failed.name()
            self._positions.happened("commit", p.topic, p.partition, self._clock.now(), p.offset, name)

    def _tell(self, event: str, positions: Mapping[Slot, Position]) -> None:
        now = self._clock.now()
        for (topic, partition), position in positions.items():
            self._positions.happened(event, topic, partition, now, position.offset)


def _ends(records: Iterable[Message]) -> dict[Slot, Position]:
    """Behind the last of ``records`` in each partition."""
    last = {_slot_of(record): record for record in records}
    return {slot: Position(_offset_of(record) + 1, record.leader_epoch()) for slot, record in last.items()}


def _begin_at(committed: TopicPartition) -> Position:
    """Where a member begins: where the group has committed, else at the log start."""
    if committed.offset >= 0 or committed.offset == OFFSET_STORED:
        return Position(committed.offset, committed.leader_epoch)
    return Position(OFFSET_BEGINNING)


def _partitions(positions: Mapping[Slot, Position]) -> list[TopicPartition]:
    return [
        TopicPartition(*slot, at.offset)
        if at.epoch is None
        else TopicPartition(*slot, at.offset, leader_epoch=at.epoch)
        for slot, at in positions.items()
    ]


def _slot_of(message: Message) -> Slot:
    return message.topic() or "", _partition_of(message)


def _offset_of(record: Message) -> int:
    offset = record.offset()
    assert offset is not None
    return offset


def _partition_of(message: Message) -> int:
    partition = message.partition()
    return -1 if partition is None else partition


def consume(spec: ConsumerSpec, commands: Commands, stack: ExitStack) -> Report:
    """Read until told to finish, and then to the end of what was in the log at that moment."""
    clock = Clock(spec.origin_ns)
    reads_journal = stack.enter_context(Journal(journal_path(spec.journals, "reads", spec.journal), READS))
    positions_journal = stack.enter_context(Journal(journal_path(spec.journals, "positions", spec.journal), POSITIONS))
    reads = ReadRecorder(reads_journal, spec.worker, Phase.LIVE, spec.life)
    positions = PositionRecorder(positions_journal, spec.worker, spec.life)
    stack.callback(positions.flush)
    stack.callback(reads.flush)
    caught_up = False

    def report(processed: float | None = None) -> Report:
        return Report(read=reads.read, owned=consuming.owned, processed=processed)

    def flush() -> Report:
        consuming.flush()
        return report()

    def finished(at_most_s: float) -> bool:
        nonlocal caught_up
        caught_up = consuming.caught_up()
        if not caught_up:
            consuming.step(at_most_s)
        return caught_up

    consuming = Consuming(spec, reads, positions, clock, processed=lambda part: tell(report(part)))
    last = run(commands, consuming.step, finished, flush)
    consuming.leave()
    last.behind = not caught_up
    last.note = "did not reach the end of the log in time" if last.behind else None
    return last
