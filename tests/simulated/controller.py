"""The controller: who lives, who leads, who is in sync; and what each broker learns of it, late where it is cut off.

What becomes of a partition is decided as KRaft's PartitionChangeBuilder does, with eligible leader replicas (KIP-966)
or without.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial

from tests.simulated.chronicle import Chronicle, Election, Kind, Place
from tests.simulated.settings import Settings
from tests.simulated.world import MS, Process, World

NOBODY = -1

#: How often a broker with an empty disk tells its new log directories while nobody leads (of leader-wiped on 4.3.1,
#: some runs show it and others do not).
_ASSIGNS = 0.5
#: How often a leader that changes its ISR itself changes it again and again, and so says it only after a minute.
_PROPAGATES_LATE = 0.2


@dataclass(frozen=True)
class PartitionState:
    """A partition as the controller has it. ``version`` is Kafka's partition epoch."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    epoch: int = 0
    version: int = 0
    elr: tuple[int, ...] = ()
    last_known: int = NOBODY


@dataclass(frozen=True)
class Image:
    """All metadata at one time. ``reported``: the partitions as brokers report them. ``active``: the incarnations of
    the brokers that are not fenced."""

    version: int
    partitions: dict[Place, PartitionState]
    reported: dict[Place, PartitionState]
    active: dict[int, int]


@dataclass
class Registration:
    """A broker as the controller knows it. ``emptied``: what was put in a log directory that it has no more.
    ``leaving``: it shuts down."""

    incarnation: int
    heard: int
    fenced: bool = True
    leaving: bool = False
    emptied: set[Place] = field(default_factory=set)


@dataclass(frozen=True)
class Electorate:
    """Who can be elected, and by what rules: ``active`` brokers; ``unclean``: any of them where no other can be."""

    active: frozenset[int]
    settings: Settings
    unclean: bool
    outside_first: bool = False


def changed(
    state: PartitionState, who: Electorate, without: int | None = None, shut_down_uncleanly: bool = False
) -> tuple[PartitionState, Kind | None]:
    """A partition after its brokers changed, and how its leader was elected; None where that is who it was, in the same
    term.

    ``without``: a broker that was fenced; where it was ``shut_down_uncleanly``, no longer eligible either.
    """
    isr = tuple(broker for broker in state.isr if broker != without)
    elr, last_known = _eligible(state, isr, who.settings, without if shut_down_uncleanly else None)
    leader, kind = _elected(state, isr, elr, last_known, who)
    if leader == state.leader:
        kind = None
    if kind in {Kind.UNCLEAN, Kind.LAST_KNOWN, Kind.ILLEGAL}:
        isr, elr, last_known = (leader,), (), NOBODY
    elif leader in elr:
        isr, elr = (leader,), tuple(broker for broker in elr if broker != leader)
    if leader != NOBODY:
        last_known = NOBODY
    elif who.settings.elr and last_known == NOBODY:
        last_known = state.leader
    if not isr and not who.settings.elr:
        # Without ELR the ISR is never empty: its last member stays in it.
        isr = state.isr
    found = replace(state, isr=isr, elr=elr, last_known=last_known, leader=leader)
    if found == state:
        return state, None
    again = who.settings.new_term_without_fenced and leader == state.leader != NOBODY and not {*state.isr} <= {*isr}
    if again:
        kind = Kind.CLEAN
    return replace(found, epoch=state.epoch + (leader != state.leader or again), version=state.version + 1), kind


def _eligible(
    state: PartitionState, isr: tuple[int, ...], settings: Settings, not_eligible: int | None
) -> tuple[tuple[int, ...], int]:
    if not settings.elr or len(isr) >= settings.effective_min_isr:
        return (), NOBODY
    found = dict.fromkeys((*state.elr, *state.isr))
    return tuple(broker for broker in found if broker not in isr and broker != not_eligible), state.last_known


def _elected(
    state: PartitionState, isr: tuple[int, ...], elr: tuple[int, ...], last_known: int, who: Electorate
) -> tuple[int, Kind | None]:
    clean = {*isr, *elr} & who.active
    if state.leader in clean:
        return state.leader, None
    outside = [broker for broker in state.replicas if broker in who.active and broker not in {*isr, *elr}]
    if who.outside_first and outside:
        return outside[0], Kind.ILLEGAL
    for broker in state.replicas:
        if broker in clean:
            return broker, Kind.CLEAN
    if who.settings.elr and not isr and not elr and last_known in who.active:
        return last_known, Kind.LAST_KNOWN
    if who.unclean and outside:
        return outside[0], Kind.UNCLEAN
    return NOBODY, None


class Controller:
    """One process that is never faulted: what fails is the way to it.

    ``learn`` is called with each broker and what it is told; ``outside_first``: whether a bug elects whom it may not.
    """

    def __init__(
        self,
        world: World,
        settings: Settings,
        processes: dict[int, Process],
        chronicles: dict[Place, Chronicle],
        learn: Callable[[int, Image], None],
        outside_first: Callable[[], bool],
    ) -> None:
        self.process = Process("controller")
        self.partitions = {
            place: PartitionState(facts.replicas, facts.replicas, facts.replicas[0])
            for place, facts in chronicles.items()
        }
        self.registered = {
            broker: Registration(process.incarnation, 0, fenced=False) for broker, process in processes.items()
        }
        self._world, self._settings, self._outside_first = world, settings, outside_first
        self._processes, self._chronicles, self._learn = processes, chronicles, learn
        self._version, self._reported = 0, dict(self.partitions)
        for place, state in self.partitions.items():
            chronicles[place].elections.append(Election(0, state.leader, 0, frozenset(state.isr), Kind.CLEAN))
            chronicles[place].isrs.append((0, frozenset(state.isr)))
        world.every(150 * MS, 250 * MS, self.process, self._fence_the_silent)

    @property
    def image(self) -> Image:
        """What brokers are told now."""
        active = {broker: known.incarnation for broker, known in self.registered.items() if not known.fenced}
        return Image(self._version, dict(self.partitions), dict(self._reported), active)

    def register(self, broker: int, incarnation: int, clean: bool, emptied: bool) -> bool:
        """A new incarnation of a broker comes. Refused while the session of the one before lasts."""
        known = self.registered[broker]
        if not known.fenced and self._world.now - known.heard < self._settings.session_ns:
            return False
        self._fence(broker)
        put = {*self.partitions} if emptied and self._settings.knows_directories else known.emptied
        self.registered[broker] = Registration(incarnation, self._world.now, emptied=put)
        if self._settings.elr and not clean:
            self._update(without=broker, shut_down_uncleanly=True)
        if self._settings.elr and put and self._world.random.random() < _ASSIGNS:
            delay = self._world.between(200 * MS, 1500 * MS)
            self._world.after(delay, partial(self._assigned, broker, incarnation))
        self._publish()
        return True

    def _assigned(self, broker: int, incarnation: int) -> None:
        """A broker tells in which log directory it has put its replicas, which it found nowhere: it may lead again."""
        known = self.registered[broker]
        if known.incarnation == incarnation and known.emptied:
            known.emptied.clear()
            self._update()
            self._publish()

    def heartbeat(self, broker: int, incarnation: int, knows: int) -> None:
        """A broker lives; ``knows`` is the version of its metadata. It is unfenced once that is new enough."""
        known = self.registered[broker]
        if known.incarnation != incarnation:
            return
        known.heard = self._world.now
        if known.leaving:
            return
        if known.fenced and knows == self._version:
            known.fenced = False
            self._update()
            self._publish()
        elif knows < self._version:
            self._tell(broker)

    def shut_down(self, broker: int) -> None:
        """A broker asked to shut down: its partitions are led by others, as far as those are in sync."""
        self.registered[broker].leaving = True
        self._fence(broker)
        self._publish()

    def follows(self, place: Place, broker: int, incarnation: int) -> None:
        """A broker follows a leader: its replica is in the log directory that it has."""
        if self.registered[broker].incarnation == incarnation:
            self.registered[broker].emptied.discard(place)

    def alter(
        self, place: Place, broker: int, epoch: int, version: int, isr: Iterable[tuple[int, int]]
    ) -> PartitionState | str:
        """A leader asks for another ISR (AlterPartition): the new state, or why not. ``isr``: with incarnations."""
        state = self.partitions[place]
        if broker != state.leader or epoch != state.epoch:
            return "FENCED_LEADER_EPOCH"
        if version != state.version:
            return "INVALID_UPDATE_VERSION"
        wanted = list(isr)
        active = self.image.active
        if any(active.get(member) != incarnation for member, incarnation in wanted):
            return "INELIGIBLE_REPLICA"
        members = tuple(sorted(member for member, _ in wanted))
        elr, last_known = _eligible(state, members, self._settings, None)
        again, before = self._settings.new_term_of_smaller_isr and not {*state.isr} <= {*members}, state
        state = replace(
            state, isr=members, elr=elr, last_known=last_known, epoch=epoch + again, version=state.version + 1
        )
        self._put(place, state)
        if again:
            self._leads(place, before, Kind.CLEAN)
        if not self._settings.tells_isr_at_once:
            self._world.after(self._propagates_after, partial(self._propagate, place))
            return state
        self._propagate(place)
        return state

    @property
    def _propagates_after(self) -> int:
        """After what time a leader that changed its ISR itself says so: 5 s after its last change, or 60 s after it
        said so last; it looks every 2.5 s (ReplicaManager, maybePropagateIsrChanges)."""
        latest = 60_000 * MS if self._world.random.random() < _PROPAGATES_LATE else 5_000 * MS
        return self._world.between(0, latest + 2_500 * MS)

    def _propagate(self, place: Place) -> None:
        self._reported[place] = self.partitions[place]
        self._publish()

    def elect_uncleanly(self, place: Place) -> bool:
        """Somebody asks for a leader where there is none, whoever it be (KIP-460)."""
        if self.partitions[place].leader != NOBODY:
            return False
        self._change(place, by_hand=True)
        self._publish()
        return self.partitions[place].leader != NOBODY

    def _fence_the_silent(self) -> None:
        late = [
            broker
            for broker, known in self.registered.items()
            if not known.fenced and self._world.now - known.heard >= self._settings.session_ns
        ]
        for broker in late:
            self._fence(broker)
        if late:
            self._publish()

    def _fence(self, broker: int) -> None:
        self.registered[broker].fenced = True
        self._update(without=broker)

    def _update(self, without: int | None = None, shut_down_uncleanly: bool = False) -> None:
        for place in self.partitions:
            self._change(place, without, shut_down_uncleanly)

    def _change(
        self, place: Place, without: int | None = None, shut_down_uncleanly: bool = False, by_hand: bool = False
    ) -> None:
        before = self.partitions[place]
        electorate = Electorate(
            frozenset(b for b, known in self.registered.items() if not known.fenced and place not in known.emptied),
            self._settings,
            by_hand or self._settings.configuration.elects_uncleanly,
            self._outside_first(),
        )
        state, kind = changed(before, electorate, without, shut_down_uncleanly)
        if state == before:
            return
        self._put(place, state)
        self._reported[place] = state
        if kind is not None:
            said = Kind.BY_HAND if kind is Kind.UNCLEAN and by_hand else kind
            self._leads(place, before, said, electorate.active)

    def _leads(self, place: Place, before: PartitionState, kind: Kind, active: frozenset[int] = frozenset()) -> None:
        """Remember that a term begins. ``before``: what the partition was until now."""
        state, facts = self.partitions[place], self._chronicles[place]
        eligible = frozenset({*before.isr, *before.elr})
        facts.elections.append(Election(self._world.now, state.leader, state.epoch, eligible, kind, active))
        if kind is Kind.ILLEGAL:
            facts.bug_struck.append(self._world.now)

    def _put(self, place: Place, state: PartitionState) -> None:
        self.partitions[place] = state
        self._chronicles[place].isrs.append((self._world.now, frozenset(state.isr)))

    def _publish(self) -> None:
        self._version += 1
        for broker in self.registered:
            self._tell(broker)

    def _tell(self, broker: int) -> None:
        image = self.image
        delay = self._world.between(0, 40 * MS)
        target = self._processes[broker]
        self._world.after(delay, lambda: self._world.send(self.process, target, lambda: self._learn(broker, image)))
