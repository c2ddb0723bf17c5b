"""Spark's Java process is killed, or hangs, as it judges: another one judges its run again, and Ctrl-C ends it."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from harness.cli import codes
from harness.core.waiting import wait_for

pytestmark = pytest.mark.long

#: What takes so many seconds hangs, on a busy machine, too.
HANGS_S = 900

ROOT = Path(__file__).parents[2]
EXAMPLE = next((ROOT / "examples").rglob("run.json")).parent
LAUNCHER = "org.apache.spark.launcher.Main"
SUBMIT = "org.apache.spark.deploy.SparkSubmit"


def check(*runs: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", "from harness.cli.main import main; main()", "check", "--json", *map(str, runs)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def java_that_judges(process: subprocess.Popen[str], run: Path) -> psutil.Process:
    """Spark's Java process, as soon as it has begun to write what it found in a run."""
    # (Another Java process comes first, which tells spark-submit how to start Spark's.)
    [java] = wait_for(lambda: sparks(process), "Spark's Java process", within=HANGS_S)
    wait_for(lambda: list(run.glob(".beside-*/anomalies/*")), f"{run} is being judged", within=HANGS_S, every=0.01)
    return java


def sparks(process: subprocess.Popen[str]) -> list[psutil.Process]:
    children = psutil.Process(process.pid).children(recursive=True)
    return [one for one in children if SUBMIT in (command := command_of(one)) and LAUNCHER not in command]


def command_of(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline() if process.name().startswith("java") else []
    except psutil.NoSuchProcess:
        return []


def test_a_new_java_process_judges_the_rest_if_the_first_is_killed(tmp_path: Path) -> None:
    runs = [Path(shutil.copytree(EXAMPLE, tmp_path / name)) for name in ("first", "second")]
    process = check(*runs)
    try:
        java_that_judges(process, runs[0]).kill()
        out, err = process.communicate(timeout=HANGS_S)
    finally:
        process.kill()
    assert process.returncode == codes.MET, err
    assert [json.loads(line)["summary"]["lost"] for line in out.splitlines()] == [2231, 2231]
    assert err.splitlines()[0] == f"kafka-trial: {runs[0]}: Spark's Java process ended as it judged"
    assert "Traceback" not in err
    kept = json.loads((EXAMPLE / "verdict.json").read_text())
    assert json.loads((runs[0] / "verdict.json").read_text())["anomalies"] == kept["anomalies"]


def test_a_java_process_that_hangs_is_ended_by_ctrl_c(tmp_path: Path) -> None:
    run = Path(shutil.copytree(EXAMPLE, tmp_path / "run"))
    process = check(run)
    try:
        java_that_judges(process, run).suspend()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=HANGS_S)
    finally:
        process.kill()
    assert (process.returncode, err) == (codes.CRASHED, "\nkafka-trial: interrupted\n")
