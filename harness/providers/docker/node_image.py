"""Images that a scenario names: what a node needs in them, and which version of Kafka they have."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from docker import DockerClient
from docker.errors import DockerException

from harness.core.errors import ClusterError, EnvironmentLacks, ScenarioError
from harness.core.version import parse_version
from harness.providers.docker.images import LIBRARIES, Tell, image_of, kafka_image
from harness.providers.docker.shell import labels_of_no_run, run_toolbox
from harness.providers.docker.sources import Sources
from harness.providers.docker.spec import OFFICIAL

_OFFICIAL_SINCE = (3, 7)  # KIP-975

#: The folders in which an image may have Kafka's jars, and an image that has them there.
LAYOUTS = {LIBRARIES: "apache/kafka", "/usr/share/java/kafka": "confluentinc/cp-kafka"}

_NEEDS = "an image must have sh, rm, java on its PATH, and Kafka's jars, of one version, in " + " or ".join(
    f"{folder} (as {image})" for folder, image in LAYOUTS.items()
)

#: Prints which programs of a node are missing, then the folder of jars and the files in it.
_LOOK = (
    "for program in rm java; do command -v $program >/dev/null || echo lacks $program; done\n"
    f"for folder in {' '.join(LAYOUTS)}; do\n"
    'if ls "$folder"/kafka_2.*.jar >/dev/null 2>&1; then echo "$folder"; ls "$folder"; exit; fi; done\n'
)


@dataclass(frozen=True)
class NodeImage:
    """An image that nodes run. ``ours``: it has our start script. ``libraries``: the folder of jars in other images."""

    tag: str
    libraries: str = ""
    ours: bool = True


def node_image(
    client: DockerClient, version: str, asked: str | None, sources: Sources, tell: Tell = lambda _: None
) -> NodeImage:
    """The image for nodes of a version: the one ``asked`` for (``cluster.image``), pulled if missing, else our own.

    Raises EnvironmentLacks if it cannot be pulled or built, or cannot be a node; ScenarioError if it has another
    version.
    """
    if asked is None:
        return NodeImage(kafka_image(client, version, sources, tell))
    name = sources.reference(official(version)) if asked == OFFICIAL else asked
    _pull(client, name, tell)
    folder, held = looked_into(_look(client, name), name)
    check_version(version, held, name)
    return NodeImage(name, folder, ours=False)


def official(version: str) -> str:
    """The image of a version that the Kafka project publishes on Docker Hub. Raises ScenarioError."""
    if parse_version(version) < _OFFICIAL_SINCE:
        raise ScenarioError(
            f"cluster.image: {OFFICIAL} is for Kafka {'.'.join(map(str, _OFFICIAL_SINCE))} and later, and"
            f" cluster.version says {version}: leave cluster.image out"
        )
    return f"apache/kafka:{version}"


def looked_into(printed: str, image: str) -> tuple[str, Sequence[int]]:
    """The folder of an image's jars, and their version, from the output of ``_LOOK``.

    Raises EnvironmentLacks if the image cannot be a node.
    """
    lines = printed.split("\n")
    if lacks := [line.removeprefix("lacks ") for line in lines if line.startswith("lacks ")]:
        raise EnvironmentLacks(f"cluster.image {image} has no {' and no '.join(lacks)}: {_NEEDS}")
    held = version_in(printed)
    if held is None:
        raise EnvironmentLacks(f"cluster.image {image} has no kafka_2.x jar, or several: {_NEEDS}")
    return lines[0], held


def version_in(listing: str) -> tuple[int, ...] | None:
    """The version of Kafka's server, from the names of jars; None if there is none, or more than one.

    In Confluent's own versions (-ccs, -ce) only the first two numbers tell Kafka's version: 7.6 is 3.6.
    """
    found = set(re.findall(r"^kafka_2\.\d+-(\d+(?:\.\d+)+)(-ccs|-ce)?\S*\.jar$", listing, re.MULTILINE))
    if len(found) != 1:
        return None
    number, confluent = found.pop()
    version = tuple(map(int, number.split(".")))
    return kafkas(version) if confluent else version


def kafkas(confluent: tuple[int, ...]) -> tuple[int, ...]:
    """The first two numbers of Kafka's version in a Confluent Platform: 5.0 has 2.0, 6.0 2.6, 7.0 3.0, 8.0 4.0.

    Source: Confluent's table of versions (docs.confluent.io, Supported Versions and Interoperability).
    """
    major, minor, *_ = confluent
    first, from_ = {5: (2, 0), 6: (2, 6)}.get(major, (major - 4, 0))
    return first, minor + from_


def check_version(wanted: str, held: Sequence[int], image: str) -> None:
    """Raise ScenarioError if an image has another version of Kafka than ``wanted``, as far as its jars' names say."""
    if parse_version(wanted)[: len(held)] != tuple(held):
        raise ScenarioError(
            f"cluster.image {image} holds Kafka {'.'.join(map(str, held))}, and cluster.version says {wanted}:"
            " let both say the same"
        )


def _pull(client: DockerClient, image: str, tell: Tell) -> None:
    if image_of(client, image) is not None:
        return
    tell(f"pulling the image {image}, which is kept")
    try:
        client.images.pull(image)
    except DockerException as exc:
        reason = str(exc).splitlines()[0]
        raise EnvironmentLacks(
            f"cluster.image {image} cannot be pulled ({reason}): name one that `docker pull` gets, or leave it out"
        ) from exc


def _look(client: DockerClient, image: str) -> str:
    with labels_of_no_run() as labels:
        try:
            return run_toolbox(client, image, _LOOK, labels, doing="look inside", entrypoint=[""], network_mode="none")
        except ClusterError as exc:
            raise EnvironmentLacks(f"cluster.image {image} is no node ({exc}): {_NEEDS}") from exc
