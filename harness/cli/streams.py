"""Standard output and standard error when their reader is gone: a closed pipe, a terminal that hung up."""

import os
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any

from harness.core.errors import OutputClosed
from harness.core.printable import tame

if TYPE_CHECKING:
    from typing import TextIO


def closed(number: int, access: int) -> "TextIO":
    """A stand-in for an output that was closed before the program began: it accepts everything and keeps nothing, or
    with O_RDONLY accepts nothing. It takes the output's file number, which no file that is opened later may get."""
    nowhere = os.open(os.devnull, access)
    os.dup2(nowhere, number)
    if nowhere == number:
        # (As a copy is: child processes get it, too.)
        os.set_inheritable(number, True)
    else:
        os.close(nowhere)
    return os.fdopen(number, "w", encoding="utf-8", errors="backslashreplace", closefd=False)


class Progress:
    """Standard error: once it can no longer be written, what is written is dropped."""

    def __init__(self, stream: "TextIO") -> None:
        self._stream = stream
        if isinstance(stream, TextIOWrapper) and stream.errors == "strict":
            # What the locale has no character for is written as an escape.
            stream.reconfigure(errors="backslashreplace")
        self._broken: OSError | None = None

    def write(self, text: str) -> int:
        """Write; a stream that takes nothing more is given up."""
        try:
            return self._stream.write(text)
        except OSError as exc:
            self._give_up(exc)
            return len(text)

    def flush(self) -> None:
        """Flush; a stream that takes nothing more is given up."""
        try:
            self._stream.flush()
        except OSError as exc:
            self._give_up(exc)

    def _give_up(self, why: OSError) -> None:
        """What is left in its buffers goes nowhere, also where the interpreter flushes them at its end."""
        self._broken = why
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Result(Progress):
    """Standard output: where it takes nothing more, the command has failed.

    Every write raises OutputClosed from then on: libraries that try a stream pass over the first.
    """

    def write(self, text: str) -> int:
        """Write, or raise OutputClosed. What a stored run says moves no cursor, whichever command prints it."""
        written = super().write(tame(text))
        if self._broken is not None:
            raise OutputClosed(f"standard output takes nothing more: {self._broken.strerror}") from self._broken
        return written

    def _give_up(self, why: OSError) -> None:
        super()._give_up(why)
        raise OutputClosed(f"standard output takes nothing more: {why.strerror}") from why
