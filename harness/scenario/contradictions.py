"""Scenarios that cannot be: each told in one line that says what to change. Pure."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.core.errors import ScenarioError
from harness.core.version import parse_version
from harness.scenario.steps import Heal, Inject, Injection, Random, Until
from nemesis.targets import ROLES, check_names

if TYPE_CHECKING:
    from harness.scenario.model import ClusterSpec, Scenario

_KRAFT_SINCE = (3, 3)
_ZOOKEEPER_BELOW = (4, 0)
_QUORUMS = {None, 1, 3}


def of_cluster(cluster: "ClusterSpec") -> None:
    """Raises ValueError with the first contradiction."""
    version = parse_version(cluster.version)
    if cluster.metadata == "zookeeper" and version >= _ZOOKEEPER_BELOW:
        raise ValueError(f"Kafka {cluster.version} has no ZooKeeper mode: set version to 3.9.2 or lower, or metadata: kraft")
    if cluster.metadata == "kraft" and version < _KRAFT_SINCE:
        raise ValueError(f"KRaft is for Kafka 3.3 and later, not {cluster.version}: set metadata: zookeeper")
    mine, other = ("controllers", "zookeepers") if cluster.metadata == "kraft" else ("zookeepers", "controllers")
    if getattr(cluster, other) is not None:
        raise ValueError(f"metadata: {cluster.metadata} has no {other}: remove the key, or say {mine}")
    if getattr(cluster, mine) not in _QUORUMS:
        raise ValueError(f"{mine} is 1 or 3, not {getattr(cluster, mine)}")


def of_scenario(scenario: "Scenario") -> None:
    """Raises ValueError with the first contradiction."""
    for problem in _problems(scenario):
        raise ValueError(problem)


def _problems(scenario: "Scenario") -> Iterator[str]:
    topic, brokers = scenario.topic, scenario.cluster.brokers
    if topic.replication > brokers:
        yield f"topic.replication is {topic.replication}, but there are {brokers} brokers: lower it or add brokers"
    if topic.min_isr > topic.replication:
        yield f"topic.min.insync.replicas is {topic.min_isr}, more than topic.replication ({topic.replication}): lower it"
    yield from _assignment(scenario)
    if scenario.watch_topic not in topic.names or scenario.watch_partition >= topic.partitions:
        yield f"watch: there is no partition {scenario.watch_topic}/{scenario.watch_partition}: see topic"
    yield from _expectation(scenario)
    yield from _timeline(scenario)


def _assignment(scenario: "Scenario") -> Iterator[str]:
    topic = scenario.topic
    if topic.avoid and scenario.cluster.metadata == "kraft":
        yield "topic.avoid: controller is for ZooKeeper mode, where the controller is a broker: remove it"
    if topic.avoid and topic.replication >= scenario.cluster.brokers:
        yield "topic.avoid: controller needs one broker more than topic.replication: add a broker"
    if topic.assignment is None:
        return
    if topic.avoid:
        yield "topic.assignment and topic.avoid exclude each other: remove one"
    if len(topic.assignment) != topic.partitions:
        yield f"topic.assignment places {len(topic.assignment)} partitions, topic.partitions says {topic.partitions}"
    for replicas in topic.assignment:
        if len(set(replicas)) != topic.replication or not set(replicas) <= set(range(1, scenario.cluster.brokers + 1)):
            yield f"topic.assignment: {replicas} is not {topic.replication} different ones of the broker ids"


def _expectation(scenario: "Scenario") -> Iterator[str]:
    expect, topic = scenario.expect, scenario.topic
    wiped = any(injection.fault == "wipe" for injection in _injections(scenario))
    promised = scenario.workload.acks == "all" and not topic.unclean and not wiped and topic.replication > 1
    if promised and "lost" in expect.anomalies and expect.standing == "permitted":
        yield (
            "expect: no setting permits a loss here: with acks: all only unclean election does; "
            "set topic.unclean.leader.election.enable: true, or expect a violation"
        )


def _injections(scenario: "Scenario") -> Iterator[Injection]:
    for step in scenario.timeline:
        if isinstance(step, Inject):
            yield step.inject
        elif isinstance(step, Random):
            yield from step.random.faults


def _timeline(scenario: "Scenario") -> Iterator[str]:
    """Every name that a step uses must mean something by then."""
    nodes = scenario.cluster.node_names
    pins: list[str] = []
    names: set[str] = set()
    ended = False
    for number, step in enumerate(scenario.timeline):
        where = f"timeline.{number}"
        try:
            if isinstance(step, Inject):
                yield from (f"{where}: {problem}" for problem in _naming(step.inject, names, nodes))
                for expression in step.inject.pin.values():
                    check_names(expression, nodes, pins)
                pins += step.inject.pin
                for expression in step.inject.targets().values():
                    check_names(expression, nodes, pins)
                if step.inject.name:
                    names.add(step.inject.name)
                    pins.append(step.inject.name)
                if step.inject.fault == "wipe" and not ended:
                    yield f"{where}: wipe deletes the data of a node that has exited: inject kill or stop before"
                ended |= step.inject.fault in {"kill", "stop"}
            elif isinstance(step, Until):
                for expression in step.until.targets():
                    check_names(expression, nodes, pins)
            elif isinstance(step, Random):
                for fault in step.random.faults:
                    for expression in fault.targets().values():
                        check_names(expression, nodes, pins)
            elif isinstance(step, Heal) and step.heal != "all" and step.heal not in names:
                yield f"{where}: heal: nothing is injected as {step.heal!r} before; say `as: {step.heal}` there"
        except ScenarioError as exc:
            yield f"{where}: {exc}"
    for name in scenario.final_read.down:
        if name not in {*names, *pins, *nodes}:
            yield f"final_read.down: {name!r} is no injection, pin or node"


def _naming(injection: Injection, names: set[str], nodes: list[str]) -> Iterator[str]:
    for name in (*([injection.name] if injection.name else []), *injection.pin):
        if name in ROLES or name in nodes:
            yield f"{name!r} is a role or a node already: choose another name"
    if injection.name in names:
        yield f"something is injected as {injection.name!r} before: choose another name"
