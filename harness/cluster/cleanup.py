"""Removing what a run left on the machine, from any process: every container, network and volume carries its label."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from docker import DockerClient
from docker.errors import APIError, NotFound
from docker.models.containers import Container

from harness.cluster.compose import LABEL
from harness.cluster.engine import connect
from harness.core.errors import ClusterError


def cleanup(run: str | None = None, client: DockerClient | None = None) -> list[str]:
    """Remove everything of one run, or of all runs where ``run`` is None. Returns what was removed, a line each.

    A node's rules live in its network namespace and go with its container. Raises ClusterError where something stays.
    """
    engine = client or connect()
    chosen: dict[str, str | list[str] | bool] = {"label": LABEL if run is None else f"{LABEL}={run}"}
    containers = engine.containers.list(all=True, filters=chosen)
    with ThreadPoolExecutor(max_workers=8) as pool:
        removed = list(pool.map(_container, containers))
    for network in engine.networks.list(filters=chosen):
        _remove(network.remove, f"network {network.name}")
        removed.append(f"network {network.name}")
    for volume in engine.volumes.list(filters=chosen):
        _remove(partial(volume.remove, force=True), f"volume {volume.name}")
        removed.append(f"volume {volume.name}")
    return removed


def _container(container: Container) -> str:
    name = f"container {container.name}"
    _remove(partial(container.remove, force=True, v=True), name)
    return name


def _remove(act: Callable[[], object], name: str) -> None:
    try:
        act()
    except NotFound:
        return
    except APIError as exc:
        raise ClusterError(f"{name} could not be removed: {exc.explanation or exc}") from exc
