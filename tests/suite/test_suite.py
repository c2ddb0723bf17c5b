"""A suite does all of its runs even if one fails, and --resume continues it after an interruption."""

import errno
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Timer
from typing import NoReturn
from xml.etree import ElementTree as ET

import pytest

from harness.cli import codes
from harness.cli.suite import exit_code
from harness.core.errors import HistoryError, ScenarioError
from harness.core.verdict import Judgement
from harness.history.lock import RecordingLock
from harness.history.run_file import RunFile, State
from harness.suite.plan import Urgency
from harness.suite.recorder import Event
from harness.suite.results import Result, RunOutcome, SuiteFile, to_resume, urgency, worked_on
from harness.suite.stored import of_suite
from harness.suite.suite import Actions, resume
from tests.report.verdicts import verdict
from tests.suite.fakes import InterruptsTheJudge, Silent, World, case, record, suite_file


def outcomes(file: SuiteFile) -> list[RunOutcome]:
    return [run.outcome for run in file.runs]


def test_every_run_is_recorded_judged_and_reported(tmp_path: Path) -> None:
    file = suite_file(case("a"), case("b"))
    world = World(tmp_path, verdicts=[verdict(), verdict(Judgement.INVALID)])
    directory = world.run(file)
    assert outcomes(file) == [RunOutcome.EXPECTED] * 2
    assert [run.verdict for run in file.runs] == ["valid", "invalid"]
    assert file.runs[1].anomalies == {"lost": 520}
    assert (tmp_path / str(file.runs[0].directory) / "report.html").is_file()
    assert SuiteFile.read(directory) == file
    assert file.ended is not None


def test_all_are_judged_in_one_session(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.run(suite_file(case("a"), case("b"), case("c")))
    assert world.judges == 1


def test_the_next_cluster_comes_up_while_a_run_is_judged_and_its_timeline_waits_for_the_verdict(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.run(suite_file(case("a"), case("b")))
    assert world.log.index("up b") < world.log.index("judge a") < world.log.index("go b")


def test_the_next_cluster_comes_up_as_soon_as_the_writes_of_a_run_are_over(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.run(suite_file(case("a"), case("b")))
    assert world.log.index("go a") < world.log.index("up b") < world.log.index("over a") < world.log.index("go b")


@pytest.mark.parametrize(
    ("measured_until", "up_at"),
    [("drain", [False, True, True]), ("final read", [False, False, True])],
    ids=["plain", "transactions"],
)
def test_the_next_cluster_waits_for_transactions_that_settle(
    measured_until: str, up_at: list[bool], tmp_path: Path
) -> None:
    file = suite_file(replace(case("a"), measured_until=measured_until), case("b"))
    world, seen = World(tmp_path), dict[str, bool]()

    class Watches(Silent):
        def runs(self, file: SuiteFile, doing: Mapping[int, str]) -> None:
            if 0 in doing:
                seen.setdefault(doing[0], "up b" in world.log)

    world.run(file, display=Watches())
    assert [seen[phase] for phase in ("drain", "final read", "seal")] == up_at


@pytest.mark.parametrize(
    ("background", "jobs", "up_at"),
    [(True, 1, [True, True]), (False, 1, [False, True]), (True, 2, [False, True])],
    ids=["in the background", "with all cores", "beside another timeline"],
)
def test_the_next_cluster_may_come_up_in_the_background_while_the_last_run_heals(
    background: bool, jobs: int, up_at: list[bool], tmp_path: Path
) -> None:
    hangs = {"hangs": [Event(kind="failed", text="hangs")]}
    beside = [case("hangs")] * (jobs - 1)
    world, seen = World(tmp_path, hangs, background=background), dict[str, bool]()

    class Watches(Silent):
        def runs(self, file: SuiteFile, doing: Mapping[int, str]) -> None:
            if (phase := doing.get(len(beside))) is not None:
                seen.setdefault(phase, "up b" in world.log)
            if beside and "over b" in world.log:
                raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        world.run(suite_file(*beside, case("a"), case("b")), jobs, Watches())
    assert [seen[phase] for phase in ("drain", "final read")] == up_at


def test_a_timeline_waits_until_the_last_run_has_healed(tmp_path: Path) -> None:
    world = World(tmp_path, {"a": [Event(kind="failed", text="hangs in its heal")]}, background=True)

    class Watches(Silent):
        looks = 0

        def runs(self, file: SuiteFile, doing: Mapping[int, str]) -> None:
            self.looks += doing.get(1) == "cluster up"
            if self.looks > 1:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        world.run(suite_file(case("a"), case("b")), display=Watches())
    assert "up b" in world.log
    assert "go b" not in world.log


def test_the_recorder_of_the_next_run_stands_by_before_a_timeline_and_begins_after_it(tmp_path: Path) -> None:
    world = World(tmp_path)
    file = suite_file(case("a"), case("b"), case("c"))
    world.run(file)
    order = [line for line in world.log if line.startswith(("look", "up", "go"))]
    assert order == [
        *("look at a", "up a", "look at b", "go a"),
        *("up b", "look at c", "go b"),
        *("up c", "go c"),
    ]
    assert outcomes(file) == [RunOutcome.EXPECTED] * 3


def test_a_standby_run_that_cannot_run_is_reported_and_the_next_one_runs(tmp_path: Path) -> None:
    lacks = [Event(kind="cannot run", text="not seen at all")]
    file = suite_file(case("b"), case("a"), case("c"), case("d"))
    world = World(tmp_path, {"a": lacks, "d": lacks})
    world.run(file)
    assert outcomes(file) == [RunOutcome.EXPECTED, RunOutcome.CANNOT_RUN, RunOutcome.EXPECTED, RunOutcome.CANNOT_RUN]
    assert [line for line in world.log if line.startswith("up")] == ["up b", "up c"]
    assert [run.directory is None for run in file.runs] == [False, True, False, True]


def test_a_run_that_never_began_does_not_take_an_old_run_with_its_seed(tmp_path: Path) -> None:
    record(tmp_path, "b", 7, moment="20250101")
    file = suite_file(case("a"), case("b", seed=7))
    world = World(tmp_path, {"b": [Event(kind="failed", text="not seen at all")]})
    world.run(file)
    assert (outcomes(file)[1], file.runs[1].directory, world.cleaned) == (RunOutcome.CRASHED, None, [])


def test_a_standby_run_is_dismissed_and_waits_if_the_suite_is_interrupted(tmp_path: Path) -> None:
    file = suite_file(case("a"), case("b"))
    world = World(tmp_path, {"a": [Event(kind="failed", text="hangs")]}, interrupts=True)
    with pytest.raises(KeyboardInterrupt):
        world.run(file)
    assert outcomes(file) == [RunOutcome.INTERRUPTED, RunOutcome.WAITING]
    assert {"broken off b", "over b"} <= set(world.log)
    assert "up b" not in world.log


def test_a_standby_run_beyond_the_budget_is_dismissed(tmp_path: Path) -> None:
    file = suite_file(case("a", seconds=10), case("b", seconds=10), time_budget=15.0)
    world = World(tmp_path)
    world.run(file)
    assert outcomes(file) == [RunOutcome.EXPECTED, RunOutcome.NOT_STARTED]
    assert [line for line in world.log if line.endswith(" b")] == ["look at b", "broken off b", "over b"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_clusters_that_exclude_each_other_come_one_after_the_other_and_so_do_their_recorders(
    jobs: int, tmp_path: Path
) -> None:
    file = suite_file(*(case(name, alone=["machine m1"]) for name in "abc"))
    world = World(tmp_path, same_machines=frozenset("abc"))
    world.run(file, jobs)
    assert outcomes(file) == [RunOutcome.EXPECTED] * 3
    order = [line for line in world.log if line.startswith(("look", "up", "over"))]
    assert order == [f"{what} {name}" for name in "abc" for what in ("look at", "up", "over")]
    assert world.log.index("up b") < world.log.index("judge a"), "its judge takes nothing from the machines"


def test_a_crashed_run_no_longer_blocks_others(tmp_path: Path) -> None:
    file = suite_file(*(case(name, alone=["subnet 10.1.2.0/24"]) for name in "ab"))
    ends = {"a": [Event(kind="failed", text="does not come up")]}
    World(tmp_path, ends, same_machines=frozenset("ab")).run(file)
    assert outcomes(file) == [RunOutcome.CRASHED, RunOutcome.EXPECTED]


def test_a_run_with_its_own_machine_goes_before_one_that_has_to_wait(tmp_path: Path) -> None:
    file = suite_file(case("a", alone=["m1"]), case("b", alone=["m1"]), case("other", alone=["m2"]))
    world = World(tmp_path, same_machines=frozenset("ab"))
    world.run(file)
    assert outcomes(file) == [RunOutcome.EXPECTED] * 3
    log = world.log
    assert log.index("look at other") < log.index("go a") < log.index("up other") < log.index("over a")
    assert log.index("over a") < log.index("look at b")


@pytest.mark.parametrize(
    ("seconds", "outcome", "order"),
    [
        (60.0, RunOutcome.EXPECTED, ["look at c", "over a", "up c", "over c", "look at b", "up b", "over b"]),
        (
            98.0,
            RunOutcome.NOT_STARTED,
            ["look at c", "over a", "broken off c", "over c", "look at b", "up b", "over b"],
        ),
    ],
    ids=["that begins before it", "that the budget leaves out"],
)
def test_a_run_waits_for_a_recorder_that_uses_the_same_resource(
    seconds: float, outcome: RunOutcome, order: list[str], tmp_path: Path
) -> None:
    file = suite_file(case("a", alone=["m1"]), case("b", alone=["m1", "m2"]), case("c", seconds=seconds, alone=["m2"]))
    file.time_budget = 100.0
    crashes = {"a": [Event(kind="failed", text="does not come up")]}
    world = World(tmp_path, crashes, same_machines=frozenset("ab"), look_long=frozenset("c"))
    world.run(file)
    assert outcomes(file) == [RunOutcome.CRASHED, RunOutcome.EXPECTED, outcome]
    assert [line for line in world.log if line.startswith(("look", "up", "over", "broken"))] == [
        *("look at a", "up a"),
        *order,
    ]


def test_there_are_never_more_clusters_than_jobs(tmp_path: Path) -> None:
    hangs = {name: [Event(kind="failed", text="hangs")] for name in "abc"}
    world = World(tmp_path, hangs, interrupts=True)
    with pytest.raises(KeyboardInterrupt):
        world.run(suite_file(case("a"), case("b"), case("c")), jobs=2)
    assert [line for line in world.log if line.startswith("up")] == ["up a", "up b"]


def test_a_run_that_crashes_ends_nothing_but_itself(tmp_path: Path) -> None:
    file = suite_file(case("a"), case("b"))
    World(tmp_path, {"a": [Event(kind="failed", text="does not come up")]}).run(file)
    assert outcomes(file) == [RunOutcome.CRASHED, RunOutcome.EXPECTED]
    assert file.runs[0].why == "does not come up"


def test_leftovers_of_a_killed_recorder_are_removed(tmp_path: Path) -> None:
    file = suite_file(case("a", seed=5), case("stuck", seed=6))
    world = World(tmp_path, {name: [Event(kind="failed", text="killed")] for name in ("a", "stuck")})
    directory = world.run(file)
    assert world.cleaned == ["a/20260101-5", "stuck/20260101-6"]
    assert "a volume stays" in (directory / "logs/cleanup.log").read_text()
    assert outcomes(file) == [RunOutcome.CRASHED] * 2


def left(store: Path, *named: str) -> Path:
    """The directory of the suite, started with these arguments, that is gone on with."""
    found = to_resume(store, named)
    assert found is not None
    return found


def test_a_run_that_this_machine_cannot_run_never_counts_as_passed(tmp_path: Path) -> None:
    file = suite_file(case("a"), case("b"))
    World(tmp_path, {"a": [Event(kind="cannot run", text="no netem here")]}).run(file)
    assert outcomes(file) == [RunOutcome.CANNOT_RUN, RunOutcome.EXPECTED]
    assert file.headline == "1 of 2 runs as expected, 1 cannot run"


def test_resume_tries_again_only_runs_that_could_not_run(tmp_path: Path) -> None:
    lacks = [Event(kind="cannot run", text="m1: no route to host", needed=True)]
    unexpected = [verdict(), verdict(Judgement.INVALID, expected=False)]
    file = suite_file(*(case(name) for name in "abcd"))
    World(tmp_path, {"a": lacks, "d": [Event(kind="failed", text="killed")]}, verdicts=unexpected).run(file)
    ended = [RunOutcome.CANNOT_RUN, RunOutcome.EXPECTED, RunOutcome.UNEXPECTED, RunOutcome.CRASHED]
    assert outcomes(file) == ended
    for later, outcome in (
        (World(tmp_path, {"a": lacks}), RunOutcome.CANNOT_RUN),
        (World(tmp_path), RunOutcome.EXPECTED),
    ):
        again = SuiteFile.read(left(tmp_path))
        resume(again, tmp_path, later.actions().clean)
        assert (again.runs[0].outcome, again.runs[0].why, again.runs[0].needed) == (RunOutcome.WAITING, "", False)
        later.run(again)
        assert [line for line in later.log if line.startswith("up")] == ["up a"]
        assert outcomes(again) == [outcome, *ended[1:]]
    assert len(list((tmp_path / "a").iterdir())) == 1
    assert to_resume(tmp_path, []) is None


def test_resume_removes_a_begun_run_that_could_not_run_and_notes_it_as_abandoned(tmp_path: Path) -> None:
    file = suite_file(case("a", seed=7), case("b", seed=7))
    for name, moment in (("a", "20250101"), ("a", "20250102"), ("b", "20250101")):
        record(tmp_path, name, 7, State.INTERRUPTED, moment=moment)
    for run in file.runs:
        run.outcome = RunOutcome.CANNOT_RUN
    file.runs[0].earlier, file.runs[0].directory = ["a/20250101-7"], "a/20250102-7"
    world = World(tmp_path)
    resume(file, tmp_path, world.actions().clean)
    assert outcomes(file) == [RunOutcome.WAITING] * 2
    assert world.cleaned == ["a/20250102-7"], "b never began: the run there is another suite's"
    assert [run.abandoned for run in file.runs] == [["a/20250102-7"], []]
    world.run(file)
    assert [run.directory for run in file.runs] == ["a/20260101-7", "b/20260101-7"]


@pytest.mark.parametrize("needed", [False, True])
def test_a_suite_that_skips_runs_resumes_only_those_that_lack_a_common_need(needed: bool, tmp_path: Path) -> None:
    file = suite_file(case("a"), case("b"), cannot_run="skip")
    lacks = Event(kind="cannot run", text="no netem", needed=needed)
    directory = World(tmp_path, {"a": [lacks]}).run(file)
    if needed:
        assert to_resume(tmp_path, []) == directory
    else:
        assert to_resume(tmp_path, []) is None


@pytest.mark.parametrize(
    ("judged", "outcome"), [(Judgement.INVALID, RunOutcome.UNEXPECTED), (Judgement.UNKNOWN, RunOutcome.UNKNOWN)]
)
def test_a_verdict_that_was_not_expected_is_marked_as_that(
    judged: Judgement, outcome: RunOutcome, tmp_path: Path
) -> None:
    file = suite_file(case("a"))
    World(tmp_path, verdicts=[verdict(judged, expected=False)]).run(file)
    assert outcomes(file) == [outcome]


def test_a_disk_that_is_full_is_no_defect_of_the_judge(tmp_path: Path) -> None:
    file = suite_file(case("a"))
    World(tmp_path, verdicts=[OSError(errno.ENOSPC, "No space left on device", "verdict.json")]).run(file)
    assert file.runs[0].why == "not judged, --resume tries again: verdict.json: No space left on device"


def test_a_failed_judge_leaves_its_run_to_resume_and_the_next_run_is_judged(tmp_path: Path) -> None:
    file = suite_file(case("a"), case("b"), case("c"))
    directory = World(tmp_path, verdicts=[HistoryError("torn"), ZeroDivisionError("oops")]).run(file)
    assert outcomes(file) == [RunOutcome.RECORDED, RunOutcome.RECORDED, RunOutcome.EXPECTED]
    assert exit_code(file) == codes.CRASHED
    assert file.runs[0].why == "not judged, --resume tries again: torn"
    assert "defect: ZeroDivisionError: oops" in file.runs[1].why
    assert "ZeroDivisionError" in (directory / "logs/2.judge.log").read_text()
    assert {name: (len(of.judged), of.crashed) for name, of in of_suite(directory, print).items()} == {
        "a": (0, 1),
        "b": (0, 1),
        "c": (1, 0),
    }
    again, later = SuiteFile.read(left(tmp_path)), World(tmp_path)
    resume(again, tmp_path, later.actions().clean)
    later.run(again)
    assert (outcomes(again), exit_code(again)) == ([RunOutcome.EXPECTED] * 3, codes.MET)
    assert [line for line in later.log if line.startswith(("up", "judge "))] == ["judge made", "judge a", "judge b"]


def test_a_run_whose_judge_fails_again_crashed_and_its_suite_comes_to_its_end(tmp_path: Path) -> None:
    file = suite_file(case("a"), case("b"))
    World(tmp_path, verdicts=[HistoryError("torn"), verdict()]).run(file)
    again, later = SuiteFile.read(left(tmp_path)), World(tmp_path, verdicts=[HistoryError("torn")])
    resume(again, tmp_path, later.actions().clean)
    later.run(again)
    assert outcomes(again) == [RunOutcome.CRASHED, RunOutcome.EXPECTED]
    assert again.runs[0].why == (
        "its judge failed 2 times, the last time: torn;"
        f" the recording is whole, `kafka-trial check {tmp_path / str(again.runs[0].directory)}` judges it"
    )
    assert exit_code(again) == codes.CRASHED
    assert to_resume(tmp_path, []) is None


def test_the_seconds_of_a_run_judged_by_resume_exclude_the_pause(tmp_path: Path) -> None:
    file = suite_file(case("a", seed=7))
    file.runs[0].outcome, file.runs[0].began = RunOutcome.RUNNING, -86_400.0
    record(tmp_path, "a", 7)
    world = World(tmp_path)
    resume(file, tmp_path, world.actions().clean)
    world.run(file)
    assert file.runs[0].seconds is not None
    assert 0 < file.runs[0].seconds < 60


def test_an_interrupted_suite_waits_for_no_judge_and_resume_judges_the_run(tmp_path: Path) -> None:
    file = suite_file(case("a"))
    world = World(tmp_path, hanging_judge=True)
    with pytest.raises(KeyboardInterrupt):
        world.run(file, display=InterruptsTheJudge())
    assert "judge abandoned" in world.log
    assert outcomes(file) == [RunOutcome.RECORDED]
    later = World(tmp_path)
    resume(file, tmp_path, later.actions().clean)
    later.run(file)
    assert (outcomes(file), later.log) == ([RunOutcome.EXPECTED], ["judge made", "judge a"])


def test_a_suite_that_ends_by_itself_abandons_no_judge(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.run(suite_file(case("a")))
    assert "judge abandoned" not in world.log


def test_no_run_is_started_that_would_end_beyond_the_budget_and_a_shorter_one_still_is(tmp_path: Path) -> None:
    file = suite_file(case("long", seconds=500), case("short", seconds=50), time_budget=100.0)
    World(tmp_path).run(file)
    assert outcomes(file) == [RunOutcome.NOT_STARTED, RunOutcome.EXPECTED]
    assert "time budget" in file.runs[0].why


def test_an_interrupted_run_that_resume_leaves_out_took_no_time(tmp_path: Path) -> None:
    file = suite_file(case("long", seconds=500))
    with pytest.raises(KeyboardInterrupt):
        World(tmp_path, {"long": [Event(kind="failed", text="hangs")]}, interrupts=True).run(file)
    resume(file, tmp_path, World(tmp_path).actions().clean, budget=100.0)
    World(tmp_path, seconds=40_000.0).run(file)
    assert (outcomes(file), file.runs[0].seconds) == ([RunOutcome.NOT_STARTED], None)


def test_resume_runs_scenarios_that_the_budget_left_out(tmp_path: Path) -> None:
    file = suite_file(case("long", seconds=500), case("short", seconds=50), time_budget=100.0)
    World(tmp_path).run(file)
    directory = left(tmp_path)
    again, later = SuiteFile.read(directory), World(tmp_path)
    resume(again, tmp_path, later.actions().clean)
    later.run(again)
    assert outcomes(again) == [RunOutcome.EXPECTED] * 2
    assert [line for line in later.log if line.startswith("up")] == ["up long"]
    assert "time budget" not in again.runs[0].why
    assert to_resume(tmp_path, []) is None


def test_a_run_whose_recorder_was_ending_when_the_suite_was_interrupted_is_not_left_running(tmp_path: Path) -> None:
    file = suite_file(case("a"), case("b"))
    with pytest.raises(KeyboardInterrupt):
        World(tmp_path, interrupted_waits=1).run(file)
    assert outcomes(file) == [RunOutcome.INTERRUPTED] * 2
    resume(file, tmp_path, lambda _: None)
    World(tmp_path).run(file)
    assert outcomes(file) == [RunOutcome.EXPECTED] * 2


def test_the_reports_are_there_while_a_suite_goes_on(tmp_path: Path) -> None:
    """A process that is killed cannot write them."""

    class Watches(Silent):
        """Ctrl-C as soon as the reports are as expected."""

        def runs(self, file: SuiteFile, doing: Mapping[int, str]) -> None:
            written = tmp_path / "suite-some-1" / "junit.xml"
            if outcomes(file) != [RunOutcome.EXPECTED, RunOutcome.RUNNING, RunOutcome.WAITING] or not written.exists():
                return
            cases = ET.fromstring(written.read_text()).iter("testcase")
            if [[one.tag for one in each] for each in cases] == [
                ["system-out"],
                ["error", "system-out"],
                ["skipped", "system-out"],
            ]:
                raise KeyboardInterrupt

    hangs = {"b": [Event(kind="failed", text="hangs")]}
    with pytest.raises(KeyboardInterrupt):
        World(tmp_path, hangs).run(suite_file(case("a"), case("b"), case("c")), display=Watches())


def test_a_run_that_was_interrupted_before_it_had_a_recorder_waits(tmp_path: Path) -> None:
    class Interrupted(World):
        def actions(self) -> Actions:
            def start(*_: object) -> NoReturn:
                raise KeyboardInterrupt

            return replace(super().actions(), start=start)

    file = suite_file(case("a"), case("b"))
    with pytest.raises(KeyboardInterrupt):
        Interrupted(tmp_path).run(file)
    assert outcomes(file) == [RunOutcome.WAITING] * 2
    assert outcomes(SuiteFile.read(tmp_path / "suite-some-1")) == [RunOutcome.WAITING] * 2


def test_reports_of_a_large_suite_take_a_share_of_its_time(tmp_path: Path) -> None:
    """Each takes longer than to end a run that the time budget leaves out."""
    file = suite_file(*(case(f"c{number}") for number in range(300)))
    file.time_budget = 0.0
    written = tmp_path / "suite-some-1" / "junit.xml"
    times = set[int]()

    class Watches(Silent):
        def ended(self, number: int, run: Result) -> None:
            times.add(written.stat().st_mtime_ns)

    World(tmp_path).run(file, display=Watches())
    assert outcomes(file) == [RunOutcome.NOT_STARTED] * 300
    assert len(times) < 100


def test_an_interrupted_suite_ends_its_current_run_and_resume_runs_the_rest(tmp_path: Path) -> None:
    file = suite_file(case("a"), case("b"), case("c"))
    hangs = {"b": [Event(kind="failed", text="hangs")]}
    world = World(tmp_path, hangs, interrupts=True)
    with pytest.raises(KeyboardInterrupt):
        world.run(file)
    assert outcomes(file) == [RunOutcome.EXPECTED, RunOutcome.INTERRUPTED, RunOutcome.WAITING]
    assert "broken off b" in world.log
    assert [run.seconds is None for run in file.runs] == [False, False, True]

    directory = left(tmp_path)
    again = SuiteFile.read(directory)
    assert again.ended is None
    later = World(tmp_path)
    resume(again, tmp_path, later.actions().clean)
    later.run(again)
    assert outcomes(again) == [RunOutcome.EXPECTED] * 3
    assert [line for line in later.log if line.startswith("up")] == ["up b", "up c"], "a is not repeated"
    assert again.spent > file.spent
    assert to_resume(tmp_path, []) is None


def test_resume_judges_a_run_recorded_before_the_suite_was_killed(tmp_path: Path) -> None:
    file = suite_file(case("a", seed=7), case("b", seed=8))
    file.runs[0].outcome = RunOutcome.RUNNING
    record(tmp_path, "a", 7)
    world = World(tmp_path)
    resume(file, tmp_path, world.actions().clean)
    assert outcomes(file) == [RunOutcome.RECORDED, RunOutcome.WAITING]
    world.run(file)
    assert [line for line in world.log if line in {"up a", "up b", "judge a", "judge b"}] == [
        "up b",
        "judge a",
        "judge b",
    ]
    assert outcomes(file) == [RunOutcome.EXPECTED] * 2


def test_resume_repeats_an_incomplete_run_of_a_killed_suite_and_keeps_its_directory(
    tmp_path: Path,
) -> None:
    file = suite_file(case("a", seed=7))
    file.runs[0].outcome = RunOutcome.RUNNING
    torn = record(tmp_path, "a", 7, State.RUNNING, moment="20250101")
    world = World(tmp_path)
    resume(file, tmp_path, world.actions().clean)
    assert world.cleaned == ["a/20250101-7"]
    assert file.runs[0].abandoned == ["a/20250101-7"]
    assert torn.is_dir()
    world.run(file)
    assert (outcomes(file), file.runs[0].directory) == ([RunOutcome.EXPECTED], "a/20260101-7")


def test_a_run_that_says_nothing_of_itself_any_more_is_run_again_and_keeps_no_other_from_going_on(
    tmp_path: Path,
) -> None:
    file = suite_file(case("a", seed=7), case("b", seed=8))
    for run, state in zip(file.runs, (State.RUNNING, State.RECORDED), strict=True):
        run.outcome = RunOutcome.RUNNING
        record(tmp_path, run.scenario, run.seed, state, moment="20250101")
    (tmp_path / "a" / "20250101-7" / "run.json").write_text("{")
    world, lines = World(tmp_path), list[str]()
    resume(file, tmp_path, world.actions().clean, say=lines.append)
    assert outcomes(file) == [RunOutcome.WAITING, RunOutcome.RECORDED]
    assert (file.runs[0].abandoned, world.cleaned) == (["a/20250101-7"], [])
    [line] = lines
    assert line.startswith(f"{tmp_path}/a/20250101-7/run.json: not a run file of this version")
    assert line.endswith("run again; `kafka-trial cleanup` removes what it may have left on this machine")
    world.run(file)
    assert (outcomes(file), file.runs[0].directory) == ([RunOutcome.EXPECTED] * 2, "a/20260101-7")


def test_going_on_waits_for_a_recorder_that_is_still_ending(tmp_path: Path) -> None:
    file = suite_file(case("a", seed=7))
    file.runs[0].outcome = RunOutcome.RUNNING
    lock = RecordingLock(record(tmp_path, "a", 7, State.RUNNING))
    cleaned: list[str] = []

    def clean(file: RunFile) -> None:
        cleaned.append(file.run)

    Timer(0.2, lock.release).start()
    resume(file, tmp_path, clean)
    assert cleaned == ["a/20260101-7"]


def test_going_on_takes_no_run_of_another_suite_that_had_the_same_seed(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        record(tmp_path, name, 7, moment="20250101")
    file = suite_file(*(case(name, seed=7) for name in ("a", "b", "c")))
    world = World(tmp_path, {"b": [Event(kind="failed", text="hangs")]}, interrupts=True)
    with pytest.raises(KeyboardInterrupt):
        world.run(file)
    assert outcomes(file) == [RunOutcome.EXPECTED, RunOutcome.INTERRUPTED, RunOutcome.WAITING]
    assert [run.directory for run in file.runs] == ["a/20260101-7", None, None]
    later = World(tmp_path)
    resume(file, tmp_path, later.actions().clean)
    later.run(file)
    assert [line for line in later.log if line.startswith("up")] == ["up b", "up c"], "both run, none is taken over"
    assert [run.directory for run in file.runs] == ["a/20260101-7", "b/20260101-7", "c/20260101-7"]


def test_a_run_that_never_came_to_a_directory_has_none_though_one_of_its_seed_is_there(tmp_path: Path) -> None:
    record(tmp_path, "a", 7, moment="20250101")
    file = suite_file(case("a", seed=7))
    world = World(tmp_path, {"a": [Event(kind="failed", text="does not come up")]})
    world.run(file)
    assert (file.runs[0].directory, world.cleaned) == (None, [])


def test_an_interrupted_run_is_cleaned_up_if_its_recorder_did_not(tmp_path: Path) -> None:
    file = suite_file(case("a", seed=7))
    world = World(tmp_path, {"a": [Event(kind="failed", text="hangs and leaves its cluster")]}, interrupts=True)
    with pytest.raises(KeyboardInterrupt):
        world.run(file)
    assert world.cleaned == ["a/20260101-7"]


def test_resume_refuses_a_suite_in_progress(tmp_path: Path) -> None:
    directory = tmp_path / "suite-some-20260101T000000.000Z"
    directory.mkdir()
    suite_file(case("a")).write(directory)
    with worked_on(directory):
        with pytest.raises(ScenarioError, match=f"{directory}: this suite is still going"):
            to_resume(tmp_path, [])
        with pytest.raises(ScenarioError, match="still going"), worked_on(directory):
            pass
    assert to_resume(tmp_path, []) == directory


def test_two_suites_that_draw_the_same_at_once_take_no_run_of_each_other(tmp_path: Path) -> None:
    file = suite_file(case("a", seed=7))
    World(tmp_path, beside=["20260102"]).run(file)
    assert file.runs[0].directory == "a/20260101-7"


def kept(store: Path, day: int, outcome: RunOutcome, ended: bool = True) -> Path:
    """A suite of one run."""
    directory = store / f"suite-some-2026010{day}T000000.000Z"
    directory.mkdir()
    file = suite_file(case("a"), ended=float(day) if ended else None)
    file.runs[0].outcome = outcome
    file.write(directory)
    return directory


def test_resume_refuses_an_older_suite_while_the_newest_is_in_progress(tmp_path: Path) -> None:
    older = kept(tmp_path, 1, RunOutcome.INTERRUPTED, ended=False)
    with worked_on(newest := kept(tmp_path, 2, RunOutcome.RUNNING, ended=False)):
        with pytest.raises(ScenarioError, match=f"{newest}: this suite is still going"):
            to_resume(tmp_path, [])
        # Nor is one that nothing is left of any more, until it is over.
        kept_on = SuiteFile.read(newest)
        kept_on.runs[0].outcome, kept_on.ended = RunOutcome.EXPECTED, 1.0
        kept_on.write(newest)
        with pytest.raises(ScenarioError, match="still going"):
            to_resume(tmp_path, [])
    assert to_resume(tmp_path, []) == older, "it was broken off"


@pytest.mark.parametrize(
    ("outcome", "goes_on"),
    [
        (RunOutcome.CANNOT_RUN, False),
        (RunOutcome.NOT_STARTED, True),
        (RunOutcome.RECORDED, True),
        (RunOutcome.EXPECTED, False),
    ],
)
def test_a_newer_suite_replaces_an_older_one_only_if_that_could_not_run(
    outcome: RunOutcome, goes_on: bool, tmp_path: Path
) -> None:
    older = kept(tmp_path, 1, outcome)
    assert outcome is RunOutcome.EXPECTED or to_resume(tmp_path, []) == older
    kept(tmp_path, 2, RunOutcome.EXPECTED)
    if goes_on:
        assert to_resume(tmp_path, []) == older
        return
    assert to_resume(tmp_path, []) is None


def test_resume_takes_the_newest_suite_with_a_run_that_could_not_run(tmp_path: Path) -> None:
    kept(tmp_path, 1, RunOutcome.CANNOT_RUN)
    newest = kept(tmp_path, 2, RunOutcome.CANNOT_RUN)
    assert to_resume(tmp_path, []) == newest


def test_a_run_that_cannot_run_again_hides_no_older_interrupted_suite(tmp_path: Path) -> None:
    older = kept(tmp_path, 1, RunOutcome.INTERRUPTED, ended=False)
    newest = kept(tmp_path, 2, RunOutcome.CANNOT_RUN)
    lacks = [Event(kind="cannot run", text="no netem here")]

    def goes_on() -> Path:
        directory = left(tmp_path)
        file, later = SuiteFile.read(directory), World(tmp_path, {"a": lacks})
        resume(file, tmp_path, later.actions().clean)
        later.run(file)
        file.write(directory)
        return directory

    assert SuiteFile.read(newest).runs[0].refused == 0, "as before that was counted"
    assert goes_on() == newest, "what was missing may be there by now"
    assert goes_on() == older, "it could not run again"
    assert goes_on() == newest, "nothing else is left"
    file = SuiteFile.read(newest)
    assert (file.runs[0].outcome, file.runs[0].refused) == (RunOutcome.CANNOT_RUN, 3)


def test_a_run_that_could_not_run_twice_hides_no_other_run_of_its_suite(tmp_path: Path) -> None:
    kept(tmp_path, 1, RunOutcome.INTERRUPTED, ended=False)
    newest = tmp_path / "suite-some-20260102T000000.000Z"
    newest.mkdir()
    file = suite_file(case("a"), case("b"), ended=2.0)
    file.runs[0].outcome, file.runs[0].refused, file.runs[1].outcome = RunOutcome.CANNOT_RUN, 2, RunOutcome.NOT_STARTED
    file.write(newest)
    assert left(tmp_path) == newest


def test_resume_takes_the_suite_that_was_asked_for(tmp_path: Path) -> None:
    asked = {"some": ["a/*"], "some-more": ["some-more"]}
    for moment, (name, named) in enumerate(asked.items()):
        directory = tmp_path / f"suite-{name}-2026010{moment}T000000.000Z"
        directory.mkdir()
        suite_file(case("a"), suite=name, named=named).write(directory)
    assert left(tmp_path, "a/*").name == "suite-some-20260100T000000.000Z"
    assert to_resume(tmp_path, ["b/*"]) is None


def test_urgency_knows_which_scenarios_failed_or_were_left_out_last_time(tmp_path: Path) -> None:
    bad = verdict(Judgement.INVALID, expected=False)
    file = suite_file(case("a"), case("a", 2), case("b"), case("c", seconds=999), time_budget=500)
    World(tmp_path, verdicts=[bad, verdict()]).run(file)
    other = tmp_path / "suite-other-1"
    other.mkdir()
    (other / "suite.json").write_text("{}")
    before = tmp_path / "before"
    (before / "suite-some-0").mkdir(parents=True)
    ran = suite_file(case("a"), case("d"), began=-1.0)
    ran.runs[1].outcome, ran.runs[0].outcome = RunOutcome.NOT_STARTED, RunOutcome.EXPECTED
    ran.write(before / "suite-some-0")
    assert urgency([tmp_path, before]) == {
        "a": Urgency.FAILED,
        "b": Urgency.NONE,
        "c": Urgency.LEFT_OUT,
        "d": Urgency.LEFT_OUT,
    }, "a suite of another version keeps nobody from running"


def test_a_suite_file_that_is_none_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "suite.json").write_text("{")
    with pytest.raises(HistoryError, match=r"suite.json: not a suite file of this version"):
        SuiteFile.read(tmp_path)
    suite_file(case("a")).write(tmp_path)
    later = json.loads((tmp_path / "suite.json").read_text()) | {"schema": 2}
    (tmp_path / "suite.json").write_text(json.dumps(later))
    with pytest.raises(HistoryError, match=r"suite.json: not a suite file of this version"):
        SuiteFile.read(tmp_path)
