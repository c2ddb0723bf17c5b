"""Two processes of tests beside each other: all is run once, and a failure of either is told."""

import os
import sys
from pathlib import Path

import pytest

from tests.fast import PARTS, beside


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


@pytest.mark.parametrize(("first", "second", "code"), [(0, 0, 0), (1, 0, 1), (0, 2, 2), (3, 2, 3)])
def test_either_that_fails_fails_both_and_both_are_shown(
    first: int, second: int, code: int, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    commands = [python(f"print('{name}', flush=True); exit({n})") for name, n in (("one", first), ("two", second))]
    assert beside(*commands) == code
    assert capfdbinary.readouterr().out == b"one\ntwo\n"


def test_they_run_at_once(tmp_path: Path) -> None:
    """Each waits for the other."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    ends = (f"open({str(pipe)!r}, 'w').close()", f"open({str(pipe)!r}).close()")
    assert beside(*map(python, ends)) == 0


def test_each_test_is_in_one_part() -> None:
    assert PARTS[1] == f"not {PARTS[0]}"
