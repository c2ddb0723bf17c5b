"""Follows records of one term through later elections: which brokers had them, and which event took them."""

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial

from checkers.evidence.behind import LAG_NS, over
from checkers.evidence.decision import Decision, LossEvent, undecided, untaken
from checkers.evidence.evidence import possible_terms
from checkers.evidence.holding import AT_FIRST, Change, Has, Why
from checkers.evidence.intervals import BEFORE, NEVER
from checkers.evidence.spread import Spread, wiped_ns
from checkers.leadership import known_epoch
from harness.core.faults import Does, injection_of
from harness.core.guarantees import Circumstances, Ruling, standing, violation
from harness.core.verdict import Standing

_MAY_BE_COMMITTED = "it was committed, unless a leader that nobody reported had cut that log before"
_TOO_EARLY = "its leader still reported a high watermark not above it after it had acknowledged it with acks=all"
_OTHERS_MAY_HAVE_HAD_IT = "all that must have had it lost their disks, and others may have had it"

#: After this time without an answer a leader repeats a request to the controller (controller.socket.timeout.ms).
_ASKS_NS = 30_000_000_000


@dataclass
class Walk(Spread):
    """Follows the records of one term through the later elections.

    ``held``, ``may``: the brokers that must have had the records at first, and those that may (``held`` among them).
    ``observed``: whether the ISR of then was reported. ``rulings``: by election, the ruling if it took the records.
    """

    held: frozenset[int] = frozenset()
    may: frozenset[int] = frozenset()
    observed: bool = False
    rulings: dict[int, Ruling] = field(default_factory=dict)

    def __post_init__(self) -> None:
        case, leader = self.case, self.elections.terms[self.number].leader
        sent = BEFORE if case.sent_ns is None else case.sent_ns
        self.committed = self.evidence.committed_ns(self.elections, self.number, case)
        self.held, self.may = frozenset({leader}), frozenset({leader})
        if self.committed is not None:
            in_sync = self.elections.in_sync(self.number, sent, max(self.committed, sent), self.acting.behind)
            self.observed = in_sync is not None
            self.held |= frozenset() if in_sync is None else in_sync.every
            may = self.elections.replicas if in_sync is None or self._too_few(in_sync.any) else in_sync.any
            # (If it may have been acknowledged too early, then perhaps by who fetched nothing.)
            early = self.evidence.acknowledged_early(self.elections, self.number, case, surely=False)
            asked = frozenset() if early else may
            unable = {broker for broker in asked if self._fetched_nothing(broker, sent, self.committed)}
            able = may - {broker for broker in unable if self._reported_out(broker, sent)} | self.held
            few = self._too_few(able)
            if in_sync is None:
                # (Who joined it after its disk was wiped proves nothing.)
                wiped = (row["injecting_ns"] for row, broker in self.acting.wipes(sent, NEVER) if broker == leader)
                from_ns, to_ns = self.committed + self.elections.lag_ns, min(wiped, default=NEVER)
                able |= may & self.elections.reported_in_sync(self.number, from_ns, to_ns)
            self.may |= may | self.held if few else able
        self._begin(leader)

    def _reported_out(self, broker: int, from_ns: int) -> bool:
        """Whether a broker that fetched nothing was reported out of the ISR since a time. Where ISRs are reported at
        once, that needs no report."""
        each = (self.elections.terms[n].reports for n in self.elections.terms_of_one_leader(self.number))
        since = (report for reports in each for report in reports if report.to_ns >= from_ns)
        return not self._isrs_come_late or any(broker not in report.isr for report in since)

    def _begin(self, leader: int) -> None:
        known = (self.case.until_ns, self.case.sent_ns, self.elections.terms[self.number].seen_ns)
        written_ns = next(at for at in known if at is not None)
        self._now(written_ns, leader, Has.MUST, Why.LED, self.number)
        at_ns = written_ns if self.committed in {None, NEVER} else int(self.committed or 0)
        for broker in sorted(self.held - {leader}):
            self._now(at_ns, broker, Has.MUST, Why.IN_SYNC, self.number)
        for broker in sorted(self.may - self.held):
            self._now(at_ns, broker, Has.MAY, Why.SOMETIMES_IN_SYNC, self.number)
        for broker in sorted(self.elections.replicas - self.may):
            self._now(at_ns, broker, None, Why.NOT_IN_SYNC, self.number)

    def _too_few(self, brokers: Set[int]) -> bool:
        """Whether these brokers are fewer than an acknowledgement with acks=all needs in sync. Then another broker was
        in sync unseen, or the acknowledgement came too early."""
        by_all = self.evidence.acknowledged_by_all(self.case)
        return by_all and len(brokers) < self.evidence.configuration.min_insync_replicas

    def decided(self, ruling: Ruling, event: LossEvent | None = None, may_have: Iterable[int] = ()) -> Decision:
        """A decision that includes which brokers must have had the records when they were acknowledged or committed."""
        unknown = self.may - self.held
        need_not = self.elections.replicas - self.held - unknown
        return Decision(ruling, self.held, unknown, need_not, event, may_have=frozenset(may_have))

    def story(self) -> tuple[Change, ...]:
        """What was known about the records at first, and each change of that, in the order of time. (The last records
        of a deposed leader may have been taken before they were appended.)"""
        cut, by = self._cut()
        changes = self.state.changes
        if cut and self._confirmed(self._followed_through(self._later(by), by)).event is None:
            changes = [replace(one, why=Why.LACKED) if one.why is Why.TOOK else one for one in changes]
        return tuple(sorted(changes, key=lambda change: (change.why not in AT_FIRST, change.at_ns)))

    def _cut(self) -> tuple[bool, int | None]:
        """Whether an election may have taken the records; and the epoch by which it had, if known."""
        log = self.evidence.logs.get(self.case.of)
        return (True, None) if log is None else log.cut(self.elections.terms[self.number].epoch, self.case.first_offset)

    def _later(self, by: int | None) -> list[int]:
        """The terms after that of the records, up to the one by which they were taken."""
        terms = self.elections.terms
        return [n for n in range(self.number + 1, len(terms)) if by is None or known_epoch(terms[n].epoch) <= by]

    def decision(self) -> Decision:
        """The decision about the records. An event that came after another write had been acknowledged in their place
        does not excuse their loss: their leader may have lacked them before. (Another broker may still have had
        them.) Nor does an event after which a consumer still fetched them."""
        found = self._confirmed(self._decision())
        early = found.standing is not Standing.VIOLATION and self._acknowledged_early()
        return self._undecided(_TOO_EARLY, []) if early else found

    def _acknowledged_early(self) -> bool:
        """Whether the records were acknowledged before they were committed, whichever leader did. (A deposed
        leader goes on reporting a high watermark, whatever its successor acknowledges.)"""
        early = partial(self.evidence.acknowledged_early, self.elections, case=self.case)
        return early(self.number) and all(map(early, possible_terms(self.elections, self.case, self.acting)))

    def _confirmed(self, found: Decision) -> Decision:
        gone = self.evidence.gone(self.case)
        if found.standing is Standing.PERMITTED and found.event is not None and self._fetched_after(found.event):
            found = self._undecided("a consumer still got it after that", found.may_have)
        if self.case.fetched_ns is not None:
            found = _only(found, lambda n: not self._fetched_in_later(n))
        event = found.event
        if found.standing is Standing.VIOLATION:
            term = None if event is None else event.term
            ruled_out = term is not None and (self._fetched_in_later(term) or (gone is not None and term > gone.term))
            return replace(found, event=None) if ruled_out else found
        if gone is None:
            return found
        if event is None:
            return _only(found, lambda n: n <= gone.term)
        late = event.at_ns > gone.by_ns if event.term is None else event.term > gone.term
        return self._undecided("something else had been acknowledged in its place before", []) if late else found

    def _fetched_after(self, event: LossEvent) -> bool:
        """Whether a consumer fetched the records after an event had taken them from every leader of that time."""
        if event.term is not None:
            return self._fetched_in_later(event.term)
        lost = (NEVER if row["injected_ns"] is None else row["injected_ns"] for row in self._wipes)
        return self.case.fetched_ns is not None and self.case.fetched_ns > max(lost)

    def _fetched_in_later(self, n: int) -> bool:
        """Whether a consumer fetched the records when every earlier leader than that of a term was over."""
        fetched_ns = self.case.fetched_ns
        return fetched_ns is not None and min(self.elections.open(fetched_ns, NEVER), default=n) >= n

    def _decision(self) -> Decision:
        promise = untaken(self.anomaly, self.evidence.configuration, self.case)
        cut, by = self._cut()
        if not cut:
            return self.decided(promise)
        later = self._later(by)
        wiped = self.acting.wipes(BEFORE if self.case.sent_ns is None else self.case.sent_ns, NEVER)
        by_hand = self.acting.unseen_by_hand or any(self.acting.may_be_by_hand(n) for n in later)
        uncleanly = self.evidence.configuration.elects_uncleanly
        if self.committed is not None and not wiped and not by_hand and not uncleanly:
            return self.decided(promise, self._first_that_may_have(later))
        return self._followed_through(later, by)

    def _followed_through(self, later: Sequence[int], by: int | None) -> Decision:
        """Follow the records through the elections after their term, and decide."""
        terms, promise = self.elections.terms, untaken(self.anomaly, self.evidence.configuration, self.case)
        perhaps: list[int] = []
        back: list[int] = []
        since_all_had_it = 0
        taken: Decision | None = None
        since = self._since()
        for number, n in enumerate(later, 1):
            self.go_on(n - 1, since, terms[n].seen_ns)
            since = max(since, terms[n].seen_ns)
            if self._never_led_empty(n):
                continue
            has = self._of_elected(n, all_led_have_it=taken is None and not perhaps)
            since_all_had_it = since_all_had_it if has is Has.MUST else number
            if has is Has.MUST:
                taken, perhaps, back = None, [*perhaps, *back], []
            elif has is Has.MAY:
                self.rulings[n] = self._ruling_if_taken(n)
                self._elected(n, Why.PERHAPS_ELECTED)
                (perhaps if taken is None else back).append(n)
                must = [broker for broker, known in self.state.items() if known is Has.MUST]
                self.doubted |= {terms[n].leader, *must}
                for broker in must:
                    self._now(terms[n].seen_ns, broker, Has.MAY, Why.DOUBTED, n)
            else:
                if taken is None:
                    self._elected(n, Why.PERHAPS_ELECTED if self._fetched_in_later(n) else Why.TOOK)
                if taken is None or back:
                    found = self._taken(n, has, perhaps)
                    if taken is not None and found.standing is not taken.standing:
                        return self._again(back, taken, [*perhaps, n])
                    taken, back = taken or found, []
                self._followed(n)
        if taken is not None:
            return self._again(back, taken, perhaps) if back else taken
        if not any(by is not None and terms[n].epoch == by for n in later):
            self.go_on(later[-1] if later else self.number, since, NEVER)
        event = self._first_that_may_have(later[since_all_had_it:])
        return self._not_taken(perhaps, by, self.decided(promise, event), later)

    def _elected(self, n: int, why: Why) -> None:
        term = self.elections.terms[n]
        self.state.note(term.seen_ns, term.leader, why, term.epoch)

    def _again(self, back: Sequence[int], taken: Decision, others: Iterable[int]) -> Decision:
        """The decision if later leaders may still have had the records, although an earlier one lacked them."""
        took = [] if taken.event is None or taken.event.term is None else [taken.event.term]
        return self._undecided(f"{self._who(back[-1])} was elected again, and may have had it", {*back, *others, *took})

    def _followed(self, n: int) -> None:
        """A leader lacked the records: a holder that was up in its term may have followed it, and then lacks them, too
        (only followers truncate: KIP-101)."""
        since, until = self.elections.terms[n].begins_ns, self._led_until(n)
        reports = sorted(self.elections.terms[n].reports, key=lambda report: report.from_ns)
        joined = frozenset[int]().union(*(report.isr for report in reports)) - frozenset[int](
            *(w.isr for w in reports[:1])
        )
        for broker, known in [*self.state.items()]:
            if known is not Has.WIPED and broker in joined:
                at_ns = next(report.from_ns for report in reports[1:] if broker in report.isr)
                self._now(at_ns, broker, None, Why.FOLLOWED, n)
            elif known is Has.MUST and not self.acting.down(broker, since, until):
                up_ns = self.acting.up_ns(broker, self.elections.terms[n].seen_ns)
                self._now(up_ns, broker, Has.MAY, Why.PERHAPS_FOLLOWED, n)

    def _never_led_empty(self, n: int) -> bool:
        """Whether the leader of a term had lost its disk, and its process did not run from then until the term was
        over, so that no broker followed it. With eligible leader replicas it does not lead any more after a restart
        (KIP-966: it shut down uncleanly), unless it reported that it leads."""
        term, reported = self.elections.terms[n], self.elections.name(self.elections.terms[n].leader)
        if self.state.get(term.leader) is not Has.WIPED:
            return False
        guarded = self.evidence.last_replica_guarded and all(one.observer != reported for one in term.reports)
        until = term.seen_ns if guarded else self._led_until(n)
        return self.acting.down(term.leader, self.wiped[term.leader]["injecting_ns"], until, Does.ENDS_PROCESS)

    def _may_lead_empty_again(self, n: int) -> bool:
        """Whether the leader of a term lost its disk since that began, and may have been elected again for all that
        was reported: without epochs nothing distinguishes that from the same term, if nobody was asked in between."""
        leader, begins_ns = self.elections.terms[n].leader, self.elections.terms[n].begins_ns
        wiped = leader in self.wiped and self.wiped[leader]["injecting_ns"] >= begins_ns
        return wiped and self.elections.without_epochs

    def _led_until(self, n: int) -> int:
        """The end of a term: another one was seen, a later epoch was reported, or its leader's process had ended."""
        following = [term.seen_ns for term in self.elections.terms[n + 1 : n + 2]]
        return min([*following, self.elections.epoch_after_ns(n), self.acting.ended_ns(n)])

    def _of_elected(self, n: int, all_led_have_it: bool) -> Has | None:
        """What is known about the leader of a term at its election. A clean election elects a broker that has all
        committed records, whatever ISR was reported, as long as every earlier leader had them."""
        leader = self.elections.terms[n].leader
        has = self.state.get(leader)
        clean = not self.evidence.configuration.elects_uncleanly and not self.acting.may_be_by_hand(n)
        if self.committed is not None and clean and all_led_have_it and self._kept_its_disk(leader):
            has = Has.MUST
            if self.state.get(leader) is not has:
                self._now(self.elections.terms[n].seen_ns, leader, has, Why.ELECTED_CLEANLY, n)
                return has
        elif has is Has.WIPED and clean and self._rejoined_unseen(n):
            has = Has.MUST if all_led_have_it and self._left_since_wipe(n) else Has.MAY
            why = Why.ELECTED_CLEANLY if has is Has.MUST else Why.PERHAPS_JOINED
            self._now(self.elections.terms[n].seen_ns, leader, has, why, n)
            if has is Has.MUST:
                return has
            self.in_doubt.add(leader)
        if has is Has.MUST:
            self._elected(n, Why.ELECTED)
        return has

    def _rejoined_unseen(self, n: int) -> bool:
        """Whether the leader of a term that was elected from the ISR, and lost its disk before, was not in the last
        reported ISR: so it joined that since, if the leader before it was up after that."""
        leads = min(self.elections.terms[n].seen_ns, self.acting.ended_ns(n - 1))
        joins = self._wiped_ns(self.elections.terms[n].leader) < leads
        # (Who joins the ISR of a later term has what stood there when it began: KAFKA-7128.)
        later = n - 1 > self.number and self.evidence.configuration.joins_isr_after_term_began
        return (self.committed is not None or later) and joins and self._last_known(n) is False and not self._in_sync(n)

    def _left_since_wipe(self, n: int) -> bool:
        """Whether the leader of a term was certainly not in the ISR at some time after its disk was wiped: it was not
        in the last ISR before the term, which was still reported then."""
        reported_ns = self.elections.last_reported_ns(n) - self.elections.lag_ns
        return reported_ns > self._wiped_ns(self.elections.terms[n].leader) and not self._either(n)

    def _kept_its_disk(self, broker: int) -> bool:
        return self.state.get(broker) is not Has.WIPED and broker not in self.in_doubt

    def _circumstances(self, n: int, has: Has | None) -> Circumstances:
        """What is known of the election of a leader, and of the records if it took them."""
        return Circumstances(
            elected=True,
            uncleanly=not self._in_sync(n),
            isr_faulted=self.acting.isr_faulted(n) and self._eligible_known(n),
            by_hand=self.acting.by_hand(n),
            emptied=has is Has.WIPED,
            disks_lost=self._disks_lost(),
            committed=self.committed is not None,
            last_replica_guarded=self.evidence.last_replica_guarded,
            last_known=self._last_known(n) is True,
            in_time=self.case.in_time is not False,
        )

    def _last_known(self, n: int) -> bool | None:
        return self.elections.last_known(n) if self.evidence.last_replica_guarded else False

    def _may_have_dropped(self, n: int) -> bool:
        """Whether the leader of a term may have had the records when it was elected, and have dropped them later with
        others above them."""
        written, offset = self.evidence.written.get((self.case.of, n)), self.case.first_offset
        return written is not None and offset is not None and offset <= written.twice

    def _ruling_if_taken(self, n: int) -> Ruling:
        """The ruling if the election of a term took the records: by what was known when it was asked first, at that
        election. (A disk that was lost later excuses no earlier loss.)"""
        if n in self.rulings:
            return self.rulings[n]
        leader = self.elections.terms[n].leader
        if leader in self.rejoining:
            return violation(self.anomaly, self.evidence.configuration)
        happened = self._circumstances(n, self.state.get(leader))
        # (If this election took them, every leader before had them, and so had whoever is doubted because of one.)
        if any(self.state.get(broker) is Has.MAY for broker in self.doubted):
            happened = replace(happened, disks_lost=False)
        return standing(self.anomaly, self.evidence.configuration, happened)

    def _taken(self, n: int, has: Has | None, perhaps: Sequence[int]) -> Decision:
        """The decision if an election elected a broker that need not have had the records."""
        happened = self._circumstances(n, has)
        event = self._event(n)
        ruling = standing(self.anomaly, self.evidence.configuration, happened)
        self.rulings[n] = self._ruling_if_taken(n)
        if has is Has.WIPED and ruling.standing is Standing.PERMITTED and self._older_survived():
            return self._undecided("every disk was wiped, and yet the log of before continues", [n])
        if has is Has.WIPED and ruling.standing is Standing.PERMITTED and self._joined_before_its_wipe(n):
            return self._undecided(self._disk_lost_when(n), [])
        log = self.evidence.logs.get(self.case.of)
        placed = log is None or log.shows_cut(self.elections.terms[self.number].epoch, self.case.first_offset)
        if ruling.standing is Standing.PERMITTED and not placed and not self._disks_lost():
            return self._undecided("nobody knows where it stood, or whether an election cut the log there", [n])
        if perhaps:
            return self._undecided(f"{self._who(perhaps[0])} was elected, and may have had it", [*perhaps, n])
        if ruling.standing is Standing.PERMITTED and self._may_have_dropped(n) and not self._disks_lost():
            return self._undecided(f"{self._who(n)} may have had it when it was elected, and have dropped it", [])
        doubt = next(self._doubts(happened, n), None) if ruling.standing is Standing.VIOLATION else None
        doubt = doubt or self._doubt_of_disks(ruling, happened) or self._doubt_of_commit(ruling, happened)
        doubt = doubt or self._doubt_of_isr(n, ruling, happened)
        return self.decided(ruling, event, [n]) if doubt is None else self._undecided(doubt, [n])

    def _doubt_of_disks(self, ruling: Ruling, happened: Circumstances) -> str | None:
        """The doubt that other brokers may have had the records, if only the loss of disks permits the loss of the
        records."""
        if ruling.standing is not Standing.PERMITTED or not happened.disks_lost or Has.MAY not in self.state.values():
            return None
        otherwise = standing(self.anomaly, self.evidence.configuration, replace(happened, disks_lost=False))
        return None if otherwise.standing is Standing.PERMITTED else _OTHERS_MAY_HAVE_HAD_IT

    def _doubt_of_isr(self, n: int, ruling: Ruling, happened: Circumstances) -> str | None:
        """The doubt that the leader of a term was not elected from the ISR, if only a clean election permits the loss
        of the records."""
        if ruling.standing is not Standing.PERMITTED or happened.uncleanly or self._isr_known(n):
            return None
        if_so = standing(self.anomaly, self.evidence.configuration, replace(happened, uncleanly=True))
        return None if if_so.standing is Standing.PERMITTED else _isr_unreported(self._who(n))

    def _doubt_of_commit(self, ruling: Ruling, happened: Circumstances) -> str | None:
        """The doubt that the records may have been committed, if only that they were not permits their loss."""
        if ruling.standing is not Standing.PERMITTED or self.committed is not None or not self.perhaps_committed:
            return None
        if_so = standing(self.anomaly, self.evidence.configuration, replace(happened, committed=True))
        return None if if_so.standing is Standing.PERMITTED else _MAY_BE_COMMITTED

    def _doubts(self, happened: Circumstances, n: int) -> Iterator[str]:
        """Doubts about an election: unknown facts that would make a violation permitted."""

        def permits(**otherwise: bool) -> bool:
            if_so = standing(self.anomaly, self.evidence.configuration, replace(happened, **otherwise))
            return if_so.standing is Standing.PERMITTED

        if not happened.by_hand and self.acting.may_be_by_hand(n) and permits(by_hand=True, isr_faulted=True):
            yield f"nobody knows which of several elections, that of {self._who(n)} among them, was asked for by hand"
        if not happened.uncleanly and self.acting.isr_may_be_faulted(n) and permits(isr_faulted=True):
            yield f"nobody knows whether the rest of the ISR was faulted before {self._who(n)} was elected, or after"
        missed = self.elections.isr_missed(n) or self.elections.reported_late(n) or self._either(n)
        if (
            not happened.uncleanly
            and missed
            and (permits(uncleanly=True, isr_faulted=True) or permits(isr_faulted=True))
        ):
            yield _isr_unreported(self._who(n))
        silent = self.elections.unheard(self.elections.last_reported_ns(n), self.elections.terms[n].seen_ns)
        if not happened.uncleanly and silent and permits(uncleanly=True, isr_faulted=True):
            yield f"nobody had reported the ISR for some time when {self._who(n)} was elected"
        if happened.emptied and self._may_have_lost_its_disk_later(n):
            yield self._disk_lost_when(n)
        if happened.emptied and permits(disks_lost=True) and self._nobody_followed_empty(n):
            yield f"no broker that may have had it ran while {self._who(n)} led with an empty disk"
        if happened.uncleanly and permits(isr_faulted=True):
            yield f"nobody knows why no broker of the ISR was elected in place of {self._who(n)}"
        if happened.uncleanly and permits(uncleanly=False) and not self._isr_lasted(n):
            yield f"nobody knows whether {self._who(n)} was in the ISR when it was elected"
        if self._may_be_committed_later(n):
            yield f"{self._who(n)} led before it was written, and it may have been committed under a later leader"
        if self._last_known(n) is None and self._all_else_may_have_left(n) and permits(uncleanly=True, last_known=True):
            yield f"nobody knows whether {self._who(n)} was elected as the last known leader"

    def _disk_lost_when(self, n: int) -> str:
        return f"nobody knows whether {self._who(n)} lost its disk before it was elected, or after"

    def _may_have_lost_its_disk_later(self, n: int) -> bool:
        """Whether the term of a leader whose disk was wiped may have begun before its process ended for that."""
        term = self.elections.terms[n]
        return term.begins_ns < self.acting.last_ended_ns(term.leader, self.wiped[term.leader]["injecting_ns"])

    def _joined_before_its_wipe(self, n: int) -> bool:
        """Whether another broker joined the ISR of a term before its leader lost its disk: that was reported when the
        leader had not run since."""
        leader, wiped_ns = self.elections.terms[n].leader, self.wiped[self.elections.terms[n].leader]["injecting_ns"]
        return any(
            join.brokers - {leader} and self.acting.down(leader, wiped_ns, join.at_ns, Does.ENDS_PROCESS)
            for join in self.acting.joins(n)
            if join.at_ns == join.report.from_ns > wiped_ns
        )

    def _nobody_followed_empty(self, n: int) -> bool:
        """Whether no broker that may have the records ran with them while the empty leader of a term did, so that none
        of them followed it; and all of them lost their disks after the election."""
        term, until = self.elections.terms[n], self._led_until(n)
        up_ns = self.acting.up_ns(term.leader, max(self.wiped[term.leader]["injecting_ns"], term.begins_ns))
        wipes = self.acting.wipes(term.seen_ns, NEVER)

        def had_not_run(broker: int) -> bool:
            lost = min((row["injecting_ns"] for row, wiped in wipes if wiped == broker), default=None)
            led_ns = NEVER if lost is None else min(until, lost)
            return lost is not None and (led_ns <= up_ns or self.acting.down(broker, up_ns, led_ns, Does.ENDS_PROCESS))

        return all(had_not_run(broker) for broker, has in self.state.items() if has in {Has.MUST, Has.MAY})

    def _may_be_committed_later(self, n: int) -> bool:
        """Whether the records were written when the election of a term had been seen, by a leader that did not know of
        it yet; and a later leader may have had them before anybody knew that they were committed."""
        sent, terms = self.case.sent_ns, self.elections.terms
        if self.committed is None or sent is None or sent <= terms[n].seen_ns:
            return False
        led = (term.leader for term in terms[n + 1 :] if term.begins_ns <= self.committed)
        return any(self.state.get(leader) in {Has.MUST, Has.MAY} for leader in led)

    def _all_else_may_have_left(self, n: int) -> bool:
        """Whether, with eligible leader replicas, all other eligible brokers may have lost their eligibility unseen, as
        a broker does when it shuts down uncleanly."""
        others = self.elections.surely_eligible(n) - {self.elections.terms[n].leader}
        return self.evidence.last_replica_guarded and self.acting.all_under(others, n)

    def _not_taken(self, perhaps: Sequence[int], by: int | None, broken: Decision, later: Sequence[int]) -> Decision:
        if self._disks_lost():
            return self._gone_with_disks(perhaps, by, later)
        if perhaps:
            return self._undecided(f"{self._who(perhaps[0])} was elected, and may have had it", perhaps)
        terms = self.elections.terms
        known = by is None or any(terms[n].epoch == by for n in later)
        until = self._over_ns if by is None or not later else terms[later[-1]].seen_ns
        forbidden = self.committed is not None and not self._may_elect_uncleanly() and not self.wiped
        known = known and not any(self._may_lead_empty_again(n) for n in (self.number, *later))
        if not forbidden and not (known and self.elections.seen_whole(self.number, until, self.acting.behind)):
            return self._undecided("there may have been an election that nobody reported", [])
        return broken

    def _first_that_may_have(self, later: Iterable[int]) -> LossEvent | None:
        """The first election that may have taken the records: no consumer fetched them since."""
        return next((self._event(n) for n in later if not self._fetched_in_later(n)), None)

    def _gone_with_disks(self, perhaps: Sequence[int], by: int | None, later: Sequence[int]) -> Decision:
        """The decision if no election took the records, and all that must have had them lost their disks."""
        happened = Circumstances(
            disks_lost=True, committed=self.committed is not None, in_time=self.case.in_time is not False
        )
        lost = standing(self.anomaly, self.evidence.configuration, happened)
        wrote = [n for n in later if self.elections.terms[n].epoch == by and self._never_led_empty(n)]
        if by is not None and wrote:
            return self._undecided(f"{self._who(wrote[0])} wrote in its place before it lost its disk", perhaps)
        if lost.standing is Standing.PERMITTED and self._older_survived():
            return self._undecided("every disk was wiped, and yet the log of before continues", [])
        if lost.standing is Standing.PERMITTED and not perhaps and Has.MAY not in self.state.values():
            wipes = tuple(sorted({injection_of(row) for row in self._wipes}))
            return self.decided(lost, LossEvent(max(map(wiped_ns, self._wipes)), wipes=wipes))
        return self._undecided(_OTHERS_MAY_HAVE_HAD_IT, perhaps)

    @property
    def _over_ns(self) -> int:
        """The end of the run's writes and faults, when the final read began."""
        return max(self.evidence.end_ns, self.acting.healed_ns)

    def _undecided(self, why: str, may_have: Iterable[int]) -> Decision:
        """An undecided loss. It may become a permitted neighbour's only by an election which may take these records,
        too: what was never committed may go where what was committed may not. Nor does it by that of a broker that
        could fetch them."""
        takers = {n: self._ruling_if_taken(n) for n in may_have if not self._could_fetch_it(n)}
        allowed = {n: ruling for n, ruling in takers.items() if ruling.standing is Standing.PERMITTED}
        found = self.decided(undecided(self.anomaly, why), may_have=allowed)
        return replace(found, rulings=allowed, may_not_have=frozenset(takers) - found.may_have)

    def _could_fetch_it(self, n: int) -> bool:
        """Whether no fault struck the leader of a term, or the leader of the records, while they were written, until a
        moment before they were committed. (Where ISRs are reported late, nobody knows whether it was in sync then.)"""
        elected, leader = self.elections.terms[n].leader, self.elections.terms[self.number].leader
        if self.committed is None or not self._isrs_come_late:
            return False
        sent_ns = BEFORE if self.case.sent_ns is None else self.case.sent_ns
        struck = self.acting.strikes_ns({elected, leader}, sent_ns - LAG_NS)
        return min(struck, default=NEVER) > max(self.committed, sent_ns) - LAG_NS

    def _disks_lost(self) -> bool:
        return Has.WIPED in self.state.values() and Has.MUST not in self.state.values()

    def _older_survived(self) -> bool:
        """Whether all replicas were empty at the same time, but the final log still has records of that epoch or an
        earlier one, or begins above its start."""
        log = self.evidence.logs.get(self.case.of)
        epoch = self.elections.terms[self.number].epoch
        emptied = [self.wiped[broker] for broker in self.elections.replicas if self.state.get(broker) is Has.WIPED]
        if log is None or epoch is None or len(emptied) < len(self.elections.replicas):
            return False
        at_once = max(row["injecting_ns"] for row in emptied) <= min(map(over, emptied))
        return at_once and (bool((log.epochs <= epoch).any()) or log.starts_later)

    def _in_sync(self, n: int) -> bool:
        return self.elections.terms[n].leader in self.elections.eligible(n)

    def _eligible_known(self, n: int) -> bool:
        """Whether it is known who was eligible before an election besides the ISR: the ELR was reported, or has nobody
        (beside an ISR that is not below min.insync.replicas: KIP-966)."""
        before = self.elections.last_before(n)
        least = min(self.evidence.configuration.min_insync_replicas, len(self.elections.replicas))
        empty = before is not None and len(before.isr) >= least
        return self._isr_known(n) and (
            not self.evidence.last_replica_guarded or empty or self.elections.elr_reported(n)
        )

    def _isr_known(self, n: int) -> bool:
        """Whether only one ISR may be the last one before an election."""
        return not self.elections.reported_late(n) and not self._either(n)

    def _either(self, n: int) -> bool:
        """Whether the elected broker was in one of two ISRs of which nobody knows which is newer."""
        isrs = self.elections.isrs_before(n)
        return len({self.elections.terms[n].leader in isr for isr in isrs}) > 1

    def _isr_lasted(self, n: int) -> bool:
        """Whether the last ISR reported before an election was reported for long enough to be the real last one; or, if
        the elected broker joined it later, it has the records, because they had been committed."""
        before, reported_ns = self.elections.last_before(n), self.elections.last_reported_ns(n)
        if before is None or reported_ns - before.from_ns < self.elections.lag_ns:
            return False
        until = min(self.elections.terms[n].seen_ns, self.acting.ended_ns(n - 1))
        if self.elections.unheard(reported_ns, until):
            return False
        last_ns = reported_ns - self.elections.lag_ns
        leader, elected = before.leader, self.elections.terms[n].leader
        # (If the leader has requested a wider ISR, it commits nothing that the joining brokers lack: KIP-497.)
        asked_ns = max(before.from_ns - self.elections.lag_ns, last_ns - _ASKS_NS)
        asks = leader >= 0 and self.acting.asks_late(leader, asked_ns, self.elections.terms[n].seen_ns)
        # (A leader that is alone in the ISR commits at once, if the settings allow that.)
        at_once = set(before.isr) == {leader} and self.evidence.configuration.commits_alone and not asks
        known = self.case.until_ns if at_once and self.committed is None else self.committed
        written = known is not None and known <= last_ns and self.state.get(leader) is Has.MUST
        emptied = elected in self.wiped and self.wiped[elected]["injecting_ns"] > last_ns
        return (written and not emptied) or (not asks and self._had_no_leader_to_follow(n, leader, last_ns))

    def _had_no_leader_to_follow(self, n: int, leader: int, from_ns: int) -> bool:
        """Whether the elected broker asked nothing of the previous leader from some time on, and so joined no ISR."""
        elected, until = self.elections.terms[n].leader, self.elections.terms[n].seen_ns
        gone = leader < 0 or self.acting.down(leader, from_ns, until)
        return gone or self.acting.cannot_join(elected, leader, from_ns, until)

    def _may_elect_uncleanly(self) -> bool:
        return self.evidence.configuration.elects_uncleanly or self.acting.any_by_hand

    def _event(self, n: int) -> LossEvent:
        term = self.elections.terms[n]
        before = self.elections.last_before(n) if self._isr_known(n) else None
        in_isr = None if before is None else term.leader in before.isr
        return LossEvent(term.seen_ns, n, term.leader, term.epoch, in_isr)


def _isr_unreported(elected: str) -> str:
    return f"nobody had reported by then the ISR from which {elected} was elected"


def _only(found: Decision, may_take: Callable[[int], bool]) -> Decision:
    """A decision in which only the elections of these terms may have taken the records."""
    may, may_not = (frozenset(filter(may_take, terms)) for terms in (found.may_have, found.may_not_have))
    return replace(found, may_have=may, may_not_have=may_not)
