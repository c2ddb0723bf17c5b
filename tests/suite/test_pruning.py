"""Which runs of a store may go."""

from pathlib import Path

import pytest

from harness.core.verdict import Judgement
from harness.history.lock import RecordingLock
from harness.history.run_file import State
from harness.suite.pruning import Kept, remove, removed, size_of, to_remove
from harness.suite.stored import Stored, read_run
from tests.report.verdicts import run_file, verdict
from tests.suite.fakes import record

DAY = 86_400


def kept(day: int, size: int = 10, expected: bool | None = True, state: State = State.JUDGED) -> Kept:
    file = run_file().model_copy(update={"origin_unix_ns": day * DAY * 10**9, "state": state})
    found = None if expected is None else verdict(Judgement.VALID, expected=expected)
    return Kept(Stored(Path(f"day-{day}"), file, found), size)


def days(chosen: list[Kept]) -> list[str]:
    return [one.run.directory.name for one in chosen]


def chosen(
    runs: list[Kept], days_: float | None = None, most: int | None = None, unexpected: bool = False
) -> list[str]:
    return days(to_remove(runs, 100 * DAY, days_, most, unexpected))


def test_what_is_older_goes() -> None:
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
def test_what_was_not_expected_or_not_judged_stays_unless_told(expected: bool | None) -> None:
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
    assert remove(run)
    assert list((tmp_path / "store").iterdir()) == []
    assert (outside / "file").is_file()


def test_a_run_that_is_being_recorded_stays(tmp_path: Path) -> None:
    run = record(tmp_path, "a", 1)
    lock = RecordingLock(run)
    one = kept(1)
    here = Kept(Stored(run, one.run.file, one.run.verdict), 10)
    [(line, gone)] = removed([here], dry_run=False)
    assert (line.startswith("left"), line.endswith("being recorded"), gone) == (True, True, None)
    assert run.is_dir()
    lock.release()
    [(line, gone)] = removed([here], dry_run=True)
    assert (line.startswith("would remove"), gone) == (True, here)
    assert run.is_dir()
