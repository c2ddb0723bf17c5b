"""Which runs a store need not keep."""

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness.history.lock import is_recorded, judging_lock
from harness.history.run_file import State
from harness.suite.stored import Stored

_DAY = 86_400.0


@dataclass(frozen=True)
class Kept:
    """A run and what it takes, in bytes."""

    run: Stored
    size: int


def to_remove(runs: Sequence[Kept], now: float, days: float | None, most: int | None, unexpected: bool) -> list[Kept]:
    """The runs older than ``days``, then the oldest until at most ``most`` bytes are kept.

    A run that has no verdict, or one that was not expected, is kept unless ``unexpected``; it counts for the bytes.
    One that sent nothing may go.
    """
    oldest_first = sorted(runs, key=lambda kept: kept.run.began)
    left = sum(kept.size for kept in runs)
    chosen = []
    for kept in oldest_first:
        too_old = days is not None and now - kept.run.began > days * _DAY
        too_much = most is not None and left > most
        if (too_old or too_much) and (unexpected or _may_go(kept.run)):
            chosen.append(kept)
            left -= kept.size
    return chosen


def _may_go(run: Stored) -> bool:
    return run.file.state is State.INTERRUPTED if run.verdict is None else run.verdict.expected


def size_of(directory: Path) -> int:
    """The bytes of all files below; no link is followed."""
    return sum(path.lstat().st_size for path in directory.rglob("*") if not path.is_dir() or path.is_symlink())


def remove(directory: Path) -> bool:
    """Remove a run, and the folder of its scenario where it was the last; False where it is being recorded."""
    if is_recorded(directory):
        return False
    with judging_lock(directory):
        shutil.rmtree(directory)
    with suppress(OSError):
        directory.parent.rmdir()
    return True


def removed(chosen: Sequence[Kept], dry_run: bool) -> Iterator[tuple[str, Kept | None]]:
    """Remove these; a line for each that was, or would be, removed, with the run; or is left alone, with None."""
    for kept in chosen:
        age = (time.time() - kept.run.began) / _DAY
        said = f"{kept.run.directory} ({kept.size / 1e6:.1f} MB, {age:.0f} days old)"
        if dry_run:
            yield f"would remove {said}", kept
        elif remove(kept.run.directory):
            yield f"removed {said}", kept
        else:
            yield f"left {said} alone: it is being recorded", None
