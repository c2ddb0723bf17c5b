"""Every question asked of a history: a few passes over its records tell which need be, and of what."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from checkers.anomalies.order import crossings
from checkers.anomalies.records import damaged_in_place, timed
from checkers.catalogue import CHECKERS, Checker, Pass
from checkers.evidence.store import first, keep, place
from checkers.history import History, damaged_file
from checkers.scan.polls import polls
from checkers.scan.record_bits import EVERY, FEW, PLACE, UNSETTLED, blocks, few, near
from checkers.summary import COUNTS, COUNTS_OF_READERS, DAMAGED
from harness.core.errors import HistoryError
from harness.history.paths import ANOMALIES
from harness.history.stored_run import rows

_EXAMPLES = 20
#: Where no more than one in so many blocks is suspicious, and two questions need their records, these are kept apart
#: from all others. (Those of other partitions come with them.)
_NEAR = 16
#: Questions asked at once: Spark plans and compiles some while it runs another.
AT_ONCE = 2


Row = dict[str, Any]


@dataclass(frozen=True)
class Found:
    """All records of one anomaly: how many, and the first of them; or why its checker could not tell."""

    checker: Checker
    count: int
    examples: list[Row]
    failure: Exception | None = None


def records(
    history: History, checkers: Sequence[Checker] = CHECKERS, given: Callable[[], DataFrame] | None = None
) -> tuple[dict[str, int], list[Found]]:
    """What became of every record: the counts of the summary, and what each checker found.

    ``given``: tells the ``polls`` of the history, where its caller has them already.
    """
    shutil.rmtree(history.results / ANOMALIES, ignore_errors=True)
    folded = blocks(history).persist(StorageLevel.MEMORY_AND_DISK)
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        inquiry = Inquiry(pool, history, checkers, folded, given or (lambda: polls(history)))
        counts = inquiry.looked.counts
        # First those that need not wait for another pass, and of them those that take two passes themselves.
        in_turn = sorted(checkers, key=lambda c: (c.when is None and not counts[c.anomaly.name], c.timed))
        answered = list(pool.map(inquiry.answer, in_turn))
    if counts["damaged"]:
        there = "found" if history.run_file.final_read else "delivered"
        marks = marked(folded, f"acknowledged & damaged & ~{there}", counts["damaged"])
        counts["survivors"] += damaged_in_place(history, marks)
    folded.unpersist()
    found = sorted((f for f in answered if f.count or f.failure), key=lambda f: checkers.index(f.checker))
    if not found:
        shutil.rmtree(history.results / ANOMALIES, ignore_errors=True)
    return counts, found


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
    suspects = {
        c.anomaly.name: f"coalesce(bit_count({c.suspects}), 0) + {c.doubts.get(Pass.BLOCKS, '0')}" for c in checkers
    }
    anything = " | ".join(f"coalesce({bits}, 0L)" for bits in (UNSETTLED, *(c.suspects for c in checkers)))
    marks = {"unsettled": f"bit_count({UNSETTLED})", "suspicious": f"int({anything} != 0)", "blocks": "1"}
    counts = count(folded, suspects | marks | summed | DAMAGED | {"rows": "rows"})
    _whole(history, counts.pop("rows"))
    unsettled = marked(folded, UNSETTLED, counts.pop("unsettled"))
    number, blocks_in_all = counts.pop("suspicious"), counts.pop("blocks")
    asking = [c for c in checkers if counts[c.anomaly.name] or Pass.LOG in c.doubts]
    compared = not history.small and history.run_file.final_read
    worth_it = compared and len(asking) > 1 and number <= min(FEW, blocks_in_all // _NEAR)
    return Looked(counts, unsettled, near(history, marked(folded, anything, number)) if worth_it else history)


def _whole(history: History, read: int) -> None:
    """Raises HistoryError where Spark did not read each row of sends and reads once, as their files' footers count."""
    stored = rows(history.directory)
    if read != stored:
        raise HistoryError(
            f"{history.directory}: Spark read {read} sends and reads, and their files have {stored}: "
            "every machine of a Spark cluster must see the same files"
        )


class Inquiry:
    """The passes over a history, begun at once, and what each checker makes of what they tell."""

    def __init__(
        self,
        pool: Executor,
        history: History,
        checkers: Sequence[Checker],
        folded: DataFrame,
        given: Callable[[], DataFrame],
    ) -> None:
        self._history, self._folded, self._given = history, folded, given
        self._looked = pool.submit(look, history, checkers, folded)
        passes = {Pass.POLLS: given, Pass.LOG: self._log} if history.read_live else {Pass.LOG: self._log}
        doubts = {of: {c.anomaly.name: c.doubts[of] for c in checkers if of in c.doubts} for of in passes}
        self._told = {of: pool.submit(lambda of: count(passes[of](), doubts[of]), of) for of in passes if doubts[of]}

    @property
    def looked(self) -> Looked:
        """What the pass over blocks told; waits for it."""
        return self._looked.result()

    def answer(self, checker: Checker) -> Found:
        """What a checker finds; it waits for no pass that makes no difference to it.

        A finder that fails spoils its own answer alone; a scan that fails, or a damaged file, is everybody's.
        """
        if not self._suspected(checker):
            return Found(checker, 0, [])
        evidence = self._evidence(checker)
        try:
            return find(checker, *evidence)
        except Exception as exc:
            if isinstance(exc, HistoryError) or damaged_file(exc):
                raise
            shutil.rmtree(place(self._history.results, checker.anomaly.name), ignore_errors=True)
            return Found(checker, 0, [], exc)

    def _log(self) -> DataFrame:
        # Of a small history every record is looked up: for which are settled there is no need to wait.
        if self._history.small:
            return crossings(self._history, self._folded)
        return crossings(self.looked.excerpt, self.looked.unsettled)

    def _doubted(self, checker: Checker, of: Pass) -> bool:
        return of in checker.doubts and of in self._told and self._told[of].result()[checker.anomaly.name] > 0

    def _suspected(self, checker: Checker) -> bool:
        if checker.when is not None:
            return checker.when(self._history)
        return self.looked.counts[checker.anomaly.name] > 0 or any(self._doubted(checker, of) for of in self._told)

    def _evidence(self, checker: Checker) -> tuple[History, DataFrame]:
        looked = self.looked
        if checker.when is not None or checker.given is Pass.POLLS:
            return self._history, self._given()
        if checker.given is Pass.LOG:
            return looked.excerpt, looked.unsettled
        # (A small one's rewritten offsets are looked for in every record, too.)
        if not self._history.small and self._doubted(checker, Pass.LOG):
            return self._history, marked(self._folded, EVERY, looked.counts["attempted"])
        return looked.excerpt, marked(self._folded, checker.suspects, looked.counts[checker.anomaly.name])


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
    if not checker.timed:
        counted = F.broadcast(found) if history.small else few(found)
        if counted is None:
            return Found(checker, 0, [])
        found = timed(history, counted)
    kept = place(history.results, checker.anomaly.name)
    return Found(checker, keep(found, kept), first(kept, _EXAMPLES))
