"""What each broker itself reported on a partition, and from when to when it may have led on without a report."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from checkers.evidence.behind import LAG_NS, begun_to_heal
from checkers.evidence.intervals import BEFORE, NEVER, Intervals, Window
from checkers.leadership import FRESH_NS, Span, known_epoch
from harness.core.faults import Does, Row, acted_on, does, unreached

#: The beginning and end of a time in which a fault kept a broker from acknowledging anything, and whether the fault
#: ended its process.
Kept = tuple[int, int, bool]


class OwnReports:
    """The reports of one broker on a partition, and the times in which faults kept it from acknowledging."""

    def __init__(self, spans: Sequence[Span], kept: Sequence[Kept]) -> None:
        self._spans = spans = sorted(spans, key=lambda span: span.from_ns)
        self._begun = [span.from_ns for span in spans]
        self._epochs = [*accumulate((known_epoch(span.leader_epoch) for span in spans), max)]
        self._reported = Intervals((span.from_ns, span.to_ns) for span in spans)
        silent = [
            (since, to, ends)
            for since, to, ends in kept
            if not any(begun < to and since < over for begun, over in self._reported.meeting(since, to))
        ]
        self._silent = Intervals((since, to) for since, to, _ in silent)
        self._ended = Intervals((since, to) for since, to, ends in silent if ends)
        self._ends = sorted(since for since, _, ends in kept if ends)
        self._backs = [(since, to) for since, to, ends in kept if ends]

    def after_ns(self, at_ns: int) -> int:
        """The beginning of its first report after a time that differs from the one before; NEVER if there is none."""
        then = bisect_right(self._begun, at_ns)
        return self._begun[then] if then < len(self._begun) else NEVER

    def heard_ns(self, at_ns: int) -> int:
        """The time of its first report from ``at_ns`` on; NEVER if there is none."""
        return self._reported.next(at_ns, NEVER)

    def of_another_ns(self, leader: int, epoch: int | None, by_ns: int) -> int:
        """The end of its last report, begun by a time, of another leader or epoch; BEFORE if there is none."""
        begun = self._spans[: bisect_right(self._begun, by_ns)]
        return next(
            (span.to_ns for span in reversed(begun) if (span.leader, span.leader_epoch) != (leader, epoch)), BEFORE
        )

    def later_ns(self, epoch: int) -> int:
        """When it first reported a later epoch; NEVER if it did not."""
        then = bisect_right(self._epochs, epoch)
        return self._begun[then] if then < len(self._begun) else NEVER

    def back_by(self, from_ns: int, at_ns: int) -> bool:
        """Whether its process ended after ``from_ns`` and was started again before ``at_ns``."""
        return any(from_ns <= since and to < at_ns for since, to in self._backs)

    def once_more(self, since_ns: int, knew_ns: int, led_ns: int) -> tuple[Window, ...]:
        """The times from ``since_ns`` on in which it may have gone on as a deposed leader: until it first reported
        another leader (``knew_ns``), but not while a fault kept it silent, nor after its process had ended. It led at
        ``led_ns``."""
        if knew_ns + LAG_NS <= since_ns or self._ended.cover(led_ns, led_ns + 1):
            return ()
        ended = bisect_left(self._ends, led_ns)
        over = min([knew_ns, *self._ends[ended : ended + 1]]) + LAG_NS
        found = []
        for begun, until in self._silent.meeting(since_ns, max(over, since_ns)):
            if since_ns < min(begun, over):
                found.append((since_ns, min(begun, over)))
            since_ns = max(since_ns, until)
        return (*found, (since_ns, over)) if since_ns < over else tuple(found)


def own_reports(
    spans: Sequence[Span], kept: Mapping[str, Sequence[Kept]], names: Iterable[str]
) -> dict[str, OwnReports]:
    """The own reports of each broker, by its name."""
    found: dict[str, list[Span]] = {name: [] for name in names}
    for span in spans:
        found.setdefault(span.observer, []).append(span)
    return {name: OwnReports(own, kept.get(name, ())) for name, own in found.items()}


def kept_silent(faults: Iterable[Row]) -> dict[str, list[Kept]]:
    """The times in which faults kept each broker from acknowledging, in order: its process had ended or was halted, or
    no client could reach it."""
    found: dict[str, list[Kept]] = {}
    for row in faults:
        ends = does(row, Does.ENDS_PROCESS)
        kept = acted_on(row) if ends or does(row, Does.HALTS_PROCESS) else unreached(row)
        if row["injected_ns"] is None or not kept:
            continue
        for name in kept:
            found.setdefault(name, []).append((int(row["injected_ns"]), begun_to_heal(row), ends))
    return {name: sorted(times) for name, times in found.items()}


def end_of_term(own: OwnReports, reports: Sequence[Span], leader: str | None) -> tuple[int, tuple[Window, ...]]:
    """The time after which a deposed leader acknowledged nothing more, because it had reported another leader, or was
    silent; and the times in which it may have gone on, because it had not yet reported another leader."""
    claimed = max((report.to_ns for report in reports if report.observer == leader), default=None)
    reported = max(report.to_ns for report in reports)
    last = reported if claimed is None else claimed
    epoch = reports[0].leader_epoch
    knew = own.after_ns(last) if claimed is not None or epoch is None else own.later_ns(epoch)
    # (Without epochs a killed leader may lead again, as others report, without a report of its own.)
    last = reported if epoch is None and own.back_by(last, reported) else last
    ends = (last + FRESH_NS if claimed is None else min(knew, last + FRESH_NS)) + LAG_NS
    return ends, own.once_more(ends, knew, last)
