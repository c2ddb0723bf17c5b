"""A worker's producer: it hands records over at a steady rate, and has the outcome of each one recorded."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import numpy as np
from confluent_kafka import KafkaError, KafkaException, Producer

from harness.core.clock import SECOND_NS, Clock
from harness.history.journal import Journal, journal_path
from harness.history.schema import SENDS
from workloads.clients.deliveries import Deliveries
from workloads.clients.keys import key_names, partitions_of_keys
from workloads.clients.pace import Pace
from workloads.clients.send_recorder import Ints, SendRecorder
from workloads.clients.settings import MOST_AT_ONCE, MOST_WAITING_BYTES, Config
from workloads.clients.specs import ProducerSpec
from workloads.loop import Commands, run
from workloads.protocol import Report

#: The most bytes of records that are handed over together. A choice, as of their number.
_CHUNK_BYTES = 1024 * 1024
#: A choice: the queue has room again as soon as brokers answer, and the call returns with the first report.
_FULL_QUEUE_WAIT_S = 0.05


class Producing:
    """One producer. It chooses the partition of every record itself: in turn, or by the hash of the key.

    If librdkafka declares the producer dead (a fatal error), a new one replaces it, with the next ``incarnation``.
    """

    def __init__(
        self, spec: ProducerSpec, recorder: SendRecorder, clock: Clock, client: Callable[[Config], Producer] = Producer
    ) -> None:
        self._spec = spec
        self._recorder = recorder
        self._clock = clock
        self._client = client
        self._producer = client(spec.config)
        self._incarnation = spec.first_incarnation
        self._dead = False
        self._deliveries = Deliveries(spec.worker, spec.record_size, recorder, clock)
        self._chunk = max(1, min(MOST_AT_ONCE, _CHUNK_BYTES // spec.record_size))
        self._most_waiting = max(1, min(spec.most_waiting, MOST_WAITING_BYTES // spec.record_size))
        self._pace = Pace(spec.rate, clock.now())
        self._random = np.random.default_rng([spec.seed, spec.worker])
        self._keys = [key.encode() for key in key_names(spec.keys or 0)]
        self._partition_of_key = partitions_of_keys(spec.keys or 0, len(spec.partitions))
        self._next = spec.first

    @property
    def waiting(self) -> int:
        """The number of records in flight: their delivery reports have not come yet."""
        return self._deliveries.waiting

    def step(self, at_most_s: float) -> None:
        """Hand over the records that are due. If none is due, wait for delivery reports until one is, at most
        ``at_most_s`` seconds."""
        room = min(self._chunk, self._most_waiting - self.waiting)
        now = self._clock.now()
        if room <= 0:
            self._serve(at_most_s)
        elif count := self._pace.due(now, room):
            self._hand_over(count, now)
            self._serve(0)
        else:
            self._serve(min(at_most_s, max(0.001, self._pace.wait_ns(now) / SECOND_NS)))

    def drain(self, at_most_s: float) -> None:
        """Wait for delivery reports, and hand nothing over."""
        self._serve_reports(self._producer.flush, at_most_s)
        self._deliveries.collect()

    def _hand_over(self, count: int, now: int) -> None:
        first = self._next
        self._next += count
        payloads = self._deliveries.payloads(first, count)
        key: Ints | None = None
        if self._keys:
            key = self._random.integers(0, len(self._keys), count)
            index = self._partition_of_key[key]
        else:
            index = np.arange(first, first + count) % len(self._spec.partitions)
        self._recorder.invoked(first, index, key, now, self._incarnation)
        for chosen in np.unique(index):
            rows = np.nonzero(index == chosen)[0].tolist()
            messages: list[dict[str, object]] = [{"value": payloads[row], "sequence": first + row} for row in rows]
            if key is not None:
                for message, which in zip(messages, key[rows].tolist(), strict=True):
                    message["key"] = self._keys[which]
            topic, partition = self._spec.partitions[chosen]
            self._hand_to(topic, partition, messages)

    def _hand_to(self, topic: str, partition: int, messages: list[dict[str, object]]) -> None:
        """Hand over messages for one partition. A full queue is back-pressure: wait, then hand the rest over, before
        any later record."""
        reported = self._deliveries.reported
        while True:
            taken = self._producer.produce_batch(topic, messages, partition=partition, on_delivery=reported)
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
            self._serve_reports(self._producer.poll, _FULL_QUEUE_WAIT_S)

    def _refused(self, message: dict[str, object], error: KafkaError) -> None:
        sequence = message["sequence"]
        assert isinstance(sequence, int)
        self._deliveries.refused(sequence, error)
        self._dead = self._dead or error.code() == KafkaError._FATAL

    def _serve(self, within_s: float) -> None:
        self._serve_reports(self._producer.poll, within_s)
        self._deliveries.collect()
        if self._dead:
            self._replace()

    def _serve_reports(self, serve: Callable[[float], int], within_s: float) -> None:
        """Let librdkafka deliver its reports. It raises a fatal error here, once.

        An idempotent producer gets one if the log has lost its acknowledged sequence numbers
        (OUT_OF_ORDER_SEQUENCE_NUMBER).
        """
        try:
            serve(within_s)
        except KafkaException as exc:
            if not exc.args[0].fatal():
                raise
            self._dead = True

    def _replace(self) -> None:
        if self._deliveries.give_up(self._producer.purge, partial(self._serve_reports, self._producer.flush)):
            self._producer = self._client(self._spec.config)
            self._incarnation += 1
            self._dead = False


def produce(spec: ProducerSpec, commands: Commands, stack: ExitStack) -> Report:
    """Produce until asked to finish; the last report says how many records were still in flight."""
    clock = Clock(spec.origin_ns)
    journal = stack.enter_context(Journal(journal_path(spec.journals, "sends", spec.journal), SENDS))
    recorder = SendRecorder(journal, spec.worker, spec.acks, spec.partitions, key_names(spec.keys or 0))
    stack.callback(recorder.flush)
    producing = Producing(spec, recorder, clock)

    def flush() -> Report:
        recorder.flush()
        return Report(**vars(recorder.tally))

    def finished(at_most_s: float) -> bool:
        producing.drain(at_most_s)
        return not producing.waiting

    report = run(commands, producing.step, finished, flush)
    left = recorder.still_open()
    report.indeterminate += left
    report.note = f"{left} records still in flight" if left else None
    return report
