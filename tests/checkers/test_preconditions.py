"""Each assumption that a verdict rests on: met; or not met, with the fact that was seen instead."""

from dataclasses import replace
from typing import Any

import pytest

from checkers import preconditions as asks
from checkers.evidence.silence import Silence
from checkers.leadership import Span
from checkers.summary import summary
from harness.core.guarantees import Configuration
from harness.core.verdict import PRECONDITIONS, Precondition, Summary
from harness.history.run_file import Origin, PhaseReport, Requirements, RunFile, StepReport

SPAN = Span("b1", "trial", 0, 0, 1, 1, 0, (1,))
SECOND = 1_000_000_000
WATCHED = ("trial", 0)


def run_file(**more: Any) -> RunFile:
    settings = {"run": "r", "scenario_name": "s", "scenario": {}, "configuration": Configuration(version="4.3.1")}
    return RunFile(**{**settings, **more})


def of(attempted: int, acknowledged: int) -> Summary:
    counts = dict.fromkeys(("survivors", "unacknowledged_present"), 0)
    return summary({**counts, "attempted": attempted, "acknowledged": acknowledged}, 0, 0)


def fault(name: str = "cut", kind: str = "partition", **more: Any) -> dict[str, Any]:
    reported = {"injecting_ns": 3, "injected_ns": 3, "healed_ns": 9, "evidence": "{}", **more}
    return {"fault": name, "kind": kind, "nodes": ["b1"], "effective": True, **reported}


def staying(*names: str, **more: Any) -> RunFile:
    """A run whose scenario lets these stay as they are."""
    return run_file(scenario={"final_read": {"down": names}}, **more)


DRAINED = [PhaseReport(phase="drain", at_ns=9), PhaseReport(phase="final read", at_ns=20)]
#: A kill of b1 that nobody healed.
KILL = fault("kill-1", "kill", healed_ns=None)


def end(**more: Any) -> dict[str, Any]:
    return {"topic": "t", "partition": 0, "log_start": 0, "log_end": 9, "read_to": 9, "complete": True, **more}


def serving(last_ack_ns: int | None, partition: int = 0) -> dict[str, Any]:
    return {"topic": "t", "partition": partition, "last_ack_ns": last_ack_ns}


#: A run whose timeline injects under a name, twice without one, by hand, and at random.
INJECTS = run_file(
    scenario={
        "timeline": [
            {"wait": "5s"},
            {"inject": {"fault": "partition", "as": "cut"}},
            {"inject": {"fault": "kill", "as": None}},
            {"inject": {"fault": "kill"}},
            {"elect": "unclean"},
            {"random": {"faults": [{"fault": "pause"}, {"fault": "slow"}]}},
            {"heal": "all"},
        ]
    }
)
#: A run that draws three times, once of one kind only.
DRAWS = run_file(
    scenario={
        "timeline": [
            {"random": {"faults": [{"fault": "kill"}, {"fault": "pause"}]}},
            {"random": {"faults": [{"fault": "kill"}, {"fault": "pause"}]}},
            {"random": {"faults": [{"fault": "kill"}]}},
        ]
    }
)
#: A run that kills, and draws a kill.
KILLS_AND_DRAWS = run_file(
    scenario={"timeline": [{"inject": {"fault": "kill"}}, {"random": {"faults": [{"fault": "kill"}]}}]}
)
ROWS = [fault(), fault("kill-1", "kill"), fault("kill-2", "kill"), fault("elect-1", "elect"), fault("slow-1", "slow")]


def led(requires: str, leading: list[str]) -> Precondition:
    [one] = asks.led(Requirements(leader=requires), WATCHED, leading)
    return one


def held() -> dict[str, Precondition]:
    return {
        "history whole": asks.whole(run_file()),
        "something attempted": asks.attempted(of(5, 5)),
        "enough acknowledged": asks.acknowledged(of(5, 5), Requirements(acknowledged=5)),
        "nothing need be acknowledged": asks.acknowledged(of(5, 0), Requirements(acknowledged=0)),
        "faults recorded": asks.has_rows(INJECTS, ROWS),
        "each draw has a row": asks.has_rows(DRAWS, [fault("a", "kill"), fault("b", "pause"), fault("c", "kill")]),
        "a timeline that ended early tells itself": asks.has_rows(
            INJECTS.model_copy(update={"timeline": [StepReport(step="until", at_ns=0, ended_ns=1, met=False)]}), []
        ),
        "what comes after it does not end it early": asks.has_rows(
            INJECTS.model_copy(
                update={
                    "timeline": [StepReport(step="read", at_ns=7, ended_ns=8, met=False)],
                    "phases": [PhaseReport(phase="heal", at_ns=5)],
                }
            ),
            ROWS,
        ),
        "what did not act need not have begun": asks.has_rows(run_file(), [fault(effective=False, injected_ns=None)]),
        "faults took effect": asks.took_effect([fault()]),
        "no fault": asks.took_effect([]),
        "records at risk": asks.risked(run_file(), [fault()], {2: 9, 0: 1})[0],
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
        "healed as the drain begins": asks.healed([fault(healed_ns=9)], run_file(phases=DRAINED)),
        "what may stay is healed after the final read": asks.healed(
            [fault(healed_ns=30)], staying("cut", phases=DRAINED)
        ),
        "timeline followed": asks.followed(run_file(timeline=[StepReport(step="wait: 5s", at_ns=0, ended_ns=1)])),
        "partitions served": asks.served(run_file(), [fault(healed_ns=9)], [serving(9), serving(12, 1)])[0],
        "without faults it is enough that they ever did": asks.served(run_file(), [], [serving(0)])[0],
        "what lasts was over when it was injected": asks.served(run_file(), [fault(healed_ns=None)], [serving(3)])[0],
        "what is healed when all is drained was over when it was injected": asks.served(
            run_file(phases=[PhaseReport(phase="drain", at_ns=8)]), [fault(healed_ns=9)], [serving(3)]
        )[0],
        "consumers read to the end": asks.read_on([]),
        "workers finished": asks.finished(run_file(notes=["producer 1: 3 records still in flight"])),
        "cluster observed": asks.observed([SPAN]),
        "leader changed": led("changed", ["b1", "b2"]),
        "leader unchanged": led("unchanged", ["b1"]),
        "final read complete": asks.read_to_the_end([end()]),
        "every log that was reported read": asks.read_to_the_end([end()], [("t", 0)]),
        "log retained": asks.retained([end()]),
        "limits judged": asks.limited([]),
    }


def not_held() -> list[tuple[Precondition, str]]:
    """Each with what it says was seen."""
    return [
        (asks.whole(run_file(partial=True, notes=["sends.w1 was cut off"])), "sends.w1 was cut off"),
        (asks.whole(run_file(partial=True)), "a worker or the harness was cut off"),
        (asks.attempted(of(0, 0)), "not one write"),
        (asks.acknowledged(of(5, 4), Requirements(acknowledged=5)), "4 writes acknowledged, 5 required"),
        (asks.whole(run_file(), ["sends of producer 1 are not there"]), "sends of producer 1 are not there"),
        (asks.has_rows(INJECTS, ROWS[1:]), "no row of cut"),
        (
            asks.has_rows(
                INJECTS.model_copy(
                    update={
                        "timeline": [StepReport(step="read", at_ns=7, ended_ns=8, met=False)],
                        "phases": [PhaseReport(phase="heal", at_ns=5)],
                    }
                ),
                ROWS[1:],
            ),
            "no row of cut",
        ),
        (asks.has_rows(INJECTS, [fault("cut", "isolate"), *ROWS[1:]]), "no row of cut"),
        (asks.has_rows(INJECTS, [*ROWS[:2], *ROWS[3:]]), "no row of 1 of kill"),
        (asks.has_rows(INJECTS, [*ROWS[:3], *ROWS[4:]]), "no row of 1 of elect"),
        (asks.has_rows(INJECTS, ROWS[:4]), "no row of a fault drawn at random"),
        (asks.has_rows(INJECTS, [*ROWS[:4], fault("kill-3", "kill")]), "no row of a fault drawn at random"),
        (asks.has_rows(KILLS_AND_DRAWS, [fault("kill-1", "kill")]), "no row of a fault drawn at random"),
        (asks.has_rows(run_file(), [fault(injected_ns=None)]), "cut took effect, but has no time of its injection"),
        (
            asks.served(
                run_file(), [fault(healed_ns=9_000_000_000)], [serving(9_000_000_000), serving(8_999_999_999, 1)]
            )[0],
            "nothing acknowledged after 9.0 s, when the last fault was over: t-1",
        ),
        (asks.served(run_file(), [], [serving(None)])[0], "nothing acknowledged: t-0"),
        (
            asks.served(run_file(), [fault(), fault("late", healed_ns=None, injected_ns=20 * SECOND)], [serving(15)])[
                0
            ],
            "nothing acknowledged after 20.0 s, when the last fault was over: t-0",
        ),
        (
            asks.read_on(["consumer 3 got nothing of t-0, before 9 records"]),
            "consumer 3 got nothing of t-0, before 9 records",
        ),
        (
            asks.observed([SPAN], [Silence("t", 0, 5 * SECOND, 9 * SECOND)]),
            "no broker reported t-0 from 5.0 s to 9.0 s, while it was written to",
        ),
        (asks.took_effect([fault(), fault("slow", effective=False)]), "no evidence: slow"),
        (
            asks.took_effect([fault("slow", effective=False, nodes_without_effect=["b2", "b3"])]),
            "no evidence: slow (on b2, b3)",
        ),
        (asks.has_rows(DRAWS, [fault("a", "kill"), fault("b", "pause")]), "no row of a fault drawn at random"),
        (asks.has_rows(DRAWS, [fault(str(n), "pause") for n in range(3)]), "no row of a fault drawn at random"),
        (asks.risked(run_file(), [fault()], {})[0], "no write was acknowledged that any fault could take"),
        (asks.healed([fault(healed_ns=None)], run_file()), "still there: cut"),
        (asks.healed([fault(healed_ns=10)], run_file(phases=DRAINED)), "still there: cut"),
        (asks.healed([fault(healed_ns=30)], run_file(phases=DRAINED)), "still there: cut"),
        (asks.healed([fault(healed_ns=30)], run_file(phases=DRAINED[1:])), "still there: cut"),
        (asks.healed([fault(healed_ns=30)], staying("other", phases=DRAINED)), "still there: cut"),
        # A node that may stay excuses no event without a node (an election without a recorded end).
        (asks.healed([fault("elect-1", "elect", nodes=[], healed_ns=None)], run_file()), "still there: elect-1"),
        (asks.healed([fault("elect-1", "elect", nodes=[], healed_ns=None)], staying("b1")), "still there: elect-1"),
        (asks.healed([fault(healed_ns=None)], staying("other", "b2")), "still there: cut"),
        # A node that may stay, and a fault of that name or of another, are no pin that might have meant b1.
        (asks.healed([KILL], staying("b3")), "still there: kill-1"),
        (asks.healed([KILL], staying("b3", down={"b3": ["b3"]})), "still there: kill-1"),
        (asks.healed([KILL, fault("cut", healed_ns=None)], staying("cut")), "still there: kill-1"),
        (asks.healed([KILL], staying("old_leader", down={"old_leader": ["b2"]})), "still there: kill-1"),
        (asks.healed([KILL], staying("b2", down={"old_leader": ["b1"]})), "still there: kill-1"),
        # A pin whose nodes the run did not record.
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
        (led("changed", ["b1"]), "trial-0 was led by b1"),
        (led("changed", []), "trial-0 was led by nobody"),
        (led("unchanged", ["b1", "b3"]), "trial-0 was led by b1, b3"),
        (led("unchanged", []), "trial-0 was led by nobody"),
        (asks.read_to_the_end([end(), end(partition=1, read_to=4, complete=False)]), "t-1 read to 4 of 9"),
        (asks.read_to_the_end([end()], [], {("t", 0): 3}), "t-0 has no record at 3 of its offsets"),
        (asks.read_to_the_end([]), "no partition was read"),
        (asks.read_to_the_end([], [("t", 0)]), "no partition was read"),
        (asks.read_to_the_end([end(), end(partition=1)], [("t", 2), ("t", 1)]), "t-2 not read at all"),
        (asks.retained([end(log_start=3)]), "t-0 begins at 3"),
        (
            asks.retained([end(log_start=3)], 2),
            "t-0 begins at 3, 2 acknowledged writes without an offset may have been deleted",
        ),
        (
            asks.served(run_file(phases=[PhaseReport(phase="drain", at_ns=9)]), [fault(healed_ns=9)], [serving(3)])[0],
            "nothing acknowledged after 0.0 s, when the last fault was over: t-0",
        ),
        (asks.limited(["t-0 acknowledged nothing for up to 9 s"]), "t-0 acknowledged nothing for up to 9 s"),
    ]


@pytest.mark.parametrize("name", held())
def test_an_assumption_that_holds(name: str) -> None:
    precondition = held()[name]
    assert precondition.met
    assert precondition.detail


@pytest.mark.parametrize("number", [pytest.param(n, id=one.name) for n, (one, _) in enumerate(not_held())])
def test_an_assumption_that_does_not_hold_says_what_was_seen(number: int) -> None:
    precondition, detail = not_held()[number]
    assert not precondition.met
    assert precondition.detail == detail


@pytest.mark.parametrize(
    ("moves", "faults", "leading"),
    [
        ([(1, 2), (2, 1)], [(10, 20)], [1]),
        ([(0, 2), (2, 1)], [(1, 20)], [2, 1]),
        ([(0, 1), (15, 3)], [(10, 20)], [1, 3]),
        ([(0, 1), (29, 3)], [(10, 20)], [1, 3]),
        ([(0, 1), (31, 3)], [(10, 20)], [1]),
        ([(0, 1), (99, 3)], [(10, None)], [1, 3]),
        ([(0, 1), (31, 3)], [(10, 20), (30, 40)], [1, 3]),
        ([(12, 1), (15, 3)], [(10, 20)], [1, 3]),
    ],
    ids=[
        "before",
        "from the first fault on",
        "under it",
        "soon after",
        "long after",
        "never healed",
        "two",
        "at first",
    ],
)
def test_the_leader_has_to_change_under_the_faults(
    moves: list[tuple[int, int]], faults: list[tuple[int, int | None]], leading: list[int]
) -> None:
    seen = [Span("b1", *WATCHED, at * SECOND, at * SECOND, leader, n, (1,)) for n, (at, leader) in enumerate(moves)]
    rows = [
        fault(injecting_ns=begun * SECOND, healed_ns=None if healed is None else healed * SECOND)
        for begun, healed in faults
    ]
    missed = fault(injecting_ns=0, healed_ns=200 * SECOND, effective=False)
    assert asks.led_meanwhile(seen, WATCHED, [*rows, missed]) == leading


def test_a_scenario_that_says_nothing_of_the_leader_does_not_ask() -> None:
    assert asks.led(Requirements(), WATCHED, [1, 2]) == []


def test_with_acks_0_no_service_and_no_writes_at_risk_are_required() -> None:
    acks_0 = run_file(configuration=Configuration(version="4.3.1", acks="0"))
    assert asks.served(acks_0, [fault()], [serving(None)]) == []
    assert asks.risked(acks_0, [fault()], {}) == []


def test_a_run_without_a_fault_that_can_lose_records_needs_no_writes_at_risk() -> None:
    assert asks.risked(run_file(), [], {}) == []
    assert asks.risked(run_file(), [fault(effective=False)], {}) == []
    of_clients = fault(plane="client")
    assert asks.risked(run_file(), [of_clients], {}) == []
    assert asks.risked(run_file(), [of_clients, fault(plane="replication")], {}) != []


def test_of_a_history_that_was_imported_only_its_operations_are_asked() -> None:
    asked = asks.preconditions(run_file(origin=Origin.JEPSEN), of(1, 1), asks.RunFacts())
    assert [one.name for one in asked] == ["history whole", "something attempted", "enough acknowledged"]


def test_every_assumption_is_asked_of_a_run_and_tested_both_ways() -> None:
    run = run_file(requires=Requirements(leader="changed"), scenario={"final_read": {"down": ["b1"]}})
    seen = asks.RunFacts([end()], [fault(healed_ns=None)], [SPAN], [serving(9)])
    asked = [one.name for one in asks.preconditions(run, of(1, 1), replace(seen, undecided=[]))]
    assert set(asked) <= {one.name for one in held().values()} <= set(PRECONDITIONS)
    assert set(asked) <= {one.name for one, _ in not_held()}
    assert "faults healed" not in [one.name for one in asks.preconditions(run, of(1, 1), seen) if not one.met]
