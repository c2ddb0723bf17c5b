"""Whether the live consumers reached the end of the logs: a consumer that got nothing proves nothing."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import Row as SparkRow
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from checkers.history import PARTITION, History
from checkers.leadership import Partition
from checkers.scan.polls import READER, RESETS

Row = Mapping[str, Any]

#: SQL: the events with which a reader gives a partition up.
_GIVES_UP = "('revoke', 'lost')"

#: Instead of a reader: no member of the group.
NOBODY = -1


@dataclass(frozen=True)
class Reader:
    """A reader that had to read a partition to its end. ``at``: its last position, behind all records that it got, or
    else where it began; None if unknown."""

    topic: str
    partition: int
    reader: int
    at: int | None


def behind(history: History, polls: DataFrame) -> list[str]:
    """A line for each consumer that owned a partition at the end but did not reach the end of its records.

    In a group, the member that was assigned the partition last counts: from where it was placed it had to read to the
    end, whatever others had read before. If nobody knows where, the furthest position of any member counts. A consumer
    that was killed, or died, need not have got anything of what it had not given up before; if a lasting fault may keep
    consumers from the end, they need only have got something. ``polls``: as in checkers/scan/polls.py.
    """
    assigned = assignments(history, polls)
    doubtful = [*_never_assigned(assigned, history, polls), *stopped(assigned, history)]
    if not doubtful:
        return []
    stood = history.local(pa.Table.from_pylist([vars(one) for one in doubtful], _STOOD))
    left = (
        history.reads.where("phase = 'final'")
        .select(*PARTITION, "offset")
        .join(F.broadcast(stood), on=PARTITION, how="inner")
        .where("offset >= coalesce(at, 0)")
        .groupBy(*PARTITION, "reader", "at")
        .agg(F.count_distinct("offset").alias("left"))
        .collect()
    )
    return [
        f"{_stood(row)} of {row['topic']}-{row['partition']}, before {row['left']} records"
        for row in sorted(left, key=lambda row: (row["topic"], row["partition"], row["reader"]))
    ]


def _stood(row: SparkRow) -> str:
    if row["reader"] == NOBODY:
        return "no consumer was ever assigned any"
    return f"consumer {row['reader']} {'got nothing' if row['at'] is None else 'stopped at ' + str(row['at'])}"


_STOOD = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("reader", pa.int32()), ("at", pa.int64())])


def assignments(history: History, polls: DataFrame) -> list[Row]:
    """Every reader with each partition that it was ever assigned. Returns: READER, since_ns (of its last assignment),
    at (its furthest position since it was last placed: assigned, or sent back by a seek; null if unknown), furthest
    (its furthest position ever), received (the number of records), gave_up (whether it was revoked, or lost, at last).

    Only what it was given while it owned the partition moves a reader: it may hear the end of a partition that it
    has just given up (workloads/clients/consuming.py), and that of records that it threw away."""
    assigned = (
        history.table("positions")
        .where(f"event in {RESETS}")
        .groupBy(*READER)
        .agg(
            F.expr("max(at_ns) filter (where event = 'assign')").alias("since_ns"),
            F.expr("max(at_ns) filter (where event in ('assign', 'seek'))").alias("placed_ns"),
            F.collect_list(F.struct("at_ns", "event")).alias("resets"),
        )
        .where("since_ns is not null")
        .withColumn("gave_up", F.expr(f"array_max(resets).event in {_GIVES_UP}"))
    )
    reached = (
        polls.join(F.broadcast(assigned), on=READER)
        .where(f"coalesce(array_max(filter(resets, r -> r.at_ns <= at_ns)).event not in {_GIVES_UP}, true)")
        .groupBy(*READER)
        .agg(
            F.expr("max(next) filter (where at_ns >= placed_ns)").alias("at"),
            F.max("next").alias("furthest"),
            F.sum("records").alias("received"),
        )
    )
    assigned = assigned.drop("resets")
    return [row.asDict() for row in F.broadcast(assigned).join(reached, on=READER, how="left").collect()]


def stopped(assigned: Sequence[Row], history: History) -> list[Reader]:
    """The ``assigned`` readers that had to read to the end of a completely read log, but stopped before it. (What the
    last living member of a group gave up, nobody could take.)"""
    run, ends = history.run_file, {(row["topic"], row["partition"]): row for row in history.ends if row["complete"]}
    dead = {(one.worker, one.incarnation) for one in (*run.killed, *run.died)}
    parties: dict[tuple[Partition, int | None], list[Row]] = {}
    for one in assigned:
        of = (one["topic"], one["partition"])
        if of in ends:
            parties.setdefault((of, None if run.configuration.grouped else one["reader"]), []).append(one)
    alive = any((one["reader"], one["incarnation"]) not in dead for one in assigned)
    found = [(of, *_last_of(members)) for (of, _), members in sorted(parties.items(), key=lambda item: str(item[0]))]
    return [
        Reader(*of, last["reader"], None if not received and not 0 < (at or 0) < ends[of]["log_end"] else at)
        for of, last, at, received in found
        if (last["gave_up"] and alive) or (last["reader"], last["incarnation"]) not in dead
        if not received or (at or 0) < ends[of]["log_end"]
        if run.heals_all or not received
    ]


def _never_assigned(assigned: Iterable[Row], history: History, polls: DataFrame) -> list[Reader]:
    """For each completely read log the consumers that were never assigned anything; or, in a group, NOBODY, if no
    member was ever assigned that partition, be they all dead."""
    run, ends = history.run_file, sorted((row["topic"], row["partition"]) for row in history.ends if row["complete"])
    consumers = run.workers("positions").keys()
    if run.configuration.grouped:
        owned = {(one["topic"], one["partition"]) for one in assigned}
        return [Reader(*of, NOBODY, None) for of in ends if consumers and of not in owned]
    alive = consumers - {one.worker for one in (*run.killed, *run.died)}
    idle = alive - {one["reader"] for one in assigned}
    if idle:
        idle -= {row["reader"] for row in polls.select("reader").distinct().collect()}
    return [Reader(*of, reader, None) for of in ends for reader in sorted(idle)]


def _last_of(members: Sequence[Row]) -> tuple[Row, int | None, bool]:
    """The member that was assigned the partition last, its position (if unknown, the furthest of all), and whether any
    of them got a record."""
    last = max(members, key=lambda one: (one["since_ns"], one["reader"], one["incarnation"]))
    furthest = max((one["furthest"] for one in members if one["furthest"] is not None), default=None)
    return last, furthest if last["at"] is None else last["at"], any(one["received"] for one in members)
