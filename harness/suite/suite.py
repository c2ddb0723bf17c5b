"""Runs a suite: recorders side by side, one warm judge, and suite.json rewritten after each change."""

import time
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import Empty, Queue
from typing import Protocol

from harness.core.errors import HistoryError, KafkaTrialError, line_of
from harness.core.verdict import Verdict
from harness.core.waiting import wait_for
from harness.history.lock import is_recorded
from harness.history.paths import LOGS, checking
from harness.history.run_file import HEAL, RUN_FILE, RunFile, State
from harness.report.sentences import with_sentences
from harness.run.judging import judging, publish
from harness.suite.recorder import ENDS, Event, Order
from harness.suite.reports import write_reports
from harness.suite.results import OVER, Result, RunOutcome, SuiteFile, relative

#: Judges the run in a directory. The second path is the folder for all results except the verdict.
Judge = Callable[[Path, Path], Verdict]

_NOT_BEGUN = frozenset({RunOutcome.WAITING, RunOutcome.NOT_STARTED})

#: How often the judge tries one run: a suite that is continued again and again has to end.
_JUDGED_AT_MOST = 2
_TICK_SECONDS = 1.0
#: The share of the time that writing reports may take while a suite goes on.
_SHARE_OF_REPORTS = 0.05
#: The seconds in which a recorder whose suite was killed heals, removes its cluster and ends.
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
    """Shows the progress of a suite."""

    def runs(self, file: SuiteFile, doing: Mapping[int, str]) -> None:
        """Show the present state. ``doing``: what the running runs do, by their numbers."""

    def ended(self, number: int, run: Result) -> None:
        """Show the result of a run."""


@dataclass(frozen=True)
class Actions:
    """The actions of a suite. ``start`` takes an order, the recorder's log, and a callback for its events. ``judge``
    makes the judge, once. ``abandon`` ends what the judge waits for. ``clean`` removes what a run left on the machine.
    ``now`` returns seconds."""

    start: Callable[[Order, Path, Callable[[Event], None]], Recording]
    judge: Callable[[], Judge]
    abandon: Callable[[], None]
    clean: Callable[[RunFile], None]
    now: Callable[[], float]


@dataclass
class SuiteRun:
    """Runs the suite of ``file`` in ``directory``, with ``jobs`` timelines at once. Runs are stored in ``store``."""

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
    _background: set[int] = field(default_factory=set)
    _measured: set[int] = field(default_factory=set)
    _healing: set[int] = field(default_factory=set)
    _gone_on: set[int] = field(default_factory=set)
    _ending: set[int] = field(default_factory=set)
    _ready: list[int] = field(default_factory=list)
    _recorded: "deque[int]" = field(default_factory=deque)
    _judging: int | None = None
    _doing: dict[int, str] = field(default_factory=dict)
    _reports_are_due: bool = False
    _next_reports: float = 0.0
    _judge: Future[Judge] | None = None

    def run(self) -> None:
        """Run all waiting runs. If it is interrupted, it interrupts the running ones, waits for their end, and leaves
        the rest to ``--resume``."""
        began, spent = self.actions.now(), self.file.spent
        (self.directory / LOGS).mkdir(exist_ok=True)
        for number, run in enumerate(self.file.runs):
            if run.outcome is RunOutcome.RECORDED:
                # The time between two processes, perhaps a night, does not count.
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
                    if not self._recorders and self._judging is None and RunOutcome.WAITING not in self.file.counts():
                        break
                    self._next_event()
                self.file.ended = self.actions.now()
            finally:
                self._break_off()
                self.file.spent = spent + self.actions.now() - began
                self.file.write(self.directory)

    def _start_what_may(self) -> None:
        for number, run in enumerate(self.file.runs):
            if run.outcome is not RunOutcome.WAITING:
                continue
            if not self._has_room(number):
                return
            if self._beyond_budget(run):
                self._dismiss(number)
                self._end(number, RunOutcome.NOT_STARTED, f"about {run.expected_seconds:.0f} s: beyond the time budget")
                continue
            if not self._may_look(number):
                continue
            run.outcome, run.began = RunOutcome.RUNNING, self.actions.now()
            run.earlier = [relative(found, self.store) for found in _directories(self.store, run)]
            self._changed()
            self._measured.add(number)
            standing = self._standing_by.pop(number, None)
            self._recorders[number] = self._recorder(number, run) if standing is None else standing
            self._recorders[number].begin()

    def _has_room(self, number: int) -> bool:
        """Whether a run may start: not while another is measured. Beside the only other one's heal it may start in the
        background: that mostly waits for followers and leaders."""
        beside = self._healing if self.jobs == 1 and number in self._background else set[int]()
        return len(self._measured - beside) < self.jobs

    def _have_next_stand_by(self) -> None:
        """While a cluster starts, the recorder of the next run checks what it needs. During a timeline it only
        waits."""
        if self._standing_by or self._gone_on or not self._measured:
            return
        for number, run in enumerate(self.file.runs):
            if run.outcome is RunOutcome.WAITING and not self._beyond_budget(run) and self._may_look(number):
                self._looking.add(number)
                self._standing_by[number] = self._recorder(number, run)
                return

    def _may_look(self, number: int) -> bool:
        """Whether everything is free that the run's cluster shares with no other. Another run uses it until its
        recorder ends, and a recorder that checks it would take that run for a stranger's."""
        others = (self._recorders.keys() | self._looking) - {number}
        held = {name for other in others for name in self.file.runs[other].alone}
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
        """The judge of all runs. It is made once, in the thread that judges."""
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
            judged = judge.result()(directory, results)
            file = RunFile.read(directory)
            verdict = with_sentences(judged, file)
            publish(directory, results, verdict, file)
        return verdict

    def _let_go(self) -> None:
        """Start a timeline only while no other run is in its final read, sealed, judged or started: those take the
        cores of a small machine."""
        if self._judging is None and not self._ending and not self._recorded and not self._looking:
            while self._ready and len(self._gone_on) < self.jobs:
                number = self._ready.pop(0)
                self._gone_on.add(number)
                self._recorders[number].go()

    def _next_event(self) -> None:
        self._report()
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
        if event.kind == "phase" and event.text == HEAL:
            self._healing.add(number)
        if event.kind == "phase" and event.text == run.measured_until:
            self._make_judge()
            self._measured.discard(number)
            self._healing.discard(number)
            self._gone_on.discard(number)
            self._ending.add(number)
        if event.kind == "stands by":
            self._looking.discard(number)
            if event.background:
                self._background.add(number)
        if event.kind == "ready":
            self._ready.append(number)
        if event.kind not in ENDS:
            return
        if number not in self._recorders and number not in self._standing_by:
            return  # The recorder was dismissed.
        begun = number in self._recorders
        recorders = self._recorders if begun else self._standing_by
        recorders[number].wait()
        self._over(number, event, begun)
        # (Last: if this is interrupted before the run has an outcome, the run is still to be broken off.)
        del recorders[number]

    def _over(self, number: int, event: Event, begun: bool) -> None:
        """Note the outcome of a run whose recorder ended. ``begun``: it did not only stand by."""
        run = self.file.runs[number]
        self._looking.discard(number)
        self._gone_on.discard(number)
        self._measured.discard(number)
        self._healing.discard(number)
        self._ending.discard(number)
        if number in self._ready:
            self._ready.remove(number)
        if event.kind == "recorded":
            run.outcome, run.directory = RunOutcome.RECORDED, relative(Path(event.text), self.store)
            self._changed()
            self._recorded.append(number)
            return
        found = self._find(run) if begun else None
        if found is not None:
            self._clean(found)
        run.needed = event.needed
        run.refused += event.kind == "cannot run"
        self._end(number, RunOutcome.CANNOT_RUN if event.kind == "cannot run" else RunOutcome.CRASHED, event.text)

    def _find(self, run: Result) -> Path | None:
        """Note the directory of a started run, and return it."""
        found = run_directory(self.store, run)
        run.directory = None if found is None else relative(found, self.store)
        return found

    def _clean(self, directory: Path) -> None:
        """Remove what a failed run left on the machine. Its own process has done so, unless it was killed."""
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
            # No judge could be made: recorded runs wait until the suite is continued.
            raise error
        log = self.directory / LOGS / f"{number + 1}.judge.log"
        with log.open("w", encoding="utf-8") as file:
            traceback.print_exception(error, file=file)
        why = line_of(error) or f"defect: {type(error).__name__}: {error}; see {log}"
        run.unjudged += 1
        if run.unjudged < _JUDGED_AT_MOST:
            # The run stays recorded: it is judged when the suite is continued.
            self._end(number, RunOutcome.RECORDED, f"not judged, --resume tries again: {why}")
        else:
            directory = self.store / (run.directory or "")
            whole = f"the recording is whole, {checking(directory)} judges it"
            self._end(
                number, RunOutcome.CRASHED, f"its judge failed {run.unjudged} times, the last time: {why}; {whole}"
            )

    def _end(self, number: int, outcome: RunOutcome, why: str) -> None:
        run = self.file.runs[number]
        run.outcome, run.why = outcome, why
        run.seconds = None if run.began is None else self.actions.now() - run.began
        self._doing.pop(number, None)
        self._changed()
        self.display.ended(number, run)

    def _break_off(self) -> None:
        """Interrupt the running runs. A run that was being recorded may be run again; one that was being judged stays
        recorded, and is judged again."""
        for recorder in (*self._recorders.values(), *self._standing_by.values()):
            recorder.break_off()
        for number in list(self._standing_by):
            self._dismiss(number)
        if self._judging is not None or (self._judge is not None and not self._judge.done()):
            self.actions.abandon()
        for number, recorder in self._recorders.items():
            recorder.wait()
            run = self.file.runs[number]
            if run.outcome is not RunOutcome.RUNNING:
                continue
            found = self._find(run)
            run.outcome, run.why = RunOutcome.INTERRUPTED, "the suite was broken off"
            run.seconds = None if run.began is None else self.actions.now() - run.began
            if found is not None:
                self._clean(found)
        for number, run in enumerate(self.file.runs):
            if run.outcome is RunOutcome.RUNNING and number not in self._recorders:
                # (Interrupted before it had a recorder.)
                run.outcome, run.began = RunOutcome.WAITING, None

    def _changed(self) -> None:
        self.file.write(self.directory)
        self._reports_are_due = True
        self._report()

    def _report(self) -> None:
        """Write the reports, if they are due: a process that is killed cannot write them. That takes at most a share of
        the time, as a suite may have 10,000 runs."""
        began = time.monotonic()
        if not self._reports_are_due or began < self._next_reports:
            return
        with suppress(OSError):  # (They are written again at the end. What stops the suite is that suite.json is not.)
            write_reports(self.file, self.directory)
        self._reports_are_due = False
        took = time.monotonic() - began
        self._next_reports = began + took / _SHARE_OF_REPORTS


def run_directory(store: Path, run: Result) -> Path | None:
    """The directory of a started run, found by its scenario and seed; None if there is none.

    Directories that existed before belong to other runs: two suites with one seed choose the same seeds for their runs.
    """
    others = {*run.abandoned, *run.earlier}
    begun = [found for found in _directories(store, run) if relative(found, store) not in others]
    return begun[-1] if begun else None


def _directories(store: Path, run: Result) -> list[Path]:
    """Every run of its scenario and seed in the store, the newest last."""
    return sorted(path.parent for path in (store / run.scenario).glob(f"*-{run.seed}/{RUN_FILE}"))


def _is_over(directory: Path) -> bool:
    return not is_recorded(directory)


def _ignore(_line: str) -> None:
    """(The default if the caller wants no lines.)"""


def resume(
    file: SuiteFile,
    store: Path,
    clean: Callable[[RunFile], None],
    budget: float | None = None,
    say: Callable[[str], None] = _ignore,
) -> None:
    """Prepare an interrupted suite to be continued. Runs that are recorded completely will be judged. The others are
    run again (their directories stay), and so are runs that could not run, or that the time budget left out.

    ``budget``: the seconds that may be spent from now on; by default the rest of the old budget. ``say`` gets a line
    about each run whose run.json cannot be read; it is run again, too. Raises ClusterError if an earlier run does not
    end.
    """
    if budget is not None:
        file.time_budget = file.spent + budget
    elif file.ended is not None:
        file.time_budget = None
    file.ended = None
    for run in file.runs:
        if run.outcome in OVER:
            continue
        # (A run that could not run may have been started: then its directory is noted.)
        if run.outcome is RunOutcome.CANNOT_RUN:
            # (Older files do not count the tries: there was at least one.)
            run.refused = max(1, run.refused)
        begun = run.outcome not in _NOT_BEGUN and (
            run.outcome is not RunOutcome.CANNOT_RUN or run.directory is not None
        )
        directory = run_directory(store, run) if begun else None
        run.why, run.needed = "", False
        run.began, run.seconds = None, None
        if directory is None:
            run.outcome = RunOutcome.WAITING
            continue
        wait_for(partial(_is_over, directory), f"the end of the run in {directory}", _ORPHAN_SECONDS)
        try:
            begun_as = RunFile.read(directory)
        except HistoryError as exc:
            # (The file is torn if the machine or its disk died.)
            say(f"{exc}: run again; `kafka-trial cleanup` removes what it may have left on this machine")
        else:
            if begun_as.state in {State.RECORDED, State.JUDGED}:
                run.outcome, run.directory = RunOutcome.RECORDED, relative(directory, store)
                continue
            clean(begun_as)
        run.abandoned.append(relative(directory, store))
        run.outcome, run.directory = RunOutcome.WAITING, None
    # A case that is run again is compared again.
    over = {run.name for run in file.runs if run.outcome in OVER}
    file.worse = {name: lines for name, lines in file.worse.items() if name in over}
