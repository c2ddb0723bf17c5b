"""A second opinion on each lost record, slow and obvious: who must have had it, which election took it, and whether the
settings permit that. Written from what Kafka promises, not from the judge: it shares only the names of standings.

It says nothing rather than something doubtful: a leader epoch that nobody reported, a disk that may have been lost, an
ISR that changed meanwhile. It knows of no transactions, no compaction and no power cuts: histories must have none.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf
from typing import Any

from harness.core.verdict import Standing

Row = dict[str, Any]
Place = tuple[str, int]

SECOND = 1_000_000_000
#: An observer that gets no answer asks again: what it hears was said at most so long before.
_ANSWERED_WITHIN = 1 * SECOND
#: A partition of which nobody reported for longer was not watched.
_FRESH = 3 * SECOND
#: A broker that was healed may lead again so much later.
_COMES_BACK = 10 * SECOND


@dataclass(frozen=True)
class Rules:
    """``unclean``: Kafka itself may elect a replica that is not in sync. ``names``: of brokers, by their ids.
    ``lag_ns``: what the controller decides, each broker that hears of it tells within so long."""

    acks: str
    unclean: bool
    names: Mapping[int, str]
    lag_ns: int = SECOND


@dataclass(frozen=True)
class Opinion:
    """``standing``: UNDECIDED is no opinion. ``must``: who must have had the record; ``at_first``: those
    of them when it was acknowledged, or committed. ``took``: the leader epoch that
    took it; None where no election did, or where nobody can tell which. ``term``: the leader epoch that it is of.
    ``may_be_either``: all was observed, but not whether the leader of ``took`` had it, and no leader after that one
    must have had it."""

    standing: Standing
    because: str
    must: frozenset[int] = frozenset()
    took: int | None = None
    term: int | None = None
    may_be_either: bool = False
    at_first: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Gone:
    """A record that is not in the final log. ``completed_ns``: when it was acknowledged at this offset;
    ``delivered_ns``: when a reader was first given it there, and ``epochs``: as of which leader epochs."""

    anomaly: str
    record_id: int
    offset: int
    invoked_ns: int
    completed_ns: int | None
    delivered_ns: int | None
    epochs: frozenset[int]

    @property
    def known_ns(self) -> int:
        """Since when it was known to be there."""
        return min(at for at in (self.completed_ns, self.delivered_ns) if at is not None)


class _Had(StrEnum):
    """Whether an elected leader had the record."""

    MUST = "must have had it"
    NEED_NOT = "need not have had it"
    UNKNOWN = "nobody knows whether it had it"


def opinions(tables: Mapping[str, list[Row]], rules: Rules) -> dict[tuple[str, int], Opinion]:
    """Of each lost and each vanished record, by anomaly and record id. ``tables``: sends, reads, observations, faults,
    log_ends."""
    found = {}
    for end in tables["log_ends"]:
        if end["complete"]:
            partition = _Partition(tables, rules, end)
            said = [(one, partition.opinion(one)) for one in partition.gone()]
            found.update({(one.anomaly, one.record_id): opinion for one, opinion in _with_those_behind(said)})
    return found


def _with_those_behind(said: list[tuple[Gone, Opinion]]) -> Iterator[tuple[Gone, Opinion]]:
    """A loss of which nobody knows is permitted where the next one behind it in the log is, that the same election took
    from the same term."""
    behind: dict[tuple[str, int | None], Opinion] = {}
    for gone, opinion in sorted(said, key=lambda one: -one[0].offset):
        final = opinion
        other = behind.get((gone.anomaly, opinion.term))
        if opinion.may_be_either and other and (other.standing, other.took) == (Standing.PERMITTED, opinion.took):
            because = f"epoch {opinion.took} took those behind it, and need not have had them"
            final = replace(opinion, standing=Standing.PERMITTED, because=because)
        behind[gone.anomaly, opinion.term] = final
        yield gone, final


class _Partition:
    """All that was recorded of one partition that was read to its end."""

    def __init__(self, tables: Mapping[str, list[Row]], rules: Rules, end: Row) -> None:
        self.rules, self.end = rules, end
        place = _place(end)
        here = {name: [row for row in tables[name] if _place(row) == place] for name in ("sends", "reads")}
        self.sends: list[Row] = here["sends"]
        self.final = [row for row in here["reads"] if row["phase"] == "final"]
        self.live = [row for row in here["reads"] if row["phase"] == "live"]
        self.faults = tables["faults"]
        reports = [row for row in tables["observations"] if _place(row) == place and row["leader_epoch"] is not None]
        self.reports = sorted(reports, key=lambda row: row["at_ns"])
        self.by_observer: dict[str, list[Row]] = defaultdict(list)
        leaders: dict[int, set[int]] = defaultdict(set)
        self.first_reported: dict[int, int] = {}
        for row in self.reports:
            self.by_observer[row["observer"]].append(row)
            leaders[row["leader_epoch"]].add(row["leader"])
            self.first_reported.setdefault(row["leader_epoch"], row["at_ns"])
        self.leaders = {epoch: min(some) for epoch, some in leaders.items() if len(some) == 1}
        read = {row["leader_epoch"] for row in here["reads"] if row["leader_epoch"] is not None}
        newest = max({*self.first_reported} | read, default=-1)
        self.in_office = {epoch: self._in_office(epoch) for epoch in range(newest + 1)}
        self.written = self._written()

    def gone(self) -> Iterator[Gone]:
        """What was acknowledged, and what was delivered, and is not in the final log."""
        there = {row["record_id"] for row in self.final}
        sent = {row["record_id"]: row for row in self.sends}
        for row in self.sends:
            if row["outcome"] == "ok" and row["offset"] is not None and row["record_id"] not in there:
                yield self._gone("lost", row, row["offset"])
        delivered: dict[int, Row] = {}
        for row in self.live:
            if row["record_id"] in sent and row["record_id"] not in there:
                delivered.setdefault(row["record_id"], row)
        for record_id, row in delivered.items():
            yield self._gone("vanished", sent[record_id], row["offset"])

    def opinion(self, gone: Gone) -> Opinion:
        """What is said of one record: the same of every term that it may be of."""
        if gone.offset < self.end["log_start"]:
            return Opinion(Standing.UNDECIDED, "it is below the log's start")
        terms = self._terms(gone)
        if not terms or None in terms:
            return Opinion(Standing.UNDECIDED, "nobody reported its term")
        said = [
            replace(self._in_term(gone, term), at_first=frozenset(self._must(gone, term, later=False)))
            for term in terms
            if term is not None
        ]
        alike = {one.standing for one in said}
        must = frozenset[int].intersection(*(one.must for one in said))
        at_first = frozenset[int].intersection(*(one.at_first for one in said))
        took = {one.took for one in said}
        if len(alike) > 1:
            return Opinion(Standing.UNDECIDED, "it may be of several terms", must, at_first=at_first)
        return replace(said[0], must=must, at_first=at_first, took=took.pop() if len(took) == 1 else None)

    def _in_term(self, gone: Gone, term: int) -> Opinion:
        """What is said of it if it was of this term."""
        must = self._must(gone, term)
        last = self._last_that_can_have_taken(gone.offset, term)
        holders = frozenset(must)
        if last is None:
            return Opinion(Standing.VIOLATION, "no election can have taken it: the log goes on around it", holders)
        newest = max(self.first_reported, default=-1)
        chain = range(term + 1, int(min(last, newest)) + 1)
        until = self.first_reported.get(int(last), inf) if last < inf else self._ended_ns
        if not self._watched(gone.invoked_ns, until) or not self.leaders.keys() >= {*chain}:
            return Opinion(Standing.UNDECIDED, "too little was observed", holders)
        had = self._walk(gone, term, [epoch for epoch in chain if self.leaders[epoch] >= 0], must)
        said = self._judged(gone, had, holders)
        again = (
            sent_ns > gone.known_ns and epoch == term and offset <= gone.offset
            for epoch, offset, sent_ns in self.written
        )
        if said.standing is not Standing.VIOLATION and any(again):
            because = "its leader wrote at or below it later, in the same term: no election set its log back"
            return Opinion(Standing.UNDECIDED, because, holders, term=term)
        return replace(said, term=term)

    def _judged(self, gone: Gone, had: Sequence[tuple[int, _Had]], holders: frozenset[int]) -> Opinion:
        """``had``: the leaders after its term, and whether each must have had it."""
        if all(one is _Had.MUST for _, one in had):
            because = "every leader after it must have had it" if had else "nobody was elected after it"
            return Opinion(Standing.VIOLATION, because, holders, had[-1][0] if len(had) == 1 else None)
        first = next(n for n, (_, one) in enumerate(had) if one is not _Had.MUST)
        cut = {epoch for epoch, offset, _ in self.written if offset <= gone.offset}
        lacked = next((epoch for epoch, _ in had[:first] if epoch in cut), None)
        if lacked is not None:
            because = f"the leader of epoch {lacked} wrote in its place, and must have had it"
            return Opinion(Standing.VIOLATION, because, holders, lacked)
        took, following = had[first][0], had[first + 1 :]
        back = {*holders} & {self.leaders[epoch] for epoch, _ in following}
        for_good = took in cut and not back
        if had[first][1] is _Had.NEED_NOT and (for_good or all(one is _Had.NEED_NOT for _, one in following)):
            return Opinion(Standing.PERMITTED, f"the leader of epoch {took} need not have had it", holders, took)
        because = f"nobody knows whether the leader of epoch {took} had it, or one after it"
        return Opinion(Standing.UNDECIDED, because, holders, took, may_be_either=not back)

    # Who had it.

    def _must(self, gone: Gone, term: int, later: bool = True) -> set[int]:
        """Who must have had it in its term: its leader; and, of what is committed, the ISR. ``later``: also those who
        joined that then."""
        leader, committed_ns = self.leaders[term], self._committed_ns(gone, term)
        if committed_ns is None:
            return {leader}
        around = self._reported_around(gone.invoked_ns, committed_ns + self.rules.lag_ns)
        # (The same leader may commit it in its next term, which a smaller ISR began.)
        isrs = [{*row["isr"]} for row in around if row["leader_epoch"] >= term]
        joined = [*self._own(term, committed_ns + _ANSWERED_WITHIN)] if later else []
        return {leader}.union(set.intersection(*isrs) if isrs else (), *(row["isr"] for row in joined))

    def _committed_ns(self, gone: Gone, term: int) -> int | None:
        """By when the leader of its term had committed it; None where nobody knows of it."""
        times = [gone.completed_ns] if self.rules.acks in {"all", "-1"} and gone.completed_ns is not None else []
        own = self._own(term, gone.invoked_ns)
        times += [row["at_ns"] for row in own if row["high_epoch"] == term and (row["high"] or 0) > gone.offset]
        later = min((at for epoch, at in self.first_reported.items() if epoch > term), default=inf)
        if gone.delivered_ns is not None and gone.delivered_ns + self.rules.lag_ns < later:
            times.append(gone.delivered_ns)
        return min(times, default=None)

    def _may_be_committed(self, gone: Gone, term: int) -> bool:
        """Something of its term was delivered, at its offset or above."""
        return any(row["leader_epoch"] == term and row["offset"] >= gone.offset for row in self.live)

    def _walk(self, gone: Gone, term: int, chain: Sequence[int], must: set[int]) -> list[tuple[int, _Had]]:
        """Of each leader that was elected after its term, whether it must have had the record, if those before it had
        it that must."""
        found: list[tuple[int, _Had]] = []
        holders, leader = {*must}, self.leaders[term]
        committed = self._committed_ns(gone, term) is not None
        joined = set[int]()
        for epoch in chain:
            elected, at_ns = self.leaders[epoch], self.first_reported[epoch]
            intact = all(had is _Had.MUST for _, had in found)
            # (A leader that was deposed may have acknowledged it after the election.)
            since = min(gone.invoked_ns, self.first_reported[term])
            asked = [row for row in self.faults if self._elects(row, since, at_ns)]
            uncleanly = self.rules.unclean or any(
                row["effective"] and at_ns <= (row["injected_ns"] or 0) + _FRESH for row in asked
            )
            wiped = self._wiped(elected, gone.invoked_ns, at_ns)
            if intact and not wiped and (elected in holders or (committed and not self.rules.unclean and not asked)):
                had = _Had.MUST
            elif not self._allowed(elected, term, epoch, uncleanly):
                had = _Had.UNKNOWN
            elif wiped:
                had = _need_not(self._wiped_and_alone(elected, gone.invoked_ns, at_ns))
            elif not committed:
                may_have = elected == leader or elected in joined or self._may_be_committed(gone, term)
                had = _need_not(not may_have)
            else:
                lacks = uncleanly and elected not in holders and self._outside(elected, gone, term, epoch)
                had = _need_not(lacks)
            found.append((epoch, had))
            if had is _Had.MUST:
                joined |= {broker for row in self._own(epoch, 0) for broker in row["isr"]}
                holders |= joined if committed else set()
        return found

    def _allowed(self, elected: int, term: int, epoch: int, uncleanly: bool) -> bool:
        """Whether a leader may be elected: it was in the ISR that was reported last, or eligible; or, where elections
        may be unclean, faults had hit everybody who was."""
        at_ns = self.first_reported[epoch]
        before = [row for row in self.reports if term <= row["leader_epoch"] < epoch and row["at_ns"] < at_ns]
        last = [row for row in before if row["at_ns"] >= before[-1]["at_ns"] - _ANSWERED_WITHIN]
        could = {broker for row in last for broker in (*row["isr"], *(row["elr"] or ()))}
        return elected in could or (uncleanly and all(self._hit(broker, at_ns) for broker in could))

    def _outside(self, broker: int, gone: Gone, term: int, epoch: int) -> bool:
        """Whether nobody had a broker in the ISR, or eligible, from before the record was sent until an election."""
        at_ns = self.first_reported[epoch]
        around = self._reported_around(gone.invoked_ns - self.rules.lag_ns, at_ns)
        rows = [row for row in around if term <= row["leader_epoch"] < epoch]
        if any(broker in row["isr"] or broker in (row["elr"] or ()) for row in rows):
            return False
        times = [row["at_ns"] for row in rows]
        return bool(times) and min(times) <= gone.invoked_ns and max(times) >= at_ns - _ANSWERED_WITHIN

    # Faults.

    def _wipes(self, broker: int, from_ns: int, to_ns: int) -> Iterator[Row]:
        for row in self.faults:
            over = row["healed_ns"] or row["injected_ns"] or inf
            hit = row["kind"] == "wipe" and self.rules.names[broker] in row["nodes"]
            if hit and row["injecting_ns"] <= to_ns and over >= from_ns:
                yield row

    def _wiped(self, broker: int, from_ns: int, to_ns: int) -> bool:
        """Whether a broker may have lost its disk."""
        return any(True for _ in self._wipes(broker, from_ns, to_ns))

    def _wiped_and_alone(self, broker: int, from_ns: int, to_ns: int) -> bool:
        """Whether it lost its disk after a time for certain, and then was in nobody else's ISR before another."""
        surely = (row for row in self._wipes(broker, from_ns, to_ns) if row["effective"])
        return any(
            from_ns < wipe["injecting_ns"]
            and wipe["injected_ns"] is not None
            and wipe["injected_ns"] < to_ns
            and not any(
                broker in row["isr"] and row["leader"] not in {broker, -1}
                for row in self.reports
                if wipe["injecting_ns"] <= row["at_ns"] < to_ns
            )
            for wipe in surely
        )

    def _hit(self, broker: int, at_ns: int) -> bool:
        """Whether a fault had hit a broker, and it may not have come back."""
        name = self.rules.names[broker]
        here = (row for row in self.faults if name in row["nodes"] and row["injecting_ns"] <= at_ns)
        return any((row["healed_ns"] or inf) + _COMES_BACK >= at_ns for row in here)

    def _elects(self, row: Row, from_ns: int, to_ns: int) -> bool:
        """Whether somebody may have asked for an unclean election of this partition."""
        reported = json.loads(row["evidence"])
        if reported.get("election") != "unclean" or (reported.get("topic"), reported.get("partition")) != _place(
            self.end
        ):
            return False
        refused = reported.get("refused") is not None and not row["effective"]
        return not refused and row["injecting_ns"] <= to_ns and (row["injected_ns"] or inf) >= from_ns

    # What was reported, and when.

    def _terms(self, gone: Gone) -> set[int | None]:
        """The leader epochs that it may be of; None: one that nobody reported."""
        if gone.epochs:
            return {epoch if epoch in self.leaders and self.leaders[epoch] >= 0 else None for epoch in gone.epochs}
        assert gone.completed_ns is not None
        return self._terms_between(gone.invoked_ns, gone.completed_ns)

    def _terms_between(self, invoked_ns: int, completed_ns: int) -> set[int | None]:
        if not self._watched(invoked_ns, completed_ns) or self.reports[-1]["at_ns"] < completed_ns:
            return {None}
        there = [
            epoch for epoch, (since, over) in self.in_office.items() if since <= completed_ns and over >= invoked_ns
        ]
        known = [epoch if epoch in self.leaders else None for epoch in there]
        return {epoch for epoch in known if epoch is None or self.leaders[epoch] >= 0}

    def _in_office(self, epoch: int) -> tuple[float, float]:
        """Between which times a leader of an epoch can have known that it leads, as it reported itself."""
        leader = self.leaders.get(epoch)
        observers = self.by_observer if leader is None or leader < 0 else [self.rules.names[leader]]
        since, over = inf, -inf
        for observer in observers:
            rows = self.by_observer.get(observer, [])
            before = max((row["at_ns"] for row in rows if row["leader_epoch"] < epoch), default=-inf)
            since = min(since, before - _ANSWERED_WITHIN)
            over = max(over, min((row["at_ns"] for row in rows if row["leader_epoch"] > epoch), default=inf))
        return since, over

    def _written(self) -> list[tuple[int, int, float]]:
        """Every record whose leader epoch is certain: that, its offset, and when it was sent (at most)."""
        sent = {row["record_id"]: row["invoked_ns"] for row in self.sends}
        found = [
            (row["leader_epoch"], row["offset"], sent.get(row["record_id"], -inf))
            for row in [*self.live, *self.final]
            if row["leader_epoch"] is not None
        ]
        for row in self.sends:
            if row["outcome"] == "ok" and row["offset"] is not None:
                terms = self._terms_between(row["invoked_ns"], row["completed_ns"])
                found += [(epoch, row["offset"], row["invoked_ns"]) for epoch in terms if epoch and len(terms) == 1]
        return found

    def _last_that_can_have_taken(self, offset: int, term: int) -> float | None:
        """The last epoch that can have cut it off: the first later one that has records at or below it, or above what
        stands there of an earlier term; any, where the log ends there. None: its own term goes on around it."""
        if self.end["log_end"] <= offset:
            return inf
        at_or_below = max((row["leader_epoch"] for row in self.final if row["offset"] <= offset), default=-1)
        if at_or_below == term:
            return None
        later = [row for row in self.final if row["leader_epoch"] > term]
        taken = [row for row in later if row["offset"] <= offset or at_or_below < term]
        return min((row["leader_epoch"] for row in taken), default=inf)

    def _own(self, epoch: int, from_ns: int) -> Iterator[Row]:
        """What the leader of an epoch itself reported, from a time on."""
        rows = self.by_observer.get(self.rules.names[self.leaders[epoch]], [])
        return (row for row in rows if row["leader_epoch"] == epoch and row["at_ns"] >= from_ns)

    def _reported_around(self, from_ns: int, to_ns: int) -> list[Row]:
        """What each observer reported: from the last time before ``from_ns`` to the first one after ``to_ns``."""
        return [
            row
            for rows in self.by_observer.values()
            for n, row in enumerate(rows)
            if (n + 1 == len(rows) or rows[n + 1]["at_ns"] > from_ns) and (n == 0 or rows[n - 1]["at_ns"] < to_ns)
        ]

    def _watched(self, from_ns: float, to_ns: float) -> bool:
        times = [row["at_ns"] for row in self.reports if from_ns - _FRESH <= row["at_ns"] <= to_ns]
        return all(later - before <= _FRESH for before, later in zip([from_ns, *times], [*times, to_ns], strict=True))

    @property
    def _ended_ns(self) -> float:
        """When no record could be lost any more: the final read had begun."""
        return min(
            (row["read_ns"] for row in self.final), default=max((row["at_ns"] for row in self.reports), default=0)
        )

    def _gone(self, anomaly: str, send: Row, offset: int) -> Gone:
        reads = [r for r in self.live if (r["record_id"], r["offset"]) == (send["record_id"], offset)]
        acknowledged = send["outcome"] == "ok" and send["offset"] == offset
        return Gone(
            anomaly,
            send["record_id"],
            offset,
            send["invoked_ns"],
            send["completed_ns"] if acknowledged else None,
            min((r["read_ns"] for r in reads), default=None),
            frozenset(r["leader_epoch"] for r in reads if r["leader_epoch"] is not None),
        )


def _place(row: Row) -> Place:
    return row["topic"], row["partition"]


def _need_not(holds: bool) -> _Had:
    return _Had.NEED_NOT if holds else _Had.UNKNOWN
