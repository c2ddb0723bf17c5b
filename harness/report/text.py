"""The verdict on a terminal, or in a log."""

from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from harness.core.verdict import FoundAnomaly, Standing, Verdict
from harness.report import words

_STYLES = {"good": "bold green", "doubtful": "bold yellow", "bad": "bold red"}
_EXAMPLES = 3


def show(verdict: Verdict, console: Console, directory: Path | None = None, report: Path | None = None) -> None:
    """Print a verdict: headline, the 2013 summary, anomalies, doubts, what is counted besides, availability, and where
    to read on.

    ``directory`` is the run's own, ``report`` its page, where one was written.
    """
    console.print(Text(words.verdict_line(verdict), _STYLES[words.tone(verdict)]), Text(verdict.run, "dim"))
    for reason in verdict.reasons:
        _line(console, reason)
    console.print()
    console.print(_summary(verdict))
    for name, anomaly in verdict.anomalies.items():
        _anomaly(console, name, anomaly)
    _section(console, "Preconditions not met", words.unmet(verdict))
    _section(console, "Also counted", words.counted_lines(verdict))
    _section(console, "Availability", words.availability_lines(verdict.availability))
    _section(console, "Read on", [str(path) for path in (report, directory) if path is not None])


def _summary(verdict: Verdict) -> Padding:
    rows = Table.grid(padding=(0, 2))
    rows.add_column()
    rows.add_column(justify="right")
    rows.add_column(style="dim")
    for row in words.summary_rows(verdict.summary):
        rows.add_row(*row)
    return Padding(rows, (0, 0, 0, 2), expand=False)


def _anomaly(console: Console, name: str, anomaly: FoundAnomaly) -> None:
    style = "bold red" if anomaly.standing is Standing.VIOLATION else "bold yellow"
    console.print()
    console.print(Text.assemble((f"{name} ", "bold"), f"{anomaly.count:,}  ", (anomaly.standing.value, style)))
    for label, said in (("because", anomaly.because), ("source", anomaly.source), ("remedy", anomaly.remedy)):
        if said:
            _line(console, f"{label}: {said}")
    for run in anomaly.runs[:_EXAMPLES]:
        _line(console, f"run: {run['text']}")
    if len(anomaly.runs) > _EXAMPLES:
        _line(console, f"… and {len(anomaly.runs) - _EXAMPLES} more runs: verdict.json")
    headers, cells = words.table(anomaly.examples[:_EXAMPLES])
    if cells:
        examples = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
        for header in headers:
            examples.add_column(header, no_wrap=True)
        for row in cells:
            examples.add_row(*(Text(cell) for cell in row))
        console.print(Padding(examples, (0, 0, 0, 2), expand=False))
    if anomaly.count > len(cells):
        _line(console, f"… and {anomaly.count - len(cells):,} more: anomalies/{name}/")


def _section(console: Console, title: str, lines: list[str]) -> None:
    if lines:
        console.print()
        console.print(Text(title, "bold"))
        for line in lines:
            _line(console, line)


def _line(console: Console, text: str) -> None:
    # Unwrapped where the output is no terminal: a line of a log is one line.
    console.print(
        Padding(Text(text), (0, 0, 0, 2)) if console.is_terminal else Text(f"  {text}"),
        soft_wrap=not console.is_terminal,
    )
