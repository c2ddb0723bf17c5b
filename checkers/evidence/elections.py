"""The elections of a partition: its terms, the ISRs told in each, and where nobody's word on it was fresh.

What brokers tell is late: a broker's metadata follow what holds by up to ``lag_ns``. In KRaft, and with ZooKeeper from
2.7 on (KIP-497), the controller decides an ISR and tells it at once. Before, the leader wrote it to ZooKeeper, and
the controller told it 5 s after the last change, or 60 s after it had told one (Kafka 2.6, ReplicaManager,
maybePropagateIsrChanges, asked every 2.5 s).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from checkers.evidence.leadership import FRESH_NS, LeaderTerm, Partition, Span, last_before, leader_terms
from harness.core.guarantees import Configuration

LAG_NS = 1_000_000_000
_LATE_LAG_NS = 65_000_000_000

#: In place of a time: earlier and later than any.
BEFORE = -(1 << 62)
NEVER = 1 << 62

Times = npt.NDArray[np.int64]
#: Times at which a leader told its high watermark, and the highest that it had told by then.
Highs = tuple[Times, Times]
Silence = tuple[int, int]
#: Whether a broker may have known less than others at some time between two.
Behind = Callable[[str, int, int], bool]


@dataclass(frozen=True)
class Term:
    """One leader and epoch. ``seen_ns``: when anybody was first seen to know of it.

    ``begins_ns``, ``ends_ns``: it acknowledged nothing before and after. A leader that was deposed goes on until
    it hears of it, or is silent. ``highs``: as it told them itself.
    """

    leader: int
    epoch: int | None
    seen_ns: int
    begins_ns: int
    ends_ns: int
    words: tuple[Span, ...]
    highs: Highs


@dataclass(frozen=True)
class InSync:
    """The brokers that were in each ISR told around some time, and those that were in any."""

    every: frozenset[int]
    any: frozenset[int]


@dataclass(frozen=True)
class Elections:
    """What is known of who led one partition. ``terms`` are in the order of their epochs (of time, where none is told).

    ``names`` gives brokers by their ids. ``silences``: of each broker, by its name, the times in which it told nothing
    of the partition, and, by None, those in which nobody did.
    """

    of: Partition
    names: Mapping[int, str]
    replicas: frozenset[int]
    spans: tuple[Span, ...]
    terms: tuple[Term, ...]
    silences: Mapping[str | None, Sequence[Silence]]
    lag_ns: int = LAG_NS

    @cached_property
    def moments(self) -> Times:
        """The times at which what is known of it changes: what lies between two of them is judged alike."""
        told = [at for span in self.spans for at in (span.from_ns, span.to_ns)]
        told += [at for silences in self.silences.values() for silence in silences for at in silence]
        told += [at for term in self.terms for at in (term.begins_ns, term.ends_ns)]
        return np.unique(np.array([*told, *(at - self.lag_ns for at in told)], np.int64))

    def reign(self, number: int) -> range:
        """The terms one behind the other, this one among them, in which the same broker led."""
        first = last = number
        while first and self.terms[first - 1].leader == self.terms[number].leader:
            first -= 1
        while last + 1 < len(self.terms) and self.terms[last + 1].leader == self.terms[number].leader:
            last += 1
        return range(first, last + 1)

    def in_sync(self, number: int, from_ns: int, to_ns: int, behind: Behind) -> InSync | None:
        """The ISRs that were told in a term from the last sample by one time to the first a lag after another.

        The leader's own word counts, or else that of those who told all that time what the controller did, and the
        leader's for as long as it told any. None where there are none. ``behind``: whether a broker may not have heard
        of the controller.
        """
        leader, until = self.names.get(self.terms[number].leader), to_ns + self.lag_ns
        words = [word for n in self.reign(number) for word in self.terms[n].words]
        from_ns = self._appended_from(words, from_ns, to_ns)
        of_each = {by: [word for word in words if word.observer == by] for by in {word.observer for word in words}}
        whole = {by for by, told in of_each.items() if _cover(told, self.silences.get(by, ()), from_ns, until)}
        telling = {by for by in whole if by == leader} or {by for by in whole if not behind(by, from_ns, until)}
        if not telling:
            return None
        told = [word for by in telling for word in of_each[by]]
        if leader not in telling:
            told += [word for word in of_each.get(leader or "", ()) if word.from_ns <= until]
        isrs = [frozenset(word.isr) for word in _around(told, from_ns, until)]
        return InSync(frozenset.intersection(*isrs), frozenset.union(*isrs))

    def _appended_from(self, words: Sequence[Span], sent_ns: int, to_ns: int) -> int:
        """From when what was sent before a term, and acknowledged in it, may have been appended: the ISR that is first
        told with a term is its election's, unless nobody told anything for long before."""
        first_ns = min((word.from_ns for word in words), default=sent_ns)
        return max(sent_ns, first_ns) if to_ns >= first_ns and not self.unheard(sent_ns, first_ns) else sent_ns

    def words_of(self, number: int) -> list[Span]:
        """What was told in a term, by its leader itself where it told anything."""
        term = self.terms[number]
        own = [word for word in term.words if word.observer == self.names.get(term.leader)]
        return own or list(term.words)

    def committed_ns(self, number: int, offset: int) -> int | None:
        """When the leader of a term was first known to have a high watermark above an offset; None where never."""
        at, high = self.terms[number].highs
        first = int(np.searchsorted(high, offset, side="right"))
        return int(at[first]) if first < len(at) else None

    def last_before(self, number: int) -> Span | None:
        """The last that was told before a term, of the terms before it, or while nobody led."""
        term = self.terms[number]
        return last_before(self.spans, LeaderTerm(term.leader, term.epoch, term.seen_ns))

    def unheard(self, from_ns: int, to_ns: int, without: Iterable[Silence] = ()) -> bool:
        """Whether for longer than FRESH_NS nobody told anything, between two times; some times count for nothing."""
        apart = tuple(without)
        return any(
            _left(max(since, from_ns), min(to, to_ns), apart) > FRESH_NS for since, to in self.silences.get(None, ())
        )

    def told_nothing(self, observer: str, from_ns: int, to_ns: int) -> bool:
        """Whether a broker that was asked told nothing between two times. Of one that never answered nobody knows."""
        own = [span for span in self.spans if span.observer == observer]
        if not own:
            return False
        if to_ns <= own[0].from_ns or max(span.to_ns for span in own) <= from_ns:
            return True
        return any(since <= from_ns and to_ns <= to for since, to in self.silences.get(observer, ()))

    def seen_whole(self, number: int, until_ns: int, behind: Behind) -> bool:
        """Whether no election after a term, and until a time, can have been missed.

        Epochs tell it: each is a leader's, or was told by one who knew of no leader. Where none is told, silences do.
        """
        last = [span for span in self.spans if span.to_ns >= until_ns - FRESH_NS]
        if all(behind(span.observer, span.to_ns, span.to_ns) for span in last):
            return False
        known = self.terms[number:]
        if any(term.epoch is None for term in known):
            since = known[0].begins_ns
            return not any(to > since and begun < until_ns for begun, to in self.silences.get(None, ()))
        led = {term.epoch for term in known}
        told = led | {span.leader_epoch for span in self.spans}
        epochs = [epoch for epoch in led if epoch is not None]
        return all(epoch in told for epoch in range(min(epochs), max(epochs) + 1))


def elections(
    observations: pa.Table, seen: Iterable[Span], names: Mapping[int, str], configuration: Configuration
) -> dict[Partition, Elections]:
    """The elections of each partition that any broker told of. ``observations``: the table; ``seen``: folded."""
    lag_ns = LAG_NS if configuration.tells_isr_at_once else _LATE_LAG_NS
    apart: dict[Partition, list[Span]] = {}
    for span in seen:
        apart.setdefault((span.topic, span.partition), []).append(span)
    quiet, highs, replicas = silences(observations), _highs(observations, names), _replicas(observations)
    found = {}
    for of, spans in apart.items():
        terms = _terms(spans, of, names, quiet.get(of, {}), highs.get(of, {}))
        known = replicas.get(of, frozenset()) | {broker for span in spans for broker in span.isr}
        found[of] = Elections(of, names, known, tuple(spans), terms, quiet.get(of, {}), lag_ns)
    return found


def _terms(
    spans: Sequence[Span],
    of: Partition,
    names: Mapping[int, str],
    quiet: Mapping[str | None, Sequence[Silence]],
    highs: Mapping[tuple[int, int | None], Highs],
) -> tuple[Term, ...]:
    led = leader_terms(spans, of)
    if any(term.leader_epoch is None for term in led):
        led = _without_epochs(spans, names)
    nothing = (np.empty(0, np.int64), np.empty(0, np.int64))
    found = []
    for number, term in enumerate(led):
        until = next((one.from_ns for one in led[number + 1 :]), NEVER) if term.leader_epoch is None else NEVER
        words = tuple(
            span
            for span in spans
            if (span.leader, span.leader_epoch) == (term.leader, term.leader_epoch)
            and (term.leader_epoch is not None or (term.from_ns <= span.to_ns and span.from_ns < until))
        )
        begins = BEFORE if number == 0 else _unknown_since(spans, words, quiet.get(None, ()), term.from_ns) - LAG_NS
        ends = NEVER if number == len(led) - 1 else _ends(spans, words, names.get(term.leader))
        at = highs.get((term.leader, term.leader_epoch), nothing)
        found.append(Term(term.leader, term.leader_epoch, term.from_ns, begins, ends, words, at))
    return tuple(found)


def _without_epochs(spans: Sequence[Span], names: Mapping[int, str]) -> list[LeaderTerm]:
    """Terms where brokers tell no epochs: each begins when a broker first says that it leads, and another did."""
    found: list[LeaderTerm] = []
    own = [span for span in spans if span.leader >= 0 and names.get(span.leader) == span.observer]
    for span in own or [span for span in spans if span.leader >= 0]:
        if not found or found[-1].leader != span.leader:
            found.append(LeaderTerm(span.leader, None, span.from_ns))
    return found


def _unknown_since(spans: Sequence[Span], words: Sequence[Span], quiet: Sequence[Silence], seen_ns: int) -> int:
    """When anybody last told anything else, before a term was first seen."""
    others = (min(span.to_ns, seen_ns) for span in spans if span.from_ns <= seen_ns and span not in words)
    return min(_silent_since(quiet, seen_ns), max(others, default=seen_ns))


def _silent_since(quiet: Sequence[Silence], at_ns: int) -> int:
    return next((begun for begun, to in quiet if begun < at_ns <= to), at_ns)


def _ends(spans: Sequence[Span], words: Sequence[Span], leader: str | None) -> int:
    """When a leader that was deposed acknowledged nothing more: it had told that another led, or was silent."""
    claimed = max((word.to_ns for word in words if word.observer == leader), default=None)
    if claimed is None:
        return max(word.to_ns for word in words) + FRESH_NS + LAG_NS
    knew = min((span.from_ns for span in spans if span.observer == leader and span.from_ns > claimed), default=NEVER)
    return min(knew, claimed + FRESH_NS) + LAG_NS


def _left(from_ns: int, to_ns: int, without: Iterable[Silence]) -> int:
    """How much is left of a time without others, which may overlap."""
    left, counted = to_ns - from_ns, from_ns
    for since, to in sorted(without):
        until = min(to, to_ns)
        left -= max(0, until - max(since, counted))
        counted = max(counted, until)
    return left


def _cover(told: Sequence[Span], silences: Iterable[Silence], from_ns: int, to_ns: int) -> bool:
    begun = any(word.from_ns <= from_ns for word in told)
    ended = any(word.to_ns >= to_ns for word in told)
    return begun and ended and not any(since < to_ns and to > from_ns for since, to in silences)


def _around(told: Sequence[Span], from_ns: int, to_ns: int) -> Iterator[Span]:
    """Of each observer, what it told from its last sample by one time to its first by another."""
    for observer in {word.observer for word in told}:
        own = [word for word in told if word.observer == observer]
        first = max((n for n, word in enumerate(own) if word.from_ns <= from_ns), default=0)
        last = min((n for n, word in enumerate(own) if word.to_ns >= to_ns), default=len(own) - 1)
        yield from own[first : last + 1]


def silences(observations: pa.Table) -> dict[Partition, dict[str | None, list[Silence]]]:
    """The times longer than FRESH_NS in which a broker told nothing of a partition; by None, nobody."""
    found: dict[Partition, dict[str | None, list[Silence]]] = {}
    for by in (["observer"], []):
        keys = ["topic", "partition", *by]
        rows = observations.select([*keys, "at_ns"]).sort_by([(name, "ascending") for name in [*keys, "at_ns"]])
        if len(rows) < 2:
            continue
        at = rows["at_ns"].to_numpy()
        same = np.ones(len(at) - 1, bool)
        for name in keys:
            same &= pc.equal(rows[name][1:], rows[name][:-1]).to_numpy()
        gaps = np.flatnonzero(same & (np.diff(at) > FRESH_NS))
        for row, since in zip(rows.take(gaps).to_pylist(), at[gaps + 1].tolist(), strict=True):
            of = found.setdefault((row["topic"], row["partition"]), {})
            of.setdefault(row.get("observer"), []).append((row["at_ns"], since))
    return found


def _highs(observations: pa.Table, names: Mapping[int, str]) -> dict[Partition, dict[tuple[int, int | None], Highs]]:
    """The high watermarks that leaders told of themselves, by partition, and by leader and epoch.

    One that the leader gave another leader epoch for than that of its term is none of that term.
    """
    told = observations.filter(pc.is_valid(observations["high"]))
    columns = ["topic", "partition", "leader", "leader_epoch"]
    by_id = {name: broker for broker, name in names.items()}
    observers = told["observer"].combine_chunks().dictionary_encode()
    if not len(told):
        return {}
    ids = np.array([by_id.get(name, -1) for name in observers.dictionary.to_pylist()], np.int64)
    own = ids[observers.indices.to_numpy()] == told["leader"].to_numpy()
    timely = pc.fill_null(pc.less_equal(told["high_epoch"], told["leader_epoch"]), True).to_numpy()
    told = told.filter(pa.array(own & timely)).select([*columns, "at_ns", "high"])
    told = told.sort_by([(name, "ascending") for name in [*columns, "at_ns"]])
    found: dict[Partition, dict[tuple[int, int | None], Highs]] = {}
    if not len(told):
        return found
    other = np.zeros(len(told) - 1, bool)
    for name in columns:
        other |= ~pc.fill_null(pc.equal(told[name][1:], told[name][:-1]), name == "leader_epoch").to_numpy()
    edges = [0, *(np.flatnonzero(other) + 1).tolist(), len(told)]
    at, high = told["at_ns"].to_numpy(), told["high"].to_numpy()
    heads = told.select(columns).take(edges[:-1]).to_pylist()
    for row, (first, last) in zip(heads, pairwise(edges), strict=True):
        risen = np.maximum.accumulate(high[first:last])
        new = np.append(True, risen[1:] > risen[:-1])
        of = found.setdefault((row["topic"], row["partition"]), {})
        of[row["leader"], row["leader_epoch"]] = (at[first:last][new], risen[new])
    return found


def _replicas(observations: pa.Table) -> dict[Partition, frozenset[int]]:
    text = pc.binary_join(observations["replicas"].cast(pa.list_(pa.string())), ",")
    rows = pa.table([observations["topic"], observations["partition"], text], ["topic", "partition", "replicas"])
    found: dict[Partition, frozenset[int]] = {}
    for row in rows.group_by(["topic", "partition", "replicas"]).aggregate([]).to_pylist():
        of = (row["topic"], row["partition"])
        found[of] = found.get(of, frozenset()) | {int(broker) for broker in row["replicas"].split(",") if broker}
    return found
