"""``kafka-trial check``: stored runs judged again, from what they recorded alone."""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from glob import iglob
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli import codes
from harness.cli.deeds import Deeds
from harness.cli.telling import tell
from harness.core.errors import HistoryError

if TYPE_CHECKING:
    from harness.core.run_file import RunFile
    from harness.core.verdict import Verdict


@dataclass(frozen=True)
class Case:
    """A run to judge: where it is kept, where it is judged (elsewhere, if its store is read-only), and its size."""

    directory: Path
    bench: Path
    file: "RunFile"
    rows: int


@click.command()
@click.argument("runs", metavar="RUN_DIR…", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print verdict.json of each run as one line.")
@click.option("--master", metavar="URL", help="The Spark master (default: this machine).")
@click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A Spark setting.")
@click.pass_obj
def check(deeds: Deeds, runs: tuple[str, ...], as_json: bool, master: str | None, conf: tuple[str, ...]) -> int:
    """Judge stored runs again: each RUN_DIR, or every run below it.

    The exit code is that of the worst run.
    """
    settings = dict(_setting(given) for given in conf)
    with ExitStack() as stack:
        cases: list[Case] = []
        errors: list[HistoryError] = []
        for directory in below(runs):
            try:
                cases.append(stack.enter_context(case(directory, deeds.writable(directory))))
            except HistoryError as exc:
                errors.append(exc)
        results = []
        if cases:
            judge = deeds.judge(master, settings, [one.rows for one in cases])
            for one in cases:
                try:
                    verdict = judge(one.bench)
                except HistoryError as exc:
                    errors.append(exc)
                    continue
                results.append(codes.of_verdict(verdict))
                tell(verdict, one.directory, keep(one, verdict), as_json)
    if errors:
        raise HistoryError("\n".join(map(str, errors))) from errors[0]
    return codes.worst(results)


def below(named: Sequence[str]) -> list[Path]:
    """The runs that these are, or hold somewhere below, each once.

    A glob that the shell left alone is expanded. What one names besides is passed over: files, and directories inside
    a run or below another that is named. Raises HistoryError where there is no run.
    """
    from harness.core.run_file import RUN_FILE

    found: dict[Path, Path] = {}
    covered = {Path(name).resolve() for name in named}
    for name in named:
        here = [run for place in _matches(name) for run in sorted(file.parent for file in place.rglob(RUN_FILE))]
        if not here and not _passed_over(Path(name), covered):
            raise HistoryError(f"{name}: no run here: no {RUN_FILE} at any depth")
        for run in here:
            found.setdefault(run.resolve(), run)
    if not found:
        raise HistoryError(f"{named[0]}: no run here, but a part of one or a file: name the directory of a run")
    return list(found.values())


def _matches(name: str) -> list[Path]:
    """What is named, or matches. Raises HistoryError where nothing does."""
    if name and Path(name).exists():
        return [Path(name)]
    found = [Path(match) for match in sorted(iglob(name, recursive=True))]  # noqa: PTH207 - of an absolute one, too
    if not found:
        raise HistoryError(f"'{name}' does not exist: name the directory of a run, or one above it")
    return found


def _passed_over(place: Path, covered: set[Path]) -> bool:
    from harness.core.run_file import RUN_FILE

    return place.is_file() or any(up in covered or (up / RUN_FILE).is_file() for up in place.resolve().parents)


@contextmanager
def case(directory: Path, writable: bool) -> Iterator[Case]:
    """A run made ready to be judged: sealed, and looked at for what it lacks.

    Where it cannot be written, it is judged in a directory that is thrown away, which links to its history. Raises
    HistoryError.
    """
    from checkers.files import rows, verify
    from harness.core.history import TABLES
    from harness.run.store import ensure_sealed

    with ExitStack() as stack:
        bench = directory
        if not writable:
            bench = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kafka-trial-check-")))
            _stand_in(directory, bench)
        file = ensure_sealed(bench)
        for table in TABLES:
            verify(bench, table)
        yield Case(directory, bench, file, rows(bench))


def _stand_in(directory: Path, bench: Path) -> None:
    from harness.core.layout import HISTORY, JOURNALS
    from harness.core.run_file import RUN_FILE

    shutil.copyfile(directory / RUN_FILE, bench / RUN_FILE)
    journals = directory / JOURNALS
    if journals.is_dir() and any(journals.iterdir()):
        shutil.copytree(journals, bench / JOURNALS, copy_function=shutil.copyfile)
    elif (directory / HISTORY).is_dir():
        (bench / HISTORY).symlink_to((directory / HISTORY).resolve())


def keep(one: Case, verdict: "Verdict") -> Path | None:
    """Write the verdict beside its run; the report's path. None, and a line, where the run's store is read-only."""
    from harness.core.run_file import State
    from harness.report import write

    if one.bench != one.directory:
        click.echo(f"kafka-trial: {one.directory} is read-only: judged, and nothing written", err=True)
        return None
    one.file.state = State.JUDGED
    one.file.write(one.directory)
    return write(one.directory, verdict, one.file)


def _setting(given: str) -> tuple[str, str]:
    key, equals, value = given.partition("=")
    if not equals or not key:
        raise click.BadParameter(f"{given!r} is not KEY=VALUE, such as spark.driver.memory=4g", param_hint="--conf")
    return key, value
