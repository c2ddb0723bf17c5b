"""Preconditions: ``valid`` is only possible if all of them are met. Each one says what was seen."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from checkers.evidence.intervals import NEVER
from checkers.evidence.silence import Silence
from checkers.leadership import COMES_BACK_NS, Span, leader_terms, leaders
from harness.core.clock import SECOND_NS
from harness.core.faults import ELECTION, acted_on, hits_clients_only, injection_of
from harness.core.verdict import Precondition, Summary
from harness.history.run_file import DRAIN, FINAL_READ, HEAL, Requirements, RunFile

Row = Mapping[str, Any]


@dataclass(frozen=True)
class RunFacts:
    """The facts, besides run.json, against which preconditions are checked.

    ``ends``, ``faults``: rows of the tables log_ends and faults. ``spans``: the brokers' reports on partitions.
    ``partitions``: the service of each partition that was written to (checkers/availability.py). ``silences``: times
    without a fresh report of any broker (checkers/evidence/silence.py). ``missing``: missing parts of the history
    (StoredRun.missing). ``behind``: readers that did not reach the end of a log, a line each
    (checkers/evidence/readers.py). ``maybe_deleted``: acknowledged records that may have been deleted
    (checkers/anomalies/records.py). ``unread``: how many offsets of a final log were not read (checkers/evidence/
    holes.py). ``at_risk``: how many writes were acknowledged while at risk (checkers/at_risk.py).
    ``undecided``: why it is not known whether a limit was broken (checkers/limits.py); None if there is no limit.
    """

    ends: Sequence[Row] = ()
    faults: Sequence[Row] = ()
    spans: Sequence[Span] = ()
    partitions: Sequence[Row] = ()
    silences: Sequence[Silence] = ()
    missing: Sequence[str] = ()
    behind: Sequence[str] = ()
    maybe_deleted: int = 0
    unread: Mapping[tuple[str, int], int] = field(default_factory=dict)
    at_risk: Mapping[int, int] = field(default_factory=dict)
    undecided: Sequence[str] | None = None


def preconditions(run: RunFile, summary: Summary, seen: RunFacts) -> list[Precondition]:
    """All preconditions of a run, in the order in which a reader should look at them.

    A run without a final read has only those of the recorded operations: the harness neither injected its faults nor
    observed its leaders.
    """
    watched = (run.watch_topic, run.watch_partition)
    recorded = [whole(run, seen.missing), attempted(summary), acknowledged(summary, run.requires)]
    if not run.final_read:
        return recorded
    known = {(row["topic"], row["partition"]) for row in (*seen.partitions, *map(vars, seen.spans))}
    meanwhile = run.requires.leader == "changed"
    led_by = led_meanwhile(seen.spans, watched, seen.faults) if meanwhile else leaders(seen.spans, watched)
    leading = [run.broker(one) for one in led_by]
    return [
        *recorded,
        has_rows(run, seen.faults),
        took_effect(seen.faults),
        *risked(run, seen.faults, seen.at_risk),
        healed(seen.faults, run),
        followed(run),
        *served(run, seen.faults, seen.partitions),
        finished(run),
        read_on(seen.behind),
        observed(seen.spans, seen.silences),
        *led(run.requires, watched, leading),
        read_to_the_end(seen.ends, known, seen.unread),
        retained(seen.ends, seen.maybe_deleted),
        *([] if seen.undecided is None else [limited(seen.undecided)]),
    ]


def whole(run: RunFile, missing: Sequence[str] = ()) -> Precondition:
    """No operation is missing from the history: no worker was cut off, and every worker's records are there."""
    cut = ["; ".join(run.notes) or "a worker or the harness was cut off"] if run.partial else []
    why = "; ".join([*missing, *cut])
    return _precondition("history whole", not why, "no worker died, and no journal was cut off", why)


def attempted(summary: Summary) -> Precondition:
    """Something was sent."""
    return _precondition("something attempted", summary.attempted > 0, f"{summary.attempted} writes", "not one write")


def acknowledged(summary: Summary, requires: Requirements) -> Precondition:
    """Enough was acknowledged."""
    detail = f"{summary.acknowledged} writes acknowledged, {requires.acknowledged} required"
    return _precondition("enough acknowledged", summary.acknowledged >= requires.acknowledged, detail)


def has_rows(run: RunFile, faults: Iterable[Row]) -> Precondition:
    """Every step of the timeline that injects a fault has a row in ``faults`` with the time of the injection.
    (``healed`` checks the heals, ``followed`` the steps that were not played.)"""
    rows = {injection_of(row): row for row in faults}
    steps = run.scenario.get("timeline") or []
    injections = [step["inject"] for step in steps if "inject" in step]
    named = {one["as"]: one.get("fault") for one in injections if one.get("as")}
    lacking = [name for name, kind in named.items() if name not in rows or rows[name]["kind"] != kind]
    unnamed = Counter(one.get("fault") for one in injections if not one.get("as"))
    unnamed[ELECTION] += sum(ELECTION in step for step in steps)
    left = Counter(row["kind"] for name, row in rows.items() if name not in named)
    lacking += [f"{count} of {kind}" for kind, count in (unnamed - left).items()]
    drawn = [{one.get("fault") for one in step["random"].get("faults", [])} for step in steps if "random" in step]
    left -= unnamed
    if any(sum(left[kind] for kind in kinds) < sum(others <= kinds for others in drawn) for kinds in drawn):
        lacking.append("a fault drawn at random")
    # (Once it is over, all is healed, and other steps follow.)
    over_ns = min((phase.at_ns for phase in run.phases if phase.phase == HEAL), default=NEVER)
    ended_early = any(not step.met and step.at_ns < over_ns for step in run.timeline)
    lacking = [] if ended_early else [f"no row of {what}" for what in lacking]
    without_time = [name for name, row in rows.items() if row["effective"] and not _begun(row)]
    lacking += [f"{name} took effect, but has no time of its injection" for name in without_time]
    return _precondition(
        "faults recorded", not lacking, f"{len(rows)} rows, one for each step that injects", _listed(lacking)
    )


def _begun(fault: Row) -> bool:
    return fault["injected_ns"] is not None


def took_effect(faults: Iterable[Row]) -> Precondition:
    """Every injected fault has evidence that it took effect on each of its nodes."""
    listed = list(faults)
    without = [_without_effect(row) for row in listed if not row["effective"]]
    return _precondition(
        "faults took effect",
        not without,
        f"{len(listed)} faults, each with evidence",
        f"no evidence: {_listed(without)}",
    )


def _without_effect(fault: Row) -> str:
    on = fault.get("nodes_without_effect")
    return f"{injection_of(fault)} (on {_listed(on)})" if on else injection_of(fault)


def risked(run: RunFile, faults: Sequence[Row], at_risk: Mapping[int, int]) -> list[Precondition]:
    """At least one record was acknowledged that a fault could take. Does not apply to a run without faults, or whose
    faults only hit clients' traffic: it is no test of loss. Nor to one with acks=0, where nothing is acknowledged.
    (``took_effect`` is about faults without effect.)"""
    if all(hits_clients_only(row) for row in faults if row["effective"]) or run.configuration.acks == "0":
        return []
    counts = ", ".join(f"{count} on {fewest or 'nobody knows how many'}" for fewest, count in at_risk.items())
    why = "no write was acknowledged that any fault could take"
    return [
        _precondition(
            "records at risk", bool(at_risk), f"acknowledged, by the brokers that had to have them: {counts}", why
        )
    ]


def healed(faults: Iterable[Row], run: RunFile) -> Precondition:
    """Every fault was healed before the drain and the final read, except those that the scenario lets stay: it names
    the fault, its nodes, or a pin. Only run.json knows the nodes of a pin."""
    names = frozenset(run.scenario.get("final_read", {}).get("down", []))
    nodes = names.union(*(run.down[name] for name in names & run.down.keys()))
    listed = list(faults)
    lasting = [row for row in listed if _stays(row, run)]
    left = [
        name
        for row in lasting
        for name in [injection_of(row)]
        for still_on in [run.lasting.get(name) or row["nodes"]]
        if name not in names and not (still_on and nodes.issuperset(still_on))
    ]
    excused = f", but {_listed(map(injection_of, lasting))} as the scenario says" if lasting else ""
    detail = f"{len(listed)} faults, each undone{excused}"
    return _precondition("faults healed", not left, detail, f"still there: {_listed(left)}")


def followed(run: RunFile) -> Precondition:
    """Every step of the timeline reached what it waited for."""
    missed = [f"{step.step} ({step.detail})" if step.detail else step.step for step in run.timeline if not step.met]
    return _precondition("timeline followed", not missed, f"{len(run.timeline)} steps", f"not met: {_listed(missed)}")


def served(run: RunFile, faults: Iterable[Row], partitions: Sequence[Row]) -> list[Precondition]:
    """Every partition that was written to acknowledged a write after the last heal (without faults: at any time). A
    partition that never serves again does not show what it has lost. Does not apply with acks=0.

    A fault that is not healed while producers write stays; for it, the time of the injection counts.
    """
    if run.configuration.acks == "0":
        return []
    over = [at for row in faults for at in [row["injected_ns" if _stays(row, run) else "healed_ns"]] if at is not None]
    since = max(over, default=0)
    silent = [_name(row) for row in partitions if row["last_ack_ns"] is None or row["last_ack_ns"] < since]
    when = f" after {since / SECOND_NS:.1f} s, when the last fault was over" if over else ""
    detail = f"each of {len(partitions)} partitions acknowledged writes{when}"
    return [_precondition("partitions served", not silent, detail, f"nothing acknowledged{when}: {_listed(silent)}")]


def _stays(fault: Row, run: RunFile) -> bool:
    """Whether the fault was in force when the run drained, after the last writes, or (if it did not drain) was read."""
    over: int | None = fault["healed_ns"]
    ended = min((phase.at_ns for phase in run.phases if phase.phase in {DRAIN, FINAL_READ}), default=None)
    return over is None or (ended is not None and over > ended)


def finished(run: RunFile) -> Precondition:
    """Every worker finished its work: no consumer was stuck before the end of the log."""
    detail = "every worker that was not killed finished, and every consumer read to the end"
    return _precondition("workers finished", not run.unfinished, detail, "; ".join(run.unfinished))


def read_on(behind: Sequence[str]) -> Precondition:
    """Every consumer that had a partition with records received some of them and reached their end, or is known to have
    died."""
    detail = "each read to the end, or is known to have died"
    return _precondition("consumers read to the end", not behind, detail, "; ".join(behind))


def observed(seen: Sequence[Span], silences: Sequence[Silence] = ()) -> Precondition:
    """The brokers reported who leads: whenever a partition was written to, a broker had reported on it shortly
    before."""
    observers = sorted({span.observer for span in seen})
    gaps = [f"no broker reported {one.topic}-{one.partition} {one.when}, while it was written to" for one in silences]
    why = _listed(gaps) if seen else "no observation at all"
    return _precondition("cluster observed", bool(seen) and not gaps, f"by {_listed(observers)}", why)


def led_meanwhile(seen: Sequence[Span], of: tuple[str, int], faults: Iterable[Row]) -> list[int]:
    """The brokers that led a partition from the first fault that took effect until the last was healed, or soon
    after."""
    acted = [row for row in faults if row["effective"] or acted_on(row)]
    begun = min((int(row["injecting_ns"]) for row in acted), default=NEVER)
    healed = max((NEVER if row["healed_ns"] is None else int(row["healed_ns"]) for row in acted), default=NEVER)
    terms = leader_terms(seen, of)
    before = [term for term in terms if term.from_ns <= begun][-1:]
    since = (term for term in terms if begun < term.from_ns <= healed + COMES_BACK_NS)
    return [*dict.fromkeys(term.leader for term in (*before, *since))]


def led(requires: Requirements, watched: tuple[str, int], leading: Sequence[str]) -> list[Precondition]:
    """The leader of the watched partition changed under the faults, or stayed, as the scenario requires; empty if it
    requires neither."""
    if requires.leader is None:
        return []
    changed = len(leading) > 1
    detail = f"{watched[0]}-{watched[1]} was led by {_listed(leading) or 'nobody'}"
    met = bool(leading) and changed == (requires.leader == "changed")
    return [_precondition(f"leader {requires.leader}", met, detail)]


def read_to_the_end(
    ends: Iterable[Row], known: Collection[tuple[str, int]] = (), left_out: Mapping[tuple[str, int], int] | None = None
) -> Precondition:
    """The final read reached the end of every log, and left out no known partition: one that was written to, or that a
    broker reported. ``left_out``: how many offsets it was not given of a log that lacks none; perhaps of records that
    nobody knows, or that nobody acknowledged."""
    listed = list(ends)
    unread = {*known} - {(row["topic"], row["partition"]) for row in listed}
    short = [f"{_name(row)} read to {row['read_to']} of {row['log_end']}" for row in listed if not row["complete"]]
    short += [f"{topic}-{partition} not read at all" for topic, partition in sorted(unread) if listed]
    lacking = sorted((left_out or {}).items())
    short += [f"{topic}-{partition} has no record at {count} of its offsets" for (topic, partition), count in lacking]
    detail = f"{len(listed)} partitions, {sum(row['log_end'] - row['log_start'] for row in listed)} offsets"
    return _precondition(
        "final read complete", bool(listed) and not short, detail, _listed(short) or "no partition was read"
    )


def retained(ends: Iterable[Row], maybe_deleted: int = 0) -> Precondition:
    """Retention deleted the beginning of no log: records below the log start cannot be judged. ``maybe_deleted``:
    absent acknowledged records that retention may have deleted, because their offset is unknown."""
    cut = [f"{_name(row)} begins at {row['log_start']}" for row in ends if row["log_start"] > 0]
    cut += [f"{maybe_deleted} acknowledged writes without an offset may have been deleted"] if maybe_deleted else []
    return _precondition("log retained", not cut, "every log begins at 0", _listed(cut))


def limited(undecided: Sequence[str]) -> Precondition:
    """For each limit of the scenario it is known whether it was broken."""
    return _precondition(
        "limits judged", not undecided, "the history shows of each limit whether it was kept", "; ".join(undecided)
    )


def _precondition(name: str, met: bool, detail: str, otherwise: str | None = None) -> Precondition:
    return Precondition(name=name, met=met, detail=detail if met or otherwise is None else otherwise)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _name(row: Row) -> str:
    return f"{row['topic']}-{row['partition']}"
