"""What this machine has of what clusters of containers, and faults on them, need."""

from collections.abc import Callable, Iterator

from docker import DockerClient

from harness.cluster.provider import Finding
from harness.core.errors import EnvironmentLacks
from harness.providers.docker.engine import compose_command
from harness.providers.docker.images import cached, toolbox_image
from harness.providers.docker.shell import labels_of_no_run, without_network
from nemesis.catalogue import FAULTS
from nemesis.preflight import lacking


def doctor(connect: Callable[[], DockerClient]) -> Iterator[Finding]:
    """Compose, the engine, its images, and every fault of the catalogue."""
    yield compose()
    try:
        client = connect()
    except EnvironmentLacks as exc:
        yield Finding("docker", False, str(exc))
        return
    yield Finding("docker", True, f"engine {client.version()['Version']}")
    yield images(client)
    yield from faults(client)


def compose() -> Finding:
    """The command that Compose is here."""
    try:
        return Finding("compose", True, " ".join(compose_command()))
    except EnvironmentLacks as exc:
        return Finding("compose", False, str(exc))


def images(client: DockerClient) -> Finding:
    """The images that are built already: the others are, when they are first needed."""
    tags = cached(client)
    return Finding("images", True, " ".join(tags) if tags else "none yet: built when they are first needed")


def faults(client: DockerClient) -> Iterator[Finding]:
    """Every fault of the catalogue, and what the kernel lacks for it (in its simplest form)."""
    try:
        image = toolbox_image(client)
    except EnvironmentLacks as exc:
        yield Finding("toolbox", False, str(exc))
        return
    with labels_of_no_run() as labels:
        script = without_network(client, image, labels)
        missing = {kind: lacking([fault.model_construct().needs], script) for kind, fault in FAULTS.items()}
    for kind, lines in missing.items():
        yield Finding(kind, not lines, "; ".join(lines), needed=False)
