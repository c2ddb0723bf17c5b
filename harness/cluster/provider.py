"""All that a run knows of where its nodes live: who brings up a cluster, and the cluster that it brought up."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from harness.cluster.spec import ClusterSpec
from harness.core.topology import Node, Topology
from nemesis.fault import Needs
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
        """The last lines that a node logged before it exited; None while it runs. Raises ClusterError."""


@dataclass(frozen=True)
class Finding:
    """One thing that ``doctor`` looked at. ``needed``: without it nothing can be run; else only some faults cannot."""

    name: str
    good: bool
    detail: str
    needed: bool = True


class Provider(Protocol):
    """Brings up clusters in one way."""

    def check(self, spec: ClusterSpec, needs: Iterable[Needs]) -> None:
        """Raise EnvironmentLacks, a line for each thing that this machine lacks for such a cluster and for faults that
        have these needs, and ScenarioError where ``spec`` asks for what cannot be. Nothing is started that stays."""

    def up(
        self, spec: ClusterSpec, run: str, directory: Path, note: Callable[[str], None], keep: bool = False
    ) -> AbstractContextManager[Cluster]:
        """Start a cluster for a run that is kept in ``directory``; in the end keep its logs there and remove it.

        ``keep`` leaves it running. ``note`` takes a line for what cannot be kept or removed. Raises EnvironmentLacks
        and ClusterError.
        """

    def cleanup(self, run: str | None, force: bool, dry_run: bool) -> Iterable[str]:
        """Remove everything of one run; where ``run`` is None, of every run that is over.

        ``force``: of those that are still going, too. ``dry_run``: remove nothing. Returns what was, or would be,
        removed, and what was left alone, a line each. Raises ScenarioError where ``run`` is still going, ClusterError
        where something stays, when all was tried, EnvironmentLacks.
        """

    def doctor(self) -> Iterator[Finding]:
        """Everything that this machine must have for such clusters, as it is found."""
