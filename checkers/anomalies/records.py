"""What became of each record: lost, failed but present, duplicated, phantom, corrupted, misplaced, vanished.

A finder reads the rows of its candidates: the records whose bit the catalogue's condition sets (scan/record_bits.py).
Nearly always there are none, and the finder is not run.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from checkers.history import PARTITION, History
from checkers.scan.in_log import STANDING, proven, retained
from checkers.scan.record_bits import Candidates
from harness.history.schema import SEQUENCE_BITS

#: The columns that every anomaly of a record has. ``sent_ns``, ``acknowledged_ns`` are null where it never was.
RECORD = ["topic", "partition", "offset", "record_id", "worker", "sequence", "sent_ns", "acknowledged_ns"]

#: SQL on ``transactions``: somebody asked to commit it, and may have been heard.
ASKED_TO_COMMIT = "intent = 'commit' and ending_ns is not null and outcome != 'fail'"

#: SQL on reads: the least and the greatest leader epoch that consumers received.
_FIRST, _LAST = (f"{which}(leader_epoch) filter (where phase = 'live')" for which in ("min", "max"))

OF_WORKER = f"cast(shiftright(record_id, {SEQUENCE_BITS}) as int)"
_WORKER = f"{OF_WORKER} as worker"
_SEQUENCE = f"record_id & {(1 << SEQUENCE_BITS) - 1} as sequence"
_SENT = "invoked_ns as sent_ns"
_ACKNOWLEDGED = "if(outcome = 'ok', completed_ns, null) as acknowledged_ns"

#: RECORD as an expression on a row of ``sends``, and on a delivery joined with the times of its send.
OF_SEND = ["topic", "partition", "offset", "record_id", "worker", "sequence", _SENT, _ACKNOWLEDGED]
OF_READ = ["topic", "partition", "offset", "record_id", _WORKER, _SEQUENCE, "sent_ns", "acknowledged_ns"]


def lost(candidates: Candidates) -> DataFrame:
    """Acknowledged records absent from the complete final log of their partition.

    What was acknowledged below the log's start was deleted by retention, not lost; of what was acknowledged without an
    offset, in a log that does not begin at 0, nobody knows (``maybe_deleted``).
    Guarantee: a committed message is not lost as long as one in-sync replica is alive (Kafka design, Replication).
    Returns: RECORD, read_epoch (the leader epoch that consumers received with it where it was acknowledged, if they all
    received one: that leader wrote it, and that one or a later one acknowledged it), in_transaction (beside
    transactions, where acks is not all)
    """
    acknowledged = retained(candidates.history, candidates.sends("outcome = 'ok'"), maybe_deleted=False)
    telling = "phase = 'final' and not intact or phase = 'live' and intact and leader_epoch >= 0"
    there = (
        candidates.reads(telling)
        .groupBy(*STANDING)
        .agg(
            F.expr("bool_or(phase = 'final') as damaged"),
            F.expr(f"if({_FIRST} = {_LAST}, {_FIRST}, null) as read_epoch"),
        )
    )
    gone = acknowledged.join(there, on=STANDING, how="left").where("not coalesce(damaged, false)")
    return gone.selectExpr(*OF_SEND, "read_epoch", *in_transaction(candidates.history))


def in_transaction(history: History) -> list[str]:
    """The column ``in_transaction`` of sends, where what is in none may be acknowledged otherwise."""
    mixed = history.transactional and not history.run_file.configuration.acks_all
    return ["transaction is not null as in_transaction"] if mixed else []


def maybe_deleted(candidates: Candidates) -> int:
    """How many acknowledged records, of those that may be lost, retention may as well have deleted: their offset is not
    known, and their log does not begin at 0."""
    acknowledged = candidates.sends("outcome = 'ok' and offset is null")
    begun = candidates.history.log_ends.where("log_start > 0").select(*PARTITION)
    return acknowledged.join(F.broadcast(begun), on=PARTITION, how="left_semi").count()


def failed_but_present(candidates: Candidates) -> DataFrame:
    """Records proven to have failed, and delivered to a reader all the same.

    Guarantee: a record refused before any broker had it cannot be in a log. Returns: RECORD, error, read_offset
    """
    failed = candidates.sends("outcome = 'fail'")
    there = candidates.reads("intact").groupBy("record_id").agg(F.min("offset").alias("read_offset"))
    return failed.join(there, on="record_id", how="inner").selectExpr(*OF_SEND, "error", "read_offset")


def duplicated(candidates: Candidates) -> DataFrame:
    """Records at two or more offsets of one partition: in the final log, or as consumers received them.

    Guarantee: an idempotent producer's record is written to the log once (KIP-98; by default since 3.0, KIP-679).
    Returns: RECORD (``offset`` is the first), last_offset, copies, in_log (how many of them the final log has), which
    (``idempotent producer``; else ``same incarnation``: a retry; or ``across incarnations``: handed over again by a
    producer that replaced the first)
    """
    found = proven(candidates.reads("phase in ('final', 'live')"), candidates.sends())
    copies = (
        found.groupBy(*STANDING)
        .agg(F.expr("bool_or(phase = 'final')").alias("stands"))
        .groupBy("topic", "partition", "record_id")
        .agg(
            F.min("offset").alias("offset"),
            F.max("offset").alias("last_offset"),
            F.count("*").alias("copies"),
            F.count_if("stands").alias("in_log"),
        )
        .where("copies > 1")
    )
    retried = "if(incarnations > 1, 'across incarnations', 'same incarnation')"
    which = "'idempotent producer'" if candidates.history.run_file.configuration.idempotence else retried
    return copies.join(origins(candidates), on="record_id", how="left").selectExpr(
        *OF_READ, "last_offset", "copies", "in_log", f"{which} as which"
    )


def phantom(candidates: Candidates) -> DataFrame:
    """Records delivered whole that no worker sent: an id that was never used, or a payload that is not ours.

    Where the history is partial, an id beyond the last that its worker journalled is unrecorded, not a phantom: the
    second before a kill is not in the journal. Returns: RECORD, read_ns
    """
    unsent = candidates.reads("intact").join(candidates.senders(), on="record_id", how="left_anti")
    recorded = _recorded(candidates.history, unsent.select(*candidates.history.reads.columns))
    strange = recorded.unionAll(candidates.history.reads.where("intact and record_id is null"))
    return _deliveries(strange).selectExpr(
        *OF_READ[:6], "cast(null as bigint) as sent_ns", "cast(null as bigint) as acknowledged_ns", "read_ns"
    )


def misplaced(candidates: Candidates) -> DataFrame:
    """Records delivered from another topic or partition than they were sent to, or under another key: as no send of
    the record was. (Where keys are not compared, no candidate was sent to where it was found.)

    Guarantee: a record is appended to the partition it was sent to (Kafka design, The Producer), in the batch that its
    producer made, with its key under the batch's CRC (KIP-98, message format).
    Returns: RECORD (where it was found), sent_topic, sent_partition, read_ns; of a keyed history also sent_key, key
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
    """Records whose payload fails its checksum, whatever id it still shows.

    Guarantee: what a consumer gets is what was produced; batches carry a CRC (KIP-98, message format). Returns: RECORD,
    read_ns
    """
    without_id = candidates.history.reads.where("not intact and record_id is null")
    damaged = candidates.reads("not intact").unionAll(without_id)
    return with_times(_deliveries(damaged), candidates.sends()).selectExpr(*OF_READ, "read_ns")


def vanished(candidates: Candidates) -> DataFrame:
    """Read, then vanished: a consumer received a record at an offset, and the complete final log does not have it
    there. (In a compacted topic: has it nowhere.)

    Guarantee: only committed messages are served to consumers (Kafka design, Replication): they read below the high
    watermark, and what is below it is not to be lost. Returns: RECORD, read_ns, read_epoch (the leader epoch that the
    consumer received with it), in_transaction (as of what is lost)
    """
    history, sends = candidates.history, candidates.sends()
    read = _deliveries(proven(_lasting(candidates), sends))
    found_by = [*PARTITION, "record_id"] if history.run_file.compacted else STANDING
    there = proven(candidates.reads("phase = 'final'"), sends).select(*found_by)
    gone = retained(history, read.join(there, on=found_by, how="left_anti").select(*read.columns))
    also = in_transaction(history)
    rows = with_times(gone, sends, also)
    return rows.selectExpr(*OF_READ, "read_ns", "read_epoch", *(["in_transaction"] if also else []))


def damaged_in_place(candidates: Candidates) -> int:
    """How many of the candidates are in the log as damaged bytes where they were acknowledged."""
    damaged = proven(candidates.log("not intact"), candidates.sends())
    return damaged.select(*PARTITION, "record_id").distinct().count()


def _lasting(candidates: Candidates) -> DataFrame:
    """Deliveries during the run of what is not to be missing at the end.

    What a read_uncommitted reader received of a transaction may be aborted, and is then no part of a final read with
    read_committed. A plain record is (KIP-98: it is served at either isolation level once it is stable). What nobody
    asked to commit that final read hides, too, whoever received it: it is ``aborted_read``.
    """
    history, live = candidates.history, candidates.reads("phase = 'live'")
    if not (history.transactional and history.run_file.configuration.read_committed):
        return live
    plain = candidates.sends("transaction is null").select(*PARTITION, "record_id")
    seen = live.where(f"not ({history.read_committed})").join(plain, on=plain.columns, how="left_semi")
    asked = history.transactions.where(ASKED_TO_COMMIT).select("worker", "transaction")
    hidden = candidates.sends("transaction is not null").join(asked, on=asked.columns, how="left_anti")
    committed = live.where(history.read_committed).join(hidden, on=[*PARTITION, "record_id"], how="left_anti")
    return committed.unionByName(seen)


def origins(candidates: Candidates) -> DataFrame:
    """When each candidate was first handed over, to whatever partition, and acknowledged.

    Returns: record_id, sent_ns, acknowledged_ns, incarnations (how many handed it over)
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


def _recorded(history: History, reads: DataFrame) -> DataFrame:
    """``reads`` without those that the journals of a partial history cannot know of. A producer may even have died
    before it journalled anything."""
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
    """One row for each offset, record and value of the columns ``also``, however often it was delivered.

    Returns: topic, partition, offset, record_id, the columns ``also``, read_ns, read_epoch
    """
    folded = reads.groupBy("topic", "partition", "offset", "record_id", *also)
    return folded.agg(F.min("read_ns").alias("read_ns"), F.min("leader_epoch").alias("read_epoch"))


def timed(history: History, found: DataFrame) -> DataFrame:
    """Records with the times of their sends. Returns: RECORD, then the other columns of ``found``"""
    sends = history.sends.join(found.select("record_id"), on="record_id", how="left_semi")
    others = [name for name in found.columns if name not in RECORD]
    return with_times(found, sends).selectExpr(*OF_READ, *others)


def with_times(found: DataFrame, sends: DataFrame, also: Sequence[str] = ()) -> DataFrame:
    """``found`` and, of the sends of each record, sent_ns and acknowledged_ns, and ``also``; null where there are
    none."""
    return found.join(sends.selectExpr("record_id", _SENT, _ACKNOWLEDGED, *also), on="record_id", how="left")
