"""The sections of a report, one entry each, in order: the same list for a terminal and for a page. Pure.

To add one, write a function that makes blocks of a verdict, and add a line to SECTIONS.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Flag, auto
from typing import Any

from harness.core.anomalies import BY_NAME
from harness.core.clock import SECOND_NS
from harness.core.faults import injection_of
from harness.core.verdict import Finding, Standing, Verdict
from harness.history.run_file import RunFile
from harness.report import words
from harness.report.blocks import Block, Card, Cells, Drawing, Facts, Figures, Folded, Lines, Marked
from harness.report.chart import chart
from harness.report.sentences import in_one_run


class Where(Flag):
    """Where a section is shown."""

    TERMINAL = auto()
    PAGE = auto()


EVERYWHERE = Where.TERMINAL | Where.PAGE


@dataclass(frozen=True)
class ReportData:
    """The data of all sections: a verdict, and its run.json if that is available (always for a page).

    ``most``: how many examples and runs of a finding are shown.
    """

    verdict: Verdict
    most: int
    run: RunFile | None = None


@dataclass(frozen=True)
class Section:
    """A section. ``blocks`` makes its blocks; without blocks, it is left out with its title. ``titled``: whether a
    terminal shows the title."""

    title: str
    blocks: Callable[[ReportData], Sequence[Block]]
    where: Where = EVERYWHERE
    titled: bool = True


def happened(report: ReportData) -> list[Block]:
    """The chart, the steps to which its numbers refer, and the phases."""
    if report.run is None or (drawn := chart(report.verdict, report.run)) is None:
        return []
    steps = [
        (
            words.seconds(step.at_ns, 1),
            step.step,
            Marked("" if step.met else "not met", "bad"),
            step.detail,
        )
        for step in report.run.timeline
    ]
    phases = " · ".join(f"{phase.phase} {words.seconds(phase.at_ns, 1)}" for phase in report.run.phases)
    numbered = [(str(number), *step) for number, step in enumerate(steps, 1)]
    title = f"The {len(steps)} steps that the numbers mean, and the phases of the run"
    return [
        Drawing(drawn),
        *([Folded(title, [Cells(numbered, long=True), Lines([phases], soft=True)])] if steps else []),
    ]


def summary(report: ReportData) -> list[Block]:
    """The counts of the report in "Jepsen: Kafka" (2013)."""
    return [Figures(words.summary_rows(report.verdict.summary))]


def found(report: ReportData) -> list[Block]:
    """Each finding: the anomalies of one cause, why they are permitted or not, where they are, and first examples."""
    return [_finding(finding, report) for finding in findings_of(report.verdict)]


def findings_of(verdict: Verdict) -> list[Finding]:
    """The findings of a verdict. An older verdict has none: then each anomaly is a finding."""
    if verdict.findings:
        return verdict.findings
    return [
        Finding(
            standing=anomaly.standing,
            because=anomaly.because,
            source=anomaly.source,
            remedy=anomaly.remedy,
            anomalies={name: anomaly.count},
            runs=anomaly.runs,
        )
        for name, anomaly in verdict.anomalies.items()
    ]


def _finding(finding: Finding, report: ReportData) -> Card:
    tone = "doubtful" if finding.standing is Standing.PERMITTED else "bad"
    facts = [
        ("cause", "" if in_one_run(finding) else finding.text),
        ("holders", words.holders(finding.runs)),
        ("because", finding.because),
        ("source", finding.source),
        ("remedy", finding.remedy or ""),
    ]
    first, *others = (_examples(name, finding, report) for name in finding.anomalies)
    return Card(
        finding.anomalies,
        Marked(finding.standing.value, tone),
        [
            *_runs(finding, report.most),
            Facts([fact for fact in facts if fact[1]]),
            *first.blocks,
            *(folded for folded in others if folded.blocks),
        ],
    )


def _runs(finding: Finding, most: int) -> Iterator[Block]:
    """Where the records were: a sentence for a single run, a row for each of several."""
    shown = finding.runs[:most]
    if finding.text and not in_one_run(finding):
        headers, rows = words.run_table(shown)
        yield Cells(rows, headers)
    else:
        yield Lines([str(run["text"]) for run in shown], label="records")
    yield from _more(len(finding.runs) - len(shown) + finding.more_runs, "more ranges of records: verdict.json")


def _examples(name: str, finding: Finding, report: ReportData) -> Folded:
    """The first records of an anomaly that belong to a finding."""
    anomaly, count = report.verdict.anomalies[name], finding.anomalies[name]
    rows = anomaly.examples
    if count < anomaly.count:
        rows = [row for row in rows if any(_within(row, run) for run in finding.runs)]
    rows = rows[: report.most]
    named = rows if report.run is None else [words.with_names(row, report.run.broker) for row in rows]
    alike, headers, cells = words.shared(*words.table(named))
    title = f"{name}: {count:,} {BY_NAME[name].sentence}" if name in BY_NAME else name
    blocks: list[Block] = [Lines([f"of each: {alike}"], soft=True)] if alike else []
    blocks += [Cells(cells, headers)] if cells else []
    return Folded(title, [*blocks, *_more(count - len(rows), f"more: anomalies/{name}/")])


def _within(row: Mapping[str, Any], run: Mapping[str, Any]) -> bool:
    """Whether an example is among the records of a range."""
    first, offset, last = run.get("first_offset"), row.get("offset"), run.get("last_offset")
    same_partition = (row.get("topic"), row.get("partition")) == (run.get("topic"), run.get("partition"))
    if first is None or last is None or offset is None:
        return same_partition and first is offset
    return same_partition and first <= offset <= last


def _more(number: int, what: str) -> Iterator[Block]:
    if number > 0:
        yield Lines([f"… and {number:,} {what}"], soft=True)


def not_met(report: ReportData) -> list[Block]:
    """The preconditions that were not met."""
    return [Lines(words.unmet(report.verdict))]


def preconditions(report: ReportData) -> list[Block]:
    """Every precondition."""
    rows = [
        (Marked("met", "good") if held.met else Marked("not met", "bad"), held.name, held.detail)
        for held in report.verdict.preconditions
    ]
    return [Cells(rows, header_column=1)]


def counted(report: ReportData) -> list[Block]:
    """Other counts, which are no anomalies."""
    return [Lines(words.counted_lines(report.verdict))]


def availability(report: ReportData) -> list[Block]:
    """How long no write was acknowledged."""
    return [Lines(words.availability_lines(report.verdict.availability))]


def faults(report: ReportData) -> list[Block]:
    """Every injection with its evidence."""
    rows = [
        (
            injection_of(row),
            row["kind"],
            " ".join(row["nodes"]),
            words.seconds(row["injected_ns"]),
            words.seconds(row["healed_ns"]),
            Marked("" if row["effective"] else "no evidence that it took effect", "bad"),
            Marked(row["evidence"], code=True),
        )
        for row in report.verdict.faults
    ]
    return [Cells(rows, ("injection", "fault", "nodes", "injected", "healed", "", "evidence"), long=True)]


def configuration(report: ReportData) -> list[Block]:
    """The settings that promises depend on, and the whole scenario."""
    if report.run is None:
        return []
    whole = [(Marked(name, code=True), value) for name, value in words.flattened(report.run.scenario)]
    return [
        Cells([*words.flattened(report.run.configuration.model_dump())], header_column=0),
        Folded("The whole scenario, with all defaults", [Cells(whole, header_column=0, long=True)]),
    ]


def versions(report: ReportData) -> list[Block]:
    """The time of the run, its seed, the versions of all software, and the run's notes."""
    if report.run is None:
        return []
    began = datetime.fromtimestamp(report.run.origin_unix_ns / SECOND_NS, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    levels = {name: str(level) for name, level in report.run.features.items()}
    judge = {f"judged with {name}": version for name, version in report.verdict.judge.items()}
    rows = {"begun": began, "seed": str(report.run.seed), **report.verdict.versions, **levels, **judge}
    return [Cells([*rows.items()], header_column=0), Lines(report.run.notes)]


SECTIONS: tuple[Section, ...] = (
    Section("What happened", happened, Where.PAGE),
    Section("Summary", summary, titled=False),
    Section("Findings", found, titled=False),
    Section("Preconditions not met", not_met, Where.TERMINAL),
    Section("What the verdict rests on", preconditions, Where.PAGE),
    Section("Also counted", counted),
    Section("Availability", availability),
    Section("Faults", faults, Where.PAGE),
    Section("Configuration", configuration, Where.PAGE),
    Section("Versions", versions, Where.PAGE),
)


def shown(
    report: ReportData, where: Where, sections: Sequence[Section] = SECTIONS
) -> Iterator[tuple[Section, list[Block]]]:
    """The sections that have blocks to show ``where``, each with its blocks."""
    for section in sections:
        blocks = [block for block in section.blocks(report) if not _empty(block)] if where in section.where else []
        if blocks:
            yield section, blocks


def _empty(block: Block) -> bool:
    match block:
        case Lines(lines=content) | Facts(facts=content) | Figures(rows=content) | Cells(rows=content):
            return not content
        case _:
            return False
