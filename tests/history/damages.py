"""Ways in which the files of a stored run go bad, drawn at random; and what becomes of a run that is judged then."""

import shutil
from collections.abc import Callable
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from random import Random

from harness.cli.judging import case
from harness.core.errors import KafkaTrialError

#: What may become of a damaged run.
WELL = ("refused", "same", "unsealed")

#: So much of a file is lost at once where a disk loses a block.
_BLOCK = 4096


def files(run: Path) -> list[Path]:
    """Every file of a run."""
    return sorted(path for path in run.rglob("*") if path.is_file())


def contents(run: Path) -> dict[Path, bytes]:
    """All that is in them, by their paths in the run."""
    return {path.relative_to(run): path.read_bytes() for path in files(run)}


def _removed(path: Path, _: Random) -> None:
    path.unlink()


def _directory_removed(path: Path, _: Random) -> None:
    shutil.rmtree(path.parent)


def _cut_off(path: Path, draws: Random) -> None:
    path.write_bytes(path.read_bytes()[: draws.randrange(path.stat().st_size or 1)])


def _flipped(path: Path, draws: Random) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(draws.choice((1, 1, 2, 8)) if content else 0):
        content[draws.randrange(len(content))] ^= 1 << draws.randrange(8)
    path.write_bytes(content)


def _block_zeroed(path: Path, draws: Random) -> None:
    content = bytearray(path.read_bytes())
    start = draws.randrange(len(content) or 1) // _BLOCK * _BLOCK
    content[start : start + _BLOCK] = bytes(len(content[start : start + _BLOCK]))
    path.write_bytes(content)


def _prolonged(path: Path, draws: Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content + content[draws.randrange(len(content) or 1) :] + b"\0")


def _another_in_its_place(path: Path, draws: Random) -> None:
    others = [one for one in files(_run_of(path)) if one != path]
    path.write_bytes(draws.choice(others).read_bytes())


def _exchanged(path: Path, draws: Random) -> None:
    other = draws.choice(files(_run_of(path)))
    mine, its = path.read_bytes(), other.read_bytes()
    path.write_bytes(its)
    other.write_bytes(mine)


def _renamed(path: Path, draws: Random) -> None:
    path.rename(path.with_stem(f"{path.stem}-{draws.randrange(10)}"))


def _there_twice(path: Path, draws: Random) -> None:
    shutil.copyfile(path, path.with_stem(f"{path.stem}-{draws.randrange(10)}"))


def _run_of(path: Path) -> Path:
    return next(up for up in path.parents if (up / "history").is_dir())


WAYS: tuple[Callable[[Path, Random], None], ...] = (
    *(_removed, _directory_removed, _cut_off, _flipped, _block_zeroed, _prolonged),
    *(_another_in_its_place, _exchanged, _renamed, _there_twice),
)


def damage(run: Path, draws: Random) -> str:
    """Damage one file; how, and which."""
    chosen = [path for path in files(run) if path.parent != run or path.suffix == ".json"]
    path, way = draws.choice(chosen), draws.choice(WAYS)
    if way is _directory_removed and path.parent == run:
        way = _removed
    way(path, draws)
    return f"{way.__name__.strip('_')}: {path.relative_to(run)}"


def outcome(run: Path, whole: dict[Path, bytes], judged_by: frozenset[Path]) -> str:
    """What `check` does with a damaged run before Spark judges it: ``refused``, in one line that names the run;
    ``same`` where all that a verdict rests on (``judged_by``, files of the run when it was ``whole``) is as it was, and
    ``unsealed`` where that is so without a seal, and is said; or else ``silent``.
    """
    said = StringIO()
    try:
        with redirect_stderr(said), case(run, lambda _: True):
            pass
    except KafkaTrialError as exc:
        line = str(exc)
        return "refused" if str(run) in line and "\n" not in line else f"said in other words: {line}"
    now = contents(run)
    history = {path for path in now if path.parts[0] == "history"}
    same = all(now.get(path) == whole[path] for path in judged_by) and history <= judged_by
    return ("unsealed" if "has no seal" in said.getvalue() else "same") if same else "silent"
