"""All tests that need no cluster, but for the proof, in three processes: ``python -m tests.fast``.

One runs all that needs Spark, in one session. Two run meanwhile what mostly waits, for a mock cluster or for a
deadline; they are shown when all are done.
"""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack

_FAST = "not cluster and not proof and not lab"
_WAITS = "tests/workloads"

#: The one that is shown at once, and those that are shown at the end.
PARTS = (
    ("-m", f"spark and {_FAST}"),
    ("-m", f"not spark and {_FAST}", _WAITS),
    ("-m", f"not spark and {_FAST}", f"--ignore={_WAITS}"),
)


def main() -> int:
    """Run all parts; the exit code of the first that failed, or 0."""
    pytest = (sys.executable, "-m", "pytest", "--durations=10")
    return beside(*([*pytest, *part] for part in PARTS))


def beside(shown: Sequence[str], *meanwhile: Sequence[str]) -> int:
    """Run commands at once, and show what all but the first printed at the end; the first code that is not 0.

    Whatever ends this ends all: none outlives it.
    """
    with ExitStack() as stack:
        others = []
        for command in meanwhile:
            printed = stack.enter_context(tempfile.TemporaryFile())
            others.append((subprocess.Popen(command, stdout=printed, stderr=subprocess.STDOUT), printed))
        try:
            with subprocess.Popen(shown) as first:
                codes = (first.wait(), *(other.wait() for other, _ in others))
        finally:
            for other, printed in others:
                other.kill()
                other.wait()
                printed.seek(0)
                sys.stdout.buffer.write(printed.read())
            sys.stdout.flush()
    return next((code for code in codes if code), 0)


if __name__ == "__main__":
    sys.exit(main())
