"""What a run needs of whoever brings up its cluster."""

from typing import Protocol

from harness.core.topology import Node, Topology
from nemesis.shell import NodeShell


class Cluster(Protocol):
    """A running cluster: its nodes, how to act on one, and why one ended."""

    @property
    def run(self) -> str:
        """The name of the run that it was brought up for."""

    @property
    def topology(self) -> Topology:
        """Its nodes."""

    @property
    def shell(self) -> NodeShell:
        """Acts on its nodes."""

    def why_dead(self, node: Node) -> str | None:
        """The last lines that a node logged before it exited; None while it runs."""
