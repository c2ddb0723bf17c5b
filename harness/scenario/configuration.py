"""The settings of a scenario that promises depend on. Pure."""

from harness.core.guarantees import Configuration
from harness.scenario.model import Scenario

_VERIFICATION = "transaction.partition.verification.enable"


def configuration(scenario: Scenario) -> Configuration:
    """The settings that run.json keeps for the checkers."""
    workload, topic = scenario.workload, scenario.topic
    return Configuration(
        version=scenario.cluster.version,
        metadata=scenario.cluster.metadata,
        brokers=scenario.cluster.brokers,
        replication=topic.replication,
        min_insync_replicas=topic.min_isr,
        unclean_election=bool(topic.unclean),
        acks=workload.acks,
        idempotence=workload.enable_idempotence,
        retries=workload.retries,
        max_in_flight=workload.max_in_flight,
        isolation_level=scenario.isolation_level,
        grouped=workload.grouped,
        commits_first=workload.commits_first,
        partition_verification=str(scenario.cluster.config.get(_VERIFICATION, True)).strip().lower() != "false",
    )
