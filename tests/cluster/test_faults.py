"""Every fault of the catalogue, on real containers: it takes effect, its evidence says so, and nothing of it stays."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from harness.core.topology import Ports
from harness.history.journal import Journal
from harness.history.schema import FAULTS as SCHEMA
from nemesis.catalogue import FAULTS
from nemesis.preflight import NEEDS, lacking
from nemesis.shell import ProcessState
from tests.nemesis.conftest import nemesis_on, rows_by_name
from tests.nemesis.controls import IDLE

from .conftest import Plain

pytestmark = pytest.mark.cluster


@dataclass(frozen=True)
class Trial:
    """A fault as a scenario writes it, what has to go before it, and how it shows while it lasts."""

    fault: dict[str, Any]
    shows: Callable[[Plain], bool]
    before: tuple[tuple[str, dict[str, Any]], ...] = ()


def _cut_from_b2_not_b3(plain: Plain) -> bool:
    return plain.ping("b1", "b2") == 0 and plain.ping("b2", "b1") == 0 and plain.ping("b1", "b3") == 2


def _alone(plain: Plain) -> bool:
    return all(plain.ping("b1", other) == 0 for other in ("b2", "b3", "clients")) and plain.ping("b2", "b3") == 2


def _b1(state: ProcessState) -> Callable[[Plain], bool]:
    return lambda plain: plain.states() == {"b1": state, "b2": ProcessState.RUNNING, "b3": ProcessState.RUNNING}


def _late(plain: Plain) -> bool:
    return plain.round_trip("b1", "b2") >= 200 > plain.round_trip("b2", "b3")


def _disordered(plain: Plain) -> bool:
    order = plain.pinged("b1", "b2", count=40)
    return len(set(order)) == len(order) >= 40 and order != sorted(order)


def _twice(plain: Plain) -> bool:
    order = plain.pinged("b1", "b2", count=40)
    return len(set(order)) < len(order)


def _lossy(plain: Plain) -> bool:
    return 0 < plain.ping("b1", "b2", count=40) < 40


def _replication_is_thin(plain: Plain) -> bool:
    return plain.received("b1", Ports().replication) < 100_000 and plain.received("b1", Ports().client) > 1_000_000


TRIALS: dict[str, Trial] = {
    "partition": Trial({"from": "b1", "to": "b2"}, _cut_from_b2_not_b3),
    "isolate": Trial({"target": "b1"}, _alone),
    "kill": Trial({"target": "b1"}, _b1(ProcessState.EXITED)),
    "stop": Trial({"target": "b1"}, _b1(ProcessState.EXITED)),
    "restart": Trial({"target": "b1"}, _b1(ProcessState.RUNNING)),
    "start": Trial({"target": "b1"}, _b1(ProcessState.RUNNING), before=(("kill", {"target": "b1"}),)),
    "pause": Trial({"target": "b1"}, _b1(ProcessState.STOPPED)),
    "resume": Trial({"target": "b1"}, _b1(ProcessState.RUNNING), before=(("pause", {"target": "b1"}),)),
    "slow": Trial({"target": "b1", "delay": "200ms"}, _late),
    "flaky": Trial({"target": "b1", "loss": "50%"}, _lossy),
    "reorder": Trial({"target": "b1", "share": "50%", "delay": "100ms"}, _disordered),
    "duplicate": Trial({"target": "b1", "share": "50%"}, _twice),
    "corrupt": Trial({"target": "b1", "share": "50%"}, _lossy),
    "throttle": Trial({"target": "b1", "rate": "80kbit", "plane": "replication"}, _replication_is_thin),
    "wipe": Trial({"target": "b1"}, _b1(ProcessState.EXITED), before=(("kill", {"target": "b1"}),)),
}


#: What only netem does: on a machine without it these are refused, and no others.
NETEM_ALONE = ("duplicate", "corrupt")


def test_every_fault_of_the_catalogue_is_tried() -> None:
    assert set(TRIALS) == set(FAULTS)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "faults.nemesis.arrows", SCHEMA) as journal:
        yield journal


@pytest.mark.core
@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_takes_effect_and_heals_to_nothing(kind: str, plain: Plain, journal: Journal) -> None:
    trial = TRIALS[kind]
    fault = FAULTS[kind].model_validate(trial.fault)
    if lines := lacking([fault.needs], plain.try_script):
        assert kind in NETEM_ALONE
        assert [line.partition(" (")[0] for line in lines] == [NEEDS["netem"].missing]
        return
    clean = plain.traces()
    with nemesis_on(plain.shell, journal) as nemesis:
        for earlier, parameters in trial.before:
            nemesis.inject(FAULTS[earlier].model_validate(parameters))
        name = nemesis.inject(fault)
        shows = trial.shows(plain)
    assert shows
    rows = rows_by_name(journal)
    assert all(row["effective"] and row["healed_ns"] >= row["healing_ns"] for row in rows.values()), rows
    assert rows[name]["nodes"] == (["b1", "b2"] if kind == "partition" else ["b1"])
    assert set(plain.states().values()) == {ProcessState.RUNNING}
    assert plain.traces() == clean
    assert plain.answered() == dict.fromkeys(product(("b1", "b2", "b3"), repeat=2), 2)


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_that_cannot_have_acted_is_not_effective(kind: str, plain: Plain, journal: Journal) -> None:
    control = IDLE[kind][-1]
    fault = FAULTS[kind].model_validate(control.fault)
    if lacking([fault.needs], plain.try_script):
        assert kind in NETEM_ALONE
        return
    with nemesis_on(plain.shell, journal) as nemesis:
        for earlier, parameters in control.before:
            nemesis.inject(FAULTS[earlier].model_validate(parameters))
        nemesis.inject(fault, "it")
        if control.speak:
            plain.ping("b1", "b2")
    row = rows_by_name(journal)["it"]
    assert not row["effective"]
    assert row["nodes_without_effect"]


def test_a_missing_kernel_feature_is_named_in_one_line(plain: Plain) -> None:
    for need in NEEDS:
        assert all(
            "\n" not in line and NEEDS[need].missing in line
            for line in lacking([(frozenset({need}),)], plain.try_script)
        )


def test_a_partition_outlives_the_restart_of_a_node(plain: Plain, journal: Journal) -> None:
    with nemesis_on(plain.shell, journal) as nemesis:
        cut = nemesis.inject(FAULTS["partition"].model_validate({"from": "b1", "to": ["b2", "b3"]}), "cut")
        assert plain.ping("b1", "b2") == 0
        assert plain.ping("b1", "b3") == 0
        nemesis.inject(FAULTS["kill"].model_validate({"target": "b1"}), "dead")
        nemesis.inject(FAULTS["start"].model_validate({"target": "b1"}))
        assert plain.ping("b1", "b2") == 0
        nemesis.heal(cut)
        assert plain.ping("b1", "b2") == 2
        assert nemesis.active == ()
    assert rows_by_name(journal)["cut"]["effective"]


def test_an_isolated_node_can_keep_its_clients(plain: Plain, journal: Journal) -> None:
    with nemesis_on(plain.shell, journal) as nemesis:
        nemesis.inject(FAULTS["isolate"].model_validate({"target": "leader", "clients": False}))
        assert plain.ping("b1", "clients") == 2
        assert plain.ping("b1", "b2") == 0


def test_a_cut_of_one_plane_leaves_the_others(plain: Plain, journal: Journal) -> None:
    with nemesis_on(plain.shell, journal) as nemesis:
        cut = FAULTS["partition"].model_validate({"from": "clients", "to": "leader", "plane": "client"})
        nemesis.inject(cut)
        assert plain.received("b1", Ports().replication) > 1_000_000
        assert plain.ping("b1", "clients") == 2


def test_a_delay_outlives_the_restart_of_its_node(plain: Plain, journal: Journal) -> None:
    clean = plain.traces()
    with nemesis_on(plain.shell, journal) as nemesis:
        nemesis.inject(FAULTS["slow"].model_validate({"target": "b1", "delay": "200ms"}), "late")
        assert plain.round_trip("b1", "b2") >= 200
        nemesis.inject(FAULTS["kill"].model_validate({"target": "b1"}), "dead")
        nemesis.inject(FAULTS["start"].model_validate({"target": "b1"}))
        assert plain.round_trip("b1", "b2") >= 200
    assert rows_by_name(journal)["late"]["effective"]
    assert plain.traces() == clean


def test_a_holder_that_was_killed_takes_the_effect_back(plain: Plain, journal: Journal) -> None:
    clean = plain.traces()
    slow = FAULTS["slow"].model_validate({"target": ["b1", "b2"], "delay": "200ms"})
    if not lacking([(frozenset({"netem"}),)], plain.try_script):
        return
    with nemesis_on(plain.shell, journal) as nemesis:
        nemesis.inject(slow, "late")
        assert plain.round_trip("b1", "b3") >= 200
        assert plain.round_trip("b2", "b3") >= 200
        plain.kill_helpers("b1")
        assert plain.round_trip("b1", "b3") < 200
    row = rows_by_name(journal)["late"]
    assert not row["effective"]
    assert row["nodes_without_effect"] == ["b1"]
    assert plain.traces() == clean
