"""The nemesis breaks the cluster: it injects faults, records them, measures their effect, and always heals them."""

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
    """Injects faults and heals them; leaving the context heals all. Only one thread may use it, but others may read
    ``active`` and ``pins``.

    ``look`` returns which node has which role now; ``journal`` is that of the table ``faults``; ``one-of`` draws from
    ``random`` unless an injection has a generator of its own.
    """

    def __init__(
        self, shell: NodeShell, look: Callable[[], View], journal: Journal, clock: Clock, random: Random
    ) -> None:
        self._shell = shell
        #: Seconds that the timeline may still take: every fault is healed by then.
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
        """The faults that last now, in the order of their injection."""
        return tuple(
            Active(i.aim.name, kind_of(i.fault), tuple(node.name for node in i.remaining))
            for i in list(self._active.values())
        )

    @property
    def pins(self) -> Pins:
        """Pinned names and their nodes. The name of a named injection is one of them: it means the nodes hit."""
        return dict(self._pins)

    def inject(
        self,
        fault: Fault,
        name: str | None = None,
        pin: Mapping[str, Expression] | None = None,
        random: Random | None = None,
    ) -> str:
        """Resolve the targets, journal, inject, journal again. Returns the injection's name: ``name``, or one made from
        the fault's kind.

        ``pin`` gives names to targets as they are before the fault; the fault's own targets may use these names. Its
        ``one-of`` draw from ``random``. Raises ScenarioError (a name used twice, an unknown target), NothingInjected (a
        role that no node has now, traffic that another fault already shapes), ClusterError (an injection that failed
        half way: it stays active, to be healed).
        """
        if fault.renews_network:
            self._measure_network_faults()
        try:
            injection = self._activate(fault, name, pin or {}, random or self._random)
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
            self._release(injection, nodes)
        self._write(injection)
        self._end_released(injection, nodes)
        if not fault.lasting:
            self._end(injection, nodes)
        return injection.aim.name

    def heal(self, name: str) -> None:
        """Undo one injection and verify it. A second heal changes nothing. Raises ScenarioError, ClusterError."""
        if name not in self._names:
            raise ScenarioError(f"heal: nothing was injected as {name!r}; injected: {', '.join(sorted(self._names))}")
        if name in self._active:
            self._heal(self._active[name])

    def meant(self, names: Collection[str]) -> dict[str, tuple[Node, ...]]:
        """The nodes behind each of these names, if it is a node's or a pin's. Names of injections are left out."""
        known = [name for name in names if name not in self._names]
        return {
            name: self._nodes_named(name) for name in known if name in self._pins or self._shell.topology.named(name)
        }

    def heal_all(self, except_: Collection[str] = ()) -> None:
        """Undo every injection and verify it; ended and paused nodes run again.

        ``except_`` names injections that stay, or nodes or pins whose process stays as it is. Raises ClusterError after
        it has tried all; the error also says if the journal could not be written.
        """
        failures = self._heal_each(except_)
        if failures:
            raise ClusterError(f"not healed: {'; '.join(map(str, failures))}")

    def _heal_each(self, except_: Collection[str] = ()) -> list[Exception]:
        """Heal all that ``except_`` does not name; return the failures, those of writing the journal included.

        A defect or a first Ctrl-C is raised after all were tried, a second Ctrl-C at once.
        """
        failures: list[Exception] = []
        defects: list[Exception] = []
        interrupted: KeyboardInterrupt | None = None
        spared: set[Node] = set()
        for name in except_:
            try:
                spared.update(() if name in self._names else self._nodes_named(name))
            except KafkaTrialError as exc:
                failures.append(exc)
        chosen = [i for i in self._active.values() if i.aim.name not in except_]
        # Network faults first: a node that starts again must not be cut again.
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
        """Heal all once more. A failure does not end the run: the journal says that the fault was never healed, and
        why."""
        self._heal_each()

    def _failed(self, injection: InjectedFault, why: ClusterError) -> None:
        """Keep the evidence of the nodes where the injection did not fail. It stays active, to be healed."""
        done = why.evidence if isinstance(why, HalfWay) else {}
        injection.seen.add("injected", done)
        injection.seen.note("injected", failed=str(why))
        try:
            if injection.fault.renews_network:
                self._release(injection, tuple(done))
        finally:
            self._write(injection)
        self._end_released(injection, tuple(done))

    def _end_released(self, injection: InjectedFault, nodes: Collection[Node]) -> None:
        """End the faults that kept the processes of ``nodes`` in a state which ``injection`` has ended."""
        released = injection.fault.releases
        for ended in [i for i in self._active.values() if i.fault.keeps in released and i is not injection]:
            self._end(ended, nodes)

    def _activate(self, fault: Fault, name: str | None, pin: Mapping[str, Expression], random: Random) -> InjectedFault:
        """Resolve the targets and make the injection active: whatever happens next, it will be healed."""
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

    def _nodes_named(self, name: str) -> tuple[Node, ...]:
        if name in self._pins:
            return self._pins[name]
        node = self._shell.topology.named(name)
        if node is None:
            raise ScenarioError(f"heal: {name!r} is no injection, pinned name or node")
        return (node,)

    def _heal(self, injection: InjectedFault, spared: Collection[Node] = frozenset()) -> None:
        """Heal a process fault on the nodes that are not ``spared``, a network fault always as a whole.

        If another active fault keeps a process in the same state, the process stays in it.
        """
        whole = injection.fault.lives_in_network
        healing = tuple(node for node in injection.remaining if whole or node not in spared)
        if not healing:
            return
        # (If a node's rules could not be removed, those of others may be gone since the first try.)
        if not whole or injection.healing_ns is None:
            injection.healing_ns = self._clock.now()
        try:
            self._write(injection)
        finally:
            # The fault is undone even if the journal cannot be written (a full disk).
            self._undo(injection, healing)

    def _undo(self, injection: InjectedFault, healing: Collection[Node]) -> None:
        fault, aim = injection.fault, injection.aim
        whole = fault.lives_in_network
        counted = self._measure(injection, "healing")
        injection.tried = True
        if whole:
            # Packet counters show everything that the fault did; the state of a process does not show what caused it.
            if counted is None:
                injection.seen.lose_sight(injection.aim.nodes)
            else:
                injection.counted.update(counted)
        self._probe(injection)
        try:
            kept = self._kept_by_others(injection)
            freed = tuple(node for node in healing if node not in kept)
            try:
                fault.heal(self._shell, aim if whole else aim.on(freed))
            finally:
                # If one node cannot be started, the others do not wait for it.
                if fault.renews_network:
                    self._release(injection, freed)
        except KafkaTrialError as exc:
            injection.seen.note("healing", not_healed=str(exc))
            self._write(injection)
            raise
        self._end(injection, healing)

    def _kept_by_others(self, injection: InjectedFault) -> set[Node]:
        """The nodes whose process some other active fault keeps in the same state."""
        state = injection.fault.keeps
        others = [i for i in self._active.values() if i is not injection and state and i.fault.keeps is state]
        return {node for other in others for node in other.remaining}

    def _end(self, injection: InjectedFault, nodes: Collection[Node]) -> None:
        """End the injection on ``nodes``. It is healed when no node remains."""
        now = self._clock.now()
        if len(nodes) < len(injection.aim.nodes):
            injection.seen.note("ended", **{node.name: now for node in nodes if node not in injection.ended})
        injection.ended.update(nodes)
        if not injection.remaining:
            injection.healed_ns = now
            injection.healing_ns = injection.healing_ns or injection.healed_ns
            self._active.pop(injection.aim.name)
        self._write(injection)

    def _measure_network_faults(self) -> None:
        """Measure the network faults before a process ends, for their counters may end with it. This takes a while, so
        targets are resolved afterwards. Where such a measurement failed, a fault acted in part, whatever is counted
        later."""
        for injection in list(self._active.values()):
            if not injection.fault.lives_in_network:
                continue
            counted = self._measure(injection, "before_process_ended")
            if counted is None and self._shell.network_ends_with_process:
                uncounted = dict.fromkeys(injection.aim.nodes, Seen(Effect.IN_PART))
                injection.seen.add("before_process_ended", uncounted)

    def _release(self, injection: InjectedFault, nodes: Collection[Node]) -> None:
        """Apply network faults again on the ``nodes`` that run, then release these nodes."""
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
        """Apply one fault again. If that fails, the fault held in part there; the node is released all the same."""
        try:
            injection.seen.add("applied_again", injection.fault.apply_again(self._lasting, injection.aim, nodes))
        except ClusterError as exc:
            hit = [node for node in injection.aim.nodes if node in nodes]
            injection.seen.add("applied_again", {node: Seen(Effect.IN_PART, {"failed": str(exc)}) for node in hit})
        injection.seen.note("applied_again", at_ns=self._clock.now())
        self._write(injection)

    def _measure(self, injection: InjectedFault, when: str) -> Collection[Node] | None:
        """Measure the fault, and return the nodes that the measurement contains; None if it failed.

        A failed measurement must not prevent the heal: the evidence says why it failed.
        """
        if not injection.measurable:
            return ()
        try:
            measured = injection.fault.measure(self._shell, injection.aim.on(injection.measurable))
        except ClusterError as exc:
            injection.seen.note(when, not_measured=str(exc))
            return None
        injection.seen.add(when, measured)
        return measured.keys()

    def _probe(self, injection: InjectedFault) -> None:
        """Probe the fault with our own traffic, unless that traffic would disturb a counter that is still needed."""
        networked = [i for i in self._active.values() if i.fault.lives_in_network]
        if injection.without_effect or any(other.without_effect for other in networked):
            return
        try:
            injection.seen.add("probed", injection.fault.probe(self._shell, injection.aim))
        except ClusterError as exc:
            injection.seen.note("probed", not_measured=str(exc))

    def _write(self, injection: InjectedFault) -> None:
        self._journal.append_rows([injection.row()])
