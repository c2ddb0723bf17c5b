"""What an ``until`` awaits, on plain data; and what becomes of the steps of a timeline, on a cluster on paper."""

from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pydantic import TypeAdapter

from harness.cluster.elections import ElectionsByHand
from harness.core.errors import ClusterError
from harness.core.topology import Node, Role, View
from harness.history.journal import Journal
from harness.history.run_file import StepReport
from harness.history.schema import FAULTS
from harness.run.display import PlainDisplay
from harness.run.new_run import new_run
from harness.run.timeline import Stage, follow, met
from harness.scenario.loading import load
from harness.scenario.steps import Condition, Step
from nemesis.nemesis import Nemesis
from tests.nemesis.conftest import TOPOLOGY, FakeShell, FullDisk
from tests.nemesis.conftest import VIEW as PAPER
from workloads.processes import Counts, Workers

B1, B2, B3 = (Node(f"b{i}", Role.BROKER, i, f"10.201.0.{10 + i}") for i in (1, 2, 3))
ALL = (B1, B2, B3)
NODES = {"old_leader": frozenset({B1}), "b2": frozenset({B2})}


def holds(condition: dict[str, object], view: View, acknowledged: int = 0, before: Node | None = B1) -> bool:
    def nodes(expression: object) -> frozenset[Node]:
        names = [expression] if isinstance(expression, str) else list(expression)  # type: ignore[call-overload]
        return frozenset().union(*(NODES[name] for name in names))

    return met(Condition.model_validate(condition), view, acknowledged, before, nodes)


@pytest.mark.parametrize(("isr", "expected"), [((B1,), True), ((B1, B2), False), ((B2,), False), ((), False)])
def test_an_isr_is_exactly_the_nodes_named(isr: tuple[Node, ...], expected: bool) -> None:
    assert holds({"isr": ["old_leader"]}, View(B1, ALL, isr, None)) is expected


@pytest.mark.parametrize(("leader", "expected"), [(B2, True), (B1, False), (None, False)])
def test_changed_is_another_leader_than_before(leader: Node | None, expected: bool) -> None:
    assert holds({"leader": "changed"}, View(leader, ALL, ALL, None)) is expected


@pytest.mark.parametrize(
    ("view", "expected"),
    [(View(None, ALL, (), None), True), (View(B1, ALL, ALL, None), False), (View(None, (), (), None), False)],
)
def test_none_is_a_reported_partition_without_a_leader(view: View, expected: bool) -> None:
    assert holds({"leader": "none"}, view) is expected


def test_a_leader_may_be_named() -> None:
    assert holds({"leader": "b2"}, View(B2, ALL, ALL, None))
    assert not holds({"leader": "b2"}, View(B1, ALL, ALL, None))


@pytest.mark.parametrize(("acknowledged", "expected"), [(99, False), (100, True)])
def test_acknowledged_is_at_least_so_many(acknowledged: int, expected: bool) -> None:
    assert holds({"acknowledged": 100}, View(B1, ALL, ALL, None), acknowledged) is expected


@dataclass
class PaperObserver:
    """An observer that sees the given views."""

    seen: View

    def view(self) -> View:
        return self.seen

    def sights(self, topic: str, partition: int) -> list[Any]:
        return []


@dataclass
class Writing:
    """A workload of which another 250 writes are acknowledged each time that somebody looks."""

    acknowledged: int = 0

    def counts(self) -> Counts:
        self.acknowledged += 250
        return Counts(self.acknowledged, self.acknowledged, 0, 0, 0, None)

    def deaths(self) -> list[str]:
        return []


@dataclass
class Play:
    """A timeline on a cluster on paper."""

    stage: Stage
    shell: FakeShell
    observer: PaperObserver

    def follow(self, *steps: dict[str, Any]) -> list[StepReport]:
        """Play steps as a scenario writes them; how each went."""
        follow([TypeAdapter(Step).validate_python(step) for step in steps], self.stage)
        return self.stage.record.file.timeline


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Play]:
    record = new_run(load("jepsen-2013/unclean-election"), 1, tmp_path)
    shell, observer = FakeShell(), PaperObserver(PAPER)
    with Journal(record.journals / "faults.nemesis.arrows", FAULTS) as journal:
        nemesis = Nemesis(shell, observer.view, journal, record.clock, Random(1))
        display = PlainDisplay(StringIO())
        elections = ElectionsByHand(lambda *_: None, journal, record.clock)
        yield Play(
            Stage(record, TOPOLOGY, observer, nemesis, Workers([]), display, elections),  # type: ignore[arg-type]
            shell,
            observer,
        )
    record.release()


def test_only_acknowledgements_after_the_last_inject_count_as_awaited(play: Play) -> None:
    writing = Writing()
    play.stage.workload = writing  # type: ignore[assignment]
    await_500 = {"until": {"acknowledged": 500, "within": "10s"}}
    reports = play.follow(await_500, {"inject": {"fault": "pause", "target": "b1"}}, await_500)
    assert [report.met for report in reports] == [True, True, True]
    assert writing.acknowledged >= 1000


def random_step(**fault: Any) -> dict[str, Any]:
    return {"random": {"faults": [fault], "every": "100ms", "for": "200ms"}}


def test_a_random_step_that_injected_something_is_met(play: Play) -> None:
    assert [report.met for report in play.follow(random_step(fault="kill", target="leader"))] == [True]
    assert play.shell.done == ["b1 KILL", "b1 start", "b1 release"] * 2


def test_a_random_step_that_injected_nothing_is_not_met(play: Play) -> None:
    reports = play.follow(random_step(fault="partition", **{"from": "leader", "to": "leader"}))
    assert [(report.met, report.detail) for report in reports[:-1]] == [
        (True, "skipped: partition-1: both sides are b1, there is nothing to cut")
    ] * 2
    assert not reports[-1].met
    assert reports[-1].detail == "nothing was injected: partition-1: both sides are b1, there is nothing to cut"
    assert play.stage.nemesis.active == ()


def test_a_role_that_nobody_has_just_then_is_passed_over(play: Play) -> None:
    play.observer.seen = View(None, PAPER.replicas, (), PAPER.controller)
    reports = play.follow(random_step(fault="kill", target="leader"))
    assert not reports[-1].met
    assert "no node has this role now" in reports[-1].detail


def test_an_injection_that_failed_half_way_is_not_passed_over(play: Play) -> None:
    play.shell.broken = True
    reports = play.follow(random_step(fault="isolate", target="leader"))
    assert [(report.met, report.detail) for report in reports] == [(False, "b1: network script failed: broken")]
    assert [active.name for active in play.stage.nemesis.active] == ["isolate-1"]
    with pytest.raises(ClusterError):
        play.stage.nemesis.heal_all()
    play.shell.broken = False
    play.stage.nemesis.heal_all()
    assert play.stage.nemesis.active == ()


@pytest.mark.parametrize("step", [{"inject": {"fault": "pause", "target": "b1"}}, {"elect": "unclean"}])
def test_a_step_that_cannot_be_journalled_is_reported_and_does_nothing(step: dict[str, Any], play: Play) -> None:
    clock = play.stage.record.clock
    play.stage.nemesis = Nemesis(play.shell, play.observer.view, FullDisk(0), clock, Random(1))
    play.stage.elections = ElectionsByHand(lambda *_: pytest.fail("was asked for"), FullDisk(0), clock)
    [report] = play.follow(step, {"wait": "0s"})
    assert not report.met
    assert "No space left on device" in report.detail
    assert play.shell.done == []


def test_a_clash_with_a_fault_that_lasts_is_passed_over_by_a_random_step(play: Play) -> None:
    slow = {"fault": "slow", "target": "leader", "delay": "1s"}
    lasting = {"inject": {"fault": "slow", "target": "b2", "delay": "1s", "as": "late"}}
    first = play.follow(lasting)[0]
    play.observer.seen = View(PAPER.replicas[1], PAPER.replicas, PAPER.isr, PAPER.controller)
    reports = play.follow(random_step(**slow))
    assert first.met
    assert [report.met for report in reports] == [True, True, True, False]
    assert "is shaped by 'late' already" in reports[1].detail
    assert reports[-1].detail.startswith("nothing was injected: ")
