"""A transactional producer that another fences, on a real broker (librdkafka's mock cluster fences nobody)."""

from pathlib import Path

import pytest
from confluent_kafka import Producer
from docker import DockerClient

from harness.cluster.ready import await_registered, create_topics
from harness.cluster.spec import ClusterSpec, TopicSpec
from harness.cluster.wire import Wire
from harness.core.clock import Clock
from harness.core.waiting import wait_for
from harness.history.journal import journal_path, read_journal
from harness.history.schema import TRANSACTIONS
from harness.providers.docker.provider import Docker
from tests.workloads.begun import begun
from workloads.readback.last_stable import await_stable
from workloads.transactions import Transactions, transactional_id
from workloads.workload import Surroundings

pytestmark = [pytest.mark.cluster, pytest.mark.core]


def test_a_fenced_producer_is_replaced_by_its_own_next_incarnation(tmp_path: Path, engine: DockerClient) -> None:
    topic = TopicSpec(partitions=2, replication=1)
    journals = tmp_path / "journals"
    for part in ("journals", "logs"):
        (tmp_path / part).mkdir()
    with Docker(lambda: engine).up(
        ClusterSpec(brokers=1), f"fencing/{tmp_path.name}", tmp_path, note=pytest.fail
    ) as cluster:
        await_registered(cluster)
        create_topics(cluster, topic)
        surroundings = Surroundings(cluster.topology.bootstrap, {topic.name: 2}, journals, Clock.start(), seed=1)
        with begun(Transactions(rate=100, producers=1, consumers=1), surroundings) as workload:
            wait_for(workload.counts, "50 acknowledged", 60, good=lambda counts: counts.acknowledged >= 50)
            with Wire(cluster.topology.brokers[0].endpoint) as wire:
                assert wire.coordinator(transactional_id(surroundings.clock.origin_ns, 1)) == 1
            other = Producer({**workload.workers[0].spec.config, "log_level": 0})
            other.init_transactions(30)

            def rows() -> list[dict]:
                return read_journal(journal_path(journals, "transactions", "1"), TRANSACTIONS)[0].to_pylist()

            wait_for(
                lambda: {row["incarnation"] for row in rows() if row["outcome"] == "ok"},
                "an ended transaction of the next incarnation",
                60,
                good=lambda incarnations: 1 in incarnations,
            )
            assert workload.deaths() == []
            assert workload.finish(within=30) == []
        assert await_stable(surroundings.bootstrap, surroundings.topics, journals, surroundings.clock, within=40) == []
    last = {row["transaction"]: row for row in rows()}.values()
    failed = [row for row in last if row["error"]]
    assert 0 in {row["incarnation"] for row in failed}
    assert {row["outcome"] for row in failed} <= {"info", "fail"}, failed
    assert {row["outcome"] for row in last if not row["error"]} == {"ok"}
