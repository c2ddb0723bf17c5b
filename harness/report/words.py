"""The figures of a verdict as text, and its parts as rows: the same for a terminal and a page. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from harness.core.clock import SECOND_NS
from harness.core.listing import in_order
from harness.core.verdict import Finding, Judgement, Standing, Summary, Verdict
from harness.history.schema import sequence_of, worker_of

Row = Mapping[str, Any]


def seconds(ns: int | None, digits: int = 3) -> str:
    """``"12.345 s"``; empty without a time."""
    return "" if ns is None else f"{ns / SECOND_NS:.{digits}f} s"


def rate(fraction: float | None) -> str:
    """A fraction of 1 in per cent, with four digits, so that a loss of one in a million shows. Empty for None."""
    return "" if fraction is None else f"{fraction * 100:.4g} %"


def verdict_line(verdict: Verdict) -> str:
    """``"INVALID, as expected"``."""
    partial = " (of a partial history)" if verdict.partial else ""
    return f"{verdict.verdict.upper()}{partial}, {'as expected' if verdict.expected else 'not as expected'}"


def headlines(verdict: Verdict, findings: Sequence[Finding]) -> list[str]:
    """The reasons of a verdict, without what the findings show themselves: why, and where."""
    shown = {f"{finding.first}: {text}" for finding in findings for text in _texts(finding)}
    lines = [reason for reason in verdict.reasons if reason not in shown]
    # (What is left begins with a line for each finding, in their order. Of several findings that are named after one
    # anomaly, only the first one's because is left out.)
    because = {finding.first: f": {finding.because}" for finding in reversed(findings)}
    whys = [because[finding.first] for finding in findings]
    return [line.removesuffix(why) for line, why in zip_longest(lines, whys[: len(lines)], fillvalue="")]


def _texts(finding: Finding) -> Iterator[str]:
    yield finding.text
    yield from (str(run.get("text", "")) for run in finding.runs)


def tone(verdict: Verdict) -> str:
    """``good``, ``doubtful`` or ``bad``. Expected and permitted anomalies are only ``doubtful``."""
    if verdict.verdict is Judgement.VALID and verdict.expected:
        return "good"
    permitted = all(anomaly.standing is Standing.PERMITTED for anomaly in verdict.anomalies.values())
    return "doubtful" if verdict.expected and permitted else "bad"


def summary_rows(summary: Summary) -> list[tuple[str, str, str]]:
    """The counts of the report in "Jepsen: Kafka" (2013): name, count, and rate of what."""
    return [
        ("attempted", f"{summary.attempted:,}", ""),
        ("acknowledged", f"{summary.acknowledged:,}", _of(summary.ack_rate, "attempted")),
        ("survivors", f"{summary.survivors:,}", ""),
        ("acknowledged writes lost", _number(summary.lost), _of(summary.loss_rate, "acknowledged")),
        (
            "unacknowledged writes found",
            f"{summary.unacknowledged_present:,}",
            _of(summary.unacknowledged_present_rate, "acknowledged"),
        ),
        ("duplicated", _number(summary.duplicated), ""),
    ]


def _number(count: int | None) -> str:
    return "not known" if count is None else f"{count:,}"


def _of(fraction: float | None, whole: str) -> str:
    return f"{rate(fraction)} of {whole}" if fraction is not None else ""


#: The number of partitions that are listed, the worst first.
_MOST_PARTITIONS = 3


def availability_lines(availability: Mapping[str, Any]) -> list[str]:
    """How long each partition had no acknowledgement, the worst first (with one partition: that of the whole run), and
    how soon an acknowledgement came after each fault and its heal."""
    partitions = availability.get("partitions", [])
    longest = availability.get("longest_unavailable")
    lines = [] if longest is None else [f"longest without an acknowledgement: {_stretch(longest)}"]
    if len(partitions) > 1:
        interrupted = [part for part in partitions if part.get("longest_unavailable")]
        worst = sorted(interrupted, key=lambda part: -int(part["longest_unavailable"]["lasted_ns"]))
        lines = [
            f"longest without an acknowledgement: {_partition(part)} {_stretch(part['longest_unavailable'])}"
            for part in worst[:_MOST_PARTITIONS]
        ]
        if others := worst[_MOST_PARTITIONS:]:
            most = seconds(others[0]["longest_unavailable"]["lasted_ns"], 1)
            lines.append(f"… and {len(others)} more partitions, {most} at most")
    for index, fault in enumerate(availability.get("after_faults", [])):
        slowest = _slowest(availability["partitions"], index)
        lines.append(f"{fault['fault']}: {_first_acknowledgements(fault)}{slowest}")
    return lines


def _stretch(longest: Row) -> str:
    until = f"until {seconds(longest['to_ns'], 1)}" if longest["ended"] else "and none came after it"
    return f"{seconds(longest['lasted_ns'], 1)}, from {seconds(longest['from_ns'], 1)} {until}"


def _partition(row: Row) -> str:
    return f"{row['topic']}-{row['partition']}"


def _slowest(partitions: Sequence[Row], fault: int) -> str:
    """The partition that waited longest for an acknowledgement after the heal of a fault, if there are several."""
    heals = [(part, part["after_faults"][fault]["awaited_after_heal"]) for part in partitions]
    waits = [(wait["lasted_ns"], part, wait["ended"]) for part, wait in heals if wait]
    if len(waits) < 2:
        return ""
    lasted, part, ended = max(waits, key=lambda wait: wait[0])
    return f"; {_partition(part)} awaited one for {seconds(lasted)}{'' if ended else ', and none came'}"


def counted_lines(verdict: Verdict) -> list[str]:
    """Other counts, which are no anomalies: writes at risk, transactions, and records that were delivered again."""
    transactions = dict(verdict.transactions)
    resolved = transactions.pop("unknown_resolved", {})
    ended = [f"{count:,} {name.replace('_', ' ')}" for name, count in transactions.items() if count]
    found = ", ".join(f"{count:,} {name}" for name, count in resolved.items() if count)
    later = f"; of the unknown found {found}" if found else ""
    again = [f"{count:,} ({cause})" for cause, count in verdict.redelivered.items()]
    risked = [f"{count:,} on {_brokers(fewest)}" for fewest, count in sorted(verdict.at_risk.items())]
    return [
        *([f"acknowledged while a fault could take them: {', '.join(risked)}"] if risked else []),
        *([f"transactions: {', '.join(ended)}{later}"] if ended else []),
        *([f"delivered again, as at-least-once allows: {', '.join(again)}"] if again else []),
    ]


def _brokers(number: int) -> str:
    return "an unknown number of brokers" if not number else "1 broker" if number == 1 else f"{number} brokers"


def _first_acknowledgements(fault: Row) -> str:
    injected, healed = fault["first_ack_after_injection_ns"], fault["first_ack_after_heal_ns"]
    if injected is None and healed is None:
        return "no known acknowledgement after it"
    # (One came after its heal only if the time of the injection is unknown.)
    known = [(injected, "the injection")] if injected is not None else []
    parts = [f"{'none' if ns is None else seconds(ns)} after {event}" for ns, event in (*known, (healed, "its heal"))]
    return f"first acknowledgement {', '.join(parts)}"


def unmet(verdict: Verdict) -> list[str]:
    """The preconditions that were not met, a line each."""
    return [f"{held.name}: {held.detail}" for held in verdict.preconditions if not held.met]


def plain(value: object) -> str:
    """A value as a cell shows it."""
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {plain(part)}" for key, part in value.items())
    return " ".join(plain(part) for part in value) if isinstance(value, list | tuple) else str(value)


def with_names(row: Row, name: Callable[[int], str]) -> Row:
    """A row with names of brokers instead of ids, for leaders and ISRs."""

    def named(key: str, value: Any) -> Any:
        if key == "leader" and isinstance(value, int):
            return name(value) if value >= 0 else "nobody"
        if key == "isr":
            return [name(broker) if isinstance(broker, int) else broker for broker in value or ()]
        if key == "changed_to" and value:
            return with_names(value, name)
        return [with_names(leader, name) for leader in value] if key == "also_leading" and value else value

    return {key: named(key, value) for key, value in row.items()}


def _record(row: Row) -> str:
    return f"worker {row['worker']} #{row['sequence']}"


def by_id(record: int) -> str:
    """``"worker 1 #2816"``."""
    return f"worker {worker_of(record)} #{sequence_of(record)}"


def broker(name: str, epoch: int | None) -> str:
    """``"b1 (epoch 3)"``: a leader, and its epoch if that is known."""
    return f"{name}{of_epoch(epoch)}"


def of_epoch(epoch: int | None) -> str:
    """``" (epoch 3)"``, to write behind a leader or its election; nothing if it is not known."""
    return "" if epoch is None else f" (epoch {epoch})"


def _leader(row: Row) -> str:
    return broker(str(row["leader"]), row.get("leader_epoch"))


def _records(records: list[int] | int) -> str:
    """The records of an offset; of a transaction it is their number."""
    return ", ".join(map(by_id, records)) if isinstance(records, list) else plain(records)


def _changing(row: Row, cell: Callable[[Row], str]) -> str:
    """What was seen before; if it changed, followed by an arrow and what was seen next."""
    seen = [cell(row), cell(row["changed_to"])] if row.get("changed_to") else [cell(row)]
    return " → ".join(dict.fromkeys(seen))


#: The columns of an example: header, keys, and how to show them. Other keys follow unchanged.
_COLUMNS: tuple[tuple[str, tuple[str, ...], Callable[[Row], str]], ...] = (
    ("partition", ("topic", "partition"), lambda row: f"{row['topic']}-{row['partition']}"),
    ("offset", ("offset",), lambda row: plain(row["offset"])),
    ("record", ("worker", "sequence", "record_id"), _record),
    ("sent", ("sent_ns",), lambda row: seconds(row["sent_ns"])),
    ("acknowledged", ("acknowledged_ns",), lambda row: seconds(row["acknowledged_ns"])),
    ("read", ("read_ns",), lambda row: seconds(row["read_ns"])),
    ("leader", ("leader", "leader_epoch", "changed_to"), lambda row: _changing(row, _leader)),
    ("ISR", ("isr",), lambda row: _changing(row, lambda seen: plain(seen["isr"]))),
    ("also leading", ("also_leading",), lambda row: ", ".join(_leader(one) for one in row["also_leading"])),
    ("faults", ("faults",), lambda row: plain(row["faults"])),
    ("records", ("records",), lambda row: _records(row["records"])),
    ("stands", ("stands",), lambda row: by_id(row["stands"])),
    ("furthest before", ("gone_to",), lambda row: plain(row["gone_to"])),
)


def table(examples: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Headers and cells of examples. A column that is empty in every row is left out."""
    named = {key for _, keys, _ in _COLUMNS for key in keys}
    others = dict.fromkeys(key for row in examples for key in row if key not in named)
    columns = [(header, keys[0], cell) for header, keys, cell in _COLUMNS]
    columns += [(key, key, lambda row, key=key: plain(row[key])) for key in others]  # type: ignore[misc]
    cells = [(header, [_cell(row, key, cell) for row in examples]) for header, key, cell in columns]
    filled = [(header, column) for header, column in cells if any(column)]
    return [header for header, _ in filled], [list(row) for row in zip(*(column for _, column in filled), strict=True)]


def _cell(row: Row, key: str, cell: Callable[[Row], str]) -> str:
    return "" if row.get(key) is None else cell(row)


def shared(headers: Sequence[str], cells: Sequence[Sequence[str]]) -> tuple[str, list[str], list[list[str]]]:
    """The values that several rows have in common, in one line, and the columns in which they differ."""
    columns = list(zip(*cells, strict=True))
    alike = [len(cells) > 1 and len(set(column)) == 1 for column in columns]
    common = [f"{header} {column[0]}" for header, column, same in zip(headers, columns, alike, strict=True) if same]
    kept = [n for n, same in enumerate(alike) if not same]
    return " · ".join(common), [headers[n] for n in kept], [[row[n] for n in kept] for row in cells]


def holders(runs: Sequence[Row]) -> str:
    """Who must have had the records of some ranges, if that is the same for all; else empty."""
    texts = [_holders(run) for run in runs if "must" in run]
    return texts[0] if texts and all(text == texts[0] for text in texts) else ""


def _holders(run: Row) -> str:
    must, need_not, unknown = (in_order(run[key]) for key in ("must", "need_not", "unknown"))
    parts = [
        f"{must} must have had them" if must else "no broker is known to have had them",
        f"{need_not} need not" if need_not else "",
        f"unknown: {unknown}" if unknown else "",
    ]
    return "; ".join(filter(None, parts))


def run_table(runs: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Headers and cells of the ranges of a finding: where its records were, and who must have had them, if that is
    not the same for all."""
    different = not holders(runs)
    columns: list[tuple[str, Callable[[Row], str]]] = [
        ("partition", _partition),
        ("offsets", _offsets),
        ("records", lambda run: f"{run['count']:,}"),
        ("acknowledged", lambda run: _when(run) if run["acknowledged"] else "never"),
        ("by", lambda run: "" if run["leader"] is None else broker(run["leader_name"], run["leader_epoch"])),
        ("must have had them", lambda run: plain(run.get("must")) if different else ""),
        ("standing", lambda run: str(run.get("standing", ""))),
    ]
    cells = [(header, [cell(run) for run in runs]) for header, cell in columns]
    filled = [(header, column) for header, column in cells if any(column)]
    filled = [(header, column) for header, column in filled if header != "standing" or len(set(column)) > 1]
    return [header for header, _ in filled], [list(row) for row in zip(*(column for _, column in filled), strict=True)]


def _offsets(run: Row) -> str:
    first, last = run["first_offset"], run["last_offset"]
    return "not known" if first is None or last is None else str(first) if first == last else f"{first}–{last}"


def _when(run: Row) -> str:
    return from_to(run["first_ns"], run["last_ns"])


def from_to(from_ns: int, to_ns: int) -> str:
    """``"26.0–31.3 s"``; one time if both are about the same."""
    first, last = seconds(from_ns, 1), seconds(to_ns, 1)
    return first if first == last else f"{first.removesuffix(' s')}–{last}"


def flattened(value: object, path: str = "") -> Iterable[tuple[str, str]]:
    """The leaves of a configuration with their dotted paths."""
    if isinstance(value, Mapping) and value:
        for key, part in value.items():
            yield from flattened(part, f"{path}.{key}" if path else str(key))
    elif value not in (None, "", [], {}):
        yield path, plain(value) if not isinstance(value, bool) else str(value).lower()
