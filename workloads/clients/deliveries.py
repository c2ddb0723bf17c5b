"""What becomes of the records that a producer was handed, whichever producer it is."""

from collections.abc import Callable
from typing import cast

from confluent_kafka import KafkaError, Message

from harness.core.clock import Clock
from harness.history.schema import record_id
from workloads.clients.payload import Encoder
from workloads.clients.send_recorder import Ints, SendRecorder

_PURGE_S = 0.05


class Deliveries:
    """The records of one worker that are under way, and the reports on them; ``collect`` records those."""

    def __init__(self, worker: int, record_size: int, recorder: SendRecorder, clock: Clock) -> None:
        self.waiting = 0
        self.encode = Encoder(record_size)
        self._first_id = record_id(worker, 0)
        self._recorder = recorder
        self._clock = clock
        self._good: list[Message] = []
        self._bad: list[tuple[KafkaError, Message]] = []

    def payloads(self, first: int, count: int) -> list[bytes]:
        """The values of ``count`` records from sequence ``first`` on, which are about to be handed over."""
        self.waiting += count
        return self.encode(self._first_id + first, count)

    def refused(self, sequence: int, error: KafkaError) -> None:
        """``produce()`` itself did not take a record."""
        self.waiting -= 1
        self._recorder.failed(sequence, error.name(), None, self._clock.now())

    def reported(self, error: KafkaError | None, message: Message) -> None:
        """A delivery report came: librdkafka's ``on_delivery``."""
        if error is None:
            self._good.append(message)
        else:
            self._bad.append((error, message))

    def collect(self) -> KafkaError | None:
        """Record every report that came; returns the first error among them."""
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
        """Give up what a dead producer has not delivered; whether nothing of it is under way any more."""
        purge()
        flush(_PURGE_S)
        self.collect()
        return not self.waiting

    def _sequences(self, messages: list[Message]) -> Ints:
        payloads = cast("list[bytes]", [message.value() for message in messages])
        return self.encode.ids(payloads) - self._first_id
