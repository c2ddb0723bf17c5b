"""Whether a run is still being recorded: a lock in its directory, held by the process that records it."""

import fcntl
from pathlib import Path

_FILE = ".recording"


class RecordingLock:
    """Held from its making until ``release``, or until the process ends in whatever way."""

    def __init__(self, directory: Path) -> None:
        self._file = (directory / _FILE).open("w")
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def release(self) -> None:
        """Let go of it. Twice is harmless."""
        self._file.close()


def is_recorded(directory: Path) -> bool:
    """Whether a living process records the run in ``directory``."""
    path = directory / _FILE
    if not path.exists():
        return False
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
