"""Each assumption that a verdict rests on: held, and not held with what was seen instead."""

from typing import Any

import pytest

from checkers import preconditions as asks
from checkers.evidence.leadership import Span
from checkers.summary import summary
from harness.core.guarantees import Configuration
from harness.core.verdict import PRECONDITIONS, Precondition, Summary
from harness.history.run_file import Requirements, RunFile, StepReport

SPAN = Span("b1", "trial", 0, 0, 1, 1, 0, (1,))
WATCHED = ("trial", 0)


def run_file(**more: Any) -> RunFile:
    settings = {"run": "r", "scenario_name": "s", "scenario": {}, "configuration": Configuration(version="4.3.1")}
    return RunFile(**{**settings, **more})


def of(attempted: int, acknowledged: int) -> Summary:
    counts = dict.fromkeys(("survivors", "unacknowledged_present"), 0)
    return summary({**counts, "attempted": attempted, "acknowledged": acknowledged}, 0, 0)


def fault(name: str = "cut", kind: str = "partition", **more: Any) -> dict[str, Any]:
    return {"fault": name, "kind": kind, "nodes": ["b1"], "effective": True, "healed_ns": 9, **more}


def staying(*names: str, **more: Any) -> RunFile:
    """A run whose scenario lets these stay as they are."""
    return run_file(scenario={"final_read": {"down": names}}, **more)


#: A kill of b1 that nobody healed.
KILL = fault("kill-1", "kill", healed_ns=None)


def end(**more: Any) -> dict[str, Any]:
    return {"topic": "t", "partition": 0, "log_start": 0, "log_end": 9, "read_to": 9, "complete": True, **more}


def led(requires: str, reigned: list[int]) -> Precondition:
    [held] = asks.led(Requirements(leader=requires), WATCHED, reigned)
    return held


HELD = {
    "history whole": asks.whole(run_file()),
    "something attempted": asks.attempted(of(5, 5)),
    "enough acknowledged": asks.acknowledged(of(5, 5), Requirements(acknowledged=5)),
    "nothing need be acknowledged": asks.acknowledged(of(5, 0), Requirements(acknowledged=0)),
    "faults bit": asks.bit([fault()]),
    "no fault": asks.bit([]),
    "faults healed": asks.healed([fault()], run_file()),
    "fault may stay": asks.healed([fault(healed_ns=None)], staying("cut")),
    "node may stay": asks.healed([fault(healed_ns=None)], staying("b1", down={"b1": ["b1"]})),
    "node may stay, of a run that did not tell": asks.healed([fault(healed_ns=None)], staying("b1")),
    "pinned node may stay": asks.healed([KILL], staying("old_leader", down={"old_leader": ["b1"]})),
    "two pinned nodes may stay": asks.healed(
        [fault("kill-1", "kill", nodes=["b1", "b2"], healed_ns=None)],
        staying("one", "other", down={"one": ["b1"], "other": ["b2"]}),
    ),
    "what lasts of a fault may stay": asks.healed(
        [fault("kill-1", "kill", nodes=["b1", "b2"], healed_ns=None)], staying("b2", lasting={"kill-1": ["b2"]})
    ),
    "timeline followed": asks.followed(run_file(timeline=[StepReport(step="wait: 5s", at_ns=0, ended_ns=1)])),
    "workers finished": asks.finished(run_file(notes=["producer 1: 3 records still in flight"])),
    "cluster observed": asks.observed([SPAN]),
    "leader changed": led("changed", [1, 2]),
    "leader unchanged": led("unchanged", [1]),
    "final read complete": asks.read_to_the_end([end()]),
    "every log that was told of read": asks.read_to_the_end([end()], [("t", 0)]),
    "log retained": asks.retained([end()]),
    "limits judged": asks.limited([]),
}

NOT_HELD = [
    (asks.whole(run_file(partial=True, notes=["sends.w1 was cut off"])), "sends.w1 was cut off"),
    (asks.whole(run_file(partial=True)), "a worker or the harness was cut off"),
    (asks.attempted(of(0, 0)), "not one write"),
    (asks.acknowledged(of(5, 4), Requirements(acknowledged=5)), "4 writes acknowledged, 5 required"),
    (asks.bit([fault(), fault("slow", effective=False)]), "no evidence: slow"),
    (
        asks.bit([fault("slow", effective=False, nodes_without_effect=["b2", "b3"])]),
        "no evidence: slow (on b2, b3)",
    ),
    (asks.healed([fault(healed_ns=None)], run_file()), "still there: cut"),
    # Of what hits no node (an election whose end nobody recorded) no node that may stay tells anything.
    (asks.healed([fault("elect-1", "elect", nodes=[], healed_ns=None)], run_file()), "still there: elect-1"),
    (asks.healed([fault("elect-1", "elect", nodes=[], healed_ns=None)], staying("b1")), "still there: elect-1"),
    (asks.healed([fault(healed_ns=None)], staying("other", "b2")), "still there: cut"),
    # A node that may stay, and a fault of that name or of another, are no pin that might have meant b1.
    (asks.healed([KILL], staying("b3")), "still there: kill-1"),
    (asks.healed([KILL], staying("b3", down={"b3": ["b3"]})), "still there: kill-1"),
    (asks.healed([KILL, fault("cut", healed_ns=None)], staying("cut")), "still there: kill-1"),
    (asks.healed([KILL], staying("old_leader", down={"old_leader": ["b2"]})), "still there: kill-1"),
    (asks.healed([KILL], staying("b2", down={"old_leader": ["b1"]})), "still there: kill-1"),
    # What a pin meant that the run did not tell.
    (asks.healed([KILL], staying("old_leader")), "still there: kill-1"),
    (
        asks.healed(
            [fault("kill-1", "kill", nodes=["b1", "b2"], healed_ns=None)], staying("b2", lasting={"kill-1": ["b1"]})
        ),
        "still there: kill-1",
    ),
    (
        asks.followed(
            run_file(timeline=[StepReport(step="until", at_ns=0, ended_ns=1, met=False, detail="ISR b1, b2")])
        ),
        "not met: until (ISR b1, b2)",
    ),
    (asks.finished(run_file(unfinished=["consumer 3 is behind"])), "consumer 3 is behind"),
    (asks.observed([]), "no observation at all"),
    (led("changed", [1]), "trial-0 was led by 1"),
    (led("changed", []), "trial-0 was led by nobody"),
    (led("unchanged", [1, 3]), "trial-0 was led by 1, 3"),
    (led("unchanged", []), "trial-0 was led by nobody"),
    (asks.read_to_the_end([end(), end(partition=1, read_to=4, complete=False)]), "t-1 read to 4 of 9"),
    (asks.read_to_the_end([]), "no partition was read"),
    (asks.read_to_the_end([], [("t", 0)]), "no partition was read"),
    (asks.read_to_the_end([end(), end(partition=1)], [("t", 2), ("t", 1)]), "t-2 not read at all"),
    (asks.retained([end(log_start=3)]), "t-0 begins at 3"),
    (asks.limited(["t-0 acknowledged nothing for up to 9 s"]), "t-0 acknowledged nothing for up to 9 s"),
]


@pytest.mark.parametrize("precondition", HELD.values(), ids=HELD)
def test_an_assumption_that_holds(precondition: Precondition) -> None:
    assert precondition.met
    assert precondition.detail


@pytest.mark.parametrize(("precondition", "detail"), NOT_HELD, ids=lambda value: getattr(value, "name", ""))
def test_an_assumption_that_does_not_hold_says_what_was_seen(precondition: Precondition, detail: str) -> None:
    assert not precondition.met
    assert precondition.detail == detail


def test_a_scenario_that_says_nothing_of_the_leader_does_not_ask() -> None:
    assert asks.led(Requirements(), WATCHED, [1, 2]) == []


def test_every_assumption_is_asked_of_a_run_and_tested_both_ways() -> None:
    run = run_file(requires=Requirements(leader="changed"), scenario={"final_read": {"down": ["b1"]}})
    asked = [held.name for held in asks.preconditions(run, of(1, 1), [end()], [fault(healed_ns=None)], [SPAN], [], [])]
    assert set(asked) <= {held.name for held in HELD.values()} <= set(PRECONDITIONS)
    assert set(asked) <= {held.name for held, _ in NOT_HELD}
    assert "faults healed" not in [
        held.name
        for held in asks.preconditions(run, of(1, 1), [end()], [fault(healed_ns=None)], [SPAN], [])
        if not held.met
    ]
