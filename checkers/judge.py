"""Judges a stored run: what the checkers found, and whether the configuration permits it."""

import traceback
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import SparkSession

from checkers.anomalies import transactions
from checkers.anomalies.readers import redelivered
from checkers.at_risk import at_risk
from checkers.availability import availability, committed, writes
from checkers.catalogue import checkers_of
from checkers.checker import Checker
from checkers.evidence.causes import found_ranges, range_facts, terms_led
from checkers.evidence.circumstances import all_may_have_moved
from checkers.evidence.copies import without_late_copies
from checkers.evidence.decision import WORST_FIRST
from checkers.evidence.faults import active
from checkers.evidence.holes import FinalLogs, known_holes, read_final_logs, unread
from checkers.evidence.losses import Losses, losses_of
from checkers.evidence.readers import behind
from checkers.evidence.record_ranges import RecordRange
from checkers.evidence.silence import silences
from checkers.evidence.standing import observed, possible_faults, worst_ruling
from checkers.evidence.store import AnomalyStore, StoredRows
from checkers.findings import Observed, findings
from checkers.history import History, damaged_file
from checkers.leadership import Partition, who_led
from checkers.limits import limits_of, overrun, undecided
from checkers.preconditions import RunFacts, preconditions
from checkers.scan.polls import polls
from checkers.screening import AT_ONCE, Found, records, stored
from checkers.stretches import Timeline
from checkers.summary import summary
from harness.core.anomalies import BY_NAME, DUPLICATED, LOST, Anomaly
from harness.core.errors import HistoryError
from harness.core.guarantees import Ruling, standing
from harness.core.verdict import Finding, FoundAnomaly, Judgement, Precondition, Standing, Summary, Verdict, worst
from harness.history.paths import CHECKERS_LOG


def judge(
    directory: Path,
    spark: SparkSession,
    results: Path | None = None,
    checkers: Sequence[Checker] | None = None,
    one_task: bool | None = None,
) -> Verdict:
    """Judge the run stored in ``directory``, only from what is stored there: the same run gives the same verdict.

    Writes all records of each anomaly to ``<results>/anomalies/<name>/``, the traceback of a failed checker to
    ``<results>/checkers.log``, and no other file. ``results``: by default the run's directory. ``checkers``: by default
    all that apply to the run. ``one_task``: as of History.read; it never changes a verdict. The verdict has facts
    only: harness/report/sentences.py adds ``reasons`` and each ``text``. Raises HistoryError if the run cannot be
    judged at all.
    """
    try:
        history = History.read(directory, spark, results, one_task)
        return _judged(history, checkers_of(history.run_file) if checkers is None else checkers)
    except Exception as exc:
        damaged = damaged_file(exc)
        if damaged is None:
            raise
        raise HistoryError(f"{damaged}: damaged inside (its footer is whole): copy it again") from exc
    finally:
        spark.catalog.clearCache()


def _judged(history: History, checkers: Sequence[Checker]) -> Verdict:
    final_logs: Future[FinalLogs | None] | None = None

    def read_when_needed(one: Found) -> None:
        nonlocal final_logs
        if final_logs is None and one.count and one.checker.anomaly.judged_by_record:
            final_logs = pool.submit(read_final_logs, history)

    # Independent queries run in threads: Spark plans and compiles one while it executes another.
    with ThreadPoolExecutor() as pool:
        polled = (
            pool.submit(lambda: polls(history).persist(StorageLevel.MEMORY_AND_DISK))
            if history.read_live or history.run_file.workers("positions")
            else None
        )
        judged = pool.submit(records, history, checkers, polled.result if polled else None, read_when_needed)
        acknowledged = pool.submit(writes, history)
        again = redelivered(history, polled.result()) if polled else {}
        stopped = behind(history, polled.result()) if polled and history.run_file.final_read else []
        (counts, answered), written = judged.result(), acknowledged.result()
    service = availability(history, written)
    seen = observed(history.stored, history.seen)
    lasting = committed(history, written)
    risked = at_risk(lasting, seen)
    found = [f for f in answered if f.failure is None]
    failures = {f.checker.anomaly.name: f.failure for f in answered if f.failure is not None}
    sizes = {f.checker.anomaly.name: f.count for f in found} | dict.fromkeys(failures)
    report = summary(counts, lost=sizes.get(LOST.name, 0), duplicated=sizes.get(DUPLICATED.name, 0))
    found_rows = stored(found)
    losses = None if final_logs is None else losses_of(history, found_rows, seen, final_logs.result())
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        explanations = list(pool.map(lambda one: explained(history, one, found_rows, losses), found))
    names = [f.checker.anomaly.name for f in found]
    ranges = {name: one for name, (_, one) in zip(names, explanations, strict=True)}
    anomalies = {name: one for name, (one, _) in zip(names, explanations, strict=True)}
    anomalies |= overrun(limits_of(history.run_file), service, history.faults)
    seen_of_run = Observed(terms_led(history), history.seen, history.faults, history.stored.brokers)
    caused = findings(anomalies, ranges, seen_of_run, rows_of(checkers))
    known = known_holes(ranges.values())
    met = preconditions(
        history.run_file, report, _facts_of_run(history, service, lasting, stopped, counts, risked, known)
    )
    met += _failed_checkers(history.results, failures)
    done = transactions.report(history)
    return verdict(history, checkers, report, anomalies, caused, met, service, done, again, risked)


def _last_acknowledged(part: Mapping[str, Any], lasting: Mapping[Partition, Timeline]) -> dict[str, Any]:
    """A partition of ``availability`` with the last acknowledgement of the writes that had to last."""
    own = lasting.get((part["topic"], part["partition"]))
    return {**part, "last_ack_ns": None if own is None else own.last_ack_ns}


def _facts_of_run(
    history: History,
    service: Mapping[str, Any],
    lasting: Mapping[Partition, Timeline],
    stopped: Sequence[str],
    counts: Mapping[str, int],
    risked: Mapping[int, int],
    holes: Mapping[Partition, int],
) -> RunFacts:
    """The facts against which the preconditions of a run are checked. ``holes``: how many records are known to be
    missing in holes of each final log: these are reported by themselves."""
    written = {(part["topic"], part["partition"]): tuple(part["written_ns"]) for part in service["partitions"]}
    return RunFacts(
        ends=history.ends,
        faults=history.faults,
        spans=history.seen,
        partitions=[_last_acknowledged(part, lasting) for part in service["partitions"]],
        silences=silences(history.stored.table("observations", columns=["topic", "partition", "at_ns"]), written),
        missing=history.stored.missing,
        behind=stopped,
        maybe_deleted=counts["maybe_deleted"],
        unread=unread(history, counts["in_logs"], holes) if history.run_file.final_read else {},
        at_risk=risked,
        undecided=undecided(history.run_file, service, history.faults),
    )


def _failed_checkers(results: Path, failures: Mapping[str, Exception]) -> list[Precondition]:
    """The precondition that failed checkers break; their tracebacks go to ``results``."""
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


def ruling_of(history: History, checker: Checker, found: StoredRows, ranges: Sequence[RecordRange]) -> Ruling:
    """The standing of a checker's anomaly, of which ``found`` are all rows, under the run's configuration: the worst of
    its records."""
    if not checker.anomaly.judged_by_record:
        possible = [checker.happened(history, faults, found) for faults in possible_faults(history.faults)]
        if all_may_have_moved(history, found):
            possible.append([replace(one, moved_unseen=True) for one in possible[0]])
        configuration = history.run_file.configuration
        rulings = (standing(checker.anomaly, configuration, *ways) for ways in zip(*possible, strict=True))
        return min(rulings, key=lambda ruling: WORST_FIRST.index(ruling.standing))
    ruling, count, total = worst_ruling(ranges)
    of_some = f"{count} of them: " if count < total else ""
    return replace(ruling, because=f"{of_some}{ruling.because}")


def explained(
    history: History, found: Found, found_rows: AnomalyStore, losses: Losses | None
) -> tuple[FoundAnomaly, list[RecordRange]]:
    """An anomaly that a checker found, with its standing, its ranges, and its examples. Each range has a standing; each
    example has the leader and the active faults of its time. Also returns all ranges of its records.
    ``found_rows``: what all checkers found.
    """
    names, checker, anomaly = history.stored.brokers, found.checker, found.checker.anomaly
    examples = [
        {
            **row,
            **who_led(history.seen, (row["topic"], row["partition"]), at, names),
            "faults": active(history.faults, at),
        }
        for row in found.examples
        for at in [moment(row)]
    ]
    if losses is not None and anomaly.judged_by_record:
        ranges = losses.ranges(anomaly)
    else:
        ranges = found_ranges(history, anomaly, found_rows.of(anomaly))
    if losses is not None and anomaly.leaves_copy:
        ranges = without_late_copies(history, anomaly, found_rows.of(anomaly), ranges, losses.evidence)
    ruling = ruling_of(history, checker, found_rows.of(anomaly), ranges)
    if checker.by_loss is not None and ruling.standing is Standing.VIOLATION:
        ruling = checker.by_loss(history, found_rows, losses) or ruling
    ruled = {"standing": ruling.standing}
    with_standing = FoundAnomaly(
        count=found.count,
        standing=ruling.standing,
        because=ruling.because,
        source=ruling.source,
        remedy=ruling.remedy,
        examples=examples,
        runs=[{**ruled, **part} for part in range_facts(history, ranges)] if anomaly.comes_in_ranges else [],
    )
    return with_standing, ranges


def moment(example: Mapping[str, Any]) -> int:
    """The time when the record of an example was acknowledged; if it never was, when it was sent, or else read."""
    return next((example[k] for k in ("acknowledged_ns", "sent_ns", "read_ns") if example.get(k) is not None), 0)


def verdict(
    history: History,
    checkers: Sequence[Checker],
    report: Summary,
    anomalies: dict[str, FoundAnomaly],
    caused: list[Finding],
    met: list[Precondition],
    service: dict[str, Any],
    of_transactions: dict[str, Any],
    redelivered_by_cause: dict[str, int],
    acknowledged_at_risk: dict[int, int],
) -> Verdict:
    """The merge: the verdict of each anomaly is that of its checker (invalid, for all but one); each precondition that
    is not met makes the verdict unknown; the worst of these counts, and without any it is valid."""
    run = history.run_file
    least = {checker.name: checker.judged for checker in checkers}
    found = (least.get(name, Judgement.INVALID) for name in anomalies)
    judged = worst([*found, *(Judgement.UNKNOWN for held in met if not held.met)])
    return Verdict(
        schema_number=1,
        run=run.run,
        scenario=run.scenario_name,
        verdict=judged,
        expected=run.expect.unmet(judged, anomalies, met) is None,
        partial=run.partial,
        reasons=[],
        summary=report,
        anomalies=anomalies,
        findings=caused,
        preconditions=met,
        availability=service,
        transactions=of_transactions,
        redelivered=redelivered_by_cause,
        at_risk=acknowledged_at_risk,
        faults=history.faults,
        versions=run.versions,
        judge={name: version(name) for name in ("kafka-trial", "pyspark")},
    )


def rows_of(checkers: Iterable[Checker]) -> dict[str, Anomaly]:
    """The anomalies that a verdict of these checkers may name, by name: all of the registry, and the checkers' own."""
    return BY_NAME | {checker.name: checker.anomaly for checker in checkers}
