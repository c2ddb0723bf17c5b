"""Vacuity before verdict: the assumptions that ``valid`` rests on, each with what was seen."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from checkers.evidence.leadership import Span, leaders
from harness.core.verdict import Precondition, Summary
from harness.history.run_file import Requirements, RunFile

Row = Mapping[str, Any]


def preconditions(
    run: RunFile,
    summary: Summary,
    ends: Sequence[Row],
    faults: Sequence[Row],
    seen: Sequence[Span],
    sent: Iterable[tuple[str, int]],
    undecided: Sequence[str] | None = None,
) -> list[Precondition]:
    """Every assumption of a run, in the order in which a reader should doubt them. ``sent``: partitions written to.
    ``undecided``: why it is not known whether a limit was broken (checkers/limits.py); None where there is no limit.

    One without a final read rests on what was recorded alone: nobody injected its faults for us, nor watched who led.
    """
    watched = (run.watch_topic, run.watch_partition)
    recorded = [whole(run), attempted(summary), acknowledged(summary, run.requires)]
    if not run.final_read:
        return recorded
    return [
        *recorded,
        bit(faults),
        healed(faults, run),
        followed(run),
        finished(run),
        observed(seen),
        *led(run.requires, watched, leaders(seen, watched)),
        read_to_the_end(ends, {*sent, *((span.topic, span.partition) for span in seen)}),
        retained(ends),
        *([] if undecided is None else [limited(undecided)]),
    ]


def whole(run: RunFile) -> Precondition:
    """Nothing that was done is missing from the history."""
    why = "; ".join(run.notes) or "a worker or the harness was cut off"
    return _held("history whole", not run.partial, "no worker died, and no journal was cut off", why)


def attempted(summary: Summary) -> Precondition:
    """Something was sent."""
    return _held("something attempted", summary.attempted > 0, f"{summary.attempted} writes", "not one write")


def acknowledged(summary: Summary, requires: Requirements) -> Precondition:
    """Enough was acknowledged."""
    told = f"{summary.acknowledged} writes acknowledged, {requires.acknowledged} required"
    return _held("enough acknowledged", summary.acknowledged >= requires.acknowledged, told)


def bit(faults: Iterable[Row]) -> Precondition:
    """Every injected fault shows evidence that it took hold, on every node that it names."""
    listed = list(faults)
    without = [_without_effect(row) for row in listed if not row["effective"]]
    return _held(
        "faults bit", not without, f"{len(listed)} faults, each with evidence", f"no evidence: {_all(without)}"
    )


def _without_effect(fault: Row) -> str:
    on = fault.get("nodes_without_effect")
    return f"{fault['fault']} (on {_all(on)})" if on else str(fault["fault"])


def healed(faults: Iterable[Row], run: RunFile) -> Precondition:
    """Every fault was undone before the final read, those apart that the scenario lets stay: by their own names, or on
    the nodes that it names, or named as a pin. What a pin meant only the run itself can tell."""
    names = frozenset(run.scenario.get("final_read", {}).get("down", []))
    nodes = names.union(*(run.down[name] for name in names & run.down.keys()))
    listed = list(faults)
    lasting = [row for row in listed if row["healed_ns"] is None]
    standing = [
        row["fault"]
        for row in lasting
        for still_on in [run.lasting.get(row["fault"]) or row["nodes"]]
        if row["fault"] not in names and not (still_on and nodes.issuperset(still_on))
    ]
    excused = f", but {_all(row['fault'] for row in lasting)} as the scenario says" if lasting else ""
    told = f"{len(listed)} faults, each undone{excused}"
    return _held("faults healed", not standing, told, f"still there: {_all(standing)}")


def followed(run: RunFile) -> Precondition:
    """Every step of the timeline did what it awaited."""
    missed = [f"{step.step} ({step.detail})" if step.detail else step.step for step in run.timeline if not step.met]
    return _held("timeline followed", not missed, f"{len(run.timeline)} steps", f"not met: {_all(missed)}")


def finished(run: RunFile) -> Precondition:
    """Every worker came to the end of its work: no consumer was stuck before the end of the log."""
    told = "every worker that was left finished, and every consumer read to the end"
    return _held("workers finished", not run.unfinished, told, "; ".join(run.unfinished))


def observed(seen: Sequence[Span]) -> Precondition:
    """The brokers were asked who leads, and answered."""
    observers = sorted({span.observer for span in seen})
    return _held("cluster observed", bool(seen), f"by {_all(observers)}", "no observation at all")


def led(requires: Requirements, watched: tuple[str, int], reigned: Sequence[int]) -> list[Precondition]:
    """The watched partition's leader moved, or did not, as the scenario requires; nothing where it does not say."""
    if requires.leader is None:
        return []
    changed = len(reigned) > 1
    told = f"{watched[0]}-{watched[1]} was led by {_all(str(leader) for leader in reigned) or 'nobody'}"
    met = bool(reigned) and changed == (requires.leader == "changed")
    return [_held(f"leader {requires.leader}", met, told)]


def read_to_the_end(ends: Iterable[Row], known: Collection[tuple[str, int]] = ()) -> Precondition:
    """The final read reached the end of every partition's log, and left out none that is known: that was written to, or
    that a broker told of."""
    listed = list(ends)
    unread = {*known} - {(row["topic"], row["partition"]) for row in listed}
    short = [f"{_name(row)} read to {row['read_to']} of {row['log_end']}" for row in listed if not row["complete"]]
    short += [f"{topic}-{partition} not read at all" for topic, partition in sorted(unread) if listed]
    told = f"{len(listed)} partitions, {sum(row['log_end'] - row['log_start'] for row in listed)} offsets"
    return _held("final read complete", bool(listed) and not short, told, _all(short) or "no partition was read")


def retained(ends: Iterable[Row]) -> Precondition:
    """No log lost its beginning to retention: what is below its start cannot be judged."""
    cut = [f"{_name(row)} begins at {row['log_start']}" for row in ends if row["log_start"] > 0]
    return _held("log retained", not cut, "every log begins at 0", _all(cut))


def limited(undecided: Sequence[str]) -> Precondition:
    """It is known of each of the scenario's limits whether it was broken."""
    return _held("limits judged", not undecided, "each limit was kept, or broken, for certain", "; ".join(undecided))


def _held(name: str, met: bool, detail: str, otherwise: str | None = None) -> Precondition:
    return Precondition(name=name, met=met, detail=detail if met or otherwise is None else otherwise)


def _all(names: Iterable[str]) -> str:
    return ", ".join(names)


def _name(row: Row) -> str:
    return f"{row['topic']}-{row['partition']}"
