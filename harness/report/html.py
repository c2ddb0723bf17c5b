"""The report as one page that needs nothing but itself."""

from datetime import UTC, datetime
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from harness.core.verdict import Verdict
from harness.history.run_file import RunFile
from harness.report import words
from harness.report.chart import WIDTH, chart


def render(verdict: Verdict, run_file: RunFile) -> str:
    """The whole page."""
    return _template().render(
        verdict=verdict,
        run=run_file,
        began=datetime.fromtimestamp(run_file.origin_unix_ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
        chart=chart(verdict, run_file),
        width=WIDTH,
        words=words,
    )


@cache
def _template() -> Template:
    page = Environment(
        loader=PackageLoader("harness.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page.filters["seconds"] = words.seconds
    return page.get_template("report.html.j2")
