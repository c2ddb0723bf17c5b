"""Leadership as the brokers reported it: observations folded into spans, and leader terms derived from them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from harness.core import topology
from harness.history import schema

Partition = topology.Partition

#: How long a broker's last report counts as fresh.
FRESH_NS = schema.FRESH_NS
#: After a heal it may take a broker this long to be a candidate again (it must start, register, and rejoin the ISR), or
#: to hear from the controllers again; and this long to have another controller. (After cuts of 12 to 15 s, brokers went
#: on reporting the old leader for up to 3.6 s.)
COMES_BACK_NS = 10_000_000_000

#: The columns of the observer, the partition and the time; and all columns of spans.
_OF = ["observer", "topic", "partition", "at_ns"]
_COLUMNS = [*_OF, "leader", "leader_epoch", "isr", "elr"]


@dataclass(frozen=True)
class Span:
    """A broker reported the same about a partition from ``from_ns`` to ``to_ns``. ``leader`` is -1 if it knew none.

    ``elr``: the eligible leader replicas (KIP-966); None if it did not report them.
    """

    observer: str
    topic: str
    partition: int
    from_ns: int
    to_ns: int
    leader: int
    leader_epoch: int | None
    isr: tuple[int, ...]
    elr: tuple[int, ...] | None = None


def spans(observations: pa.Table) -> list[Span]:
    """Rows of ``observations``, in any order, folded into spans. Returns: the spans in the order of their beginning"""
    found: dict[tuple[str, str, int], list[Span]] = {}
    for row in _changes(observations.select(_COLUMNS)).to_pylist():
        own = found.setdefault((row["observer"], row["topic"], row["partition"]), [])
        at = row["at_ns"]
        elr = None if row["elr"] is None else tuple(sorted(row["elr"]))
        report = (row["leader"], row["leader_epoch"], tuple(sorted(row["isr"])), elr)
        if own and (own[-1].leader, own[-1].leader_epoch, own[-1].isr, own[-1].elr) == report:
            own[-1] = replace(own[-1], to_ns=at)
        else:
            own.append(Span(row["observer"], row["topic"], row["partition"], at, at, *report))
    return sorted(
        (span for own in found.values() for span in own),
        key=lambda span: (span.from_ns, span.topic, span.partition, span.observer),
    )


def _changes(observations: pa.Table) -> pa.Table:
    """Observations in the order of time, without those between two equal ones.

    The number of the remaining rows depends on the number of changes, not on the length of the run.
    """
    observations = observations.sort_by([(name, "ascending") for name in _OF])
    isr, elr = (pc.binary_join(observations[name].cast(pa.list_(pa.string())), ",") for name in ("isr", "elr"))
    columns = [
        observations["observer"],
        observations["topic"],
        observations["partition"],
        observations["leader"],
        observations["leader_epoch"],
        isr,
        pc.fill_null(elr, "not reported"),
    ]
    again = np.ones(max(len(observations) - 1, 0), bool)
    for column in columns:
        again &= pc.equal(column[1:], column[:-1]).fill_null(False).to_numpy()
    amid = np.append(again, False) & np.insert(again, 0, False)
    return observations.filter(pa.array(~amid[: len(observations)])).sort_by("at_ns")


@dataclass(frozen=True)
class LeaderTerm:
    """One leader and epoch of a partition, and the time when a broker first reported it."""

    leader: int
    leader_epoch: int | None
    from_ns: int


def leader_terms(seen: Iterable[Span], of: Partition) -> list[LeaderTerm]:
    """The leader terms of a partition in the order of their epochs (of their beginnings, if no epoch is known).

    A broker that was cut off may report an old term late. But a term had begun when a later term was first reported.
    """
    begun: dict[tuple[int, int], int] = {}
    for span in seen:
        if (span.topic, span.partition) == of and span.leader >= 0:
            who = (known_epoch(span.leader_epoch), span.leader)
            begun[who] = min(span.from_ns, begun.get(who, span.from_ns))
    found: list[LeaderTerm] = []
    for (epoch, leader), at in sorted(begun.items(), key=lambda item: (item[0][0], item[1], item[0][1]), reverse=True):
        found.append(LeaderTerm(leader, None if epoch < 0 else epoch, min(at, found[-1].from_ns) if found else at))
    return found[::-1]


def isr_before(seen: Iterable[Span], term: LeaderTerm) -> tuple[int, ...] | None:
    """The ISR from which the leader of a term was elected; None if no ISR was reported. ``seen``: spans of one
    partition."""
    last = last_before(seen, term)
    return None if last is None else last.isr


def last_before(seen: Iterable[Span], term: LeaderTerm) -> Span | None:
    """The last report of an earlier epoch before a term began. ``seen``: spans of one partition."""
    epoch = known_epoch(term.leader_epoch)
    earlier = [
        span
        for span in seen
        if span.from_ns <= term.from_ns
        and (
            known_epoch(span.leader_epoch) < epoch
            or (known_epoch(span.leader_epoch) == epoch and span.leader < 0)
            or (epoch < 0 and span.leader != term.leader)
        )
    ]
    return max(earlier, key=_authority, default=None)


def views(seen: Iterable[Span], of: Partition, at_ns: int) -> list[Span]:
    """The last report of each broker on a partition at a time, if it is still fresh, sorted by observer."""
    reports = [span for span in seen if (span.topic, span.partition) == of]
    return sorted(_views_at(reports, at_ns), key=lambda span: span.observer)


def leaders(seen: Iterable[Span], of: Partition) -> list[int]:
    """The brokers that led a partition, in the order of the first reports."""
    return list(dict.fromkeys(s.leader for s in seen if (s.topic, s.partition) == of and s.leader >= 0))


def refilled(seen: Iterable[Span], broker: int, after_ns: int) -> int | None:
    """When a broker that lost its data had it again: since then it was in the ISR of another leader, in every partition
    where it ever was in an ISR.

    None if that was not seen in at least one partition.
    """
    followed: dict[Partition, int | None] = {}
    for span in seen:
        if broker in span.isr:
            of = (span.topic, span.partition)
            again = span.from_ns > after_ns and span.leader not in {broker, -1}
            if followed.setdefault(of, None) is None and again:
                followed[of] = span.from_ns
    times = [at for at in followed.values() if at is not None]
    return max(times) if times and len(times) == len(followed) else None


def who_led(seen: Iterable[Span], of: Partition, at_ns: int, names: Mapping[int, str]) -> dict[str, Any]:
    """The leader of a partition at a time: leader, leader_epoch, isr.

    A leader's own report counts first, that with the highest epoch; if no leader's report is fresh, the latest of the
    others. ``also_leading``: other brokers that claimed to lead. ``changed_to``: the next report, if the time is
    between two different reports, so that either may be right. ``names``: brokers by their id.
    """
    reports = [s for s in seen if (s.topic, s.partition) == of]
    views = _views_at(reports, at_ns)
    own = [view for view in views if names.get(view.leader) == view.observer]
    ranked = sorted(own or [v for v in views if v.leader >= 0], key=_authority, reverse=True)
    if not ranked:
        return {"leader": None, "leader_epoch": None, "isr": None}
    others = [view for view in own if view.leader != ranked[0].leader]
    also = {"also_leading": [_claim(view) for view in sorted(others, key=_authority)]} if others else {}
    return {**_claim(ranked[0]), **also, **_change(reports, ranked[0], at_ns)}


def _change(reports: list[Span], view: Span, at_ns: int) -> dict[str, Any]:
    later = (s for s in reports if s.observer == view.observer and s.from_ns > at_ns)
    following = next(later, None) if at_ns > view.to_ns else None
    return {"changed_to": _claim(following)} if following else {}


def _views_at(seen: list[Span], at_ns: int) -> list[Span]:
    """The last span of each observer that began by ``at_ns``, if it is still fresh."""
    last = {span.observer: span for span in seen if span.from_ns <= at_ns}
    return [span for span in last.values() if at_ns - span.to_ns <= FRESH_NS]


def _authority(span: Span) -> tuple[int, int, str]:
    return (known_epoch(span.leader_epoch), span.from_ns, span.observer)


def known_epoch(epoch: int | None) -> int:
    """A leader epoch as a number for sorting: -1, before all others, if none was reported."""
    return -1 if epoch is None else epoch


def _claim(span: Span) -> dict[str, Any]:
    return {"leader": span.leader, "leader_epoch": span.leader_epoch, "isr": list(span.isr)}
