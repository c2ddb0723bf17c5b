"""What cannot be together is refused in one line that says what to change; its nearest legal twin is not."""

from collections.abc import Callable
from random import Random

import pytest

from harness.cluster.spec import ClusterSpec
from harness.core.topology import Node, Role, Topology, View
from harness.scenario.kafka_settings import RESERVED
from harness.scenario.model import Scenario
from harness.scenario.timeline_names import groups_of
from nemesis.targets import resolve

Made = Callable[..., Scenario]
Refused = Callable[..., list[str]]

PARTITION = "{inject: {fault: partition, from: %s, to: %s}}"
SLOW = "inject: {fault: slow, delay: 1s, target: %s}"
ZOOKEEPER = "cluster={version: 3.9.2, metadata: zookeeper, brokers: 4}"

#: What is refused: the changes that make it so, and what the line says.
REFUSED: dict[str, tuple[tuple[str, ...], str]] = {
    "more replicas than brokers": (
        ("topic.replication=4",),
        "topic.replication: replication 4 needs as many brokers, the cluster has 3",
    ),
    "a minimum ISR above the replicas": (("topic.min.insync.replicas=4",), "is more than replication 3"),
    "ZooKeeper with 4.x": (
        ("cluster={version: 4.0.0, metadata: zookeeper}",),
        "cluster.version: Kafka 4.0.0 has no ZooKeeper mode: use 3.9.2 or earlier, or metadata: kraft",
    ),
    "KRaft before 3.3": (("cluster.version=3.2.3",), "Kafka 3.2.3 is not ready for KRaft"),
    "two controllers": (("cluster.controllers=2",), "controllers is 1 or 3, not 2"),
    "controllers in ZooKeeper mode": (
        ("cluster={version: 3.9.2, metadata: zookeeper, controllers: 1}",),
        "metadata: zookeeper has no controllers",
    ),
    "ZooKeeper nodes in KRaft": (("cluster.zookeepers=1",), "metadata: kraft has no zookeepers"),
    "four ZooKeeper nodes": (
        ("cluster={version: 3.9.2, metadata: zookeeper, zookeepers: 4}",),
        "zookeepers is 1 or 3, not 4",
    ),
    "no version": (("cluster.version=newest",), "cluster.version: 'newest' is no Kafka version such as 4.3.1"),
    "half a version": (("cluster.version=4",), "cluster.version: 4 is no Kafka version"),
    "a version that YAML reads as a number": (("cluster.version=3.10",), "cluster.version: 3.1 is no Kafka version"),
    "no /24": (("cluster.subnet=10.1.0.0/16",), "cluster.subnet: '10.1.0.0/16' is no IPv4 /24"),
    "no subnet": (("cluster.subnet=here",), "'here' is no IPv4 /24"),
    "this machine's own subnet": (("cluster.subnet=127.0.0.0/24",), "'127.0.0.0/24' is not private"),
    "somebody's subnet": (("cluster.subnet=8.8.8.0/24",), "'8.8.8.0/24' is not private"),
    "a topic setting for brokers": (
        ("cluster.config={min.insync.replicas: 2}",),
        "write it as topic.min.insync.replicas",
    ),
    "a topic setting in two places": (
        ("topic.config={unclean.leader.election.enable: true}",),
        "write it as topic.unclean.leader.election.enable",
    ),
    "acknowledgements that are required and never come": (
        ("workload.acks=0", "expect={}"),
        "with acks: 0 nothing is ever acknowledged: require 0, or use acks: 1 or all",
    ),
    "acknowledgements that are awaited and never come": (
        ("workload.acks=0", "expect={}", "requires={acknowledged: 0}", "timeline.1.until={acknowledged: 9}"),
        "timeline.1.until: with acks: 0 nothing is ever acknowledged",
    ),
    "a leader that is to change and not to": (
        ("requires={leader: unchanged}",),
        "timeline.1.until: the step awaits another leader, but requires.leader is unchanged: remove one of them",
    ),
    "a name that an unnamed injection has": (
        ("timeline.0.inject.as=null", "timeline.2.inject.as=kill-1", "timeline.2.inject.fault=kill"),
        "an earlier injection without a name gets the name 'kill-1': choose another name",
    ),
    "a name that a drawn injection may have": (
        (
            "timeline.1={random: {faults: [{fault: pause, target: b1}]}}",
            "timeline.2={inject: {fault: kill, target: b1, as: pause-3}}",
        ),
        "an earlier injection without a name gets the name 'pause-3'",
    ),
    "an ISR with nodes that are no brokers": (
        ("timeline.1.until={isr: all}",),
        "timeline.1.until.isr: c1: not a broker, so never in an ISR: name only brokers",
    ),
    "an ISR of more brokers than replicas": (
        ("cluster.brokers=4", "timeline.1.until={isr: brokers}"),
        "4 brokers are named, and with replication 3 no ISR has so many",
    ),
    "followers that lead": (("timeline.1.until.leader=followers",), "followers: none of them can lead: name brokers"),
    "controllers that lead": (("timeline.1.until.leader=[c1, one-of followers]",), "none of them can lead"),
    "one of Kafka's own topics": (("topic.name=__consumer_offsets",), "topics that begin with __ are Kafka's own"),
    "a topic called ..": (("topic.name=..",), "'..' is not a valid name for a topic"),
    "topics with too long a name": (("topic.count=11", f"topic.name={'t' * 247}"), "at most 249 characters"),
    "permitted loss without unclean election": (
        ("topic.unclean.leader.election.enable=null", "timeline=[wait: 1s]"),
        "expect: with acks: all and no disk wiped, lost is permitted by unclean election alone",
    ),
    "permitted loss of what was read, by acks: 1": (
        (
            "topic.unclean.leader.election.enable=null",
            "timeline=[wait: 1s]",
            "workload.acks=1",
            "expect.anomalies=[vanished]",
        ),
        "expect: with acks: 1 and no disk wiped, vanished is permitted by unclean election alone",
    ),
    "an invalid verdict of nothing": (
        ("expect={verdict: invalid}",),
        "expect.verdict: invalid needs anomalies: name them in expect.anomalies, or in expect.allowed",
    ),
    "one invalid verdict of two, of nothing": (
        ("expect={verdict: [valid, invalid]}",),
        "name them in expect.anomalies",
    ),
    "an unknown verdict of nothing": (
        ("expect={verdict: [valid, unknown]}",),
        "expect.verdict: unknown needs preconditions that are not met: name them in expect.not_met",
    ),
    "a valid verdict with an anomaly": (
        ("expect={verdict: valid, anomalies: [duplicated]}",),
        "expect.verdict: with duplicated the verdict is invalid: add invalid, or remove duplicated",
    ),
    "a valid verdict with one that is allowed": (("expect={allowed: [lost]}",), "with lost the verdict is invalid"),
    "an unknown verdict with an anomaly": (
        ("expect={verdict: unknown, not_met: [faults took effect], anomalies: [lost]}",),
        "with lost the verdict is invalid",
    ),
    "a valid verdict with what is not met": (
        ("expect={not_met: [faults took effect]}",),
        "if faults took effect is not met the verdict is not valid: add unknown, or remove it",
    ),
    "a precondition that there is not": (
        ("expect={verdict: unknown, not_met: [faults took effectten]}",),
        "expect.not_met: no precondition is called 'faults took effectten'; did you mean 'faults took effect'?",
    ),
    "limits where nothing is acknowledged": (
        ("workload.acks=0", "limits={recovery: 9s}", "expect={}"),
        "limits: with acks: 0 nothing is ever acknowledged: remove limits, or use acks: 1 or all",
    ),
    "an anomaly that nobody looks for": (("expect.anomalies=[losst]",), "did you mean 'lost'?"),
    "an assignment for fewer partitions": (
        ("topic.assignment=[[1, 2, 3]]", "topic.partitions=2"),
        "1 partitions are assigned, the topic has 2",
    ),
    "an assignment to fewer replicas": (("topic.assignment=[[1, 2]]",), "[1, 2] are not 3 different brokers"),
    "an assignment to one broker twice": (("topic.assignment=[[1, 2, 2]]",), "[1, 2, 2] are not 3 different brokers"),
    "replicas that nobody may read": (
        ("cluster={version: 2.3.1, metadata: zookeeper}", "final_read.replicas=true"),
        "final_read.replicas: Kafka 2.3.1 cannot read from a follower (KIP-392): use 2.4 or later",
    ),
    "replicas of one": (("topic.replication=1", "final_read.replicas=true"), "with replication 1 there is no follower"),
    "an assignment to nobody": (("topic.assignment=[[1, 2, 4]]",), "there is no broker 4: they are 1 to 3"),
    "avoiding the controller in KRaft": (("topic.avoid=controller",), "in KRaft no broker is the controller"),
    "avoiding the controller with no broker to spare": (
        ("cluster={version: 3.9.2, metadata: zookeeper, brokers: 3}", "topic.avoid=controller"),
        "raise cluster.brokers",
    ),
    "avoiding and assigning": (
        (ZOOKEEPER, "topic.avoid=controller", "topic.assignment=[[1, 2, 3]]"),
        "assignment says where replicas are: remove avoid",
    ),
    "watching another topic": (("watch=other/0",), "watch: no topic 'other'; the topics are trial"),
    "watching another partition": (("watch=1",), "watch: no partition 1: the topic has 1"),
    "healing what nobody injected": (("timeline.3.heal=deed",), "no earlier injection is called 'deed'"),
    "a target that nobody named": (("timeline.0.inject.target=leadr",), "did you mean 'leader'?"),
    "a target that is named later": (("timeline.0.inject.target=dead",), "target 'dead' is no role"),
    "a node that is not there": (("timeline.0.inject.target=b4",), "target 'b4' is no role, node or pinned name"),
    "ZooKeeper's nodes in KRaft": (
        ("timeline.0.inject.target=zookeeper",),
        "target 'zookeeper': a cluster with metadata: kraft has none",
    ),
    "one of nobody": (("timeline.0.inject.target=one-of zookeeper",), "target 'zookeeper': a cluster"),
    "a pin of nobody": (("timeline.0.inject.pin={old_leader: boss}",), "target 'boss' is no role"),
    "a pin that hides a role": (("timeline.0.inject.pin.followers=leader",), "'followers' is a role or a node"),
    "a name that hides a node": (("timeline.0.inject.as=b1",), "'b1' is a role or a node"),
    "a name given twice": (
        ("timeline=[inject: {fault: kill, target: b1, as: x}, inject: {fault: kill, target: b2, as: x}]",),
        "an earlier injection is called 'x'",
    ),
    "awaiting a leader that nobody named": (("timeline.1.until.leader=old",), "target 'old' is no role"),
    "awaiting an ISR that nobody named": (("timeline.1.until={isr: [b1, bx]}",), "target 'bx' is no role"),
    "random faults on nobody": (
        ("timeline=[random: {faults: [{fault: kill, target: x}]}]", "expect={}"),
        "target 'x' is no role",
    ),
    "wiping a node that runs": (("timeline.2.inject.target=b2",), "'b2' has not ended"),
    "wiping whoever leads after the kill": (("timeline.2.inject.target=leader",), "'leader' has not ended"),
    "wiping what was healed": (
        ("timeline.1={heal: dead}",),
        "'old_leader' has not ended",
    ),
    "wiping what was started": (
        ("timeline.1={inject: {fault: start, target: old_leader}}",),
        "'old_leader' has not ended",
    ),
    "leaving nobody down": (("final_read.down=[b9]",), "final_read.down: 'b9' is neither a node"),
    "idempotence with acks=1": (
        ("workload={acks: 1, enable.idempotence: true}",),
        "workload: enable.idempotence needs acks: all",
    ),
}

REFUSED |= {
    "unclean election in KRaft before it elects so": (
        ("cluster.version=3.8.1",),
        "topic.unclean.leader.election.enable: KRaft in Kafka 3.8.1 makes no unclean election by itself (KAFKA-12670): "
        "use 3.9 or later, metadata: zookeeper, or a step `elect: unclean`",
    ),
    "an election by hand before there was one": (
        ("cluster={version: 2.3.1, metadata: zookeeper}", "timeline.1={elect: unclean}"),
        "timeline.1: Kafka 2.3.1 cannot elect when asked (KIP-460 came with 2.4)",
    ),
    "another election": (("timeline.1={elect: preferred}",), "timeline.1.elect: should be 'unclean'"),
    "a name that elections have": (
        ("timeline.0.inject.as=elect-1",),
        "'elect-1' is the name of an election by hand",
    ),
    "a version that makes no topics": (
        ("cluster={version: 0.10.0.1, metadata: zookeeper}",),
        "cluster.version: Kafka 0.10.0.1 makes no topic when a client asks (KIP-4 came with 0.10.1)",
    ),
    "a delay that tc does not take": (
        (f"timeline.1={{{SLOW % 'b2'}}}", "timeline.1.inject.delay=275s"),
        "timeline.1.inject.delay: should be less than or equal to 274",
    ),
    "a compacted topic": (("topic.config={cleanup.policy: compact}",), "cleanup.policy: compact deletes a record when"),
    "a topic compacted and deleted": (
        ('topic.config={cleanup.policy: "compact,delete"}',),
        "topic.config.cleanup.policy: cleanup.policy: compact,delete deletes a record when its key has a newer one",
    ),
    "brokers that compact": (("cluster.config={log.cleanup.policy: compact}",), "cluster.config.log.cleanup.policy: "),
    "deleting by age within the run": (
        ("topic.config={retention.ms: 60000}",),
        "topic.config.retention.ms: retention.ms: 60000 may delete records while the run lasts (up to 620s)",
    ),
    "brokers that delete by age": (
        ("cluster.config={log.retention.minutes: 5}",),
        "log.retention.minutes: 5 may",
    ),
    "deleting by size": (
        ("topic.config={retention.bytes: 1000000}", "workload.rate=100"),
        "retention.bytes: 1000000 may delete records while the run lasts (up to 11904000 bytes are written)",
    ),
    "deleting by size, nobody knows when": (
        ("cluster.config={log.retention.bytes: 1000000000}",),
        "without workload.rate nobody knows how much is written",
    ),
    **{
        f"a setting that the harness needs, {key}": (
            (f"cluster.config={{{key}: x}}",),
            f"cluster.config.{key}: {key} is set by the harness",
        )
        for key in sorted(RESERVED)
    },
    "a client setting that is none": (
        ("workload.config={fetch.max.byte: 1}",),
        "no setting of librdkafka is called 'fetch.max.byte'; did you mean 'fetch.max.bytes'?",
    ),
    "a client setting that is ours": (
        ("workload.config={bootstrap.servers: here}",),
        "workload.config.bootstrap.servers: bootstrap.servers is set by the harness, which relies on it: remove it",
    ),
    "a client setting that we set otherwise": (
        ("workload.config={socket.timeout.ms: 1000}",),
        "socket.timeout.ms is set by the harness (to 10000), which relies on it",
    ),
    "a client setting with a key of its own": (
        ("workload.config={linger.ms: 10}",),
        "workload.config.linger.ms: linger.ms has a key of its own: write it as workload.linger.ms",
    ),
    "its other name": (
        ("workload.config={message.send.max.retries: 1}",),
        "message.send.max.retries has a key of its own: write it as workload.retries",
    ),
    "a transactional.id that nobody uses": (("workload.config={transactional.id: x}",), "transactional.id is set by"),
    "a client setting out of range": (
        ("workload.config={topic.metadata.refresh.fast.cnt: 99999}",),
        'librdkafka refuses it: Configuration property "topic.metadata.refresh.fast.cnt" value 99999 is',
    ),
    "a setting with a space": (
        ('cluster.config={" log.dirs": /tmp}',),
        "' log.dirs' is not a valid name for a Kafka setting",
    ),
    "a setting of the topic with a colon": (
        ('topic.config={"a:b": 1}',),
        "'a:b' is not a valid name for a Kafka setting",
    ),
    "a plane where there is one listener": (
        ("cluster={version: 0.10.1.1, metadata: zookeeper}", f"timeline.1={PARTITION % ('b1', 'b2, plane: client')}"),
        "timeline.1.inject.plane: Kafka 0.10.1.1 has one listener for all",
    ),
    "replication's plane while the controller shares it": (
        ("cluster={version: 2.1.1, metadata: zookeeper}", f"timeline.1={PARTITION % ('b1', 'b2, plane: replication')}"),
        "in Kafka 2.1.1 controller and replication share a listener",
    ),
    "the controller's plane while it is replication's": (
        (
            "cluster={version: 0.10.2.2, metadata: zookeeper}",
            "timeline=[random: {faults: [{fault: isolate, target: leader, plane: controller}]}]",
            "expect={}",
        ),
        "timeline.0.random.faults.0.plane: in Kafka 0.10.2.2 controller and replication share a listener",
    ),
    "killing the clients": (("timeline.0.inject.target=clients",), "`kill` of the clients hits no node: name one"),
    "drawing a fault of the clients": (
        ("timeline=[random: {faults: [{fault: pause, target: one-of clients}]}]", "expect={}"),
        "`pause` of the clients hits no node",
    ),
    "a cut of nobody from nobody": (
        (f"timeline.1={PARTITION % ('leader', 'leader')}",),
        "timeline.1.inject: from and to are the same node, leader: there is nothing between them",
    ),
    "a drawn cut of a node from itself": (
        ("timeline=[random: {faults: [{fault: partition, from: b1, to: [b1]}]}]", "expect={}"),
        "from and to are the same node, b1",
    ),
    "a schedule in which nothing fits": (
        ("timeline=[random: {faults: [{fault: kill, target: b1}], every: 10s, for: 9s}]", "expect={}"),
        "random: nothing fits: for (9 s) must be at least every (10 s)",
    ),
    "two queues on one node": (
        (f"timeline=[{SLOW % 'b1, as: late'}, {SLOW % '[b2, b1]'}]", "expect={}"),
        "timeline.1.inject: the same traffic is shaped by late already",
    ),
    "one that duplicates beside another queue": (
        (
            "timeline=[inject: {fault: slow, target: b1, delay: 1s, plane: client, as: late},"
            " inject: {fault: duplicate, target: [b2, b1], share: 5%, plane: replication}]",
            "expect={}",
        ),
        "timeline.1.inject: a netem that duplicates is alone on its node, and traffic is shaped by late already",
    ),
    "two queues, whoever leads": ((f"timeline=[{SLOW % 'brokers'}, {SLOW % 'leader'}]", "expect={}"), "`slow` already"),
    "two queues, whoever is drawn": (
        (f"timeline=[{SLOW % 'one-of brokers'}, {SLOW % 'all'}]", "expect={}"),
        "the same traffic is shaped by `slow` already",
    ),
}

#: The nearest thing that is legal.
LEGAL: dict[str, tuple[str, ...]] = {
    "as many replicas as brokers": ("cluster.brokers=4", "topic.replication=4"),
    "a minimum ISR of all replicas": ("topic.min.insync.replicas=3",),
    "the last ZooKeeper": ("cluster={version: 3.9.2, metadata: zookeeper}",),
    "the first KRaft": ("cluster.version=3.3.0", "topic.unclean.leader.election.enable=false"),
    "the first KRaft that elects uncleanly": ("cluster.version=3.9.0",),
    "an unclean election by hand in an old KRaft": ("cluster.version=3.8.1", "timeline.1={elect: unclean}"),
    "unclean election in an old ZooKeeper mode": ("cluster={version: 2.8.2, metadata: zookeeper}",),
    "the first election by hand": (
        "cluster={version: 2.4.0, metadata: zookeeper}",
        "timeline.1={elect: unclean}",
    ),
    "permitted loss by an election by hand": (
        "topic.unclean.leader.election.enable=null",
        "timeline=[elect: unclean]",
    ),
    "the first topics made on request": ("cluster={version: 0.10.1.0, metadata: zookeeper}",),
    "deleting by age after the run": ("topic.config={retention.ms: 3600000}",),
    "deleting by nothing": ("topic.config={retention.ms: -1, retention.bytes: -1, cleanup.policy: delete}",),
    "deleting by size above all that is written": ("topic.config={retention.bytes: 1000000000}", "workload.rate=100"),
    "a topic that keeps what brokers would delete": (
        "cluster.config={log.retention.minutes: 1, log.cleanup.policy: compact}",
        "topic.config={retention.ms: -1, cleanup.policy: delete}",
    ),
    "any other client setting": ("workload.config={debug: msg, fetch.max.bytes: 60000000, client.rack: a}",),
    "a default of librdkafka that the harness states": ("workload.config={statistics.interval.ms: 500}",),
    "a client setting where nobody reads": ("workload={consumers: 0, config: {fetch.max.bytes: 60000000}}",),
    "a week for brokers": ("cluster.config={log.retention.hours: 168}",),
    "a key near one that is reserved": ("cluster.config={listener.name.client.max.connections: 10}",),
    "the clients' plane before the controller had one": (
        "cluster={version: 2.1.1, metadata: zookeeper}",
        f"timeline.1={PARTITION % ('b1', 'b2, plane: client')}",
    ),
    "the controller's plane": (
        "cluster={version: 2.2.0, metadata: zookeeper}",
        f"timeline.1={PARTITION % ('b1', 'b2, plane: controller')}",
    ),
    "no plane where there is one listener": (
        "cluster={version: 0.10.1.1, metadata: zookeeper}",
        f"timeline.1={PARTITION % ('b1', 'b2')}",
    ),
    "clients among those hit": ("timeline.0.inject.target=[clients, leader]",),
    "a cut from the clients": (f"timeline.1={PARTITION % ('clients', 'b2')}",),
    "a cut among followers": (f"timeline.1={PARTITION % ('followers', 'followers')}",),
    "a queue after another was healed": (
        f"timeline=[{SLOW % 'brokers, as: a'}, heal: a, {SLOW % 'leader, as: b'}]",
        "expect={}",
    ),
    "queues of two planes": (
        f"timeline=[{SLOW % 'b1, plane: client'}, {SLOW % 'b1, plane: replication'}]",
        "expect={}",
    ),
    "queues of whoever leads then": (f"timeline=[{SLOW % 'leader'}, {SLOW % 'leader'}]", "expect={}"),
    "the longest delay": (f"timeline.1={{{SLOW % 'b2'}}}", "timeline.1.inject.delay=274s"),
    "queues of two nodes": (f"timeline=[{SLOW % 'b1'}, {SLOW % 'b2'}]", "expect={}"),
    "the first replicas that may be read": (
        "cluster={version: 2.4.0, metadata: zookeeper}",
        "final_read.replicas=true",
    ),
    "three controllers": ("cluster.controllers=3",),
    "three ZooKeeper nodes": ("cluster={version: 3.9.2, metadata: zookeeper, zookeepers: 3}",),
    "a /24": ("cluster.subnet=10.1.7.0/24",),
    "any broker setting": ("cluster.config={num.io.threads: 2}",),
    "any topic setting": ("topic.config={max.message.bytes: 1000}",),
    "a violation without unclean election": (
        "topic.unclean.leader.election.enable=false",
        "timeline=[wait: 1s]",
        "expect.standing=violation",
    ),
    "permitted loss by acks=1": (
        "topic.unclean.leader.election.enable=null",
        "timeline=[wait: 1s]",
        "workload.acks=1",
    ),
    "an unknown verdict of what is named": ("expect={verdict: unknown, not_met: [timeline followed]}",),
    "a valid verdict, or an anomaly": ("expect={verdict: [valid, invalid], allowed: [lost]}",),
    "an anomaly, and what is not met": ("expect={verdict: invalid, anomalies: [lost], not_met: [leader changed]}",),
    "limits where the leader acknowledges": ("workload.acks=1", "limits={unavailable: 9s}"),
    "nothing acknowledged, and no limits": ("workload.acks=0", "limits={}", "expect={}", "requires={acknowledged: 0}"),
    "too little acknowledged, as expected": (
        "workload.acks=0",
        "expect={verdict: unknown, not_met: [enough acknowledged]}",
    ),
    "a leader that is to change": ("requires={leader: changed}",),
    "a leader that is not to change, and nobody awaits it": ("requires={leader: unchanged}", "timeline.1={wait: 1s}"),
    "permitted loss by a wiped disk": ("topic.unclean.leader.election.enable=null",),
    "an assignment": ("topic.assignment=[[3, 1, 2]]",),
    "avoiding the controller": (ZOOKEEPER, "topic.avoid=controller"),
    "the watched topic among many": ("topic.count=3", "topic.partitions=2", "watch=trial-2/1"),
    "healing by name": ("timeline.3.heal=dead",),
    "a node": ("timeline.0.inject.target=[b1, b2]", "timeline.2.inject.target=b2"),
    "one of a role": ("timeline.0.inject.target=one-of followers", "timeline.2.inject.target=dead"),
    "ZooKeeper's nodes in ZooKeeper mode": (ZOOKEEPER, "timeline.1={inject: {fault: pause, target: z1}}"),
    "wiping by the injection's name": ("timeline.2.inject.target=dead",),
    "wiping all that were killed": ("timeline.0.inject.target=brokers", "timeline.2.inject.target=[b1, b2]"),
    "wiping a group that was stopped": (
        "timeline.0={inject: {fault: stop, target: brokers}}",
        "timeline.2.inject.target=brokers",
    ),
    "a name like that of another kind": (
        "timeline.0.inject.as=null",
        "timeline.2={inject: {fault: pause, target: b2, as: pause-1}}",
    ),
    "a name like the kind's alone": ("timeline.0.inject.as=kill-7", "timeline.2={inject: {fault: kill, target: b2}}"),
    "a known leader": ("timeline.1.until.leader=[b1, b2]",),
    "a leader among others": ("timeline.1.until.leader=[followers, c1, b2]",),
    "a pinned leader": ("timeline.1.until.leader=old_leader",),
    "an ISR of all brokers": ("timeline.1.until={isr: brokers}",),
    "an ISR of followers": ("timeline.1.until={isr: followers}",),
    "the longest name of a topic": (f"topic.name={'t' * 249}",),
    "a topic called ...": ("topic.name='...'",),
    "nobody leading": ("timeline.1.until.leader=none",),
    "leaving a pin down": ("final_read.down=[old_leader]",),
    "leaving an injection": ("final_read.down=[dead]",),
    "leaving a node down": ("final_read.down=[b1]",),
}


@pytest.mark.parametrize("case", REFUSED)
def test_it_is_refused_in_one_line(refused: Refused, case: str) -> None:
    changes, says = REFUSED[case]
    lines = refused(*changes)
    assert [line for line in lines if says in line] != [], lines


@pytest.mark.parametrize("case", LEGAL)
def test_its_nearest_legal_twin_is_taken(made: Made, case: str) -> None:
    assert made(*LEGAL[case]).name == "good"


def test_every_contradiction_is_reported_not_just_the_first(refused: Refused) -> None:
    lines = refused("topic.replication=4", "topic.min.insync.replicas=5", "timeline.3.heal=deed")
    assert [line.split(": ")[0] for line in lines] == [
        "--set topic.replication",
        "--set topic.min.insync.replicas",
        "--set timeline.3.heal",
    ]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (["timeline.0={replace: {producer: 1}}", "timeline.2={wait: 1s}"], "only a transactional producer is replaced"),
        (
            [
                "workload={kind: transactions, producers: 2}",
                "timeline.0={replace: {producer: 3}}",
                "timeline.2={wait: 1s}",
            ],
            "there is no producer 3: they are 1 to 2",
        ),
        (
            ["workload={kind: transactions}", f"timeline={[{'replace': {'producer': 1}}] * 256}"],
            "producer 1 is replaced 256 times: it may be 255 times",
        ),
        (
            ["timeline.0.inject.target=coordinator", "timeline.2={wait: 1s}"],
            "'coordinator': only transactions have one; use kind: transactions",
        ),
        (["timeline.0.inject.pin={old_leader: one-of coordinator}"], "'coordinator': only transactions have one"),
        (["workload={kind: transactions, acks: 1}"], "transactions need enable.idempotence: true"),
        (
            ["workload={kind: transactions, transaction.timeout.ms: 10000}"],
            "delivery.timeout.ms (30000) must not exceed transaction.timeout.ms (10000)",
        ),
    ],
    ids=str,
)
def test_rules_for_transactions_are_checked(changes: list[str], says: str, refused: Refused) -> None:
    assert any(says in line for line in refused(*changes)), refused(*changes)


def test_a_coordinator_is_a_target_where_there_are_transactions(made: Made) -> None:
    scenario = made("workload={kind: transactions}", "timeline.0.inject.target=[leader, coordinator]")
    assert scenario.workload.kind == "transactions"
    assert scenario.isolation_level == "read_committed"


GROUP = "workload={kind: groups, members: 2}"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (["timeline=[kill: {member: 1}]"], "timeline.0: only the members of a group come and go: use kind: groups"),
        ([GROUP, "timeline=[leave: {member: 3}]"], "there is no member 3: they are 1 to 2"),
        ([GROUP, "timeline=[join: {member: 1}]"], "member 1 is in the group: kill it before, or let it leave"),
        (
            [GROUP, "timeline=[kill: {member: 1}, join: {member: 2}, leave: {member: 1}]"],
            "timeline.2: member 1 is not in the group any more: let it join before",
        ),
        ([GROUP, "timeline=[leave: {member: 1}, kill: {member: 1}]"], "member 1 is not in the group any more"),
        (["workload={kind: groups, commit: sometimes}"], "'before-processing' or 'after-processing'"),
        (["workload={kind: groups, processing: 11s}"], "less than or equal to 10"),
    ],
    ids=str,
)
def test_members_join_and_leave_only_in_a_workload_that_has_them(
    changes: list[str], says: str, refused: Refused
) -> None:
    assert any(says in line for line in refused(*changes)), refused(*changes)


def test_a_member_may_go_and_come_again_and_again(made: Made) -> None:
    comings = "kill: {member: 1}, join: {member: 1}, leave: {member: 1}, join: {member: 1}, kill: {member: 2}"
    assert len(made(GROUP, f"timeline=[{comings}]", "expect={}").timeline) == 5


@pytest.mark.parametrize(
    "spec", [ClusterSpec(controllers=3), ClusterSpec(version="3.9.2", metadata="zookeeper", zookeepers=3)], ids=str
)
def test_a_group_of_nodes_is_the_same_before_a_run_as_in_it(spec: ClusterSpec) -> None:
    nodes = tuple(Node(name, role, number, f"10.0.0.{at}") for at, (name, role, number) in enumerate(spec.roster))
    topology = Topology(nodes, Node("clients", Role.CLIENTS, 0, "10.0.0.99"))
    known = {group: names for group, names in groups_of(spec).items() if names}
    assert known.keys() >= {"brokers", "all"}
    for group, names in known.items():
        resolved = resolve(group, View(None, (), (), None), topology, {}, Random(0))
        assert {node.name for node in resolved} == names
