"""The main loop of a worker process, the commands that it receives, and its reports."""

import os
import select
import time
from collections.abc import Callable

from workloads.protocol import Report

#: A choice: each flush costs CPU, and a timeline that waits for counts sees them so much later (``Workers.counts``).
_FLUSH_EVERY_S = 0.25
#: A choice: commands and flushes wait at most this long.
_WAIT_S = 0.05


class HarnessGoneError(Exception):
    """Standard input or output was closed by the other side."""


class Commands:
    """Reads commands, one a line, from standard input. ``poll`` never waits."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._rest = b""

    def wait(self) -> str:
        """Wait for the next line. Raises HarnessGoneError at the end of the input."""
        while True:
            if (line := self._line()) is not None:
                return line
            self._read()

    def poll(self) -> str | None:
        """The next line, if there is one. Raises HarnessGoneError at the end of the input."""
        if select.select([self._descriptor], [], [], 0)[0]:
            self._read()
        return self._line()

    def _read(self) -> None:
        read = os.read(self._descriptor, 65_536)
        if not read:
            raise HarnessGoneError
        self._rest += read

    def _line(self) -> str | None:
        line, newline, rest = self._rest.partition(b"\n")
        if not newline:
            return None
        self._rest = rest
        return line.decode()


def send_report(report: Report) -> None:
    """Print one line. Raises HarnessGoneError if the harness no longer reads."""
    try:
        print(report.model_dump_json(), flush=True)
    except BrokenPipeError as exc:
        raise HarnessGoneError from exc


def run(
    commands: Commands, step: Callable[[float], None], finished: Callable[[float], bool], flush: Callable[[], Report]
) -> Report:
    """The worker's loop: call ``step`` until asked to finish, then call ``finished`` until it returns true or the time
    is over.

    ``step`` and ``finished`` get the seconds that they may take at most; ``finished`` also works towards the end. Every
    quarter of a second the loop flushes the journals and reports statistics. Returns the last report. Raises
    HarnessGoneError.
    """
    deadline: float | None = None
    flushed = time.monotonic()
    while True:
        now = time.monotonic()
        if now - flushed >= _FLUSH_EVERY_S:
            send_report(flush())
            flushed = now
        command = commands.poll()
        if command is not None and deadline is None:
            deadline = now + float(command.removeprefix("finish"))
        if deadline is None:
            step(_WAIT_S)
        elif now >= deadline or finished(_WAIT_S):
            return flush()
