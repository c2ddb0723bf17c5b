"""From started nodes to a cluster that serves: brokers registered, topics made, every partition with its full ISR."""

import time
from collections.abc import Iterable

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from harness.cluster.observer import Observer
from harness.cluster.provider import Cluster
from harness.cluster.spec import TopicSpec
from harness.cluster.wire import Wire
from harness.core.errors import ClusterError, KafkaTrialError, ScenarioError
from harness.core.topology import Node
from harness.core.waiting import wait_for

#: The longest boot. A node that dies meanwhile is noticed much earlier. (On the lab's machines, with a load of 14 on
#: two cores, brokers took 92 s.)
BOOT_SECONDS = 180.0
#: Choices. Seconds from one look at whether a node has died to the next: it costs as much as ten questions.
_LOOK_SECONDS = 1.0
#: For the controller to make a topic, and for a broker to say whom it knows: while it boots, it may not answer, and is
#: asked again.
TOPIC_SECONDS = 30.0
_KNOWN_S = 2.0

#: Errors that mean a timeout, or a wrong broker, and no refusal. (librdkafka's own errors are below 0.)
_NOT_REFUSED = frozenset(
    {
        KafkaError.UNKNOWN,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.NOT_CONTROLLER,
        KafkaError.THROTTLING_QUOTA_EXCEEDED,
    }
)


def await_registered(cluster: Cluster) -> dict[str, int]:
    """Wait until every broker knows of every broker, and return the cluster's finalized feature levels.

    Raises ClusterError with a node's last log lines as soon as one exits.
    """
    wanted = {broker.id for broker in cluster.topology.brokers}
    looked = float("-inf")

    def missing() -> list[str]:
        nonlocal looked
        # (Looking at a node costs as much as asking it ten times, and the booting nodes need the cores.)
        if time.monotonic() - looked >= _LOOK_SECONDS:
            gone = [reason for node in cluster.topology.nodes if (reason := cluster.why_dead(node))]
            if gone:
                raise ClusterError(gone[0])
            looked = time.monotonic()
        return [broker.name for broker in cluster.topology.brokers if _known_to(broker) != wanted]

    wait_for(
        missing, "every broker to be registered with every other", BOOT_SECONDS, lambda names: not names, ", ".join
    )
    with Wire(cluster.topology.brokers[0].endpoint) as wire:
        return wire.features()


def create_topics(cluster: Cluster, spec: TopicSpec) -> None:
    """Make the scenario's topics. Raises ScenarioError if Kafka refuses a setting, ClusterError if it fails."""
    admin = AdminClient({"bootstrap.servers": cluster.topology.bootstrap, "log_level": 0})
    placed = spec.assignment or _around_the_controller(cluster, spec)
    topics = [
        NewTopic(
            name,
            num_partitions=spec.partitions,
            config=spec.settings,
            **({"replica_assignment": placed} if placed else {"replication_factor": spec.replication}),
        )
        for name in spec.names
    ]
    for name, made in admin.create_topics(topics, operation_timeout=TOPIC_SECONDS).items():
        try:
            made.result(timeout=TOPIC_SECONDS)
        except KafkaException as exc:
            raise not_made(name, exc.args[0]) from exc
        except TimeoutError as exc:
            raise ClusterError(f"topic {name} was not made within {TOPIC_SECONDS:g} s") from exc


def not_made(topic: str, error: KafkaError) -> KafkaTrialError:
    """The error for a topic that was not made: its settings are wrong, or the cluster did not answer in time."""
    if error.code() < 0 or error.code() in _NOT_REFUSED:
        return ClusterError(f"topic {topic} was not made: {error.str()}")
    return ScenarioError(f"topic {topic}: Kafka refuses it ({error.str()}): see the scenario's topic")


def await_whole_isr(observer: Observer, spec: TopicSpec, within: float) -> None:
    """Wait until every partition has a leader, and all of its replicas in its ISR.

    Raises ClusterError with the partitions that do not.
    """
    wait_for(
        lambda: out_of_sync(observer, spec),
        "the full ISR of every partition",
        within,
        lambda lines: not lines,
        lambda lines: lines[0],
    )


def out_of_sync(observer: Observer, spec: TopicSpec, without: Iterable[Node] = ()) -> list[str]:
    """A line for each partition that has no leader now, or whose ISR lacks a replica that is not on a node of
    ``without``."""
    excused = {node.id for node in without}
    found = observer.partitions()
    lines = []
    for tp in ((topic, partition) for topic in spec.names for partition in range(spec.partitions)):
        sight = found.get(tp)
        name = f"{tp[0]}-{tp[1]}"
        if sight is None:
            lines.append(f"{name} reported by no broker")
        elif sight.leader < 0 or not sight.replicas or set(sight.replicas) - set(sight.isr) - excused:
            isr, replicas = (", ".join(f"b{n}" for n in some) or "none" for some in (sight.isr, sight.replicas))
            leader = f"leader b{sight.leader}" if sight.leader >= 0 else "no leader"
            lines.append(f"{name} {leader}, ISR {isr} of {replicas}")
    return lines


def _known_to(broker: Node) -> set[int]:
    try:
        with Wire(broker.endpoint, timeout=_KNOWN_S) as wire:
            return {other.node_id for other in wire.metadata([]).brokers}
    except ClusterError:
        return set()


def _around_the_controller(cluster: Cluster, spec: TopicSpec) -> list[list[int]] | None:
    """Replicas on every broker except the present controller (ZooKeeper mode: the controller is a broker)."""
    if spec.avoid is None:
        return None
    with Wire(cluster.topology.brokers[0].endpoint) as wire:
        controller = int(wire.metadata([]).controller_id)
    others = [broker.id for broker in cluster.topology.brokers if broker.id != controller]
    turns = [others[i % len(others) :] + others[: i % len(others)] for i in range(spec.partitions)]
    return [turn[: spec.replication] for turn in turns]
