"""What the brokers told of who led: observations folded into spans, and what follows from them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Partition = tuple[str, int]

#: How long what a broker told counts as its view: longer than two rounds of the observer.
_FRESH_NS = 3_000_000_000

#: Whose word an observation is, on what, and when; and all of it that spans are made of.
_OF = ["observer", "topic", "partition", "at_ns"]
_TOLD = [*_OF, "leader", "leader_epoch", "isr"]


@dataclass(frozen=True)
class Span:
    """One broker told the same of one partition from ``from_ns`` to ``to_ns``. ``leader`` is -1 where it knew none."""

    observer: str
    topic: str
    partition: int
    from_ns: int
    to_ns: int
    leader: int
    leader_epoch: int | None
    isr: tuple[int, ...]


def spans(told: pa.Table) -> list[Span]:
    """``observations``, in any order, as runs of equal ones, in the order of their beginning."""
    found: dict[tuple[str, str, int], list[Span]] = {}
    for row in _telling(told.select(_TOLD)).to_pylist():
        own = found.setdefault((row["observer"], row["topic"], row["partition"]), [])
        at, isr = row["at_ns"], tuple(sorted(row["isr"]))
        if own and (own[-1].leader, own[-1].leader_epoch, own[-1].isr) == (row["leader"], row["leader_epoch"], isr):
            own[-1] = replace(own[-1], to_ns=at)
        else:
            who = (row["observer"], row["topic"], row["partition"])
            own.append(Span(*who, at, at, row["leader"], row["leader_epoch"], isr))
    return sorted(
        (span for own in found.values() for span in own),
        key=lambda span: (span.from_ns, span.topic, span.partition, span.observer),
    )


def _telling(told: pa.Table) -> pa.Table:
    """Observations in the order of their time, without those between two of the same kind that say the same.

    So as many are left as there were changes, however long the run.
    """
    told = told.sort_by([(name, "ascending") for name in _OF])
    isr = pc.binary_join(told["isr"].cast(pa.list_(pa.string())), ",")
    said = [told["observer"], told["topic"], told["partition"], told["leader"], told["leader_epoch"], isr]
    again = np.ones(max(len(told) - 1, 0), bool)
    for column in said:
        again &= pc.equal(column[1:], column[:-1]).fill_null(False).to_numpy()
    amid = np.append(again, False) & np.insert(again, 0, False)
    return told.filter(pa.array(~amid[: len(told)])).sort_by("at_ns")


@dataclass(frozen=True)
class Reign:
    """One leader and epoch of a partition, and when any broker was first seen to know of it."""

    leader: int
    leader_epoch: int | None
    from_ns: int


def reigns(seen: Iterable[Span], of: Partition) -> list[Reign]:
    """The reigns of a partition in the order of their epochs (of their beginnings, where no epoch is told).

    A broker that was cut off may tell of an old reign late: a reign never begins before the one that it follows.
    """
    begun: dict[tuple[int, int], int] = {}
    for span in seen:
        if (span.topic, span.partition) == of and span.leader >= 0:
            who = (_known(span.leader_epoch), span.leader)
            begun[who] = min(span.from_ns, begun.get(who, span.from_ns))
    found: list[Reign] = []
    for (epoch, leader), at in sorted(begun.items(), key=lambda item: (item[0][0], item[1], item[0][1])):
        found.append(Reign(leader, None if epoch < 0 else epoch, max(at, found[-1].from_ns) if found else at))
    return found


def isr_before(seen: Iterable[Span], reign: Reign) -> tuple[int, ...] | None:
    """The ISR out of which the leader of a reign was elected: what was told last before, of the epochs before it.

    ``seen`` is of one partition. None where nothing was.
    """
    epoch = _known(reign.leader_epoch)
    earlier = [
        span
        for span in seen
        if span.from_ns <= reign.from_ns
        and (
            _known(span.leader_epoch) < epoch
            or (_known(span.leader_epoch) == epoch and span.leader < 0)
            or (epoch < 0 and span.leader != reign.leader)
        )
    ]
    last = max(earlier, key=_authority, default=None)
    return None if last is None else last.isr


def views(seen: Iterable[Span], of: Partition, at_ns: int) -> list[Span]:
    """What each broker had told last of a partition at a time, unless it fell silent long before; by observer."""
    told = [span for span in seen if (span.topic, span.partition) == of]
    return sorted(_views_at(told, at_ns), key=lambda span: span.observer)


def leaders(seen: Iterable[Span], of: Partition) -> list[int]:
    """The brokers that led a partition, in the order in which they were first seen to."""
    return list(dict.fromkeys(s.leader for s in seen if (s.topic, s.partition) == of and s.leader >= 0))


def elected(seen: Iterable[Span]) -> set[Partition]:
    """The partitions that had a second leader or leader epoch."""
    reigns: dict[Partition, set[tuple[int, int | None]]] = {}
    for span in seen:
        if span.leader >= 0:
            reigns.setdefault((span.topic, span.partition), set()).add((span.leader, span.leader_epoch))
    return {of for of, reign in reigns.items() if len(reign) > 1}


def refilled(seen: Iterable[Span], broker: int, after_ns: int) -> int | None:
    """When a broker that lost its data had it again: in the ISR of another leader, wherever it ever was in an ISR.

    None where that was not seen, in at least one partition.
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
    """Who led a partition at a time: leader, leader_epoch, isr.

    A leader's own word counts first, the one of the highest epoch; where no leader's is fresh, the others' latest.
    ``also_leading`` where another broker claimed it too; ``changed_to`` where it fell between two observations that
    differ, so that either may have been so. ``names`` gives brokers by their id.
    """
    told = [s for s in seen if (s.topic, s.partition) == of]
    views = _views_at(told, at_ns)
    own = [view for view in views if names.get(view.leader) == view.observer]
    ranked = sorted(own or [v for v in views if v.leader >= 0], key=_authority, reverse=True)
    if not ranked:
        return {"leader": None, "leader_epoch": None, "isr": None}
    others = [view for view in own if view.leader != ranked[0].leader]
    also = {"also_leading": [_claim(view) for view in sorted(others, key=_authority)]} if others else {}
    return {**_claim(ranked[0]), **also, **_change(told, ranked[0], at_ns)}


def _change(told: list[Span], view: Span, at_ns: int) -> dict[str, Any]:
    later = (s for s in told if s.observer == view.observer and s.from_ns > at_ns)
    following = next(later, None) if at_ns > view.to_ns else None
    return {"changed_to": _claim(following)} if following else {}


def _views_at(seen: list[Span], at_ns: int) -> list[Span]:
    """The last span of each observer that began by ``at_ns``, unless it fell silent long before."""
    last = {span.observer: span for span in seen if span.from_ns <= at_ns}
    return [span for span in last.values() if at_ns - span.to_ns <= _FRESH_NS]


def _authority(span: Span) -> tuple[int, int, str]:
    return (_known(span.leader_epoch), span.from_ns, span.observer)


def _known(epoch: int | None) -> int:
    return -1 if epoch is None else epoch


def _claim(span: Span) -> dict[str, Any]:
    return {"leader": span.leader, "leader_epoch": span.leader_epoch, "isr": list(span.isr)}
