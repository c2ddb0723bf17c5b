"""All tests that need no cluster, but for the proof, in two processes: ``python -m tests.fast``.

One runs all that needs Spark, in one session. The other runs meanwhile what mostly waits, for a mock cluster or for a
deadline; it is shown when both are done.
"""

import subprocess
import sys
import tempfile
from collections.abc import Sequence

_FAST = "not cluster and not proof"

#: What is shown at once, and what is shown at the end.
PARTS = (f"spark and {_FAST}", f"not spark and {_FAST}")


def main() -> int:
    """Run both; the exit code of the first that failed, or 0."""
    pytest = (sys.executable, "-m", "pytest", "--durations=10", "-m")
    return beside(*([*pytest, part] for part in PARTS))


def beside(shown: Sequence[str], meanwhile: Sequence[str]) -> int:
    """Run two commands at once, and show what the second printed after the first; the first code that is not 0.

    Whatever ends this ends both: neither outlives it.
    """
    with tempfile.TemporaryFile() as printed:
        second = subprocess.Popen(meanwhile, stdout=printed, stderr=subprocess.STDOUT)
        try:
            with subprocess.Popen(shown) as first:
                codes = (first.wait(), second.wait())
        finally:
            second.kill()
            second.wait()
            printed.seek(0)
            sys.stdout.buffer.write(printed.read())
            sys.stdout.flush()
    return next((code for code in codes if code), 0)


if __name__ == "__main__":
    sys.exit(main())
