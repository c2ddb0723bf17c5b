"""``kafka-trial suite``."""

import os
import shlex
import sys
import time
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, cast

import click
from click.core import ParameterSource

from harness.cli import codes
from harness.cli.backends import Backends
from harness.cli.errors import print_error
from harness.cli.machines import overrides as said_by
from harness.cli.machines import settings
from harness.cli.options import ProviderCommand, spelled
from harness.cli.printing import print_json
from harness.cli.stores import TOLERANCE, of_comparison, print_comparison, store_option
from harness.core.errors import HistoryError, ScenarioError
from harness.core.printable import is_text, printable
from harness.core.quantities import written_duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harness.cluster.spec import ClusterSpec
    from harness.suite.plan import SuiteCase
    from harness.suite.results import Measure, Result, SuiteFile


#: The cores for a cluster of three and its clients. With fewer, answers come too late: leaders are elected because of
#: timeouts, and latencies are those of the machine.
_CORES_OF_A_CLUSTER = 2


class _DurationType(click.ParamType[float]):
    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            duration = written_duration(value)
        except ValueError as exc:
            self.fail(str(exc), param, ctx)
        if duration <= 0:
            self.fail(f"{value} is not enough time to run anything", param, ctx)
        return duration


@click.command(cls=ProviderCommand, before="seed", takes=lambda option: not option.locates)
@click.argument("named", metavar="SUITE|NAME|GLOB|FILE…|DIRECTORY", nargs=-1)
@click.option(
    "--time-budget",
    type=_DurationType(),
    metavar="TIME",
    help="Start no run that would end after this time: 90m, 2h. Runs left out are listed, and are not failures.",
)
@click.option(
    "--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Timelines at once; each takes two cores."
)
@click.option("--times", type=click.IntRange(min=1), default=1, show_default=True, help="How often each is run.")
@click.option("--set", "overrides", multiple=True, metavar="PATH=VALUE", help="Change a setting of every scenario.")
@click.option(
    "--seed", type=click.IntRange(min=0), help="Seed that the runs' seeds are drawn from (default: a fresh one)."
)
@store_option
@click.option(
    "--resume",
    is_flag=True,
    help="Continue the newest suite of this name, or the one in DIRECTORY: run what was not run, or could not.",
)
@click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    help="Compare with this suite or store; a case that became worse is a failure.",
)
@click.option("--json", "as_json", is_flag=True, help="Print suite.json as one line.")
@click.pass_obj
def suite(
    backends: Backends,
    /,
    named: tuple[str, ...],
    time_budget: float | None,
    jobs: int,
    times: int,
    overrides: tuple[str, ...],
    seed: int | None,
    store: Path,
    resume: bool,
    baseline: Path | None,
    as_json: bool,
    **options: object,
) -> int:
    """Run many scenarios: a suite by name, or scenarios by name, glob or file; one summary, one exit code.

    Without an argument, list the suites. A run that crashes does not end the suite. The exit code is that of the worst
    run that was not as expected. `suite-NAME-TIME` in the store has suite.json, junit.xml, summary.md and index.html.
    """
    from harness.suite.measure import measured
    from harness.suite.model import load_suite, suites
    from harness.suite.reports import write_reports
    from harness.suite.results import SuiteFile, new_directory, worked_on
    from harness.suite.suite import resume as ready_to_go_on

    if not named:
        _refuse_options_alone()
        for name in suites():
            click.echo(f"{name:16}{load_suite([name]).about}")
        return codes.MET
    store = Path(os.path.realpath(store))
    if resume:
        if overrides or settings(options) or times > 1 or seed is not None:
            of_providers = map(spelled, cast(ProviderCommand, click.get_current_context().command).taken(backends))
            fixed = ", ".join(["--set", *of_providers, "--times"])
            raise ScenarioError(f"--resume continues a suite: leave {fixed} and --seed out")
        directory = _to_resume(store, named)
        _refuse_elsewhere(store, directory)
        _refuse_what_json_cannot_say(str(directory), "" if baseline is None else os.path.realpath(baseline))
        backends.look()
    else:
        everywhere = [*overrides, *said_by(settings(options))]
        file = _planned(backends, store, named, everywhere, times, seed, baseline)
        file.time_budget = time_budget or file.time_budget
        directory = new_directory(store, file.suite, file.began)
    with worked_on(directory):
        if resume:
            file = SuiteFile.read(directory)
            _measured_by(file, baseline, directory)
            ready_to_go_on(file, directory.parent, backends.clean, time_budget, print_error)
            _look_again(backends, file)
            _report_changed(file)
            print_error(f"continues {directory}: {file.headline}")
        file.write(directory)
        with _with_resume_note(file, directory, _resume_command(directory, jobs, as_json)):
            _run(backends, file, directory, _bounded(jobs, backends.cores()))
            index = write_reports(file, directory)
            if file.measure is not None:
                compared = measured(file, file.measure, directory, TOLERANCE, print_error)
                file.write(directory)
                write_reports(file, directory)
    # (First: standard output may be gone.)
    _append_summary(file)
    if as_json:
        print_json(file.model_dump_json(by_alias=True))
    else:
        _print(file, index)
    if file.measure is not None:
        # With --json, standard output is one line.
        print_comparison(compared, err=as_json)
    _annotate(file, err=as_json)
    not_compared = codes.UNKNOWN if file.is_to_compare else codes.MET
    found = of_comparison(bool(file.worse), file.measure is None or file.measure.whole)
    return codes.worst([exit_code(file), found, not_compared])


def _refuse_options_alone() -> None:
    """Raises click.UsageError if there are options but no names: options mean that something has to be run, and perhaps
    a variable was not set."""
    context = click.get_current_context()
    typed = (name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE)
    if any(name != "named" for name in typed):
        raise click.UsageError("which suite? Name one, or scenarios; alone, `kafka-trial suite` lists the suites")


def _planned(
    backends: Backends,
    store: Path,
    named: "Sequence[str]",
    overrides: "Sequence[str]",
    times: int,
    seed: int | None,
    baseline: Path | None,
) -> "SuiteFile":
    """A new suite: all of its runs wait."""
    from harness.history.paths import SUITE_FILE
    from harness.run.versions import versions
    from harness.suite.model import load_suite
    from harness.suite.plan import in_order, plan
    from harness.suite.results import Result, SuiteFile, asked, urgency

    if len(named) == 1 and (Path(named[0]) / SUITE_FILE).is_file():
        file = SuiteFile.read(Path(named[0]))
        more = "--resume continues it" if file.is_left() else f"nothing of it is left to run: {_anew(file)}"
        raise ScenarioError(f"{named[0]}: this suite was started before: {more}")
    wanted = load_suite(named)
    backends.look()
    # (The store of a nightly job may be new: then the baseline's store knows the earlier results.)
    cases = in_order(plan(wanted, overrides, times, _draws(seed)), urgency({store, baseline or store}))
    whole = "" if baseline is None else os.path.realpath(baseline)
    _refuse_what_json_cannot_say(*named, *(case.written for case in cases), str(store), whole)
    texts = {case.written: case.text for case in cases if case.text is not None}
    _exclusive_clusters(backends, cases, texts)
    file = SuiteFile(
        suite=wanted.name,
        about=wanted.about,
        cannot_run=wanted.cannot_run,
        time_budget=wanted.time_budget,
        began=time.time(),
        named=asked(named),
        settings=list(overrides),
        versions=versions(),
        texts=texts,
        runs=[Result.of(case) for case in cases],
    )
    if baseline is not None:
        # Chosen before any run: it must not depend on this suite's own runs, which may be in the same store.
        file.measure = _chosen(file, baseline, store)
    return file


def _to_resume(store: Path, named: "Sequence[str]") -> Path:
    """The directory of the suite to continue: the named one, or the newest that was started with these arguments.

    Raises ScenarioError if there is none, or nothing of it is left to run.
    """
    from harness.history.paths import SUITE_FILE
    from harness.suite.model import load_suite
    from harness.suite.results import SuiteFile, is_suite, left_in, to_resume

    if len(named) == 1 and (is_suite(Path(named[0])) or (Path(named[0]) / SUITE_FILE).is_file()):
        directory = Path(os.path.realpath(named[0]))
        file = SuiteFile.read(directory)
        if not file.is_left():
            raise ScenarioError(f"{named[0]}: nothing of this suite is left to run: {_anew(file)}")
        _refuse_out_of_store(file, directory)
        return directory
    unread = list[str]()

    def say(line: str) -> None:
        unread.append(line)
        print_error(line)

    if found := to_resume(store, named, say):
        return found
    other = left_in(store)
    if other is None:
        # (Perhaps only the name is wrong.)
        load_suite(named)
    hint = "leave --resume out to start one" if other is None else f"{other} was: name that directory"
    suites = shlex.join(named) + (" that can be read" if unread else "")
    raise ScenarioError(
        f"{store}: no suite of {suites} was broken off here, left runs out, or could not run some: {hint}"
    )


def _anew(file: "SuiteFile") -> str:
    """How to start a suite like this one."""
    return f"`kafka-trial suite {shlex.join(file.named)}` starts one" if file.named else "name what it ran to start one"


def _refuse_out_of_store(file: "SuiteFile", directory: Path) -> None:
    """Raises ScenarioError if the suite was moved away from its runs: it would record them again."""
    from harness.history.paths import is_there

    runs = [directory.parent / one for run in file.runs for one in (run.directory, *run.abandoned) if one]
    if runs and not fnmatchcase(directory.name, "suite-*-*") and not any(map(is_there, runs)):
        raise ScenarioError(
            f"{directory}: none of its runs is in {directory.parent}: name it in the store that has them"
        )


def _refuse_elsewhere(store: Path, directory: Path) -> None:
    """Raises ScenarioError if --store is another store than the one of the suite, in which it has to be continued."""
    typed = click.get_current_context().get_parameter_source("store") is ParameterSource.COMMANDLINE
    if typed and store != directory.parent:
        raise ScenarioError(f"{directory}: a suite continues in its own store: leave --store {store} out")


def _report_changed(file: "SuiteFile") -> None:
    """Report the scenario files of remaining runs that changed since the suite began."""
    from harness.scenario.written import read_text
    from harness.suite.results import RunOutcome

    for written in dict.fromkeys(run.written for run in file.runs if run.outcome is RunOutcome.WAITING):
        with suppress(ScenarioError):  # (It may be gone: its old content is stored.)
            if written in file.texts and read_text(Path(written)) != file.texts[written]:
                print_error(f"{written} has changed since: the suite continues with the old content")


def _measured_by(file: "SuiteFile", baseline: Path | None, directory: Path) -> None:
    """Note what a continued suite is compared with: the runs that were chosen when it began, unless another baseline is
    given now. If the runs of a case are gone, those that would be chosen now."""
    from harness.suite.measure import choose, gone

    store = directory.parent
    named = None if baseline is None else os.path.realpath(baseline)
    if file.measure is not None and named in {None, file.measure.said}:
        file.measure.compared = False
        if again := gone(file.measure, store):
            chosen = None
            try:
                chosen = choose(Path(file.measure.said), again, store, print_error, directory.name)
            except HistoryError as exc:
                print_error(str(exc))
            if chosen is not None:
                file.measure.cases |= chosen.cases
                file.measure.whole &= chosen.whole
        return
    path = file.baseline if named is None else named
    if path is None:
        return
    chosen = _chosen(file, Path(path), store, directory.name)
    if chosen is not None:
        file.measure = chosen
        if named is not None and named != file.baseline:
            file.baseline, file.worse = None, {}
    elif file.measure is not None:
        file.measure.compared = False


def _chosen(file: "SuiteFile", baseline: Path, store: Path, without: str | None = None) -> "Measure | None":
    """What a suite is compared with. If there is nothing, the reason is noted in ``file``."""
    from harness.suite.measure import choose

    lines = list[str]()

    def say(line: str) -> None:
        lines.append(line)
        print_error(line)

    chosen = choose(baseline, {run.name for run in file.runs}, store, say, without, file.called)
    file.uncompared = lines[-1] if chosen is None else ""
    return chosen


def _refuse_what_json_cannot_say(*paths: str) -> None:
    """Raises ScenarioError for a path that suite.json cannot store: a path may have any bytes."""
    for path in paths:
        if not is_text(path):
            raise ScenarioError(f"{printable(path)}: its name is not UTF-8: rename it")


def _draws(seed: int | None) -> Random:
    from harness.run.new_run import fresh_seed

    return Random(fresh_seed() if seed is None else seed)


def _exclusive_clusters(
    backends: Backends, runs: "Sequence[SuiteCase | Result]", texts: "Mapping[str, str]"
) -> "dict[tuple[str, ...], ClusterSpec]":
    """The clusters that need something for themselves, by what each is loaded from. Raises ScenarioError if it is not
    clear which of them exclude each other."""
    from harness.providers.catalogue import check_names
    from harness.scenario.loading import load

    # (Most clusters need nothing for themselves.)
    loaded = {(run.written, *run.overrides): run for run in runs if run.alone}
    clusters = {key: load(run.written, run.overrides, texts.get(run.written)).cluster for key, run in loaded.items()}
    check_names(list(clusters.values()), backends.providers())
    return clusters


def _look_again(backends: Backends, file: "SuiteFile") -> None:
    """Read again what the clusters of the remaining runs need for themselves: an inventory may have been corrected. One
    that cannot be read is reported by the recorder of its run, and does not stop the others.

    Raises ScenarioError if it is not clear which of the others exclude each other.
    """
    from harness.providers.catalogue import held_alone
    from harness.suite.results import RunOutcome

    readable: list[tuple[Result, ClusterSpec]] = []
    for run in file.runs:
        if run.outcome is RunOutcome.WAITING and run.alone:
            with suppress(ScenarioError):
                readable += [(run, cluster) for cluster in _exclusive_clusters(backends, [run], file.texts).values()]
    _exclusive_clusters(backends, [run for run, _ in readable], file.texts)
    for run, cluster in readable:
        run.alone = held_alone(cluster, backends.providers())


def _resume_command(directory: Path, jobs: int, as_json: bool) -> str:
    """The command that continues this suite if it is interrupted, from any directory. (suite.json has the baseline.)"""
    command = ["kafka-trial", "suite", str(directory)]
    command += ["--jobs", str(jobs)] if jobs > 1 else []
    command += ["--json"] if as_json else []
    return shlex.join([*command, "--resume"])


def _bounded(jobs: int, cores: int) -> int:
    """The number of timelines at once for which this machine has cores. Prints a line if it is less than ``jobs``."""
    most = max(1, cores // _CORES_OF_A_CLUSTER)
    if jobs > most:
        print_error(f"--jobs {jobs}: {most} at once, as this machine has {cores} cores, and a cluster takes two")
    return min(jobs, most)


@contextmanager
def _with_resume_note(file: "SuiteFile", directory: Path, resume: str) -> "Iterator[None]":
    """If the block breaks off, note the ``resume`` command, if anything is left to run, and write the reports so
    far."""
    from harness.suite.reports import write_reports

    try:
        yield
    except BaseException as exc:
        exc.add_note(file.headline + (f"; `{resume}` continues it" if _is_left(file, directory) else ""))
        with suppress(OSError):  # (Perhaps a full disk, which the first error reports already.)
            write_reports(file, directory)
        _append_summary(file)
        _annotate(file, err=True)
        raise


def _is_left(file: "SuiteFile", directory: Path) -> bool:
    from harness.suite.results import SuiteFile

    # (Perhaps the end of the suite could not be written.)
    with suppress(HistoryError):
        return SuiteFile.read(directory).is_left()
    return file.is_left()


def _run(backends: Backends, file: "SuiteFile", directory: Path, jobs: int) -> None:
    """Run all waiting runs."""
    from harness.suite.display import for_terminal
    from harness.suite.suite import Actions, SuiteRun

    with for_terminal(sys.stderr) as display:
        actions = Actions(
            backends.recorder, lambda: backends.judge(None, {}, []), backends.abandon, backends.clean, time.time
        )
        SuiteRun(file, directory, directory.parent, jobs, actions, display).run()


def _append_summary(file: "SuiteFile") -> None:
    """Write the summary of the job, if GitHub runs it."""
    from harness.suite.reports import append_summary

    try:
        append_summary(file, os.environ)
    except OSError as exc:
        print_error(f"no summary of the job: {exc.filename or 'GITHUB_STEP_SUMMARY'}: {exc.strerror}")


def _annotate(file: "SuiteFile", err: bool) -> None:
    """Print annotations, if GitHub runs it: it reads both outputs."""
    from harness.suite.reports import annotations

    if os.environ.get("GITHUB_ACTIONS") == "true":
        for line in annotations(file):
            click.echo(line, err=err)


def exit_code(file: "SuiteFile") -> int:
    """The exit code of the worst run that was not as expected. A suite without any run as expected is not a success."""
    from harness.suite.results import RunOutcome

    code_of = {
        RunOutcome.EXPECTED: codes.MET,
        RunOutcome.NOT_STARTED: codes.MET,
        RunOutcome.UNEXPECTED: codes.NOT_MET,
        RunOutcome.UNKNOWN: codes.UNKNOWN,
        RunOutcome.CRASHED: codes.CRASHED,
        RunOutcome.INTERRUPTED: codes.CRASHED,
        RunOutcome.CANNOT_RUN: codes.CANNOT_RUN,
    }
    found = codes.worst(code_of.get(run.outcome, codes.CRASHED) for run in file.runs if not file.skips(run))
    if found == codes.MET and RunOutcome.EXPECTED not in file.counts():
        return codes.CANNOT_RUN if RunOutcome.CANNOT_RUN in file.counts() else codes.UNKNOWN
    return found


def _print(file: "SuiteFile", index: Path) -> None:
    """Print a row for each case, the reasons of results that need one, the counts, and where to read on."""
    from rich.table import Table
    from rich.text import Text

    from harness.cli.printing import console
    from harness.suite.display import STYLES
    from harness.suite.reports import share, verdicts
    from harness.suite.results import RunOutcome, clock

    out = console()
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for header in ("scenario", "verdict", "as expected", "time"):
        table.add_column(header, overflow="ellipsis", no_wrap=True)
    why = []
    for name, runs in file.by_name().items():
        odd = next((run for run in runs if run.outcome is not RunOutcome.EXPECTED), None)
        took = clock(sum(run.seconds or 0 for run in runs))
        style = STYLES.get(odd.outcome if odd else RunOutcome.EXPECTED, "")
        table.add_row(printable(name), verdicts(runs), Text(share(runs), style), took)
        why += [] if odd is None or not odd.why else [Text(printable(f"  {name}: {odd.why}"), style)]
    out.print(table)
    for line in why:
        out.print(line, soft_wrap=True)
    out.print(Text(f"{file.headline}, in {file.cost}", "bold"))
    out.print(Text(f"  {index}"), soft_wrap=True)
