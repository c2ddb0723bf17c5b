"""Anomalies of single records: lost, failed but present, duplicated, phantom, corrupted, misplaced, vanished.

A finder reads only the rows of its candidates: the records for which the catalogue's SQL sets a bit
(scan/record_bits.py). Nearly always there are none; then the finder does not run.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from checkers.history import PARTITION, History
from checkers.scan.in_log import IN_LOG, proven, retained
from checkers.scan.record_bits import Candidates
from harness.history.schema import SEQUENCE_BITS, TRANSACTION

#: The columns of every anomaly of a record. ``sent_ns`` and ``acknowledged_ns`` are null if that never happened.
RECORD = ["topic", "partition", "offset", "record_id", "worker", "sequence", "sent_ns", "acknowledged_ns"]

#: SQL on ``transactions``: its producer requested the commit, and the coordinator may have got it. ``failed_ns``: when
#: its first record failed.
_ASKED = (
    "intent = 'commit' and ending_ns is not null"
    " and (outcome = 'ok' or outcome = 'info' and coalesce({failed_ns} > ending_ns, true))"
)

_LIVE = "phase = 'live' and intact"
#: SQL on reads: the least and the greatest leader epoch that consumers received.
_FIRST, _LAST = (f"{which}(leader_epoch) filter (where {_LIVE} and leader_epoch >= 0)" for which in ("min", "max"))
_RECEIVED = [
    f"if({_FIRST} = {_LAST}, {_FIRST}, null) as read_epoch",
    f"min(read_ns) filter (where {_LIVE}) as first_read_ns",
    f"max(read_ns) filter (where {_LIVE}) as last_read_ns",
]

#: The columns that tell of a record's deliveries at its offset.
DELIVERED = ("read_epoch", "first_read_ns", "last_read_ns")

_KNOWN_EPOCH = "if(leader_epoch >= 0, leader_epoch, null)"

OF_WORKER = f"cast(shiftright(record_id, {SEQUENCE_BITS}) as int)"
_WORKER = f"{OF_WORKER} as worker"
_SEQUENCE = f"record_id & {(1 << SEQUENCE_BITS) - 1} as sequence"
_SENT = "invoked_ns as sent_ns"
_ACKNOWLEDGED = "if(outcome = 'ok', completed_ns, null) as acknowledged_ns"

#: RECORD as expressions on a row of ``sends``, and on a delivery joined with the times of its send.
OF_SEND = ["topic", "partition", "offset", "record_id", "worker", "sequence", _SENT, _ACKNOWLEDGED]
OF_READ = ["topic", "partition", "offset", "record_id", _WORKER, _SEQUENCE, "sent_ns", "acknowledged_ns"]


def lost(candidates: Candidates) -> DataFrame:
    """Acknowledged records absent from the complete final log of their partition.

    A record acknowledged below the log's start was deleted by retention, not lost. If it was acknowledged without an
    offset and its log does not begin at 0, nobody knows (``maybe_deleted``).
    Guarantee: a committed message is not lost as long as one in-sync replica is alive (Kafka design, Replication).
    Returns: RECORD, read_epoch (the leader epoch with which consumers received it at its offset, if all received the
    same: the leader of that epoch wrote it, and that leader or a later one acknowledged it), first_read_ns and
    last_read_ns (when a consumer first and last received it there), in_transaction (only with transactions, if acks is
    not all)
    """
    acknowledged = retained(candidates.history, candidates.sends("outcome = 'ok'"), maybe_deleted=False)
    there = (
        candidates.reads(f"phase = 'final' and not intact or {_LIVE}")
        .groupBy(*IN_LOG)
        .agg(*map(F.expr, ["bool_or(phase = 'final') as damaged", *_RECEIVED]))
    )
    gone = acknowledged.join(there, on=IN_LOG, how="left").where("not coalesce(damaged, false)")
    return gone.selectExpr(*OF_SEND, *DELIVERED, *in_transaction(candidates.history))


def in_transaction(history: History) -> list[str]:
    """The column ``in_transaction`` of sends, if records outside of transactions may have other acks."""
    mixed = history.transactional and not history.run_file.configuration.acks_all
    return ["transaction is not null as in_transaction"] if mixed else []


def with_deliveries(history: History, missing: DataFrame) -> DataFrame:
    """``missing`` (columns: at least IN_LOG) with DELIVERED, as ``lost`` returns them."""
    there = history.reads.where(_LIVE).join(missing.select(*IN_LOG), on=IN_LOG, how="left_semi")
    received = there.groupBy(*IN_LOG).agg(*map(F.expr, _RECEIVED))
    return missing.join(received, on=IN_LOG, how="left")


def maybe_deleted(candidates: Candidates) -> int:
    """How many of the acknowledged candidates retention may have deleted: their offset is unknown, and their log does
    not begin at 0."""
    acknowledged = candidates.sends("outcome = 'ok' and offset is null")
    begun = candidates.history.log_ends.where("log_start > 0").select(*PARTITION)
    return acknowledged.join(F.broadcast(begun), on=PARTITION, how="left_semi").count()


def failed_but_present(candidates: Candidates) -> DataFrame:
    """Records that are proven to have failed, but were delivered to a reader.

    Guarantee: a record that was refused before any broker appended it cannot be in a log. Returns: RECORD, error,
    read_offset
    """
    failed = candidates.sends("outcome = 'fail'")
    there = candidates.reads("intact").groupBy("record_id").agg(F.min("offset").alias("read_offset"))
    return failed.join(there, on="record_id", how="inner").selectExpr(*OF_SEND, "error", "read_offset")


def duplicated(candidates: Candidates) -> DataFrame:
    """Records at two or more offsets of one partition: in the final log, or as consumers received them.

    Guarantee: an idempotent producer's record is written to the log once (KIP-98; by default since 3.0, KIP-679).
    Returns: RECORD (``offset`` is the first), last_offset, copies, in_log (how many of them the final log has),
    stands_at (the last of these), stands_epoch (its leader epoch), epochs (the leader epochs of all copies, the first
    and the last of each; -1 for one of which none is known), which (``idempotent producer``; without idempotence ``same
    incarnation``: a retry; or ``across incarnations``: a later incarnation handed it over again)
    """
    found = proven(candidates.reads("phase in ('final', 'live')"), candidates.sends())
    copies = (
        found.groupBy(*IN_LOG)
        .agg(
            F.expr("bool_or(phase = 'final')").alias("stands"),
            F.expr(f"coalesce(min({_KNOWN_EPOCH}), -1)").alias("first_epoch"),
            F.expr(f"coalesce(max({_KNOWN_EPOCH}), -1)").alias("last_epoch"),
        )
        .groupBy("topic", "partition", "record_id")
        .agg(
            F.min("offset").alias("offset"),
            F.max("offset").alias("last_offset"),
            F.count("*").alias("copies"),
            F.count_if("stands").alias("in_log"),
            F.expr("max(offset) filter (where stands)").alias("stands_at"),
            F.expr("max(last_epoch) filter (where stands)").alias("stands_epoch"),
            F.expr("array_sort(flatten(collect_list(array_distinct(array(first_epoch, last_epoch)))))").alias("epochs"),
        )
        .where("copies > 1")
    )
    retried = "if(incarnations > 1, 'across incarnations', 'same incarnation')"
    which = "'idempotent producer'" if candidates.history.run_file.configuration.idempotence else retried
    return copies.join(origins(candidates), on="record_id", how="left").selectExpr(
        *OF_READ, "last_offset", "copies", "in_log", "stands_at", "stands_epoch", "epochs", f"{which} as which"
    )


def phantom(candidates: Candidates) -> DataFrame:
    """Records that were delivered intact but that no worker sent: an id that was never used, or a payload that is not
    ours.

    In a partial history an id above the last one that its worker journalled is unrecorded, not a phantom: the last
    moment before a kill is not in the journal. Returns: RECORD, read_ns
    """
    unsent = candidates.reads("intact").join(candidates.senders(), on="record_id", how="left_anti")
    recorded = _without_unrecorded(candidates.history, unsent.select(*candidates.history.reads.columns))
    strange = recorded.unionAll(candidates.history.reads.where("intact and record_id is null"))
    return _deliveries(strange).selectExpr(
        *OF_READ[:6], "cast(null as bigint) as sent_ns", "cast(null as bigint) as acknowledged_ns", "read_ns"
    )


def misplaced(candidates: Candidates) -> DataFrame:
    """Records delivered from a topic or partition to which they were not sent, or under another key: no send of the
    record matches. (If keys are not compared, no candidate was sent to the partition where it was found.)

    Guarantee: a record is appended to the partition it was sent to (Kafka design, The Producer), in the batch that its
    producer made; the batch's CRC covers the key (KIP-98, message format). Returns: RECORD (as found), sent_topic,
    sent_partition, read_ns; in a keyed history also sent_key, key
    """
    key = ["key"] if candidates.history.keyed else []
    under = [*PARTITION, *key]
    found = _deliveries(candidates.reads("intact"), also=key)
    senders = candidates.senders().selectExpr(
        "record_id", *(f"{name} as sent_{name}" for name in under), _SENT, _ACKNOWLEDGED
    )
    if key:
        alike = " and ".join(f"{name} <=> sent_{name}" for name in under)
        as_sent = F.expr(f"found.record_id = senders.record_id and {alike}")
        found = found.alias("found").join(senders.alias("senders"), on=as_sent, how="left_anti")
    return found.join(senders, on="record_id", how="inner").selectExpr(
        *OF_READ, *(f"sent_{name}" for name in under), *key, "read_ns"
    )


def corrupted(candidates: Candidates) -> DataFrame:
    """Records whose payload fails its checksum, whatever id can be read from it.

    Guarantee: a consumer gets the bytes that were produced; batches carry a CRC (KIP-98, message format). Returns:
    RECORD, read_ns
    """
    without_id = candidates.history.reads.where("not intact and record_id is null")
    damaged = candidates.reads("not intact").unionAll(without_id)
    return with_times(_deliveries(damaged), candidates.sends()).selectExpr(*OF_READ, "read_ns")


def vanished(candidates: Candidates) -> DataFrame:
    """Read, then vanished: a consumer received a record at an offset, but the complete final log does not have it
    there. (In a compacted topic: it does not have it at any offset.) With two leader epochs it was there twice, and
    counts twice.

    Guarantee: only committed messages are served to consumers (Kafka design, Replication): they read below the high
    watermark, and records below it must not be lost. Returns: RECORD (``acknowledged_ns`` is null if it was
    acknowledged at a lower offset: that was another copy, and tells nothing of this one), read_ns, read_epoch (the
    leader epoch that the consumer received with it), last_read_ns, in_transaction (as for ``lost``)
    """
    history, sends = candidates.history, candidates.sends()
    read = _by_epoch(proven(_must_remain(candidates), sends))
    found_by = [*PARTITION, "record_id"] if history.run_file.compacted else IN_LOG
    there = proven(candidates.reads("phase = 'final'"), sends).select(*found_by)
    gone = retained(history, read.join(there, on=found_by, how="left_anti").select(*read.columns))
    timed = _with_times_of_the_copy(history, gone, sends)
    others = [name for name in timed.columns if name == "in_transaction"]
    return timed.selectExpr(*OF_READ, "read_ns", "read_epoch", "last_read_ns", *others)


def with_asked(history: History) -> DataFrame:
    """The rows of ``transactions``, each with ``asked``: whether its producer requested the commit, as far as is known.

    If a record failed, it requested an abort, whatever was intended (workloads/clients/transacting.py; librdkafka
    refuses the commit, too: rdkafka.h, rd_kafka_commit_transaction). Then ``ending_ns`` is the time of that request.
    Of an imported transaction nobody knows which of its records failed, or when.
    """
    if not history.run_file.final_read:
        return history.transactions.withColumn("asked", F.expr(_ASKED.format(failed_ns="bigint(null)")))
    failed_ns = "if(outcome = 'fail', -1, completed_ns)"  # one that was refused may be known only later
    failed = (
        history.table("sends")
        .where("transaction is not null and outcome != 'ok'")
        .groupBy(*TRANSACTION)
        .agg(F.expr(f"min({failed_ns})").alias("failed_ns"))
    )
    rows = history.transactions.join(failed, on=TRANSACTION, how="left")
    return rows.select(*history.transactions.columns, F.expr(_ASKED.format(failed_ns="failed_ns")).alias("asked"))


def _by_epoch(reads: DataFrame) -> DataFrame:
    """One row for each offset, record and known leader epoch; or for each offset and record of which no epoch is known.

    Returns: as ``_deliveries``
    """
    each = _deliveries(reads.withColumn("epoch", F.expr(_KNOWN_EPOCH)), also=["epoch"])
    times = F.struct("epoch", "read_ns", "read_epoch", "last_read_ns")
    folded = each.groupBy(*IN_LOG).agg(F.collect_list(times).alias("deliveries"))
    with_epoch = "filter(deliveries, one -> one.epoch is not null)"
    rows = folded.selectExpr(*IN_LOG, f"inline(if(size({with_epoch}) > 0, {with_epoch}, deliveries))")
    return rows.select("topic", "partition", "offset", "record_id", "read_ns", "read_epoch", "last_read_ns")


def damaged_in_place(candidates: Candidates) -> int:
    """How many candidates are in the log at the offset of their acknowledgement, but as damaged bytes."""
    damaged = proven(candidates.log("not intact"), candidates.sends())
    return damaged.select(*PARTITION, "record_id").distinct().count()


def _must_remain(candidates: Candidates) -> DataFrame:
    """Live deliveries of records that must still be in the log at the end.

    A transactional record that a read_uncommitted reader received may have been aborted later; then a final read with
    read_committed does not show it. It does show a plain record (KIP-98: such a record is served at either isolation
    level once it is stable). It also hides a record whose commit was never requested, whoever received it: that is
    ``aborted_read``.
    """
    history, live = candidates.history, candidates.reads("phase = 'live'")
    if not (history.transactional and history.run_file.configuration.read_committed):
        return live
    plain = candidates.sends("transaction is null").select(*PARTITION, "record_id")
    seen = live.where(f"not ({history.read_committed})").join(plain, on=plain.columns, how="left_semi")
    asked = with_asked(history).where("asked").select(*TRANSACTION)
    hidden = candidates.sends("transaction is not null").join(asked, on=asked.columns, how="left_anti")
    committed = live.where(history.read_committed).join(hidden, on=[*PARTITION, "record_id"], how="left_anti")
    return committed.unionByName(seen)


def origins(candidates: Candidates) -> DataFrame:
    """The times when each candidate was first handed over, to any partition, and first acknowledged.

    Returns: record_id, sent_ns, acknowledged_ns, incarnations (how many incarnations handed it over)
    """
    return (
        candidates.senders()
        .selectExpr("record_id", "incarnation", _SENT, _ACKNOWLEDGED)
        .groupBy("record_id")
        .agg(
            F.min("sent_ns").alias("sent_ns"),
            F.min("acknowledged_ns").alias("acknowledged_ns"),
            F.count_distinct("incarnation").alias("incarnations"),
        )
    )


def _without_unrecorded(history: History, reads: DataFrame) -> DataFrame:
    """``reads`` without records that the journals of a partial history may lack. A producer may even have died before
    it journalled anything."""
    if not history.run_file.partial:
        return reads
    producers = ", ".join(map(str, history.run_file.workers("sends"))) or "null"
    journalled = history.sends.groupBy("worker").agg(F.max("sequence").alias("last_sequence"))
    return (
        reads.selectExpr("*", _WORKER, _SEQUENCE)
        .join(F.broadcast(journalled), on="worker", how="left")
        .where(f"sequence <= last_sequence or last_sequence is null and not coalesce(worker in ({producers}), false)")
        .select(*reads.columns)
    )


def _deliveries(reads: DataFrame, also: Sequence[str] = ()) -> DataFrame:
    """One row for each offset, record and value of the columns ``also``, no matter how often it was delivered.

    Returns: topic, partition, offset, record_id, the columns ``also``, read_ns, read_epoch, last_read_ns
    """
    folded = reads.groupBy("topic", "partition", "offset", "record_id", *also)
    return folded.agg(
        F.min("read_ns").alias("read_ns"),
        F.min("leader_epoch").alias("read_epoch"),
        F.max("read_ns").alias("last_read_ns"),
    )


def timed(history: History, found: DataFrame) -> DataFrame:
    """Records with the times of their sends. Returns: RECORD, then the other columns of ``found``"""
    return _in_order(with_times(found, _sends_of(history, found)))


def timed_as_missing(history: History, found: DataFrame) -> DataFrame:
    """Records that are missing at an offset, with the times of their sends. Returns: RECORD (``acknowledged_ns`` is
    null if it was acknowledged at a lower offset, as for ``vanished``), then the other columns of ``found``, and
    in_transaction (as for ``lost``)"""
    return _in_order(_with_times_of_the_copy(history, found, _sends_of(history, found)))


def _sends_of(history: History, found: DataFrame) -> DataFrame:
    return history.sends.join(found.select("record_id"), on="record_id", how="left_semi")


def _in_order(rows: DataFrame) -> DataFrame:
    return rows.selectExpr(*OF_READ, *(name for name in rows.columns if name not in RECORD))


def _with_times_of_the_copy(history: History, found: DataFrame, sends: DataFrame) -> DataFrame:
    """``found`` with sent_ns, acknowledged_ns and ``in_transaction`` of each record's sends to its partition.

    ``acknowledged_ns`` is null if the record was acknowledged at a lower offset: that was another copy, which tells
    nothing of this one.
    """
    also = [*in_transaction(history), "offset as acknowledged_at"]
    own = sends.selectExpr(*PARTITION, "record_id", _SENT, _ACKNOWLEDGED, *also)
    timed = found.join(own, on=[*PARTITION, "record_id"], how="left")
    here = "if(coalesce(acknowledged_at, offset) >= offset, acknowledged_ns, null)"
    return timed.withColumn("acknowledged_ns", F.expr(here)).drop("acknowledged_at")


def with_times(found: DataFrame, sends: DataFrame) -> DataFrame:
    """``found`` with sent_ns and acknowledged_ns from the sends of each record; null if there are none."""
    return found.join(sends.selectExpr("record_id", _SENT, _ACKNOWLEDGED), on="record_id", how="left")
