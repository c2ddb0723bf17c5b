"""From a stored run to its verdict: what was found, what the configuration says to it, and who led."""

import traceback
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
from pyspark import StorageLevel
from pyspark.sql import SparkSession

from checkers.anomalies import transactions
from checkers.anomalies.readers import redelivered
from checkers.availability import availability
from checkers.catalogue import CHECKERS, Checker, asked_of
from checkers.evidence.causes import runs
from checkers.evidence.faults import active
from checkers.evidence.leadership import elected, refilled, who_led
from checkers.evidence.store import partitions, pieces, place
from checkers.history import History, damaged_file
from checkers.limits import limits_of, overrun, undecided
from checkers.preconditions import preconditions
from checkers.scan.polls import polls
from checkers.screening import AT_ONCE, Found, records
from checkers.summary import summary
from harness.core.anomalies import BY_NAME, DUPLICATED, LOST, MISSED
from harness.core.errors import HistoryError
from harness.core.faults import Does, acted_on, does
from harness.core.guarantees import Circumstances, elected_by_hand, most_at_once, standing
from harness.core.verdict import FoundAnomaly, Judgement, Precondition, Standing, Summary, Verdict, worst
from harness.history.paths import CHECKERS_LOG


def judge(
    directory: Path, spark: SparkSession, results: Path | None = None, checkers: Sequence[Checker] | None = None
) -> Verdict:
    """Judge the run stored in ``directory``, from what is stored there alone: the same run, the same verdict.

    Writes all records of each anomaly found to ``<results>/anomalies/<name>/``, the traceback of a checker that fails
    to ``<results>/checkers.log``, and no other file; ``results`` is the run's directory where it is not told.
    ``checkers``: all that such a run is asked, where they are not told. Raises HistoryError where the run cannot be
    judged at all.
    """
    try:
        history = History.read(directory, spark, results)
        return _judged(history, asked_of(history.run_file) if checkers is None else checkers)
    except Exception as exc:
        damaged = damaged_file(exc)
        if damaged is None:
            raise
        raise HistoryError(f"{damaged}: damaged inside (its footer is whole): copy it again") from exc
    finally:
        spark.catalog.clearCache()


def _judged(history: History, checkers: Sequence[Checker]) -> Verdict:
    # Of questions that need nothing of each other Spark plans and compiles one while it runs another.
    with ThreadPoolExecutor() as pool:
        polled = (
            pool.submit(lambda: polls(history).persist(StorageLevel.MEMORY_AND_DISK)) if history.read_live else None
        )
        judged = pool.submit(records, history, checkers, polled.result if polled else None)
        served = pool.submit(availability, history)
        again = redelivered(history, polled.result()) if polled else {}
        (counts, answered), service = judged.result(), served.result()
    found = [f for f in answered if f.failure is None]
    failures = {f.checker.anomaly.name: f.failure for f in answered if f.failure is not None}
    sizes = {f.checker.anomaly.name: f.count for f in found} | dict.fromkeys(failures)
    report = summary(counts, lost=sizes.get(LOST.name, 0), duplicated=sizes.get(DUPLICATED.name, 0))
    ruled = rule(history, found)
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        told = pool.map(lambda name: explained(history, name, ruled[name]), ruled)
        anomalies = dict(zip(ruled, told, strict=True))
    anomalies |= overrun(limits_of(history.run_file), service)
    sent = [(part["topic"], part["partition"]) for part in service["partitions"]]
    doubts = undecided(history.run_file, service)
    met = preconditions(history.run_file, report, history.ends, history.faults, history.seen, sent, doubts)
    met += _unanswered(history.results, failures)
    done = transactions.report(history)
    return verdict(history, report, anomalies, met, service, done, again)


def _unanswered(results: Path, failures: Mapping[str, Exception]) -> list[Precondition]:
    """The precondition that checkers which failed break; their tracebacks go to ``results``."""
    log = results / CHECKERS_LOG
    log.unlink(missing_ok=True)
    if not failures:
        return []
    with log.open("w", encoding="utf-8") as file:
        for name, failure in failures.items():
            file.write(f"{name}:\n")
            traceback.print_exception(failure, file=file)
    failed = "; ".join(f"{name} ({type(failure).__name__})" for name, failure in failures.items())
    return [Precondition(name="checkers answered", met=False, detail=f"failed: {failed}: see {CHECKERS_LOG}")]


def circumstances(history: History) -> Circumstances:
    """What happened in a run, as far as Kafka's promises depend on it."""
    run = history.run_file
    brokers = {node.name: node.id for node in run.nodes if node.role == "broker"}
    wiped = [
        {**row, "nodes": [name], "healed_ns": refilled(history.seen, brokers[name], row["injecting_ns"])}
        for row in history.faults
        if does(row, Does.DESTROYS_DATA)
        for name in brokers.keys() & acted_on(row)
    ]
    return Circumstances(
        elected=bool(elected(history.seen)),
        faulted_at_once=most_at_once(history.faults, frozenset(brokers)),
        wiped_at_once=most_at_once(wiped, frozenset(brokers)),
        last_replica_guarded=run.features.get("eligible.leader.replicas.version", 0) > 0,
        final_read=run.final_read,
        missed_by_the_living=_missed_by_the_living(history.results),
    )


def _missed_by_the_living(results: Path) -> int:
    found = pieces(place(results, MISSED.name))
    return sum(len(piece) - pc.sum(pc.or_(piece["died"], piece["unanswered"])).as_py() for piece in found)


def rule(history: History, found: Sequence[Found]) -> dict[str, FoundAnomaly]:
    """Each anomaly with its standing under the run's configuration."""
    happened, configuration = circumstances(history), history.run_file.configuration
    rulings = {
        name: standing(
            BY_NAME[name],
            configuration,
            replace(
                happened, elected=_elected_where(history, name), elected_by_hand=_elected_by_hand_where(history, name)
            ),
        )
        for name in (f.checker.anomaly.name for f in found)
    }
    return {
        f.checker.anomaly.name: FoundAnomaly(
            count=f.count,
            standing=(ruling := rulings[f.checker.anomaly.name]).standing,
            because=ruling.because,
            source=ruling.source,
            remedy=ruling.remedy,
            examples=f.examples,
        )
        for f in found
    }


def _elected_where(history: History, anomaly: str) -> bool:
    """Whether in each partition that has an anomaly another leader was elected: no other partition's election excuses
    it. (But nobody observes the log of a transaction's coordinator: where there are any, the others' stand for it.)"""
    had = elected(history.seen)
    return bool(had) and (history.transactional or partitions(place(history.results, anomaly)) <= had)


def _elected_by_hand_where(history: History, anomaly: str) -> bool:
    """Whether in each partition that has an anomaly an unclean election was asked for by hand, and came."""
    had = elected_by_hand(history.faults)
    return bool(had) and partitions(place(history.results, anomaly)) <= had


def explained(history: History, name: str, anomaly: FoundAnomaly) -> FoundAnomaly:
    """``anomaly`` with its runs, and its examples told who led and which faults were active at each's moment."""
    names = {node.id: node.name for node in history.run_file.nodes if node.role == "broker"}
    examples = [
        {
            **row,
            **who_led(history.seen, (row["topic"], row["partition"]), at, names),
            "faults": active(history.faults, at),
        }
        for row in anomaly.examples
        for at in [moment(row)]
    ]
    return anomaly.model_copy(update={"examples": examples, "runs": runs(history, BY_NAME[name])})


def moment(example: Mapping[str, Any]) -> int:
    """When the record of an example was acknowledged; where it never was, when it was sent, or else read."""
    return next((example[k] for k in ("acknowledged_ns", "sent_ns", "read_ns") if example.get(k) is not None), 0)


def verdict(
    history: History,
    report: Summary,
    anomalies: dict[str, FoundAnomaly],
    met: list[Precondition],
    service: dict[str, Any],
    of_transactions: dict[str, Any],
    redelivered_by_cause: dict[str, int],
) -> Verdict:
    """The merge: any anomaly is what its checker says, invalid for all but one; else any assumption that did not hold
    is unknown; else valid."""
    run = history.run_file
    asked = asked_of(run)
    least = {checker.anomaly.name: checker.judged for checker in asked}
    found = (least.get(name, Judgement.INVALID) for name in anomalies)
    judged = worst([*found, *(Judgement.UNKNOWN for held in met if not held.met)])
    unexpected = run.expect.unmet(judged, anomalies, met)
    return Verdict(
        schema_number=1,
        run=run.run,
        scenario=run.scenario_name,
        verdict=judged,
        expected=unexpected is None,
        partial=run.partial,
        reasons=reasons(report, anomalies, met, unexpected, asked),
        summary=report,
        anomalies=anomalies,
        preconditions=met,
        availability=service,
        transactions=of_transactions,
        redelivered=redelivered_by_cause,
        faults=history.faults,
        versions=run.versions,
    )


def reasons(
    report: Summary,
    anomalies: Mapping[str, FoundAnomaly],
    met: Sequence[Precondition],
    unexpected: str | None,
    asked: Sequence[Checker] = CHECKERS,
) -> list[str]:
    """Why the verdict is what it is, one line each, violations first: the first line is the headline."""
    said = {name: anomaly.sentence for name, anomaly in BY_NAME.items()}
    said |= {checker.anomaly.name: checker.said for checker in asked}
    order = sorted(anomalies, key=lambda name: anomalies[name].standing is not Standing.VIOLATION)
    lines = [line for name in order for line in _finding(name, said[name], anomalies[name], report)]
    lines += [f"unknown: {held.name}: {held.detail}" for held in met if not held.met]
    lines += [] if lines else [_clean(report, "are in the final log" if asked is CHECKERS else "were read")]
    return lines + ([f"not as expected: {unexpected}"] if unexpected else [])


def _finding(name: str, said: str, anomaly: FoundAnomaly, report: Summary) -> list[str]:
    """What was found, and the biggest run of it."""
    of = f" of {report.acknowledged}" if BY_NAME[name].of_acknowledged else ""
    finding = f"{name}: {anomaly.count}{of} {said}; {anomaly.standing}: {anomaly.because}"
    return [finding, *(f"{name}: {run['text']}" for run in anomaly.runs[:1])]


def _clean(report: Summary, survived: str) -> str:
    if report.acknowledged:
        return f"no anomaly: all {report.acknowledged} acknowledged writes {survived}"
    absent = report.attempted - report.survivors
    return f"no anomaly: nothing was acknowledged; {absent} of {report.attempted} writes are not in the final log"
