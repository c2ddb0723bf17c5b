"""A recorder as the suite sees it: the suite starts it, reads its events, lets it continue, or interrupts it."""

import signal
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from harness.core import children
from harness.suite.recorder import ENDS, Event, Order

#: The seconds that an interrupted run has to heal, to remove its cluster and to store its logs. Then it is killed.
_BREAK_OFF_SECONDS = 120.0


class Recorder:
    """The process that records a run. ``on_event`` is called for each event, in a thread of its own. The last event is
    one of ENDS, whatever happens to the process.

    The process has a session of its own, so that Ctrl-C in the terminal reaches only the suite.
    """

    def __init__(self, order: Order, log: Path, on_event: Callable[[Event], None]) -> None:
        self._on_event = on_event
        with log.open("wb") as stderr:
            self._process = children.start("harness.suite.recorder", stderr)
        self._listener = threading.Thread(target=self._listen, name=f"recorder {order.written}", daemon=True)
        # (If the process is dead, the listener reports it.)
        children.say(self._process, order.model_dump_json())
        self._listener.start()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def begin(self) -> None:
        """Let the cluster come up."""
        children.say(self._process, "begin")

    def go(self) -> None:
        """Let the timeline begin."""
        children.say(self._process, "go")

    def break_off(self) -> None:
        """Interrupt the process, as Ctrl-C does, and do not wait. Doing so twice is harmless."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)

    def wait(self) -> None:
        """Wait until the process ends. Kill it if it was interrupted and does not end."""
        deadline = time.monotonic() + _BREAK_OFF_SECONDS
        try:
            self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._listener.join()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(BrokenPipeError):
                if stream is not None:
                    stream.close()

    def _listen(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        ended = False
        for line in stdout:
            try:
                event = Event.model_validate_json(line)
            except ValidationError:
                continue
            ended |= event.kind in ENDS
            self._on_event(event)
        status = self._process.wait()
        if not ended:
            died = f"its process was killed by signal {-status}" if status < 0 else f"its process ended with {status}"
            self._on_event(Event(kind="failed", text=died))
