"""What is known about which brokers have a record, and each moment at which that changed."""

from dataclasses import dataclass
from enum import Enum, StrEnum


class Has(Enum):
    """What is known about a broker and a record: it must have it, it may have it, or its disk was wiped. Any other
    broker need not have it."""

    MUST = "must"
    MAY = "may"
    WIPED = "wiped"


class Why(StrEnum):
    """The reason for a change in what is known about a broker and a record.

    At first: the broker led the term (LED); it was in every ISR reported around then (IN_SYNC), in some
    (SOMETIMES_IN_SYNC), in none (NOT_IN_SYNC). Later: it was reported in the ISR of a leader that has the record
    (JOINED), or of one that may have it, or by a broker that may be behind (PERHAPS_JOINED); it was reported in the ISR
    long after its disk was wiped (STILL_REPORTED); there were no reports, so it may have joined (UNHEARD); its disk was
    wiped (WIPED), or was wiped while the record was in flight (WIPED_IN_FLIGHT); another broker that may lack the
    record was elected (DOUBTED); it followed a leader that lacks the record (FOLLOWED), or may have followed one
    (PERHAPS_FOLLOWED).

    For an elected broker: it had to have the record (ELECTED), because it was in sync (ELECTED_CLEANLY); it may have it
    (PERHAPS_ELECTED); it need not have it, so its election took the record (TOOK), or may have (LACKED).
    """

    LED = "led"
    IN_SYNC = "in sync"
    SOMETIMES_IN_SYNC = "sometimes in sync"
    NOT_IN_SYNC = "not in sync"
    JOINED = "joined"
    PERHAPS_JOINED = "perhaps joined"
    STILL_REPORTED = "still reported"
    UNHEARD = "unheard"
    WIPED = "wiped"
    WIPED_IN_FLIGHT = "wiped in flight"
    DOUBTED = "doubted"
    FOLLOWED = "followed"
    PERHAPS_FOLLOWED = "perhaps followed"
    ELECTED = "elected"
    ELECTED_CLEANLY = "elected cleanly"
    PERHAPS_ELECTED = "perhaps elected"
    TOOK = "took"
    LACKED = "lacked"


#: The reasons at first, when a record was appended.
AT_FIRST = (Why.LED, Why.IN_SYNC, Why.SOMETIMES_IN_SYNC, Why.NOT_IN_SYNC)


@dataclass(frozen=True)
class Change:
    """From ``at_ns`` on it is known that a broker must have a record, may have it, lost its disk, or (None) need not
    have it.

    ``leader`` and ``epoch``: the leader term at that time. ``fault``: the injection that wiped its disk.
    """

    at_ns: int
    broker: int
    has: Has | None
    why: Why
    leader: int
    epoch: int | None
    fault: str | None = None


class Holding(dict[int, Has]):
    """What is known about each broker now. ``changes``: each change of that and each election, in order, beginning with
    what was known at first."""

    def __init__(self) -> None:
        super().__init__()
        self.changes: list[Change] = []

    def note(self, at_ns: int, broker: int, why: Why, epoch: int | None) -> None:
        """Note an election, and what is known about the elected broker."""
        self.changes.append(Change(at_ns, broker, self.get(broker), why, broker, epoch))

    def becomes(self, change: Change) -> None:
        """Apply a change."""
        if change.has is None:
            self.pop(change.broker, None)
        else:
            self[change.broker] = change.has
        self.changes.append(change)


@dataclass(frozen=True)
class Story:
    """Which brokers had a record, over time, if the leader of one term appended it.

    ``supposed``: assumes that every fault acted whose effect is not known.
    """

    leader: int
    epoch: int | None
    changes: tuple[Change, ...]
    supposed: bool = False
