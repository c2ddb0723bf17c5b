"""A suite as it goes: recorders side by side, one warm judge, and suite.json after each change."""

import traceback
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import Empty, Queue
from typing import Protocol

from harness.core.errors import HistoryError, KafkaTrialError, line_of
from harness.core.verdict import Verdict
from harness.core.waiting import wait_for
from harness.history.lock import is_recorded
from harness.history.paths import checking
from harness.history.run_file import RUN_FILE, RunFile, State
from harness.report.sentences import with_sentences
from harness.run.judging import judging, publish
from harness.suite.recorder import ENDS, Event, Order
from harness.suite.results import OVER, Outcome, Result, SuiteFile, relative

#: Judges the run in a directory; what it finds beside the verdict goes to the folder.
Judge = Callable[[Path, Path], Verdict]

_NOT_BEGUN = frozenset({Outcome.WAITING, Outcome.NOT_STARTED})

LOGS = "logs"
#: How often one run is tried to be judged: a suite that goes on must come to its end.
_JUDGED_AT_MOST = 2
_TICK_SECONDS = 1.0
#: A recorder whose suite was killed heals, removes its cluster and ends.
_ORPHAN_SECONDS = 180.0


class Recording(Protocol):
    """A run that is being recorded, or stands by (harness.suite.following: Recorder)."""

    def begin(self) -> None:
        """Let the cluster come up."""

    def go(self) -> None:
        """Let the timeline begin."""

    def break_off(self) -> None:
        """Interrupt it."""

    def wait(self) -> None:
        """Wait until it is over."""


class SuiteDisplay(Protocol):
    """Shows how a suite goes on."""

    def runs(self, file: SuiteFile, doing: Mapping[int, str]) -> None:
        """How all stands. ``doing``: by their numbers, what those runs do that are under way."""

    def ended(self, number: int, run: Result) -> None:
        """A run came to its end."""


@dataclass(frozen=True)
class Actions:
    """What a suite acts with. ``start`` takes an order, the recorder's log, and a callback for its events; ``judge``
    makes the judge, once; ``abandon`` ends what it waits for, in vain perhaps; ``clean`` removes what a run left on the
    machine; ``now`` is in seconds."""

    start: Callable[[Order, Path, Callable[[Event], None]], Recording]
    judge: Callable[[], Judge]
    abandon: Callable[[], None]
    clean: Callable[[RunFile], None]
    now: Callable[[], float]


@dataclass
class SuiteRun:
    """``file`` as it is run from ``directory``, with ``jobs`` timelines at once; runs are kept in ``store``."""

    file: SuiteFile
    directory: Path
    store: Path
    jobs: int
    actions: Actions
    display: SuiteDisplay
    _pool: ThreadPoolExecutor = field(init=False)
    _events: "Queue[tuple[int, Event | Future[Verdict]]]" = field(default_factory=Queue)
    _recorders: dict[int, Recording] = field(default_factory=dict)
    _standing_by: dict[int, Recording] = field(default_factory=dict)
    _looking: set[int] = field(default_factory=set)
    _measured: set[int] = field(default_factory=set)
    _gone_on: set[int] = field(default_factory=set)
    _ending: set[int] = field(default_factory=set)
    _ready: list[int] = field(default_factory=list)
    _recorded: "deque[int]" = field(default_factory=deque)
    _judging: int | None = None
    _doing: dict[int, str] = field(default_factory=dict)
    _judge: Future[Judge] | None = None

    def run(self) -> None:
        """Run all that waits. Interrupted, it breaks off what is under way, waits for it, and lets the rest wait for
        ``--resume``."""
        began, spent = self.actions.now(), self.file.spent
        (self.directory / LOGS).mkdir(exist_ok=True)
        for number, run in enumerate(self.file.runs):
            if run.outcome is Outcome.RECORDED:
                # Of the time between, a night perhaps, nothing was spent on it.
                run.began = began
                self._recorded.append(number)
        with ThreadPoolExecutor(1, "judge") as self._pool:
            try:
                while True:
                    self.file.spent = spent + self.actions.now() - began
                    self._start_what_may()
                    self._have_next_stand_by()
                    self._judge_next()
                    self._let_go()
                    if not self._recorders and self._judging is None and Outcome.WAITING not in self.file.counts():
                        break
                    self._next_event()
                self.file.ended = self.actions.now()
            finally:
                self._break_off()
                self.file.spent = spent + self.actions.now() - began
                self.file.write(self.directory)

    def _start_what_may(self) -> None:
        for number, run in enumerate(self.file.runs):
            if len(self._measured) >= self.jobs:
                return
            if run.outcome is not Outcome.WAITING:
                continue
            if self._beyond_budget(run):
                self._dismiss(number)
                self._end(number, Outcome.NOT_STARTED, f"about {run.expected_seconds:.0f} s: beyond the time budget")
                continue
            if not self._may_look(number):
                continue
            run.outcome, run.began = Outcome.RUNNING, self.actions.now()
            run.earlier = [relative(found, self.store) for found in _directories(self.store, run)]
            self._changed()
            self._measured.add(number)
            standing = self._standing_by.pop(number, None)
            self._recorders[number] = self._recorder(number, run) if standing is None else standing
            self._recorders[number].begin()

    def _have_next_stand_by(self) -> None:
        """While a cluster comes up, the recorder of the next run looks at all that it needs. In a timeline it idles."""
        if self._standing_by or self._gone_on or not self._measured:
            return
        for number, run in enumerate(self.file.runs):
            if run.outcome is Outcome.WAITING and not self._beyond_budget(run) and self._may_look(number):
                self._looking.add(number)
                self._standing_by[number] = self._recorder(number, run)
                return

    def _may_look(self, number: int) -> bool:
        """Whether what the cluster of a run has to itself is free: another's is there until its recorder ends, and a
        recorder that looks takes what is there for a stranger's."""
        others = (self._recorders.keys() | self._looking) - {number}
        held = {one for other in others for one in self.file.runs[other].alone}
        return held.isdisjoint(self.file.runs[number].alone)

    def _recorder(self, number: int, run: Result) -> Recording:
        order = Order(
            written=run.written,
            text=self.file.texts.get(run.written),
            overrides=run.overrides,
            digest=run.digest,
            store=self.store,
            seed=run.seed,
        )
        return self.actions.start(order, self.directory / LOGS / f"{number + 1}.log", self._hears(number))

    def _dismiss(self, number: int) -> None:
        """End a recorder that stands by."""
        self._looking.discard(number)
        if recorder := self._standing_by.pop(number, None):
            recorder.break_off()
            recorder.wait()

    def _beyond_budget(self, run: Result) -> bool:
        budget = self.file.time_budget
        return budget is not None and self.file.spent + run.expected_seconds > budget

    def _hears(self, number: int) -> Callable[[Event], None]:
        return lambda event: self._events.put((number, event))

    def _make_judge(self) -> Future[Judge]:
        """The one judge of all runs: it is made once, in the thread that judges."""
        if self._judge is None:
            self._judge = self._pool.submit(self.actions.judge)
        return self._judge

    def _judge_next(self) -> None:
        if self._judging is not None or not self._recorded:
            return
        number = self._recorded.popleft()
        self._judging, self._doing[number] = number, "judged"
        directory = self.store / (self.file.runs[number].directory or "")
        judge = self._make_judge()
        done = self._pool.submit(self._judged, judge, directory)
        done.add_done_callback(lambda done: self._events.put((number, done)))

    def _judged(self, judge: Future[Judge], directory: Path) -> Verdict:
        with judging(directory) as results:
            verdict = with_sentences(judge.result()(directory, results))
            publish(directory, results, verdict, RunFile.read(directory))
        return verdict

    def _let_go(self) -> None:
        """A timeline begins while no other run is read to its end, sealed, judged or made ready: that takes the cores
        of a small machine."""
        if self._judging is None and not self._ending and not self._recorded and not self._looking:
            while self._ready:
                number = self._ready.pop(0)
                self._gone_on.add(number)
                self._recorders[number].go()

    def _next_event(self) -> None:
        try:
            number, event = self._events.get(timeout=_TICK_SECONDS)
        except Empty:
            self.display.runs(self.file, self._doing)
            return
        if isinstance(event, Future):
            self._take_verdict(number, event)
        else:
            self._take(number, event)
        self.display.runs(self.file, self._doing)

    def _take(self, number: int, event: Event) -> None:
        run = self.file.runs[number]
        if event.kind in {"phase", "step", "status"}:
            self._doing[number] = event.text
        if event.kind == "phase" and event.text == run.measured_until:
            self._make_judge()
            self._measured.discard(number)
            self._gone_on.discard(number)
            self._ending.add(number)
        if event.kind == "stands by":
            self._looking.discard(number)
        if event.kind == "ready":
            self._ready.append(number)
        if event.kind not in ENDS:
            return
        if number not in self._recorders and number not in self._standing_by:
            return  # It was dismissed.
        begun = number in self._recorders
        (self._recorders if begun else self._standing_by).pop(number).wait()
        self._looking.discard(number)
        self._gone_on.discard(number)
        self._measured.discard(number)
        self._ending.discard(number)
        if number in self._ready:
            self._ready.remove(number)
        if event.kind == "recorded":
            run.outcome, run.directory = Outcome.RECORDED, relative(Path(event.text), self.store)
            self._changed()
            self._recorded.append(number)
            return
        found = self._find(run) if begun else None
        if found is not None:
            self._clean(found)
        run.needed = event.needed
        run.refused += event.kind == "cannot run"
        self._end(number, Outcome.CANNOT_RUN if event.kind == "cannot run" else Outcome.CRASHED, event.text)

    def _find(self, run: Result) -> Path | None:
        """Note the directory of a run that was begun, and return it."""
        found = run_directory(self.store, run)
        run.directory = None if found is None else relative(found, self.store)
        return found

    def _clean(self, directory: Path) -> None:
        """Remove what a run left that did not end well; its own process has, unless it was killed."""
        try:
            self.actions.clean(RunFile.read(directory))
        except KafkaTrialError as exc:
            with (self.directory / LOGS / "cleanup.log").open("a", encoding="utf-8") as log:
                log.write(f"{directory}: {exc}\n")

    def _take_verdict(self, number: int, done: "Future[Verdict]") -> None:
        self._judging = None
        run = self.file.runs[number]
        error = done.exception()
        if error is None:
            run.judged(done.result())
            run.timeline_seconds = RunFile.read(self.store / (run.directory or "")).timeline_lasted
            self._end(number, run.outcome, run.why)
            return
        if self._judge is not None and self._judge.done() and self._judge.exception() is not None:
            # Nothing is judged here: what is recorded waits for who goes on.
            raise error
        log = self.directory / LOGS / f"{number + 1}.judge.log"
        with log.open("w", encoding="utf-8") as file:
            traceback.print_exception(error, file=file)
        why = line_of(error) or f"defect: {type(error).__name__}: {error}; see {log}"
        run.unjudged += 1
        if run.unjudged < _JUDGED_AT_MOST:
            # What is recorded stays so: who goes on judges it.
            self._end(number, Outcome.RECORDED, f"not judged, --resume tries again: {why}")
        else:
            directory = self.store / (run.directory or "")
            whole = f"the recording is whole, {checking(directory)} judges it"
            self._end(number, Outcome.CRASHED, f"its judge failed {run.unjudged} times, the last time: {why}; {whole}")

    def _end(self, number: int, outcome: Outcome, why: str) -> None:
        run = self.file.runs[number]
        run.outcome, run.why = outcome, why
        run.seconds = None if run.began is None else self.actions.now() - run.began
        self._doing.pop(number, None)
        self._changed()
        self.display.ended(number, run)

    def _break_off(self) -> None:
        """End what is under way: what is recorded may be run again, what is judged is recorded and is judged again."""
        for recorder in (*self._recorders.values(), *self._standing_by.values()):
            recorder.break_off()
        for number in list(self._standing_by):
            self._dismiss(number)
        if self._judging is not None or (self._judge is not None and not self._judge.done()):
            self.actions.abandon()
        for number, recorder in self._recorders.items():
            recorder.wait()
            run = self.file.runs[number]
            found = self._find(run)
            run.outcome, run.why = Outcome.INTERRUPTED, "the suite was broken off"
            run.seconds = None if run.began is None else self.actions.now() - run.began
            if found is not None:
                self._clean(found)

    def _changed(self) -> None:
        self.file.write(self.directory)


def run_directory(store: Path, run: Result) -> Path | None:
    """The directory of a run that was begun: its scenario and seed name it. None where there is none.

    What was there before is another's: two suites of one seed draw the same for their runs.
    """
    others = {*run.abandoned, *run.earlier}
    begun = [found for found in _directories(store, run) if relative(found, store) not in others]
    return begun[-1] if begun else None


def _directories(store: Path, run: Result) -> list[Path]:
    """Every run of its scenario and seed in the store, the newest last."""
    return sorted(path.parent for path in (store / run.scenario).glob(f"*-{run.seed}/{RUN_FILE}"))


def _is_over(directory: Path) -> bool:
    return not is_recorded(directory)


def _unsaid(_line: str) -> None:
    """(For who asks for none of the lines.)"""


def resume(
    file: SuiteFile,
    store: Path,
    clean: Callable[[RunFile], None],
    budget: float | None = None,
    say: Callable[[str], None] = _unsaid,
) -> None:
    """Make a suite that was broken off ready to go on: what is recorded whole is going to be judged, what is not is run
    again, its directory kept, and so is what could not run; what the time budget left out is run.

    ``budget``: the seconds that may be spent from now on; by default what is left of a budget that is not spent yet.
    ``say`` gets a line about each run that says nothing of itself any more, and is run again, too.
    Raises ClusterError where a run of before does not end.
    """
    if budget is not None:
        file.time_budget = file.spent + budget
    elif file.ended is not None:
        file.time_budget = None
    file.ended = None
    for run in file.runs:
        if run.outcome in OVER:
            continue
        # (What could not run may have been begun, and is noted then.)
        if run.outcome is Outcome.CANNOT_RUN:
            # (Of before that was counted, it was at least once.)
            run.refused = max(1, run.refused)
        begun = run.outcome not in _NOT_BEGUN and (run.outcome is not Outcome.CANNOT_RUN or run.directory is not None)
        directory = run_directory(store, run) if begun else None
        run.why, run.needed = "", False
        run.began, run.seconds = None, None
        if directory is None:
            run.outcome = Outcome.WAITING
            continue
        wait_for(partial(_is_over, directory), f"the end of the run in {directory}", _ORPHAN_SECONDS)
        try:
            begun_as = RunFile.read(directory)
        except HistoryError as exc:
            # (Torn, where its machine or its disk died.)
            say(f"{exc}: run again; `kafka-trial cleanup` removes what it may have left on this machine")
        else:
            if begun_as.state in {State.RECORDED, State.JUDGED}:
                run.outcome, run.directory = Outcome.RECORDED, relative(directory, store)
                continue
            clean(begun_as)
        run.abandoned.append(relative(directory, store))
        run.outcome, run.directory = Outcome.WAITING, None
    # What is run again is worse no more, or found so again.
    over = {run.name for run in file.runs if run.outcome in OVER}
    file.worse = {name: lines for name, lines in file.worse.items() if name in over}
