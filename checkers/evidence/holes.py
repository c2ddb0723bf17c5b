"""Holes: offsets that the final log lacks between two records of one leader epoch, or between any two records if there
are no epochs (before 0.11).

A leader appends one record behind the other, and an election cuts off the end of a log, never its middle. So no
election took records that are missing between two records of one epoch (KIP-101; Kafka documentation, Design,
Replication). In

    offset  0 1 2 3 4 5 6 7
    epoch   0 0 0 . . 0 1 1

the offsets 3 and 4 are a hole. Without 5 they would be no hole: the leader of epoch 1 may have begun its epoch at 3,
and its election may have taken the records of epoch 0 there.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from checkers.evidence.evidence import Evidence
from checkers.evidence.final_logs import NO_EPOCH, Holes, logs, sparse
from checkers.evidence.record_ranges import RecordRange
from checkers.evidence.standing import with_results
from checkers.evidence.store import AnomalyStore
from checkers.history import PARTITION, History
from checkers.leadership import Partition

#: A type that holds the difference of any two longs.
_EXACT = "decimal(20,0)"

_EPOCH = [*PARTITION, "leader_epoch"]

#: SQL on a word: the stretches of its offsets without a hole. A word with a hole is listed offset by offset.
_STRETCHES = """if(bit_count(bits) = last - first + 1, array(struct(first, last)), transform(
    filter(sequence(0, 63), n -> bits & shiftleft(1L, n) != 0),
    n -> struct(word * 64 + n AS first, word * 64 + n AS last)))"""


@dataclass(frozen=True)
class FinalLogs:
    """The ``epochs`` of the final logs, and their ``holes``."""

    epochs: pa.Table
    holes: Holes


def read_final_logs(history: History) -> FinalLogs | None:
    """Read the final logs; None if the run has none. Spark keeps their offsets for ``unread``, until its cache is
    cleared."""
    if not history.run_file.final_read:
        return None
    offsets = final_offsets(history).persist(StorageLevel.MEMORY_AND_DISK)
    each = epochs(history, offsets)
    return FinalLogs(each, holes(history, offsets, each))


def with_final_logs(
    history: History, observed: Evidence, found: AnomalyStore, final: FinalLogs | None
) -> tuple[Evidence, Holes]:
    """The complete evidence about what took records, and the holes of the final logs. ``observed``: the evidence
    without the final logs. ``found``: all that checkers found. ``final``: as ``read_final_logs`` returns it."""
    known, missing = ({}, {}) if final is None else (logs(history.stored, final.epochs), final.holes)
    return with_results(observed, history.stored, known, found), missing


def epochs(history: History, offsets: DataFrame) -> pa.Table:
    """The offsets of each leader epoch in the final logs that were read to the end, in order. ``offsets``: the
    ``final_offsets``.

    Returns: topic, partition, leader_epoch (-1 if records have none), first, last, broken (whether records between
    these are missing)
    """
    first, last = F.min("first"), F.max("last")
    # (The distance of two offsets may not fit into a long.)
    gap = F.sum(F.bit_count("bits")) < last.cast(_EXACT) - first.cast(_EXACT) + 1
    folded = offsets.groupBy(*_EPOCH).agg(first.alias("first"), last.alias("last"), gap.alias("broken"))
    whole = {(row["topic"], row["partition"]) for row in history.ends if row["complete"]}
    found = folded.orderBy(*_EPOCH).toArrow()
    partitions = zip(found["topic"].to_pylist(), found["partition"].to_pylist(), strict=True)
    return found.filter(pa.array([partition in whole for partition in partitions], pa.bool_()))


def holes(history: History, offsets: DataFrame, found: pa.Table) -> Holes:
    """The holes of every final log. ``offsets``: the ``final_offsets``; ``found``: the ``epochs``.

    A log that may lack offsets for other reasons has none. Such logs are those of compacted topics, those with
    transactions (a marker takes an offset but no reader gets it), and logs that were not read to the end.
    """
    broken = found.filter(found["broken"]).select(_EPOCH)
    if sparse(history.stored) or not len(broken):
        return {}
    between = _between(offsets.join(F.broadcast(history.local(broken)), _EPOCH, "left_semi"))
    return _by_partition(between.orderBy("first").toArrow())


def known_holes(found: Iterable[Sequence[RecordRange]]) -> dict[Partition, int]:
    """How many records are missing in holes of each log. ``found``: the record ranges of each anomaly, of which several
    may have the same records: those count of which one has the most."""
    most: Counter[Partition] = Counter()
    for ranges in found:
        own: Counter[Partition] = Counter()
        for one in ranges:
            own[one.of] += one.count if one.hole else 0
        most |= own
    return most


def unread(history: History, in_logs: int, known: Mapping[Partition, int]) -> dict[Partition, int]:
    """At how many offsets each final log has nothing, if all were read to the end; without those that have something at
    each, and those that may lack some (see ``holes``). ``in_logs``: how many different records the final read found in
    each log: if they are as many as all offsets, nobody looks for more. ``known``: the ``known_holes``, which do not
    count.

    A leader appends one record behind the other: where none is, one was taken, or the final read did not get it. (It
    may have read more than it had to.)
    """
    ends = history.stored.ends
    lengths = {of: max(row["log_end"], row["read_to"]) - row["log_start"] for of, row in ends.items()}
    whole = all(row["complete"] for row in ends.values())
    if not whole or sparse(history.stored) or in_logs >= sum(lengths.values()):
        return {}
    word = [*PARTITION, "word"]
    distinct = final_offsets(history).groupBy(*word).agg(F.bit_or("bits").alias("bits"))
    counted = distinct.groupBy(*PARTITION).agg(F.sum(F.bit_count("bits")).alias("there"))
    there = {(row["topic"], row["partition"]): row["there"] for row in counted.collect()}
    lacking = {of: length - there.get(of, 0) - known.get(of, 0) for of, length in lengths.items()}
    return {of: count for of, count in lacking.items() if count > 0}


def final_offsets(history: History) -> DataFrame:
    """The offsets of the final logs as bits, 64 in a word. With bits, a record that was read twice does not count
    twice.

    Returns: topic, partition, leader_epoch, word, first, last, bits
    """
    epoch = f"greatest(coalesce(leader_epoch, {NO_EPOCH}), {NO_EPOCH})"
    final = history.reads.where("phase = 'final'").selectExpr(
        *(*PARTITION, f"{epoch} AS leader_epoch", "offset"),
        *("offset div 64 AS word", "shiftleft(1L, int(offset % 64)) AS bit"),
    )
    return final.groupBy(*_EPOCH, "word").agg(
        F.min("offset").alias("first"), F.max("offset").alias("last"), F.bit_or("bit").alias("bits")
    )


def _between(words: DataFrame) -> DataFrame:
    """The holes between records of one epoch: (topic, partition, first, last)."""
    behind = F.lead("first").over(Window.partitionBy(*_EPOCH).orderBy("first"))
    return (
        words.selectExpr(*_EPOCH, f"inline({_STRETCHES})")
        .select(*_EPOCH, "last", behind.alias("next"))
        .where("next - 1 > last")
        .selectExpr(*PARTITION, "last + 1 AS first", "next - 1 AS last")
    )


def _by_partition(found: pa.Table) -> Holes:
    """Rows of (topic, partition, first, last), in order, as holes by partition."""
    each = found.group_by(PARTITION, use_threads=False).aggregate([("first", "list"), ("last", "list")])
    return {
        (row["topic"], row["partition"]): (np.array(row["first_list"]), np.array(row["last_list"]))
        for row in each.to_pylist()
    }
