"""Judge the corpus and compare with the kept texts: one file for each history, ``kept/<name>.txt``."""

import difflib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import SparkSession

from checkers.asking import records
from checkers.evaluate import judge
from checkers.tables import History
from harness.core.layout import ANOMALIES
from tests.golden import rendering
from tests.golden.corpus import Sample

KEPT = Path(__file__).parent / "kept"


def text_of(sample: Sample, spark: SparkSession, all_rows: bool = False) -> str:
    """How ``sample`` is judged now; ``all_rows``: with every row of every anomaly, not the first and a digest."""
    with tempfile.TemporaryDirectory(prefix="kafka-trial-golden-") as scratch:
        run = Path(scratch)
        sample.store(run)
        lines = [*_judged(sample, run, spark)]
        for anomaly in sorted((run / ANOMALIES).glob("*")):
            shown = None if all_rows else 0 if sample.checkers else rendering.SHOWN
            lines += rendering.of_rows(anomaly, shown)
    return "".join(f"{line}\n" for line in lines)


def _judged(sample: Sample, run: Path, spark: SparkSession) -> Iterator[str]:
    if sample.checkers:
        records(History.read(run, spark), sample.checkers)
        return iter([f"checkers {checker.anomaly.name}" for checker in sample.checkers])
    return rendering.of_verdict(judge(run, spark).to_json())


def kept(sample: Sample) -> str:
    """The kept text; empty where none is kept yet."""
    file = file_of(sample)
    return file.read_text() if file.exists() else ""


def file_of(sample: Sample) -> Path:
    """Where the text of ``sample`` is kept."""
    return KEPT / f"{sample.name.replace(',', '').replace(' ', '-')}.txt"


def changes(before: str, after: str) -> list[str]:
    """The lines that went (-) and came (+)."""
    compared = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    return [line for line in compared if not line.startswith(("---", "+++", "@@"))]
