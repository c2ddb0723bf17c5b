"""What a suite is compared with: chosen before anything of it is run, and the same runs again when it goes on."""

import os
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from harness.core.errors import HistoryError
from harness.history.paths import is_there
from harness.history.run_file import RUN_FILE
from harness.suite.comparing import Compared, compare
from harness.suite.results import Before, Measure, SuiteFile, relative
from harness.suite.stored import Runs, Say, by_case, of_suite, with_verdict


def choose(baseline: Path, names: Collection[str], store: Path, say: Say, without: str | None = None) -> Measure | None:
    """The runs of a suite or store that a suite in ``store`` is compared with, of the cases that it has: ``names``.
    ``without``: its own directory's name, where it may have runs already. None, and a line, where nothing there can be
    compared.

    Raises HistoryError where there is no such directory.
    """
    if not baseline.is_dir():
        raise HistoryError(f"{baseline}: no such directory: name a store, a suite or a run")
    lines = list[str]()
    try:
        found = by_case(baseline, lines.append, baseline=True, without=without)
    except HistoryError as exc:
        say(f"nothing is compared with {baseline}: {lines[0] if lines else exc}")
        return None
    for line in lines:
        say(line)
    return Measure(
        said=str(baseline), cases={name: _noted(runs, store) for name, runs in found.items() if name in names}
    )


def measured(file: SuiteFile, measure: Measure, directory: Path, tolerance: float, say: Say) -> list[Compared]:
    """A suite beside its measure, noted in ``file``. What was found worse before, and whose measure was removed since,
    stays so."""
    before = {name: _read(noted, directory.parent, say) for name, noted in measure.cases.items()}
    compared = [
        replace(case, worse=file.worse[case.name]) if case.old is None and case.name in file.worse else case
        for case in compare(before, of_suite(directory, say), tolerance)
    ]
    file.baseline, file.worse = measure.said, {case.name: list(case.worse) for case in compared if case.worse}
    measure.compared = True
    return compared


def _noted(runs: Runs, store: Path) -> Before:
    return Before(
        judged=[relative(Path(os.path.realpath(run.directory)), store) for run in runs.judged],
        crashed=runs.crashed,
        removed=runs.removed,
        unreadable=runs.unreadable,
        cannot_run=runs.cannot_run,
    )


def _read(noted: Before, store: Path, say: Say) -> Runs:
    there = [store / run for run in noted.judged if is_there(store / run / RUN_FILE)]
    judged = list(with_verdict(there, say))
    return Runs(
        judged,
        # (Of runs that are all gone, those that crashed are none to compare with.)
        noted.crashed if judged or not noted.judged else 0,
        noted.removed + len(noted.judged) - len(there),
        noted.unreadable + len(there) - len(judged),
        noted.cannot_run,
    )
