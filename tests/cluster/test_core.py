"""What `scripts/test` runs on real clusters has each fault, workload, metadata mode and verdict once, at least."""

from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import get_args

import pytest

from harness.cluster.spec import ClusterSpec
from harness.core.verdict import Judgement
from harness.scenario.loading import load
from nemesis.catalogue import FAULTS, kind_of
from tests.cluster import test_breaking_off, test_faults, test_scenarios
from workloads.catalogue import WORKLOADS

#: All that there is.
WANTED = {
    *(("fault", kind) for kind in FAULTS),
    *(("workload", kind.model_fields["kind"].default) for kind in WORKLOADS.values()),
    *(("metadata", mode) for mode in get_args(ClusterSpec.model_fields["metadata"].annotation)),
    *(("verdict", str(judgement)) for judgement in Judgement),
}

#: What tests beside those of scenarios show.
SHOWN = {
    (test_faults, "test_a_fault_takes_effect_and_heals_to_nothing"): {("fault", k) for k in test_faults.TRIALS},
    (test_breaking_off, "test_ctrl_c_removes_the_cluster_and_the_recorded_part_is_judged_unknown"): {
        ("verdict", "unknown")
    },
}


def shown_by(scenarios: Iterable[str]) -> Iterator[tuple[str, str]]:
    """What runs of these scenarios show. One that may come out either way shows neither verdict for sure."""
    for scenario in map(load, scenarios):
        yield from (("fault", kind_of(fault)) for fault in scenario.faults)
        yield "workload", scenario.workload.kind
        yield "metadata", scenario.cluster.metadata
        expected = scenario.expect.verdict
        if isinstance(expected, Judgement):
            yield "verdict", str(expected)


def test_the_core_shows_each_fault_workload_metadata_mode_and_verdict() -> None:
    shown = {*shown_by(test_scenarios.CORE)}.union(*SHOWN.values())
    assert WANTED - shown == set()


@pytest.mark.parametrize("scenario", sorted(test_scenarios.CORE))
def test_each_scenario_of_the_core_is_one(scenario: str) -> None:
    assert scenario in test_scenarios.STORIES


@pytest.mark.parametrize(("module", "test"), SHOWN)
def test_each_other_test_of_the_core_is_marked_so(module: ModuleType, test: str) -> None:
    assert "core" in {mark.name for mark in getattr(module, test).pytestmark}
