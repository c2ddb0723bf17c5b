"""The program as a user has it: ``kafka-trial`` in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

from tests.command import Done

COMMAND = [str(Path(sys.executable).with_name("kafka-trial"))]


def kafka_trial(*arguments: str | Path, timeout: float = 240) -> Done:
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=timeout, check=False
    )
    return Done(done.returncode, done.stdout, done.stderr)


def begin(*arguments: str | Path) -> subprocess.Popen[str]:
    """A command that keeps running in its own process group, so that only the test sends it signals."""
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        start_new_session=True,
    )
