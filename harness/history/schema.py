"""The tables of a history: what a row of each is, and its columns. Times are ns since the run's origin.

A worker journals its tables as Arrow IPC streams, ``journals/<table>.<worker>.arrows``; a sealed run has them as
``history/<table>/*.parquet``. The schemas below are the contract between recorders and judge.
"""

from enum import StrEnum

import pyarrow as pa

from harness.core.faults import Does

_TOPIC = [pa.field("topic", pa.string(), nullable=False), pa.field("partition", pa.int32(), nullable=False)]


def _required(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


class Outcome(StrEnum):
    """What is known of an operation: it happened, it can never have happened, or nobody knows."""

    OK = "ok"
    FAIL = "fail"
    INFO = "info"


class Phase(StrEnum):
    """Why a record was read: by a consumer during the run, by the final read, or from one replica's own log."""

    LIVE = "live"
    FINAL = "final"
    REPLICA = "replica"


class PositionEvent(StrEnum):
    """What happened to a reader's position in a partition. Checkers that are SQL have these words as text."""

    ASSIGN = "assign"
    REVOKE = "revoke"
    LOST = "lost"
    SEEK = "seek"
    #: A commit is asked for; and its answer.
    COMMITTING = "committing"
    COMMIT = "commit"
    END_OF_PARTITION = "end-of-partition"
    ERROR = "error"
    LAST_STABLE = "last-stable"
    HIGH_WATERMARK = "high-watermark"
    MAY_HAVE_MOVED = "may-have-moved"


#: The events that end an assignment interval: a reader's time with a partition.
ENDS_INTERVAL = (PositionEvent.ASSIGN, PositionEvent.REVOKE, PositionEvent.LOST, PositionEvent.SEEK)


#: One row for each record handed to a producer. ``completed_ns`` is null while in flight (then ``outcome`` is info).
#: The worker chooses the partition itself, so ``partition`` is always known. ``offset`` is null where Kafka reported
#: none.
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

#: The columns that identify a partition, and a transaction.
PARTITION = ["topic", "partition"]
TRANSACTION = ["worker", "transaction"]

#: The offset of a record in an imported history that lacks it.
UNKNOWN_OFFSET = -1

#: One row for each record delivered to a reader. ``record_id`` is null where the payload is not one of ours. ``key`` is
#: UTF-8; other bytes are written as ``\xNN``. ``offset`` is UNKNOWN_OFFSET in some imported histories, never in ours.
#: ``transaction``: the transaction of the worker ``reader`` in which it polled the record; null outside of one.
#: ``poll``: the number of the reader's poll, in histories whose times do not show the order.
READS = pa.schema(
    [
        _required("reader", pa.int32()),
        _required("incarnation", pa.int32()),
        _required("phase", pa.string()),
        *_TOPIC,
        _required("offset", pa.int64()),
        pa.field("leader_epoch", pa.int32()),
        pa.field("record_id", pa.int64()),
        pa.field("key", pa.string()),
        _required("intact", pa.bool_()),
        _required("read_ns", pa.int64()),
        pa.field("poll", pa.int64()),
        pa.field("transaction", pa.int64()),
    ]
)

#: What happened to a reader's position in a partition (PositionEvent). A ``committing`` is journalled before the
#: commit is asked for; a ``commit`` is its answer. Of an ``assign`` that starts at the beginning of a log, ``offset``
#: is the log's first; null if no broker reported it. The final reader writes last-stable and high-watermark, the ends
#: of a log once all transactions should be over. The reader of a replica writes end-of-partition, the end of the
#: follower's log as the follower knew it. An imported history without rebalances has may-have-moved before a poll of a
#: group's member. ``poll``: the number of the reader's next poll, in histories whose times do not show the order.
POSITIONS = pa.schema(
    [
        _required("reader", pa.int32()),
        _required("incarnation", pa.int32()),
        _required("at_ns", pa.int64()),
        _required("event", pa.string()),
        *_TOPIC,
        pa.field("offset", pa.int64()),
        pa.field("error", pa.string()),
        pa.field("poll", pa.int64()),
    ]
)

#: One row for each transaction; ``intent`` is commit or abort. It is journalled before it happens: without
#: ``ending_ns`` its producer asked for neither. A commit without an answer is info; a transaction that was given up
#: before its producer asked for the commit is fail.
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

#: One injection and its heal. ``injection``: its own name. ``kind``: the fault's name in the catalogue, or ELECTION
#: (core.faults). ``fault``: the former name of ``injection``, with the same value. ``effective``: it was injected, and
#: acted on every node that it names. ``nodes_without_effect``: the nodes on which it is not known to have acted until
#: its end. ``nodes_not_known``: those of them on which it may have acted: for a time, or nothing was measured there
#: when it ended. ``evidence`` is JSON: packet counters of rules and queues, process states. Columns say what the fault
#: does to nodes (core.faults: Does). A cut between two groups drops what ``cut_from`` sends to ``cut_to``; with
#: ``both_ways`` also what ``cut_to`` sends. ``cuts_clients``: a cut of each node from all others cuts it from the
#: clients, too. ``plane``: the traffic that it hits.
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
        pa.field("nodes_not_known", pa.list_(pa.string())),
        *(pa.field(column, pa.bool_()) for column in Does),
        pa.field("cut_from", pa.list_(pa.string())),
        pa.field("cut_to", pa.list_(pa.string())),
        pa.field("both_ways", pa.bool_()),
        pa.field("cuts_clients", pa.bool_()),
        pa.field("plane", pa.string()),
        pa.field("injection", pa.string()),
    ]
)

#: A partition as one broker reported it. ``leader`` is -1 where that broker knows none. ``high``: the high watermark,
#: which only a leader reports; ``high_epoch``: the leader epoch that it reported with it (ListOffsets from version 4
#: on, KIP-320). ``elr``: the eligible leader replicas, if the broker reports them (DescribeTopicPartitions, KIP-966).
#: ``coordinator``: the broker that it names as the coordinator of the workload's group (FindCoordinator).
OBSERVATIONS = pa.schema(
    [
        _required("observer", pa.string()),
        _required("at_ns", pa.int64()),
        *_TOPIC,
        _required("leader", pa.int32()),
        pa.field("leader_epoch", pa.int32()),
        _required("replicas", pa.list_(pa.int32())),
        _required("isr", pa.list_(pa.int32())),
        pa.field("high", pa.int64()),
        pa.field("high_epoch", pa.int32()),
        pa.field("elr", pa.list_(pa.int32())),
        pa.field("controller", pa.int32()),
        pa.field("coordinator", pa.int32()),
    ]
)

#: How long a broker's last report counts as fresh: longer than two rounds of the observer, even if both time out. (A
#: round takes 0.25 s, or 1.25 s without an answer: harness/cluster/observer.py, wire.py.)
FRESH_NS = 3_000_000_000

#: How far the final read had to come, and how far it came. One row for every partition of the run's topics.
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

#: The allowed values of text columns that have a fixed set of them.
WORDS: dict[str, dict[str, tuple[str, ...]]] = {
    "sends": {"outcome": tuple(Outcome)},
    "reads": {"phase": tuple(Phase)},
    "positions": {"event": tuple(PositionEvent)},
    "transactions": {"outcome": tuple(Outcome), "intent": ("commit", "abort")},
}

#: Columns that an older or imported history may lack: they are then null, and no checker uses them. Either all parts of
#: a table have such a column, or none has.
LATER: dict[str, frozenset[str]] = {
    "reads": frozenset({"key", "poll", "transaction"}),
    "positions": frozenset({"poll"}),
    "observations": frozenset({"high_epoch", "elr", "controller", "coordinator"}),
    "faults": frozenset({"nodes_without_effect", "nodes_not_known", *Does, "injection"})
    | {"cut_from", "cut_to", "both_ways", "cuts_clients", "plane"},
}

#: Columns that earlier versions recorded. Nothing reads them.
FORMER: dict[str, frozenset[str]] = {"reads": frozenset({"timestamp_ms"}), "observations": frozenset({"low"})}

#: The reader number of the final read. The reader of a replica has this number plus the broker's id.
FINAL_READER = 1000

SEQUENCE_BITS = 40


def record_id(worker: int, sequence: int) -> int:
    """The id of a worker's nth record. It is unique in a run, and has both numbers in it."""
    return worker << SEQUENCE_BITS | sequence


def worker_of(record: int) -> int:
    """The worker that sent this record."""
    return record >> SEQUENCE_BITS


def sequence_of(record: int) -> int:
    """Which of its worker's records this is, counted from 0."""
    return record & ((1 << SEQUENCE_BITS) - 1)


#: Tables whose rows a journal has more than once (when begun, when done): the last row of a key counts.
KEYS: dict[str, tuple[str, ...]] = {
    "sends": ("worker", "sequence"),
    "transactions": tuple(TRANSACTION),
    "faults": ("fault",),
}
