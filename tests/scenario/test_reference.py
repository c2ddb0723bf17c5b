"""docs/scenarios.md is made from the code, and leaves nothing out."""

from pathlib import Path

from harness.scenario.json_schema import json_schema
from harness.scenario.reference import reference
from harness.scenario.steps import STEPS
from nemesis.catalogue import FAULTS
from nemesis.targets import MEANT, ROLES
from workloads.catalogue import WORKLOADS

PAGE = Path(__file__).parents[2] / "docs" / "scenarios.md"


def test_the_page_is_what_the_code_says() -> None:
    assert PAGE.read_text() == reference(), "python -m harness.scenario.reference >docs/scenarios.md"


def test_every_step_fault_workload_and_target_has_its_place() -> None:
    lines = reference().splitlines()
    assert {f"### {name}" for name in (*STEPS, *FAULTS)} <= set(lines)
    assert {f"### kind: {kind}" for kind in WORKLOADS} <= set(lines)
    assert {f"| `{name}` | {means} |" for name, means in MEANT.items()} <= set(lines)
    assert set(ROLES) <= MEANT.keys()


def test_every_key_is_described_with_its_values() -> None:
    schema, page = json_schema(), reference()
    keys = {key for definition in (schema, *schema["$defs"].values()) for key in definition.get("properties", {})}
    elsewhere = {"kind", *STEPS}  # headings, of their own
    assert [key for key in sorted(keys - elsewhere) if f"| `{key}` | " not in page] == []
