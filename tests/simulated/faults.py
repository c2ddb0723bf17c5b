"""Faults of a simulated cluster, as rows of ``faults``; a random timeline of them; and bugs that strike once."""

import json
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from harness.core.faults import Does
from harness.core.guarantees import UNCLEAN
from harness.core.topology import Plane
from tests.simulated.chronicle import Place, Why
from tests.simulated.controller import NOBODY
from tests.simulated.replication import Cluster, Replica
from tests.simulated.settings import Bug
from tests.simulated.world import MS, SECOND, Link

Row = dict[str, Any]

#: All that a broker is connected to besides other brokers.
CLIENTS, CONTROLLER = "clients", "controller"


class Nemesis:
    """Injects faults, and remembers those that last."""

    def __init__(self, cluster: Cluster, prefix: str) -> None:
        self.rows: list[Row] = []
        self._cluster, self._prefix = cluster, prefix
        self._lasting: dict[str, tuple[Row, Callable[[], None]]] = {}

    def kill(self, broker: int) -> str | None:
        """SIGKILL. Healed by a start."""
        return self._end(broker, "kill", clean=False)

    def stop(self, broker: int) -> str | None:
        """A controlled shutdown: others lead first. Healed by a start."""
        if self._process(broker).up and not self._process(broker).paused:
            self._cluster.controller.shut_down(broker)
        return self._end(broker, "stop", clean=True)

    def pause(self, broker: int) -> str | None:
        """SIGSTOP. Healed by SIGCONT."""
        process = self._process(broker)
        if not process.up or process.paused:
            return None
        process.paused = True
        return self._lasts("pause", [broker], process.resume, {Does.HALTS_PROCESS})

    def wipe(self, broker: int) -> None:
        """Delete the data of a broker whose process has ended. Nothing heals that."""
        if not self._process(broker).up:
            self._cluster.wipe(broker)
            row = self._row("wipe", [broker], {Does.DESTROYS_DATA})
            row |= {"healing_ns": row["injected_ns"], "healed_ns": row["injected_ns"]}

    def isolate(self, broker: int, clients_too: bool) -> str:
        """Cut a broker from all others and the controller, and maybe from its clients."""
        others = [one.process.name for one in self._cluster.brokers.values() if one.id != broker]
        others += [CONTROLLER, *([CLIENTS] if clients_too else [])]
        name = self._cut("isolate", Plane.ALL, [broker], [frozenset({f"b{broker}", other}) for other in others])
        self._lasting[name][0]["cuts_clients"] = clients_too
        return name

    def cut_from_controller(self, broker: int) -> str:
        """Cut a broker from the controller alone."""
        return self._cut("isolate", Plane.CONTROLLER, [broker], [frozenset({f"b{broker}", CONTROLLER})])

    def cut(self, one: Iterable[int], other: Iterable[int]) -> str:
        """Cut the replication between two groups of brokers."""
        sides = [*one], [*other]
        links = [frozenset({f"b{a}", f"b{b}"}) for a in sides[0] for b in sides[1]]
        name = self._cut("partition", Plane.REPLICATION, [*sides[0], *sides[1]], links)
        named = ("cut_from", "cut_to")
        both = {key: [f"b{n}" for n in side] for key, side in zip(named, sides, strict=True)}
        self._lasting[name][0].update({**both, "both_ways": True})
        return name

    def elect(self, place: Place) -> None:
        """Ask for an unclean election by hand."""
        evidence = {"election": UNCLEAN, "topic": place[0], "partition": place[1]}
        came = self._cluster.controller.elect_uncleanly(place)
        row = self._row("elect", [], set())
        refused = None if came else "ELECTION_NOT_NEEDED"
        row |= {"effective": came, "evidence": json.dumps({**evidence, "refused": refused})}
        row |= {"healing_ns": row["injected_ns"], "healed_ns": row["injected_ns"]}

    def heal(self, name: str | None) -> None:
        """Undo a fault, if it lasts."""
        if name is not None and name in self._lasting:
            row, undo = self._lasting.pop(name)
            row["healing_ns"], row["healed_ns"] = self._around()
            undo()

    def heal_all(self) -> None:
        """Undo all that lasts."""
        for name in [*self._lasting]:
            self.heal(name)

    def _end(self, broker: int, kind: str, clean: bool) -> str | None:
        process = self._process(broker)
        if not process.up:
            return None
        self._cluster.kill(broker, clean)
        for name, (row, _) in [*self._lasting.items()]:
            if row["kind"] == "pause" and row["nodes"] == [process.name]:
                self.heal(name)
        return self._lasts(kind, [broker], partial(self._cluster.start, broker), {Does.ENDS_PROCESS})

    def _cut(self, kind: str, plane: Plane, nodes: list[int], links: list[Link]) -> str:
        name = f"{self._prefix}-{kind}-{len(self.rows)}"
        self._cluster.world.cut(name, links)
        lasting = self._lasts(kind, nodes, partial(self._cluster.world.mend, name), {Does.CUTS})
        self._lasting[lasting][0]["plane"] = plane
        return lasting

    def _lasts(self, kind: str, nodes: list[int], undo: Callable[[], None], does: set[Does]) -> str:
        row = self._row(kind, nodes, does)
        name: str = row["fault"]
        self._lasting[name] = row, undo
        return name

    def _row(self, kind: str, nodes: list[int], does: set[Does]) -> Row:
        name = f"{self._prefix}-{kind}-{len(self.rows)}"
        injecting_ns, injected_ns = self._around()
        row: Row = {
            "fault": name,
            "injection": name,
            "kind": kind,
            "nodes": [f"b{node}" for node in nodes],
            "injecting_ns": injecting_ns,
            "injected_ns": injected_ns,
            "healing_ns": None,
            "healed_ns": None,
            "effective": True,
            "evidence": "{}",
            "nodes_without_effect": [],
            "nodes_not_known": [],
            **{what: what in does for what in Does},
        }
        self.rows.append(row)
        return row

    def _around(self) -> tuple[int, int]:
        """What happens now was asked for before, and is known of later."""
        world = self._cluster.world
        return world.now - world.between(10 * MS, 150 * MS), world.now + world.between(10 * MS, 150 * MS)

    def _process(self, broker: int) -> Any:
        return self._cluster.brokers[broker].process


class Timeline:
    """Episodes of faults at random times between ``begin_ns`` and ``end_ns``; without ``wipes`` no disk is lost.

    ``isolating``: brokers are cut off and nothing else, more often, and mostly from clients and observers, too.
    """

    def __init__(
        self, cluster: Cluster, nemesis: Nemesis, begin_ns: int, end_ns: int, wipes: bool, isolating: bool = False
    ) -> None:
        self._cluster, self._nemesis, self._world = cluster, nemesis, cluster.world
        self._end_ns, self._wipes, self._isolating = end_ns, wipes, isolating
        self._random = cluster.world.random
        episodes = [
            (3, self._killed),
            (1, self._stopped),
            (2, self._paused),
            (3, self._isolated),
            (2, self._cut_from_controller),
            (2, self._followers_cut),
            (2, self._alone_then_gone),
            (2 * wipes, self._wiped),
            (2 * wipes, self._last_wiped),
            (2, self._all_killed),
        ]
        if isolating:
            cutting = (self._isolated, self._cut_from_controller, self._followers_cut, self._alone_then_gone)
            episodes = [one for one in episodes if one[1] in cutting]
        for _ in range(self._random.randint(2, 5) + 2 * isolating):
            episode = self._random.choices([one for _, one in episodes], [weight for weight, _ in episodes])[0]
            self._world.after(self._random.randint(begin_ns, end_ns - SECOND), episode)

    def _later(self, least: int, most: int, act: Callable[[], None]) -> None:
        """After between so many seconds and so many, unless all is healed by then."""

        def in_time() -> None:
            if self._world.now < self._end_ns:
                act()

        self._world.after(self._random.randint(least * SECOND, most * SECOND), in_time)

    def _place(self) -> Place:
        return self._random.choice([*self._cluster.chronicles])

    def _leader(self, place: Place) -> int:
        """Who leads a partition, or whoever."""
        leader = self._cluster.controller.partitions[place].leader
        return self._random.choice(self._cluster.chronicles[place].replicas) if leader == NOBODY else leader

    def _whoever(self) -> int:
        likely = self._leader(self._place())
        return self._random.choice([likely, likely, *self._cluster.brokers])

    def _heals(self, name: str | None, least: int = 1, most: int = 10) -> None:
        self._later(least, most, partial(self._nemesis.heal, name))

    def _killed(self) -> None:
        self._heals(self._nemesis.kill(self._whoever()))

    def _stopped(self) -> None:
        self._heals(self._nemesis.stop(self._whoever()))

    def _paused(self) -> None:
        self._heals(self._nemesis.pause(self._whoever()))

    def _isolated(self) -> None:
        self._heals(self._nemesis.isolate(self._whoever(), clients_too=self._with_clients(0.4)), 2)

    def _with_clients(self, chance: float) -> bool:
        return self._random.random() < (0.8 if self._isolating else chance)

    def _cut_from_controller(self) -> None:
        self._heals(self._nemesis.cut_from_controller(self._whoever()), 2)

    def _followers_cut(self) -> None:
        self._heals(self._cut_off(self._place()), 2, 12)

    def _cut_off(self, place: Place) -> str:
        leader = self._leader(place)
        return self._nemesis.cut([leader], [one for one in self._cluster.chronicles[place].replicas if one != leader])

    def _alone_then_gone(self) -> None:
        """As in 2013: the leader is left alone in the ISR, and then gone; in the end all come back."""
        place = self._place()
        leader, name = self._leader(place), self._cut_off(place)

        def gone() -> None:
            if not self._isolating and self._random.random() < 0.5:
                self._heals(self._nemesis.kill(leader), 4, 12)
            else:
                self._heals(self._nemesis.isolate(leader, clients_too=self._with_clients(0.5)), 4, 12)
            self._heals(name, 2, 6)
            self._by_hand(place)

        self._later(4, 8, gone)

    def _by_hand(self, place: Place) -> None:
        if self._cluster.settings.by_hand:
            self._later(4, 7, partial(self._nemesis.elect, place))

    def _wiped(self) -> None:
        broker = self._whoever()
        self._heals(self._killed_and_wiped(broker))

    def _killed_and_wiped(self, broker: int) -> str | None:
        name = self._nemesis.kill(broker)
        self._world.after(self._world.between(300 * MS, 900 * MS), partial(self._nemesis.wipe, broker))
        return name

    def _last_wiped(self) -> None:
        """The last of the ISR loses its disk, and comes back."""
        place = self._place()
        cut, leader = self._cut_off(place), self._leader(place)

        def lost() -> None:
            name = self._killed_and_wiped(leader)
            self._heals(cut, 1, 3)
            self._heals(name, 4, 6)
            self._by_hand(place)

        self._later(4, 8, lost)

    def _all_killed(self) -> None:
        """All replicas of a partition one after the other, or at once; some may lose their disks."""
        place = self._place()
        for broker in self._cluster.chronicles[place].replicas:
            self._later(0, self._random.randint(0, 5), partial(self._killed_and_back, broker))
        self._by_hand(place)

    def _killed_and_back(self, broker: int) -> None:
        wiped = self._wipes and self._random.random() < 0.2
        self._heals(self._killed_and_wiped(broker) if wiped else self._nemesis.kill(broker), 2, 9)


def strike(cluster: Cluster, bug: Bug) -> None:
    """A bug that is no part of the protocol: it takes records out of logs, or sets a high watermark back."""
    random = cluster.world.random
    place = random.choice([*cluster.chronicles])
    leader = cluster.leader(place)
    if leader is None or leader.log.end < 20:
        cluster.world.after(200 * MS, partial(strike, cluster, bug))
    elif bug is Bug.HIGH_GOES_BACK:
        leader.log.high = max(0, leader.log.high - random.randint(1, 50))
        cluster.chronicles[place].bug_struck.append(cluster.world.now)
    elif bug is Bug.TAIL_DROPPED or (bug is Bug.LOST_AFTER_HEAL and random.random() < 0.5):
        _drop(leader, random.randint(1, 60))
    else:
        _pierce(cluster, place, leader)


def _drop(leader: Replica, number: int) -> None:
    log = leader.log
    leader.removed(log.truncate(log.end - number), Why.BUG)
    if log.last_epoch != leader.epoch:
        log.begin_epoch(leader.epoch, log.end)


def _pierce(cluster: Cluster, place: Place, leader: Replica) -> None:
    """Take records out of the middle of every replica."""
    records = leader.log.records
    last = max(1, leader.log.index(leader.log.high) - 1)
    first = cluster.world.random.randrange(max(1, last - 60), last + 1)
    gone = records[first : first + cluster.world.random.randint(1, 20)][: max(1, last - first)]
    for broker in cluster.chronicles[place].replicas:
        replica = cluster.replica(place, broker)
        replica.removed(replica.log.remove(gone), Why.BUG)
