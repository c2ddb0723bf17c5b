"""What another user keeps in a store, and closes."""

import json
import shutil
from pathlib import Path

from harness.cli import codes
from tests.cli.test_suites import as_any_user, judged


def closed(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    folder.chmod(0)
    return folder


def test_the_lost_and_found_of_a_volume_is_passed_over(tmp_path: Path) -> None:
    """A store on a filesystem of its own has one, and only root may look into it."""
    run = judged(tmp_path, "a")
    kept = closed(tmp_path / "lost+found")
    try:
        checked = as_any_user("check", tmp_path)
        assert (checked.returncode, "lost+found" in checked.stderr) == (codes.MET, False)
        explained = as_any_user("explain", tmp_path)
        assert f"no run itself: name one of those below, {run}" in explained.stderr
        pruned = as_any_user("prune", tmp_path, "--days", "30")
        assert (pruned.returncode, pruned.stderr) == (codes.MET, "")
    finally:
        kept.chmod(0o700)


def test_a_closed_folder_is_told_once_and_keeps_nothing_else_from_being_judged(tmp_path: Path) -> None:
    run = judged(tmp_path / "store", "a")
    theirs = closed(tmp_path / "store" / "theirs")
    try:
        checked = as_any_user("check", tmp_path / "store", tmp_path / "store", "--json")
        assert checked.returncode == codes.CANNOT_RUN, "not all was judged"
        assert checked.stderr.count(f"kafka-trial: {theirs}: Permission denied\n") == 1
        refused, verdict = map(json.loads, checked.stdout.splitlines())
        assert (refused["directory"], refused["exit"]) == (str(tmp_path / "store"), codes.CANNOT_RUN)
        assert verdict["verdict"] == "valid"
        explained = as_any_user("explain", tmp_path / "store")
        assert explained.returncode == codes.BAD_INPUT
        assert f"name one of those below, {run}" in explained.stderr
        shutil.rmtree(run.parent)
        assert "no run here that can be read" in as_any_user("explain", tmp_path / "store").stderr
    finally:
        theirs.chmod(0o700)


def test_no_run_is_looked_for_inside_a_run(tmp_path: Path) -> None:
    """What it may keep of its nodes' logs, with the rights that they had."""
    run = judged(tmp_path, "a")
    logs = closed(run / "logs")
    try:
        assert as_any_user("runs", tmp_path).stderr == ""
        checked = as_any_user("check", run)
        assert (checked.returncode, checked.stderr) == (codes.CANNOT_RUN, f"kafka-trial: {logs}: Permission denied\n")
    finally:
        logs.chmod(0o700)
