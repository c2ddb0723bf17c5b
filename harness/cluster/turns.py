"""What the runs of one user on this machine do one after the other."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CACHE = Path("~/.cache/kafka-trial").expanduser()


@contextmanager
def alone(doing: str) -> Iterator[None]:
    """Wait until no other process does what is called so, and let none begin it until the block ends."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{doing}.lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
