"""One cause is reported once: on a terminal of any width, on the page, in JUnit's file and a suite's table."""

import io
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from harness.core.verdict import CauseOf, Expectation, Finding, FoundAnomaly, Judgement, Precondition, Standing, Verdict
from harness.report import html, junit, show
from harness.report.sections import findings_of
from harness.report.sentences import cause, with_sentences
from tests.report.verdicts import SECOND, example, lost, run_file, verdict

BECAUSE = "min.insync.replicas=1 with unclean leader election"
SAID = (
    "lost: 520 of 987 acknowledged writes are not in the final log "
    f"(by the same cause: vanished 40); permitted: {BECAUSE}"
)
EXPECTED = Expectation(verdict=Judgement.INVALID, anomalies=["lost", "vanished"], not_met=["cluster observed"])


def run(partition: int = 0, first: int = 100, last: int = 619, **more: Any) -> dict[str, Any]:
    """A run of a finding, as verdict.json has it."""
    return {
        "topic": "trial",
        "partition": partition,
        "first_offset": first,
        "last_offset": last,
        "count": last - first + 1,
        "acknowledged": last - first + 1,
        "again_to": None,
        "first_ns": 15 * SECOND,
        "last_ns": 19 * SECOND,
        "leader": 3,
        "leader_name": "b3",
        "leader_epoch": 4,
        "isr": [[3]],
        "isr_names": [["b3"]],
        "hole": False,
        "faults": ["cut"],
        "elected": {
            "leader": 1,
            "leader_epoch": 5,
            "at_ns": 20 * SECOND,
            "in_isr": False,
            "name": "b1",
            "faults": ["cut"],
        },
        "standing": "permitted",
        "must": ["b3"],
        "need_not": ["b1", "b2"],
        "unknown": [],
        "anomalies": {"lost": last - first + 1},
        **more,
    }


def election(partition: int, name: str = "b1", at: float = 20, in_isr: bool | None = False) -> dict[str, Any]:
    at_ns = int(at * SECOND)
    place = {"topic": "trial", "partition": partition, "leader": int(name[1:]), "name": name}
    return {**place, "leader_epoch": 5, "at_ns": at_ns, "in_isr": in_isr}


def by_election(*elections: dict[str, Any], faults: list[str] | None = None) -> dict[str, Any]:
    at = [one["at_ns"] for one in elections]
    span = {"from_ns": min(at), "to_ns": max(at), "faults": ["cut"] if faults is None else faults}
    stood = {one["in_isr"] for one in elections}
    alike = {"in_isr": stood.pop()} if len(stood) == 1 else {}
    who = {"leaders": list(dict.fromkeys(one["name"] for one in elections)), **alike}
    return {"event": CauseOf.ELECTION, **span, **who, "partitions": len(elections), "elections": list(elections)[:20]}


def finding(**changes: Any) -> Finding:
    of = {
        "standing": Standing.PERMITTED,
        "because": BECAUSE,
        "source": "KIP-106",
        "remedy": "min.insync.replicas=2",
        "cause": by_election(election(0)),
        "anomalies": {"lost": 520, "vanished": 40},
        "runs": [run(anomalies={"lost": 520, "vanished": 40})],
    }
    return Finding(**{**of, **changes})


def without_sentences(*findings: Finding, **changes: Any) -> Verdict:
    vanished = FoundAnomaly(
        count=40,
        standing=Standing.PERMITTED,
        because=BECAUSE,
        source="KIP-106",
        examples=[{**example(n), "offset": 100 + n, "read_ns": 17 * SECOND} for n in range(20)],
    )
    own = lost().model_copy(update={"examples": [{**example(n), "offset": 100 + n} for n in range(20)]})
    found = {"lost": own, "vanished": vanished}
    return verdict(Judgement.INVALID, anomalies=found, findings=list(findings), **changes)


def judged(*findings: Finding, expect: Expectation = EXPECTED, **changes: Any) -> Verdict:
    return with_sentences(without_sentences(*findings, **changes), run_file().model_copy(update={"expect": expect}))


def on_terminal(of: Verdict, width: int = 160, terminal: bool = True) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=terminal, color_system=None)
    show(of, console, run=run_file())
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_a_cause_is_shown_once_at_every_width(width: int) -> None:
    text = on_terminal(judged(finding()), width)
    words = " ".join(text.split())
    assert max(map(len, text.splitlines())) <= width
    assert words.count(BECAUSE) == 1
    assert words.count("was elected at 20.0 s (epoch 5) while cut was active") == 1
    assert words.count("b3 must have had them; b1 and b2 need not") == 1
    assert "lost 520, vanished 40 permitted" in words
    assert "…" not in words.replace("… and 517 more: anomalies/lost/", "")


@pytest.mark.parametrize("width", [50, 80])
def test_a_table_that_is_too_wide_is_shown_row_by_row(width: int) -> None:
    rows = [{**example(n), "sent_ns": n * SECOND, "acknowledged_ns": (n + 9) * SECOND} for n in range(2)]
    rows = [{**row, "leader": f"broker-{n}", "faults": [f"cut-{n}"] * 3} for n, row in enumerate(rows)]
    of = verdict(Judgement.INVALID, anomalies={"lost": lost().model_copy(update={"examples": rows})})
    text = on_terminal(of, width)
    assert max(map(len, text.splitlines())) <= width
    assert "offset 1 · record worker 0 #1 · sent 1.000 s ·" in " ".join(text.split())
    assert "offset  record" not in text
    assert "faults cut-1 cut-1 cut-1" in " ".join(text.split())


def test_a_line_of_a_log_is_shown_as_one_however_long() -> None:
    text = on_terminal(judged(finding()), 80, terminal=False)
    assert f"  because: {BECAUSE}\n" in text
    assert any(len(line) > 80 for line in text.splitlines())


def test_the_reasons_have_a_line_for_each_finding_and_one_for_where_it_was() -> None:
    unmet = Precondition(name="cluster observed", met=False, detail="not at all")
    assert judged(finding(), preconditions=[unmet]).reasons == [
        SAID,
        "lost: trial-0: offsets 100–619 (520 records), acknowledged 15.0–19.0 s by b3 (epoch 4) alone in the ISR, lost "
        "when b1, not in the ISR, was elected at 20.0 s (epoch 5) while cut was active",
        "unknown: cluster observed: not at all",
    ]


def test_two_findings_of_one_anomaly_are_two() -> None:
    untaken = finding(
        standing=Standing.VIOLATION,
        because="Kafka promises",
        remedy=None,
        cause={"event": CauseOf.NOTHING, "hole": True},
        anomalies={"lost": 5},
        runs=[run(first=7, last=11, hole=True, elected=None, standing="violation", must=["b1", "b2", "b3"])],
    )
    of = judged(untaken, finding())
    said = "lost: 5 of 987 acknowledged writes are not in the final log; violation: Kafka promises"
    assert of.reasons[::2] == [said, SAID]
    assert "between records of one leader epoch" in of.reasons[1]
    text = on_terminal(of)
    assert text.index("lost 5  violation") < text.index("lost 520, vanished 40  permitted")
    assert text.count("Kafka promises") == 1
    # The examples are the first of the anomaly: none of them is of the first finding.
    assert "… and 5 more: anomalies/lost/" in text


def test_of_many_findings_the_reasons_have_the_first_10() -> None:
    untaken = {"event": CauseOf.UNKNOWN, "hole": False}
    many = [finding(cause=untaken, anomalies={"lost": 50 - n}, runs=[], more_runs=2) for n in range(13)]
    *reported, left = judged(*many).reasons
    assert [line.split()[1] for line in reported[::2]] == [str(50 - n) for n in range(10)]
    assert reported[1::2] == ["lost: nobody knows what took them"] * 10
    assert left == "… and 3 more findings: verdict.json"


def test_one_event_of_several_partitions_is_shown_with_a_row_for_each() -> None:
    elections = [election(0), election(1, at=20.4), election(2, "b2", at=20.9)]
    runs = [run(n, anomalies={"lost": 520 - n}, leader_epoch=n) for n in range(3)]
    text = on_terminal(judged(finding(cause=by_election(*elections), runs=runs)), 80)
    said = " ".join(text.split())
    assert "cause: b1 and b2, not in the ISR, were elected in trial-0, trial-1 and trial-2 at 20.0–20.9 s" in said
    assert [line.split() for line in text.splitlines() if line.startswith("  trial-")] == [
        [f"trial-{n}", "100–619", "520", "15.0–19.0", "s", "b3", "(epoch", f"{n})"] for n in range(3)
    ]
    assert said.count("b3 must have had them") == 1


def test_holders_have_a_column_if_runs_differ_in_them() -> None:
    runs = [run(0), run(1, must=["b1", "b3"], need_not=["b2"], standing="violation")]
    text = on_terminal(judged(finding(cause=by_election(election(0), election(1)), runs=runs)))
    assert [line.split()[-3:] for line in text.splitlines() if line.startswith("  trial-")] == [
        ["4)", "b3", "permitted"],
        ["b1", "b3", "violation"],
    ]


@pytest.mark.parametrize(
    ("of", "says"),
    [
        (
            by_election(election(0, in_isr=True), faults=[]),
            "b1, in the ISR, was elected in trial-0 at 20.0 s (epoch 5)",
        ),
        (
            by_election(*(election(n) for n in range(4))),
            "b1, not in the ISR, was elected in 4 partitions at 20.0 s while cut was active",
        ),
        (
            by_election(*(election(n, "b2" if n else "b1", in_isr=n > 7) for n in range(30))),
            "b1 and b2 were elected in 30 partitions at 20.0 s while cut was active",
        ),
        (
            {"event": "disks lost", "from_ns": SECOND, "to_ns": 2 * SECOND, "faults": ["wipe", "kill"]},
            "all disks that must have had them were wiped at 1.0–2.0 s, by wipe and kill",
        ),
        ({"event": "nothing", "hole": False}, "nothing that was seen took them"),
        (
            {"event": "nothing", "hole": True},
            "they stood between records of one leader epoch, where no election takes any",
        ),
        ({"event": "unknown", "hole": False}, "nobody knows what took them"),
        ({"event": "run"}, ""),
        ({"event": "limit"}, ""),
    ],
)
def test_a_cause_is_a_sentence_made_of_facts(of: dict[str, Any], says: str) -> None:
    assert cause(of) == says


def test_every_cause_can_be_shown() -> None:
    facts = {**by_election(election(0)), "hole": False}
    assert all(isinstance(cause({**facts, "event": event}), str) for event in CauseOf)


def test_the_page_tells_a_cause_once_and_shows_the_records_of_every_consequence() -> None:
    root = ET.fromstring(html.render(judged(finding()), run_file()).removeprefix("<!DOCTYPE html>\n"))
    words = " ".join(" ".join(root.itertext()).split())
    assert words.count(BECAUSE) == 1
    assert words.count("was elected at 20.0 s") == 1
    [card] = [card for card in root.iter("section") if card.get("class") == "card"]
    assert " ".join("".join(card.find("h3").itertext()).split()) == "lost: 520, vanished: 40 permitted"
    assert [fold.text for fold in card.iter("summary")] == ["vanished: 40 records were read and then vanished"]
    assert len(list(card.iter("table"))) == 2


def test_junit_tells_a_cause_once() -> None:
    of = judged(finding(), expect=Expectation(), expected=False)
    root = ET.fromstring(junit.render(of, run_file()))
    for where in ("system-out", "failure"):
        [text] = [one.text or "" for one in root.iter(where)]
        assert text.count(BECAUSE) == 1
        assert text.count("lost:") == 2


def test_a_verdict_of_before_findings_is_shown_by_its_anomalies() -> None:
    reasons = [f"lost: 520 are gone; permitted: {BECAUSE}", f"vanished: 40 are gone; permitted: {BECAUSE}"]
    of = without_sentences(reasons=reasons)
    assert [one.anomalies for one in findings_of(of)] == [{"lost": 520}, {"vanished": 40}]
    stored = of.model_dump(by_alias=True, exclude={"findings"})
    before = Verdict.model_validate(stored)
    assert before.findings == []
    for text in (on_terminal(before), html.render(before, run_file())):
        assert all(said in text for said in ("lost", "vanished", "remedy", "520", "40"))


def test_the_ids_of_records_are_shown_as_their_workers_numbers() -> None:
    row = {**example(0), "records": [2 << 40 | 566, 2 << 40 | 1804], "stands": 2 << 40 | 1804}
    anomaly = lost().model_copy(update={"examples": [row]})
    text = on_terminal(verdict(Judgement.INVALID, anomalies={"rewritten_offset": anomaly}))
    assert "worker 2 #566, worker 2 #1804" in text
    assert str(2 << 40 | 566) not in text
