"""What another user keeps in a store, and closes."""

import json
import shutil
from pathlib import Path

import pytest

from harness.cli import codes
from harness.suite.results import SuiteFile, stored_suites
from tests.cli.test_suites import TWO, as_any_user, backends, judged
from tests.command import Invoke
from tests.suite.fakes import World

pytestmark = [pytest.mark.heavy, pytest.mark.long]


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
        assert f"not a run itself: name one of those below, {run}" in explained.stderr
        pruned = as_any_user("prune", tmp_path, "--days", "30")
        assert (pruned.returncode, pruned.stderr) == (codes.MET, "")
    finally:
        kept.chmod(0o700)


def test_a_closed_folder_is_reported_once_and_keeps_nothing_else_from_being_judged(tmp_path: Path) -> None:
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


def test_a_run_with_a_closed_folder_is_left_whole_and_the_others_go(tmp_path: Path) -> None:
    theirs, mine = judged(tmp_path, "a", 1), judged(tmp_path, "a", 2)
    logs = closed(theirs / "logs")
    before = sorted(path.name for path in theirs.iterdir())
    try:
        pruned = as_any_user("prune", tmp_path, "--days", "0")
        assert pruned.returncode == codes.CANNOT_RUN
        assert f" alone: {logs} is not yours to empty\n" in pruned.stdout
        assert (sorted(path.name for path in theirs.iterdir()), mine.exists()) == (before, False)
        logs.chmod(0o444)
        (logs / "b1.log").write_text("x")
        pruned = as_any_user("prune", tmp_path, "--days", "0")
        assert pruned.returncode == codes.CANNOT_RUN
        assert f" alone: {logs} is not yours to empty\n" in pruned.stdout, "a folder that can be listed, and no more"
        assert sorted(path.name for path in theirs.iterdir()) == before
    finally:
        logs.chmod(0o700)


def test_prune_removes_nothing_from_a_store_with_an_unreadable_suite(tmp_path: Path, kafka_trial: Invoke) -> None:
    """The suite cannot say which runs it needs, so any run may be the baseline of the next suite."""
    store, other = tmp_path / "store", judged(tmp_path / "other", "a")
    kafka_trial("suite", *TWO, "--store", store, backends=backends(World(store)))
    beside = judged(store, "a")
    [suite] = stored_suites(store)
    runs = [store / str(run.directory) for run in SuiteFile.read(suite).runs]
    for path in (suite, suite / "suite.json"):
        path.chmod(0)
        try:
            pruned = as_any_user("prune", tmp_path, "--days", "0", "--dry-run")
            assert pruned.returncode == codes.CANNOT_RUN
            assert f"kafka-trial: {suite}: you may not read it: which runs it needs is unknown" in pruned.stderr
            would, stay = pruned.stdout.splitlines()
            assert (would.split(" (")[0], stay.split(",")[0]) == (f"would remove {other}", "3 runs stay")
        finally:
            path.chmod(0o700)
    pruned = as_any_user("prune", tmp_path, "--days", "0", "--dry-run")
    assert (pruned.returncode, f"would remove {beside}" in pruned.stdout) == (codes.MET, True)
    assert not any(f"would remove {run}" in pruned.stdout for run in runs)


@pytest.mark.parametrize("side", ["old", "new"])
def test_a_comparison_with_a_closed_folder_is_no_success(side: str, tmp_path: Path) -> None:
    for store in ("old", "new"):
        for name in TWO:
            judged(tmp_path / store, name)
    folder = closed(tmp_path / side / TWO[1])
    try:
        done = as_any_user("compare", tmp_path / "old", tmp_path / "new")
        worse = side == "new"
        assert done.returncode == (codes.NOT_MET if worse else codes.CANNOT_RUN)
        assert done.stderr == f"kafka-trial: {folder}: Permission denied\n"
        assert done.stdout.endswith(f"{int(worse)} of 2 worse\n")
    finally:
        folder.chmod(0o700)
