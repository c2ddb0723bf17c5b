"""How an error ends: a line for what a user can act on, a traceback for a defect; and the exit code of either."""

import errno
import traceback

import click

from harness.cli import codes
from harness.core.errors import KafkaTrialError
from harness.core.printable import printable

#: What the system refuses for a reason that lies in the machine or in a path that was named, and no defect of ours.
_REFUSED = {
    errno.ENAMETOOLONG: codes.BAD_INPUT,
    errno.ELOOP: codes.BAD_INPUT,
    errno.ENOSPC: codes.CANNOT_RUN,
    errno.EDQUOT: codes.CANNOT_RUN,
    errno.EFBIG: codes.CANNOT_RUN,
    errno.EROFS: codes.CANNOT_RUN,
    errno.EACCES: codes.CANNOT_RUN,
    errno.EPERM: codes.CANNOT_RUN,
    errno.EMFILE: codes.CANNOT_RUN,
    errno.ENFILE: codes.CANNOT_RUN,
    errno.EIO: codes.CANNOT_RUN,
}

#: How Java words ENOSPC, somewhere in a trace of Spark's.
_FULL = "No space left on device"


def report(error: Exception) -> int:
    """Print an error on standard error; return its exit code."""
    if isinstance(error, KafkaTrialError):
        print_error(str(error), error)
        return codes.of_error(error)
    if isinstance(error, OSError) and error.errno in _REFUSED:
        named = f"{error.filename}: " if error.filename is not None else ""
        print_error(f"{named}{error.strerror}", error)
        return _REFUSED[error.errno]
    if _FULL in str(error):
        print_error(f"{_FULL}, in the store or where Spark keeps what it works on (TMPDIR): make room", error)
        return codes.CANNOT_RUN
    traceback.print_exception(error)
    return codes.CRASHED


def print_error(message: str, error: BaseException | None = None) -> None:
    """One line for each thing that is wrong, the first with what else was noted of the error."""
    first, *more = message.splitlines() or [""]
    notes = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
    for line in (first + notes, *more):
        click.echo(f"kafka-trial: {printable(line)}", err=True)
