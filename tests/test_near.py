"""Which tests a change touches, on small repositories written for the purpose, and on this one."""

import subprocess
from pathlib import Path

import pytest

from tests.near import READERS, ROOT, Graph, changes, choose, main, touched

#: A repository in which c is imported by b, and b by a, inside a function; and a fixture that asks for another.
FILES = {
    "harness/__init__.py": "",
    "harness/a.py": "def late():\n    from harness import b\n",
    "harness/b.py": "import harness.c\n",
    "harness/c.py": "from harness.d import thing\n",
    "harness/d.py": "thing = 1\n",
    "harness/typed.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from harness.d import thing\n",
    "checkers/alone.py": "import json\n",
    "checkers/apart.py": "",
    "tests/conftest.py": (
        "import pytest\nfrom checkers import alone\nfrom checkers import apart\n"
        "@pytest.fixture\ndef inner():\n    return helper()\n"
        "@pytest.fixture\ndef outer(inner):\n    return inner\n"
        "@pytest.fixture\ndef other():\n    return apart\n"
        "def helper():\n    return alone\n"
    ),
    "tests/deep/conftest.py": "import pytest\n@pytest.fixture\ndef deepest(outer):\n    return outer\n",
    "tests/test_a.py": "from harness.a import late\n",
    "tests/test_b.py": "import harness.b as beta\n",
    "tests/test_typed.py": "from harness import typed\n",
    "tests/test_none.py": "",
    "tests/test_asks.py": "def test_it(outer): pass\n",
    "tests/deep/test_asks_too.py": "def test_it(deepest): pass\n",
    "tests/test_asks_for_another.py": "def test_it(other): pass\n",
    "tests/test_long.py": "import pytest\nfrom harness import d\npytestmark = pytest.mark.cluster\n",
}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        ("harness/d.py", {"tests/test_a.py": 4, "tests/test_b.py": 3, "tests/test_long.py": 1}),
        ("harness/c.py", {"tests/test_a.py": 3, "tests/test_b.py": 2}),
        ("harness/a.py", {"tests/test_a.py": 1}),
        ("harness/typed.py", {"tests/test_typed.py": 1}),
        ("checkers/alone.py", {"tests/deep/test_asks_too.py": 1, "tests/test_asks.py": 1}),
        ("checkers/apart.py", {"tests/test_asks_for_another.py": 1}),
        ("tests/test_none.py", {"tests/test_none.py": 0}),
        ("tests/deep/conftest.py", {"tests/deep/test_asks_too.py": 1}),
        ("checkers/gone.py", {}),
    ],
)
def test_a_change_touches_what_imports_it_or_asks_for_a_fixture_that_does(
    changed: str, tests: dict[str, int], repo: Path
) -> None:
    assert touched(changed, Graph(repo)) == tests


def test_a_change_in_a_package_touches_the_package(repo: Path) -> None:
    assert "tests/test_b.py" in touched("harness/__init__.py", Graph(repo))


def test_the_nearest_tests_run_and_long_or_far_tests_are_only_named(repo: Path) -> None:
    choice = choose(["harness/d.py", "harness/a.py"], Graph(repo))
    assert choice.run == ["tests/test_a.py"]
    assert choice.long == ["tests/test_long.py"]
    assert choice.far == ["tests/test_b.py"]


def test_the_nearest_tests_run_if_no_test_imports_the_changed_file(repo: Path) -> None:
    choice = choose(["harness/c.py", "tests/test_none.py"], Graph(repo))
    assert choice.run == ["tests/test_b.py", "tests/test_none.py"]
    assert choice.far == ["tests/test_a.py"]


def test_changes_are_differences_from_a_revision_and_untracked_files(repo: Path) -> None:
    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=t", "-c", "user.email=t@localhost")
        subprocess.run(["git", *identity, *arguments], cwd=repo, check=True, capture_output=True)

    git("init")
    git("add", "-A")
    git("commit", "-m", "one")
    (repo / "harness/b.py").write_text("")
    git("commit", "-am", "two")
    (repo / "harness/c.py").unlink()
    (repo / "harness/d.py").write_text("")
    git("add", "harness/d.py")
    (repo / "new.yaml").write_text("")
    assert changes("HEAD", repo) == ["harness/c.py", "harness/d.py", "new.yaml"]
    assert changes("HEAD~1", repo) == ["harness/b.py", "harness/c.py", "harness/d.py", "new.yaml"]


def test_a_revision_that_is_none_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no-such-revision"]) == 64
    assert "no-such-revision" in capsys.readouterr().err


@pytest.fixture(scope="module")
def here() -> Graph:
    return Graph()


@pytest.mark.long
def test_a_change_here_runs_every_test_that_imports_what_changed(here: Graph) -> None:
    imported = {path for test in here.tests for path in here.sources[test].imports}
    assert len(imported) > 100
    for path in imported:
        choice = choose([path], here)
        direct = {test for test in here.tests if path in here.sources[test].imports}
        assert direct <= {*choice.run, *choice.long}, path


@pytest.mark.long
def test_a_worker_is_run_by_its_name_alone_and_is_touched_all_the_same(here: Graph) -> None:
    assert "tests/workloads/test_running.py" in choose(["workloads/worker.py"], here).run


@pytest.mark.parametrize(
    ("changed", "test"),
    [
        ("scenarios/delivery/at-least-once.yaml", "tests/scenario/test_catalogue.py"),
        ("docker/kafka/start", "tests/scenario/test_wheel.py"),
        ("README.md", "tests/test_readme.py"),
        ("tests/checkers/recorded/leader-isolated-acks-1/run.json", "tests/checkers/test_recorded_runs.py"),
    ],
)
def test_a_change_of_data_runs_the_tests_that_read_it(changed: str, test: str, here: Graph) -> None:
    assert (ROOT / changed).exists()
    assert test in choose([changed], here).run


@pytest.mark.parametrize("test", ["tests/planted/test_planted.py", "tests/cluster/test_scenarios.py"])
def test_tests_that_take_minutes_are_named_but_not_run(test: str, here: Graph) -> None:
    choice = choose([test], here)
    assert test in choice.long
    assert test not in choice.run


@pytest.mark.parametrize(("beginning", "places"), READERS)
def test_every_row_of_readers_is_of_files_that_are_there(beginning: str, places: tuple[str, ...], here: Graph) -> None:
    assert list(ROOT.glob(f"{beginning}*"))
    assert all(any(test.startswith(place) for test in here.tests) for place in places)
