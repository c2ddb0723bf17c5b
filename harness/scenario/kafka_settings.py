"""Kafka settings that a scenario may not have: the harness needs them, or the run would be judged wrongly. Pure."""

import re
from collections.abc import Iterator, Mapping

from harness.cluster.spec import Setting
from harness.core.guarantees import Configuration
from harness.core.quantities import duration_text
from harness.scenario.configuration import configuration
from harness.scenario.model import Scenario
from harness.scenario.problems import Problem
from harness.scenario.steps import Elect

#: The identity and addresses of nodes. With other values there is no cluster, or faults do not find its nodes.
RESERVED = frozenset(
    {
        "advertised.host.name",
        "advertised.listeners",
        "advertised.port",
        "broker.id",
        "broker.id.generation.enable",
        "broker.rack",
        "control.plane.listener.name",
        "controller.listener.names",
        "controller.quorum.bootstrap.servers",
        "controller.quorum.voters",
        "early.start.listeners",
        "host.name",
        "inter.broker.listener.name",
        "listener.security.protocol.map",
        "listeners",
        "log.dir",
        "log.dirs",
        "metadata.log.dir",
        "node.id",
        "port",
        "process.roles",
        "replica.selector.class",
        "security.inter.broker.protocol",
        "zookeeper.connect",
        "zookeeper.metadata.migration.enable",
    }
)
#: Settings that the topic always sets itself: a broker's default for them would have no effect.
OF_THE_TOPIC = ("min.insync.replicas", "unclean.leader.election.enable")

#: Seconds after the timeline: the waits for a whole ISR and for writes, the drain, and the final reads, at most.
_AFTER_S = 600.0
#: Bytes of a record in the log apart from its value: its header, its key, and the header of a batch with one record.
_OVERHEAD = 128
_MS = {"log.retention.ms": 1, "log.retention.minutes": 60_000, "log.retention.hours": 3_600_000}


def kafka_settings(scenario: Scenario) -> Iterator[Problem]:
    """A problem for each setting of brokers or topic that is not allowed."""
    for part in ("cluster", "topic"):
        for key in getattr(scenario, part).config:
            where = (part, "config", key)
            if not re.fullmatch(r"[A-Za-z0-9._-]+", key):
                yield Problem(where, f"{key!r} is not a valid name for a Kafka setting")
            elif key in OF_THE_TOPIC:
                yield Problem(where, f"{key} has a key of its own: write it as topic.{key}")
            elif part == "cluster" and key in RESERVED:
                yield Problem(where, f"{key} is set by the harness, which needs it to find the nodes: remove it")
    yield from _unclean(scenario)
    yield from _compacted(scenario)
    yield from _deleted(scenario)


def _unclean(scenario: Scenario) -> Iterator[Problem]:
    """A problem for a setting without effect: KRaft elects uncleanly by itself only from 3.9 on (KAFKA-12670)."""
    settings: Configuration = configuration(scenario)
    by_hand = any(isinstance(step, Elect) for step in scenario.timeline)
    if settings.unclean_election and not settings.elects_uncleanly and not by_hand:
        yield Problem(
            ("topic", "unclean.leader.election.enable"),
            f"KRaft in Kafka {settings.version} makes no unclean election by itself (KAFKA-12670): use 3.9 or later, "
            "metadata: zookeeper, or a step `elect: unclean`",
        )


def _compacted(scenario: Scenario) -> Iterator[Problem]:
    policies = _effective(scenario, "cleanup.policy", {"log.cleanup.policy": 1})
    for where, value in policies:
        if "compact" in str(value):
            yield Problem(
                where,
                f"{where[-1]}: {value} deletes a record when its key has a newer one, "
                "which would count as lost: remove it",
            )


def _deleted(scenario: Scenario) -> Iterator[Problem]:
    longest = sum(step.longest for step in scenario.timeline) + _AFTER_S
    for where, value in _effective(scenario, "retention.ms", _MS):
        kept = _number(value, _MS.get(str(where[-1]), 1))
        if kept is not None and 0 <= kept < longest * 1e3:
            yield Problem(
                where,
                f"{where[-1]}: {value} may delete records while the run lasts (up to {duration_text(longest)}), which "
                "would count as lost: raise it, or remove it",
            )
    rate, size = scenario.workload.rate, scenario.workload.record_size + _OVERHEAD
    for where, value in _effective(scenario, "retention.bytes", {"log.retention.bytes": 1}):
        kept = _number(value, 1)
        if kept is None or kept < 0:
            continue
        if rate is None:
            yield Problem(
                where, f"{where[-1]}: without workload.rate nobody knows how much is written: set a rate, or remove it"
            )
        elif kept < (most := round(rate * size * longest)):
            yield Problem(
                where,
                f"{where[-1]}: {value} may delete records while the run lasts (up to {most} bytes are written), which "
                "would count as lost: raise it, or remove it",
            )


def _effective(
    scenario: Scenario, of_topic: str, of_brokers: Mapping[str, int]
) -> Iterator[tuple[tuple[str, str, str], "Setting"]]:
    """Where the effective setting of the topic is: at the topic, else the first that is set of its names for
    brokers."""
    if of_topic in scenario.topic.config:
        yield ("topic", "config", of_topic), scenario.topic.config[of_topic]
        return
    name = next((name for name in of_brokers if name in scenario.cluster.config), None)
    if name is not None:
        yield ("cluster", "config", name), scenario.cluster.config[name]


def _number(value: "Setting", unit: int) -> int | None:
    """The setting in its smallest unit; None if Kafka would refuse it."""
    try:
        return int(str(value)) * unit
    except ValueError:
        return None
