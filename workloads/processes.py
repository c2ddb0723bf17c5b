"""The running workers of a workload: starts their processes, counts, finishes them, and leaves none behind."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from harness.core.errors import ClusterError
from harness.core.topology import Partition
from harness.core.waiting import wait_for
from harness.history.run_file import Process
from workloads.protocol import Spec
from workloads.worker_process import Worker

#: A choice: many processes start at once on a machine that may run the brokers, too; only one that hangs takes so long.
_START_S = 60.0
#: A choice: a worker whose time is over must still write its journals to the end. Then it is ended.
_MARGIN_S = 5.0
#: A choice: what is awaited is seen at most so late; to look more often takes CPU from the brokers.
_POLL_S = 0.05


@dataclass(frozen=True)
class Counts:
    """What all workers have journalled so far. ``indeterminate``: completed with an unknown outcome."""

    sent: int
    acknowledged: int
    failed: int
    indeterminate: int
    read: int
    last_ack_ns: int | None


class Workers:
    """All workers of a run. Entering starts every process; a process waits for ``begin``. Leaving ends them."""

    def __init__(self, specs: list[Spec]) -> None:
        self._workers: list[Worker] = []
        self._gone: list[Worker] = []
        self._killed: list[Spec] = []
        self._cut_off: list[Spec] = []
        self._unfinished: list[str] = []
        self._specs = specs

    @property
    def clients(self) -> dict[str, dict[str, Any]]:
        """Every client setting as passed to librdkafka, by worker, for run.json."""
        return {f"{spec.role} {spec.worker}": dict(spec.config) for spec in self._specs}

    @property
    def writes(self) -> dict[str, tuple[str, ...]]:
        """The tables of the history that each client writes, for run.json."""
        return {f"{spec.role} {spec.worker}": spec.tables for spec in self._specs}

    @property
    def workers(self) -> list[Worker]:
        """The processes that are there."""
        return list(self._workers)

    @property
    def gone(self) -> list[Worker]:
        """The processes that were killed, have left, or had to be ended."""
        return list(self._gone)

    @property
    def members(self) -> list[int]:
        """The workers that are members of a consumer group, whether there or gone."""
        return [spec.worker for spec in self._specs if spec.member]

    @property
    def killed(self) -> frozenset[str]:
        """The names of the journals of workers that were killed on purpose: such journals are complete as they are."""
        return frozenset(spec.journal for spec in self._killed)

    @property
    def unfinished(self) -> list[str]:
        """A line for each worker that did not finish when asked: it had to be ended, or it is a consumer that did not
        read to the end of the log."""
        return list(self._unfinished)

    @property
    def killed_members(self) -> list[Process]:
        """The processes of members that were killed on purpose, for run.json."""
        return [Process(worker=spec.worker, incarnation=spec.process) for spec in self._killed if spec.member]

    @property
    def died_members(self) -> list[Process]:
        """The processes of members that ended in the middle of their work though no step killed them: they died by
        themselves, or had to be killed at the end."""
        died = [*self._cut_off, *(worker.spec for worker in self._workers if worker.death)]
        return [Process(worker=spec.worker, incarnation=spec.process) for spec in died if spec.member]

    def __enter__(self) -> Self:
        try:
            for spec in self._specs:
                self._workers.append(Worker(spec))
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def begin(self) -> None:
        """Let every worker begin, and wait until each has sent its first statistics.

        Raises ClusterError, with the worker's last output, if one does not start.
        """
        for worker in self._workers:
            worker.begin()
        wait_for(
            self._silent_workers,
            "the first statistics of every worker",
            _START_S,
            good=lambda silent: not silent,
            describe=lambda silent: f"nothing of {', '.join(silent)}",
            every=_POLL_S,
        )
        if deaths := self.deaths():
            raise ClusterError(f"a worker did not start: {deaths[0]}")

    def counts(self) -> Counts:
        """Sums over all workers, at most half a second old."""
        everyone = [*self._workers, *self._gone]
        reports = [worker.report for worker in everyone if worker.report is not None]
        return Counts(
            sent=sum(report.sent for report in reports),
            acknowledged=sum(report.acknowledged for report in reports),
            failed=sum(report.failed for report in reports),
            indeterminate=sum(report.indeterminate for report in reports),
            read=sum(report.read for report in reports),
            last_ack_ns=max((r.last_ack_ns for r in reports if r.last_ack_ns is not None), default=None),
        )

    def acknowledged_since(self, at_ns: int) -> bool:
        """Whether, since this time of the run's clock, a write was acknowledged in each partition that was written
        to."""
        last: dict[Partition, int] = {}
        for worker in (*self._workers, *self._gone):
            for index, at in (worker.report.last_acks if worker.report else {}).items():
                partition = worker.spec.partitions[index]
                last[partition] = max(at, last.get(partition, at))
        return bool(last) and min(last.values()) > at_ns

    def replace(self, number: int) -> str:
        """Kill a producer (SIGKILL), and start another one with the same settings.

        Returns what was done, in a few words. Raises ClusterError if there is no producer of this number, it was
        replaced too often, or it has died by itself.
        """
        producers = [worker for worker in self._workers if worker.spec.writes and worker.spec.worker == number]
        if not producers:
            raise ClusterError(f"there is no producer {number} to replace")
        successor = producers[0].spec.successor()
        return f"{self.kill(producers[0])}, {self._start(successor)}"

    def kill(self, worker: Worker) -> str:
        """Kill a worker (SIGKILL) and say so. Raises ClusterError if it has ended by itself: then it is no death on
        purpose."""
        if not worker.kill():
            raise ClusterError(f"it ended before it was killed: {worker.death or f'{worker.name} had finished'}")
        self._killed.append(worker.spec)
        self.remove(worker)
        return f"killed process {worker.pid}"

    def start_successor(self, gone: Worker) -> str:
        """Start the next incarnation of a worker that has gone, and say so."""
        return self._start(gone.spec.successor())

    def _start(self, spec: Spec) -> str:
        self._workers.append(Worker(spec))
        self._workers[-1].begin()
        return f"started process {self._workers[-1].pid}"

    def remove(self, worker: Worker) -> None:
        """Count a worker that has ended among those that have gone: it is no death."""
        self._workers.remove(worker)
        self._gone.append(worker)

    def deaths(self) -> list[str]:
        """One line for each worker that ended without being asked to."""
        return [death for worker in self._workers if (death := worker.death) is not None]

    def finish(self, within: float) -> list[str]:
        """Have producers stop and drain, then consumers read to the end of the log; all ``within`` this many seconds.

        It waits until the group has given a killed member's partitions to others, because until then nobody reads them.
        With acks=0 no answers come, so it waits until brokers had time to append the records. Returns one line for each
        problem: a worker that died or had to be ended, records still in flight, a consumer that did not reach the end.
        """
        deadline = time.monotonic() + within
        notes: list[str] = []
        for writes in (True, False):
            asked = [worker for worker in self._workers if worker.spec.writes is writes]
            while _has_unowned_partitions(asked) and time.monotonic() < deadline:
                time.sleep(_POLL_S)
            left = max(0.0, deadline - time.monotonic())
            until = time.monotonic() + left + _MARGIN_S
            for worker in asked:
                worker.finish(left)
            for worker in asked:
                if not worker.wait(until - time.monotonic()):
                    if not worker.end():
                        self._cut_off.append(worker.spec)
                    # We ended it, so this is no death. The seal shows whether it still closed its journals.
                    self.remove(worker)
                    self._unfinished.append(f"{worker.name} did not finish within {within:g} s and was ended")
                    notes.append(self._unfinished[-1])
                elif worker.death:
                    notes.append(worker.death)
                elif worker.report is not None and worker.report.note:
                    notes.append(f"{worker.name}: {worker.report.note}")
                    self._unfinished += notes[-1:] if worker.report.behind else []
            append_delay_s = max((worker.spec.append_delay_s for worker in asked), default=0.0)
            time.sleep(max(0.0, min(append_delay_s, deadline - time.monotonic())))
        return notes

    def _silent_workers(self) -> list[str]:
        return [worker.name for worker in self._workers if worker.report is None and worker.running]

    def _end(self) -> None:
        for worker in self._workers:
            worker.end()


def _has_unowned_partitions(workers: Sequence[Worker]) -> bool:
    """Whether members of a group are running but do not own all of its partitions."""
    members = [w for w in workers if w.spec.member and w.running]
    owned = sum(member.report.owned for member in members if member.report is not None)
    return any(owned < len(member.spec.partitions) for member in members)
