import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import psutil
import pyarrow as pa
import pytest

from harness.core.errors import ClusterError
from harness.core.history import SENDS, sequence_of, worker_of
from harness.core.journal import journal_path, read_journal
from harness.core.waiting import wait_for
from workloads.catalogue import WORKLOADS
from workloads.final_read import read_to_end
from workloads.queue import Queue
from workloads.running import Plan, Workload, start

Journalled = Callable[[str], pa.Table]


def last_rows(sends: pa.Table) -> dict[tuple[int, int], dict[str, object]]:
    """What sealing keeps: the last row of each (worker, sequence)."""
    return {(row["worker"], row["sequence"]): row for row in sends.to_pylist()}


def until_acknowledged(workload: Workload, count: int) -> None:
    wait_for(workload.counts, f"{count} acknowledged", 20, good=lambda counts: counts.acknowledged >= count)


def final_read(plan: Plan) -> list[dict[str, object]]:
    return read_to_end(plan.bootstrap, plan.topics, "read_uncommitted", plan.journals, plan.clock, within=20)


QUEUES = {
    "assign": Queue(rate=2000),
    "group": Queue(rate=2000, consumers=2, consume="group"),
    "keys": Queue(rate=2000, keys=10),
    "no-consumers": Queue(rate=2000, consumers=0, acks="1"),
    "large": Queue(rate=200, record_size=10_000, compression_type="lz4"),
}
RUNS = {"queue": QUEUES}


def test_every_workload_of_the_catalogue_is_run_here() -> None:
    assert RUNS.keys() == WORKLOADS.keys()


@pytest.mark.parametrize("shape", QUEUES)
def test_every_record_of_a_queue_is_acknowledged_read_and_found_in_the_final_log(
    shape: str, plan: Plan, journalled: Journalled
) -> None:
    queue = QUEUES[shape]
    with start(queue, plan) as workload:
        until_acknowledged(workload, 200)
        assert workload.finish(within=20) == []
        counts = workload.counts()
    log_ends = final_read(plan)

    sends = last_rows(journalled("sends"))
    assert len(sends) == counts.sent == counts.acknowledged > 0
    assert {row["outcome"] for row in sends.values()} == {"ok"}
    assert all(row["log_start"] == 0 and row["complete"] for row in log_ends)
    sent = {(r["topic"], r["partition"], r["offset"], r["record_id"]) for r in sends.values()}
    reads = [row for row in journalled("reads").to_pylist()]
    assert all(row["intact"] for row in reads)
    final = {(r["topic"], r["partition"], r["offset"], r["record_id"]) for r in reads if r["phase"] == "final"}
    live = {(r["topic"], r["partition"], r["offset"], r["record_id"]) for r in reads if r["phase"] == "live"}
    assert final == sent
    assert live == (sent if queue.consumers else set())
    assert {worker for worker, _ in sends} == set(range(1, queue.producers + 1))
    if queue.keys:
        partitions = {(row["key"], row["partition"]) for row in sends.values()}
        assert len(partitions) == len({key for key, _ in partitions}) == queue.keys
