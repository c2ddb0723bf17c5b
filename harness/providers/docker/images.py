"""Images without a registry: built once per version from Debian packages and Maven Central jars, then cached."""

import fcntl
import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jinja2
from docker import DockerClient
from docker.errors import BuildError, DockerException, ImageNotFound

from harness.core.errors import ClusterError, EnvironmentLacks, ScenarioError
from harness.core.version import Version, parse_version
from harness.providers.docker.shell import labels_of_no_run, run_toolbox
from harness.resources import recipes

SUITE = "bookworm"
CACHE = Path("~/.cache/kafka-trial").expanduser()
_LOG4J2 = "2.25.4"
_LIBRARIES = "/opt/kafka/libs"

Artifact = tuple[str, str, str]

#: What a version's own dependencies leave out on Java 17: (from, below, artifacts). A logging backend, mostly.
EXTRAS: tuple[tuple[Version, Version, tuple[Artifact, ...]], ...] = (
    ((0, 10), (1, 0), (("javax.xml.bind", "jaxb-api", "2.3.1"),)),
    ((1, 1), (2, 4), (("log4j", "log4j", "1.2.17"), ("org.slf4j", "slf4j-log4j12", "1.7.25"))),
    ((2, 0), (2, 4), (("org.apache.zookeeper", "zookeeper", "3.4.10"),)),
    ((2, 4), (3, 2), (("log4j", "log4j", "1.2.17"), ("org.slf4j", "slf4j-log4j12", "1.7.30"))),
    ((3, 2), (4, 0), (("org.slf4j", "slf4j-reload4j", "1.7.36"),)),
    (
        (4, 0),
        (5, 0),
        (
            ("org.apache.logging.log4j", "log4j-slf4j-impl", _LOG4J2),
            ("org.apache.logging.log4j", "log4j-api", _LOG4J2),
            ("org.apache.logging.log4j", "log4j-core", _LOG4J2),
        ),
    ),
)


def extras(version: Version) -> tuple[Artifact, ...]:
    """The artifacts to add to what ``kafka_2.1x`` of this version asks for."""
    return tuple(artifact for low, below, found in EXTRAS if low <= version < below for artifact in found)


def pom(version: str) -> str:
    """The Maven project whose runtime dependencies are the server of this version. Raises ScenarioError."""
    number = parse_version(version)
    scala = "2.13" if number >= (2, 6) else "2.12" if number >= (1, 0) else "2.11"
    template = jinja2.Template((recipes() / "kafka" / "pom.xml.j2").read_text(encoding="utf-8"), autoescape=True)
    return str(template.render(version=version, scala=scala, extras=extras(number)))


def kafka_image(client: DockerClient, version: str, given: str | None = None) -> str:
    """The tag of the image that runs this version: ``given`` pulled, or our own, built where it is not cached yet.

    Raises EnvironmentLacks where it cannot be had, ScenarioError where ``given`` has another version in it.
    """
    if given is not None:
        check_version(version, version_in(_libraries(client, _pulled(client, given))), given)
        return given
    project = pom(version)
    tag = f"kafka-trial/kafka:{version}-{_digest(recipes() / 'kafka', recipes() / 'java', extra=project)}"
    with _building(client, tag) as missing:
        if missing:
            _build_kafka(client, tag, version, project, _base(client, "java"))
    return tag


def toolbox_image(client: DockerClient) -> str:
    """The tag of the image that faults come from (iptables, tc, ping), built where it is not cached yet.

    Raises EnvironmentLacks where it cannot be had.
    """
    return _base(client, "toolbox")


def cached(client: DockerClient) -> list[str]:
    """The tags of our images that this engine has already."""
    return sorted(tag for image in client.images.list() for tag in image.tags if tag.startswith("kafka-trial/"))


def _base(client: DockerClient, recipe: str) -> str:
    tag = f"kafka-trial/{recipe}:{SUITE}-{_digest(recipes() / recipe)}"
    with _building(client, tag) as missing:
        if missing:
            packages = (recipes() / recipe / "packages").read_text(encoding="utf-8").split()
            with tempfile.TemporaryDirectory(prefix="kafka-trial-") as scratch:
                archive = Path(scratch, "root.tar")
                command = ["mmdebstrap", "--variant=minbase", f"--include={','.join(packages)}", SUITE, str(archive)]
                _run(command, f"image {tag}")
                client.api.import_image_from_file(str(archive), *tag.split(":"))
    return tag


def _build_kafka(client: DockerClient, tag: str, version: str, project: str, base: str) -> None:
    with tempfile.TemporaryDirectory(prefix="kafka-trial-") as scratch:
        context = Path(scratch)
        (context / "pom.xml").write_text(project, encoding="utf-8")
        goal = ["dependency:copy-dependencies", "-DoutputDirectory=libs", "-DincludeScope=runtime"]
        _run(["mvn", "-q", "-B", "-f", str(context / "pom.xml"), *goal], f"Kafka {version}")
        for file in (recipes() / "kafka").iterdir():
            shutil.copy(file, context)
        try:
            client.images.build(path=scratch, tag=tag, buildargs={"BASE": base}, rm=True)
        except (BuildError, DockerException) as exc:
            raise EnvironmentLacks(f"image {tag} could not be built: {exc}") from exc


def _pulled(client: DockerClient, given: str) -> str:
    try:
        client.images.get(given)
    except ImageNotFound:
        try:
            client.images.pull(given)
        except DockerException as exc:
            reason = str(exc).splitlines()[0]
            raise EnvironmentLacks(
                f"cluster.image {given} cannot be had ({reason}): name one that `docker pull` gets, or leave it out"
            ) from exc
    return given


def version_in(listing: str) -> str | None:
    """The version of the server among the names of jars; None where there is none, or more than one."""
    found = set(re.findall(r"^kafka_2\.\d+-(\d+(?:\.\d+)+)\S*\.jar$", listing, re.MULTILINE))
    return found.pop() if len(found) == 1 else None


def check_version(wanted: str, held: str | None, image: str) -> None:
    """Raise EnvironmentLacks where an image holds no Kafka that can be told, ScenarioError where it holds another."""
    if held is None:
        raise EnvironmentLacks(f"cluster.image {image} has no kafka_2.x jar in {_LIBRARIES}, or several: name another")
    if held != wanted:
        raise ScenarioError(
            f"cluster.image {image} holds Kafka {held}, and cluster.version says {wanted}: let both say the same"
        )


def _libraries(client: DockerClient, image: str) -> str:
    """The names of the jars in an image. Raises EnvironmentLacks where it has no such folder."""
    with labels_of_no_run() as labels:
        try:
            return run_toolbox(
                client, image, f"ls {_LIBRARIES}", labels, doing="look inside", entrypoint=[""], network_mode="none"
            )
        except ClusterError as exc:
            raise EnvironmentLacks(f"cluster.image {image} has no Kafka in {_LIBRARIES} ({exc})") from exc


@contextmanager
def _building(client: DockerClient, tag: str) -> Iterator[bool]:
    """Whether the image is missing; two runs that want it wait for each other."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{tag.replace('/', '_').replace(':', '_')}.lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield not _has(client, tag)


def _has(client: DockerClient, tag: str) -> bool:
    try:
        client.images.get(tag)
    except ImageNotFound:
        return False
    return True


def _run(command: list[str], wanted: str) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError as exc:
        raise EnvironmentLacks(f"{wanted} is built with {command[0]}, not found: run scripts/setup") from exc
    except subprocess.CalledProcessError as exc:
        said = [line for line in (exc.stdout + exc.stderr).splitlines() if "ERROR" in line or line.startswith("E:")]
        raise EnvironmentLacks(f"{wanted} cannot be had: {said[0] if said else exc}") from exc


def _digest(*folders: Path, extra: Any = "") -> str:
    """Eight digits that change with any file of the recipes."""
    found = hashlib.sha256(str(extra).encode())
    for file in sorted(file for folder in folders for file in folder.rglob("*") if file.is_file()):
        found.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return found.hexdigest()[:8]
