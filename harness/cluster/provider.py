"""All that a run knows of where its nodes live: who brings up a cluster, and the cluster that it brought up."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from harness.cluster.spec import ClusterSpec
from harness.core.clock import ClockOffset
from harness.core.topology import Node, Topology
from nemesis.fault import Needs
from nemesis.shell import NodeShell

_LAST_LINES = 5


def last_words(log: str) -> str:
    """What a node's log says of its end, in one line."""
    lines = log.splitlines()
    relevant = [line for line in lines if " ERROR " in line or " FATAL " in line or "xception" in line] or lines
    return " | ".join(relevant[-_LAST_LINES:])


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

    @property
    def removed_by(self) -> str:
        """The command that removes all of it, where it was kept."""

    @property
    def versions(self) -> Mapping[str, str]:
        """What its nodes run, and where that came from, by name: for run.json, beside Kafka's version."""

    def why_dead(self, node: Node) -> str | None:
        """The last lines that a node logged before it exited; None while it runs. Raises ClusterError."""

    def clocks(self) -> Mapping[str, ClockOffset]:
        """How far each node's wall clock is ahead of this machine's, by the node's name; none where it is the same one.

        What cannot be asked is left out.
        """


@dataclass(frozen=True)
class Finding:
    """One thing that ``doctor`` looked at. ``needed``: without it nothing can be run; else only some faults cannot."""

    name: str
    good: bool
    detail: str
    needed: bool = True


class Provider(Protocol):
    """Brings up clusters in one way."""

    def check(
        self, spec: ClusterSpec, needs: Iterable[Needs], progress: Callable[[str], None] = lambda _: None
    ) -> None:
        """Raise EnvironmentLacks, a line for each thing that this machine lacks for such a cluster and for faults that
        have these needs, and ScenarioError where ``spec`` asks for what cannot be. Nothing is started that stays.

        ``progress`` gets a line for what takes long.
        """

    def up(
        self,
        spec: ClusterSpec,
        run: str,
        directory: Path,
        note: Callable[[str], None],
        keep: bool = False,
        progress: Callable[[str], None] = lambda _: None,
    ) -> AbstractContextManager[Cluster]:
        """Start a cluster for a run that is kept in ``directory``; in the end keep its logs there and remove it.

        ``keep`` leaves it running. ``note`` gets a line for what cannot be kept or removed, ``progress`` one for what
        takes long. Raises EnvironmentLacks and ClusterError.
        """

    def cleanup(self, spec: ClusterSpec, run: str | None, force: bool, dry_run: bool) -> Iterable[str]:
        """Remove everything of one run; where ``run`` is None, of every run that is over.

        ``spec`` says where to look, where it says anything. ``force``: of those that are still going, too.
        ``dry_run``: remove nothing. Returns what was, or would be, removed, and what was left alone, a line each.
        Raises ScenarioError where ``run`` is still going, ClusterError where something stays, when all was tried,
        EnvironmentLacks.
        """

    def doctor(self, spec: ClusterSpec) -> Iterator[Finding]:
        """Everything that must be there for such clusters, as it is found; ``spec`` says where, if it says anything."""
