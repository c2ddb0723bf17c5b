"""Runs of scenarios one after the other, each while the tests look at the one before.

A cluster comes up as soon as nothing of the last run is measured any more, as in a suite: while it is read, and its
cluster goes down, and it is judged, and its test judges it again.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from harness.core.verdict import Verdict
from harness.run.display import Display
from harness.scenario.model import Scenario
from harness.suite.plan import measured_until

Run = Callable[[Scenario, Path, int, Display], tuple[Path, Verdict]]

#: One run is measured, another is read and judged.
_AT_ONCE = 2


class GivenUp(BaseException):
    """Nobody waits for this run any more. Not an Exception: it goes through a run as Ctrl-C does."""


class Turn:
    """A display that hands the turn on to the next run in the phase ``until``, and keeps the lines it got."""

    def __init__(self, turn: threading.Lock, over: threading.Event, until: str) -> None:
        self._turn = turn
        self._over = over
        self._until = until
        self._mine = False
        self.lines: list[str] = []

    def take(self) -> None:
        """Wait for the turn."""
        self._turn.acquire()
        self._mine = True
        self._go_on()

    def release(self) -> None:
        """Hand it on; twice is harmless."""
        if self._mine:
            self._mine = False
            self._turn.release()

    def phase(self, name: str) -> None:
        """The next may begin once nothing of this one is measured any more."""
        self.line(f"== {name}")
        if name == self._until:
            self.release()

    def step(self, text: str, seconds_left: float | None) -> None:
        """A step that is under way is a moment to give a run up."""
        self._go_on()

    def status(
        self, sent: int, acknowledged: int, failed: int, leader: str | None, isr: Sequence[str], faults: Sequence[str]
    ) -> None:
        """As of a step."""
        self._go_on()

    def line(self, text: str) -> None:
        """Kept, for whom a run has failed."""
        self.lines.append(text)

    def _go_on(self) -> None:
        if self._over.is_set():
            raise GivenUp


@contextmanager
def played(
    run: Run, scenarios: Sequence[Scenario], store: Path, seed: int
) -> Iterator[dict[str, Future[tuple[Path, Verdict]]]]:
    """Run scenarios in this order; what each comes to, by its name. Those that nobody waits for are broken off."""
    turn, over = threading.Lock(), threading.Event()

    def play(scenario: Scenario) -> tuple[Path, Verdict]:
        mine = Turn(turn, over, measured_until(scenario))
        try:
            mine.take()
            return run(scenario, store, seed, mine)
        except BaseException as exc:
            exc.add_note("\n".join(mine.lines))
            raise
        finally:
            mine.release()

    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="run") as pool:
        try:
            yield {scenario.name: pool.submit(play, scenario) for scenario in scenarios}
        finally:
            over.set()
            pool.shutdown(cancel_futures=True)
