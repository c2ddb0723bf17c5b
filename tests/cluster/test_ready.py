"""What keeps a topic from being made: the scenario, or the cluster."""

import pytest
from confluent_kafka import KafkaError

from harness.cluster.ready import not_made
from harness.core.errors import ClusterError, ScenarioError


@pytest.mark.parametrize(
    "code", [KafkaError.INVALID_CONFIG, KafkaError.POLICY_VIOLATION, KafkaError.INVALID_REPLICATION_FACTOR]
)
def test_a_setting_that_kafka_refuses_is_the_scenarios(code: int) -> None:
    reported = not_made("trial", KafkaError(code, "it said why"))
    assert isinstance(reported, ScenarioError)
    assert str(reported) == "topic trial: Kafka refuses it (it said why): see the scenario's topic"


@pytest.mark.parametrize("code", [KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError.NOT_CONTROLLER])
def test_a_cluster_that_does_not_come_to_it_is_not(code: int) -> None:
    reported = not_made("trial", KafkaError(code, "it said why"))
    assert isinstance(reported, ClusterError)
    assert str(reported) == "topic trial was not made: it said why"
