"""A disk that is really full: recorded rows stay, the error is one line, and with room again the work continues.

The disks are in memory; to mount them takes root.
"""

import errno
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.cli import codes
from harness.cli.backends import Backends
from harness.core.errors import EnvironmentLacks
from harness.core.verdict import Verdict
from harness.history.journal import Journal, journal_path, read_journal
from harness.history.run_file import RunFile, State
from harness.history.schema import SENDS, TABLES, record_id
from harness.history.store import ensure_sealed, seal
from harness.history.stored_run import StoredRun
from harness.report import write as write_reports
from harness.run.new_run import new_run
from harness.run.recording import recording
from harness.scenario.model import Scenario
from harness.suite.recorder import Event, Order
from tests.checkers.notation import by_hand
from tests.cli.conftest import judging
from tests.command import Done, Invoke
from tests.history.rows import send
from tests.report.verdicts import verdict
from tests.suite.fakes import FakeRecorder, World, record

SCENARIO = Scenario(name="a/story")


class Disk:
    """A small disk, and what fills it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        _run("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(path))

    def fill(self, leave: int = 0) -> None:
        """Fill it but for so many bytes."""
        with (self.path / "filler").open("wb", buffering=0) as filler:
            with pytest.raises(OSError, match="No space left on device"):
                _endlessly(lambda: filler.write(bytes(4096)))
            filler.truncate(max(0, filler.tell() - leave))

    def empty(self) -> None:
        """Make room."""
        (self.path / "filler").unlink()

    def free(self) -> int:
        """The bytes that are left."""
        said = os.statvfs(self.path)
        return said.f_bfree * said.f_bsize

    def release(self) -> None:
        """Unmount it."""
        _run("umount", "--lazy", str(self.path))


def _endlessly(act: Callable[[], object]) -> None:
    while True:
        act()


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    disk = Disk(tmp_path / "disk")
    yield disk
    disk.release()


def filled_up(journals: Path) -> list[int]:
    """Write to a journal until the disk is full; returns the numbers of the rows it took."""
    taken: list[int] = []
    with Journal(journal_path(journals, "sends", "1"), SENDS) as journal:

        def append() -> None:
            batch = range(len(taken), len(taken) + 7)
            journal.append_rows([send(sequence) for sequence in batch])
            taken.extend(batch)

        with pytest.raises(OSError, match="No space left on device"):
            _endlessly(append)
        with pytest.raises(OSError, match="an earlier write failed"):
            journal.append_rows([send(len(taken))])
    return taken


def test_a_journal_on_a_full_disk_keeps_its_rows_and_takes_no_more(disk: Disk) -> None:
    disk.fill(leave=40_000)
    taken = filled_up(disk.path)
    table, closed = read_journal(journal_path(disk.path, "sends", "1"), SENDS)
    assert len(taken) > 100
    assert (table["record_id"].to_pylist(), closed) == ([record_id(1, sequence) for sequence in taken], False)


def recorded(disk: Disk) -> tuple[Path, list[int]]:
    """A run whose disk became full while it was recorded."""
    record = new_run(SCENARIO, 7, disk.path)
    with Journal(journal_path(record.journals, "observations", "observer"), TABLES["observations"]) as rows:
        rows.append_rows(by_hand("saw b1 @0 leader=1 epoch=0 isr=1,2,3").rows["observations"])
    disk.fill(leave=40_000)
    taken = filled_up(record.journals)
    record.release()
    return record.directory, taken


def held(run: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file()}


def test_a_run_that_cannot_be_sealed_keeps_its_journals_and_is_sealed_when_there_is_room(disk: Disk) -> None:
    run, taken = recorded(disk)
    before = held(run)
    with pytest.raises(OSError, match="No space left on device"):
        seal(run, RunFile.read(run))
    assert held(run) == before
    disk.empty()
    file = ensure_sealed(run)
    assert (StoredRun.open(run).records, file.partial, RunFile.read(run).partial) == (len(taken), True, True)
    assert not list((run / "journals").iterdir())


def test_check_says_in_one_line_that_a_disk_is_full_and_judges_the_run_when_there_is_room(
    disk: Disk, kafka_trial: Invoke
) -> None:
    run, taken = recorded(disk)
    before = held(run)
    done = kafka_trial("check", run, backends=judging())
    assert (done.code, done.out) == (codes.CANNOT_RUN, "")
    assert done.err.startswith("kafka-trial: ")
    assert (done.err.count("\n"), "No space left on device" in done.err) == (1, True)
    assert held(run) == before
    disk.empty()
    assert kafka_trial("check", run, backends=judging()).code == 0
    assert (StoredRun.open(run).records, RunFile.read(run).state) == (len(taken), State.CRASHED)


def test_a_verdict_that_cannot_be_written_leaves_the_earlier_one_whole(disk: Disk, kafka_trial: Invoke) -> None:
    run, _ = recorded(disk)
    disk.empty()

    def finds(directory: Path, results: Path) -> Verdict:
        (results / "anomalies" / "lost").mkdir(parents=True)
        return verdict()

    def judge(*_: object) -> Callable[[Path, Path], Verdict]:
        return finds

    assert kafka_trial("check", run, backends=judging(judge=judge)).code == 0
    disk.fill(leave=4096)
    before = held(run)
    done = kafka_trial("check", run, "--json", backends=judging(verdict(expected=False)))
    assert done.code == codes.CANNOT_RUN
    assert (done.err.count("\n"), "No space left on device" in done.err) == (1, True)
    assert held(run) == before
    assert (run / "anomalies" / "lost").is_dir()
    Verdict.model_validate_json((run / "verdict.json").read_text())


def test_a_run_that_breaks_off_on_a_full_disk_tells_why_and_can_be_judged(disk: Disk, kafka_trial: Invoke) -> None:
    record = new_run(SCENARIO, 7, disk.path)

    def play() -> None:
        disk.fill(leave=40_000)
        filled_up(record.journals)
        raise OSError(errno.ENOSPC, "No space left on device", "the first to notice")

    with pytest.raises(OSError, match="the first to notice") as broken, recording(record):
        play()
    assert f"the recording stays in {record.directory}" in broken.value.__notes__
    disk.empty()
    assert kafka_trial("check", record.directory, backends=judging()).code == 0
    assert RunFile.read(record.directory).partial


def test_a_run_that_cannot_begin_says_so_and_leaves_nothing(disk: Disk) -> None:
    disk.fill()
    with pytest.raises(EnvironmentLacks, match="runs cannot be kept there"):
        new_run(SCENARIO, 7, disk.path)
    assert [path for path in disk.path.rglob("*") if path.is_file()] == [disk.path / "filler"]


def suite_on(disk: Disk, kafka_trial: Invoke, then: Callable[[], object], *more: object) -> Done:
    """A suite of one run on a disk, and what happens ``then``, before it is judged."""
    actions = World(disk.path).actions()

    def judge(run: Path, results: Path) -> Verdict:
        # (While a run is judged, nothing else writes to the disk.)
        then()
        return verdict()

    backends = Backends(recorder=actions.start, judge=lambda *_: judge, clean=actions.clean, abandon=actions.abandon)
    return kafka_trial("suite", "delivery/at-least-once", "--store", disk.path, *more, backends=backends)


@pytest.mark.parametrize("compared", [False, True])
def test_a_suite_without_room_for_its_end_and_reports_offers_resume_only_if_work_is_left(
    compared: bool, disk: Disk, tmp_path: Path, kafka_trial: Invoke
) -> None:
    """Its runs are all judged."""
    old = record(tmp_path / "old", "delivery/at-least-once", 1)
    write_reports(old, verdict(), RunFile.read(old))
    free: list[int] = []

    def free_without_reports() -> None:
        for name in ("junit.xml", "summary.md", "index.html"):
            [report] = disk.path.glob(f"suite-*/{name}")
            report.unlink()
        free.append(disk.free())

    def fill() -> None:
        free_without_reports()
        disk.fill(leave=taken + 4096)

    assert suite_on(disk, kafka_trial, free_without_reports).code == codes.MET
    free_without_reports()
    taken = free[0] - free[1]
    for path in disk.path.iterdir():
        shutil.rmtree(path)
    # (One page more: for suite.json, which is made beside the old one. Then reports may take it.)
    more = ["--baseline", tmp_path / "old"] if compared else []
    done = suite_on(disk, kafka_trial, fill, *more)
    assert done.code == codes.CANNOT_RUN
    # (Which file is the first that does not fit: a file of either run may need a page more or less.)
    said = done.err.splitlines()[-1]
    assert re.search(
        r"/(suite\.json|junit\.xml|summary\.md|index\.html): No space left on device; 1 of 1 runs as expected", said
    )
    left = compared or "/suite.json:" in said
    assert ("continues it" in done.err) is left
    if left:
        disk.empty()
        assert suite_on(disk, kafka_trial, list, "--resume").code == codes.MET
        [suite] = disk.path.glob("suite-*/suite.json")
        written = json.loads(suite.read_text())
        assert written["ended"]
        assert (written["measure"] or {}).get("compared", False) is compared


def test_a_full_disk_is_one_line_and_resume_works_once_there_is_room(disk: Disk, kafka_trial: Invoke) -> None:
    world = World(disk.path, {"delivery/at-most-once": [Event(kind="failed", text="does not come up")]})
    actions = world.actions()

    def start(order: Order, log: Path, on_event: Callable[[Event], None]) -> FakeRecorder:
        if order.written == "delivery/at-most-once":
            disk.fill()
        return actions.start(order, log, on_event)  # type: ignore[return-value]

    arguments = ["suite", "delivery/at-least-once", "delivery/at-most-once", "--store", disk.path]
    backends = Backends(recorder=start, judge=lambda *_: actions.judge(), clean=actions.clean, abandon=actions.abandon)
    done = kafka_trial(*arguments, backends=backends)
    assert done.code == codes.CANNOT_RUN
    said = done.err.splitlines()[-1]
    assert re.search(
        r"suite-scenarios-\S+/suite.json: No space left on device; [01] of 2 runs as expected, .* continues it$", said
    )
    disk.empty()
    later = World(disk.path).actions()
    backends = Backends(recorder=later.start, judge=lambda *_: later.judge(), clean=later.clean, abandon=later.abandon)
    assert kafka_trial(*arguments, "--resume", backends=backends).code == codes.MET
    [suite] = disk.path.glob("suite-*/suite.json")
    assert [run["outcome"] for run in json.loads(suite.read_text())["runs"]] == ["as expected"] * 2
