"""Readers: what they passed over, were given out of order or twice, and shared though it was theirs alone.

A *stay* is what one reader has of a partition between two events that put it somewhere or take it away (assign, revoke,
lost, seek). Inside a stay its place only moves forward, by what the log has. What is told of a poll is in the order of
offsets: the history does not know the order inside one. The times of a record's send are added where any was found.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from checkers.before import greatest_before
from checkers.tables import History

_SEAT = ["reader", "incarnation", "topic", "partition"]
_STAY = [*_SEAT, "stay"]
_RECORD = ["topic", "partition", "offset", "record_id", "at_ns as read_ns", "reader"]
_RESETS = "('assign', 'revoke', 'lost', 'seek')"
#: What one task sorts at a time: a second of a reader's deliveries.
_BUCKET = "at_ns div 1000000000"
_SPAN_BITS = 10


def skipped(history: History, _: DataFrame) -> DataFrame:
    """Records of the final log beside the offsets that a reader passed over between two places of one stay; the rule
    is that they were among them.

    What a transaction took back or left open is not there to be read; compacted and control records are in no final
    log. Guarantee: a consumer is given its partitions' records in the order of the log (Kafka design, The Consumer).
    Returns: RECORD, read_ns, reader, passed_from, passed_to
    """
    before = greatest_before(
        places(history), _STAY, ["at_ns", "next"], _BUCKET, {"last": F.struct("at_ns", F.col("next").alias("next"))}
    )
    gaps = before.where("arrived > last.next").selectExpr(
        "topic", "partition", "reader", "at_ns", "last.next as passed_from", "arrived as passed_to"
    )
    blocks = gaps.withColumn(
        "span", F.expr(f"explode(sequence(shiftright(passed_from, {_SPAN_BITS}), shiftright(passed_to, {_SPAN_BITS})))")
    )
    final = history.reads.where("phase = 'final'").selectExpr(
        "topic", "partition", "offset", "record_id", f"shiftright(offset, {_SPAN_BITS}) as span"
    )
    passed = final.join(blocks, on=["topic", "partition", "span"], how="inner").join(
        _not_committed(history), on="record_id", how="left_anti"
    )
    return passed.selectExpr(*_RECORD, "passed_from", "passed_to")


def went_back(history: History, _: DataFrame) -> DataFrame:
    """Every delivery with the furthest place of its stay before it; the rule is that it lies behind that.

    Guarantee: a consumer's position advances, but for seeks (KafkaConsumer, Offsets and Consumer Position). Returns:
    RECORD, read_ns, reader, gone_to
    """
    before = greatest_before(places(history), _STAY, ["at_ns", "next"], _BUCKET, {"gone_to": F.col("next")})
    return before.where("offset is not null").selectExpr(*_RECORD, "gone_to")


def two_owners(history: History, _: DataFrame) -> DataFrame:
    """Two members' stays in one partition, told by the first record of the later one; the rule is that it began
    before the last delivery of the other.

    A stay is as long as its deliveries: what a member that died still seemed to own is not counted. Guarantee: in a
    group a partition has one owner (Kafka design, Consumer Position). Returns: RECORD, read_ns, reader, since_ns,
    other_reader, other_until_ns
    """
    stays = (
        places(history)
        .where("offset is not null")
        .groupBy(*_STAY)
        .agg(F.min(F.struct("at_ns", "offset", "record_id")).alias("first"), F.max("at_ns").alias("until_ns"))
        .where("true" if history.run_file.configuration.grouped else "false")
    )
    others = stays.selectExpr(
        "topic",
        "partition",
        "struct(reader, incarnation) as other",
        "struct(first.at_ns, reader, incarnation) as other_begun",
        "until_ns as other_until_ns",
    )
    pairs = (
        stays.join(others, on=["topic", "partition"], how="inner")
        .where("struct(reader, incarnation) != other and struct(first.at_ns, reader, incarnation) > other_begun")
        .selectExpr(
            *("topic", "partition", "first.offset", "first.record_id", "first.at_ns", "reader"),
            *("first.at_ns as since_ns", "other.reader as other_reader", "other_until_ns"),
        )
    )
    return pairs.selectExpr(*_RECORD, "since_ns", "other_reader", "other_until_ns")


def _placed_again(history: History) -> bool:
    """Whether any reader was put somewhere in a partition more than once: else it can be given nothing again."""
    placed = history.table("positions").where("event in ('assign', 'seek')")
    return not placed.groupBy("reader", "topic", "partition").count().where("count > 1").isEmpty()


def redelivered(history: History) -> dict[str, int]:
    """How many deliveries gave a group (or a reader of its own) what it had had before, by how that stay had ended.

    Legal at-least-once (Kafka design, Message Delivery Semantics). ``rebalance``: it was revoked or lost; ``crash``:
    nothing ended it; ``uncommitted``: the reader was put elsewhere itself. Inside a stay it is ``went_back`` instead.
    """
    grouped = history.run_file.configuration.grouped
    if not grouped and not _placed_again(history):
        return {}
    party = "0" if grouped else "reader"
    given = places(history).where("offset is not null").withColumn("party", F.expr(party))
    stays = given.groupBy("party", *_STAY).agg(F.min("offset").alias("least"), F.max("offset").alias("most"))
    others = stays.selectExpr(
        *("party", "topic", "partition", "struct(reader, incarnation, stay) as other"),
        *("least as other_least", "most as other_most"),
    )
    shared = (
        stays.join(others, on=["party", "topic", "partition"], how="inner")
        .where("struct(reader, incarnation, stay) != other and least <= other_most and other_least <= most")
        .select("party", *_STAY)
        .dropDuplicates()
    )
    told = F.struct("at_ns", *_STAY, "ended_by")
    rows = (
        given.join(F.broadcast(shared), on=["party", *_STAY], how="left_semi")
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


def places(history: History) -> DataFrame:
    """Where readers stood in the run: each delivery, each start that is known, each end of a partition that was told.

    Returns: reader, incarnation, topic, partition, stay (how many resets came before), at_ns, offset and record_id (of
    a delivery), arrived (the offset it came to without being told to; null for a start), next, ended_by (the event
    that ended the stay, or null)
    """
    resets = (
        history.table("positions")
        .where(f"event in {_RESETS}")
        .groupBy(*_SEAT)
        .agg(F.array_sort(F.collect_list(F.struct("at_ns", "event"))).alias("resets"))
    )
    none = "cast(null as bigint)"
    delivered = history.reads.where("phase = 'live'").selectExpr(
        *_SEAT, "read_ns as at_ns", "offset", "record_id", "offset as arrived", "offset + 1 as next"
    )
    told = history.table("positions").where("event in ('assign', 'seek', 'end-of-partition') and offset is not null")
    stood = told.selectExpr(
        *(*_SEAT, "at_ns", f"{none} as offset", f"{none} as record_id"),
        *("if(event = 'end-of-partition', offset, null) as arrived", "offset as next"),
    )
    return (
        delivered.unionByName(stood)
        .join(F.broadcast(resets), on=_SEAT, how="left")
        .withColumn("stay", F.expr("coalesce(size(filter(resets, r -> r.at_ns <= at_ns)), 0)"))
        .selectExpr(*_STAY, "at_ns", "offset", "record_id", "arrived", "next", "get(resets, stay).event as ended_by")
    )


def _not_committed(history: History) -> DataFrame:
    """The ids of all records whose transaction was not committed for certain."""
    committed = history.table("transactions").where("intent = 'commit' and outcome = 'ok'")
    return (
        history.sends.where("transaction is not null")
        .join(committed, on=["worker", "transaction"], how="left_anti")
        .select("record_id")
    )
