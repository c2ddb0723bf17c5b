"""The figures of a verdict in words, and its parts as rows: the same on a terminal and on a page. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from harness.core.verdict import Judgement, Standing, Summary, Verdict

Row = Mapping[str, Any]

_SECOND_NS = 1_000_000_000


def seconds(ns: int | None, digits: int = 3) -> str:
    """``"12.345 s"``, or nothing where there is no time."""
    return "" if ns is None else f"{ns / _SECOND_NS:.{digits}f} s"


def rate(fraction: float | None) -> str:
    """A fraction of 1 in per cent, to four digits: a loss of one in a million shows. Nothing where there is none."""
    return "" if fraction is None else f"{fraction * 100:.4g} %"


def verdict_line(verdict: Verdict) -> str:
    """``"INVALID, as expected"``."""
    partial = " (of a partial history)" if verdict.partial else ""
    return f"{verdict.verdict.upper()}{partial}, {'as expected' if verdict.expected else 'not as expected'}"


def tone(verdict: Verdict) -> str:
    """``good``, ``doubtful`` or ``bad``: an anomaly that was expected and is permitted is no alarm."""
    if verdict.verdict is Judgement.VALID and verdict.expected:
        return "good"
    violated = any(anomaly.standing is Standing.VIOLATION for anomaly in verdict.anomalies.values())
    return "doubtful" if verdict.expected and not violated else "bad"


def summary_rows(summary: Summary) -> list[tuple[str, str, str]]:
    """The 2013 report: what, how many, and as a rate of what."""
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


def availability_lines(availability: Mapping[str, Any]) -> list[str]:
    """The longest stretch without an acknowledgement, and how soon one came after each fault and its heal."""
    lines = []
    longest = availability.get("longest_unavailable")
    if longest is not None:
        until = f"until {seconds(longest['to_ns'], 1)}" if longest["ended"] else "and none came after it"
        lines.append(
            f"longest without an acknowledgement: {seconds(longest['lasted_ns'], 1)},"
            f" from {seconds(longest['from_ns'], 1)} {until}"
        )
    for index, fault in enumerate(availability.get("after_faults", [])):
        injected, healed = fault["first_ack_after_injection_ns"], fault["first_ack_after_heal_ns"]
        slowest = _slowest(availability["partitions"], index)
        lines.append(
            f"{fault['fault']}: acknowledged again {_after(injected)} the injection, {_after(healed)} its heal{slowest}"
        )
    return lines


def _slowest(partitions: Sequence[Row], fault: int) -> str:
    """Which of several partitions awaited an acknowledgement for the longest after the heal of a fault."""
    heals = [(part, part["after_faults"][fault]["awaited_after_heal"]) for part in partitions]
    waits = [(wait["lasted_ns"], part, wait["ended"]) for part, wait in heals if wait]
    if len(waits) < 2:
        return ""
    lasted, part, ended = max(waits, key=lambda wait: wait[0])
    where = f"{part['topic']}-{part['partition']}"
    return f"; {where} awaited one for {seconds(lasted)}{'' if ended else ', and none came'}"


def counted_lines(verdict: Verdict) -> list[str]:
    """What is counted beside the records, and is no anomaly: transactions, and what was delivered again."""
    transactions = dict(verdict.transactions)
    resolved = transactions.pop("unknown_resolved", {})
    ended = [f"{count:,} {name.replace('_', ' ')}" for name, count in transactions.items() if count]
    found = ", ".join(f"{count:,} {name}" for name, count in resolved.items() if count)
    later = f"; of the unknown found {found}" if found else ""
    again = [f"{count:,} ({cause})" for cause, count in verdict.redelivered.items()]
    return [
        *([f"transactions: {', '.join(ended)}{later}"] if ended else []),
        *([f"delivered again, as at-least-once allows: {', '.join(again)}"] if again else []),
    ]


def _after(ns: int | None) -> str:
    return "never after" if ns is None else f"{seconds(ns)} after"


def unmet(verdict: Verdict) -> list[str]:
    """The preconditions that were not met, a line each."""
    return [f"{held.name}: {held.detail}" for held in verdict.preconditions if not held.met]


def plain(value: object) -> str:
    """A value as a cell shows it."""
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {plain(one)}" for key, one in value.items())
    return " ".join(plain(one) for one in value) if isinstance(value, list | tuple) else str(value)


def _record(row: Row) -> str:
    return f"worker {row['worker']} #{row['sequence']}"


def _leader(row: Row) -> str:
    epoch = row.get("leader_epoch")
    return f"{row['leader']}" + ("" if epoch is None else f" (epoch {epoch})")


def _changing(row: Row, told: Callable[[Row], str]) -> str:
    """What was seen before, and after an arrow what was seen next where that is something else."""
    seen = [told(row), told(row["changed_to"])] if row.get("changed_to") else [told(row)]
    return " → ".join(dict.fromkeys(seen))


#: An example's columns: what the header says, and what a row has there. Keys not named here follow as they are.
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
)


def table(examples: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Headers and cells of examples; a column that says nothing in any row is left out."""
    named = {key for _, keys, _ in _COLUMNS for key in keys}
    others = dict.fromkeys(key for row in examples for key in row if key not in named)
    columns = [(header, keys[0], told) for header, keys, told in _COLUMNS]
    columns += [(key, key, lambda row, key=key: plain(row[key])) for key in others]  # type: ignore[misc]
    cells = [(header, [_cell(row, key, told) for row in examples]) for header, key, told in columns]
    said = [(header, column) for header, column in cells if any(column)]
    return [header for header, _ in said], [list(row) for row in zip(*(column for _, column in said), strict=True)]


def _cell(row: Row, key: str, told: Callable[[Row], str]) -> str:
    return "" if row.get(key) is None else told(row)


def flattened(value: object, path: str = "") -> Iterable[tuple[str, str]]:
    """The leaves of a configuration with their dotted paths."""
    if isinstance(value, Mapping) and value:
        for key, one in value.items():
            yield from flattened(one, f"{path}.{key}" if path else str(key))
    elif value not in (None, "", [], {}):
        yield path, plain(value) if not isinstance(value, bool) else str(value).lower()
