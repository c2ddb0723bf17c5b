"""Reports errors: a line for one that a user can act on, a traceback for a defect. Returns the exit code."""

import errno
import traceback

import click

from harness.cli import codes
from harness.core.errors import KafkaTrialError, line_of
from harness.core.printable import printable

#: System errors that mean a bad argument. The others mean that the machine cannot run it.
_BAD_INPUT = frozenset({errno.ENAMETOOLONG, errno.ELOOP})


def report(error: Exception) -> int:
    """Print an error on standard error; return its exit code."""
    line = line_of(error)
    if line is None:
        traceback.print_exception(error)
        return codes.CRASHED
    print_error(line, error)
    if isinstance(error, KafkaTrialError):
        return codes.of_error(error)
    return codes.BAD_INPUT if isinstance(error, OSError) and error.errno in _BAD_INPUT else codes.CANNOT_RUN


def print_error(message: str, error: BaseException | None = None) -> None:
    """Print a line for each mistake. The first line also has the notes of the error."""
    first, *more = message.splitlines() or [""]
    notes = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
    for line in (first + notes, *more):
        click.echo(f"kafka-trial: {printable(line)}", err=True)
