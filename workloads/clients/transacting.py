"""A worker's transactional producer: one transaction after the other, with each step recorded before it is done."""

from collections.abc import Callable
from contextlib import ExitStack
from enum import Enum, auto

import numpy as np
from confluent_kafka import KafkaError, KafkaException, Producer

from harness.core.clock import SECOND_NS, Clock
from harness.history.journal import Journal, journal_path
from harness.history.schema import SENDS, TRANSACTIONS, Outcome
from workloads.clients.deliveries import Deliveries
from workloads.clients.pace import Pace
from workloads.clients.recorder import TransactionRecorder
from workloads.clients.send_recorder import SendRecorder
from workloads.clients.settings import MOST_AT_ONCE, Config
from workloads.clients.specs import TransactorSpec
from workloads.clients.transaction_errors import Action, after, outcome
from workloads.loop import Commands, run
from workloads.protocol import Report

#: How long one transactional call may block. librdkafka continues it in the background, and the next call resumes it.
_CALL_S = 0.5


class _Stage(Enum):
    INITIALISING = auto()
    READY = auto()
    WRITING = auto()
    AWAITING = auto()
    COMMITTING = auto()
    ABORTING = auto()
    REPLACING = auto()


class Transacting:
    """One transactional producer: it begins a transaction, writes to several partitions in turn, waits for the delivery
    reports, and ends the transaction.

    It aborts a transaction in which a record failed, whatever was intended. transaction_errors.py says what to do after
    an error of librdkafka. A dead producer (fenced, or after a fatal error) is replaced by one with the same
    transactional.id and the next ``incarnation``. Every record is journalled before it is handed over, so that a killed
    worker's history is complete.
    """

    def __init__(
        self,
        spec: TransactorSpec,
        sends: SendRecorder,
        transactions: TransactionRecorder,
        clock: Clock,
        client: Callable[[Config], Producer] = Producer,
    ) -> None:
        self._spec = spec
        self._sends = sends
        self._transactions = transactions
        self._clock = clock
        self._client = client
        self._producer = client(spec.config)
        self._incarnation = spec.first_incarnation
        self._random = np.random.default_rng([spec.seed, spec.worker, spec.process])
        self._deliveries = Deliveries(spec.worker, spec.record_size, sends, clock)
        self._pace = Pace(spec.rate, clock.now())
        self._stage = _Stage.INITIALISING
        self._closing = False
        self._next = spec.first
        self._transaction = spec.first - 1
        self._intent = ""
        self._written = 0
        self._commit_invoked = False
        self._error: str | None = None
        self._acts: dict[_Stage, Callable[[float], None]] = {
            _Stage.INITIALISING: self._initialise,
            _Stage.READY: self._begin,
            _Stage.WRITING: self._write,
            _Stage.AWAITING: self._await_reports,
            _Stage.COMMITTING: self._commit,
            _Stage.ABORTING: self._abort,
            _Stage.REPLACING: self._replace,
        }

    def step(self, at_most_s: float) -> None:
        """Do what comes next. Takes at most ``at_most_s`` seconds, or half a second for a call to a coordinator."""
        try:
            self._acts[self._stage](at_most_s)
        except KafkaException as exc:
            self._react(exc.args[0])

    def finished(self, at_most_s: float) -> bool:
        """Begin no more transactions, and work towards the end of the open one; return whether it is over."""
        self._closing = True
        if self._over:
            return True
        self.step(at_most_s)
        return self._over

    @property
    def _over(self) -> bool:
        return self._stage in {_Stage.READY, _Stage.INITIALISING}

    def _initialise(self, _: float) -> None:
        self._producer.init_transactions(_CALL_S)
        self._stage = _Stage.READY

    def _begin(self, _: float) -> None:
        self._transaction += 1
        self._intent = "abort" if self._random.random() < self._spec.aborted else "commit"
        self._written, self._commit_invoked, self._error = 0, False, None
        self._transactions.began(self._transaction, self._incarnation, self._intent, self._clock.now())
        self._stage = _Stage.WRITING
        self._producer.begin_transaction()

    def _write(self, at_most_s: float) -> None:
        now = self._clock.now()
        left = self._spec.records - self._written
        if self._closing or self._error or not left:
            self._stage = _Stage.AWAITING
        elif count := self._pace.due(now, min(MOST_AT_ONCE, left)):
            self._hand_over(count, now)
            self._serve(0)
        else:
            self._serve(min(at_most_s, max(0.001, self._pace.wait_ns(now) / SECOND_NS)))

    def _hand_over(self, count: int, now: int) -> None:
        first = self._next
        self._next += count
        self._written += count
        partitions = np.arange(first, first + count) % len(self._spec.partitions)
        self._sends.invoked(first, partitions, None, now, self._incarnation, self._transaction)
        self._sends.flush()
        for row, payload in enumerate(self._deliveries.payloads(first, count)):
            topic, partition = self._spec.partitions[partitions[row]]
            try:
                self._producer.produce(topic, payload, partition=partition, on_delivery=self._deliveries.reported)
            except (KafkaException, BufferError) as exc:
                self._refused(first + row, _error_of(exc))

    def _refused(self, sequence: int, error: KafkaError) -> None:
        """``produce()`` refused a record: the transaction is not complete, and will be aborted."""
        self._error = self._error or error.name()
        self._deliveries.refused(sequence, error)

    def _await_reports(self, at_most_s: float) -> None:
        """Wait until the outcome of each record is known; then journal it, and commit or abort."""
        self._serve(at_most_s)
        if self._deliveries.waiting:
            return
        self._commit_invoked = self._intent == "commit" and self._error is None
        self._announce_ending()
        self._stage = _Stage.COMMITTING if self._commit_invoked else _Stage.ABORTING

    def _announce_ending(self) -> None:
        self._sends.flush()
        self._transactions.ending(self._clock.now())

    def _commit(self, _: float) -> None:
        self._producer.commit_transaction(_CALL_S)
        self._end(succeeded=True)
        self._stage = _Stage.READY

    def _abort(self, _: float) -> None:
        self._producer.abort_transaction(_CALL_S)
        self._collect()
        self._end(succeeded=self._intent == "abort")
        self._stage = _Stage.READY

    def _react(self, error: KafkaError) -> None:
        self._collect()
        action = after(error).action
        if action is Action.AGAIN:
            return
        self._error = self._error or error.name()
        abortable = {_Stage.WRITING, _Stage.AWAITING, _Stage.COMMITTING}
        if action is Action.ABORT and self._stage in abortable:
            if not self._commit_invoked:
                self._announce_ending()
            self._stage = _Stage.ABORTING
        else:
            self._stage = _Stage.REPLACING

    def _replace(self, _: float) -> None:
        """Give up the dead producer's records, then start another producer."""
        if not self._deliveries.give_up(self._producer.purge, self._producer.flush):
            return
        self._end(succeeded=False)
        self._incarnation = self._spec.incarnation_after(self._incarnation)
        self._producer = self._client(self._spec.config)
        self._stage = _Stage.INITIALISING

    def _end(self, succeeded: bool) -> None:
        """Journal how the open transaction ended, if one is open."""
        if not self._intent:
            return
        self._sends.flush()
        found: Outcome = outcome(self._intent, self._commit_invoked, succeeded)
        self._transactions.ended(found, self._clock.now(), self._error)
        self._intent = ""

    def _serve(self, within_s: float) -> None:
        self._producer.poll(within_s)
        self._collect()

    def _collect(self) -> None:
        if (error := self._deliveries.collect()) is not None:
            self._error = self._error or error.name()


def _error_of(exc: KafkaException | BufferError) -> KafkaError:
    found = exc.args[0] if isinstance(exc, KafkaException) else None
    return found if isinstance(found, KafkaError) else KafkaError(KafkaError._QUEUE_FULL)


def transact(spec: TransactorSpec, commands: Commands, stack: ExitStack) -> Report:
    """Write transactions until asked to finish; the last report says if one was still open."""
    clock = Clock(spec.origin_ns)
    sends_journal = stack.enter_context(Journal(journal_path(spec.journals, "sends", spec.journal), SENDS))
    transactions_journal = stack.enter_context(
        Journal(journal_path(spec.journals, "transactions", spec.journal), TRANSACTIONS)
    )
    sends = SendRecorder(sends_journal, spec.worker, "all", spec.partitions, [])
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
