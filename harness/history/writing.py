"""The only way to change a run directory: a file is whole or missing, and no link is followed."""

import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

from harness.core.errors import HistoryError

#: The names of temporary folders begin so: results are made in them, and then moved into place.
_BESIDE = ".beside-"


def write_file(directory: Path, name: str, text: str) -> Path:
    """Write ``<directory>/<name>`` in UTF-8 and return its path: write a temporary file, then rename it.

    A reader sees the old file or the new one. A link of that name is replaced, not followed. Raises OSError if the
    directory cannot be written.
    """
    beside = directory / f".{name}-{secrets.token_hex(4)}"
    # O_EXCL follows no link. The umask decides the mode, as of any other file.
    made = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(made, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        return beside.replace(directory / name)
    except BaseException as exc:
        beside.unlink(missing_ok=True)
        if isinstance(exc, OSError) and exc.filename is None:
            exc.filename = str(directory / name)  # (The error of a full disk names no file.)
        raise


@contextmanager
def made_beside(directory: Path) -> Iterator[Path]:
    """A temporary folder within ``directory``. It is removed at the end, with all that was not moved out of it."""
    folder = Path(mkdtemp(prefix=_BESIDE, dir=directory))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_left_beside(directory: Path) -> None:
    """Remove the temporary folders of a killed process. The caller holds the lock under which they are made."""
    for folder in directory.glob(f"{_BESIDE}*"):
        shutil.rmtree(folder, ignore_errors=True)


def swap_in(made: Path, into: Path) -> None:
    """Replace ``into`` by the folder ``made``; if ``made`` does not exist, remove ``into``.

    Both are in the same run directory. If ``into`` cannot be moved away, raises OSError and leaves it as it was.
    """
    old = made.with_name(f"{made.name}-old")
    if into.exists():
        into.rename(old)
    if made.exists():
        made.rename(into)


def refuse_links(run: Path) -> None:
    """Raises HistoryError if some path in the run directory is a link, or neither a file nor a folder: names it.

    The path of the directory itself may be a link: the user chose it.
    """
    for folder, folders, files in os.walk(run, onerror=_raise):
        for path in (Path(folder, name) for name in sorted(folders + files)):
            try:
                mode = path.lstat().st_mode
            except FileNotFoundError:
                continue
            if stat.S_ISLNK(mode):
                raise HistoryError(f"{path}: a link: what a run holds is its own; replace it by what it points to")
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                raise HistoryError(f"{path}: neither a file nor a folder: no part of a run")


def _raise(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error
