"""A child process gets lines from its parent, and imports the same code as the parent."""

from contextlib import suppress
from pathlib import Path

import pytest

from harness.core.children import say, start

ECHO = """
import os, sys, yaml
for line in sys.stdin:
    print(os.getsid(0) == os.getpid(), line, end="", flush=True)
"""


def test_a_child_imports_from_where_its_parent_does_and_not_from_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, here = tmp_path / "ours", tmp_path / "here"
    for folder in (ours, here):
        folder.mkdir()
    (ours / "echo_of_ours.py").write_text(ECHO)
    (here / "yaml.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(str(ours))
    monkeypatch.chdir(here)
    with (tmp_path / "stderr").open("wb") as stderr:
        child = start("echo_of_ours", stderr)
    assert child.stdin is not None
    assert child.stdout is not None
    assert say(child, "hello")
    assert child.stdout.readline() == b"True hello\n"
    child.kill()
    child.wait()
    assert not say(child, "are you there?")
    child.stdout.close()
    with suppress(BrokenPipeError):
        child.stdin.close()
    assert (tmp_path / "stderr").read_bytes() == b""
