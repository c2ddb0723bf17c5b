"""From a stored run to its verdict: a few passes over the records, then only what they found suspicious."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from checkers import transactions
from checkers.availability import availability
from checkers.catalogue import CHECKERS, Checker, Pass, asked_of
from checkers.delivery import timed
from checkers.faults import active
from checkers.forensics import runs
from checkers.kept import first, keep, pieces, place
from checkers.observed import elected, refilled, who_led
from checkers.order import crossings
from checkers.polls import polls
from checkers.preconditions import preconditions
from checkers.presence import EVERY, FEW, PLACE, UNSETTLED, blocks, near
from checkers.reader import redelivered
from checkers.service import SAID, overrun
from checkers.summary import COUNTS, COUNTS_OF_READERS, summary
from checkers.tables import History
from harness.core.guarantees import Circumstances, most_at_once, standing
from harness.core.layout import ANOMALIES
from harness.core.run_file import RunFile
from harness.core.verdict import Anomaly, Judgement, Precondition, Standing, Summary, Verdict, worst

_EXAMPLES = 20
#: Where no more than one in so many blocks is suspicious, and two questions need their records, these are kept apart
#: from all others. (Those of other partitions come with them.)
_NEAR = 16
#: Questions asked at once: Spark plans and compiles some while it runs another.
_AT_ONCE = 2

Row = dict[str, Any]


@dataclass(frozen=True)
class Found:
    """All records of one anomaly: how many, and the first of them."""

    checker: Checker
    count: int
    examples: list[Row]


def judge(directory: Path, spark: SparkSession) -> Verdict:
    """Judge the run stored in ``directory``, from what is stored there alone: the same run, the same verdict.

    Writes all records of each anomaly found to ``<directory>/anomalies/<name>/``, and no other file. Raises
    HistoryError where the run cannot be judged at all.
    """
    try:
        return _judged(History.read(directory, spark))
    finally:
        spark.catalog.clearCache()


def _judged(history: History) -> Verdict:
    # Of questions that need nothing of each other Spark plans and compiles one while it runs another.
    with ThreadPoolExecutor() as pool:
        polled = (
            pool.submit(lambda: polls(history).persist(StorageLevel.MEMORY_AND_DISK)) if history.read_live else None
        )
        judged = pool.submit(records, history, asked_of(history.run_file), polled.result if polled else None)
        served = pool.submit(availability, history)
        again = redelivered(history, polled.result()) if polled else {}
        (counts, found), service = judged.result(), served.result()
    sizes = {f.checker.anomaly: f.count for f in found}
    report = summary(counts, lost=sizes.get("lost", 0), duplicated=sizes.get("duplicated", 0))
    ruled = rule(history.run_file, found, circumstances(history))
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        told = pool.map(lambda name: explained(history, name, ruled[name]), ruled)
        anomalies = dict(zip(ruled, told, strict=True))
    anomalies |= overrun(history.run_file.limits, service, history.faults, history.last_ns)
    met = preconditions(history.run_file, report, history.ends, history.faults, history.seen)
    done = transactions.report(history)
    return verdict(history, report, anomalies, met, service, done, again)


def records(
    history: History, checkers: Sequence[Checker] = CHECKERS, given: Callable[[], DataFrame] | None = None
) -> tuple[dict[str, int], list[Found]]:
    """What became of every record: the counts of the summary, and what each checker found.

    ``given``: tells the ``polls`` of the history, where its caller has them already.
    """
    shutil.rmtree(history.directory / ANOMALIES, ignore_errors=True)
    folded = blocks(history).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        return answers(history, checkers, folded, given or (lambda: polls(history)))
    finally:
        folded.unpersist()


@dataclass(frozen=True)
class Looked:
    """What the pass over blocks told: ``counts`` of the summary and of each checker's suspects, the blocks that are
    ``unsettled``, and the history near all that is suspicious: the whole where that is much of it, or asked once."""

    counts: dict[str, int]
    unsettled: DataFrame
    excerpt: History


def look(history: History, checkers: Sequence[Checker], folded: DataFrame) -> Looked:
    """Ask of all blocks at once."""
    summed = COUNTS if history.run_file.final_read else COUNTS_OF_READERS
    # Of records without an id there is a block without bits.
    suspects = {c.anomaly: f"coalesce(bit_count({c.suspects}), 0) + {c.doubts.get(Pass.BLOCKS, '0')}" for c in checkers}
    anything = " | ".join(f"coalesce({bits}, 0L)" for bits in (UNSETTLED, *(c.suspects for c in checkers)))
    marks = {"unsettled": f"bit_count({UNSETTLED})", "suspicious": f"int({anything} != 0)", "blocks": "1"}
    counts = count(folded, suspects | marks | summed)
    unsettled = marked(folded, UNSETTLED, counts.pop("unsettled"))
    number, blocks_in_all = counts.pop("suspicious"), counts.pop("blocks")
    asking = [c for c in checkers if counts[c.anomaly] or Pass.LOG in c.doubts]
    worth_it = not history.small and len(asking) > 1 and number <= min(FEW, blocks_in_all // _NEAR)
    return Looked(counts, unsettled, near(history, marked(folded, anything, number)) if worth_it else history)


def answers(
    history: History, checkers: Sequence[Checker], folded: DataFrame, given: Callable[[], DataFrame]
) -> tuple[dict[str, int], list[Found]]:
    """What became of every record, by its blocks and polls."""

    def log() -> DataFrame:
        # Of a small history every record is looked up: for which are settled there is no need to wait.
        if history.small:
            return crossings(history, folded)
        return crossings(looking.result().excerpt, looking.result().unsettled)

    passes = {Pass.POLLS: given, Pass.LOG: log} if history.read_live else {Pass.LOG: log}
    doubts = {of: {c.anomaly: c.doubts[of] for c in checkers if of in c.doubts} for of in passes}

    def doubted(of: Pass, checker: Checker) -> bool:
        return checker.anomaly in doubts[of] and asked[of].result()[checker.anomaly] > 0

    def suspected(checker: Checker) -> bool:
        if checker.when is not None:
            return checker.when(history)
        return looked.counts[checker.anomaly] > 0 or any(doubted(of, checker) for of in passes)

    def evidence(checker: Checker) -> tuple[History, DataFrame]:
        if checker.when is not None or checker.given is Pass.POLLS:
            return history, given()
        if checker.given is Pass.LOG:
            return looked.excerpt, looked.unsettled
        if not history.small and doubted(Pass.LOG, checker):
            return history, marked(folded, EVERY, looked.counts["attempted"])
        return looked.excerpt, marked(folded, checker.suspects, looked.counts[checker.anomaly])

    def answer(checker: Checker) -> Found:
        return find(checker, *evidence(checker)) if suspected(checker) else Found(checker, 0, [])

    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        looking = pool.submit(look, history, checkers, folded)
        asked = {of: pool.submit(lambda of: count(passes[of](), doubts[of]), of) for of in passes if doubts[of]}
        looked = looking.result()
        # First those that need not wait for what is asked of these passes, and of them those that take two themselves.
        in_turn = sorted(checkers, key=lambda c: (c.when is None and not looked.counts[c.anomaly], c.timed))
        answered = list(pool.map(answer, in_turn))
    found = sorted((f for f in answered if f.count), key=lambda f: checkers.index(f.checker))
    if not found:
        shutil.rmtree(history.directory / ANOMALIES, ignore_errors=True)
    return looked.counts, found


def count(rows: DataFrame, sums: Mapping[str, str]) -> dict[str, int]:
    """The sum of each SQL expression over all rows, in one job; 0 where there are none."""
    named = rows.selectExpr(*(f"cast({sql} as bigint) as {name}" for name, sql in sums.items()))
    [row] = named.groupBy().sum().toDF(*sums).collect()
    return {name: value or 0 for name, value in row.asDict().items()}


def marked(folded: DataFrame, suspects: str, number: int) -> DataFrame:
    """The blocks that have suspects, ``number`` at most. Returns: PLACE, bits"""
    marks = folded.selectExpr(*PLACE, f"{suspects} as bits").where("bits != 0")
    return F.broadcast(marks) if number <= FEW else marks


def find(checker: Checker, history: History, given: DataFrame) -> Found:
    """Answer one question exactly, and keep all of its records beside the run."""
    told = checker.find(history, given)
    if told is None:
        return Found(checker, 0, [])
    found = told.where(checker.rule)
    kept = place(history.directory, checker.anomaly)
    if not checker.timed and not history.small:
        found = found.persist(StorageLevel.MEMORY_AND_DISK)
        if not found.count():
            return Found(checker, 0, [])
    found = found if checker.timed else timed(history, found)
    return Found(checker, keep(found, kept), first(kept, _EXAMPLES))


def circumstances(history: History) -> Circumstances:
    """What happened in a run, as far as Kafka's promises depend on it."""
    run = history.run_file
    brokers = {node.name: node.id for node in run.nodes if node.role == "broker"}
    wiped = [
        {**row, "nodes": [name], "healed_ns": refilled(history.seen, brokers[name], row["injecting_ns"])}
        for row in history.faults
        if row["kind"] == "wipe"
        for name in brokers.keys() & set(row["nodes"])
    ]
    return Circumstances(
        elected=elected(history.seen),
        faulted_at_once=most_at_once(history.faults, frozenset(brokers)),
        wiped_at_once=most_at_once(wiped, frozenset(brokers)),
        last_replica_guarded=run.features.get("eligible.leader.replicas.version", 0) > 0,
        final_read=run.final_read,
        missed_by_the_living=_missed_by_the_living(history.directory),
    )


def _missed_by_the_living(run: Path) -> int:
    return sum(len(piece) - pc.sum(piece["died"]).as_py() for piece in pieces(place(run, "missed")))


def rule(run: RunFile, found: Sequence[Found], happened: Circumstances) -> dict[str, Anomaly]:
    """Each anomaly with its standing under the run's configuration."""
    rulings = {f.checker.anomaly: standing(f.checker.anomaly, run.configuration, happened) for f in found}
    return {
        f.checker.anomaly: Anomaly(
            count=f.count,
            standing=(ruling := rulings[f.checker.anomaly]).standing,
            because=ruling.because,
            source=ruling.source,
            remedy=ruling.remedy,
            examples=f.examples,
        )
        for f in found
    }


def explained(history: History, name: str, anomaly: Anomaly) -> Anomaly:
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
    return anomaly.model_copy(update={"examples": examples, "runs": runs(history, name)})


def moment(example: Mapping[str, Any]) -> int:
    """When the record of an example was acknowledged; where it never was, when it was sent, or else read."""
    return next((example[k] for k in ("acknowledged_ns", "sent_ns", "read_ns") if example.get(k) is not None), 0)


def verdict(
    history: History,
    report: Summary,
    anomalies: dict[str, Anomaly],
    met: list[Precondition],
    service: dict[str, Any],
    of_transactions: dict[str, Any],
    redelivered_by_cause: dict[str, int],
) -> Verdict:
    """The merge: any anomaly is what its checker says, invalid for all but one; else any assumption that did not hold
    is unknown; else valid."""
    run = history.run_file
    asked = asked_of(run)
    least = {checker.anomaly: checker.judged for checker in asked}
    found = (least.get(name, Judgement.INVALID) for name in anomalies)
    judged = worst([*found, *(Judgement.UNKNOWN for held in met if not held.met)])
    unexpected = run.expect.unmet(judged, anomalies)
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
    anomalies: Mapping[str, Anomaly],
    met: Sequence[Precondition],
    unexpected: str | None,
    asked: Sequence[Checker] = CHECKERS,
) -> list[str]:
    """Why the verdict is what it is, one line each, violations first: the first line is the headline."""
    said = {checker.anomaly: checker.said for checker in asked} | SAID
    order = sorted(anomalies, key=lambda name: anomalies[name].standing is not Standing.VIOLATION)
    lines = [line for name in order for line in _finding(name, said[name], anomalies[name], report)]
    lines += [f"unknown: {held.name}: {held.detail}" for held in met if not held.met]
    lines += [] if lines else [_clean(report, "are in the final log" if asked is CHECKERS else "were read")]
    return lines + ([f"not as expected: {unexpected}"] if unexpected else [])


def _finding(name: str, said: str, anomaly: Anomaly, report: Summary) -> list[str]:
    """What was found, and the biggest run of it."""
    of = f" of {report.acknowledged}" if name in {"lost", "unseen"} else ""
    finding = f"{name}: {anomaly.count}{of} {said}; {anomaly.standing}: {anomaly.because}"
    return [finding, *(f"{name}: {run['text']}" for run in anomaly.runs[:1])]


def _clean(report: Summary, survived: str) -> str:
    if report.acknowledged:
        return f"no anomaly: all {report.acknowledged} acknowledged writes {survived}"
    absent = report.attempted - report.survivors
    return f"no anomaly: nothing was acknowledged; {absent} of {report.attempted} writes are not in the final log"
