"""A provider of a test's own: it is chosen and asked as Docker is. Only a cluster that the test gives it comes up."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import Field

from harness.cluster.provider import Cluster, Diagnosis
from harness.cluster.spec import ClusterSpec, Part
from harness.core.errors import ClusterError, EnvironmentLacks
from nemesis.fault import Needs


class ToySpec(Part):
    """What only the toy knows."""

    bell: str | None = None
    colours: list[str] = Field([])


@dataclass
class Toy:
    """A provider whose clusters never come up, but for ``cluster``, which is up."""

    lacks: str = ""
    cluster: Cluster | None = None
    asked: list[tuple[object, ...]] = field(default_factory=list)

    def check(
        self, spec: ClusterSpec, needs: Iterable[Needs], progress: Callable[[str], None] = lambda _: None
    ) -> None:
        progress("the box is opened")
        self.asked.append(("check", spec, tuple(needs)))
        if self.lacks:
            raise EnvironmentLacks(self.lacks)

    def has_background(self, spec: ClusterSpec) -> bool:
        self.asked.append(("has background", spec))
        return True

    @contextmanager
    def up(
        self,
        spec: ClusterSpec,
        run: str,
        directory: Path,
        note: Callable[[str], None],
        keep: bool = False,
        background: bool = False,
        progress: Callable[[str], None] = lambda _: None,
    ) -> Iterator[Cluster]:
        self.asked.append(("up", spec, run, directory, keep, background))
        note("the bell is cracked")
        if self.cluster is None:
            raise ClusterError("the toy is broken")
        yield self.cluster

    def cleanup(self, spec: ClusterSpec, run: str | None, force: bool, dry_run: bool) -> list[str]:
        self.asked.append(("cleanup", spec))
        return [f"put away the toy of {run}, {force}, {dry_run}"]

    def doctor(self, spec: ClusterSpec) -> Iterator[Diagnosis]:
        self.asked.append(("doctor", spec))
        yield Diagnosis("toy", not self.lacks, self.lacks or "in its box")
        yield Diagnosis("bell", False, "cracked", needed=False)
