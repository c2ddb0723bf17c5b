"""A file of a run directory is replaced as a whole, and through no link; it is UTF-8 in every locale."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.core.errors import HistoryError
from harness.history.lock import RecordingLock, is_recorded, judging_lock
from harness.history.writing import made_beside, refuse_links, swap_in, write_file

ROOT = Path(__file__).parents[2]


def test_a_file_replaces_a_link_and_leaves_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "verdict.json").symlink_to(tmp_path / "mine")
    assert write_file(tmp_path, "verdict.json", "→").read_bytes() == "→".encode()
    assert (tmp_path / "mine").read_text() == "mine"
    assert not (tmp_path / "verdict.json").is_symlink()


def test_a_file_has_the_mode_of_any_other(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    assert write_file(tmp_path, "one", "").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_file_that_cannot_be_written_whole_leaves_the_old_one_and_nothing_beside(tmp_path: Path) -> None:
    write_file(tmp_path, "one", "old")
    script = (
        "import resource, signal, sys; from pathlib import Path; from harness.history.writing import write_file\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "write_file(Path(sys.argv[1]), 'one', 'new' * 1000)"
    )
    command = [sys.executable, "-c", script, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert "File too large" in done.stderr
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("one", "old")]


def test_a_folder_is_swapped_in_and_what_it_replaces_goes(tmp_path: Path) -> None:
    (tmp_path / "found" / "old").mkdir(parents=True)
    with made_beside(tmp_path) as beside:
        (beside / "found" / "new").mkdir(parents=True)
        swap_in(beside / "found", tmp_path / "found")
    assert sorted(tmp_path.rglob("*")) == [tmp_path / "found", tmp_path / "found" / "new"]
    with made_beside(tmp_path) as beside:
        swap_in(beside / "found", tmp_path / "found")
    assert list(tmp_path.iterdir()) == []


def test_links_and_what_is_no_file_are_refused_by_name(tmp_path: Path) -> None:
    odd = tmp_path / "deep" / "odd"
    odd.parent.mkdir()
    refuse_links(tmp_path)
    for make in (lambda: odd.symlink_to("nowhere"), lambda: os.mkfifo(odd)):
        make()
        with pytest.raises(HistoryError, match="deep/odd: "):
            refuse_links(tmp_path)
        odd.unlink()


def test_one_judges_at_a_time_and_a_recorder_is_seen_beside_it(tmp_path: Path) -> None:
    recording = RecordingLock(tmp_path)
    with judging_lock(tmp_path) as alone:
        assert alone
        assert is_recorded(tmp_path)
        script = "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)"
        tried = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True, check=False)
        assert "BlockingIOError" in tried.stderr
    recording.release()
    assert not is_recorded(tmp_path)


def test_a_recording_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / ".recording").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        is_recorded(tmp_path)


@pytest.mark.parametrize("package", ["harness", "checkers", "nemesis", "workloads"])
def test_every_text_file_is_opened_with_its_encoding(package: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for path in (ROOT / package).rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and not any(keyword.arg == "encoding" for keyword in call.keywords)
        and (call.func.attr in {"read_text", "write_text"} or (call.func.attr == "open" and _as_text(call)))
    ]
    assert wrong == []


def _as_text(call: ast.Call) -> bool:
    """Whether this is ``path.open`` in a text mode (``os.open`` and ``Archive.open`` take other things first)."""
    modes = [argument.value for argument in call.args if isinstance(argument, ast.Constant)]
    return bool(modes) and modes[0] in {"r", "w", "a", "x"}
