"""Settings that a scenario passes to librdkafka (``workload.config``): they must not be the harness's own, and
librdkafka must accept them."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import BaseModel

from harness.core.clock import Clock
from harness.core.complaints import near
from harness.scenario.model import Scenario
from harness.scenario.problems import Problem
from workloads.clients.librdkafka import RELIED_ON, SETTINGS, Value, is_default, main_name, refused
from workloads.workload import Surroundings, Workload


def client_config(scenario: Scenario) -> Iterator[Problem]:
    """A problem for each setting that may not be passed; if there is none, one for each that librdkafka refuses."""
    workload = scenario.workload
    if not workload.config:
        return
    producers, consumers = _own_settings(workload)
    keys = own_keys(type(workload))
    problems = [
        Problem(("workload", "config", key), says)
        for key in workload.config
        if (says := _not_passed(key, keys, {**consumers, **producers}))
    ]
    yield from problems
    if not problems:
        for says in refused(workload.config, producers, consumers):
            yield Problem(("workload", "config"), f"librdkafka refuses it: {says}")


def own_keys(workload: type[BaseModel]) -> dict[str, str]:
    """The keys of a workload, by librdkafka's name for the same setting."""
    return {main_name(key): key for name, info in workload.model_fields.items() for key in [info.alias or name]}


def _not_passed(key: str, keys: Mapping[str, str], own: Mapping[str, Value]) -> str | None:
    """Why a setting may not be passed; None if it may. A setting may be passed if the harness leaves it at its
    default."""
    if key not in SETTINGS:
        return f"no setting of librdkafka is called {key!r}; {near(key, SETTINGS)}"
    name = main_name(key)
    if name in keys:
        return f"{key} has a key of its own: write it as workload.{keys[name]}"
    ours = next((value for set_, value in own.items() if main_name(set_) == name), None)
    if RELIED_ON & {key, name} or (ours is not None and not is_default(name, ours)):
        return f"{key} is set by the harness{f' (to {ours})' if ours else ''}, which relies on it: remove it"
    return None


def _own_settings(workload: Workload) -> tuple[Mapping[str, Value], Mapping[str, Value]]:
    """The settings that the harness itself sets for a producer and a consumer of this workload."""
    nowhere = Surroundings("", {"any": 1}, Path(), Clock.start(), 0)
    specs = workload.model_copy(update={"config": {}}).worker_specs(nowhere)
    consumers = [spec.config for spec in specs if not spec.writes]
    producers = [spec.config for spec in specs if spec.writes]
    return producers[0], consumers[0] if consumers else {"group.id": "none"}
