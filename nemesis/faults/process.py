"""Faults that end, pause and start a node's process."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import ClassVar

from pydantic import Field
from typing_extensions import override

from harness.core.quantities import PositiveDuration
from harness.core.topology import Node
from harness.core.waiting import wait_for
from nemesis.evidence import Effect, Evidence, Seen
from nemesis.fault import Aim, Fault, on_each, seen_on_each
from nemesis.shell import NodeShell, ProcessState
from nemesis.targets import Expression

#: Seconds to wait until a process is in the state that a signal causes. A choice: on a busy machine even a kill is seen
#: late; only a signal that does not act takes so long.
_SEEN_WITHIN = 10.0

#: The exit code of a process that SIGKILL ended: 128 plus the signal's number.
_KILLED = 137

#: The exit codes of a shutdown by SIGTERM: a JVM exits with 128 plus the signal's number. Kafka exits with 1 if its
#: shutdown fails or if it halts itself (kafka.Kafka, Exit).
_SHUT_DOWN = frozenset({0, 143})

_RUNNING, _STOPPED, _EXITED = ProcessState.RUNNING, ProcessState.STOPPED, ProcessState.EXITED


class _ProcessFault(Fault):
    target: Expression = Field(description="whose process")

    def targets(self) -> Mapping[str, Expression]:
        return {"target": self.target}

    def measure(self, shell: NodeShell, aim: Aim) -> Evidence:
        """If a process is not in the state that the fault keeps, the fault does not hold. The right state proves
        nothing new. A fault that does not last measures nothing."""
        if self.keeps is None:
            return {}
        return {
            node: Seen(Effect.NOT_KNOWN if state is self.keeps else Effect.DOES_NOT_HOLD, {"process": str(state)})
            for node, state in on_each(aim.nodes, shell.process).items()
        }


class Kill(_ProcessFault):
    """SIGKILL. What the process wrote stays in the kernel's page cache, so no unflushed data is lost."""

    keeps: ClassVar[ProcessState | None] = _EXITED
    releases: ClassVar[frozenset[ProcessState]] = frozenset({_STOPPED})
    ends_process: ClassVar[bool] = True
    renews_network: ClassVar[bool] = True

    def inject(self, shell: NodeShell, aim: Aim) -> Evidence:
        return seen_on_each(aim.nodes, lambda node: self._kill(shell, node))

    def _kill(self, shell: NodeShell, node: Node) -> Seen:
        killed = _changed(shell, node, {_RUNNING, _STOPPED}, lambda: shell.signal(node, "KILL"), _EXITED)
        return _ended_by(killed, shell, node, lambda code: code == _KILLED)

    def heal(self, shell: NodeShell, aim: Aim) -> None:
        start_exited(shell, aim.nodes)


class _Graceful(_ProcessFault):
    grace: PositiveDuration = Field(
        60.0, description="how long the shutdown may take; then the process is killed, which is no `stop`"
    )

    @property
    @override
    def takes(self) -> float:
        return self.grace

    def stop(self, shell: NodeShell, node: Node) -> Seen:
        """Shut a node down. A process that had to be killed, or broke off, did not shut down."""
        _continue(shell, node)
        stopped = _changed(shell, node, {_RUNNING}, lambda: shell.stop(node, self.grace), _EXITED)
        return _ended_by(stopped, shell, node, _SHUT_DOWN.__contains__)


class Stop(_Graceful):
    """A graceful shutdown: SIGTERM, and a broker hands its leaderships over first.

    A KRaft broker asks its controller before, and waits for it for up to 5 minutes (BrokerServer.shutdown).
    """

    keeps: ClassVar[ProcessState | None] = _EXITED
    releases: ClassVar[frozenset[ProcessState]] = frozenset({_STOPPED})
    ends_process: ClassVar[bool] = True
    renews_network: ClassVar[bool] = True

    def inject(self, shell: NodeShell, aim: Aim) -> Evidence:
        return seen_on_each(aim.nodes, lambda node: self.stop(shell, node))

    def heal(self, shell: NodeShell, aim: Aim) -> None:
        start_exited(shell, aim.nodes)


class Restart(_Graceful):
    """A graceful shutdown, then a start at once. It is over when the node has started."""

    lasting: ClassVar[bool] = False
    ends_process: ClassVar[bool] = True
    renews_network: ClassVar[bool] = True
    releases: ClassVar[frozenset[ProcessState]] = frozenset({_EXITED, _STOPPED})

    def inject(self, shell: NodeShell, aim: Aim) -> Evidence:
        return seen_on_each(aim.nodes, lambda node: self._restart(shell, node))

    def _restart(self, shell: NodeShell, node: Node) -> Seen:
        stopped = self.stop(shell, node)
        _start(shell, node)
        return stopped

    def heal(self, shell: NodeShell, aim: Aim) -> None:
        start_exited(shell, aim.nodes)


class Pause(_ProcessFault):
    """SIGSTOP: the process exists but answers nothing, as in a long garbage collection."""

    halts_process: ClassVar[bool] = True
    keeps: ClassVar[ProcessState | None] = _STOPPED

    def inject(self, shell: NodeShell, aim: Aim) -> Evidence:
        return seen_on_each(aim.nodes, lambda node: self._pause(shell, node))

    def _pause(self, shell: NodeShell, node: Node) -> Seen:
        return _changed(shell, node, {_RUNNING}, lambda: shell.signal(node, "STOP"), _STOPPED)

    def heal(self, shell: NodeShell, aim: Aim) -> None:
        continue_stopped(shell, aim.nodes)


class Start(_ProcessFault):
    """Start nodes that were killed or stopped."""

    lasting: ClassVar[bool] = False
    drawable: ClassVar[bool] = False
    renews_network: ClassVar[bool] = True
    releases: ClassVar[frozenset[ProcessState]] = frozenset({_EXITED})

    def inject(self, shell: NodeShell, aim: Aim) -> Evidence:
        return start_exited(shell, aim.nodes)

    def heal(self, shell: NodeShell, aim: Aim) -> None:
        """Do nothing: the node stays started."""


class Resume(_ProcessFault):
    """SIGCONT to nodes that were paused."""

    lasting: ClassVar[bool] = False
    drawable: ClassVar[bool] = False
    releases: ClassVar[frozenset[ProcessState]] = frozenset({_STOPPED})

    def inject(self, shell: NodeShell, aim: Aim) -> Evidence:
        return continue_stopped(shell, aim.nodes)

    def heal(self, shell: NodeShell, aim: Aim) -> None:
        """Do nothing: the node stays resumed."""


def start_exited(shell: NodeShell, nodes: Iterable[Node]) -> Evidence:
    """Start the ``nodes`` that have exited, and check that they run. Raises HalfWay."""
    return seen_on_each(nodes, lambda node: _start(shell, node))


def continue_stopped(shell: NodeShell, nodes: Iterable[Node]) -> Evidence:
    """Continue the ``nodes`` that are stopped, and check that they run. Raises HalfWay."""
    return seen_on_each(nodes, lambda node: _continue(shell, node))


def _start(shell: NodeShell, node: Node) -> Seen:
    return _changed(shell, node, {_EXITED}, lambda: shell.start(node), _RUNNING)


def _continue(shell: NodeShell, node: Node) -> Seen:
    return _changed(shell, node, {_STOPPED}, lambda: shell.signal(node, "CONT"), _RUNNING)


def _ended_by(seen: Seen, shell: NodeShell, node: Node, meant: Callable[[int], bool]) -> Seen:
    """Add the exit code of an ended process to its evidence. With another code than the fault should cause, the process
    has ended, but not as it should."""
    if seen.effect is not Effect.HOLDS:
        return seen
    code = shell.exit_code(node)
    return Seen(Effect.HOLDS if meant(code) else Effect.IN_PART, {**seen.facts, "exit_code": code})


def _changed(
    shell: NodeShell, node: Node, from_: Collection[ProcessState], act: Callable[[], object], to: ProcessState
) -> Seen:
    """Act on a node whose process is in one of the states ``from_``, and wait until it is in the state ``to``.

    Does nothing if the process is in another state. Raises ClusterError if it does not reach ``to``.
    """
    before = shell.process(node)
    if before not in from_:
        return Seen(Effect.DOES_NOT_HOLD, {"process": str(before)})
    act()
    after = wait_for(
        lambda: shell.process(node),
        awaited=f"{node.name} to be {to}",
        within=_SEEN_WITHIN,
        good=lambda seen: seen is to,
        every=0.02,
    )
    return Seen(Effect.HOLDS, {"process": str(after), "before": str(before)})
