"""A workload is a class and one line of the catalogue: nothing else knows it by name."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from workloads.catalogue import WORKLOADS
from workloads.workload import Surroundings

ROOT = Path(__file__).parents[2]

Journalled = Callable[[str], pa.Table]


def run_toy(tmp_path: Path, surroundings: Surroundings, timeline: str) -> subprocess.CompletedProcess[str]:
    scenario = tmp_path / "toy.yaml"
    scenario.write_text(f"name: a-toy\nworkload: {{kind: toy}}\ntimeline: {timeline}\n")
    (topic,) = surroundings.topics
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.workloads.toy_run",
            scenario,
            surroundings.bootstrap,
            topic,
            surroundings.journals,
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=240,
    )


def test_a_workload_of_one_line_is_loaded_planned_and_run(
    surroundings: Surroundings, tmp_path: Path, journalled: Journalled
) -> None:
    ran = run_toy(tmp_path, surroundings, "[tickle: 1]")
    assert ran.returncode == 0, ran.stderr
    reported = json.loads(ran.stdout)
    assert reported["clients"] == ["consumer 2", "ticker 1"]
    assert reported["writes"] == {"ticker 1": ["sends"], "consumer 2": ["reads", "positions"]}
    assert re.fullmatch(r"killed process \d+, started process \d+", reported["done"][0])
    assert reported["notes"] == []
    sends = journalled("sends").to_pylist()
    assert {row["incarnation"] for row in sends} == {0, 100}
    assert {row["sequence"] >> 32 for row in sends} == {0, 1}
    acknowledged = {row["record_id"] for row in sends if row["outcome"] == "ok"}
    assert {row["record_id"] for row in journalled("reads").to_pylist()} >= acknowledged
    assert sorted(path.name for path in surroundings.journals.glob("sends.*")) == ["sends.1.1.arrows", "sends.1.arrows"]


@pytest.mark.parametrize(
    ("timeline", "says"),
    [("[tickle: 2]", "there is one to tickle"), ("[kill: {member: 1}]", "only the members of a group come and go")],
)
def test_each_workload_checks_its_own_steps(
    timeline: str, says: str, surroundings: Surroundings, tmp_path: Path
) -> None:
    ran = run_toy(tmp_path, surroundings, timeline)
    assert ran.returncode != 0
    assert says in ran.stderr


MODELS = "|".join(f"{model.__name__}|{model.__module__.rpartition('.')[2]}" for model in WORKLOADS.values())
NAMES = re.compile(rf"\s*(from|import)\s+workloads\b.*\b({MODELS})\b")


#: The same in a text for users: "use kind: groups".
NAMES_A_WORKLOAD = re.compile(rf"\bkind: ({'|'.join(WORKLOADS)})\b")


def test_only_a_workload_says_how_it_is_chosen() -> None:
    modules = [path for package in ("harness", "checkers", "nemesis") for path in (ROOT / package).rglob("*.py")]
    assert [str(path.relative_to(ROOT)) for path in modules if NAMES_A_WORKLOAD.search(path.read_text())] == []
    assert NAMES_A_WORKLOAD.search("use kind: transactions")


def test_the_catalogue_alone_knows_a_workload_by_name() -> None:
    modules = [path for package in ("harness", "nemesis", "workloads") for path in (ROOT / package).rglob("*.py")]
    naming = {str(path.relative_to(ROOT)) for path in modules if any(map(NAMES.match, path.read_text().splitlines()))}
    assert naming == {"workloads/catalogue.py"}
    assert all(NAMES.match(f"from {model.__module__} import {model.__name__}") for model in WORKLOADS.values())
