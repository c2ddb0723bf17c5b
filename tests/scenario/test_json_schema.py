"""The JSON Schema that editors use: what loads meets it, what is misspelt does not."""

import copy
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
import yaml

from harness.core.errors import ScenarioError
from harness.core.written import Written
from harness.scenario.json_schema import json_schema
from harness.scenario.loading import load, named, validated
from harness.scenario.resolved import resolved_yaml
from harness.scenario.steps import STEPS
from nemesis.catalogue import FAULTS
from tests.long_case import long_case
from workloads.catalogue import WORKLOADS

from .validator import refusals

SCHEMA = json_schema()
SHIPPED = {name: yaml.safe_load(path.read_text()) for name, path in named().items()}
#: Below these the keys are Kafka's, or the scenario's own.
FREE = {"config", "pin"}


def loads(data: Any) -> bool:
    """Whether a file with this data is a scenario."""
    try:
        validated(Written(data, "mine.yaml"))
    except ScenarioError:
        return False
    return True


def refused(data: Any) -> list[str]:
    return list(refusals(data, SCHEMA, SCHEMA))


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_scenario_meets_it_as_written_and_written_out(name: str) -> None:
    assert refused(SHIPPED[name]) == []
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


@pytest.mark.parametrize("name", SHIPPED)
def test_no_misspelt_key_passes_wherever_it_is(name: str) -> None:
    misspelt = list(with_one_key_misspelt(SHIPPED[name]))
    assert len(misspelt) > 20
    assert [place for place, data in misspelt if not refused(data)] == []


BASE: dict[str, Any] = {"topic": {"replication": 3}}


@pytest.mark.parametrize(
    "data",
    [
        {"timeline": [{"wait": 5}]},
        {"timeline": [{"wait": "5"}]},
        {"timeline": [{"wait": "5S"}]},
        {"timeline": [{"wait": "٥s"}]},
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
        {"topic": {"partitions": "2"}},
        {"topic": {"partitions": True}},
        {"topic": {"partitions": 1.5}},
        {"topic": {"unclean.leader.election.enable": "true"}},
        {"final_read": {"replicas": 1}},
        {"workload": {"rate": 0}},
        {"workload": {"rate": "100"}},
        {"workload": {"keys": False}},
        {"workload": {"kind": "transactions", "aborted": 20}},
        {"workload": {"kind": "transactions", "aborted": 1}},
        {"workload": {"kind": "transactions", "aborted": 1.0}},
        {"workload": {"kind": "transactions", "aborted": -0.5}},
        {"workload": {"kind": "transactions", "aborted": "20 %%"}},
        {"timeline": [{"inject": {"fault": "flaky", "target": "leader", "loss": 20}}]},
        {"timeline": [{"inject": {"fault": "flaky", "target": "leader", "loss": "2%", "correlation": 20}}]},
        {"timeline": [{"inject": {"fault": "flaky", "target": "leader", "loss": "0%"}}]},
        {"timeline": [{"inject": {"fault": "flaky", "target": "leader", "loss": 0}}]},
        {"timeline": [{"inject": {"fault": "slow", "target": "leader", "delay": "0.0s"}}]},
        {"timeline": [{"until": {"acknowledged": 1, "within": "0ms"}}]},
        {"timeline": [{"inject": {"fault": "throttle", "target": "leader", "rate": 10}}]},
        {"timeline": [{"inject": {"fault": "throttle", "target": "leader", "rate": "10Mbit"}}]},
        {"timeline": [{"until": {"acknowledged": 0}}]},
        {"timeline": [{"random": {"faults": []}}]},
        {"expect": {"verdict": []}},
        {"expect": {"standing": "undecided"}},
        {"name": "a" * 201},
    ],
    ids=str,
)
def test_an_invalid_scenario_neither_loads_nor_meets_the_schema(data: dict[str, Any]) -> None:
    assert refused(BASE | data)
    assert not loads(BASE | data)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"watch": 0, "timeline": [{"wait": "250ms"}, {"elect": "unclean"}]},
        {"workload": {"acks": 1, "config": {"debug": "msg"}, "message.timeout.ms": 1000}},
        {"workload": {"kind": "groups", "members": 3}},
        {"workload": {"kind": "transactions", "aborted": "20%", "rate": None}},
        {"workload": {"kind": "transactions", "aborted": "0%"}},
        {"timeline": [{"wait": "0s"}, {"inject": {"fault": "flaky", "target": "leader", "loss": "0.05%"}}]},
        {"timeline": [{"inject": {"fault": "slow", "target": "leader", "delay": "100ms"}}]},
        {"expect": {"verdict": ["valid", "unknown"], "allowed": ["unavailability"]}},
        {"timeline": [{"random": {"faults": [{"fault": "flaky", "target": ["b1", "b2"], "loss": 0.02}], "for": "1m"}}]},
    ],
    ids=str,
)
def test_a_valid_scenario_meets_the_schema(data: dict[str, Any]) -> None:
    assert refused(BASE | data) == []


#: What somebody may write for any value.
OTHERWISE: tuple[Any, ...] = (
    *(None, True, "true", 0, 1, 2, 2.0, 2.5, 20, -1, 0.5, "", "0", "2", "2.0", "20", "20%", "20 %", "200%", "0.02"),
    *("5s", "5S", " 5s ", "5 s", "5\ts", "500MS", "1.5m", "10kbit", "10Mbit", "10 bit", "all", "leader", "b1"),
    *([], {}, ["b1"], [1], [[1, 2, 3]], ["lost"], ["valid"], {"a": "b"}),
)

#: More keys than the shipped scenarios have.
RICH: dict[str, Any] = {
    "cluster": {"version": "4.3.1", "brokers": 3, "controllers": 3, "config": {"num.io.threads": 3}},
    "topic": {
        "partitions": 2,
        "count": 2,
        "unclean.leader.election.enable": True,
        "assignment": [[1, 2, 3], [2, 3, 1]],
    },
    "workload": {"enable.idempotence": True, "retries": 3, "linger.ms": 5, "keys": 4, "record.size": 100, "rate": 7},
    "timeline": [
        {"inject": {"fault": "slow", "target": "leader", "delay": "1s", "jitter": "1s", "correlation": "5%"}},
        {"inject": {"fault": "reorder", "target": "leader", "share": "5%", "delay": "1s"}},
        {"inject": {"fault": "flaky", "target": "leader", "loss": "5%", "correlation": "5%"}},
        {"inject": {"fault": "duplicate", "target": ["b1"], "share": 0.5, "plane": "client"}},
        {"inject": {"fault": "throttle", "target": "leader", "rate": "10kbit"}},
        {"inject": {"fault": "partition", "from": "b1", "to": "b2", "both_ways": False, "pin": {"old": "leader"}}},
        {"until": {"acknowledged": 4, "within": "4s"}},
        {"until": {"isr": ["b1"]}},
        {"random": {"faults": [{"fault": "kill", "target": "b1"}], "every": "1s", "for": "5s"}},
    ],
    "watch": "trial-0/0",
    "final_read": {"isolation.level": "read_committed", "down": ["b1"], "replicas": True},
    "requires": {"acknowledged": 3, "leader": "changed"},
    "limits": {"unavailable": "1s"},
    "expect": {
        "verdict": "invalid",
        "anomalies": ["lost"],
        "allowed": ["lost"],
        "standing": "permitted",
        "not_met": [],
    },
}
OF_TRANSACTIONS = {
    "workload": {"kind": "transactions", "aborted": "20%", "records": 3, "transaction.timeout.ms": 40000}
}
DRAWS = Random(1)
OF_GROUPS = {
    "workload": {"kind": "groups", "members": 3, "processing": "1s", "session.timeout.ms": 9000},
    "timeline": [{"kill": {"member": 1}}],
}


def with_one_value_changed(data: Any) -> Iterator[Any]:
    """Copies of ``data``, each with another of its values, or parts, as somebody may write it otherwise."""
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        for other in (*OTHERWISE, *with_one_value_changed(value)):
            changed = copy.copy(data)
            changed[key] = other
            yield changed


@pytest.mark.parametrize(
    ("data", "share"),
    [(RICH, 0.2), (OF_TRANSACTIONS, 1), (OF_GROUPS, 1), long_case(RICH, 1)],
    ids=["a fifth", "transactions", "groups", "all"],
)
def test_no_changed_value_loads_without_meeting_the_schema(data: dict[str, Any], share: float) -> None:
    assert loads(data)
    otherwise = [changed for changed in with_one_value_changed(data) if share == 1 or DRAWS.random() < share]
    not_met = [changed for changed in otherwise if refused(changed)]
    assert 50 < len(not_met) < len(otherwise)
    assert [changed for changed in not_met if loads(changed)] == []


def test_every_step_fault_and_workload_is_in_it() -> None:
    definitions = SCHEMA["$defs"]
    assert {f"fault-{kind}" for kind in FAULTS} <= definitions.keys()
    assert {model.__name__ for model in (*STEPS.values(), *WORKLOADS.values())} <= definitions.keys()
    assert all(definitions[f"fault-{kind}"]["description"] for kind in FAULTS)


def keys(schema: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, definition in {"scenario": schema, **schema["$defs"]}.items():
        yield from ((f"{name}.{key}", reported) for key, reported in definition.get("properties", {}).items())


def test_every_key_has_a_description() -> None:
    steps = {f"{model.__name__}.{name}" for name, model in STEPS.items()}
    unsaid = [at for at, reported in keys(SCHEMA) if not reported.get("description") and "const" not in reported]
    assert [at for at in unsaid if at not in steps] == []
    assert all(SCHEMA["$defs"][model.__name__]["description"] for model in STEPS.values())
