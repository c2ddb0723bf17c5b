"""A follower's log that is not its leader's, on real brokers: only who reads the replicas sees it."""

import io
import struct
import tarfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from docker import DockerClient
from docker.models.containers import Container

from checkers.evidence.store import AnomalyStore
from harness.core.waiting import wait_for
from harness.history.paths import stored
from harness.history.run_file import RunFile
from harness.history.schema import FINAL_READER
from tests.command import Invoke

pytestmark = pytest.mark.cluster

#: The first broker leads, and the last is stopped for long enough to change its log. Each record is a batch of its own,
#: so that there are batches of the same size however slow the machine.
SCENARIO = """
name: replicas
topic: {partitions: 2, replication: 3, assignment: [[1, 2, 3], [1, 2, 3]]}
workload: {kind: queue, producers: 2, consumers: 1, rate: 500, batch.size: 1}
timeline:
  - until: {acknowledged: 1000, within: 60s}
  - inject: {fault: stop, target: b3, as: stopped}
  - wait: 10s
  - heal: stopped
final_read: {replicas: true}
expect: {verdict: invalid, anomalies: [rewritten_offset, diverged], standing: violation}
"""
DIRECTORY, SEGMENT = "/data/kafka/trial-0", "00000000000000000000.log"

#: Of a batch of records (Kafka documentation, Message Format): its first offset, how many bytes follow, what is then,
#: and its last offset less its first. Its checksum covers what comes after itself, and so not the first offset.
HEADER = struct.Struct(">qi11xi")
_BEFORE_LENGTH = 12


@pytest.mark.usefixtures("spark")
def test_only_a_follower_with_another_log_order_is_found(
    tmp_path: Path, engine: DockerClient, kafka_trial: Invoke
) -> None:
    scenario, store = tmp_path / "replicas.yaml", tmp_path / "store"
    scenario.write_text(SCENARIO)
    with ThreadPoolExecutor(1) as beside:
        changed = beside.submit(change, engine, store)
        done = kafka_trial("run", scenario, "--store", store, "--seed", "1", "--json")
    offsets = changed.result()
    assert len(offsets) > 100
    assert done.code == 0, done.err[-3000:] + done.out[-3000:]
    verdict = done.verdict
    assert verdict["anomalies"].keys() == {"rewritten_offset", "diverged"}
    assert [held["name"] for held in verdict["preconditions"] if not held["met"]] == []
    run = store / verdict["run"]
    found_rows = AnomalyStore.read(run)
    rewritten, diverged = (
        pa.concat_tables(found_rows.rows[anomaly].pieces()).to_pylist() for anomaly in ("rewritten_offset", "diverged")
    )
    for found in (rewritten, diverged):
        assert {(row["partition"], row["offset"]) for row in found} == {(0, offset) for offset in offsets}
    assert {row["broker"] for row in diverged} == {3}
    # The other follower has what the leader has, and so has this one in its other partition.
    reads = stored(run, "reads").to_table()
    final = given(reads, pc.field("phase") == "final")
    one, two, three = (given(reads, pc.field("reader") == FINAL_READER + broker) for broker in (1, 2, 3))
    assert (one, two) == (set(), final)
    assert {(partition, offset) for partition, offset, _ in three ^ final} == {(0, offset) for offset in offsets}


def given(reads: pa.Table, chosen: pc.Expression) -> set[tuple[int, int, int]]:
    """Partition, offset and record of what was read."""
    columns = reads.filter(chosen).select(["partition", "offset", "record_id"]).to_pydict()
    return set(zip(*columns.values(), strict=True))


def change(engine: DockerClient, store: Path) -> set[int]:
    """Once a node of the only run of ``store`` has exited, change the log of its first partition: see ``exchanged``."""
    [node] = wait_for(lambda: exited(engine, store), "a node that was stopped", within=180)
    archived = b"".join(node.get_archive(f"{DIRECTORY}/{SEGMENT}")[0])
    with tarfile.open(fileobj=io.BytesIO(archived)) as archive:
        [member] = archive.getmembers()
        file = archive.extractfile(member)
        assert file is not None
        changed, offsets = exchanged(file.read())
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        archive.addfile(member, io.BytesIO(changed))
    assert node.put_archive(DIRECTORY, written.getvalue())
    return offsets


def exited(engine: DockerClient, store: Path) -> list[Container]:
    labels = [f"kafka-trial.run={RunFile.read(path.parent).run}" for path in store.rglob("run.json")]
    return [
        container
        for label in labels
        for container in engine.containers.list(all=True, filters={"label": label, "status": "exited"})
    ]


def exchanged(segment: bytes) -> tuple[bytes, set[int]]:
    """A segment in which batches of the same number of records and bytes stand in each other's place, two by two, each
    with the other's offsets. Returns also these offsets."""
    kept, alone, offsets = list(batches(segment)), dict[tuple[int, int], int](), set[int]()
    for n, batch in enumerate(kept):
        first, length, more = HEADER.unpack_from(batch)
        other = alone.pop((length, more), None)
        if other is None:
            alone[length, more] = n
            continue
        before = kept[other]
        kept[other], kept[n] = before[:8] + batch[8:], batch[:8] + before[8:]
        for start in (HEADER.unpack_from(before)[0], first):
            offsets |= set(range(start, start + more + 1))
    return b"".join(kept), offsets


def batches(segment: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(segment):
        end = at + _BEFORE_LENGTH + HEADER.unpack_from(segment, at)[1]
        yield segment[at:end]
        at = end
