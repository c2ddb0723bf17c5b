"""Locks on a run: one process records it, and one process at a time judges it."""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_FILE = ".recording"

#: The errors of filesystems that cannot lock a directory (NFS).
_NO_LOCKS = frozenset({errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL})


class RecordingLock:
    """A lock that is held from its construction until ``release``, or until the process ends.

    Raises BlockingIOError if another process holds it.
    """

    def __init__(self, directory: Path) -> None:
        self._file = (directory / _FILE).open("wb")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise

    def release(self) -> None:
        """Release the lock. Doing so twice is harmless."""
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

    The directory itself is locked: that needs no permission to write, and leaves no file. Yields whether the lock is
    held: a filesystem may be unable to lock directories.
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
