"""Images without a registry: built once per version from Debian packages and Maven Central jars, then cached."""

import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from docker import DockerClient
from docker.errors import BuildError, DockerException, ImageNotFound

from harness.cluster.distribution import pom
from harness.core.errors import ClusterError, EnvironmentLacks, ScenarioError
from harness.providers.docker.shell import labels_of_no_run, run_toolbox
from harness.providers.docker.turns import alone
from harness.resources import recipes

SUITE = "bookworm"
_LIBRARIES = "/opt/kafka/libs"


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
    with alone(tag.replace("/", "_").replace(":", "_")):
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
