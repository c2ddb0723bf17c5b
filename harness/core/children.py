"""Child processes that run our own modules. They read lines and answer in lines."""

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import IO

Child = subprocess.Popen[bytes]


def start(module: str, stderr: IO[bytes]) -> Child:
    """Run one of our modules in a session of its own: Ctrl-C in the terminal reaches only this process.

    The child has the same import path as this process. It never imports from the current directory, where a user may
    have a ``yaml.py``. NumPy computes in one thread there: to start others costs a quarter of the child's start.
    """
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        start_new_session=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OPENBLAS_NUM_THREADS": "1"},
    )


class _WithoutPandas(MetaPathFinder):
    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:  # noqa: ARG002
        if fullname == "pandas":
            raise ModuleNotFoundError(f"{fullname} is not imported here", name=fullname)


def without_pandas() -> None:
    """Keep pyarrow from importing pandas when it first converts a list. The import costs each process up to half a
    second of a core, and nothing of ours needs it."""
    sys.meta_path.insert(0, _WithoutPandas())


def say(child: Child, line: str) -> bool:
    """Write a line to the child. False if it has ended, or is about to."""
    assert child.stdin is not None
    try:
        child.stdin.write(line.encode() + b"\n")
        child.stdin.flush()
    except BrokenPipeError:
        return False
    return True
