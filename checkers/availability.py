"""Service: how long no write was acknowledged although writes were attempted, and how soon after each fault one was.

Spark counts the sends in bins by the time of their end; no bin contains the beginning or the heal of a fault. The rest
is arithmetic on some thousand rows. The order in which writes ended within a bin is not known. So a stretch has the
length that is certain (``lasted_ns``), and next to it the greatest possible length (``at_most_ns``). The two hardly
ever differ, and then by less than a bin (``resolution_ns``).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from checkers.evidence.intervals import NEVER, Times, merged
from checkers.history import PARTITION, History
from checkers.stretches import (
    Stretch,
    Stretches,
    Timeline,
    per_bucket,
    stretches,
    timelines,
    together,
)
from harness.core.clock import SECOND_NS
from harness.core.faults import Row, injection_of
from harness.core.topology import Partition
from harness.history.run_file import Limits

#: A choice: a stretch within one bin is not seen, and shorter bins make more rows.
_FINEST_NS = 10_000_000
#: The number of bins of a run over all its partitions, and the greatest number if its limits need finer bins. A choice:
#: they bound the rows that leave Spark, however long the history is.
_BINS = 20_000
_MOST_BINS = 2_000_000


def resolution(duration_ns: int, partitions: int, limits: Limits) -> int:
    """The length of a bin. The number of bins is bounded; within that bound each limit is several bins long."""
    in_all = duration_ns * max(partitions, 1)
    limited = [limit for limit in (limits.unavailable, limits.recovery) if limit is not None]
    wanted = min([-(-in_all // _BINS), *(int(limit * SECOND_NS) // 4 for limit in limited)])
    return max(_FINEST_NS, wanted, -(-in_all // _MOST_BINS))


def bins(sends: DataFrame, bin_ns: int, instants: Sequence[int]) -> pa.Table:
    """The writes that ended, folded by partition, bin, and era. The era is the number of ``instants`` that had passed.

    Returns: topic, partition, bin, era, earliest, last_end, first_sent (when the first of those acknowledged was sent),
    first_ack, last_ack (null if none was acknowledged), acknowledged
    """
    ended = sends.where("completed_ns is not null").selectExpr(
        *PARTITION,
        "invoked_ns",
        "completed_ns",
        "if(outcome = 'ok', completed_ns, null) as ack_ns",
        "if(outcome = 'ok', invoked_ns, null) as sent_ns",
        f"completed_ns div {bin_ns} as bin",
    )
    return (
        _with_era(ended, instants)
        .groupBy(*PARTITION, "bin", "era")
        .agg(
            F.min("invoked_ns").alias("earliest"),
            F.max("completed_ns").alias("last_end"),
            F.min("sent_ns").alias("first_sent"),
            F.min("ack_ns").alias("first_ack"),
            F.max("ack_ns").alias("last_ack"),
            F.count("ack_ns").alias("acknowledged"),
        )
        .toArrow()
    )


def _with_era(ended: DataFrame, instants: Sequence[int]) -> DataFrame:
    """Add the era: how many of the sorted ``instants`` had passed at ``completed_ns``. A binary search in SQL, one step
    for each doubling of their number."""
    depth = len(instants).bit_length()
    padded = [*instants, *[NEVER] * ((1 << depth) - 1 - len(instants))]
    listed = f"cast(split('{','.join(map(str, padded))}', ',') as array<bigint>)"
    ended = ended.withColumn("era", F.lit(0))
    for step in (1 << power for power in reversed(range(depth))):
        passed = f"get({listed}, era + {step - 1}) <= completed_ns"
        ended = ended.withColumn("era", F.expr(f"era + if({passed}, {step}, 0)"))
    return ended


def abandoned(sends: DataFrame) -> dict[Partition, list[tuple[int, int]]]:
    """The times in which a worker waited for writes that never ended, by partition.

    The waiting incarnation is dead. The time ends with the worker's next incarnation, or with its own last event if
    there is none.
    """
    last = "greatest(invoked_ns, coalesce(completed_ns, invoked_ns))"
    lives = (
        sends.groupBy("worker", "incarnation")
        .agg(F.min("invoked_ns").alias("first"), F.expr(f"max({last})").alias("last"))
        .collect()
    )
    begun: dict[int, list[tuple[int, int]]] = {}
    for row in lives:
        begun.setdefault(row["worker"], []).append((row["incarnation"], row["first"]))
    until = {
        (row["worker"], row["incarnation"]): max(
            row["last"], min((at for later, at in begun[row["worker"]] if later > row["incarnation"]), default=0)
        )
        for row in lives
    }
    open_ended = (
        sends.where("completed_ns is null")
        .groupBy(*PARTITION, "worker", "incarnation")
        .agg(F.min("invoked_ns").alias("first"))
        .collect()
    )
    found: dict[Partition, list[tuple[int, int]]] = {}
    for row in open_ended:
        awaited = (row["first"], until[row["worker"], row["incarnation"]])
        found.setdefault((row["topic"], row["partition"]), []).append(awaited)
    return {partition: merged(awaited) for partition, awaited in found.items()}


@dataclass(frozen=True)
class Writes:
    """All writes of a run, for each partition and ``overall``. ``bin_ns``: the length of a bin."""

    bin_ns: int
    overall: Timeline
    partitions: Mapping[Partition, Timeline]


def writes(history: History) -> Writes:
    """The writes of a run. An acknowledgement counts whatever happened to its transaction."""
    faults, sends = history.faults, history.records("sends")
    bin_ns = resolution(history.last_ns, len(history.ends), history.run_file.limits)
    instants = sorted({at for row in faults for at in (row["injected_ns"], row["healed_ns"]) if at is not None})
    folded = bins(sends, bin_ns, instants)
    awaited = abandoned(sends) if history.may_lack("sends", "completed_ns") else {}
    return Writes(bin_ns, together(folded, awaited), timelines(folded, awaited))


def committed(history: History, written: Writes) -> Mapping[Partition, Timeline]:
    """The writes that had to last. With read_committed, a record of a transaction had to only once that was committed.
    ``written``: all ``writes`` of the run."""
    if not (history.transactional and history.run_file.configuration.read_committed):
        return written.partitions
    return timelines(bins(history.sends.where("outcome = 'ok'"), written.bin_ns, ()), {})


def availability(history: History, written: Writes | None = None) -> dict[str, Any]:
    """The ``availability`` of verdict.json. ``written``: the ``writes`` of the run, if the caller has them."""
    written = written or writes(history)
    faults, bin_ns, overall = history.faults, written.bin_ns, written.overall
    bucket_ns, counts = per_bucket(overall, bin_ns)
    windows = list(_windows(faults))
    service = _service(overall, windows)
    return {
        "resolution_ns": bin_ns,
        "longest_unavailable": service["longest_unavailable"],
        "partitions": [
            {
                "topic": topic,
                "partition": partition,
                **_service(own, windows),
                "written_ns": [own.first_ns, own.last_ns],
                "last_ack_ns": own.last_ack_ns,
            }
            for (topic, partition), own in written.partitions.items()
        ],
        "after_faults": service["after_faults"],
        "bucket_ns": bucket_ns,
        "acknowledged": counts,
    }


def _windows(faults: Sequence[Row]) -> Iterator[tuple[str, int | None, int | None, int]]:
    """For each fault its name, the times of its injection and heal, and the next injection after the heal."""
    injecting = np.sort(np.array([row["injecting_ns"] for row in faults], np.int64))
    for row in faults:
        following = injecting[np.searchsorted(injecting, row["healed_ns"] or 0) :]
        yield injection_of(row), row["injected_ns"], row["healed_ns"], int(following[0]) if following.size else NEVER


def _service(timeline: Timeline, windows: Iterable[tuple[str, int | None, int | None, int]]) -> dict[str, Any]:
    """How long service was gone: in the whole run, and between the heal of each fault and the next injection."""
    gone = stretches(timeline)
    acks = timeline.first_ack[timeline.acknowledged > 0]
    return {
        **_longest(gone, "longest_unavailable", "at_most_ns"),
        "after_faults": [
            {
                "fault": fault,
                "first_ack_after_injection_ns": _until_ack(acks, injected),
                "first_ack_after_heal_ns": _until_ack(acks, healed),
                **(
                    {"awaited_after_heal": None}
                    if healed is None
                    else _longest(gone, "awaited_after_heal", "at_most_after_heal_ns", healed, following)
                ),
            }
            for fault, injected, healed, following in windows
        ],
    }


def _longest(
    gone: Stretches, name: str, at_most: str, since_ns: int = 0, until_ns: int = NEVER
) -> dict[str, dict[str, Any] | int | None]:
    """The longest stretch under ``name``, and under ``at_most`` its greatest possible length if that is longer."""
    longest, most = gone.longest(since_ns, until_ns), gone.at_most(since_ns, until_ns)
    more = {at_most: most} if most > (longest.lasted_ns if longest else 0) else {}
    return {name: _as_dict(longest), **more}


def _until_ack(acks: Times, since_ns: int | None) -> int | None:
    """The time from an instant (one of those that separate eras) to the next acknowledgement."""
    following = acks[np.searchsorted(acks, since_ns) :] if since_ns is not None else acks[:0]
    return int(following[0]) - since_ns if since_ns is not None and following.size else None


def _as_dict(stretch: Stretch | None) -> dict[str, Any] | None:
    if stretch is None:
        return None
    return {
        "from_ns": stretch.from_ns,
        "to_ns": stretch.to_ns,
        "lasted_ns": stretch.lasted_ns,
        "ended": stretch.ended,
    }
