"""Every named scenario loads, says where it comes from, and fits its time."""

import pytest

from harness.scenario.loading import catalogue, load, named
from harness.scenario.model import Scenario

NAMES = list(named())


def test_the_scenarios_of_2013_and_2018_are_there() -> None:
    assert {
        "jepsen-2013/unclean-election",
        "jepsen-2013/unclean-election-zookeeper",
        "jepsen-2013/min-isr-2",
        "jepsen-2013/clean-election",
        "lose-messages/leader-killed-acks-0",
        "lose-messages/leader-killed-acks-1",
        "lose-messages/leader-killed-acks-all",
        "lose-messages/leader-isolated-acks-1",
        "lose-messages/leader-isolated-acks-all",
        "lose-messages/leader-wiped",
        "lose-messages/leader-wiped-3.9",
        "lose-messages/flaky-2-percent",
        "lose-messages/slow-followers-clean",
        "lose-messages/slow-followers-clean-acks-1",
        "lose-messages/slow-followers-unclean",
        "lose-messages/slow-followers-unclean-acks-1",
        "lose-messages/slow-all-250ms",
        "lose-messages/throttled-followers",
    } <= set(NAMES)


def test_the_catalogue_is_all_of_them_by_name() -> None:
    assert [scenario.name for scenario in catalogue()] == NAMES == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_scenario_states_its_claim_its_source_and_its_expectation(name: str) -> None:
    scenario = load(name)
    assert scenario.source
    assert scenario.claim.endswith(".")
    assert {"expect", "timeline", "cluster", "topic", "workload"} <= scenario.model_fields_set


@pytest.mark.parametrize("name", NAMES)
def test_its_timeline_ends_with_a_heal_and_fits_in_90_seconds(name: str) -> None:
    scenario = load(name)
    assert sum(step.longest for step in scenario.timeline) <= 90
    assert str(scenario.timeline[-1]) == "heal all"


@pytest.mark.parametrize("name", NAMES)
def test_a_scenario_survives_storage_in_a_run(name: str) -> None:
    scenario = load(name)
    assert Scenario.model_validate_json(scenario.model_dump_json(by_alias=True)) == scenario
