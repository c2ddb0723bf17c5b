"""Stored runs as they lie in a store: what each says of itself, without its history."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from harness.core.errors import HistoryError
from harness.core.verdict import Verdict
from harness.history.paths import VERDICT_FILE, checking, files_below, is_there
from harness.history.run_file import RUN_FILE, RunFile, State
from harness.suite.results import SUITE_FILE, Outcome, SuiteFile, stored_suites

#: Gets a line about each run that cannot be read.
Say = Callable[[str], None]


@dataclass(frozen=True)
class Stored:
    """A run; ``verdict`` is None where it was not judged."""

    directory: Path
    file: RunFile
    verdict: Verdict | None

    @property
    def began(self) -> float:
        """Seconds since 1970; where nobody recorded it (imported histories have no date), when it was put here."""
        return self.file.origin_unix_ns / 1e9 or (self.directory / RUN_FILE).stat().st_mtime


@dataclass(frozen=True)
class Runs:
    """The runs of one case: those with a verdict, how many came to none (they crashed, or the judge did), how many were
    removed since, cannot be read, could not run, and wait or were broken off. None of it: the suite's time budget left
    all of them out.
    ``noted``: of those removed or not to be read, whether they were as expected, as their suite noted it."""

    judged: Sequence[Stored] = ()
    crashed: int = 0
    removed: int = 0
    unreadable: int = 0
    cannot_run: int = 0
    waiting: int = 0
    noted: Sequence[bool] = ()

    @property
    def any(self) -> bool:
        """Whether there is one to compare."""
        return bool(self.judged or self.crashed)

    @property
    def lacking(self) -> bool:
        """Whether there was one, and there is none to compare any more."""
        return not self.any and bool(self.removed or self.unreadable)


def read_run(directory: Path) -> Stored:
    """Raises HistoryError where there is no run, or one of another version."""
    path = directory / VERDICT_FILE
    try:
        verdict = Verdict.model_validate_json(path.read_bytes())
    except (FileNotFoundError, IsADirectoryError):
        verdict = None
    except OSError as exc:
        raise HistoryError(f"{path}: cannot be read ({exc.strerror})") from exc
    except ValidationError as exc:
        raise HistoryError(f"{path}: not a verdict of this version: {checking(directory)}") from exc
    return Stored(directory, RunFile.read(directory), verdict)


def readable(directories: Iterable[Path], say: Say, torn: bool = False) -> Iterator[Stored]:
    """The runs in these directories; one that cannot be read is reported, and left out. Where of one the verdict alone
    cannot be read, it is reported, and with ``torn`` it is there without one."""
    for directory in directories:
        try:
            yield read_run(directory)
        except HistoryError as exc:
            say(str(exc))
            if torn:
                with suppress(HistoryError):
                    yield Stored(directory, RunFile.read(directory), None)


def with_verdict(directories: Iterable[Path], say: Say) -> Iterator[Stored]:
    """Of runs that were judged, those that can be read; one whose verdict is gone is reported, and left out, too."""
    for run in readable(directories, say):
        if run.verdict is not None:
            yield run
        else:
            say(f"{run.directory}: its verdict is gone: {checking(run.directory)}")


def _refuse(line: str) -> None:
    raise HistoryError(line)


def runs_below(folder: Path, say: Say = _refuse) -> list[Path]:
    """The directories of all runs at and below ``folder``, in the order of their names, and none inside a run; of a
    suite's directory, those of its runs that are there. Raises HistoryError where there is no such directory. ``say``
    gets a line about each folder that cannot be looked into."""
    if not folder.is_dir():
        raise HistoryError(f"{folder}: no such directory: name a store, a suite or a run")
    if (folder / SUITE_FILE).is_file():
        store = Path(os.path.realpath(folder)).parent
        named = (store / run.directory for run in SuiteFile.read(folder).runs if run.directory is not None)
        # (A suite that somebody sent may name what is none of its store's.)
        inside = (run for run in named if Path(os.path.realpath(run)).is_relative_to(store))
        return sorted(run for run in inside if is_there(run / RUN_FILE))
    found = files_below(folder, RUN_FILE, lambda error: say(f"{error.filename}: {error.strerror}"), nested=False)
    return [path.parent for path in found]


def by_case(
    folder: Path, say: Say, baseline: bool = False, without: str | None = None, closed: Say | None = None
) -> dict[str, Runs]:
    """The runs of a suite by the names of their cases. Of a store, for each case those of the newest suite that has
    it, or the one run outside of suites that is newer: its case has the scenario's name. Where others are compared with
    it (``baseline``), runs of which none was judged hide no older ones, and neither do those that were worse: a night
    that crashed is no measure. ``without``: the name of a suite's directory that is skipped, as are copies of it.

    Raises HistoryError where none was judged. A run that cannot be read is reported, and left out. A folder that cannot
    be looked into is reported to ``closed``, by default as a run is.
    """
    if (folder / SUITE_FILE).is_file():
        if Path(os.path.realpath(folder)).name == without:
            raise HistoryError(f"{folder}: it would be compared with itself: name another")
        found = of_suite(folder, say)
    else:
        found = _newest(folder, say, baseline, without, say if closed is None else closed)
    if not any(runs.judged for runs in found.values()):
        if any(runs.removed for runs in found.values()):
            raise HistoryError(f"{folder}: the runs of this suite were removed since: name another")
        raise HistoryError(f"{folder}: no judged run here: {checking(folder)} judges what is recorded")
    return found


def of_suite(directory: Path, say: Say) -> dict[str, Runs]:
    """The runs of the suite in ``directory`` by the names of their cases, as far as they came. A run that cannot be
    read is reported, and left out. Raises HistoryError where the suite cannot."""
    found: dict[str, Runs] = {}
    file = SuiteFile.read(directory)
    for result in file.runs:
        runs = found.get(result.name, Runs())
        if result.outcome is Outcome.CRASHED or (result.outcome is Outcome.RECORDED and file.ended is not None):
            found[result.name] = replace(runs, crashed=runs.crashed + 1)
        elif result.verdict is not None and result.directory is not None:
            run = directory.parent / result.directory
            noted = (*runs.noted, result.outcome is Outcome.EXPECTED)
            if not is_there(run / RUN_FILE):
                found[result.name] = replace(runs, removed=runs.removed + 1, noted=noted)
            elif read := list(with_verdict([run], say)):
                found[result.name] = replace(runs, judged=(*runs.judged, *read))
            else:
                found[result.name] = replace(runs, unreadable=runs.unreadable + 1, noted=noted)
        elif result.outcome is Outcome.CANNOT_RUN:
            found[result.name] = replace(runs, cannot_run=runs.cannot_run + 1)
        elif result.outcome is Outcome.NOT_STARTED:
            found[result.name] = runs
        else:
            found[result.name] = replace(runs, waiting=runs.waiting + 1)
    return found


def listed(folder: Path, baseline: bool = False, without: str | None = None) -> dict[tuple[str, ...], set[str]]:
    """By what a suite is called, the names of the cases of the suite in ``folder``, or of the newest of each in a
    store, with ``baseline`` also those that it was found to lack; none where there is a run alone. ``without``: as of
    ``by_case``."""
    found: dict[tuple[str, ...], set[str]] = {}
    is_suite = (folder / SUITE_FILE).is_file()
    for directory in [folder] if is_suite else stored_suites(folder):
        with suppress(HistoryError):  # (Who looks for its runs says so.)
            file = SuiteFile.read(directory)
            if directory.name != without:
                found[file.called] = _listed(file, baseline and not is_suite)
    return found


def _listed(file: SuiteFile, baseline: bool) -> set[str]:
    lacks = set[str]()
    if baseline:
        # (To lack a case is to be worse: it is no measure in that.)
        lacks |= file.worse.keys() | set(file.measure.gone if file.measure is not None and file.is_to_compare else ())
    return {run.name for run in file.runs} | lacks


def _newest(folder: Path, say: Say, baseline: bool, without: str | None, closed: Say) -> dict[str, Runs]:
    began: dict[str, float] = {}
    newest: dict[str, Runs] = {}
    lacking: dict[str, Runs] = {}
    of_suites: set[Path] = set()
    has = listed(folder, baseline, without)
    for directory in stored_suites(folder):
        try:
            file = SuiteFile.read(directory)
            of = {} if directory.name == without else of_suite(directory, say)
        except HistoryError as exc:
            # One of another version: its runs are like any other.
            if isinstance(exc.__cause__, PermissionError):
                closed(str(exc))
            continue
        # What the suite has no more is none of its cases.
        of = {name: runs for name, runs in of.items() if name in has[file.called]}
        found = {
            name: runs
            for name, runs in of.items()
            if (runs.judged and file.is_measure(name) if baseline else runs.any or runs.lacking)
        }
        lacking |= {name: runs for name, runs in of.items() if baseline and runs.unreadable and not runs.any}
        newest |= found
        began |= dict.fromkeys(found, file.began)
        of_suites |= {(folder / one).resolve() for run in file.runs for one in (run.directory, *run.abandoned) if one}
    for directory in runs_below(folder, closed):
        if directory.resolve() in of_suites:
            continue
        run, torn = _apart(directory, say)
        if run is None or (torn and baseline):
            name = os.path.relpath(directory.parent, folder) if run is None else run.file.scenario_name
            lacking.setdefault(name, Runs(unreadable=1))
            continue
        name = run.file.scenario_name
        ended = torn or run.verdict is not None or (run.file.state is State.CRASHED and not baseline)
        if ended and began.get(name, float("-inf")) < run.began:
            without_verdict = Runs(unreadable=1) if torn else Runs(crashed=1)
            newest[name], began[name] = without_verdict if run.verdict is None else Runs((run,)), run.began
    return {**lacking, **newest} if baseline else newest


def _apart(directory: Path, say: Say) -> tuple[Stored | None, bool]:
    """A run that is of no suite, as far as it can be read, and whether that is not whole, which is reported."""
    try:
        return read_run(directory), False
    except HistoryError as exc:
        say(str(exc))
    with suppress(HistoryError):
        return Stored(directory, RunFile.read(directory), None), True
    return None, True
