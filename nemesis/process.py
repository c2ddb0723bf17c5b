"""Ending, pausing and starting a node's process."""

from collections.abc import Iterable, Mapping
from typing import ClassVar

from pydantic import Field

from harness.core.topology import Node
from harness.core.waiting import wait_for
from nemesis.fault import Aim, Evidence, Fault, on_each
from nemesis.shell import NodeShell, ProcessState
from nemesis.targets import Expression

#: Seconds for a process to be seen in the state that a signal puts it in.
_SEEN_WITHIN = 10.0


class _ProcessFault(Fault):
    target: Expression = Field(description="whose process")

    def targets(self) -> Mapping[str, Expression]:
        return {"target": self.target}

    def bit(self, shell: NodeShell, aim: Aim) -> Evidence:
        return Evidence(False, {node.name: str(state) for node, state in on_each(aim.nodes, shell.process).items()})


class _Ended(_ProcessFault):
    """A node whose process has ended: it is healed by starting it."""

    renews_network: ClassVar[bool] = True

    def heal(self, shell: NodeShell, aim: Aim) -> None:
        start_exited(shell, aim.nodes)


class Kill(_Ended):
    """SIGKILL. What the process had written stays in the kernel's page cache: this loses no unflushed data."""

    def inject(self, shell: NodeShell, aim: Aim) -> Evidence:
        on_each(_not(shell, aim.nodes, ProcessState.EXITED), lambda node: shell.signal(node, "KILL"))
        return _seen(shell, aim.nodes, ProcessState.EXITED)


class Stop(_Ended):
    """A graceful shutdown: SIGTERM, and a broker hands its leaderships over first."""

    def inject(self, shell: NodeShell, aim: Aim) -> Evidence:
        continue_stopped(shell, aim.nodes)
        on_each(_not(shell, aim.nodes, ProcessState.EXITED), shell.stop)
        return _seen(shell, aim.nodes, ProcessState.EXITED)


class Restart(_ProcessFault):
    """A graceful shutdown, and a start at once. Healed when it is done."""

    lasting: ClassVar[bool] = False
    renews_network: ClassVar[bool] = True
    ends: ClassVar[frozenset[str]] = frozenset({"kill", "stop", "pause"})

    def inject(self, shell: NodeShell, aim: Aim) -> Evidence:
        def restart(node: Node) -> None:
            shell.stop(node)
            _seen(shell, (node,), ProcessState.EXITED)
            shell.start(node)

        continue_stopped(shell, aim.nodes)
        on_each(aim.nodes, restart)
        return _seen(shell, aim.nodes, ProcessState.RUNNING)

    def heal(self, shell: NodeShell, aim: Aim) -> None:
        start_exited(shell, aim.nodes)


class Pause(_ProcessFault):
    """SIGSTOP: the process is there and answers nothing, as in a long garbage collection."""

    def inject(self, shell: NodeShell, aim: Aim) -> Evidence:
        on_each(aim.nodes, lambda node: shell.signal(node, "STOP"))
        return _seen(shell, aim.nodes, ProcessState.STOPPED)

    def heal(self, shell: NodeShell, aim: Aim) -> None:
        continue_stopped(shell, aim.nodes)


class Start(_ProcessFault):
    """Start nodes that were killed or stopped."""

    lasting: ClassVar[bool] = False
    drawable: ClassVar[bool] = False
    renews_network: ClassVar[bool] = True
    ends: ClassVar[frozenset[str]] = frozenset({"kill", "stop"})

    def inject(self, shell: NodeShell, aim: Aim) -> Evidence:
        return start_exited(shell, aim.nodes)

    def heal(self, shell: NodeShell, aim: Aim) -> None:
        """A node that was started stays started."""


class Resume(_ProcessFault):
    """SIGCONT to nodes that were paused."""

    lasting: ClassVar[bool] = False
    drawable: ClassVar[bool] = False
    ends: ClassVar[frozenset[str]] = frozenset({"pause"})

    def inject(self, shell: NodeShell, aim: Aim) -> Evidence:
        return continue_stopped(shell, aim.nodes)

    def heal(self, shell: NodeShell, aim: Aim) -> None:
        """A node that was resumed stays resumed."""


def start_exited(shell: NodeShell, nodes: Iterable[Node]) -> Evidence:
    """Start those of ``nodes`` that have exited, and see all of them run. It did something if one had exited."""
    exited = _those(shell, nodes, ProcessState.EXITED)
    on_each(exited, shell.start)
    return Evidence(bool(exited), _seen(shell, exited, ProcessState.RUNNING).facts)


def continue_stopped(shell: NodeShell, nodes: Iterable[Node]) -> Evidence:
    """Continue those of ``nodes`` that are stopped, and see them run. It did something if one was stopped."""
    stopped = _those(shell, nodes, ProcessState.STOPPED)
    on_each(stopped, lambda node: shell.signal(node, "CONT"))
    return Evidence(bool(stopped), _seen(shell, stopped, ProcessState.RUNNING).facts)


def _those(shell: NodeShell, nodes: Iterable[Node], state: ProcessState) -> tuple[Node, ...]:
    return tuple(node for node, found in on_each(nodes, shell.process).items() if found is state)


def _not(shell: NodeShell, nodes: Iterable[Node], state: ProcessState) -> tuple[Node, ...]:
    return tuple(node for node, found in on_each(nodes, shell.process).items() if found is not state)


def _seen(shell: NodeShell, nodes: Iterable[Node], state: ProcessState) -> Evidence:
    def see(node: Node) -> ProcessState:
        return wait_for(
            lambda: shell.process(node),
            awaited=f"{node.name} to be {state}",
            within=_SEEN_WITHIN,
            good=lambda seen: seen is state,
            every=0.02,
        )

    return Evidence(True, {node.name: str(seen) for node, seen in on_each(nodes, see).items()})
