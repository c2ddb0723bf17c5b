"""What really happened in a simulated cluster. The judge never sees it; the truth is made from it."""

from dataclasses import dataclass, field
from enum import StrEnum

from tests.simulated.log import Record

Place = tuple[str, int]


class Kind(StrEnum):
    """How a leader came to be."""

    CLEAN = "clean"
    UNCLEAN = "unclean"
    BY_HAND = "unclean, by hand"
    LAST_KNOWN = "the last known leader"
    ILLEGAL = "outside the ISR, though nothing allows it"


class Why(StrEnum):
    """Why a record is no longer in a replica's log."""

    TRUNCATED = "truncated to its leader's log"
    WIPED = "its disk was wiped"
    BUG = "a bug"


@dataclass(frozen=True)
class Election:
    """What the controller decided. ``eligible``: who could have been elected cleanly, alive or not; ``active``: who was
    alive, as the controller had it, and could lead."""

    at: int
    leader: int
    epoch: int
    eligible: frozenset[int]
    kind: Kind
    active: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Office:
    """An elected broker that learnt that it leads, with what its log was then."""

    at: int
    leader: int
    epoch: int
    end: int
    records: frozenset[Record]


@dataclass(frozen=True)
class Removal:
    """A record went out of a replica's log."""

    at: int
    broker: int
    record: Record
    why: Why


@dataclass(frozen=True)
class Acknowledgement:
    """A producer was told that its record is at an offset of its leader's log. ``holders``: who had it in truth.
    ``isr``: who was in the ISR, as that leader had it."""

    at: int
    record: Record
    leader: int
    holders: frozenset[int]
    isr: frozenset[int]


@dataclass
class Chronicle:
    """All of one partition. ``acknowledged``: every answer to a producer by the record's id, whether it arrived or not.
    ``committed``: of each record when it first was below a leader's high watermark. ``delivered``: when a reader was
    first given it. ``isrs``: each ISR from when it was the controller's. ``wipes``: when which broker's disk was lost.
    ``bug_struck``: when a bug changed what would have happened. ``appended``: when a broker put a record into its log.
    """

    replicas: tuple[int, ...]
    elections: list[Election] = field(default_factory=list)
    offices: list[Office] = field(default_factory=list)
    removals: list[Removal] = field(default_factory=list)
    acknowledged: dict[int, list[Acknowledgement]] = field(default_factory=dict)
    committed: dict[Record, int] = field(default_factory=dict)
    delivered: dict[Record, int] = field(default_factory=dict)
    isrs: list[tuple[int, frozenset[int]]] = field(default_factory=list)
    wipes: list[tuple[int, int]] = field(default_factory=list)
    bug_struck: list[int] = field(default_factory=list)
    appended: dict[tuple[int, Record], list[int]] = field(default_factory=dict)

    def was_in_sync(self, broker: int, from_ns: int, to_ns: int) -> bool:
        """Whether a broker was in an ISR of between two times, before the one that came at the second."""
        ends = [at for at, _ in self.isrs[1:]] + [to_ns]
        return any(
            broker in isr and begun < to_ns and end >= from_ns
            for (begun, isr), end in zip(self.isrs, ends, strict=True)
        )

    def gone(self, broker: int, record: Record, by: int) -> Why | None:
        """Why a broker no longer had a record that it once had; None where it had it never, or still has."""
        removed = [one for one in self.removals if (one.broker, one.record) == (broker, record) and one.at <= by]
        if not removed or self.had(broker, record, by):
            return None
        # What a bug took, or a leader's log, a wipe would have taken, too.
        wiped = any(wiped == broker and removed[-1].at <= at <= by for at, wiped in self.wipes)
        return Why.WIPED if wiped else removed[-1].why

    def had(self, broker: int, record: Record, at: int) -> bool:
        """Whether a record was in a broker's log at a time."""
        appended = [when for when in self.appended.get((broker, record), []) if when <= at]
        removed = (one.at for one in self.removals if (one.broker, one.record) == (broker, record) and one.at <= at)
        return bool(appended) and not any(when >= appended[-1] for when in removed)
