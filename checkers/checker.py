"""The four kinds of checkers, one for each kind of evidence: records, the order of the log, polls, whole tables.

A checker asks the scans first. Only where they found candidates is its finder run.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial

from pyspark.sql import DataFrame

from checkers.history import History
from checkers.scan.record_bits import Candidates
from checkers.scans import Scan, Scans
from harness.core.anomalies import Anomaly
from harness.core.verdict import Judgement

#: Runs a finder. Returns a DataFrame, or None where there is nothing to be found.
Question = Callable[[], DataFrame | None]


def never(_history: History) -> bool:
    """Applies to no history."""
    return False


@dataclass(frozen=True)
class Checker(ABC):
    """Looks for one anomaly.

    ``rule``: SQL: which rows of its finder's answer are the anomaly.
    ``timed``: whether that answer has the times of the sends; to add them costs a pass over all sends, which is spared
    where nothing was found.
    ``judged``: what a run with this anomaly is at least.
    ``sentence``: what it counts, where that is not what the anomaly says itself.
    """

    anomaly: Anomaly
    _: KW_ONLY
    rule: str = "true"
    timed: bool = True
    judged: Judgement = Judgement.INVALID
    sentence: str | None = None

    @property
    def name(self) -> str:
        """The name of its anomaly."""
        return self.anomaly.name

    @property
    def said(self) -> str:
        """What is counted, in words."""
        return self.anomaly.sentence if self.sentence is None else self.sentence

    @property
    def sums(self) -> Mapping[Scan, str]:
        """What it wants counted: SQL on the rows of scans. Where all sums are 0, there are no candidates."""
        return {}

    @abstractmethod
    def applies_at_once(self, scans: Scans) -> bool:
        """Whether its finder has to be run, as far as is known without any scan but that of record bits."""

    @abstractmethod
    def ask(self, scans: Scans) -> Question | None:
        """What to run; None where there are no candidates. Waits for the scans that it needs, and for no other."""


@dataclass(frozen=True)
class RecordChecker(Checker):
    """Looks at single records. ``candidates``: SQL on record bits: the records that may be in the anomaly.

    ``foreign``: SQL on record bits: how many rows without a record id may be in it, too. ``in_order``, of a finder that
    compares records with each other: SQL on the log order: where its sum is not 0, any record may be in the anomaly.
    """

    _: KW_ONLY
    candidates: str
    find: Callable[[Candidates], DataFrame | None]
    foreign: str = "0L"
    in_order: str | None = None

    @property
    def sums(self) -> Mapping[Scan, str]:
        """How many candidates there are."""
        # The block of records without an id has no bits.
        number = f"coalesce(bit_count({self.candidates}), 0) + {self.foreign}"
        return {Scan.RECORD_BITS: number, **({Scan.LOG_ORDER: self.in_order} if self.in_order else {})}

    def applies_at_once(self, scans: Scans) -> bool:
        """Whether there are candidates."""
        return scans.count(Scan.RECORD_BITS, self.name) > 0

    def ask(self, scans: Scans) -> Question | None:
        """Look at the candidates."""
        number = scans.count(Scan.RECORD_BITS, self.name)
        compares_all = bool(number) and scans.history.compares_all
        if self.in_order and (compares_all or scans.count(Scan.LOG_ORDER, self.name)):
            return partial(self.find, scans.every_record)
        return partial(self.find, scans.candidates(self.candidates, number)) if number else None


@dataclass(frozen=True)
class OrderChecker(Checker):
    """Looks at the order of the log. ``broken``: SQL on the log order: how often it may be broken.

    ``find`` takes the unsettled records, which must be looked up in the log. ``also``: SQL on record bits: the
    records that may be in the anomaly though no order is broken.
    """

    _: KW_ONLY
    broken: str
    find: Callable[[Candidates], DataFrame | None]
    also: str = "0L"

    @property
    def sums(self) -> Mapping[Scan, str]:
        """How often the order is broken, and how many other candidates there are."""
        return {Scan.LOG_ORDER: self.broken, Scan.RECORD_BITS: f"coalesce(bit_count({self.also}), 0)"}

    def applies_at_once(self, scans: Scans) -> bool:
        """Whether there are other candidates."""
        return scans.count(Scan.RECORD_BITS, self.name) > 0

    def ask(self, scans: Scans) -> Question | None:
        """Look at the whole log."""
        if self.applies_at_once(scans) or scans.count(Scan.LOG_ORDER, self.name):
            return partial(self.find, scans.unsettled)
        return None


@dataclass(frozen=True)
class PollChecker(Checker):
    """Looks at what readers got. ``suspicious``: SQL on a poll: whether it may be in the anomaly.

    ``applies``: which histories are looked at whatever their polls are.
    """

    _: KW_ONLY
    find: Callable[[History, DataFrame], DataFrame | None]
    suspicious: str = "false"
    applies: Callable[[History], bool] = never

    @property
    def sums(self) -> Mapping[Scan, str]:
        """How many polls are suspicious."""
        return {} if self.suspicious == "false" else {Scan.POLLS: f"cast({self.suspicious} as int)"}

    def applies_at_once(self, scans: Scans) -> bool:
        """Whether it looks at the history whatever its polls are."""
        return self.applies(scans.history)

    def ask(self, scans: Scans) -> Question | None:
        """Look at the polls."""
        if self.applies(scans.history) or scans.count(Scan.POLLS, self.name):
            return partial(self.find, scans.history, scans.polls())
        return None


@dataclass(frozen=True)
class TableChecker(Checker):
    """Looks at tables that are small, or that few histories have. ``applies``: which histories it looks at."""

    _: KW_ONLY
    applies: Callable[[History], bool]
    find: Callable[[History], DataFrame | None]

    def applies_at_once(self, scans: Scans) -> bool:
        """Whether it looks at the history."""
        return self.applies(scans.history)

    def ask(self, scans: Scans) -> Question | None:
        """Look at the history."""
        return partial(self.find, scans.history) if self.applies(scans.history) else None
