"""The position of a Jepsen client's consumer in each partition, as its operations show it (docs/jepsen.md)."""

from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import dataclass, field

from harness.history.schema import PositionEvent

#: A change of a reader's position in a partition, and the new offset, if that is known.
Change = tuple[PositionEvent, int | None]


@dataclass
class PartitionState:
    """A reader's position in a partition. ``next_offset``: the offset after the last record that it got at a known
    offset. ``moved``: how often all partitions of the reader had been moved by then. ``may_rewind``: its last operation
    failed. ``rewind_to``: the offset at which that operation began there, if it is known."""

    next_offset: int | None = None
    moved: int = 0
    may_rewind: bool = False
    rewind_to: int | None = None


@dataclass
class ReaderState:
    """What is known of a consumer. ``polls``: the number of its next poll. ``subscribed``: whether a group assigns its
    partitions; None before its first choice. ``tells_rebalances``: whether its operations show rebalances. ``moved``:
    how often all its partitions may have got new positions. ``began``: the first known offset of its operation in each
    partition."""

    polls: int = 1
    subscribed: bool | None = None
    tells_rebalances: bool = False
    moved: int = 0
    positions: dict[int, PartitionState] = field(default_factory=dict)
    began: dict[int, int] = field(default_factory=dict)

    def begins(self) -> None:
        """The consumer begins an operation."""
        self.began.clear()

    def chooses(self, chosen: Set[int], subscribed: bool) -> Iterable[tuple[PositionEvent, int]]:
        """The consumer assigns itself partitions, or subscribes to their topics. Returns the events, each with its
        partition.

        A partition that it keeps also keeps its position (SubscriptionState.assignFromUser). So does a partition of
        which it got records without a known choice. A change between assigning and subscribing starts anew, because the
        two are mutually exclusive.
        """
        if self.subscribed is not None and self.subscribed != subscribed:
            events = [(PositionEvent.REVOKE, partition) for partition in sorted(self.positions)]
            self.positions.clear()
        else:
            events = [(PositionEvent.REVOKE, partition) for partition in sorted(self.positions.keys() - chosen)]
            for _, partition in events:
                del self.positions[partition]
        if not subscribed:
            new = sorted(chosen - self.positions.keys())
            events += [(PositionEvent.ASSIGN, partition) for partition in new]
            self.positions |= {partition: PartitionState(moved=self.moved) for partition in new}
        if subscribed and not self.subscribed:
            self.tells_rebalances = False
        self.subscribed = subscribed
        return events

    def seeks(self, partitions: Collection[int]) -> None:
        """The consumer goes to the log start of these of its partitions."""
        new = self.positions.keys() & partitions
        self.positions |= {partition: PartitionState(next_offset=0, moved=self.moved) for partition in new}

    def moves(self, partitions: Collection[int]) -> None:
        """A group moved these partitions: the reader's positions in them start anew."""
        self.positions |= {partition: PartitionState(moved=self.moved - 1) for partition in partitions}

    def arrives(self, partition: int, offsets: Sequence[int | None]) -> Change | None:
        """The consumer gets records at these offsets, in this order. Returns the change of its position that must have
        come before."""
        known = [offset for offset in offsets if offset is not None]
        before = self.positions.get(partition, PartitionState())
        event = self._event(before, known[0] if known else None)
        # (A record at an unknown offset comes behind the last known one.)
        self.positions[partition] = PartitionState(known[-1] + 1 if known else before.next_offset, self.moved)
        if known:
            self.began.setdefault(partition, known[0])
        return event

    def _event(self, position: PartitionState, first: int | None) -> Change | None:
        if position.moved < self.moved:
            return (PositionEvent.ASSIGN if self.subscribed else PositionEvent.SEEK), None
        went_back = first is not None and position.next_offset is not None and first < position.next_offset
        began_there = first is not None and first == position.rewind_to
        if position.may_rewind and (went_back or began_there):
            return PositionEvent.SEEK, first
        return (PositionEvent.MAY_HAVE_MOVED, None) if self.subscribed and not self.tells_rebalances else None

    def failed(self, all_recorded: bool) -> None:
        """The consumer's operation failed: it continues after that operation, or goes back. ``all_recorded``: the
        history has all records that its polls brought. If it has not, the missing ones do not count as skipped."""
        for partition, position in self.positions.items():
            position.may_rewind = True
            position.rewind_to = self.began.get(partition, position.rewind_to)
        if not all_recorded:
            self.moved += 1
