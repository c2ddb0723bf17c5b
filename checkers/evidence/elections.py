"""The elections of a partition: its leader terms, the ISRs reported in each, and the times without a fresh report.

Reports are late: a broker's metadata may be up to ``lag_ns`` old. In KRaft, and with ZooKeeper since 2.7 (KIP-497), the
controller decides an ISR and sends it to all brokers at once. Before, the leader wrote it to ZooKeeper, and the
controller heard of it 5 s after the last change, or 60 s after the last time that it heard of a change (Kafka 2.6,
ReplicaManager, maybePropagateIsrChanges, called every 2.5 s).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from checkers.evidence.behind import (
    LAG_NS,
    Behind,
    BehindTimes,
    Propagation,
    current_reports,
    over,
    reported_controllers,
)
from checkers.evidence.high_watermarks import Highs, high_watermarks, risen
from checkers.evidence.intervals import BEFORE, NEVER, Intervals, Times, Window
from checkers.evidence.last_reports import LastReports, isr_of
from checkers.evidence.own_reports import OwnReports, end_of_term, kept_silent, own_reports
from checkers.evidence.pauses import TermReports, heard
from checkers.evidence.silence import pauses_of_brokers, silences_of_brokers
from checkers.leadership import (
    FRESH_NS,
    LeaderTerm,
    Partition,
    Span,
    known_epoch,
    leader_terms,
)
from checkers.leadership import spans as spans_of
from harness.core.faults import (
    Does,
    Row,
    acted_on,
    does,
    hits_heartbeats,
    split_by_end,
    supposing_it_acted,
)
from harness.core.guarantees import Configuration
from harness.core.topology import broker_name
from harness.history.schema import PARTITION

#: The same as LAG_NS before 2.7: 60 s, up to 2.5 s until the leader looks again, LAG_NS, and a second to spare on a
#: slow machine (Kafka 2.6, ReplicaManager: IsrChangePropagationInterval; scheduled as isr-change-propagation).
_LATE_LAG_NS = 65_000_000_000

_NO_TIMES = Intervals(())


@dataclass(frozen=True)
class Term:
    """One leader and epoch. ``seen_ns``: when a broker first reported it.

    ``begins_ns``, ``ends_ns``: the leader acknowledged nothing before and after. A deposed leader goes on until it
    hears of the next leader, or falls silent. Until it reports that it knows of another leader, it may go on once more
    (``again_ns``: the times in which it may), except while a fault keeps it silent. ``highs``: its own reports of its
    high watermark.
    """

    leader: int
    epoch: int | None
    seen_ns: int
    begins_ns: int
    ends_ns: int
    reports: tuple[Span, ...]
    highs: Highs
    again_ns: tuple[Window, ...] = ()


@dataclass(frozen=True)
class InSync:
    """The brokers that were in each ISR reported around some time, and those that were in any."""

    every: frozenset[int]
    any: frozenset[int]


@dataclass(frozen=True)
class Elections:
    """What is known about the leaders of one partition. ``terms`` are in the order of epochs (without epochs: of time).

    ``names``: brokers by their ids. ``current``: the reports of brokers that were not behind (see ``BehindTimes``).
    ``silences``: by the name of each broker, the times without a report from it on the partition; by None, the times
    without a current report. ``pauses``: by the name of each broker, its times of more than LAG_NS without a report.
    ``own``: by its name, the reports of each broker alone. ``propagation``: how brokers hear of changes.
    ``some_epochs``: only some reports had an epoch, so none counts.
    """

    of: Partition
    names: Mapping[int, str]
    replicas: frozenset[int]
    spans: tuple[Span, ...]
    current: tuple[Span, ...]
    terms: tuple[Term, ...]
    silences: Mapping[str | None, Sequence[Window]]
    pauses: Mapping[str | None, Sequence[Window]]
    lag_ns: int
    own: Mapping[str, OwnReports]
    propagation: Propagation
    some_epochs: bool = False

    @cached_property
    def moments(self) -> Times:
        """The times at which the evidence changes: everything between two of them is judged alike."""
        times = [at for span in self.spans for at in (span.from_ns, span.to_ns)]
        times += [at for silences in self.silences.values() for silence in silences for at in silence]
        times += [at for term in self.terms for at in (term.begins_ns, term.ends_ns)]
        times += [at for _, more in self.again for at in more]
        times += [at for _, window in self.unreported for at in window]
        return np.unique(np.array([at - early for early in (0, self.lag_ns, FRESH_NS) for at in times], np.int64))

    @cached_property
    def without_epochs(self) -> bool:
        """Whether brokers reported a leader without an epoch: then the epoch of a delivery shows no term."""
        return any(term.epoch is None for term in self.terms)

    def terms_of_one_leader(self, number: int) -> range:
        """The consecutive terms around this one in which the same broker led."""
        first = last = number
        while first and self.terms[first - 1].leader == self.terms[number].leader:
            first -= 1
        while last + 1 < len(self.terms) and self.terms[last + 1].leader == self.terms[number].leader:
            last += 1
        return range(first, last + 1)

    def in_sync(self, number: int, from_ns: int, to_ns: int, behind: Behind) -> InSync | None:
        """The ISRs reported in a term, from the last report before ``from_ns`` to the first one a lag after ``to_ns``.

        The leader's own reports count, unless they may be older than the ISR that it uses (``behind``, with ``leads``),
        with what others began to report while it paused. If they do not, or do not cover that time, the reports of
        other brokers that cover it count, unless these were ``behind`` (may not have heard from the controller),
        together with the leader's reports as far as they go. None if no reports cover it.
        """
        leader, until = self.names.get(self.terms[number].leader), to_ns + self.lag_ns
        # (Without epochs, a report may be of two terms.)
        each = (report for n in self.terms_of_one_leader(number) for report in self.terms[n].reports)
        reports = [*dict.fromkeys(each)]
        from_ns = self._appended_from(reports, from_ns, to_ns)
        of_each = {
            by: [report for report in reports if report.observer == by]
            for by in {report.observer for report in reports}
        }
        whole = {by for by, own in of_each.items() if _cover(own, self._silent(by), from_ns, until)}
        others = {by for by in whole if by != leader and not behind(by, from_ns, until)}
        own = {by for by in whole if by == leader and not behind(by, from_ns, until, leads=True)}
        observers = own or others
        if not observers:
            return None
        counted = [report for by in observers for report in of_each[by]]
        if leader in observers:
            numbers = self.terms_of_one_leader(number)
            meanwhile = {one for n in numbers for one in (*self.reports_of(n).counted, *self.reports_of(n).outlasting)}
            theirs = (one for by in of_each.keys() - {leader} for one in _around(of_each[by], from_ns, until))
            near = [one for one in theirs if one in meanwhile and one.from_ns <= until]
            counted += [one for one in near if not behind(one.observer, from_ns, min(max(one.to_ns, from_ns), until))]
        else:
            counted += [report for report in of_each.get(leader or "", ()) if report.from_ns <= until]
            # (A broker that fell silent may have reported an ISR that the others did not see.)
            partly = (by for by in of_each if by not in {*whole, leader} and not behind(by, from_ns, until))
            theirs = (report for by in partly for report in of_each[by])
            counted += [report for report in theirs if report.from_ns <= until and report.to_ns >= from_ns]
        isrs = [frozenset(report.isr) for report in _around(counted, from_ns, until)]
        return InSync(frozenset.intersection(*isrs), frozenset.union(*isrs))

    def _appended_from(self, reports: Sequence[Span], sent_ns: int, to_ns: int) -> int:
        """The earliest time when a record that was acknowledged in a term can have been appended in it. The first ISR
        reported in a term is that of its election, unless there was a long silence before."""
        first_ns = min((report.from_ns for report in reports), default=sent_ns)
        return max(sent_ns, first_ns) if to_ns >= first_ns and not self.unheard(sent_ns, first_ns) else sent_ns

    def reports_of(self, number: int) -> TermReports:
        """The reports of a term, by its leader and by others."""
        if number not in self._reports_of:
            leader = self.names.get(self.terms[number].leader)
            self._reports_of[number] = TermReports(self.terms[number].reports, leader, self.pauses)
        return self._reports_of[number]

    @cached_property
    def _reports_of(self) -> dict[int, TermReports]:
        return {}

    def reported_in_sync(self, number: int, from_ns: int, to_ns: int) -> frozenset[int]:
        """The brokers that reports of a leader, however late, have in its ISR between two times."""
        reports = (report for n in self.terms_of_one_leader(number) for report in self.terms[n].reports)
        isrs = (report.isr for report in reports if report.from_ns <= to_ns and min(report.to_ns, to_ns) >= from_ns)
        return frozenset[int]().union(*isrs)

    def committed_ns(self, number: int, offset: int) -> int | None:
        """When the leader of a term first reported a high watermark above an offset; None if never."""
        highs = self.terms[number].highs
        first = int(np.searchsorted(highs.high, offset, side="right"))
        return int(highs.at_ns[first]) if first < len(highs.high) else None

    def uncommitted_ns(self, number: int, offset: int, surely: bool = True) -> int:
        """The last time at which the high watermark of a term's leader certainly was not above an offset yet, by its
        own reports, or when it last reported so; BEFORE if they do not say."""
        highs = self.terms[number].highs
        last = int(np.searchsorted(highs.high, offset, side="right")) - 1
        return int((highs.still_ns if surely else highs.reported_ns)[last]) if last >= 0 else BEFORE

    @cached_property
    def _highs_reported(self) -> tuple[Times, Times]:
        """Of each term: the lowest high watermark that its leader reported, and the last time when it reported one."""
        highs = [term.highs for term in self.terms]
        low = [int(one.high[0]) if len(one.high) else NEVER for one in highs]
        last = [int(one.reported_ns[-1]) if len(one.high) else BEFORE for one in highs]
        return np.array(low, np.int64), np.array(last, np.int64)

    def may_not_have_committed(self, offset: int, at_ns: int) -> Iterator[int]:
        """The terms whose leaders may have reported at a time or later that an offset was not committed."""
        low, last = self._highs_reported
        return map(int, np.flatnonzero((low <= offset) & (last >= at_ns)))

    def not_committed_by(self, offsets: Times, by_ns: Times) -> npt.NDArray[np.bool_]:
        """Whether some leader certainly had not committed each of these offsets by its time."""
        found = np.zeros(len(offsets), bool)
        if not len(offsets):
            return found
        for number in self.may_not_have_committed(int(offsets.max()), int(by_ns.min())):
            highs = self.terms[number].highs
            last = np.searchsorted(highs.high, offsets, side="right") - 1
            found |= (last >= 0) & (highs.still_ns[np.maximum(last, 0)] >= by_ns)
        return found

    def last_before(self, number: int) -> Span | None:
        """The last report before a term, about an earlier term or without a leader: that of a broker that was not
        behind, unless another one reported something newer."""
        return fresher(*self._lasts(number))

    def isrs_before(self, number: int) -> frozenset[frozenset[int]]:
        """The last ISR reported before a term; two, if nobody knows which is newer: another broker had begun to report
        the other one no more than a lag before the last current report ended."""
        any_last, current = self._lasts(number)
        last = {fresher(any_last, current)}
        if any_last is not None and current is not None and any_last.leader_epoch == current.leader_epoch:
            last |= {any_last, current} if 0 <= current.to_ns - any_last.from_ns <= LAG_NS else set()
        return frozenset(frozenset(span.isr) for span in last if span is not None)

    def _lasts(self, number: int) -> tuple[Span | None, Span | None]:
        """The last report before a term: of any broker, and of those that were not behind."""
        if number not in self._befores:
            term = self.terms[number]
            self._befores[number] = self._last.before(LeaderTerm(term.leader, term.epoch, term.seen_ns))
        return self._befores[number]

    @cached_property
    def _last(self) -> LastReports:
        return LastReports(self.spans, self.current, self.pauses, self.lag_ns)

    def last_reported_ns(self, number: int) -> int:
        """The time of the last report, from a broker that was not behind, that equals the last report before a term."""
        before, seen_ns = self.last_before(number), self.terms[number].seen_ns
        like = None if before is None else isr_of(before)
        alike = (span for span in self.current if isr_of(span) == like)
        return max((min(span.to_ns, seen_ns) for span in alike if span.from_ns <= seen_ns), default=BEFORE)

    def isr_since_ns(self, number: int) -> int:
        """A time since which the last ISR reported before a term may have been another, unreported one: a lag before
        its last report; or a moment before an observer reported it as a change, if its report before was current. (A
        controller that reports late reads the ISR when it reports.)"""
        before, seen_ns = self.last_before(number), self.terms[number].seen_ns
        reported_ns = self.last_reported_ns(number) - self.lag_ns
        if before is None:
            return reported_ns
        like, changed_ns = isr_of(before), BEFORE
        for span in self.spans:
            if isr_of(span) == like and span.from_ns <= seen_ns:
                earlier = self._current_before(span)
                if earlier is not None and earlier.isr != span.isr:
                    changed_ns = max(changed_ns, min(earlier.to_ns, span.from_ns))
        return max(reported_ns, changed_ns - LAG_NS)

    def _current_before(self, span: Span) -> Span | None:
        """The last current report of an observer that began before one of its reports."""
        begun, own = self._current_of.get(span.observer, ([], []))
        n = bisect_left(begun, span.from_ns)
        return own[n - 1] if n else None

    @cached_property
    def _current_of(self) -> dict[str, tuple[list[int], list[Span]]]:
        """The current reports of each observer, in order, and their beginnings."""
        found: dict[str, tuple[list[int], list[Span]]] = {}
        for span in self.current:
            begun, own = found.setdefault(span.observer, ([], []))
            begun.append(span.from_ns)
            own.append(span)
        return found

    def isr_missed(self, number: int) -> bool:
        """Whether the ISR from which the leader of a term was elected may not have been reported before that term was:
        there may have been an unreported leader in between, or the term before was reported late."""
        if number == 0 or self.terms[number].epoch is None:
            return False
        reported_ns = min((report.from_ns for report in self.terms[number - 1].reports), default=NEVER)
        return self._missed(number) or reported_ns > self.terms[number].seen_ns

    def reported_late(self, number: int) -> bool:
        """Whether a newer epoch, or another ISR, of before a term than the last known was first reported after that
        term was, and somebody else may be in sync by it: the leader may have been elected from it."""
        if number not in self._reported_late:
            last, term = self.last_before(number), self.terms[number]
            led = LeaderTerm(term.leader, term.epoch, term.seen_ns)
            self._reported_late[number] = last is not None and self._last.come_late(last, led)
        return self._reported_late[number]

    @cached_property
    def _reported_late(self) -> dict[int, bool]:
        return {}

    def missed_before(self, number: int) -> bool:
        """Whether the epochs show that there may have been an unreported leader right before a term."""
        return number > 0 and self.terms[number].epoch is not None and self._missed(number)

    def last_known(self, number: int) -> bool | None:
        """Whether the leader of a term was elected as the last known leader: no broker was in sync or eligible then,
        and it had led last. None if that is not known, because an eligible broker may have left between two reports."""
        leader, before = self.terms[number].leader, self.last_before(number)
        known = not self._missed(number)
        if known and self.terms[number - 1].leader != leader:
            return False
        elrs = self._elrs_before(number)
        if not known or before is None or before.isr or not elrs or any(elrs):
            return None
        return True

    def eligible(self, number: int) -> frozenset[int]:
        """The brokers that, before a term, were last reported to be in the ISR or the ELR, by any broker."""
        before = self.last_before(number)
        return frozenset() if before is None else frozenset(before.isr).union(*self._elrs_before(number))

    def elr_reported(self, number: int) -> bool:
        """Whether any broker reported an ELR together with the last ISR before a term."""
        return bool(self._elrs_before(number))

    def surely_eligible(self, number: int) -> frozenset[int]:
        """The brokers that, before a term, were last reported to be in the ISR, or in every reported ELR."""
        before, elrs = self.last_before(number), self._elrs_before(number)
        isr = frozenset[int]() if before is None else frozenset(before.isr)
        return isr | frozenset.intersection(*elrs) if elrs else isr

    def _elrs_before(self, number: int) -> tuple[frozenset[int], ...]:
        """The ELRs that were last reported before a term, together with the last reported ISR. There are several if
        brokers reported different ones at the same time, some of them old; there are none if no broker reported one. (A
        broker may report an ISR without an ELR.)"""
        if number not in self._elrs:
            before = self.last_before(number)
            like = None if before is None else (before.leader, before.leader_epoch, before.isr)
            known = [
                span
                for span in self.current
                if span.elr is not None and (span.leader, span.leader_epoch, span.isr) == like
            ]
            since = self._other_isr_until_ns(before)
            known = [span for span in known if span.to_ns > since]
            # (A broker that is cut off goes on reporting the old state.)
            at_ns = BEFORE if before is None else before.to_ns
            last_ns = max((min(span.to_ns, at_ns) for span in known if span.from_ns <= at_ns), default=BEFORE)
            last = (span for span in known if span.from_ns <= at_ns and span.to_ns >= last_ns)
            self._elrs[number] = tuple(frozenset(span.elr or ()) for span in last)
        return self._elrs[number]

    def _other_isr_until_ns(self, last: Span | None) -> int:
        """The last report of another ISR by the same leader in the same term, before the last one was first reported by
        its observer: the ISR may have been the same before that, with another ELR."""
        if last is None:
            return BEFORE
        term = (last.leader, last.leader_epoch)
        others = (s for s in self.current if (s.leader, s.leader_epoch) == term and s.isr != last.isr)
        return max((min(s.to_ns, last.from_ns) for s in others if s.from_ns <= last.from_ns), default=BEFORE)

    @cached_property
    def _elrs(self) -> dict[int, tuple[frozenset[int], ...]]:
        return {}

    def _missed(self, number: int) -> bool:
        """Whether there may have been an unreported leader between a term and the one before."""
        first, last = (self.terms[n].epoch for n in (number - 1, number))
        return first is None or last is None or not self._epochs.issuperset(range(first + 1, last))

    @cached_property
    def _befores(self) -> dict[int, tuple[Span | None, Span | None]]:
        return {}

    def unheard(self, from_ns: int, to_ns: int, without: Intervals = _NO_TIMES) -> bool:
        """Whether, between two times, there was no current report for longer than FRESH_NS, not counting the times in
        ``without``."""
        within = self.unheard_times(from_ns, to_ns)
        return any(_left(since, to, without.meeting(since, to)) > FRESH_NS for since, to in within)

    def unheard_times(self, from_ns: int, to_ns: int) -> list[Window]:
        """The parts of silences between two times that are longer than FRESH_NS."""
        within = ((max(since, from_ns), min(to, to_ns)) for since, to in self._silent(None).meeting(from_ns, to_ns))
        return [(since, to) for since, to in within if to - since > FRESH_NS]

    def reported_nothing(self, observer: str, from_ns: int, to_ns: int) -> bool:
        """Whether a broker reported nothing between two times. False for a broker without any report in the run, of
        which nothing is known."""
        if observer not in self._reported:
            return False
        first_ns, last_ns = self._reported[observer]
        return to_ns <= first_ns or last_ns <= from_ns or self._silent(observer).cover(from_ns, to_ns)

    def reported(self, observer: str) -> bool:
        """Whether a broker ever reported anything."""
        return observer in self._reported

    def reported_since(self, observer: str, at_ns: int) -> bool:
        """Whether a broker reported anything after a time."""
        return observer in self._reported and self._reported[observer][1] > at_ns

    def heard_ns(self, observer: str, at_ns: int) -> int:
        """The time of a broker's first report from ``at_ns`` on; NEVER if there is none."""
        if observer not in self.own:
            return NEVER
        return self.own[observer].heard_ns(self._silent(observer).left(at_ns))

    @cached_property
    def _reported(self) -> dict[str, tuple[int, int]]:
        """The times of each observer's first and last report."""
        found: dict[str, tuple[int, int]] = {}
        for span in self.spans:
            first_ns, last_ns = found.get(span.observer, (span.from_ns, span.to_ns))
            found[span.observer] = min(first_ns, span.from_ns), max(last_ns, span.to_ns)
        return found

    def _silent(self, observer: str | None) -> Intervals:
        """The silences of an observer."""
        if observer not in self._silences:
            self._silences[observer] = Intervals(self.silences.get(observer, ()))
        return self._silences[observer]

    @cached_property
    def _silences(self) -> dict[str | None, Intervals]:
        return {}

    def name(self, broker: int) -> str:
        """The name of a broker."""
        return broker_name(broker, self.names)

    def seen_whole(self, number: int, until_ns: int, behind: Behind) -> bool:
        """Whether all elections after a term, until a time, were certainly seen.

        Epochs show it: each one has a known leader, or was reported by a broker that knew no leader. Without epochs, it
        is shown by the absence of silences.
        """
        ended, by_end = self._by_end
        last = by_end[bisect_left(ended, until_ns - FRESH_NS) :]
        if all(behind(span.observer, span.to_ns, span.to_ns) for span in last):
            return False
        known = self.terms[number:]
        if self.without_epochs:
            since = known[0].begins_ns
            return not any(to > since and begun < until_ns for begun, to in self._hidden)
        led = {term.epoch for term in known}
        epochs = [epoch for epoch in led if epoch is not None]
        return all(epoch in led or epoch in self._epochs for epoch in range(min(epochs), max(epochs) + 1))

    @cached_property
    def _by_end(self) -> tuple[list[int], list[Span]]:
        """The ends of the spans in order, and the spans in this order."""
        spans = sorted(self.spans, key=lambda span: span.to_ns)
        return [span.to_ns for span in spans], spans

    @cached_property
    def _epochs(self) -> frozenset[int | None]:
        return frozenset(span.leader_epoch for span in self.spans)

    def epoch_after_ns(self, number: int) -> int:
        """When a broker first reported a later epoch than that of a term."""
        epochs, first_ns = self._begun
        return first_ns[bisect_right(epochs, known_epoch(self.terms[number].epoch))]

    @cached_property
    def _begun(self) -> tuple[list[int], list[int]]:
        """The epochs in order, and for each the first report of it or of a later one."""
        begun: dict[int, int] = {}
        for span in self.spans:
            epoch = known_epoch(span.leader_epoch)
            begun[epoch] = min(span.from_ns, begun.get(epoch, NEVER))
        epochs = sorted(begun)
        first_ns = [*accumulate((begun[epoch] for epoch in reversed(epochs)), min, initial=NEVER)]
        return epochs, first_ns[::-1]

    def open(self, sent_ns: int, until_ns: int) -> list[int]:
        """The terms that had begun by ``until_ns`` and were not over at ``sent_ns``, or that may have gone on once more
        in between."""
        begins, ends = self.begins_and_ends
        known = (begins <= until_ns) & (sent_ns <= ends)
        for n, (since, to) in self.again:
            known[n] |= since <= until_ns and sent_ns <= to
        return [int(n) for n in np.flatnonzero(known)]

    def unseen(self, sent_ns: int, until_ns: int, after: int = 0) -> bool:
        """Whether there may have been an unreported leader between two times, before the term ``after`` or later."""
        return any(n >= after and since <= until_ns and sent_ns <= to for n, (since, to) in self.unreported)

    @cached_property
    def unreported(self) -> list[tuple[int, Window]]:
        """The times in which there may have been an unreported leader, each with the number of the next term: around a
        missing epoch (without epochs: see ``_hidden``), after the last report, and before the first one, unless the
        epochs show that there was no other leader. Such a leader may also go on until it knows of the next one. If only
        some reports had an epoch, there may have been one at any time."""
        over = max((span.to_ns for span in self.spans), default=BEFORE) + FRESH_NS
        last = len(self.terms)
        found = [(last, (BEFORE if self.some_epochs else over, NEVER))]
        first = [(0, window) for window in self._before_the_first()]
        if self.without_epochs:
            return [*found, *first, *((last, hidden) for hidden in self._hidden)]
        if not all(self._epochs.issuperset(range(known_epoch(term.epoch))) for term in self.terms[:1]):
            found += first
        for n in (n for n in range(1, last) if self._missed(n)):
            term = self.terms[n]
            until = term.seen_ns + FRESH_NS + LAG_NS
            found.append((n, (term.begins_ns, until)))
            for own in (self.own.get(self.name(broker)) for broker in self.replicas - {term.leader}):
                if own is not None:
                    more = own.once_more(until, own.later_ns(known_epoch(term.epoch) - 1), term.seen_ns)
                    found += [(n, silence) for silence in more]
        return found

    @cached_property
    def _hidden(self) -> list[Window]:
        """Without epochs, the times in which there may have been an unreported leader: silences, and around reports of
        a leader that itself reported no term of then, after the first term was reported. (A broker may hear later than
        others that it leads.)"""
        led: dict[int, list[Window]] = {}
        own_until_ns = (self.reports_of(n).own_until_ns for n in range(len(self.terms)))
        reported_until_ns = [BEFORE, *accumulate(own_until_ns, max)]
        for number, term in enumerate(self.terms):
            since = min(term.begins_ns, reported_until_ns[number])
            led.setdefault(term.leader, []).append((since, term.ends_ns))
        by_leader = {leader: Intervals(times) for leader, times in led.items()}
        others = (
            (span.from_ns - LAG_NS, span.to_ns + FRESH_NS + LAG_NS)
            for span in heard(self.spans, self.silences)
            if span.leader >= 0 and span.to_ns >= self.terms[0].seen_ns
            if not by_leader.get(span.leader, _NO_TIMES).meet(span.from_ns, span.to_ns)
        )
        return [*self.silences.get(None, ()), *others]

    def _before_the_first(self) -> Iterator[Window]:
        """The times in which there may have been an unreported leader before the first term: until the first term was
        reported, and, for each other broker, until it reported that term."""
        for term in self.terms[:1]:
            reported_ns = self._reported_ns(term)
            yield BEFORE, reported_ns
            for own in (self.own.get(self.name(broker)) for broker in self.replicas - {term.leader}):
                if own is None:
                    yield reported_ns, reported_ns + FRESH_NS + LAG_NS
                else:
                    epoch = known_epoch(term.epoch)
                    knew = own.heard_ns(reported_ns) if term.epoch is None else own.later_ns(epoch - 1)
                    yield from own.once_more(reported_ns, knew, reported_ns)

    def _reported_ns(self, first: Term) -> int:
        """The time of the first report of the first term, if no other leader was reported before its leader itself
        reported it. Otherwise ``seen_ns``. (With epochs both times are the same.)"""
        earlier = [span for span in self.spans if span.leader >= 0 and span.from_ns <= first.seen_ns]
        if any(span.leader != first.leader for span in earlier):
            return first.seen_ns
        return min((span.from_ns for span in earlier), default=first.seen_ns)

    @cached_property
    def again(self) -> list[tuple[int, Window]]:
        """The terms whose leaders may have gone on once more, with the times."""
        return [(n, more) for n, term in enumerate(self.terms) for more in term.again_ns]

    @cached_property
    def begins_and_ends(self) -> tuple[Times, Times]:
        """The beginning and end of each term: its leader acknowledged nothing before and after."""
        begins, ends = [term.begins_ns for term in self.terms], [term.ends_ns for term in self.terms]
        return np.array(begins, np.int64), np.array(ends, np.int64)


def elections(
    observations: pa.Table,
    seen: Iterable[Span],
    names: Mapping[int, str],
    configuration: Configuration,
    faults: Iterable[Row] = (),
    supposed: Iterable[Row] | None = None,
) -> dict[Partition, Elections]:
    """The elections of each reported partition. ``observations``: the table; ``seen``: the same, folded; ``faults``: as
    they are known to have acted. ``supposed``: the faults that may have kept reports back, by default also those of
    which nobody knows whether they acted."""
    lag_ns = LAG_NS if configuration.tells_isr_at_once else _LATE_LAG_NS
    faults, brokers, partly = split_by_end(faults), frozenset(names.values()), _with_some_epochs(observations)
    if partly:
        observations = _without_epochs_of(partly, observations)
        seen = spans_of(observations)
    supposed = [*map(supposing_it_acted, faults)] if supposed is None else split_by_end(supposed)
    kraft = configuration.metadata == "kraft"
    propagation = Propagation(brokers, kraft, lag_ns, reported_controllers(observations, names))
    behind = BehindTimes(supposed, propagation)
    delays = [row for row in supposed if not kraft and hits_heartbeats(row) and does(row, Does.DELAYS)]
    late = {
        name: Intervals((int(row["injecting_ns"]), over(row) + LAG_NS) for row in delays if name in acted_on(row))
        for name in brokers
    }
    current = current_reports(observations, behind, brokers)
    apart, timely = _by_partition(seen), _by_partition(seen if len(current) == len(observations) else spans_of(current))
    quiet, pauses = silences_of_brokers(observations, current), pauses_of_brokers(observations, LAG_NS)
    highs = high_watermarks(observations, names)
    replicas = _replicas(observations)
    kept = kept_silent(faults)
    found = {}
    for of, spans in apart.items():
        own = own_reports(spans, kept, names.values())
        terms = _terms(spans, of, names, quiet.get(of, {}), highs.get(of, {}), own, late)
        known = replicas.get(of, frozenset()) | {broker for span in spans for broker in span.isr}
        reports, silences = (tuple(spans), tuple(timely.get(of, ()))), (quiet.get(of, {}), pauses.get(of, {}))
        found[of] = Elections(of, names, known, *reports, terms, *silences, lag_ns, own, propagation, of in partly)
    return found


def _with_some_epochs(observations: pa.Table) -> set[Partition]:
    """The partitions with reports of a leader both with and without an epoch."""
    led = observations.filter(pc.greater_equal(observations["leader"], 0))
    with_one, without = (led.filter(chosen(led["leader_epoch"])) for chosen in (pc.is_valid, pc.is_null))
    return _partitions_of(with_one) & _partitions_of(without)


def _partitions_of(observations: pa.Table) -> set[Partition]:
    rows = observations.group_by(PARTITION).aggregate([])
    return {(row["topic"], row["partition"]) for row in rows.to_pylist()}


def _without_epochs_of(partitions: Collection[Partition], observations: pa.Table) -> pa.Table:
    """``observations`` without the epochs of these partitions: one epoch says nothing beside a report without one."""
    each = zip(observations["topic"].to_pylist(), observations["partition"].to_pylist(), strict=True)
    others = pa.array([of not in partitions for of in each], pa.bool_())
    epochs = observations["leader_epoch"]
    known = pc.if_else(others, epochs, pa.scalar(None, epochs.type))
    return observations.set_column(observations.column_names.index("leader_epoch"), "leader_epoch", known)


def fresher(any_last: Span | None, current: Span | None) -> Span | None:
    """The last ``current`` report, unless the last of any broker has a later epoch, or begins after that one ended."""
    if any_last is None or current is None:
        return any_last
    later = known_epoch(any_last.leader_epoch) > known_epoch(current.leader_epoch)
    return any_last if later or current.to_ns < any_last.from_ns else current


def _by_partition(seen: Iterable[Span]) -> dict[Partition, list[Span]]:
    found: dict[Partition, list[Span]] = {}
    for span in seen:
        found.setdefault((span.topic, span.partition), []).append(span)
    return found


def _terms(
    spans: Sequence[Span],
    of: Partition,
    names: Mapping[int, str],
    quiet: Mapping[str | None, Sequence[Window]],
    highs: Mapping[tuple[int, int | None], Highs],
    own: Mapping[str, OwnReports],
    late: Mapping[str, Intervals],
) -> tuple[Term, ...]:
    led = leader_terms(spans, of)
    if any(term.leader_epoch is None for term in led):
        led = _without_epochs(spans, names, quiet)
    nothing, nobody = risen(np.empty(0, np.int64), np.empty(0, np.int64)), OwnReports((), ())
    by_leader: dict[tuple[int, int | None], list[Span]] = {}
    for span in spans:
        by_leader.setdefault((span.leader, span.leader_epoch), []).append(span)
    others = OtherReports(spans)
    found = []
    for number, term in enumerate(led):
        of_it = by_leader.get((term.leader, term.leader_epoch), [])
        until = next((one.from_ns for one in led[number + 1 :]), NEVER) if term.leader_epoch is None else NEVER
        reports = tuple(
            span
            for span in of_it
            # (Another span may begin at the same instant.)
            if term.leader_epoch is not None
            or (term.from_ns <= span.to_ns and span.from_ns < max(until, term.from_ns + 1))
        )
        seen_ns, leader = term.from_ns, names.get(term.leader, "")
        # (Without epochs a leader may have several terms: reports of another term do not count for this one.)
        else_ns = [span.to_ns for span in _outside(of_it, reports) if span.from_ns <= seen_ns]
        else_ns += others.last_ns((term.leader, term.leader_epoch), seen_ns)
        since = min(_silent_since(quiet.get(None, ()), seen_ns), max(else_ns, default=seen_ns), seen_ns)
        if term.leader_epoch is not None:
            # (A broker that knows another leader, even an old one, does not lead. With ZooKeeper it hears first that it
            # leads itself, and then what it reports.)
            knew_ns = own.get(leader, nobody).of_another_ns(term.leader, term.leader_epoch, seen_ns)
            if not late.get(leader, _NO_TIMES).meet(knew_ns, seen_ns):
                since = max(since, min(knew_ns, seen_ns))
        begins = BEFORE if number == 0 else since - LAG_NS
        last = number == len(led) - 1
        ends, again = (NEVER, ()) if last else end_of_term(own.get(leader, nobody), reports, names.get(term.leader))
        at = highs.get((term.leader, term.leader_epoch), nothing)
        found.append(Term(term.leader, term.leader_epoch, term.from_ns, begins, ends, reports, at, again))
    # (A term that was reported late began before later terms.)
    begun = [*accumulate((term.begins_ns for term in reversed(found)), min)][::-1]
    terms = [replace(term, begins_ns=at) for term, at in zip(found, begun, strict=True)]
    return tuple(_with_own_highs(terms, n) for n in range(len(terms)))


def _with_own_highs(terms: Sequence[Term], number: int) -> Term:
    """A term without the high watermarks of another term of the same leader, if there are no epochs to tell them
    apart."""
    term = terms[number]
    if term.epoch is not None:
        return term
    again = (later.begins_ns for later in terms[number + 1 :] if later.leader == term.leader)
    first, last = np.searchsorted(term.highs.at_ns, [term.begins_ns, next(again, NEVER)])
    return replace(term, highs=risen(term.highs.at_ns[first:last], term.highs.high[first:last]))


class OtherReports:
    """Finds the end of the last report, among those that began by a time, of something else than a given leader and
    epoch."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._begun: list[int] = []
        self._latest: list[tuple[tuple[object, int], tuple[object, int]]] = []
        best: tuple[object, int] = (None, BEFORE)
        other: tuple[object, int] = (None, BEFORE)
        for span in spans:
            one = ((span.leader, span.leader_epoch), span.to_ns)
            if one[0] == best[0]:
                best = max(best, one, key=lambda each: each[1])
            elif one[1] > best[1]:
                best, other = one, best
            elif one[1] > other[1]:
                other = one
            self._begun.append(span.from_ns)
            self._latest.append((best, other))

    def last_ns(self, what: tuple[int, int | None], by_ns: int) -> list[int]:
        """The end of that report, as a list of at most one time."""
        n = bisect_right(self._begun, by_ns)
        both = self._latest[n - 1] if n else ()
        return [at for other, at in both if other not in {None, what}][:1]


def _outside(spans: Sequence[Span], reports: Sequence[Span]) -> Iterable[Span]:
    return () if len(spans) == len(reports) else (span for span in spans if span not in reports)


def _without_epochs(
    spans: Sequence[Span], names: Mapping[int, str], quiet: Mapping[str | None, Sequence[Window]]
) -> list[LeaderTerm]:
    """The terms if brokers report no epochs: a term begins when a broker first reports itself as leader after another
    one led; or when it does so again, or another one reports it again, after nobody led. (What others report of its
    time before may be late.)"""
    found: list[LeaderTerm] = []
    led = [span for span in spans if span.leader >= 0]
    any_own = any(names.get(span.leader) == span.observer for span in led)
    nobody = Intervals((span.from_ns, span.to_ns) for span in heard([s for s in spans if s.leader < 0], quiet))
    led_ns = BEFORE
    for span in heard(led, quiet):
        again, own = bool(found) and found[-1].leader == span.leader, names.get(span.leader) == span.observer
        since = nobody.meeting(led_ns + 1, span.from_ns - 1) if again else ()
        begins = any(own or to <= span.from_ns for _, to in since) if again else own or not any_own
        if begins:
            found.append(LeaderTerm(span.leader, None, span.from_ns))
        if begins or (again and (own or not any_own)):
            led_ns = max(led_ns, span.to_ns)
    return found


def _silent_since(quiet: Sequence[Window], at_ns: int) -> int:
    return next((begun for begun, to in quiet if begun < at_ns <= to), at_ns)


def _left(from_ns: int, to_ns: int, without: Iterable[Window]) -> int:
    """The length of a time without the times in ``without``, which may overlap."""
    left, counted = to_ns - from_ns, from_ns
    for since, to in sorted(without):
        until = min(to, to_ns)
        left -= max(0, until - max(since, counted))
        counted = max(counted, until)
    return left


def _cover(spans: Sequence[Span], silences: Intervals, from_ns: int, to_ns: int) -> bool:
    begun = any(report.from_ns <= from_ns for report in spans)
    ended = any(report.to_ns >= to_ns for report in spans)
    return begun and ended and not silences.meet(from_ns + 1, to_ns - 1)


def _around(spans: Sequence[Span], from_ns: int, to_ns: int) -> Iterator[Span]:
    """The reports of each observer from its last one before ``from_ns`` to its first one after ``to_ns``. (A broker may
    report an older term after a later one.)"""
    for observer in {report.observer for report in spans}:
        own = sorted((one for one in spans if one.observer == observer), key=lambda one: (one.from_ns, one.to_ns))
        first = max((n for n, report in enumerate(own) if report.from_ns <= from_ns), default=0)
        last = min((n for n, report in enumerate(own) if report.to_ns >= to_ns), default=len(own) - 1)
        yield from own[first : last + 1]


def _replicas(observations: pa.Table) -> dict[Partition, frozenset[int]]:
    text = pc.binary_join(observations["replicas"].cast(pa.list_(pa.string())), ",")
    rows = pa.table([observations["topic"], observations["partition"], text], ["topic", "partition", "replicas"])
    found: dict[Partition, frozenset[int]] = {}
    for row in rows.group_by(["topic", "partition", "replicas"]).aggregate([]).to_pylist():
        of = (row["topic"], row["partition"])
        found[of] = found.get(of, frozenset()) | {int(broker) for broker in row["replicas"].split(",") if broker}
    return found
