"""A worker's consumer: it reads, and records what it read and the reader's positions."""

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
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
from harness.core.topology import Partition
from harness.history.journal import Journal, journal_path
from harness.history.schema import POSITIONS, READS, Phase, PositionEvent
from workloads.clients.positions import Position, behind, first_position, number_of, partition_of, topic_partitions
from workloads.clients.recorder import PositionRecorder, ReadRecorder
from workloads.clients.specs import ConsumerSpec
from workloads.loop import Commands, run, send_report
from workloads.protocol import Report

#: A choice: larger batches cost fewer calls, but the loop does nothing else until one is journalled.
_BATCH = 5_000
#: A choice: the worker does nothing else while it waits for the answer of a broker that may be down.
_ASK_S = 2.0
#: Seconds without an answer after which a commit is sent again.
_COMMIT_S = 10.0
#: The records of one poll are processed in this many parts, so that a kill finds some processed, and some not.
_PARTS = 10

#: Events that say where a reader begins.
_BEGINS = {PositionEvent.ASSIGN, PositionEvent.SEEK}

#: The log no longer has the position (auto.offset.reset=error turns every such case into an error).
_POSITION_LOST = {KafkaError._AUTO_OFFSET_RESET, KafkaError._LOG_TRUNCATION, KafkaError.OFFSET_OUT_OF_RANGE}


class Consuming:
    """One consumer, of all partitions or as a member of a group.

    If the log no longer has the reader's position (it was truncated, or a new group has none), the reader goes on from
    the log start, and records a ``seek``. A row of ``reads`` means that a member has processed the record. A member
    commits after these rows are in the journal, or with ``commits_first`` before: then it holds the records back until
    the commit is answered. Each commit is journalled before it is sent, as ``committing``. ``processed`` is called
    before each part with the share of the poll's records that is processed, 0 to 1; the rows of these are in the
    journals then.
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
        # A thread, because librdkafka's synchronous commit has no time limit.
        self._commits = ThreadPoolExecutor(1, "commit")
        self._held: list[Message] = []
        self._next: dict[Partition, Position] = {}
        self._to_commit: dict[Partition, Position] = {}
        self._goals: dict[Partition, int | None] = {}
        self._assignment_known = False
        callbacks = {} if spec.commits_first else {"on_commit": self._committed}
        self._consumer = client({**spec.config, "error_cb": self._client_error, **callbacks})
        if spec.grouped:
            self._consumer.subscribe(
                sorted({topic for topic, _ in spec.partitions}),
                on_assign=self._assigned,
                on_revoke=self._revoked,
                on_lost=self._lost,
            )
        else:
            self._assign(dict.fromkeys(spec.partitions, Position(OFFSET_BEGINNING)))

    def step(self, at_most_s: float) -> None:
        """Read the records that have arrived, wait at most ``at_most_s`` seconds for the first, and process them."""
        self._poll(at_most_s)
        now = self._clock.now()
        records = [message for message in self._held if message.error() is None]
        ends = behind(records)
        if ends and self._commits_first and not self._commit(ends):
            return
        # There is no poll between the answer and this, so no rebalance takes away committed records before they are
        # processed.
        messages, self._held = self._held, []
        if records:
            self._process(records, now)
            self._next |= ends
            if self._grouped and not self._commits_first:
                self._to_commit |= ends
        for message in messages:
            if (error := message.error()) is not None:
                self._error(error, message.topic() or "", number_of(message), message.offset(), now)
        if self._processing is not None:
            self.flush()

    def _poll(self, at_most_s: float) -> None:
        """Wait for one message only, then take all that are there: a record's time is its arrival, not that of a full
        batch."""
        # A rebalance happens in either call, and removes messages from those held: the first is held before the second
        # call.
        first = self._consumer.poll(at_most_s)
        if first is None:
            return
        self._held.append(first)
        more = self._consumer.consume(_BATCH - 1, timeout=0)
        self._held += [
            message for message in more if message.error() is not None or partition_of(message) in self._next
        ]

    def _commit(self, ends: Mapping[Partition, Position]) -> bool:
        """Commit ``ends`` and wait for the answer, within a limit; return whether the commit succeeded for all
        partitions."""
        self._announce(ends)
        asked = self._commits.submit(self._consumer.commit, offsets=topic_partitions(ends), asynchronous=False)
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

    def _announce(self, ends: Mapping[Partition, Position]) -> None:
        """Journal a commit before it is sent."""
        self._record(PositionEvent.COMMITTING, ends)
        self._positions.flush()

    def _process(self, records: list[Message], now: int) -> None:
        """Journal ``records``. If processing takes time, each part is journalled as if it were a poll of its own."""
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
        """Write the positions and the records read; then, as a member of a group, commit."""
        self._positions.flush()
        self._reads.flush()
        if self._to_commit:
            ends = dict(self._to_commit)
            self._to_commit.clear()
            self._announce(ends)
            try:
                self._consumer.commit(offsets=topic_partitions(ends), asynchronous=True)
            except KafkaException as exc:
                self._client_error(exc.args[0])

    @property
    def owned(self) -> int:
        """The number of partitions assigned to it; 0 while its group rebalances."""
        return len(self._next) if self._assignment_known else 0

    def caught_up(self) -> bool:
        """Whether it has read each of its partitions up to the log end at the first call of this method.

        False for a member of a group that has no assignment (yet, or since a rebalance).
        """
        for tp in self._next:
            if self._goals.get(tp) is None:
                self._goals[tp] = self._log_end(tp)
        return self._assignment_known and all(self._reached(tp) for tp in self._next)

    def _reached(self, tp: Partition) -> bool:
        goal = self._goals[tp]
        return goal is not None and self._next[tp].offset >= goal

    def leave(self) -> None:
        """Leave the group, if it is in one, so that the others need not wait until its session expires. Waits for
        brokers."""
        if self._grouped:
            self.flush()
            self._consumer.close()

    def _log_end(self, tp: Partition) -> int | None:
        watermarks = self._watermarks(tp, _ASK_S)
        return None if watermarks is None else watermarks[1]

    def _watermarks(self, tp: Partition, within: float) -> tuple[int, int] | None:
        try:
            return self._consumer.get_watermark_offsets(TopicPartition(*tp), timeout=within, cached=False)
        except KafkaException:
            return None

    def _assign(self, positions: dict[Partition, Position]) -> None:
        self._consumer.assign(topic_partitions(positions))
        self._next = dict(positions)
        self._assignment_known = True
        self._record(PositionEvent.ASSIGN, positions)

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        try:
            committed = consumer.committed(partitions, timeout=_ASK_S)
        except KafkaException:
            committed = [TopicPartition(p.topic, p.partition, OFFSET_STORED) for p in partitions]
        self._assign({(p.topic, p.partition): first_position(p) for p in committed})

    def _revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._give_up(PositionEvent.REVOKE, partitions)

    def _lost(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._give_up(PositionEvent.LOST, partitions)

    def _give_up(self, event: PositionEvent, partitions: list[TopicPartition]) -> None:
        gone = [(p.topic, p.partition) for p in partitions]
        self._assignment_known = False
        self._record(event, {tp: self._next.pop(tp, Position(OFFSET_BEGINNING)) for tp in gone})
        for tp in gone:
            self._to_commit.pop(tp, None)
        self._held = [message for message in self._held if partition_of(message) not in gone]

    def _error(self, error: KafkaError, topic: str, partition: int, offset: int | None, now: int) -> None:
        tp = (topic, partition)
        if error.code() == KafkaError._PARTITION_EOF:
            self._positions.happened(PositionEvent.END_OF_PARTITION, topic, partition, now, offset)
            # Records of the same poll may come after this event. If its offset is behind all records, markers are in
            # between.
            if tp in self._next and offset is not None and offset > self._next[tp].offset:
                self._next[tp] = Position(offset)
            return
        self._positions.happened(PositionEvent.ERROR, topic, partition, now, offset, error.name())
        if error.code() in _POSITION_LOST and tp in self._next:
            # librdkafka has stopped fetching the partition and refuses to seek: assign all again, the others at their
            # positions.
            self._to_commit.pop(tp, None)
            self._next[tp] = Position(OFFSET_BEGINNING)
            self._consumer.assign(topic_partitions(self._next))
            self._record(PositionEvent.SEEK, {tp: self._next[tp]})

    def _client_error(self, error: KafkaError) -> None:
        self._positions.happened(PositionEvent.ERROR, "", -1, self._clock.now(), error=error.name())

    def _committed(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        for p in partitions:
            failed = error or p.error
            name = None if failed is None else failed.name()
            self._positions.happened(PositionEvent.COMMIT, p.topic, p.partition, self._clock.now(), p.offset, name)

    def _record(self, event: PositionEvent, positions: Mapping[Partition, Position]) -> None:
        now = self._clock.now()
        begins = positions.items() if event in _BEGINS else ()
        starts = self._log_starts(tp for tp, position in begins if position.offset == OFFSET_BEGINNING)
        for tp, position in positions.items():
            self._positions.happened(event, *tp, now, starts.get(tp, position.offset))

    def _log_starts(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The log starts of these partitions, as far as brokers answer within ``_ASK_S``."""
        found, deadline = {}, time.monotonic() + _ASK_S
        for tp in partitions:
            left = deadline - time.monotonic()
            marks = self._watermarks(tp, left) if left > 0 else None
            if marks is not None:
                found[tp] = marks[0]
        return found


def consume(spec: ConsumerSpec, commands: Commands, stack: ExitStack) -> Report:
    """Read until asked to finish, then read up to the log ends at that moment."""
    clock = Clock(spec.origin_ns)
    reads_journal = stack.enter_context(Journal(journal_path(spec.journals, "reads", spec.journal), READS))
    positions_journal = stack.enter_context(Journal(journal_path(spec.journals, "positions", spec.journal), POSITIONS))
    reads = ReadRecorder(reads_journal, spec.worker, Phase.LIVE, spec.process)
    positions = PositionRecorder(positions_journal, spec.worker, spec.process)
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

    consuming = Consuming(spec, reads, positions, clock, processed=lambda part: send_report(report(part)))
    last = run(commands, consuming.step, finished, flush)
    consuming.leave()
    last.behind = not caught_up
    last.note = "did not reach the end of the log in time" if last.behind else None
    return last
