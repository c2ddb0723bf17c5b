"""A line on a terminal that says what a command is doing while it prints nothing. It vanishes at the end."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO


@contextmanager
def busy(
    doing: str,
    detail: Callable[[], str] = lambda: "",
    stream: TextIO | None = None,
    now: Callable[[], float] = time.monotonic,
) -> Iterator[None]:
    """Show ``doing``, ``detail()`` and the elapsed seconds until the block ends. Shows nothing if standard error is not
    a terminal that can draw."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(file=stream or sys.stderr)
    if not console.is_terminal or console.is_dumb_terminal:
        yield
        return
    began = now()

    def drawn() -> Text:
        more = detail()
        return Text(f"{now() - began:4.0f} s  {doing}{', ' if more else ''}{more}", overflow="ellipsis", no_wrap=True)

    with Live(get_renderable=drawn, console=console, refresh_per_second=4, transient=True):
        yield
