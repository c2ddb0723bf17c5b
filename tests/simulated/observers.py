"""What each broker tells of its partitions when it is asked, as harness.cluster.observer does: ``observations``.

Each is asked on its own, for its high watermarks first: a broker that is cut off tells its own, stale truth.
"""

from functools import partial
from typing import Any

from tests.simulated.chronicle import Place
from tests.simulated.replication import Broker, Cluster
from tests.simulated.world import MS, SECOND, Process

Row = dict[str, Any]

_TIMEOUT = 1 * SECOND


class Observer:
    """Asks one broker again and again, until it dies itself at ``dies_ns``."""

    def __init__(self, cluster: Cluster, process: Process, broker: Broker, dies_ns: int | None = None) -> None:
        self.rows: list[Row] = []
        self._cluster, self._process, self._broker, self._dies_ns = cluster, process, broker, dies_ns
        self._asked = 0
        self._led: dict[Place, int] = {}
        cluster.world.after(cluster.world.random.randint(0, cluster.settings.asked_every_ns), self._ask)

    def _ask(self) -> None:
        world = self._cluster.world
        if self._dies_ns is not None and world.now >= self._dies_ns:
            return
        self._asked += 1
        asked, there = self._asked, self._broker.process
        world.send(self._process, there, partial(self._answer, asked))
        world.after(_TIMEOUT, partial(self._give_up, asked))

    def _answer(self, asked: int) -> None:
        """In the broker: the high watermarks, and a moment later the rest."""
        if self._broker.image is None:
            return
        led, self._led = self._led, {}
        highs = {place: self._broker.replicas[place].reported_high() for place in led}
        world, there = self._cluster.world, self._broker.process

        def metadata() -> None:
            image = self._broker.image
            if image is not None:
                world.send(there, self._process, partial(self._heard, asked, image.reported, led, highs))

        world.after(world.random.randint(MS, 5 * MS), there.bound(metadata))

    def _heard(
        self, asked: int, reports: dict[Place, Any], led: dict[Place, int], highs: dict[Place, int | None]
    ) -> None:
        if asked != self._asked:
            return
        self._asked += 1
        world, broker, epochs = self._cluster.world, self._broker, self._cluster.settings.tells_epochs
        for place, state in reports.items():
            if state.leader == broker.id:
                self._led[place] = state.epoch
            high = highs.get(place) if led.get(place) == self._led.get(place, -1) else None
            self.rows.append(
                {
                    "observer": broker.process.name,
                    "at_ns": world.now,
                    "topic": place[0],
                    "partition": place[1],
                    "leader": state.leader,
                    "leader_epoch": state.epoch if epochs else None,
                    "replicas": list(state.replicas),
                    "isr": sorted(state.isr),
                    "high": high,
                    "high_epoch": state.epoch if epochs and high is not None else None,
                    "elr": sorted(state.elr) if self._cluster.settings.tells_elr else None,
                }
            )
        world.after(self._cluster.settings.asked_every_ns, self._ask)

    def _give_up(self, asked: int) -> None:
        if asked == self._asked:
            self._led = {}
            self._ask()
