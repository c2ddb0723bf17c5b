"""What a suite leaves for CI servers, for a job's page and for a browser."""

from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from harness.core.verdict import Judgement, Verdict
from harness.suite import junit
from harness.suite.display import result_words
from harness.suite.reports import annotations, append_summary, markdown, page, write_reports
from harness.suite.results import RunOutcome, SuiteFile, clock
from tests.report.verdicts import verdict
from tests.suite.fakes import case, suite_file


def verdict_of(judged: Judgement, *reasons: str) -> Verdict:
    return verdict(judged, reasons=list(reasons), expected=len(reasons) == 1)


@pytest.fixture
def file() -> SuiteFile:
    """One run of each outcome, and of one case five, of which one was not as expected."""
    found = suite_file(
        *(case(str(outcome)) for outcome in RunOutcome), *(case("often", n) for n in range(1, 6)), ended=9
    )
    for run, outcome in zip(found.runs, RunOutcome, strict=False):
        run.outcome, run.why, run.directory = outcome, f"because | <{outcome}>\x07", f"{outcome}/1"
        run.verdict = None if outcome in {RunOutcome.CANNOT_RUN, RunOutcome.CRASHED} else "valid"  # type: ignore[assignment]
    for run in found.runs[len(RunOutcome) :]:
        run.outcome, run.verdict = RunOutcome.EXPECTED, "invalid"  # type: ignore[assignment]
    found.runs[-1].outcome, found.runs[-1].verdict = RunOutcome.UNEXPECTED, "valid"  # type: ignore[assignment]
    return found


def kinds(file: SuiteFile) -> dict[str, str]:
    cases = ET.fromstring(junit.render(file)).findall("testsuite/testcase")
    return {
        str(case.get("name")): next((child.tag for child in case if child.tag != "system-out"), "passed")
        for case in cases
    }


def test_junit_has_a_case_for_every_run_and_only_expected_runs_pass(file: SuiteFile) -> None:
    assert kinds(file) == {
        "waiting": "skipped",
        "running": "error",
        "recorded": "error",
        "as expected": "passed",
        "not as expected": "failure",
        "unknown": "failure",
        "cannot run": "error",
        "crashed": "error",
        "interrupted": "error",
        "not started": "skipped",
        "often": "passed",
        "often #2": "passed",
        "often #3": "passed",
        "often #4": "passed",
        "often #5": "failure",
    }


def test_a_run_that_cannot_run_is_skipped_if_the_suite_says_so(file: SuiteFile) -> None:
    file.cannot_run = "skip"
    assert kinds(file)["cannot run"] == "skipped"


def test_junit_counts_its_cases(file: SuiteFile) -> None:
    [suite] = ET.fromstring(junit.render(file)).findall("testsuite")
    counted = {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")}
    assert counted == {"tests": "15", "failures": "3", "errors": "5", "skipped": "2"}


def test_the_summary_says_how_many_of_the_runs_of_a_case_came_out_as_expected(file: SuiteFile) -> None:
    rows = [line for line in markdown(file).splitlines() if line.startswith("|")]
    assert "| ❌ | often | 4 invalid, 1 valid | 4 of 5 |  |" in rows
    assert len(rows) == 2 + len(RunOutcome) + 1


def test_messages_do_not_break_the_markdown_table(file: SuiteFile) -> None:
    row = next(line for line in markdown(file).splitlines() if "| crashed |" in line)
    assert row.replace("\\|", "").count("|") == 6
    assert "<crashed>" not in row


def test_no_character_of_a_message_means_more_than_text_in_markdown() -> None:
    run = suite_file(case("a")).runs[0]
    run.outcome, run.why = RunOutcome.CRASHED, r"*x* [y](z) `w` a_b ~~c~~ p\|q <b>"
    text = markdown(suite_file(case("a")).model_copy(update={"runs": [run]}))
    assert r"\*x\* \[y\](z) \`w\` a\_b \~\~c\~\~ p\\\|q &lt;b>" in text


def test_the_settings_that_a_suite_was_started_with_are_in_its_reports() -> None:
    file = suite_file(case("a")).model_copy(update={"settings": ["workload.acks=1", "cluster.version=3.9.2"]})
    assert "With workload.acks=1, cluster.version=3.9.2." in markdown(file).splitlines()
    assert "<code>workload.acks=1, cluster.version=3.9.2</code>" in page(file, Path())
    assert "With" not in markdown(suite_file(case("a")))


def test_the_page_links_reports_of_judged_runs_and_escapes_messages(file: SuiteFile, tmp_path: Path) -> None:
    links: list[str] = []
    (tmp_path / "as expected" / "1").mkdir(parents=True)

    class Links(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            links.extend(str(value) for name, value in attrs if name == "href")

    text = page(file, tmp_path)
    Links().feed(text)
    assert "../as%20expected/1/report.html" in links
    assert not any("crashed" in link for link in links)
    assert "<crashed>" not in text


def test_all_three_stand_beside_suite_json(file: SuiteFile, tmp_path: Path) -> None:
    index = write_reports(file, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index.html", "junit.xml", "summary.md"]
    assert index == tmp_path / "index.html"


def test_github_gets_a_summary_where_it_runs_it(file: SuiteFile, tmp_path: Path) -> None:
    summary = tmp_path / "summary"
    summary.write_text("before\n")
    append_summary(file, {"GITHUB_STEP_SUMMARY": str(summary)})
    assert summary.read_text() == "before\n" + markdown(file) + "\n"
    append_summary(file, {})


def test_every_report_names_runs_that_are_worse_than_the_baseline() -> None:
    file = suite_file(case("a"), case("a", 2), case("b"), baseline="old")
    for run in file.runs:
        run.outcome = RunOutcome.EXPECTED
    assert kinds(file) == {"a": "passed", "a #2": "passed", "b": "passed"}
    assert "0 of 2 scenarios are worse than old" in markdown(file)
    file.worse = {"a": ["lost: <not> found before"]}
    assert kinds(file) == {"a": "failure", "a #2": "passed", "b": "passed"}
    assert markdown(file).endswith("### 1 of 2 scenarios are worse than old\n\n- a: lost: &lt;not> found before\n")
    assert "<li>a: lost: &lt;not&gt; found before</li>" in page(file, Path())
    assert annotations(file) == ["::error title=a::worse: lost: <not> found before"]
    file.runs[0].outcome = RunOutcome.UNEXPECTED
    assert kinds(file) == {"a": "failure", "a #2": "failure", "b": "passed"}


@pytest.mark.parametrize("outcome", [RunOutcome.CANNOT_RUN, RunOutcome.NOT_STARTED])
def test_a_worse_run_is_a_failure_in_junit_even_if_it_was_skipped(outcome: RunOutcome) -> None:
    file = suite_file(case("a"), case("b"), baseline="old", cannot_run="skip")
    file.runs[0].outcome = file.runs[1].outcome = outcome
    file.worse = {"a": ["cannot run now, was run before"]}
    assert kinds(file) == {"a": "failure", "b": "skipped"}
    assert "worse than old: cannot run now, was run before" in junit.render(file)


def test_junit_is_well_formed_whatever_the_names_are() -> None:
    evil = "a\x00b\x1b[31m\ufffe]]><&\n"
    file = suite_file(case("a"), case("b"), case("c"), suite=evil, worse={"b": [evil], evil * 2: [evil]})
    file.runs[0].name = file.baseline = evil
    for run, outcome in zip(file.runs, (RunOutcome.CRASHED, RunOutcome.EXPECTED, RunOutcome.UNEXPECTED), strict=True):
        run.outcome, run.why, run.directory = outcome, evil, evil
    shown = "a\\x00b\\x1b[31m\\ufffe]]><&\\n"
    assert kinds(file) == {shown: "error", "b": "failure", "c": "failure", shown * 2: "failure"}


def test_an_annotation_is_one_line_whatever_is_said() -> None:
    file = suite_file(case("a:b,c"))
    file.runs[0].outcome, file.runs[0].why = RunOutcome.CRASHED, "first\nsecond 100%"
    assert annotations(file) == ["::error title=a%3Ab%2Cc::crashed: first%0Asecond 100%25"]


def test_a_run_that_the_suite_skips_is_a_warning() -> None:
    file = suite_file(case("a"), case("b"), cannot_run="skip")
    file.runs[0].outcome, file.runs[1].outcome = RunOutcome.CANNOT_RUN, RunOutcome.EXPECTED
    assert annotations(file) == ["::warning title=a::cannot run"]


@pytest.mark.parametrize("cannot_run", ["skip", "fail"])
def test_a_run_left_out_by_the_time_budget_is_a_warning(cannot_run: str) -> None:
    file = suite_file(case("a"), cannot_run=cannot_run)
    file.runs[0].outcome = RunOutcome.NOT_STARTED
    assert annotations(file) == ["::warning title=a::not started"]


@pytest.mark.parametrize(("seconds", "text"), [(9.4, "9 s"), (59.6, "1 min 0 s"), (552, "9 min 12 s")])
def test_time_is_written_in_minutes(seconds: float, text: str) -> None:
    assert clock(seconds) == text


def test_the_reports_give_the_time_of_runs_besides_their_timelines() -> None:
    file = suite_file(case("a"), case("b"), case("c"), spent=90.0)
    assert file.cost == "1 min 30 s"
    file.runs[0].timeline_seconds, file.runs[1].timeline_seconds = 30.0, 31.0
    assert file.cost == "1 min 30 s, of which 1 min 1 s were timelines: 14.5 s more for each run"
    assert file.cost in markdown(file)
    assert file.cost in page(file, Path())
    file.spent = 40.0
    assert file.cost == "40 s"


@pytest.mark.parametrize(
    ("judged", "words"),
    [
        (
            verdict_of(Judgement.INVALID, "lost: 520 of 987", "not as expected: expected valid, judged invalid"),
            "invalid, not as expected: expected valid, judged invalid; lost: 520 of 987",
        ),
        (
            verdict_of(
                Judgement.UNKNOWN, "unknown: no evidence: cut", "not as expected: expected valid, judged unknown"
            ),
            "unknown: expected valid, judged unknown; unknown: no evidence: cut",
        ),
        (verdict_of(Judgement.INVALID, "lost: 520 of 987"), "invalid, as expected: lost: 520 of 987"),
    ],
)
def test_an_unexpected_run_names_its_expectation_and_its_findings_once(judged: Verdict, words: str) -> None:
    run = suite_file(case("a")).runs[0]
    run.judged(judged)
    assert result_words(run) == words
