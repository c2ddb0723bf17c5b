"""What the commands do, behind one seam: heavy parts are imported when they are needed, and tests give their own."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.surroundings import look_at_spark

if TYPE_CHECKING:
    from harness.core.verdict import Verdict
    from harness.providers.catalogue import Row
    from harness.run.display import Display
    from harness.scenario.model import Scenario

    Run = Callable[[Scenario, Path, int, Display, bool], tuple[Path, Verdict]]
    Judge = Callable[[Path, Path], Verdict]


def _run(scenario: "Scenario", store: Path, seed: int, display: "Display", keep: bool) -> "tuple[Path, Verdict]":
    look_at_spark()
    from harness.run.lifecycle import run

    return run(scenario, store, seed, display, keep)


def _judge(master: str | None, conf: Mapping[str, str], rows: Sequence[int]) -> "Judge":
    look_at_spark()
    from checkers.judge import judge
    from checkers.spark.session import interruptibly, session

    spark = interruptibly(lambda: session(master, conf, rows))
    return lambda directory, results: interruptibly(lambda: judge(directory, spark, results))


def _providers() -> "Mapping[str, Row]":
    from harness.providers.catalogue import PROVIDERS

    return PROVIDERS


@dataclass(frozen=True)
class Deeds:
    """``judge`` makes, from a Spark master, Spark settings and each run's rows, a judge: it takes a run's directory and
    a folder for its results. ``writable`` tells of a folder whether it can be written."""

    run: "Run" = _run
    judge: "Callable[[str | None, Mapping[str, str], Sequence[int]], Judge]" = _judge
    providers: "Callable[[], Mapping[str, Row]]" = _providers
    writable: Callable[[Path], bool] = lambda directory: os.access(directory, os.W_OK)
