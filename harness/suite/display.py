"""Shows the progress of a suite: a table on a terminal, plain lines elsewhere."""

import time
from collections.abc import Callable, Mapping
from typing import Self, TextIO

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from harness.suite.results import JUDGED, Result, RunOutcome, SuiteFile

#: Seconds between two plain lines about the same run.
_EVERY = 15.0

STYLES = {
    RunOutcome.EXPECTED: "green",
    RunOutcome.UNEXPECTED: "bold red",
    RunOutcome.UNKNOWN: "yellow",
    RunOutcome.CANNOT_RUN: "yellow",
    RunOutcome.CRASHED: "bold red",
    RunOutcome.INTERRUPTED: "yellow",
}


def label(run: Result) -> str:
    """The name of a run; with its number if it is not the first run of that name."""
    return run.name if run.repeat == 1 else f"{run.name} #{run.repeat}"


def result_words(run: Result) -> str:
    """The result of a run: ``invalid, as expected: lost: 520 of 987 …``."""
    judged = run.outcome in JUDGED - {RunOutcome.UNKNOWN} and run.verdict
    result = f"{run.verdict}, {run.outcome}" if judged else str(run.outcome)
    return f"{result}: {run.why}" if run.why else result


class PlainSuiteDisplay:
    """A line for each phase and for each result. ``now`` returns seconds."""

    def __init__(self, stream: TextIO, now: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._now = now
        self._began = now()
        self._last: dict[int, tuple[float, str]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def runs(self, file: SuiteFile, doing: Mapping[int, str]) -> None:
        """Print a line about each run that goes on, now and then."""
        for number, text in doing.items():
            at, shown = self._last.get(number, (-_EVERY, ""))
            if text != shown and self._now() - at >= _EVERY:
                self._last[number] = (self._now(), text)
                self._line(f"[{number + 1}/{len(file.runs)}] {label(file.runs[number])}: {text}")

    def ended(self, number: int, run: Result) -> None:
        """Print a line with the run's result."""
        self._line(f"[{number + 1}] {label(run)}: {result_words(run)}")

    def _line(self, text: str) -> None:
        self._stream.write(f"{self._now() - self._began:6.0f} s  {text}\n")
        self._stream.flush()


class LiveSuiteDisplay:
    """Results of ended runs stay above; the runs that go on, and the number of those left, are redrawn."""

    def __init__(self, console: Console, now: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._now = now
        self._began = now()
        self._file: SuiteFile | None = None
        self._doing: dict[int, str] = {}
        self._live = Live(get_renderable=self._drawn, console=console, refresh_per_second=4, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def runs(self, file: SuiteFile, doing: Mapping[int, str]) -> None:
        """Show the runs at the next redraw."""
        self._file, self._doing = file, dict(doing)

    def ended(self, number: int, run: Result) -> None:
        """Print a line with the run's result, which stays."""
        mark = Text(f"{run.outcome:16}", STYLES.get(run.outcome, ""))
        took = (f"{number + 1:3}  {run.seconds or 0:6.0f} s  ", "dim")
        line = Text.assemble(took, mark, f"{label(run)}  ", (run.why, "dim"))
        self._console.print(line, overflow="ellipsis", no_wrap=True)

    def _drawn(self) -> Table:
        rows = Table.grid(padding=(0, 2))
        if self._file is None:
            return rows
        for number, text in self._doing.items():
            rows.add_row(Text(label(self._file.runs[number]), "bold"), Text(text, overflow="ellipsis"))
        rows.add_row(Text(f"{self._now() - self._began:.0f} s", "dim"), Text(self._file.headline, "dim"))
        return rows


AnySuiteDisplay = PlainSuiteDisplay | LiveSuiteDisplay


def for_terminal(stream: TextIO) -> AnySuiteDisplay:
    """The live display if ``stream`` is a terminal that can draw, else plain lines."""
    console = Console(file=stream)
    return (
        LiveSuiteDisplay(console) if console.is_terminal and not console.is_dumb_terminal else PlainSuiteDisplay(stream)
    )
