"""The final read: after all heals, it reads every partition from the log start to the log end.

The log end is the end of the leader's log, not the high watermark: with acks=1 a leader acknowledges records above the
high watermark, and a follower in the ISR may be ``replica.lag.time.max.ms`` behind. A consumer reads only up to the
high watermark, so the final read waits until both are equal.
"""

import json
import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from harness.core.clock import Clock
from harness.core.topology import Partition
from harness.history.journal import Journal, journal_path
from harness.history.schema import FINAL_READER, LOG_ENDS, READS, Phase
from workloads.clients.recorder import ReadRecorder
from workloads.clients.settings import Config, Isolation, final_reader_config

LOGGER = logging.getLogger(__name__)
LOGGER.addHandler(logging.NullHandler())

#: A choice: larger batches cost fewer calls, and more memory.
_BATCH = 20_000
#: A choice: a batch that is not full, or a leader that did not answer, costs at most this time.
_WAIT_S = 0.2
#: Less than the time between two reports of the client: at least 0.1 s (``final_reader_config``).
_STATISTICS_WAIT_S = 0.05
#: Instead of an offset, or of a broker in librdkafka's statistics: none is known.
_UNKNOWN = -1

#: After these errors a partition can still be read; any other error of a partition ends its reading.
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
    """The ends of a log, as its leader reports them: the leader's broker id and ``endpoint``, and its epoch (None
    before 2.1).

    ``start``: the log start. ``readable``: how far a consumer receives records: to ``high``, the high watermark, or
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
        """Whether every record of the leader's log is committed."""
        return self.high >= self.end


#: Asks the leader of each partition again. It leaves out a partition whose leader is unknown or did not answer.
LogEnds = Callable[[Collection[Partition]], Mapping[Partition, LogEnd]]


@dataclass
class PartitionProgress:
    """How far one partition is read. Offsets are -1 if no leader answered."""

    log_start: int = _UNKNOWN
    log_end: int = _UNKNOWN
    read_to: int = _UNKNOWN
    given_up: bool = False

    @property
    def known(self) -> bool:
        """Whether a leader reported its log start and end."""
        return self.log_end != _UNKNOWN

    @property
    def complete(self) -> bool:
        """Whether the partition was read to the end that its leader reported."""
        return self.known and not self.given_up and self.read_to >= self.log_end

    @property
    def short(self) -> str:
        """How far an incomplete partition was read."""
        return f"was read to {self.read_to} of {self.log_end}" if self.known else "has no leader that answered"

    def row(self, tp: Partition) -> dict[str, Any]:
        """Its row of the table log_ends."""
        return {
            "topic": tp[0],
            "partition": tp[1],
            "log_start": self.log_start,
            "log_end": self.log_end,
            "read_to": self.read_to,
            "complete": self.complete,
        }


class FetchSources:
    """Which broker each partition is fetched from, from the statistics of a client (its ``stats_cb``)."""

    def __init__(self) -> None:
        self.reports = 0
        self._latest: dict[Partition, int] = {}
        self._served: dict[Partition, set[int]] = {}

    def __call__(self, statistics: str) -> None:
        for topic, fetched in json.loads(statistics)["topics"].items():
            for partition, state in fetched["partitions"].items():
                tp = (topic, int(partition))
                self._latest[tp] = state["broker"]
                if state["rxmsgs"]:
                    self._served.setdefault(tp, set()).add(state["broker"])
        self.reports += 1

    def of(self, tp: Partition) -> set[int]:
        """The brokers from which a partition was fetched: the last one, and those that had served records before. -1
        stands for none."""
        return self._served.get(tp, set()) | {self._latest.get(tp, -1)}

    def listen(self, consumer: Consumer, deadline: float) -> None:
        """Wait until the client has reported the broker of its last fetch."""
        # The next report may be older than the last fetch; the one after it is not.
        wanted = self.reports + 2
        while self.reports < wanted and time.monotonic() < deadline:
            consumer.poll(_STATISTICS_WAIT_S)


@dataclass(frozen=True)
class FinalReadResult:
    """The result of the final read: the ``rows`` of log_ends, a line for each log that was not read completely, and the
    settings of the client (empty if no leader answered)."""

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
    name: Callable[[int], str],
    led: Callable[[Partition], bool] = lambda _: True,
    client: Callable[[dict[str, Any]], Consumer] = Consumer,
) -> FinalReadResult:
    """Read all partitions of ``topics`` (name: partitions) into the journals reads.1000 and log_ends.1000.

    It asks ``ends`` before it reads a partition, then until the log is settled, and once more when all is read. A log
    is not complete if its leader or leader epoch has changed by then, or if a broker other than its leader served
    records. With read_committed the log end is the last stable offset. ``within``: seconds for everything. ``name``:
    the name of a broker by its id. ``led``: whether a partition has a leader: if so, the leader is asked until it
    answers; if not, the read does not wait for it.

    A partition that could not be read to its end is not ``complete``; this is never an exception. A log_end of -1 means
    that no leader answered.
    """
    deadline = time.monotonic() + within
    reading = _Reading(ends, [(topic, p) for topic, count in topics.items() for p in range(count)], name)
    config: Config = {}
    with (
        Journal(journal_path(journals, "reads", str(FINAL_READER)), READS) as reads_journal,
        Journal(journal_path(journals, "log_ends", str(FINAL_READER)), LOG_ENDS) as ends_journal,
    ):
        recorder = ReadRecorder(reads_journal, FINAL_READER, Phase.FINAL)
        reading.ask()
        while not reading.known and reading.awaits(led) and time.monotonic() < deadline:
            time.sleep(_WAIT_S)
            reading.ask()
        if reading.known:
            sources = FetchSources()
            config = final_reader_config(reading.bootstrap, isolation_level, len(reading.progress))
            try:
                with closing(client({**config, "logger": LOGGER, "stats_cb": sources})) as consumer:
                    while True:
                        read_on(consumer, reading.progress, recorder, clock, deadline)
                        sources.listen(consumer, deadline)
                        if not reading.awaits(led) or time.monotonic() >= deadline:
                            break
                        reading.ask()
                reading.verify(sources, deadline)
            except KafkaException as exc:
                reading.fail(exc)
        rows = [found.row(tp) for tp, found in reading.progress.items()]
        ends_journal.append_rows(rows)
    return FinalReadResult(rows, reading.missed(), config)


class _Reading:
    """The progress of each partition, and why a partition is not complete."""

    def __init__(self, ends: LogEnds, partitions: Iterable[Partition], name: Callable[[int], str]) -> None:
        self.progress = {tp: PartitionProgress() for tp in partitions}
        self.known: dict[Partition, LogEnd] = {}
        self._begun: dict[Partition, LogEnd] = {}
        self._ends = ends
        self._name = name
        self._why: dict[Partition, str] = {}

    @property
    def bootstrap(self) -> str:
        """``bootstrap.servers``: the leaders that answered."""
        return ",".join(sorted({end.endpoint for end in self.known.values()}))

    def awaits(self, led: Callable[[Partition], bool]) -> bool:
        """Whether some partition has a leader, but its log is not known to be settled."""
        return any(led(tp) for tp in self._unsettled())

    def ask(self) -> None:
        """Ask for the ends of logs that are not known yet or not settled."""
        for tp, end in self._ends(self._unsettled()).items():
            self.known[tp] = end
            found = self.progress[tp]
            if found.read_to > found.log_start:
                found.log_end = max(found.log_end, end.readable)
            else:
                self._begun[tp] = end
                self.progress[tp] = PartitionProgress(end.start, end.readable, end.start, found.given_up)

    def verify(self, sources: FetchSources, deadline: float) -> None:
        """Give up each partition that a broker other than its leader served, or whose leader has changed. One that
        never settled stays incomplete."""
        again = dict(self._ends(self.known.keys()))
        while (silent := self.known.keys() - again.keys()) and time.monotonic() < deadline:
            time.sleep(_WAIT_S)
            again |= self._ends(silent)
        for tp, last in self.known.items():
            # Compare with the leader at the time of the first read.
            begun, found, now = self._begun[tp], self.progress[tp], again.get(tp)
            if not last.settled:
                found.log_end = max(found.log_end, last.end)
            served = sources.of(tp) - {_UNKNOWN} if found.log_start < found.log_end else {begun.leader}
            if not last.settled and not found.complete:
                self._why[tp] = f"ends at {last.end}, and its high watermark stayed at {last.high}"
            elif served != {begun.leader}:
                others = ", ".join(map(self._name, sorted(served - {begun.leader}))) or "an unknown broker"
                self._give_up(tp, f"was read from {others}, and is led by {self._name(begun.leader)}")
            elif now is None:
                self._give_up(tp, f"was led by {self._name(begun.leader)}, which no longer answers")
            elif (now.leader, now.epoch) != (begun.leader, begun.epoch):
                self._give_up(tp, f"was led by {self._leader(begun)}, and is led by {self._leader(now)} by now")

    def fail(self, why: KafkaException) -> None:
        """Give up every partition: the client could not be created or failed, so nothing was verified."""
        for tp in self.known:
            self._give_up(tp, f"was not read: {why.args[0].str()}")

    def missed(self) -> list[str]:
        """A line for each log that was not read completely."""
        short = {tp: found for tp, found in self.progress.items() if not found.complete}
        return [f"{tp[0]}-{tp[1]} {self._why.get(tp) or found.short}" for tp, found in short.items()]

    def _unsettled(self) -> list[Partition]:
        return [tp for tp in self.progress if tp not in self.known or not self.known[tp].settled]

    def _give_up(self, tp: Partition, why: str) -> None:
        self.progress[tp].given_up = True
        self._why[tp] = why

    def _leader(self, end: LogEnd) -> str:
        name = self._name(end.leader)
        return name if end.epoch is None else f"{name} (epoch {end.epoch})"


def read_on(
    consumer: Consumer,
    progress: dict[Partition, PartitionProgress],
    recorder: ReadRecorder,
    clock: Clock,
    deadline: float,
) -> None:
    """Read every partition whose log end is known up to that end."""
    pending = {tp for tp, found in progress.items() if found.known and not found.complete and not found.given_up}
    consumer.assign([TopicPartition(*tp, progress[tp].read_to) for tp in pending])
    while pending and time.monotonic() < deadline:
        messages = consumer.consume(_BATCH, timeout=_WAIT_S)
        records = [message for message in messages if message.error() is None]
        if records:
            recorder.delivered(records, clock.now())
            recorder.flush()
        last = cast("dict[Partition, int]", {(m.topic(), m.partition()): m.offset() for m in records})
        for tp, offset in last.items():
            progress[tp].read_to = offset + 1
        for message in messages:
            tp = cast("Partition", (message.topic(), message.partition()))
            if (error := message.error()) is None or tp not in progress:
                continue
            if error.code() == KafkaError._PARTITION_EOF:
                # A consumer skips aborted records and markers without delivering them; this event shows the position
                # behind them.
                progress[tp].read_to = max(progress[tp].read_to, message.offset() or 0)
            elif error.code() not in _PASSING:
                progress[tp].given_up = True
        pending -= {tp for tp in pending if progress[tp].complete or progress[tp].given_up}
