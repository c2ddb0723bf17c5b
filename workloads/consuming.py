"""The consumer's side of a worker: read along, and record what was read and where the reader stood."""

import time
from collections.abc import Callable, Iterable
from typing import Any, cast

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
from workloads.recorder import PositionRecorder, ReadRecorder
from workloads.specs import ConsumerSpec, Slot

_BATCH = 5_000
_ASK_S = 2.0
#: So many steps it takes to process what a poll brought: a kill finds some of it done, and some not.
_PARTS = 10

#: The log no longer has the position (auto.offset.reset=error turns every such case into an error).
_POSITION_LOST = {KafkaError._AUTO_OFFSET_RESET, KafkaError._LOG_TRUNCATION, KafkaError.OFFSET_OUT_OF_RANGE}


class Consuming:
    """One consumer, of all its slots or as a member of a group.

    Where the log no longer has its position (it was truncated, or a new group has none) it goes on from the log start,
    and says so: a ``seek``. A member of a group commits after what it read is in the journal: after it was processed,
    for that is what its rows of ``reads`` say. Or before (``commits_first``): then nothing is processed until its
    commit was answered, and what was not is held back. ``processed`` is told how much of what a poll brought a
    member has processed, of 1, before it goes on: all that went before is in the journals then.
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
    ) -> None:
        self._reads = reads
        self._positions = positions
        self._clock = clock
        self._grouped = spec.grouped
        self._processing = spec.processing
        self._commits_first = spec.commits_first
        self._work = work
        self._processed = processed
        self._held: list[Message] = []
        self._next: dict[Slot, int] = {}
        self._to_commit: dict[Slot, int] = {}
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
            self._assign(dict.fromkeys(spec.slots, OFFSET_BEGINNING))

    def step(self, at_most_s: float) -> None:
        """Read what has come, waiting for it ``at_most_s`` seconds at most, and process it."""
        # Rebalances happen in here, and take from what is held.
        polled = self._consumer.consume(_BATCH, timeout=at_most_s)
        self._held += polled
        now = self._clock.now()
        records = [message for message in self._held if message.error() is None]
        ends = _ends(records)
        if ends and self._commits_first and not self._commit(ends):
            return
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

    def _commit(self, ends: dict[Slot, int]) -> bool:
        """Whether the group's place is known to be behind all that is held."""
        try:
            answered = self._consumer.commit(offsets=_places(ends), asynchronous=False)
        except KafkaException as exc:
            self._client_error(exc.args[0])
            return False
        self._committed(None, answered)
        return all(p.error is None for p in answered)

    def flush(self) -> None:
        """Write what was read; then, as a member of a group, commit it."""
        self._reads.flush()
        self._positions.flush()
        if self._to_commit:
            offsets = _places(self._to_commit)
            self._to_commit.clear()
            try:
                self._consumer.commit(offsets=offsets, asynchronous=True)
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
        return goal is not None and self._next[slot] >= goal

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

    def _assign(self, offsets: dict[Slot, int]) -> None:
        self._consumer.assign(_places(offsets))
        self._next = dict(offsets)
        self._placed = True
        self._tell("assign", offsets)

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        try:
            committed = consumer.committed(partitions, timeout=_ASK_S)
        except KafkaException:
            committed = [TopicPartition(p.topic, p.partition, OFFSET_STORED) for p in partitions]
        self._assign(
            {
                (p.topic, p.partition): p.offset if p.offset >= 0 or p.offset == OFFSET_STORED else OFFSET_BEGINNING
                for p in committed
            }
        )

    def _revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._give_up("revoke", partitions)

    def _lost(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._give_up("lost", partitions)

    def _give_up(self, event: str, partitions: list[TopicPartition]) -> None:
        gone = [(p.topic, p.partition) for p in partitions]
        self._placed = False
        self._tell(event, {slot: self._next.pop(slot, OFFSET_BEGINNING) for slot in gone})
        for slot in gone:
            self._to_commit.pop(slot, None)
        self._held = [message for message in self._held if (message.topic(), message.partition()) not in gone]

    def _error(self, error: KafkaError, topic: str, partition: int, offset: int | None, now: int) -> None:
        slot = (topic, partition)
        if error.code() == KafkaError._PARTITION_EOF:
            self._positions.happened("end-of-partition", topic, partition, now, offset)
            if slot in self._next and offset is not None:
                # Of the same poll, records may have come after it.
                self._next[slot] = max(self._next[slot], offset)
            return
        self._positions.happened("error", topic, partition, now, offset, error.name())
        if error.code() in _POSITION_LOST and slot in self._next:
            # librdkafka has stopped fetching it and refuses to seek: assign anew, the others from where they stand.
            self._next[slot] = OFFSET_BEGINNING
            self._consumer.assign(_places(self._next))
            self._tell("seek", {slot: OFFSET_BEGINNING})

    def _client_error(self, error: KafkaError) -> None:
        self._positions.happened("error", "", -1, self._clock.now(), error=error.name())

    def _committed(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        for p in partitions:
            failed = error or p.error
            name = None if failed is None else failed.name()
            self._positions.happened("commit", p.topic, p.partition, self._clock.now(), p.offset, name)

    def _tell(self, event: str, offsets: dict[Slot, int]) -> None:
        now = self._clock.now()
        for (topic, partition), offset in offsets.items():
            self._positions.happened(event, topic, partition, now, offset)


def _ends(records: Iterable[Message]) -> dict[Slot, int]:
    """Behind the last of ``records`` in each partition."""
    last = cast("dict[Slot, int]", {(m.topic(), m.partition()): m.offset() for m in records})
    return {slot: offset + 1 for slot, offset in last.items()}


def _places(offsets: dict[Slot, int]) -> list[TopicPartition]:
    return [TopicPartition(*slot, offset) for slot, offset in offsets.items()]


def _partition_of(message: Message) -> int:
    partition = message.partition()
    return -1 if partition is None else partition
