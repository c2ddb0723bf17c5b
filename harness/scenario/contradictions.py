"""What cannot be together in one scenario. Pure: a scenario in, a line for each contradiction out."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.core.errors import ScenarioError
from harness.core.guarantees import PROMISES
from harness.core.verdict import Standing
from harness.scenario.steps import Heal, Inject, RandomFaults, Until, unknown
from nemesis.targets import Expression, check_names, check_new_name, parts

if TYPE_CHECKING:
    from harness.scenario.model import ClusterSpec, Scenario

_KRAFT_SINCE = (3, 3)
_ZOOKEEPER_BELOW = (4, 0)
#: Always set for the topic, so that a broker's default of it would mean nothing.
_OF_THE_TOPIC = ("min.insync.replicas", "unclean.leader.election.enable")
_LOSS = {"lost", "vanished"}
_ONE_OF = "one-of "


@dataclass(frozen=True)
class Problem:
    """A line that says what to change, and where it stands in the scenario."""

    where: tuple[str | int, ...]
    says: str


def contradictions(scenario: "Scenario") -> list[Problem]:
    """Everything in ``scenario`` that cannot be, each as one clear line."""
    return [
        *_of_the_cluster(scenario.cluster),
        *_of_the_topic(scenario),
        *_of_the_watched_partition(scenario),
        *_of_the_timeline(scenario),
        *_of_the_expectation(scenario),
    ]


def _of_the_cluster(cluster: "ClusterSpec") -> Iterator[Problem]:
    kraft = cluster.metadata == "kraft"
    if not kraft and cluster.number >= _ZOOKEEPER_BELOW:
        yield Problem(
            ("cluster", "version"),
            f"Kafka {cluster.version} has no ZooKeeper mode: use 3.9.2 or earlier, or metadata: kraft",
        )
    if kraft and cluster.number < _KRAFT_SINCE:
        yield Problem(
            ("cluster", "version"),
            f"Kafka {cluster.version} is not ready for KRaft: use 3.3 or later, or metadata: zookeeper",
        )
    other = "zookeepers" if kraft else "controllers"
    if other in cluster.model_fields_set:
        yield Problem(("cluster", other), f"metadata: {cluster.metadata} has no {other}: remove the key")
    for key in _OF_THE_TOPIC:
        if key in cluster.config:
            yield Problem(("cluster", "config", key), f"{key} is set for the topic: give it as topic.{key}")


def _of_the_topic(scenario: "Scenario") -> Iterator[Problem]:
    topic, brokers = scenario.topic, scenario.cluster.brokers
    if topic.replication > brokers:
        yield Problem(
            ("topic", "replication"),
            f"replication {topic.replication} needs as many brokers, the cluster has {brokers}: "
            "lower it, or raise cluster.brokers",
        )
    if topic.min_insync_replicas > topic.replication:
        yield Problem(
            ("topic", "min.insync.replicas"),
            f"min.insync.replicas {topic.min_insync_replicas} is more than replication {topic.replication}: "
            "no write with acks: all could succeed; lower it",
        )
    for key in _OF_THE_TOPIC:
        if key in topic.config:
            yield Problem(("topic", "config", key), f"{key} has a key of its own: give it as topic.{key}")
    if topic.avoid is not None:
        yield from _of_avoiding(scenario)
    if topic.assignment is not None:
        yield from _of_the_assignment(topic.assignment, scenario)


def _of_avoiding(scenario: "Scenario") -> Iterator[Problem]:
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


def _of_the_assignment(assignment: list[list[int]], scenario: "Scenario") -> Iterator[Problem]:
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


def _of_the_watched_partition(scenario: "Scenario") -> Iterator[Problem]:
    topic = scenario.topic
    if scenario.watch_topic not in topic.names:
        yield Problem(("watch",), f"no topic {scenario.watch_topic!r}; the topics are {', '.join(topic.names[:5])}")
    if scenario.watch_partition >= topic.partitions:
        yield Problem(("watch",), f"no partition {scenario.watch_partition}: the topic has {topic.partitions}")


@dataclass
class _Known:
    """What a timeline has named so far, and which of those names are of nodes that do not run."""

    cluster: "ClusterSpec"
    injections: set[str]
    pins: set[str]
    ended: dict[str, frozenset[str]]

    @property
    def names(self) -> set[str]:
        return self.injections | self.pins

    def misnamed(self, expression: Expression) -> str | None:
        """Why the expression means nothing in this cluster at this step; None where it does."""
        try:
            check_names(expression, self.cluster.node_names, self.names)
        except ScenarioError as exc:
            return str(exc)
        groups = _groups(self.cluster)
        empty = [name for name in map(_bare, parts(expression)) if name in groups and not groups[name]]
        return f"target {empty[0]!r}: a cluster with metadata: {self.cluster.metadata} has none" if empty else None

    def misnaming(self, name: str) -> str | None:
        """Why nothing may be called that at this step; None where it may."""
        if name in self.injections:
            return f"something was injected as {name!r} before: give it another name"
        try:
            check_new_name(name, self.cluster.node_names)
        except ScenarioError as exc:
            return str(exc)
        return f"'heal: {name}' would heal all: choose another name" if name == "all" else None

    def not_ended(self, expression: Expression) -> str | None:
        """The first part of ``expression`` that is not known to have been killed or stopped."""
        ended = frozenset().union(*self.ended.values())
        groups = _groups(self.cluster)
        for part in parts(expression):
            if part not in ended and not (groups.get(part) and groups[part] <= ended):
                return part
        return None

    def remember(self, inject: Inject) -> None:
        """What later steps may refer to."""
        self.pins |= set(inject.pin)
        if inject.name is not None:
            self.injections.add(inject.name)
        kind = inject.fault.kind()
        if kind in {"kill", "stop"}:
            self.ended[inject.name or f"{kind} {len(self.ended)}"] = self._called(inject)
        elif "kill" in inject.fault.ends:
            again = self._called(inject)
            self.ended = {name: nodes - again for name, nodes in self.ended.items()}

    def _called(self, inject: Inject) -> frozenset[str]:
        """Every name that means, from now on, a node that this fault hits. A role that moves is not one."""
        groups = _groups(self.cluster)
        hit = {part for expression in inject.fault.targets().values() for part in parts(expression)}
        pinned = {role for role, expression in inject.pin.items() if set(parts(expression)) <= hit}
        fixed = {part for part in hit if part in self.names or part in self.cluster.node_names}
        members = frozenset().union(*(groups.get(part, frozenset()) for part in hit))
        return frozenset({*pinned, *fixed, *members, *([inject.name] if inject.name else [])})


def _of_the_timeline(scenario: "Scenario") -> Iterator[Problem]:
    known = _Known(scenario.cluster, set(), set(), {})
    for index, step in enumerate(scenario.timeline):
        where = ("timeline", index, step.kind)
        if isinstance(step, Inject):
            yield from _of_an_injection(step, known, where)
            known.remember(step)
        elif isinstance(step, Heal):
            if step.name != "all" and step.name not in known.injections:
                named = ", ".join(sorted(known.injections)) or "nothing (name an injection with `as:`)"
                yield Problem(where, f"nothing was injected as {step.name!r} before; named so far: {named}, or all")
            known.ended = {} if step.name == "all" else {k: v for k, v in known.ended.items() if k != step.name}
        elif isinstance(step, RandomFaults):
            for number, fault in enumerate(step.faults):
                yield from _misnamed(fault.targets(), known, (*where, "faults", number))
        elif isinstance(step, Until):
            yield from _misnamed(step.targets(), known, where)
    for name in scenario.final_read.down:
        if name not in {*known.names, *scenario.cluster.node_names}:
            yield Problem(("final_read", "down"), f"{name!r} is no node, and no step named anything so")


def _of_an_injection(step: Inject, known: _Known, where: tuple[str | int, ...]) -> Iterator[Problem]:
    for role, expression in step.pin.items():
        for says in filter(None, (known.misnaming(role), known.misnamed(expression))):
            yield Problem((*where, "pin", role), says)
    if step.name is not None and (says := known.misnaming(step.name)):
        yield Problem((*where, "as"), says)
    here = _Known(known.cluster, known.injections, known.pins | set(step.pin), known.ended)
    wrong = list(_misnamed(step.fault.targets(), here, where))
    yield from wrong
    if step.fault.kind() == "wipe" and not wrong:
        for target, expression in step.fault.targets().items():
            if part := here.not_ended(expression):
                yield Problem(
                    (*where, target),
                    f"{part!r} was not killed or stopped before: only a stopped node can be wiped; "
                    "inject kill or stop `as:` a name, and wipe that name",
                )


def _misnamed(targets: Mapping[str, Expression], known: _Known, where: tuple[str | int, ...]) -> Iterator[Problem]:
    for key, expression in targets.items():
        if says := known.misnamed(expression):
            yield Problem((*where, key), says)


def _of_the_expectation(scenario: "Scenario") -> Iterator[Problem]:
    expect = scenario.expect
    for key, names in (("anomalies", expect.anomalies), ("allowed", expect.allowed)):
        for name in names:
            if name not in PROMISES:
                yield Problem(("expect", key), unknown("anomaly", name, PROMISES))
    permitted = expect.standing is Standing.PERMITTED and _LOSS & set(expect.anomalies)
    wiped = any(fault == "wipe" for fault in _kinds(scenario))
    if permitted and scenario.workload.acks == "all" and not wiped and not scenario.topic.unclean_election:
        yield Problem(
            ("expect",),
            "with acks: all and no disk wiped, loss is permitted by unclean election alone: "
            "give topic.unclean.leader.election.enable: true, or expect something else",
        )


def _kinds(scenario: "Scenario") -> Iterable[str]:
    return (step.fault.kind() for step in scenario.timeline if isinstance(step, Inject))


def _groups(cluster: "ClusterSpec") -> dict[str, frozenset[str]]:
    """The roles that are groups by the cluster's shape."""
    return {
        "brokers": frozenset(cluster.broker_names),
        "controllers": frozenset(cluster.controller_names),
        "zookeeper": frozenset(cluster.zookeeper_names),
        "all": frozenset(cluster.node_names),
    }


def _bare(part: str) -> str:
    while part.startswith(_ONE_OF):
        part = part.removeprefix(_ONE_OF).strip()
    return part
