"""What two commits' figures, measured in pairs, say."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from benchmarks.compare import FIGURES, SIZES, Pair, compared, concluded, in_tree, main, older, sizes, table


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


COMMITS = {"A": "0123abc", "B": "4567def"}


@pytest.mark.parametrize(
    ("pairs", "code", "because"),
    [
        ([pair(10, 11), pair(20, 23), pair(10, 12)], 1, "B is slower in all pairs: cold s of 1000000 records, 1.10"),
        ([pair(100, 104), pair(100, 120), pair(100, 110)], 0, "B is not slower by more than noise"),
        ([pair(10, 9), pair(20, 19)], 0, "B is not slower by more than noise"),
        # One pair alone differs more by chance.
        ([pair(100, 120)], 0, "B is not slower by more than noise"),
        ([pair(100, 130)], 1, "B is slower in all pairs: cold s of 1000000 records, 1.30"),
    ],
)
def test_a_size_in_which_b_is_slower_by_more_than_noise_fails(pairs: list[Pair], code: int, because: str) -> None:
    conclusion = concluded(COMMITS, {30000: [pair(10, 10), pair(10, 10)], 1000000: pairs})
    assert conclusion["exit"] == code
    assert conclusion["because"].startswith(because)


def test_the_table_has_a_line_for_each_size_and_figure() -> None:
    conclusion = concluded(COMMITS, {30000: [pair(10, 12), pair(10, 14)], 1000000: [pair(1, 1)]})
    lines = table(conclusion).splitlines()
    assert len(lines) == 1 + 2 * 4
    assert lines[1].split() == ["30000", "cold", "s", "10.0", "13.0", "1.30", "1.20–1.40", "slower"]


def test_the_largest_size_is_measured_once_and_others_as_often_as_asked() -> None:
    assert sizes(SIZES) == {30_000: None, 1_000_000: None, 10_000_000: 1}
    assert sizes("100,200") == {100: None, 200: None}


@pytest.mark.parametrize("wrong", [("--records", "abc"), ("--records", "10xq"), ("--records", "9x0"), ("--times", "0")])
def test_sizes_and_times_that_are_no_numbers_are_refused_in_a_line(
    wrong: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["HEAD", "HEAD", *wrong])
    assert f"argument {wrong[0]}: invalid" in capsys.readouterr().err


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


@pytest.fixture
def two_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Two commits of a repository in the current directory."""
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    monkeypatch.chdir(tmp_path)
    return committed(tmp_path, "first", 1_000), committed(tmp_path, "last", 2_000)


@pytest.mark.parametrize(("factor", "code"), [(1.0, 0), (1.5, 1)])
def test_the_file_has_every_pair_and_what_the_table_says(
    factor: float,
    code: int,
    two_commits: tuple[str, str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked: list[tuple[str, ...]] = []

    def measured(tree: Path, does: str, *command: str) -> str:
        asked.append((tree.name, *does.split()[1:3]))
        return json.dumps(dict.fromkeys(FIGURES, 10 * factor if tree.name == "B" else 10))

    with pytest.raises(SystemExit) as ended:
        main(["HEAD^", "HEAD", "--records", "100,900x1", "--times", "2"], measured)
    assert ended.value.code == code
    judged = [("A", "judging", "100"), ("B", "judging", "100")]
    last = [("A", "writing", "900"), ("A", "judging", "900"), ("B", "judging", "900")]
    assert asked == [("A", "writing", "100"), *judged, *reversed(judged), *last]
    a, b = (subprocess.check_output(["git", "rev-parse", "--short", one], text=True).strip() for one in two_commits)
    file = Path(f"bench-compare-{a}-{b}.json")
    kept = json.loads(file.read_text())
    assert (kept["commits"], kept["exit"]) == ({"A": a, "B": b}, code)
    assert [(size["records"], len(size["pairs"])) for size in kept["sizes"]] == [(100, 2), (900, 1)]
    assert kept["sizes"][0]["pairs"][1]["B"]["warm"] == 10 * factor
    assert capsys.readouterr().out == f"{table(kept)}\n{kept['because']}\nwritten to {file}\n"


def test_a_commit_that_is_not_there_is_refused_before_anything_is_measured(two_commits: tuple[str, str]) -> None:
    with pytest.raises(SystemExit, match=r"^no commit 'nobody'$"):
        main(["HEAD", "nobody"])


def test_a_command_that_fails_in_a_commit_is_reported_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"^0123abc: judging 9 records failed: ValueError: no such column$"):
        in_tree(tmp_path, "0123abc: judging 9 records", "-c", "raise ValueError('no such column')")
    assert in_tree(tmp_path, "0123abc: saying it", "-c", "print('it')") == "it\n"
