"""A verdict as JUnit XML for CI servers: one test suite for each run."""

from datetime import UTC, datetime
from xml.etree import ElementTree as ET

from harness.core.clock import SECOND_NS
from harness.core.verdict import Judgement, Precondition, Verdict
from harness.history.run_file import RunFile


def render(verdict: Verdict, run_file: RunFile) -> str:
    """JUnit XML: a test case for the expectation, and one for each precondition.

    If the expectation is met, a precondition that is not met is ``skipped``, so that it does not fail the build.
    """
    cases = [_expectation(verdict), *(_precondition(held, verdict) for held in verdict.preconditions)]
    suite = ET.Element(
        "testsuite",
        name=verdict.scenario,
        tests=str(len(cases)),
        failures=str(sum(case.find("failure") is not None for case in cases)),
        skipped=str(sum(case.find("skipped") is not None for case in cases)),
        errors="0",
        time=f"{_seconds(run_file):.3f}",
        timestamp=datetime.fromtimestamp(run_file.origin_unix_ns / SECOND_NS, UTC).strftime("%Y-%m-%dT%H:%M:%S"),
    )
    properties = ET.SubElement(suite, "properties")
    for name, value in {"run": verdict.run, "seed": str(run_file.seed), **verdict.versions}.items():
        ET.SubElement(properties, "property", name=name, value=value)
    for case in cases:
        case.set("classname", verdict.scenario)
        suite.append(case)
    return document(suite)


def document(suite: ET.Element) -> str:
    """The text of a JUnit file with this one suite."""
    suites = ET.Element("testsuites")
    suites.append(suite)
    ET.indent(suites)
    page: bytes = ET.tostring(suites, encoding="utf-8", xml_declaration=True)
    return page.decode() + "\n"


def _expectation(verdict: Verdict) -> ET.Element:
    case = ET.Element("testcase", name="expectation")
    text = "\n".join(verdict.reasons)
    if not verdict.expected:
        kind = "unknown" if verdict.verdict is Judgement.UNKNOWN else "invalid"
        ET.SubElement(case, "failure", type=kind, message=verdict.reasons[-1]).text = text
    ET.SubElement(case, "system-out").text = text
    return case


def _precondition(held: Precondition, verdict: Verdict) -> ET.Element:
    case = ET.Element("testcase", name=f"precondition: {held.name}")
    if not held.met and verdict.expected:
        ET.SubElement(case, "skipped", message=held.detail)
    elif not held.met:
        ET.SubElement(case, "failure", type="precondition", message=held.detail)
    return case


def _seconds(run_file: RunFile) -> float:
    return max((phase.at_ns for phase in run_file.phases), default=0) / SECOND_NS
