"""The read of the replicas: each in-sync follower's own log, from its start to where the final read found its end.

A follower is read as a consumer of its rack reads it (KIP-392), each broker being a rack of its own. Which broker a
partition was fetched from is librdkafka's to tell (STATISTICS.md, topics.partitions.broker): a leader answers where it
knows no in-sync follower of that rack.
"""

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer

from harness.core.clock import Clock
from harness.history.journal import Journal, journal_path
from harness.history.schema import FINAL_READER, READS, Phase
from workloads.clients.recorder import ReadRecorder
from workloads.clients.settings import Isolation, replica_reader_config
from workloads.protocol import Slot
from workloads.readback.final_read import LOGGER, Progress, Sources, read_on


def read_replicas(
    bootstrap: str,
    followers: Mapping[int, Iterable[Slot]],
    ends: Iterable[Mapping[str, Any]],
    isolation_level: Isolation,
    journals: Path,
    clock: Clock,
    within: float,
) -> list[str]:
    """Read the log of every partition that a broker follows, broker by broker, into the journals reads.1000 + its id.

    ``followers``: by broker id, what it follows, in sync. ``ends``: the rows of log_ends; where no leader told an end,
    there is none to read to. ``within``: seconds for each broker. Returns a line for each log that was not read to its
    end, or not from its follower. A follower gives no more than it knows to be committed: one that truncated its log
    hears of the high watermark only when that moves again (the answer that says where logs part says it too, and there
    it is passed over, KAFKA-14704; what has not changed is not sent again, KIP-227).
    """
    known = {(row["topic"], row["partition"]): row for row in ends if row["log_end"] >= 0}
    missed = []
    for broker, slots in sorted(followers.items()):
        progress = {
            slot: Progress(row["log_start"], row["log_end"], row["log_start"])
            for slot in slots
            if (row := known.get(slot)) and row["log_start"] < row["log_end"]
        }
        sources = _read(bootstrap, broker, progress, isolation_level, journals, clock, time.monotonic() + within)
        missed += [line for slot, found in progress.items() if (line := _missed(broker, slot, found, sources.of(slot)))]
    return missed


def _read(
    bootstrap: str,
    broker: int,
    progress: dict[Slot, Progress],
    isolation_level: Isolation,
    journals: Path,
    clock: Clock,
    deadline: float,
) -> Sources:
    sources, reader = Sources(), FINAL_READER + broker
    config: dict[str, Any] = {
        **replica_reader_config(bootstrap, isolation_level, broker, len(progress)),
        "logger": LOGGER,
    }
    with Journal(journal_path(journals, "reads", str(reader)), READS) as journal:
        consumer = Consumer({**config, "stats_cb": sources})
        try:
            read_on(consumer, progress, ReadRecorder(journal, reader, Phase.REPLICA), clock, deadline)
            sources.listen(consumer, deadline)
        finally:
            consumer.close()
    return sources


def _missed(broker: int, slot: Slot, found: Progress, sources: set[int]) -> str | None:
    name = f"{slot[0]}-{slot[1]} of broker {broker}"
    if not found.complete:
        return f"{name} read to {found.read_to} of {found.log_end}"
    others = ", ".join(f"broker {other}" for other in sorted(sources - {broker}))
    return f"{name} was read from {others}" if others else None
