"""The runs that a suite is compared with. They are chosen before the suite starts, and stay the same if it is
continued."""

import os
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from harness.core.errors import HistoryError
from harness.core.printable import is_text
from harness.history.seal import is_run
from harness.suite.comparing import Compared, compare
from harness.suite.results import Before, Measure, SuiteFile, relative
from harness.suite.stored import Runs, Say, by_case, listed, of_suite, with_verdict


def choose(
    baseline: Path,
    names: Collection[str],
    store: Path,
    say: Say,
    without: str | None = None,
    called: tuple[str, ...] | None = None,
) -> Measure | None:
    """Choose from ``baseline``, a suite or store, the runs that a suite in ``store`` is compared with. ``names``: the
    cases of the suite. ``called``: its name; cases that a suite of this name had before, and it does not, are gone.
    ``without``: the name of the suite's own directory, which may have runs already.

    None, and a line for ``say``, if there is nothing to compare with; a folder that this user may not read does not
    count as nothing. Raises HistoryError if there is no such directory.
    """
    if not baseline.is_dir():
        raise HistoryError(f"{baseline}: no such directory: name a store, a suite or a run")
    lines, closed = list[str](), list[str]()
    gone = listed(baseline, baseline=True, without=without).get(called or (), set()).difference(names)
    found: dict[str, Runs] = {}
    try:
        found = by_case(baseline, lines.append, baseline=True, without=without, closed=closed.append)
    except HistoryError as exc:
        nothing = f"nothing is compared with {baseline}: {lines[0] if lines else exc}"
        if not closed and not gone:
            say(nothing)
            return None
        lines.append(nothing)
    for line in (*lines, *closed):
        say(line)
    cases = {name: _noted(runs, store, say) for name, runs in found.items() if name in names or name in gone}
    if not cases and not closed and not gone:
        say(f"nothing is compared with {baseline}: it has no run of these scenarios")
        return None
    lacking = any(noted.lacking for noted in cases.values())
    return Measure(said=os.path.realpath(baseline), cases=cases, gone=sorted(gone), whole=not closed and not lacking)


def gone(measure: Measure, store: Path) -> list[str]:
    """The names of the cases whose judged runs to compare with can no longer be read."""

    def readable(noted: Before) -> bool:
        return any(with_verdict((store / run for run in noted.judged), lambda _: None))

    return [name for name, noted in measure.cases.items() if noted.judged and not readable(noted)]


def measured(file: SuiteFile, measure: Measure, directory: Path, tolerance: float, say: Say) -> list[Compared]:
    """Compare a suite with its measure, and note the result in ``file``. It is not ``compared`` if the measure of a
    case is ``gone``. A case that was found worse before its measure was gone stays worse."""
    before = {name: _read(noted, directory.parent, say) for name, noted in measure.cases.items()}
    compared = [
        replace(case, worse=file.worse[case.name]) if case.old is None and case.name in file.worse else case
        for case in compare(before, of_suite(directory, say), tolerance, measure.gone)
    ]
    file.baseline, file.worse = measure.said, {case.name: list(case.worse) for case in compared if case.worse}
    lost = gone(measure, directory.parent)
    for name in lost:
        say(f"{name}: not compared: the runs of {measure.said} to compare it with can no longer be read")
    measure.compared = not lost
    measure.whole = measure.whole and all(case.whole for case in compared)
    return compared


def _noted(runs: Runs, store: Path, say: Say) -> Before:
    whole = [Path(os.path.realpath(run.directory)) for run in runs.judged]
    # (A relative path to a run outside the store would be wrong if the store was moved.)
    paths = [relative(path, store) if path.is_relative_to(store) else str(path) for path in whole]
    unnoted = [path for path in paths if not is_text(path)]
    for path in unnoted:
        say(f"{path}: left out of the comparison: its name is not UTF-8")
    return Before(
        judged=[path for path in paths if is_text(path)],
        crashed=runs.crashed,
        removed=runs.removed,
        unreadable=runs.unreadable + len(unnoted),
        cannot_run=runs.cannot_run,
        noted=list(runs.noted),
    )


def _read(noted: Before, store: Path, say: Say) -> Runs:
    there = [store / run for run in noted.judged if is_run(store / run)]
    judged = list(with_verdict(there, say))
    return Runs(
        judged,
        # (If all judged runs are gone, crashed ones are nothing to compare with.)
        noted.crashed if judged or not noted.judged else 0,
        noted.removed + len(noted.judged) - len(there),
        noted.unreadable + len(there) - len(judged),
        noted.cannot_run,
        noted=noted.noted,
    )
