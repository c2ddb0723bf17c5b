"""Run every checker. Three cheap scans first find candidates; a checker whose candidates are empty is skipped."""

import shutil
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc
from pyspark import StorageLevel
from pyspark.sql import DataFrame

from checkers.anomalies.records import damaged_in_place, maybe_deleted, timed, timed_as_missing
from checkers.catalogue import CHECKERS
from checkers.checker import Checker, Question
from checkers.evidence.store import NO_ROWS, AnomalyStore, StoredRows, discard, store
from checkers.history import History, damaged_file
from checkers.scan.polls import polls
from checkers.scan.record_bits import ABSENT, ONLY_DAMAGED, candidates, computed_once, record_bits, without_final_read
from checkers.scans import Scan, Scans
from harness.core.errors import HistoryError
from harness.core.verdict import MOST_EXAMPLES
from harness.history.paths import ANOMALIES

#: How many checkers run at the same time: Spark plans and compiles one while it executes another.
AT_ONCE = 2

Row = dict[str, Any]


@dataclass(frozen=True)
class Found:
    """The result of one checker: its count (of records, or of transactions), the first ones as examples, and all
    records, stored; or why it failed."""

    checker: Checker
    count: int
    examples: list[Row]
    stored: StoredRows = NO_ROWS
    failure: Exception | None = None


def records(
    history: History,
    checkers: Sequence[Checker] = CHECKERS,
    polled: Callable[[], DataFrame] | None = None,
    each: Callable[[Found], object] = lambda _found: None,
) -> tuple[dict[str, int], list[Found]]:
    """Run ``checkers``. Returns: the counts of the summary, and the results of the checkers that found something or
    failed.

    ``polled``: returns the ``polls`` of the history, if the caller has them already. ``each``: called with the
    result of each checker, in the order in which they run; others may still run.
    """
    shutil.rmtree(history.results / ANOMALIES, ignore_errors=True)
    folded = record_bits(history).persist(StorageLevel.MEMORY_AND_DISK)
    sums = {scan: {c.name: c.sums[scan] for c in checkers if scan in c.sums} for scan in Scan}
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        scans = Scans(pool, history, folded, polled or (lambda: polls(history)), sums)
        counts = dict(scans.summary)
        # First those that need no other scan; among them first those whose finder takes two passes.
        in_turn = sorted(checkers, key=lambda c: (not c.applies_at_once(scans), c.timed))
        answered = []
        for one in pool.map(lambda checker: answer(checker, scans), in_turn):
            each(one)
            answered.append(one)
    if counts["damaged"]:
        bits = ONLY_DAMAGED if history.run_file.final_read else without_final_read(ONLY_DAMAGED)
        counts["survivors"] += damaged_in_place(candidates(history, folded, bits, counts["damaged"]))
    counts["maybe_deleted"] = 0
    if any(row["log_start"] for row in history.ends):
        counts["maybe_deleted"] = maybe_deleted(candidates(history, folded, ABSENT, counts["acknowledged"]))
    folded.unpersist()
    found = sorted((f for f in answered if f.count or f.failure), key=lambda f: checkers.index(f.checker))
    if not found:
        shutil.rmtree(history.results / ANOMALIES, ignore_errors=True)
    return counts, found


def stored(found: Iterable[Found]) -> AnomalyStore:
    """The stored records of all checkers."""
    return AnomalyStore({one.checker.name: one.stored for one in found})


def answer(checker: Checker, scans: Scans) -> Found:
    """Run one checker.

    A failed finder only affects its own result. A failed scan and a damaged file are raised.
    """
    found = Found(checker, 0, [])
    for question in checker.questions(scans):
        discard(scans.history.results, checker.name)
        try:
            found = find(checker, scans.history, question)
        except Exception as exc:
            if isinstance(exc, HistoryError) or damaged_file(exc):
                raise
            discard(scans.history.results, checker.name)
            found = Found(checker, 0, [], failure=exc)
    return found


def find(checker: Checker, history: History, question: Question) -> Found:
    """Run a finder, and store all records of its anomaly in the results directory."""
    asked = question()
    if asked is None:
        return Found(checker, 0, [])
    found = asked.where(checker.rule)
    if not checker.timed:
        without_times = computed_once(found)
        if without_times is None:
            return Found(checker, 0, [])
        found = (timed_as_missing if checker.anomaly.judged_by_record else timed)(history, without_times)
    rows = store(found, history.results, checker.name)
    if checker.anomaly.counts_transactions:
        one_of_each = pc.field("nth") == 1
        return Found(checker, rows.count_of(one_of_each), rows.first(MOST_EXAMPLES, one_of_each), rows)
    return Found(checker, rows.count, rows.first(MOST_EXAMPLES), rows)
