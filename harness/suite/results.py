"""suite.json: every run of a suite, its state, and its result. The file is rewritten at each change."""

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
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
from harness.history.paths import LOGS, SUITE_FILE, is_there
from harness.history.run_file import DRAIN
from harness.history.writing import write_file
from harness.scenario.loading import named as scenarios
from harness.suite.model import UNNAMED, suites
from harness.suite.plan import SuiteCase, Urgency

SCHEMA = 1
_DIRECTORY = "suite-*-*"
#: The seconds since 1970 of the years 1 and 10000: only those between have dates.
_YEAR_1, _YEAR_10000 = -62_135_596_800, 253_402_300_800


class RunOutcome(StrEnum):
    """The state or result of one run of a suite. Only ``as expected`` is a success."""

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


#: A run with one of these results is not run again. (One that could not run is: what was missing may be there by now.)
OVER = frozenset({RunOutcome.EXPECTED, RunOutcome.UNEXPECTED, RunOutcome.UNKNOWN, RunOutcome.CRASHED})
JUDGED = frozenset({RunOutcome.EXPECTED, RunOutcome.UNEXPECTED, RunOutcome.UNKNOWN})


#: A path must not have a zero byte: the file may come from anybody.
_Path = Annotated[str, Field(pattern=r"^[^\x00]*$")]

_Count = Annotated[int, Field(ge=0, le=1_000_000)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True, allow_inf_nan=False)


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
        [], description="what its cluster shares with no other at the same time: such clusters run one after the other"
    )
    measured_until: str = Field(DRAIN, description="the phase from which on nothing in it is measured any more")
    outcome: RunOutcome = RunOutcome.WAITING
    why: str = Field("", description="what was expected, and the headline of its verdict; or why it has no verdict")
    needed: bool = Field(False, description="it lacks something that can be repaired: it is then never skipped")
    refused: int = Field(0, description="how often it was tried, and could not run")
    unjudged: int = Field(0, description="how often its judge failed")
    verdict: Judgement | None = None
    anomalies: dict[str, int] = {}
    directory: _Path | None = None
    began: float | None = Field(None, description="seconds since 1970")
    seconds: float | None = Field(
        None, description="from its start, or the suite's continuation if it was recorded before, to its verdict"
    )
    timeline_seconds: float | None = Field(None, description="the seconds of its timeline")
    abandoned: list[_Path] = Field(
        [], description="directories of attempts that were interrupted before they were whole"
    )
    earlier: list[_Path] = Field(
        [], description="directories of the same scenario and seed that existed before it began: other runs"
    )

    @classmethod
    def of(cls, case: SuiteCase) -> Self:
        """A run that waits."""
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
        headline, unmet_line = verdict.reasons[0], verdict.reasons[-1].removeprefix(f"{RunOutcome.UNEXPECTED}: ")
        self.why = headline if verdict.expected or headline == unmet_line else f"{unmet_line}; {headline}"
        self.anomalies = {name: anomaly.count for name, anomaly in verdict.anomalies.items()}
        unmet = RunOutcome.UNKNOWN if verdict.verdict is Judgement.UNKNOWN else RunOutcome.UNEXPECTED
        self.outcome = RunOutcome.EXPECTED if verdict.expected else unmet


class Before(_Part):
    """The runs of one case that a suite is compared with: the directories of the judged ones, relative to the store if
    they are in it, and the number of others (harness.suite.stored: Runs)."""

    judged: list[_Path] = []
    crashed: _Count = 0
    removed: _Count = 0
    unreadable: _Count = 0
    cannot_run: _Count = 0
    noted: list[bool] = []

    @property
    def lacking(self) -> bool:
        """Whether all runs to compare with are gone."""
        return not self.judged and not self.crashed and bool(self.removed or self.unreadable)


class Measure(_Part):
    """What a suite is compared with at its end: chosen at its beginning, and kept if it is continued."""

    said: _Path = Field(description="the absolute path of the baseline")
    cases: dict[str, Before]
    gone: list[str] = Field([], description="the names of cases that the baseline has, and this suite lacks")
    whole: bool = Field(True, description="whether all of it could be read, and each case has a readable run")
    compared: bool = Field(False, description="whether all runs of this suite are compared with it")


class SuiteFile(_Part):
    """The whole of suite.json."""

    schema_number: int = Field(SCHEMA, alias="schema", ge=SCHEMA, le=SCHEMA)
    suite: str
    about: str = ""
    cannot_run: str = "fail"
    time_budget: float | None = None
    began: float = Field(ge=_YEAR_1, lt=_YEAR_10000)
    ended: float | None = None
    named: list[str] = Field([], description="the arguments that it was started with")
    settings: list[str] = Field([], description="the settings that it was started with, of all runs: PATH=VALUE")
    spent: float = Field(0.0, description="seconds that earlier, interrupted processes worked on this suite")
    versions: dict[str, str] = {}
    baseline: _Path | None = Field(None, description="what it was compared with")
    worse: dict[str, list[str]] = Field({}, description="by a case's name, how it is worse than the baseline")
    measure: Measure | None = Field(None, description="what it is to be compared with")
    uncompared: str = Field("", description="why there is nothing to compare with, though a baseline was given")
    texts: dict[str, str] = Field({}, description="by path, the content of each scenario's file when the suite began")
    runs: list[Result]

    def write(self, directory: Path) -> None:
        """Write ``<directory>/suite.json``."""
        write_file(directory, SUITE_FILE, self.model_dump_json(by_alias=True, indent=1) + "\n")

    @classmethod
    def read(cls, directory: Path) -> Self:
        """The suite.json of a directory. Raises HistoryError if it is missing, or not of this version."""
        path = directory / SUITE_FILE
        try:
            return cls.model_validate_json(path.read_bytes())
        except (OSError, ValueError) as exc:
            why = exc.errors()[0]["msg"] if isinstance(exc, ValidationError) else str(exc)
            raise HistoryError(f"{path}: not a suite file of this version ({why})") from exc

    def skips(self, run: Result) -> bool:
        """Whether a run counts as skipped: this machine cannot run it, and for this suite that is no failure."""
        return run.outcome is RunOutcome.CANNOT_RUN and self.cannot_run == "skip" and not run.needed

    @property
    def called(self) -> tuple[str, ...]:
        """What identifies the same suite at other times: its name, or the scenarios that were given instead."""
        return (self.suite, *(self.named if self.suite == UNNAMED else ()))

    def is_measure(self, name: str) -> bool:
        """Whether other suites may be compared with its runs of a case. They may not if these are worse than earlier
        ones, or if that is still to be found out."""
        return not self.is_to_compare and name not in self.worse

    def is_left(self, tries: int | None = None) -> bool:
        """Whether the suite can be continued, if only to compare it. Runs that could not run count until they were
        tried ``tries`` times."""
        left = (run for run in self.runs if run.outcome not in OVER and not self.skips(run))
        refused = (run.outcome is RunOutcome.CANNOT_RUN and max(1, run.refused) >= (tries or math.inf) for run in left)
        return self.ended is None or self.is_to_compare or not all(refused)

    @property
    def is_to_compare(self) -> bool:
        """Whether its runs are still to be compared with the measure."""
        return self.measure is not None and not self.measure.compared

    def counts(self) -> dict[RunOutcome, int]:
        """The number of runs for each outcome that occurs."""
        each = Counter(run.outcome for run in self.runs)
        return {outcome: each[outcome] for outcome in RunOutcome if outcome in each}

    @property
    def headline(self) -> str:
        """``7 of 8 runs as expected, 1 cannot run``."""
        counts = self.counts()
        others = [f"{number} {outcome}" for outcome, number in counts.items() if outcome is not RunOutcome.EXPECTED]
        return ", ".join([f"{counts.get(RunOutcome.EXPECTED, 0)} of {len(self.runs)} runs as expected", *others])

    @property
    def cost(self) -> str:
        """``4 min 2 s, of which 2 min 44 s were timelines: 13.0 s more for each run``."""
        timelines = [run.timeline_seconds for run in self.runs if run.timeline_seconds is not None]
        besides = self.spent - sum(timelines)
        # (With several clusters at once, there may be no additional time.)
        if not timelines or besides < 0:
            return clock(self.spent)
        return (
            f"{clock(self.spent)}, of which {clock(sum(timelines))} were timelines:"
            f" {besides / len(timelines):.1f} s more for each run"
        )

    def by_name(self) -> dict[str, list[Result]]:
        """The runs of each case, in the order of the cases' first runs."""
        found: dict[str, list[Result]] = {}
        for run in self.runs:
            found.setdefault(run.name, []).append(run)
        return found


def clock(seconds: float) -> str:
    """``9 min 12 s``."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def new_directory(store: Path, suite: str, now: float) -> Path:
    """A new ``<store>/suite-<name>-<UTC time>``. Raises EnvironmentLacks if the store is not writable."""
    moment = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%S.%f")[:-3]
    directory = store / f"suite-{suite}-{moment}Z"
    try:
        directory.mkdir(parents=True)
    except OSError as exc:
        raise EnvironmentLacks(f"{store}: suites cannot be kept there ({exc.strerror}): name another --store") from exc
    return directory


def is_suite(directory: Path) -> bool:
    """Whether a directory is that of a suite, by its name; its suite.json may be gone."""
    return fnmatchcase(directory.name, _DIRECTORY) and any(is_there(directory / name) for name in (SUITE_FILE, LOGS))


def stored_suites(store: Path) -> list[Path]:
    """The directories of suites in a store, the oldest first."""
    return sorted((path.parent for path in store.glob(f"{_DIRECTORY}/{SUITE_FILE}")), key=_moment)


def _moment(directory: Path) -> str:
    return directory.name.rpartition("-")[2]


def asked(named: Sequence[str]) -> list[str]:
    """The arguments of a suite in a form that identifies it from any directory: names and patterns of names unchanged,
    files by their absolute paths. (See harness.suite.model: load_suite, and its plan.)"""
    known = scenarios()
    if len(named) == 1 and named[0] in suites():
        return list(named)

    def is_name(argument: str) -> bool:
        return argument in known or (
            not Path(argument).is_file() and any(fnmatchcase(name, argument) for name in known)
        )

    return [name if is_name(name) else os.path.realpath(name) for name in named]


def _ignore(_line: str) -> None:
    """(For callers to whom a suite that cannot be read is like none.)"""


def to_resume(store: Path, named: Sequence[str], say: Callable[[str], None] = _ignore) -> Path | None:
    """The newest suite in a store that was started with these arguments and can be ``continued``; None if there is
    none. ``say`` gets a line about each newer one that cannot be read. Raises ScenarioError if the newest is still
    going."""

    def of_these() -> Iterator[tuple[Path, SuiteFile]]:
        for directory, file in _newest_first(store, say):
            if _is_of(file, named):
                if is_recorded(directory):
                    raise ScenarioError(_still_going(directory))
                yield directory, file

    return continued(of_these())


def continued(suites: Iterable[tuple[Path, SuiteFile]]) -> Path | None:
    """The directory of the one that ``--resume`` continues, of suites that were started with the same arguments, the
    newest first; None if nothing is left of them.

    It can be continued if it did not end, if its time budget or its judge ended before all runs were run or judged, or
    if it could not run something that it does not skip. (A newer suite that ended has tried that again.) If that was
    tried twice, older suites with other work left come first.
    """
    newer, lasting = False, None
    for directory, file in suites:
        if file.is_left(tries=1 if newer else 2):
            return directory
        if lasting is None and not newer and file.is_left():
            lasting = directory
        newer = newer or file.ended is not None
    return lasting


def left_in(store: Path) -> Path | None:
    """The newest suite in a store that can be continued, whatever its arguments."""
    return next(
        (path for path, file in _newest_first(store, _ignore) if file.is_left() and not is_recorded(path)), None
    )


def _is_of(file: SuiteFile, named: Sequence[str]) -> bool:
    """Whether a suite was started with these arguments. (A file may be gone by now: then its path counts.)"""
    forms = [{name, os.path.realpath(name)} for name in named]
    known = {form for each in forms for form in each}
    return known.issuperset(file.named) and not any(form.isdisjoint(file.named) for form in forms)


def _newest_first(store: Path, say: Callable[[str], None]) -> Iterator[tuple[Path, SuiteFile]]:
    for directory in sorted(filter(is_suite, store.glob(_DIRECTORY)), key=_moment, reverse=True):
        try:
            yield directory, SuiteFile.read(directory)
        except HistoryError as exc:
            say(str(exc))


@contextmanager
def worked_on(directory: Path) -> Iterator[None]:
    """Keep others from continuing the suite in ``directory`` until the block or the process ends.

    Raises ScenarioError if another process works on it.
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
    """The urgency of each case, by its name, according to the last suite in these stores that has it.

    It only decides an order, so a suite that cannot be read (of another version) is ignored.
    """
    found: dict[str, Urgency] = {}
    files = [file for store in stores for _, file in _newest_first(store, _ignore)]
    for file in sorted(files, key=lambda file: file.began):
        for name, runs in file.by_name().items():
            if any(run.outcome in OVER - {RunOutcome.EXPECTED} for run in runs):
                found[name] = Urgency.FAILED
            elif any(run.outcome is RunOutcome.NOT_STARTED for run in runs):
                found[name] = Urgency.LEFT_OUT
            elif any(run.outcome is RunOutcome.EXPECTED for run in runs):
                found[name] = Urgency.NONE
    return found


def relative(directory: Path, store: Path) -> str:
    """A run's directory in the form of suite.json."""
    return os.path.relpath(directory, store)
