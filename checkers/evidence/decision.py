"""Lost records about which the same is known, and the decision about them: its standing, and what took them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from checkers.leadership import Partition
from harness.core.anomalies import Anomaly
from harness.core.guarantees import Circumstances, Configuration, Ruling, standing
from harness.core.verdict import Standing

WORST_FIRST = (Standing.VIOLATION, Standing.UNDECIDED, Standing.PERMITTED)


@dataclass(frozen=True)
class Case:
    """Lost records of a partition about which the same facts are known.

    They were sent from ``sent_ns`` on, and acknowledged, or delivered to a consumer, by ``until_ns``; either is None if
    not known. If there are several, the last was sent at ``last_sent_ns``, and the first was acknowledged, or
    delivered, at ``first_until_ns``. ``epoch``: the leader epoch with which a consumer got them. ``hole``: the final
    log has records of one epoch below and above them. (If their own epoch is an earlier one, the hole need not be the
    reason that they are gone.) ``in_transaction``: they were sent in a transaction (None: not known). ``in_time``: of
    a transaction that hangs, whether its first write had reached the leader before its end (None: not known).
    ``fetched_ns``: the consumer that got them last fetched them then, or later (None: nobody got them).
    ``received_ns``: where brokers report no epochs, a consumer had got each of them at its offset by then (None: not
    each).
    """

    of: Partition
    sent_ns: int | None
    until_ns: int | None
    acknowledged: bool
    first_offset: int | None = None
    last_offset: int | None = None
    epoch: int | None = None
    delivered_ns: int | None = None
    hole: bool = False
    last_sent_ns: int | None = None
    first_until_ns: int | None = None
    in_transaction: bool | None = None
    in_time: bool | None = False
    fetched_ns: int | None = None
    received_ns: int | None = None


@dataclass(frozen=True)
class LossEvent:
    """The event that took records: the election of a leader, or (if ``leader`` is None) the loss of every disk that had
    them. ``in_isr``: whether that leader was in the last ISR before its election; None if not known. ``wipes``: the
    injections that wiped those disks."""

    at_ns: int
    term: int | None = None
    leader: int | None = None
    epoch: int | None = None
    in_isr: bool | None = None
    wipes: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class PossibleTerm:
    """A term to which records may belong (None: that of an unreported leader), and their standing if they do.

    In this case: ``may_have``, ``may_not_have``: as of a Decision; ``must``, ``need_not``: the brokers that must have
    had them, or need not.
    """

    term: int | None
    epoch: int | None
    standing: Standing
    may_have: frozenset[int] = frozenset()
    must: frozenset[int] = frozenset()
    need_not: frozenset[int] = frozenset()
    may_not_have: frozenset[int] = frozenset()

    def may_go_with(self, term: int) -> bool:
        """Whether, if the records belong to it, it may be permitted that the election of ``term`` took them."""
        undecided = self.standing is Standing.UNDECIDED and term in self.may_have
        return undecided or self.standing is Standing.PERMITTED


@dataclass(frozen=True)
class Decision:
    """The standing of lost records, and the reason.

    ``term``: the term to which they belong, if known. ``may_have``: the terms whose leaders may have taken them, as
    the settings permit; ``rulings``: for such terms, the ruling if their leaders did. ``may_not_have``: those whose
    leaders may have, though the settings forbid it.
    ``possible_terms``: the terms to which they may belong. ``only_event``: whether no other event
    may have taken them instead of ``event``, which the settings permit as well.
    """

    ruling: Ruling
    must: frozenset[int] = frozenset()
    unknown: frozenset[int] = frozenset()
    need_not: frozenset[int] = frozenset()
    event: LossEvent | None = None
    term: int | None = None
    may_have: frozenset[int] = frozenset()
    may_not_have: frozenset[int] = frozenset()
    rulings: Mapping[int, Ruling] = field(default_factory=dict, compare=False)
    possible_terms: tuple[PossibleTerm, ...] = field(default=(), compare=False)
    only_event: bool = True

    def may_be_forbidden(self, term: int) -> bool:
        """Whether, if the election of ``term`` may have taken the records, another may have that was not allowed to."""
        each = [one.may_not_have for one in self.possible_terms if one.may_go_with(term)]
        return any(each or [self.may_not_have])

    @property
    def taken_by(self) -> LossEvent | None:
        """The event that took them. If they are permitted, and another permitted event may have taken them: None."""
        return self.event if self.only_event or self.standing is not Standing.PERMITTED else None

    @property
    def standing(self) -> Standing:
        """The standing of the ruling."""
        return self.ruling.standing

    @property
    def rank(self) -> int:
        """Its place if decisions are in order, the worst first."""
        return WORST_FIRST.index(self.standing)


def in_each(cases: Sequence[Decision | PossibleTerm]) -> tuple[frozenset[int], frozenset[int]]:
    """The brokers that must have had the records in each of these cases, and those that need not in any."""
    must, need_not = (frozenset.intersection(*of) for of in zip(*((c.must, c.need_not) for c in cases), strict=True))
    return must, need_not


def as_acknowledged(anomaly: Anomaly, case: Case) -> Case:
    """The marker that ends a transaction is acknowledged by the whole ISR, at an unknown time."""
    return replace(case, acknowledged=True) if anomaly.lacks_marker else case


def untaken(anomaly: Anomaly, configuration: Configuration, case: Case) -> Ruling:
    """The ruling if nothing took the records: a row of the permission table may still apply by the settings alone."""
    return standing(anomaly, configuration, Circumstances(in_time=case.in_time is not False))


def undecided(anomaly: Anomaly, why: str) -> Ruling:
    assert anomaly.promise is not None
    return Ruling(Standing.UNDECIDED, why, anomaly.promise.source)
