"""The one pass over sends and reads: what is known of every record, 64 records to a row.

``record_id`` counts up per worker, so a worker's records ``64 n … 64 n + 63`` share a *block* and each question about
one of them is a bit: bit ``record_id & 63`` of ``acknowledged`` says that it was acknowledged. A whole history folds
into blocks by ``bit_or`` before anything is shuffled, and a question over all records is bit arithmetic on blocks.
"""

from collections.abc import Iterable, Mapping

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from checkers.history import PARTITION, History

#: Where a block is: the records of one block that belong to one partition make one row.
PLACE = ["topic", "partition", "block"]

#: Rows that fit a broadcast (some 40 bytes each) beside everything else that a driver holds.
FEW = 1 << 20

BLOCK = "shiftright(record_id, 6)"
_BIT = "shiftleft(1L, cast(record_id & 63 as int))"
_NONE = "0L"

#: What a row of ``sends`` adds to its block.
_SENT = {
    "acknowledged": f"if(outcome = 'ok', {_BIT}, 0L)",
    "failed": f"if(outcome = 'fail', {_BIT}, 0L)",
    "undecided": f"if(outcome = 'info', {_BIT}, 0L)",
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
    "found": f"if(phase = 'final' and intact, {_BIT}, 0L)",
    "delivered": f"if(phase = 'live' and intact, {_BIT}, 0L)",
    "whole": f"if(intact, {_BIT}, 0L)",
    "damaged": f"if(intact, 0L, {_BIT})",
}

#: What is counted beside the bits, because a row may have no record id, and a record more than one row.
_COUNTED = {
    "copies": "cast(phase = 'final' and intact and record_id is not null as bigint)",
    "corrupt": "cast(not intact as bigint)",
    "alien": "cast(intact and record_id is null as bigint)",
    "glances": "cast(phase != 'final' and intact and record_id is not null as bigint)",
}

#: Whether a block's acknowledged records and those in the final log are the same, each once, whole, at one offset.
_STANDS = "acknowledged_at = found_at and found = acknowledged and copies = bit_count(found) and damaged = 0"
#: The records of all other blocks: for where those stand, the final log must be asked.
UNSETTLED = f"if({_STANDS}, 0L, found | acknowledged)"
#: Every record that is said to be anywhere.
EVERY = "acknowledged | whole"


def blocks(history: History) -> DataFrame:
    """One row for each block and partition: the bits above, the counts, and whether the final read is complete.

    Returns: topic, partition, block, the names of the tables above, rows (of sends and reads), complete, keyed (whether
    the digests are of keys, too)
    """
    place = {"topic": "topic", "partition": "partition", "block": BLOCK}
    placed = "xxhash64(record_id, offset, key)" if history.keyed else "xxhash64(record_id, offset)"
    sent_to, read_at = (
        {name: sql.format(placed=placed) for name, sql in digest.items()} for digest in (_SENT_TO, _READ_AT)
    )
    sent = history.sends.selectExpr(
        *_named({**place, **_SENT, **sent_to, **_nothing({**_READ, **_READ_AT, **_COUNTED})})
    )
    read = history.reads.selectExpr(
        *_named({**place, **_nothing({**_SENT, **_SENT_TO}), **_READ, **read_at, **_COUNTED})
    )
    # The name of the only topic, as of most runs, need not be compared in every row.
    only = {name: value for name, value in history.same("sends", "reads").items() if name == "topic"}
    folded = (
        sent.unionByName(read)
        .groupBy(*(name for name in PLACE if name not in only))
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
        *(*PLACE, *_SENT, *_SENT_TO, *_READ, *_READ_AT, *_COUNTED, "rows"),
        "coalesce(complete, false) as complete",
        f"{str(history.keyed).lower()} as keyed",
    )


def flagged(rows: DataFrame, marks: DataFrame, on: list[str] | None = None) -> DataFrame:
    """The rows of ``sends`` or ``reads`` whose bit is set in ``marks`` (columns ``on``, else PLACE, and ``bits``).

    Returns: the columns of ``rows``
    """
    return (
        rows.withColumn("block", F.expr(BLOCK))
        .join(marks.select(*(on or PLACE), "bits"), on=on or PLACE, how="inner")
        .where(f"bits & {_BIT} != 0")
        .select(*rows.columns)
    )


def near(history: History, marks: DataFrame) -> History:
    """``history`` with the records of marked blocks only, in whatever partition they are, and those without an id.

    They are read once, and kept until the run is judged.
    """
    marked = F.broadcast(marks.select("block").distinct())

    def of(rows: DataFrame) -> DataFrame:
        blocked = (
            rows.withColumn("block", F.expr(BLOCK)).join(marked, on="block", how="left_semi").select(*rows.columns)
        )
        return blocked.unionByName(rows.where("record_id is null")).persist(StorageLevel.MEMORY_AND_DISK)

    return history.excerpt(of(history.sends), of(history.reads))


def few(rows: DataFrame) -> DataFrame | None:
    """``rows``, computed once, kept until the run is judged, broadcast where they fit; None where there are none."""
    kept = rows.persist(StorageLevel.MEMORY_AND_DISK)
    number = kept.count()
    if not number:
        return None
    return F.broadcast(kept) if number <= FEW else kept


def _named(expressions: Mapping[str, str]) -> list[str]:
    return [f"{expression} as {name}" for name, expression in expressions.items()]


def _nothing(names: Iterable[str]) -> dict[str, str]:
    return dict.fromkeys(names, _NONE)
