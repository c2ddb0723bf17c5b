"""The settings under which clusters are simulated, each those of one stored run; and the bugs that may be planted."""

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

from harness.core.guarantees import Configuration
from harness.core.version import Version, parse_version
from tests.simulated.world import MS, SECOND


class Seen(StrEnum):
    """How much of a history is observed."""

    OFTEN = "often"
    #: Brokers are asked seldom, and leaders have more terms, one after the other.
    SELDOM = "seldom"
    #: Brokers of an old version report no leader epochs, and each change of an ISR late.
    LATE = "late"


class Bug(StrEnum):
    """What a broken Kafka does. Nothing of it is recorded; what follows from it is."""

    #: Records in the middle of the log are gone from every replica.
    HOLE = "a hole in the log"
    #: The leader's log gets shorter, though nobody was elected.
    TAIL_DROPPED = "a tail dropped without an election"
    #: Either of these once all is healed.
    LOST_AFTER_HEAL = "a loss after the last heal"
    #: A replica that becomes leader lacks the end of what it had fetched.
    LACKS_ITS_END = "an in-sync follower that lacks its end is elected"
    #: acks=all is answered as soon as the leader has the record.
    ACKNOWLEDGED_EARLY = "an acknowledgement too early"
    #: The high watermark waits for nobody in the ISR that has fallen behind, and nobody is put out of it.
    NOT_WAITED_FOR = "an in-sync follower that is not waited for"
    #: The controller prefers a replica that is not in the ISR.
    ELECTED_OUTSIDE = "a leader elected cleanly from outside the ISR"
    #: A replica that becomes a follower truncates to its high watermark (before KIP-101).
    CUT_TO_HIGH = "a follower truncates to its high watermark"
    #: A killed broker comes back without the end of its log.
    FORGETS = "a restarted broker lost its log's end without a wipe"
    #: A leader's high watermark goes back: no record is lost by that.
    HIGH_GOES_BACK = "a high watermark that goes back"


@dataclass(frozen=True)
class Settings:
    """What a run's cluster and clients are set to. ``elr``: eligible leader replicas (KIP-966) are on.

    ``lag_ns`` is replica.lag.time.max.ms, ``session_ns`` broker.session.timeout.ms. ``asked_every_ns``: how often each
    broker is observed. ``new_terms``: leaders get a new epoch when brokers leave the ISR, if the version does so.
    ``consumers_see_epochs``: a consumer gets the epoch of a record, whatever brokers tell.
    """

    acks: str = "all"
    min_isr: int = 1
    unclean: bool = False
    replication: int = 3
    version: str = "4.3.1"
    metadata: str = "kraft"
    elr: bool = False
    retries: int = 0
    by_hand: bool = False
    lag_ns: int = 3 * SECOND
    session_ns: int = 3 * SECOND
    asked_every_ns: int = 250 * MS
    new_terms: bool = False
    consumers_see_epochs: bool = True

    @property
    def name(self) -> str:
        """What tells it from the others, as a word."""
        unclean = "unclean" if self.unclean else "clean"
        more = [word for word, holds in (("elr", self.elr), ("by-hand", self.by_hand)) if holds]
        more += [f"rf-{self.replication}"] if self.replication != 3 else []
        more += [] if self.consumers_see_epochs else ["no-epochs"]
        return "-".join([f"acks-{self.acks}", f"min-{self.min_isr}", unclean, *more, self.metadata, self.version])

    @cached_property
    def _version(self) -> Version:
        return parse_version(self.version)

    @property
    def acks_all(self) -> bool:
        """Whether a leader answers only for what the whole ISR has."""
        return self.acks == "all"

    @property
    def effective_min_isr(self) -> int:
        """No more than there are replicas."""
        return min(self.min_isr, self.replication)

    @property
    def knows_directories(self) -> bool:
        """Whether a broker whose disk was wiped is not elected: its log directory has another id (KIP-858)."""
        return self.metadata == "kraft" and self._version >= (3, 7)

    @property
    def tells_elr(self) -> bool:
        """Whether brokers tell who is eligible to lead outside the ISR (KIP-966)."""
        return self.metadata == "kraft" and self._version >= (4, 0)

    @property
    def holds_high_below_min_isr(self) -> bool:
        """Whether the high watermark stands while the ISR is below the minimum (KAFKA-15583)."""
        return self._version >= (3, 7)

    @property
    def new_term_without_fenced(self) -> bool:
        """Whether a leader gets a new epoch when the controller removes a dead broker from the ISR: with ZooKeeper
        (KafkaController, doRemoveReplicasFromIsr), and in KRaft before 3.6."""
        return self.new_terms and (self.metadata == "zookeeper" or self._version < (3, 6))

    @property
    def new_term_of_smaller_isr(self) -> bool:
        """Whether it gets one, too, when it asks for a smaller ISR: in KRaft before 3.6 (KAFKA-15021)."""
        return self.new_term_without_fenced and self.metadata == "kraft"

    @property
    def tells_epochs(self) -> bool:
        """Whether brokers tell the epoch of a leader (KIP-320)."""
        return self._version >= (2, 1)

    @property
    def tells_isr_at_once(self) -> bool:
        """Whether the controller decides an ISR, and tells it at once (KIP-497)."""
        return self.configuration.tells_isr_at_once

    @property
    def configuration(self) -> Configuration:
        """As run.json has it."""
        return Configuration(
            version=self.version,
            metadata=self.metadata,
            brokers=4,
            replication=self.replication,
            min_insync_replicas=self.min_isr,
            unclean_election=self.unclean,
            acks=self.acks,
            idempotence=False,
            retries=self.retries,
        )

    @property
    def scenario(self) -> dict[str, object]:
        """As a scenario would say it."""
        return {
            "cluster": {
                "version": self.version,
                "metadata": self.metadata,
                "brokers": 4,
                "config": {
                    "replica.lag.time.max.ms": self.lag_ns // MS,
                    "broker.session.timeout.ms": self.session_ns // MS,
                    "zookeeper.session.timeout.ms": self.session_ns // MS,
                },
            },
            "topic": {
                "partitions": 2,
                "replication": self.replication,
                "min.insync.replicas": self.min_isr,
                "unclean.leader.election.enable": self.unclean,
            },
            "workload": {"kind": "queue", "producers": 2, "consumers": 1, "acks": self.acks},
        }


_ZOOKEEPER = Settings(version="3.9.2", metadata="zookeeper")

#: In turn by the seed.
SETTINGS: tuple[Settings, ...] = (
    Settings(acks="all", min_isr=2, elr=True),
    Settings(acks="all", min_isr=1, unclean=True),
    Settings(acks="1", unclean=False),
    _ZOOKEEPER,
    Settings(acks="all", min_isr=2, unclean=True, elr=True),
    Settings(acks="1", unclean=True, retries=2),
    Settings(acks="all", min_isr=2, version="3.5.2", by_hand=True),
    replace(_ZOOKEEPER, replication=1),
    Settings(acks="all", min_isr=1, elr=True, by_hand=True),
    replace(_ZOOKEEPER, acks="1", min_isr=2, retries=2),
    replace(_ZOOKEEPER, min_isr=2, retries=2, unclean=True),
    Settings(acks="0", unclean=True),
)


#: How often brokers are observed where that is seldom.
_SELDOM = (1 * SECOND, 2200 * MS)
#: A version of KRaft in which leaders get a new epoch with each smaller ISR.
_NEW_TERMS = "3.5.2"
#: A version of which brokers tell no epochs.
_NO_EPOCHS = "2.0.1"


def settings_of(seed: int, seen: Seen = Seen.OFTEN) -> Settings:
    """The settings of a seed."""
    settings, turn = SETTINGS[seed % len(SETTINGS)], seed // len(SETTINGS)
    if seen is Seen.OFTEN:
        return settings
    if seen is Seen.LATE:
        old = replace(settings, version=_NO_EPOCHS, metadata="zookeeper", elr=False, by_hand=False)
        return replace(old, new_terms=turn % 4 < 2, consumers_see_epochs=turn // 4 % 2 == 0)
    older = settings.metadata == "kraft" and not settings.elr and turn % 4 < 2
    version = _NEW_TERMS if older else settings.version
    return replace(settings, version=version, asked_every_ns=_SELDOM[turn // 4 % 2], new_terms=True)


def bug_of(seed: int) -> Bug | None:
    """The bug of a seed, if any: every other one has none."""
    turn = seed // len(SETTINGS)
    every = list(Bug)
    return None if turn % 2 == 0 else every[turn // 2 % len(every)]
