"""Who works on a run: the process that records it, and one at a time that judges it."""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_FILE = ".recording"

#: What filesystems answer that lock no directories (NFS).
_NO_LOCKS = frozenset({errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL})


class RecordingLock:
    """Held from its making until ``release``, or until the process ends in whatever way.

    Raises BlockingIOError where another process holds it.
    """

    def __init__(self, directory: Path) -> None:
        self._file = (directory / _FILE).open("wb")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise

    def release(self) -> None:
        """Let go of it. Twice is harmless."""
        self._file.close()


def is_recorded(directory: Path) -> bool:
    """Whether a living process records the run in ``directory``. Raises OSError where that cannot be seen."""
    try:
        file = os.open(directory / _FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


@contextmanager
def judging_lock(directory: Path) -> Iterator[bool]:
    """Wait until nobody else judges the run in ``directory``, and keep others waiting meanwhile.

    It is a lock on the directory itself: it needs no permission to write, and leaves nothing behind. Says whether it
    is held: not on a filesystem that locks no directories.
    """
    file = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield _locked(file)
    finally:
        os.close(file)


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
    except OSError as exc:
        if exc.errno in _NO_LOCKS:
            return False
        raise
    return True
