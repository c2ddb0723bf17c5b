"""What two commits' figures, measured in pairs, say."""

import os
import subprocess
from pathlib import Path

import pytest

from benchmarks.compare import Pair, compared, in_tree, older, slower, table


def pair(a: float, b: float) -> Pair:
    return {side: {"cold": value, "cpu": value, "warm": value, "peak": value} for side, value in (("A", a), ("B", b))}


@pytest.mark.parametrize(
    ("pairs", "follows"),
    [
        ([pair(10, 11), pair(20, 23), pair(10, 12)], "slower"),
        ([pair(10, 9), pair(20, 19)], "faster"),
        # A slow minute hits both of a pair; where the pairs disagree, it is noise.
        ([pair(10, 11), pair(30, 29)], "same"),
        ([pair(10, 10)], "same"),
    ],
)
def test_it_is_slower_only_where_all_pairs_agree(pairs: list[Pair], follows: str) -> None:
    assert compared(pairs, "cold")["B is"] == follows
    assert slower({"30000": [pair(10, 10)], "1000000": pairs}) == (follows == "slower")


def test_a_little_slower_by_chance_fails_nothing() -> None:
    assert not slower({"30000": [pair(100, 104), pair(100, 120), pair(100, 110)]})


def test_the_table_has_a_line_for_each_size_and_figure() -> None:
    lines = table({"30000": [pair(10, 12), pair(10, 14)], "1000000": [pair(1, 1)]}).splitlines()
    assert len(lines) == 1 + 2 * 4
    assert lines[1].split() == ["30000", "cold", "s", "10.0", "13.0", "1.30", "1.20–1.40", "slower"]


def committed(repository: Path, name: str, at: int) -> str:
    """A commit on the branch that is checked out, of this time."""
    who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a"}
    when = {"GIT_COMMITTER_DATE": f"@{at} +0000", "GIT_AUTHOR_DATE": f"@{at} +0000", "PATH": os.environ["PATH"]}
    subprocess.run(
        ["git", "commit", "--quiet", "--allow-empty", "-m", name], cwd=repository, env={**who, **when}, check=True
    )
    return subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=repository, text=True).strip()


def test_the_older_of_two_commits_is_the_ancestor_or_else_the_one_that_was_committed_first(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    # (A clock that went back does not make a descendant older.)
    first, last = committed(tmp_path, "first", 2_000), committed(tmp_path, "last", 1_000)
    subprocess.run(["git", "checkout", "--quiet", "-b", "other", first], cwd=tmp_path, check=True)
    other = committed(tmp_path, "other", 3_000)
    asked = [(first, last), (last, first), (last, other), (other, last), (last, last)]
    assert [older(tmp_path, *pair) for pair in asked] == ["A", "B", "A", "B", "A"]


def test_a_command_that_fails_in_a_commit_is_reported_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"^0123abc: judging 9 records failed: ValueError: no such column$"):
        in_tree(tmp_path, "0123abc: judging 9 records", "-c", "raise ValueError('no such column')")
    assert in_tree(tmp_path, "0123abc: saying it", "-c", "print('it')") == "it\n"
