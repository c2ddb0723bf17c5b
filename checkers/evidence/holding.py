"""Which brokers have a record, as it becomes known, and each moment at which it did."""

from dataclasses import dataclass
from enum import Enum, StrEnum


class Has(Enum):
    """What is known of a broker and a record: it must have it, it may, or it lost its disk. Any other need not."""

    MUST = "must"
    MAY = "may"
    WIPED = "wiped"


class Why(StrEnum):
    """By what it became known of a broker whether it has a record.

    At first: it led the term (LED); it was in every ISR reported around then (IN_SYNC), in some (SOMETIMES_IN_SYNC), in
    none (NOT_IN_SYNC). Later: it was reported in the ISR of a leader that has it (JOINED); of one that may have it, or
    by a broker that may be behind (PERHAPS_JOINED); it was reported there long after its disk was wiped
    (STILL_REPORTED); nobody reported anything, so that it may have joined (UNHEARD); its disk was wiped (WIPED), while
    the record was in flight (WIPED_IN_FLIGHT); another that may lack the record was elected (DOUBTED); it followed a
    leader that lacks it (FOLLOWED), or may have (PERHAPS_FOLLOWED).

    Of a broker that was elected: it had to have the record (ELECTED), for one that was in sync (ELECTED_CLEANLY); it
    may have it (PERHAPS_ELECTED); it need not, and took it (TOOK).
    """

    LED = "led"
    IN_SYNC = "in sync"
    SOMETIMES_IN_SYNC = "sometimes in sync"
    NOT_IN_SYNC = "not in sync"
    JOINED = "joined"
    PERHAPS_JOINED = "perhaps joined"
    STILL_REPORTED = "still told"
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


#: What is known at first, when a record was appended.
AT_FIRST = (Why.LED, Why.IN_SYNC, Why.SOMETIMES_IN_SYNC, Why.NOT_IN_SYNC)


@dataclass(frozen=True)
class Change:
    """It became known that a broker has a record, may, lost it with its disk, or (None) need not have it.

    ``leader`` and ``epoch``: of the term in which. ``fault``: the injection that wiped its disk.
    """

    at_ns: int
    broker: int
    has: Has | None
    why: Why
    leader: int
    epoch: int | None
    fault: str | None = None


class Holding(dict[int, Has]):
    """What is known of each broker now. ``changes``: each moment at which that became another, and each election, in
    their order; the first are what was known at first."""

    def __init__(self) -> None:
        super().__init__()
        self.changes: list[Change] = []

    def note(self, at_ns: int, broker: int, why: Why, epoch: int | None) -> None:
        """Note what is known of a broker as it was elected."""
        self.changes.append(Change(at_ns, broker, self.get(broker), why, broker, epoch))

    def becomes(self, change: Change) -> None:
        """From now on this is known of a broker."""
        if change.has is None:
            self.pop(change.broker, None)
        else:
            self[change.broker] = change.has
        self.changes.append(change)


@dataclass(frozen=True)
class Story:
    """Who had a record, over time, if it was of one term: its leader and epoch.

    ``supposed``: if every fault acted of which nobody knows whether it did.
    """

    leader: int
    epoch: int | None
    changes: tuple[Change, ...]
    supposed: bool = False
