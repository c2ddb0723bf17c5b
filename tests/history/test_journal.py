"""Journals: appended rows can be read, whatever happened to the writer."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from harness.core.errors import HistoryError
from harness.history.journal import Journal, journal_path, read_journal, table_of
from harness.history.schema import FAULTS, LOG_ENDS


def row(partition: int) -> dict:
    return {"topic": "t", "partition": partition, "log_start": 0, "log_end": 9, "read_to": 9, "complete": True}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return journal_path(tmp_path, "log_ends", "reader-0")


def test_a_journal_is_named_by_its_table_and_worker(path: Path) -> None:
    assert path.name == "log_ends.reader-0.arrows"
    assert table_of(path) == "log_ends"


def test_a_closed_journal_is_read_whole(path: Path) -> None:
    with Journal(path, LOG_ENDS) as journal:
        journal.append_rows([row(0), row(1)])
        journal.append_rows([])
        journal.append_rows([row(2)])
    rows, closed = read_journal(path, LOG_ENDS)
    assert (rows.to_pylist(), closed) == ([row(0), row(1), row(2)], True)


def test_a_journal_without_rows_is_whole_too(path: Path) -> None:
    Journal(path, LOG_ENDS).close()
    rows, closed = read_journal(path, LOG_ENDS)
    assert (rows.num_rows, closed) == (0, True)


def test_closing_twice_is_harmless(path: Path) -> None:
    journal = Journal(path, LOG_ENDS)
    journal.close()
    journal.close()
    assert read_journal(path, LOG_ENDS)[1]


def test_a_journal_whose_writer_still_lives_is_read_up_to_its_last_batch(path: Path) -> None:
    with Journal(path, LOG_ENDS) as journal:
        journal.append_rows([row(0)])
        rows, closed = read_journal(path, LOG_ENDS)
    assert (rows.to_pylist(), closed) == ([row(0)], False)


def test_however_a_journal_is_cut_every_whole_batch_is_read(path: Path, tmp_path: Path) -> None:
    with Journal(path, LOG_ENDS) as journal:
        for partition in range(3):
            journal.append_rows([row(partition)])
    whole = path.read_bytes()
    cut = tmp_path / "log_ends.cut.arrows"
    read = []
    for length in range(len(whole)):
        cut.write_bytes(whole[:length])
        rows, closed = read_journal(cut, LOG_ENDS)
        assert not closed
        assert rows.to_pylist() == [row(partition) for partition in range(rows.num_rows)]
        read.append(rows.num_rows)
    assert read == sorted(read)
    assert (read[0], read[-1]) == (0, 3)


@contextmanager
def no_file_beyond(size: int) -> Iterator[None]:
    """While it lasts no file grows beyond ``size`` bytes: as on a full disk, a write ends in the middle."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("room", [10, 100, 200, 1000])
def test_a_journal_that_failed_in_the_middle_of_a_batch_takes_nothing_more(path: Path, room: int) -> None:
    with Journal(path, LOG_ENDS) as journal:
        journal.append_rows([row(0)])
        batch = [row(partition) for partition in range(1, 300)]
        with no_file_beyond(path.stat().st_size + room), pytest.raises(OSError, match="File too large"):
            journal.append_rows(batch)
        for _ in range(2):
            with pytest.raises(OSError, match=f"an earlier write failed .*{path.name}"):
                journal.append_rows(batch)
    rows, closed = read_journal(path, LOG_ENDS)
    assert (rows.to_pylist(), closed) == ([row(0)], False)


def test_a_journal_that_failed_between_two_batches_takes_nothing_more_either(path: Path) -> None:
    with Journal(path, LOG_ENDS) as journal:
        journal.append_rows([row(0)])
        with no_file_beyond(path.stat().st_size), pytest.raises(OSError, match="File too large"):
            journal.append_rows([row(1)])
        with pytest.raises(OSError, match="an earlier write failed"):
            journal.append_rows([row(2)])
    rows, closed = read_journal(path, LOG_ENDS)
    assert (rows.to_pylist(), closed) == ([row(0)], False)


def test_a_journal_may_lack_a_later_column_and_no_other(path: Path) -> None:
    older = pa.schema([field for field in LOG_ENDS if field.name != "read_to"])
    with Journal(path, older) as journal:
        journal.append_rows([row(0)])
    rows, closed = read_journal(path, LOG_ENDS, later={"read_to"})
    assert (rows.to_pylist(), closed) == ([row(0) | {"read_to": None}], True)
    with pytest.raises(HistoryError, match="no column read_to"):
        read_journal(path, LOG_ENDS)


def test_a_journal_may_have_a_former_column_and_no_other(path: Path) -> None:
    with Journal(path, LOG_ENDS.insert(1, pa.field("poll", pa.int64()))) as journal:
        journal.append_rows([row(0) | {"poll": 7}])
    rows, closed = read_journal(path, LOG_ENDS, former={"poll"})
    assert (rows.to_pylist(), rows.schema, closed) == ([row(0)], LOG_ENDS, True)
    with pytest.raises(HistoryError, match="columns that this version does not know"):
        read_journal(path, LOG_ENDS)


def test_a_journal_of_another_schema_is_refused_by_name(path: Path) -> None:
    with Journal(path, FAULTS) as journal:
        journal.append(pa.RecordBatch.from_pylist([], schema=FAULTS))
    with pytest.raises(HistoryError, match=r"log_ends\.reader-0\.arrows.*no column topic"):
        read_journal(path, LOG_ENDS)


def test_a_column_of_another_type_is_named(path: Path) -> None:
    other = LOG_ENDS.set(1, pa.field("partition", pa.int64(), nullable=False))
    with Journal(path, other) as journal:
        journal.append_rows([row(0)])
    with pytest.raises(HistoryError, match="partition is int64, not int32"):
        read_journal(path, LOG_ENDS)
