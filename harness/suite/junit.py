"""A suite as JUnit XML for CI servers: one test case for each run, even if it never started."""

from collections.abc import Sequence
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

from harness.core.printable import printable
from harness.report.junit import document
from harness.suite.display import label
from harness.suite.results import Result, RunOutcome, SuiteFile

_FAILURES = frozenset({RunOutcome.UNEXPECTED, RunOutcome.UNKNOWN})
_SKIPPED = frozenset({RunOutcome.CANNOT_RUN, RunOutcome.NOT_STARTED, RunOutcome.WAITING})


def render(file: SuiteFile) -> str:
    """JUnit XML. A run that cannot run or never started is ``skipped``, or an error with ``cannot_run: fail``. If a
    case is worse than the baseline, its first run that would otherwise pass is a failure. A case that the suite no
    longer has is a failure, too."""
    worse = dict(file.worse)
    cases = [_case(file, run, worse.pop(run.name, []) if _passes(file, run) else []) for run in file.runs]
    cases += [_gone(file, name, lines) for name, lines in worse.items() if name not in file.by_name()]
    suite = ET.Element(
        "testsuite",
        name=printable(file.suite),
        tests=str(len(cases)),
        failures=_count(cases, "failure"),
        errors=_count(cases, "error"),
        skipped=_count(cases, "skipped"),
        time=f"{file.spent:.3f}",
        timestamp=datetime.fromtimestamp(file.began, UTC).strftime("%Y-%m-%dT%H:%M:%S"),
    )
    suite.extend(cases)
    return document(suite)


def _gone(file: SuiteFile, name: str, worse: Sequence[str]) -> ET.Element:
    case = ET.Element("testcase", name=printable(name), classname=printable(file.suite), time="0.000")
    _add_worse(case, file, worse)
    return case


def _add_worse(case: ET.Element, file: SuiteFile, worse: Sequence[str]) -> None:
    message = printable("; ".join(worse))
    text = f"worse than {printable(str(file.baseline))}: {message}"
    ET.SubElement(case, "failure", type="worse", message=message).text = text


def _passes(file: SuiteFile, run: Result) -> bool:
    return run.outcome in {RunOutcome.EXPECTED, RunOutcome.NOT_STARTED, RunOutcome.WAITING} or file.skips(run)


def _case(file: SuiteFile, run: Result, worse: Sequence[str]) -> ET.Element:
    name, suite, time = printable(label(run)), printable(file.suite), f"{run.seconds or 0:.3f}"
    case = ET.Element("testcase", name=name, classname=suite, time=time)
    why = printable(run.why)
    text = f"{run.outcome}: {why}" if why else str(run.outcome)
    if run.outcome in _FAILURES:
        ET.SubElement(case, "failure", type=str(run.verdict), message=why).text = text
    elif run.outcome is RunOutcome.CANNOT_RUN and not file.skips(run):
        ET.SubElement(case, "error", type=str(run.outcome), message=why).text = text
    elif worse:
        _add_worse(case, file, worse)
    elif run.outcome in _SKIPPED:
        ET.SubElement(case, "skipped", message=text)
    elif run.outcome is not RunOutcome.EXPECTED:
        ET.SubElement(case, "error", type=str(run.outcome), message=text).text = text
    ET.SubElement(case, "system-out").text = f"{text}\nseed {run.seed}\n{printable(run.directory or 'no directory')}"
    return case


def _count(cases: list[ET.Element], kind: str) -> str:
    return str(sum(case.find(kind) is not None for case in cases))
