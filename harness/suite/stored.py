"""The runs in a store: what each says of itself, without its history."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.core.clock import SECOND_NS
from harness.core.errors import HistoryError
from harness.core.verdict import Verdict
from harness.history.paths import SUITE_FILE, VERDICT_FILE, checking, files_below
from harness.history.run_file import RUN_FILE, RunFile, State
from harness.history.seal import SEAL_FILE, is_run
from harness.suite.results import RunOutcome, SuiteFile, is_suite, stored_suites

#: Gets a line about each run that cannot be read.
Say = Callable[[str], None]


@dataclass(frozen=True)
class Stored:
    """A run. ``verdict`` is None if it was not judged."""

    directory: Path
    file: RunFile
    verdict: Verdict | None

    @property
    def began(self) -> float:
        """When it began, in seconds since 1970; without a date (imported histories have none), when it was stored."""
        return self.file.origin_unix_ns / SECOND_NS or (self.directory / RUN_FILE).stat().st_mtime


@dataclass(frozen=True)
class Runs:
    """The runs of one case: those with a verdict, and how many crashed (or their judge did), were removed since, cannot
    be read, could not run, and wait or were interrupted. If there are none at all, the suite's time budget left them
    out. ``noted``: for runs that were removed or cannot be read, whether the suite noted them as expected."""

    judged: Sequence[Stored] = ()
    crashed: int = 0
    removed: int = 0
    unreadable: int = 0
    cannot_run: int = 0
    waiting: int = 0
    noted: Sequence[bool] = ()

    @property
    def made(self) -> int:
        """The number of runs that were tried."""
        return len(self.judged) + self.crashed + self.removed + self.unreadable + self.cannot_run

    @property
    def any(self) -> bool:
        """Whether there is a run to compare."""
        return bool(self.judged or self.crashed)

    @property
    def lacking(self) -> bool:
        """Whether there were runs to compare, and all are gone."""
        return not self.any and bool(self.removed or self.unreadable)


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, allow_inf_nan=False)


class _Stretch(_Part):
    lasted_ns: float


class _AfterFault(_Part):
    fault: str
    first_ack_after_heal_ns: float | None = None


class _Partition(_Part):
    longest_unavailable: _Stretch | None = None


class Availability(_Partition):
    """What a comparison reads of a verdict's ``availability``."""

    partitions: list[_Partition] = []
    after_faults: list[_AfterFault] = []


def read_run(directory: Path) -> Stored:
    """The run in a directory. Raises HistoryError if there is none, or it is of another version."""
    path = directory / VERDICT_FILE
    try:
        verdict = Verdict.model_validate_json(path.read_bytes())
        Availability.model_validate(verdict.availability)
    except (FileNotFoundError, IsADirectoryError):
        verdict = None
    except OSError as exc:
        raise HistoryError(f"{path}: cannot be read ({exc.strerror})") from exc
    except ValidationError as exc:
        raise HistoryError(f"{path}: not a verdict of this version: {checking(directory)}") from exc
    return Stored(directory, RunFile.read(directory), verdict)


def readable(directories: Iterable[Path], say: Say, torn: bool = False) -> Iterator[Stored]:
    """The runs in these directories. A run that cannot be read is reported, and left out. If only its verdict cannot be
    read, it is reported too; with ``torn``, it is included without a verdict."""
    for directory in directories:
        try:
            yield read_run(directory)
        except HistoryError as exc:
            say(str(exc))
            if torn:
                with suppress(HistoryError):
                    yield Stored(directory, RunFile.read(directory), None)


def with_verdict(directories: Iterable[Path], say: Say) -> Iterator[Stored]:
    """The judged runs that can be read. A run whose verdict is gone is reported, and left out."""
    for run in readable(directories, say):
        if run.verdict is not None:
            yield run
        else:
            say(f"{run.directory}: its verdict is gone: {checking(run.directory)}")


def _refuse(line: str) -> None:
    raise HistoryError(line)


def runs_below(folder: Path, say: Say = _refuse) -> list[Path]:
    """The directories of all runs in ``folder`` and below, in the order of their names, but none inside a run. If
    ``folder`` is a suite's directory: those of the suite's existing runs. ``say`` gets a line about each folder that
    cannot be read. Raises HistoryError if there is no such directory."""
    if not folder.is_dir():
        raise HistoryError(f"{folder}: no such directory: name a store, a suite or a run")
    if (folder / SUITE_FILE).is_file():
        store = Path(os.path.realpath(folder)).parent
        named = (store / run.directory for run in SuiteFile.read(folder).runs if run.directory is not None)
        # (A suite from elsewhere may name directories that are not in its store.)
        inside = (run for run in named if Path(os.path.realpath(run)).is_relative_to(store))
        return sorted(filter(is_run, inside))

    def closed(error: OSError) -> None:
        say(f"{error.filename}: {error.strerror}")

    # (Where run.json was lost, the seal shows that a run is there.)
    found = files_below(folder, RUN_FILE, closed, nested=False, instead=SEAL_FILE)
    return [path.parent for path in found]


def by_case(
    folder: Path, say: Say, baseline: bool = False, without: str | None = None, closed: Say | None = None
) -> dict[str, Runs]:
    """The runs of a suite, by the names of their cases. For a store: of each case the runs of the newest suite that has
    it, or a newer run outside of suites (its case has the scenario's name). A store in it is reported, and left out.

    ``baseline``: others are to be compared with these runs. Then runs of a suite do not replace older ones if none was
    judged, or if they were worse: a night that crashed is not a measure. ``without``: the name of a suite's directory
    that is skipped, with its copies. A run that cannot be read is reported, and left out. A folder that cannot be read
    is reported to ``closed``, by default like a run. Raises HistoryError if no run was judged; without
    ``baseline``, only if none crashed or could not run either.
    """
    if (folder / SUITE_FILE).is_file():
        if Path(os.path.realpath(folder)).name == without:
            raise HistoryError(f"{folder}: it would be compared with itself: name another")
        found = of_suite(folder, say)
    else:
        found = _newest(folder, say, baseline, without, say if closed is None else closed)
    failed = not baseline and any(runs.crashed or runs.cannot_run for runs in found.values())
    if not failed and not any(runs.judged for runs in found.values()):
        if any(runs.removed for runs in found.values()):
            raise HistoryError(f"{folder}: the runs of this suite were removed since: name another")
        raise HistoryError(f"{folder}: no judged run here: {checking(folder)} judges what is recorded")
    return found


def of_suite(directory: Path, say: Say) -> dict[str, Runs]:
    """The runs of the suite in ``directory`` so far, by the names of their cases. A run that cannot be read is
    reported, and left out. Raises HistoryError if the suite cannot be read."""
    found: dict[str, Runs] = {}
    file = SuiteFile.read(directory)
    for result in file.runs:
        runs = found.get(result.name, Runs())
        if result.outcome is RunOutcome.CRASHED or (result.outcome is RunOutcome.RECORDED and file.ended is not None):
            found[result.name] = replace(runs, crashed=runs.crashed + 1)
        elif result.verdict is not None and result.directory is not None:
            run = directory.parent / result.directory
            noted = (*runs.noted, result.outcome is RunOutcome.EXPECTED)
            if not is_run(run):
                found[result.name] = replace(runs, removed=runs.removed + 1, noted=noted)
            elif read := list(with_verdict([run], say)):
                found[result.name] = replace(runs, judged=(*runs.judged, *read))
            else:
                found[result.name] = replace(runs, unreadable=runs.unreadable + 1, noted=noted)
        elif result.outcome is RunOutcome.CANNOT_RUN:
            found[result.name] = replace(runs, cannot_run=runs.cannot_run + 1)
        elif result.outcome is RunOutcome.NOT_STARTED:
            found[result.name] = runs
        else:
            found[result.name] = replace(runs, waiting=runs.waiting + 1)
    return found


def listed(folder: Path, baseline: bool = False, without: str | None = None) -> dict[tuple[str, ...], set[str]]:
    """The names of the cases of each suite, by what identifies the suite (``called``): of the suite in ``folder``, or
    of the newest suite of each kind in a store; with ``baseline`` also the cases that it was found to lack. Empty if
    ``folder`` is a single run. ``without``: as for ``by_case``."""
    found: dict[tuple[str, ...], set[str]] = {}
    is_suite = (folder / SUITE_FILE).is_file()
    for directory in [folder] if is_suite else stored_suites(folder):
        with suppress(HistoryError):  # (The search for its runs reports it.)
            file = SuiteFile.read(directory)
            if directory.name != without:
                found[file.called] = _listed(file, baseline and not is_suite)
    return found


def _listed(file: SuiteFile, baseline: bool) -> set[str]:
    lacks = set[str]()
    if baseline:
        # (A suite that lacks a case is worse: in this it is not a measure.)
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
            cases = {} if directory.name == without else of_suite(directory, say)
        except HistoryError as exc:
            # (Its runs count like runs outside of suites.)
            (closed if isinstance(exc.__cause__, PermissionError) else say)(str(exc))
            continue
        # Leave out the cases that the suite no longer has.
        cases = {name: runs for name, runs in cases.items() if name in has[file.called]}
        found = {
            name: runs
            for name, runs in cases.items()
            if (runs.judged and file.is_measure(name) if baseline else runs.any or runs.lacking or runs.cannot_run)
        }
        lacking |= {name: runs for name, runs in cases.items() if baseline and runs.unreadable and not runs.any}
        newest |= found
        began |= dict.fromkeys(found, file.began)
        of_suites |= {
            (folder / path).resolve() for run in file.runs for path in (run.directory, *run.abandoned) if path
        }
    inner = _stores_in(folder)
    for store in inner:
        say(f"{store}: a store in {folder}, left out: name it to compare it")
    for directory in runs_below(folder, closed):
        if directory.resolve() in of_suites or any(store in directory.parents for store in inner):
            continue
        run, torn = _single_run(directory, say)
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


def _stores_in(folder: Path) -> list[Path]:
    """The stores with suites below a store, such as a copy of it: their runs are not those of this store."""
    found = {path.parent.parent for path in files_below(folder, SUITE_FILE, lambda _: None) if is_suite(path.parent)}
    return sorted(store for store in found if store != folder and folder in store.parents)


def _single_run(directory: Path, say: Say) -> tuple[Stored | None, bool]:
    """A run outside of suites, as far as it can be read, and whether a part is unreadable, which is reported."""
    try:
        return read_run(directory), False
    except HistoryError as exc:
        say(str(exc))
    with suppress(HistoryError):
        return Stored(directory, RunFile.read(directory), None), True
    return None, True
