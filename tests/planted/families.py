"""The plants of a lost record, as plants of the other anomalies that follow from a truncated log: the same happened to
the record, and something else shows it."""

import re
from collections.abc import Callable, Iterator, Mapping

#: In a history of tests.planted.permissions: what is gone; and the end of its log.
_GONE = re.compile(r"send r ok @5 t([\d.]+)\.\.([\d.]+)")
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
        yield f"live r @5 e{int(float(sent_s) >= _NEXT_LEADS_S)} r1 t{until_s}"
    else:
        yield line


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
}
