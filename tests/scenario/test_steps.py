"""Steps are written as one-key mappings, and every fault of the catalogue can be injected."""

import pytest
from pydantic import TypeAdapter

from harness.scenario.steps import Elect, Heal, Inject, Random, Step, Until, Wait
from nemesis.catalogue import FAULTS, kind_of
from workloads.groups import Join, Kill, Leave
from workloads.transactions import Replace

STEP: TypeAdapter[Step] = TypeAdapter(Step)

#: The keys that each fault needs besides its target.
PARAMETERS = {
    "partition": {"from": "leader", "to": "followers"},
    "slow": {"target": "leader", "delay": "250ms"},
    "flaky": {"target": "leader", "loss": "2%"},
    "throttle": {"target": "leader", "rate": "10kbit"},
    "reorder": {"target": "leader", "share": "25%"},
    "duplicate": {"target": "leader", "share": "5%"},
    "corrupt": {"target": "leader", "share": "5%"},
}


@pytest.mark.parametrize("kind", FAULTS)
def test_every_fault_of_the_catalogue_can_be_injected_and_written_again(kind: str) -> None:
    parameters = PARAMETERS.get(kind, {"target": "leader"})
    step = STEP.validate_python({"inject": {"fault": kind, **parameters, "as": "it", "pin": {"old": "leader"}}})
    assert isinstance(step, Inject)
    assert isinstance(step.inject, FAULTS[kind])
    assert kind_of(step.inject) == kind == step.inject.fault
    assert (step.inject.name, step.inject.pin) == ("it", {"old": "leader"})
    assert STEP.validate_python(step.model_dump(mode="json", by_alias=True)) == step


@pytest.mark.parametrize(
    ("written", "reported"),
    [
        ({"wait": "1.5s"}, "wait 1.5 s"),
        ({"until": {"isr": ["b1", "b2"], "within": "2m"}}, "until ISR b1, b2 within 120 s"),
        ({"until": {"leader": "changed"}}, "until leader changed within 30 s"),
        ({"until": {"acknowledged": 500}}, "until 500 acknowledged within 30 s"),
        ({"heal": "all"}, "heal all"),
        ({"elect": "unclean"}, "elect unclean"),
        ({"replace": {"producer": 2}}, "replace producer 2"),
        ({"kill": {"member": 1}}, "kill member 1"),
        ({"leave": {"member": 2}}, "leave member 2"),
        ({"join": {"member": 3}}, "join member 3"),
        (
            {"inject": {"fault": "partition", "from": "leader", "to": ["b2", "b3"], "both_ways": False, "as": "cut"}},
            "inject partition from leader to b2, b3 both_ways false as cut",
        ),
        (
            {"random": {"faults": [{"fault": "kill", "target": "one-of brokers"}], "every": "5s", "for": "20s"}},
            "random one of kill target one-of brokers every 5 s for 20 s",
        ),
    ],
)
def test_the_text_of_a_step_describes_it(written: dict[str, object], reported: str) -> None:
    assert str(STEP.validate_python(written)) == reported


def test_there_are_ten_kinds_of_step() -> None:
    written = [
        {"wait": 1},
        {"until": {"leader": "none"}},
        {"inject": {"fault": "kill", "target": "b1"}},
        {"heal": "all"},
        {"elect": "unclean"},
        {"replace": {"producer": 1}},
        {"kill": {"member": 1}},
        {"leave": {"member": 1}},
        {"join": {"member": 1}},
        {"random": {"faults": [{"fault": "kill", "target": "b1"}]}},
    ]
    kinds = [Wait, Until, Inject, Heal, Elect, Replace, Kill, Leave, Join, Random]
    assert [type(STEP.validate_python(step)) for step in written] == kinds


@pytest.mark.parametrize("kind", [kind for kind, fault in FAULTS.items() if not fault.drawable])
def test_a_fault_that_needs_an_earlier_step_cannot_be_drawn(kind: str) -> None:
    with pytest.raises(ValueError, match=f"{kind} needs an earlier fault"):
        STEP.validate_python({"random": {"faults": [{"fault": kind, "target": "b1"}]}})


def test_drawn_faults_have_no_names() -> None:
    with pytest.raises(ValueError, match="neither `as` nor `pin`"):
        STEP.validate_python({"random": {"faults": [{"fault": "kill", "target": "b1", "as": "x"}]}})


def test_a_shutdown_may_take_as_long_as_it_is_given() -> None:
    """A fault that is active meanwhile must not heal by itself before the shutdown is over."""
    stop = {"fault": "stop", "target": "b1", "grace": "10m"}
    assert STEP.validate_python({"inject": stop}).longest == 600
    assert STEP.validate_python({"inject": {"fault": "kill", "target": "b1"}}).longest == 0
    drawn = {"faults": [{"fault": "kill", "target": "b1"}, stop], "every": "10s", "for": "60s"}
    assert STEP.validate_python({"random": drawn}).longest == 660
