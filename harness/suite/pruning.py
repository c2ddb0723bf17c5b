"""Chooses and removes the runs that a store need not keep."""

import os
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

from harness.core.errors import HistoryError
from harness.history.lock import RecordingLock, is_recorded, judging_lock
from harness.history.paths import SUITE_FILE, files_below, is_there
from harness.history.run_file import State
from harness.suite.reports import INDEX_FILE, write_index
from harness.suite.results import RunOutcome, SuiteFile, continued, is_suite
from harness.suite.stored import Stored, read_run, with_verdict
from harness.suite.suite import run_directory

_DAY = 86_400.0
_SUITES = "suite-*-*"
_BEGUN = frozenset({RunOutcome.RUNNING, RunOutcome.INTERRUPTED})


class WhyKept(StrEnum):
    """Why a run that may be removed is left alone: the words after "is"."""

    NOT_YOURS = "not yours to empty"
    RECORDED = "being recorded"
    UNEXPECTED = "not judged as expected"


@dataclass(frozen=True)
class LeftAlone:
    """Why a run is left alone, and the folder in it that is the reason; None if it is the whole run."""

    why: WhyKept
    folder: Path | None = None


@dataclass(frozen=True)
class SizedRun:
    """A run and its size in bytes."""

    run: Stored
    size: int


@dataclass(frozen=True)
class Pruned:
    """The result for a chosen run. ``left``: why it was left alone; None if it was, or would be, removed."""

    chosen: SizedRun
    left: LeftAlone | None = None


def protected(folder: Path) -> set[Path]:
    """The directories of runs in ``folder`` and below that must stay in any case: those of suites that are going on, or
    that ``--resume`` continues, and the runs that these are compared with; and the newest judged runs of each case of
    each suite's name, because the next suite is compared with them (harness.suite.stored: by_case)."""
    newest: dict[tuple[Path, str, str], tuple[float, set[Path]]] = {}
    of_kind: dict[tuple[Path, tuple[str, ...]], list[tuple[Path, SuiteFile]]] = {}
    stays: set[Path] = set()
    for directory in _suites_of(folder):
        try:
            file = SuiteFile.read(directory)
        except HistoryError:
            continue
        store = directory.parent
        if is_recorded(directory):
            stays |= _needed(store, file)
            continue
        of_kind.setdefault((store, file.called), []).insert(0, (directory, file))
        for name, runs in file.by_name().items():
            if not file.is_measure(name):
                continue
            judged = {(store / run.directory).resolve() for run in runs if run.verdict is not None and run.directory}
            key = store, file.suite, name
            if file.began >= newest.get(key, (0.0, ()))[0] and any(with_verdict(judged, _ignore)):
                newest[key] = file.began, judged
    for (store, _), kind in of_kind.items():
        if left := continued(kind):
            stays |= _needed(store, dict(kind)[left])
    return stays.union(*(runs for _, runs in newest.values()))


def _needed(store: Path, file: SuiteFile) -> set[Path]:
    """A suite's runs, and those that it is compared with."""
    found = (store / run.directory if run.directory else run_directory(store, run) for run in file.runs)
    before = file.measure.cases.values() if file.measure is not None else ()
    judged = {(store / run).resolve() for case in before for run in case.judged}
    return judged | {run.resolve() for run in found if run is not None}


def _ignore(_line: str) -> None:
    """(The listing of runs already reports those that cannot be read.)"""


def unreadable_suites(folder: Path) -> dict[Path, HistoryError]:
    """The directories of suites (recognised by name) whose suite.json cannot be read, and why: in ``folder``, below it,
    and in the stores above it."""
    found = {path for store in folder.parents for path in store.glob(_SUITES)}
    for at, below, _ in os.walk(folder):
        found |= {Path(at, name) for name in below if fnmatchcase(name, _SUITES)}
    unreadable = {}
    for path in sorted(filter(is_suite, found)):
        try:
            SuiteFile.read(path)
        except HistoryError as exc:
            if is_suite(path):  # (Another `prune` may have removed it.)
                unreadable[path] = exc
    return unreadable


def tell_removed(folder: Path, gone: Collection[Path]) -> None:
    """Write the pages of the suites anew whose runs, in ``folder`` and below, are ``gone``: they link no report that is
    gone."""
    for directory in _suites_of(folder) if gone else ():
        # (A suite that is going on writes its page itself; another user's stays as it is.)
        with suppress(HistoryError, PermissionError):
            file = SuiteFile.read(directory)
            named = {(directory.parent / run.directory).resolve() for run in file.runs if run.directory}
            if not named.isdisjoint(gone) and is_there(directory / INDEX_FILE) and not is_recorded(directory):
                write_index(file, directory)


def _suites_of(folder: Path) -> list[Path]:
    """The suites below a folder, and in the stores that it is in."""
    above = (path.parent for store in folder.parents for path in sorted(store.glob(f"{_SUITES}/{SUITE_FILE}")))
    return [*_suites_below(folder), *above]


def _suites_below(folder: Path) -> list[Path]:
    found = files_below(folder, SUITE_FILE, lambda _: None)  # (The listing of runs reports closed folders.)
    return [path.parent for path in found if fnmatchcase(path.parent.name, _SUITES)]


def without_runs(folder: Path, now: float, days: float | None, gone: Collection[Path] = ()) -> list[Path]:
    """The directories of suites below ``folder`` that are older than ``days`` and have no run left, apart from runs
    that are ``gone``. Not the newest suite of a name, nor one that is going on, nor one that cannot be read (of another
    version), because nobody knows its runs."""
    newest: dict[tuple[Path, str], str] = {}
    found = _suites_below(folder)
    for directory in found:
        name, _, moment = directory.name.rpartition("-")
        key = directory.parent, name
        newest[key] = max(moment, newest.get(key, ""))
    older = (path for path in found if path.name.rpartition("-")[2] < newest[path.parent, path.name.rpartition("-")[0]])
    return [path for path in older if _nothing_left(path, now, days, {run.resolve() for run in gone})]


def _nothing_left(directory: Path, now: float, days: float | None, gone: Collection[Path]) -> bool:
    try:
        file = SuiteFile.read(directory)
    except HistoryError:
        return False
    if (days is not None and now - file.began <= days * _DAY) or is_recorded(directory):
        return False
    store = directory.parent
    named = {store / path for run in file.runs for path in (run.directory, *run.abandoned) if path}
    # (If its process was killed, it may have runs that the file does not name yet.)
    begun = (run for run in file.runs if run.directory is None and run.outcome in _BEGUN)
    named |= {found for run in begun if (found := run_directory(store, run)) is not None}
    return not any(is_there(run) and run.resolve() not in gone for run in named)


def to_remove(
    runs: Sequence[SizedRun],
    now: float,
    days: float | None,
    most: int | None,
    unexpected: bool,
    stays: Collection[Path] = (),
    left_alone: Callable[[Path], LeftAlone | None] = lambda _: None,
) -> list[SizedRun]:
    """The runs older than ``days``, and then the oldest ones until at most ``most`` bytes are kept. Runs that have to
    be ``left_alone`` are among them, but free no bytes.

    A run is kept, and its bytes count, if it ``stays``, or has no verdict or an unexpected one; with ``unexpected``,
    only if it ``stays``. A run that sent nothing may be removed.
    """
    oldest_first = sorted(runs, key=lambda kept: kept.run.began)
    remaining = sum(kept.size for kept in runs)
    chosen = []
    for kept in oldest_first:
        if kept.run.directory.resolve() in stays:
            continue
        too_old = days is not None and now - kept.run.began > days * _DAY
        too_much = most is not None and remaining > most
        if (too_old or too_much) and (unexpected or _may_go(kept.run)):
            chosen.append(kept)
            remaining -= 0 if left_alone(kept.run.directory) else kept.size
    return chosen


def _may_go(run: Stored) -> bool:
    return run.file.state is State.INTERRUPTED if run.verdict is None else run.verdict.expected


def size_of(directory: Path) -> int:
    """The bytes of all files below a directory that this user can see. No link is followed. Files that a running run
    removes meanwhile do not count."""
    size = 0
    for folder, _, files in os.walk(directory):
        for name in files:
            # (This user may be allowed to list a folder, but not to look at its files.)
            with suppress(FileNotFoundError, PermissionError):
                size += Path(folder, name).lstat().st_size
    return size


def remove(directory: Path, below: Path, unexpected: bool) -> WhyKept | None:
    """Remove a run. If it was the last of its scenario, remove also the scenario's folder, if that is ``below`` the
    store. Returns why it was kept instead: it is being recorded, or it was judged anew and (unless ``unexpected``) has
    to stay."""
    if is_recorded(directory):
        return WhyKept.RECORDED
    # (Another `prune` may be faster.)
    with suppress(FileNotFoundError), judging_lock(directory):
        if not unexpected and not _may_still_go(directory):
            return WhyKept.UNEXPECTED
        shutil.rmtree(directory)
    if below in directory.parent.parents:
        with suppress(OSError):
            directory.parent.rmdir()
    return None


def _may_still_go(directory: Path) -> bool:
    try:
        return _may_go(read_run(directory))
    except HistoryError:
        return not is_there(directory)


def removed(
    chosen: Sequence[SizedRun], below: Path, dry_run: bool, writable: Callable[[Path], bool], unexpected: bool = False
) -> Iterator[Pruned]:
    """Remove these runs, which are ``below`` a store, unless it is a ``dry_run``. ``unexpected``: also those that are
    not as expected. Yields the result for each."""
    for kept in chosen:
        run = kept.run.directory
        left = why_left_alone(run, writable)
        if left is None and not dry_run:
            left = _left_by(partial(remove, run, below, unexpected))
        yield Pruned(kept, left)


def suites_removed(
    chosen: Sequence[Path], dry_run: bool, writable: Callable[[Path], bool]
) -> Iterator[tuple[Path, LeftAlone | None]]:
    """Remove these directories of suites, unless it is a ``dry_run``. Yields for each why it is left alone, or None."""
    for directory in chosen:
        left = why_left_alone(directory, writable)
        if left is None and not dry_run:
            left = _left_by(partial(_remove_suite, directory))
        yield directory, left


def _left_by(remove: Callable[[], WhyKept | None]) -> LeftAlone | None:
    """Try to remove something; return why it stays, if it does. Earlier checks may be outdated (it is recorded by now),
    or incomplete (a folder's permissions are not all that counts)."""
    try:
        why = remove()
        return None if why is None else LeftAlone(why)
    except PermissionError:
        return LeftAlone(WhyKept.NOT_YOURS)


def _remove_suite(directory: Path) -> WhyKept | None:
    """Remove a suite's directory. Returns why it was kept instead: another process continues the suite by now."""
    # (Another `prune` may be faster.)
    with suppress(FileNotFoundError):
        try:
            lock = RecordingLock(directory)
        except BlockingIOError:
            return WhyKept.RECORDED
        try:
            shutil.rmtree(directory)
        finally:
            lock.release()
    return None


def why_left_alone(directory: Path, writable: Callable[[Path], bool]) -> LeftAlone | None:
    """Why this user cannot remove a run or a suite now; None if it can be removed, or is gone."""
    if locked := _not_to_empty(directory, writable):
        return LeftAlone(WhyKept.NOT_YOURS, locked)
    return LeftAlone(WhyKept.RECORDED) if is_recorded(directory) else None


def _not_to_empty(directory: Path, writable: Callable[[Path], bool]) -> Path | None:
    """The first folder, of a run's folders and its parent, from which this user may remove nothing, or which this user
    may not read; None without one. (A run is removed completely or not at all.)"""
    closed = list[str]()
    folders = [Path(folder) for folder, _, _ in os.walk(directory, onerror=lambda error: closed.append(error.filename))]
    locked = (folder for folder in (directory.parent, *folders) if not writable(folder))
    return next((folder for folder in (*locked, *map(Path, closed)) if is_there(folder)), None)
