"""How commands tell a verdict: for people, or as one line of JSON. Both go to stdout."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

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
        # (ASCII: whatever the locale, it can be written, and read as the UTF-8 that JSON is.)
        click.echo(json.dumps(json.loads(verdict.to_json()), separators=(",", ":")))
        return
    from harness.report import show

    show(verdict, console(), directory, report)
