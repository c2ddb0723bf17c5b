"""How commands print a verdict: for people, or as one line of JSON. Both go to stdout."""

import json
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

    from harness.core.verdict import Verdict

#: The width in columns of output that is not a terminal: what fits a wide screen is not folded.
_WIDE = 160


def console(err: bool = False) -> "Console":
    """Standard output (or error), as wide as the terminal, or _WIDE if it is not a terminal. Text is printed literally:
    names and errors may come from anybody, and `[/x]` in them is not markup."""
    from rich.console import Console

    stream = sys.stderr if err else sys.stdout
    return Console(file=stream, width=None if stream.isatty() else _WIDE, highlight=False, markup=False, emoji=False)


def print_verdict(verdict: "Verdict", directory: Path, report: Path | None, as_json: bool) -> None:
    """Print a verdict: verdict.json in one line, or the text report with where to read on."""
    if as_json:
        print_line(verdict, {})
        return
    from harness.history.run_file import RunFile
    from harness.report import show

    show(verdict, console(), directory, report, run=RunFile.read(directory))


def print_several(runs: Sequence[Path], verdicts: "Mapping[Path, Verdict]", skipped: Collection[Path]) -> None:
    """Print a row for each of several runs, and how many were as expected."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for header in ("run", "verdict", ""):
        table.add_column(header, no_wrap=True)
    for run in runs:
        verdict = verdicts.get(run)
        if verdict is not None:
            odd = "" if verdict.expected else Text("not as expected", "bold red")
            table.add_row(Text(str(run)), str(verdict.verdict), odd)
        else:
            odd = "skipped" if run in skipped else Text("could not be judged", "bold red")
            table.add_row(Text(str(run)), "none", odd)
    failed = len(runs) - len(skipped) - len(verdicts)
    counts = [f"{sum(verdict.expected for verdict in verdicts.values())} of {len(runs)} runs as expected"]
    counts += [f"{len(skipped)} skipped"] * bool(skipped) + [f"{failed} could not be judged"] * bool(failed)
    out = console()
    out.print()
    out.print(table)
    out.print(Text(", ".join(counts), "bold"))


def print_line(verdict: "Verdict", more: Mapping[str, str]) -> None:
    """Print verdict.json in one line, with the keys of ``more``."""
    _print_line({**json.loads(verdict.to_json()), **more})


def print_failure(directory: Path, error: Exception, code: int) -> None:
    """Print, as one line of JSON, why this run has no verdict."""
    from harness.core.verdict import SCHEMA

    _print_line({"schema": SCHEMA, "directory": str(directory), "error": str(error), "exit": code})


def print_skipped(directory: Path, why: str) -> None:
    """Print, as one line of JSON, why this run was skipped."""
    from harness.core.verdict import SCHEMA

    _print_line({"schema": SCHEMA, "directory": str(directory), "skipped": why})


def print_json(text: str) -> None:
    """Print a text of JSON as one line."""
    _print_line(json.loads(text))


def _print_line(keys: Mapping[str, Any]) -> None:
    # (ASCII can be written in every locale, and is also valid UTF-8, which JSON needs.)
    click.echo(json.dumps(keys, separators=(",", ":")))
