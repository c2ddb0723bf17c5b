"""Who breaks the cluster: injects faults, remembers them, measures their effect, and heals them whatever happens."""

from collections.abc import Callable, Collection, Mapping
from random import Random
from types import TracebackType
from typing import Self

from harness.core.clock import Clock
from harness.core.errors import ClusterError, KafkaTrialError, NothingInjected, ScenarioError
from harness.core.topology import Node, View
from harness.history.journal import Journal
from nemesis.catalogue import kind_of
from nemesis.evidence import Effect, Seen
from nemesis.fault import Aim, Fault, HalfWay, on_each
from nemesis.injected import Active, InjectedFault
from nemesis.shell import NodeShell, ProcessState
from nemesis.targets import Expression, Pins, check_new_name, resolve


class Nemesis:
    """Injects and heals. Leaving it heals all. One thread at a time; ``active`` and ``pins`` may be read by others.

    Takes the nodes' shell, what says who has which role now, the journal of the table ``faults``, the run's clock, and
    the generator that ``one-of`` draws from where an injection brings none.
    """

    def __init__(
        self, shell: NodeShell, look: Callable[[], View], journal: Journal, clock: Clock, random: Random
    ) -> None:
        self._shell = shell
        #: Seconds that the timeline may still take: what is injected is healed by then.
        self.within = 0.0
        self._look = look
        self._journal = journal
        self._clock = clock
        self._random = random
        self._active: dict[str, InjectedFault] = {}
        self._names: set[str] = set()
        self._pins: dict[str, tuple[Node, ...]] = {}

    @property
    def _lasting(self) -> NodeShell:
        return self._shell.lasting(self.within)

    @property
    def active(self) -> tuple[Active, ...]:
        """What is broken now, in the order it was injected."""
        return tuple(
            Active(i.aim.name, kind_of(i.fault), tuple(node.name for node in i.remaining))
            for i in list(self._active.values())
        )

    @property
    def pins(self) -> Pins:
        """Roles pinned to nodes, the nodes hit by each named injection among them."""
        return dict(self._pins)

    def inject(
        self,
        fault: Fault,
        name: str | None = None,
        pin: Mapping[str, Expression] | None = None,
        random: Random | None = None,
    ) -> str:
        """Resolve, journal, inject, journal. Returns the injection's name: ``name``, or one made from the fault's kind.

        ``pin`` names roles to remember as they are before the fault; its targets may use them. ``random`` is what its
        ``one-of`` draw from. Raises ScenarioError (a name used twice, a target that means nothing), NothingInjected (a
        role that nobody has now, traffic that another fault shapes), ClusterError (an injection that failed half way:
        it stays active, to be healed).
        """
        if fault.renews_network:
            self._count_before_it_is_gone()
        try:
            injection = self._aimed(fault, name, pin or {}, random or self._random)
        except ClusterError as exc:
            raise NothingInjected(str(exc)) from exc
        nodes = injection.aim.nodes
        self._write(injection)
        try:
            injection.seen.add("injected", fault.inject(self._lasting, injection.aim))
        except ClusterError as exc:
            self._failed(injection, exc)
            raise
        injection.injected_ns = self._clock.now()
        if fault.renews_network:
            self._let_go(injection, nodes)
        self._write(injection)
        self._end_released(injection, nodes)
        if not fault.lasting:
            self._end(injection, nodes)
        return injection.aim.name

    def heal(self, name: str) -> None:
        """Undo one injection, verified; once healed, nothing changes. Raises ScenarioError, ClusterError."""
        if name not in self._names:
            raise ScenarioError(f"heal: nothing was injected as {name!r}; injected: {', '.join(sorted(self._names))}")
        if name in self._active:
            self._heal(self._active[name])

    def meant(self, names: Collection[str]) -> dict[str, tuple[Node, ...]]:
        """The nodes that each of these names means, a node's or a pin's; not those of injections."""
        known = [name for name in names if name not in self._names]
        return {name: self._spared(name) for name in known if name in self._pins or self._shell.topology.named(name)}

    def heal_all(self, except_: Collection[str] = ()) -> None:
        """Undo everything, verified; ended and paused nodes run again.

        ``except_`` names injections that stay as they are, or nodes or pins whose process stays as it is. Heals what
        can be healed, and says what could not be journalled, before it raises ClusterError.
        """
        failures = self._heal_each(except_)
        if failures:
            raise ClusterError(f"not healed: {'; '.join(map(str, failures))}")

    def _heal_each(self, except_: Collection[str] = ()) -> list[Exception]:
        """Heal all that ``except_`` does not name; return what failed, a journal that took nothing among it.

        A defect, or Ctrl-C, is raised when all were tried; a second Ctrl-C at once.
        """
        failures: list[Exception] = []
        defects: list[Exception] = []
        interrupted: KeyboardInterrupt | None = None
        spared: set[Node] = set()
        for name in except_:
            try:
                spared.update(() if name in self._names else self._spared(name))
            except KafkaTrialError as exc:
                failures.append(exc)
        chosen = [i for i in self._active.values() if i.aim.name not in except_]
        # Networks first: a node that starts again must not be cut again.
        for injection in sorted(chosen, key=lambda i: not i.fault.lives_in_network):
            try:
                self._heal(injection, spared)
            except (KafkaTrialError, OSError) as exc:
                failures.append(exc)
            except KeyboardInterrupt as exc:
                if interrupted:
                    raise
                interrupted = exc
            except Exception as exc:  # noqa: BLE001 - a defect in one fault keeps no other from being healed
                defects.append(exc)
        if interrupted:
            raise interrupted
        if defects:
            raise defects[0]
        return failures

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Heal all once more. What cannot be healed ends no run: the journal has it as never healed, and why."""
        self._heal_each()

    def _failed(self, injection: InjectedFault, why: ClusterError) -> None:
        """Keep what is known of the nodes that it did not fail on; it stays active, to be healed."""
        done = why.evidence if isinstance(why, HalfWay) else {}
        injection.seen.add("injected", done)
        injection.seen.note("injected", failed=str(why))
        try:
            if injection.fault.renews_network:
                self._let_go(injection, tuple(done))
        finally:
            self._write(injection)
        self._end_released(injection, tuple(done))

    def _end_released(self, injection: InjectedFault, nodes: Collection[Node]) -> None:
        """End the faults that kept the processes of ``nodes`` in a state that ``injection`` took them out of."""
        released = injection.fault.releases
        for ended in [i for i in self._active.values() if i.fault.keeps in released and i is not injection]:
            self._end(ended, nodes)

    def _aimed(self, fault: Fault, name: str | None, pin: Mapping[str, Expression], random: Random) -> InjectedFault:
        """The injection, active from now on: whatever happens next, it will be healed."""
        injecting_ns = self._clock.now()
        view = self._look()
        for role, expression in pin.items():
            check_new_name(role, [node.name for node in self._shell.topology.nodes])
            self._pins[role] = self._resolve(expression, view, random)
        chosen = self._unused(name, kind_of(fault))
        targets = fault.targets().items()
        aim = Aim(chosen, {party: self._resolve(expression, view, random) for party, expression in targets})
        fault.check(aim, self._shell.topology)
        for other in self._active.values():
            shared = [node.name for node in aim.nodes if node in other.remaining]
            if shared and (why := fault.clashes(other.fault)) is not None:
                said = why.format(of=f" of {', '.join(shared)}", other=repr(other.aim.name))
                raise ClusterError(f"{chosen}: {said}")
        injection = InjectedFault(fault, aim, injecting_ns)
        self._names.add(chosen)
        self._active[chosen] = injection
        if name is not None:
            self._pins[name] = aim.nodes
        return injection

    def _unused(self, name: str | None, kind: str) -> str:
        if name is None:
            numbered = (f"{kind}-{n}" for n in range(1, len(self._names) + 2))
            return next(candidate for candidate in numbered if candidate not in self._names)
        if name in self._names:
            raise ScenarioError(f"inject: something was injected as {name!r} before; give it another name")
        check_new_name(name, [node.name for node in self._shell.topology.nodes])
        return name

    def _resolve(self, expression: Expression, view: View, random: Random) -> tuple[Node, ...]:
        return resolve(expression, view, self._shell.topology, self._pins, random)

    def _spared(self, name: str) -> tuple[Node, ...]:
        if name in self._pins:
            return self._pins[name]
        node = self._shell.topology.named(name)
        if node is None:
            raise ScenarioError(f"heal: {name!r} is no injection, pinned name or node")
        return (node,)

    def _heal(self, injection: InjectedFault, spared: Collection[Node] = frozenset()) -> None:
        """A lasting process fault can be healed on some of its nodes; one in networks is healed as a whole.

        A process that another active fault keeps in the same state stays in it.
        """
        whole = injection.fault.lives_in_network
        healing = tuple(node for node in injection.remaining if whole or node not in spared)
        if not healing:
            return
        injection.healing_ns = self._clock.now()
        try:
            self._write(injection)
        finally:
            # A journal that takes nothing more (a full disk) leaves no fault behind.
            self._undo(injection, healing)

    def _undo(self, injection: InjectedFault, healing: Collection[Node]) -> None:
        fault, aim = injection.fault, injection.aim
        whole = fault.lives_in_network
        counted = self._measure(injection, "healing")
        if whole:
            # Counters of packets show all that the fault did; the state of a process does not show how it came about.
            injection.counted.update(counted)
        self._probe(injection)
        try:
            kept = self._kept_by_others(injection)
            freed = tuple(node for node in healing if node not in kept)
            try:
                fault.heal(self._shell, aim if whole else aim.on(freed))
            finally:
                # One node that cannot be started keeps no other waiting.
                if fault.renews_network:
                    self._let_go(injection, freed)
        except KafkaTrialError as exc:
            injection.seen.note("healing", not_healed=str(exc))
            self._write(injection)
            raise
        self._end(injection, healing)

    def _kept_by_others(self, injection: InjectedFault) -> set[Node]:
        """The nodes whose process another active fault keeps in the same state."""
        state = injection.fault.keeps
        others = [i for i in self._active.values() if i is not injection and state and i.fault.keeps is state]
        return {node for other in others for node in other.remaining}

    def _end(self, injection: InjectedFault, nodes: Collection[Node]) -> None:
        """It lasts no longer on ``nodes``; when no node remains it is healed."""
        injection.ended.update(nodes)
        if not injection.remaining:
            injection.healed_ns = self._clock.now()
            injection.healing_ns = injection.healing_ns or injection.healed_ns
            self._active.pop(injection.aim.name)
        self._write(injection)

    def _count_before_it_is_gone(self) -> None:
        """Measure what a process may take with it. That takes a while: who is meant is asked afterwards."""
        for injection in list(self._active.values()):
            if injection.fault.lives_in_network:
                self._measure(injection, "before_process_ended")

    def _let_go(self, injection: InjectedFault, nodes: Collection[Node]) -> None:
        """Apply again what is on the networks of those of ``nodes`` that run, then let them go on."""
        states = on_each(nodes, self._shell.process)
        alive = [node for node, state in states.items() if state is not ProcessState.EXITED]
        try:
            for other in [i for i in self._active.values() if i.fault.lives_in_network]:
                if not set(alive).isdisjoint(other.aim.nodes):
                    self._apply_again(other, alive)
        finally:
            on_each(alive, self._shell.release)
        now = self._clock.now()
        injection.seen.add("released", {node: Seen(Effect.NOT_KNOWN, {"at_ns": now}) for node in alive})

    def _apply_again(self, injection: InjectedFault, nodes: Collection[Node]) -> None:
        """What cannot be applied again holds no longer; the node goes on all the same."""
        try:
            injection.seen.add("applied_again", injection.fault.apply_again(self._lasting, injection.aim, nodes))
        except ClusterError as exc:
            hit = [node for node in injection.aim.nodes if node in nodes]
            injection.seen.add(
                "applied_again", {node: Seen(Effect.DOES_NOT_HOLD, {"failed": str(exc)}) for node in hit}
            )
        injection.seen.note("applied_again", at_ns=self._clock.now())
        self._write(injection)

    def _measure(self, injection: InjectedFault, when: str) -> Collection[Node]:
        """Measure it, and return the nodes of which it says something.

        What cannot be measured must not keep anything from being healed: the evidence says why.
        """
        remaining = injection.aim if injection.fault.lives_in_network else injection.aim.on(injection.remaining)
        try:
            measured = injection.fault.measure(self._shell, remaining)
        except ClusterError as exc:
            injection.seen.note(when, not_measured=str(exc))
            return ()
        injection.seen.add(when, measured)
        return measured.keys()

    def _probe(self, injection: InjectedFault) -> None:
        """See by traffic of our own what an injection does, where it misleads no counter that is still to be read."""
        networked = [i for i in self._active.values() if i.fault.lives_in_network]
        if injection.without_effect or any(other.without_effect for other in networked):
            return
        try:
            injection.seen.add("probed", injection.fault.probe(self._shell, injection.aim))
        except ClusterError as exc:
            injection.seen.note("probed", not_measured=str(exc))

    def _write(self, injection: InjectedFault) -> None:
        self._journal.append_rows([injection.row()])
