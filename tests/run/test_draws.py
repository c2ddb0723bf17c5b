"""What a timeline draws, awaits and asks for, on a cluster that exists on paper: the same seed, the same schedule."""

import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, TopicPartition
from pydantic import TypeAdapter

from harness.cluster.elections import ElectionsByHand, refusal
from harness.core.errors import ClusterError
from harness.core.faults import in_doubt
from harness.core.topology import Node, View
from harness.history.journal import Journal, journal_path, read_journal
from harness.history.schema import FAULTS
from harness.run.display import PlainDisplay
from harness.run.new_run import new_run
from harness.run.timeline import Stage, follow, met, schedules_of
from harness.scenario.model import Scenario
from harness.scenario.steps import Condition, Step
from nemesis.nemesis import Nemesis
from nemesis.schedule import generator
from tests.nemesis.conftest import TOPOLOGY, VIEW, FakeShell


def test_an_isr_of_a_role_that_nobody_has_is_not_there_yet() -> None:
    condition = Condition.model_validate({"isr": ["leader"]})
    assert not met(condition, View(None, TOPOLOGY.brokers, (), None), 0, TOPOLOGY.brokers[0], lambda _: None)


P1, P2, P3 = TOPOLOGY.brokers
LEADERLESS = View(leader=None, replicas=(P1, P2, P3), isr=(), controller=None)


@dataclass
class Played:
    """A stage on which only the cluster is of paper; ``views`` come one after the other, the last for ever."""

    stage: Stage
    shell: FakeShell
    journal: Path
    elections: list[tuple[str, int]] = field(default_factory=list)

    @property
    def steps(self) -> list[tuple[str, bool]]:
        return [(report.step, report.met) for report in self.stage.record.file.timeline]

    @property
    def faults(self) -> list[dict[str, Any]]:
        """The last row of each fault."""
        rows, _ = read_journal(self.journal, FAULTS)
        return list({row["fault"]: row for row in rows.to_pylist()}.values())

    @property
    def hit(self) -> list[list[str]]:
        return [row["nodes"] for row in self.faults]


Play = Callable[..., Played]


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Play]:
    """Plays a timeline, written as in a scenario."""
    numbers = iter(range(100))
    opened = []

    def play_it(
        steps: Sequence[dict[str, Any]],
        views: Sequence[View] = (VIEW,),
        seed: int = 7,
        refuses: str | None = None,
        afterwards: float = 0.0,
    ) -> Played:
        record = new_run(Scenario(name=f"a/story-{next(numbers)}"), seed, tmp_path)
        journal = Journal(journal_path(record.journals, "faults", "nemesis"), FAULTS)
        opened.append((record, journal))
        coming = chain(views, repeat(views[-1]))
        observer: Any = SimpleNamespace(view=lambda: next(coming), sights=lambda *_: [])
        counts = SimpleNamespace(sent=0, acknowledged=0, failed=0)
        workload: Any = SimpleNamespace(counts=lambda: counts, deaths=list)
        shell = FakeShell()
        nemesis = Nemesis(shell, observer.view, journal, record.clock, generator(seed, "nemesis"))
        asked: list[tuple[str, int]] = []

        def elect(topic: str, partition: int) -> str | None:
            asked.append((topic, partition))
            if refuses == "broken":
                raise ClusterError("nobody answers")
            return refuses

        elections = ElectionsByHand(elect, journal, record.clock)
        display = PlainDisplay(io.StringIO())
        stage = Stage(record, shell.topology, observer, nemesis, workload, display, elections, afterwards=afterwards)
        follow(TypeAdapter(list[Step]).validate_python(list(steps)), stage)
        return Played(stage, shell, journal.path, asked)

    yield play_it
    for record, journal in opened:
        journal.close()
        record.release()


KILL_ONE = {"inject": {"fault": "kill", "target": "one-of brokers", "as": "dead"}}
ISOLATE_ONE = {"inject": {"fault": "isolate", "target": "one-of followers", "as": "alone"}}
DRAWN = {"random": {"faults": [{"fault": "pause", "target": "one-of brokers"}], "every": "4ms", "for": "12ms"}}


def test_the_same_seed_gives_the_same_schedule_however_often_a_condition_was_looked_at(play: Play) -> None:
    until = {"until": {"leader": "one-of brokers", "within": "5s"}}
    steps = [KILL_ONE, until, ISOLATE_ONE, DRAWN]
    at_once, after_three_looks = (
        play(steps, [VIEW, VIEW, VIEW, *[LEADERLESS] * looks, *[replaced(leader) for leader in (P1, P2, P3)] * 3, VIEW])
        for looks in (0, 3)
    )
    assert [met for _, met in at_once.steps] == [met for _, met in after_three_looks.steps] == [True] * 4
    assert at_once.hit == after_three_looks.hit


def replaced(leader: Node) -> View:
    return View(leader, (P1, P2, P3), (P1, P2, P3), None)


def test_a_step_draws_the_same_whatever_an_earlier_step_drew(play: Play) -> None:
    both = play([KILL_ONE, ISOLATE_ONE]).hit
    calm = play([{"wait": "0s"}, ISOLATE_ONE]).hit
    assert both[1] == calm[0]


def test_another_seed_gives_another_schedule(play: Play) -> None:
    assert len({tuple(map(tuple, play([KILL_ONE, ISOLATE_ONE], seed=seed).hit)) for seed in range(12)}) > 3


def test_plans_are_drawn_from_the_seed_and_the_step_alone() -> None:
    random = TypeAdapter(Step).validate_python(DRAWN)
    wait = TypeAdapter(Step).validate_python({"wait": "1s"})
    assert schedules_of([wait, random], 7) == {1: schedules_of([random, random], 7)[1]}
    assert schedules_of([random, random], 7)[0] != schedules_of([random, random], 7)[1]
    assert schedules_of([random], 7) != schedules_of([random], 8)


def test_until_waits_for_a_role_that_nobody_has_for_an_instant(play: Play) -> None:
    played = play([{"until": {"isr": ["leader"], "within": "5s"}}], [LEADERLESS] * 3 + [View(P1, (P1,), (P1,), None)])
    assert played.steps == [("until ISR leader within 5 s", True)]


def test_until_looks_at_one_view_at_a_time(play: Play) -> None:
    mixed = [View(P2, (P1, P2), (P1,), None), View(P1, (P1, P2), (P2,), None)] * 20
    played = play([{"until": {"isr": ["leader"], "within": "300ms"}}], mixed)
    assert played.steps == [("until ISR leader within 0.3 s", False)]


def test_a_fault_that_clashes_once_the_leader_is_known_ends_only_the_timeline(play: Play) -> None:
    clash = [
        {"inject": {"fault": "slow", "target": "leader", "delay": "1s", "as": "late"}},
        {"inject": {"fault": "slow", "target": "b1", "delay": "2s", "as": "later"}},
        {"wait": "0s"},
    ]
    played = play(clash)
    assert [met for _, met in played.steps] == [True, False]
    assert "is shaped by 'late' already" in played.stage.record.file.timeline[-1].detail


# Elections by hand


def test_an_unclean_election_is_a_fault_that_hits_nobody_and_names_its_partition(play: Play) -> None:
    played = play([{"elect": "unclean"}])
    assert played.steps == [("elect unclean", True)]
    assert played.elections == [("trial", 0)]
    [row] = played.faults
    assert (row["fault"], row["kind"], row["nodes"], row["effective"]) == ("elect-1", "elect", [], True)
    assert row["injecting_ns"] <= row["injected_ns"] == row["healed_ns"]
    assert json.loads(row["evidence"]) == {"election": "unclean", "topic": "trial", "partition": 0, "refused": None}


@pytest.mark.parametrize(("refuses", "may_have_come"), [("no election needed", False), ("broken", True)])
def test_one_that_does_not_come_is_not_met_and_not_effective(play: Play, refuses: str, may_have_come: bool) -> None:
    played = play([{"elect": "unclean"}], refuses=refuses)
    assert played.steps == [("elect unclean", False)]
    assert [(row["effective"], in_doubt(row)) for row in played.faults] == [(False, may_have_come)]


@pytest.mark.parametrize("code", [KafkaError.REQUEST_TIMED_OUT, KafkaError.UNKNOWN])
def test_an_election_that_came_too_late_for_the_broker_may_have_come(code: int) -> None:
    asked = TopicPartition("trial", 0)
    with pytest.raises(ClusterError, match="nobody knows whether trial-0 had an election"):
        refusal({asked: KafkaError(code)}, asked)


def test_an_election_that_no_answer_is_of_is_not_known_to_have_come() -> None:
    with pytest.raises(ClusterError, match="nobody knows whether trial-0 had an election"):
        refusal({}, TopicPartition("trial", 0))
    with pytest.raises(ClusterError, match="nobody knows whether trial-0 had an election"):
        refusal({TopicPartition("trial", 1): None}, TopicPartition("trial", 0))


def test_the_brokers_word_tells_why_there_was_no_election() -> None:
    error, asked = KafkaError(KafkaError.ELECTION_NOT_NEEDED), TopicPartition("trial", 0)
    assert refusal({asked: None}, asked) is None
    assert refusal({asked: error}, asked) == f"no election of trial-0: {error.str()}"


#: Seconds that the heal of a fault takes at most which holds no packets.
HEAL = 10


def test_an_injection_lasts_at_most_the_rest_of_the_timeline_and_all_heals(
    play: Play,
) -> None:
    until = {"until": {"leader": "b1", "within": "5s"}}
    played = play([KILL_ONE, {"wait": "20ms"}, ISOLATE_ONE, until, {"heal": "all"}], [VIEW])
    assert played.shell.to_last == pytest.approx([5.02 + 2 * HEAL, 5.0 + 2 * HEAL])


def test_packets_that_are_held_have_the_time_to_leave_when_they_are_healed(play: Play) -> None:
    """Round trips are timed first, for the delay and five seconds; then all leaves within the delay and a second."""
    slow = {"inject": {"fault": "slow", "target": "b2", "delay": "3s", "as": "late"}}
    thin = {"inject": {"fault": "throttle", "target": "b3", "rate": "10kbit", "as": "thin"}}
    healed = (HEAL + 8 + 4) + (HEAL + 60)
    assert play([slow, thin, {"wait": "20ms"}], [VIEW]).shell.to_last == pytest.approx([0.02 + healed] * 2)


def test_a_fault_that_stays_is_not_undone_before_the_run_is_over(play: Play) -> None:
    assert play([KILL_ONE, {"wait": "20ms"}], [VIEW], afterwards=400.0).shell.to_last == pytest.approx([400.02 + HEAL])
