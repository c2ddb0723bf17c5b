import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest

from harness.core.errors import ClusterError
from harness.core.waiting import wait_for
from harness.history.journal import journal_path, read_journal
from harness.history.schema import SENDS, sequence_of, worker_of
from harness.history.store import seal
from harness.run.new_run import new_run
from harness.run.recovery import finish
from harness.scenario.model import Scenario
from tests.workloads.begun import begun
from tests.workloads.conftest import mock_ends
from workloads.catalogue import WORKLOADS
from workloads.clients.pace import Pace
from workloads.clients.specs import ProducerSpec, TransactorSpec
from workloads.processes import Workers
from workloads.queue import Queue
from workloads.readback.final_read import read_to_end
from workloads.transactions import Transactions
from workloads.workload import Surroundings, Workload, start

Journalled = Callable[[str], pa.Table]


def last_rows(sends: pa.Table) -> dict[tuple[int, int], dict[str, object]]:
    """What sealing keeps: the last row of each (worker, sequence)."""
    return {(row["worker"], row["sequence"]): row for row in sends.to_pylist()}


def until_acknowledged(workload: Workers, count: int) -> None:
    wait_for(workload.counts, f"{count} acknowledged", 60, good=lambda counts: counts.acknowledged >= count)


def final_read(surroundings: Surroundings) -> list[dict[str, object]]:
    ends = mock_ends(surroundings)
    return read_to_end(
        ends, surroundings.topics, "read_uncommitted", surroundings.journals, surroundings.clock, 60, str
    ).rows


QUEUES = {
    "assign": Queue(rate=2000),
    "group": Queue(rate=2000, consumers=2, consume="group"),
    "keys": Queue(rate=2000, keys=10),
    "no-consumers": Queue(rate=2000, consumers=0, acks="1"),
    "large": Queue(rate=200, record_size=10_000, compression_type="lz4"),
}
RUNS = {"queue": QUEUES}


def test_every_workload_of_the_catalogue_is_run_here() -> None:
    """``transactions`` and ``groups`` are run in test_transactions.py and test_groups.py."""
    assert {*RUNS, "groups", "transactions"} == WORKLOADS.keys()


@pytest.mark.parametrize("shape", QUEUES)
def test_every_record_of_a_queue_is_acknowledged_read_and_found_in_the_final_log(
    shape: str, surroundings: Surroundings, journalled: Journalled
) -> None:
    queue = QUEUES[shape]
    with begun(queue, surroundings) as workload:
        until_acknowledged(workload, 200)
        assert workload.finish(within=60) == []
        counts = workload.counts()
    log_ends = final_read(surroundings)

    sends = last_rows(journalled("sends"))
    assert len(sends) == counts.sent == counts.acknowledged > 0
    assert {row["outcome"] for row in sends.values()} == {"ok"}
    assert all(row["log_start"] == 0 and row["complete"] for row in log_ends)
    sent = {_placed(row) for row in sends.values()}
    reads = journalled("reads").to_pylist()
    assert all(row["intact"] for row in reads)
    assert {_placed(row) for row in reads if row["phase"] == "final"} == sent
    assert {_placed(row) for row in reads if row["phase"] == "live"} == (sent if queue.consumers else set())
    assert {worker for worker, _ in sends} == set(range(1, queue.producers + 1))
    if queue.keys:
        partitions = {(row["key"], row["partition"]) for row in sends.values()}
        assert len(partitions) == len({key for key, _ in partitions}) == queue.keys


def _placed(row: dict[str, object]) -> tuple[object, ...]:
    return tuple(row[name] for name in ("topic", "partition", "offset", "record_id", "key"))


def test_the_settings_of_every_worker_are_recorded(surroundings: Surroundings) -> None:
    workload = start(Queue(acks="1", linger_ms=7), surroundings)
    assert list(workload.clients) == ["producer 1", "producer 2", "consumer 3"]
    assert workload.clients["producer 2"]["acks"] == "1"
    assert workload.clients["producer 2"]["linger.ms"] == 7
    assert workload.clients["producer 2"]["enable.idempotence"] is False
    assert workload.clients["consumer 3"]["isolation.level"] == "read_uncommitted"


@pytest.mark.parametrize("workload", [Queue(rate=1000, producers=3), Transactions(rate=1000, producers=3)])
def test_the_rate_is_that_of_all_producers_together(workload: Workload, surroundings: Surroundings) -> None:
    rates = [
        spec.rate for spec in workload.worker_specs(surroundings) if isinstance(spec, ProducerSpec | TransactorSpec)
    ]
    assert rates == [pytest.approx(1000 / 3)] * 3


@pytest.mark.parametrize("rate", [100, 5000])
def test_producers_are_no_faster_than_the_rate(rate: int, surroundings: Surroundings, journalled: Journalled) -> None:
    """Slower they may be: a starved machine makes them so."""
    with begun(Queue(rate=rate, consumers=0), surroundings) as workload:
        until_acknowledged(workload, rate)
        workload.finish(within=60)
    invoked = journalled("sends").column("invoked_ns").to_numpy()
    # What was due before the first was handed over is caught up on.
    seconds = (invoked.max() - invoked.min() + Pace(rate, 0).most_behind_ns) / 1e9
    assert len(last_rows(journalled("sends"))) <= rate * seconds + 2


def test_kill_9_of_a_worker_leaves_a_readable_journal_and_is_reported(
    surroundings: Surroundings, journalled: Journalled
) -> None:
    with begun(Queue(rate=2000, producers=2), surroundings) as workload:
        until_acknowledged(workload, 500)
        killed_at = surroundings.clock.now()
        os.kill(workload.workers[0].pid, signal.SIGKILL)
        wait_for(workload.deaths, "the death of producer 1", 60)
        notes = workload.finish(within=60)
    assert [note.startswith("producer 1 died (exit status -9)") for note in notes] == [True]

    survived, closed = read_journal(journal_path(surroundings.journals, "sends", "1"), SENDS)
    assert not closed
    assert killed_at - max(survived.column("invoked_ns").to_pylist()) < 1e9
    # What the killed worker had sent after its last flush is in the log: beyond its journalled sequences.
    final_read(surroundings)
    journalled_up_to = max(survived.column("sequence").to_pylist())
    reads = journalled("reads").to_pylist()
    mine = {sequence_of(r["record_id"]) for r in reads if r["phase"] == "final" and worker_of(r["record_id"]) == 1}
    unjournalled = mine - set(survived.column("sequence").to_pylist())
    assert all(sequence > journalled_up_to for sequence in unjournalled)


ENDS: dict[str, tuple[Callable[[Workers], object], float, bool]] = {
    "killed by another": (lambda workload: os.kill(workload.workers[0].pid, signal.SIGKILL), 60, True),
    "failed, and closed its journals": (lambda workload: workload.workers[0].say("no command"), 60, True),
    "hung": (lambda workload: psutil.Process(workload.workers[0].pid).suspend(), 0, True),
    "killed by the scenario": (lambda workload: workload.replace(1), 60, False),
}


@pytest.mark.parametrize(("end", "within", "partial"), ENDS.values(), ids=ENDS)
def test_a_worker_that_ends_before_its_time_makes_the_run_partial_unless_the_scenario_killed_it(
    end: Callable[[Workers], object], within: float, partial: bool, surroundings: Surroundings, tmp_path: Path
) -> None:
    record = new_run(Scenario(name="a/story"), 7, tmp_path / "store")
    with begun(
        Transactions(rate=400, producers=1, consumers=0), replace(surroundings, journals=record.journals)
    ) as workload:
        until_acknowledged(workload, 50)
        end(workload)
        finish(record.file, workload, within)
    seal(record.directory, record.file, workload.killed)
    record.release()
    assert record.file.notes
    assert record.file.partial is partial


def test_a_producer_that_died_by_itself_is_not_replaced_as_if_it_had_been_killed(surroundings: Surroundings) -> None:
    with begun(Transactions(rate=400, producers=1, consumers=0), surroundings) as workload:
        workload.workers[0].say("no command")
        workload.workers[0].wait(60)
        with pytest.raises(ClusterError, match=r"transactor 1 died \(exit status 1\)"):
            workload.replace(1)
        assert workload.killed == frozenset()
        assert len(workload.workers) == 1


def test_a_producer_that_was_replaced_too_often_is_not_killed(surroundings: Surroundings) -> None:
    with begun(Transactions(rate=400, producers=1, consumers=0), surroundings) as workload:
        (worker,) = workload.workers
        worker.spec = worker.spec.model_copy(update={"process": 255})
        with pytest.raises(ClusterError, match="transactor 1 was replaced 255 times"):
            workload.replace(1)
        assert workload.killed == frozenset()
        assert worker.running


STUCK: dict[str, tuple[Callable[[Workers], object], list[str]]] = {
    "nothing": (lambda workload: None, []),
    "a consumer hangs": (
        lambda workload: psutil.Process(workload.workers[1].pid).suspend(),
        ["consumer 2 did not finish within 2 s and was ended"],
    ),
    "a producer hangs": (
        lambda workload: psutil.Process(workload.workers[0].pid).suspend(),
        ["producer 1 did not finish within 2 s and was ended", "consumer 2: did not reach the end of the log in time"],
    ),
    "a producer died": (lambda workload: psutil.Process(workload.workers[0].pid).kill(), []),
}


@pytest.mark.parametrize(("stop", "unfinished"), STUCK.values(), ids=STUCK)
def test_workers_that_did_not_finish_are_distinguished_from_other_notes(
    stop: Callable[[Workers], object], unfinished: list[str], surroundings: Surroundings, tmp_path: Path
) -> None:
    record = new_run(Scenario(name="a/story"), 7, tmp_path / "store")
    with begun(Queue(rate=400, producers=1, consumers=1), replace(surroundings, journals=record.journals)) as workload:
        until_acknowledged(workload, 50)
        stop(workload)
        finish(record.file, workload, 2 if unfinished else 60)
    record.release()
    assert record.file.unfinished == unfinished
    assert {*unfinished} <= {*record.file.notes}


def test_a_group_that_never_gets_to_its_partitions_did_not_finish(surroundings: Surroundings) -> None:
    """Nobody answers at port 9: a member waits for its group for ever."""
    nowhere = replace(surroundings, bootstrap="127.0.0.1:9")
    with begun(Queue(rate=1, producers=1, consumers=1, consume="group"), nowhere) as workload:
        workload.finish(within=1)
    assert workload.unfinished == ["consumer 2: did not reach the end of the log in time"]


def test_a_ctrl_c_does_not_reach_a_worker(surroundings: Surroundings) -> None:
    with begun(Queue(rate=1000, producers=1, consumers=0), surroundings) as workload:
        until_acknowledged(workload, 100)
        os.kill(workload.workers[0].pid, signal.SIGINT)
        interrupted_at = surroundings.clock.now()
        wait_for(lambda: workload.acknowledged_since(interrupted_at), "acknowledgements after a Ctrl-C", 60)
        assert workload.finish(within=60) == []


def test_leaving_a_workload_ends_every_process(surroundings: Surroundings) -> None:
    with begun(Queue(rate=100), surroundings) as workload:
        processes = [psutil.Process(worker.pid) for worker in workload.workers]
    assert not any(process.is_running() for process in processes)


HARNESS = """
import sys
from pathlib import Path
from typing import Any
from harness.core.clock import Clock
from workloads.workload import Surroundings, start
from workloads.queue import Queue
bootstrap, topic, journals = sys.argv[1:]
with start(Queue(rate=500), Surroundings(bootstrap, {topic: 4}, Path(journals), Clock.start(), 1)) as workload:
    workload.begin()
    print(*(worker.pid for worker in workload.workers), flush=True)
    sys.stdin.read()
"""


def test_workers_end_by_themselves_when_the_harness_vanishes(
    surroundings: Surroundings, journalled: Journalled
) -> None:
    (topic,) = surroundings.topics
    command = [sys.executable, "-c", HARNESS, surroundings.bootstrap, topic, str(surroundings.journals)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as harness:
        assert harness.stdout is not None
        workers = [psutil.Process(int(pid)) for pid in harness.stdout.readline().split()]
        assert len(workers) == 3
        harness.kill()
    _, alive = psutil.wait_procs(workers, timeout=60)
    assert alive == []
    assert all(read_journal(path, SENDS)[1] for path in surroundings.journals.glob("sends.*.arrows"))
    assert journalled("sends").num_rows > 0


def test_records_in_flight_are_journalled_while_they_are_and_stay_indeterminate(
    surroundings: Surroundings, journalled: Journalled
) -> None:
    """Port 9 answers nobody: nothing is ever acknowledged."""
    nowhere = Surroundings(
        "127.0.0.1:9", surroundings.topics, surroundings.journals, surroundings.clock, surroundings.seed
    )
    queue = Queue(rate=100, producers=1, consumers=0)
    with begun(queue, nowhere) as workload:
        wait_for(workload.counts, "50 sent", 60, good=lambda counts: counts.sent >= 50)
        assert {row["outcome"] for row in journalled("sends").to_pylist()} == {"info"}
        (note,) = workload.finish(within=0.5)
        counts = workload.counts()
    assert note == f"producer 1: {counts.sent} records still in flight"
    assert (counts.acknowledged, counts.failed, counts.indeterminate) == (0, 0, counts.sent)
    rows = last_rows(journalled("sends"))
    assert len(rows) == counts.sent
    assert {row["completed_ns"] for row in rows.values()} == {None}


def test_records_that_time_out_are_indeterminate_and_say_so(surroundings: Surroundings, journalled: Journalled) -> None:
    nowhere = Surroundings(
        "127.0.0.1:9", surroundings.topics, surroundings.journals, surroundings.clock, surroundings.seed
    )
    with begun(Queue(rate=100, producers=1, consumers=0, delivery_timeout_ms=600), nowhere) as workload:
        wait_for(workload.counts, "20 indeterminate", 60, good=lambda counts: counts.indeterminate >= 20)
        assert workload.finish(within=60) == []
    rows = last_rows(journalled("sends")).values()
    assert {(row["outcome"], row["error"]) for row in rows} == {("info", "_MSG_TIMED_OUT")}


def test_workers_stand_by_until_they_begin_and_one_that_dies_meanwhile_is_reported(
    surroundings: Surroundings, journalled: Journalled
) -> None:
    with start(Queue(rate=1000, producers=1, consumers=0), surroundings) as workload:
        time.sleep(1)
        assert (workload.workers[0].report, list(surroundings.journals.glob("*.arrows"))) == (None, [])
        workload.begin()
        until_acknowledged(workload, 100)
        assert workload.finish(within=60) == []
    with start(Queue(producers=2, consumers=0), surroundings) as workload:
        psutil.Process(workload.workers[1].pid).kill()
        with pytest.raises(ClusterError, match="a worker did not start: producer 2 died"):
            workload.begin()
    assert not any(worker.running for worker in workload.workers)


def test_a_worker_that_cannot_start_is_an_error_that_says_why(surroundings: Surroundings) -> None:
    elsewhere = Surroundings(
        surroundings.bootstrap,
        surroundings.topics,
        surroundings.journals / "missing",
        surroundings.clock,
        surroundings.seed,
    )
    elsewhere.journals.mkdir()
    (elsewhere.journals / "sends.1.arrows").mkdir()
    with pytest.raises(ClusterError, match="producer 1 died"), begun(Queue(consumers=0), elsewhere):
        raise AssertionError("it started")


def test_acks_0_acknowledges_nothing(surroundings: Surroundings) -> None:
    with begun(Queue(rate=1000, producers=1, consumers=0, acks="0"), surroundings) as workload:
        wait_for(workload.counts, "100 indeterminate", 60, good=lambda counts: counts.indeterminate >= 100)
        assert workload.finish(within=60) == []
        counts = workload.counts()
    assert (counts.acknowledged, counts.failed, counts.last_ack_ns) == (0, 0, None)
    assert counts.indeterminate == counts.sent


def test_finish_with_acks_0_waits_for_records_that_brokers_may_still_append(surroundings: Surroundings) -> None:
    with begun(Queue(rate=1000, producers=1, consumers=1, acks="0"), surroundings) as workload:
        wait_for(workload.counts, "100 indeterminate", 60, good=lambda counts: counts.indeterminate >= 100)
        (waits,) = {worker.spec.append_delay_s for worker in workload.workers if worker.spec.writes}
        began = time.monotonic()
        assert workload.finish(within=60) == []
        assert time.monotonic() - began >= waits > 0


def test_with_other_acks_nothing_is_on_its_way_that_nobody_answers_for(surroundings: Surroundings) -> None:
    with begun(Queue(rate=1000, producers=1, consumers=1, acks="1"), surroundings) as workload:
        assert {worker.spec.append_delay_s for worker in workload.workers} == {0.0}


def test_a_consumer_whose_position_is_gone_seeks_to_the_log_start_and_says_so(
    surroundings: Surroundings, journalled: Journalled
) -> None:
    """The mock cluster keeps at most 5 MiB of a partition: records that a stopped consumer has not read are deleted."""
    queue = Queue(producers=1, consumers=1, record_size=100_000, rate=1500, batch_size=1_000_000)
    with begun(queue, surroundings) as workload:
        wait_for(workload.counts, "records read", 60, good=lambda counts: counts.read > 0)
        consumer = psutil.Process(workload.workers[1].pid)
        consumer.suspend()
        acknowledged = workload.counts().acknowledged
        until_acknowledged(workload, acknowledged + 2000)
        consumer.resume()
        assert workload.finish(within=60) == []
    events = [(row["event"], row["error"]) for row in journalled("positions").to_pylist()]
    assert ("assign", None) in events
    assert events.count(("seek", None)) == events.count(("error", "_AUTO_OFFSET_RESET")) > 0


def test_a_group_records_its_assignments_ends_and_commits(surroundings: Surroundings, journalled: Journalled) -> None:
    with begun(Queue(rate=500, producers=1, consumers=2, consume="group"), surroundings) as workload:
        wait_for(workload.counts, "records read", 30, good=lambda counts: counts.read > 200)
        # Told of a consumer that keeps up: another may finish before it is.
        ended = partial(_events, journalled, "end-of-partition")
        ends = wait_for(
            ended, "the end of a partition with records", 30, good=lambda rows: any(r["offset"] for r in rows)
        )
        assert all(row["error"] is None for row in ends)
        assert workload.finish(within=60) == []
    positions = journalled("positions").to_pylist()
    assigned = {row["partition"]: row["reader"] for row in positions if row["event"] == "assign"}
    assert set(assigned) == {0, 1, 2, 3}
    committed = [row for row in positions if row["event"] == "commit" and row["error"] is None]
    assert committed
    assert all(row["offset"] > 0 for row in committed)
    assert {row["reader"] for row in positions if row["event"] == "revoke"} >= set(assigned.values())


def _events(journalled: Journalled, event: str) -> list[dict[str, Any]]:
    return [row for row in journalled("positions").to_pylist() if row["event"] == event]
