"""A consumer group as a whole: what it committed, and what its members were given to process.

In a run of the workload ``groups`` a live delivery is journalled when it was processed, and not before.
"""

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from checkers.history import PARTITION, History
from checkers.scan.polls import SEAT, STAY

_COMMITTED = "event = 'commit' and error is null"
_BEGINS = "event in ('assign', 'revoke', 'lost', 'seek')"
_BLOCK = [*PARTITION, "block"]
_OFFSETS = "shiftright(offset, 6) as block"
_BIT = "shiftleft(1L, cast(offset & 63 as int))"


def recorded(history: History) -> bool:
    """Whether there is a group to ask of."""
    return history.run_file.configuration.grouped


def missed(history: History, polls: DataFrame) -> DataFrame:
    """Records of the final log that the group committed past, and that no member was ever given.

    Delivered is what was read at the record's offset, whole or not: another record there is a rewritten offset. What
    stands before the place where the group began is none of its business. Guarantee: a consumer that commits after it
    processed has processed all that it committed; one that commits first, all but what it was killed with (Kafka
    design, Message Delivery Semantics: at-least-once, at-most-once).
    Returns: topic, partition, offset, record_id, committed (the furthest place that the group committed), died (whether
    a member that commits first was killed between its commit and the record), unanswered (whether one asked to commit
    past the record and had no answer while the partition was its own); neither where a member ever went past the
    record, or one to which it was left anew committed past it
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
    found = (
        behind.where("phase = 'final'")
        .join(F.broadcast(undelivered), on=_BLOCK, how="inner")
        .where("bits & bit != 0")
        .groupBy(*PARTITION, "offset", "record_id")
        .agg(F.max("committed").alias("committed"))
    )
    if not history.run_file.configuration.commits_first:
        return found.selectExpr("*", "false as died", "false as unanswered")
    return (
        found.join(F.broadcast(_excused(history, polls)), on=PARTITION, how="left")
        .groupBy(*PARTITION, "offset", "record_id", "committed")
        .agg(*(F.expr(f"max(since_ns) filter (where why = '{why}' and {_IN_RANGE})").alias(why) for why in _RANGES))
        .selectExpr(
            *PARTITION,
            "offset",
            "record_id",
            "committed",
            *(f"coalesce({why} >= coalesce(left_anew, {why}) and past is null, false) as {why}" for why in _EXCUSES),
        )
    )


_IN_RANGE = "offset >= range_from and offset < range_to"
_EXCUSES = ("died", "unanswered")
_RANGES = (*_EXCUSES, "past", "left_anew")


def _excused(history: History, polls: DataFrame) -> DataFrame:
    """Ranges of a log, and why they matter since when. Returns: topic, partition, why (one of _RANGES), range_from,
    range_to, since_ns"""
    ranges = [
        unanswered(history).selectExpr(*PARTITION, "'unanswered' as why", "asked_from", "asked_to", "since_ns"),
        answered(history).selectExpr(*PARTITION, "'left_anew'", "answered_from", "answered_to", "since_ns"),
        went_past(polls).selectExpr(*PARTITION, "'past'", "past_from", "past_to", "0L"),
    ]
    if history.run_file.killed or history.run_file.died:
        ranges.append(unprocessed(history, polls).selectExpr(*PARTITION, "'died'", "left_from", "left_to", "since_ns"))
    return reduce(DataFrame.union, ranges).toDF(*PARTITION, "why", "range_from", "range_to", "since_ns")


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


def unprocessed(history: History, polls: DataFrame) -> DataFrame:
    """What members that were killed, or died, had committed, as far as each is known to have, and not processed.

    Of the partitions that were theirs to the end: from behind the last delivery (or where they were placed, or else
    where the group stood) to what they had committed by their own word. In a history that does not tell what was asked
    for, the last commit of one that was killed may be in no journal: there, to where their successor began. Returns:
    topic, partition, left_from, left_to, since_ns (of the last stay)
    """
    places = history.table("positions")
    ended = [*history.run_file.killed, *history.run_file.died]
    killed = ", ".join(f"struct({one.worker}, {one.incarnation})" for one in ended)
    held = (
        places.where(_BEGINS)
        .groupBy(*SEAT)
        .agg(
            F.expr("max(struct(at_ns, event, offset)) filter (where event != 'seek')").alias("last"),
            F.max("at_ns").alias("stay_since_ns"),
        )
        .where(f"last.event = 'assign' and struct(reader, incarnation) in ({killed})")
        .selectExpr(*SEAT, "last.at_ns as since_ns", "last.offset as placed", "stay_since_ns")
    )
    reached = (
        polls.where("arrived is not null")
        .join(F.broadcast(held.select(*SEAT, "since_ns")), on=SEAT, how="inner")
        .where("at_ns >= since_ns")
        .groupBy(*SEAT)
        .agg(F.max("next").alias("reached"))
    )
    mine = "struct(reader, incarnation) = holder"
    told = (
        places.where(f"{_COMMITTED} or event in ('assign', 'committing')")
        .join(
            F.broadcast(held.selectExpr(*PARTITION, "struct(reader, incarnation) as holder", "since_ns")),
            on=PARTITION,
            how="inner",
        )
        .groupBy(*PARTITION, "holder")
        .agg(
            F.expr("max(offset) filter (where event = 'commit' and at_ns < since_ns)").alias("before"),
            F.expr(f"max(offset) filter (where event = 'commit' and at_ns >= since_ns and {mine})").alias("committed"),
            F.expr(f"min_by(offset, at_ns) filter (where event = 'assign' and at_ns >= since_ns and not {mine})").alias(
                "taken_over_at"
            ),
            F.expr("bool_or(event = 'committing')").alias("asks"),
        )
        .selectExpr(*PARTITION, "holder.reader", "holder.incarnation", "before", "committed", "taken_over_at", "asks")
    )
    return (
        held.join(told, on=SEAT, how="inner")
        .join(reached, on=SEAT, how="left")
        .selectExpr(
            *PARTITION,
            "coalesce(reached, placed, before, 0L) as left_from",
            "if(asks, committed, greatest(committed, taken_over_at)) as left_to",
            "stay_since_ns as since_ns",
        )
    )


def unanswered(history: History) -> DataFrame:
    """What members asked to commit and had no good answer for while the partition was theirs: a broker that answered
    with an error, or not in time, may have kept it all the same.

    From what was answered well, or where the member was placed, or else where the group stood. Returns: topic,
    partition, asked_from, asked_to, since_ns
    """
    stays = _stays(history).where("asked_to is not null")
    asked = stays.selectExpr(*PARTITION, "coalesce(answered, placed, stood, 0L) as asked_from", "asked_to", "since_ns")
    return asked.where("asked_to > asked_from")


def answered(history: History) -> DataFrame:
    """What members committed, and know that they did, of what was left to them when they were placed: whatever another
    had committed of it before did not last. Returns: topic, partition, answered_from, answered_to, since_ns"""
    stays = _stays(history).where("given and answered is not null")
    known = stays.selectExpr(*PARTITION, "coalesce(placed, stood, 0L) as answered_from", "answered", "since_ns")
    return known.toDF(*PARTITION, "answered_from", "answered_to", "since_ns")


def _stays(history: History) -> DataFrame:
    """What each stay of a member in a partition committed. Returns: STAY, since_ns, given (whether it began with a
    place), placed, stood (how far the group had committed before), asked_to, answered"""
    told = history.table("positions").where(f"event = 'committing' or {_COMMITTED} or {_BEGINS}")
    begun = told.where(_BEGINS).groupBy(*SEAT).agg(F.collect_list("at_ns").alias("begun"))
    stood = told.where(_COMMITTED).groupBy(*PARTITION).agg(F.collect_list(F.struct("at_ns", "offset")).alias("stood"))
    before = "array_max(transform(filter(stood, one -> one.at_ns <= since_ns), one -> one.offset))"
    return (
        told.join(F.broadcast(begun), on=SEAT, how="left")
        .withColumn("stay", F.expr("coalesce(size(filter(begun, one -> one <= at_ns)), 0)"))
        .groupBy(*STAY)
        .agg(
            F.expr("max(offset) filter (where event = 'committing')").alias("asked_to"),
            F.expr(f"max(if({_COMMITTED}, offset, null))").alias("answered"),
            F.expr(f"max(offset) filter (where {_BEGINS})").alias("placed"),
            F.expr("coalesce(bool_or(event in ('assign', 'seek')), false)").alias("given"),
            F.min("at_ns").alias("since_ns"),
        )
        .join(F.broadcast(stood), on=PARTITION, how="left")
        .selectExpr(*STAY, "since_ns", "given", "placed", f"{before} as stood", "asked_to", "answered")
    )


def went_past(polls: DataFrame) -> DataFrame:
    """What each stay of a member covers: from where it began to where it came. Returns: topic, partition, past_from,
    past_to"""
    return (
        polls.groupBy(*STAY)
        .agg(
            F.expr("min(coalesce(first, next))").alias("past_from"),
            F.expr("max(next) filter (where arrived is not null)").alias("past_to"),
        )
        .select(*PARTITION, "past_from", "past_to")
    )
