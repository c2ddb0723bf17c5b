"""The scan over sends and reads: what is known of every record, 64 records to a row.

``record_id`` counts up per worker, so a worker's records ``64 n … 64 n + 63`` share a *block*, and what is known of one
of them is a bit: bit ``record_id & 63`` of ``acknowledged`` is set where it was acknowledged. A history folds into
blocks by ``bit_or`` before anything is shuffled, and a condition on all records is bit arithmetic on blocks.

Eight records of one worker, 0 to 7, of a history whose final log was read whole:

    record   sent           final read            bits
    0        ok @0          @0                    acknowledged, found
    1        ok @1          nowhere               acknowledged                   lost
    2        ok @2          @2 and @7             acknowledged, found            COPIED: 3 copies of found records
    3        info           @3                    undecided, found
    4        fail           @4                    failed, found                  failed but present
    5        ok @5          @6                    acknowledged, found            MOVED: the digests differ
    6        ok @8          damaged at @8         acknowledged, damaged          MAY_BE_DAMAGED_IN_PLACE
    7        never          @9                    found                          UNSENT

As bits, record 7 first: acknowledged 01100111, undecided 00001000, failed 00010000, found 10111101, damaged 01000000.
Lost may be ``acknowledged & ~found`` = 01000010: records 1 and 6. Which of them is, its finder decides from their rows.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from checkers.history import PARTITION, History

#: Where a block is: the records of one block that belong to one partition make one row.
OF_BLOCK = ["topic", "partition", "block"]

#: Rows that fit a broadcast (some 40 bytes each) beside everything else that a driver holds.
FEW = 1 << 20

BLOCK = "shiftright(record_id, 6)"
BIT = "shiftleft(1L, cast(record_id & 63 as int))"
_NONE = "0L"

#: What a row of ``sends`` adds to its block.
_SENT = {
    "acknowledged": f"if(outcome = 'ok', {BIT}, 0L)",
    "failed": f"if(outcome = 'fail', {BIT}, 0L)",
    "undecided": f"if(outcome = 'info', {BIT}, 0L)",
}

#: A digest of where records are: the xor of one hash for each pair of a record and its offset (of a keyed history, each
#: triple with its key). Equal digests of the acknowledgements and of the final log mean that every record stands where
#: it was acknowledged, and under its key (but for 1 in 2^64), as long as none is in the final log twice: an even number
#: of equal hashes is none.
_SENT_TO = {"acknowledged_at": "if(outcome = 'ok' and offset is not null, {placed}, 0L)"}
_READ_AT = {
    "found_at": "if(phase = 'final' and intact and record_id is not null, {placed}, 0L)",
    "seen_at": "if(phase != 'final' and intact and record_id is not null, {placed}, 0L)",
}

#: What a row of ``reads`` adds: only of ``damaged`` ones is the checksum wrong, and no id to rely on. ``whole``:
#: delivered in any phase.
_READ = {
    "found": f"if(phase = 'final' and intact, {BIT}, 0L)",
    "delivered": f"if(phase = 'live' and intact, {BIT}, 0L)",
    "whole": f"if(intact, {BIT}, 0L)",
    "damaged": f"if(intact, 0L, {BIT})",
}

#: What is counted beside the bits, because a row may have no record id, and a record more than one row.
_COUNTED = {
    "copies": "cast(phase = 'final' and intact and record_id is not null as bigint)",
    "corrupt": "cast(not intact as bigint)",
    "foreign": "cast(intact and record_id is null as bigint)",
    "sightings": "cast(phase != 'final' and intact and record_id is not null as bigint)",
}

# Conditions on a row of record bits, as SQL. Most are bits: of those records of the block of which they may be true.

#: The final log has a record of the block more than once.
HAS_COPIES = "copies > bit_count(found)"
COPIED = f"if({HAS_COPIES}, found, 0L)"
#: Bytes that are damaged prove a record where it was acknowledged (scan.in_log.proven).
MAY_BE_DAMAGED_IN_PLACE = "acknowledged & damaged"
#: Read whole, though no worker sent it to this partition.
UNSENT = "whole & ~(acknowledged | failed | undecided)"
#: The final log does not have the block's records where they were acknowledged.
MOVED = "acknowledged_at != found_at"
#: Others than the final read saw the block's records elsewhere, damaged, or more than once.
SEEN_ELSEWHERE = "sightings > 0 and (seen_at != found_at or damaged != 0) or sightings != bit_count(delivered)"
#: What consumers got elsewhere than the final log has it, as far as is known.
READ_ELSEWHERE = f"if({SEEN_ELSEWHERE}, delivered, 0L)"
#: Records of which some may have been at another offset.
STRAYED = f"if(acknowledged != 0 and {MOVED} or {SEEN_ELSEWHERE}, acknowledged | whole, 0L)"
#: The acknowledged records and those in the final log are the same, each once, whole, at one offset.
SETTLED = f"acknowledged_at = found_at and found = acknowledged and not ({HAS_COPIES}) and damaged = 0"
#: Of these records the acknowledgement does not say where they are: the final log must be asked.
UNSETTLED = f"if({SETTLED}, 0L, found | acknowledged)"
#: Whose key was not compared by a digest of the whole block.
REKEYED = f"if(keyed, {UNSETTLED} | {STRAYED}, 0L)"
#: Every record that is said to be anywhere.
EVERY = "acknowledged | whole"


@dataclass(frozen=True)
class Candidates:
    """Records of a history that may be in an anomaly.

    ``bits``: topic, partition, block, bits (of the records), copied (whether the final log has a record of the block
    more than once); None: every record may be.
    """

    history: History
    bits: DataFrame | None

    def sends(self, condition: str = "true") -> DataFrame:
        """Their rows of ``sends`` that meet a condition, in the partition where they are candidates."""
        return self._rows(self.history.sends.where(condition))

    def reads(self, condition: str = "true") -> DataFrame:
        """Their rows of ``reads``, likewise."""
        return self._rows(self.history.reads.where(condition))

    def log(self, condition: str = "true") -> DataFrame:
        """Their rows of the log, likewise."""
        return self._rows(self.history.log.where(condition))

    def senders(self) -> DataFrame:
        """Their rows of ``sends``, to whatever partition."""
        if self.bits is None:
            return self.history.sends
        anywhere = self.bits.groupBy("block").agg(F.bit_or("bits").alias("bits"))
        return _with_bits(self.history.sends, anywhere, ["block"])

    def _rows(self, rows: DataFrame) -> DataFrame:
        return rows if self.bits is None else _with_bits(rows, self.bits.select(*OF_BLOCK, "bits"), OF_BLOCK)


def record_bits(history: History) -> DataFrame:
    """One row for each block and partition: the bits above, the counts, and whether the final read is complete.

    Returns: topic, partition, block, the names of the tables above, rows (of sends and reads), complete, keyed (whether
    the digests are of keys, too)
    """
    of_block = {"topic": "topic", "partition": "partition", "block": BLOCK}
    placed = "xxhash64(record_id, offset, key)" if history.keyed else "xxhash64(record_id, offset)"
    sent_to, read_at = (
        {name: sql.format(placed=placed) for name, sql in digest.items()} for digest in (_SENT_TO, _READ_AT)
    )
    sent = history.sends.selectExpr(
        *_named({**of_block, **_SENT, **sent_to, **_nothing({**_READ, **_READ_AT, **_COUNTED})})
    )
    read = history.reads.selectExpr(
        *_named({**of_block, **_nothing({**_SENT, **_SENT_TO}), **_READ, **read_at, **_COUNTED})
    )
    # The name of the only topic, as of most runs, need not be compared in every row.
    only = {name: F.expr(value) for name, value in history.same("sends", "reads").items() if name == "topic"}
    folded = (
        sent.unionByName(read)
        .groupBy(*(name for name in OF_BLOCK if name not in only))
        .agg(
            *(F.bit_or(name).alias(name) for name in (*_SENT, *_READ)),
            *(F.bit_xor(name).alias(name) for name in (*_SENT_TO, *_READ_AT)),
            *(F.sum(name).alias(name) for name in _COUNTED),
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
    """The records whose bit is set in ``bits``, SQL on a row of record bits: ``number`` of them at most."""
    found = folded.selectExpr(*OF_BLOCK, f"{bits} as bits", f"{HAS_COPIES} as copied").where("bits != 0")
    return Candidates(history, F.broadcast(found) if number <= FEW else found)


def computed_once(rows: DataFrame) -> DataFrame | None:
    """``rows``, stored until the run is judged, and broadcast where they are few; None where there are none."""
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
