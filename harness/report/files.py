"""What is kept of a verdict beside its run."""

from pathlib import Path

from harness.core.layout import VERDICT_FILE
from harness.core.run_file import RunFile
from harness.core.verdict import Verdict
from harness.report import html, junit

REPORT_FILE = "report.html"
JUNIT_FILE = "junit.xml"


def write(directory: Path, verdict: Verdict, run_file: RunFile) -> Path:
    """Write verdict.json, report.html and junit.xml into a run's directory; return the path of the report.

    Raises OSError where the directory cannot be written.
    """
    (directory / VERDICT_FILE).write_text(verdict.to_json(indent=2) + "\n")
    (directory / JUNIT_FILE).write_text(junit.render(verdict, run_file))
    report = directory / REPORT_FILE
    report.write_text(html.render(verdict, run_file))
    return report
