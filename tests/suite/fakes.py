"""Recorders that record nothing and a judge that looks at nothing, with the outcome of each run set beforehand."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from zlib import crc32

from harness.core.errors import ClusterError
from harness.core.verdict import Verdict
from harness.history.run_file import PhaseReport, RunFile, State
from harness.suite.plan import SuiteCase
from harness.suite.recorder import Event, Order
from harness.suite.results import Result, SuiteFile
from harness.suite.suite import Actions, SuiteDisplay, SuiteRun
from tests.checkers.notation import by_hand, write
from tests.report.verdicts import verdict


def case(
    name: str, repeat: int = 1, seconds: float = 60.0, seed: int | None = None, alone: Sequence[str] = ()
) -> SuiteCase:
    drawn = crc32(f"{name} {repeat}".encode()) if seed is None else seed
    return SuiteCase(name, name, (), repeat, drawn, name, "d", seconds, tuple(alone))


def suite_file(*cases: SuiteCase, **changes: object) -> SuiteFile:
    return SuiteFile(**{"suite": "some", "began": 0.0, "runs": [Result.of(one) for one in cases], **changes})  # type: ignore[arg-type]


def record(store: Path, scenario: str, seed: int, state: State = State.RECORDED, moment: str = "20260101") -> Path:
    """A run as a recorder leaves it."""
    directory = store / scenario / f"{moment}-{seed}"
    file = write(
        directory, [by_hand("send a ok @0", "final a @0", "end 0..1")], scenario_name=scenario, seed=seed, state=state
    )
    file.run = f"{scenario}/{moment}-{seed}"
    file.write(directory)
    return directory


@dataclass
class FakeRecorder:
    """``ends``: the event that it ends with. It waits for ``go`` where the cluster comes up at all."""

    order: Order
    on_event: Callable[[Event], None]
    ends: Event
    world: "World"
    gone_on: bool = False

    @property
    def scenario(self) -> str:
        """A file's scenario has its name."""
        written = Path(self.order.written)
        return written.stem if written.is_absolute() else self.order.written

    def look(self) -> None:
        self.world.log.append(f"look at {self.order.written}")
        if self.ends.text == "not seen at all":
            self.on_event(self.ends)
        elif self.scenario in self.world.same_machines and self.world.up & self.world.same_machines:
            self.on_event(Event(kind="cannot run", text="a node of another run is there"))
        elif self.scenario not in self.world.look_long:
            self.on_event(Event(kind="stands by", background=self.world.background))

    def begin(self) -> None:
        self.world.log.append(f"up {self.order.written}")
        self.world.up.add(self.scenario)
        if self.scenario in self.world.look_long:
            self.on_event(Event(kind="stands by"))
        self.on_event(Event(kind="phase", text="cluster up"))
        if self.ends.text == "not seen at all":
            return
        if self.ends.kind == "cannot run" or self.ends.text == "does not come up":
            self.on_event(self.ends)
        else:
            self.on_event(Event(kind="ready"))

    def go(self) -> None:
        self.world.log.append(f"go {self.order.written}")
        self.gone_on = True
        if self.ends.text.startswith("hangs"):
            if self.ends.text.endswith("leaves its cluster"):
                record(self.order.store, self.scenario, self.order.seed, State.RUNNING, self.world.moment)
            if self.world.interrupts:
                raise KeyboardInterrupt
            if self.ends.text.endswith("in its heal"):
                self.on_event(Event(kind="phase", text="heal"))
            return
        self.on_event(Event(kind="status", text="1 of 1 acknowledged"))
        self.on_event(Event(kind="phase", text="heal"))
        self.on_event(Event(kind="phase", text="drain"))
        self.on_event(Event(kind="phase", text="final read"))
        self.on_event(Event(kind="phase", text="seal"))
        if self.ends.kind == "recorded" or self.ends.text == "killed":
            state = State.RECORDED if self.ends.kind == "recorded" else State.RUNNING
            directory = record(self.order.store, self.scenario, self.order.seed, state, self.world.moment)
            for moment in self.world.beside:
                record(self.order.store, self.scenario, self.order.seed, State.RUNNING, moment)
            file = RunFile.read(directory)
            file.phases = [PhaseReport(phase="timeline", at_ns=0), PhaseReport(phase="heal", at_ns=10 * 10**9)]
            file.write(directory)
            if self.ends.kind == "recorded":
                self.on_event(Event(kind="recorded", text=str(directory)))
                return
        self.on_event(self.ends)

    def break_off(self) -> None:
        self.world.log.append(f"broken off {self.order.written}")

    def wait(self) -> None:
        self.world.log.append(f"over {self.order.written}")
        if self.world.interrupted_waits:
            self.world.interrupted_waits -= 1
            raise KeyboardInterrupt
        self.world.up.discard(self.scenario)


@dataclass
class World:
    """``ends``: by scenario, the events that its runs end with, one after the other, the last again and again.
    ``same_machines``: scenarios whose recorders find a node there while a cluster of another of them is up;
    ``interrupted_waits``: how often Ctrl-C comes while the suite waits for the end of a recorder; ``look_long``: those
    scenarios whose recorders still look when they begin; ``background``: clusters can start in it."""

    store: Path
    ends: Mapping[str, Sequence[Event]] = field(default_factory=dict)
    verdicts: Sequence[Verdict | Exception] = ()
    interrupts: bool = False
    interrupted_waits: int = 0
    hanging_judge: bool = False
    moment: str = "20260101"
    beside: Sequence[str] = ()
    log: list[str] = field(default_factory=list)
    cleaned: list[str] = field(default_factory=list)
    same_machines: frozenset[str] = frozenset()
    look_long: frozenset[str] = frozenset()
    background: bool = False
    up: set[str] = field(default_factory=set)
    judges: int = 0
    seconds: float = 0.0
    abandoned: threading.Event = field(default_factory=threading.Event)

    def actions(self) -> Actions:
        left = {name: list(events) for name, events in self.ends.items()}
        verdicts = list(self.verdicts)

        def start(order: Order, log: Path, on_event: Callable[[Event], None]) -> FakeRecorder:
            mine = left.get(order.written) or [Event(kind="recorded")]
            recorder = FakeRecorder(order, on_event, mine.pop(0) if len(mine) > 1 else mine[0], self)
            recorder.look()
            return recorder

        def judge() -> Callable[[Path, Path], Verdict]:
            self.judges += 1
            self.log.append("judge made")

            def judged(directory: Path, results: Path) -> Verdict:
                self.log.append(f"judge {RunFile.read(directory).scenario_name}")
                if self.hanging_judge:
                    assert self.abandoned.wait(60)
                    raise ClusterError("abandoned")
                found = verdicts.pop(0) if verdicts else verdict()
                if isinstance(found, Exception):
                    raise found
                return found

            return judged

        def abandon() -> None:
            self.log.append("judge abandoned")
            self.abandoned.set()

        def clean(file: RunFile) -> None:
            self.cleaned.append(file.run)
            if file.run.startswith("stuck"):
                raise ClusterError("a volume stays")

        def now() -> float:
            self.seconds += 1
            return self.seconds

        return Actions(start, judge, abandon, clean, now)

    def run(self, file: SuiteFile, jobs: int = 1, display: SuiteDisplay | None = None) -> Path:
        """Run a suite; returns its directory."""
        directory = self.store / "suite-some-1"
        directory.mkdir(parents=True, exist_ok=True)
        SuiteRun(file, directory, self.store, jobs, self.actions(), display or Silent()).run()
        return directory


class Silent:
    def runs(self, file: SuiteFile, doing: Mapping[int, str]) -> None:
        return

    def ended(self, number: int, run: Result) -> None:
        return


class InterruptsTheJudge(Silent):
    """Ctrl-C as soon as a run is being judged."""

    def runs(self, file: SuiteFile, doing: Mapping[int, str]) -> None:
        if "judged" in doing.values():
            raise KeyboardInterrupt
