"""A consumer group as a whole: what it committed, and what its members were given to process.

In a run of the workload ``groups`` a live delivery is journalled when it was processed, and not before.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from checkers.polls import SEAT
from checkers.tables import PARTITION, History

_COMMITTED = "event = 'commit' and error is null"
_BLOCK = [*PARTITION, "block"]
_OFFSETS = "shiftright(offset, 6) as block"
_BIT = "shiftleft(1L, cast(offset & 63 as int))"


def recorded(history: History) -> bool:
    """Whether there is a group to ask of."""
    return history.run_file.configuration.grouped


def missed(history: History, _: DataFrame) -> DataFrame:
    """Records of the final log that the group committed past, and that no member was ever given.

    Delivered is what was read at the record's offset, whole or not: another record there is a rewritten offset. What
    stands before the place where the group began is none of its business. Guarantee: a consumer that commits after it
    processed has processed all that it committed (Kafka design, Message Delivery Semantics: at-least-once).
    Returns: topic, partition, offset, record_id, committed (the furthest place that the group committed), died (whether
    a member died that held it, and is known to have committed past it)
    """
    judged = history.reads.where("phase in ('final', 'live')").join(
        F.broadcast(committed(history)), on=PARTITION, how="inner"
    )
    behind = judged.where("offset >= begun and offset < committed").selectExpr("*", _OFFSETS, f"{_BIT} as bit")
    undelivered = (
        behind.groupBy(*_BLOCK)
        .agg(
            F.expr("bit_or(if(phase = 'final', bit, 0L))").alias("stand"),
            F.expr("bit_or(if(phase = 'live', bit, 0L))").alias("given"),
        )
        .selectExpr(*_BLOCK, "stand & ~given as bits")
        .where("bits != 0")
    )
    # A broadcast comes first: where nothing is undelivered, the log is not read again.
    return (
        behind.where("phase = 'final'")
        .join(F.broadcast(undelivered), on=_BLOCK, how="inner")
        .where("bits & bit != 0")
        .join(F.broadcast(left_behind(history)), on=PARTITION, how="left")
        .groupBy(*PARTITION, "offset", "record_id")
        .agg(
            F.max("committed").alias("committed"),
            F.expr("coalesce(bool_or(offset >= held_from and offset < held_to), false)").alias("died"),
        )
    )


def committed(history: History) -> DataFrame:
    """How far the group came in each partition: where it was placed first, and the furthest that it committed.

    A place that is no offset is the log start. Returns: topic, partition, begun, committed
    """
    placed = "event in ('assign', 'seek')"
    return (
        history.table("positions")
        .groupBy(*PARTITION)
        .agg(
            F.expr(f"coalesce(min_by(coalesce(offset, 0), at_ns) filter (where {placed}), 0)").alias("begun"),
            F.expr(f"max(offset) filter (where {_COMMITTED})").alias("committed"),
        )
        .where("committed is not null")
    )


def left_behind(history: History) -> DataFrame:
    """What members held when they died (nothing ended their assignment), as far as each is known to have committed it.

    By its own word, or by where its successor began: the last commit of one that was killed may be in no journal.
    Returns: topic, partition, held_from, held_to
    """
    places = history.table("positions")
    held = (
        places.where("event in ('assign', 'revoke', 'lost')")
        .groupBy(*SEAT)
        .agg(F.max(F.struct("at_ns", "event", "offset")).alias("last"))
        .where("last.event = 'assign'")
        .selectExpr(*PARTITION, "struct(reader, incarnation) as died", "last.at_ns as since_ns", "last.offset as from")
    )
    its_own = "struct(reader, incarnation) = died"
    return (
        places.where(f"{_COMMITTED} or event = 'assign'")
        .join(F.broadcast(held), on=PARTITION, how="inner")
        .where("at_ns >= since_ns")
        .groupBy(*PARTITION, "died", "since_ns", "from")
        .agg(
            F.expr(f"max(offset) filter (where event = 'commit' and {its_own})").alias("committed"),
            F.expr(f"min_by(offset, at_ns) filter (where event = 'assign' and not {its_own})").alias("taken_over_at"),
        )
        .selectExpr(*PARTITION, "coalesce(from, 0L) as held_from", "greatest(committed, taken_over_at) as held_to")
    )
