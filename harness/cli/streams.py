"""Standard output and standard error that survive the end of their reader: a closed pipe, a lost terminal."""

import os
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any

from harness.core.errors import OutputClosed
from harness.core.printable import tame

if TYPE_CHECKING:
    from typing import TextIO


def closed(number: int, access: int) -> "TextIO":
    """A replacement for an output that was closed before the program began. It drops everything; with O_RDONLY every
    write fails. It takes the output's file number, so that no later file gets it."""
    nowhere = os.open(os.devnull, access)
    os.dup2(nowhere, number)
    if nowhere == number:
        # (Inheritable, so that child processes get it, too.)
        os.set_inheritable(number, True)
    else:
        os.close(nowhere)
    return os.fdopen(number, "w", encoding="utf-8", errors="backslashreplace", closefd=False)


class ProgressStream:
    """Standard error. When it can no longer be written, later writes are dropped."""

    def __init__(self, stream: "TextIO") -> None:
        self._stream = stream
        if isinstance(stream, TextIOWrapper) and stream.errors == "strict":
            # Characters that the locale lacks are written as escapes.
            stream.reconfigure(errors="backslashreplace")
        self._broken: OSError | None = None

    def write(self, text: str) -> int:
        """Write. Give up a stream that can no longer be written."""
        try:
            return self._stream.write(text)
        except OSError as exc:
            self._give_up(exc)
            return len(text)

    def flush(self) -> None:
        """Flush. Give up a stream that can no longer be written."""
        try:
            self._stream.flush()
        except OSError as exc:
            self._give_up(exc)

    def _give_up(self, why: OSError) -> None:
        """Drop what is left in the buffers, also when the interpreter flushes them at its end."""
        self._broken = why
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class ResultStream(ProgressStream):
    """Standard output. When it can no longer be written, the command has failed.

    From then on every write raises OutputClosed, because some libraries ignore the first error of a stream.
    """

    def write(self, text: str) -> int:
        """Write, or raise OutputClosed. Text of a stored run cannot move the cursor, whichever command prints it."""
        written = super().write(tame(text))
        if self._broken is not None:
            raise OutputClosed(f"standard output cannot be written: {self._broken.strerror}") from self._broken
        return written

    def _give_up(self, why: OSError) -> None:
        super()._give_up(why)
        raise OutputClosed(f"standard output cannot be written: {why.strerror}") from why
