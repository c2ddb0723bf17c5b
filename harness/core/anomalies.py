"""The kinds of anomalies: one row for each. All other code refers to these rows.

A row has the anomaly's name, its sentence, and the promise that it breaks. Which settings excuse an anomaly is a table
of its own (harness.core.guarantees, ``PERMISSIONS``).
"""

from dataclasses import dataclass
from enum import Enum

from harness.core.sources import ISOLATION, PRODUCER, REPLICATION, SEMANTICS


@dataclass(frozen=True)
class Promise:
    """What Kafka promises, and where it says so."""

    says: str
    source: str


class Gone(Enum):
    """What the rows of an anomaly prove about a log: which records are gone, and from where."""

    ACKNOWLEDGED = "acknowledged, and not in the final log"
    MOVED = "acknowledged, and in the final log at another offset only"
    DELIVERED = "delivered to a consumer, and not in the final log"


@dataclass(frozen=True)
class Anomaly:
    """One kind of anomaly.

    ``name``: as in verdict.json. ``sentence``: the words after the count. ``promise``: what it breaks; None if it
    breaks a limit of the scenario instead. ``is_loss``: whether its records are gone. ``judged_by_record``: whether it
    follows from a truncated log (records are gone, or only a later copy is left; others get their offsets), so that
    each record is judged by whether an event that the settings permit reached it. ``of_acknowledged``: whether all
    its records are acknowledged writes; its line then also counts those. ``fate``: what happened to each record; None
    if its records are not grouped into runs of neighbours. ``gone``: what its rows prove about a log.
    ``by_coordinator``: whether the log of the transactions' coordinator may cause it (it decides how transactions end).
    ``lacks_marker``: whether the missing record is the marker that ends a transaction. ``counts_transactions``: whether
    its rows are missing records, and its count is that of their transactions. ``leaves_copy``: whether a copy of each
    record is in the final log, which may have been written late. ``sentence_without_final_read``: the sentence of a run
    whose logs were not read to their end; None if it is the same.
    """

    name: str
    sentence: str
    promise: Promise | None
    is_loss: bool = False
    judged_by_record: bool = False
    of_acknowledged: bool = False
    fate: str | None = None
    gone: Gone | None = None
    by_coordinator: bool = False
    lacks_marker: bool = False
    counts_transactions: bool = False
    leaves_copy: bool = False
    sentence_without_final_read: str | None = None

    def said(self, final_read: bool) -> str:
        """The words after its count. ``final_read``: every log of the run was read to its end."""
        return self.sentence if final_read else self.sentence_without_final_read or self.sentence

    @property
    def comes_in_ranges(self) -> bool:
        """Whether its records are reported in ranges."""
        return self.fate is not None


_ISOLATION = f"KIP-98; {ISOLATION}"
_APPENDED = "a record is in the log of a partition only if a producer sent it there"

LOST = Anomaly(
    "lost",
    "acknowledged writes are not in the final log",
    Promise("a committed record is not lost while one in-sync replica is alive", REPLICATION),
    is_loss=True,
    judged_by_record=True,
    of_acknowledged=True,
    fate="lost",
    gone=Gone.ACKNOWLEDGED,
    sentence_without_final_read="acknowledged writes were skipped by their readers",
)
UNSEEN = Anomaly(
    "unseen",
    "acknowledged writes were read by no one",
    Promise("consumers receive every committed record", REPLICATION),
    of_acknowledged=True,
)
VANISHED = Anomaly(
    "vanished",
    "records were read and then vanished",
    Promise("consumers receive committed records only, and those are not lost", REPLICATION),
    is_loss=True,
    judged_by_record=True,
    fate="vanished",
    gone=Gone.DELIVERED,
)
FAILED_BUT_PRESENT = Anomaly(
    "failed_but_present",
    "failed writes are present",
    Promise("a record that was refused before a broker took it is in no log", PRODUCER),
)
DUPLICATED = Anomaly(
    "duplicated",
    "records are in a log more than once",
    Promise(
        "an idempotent producer's record is written to the log exactly once, and none is written twice without a retry",
        f"KIP-98, KIP-679; {SEMANTICS}",
    ),
    fate="in the log more than once",
    sentence_without_final_read="records are at more than one offset",
)
PHANTOM = Anomaly("phantom", "records were read that nobody sent", Promise(_APPENDED, SEMANTICS))
MISPLACED = Anomaly(
    "misplaced",
    "records are in another partition than they were sent to, or under another key",
    Promise(
        f"{_APPENDED}, under the key that it has there: of a batch, the CRC is over keys and values",
        "Kafka documentation, Design, The Producer; KIP-98, message format",
    ),
)
CORRUPTED = Anomaly(
    "corrupted",
    "records fail their checksum, or are not in the harness's format",
    Promise("a record is read as it was written: batches carry a CRC that is checked", "KIP-98"),
)
REWRITTEN_OFFSET = Anomaly(
    "rewritten_offset",
    "offsets had more than one record",
    Promise(
        "an offset names one record for ever once that is committed: replicas truncate only what is not",
        "KIP-101, KIP-279",
    ),
    judged_by_record=True,
)
DIVERGED = Anomaly(
    "diverged",
    "records of followers are not what the final log has at their offsets",
    Promise(
        "a follower's log is its leader's: the same offsets, and the same records in the same order",
        f"{REPLICATION}; KIP-101",
    ),
)
EPOCH_FELL = Anomaly(
    "epoch_fell",
    "records stand in a log after records of a later leader epoch",
    Promise(
        "leader epochs only grow along a log: a leader appends under its own, after all that earlier leaders wrote",
        "KIP-101",
    ),
)
ACKNOWLEDGED_ELSEWHERE = Anomaly(
    "acknowledged_elsewhere",
    "records are not at the offset they were acknowledged at, but at another",
    Promise(
        "the offset reported to a producer is the record's offset in the log", "Kafka javadoc, RecordMetadata.offset"
    ),
    judged_by_record=True,
    gone=Gone.MOVED,
    leaves_copy=True,
)
REORDERED = Anomaly(
    "reordered",
    "records stand in the log after what their producer sent later",
    Promise("records of one idempotent producer are appended in the order they were sent", "KIP-98"),
    fate="in another order than they were sent",
)
REAL_TIME_ORDER = Anomaly(
    "real_time_order",
    "records stand in the log after others that were sent after their acknowledgement",
    Promise("what a leader acknowledges is in its log, and what comes later is appended after it", REPLICATION),
    judged_by_record=True,
    leaves_copy=True,
)
SKIPPED = Anomaly(
    "skipped",
    "times a reader skipped a record of the log",
    Promise(
        "a consumer receives every record of its partitions, in the order of the log",
        "Kafka documentation, Design, The Consumer",
    ),
)
WENT_BACK = Anomaly(
    "went_back",
    "deliveries were behind their reader's position",
    Promise(
        "a consumer's position only moves forward unless it seeks",
        "Kafka javadoc, KafkaConsumer, Offsets and Consumer Position",
    ),
)
TWO_OWNERS = Anomaly(
    "two_owners",
    "times two members of a group had one partition at once",
    Promise(
        "each partition is assigned to exactly one consumer of a group at a time",
        "Kafka documentation, Design, Consumer Position",
    ),
)
ABORTED_READ = Anomaly(
    "aborted_read",
    "records of aborted transactions were read with read_committed",
    Promise("with isolation.level=read_committed, records of aborted transactions are not returned", _ISOLATION),
)
EARLY_READ = Anomaly(
    "early_read",
    "records were read before their commit was asked for, or from behind an open transaction",
    Promise("with isolation.level=read_committed, nothing is returned from the first open transaction on", _ISOLATION),
)
READ_CYCLE = Anomaly(
    "read_cycle",
    "times a transaction got a record of one that depends on it",
    Promise(
        "with isolation.level=read_committed, a record is returned after its transaction is committed: if two "
        "transactions each got what the other sent, one got it before that (Adya's G1c)",
        f"{_ISOLATION}; Adya 1999, Weak Consistency, 4.2.3",
    ),
)
FRACTURED = Anomaly(
    "fractured",
    "transactions are in the final log in part",
    Promise("the writes of a transaction are visible all or not at all", "KIP-98, Summary of Guarantees"),
    judged_by_record=True,
    by_coordinator=True,
    counts_transactions=True,
)
COMMITTED_LOST = Anomaly(
    "committed_lost",
    "committed transactions are not in the final log",
    Promise(
        "a transaction whose commit was answered is committed, and its records are not lost", f"KIP-98; {REPLICATION}"
    ),
    is_loss=True,
    judged_by_record=True,
    by_coordinator=True,
    counts_transactions=True,
)
HANGING_TRANSACTION = Anomaly(
    "hanging_transaction",
    "partitions have a transaction that nobody ends",
    Promise("a transaction is completed, or aborted after transaction.timeout.ms", "KIP-98; KIP-890; KAFKA-14402"),
    judged_by_record=True,
    by_coordinator=True,
    lacks_marker=True,
)
MISSED = Anomaly(
    "missed",
    "records were committed past by the group, and processed by no member",
    Promise(
        "of what a group that commits after processing has committed, each record was processed at least once",
        SEMANTICS,
    ),
)
UNAVAILABILITY = Anomaly(
    "unavailability", "partitions acknowledged nothing for longer than the scenario allows", promise=None
)
SLOW_RECOVERY = Anomaly(
    "slow_recovery",
    "times a partition acknowledged nothing for longer after a heal than the scenario allows",
    promise=None,
)

#: Every kind, by its name.
BY_NAME: dict[str, Anomaly] = {
    anomaly.name: anomaly
    for anomaly in (
        *(LOST, UNSEEN, VANISHED, FAILED_BUT_PRESENT, DUPLICATED, PHANTOM, MISPLACED, CORRUPTED),
        *(REWRITTEN_OFFSET, DIVERGED, EPOCH_FELL, ACKNOWLEDGED_ELSEWHERE, REORDERED, REAL_TIME_ORDER),
        *(SKIPPED, WENT_BACK, TWO_OWNERS),
        *(ABORTED_READ, EARLY_READ, READ_CYCLE, FRACTURED, COMMITTED_LOST, HANGING_TRANSACTION),
        *(MISSED, UNAVAILABILITY, SLOW_RECOVERY),
    )
}
