"""The end of a run when a step fails: the failure is reported and the run continues, so that it can be judged."""

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from checkers.preconditions import followed, healed
from harness.cluster.observer import Observer, Sight
from harness.history.journal import Journal, journal_path, read_journal
from harness.history.run_file import Process, RunFile, StepReport
from harness.history.schema import FAULTS
from harness.run.display import PlainDisplay
from harness.run.lifecycle import kept
from harness.run.new_run import new_run
from harness.run.recovery import down_for, recover, report_observation
from harness.run.timeline import Stage
from harness.scenario.model import FinalRead, Scenario
from nemesis.faults.partition import Isolate
from nemesis.faults.process import Kill, Pause
from nemesis.nemesis import Nemesis
from tests.nemesis.conftest import B1, TOPOLOGY, VIEW, FakeShell, FullDisk
from workloads.processes import Counts, Workers

SCENARIO = Scenario(name="story", topic={"replication": 3})


def written(more: Mapping[str, Any]) -> Scenario:
    """The same, with more written in it."""
    return Scenario.model_validate({"name": "story", "topic": {"replication": 3}, **more})


@dataclass
class FakeObserver:
    """Every broker is in the ISR from the ``whole_after``-th look on."""

    whole_after: int = 0
    looks: int = 0
    defects: list[tuple[str, Exception]] = field(default_factory=list)

    def view(self) -> Any:
        return VIEW

    def partitions(self) -> dict[tuple[str, int], Sight]:
        self.looks += 1
        isr = (1, 2, 3) if self.looks > self.whole_after else (1,)
        return {("trial", 0): Sight("b1", 0, "trial", 0, 1, 0, (1, 2, 3), isr)}

    def sights(self, topic: str, partition: int) -> list[Sight]:
        return []


@dataclass
class FakeWorkload:
    """Its writes are acknowledged. ``dead``: a worker has died."""

    dead: bool = False
    finished: bool = False

    def counts(self) -> Counts:
        return Counts(1, 1, 0, 0, 0, None)

    def acknowledged_since(self, at_ns: int) -> bool:
        return True

    def deaths(self) -> list[str]:
        return ["producer 1 died"] if self.dead else []

    @property
    def unfinished(self) -> list[str]:
        return []

    @property
    def died_members(self) -> list[Process]:
        return []

    def finish(self, within: float) -> list[str]:
        self.finished = True
        return self.deaths()


@pytest.fixture
def shell() -> FakeShell:
    return FakeShell()


@pytest.fixture
def stage(tmp_path: Path, shell: FakeShell) -> Iterator[Stage]:
    record = new_run(SCENARIO, 1, tmp_path)
    with Journal(journal_path(record.journals, "faults", "nemesis"), FAULTS) as journal:
        nemesis = Nemesis(shell, lambda: VIEW, journal, record.clock, Random(1))
        yield Stage(
            record,
            TOPOLOGY,
            cast(Observer, FakeObserver()),
            nemesis,
            cast(Workers, FakeWorkload()),
            PlainDisplay(io.StringIO()),
            Random(1),
        )
    record.release()


def missed(stage: Stage) -> list[StepReport]:
    return [step for step in stage.record.file.timeline if not step.met]


def test_all_is_healed_and_the_workload_is_finished(stage: Stage) -> None:
    stage.nemesis.inject(Pause(target="b1"), "asleep")
    recover(stage, SCENARIO)
    assert stage.nemesis.active == ()
    assert missed(stage) == []
    assert cast(Any, stage.workload).finished
    assert followed(stage.record.file).met


def test_run_json_has_the_nodes_of_a_pin_that_may_stay_down(stage: Stage) -> None:
    scenario = SCENARIO.model_copy(update={"final_read": FinalRead(down=["old_leader"])})
    stage.record.file.scenario = scenario.model_dump(by_alias=True, mode="json")
    stage.nemesis.inject(Kill(target=("b1", "b2")), "dead", pin={"old_leader": "leader"})
    recover(stage, scenario)
    file = RunFile.read(stage.record.directory)
    assert (file.down, file.lasting) == ({"old_leader": ["b1"]}, {"dead": ["b1"]})
    rows = read_journal(journal_path(stage.record.journals, "faults", "nemesis"), FAULTS)[0].to_pylist()
    assert healed(rows[-1:], file).met
    assert not healed(rows[-1:], file.model_copy(update={"lasting": {"dead": ["b1", "b2"]}})).met


def test_nodes_that_stay_down_on_purpose_do_so_until_all_is_read_back() -> None:
    """For longer than machines wait by themselves, where three followers are read as well."""
    down = {"final_read": {"down": ["dead"]}}
    assert down_for(SCENARIO) == 0.0
    assert down_for(written(down)) == 3 * 30 + 60 + 120
    replicas = written({"final_read": {"down": ["dead"], "replicas": True}})
    assert down_for(replicas) == down_for(written(down)) + 3 * 120
    transactions = written({**down, "workload": {"kind": "transactions"}})
    settling = transactions.workload.settles_within
    assert settling
    assert down_for(transactions) == down_for(written(down)) + settling


def test_a_failed_heal_is_reported_and_the_run_continues_to_its_end(stage: Stage, shell: FakeShell) -> None:
    stage.nemesis.inject(Isolate(target="b2"), "cut")
    stage.nemesis.inject(Pause(target="b1"), "asleep")
    shell.broken = True
    recover(stage, SCENARIO)
    assert [active.name for active in stage.nemesis.active] == ["cut"]
    assert [(step.step, step.detail) for step in missed(stage)] == [
        ("heal all", "not healed: b2: network script failed: broken")
    ]
    assert cast(Any, stage.workload).finished
    assert not followed(stage.record.file).met, "so the run is unknown"


def test_a_disk_that_is_full_at_the_final_heal_is_reported_and_the_run_continues(
    stage: Stage, shell: FakeShell
) -> None:
    stage.nemesis = Nemesis(shell, lambda: VIEW, FullDisk(4), stage.record.clock, Random(1))
    stage.nemesis.inject(Isolate(target="b2"), "cut")
    stage.nemesis.inject(Pause(target="b1"), "asleep")
    recover(stage, SCENARIO)
    assert stage.nemesis.active == ()
    assert shell.left == {}
    [step] = missed(stage)
    assert step.step == "heal all"
    assert "No space left on device" in step.detail
    assert cast(Any, stage.workload).finished
    assert not followed(stage.record.file).met, "so the run is unknown"


def test_an_injection_that_is_to_stay_and_never_was_is_reported(stage: Stage, shell: FakeShell) -> None:
    stage.nemesis.inject(Kill(target="b1"), "dead")
    recover(stage, SCENARIO.model_copy(update={"final_read": FinalRead(down=["never"])}))
    assert stage.nemesis.active == ()
    assert [step.step for step in missed(stage)] == ["heal all"]
    assert cast(Any, stage.workload).finished


def test_a_worker_that_died_keeps_nothing_from_being_awaited_and_makes_the_run_partial(stage: Stage) -> None:
    cast(Any, stage.workload).dead = True
    cast(Any, stage.observer).whole_after = 2
    recover(stage, SCENARIO)
    assert missed(stage) == []
    assert stage.record.file.partial
    assert stage.record.file.notes == ["producer 1 died"]


def test_an_observer_that_watched_to_the_end_is_not_reported(stage: Stage) -> None:
    report_observation(stage)
    assert stage.record.file.timeline == []
    assert not (stage.record.directory / "logs" / "observer.log").exists()


def test_an_observer_that_ended_early_is_reported_with_its_traceback(stage: Stage) -> None:
    try:
        raise ValueError("an answer that nobody expects")
    except ValueError as exc:
        cast(Any, stage.observer).defects.append((f"asking {B1.name}", exc))
    report_observation(stage)
    [step] = missed(stage)
    assert step.detail == "asking b1 ended: ValueError: an answer that nobody expects"
    assert not followed(stage.record.file).met, "so the run is unknown"
    assert "Traceback" in (stage.record.directory / "logs" / "observer.log").read_text()


def test_a_kept_cluster_lists_its_nodes_their_addresses_and_how_to_remove_it() -> None:
    cluster: Any = SimpleNamespace(
        run="a/story/20260102T030405.678Z-7",
        topology=TOPOLOGY,
        removed_by="kafka-trial cleanup a/story/20260102T030405.678Z-7",
        why_dead=lambda node: "b1 exited with 137" if node == B1 else None,
    )
    assert kept(cluster) == (
        "kept: b2, b3, c1 up; bootstrap.servers=10.0.0.1:9092,10.0.0.2:9092,10.0.0.3:9092; "
        "`kafka-trial cleanup a/story/20260102T030405.678Z-7` removes it all"
    )
