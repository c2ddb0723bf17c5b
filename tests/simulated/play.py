"""One simulated history: a cluster, its clients and observers, faults at random, and perhaps a bug."""

from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from harness.history.schema import FINAL_READER, Phase
from tests.simulated.chronicle import Chronicle, Place
from tests.simulated.clients import Client, Producer, Reader, read_row
from tests.simulated.controller import NOBODY
from tests.simulated.faults import Nemesis, Timeline, strike
from tests.simulated.log import Record
from tests.simulated.observers import Observer
from tests.simulated.replication import Cluster
from tests.simulated.settings import Bug, Settings
from tests.simulated.world import MS, SECOND, Process, World

Row = dict[str, Any]

BROKERS = 4
PARTITIONS = 2
PRODUCERS = 2
#: So many workers, and broker ids, are a history's own: many are judged in one run.
OWN = 8

_FAULTS_FROM, _HEAL_AT = 3 * SECOND, 30 * SECOND
_SENT_AFTER, _SETTLES, _PATIENCE = 6 * SECOND, 5 * SECOND, 20 * SECOND

#: Bugs that strike once, at a time of their own; the others are in the protocol from a time on.
_ONCE = frozenset({Bug.HOLE, Bug.TAIL_DROPPED, Bug.HIGH_GOES_BACK})


@dataclass(frozen=True)
class Played:
    """A history, and what truly happened. ``final``: each log as it was read in the end, but those that nobody leads.

    ``observed``: whether somebody observed to the end, which was at ``ended_ns``.
    """

    seed: int
    settings: Settings
    bug: Bug | None
    brokers: tuple[int, ...]
    tables: dict[str, list[Row]]
    chronicles: dict[Place, Chronicle]
    final: dict[Place, list[Record]]
    observed: bool
    ended_ns: int

    @property
    def topic(self) -> str:
        """The topic that is all its own."""
        return topic_of(self.seed)


def topic_of(seed: int) -> str:
    """The topic of a seed's history."""
    return f"seed-{seed}"


class Stage:
    """Everything of one history, ready to be played; a hand-made scenario acts on its parts.

    ``number``: which history of its run it is. ``refreshes``: how often producers ask who leads, ns.
    """

    def __init__(
        self, seed: int, settings: Settings, bug: Bug | None = None, number: int = 0, refreshes: int | None = None
    ) -> None:
        self.seed, self.settings, self.bug, self.number = seed, settings, bug, number
        self.world = World(Random(seed))
        random = self.world.random
        self.brokers = [number * OWN + n for n in range(1, BROKERS + 1)]
        assigned = {
            (topic_of(seed), n): tuple(random.sample(self.brokers, settings.replication)) for n in range(PARTITIONS)
        }
        self.places = [*assigned]
        self.cluster = Cluster(self.world, settings, self.brokers, assigned, bug)
        self.clients = Process("clients")
        self.dies_ns = random.randint(5 * SECOND, _HEAL_AT) if random.random() < 0.04 else None
        self.observers = [
            Observer(self.cluster, self.clients, broker, self.dies_ns) for broker in self.cluster.brokers.values()
        ]
        workers = [number * OWN + n for n in range(PRODUCERS)]
        refreshes = refreshes or random.choice([2 * SECOND, 10 * SECOND, 30 * SECOND])
        pause = random.choice([80 * MS, 150 * MS])
        self.producers = [
            Producer(self._client(refreshes), worker, self.places, settings.acks, settings.retries, pause)
            for worker in workers
        ]
        self.reader = Reader(self._client(5 * SECOND), number * OWN + PRODUCERS, self.places, SECOND)
        self.nemesis = Nemesis(self.cluster, f"s{seed}")

    def _client(self, refreshes: int) -> Client:
        return Client(self.cluster, self.clients, refreshes)

    def finish(self) -> Played:
        """Heal, go on for a while, let it settle, and read every log."""
        world, cluster = self.world, self.cluster
        self.nemesis.heal_all()
        if self.bug is Bug.LOST_AFTER_HEAL:
            world.after(world.random.randint(SECOND, _SENT_AFTER + _SETTLES), partial(strike, cluster, self.bug))
        world.run_until(world.now + _SENT_AFTER)
        for producer in self.producers:
            producer.sending = False
        world.run_until(world.now + _SETTLES)
        for place in self.places:
            if self.settings.by_hand and self.cluster.controller.partitions[place].leader == NOBODY:
                self.nemesis.elect(place)
        deadline = world.now + _PATIENCE
        while world.now < deadline and not self._settled:
            world.run_until(world.now + SECOND)
        world.run_until(world.now + SECOND)
        return self._played()

    @property
    def _settled(self) -> bool:
        """Every partition is led, and all its replicas are in sync."""
        states = self.cluster.controller.partitions.items()
        return all(self.cluster.leader(place) and len(state.isr) == len(state.replicas) for place, state in states)

    def _played(self) -> Played:
        final = {place: list(leader.log.records) for place in self.places if (leader := self.cluster.leader(place))}
        ends = {place: leader.log.end for place in self.places if (leader := self.cluster.leader(place))}
        now = self.world.now
        read = [
            read_row(FINAL_READER, Phase.FINAL, 0, place, record, now, self.settings)
            for place, records in final.items()
            for record in records
        ]
        tables = {
            "sends": [row for producer in self.producers for row in producer.rows],
            "reads": [*self.reader.rows, *read],
            "positions": self.reader.positions,
            "faults": self.nemesis.rows,
            "observations": [row for observer in self.observers for row in observer.rows],
            "log_ends": [_end(place, ends.get(place)) for place in self.places],
        }
        known = self.cluster.chronicles
        observed = self.dies_ns is None
        return Played(self.seed, self.settings, self.bug, (*self.brokers,), tables, known, final, observed, now)


def play(
    seed: int,
    settings: Settings,
    bug: Bug | None = None,
    number: int = 0,
    wipes: bool = True,
    isolating: bool = False,
) -> Played:
    """A history of random faults. The same seed, settings and bug: the same history."""
    stage = Stage(seed, settings, bug, number)
    world, cluster = stage.world, stage.cluster
    Timeline(cluster, stage.nemesis, _FAULTS_FROM, _HEAL_AT, wipes, isolating)
    if bug is not None and bug is not Bug.LOST_AFTER_HEAL:
        begins = world.random.randint(_FAULTS_FROM, _HEAL_AT)
        if bug in _ONCE:
            world.after(begins, partial(strike, cluster, bug))
        else:
            world.after(begins // 2, partial(setattr, cluster, "broken", True))
            world.after(_HEAL_AT, partial(setattr, cluster, "broken", False))
    world.run_until(_HEAL_AT)
    return stage.finish()


def _end(place: Place, end: int | None) -> Row:
    read = 0 if end is None else end
    row = {"topic": place[0], "partition": place[1], "log_start": 0}
    return {**row, "log_end": -1 if end is None else end, "read_to": read, "complete": end is not None}
