"""The final read on real brokers whose logs are not what a single question would say."""

from pathlib import Path
from typing import Any

import pytest

from harness.history.run_file import RunFile
from tests.cluster.command import kafka_trial

pytestmark = pytest.mark.cluster

#: With acks=1 the leader acknowledges what its follower lacks, which stays in the ISR for so long.
LAGGING = """\
name: high-watermark-behind
cluster: {brokers: 2, config: {replica.lag.time.max.ms: 20000}}
topic: {partitions: 1, replication: 2, min.insync.replicas: 1}
workload: {producers: 1, consumers: 1, rate: 500, acks: 1}
timeline:
  - wait: 3s
  - inject: {fault: partition, from: leader, to: followers, as: cut}
  - wait: 3s
final_read: {down: [cut]}
"""

#: Clients reach a leader that the rest of the cluster has deposed; a producer leaves it after its delivery timeout.
DEPOSED = """\
name: deposed-leader-reachable
cluster: {brokers: 3}
topic: {partitions: 1, replication: 3, min.insync.replicas: 2}
workload: {producers: 1, consumers: 1, rate: 500, acks: all}
timeline:
  - wait: 3s
  - inject: {fault: isolate, target: leader, clients: false, as: cut}
  - until: {leader: changed, within: 30s}
  - wait: 20s
final_read: {down: [cut]}
requires: {leader: changed}
"""


def run(tmp_path: Path, scenario: str) -> tuple[RunFile, dict[str, Any]]:
    file = tmp_path / "scenario.yaml"
    file.write_text(scenario)
    done = kafka_trial("run", file, "--store", tmp_path / "store", "--seed", "1", "--json")
    [directory] = (tmp_path / "store").glob("*/*")
    return RunFile.read(directory), done.verdict


def test_the_final_read_waits_for_records_acknowledged_above_the_high_watermark(tmp_path: Path) -> None:
    ran, verdict = run(tmp_path, LAGGING)
    assert (verdict["verdict"], verdict["anomalies"]) == ("valid", {})
    began = {phase.phase: phase.at_ns for phase in ran.phases}
    assert began["cluster down"] - began["final read"] > 5e9, "it was at hand at once: nothing was waited for"


def test_a_deposed_leader_that_clients_reach_is_not_believed(tmp_path: Path) -> None:
    ran, verdict = run(tmp_path, DEPOSED)
    # (If a record beside them is given up, the producer may write again what it had written: librdkafka#4953.)
    found = {name: one["standing"] for name, one in verdict["anomalies"].items()}
    assert (verdict["verdict"], found) in (("valid", {}), ("invalid", {"duplicated": "permitted"}))
    assert len(str(ran.clients["final 1000"]["bootstrap.servers"]).split(",")) == 1
