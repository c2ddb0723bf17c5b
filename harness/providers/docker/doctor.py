"""Checks whether this machine has what clusters of containers, and faults on them, need."""

from collections.abc import Callable, Iterator

from docker import DockerClient

from harness.cluster.provider import Diagnosis
from harness.core.errors import EnvironmentLacks, ScenarioError
from harness.providers.docker.engine import compose_command
from harness.providers.docker.images import base_there, cached, toolbox_image
from harness.providers.docker.reaching import CLIENTS, reaches_containers, wanted_clients
from harness.providers.docker.shell import labels_of_no_run, without_network
from harness.providers.docker.sources import Sources, chosen
from nemesis.catalogue import FAULTS
from nemesis.preflight import Kernel


def doctor(connect: Callable[[], DockerClient], wanted: Sources) -> Iterator[Diagnosis]:
    """Check Compose, the engine, the images from the ``wanted`` sources, and every fault of the catalogue."""
    yield compose()
    try:
        client = connect()
    except EnvironmentLacks as exc:
        yield Diagnosis("docker", False, str(exc))
        return
    yield Diagnosis("docker", True, f"engine {client.version()['Version']}")
    yield images(client, wanted)
    yield from faults(client, wanted)


def compose() -> Diagnosis:
    """Which command is Compose here."""
    try:
        return Diagnosis("compose", True, " ".join(compose_command()))
    except EnvironmentLacks as exc:
        return Diagnosis("compose", False, str(exc))


def images(client: DockerClient, wanted: Sources) -> Diagnosis:
    """What a run takes images from, or builds them from when they are first needed; and which exist already."""
    tags = cached(client)
    there = " ".join(tags) if tags else "none yet"
    if built := base_there(client, wanted):
        return Diagnosis("images", True, f"on a base that is there, built from {built}; there: {there}")
    try:
        base = chosen(client, wanted)
    except EnvironmentLacks as exc:
        return Diagnosis("images", False, f"{exc}; there: {there}")
    return Diagnosis("images", True, f"built from {base or 'Debian by mmdebstrap'}; there: {there}")


def faults(client: DockerClient, wanted: Sources) -> Iterator[Diagnosis]:
    """For every fault of the catalogue: what the kernel lacks for its simplest form, or else its mechanism."""
    try:
        image = toolbox_image(client, wanted)
    except EnvironmentLacks as exc:
        yield Diagnosis("toolbox", False, str(exc))
        return
    yield clients(client, image)
    with labels_of_no_run() as labels:
        kernel = Kernel(without_network(client, image, labels))
        found = {kind: kernel.report(fault) for kind, fault in FAULTS.items()}
    for kind, (lines, means) in found.items():
        yield Diagnosis(kind, not lines, "; ".join(lines) or means, needed=False)


def clients(client: DockerClient, toolbox: str) -> Diagnosis:
    """How clients would reach nodes."""
    try:
        wanted = wanted_clients(None)
    except ScenarioError as exc:
        return Diagnosis("clients", False, str(exc))
    if wanted is not None:
        return Diagnosis("clients", True, f"{wanted}, as {CLIENTS} says")
    direct = reaches_containers(client, toolbox)
    reached = "direct, by nodes' addresses" if direct else "published: nodes' addresses cannot be reached from here"
    return Diagnosis("clients", True, reached)
