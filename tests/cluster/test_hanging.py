"""A transaction that nobody ends, on real brokers: a write comes after the end of its transaction (KAFKA-14402)."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from docker import DockerClient

from harness.cluster.ready import await_registered, create_topics
from harness.cluster.spec import ClusterSpec, TopicSpec
from harness.core.clock import Clock
from harness.core.topology import Ports
from harness.core.waiting import wait_for
from harness.history.journal import journal_path, read_journal
from harness.history.paths import JOURNALS
from harness.history.run_file import RunFile
from harness.history.schema import TABLES
from harness.providers.docker.provider import Docker
from harness.scenario.loading import load
from tests.cluster.late import TRANSACTION_ABORTABLE, write_late
from tests.command import Invoke
from workloads.clients.payload import Encoder
from workloads.readback.last_stable import await_stable
from workloads.transactions import Transactions

pytestmark = pytest.mark.cluster

NAME = "exactly-once/leader-killed"
#: Leaders that append to a transaction without asking whether there is one. The late write comes well before the kill.
CHANGES = (
    "cluster.config={transaction.partition.verification.enable: false}",
    "workload.transaction.timeout.ms=10000",
    "workload.delivery.timeout.ms=10000",
    "timeline.0={until: {acknowledged: 500, within: 60s}}",
    "timeline.3.wait=0s",
    "expect={verdict: invalid, anomalies: [hanging_transaction, duplicated], standing: permitted}",
    "expect.not_met=[timeline followed, final read complete]",
)
PLACE = ("trial", 0)


@pytest.mark.usefixtures("spark")
def test_a_write_after_the_end_of_its_transaction_hangs_its_partition_where_leaders_do_not_verify(
    tmp_path: Path, kafka_trial: Invoke
) -> None:
    with ThreadPoolExecutor(1) as beside:
        late = beside.submit(repeat_an_aborted_record, tmp_path)
        settings = [part for change in CHANGES for part in ("--set", change)]
        done = kafka_trial("run", NAME, *settings, "--store", tmp_path, "--seed", "1", "--json")
    offset = late.result()
    verdict = done.verdict
    assert not verdict["partial"]
    # (No idempotent producer writes a record again: the consumer that reads uncommitted records gets both copies.)
    assert done.code == 1, done.err[-3000:] + done.out[-3000:]
    assert verdict["reasons"][-1] == (
        "not as expected: expected standing permitted, not so for duplicated, hanging_transaction"
    )
    # Seen in one partition, and there from the late record on; all that stands behind it is neither lost nor found.
    assert verdict["anomalies"].keys() == {"hanging_transaction", "duplicated"}
    copied, hanging = (verdict["anomalies"][name] for name in ("duplicated", "hanging_transaction"))
    assert (copied["count"], copied["examples"][0]["last_offset"]) == (1, offset)
    # (The late write is another producer's, which the history does not have: no producer of its own writes a copy.)
    assert hanging["standing"] == "undecided"
    assert hanging["because"] == "nothing shows whether its first write reached its leader before its transaction ended"
    [found] = hanging["examples"]
    assert (found["topic"], found["partition"], found["offset"]) == (*PLACE, offset)
    summary = verdict["summary"]
    assert summary["survivors"] < summary["acknowledged"]
    assert summary["lost"] == 0
    unmet = {held["name"]: held["detail"] for held in verdict["preconditions"] if not held["met"]}
    assert unmet.keys() == {"final read complete", "timeline followed"}
    assert re.fullmatch(rf"trial-0 read to {offset} of \d+", unmet["final read complete"])
    assert "every log stable to its end (not known of trial-0 after" in unmet["timeline followed"]


def test_leaders_that_verify_refuse_it(tmp_path: Path, engine: DockerClient) -> None:
    topic = TopicSpec(name=PLACE[0], replication=1)
    for part in ("journals", "logs"):
        (tmp_path / part).mkdir()
    with Docker(lambda: engine).up(
        ClusterSpec(brokers=1), f"hanging/{tmp_path.name}", tmp_path, note=pytest.fail
    ) as cluster:
        await_registered(cluster)
        create_topics(cluster, topic)
        brokers = {broker.id: broker.endpoint for broker in cluster.topology.brokers}
        assert write_late(brokers, PLACE, b"late")[0] == TRANSACTION_ABORTABLE
        topics = {topic.name: topic.partitions}
        assert await_stable(cluster.topology.bootstrap, topics, tmp_path / "journals", Clock.start(), within=20) == []


def repeat_an_aborted_record(store: Path) -> int:
    """In the only run of ``store``, write a record of a transaction that was aborted again, late; returns its offset.

    So each reader is given a record that was sent, to the partition it was sent to, and none that counts.
    """
    run, record = wait_for(lambda: aborted_records(store), "an aborted transaction", within=180)[0]
    brokers = {node.id: f"{node.address}:{Ports().client}" for node in run.nodes if node.role == "broker"}
    workload = load(NAME).workload
    assert isinstance(workload, Transactions)
    error, offset = write_late(brokers, PLACE, Encoder(workload.record_size)(record, 1)[0])
    assert error == 0
    return offset


def aborted_records(store: Path) -> list[tuple[RunFile, int]]:
    """Records that a run's first producer aborted, each with the run."""
    found = []
    for directory in (path.parent for path in store.rglob("run.json")):
        transactions, sends = journalled(directory, "transactions"), journalled(directory, "sends")
        aborted = transactions.filter((pc.field("outcome") == "ok") & (pc.field("intent") == "abort"))["transaction"]
        meant = sends.filter(pc.field("transaction").isin(aborted) & (pc.field("partition") == PLACE[1]))
        found += [(RunFile.read(directory), record) for record in meant["record_id"].to_pylist()]
    return found


def journalled(run: Path, table: str) -> pa.Table:
    """The rows that the first producer has journalled so far."""
    path = journal_path(run / JOURNALS, table, "1")
    return read_journal(path, TABLES[table])[0] if path.exists() else TABLES[table].empty_table()
