"""Decides which brokers must have had a lost record, and what took it, only from observations and faults.

With acks=all a broker *must* have had an acknowledged record if it was in every ISR reported around that time; with
acks=1 only the leader must. Once the record was committed (its own leader reported a high watermark above it, or a
consumer got it), the whole ISR of that time must have it, and so must every broker that later joins the ISR of a leader
that must have it. A holder stays a holder, in sync or not, until its disk is wiped or it follows a leader that lacks
the record (Kafka documentation, Design, Replication; KIP-101; KIP-966).

An election *took* a record if it elected a broker that lacked it: the others cut their logs to that of the new leader.
So the final log ends at or below the record, or a later epoch begins there. The loss is *permitted* if the settings
allow that event and that broker need not have had the record. It is a *violation* if every broker elected since must
have had the record, or if nothing can have taken it. It is *undecided* if too little was observed.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

from checkers.evidence.behind import over
from checkers.evidence.decision import (
    Case,
    Decision,
    LossEvent,
    PossibleTerm,
    as_acknowledged,
    in_each,
    undecided,
    untaken,
)
from checkers.evidence.elections import Elections
from checkers.evidence.evidence import Evidence, possible_terms, tells_term
from checkers.evidence.holding import Change, Story
from checkers.evidence.intervals import BEFORE, NEVER
from checkers.evidence.walk import Walk
from checkers.leadership import COMES_BACK_NS, known_epoch
from harness.core.anomalies import LOST, Anomaly
from harness.core.faults import Does, Row, acted_on, does, doubted_on, in_doubt
from harness.core.guarantees import Ruling, asked_by_hand
from harness.core.topology import Role
from harness.core.verdict import Standing

_IN_PART = "nobody knows where every fault acted, and how long; if everywhere or nowhere, this is permitted: "


def had_to_have(evidence: Evidence, case: Case) -> list[frozenset[int]]:
    """The brokers that must have had these records, for each term to which they may belong and whose ISR was
    reported then."""
    elections = evidence.elections.get(case.of)
    if elections is None:
        return []
    acting = evidence.acting(elections)
    walks = [
        Walk(evidence, elections, LOST, case, number, acting) for number in possible_terms(elections, case, acting)
    ]
    return [walk.held for walk in walks if walk.observed]


def decided(evidence: Evidence, anomaly: Anomaly, case: Case) -> Decision:
    """The decision about these records."""
    case = as_acknowledged(anomaly, case)
    found = _of_all_faults(evidence, anomaly, case)
    may_go = evidence.disturbed and evidence.may_lose_committed(case, len(evidence.faults) - 1)
    asks = anomaly.by_coordinator or evidence.configuration.read_committed
    unseen = asks and not _shown_gone(evidence, case, found)
    if evidence.coordinated and unseen and found.standing is Standing.VIOLATION and may_go:
        why = "nobody reported what became of the log of the transactions' coordinator"
        return replace(found, ruling=undecided(anomaly, why))
    late_end = case.in_time is None and not evidence.configuration.verifies_partitions
    if anomaly.lacks_marker and late_end and found.standing is Standing.VIOLATION:
        why = "nothing shows whether its first write reached its leader before its transaction ended"
        return replace(found, ruling=undecided(anomaly, why))
    if anomaly.lacks_marker and found.standing is Standing.VIOLATION and any(map(_goes_on, evidence.faults[-1])):
        why = "a fault was never healed: the coordinator may not have been able to end it yet"
        return replace(found, ruling=undecided(anomaly, why))
    return found


def _shown_gone(evidence: Evidence, case: Case, found: Decision) -> bool:
    """Whether the final log shows that an election cut it at these records or below: then they are gone, and not only
    unseen in their place because their transaction was aborted."""
    log, epochs, offset = evidence.logs.get(case.of), {one.epoch for one in found.possible_terms}, case.first_offset
    if log is None or not epochs or None in epochs:
        return False
    # (A log in which epochs fall may also have records of theirs above.)
    return all(log.shows_cut(epoch, offset) and not log.reaches(epoch, offset) for epoch in epochs)


def _goes_on(row: Row) -> bool:
    """Whether a fault of nodes was never healed."""
    acted = acted_on(row) - {Role.CLIENTS}
    return row["healed_ns"] is None and bool(acted) and any(does(row, what) for what in Does)


def stories(evidence: Evidence, anomaly: Anomaly, case: Case) -> list[Story]:
    """Which brokers had these records, over time, for each term to which they may belong; also on the assumption
    that faults acted whose effect is not known, if that makes a different story."""
    case, elections = as_acknowledged(anomaly, case), evidence.elections.get(case.of)
    found: dict[tuple[int, tuple[Change, ...]], Story] = {}
    for supposed in [] if elections is None else range(len(evidence.faults)):
        assert elections is not None
        acting = evidence.acting(elections, supposed)
        for number in possible_terms(elections, case, acting):
            term, changes = elections.terms[number], Walk(evidence, elections, anomaly, case, number, acting).story()
            story = Story(term.leader, term.epoch, changes, bool(supposed))
            found.setdefault((number, changes), story)
    return list(found.values())


def _of_all_faults(evidence: Evidence, anomaly: Anomaly, case: Case) -> Decision:
    each = [_of_faults(evidence, anomaly, case, supposed) for supposed in range(len(evidence.faults))]
    of_any = tuple(dict.fromkeys(possible for one in each for possible in one.possible_terms))
    first = replace(_of_any(each), possible_terms=of_any)
    if len({one.standing for one in each}) == 1:
        first = replace(first, only_event=first.only_event and len({one.event for one in each}) == 1)
        if first.standing is Standing.PERMITTED and _may_matter(evidence, case, first.taken_by):
            why = undecided(anomaly, _IN_PART + first.ruling.because)
            return replace(first, ruling=why, may_have=frozenset())
        return first
    supposed = next(one for one in each if one.standing is not Standing.VIOLATION)
    because = f"nobody knows whether every fault acted; if it did, this is {supposed.ruling.because}"
    ruling, rulings = undecided(anomaly, because), _rulings(supposed)
    return replace(first, ruling=ruling, may_have=supposed.may_have, rulings=rulings)


def _may_matter(evidence: Evidence, case: Case, event: LossEvent | None) -> bool:
    """Whether a fault of which nobody knows whether it acted, where and how long, may have had to do with what happened
    to these records until this event (None: to the end). It may have acted on some of its nodes, or for a part of its
    time. (One that was over long before they were sent had not.)"""
    elections, brokers = evidence.elections.get(case.of), frozenset(evidence.names.values())
    kraft = evidence.configuration.metadata == "kraft"
    others = frozenset[str]({Role.CLIENTS})
    if elections is not None and kraft:
        others |= brokers - frozenset(map(elections.name, elections.replicas)) - evidence.controllers
    by_ns = NEVER if event is None or case.until_ns is None else max(event.at_ns, case.until_ns)
    since_ns = BEFORE
    if elections is not None and case.sent_ns is not None:
        since_ns = case.sent_ns - elections.lag_ns - COMES_BACK_NS
    return any(
        doubted_on(row) - others or (in_doubt(row) and asked_by_hand(row, case.of))
        for row in evidence.faults[0]
        if row["injecting_ns"] <= by_ns and over(row) >= since_ns
    )


def _of_any(each: Sequence[Decision], of_unseen: bool = False) -> Decision:
    """The first decision, with the holders that are known whichever holds: a broker must have had the records only if
    it must in each case. ``of_unseen``: they may also belong to an unreported leader, of whom nobody knows anything."""
    unseen = [PossibleTerm(None, None, Standing.UNDECIDED)] if of_unseen else []
    must, need_not = in_each([*each, *unseen])
    replicas = frozenset[int]().union(*(one.must | one.unknown | one.need_not for one in each))
    return replace(each[0], must=must, unknown=replicas - must - need_not, need_not=need_not)


def _of_faults(evidence: Evidence, anomaly: Anomaly, case: Case, supposed: int) -> Decision:
    elections = evidence.elections.get(case.of)
    if elections is None:
        return _unwatched(evidence, anomaly, case, supposed)
    acting = evidence.acting(elections, supposed)
    numbers = possible_terms(elections, case, acting)
    if not numbers:
        return _unwatched(evidence, anomaly, case, supposed)
    if case.hole and (_without_epochs(evidence, case) or any(elections.terms[n].epoch is None for n in numbers)):
        return _violation(evidence, anomaly, case)
    each = [Walk(evidence, elections, anomaly, case, number, acting).decision() for number in numbers]
    unseen = _of_unseen(evidence, anomaly, elections, case, supposed)
    of = tuple(
        PossibleTerm(
            number,
            elections.terms[number].epoch,
            one.standing,
            one.may_have,
            one.must,
            one.need_not,
            one.may_not_have,
        )
        for number, one in zip(numbers, each, strict=True)
    )
    if unseen is not None:
        of = (*of, PossibleTerm(None, None, unseen))
    if len(each) == 1 and unseen in {None, each[0].standing}:
        has_epoch = elections.terms[numbers[0]].epoch is not None
        known = _of_any(each, of_unseen=unseen is not None)
        return replace(known, term=numbers[0] if has_epoch else None, possible_terms=of)
    return replace(_of_several(anomaly, elections, numbers, each, unseen), possible_terms=of)


def _without_epochs(evidence: Evidence, case: Case) -> bool:
    """Whether the final log of a partition was read, and its records have no epochs: their format is older than that,
    or the final read does not have them."""
    return case.of in evidence.logs and not len(evidence.logs[case.of].epochs)


def _of_unseen(
    evidence: Evidence, anomaly: Anomaly, elections: Elections, case: Case, supposed: int
) -> Standing | None:
    """The standing of records if they belong to an unreported leader; None if they cannot belong to one."""
    sent = BEFORE if case.sent_ns is None else case.sent_ns
    until = evidence.end_ns if case.until_ns is None else case.until_ns
    after = 0
    if tells_term(elections, case):
        if not case.acknowledged:
            return None
        after = bisect_right([known_epoch(term.epoch) for term in elections.terms], known_epoch(case.epoch))
    if not elections.unseen(sent, until, after):
        return None
    return _unwatched(evidence, anomaly, case, supposed).standing


def _unwatched(evidence: Evidence, anomaly: Anomaly, case: Case, supposed: int) -> Decision:
    """The decision if no broker reported a leader for the time when records were written."""
    nothing_may = evidence.acks_all(case) and not evidence.may_lose_committed(case, supposed)
    log = evidence.logs.get(case.of)
    uncut = log is not None and not log.cut(case.epoch, case.first_offset)[0]
    if nothing_may or case.hole or uncut:
        return _violation(evidence, anomaly, case)
    unseen = PossibleTerm(None, None, Standing.UNDECIDED)
    why = undecided(anomaly, "nobody reported who led the partition when it was written")
    return Decision(why, possible_terms=(unseen,))


def _of_several(
    anomaly: Anomaly,
    elections: Elections,
    numbers: Sequence[int],
    each: Sequence[Decision],
    unseen: Standing | None,
) -> Decision:
    """The decision about records that may belong to several terms, or to an unreported one with the standing
    ``unseen``: a standing counts only if it is that of all of them."""
    standings = {*(one.standing for one in each), *([] if unseen is None else [unseen])}
    first = _of_any(each, of_unseen=unseen is not None)
    if len(standings) == 1 and standings != {Standing.UNDECIDED}:
        return replace(first, only_event=len({one.event for one in each}) == 1)
    names = " or ".join(dict.fromkeys(elections.name(elections.terms[number].leader) for number in numbers))
    why = f"either of two leaders may have acknowledged it: {names}"
    if unseen is not None:
        why = f"a leader that nobody reported may have acknowledged it, instead of {names}"
    if standings == {Standing.UNDECIDED}:
        why = each[0].ruling.because
    takers = {one.event.term for one in each if one.event and one.standing is Standing.PERMITTED}
    may_have = frozenset.union(*(one.may_have for one in each)) | {n for n in takers if n is not None}
    rulings = {n: ruling for one in each for n, ruling in _rulings(one).items()}
    ruling = undecided(anomaly, why)
    return replace(first, ruling=ruling, event=None, term=None, may_have=may_have, rulings=rulings)


def _rulings(of: Decision) -> dict[int, Ruling]:
    """The ruling about records if the leader of a term took them, by the terms of which that is permitted."""
    own = {} if of.event is None or of.event.term is None else {of.event.term: of.ruling}
    return {**of.rulings, **(own if of.standing is Standing.PERMITTED else {})}


def _violation(evidence: Evidence, anomaly: Anomaly, case: Case) -> Decision:
    elections = evidence.elections.get(case.of)
    numbers = [] if elections is None else possible_terms(elections, case, evidence.acting(elections))
    if elections is None or len(numbers) != 1:
        return Decision(untaken(anomaly, evidence.configuration, case))
    walk = Walk(evidence, elections, anomaly, case, numbers[0], evidence.acting(elections))
    return walk.decided(untaken(anomaly, evidence.configuration, case))
