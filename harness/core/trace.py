"""The facts of the trace of one record: checkers/trace.py finds them, harness/report/record_trace.py says them."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True)
class BrokerReport:
    """One broker's report on a partition. ``leader``: the leader's name, or None if the broker knew none."""

    observer: str
    leader: str | None
    leader_epoch: int | None
    isr: list[str]


@dataclass(frozen=True)
class Sending:
    """Who sent the record, and under which key."""

    worker: int
    incarnation: int
    key: str | None


@dataclass(frozen=True)
class Answer:
    """The error that a producer got for the record, if any."""

    error: str | None


@dataclass(frozen=True)
class Reading:
    """Who got the record, and how. ``replica``: the broker from whose own log it was read. ``other_key``: it was not
    sent under this key."""

    reader: int
    incarnation: int
    replica: str | None
    leader_epoch: int | None
    key: str | None
    other_key: bool
    intact: bool


@dataclass(frozen=True)
class InTransaction:
    """The transaction of the record. ``outcome`` is an Outcome of harness/history/schema.py."""

    worker: int
    incarnation: int
    transaction: int
    intent: str
    outcome: str
    error: str | None


class Place(StrEnum):
    """Where a reader's position is: at the moment's offset, or, if that is not known, where readers then begin."""

    OFFSET = "offset"
    BEGINNING = "beginning"
    COMMITTED = "committed, or beginning"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class PositionChange:
    """The reader to which a partition came, or that lost it, moved in it, or committed there."""

    reader: int
    incarnation: int
    place: Place


#: What the sentence for an event needs, besides the event itself, its partition and its offset.
MomentFacts = Sending | Answer | Reading | InTransaction | PositionChange


@dataclass(frozen=True)
class Moment:
    """One event of a record. ``event``: sent, acknowledged, failed, unknown, read live/final/replica; of its
    transaction: began, ending, ended; of a reader of its partition: assign, revoke, lost, seek, commit."""

    at_ns: int
    event: str
    facts: MomentFacts
    topic: str
    partition: int
    offset: int | None
    views: list[BrokerReport]
    faults: list[str]


@dataclass(frozen=True)
class FinalLog:
    """How far a log was read by the final read. ``end``: None if it is unknown."""

    start: int
    end: int | None
    read_to: int
    complete: bool


@dataclass(frozen=True)
class Instead:
    """What the final log has at an offset where the record was: another record, or none of ours."""

    offset: int
    record_id: int | None


@dataclass(frozen=True)
class InLog:
    """The offsets of a record in the final log of a partition. ``log``: None if it was not read. ``instead``: None if
    the record is there, or if nobody knows."""

    topic: str
    partition: int
    log: FinalLog | None
    offsets: list[int]
    instead: Instead | None


@dataclass(frozen=True)
class InReads:
    """Whether a record was read in a partition, if no log was read to its end, and at which known offsets."""

    topic: str
    partition: int
    read: bool
    offsets: list[int]


#: What became of a record in one partition.
Fate = InLog | InReads
