"""The subjects of the commits are as CONTRIBUTING.md says."""

import subprocess
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parent.parent
#: The last commit whose subjects were not held to the rule.
SINCE = "34df294"
LONGEST = 72


def subjects(repository: Path, since: str) -> list[str]:
    """The subjects of the commits after one. None where the history does not go back so far, or there is no history."""
    log = ["git", "log", "--format=%s", f"{since}..HEAD"]
    done = subprocess.run(log, cwd=repository, capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []


def too_long(lines: Iterable[str]) -> list[str]:
    """The subjects that a list of commits would cut off."""
    return [line for line in lines if len(line) > LONGEST]


def test_a_subject_that_is_too_long_would_be_seen() -> None:
    assert too_long(["x" * 72, "é" * 72]) == []
    assert too_long(["x" * 73, "x"]) == ["x" * 73]


def test_the_subjects_of_a_history_are_read_and_none_where_there_is_none(tmp_path: Path) -> None:
    assert subjects(tmp_path, SINCE) == []
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    commit = ["git", "-c", "user.name=a", "-c", "user.email=a", "commit", "--quiet", "--allow-empty", "-m"]
    for subject in ("First", "Second", "Third\n\nIts body."):
        subprocess.run([*commit, subject], cwd=tmp_path, check=True)
    assert subjects(tmp_path, "HEAD~2") == ["Third", "Second"]
    assert subjects(tmp_path, SINCE) == []


def test_every_subject_of_this_history_is_short() -> None:
    assert too_long(subjects(ROOT, SINCE)) == []
