"""Processes of tests beside each other: all is run once, and a failure of any is told."""

import os
import sys
from pathlib import Path

import pytest

from tests.fast import PARTS, beside


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


@pytest.mark.parametrize(("codes", "code"), [((0, 0, 0), 0), ((1, 0, 0), 1), ((0, 2, 0), 2), ((0, 0, 3), 3)])
def test_any_that_fails_fails_all_and_all_are_shown(
    codes: tuple[int, ...], code: int, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    commands = [python(f"print({name}, flush=True); exit({n})") for name, n in enumerate(codes)]
    assert beside(*commands) == code
    assert capfdbinary.readouterr().out == b"0\n1\n2\n"


def test_they_run_at_once(tmp_path: Path) -> None:
    """Each waits for the next."""
    pipes = [str(tmp_path / name) for name in ("one", "two")]
    for pipe in pipes:
        os.mkfifo(pipe)
    one, two = ((f"open({pipe!r}, 'w').close()", f"open({pipe!r}).close()") for pipe in pipes)
    assert beside(*map(python, (one[0], f"{one[1]}; {two[0]}", two[1]))) == 0


def test_each_test_is_in_one_part() -> None:
    (_, spark), (_, others, folder), (_, rest, without) = PARTS
    assert others == rest == f"not {spark}"
    assert without == f"--ignore={folder}"
    assert Path(folder).is_dir()
