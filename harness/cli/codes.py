"""Exit codes: of errors by their class, of verdicts by what was expected."""

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
#: As a shell has it of a program that SIGPIPE ended: 128 and the signal's number.
OUTPUT_CLOSED = 141
BAD_INPUT = 254
CRASHED = 255

#: The exit code of an error is that of the first class that it is an instance of.
ERRORS: tuple[tuple[type[KafkaTrialError], int], ...] = (
    (ScenarioError, BAD_INPUT),
    (HistoryError, BAD_INPUT),
    (EnvironmentLacks, CANNOT_RUN),
    (ClusterError, CRASHED),
    (OutputClosed, OUTPUT_CLOSED),
    (KafkaTrialError, CRASHED),
)

_SEVERITY = [MET, UNKNOWN, NOT_MET, CANNOT_RUN, BAD_INPUT, CRASHED]


def of_error(error: KafkaTrialError) -> int:
    """The exit code of an error that a user can act on."""
    return next(code for kind, code in ERRORS if isinstance(error, kind))


def of_verdict(verdict: "Verdict") -> int:
    """A verdict that was expected is success, whichever it is."""
    if verdict.expected:
        return MET
    return UNKNOWN if verdict.verdict == "unknown" else NOT_MET


def worst(codes: Iterable[int]) -> int:
    """Of several runs: crashed, not to be judged, not met, unknown, met."""
    return max(codes, key=_SEVERITY.index, default=MET)
