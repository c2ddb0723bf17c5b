"""Which runs of a store may go."""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.core.verdict import Judgement, Verdict
from harness.history.lock import RecordingLock
from harness.history.run_file import RunFile, State
from harness.report import write as write_reports
from harness.suite.pruning import (
    LeftAlone,
    Pruned,
    SizedRun,
    WhyKept,
    protected,
    remove,
    removed,
    size_of,
    suites_removed,
    to_remove,
    why_left_alone,
    without_runs,
)
from harness.suite.results import Before, Measure, Result, RunOutcome, SuiteFile, to_resume
from harness.suite.stored import Stored, by_case, read_run, runs_below
from tests.command import WITHOUT_PRIVILEGES
from tests.report.verdicts import run_file, verdict
from tests.suite.fakes import case, record, suite_file

DAY = 86_400


def kept(day: int, size: int = 10, expected: bool | None = True, state: State = State.JUDGED) -> SizedRun:
    file = run_file().model_copy(update={"origin_unix_ns": day * DAY * 10**9, "state": state})
    found = None if expected is None else verdict(Judgement.VALID, expected=expected)
    return SizedRun(Stored(Path(f"day-{day}"), file, found), size)


def days(chosen: list[SizedRun]) -> list[str]:
    return [one.run.directory.name for one in chosen]


def everywhere(folder: Path) -> bool:
    return os.access(folder, os.W_OK)


def chosen(
    runs: list[SizedRun], days_: float | None = None, most: int | None = None, unexpected: bool = False
) -> list[str]:
    return days(to_remove(runs, 100 * DAY, days_, most, unexpected))


def test_prune_removes_older_runs() -> None:
    assert chosen([kept(99), kept(80), kept(89)], days_=10) == ["day-80", "day-89"]
    assert chosen([kept(90)], days_=10) == []


def test_an_imported_run_is_as_old_as_its_directory(tmp_path: Path) -> None:
    run = read_run(record(tmp_path, "a", 1))
    assert run.file.origin_unix_ns == 0, "a history of another harness tells no date"
    file = (run.directory / "run.json").stat()
    assert run.began == file.st_mtime


def test_the_oldest_go_until_the_rest_fits() -> None:
    assert chosen([kept(3), kept(1), kept(2)], most=20) == ["day-1"]
    assert chosen([kept(3), kept(1), kept(2)], most=0) == ["day-1", "day-2", "day-3"]
    assert chosen([kept(1)], most=10) == []


@pytest.mark.parametrize("expected", [False, None])
def test_unexpected_or_unjudged_runs_stay_unless_asked_for(expected: bool | None) -> None:
    runs = [kept(1, expected=expected), kept(2)]
    assert chosen(runs, days_=1) == ["day-2"]
    assert chosen(runs, most=0) == ["day-2"]
    assert chosen(runs, days_=1, unexpected=True) == ["day-1", "day-2"]


def test_a_run_that_sent_nothing_may_go() -> None:
    assert chosen([kept(1, expected=None, state=State.INTERRUPTED)], days_=1) == ["day-1"]


def test_removing_takes_the_run_and_the_empty_folder_of_its_scenario_and_follows_no_link(tmp_path: Path) -> None:
    run = record(tmp_path / "store", "a", 1)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("x" * 1000)
    (run / "link").symlink_to(outside)
    assert size_of(run) < sum(path.stat().st_size for path in run.rglob("*") if path.is_file()) + 1000
    assert remove(run, tmp_path / "store", unexpected=True) is None
    assert list((tmp_path / "store").iterdir()) == []
    assert (outside / "file").is_file()


def test_a_run_that_is_being_recorded_stays(tmp_path: Path) -> None:
    run = record(tmp_path, "a", 1)
    lock = RecordingLock(run)
    one = kept(1)
    here = SizedRun(Stored(run, one.run.file, one.run.verdict), 10)
    [became] = removed([here], tmp_path, dry_run=False, writable=Path.exists)
    assert became == Pruned(here, LeftAlone(WhyKept.RECORDED))
    assert run.is_dir()
    lock.release()
    [became] = removed([here], tmp_path, dry_run=True, writable=Path.exists)
    assert became == Pruned(here)
    assert run.is_dir()


@pytest.mark.parametrize(
    ("now", "left"),
    [
        (verdict(expected=False), LeftAlone(WhyKept.UNEXPECTED)),
        (verdict(), None),
        (None, LeftAlone(WhyKept.UNEXPECTED)),
    ],
    ids=["not as expected", "as expected", "without a verdict"],
)
def test_a_run_that_was_judged_anew_meanwhile_stays_if_it_is_not_as_expected(
    now: Verdict | None, left: LeftAlone | None, tmp_path: Path
) -> None:
    run = record(tmp_path, "a", 1)
    chosen_as = SizedRun(Stored(run, RunFile.read(run), verdict()), 10)
    if now is not None:
        write_reports(run, now, chosen_as.run.file)
    [became] = removed([chosen_as], tmp_path, dry_run=False, writable=Path.exists)
    assert (became.left, run.exists()) == (left, left is not None)
    [became] = removed([chosen_as], tmp_path, dry_run=False, writable=Path.exists, unexpected=True)
    assert (became.left, run.exists()) == (None, False)


def test_of_each_case_of_a_suite_the_newest_judged_runs_stay(tmp_path: Path) -> None:
    """A suite of one case, or one that crashed, takes nothing from what the next of both is compared with."""
    a, b, later = record(tmp_path, "a", 1), record(tmp_path, "b", 1), record(tmp_path, "a", 2)
    suite(tmp_path, "scenarios", 1, a, b)
    suite(tmp_path, "scenarios", 2, later)
    crashed = SuiteFile.read(suite(tmp_path, "scenarios", 3, a, b))
    for run in crashed.runs:
        run.outcome, run.verdict = RunOutcome.CRASHED, None
    crashed.write(tmp_path / "suite-scenarios-3")
    assert protected(tmp_path) == {later, b}


def test_runs_removed_during_the_search_of_a_store_are_skipped(tmp_path: Path) -> None:
    """Another prune removes whole runs while this one searches the store."""
    goes_on, other = record(tmp_path, "a", 1), record(tmp_path, "b", 1)
    others = [other, *(Path(shutil.copytree(other, other.with_name(f"20260102-{n}"))) for n in range(100))]
    with ThreadPoolExecutor() as pool:
        done = pool.submit(lambda: [remove(run, tmp_path, unexpected=True) for run in others])
        while not done.done():
            assert goes_on in runs_below(tmp_path)
            assert size_of(tmp_path) >= size_of(goes_on)
    assert (any(done.result()), runs_below(tmp_path)) == (False, [goes_on])


def test_a_run_that_must_be_left_alone_frees_no_space() -> None:
    runs = [kept(1), kept(2), kept(3), kept(4)]
    alone = {Path(f"day-{day}"): LeftAlone(why) for day, why in enumerate(WhyKept, 1)}
    taken = to_remove(runs, 100 * DAY, None, 20, False, (), alone.get)
    assert days(taken) == ["day-1", "day-2", "day-3", "day-4"]


def test_a_run_removed_by_another_prune_is_not_locked(tmp_path: Path) -> None:
    run = record(tmp_path / "store", "a", 1)
    one = kept(1)
    here = SizedRun(Stored(run, one.run.file, one.run.verdict), 10)
    shutil.rmtree(run.parent)
    assert list(removed([here], tmp_path / "store", False, everywhere)) == [Pruned(here)]


@pytest.mark.parametrize("dry_run", [False, True])
def test_prune_gives_a_reason_for_each_run_it_leaves_alone(dry_run: bool, tmp_path: Path) -> None:
    """The names of these runs end like the text of another reason."""
    names = ("being recorded", "not yours to empty", "it is being recorded")
    theirs, lives, mine = (record(tmp_path, name, 1) for name in names)
    every = [SizedRun(read_run(run), 10) for run in (theirs, lives, mine)]
    lock = RecordingLock(lives)
    became = list(removed(every, tmp_path, dry_run, lambda folder: folder != theirs / "history", unexpected=True))
    assert [one.chosen for one in became] == every
    assert [one.left for one in became] == [
        LeftAlone(WhyKept.NOT_YOURS, theirs / "history"),
        LeftAlone(WhyKept.RECORDED),
        None,
    ]
    assert [run.exists() for run in (theirs, lives, mine)] == [True, True, dry_run]
    lock.release()
    assert why_left_alone(lives, everywhere) is None


#: Removes these runs of a store, all of whose folders seem to allow it.
PRUNES = """
import sys
from pathlib import Path
from harness.suite.pruning import SizedRun, removed
from harness.suite.stored import read_run
store, *runs = map(Path, sys.argv[1:])
for one in removed([SizedRun(read_run(run), 10) for run in runs], store, False, lambda _: True, unexpected=True):
    print(one.left and one.left.why)
"""


def test_a_run_that_only_the_system_knows_to_be_anothers_keeps_no_other_from_going(tmp_path: Path) -> None:
    """The mode of a folder does not decide alone: a sticky bit or an attribute may forbid the removal."""
    theirs, mine = (record(tmp_path, name, 1) for name in ("a", "b"))
    theirs.chmod(0o500)
    command = [*WITHOUT_PRIVILEGES, sys.executable, "-c", PRUNES, tmp_path, theirs, mine]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    theirs.chmod(0o700)
    assert done.stdout.splitlines() == [WhyKept.NOT_YOURS, "None"]
    assert [(run / "run.json").exists() for run in (theirs, mine)] == [True, False]


def suite(store: Path, name: str, began: float, *runs: Path, ended: bool = True) -> Path:
    """A suite of these runs, judged."""
    file = suite_file(*(case(run.parent.name) for run in runs), suite=name, began=began, ended=began if ended else None)
    for result, run in zip(file.runs, runs, strict=True):
        result.judged(verdict())
        write_reports(run, verdict(), RunFile.read(run))
        result.directory = str(run.relative_to(store))
    directory = store / f"suite-{name}-{began:.0f}"
    directory.mkdir()
    file.write(directory)
    return directory


def test_the_newest_suite_of_each_name_and_the_resumable_ones_stay(tmp_path: Path) -> None:
    runs = [record(tmp_path, "a", seed) for seed in range(7)]
    suite(tmp_path, "quick", 1, runs[0])
    suite(tmp_path, "quick", 2, runs[1])
    suite(tmp_path, "quick", 3, runs[2], ended=False)
    suite(tmp_path, "nightly", 1, runs[3])
    live = suite(tmp_path, "quick", 4, runs[4], ended=False)
    broken = tmp_path / "suite-quick-5"
    broken.mkdir()
    (broken / "suite.json").write_text("{")
    lock = RecordingLock(live)
    begun = SuiteFile.read(live)
    begun.runs.append(Result.of(case("a", seed=5)))
    begun.runs[1].outcome = RunOutcome.RECORDED
    begun.write(live)
    for named in (tmp_path, tmp_path / "a", runs[1]):
        assert protected(named) == {runs[2], runs[3], runs[4], runs[5]}
    lock.release()
    assert protected(tmp_path) == {runs[3], runs[4], runs[5]}, "of those that were broken off, the newest goes on"
    for run in (runs[5], runs[4], runs[2], runs[1]):
        shutil.rmtree(run)
    assert protected(tmp_path) - {runs[4]} == {runs[0], runs[3]}


def test_the_baseline_of_the_next_suite_stays_even_if_its_suite_was_broken_off(tmp_path: Path) -> None:
    runs = [record(tmp_path, "a", seed) for seed in range(2)]
    suite(tmp_path, "quick", 1, runs[0])
    suite(tmp_path, "quick", 2, runs[1], ended=False)
    assert protected(tmp_path) == {run.directory for run in by_case(tmp_path, print, baseline=True)["a"].judged}
    assert protected(tmp_path) == {runs[1]}


def test_only_the_newest_broken_off_suite_keeps_its_runs(tmp_path: Path) -> None:
    """If each one kept its runs, a row of broken-off nights would fill the store."""
    runs = [record(tmp_path, "a", seed) for seed in range(4)]
    suites = [suite(tmp_path, "quick", began, run, ended=began > 3) for began, run in enumerate(runs, 1)]
    assert protected(tmp_path) == {runs[2], runs[3]}
    assert to_resume(tmp_path, [], print) == suites[2]
    last = SuiteFile.read(suites[2])
    last.ended = 3.0
    last.write(suites[2])
    assert protected(tmp_path) == {runs[1], runs[3]}


def test_the_run_that_replaces_an_unreadable_newest_run_stays(tmp_path: Path) -> None:
    runs = [record(tmp_path, "a", seed) for seed in range(3)]
    for began, run in enumerate(runs, 1):
        suite(tmp_path, "quick", began, run)
    (runs[2] / "verdict.json").write_text("{")
    (runs[1] / "verdict.json").unlink()
    assert [run.directory for run in by_case(tmp_path, print, baseline=True)["a"].judged] == [runs[0]]
    assert protected(tmp_path) == {runs[0]}


def test_worse_or_uncompared_suites_are_no_baseline_and_a_resumable_one_keeps_its_own(
    tmp_path: Path,
) -> None:
    """by_case chooses in the same way: one suite was worse, one was broken off before its comparison."""
    runs = [record(tmp_path, "a", seed) for seed in range(4)]
    directories = [suite(tmp_path, "quick", began, run) for began, run in enumerate(runs, 1)]
    worse, waits, live = (SuiteFile.read(directory) for directory in directories[1:])
    worse.worse = {"a": ["slower"]}
    waits.measure = Measure(said="store", cases={"a": Before(judged=["a/20260101-0"])})
    live.measure = Measure(said="store", cases={"a": Before(judged=["a/20260101-1"])})
    for file, directory in zip((worse, waits, live), directories[1:], strict=True):
        file.write(directory)
    lock = RecordingLock(directories[3])
    assert protected(tmp_path) == set(runs), "what one that goes on is compared with stays, and what can be continued"
    lock.release()
    assert protected(tmp_path) == {runs[0], runs[1], runs[3]}, "the last can be continued, and not the one before"
    assert [run.directory for run in by_case(tmp_path, print, baseline=True)["a"].judged] == [runs[0]]
    live.measure.compared, live.worse = True, {"a": ["slower"]}
    live.write(directories[3])
    assert protected(tmp_path) == {runs[0], runs[2]}, "the one before"
    waits.measure.compared = True
    waits.write(directories[2])
    assert protected(tmp_path) == {runs[2]}
    assert [run.directory for run in by_case(tmp_path, print, baseline=True)["a"].judged] == [runs[2]]


def test_a_suite_of_which_no_run_is_left_may_go_but_not_the_newest_of_its_name(tmp_path: Path) -> None:
    runs = [record(tmp_path, "a", seed) for seed in range(6)]
    suites = [suite(tmp_path, "quick", began * DAY, run) for began, run in enumerate(runs[:5], 2)]
    suite(tmp_path, "nightly", DAY, runs[5])
    other = tmp_path / "suite-quick-0"
    other.mkdir()
    (other / "suite.json").write_text('{"schema": 0}')
    assert without_runs(tmp_path, 7 * DAY, None) == []
    for run in (runs[0], runs[2], runs[4], runs[5]):
        shutil.rmtree(run)
    assert without_runs(tmp_path, 7 * DAY, None) == [suites[0], suites[2]]
    assert without_runs(tmp_path, 7 * DAY, 3) == [suites[0]], "the other is three days old, and no older"
    assert without_runs(tmp_path, 7 * DAY, None, [runs[1]]) == suites[:3], "as if that were gone"
    assert without_runs(tmp_path / "a", 7 * DAY, None) == []
    lock = RecordingLock(suites[0])
    assert without_runs(tmp_path, 7 * DAY, None) == [suites[2]]
    lock.release()


@pytest.mark.parametrize("outcome", [RunOutcome.RUNNING, RunOutcome.INTERRUPTED, RunOutcome.WAITING])
def test_a_suite_that_was_killed_has_the_runs_that_it_began(outcome: RunOutcome, tmp_path: Path) -> None:
    """A waiting run has not begun: a run with its seed belongs to another suite."""
    record(tmp_path, "a", 7)
    killed = suite(tmp_path, "quick", 1, ended=False)
    file = SuiteFile.read(killed)
    file.runs.append(Result.of(case("a", seed=7)))
    file.runs[0].outcome = outcome
    file.write(killed)
    suite(tmp_path, "quick", 2, record(tmp_path, "b", 1))
    assert without_runs(tmp_path, DAY, 0) == ([killed] if outcome is RunOutcome.WAITING else [])


def test_a_suite_has_the_attempts_that_were_broken_off(tmp_path: Path) -> None:
    attempt = record(tmp_path, "a", 7)
    older = suite(tmp_path, "quick", 1)
    file = SuiteFile.read(older)
    file.runs.append(Result.of(case("a", seed=7)))
    file.runs[0].abandoned = [str(attempt.relative_to(tmp_path))]
    file.write(older)
    suite(tmp_path, "quick", 2, record(tmp_path, "b", 1))
    assert without_runs(tmp_path, DAY, 0) == []
    shutil.rmtree(attempt)
    assert without_runs(tmp_path, DAY, 0) == [older]


def test_a_suite_directory_is_removed_unless_it_is_in_use_or_not_yours(tmp_path: Path) -> None:
    gone, live, theirs, kept_ = (suite(tmp_path, "quick", began) for began in range(1, 5))
    (gone / "logs").mkdir()
    (gone / "logs" / "1.log").write_text("x")
    lock = RecordingLock(live)
    became = dict(suites_removed([gone, live, theirs], False, lambda folder: folder != theirs))
    lock.release()
    assert became == {gone: None, live: LeftAlone(WhyKept.RECORDED), theirs: LeftAlone(WhyKept.NOT_YOURS, theirs)}
    assert [one.exists() for one in (gone, live, theirs, kept_)] == [False, True, True, True]
    assert list(suites_removed([gone], False, everywhere)) == [(gone, None)], "another prune was quicker"
    assert list(suites_removed([live], True, everywhere)) == [(live, None)]
    assert live.exists()


def test_a_protected_run_stays_even_if_all_are_to_go() -> None:
    runs = [kept(1), kept(2)]
    assert days(to_remove(runs, 100 * DAY, 1, 0, True, {Path("day-1").resolve()})) == ["day-2"]
