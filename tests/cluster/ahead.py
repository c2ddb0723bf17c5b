"""Runs of scenarios one after the other, each while the tests look at the one before.

A cluster comes up as soon as the last one is down: while that run is judged, and its test judges it again. There is
never more than one cluster.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from harness.core.verdict import Verdict
from harness.run.display import Display
from harness.scenario.model import Scenario

Run = Callable[[Scenario, Path, int, Display], tuple[Path, Verdict]]

#: The phase of a run whose cluster is gone.
JUDGING = "judge"
#: One run has a cluster, another is judged.
_AT_ONCE = 2


class GivenUp(BaseException):
    """Nobody waits for this run any more. Not an Exception: it goes through a run as Ctrl-C does."""


class Turn:
    """A display that hands the turn on to the next run when its own cluster is gone, and keeps what it was told."""

    def __init__(self, turn: threading.Lock, over: threading.Event) -> None:
        self._turn = turn
        self._over = over
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
        """The next may begin once this one is judged."""
        self.line(f"== {name}")
        if name == JUDGING:
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
        mine = Turn(turn, over)
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
