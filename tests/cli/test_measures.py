"""The baseline of a resumed suite is the same as when it began, from any directory and in a moved store."""

import fcntl
import os
import shutil
import signal
import termios
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.cli import codes
from harness.core.verdict import Judgement, Verdict
from harness.suite.recorder import Event
from harness.suite.results import SuiteFile, stored_suites
from tests.cli.test_suites import TWO, backends, judged
from tests.command import Invoke
from tests.report.verdicts import verdict
from tests.suite.fakes import World

FOUND = "lost: not found before"
HANGS = {TWO[0]: [Event(kind="failed", text="hangs")]}


def begun(store: Path, old: Path | str, kafka_trial: Invoke) -> Path:
    """A suite of one run, compared with ``old``, that was broken off."""
    world = World(store, HANGS, interrupts=True)
    arguments = ["suite", TWO[0], "--store", store, "--baseline", old]
    assert kafka_trial(*arguments, backends=backends(world)).code == codes.CRASHED
    [directory] = stored_suites(store)
    return directory


def worse(store: Path) -> World:
    return World(store, verdicts=[verdict(Judgement.INVALID)])


@pytest.mark.parametrize("named", [False, True])
def test_resume_in_a_moved_store_compares_with_the_first_baseline(
    named: bool, tmp_path: Path, kafka_trial: Invoke
) -> None:
    old = tmp_path / "old"
    judged(old, TWO[0])
    directory = begun(tmp_path / "store", old, kafka_trial)
    moved = tmp_path / "deeper" / "down" / "store"
    moved.parent.mkdir(parents=True)
    shutil.move(tmp_path / "store", moved)
    more = ["--baseline", old] if named else []
    done = kafka_trial("suite", moved / directory.name, "--resume", *more, backends=backends(worse(moved)))
    assert done.code == codes.NOT_MET
    assert SuiteFile.read(moved / directory.name).worse[TWO[0]][0] == FOUND


def test_resume_chooses_another_baseline_run_if_the_first_is_gone(tmp_path: Path, kafka_trial: Invoke) -> None:
    old, store = tmp_path / "old", tmp_path / "store"
    run = judged(old, TWO[0])
    directory = begun(store, old, kafka_trial)
    shutil.rmtree(run)
    judged(old, TWO[0], 2)
    done = kafka_trial("suite", directory, "--resume", backends=backends(worse(store)))
    assert (done.code, SuiteFile.read(directory).worse[TWO[0]][0]) == (codes.NOT_MET, FOUND)


@pytest.mark.parametrize("left", ["an empty store", "a torn verdict", "nothing"])
def test_a_suite_without_a_readable_baseline_is_reported_and_is_no_success(
    left: str, tmp_path: Path, kafka_trial: Invoke
) -> None:
    old, store = tmp_path / "old", tmp_path / "store"
    run = judged(old, TWO[0])
    directory = begun(store, old, kafka_trial)
    if left == "a torn verdict":
        (run / "verdict.json").write_text("{")
    else:
        shutil.rmtree(run if left == "an empty store" else old)
    done = kafka_trial("suite", directory, "--resume", backends=backends(World(store)))
    assert done.code == codes.UNKNOWN
    assert f"{TWO[0]}: not compared: the runs of {old} to compare it with can no longer be read\n" in done.err
    file = SuiteFile.read(directory)
    assert (file.is_left(), file.is_measure(TWO[0])) == (True, False)
    assert "0 of 1 scenarios are worse than" in (directory / "summary.md").read_text()
    assert "and not all are compared" in (directory / "summary.md").read_text()

    judged(tmp_path / "another", TWO[0])
    again = ["suite", directory, "--resume", "--baseline", tmp_path / "another"]
    world = World(store)
    assert kafka_trial(*again, backends=backends(world)).code == codes.MET
    assert [line for line in world.log if line.startswith("up")] == [], "only the comparison was left"
    assert not SuiteFile.read(directory).is_left()


def test_a_relative_baseline_is_the_one_of_the_directory_that_it_is_named_in(
    tmp_path: Path, kafka_trial: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = {name: judged(tmp_path / name / "old", TWO[0]) for name in ("A", "B")}
    monkeypatch.chdir(tmp_path / "A")
    directory = begun(tmp_path / "store", "old", kafka_trial)
    monkeypatch.chdir(tmp_path / "B")
    arguments = ["suite", directory, "--resume", "--baseline", "old"]
    assert kafka_trial(*arguments, backends=backends(World(tmp_path / "store"))).code == codes.MET
    measure = SuiteFile.read(directory).measure
    assert measure is not None
    assert (measure.said, measure.cases[TWO[0]].judged) == (str(tmp_path / "B" / "old"), [str(runs["B"])])


def test_resume_compares_a_suite_if_its_comparison_was_interrupted(tmp_path: Path, kafka_trial: Invoke) -> None:
    """Ctrl-C comes while the old verdict is read: its reader waits at a pipe for more than the first byte."""
    old, store = tmp_path / "old", tmp_path / "store"
    path = judged(old, TWO[0]) / "verdict.json"
    written = path.read_text()

    def interrupt() -> None:
        with path.open("wb", buffering=0) as pipe:
            pipe.write(b"{")
            while any(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4))):
                time.sleep(0.001)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def judge(*_: object) -> Callable[[Path, Path], Verdict]:
        path.unlink()
        os.mkfifo(path)
        writer.start()
        return lambda directory, results: verdict(Judgement.INVALID)

    writer = threading.Thread(target=interrupt, daemon=True)
    arguments = ["suite", TWO[0], "--store", store]
    done = kafka_trial(*arguments, "--baseline", old, backends=backends(World(store), judge=judge))
    writer.join()
    assert done.code == codes.CRASHED
    [directory] = stored_suites(store)
    assert f"; `kafka-trial suite {directory} --resume` continues it\n" in done.err
    path.unlink()
    path.write_text(written)
    done = kafka_trial(*arguments, "--resume", backends=backends(World(store)))
    assert done.code == codes.NOT_MET
    assert SuiteFile.read(directory).worse[TWO[0]][0] == FOUND
