"""A scenario written out is the same scenario, and says what a run depends on, not what is empty."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from harness.scenario.loading import load, named
from harness.scenario.resolved import resolved_yaml

CHANGES = [
    ("workload.rate=null", "workload.keys=3", "timeline=[]", "expect={}"),
    ("final_read.isolation.level=read_committed", "final_read.down=[b1]", "requires.leader=changed"),
    ("timeline=[random: {faults: [{fault: flaky, target: one-of brokers, loss: 100%}], every: 1s, for: 2s}]",),
]


@pytest.mark.parametrize("name", named())
def test_every_scenario_written_out_is_the_same(name: str, written_to: Callable[[str], Path]) -> None:
    scenario = load(name)
    assert load(str(written_to(resolved_yaml(scenario)))) == scenario


@pytest.mark.parametrize("changes", CHANGES)
def test_a_scenario_with_settings_of_its_own_is_the_same_when_written_out(
    changes: tuple[str, ...], written_to: Callable[[str], Path]
) -> None:
    scenario = load("jepsen-2013/min-isr-2", changes)
    assert load(str(written_to(resolved_yaml(scenario)))) == scenario


def test_a_setting_that_is_an_empty_text_stays(written_to: Callable[[str], Path]) -> None:
    scenario = load("jepsen-2013/min-isr-2", ["cluster.config.ssl.cipher.suites=''"])
    assert load(str(written_to(resolved_yaml(scenario)))).cluster.config == {"ssl.cipher.suites": ""}


def test_the_resolved_scenario_shows_defaults_that_a_run_depends_on() -> None:
    said = yaml.safe_load(resolved_yaml(load("jepsen-2013/min-isr-2")))
    assert said["workload"]["enable.idempotence"] is True
    assert said["workload"]["max.in.flight.requests.per.connection"] == 5
    assert said["cluster"]["version"] == "4.3.1"


def test_the_resolved_scenario_omits_empty_and_usual_values() -> None:
    said = yaml.safe_load(resolved_yaml(load("jepsen-2013/min-isr-2")))
    assert "notes" not in said
    assert said["final_read"] == {"replicas": False}
    assert "config" not in said["cluster"]
    cut = said["timeline"][1]["inject"]
    assert next(iter(cut)) == "fault"
    assert not {"plane", "both_ways"} & set(cut)
