"""The sentences of a verdict: its reasons, and the facts of each cause in one line. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from harness.core.anomalies import BY_NAME, Anomaly
from harness.core.listing import in_order
from harness.core.verdict import CauseOf, Finding, FoundAnomaly, Summary, Verdict
from harness.history.run_file import RunFile
from harness.report.words import broker, from_to, of_epoch, seconds

Row = Mapping[str, Any]

#: The most findings that have lines in the reasons, the worst first.
_MOST_FINDINGS = 10

#: Whether an elected broker had been in the ISR.
_STOOD = {True: "in the ISR", False: "not in the ISR", None: "perhaps in the ISR"}


def with_sentences(verdict: Verdict, file: RunFile, rows: Mapping[str, Anomaly] = BY_NAME) -> Verdict:
    """The verdict with its ``reasons``, and with the ``text`` of its ranges and findings. ``file``: its run.json.
    ``rows``: what each anomaly is."""
    anomalies = {name: _with_texts(rows[name], anomaly) for name, anomaly in verdict.anomalies.items()}
    findings = [_with_its_texts(finding, rows) for finding in verdict.findings]
    complete = verdict.model_copy(update={"anomalies": anomalies, "findings": findings})
    return complete.model_copy(update={"reasons": _reasons(complete, file, rows)})


def _reasons(verdict: Verdict, file: RunFile, rows: Mapping[str, Anomaly]) -> list[str]:
    """The reasons for the verdict, violations first: two lines for each finding, one for each other. The first line is
    the headline."""
    lines: list[str] = []
    for finding in verdict.findings[:_MOST_FINDINGS]:
        lines += filter(None, (_first_line(finding, rows[finding.first], file, verdict.summary), _second_line(finding)))
    if (left := len(verdict.findings) - _MOST_FINDINGS) > 0:
        lines.append(f"… and {left} more findings: verdict.json")
    lines += [f"unknown: {held.name}: {held.detail}" for held in verdict.preconditions if not held.met]
    lines += [] if lines else [_clean(verdict.summary, file)]
    unexpected = file.expect.unmet(verdict.verdict, verdict.anomalies, verdict.preconditions)
    return lines + ([f"not as expected: {unexpected}"] if unexpected else [])


def _first_line(finding: Finding, row: Anomaly, file: RunFile, summary: Summary) -> str:
    """The line about a finding: its first anomaly, whose row is ``row``, and the others of the same cause."""
    of = f" of {summary.acknowledged}" if row.of_acknowledged else ""
    others = ", ".join(f"{name} {count}" for name, count in finding.anomalies.items() if name != finding.first)
    also = f" (by the same cause: {others})" if others else ""
    counted = f"{finding.anomalies[finding.first]}{of} {row.said(file.final_read)}"
    return f"{finding.first}: {counted}{also}; {finding.standing}: {finding.because}"


def _second_line(finding: Finding) -> str:
    """The line after a finding's own among the reasons: the text of its only range, or else its cause."""
    text = finding.runs[0]["text"] if in_one_run(finding) else finding.text
    return f"{finding.first}: {text}" if text else ""


def _clean(summary: Summary, file: RunFile) -> str:
    """The line about a run in which nothing was found."""
    if summary.acknowledged:
        survived = "are in the final log" if file.final_read else "were read"
        return f"no anomaly: all {summary.acknowledged} acknowledged writes {survived}"
    absent = summary.attempted - summary.survivors
    return f"no anomaly: nothing was acknowledged; {absent} of {summary.attempted} writes are not in the final log"


def in_one_run(finding: Finding) -> bool:
    """Whether all records of a finding are in one range: then the sentence of that range says the cause, too."""
    return len(finding.runs) == 1 and not finding.more_runs


def _with_its_texts(finding: Finding, rows: Mapping[str, Anomaly]) -> Finding:
    runs = [{"text": sentence(rows[next(iter(run["anomalies"]))], run), **run} for run in finding.runs]
    return finding.model_copy(update={"runs": runs, "text": cause(finding.cause)})


#: The texts of causes that are not events. Causes that do not concern single records have none.
_NO_EVENT = {
    CauseOf.NOTHING: "nothing that was seen took them",
    CauseOf.UNKNOWN: "nobody knows what took them",
}
#: Up to this number of partitions is named.
_NAMED = 3


def cause(of: Row) -> str:
    """What took the records of a finding, from the facts of its cause (checkers/findings.py)."""
    event = CauseOf(of["event"])
    if event is CauseOf.ELECTION:
        return f"{_elected(of)}{_while(of['faults'])}"
    if event is CauseOf.DISKS_LOST:
        by = f", by {in_order(of['faults'])}" if of["faults"] else ""
        return f"all disks that must have had them were wiped at {from_to(of['from_ns'], of['to_ns'])}{by}"
    if of.get("hole"):
        return "they stood between records of one leader epoch, where no election takes any"
    return _NO_EVENT.get(event, "")


def _elected(of: Row) -> str:
    names, elections = of["leaders"], of["elections"]
    stood = f", {_STOOD[of['in_isr']]}," if "in_isr" in of else ""
    were = "was" if len(names) == 1 else "were"
    where = [f"{election['topic']}-{election['partition']}" for election in elections]
    named = in_order(where) if of["partitions"] <= _NAMED else f"{of['partitions']} partitions"
    epoch = elections[0]["leader_epoch"] if of["partitions"] == 1 else None
    when = broker(from_to(of["from_ns"], of["to_ns"]), epoch)
    return f"{in_order(names)}{stood} {were} elected in {named} at {when}"


def _while(faults: Sequence[str]) -> str:
    return f" while {in_order(faults)} {_were(faults)} active" if faults else ""


#: The sentence for each event that shows which brokers had a record (checkers/evidence/holding.py).
HELD: dict[str, str] = {
    "led": "{leader} led, and must have had it",
    "in sync": "{who} must have had it: in every ISR that was reported around then",
    "sometimes in sync": "{who} may have had it: nobody knows whether in the ISR then",
    "not in sync": "{who} need not have had it",
    "joined": "{who} must have had it: in the ISR of {leader}, which had it",
    "perhaps joined": "{who} may have had it: reported in the ISR of {leader}, which does not prove it",
    "still reported": (
        "{who} may have had it again: still reported in the ISR of {leader} long after the disk was wiped"
    ),
    "unheard": "{who} may have had it: may have joined the ISR of {leader} while no broker reported",
    "wiped": "{who} no longer had it, if ever: {fault} wiped the disk",
    "wiped in flight": "{who} may have lost it: {fault} wiped the disk before anybody knew it written",
    "doubted": "{who} may no longer have had it: {leader}, which may have lacked it, was elected",
    "followed": "{who} no longer had it: joined the ISR of {leader}, which lacked it",
    "perhaps followed": "{who} may no longer have had it: up while {leader} led, which lacked it",
    "elected": "{leader} was elected, and must have had it",
    "elected cleanly": "{leader} was elected cleanly, so it must have had it",
    "perhaps elected": "{leader} was elected, and may have had it",
    "took": "{leader} was elected, and need not have had it: this took it",
    "lacked": "{leader} was elected, and need not have had it: this may have taken it",
}


def held(change: Row) -> str:
    """The sentence for one moment that shows which brokers had a record (checkers/stories.py)."""
    leader = broker(change["leader"], change["leader_epoch"])
    return HELD[change["event"]].format(who=in_order(change["brokers"]), leader=leader, fault=change["fault"])


def _with_texts(row: Anomaly, found: FoundAnomaly) -> FoundAnomaly:
    runs = [{"text": sentence(row, run), **run} for run in found.runs]
    return found.model_copy(update={"runs": runs})


def sentence(anomaly: Anomaly, run: Row) -> str:
    """What happened to one range of records, and why, if that was seen (checkers/evidence/causes.py)."""
    where = f"{run['topic']}-{run['partition']}: {_offsets(anomaly, run)}"
    return f"{where}, {_acknowledged(run)}{_deposed(run)}, {_fate(anomaly, run)}"


def _offsets(anomaly: Anomaly, run: Row) -> str:
    counted = "transaction" if anomaly.counts_transactions else "record"
    records = f"{run['count']:,} {counted}{'' if run['count'] == 1 else 's'}"
    first, last = run["first_offset"], run["last_offset"]
    if first is None or last is None:
        return f"{records}, offset{'' if run['count'] == 1 else 's'} unknown"
    if first == last:
        return f"offset {first} ({records})"
    dense = run["count"] == last - first + 1
    return f"offsets {first}–{last} ({records}{'' if dense else ' among them'})"


def _acknowledged(run: Row) -> str:
    count = run["acknowledged"]
    some = f"{count:,} of them " if count < run["count"] else ""
    verb = f"{some}acknowledged" if count else "not acknowledged there, sent"
    at = "at " if seconds(run["first_ns"], 1) == seconds(run["last_ns"], 1) else ""
    when = f"{at}{from_to(run['first_ns'], run['last_ns'])}"
    if run["leader"] is None:
        return f"{verb} {when} under a leader that nobody observed"
    who = "by" if count else "while the leader was"
    return f"{verb} {when} {who} {broker(run['leader_name'], run['leader_epoch'])} {_isrs(run)}"


def _deposed(run: Row) -> str:
    """A remark, if another leader led already when the last of the records were acknowledged."""
    elected = run["elected"]
    late = elected is not None and elected["at_ns"] <= run["last_ns"]
    return f" (though another led from {seconds(elected['at_ns'], 1)})" if late else ""


def _isrs(run: Row) -> str:
    each = zip(run["isr"], run["isr_names"], strict=True)
    return ", then ".join(
        "alone in the ISR" if isr == [run["leader"]] else f"with the ISR {' '.join(names) or 'empty'}"
        for isr, names in each
    )


def _fate(anomaly: Anomaly, run: Row) -> str:
    fate = anomaly.fate or anomaly.name
    if run["again_to"] is not None:
        fate += f" (again up to offset {run['again_to']})"
    if run.get("hole"):
        return f"{fate} from between records of one leader epoch, where no election takes any"
    elected = run["elected"]
    if elected is None:
        during = f"; {in_order(run['faults'])} {_were(run['faults'])} active then" if run["faults"] else ""
        return f"{fate}; no election was seen after them{during}"
    then = elected["faults"]
    ended = [fault for fault in run["faults"] if fault not in then]
    stood = _STOOD[elected["in_isr"]]
    # Only an election of a broker outside the ISR explains the loss. Any other is only known to have come next.
    how = (" when" if elected["in_isr"] is False else " after") if anomaly.is_loss else "; next,"
    again = " again" if elected["leader"] == run["leader"] else ""
    return (
        f"{fate}{how} {elected['name']}, {stood}, was elected{again} at {seconds(elected['at_ns'], 1)}"
        + of_epoch(elected["leader_epoch"])
        + (f" after {in_order(ended)}" if ended else "")
        + (" and" if ended and then else "")
        + _while(then)
    )


def _were(faults: Sequence[str]) -> str:
    return "was" if len(faults) == 1 else "were"
