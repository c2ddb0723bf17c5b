"""The last report before a leader term: from which ISR its leader was elected."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from checkers.evidence.intervals import BEFORE
from checkers.evidence.pauses import Quiet, heard
from checkers.leadership import LeaderTerm, Span, known_epoch, last_before

#: A leader and its epoch; and an ISR of theirs.
_Leader = tuple[int, int | None]
Isr = tuple[int, int | None, tuple[int, ...]]


@dataclass(frozen=True)
class LastReports:
    """The reports of a partition: all of them, and the ``current`` ones, of brokers that were not behind. ``pauses``:
    the times of more than LAG_NS without a report of each broker. ``lag_ns``: how old a current report may be."""

    spans: Sequence[Span]
    current: Sequence[Span]
    pauses: Quiet
    lag_ns: int

    def before(self, term: LeaderTerm) -> tuple[Span | None, Span | None]:
        """The last report before a term: of any broker, and of those that were not behind."""
        return self._last(self.spans, term), self._last(self.current, term)

    def _last(self, seen: Sequence[Span], term: LeaderTerm) -> Span | None:
        last = last_before(seen, term)
        overtaken = frozenset[tuple[int, ...]]() if last is None else self._overtaken(last, term.from_ns)
        if last is None or last.isr not in overtaken:
            return last
        left = (span for span in seen if _leader_of(span) != _leader_of(last) or span.isr not in overtaken)
        return last_before(left, term)

    def _overtaken(self, of: Span, until_ns: int) -> frozenset[tuple[int, ...]]:
        """The ISRs of this report's leader and epoch after which another one was still reported, more than a lag after
        the last report of theirs, however late that began."""
        reported = _last_times(self._of_any.get(_leader_of(of), ()), until_ns)
        latest = max(_last_times(self._of_current.get(_leader_of(of), ()), until_ns).values(), default=BEFORE)
        return frozenset(isr for isr, at in reported.items() if latest > at + self.lag_ns)

    @cached_property
    def _of_any(self) -> dict[_Leader, list[Span]]:
        return _by_leader(heard(self.spans, self.pauses))

    @cached_property
    def _of_current(self) -> dict[_Leader, list[Span]]:
        return _by_leader(heard(self.current, self.pauses))

    def come_late(self, last: Span, term: LeaderTerm) -> bool:
        """Whether a newer epoch, or another ISR, of before a term than the ``last`` one before it was first reported
        after that term was, and somebody else may be in sync by it: the leader may have been elected from it."""
        epochs = range(known_epoch(last.leader_epoch), known_epoch(term.leader_epoch))
        late = (span for epoch in epochs for span in self._of_epoch.get(epoch, ()) if span.from_ns > term.from_ns)
        return any(_may_admit_others(span, last, term.leader) and self._is_newer(span, last) for span in late)

    def _is_newer(self, report: Span, than: Span) -> bool:
        """Whether a report is newer than another one of the same epoch or an earlier one. What a broker that is behind
        reports may be old, unless nobody had reported it before, or that broker had reported the other one before."""
        isr = isr_of(than)
        return (
            (report.observer, report.from_ns) in self._current_begins
            or self._first_reported[isr_of(report)] == report.from_ns
            or any(
                (one.observer, isr_of(one)) == (report.observer, isr) and one.from_ns < report.from_ns
                for one in self._of_epoch[known_epoch(than.leader_epoch)]
            )
        )

    @cached_property
    def _current_begins(self) -> frozenset[tuple[str, int]]:
        return frozenset((span.observer, span.from_ns) for span in heard(self.current, self.pauses))

    @cached_property
    def _first_reported(self) -> dict[Isr, int]:
        """When each ISR of a leader was first reported."""
        return {isr_of(span): span.from_ns for span in reversed(self.spans)}

    @cached_property
    def _of_epoch(self) -> dict[int, list[Span]]:
        found: dict[int, list[Span]] = {}
        for span in heard(self.spans, self.pauses):
            found.setdefault(known_epoch(span.leader_epoch), []).append(span)
        return found


def _leader_of(span: Span) -> _Leader:
    return span.leader, span.leader_epoch


def isr_of(span: Span) -> Isr:
    """The leader, its epoch and the ISR of a report."""
    return span.leader, span.leader_epoch, span.isr


def _may_admit_others(report: Span, than: Span, leader: int) -> bool:
    """Whether by a report others may be in sync than by another one: one more broker, or the leader if it was not, or
    not the leader if it was."""
    more = {*report.isr} - {leader} - {*than.isr}
    return bool(more) or (leader in report.isr) != (leader in than.isr)


def _by_leader(spans: Iterable[Span]) -> dict[_Leader, list[Span]]:
    found: dict[_Leader, list[Span]] = {}
    for span in spans:
        found.setdefault(_leader_of(span), []).append(span)
    return found


def _last_times(spans: Iterable[Span], until_ns: int) -> dict[tuple[int, ...], int]:
    """When each ISR was last reported by some time."""
    found: dict[tuple[int, ...], int] = {}
    for span in spans:
        if span.from_ns <= until_ns:
            found[span.isr] = max(min(span.to_ns, until_ns), found.get(span.isr, BEFORE))
    return found
