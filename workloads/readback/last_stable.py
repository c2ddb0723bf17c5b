"""How far each log is stable: the last stable offset beside the high watermark, once the producers are done.

Journalled as the table ``positions``, with the final reader as reader and two events of its own: ``last-stable`` and
``high-watermark``. A log whose last stable offset stays below its high watermark has a transaction that nobody ends.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from harness.core.clock import Clock
from harness.history.journal import Journal, journal_path
from harness.history.schema import FINAL_READER, POSITIONS
from workloads.clients.recorder import PositionRecorder
from workloads.clients.settings import admin_config
from workloads.protocol import Slot

LAST_STABLE = "last-stable"
HIGH_WATERMARK = "high-watermark"

_ASK_S = 5.0
_EVERY_S = 0.5

Ends = dict[Slot, int]


def await_stable(bootstrap: str, topics: Mapping[str, int], journals: Path, clock: Clock, within: float) -> list[Slot]:
    """Wait until every log of ``topics`` (name: partitions) is stable to its end, ``within`` seconds at most.

    Journals what was told last of each partition. Returns those that are not known to be stable: a transaction is open
    there, or one of the two ends was not told.
    """
    client = AdminClient({**admin_config(bootstrap)})
    slots = [(topic, partition) for topic, count in topics.items() for partition in range(count)]
    return watch(lambda level: _ends(client, slots, level), slots, journals, clock, within)


def watch(
    ask: Callable[[IsolationLevel], Ends], slots: Sequence[Slot], journals: Path, clock: Clock, within: float
) -> list[Slot]:
    """``await_stable`` of ``slots``, with the question as a function: the end of each log at an isolation level."""
    deadline = time.monotonic() + within
    with Journal(journal_path(journals, "positions", str(FINAL_READER)), POSITIONS) as journal:
        recorder = PositionRecorder(journal, FINAL_READER)
        while True:
            # In this order: what becomes stable meanwhile makes a log look less stable, never more.
            stable, high = ask(IsolationLevel.READ_COMMITTED), ask(IsolationLevel.READ_UNCOMMITTED)
            # Of what is not told nothing is known: a broker that did not answer once may the next time.
            unstable = [slot for slot in slots if stable.get(slot, -1) < high.get(slot, math.inf)]
            if not unstable or time.monotonic() >= deadline:
                break
            time.sleep(_EVERY_S)
        now = clock.now()
        for event, ends in ((LAST_STABLE, stable), (HIGH_WATERMARK, high)):
            for (topic, partition), offset in ends.items():
                recorder.happened(event, topic, partition, now, offset)
        recorder.flush()
    return unstable


def _ends(client: AdminClient, slots: list[Slot], level: IsolationLevel) -> Ends:
    """The ends of the logs whose leader answered."""
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    asked = client.list_offsets(
        {TopicPartition(*slot): latest for slot in slots}, isolation_level=level, request_timeout=_ASK_S
    )
    found: Ends = {}
    for place, future in asked.items():
        try:
            told = future.result()
        except KafkaException:
            # No leader, or one that did not answer: it is asked again.
            continue
        found[place.topic, place.partition] = told.offset
    return found
