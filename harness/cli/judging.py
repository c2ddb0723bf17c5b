"""``kafka-trial check``: judges stored runs again, only from their recordings."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from glob import iglob
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli import codes
from harness.cli.backends import Backends
from harness.cli.busy import busy
from harness.cli.errors import print_error, report
from harness.cli.printing import print_failure, print_line, print_several, print_skipped, print_verdict
from harness.core.errors import EnvironmentLacks, HistoryError, KafkaTrialError, OutputClosed

if TYPE_CHECKING:
    from harness.cli.backends import Judge
    from harness.core.verdict import Verdict


#: Why a run is not judged.
_SKIPPED = "it was interrupted before anything was sent"
_REMOVED = "it was removed meanwhile"


@dataclass(frozen=True)
class RunToJudge:
    """A run to judge, and its number of rows. ``bench``: the directory in which it is judged: another one if its own
    cannot be written; ``unwritten`` says why."""

    directory: Path
    bench: Path
    rows: int
    unwritten: str | None


@click.command()
@click.argument("runs", metavar="RUN_DIR…", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print verdict.json of each run as one line.")
@click.option("--master", metavar="URL", help="The Spark master (default: this machine).")
@click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A Spark setting.")
@click.pass_obj
def check(backends: Backends, runs: tuple[str, ...], as_json: bool, master: str | None, conf: tuple[str, ...]) -> int:
    """Judge stored runs again: each RUN_DIR, or every run below it, or of the suite in it.

    The exit code is that of the worst run. Runs that were interrupted before anything was sent, or that are removed
    meanwhile, are skipped.
    """
    settings = dict(_setting(text) for text in conf)
    results: list[int] = []
    skipped: list[Path] = []

    def unreadable(above: Path, error: KafkaTrialError) -> None:
        results.append(report(error))
        if as_json:
            print_failure(above, error, results[-1])

    directories = below(runs, unreadable)
    several = len(directories) > 1
    with ExitStack() as stack:
        cases: list[RunToJudge] = []
        for number, directory in enumerate(directories, 1):
            with (
                _reported([directory], as_json, results, skipped),
                busy(f"looking at {number} of {len(directories)}: {directory}"),
            ):
                found = stack.enter_context(case(directory, backends.writable))
                if found is None:
                    _skip(directory, _SKIPPED, as_json, skipped)
                else:
                    cases.append(found)
        if skipped:
            print_error(f"{len(skipped)} of {len(directories)} runs skipped")
        if cases:
            with _reported([one.directory for one in cases], as_json, results, skipped):
                with busy("Spark starts"):
                    judge = backends.judge(master, settings, [one.rows for one in cases])
                verdicts = _judge_each(cases, judge, several, as_json, results, skipped)
                if several and not as_json:
                    print_several(directories, verdicts, skipped)
    if not results:
        raise HistoryError("nothing was judged: there is no run that sent anything")
    return codes.worst(results)


def _judge_each(
    cases: Sequence[RunToJudge], judge: "Judge", several: bool, as_json: bool, results: list[int], skipped: list[Path]
) -> dict[Path, "Verdict"]:
    """Judge and print each run. Returns the verdicts of those that could be judged."""
    verdicts = {}
    for number, one in enumerate(cases, 1):
        with _reported([one.directory], as_json, results, skipped):
            with busy(f"judging {number} of {len(cases)}, {one.rows:,} rows: {one.directory}"):
                verdict, page = judged(one, judge)
            if several and as_json:
                print_line(verdict, {"directory": str(one.directory)})
            else:
                print_verdict(verdict, one.directory, page, as_json)
            results.append(codes.of_verdict(verdict))
            verdicts[one.directory] = verdict
    return verdicts


@contextmanager
def _reported(directories: Sequence[Path], as_json: bool, results: list[int], skipped: list[Path]) -> Iterator[None]:
    """Report an error with these runs, and note its exit code, so that the others are judged nevertheless. A run that
    does not exist any more is ``skipped``."""
    from harness.history.seal import is_run

    try:
        yield
    except OutputClosed:
        raise
    except Exception as exc:  # noqa: BLE001 - a defect is shown whole, and has a code of its own
        if len(directories) == 1 and not is_run(directories[0]):
            _skip(directories[0], _REMOVED, as_json, skipped)
            return
        results.append(report(exc))
        if as_json:
            for directory in directories:
                print_failure(directory, exc, results[-1])


def _skip(directory: Path, why: str, as_json: bool, skipped: list[Path]) -> None:
    skipped.append(directory)
    print_error(f"{directory}: skipped: {why}")
    if as_json:
        print_skipped(directory, why)


def below(named: Sequence[str], unreadable: Callable[[Path, KafkaTrialError], None]) -> list[Path]:
    """The runs in these directories and below them, each once.

    A glob that the shell did not expand is expanded. Its other matches are skipped: files, and directories inside a run
    or below another match. ``unreadable`` is called for a suite whose suite.json is not of this version (HistoryError),
    and once for a folder that cannot be read (EnvironmentLacks). Raises HistoryError if there is no run.
    """
    from harness.history.run_file import RUN_FILE

    found: dict[Path, Path] = {}
    closed, refused = set[str](), set[str]()

    def refuse(name: str, above: Path, line: str) -> None:
        refused.add(name)
        if line not in closed:
            closed.add(line)
            unreadable(above, EnvironmentLacks(line))

    covered = {Path(os.path.realpath(name)) for name in named}
    for name in named:
        found_below = list[Path]()
        for path in filter(Path.is_dir, _matches(name)):
            if _is_single_run(path):
                found_below.append(path)
                continue
            # (Imported here: it takes a third of a second, for which a single run need not wait.)
            from harness.suite.stored import runs_below

            try:
                found_below += runs_below(path, partial(refuse, name, path))
            except HistoryError as exc:
                unreadable(path, exc)
                refused.add(name)
        if not found_below and name not in refused and not _skipped(Path(name), covered):
            raise HistoryError(f"{name}: no run here: no {RUN_FILE} at any depth")
        for run in found_below:
            found.setdefault(run.resolve(), run)
    if not found and not refused:
        raise HistoryError(f"{named[0]}: no run here, but a part of one or a file: name the directory of a run")
    return list(found.values())


def _is_single_run(path: Path) -> bool:
    """Whether a directory is that of a run, and of no suite, and can be listed."""
    from harness.history.paths import SUITE_FILE
    from harness.history.run_file import RUN_FILE

    readable = os.access(path, os.R_OK | os.X_OK)
    return readable and (path / RUN_FILE).is_file() and not (path / SUITE_FILE).is_file()


def _matches(name: str) -> list[Path]:
    """The path of this name, or the paths that match it. Raises HistoryError if there is none."""
    if Path(name).exists():
        return [Path(name)]
    found = [Path(match) for match in sorted(iglob(name, recursive=True))]  # noqa: PTH207 - of an absolute one, too
    if not found:
        raise HistoryError(f"'{name}' does not exist: name the directory of a run, or one above it")
    return found


def _skipped(path: Path, covered: set[Path]) -> bool:
    from harness.history.run_file import RUN_FILE

    return path.is_file() or any(
        up in covered or (up / RUN_FILE).is_file() for up in Path(os.path.realpath(path)).parents
    )


@contextmanager
def case(directory: Path, writable: Callable[[Path], bool]) -> Iterator[RunToJudge | None]:
    """A run that is ready to be judged: sealed and checked. None if it sent nothing.

    A run that cannot be written is judged in a temporary directory with links to its history. Raises HistoryError.
    """
    from harness.history.lock import judging_lock
    from harness.history.seal import is_run
    from harness.history.store import ensure_sealed, interrupted
    from harness.history.stored_run import StoredRun
    from harness.history.writing import refuse_links

    with ExitStack() as stack:
        with judging_lock(directory):
            # (The process that held the lock until now may have removed the run.)
            if not is_run(directory):
                raise HistoryError(f"{directory}: {_REMOVED}")
            refuse_links(directory)
            if interrupted(directory):
                yield None
                return
            bench, unwritten = directory, _unwritten(directory, writable)
            if unwritten is not None:
                bench = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kafka-trial-check-")))
                _stand_in(directory, bench)
            ensure_sealed(bench)
            run = StoredRun.open(bench)
            if not run.sealed:
                print_error(f"{directory}: it has no seal: judged without knowing whether it is whole")
        yield RunToJudge(directory, bench, run.records, unwritten)


def _unwritten(directory: Path, writable: Callable[[Path], bool]) -> str | None:
    """Why results cannot be written into a run's directory; None if they can."""
    from harness.history.paths import ANOMALIES

    if not writable(directory):
        return f"{directory} is read-only"
    kept = directory / ANOMALIES
    if kept.exists() and not all(writable(folder) for folder in (kept, *kept.iterdir())):
        return f"{kept} is not yours to replace (of user {kept.stat().st_uid})"
    return None


def _stand_in(directory: Path, bench: Path) -> None:
    from harness.history.paths import HISTORY, JOURNALS
    from harness.history.run_file import RUN_FILE
    from harness.history.seal import SEAL_FILE
    from harness.history.store import history_is_whole

    for name in (RUN_FILE, SEAL_FILE):
        if (directory / name).is_file():
            shutil.copyfile(directory / name, bench / name)
    journals = directory / JOURNALS
    # (If the recorder was killed while it removed the journals, some are left, but the history has all their rows.)
    if journals.is_dir() and any(journals.iterdir()) and not history_is_whole(directory):
        shutil.copytree(journals, bench / JOURNALS, copy_function=shutil.copyfile)
    elif (directory / HISTORY).is_dir():
        (bench / HISTORY).symlink_to((directory / HISTORY).resolve())


def judged(one: RunToJudge, judge: "Judge") -> tuple["Verdict", Path | None]:
    """Judge a run and put the results into its directory. Returns the verdict and the report's path.

    If nothing can be written there, prints a line, and the path is None.
    """
    from harness.history.run_file import RunFile
    from harness.report.sentences import with_sentences
    from harness.run.judging import judging, publish

    with judging(one.bench) as results:
        found = judge(one.bench, results)
        file = RunFile.read(one.bench)
        verdict = with_sentences(found, file)
        if one.unwritten is None:
            return verdict, publish(one.directory, results, verdict, file)
    print_error(f"{one.unwritten}: judged, but nothing is written")
    return verdict, None


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise click.BadParameter(f"{text!r} is not KEY=VALUE, such as spark.driver.memory=4g", param_hint="--conf")
    return key, value
