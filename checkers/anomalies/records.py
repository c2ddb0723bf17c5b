"""What became of each record: lost, failed but present, duplicated, phantom, corrupted, misplaced, vanished.

Every question is first asked of blocks (the catalogue's ``suspects``: bits that are almost always all zero), and only
where a bit is set of rows. A question takes the history and the ``marks`` (block, place, bits) that made it suspicious.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from checkers.history import PARTITION, History
from checkers.scan.record_bits import flagged
from harness.history.schema import SEQUENCE_BITS

#: The columns that every anomaly of a record has. ``sent_ns``, ``acknowledged_ns`` are null where it never was.
RECORD = ["topic", "partition", "offset", "record_id", "worker", "sequence", "sent_ns", "acknowledged_ns"]

#: What tells a record at an offset.
_STANDING = [*PARTITION, "record_id", "offset"]

_WORKER = f"cast(shiftright(record_id, {SEQUENCE_BITS}) as int) as worker"
_SEQUENCE = f"record_id & {(1 << SEQUENCE_BITS) - 1} as sequence"
_SENT = "invoked_ns as sent_ns"
_ACKNOWLEDGED = "if(outcome = 'ok', completed_ns, null) as acknowledged_ns"

#: RECORD as an expression on a row of ``sends``, and on a delivery joined with the times of its send.
OF_SEND = ["topic", "partition", "offset", "record_id", "worker", "sequence", _SENT, _ACKNOWLEDGED]
OF_READ = ["topic", "partition", "offset", "record_id", _WORKER, _SEQUENCE, "sent_ns", "acknowledged_ns"]


def lost(history: History, marks: DataFrame) -> DataFrame:
    """Acknowledged records absent from the complete final log of their partition.

    What was acknowledged below the log's start was deleted by retention, not lost.
    Guarantee: a committed message is not lost as long as one in-sync replica is alive (Kafka design, Replication).
    Returns: RECORD
    """
    acknowledged = retained(history, flagged(history.sends.where("outcome = 'ok'"), marks))
    damaged = flagged(history.reads.where("phase = 'final' and not intact"), marks).select(*_STANDING)
    return acknowledged.join(damaged, on=_STANDING, how="left_anti").selectExpr(*OF_SEND)


def failed_but_present(history: History, marks: DataFrame) -> DataFrame:
    """Records proven to have failed, and delivered to a reader all the same.

    Guarantee: a record refused before any broker had it cannot be in a log. Returns: RECORD, error, read_offset
    """
    failed = flagged(history.sends.where("outcome = 'fail'"), marks)
    there = flagged(history.reads.where("intact"), marks).groupBy("record_id").agg(F.min("offset").alias("read_offset"))
    return failed.join(there, on="record_id", how="inner").selectExpr(*OF_SEND, "error", "read_offset")


def duplicated(history: History, marks: DataFrame) -> DataFrame:
    """Records at two or more offsets of one partition's final log.

    Guarantee: an idempotent producer's record is written to the log once (KIP-98; by default since 3.0, KIP-679).
    Returns: RECORD (``offset`` is the first), last_offset, copies, which (``idempotent producer``; else ``same
    incarnation``: a retry; or ``across incarnations``: handed over again by a producer that replaced the first)
    """
    copies = (
        _deliveries(proven(flagged(history.reads.where("phase = 'final'"), marks), flagged(history.sends, marks)))
        .groupBy("topic", "partition", "record_id")
        .agg(F.min("offset").alias("offset"), F.max("offset").alias("last_offset"), F.count("*").alias("copies"))
        .where("copies > 1")
    )
    retried = "if(incarnations > 1, 'across incarnations', 'same incarnation')"
    which = "'idempotent producer'" if history.run_file.configuration.idempotence else retried
    return copies.join(origins(history, marks), on="record_id", how="left").selectExpr(
        *OF_READ, "last_offset", "copies", f"{which} as which"
    )


def phantom(history: History, marks: DataFrame) -> DataFrame:
    """Records delivered whole that no worker sent: an id that was never given out, or a payload that is not ours.

    Where the history is partial, an id beyond the last that its worker journalled is unrecorded, not a phantom: the
    second before a kill is not in the journal. Returns: RECORD, read_ns
    """
    whole = history.reads.where("intact")
    unsent = flagged(whole, marks).join(_senders(history, marks), on="record_id", how="left_anti")
    strange = _recorded(history, unsent.select(*whole.columns)).unionAll(whole.where("record_id is null"))
    return _deliveries(strange).selectExpr(
        *OF_READ[:6], "cast(null as bigint) as sent_ns", "cast(null as bigint) as acknowledged_ns", "read_ns"
    )


def misplaced(history: History, marks: DataFrame) -> DataFrame:
    """Records delivered from another topic or partition than they were sent to, or under another key: as no send of
    the record was. (Of the marked ones where keys are not asked about, none was sent to where it was found.)

    Guarantee: a record is appended to the partition it was sent to (Kafka design, The Producer), in the batch that its
    producer made, with its key under the batch's CRC (KIP-98, message format).
    Returns: RECORD (where it was found), sent_topic, sent_partition, read_ns; of a keyed history also sent_key, key
    """
    key = ["key"] if history.keyed else []
    under = [*PARTITION, *key]
    found = _deliveries(flagged(history.reads.where("intact"), marks), also=key)
    senders = _senders(history, marks).selectExpr(
        "record_id", *(f"{name} as sent_{name}" for name in under), _SENT, _ACKNOWLEDGED
    )
    if key:
        alike = " and ".join(f"{name} <=> sent_{name}" for name in under)
        as_sent = F.expr(f"found.record_id = senders.record_id and {alike}")
        found = found.alias("found").join(senders.alias("senders"), on=as_sent, how="left_anti")
    return found.join(senders, on="record_id", how="inner").selectExpr(
        *OF_READ, *(f"sent_{name}" for name in under), *key, "read_ns"
    )


def corrupted(history: History, marks: DataFrame) -> DataFrame:
    """Records whose payload fails its checksum, whatever id it still shows.

    Guarantee: what a consumer gets is what was produced; batches carry a CRC (KIP-98, message format). Returns: RECORD,
    read_ns
    """
    damaged = history.reads.where("not intact")
    shown = flagged(damaged, marks).unionAll(damaged.where("record_id is null"))
    return with_times(_deliveries(shown), flagged(history.sends, marks)).selectExpr(*OF_READ, "read_ns")


def vanished(history: History, marks: DataFrame) -> DataFrame:
    """Read, then vanished: delivered to a consumer during the run, absent from the complete final log.

    Guarantee: only committed messages are given out to consumers (Kafka design, Replication): they read below the high
    watermark, and what is below it is not to be lost. Returns: RECORD, read_ns
    """
    sends = flagged(history.sends, marks)
    read = _deliveries(proven(_lasting(history, marks), sends))
    damaged = flagged(history.reads.where("phase = 'final' and not intact"), marks)
    there = proven(damaged, sends).select(*PARTITION, "record_id")
    gone = retained(history, read.join(there, on=there.columns, how="left_anti").select(*read.columns))
    return with_times(gone, sends).selectExpr(*OF_READ, "read_ns")


def proven(reads: DataFrame, sends: DataFrame) -> DataFrame:
    """The ``reads`` that prove of a record that it was there: those that are whole, and where one of ``sends`` was
    acknowledged, damaged ones that show its id. Elsewhere the id that damaged bytes show proves nothing.

    Returns: the columns of ``reads``
    """
    own = sends.where("outcome = 'ok'").select(*_STANDING)
    damaged = reads.where("not intact").join(own, on=_STANDING, how="left_semi")
    return reads.where("intact").unionByName(damaged.select(*reads.columns))


def damaged_in_place(history: History, marks: DataFrame) -> int:
    """How many of the marked records are in the log as damaged bytes where they were acknowledged."""
    damaged = flagged(history.log.where("not intact"), marks)
    return proven(damaged, flagged(history.sends, marks)).select(*PARTITION, "record_id").distinct().count()


def _lasting(history: History, marks: DataFrame) -> DataFrame:
    """Deliveries during the run of what is not to be missing at the end.

    What a read_uncommitted reader was given of a transaction may be aborted, and is then no part of a final read with
    read_committed. A plain record is (KIP-98: it is given out by either isolation level once it is stable).
    """
    live = flagged(history.reads.where("phase = 'live'"), marks)
    if not (history.transactional and history.run_file.configuration.read_committed):
        return live
    plain = flagged(history.sends.where("transaction is null"), marks).select("record_id")
    seen = live.where(f"not ({history.read_committed})").join(plain, on="record_id", how="left_semi")
    return live.where(history.read_committed).unionByName(seen)


def retained(history: History, rows: DataFrame) -> DataFrame:
    """``rows`` without those below the start of the log."""
    if not any(row["log_start"] for row in history.ends):
        return rows
    starts = history.log_ends.select(*PARTITION, "log_start")
    return (
        rows.join(F.broadcast(starts), on=PARTITION, how="inner")
        .where("offset is null or offset >= log_start")
        .select(*rows.columns)
    )


def origins(history: History, marks: DataFrame) -> DataFrame:
    """When each marked record was first handed over, to whatever partition, and acknowledged.

    Returns: record_id, sent_ns, acknowledged_ns, incarnations (how many handed it over)
    """
    return (
        _senders(history, marks)
        .selectExpr("record_id", "incarnation", _SENT, _ACKNOWLEDGED)
        .groupBy("record_id")
        .agg(
            F.min("sent_ns").alias("sent_ns"),
            F.min("acknowledged_ns").alias("acknowledged_ns"),
            F.count_distinct("incarnation").alias("incarnations"),
        )
    )


def _recorded(history: History, reads: DataFrame) -> DataFrame:
    """``reads`` without those that a journal of a partial history cannot know: a producer may even have died before
    it journalled anything."""
    if not history.run_file.partial:
        return reads
    producers = ", ".join(map(str, history.run_file.workers("producer", "transactor"))) or "null"
    journalled = history.whole.sends.groupBy("worker").agg(F.max("sequence").alias("last_sequence"))
    return (
        reads.selectExpr("*", _WORKER, _SEQUENCE)
        .join(F.broadcast(journalled), on="worker", how="left")
        .where(f"sequence <= last_sequence or last_sequence is null and not coalesce(worker in ({producers}), false)")
        .select(*reads.columns)
    )


def _anywhere(marks: DataFrame) -> DataFrame:
    """The same bits, whatever the partition. Returns: block, bits"""
    return marks.groupBy("block").agg(F.bit_or("bits").alias("bits"))


def _senders(history: History, marks: DataFrame) -> DataFrame:
    """The sends, to any partition, of the records that are marked in some."""
    return flagged(history.sends, _anywhere(marks), on=["block"])


def _deliveries(reads: DataFrame, also: Sequence[str] = ()) -> DataFrame:
    """One row for each offset and record, and what is ``also`` told of it, however often and in whatever phase it was
    delivered."""
    return reads.groupBy("topic", "partition", "offset", "record_id", *also).agg(F.min("read_ns").alias("read_ns"))


def timed(history: History, found: DataFrame) -> DataFrame:
    """Records (a broadcast, where they are few) with what their sends tell. Returns: RECORD, then the other columns of
    ``found``"""
    sends = history.whole.sends.join(found.select("record_id"), on="record_id", how="left_semi")
    others = [name for name in found.columns if name not in RECORD]
    return with_times(found, sends).selectExpr(*OF_READ, *others)


def with_times(found: DataFrame, sends: DataFrame) -> DataFrame:
    return found.join(sends.selectExpr("record_id", _SENT, _ACKNOWLEDGED), on="record_id", how="left")
