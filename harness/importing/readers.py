"""The position of a Jepsen client's consumer in each key, as its operations show it (docs/jepsen.md)."""

from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import dataclass, field

from harness.history.schema import MAY_HAVE_MOVED

#: Something that happens to a reader's place in a partition, and the offset that it is put to, if that is known.
Event = tuple[str, int | None]


@dataclass
class Place:
    """Where a reader stands in a partition. ``position``: behind what it got last, where that is known.
    ``moved``: how often all its partitions had been moved when it was there. ``may_rewind``: its last poll failed."""

    position: int | None = None
    moved: int = 0
    may_rewind: bool = False


@dataclass
class Reader:
    """What is known of a consumer. ``polls``: the number of its next poll. ``subscribed``: whether a group gives it its
    partitions; None where nothing was chosen yet. ``tells_rebalances``: whether its operations tell when that moves
    them. ``moved``: how often every partition may have got a new place."""

    polls: int = 1
    subscribed: bool | None = None
    tells_rebalances: bool = False
    moved: int = 0
    places: dict[int, Place] = field(default_factory=dict)

    def chooses(self, chosen: Set[int], subscribed: bool) -> Iterable[tuple[str, int]]:
        """It assigns itself partitions, or subscribes to their topics: the events, each with its partition.

        What it had and has still keeps its place (SubscriptionState.assignFromUser); so does what it got records
        of and was never seen to choose. But to go from one way to the other is to begin again: they are mutually
        exclusive.
        """
        if self.subscribed is not None and self.subscribed != subscribed:
            events = [("revoke", partition) for partition in sorted(self.places)]
            self.places.clear()
        else:
            events = [("revoke", partition) for partition in sorted(self.places.keys() - chosen)]
            for _, partition in events:
                del self.places[partition]
        if not subscribed:
            new = sorted(chosen - self.places.keys())
            events += [("assign", partition) for partition in new]
            self.places |= {partition: Place(moved=self.moved) for partition in new}
        if subscribed and not self.subscribed:
            self.tells_rebalances = False
        self.subscribed = subscribed
        return events

    def moves(self, partitions: Collection[int]) -> None:
        """A group moved these partitions: what comes next of them begins again."""
        self.places |= {partition: Place(moved=self.moved - 1) for partition in partitions}

    def arrives(self, partition: int, offsets: Sequence[int | None]) -> Event | None:
        """It gets records at these offsets, in this order: what must have happened to its place before."""
        known = [offset for offset in offsets if offset is not None]
        event = self._event(self.places.get(partition, Place()), known[0] if known else None)
        self.places[partition] = Place(known[-1] + 1 if len(known) == len(offsets) and known else None, self.moved)
        return event

    def _event(self, place: Place, first: int | None) -> Event | None:
        if place.moved < self.moved:
            return ("assign" if self.subscribed else "seek"), None
        if place.may_rewind and (place.position is None or (first is not None and first < place.position)):
            return "seek", first
        return (MAY_HAVE_MOVED, None) if self.subscribed and not self.tells_rebalances else None

    def failed(self, all_recorded: bool) -> None:
        """Its operation failed: it goes on where that ended, or goes back. ``all_recorded``: the history has what its
        polls brought; where it has not, nobody skipped that."""
        for place in self.places.values():
            place.may_rewind = True
        if not all_recorded:
            self.moved += 1
