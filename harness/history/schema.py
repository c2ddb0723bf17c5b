"""The tables of a history: what a row of each is, and its columns. Times are ns since the run's origin.

A worker journals its tables as Arrow IPC streams, ``journals/<table>.<worker>.arrows``; a sealed run has them as
``history/<table>/*.parquet``. The schemas below are the contract between those who record and those who judge.
"""

from enum import StrEnum

import pyarrow as pa

from harness.core.faults import Does

_TOPIC = [pa.field("topic", pa.string(), nullable=False), pa.field("partition", pa.int32(), nullable=False)]


def _required(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


class Outcome(StrEnum):
    """What is known of an operation: it happened, it can never have happened, or nobody can tell."""

    OK = "ok"
    FAIL = "fail"
    INFO = "info"


class Phase(StrEnum):
    """Why a record was read: by a consumer during the run, by the final read, or from one replica's own log."""

    LIVE = "live"
    FINAL = "final"
    REPLICA = "replica"


#: One row for each record handed to a producer. ``completed_ns`` is null while in flight (then ``outcome`` is info).
#: The worker chooses the partition itself, so ``partition`` is always known. ``offset`` is null where Kafka told none.
SENDS = pa.schema(
    [
        _required("worker", pa.int32()),
        _required("incarnation", pa.int32()),
        _required("sequence", pa.int64()),
        *_TOPIC,
        _required("record_id", pa.int64()),
        pa.field("key", pa.string()),
        _required("invoked_ns", pa.int64()),
        pa.field("completed_ns", pa.int64()),
        _required("outcome", pa.string()),
        pa.field("error", pa.string()),
        pa.field("offset", pa.int64()),
        pa.field("transaction", pa.int64()),
    ]
)

#: The offset of a record that another tool's history tells without one.
UNTOLD = -1

#: One row for each record delivered to a reader. ``record_id`` is null where the payload is not one of ours. ``key`` is
#: UTF-8; bytes that are none are told as ``\xNN``. ``offset`` is UNTOLD in some imported histories, never in ours.
READS = pa.schema(
    [
        _required("reader", pa.int32()),
        _required("incarnation", pa.int32()),
        _required("phase", pa.string()),
        _required("poll", pa.int64()),
        *_TOPIC,
        _required("offset", pa.int64()),
        pa.field("leader_epoch", pa.int32()),
        pa.field("record_id", pa.int64()),
        pa.field("key", pa.string()),
        _required("intact", pa.bool_()),
        _required("timestamp_ms", pa.int64()),
        _required("read_ns", pa.int64()),
    ]
)

#: What happened to a reader's place in a partition: assign, revoke, lost, seek, committing, commit, end-of-partition,
#: error. A ``committing`` is journalled before the commit is asked for; a ``commit`` is its answer.
#: Of the final reader: last-stable and high-watermark, the ends of a log once all transactions should be over.
POSITIONS = pa.schema(
    [
        _required("reader", pa.int32()),
        _required("incarnation", pa.int32()),
        _required("at_ns", pa.int64()),
        _required("event", pa.string()),
        *_TOPIC,
        pa.field("offset", pa.int64()),
        pa.field("error", pa.string()),
    ]
)

#: One row for each transaction; ``intent`` is commit or abort. Journalled before what it tells of: without
#: ``ending_ns`` its producer asked for neither. A commit that was asked for and not answered is info; one that was
#: given up before it was asked for is fail.
TRANSACTIONS = pa.schema(
    [
        _required("worker", pa.int32()),
        _required("incarnation", pa.int32()),
        _required("transaction", pa.int64()),
        _required("intent", pa.string()),
        _required("began_ns", pa.int64()),
        pa.field("ending_ns", pa.int64()),
        pa.field("ended_ns", pa.int64()),
        _required("outcome", pa.string()),
        pa.field("error", pa.string()),
    ]
)

#: One injection and its heal. ``effective``: it was injected, and acted on every node that it names. On which of them
#: it is not known to have acted is ``nodes_without_effect``. ``evidence`` is JSON: packet counters of rules and queues,
#: process states. What the fault does to nodes are columns (core.faults: Does); of a cut between two groups of nodes
#: ``cut_from`` and ``cut_to`` are those.
FAULTS = pa.schema(
    [
        _required("fault", pa.string()),
        _required("kind", pa.string()),
        _required("nodes", pa.list_(pa.string())),
        _required("injecting_ns", pa.int64()),
        pa.field("injected_ns", pa.int64()),
        pa.field("healing_ns", pa.int64()),
        pa.field("healed_ns", pa.int64()),
        _required("effective", pa.bool_()),
        _required("evidence", pa.string()),
        pa.field("nodes_without_effect", pa.list_(pa.string())),
        *(pa.field(column, pa.bool_()) for column in Does),
        pa.field("cut_from", pa.list_(pa.string())),
        pa.field("cut_to", pa.list_(pa.string())),
    ]
)

#: A partition as one broker told it. ``leader`` is -1 where that broker knows none.
OBSERVATIONS = pa.schema(
    [
        _required("observer", pa.string()),
        _required("at_ns", pa.int64()),
        *_TOPIC,
        _required("leader", pa.int32()),
        pa.field("leader_epoch", pa.int32()),
        _required("replicas", pa.list_(pa.int32())),
        _required("isr", pa.list_(pa.int32())),
        pa.field("low", pa.int64()),
        pa.field("high", pa.int64()),
    ]
)

#: Where the final read had to reach, and did. One row for every partition of the run's topics.
LOG_ENDS = pa.schema(
    [
        *_TOPIC,
        _required("log_start", pa.int64()),
        _required("log_end", pa.int64()),
        _required("read_to", pa.int64()),
        _required("complete", pa.bool_()),
    ]
)

TABLES: dict[str, pa.Schema] = {
    "sends": SENDS,
    "reads": READS,
    "positions": POSITIONS,
    "transactions": TRANSACTIONS,
    "faults": FAULTS,
    "observations": OBSERVATIONS,
    "log_ends": LOG_ENDS,
}

#: Columns that a history may lack, of before they were recorded or another tool's: they are null then, and nothing is
#: asked of them. Either all parts of a table have one or none has.
LATER: dict[str, frozenset[str]] = {
    "reads": frozenset({"key"}),
    "faults": frozenset({"nodes_without_effect", *Does, "cut_from", "cut_to"}),
}

#: The final read's number among readers. Who reads a replica is this, and the broker's id, together.
FINAL_READER = 1000

SEQUENCE_BITS = 40


def record_id(worker: int, sequence: int) -> int:
    """The id of a worker's nth record: unique in a run, and self-describing."""
    return worker << SEQUENCE_BITS | sequence


def worker_of(record: int) -> int:
    """The worker that sent this record."""
    return record >> SEQUENCE_BITS


def sequence_of(record: int) -> int:
    """Which of its worker's records this is, counted from 0."""
    return record & ((1 << SEQUENCE_BITS) - 1)


#: Tables that a journal tells more than once (begun, then done): the last row of a key is the row.
KEYS: dict[str, tuple[str, ...]] = {
    "sends": ("worker", "sequence"),
    "transactions": ("worker", "transaction"),
    "faults": ("fault",),
}
