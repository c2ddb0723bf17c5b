"""One client process: ``python -m workloads.worker``.

Standard input: one line of JSON (workloads.specs), later ``finish`` and the seconds that it may take. Standard output:
a line of JSON statistics after each flush. When standard input closes, the harness is gone: the worker writes what it
has and ends.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack

from harness.core.clock import Clock
from harness.core.history import POSITIONS, READS, SENDS, TRANSACTIONS, Phase
from harness.core.journal import Journal, journal_path
from workloads.consuming import Consuming
from workloads.keys import key_names
from workloads.producing import Producing
from workloads.recorder import PositionRecorder, ReadRecorder, SendRecorder, TransactionRecorder
from workloads.specs import ConsumerSpec, ProducerSpec, Report, TransactorSpec, WorkerSpec
from workloads.transacting import Transacting

_FLUSH_EVERY_S = 0.25
_WAIT_S = 0.05


class HarnessGoneError(Exception):
    """Standard input or output was closed by the other side."""


class Commands:
    """Lines of standard input, read without ever waiting for one that has not come."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._rest = b""

    def wait(self) -> str:
        """The next line, however long it takes. Raises HarnessGoneError at the end of the input."""
        while True:
            if (line := self._line()) is not None:
                return line
            self._read()

    def poll(self) -> str | None:
        """The next line, if there is one. Raises HarnessGoneError at the end of the input."""
        if select.select([self._descriptor], [], [], 0)[0]:
            self._read()
        return self._line()

    def _read(self) -> None:
        read = os.read(self._descriptor, 65_536)
        if not read:
            raise HarnessGoneError
        self._rest += read

    def _line(self) -> str | None:
        line, newline, rest = self._rest.partition(b"\n")
        if not newline:
            return None
        self._rest = rest
        return line.decode()


def tell(report: Report) -> None:
    """Print one line. Raises HarnessGoneError where nobody reads it any more."""
    try:
        print(report.model_dump_json(), flush=True)
    except BrokenPipeError as exc:
        raise HarnessGoneError from exc


def run(
    commands: Commands, step: Callable[[float], None], finished: Callable[[float], bool], flush: Callable[[], Report]
) -> Report:
    """The worker's only loop: step until told to finish, then until ``finished`` or its time is over.

    ``finished`` is asked with the seconds that are left, and works towards it. The journals are flushed and statistics
    told every quarter of a second. Returns the last report. Raises HarnessGoneError.
    """
    deadline: float | None = None
    flushed = time.monotonic()
    while True:
        now = time.monotonic()
        if now - flushed >= _FLUSH_EVERY_S:
            tell(flush())
            flushed = now
        command = commands.poll()
        if command is not None and deadline is None:
            deadline = now + float(command.removeprefix("finish"))
        if deadline is None:
            step(_WAIT_S)
        elif now >= deadline or finished(_WAIT_S):
            return flush()


def produce(spec: ProducerSpec, commands: Commands, stack: ExitStack) -> Report:
    """Produce until told to finish; the last report says how many records then were still in flight."""
    clock = Clock(spec.origin_ns)
    journal = stack.enter_context(Journal(journal_path(spec.journals, "sends", str(spec.worker)), SENDS))
    recorder = SendRecorder(journal, spec.worker, spec.acks, spec.slots, key_names(spec.keys or 0))
    stack.callback(recorder.flush)
    producing = Producing(spec, recorder, clock)

    def flush() -> Report:
        recorder.flush()
        return Report(**vars(recorder.tally))

    def finished(at_most_s: float) -> bool:
        producing.drain(at_most_s)
        return not producing.waiting

    report = run(commands, producing.step, finished, flush)
    left = recorder.still_open()
    report.indeterminate += left
    report.note = f"{left} records still in flight" if left else None
    return report


def transact(spec: TransactorSpec, commands: Commands, stack: ExitStack) -> Report:
    """Write transactions until told to finish; the last report says whether one then was still open."""
    clock = Clock(spec.origin_ns)
    sends_journal = stack.enter_context(Journal(journal_path(spec.journals, "sends", spec.journal), SENDS))
    transactions_journal = stack.enter_context(
        Journal(journal_path(spec.journals, "transactions", spec.journal), TRANSACTIONS)
    )
    sends = SendRecorder(sends_journal, spec.worker, "all", spec.slots, [])
    stack.callback(sends.flush)
    transacting = Transacting(spec, sends, TransactionRecorder(transactions_journal, spec.worker), clock)
    over = False

    def flush() -> Report:
        sends.flush()
        return Report(**vars(sends.tally))

    def finished(at_most_s: float) -> bool:
        nonlocal over
        over = transacting.finished(at_most_s)
        return over

    report = run(commands, transacting.step, finished, flush)
    report.indeterminate += sends.still_open()
    report.note = None if over else "its last transaction was still open"
    return report


def consume(spec: ConsumerSpec, commands: Commands, stack: ExitStack) -> Report:
    """Read until told to finish, and then to the end of what was in the log at that moment."""
    clock = Clock(spec.origin_ns)
    reads_journal = stack.enter_context(Journal(journal_path(spec.journals, "reads", spec.journal), READS))
    positions_journal = stack.enter_context(Journal(journal_path(spec.journals, "positions", spec.journal), POSITIONS))
    reads = ReadRecorder(reads_journal, spec.worker, Phase.LIVE, spec.life)
    positions = PositionRecorder(positions_journal, spec.worker, spec.life)
    stack.callback(positions.flush)
    stack.callback(reads.flush)
    caught_up = False

    def report(processed: float | None = None) -> Report:
        return Report(read=reads.read, owned=consuming.owned, processed=processed)

    def flush() -> Report:
        consuming.flush()
        return report()

    def finished(at_most_s: float) -> bool:
        nonlocal caught_up
        caught_up = consuming.caught_up()
        if not caught_up:
            consuming.step(at_most_s)
        return caught_up

    consuming = Consuming(spec, reads, positions, clock, processed=lambda part: tell(report(part)))
    last = run(commands, consuming.step, finished, flush)
    consuming.leave()
    last.behind = not caught_up
    last.note = "did not reach the end of the log in time" if last.behind else None
    return last


def main() -> None:
    """Run the worker that standard input describes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    commands = Commands(sys.stdin.fileno())
    try:
        spec = WorkerSpec.validate_json(commands.wait())
        with ExitStack() as stack:
            if isinstance(spec, ProducerSpec):
                report = produce(spec, commands, stack)
            elif isinstance(spec, TransactorSpec):
                report = transact(spec, commands, stack)
            else:
                report = consume(spec, commands, stack)
        report.finished = True
        tell(report)
    except HarnessGoneError:
        # Nobody is left to tell. The journals were closed on the way here.
        os._exit(1)
    # The journals are closed. librdkafka's own shutdown would wait for brokers that may be cut off.
    os._exit(0)


if __name__ == "__main__":
    main()
