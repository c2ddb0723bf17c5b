"""``kafka-trial runs``, ``compare`` and ``prune``: the runs of a store."""

import json
import math
import os
import re
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli import codes
from harness.cli.backends import Backends
from harness.cli.errors import print_error
from harness.cli.printing import console
from harness.core.errors import HistoryError
from harness.core.printable import printable

if TYPE_CHECKING:
    from collections.abc import Collection

    from harness.suite.comparing import Compared
    from harness.suite.pruning import LeftAlone, SizedRun
    from harness.suite.stored import Stored

#: The store for a command's recordings.
store_option = click.option(
    "--store",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("store"),
    show_default=True,
    help="Where runs are kept.",
)

#: The factor by which a figure may grow. It is worse only if it also grew by more than the difference that runs of one
#: scenario have by chance (harness.suite.comparing).
TOLERANCE = 1.5

_BYTES = {"kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}


class _SizeType(click.ParamType[int]):
    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found = re.fullmatch(r"(\d+(?:\.\d+)?) ?(kb|mb|gb|tb)", str(value).strip().lower())
        if found is None:
            self.fail(f"{value!r} is not a size such as 500MB or 20GB", param, ctx)
        size = float(found[1]) * _BYTES[found[2]]
        if size == float("inf"):
            self.fail(f"{value!r} is more than any disk has", param, ctx)
        return round(size)


class _NumberType(click.FloatRange):
    """A float in a range. Refuses ``nan``, which click lets through."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value!r} is not a number", param, ctx)
        return number


@click.command()
@click.argument("store", type=click.Path(path_type=Path), default=Path("store"))
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON for each run.")
def runs(store: Path, as_json: bool) -> int:
    """List the runs of a STORE, or of a suite in it: when, which scenario, Kafka's version, seed, state and verdict.

    A run whose verdict cannot be read is listed without one, and reported. The oldest comes first.
    `time` is in seconds: the timeline, plus the time for cluster and final read.
    """
    from rich.table import Table
    from rich.text import Text

    from harness.suite.stored import readable, runs_below

    if not store.exists():
        raise HistoryError(f"{store}: no such store: `kafka-trial run` makes one, or name another")
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for header in ("began (UTC)", "scenario", "kafka", "seed", "time", "state", "verdict", ""):
        table.add_column(header, no_wrap=True)
    found = readable(runs_below(store, print_error), print_error, torn=True)
    listed = sorted(found, key=lambda run: run.began)
    for run in listed:
        began = datetime.fromtimestamp(run.began, UTC).strftime("%Y-%m-%d %H:%M:%S")
        row = {
            "directory": str(run.directory),
            "scenario": run.file.scenario_name,
            "began": began,
            "kafka": run.file.configuration.version,
            "seed": run.file.seed,
            "timeline_seconds": run.file.timeline_lasted,
            "besides_seconds": _besides(run),
            "state": _state(run),
            "verdict": None if run.verdict is None else str(run.verdict.verdict),
            "expected": None if run.verdict is None else run.verdict.expected,
        }
        if as_json:
            click.echo(json.dumps(row))
            continue
        odd = "" if run.verdict is None or run.verdict.expected else Text("not as expected", "bold red")
        cells = [printable(str(row[key] or "")) for key in ("scenario", "kafka", "seed", "state", "verdict")]
        time_ = "" if _besides(run) is None else f"{run.file.timeline_lasted:.0f} + {_besides(run):.0f} s"
        table.add_row(began, *cells[:3], time_, *cells[3:], odd)
    if not as_json:
        console().print(table)
        console().print(f"{_number(len(listed), 'run', 'runs')} in {store}")
    return codes.MET


def _state(run: "Stored") -> str:
    from harness.history.run_file import State
    from harness.history.store import state_now

    if run.verdict is not None:
        return str(State.JUDGED)
    try:
        return str(state_now(run.directory))
    except (HistoryError, OSError):
        return str(run.file.state)


def _besides(run: "Stored") -> float | None:
    """The seconds of a run in addition to its timeline; None if the timeline did not end."""
    timeline = run.file.timeline_lasted
    return None if timeline is None else run.file.lasted - timeline


@click.command()
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@click.option(
    "--tolerance",
    type=_NumberType(min=1),
    default=TOLERANCE,
    show_default=True,
    help="The factor by which a figure may grow before it counts as worse. Growth that may be chance never counts.",
)
def compare(old: Path, new: Path, tolerance: float) -> int:
    """Compare two runs, suites or stores: verdicts, loss, availability and latency, and what changed in settings.

    Two runs are compared whatever their scenarios are called; otherwise, runs of the same scenario are. In a store,
    the newest run of each scenario is compared; in OLD, the newest that no suite found worse. A scenario that is in a
    suite of OLD, but not in NEW's suite of the same name, is gone, which counts as worse. Exits with 1 if NEW is
    worse; else with 3 if something could not be compared, because you may not read a folder, a history is damaged,
    or OLD has no readable run of a scenario.
    """
    from harness.suite.comparing import compare as compared
    from harness.suite.stored import by_case, listed

    unseen = list[str]()

    def closed(line: str) -> None:
        unseen.append(line)
        print_error(line)

    before = by_case(old, print_error, baseline=True, closed=closed)
    after = by_case(new, print_error, closed=closed)
    has = listed(new)
    gone = {name for called, names in listed(old, baseline=True).items() for name in names - has.get(called, names)}
    gone -= after.keys()
    if _is_run(old) and _is_run(new) and before.keys() != after.keys():
        # Two runs are compared even if their scenarios have different names.
        both = " → ".join((*before, *after))
        before, after = ({both: next(iter(side.values()))} for side in (before, after))
    cases = compared(before, after, tolerance, gone)
    print_comparison(cases)
    lacking = any(runs.lacking for runs in before.values())
    whole = not unseen and not lacking and all(case.whole for case in cases)
    return of_comparison(any(case.worse for case in cases), whole)


def _is_run(directory: Path) -> bool:
    from harness.history.run_file import RUN_FILE

    return (directory / RUN_FILE).is_file()


def of_comparison(worse: bool, whole: bool) -> int:
    """The exit code of a comparison: 1 if something is worse, else 3 if not all could be compared."""
    return codes.worst([codes.NOT_MET if worse else codes.MET, codes.MET if whole else codes.CANNOT_RUN])


def print_comparison(cases: "list[Compared]", err: bool = False) -> None:
    """Print a comparison; with ``err``, to standard error."""
    from rich.table import Table
    from rich.text import Text

    from harness.suite.comparing import seconds, share

    out = console(err)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for header in ("scenario", "", "verdict", "as expected", "lost", "unavailable", "recovery", "p50", "p99"):
        table.add_column(header, no_wrap=True)
    for case in cases:
        for label, side in (("old", case.old), ("new", case.new)):
            if side is None:
                table.add_row(printable(case.name) if label == "old" else "", label, "none to compare")
                continue
            verdicts = ", ".join(f"{n} {one}" if side.runs > 1 else one for one, n in side.verdicts.items())
            table.add_row(
                printable(case.name) if label == "old" else "",
                label,
                verdicts,
                f"{side.as_expected} of {side.runs}",
                share(side.loss),
                *map(seconds, (side.unavailable, side.recovery, side.p50, side.p99)),
            )
    out.print(table)
    compared = [case for case in cases if case.both_judged]
    alike = set.intersection(*(set(case.changed) for case in compared)) if len(compared) > 1 else set[str]()
    in_all = [line for line in compared[0].changed if line in alike] if alike else []
    in_some = [
        f"{case.name}: {line}" for case in cases for line in case.changed if not (case.both_judged and line in alike)
    ]
    for title, style, lines in (
        ("Worse", "bold red", [printable(f"{case.name}: {line}") for case in cases for line in case.worse]),
        ("Changed in all", "bold", [printable(line) for line in in_all]),
        ("Changed", "bold", [printable(line) for line in in_some]),
    ):
        if lines:
            out.print(Text(title, style))
            for line in lines:
                out.print(Text(f"  {line}"), soft_wrap=True)
    worse = sum(bool(case.worse) for case in cases)
    out.print(Text(f"{worse} of {len(cases)} worse", "bold"))


@click.command()
@click.argument("store", type=click.Path(path_type=Path), default=Path("store"))
@click.option("--days", type=_NumberType(min=0), help="Remove what is older than this.")
@click.option("--size", "most", type=_SizeType(), metavar="SIZE", help="Remove the oldest until the rest fits: 20GB.")
@click.option(
    "--unexpected", is_flag=True, help="Also remove runs that were not as expected, or have no readable verdict."
)
@click.option("--dry-run", is_flag=True, help="Remove nothing: list what would go.")
@click.pass_obj
def prune(
    backends: Backends, store: Path, days: float | None, most: int | None, unexpected: bool, dry_run: bool
) -> int:
    """Keep a STORE within days or bytes. A run that was not as expected is kept unless --unexpected.

    Always kept: the runs of suites that are going on, or that `suite --resume` continues; the newest judged run of each
    case of each suite, to compare with; and every run of a store that has a suite that cannot be read. The directory of
    a suite that has no run left is removed, too, if it is older than --days and not the newest of its name. Exits with
    3 if you may not remove something that should go, or a folder or a suite cannot be read.
    """
    from harness.history.paths import SUITE_FILE
    from harness.suite.pruning import (
        SizedRun,
        WhyKept,
        protected,
        removed,
        size_of,
        suites_removed,
        tell_removed,
        to_remove,
        unreadable_suites,
        why_left_alone,
        without_runs,
    )
    from harness.suite.stored import readable, runs_below

    if days is None and most is None:
        raise click.UsageError("say what to remove: --days, --size, or both")
    # Resolve a link, or `.`.
    store = Path(os.path.realpath(store))
    if (store / SUITE_FILE).is_file():
        raise HistoryError(f"{store}: one suite: name the store that it is in, {store.parent}")
    closed = list[str]()
    existing = readable(runs_below(store, closed.append), print_error, torn=True)
    kept = [SizedRun(run, size_of(run.directory)) for run in existing]
    for line in closed:
        print_error(line)
    stays = protected(store)
    of_suites = sum(one.run.directory.resolve() in stays for one in kept)
    unread = unreadable_suites(store)
    for suite, error in unread.items():
        closed_ = isinstance(error.__cause__, PermissionError)
        line = f"{suite}: you may not read it" if closed_ else str(error)
        print_error(f"{line}: which runs it needs is unknown, so all of {suite.parent} stay")
    stays |= {one.run.directory.resolve() for one in kept if _is_of(one.run.directory, unread)}
    chosen = to_remove(
        kept, time.time(), days, most, unexpected, stays, lambda run: why_left_alone(run, backends.writable)
    )
    described = {one.run.directory: _described(one) for one in chosen}
    gone, alone, locked = [], Counter[WhyKept](), False
    for pruned in removed(chosen, store, dry_run, backends.writable, unexpected):
        click.echo(_became(described[pruned.chosen.run.directory], pruned.left, dry_run))
        if pruned.left is None:
            gone.append(pruned.chosen)
        else:
            alone[pruned.left.why] += 1
    suites = 0
    empty = without_runs(store, time.time(), days, [one.run.directory for one in gone])
    empty = [directory for directory in empty if not _is_of(directory, unread)]
    for directory, why in suites_removed(empty, dry_run, backends.writable):
        click.echo(_became(f"{directory} (a suite without a run left)", why, dry_run))
        suites += why is None
        locked = locked or (why is not None and why.why is WhyKept.NOT_YOURS)
    if not dry_run:
        tell_removed(store, {one.run.directory.resolve() for one in gone})
    left = sum(one.size for one in kept) - sum(one.size for one in gone)
    needed = "as the newest of their suites, or of one that is going on or can be continued"
    compared = f", {of_suites} of them {needed}" if of_suites else ""
    emptied = f"; {_number(suites, 'suite', 'suites')} without a run left" if suites else ""
    emptied += " would go" if suites and dry_run else " went" if suites else ""
    click.echo(f"{_number(len(kept) - len(gone), 'run stays', 'runs stay')}, {left / 1e6:.1f} MB{compared}{emptied}")
    if most is not None and left > most:
        numbers = [(alone[why], why) for why in WhyKept if alone[why]]
        reasons = [f"{_number(number, 'run is', 'runs are')} {why}" for number, why in numbers]
        if len(kept) - len(gone) > alone.total():
            reasons.append("what stays must, or was not as expected")
        print_error(f"more than the {most / 1e6:.1f} MB of --size: {'; '.join(reasons)}")
    return codes.CANNOT_RUN if alone[WhyKept.NOT_YOURS] or locked or closed or unread else codes.MET


def _number(count: int, one: str, several: str) -> str:
    return f"{count} {one if count == 1 else several}"


def _is_of(directory: Path, suites: "Collection[Path]") -> bool:
    """Whether a directory is in the store of one of these suites."""
    return any(suite.parent in directory.parents for suite in suites)


def _described(kept: "SizedRun") -> str:
    age = (time.time() - kept.run.began) / 86_400
    return f"{kept.run.directory} ({kept.size / 1e6:.1f} MB, {age:.0f} days old)"


def _became(described: str, left: "LeftAlone | None", dry_run: bool) -> str:
    """The line about the result for a run."""
    if left is None:
        return f"would remove {described}" if dry_run else f"removed {described}"
    return f"left {described} alone: {left.folder or 'it'} is {left.why}"
