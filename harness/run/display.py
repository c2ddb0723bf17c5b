"""Shows the progress of a run: live on a terminal, as plain lines elsewhere."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self, TextIO

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

#: Seconds between two plain lines while only the counts change. A choice: the log of a long run stays readable.
_EVERY = 5.0


class Display(Protocol):
    """Shows progress. The run's own thread calls it whenever there is something new."""

    def phase(self, name: str) -> None:
        """A phase of the run begins."""

    def step(self, text: str, seconds_left: float | None) -> None:
        """A step of the timeline goes on. It takes ``seconds_left`` at most; None if that is unknown."""

    def status(
        self, sent: int, acknowledged: int, failed: int, leader: str | None, isr: Sequence[str], faults: Sequence[str]
    ) -> None:
        """The present state: counts of records, leader and ISR of the watched partition, names of the active faults."""

    def line(self, text: str) -> None:
        """A message on a line of its own."""


class _Shown:
    """A display as a context manager, so that a terminal is restored however the run ends."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return


@dataclass(frozen=True)
class _Status:
    """One call of ``status``."""

    sent: int
    acknowledged: int
    failed: int
    leader: str | None
    isr: tuple[str, ...]
    faults: tuple[str, ...]

    @property
    def roles(self) -> tuple[object, ...]:
        """The values whose change is shown at once."""
        return (self.leader, self.isr, self.faults)

    @property
    def records(self) -> str:
        """The counts, in words."""
        return f"{self.sent:,} sent, {self.acknowledged:,} acknowledged, {self.failed:,} failed"

    @property
    def led(self) -> str:
        """Leader and ISR, in words."""
        return f"leader {self.leader or 'none'}, ISR {' '.join(self.isr) or 'empty'}"

    @property
    def broken(self) -> str:
        """The active faults, in words."""
        return " ".join(self.faults) or "none"


class PlainDisplay(_Shown):
    """For logs: a line for each change, and one with the counts every five seconds. ``now`` returns seconds."""

    def __init__(self, stream: TextIO, now: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._now = now
        self._began = now()
        self._step = ""
        self._last: tuple[float, tuple[object, ...]] | None = None

    def phase(self, name: str) -> None:
        """Print a line for each phase."""
        self.line(f"== {name}")

    def step(self, text: str, seconds_left: float | None) -> None:
        """Print a line if the step is a new one."""
        if text != self._step:
            self._step = text
            self.line(text if seconds_left is None else f"{text} ({seconds_left:.0f} s at most)")

    def status(
        self, sent: int, acknowledged: int, failed: int, leader: str | None, isr: Sequence[str], faults: Sequence[str]
    ) -> None:
        """Print a line if the leader, the ISR or the faults changed, and every five seconds."""
        status = _Status(sent, acknowledged, failed, leader, tuple(isr), tuple(faults))
        now = self._now()
        if self._last is None or self._last[1] != status.roles or now - self._last[0] >= _EVERY:
            self._last = (now, status.roles)
            self.line(f"{status.records}; {status.led}; faults: {status.broken}")

    def line(self, text: str) -> None:
        """Print the text after the seconds since the display began."""
        self._stream.write(f"{self._now() - self._began:6.1f} s  {text}\n")
        self._stream.flush()


class LiveDisplay(_Shown):
    """A few lines that are redrawn. Ended phases, and the texts of ``line``, stay above them."""

    def __init__(self, console: Console, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._console = console
        self._phase: tuple[str, float] | None = None
        self._step: tuple[str, float | None] = ("", None)
        self._status: _Status | None = None
        self._live = Live(get_renderable=self._drawn, console=console, refresh_per_second=4, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended()
        self._live.stop()

    def phase(self, name: str) -> None:
        """Show the phase. The ended one stays as a line with its seconds."""
        self._ended()
        self._phase = (name, self._now())
        self._step = ("", None)

    def step(self, text: str, seconds_left: float | None) -> None:
        """Show the step with a countdown of the seconds that are left."""
        self._step = (text, None if seconds_left is None else self._now() + seconds_left)

    def status(
        self, sent: int, acknowledged: int, failed: int, leader: str | None, isr: Sequence[str], faults: Sequence[str]
    ) -> None:
        """Show the state at the next redraw."""
        self._status = _Status(sent, acknowledged, failed, leader, tuple(isr), tuple(faults))

    def line(self, text: str) -> None:
        """Print a line that stays above the redrawn lines."""
        self._console.print(Text(text))

    def _ended(self) -> None:
        if self._phase is not None:
            name, since = self._phase
            self._console.print(Text.assemble((f"{self._now() - since:6.1f} s  ", "dim"), name))
            self._phase = None

    def _drawn(self) -> Table:
        rows = Table.grid(padding=(0, 2))
        rows.add_column(style="dim", justify="right")
        rows.add_column()
        if self._phase is not None:
            name, since = self._phase
            rows.add_row(f"{self._now() - since:.0f} s", Text(name, "bold"))
        text, until = self._step
        if text:
            rows.add_row("" if until is None else f"-{max(until - self._now(), 0):.0f} s", Text(text))
        if self._status is not None:
            rows.add_row("records", self._status.records)
            rows.add_row("roles", self._status.led)
            rows.add_row("faults", Text(self._status.broken, "bold red" if self._status.faults else "green"))
        return rows


AnyDisplay = PlainDisplay | LiveDisplay


def for_terminal(stream: TextIO) -> AnyDisplay:
    """The live display if ``stream`` is a terminal that can draw, else plain lines."""
    console = Console(file=stream)
    return LiveDisplay(console) if console.is_terminal and not console.is_dumb_terminal else PlainDisplay(stream)
