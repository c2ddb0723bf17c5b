"""A fault is a class and one line of the catalogue: nothing else knows it by name."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.core.faults import ELECTION, Does, acted_on, does, injection_of
from harness.history.journal import read_journal
from harness.history.reference import page
from harness.history.schema import FAULTS as SCHEMA
from harness.scenario.steps import STEPS, Elect
from nemesis.catalogue import FAULTS, kind_of
from tests.sources import texts

from .toy import Lull

ROOT = Path(__file__).parents[2]


def run_toy(tmp_path: Path, timeline: str) -> subprocess.CompletedProcess[str]:
    scenario = tmp_path / "toy.yaml"
    scenario.write_text(f"name: a-toy\ntimeline: {timeline}\n")
    return subprocess.run(
        [sys.executable, "-m", "tests.nemesis.toy_run", scenario, tmp_path / "faults.nemesis.arrows"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=120,
    )


def test_a_fault_of_one_line_is_loaded_injected_recorded_and_healed(tmp_path: Path) -> None:
    timeline = "[inject: {fault: lull, target: leader, as: asleep}, inject: {fault: lull, target: b2, song: 2s}]"
    ran = run_toy(tmp_path, timeline)
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout)
    assert said["done"] == [
        {"step": "lull target leader as asleep", "injection": "asleep", "active": ["lull"]},
        {"step": "lull target b2 song 2s", "injection": "lull-1", "active": ["lull", "lull"]},
    ]
    assert sorted(said["acts"]) == ["b1 CONT", "b1 STOP", "b2 CONT", "b2 STOP"]
    assert said["documented"]
    table, _ = read_journal(tmp_path / "faults.nemesis.arrows", SCHEMA)
    rows = {row["injection"]: row for row in table.to_pylist()}
    assert {name: (row["kind"], acted_on(row)) for name, row in rows.items()} == {
        "asleep": ("lull", {"b1"}),
        "lull-1": ("lull", {"b2"}),
    }
    for name, row in rows.items():
        assert injection_of(row) == name
        assert row["healed_ns"] is not None
        assert {what for what in Does if does(row, what)} == {Does.HALTS_PROCESS}


@pytest.mark.parametrize(
    ("timeline", "says"),
    [
        ("[inject: {fault: lull}]", "key 'target' is missing"),
        ("[inject: {fault: lull, target: b9}]", "target 'b9' is no role, node or pinned name"),
        ("[inject: {fault: lull, target: b1, song: 2}]", "unit"),
        ("[inject: {fault: lul, target: b1}]", "did you mean 'lull'?"),
        ("[lull: b1]", "a fault is injected: `inject: {fault: lull, …}`"),
        ("[inject: {fault: lull, target: b1}, inject: {fault: wipe, target: b1}]", "'b1' has not ended"),
    ],
)
@pytest.mark.heavy
def test_a_plugin_fault_gets_the_same_error_messages_as_any_other(timeline: str, says: str, tmp_path: Path) -> None:
    ran = run_toy(tmp_path, timeline)
    assert ran.returncode != 0
    assert says in ran.stderr


class Crash(FAULTS["kill"]):  # type: ignore[misc]
    """A fault made of another."""


def test_a_fault_that_is_made_of_another_has_its_own_name() -> None:
    crash = Crash.model_validate({"target": "b1"})
    assert kind_of(crash) == "kill"
    more = {**FAULTS, "crash": Crash}
    assert kind_of(crash, more) == "crash"
    assert kind_of(FAULTS["kill"].model_validate({"target": "b1"}), more) == "kill"
    with pytest.raises(StopIteration):
        kind_of(Lull.model_validate({"target": "b1"}))


#: Names of faults that are words of Kafka, of Docker and of the judge, too.
WORDS = {"partition", "start", "stop", "restart", "corrupt"}


#: Texts that name a fault, and why they may: each is no list that a new fault would have to be added to.
TELLS = {
    # Rows of older runs are read by the fault names of that time.
    "harness/core/faults.py": {*FAULTS},
    # An example of what may cut a replica off.
    "harness/report/anomalies.py": {"partition"},
    # A fault says of itself what it is not.
    "nemesis/faults/process.py": {"stop"},
    # And which faults do what it cannot: with a rate of nothing it would be a cut.
    "nemesis/faults/traffic.py": {"partition", "isolate"},
}


def named_in(text: str) -> set[str]:
    """The faults that a text is the name of, or has in backticks, or as the value of a key `fault`."""
    whole = {text} & (FAULTS.keys() - WORDS)
    return whole | {kind for kind in FAULTS if re.search(rf"`{kind}`|fault: {kind}\b", text)}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("throttle", {"throttle"}),
        ("stop", set()),
        ("`stop` and `kill` end it", {"stop", "kill"}),
        ("inject: {fault: wipe}", {"wipe"}),
        ("killed, or it stops", set()),
    ],
)
def test_a_fault_is_found_in_a_text(text: str, names: set[str]) -> None:
    assert named_in(text) == names


def test_the_catalogue_alone_knows_a_fault_by_name() -> None:
    knows: dict[str, set[str]] = {}
    makes: set[str] = set()
    for package in ("harness", "checkers", "nemesis", "workloads"):
        for path in (ROOT / package).rglob("*.py"):
            place = str(path.relative_to(ROOT))
            if named := set[str]().union(*map(named_in, texts(path))) - TELLS.get(place, set()):
                knows[place] = named
            imports = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom))
            if path.parent.name != "faults" and any((i.module or "").startswith("nemesis.faults.") for i in imports):
                makes.add(place)
    assert knows.keys() == {"nemesis/catalogue.py"}
    assert makes == {"nemesis/catalogue.py"}


def test_an_election_by_hand_is_no_fault_and_one_place_knows_its_kind() -> None:
    assert ELECTION not in FAULTS
    assert STEPS[ELECTION] is Elect
    packages = ("harness", "checkers", "nemesis", "workloads")
    files = (path for package in packages for path in (ROOT / package).rglob("*.py"))
    knows = {str(path.relative_to(ROOT)) for path in files if any(re.match(r"elect(-|$)", t) for t in texts(path))}
    assert knows == {"harness/core/faults.py"}
    (cell,) = (line for line in page().splitlines() if line.startswith("| `kind` |"))
    assert f"`{ELECTION}`" in cell


def test_faults_that_hold_or_lose_packets_make_traffic_late_but_copies_do_not() -> None:
    late = {name for name, fault in FAULTS.items() if fault.delays}
    assert late == {"slow", "reorder", "flaky", "corrupt", "throttle"}
