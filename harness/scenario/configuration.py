"""The settings of a scenario that Kafka's promises depend on."""

from harness.core.guarantees import Configuration
from harness.scenario.model import Scenario


def configuration(scenario: Scenario) -> Configuration:
    """What run.json keeps for the checkers to rule by."""
    cluster, topic, workload = scenario.cluster, scenario.topic, scenario.workload
    return Configuration(
        version=cluster.version,
        metadata=cluster.metadata,
        brokers=cluster.brokers,
        replication=topic.replication,
        min_insync_replicas=topic.min_insync_replicas,
        unclean_election=bool(topic.unclean_election),
        acks=workload.acks,
        idempotence=workload.enable_idempotence,
        retries=workload.retries,
        max_in_flight=workload.max_in_flight,
        isolation_level=scenario.final_isolation,
        grouped=workload.consume == "group",
    )
