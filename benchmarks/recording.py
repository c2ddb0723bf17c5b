"""Measures what recording costs: a producer process with the full history, against a bare confluent-kafka loop.

``python -m benchmarks.recording``: both use librdkafka's mock cluster, which has a process of its own, with the same
client settings, payload size and delivery callback, in turn A B A B …. Prints each rate and the median ratio.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer

from harness.core.clock import Clock
from harness.history.journal import Journal, journal_path
from harness.history.schema import SENDS
from workloads.clients.producing import Producing
from workloads.clients.send_recorder import SendRecorder
from workloads.clients.settings import producer_config
from workloads.clients.specs import ProducerSpec
from workloads.queue import Queue

GOAL = 0.7
_TOPIC = "recording"
_PARTITIONS = 4
_FLUSH_EVERY_S = 0.25
_POLL_EVERY = 500


@dataclass(frozen=True)
class Measured:
    """Acknowledged records per second, round by round, and the median of recorded / bare."""

    bare: list[float]
    recorded: list[float]
    ratio: float


def own_mock_cluster() -> None:
    """Run the mock cluster: print its bootstrap address, and end when standard input closes."""
    owner = Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 3, "log_level": 0})
    brokers = owner.list_topics(_TOPIC, timeout=10).brokers.values()
    print(",".join(f"{broker.host}:{broker.port}" for broker in brokers), flush=True)
    sys.stdin.read()


@contextmanager
def mock_cluster() -> Iterator[str]:
    """Run a mock cluster in another process; yields its bootstrap address."""
    command = [sys.executable, "-c", "from benchmarks.recording import own_mock_cluster; own_mock_cluster()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        yield owner.stdout.readline().strip()
        owner.communicate()


def bare(queue: Queue, bootstrap: str, seconds: float) -> float:
    """Records/s of the fastest bare loop: produce, a callback that checks the error, and a poll now and then."""
    producer = Producer(producer_config(queue, bootstrap, "bare", queue.record_size))
    producer.list_topics(_TOPIC, timeout=10)
    payload = b"x" * queue.record_size
    acknowledged = 0

    def delivered(error: KafkaError | None, _: Message) -> None:
        nonlocal acknowledged
        if error is None:
            acknowledged += 1

    began = time.monotonic()
    handed_over = 0
    while time.monotonic() - began < seconds:
        try:
            producer.produce(_TOPIC, payload, partition=handed_over % _PARTITIONS, on_delivery=delivered)
            handed_over += 1
        except BufferError:
            producer.poll(0.05)
        if handed_over % _POLL_EVERY == 0:
            producer.poll(0)
    producer.flush()
    return acknowledged / (time.monotonic() - began)


def recorded(queue: Queue, bootstrap: str, seconds: float) -> float:
    """Records/s of a worker's producer that journals every record, and flushes as a worker does."""
    with tempfile.TemporaryDirectory() as directory:
        journals = Path(directory)
        clock = Clock.start()
        spec = ProducerSpec(
            worker=1,
            config=producer_config(queue, bootstrap, "recorded", queue.record_size),
            partitions=[(_TOPIC, partition) for partition in range(_PARTITIONS)],
            journals=journals,
            origin_ns=clock.origin_ns,
            acks=queue.acks,
            rate=None,
            record_size=queue.record_size,
            keys=None,
            seed=0,
        )
        with Journal(journal_path(journals, "sends", "1"), SENDS) as journal:
            recorder = SendRecorder(journal, spec.worker, spec.acks, spec.partitions, [])
            producing = Producing(spec, recorder, clock)
            producing.drain(0)
            began = flushed = time.monotonic()
            while (now := time.monotonic()) - began < seconds:
                producing.step(0.05)
                if now - flushed >= _FLUSH_EVERY_S:
                    recorder.flush()
                    flushed = now
            while producing.waiting:
                producing.drain(0.05)
            recorder.flush()
            return recorder.tally.acknowledged / (time.monotonic() - began)


def measure(rounds: int, seconds: float, record_size: int) -> Measured:
    """Run both in turn, ``rounds`` times, ``seconds`` each."""
    queue = Queue(record_size=record_size)
    rates: tuple[list[float], list[float]] = ([], [])
    with mock_cluster() as bootstrap:
        for _ in range(rounds):
            for run, found in zip((bare, recorded), rates, strict=True):
                found.append(run(queue, bootstrap, seconds))
    ratios = [b / a for a, b in zip(*rates, strict=True)]
    return Measured(*rates, statistics.median(ratios))


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--seconds", type=float, default=3.0)
    options.add_argument("--record-size", type=int, default=64, help="bytes")
    options.add_argument("--json", action="store_true", help="print one JSON object")
    given = options.parse_args()
    measured = measure(given.rounds, given.seconds, given.record_size)
    if given.json:
        print(json.dumps(asdict(measured)))
        return
    for a, b in zip(measured.bare, measured.recorded, strict=True):
        print(f"bare {a:9,.0f} records/s    with history {b:9,.0f} records/s    ratio {b / a:.2f}")
    print(f"median ratio {measured.ratio:.2f} (goal: at least {GOAL})")


if __name__ == "__main__":
    main()
