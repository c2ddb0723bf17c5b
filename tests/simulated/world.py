"""Virtual time, processes, and the links between them: all that happens, one thing after the other.

Nothing here knows of Kafka. Times are ns since the beginning; all that is random is drawn from the ``random.Random``
that a world is made with, so the same seed gives the same world.
"""

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count
from random import Random

MS = 1_000_000
SECOND = 1_000 * MS

Act = Callable[[], None]
Link = frozenset[str]


@dataclass(eq=False)
class Process:
    """A process of a machine. One that is not ``up`` forgets; one that is ``paused`` does later what it was to do."""

    name: str
    up: bool = True
    paused: bool = False
    incarnation: int = 0
    _held: list[Act] = field(default_factory=list)

    def bound(self, act: Act) -> Act:
        """``act`` as this incarnation alone does it, and when it is not paused."""
        incarnation = self.incarnation

        def alive() -> None:
            if self.up and self.incarnation == incarnation:
                if self.paused:
                    self._held.append(alive)
                else:
                    act()

        return alive

    def end(self) -> None:
        """The process ends, and what it was to do with it."""
        self.up, self.paused = False, False
        self._held.clear()

    def start(self) -> None:
        """A new process in its place."""
        self.up = True
        self.incarnation += 1

    def resume(self) -> None:
        """What was held while it was paused is done now, in its order."""
        self.paused = False
        held, self._held = self._held, []
        for act in held:
            act()


class World:
    """What happens when, and who can reach whom."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.now = 0
        self._queue: list[tuple[int, int, Act]] = []
        self._order = count()
        self._cuts: dict[str, frozenset[Link]] = {}

    def between(self, least: int, most: int) -> int:
        """A random time from ``least`` on and before ``most``."""
        return least + int(self.random.random() * (most - least))

    def after(self, delay: int, act: Act) -> None:
        """Do ``act`` in ``delay`` ns."""
        heapq.heappush(self._queue, (self.now + delay, next(self._order), act))

    def every(self, least: int, most: int, process: Process, act: Act) -> None:
        """Have this incarnation of a process do ``act`` again and again, with pauses between ``least`` and ``most``."""

        def again() -> None:
            act()
            self.after(self.between(least, most), bound)

        bound = process.bound(again)
        self.after(self.between(0, most), bound)

    def run_until(self, when: int) -> None:
        """Let happen all that is to happen up to ``when``."""
        while self._queue and self._queue[0][0] <= when:
            self.now, _, act = heapq.heappop(self._queue)
            act()
        self.now = when

    def send(self, source: Process, target: Process, act: Act) -> None:
        """A message: ``target`` does ``act`` when it arrives. One that meets a cut, or a new process, does not."""
        bound = target.bound(act)

        def arrive() -> None:
            if self.reaches(source.name, target.name):
                bound()

        if self.reaches(source.name, target.name):
            self.after(self.between(MS // 2, 4 * MS), arrive)

    def cut(self, name: str, links: Iterable[Link]) -> None:
        """Cut these links until ``mend(name)``."""
        self._cuts[name] = frozenset(links)

    def mend(self, name: str) -> None:
        """Undo one cut; another of the same links lasts."""
        del self._cuts[name]

    def reaches(self, one: str, other: str) -> bool:
        """Whether no cut is between two."""
        if not self._cuts:
            return True
        link = frozenset({one, other})
        return not any(link in links for links in self._cuts.values())
