"""Partitions in which no election was seen: what was acknowledged at an offset still has that offset."""

import pyarrow as pa
from pyspark.sql import DataFrame

from checkers.history import History
from checkers.leadership import Span
from harness.core.faults import Does, does, supposing_it_acted

_LED = pa.schema(
    [
        *(("topic", pa.string()), ("partition", pa.int32()), ("led_epoch", pa.int32())),
        *(("led_from_ns", pa.int64()), ("led_to_ns", pa.int64())),
    ]
)
#: SQL on a delivery with the columns of ``led_by_one``: nothing tells of another leader before it.
STILL_LED = "{at_ns} <= led_to_ns and (coalesce({epoch}, -1) < 0 or {epoch} = led_epoch)"


def led_by_one(history: History) -> DataFrame | None:
    """The partitions of which all reports have the same leader and epoch; None if there are none, or if a fault may
    have destroyed the data of a broker.

    Returns: topic, partition, led_epoch, led_from_ns (the first report), led_to_ns (from then on, half of the brokers
    that ever reported on the partition, or more, were silent)
    """
    faults = map(supposing_it_acted, history.faults)
    if any(does(row, Does.DESTROYS_DATA) for row in faults):
        return None
    each: dict[tuple[str, int], list[Span]] = {}
    for span in history.seen:
        each.setdefault((span.topic, span.partition), []).append(span)
    rows = [row for (topic, partition), spans in each.items() if (row := _one_leader(topic, partition, spans))]
    return history.local(pa.Table.from_pylist(rows, _LED)) if rows else None


def _one_leader(topic: str, partition: int, spans: list[Span]) -> dict[str, object] | None:
    terms = {(span.leader, span.leader_epoch) for span in spans}
    leader, epoch = next(iter(terms))
    if len(terms) > 1 or leader < 0 or epoch is None:
        return None
    last: dict[str, int] = {}
    for span in spans:
        last[span.observer] = max(span.to_ns, last.get(span.observer, span.to_ns))
    most = sorted(last.values(), reverse=True)[: len(last) // 2 + 1]
    return {
        **{"topic": topic, "partition": partition, "led_epoch": epoch},
        **{"led_from_ns": min(span.from_ns for span in spans), "led_to_ns": most[-1]},
    }
