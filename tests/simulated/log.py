"""A replica's log: records at offsets, and leader epochs, by which replicas agree where their logs part (KIP-101)."""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple


class Record(NamedTuple):
    """A record as it was appended: another leader may have appended the same ``id`` elsewhere."""

    offset: int
    epoch: int
    id: int


@dataclass(eq=False)
class Log:
    """``epochs`` has the start offset of each leader epoch. ``high`` is the high watermark that the replica knows, and
    ``checkpoint`` the one that it finds after a restart. Offsets of ``records`` rise; a bug may leave a hole."""

    records: list[Record] = field(default_factory=list)
    epochs: list[tuple[int, int]] = field(default_factory=list)
    end: int = 0
    high: int = 0
    checkpoint: int = 0

    @property
    def last_epoch(self) -> int | None:
        """The latest leader epoch that it knows of, with records or without."""
        return self.epochs[-1][0] if self.epochs else None

    def begin_epoch(self, epoch: int, start: int) -> None:
        """A leader's epoch begins here."""
        self.epochs = [(e, s) for e, s in self.epochs if e < epoch and s < start] + [(epoch, start)]

    def append(self, record: Record) -> None:
        """Put a record at its offset, which is at or beyond the end."""
        if self.last_epoch is None or self.last_epoch < record.epoch:
            self.begin_epoch(record.epoch, record.offset)
        self.records.append(record)
        self.end = record.offset + 1

    def read(self, offset: int, below: int, most: int) -> list[Record]:
        """The records from an offset on, at most so many."""
        first = self.index(offset)
        return [record for record in self.records[first : first + most] if record.offset < below]

    def index(self, offset: int) -> int:
        """How many records are below an offset."""
        return bisect_left(self.records, offset, key=lambda record: record.offset)

    def has(self, record: Record) -> bool:
        """Whether this very record is there."""
        index = self.index(record.offset)
        return index < len(self.records) and self.records[index] == record

    def end_of_epoch(self, epoch: int) -> tuple[int, int] | None:
        """The largest known epoch not above ``epoch``, and where it ends (OffsetsForLeaderEpoch); None: not known."""
        if self.last_epoch == epoch:
            return epoch, self.end
        higher = next((start for e, start in self.epochs if e > epoch), None)
        if higher is None:
            return None
        return max((e for e, _ in self.epochs if e <= epoch), default=epoch), higher

    def diverges(self, epoch: int | None, offset: int) -> tuple[int, int] | None:
        """Where a log that ends at ``offset`` with ``epoch`` parts from this one; None where it does not.

        Raises LookupError where this log knows no epoch so high.
        """
        if epoch is None:
            return None
        found = self.end_of_epoch(epoch)
        if found is None:
            raise LookupError(f"no epoch {epoch}")
        return found if found[0] < epoch or found[1] < offset else None

    def truncate(self, end: int) -> list[Record]:
        """Drop what stands at ``end`` or beyond, and tell it. (A bug may drop more than there is.)"""
        end = max(end, 0)
        index = self.index(end)
        gone, self.records = self.records[index:], self.records[:index]
        self.epochs = [(e, start) for e, start in self.epochs if start < end]
        self.end = min(self.end, end)
        self.high, self.checkpoint = min(self.high, self.end), min(self.checkpoint, self.end)
        return gone

    def remove(self, records: Iterable[Record]) -> list[Record]:
        """Leave a hole where these records are, and tell those that were there."""
        wanted = set(records)
        gone = [record for record in self.records if record in wanted]
        self.records = [record for record in self.records if record not in wanted]
        return gone
