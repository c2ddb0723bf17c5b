"""Readers: records that they skipped, deliveries behind their position, partitions that two members own at once.

A scan looks at polls first (checkers/scan/polls.py); records are looked at only for suspicious polls. Between two
assignments or seeks a reader's position only moves forward. A history does not know the order of records inside a poll:
they are taken in the order of offsets and ids. (An imported history does know it, and records a step back as a new
poll.) The times of a record's send are added only if something was found.
"""

from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from checkers.anomalies.groups import skipping_starts
from checkers.anomalies.one_leader import STILL_LED, led_by_one
from checkers.anomalies.records import with_asked
from checkers.anomalies.transactions import delivered_of
from checkers.history import PARTITION, History
from checkers.scan.in_log import retained
from checkers.scan.polls import ASSIGNMENT, BEHIND_IT, POLL, delivered
from checkers.scan.record_bits import computed_once
from harness.history.schema import TRANSACTION, UNKNOWN_OFFSET, PositionEvent

_RECORD = ["topic", "partition", "offset", "record_id", "at_ns as read_ns", "reader"]
#: Records and gaps are joined by spans of 2**10 offsets, about the records of a poll. This and the next number decide
#: how long the join takes, not what it finds: the rule compares offsets exactly.
_SPAN_BITS = 10
#: A gap with more spans than this is joined without them: it is far wider than the records in it.
_MOST_SPANS = 1 << 12

#: SQL on a poll: the reader jumped ahead before it, or offsets are missing within it.
_JUMPED = "arrived > position_before"
_HAS_HOLES = "last - first >= distinct"
MAY_HAVE_SKIPPED = f"{_JUMPED} or {_HAS_HOLES}"
#: SQL on a poll: it begins before the furthest position of its assignment, or has an offset twice.
MAY_HAVE_GONE_BACK = "first < furthest_before or records > distinct"

_AGAIN = pa.schema(
    [
        *(("reader", pa.int32()), ("incarnation", pa.int32()), ("topic", pa.string()), ("partition", pa.int32())),
        *(("assignment", pa.int32()), ("from", pa.int64()), ("to", pa.int64())),
    ]
)


_GAP = pa.schema(
    [
        *(("topic", pa.string()), ("partition", pa.int32()), ("reader", pa.int32())),
        *(("at_ns", pa.int64()), ("passed_from", pa.int64()), ("passed_to", pa.int64())),
    ]
)


#: The rule of ``skipped``.
IS_SKIPPED = "offset >= passed_from and offset < passed_to"
#: SQL on a record and the gap of a reader: the log of which the reader got the end of the gap did not have the record.
_OF_A_LATER_LEADER = "coalesce(leader_epoch > epoch, false)"


def skipped(history: History, polls: DataFrame) -> DataFrame:
    """Records of the final log, with the range of offsets that a reader skipped between two positions of one
    assignment. The rule: the record's offset is in the range. Also records that no member of a group received because a
    member began behind everything that the group can have committed.

    A reader need not receive records of transactions that were aborted or left open, unless it is read_uncommitted, or
    the final read_committed log has the record: then it was committed, and nobody passes an open transaction. (It was,
    too, if its commit was asked for, and a read_committed reader got a record of it.) A read_uncommitted reader must
    also receive acknowledged records that the final read_committed log hides, where no election can have taken them.
    The final log has no compacted and no control records. (Without a final read, another reader received the record, so
    it was there to be read unless its transaction was aborted; a record that the reader got at an unknown offset may be
    it.) The log of a replaced leader need not have a record: one whose leader epoch is later than that of the record
    behind the range does not count.
    Guarantee: a consumer receives its partitions' records in the order of the log (Kafka design, The Consumer): with
    read_uncommitted all, with read_committed those of committed transactions (isolation.level). Returns: RECORD,
    read_ns, reader, passed_from, passed_to, and may_have_moved if groups moved partitions unseen
    """
    between = polls.where(_JUMPED).withColumnsRenamed({"position_before": "passed_from", "arrived": "passed_to"})
    inside = _before_in_poll(history, polls.where(_HAS_HOLES)).withColumnsRenamed(
        {"furthest": "passed_from", "offset": "passed_to"}
    )
    gap = ["topic", "partition", "reader", "at_ns", "poll", "passed_from", "passed_to"]
    within = inside.where("passed_to > passed_from").selectExpr(*gap, "false as on_arrival")
    gaps = _with_epoch(history, between.selectExpr(*gap, "true as on_arrival").unionAll(within))
    log = history.log.select("topic", "partition", "offset", "record_id")
    of_its_log = _inside(history.log.select(*log.columns, "leader_epoch"), gaps).where(f"not ({_OF_A_LATER_LEADER})")
    # (What was sent after a poll took the place of something that is gone.)
    sent = history.sends.groupBy("record_id").agg(F.min("invoked_ns").alias("sent_ns"))
    there = of_its_log.join(sent, on="record_id", how="left").where("coalesce(sent_ns < at_ns, true)")
    passed = there.drop("sent_ns", "leader_epoch", "epoch")
    if (aborted := _acknowledged_in_vain(history)) is not None:
        passed_too = _inside(aborted, gaps.where(history.receives_all)).where(
            f"sent_ns < at_ns and {STILL_LED.format(at_ns='at_ns', epoch='epoch')}"
        )
        passed = passed.unionByName(passed_too.select(*passed.columns)).dropDuplicates()
    if began := skipping_starts(history):
        of_group = history.local(pa.Table.from_pylist(began, _GAP)).selectExpr("*", "0L as poll", "false as on_arrival")
        taken_over = _inside(log, of_group)
        deliveries = delivered(history).select(*PARTITION, "offset")
        passed = passed.unionByName(
            taken_over.join(deliveries, on=deliveries.columns, how="left_anti").select(*passed.columns)
        )
    hidden = _may_be_hidden(history)
    if hidden is not None:
        need_not = F.expr(f"record_id = hidden_id and not ({history.receives_all})")
        passed = passed.join(hidden, on=need_not, how="left_anti")
    if not history.run_file.final_read:
        somewhere = history.reads.where(f"offset = {UNKNOWN_OFFSET}").select(
            "topic", "partition", "reader", "record_id"
        )
        passed = passed.join(somewhere, on=somewhere.columns, how="left_anti").dropDuplicates()
    return _doubted(history, passed).selectExpr(*_RECORD, "passed_from", "passed_to", *_doubt(history))


#: The rule of ``went_back``. (``gone_to``, the furthest position before, keeps its name: verdicts of schema 1 have it.)
BEHIND = "offset < gone_to"


def went_back(history: History, polls: DataFrame) -> DataFrame:
    """Every delivery of a suspicious poll, with the furthest position of its assignment before it. The rule: the
    delivery's offset is lower.

    Guarantee: without seeks a consumer's position only advances (KafkaConsumer, Offsets and Consumer Position).
    Returns: RECORD, read_ns, reader, gone_to, and may_have_moved if groups moved partitions unseen
    """
    deliveries = _before_in_poll(history, polls.where(MAY_HAVE_GONE_BACK))
    on_arrival = deliveries.withColumn("on_arrival", F.expr("not coalesce(offset < furthest, false)"))
    return _doubted(history, on_arrival).selectExpr(
        *_RECORD, "greatest(furthest_before, furthest) as gone_to", *_doubt(history)
    )


def _doubt(history: History) -> list[str]:
    return ["may_have_moved"] if history.moved_unseen else []


def _doubted(history: History, found: DataFrame) -> DataFrame:
    """``found`` with the column may_have_moved: whether a group may have moved the partition, unseen, right before the
    reader's poll. A jump at the start of that poll (``on_arrival``) is legal then."""
    if not history.moved_unseen:
        return found
    of_poll = ["reader", *PARTITION, "at_ns", "poll"]
    may_have = history.table("positions").where(f"event = '{PositionEvent.MAY_HAVE_MOVED}'")
    moved = may_have.selectExpr(*of_poll, "true as moved").distinct()
    return found.join(moved, on=of_poll, how="left").withColumn(
        "may_have_moved", F.expr("coalesce(moved, false) and on_arrival")
    )


#: The rule of ``two_owners``.
BEFORE_THE_OTHER_ENDED = "since_ns < other_until_ns"


def two_owners(history: History, polls: DataFrame) -> DataFrame:
    """Pairs of assignments of one partition to two members, each at the first record of the later assignment. The rule:
    it began before the last delivery of the other.

    An assignment counts from its first to its last delivery, so a dead member owns nothing after its last delivery.
    Guarantee: in a group a partition has one owner (Kafka design, Consumer Position). Returns: RECORD, read_ns, reader,
    since_ns, other_reader, other_until_ns
    """
    assignments = (
        polls.where("records > 0")
        .groupBy(*ASSIGNMENT)
        .agg(F.min(F.struct("at_ns", "poll", "first")).alias("begun"), F.max("at_ns").alias("until_ns"))
    )
    others = assignments.selectExpr(
        "topic",
        "partition",
        "struct(reader, incarnation) as other",
        "struct(begun.at_ns, reader, incarnation) as other_begun",
        "until_ns as other_until_ns",
    )
    pairs = (
        assignments.join(others, on=PARTITION, how="inner")
        .where("struct(reader, incarnation) != other and struct(begun.at_ns, reader, incarnation) > other_begun")
        .selectExpr(
            *("topic", "partition", "reader", "incarnation", "begun.at_ns", "begun.poll"),
            *("begun.first as offset", "begun.at_ns as since_ns", "other.reader as other_reader", "other_until_ns"),
        )
    )
    first = delivered(history).groupBy(*POLL, "offset").agg(F.min("record_id").alias("record_id"))
    return first.join(F.broadcast(pairs), on=[*POLL, "offset"], how="inner").selectExpr(
        *_RECORD, "since_ns", "other_reader", "other_until_ns"
    )


def redelivered(history: History, polls: DataFrame) -> dict[str, int]:
    """How many deliveries a group (or a reader without a group) had received before, by how the earlier assignment
    ended.

    This is legal at-least-once delivery (Kafka design, Message Delivery Semantics). ``rebalance``: the assignment was
    revoked or lost; ``crash``: nothing ended it; ``uncommitted``: the reader itself did a seek. Within one assignment
    it is ``went_back`` instead.
    """
    party = "0" if history.run_file.configuration.grouped else "reader"
    brought = polls.where("records > 0").withColumn("party", F.expr(party))
    extents = brought.groupBy("party", *ASSIGNMENT).agg(F.min("first").alias("least"), F.max("last").alias("most"))
    again = delivered_again(row.asDict() for row in extents.collect())
    if not again:
        return {}
    delivery = F.struct("at_ns", *ASSIGNMENT, "ended_by")
    rows = (
        delivered(history)
        .join(brought.select("party", *POLL, "assignment", "ended_by"), on=POLL, how="inner")
        .join(F.broadcast(history.local(pa.Table.from_pylist(again, _AGAIN))), on=ASSIGNMENT, how="inner")
        .where("offset between from and to")
        .groupBy("party", "topic", "partition", "offset", "record_id")
        .agg(F.array_sort(F.collect_list(delivery)).alias("times"))
        .where("size(times) > 1")
        .selectExpr("explode(arrays_zip(slice(times, 1, size(times) - 1), slice(times, 2, size(times) - 1))) as two")
        .selectExpr("two['0'] as one", "two['1'] as again")
        .where(
            "struct(one.reader, one.incarnation, one.assignment)"
            " != struct(again.reader, again.incarnation, again.assignment)"
        )
        .selectExpr(
            "case when one.ended_by is null then 'crash' when one.ended_by in ('revoke', 'lost') then 'rebalance'"
            " else 'uncommitted' end as cause"
        )
        .groupBy("cause")
        .count()
        .collect()
    )
    return {row["cause"]: row["count"] for row in sorted(rows)}


def delivered_again(extents: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The offsets of each assignment that another assignment of the same party and partition may have had, too.

    ``extents``: ASSIGNMENT, its party, and its least and greatest offset. Returns: ASSIGNMENT, from, to (offsets, both
    included): at most two separate ranges for each
    """
    lanes: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for extent in sorted(extents, key=lambda extent: extent["least"]):
        lanes.setdefault((extent["party"], extent["topic"], extent["partition"]), []).append(extent)
    found = []
    for lane in lanes.values():
        reached = -1
        for extent, following in zip_longest(lane, lane[1:]):
            before = (extent["least"], min(extent["most"], reached))
            after = (following["least"], extent["most"]) if following else (0, -1)
            ranges = [before, after] if before[1] < after[0] else [(before[0], max(before[1], after[1]))]
            assignment = {name: extent[name] for name in ASSIGNMENT}
            found += [{**assignment, "from": least, "to": most} for least, most in ranges if least <= most]
            reached = max(reached, extent["most"])
    return found


def _before_in_poll(history: History, polls: DataFrame) -> DataFrame:
    """The deliveries of a few polls, each with the furthest position before it in its poll.

    Returns: reader, incarnation, topic, partition, at_ns, poll, offset, record_id, furthest_before (of the poll),
    furthest (null for the first)
    """
    above = Window.partitionBy(*POLL).orderBy("offset", "record_id").rowsBetween(Window.unboundedPreceding, -1)
    rows = delivered(history).join(polls.select(*POLL, "furthest_before"), on=POLL, how="inner")
    return rows.select("*", F.max(F.expr(BEHIND_IT)).over(above).alias("furthest"))


def _inside(log: DataFrame, gaps: DataFrame) -> DataFrame:
    """Join each record of a log with the gaps that may contain it: narrow gaps by the spans of offsets that they touch,
    wide gaps (too many spans to list) by their range. Returns: the columns of both"""
    first, last = (f"shiftright(passed_{end}, {_SPAN_BITS})" for end in ("from", "to"))
    # Spark may list the spans before it filters out wide gaps, so a wide gap lists only its first span.
    listed = f"if({last} - {first} < {_MOST_SPANS}, {last}, {first})"
    narrow = gaps.where(f"{last} - {first} < {_MOST_SPANS}").withColumn(
        "span", F.expr(f"explode(sequence({first}, {listed}))")
    )
    wide = gaps.where(f"{last} - {first} >= {_MOST_SPANS}")
    spans = log.withColumn("span", F.expr(f"shiftright(offset, {_SPAN_BITS})"))
    shared = spans.join(narrow, on=["topic", "partition", "span"], how="inner").drop("span")
    between = log.join(F.broadcast(wide), on=PARTITION, how="inner").where("offset between passed_from and passed_to")
    return shared.unionByName(between)


def _with_epoch(history: History, gaps: DataFrame) -> DataFrame:
    """``gaps`` with ``epoch``, the leader epoch of the delivery at their end; null if it is unknown, there is none, or
    all deliveries have the same."""
    if "leader_epoch" in history.same("reads"):
        return gaps.withColumn("epoch", F.expr("int(null)"))
    of_poll = ["topic", "partition", "reader", "at_ns", "poll"]
    ends = F.broadcast(gaps.select(*of_poll, "passed_to").distinct())
    deliveries = delivered(history).where("leader_epoch >= 0").withColumnRenamed("offset", "passed_to")
    at_ends = deliveries.join(ends, on=[*of_poll, "passed_to"], how="left_semi")
    epochs = at_ends.groupBy(*of_poll, "passed_to").agg(F.min("leader_epoch").alias("epoch"))
    return gaps.join(epochs, on=[*of_poll, "passed_to"], how="left").select(*gaps.columns, "epoch")


def _acknowledged_in_vain(history: History) -> DataFrame | None:
    """The sends of transactions that were acknowledged at an offset but not committed, so that the final log does not
    show them, in partitions without an election; None if no reader must have been given them (see ``skipped``).

    Returns: topic, partition, offset, record_id, sent_ns, and the columns of ``led_by_one``
    """
    run = history.run_file
    if not history.transactional or not run.configuration.read_committed or history.receives_all == "false":
        return None
    led = None if run.compacted else led_by_one(history)
    if led is None:
        return None
    committed = history.transactions.where("intent = 'commit' and outcome = 'ok'").select(*TRANSACTION)
    sends = history.table("sends").where("transaction is not null and outcome = 'ok' and offset is not null")
    return (
        retained(history, sends)
        .join(committed, on=TRANSACTION, how="left_anti")
        .join(F.broadcast(led), on=PARTITION, how="inner")
        .where("invoked_ns >= led_from_ns")
        .selectExpr(*PARTITION, "offset", "record_id", "invoked_ns as sent_ns", "led_epoch", "led_to_ns")
    )


def _may_be_hidden(history: History) -> DataFrame | None:
    """The ids (``hidden_id``) of records that a read_committed reader need not receive, because their transaction may
    not be committed (see ``skipped``); None if there are none."""
    committed, hidden_id = history.run_file.configuration.read_committed, "record_id as hidden_id"
    sent = history.sends.where("transaction is not null")
    if history.run_file.final_read:
        if committed:
            return None
        known = history.table("transactions").where("intent = 'commit' and outcome = 'ok'").select(*TRANSACTION)
        unanswered = with_asked(history).where("asked and outcome != 'ok'").select(*TRANSACTION)
        if (of_unanswered := computed_once(unanswered)) is not None:
            known = known.unionAll(delivered_of(history, of_unanswered).select(*TRANSACTION))
        return sent.join(known, on=TRANSACTION, how="left_anti").selectExpr(hidden_id)
    aborted = history.table("transactions").where("intent = 'abort'")
    return sent.join(aborted, on=TRANSACTION, how="left_semi").selectExpr(hidden_id) if committed else None
