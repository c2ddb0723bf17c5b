"""The final read: every partition from the log start to the log end, once the faults are gone."""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from harness.core.clock import Clock
from harness.core.history import FINAL_READER, LOG_ENDS, READS, Phase
from harness.core.journal import Journal, journal_path
from workloads.client_settings import Isolation, final_reader_config
from workloads.recorder import ReadRecorder
from workloads.specs import Slot

LOGGER = logging.getLogger(__name__)
LOGGER.addHandler(logging.NullHandler())

_BATCH = 20_000
_WAIT_S = 0.2
_ASK_S = 3.0
_UNKNOWN = -1

#: After these a partition can still be read on; any other error of a partition ends its reading.
_PASSING = {
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError._RESOLVE,
    KafkaError._MAX_POLL_EXCEEDED,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.REPLICA_NOT_AVAILABLE,
    KafkaError.REQUEST_TIMED_OUT,
}


@dataclass
class Progress:
    """How far one partition is read. Offsets are -1 where no leader could be asked."""

    log_start: int = _UNKNOWN
    log_end: int = _UNKNOWN
    read_to: int = _UNKNOWN
    given_up: bool = False

    @property
    def known(self) -> bool:
        """Whether a leader told its log start and end."""
        return self.log_end != _UNKNOWN

    @property
    def complete(self) -> bool:
        """Whether all that the leader said there is was read."""
        return self.known and not self.given_up and self.read_to >= self.log_end

    def row(self, slot: Slot) -> dict[str, Any]:
        """Its row of the table log_ends."""
        return {
            "topic": slot[0],
            "partition": slot[1],
            "log_start": self.log_start,
            "log_end": self.log_end,
            "read_to": self.read_to,
            "complete": self.complete,
        }


def read_to_end(
    bootstrap: str,
    topics: Mapping[str, int],
    isolation_level: Isolation,
    journals: Path,
    clock: Clock,
    within: float,
    led: Callable[[Slot], bool] = lambda _: True,
    client: Callable[[dict[str, Any]], Consumer] = Consumer,
) -> list[dict[str, Any]]:
    """Read all partitions of ``topics`` (name: partitions) into the journals reads.1000 and log_ends.1000.

    The log end is asked afresh from the leader, before anything is read; with read_committed it is the last stable
    offset. ``within``: seconds for everything. ``led``: whether a partition has a leader, who is then asked until he
    answers; nobody is waited for where there is none.

    Returns the rows of log_ends. What could not be read to its end is not ``complete``: never an exception. A log_end
    of -1 says that no leader answered.
    """
    deadline = time.monotonic() + within
    progress: dict[Slot, Progress] = {(topic, p): Progress() for topic, count in topics.items() for p in range(count)}
    config = {**final_reader_config(bootstrap, isolation_level), "logger": LOGGER}
    with (
        Journal(journal_path(journals, "reads", str(FINAL_READER)), READS) as reads_journal,
        Journal(journal_path(journals, "log_ends", str(FINAL_READER)), LOG_ENDS) as ends_journal,
    ):
        consumer = client(config)
        try:
            recorder = ReadRecorder(reads_journal, FINAL_READER, Phase.FINAL)
            while time.monotonic() < deadline:
                _ask_log_ends(consumer, progress, deadline)
                read_on(consumer, progress, recorder, clock, deadline)
                if all(found.known or not led(slot) for slot, found in progress.items()):
                    break
                consumer.poll(_WAIT_S)
        finally:
            consumer.close()
        rows = [found.row(slot) for slot, found in progress.items()]
        ends_journal.append_rows(rows)
    return rows


def _ask_log_ends(consumer: Consumer, progress: dict[Slot, Progress], deadline: float) -> None:
    """Ask the leader of every partition that has not answered yet, once."""
    for slot, found in progress.items():
        left = deadline - time.monotonic()
        if found.known or left <= 0:
            continue
        try:
            answer = consumer.get_watermark_offsets(TopicPartition(*slot), timeout=min(_ASK_S, left), cached=False)
        except KafkaException as exc:
            # No leader yet: a matter of waiting, until it is one of the outcome.
            LOGGER.info("%s-%d: %s", *slot, exc)
            continue
        if answer is not None:
            found.log_start, found.log_end = answer
            found.read_to = found.log_start


def read_on(
    consumer: Consumer, progress: dict[Slot, Progress], recorder: ReadRecorder, clock: Clock, deadline: float
) -> None:
    """Read every partition whose log end is known, until it is reached."""
    pending = {slot for slot, found in progress.items() if found.known and not found.complete and not found.given_up}
    consumer.assign([TopicPartition(*slot, progress[slot].read_to) for slot in pending])
    while pending and time.monotonic() < deadline:
        messages = consumer.consume(_BATCH, timeout=_WAIT_S)
        records = [message for message in messages if message.error() is None]
        if records:
            recorder.delivered(records, clock.now())
            recorder.flush()
        last = cast("dict[Slot, int]", {(m.topic(), m.partition()): m.offset() for m in records})
        for slot, offset in last.items():
            progress[slot].read_to = offset + 1
        for message in messages:
            slot = cast("Slot", (message.topic(), message.partition()))
            if (error := message.error()) is None or slot not in progress:
                continue
            if error.code() == KafkaError._PARTITION_EOF:
                # Aborted records and markers are passed over without being delivered: this says so.
                progress[slot].read_to = max(progress[slot].read_to, message.offset() or 0)
            elif error.code() not in _PASSING:
                progress[slot].given_up = True
        pending -= {slot for slot in pending if progress[slot].complete or progress[slot].given_up}
