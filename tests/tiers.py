"""Tiers of tests whose parts run beside each other: ``python -m tests.tiers fast`` and ``... core``.

``fast``: all tests that need no cluster, but for the proof, the heavy and the long. One part needs Spark, and most of
two cores; the others mostly wait: for a mock cluster, for packets, for a deadline.

``core``: the core of the tests on clusters, which mostly wait. Meanwhile, and only with what these leave of the
machine, the core of the proof and the heavy.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from itertools import chain
from pathlib import Path

_FAST = "not cluster and not proof and not heavy and not long and not lab"
#: The tests that wait longest, or are most. Each group of paths is a separate part.
_APART = (
    ("tests/workloads/test_groups.py",),
    ("tests/workloads/test_running.py",),
    ("tests/nemesis",),
    ("tests/cli", "tests/providers"),
    ("tests/history", "tests/importing", "tests/scenario", "tests/suite"),
    ("tests/checkers", "tests/mutants"),
)

_PROOF = "proof and core and not long"
#: The simulated histories of the proof are a separate part.
_SIMULATED = "tests/simulated"

#: A command that only gets the time that others leave. (Linux may first share the time between sessions.)
LOWLY = ("sh", "-c", 'echo 19 2>&- >/proc/self/autogroup; exec nice -n 19 "$@"', "lowly")

_PYTEST = (sys.executable, "-m", "pytest")

#: Seconds that an interrupted part may take to remove the clusters that it brought up.
_CLEANS_UP_S = 60

#: For each tier the part whose output is shown at once, and those whose output is shown at the end.
TIERS = {
    "fast": (
        (*_PYTEST, "--durations=10", "-m", f"spark and {_FAST}"),
        *((*_PYTEST, "--durations=10", "-m", f"not spark and {_FAST}", *paths) for paths in _APART),
        (*_PYTEST, "--durations=10", "-m", f"not spark and {_FAST}", *(f"--ignore={path}" for path in chain(*_APART))),
    ),
    "core": (
        (*_PYTEST, "--durations=0", "-m", "cluster and core"),
        (*LOWLY, *_PYTEST, "--durations=10", "-m", _PROOF, f"--ignore={_SIMULATED}"),
        (*LOWLY, *_PYTEST, "--durations=10", "-m", _PROOF, _SIMULATED),
        (*LOWLY, *_PYTEST, "--durations=10", "-m", "heavy and not long and not proof"),
    ),
}


def beside(shown: Sequence[str], *meanwhile: Sequence[str]) -> int:
    """Run commands at the same time. The output of all but the first is shown at the end. Returns the first exit code
    that is not 0.

    Each has temporary files of its own: at their ends two processes of pytest would clear away the same. They are kept
    if one failed. Whatever ends this ends all: none outlives it.
    """
    temporary = Path(tempfile.mkdtemp(prefix="tests-"))
    with ExitStack() as stack:
        others = []
        for n, command in enumerate(meanwhile, 1):
            printed = stack.enter_context(tempfile.TemporaryFile())
            own = _with_temporary(temporary / str(n))
            other = subprocess.Popen(command, stdout=printed, stderr=subprocess.STDOUT, start_new_session=True, env=own)
            others.append((other, printed))
        try:
            with subprocess.Popen(shown, env=_with_temporary(temporary / "0")) as first:
                try:
                    codes = (first.wait(), *(other.wait() for other, _ in others))
                except SystemExit:
                    first.send_signal(signal.SIGINT)
                    with suppress(subprocess.TimeoutExpired):
                        first.wait(_CLEANS_UP_S)
                    first.kill()
                    raise
        finally:
            for other, printed in others:
                with suppress(ProcessLookupError):
                    os.killpg(other.pid, signal.SIGKILL)
                other.wait()
                printed.seek(0)
                sys.stdout.buffer.write(printed.read())
            sys.stdout.flush()
    code = next((code for code in codes if code), 0)
    if code == 0:
        shutil.rmtree(temporary, ignore_errors=True)
    return code


def _with_temporary(directory: Path) -> dict[str, str]:
    """The environment of a process of pytest that keeps its temporary files in a new directory."""
    directory.mkdir()
    return {**os.environ, "PYTEST_DEBUG_TEMPROOT": str(directory)}


def main(tier: Sequence[Sequence[str]]) -> int:
    """Run a tier. If SIGTERM ends it, its parts end, too."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    return beside(*tier)


if __name__ == "__main__":
    sys.exit(main(TIERS[sys.argv[1]]))
