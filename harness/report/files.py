"""The files of a verdict in the run's directory."""

from pathlib import Path

from harness.core.verdict import Verdict
from harness.history.paths import JUNIT_FILE, REPORT_FILE, VERDICT_FILE
from harness.history.run_file import RunFile
from harness.history.writing import write_file
from harness.report import html, junit


def write(directory: Path, verdict: Verdict, run_file: RunFile) -> Path:
    """Write report.html, junit.xml and verdict.json into a directory; return the path of the report.

    Raises OSError if the directory cannot be written.
    """
    report = write_file(directory, REPORT_FILE, html.render(verdict, run_file))
    write_file(directory, JUNIT_FILE, junit.render(verdict, run_file))
    write_file(directory, VERDICT_FILE, verdict.to_json(indent=2) + "\n")
    return report
