"""How commands tell a verdict: for people, or as one line of JSON. Both go to stdout."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

    from harness.core.verdict import Verdict

#: Columns of output that is no terminal: nothing is folded that fits a wide screen.
_WIDE = 160


def console() -> "Console":
    """Standard output, as wide as the terminal, or wide where it is none."""
    from rich.console import Console

    return Console(file=sys.stdout, width=None if sys.stdout.isatty() else _WIDE, highlight=False)


def tell(verdict: "Verdict", directory: Path, report: Path | None, as_json: bool) -> None:
    """Print a verdict: verdict.json in one line, or the text report with where to read on."""
    if as_json:
        line(verdict, {})
        return
    from harness.report import show

    show(verdict, console(), directory, report)


def line(verdict: "Verdict", more: Mapping[str, str]) -> None:
    """Print verdict.json in one line, with the keys of ``more``."""
    _print_line({**json.loads(verdict.to_json()), **more})


def tell_failure(directory: Path, error: Exception, code: int) -> None:
    """Print, as one line of JSON, that there is no verdict of this run, and why."""
    from harness.core.verdict import SCHEMA

    _print_line({"schema": SCHEMA, "directory": str(directory), "error": str(error), "exit": code})


def _print_line(keys: Mapping[str, Any]) -> None:
    # (ASCII: whatever the locale, it can be written, and read as the UTF-8 that JSON is.)
    click.echo(json.dumps(keys, separators=(",", ":")))
