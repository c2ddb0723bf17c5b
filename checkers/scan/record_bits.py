"""The scan of sends and reads: what is known about every record, 64 records to a row.

``record_id`` counts up per worker, so a worker's records ``64 n … 64 n + 63`` share a *block*, and each fact about one
of them is a bit: bit ``record_id & 63`` of ``acknowledged`` is set if it was acknowledged. Spark folds a history into
blocks by ``bit_or`` before it shuffles anything, and a condition on all records is bit arithmetic on blocks.

Eight records of one worker, 0 to 7, in a history with a complete final read:

    record   sent           final read            bits
    0        ok @0          @0                    acknowledged, found
    1        ok @1          nowhere               acknowledged                   ABSENT
    2        ok @2          @2 and @7             acknowledged, found            COPIED: 7 copies of 6 records
    3        info           @3                    undecided, found
    4        fail           @4                    failed, found                  FAILED_BUT_READ
    5        ok @5          @6                    acknowledged, found            MOVED: the digests differ
    6        ok @8          damaged at @8         acknowledged, damaged          MAY_BE_DAMAGED_IN_PLACE
    7        never          @9                    found                          UNSENT

As bits, record 7 first: acknowledged 01100111, undecided 00001000, failed 00010000, found 10111101, damaged 01000000.
ABSENT are ``acknowledged & ~found`` = 01000010: records 1 and 6. From their rows the finder decides which are lost.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from checkers.history import PARTITION, History

#: The key of a row: the records of one block in one partition.
OF_BLOCK = ["topic", "partition", "block"]

#: The most rows of a broadcast (some 40 bytes each): they fit in the driver's memory next to everything else.
FEW = 1 << 20

BLOCK = "shiftright(record_id, 6)"
BIT = "shiftleft(1L, cast(record_id & 63 as int))"
#: The same of 64 offsets.
OFFSET_BLOCK = "shiftright(offset, 6)"
OFFSET_BIT = "shiftleft(1L, cast(offset & 63 as int))"
_NONE = "0L"

#: The bits that a row of ``sends`` adds to its block.
_SENT = {
    "acknowledged": f"if(outcome = 'ok', {BIT}, 0L)",
    "failed": f"if(outcome = 'fail', {BIT}, 0L)",
    "undecided": f"if(outcome = 'info', {BIT}, 0L)",
}

#: A digest of the records' offsets: the sum of one hash of 40 bits for each pair of record and offset (in a keyed
#: history: each triple with its key). If the digests of the acknowledgements and of the final log are equal, the final
#: log has exactly the records with an acknowledged offset, there, and under their keys (except for a chance of 1 in
#: 2^40). If each record was seen three times where the final log has it, the digest of the sightings is three times
#: that of the final log. A sum cannot overflow before 2^23 rows of a block.
_DIGEST = "if({rows}, shiftrightunsigned(xxhash64({placed}), 24), 0L)"
_SENT_TO = {"acknowledged_at": "outcome = 'ok' and offset is not null"}
_READ_AT = {
    "found_at": "phase = 'final' and intact and record_id is not null",
    "seen_at": "phase != 'final' and intact and record_id is not null",
}

#: The bits that a row of ``reads`` adds. ``damaged``: its checksum is wrong, so its id is not reliable. ``whole``:
#: delivered intact in any phase.
_READ = {
    "found": f"if(phase = 'final' and intact, {BIT}, 0L)",
    "delivered": f"if(phase = 'live' and intact, {BIT}, 0L)",
    "whole": f"if(intact, {BIT}, 0L)",
    "damaged": f"if(intact, 0L, {BIT})",
}

#: Counts in addition to the bits, because a row may have no record id, and a record may have several rows.
_COUNTED = {
    "copies": "cast(phase = 'final' and intact and record_id is not null as bigint)",
    "corrupt": "cast(not intact as bigint)",
    "foreign": "cast(intact and record_id is null as bigint)",
    "sightings": "cast(phase != 'final' and intact and record_id is not null as bigint)",
}

# Conditions on a row of record bits, as SQL. Most result in bits: those of the block's records that may meet the
# condition.

#: Records that a worker sent to this partition.
SENT = "(acknowledged | failed | undecided)"
#: Acknowledged records that the complete final log does not have intact.
ABSENT = "if(complete, acknowledged & ~found, 0L)"
#: Acknowledged records that no consumer got intact.
UNREAD = "acknowledged & ~delivered"
#: Sent records that the final log has, whatever their outcome; those whose outcome is not known.
SURVIVED = f"{SENT} & found"
UNDECIDED_BUT_FOUND = "undecided & found"
#: Records that are in the final log, or were delivered, though it is certain that they failed.
FAILED_BUT_READ = "failed & (found | delivered)"
#: The final log has a record of the block more than once.
HAS_COPIES = "copies > bit_count(found)"
COPIED = f"if({HAS_COPIES}, found, 0L)"
#: Damaged bytes prove a record at the offset of its acknowledgement (scan.in_log.proven).
MAY_BE_DAMAGED_IN_PLACE = "acknowledged & damaged"
#: Those of them that the final log has intact, too; those that it has not.
DAMAGED_AND_FOUND = f"{MAY_BE_DAMAGED_IN_PLACE} & found"
ONLY_DAMAGED = f"{MAY_BE_DAMAGED_IN_PLACE} & ~found"
#: Records that were read intact, though no worker sent them to this partition.
UNSENT = f"whole & ~{SENT}"
#: The final log does not have the block's records at their acknowledged offsets.
MOVED = "acknowledged_at != found_at"
#: How often readers other than the final one got each of the block's records, if all equally often.
_TIMES = "(sightings div greatest(copies, 1L))"
#: These readers did not get exactly the records of the final log, all equally often, at the same offsets and under the
#: same keys; or a reader, maybe the final one, got damaged bytes.
SEEN_ELSEWHERE = f"sightings > 0 and (seen_at != found_at * {_TIMES} or damaged != 0)"
#: Records that consumers may have got at another offset than that in the final log.
READ_ELSEWHERE = f"if({SEEN_ELSEWHERE}, delivered, 0L)"
#: Records that consumers may have got where the complete final log does not have them.
MAY_HAVE_VANISHED = f"if(complete, delivered & ~found | {MAY_BE_DAMAGED_IN_PLACE} | {READ_ELSEWHERE}, 0L)"
#: Records that may have been at another offset.
STRAYED = f"if(acknowledged != 0 and {MOVED} or {SEEN_ELSEWHERE}, acknowledged | whole, 0L)"
#: The acknowledged records and those in the final log are the same: each once, intact, at its acknowledged offset.
SETTLED = f"acknowledged_at = found_at and found = acknowledged and not ({HAS_COPIES}) and damaged = 0"
#: Records whose acknowledgement does not say where they are: they must be looked up in the final log.
UNSETTLED = f"if({SETTLED}, 0L, found | acknowledged)"
#: Records whose key was not compared by the digest of the block.
REKEYED = f"if(keyed, {UNSETTLED} | {STRAYED}, 0L)"
#: Every record that was acknowledged or read.
EVERY = "acknowledged | whole"


def without_final_read(bits: str) -> str:
    """The same bits of a run without a final read: what consumers got stands for its final log."""
    return bits.replace("found", "delivered")


@dataclass(frozen=True)
class Candidates:
    """Records of a history that may be in an anomaly.

    ``bits``: topic, partition, block, bits (of the records), copied (whether the final log has a record of the block
    more than once); None: every record may be.
    """

    history: History
    bits: DataFrame | None

    def sends(self, condition: str = "true") -> DataFrame:
        """The candidates' rows of ``sends`` that meet a condition, in the partition where they are candidates."""
        return self._rows(self.history.sends.where(condition))

    def reads(self, condition: str = "true") -> DataFrame:
        """The same rows of ``reads``."""
        return self._rows(self.history.reads.where(condition))

    def log(self, condition: str = "true") -> DataFrame:
        """The same rows of the log."""
        return self._rows(self.history.log.where(condition))

    def senders(self) -> DataFrame:
        """The candidates' rows of ``sends`` in any partition."""
        if self.bits is None:
            return self.history.sends
        anywhere = self.bits.groupBy("block").agg(F.bit_or("bits").alias("bits"))
        return _with_bits(self.history.sends, anywhere, ["block"])

    def _rows(self, rows: DataFrame) -> DataFrame:
        return rows if self.bits is None else _with_bits(rows, self.bits.select(*OF_BLOCK, "bits"), OF_BLOCK)


def record_bits(history: History) -> DataFrame:
    """One row for each block and partition: the bits above, the counts, and whether the final read is complete.

    Returns: topic, partition, block, the names of the tables above, rows (of sends and reads), complete, keyed (whether
    the digests include keys)
    """
    of_block = {"topic": "topic", "partition": "partition", "block": BLOCK}
    placed = "record_id, offset, key" if history.keyed else "record_id, offset"
    sent_to, read_at = (
        {name: _DIGEST.format(rows=rows, placed=placed) for name, rows in digests.items()}
        for digests in (_SENT_TO, _READ_AT)
    )
    sent = history.sends.selectExpr(
        *_named({**of_block, **_SENT, **sent_to, **_nothing({**_READ, **_READ_AT, **_COUNTED})})
    )
    read = history.reads.selectExpr(
        *_named({**of_block, **_nothing({**_SENT, **_SENT_TO}), **_READ, **read_at, **_COUNTED})
    )
    # If there is only one topic, as in most runs, Spark need not compare its name in every row.
    only = {name: F.expr(value) for name, value in history.same("sends", "reads").items() if name == "topic"}
    folded = (
        sent.unionByName(read)
        .groupBy(*(name for name in OF_BLOCK if name not in only))
        .agg(
            *(F.bit_or(name).alias(name) for name in (*_SENT, *_READ)),
            *(F.sum(name).alias(name) for name in (*_SENT_TO, *_READ_AT, *_COUNTED)),
            F.count("*").alias("rows"),
        )
        .withColumns(only)
    )
    ends = history.log_ends.select(*PARTITION, "complete")
    return folded.join(F.broadcast(ends), on=PARTITION, how="left").selectExpr(
        *(*OF_BLOCK, *_SENT, *_SENT_TO, *_READ, *_READ_AT, *_COUNTED, "rows"),
        "coalesce(complete, false) as complete",
        f"{str(history.keyed).lower()} as keyed",
    )


def candidates(history: History, folded: DataFrame, bits: str, number: int) -> Candidates:
    """The records whose bit is set in ``bits``, SQL on a row of record bits; at most ``number``."""
    found = folded.selectExpr(*OF_BLOCK, f"{bits} as bits", f"{HAS_COPIES} as copied").where("bits != 0")
    return Candidates(history, F.broadcast(found) if number <= FEW else found)


def computed_once(rows: DataFrame) -> DataFrame | None:
    """``rows``, stored until the run is judged, and broadcast if they are few; None if there are none."""
    stored = rows.persist(StorageLevel.MEMORY_AND_DISK)
    number = stored.count()
    if not number:
        return None
    return F.broadcast(stored) if number <= FEW else stored


def _with_bits(rows: DataFrame, bits: DataFrame, on: list[str]) -> DataFrame:
    """The rows of ``sends`` or ``reads`` whose bit is set. Returns: the columns of ``rows``"""
    return (
        rows.withColumn("block", F.expr(BLOCK))
        .join(bits, on=on, how="inner")
        .where(f"bits & {BIT} != 0")
        .select(*rows.columns)
    )


def _named(expressions: Mapping[str, str]) -> list[str]:
    return [f"{expression} as {name}" for name, expression in expressions.items()]


def _nothing(names: Iterable[str]) -> dict[str, str]:
    return dict.fromkeys(names, _NONE)
