"""docs/adding.md: its examples are what the toy tests run, and work as they stand on the page."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.adding import ROOT, page

PAGE = ROOT / "docs" / "adding.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
MODULES = [code for language, code in BLOCKS if language == "python" and "import" in code]


def test_the_examples_of_the_page_are_the_toys() -> None:
    assert PAGE.read_text() == page(), "python -m tests.adding >docs/adding.md"


def test_every_test_on_the_page_is_there() -> None:
    named = re.findall(r"`(tests/\S+\.py)::(\w+)`", PAGE.read_text())
    assert len(named) > 15
    assert [(file, test) for file, test in named if f"def {test}(" not in (ROOT / file).read_text()] == []


@pytest.mark.parametrize("code", MODULES, ids=["fault", "workload", "checker", "provider"])
def test_an_example_is_a_whole_module(code: str, tmp_path: Path) -> None:
    module = tmp_path / "example.py"
    module.write_text(code)
    done = subprocess.run(
        [sys.executable, "-W", "error", module], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_timeline_of_the_fault_is_played(tmp_path: Path) -> None:
    [timeline] = [code for language, code in BLOCKS if language == "yaml"]
    scenario = tmp_path / "toy.yaml"
    scenario.write_text(f"name: a-toy\n{timeline}")
    asked = [sys.executable, "-m", "tests.nemesis.toy_run", scenario, tmp_path / "faults.nemesis.arrows"]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, '"injection": "asleep"' in done.stdout) == (0, True), done.stderr
