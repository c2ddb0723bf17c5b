"""The producer's side of a worker: hand records over at a pace, and tell the recorder what became of each."""

from collections.abc import Callable
from typing import cast

import numpy as np
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from harness.core.clock import Clock
from harness.core.history import record_id
from workloads.client_settings import MOST_WAITING_BYTES, Config
from workloads.keys import key_names, slots_of_keys
from workloads.pace import Pace
from workloads.payload import Encoder
from workloads.recorder import Ints, SendRecorder
from workloads.specs import ProducerSpec

_CHUNK = 500
_CHUNK_BYTES = 1024 * 1024
_FULL_QUEUE_WAIT_S = 0.05


class Producing:
    """One producer. The partition of every record is chosen here: in turn, or by the hash of its key.

    A producer that librdkafka declares dead (a fatal error) is replaced: the next ``incarnation``.
    """

    def __init__(
        self, spec: ProducerSpec, recorder: SendRecorder, clock: Clock, client: Callable[[Config], Producer] = Producer
    ) -> None:
        self._spec = spec
        self._recorder = recorder
        self._clock = clock
        self._client = client
        self._producer = client(spec.config)
        self._incarnation = 0
        self._dead = False
        self._encode = Encoder(spec.record_size)
        self._chunk = max(1, min(_CHUNK, _CHUNK_BYTES // spec.record_size))
        self._most_waiting = max(1, min(spec.most_waiting, MOST_WAITING_BYTES // spec.record_size))
        self._pace = Pace(spec.rate, clock.now())
        self._random = np.random.default_rng([spec.seed, spec.worker])
        self._keys = [key.encode() for key in key_names(spec.keys or 0)]
        self._slot_of_key = slots_of_keys(spec.keys or 0, len(spec.slots))
        self._next = 0
        self._waiting = 0
        self._good: list[Message] = []
        self._bad: list[tuple[KafkaError, Message]] = []

    @property
    def waiting(self) -> int:
        """Records handed over whose delivery report has not come yet."""
        return self._waiting

    def step(self, at_most_s: float) -> None:
        """Hand over what is due, else wait for delivery reports until something is, ``at_most_s`` seconds at most."""
        room = min(self._chunk, self._most_waiting - self._waiting)
        now = self._clock.now()
        if room <= 0:
            self._serve(at_most_s)
        elif count := self._pace.due(now, room):
            self._hand_over(count, now)
            self._serve(0)
        else:
            self._serve(min(at_most_s, max(0.001, self._pace.wait_ns(now) / 1e9)))

    def drain(self, at_most_s: float) -> None:
        """Hand nothing over; wait for delivery reports."""
        self._let(self._producer.flush, at_most_s)
        self._collect()

    def _hand_over(self, count: int, now: int) -> None:
        first = self._next
        self._next += count
        payloads = self._encode(record_id(self._spec.worker, first), count)
        key: Ints | None = None
        if self._keys:
            key = self._random.integers(0, len(self._keys), count)
            slot = self._slot_of_key[key]
        else:
            slot = np.arange(first, first + count) % len(self._spec.slots)
        self._recorder.invoked(first, slot, key, now, self._incarnation)
        self._waiting += count
        for chosen in np.unique(slot):
            rows = np.nonzero(slot == chosen)[0].tolist()
            messages: list[dict[str, object]] = [{"value": payloads[row], "sequence": first + row} for row in rows]
            if key is not None:
                for message, which in zip(messages, key[rows].tolist(), strict=True):
                    message["key"] = self._keys[which]
            topic, partition = self._spec.slots[chosen]
            self._hand_to(topic, partition, messages)

    def _hand_to(self, topic: str, partition: int, messages: list[dict[str, object]]) -> None:
        """A full queue is back-pressure: wait, and hand the rest over again, before anything that comes after it."""
        while True:
            taken = self._producer.produce_batch(topic, messages, partition=partition, on_delivery=self._delivered)
            if taken == len(messages):
                return
            left = []
            for message in messages:
                error = message.pop("_error", None)
                if not isinstance(error, KafkaError):
                    continue
                if error.code() == KafkaError._QUEUE_FULL:
                    left.append(message)
                else:
                    self._refused(message, error)
            if not left:
                return
            messages = left
            self._let(self._producer.poll, _FULL_QUEUE_WAIT_S)

    def _refused(self, message: dict[str, object], error: KafkaError) -> None:
        sequence = message["sequence"]
        assert isinstance(sequence, int)
        self._waiting -= 1
        self._recorder.failed(sequence, error.name(), None, self._clock.now())
        self._dead = self._dead or error.code() == KafkaError._FATAL

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self._good.append(message)
        else:
            self._bad.append((error, message))

    def _serve(self, within_s: float) -> None:
        self._let(self._producer.poll, within_s)
        self._collect()
        if self._dead:
            self._replace()

    def _let(self, serve: Callable[[float], int], within_s: float) -> None:
        """Let librdkafka deliver its reports; it tells of a fatal error by raising it here, once.

        An idempotent producer that finds its acknowledged sequence numbers gone dies so (OUT_OF_ORDER_SEQUENCE_NUMBER).
        """
        try:
            serve(within_s)
        except KafkaException as exc:
            if not exc.args[0].fatal():
                raise
            self._dead = True

    def _collect(self) -> None:
        now = self._clock.now()
        if good := self._good:
            sequences = self._sequences(good)
            self._recorder.delivered(sequences, [message.offset() for message in good], now)
            self._waiting -= len(good)
            good.clear()
        if bad := self._bad:
            for sequence, (error, _) in zip(self._sequences([message for _, message in bad]), bad, strict=True):
                self._recorder.failed(int(sequence), error.name(), error.code(), now)
            self._waiting -= len(bad)
            bad.clear()

    def _sequences(self, messages: list[Message]) -> Ints:
        payloads = cast("list[bytes]", [message.value() for message in messages])
        return self._encode.ids(payloads) - record_id(self._spec.worker, 0)

    def _replace(self) -> None:
        self._producer.purge()
        self._let(self._producer.flush, _FULL_QUEUE_WAIT_S)
        self._collect()
        if not self._waiting:
            self._producer = self._client(self._spec.config)
            self._incarnation += 1
            self._dead = False
