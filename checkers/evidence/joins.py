"""Who joined the ISR of a leader term, by what brokers reported and by what faults may have done unseen."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from checkers.evidence.elections import Elections
from checkers.evidence.intervals import BEFORE
from checkers.evidence.leadership import Span


@dataclass(frozen=True)
class Join:
    """Brokers that joined the ISR of a term by ``at_ns``: an observer reported an ISR of it ``without`` them, and then
    the ``report`` with them. If ``without`` is None, they may have joined it in the term."""

    at_ns: int
    brokers: frozenset[int]
    report: Span
    without: Span | None


def joins_of(elections: Elections, number: int, backs_ns: Callable[[int], Sequence[int]]) -> Iterator[Join]:
    """Who joined the ISR in a term, or may have joined it. ``backs_ns``: the times at which a fault was over that may
    have driven a broker out of the ISR, in order.

    What an observer reports may be old, but is in order. Who is in its first report may have joined in the term if it
    was not in the last ISR before. Who is in the ISR after such a fault may have left and joined between two reports.
    """
    reports, last = elections.terms[number].reports, elections.last_before(number)
    before: dict[str, Span] = {}
    for report in reports:
        without = before.get(report.observer)
        known = without or last
        if joined := frozenset(report.isr) - frozenset(() if known is None else known.isr):
            yield Join(report.from_ns, joined, report, without)
        before[report.observer] = report
    since = elections.last_told_ns(number) - elections.lag_ns
    until = max((report.to_ns for report in reports), default=BEFORE)
    for broker in elections.replicas:
        back = backs_ns(broker)
        for back_ns in back[bisect_left(back, since) : bisect_right(back, until)]:
            told = (report for report in reports if broker in report.isr and report.to_ns >= back_ns)
            for report in islice(told, 1):
                yield Join(back_ns, frozenset({broker}), report, None)
