"""A suite's reports in the directory of its suite.json: for CI servers, for a job's page, for a browser."""

import re
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from harness.history.paths import JUNIT_FILE, is_there
from harness.history.writing import write_file
from harness.report.template import template
from harness.suite import junit
from harness.suite.display import label, result_words
from harness.suite.results import JUDGED, Result, RunOutcome, SuiteFile, clock

SUMMARY_FILE = "summary.md"
INDEX_FILE = "index.html"

#: What Markdown could take for more than text, within a line.
_MARKUP = re.compile(r"[\\|`*_\[\]~$]")

_MARKS = {
    RunOutcome.EXPECTED: "✅",
    RunOutcome.UNEXPECTED: "❌",
    RunOutcome.CRASHED: "❌",
    RunOutcome.UNKNOWN: "❔",
    RunOutcome.RECORDED: "❔",
}


def write_reports(file: SuiteFile, directory: Path) -> Path:
    """Write junit.xml, summary.md and index.html; returns the path of the last."""
    write_file(directory, JUNIT_FILE, junit.render(file))
    write_file(directory, SUMMARY_FILE, markdown(file))
    return write_index(file, directory)


def write_index(file: SuiteFile, directory: Path) -> Path:
    """Write index.html; returns its path."""
    return write_file(directory, INDEX_FILE, page(file, directory.parent))


def markdown(file: SuiteFile) -> str:
    """A table with a row for each case: the verdicts of its runs, and how many were as expected."""
    lines = [f"## kafka-trial: {file.suite}", "", f"{file.headline}, in {file.cost}.", ""]
    lines += [f"With {_cell(', '.join(file.settings))}.", ""] if file.settings else []
    lines += ["| | scenario | verdict | as expected | |", "|---|---|---|---|---|"]
    for name, runs in file.by_name().items():
        cells = [_mark(runs), _cell(name), verdicts(runs), share(runs), _cell(_worth_saying(runs))]
        lines.append(f"| {' | '.join(cells)} |")
    if file.baseline is not None:
        lines += ["", f"### {_cell(compared(file))}", ""]
        lines += [f"- {_cell(f'{name}: {line}')}" for name, worse in file.worse.items() for line in worse]
    lines += ["", f"{_cell(file.uncompared)}."] if file.uncompared else []
    return "\n".join(lines) + "\n"


def page(file: SuiteFile, store: Path) -> str:
    """One page that links the runs' own reports, or says that a run was removed since."""

    def removed(run: Result) -> bool:
        return run.directory is not None and not is_there(store / run.directory)

    began = datetime.fromtimestamp(file.began, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return template("harness.suite", "index.html.j2").render(
        file=file,
        began=began,
        clock=clock,
        label=label,
        compared=compared,
        removed=removed,
        mark=lambda run: _mark([run]),
    )


def annotations(file: SuiteFile) -> list[str]:
    """GitHub's workflow commands: an error for each case that is not as expected, worse than the baseline, or not
    compared with it; a warning for each run that was not run, and for a missing baseline."""
    worse = ((name, line) for name, lines in file.worse.items() for line in lines)
    lines = [f"::error title={_escaped(name, ',:')}::{_escaped(f'worse: {line}')}" for name, line in worse]
    if file.baseline is not None and not _is_whole(file):
        lines.append(f"::error title={_escaped(file.suite, ',:')}::{_escaped(compared(file))}")
    lines += [f"::warning title={_escaped(file.suite, ',:')}::{_escaped(file.uncompared)}"] if file.uncompared else []
    for run in file.runs:
        if run.outcome is RunOutcome.EXPECTED:
            continue
        left_out = run.outcome in {RunOutcome.NOT_STARTED, RunOutcome.WAITING} or file.skips(run)
        kind = "warning" if left_out else "error"
        lines.append(f"::{kind} title={_escaped(label(run), ',:')}::{_escaped(result_words(run))}")
    return lines


def append_summary(file: SuiteFile, environment: Mapping[str, str]) -> None:
    """Append the summary to the file $GITHUB_STEP_SUMMARY, if that is set. Raises OSError."""
    if summary := environment.get("GITHUB_STEP_SUMMARY"):
        with Path(summary).open("a", encoding="utf-8") as out:
            out.write(markdown(file) + "\n")


def compared(file: SuiteFile) -> str:
    """``2 of 8 scenarios are worse than /store/suite-…``."""
    more = "" if _is_whole(file) else ", and not all are compared"
    scenarios = file.by_name().keys() | file.worse.keys()
    return f"{len(file.worse)} of {len(scenarios)} scenarios are worse than {file.baseline}{more}"


def _is_whole(file: SuiteFile) -> bool:
    """Whether the whole measure was compared."""
    return not file.is_to_compare and (file.measure is None or file.measure.whole)


def verdicts(runs: list[Result]) -> str:
    """``invalid``, or ``4 invalid, 1 valid``; the outcome of runs without a verdict."""
    each = Counter(str(run.verdict) if run.outcome in JUDGED else str(run.outcome) for run in runs)
    return next(iter(each)) if len(runs) == 1 else ", ".join(f"{number} {one}" for one, number in each.items())


def share(runs: list[Result]) -> str:
    """``4 of 5``: how many runs were as expected."""
    return f"{sum(run.outcome is RunOutcome.EXPECTED for run in runs)} of {len(runs)}"


def _mark(runs: list[Result]) -> str:
    marks = {_MARKS.get(run.outcome, "–") for run in runs}
    return next(mark for mark in ("❌", "❔", "–", "✅") if mark in marks)


def _worth_saying(runs: list[Result]) -> str:
    return next((run.why for run in runs if run.outcome is not RunOutcome.EXPECTED), runs[0].why)


def _cell(text: str) -> str:
    """Text for a cell of a table in Markdown: it formats nothing, and ends no cell."""
    return " ".join(_MARKUP.sub(r"\\\g<0>", text).replace("&", "&amp;").replace("<", "&lt;").split())


def _escaped(text: str, more: str = "") -> str:
    """Text escaped for GitHub's workflow commands (actions/toolkit, command.ts: escapeData, escapeProperty)."""
    for char in ("%", "\r", "\n", *more):
        text = text.replace(char, f"%{ord(char):02X}")
    return text
