"""Removing what a run left on the machine, from any process: every container, network and volume carries its label."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from docker import DockerClient
from docker.errors import DockerException, NotFound
from requests.exceptions import RequestException

from harness.cluster.compose import DIRECTORY_LABEL, LABEL
from harness.cluster.engine import connect
from harness.core.errors import ClusterError
from harness.core.lock import is_recorded


def cleanup(run: str | None = None, client: DockerClient | None = None) -> list[str]:
    """Remove everything of one run; where ``run`` is None, of every run that is not still going.

    Returns what was removed, and which runs were left alone, a line each. A node's rules live in its network namespace
    and go with its container. Raises ClusterError where something stays, when all was tried.
    """
    engine = client or connect()
    chosen: dict[str, str | list[str] | bool] = {"label": LABEL if run is None else f"{LABEL}={run}"}
    containers = [
        Thing(f"container {c.name}", c.labels, partial(c.remove, force=True, v=True))
        for c in engine.containers.list(all=True, filters=chosen, ignore_removed=True)
    ]
    others = [
        *(Thing(f"network {n.name}", n.attrs["Labels"], n.remove) for n in engine.networks.list(filters=chosen)),
        *(
            Thing(f"volume {v.name}", v.attrs["Labels"], partial(v.remove, force=True))
            for v in engine.volumes.list(filters=chosen)
        ),
    ]
    going = set() if run else still_going(thing.labels for thing in (*containers, *others))
    with ThreadPoolExecutor(max_workers=8) as pool:
        tried = list(pool.map(Thing.gone, (thing for thing in containers if thing.run not in going)))
    tried += [thing.gone() for thing in others if thing.run not in going]
    left = [str(outcome) for outcome in tried if isinstance(outcome, ClusterError)]
    if left:
        raise ClusterError("; ".join(left))
    return [str(outcome) for outcome in tried] + [f"left {name} alone: it is still going" for name in sorted(going)]


@dataclass(frozen=True)
class Thing:
    """Something that a run left."""

    name: str
    labels: Mapping[str, str]
    remove: Callable[[], object]

    @property
    def run(self) -> str:
        """The run that it is of."""
        return self.labels[LABEL]

    def gone(self) -> str | ClusterError:
        """Remove it, and say so; or why it stays. What is gone already is as good."""
        try:
            self.remove()
        except NotFound:
            return f"{self.name} was gone"
        except (DockerException, RequestException) as exc:
            return ClusterError(f"{self.name} could not be removed: {getattr(exc, 'explanation', None) or exc}")
        return f"removed {self.name}"


def still_going(labels: Iterable[Mapping[str, str]]) -> set[str]:
    """The runs among these labels that a living process records."""
    places = {found[LABEL]: Path(found[DIRECTORY_LABEL]) for found in labels if DIRECTORY_LABEL in found}
    return {run for run, directory in places.items() if is_recorded(directory)}
