"""How records spread from their leader to other brokers during one term, and are lost with disks."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

from checkers.evidence.acting import Acting
from checkers.evidence.behind import LAG_NS, over
from checkers.evidence.decision import Case
from checkers.evidence.elections import Elections
from checkers.evidence.evidence import Evidence
from checkers.evidence.holding import Change, Has, Holding, Why
from checkers.evidence.intervals import BEFORE, NEVER
from checkers.evidence.joins import Join
from checkers.leadership import Span
from harness.core.anomalies import Anomaly
from harness.core.faults import Does, Row, injection_of


def wiped_ns(row: Row) -> int:
    """When a disk had been wiped, and its broker was started again; if it was not, when that began."""
    return int(row["injecting_ns"] if row["healed_ns"] is None else row["healed_ns"])


@dataclass
class Spread:
    """What is known of each broker and the records of the term ``number``, and how reports and wipes change that.

    ``state``: what is known now. ``wiped``: the last wipe of each broker's disk; ``lost_with``: the one that took the
    records; ``had``: what was known before it was wiped first, and when that was. ``in_doubt``: the brokers whose disk
    was wiped, and that may have the records all the same. ``doubted``: the brokers that have the records if each leader
    since has had them, which is not known. ``rejoining``: those that may have joined an ISR again before any broker
    reported that.
    ``committed``: when the records were certainly committed; None if that is not known. ``perhaps_committed``: they
    were if no unreported leader had cut that log.
    """

    evidence: Evidence
    elections: Elections
    anomaly: Anomaly
    case: Case
    number: int
    acting: Acting
    state: Holding = field(default_factory=Holding)
    wiped: dict[int, Row] = field(default_factory=dict)
    lost_with: dict[int, Row] = field(default_factory=dict)
    had: dict[int, tuple[Has | None, int]] = field(default_factory=dict)
    in_doubt: set[int] = field(default_factory=set)
    doubted: set[int] = field(default_factory=set)
    rejoining: set[int] = field(default_factory=set)
    committed: int | None = None
    perhaps_committed: bool = False

    @property
    def _isrs_come_late(self) -> bool:
        """Whether leaders decide ISRs, and brokers report them much later (before KIP-497)."""
        return not self.evidence.configuration.tells_isr_at_once

    def go_on(self, n: int, from_ns: int, to_ns: int) -> None:
        """Apply what became known during a term: brokers that joined the ISR, and disks that were wiped."""
        term = self.elections.terms[n]
        # (Who had to have the records when a later term began may have lost them before it was known that they are
        # committed.)
        wipes = self.acting.wipes(from_ns if n == self.number else min(from_ns, term.seen_ns), to_ns)
        if self.committed is None and self.state.get(term.leader) is Has.MUST:
            by_reports = partial(self.evidence.reported_committed_ns, self.elections, self.number, n, self.case)
            reported_ns = by_reports()
            if reported_ns is None:
                self.perhaps_committed |= by_reports(surely=False) is not None
            elif not any(broker == term.leader and row["injecting_ns"] <= reported_ns for row, broker in wipes):
                self.committed = reported_ns
        emptied = [(broker, row) for broker, row in self.wiped.items() if self.state.get(broker) is Has.WIPED]
        emptied += [(broker, row) for row, broker in wipes]
        happened = [*self._reported(n, from_ns, to_ns, emptied)]
        if n > self.number:
            joins = ((min(max(join.at_ns, from_ns), to_ns), join) for join in self.acting.joins(n))
            happened += [(at_ns, 1, partial(self._joined, n, join)) for at_ns, join in joins]
        happened += [(row["injecting_ns"], 0, partial(self._wiped_now, n, broker, row)) for row, broker in wipes]
        committed = self.committed is not None
        if n == self.number:
            self._wiped_in_flight(from_ns)
        for at, _, applied in sorted(happened, key=lambda one: one[:2]):
            if not emptied and all(self.state.get(one) is Has.MUST for one in self.elections.replicas):
                break
            applied(at)
        if n > self.number:
            # (A term may have begun in a silence before its first report.)
            self._unheard(n, min(from_ns, max(self._since(), term.begins_ns)), to_ns)
        elif committed:
            self._unheard(n, from_ns, to_ns)
        if self._isrs_come_late:
            self._perhaps_rejoins(n, from_ns, to_ns)

    def _reported(
        self, n: int, from_ns: int, to_ns: int, emptied: Iterable[tuple[int, Row]]
    ) -> Iterator[tuple[int, int, Callable[[int], None]]]:
        """What the reports of a term say between two times: when, its order among what happened then, and a function
        that applies it. ``emptied``: the brokers whose disks are or will be wiped."""
        here, before = self.committed, dict[str, frozenset[int]]()
        filled = [(self.acting.up_ns(broker, over(row)) + self.elections.lag_ns, broker) for broker, row in emptied]
        counted = set(self.elections.reports_of(n).counted)
        for report in self.elections.terms[n].reports:
            if report not in counted:
                before[report.observer] = frozenset(report.isr)
                continue
            until, known = min(report.to_ns, to_ns), before.get(report.observer)
            heard_ns = max(report.from_ns, (from_ns if here is None else max(here, from_ns)) + self.elections.lag_ns)
            if heard_ns <= until:
                yield heard_ns, 1, partial(self._heard, n, report, known, here is not None)
                # (What was late then may still be reported when it is late no more.)
                own = report.observer == self._who(n)
                again_ns = self.acting.current_ns(report.observer, heard_ns, self.elections.lag_ns, leads=own)
                if heard_ns < again_ns <= until:
                    yield again_ns, 1, partial(self._heard, n, report, frozenset(report.isr), here is not None)
            elif here is not None and until >= max(here, from_ns):
                yield max(report.from_ns, from_ns), 3, partial(self._heard_briefly, n, report)
            for at, broker in filled:
                still_ns = max(at, report.from_ns)
                if broker in report.isr and still_ns <= until:
                    yield still_ns, 2, partial(self._still_reported, n, broker)
            before[report.observer] = frozenset(report.isr)
        # (A leader that falls silent may not have reported the last ISR that others did.)
        since = from_ns if here is None else max(here, from_ns)
        outlasting = self.elections.reports_of(n).outlasting if here is not None else {}
        for report in chain.from_iterable(outlasting.values()):
            heard_ns = max(report.from_ns, since + self.elections.lag_ns)
            if heard_ns <= min(report.to_ns, to_ns):
                yield heard_ns, 1, partial(self._heard, n, report, None, True)

    def _wiped_now(self, n: int, broker: int, row: Row, at_ns: int) -> None:
        self._joined_before(n, broker, at_ns)
        if self.state.get(broker) is not Has.WIPED:
            self.had[broker] = self.state.get(broker), at_ns
        if self.state.get(broker) in {Has.MUST, Has.MAY}:
            self.lost_with[broker] = row
        self.wiped[broker] = row
        self._now(at_ns, broker, Has.WIPED, Why.WIPED, n, injection_of(row))

    def _still_reported(self, n: int, broker: int, at_ns: int) -> None:
        """A broker was reported in the ISR long after its disk was wiped: it may have left and rejoined the ISR between
        two reports."""
        leader = self.elections.terms[n].leader
        if broker != leader and self.state.get(broker) is Has.WIPED and self.state.get(leader) in {Has.MUST, Has.MAY}:
            self._now(at_ns, broker, Has.MAY, Why.STILL_REPORTED, n)
            self.in_doubt.add(broker)

    def _unheard(self, n: int, from_ns: int, to_ns: int) -> None:
        """During a silence in which the leader was up, any replica that was up, and not cut from it, may have joined
        the ISR of a leader that has the records."""
        leader = self.elections.terms[n].leader
        until = self.acting.admits_until(leader, min(to_ns, self.acting.ended_ns(n)))
        if self.state.get(leader) in {Has.MUST, Has.MAY} and self.elections.unheard(from_ns, until):
            # (All cases that are decided alike must see the same rest of a silence.)
            since = self.evidence.moment(self.case.of, from_ns)
            for broker in self.elections.replicas:
                if self.state.get(broker) not in {None, Has.WIPED}:
                    continue
                after = max(since, self._wiped_ns(broker)) if self.state.get(broker) is Has.WIPED else since
                if not self.elections.unheard(after, until, without=self.acting.down_times(broker)):
                    continue
                unheard = self.elections.unheard_times(after, until)
                if all(self.acting.cannot_join(broker, leader, begun + LAG_NS, to - LAG_NS) for begun, to in unheard):
                    continue
                if self.state.get(broker) is Has.WIPED:
                    self.in_doubt.add(broker)
                self._now(max(from_ns, self.elections.terms[n].seen_ns), broker, Has.MAY, Why.UNHEARD, n)

    def _perhaps_rejoins(self, n: int, from_ns: int, to_ns: int) -> None:
        """Where ISRs are reported late, a replica that had left the ISR of a leader that has the records may have
        joined it again, unless it was cut from that leader ever since, and be elected before any broker reports it."""
        leader = self.elections.terms[n].leader
        until = self.acting.admits_until(leader, min(to_ns, self.acting.ended_ns(n)))
        since = self.evidence.moment(self.case.of, from_ns)
        if self._leader_had(n, to_ns) not in {Has.MUST, Has.MAY}:
            return
        for broker in self.elections.replicas - {leader}:
            has = self.state.get(broker)
            if has is Has.WIPED:
                out_ns, over_ns = max(self._wiped_ns(broker), since), until
            else:
                out_ns, over_ns = self._may_be_out_ns(n, broker, since), until - LAG_NS
            cut_off = out_ns >= over_ns or self.acting.cannot_join(broker, leader, out_ns, over_ns)
            if has in {None, Has.WIPED} and not cut_off:
                if has is Has.WIPED:
                    self.in_doubt.add(broker)
                self.rejoining.add(broker)
                self._now(max(from_ns, self.elections.terms[n].seen_ns), broker, Has.MAY, Why.PERHAPS_JOINED, n)

    def _may_be_out_ns(self, n: int, broker: int, since: int) -> int:
        """The first time from another on when a broker may have been out of the ISR of a term: that was reported, or a
        fault had struck it or the leader."""
        term = self.elections.terms[n]
        out = (report.from_ns for report in term.reports if broker not in report.isr and report.to_ns >= since)
        struck = self.acting.strikes_ns({broker, term.leader}, since - self.elections.lag_ns)
        return max(since, min([*out, *(at + LAG_NS for at in struck)], default=NEVER))

    def _wiped_in_flight(self, until_ns: int) -> None:
        """A disk was wiped after the records were sent, but before they were known to be written: they may have been
        written before or after the wipe."""
        sent = until_ns if self.case.sent_ns is None else self.case.sent_ns
        for row, broker in self.acting.wipes(sent, until_ns):
            if over(row) < until_ns and self.state.get(broker) is Has.MUST:
                self._now(row["injecting_ns"], broker, Has.MAY, Why.WIPED_IN_FLIGHT, self.number, injection_of(row))
                self.wiped[broker] = row
                self.in_doubt.add(broker)

    def _heard(self, n: int, report: Span, before: frozenset[int] | None, committed: bool, at_ns: int) -> None:
        """Apply a reported ISR of a term. If the leader has the records, every broker in its ISR has them once they are
        committed.

        A broker that lost its disk has them again only after it was seen to join since. A broker that may not have
        heard from the controller may report an old ISR."""
        leader, isr = self.state.get(self.elections.terms[n].leader), frozenset(report.isr)
        own = report.observer == self._who(n)
        late = self.acting.behind(report.observer, at_ns - self.elections.lag_ns, at_ns, leads=own)
        for broker in isr.union(report.elr or ()) if committed else isr:
            has = self.state.get(broker)
            joined = before is not None and broker not in before
            sure = leader is Has.MUST and not late
            if leader not in {Has.MUST, Has.MAY}:
                continue
            if has is Has.WIPED or broker in self.in_doubt:
                since = self._wiped_ns(broker) + self.elections.lag_ns
                if joined and report.from_ns > since and sure and committed:
                    self._now(at_ns, broker, Has.MUST, Why.JOINED, n)
                    self.in_doubt.discard(broker)
                elif joined and report.from_ns > since:
                    self._now(at_ns, broker, Has.MAY, Why.PERHAPS_JOINED, n)
                    self.in_doubt.add(broker)
            elif sure and committed:
                self._now(at_ns, broker, Has.MUST, Why.JOINED, n)
            elif leader is Has.MAY or (late and (not own or committed or joined)):
                self._now(at_ns, broker, has or Has.MAY, Why.PERHAPS_JOINED, n)
            if leader is Has.MAY:
                self.doubted.add(broker)

    def _heard_briefly(self, n: int, report: Span, at_ns: int) -> None:
        """Apply a report that did not last for a lag after the records were committed: who is in the ISR may have
        them, if it was not cut off since."""
        if self.state.get(self.elections.terms[n].leader) in {Has.MUST, Has.MAY}:
            for broker in report.isr:
                if self.state.get(broker) is None and not self._fetched_nothing(broker, self._since(), report.to_ns):
                    self._now(at_ns, broker, Has.MAY, Why.PERHAPS_JOINED, n)

    def _joined(self, n: int, join: Join, at_ns: int) -> None:
        """Brokers joined the ISR of a later term, or may have joined it. If the leader has the records, they have them,
        too: a broker joins only after its log has reached the beginning of the term (KAFKA-7128)."""
        leader = self._leader_had(n, at_ns)
        if leader not in {Has.MUST, Has.MAY}:
            return
        caught_up = self.evidence.configuration.joins_isr_after_term_began
        sure = join.without is not None and leader is Has.MUST and caught_up
        for broker in join.brokers:
            emptied = self.state.get(broker) is Has.WIPED or broker in self.in_doubt
            if emptied and not self._may_be_since_wipe(n, broker, join):
                continue
            if sure and (not emptied or self._surely_since_wipe(broker, join)):
                self._now(at_ns, broker, Has.MUST, Why.JOINED, n)
                self.in_doubt.discard(broker)
            elif emptied or self.state.get(broker) is None:
                self._now(at_ns, broker, Has.MAY, Why.PERHAPS_JOINED, n)
                if emptied:
                    self.in_doubt.add(broker)
            if leader is Has.MAY:
                self.doubted.add(broker)

    def _may_be_since_wipe(self, n: int, broker: int, join: Join) -> bool:
        """Whether a broker may have joined the ISR after its disk was wiped."""
        since = max(join.report.to_ns - self.elections.lag_ns, self.elections.terms[n].begins_ns)
        return since > self._wiped_ns(broker)

    def _surely_since_wipe(self, broker: int, join: Join) -> bool:
        """Whether a broker that joined the ISR between two reports did so after its disk was wiped."""
        since = BEFORE if join.without is None else join.without.to_ns - self.elections.lag_ns
        observer, own = join.report.observer, join.report.observer == self.elections.name(join.report.leader)
        return since > self._wiped_ns(broker) and not self.acting.behind(
            observer, since, join.report.from_ns, leads=own
        )

    def _leader_had(self, n: int, at_ns: int) -> Has | None:
        """What is known of the leader of a term and the records when brokers joined its ISR, as was reported at a time:
        before its disk was wiped, unless it ran again since."""
        leader = self.elections.terms[n].leader
        has = self.state.get(leader)
        if has is not Has.WIPED:
            return has
        had, wiped_ns = self.had[leader]
        if self.acting.down(leader, wiped_ns, at_ns, Does.ENDS_PROCESS):
            return had
        if wiped_ns <= self.elections.terms[n].begins_ns:
            return has
        return Has.MAY if had is Has.MUST else had

    def _joined_before(self, n: int, leader: int, at_ns: int) -> None:
        """A disk is about to be wiped. If it is that of a later leader, who had the records from the beginning of its
        term: who was reported in its ISR, too shortly before to be sure, may have joined it."""
        own = n > self.number and leader == self.elections.terms[n].leader
        reports = [report for report in self.elections.reports_of(n).counted if own and report.from_ns <= at_ns]
        for broker in frozenset[int]().union(*(report.isr for report in reports)) - {leader}:
            if self.state.get(leader) in {Has.MUST, Has.MAY} and self.state.get(broker) is None:
                self._now(at_ns, broker, Has.MAY, Why.PERHAPS_JOINED, n)

    def _fetched_nothing(self, broker: int, from_ns: int, to_ns: int) -> bool:
        """Whether a broker cannot have fetched anything during the whole time: its process had ended before and was not
        started again, or it was cut from every leader of this term and of later terms that may have begun by then."""
        if self.acting.down(broker, from_ns, to_ns, Does.ENDS_PROCESS):
            return True
        own, *later = self.elections.terms[self.number :]
        leaders = {own.leader, *(term.leader for term in later if term.begins_ns <= to_ns)}
        return not self.elections.unseen(from_ns, to_ns, self.number + 1) and all(
            self.acting.cannot_fetch(broker, leader, from_ns, to_ns) for leader in leaders
        )

    def _wiped_ns(self, broker: int) -> int:
        return wiped_ns(self.wiped[broker])

    @property
    def _wipes(self) -> list[Row]:
        """The faults that wiped the disks of those brokers that may have had the records."""
        rows = [row for broker, row in self.lost_with.items() if self.state.get(broker) is Has.WIPED]
        return rows or [*self.wiped.values()]

    def _since(self) -> int:
        known = self.committed if self.committed is not None else self.case.until_ns
        return BEFORE if known is None else known

    def _now(self, at_ns: int, broker: int, has: Has | None, why: Why, n: int, fault: str | None = None) -> None:
        if self.state.get(broker) is has and why is not Why.NOT_IN_SYNC:
            return
        term = self.elections.terms[n]
        self.state.becomes(Change(at_ns, broker, has, why, term.leader, term.epoch, fault))

    def _who(self, n: int) -> str:
        return self.elections.name(self.elections.terms[n].leader)
