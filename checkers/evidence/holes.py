"""Holes: offsets that the final log lacks between two records of one leader epoch, or, where no epochs are told (before
0.11), between any two.

A leader appends one record behind the other, and an election cuts off the end of a log, never its middle: what is
missing between two records of one epoch, no election took (KIP-101; Kafka documentation, Design, Replication). Of

    offset  0 1 2 3 4 5 6 7
    epoch   0 0 0 . . 0 1 1

the offsets 3 and 4 are a hole. Without 5 they would be one, too, but not all records that are lost there need be of it:
the leader of epoch 1 may have begun at 3, where its election took what was of epoch 0.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from checkers.evidence.holders import Log
from checkers.evidence.leadership import Partition
from checkers.history import PARTITION, History

#: The first and the last offset of each hole of a partition, in order.
Holes = Mapping[Partition, tuple[np.ndarray, np.ndarray]]

#: In place of the epoch of a record that has none.
_NO_EPOCH = -1

#: Holds a sum of some longs.
_EXACT = "decimal(19,0)"

_EPOCH = [*PARTITION, "leader_epoch"]
_SPAN = ("leader_epoch", "first", "last")


def epochs(history: History) -> pa.Table:
    """Where each leader epoch stands in the final logs that were read to their ends, in order.

    Returns: topic, partition, leader_epoch (-1 where records have none), first, last, broken (records between these are
    missing)

    Their number and the sum of their offsets tell: a record that was read twice does not stand in for one that is not
    there.
    """
    first, last, count = F.min("offset"), F.max("offset"), F.count("*")
    # (Sums of offsets do not fit into a long.)
    begin, end = first.cast(_EXACT), last.cast(_EXACT)
    twice_the_sum = F.sum(F.col("offset").cast(_EXACT)) * 2
    gap = F.when(count != end - begin + 1, True).otherwise(twice_the_sum != (begin + end) * count)
    folded = _final(history).groupBy(*_EPOCH).agg(first.alias("first"), last.alias("last"), gap.alias("broken"))
    whole = {(row["topic"], row["partition"]) for row in history.ends if row["complete"]}
    found = folded.orderBy(*_EPOCH).toArrow()
    places = zip(found["topic"].to_pylist(), found["partition"].to_pylist(), strict=True)
    return found.filter(pa.array([place in whole for place in places], pa.bool_()))


def logs(history: History, found: pa.Table) -> dict[Partition, Log]:
    """The final logs that were read to their ends; ``found``: their ``epochs``."""
    sparse = history.transactional or history.run_file.compacted
    ends = {(row["topic"], row["partition"]): row["log_end"] for row in history.ends if row["complete"]}
    known = found.filter(pc.greater(found["leader_epoch"], _NO_EPOCH))
    each = known.group_by(PARTITION, use_threads=False).aggregate([(name, "list") for name in _SPAN])
    told = {(row["topic"], row["partition"]): row for row in each.to_pylist()}
    found_in: dict[Partition, Log] = {}
    for of, end in ends.items():
        row = told.get(of, {})
        each_epoch, first, last = (np.array(row.get(f"{name}_list", ()), np.int64) for name in _SPAN)
        found_in[of] = Log(each_epoch, first, last, end, sparse)
    return found_in


def holes(history: History, found: pa.Table) -> Holes:
    """The holes of every final log, of which ``found`` are the ``epochs``; of one that may lack offsets for other
    reasons, none.

    Such are compacted topics, those that transactions write to (a marker takes an offset and is given to no reader),
    and logs that were not read to their ends.
    """
    broken = found.filter(found["broken"]).select(_EPOCH)
    if history.transactional or history.run_file.compacted or not len(broken):
        return {}
    between = _between(_final(history).join(F.broadcast(history.local(broken)), _EPOCH, "left_semi"))
    return _by_partition(between.orderBy("first").toArrow())


def _final(history: History) -> DataFrame:
    epoch = F.expr(f"greatest(coalesce(leader_epoch, {_NO_EPOCH}), {_NO_EPOCH})")
    return history.reads.where("phase = 'final'").withColumn("leader_epoch", epoch)


def inside(holes: Holes, of: Partition, offsets: np.ndarray) -> np.ndarray:
    """Which of these offsets of a partition are in a hole."""
    if of not in holes:
        return np.zeros(len(offsets), bool)
    first, last = holes[of]
    nearest = np.searchsorted(first, offsets, side="right") - 1
    return np.asarray((nearest >= 0) & (offsets <= last[np.maximum(nearest, 0)]))


def _between(final: DataFrame) -> DataFrame:
    """The holes between records of one epoch: (topic, partition, first, last)."""
    behind = F.lead("offset").over(Window.partitionBy(*_EPOCH).orderBy("offset"))
    return (
        final.select(*_EPOCH, "offset", behind.alias("next"))
        .where("next > offset + 1")
        .selectExpr(*PARTITION, "offset + 1 as first", "next - 1 as last")
    )


def _by_partition(found: pa.Table) -> Holes:
    """Rows of (topic, partition, first, last), in order, apart."""
    each = found.group_by(PARTITION, use_threads=False).aggregate([("first", "list"), ("last", "list")])
    return {
        (row["topic"], row["partition"]): (np.array(row["first_list"]), np.array(row["last_list"]))
        for row in each.to_pylist()
    }
