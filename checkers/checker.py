"""The four kinds of checkers, one for each kind of evidence: records, log order, polls, whole tables.

A checker first asks the scans. Its finder runs only if they found candidates.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial

from pyspark.sql import DataFrame

from checkers.evidence.circumstances import Happened, nothing
from checkers.evidence.losses import Losses
from checkers.evidence.store import AnomalyStore
from checkers.history import History
from checkers.scan.record_bits import Candidates
from checkers.scans import Scan, Scans
from harness.core.anomalies import Anomaly
from harness.core.guarantees import Ruling
from harness.core.verdict import Judgement

#: Runs a finder. Returns a DataFrame, or None if there is nothing to find.
Question = Callable[[], DataFrame | None]
#: Takes the history, what all checkers found, and the losses (None if nothing is lost). Returns the ruling; None if no
#: loss caused the anomaly.
ByLoss = Callable[[History, AnomalyStore, Losses | None], Ruling | None]


def never(_history: History) -> bool:
    """False: a condition that applies to no history."""
    return False


@dataclass(frozen=True)
class Checker(ABC):
    """Looks for one anomaly.

    ``rule``: SQL that selects the anomaly's rows in the finder's result. ``timed``: whether the result has the times of
    the sends; if not, they are added only when something was found, for that costs a pass over all sends. ``judged``:
    the verdict of a run with this anomaly, at least. ``happened``: what happened in the run, as far as the anomaly's
    standing depends on it (not used if it is judged by record). ``by_loss``: the ruling on what would be a violation,
    if a loss caused it.
    """

    anomaly: Anomaly
    _: KW_ONLY
    rule: str = "true"
    timed: bool = True
    judged: Judgement = Judgement.INVALID
    happened: Happened = nothing
    by_loss: ByLoss | None = None

    @property
    def name(self) -> str:
        """The name of its anomaly."""
        return self.anomaly.name

    @property
    def sums(self) -> Mapping[Scan, str]:
        """The sums that it needs: SQL on the rows of scans. If all sums are 0, there are no candidates."""
        return {}

    @abstractmethod
    def applies_at_once(self, scans: Scans) -> bool:
        """Whether its finder must run, and needs no other scan than that of record bits."""

    @abstractmethod
    def questions(self, scans: Scans) -> Iterator[Question]:
        """Each finder to run; none if there are no candidates. The result of the last one counts. Waits only for the
        scans that it needs."""


@dataclass(frozen=True)
class RecordChecker(Checker):
    """Looks at single records. ``candidates``: SQL on record bits that selects the records that may be in the anomaly.

    ``foreign``: SQL on record bits that counts rows without a record id that may be in the anomaly. ``in_order``: SQL
    on the log order, for a finder that compares records with each other. If its sum is not 0, any record may be in the
    anomaly.
    """

    _: KW_ONLY
    candidates: str
    find: Callable[[Candidates], DataFrame | None]
    foreign: str = "0L"
    in_order: str | None = None

    @property
    def sums(self) -> Mapping[Scan, str]:
        """The number of candidates."""
        # The block of records without an id has no bits.
        number = f"coalesce(bit_count({self.candidates}), 0) + {self.foreign}"
        return {Scan.RECORD_BITS: number, **({Scan.LOG_ORDER: self.in_order} if self.in_order else {})}

    def applies_at_once(self, scans: Scans) -> bool:
        """Whether there are candidates, and the log order cannot add any."""
        number = scans.count(Scan.RECORD_BITS, self.name)
        return number > 0 and (self.in_order is None or scans.history.compares_all)

    def questions(self, scans: Scans) -> Iterator[Question]:
        """Run the finder on the candidates. If the log order shows that any record may be in the anomaly, run it on all
        records. (It hardly ever does, and the candidates need not wait for it.)"""
        number = scans.count(Scan.RECORD_BITS, self.name)
        compares_all = self.in_order is not None and number > 0 and scans.history.compares_all
        if number and not compares_all:
            yield partial(self.find, scans.candidates(self.candidates, number))
        if compares_all or (self.in_order and scans.count(Scan.LOG_ORDER, self.name)):
            yield partial(self.find, scans.every_record)


@dataclass(frozen=True)
class OrderChecker(Checker):
    """Looks at the order of the log. ``broken``: SQL on the log order that counts how often the order may be broken.

    ``find`` takes the unsettled records, which must be looked up in the log. ``also``: SQL on record bits that selects
    records that may be in the anomaly even if no order is broken.
    """

    _: KW_ONLY
    broken: str
    find: Callable[[Candidates], DataFrame | None]
    also: str = "0L"

    @property
    def sums(self) -> Mapping[Scan, str]:
        """How often the order is broken, and the number of other candidates."""
        return {Scan.LOG_ORDER: self.broken, Scan.RECORD_BITS: f"coalesce(bit_count({self.also}), 0)"}

    def applies_at_once(self, scans: Scans) -> bool:
        """Whether there are other candidates."""
        return scans.count(Scan.RECORD_BITS, self.name) > 0

    def questions(self, scans: Scans) -> Iterator[Question]:
        """Run the finder on the unsettled records."""
        if self.applies_at_once(scans) or scans.count(Scan.LOG_ORDER, self.name):
            yield partial(self.find, scans.unsettled)


@dataclass(frozen=True)
class PollChecker(Checker):
    """Looks at the polls of readers. ``suspicious``: SQL on a poll: whether it may be in the anomaly.

    ``applies``: the histories that are looked at whatever their polls are.
    """

    _: KW_ONLY
    find: Callable[[History, DataFrame], DataFrame | None]
    suspicious: str = "false"
    applies: Callable[[History], bool] = never

    @property
    def sums(self) -> Mapping[Scan, str]:
        """The number of suspicious polls."""
        return {} if self.suspicious == "false" else {Scan.POLLS: f"cast({self.suspicious} as int)"}

    def applies_at_once(self, scans: Scans) -> bool:
        """Whether it looks at the history whatever its polls are."""
        return self.applies(scans.history)

    def questions(self, scans: Scans) -> Iterator[Question]:
        """Run the finder on the polls."""
        if self.applies(scans.history) or scans.count(Scan.POLLS, self.name):
            yield partial(self.find, scans.history, scans.polls())


@dataclass(frozen=True)
class TableChecker(Checker):
    """Looks at whole tables that are small, or that few histories have. ``applies``: the histories that it looks at."""

    _: KW_ONLY
    applies: Callable[[History], bool]
    find: Callable[[History], DataFrame | None]

    def applies_at_once(self, scans: Scans) -> bool:
        """Whether it looks at the history."""
        return self.applies(scans.history)

    def questions(self, scans: Scans) -> Iterator[Question]:
        """Run the finder on the history."""
        if self.applies(scans.history):
            yield partial(self.find, scans.history)
