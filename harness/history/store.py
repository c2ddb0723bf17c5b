"""A run while it is recorded, and how its journals are sealed into Parquet."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from harness.core.clock import Clock, ClockOffset
from harness.core.errors import HistoryError
from harness.core.topology import Topology
from harness.history.journal import SUFFIX, has_rows, read_journal, table_of
from harness.history.lock import RecordingLock, is_recorded
from harness.history.paths import HISTORY, JOURNALS, write_table
from harness.history.run_file import RUN_FILE, ClockReport, NodeAddress, PhaseReport, RunFile, State
from harness.history.schema import FORMER, KEYS, LATER, TABLES
from harness.history.seal import SEAL_FILE, Seal, write_sealed
from harness.history.writing import made_beside, swap_in

DEFAULT_STORE = Path("store")

#: A file that marks a whole history: it has all rows of the journals, so these may be removed.
_WHOLE = ".whole"


class RunRecord:
    """A run that is being recorded: its directory and clock, and run.json as it grows."""

    def __init__(self, directory: Path, file: RunFile, clock: Clock) -> None:
        self.directory = directory
        self.file = file
        self.clock = clock
        self._lock = RecordingLock(directory)

    def release(self) -> None:
        """End the recording, so that others may judge the run. (The end of the process does the same.)"""
        self._lock.release()

    @property
    def journals(self) -> Path:
        """Where workers journal."""
        return self.directory / JOURNALS

    def phase(self, name: str) -> None:
        """Note that a phase begins now."""
        self.file.phases.append(PhaseReport(phase=name, at_ns=self.clock.now()))
        self.save()

    def nodes(self, topology: Topology, clocks: Mapping[str, ClockOffset]) -> None:
        """Note the nodes, and how far their clocks are off."""
        self.file.nodes = [
            NodeAddress(name=n.name, role=n.role, id=n.id, address=n.address)
            for n in (*topology.nodes, topology.clients)
        ]
        self.clocks(clocks)

    def clocks(self, offsets: Mapping[str, ClockOffset]) -> None:
        """Note how far the nodes' wall clocks are from this machine's now."""
        at_ns = self.clock.now()
        self.file.clocks += [
            ClockReport(node=name, at_ns=at_ns, ahead_s=offset.seconds, error_s=offset.error)
            for name, offset in offsets.items()
        ]
        self.save()

    def save(self) -> None:
        """Write run.json."""
        self.file.write(self.directory)


def seal(directory: Path, file: RunFile, killed: frozenset[str] = frozenset()) -> None:
    """Turn the journals of a run into ``history/<table>/*.parquet``; remove them when the history is whole.

    It can be repeated if it was interrupted: the journals stay until the history is whole. A journal that was cut off
    is noted in ``file``, and makes the run partial, unless its writer is one of ``killed`` (workloads.protocol:
    ``journal``): a worker that the scenario kills closes no journal. Raises HistoryError if a journal has another
    schema, or if a table of a whole history is missing.
    """
    journals = _journals(directory)
    if not history_is_whole(directory):
        with made_beside(directory) as beside:
            cut = _write_history(beside, journals, file.notes)
            (beside / HISTORY / _WHOLE).touch()
            swap_in(beside / HISTORY, directory / HISTORY)
        file.partial |= bool(cut - killed)
    for path in journals:
        path.unlink()


def history_is_whole(directory: Path) -> bool:
    """Whether the history has all rows of the journals: the journals may be removed. Raises HistoryError if it had, and
    a table is missing since."""
    whole = (directory / HISTORY / _WHOLE).exists()
    missing = next((path for path in _tables(directory) if whole and not path.is_dir()), None)
    if missing is not None:
        raise HistoryError(f"{missing}: missing: copy the run again from where it was recorded")
    return whole


def _write_history(directory: Path, journals: Sequence[Path], notes: list[str]) -> set[str]:
    """Write every table of the journals. Returns the writers whose journals were cut off, and notes each."""
    cut = set[str]()
    for path in journals:
        table = table_of(path)
        if table not in TABLES:
            raise HistoryError(f"{path}: no table is called {table}")
        rows, closed = _journalled(path, table)
        writer = path.stem.split(".", 1)[1]
        if not closed:
            notes.append(f"{path.name} was cut off: {rows.num_rows} rows could be read")
            cut.add(writer)
        write_table(directory, table, _last_of_each_key(rows, KEYS.get(table, ())), writer)
    for path in _tables(directory):
        if not path.is_dir():
            write_table(directory, path.name, TABLES[path.name].empty_table())
    return cut


def _tables(directory: Path) -> list[Path]:
    """The directory of each table of a history."""
    return [directory / HISTORY / table for table in TABLES]


def ensure_sealed(directory: Path) -> RunFile:
    """The run file of a run that can be judged. A run that was cut off is sealed as it is, and marked partial.

    Raises HistoryError if there is nothing to judge, or the run is still being recorded.
    """
    file = RunFile.read(directory)
    if file.state in {State.RECORDED, State.JUDGED}:
        return file
    if file.state is not State.RUNNING and (directory / SEAL_FILE).is_file():
        return file
    if is_recorded(directory):
        raise HistoryError(f"{directory}: this run is still going: judge it when it is over")
    # (A recorder that was killed between the seal and run.json had sealed a whole history.)
    if (directory / SEAL_FILE).is_file() and (sealed := Seal.read(directory)) is not None:
        sealed.check_history(directory)
    if _journals(directory):
        seal(directory, file)
    elif not history_is_whole(directory) and not (directory / HISTORY).is_dir():
        raise HistoryError(f"{directory / RUN_FILE}: the run is {file.state} and recorded nothing")
    file.partial = True
    # (A recorder that was killed had no time to write it.)
    file.state = State.CRASHED
    # Before the seal: only a run whose state is still ``running`` may be sealed.
    file.write(directory)
    write_sealed(directory, file)
    return file


def interrupted(directory: Path) -> bool:
    """Whether a run ended before anything was sent: there is nothing to judge. Raises HistoryError if it is no run."""
    # (What is sealed was sent.)
    is_interrupted = state_now(directory) is State.INTERRUPTED
    return is_interrupted and not (directory / SEAL_FILE).is_file() and not is_recorded(directory)


def state_now(directory: Path) -> State:
    """The state of a run. If its recorder was killed, it had no time to write one: the run is interrupted if nothing
    was sent, and else crashed. Raises HistoryError or OSError if its files cannot be read."""
    going_on = is_recorded(directory)
    # (After that: its recorder may have ended meanwhile.)
    state = RunFile.read(directory).state
    if state is not State.RUNNING or going_on:
        return state
    return State.INTERRUPTED if sent_nothing(directory) else State.CRASHED


def sent_nothing(directory: Path) -> bool:
    """Whether a run that is not sealed has no sends."""
    if (directory / HISTORY).is_dir():
        return False
    sends = (path for path in _journals(directory) if table_of(path) == "sends")
    return not any(map(has_rows, sends))


def _journalled(path: Path, table: str) -> tuple[pa.Table, bool]:
    return read_journal(path, TABLES[table], LATER.get(table, ()), FORMER.get(table, ()))


def _journals(directory: Path) -> list[Path]:
    return sorted((directory / JOURNALS).glob(f"*{SUFFIX}"))


def _last_of_each_key(rows: pa.Table, key: tuple[str, ...]) -> pa.Table:
    """The last row of each key, in the order of the keys; all rows if the table has no key."""
    if not key or rows.num_rows == 0:
        return rows
    numbered = rows.append_column("row", pa.array(np.arange(rows.num_rows)))
    last = numbered.group_by(list(key)).aggregate([("row", "max")])
    order = pc.sort_indices(last, sort_keys=[(name, "ascending") for name in key])
    return rows.take(last.column("row_max").take(order))
