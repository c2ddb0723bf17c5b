"""The read of the replicas: it reads each in-sync follower's own log, up to the end that the final read found.

A consumer in the follower's rack reads from the follower (KIP-392), and each broker is a rack of its own. If the leader
knows no in-sync follower in that rack, the leader serves the records itself. librdkafka's statistics say which broker a
partition was fetched from (STATISTICS.md, topics.partitions.broker).
"""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException

from harness.core.clock import Clock
from harness.core.topology import Partition
from harness.history.journal import Journal, journal_path
from harness.history.schema import FINAL_READER, POSITIONS, READS, Phase, PositionEvent
from workloads.clients.recorder import PositionRecorder, ReadRecorder
from workloads.clients.settings import Isolation, replica_reader_config
from workloads.readback.final_read import LOGGER, FetchSources, PartitionProgress, read_on


def read_replicas(
    bootstrap: str,
    followers: Mapping[int, Iterable[Partition]],
    ends: Iterable[Mapping[str, Any]],
    isolation_level: Isolation,
    journals: Path,
    clock: Clock,
    within: float,
    name: Callable[[int], str],
    client: Callable[[dict[str, Any]], Consumer] = Consumer,
) -> list[str]:
    """Read the log of every partition that a broker follows, broker by broker, into the journals reads.N, where N is
    1000 + the broker's id.

    ``followers``: by broker id, the partitions that it follows in sync. ``ends``: the rows of log_ends; a partition
    without a reported end is skipped. ``within``: seconds for each broker. ``name``: the name of a broker by its id.
    Returns a line for each log that was not read to its end, or not from its follower. A follower serves only records
    that it knows to be committed. A follower that truncated its log learns the high watermark only when that moves
    again: it ignores the high watermark in the answer about the truncation (KAFKA-14704), and the leader does not send
    an unchanged one again (KIP-227).
    """
    known = {(row["topic"], row["partition"]): row for row in ends if row["log_end"] >= 0}
    missed: list[str] = []
    for broker, partitions in sorted(followers.items()):
        progress = {
            tp: PartitionProgress(row["log_start"], row["log_end"], row["log_start"])
            for tp in partitions
            if (row := known.get(tp)) and row["log_start"] < row["log_end"]
        }
        deadline = time.monotonic() + within
        sources, failure = _read(bootstrap, broker, progress, isolation_level, journals, clock, deadline, client)
        lines = (
            _missed(tp, name(broker), found, [_name(name, one) for one in sorted(sources.of(tp) - {broker})], failure)
            for tp, found in progress.items()
        )
        missed += filter(None, lines)
    return missed


def _read(
    bootstrap: str,
    broker: int,
    progress: dict[Partition, PartitionProgress],
    isolation_level: Isolation,
    journals: Path,
    clock: Clock,
    deadline: float,
    client: Callable[[dict[str, Any]], Consumer],
) -> tuple[FetchSources, str | None]:
    """Read one broker's partitions; return the brokers that they were fetched from, and why the client failed, if it
    did."""
    sources, reader = FetchSources(), FINAL_READER + broker
    config = {**replica_reader_config(bootstrap, isolation_level, broker, len(progress)), "logger": LOGGER}
    with (
        Journal(journal_path(journals, "reads", str(reader)), READS) as journal,
        Journal(journal_path(journals, "positions", str(reader)), POSITIONS) as positions_journal,
    ):
        try:
            with closing(client({**config, "stats_cb": sources})) as consumer:
                read_on(consumer, progress, ReadRecorder(journal, reader, Phase.REPLICA), clock, deadline)
                sources.listen(consumer, deadline)
        except KafkaException as exc:
            return sources, f"was not read: {exc.args[0].str()}"
        positions = PositionRecorder(positions_journal, reader)
        for tp, found in progress.items():
            # Records from another broker prove nothing about this one.
            if found.complete and sources.of(tp) == {broker}:
                positions.happened(PositionEvent.END_OF_PARTITION, *tp, clock.now(), found.read_to)
        positions.flush()
    return sources, None


def _name(name: Callable[[int], str], broker: int) -> str:
    return name(broker) if broker >= 0 else "an unknown broker"


def _missed(
    tp: Partition, follower: str, found: PartitionProgress, others: list[str], failure: str | None
) -> str | None:
    log = f"{tp[0]}-{tp[1]} of {follower}"
    if failure is not None:
        return f"{log} {failure}"
    if not found.complete:
        return f"{log} read to {found.read_to} of {found.log_end}"
    return f"{log} was read from {', '.join(others)}" if others else None
