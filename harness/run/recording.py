"""The record of a run while it goes on: its phases, its notes, and its state if it breaks off."""

from collections.abc import Iterator
from contextlib import contextmanager

from harness.history.run_file import State
from harness.history.seal import write_sealed
from harness.history.store import RunRecord, sent_nothing
from harness.run.display import Display
from harness.run.versions import versions


@contextmanager
def recording(record: RunRecord) -> Iterator[RunRecord]:
    """Hold the record until the run is over. If the run breaks off, run.json says so. If anything was sent, the
    journals stay, and ``check`` can judge them. (A run that breaks off after its seal is whole.)"""
    record.file.versions = versions(record.file.configuration.version)
    try:
        yield record
    except BaseException as exc:
        if record.file.state is not State.RECORDED:
            record.file.state = State.INTERRUPTED if sent_nothing(record.directory) else State.CRASHED
        record.file.notes.append(f"broken off: {type(exc).__name__}: {exc}".rstrip(": "))
        exc.add_note(f"the recording stays in {record.directory}")
        try:
            if record.file.state is State.RECORDED:
                # An earlier seal does not match the changed run.json: the run would be refused.
                write_sealed(record.directory, record.file)
            else:
                record.save()
        except OSError as full:
            exc.add_note(f"its run.json could not be changed to say that the run broke off: {full.strerror}")
        raise
    finally:
        record.release()


def note(record: RunRecord, display: Display, text: str) -> None:
    """Note and show a problem that does not concern the verdict."""
    record.file.notes.append(text)
    display.line(text)


def begin(record: RunRecord, display: Display, name: str) -> None:
    """Note and show the beginning of a phase."""
    record.phase(name)
    display.phase(name)
