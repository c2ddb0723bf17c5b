"""How far each log is stable: its last stable offset and its high watermark, after the producers are done.

Both go into the table ``positions``, as the events ``last-stable`` and ``high-watermark`` of the final reader. If the
last stable offset of a log stays below its high watermark, the log has a transaction that nobody ends.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from harness.core.clock import Clock
from harness.core.topology import Partition
from harness.history.journal import Journal, journal_path
from harness.history.schema import FINAL_READER, POSITIONS, PositionEvent
from workloads.clients.recorder import PositionRecorder
from workloads.clients.settings import Config, admin_config

#: A choice: a broker that is up answers within milliseconds; one that does not takes this much of the wait.
_ASK_S = 5.0
#: A choice: a coordinator looks for transactions to abort only every 10 s (workloads/transactions.py).
_EVERY_S = 0.5

Ends = dict[Partition, int]


def await_stable(
    bootstrap: str,
    topics: Mapping[str, int],
    journals: Path,
    clock: Clock,
    within: float,
    client: Callable[[Config], AdminClient] = AdminClient,
) -> list[Partition]:
    """Wait at most ``within`` seconds until every log of ``topics`` (name: partitions) is stable to its end.

    Journals the last answer for each partition. Returns the partitions that are not known to be stable: a transaction
    is open there, or one of the two ends is unknown.
    """
    partitions = [(topic, partition) for topic, count in topics.items() for partition in range(count)]
    try:
        admin = client({**admin_config(bootstrap)})
    except KafkaException:
        return watch(lambda _: {}, partitions, journals, clock, within=0)
    return watch(lambda level: _ends(admin, partitions, level), partitions, journals, clock, within)


def watch(
    ask: Callable[[IsolationLevel], Ends], partitions: Sequence[Partition], journals: Path, clock: Clock, within: float
) -> list[Partition]:
    """Like ``await_stable``, but ``ask`` is a function that returns the end of each log at an isolation level."""
    deadline = time.monotonic() + within
    with Journal(journal_path(journals, "positions", str(FINAL_READER)), POSITIONS) as journal:
        recorder = PositionRecorder(journal, FINAL_READER)
        while True:
            # In this order: a change between the two answers can make a log look less stable, never more.
            stable, high = ask(IsolationLevel.READ_COMMITTED), ask(IsolationLevel.READ_UNCOMMITTED)
            # A partition without an answer counts as unstable: its broker may answer the next time.
            unstable = [tp for tp in partitions if stable.get(tp, -1) < high.get(tp, math.inf)]
            if not unstable or time.monotonic() >= deadline:
                break
            time.sleep(_EVERY_S)
        now = clock.now()
        for event, ends in ((PositionEvent.LAST_STABLE, stable), (PositionEvent.HIGH_WATERMARK, high)):
            for (topic, partition), offset in ends.items():
                recorder.happened(event, topic, partition, now, offset)
        recorder.flush()
    return unstable


def _ends(client: AdminClient, partitions: list[Partition], level: IsolationLevel) -> Ends:
    """The ends of the logs whose leader answered."""
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    wanted = {TopicPartition(*tp): latest for tp in partitions}
    try:
        asked = client.list_offsets(wanted, isolation_level=level, request_timeout=_ASK_S)
    except KafkaException:
        return {}
    found: Ends = {}
    for partition, future in asked.items():
        try:
            answer = future.result()
        except KafkaException:
            # No leader, or no answer from it: the loop asks again.
            continue
        found[partition.topic, partition.partition] = answer.offset
    return found
