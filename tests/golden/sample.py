"""A history of the corpus, and what it was judged to be."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from checkers.checker import Checker
from checkers.history import History
from checkers.judge import judge
from checkers.screening import records
from harness.core.verdict import Verdict
from harness.history.paths import ANOMALIES
from harness.history.run_file import RunFile
from harness.report.sentences import with_sentences
from tests.golden import rendering


@dataclass(frozen=True)
class Sample:
    """A history and its name. ``store`` writes it as a sealed run into an empty directory. With ``checkers``, only
    these are run and no verdict is made. ``planted``: anomalies were planted in it. ``long``: it is judged for few
    tests, which `scripts/test all` alone runs."""

    name: str
    store: Callable[[Path], object]
    checkers: tuple[Checker, ...] = ()
    planted: bool = False
    long: bool = False


@dataclass(frozen=True)
class Judged:
    """A history of the corpus, stored and judged in ``run``; no verdict where only some checkers were run."""

    sample: Sample
    run: Path
    verdict: Verdict | None

    def text(self, all_rows: bool = False) -> str:
        """What is kept of it; ``all_rows``: with every row of every anomaly, not the first and a digest."""
        lines = [f"checkers {checker.anomaly.name}" for checker in self.sample.checkers]
        if self.verdict is not None:
            lines += rendering.of_verdict(self.verdict.model_copy(update={"judge": {}}).to_json())
        for anomaly in sorted((self.run / ANOMALIES).glob("*")):
            shown = None if all_rows else 0 if self.sample.checkers else rendering.SHOWN
            lines += rendering.of_rows(anomaly, shown)
        return "".join(f"{line}\n" for line in lines)


def judged(sample: Sample, run: Path, spark: SparkSession) -> Judged:
    """Store ``sample`` in the empty directory ``run`` and judge it there."""
    sample.store(run)
    if not sample.checkers:
        return Judged(sample, run, with_sentences(judge(run, spark), RunFile.read(run)))
    records(History.read(run, spark), sample.checkers)
    return Judged(sample, run, None)
