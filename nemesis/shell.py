"""The seam between faults and machines: what a fault can do to a node."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Protocol

from harness.core.topology import Node, Topology

Signal = Literal["KILL", "STOP", "CONT"]


class ProcessState(StrEnum):
    """The state of a node's main process. ``STOPPED`` is after SIGSTOP: it exists, but is not scheduled."""

    RUNNING = "running"
    STOPPED = "stopped"
    EXITED = "exited"


@dataclass(frozen=True)
class Switch:
    """A dead man's switch: its name on the node, and the script that undoes a change if nobody else does."""

    name: str
    undo: str


class NodeShell(Protocol):
    """Acts on the nodes of one run. Safe to call from several threads. Every method raises ClusterError."""

    @property
    def topology(self) -> Topology:
        """The nodes that it acts on."""

    @property
    def network_ends_with_process(self) -> bool:
        """Whether a node's network namespace, with everything in it, ends when its main process exits."""

    def lasting(self, seconds: float) -> "NodeShell":
        """The same shell, for changes that will be undone within ``seconds``.

        If nodes outlive the harness, their machines undo by themselves what is not undone in time.
        """

    def in_network_of(self, node: Node, script: str, arm: Switch | None = None, disarm: str | None = None) -> str:
        """Run ``sh -euc script`` with NET_ADMIN in the node's network namespace; return its standard output.

        If this shell is ``lasting``, it arms the switch ``arm`` first. It disarms the switch named ``disarm``
        afterwards. If the script fails, raises ClusterError with the last line of its standard error.
        """

    def start_helper(self, node: Node, name: str, script: str) -> None:
        """Start ``sh -euc script`` in the node's network namespace and let it run; it replaces a helper of the same
        name."""

    def helper_runs(self, node: Node, name: str) -> bool:
        """Whether the node's helper of this name runs now."""

    def stop_helper(self, node: Node, name: str) -> None:
        """End the node's helper of this name, if there is one."""

    def signal(self, node: Node, signal: Signal) -> None:
        """Send a signal to the node's main process."""

    def start(self, node: Node) -> None:
        """Start a node that has exited: it gets its network, and waits for ``release``. A running node is left
        alone."""

    def release(self, node: Node) -> None:
        """Let a started node go on. A node that does not wait is left alone."""

    def stop(self, node: Node, grace: float) -> None:
        """Ask the node to shut down (SIGTERM), kill it after ``grace`` seconds, and return when it has exited."""

    def process(self, node: Node) -> ProcessState:
        """The state of the node's main process now."""

    def exit_code(self, node: Node) -> int:
        """The exit code of a node's main process, which has exited: 128 plus the signal's number if a signal ended
        it."""

    def wipe(self, node: Node) -> int:
        """Delete all data of a node that has exited; return the number of files deleted."""
