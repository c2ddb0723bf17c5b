"""What other brokers report while the leader of a term reports nothing."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from checkers.evidence.behind import LAG_NS
from checkers.evidence.intervals import BEFORE, NEVER, Window
from checkers.leadership import Span

#: By the name of each broker: times without a report from it, in order.
Quiet = Mapping[str | None, Sequence[Window]]


@dataclass(frozen=True)
class _Gap:
    """A time without a report from a leader, and the ISR that it reports next."""

    since_ns: int
    to_ns: int
    then: tuple[int, ...] | None


@dataclass(frozen=True)
class TermReports:
    """The reports of a term by its ``leader`` (a broker's name; None: unknown) and by others. ``pauses``: the times of
    more than LAG_NS without a report of each."""

    reports: Sequence[Span]
    leader: str | None
    pauses: Quiet

    @cached_property
    def counted(self) -> list[Span]:
        """Those of the leader itself, and what others began to report in its ``gaps``, unless it reports the same
        next."""
        return [report for report in self.reports if report.observer == self.leader or self._begins_in_gap(report)]

    def _begins_in_gap(self, report: Span) -> bool:
        gap = bisect_left(self.gaps, report.from_ns, key=_since) - 1
        return gap >= 0 and report.from_ns < self.gaps[gap].to_ns and report.isr != self.gaps[gap].then

    @cached_property
    def outlasting(self) -> dict[Span, list[Span]]:
        """What others began to report at most a lag before one of the ``gaps``, and still reported in it, unless the
        leader reports the same next: each report, and its parts between the pauses of its observer that reach into a
        gap. (What others reported longer, the leader contradicted.)"""
        found = {}
        for report in self.reports:
            since = [] if report.observer == self.leader else self._gaps_after(report)
            parts = heard([report], self.pauses) if since else []
            if reaching := [one for one in parts if any(at < one.to_ns for at in since)]:
                found[report] = reaching
        return found

    def _gaps_after(self, report: Span) -> list[int]:
        """The beginnings of the gaps that began at most a lag after a report, unless the leader reports the same
        next."""
        times = report.from_ns, report.from_ns + LAG_NS + 1
        first, end = (bisect_left(self.gaps, at, key=_since) for at in times)
        return [gap.since_ns for gap in self.gaps[first:end] if gap.then != report.isr]

    @cached_property
    def gaps(self) -> list[_Gap]:
        """The times of more than a lag without a report from the leader, and the time before its first and after its
        last one."""
        own = heard([report for report in self.reports if report.observer == self.leader], self.pauses)
        gaps = (_Gap(one.to_ns, other.from_ns, other.isr) for one, other in pairwise(own))
        longer = (gap for gap in gaps if gap.to_ns - gap.since_ns > LAG_NS)
        before = [_Gap(BEFORE, one.from_ns, one.isr) for one in own[:1]]
        return [*before, *longer, _Gap(self.own_until_ns, NEVER, None)]

    @cached_property
    def own_until_ns(self) -> int:
        """The last report from the leader; BEFORE if it made none."""
        return max((report.to_ns for report in self.reports if report.observer == self.leader), default=BEFORE)


def heard(spans: Sequence[Span], quiet: Quiet) -> list[Span]:
    """Reports without the ``quiet`` times of their observers, in the order of time."""
    found = []
    for span in spans:
        own, from_ns = quiet.get(span.observer, ()), span.from_ns
        for since, to in own[bisect_left(own, (from_ns, BEFORE)) :]:
            if to > span.to_ns:
                break
            found.append(replace(span, from_ns=from_ns, to_ns=since))
            from_ns = to
        found.append(replace(span, from_ns=from_ns))
    return sorted(found, key=lambda span: span.from_ns)


def _since(gap: _Gap) -> int:
    return gap.since_ns
