"""suite.json: every run of a suite, how far it came, and what it ended with. It is rewritten at each change."""

import json
import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.core.errors import EnvironmentLacks, HistoryError, ScenarioError
from harness.core.verdict import Judgement, Verdict
from harness.history.lock import RecordingLock, is_recorded
from harness.history.writing import write_file
from harness.scenario.loading import named as scenarios
from harness.suite.model import UNNAMED, suites
from harness.suite.plan import DRAIN, Case, Urgency

SUITE_FILE = "suite.json"
SCHEMA = 1


class Outcome(StrEnum):
    """What became of one run of a suite. Only ``as expected`` is a success."""

    WAITING = "waiting"
    RUNNING = "running"
    RECORDED = "recorded"
    EXPECTED = "as expected"
    UNEXPECTED = "not as expected"
    UNKNOWN = "unknown"
    CANNOT_RUN = "cannot run"
    CRASHED = "crashed"
    INTERRUPTED = "interrupted"
    NOT_STARTED = "not started"


#: A run that ended: it is not run again. (What could not run is: what was missing may be there by now.)
OVER = frozenset({Outcome.EXPECTED, Outcome.UNEXPECTED, Outcome.UNKNOWN, Outcome.CRASHED})
JUDGED = frozenset({Outcome.EXPECTED, Outcome.UNEXPECTED, Outcome.UNKNOWN})


#: What the system takes for a path, from whoever wrote the file.
_Path = Annotated[str, Field(pattern=r"^[^\x00]*$")]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class Result(_Part):
    """One run: ``name`` and ``repeat`` identify it. ``directory`` is relative to the store."""

    name: str
    repeat: int
    scenario: _Path
    written: _Path = Field(description="the name or file that it is loaded from")
    overrides: list[str] = Field([], alias="set")
    digest: str
    seed: int
    expected_seconds: float
    alone: list[str] = Field(
        [], description="what its cluster has to itself: those of which another has a part are not up at once"
    )
    measured_until: str = Field(DRAIN, description="the phase from which on nothing of it is measured any more")
    outcome: Outcome = Outcome.WAITING
    why: str = Field("", description="the headline of its verdict, behind what was expected; or what kept it from one")
    needed: bool = Field(False, description="what it cannot run without is to be mended: that is never skipped")
    refused: int = Field(0, description="how often it was tried, and could not run")
    unjudged: int = Field(0, description="how often its judge failed")
    verdict: Judgement | None = None
    anomalies: dict[str, int] = {}
    directory: _Path | None = None
    began: float | None = Field(None, description="seconds since 1970")
    seconds: float | None = Field(
        None, description="from its start to its verdict; from when the suite went on where it was recorded before"
    )
    timeline_seconds: float | None = Field(None, description="of these, those of its timeline")
    abandoned: list[_Path] = Field(
        [], description="directories of attempts that were broken off before they were whole"
    )
    earlier: list[_Path] = Field(
        [], description="directories of the same scenario and seed that were there before it began: another's runs"
    )

    @classmethod
    def of(cls, case: Case) -> Self:
        """What is known of a run that waits."""
        return cls(
            name=case.name,
            repeat=case.repeat,
            scenario=case.scenario,
            written=case.written,
            overrides=list(case.overrides),
            digest=case.digest,
            seed=case.seed,
            expected_seconds=case.seconds,
            alone=list(case.alone),
            measured_until=case.measured_until,
        )

    def judged(self, verdict: Verdict) -> None:
        """Note its verdict."""
        self.verdict, self.unjudged = verdict.verdict, 0
        headline, said = verdict.reasons[0], verdict.reasons[-1].removeprefix(f"{Outcome.UNEXPECTED}: ")
        self.why = headline if verdict.expected or headline == said else f"{said}; {headline}"
        self.anomalies = {name: anomaly.count for name, anomaly in verdict.anomalies.items()}
        unmet = Outcome.UNKNOWN if verdict.verdict is Judgement.UNKNOWN else Outcome.UNEXPECTED
        self.outcome = Outcome.EXPECTED if verdict.expected else unmet


class Before(_Part):
    """Of one case, what a suite is compared with: the directories of its judged runs, relative to the store where they
    are in it, and how many others there were (harness.suite.stored: Runs)."""

    judged: list[_Path] = []
    crashed: int = 0
    removed: int = 0
    unreadable: int = 0
    cannot_run: int = 0
    noted: list[bool] = []

    @property
    def lacking(self) -> bool:
        """Whether there was one to compare with, and there is none."""
        return not self.judged and not self.crashed and bool(self.removed or self.unreadable)


class Measure(_Part):
    """What a suite is compared with when it ends: chosen when it begins, and the same when it goes on."""

    said: _Path = Field(description="the path that was named, whole")
    cases: dict[str, Before]
    gone: list[str] = Field([], description="the names of cases that its suite has, and this one has not")
    whole: bool = Field(True, description="whether all of it could be seen, of each case a run that can be read")
    compared: bool = Field(False, description="whether all that was run since is compared with it")


class SuiteFile(_Part):
    """The whole of suite.json."""

    schema_number: int = Field(SCHEMA, alias="schema")
    suite: str
    about: str = ""
    cannot_run: str = "fail"
    time_budget: float | None = None
    began: float
    ended: float | None = None
    named: list[str] = Field([], description="the arguments that it was started with")
    spent: float = Field(0.0, description="seconds that earlier, broken-off processes of this suite worked on it")
    versions: dict[str, str] = {}
    baseline: _Path | None = Field(None, description="what it was compared with")
    worse: dict[str, list[str]] = Field({}, description="by a case's name, in which ways it is worse than the baseline")
    measure: Measure | None = Field(None, description="what it is to be compared with")
    uncompared: str = Field("", description="where that was asked for, and there is nothing, why")
    texts: dict[str, str] = Field({}, description="by its path, what was in each file of a scenario when it began")
    runs: list[Result]

    def write(self, directory: Path) -> None:
        """Write ``<directory>/suite.json``."""
        write_file(directory, SUITE_FILE, self.model_dump_json(by_alias=True, indent=1) + "\n")

    @classmethod
    def read(cls, directory: Path) -> Self:
        """Raises HistoryError where there is none, or none of this version."""
        path = directory / SUITE_FILE
        try:
            return cls.model_validate(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError) as exc:
            why = exc.errors()[0]["msg"] if isinstance(exc, ValidationError) else str(exc)
            raise HistoryError(f"{path}: not a suite file of this version ({why})") from exc

    def skips(self, run: Result) -> bool:
        """Whether a run may be skipped: this machine cannot run it, and the suite takes that for no failure."""
        return run.outcome is Outcome.CANNOT_RUN and self.cannot_run == "skip" and not run.needed

    @property
    def called(self) -> tuple[str, ...]:
        """What others are called that are the same suite: its name, or the scenarios that were named instead."""
        return (self.suite, *(self.named if self.suite == UNNAMED else ()))

    def is_measure(self, name: str) -> bool:
        """Whether others may be compared with its runs of a case: not where they are worse than those before, nor
        where that was to be found out and is not yet."""
        return not self.is_to_compare and name not in self.worse

    def is_left(self, tries: int | None = None) -> bool:
        """Whether there is something to go on with, if only to compare it; what could not run is, until it was tried so
        often."""
        left = (run for run in self.runs if run.outcome not in OVER and not self.skips(run))
        refused = (run.outcome is Outcome.CANNOT_RUN and max(1, run.refused) >= (tries or math.inf) for run in left)
        return self.ended is None or self.is_to_compare or not all(refused)

    @property
    def is_to_compare(self) -> bool:
        """Whether all that was run since is not compared yet with what it was to be."""
        return self.measure is not None and not self.measure.compared

    def counts(self) -> dict[Outcome, int]:
        """How many runs came to each outcome; none that no run came to."""
        each = Counter(run.outcome for run in self.runs)
        return {outcome: each[outcome] for outcome in Outcome if outcome in each}

    @property
    def headline(self) -> str:
        """``7 of 8 runs as expected, 1 cannot run``."""
        counts = self.counts()
        others = [f"{number} {outcome}" for outcome, number in counts.items() if outcome is not Outcome.EXPECTED]
        return ", ".join([f"{counts.get(Outcome.EXPECTED, 0)} of {len(self.runs)} runs as expected", *others])

    @property
    def cost(self) -> str:
        """``4 min 2 s, of which 2 min 44 s were timelines: 13.0 s more for each run``."""
        timelines = [run.timeline_seconds for run in self.runs if run.timeline_seconds is not None]
        besides = self.spent - sum(timelines)
        # (With several clusters at once there may be nothing more.)
        if not timelines or besides < 0:
            return clock(self.spent)
        return (
            f"{clock(self.spent)}, of which {clock(sum(timelines))} were timelines:"
            f" {besides / len(timelines):.1f} s more for each run"
        )

    def by_name(self) -> dict[str, list[Result]]:
        """The runs of each case, in the order of their first."""
        found: dict[str, list[Result]] = {}
        for run in self.runs:
            found.setdefault(run.name, []).append(run)
        return found


def clock(seconds: float) -> str:
    """``9 min 12 s``."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def new_directory(store: Path, suite: str, now: float) -> Path:
    """A fresh ``<store>/suite-<name>-<UTC time>``. Raises EnvironmentLacks where the store is not writable."""
    moment = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%S.%f")[:-3]
    directory = store / f"suite-{suite}-{moment}Z"
    try:
        directory.mkdir(parents=True)
    except OSError as exc:
        raise EnvironmentLacks(f"{store}: suites cannot be kept there ({exc.strerror}): name another --store") from exc
    return directory


def stored_suites(store: Path) -> list[Path]:
    """The directories of suites in a store, the oldest first."""
    found = (path.parent for path in store.glob(f"suite-*-*/{SUITE_FILE}"))
    return sorted(found, key=lambda path: path.name.rpartition("-")[2])


def asked(named: Sequence[str]) -> list[str]:
    """The arguments that a suite is started with, as it is found again from another directory, and no other is: what is
    no name, nor a pattern of names, by its whole path. (See harness.suite.model: load_suite, and its plan.)"""
    known = scenarios()
    if len(named) == 1 and named[0] in suites():
        return list(named)

    def is_name(one: str) -> bool:
        return one in known or (not Path(one).is_file() and any(fnmatchcase(name, one) for name in known))

    return [name if is_name(name) else os.path.realpath(name) for name in named]


def to_resume(store: Path, named: Sequence[str]) -> Path | None:
    """The newest suite, started with these arguments, in a store that did not end, or whose time budget did before all
    was run, or its judge before all was judged, or that could not run what it does not skip: a newer one that ended
    tried that again. Where that was tried twice, older ones come first that have something else left. One that cannot
    be read (of another version) is skipped. None where there is none.

    Raises ScenarioError where the newest is still going.
    """
    newer, lasting = False, None
    for directory, file in _newest_first(store):
        if not _is_of(file, named):
            continue
        if is_recorded(directory):
            raise ScenarioError(_still_going(directory))
        if file.is_left(tries=1 if newer else 2):
            return directory
        if lasting is None and not newer and file.is_left():
            lasting = directory
        newer = newer or file.ended is not None
    return lasting


def left_in(store: Path) -> Path | None:
    """The newest suite in a store that anybody could go on with, whatever it was started with."""
    return next((path for path, file in _newest_first(store) if file.is_left() and not is_recorded(path)), None)


def _is_of(file: SuiteFile, named: Sequence[str]) -> bool:
    """Whether a suite was started with these arguments. (A file may be gone since: then its path is asked for.)"""
    forms = [{name, os.path.realpath(name)} for name in named]
    known = {form for each in forms for form in each}
    return known.issuperset(file.named) and not any(form.isdisjoint(file.named) for form in forms)


def _newest_first(store: Path) -> Iterator[tuple[Path, SuiteFile]]:
    for directory in reversed(stored_suites(store)):
        try:
            yield directory, SuiteFile.read(directory)
        except HistoryError:
            continue


@contextmanager
def worked_on(directory: Path) -> Iterator[None]:
    """Keep others from going on with the suite in ``directory``, until this is over or the process ends.

    Raises ScenarioError where another process works on it.
    """
    try:
        lock = RecordingLock(directory)
    except BlockingIOError as exc:
        raise ScenarioError(_still_going(directory)) from exc
    try:
        yield
    finally:
        lock.release()


def _still_going(directory: Path) -> str:
    return f"{directory}: this suite is still going: wait for its end, or interrupt it"


def urgency(stores: Iterable[Path]) -> dict[str, Urgency]:
    """By a case's name, how urgent it is by the last suite in these stores that has it.

    It only decides an order: a suite that cannot be read (of another version) keeps no other from being run.
    """
    found: dict[str, Urgency] = {}
    files = [file for store in stores for _, file in _newest_first(store)]
    for file in sorted(files, key=lambda file: file.began):
        for name, runs in file.by_name().items():
            if any(run.outcome in OVER - {Outcome.EXPECTED} for run in runs):
                found[name] = Urgency.FAILED
            elif any(run.outcome is Outcome.NOT_STARTED for run in runs):
                found[name] = Urgency.LEFT_OUT
            elif any(run.outcome is Outcome.EXPECTED for run in runs):
                found[name] = Urgency.NONE
    return found


def relative(directory: Path, store: Path) -> str:
    """A run's directory as suite.json names it."""
    return os.path.relpath(directory, store)
