"""What Kafka promises under a configuration, as data with sources.

Each anomaly names the promise that it breaks (harness.core.anomalies). ``PERMISSIONS`` are the only excuses: a row
holds if, under these settings and after what happened in the run, Kafka never promised to prevent the anomaly.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from pydantic import BaseModel, ConfigDict, Field

from harness.core.anomalies import (
    ACKNOWLEDGED_ELSEWHERE,
    BY_NAME,
    DUPLICATED,
    HANGING_TRANSACTION,
    LOST,
    MISSED,
    READ_CYCLE,
    REAL_TIME_ORDER,
    REORDERED,
    REWRITTEN_OFFSET,
    SKIPPED,
    TWO_OWNERS,
    UNSEEN,
    WENT_BACK,
    Anomaly,
    Promise,
)
from harness.core.errors import ScenarioError
from harness.core.faults import Row, evidence_of
from harness.core.sources import ISOLATION, PRODUCER, REPLICATION, SEMANTICS, TOPIC
from harness.core.verdict import Standing
from harness.core.version import Version, parse_version

#: KAFKA-12670, KIP-890, KIP-497, KAFKA-7128, KAFKA-15583: the properties of ``Configuration`` say what changed.
_KRAFT_ELECTS_UNCLEANLY_SINCE: Version = (3, 9)
_PARTITIONS_VERIFIED_SINCE: Version = (3, 6)
_CONTROLLER_DECIDES_ISR_SINCE: Version = (2, 7)
_JOINS_ISR_AFTER_TERM_BEGAN_SINCE: Version = (2, 0, 1)
_COMMITS_NOTHING_BELOW_MIN_INSYNC_SINCE: Version = (3, 7)


class Configuration(BaseModel):
    """The settings of a run that promises depend on, as run.json keeps them.

    ``grouped``: its consumers share the partitions as a group. ``commits_first``: a member commits what a poll brought
    before it processes that. ``partition_verification``: as configured; see ``verifies_partitions``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: str
    metadata: str = "kraft"
    brokers: int = 3
    replication: int = 3
    min_insync_replicas: int = 1
    unclean_election: bool = False
    acks: str = Field("all", pattern="^(0|1|all|-1)$")
    idempotence: bool = True
    retries: int = 2147483647
    max_in_flight: int = 5
    isolation_level: str = "read_uncommitted"
    grouped: bool = False
    commits_first: bool = False
    partition_verification: bool = True

    @property
    def acks_all(self) -> bool:
        """Whether an acknowledgement means that every in-sync replica has the record."""
        return self.acks in {"all", "-1"}

    @property
    def elects_uncleanly(self) -> bool:
        """Whether Kafka itself may elect a replica that is not in the ISR.

        In KRaft ``unclean.leader.election.enable`` has an effect from 3.9 on (KAFKA-12670).
        """
        return self.unclean_election and (self.metadata != "kraft" or self._has(_KRAFT_ELECTS_UNCLEANLY_SINCE))

    @property
    def tells_isr_at_once(self) -> bool:
        """Whether the controller decides each ISR, and announces it at once: in KRaft, and from 2.7 on (KIP-497).
        Before, the leader decides, and the controller announces it later."""
        return self.metadata == "kraft" or self._has(_CONTROLLER_DECIDES_ISR_SINCE)

    @property
    def joins_isr_after_term_began(self) -> bool:
        """Whether a replica that joins an ISR has all that the leader's log had when the term began: from 2.0.1 on
        (KAFKA-7128). Before, it needs to have only what is below the high watermark."""
        return self._has(_JOINS_ISR_AFTER_TERM_BEGAN_SINCE)

    @property
    def commits_alone(self) -> bool:
        """Whether a leader that is alone in the ISR commits what it writes. From 3.7 on it does not if
        min.insync.replicas is above 1 (KAFKA-15583)."""
        return self.min_insync_replicas <= 1 or not self._has(_COMMITS_NOTHING_BELOW_MIN_INSYNC_SINCE)

    @property
    def verifies_partitions(self) -> bool:
        """Whether partitions of transactions are verified: from 3.6 on, unless that is switched off (KIP-890)."""
        return self.partition_verification and self._has(_PARTITIONS_VERIFIED_SINCE)

    def _has(self, since: Version) -> bool:
        """Whether ``version`` is ``since`` or later. An unknown version (of an imported history) counts as new."""
        try:
            return parse_version(self.version) >= since
        except ScenarioError:
            return True

    @property
    def read_committed(self) -> bool:
        """Whether the final read gets no record of an open or aborted transaction."""
        return self.isolation_level == "read_committed"


@dataclass(frozen=True)
class Circumstances:
    """What happened, as far as promises depend on it: to a record that is gone, to a record that is there twice or out
    of order, or in the run.

    A record that is gone (checkers.evidence.holders): ``elected``: the election of a broker that need not have had the
    record took it. ``uncleanly``: that broker was neither in the ISR nor an eligible leader replica. ``isr_faulted``:
    all others in the ISR were under a fault then. ``by_hand``: somebody asked for that unclean election. ``emptied``:
    that broker lost its disk after it had the record. ``disks_lost``: all brokers that must have had the record lost
    their disks. ``committed``: the ISR must have had it, whatever ``acks``. ``last_replica_guarded``: eligible leader
    replicas (KIP-966) are on. ``last_known``: no replica was in sync or eligible then, and that broker was the last
    that had been. ``in_time``: the first write of a transaction that hangs may not have reached its leader after the
    transaction's end.

    A record that is there: ``elected``: another leader was elected while it was in flight. ``resent``: the producer may
    have sent it again before its acknowledgement came. ``held_back``: a copy was appended after the acknowledgement,
    and a fault may have delayed that copy. ``too_many_copies``: a record has more copies than retries allow.
    ``given_up_beside``: its producer gave up another record while it was in flight. ``came_late``: no broker
    acknowledged the record, and its request may have come late: sent again, or when nobody waited for it any more.

    A run: ``cut_off``: when a group's partition had two owners, a fault acted on the group's coordinator or its
    members. ``may_be_cut_off``: a fault acted, but perhaps on other nodes alone. ``final_read``: every log was read to
    its end when all was over. ``moved_unseen``: the group may have moved the partition between two polls,
    and the history does not show it. ``missed_by_the_living``: how many records the group missed although, between the
    commit and their processing, no member was killed or left without an answer.
    """

    elected: bool = False
    uncleanly: bool = False
    isr_faulted: bool = False
    by_hand: bool = False
    emptied: bool = False
    disks_lost: bool = False
    committed: bool = True
    last_replica_guarded: bool = False
    last_known: bool = False
    in_time: bool = False
    resent: bool = False
    held_back: bool = False
    too_many_copies: bool = False
    given_up_beside: bool = False
    came_late: bool = False
    cut_off: bool = False
    may_be_cut_off: bool = False
    final_read: bool = True
    moved_unseen: bool = False
    missed_by_the_living: int = 0


@dataclass(frozen=True)
class Permission:
    """A setting under which ``anomalies`` break no promise. ``remedy``: the change of settings that forbids them."""

    name: str
    anomalies: tuple[Anomaly, ...]
    holds: Callable[[Configuration, Circumstances], bool]
    because: str
    source: str
    remedy: str


@dataclass(frozen=True)
class Ruling:
    """The standing of an anomaly, the sentence that says why, and its source; if it is permitted, the remedy too."""

    standing: Standing
    because: str
    source: str
    remedy: str | None = None


#: In the evidence of an election asked for by hand: its type, if it may choose a replica outside the ISR.
UNCLEAN = "unclean"

_RESENT = "librdkafka, rd_kafka_handle_Produce_error (a refresh of the leader counts as no retry); KAFKA-13574"

#: What Kafka promises to a group that commits before processing, instead of MISSED's own promise.
_AT_MOST_ONCE = Promise(
    "of what a group that commits before processing has committed, each record is processed, unless the member that "
    "had it to process was killed, or never learnt that it was committed",
    SEMANTICS,
)

#: What follows from a truncated log.
_LOSS = tuple(anomaly for anomaly in BY_NAME.values() if anomaly.judged_by_record)

#: The first row that holds rules.
PERMISSIONS: tuple[Permission, ...] = (
    Permission(
        "one replica",
        _LOSS,
        lambda c, seen: c.replication == 1 and seen.disks_lost,
        "replication factor 1: the only disk that had the record was wiped",
        REPLICATION,
        "replication factor 3",
    ),
    Permission(
        "acks without replication",
        (LOST, REWRITTEN_OFFSET, ACKNOWLEDGED_ELSEWHERE, REAL_TIME_ORDER),
        lambda c, seen: not c.acks_all and not seen.committed and (_allowed(c, seen) or seen.disks_lost),
        "acks=1 (or 0): the leader acknowledges alone; what no follower has fetched is lost when another broker leads",
        f"{PRODUCER}, acks; Vanlightly 2018, How to Lose Messages on a Kafka Cluster",
        "acks=all",
    ),
    Permission(
        "unclean election, one in-sync replica",
        _LOSS,
        lambda c, seen: c.elects_uncleanly and c.min_insync_replicas == 1 and _unclean(seen),
        "min.insync.replicas=1 with unclean leader election: the ISR may shrink to the leader, "
        "and a replica that lacks what it alone acknowledged may be elected",
        f"{TOPIC}, unclean.leader.election.enable; KIP-106; Jepsen: Kafka (2013)",
        "min.insync.replicas=2, or unclean.leader.election.enable=false",
    ),
    Permission(
        "unclean election, whole ISR faulted",
        _LOSS,
        lambda c, seen: c.elects_uncleanly and _unclean(seen),
        "unclean leader election while every broker of the ISR was faulted: a replica that was not in sync may be "
        "elected",
        f"{TOPIC}, unclean.leader.election.enable; KIP-106",
        "unclean.leader.election.enable=false",
    ),
    Permission(
        "unclean election by hand",
        _LOSS,
        lambda _, seen: seen.elected and seen.by_hand and seen.isr_faulted,
        "an unclean election was asked for by hand while every broker of the ISR was faulted: a replica that was not "
        "in sync was elected, whatever unclean.leader.election.enable says",
        "KIP-460; Kafka javadoc, Admin.electLeaders, ElectionType.UNCLEAN",
        "no election of type UNCLEAN: wait for a replica of the ISR",
    ),
    Permission(
        "every disk lost",
        _LOSS,
        lambda _, seen: seen.disks_lost,
        "all disks that must have had the record were wiped: an acknowledged record need not have been on any other",
        f"{TOPIC}, min.insync.replicas; KIP-966",
        "a min.insync.replicas above the number of disks that fail at once",
    ),
    Permission(
        "last replica standing",
        _LOSS,
        lambda _, seen: (
            seen.elected and seen.emptied and not seen.uncleanly and seen.isr_faulted and not seen.last_replica_guarded
        ),
        "the last in-sync replica lost its disk and was elected all the same: the followers truncate to its empty log",
        "KIP-966, Motivation (the last replica standing)",
        "eligible leader replicas (KIP-966, eligible.leader.replicas.version=1)",
    ),
    Permission(
        "last known leader",
        _LOSS,
        lambda _, seen: seen.elected and seen.emptied and seen.uncleanly and seen.last_known,
        "the last eligible replica lost its disk and was elected all the same, as the last known leader: the followers "
        "truncate to its empty log",
        "Kafka documentation, Operations, Eligible Leader Replicas",
        "min.insync.replicas=2: a replica that leaves an ISR smaller than that remains eligible",
    ),
    Permission(
        "retries without idempotence",
        (DUPLICATED,),
        lambda c, seen: not c.idempotence and c.retries > 0 and seen.resent,
        "retries without idempotence: a write whose acknowledgement was lost is sent and appended again",
        f"{PRODUCER}, retries; KIP-98",
        "enable.idempotence=true",
    ),
    Permission(
        "sent again to another leader",
        (DUPLICATED,),
        lambda c, seen: not c.idempotence and seen.elected and seen.resent,
        "without idempotence librdkafka resends what a deposed leader refused, whatever retries says, and that leader "
        "may have appended it",
        _RESENT,
        "enable.idempotence=true",
    ),
    Permission(
        "another given up beside it",
        (DUPLICATED,),
        lambda c, seen: c.idempotence and seen.given_up_beside,
        "a record of the same batch was given up when delivery.timeout.ms was over: an idempotent producer then begins "
        "a new epoch, in which brokers do not recognise what it had written",
        "librdkafka#4953, #2188; KIP-98 (a sequence is of one producer epoch)",
        "a delivery.timeout.ms above the longest time without a leader",
    ),
    Permission(
        "no final read",
        (UNSEEN,),
        lambda _, seen: not seen.final_read,
        "no log was read to its end when all was over: those who read may not have come that far",
        "Jepsen, jepsen.tests.kafka, lost-write-cases",
        "consumers that poll every partition to its end after the last fault",
    ),
    Permission(
        "retries of several in flight",
        (REORDERED,),
        lambda c, seen: not c.idempotence and c.retries > 0 and c.max_in_flight > 1 and seen.resent,
        "retries without idempotence and with several requests in flight: one that is sent again comes after the next",
        f"{PRODUCER}, max.in.flight.requests.per.connection; KAFKA-5494",
        "enable.idempotence=true, or max.in.flight.requests.per.connection=1",
    ),
    Permission(
        "sent again to another leader, several in flight",
        (REORDERED,),
        lambda c, seen: not c.idempotence and seen.elected and c.max_in_flight > 1 and seen.resent,
        "without idempotence and with several requests in flight: what a deposed leader refused is resent, whatever "
        "retries says, and comes after the next",
        _RESENT,
        "enable.idempotence=true, or max.in.flight.requests.per.connection=1",
    ),
    Permission(
        "given up, and written late",
        (REORDERED,),
        lambda c, seen: not c.idempotence and seen.came_late,
        "without idempotence: a request that was given up may have reached the leader after the next one: sent again, "
        "or on an older connection",
        "librdkafka, Introduction, Message persistence status (POSSIBLY_PERSISTED); KIP-91",
        "enable.idempotence=true",
    ),
    Permission(
        "moved by a group",
        (SKIPPED, WENT_BACK),
        lambda _, seen: seen.moved_unseen,
        "a member reads a partition that it is assigned from the group's committed offset, which may be before or "
        "after what that member got earlier",
        "Kafka javadoc, KafkaConsumer, Offsets and Consumer Position",
        "none: record the rebalances (:rebalance-log)",
    ),
    Permission(
        "read before they are committed",
        (READ_CYCLE,),
        lambda c, _: not c.read_committed,
        "isolation.level=read_uncommitted: records of a transaction are delivered before it is committed, so that two "
        "transactions can get each other's",
        ISOLATION,
        "isolation.level=read_committed",
    ),
    Permission(
        "partitions of transactions not verified",
        (HANGING_TRANSACTION,),
        lambda c, seen: not c.verifies_partitions and not seen.in_time,
        "partitions of transactions are not verified (before 3.6, or switched off): a write that reaches its leader "
        "after the end of its transaction begins another there, which no coordinator knows of and nobody ends",
        "KIP-890; KAFKA-14402; Kafka documentation, broker configuration, transaction.partition.verification.enable",
        "transaction.partition.verification.enable=true, the default from 3.6 on",
    ),
    Permission(
        "commit before processing",
        (MISSED,),
        lambda c, seen: c.commits_first and seen.missed_by_the_living == 0,
        "commit before processing (at-most-once): what a member had committed and not processed yet when it was "
        "killed, or had asked to commit without an answer while it owned the partition, is processed by nobody",
        SEMANTICS,
        "commit after processing",
    ),
    Permission(
        "a member cut off from its coordinator",
        (TWO_OWNERS,),
        lambda c, seen: c.grouped and seen.cut_off,
        "a group that has not heard from a member for a session gives its partitions away; a member that a cut kept "
        "from its coordinator may learn only later that its session is over",
        "Kafka documentation, consumer configuration, session.timeout.ms; KIP-62",
        "none: fence what a member does with its records, by transactions or by the group's generation",
    ),
)


@dataclass(frozen=True)
class _Doubt:
    """A circumstance under which nobody knows whether another one holds."""

    circumstance: str
    then: dict[str, bool]
    says: str


_DOUBTS = (
    _Doubt("moved_unseen", {}, "nobody knows whether the group moved the partition in between"),
    _Doubt(
        "held_back", {"resent": True}, "nobody knows whether a fault held a copy back until another was acknowledged"
    ),
    _Doubt(
        "too_many_copies",
        {"resent": True},
        "nobody knows whether a producer sent a record more often than retries allows",
    ),
    _Doubt(
        "may_be_cut_off",
        {"cut_off": True},
        "nobody knows whether a fault kept the answers of the group's coordinator from its members",
    ),
)


def standing(anomaly: Anomaly, configuration: Configuration, *possible: Circumstances) -> Ruling:
    """Whether a configuration permits ``anomaly`` as it happened. If no row of PERMISSIONS holds, it is a violation.

    ``possible``: the ways in which it may have happened. It is permitted if all of them are, undecided if only some.
    """
    doubts = [doubt for doubt in _DOUBTS if any(getattr(happened, doubt.circumstance) for happened in possible)]
    possible = (
        *possible,
        *(replace(one, **doubt.then) for doubt in doubts for one in possible if getattr(one, doubt.circumstance)),
    )
    rows = [_permission(anomaly, configuration, happened) for happened in possible]
    held = [row for row in rows if row is not None]
    if held and len(held) == len(rows):
        return Ruling(Standing.PERMITTED, held[0].because, held[0].source, held[0].remedy)
    if held and doubts:
        return undecided(held[0], doubts[0].says)
    if held:
        return undecided(held[0])
    return violation(anomaly, configuration)


def undecided(row: Permission, why: str = "nobody knows whether every fault acted") -> Ruling:
    """The ruling if a row permits the anomaly under a condition, and nobody knows whether it holds."""
    return Ruling(Standing.UNDECIDED, f"{why}; if it did, this is permitted: {row.because}", row.source, row.remedy)


def violation(anomaly: Anomaly, configuration: Configuration) -> Ruling:
    """Kafka broke a promise. Raises ValueError if the anomaly has none."""
    at_most_once = anomaly is MISSED and configuration.commits_first
    promise = _AT_MOST_ONCE if at_most_once else anomaly.promise
    if promise is None:
        raise ValueError(f"{anomaly.name} breaks no promise, but the scenario's limit")
    return Ruling(Standing.VIOLATION, f"Kafka promises: {promise.says}", promise.source)


def _permission(anomaly: Anomaly, configuration: Configuration, happened: Circumstances) -> Permission | None:
    held = (row for row in PERMISSIONS if anomaly in row.anomalies and row.holds(configuration, happened))
    return next(held, None)


def could_permit(anomaly: Anomaly, configuration: Configuration, wiped: bool, by_hand: bool) -> bool:
    """Whether the settings permit a loss after the worst that can happen. ``wiped``: disks are wiped. ``by_hand``: an
    unclean election is asked for."""
    worst = Circumstances(
        elected=True,
        isr_faulted=True,
        by_hand=by_hand,
        emptied=wiped,
        disks_lost=wiped,
        last_known=wiped,
        committed=False,
    )
    ways = (replace(worst, uncleanly=uncleanly) for uncleanly in (True, False))
    return any(_permission(anomaly, configuration, happened) is not None for happened in ways)


def _allowed(configuration: Configuration, seen: Circumstances) -> bool:
    """Whether the settings allow the election that took the record. A clean one always; an unclean one if Kafka may
    hold it by itself, or if somebody asked for it while all others of the ISR were under a fault."""
    by_hand = seen.by_hand and seen.isr_faulted
    return seen.elected and (not seen.uncleanly or configuration.elects_uncleanly or by_hand)


def _unclean(seen: Circumstances) -> bool:
    return seen.elected and seen.uncleanly and seen.isr_faulted


def asked_by_hand(row: Row, of: tuple[str, int]) -> bool:
    """Whether a row of the table ``faults`` is an unclean election of this partition, asked for by hand."""
    seen = evidence_of(row)
    return seen.get("election") == UNCLEAN and (seen.get("topic"), seen.get("partition")) == of
