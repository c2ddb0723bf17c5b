"""A line that says what is going on: on a terminal, and nowhere else."""

import io
import os
import pty
import select
import time

import pytest

from harness.cli.busy import busy


def read_until(master: int, wanted: str, within: float = 30.0) -> str:
    """What a terminal was sent until ``wanted`` is there, or time is over."""
    seen, until = "", time.monotonic() + within
    while wanted not in seen and time.monotonic() < until:
        if select.select([master], [], [], 0.2)[0]:
            seen += os.read(master, 65536).decode(errors="replace")
    return seen


def test_a_terminal_shows_the_current_work_and_its_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    master, slave = pty.openpty()
    with os.fdopen(slave, "w") as terminal, busy("judging", lambda: "run 2 of 3", terminal, now=lambda: 7.0):
        seen = read_until(master, "run 2 of 3")
    os.close(master)
    assert "0 s  judging, run 2 of 3" in seen


def test_elsewhere_it_says_nothing() -> None:
    stream = io.StringIO()
    with busy("judging", lambda: "run 2 of 3", stream):
        pass
    assert stream.getvalue() == ""
