"""Spare offsets: how many offsets of a log writes may have taken of which nobody knows that they did.

Those are writes that nobody acknowledged, those that survive elsewhere, and what a producer that is not idempotent sent
again (KIP-98): it may have been appended more than once.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from checkers.evidence.leadership import Partition
from harness.core.guarantees import Configuration

#: What is read of ``sends`` that nobody acknowledged, and of records that are acknowledged elsewhere.
COLUMNS = pa.schema([("topic", pa.string()), ("partition", pa.int32())])

#: So often one write may have been appended, and so many more of a partition may have been appended twice: no producer
#: has so many in flight when it loses its leader.
_TIMES = 4
_SENT_AGAIN = 1000


def spare_offsets(
    unacknowledged: Iterable[pa.Table],
    elsewhere: Iterable[pa.Table],
    partitions: Iterable[Partition],
    configuration: Configuration,
) -> Mapping[Partition, int]:
    """For each partition, the most offsets that such writes take. Both kinds come piece by piece, with COLUMNS; a write
    whose partition is not known may be of any."""
    found: Counter[Partition | None] = Counter()
    for piece in (*unacknowledged, *elsewhere):
        counts = piece.group_by(COLUMNS.names).aggregate([([], "count_all")])
        for topic, partition, count in zip(*(column.to_pylist() for column in counts.columns), strict=True):
            found[None if partition is None else (topic, partition)] += count
    times, again = (1, 0) if configuration.idempotence else (_TIMES, _SENT_AGAIN)
    return {of: times * (found[of] + found[None]) + again for of in partitions}


def unacknowledged() -> pc.Expression:
    """Which rows of ``sends`` tell no acknowledgement, or none with an offset."""
    return (pc.field("outcome") != "ok") | pc.is_null(pc.field("offset"))
