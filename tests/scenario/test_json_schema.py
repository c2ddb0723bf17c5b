"""The JSON Schema that editors use: what loads meets it, what is misspelt does not."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from harness.scenario.json_schema import json_schema
from harness.scenario.loading import load, named
from harness.scenario.resolved import resolved_yaml
from harness.scenario.steps import STEPS
from nemesis.catalogue import FAULTS
from workloads.catalogue import WORKLOADS

from .validator import refusals

SCHEMA = json_schema()
WRITTEN = {name: yaml.safe_load(path.read_text()) for name, path in named().items()}
#: Below these the keys are Kafka's, or the scenario's own.
FREE = {"config", "pin"}


def refused(data: Any) -> list[str]:
    return list(refusals(data, SCHEMA, SCHEMA))


@pytest.mark.parametrize("name", WRITTEN)
def test_every_shipped_scenario_meets_it_as_written_and_written_out(name: str) -> None:
    assert refused(WRITTEN[name]) == []
    assert refused(yaml.safe_load(resolved_yaml(load(name)))) == []


def with_one_key_misspelt(data: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Copies of ``data``, each with another of its keys misspelt, and where."""
    inside = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in inside:
        if isinstance(data, dict):
            renamed = copy.copy(data)
            renamed[f"{key}x"] = renamed.pop(key)
            yield (*at, key), renamed
        for place, below in with_one_key_misspelt(value, (*at, key)) if key not in FREE else ():
            changed = copy.copy(data)
            changed[key] = below
            yield place, changed


@pytest.mark.parametrize("name", WRITTEN)
def test_no_misspelt_key_passes_wherever_it_is(name: str) -> None:
    misspelt = list(with_one_key_misspelt(WRITTEN[name]))
    assert len(misspelt) > 20
    assert [place for place, data in misspelt if not refused(data)] == []


BASE: dict[str, Any] = {"topic": {"replication": 3}}


@pytest.mark.parametrize(
    "data",
    [
        {"timeline": [{"wait": 5}]},
        {"timeline": [{"wait": "5"}]},
        {"timeline": [{"sleep": "5s"}]},
        {"timeline": [{"wait": "1s", "heal": "all"}]},
        {"timeline": [{"inject": {"fault": "kil", "target": "leader"}}]},
        {"timeline": [{"inject": {"fault": "kill"}}]},
        {"timeline": [{"inject": {"fault": "isolate", "target": "leader", "plane": "clients"}}]},
        {"timeline": [{"inject": {"fault": "slow", "target": "leader", "delay": 200}}]},
        {"timeline": [{"elect": "preferred"}]},
        {"workload": {"kind": "stack"}},
        {"workload": {"acks": 2}},
        {"workload": {"members": 3}},
        {"workload": {"config": {"bootstrap.servers": "here"}}},
        {"workload": {"config": {"fetch.max.byte": 1}}},
        {"cluster": {"config": {"log.dirs": "/tmp"}}},
        {"cluster": {"metadata": "zookeper"}},
        {"topic": {"config": {"min.insync.replicas": 2}}},
        {"expect": {"anomalies": ["losst"]}},
        {"expect": {"verdict": "fine"}},
        {"expect": {"not_met": ["timeline folowed"]}},
        {"limits": {"recovery": 3}},
    ],
    ids=str,
)
def test_what_is_no_scenario_does_not_meet_it(data: dict[str, Any]) -> None:
    assert refused(BASE | data)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"watch": 0, "timeline": [{"wait": "250ms"}, {"elect": "unclean"}]},
        {"workload": {"acks": 1, "config": {"debug": "msg"}, "message.timeout.ms": 1000}},
        {"workload": {"kind": "groups", "members": 3}},
        {"workload": {"kind": "transactions", "aborted": "20%", "rate": None}},
        {"expect": {"verdict": ["valid", "unknown"], "allowed": ["unavailability"]}},
        {"timeline": [{"random": {"faults": [{"fault": "flaky", "target": ["b1", "b2"], "loss": 0.02}], "for": "1m"}}]},
    ],
    ids=str,
)
def test_what_may_be_written_meets_it(data: dict[str, Any]) -> None:
    assert refused(BASE | data) == []


def test_every_step_fault_and_workload_is_in_it() -> None:
    definitions = SCHEMA["$defs"]
    assert {f"fault-{kind}" for kind in FAULTS} <= definitions.keys()
    assert {model.__name__ for model in (*STEPS.values(), *WORKLOADS.values())} <= definitions.keys()
    assert all(definitions[f"fault-{kind}"]["description"] for kind in FAULTS)


def keys(schema: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, definition in {"scenario": schema, **schema["$defs"]}.items():
        yield from ((f"{name}.{key}", told) for key, told in definition.get("properties", {}).items())


def test_every_key_says_what_it_means() -> None:
    steps = {f"{model.__name__}.{name}" for name, model in STEPS.items()}
    unsaid = [at for at, told in keys(SCHEMA) if not told.get("description") and "const" not in told]
    assert [at for at in unsaid if at not in steps] == []
    assert all(SCHEMA["$defs"][model.__name__]["description"] for model in STEPS.values())
