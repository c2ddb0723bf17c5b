"""Compares two sets of runs: which verdicts changed, what became slower, and which settings differ."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from harness.core.anomalies import LOST
from harness.core.clock import SECOND_NS
from harness.core.verdict import Standing, Verdict
from harness.history.paths import checking, stored
from harness.suite.stored import Availability, Runs, Stored

#: A figure counts as worse only if it grew by a factor (the caller's) and by more than this. In 54 runs on a shared
#: machine, two runs of one scenario with the same settings differed by up to 4.3 s without an acknowledgement, 3.5 s of
#: recovery, 2.5 s in the median and 3.8 s in the 99th percentile.
_NOISE = {"loss": 0.01, "unavailable": 5.0, "recovery": 5.0, "p50": 3.0, "p99": 5.0}
#: A figure that grew by the factor, and by this share of the noise, is reported. A choice: less is not worth a line.
_REPORTED = 0.1
#: The keys of a scenario that do not influence a run.
_DESCRIPTIVE = ("name", "source", "claim", "notes", "tags", "expect", "requires", "limits")


#: What stands for the verdict of a run that has none.
_NO_VERDICT = frozenset({"crashed", "unreadable", "removed"})

#: The line for a case that the suite no longer has.
_GONE = "gone: its suite ran it before, and no longer does"


@dataclass(frozen=True)
class CaseFigures:
    """The figures of one case: shares of 1 and seconds, as medians over its runs. None: there is nothing to measure.

    ``recovered``: the faults after which, in most runs, a write was acknowledged again; ``never``: those after which
    none was. ``named``: the anomalies in the scenario's ``expect``. ``violating``: the scenario expects a violation.
    ``torn``: a line for each run whose history cannot be read.
    """

    runs: int
    as_expected: int
    verdicts: Mapping[str, int]
    loss: float | None
    unavailable: float | None
    recovery: float | None
    p50: float | None
    p99: float | None
    anomalies: frozenset[str]
    violations: frozenset[str]
    undecided: frozenset[str] = frozenset()
    recovered: frozenset[str] = frozenset()
    never: frozenset[str] = frozenset()
    named: frozenset[str] = frozenset()
    violating: bool = False
    torn: Sequence[str] = ()

    @property
    def judged(self) -> bool:
        """Whether a run was judged."""
        return bool(self.verdicts.keys() - _NO_VERDICT)


@dataclass(frozen=True)
class Compared:
    """One case in both sets; None if a set lacks it. ``worse``: a line for each way in which it became worse."""

    name: str
    old: CaseFigures | None
    new: CaseFigures | None
    worse: Sequence[str]
    changed: Sequence[str]

    @property
    def both_judged(self) -> bool:
        """Whether both sets have a judged run of it."""
        return self.old is not None and self.old.judged and self.new is not None and self.new.judged

    @property
    def whole(self) -> bool:
        """Whether all histories could be read."""
        return not any(side.torn for side in (self.old, self.new) if side is not None)


def compare(
    old: Mapping[str, Runs], new: Mapping[str, Runs], tolerance: float, gone: Collection[str] = ()
) -> list[Compared]:
    """Every case of either set, the worse ones first. ``tolerance``: the factor by which a figure may grow. ``gone``:
    the cases that a suite no longer has."""
    compared = [_compared(name, old.get(name), new.get(name), tolerance) for name in {**old, **new} if name not in gone]
    compared += [_without(name, old.get(name, Runs())) for name in gone]
    return sorted(compared, key=lambda case: (not case.worse, case.name))


def _without(name: str, old: Runs) -> Compared:
    return Compared(name, figures(old) if old.any else None, None, [_GONE], _not_compared(old, None))


def _compared(name: str, old: Runs | None, new: Runs | None, tolerance: float) -> Compared:
    if old is None or new is None or not old.any or not new.any:
        lacks = new is None or new.cannot_run or new.unreadable or new.removed or new.waiting
        gone = [_gone(new)] if old is not None and old.any and lacks else []
        before, after = (figures(side) if side is not None and side.any else None for side in (old, new))
        return Compared(name, before, after, gone, _not_compared(old, new))
    before, after = figures(old), figures(new)
    changed = list(changes(old.judged[-1], new.judged[-1])) if old.judged and new.judged else []
    torn = dict.fromkeys((*before.torn, *after.torn))
    notes = [*_not_compared(old, new), *torn, *judged_differently(before, after)]
    notes += [*grown(before, after, tolerance), *changed]
    failing = new.cannot_run * old.made > old.cannot_run * new.made
    could_not = f"{new.cannot_run} of {new.made} runs could not run now, {old.cannot_run} of {old.made} before"
    missing = [could_not] if failing else []
    return Compared(name, before, after, [*missing, *worse(before, after, tolerance)], notes)


def _gone(new: Runs | None) -> str:
    if new is None:
        return "it was run before, and is not any more"
    if new.cannot_run:
        return "cannot run now, was run before"
    if new.unreadable or new.removed:
        return "its runs cannot be read now, could before" if new.unreadable else "gone: its runs were removed since"
    return "its suite goes on, or was broken off, before it was run"


def _not_compared(old: Runs | None, new: Runs | None) -> list[str]:
    sides = [(side, when) for side, when in ((old, "before"), (new, "now")) if side is not None]
    gone = ((side.removed, when, "removed since") for side, when in sides)
    torn = ((side.unreadable, when, "they cannot be read") for side, when in sides)
    left = ((side.waiting if side.any else 0, when, "not judged yet, or interrupted") for side, when in sides)
    every = (*gone, *torn, *left)
    return [f"{count} of the runs {when} cannot be compared: {why}" for count, when, why in every if count]


def figures(runs: Runs) -> CaseFigures:
    """The figures of these runs. A crashed run was not as expected, and has no other figure. For a run that was removed
    or cannot be read, its suite says whether it was as expected."""
    judged = [(run, run.verdict) for run in runs.judged if run.verdict is not None]
    outcomes = [str(verdict.verdict) for _, verdict in judged]
    for count, what in ((runs.crashed, "crashed"), (runs.unreadable, "unreadable"), (runs.removed, "removed")):
        outcomes += [what] * count
    found = [(name, anomaly) for _, verdict in judged for name, anomaly in verdict.anomalies.items()]
    latencies, torn = _latencies(judged)
    services = [Availability.model_validate(verdict.availability) for _, verdict in judged]
    heals = [_heals(service) for service in services]
    expects = [run.file.expect for run, _ in judged]
    return CaseFigures(
        runs=len(judged) + runs.crashed + len(runs.noted),
        as_expected=sum(verdict.expected for _, verdict in judged) + sum(runs.noted),
        verdicts=Counter(outcomes),
        loss=_median([verdict.summary.loss_rate for _, verdict in judged]),
        unavailable=_median([_unavailable(service) for service in services]),
        recovery=_median([_recovery(service) for service in services]),
        p50=_median([p50 for p50, _ in latencies]),
        p99=_median([p99 for _, p99 in latencies]),
        anomalies=frozenset(name for name, _ in found),
        violations=frozenset(name for name, anomaly in found if anomaly.standing is Standing.VIOLATION),
        undecided=frozenset(name for name, anomaly in found if anomaly.standing is Standing.UNDECIDED),
        recovered=_in_most({name for name, ns in one.items() if ns is not None} for one in heals),
        never=_in_most({name for name, ns in one.items() if ns is None} for one in heals),
        named=frozenset(name for one in expects for name in (*one.anomalies, *one.allowed)),
        violating=any(one.standing is Standing.VIOLATION for one in expects),
        torn=torn,
    )


def worse(old: CaseFigures, new: CaseFigures, tolerance: float) -> Iterator[str]:
    """A line for each way in which ``new`` is worse."""
    if new.as_expected * old.runs < old.as_expected * new.runs:
        yield f"as expected: {old.as_expected} of {old.runs} before, {new.as_expected} of {new.runs} now"
    elif old.judged and not new.judged:
        yield "crashed now, was judged before"
    if not old.judged:
        return  # Without old figures nothing can be worse.
    for name in sorted(_broken(old, new)):
        yield f"{name}: a violation now, {_before(name, old)}"
    for name in sorted((new.undecided & old.anomalies) - old.undecided - old.violations - new.violations):
        yield f"{name}: undecided now, permitted before"
    for name in sorted(_unnamed(old, new)):
        yield f"{name}: not found before"
    yield from (line for is_worse, line in _grown(old, new, tolerance) if is_worse)
    for name in sorted(new.never & old.recovered):
        yield f"{_WORDS['recovery']} of {name}: none now"


def judged_differently(old: CaseFigures, new: CaseFigures) -> Iterator[str]:
    """A line if the verdicts differ, and one each for anomalies that were only found before, or only now (but not those
    that are worse). None if a side was not judged."""
    if not (old.judged and new.judged):
        return
    before, after = (" and ".join(sorted(side.verdicts.keys() - _NO_VERDICT)) for side in (old, new))
    if before != after:
        yield f"verdict: {before} before, {after} now"
    only_now = new.anomalies - old.anomalies - _broken(old, new) - _unnamed(old, new)
    for names, when in ((old.anomalies - new.anomalies, "before"), (only_now, "now")):
        if names:
            yield f"found only {when}: {', '.join(sorted(names))}"


def _broken(old: CaseFigures, new: CaseFigures) -> frozenset[str]:
    """The anomalies that are violations now, and were none before. If the scenario expects a violation of them, that is
    chance."""
    return new.violations - old.violations - (new.named if new.violating else frozenset())


def _unnamed(old: CaseFigures, new: CaseFigures) -> frozenset[str]:
    """The other anomalies that were not found before. One that the scenario names may be found in one run and not in
    the next: that is chance."""
    return new.anomalies - old.anomalies - new.violations - new.named


def grown(old: CaseFigures, new: CaseFigures, tolerance: float) -> Iterator[str]:
    """A line for each figure that grew but does not count as worse: it is within the noise, or it is a loss that the
    scenario names, whose amount is chance."""
    yield from (line for is_worse, line in _grown(old, new, tolerance) if not is_worse)


def _grown(old: CaseFigures, new: CaseFigures, tolerance: float) -> Iterator[tuple[bool, str]]:
    for name, noise in _NOISE.items():
        before, after = getattr(old, name), getattr(new, name)
        if before is None or after is None or after <= before * tolerance or after - before <= noise * _REPORTED:
            continue
        text = share if name == "loss" else seconds
        chance = name == "loss" and LOST.name in new.named
        yield after - before > noise and not chance, f"{_WORDS[name]}: {text(before)} before, {text(after)} now"


def _before(name: str, old: CaseFigures) -> str:
    if name in old.undecided:
        return "undecided before"
    return "permitted before" if name in old.anomalies else "not found before"


_WORDS = {
    "loss": "acknowledged writes that are lost",
    "unavailable": "longest without an acknowledgement",
    "recovery": "first acknowledgement after a heal",
    "p50": "median time to an acknowledgement",
    "p99": "99th percentile of the time to an acknowledgement",
}


def changes(old: Stored, new: Stored) -> Iterator[str]:
    """The settings and versions that differ, a line each: ``topic.min.insync.replicas: 1 → 2``."""
    for before, after in (
        (dict(_flat(_run_by(old.file.scenario))), dict(_flat(_run_by(new.file.scenario)))),
        (old.file.versions, new.file.versions),
    ):
        for key in sorted({**before, **after}):
            if before.get(key) != after.get(key):
                yield f"{key}: {before.get(key, 'not there')} → {after.get(key, 'not there')}"


def share(value: float | None) -> str:
    """``3.1%``."""
    return "–" if value is None else f"{value:.1%}"


def seconds(value: float | None) -> str:
    """``7.3 s``, ``12 ms``."""
    if value is None:
        return "–"
    return f"{value:.1f} s" if value >= 1 else f"{value * 1000:.0f} ms"


def _run_by(scenario: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in scenario.items() if key not in _DESCRIPTIVE}


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for key, below in value.items():
            yield from _flat(below, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and any(isinstance(one, Mapping | list) for one in value):
        for index, below in enumerate(value):
            yield from _flat(below, f"{path}.{index}")
    else:
        yield path, value


def _unavailable(service: Availability) -> float | None:
    """The longest time of any partition; in a verdict without partitions, that of the whole run."""
    found = [part.longest_unavailable for part in service.partitions or (service,)]
    return max((longest.lasted_ns / SECOND_NS for longest in found if longest is not None), default=None)


def _recovery(service: Availability) -> float | None:
    return max((ns / SECOND_NS for ns in _heals(service).values() if ns is not None), default=None)


def _heals(service: Availability) -> dict[str, float | None]:
    """By fault, the nanoseconds from its heal to the first acknowledgement; None if none came."""
    return {one.fault: one.first_ack_after_heal_ns for one in service.after_faults}


def _in_most(runs: Iterable[set[str]]) -> frozenset[str]:
    """The names that more than half of the runs have."""
    each = list(runs)
    counts = Counter(name for names in each for name in names)
    return frozenset(name for name, count in counts.items() if 2 * count > len(each))


def _latencies(judged: Sequence[tuple[Stored, Verdict]]) -> tuple[list[tuple[float, float]], list[str]]:
    """Of each run with acknowledged writes, the median and the 99th percentile of the seconds to the acknowledgement;
    and a line for each history that cannot be read."""
    found, torn = [], []
    for run, verdict in judged:
        try:
            took = _took(run)
        except (OSError, pa.ArrowException):
            took = None
        if took is None or (took.size == 0 and verdict.summary.acknowledged):
            torn.append(
                f"{run.directory}: its history is damaged, only its verdict is compared: {checking(run.directory)}"
            )
        elif took.size:
            p50, p99 = np.percentile(took, [50, 99]) / SECOND_NS
            found.append((float(p50), float(p99)))
    return found, torn


def _took(run: Stored) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """The nanoseconds from each acknowledged write to its acknowledgement."""
    columns = ["invoked_ns", "completed_ns"]
    sends = stored(run.directory, "sends").to_table(columns=columns, filter=pc.field("outcome") == "ok")
    took: np.ndarray[tuple[int], np.dtype[np.int64]] = pc.subtract(
        sends["completed_ns"], sends["invoked_ns"]
    ).to_numpy()
    return took


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
