"""A partition with two leader terms, and ranges of its records."""

from dataclasses import replace
from typing import Any

from checkers.evidence.record_ranges import RecordRange
from checkers.leadership import LeaderTerm, Span
from tests.checkers.notation import SECOND

TRIAL = ("trial", 0)
NAMES = {1: "b1", 2: "b2", 3: "b3"}
BOTH = [LeaderTerm(1, 0, 0), LeaderTerm(2, 1, 8 * SECOND)]
SEEN = [
    Span("b1", "trial", 0, 0, 3 * SECOND, 1, 0, (1, 2)),
    Span("b1", "trial", 0, 4 * SECOND, 12 * SECOND, 1, 0, (1,)),
    Span("b2", "trial", 0, 8 * SECOND, 30 * SECOND, 2, 1, (2,)),
]


def record_range(first: int | None, last: int | None, begin: float = 5, end: float = 6, **changes: Any) -> RecordRange:
    count = 1 if first is None or last is None else last - first + 1
    whole = RecordRange(
        topic="trial",
        partition=0,
        term=1,
        first_offset=first,
        last_offset=last,
        again_to=None,
        count=count,
        acknowledged=count,
        first_ns=int(begin * SECOND),
        last_ns=int(end * SECOND),
    )
    return replace(whole, **changes)
