"""Tracks the records of a producer of any kind from hand-over to delivery report."""

from collections.abc import Callable
from typing import cast

from confluent_kafka import KafkaError, Message

from harness.core.clock import Clock
from harness.history.schema import record_id
from workloads.clients.payload import Encoder
from workloads.clients.send_recorder import Ints, SendRecorder

#: A choice: librdkafka reports purged records at once; if some are missing, the caller comes again.
_PURGE_S = 0.05


class Deliveries:
    """The records of one worker that are in flight, and their delivery reports; ``collect`` records the reports."""

    def __init__(self, worker: int, record_size: int, recorder: SendRecorder, clock: Clock) -> None:
        self.waiting = 0
        self.encode = Encoder(record_size)
        self._first_id = record_id(worker, 0)
        self._recorder = recorder
        self._clock = clock
        self._good: list[Message] = []
        self._bad: list[tuple[KafkaError, Message]] = []

    def payloads(self, first: int, count: int) -> list[bytes]:
        """The values of ``count`` records from sequence ``first`` on. They count as in flight from now on."""
        self.waiting += count
        return self.encode(self._first_id + first, count)

    def refused(self, sequence: int, error: KafkaError) -> None:
        """``produce()`` itself refused a record."""
        self.waiting -= 1
        self._recorder.failed(sequence, error.name(), None, self._clock.now())

    def reported(self, error: KafkaError | None, message: Message) -> None:
        """The ``on_delivery`` callback: a delivery report came."""
        if error is None:
            self._good.append(message)
        else:
            self._bad.append((error, message))

    def collect(self) -> KafkaError | None:
        """Record all reports since the last call; return the first error among them."""
        now = self._clock.now()
        good, self._good = self._good, []
        bad, self._bad = self._bad, []
        if good:
            self._recorder.delivered(self._sequences(good), [message.offset() for message in good], now)
        if bad:
            for sequence, (error, _) in zip(self._sequences([message for _, message in bad]), bad, strict=True):
                self._recorder.failed(int(sequence), error.name(), error.code(), now)
        self.waiting -= len(good) + len(bad)
        return bad[0][0] if bad else None

    def give_up(self, purge: Callable[[], object], flush: Callable[[float], object]) -> bool:
        """Give up the undelivered records of a dead producer; return whether none is in flight any more."""
        purge()
        flush(_PURGE_S)
        self.collect()
        return not self.waiting

    def _sequences(self, messages: list[Message]) -> Ints:
        payloads = cast("list[bytes]", [message.value() for message in messages])
        return self.encode.ids(payloads) - self._first_id
