"""One run of a suite, recorded in a process of its own: ``python -m harness.suite.recorder``.

A run that crashes, hangs or is killed does not harm the others. Standard input: one line of JSON (``Order``); later the
line ``begin``, which starts the cluster, and the line ``go``, which starts the timeline. If standard input closes, the
suite has ended, and the run is interrupted as by Ctrl-C. Standard output: lines of JSON (``Event``). The last one says
how the run ended.
"""

import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Literal, TextIO

from pydantic import BaseModel, Field

from harness.core.children import without_pandas
from harness.core.errors import EnvironmentLacks, KafkaTrialError, NoMeans, ScenarioError, line_of
from harness.scenario.loading import load


class Order(BaseModel):
    """What to record."""

    written: str
    text: str | None = None
    overrides: list[str]
    digest: str
    store: Path
    seed: int


class Event(BaseModel):
    """An event of a recorder. ``phase``, ``step``, ``status``, ``line``: a display's methods. ``stands by``: all checks
    are done, and the cluster waits for ``begin``; with ``background``, it takes only idle cores until ``go``.
    ``ready``: the cluster serves, and the timeline waits for ``go``. ``recorded`` (with the run's directory), ``cannot
    run``, ``failed``: the run has ended."""

    kind: Literal["phase", "step", "status", "line", "stands by", "ready", "recorded", "cannot run", "failed"]
    text: str = ""
    background: bool = False
    needed: bool = Field(False, description="of ``cannot run``: what is missing is no more than that, and to be mended")


ENDS = frozenset({"recorded", "cannot run", "failed"})


class EventWriter:
    """A display that writes events. If nobody reads them, the run breaks off."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._step = ""

    def write(self, event: Event) -> None:
        """Write one event."""
        with self._lock:
            self._stream.write(event.model_dump_json() + "\n")
            self._stream.flush()

    def phase(self, name: str) -> None:
        """Write that a phase begins."""
        self.write(Event(kind="phase", text=name))

    def step(self, text: str, seconds_left: float | None) -> None:
        """Write a step, once."""
        if text != self._step:
            self._step = text
            self.write(
                Event(kind="step", text=text if seconds_left is None else f"{text} ({seconds_left:.0f} s at most)")
            )

    def status(
        self, sent: int, acknowledged: int, failed: int, leader: str | None, isr: Sequence[str], faults: Sequence[str]
    ) -> None:
        """Write the whole state as one text."""
        records = f"{acknowledged:,} of {sent:,} acknowledged, {failed:,} failed"
        led = f"leader {leader or 'none'}, ISR {' '.join(isr) or 'empty'}"
        self.write(Event(kind="status", text=f"{records}; {led}; faults: {' '.join(faults) or 'none'}"))

    def line(self, text: str) -> None:
        """Write a message."""
        self.write(Event(kind="line", text=text))


def record(
    order: Order,
    events: EventWriter,
    signals: Mapping[str, threading.Event],
    recorded: Callable[..., Path] | None = None,
) -> Event:
    """Record one run. Returns the event that says how it ended. ``recorded``: the function that records it, by default
    ``record_run``."""
    from harness.run.lifecycle import record_run
    from harness.suite.plan import digest

    def wait_for_begin(background: bool) -> None:
        events.write(Event(kind="stands by", background=background))
        signals["begin"].wait()

    def wait_for_go() -> None:
        events.write(Event(kind="ready"))
        signals["go"].wait()

    try:
        scenario = load(order.written, order.overrides, order.text)
        if digest(scenario) != order.digest:
            return Event(kind="failed", text=f"{order.written} changed since the suite began: start the suite again")
        directory = (recorded or record_run)(
            scenario,
            order.store,
            order.seed,
            events,
            background=True,
            before_cluster=wait_for_begin,
            before_timeline=wait_for_go,
        )
    except (EnvironmentLacks, ScenarioError) as exc:
        # (The user has to repair what is missing or unreadable now, perhaps an image or a machine.)
        return Event(kind="cannot run", text=_said(exc), needed=not isinstance(exc, NoMeans))
    except KafkaTrialError as exc:
        return Event(kind="failed", text=_said(exc))
    except KeyboardInterrupt as exc:
        return Event(kind="failed", text=_said(exc, "interrupted"))
    except Exception as exc:  # noqa: BLE001 - shown whole in the recorder's log, and in one line
        traceback.print_exception(exc)
        return Event(kind="failed", text=_said(exc, line_of(exc) or f"defect: {type(exc).__name__}: {exc}"))
    return Event(kind="recorded", text=str(directory))


def _said(exc: BaseException, what: str | None = None) -> str:
    """An error and its notes, in one line."""
    return "; ".join([*(what or str(exc)).splitlines(), *getattr(exc, "__notes__", ())])


def main() -> None:
    """Record the run that standard input describes."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    order = Order.model_validate_json(sys.stdin.readline())
    signals = {word: threading.Event() for word in ("begin", "go")}
    threading.Thread(target=_listen, args=(signals,), name="suite", daemon=True).start()
    without_pandas()
    events = EventWriter(sys.stdout)
    try:
        events.write(record(order, events, signals))
    except BrokenPipeError:
        # The suite has ended. The recording stays, and the cluster is already removed.
        os._exit(1)


def _listen(signals: Mapping[str, threading.Event]) -> None:
    for line in sys.stdin:
        if (word := line.strip()) in signals:
            signals[word].set()
    os.kill(os.getpid(), signal.SIGTERM)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """The first signal interrupts the run. Later ones are ignored, so that the cluster is removed."""
    for ignored in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ignored, signal.SIG_IGN)
    signal.default_int_handler(number, frame)


if __name__ == "__main__":
    main()
