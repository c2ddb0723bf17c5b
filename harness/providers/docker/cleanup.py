"""Removes what a run left on the machine. Any process can: every container, network and volume has the run's label."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from docker import DockerClient
from docker.errors import DockerException, NotFound
from requests.exceptions import RequestException

from harness.core.errors import ClusterError, ScenarioError
from harness.history.lock import is_recorded
from harness.providers.docker.compose import DIRECTORY_LABEL, LABEL, is_ours
from harness.providers.docker.engine import answering, connect


def cleanup(
    run: str | None = None, client: DockerClient | None = None, force: bool = False, dry_run: bool = False
) -> list[str]:
    """Remove everything of one run; if ``run`` is None, of every finished run.

    ``force``: remove also what unfinished runs use. ``dry_run``: remove nothing. Returns a line for each thing that was
    removed, or would be, and for each that was left alone. A node's rules are in its network namespace, which ends with
    its container. Raises ScenarioError if ``run`` is still going, ClusterError if the engine does not list what exists,
    and at the end if something could not be removed.
    """
    engine = client or connect()
    chosen: dict[str, str | list[str] | bool] = {"label": LABEL if run is None else f"{LABEL}={run}"}
    with answering("what runs left"):
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
    going = {} if force else still_going(thing.labels for thing in (*containers, *others))
    if run in going:
        raise ScenarioError(f"{run} is left alone: {going[run]}; --force removes it all the same")

    def wanted(things: Iterable[Thing]) -> list[Thing]:
        return [thing for thing in things if is_ours(thing.labels) and thing.run not in going]

    if dry_run:
        done = [f"would remove {thing.name} of {thing.run}" for thing in wanted((*containers, *others))]
    else:
        done = _removed(wanted(containers), wanted(others))
    foreign = [thing for thing in (*containers, *others) if not is_ours(thing.labels)]
    done += [f"left {thing.name} alone: it is labelled {LABEL}, but no run started it" for thing in foreign]
    return done + [f"left {name} alone: {why}" for name, why in sorted(going.items())]


def _removed(containers: "Iterable[Thing]", others: "Iterable[Thing]") -> list[str]:
    """Remove containers, then what they use. Raises ClusterError at the end if something could not be removed."""
    with ThreadPoolExecutor(max_workers=8) as pool:
        tried = list(pool.map(Thing.gone, containers))
    tried += [thing.gone() for thing in others]
    failed = [str(outcome) for outcome in tried if isinstance(outcome, ClusterError)]
    if failed:
        raise ClusterError("; ".join(failed))
    return [str(outcome) for outcome in tried]


@dataclass(frozen=True)
class Thing:
    """Something that a run left."""

    name: str
    labels: Mapping[str, str]
    remove: Callable[[], object]

    @property
    def run(self) -> str:
        """The run that left it."""
        return self.labels[LABEL]

    def gone(self) -> str | ClusterError:
        """Remove it, and return a line about it; or the error, if it cannot be removed. It may be gone already."""
        try:
            self.remove()
        except NotFound:
            return f"{self.name} was gone"
        except (DockerException, RequestException) as exc:
            return ClusterError(f"{self.name} could not be removed: {getattr(exc, 'explanation', None) or exc}")
        return f"removed {self.name}"


def still_going(labels: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """The runs among these labels that are still going, or of which that cannot be seen, and which of both."""
    # Two stores may each have a run of this name: it is still going if one of the two is.
    directories = {(found[LABEL], Path(found[DIRECTORY_LABEL])) for found in labels if DIRECTORY_LABEL in found}
    reasons = ((run, _going(directory)) for run, directory in sorted(directories))
    return {run: why for run, why in reasons if why is not None}


def _going(directory: Path) -> str | None:
    try:
        return "it is still going" if is_recorded(directory) else None
    except OSError as exc:
        return f"whether it is still going cannot be seen ({directory}: {exc.strerror})"
