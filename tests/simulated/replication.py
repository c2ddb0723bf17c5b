"""The brokers: each replica leads or follows, and the cluster that they make with their controller.

As documented: Kafka's design (replication), KIP-101 and KIP-279 (truncation by leader epoch), KIP-497 (the ISR shrinks
and grows by the controller alone), KIP-595 (a fetch tells where logs part), KIP-966.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.simulated.chronicle import Acknowledgement, Chronicle, Office, Place, Removal, Why
from tests.simulated.controller import NOBODY, Controller, Image, PartitionState
from tests.simulated.log import Log, Record
from tests.simulated.settings import Bug, Settings
from tests.simulated.world import MS, SECOND, Process, World

#: How much a fetch brings, and how long it waits for something to bring.
_MOST = 100
_WAIT = 500 * MS
_CHECKPOINT = 5 * SECOND

#: Told with an answer to a produce or a fetch.
NOT_LEADER = "NOT_LEADER_OR_FOLLOWER"
NOT_ENOUGH = "NOT_ENOUGH_REPLICAS"
NOT_ENOUGH_AFTER = "NOT_ENOUGH_REPLICAS_AFTER_APPEND"


@dataclass(frozen=True)
class Produced:
    """The answer to a produce: an offset, or an error."""

    offset: int | None = None
    error: str | None = None


@dataclass(frozen=True)
class Fetched:
    """The answer to a fetch. ``diverging``: the epoch and offset where logs part; ``reset``: where the leader's log
    ends, for one that asked beyond it."""

    epoch: int = -1
    records: tuple[Record, ...] = ()
    high: int = 0
    diverging: tuple[int, int] | None = None
    reset: int | None = None
    error: str | None = None


@dataclass
class Follower:
    """A follower as its leader knows it. ``end`` is -1 until it fetches."""

    caught_up: int
    end: int = -1
    asked_at: int = 0
    end_then: int = 0


@dataclass
class Waiting:
    """A produce that waits for the high watermark to pass its record."""

    record: Record
    reply: Callable[[Produced], None]


@dataclass(eq=False)
class Broker:
    """A broker's process, and what it knows: nothing, until it learns its first metadata."""

    id: int
    process: Process
    image: Image | None = None
    replicas: dict[Place, "Replica"] = field(default_factory=dict)
    clean: bool = True
    emptied: bool = False
    joined: bool = True


class Cluster:
    """Brokers and a controller, at work. ``ids`` are the brokers', ``assigned`` the replicas of each partition."""

    def __init__(
        self, world: World, settings: Settings, ids: list[int], assigned: dict[Place, tuple[int, ...]], bug: Bug | None
    ) -> None:
        self.world, self.settings, self.bug = world, settings, bug
        #: A bug of the protocol strikes only while this is so.
        self.broken = False
        self.chronicles = {place: Chronicle(replicas) for place, replicas in assigned.items()}
        self.brokers = {broker: Broker(broker, Process(f"b{broker}")) for broker in ids}
        processes = {broker: one.process for broker, one in self.brokers.items()}
        outside = partial(self.has, Bug.ELECTED_OUTSIDE)
        self.controller = Controller(world, settings, processes, self.chronicles, self._learn, outside)
        for place, replicas in assigned.items():
            for broker in replicas:
                self.brokers[broker].replicas[place] = Replica(self, self.brokers[broker], place)
        for one in self.brokers.values():
            self._begin(one)
            self._learn(one.id, self.controller.image)

    def has(self, bug: Bug) -> bool:
        """Whether this bug strikes now."""
        return self.broken and self.bug is bug

    def replica(self, place: Place, broker: int) -> "Replica":
        """A broker's replica of a partition."""
        return self.brokers[broker].replicas[place]

    def leader(self, place: Place) -> "Replica | None":
        """The replica that the controller has as leader, where it knows that it leads."""
        state = self.controller.partitions[place]
        if state.leader == NOBODY:
            return None
        found = self.replica(place, state.leader)
        return found if found.leading and found.state is not None and found.state.epoch == state.epoch else None

    def kill(self, broker: int, clean: bool = False) -> None:
        """The process ends. What it has written to its logs stays."""
        one = self.brokers[broker]
        one.process.end()
        one.clean, one.joined, one.image = clean, False, None
        for replica in one.replicas.values():
            replica.forget(clean)

    def wipe(self, broker: int) -> None:
        """The disk of a broker that does not run is emptied."""
        one = self.brokers[broker]
        one.emptied = True
        for replica in one.replicas.values():
            replica.removed(replica.log.truncate(0), Why.WIPED)
            replica.facts.wipes.append((self.world.now, broker))
            replica.log = Log()

    def start(self, broker: int) -> None:
        """A new process, which registers once the session of the one before is over."""
        one = self.brokers[broker]
        one.process.start()
        self._begin(one)

    def _begin(self, broker: Broker) -> None:
        world, process = self.world, broker.process
        world.every(400 * MS, 600 * MS, process, partial(self._beat, broker))
        half = self.settings.lag_ns // 2
        world.every(half, half + 10 * MS, process, partial(self._each, broker, Replica.check_isr))
        world.every(500 * MS, 700 * MS, process, partial(self._each, broker, Replica.check_requests))
        world.every(_CHECKPOINT, _CHECKPOINT, process, partial(self._each, broker, Replica.write_checkpoint))

    def _each(self, broker: Broker, act: Callable[["Replica"], None]) -> None:
        for replica in broker.replicas.values():
            act(replica)

    def _beat(self, broker: Broker) -> None:
        incarnation = broker.process.incarnation
        if broker.joined:
            knows = -1 if broker.image is None else broker.image.version
            act: Callable[[], Any] = partial(self.controller.heartbeat, broker.id, incarnation, knows)
        else:
            act = partial(self._register, broker, incarnation)
        self.world.send(broker.process, self.controller.process, act)

    def _register(self, broker: Broker, incarnation: int) -> None:
        if not broker.joined and broker.process.incarnation == incarnation:
            broker.joined = self.controller.register(broker.id, incarnation, broker.clean, broker.emptied)
            broker.emptied = broker.emptied and not broker.joined

    def _learn(self, broker: int, image: Image) -> None:
        one = self.brokers[broker]
        if not one.joined or (one.image is not None and one.image.version >= image.version):
            return
        one.image = image
        for place, replica in one.replicas.items():
            replica.learn(image.partitions[place])


class Replica:
    """One broker's replica of one partition. Its log outlives its process, the rest does not."""

    def __init__(self, cluster: Cluster, broker: Broker, place: Place) -> None:
        self.cluster, self.broker, self.place = cluster, broker, place
        self.log = Log()
        self._forget()

    def _forget(self) -> None:
        self.state: PartitionState | None = None
        self.leading = False
        self._pending: frozenset[int] | None = None
        self._followers: dict[int, Follower] = {}
        self._waiting: list[Waiting] = []
        self._fetches: list[Callable[[], None]] = []
        self._begun_at = 0
        self._term = 0
        self._asked_at = 0

    @property
    def facts(self) -> Chronicle:
        """What truly happens here."""
        return self.cluster.chronicles[self.place]

    @property
    def epoch(self) -> int:
        """The leader epoch that it knows."""
        return -1 if self.state is None else self.state.epoch

    def removed(self, records: list[Record], why: Why) -> None:
        """Remember what went out of the log."""
        now = self.cluster.world.now
        self.facts.removals += [Removal(now, self.broker.id, record, why) for record in records]
        if why is Why.BUG and records:
            self.facts.bug_struck.append(now)

    def _append(self, record: Record) -> None:
        self.log.append(record)
        self.facts.appended.setdefault((self.broker.id, record), []).append(self.cluster.world.now)

    def forget(self, clean: bool) -> None:
        """The process ended. (A bug: the end of the log was not on the disk.)"""
        self._forget()
        if clean:
            self.log.checkpoint = self.log.high
        if not clean and self.cluster.has(Bug.FORGETS):
            self.removed(self.log.truncate(self.log.end - self.cluster.world.random.randint(1, 60)), Why.BUG)
        self.log.high = min(self.log.checkpoint, self.log.end)

    def write_checkpoint(self) -> None:
        """Remember the high watermark on disk."""
        self.log.checkpoint = self.log.high

    def learn(self, state: PartitionState) -> None:
        """The controller changed the partition: lead, resign, follow another, or lead with another ISR."""
        before = self.state
        if before is not None and state.version <= before.version:
            return
        self.state = state
        if state.leader == self.broker.id:
            self._pending = None
            if not self.leading or before is None or before.epoch != state.epoch:
                self._lead()
            self._advance()
            return
        if self.leading:
            self._resign()
        if before is None or (before.leader, before.epoch) != (state.leader, state.epoch):
            self._follow()

    # As a leader.

    def produce(self, record_id: int, acks: str, reply: Callable[[Produced], None]) -> None:
        """Append a record, and answer: at once, or for acks=all when the high watermark has passed it."""
        if not self.leading or self.state is None:
            reply(Produced(error=NOT_LEADER))
            return
        if acks == "all" and len(self.state.isr) < self.cluster.settings.effective_min_isr:
            reply(Produced(error=NOT_ENOUGH))
            return
        record = Record(self.log.end, self.epoch, record_id)
        self._append(record)
        if acks != "all" or self.cluster.has(Bug.ACKNOWLEDGED_EARLY):
            self._acknowledge(record, reply)
        else:
            self._waiting.append(Waiting(record, reply))
        self._advance()
        self._answer_fetches()

    def fetch(
        self, broker: int, incarnation: int, epoch: int, offset: int, last: int | None, reply: Callable[[Fetched], None]
    ) -> None:
        """A follower asks for what is from ``offset`` on; its log's latest epoch is ``last``."""
        if not self.leading or epoch != self.epoch:
            reply(Fetched(error=NOT_LEADER))
            return
        try:
            diverging = self.log.diverges(last, offset)
        except LookupError:
            diverging, offset = None, self.log.end + 1
        if diverging is not None:
            reply(Fetched(self.epoch, diverging=diverging))
        elif offset > self.log.end:
            reply(Fetched(self.epoch, reset=self.log.end))
        else:
            self._note(broker, incarnation, offset)
            if offset < self.log.end:
                reply(self._some(offset))
            else:
                self._fetches.append(lambda: reply(self._some(offset)))
                self.cluster.world.after(_WAIT, self.broker.process.bound(self._answer_fetches))

    def read(self, offset: int, last: int | None) -> Fetched:
        """What a consumer is given from ``offset`` on: nothing at the high watermark or beyond."""
        if not self.leading:
            return Fetched(error=NOT_LEADER)
        try:
            diverging = self.log.diverges(last, offset)
        except LookupError:
            return Fetched(error="UNKNOWN_LEADER_EPOCH")
        if diverging is not None:
            return Fetched(self.epoch, diverging=diverging)
        if offset > self.log.end:
            return Fetched(self.epoch, reset=self.log.end)
        return Fetched(self.epoch, tuple(self.log.read(offset, self.log.high, _MOST)), self.log.high)

    def reported_high(self) -> int | None:
        """The high watermark as ListOffsets tells it: none before that has come to the leader's own epoch (KIP-207)."""
        return self.log.high if self.leading and self.log.high >= self._begun_at else None

    def check_isr(self) -> None:
        """Twice in replica.lag.time.max.ms: put out of the ISR who has not caught up for so long."""
        if not self.leading or self.state is None or self._pending is not None or self.cluster.has(Bug.NOT_WAITED_FOR):
            return
        late = {broker for broker in self.state.isr if broker != self.broker.id and not self._is_caught_up(broker)}
        if late:
            self._alter(frozenset(self.state.isr) - late)

    def check_requests(self) -> None:
        """Ask again what was never answered."""
        now = self.cluster.world.now
        if self.leading and self._pending is not None:
            self._alter(self._pending)
        elif not self.leading and now - self._asked_at > 1500 * MS:
            self._fetch(self._term)

    def _lead(self) -> None:
        assert self.state is not None
        now, log = self.cluster.world.now, self.log
        if self.cluster.has(Bug.LACKS_ITS_END):
            self.removed(log.truncate(log.end - self.cluster.world.random.randint(1, 60)), Why.BUG)
        self.leading = True
        self._term += 1
        self._begun_at = log.end
        log.begin_epoch(self.state.epoch, log.end)
        self._followers = {
            broker: Follower(now if broker in self.state.isr else -self.cluster.settings.lag_ns)
            for broker in self.state.replicas
            if broker != self.broker.id
        }
        self.facts.offices.append(Office(now, self.broker.id, self.epoch, log.end, frozenset(log.records)))

    def _resign(self) -> None:
        self.leading, self._pending = False, None
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            one.reply(Produced(error=NOT_LEADER))
        self._answer_fetches()

    def _note(self, broker: int, incarnation: int, offset: int) -> None:
        assert self.state is not None
        follower, now = self._followers[broker], self.cluster.world.now
        if offset >= self.log.end:
            follower.caught_up = now
        elif offset >= follower.end_then:
            follower.caught_up = max(follower.caught_up, follower.asked_at)
        follower.end, follower.asked_at, follower.end_then = offset, now, self.log.end
        in_sync = offset >= max(self.log.high, self._begun_at)
        if broker not in self._maximal and self._pending is None and in_sync and self._may_join(broker, incarnation):
            self._alter(frozenset({*self.state.isr, broker}))
        self._advance()

    def _may_join(self, broker: int, incarnation: int | None = None) -> bool:
        image = self.broker.image
        known = None if image is None else image.active.get(broker)
        return known is not None and incarnation in {None, known}

    def _is_caught_up(self, broker: int) -> bool:
        follower = self._followers[broker]
        return follower.end == self.log.end or (
            self.cluster.world.now - follower.caught_up <= self.cluster.settings.lag_ns
        )

    def _left_behind(self, follower: Follower) -> bool:
        """A bug: one that has not fetched for a second does not count."""
        return self.cluster.has(Bug.NOT_WAITED_FOR) and self.cluster.world.now - follower.asked_at > SECOND

    @property
    def _maximal(self) -> frozenset[int]:
        assert self.state is not None
        return frozenset({*self.state.isr, *(self._pending or ())})

    def _alter(self, isr: frozenset[int]) -> None:
        assert self.state is not None
        image, state = self.broker.image, self.state
        assert image is not None
        self._pending = isr
        members = [(broker, image.active.get(broker, -1)) for broker in sorted(isr)]
        controller, world = self.cluster.controller, self.cluster.world

        def ask() -> None:
            answer = controller.alter(self.place, self.broker.id, state.epoch, state.version, members)
            world.send(controller.process, self.broker.process, lambda: self._altered(state, answer))

        world.send(self.broker.process, controller.process, ask)

    def _altered(self, asked_in: PartitionState, answer: PartitionState | str) -> None:
        if isinstance(answer, PartitionState):
            self.learn(answer)
        elif answer == "INELIGIBLE_REPLICA" and self.state == asked_in:
            self._pending = None

    def _advance(self) -> None:
        """The high watermark is what all have that are in the ISR, or may soon be."""
        if not self.leading or self.state is None:
            return
        settings, log = self.cluster.settings, self.log
        if not (settings.holds_high_below_min_isr and len(self.state.isr) < settings.effective_min_isr):
            counted = (
                one.end
                for broker, one in self._followers.items()
                if (broker in self._maximal and not self._left_behind(one))
                or (self._is_caught_up(broker) and self._may_join(broker))
            )
            high = min([log.end, *counted])
            if high > log.high:
                self._commit(high)
        self._answer_waiting()

    def _commit(self, high: int) -> None:
        log, now = self.log, self.cluster.world.now
        for record in log.read(log.high, high, high - log.high):
            self.facts.committed.setdefault(record, now)
        log.high = high
        self._answer_fetches()

    def _answer_waiting(self) -> None:
        high = self.log.high
        ready = [one for one in self._waiting if one.record.offset < high]
        if not ready:
            return
        self._waiting = [one for one in self._waiting if one.record.offset >= high]
        enough = len(self._maximal) >= self.cluster.settings.effective_min_isr
        for one in ready:
            if enough:
                self._acknowledge(one.record, one.reply)
            else:
                one.reply(Produced(error=NOT_ENOUGH_AFTER))

    def _acknowledge(self, record: Record, reply: Callable[[Produced], None]) -> None:
        holders = frozenset(
            broker for broker in self.facts.replicas if self.cluster.replica(self.place, broker).log.has(record)
        )
        isr = frozenset() if self.state is None else frozenset(self.state.isr)
        reported = Acknowledgement(self.cluster.world.now, record, self.broker.id, holders, isr)
        self.facts.acknowledged.setdefault(record.id, []).append(reported)
        reply(Produced(record.offset))

    def _some(self, offset: int) -> Fetched:
        if not self.leading:
            return Fetched(error=NOT_LEADER)
        return Fetched(self.epoch, tuple(self.log.read(offset, self.log.end, _MOST)), self.log.high)

    def _answer_fetches(self) -> None:
        fetches, self._fetches = self._fetches, []
        for answer in fetches:
            answer()

    # As a follower.

    def _follow(self) -> None:
        self._term += 1
        if self.cluster.has(Bug.CUT_TO_HIGH):
            self.removed(self.log.truncate(self.log.high), Why.BUG)
        self._fetch(self._term)

    def _fetch(self, term: int) -> None:
        state = self.state
        if term != self._term or self.leading or state is None or state.leader == NOBODY:
            return
        self._asked_at = self.cluster.world.now
        world, here = self.cluster.world, self.broker.process
        leader = self.cluster.replica(self.place, state.leader)
        there = leader.broker.process
        asked = (here.incarnation, state.epoch, self.log.end, self.log.last_epoch)

        def answer(fetched: Fetched) -> None:
            world.send(there, here, lambda: self._fetched(term, asked, fetched))

        world.send(here, there, lambda: leader.fetch(self.broker.id, *asked, answer))

    def _fetched(self, term: int, asked: tuple[int, int, int, int | None], fetched: Fetched) -> None:
        if term != self._term or self.leading or asked[2:] != (self.log.end, self.log.last_epoch):
            return
        world, log = self.cluster.world, self.log
        pause = world.between(0, 20 * MS)
        if fetched.error is not None:
            pause = world.between(100 * MS, 300 * MS)
        elif fetched.diverging is not None:
            self.removed(log.truncate(_cut(log, *fetched.diverging)), Why.TRUNCATED)
        elif fetched.reset is not None:
            self.removed(log.truncate(fetched.reset), Why.TRUNCATED)
        else:
            self.cluster.controller.follows(self.place, self.broker.id, self.broker.process.incarnation)
            for record in fetched.records:
                self._append(record)
            log.high = max(log.high, min(fetched.high, log.end))
        world.after(pause, self.broker.process.bound(lambda: self._fetch(term)))


def _cut(log: Log, epoch: int, offset: int) -> int:
    """Where a follower cuts its log when its leader's epoch ``epoch`` ends at ``offset`` (getOffsetTruncationState)."""
    own = log.end_of_epoch(epoch)
    if own is None:
        return min(offset, log.end)
    if own[0] != epoch:
        return min(own[1], log.end)
    return min(own[1], offset, log.end)
