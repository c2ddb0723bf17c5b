"""The final read: every partition from the log start to the log end, once the faults are gone.

The end is where the leader's log ends, not the high watermark: with acks=1 a leader acknowledges above that, and a
follower in the ISR may be ``replica.lag.time.max.ms`` behind. A consumer reads up to the high watermark; so the read
waits until both agree.
"""

import json
import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from confluent_kafka import Consumer, KafkaError, TopicPartition

from harness.core.clock import Clock
from harness.history.journal import Journal, journal_path
from harness.history.schema import FINAL_READER, LOG_ENDS, READS, Phase
from workloads.clients.recorder import ReadRecorder
from workloads.clients.settings import Config, Isolation, final_reader_config
from workloads.protocol import Slot

LOGGER = logging.getLogger(__name__)
LOGGER.addHandler(logging.NullHandler())

_BATCH = 20_000
_WAIT_S = 0.2
_STATISTICS_WAIT_S = 0.05
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


@dataclass(frozen=True)
class LogEnd:
    """Where a log ends, as its leader tells it: a broker id, its ``endpoint``, and the leader epoch (None before 2.1).

    ``start``: the log start. ``readable``: how far a consumer is given records: to ``high``, the high watermark, or
    with read_committed to the last stable offset. ``end``: the end of the leader's log.
    """

    leader: int
    endpoint: str
    epoch: int | None
    start: int
    readable: int
    high: int
    end: int

    @property
    def settled(self) -> bool:
        """Whether all that the leader has is committed."""
        return self.high >= self.end


#: Asks the leader of each of some partitions afresh; those are left out of which nobody that prevails as leader told.
LogEnds = Callable[[Collection[Slot]], Mapping[Slot, LogEnd]]


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

    @property
    def short(self) -> str:
        """How far it was read, where that is not all."""
        return f"was read to {self.read_to} of {self.log_end}" if self.known else "has no leader that answered"

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


class Sources:
    """Which broker each partition is fetched from, told by the statistics of a client (its ``stats_cb``)."""

    def __init__(self) -> None:
        self.told = 0
        self._latest: dict[Slot, int] = {}
        self._gave: dict[Slot, set[int]] = {}

    def __call__(self, statistics: str) -> None:
        for topic, told in json.loads(statistics)["topics"].items():
            for partition, state in told["partitions"].items():
                slot = (topic, int(partition))
                self._latest[slot] = state["broker"]
                if state["rxmsgs"]:
                    self._gave.setdefault(slot, set()).add(state["broker"])
        self.told += 1

    def of(self, slot: Slot) -> set[int]:
        """The brokers that a partition was fetched from: the last, and those that had given records before. Of a
        partition that was not fetched there is none, or -1."""
        return self._gave.get(slot, set()) | {self._latest.get(slot, -1)}

    def listen(self, consumer: Consumer, deadline: float) -> None:
        """Wait until the client has told where it fetched from last."""
        # What waits to be told was found out before the last fetch, maybe; the next was not.
        wanted = self.told + 2
        while self.told < wanted and time.monotonic() < deadline:
            consumer.poll(_STATISTICS_WAIT_S)


@dataclass(frozen=True)
class FinalRead:
    """What the final read came to: the ``rows`` of log_ends, a line for each log that was not read whole, and the
    settings that its client was given (none where no leader answered)."""

    rows: list[dict[str, Any]]
    missed: list[str]
    config: Config


def read_to_end(
    ends: LogEnds,
    topics: Mapping[str, int],
    isolation_level: Isolation,
    journals: Path,
    clock: Clock,
    within: float,
    led: Callable[[Slot], bool] = lambda _: True,
    client: Callable[[dict[str, Any]], Consumer] = Consumer,
) -> FinalRead:
    """Read all partitions of ``topics`` (name: partitions) into the journals reads.1000 and log_ends.1000.

    ``ends`` is asked before anything is read of a partition and until its log is settled, and once more when all is
    read: a log that another leads then, or in another epoch, or of which another than its leader gave records, is not
    complete. With read_committed the log end is the last stable offset. ``within``: seconds for everything. ``led``:
    whether a partition has a leader, who is then asked until he answers; nobody is waited for where there is none.

    What could not be read to its end is not ``complete``: never an exception. A log_end of -1 says that no leader
    answered.
    """
    deadline = time.monotonic() + within
    reading = _Reading(ends, [(topic, p) for topic, count in topics.items() for p in range(count)])
    config: Config = {}
    with (
        Journal(journal_path(journals, "reads", str(FINAL_READER)), READS) as reads_journal,
        Journal(journal_path(journals, "log_ends", str(FINAL_READER)), LOG_ENDS) as ends_journal,
    ):
        recorder = ReadRecorder(reads_journal, FINAL_READER, Phase.FINAL)
        reading.ask()
        while not reading.told and reading.awaits(led) and time.monotonic() < deadline:
            time.sleep(_WAIT_S)
            reading.ask()
        if reading.told:
            sources = Sources()
            config = final_reader_config(reading.bootstrap, isolation_level, len(reading.progress))
            consumer = client({**config, "logger": LOGGER, "stats_cb": sources})
            try:
                while True:
                    read_on(consumer, reading.progress, recorder, clock, deadline)
                    sources.listen(consumer, deadline)
                    if not reading.awaits(led) or time.monotonic() >= deadline:
                        break
                    reading.ask()
            finally:
                consumer.close()
            reading.verify(sources, deadline)
        rows = [found.row(slot) for slot, found in reading.progress.items()]
        ends_journal.append_rows(rows)
    return FinalRead(rows, reading.missed(), config)


class _Reading:
    """How far each partition is known and read, and what keeps it from being whole."""

    def __init__(self, ends: LogEnds, slots: Iterable[Slot]) -> None:
        self.progress = {slot: Progress() for slot in slots}
        self.told: dict[Slot, LogEnd] = {}
        self._begun: dict[Slot, LogEnd] = {}
        self._ends = ends
        self._why: dict[Slot, str] = {}

    @property
    def bootstrap(self) -> str:
        """``bootstrap.servers``: the leaders that answered. Whoever was deposed tells of itself alone."""
        return ",".join(sorted({end.endpoint for end in self.told.values()}))

    def awaits(self, led: Callable[[Slot], bool]) -> bool:
        """Whether there is a partition that has a leader, and whose log is not known to be settled."""
        return any(led(slot) for slot in self._unsettled())

    def ask(self) -> None:
        """Ask for the ends that are not known yet, or not settled: those are read as far as they can be."""
        for slot, end in self._ends(self._unsettled()).items():
            self.told[slot] = end
            found = self.progress[slot]
            if found.read_to > found.log_start:
                found.log_end = max(found.log_end, end.readable)
            else:
                self._begun[slot] = end
                self.progress[slot] = Progress(end.start, end.readable, end.start, found.given_up)

    def verify(self, sources: Sources, deadline: float) -> None:
        """Give up what another than the leader gave records of, what another led since, and what never settled."""
        again = dict(self._ends(self.told.keys()))
        while (silent := self.told.keys() - again.keys()) and time.monotonic() < deadline:
            time.sleep(_WAIT_S)
            again |= self._ends(silent)
        for slot, last in self.told.items():
            # What was read first came from the log of the leader then.
            told, found, now = self._begun[slot], self.progress[slot], again.get(slot)
            if not last.settled:
                found.log_end = max(found.log_end, last.end)
            gave = sources.of(slot) - {_UNKNOWN} if found.log_start < found.log_end else {told.leader}
            if not last.settled and not found.complete:
                self._why[slot] = f"ends at {last.end}, and its high watermark stayed at {last.high}"
            elif gave != {told.leader}:
                others = ", ".join(str(broker) for broker in sorted(gave - {told.leader})) or "unknown"
                self._give_up(slot, f"was read from broker {others}, and is led by broker {told.leader}")
            elif now is None:
                self._give_up(slot, f"was led by broker {told.leader}, which answers no more")
            elif (now.leader, now.epoch) != (told.leader, told.epoch):
                self._give_up(slot, f"was led by {_leader(told)}, and is led by {_leader(now)} by now")

    def missed(self) -> list[str]:
        """A line for each log that was not read whole."""
        short = {slot: found for slot, found in self.progress.items() if not found.complete}
        return [f"{slot[0]}-{slot[1]} {self._why.get(slot) or found.short}" for slot, found in short.items()]

    def _unsettled(self) -> list[Slot]:
        return [slot for slot in self.progress if slot not in self.told or not self.told[slot].settled]

    def _give_up(self, slot: Slot, why: str) -> None:
        self.progress[slot].given_up = True
        self._why[slot] = why


def _leader(told: LogEnd) -> str:
    return f"broker {told.leader}" if told.epoch is None else f"broker {told.leader} (epoch {told.epoch})"


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
