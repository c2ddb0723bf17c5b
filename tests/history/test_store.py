"""Runs on disk: made, sealed, cut off."""

from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree
from typing import Any

import pyarrow.parquet as pq
import pytest

from harness.core.errors import EnvironmentLacks, HistoryError
from harness.history.journal import Journal, journal_path
from harness.history.paths import table_directory
from harness.history.run_file import RunFile, State
from harness.history.schema import FAULTS, SENDS, TABLES
from harness.history.seal import SEAL_FILE, write_sealed
from harness.history.store import RunRecord, ensure_sealed, interrupted, seal
from harness.history.stored_run import StoredRun
from harness.run.new_run import new_run
from harness.run.recording import recording
from harness.scenario.model import Scenario
from tests.history.rows import send

SCENARIO = Scenario(name="a/story")


@pytest.fixture
def record(tmp_path: Path) -> Iterator[RunRecord]:
    made = new_run(SCENARIO, 7, tmp_path)
    yield made
    made.release()


def journal(record: RunRecord, *batches: list[dict[str, Any]]) -> Path:
    path = journal_path(record.journals, "sends", "1")
    with Journal(path, SENDS) as file:
        for batch in batches:
            file.append_rows(batch)
    return path


def sends(record: RunRecord) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(table_directory(record.directory, "sends")).to_pylist()
    return rows


def test_a_new_run_is_named_after_scenario_time_and_seed(record: RunRecord, tmp_path: Path) -> None:
    assert record.directory.parent == tmp_path / "a" / "story"
    assert record.directory.name.endswith("Z-7")
    assert RunFile.read(record.directory).state is State.RUNNING


def test_a_store_that_cannot_be_written_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file, no folder")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("store", "loop"):
        with pytest.raises(EnvironmentLacks, match="name another --store"):
            new_run(SCENARIO, 7, tmp_path / name)


def test_sealing_keeps_the_last_row_of_each_send(record: RunRecord) -> None:
    journal(record, [send(1), send(0)], [send(1, outcome="ok", completed_ns=9, offset=4)])
    seal(record.directory, record.file)
    assert (record.file.notes, record.file.partial) == ([], False)
    assert [(row["sequence"], row["outcome"]) for row in sends(record)] == [(0, "info"), (1, "ok")]


def test_a_sealed_run_has_every_table_and_no_journal(record: RunRecord) -> None:
    journal(record, [send(0)])
    seal(record.directory, record.file)
    assert all(any(table_directory(record.directory, table).glob("*.parquet")) for table in TABLES)
    assert not list(record.journals.glob("*.arrows"))


def test_sealing_twice_loses_nothing(record: RunRecord) -> None:
    journal(record, [send(0)])
    seal(record.directory, record.file)
    assert ensure_sealed_as(record, State.RECORDED).partial is False
    assert len(sends(record)) == 1


def test_a_journal_that_was_cut_off_is_sealed_as_far_as_it_goes(record: RunRecord) -> None:
    path = journal(record, [send(0)], [send(1)])
    path.write_bytes(path.read_bytes()[:-40])
    file = ensure_sealed_as(record, State.CRASHED)
    assert file.partial
    assert any("sends.1.arrows was cut off: 1 rows could be read" in note for note in file.notes)
    assert [row["sequence"] for row in sends(record)] == [0]


@pytest.mark.parametrize(("killed", "partial"), [(set(), True), ({"1"}, False), ({"1.1", "2"}, True)])
def test_a_journal_that_was_cut_off_makes_a_run_partial_unless_its_worker_was_killed_on_purpose(
    record: RunRecord, killed: set[str], partial: bool
) -> None:
    path = journal(record, [send(0)], [send(1)])
    path.write_bytes(path.read_bytes()[:-40])
    seal(record.directory, record.file, frozenset(killed))
    assert record.file.notes == ["sends.1.arrows was cut off: 1 rows could be read"]
    assert record.file.partial is partial


@pytest.mark.parametrize(
    ("until", "rows", "state"),
    [
        (State.RUNNING, [send(0)], State.CRASHED),
        (State.RUNNING, [], State.INTERRUPTED),
        (State.RECORDED, [], State.RECORDED),
    ],
)
def test_a_run_that_breaks_off_has_crashed_unless_all_was_recorded_or_nothing_sent(
    record: RunRecord, until: State, rows: list[dict[str, Any]], state: State
) -> None:
    record.file.state = until
    journal(record, rows)
    with pytest.raises(KeyboardInterrupt), recording(record):
        raise KeyboardInterrupt
    file = RunFile.read(record.directory)
    assert (file.state, file.notes) == (state, ["broken off: KeyboardInterrupt"])


@pytest.mark.parametrize("sealed", [False, True])
def test_a_run_that_is_interrupted_at_its_seal_is_whole_and_sealed(record: RunRecord, sealed: bool) -> None:
    journal(record, [send(0)])
    seal(record.directory, record.file)
    record.file.state = State.RECORDED
    if sealed:
        write_sealed(record.directory, record.file)
    with pytest.raises(KeyboardInterrupt), recording(record):
        raise KeyboardInterrupt
    run = StoredRun.open(record.directory)
    assert (run.sealed, run.file.state, run.count("sends")) == (True, State.RECORDED, 1)


def test_a_crashed_run_is_what_is_sealed_before_it_has_a_seal(record: RunRecord) -> None:
    journal(record, [send(0)])
    record.file.state = State.CRASHED
    record.save()
    record.release()
    in_the_way = record.directory / SEAL_FILE
    in_the_way.mkdir()
    with pytest.raises(OSError, match=SEAL_FILE):
        ensure_sealed(record.directory)
    in_the_way.rmdir()
    broken_off = (record.directory / "run.json").read_text()
    ensure_sealed(record.directory)
    assert (record.directory / "run.json").read_text() == broken_off, "killed between the two, it would be refused"
    assert StoredRun.open(record.directory).sealed


@pytest.mark.parametrize("gone", [0, 1, 2])
def test_a_seal_that_was_killed_while_it_removed_journals_has_lost_nothing(record: RunRecord, gone: int) -> None:
    first = journal(record, [send(0)])
    second = journal_path(record.journals, "sends", "2")
    with Journal(second, SENDS) as file:
        file.append_rows([send(1)])
    kept = {path: path.read_bytes() for path in (first, second)}
    seal(record.directory, record.file)
    for path in (first, second)[gone:]:
        path.write_bytes(kept[path])
    ensure_sealed_as(record, State.CRASHED)
    assert sorted(row["sequence"] for row in sends(record)) == [0, 1]
    assert not list(record.journals.glob("*.arrows"))


def test_a_seal_that_was_killed_before_history_was_whole_begins_again(record: RunRecord) -> None:
    journal(record, [send(0), send(1)])
    half = table_directory(record.directory, "sends")
    half.mkdir(parents=True)
    (half / "1.parquet").write_bytes(b"PAR1")
    ensure_sealed_as(record, State.CRASHED)
    assert len(sends(record)) == 2


@pytest.mark.parametrize("table", ["faults", "transactions"])
@pytest.mark.parametrize("left", [False, True], ids=["no journal", "a journal that was left"])
def test_a_whole_history_that_lost_a_table_is_refused_and_loses_no_journal(
    record: RunRecord, table: str, left: bool
) -> None:
    path = journal(record, [send(0)])
    kept = path.read_bytes()
    seal(record.directory, record.file)
    if left:
        path.write_bytes(kept)
    rmtree(table_directory(record.directory, table))
    with pytest.raises(HistoryError, match=rf"{table}: missing: copy the run again"):
        ensure_sealed_as(record, State.CRASHED)
    assert path.exists() is left


def test_a_run_that_recorded_nothing_cannot_be_judged(record: RunRecord) -> None:
    with pytest.raises(HistoryError, match="recorded nothing"):
        ensure_sealed_as(record, State.CRASHED)


def test_a_journal_of_another_schema_is_named(record: RunRecord) -> None:
    with Journal(journal_path(record.journals, "sends", "1"), FAULTS):
        pass
    with pytest.raises(HistoryError, match=r"sends\.1\.arrows: journal of another schema"):
        seal(record.directory, record.file)


def test_a_run_that_is_still_going_is_left_alone(record: RunRecord) -> None:
    path = journal(record, [send(0)])
    with pytest.raises(HistoryError, match="still going"):
        ensure_sealed(record.directory)
    assert path.exists()


def ensure_sealed_as(record: RunRecord, state: State) -> RunFile:
    record.file.state = state
    record.save()
    record.release()
    return ensure_sealed(record.directory)


def sealed_in(record: RunRecord, state: State) -> Path:
    """A run that was sealed; then its run.json says ``state``. Returns: a part of its history."""
    journal(record, [send(0)])
    seal(record.directory, record.file)
    record.file.state = State.RECORDED
    write_sealed(record.directory, record.file)
    record.file.state = state
    record.save()
    record.release()
    [part] = table_directory(record.directory, "sends").iterdir()
    return part


@pytest.mark.parametrize("state", [State.RUNNING, State.CRASHED, State.INTERRUPTED])
def test_a_sealed_run_is_not_interrupted_though_its_history_is_gone(record: RunRecord, state: State) -> None:
    sealed_in(record, state)
    rmtree(record.directory / "history")
    assert not interrupted(record.directory)


def test_a_recording_that_crashed_had_sent_something_though_its_journals_are_gone(record: RunRecord) -> None:
    record.file.state = State.CRASHED
    record.save()
    record.release()
    assert not interrupted(record.directory)
    with pytest.raises(HistoryError, match="recorded nothing"):
        ensure_sealed(record.directory)


def test_a_recording_that_was_killed_before_anything_was_sent_is_interrupted(record: RunRecord) -> None:
    journal(record, [])
    record.release()
    assert interrupted(record.directory)


def test_a_sealed_run_that_lost_a_part_is_not_sealed_again(record: RunRecord) -> None:
    part = sealed_in(record, State.RUNNING)
    before = (record.directory / SEAL_FILE).read_bytes()
    part.unlink()
    with pytest.raises(HistoryError, match=rf"{part.name}: missing"):
        ensure_sealed(record.directory)
    assert (record.directory / SEAL_FILE).read_bytes() == before


def test_one_whose_recorder_was_killed_before_its_run_file_is(record: RunRecord) -> None:
    sealed_in(record, State.RUNNING)
    assert ensure_sealed(record.directory).state is State.CRASHED
    assert StoredRun.open(record.directory).sealed
