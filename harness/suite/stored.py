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
    removed since, cannot be read, and could not run. None of it: the suite's time budget left all of them out.
    ``unread``: of those that cannot be read, whether they were as expected, as their suite noted it."""

    judged: Sequence[Stored] = ()
    crashed: int = 0
    removed: int = 0
    unreadable: int = 0
    cannot_run: int = 0
    unread: Sequence[bool] = ()

    @property
    def any(self) -> bool:
        """Whether there is one to compare."""
        return bool(self.judged or self.crashed)


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
    that crashed is no measure. ``without``: the name of a suite's directory that is passed over, as are copies of it.

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
    """The runs of the suite in ``directory`` by the names of their cases, as far as they ended. A run that cannot be
    read is reported, and left out. Raises HistoryError where the suite cannot."""
    found: dict[str, Runs] = {}
    file = SuiteFile.read(directory)
    for result in file.runs:
        runs = found.get(result.name, Runs())
        if result.outcome is Outcome.CRASHED or (result.outcome is Outcome.RECORDED and file.ended is not None):
            found[result.name] = replace(runs, crashed=runs.crashed + 1)
        elif result.verdict is not None and result.directory is not None:
            run = directory.parent / result.directory
            if not is_there(run / RUN_FILE):
                found[result.name] = replace(runs, removed=runs.removed + 1)
            elif read := list(with_verdict([run], say)):
                found[result.name] = replace(runs, judged=(*runs.judged, *read))
            else:
                unread = (*runs.unread, result.outcome is Outcome.EXPECTED)
                found[result.name] = replace(runs, unreadable=runs.unreadable + 1, unread=unread)
        elif result.outcome is Outcome.CANNOT_RUN:
            found[result.name] = replace(runs, cannot_run=runs.cannot_run + 1)
        elif result.outcome is Outcome.NOT_STARTED:
            found[result.name] = runs
    return found


def _newest(folder: Path, say: Say, baseline: bool, without: str | None, closed: Say) -> dict[str, Runs]:
    began: dict[str, float] = {}
    newest: dict[str, Runs] = {}
    of_suites: set[Path] = set()
    for directory in stored_suites(folder):
        try:
            file = SuiteFile.read(directory)
            of = {} if directory.name == without else of_suite(directory, say)
        except HistoryError:
            continue  # Of another version: its runs are like any other.
        found = {
            name: runs
            for name, runs in of.items()
            if (runs.judged and file.is_measure(name) if baseline else runs.any or runs.unreadable)
        }
        newest |= found
        began |= dict.fromkeys(found, file.began)
        of_suites |= {(folder / one).resolve() for run in file.runs for one in (run.directory, *run.abandoned) if one}
    others = (directory for directory in runs_below(folder, closed) if directory.resolve() not in of_suites)
    for run in readable(others, say):
        name = run.file.scenario_name
        ended = run.verdict is not None or (run.file.state is State.CRASHED and not baseline)
        if ended and began.get(name, float("-inf")) < run.began:
            newest[name], began[name] = Runs(crashed=1) if run.verdict is None else Runs((run,)), run.began
    return newest
