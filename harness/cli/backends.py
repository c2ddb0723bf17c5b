"""The functions behind the commands. Heavy modules are imported when they are needed, and tests pass their own
functions."""

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.environment import cores, look_at_java, look_at_spark
from harness.cli.errors import print_error

if TYPE_CHECKING:
    from harness.core.verdict import Verdict
    from harness.history.run_file import RunFile
    from harness.providers.catalogue import ProviderRow
    from harness.run.display import Display
    from harness.scenario.model import Scenario
    from harness.suite.recorder import Event, Order
    from harness.suite.suite import Recording

    Record = Callable[[Scenario, Path, int, Display, bool], Path]
    Run = Callable[[Scenario, Path, int, Display, bool], tuple[Path, Verdict]]
    Judge = Callable[[Path, Path], Verdict]


def _look() -> None:
    look_at_spark()
    look_at_java()


def _run(scenario: "Scenario", store: Path, seed: int, display: "Display", keep: bool) -> "tuple[Path, Verdict]":
    _look()
    from harness.run.lifecycle import run

    return run(scenario, store, seed, display, keep)


def _judge(master: str | None, conf: Mapping[str, str], rows: Sequence[int]) -> "Judge":
    look_at_spark()
    from checkers.spark.session import interruptibly, session

    # Python imports the judge while Java starts.
    with ThreadPoolExecutor(1) as pool:
        judge = pool.submit(_imported_judge, master, conf, rows)
        interruptibly(lambda: session(master, conf, rows))
        return judge.result()


def _imported_judge(master: str | None, conf: Mapping[str, str], rows: Sequence[int]) -> "Judge":
    from checkers.judge import judge
    from checkers.spark.session import lasting
    from harness.run.judging import emptied

    def judged(directory: Path, results: Path) -> "Verdict":
        def report(what: str) -> None:
            print_error(f"{directory}: {what}")

        return lasting(lambda spark: judge(directory, spark, emptied(results)), report, master, conf, rows)

    return judged


def _abandon() -> None:
    from checkers.spark.session import abandon

    abandon()


def _providers() -> "Mapping[str, ProviderRow]":
    from harness.providers.catalogue import PROVIDERS

    return PROVIDERS


def _record(scenario: "Scenario", store: Path, seed: int, display: "Display", keep: bool) -> Path:
    from harness.run.lifecycle import record_run

    return record_run(scenario, store, seed, display, keep)


def _recorder(order: "Order", log: Path, report: "Callable[[Event], None]") -> "Recording":
    from harness.suite.following import Recorder

    return Recorder(order, log, report)


def _clean(file: "RunFile") -> None:
    from harness.cli.machines import cluster

    spec = cluster(_providers(), file.scenario.get("cluster") or {})
    for row in _providers().values():
        row.get().cleanup(spec, file.run, force=False, dry_run=False)


@dataclass(frozen=True)
class Backends:
    """The functions behind the commands.

    ``judge`` makes a judge from a Spark master, Spark settings and the number of rows of each run; a judge takes a
    run's directory and a folder for its results. ``abandon`` ends what a judge waits for. ``record`` runs a scenario
    without judging it; ``recorder`` starts a process that does this. ``look`` raises EnvironmentLacks if nothing could
    be judged here. ``clean`` removes what a run left on the machine. ``cores``: how many cores this machine has.
    ``writable``: whether a folder can be written.
    """

    run: "Run" = _run
    judge: "Callable[[str | None, Mapping[str, str], Sequence[int]], Judge]" = _judge
    abandon: Callable[[], None] = _abandon
    record: "Record" = _record
    recorder: "Callable[[Order, Path, Callable[[Event], None]], Recording]" = _recorder
    look: Callable[[], None] = _look
    clean: "Callable[[RunFile], None]" = _clean
    providers: "Callable[[], Mapping[str, ProviderRow]]" = _providers
    cores: Callable[[], int] = cores
    writable: Callable[[Path], bool] = lambda directory: os.access(directory, os.W_OK | os.X_OK)
