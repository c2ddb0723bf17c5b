"""Readers: records that they skipped, deliveries behind their position, partitions that two members own at once.

Polls are looked at first (checkers/scan/polls.py), and records only where a poll is suspicious. Between two assignments
or seeks a reader's position only moves forward, by what the log has. The history does not know the order inside a poll:
its records are taken in the order of offsets and ids. The times of a record's send are added where any was found.
"""

from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from checkers.history import PARTITION, History
from checkers.scan.polls import BEHIND_IT, GIVEN, POLL, STAY
from harness.history.schema import UNTOLD

_RECORD = ["topic", "partition", "offset", "record_id", "at_ns as read_ns", "reader"]
_SPAN_BITS = 10
#: A gap of more spans than these has the most of its offsets where no log has any.
_MOST_SPANS = 1 << 12

#: SQL on a row of polls: that it may be in the anomaly.
PASSED_OVER = "arrived > left_at"
WITH_HOLES = "last - first >= distinct"
BEHIND = "first < gone_to or given > distinct"

_AGAIN = pa.schema(
    [
        *(("reader", pa.int32()), ("incarnation", pa.int32()), ("topic", pa.string()), ("partition", pa.int32())),
        *(("stay", pa.int32()), ("from", pa.int64()), ("to", pa.int64())),
    ]
)


def skipped(history: History, polls: DataFrame) -> DataFrame:
    """Records of the final log beside the offsets that a reader passed over between two places of one stay; the rule
    is that they were among them.

    What a transaction took back or left open is not there to be read; compacted and control records are in no final
    log. (Without one, what the reader was given at an offset that nobody told may have been there.) Guarantee: a
    consumer is given its partitions' records in the order of the log (Kafka design, The Consumer). Returns: RECORD,
    read_ns, reader, passed_from, passed_to
    """
    between = polls.where(PASSED_OVER).withColumnsRenamed({"left_at": "passed_from", "arrived": "passed_to"})
    inside = _before_in_poll(history, polls.where(WITH_HOLES)).withColumnsRenamed(
        {"furthest": "passed_from", "offset": "passed_to"}
    )
    gap = ["topic", "partition", "reader", "at_ns", "passed_from", "passed_to"]
    gaps = between.select(*gap).unionAll(inside.where("passed_to > passed_from").select(*gap))
    passed = _inside(history.log.select("topic", "partition", "offset", "record_id"), gaps).join(
        _not_committed(history), on="record_id", how="left_anti"
    )
    if not history.run_file.final_read:
        somewhere = history.reads.where(f"offset = {UNTOLD}").select("topic", "partition", "reader", "record_id")
        passed = passed.join(somewhere, on=somewhere.columns, how="left_anti").dropDuplicates()
    return passed.selectExpr(*_RECORD, "passed_from", "passed_to")


def went_back(history: History, polls: DataFrame) -> DataFrame:
    """Every delivery of a suspicious poll with the furthest place of its stay before it; the rule is that it lies
    behind that.

    Guarantee: a consumer's position advances, but for seeks (KafkaConsumer, Offsets and Consumer Position). Returns:
    RECORD, read_ns, reader, gone_to
    """
    told = _before_in_poll(history, polls.where(BEHIND)).withColumn("gone_to", F.greatest("gone_to", "furthest"))
    return told.selectExpr(*_RECORD, "gone_to")


def two_owners(history: History, polls: DataFrame) -> DataFrame:
    """Two members' stays in one partition, told by the first record of the later one; the rule is that it began
    before the last delivery of the other.

    A stay is as long as its deliveries: what a member that died still seemed to own is not counted. Guarantee: in a
    group a partition has one owner (Kafka design, Consumer Position). Returns: RECORD, read_ns, reader, since_ns,
    other_reader, other_until_ns
    """
    stays = (
        polls.where("given > 0")
        .groupBy(*STAY)
        .agg(F.min(F.struct("at_ns", "first")).alias("begun"), F.max("at_ns").alias("until_ns"))
    )
    others = stays.selectExpr(
        "topic",
        "partition",
        "struct(reader, incarnation) as other",
        "struct(begun.at_ns, reader, incarnation) as other_begun",
        "until_ns as other_until_ns",
    )
    pairs = (
        stays.join(others, on=PARTITION, how="inner")
        .where("struct(reader, incarnation) != other and struct(begun.at_ns, reader, incarnation) > other_begun")
        .selectExpr(
            *("topic", "partition", "reader", "incarnation", "begun.at_ns", "begun.first as offset"),
            *("begun.at_ns as since_ns", "other.reader as other_reader", "other_until_ns"),
        )
    )
    first = _delivered(history).groupBy(*POLL, "offset").agg(F.min("record_id").alias("record_id"))
    return first.join(F.broadcast(pairs), on=[*POLL, "offset"], how="inner").selectExpr(
        *_RECORD, "since_ns", "other_reader", "other_until_ns"
    )


def redelivered(history: History, polls: DataFrame) -> dict[str, int]:
    """How many deliveries gave a group (or a reader of its own) what it had had before, by how that stay had ended.

    Legal at-least-once (Kafka design, Message Delivery Semantics). ``rebalance``: it was revoked or lost; ``crash``:
    nothing ended it; ``uncommitted``: the reader was put elsewhere itself. Inside a stay it is ``went_back`` instead.
    """
    party = "0" if history.run_file.configuration.grouped else "reader"
    given = polls.where("given > 0").withColumn("party", F.expr(party))
    stays = given.groupBy("party", *STAY).agg(F.min("first").alias("least"), F.max("last").alias("most")).collect()
    again = given_again(row.asDict() for row in stays)
    if not again:
        return {}
    told = F.struct("at_ns", *STAY, "ended_by")
    rows = (
        _delivered(history)
        .join(given.select("party", *POLL, "stay", "ended_by"), on=POLL, how="inner")
        .join(F.broadcast(history.local(pa.Table.from_pylist(again, _AGAIN))), on=STAY, how="inner")
        .where("offset between from and to")
        .groupBy("party", "topic", "partition", "offset", "record_id")
        .agg(F.array_sort(F.collect_list(told)).alias("times"))
        .where("size(times) > 1")
        .selectExpr("explode(arrays_zip(slice(times, 1, size(times) - 1), slice(times, 2, size(times) - 1))) as two")
        .selectExpr("two['0'] as one", "two['1'] as again")
        .where("struct(one.reader, one.incarnation, one.stay) != struct(again.reader, again.incarnation, again.stay)")
        .selectExpr(
            "case when one.ended_by is null then 'crash' when one.ended_by in ('revoke', 'lost') then 'rebalance'"
            " else 'uncommitted' end as cause"
        )
        .groupBy("cause")
        .count()
        .collect()
    )
    return {row["cause"]: row["count"] for row in sorted(rows)}


def given_again(stays: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What of each stay (STAY, its party, and the least and most of its offsets) another of its party may have been
    given too, of the same partition. Returns: STAY, from, to (offsets, both in it): at most two ranges for each, apart
    """
    lanes: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for stay in sorted(stays, key=lambda stay: stay["least"]):
        lanes.setdefault((stay["party"], stay["topic"], stay["partition"]), []).append(stay)
    found = []
    for lane in lanes.values():
        reached = -1
        for stay, following in zip_longest(lane, lane[1:]):
            before = (stay["least"], min(stay["most"], reached))
            after = (following["least"], stay["most"]) if following else (0, -1)
            ranges = [before, after] if before[1] < after[0] else [(before[0], max(before[1], after[1]))]
            place = {name: stay[name] for name in STAY}
            found += [{**place, "from": least, "to": most} for least, most in ranges if least <= most]
            reached = max(reached, stay["most"])
    return found


def _delivered(history: History) -> DataFrame:
    """Every live delivery. Returns: reader, incarnation, topic, partition, at_ns, offset, record_id"""
    return history.reads.where(GIVEN).selectExpr(*POLL[:-1], "read_ns as at_ns", "offset", "record_id")


def _before_in_poll(history: History, polls: DataFrame) -> DataFrame:
    """The deliveries of a few polls, and where each poll had come to before them.

    Returns: reader, incarnation, topic, partition, at_ns, offset, record_id, gone_to (of the poll), furthest (null for
    the first)
    """
    above = Window.partitionBy(*POLL).orderBy("offset", "record_id").rowsBetween(Window.unboundedPreceding, -1)
    rows = _delivered(history).join(polls.select(*POLL, "gone_to"), on=POLL, how="inner")
    return rows.select("*", F.max(F.expr(BEHIND_IT)).over(above).alias("furthest"))


def _inside(log: DataFrame, gaps: DataFrame) -> DataFrame:
    """Each record of a log beside the gaps that it may be in: those that share one of its spans of offsets, and any
    that is so wide that its spans are too many to be listed. Returns: the columns of both"""
    first, last = (f"shiftright(passed_{end}, {_SPAN_BITS})" for end in ("from", "to"))
    narrow = gaps.where(f"{last} - {first} < {_MOST_SPANS}").withColumn(
        "span", F.expr(f"explode(sequence({first}, {last}))")
    )
    wide = gaps.where(f"{last} - {first} >= {_MOST_SPANS}")
    spans = log.withColumn("span", F.expr(f"shiftright(offset, {_SPAN_BITS})"))
    shared = spans.join(narrow, on=["topic", "partition", "span"], how="inner").drop("span")
    between = log.join(F.broadcast(wide), on=PARTITION, how="inner").where("offset between passed_from and passed_to")
    return shared.unionByName(between)


def _not_committed(history: History) -> DataFrame:
    """The ids of all records whose transaction was not committed for certain."""
    committed = history.table("transactions").where("intent = 'commit' and outcome = 'ok'")
    return (
        history.sends.where("transaction is not null")
        .join(committed, on=["worker", "transaction"], how="left_anti")
        .select("record_id")
    )
