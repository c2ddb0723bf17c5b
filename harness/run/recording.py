"""The record of a run while it goes on: its phases, its notes, and how it ends where it breaks off."""

from collections.abc import Iterator
from contextlib import contextmanager

from harness.history.run_file import State
from harness.history.seal import write_sealed
from harness.history.store import RunRecord, sent_nothing
from harness.run.display import Display
from harness.run.versions import versions


@contextmanager
def recording(record: RunRecord) -> Iterator[RunRecord]:
    """Hold the record until the run is over. If the run breaks off, run.json says so; if anything was sent, the
    journals stay, and ``check`` can judge them. (What was sealed before it broke off is whole.)"""
    record.file.versions = versions(record.file.configuration.version)
    try:
        yield record
    except BaseException as exc:
        if record.file.state is not State.RECORDED:
            record.file.state = State.INTERRUPTED if sent_nothing(record.directory) else State.CRASHED
        record.file.notes.append(f"broken off: {type(exc).__name__}: {exc}".rstrip(": "))
        exc.add_note(f"what was recorded is kept in {record.directory}")
        try:
            if record.file.state is State.RECORDED:
                # A seal over run.json as it was before would refuse the run.
                write_sealed(record.directory, record.file)
            else:
                record.save()
        except OSError as full:
            exc.add_note(f"its run.json does not say that it broke off: {full.strerror}")
        raise
    finally:
        record.release()


def note(record: RunRecord, display: Display, text: str) -> None:
    """Note and show what went wrong beside what is judged."""
    record.file.notes.append(text)
    display.line(text)


def begin(record: RunRecord, display: Display, name: str) -> None:
    """Note and show that a phase of the run begins."""
    record.phase(name)
    display.phase(name)
