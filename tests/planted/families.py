"""The plants of a lost record, as plants of the other anomalies that follow from a truncated log: the same happened to
the record, and something else shows it."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from harness.core.anomalies import BY_NAME
from harness.core.verdict import Standing
from tests.planted.permissions import Never

#: In a history of tests.planted.permissions: what is gone; and the end of its log.
_GONE = re.compile(r"send r ok @5 t([\d.]+)\.\.([\d.]+)")
_OFFSET = 5
_END = re.compile(r"end 0\.\.(\d+)")
#: The next leader led from this time on, in seconds.
_NEXT_LEADS_S = 26

Lines = tuple[str, ...]


def vanished(lines: Lines) -> Lines:
    """A consumer was given it when it would have been acknowledged; its producer never heard of it."""
    return tuple(one for line in lines for one in _delivered(line))


def _delivered(line: str) -> Iterator[str]:
    if gone := _GONE.fullmatch(line):
        sent_s, until_s = gone.groups()
        yield f"send r info t{sent_s}.."
        yield f"live r @5 e{_epoch_of(sent_s)} r1 t{until_s}"
    else:
        yield line


def _epoch_of(sent_s: str) -> int:
    return int(float(sent_s) >= _NEXT_LEADS_S)


def rewritten(lines: Lines) -> Lines | None:
    """Another record stands at its offset. None where none can: a hole has no record there."""
    going_on = _going_on(lines)
    if "final c @6 e0" in lines:
        return None
    if any(" @5 " in line for line in going_on if not _GONE.match(line)):
        return going_on
    return (*going_on, f"final w @5 e{_last_epoch(going_on)}")


def moved(lines: Lines) -> Lines:
    """The next incarnation of its producer handed it over again when all was over: it stands at the end of the log."""
    going_on = _going_on(lines)
    [end] = [int(found[1]) for line in going_on if (found := _END.fullmatch(line))]
    others = (line for line in going_on if not _END.fullmatch(line))
    again = ("send r info i1 again t57..", f"final r @{end} e{_last_epoch(going_on)}")
    return (*others, *again, f"end 0..{end + 1}")


def committed(lines: Lines) -> Lines:
    """It was all that a transaction sent; its producer learnt that the transaction was committed."""
    return tuple(one for line in lines for one in _within_a_transaction(line))


def in_part(lines: Lines) -> Lines:
    """The same transaction also sent another record, to a partition that nothing happened to."""
    [sent_s] = [found[1] for line in lines if (found := _GONE.fullmatch(line))]
    part = f"send part ok @0 p2 x1 t{float(sent_s) - 0.1:g}..{sent_s}"
    return (*committed(lines), part, "final part @0 p2 e0", "stable @1 p2 high=1", "end 0..1 p2")


def _within_a_transaction(line: str) -> Iterator[str]:
    if end := _END.fullmatch(line):
        yield f"stable @{end[1]} high={end[1]}"
    if gone := _GONE.fullmatch(line):
        sent_s, until_s = map(float, gone.groups())
        yield f"txn 1 commit ok {sent_s - 0.1:g}..{until_s + 0.1:g}..{until_s + 0.2:g}"
        yield f"{line} x1"
    else:
        yield line


def _going_on(lines: Lines) -> Lines:
    """Where the log ends at its offset, others are written there after all, by the same leader."""
    if "end 0..5" not in lines:
        return lines
    others = (line for line in lines if line != "end 0..5" and not line.startswith("send late"))
    return (*others, "final x @5 e0", "send late ok @6 t55..56", "final late @6 e0", "end 0..7")


def _last_epoch(lines: Lines) -> int:
    return max(int(found[1]) for line in lines if line.startswith("final") and (found := re.search(r" e(\d)$", line)))


#: By the name of an anomaly: the plants of a lost record as plants of it.
FAMILIES: Mapping[str, Callable[[Lines], Lines | None]] = {
    "lost": lambda lines: lines,
    "vanished": vanished,
    "rewritten_offset": rewritten,
    "acknowledged_elsewhere": moved,
    "real_time_order": moved,
    "fractured": in_part,
    "committed_lost": committed,
}

#: The anomalies that follow from a truncated log, and are no such family.
NO_FAMILY: Mapping[str, Never] = {
    "hanging_transaction": Never(
        "no record is gone, but a marker, whose place and time nobody knows; and no log with one is read to its end"
    )
}


def settings_of(anomaly: str) -> Mapping[str, Any]:
    """What a family needs besides the settings of a row: only who reads what is committed misses a transaction."""
    return {"isolation_level": "read_committed"} if BY_NAME[anomaly].by_coordinator else {}


def standing_of(anomaly: str, lines: Lines, standing: Standing) -> Standing:
    """How a plant of a lost record stands that is shown as ``anomaly``.

    Where the record's own epoch goes on at its offset, the record may still be there, unseen: it was aborted. For its
    log is not cut below it, and nobody knows which offsets are holes, as markers take some, too. And in each such plant
    the log of the coordinator, or the marker, may have been lost after the commit: to a wipe, or an unclean election.
    Then nobody can tell. A log that was cut there lacks the record, whatever became of its transaction.
    """
    if not BY_NAME[anomaly].by_coordinator or standing is not Standing.VIOLATION:
        return standing
    [epoch] = [_epoch_of(found[1]) for line in lines if (found := _GONE.match(line))]
    going_on = re.compile(rf"final \w+ @(\d+) e{epoch}")
    reaches = any(int(found[1]) >= _OFFSET for line in lines if (found := going_on.fullmatch(line)))
    return Standing.UNDECIDED if reaches else standing
