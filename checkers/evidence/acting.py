"""How the faults of a run acted on the brokers of one partition, looked up by time.

An election of a broker outside the ISR is excused only if each broker that Kafka had to prefer could not be elected
(``isr_faulted``). Three questions decide that:

- whom Kafka had to prefer: the brokers of the last ISR and ELR that were reported before, and those that may have
  joined since without a report that counts (``_others``, ``_may_have_joined``);
- when the election may have happened: after a fault had hit the leader, or after its request by hand, until the new
  leader was first reported (``_earliest_ns``, ``seen_ns``);
- when a broker could not be elected: from the time when a fault took its process, its disk or its session, until it was
  seen back, or for a while after the heal (``_unfit_times``).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import cached_property

from checkers.evidence.behind import LAG_NS, BehindTimes, begun_to_heal, over
from checkers.evidence.elections import Elections
from checkers.evidence.intervals import BEFORE, NEVER, Intervals
from checkers.evidence.joins import Join, joins_of
from checkers.leadership import COMES_BACK_NS, FRESH_NS
from harness.core.faults import (
    Does,
    Row,
    acted_on,
    cuts_only,
    does,
    hit,
    hits_controllers,
    in_force_since_ns,
    loses,
    may_be_unfit,
    may_keep_answers,
    only_hears_nothing,
    opposite,
    sides,
    started,
    unfit,
)
from harness.core.guarantees import asked_by_hand
from harness.core.topology import Role
from harness.history.run_file import QUICK_SILENCE_NS

#: Faults under which a process does nothing.
_DOWN = (Does.ENDS_PROCESS, Does.HALTS_PROCESS)


class Acting:
    """The faults of a run, as they acted on the brokers of one partition. ``behind``: when they kept metadata back.
    ``controllers``: the names of the controllers, or of the ZooKeeper nodes. ``silence_ns``: a broker that is silent
    for less than this time keeps its session."""

    def __init__(
        self,
        elections: Elections,
        faults: Sequence[Row],
        behind: BehindTimes,
        controllers: frozenset[str] = frozenset(),
        silence_ns: int = QUICK_SILENCE_NS,
    ) -> None:
        self._elections = elections
        self._faults = faults
        self._behind = behind
        self._kraft = behind.propagation.kraft
        self._controllers = controllers
        self._silence_ns = silence_ns
        self._brokers = frozenset(elections.names.values())
        self._downs: dict[tuple[int, tuple[Does, ...]], Intervals] = {}
        self._cuts: dict[tuple[int, int, tuple[int, ...]], Intervals] = {}
        self._ends: dict[int, int] = {}
        self._late: dict[int, Intervals] = {}
        self._isr: dict[int, bool] = {}
        self._joins: dict[int, list[Join]] = {}
        self._unfits: dict[int, Intervals] = {}
        self._barred: dict[int, Intervals] = {}
        self._struck: dict[int, tuple[Intervals, list[int]]] = {}

    def down(self, broker: int, from_ns: int, to_ns: int, *by: Does) -> bool:
        """Whether a broker's process did nothing during the whole time: it had ended, or was halted."""
        return self.down_times(broker, *by).cover(from_ns, to_ns)

    def down_times(self, broker: int, *by: Does) -> Intervals:
        """The times in which a broker's process had ended, or was halted, and reported nothing.

        A fault of several nodes may have been healed earlier on one of them. If the restart of that node was not
        recorded, any of the nodes that never reported again may be the one.
        """
        if (broker, by) not in self._downs:
            self._downs[broker, by] = Intervals(self._down_times(self._elections.name(broker), by or _DOWN))
        return self._downs[broker, by]

    def _down_times(self, name: str, by: tuple[Does, ...]) -> Iterator[tuple[int, int]]:
        for row in self._faults:
            begun = row["injected_ns"]
            if begun is None or not any(does(row, what) for what in by) or name not in acted_on(row):
                continue
            until = min(begun_to_heal(row), self._restarted_ns(name, begun))
            if self._elections.reported_nothing(name, begun, until) and not self._ended_unseen(row, name, begun, until):
                yield int(begun), until

    def _ended_unseen(self, row: Row, name: str, begun: int, until: int) -> bool:
        """Whether a fault of several nodes that was healed by ``until`` may have been over for this node at any time
        since it had ``begun``: its restart was not recorded, and it never reported again."""
        healed_together = len(row["nodes"]) > 1 and until != NEVER and self._restarted_ns(name, begun) == NEVER
        return healed_together and not self._elections.reported_since(name, begun)

    def _restarted_ns(self, name: str, begun: int) -> int:
        """When a node's process was first started again from a time on; NEVER if that was not recorded."""
        return next((at for at in self._started.get(name, ()) if at >= begun), NEVER)

    @cached_property
    def _started(self) -> dict[str, list[int]]:
        """For each node, the times by which its process had been started again, in order, as far as they were
        recorded."""
        found: dict[str, list[int]] = {}
        for row in self._faults:
            for name, at_ns in started(row).items():
                found.setdefault(name, []).append(at_ns)
        return {name: sorted(times) for name, times in found.items()}

    def cannot_fetch(self, follower: int, leader: int, from_ns: int, to_ns: int) -> bool:
        """Whether a follower got nothing from a leader during the whole time: the leader's packets were lost, or the
        follower's process had ended. (If only the other direction is cut, earlier requests may still be answered.)"""
        return self._apart(leader, follower, follower).cover(from_ns, to_ns)

    def cannot_join(self, follower: int, leader: int, from_ns: int, to_ns: int) -> bool:
        """Whether none of a follower's requests reached a leader during the whole time, so that it joined none of the
        leader's ISRs: its packets were lost, or the process of either had ended; or it got no answers, and so could not
        send the next request. (Packets that a cut holds back arrive after the heal.)"""
        asked_nothing = self._apart(follower, leader, follower, leader).cover(from_ns, to_ns)
        return asked_nothing or any(begun <= from_ns and to_ns <= over for begun, over in self._apart(leader, follower))

    def _apart(self, sender: int, receiver: int, *unless_ended: int) -> Intervals:
        """The times in which no packet of one broker reached another, or in which the process of a broker in
        ``unless_ended`` had ended."""
        key = sender, receiver, unless_ended
        if key not in self._cuts:
            names = self._elections.name(sender), self._elections.name(receiver)
            cuts = [
                (int(row["injected_ns"]), begun_to_heal(row))
                for row in self._faults
                if row["injected_ns"] is not None and loses(row, *names)
            ]
            ended = (time for broker in unless_ended for time in self.down_times(broker, Does.ENDS_PROCESS))
            self._cuts[key] = Intervals([*cuts, *ended])
        return self._cuts[key]

    def up_ns(self, broker: int, at_ns: int) -> int:
        """The first time from ``at_ns`` on when a broker's process was up."""
        return self.down_times(broker).left(at_ns)

    def last_ended_ns(self, broker: int, by_ns: int) -> int:
        """When a broker's process ended for the last time, by a time; BEFORE if it did not."""
        ended = (at for at, _ in self._endings.get(self._elections.name(broker), []) if at <= by_ns)
        return max(ended, default=BEFORE)

    def joins(self, number: int) -> list[Join]:
        """Who joined the ISR in a term, or may have joined it."""
        if number not in self._joins:
            self._joins[number] = list(joins_of(self._elections, number, self._restarts))
        return self._joins[number]

    def _restarts(self, broker: int) -> list[int]:
        """When a broker's process was started again, in order."""
        return sorted(back for _, back in self._endings.get(self._elections.name(broker), []))

    def ended_ns(self, number: int) -> int:
        """The time when the process of a term's leader ended, after its last report that it leads.

        Without epochs, the leader may have continued the same term after a restart, as long as others reported that.
        """
        if number not in self._ends:
            term = self._elections.terms[number]
            leader = self._elections.names.get(term.leader)
            claimed = max((one.to_ns for one in term.reports if one.observer == leader), default=NEVER)
            reported = max((one.to_ns for one in term.reports), default=BEFORE) if term.epoch is None else BEFORE
            ended = self._endings.get(leader or "", [])
            last = (at for at, back in ended[bisect_left(ended, (claimed, BEFORE)) :] if back >= reported)
            self._ends[number] = next((at + LAG_NS for at in last), NEVER)
        return self._ends[number]

    @cached_property
    def _endings(self) -> dict[str, list[tuple[int, int]]]:
        """For each broker, when its process ended and when it was started again, in order."""
        found: dict[str, list[tuple[int, int]]] = {}
        for row in self._faults:
            if does(row, Does.ENDS_PROCESS) and row["injected_ns"] is not None:
                begun = int(row["injected_ns"])
                for name in acted_on(row):
                    back = min(begun_to_heal(row), self._restarted_ns(name, begun))
                    found.setdefault(name, []).append((begun, back))
        return {name: sorted(times) for name, times in found.items()}

    def strikes_ns(self, brokers: Set[int], from_ns: int) -> list[int]:
        """When the faults began that acted on any of these brokers, and were not over at a time."""
        names = frozenset(map(self._elections.name, brokers))
        return [int(row["injecting_ns"]) for row in self._faults if from_ns <= over(row) and acted_on(row) & names]

    def wipes(self, from_ns: int, to_ns: int) -> list[tuple[Row, int]]:
        """The wipes of disks of the partition's replicas that had begun by ``to_ns``, and were not over by
        ``from_ns``."""
        return [self._wipes[n] for n in self._wiped.which(from_ns, to_ns)]

    @cached_property
    def _wiped(self) -> Intervals:
        return Intervals((row["injecting_ns"], over(row)) for row, _ in self._wipes)

    @cached_property
    def _wipes(self) -> list[tuple[Row, int]]:
        return [
            (row, broker)
            for row in self._faults
            if does(row, Does.DESTROYS_DATA)
            for acted in [acted_on(row)]
            for broker in self._elections.replicas
            if self._elections.name(broker) in acted
        ]

    def behind(self, observer: str, from_ns: int, to_ns: int, leads: bool = False) -> bool:
        """Whether a fault may have kept the latest metadata from a broker, or from the controllers, between two times.
        With ``leads``, whether its reports on a partition that it leads may be older than the ISR that it uses."""
        return self._behind.of(observer, leads).meet(from_ns, to_ns)

    def current_ns(self, observer: str, at_ns: int, lag_ns: int, leads: bool) -> int:
        """The first time from ``at_ns`` on when a broker had not been behind for a lag."""
        times = self._behind.of(observer, leads)
        while met := times.meeting(at_ns - lag_ns, at_ns):
            at_ns = max(over for _, over in met) + lag_ns + 1
        return at_ns

    def keeps_answers(self, number: int, from_ns: int, to_ns: int, of_all: bool) -> bool:
        """Whether, at some time between two, a fault (or its after-effects) may have kept the answers of a term's
        leader from producers. ``of_all``: the whole ISR must answer."""
        replicas = {self._elections.name(broker) for broker in self._elections.replicas}
        leader = {self._elections.name(self._elections.terms[number].leader)}
        return any(
            row["injecting_ns"] <= to_ns
            and over(row) + COMES_BACK_NS >= from_ns
            and may_keep_answers(row, leader, replicas, self._brokers, of_all)
            for row in self._faults
        )

    def asks_late(self, leader: int, from_ns: int, to_ns: int) -> bool:
        """Whether the controller may have been late, between two times, to decide a leader's request, such as for a
        wider ISR: a fault delayed the request, or kept the controllers from deciding."""
        if leader not in self._late:
            self._late[leader] = Intervals(self._late_times(self._elections.name(leader)))
        return self._late[leader].meet(from_ns, to_ns)

    def _late_times(self, leader: str) -> Iterator[tuple[int, int]]:
        for row, controllers in self._behind.faults:
            deciding = acted_on(row) - {leader, Role.CLIENTS} - (self._brokers - controllers)
            down, cut = any(does(row, what) for what in _DOWN), does(row, Does.CUTS)
            if not hits_controllers(row):
                continue
            own = leader in acted_on(row) and not down
            if cut and sides(row):
                late = all(side & deciding - self._brokers for side in sides(row))
                own = own and any(leader in one and other & deciding for one, other in opposite(row))
            else:
                late = bool(deciding) or (own and not cut)
            if late or (own and not (self._kraft and cuts_only(row, self._brokers))):
                # (A request that a cut held back arrives after the heal.)
                yield int(row["injecting_ns"]) if late else over(row), over(row) + self._elections.lag_ns

    def isr_faulted(self, number: int) -> bool:
        """Whether every other broker that Kafka had to prefer could not be elected, or had just been healed, during the
        whole time in which the election may have happened."""
        if number not in self._isr:
            from_ns = self._earliest_ns(number)
            to_ns = max(from_ns, self._elections.terms[number].seen_ns)
            others = self._others(number) | self._may_have_joined(number, to_ns)
            self._isr[number] = self.isr_may_be_faulted(number) and all(
                self._unfit_times(broker).cover(from_ns, to_ns) for broker in others
            )
        return self._isr[number]

    def isr_may_be_faulted(self, number: int) -> bool:
        """Whether that may hold at the time when the election was seen. (It may have happened before.)"""
        known = self._elections.last_before(number) is not None
        return known and self.all_under(self._others(number), number)

    def _others(self, number: int) -> frozenset[int]:
        known = self._elections
        return known.eligible(number).union(*known.isrs_before(number)) - {self._elections.terms[number].leader}

    def _may_have_joined(self, number: int, latest_ns: int) -> frozenset[int]:
        """The brokers that may have joined the ISR unseen, or led unseen, after the last report of it that counts and
        before an election by ``latest_ns``: the ISR of the last leader; or that of any, if an epoch is missing.

        Up to FRESH_NS without a report are no silence, unless an epoch is missing or ISRs are reported late.
        """
        known, terms = self._elections, self._elections.terms
        before, reported_ns = known.last_before(number), known.last_reported_ns(number)
        if before is None:
            return frozenset()
        from_ns, others = known.isr_since_ns(number), known.replicas - {terms[number].leader}
        led = {before.leader} - {-1}
        if known.missed_before(number) or (terms[number].epoch is None and known.unheard(reported_ns, latest_ns)):
            until_ns = latest_ns
            led |= {one for one in known.replicas if not self.down(one, from_ns, until_ns, Does.ENDS_PROCESS)}
        else:
            until_ns = min(self.admits_until(terms[number - 1].leader, latest_ns), self.ended_ns(number - 1))
            if known.lag_ns <= FRESH_NS and not known.unheard(reported_ns, until_ns):
                return frozenset()
        return frozenset(
            one
            for one in others
            if any(one == leader or not self.cannot_join(one, leader, from_ns, until_ns) for leader in led)
        )

    def admits_until(self, leader: int, to_ns: int) -> int:
        """Until when a leader may have widened its ISR: until the first fault that prevents this and is in force at
        ``to_ns``; until then if there is none.

        Such a fault ended or halted its process, or cut it from the controllers. (With ZooKeeper, a leader that is cut
        from its nodes alone can still ask the controller, which is a broker. One that only gets no answers may have
        asked.)
        """
        if leader not in self._barred:
            name = self._elections.name(leader)
            upon = (row for row in self._faults if name in unfit(row, self._brokers, self._controllers))
            asks_nothing = (row for row in upon if not only_hears_nothing(row, name))
            barring = (row for row in asks_nothing if self._kraft or not sides(row))
            self._barred[leader] = Intervals(self._barring_times(barring, name))
        return min([to_ns, *(begun for begun, _ in self._barred[leader].meeting(to_ns, to_ns))])

    def _barring_times(self, rows: Iterable[Row], name: str) -> Iterator[tuple[int, int]]:
        for row in rows:
            # (One of several nodes may have been healed before the others.)
            until = min(begun_to_heal(row), self._over(row, name) if len(row["nodes"]) > 1 else NEVER)
            if in_force_since_ns(row) <= until:
                yield in_force_since_ns(row), until

    def _earliest_ns(self, number: int) -> int:
        """The earliest time of an election: a leader is replaced only after a fault hit it, and an election by hand
        happens only after its request."""
        terms, begins = self._elections.terms, self._elections.terms[number].begins_ns
        by_hand = zip(self._asked, self._made, strict=True)
        asked = [int(row["injecting_ns"]) for row, (made, missed) in by_hand if made == {number} and not missed]
        if asked:
            return max(begins, min(asked))
        # (A leader that nobody reported may have been any replica.)
        led = self._elections.replicas if self._elections.missed_before(number) else {terms[number - 1].leader}
        struck = []
        for leader in led & self._elections.names.keys():
            kept, felt = self._struck_of(leader)
            if kept.meet(begins, begins):
                return begins
            struck += felt[bisect_right(felt, begins) :][:1]
        return min((at for at in struck if at <= terms[number].seen_ns), default=begins)

    def _struck_of(self, leader: int) -> tuple[Intervals, list[int]]:
        """The times in which a fault, or its after-effects, may have prevented a leader's election; and when faults hit
        it, in order."""
        if leader not in self._struck:
            name = self._elections.name(leader)
            upon = [row for row in self._faults if name in may_be_unfit(row, self._brokers, self._kraft)]
            hits = [row for row in self._faults if name in hit(row, self._brokers)]
            self._struck[leader] = (
                Intervals(self._kept_by(upon, leader, name)),
                sorted(map(self._felt_ns, [*upon, *hits])),
            )
        return self._struck[leader]

    def all_under(self, brokers: frozenset[int], number: int) -> bool:
        """Whether, for each of these brokers, a fault may have prevented its election when an election was seen, or had
        just been healed."""
        names = self._may_be_unfit(self._elections.terms[number].seen_ns)
        return all(self._elections.names.get(broker) in names for broker in brokers)

    def _may_be_unfit(self, at_ns: int) -> set[str]:
        upon = (row for row in self._faults if row["injecting_ns"] <= at_ns <= over(row) + COMES_BACK_NS)
        return {name for row in upon for name in may_be_unfit(row, self._brokers, self._kraft)}

    def _unfit_times(self, broker: int) -> Intervals:
        """The times in which a broker could not be elected, because of a fault or its after-effects."""
        if broker not in self._unfits:
            name = self._elections.name(broker)
            rows = [row for row in self._faults if name in unfit(row, self._brokers, self._controllers)]
            self._unfits[broker] = Intervals(self._kept_by(rows, broker, name))
        return self._unfits[broker]

    def _kept_by(self, rows: Sequence[Row], broker: int, name: str) -> Iterator[tuple[int, int]]:
        """For each of these faults, the time in which it or its after-effects prevented a broker's election. That is
        over when the broker is reported in an ISR again: the controller removes dead brokers from every ISR."""
        known = self._elections
        in_sync = Intervals((one.from_ns, one.to_ns) for one in known.spans if broker in one.isr and one.leader >= 0)
        begins = [*(since for since, _ in in_sync), NEVER]
        for row in rows:
            begun, over_ns = self._felt_ns(row), self._over(row, name)
            back = known.heard_ns(name, over_ns) if _ends(row) and known.reported(name) else over_ns
            if begun <= over_ns:
                joined = begins[bisect_left(begins, min(back, NEVER))]
                yield begun, min(over_ns + COMES_BACK_NS, joined, in_sync.next(back + known.lag_ns, NEVER))

    def _felt_ns(self, row: Row) -> int:
        """The time from which a fault can prevent a broker's election. A silent broker first has to lose its session
        (by the reports, which may be late: a lag earlier)."""
        return int(row["injecting_ns"]) + (0 if _ends(row) else max(self._silence_ns - LAG_NS, 0))

    def _over(self, row: Row, name: str) -> int:
        """When a fault was over for one of its nodes at the earliest: its process had been started again, or it
        reported something. (A cut goes on when a process is started again.)"""
        begun = int(row["injecting_ns"])
        if not _ends(row) and not does(row, Does.HALTS_PROCESS):
            return over(row)
        until = min(over(row), self._restarted_ns(name, begun))
        if does(row, Does.DESTROYS_DATA):
            return until
        if self._ended_unseen(row, name, begun, until):
            return begun
        return min(until, self._elections.heard_ns(name, in_force_since_ns(row) + LAG_NS))

    @cached_property
    def healed_ns(self) -> int:
        """The time of the last heal."""
        return max((int(row["healed_ns"]) for row in self._faults if row["healed_ns"] is not None), default=BEFORE)

    def by_hand(self, number: int) -> bool:
        """Whether an unclean election requested by hand made this term: it can have made no other term, and no
        unreported one."""
        return any(made == {number} and not missed for made, missed in self._made)

    def may_be_by_hand(self, number: int) -> bool:
        """Whether an unclean election by hand may have made this term."""
        return any(number in made for made, _ in self._made)

    @property
    def any_by_hand(self) -> bool:
        """Whether an unclean election of the partition was requested by hand, and happened."""
        return bool(self._asked)

    @cached_property
    def _asked(self) -> list[Row]:
        return [row for row in self._faults if row["effective"] and asked_by_hand(row, self._elections.of)]

    @property
    def unseen_by_hand(self) -> bool:
        """Whether an unclean election by hand may have made a term that no broker reported."""
        return any(missed or not made for made, missed in self._made)

    @cached_property
    def _made(self) -> list[tuple[frozenset[int], bool]]:
        """For each unclean election by hand, the terms that it may have made, and whether it may also have made an
        unreported one."""
        each = ((self._made_by(by_ns, row), by_ns) for row in self._asked for by_ns in [_elected_by_hand_by(row)])
        return [
            (made, any(self._elections.missed_before(n) or self._missed_after(n, by_ns) for n in made))
            for made, by_ns in each
        ]

    def _made_by(self, by_ns: int, row: Row) -> frozenset[int]:
        terms = enumerate(self._elections.terms)
        return frozenset(n for n, term in terms if term.seen_ns >= row["injecting_ns"] and term.begins_ns <= by_ns)

    def _missed_after(self, number: int, by_ns: int) -> bool:
        """Whether an unreported term may have followed this one by a time."""
        terms = self._elections.terms
        if number + 1 == len(terms) or not self._elections.missed_before(number + 1):
            return False
        reported_ns = max(report.to_ns for report in terms[number].reports)
        return min(reported_ns, terms[number + 1].seen_ns) - LAG_NS <= by_ns


def _elected_by_hand_by(row: Row) -> int:
    """The time by which an election requested by hand had happened and was reported; NEVER if the request was not
    answered, because it may have waited."""
    return NEVER if row["injected_ns"] is None else over(row) + LAG_NS


def _ends(row: Row) -> bool:
    """Whether a fault ends processes or destroys data, so that it acts at once."""
    return does(row, Does.ENDS_PROCESS) or does(row, Does.DESTROYS_DATA)
