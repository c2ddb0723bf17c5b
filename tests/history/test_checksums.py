"""Every page of every Parquet file that is written now has a checksum, of a run that is recorded and of one that is
imported."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from harness.history.journal import Journal, journal_path
from harness.history.schema import READS, SENDS
from harness.history.store import seal
from harness.importing.jepsen import import_jepsen
from harness.run.new_run import new_run
from harness.scenario.model import Scenario
from tests.history.rows import read, send
from tests.importing import notation


def recorded(directory: Path) -> Path:
    """A run of some sends and reads, as the recorder leaves it."""
    record = new_run(Scenario(name="story"), 1, directory / "store")
    rows = {
        "sends": (SENDS, [send(n, outcome="ok", completed_ns=n + 1, offset=n) for n in range(9)]),
        "reads": (READS, [read(n) for n in range(9)]),
    }
    for table, (schema, written) in rows.items():
        with Journal(journal_path(record.journals, table, "1"), schema) as journal:
            journal.append_rows(written)
    seal(record.directory, record.file)
    record.release()
    return record.directory


def imported(directory: Path) -> Path:
    """A history of Jepsen's, imported."""
    lines = [*notation.sent(1, 7, "[3 7]"), *notation.polled("1 [[3 7]]", process=5)]
    import_jepsen(notation.write(directory / "history.edn", *lines), directory / "run", {})
    return directory / "run"


def last_bytes_of_pages(part: Path) -> Iterator[int]:
    """Where the pages of a small file end: each column has one, and perhaps one for its dictionary."""
    footer = pq.read_metadata(part)
    for group in map(footer.row_group, range(footer.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            start = column.data_page_offset
            if column.has_dictionary_page:
                yield start - 1
                start = column.dictionary_page_offset
            yield start + column.total_compressed_size - 1


@pytest.mark.parametrize("made", [recorded, imported])
def test_every_page_that_is_written_has_a_checksum(made: Callable[[Path], Path], tmp_path: Path) -> None:
    parts = [path for path in made(tmp_path).rglob("*.parquet") if pq.read_metadata(path).num_rows]
    assert {path.parent.name for path in parts} >= {"sends", "reads"}
    for part in parts:
        whole = part.read_bytes()
        for at in last_bytes_of_pages(part):
            part.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            with pytest.raises(OSError, match="CRC checksum"):
                pq.ParquetFile(part, page_checksum_verification=True).read()
