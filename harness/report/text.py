"""The verdict on a terminal, or in a log."""

from collections.abc import Sequence
from pathlib import Path

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from harness.core.printable import all_printable
from harness.core.verdict import Verdict
from harness.history.run_file import RunFile
from harness.report import words
from harness.report.blocks import Block, Card, Cells, Drawing, Facts, Figures, Folded, Lines
from harness.report.sections import SECTIONS, ReportData, Section, Where, findings_of, shown

_STYLES = {"good": "bold green", "doubtful": "bold yellow", "bad": "bold red", "": ""}
#: A choice: more rows of a table push what follows off a screen.
_EXAMPLES = 3
#: The indentation of a wrapped line's continuation.
_HANGING = 4


def show(
    verdict: Verdict,
    console: Console,
    directory: Path | None = None,
    report: Path | None = None,
    sections: Sequence[Section] = SECTIONS,
    run: RunFile | None = None,
) -> None:
    """Print a verdict: headline, reasons, each section that is not empty, and where to read on.

    ``directory``: the run's own. ``report``: its page, if one was written. ``run``: its run.json.
    """
    verdict = Verdict.model_validate(all_printable(verdict.model_dump(by_alias=True)))
    console.print(Text(words.verdict_line(verdict), _STYLES[words.tone(verdict)]), Text(verdict.run, "dim"))
    for line in words.headlines(verdict, findings_of(verdict)):
        _line(console, line)
    for section, blocks in shown(ReportData(verdict, _EXAMPLES, run), Where.TERMINAL, sections):
        _section(console, section.title if section.titled else "", blocks)
    _section(console, "Read on", [Lines([str(path) for path in (report, directory) if path is not None])])


def _section(console: Console, title: str, blocks: Sequence[Block]) -> None:
    if title and not all(isinstance(block, Lines) and not block.lines for block in blocks):
        console.print()
        console.print(Text(title, "bold"))
    for block in blocks:
        _block(console, block)


def _block(console: Console, block: Block) -> None:
    match block:
        case Lines():
            for line in block.lines:
                _line(console, f"{block.label}: {line}" if block.label else line)
        case Facts():
            for name, text in block.facts:
                _line(console, f"{name}: {text}")
        case Figures():
            console.print()
            console.print(_figures(block))
        case Cells():
            _cells(console, block)
        case Card():
            console.print()
            mark = (str(block.mark), _STYLES[block.mark.tone])
            counts = [((f"{name} ", "bold"), f"{count:,}, ") for name, count in block.counts.items()]
            heading = Text.assemble(*(part for parts in counts for part in parts))
            console.print(Text.assemble(heading[: -len(", ")], "  ", mark))
            for inner in block.blocks:
                _block(console, inner)
        case Folded() | Drawing():
            pass


def _figures(figures: Figures) -> Padding:
    rows = Table.grid(padding=(0, 2))
    rows.add_column()
    rows.add_column(justify="right")
    rows.add_column(style="dim")
    for row in figures.rows:
        rows.add_row(*row)
    return Padding(rows, (0, 0, 0, 2), expand=False)


def _cells(console: Console, cells: Cells) -> None:
    """Print a table. If it is wider than the console, print each row as a paragraph."""
    rows = [cells.headers, *cells.rows]
    width = sum(max(cell_len(str(row[n])) + 2 for row in rows if n < len(row)) for n in range(max(map(len, rows))))
    if cells.long or width <= console.width or not cells.headers:
        console.print(_table(cells))
        return
    for row in cells.rows:
        parts = (f"{header} {cell}" for header, cell in zip(cells.headers, row, strict=True) if str(cell))
        _line(console, " · ".join(parts))


def _table(cells: Cells) -> Padding:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", show_header=bool(cells.headers))
    for header in cells.headers or [""] * max(map(len, cells.rows)):
        table.add_column(header, no_wrap=not cells.long)
    for row in cells.rows:
        table.add_row(*(Text(str(cell), "" if isinstance(cell, str) else _STYLES[cell.tone]) for cell in row))
    return Padding(table, (0, 0, 0, 2), expand=False)


def _line(console: Console, text: str) -> None:
    # Not wrapped if the output is not a terminal: in a log, one line stays one line.
    if not console.is_terminal:
        console.print(Text(f"  {text}"), soft_wrap=True)
        return
    for n, line in enumerate(Text(text).wrap(console, max(console.width - _HANGING, 1))):
        console.print(Padding(line, (0, 0, 0, _HANGING if n else 2), expand=False))
