"""The mutants of the evidence's rules: each text is still there, once, and each mutant is Python."""

import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest

from tests.mutants.table import MUTANTS, NEAR, Mutant, numbered

_ROOT = Path(__file__).parents[2]
_TESTS = _ROOT / "tests/checkers"


@pytest.mark.parametrize("mutant", [pytest.param(mutant, id=name) for name, mutant in numbered(MUTANTS)])
def test_a_mutant_is_one_text_of_its_module_changed(mutant: Mutant) -> None:
    assert mutant.text.count(mutant.right) == 1
    compile(mutant.changed, mutant.module, "exec")


def test_each_mutant_is_another() -> None:
    assert len({(mutant.module, mutant.right, mutant.wrong) for mutant in MUTANTS}) == len(MUTANTS)


def test_each_module_of_rules_has_mutants_and_tests_that_are_there() -> None:
    assert {mutant.module for mutant in MUTANTS} == NEAR.keys()
    assert [name for name in chain(*NEAR.values()) if not (_TESTS / f"test_{name}.py").is_file()] == []


@pytest.mark.long
def test_a_test_finds_each_mutant_out() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.mutants"], cwd=_ROOT, stdout=subprocess.PIPE, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
