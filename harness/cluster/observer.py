"""Leaders and ISRs as each broker reports them. Checkers need them, and targets are resolved from them.

A thread of its own asks each broker. A broker that is cut off reports stale state. That is recorded too, but the state
that counts now has the newest leader epoch; among equal epochs, it is the one that most brokers report.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from harness.cluster.wire import Wire
from harness.core.clock import Clock
from harness.core.errors import ClusterError
from harness.core.topology import Node, Role, Topology, View
from harness.history.journal import Journal, journal_path
from harness.history.schema import FRESH_NS, OBSERVATIONS

#: Seconds from one round of requests to the next: short against the 5 to 6 s after which a cut broker leaves the ISR
#: (replica.lag.time.max.ms) or the lead (broker.session.timeout.ms), so that each ISR and leader is seen many times.
EVERY = 0.25
#: Seconds from one writing of new reports to the next. A choice: so much is lost if the harness is killed.
_WRITE_EVERY = 0.5


@dataclass(frozen=True)
class Sight:
    """A partition as one broker saw it at ``at_ns``. ``leader`` is -1 if the broker knows none.

    ``controller``: with ZooKeeper the broker that is the controller (-1: it knows none); None with KRaft.
    ``coordinator``: the broker that it named before as the coordinator of the workload's group; None if it named none.
    """

    observer: str
    at_ns: int
    topic: str
    partition: int
    leader: int
    leader_epoch: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    high: int | None = None
    high_epoch: int | None = None
    elr: tuple[int, ...] | None = None
    controller: int | None = None
    coordinator: int | None = None


def prevailing(sights: Iterable[Sight], now_ns: int) -> Sight | None:
    """The sight that holds now: of the newest leader epoch, then of most brokers, then the latest. Pure; None without
    any.

    A broker that has not answered for 3 s counts only if no other has. Before 2.1 brokers report no epoch (KIP-320):
    there the majority decides.
    """
    every = list(sights)
    recent = [s for s in every if now_ns - s.at_ns <= FRESH_NS] or every
    if not recent:
        return None
    votes = Counter((s.leader, s.leader_epoch, s.isr) for s in recent)
    return max(recent, key=lambda s: (_epoch(s), votes[s.leader, s.leader_epoch, s.isr], s.at_ns, s.observer))


def _epoch(sight: Sight) -> int:
    return -1 if sight.leader_epoch is None else sight.leader_epoch


class Observer:
    """Collects what the brokers report: journals it, and gives the present state as a View.

    ``connect`` opens a connection to the broker at an endpoint.
    """

    def __init__(
        self,
        topology: Topology,
        topics: Sequence[str],
        watch: tuple[str, int],
        clock: Clock,
        transactional_id: str | None = None,
        group: str | None = None,
        connect: Callable[[str], Wire] = Wire,
    ) -> None:
        self._topology = topology
        self._quorum = topology.having(Role.CONTROLLER)
        self._connect = connect
        self._topics = list(topics)
        self._watch = watch
        self._clock = clock
        self._transactional_id = transactional_id
        self._group = group
        self._coordinators: dict[str, tuple[int, int | None]] = {}
        self._lock = threading.Lock()
        self._latest: dict[tuple[str, str, int], Sight] = {}
        self._controllers: dict[str, tuple[int, int | None]] = {}
        self._led: dict[str, dict[tuple[str, int], int | None]] = {}
        self._group_coordinators: dict[str, int | None] = {}
        self._reports_eligible: dict[str, bool] = {}
        self._heard: SimpleQueue[Sight] = SimpleQueue()
        self._over = threading.Event()
        self._defects: list[tuple[str, Exception]] = []

    def view(self) -> View:
        """The roles for the partition that the scenario watches."""
        with self._lock:
            sight = prevailing(self._of(*self._watch), self._clock.now())
            controller = self._controller()
            coordinator = self._elected(self._coordinators)
        if sight is None:
            return View(None, (), (), controller, coordinator)
        broker = self._topology.broker
        return View(
            broker(sight.leader),
            tuple(node for number in sight.replicas if (node := broker(number))),
            tuple(node for number in sight.isr if (node := broker(number))),
            controller,
            coordinator,
        )

    def partitions(self) -> dict[tuple[str, int], Sight]:
        """The present state of every partition of the run's topics that any broker reported."""
        now = self._clock.now()
        with self._lock:
            partitions = sorted({(topic, partition) for _, topic, partition in self._latest})
            found = {tp: prevailing(self._of(*tp), now) for tp in partitions}
        return {tp: sight for tp, sight in found.items() if sight is not None}

    def led(self, partition: tuple[str, int]) -> bool:
        """Whether a partition has a leader, according to the brokers that answered."""
        sight = prevailing(self.sights(*partition), self._clock.now())
        return sight is None or sight.leader >= 0

    def sights(self, topic: str, partition: int) -> list[Sight]:
        """The latest report of each broker on a partition."""
        with self._lock:
            return self._of(topic, partition)

    @property
    def defects(self) -> list[tuple[str, Exception]]:
        """The threads that failed before the observation ended: what each did, and its error."""
        with self._lock:
            return list(self._defects)

    def ask(self, node: Node) -> None:
        """Ask one broker over and over until the observation ends."""
        with self._watched(f"asking {node.name}"):
            self._ask(node)

    def _ask(self, node: Node) -> None:
        while not self._over.is_set():
            try:
                with self._connect(node.endpoint) as wire:
                    while not self._over.is_set():
                        self._listen(node, wire)
                        self._over.wait(EVERY)
            except ClusterError:
                # A dead or cut-off broker does not answer: its last report stays, and becomes old.
                self._group_coordinators.pop(node.name, None)
                self._over.wait(EVERY)

    def write(self, journal: Journal) -> None:
        """Journal new reports every ``_WRITE_EVERY`` seconds, until the observation ends."""
        with self._watched("journalling"):
            self._write(journal)

    def _write(self, journal: Journal) -> None:
        while True:
            ended = self._over.wait(_WRITE_EVERY)
            journal.append_rows(_row(sight) for sight in self._drain())
            if ended:
                return

    @contextmanager
    def _watched(self, doing: str) -> Iterator[None]:
        """Remember the error of a thread that fails: from then on the observation is not complete."""
        try:
            yield
        except Exception as exc:  # noqa: BLE001 - whatever it is, a thread must not end in silence
            with self._lock:
                self._defects.append((doing, exc))

    def end(self) -> None:
        """Stop asking and writing."""
        self._over.set()

    def _listen(self, node: Node, wire: Wire) -> None:
        # First ask for the high watermarks, in the epochs of the last report: every member of an ISR that is reported
        # later has all records below them. Members of an ISR that was reported earlier need not have them. A broker
        # that does not answer this is next time asked only for the rest.
        led, coordinator = self._led.pop(node.name, {}), self._group_coordinators.pop(node.name, None)
        highs = wire.offsets(by_topic(led), epochs=led) if led else {}
        # If the broker does not answer this question either, skip it next time.
        ask, self._reports_eligible[node.name] = self._reports_eligible.get(node.name, True), False
        eligible = wire.eligible(self._topics) if ask else {}
        self._reports_eligible[node.name] = True
        response = wire.metadata(self._topics)
        at_ns = self._clock.now()
        controller = None if self._quorum else int(response.controller_id)
        sights = [
            _sight(node, at_ns, topic.name, answer, controller, coordinator)
            for topic in response.topics
            for answer in topic.partitions
        ]
        self._led[node.name] = {(s.topic, s.partition): s.leader_epoch for s in sights if s.leader == node.id}
        same = {tp for tp, epoch in self._led[node.name].items() if tp in led and led[tp] == epoch}
        known = {tp: high for tp, high in highs.items() if tp in same}
        # Keep these reports even if the broker does not answer the next question.
        self._keep([_complete(sight, known, eligible) for sight in sights])
        if self._transactional_id is not None:
            self._note(self._coordinators, node, at_ns, wire.coordinator(self._transactional_id))
        if self._group is not None:
            self._group_coordinators[node.name] = wire.group_coordinator(self._group)
        # The last question: a broker forwards it to a controller, and cannot if it is cut off from the controllers.
        self._note(self._controllers, node, at_ns, self._ask_controller(wire, response))

    def _keep(self, sights: Sequence[Sight]) -> None:
        with self._lock:
            self._latest.update({(s.observer, s.topic, s.partition): s for s in sights})
        for sight in sights:
            self._heard.put(sight)

    def _note(self, latest: dict[str, tuple[int, int | None]], node: Node, at_ns: int, number: int | None) -> None:
        with self._lock:
            latest[node.name] = (at_ns, number)

    def _ask_controller(self, wire: Wire, response: Any) -> int | None:
        """The id of the controller. A KRaft broker names a random broker (KIP-590), so the quorum is asked instead."""
        if not self._quorum:
            return int(response.controller_id)
        return self._quorum[0].id if len(self._quorum) == 1 else wire.active_controller()

    def _controller(self) -> Node | None:
        return self._elected(self._controllers)

    def _elected(self, answers: Mapping[str, tuple[int, int | None]]) -> Node | None:
        """The node that most of the brokers name that answered lately."""
        fresh = [answer for answer in answers.values() if self._clock.now() - answer[0] <= FRESH_NS]
        votes = Counter(number for _, number in fresh if number is not None and number >= 0)
        if not votes:
            return None
        number = votes.most_common(1)[0][0]
        return next((n for n in self._topology.nodes if n.id == number and n.role is not Role.ZOOKEEPER), None)

    def _of(self, topic: str, partition: int) -> list[Sight]:
        return [s for (_, t, p), s in self._latest.items() if (t, p) == (topic, partition)]

    def _drain(self) -> Iterator[Sight]:
        while True:
            try:
                yield self._heard.get_nowait()
            except Empty:
                return


@contextmanager
def observe(
    topology: Topology,
    topics: Sequence[str],
    watch: tuple[str, int],
    journals: Path,
    clock: Clock,
    transactional_id: str | None = None,
    group: str | None = None,
) -> Iterator[Observer]:
    """A running observer: a thread for each broker, and one that journals ``observations``.

    With a ``transactional_id`` it also asks for the coordinator of that id's transactions, with a ``group`` for that of
    this consumer group.
    """
    observer = Observer(topology, topics, watch, clock, transactional_id, group)
    with Journal(journal_path(journals, "observations", "observer"), OBSERVATIONS) as journal:
        jobs: list[tuple[Callable[..., None], Node | Journal]] = [(observer.ask, node) for node in topology.brokers]
        threads = [
            threading.Thread(target=act, args=(subject,), daemon=True)
            for act, subject in [*jobs, (observer.write, journal)]
        ]
        for thread in threads:
            thread.start()
        try:
            yield observer
        finally:
            observer.end()
            for thread in threads:
                thread.join()


def by_topic(partitions: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """The numbers of partitions by their topics."""
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found


def _sight(
    node: Node, at_ns: int, topic: str, partition: Any, controller: int | None, coordinator: int | None
) -> Sight:
    epoch = getattr(partition, "leader_epoch", None)
    return Sight(
        node.name,
        at_ns,
        topic,
        partition.partition_index,
        partition.leader_id,
        None if epoch is None or epoch < 0 else epoch,
        tuple(partition.replica_nodes),
        tuple(sorted(partition.isr_nodes)),
        controller=controller,
        coordinator=coordinator,
    )


def _complete(
    sight: Sight,
    highs: Mapping[tuple[str, int], tuple[int, int | None]],
    eligible: Mapping[tuple[str, int], tuple[int, frozenset[int], frozenset[int]]],
) -> Sight:
    """The sight with its high watermark. It also gets the eligible leader replicas, if they were reported with the same
    epoch and ISR."""
    partition = (sight.topic, sight.partition)
    high, high_epoch = highs.get(partition, (None, None))
    epoch, isr, elr = eligible.get(partition, (None, frozenset(), frozenset()))
    same = epoch == sight.leader_epoch and isr == set(sight.isr)
    replicas = tuple(sorted(elr)) if same and epoch is not None else None
    return replace(sight, high=high, high_epoch=high_epoch, elr=replicas)


def _row(sight: Sight) -> dict[str, Any]:
    elr = None if sight.elr is None else list(sight.elr)
    return {**vars(sight), "replicas": list(sight.replicas), "isr": list(sight.isr), "elr": elr}
