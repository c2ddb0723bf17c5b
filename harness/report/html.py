"""The report as one HTML page without other files."""

from collections.abc import Sequence

from harness.core.verdict import MOST_EXAMPLES, Verdict
from harness.history.run_file import RunFile
from harness.report import words
from harness.report.chart import WIDTH
from harness.report.sections import SECTIONS, ReportData, Section, Where, findings_of, shown
from harness.report.template import template


def render(verdict: Verdict, run_file: RunFile, sections: Sequence[Section] = SECTIONS) -> str:
    """The whole page."""
    return template("harness.report", "report.html.j2").render(
        verdict=verdict,
        headlines=words.headlines(verdict, findings_of(verdict)),
        run=run_file,
        sections=list(shown(ReportData(verdict, MOST_EXAMPLES, run_file), Where.PAGE, sections)),
        width=WIDTH,
        words=words,
    )
