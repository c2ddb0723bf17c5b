"""Work that the runs of one user on this machine may do only one at a time."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.core.errors import EnvironmentLacks

CACHE = Path("~/.cache/kafka-trial").expanduser()


@contextmanager
def one_at_a_time(doing: str, folder: Path = CACHE) -> Iterator[None]:
    """Wait until no other process does the work of this name, and let none begin it until the block ends.

    Raises EnvironmentLacks if ``folder`` cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / f"{doing}.lock").open("w", encoding="utf-8")
    except OSError as exc:
        raise EnvironmentLacks(
            f"{folder}: cannot be written ({exc.strerror}): set HOME to a folder that is yours, or make room"
        ) from exc
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
