"""The contradictions in a scenario. Pure: a scenario in, a line for each contradiction out."""

from collections.abc import Iterator

from harness.cluster.spec import ClusterSpec
from harness.core.anomalies import BY_NAME
from harness.core.complaints import unknown
from harness.core.guarantees import could_permit
from harness.core.verdict import PRECONDITIONS, Expectation, Judgement, Standing
from harness.core.version import parse_version
from harness.history.run_file import Limits
from harness.scenario.client_config import client_config
from harness.scenario.configuration import configuration
from harness.scenario.kafka_settings import kafka_settings
from harness.scenario.model import Scenario
from harness.scenario.problems import Problem
from harness.scenario.steps import Elect, Until, injections
from harness.scenario.timeline import problems_of_the_timeline
from nemesis.targets import bare, parts
from workloads.catalogue import WORKLOADS
from workloads.workload import WorkloadStep

#: KIP-833: KRaft is ready for production from 3.3 on, and 4.0 has no ZooKeeper mode.
_KRAFT_SINCE = (3, 3)
_ZOOKEEPER_BELOW = (4, 0)
#: KIP-392: consumers fetch from followers.
_FOLLOWERS_READ_SINCE = (2, 4)
#: A choice: one node, or the fewest of which one can fail (None: the default).
_QUORUMS = {None, 1, 3}
#: KIP-4: a request of the protocol creates topics.
_TOPICS_CREATED_SINCE = (0, 10, 1)
#: KIP-460: a request of the protocol asks for an election of a given type.
_ELECTIONS_BY_HAND_SINCE = (2, 4)


def contradictions(scenario: Scenario) -> list[Problem]:
    """Every contradiction in ``scenario``, each as one clear line."""
    return [
        *_of_the_cluster(scenario.cluster),
        *_of_the_topic(scenario),
        *_of_the_watched_partition(scenario),
        *kafka_settings(scenario),
        *problems_of_the_timeline(scenario),
        *_of_the_elections(scenario),
        *_of_the_workload(scenario),
        *client_config(scenario),
        *_of_the_final_read(scenario),
        *_of_what_is_required(scenario),
        *_of_the_expectation(scenario),
    ]


def _of_the_cluster(cluster: ClusterSpec) -> Iterator[Problem]:
    kraft, number = cluster.metadata == "kraft", parse_version(cluster.version)
    if not kraft and number >= _ZOOKEEPER_BELOW:
        yield Problem(
            ("cluster", "version"),
            f"Kafka {cluster.version} has no ZooKeeper mode: use 3.9.2 or earlier, or metadata: kraft",
        )
    if kraft and number < _KRAFT_SINCE:
        yield Problem(
            ("cluster", "version"),
            f"Kafka {cluster.version} is not ready for KRaft: use 3.3 or later, or metadata: zookeeper",
        )
    if number < _TOPICS_CREATED_SINCE:
        yield Problem(
            ("cluster", "version"),
            f"Kafka {cluster.version} makes no topic when a client asks (KIP-4 came with 0.10.1): use 0.10.1 or later",
        )
    own, other = ("controllers", "zookeepers") if kraft else ("zookeepers", "controllers")
    if getattr(cluster, other) is not None:
        yield Problem(("cluster", other), f"metadata: {cluster.metadata} has no {other}: remove it, or say {own}")
    if getattr(cluster, own) not in _QUORUMS:
        yield Problem(("cluster", own), f"{own} is 1 or 3, not {getattr(cluster, own)}")


def _of_the_topic(scenario: Scenario) -> Iterator[Problem]:
    topic, brokers = scenario.topic, scenario.cluster.brokers
    if topic.replication > brokers:
        yield Problem(
            ("topic", "replication"),
            f"replication {topic.replication} needs as many brokers, the cluster has {brokers}: "
            "lower it, or raise cluster.brokers",
        )
    if topic.min_isr > topic.replication:
        yield Problem(
            ("topic", "min.insync.replicas"),
            f"min.insync.replicas {topic.min_isr} is more than replication {topic.replication}: "
            "no write with acks: all could succeed; lower it",
        )
    if topic.avoid is not None:
        yield from _of_avoiding(scenario)
    if topic.assignment is not None:
        yield from _of_the_assignment(topic.assignment, scenario)


def _of_avoiding(scenario: Scenario) -> Iterator[Problem]:
    topic, cluster = scenario.topic, scenario.cluster
    where = ("topic", "avoid")
    if cluster.metadata == "kraft":
        yield Problem(where, "in KRaft no broker is the controller: remove avoid")
    elif cluster.brokers <= topic.replication:
        yield Problem(
            where, f"avoid: controller needs a broker more than replication {topic.replication}: raise cluster.brokers"
        )
    if topic.assignment is not None:
        yield Problem(where, "assignment says where replicas are: remove avoid")


def _of_the_assignment(assignment: list[list[int]], scenario: Scenario) -> Iterator[Problem]:
    topic, brokers = scenario.topic, scenario.cluster.brokers
    if len(assignment) != topic.partitions:
        yield Problem(
            ("topic", "assignment"), f"{len(assignment)} partitions are assigned, the topic has {topic.partitions}"
        )
    for index, replicas in enumerate(assignment):
        where = ("topic", "assignment", index)
        if len(replicas) != topic.replication or len(set(replicas)) != len(replicas):
            yield Problem(where, f"{replicas} are not {topic.replication} different brokers (topic.replication)")
        absent = [broker for broker in replicas if not 1 <= broker <= brokers]
        if absent:
            yield Problem(where, f"there is no broker {absent[0]}: they are 1 to {brokers}")


def _of_the_watched_partition(scenario: Scenario) -> Iterator[Problem]:
    topic = scenario.topic
    if scenario.watch_topic not in topic.names:
        yield Problem(("watch",), f"no topic {scenario.watch_topic!r}; the topics are {', '.join(topic.names[:5])}")
    if scenario.watch_partition >= topic.partitions:
        yield Problem(("watch",), f"no partition {scenario.watch_partition}: the topic has {topic.partitions}")


def _of_the_workload(scenario: Scenario) -> Iterator[Problem]:
    """Steps and targets that only other workloads have, and contradictions among the workload's own settings."""
    workload = scenario.workload
    own: list[tuple[int, WorkloadStep]] = []
    for index, step in enumerate(scenario.timeline):
        where = ("timeline", index)
        if isinstance(step, workload.steps):
            own.append((index, step))
        elif isinstance(step, WorkloadStep):
            yield Problem(where, step.elsewhere)
        meant = [
            part
            for fault in injections(step)
            for target in (*fault.targets().values(), *fault.pin.values())
            for part in parts(target)
        ]
        if not workload.transactional and any(bare(part) == "coordinator" for part in meant):
            yield Problem(where, f"target 'coordinator': only transactions have one; use kind: {_transactional()}")
    for found in workload.contradictions(own):
        yield Problem(("timeline", found.step, *found.path), found.says)


def _transactional() -> str:
    """The kinds of workloads that have transactions."""
    return " or ".join(kind for kind, workload in WORKLOADS.items() if workload().transactional)


def _of_the_elections(scenario: Scenario) -> Iterator[Problem]:
    version = scenario.cluster.version
    if parse_version(version) >= _ELECTIONS_BY_HAND_SINCE:
        return
    for index, step in enumerate(scenario.timeline):
        if isinstance(step, Elect):
            yield Problem(
                ("timeline", index),
                f"Kafka {version} cannot elect when asked (KIP-460 came with 2.4): use 2.4 or later",
            )


def _of_the_final_read(scenario: Scenario) -> Iterator[Problem]:
    where, version = ("final_read", "replicas"), scenario.cluster.version
    if not scenario.final_read.replicas:
        return
    if parse_version(version) < _FOLLOWERS_READ_SINCE:
        yield Problem(where, f"Kafka {version} cannot read from a follower (KIP-392): use 2.4 or later")
    if scenario.topic.replication == 1:
        yield Problem(where, "with replication 1 there is no follower: raise topic.replication, or remove it")


def _of_the_expectation(scenario: Scenario) -> Iterator[Problem]:
    expect = scenario.expect
    for key, names in (("anomalies", expect.anomalies), ("allowed", expect.allowed)):
        for name in names:
            if name not in BY_NAME:
                yield Problem(("expect", key), unknown("anomaly", name, sorted(BY_NAME)))
    for name in expect.not_met:
        if name not in PRECONDITIONS:
            yield Problem(("expect", "not_met"), unknown("precondition", name, PRECONDITIONS))
    yield from _of_the_expected_verdicts(expect)
    yield from _of_the_expected_losses(scenario)


def _of_the_expected_losses(scenario: Scenario) -> Iterator[Problem]:
    """Losses that are expected to be permitted, and never are. (kafka_settings.py has a line for a setting of unclean
    election that has no effect.)"""
    expect, settings = scenario.expect, configuration(scenario)
    if expect.standing is not Standing.PERMITTED or scenario.topic.unclean:
        return
    wiped = any(fault.destroys_data for fault in scenario.faults)
    asked = any(isinstance(step, Elect) for step in scenario.timeline)
    for name in expect.anomalies:
        anomaly = BY_NAME.get(name)
        if anomaly is not None and anomaly.is_loss and not could_permit(anomaly, settings, wiped, asked):
            yield Problem(
                ("expect",),
                f"with acks: {settings.acks} and no disk wiped, {name} is permitted by unclean election alone: "
                "set topic.unclean.leader.election.enable: true, or expect something else",
            )


def _of_the_expected_verdicts(expect: Expectation) -> Iterator[Problem]:
    """Expectations that no run can meet: a verdict without the findings that lead to it, or findings without their
    verdict."""
    where, verdicts = ("expect", "verdict"), set(expect.verdicts)
    found = [*expect.anomalies, *expect.allowed]
    if Judgement.INVALID in verdicts and not found:
        yield Problem(where, "invalid needs anomalies: name them in expect.anomalies, or in expect.allowed")
    if Judgement.UNKNOWN in verdicts and not expect.not_met:
        yield Problem(where, "unknown needs preconditions that are not met: name them in expect.not_met")
    if Judgement.INVALID not in verdicts and found:
        yield Problem(where, f"with {found[0]} the verdict is invalid: add invalid, or remove {found[0]}")
    if verdicts == {Judgement.VALID} and expect.not_met:
        yield Problem(where, f"if {expect.not_met[0]} is not met the verdict is not valid: add unknown, or remove it")


def _of_what_is_required(scenario: Scenario) -> Iterator[Problem]:
    """Requirements that no run can meet: acknowledgements with acks: 0, or a step that awaits a forbidden new
    leader."""
    awaited = {index: step.until for index, step in enumerate(scenario.timeline) if isinstance(step, Until)}
    requires, expected = scenario.requires, scenario.expect.not_met
    if scenario.workload.acks == "0":
        never = "with acks: 0 nothing is ever acknowledged"
        if scenario.limits != Limits():
            yield Problem(("limits",), f"{never}: remove limits, or use acks: 1 or all")
        if requires.acknowledged and "enough acknowledged" not in expected:
            yield Problem(("requires", "acknowledged"), f"{never}: require 0, or use acks: 1 or all")
        for index, until in awaited.items():
            if until.acknowledged is not None:
                yield Problem(("timeline", index, "until"), f"{never}: wait for something else, or use acks: 1 or all")
    if requires.leader == "unchanged" and "leader unchanged" not in expected:
        for index, until in awaited.items():
            if until.leader == "changed":
                yield Problem(
                    ("timeline", index, "until"),
                    "the step awaits another leader, but requires.leader is unchanged: remove one of them",
                )
