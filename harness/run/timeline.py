"""Follows a timeline: reports the outcome of each step, and what was seen if a condition did not come."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from harness.cluster.elections import ElectionsByHand
from harness.cluster.observer import Observer
from harness.core.clock import SECOND_NS
from harness.core.errors import ClusterError, NothingInjected, ScenarioError
from harness.core.topology import Node, Topology, View
from harness.history.run_file import StepReport
from harness.history.store import RunRecord
from harness.run.display import Display
from harness.scenario import steps
from nemesis.catalogue import kind_of
from nemesis.nemesis import Nemesis
from nemesis.schedule import Drawn, generator, random_schedule
from nemesis.targets import Expression, resolve
from workloads.processes import Workers
from workloads.workload import WorkloadStep

#: A choice: a step ends at most this much later than what it waits for. The observer asks brokers less often still.
_TICK = 0.1


@dataclass
class Stage:
    """Everything that the steps of a timeline act on.

    ``leader_before`` and ``acknowledged_before`` are of the last inject step, or of the start; ``afterwards``: the
    seconds after the timeline for which its faults may last.
    """

    record: RunRecord
    topology: Topology
    observer: Observer
    nemesis: Nemesis
    workload: Workers
    display: Display
    elections: ElectionsByHand
    leader_before: Node | None = field(default=None)
    acknowledged_before: int = 0
    afterwards: float = 0.0

    def show(self) -> None:
        """Show the present state."""
        counts, view = self.workload.counts(), self.observer.view()
        self.display.status(
            counts.sent,
            counts.acknowledged,
            counts.failed,
            view.leader.name if view.leader else None,
            tuple(node.name for node in view.isr),
            tuple(active.name for active in self.nemesis.active),
        )

    def acknowledged(self) -> int:
        """How many writes were acknowledged since the last inject step, or the start."""
        return self.workload.counts().acknowledged - self.acknowledged_before

    def tick(self) -> None:
        """Show the present state. Raises ClusterError if a worker has died."""
        self.show()
        if deaths := self.workload.deaths():
            raise ClusterError(f"a worker died in the middle of the run: {deaths[0]}")

    def until(
        self, holds: Callable[[], bool], seconds: float, awaited: str, tick: Callable[[], None] | None = None
    ) -> bool:
        """Wait until ``holds`` is true, for so many seconds at most; returns whether it is. Meanwhile call ``tick``, by
        default the stage's."""
        deadline = time.monotonic() + seconds
        while not holds():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self.display.step(awaited, left)
            (tick or self.tick)()
            time.sleep(min(_TICK, left))
        return True

    def report(self, step: str, at_ns: int, met: bool = True, detail: str = "") -> None:
        """Note the outcome of a step in run.json."""
        self.record.file.timeline.append(
            StepReport(step=step, at_ns=at_ns, ended_ns=self.record.clock.now(), met=met, detail=detail)
        )
        self.record.save()


def follow(timeline: Sequence[steps.Step], stage: Stage) -> None:
    """Do the steps one after the other. The first one that fails is reported, and ends the timeline."""
    seed = stage.record.file.seed
    schedules = schedules_of(timeline, seed)
    stage.leader_before = stage.observer.view().leader
    # (Faults are healed one after the other, at the end at the latest.)
    heals = sum(fault.heals_within for step in timeline for fault in steps.injections(step))
    for number, step in enumerate(timeline):
        at_ns = stage.record.clock.now()
        remaining = sum(later.longest for later in timeline[number:])
        stage.nemesis.within = remaining + heals + stage.afterwards
        stage.display.step(str(step), None)
        try:
            missed, done = _play(step, number, schedules.get(number, []), stage)
        except (ClusterError, ScenarioError, OSError) as exc:
            # Continue with the final read: a full disk prevents only the journalling of the fault, and some mistakes in
            # a scenario show only when the leader is known.
            missed, done = str(exc), ""
        stage.report(str(step), at_ns, met=missed is None, detail=missed or done)
        if missed is not None:
            stage.display.line(f"{step}: {missed}")
            return


def schedules_of(timeline: Sequence[steps.Step], seed: int) -> dict[int, list[Drawn]]:
    """The schedule of each random step, by the step's number. Pure: events of the run do not change it."""
    return {
        number: random_schedule(generator(seed, number, "schedule"), draw.faults, draw.every, draw.for_)
        for number, step in enumerate(timeline)
        if isinstance(step, steps.Random)
        for draw in [step.random]
    }


def _play(step: steps.Step, number: int, schedule: Sequence[Drawn], stage: Stage) -> tuple[str | None, str]:
    """Do one step. Returns what was seen instead (None if it was met), and details of what was done, if any."""
    missed: str | None = None
    done = ""
    match step:
        case steps.Wait():
            stage.until(lambda: False, step.wait, str(step))
        case steps.Until():
            missed = _await(step, number, stage)
        case steps.Inject():
            _inject(step.inject, number, stage)
        case steps.Heal(heal="all"):
            stage.nemesis.heal_all()
        case steps.Heal():
            stage.nemesis.heal(step.heal)
        case steps.Elect():
            missed = stage.elections.unclean(stage.record.file.watch_topic, stage.record.file.watch_partition)
        case WorkloadStep():
            done = step.play(stage.workload)
            stage.record.file.killed = stage.workload.killed_members
        case steps.Random():
            missed = _draw(step.random, number, schedule, stage)
    return missed, done


def _inject(injection: steps.Injection, number: int, stage: Stage) -> None:
    stage.leader_before = stage.observer.view().leader or stage.leader_before
    stage.nemesis.inject(injection, injection.name, injection.pin, generator(stage.record.file.seed, number))
    stage.acknowledged_before = stage.workload.counts().acknowledged
    stage.tick()


def _draw(draw: steps.Draw, number: int, schedule: Sequence[Drawn], stage: Stage) -> str | None:
    """Inject and heal one fault after the other. None if one was injected, else why none was."""
    started = time.monotonic()
    missed: str | None = "nothing was injected"
    for index, drawn in enumerate(schedule):
        stage.until(lambda: False, started + drawn.at - time.monotonic(), str(draw))
        try:
            name = stage.nemesis.inject(drawn.fault, random=generator(stage.record.file.seed, number, index))
        except NothingInjected as exc:
            # Random faults often leave a role without a node: go on with the next fault.
            stage.report(f"inject {kind_of(drawn.fault)}", stage.record.clock.now(), detail=f"skipped: {exc}")
            missed = missed and f"nothing was injected: {exc}"
            continue
        missed = None
        stage.until(lambda: False, drawn.hold, f"{name} holds")
        stage.nemesis.heal(name)
    stage.until(lambda: False, started + draw.for_ - time.monotonic(), str(draw))
    return missed


def _await(step: steps.Until, number: int, stage: Stage) -> str | None:
    condition = step.until

    def holds() -> bool:
        view = stage.observer.view()

        def nodes(expression: Expression) -> frozenset[Node] | None:
            # Each look makes the same random choice, so that the number of looks does not matter.
            random = generator(stage.record.file.seed, number)
            try:
                return frozenset(resolve(expression, view, stage.topology, stage.nemesis.pins, random))
            except ClusterError:
                return None

        return met(condition, view, stage.acknowledged(), stage.leader_before, nodes)

    if stage.until(holds, condition.within, str(step)):
        return None
    return f"timed out after {condition.within:g} s; last seen: {seen(stage)}"


def met(
    condition: steps.Condition,
    view: View,
    acknowledged: int,
    leader_before: Node | None,
    nodes: Callable[[Expression], frozenset[Node] | None],
) -> bool:
    """Whether the condition of an ``until`` holds now. Pure.

    ``changed``: another leader than before the last inject; ``acknowledged``: so many writes since then.
    ``nodes`` resolves an expression in the same view; None if no node has one of its roles.
    """
    if condition.acknowledged is not None:
        return acknowledged >= condition.acknowledged
    if condition.isr is not None:
        return frozenset(view.isr) == nodes(condition.isr)
    if condition.leader == "none":
        return bool(view.replicas) and view.leader is None
    if condition.leader == "changed":
        return view.leader is not None and view.leader != leader_before
    return view.leader is not None and condition.leader is not None and view.leader in (nodes(condition.leader) or ())


def seen(stage: Stage) -> str:
    """The last report of every broker on the watched partition, and how many writes were acknowledged since the last
    inject."""
    file, now = stage.record.file, stage.record.clock.now()

    def name(broker: int) -> str:
        return "nobody" if broker < 0 else file.broker(broker)

    reports = [
        f"{s.observer} says leader {name(s.leader)}, ISR {' '.join(map(name, s.isr)) or 'empty'} "
        f"({(now - s.at_ns) / SECOND_NS:.0f} s ago)"
        for s in stage.observer.sights(file.watch_topic, file.watch_partition)
    ]
    return "; ".join([*reports, f"{stage.acknowledged()} acknowledged"])
