"""Exit codes: errors have one by their class, verdicts by their expectation."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from harness.core.errors import (
    ClusterError,
    EnvironmentLacks,
    HistoryError,
    KafkaTrialError,
    OutputClosed,
    ScenarioError,
)

if TYPE_CHECKING:
    from harness.core.verdict import Verdict

MET = 0
NOT_MET = 1
UNKNOWN = 2
CANNOT_RUN = 3
#: What a shell reports for a program that SIGPIPE ended: 128 plus the signal's number.
OUTPUT_CLOSED = 141
BAD_INPUT = 254
CRASHED = 255

#: The first class of which an error is an instance gives its exit code.
ERRORS: tuple[tuple[type[KafkaTrialError], int], ...] = (
    (ScenarioError, BAD_INPUT),
    (HistoryError, BAD_INPUT),
    (EnvironmentLacks, CANNOT_RUN),
    (ClusterError, CRASHED),
    (OutputClosed, OUTPUT_CLOSED),
    (KafkaTrialError, CRASHED),
)

_SEVERITY = [MET, UNKNOWN, CANNOT_RUN, NOT_MET, BAD_INPUT, CRASHED]


def of_error(error: KafkaTrialError) -> int:
    """The exit code of an error that a user can act on."""
    return next(code for kind, code in ERRORS if isinstance(error, kind))


def of_verdict(verdict: "Verdict") -> int:
    """The exit code of a verdict. An expected verdict is a success, whatever it is."""
    if verdict.expected:
        return MET
    return UNKNOWN if verdict.verdict == "unknown" else NOT_MET


def worst(codes: Iterable[int]) -> int:
    """The worst exit code of several runs: crashed, cannot be judged, not met, cannot run, unknown, met, in this
    order."""
    return max(codes, key=_SEVERITY.index, default=MET)
