"""Who joined the ISR of a leader term, by what brokers reported and by what faults may have done unseen."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from checkers.evidence.elections import Elections
from checkers.evidence.intervals import BEFORE
from checkers.leadership import Span


@dataclass(frozen=True)
class Join:
    """Brokers that joined the ISR of a term by ``at_ns``: an observer reported an ISR of it ``without`` them, and then
    the ``report`` with them. If ``without`` is None, they may have joined it in the term."""

    at_ns: int
    brokers: frozenset[int]
    report: Span
    without: Span | None


def joins_of(elections: Elections, number: int, restarts_ns: Callable[[int], Sequence[int]]) -> Iterator[Join]:
    """Who joined the ISR in a term, or may have joined it. ``restarts_ns``: when a broker's process was started again,
    in order.

    What an observer reports may be old, but is in order. Who is in its first report may have joined in the term if it
    was not in the last ISR before. A broker leaves the ISR when it starts, if it did not before: it may have joined
    again between two reports. (Who is only cut off or paused for long is out of the ISR for longer, as a rule.)
    """
    reports, last = elections.terms[number].reports, elections.last_before(number)
    before: dict[str, Span] = {}
    for report in reports:
        without = before.get(report.observer)
        known = without or last
        if joined := frozenset(report.isr) - frozenset(() if known is None else known.isr):
            yield Join(report.from_ns, joined, report, without)
        before[report.observer] = report
    since = elections.last_reported_ns(number) - elections.lag_ns
    until = max((report.to_ns for report in reports), default=BEFORE)
    for broker in elections.replicas - {elections.terms[number].leader}:
        restarts = restarts_ns(broker)
        for at_ns in restarts[bisect_left(restarts, since) : bisect_right(restarts, until)]:
            with_it = (report for report in reports if broker in report.isr and report.to_ns >= at_ns)
            for report in islice(with_it, 1):
                yield Join(at_ns, frozenset({broker}), report, None)
