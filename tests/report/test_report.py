"""The report of a verdict; and machines can read the parts that are meant for them."""

import io
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from harness.core.verdict import Judgement, Standing, Verdict
from harness.history.run_file import NodeAddress, RunFile
from harness.report import html, junit, show, words, write
from harness.report.blocks import Block, Cells, Lines, Marked
from harness.report.chart import chart, nice
from harness.report.sections import SECTIONS, ReportData, Section, Where, shown
from tests.report.verdicts import SECOND, example, lost, run_file, verdict

ALL = [
    verdict(),
    verdict(Judgement.VALID, expected=False),
    verdict(Judgement.INVALID),
    verdict(Judgement.INVALID, expected=False, anomalies={"lost": lost(Standing.VIOLATION, count=2)}),
    verdict(Judgement.UNKNOWN, expected=False, partial=True),
    verdict(Judgement.UNKNOWN, availability={}, faults=[]),
]


def on_terminal(judged: Verdict, **where: Any) -> str:
    console = Console(file=io.StringIO(), width=160)
    show(judged, console, **where)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("judged", ALL)
def test_every_verdict_is_shown_with_its_reasons(judged: Verdict) -> None:
    text = on_terminal(judged)
    assert text.startswith(judged.verdict.upper())
    assert all(reason in text for reason in judged.reasons)


def test_an_invalid_verdict_is_shown_with_its_anomalies() -> None:
    text = on_terminal(verdict(Judgement.INVALID), directory=Path("store/run"), report=Path("store/run/report.html"))
    for said in (
        "INVALID, as expected",
        "520  52.68 % of acknowledged",
        "lost 520  permitted",
        "because: min.insync.replicas=1 with unclean leader election",
        "source: KIP-106 & Jepsen: Kafka (2013)",
        "remedy: min.insync.replicas=2",
        "of each: partition trial-0 · sent 15.000 s · acknowledged 16.000 s · leader b1 (epoch 3) · ISR b1 · "
        "faults cut <isolate>\n  offset  record",
        "\n  0       worker 0 #0",
        "… and 517 more: anomalies/lost/",
        "longest without an acknowledgement: 6.0 s, from 20.0 s until 26.0 s",
        "cut: first acknowledgement 0.500 s after the injection, none after its heal",
        "store/run/report.html",
    ):
        assert said in text
    assert "Preconditions not met" not in text


def test_an_unknown_verdict_is_shown_with_what_was_not_met() -> None:
    text = on_terminal(verdict(Judgement.UNKNOWN, expected=False, partial=True))
    assert "UNKNOWN (of a partial history), not as expected" in text
    assert "Preconditions not met\n  faults took effect: no evidence: cut" in text


def test_a_line_of_a_log_is_not_wrapped() -> None:
    long = "because " * 60
    assert f"  {long.strip()}\n" in on_terminal(verdict(reasons=[long.strip()]))


def test_a_stretch_that_never_ended_says_so() -> None:
    longest = {"from_ns": SECOND, "to_ns": 3 * SECOND, "lasted_ns": 2 * SECOND, "ended": False}
    text = on_terminal(verdict(availability={"longest_unavailable": longest, "after_faults": []}))
    assert "2.0 s, from 1.0 s and none came after it" in text


def test_several_partitions_are_shown_the_worst_first() -> None:
    def part(number: int, lasted: float | None) -> dict:
        longest = {"from_ns": SECOND, "to_ns": 9 * SECOND, "ended": True}
        gone = None if lasted is None else {**longest, "lasted_ns": int(lasted * SECOND)}
        return {"topic": "trial", "partition": number, "longest_unavailable": gone, "after_faults": []}

    def lines(*lasted: float | None) -> list[str]:
        parts = [part(number, gone) for number, gone in enumerate(lasted)]
        overall = {"from_ns": 0, "to_ns": SECOND, "lasted_ns": SECOND * 2 // 5, "ended": True}
        served = {"longest_unavailable": overall, "after_faults": [], "partitions": parts}
        return [line.removeprefix("longest without an acknowledgement: ") for line in words.availability_lines(served)]

    until = "from 1.0 s until 9.0 s"
    assert lines(0.4, 7.3) == [f"trial-1 7.3 s, {until}", f"trial-0 0.4 s, {until}"]
    assert lines(None, 1) == [f"trial-1 1.0 s, {until}"]
    assert lines(1, 5, 2, 4, 3)[1:3] == [f"trial-3 4.0 s, {until}", f"trial-4 3.0 s, {until}"]
    assert lines(1, 5, 2, 4, 3)[3:] == ["… and 2 more partitions, 2.0 s at most"]
    assert lines(7.3) == ["0.4 s, from 0.0 s until 1.0 s"]


@pytest.mark.parametrize(
    ("injected", "healed", "line"),
    [
        (0, SECOND, "cut: first acknowledgement 0.000 s after the injection, 1.000 s after its heal"),
        (SECOND, None, "cut: first acknowledgement 1.000 s after the injection, none after its heal"),
        (None, SECOND, "cut: first acknowledgement 1.000 s after its heal"),
        (None, None, "cut: no known acknowledgement after it"),
    ],
)
def test_a_line_says_how_soon_an_acknowledgement_came_after_a_fault_and_its_heal(
    injected: int | None, healed: int | None, line: str
) -> None:
    fault = {"fault": "cut", "first_ack_after_injection_ns": injected, "first_ack_after_heal_ns": healed}
    assert words.availability_lines({"after_faults": [fault], "partitions": []}) == [line]


def test_of_several_partitions_the_slowest_after_a_heal_is_shown() -> None:
    def part(number: int, waited: dict | None) -> dict:
        return {"topic": "trial", "partition": number, "after_faults": [{"awaited_after_heal": waited}]}

    def waited(seconds: int, ended: bool) -> dict:
        return {"lasted_ns": seconds * SECOND, "ended": ended}

    def line(*parts: dict) -> str:
        fault = {"fault": "cut", "first_ack_after_injection_ns": 0, "first_ack_after_heal_ns": SECOND}
        served = {"longest_unavailable": None, "after_faults": [fault], "partitions": list(parts)}
        return next(line for line in words.availability_lines(served))

    alone = "cut: first acknowledgement 0.000 s after the injection, 1.000 s after its heal"
    assert line(part(0, waited(1, True))) == alone
    assert line(part(0, waited(1, True)), part(1, None)) == alone
    assert line(part(0, waited(1, True)), part(1, waited(4, True))) == f"{alone}; trial-1 awaited one for 4.000 s"
    assert line(part(0, waited(7, False)), part(1, waited(4, True))).endswith(
        "; trial-0 awaited one for 7.000 s, and none came"
    )


def test_other_counts_are_shown_on_the_terminal_and_on_the_page() -> None:
    judged = verdict(
        redelivered={"crash": 1200, "rebalance": 3},
        at_risk={0: 7, 1: 13943},
        transactions={"committed": 90, "aborted": 0, "unknown": 2, "unknown_resolved": {"whole": 2, "absent": 0}},
    )
    lines = [
        "acknowledged while a fault could take them: 7 on an unknown number of brokers, 13,943 on 1 broker",
        "transactions: 90 committed, 2 unknown; of the unknown found 2 whole",
        "delivered again, as at-least-once allows: 1,200 (crash), 3 (rebalance)",
    ]
    assert "Also counted\n" + "".join(f"  {line}\n" for line in lines) in on_terminal(judged)
    page = html.render(judged, run_file())
    assert all(f"<p>{line}</p>" in page for line in lines)
    assert "Also counted" not in on_terminal(verdict()) + html.render(verdict(), run_file())


@pytest.mark.parametrize("judged", ALL)
def test_the_page_is_well_formed_and_tells_the_verdict(judged: Verdict) -> None:
    page = html.render(judged, run_file())
    root = ET.fromstring(page.removeprefix("<!DOCTYPE html>\n"))
    words = " ".join("".join(root.itertext()).split())
    assert judged.verdict.upper() in words
    assert all(held.detail in words for held in judged.preconditions)
    assert "acks=all & unclean election lose <writes>" in words


def test_the_page_needs_nothing_but_itself() -> None:
    root = ET.fromstring(html.render(ALL[2], run_file()).removeprefix("<!DOCTYPE html>\n"))
    assert [e.tag for e in root.iter() if e.tag in {"link", "script", "img"} or "src" in e.attrib] == []


def test_the_page_shows_every_example_and_every_fault() -> None:
    root = ET.fromstring(html.render(ALL[2], run_file()).removeprefix("<!DOCTYPE html>\n"))
    cells = [cell.text for cell in root.iter("td")]
    assert [f"worker 0 #{n}" in cells for n in range(20)] == [True] * 20
    assert [band.text for band in root.iter("text") if band.get("class") == "name"] == ["cut", "<isolate>", "kill"]


def test_the_chart_draws_what_was_acknowledged_within_its_frame() -> None:
    drawn = chart(verdict(), run_file())
    assert drawn is not None
    assert [mark.label for mark in drawn.rates] == ["0", "100", "200", "300"]
    assert drawn.line.startswith(f"M{drawn.left:.1f} ")
    assert drawn.line.endswith(f"H{drawn.right:.1f}")
    assert [mark.label for mark in drawn.seconds][:2] == ["10 s", "12 s"]
    assert [mark.label for mark in drawn.step_numbers] == ["1", "2–3", "4"]
    assert [mark.met for mark in drawn.steps] == [True, True, True, False]


def test_the_chart_lets_a_fault_that_was_never_healed_last_to_its_end() -> None:
    drawn = chart(verdict(), run_file())
    assert drawn is not None
    assert drawn.bands[2].left + drawn.bands[2].width == pytest.approx(drawn.right)
    assert drawn.bands[2].title == "kill (partition): b1 b2, never healed, no evidence"


def test_there_is_no_chart_of_nothing() -> None:
    nothing = verdict(availability={}, faults=[])
    assert chart(nothing, run_file().model_copy(update={"timeline": []})) is None


@pytest.mark.parametrize(("least", "step"), [(0, 1), (1, 1), (1.1, 2), (3, 5), (7, 10), (120, 200)])
def test_ticks_are_round(least: float, step: float) -> None:
    assert nice(least) == step


def suite(judged: Verdict) -> ET.Element:
    found = ET.fromstring(junit.render(judged, run_file())).find("testsuite")
    assert found is not None
    return found


@pytest.mark.parametrize("judged", ALL)
def test_junit_has_a_case_for_the_expectation_and_one_for_each_precondition(judged: Verdict) -> None:
    names = [case.get("name") for case in suite(judged).iter("testcase")]
    assert names == ["expectation", "precondition: something attempted", "precondition: faults took effect"]


@pytest.mark.parametrize(
    ("judged", "failures", "skipped"),
    [
        (verdict(), 0, 0),
        (verdict(Judgement.INVALID), 0, 0),
        (verdict(Judgement.INVALID, expected=False), 1, 0),
        (verdict(Judgement.UNKNOWN, expected=False), 2, 0),
        (verdict(Judgement.UNKNOWN), 0, 1),
    ],
)
def test_junit_fails_where_the_expectation_is_not_met(judged: Verdict, failures: int, skipped: int) -> None:
    found = suite(judged)
    assert (found.get("failures"), found.get("skipped")) == (str(failures), str(skipped))
    assert (len(found.findall("*/failure")), len(found.findall("*/skipped"))) == (failures, skipped)


def test_all_of_a_verdict_is_written_beside_its_run(tmp_path: Path) -> None:
    judged = verdict(Judgement.INVALID)
    report = write(tmp_path, judged, run_file())
    assert report == tmp_path / "report.html"
    assert Verdict.model_validate(json.loads((tmp_path / "verdict.json").read_text())) == judged
    assert ET.parse(tmp_path / "junit.xml").getroot().tag == "testsuites"
    assert "lost: 520" in report.read_text()


def test_a_field_that_a_checker_adds_to_an_example_is_shown_by_its_name() -> None:
    row = {
        **example(0),
        "copies": 3,
        "gone_to": 41,
        "also_leading": [{"leader": "b2", "leader_epoch": 4, "isr": ["b2"]}],
    }
    text = on_terminal(verdict(Judgement.INVALID, anomalies={"lost": lost().model_copy(update={"examples": [row]})}))
    assert "also leading" in text
    assert "b2 (epoch 4)" in text
    assert "copies" in text
    assert "furthest before" in text
    assert "gone_to" not in text


@pytest.mark.parametrize(("records", "shown"), [(31, "31"), ([0, 1], "worker 0 #0, worker 0 #1")])
def test_records_are_those_of_an_offset_or_the_number_of_those_of_a_transaction(
    records: list[int] | int, shown: str
) -> None:
    headers, [cells] = words.table([{**example(0), "records": records}])
    assert cells[headers.index("records")] == shown


def test_brokers_are_called_by_their_names_in_every_report() -> None:
    changed = {"changed_to": {"leader": 2, "leader_epoch": 4, "isr": [2]}}
    row = {**example(0), "leader": 1, "isr": [1, 2], **changed, "also_leading": [{"leader": 7, "leader_epoch": 2}]}
    judged = verdict(Judgement.INVALID, anomalies={"lost": lost().model_copy(update={"examples": [row]})})
    nodes = [NodeAddress(name=f"b{n}", role="broker", id=n, address=f"10.0.0.{n}") for n in (1, 2)]
    run = run_file().model_copy(update={"nodes": nodes})
    for text in (on_terminal(judged, run=run), html.render(judged, run)):
        assert all(said in text for said in ("b1 (epoch 3) → b2 (epoch 4)", "b1 b2 → b2", "broker 7 (epoch 2)"))


def test_runs_are_shown_in_every_report() -> None:
    runs = [{"text": f"trial-0: run <{n}>"} for n in range(5)]
    judged = verdict(Judgement.INVALID, anomalies={"lost": lost().model_copy(update={"runs": runs})})
    text = on_terminal(judged)
    assert "records: trial-0: run <2>" in text
    assert "run <3>" not in text
    assert "… and 2 more ranges of records: verdict.json" in text
    root = ET.fromstring(html.render(judged, run_file()).removeprefix("<!DOCTYPE html>\n"))
    assert [f"trial-0: run <{n}>" for n in range(5)] == [e.text for e in root.iter("li") if "run <" in (e.text or "")]


def toy(report: ReportData) -> list[Block]:
    """A section of a test's own: how long the scenario's name is."""
    return [Lines([f"{len(report.verdict.scenario)} <letters>"]), Cells([("a", Marked("b", "bad"))], ("one", "two"))]


def test_a_section_is_one_entry_for_text_and_page_alike() -> None:
    sections = (*SECTIONS, Section("Toy", toy))
    text = on_terminal(verdict(), sections=sections)
    assert "\nToy\n  28 <letters>\n" in text
    page = ET.fromstring(html.render(verdict(), run_file(), sections).removeprefix("<!DOCTYPE html>\n"))
    assert [title.text for title in page.iter("h2")][-1] == "Toy"
    assert "28 <letters>" in [line.text for line in page.iter("p")]
    assert [span.text for span in page.iter("span") if span.get("class") == "bad"][-1] == "b"
    assert "Toy" not in on_terminal(verdict()) + html.render(verdict(), run_file())


def test_a_section_is_shown_only_where_it_belongs_and_has_something_to_say() -> None:
    sections = [Section("Here", toy, Where.TERMINAL), Section("There", toy, Where.PAGE), Section("Mute", lambda _: [])]
    sections.append(Section("Empty", lambda _: [Lines([])]))
    verdicts = ReportData(verdict(), most=3)
    assert [section.title for section, _ in shown(verdicts, Where.TERMINAL, sections)] == ["Here"]
    assert [section.title for section, _ in shown(verdicts, Where.PAGE, sections)] == ["There"]


def test_a_run_file_made_by_hand_can_be_stored(tmp_path: Path) -> None:
    run_file().write(tmp_path)
    assert RunFile.read(tmp_path) == run_file()
