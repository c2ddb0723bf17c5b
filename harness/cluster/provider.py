"""All that a run knows of where its nodes live: the provider that brings up a cluster, and the cluster."""

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

#: A choice: an error, and the lines that lead to it, for one line of ours.
_LAST_LINES = 5


def last_words(log: str) -> str:
    """What a node's log says about its end, in one line."""
    lines = log.splitlines()
    relevant = [line for line in lines if " ERROR " in line or " FATAL " in line or "xception" in line] or lines
    return " | ".join(relevant[-_LAST_LINES:])


class Cluster(Protocol):
    """A running cluster: its nodes, how to act on a node, and why a node ended."""

    @property
    def run(self) -> str:
        """The name of its run."""

    @property
    def topology(self) -> Topology:
        """Its nodes."""

    @property
    def shell(self) -> NodeShell:
        """Acts on its nodes."""

    @property
    def removed_by(self) -> str:
        """The command that removes the whole cluster, if it was kept."""

    @property
    def versions(self) -> Mapping[str, str]:
        """What its nodes run, and its origin, by name: goes into run.json next to Kafka's version."""

    def why_dead(self, node: Node) -> str | None:
        """The last lines that a node logged before it exited; None while it runs. Raises ClusterError."""

    def to_foreground(self) -> None:
        """Give a cluster that started in the background its full share of the cores. Raises ClusterError."""

    def clocks(self) -> Mapping[str, ClockOffset]:
        """How far each node's wall clock is ahead of this machine's, by the node's name; empty if it is the same clock.

        A node that cannot be asked is left out.
        """


@dataclass(frozen=True)
class Diagnosis:
    """One result of ``doctor``. ``needed``: without it nothing can be run; otherwise only some faults cannot."""

    name: str
    good: bool
    detail: str
    needed: bool = True


class Provider(Protocol):
    """Brings up clusters in one way."""

    def check(
        self, spec: ClusterSpec, needs: Iterable[Needs], progress: Callable[[str], None] = lambda _: None
    ) -> None:
        """Check that such a cluster can be brought up, and that faults with these ``needs`` can be injected. Leaves
        nothing running.

        ``progress`` gets a line for each step that takes long. Raises EnvironmentLacks with a line for each thing that
        is missing, and ScenarioError if ``spec`` asks for something impossible.
        """

    def has_background(self, spec: ClusterSpec) -> bool:
        """Whether such a cluster can start with only those cores that other clusters on its machines leave idle. Raises
        EnvironmentLacks."""

    def up(
        self,
        spec: ClusterSpec,
        run: str,
        directory: Path,
        note: Callable[[str], None],
        keep: bool = False,
        background: bool = False,
        progress: Callable[[str], None] = lambda _: None,
    ) -> AbstractContextManager[Cluster]:
        """Start a cluster for the run in ``directory``. At the end store its logs there and remove the cluster.

        ``keep`` leaves it running. ``background``: as in ``has_background``, until ``Cluster.to_foreground``. ``note``
        gets a line for each thing that cannot be stored or removed, ``progress`` a line for each step that takes long.
        Raises EnvironmentLacks and ClusterError.
        """

    def cleanup(self, spec: ClusterSpec, run: str | None, force: bool, dry_run: bool) -> Iterable[str]:
        """Remove everything of one run; if ``run`` is None, of every finished run.

        ``spec`` may say where to look. ``force``: remove also what unfinished runs use. ``dry_run``: remove nothing.
        Returns a line for each thing that was removed, or would be, and for each that was left alone. Raises
        ScenarioError if ``run`` is still going, ClusterError at the end if something could not be removed,
        EnvironmentLacks.
        """

    def doctor(self, spec: ClusterSpec) -> Iterator[Diagnosis]:
        """Check everything that such clusters need, one diagnosis after the other. ``spec`` may say where to look."""
