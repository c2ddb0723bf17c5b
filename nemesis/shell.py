"""The seam between faults and machines: what a fault can do to a node."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Protocol

from harness.core.topology import Node, Topology

Signal = Literal["KILL", "STOP", "CONT"]


class ProcessState(StrEnum):
    """What a node's main process does. ``STOPPED`` is SIGSTOPped: there, but not scheduled."""

    RUNNING = "running"
    STOPPED = "stopped"
    EXITED = "exited"


@dataclass(frozen=True)
class Switch:
    """A dead man's switch: a name on its node, and the script that takes a change back where nobody else does."""

    name: str
    undo: str


class NodeShell(Protocol):
    """Acts on the nodes of one run. Safe to call from several threads. Every method raises ClusterError."""

    @property
    def topology(self) -> Topology:
        """The nodes that it acts on."""

    @property
    def network_ends_with_process(self) -> bool:
        """Whether a node's network, and what was put there, is gone when its main process has exited."""

    def lasting(self, seconds: float) -> "NodeShell":
        """The same, for changes that are taken back within so many seconds.

        Where nodes outlive the harness, what is not taken back in time their machines take back by themselves.
        """

    def in_network_of(self, node: Node, script: str, arm: Switch | None = None, disarm: str | None = None) -> str:
        """Run ``sh -euc script`` with NET_ADMIN in the node's network namespace; return its standard output.

        Before it a switch is armed, if this shell is ``lasting``; after it the one named is disarmed. Raises
        ClusterError with the last line of its standard error where it fails.
        """

    def start_helper(self, node: Node, name: str, script: str) -> None:
        """Run ``sh -euc script`` in the node's network namespace for as long as it runs; replaces one of this name."""

    def stop_helper(self, node: Node, name: str) -> None:
        """End the node's helper of this name. Where there is none, nothing changes."""

    def signal(self, node: Node, signal: Signal) -> None:
        """Send a signal to the node's main process."""

    def start(self, node: Node) -> None:
        """Start a node that has exited: it has its network, and waits for ``release``. One that runs is left alone."""

    def release(self, node: Node) -> None:
        """Let a node go on that was started. One that waits for nothing is left alone."""

    def stop(self, node: Node, grace: float) -> None:
        """Ask the node to shut down (SIGTERM), kill it after ``grace`` seconds, and return when it has exited."""

    def process(self, node: Node) -> ProcessState:
        """What the node's main process does now."""

    def exit_code(self, node: Node) -> int:
        """What a node's main process, which has exited, ended with: 128 and its number where a signal ended it."""

    def wipe(self, node: Node) -> int:
        """Delete all data of a node that has exited; return how many files that were."""
