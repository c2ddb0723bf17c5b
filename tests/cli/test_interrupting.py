"""Ctrl-C while runs are judged: one line, no process left, and an earlier judgement as it was."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from harness.cli import codes
from harness.core.waiting import wait_for
from tests.long_case import long_case

#: What takes so many seconds hangs, on a busy machine, too.
HANGS_S = 900

ROOT = Path(__file__).parents[2]
EXAMPLE = next((ROOT / "examples").rglob("run.json")).parent


def _children(process: psutil.Process) -> list[psutil.Process]:
    return process.children(recursive=True)


def _judging(run: Path) -> Callable[[psutil.Process], list[Path]]:
    return lambda process: list(run.glob(".beside-*/anomalies/*"))


@pytest.mark.parametrize("moment", ["a process of Spark's is there", long_case("the run is being judged")])
@pytest.mark.heavy
def test_check_interrupted_says_so_in_a_line_and_leaves_no_process(moment: str, tmp_path: Path) -> None:
    run = Path(shutil.copytree(EXAMPLE, tmp_path / "run"))
    before = sorted(path.name for path in run.iterdir())
    come = _judging(run) if "judged" in moment else _children
    command = [sys.executable, "-c", "from harness.cli.main import main; main()", "check", str(run)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    seen = psutil.Process(process.pid)
    try:
        wait_for(lambda: come(seen), moment, within=HANGS_S)
        started = wait_for(lambda: _children(seen), "a process of Spark's", within=HANGS_S)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=HANGS_S)
    finally:
        process.kill()
    # (An empty line first: a terminal shows ^C there.)
    assert (process.returncode, out, err) == (codes.CRASHED, "", "\nkafka-trial: interrupted\n")
    assert psutil.wait_procs(started, timeout=HANGS_S)[1] == []
    assert sorted(path.name for path in run.iterdir()) == before
