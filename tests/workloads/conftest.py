"""A mock cluster of librdkafka in the test's own process, and surroundings to run workers against it."""

from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, TopicPartition

from harness.core.clock import Clock
from harness.core.topology import Partition
from harness.history.journal import read_journal
from harness.history.schema import TABLES
from tests.workloads.mocking import Scripted
from workloads.readback.final_read import LogEnd, LogEnds
from workloads.workload import Surroundings

#: The partitions of a test's topic.
PARTITIONS = 4


@pytest.fixture(scope="session")
def cluster() -> Iterator[Scripted]:
    """The mock cluster of all surroundings."""
    mock = Scripted()
    yield mock
    mock.close()


def mock_ends(surroundings: Surroundings) -> LogEnds:
    """The ends of a mock cluster's logs. Leaders there have no followers, so all records are committed."""
    client = Consumer({"bootstrap.servers": surroundings.bootstrap, "group.id": "ends", "log_level": 0})

    def ask(partitions: Collection[Partition]) -> dict[Partition, LogEnd]:
        found: dict[Partition, LogEnd] = {}
        for topic, partition in partitions:
            reported = client.list_topics(topic, timeout=30)
            if (known := reported.topics[topic].partitions.get(partition)) is None:
                continue
            start, end = client.get_watermark_offsets(TopicPartition(topic, partition), timeout=30)
            at = reported.brokers[known.leader]
            found[topic, partition] = LogEnd(known.leader, f"{at.host}:{at.port}", 0, start, end, end, end)
        return found

    return ask


@pytest.fixture
def surroundings(cluster: Scripted, tmp_path: Path, request: pytest.FixtureRequest) -> Surroundings:
    """Surroundings with a topic of the test's own."""
    topic = request.node.name.replace("[", "-").replace("]", "")
    cluster.topic(topic, PARTITIONS)
    return Surroundings(cluster.bootstrap, {topic: PARTITIONS}, tmp_path, Clock.start(), seed=7)


@pytest.fixture
def journalled(tmp_path: Path) -> Iterator[Callable[[str], pa.Table]]:
    """All rows of a table in the test's journals."""

    def rows(table: str) -> pa.Table:
        found = [read_journal(path, TABLES[table])[0] for path in sorted(tmp_path.glob(f"{table}.*.arrows"))]
        return pa.concat_tables([TABLES[table].empty_table(), *found])

    return rows


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    """A mock cluster for one test, which chooses the cluster's next answers."""
    mock = Scripted()
    yield mock
    mock.close()
