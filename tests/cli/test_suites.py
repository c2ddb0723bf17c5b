"""``suite``, ``runs``, ``compare``, ``prune``, and ``run --no-judge``."""

import copy
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from harness.cli import codes
from harness.cli.backends import Backends
from harness.cli.suite import exit_code
from harness.core.errors import EnvironmentLacks
from harness.core.verdict import Judgement, Verdict
from harness.history.journal import Journal, journal_path
from harness.history.lock import RecordingLock
from harness.history.run_file import PhaseReport, RunFile, State
from harness.history.schema import SENDS
from harness.history.store import state_now
from harness.report import write as write_reports
from harness.scenario.model import Scenario
from harness.suite.junit import render
from harness.suite.measure import choose
from harness.suite.pruning import size_of
from harness.suite.recorder import Event, Order
from harness.suite.reports import annotations
from harness.suite.results import RunOutcome, SuiteFile, stored_suites
from harness.suite.stored import read_run
from tests.checkers.notation import by_hand
from tests.cli.conftest import judging
from tests.cli.test_commands import assert_one_line
from tests.command import WITHOUT_PRIVILEGES, Invoke
from tests.report.verdicts import verdict
from tests.suite.fakes import World, case, record, suite_file

TWO = ("delivery/at-least-once", "delivery/at-most-once")


def backends(world: World, **others: Callable[..., Any]) -> Backends:
    actions = world.actions()
    acts: dict[str, Callable[..., Any]] = {
        "recorder": actions.start,
        "judge": lambda master, conf, rows: actions.judge(),
        "abandon": actions.abandon,
        "clean": actions.clean,
        "look": lambda: None,
    }
    return Backends(**{**acts, **others})


def judged(store: Path, scenario: str, seed: int = 1, **changes: object) -> Path:
    directory = record(store, scenario, seed)
    write_reports(directory, verdict(**changes), read_run(directory).file)  # type: ignore[arg-type]
    return directory


def test_suite_without_a_name_lists_them(kafka_trial: Invoke) -> None:
    done = kafka_trial("suite")
    assert done.code == 0
    assert any(line.startswith("quick ") and "ten minutes" in line for line in done.out.splitlines())


def test_suite_runs_all_and_tells_a_table_the_count_and_where_to_read_on(tmp_path: Path, kafka_trial: Invoke) -> None:
    done = kafka_trial("suite", *TWO, "--store", str(tmp_path), backends=backends(World(tmp_path)))
    assert done.code == 0
    *_, count, index = done.out.splitlines()
    assert count.startswith("2 of 2 runs as expected, in ")
    assert Path(index.strip()).is_file()
    assert all(any(name in line and "1 of 1" in line for line in done.out.splitlines()) for name in TWO)
    [directory] = tmp_path.glob("suite-scenarios-*")
    assert {path.name for path in directory.iterdir()} >= {"suite.json", "junit.xml", "summary.md", "index.html"}


def test_texts_of_others_are_printed_without_markup(tmp_path: Path, kafka_trial: Invoke) -> None:
    why = "Error response from daemon: mount [/var/lib/x]: denied :smile: [red]"
    store = tmp_path / "[red]x[/nope]"
    world = World(store, {TWO[0]: [Event(kind="failed", text=why)]})
    done = kafka_trial("suite", *TWO, "--store", str(store), backends=backends(world))
    assert done.code == codes.CRASHED
    assert why in done.out
    run = judged(store, "a")
    file = read_run(run).file
    file.scenario_name = "x[/b]y"
    file.write(run)
    listed = kafka_trial("runs", str(store))
    assert (listed.code, listed.err) == (codes.MET, "")
    assert "x[/b]y" in listed.out
    assert f"runs in {store}" in listed.out
    compared = kafka_trial("compare", str(store), str(store))
    assert (compared.code, compared.err) == (codes.MET, "")
    assert "x[/b]y" in compared.out


def test_a_name_that_somebody_else_wrote_is_no_line_of_ours(tmp_path: Path, kafka_trial: Invoke) -> None:
    for store, name in (("old", "a\n0 of 9 worse"), ("new", "b")):
        run = judged(tmp_path / store, store)
        file = read_run(run).file
        file.scenario_name = name
        file.write(run)
        suite_ = suite_file(case(name), ended=1.0)
        suite_.runs[0].judged(verdict())
        suite_.runs[0].directory = str(run.relative_to(tmp_path / store))
        directory = tmp_path / store / "suite-some-20260101T000000.000Z"
        directory.mkdir()
        suite_.write(directory)
    done = kafka_trial("compare", tmp_path / "old", tmp_path / "new")
    assert (done.code, done.out.splitlines()[-1]) == (codes.NOT_MET, "1 of 2 worse")
    listed = kafka_trial("runs", tmp_path / "old")
    for out in (done.out, listed.out):
        assert not [line for line in out.splitlines() if line.startswith("0 of 9")]
        assert "a\\n0 of 9 worse" in out


def test_why_a_run_stands_as_it_does_is_a_line_of_its_own_below_the_table(tmp_path: Path, kafka_trial: Invoke) -> None:
    why = "no engine answers, " * 20 + "start one"
    world = World(tmp_path, {TWO[0]: [Event(kind="cannot run", text=why)]})
    done = kafka_trial("suite", *TWO, "--store", str(tmp_path), backends=backends(world))
    assert [line for line in done.out.splitlines() if "engine" in line] == [f"  {TWO[0]}: {why}"]


def test_suite_prints_suite_json_as_one_line(tmp_path: Path, kafka_trial: Invoke) -> None:
    done = kafka_trial(
        "suite", TWO[0], "--store", str(tmp_path), "--times", "3", "--json", backends=backends(World(tmp_path))
    )
    [line] = done.out.splitlines()
    found = [(run["outcome"], run["timeline_seconds"]) for run in json.loads(line)["runs"]]
    assert found == [("as expected", 10.0)] * 3


@pytest.mark.parametrize(("cores", "at_once"), [(8, 2), (4, 2), (3, 1), (1, 1)])
def test_no_more_clusters_run_at_once_than_there_are_cores_for(
    cores: int, at_once: int, tmp_path: Path, kafka_trial: Invoke
) -> None:
    world = World(tmp_path, {name: [Event(kind="failed", text="hangs")] for name in TWO}, interrupts=True)
    arguments = ["suite", *TWO, "--store", str(tmp_path), "--jobs", "2"]
    done = kafka_trial(*arguments, backends=backends(world, cores=lambda: cores))
    assert len([line for line in world.log if line.startswith("up ")]) == at_once
    reported = f"kafka-trial: --jobs 2: 1 at once, as this machine has {cores} cores, and a cluster takes two\n"
    assert done.err.startswith(reported) is (at_once == 1)


def test_suite_takes_images_from_the_given_place(tmp_path: Path, kafka_trial: Invoke) -> None:
    arguments = [
        "suite",
        TWO[0],
        "--images",
        "registry",
        "--set",
        "workload.rate=7",
        "--store",
        str(tmp_path),
        "--json",
    ]
    file = json.loads(kafka_trial(*arguments, backends=backends(World(tmp_path))).out)
    [run] = file["runs"]
    assert (run["name"], run["set"]) == (TWO[0], ["workload.rate=7", "cluster.images=registry"])
    assert file["settings"] == run["set"]


def test_suite_ends_with_the_worst_unexpected_code(tmp_path: Path, kafka_trial: Invoke) -> None:
    world = World(tmp_path, verdicts=[verdict(), verdict(Judgement.INVALID, expected=False)])
    assert kafka_trial("suite", *TWO, "--store", str(tmp_path), backends=backends(world)).code == codes.NOT_MET
    world = World(tmp_path, {TWO[0]: [Event(kind="failed", text="does not come up")]})
    done = kafka_trial("suite", *TWO, "--store", str(tmp_path), backends=backends(world))
    assert done.code == codes.CRASHED
    assert "does not come up" in done.out


def test_suite_refuses_wrong_input_before_it_starts_a_run(tmp_path: Path, kafka_trial: Invoke) -> None:
    world = World(tmp_path)
    for arguments, says in (
        (["nobody"], "no suite or file is called 'nobody'"),
        ([TWO[0], "--set", "topic.partitons=2"], "did you mean"),
        ([TWO[0], "--time-budget", "90"], "has no unit"),
        ([TWO[0], "--time-budget", "0s"], "0s is not enough time"),
        ([TWO[0], "--times", "1000000000"], "suite scenarios: more than 10,000 runs"),
        (["nightly", "--times", "1000"], "suite nightly: more than 10,000 runs"),
        ([TWO[0], "--resume"], f"no suite of {TWO[0]} was broken off here"),
        (["nightli", "--resume"], "did you mean 'nightly'"),
        (["--jobs", "2"], "which suite?"),
        (["--resume"], "which suite?"),
        ([TWO[0], "--resume", "--times", "2"], "--resume continues a suite"),
    ):
        done = kafka_trial("suite", *arguments, "--store", str(tmp_path), backends=backends(world))
        assert done.code == codes.BAD_INPUT
        assert says in done.err
    assert (world.log, list(tmp_path.iterdir())) == ([], [])


#: Inventories that say nothing, and what is said of each.
UNREADABLE = {
    "missing": (None, "the inventory cannot be read (No such file or directory): see docs/machines.md"),
    "broken": (b"hosts: [", "no valid YAML"),
    "binary": (b"\xff", "is not text in UTF-8"),
    "empty": (b"", "an inventory is a mapping with a list of hosts"),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_an_unreadable_inventory_is_one_line_and_one_code_in_every_command(
    kind: str, tmp_path: Path, kafka_trial: Invoke
) -> None:
    written, says = UNREADABLE[kind]
    path, store, world = tmp_path / "inventory.yaml", tmp_path / "store", World(tmp_path)
    if written is not None:
        path.write_bytes(written)
    mine = tmp_path / "mine.yaml"
    mine.write_text("cluster: {machines: inventory.yaml}\n")
    for arguments in (
        ["suite", TWO[0], "--set", f"cluster.machines={path}", "--store", store],
        ["suite", TWO[0], mine, "--store", store],
        ["run", mine, "--store", store],
        ["run", TWO[0], "--machines", path, "--store", store],
        ["doctor", mine],
        ["doctor", TWO[0], "--machines", path],
        ["cleanup", "--machines", path],
    ):
        acts = backends(world) if arguments[0] == "suite" else Backends()
        assert_one_line(kafka_trial(*arguments, backends=acts), codes.BAD_INPUT, says)
    assert (world.log, store.exists()) == ([], False)


def test_the_run_that_needs_it_reports_an_inventory_that_cannot_be_read_on_resume(
    tmp_path: Path, kafka_trial: Invoke
) -> None:
    path = tmp_path / "inventory.yaml"
    path.write_text("hosts: [{address: 10.0.0.1}]\n")
    (tmp_path / "a.yaml").write_text("cluster: {machines: inventory.yaml}\n")
    arguments = ["suite", tmp_path / "a.yaml", "--store", tmp_path]
    lacks = {str(tmp_path / "a.yaml"): [Event(kind="cannot run", text="10.0.0.1 does not answer")]}
    assert kafka_trial(*arguments, backends=backends(World(tmp_path, lacks))).code == codes.CANNOT_RUN
    path.rename(tmp_path / "away")
    gone = {str(tmp_path / "a.yaml"): [Event(kind="cannot run", text="cannot be read", needed=True)]}
    done = kafka_trial(*arguments, "--resume", backends=backends(World(tmp_path, gone)))
    assert (done.code, the_last(tmp_path).runs[0].alone) == (codes.CANNOT_RUN, ["machine 10.0.0.1"]), "as it was"
    path.write_text("hosts: [{address: 10.0.0.2}]\n")
    later = World(tmp_path)
    assert kafka_trial(*arguments, "--resume", backends=backends(later)).code == codes.MET
    assert [line for line in later.log if line.startswith("up")] == [f"up {tmp_path}/a.yaml"]
    [directory] = tmp_path.glob("suite-scenarios-*")
    assert SuiteFile.read(directory).runs[0].alone == ["machine 10.0.0.2"], "as it was mended"


@pytest.mark.parametrize("gone", ["inventory.yaml", "a.yaml"])
def test_an_unreadable_file_of_one_run_does_not_stop_the_other_runs(
    gone: str, tmp_path: Path, kafka_trial: Invoke
) -> None:
    """A waiting run starts, a recorded run is judged, and runs that need the same machine still exclude each other."""
    names = [str(tmp_path / f"{name}.yaml") for name in "abcd"]
    for name, inventory in zip(names, ["inventory", "inventory", "other", None], strict=True):
        cluster = f"cluster: {{machines: {inventory}.yaml}}" if inventory else "claim: x"
        Path(name).write_text(cluster + "\n")
    for inventory in ("inventory", "other"):
        (tmp_path / f"{inventory}.yaml").write_text("hosts: [{address: 10.0.0.1}]\n")
    store = tmp_path / "store"
    arguments = ["suite", *names, "--store", store]
    lacks = [Event(kind="cannot run", text="10.0.0.1 does not answer")]
    world = World(store, dict.fromkeys(names[:3], lacks), verdicts=[RuntimeError("the judge died")])
    kafka_trial(*arguments, backends=backends(world))
    (tmp_path / gone).unlink()
    (tmp_path / "other.yaml").write_text("hosts: [{address: 10.0.0.2}]\n")
    later = World(store, {names[0]: [Event(kind="cannot run", text="cannot be read", needed=True)]}, moment="20260102")
    done = kafka_trial(*arguments, "--resume", backends=backends(later))
    runs = {Path(run.written).stem: run for run in the_last(store).runs}
    assert done.code == codes.CANNOT_RUN
    assert {name: str(run.outcome) for name, run in runs.items()} == {
        "a": "cannot run",
        "b": "as expected",
        "c": "as expected",
        "d": "as expected",
    }
    assert [runs[name].alone for name in "abc"] == [["machine 10.0.0.1"]] * 2 + [["machine 10.0.0.2"]]
    assert "judge d" in later.log


def test_an_interrupted_suite_prints_its_resume_command_and_resumes(tmp_path: Path, kafka_trial: Invoke) -> None:
    world = World(tmp_path, {TWO[1]: [Event(kind="failed", text="hangs")]}, interrupts=True)
    done = kafka_trial("suite", *TWO, "--store", str(tmp_path), backends=backends(world))
    assert done.code == codes.CRASHED
    [directory] = tmp_path.glob("suite-scenarios-*")
    assert f"`kafka-trial suite {directory} --resume` continues it" in done.err
    assert "interrupted" in (directory / "summary.md").read_text()
    later = World(tmp_path)
    assert kafka_trial("suite", *TWO, "--resume", "--store", str(tmp_path), backends=backends(later)).code == 0
    assert [line for line in later.log if line.startswith("up")] == [f"up {TWO[1]}"]
    assert list(tmp_path.glob("suite-scenarios-*")) == [directory]


def test_resume_works_from_another_directory_and_beside_an_unreadable_suite(
    tmp_path: Path, kafka_trial: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text("claim: x\n")
    monkeypatch.chdir(tmp_path)
    world = World(tmp_path, {str(tmp_path / "b.yaml"): [Event(kind="failed", text="hangs")]}, interrupts=True)
    done = kafka_trial("suite", "a.yaml", "b.yaml", "--store", "store", backends=backends(world))
    assert done.code == codes.CRASHED
    old = tmp_path / "store" / "suite-scenarios-20200101T000000.000Z"
    old.mkdir()
    (old / "suite.json").write_text('{"schema": 0}')
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    later = World(tmp_path)
    arguments = ["suite", "../a.yaml", "../b.yaml", "--store", "../store", "--resume"]
    assert kafka_trial(*arguments, backends=backends(later)).code == codes.MET
    assert [line for line in later.log if line.startswith("up")] == [f"up {tmp_path}/b.yaml"]


@pytest.mark.parametrize(
    "named", ["a file", "a file of a pattern", "the store", "the baseline", "where the baseline leads to"]
)
def test_a_path_that_is_not_utf_8_is_one_line_and_nothing_is_begun(
    named: str, tmp_path: Path, kafka_trial: Invoke
) -> None:
    odd, store = tmp_path / os.fsdecode(b"a\xff"), tmp_path / "store"
    odd.mkdir()
    (odd / "a.yaml").write_text("claim: x\n")
    arguments = {
        "a file": [odd / "a.yaml", "--store", store],
        "a file of a pattern": [tmp_path / "a*" / "*.yaml", "--store", store],
        "the store": [TWO[0], "--store", odd],
        "the baseline": [TWO[0], "--store", store, "--baseline", odd],
        "where the baseline leads to": [TWO[0], "--store", store, "--baseline", tmp_path / "link"],
    }[named]
    (tmp_path / "link").symlink_to(odd)
    done = kafka_trial("suite", *arguments, backends=backends(World(tmp_path)))
    assert_one_line(done, codes.BAD_INPUT, "its name is not UTF-8: rename it")
    assert (store.exists(), list(odd.iterdir())) == (False, [odd / "a.yaml"])


def test_resume_refuses_a_path_that_is_not_utf_8(tmp_path: Path, kafka_trial: Invoke) -> None:
    odd, store = tmp_path / os.fsdecode(b"a\xff"), tmp_path / "store"
    world = World(store, {TWO[0]: [Event(kind="failed", text="hangs")]}, interrupts=True)
    kafka_trial("suite", TWO[0], "--store", store, backends=backends(world))
    [directory] = stored_suites(store)
    judged(tmp_path / "old", TWO[0])
    (tmp_path / "old").rename(odd)
    named = ["suite", directory, "--resume", "--baseline", odd]
    assert_one_line(kafka_trial(*named, backends=backends(World(store))), codes.BAD_INPUT, "its name is not UTF-8")
    shutil.rmtree(odd)
    store.rename(odd)
    again = ["suite", odd / directory.name, "--resume"]
    assert_one_line(kafka_trial(*again, backends=backends(World(odd))), codes.BAD_INPUT, "its name is not UTF-8")


def test_a_run_of_a_baseline_that_cannot_be_noted_is_named_and_left_out(tmp_path: Path, kafka_trial: Invoke) -> None:
    odd, store = tmp_path / "old" / os.fsdecode(b"a\xff"), tmp_path / "store"
    judged(tmp_path / "old", TWO[1])
    (judged(tmp_path / "other", TWO[0]).parents[2]).rename(odd)
    arguments = ["suite", *TWO, "--store", store, "--baseline", tmp_path / "old"]
    done = kafka_trial(*arguments, backends=backends(World(store)))
    assert done.code == codes.CANNOT_RUN, "there is one, and it is not compared"
    assert f"/a\\udcff/{TWO[0]}/20260101-1: left out of the comparison: its name is not UTF-8\n" in done.err
    measure = the_last(store).measure
    assert measure is not None
    assert {name: len(case.judged) for name, case in measure.cases.items()} == {TWO[0]: 0, TWO[1]: 1}


def refuses(*_: object) -> None:
    raise EnvironmentLacks("no java; Spark needs Java 17")


def test_a_suite_that_nothing_could_judge_is_not_begun(tmp_path: Path, kafka_trial: Invoke) -> None:
    world = World(tmp_path)
    done = kafka_trial("suite", *TWO, "--store", str(tmp_path), backends=backends(world, look=refuses))
    assert (done.code, world.log, list(tmp_path.iterdir())) == (codes.CANNOT_RUN, [], [])
    assert done.err == "kafka-trial: no java; Spark needs Java 17\n"


def test_resume_judges_recorded_runs_if_no_judge_could_start(tmp_path: Path, kafka_trial: Invoke) -> None:
    arguments = ["suite", *TWO, "--store", str(tmp_path)]
    done = kafka_trial(*arguments, backends=backends(World(tmp_path), judge=refuses))
    assert done.code == codes.CANNOT_RUN
    assert "--resume` continues it" in done.err
    [directory] = tmp_path.glob("suite-*")
    assert RunOutcome.RECORDED in SuiteFile.read(directory).counts()
    assert RunOutcome.CRASHED not in SuiteFile.read(directory).counts()
    later = World(tmp_path, moment="20270101")
    assert kafka_trial(*arguments, "--resume", backends=backends(later)).code == codes.MET
    assert len([line for line in later.log if line.startswith("judge d")]) == 2
    assert len([line for line in later.log if line.startswith("up ")]) == 1


def test_the_resume_command_is_quoted_for_a_shell(
    tmp_path: Path, kafka_trial: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And from another directory, though what the suite was started with is gone."""
    (tmp_path / "a.yaml").write_text("claim: x\n")
    monkeypatch.chdir(tmp_path)
    world = World(tmp_path, {str(tmp_path / "a.yaml"): [Event(kind="failed", text="hangs")]}, interrupts=True)
    done = kafka_trial("suite", "a.yaml", "--store", "my store", backends=backends(world))
    [directory] = tmp_path.glob("my store/suite-*")
    assert f"`kafka-trial suite '{directory}' --resume` continues it" in done.err
    (tmp_path / "a.yaml").unlink()
    monkeypatch.chdir("/")
    done = kafka_trial("suite", str(directory), "--resume", backends=backends(World(tmp_path / "my store")))
    assert (done.code, SuiteFile.read(directory).counts()) == (codes.MET, {RunOutcome.EXPECTED: 1})
    assert f"kafka-trial: continues {directory}: 0 of 1 runs as expected, 1 waiting\n" in done.err


def test_the_resume_command_has_the_options_of_the_first(tmp_path: Path, kafka_trial: Invoke) -> None:
    judged(tmp_path / "old", TWO[0])
    world = World(tmp_path, {TWO[0]: [Event(kind="failed", text="hangs")]}, interrupts=True)
    more = ["--jobs", "2", "--baseline", str(tmp_path / "old"), "--json"]
    done = kafka_trial("suite", TWO[0], "--store", str(tmp_path), *more, backends=backends(world, cores=lambda: 4))
    [directory] = tmp_path.glob("suite-*")
    assert f"`kafka-trial suite {directory} --jobs 2 --json --resume` continues it" in done.err
    done = kafka_trial("suite", directory, "--json", "--resume", backends=backends(World(tmp_path)))
    assert json.loads(done.out)["baseline"] == str(tmp_path / "old"), "it is in suite.json"


def broken_off(folder: Path, kafka_trial: Invoke, *named: str) -> Path:
    """A suite of these, begun from ``folder``, with none of its runs begun; returns its directory."""
    asked = backends(World(folder), recorder=refuses)
    assert kafka_trial("suite", *named, "--store", folder / "store", backends=asked).code == codes.CANNOT_RUN
    [directory] = folder.glob("store/suite-*")
    return directory


@pytest.mark.parametrize("name", ["a.yaml", "all.yaml"])
def test_resume_uses_the_files_as_they_were_when_the_suite_began(
    name: str, tmp_path: Path, kafka_trial: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The suite is found by the name that was typed, even if the file is gone."""
    text = "name: mine\nworkload: {rate: 7}\n"
    (tmp_path / "a.yaml").write_text(text)
    (tmp_path / "all.yaml").write_text("name: all-of-mine\nruns: [a.yaml]\n")
    monkeypatch.chdir(tmp_path)
    directory = broken_off(tmp_path, kafka_trial, name)
    for file in tmp_path.glob("*.yaml"):
        file.unlink()
    orders: list[Order] = []
    world = World(tmp_path / "store")
    start = world.actions().start

    def recorder(order: Order, log: Path, on_event: Callable[[Event], None]) -> Any:
        orders.append(order)
        return start(order, log, on_event)

    done = kafka_trial("suite", name, "--store", "store", "--resume", backends=backends(world, recorder=recorder))
    assert (done.code, [path.name for path in tmp_path.glob("store/suite-*")]) == (codes.MET, [directory.name])
    [order] = orders
    assert (order.written, order.text) == (str(tmp_path / "a.yaml"), text)


def test_resume_names_the_resumable_suites_if_none_matches(
    tmp_path: Path, kafka_trial: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.yaml").write_text("claim: x\n")
    monkeypatch.chdir(tmp_path)
    directory = broken_off(tmp_path, kafka_trial, "a.yaml")
    monkeypatch.chdir("/")
    asked = backends(World(tmp_path / "store"))
    done = kafka_trial("suite", "a.yaml", "--store", tmp_path / "store", "--resume", backends=asked)
    assert_one_line(done, codes.BAD_INPUT, "no suite of a.yaml was broken off here, left runs out, or could not run")
    assert f": {directory} was: name that directory" in done.err
    assert_one_line(
        kafka_trial("suite", directory, backends=asked), codes.BAD_INPUT, f"{directory}: this suite was started before"
    )
    assert kafka_trial("suite", directory, "--resume", backends=asked).code == codes.MET
    done = kafka_trial("suite", directory, "--resume", backends=asked)
    starts = f"`kafka-trial suite {tmp_path}/a.yaml` starts one"
    assert_one_line(done, codes.BAD_INPUT, f"{directory}: nothing of this suite is left to run: {starts}")
    done = kafka_trial("suite", directory, backends=asked)
    assert_one_line(
        done, codes.BAD_INPUT, f"{directory}: this suite was started before: nothing of it is left to run: {starts}"
    )


def test_only_a_file_that_changed_since_is_named(
    tmp_path: Path, kafka_trial: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for text, changed in (("claim: x\n", False), ("claim: y\n", True)):
        (tmp_path / "a.yaml").write_text("claim: x\n")
        directory = broken_off(tmp_path, kafka_trial, "a.yaml")
        (tmp_path / "a.yaml").write_text(text)
        done = kafka_trial("suite", directory, "--resume", backends=backends(World(tmp_path / "store")))
        line = f"kafka-trial: {tmp_path}/a.yaml has changed since: the suite continues with the old content\n"
        assert (done.code, line in done.err) == (codes.MET, changed)
        shutil.rmtree(tmp_path / "store")


def test_a_pattern_of_files_means_those_of_the_directory_that_it_was_named_in(
    tmp_path: Path, kafka_trial: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two projects that share a store, and each has its own."""
    for project in ("one", "two"):
        (tmp_path / project / "mine").mkdir(parents=True)
        (tmp_path / project / "mine" / f"{project}.yaml").write_text("claim: x\n")
    arguments = ["suite", "mine/*.yaml", "--store", tmp_path / "store"]
    monkeypatch.chdir(tmp_path / "one")
    world = World(tmp_path / "store", {f"{tmp_path}/one/mine/one.yaml": [Event(kind="failed", text="hangs")]})
    world.interrupts = True
    kafka_trial(*arguments, backends=backends(world))
    monkeypatch.chdir(tmp_path / "two")
    done = kafka_trial(*arguments, "--resume", backends=backends(World(tmp_path / "store")))
    assert_one_line(done, codes.BAD_INPUT, "no suite of 'mine/*.yaml' was broken off here")
    monkeypatch.chdir(tmp_path / "one")
    later = World(tmp_path / "store")
    assert kafka_trial(*arguments, "--resume", backends=backends(later)).code == codes.MET
    assert "up " + f"{tmp_path}/one/mine/one.yaml" in later.log


@pytest.mark.parametrize("name", ["quick", TWO[0], "delivery/*"])
def test_a_name_is_noted_as_one_though_a_file_is_called_alike(
    name: str, tmp_path: Path, kafka_trial: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "delivery").mkdir()
    for file in ("quick", TWO[0]):
        (tmp_path / file).write_text("")
    monkeypatch.chdir(tmp_path)
    kafka_trial("suite", name, "--store", "store", backends=backends(World(tmp_path / "store")))
    assert the_last(tmp_path / "store").named == [name]


def test_a_suite_resumes_only_in_its_own_store(tmp_path: Path, kafka_trial: Invoke) -> None:
    store = tmp_path / "store"
    world = World(store, {TWO[1]: [Event(kind="failed", text="hangs")]}, interrupts=True)
    kafka_trial("suite", *TWO, "--store", store, backends=backends(world))
    [directory] = stored_suites(store)
    done = kafka_trial("suite", directory, "--resume", "--store", tmp_path / "other", backends=backends(World(store)))
    assert_one_line(done, codes.BAD_INPUT, f"{directory}: a suite continues in its own store: leave --store")
    shutil.copytree(directory, tmp_path / "mine")
    away = World(tmp_path)
    done = kafka_trial("suite", tmp_path / "mine", "--resume", backends=backends(away))
    assert_one_line(done, codes.BAD_INPUT, f"none of its runs is in {tmp_path}: name it in the store that has them")
    assert away.log == []
    renamed = directory.rename(store / "mine")
    done = kafka_trial("suite", renamed, "--resume", "--store", store, backends=backends(World(store)))
    assert done.code == codes.MET, "its runs are there"


def test_a_path_that_is_none_in_suite_json_is_one_line(tmp_path: Path, kafka_trial: Invoke) -> None:
    kafka_trial("suite", TWO[0], "--store", tmp_path, backends=backends(World(tmp_path)))
    [directory] = stored_suites(tmp_path)
    written = json.loads((directory / "suite.json").read_text())
    written["runs"][0]["directory"] = "a\0b"
    (directory / "suite.json").write_text(json.dumps(written))
    for command in (["runs", directory], ["compare", directory, directory], ["check", directory]):
        done = kafka_trial(*command, backends=judging())
        assert_one_line(done, codes.BAD_INPUT, "not a suite file of this version")
    done = kafka_trial("prune", tmp_path, "--days", "0", "--dry-run")
    assert (done.code, done.err.count("\n")) == (codes.CANNOT_RUN, 1)
    assert "which runs it needs is unknown" in done.err


@pytest.mark.parametrize(
    "written",
    [
        "[" * 100_000,
        {"suite": '"\\ud800"'},
        *({key: value} for key in ("began", "spent") for value in ("NaN", "Infinity")),
        {"began": "1e300"},
    ],
    ids=lambda written: str(written)[:30],
)
def test_an_invalid_suite_json_is_reported_in_one_line(
    written: str | dict[str, str], tmp_path: Path, kafka_trial: Invoke
) -> None:
    hangs = {TWO[0]: [Event(kind="failed", text="hangs")]}
    kafka_trial("suite", TWO[0], "--store", tmp_path, backends=backends(World(tmp_path, hangs, interrupts=True)))
    [directory] = stored_suites(tmp_path)
    text = (directory / "suite.json").read_text()
    if isinstance(written, dict):
        [(key, value)] = written.items()
        written = re.sub(rf'"{key}": ("[a-z]+"|[0-9.e+]+)', lambda _: f'"{key}": {value}', text, count=1)
        assert written != text
    (directory / "suite.json").write_text(written)
    for command in (["runs", directory], ["compare", directory, directory], ["suite", directory, "--resume"]):
        done = kafka_trial(*command, backends=backends(World(tmp_path)))
        assert_one_line(done, codes.BAD_INPUT, "not a suite file of this version")


def test_the_summary_of_a_job_is_written_even_if_stdout_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = f"""
import sys
from pathlib import Path
from harness.cli.main import main
from tests.cli.test_suites import World, backends
main(sys.argv[1:], backends(World(Path({str(tmp_path / "store")!r}))))
"""
    reader, writer = os.pipe()
    os.close(reader)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary"))
    command = [sys.executable, "-c", program, "suite", TWO[0], "--store", tmp_path / "store", "--json"]
    with os.fdopen(writer) as pipe:
        done = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.returncode == codes.OUTPUT_CLOSED
    assert done.stderr.endswith("kafka-trial: standard output cannot be written: Broken pipe\n")
    assert "1 of 1 runs as expected" in (tmp_path / "summary").read_text()


def test_a_store_that_is_no_place_or_a_size_beyond_numbers_is_one_line(tmp_path: Path, kafka_trial: Invoke) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for arguments, code in (
        (["suite", TWO[0], "--store", str(loop)], codes.CANNOT_RUN),
        (["prune", str(loop), "--days", "1"], codes.BAD_INPUT),
        (["check", str(loop)], codes.BAD_INPUT),
        (["prune", str(tmp_path), "--size", "9" * 400 + "TB"], codes.BAD_INPUT),
        (["prune", str(tmp_path), "--size", "9" * 300 + "TB"], codes.BAD_INPUT),
        (["prune", str(tmp_path), "--days", "nan"], codes.BAD_INPUT),
        (["compare", str(tmp_path), str(tmp_path), "--tolerance", "nan"], codes.BAD_INPUT),
    ):
        done = kafka_trial(*arguments, backends=backends(World(tmp_path)))
        assert (done.code, done.err.count("\n"), "Traceback" in done.err) == (code, 1, False)


def test_json_of_a_suite_is_ascii(tmp_path: Path, kafka_trial: Invoke) -> None:
    """Whatever the locale, it can be written, and read as the UTF-8 that JSON is."""
    world = World(tmp_path, {TWO[0]: [Event(kind="failed", text="mount Größe\u2028 denied")]})
    done = kafka_trial("suite", TWO[0], "--store", str(tmp_path), "--json", backends=backends(world))
    assert done.out.isascii()
    assert json.loads(done.out)["runs"][0]["why"] == "mount Größe\u2028 denied"


def test_prune_leaves_the_baseline_of_the_next_suite(tmp_path: Path, kafka_trial: Invoke) -> None:
    arguments = ["suite", *TWO, "--store", str(tmp_path)]
    kafka_trial(*arguments, backends=backends(World(tmp_path)))
    [old] = tmp_path.glob("suite-*")
    said = kafka_trial("prune", str(tmp_path), "--days", "0").out
    assert said.startswith("2 runs stay, ")
    assert said.endswith(", 2 of them as the newest of their suites, or of one that is going on or can be continued\n")
    done = kafka_trial(*arguments, "--baseline", str(old), backends=backends(World(tmp_path)))
    assert done.code == codes.MET
    assert "0 of 2 worse" in done.out
    assert kafka_trial("prune", str(tmp_path), "--days", "0").out.splitlines()[-1].startswith("2 runs stay")


@pytest.mark.parametrize("left", ["broken off", "not started", "not compared"])
def test_prune_leaves_the_runs_that_a_resumable_suite_needs(left: str, tmp_path: Path, kafka_trial: Invoke) -> None:
    """They stay even if a run of the suite was worse, or if a later suite has newer runs."""
    arguments = ["suite", *TWO, "--store", tmp_path]
    kafka_trial(*arguments, backends=backends(World(tmp_path)))
    hangs = {TWO[1]: [Event(kind="failed", text="hangs")]} if left == "broken off" else {}
    world = World(tmp_path, hangs, interrupts=True, moment="20260102")
    kafka_trial(*arguments, "--baseline", tmp_path, backends=backends(world))
    [old, directory] = stored_suites(tmp_path)
    file = SuiteFile.read(directory)
    if left == "not started":
        shutil.rmtree(tmp_path / str(file.runs[1].directory))
        file.runs[1].outcome, file.runs[1].directory, file.runs[1].verdict = RunOutcome.NOT_STARTED, None, None
    if left == "not compared":
        assert file.measure is not None
        file.measure.compared = False
    file.write(directory)
    kafka_trial(*arguments, backends=backends(World(tmp_path, moment="20260103")))
    done = kafka_trial("prune", tmp_path, "--days", "0", "--unexpected")
    assert (done.code, done.out.splitlines()[-1].split(",")[0]) == (
        codes.MET,
        "5 runs stay" if left != "not compared" else "6 runs stay",
    )
    resumed = kafka_trial(*arguments, "--resume", backends=backends(World(tmp_path, moment="20260104")))
    assert (resumed.code, SuiteFile.read(directory).worse) == (codes.MET, {})
    assert f"continues {directory}" in resumed.err
    assert old.is_dir()


@pytest.mark.parametrize("damage", ["cut", "other version", "a folder", "gone"])
def test_a_suite_that_cannot_be_read_is_refused_on_resume_and_keeps_its_store_from_being_pruned(
    damage: str, tmp_path: Path, kafka_trial: Invoke
) -> None:
    store, apart = tmp_path / "store", judged(tmp_path / "other", "a")
    hangs = {TWO[1]: [Event(kind="failed", text="hangs")]}
    arguments = ["suite", *TWO, "--store", store]
    kafka_trial(*arguments, backends=backends(World(store, hangs, interrupts=True)))
    [directory] = stored_suites(store)
    path, text = directory / "suite.json", (directory / "suite.json").read_text()
    path.unlink()
    if damage == "a folder":
        path.mkdir()
    elif damage != "gone":
        path.write_text(text[:900] if damage == "cut" else text.replace('"schema"', '"newer": 1, "schema"'))
    for folder in (store, tmp_path):
        done = kafka_trial("prune", folder, "--days", "0", "--unexpected")
        assert (done.code, next(store.glob(f"{TWO[0]}/*/run.json"), None) is not None) == (codes.CANNOT_RUN, True)
        [line] = done.err.splitlines()
        assert line.startswith(f"kafka-trial: {path}: not a suite file of this version (")
        assert line.endswith(f": which runs it needs is unknown, so all of {store} stay")
        assert apart.exists() is (folder == store)
    done = kafka_trial(*arguments, "--resume", backends=backends(World(store)))
    first, last = done.err.splitlines()
    assert (done.code, first.startswith(f"kafka-trial: {path}: not a suite file")) == (codes.BAD_INPUT, True)
    assert f"no suite of {' '.join(TWO)} that can be read was broken off here" in last
    named = kafka_trial("suite", directory, "--resume", backends=backends(World(store)))
    assert_one_line(named, codes.BAD_INPUT, f"{path}: not a suite file of this version")


def test_prune_removes_the_suites_of_which_no_run_is_left_and_counts_them(tmp_path: Path, kafka_trial: Invoke) -> None:
    """Night for night, with what the last of them are compared with."""
    arguments = ["suite", *TWO, "--store", tmp_path, "--seed", "1"]
    for day in range(1, 4):
        kafka_trial(*arguments, backends=backends(World(tmp_path, moment=f"2026010{day}")))
    suites = stored_suites(tmp_path)
    would = kafka_trial("prune", tmp_path, "--days", "0", "--dry-run").out
    assert [f"would remove {one} (a suite without a run left)" in would for one in suites] == [True, True, False]
    assert would.endswith("; 2 suites without a run left would go\n")
    assert stored_suites(tmp_path) == suites
    theirs = Backends(writable=lambda folder: folder != suites[0])
    done = kafka_trial("prune", tmp_path, "--days", "0", backends=theirs)
    assert (done.code, stored_suites(tmp_path)) == (codes.CANNOT_RUN, [suites[0], suites[2]])
    assert f"left {suites[0]} (a suite without a run left) alone: {suites[0]} is not yours to empty\n" in done.out
    assert done.out.endswith("; 1 suite without a run left went\n")
    assert kafka_trial("prune", tmp_path, "--days", "1").out.endswith("can be continued\n"), "it is younger"
    done = kafka_trial("prune", tmp_path, "--days", "0")
    assert (done.code, stored_suites(tmp_path)) == (codes.MET, [suites[2]])
    assert done.out.splitlines()[-1].startswith("2 runs stay, ")


def test_prune_resolves_links_and_the_current_directory(
    tmp_path: Path, kafka_trial: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [judged(tmp_path / "store", name) for name in ("a", "b")]
    for run in runs:
        os.utime(run / "run.json", (0, 0))
    (tmp_path / "latest").symlink_to(runs[0])
    monkeypatch.chdir(runs[1])
    for named, run in ((str(tmp_path / "latest"), runs[0]), (".", runs[1])):
        done = kafka_trial("prune", named, "--days", "1")
        assert (done.code, done.err, run.exists()) == (codes.MET, "", False)
    monkeypatch.chdir(tmp_path)
    last = judged(tmp_path / "store", "c")
    os.utime(last / "run.json", (0, 0))
    kafka_trial("prune", str(last.parent), "--days", "1")
    assert (last.exists(), last.parent.is_dir()) == (False, True)


def test_prune_leaves_no_page_that_links_a_removed_run(tmp_path: Path, kafka_trial: Invoke) -> None:
    """The page of a suite marks a removed run as removed, and links the run that stays."""
    bad = verdict(Judgement.INVALID, expected=False)
    kafka_trial("suite", *TWO, "--store", tmp_path, backends=backends(World(tmp_path, verdicts=[bad])))
    kafka_trial("suite", *TWO, "--store", tmp_path, backends=backends(World(tmp_path, moment="20260102")))
    old, new = (directory / "index.html" for directory in stored_suites(tmp_path))
    before = [page.read_text() for page in (old, new)]
    kafka_trial("prune", tmp_path, "--days", "0", "--dry-run")
    assert [page.read_text() for page in (old, new)] == before
    assert kafka_trial("prune", tmp_path, "--days", "0").code == codes.MET
    links = [link for page in (old, new) for link in re.findall('href="([^"]+)"', page.read_text())]
    assert (len(links), all((old.parent / link).is_file() for link in links)) == (3, True)
    assert f'{TWO[1]} <span class="dim">removed</span>' in old.read_text()
    assert new.read_text() == before[1]


def test_prune_says_why_more_stays_than_was_asked_for(tmp_path: Path, kafka_trial: Invoke) -> None:
    judged(tmp_path, "b", judged=Judgement.INVALID, expected=False)
    assert "must, or was not as expected" in kafka_trial("prune", str(tmp_path), "--size", "0kb").err
    assert kafka_trial("prune", str(tmp_path), "--size", "0kb", "--unexpected").err == ""


def test_prune_continues_after_a_run_it_cannot_remove_and_says_why_more_stays(
    tmp_path: Path, kafka_trial: Invoke
) -> None:
    runs = [judged(tmp_path, name) for name in "abcd"]
    for day, run in enumerate(runs, 1):
        file = RunFile.read(run)
        file.origin_unix_ns = day * 86_400 * 10**9
        file.write(run)
    backends = Backends(writable=lambda folder: folder != runs[0])
    lock = RecordingLock(runs[1])
    two_kept = f"{(sum(size_of(run) for run in runs[:2]) + 1) / 1e3}kb"
    done = kafka_trial("prune", str(tmp_path), "--size", two_kept, backends=backends)
    assert [run.exists() for run in runs] == [True, True, False, False]
    assert (done.code, done.err) == (codes.CANNOT_RUN, "")
    none_kept = kafka_trial("prune", str(tmp_path), "--size", "0kb", backends=backends)
    lock.release()
    assert none_kept.err.endswith("MB of --size: 1 run is not yours to empty; 1 run is being recorded\n")


def test_prune_counts_the_runs_it_left_alone(tmp_path: Path, kafka_trial: Invoke) -> None:
    lock = RecordingLock(judged(tmp_path, "a"))
    done = kafka_trial("prune", str(tmp_path), "--size", "0kb")
    lock.release()
    assert done.out.splitlines()[-1].startswith("1 run stays")


@pytest.mark.parametrize("locked", ["", "history", ".."])
@pytest.mark.parametrize("dry_run", [[], ["--dry-run"]])
def test_prune_leaves_a_run_alone_that_it_cannot_remove_whole_and_removes_the_others(
    locked: str, dry_run: list[str], tmp_path: Path, kafka_trial: Invoke
) -> None:
    theirs, mine = judged(tmp_path, "a"), judged(tmp_path, "b")
    whole = sorted(theirs.rglob("*"))
    there = (theirs / locked).resolve()
    done = kafka_trial(
        "prune", str(tmp_path), "--size", "0kb", *dry_run, backends=Backends(writable=lambda folder: folder != there)
    )
    assert (done.code, sorted(theirs.rglob("*")), mine.exists()) == (codes.CANNOT_RUN, whole, bool(dry_run))
    assert any(line.startswith(f"left {theirs} (") for line in done.out.splitlines())
    assert f"alone: {there} is not yours to empty\n" in done.out


def test_a_suite_is_listed_and_judged_by_its_directory_and_pruned_by_its_store_alone(
    tmp_path: Path, kafka_trial: Invoke
) -> None:
    store = tmp_path / "store"
    kafka_trial("suite", *TWO, "--store", str(store), backends=backends(World(store)))
    judged(store, "other")
    elsewhere = judged(tmp_path / "elsewhere", "b")
    [directory] = store.glob("suite-*")
    file = SuiteFile.read(directory)
    file.runs[1].directory = f"../elsewhere/{elsewhere.parent.name}/{elsewhere.name}"
    file.write(directory)
    listed = [json.loads(line)["scenario"] for line in kafka_trial("runs", directory, "--json").out.splitlines()]
    assert listed == [file.runs[0].scenario], "neither another's run, nor what is outside of the store"
    checked = kafka_trial("check", directory, "--json", backends=judging())
    assert (checked.code, checked.out.count('"verdict"')) == (codes.MET, 1)
    for run in store.rglob("run.json"):
        os.utime(run, (0, 0))
    assert_one_line(
        kafka_trial("prune", directory, "--days", "1"), codes.BAD_INPUT, f"name the store that it is in, {store}"
    )


def test_the_time_budget_of_resume_starts_at_the_resume(tmp_path: Path, kafka_trial: Invoke) -> None:
    world = World(tmp_path, {TWO[1]: [Event(kind="failed", text="hangs")]}, interrupts=True)
    kafka_trial("suite", *TWO, "--store", str(tmp_path), "--time-budget", "10h", backends=backends(world))
    [directory] = tmp_path.glob("suite-scenarios-*")
    begun = SuiteFile.read(directory)
    begun.spent = 9 * 3600.0
    begun.write(directory)
    arguments = ["suite", *TWO, "--resume", "--store", str(tmp_path), "--time-budget", "1h"]
    assert kafka_trial(*arguments, backends=backends(World(tmp_path))).code == codes.MET
    assert [run.outcome for run in SuiteFile.read(directory).runs] == [RunOutcome.EXPECTED] * 2


def test_a_run_left_out_by_the_budget_is_no_failure_and_resume_runs_it(tmp_path: Path, kafka_trial: Invoke) -> None:
    arguments = ["suite", *TWO, "--store", str(tmp_path)]
    begun = kafka_trial(*arguments, "--time-budget", "68s", backends=backends(World(tmp_path)))
    assert begun.code == codes.MET
    assert "1 of 2 runs as expected, 1 not started" in begun.out
    assert "beyond the time budget" in begun.out
    later = World(tmp_path)
    assert kafka_trial(*arguments, "--resume", backends=backends(later)).code == codes.MET
    assert len([line for line in later.log if line.startswith("up")]) == 1


def test_a_run_that_failed_in_the_baseline_store_comes_first(tmp_path: Path, kafka_trial: Invoke) -> None:
    def night(store: Path, *options: object) -> list[str]:
        world = World(store, verdicts=[verdict(), verdict(Judgement.INVALID, expected=False)])
        kafka_trial("suite", *TWO, "--store", store, *options, backends=backends(world))
        return [run.name for run in the_last(store).runs]

    assert night(tmp_path / "1") == [TWO[0], TWO[1]]
    assert night(tmp_path / "2", "--baseline", tmp_path / "1") == [TWO[1], TWO[0]]
    assert night(tmp_path / "3") == [TWO[0], TWO[1]]


def test_a_run_left_out_by_the_budget_is_no_worse_than_the_baseline(tmp_path: Path, kafka_trial: Invoke) -> None:
    for name in TWO:
        judged(tmp_path / "old", name)
    store = tmp_path / "new"
    arguments = ["suite", *TWO, "--store", str(store), "--time-budget", "68s", "--baseline", str(tmp_path / "old")]
    done = kafka_trial(*arguments, backends=backends(World(store)))
    assert done.code == codes.MET
    assert "1 of 2 runs as expected, 1 not started" in done.out
    assert "0 of 2 worse" in done.out
    [directory] = store.glob("suite-*")
    assert kafka_trial("compare", str(tmp_path / "old"), str(directory)).code == codes.MET


def test_suite_compares_with_a_baseline(tmp_path: Path, kafka_trial: Invoke) -> None:
    judged(tmp_path / "old", TWO[0])
    judged(tmp_path / "old", "another")
    for found, code in ((verdict(), codes.MET), (verdict(Judgement.INVALID), codes.NOT_MET)):
        store = tmp_path / str(found.verdict)
        world = World(store, verdicts=[found])
        arguments = ["suite", TWO[0], "--store", str(store), "--baseline", str(tmp_path / "old")]
        done = kafka_trial(*arguments, backends=backends(world))
        assert done.code == code
        assert f"{int(code != codes.MET)} of 1 worse" in done.out


def test_github_gets_worse_runs_and_an_interrupted_suite(
    tmp_path: Path, kafka_trial: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = tmp_path / "summary"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    judged(tmp_path / "old", TWO[0])
    world = World(tmp_path / "new", verdicts=[verdict(Judgement.INVALID)])
    arguments = ["suite", TWO[0], "--store", str(tmp_path / "new"), "--baseline", str(tmp_path / "old"), "--json"]
    done = kafka_trial(*arguments, backends=backends(world))
    [line] = done.out.splitlines()
    assert json.loads(line)["worse"][TWO[0]][0] == "lost: not found before"
    error = f"::error title={TWO[0]}::worse: lost: not found before"
    assert error in done.err.splitlines()
    assert "lost: not found before" in summary.read_text()
    [directory] = (tmp_path / "new").glob("suite-*")
    assert "lost: not found before" in (directory / "index.html").read_text()
    assert SuiteFile.read(directory).worse == json.loads(line)["worse"]

    summary.unlink()
    world = World(tmp_path / "cut", {TWO[1]: [Event(kind="failed", text="hangs")]}, interrupts=True)
    done = kafka_trial("suite", *TWO, "--store", str(tmp_path / "cut"), backends=backends(world))
    assert done.code == codes.CRASHED
    assert f"::error title={TWO[1]}::interrupted: the suite was broken off" in done.err.splitlines()
    assert "interrupted" in summary.read_text()

    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "nowhere" / "summary"))
    done = kafka_trial("suite", TWO[0], "--store", str(tmp_path / "s"), backends=backends(World(tmp_path / "s")))
    assert done.code == codes.MET
    assert f"no summary of the job: {tmp_path}/nowhere/summary: No such file or directory" in done.err


def test_a_suite_is_not_compared_with_its_own_runs(tmp_path: Path, kafka_trial: Invoke) -> None:
    judged(tmp_path, TWO[0])
    world = World(tmp_path, verdicts=[verdict(Judgement.INVALID)], moment="20270101")
    arguments = ["suite", TWO[0], "--store", str(tmp_path), "--baseline", str(tmp_path)]
    done = kafka_trial(*arguments, backends=backends(world))
    assert done.code == codes.NOT_MET
    assert "1 of 1 worse" in done.out


def slow() -> Verdict:
    """Ten times as long without an acknowledgement."""
    availability = copy.deepcopy(verdict().availability)
    availability["longest_unavailable"]["lasted_ns"] *= 10
    return verdict(availability=availability)


LONGER = "longest without an acknowledgement: 6.0 s before, 60.0 s now"
NO_ROUTE = [Event(kind="cannot run", text="m1: no route", needed=True)]


def the_last(store: Path) -> SuiteFile:
    return SuiteFile.read(stored_suites(store)[-1])


@pytest.mark.parametrize("again", [True, False])
def test_resume_keeps_the_baseline_and_never_compares_a_suite_with_itself(
    again: bool, tmp_path: Path, kafka_trial: Invoke
) -> None:
    """The suite was worse, could not run one scenario, and lies in the store that is its baseline."""
    arguments = ["suite", *TWO, "--store", tmp_path]
    kafka_trial(*arguments, backends=backends(World(tmp_path)))
    named = ["--baseline", tmp_path]
    worse = World(tmp_path, {TWO[1]: NO_ROUTE}, verdicts=[slow()], moment="20260102")
    assert kafka_trial(*arguments, *named, backends=backends(worse)).code == codes.NOT_MET
    assert the_last(tmp_path).worse == {TWO[0]: [LONGER], TWO[1]: ["cannot run now, was run before"]}
    later = World(tmp_path, moment="20260103")
    done = kafka_trial(*arguments, *(named if again else []), "--resume", backends=backends(later))
    assert (done.code, the_last(tmp_path).worse) == (codes.NOT_MET, {TWO[0]: [LONGER]})
    assert LONGER in done.out
    [_, directory] = stored_suites(tmp_path)
    assert "<failure" in (directory / "junit.xml").read_text()
    assert "1 of 2 scenarios are worse than" in (directory / "summary.md").read_text()


def test_resume_compares_an_interrupted_suite_with_its_first_baseline(tmp_path: Path, kafka_trial: Invoke) -> None:
    old, store = tmp_path / "old", tmp_path / "new"
    judged(old, TWO[0])
    judged(old, TWO[1])
    world = World(store, {TWO[1]: [Event(kind="failed", text="hangs")]}, verdicts=[slow()], interrupts=True)
    arguments = ["suite", *TWO, "--store", store]
    assert kafka_trial(*arguments, "--baseline", old, backends=backends(world)).code == codes.CRASHED
    # What came since is none that it was to be compared with.
    newer = judged(old, TWO[0], 2, availability=slow().availability)
    file = RunFile.read(newer)
    file.origin_unix_ns = 4 * 10**18
    file.write(newer)
    assert kafka_trial(*arguments, "--resume", backends=backends(World(store))).code == codes.NOT_MET
    assert the_last(store).worse == {TWO[0]: [LONGER]}


@pytest.mark.parametrize("named", ["store", "copy", "suite", "store with a night before"])
def test_a_suite_is_never_compared_with_itself_if_only_resume_names_a_baseline(
    named: str, tmp_path: Path, kafka_trial: Invoke
) -> None:
    store = tmp_path / "store"
    arguments = ["suite", *TWO, "--store", store]
    if named == "store with a night before":
        kafka_trial(*arguments, backends=backends(World(store)))
    world = World(store, {TWO[1]: NO_ROUTE}, verdicts=[slow()], moment="20260102")
    assert kafka_trial(*arguments, backends=backends(world)).code == codes.CANNOT_RUN
    shutil.copytree(store, tmp_path / "copy")
    folder = {"copy": tmp_path / "copy", "suite": stored_suites(store)[-1]}.get(named, store)
    later = World(store, moment="20260103")
    done = kafka_trial(*arguments, "--baseline", folder, "--resume", backends=backends(later))
    if named == "store with a night before":
        assert (done.code, the_last(store).worse) == (codes.NOT_MET, {TWO[0]: [LONGER]})
    else:
        assert (done.code, the_last(store).baseline) == (codes.MET, None)
        assert f"kafka-trial: nothing is compared with {folder}: " in done.err


def test_resume_may_name_another_baseline(tmp_path: Path, kafka_trial: Invoke) -> None:
    old, mended, store = (tmp_path / name for name in ("old", "mended", "new"))
    for name in TWO:
        judged(old, name)
        judged(mended, name, availability=slow().availability)
    arguments = ["suite", *TWO, "--store", store]
    world = World(store, {TWO[1]: NO_ROUTE}, verdicts=[slow()])
    kafka_trial(*arguments, "--baseline", old, backends=backends(world))
    done = kafka_trial(*arguments, "--baseline", mended, "--resume", backends=backends(World(store)))
    assert (done.code, the_last(store).worse, the_last(store).baseline) == (codes.MET, {}, str(mended))


def test_a_run_stays_worse_after_its_baseline_is_removed(tmp_path: Path, kafka_trial: Invoke) -> None:
    old, store = tmp_path / "old", tmp_path / "new"
    runs = [judged(old, name) for name in TWO]
    arguments = ["suite", *TWO, "--store", store]
    world = World(store, {TWO[1]: NO_ROUTE}, verdicts=[slow()])
    kafka_trial(*arguments, "--baseline", old, backends=backends(world))
    assert the_last(store).worse == {TWO[0]: [LONGER], TWO[1]: ["cannot run now, was run before"]}
    for run in runs:
        shutil.rmtree(run)
    done = kafka_trial(*arguments, "--resume", backends=backends(World(store)))
    assert (done.code, the_last(store).worse) == (codes.NOT_MET, {TWO[0]: [LONGER]}), "the other runs by now"
    assert "1 of the runs before cannot be compared: removed since" in done.out


def test_a_worse_night_is_no_measure_for_the_next_until_it_is_named(tmp_path: Path, kafka_trial: Invoke) -> None:
    arguments = ["suite", *TWO, "--store", tmp_path]
    kafka_trial(*arguments, backends=backends(World(tmp_path)))

    def night(day: int, baseline: Path) -> int:
        # (The first of the verdicts is of the first of the two.)
        world = World(tmp_path, verdicts=[slow()], moment=f"2026010{day}")
        code = kafka_trial(*arguments, "--baseline", baseline, backends=backends(world)).code
        kafka_trial("prune", tmp_path, "--days", "0", "--unexpected")
        return code

    assert [night(day, tmp_path) for day in (2, 3)] == [codes.NOT_MET] * 2
    assert the_last(tmp_path).worse == {TWO[0]: [LONGER]}
    accepted = World(tmp_path, verdicts=[slow()], moment="20260104")
    assert kafka_trial(*arguments, "--baseline", tmp_path, backends=backends(accepted)).code == codes.NOT_MET
    assert night(5, stored_suites(tmp_path)[-1]) == codes.MET
    assert night(6, tmp_path) == codes.MET, "what was compared with it, and is no worse, is the measure from then on"


def test_a_scenario_that_is_red_every_night_keeps_no_other_from_being_compared(
    tmp_path: Path, kafka_trial: Invoke
) -> None:
    """As docs/ci has it: each night in a store of its own, and what the next is compared with kept of all of them."""
    kept = tmp_path / "baseline"
    kept.mkdir()

    def night(day: int, second: Verdict) -> SuiteFile:
        store = tmp_path / str(day)
        world = World(
            store, {TWO[0]: [Event(kind="failed", text="does not come up")]}, [second], moment=f"2026010{day}"
        )
        done = kafka_trial("suite", *TWO, "--store", store, "--baseline", kept, backends=backends(world))
        assert done.code == codes.CRASHED
        shutil.copytree(store, kept, dirs_exist_ok=True)
        kafka_trial("prune", kept, "--days", "0", "--unexpected")
        return the_last(store)

    nights = [night(day, found) for day, found in enumerate([verdict(), slow(), slow(), verdict(), verdict()], 1)]
    assert [file.worse for file in nights] == [{}, {TWO[1]: [LONGER]}, {TWO[1]: [LONGER]}, {}, {}]
    assert [path.parent.name for path in kept.glob(f"{TWO[1]}/*/run.json")] == [f"20260105-{nights[-1].runs[1].seed}"]
    assert len(stored_suites(kept)) == 1


def test_a_night_that_was_broken_off_before_it_was_compared_is_no_measure(tmp_path: Path, kafka_trial: Invoke) -> None:
    arguments = ["suite", *TWO, "--store", tmp_path]
    kafka_trial(*arguments, backends=backends(World(tmp_path)))
    hangs = {TWO[1]: [Event(kind="failed", text="hangs")]}
    world = World(tmp_path, hangs, verdicts=[slow()], interrupts=True, moment="20260102")
    assert kafka_trial(*arguments, "--baseline", tmp_path, backends=backends(world)).code == codes.CRASHED
    world = World(tmp_path, verdicts=[slow()], moment="20260103")
    assert kafka_trial(*arguments, "--baseline", tmp_path, backends=backends(world)).code == codes.NOT_MET


@pytest.mark.parametrize("kind", ["other version", "crashed", "empty", "suite of another version", "other scenarios"])
def test_a_baseline_that_has_nothing_to_compare_with_is_a_line_and_keeps_no_night_from_being_run(
    kind: str, tmp_path: Path, kafka_trial: Invoke
) -> None:
    old, store = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    named, says = old, "no judged run here"
    if kind == "other version":
        for name in TWO:
            (judged(old, name) / "verdict.json").write_text('{"schema": 0}')
        says = "not a verdict of this version"
    elif kind == "crashed":
        crashes = World(old, {TWO[0]: [Event(kind="failed", text="does not come up")]})
        assert kafka_trial("suite", TWO[0], "--store", old, backends=backends(crashes)).code == codes.CRASHED
    elif kind == "other scenarios":
        judged(old, "another")
        says = "it has no run of these scenarios"
    elif kind == "suite of another version":
        named, says = old / "suite-scenarios-1", "not a suite file of this version"
        named.mkdir()
        (named / "suite.json").write_text('{"schema": 0}')
    done = kafka_trial("suite", *TWO, "--store", store, "--baseline", named, backends=backends(World(store)))
    assert (done.code, the_last(store).baseline) == (codes.MET, None)
    [line] = [line for line in done.err.splitlines() if line.startswith("kafka-trial:")]
    assert line.startswith(f"kafka-trial: nothing is compared with {named}: ")
    assert says in line
    assert "worse" not in done.out
    directory = stored_suites(store)[-1]
    assert all("nothing is compared with" in (directory / name).read_text() for name in ("summary.md", "index.html"))
    assert annotations(the_last(store))[0].startswith(f"::warning title=scenarios::nothing is compared with {named}")
    world = World(store, verdicts=[slow()], moment="20260102")
    again = kafka_trial("suite", *TWO, "--store", store, "--baseline", store, backends=backends(world))
    assert again.code == codes.NOT_MET, "that night is the measure for the next"
    assert "nothing is compared" not in (stored_suites(store)[-1] / "summary.md").read_text()


def test_a_wrong_baseline_is_refused_before_anything_is_started(tmp_path: Path, kafka_trial: Invoke) -> None:
    world = World(tmp_path)
    arguments = ["suite", TWO[0], "--store", str(tmp_path), "--baseline", str(tmp_path / "typo")]
    done = kafka_trial(*arguments, backends=backends(world))
    assert (done.code, world.log) == (codes.BAD_INPUT, [])
    assert "no such directory" in done.err


def test_a_suite_without_judged_runs_is_worse_than_a_baseline(tmp_path: Path, kafka_trial: Invoke) -> None:
    judged(tmp_path / "old", TWO[0])
    world = World(tmp_path, {TWO[0]: [Event(kind="failed", text="does not come up")]})
    arguments = ["suite", TWO[0], "--store", str(tmp_path), "--baseline", str(tmp_path / "old")]
    done = kafka_trial(*arguments, backends=backends(world))
    assert done.code == codes.CRASHED
    assert "0 of 1 now" in done.out


@pytest.mark.parametrize(
    ("outcomes", "cannot_run", "code"),
    [
        ([RunOutcome.EXPECTED], "fail", codes.MET),
        ([RunOutcome.EXPECTED, RunOutcome.CANNOT_RUN], "fail", codes.CANNOT_RUN),
        ([RunOutcome.EXPECTED, RunOutcome.CANNOT_RUN], "skip", codes.MET),
        ([RunOutcome.CANNOT_RUN], "skip", codes.CANNOT_RUN),
        ([RunOutcome.NOT_STARTED], "skip", codes.UNKNOWN),
        ([RunOutcome.EXPECTED, RunOutcome.NOT_STARTED], "fail", codes.MET),
        ([RunOutcome.UNKNOWN, RunOutcome.EXPECTED], "fail", codes.UNKNOWN),
        ([RunOutcome.UNKNOWN, RunOutcome.UNEXPECTED], "fail", codes.NOT_MET),
        ([RunOutcome.UNEXPECTED, RunOutcome.CANNOT_RUN], "fail", codes.NOT_MET),
        ([RunOutcome.UNKNOWN, RunOutcome.CANNOT_RUN], "fail", codes.CANNOT_RUN),
        ([RunOutcome.CRASHED, RunOutcome.CANNOT_RUN], "fail", codes.CRASHED),
        ([RunOutcome.INTERRUPTED, RunOutcome.EXPECTED], "fail", codes.CRASHED),
        ([RunOutcome.RUNNING, RunOutcome.EXPECTED], "skip", codes.CRASHED),
        ([RunOutcome.RECORDED, RunOutcome.EXPECTED], "skip", codes.CRASHED),
        ([RunOutcome.WAITING, RunOutcome.EXPECTED], "skip", codes.CRASHED),
    ],
)
def test_suite_exits_with(outcomes: list[RunOutcome], cannot_run: str, code: int) -> None:
    file = suite_file(*(case(str(number)) for number, _ in enumerate(outcomes)), cannot_run=cannot_run)
    for run, outcome in zip(file.runs, outcomes, strict=True):
        run.outcome = outcome
    assert exit_code(file) == code


def test_a_suite_whose_machine_runs_nothing_any_more_is_no_success(tmp_path: Path) -> None:
    for needed, code in ((False, codes.MET), (True, codes.CANNOT_RUN)):
        file = suite_file(case("a"), case("b"), cannot_run="skip")
        World(
            tmp_path / str(code), {"b": [Event(kind="cannot run", text="no Docker engine answers", needed=needed)]}
        ).run(file)
        assert exit_code(file) == code
        assert ("<error" in render(file)) is needed
        assert annotations(file)[0].startswith("::error" if needed else "::warning")


def test_run_without_a_judge_records_and_says_where(tmp_path: Path, kafka_trial: Invoke) -> None:
    asked: list[Scenario] = []

    def recorded(scenario: Scenario, store: Path, seed: int, display: object, keep: bool) -> Path:
        asked.append(scenario)
        return store / "a" / "1"

    arguments = ["run", TWO[0], "--no-judge", "--store", str(tmp_path)]
    done = kafka_trial(*arguments, backends=Backends(record=recorded))
    assert (done.code, done.out) == (0, f"recorded: {tmp_path}/a/1\n")
    done = kafka_trial(*arguments, "--json", backends=Backends(record=recorded))
    assert json.loads(done.out) == {"directory": f"{tmp_path}/a/1"}
    assert [scenario.name for scenario in asked] == [TWO[0]] * 2


def test_runs_lists_the_runs_of_a_store(tmp_path: Path, kafka_trial: Invoke) -> None:
    timed = judged(tmp_path, "a", 7)
    file = read_run(timed).file
    file.phases = [
        PhaseReport(phase=name, at_ns=at * 10**9)
        for name, at in (("up", 1), ("timeline", 11), ("heal", 42), ("seal", 50))
    ]
    file.write(timed)
    judged(tmp_path, "b", 8, judged=Judgement.INVALID, expected=False)
    record(tmp_path, "c", 9)
    torn = record(tmp_path, "d", 10)
    (torn / "run.json").write_text("{}")
    for seed, origin in ((11, 10**30), (12, -(10**20))):
        run = record(tmp_path, "e", seed) / "run.json"
        run.write_text(json.dumps({**json.loads(run.read_text()), "origin_unix_ns": origin}))
    done = kafka_trial("runs", str(tmp_path))
    assert done.code == 0
    rows = {line.split()[2]: line for line in done.out.splitlines()[1:-1]}
    assert rows.keys() == {"a", "b", "c"}
    assert "not as expected" in rows["b"]
    assert "not as expected" not in rows["a"]
    assert "31 + 18 s" in rows["a"]
    assert " + " not in rows["c"]
    assert "recorded" in rows["c"]
    assert "d/20260101-10/run.json: not a run file" in done.err
    assert done.err.count("not a run file") == 3
    lines = [json.loads(line) for line in kafka_trial("runs", str(tmp_path), "--json").out.splitlines()]
    assert [(line["timeline_seconds"], line["besides_seconds"]) for line in lines] == [
        (31, 18),
        (None, None),
        (None, None),
    ]
    assert [(line["seed"], line["verdict"], line["expected"]) for line in lines] == [
        (7, "valid", True),
        (8, "invalid", False),
        (9, None, None),
    ]
    assert kafka_trial("runs", str(tmp_path / "nowhere")).code == codes.BAD_INPUT


def test_runs_shows_a_run_whose_recorder_was_killed_as_interrupted_or_crashed(
    tmp_path: Path, kafka_trial: Invoke
) -> None:
    runs = {name: record(tmp_path, name, 7, State.RUNNING) for name in ("nothing", "sent", "going", "unreadable")}
    for name, run in runs.items():
        shutil.rmtree(run / "history", ignore_errors=True)
        (run / "journals").mkdir(exist_ok=True)
        with Journal(journal_path(run / "journals", "sends", "1"), SENDS) as sends:
            if name == "sent":
                sends.append_rows(by_hand("send a ok @0").rows["sends"])
    journal_path(runs["unreadable"] / "journals", "sends", "2").mkdir()
    lock = RecordingLock(runs["going"])
    done = kafka_trial("runs", tmp_path, "--json")
    lock.release()
    states = {line["scenario"]: line["state"] for line in map(json.loads, done.out.splitlines())}
    assert states == {"nothing": "interrupted", "sent": "crashed", "going": "running", "unreadable": "running"}
    RunFile.read(runs["sent"]).model_copy(update={"state": State.RECORDED}).write(runs["sent"])
    assert state_now(runs["sent"]) is State.RECORDED


def test_compare_prints_worse_and_changed_figures(tmp_path: Path, kafka_trial: Invoke) -> None:
    old, new = judged(tmp_path, "a"), judged(tmp_path, "b", judged=Judgement.INVALID)
    file = read_run(new).file
    file.scenario = {"workload": {"acks": "1"}}
    file.write(new)
    done = kafka_trial("compare", str(old), str(new))
    assert done.code == codes.NOT_MET
    assert "  a → b: lost: not found before" in done.out.splitlines()
    assert "  a → b: workload.acks: not there → 1" in done.out.splitlines()
    assert done.out.splitlines()[-1] == "1 of 1 worse"
    assert kafka_trial("compare", str(new), str(old)).code == codes.MET
    assert kafka_trial("compare", str(old), str(tmp_path / "nowhere")).code == codes.BAD_INPUT


def test_compare_names_a_change_in_all_scenarios_once(tmp_path: Path, kafka_trial: Invoke) -> None:
    for side, version in (("old", "1"), ("new", "2")):
        for name in ("a", "b"):
            run = judged(tmp_path / side, name)
            file = read_run(run).file
            file.versions = {"kafka image": version}
            file.scenario = {"workload": {"acks": version if name == "b" else "1"}}
            file.write(run)
    expected = ["Changed in all", "  kafka image: 1 → 2", "Changed", "  b: workload.acks: 1 → 2"]
    done = kafka_trial("compare", tmp_path / "old", tmp_path / "new")
    assert done.out.splitlines()[-5:] == [*expected, "0 of 2 worse"]
    suites = [suite_file(case("a"), case("b"), case("c"), ended=1.0) for _ in range(2)]
    for side, suite_ in zip(("old", "new"), suites, strict=True):
        for run in suite_.runs[:2]:
            run.judged(verdict())
            [found] = (tmp_path / side / run.name).glob("*")
            run.directory = str(found.relative_to(tmp_path / side))
        suite_.runs[2].outcome = RunOutcome.CRASHED
        directory = tmp_path / side / "suite-some-20260101T000000.000Z"
        directory.mkdir()
        suite_.write(directory)
    done = kafka_trial("compare", tmp_path / "old", tmp_path / "new")
    assert done.out.splitlines()[-5:] == [*expected, "0 of 3 worse"], "one that crashed hides nothing"


def test_runs_lists_a_run_whose_verdict_cannot_be_read(tmp_path: Path, kafka_trial: Invoke) -> None:
    run = judged(tmp_path, "a", 7)
    (run / "verdict.json").write_text("{}")
    done = kafka_trial("runs", tmp_path, "--json")
    [line] = map(json.loads, done.out.splitlines())
    assert (line["scenario"], line["verdict"]) == ("a", None)
    assert f"{run}/verdict.json: not a verdict of this version" in done.err


def test_compare_takes_no_scenario_for_another_though_each_store_has_one_alone(
    tmp_path: Path, kafka_trial: Invoke
) -> None:
    runs = {name: judged(tmp_path / name, name) for name in "ab"}
    done = kafka_trial("compare", tmp_path / "a", tmp_path / "b")
    assert (done.code, done.out.splitlines()[-1]) == (codes.NOT_MET, "1 of 2 worse")
    assert "  a: it was run before, and is not any more\n" in done.out
    for old, new in ((runs["a"], tmp_path / "b"), (tmp_path / "a", runs["b"])):
        assert kafka_trial("compare", old, new).code == codes.NOT_MET
    assert kafka_trial("compare", runs["a"], runs["b"]).code == codes.MET, "these two are named"


@pytest.mark.parametrize("lost", ["gone", "torn"])
def test_runs_whose_verdict_cannot_be_read_count_as_their_suite_noted_them(
    lost: str, tmp_path: Path, kafka_trial: Invoke
) -> None:
    """Of three, those that were not as expected; and its twin, those that were."""
    bad = verdict(Judgement.INVALID, expected=False)
    suites = {}
    for name, verdicts in (("old", []), ("new", [bad, bad, verdict()])):
        store = tmp_path / name
        arguments = ["suite", TWO[0], "--times", "3", "--store", store]
        kafka_trial(*arguments, backends=backends(World(store, verdicts=verdicts)))
        [suites[name]] = stored_suites(store)
    for name, outcome in (("old", RunOutcome.EXPECTED), ("new", RunOutcome.UNEXPECTED)):
        runs = [run for run in SuiteFile.read(suites[name]).runs if run.outcome is outcome][:2]
        for path in (tmp_path / name / str(run.directory) / "verdict.json" for run in runs):
            if lost == "gone":
                path.unlink()
            else:
                path.write_text("{")
    done = kafka_trial("compare", suites["old"], suites["new"])
    assert done.code == codes.NOT_MET
    assert f"{TWO[0]}: as expected: 3 of 3 before, 1 of 3 now\n" in done.out
    assert kafka_trial("compare", tmp_path / "old", tmp_path / "new").code == codes.NOT_MET
    assert kafka_trial("compare", suites["old"], suites["old"]).code == codes.MET


@pytest.mark.parametrize("damage", ["overwritten", "gone"])
def test_a_comparison_with_a_history_that_is_damaged_is_no_success(
    damage: str, tmp_path: Path, kafka_trial: Invoke
) -> None:
    old, store, new = judged(tmp_path / "old", TWO[0]), tmp_path / "old", tmp_path / "new"
    shutil.copytree(store, new)
    assert kafka_trial("compare", store, new).code == codes.MET
    torn = new / old.relative_to(store)
    for part in (torn / "history" / "sends").iterdir():
        part.write_bytes(b"x") if damage == "overwritten" else part.unlink()
    line = f"  {TWO[0]}: {torn}: its history is damaged, only its verdict is compared: `kafka-trial check {torn}`\n"
    for pair in ((store, new), (new, store)):
        done = kafka_trial("compare", *pair)
        assert (done.code, line in done.out, "0 of 1 worse" in done.out) == (codes.CANNOT_RUN, True, True)
    arguments = ["suite", TWO[0], "--store", tmp_path / "store", "--baseline", new]
    done = kafka_trial(*arguments, backends=backends(World(tmp_path / "store")))
    assert (done.code, line in done.out) == (codes.CANNOT_RUN, True)
    assert "and not all are compared" in (stored_suites(tmp_path / "store")[0] / "summary.md").read_text()


def test_a_store_that_was_copied_into_another_hides_nothing_of_it(tmp_path: Path, kafka_trial: Invoke) -> None:
    """`cp -R store fixed`, typed a second time."""
    store, fixed = tmp_path / "store", tmp_path / "fixed"
    arguments = ["suite", *TWO, "--store", store]
    kafka_trial(*arguments, backends=backends(World(store)))
    shutil.copytree(store, fixed)
    kafka_trial(*arguments, backends=backends(World(store, verdicts=[slow()], moment="20260102")))
    for reported in ("", f"kafka-trial: {fixed}/store: a store in {fixed}, left out: name it to compare it\n"):
        done = kafka_trial("compare", fixed, store)
        assert (done.code, done.err, f"{TWO[0]}: {LONGER}" in done.out) == (codes.NOT_MET, reported, True)
        shutil.copytree(store, fixed / "store", dirs_exist_ok=True)
    assert kafka_trial("compare", fixed / "store", store).code == codes.MET


def test_a_comparison_without_one_scenario_of_before_is_no_success(tmp_path: Path, kafka_trial: Invoke) -> None:
    kafka_trial("suite", *TWO, "--store", tmp_path, backends=backends(World(tmp_path)))
    [directory] = stored_suites(tmp_path)
    run = tmp_path / str(SuiteFile.read(directory).runs[0].directory)
    shutil.copytree(tmp_path, tmp_path / "new")
    (run / "verdict.json").write_text("{")
    done = kafka_trial("compare", directory, tmp_path / "new" / directory.name)
    assert (done.code, done.out.splitlines()[-1]) == (codes.CANNOT_RUN, "0 of 2 worse")


def test_a_store_of_which_one_scenario_cannot_be_read_at_all_is_not_compared_whole(
    tmp_path: Path, kafka_trial: Invoke
) -> None:
    """Its one run is torn; and its twin, where an older one can be read."""
    for store in (tmp_path / "old", tmp_path / "new"):
        for name in "ab":
            judged(store, name)
    (tmp_path / "old" / "a" / "20260101-1" / "verdict.json").write_text("{")
    assert kafka_trial("compare", tmp_path / "old", tmp_path / "new").code == codes.CANNOT_RUN
    assert kafka_trial("compare", tmp_path / "new", tmp_path / "new").code == codes.MET
    judged(tmp_path / "old", "a", 2)
    assert kafka_trial("compare", tmp_path / "old", tmp_path / "new").code == codes.MET


GONE = "gone: its suite ran it before, and no longer does"


def nights(tmp_path: Path, kafka_trial: Invoke) -> tuple[Callable[..., Any], Path, Path]:
    """Runs a night of a suite of one's own, of these scenarios; and its file and its store."""
    written, store = tmp_path / "mine.yaml", tmp_path / "store"

    def night(day: int, *names: str, of: Path = written, **world: Any) -> Callable[..., Any]:
        of.write_text(json.dumps({"runs": list(names)}))

        def run(*options: object) -> tuple[int, dict[str, list[str]]]:
            backend = backends(World(store, **{"moment": f"2026010{day}", **world}))
            done = kafka_trial("suite", of, "--store", store, *options, backends=backend)
            return done.code, the_last(store).worse

        return run

    return night, written, store


def test_a_scenario_that_vanished_from_its_suite_makes_no_night_green_until_that_is_accepted(
    tmp_path: Path, kafka_trial: Invoke
) -> None:
    night, _, store = nights(tmp_path, kafka_trial)
    assert night(1, *TWO)("--baseline", tmp_path) == (codes.MET, {})
    gone = codes.NOT_MET, {TWO[1]: [GONE]}
    for day in (2, 3):
        assert night(day, TWO[0])("--baseline", store) == gone
        kafka_trial("prune", store, "--days", "0", "--unexpected")
    [directory] = stored_suites(store)[-1:]
    assert GONE in (directory / "summary.md").read_text()
    assert "1 of 2 scenarios are worse" in (directory / "index.html").read_text()
    [failed] = [one for one in ET.parse(directory / "junit.xml").iter("testcase") if one.find("failure") is not None]
    assert failed.get("name") == TWO[1]
    assert night(4, TWO[0])("--baseline", directory) == (codes.MET, {}), "accepted"
    assert night(5, TWO[0])("--baseline", store) == (codes.MET, {})
    assert night(6, *TWO)("--baseline", store) == (codes.MET, {}), "a new one"
    other = night(7, TWO[0], of=tmp_path / "other.yaml")
    assert other("--baseline", store) == (codes.MET, {}), "another suite need not have it"


def test_a_resumed_suite_names_a_scenario_that_vanished(tmp_path: Path, kafka_trial: Invoke) -> None:
    night, _, store = nights(tmp_path, kafka_trial)
    night(1, *TWO)()
    hangs = {TWO[0]: [Event(kind="failed", text="hangs")]}
    assert night(2, TWO[0], ends=hangs, interrupts=True)("--baseline", store)[0] == codes.CRASHED
    assert night(3, TWO[0])("--baseline", store) == (codes.NOT_MET, {TWO[1]: [GONE]})
    shutil.rmtree(stored_suites(store)[-1])
    assert night(4, TWO[0])("--resume") == (codes.NOT_MET, {TWO[1]: [GONE]})


def test_a_scenario_that_vanished_is_named_though_nothing_was_judged_before(
    tmp_path: Path, kafka_trial: Invoke
) -> None:
    night, _, store = nights(tmp_path, kafka_trial)
    crashes = {name: [Event(kind="failed", text="does not come up")] for name in TWO}
    assert night(1, *TWO, ends=crashes)()[0] == codes.CRASHED
    assert night(2, TWO[0])("--baseline", store) == (codes.NOT_MET, {TWO[1]: [GONE]})
    said: list[str] = []
    assert choose(stored_suites(store)[0], {TWO[0]}, store, said.append, called=("mine",)) is not None
    assert said == [
        f"nothing is compared with {stored_suites(store)[0]}: {stored_suites(store)[0]}: no judged run here:"
        f" `kafka-trial check {stored_suites(store)[0]}` judges what is recorded"
    ]


def test_compare_names_the_runs_that_an_interrupted_suite_did_not_run(tmp_path: Path, kafka_trial: Invoke) -> None:
    night, _, store = nights(tmp_path, kafka_trial)
    night(1, *TWO)()
    hangs = {TWO[1]: [Event(kind="failed", text="hangs")]}
    assert night(2, *TWO, ends=hangs, interrupts=True)()[0] == codes.CRASHED
    done = kafka_trial("compare", *stored_suites(store))
    assert (done.code, done.out.splitlines()[-1]) == (codes.NOT_MET, "1 of 2 worse")
    assert f"  {TWO[1]}: its suite goes on, or was broken off, before it was run\n" in done.out
    assert kafka_trial("compare", stored_suites(store)[0], store).code == codes.MET, "of before it is there"


@pytest.mark.parametrize("removed", [False, True])
def test_compare_tells_a_scenario_that_vanished_from_its_suite_though_its_run_was_removed_since(
    removed: bool, tmp_path: Path, kafka_trial: Invoke
) -> None:
    night, _, store = nights(tmp_path, kafka_trial)
    night(1, *TWO)()
    night(2, TWO[0])()
    night(3, *TWO, of=tmp_path / "other.yaml")()
    old, new, other = stored_suites(store)
    [run] = store.glob(f"{TWO[1]}/20260101*")
    if removed:
        shutil.rmtree(run)
    done = kafka_trial("compare", old, new)
    assert (done.code, done.out.count(f"  {TWO[1]}: {GONE}\n")) == (codes.NOT_MET, 1)
    assert kafka_trial("compare", old, other).code == (codes.CANNOT_RUN if removed else codes.MET)
    assert kafka_trial("compare", new, old).code == codes.MET
    shutil.copytree(old, tmp_path / "before" / old.name)
    for each in store.glob("*/*/20260101*"):
        shutil.copytree(each, tmp_path / "before" / each.relative_to(store))
    shutil.rmtree(other)
    shutil.rmtree(next(store.glob(f"{TWO[1]}/20260103*")))
    done = kafka_trial("compare", tmp_path / "before", store)
    assert (done.code, GONE in done.out) == (codes.NOT_MET, True), "its run of before is in the store, too"
    assert kafka_trial("compare", store, store).code == codes.MET, "the newest suite has it no more"


def test_a_pruned_baseline_accuses_nobody(tmp_path: Path, kafka_trial: Invoke) -> None:
    night, _, store = nights(tmp_path, kafka_trial)
    for day in (1, 2):
        night(day, *TWO)()
    old = stored_suites(store)[0]
    shutil.copytree(store, tmp_path / "whole")
    kafka_trial("prune", store, "--size", "0kb")
    assert kafka_trial("compare", store, tmp_path / "whole").code == codes.MET
    assert night(3, *TWO)("--baseline", store) == (codes.MET, {})
    done = kafka_trial("compare", tmp_path / "whole" / old.name, store)
    assert (done.code, done.out.splitlines()[-1]) == (codes.MET, "0 of 2 worse")


@pytest.mark.parametrize("left", [0, 1])
def test_a_run_that_was_removed_counts_as_its_suite_noted_it(left: int, tmp_path: Path, kafka_trial: Invoke) -> None:
    """A run removed by hand still counts as not as expected, and a case without any run left is reported."""
    bad = verdict(Judgement.INVALID, expected=False)
    suites = {}
    for name, verdicts in (("old", []), ("new", [bad, verdict()])):
        store = tmp_path / name
        arguments = ["suite", TWO[0], TWO[1], "--times", "2", "--store", store]
        kafka_trial(*arguments, backends=backends(World(store, verdicts=verdicts)))
        [suites[name]] = stored_suites(store)
    first = [run for run in SuiteFile.read(suites["new"]).runs if run.name == TWO[0]]
    for run in first[: 2 - left]:
        shutil.rmtree(tmp_path / "new" / str(run.directory))
    says = "as expected: 2 of 2 before, 1 of 2 now" if left else "gone: its runs were removed since"
    for new in (suites["new"], tmp_path / "new"):
        done = kafka_trial("compare", suites["old"], new)
        assert (done.code, f"  {TWO[0]}: {says}\n" in done.out) == (codes.NOT_MET, True)
    # As the baseline: nothing is worse than it, and if all its runs are gone the comparison is not complete.
    done = kafka_trial("compare", suites["new"], suites["old"])
    assert (done.code, "0 of 2 worse" in done.out) == (codes.MET if left else codes.CANNOT_RUN, True)


def test_prune_keeps_a_store_within_bounds(tmp_path: Path, kafka_trial: Invoke) -> None:
    good, bad = judged(tmp_path, "a"), judged(tmp_path, "b", judged=Judgement.INVALID, expected=False)
    for run in (good, bad):
        os.utime(run / "run.json", (0, 0))
    assert kafka_trial("prune", str(tmp_path)).code == codes.BAD_INPUT
    assert kafka_trial("prune", str(tmp_path), "--size", "5").code == codes.BAD_INPUT
    assert kafka_trial("prune", str(tmp_path), "--days", "1", "--dry-run").out.startswith(f"would remove {good}")
    assert good.is_dir()
    done = kafka_trial("prune", str(tmp_path), "--size", "0kb")
    assert (done.code, good.exists(), bad.exists()) == (0, False, True)
    assert done.out.splitlines()[-1].startswith("1 run stays")
    kafka_trial("prune", str(tmp_path), "--days", "1", "--unexpected")
    assert not bad.exists()


def test_prune_takes_a_run_whose_verdict_cannot_be_read_for_one_without(tmp_path: Path, kafka_trial: Invoke) -> None:
    """Perhaps after an update: the run stays and is counted, and only --unexpected removes it."""
    run = judged(tmp_path, "a")
    os.utime(run / "run.json", (0, 0))
    (run / "verdict.json").write_text('{"schema": 0}')
    size = size_of(run)
    done = kafka_trial("prune", tmp_path, "--days", "1")
    assert (run.is_dir(), done.out) == (True, f"1 run stays, {size / 1e6:.1f} MB\n")
    assert "not a verdict of this version" in done.err
    assert kafka_trial("prune", tmp_path, "--size", "0kb").err.count("more than the 0.0 MB of --size") == 1
    assert kafka_trial("prune", tmp_path, "--days", "1", "--unexpected").out.startswith(f"removed {run} (")
    assert not run.exists()


PROGRAM = """
import sys
from harness.cli.main import main
from tests.checkers.notation import by_hand
from tests.cli.conftest import judging
main(sys.argv[1:], judging())
"""


def as_any_user(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [*WITHOUT_PRIVILEGES, sys.executable, "-c", PROGRAM, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.heavy
def test_unreadable_files_are_named_and_hide_no_other_run(tmp_path: Path) -> None:
    """They may belong to another user of the same store: a folder, a verdict and a run.json."""
    store, apart = tmp_path / "store", judged(tmp_path / "apart", "a")
    seen, verdict_, run, folder = (judged(store, name) for name in "abcd")
    suite_ = suite_file(*(case(name) for name in "abcd"), ended=1.0)
    for result, directory in zip(suite_.runs, (seen, verdict_, run, folder), strict=True):
        result.judged(verdict())
        result.directory = str(directory.relative_to(store))
    directory = store / "suite-some-20260101T000000.000Z"
    directory.mkdir()
    suite_.write(directory)
    closed = (verdict_ / "verdict.json", run / "run.json", folder.parent)
    for path in closed:
        path.chmod(0)
    reported = [
        f"{verdict_}/verdict.json: cannot be read (Permission denied)",
        f"{run}/run.json: no run here (Permission denied)",
        f"{store}/d: Permission denied",
    ]

    listed = as_any_user("runs", store)
    assert (listed.returncode, listed.stdout.splitlines()[-1]) == (codes.MET, f"2 runs in {store}")
    assert all(f"kafka-trial: {line}\n" in listed.stderr for line in reported)
    compared = as_any_user("compare", apart, store)
    assert (compared.returncode, compared.stdout.splitlines()[-1]) == (codes.CANNOT_RUN, "0 of 4 worse")
    assert compared.stdout.count("1 of the runs now cannot be compared: they cannot be read") == 3
    pruned = as_any_user("prune", store, "--days", "0")
    assert (pruned.returncode, seen.is_dir()) == (codes.CANNOT_RUN, True)
    assert all(f"kafka-trial: {line}\n" in pruned.stderr for line in reported)
    checked = as_any_user("check", store)
    assert checked.returncode == codes.BAD_INPUT, "not all was judged"
    assert f"kafka-trial: {reported[2]}\n" in checked.stderr
    for path in reversed(closed):
        path.chmod(0o700)
    assert all(path.exists() for path in closed)


@pytest.mark.heavy
@pytest.mark.parametrize("closed", ["a folder", "all", "a suite", "nothing"])
def test_a_baseline_that_may_not_be_looked_into_makes_no_night_green(closed: str, tmp_path: Path) -> None:
    """As `compare` has it: the same code, and the night is run all the same."""
    old, store = tmp_path / "old", tmp_path / "new"
    for name in TWO:
        judged(old, name)
    directory = old / "suite-scenarios-20260101T000000.000Z"
    directory.mkdir()
    suite_file(case("a"), ended=1.0).write(directory)
    folders = {"a folder": old / TWO[0], "all": old / "delivery", "a suite": directory / "suite.json"}
    program = f"""
import sys
from pathlib import Path
from harness.cli.main import main
from tests.cli.test_suites import World, backends
main(sys.argv[1:], backends(World(Path({str(store)!r}))))
"""

    def as_any(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [*WITHOUT_PRIVILEGES, sys.executable, "-c", program, *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    if folder := folders.get(closed):
        folder.chmod(0)
    done = as_any("suite", *TWO, "--store", store, "--baseline", old)
    again = as_any("suite", *TWO, "--store", store, "--baseline", old / "nowhere")
    if folder:
        assert (done.returncode, "Permission denied" in done.stderr) == (codes.CANNOT_RUN, True)
        assert "and not all are compared" in (stored_suites(store)[-1] / "summary.md").read_text()
        assert annotations(the_last(store)) == [
            f"::error title=scenarios::0 of 2 scenarios are worse than {old}, and not all are compared"
        ]
        folder.chmod(0o700)
    else:
        assert done.returncode == codes.MET
    assert "2 of 2 runs as expected" in done.stdout
    assert again.returncode == codes.BAD_INPUT
