"""The harness's side of a worker process: starts it, reads its reports, asks it to finish, kills it."""

import signal
import subprocess
import threading
import time

from pydantic import ValidationError

from harness.core import children
from workloads.protocol import NamedSpec, Report, Spec

#: A choice: to flush and end takes less. A process that stays in a call of its client is not waited for.
_TERMINATE_S = 2.0
#: A choice: the end of a traceback has the error, and where it was raised.
_STDERR_LINES = 5
#: A choice: short against a poll's processing, in whose first half it must be noticed.
_LOOK_S = 0.01


class Worker:
    """One worker process. Its client works from ``begin`` on.

    It has a session of its own, so a Ctrl-C in the terminal reaches only the harness.
    """

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.report: Report | None = None
        self._stderr_path = spec.journals / f"worker.{spec.journal}.log"
        with self._stderr_path.open("wb") as stderr:
            self._process = children.start("workloads.worker", stderr)
        self._listener = threading.Thread(target=self._listen, name=f"worker {spec.worker}", daemon=True)
        self._listener.start()
        self.say(NamedSpec.to(spec).model_dump_json())

    def begin(self) -> None:
        """Let it begin. Does nothing if it is dead."""
        self.say("begin")

    @property
    def name(self) -> str:
        """``producer 1``."""
        return f"{self.spec.role} {self.spec.worker}"

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process lives."""
        return self._process.poll() is None

    @property
    def death(self) -> str | None:
        """How it died before it finished, with its last lines of stderr; None if it did not die."""
        if self.running:
            return None
        self._listener.join()
        if self.report is not None and self.report.finished:
            return None
        last = self._stderr_path.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-_STDERR_LINES:]
        said = " | ".join(last) or "it wrote nothing to stderr"
        return f"{self.name} died (exit status {self._process.returncode}): {said}"

    def say(self, line: str) -> None:
        """Send it a command. Does nothing if it is dead."""
        if not children.say(self._process, line):
            # ``death`` reports it.
            self._process.wait()

    def finish(self, within: float) -> None:
        """Ask it to finish. Does nothing if it is dead."""
        self.say(f"finish {within:.3f}")

    def wait(self, within: float) -> bool:
        """Wait for its end; return whether it ended within this many seconds."""
        try:
            self._process.wait(max(0.0, within))
        except subprocess.TimeoutExpired:
            return False
        return True

    def is_processing(self, within: float) -> bool:
        """Wait until it has processed some records of a poll, but less than half; return whether that happened in
        time."""
        deadline = time.monotonic() + within
        while not self._is_in_mid_poll and self.running and time.monotonic() < deadline:
            time.sleep(_LOOK_S)
        return self._is_in_mid_poll

    @property
    def _is_in_mid_poll(self) -> bool:
        done = None if self.report is None else self.report.processed
        return done is not None and 0 < done < 1 / 2

    def kill(self) -> bool:
        """End it by SIGKILL: it writes nothing more. Returns False if it had ended by itself before."""
        if not self.running:
            return False
        self._process.kill()
        killed = self._process.wait() == -signal.SIGKILL
        self.end()
        return killed

    def end(self) -> bool:
        """Close its standard input, so that it flushes and ends; kill it if it does not end. A second call is harmless.
        Returns False if it had to be killed in the middle of its work."""
        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.close()
        except BrokenPipeError:
            self._process.wait()
        ended = self.wait(_TERMINATE_S)
        if not ended:
            self._process.kill()
            self._process.wait()
        self._listener.join()
        return ended

    def _listen(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        with stdout:
            for line in stdout:
                try:
                    self.report = Report.model_validate_json(line)
                except ValidationError:
                    with self._stderr_path.open("ab") as log:
                        log.write(b"not a report: " + line)
