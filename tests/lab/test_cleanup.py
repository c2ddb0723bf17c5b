"""What a harness that was killed leaves on machines, `cleanup` takes away: every kind of fault that netem has."""

from pathlib import Path

import pytest

from harness.providers.catalogue import PROVIDERS, composed
from harness.providers.ssh.machine import Machine
from harness.providers.ssh.provider import Ssh

from .conftest import plain_nodes, traces
from .test_faults import BY_NETEM, Written, abandoned

pytestmark = pytest.mark.lab

#: And what netem has not, beside it: a helper, and a device of its own.
FAULTS_LEFT: Written = [
    *BY_NETEM,
    ("slow", {"target": "b3", "delay": "50ms", "jitter": "10ms", "correlation": "50%", "plane": "client"}),
    ("throttle", {"target": "b3", "rate": "1mbit", "plane": "controller"}),
    ("kill", {"target": "b2"}),
]


@pytest.mark.core
def test_cleanup_removes_all_that_a_killed_harness_left(
    machines: dict[str, Machine], inventory: Path, tmp_path: Path
) -> None:
    clean = traces(machines)
    spec = composed(PROVIDERS).model_validate({"machines": str(inventory)})
    with plain_nodes(inventory):
        abandoned(inventory, tmp_path, within=600.0, faults=FAULTS_LEFT)
        left = traces(machines)
        assert [left[name].count(" netem ") for name in ("m1", "m2", "m3")] == [3, 1, 1]
        assert "KT-" in left["m3"], "the rule that sends packets to the program"
        assert "kt-ifb" in left["m3"]
        said = Ssh(here="tests").cleanup(spec, "tests/plain", force=True, dry_run=False)
        assert {line.partition(": ")[0] for line in said} == {"m1", "m2", "m3"}
        assert sum("undid a fault" in line for line in said) == len(FAULTS_LEFT) - 1, (
            "a node is not started to be ended"
        )
        assert traces(machines) == clean
        assert Ssh(here="tests").cleanup(spec, "tests/plain", force=True, dry_run=False) == []
