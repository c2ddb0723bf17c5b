"""A recorder as the suite sees it: started, listened to, let go on, broken off."""

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

#: A run that is broken off heals, removes its cluster and keeps its logs; one that does not come to that is killed.
_BREAK_OFF_SECONDS = 120.0


class Recorder:
    """A run that is being recorded, from ``begin`` on. ``on_event`` is called with each event, from a thread of its
    own; the last is one of ENDS, whatever becomes of the process.

    In a session of its own: a Ctrl-C in the terminal is the suite's to handle.
    """

    def __init__(self, order: Order, log: Path, on_event: Callable[[Event], None]) -> None:
        self._on_event = on_event
        with log.open("wb") as stderr:
            self._process = children.start("harness.suite.recorder", stderr)
        self._listener = threading.Thread(target=self._listen, name=f"recorder {order.written}", daemon=True)
        # Where it is dead, the listener reports it.
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
        """Interrupt it, as Ctrl-C does; twice is harmless. Does not wait."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)

    def wait(self) -> None:
        """Wait until it is over, and kill it where it does not end after having been broken off."""
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
