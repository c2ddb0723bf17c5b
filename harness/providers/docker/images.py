"""Our images. Each is built once per version from a Debian base and jars of Maven Central, and then cached."""

import hashlib
import shutil
import ssl
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import environ, geteuid
from pathlib import Path

from docker import DockerClient
from docker.errors import APIError, BuildError, DockerException
from docker.models.images import Image

from harness.cluster.distribution import pom
from harness.cluster.jars import fetch_jars
from harness.cluster.one_at_a_time import one_at_a_time
from harness.core.errors import EnvironmentLacks
from harness.providers.docker.bootstrap import lacking_to_make, make_base
from harness.providers.docker.sources import SUITE, Source, Sources, chosen, sources
from harness.resources import recipes

#: The folder of our images that has Kafka's jars.
LIBRARIES = "/opt/kafka/libs"

#: The label of our images with what they were built from. An image inherits it from its base.
BASE = "kafka-trial.base"

#: The variables that Docker passes to the commands of a build, and does not store in the image.
_PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


#: Gets a line for each step that takes long.
Tell = Callable[[str], None]


def _nobody(_line: str) -> None:
    return


@dataclass(frozen=True)
class Built:
    """An existing image, and the source of its base."""

    tag: str
    source: Source


def kafka_image(client: DockerClient, version: str, wanted: Sources | None = None, tell: Tell = _nobody) -> str:
    """The tag of our image that runs this version. It is built if it is not cached. Raises EnvironmentLacks."""
    wanted = wanted or sources()
    digest = _digest(recipes() / "kafka", recipes() / "java", extra=pom(version))

    def make(name: Callable[[Source], str]) -> Built:
        base = _base(client, "java", wanted, tell)
        build_kafka(client, name(base.source), version, base.tag, maven=shutil.which("mvn") is not None)
        return Built(name(base.source), base.source)

    return _cached_or_made(client, f"kafka:{version}", digest, wanted, make, tell).tag


def toolbox_image(client: DockerClient, wanted: Sources | None = None, tell: Tell = _nobody) -> str:
    """The tag of the image with the faults' tools (iptables, tc, ping). It is built if it is not cached.

    Raises EnvironmentLacks if it cannot be built.
    """
    return _base(client, "toolbox", wanted or sources(), tell).tag


def cached(client: DockerClient) -> list[str]:
    """The tags of our images that this engine has already."""
    return sorted(tag for image in client.images.list() for tag in image.tags if tag.startswith("kafka-trial/"))


def origin(client: DockerClient, tag: str) -> str:
    """An image's digest, and what it was built from, in one line for run.json."""
    image = client.images.get(tag)
    published = next(iter(image.attrs.get("RepoDigests") or []), None)
    digest = published.partition("@")[2] if published else image.id
    base = image.labels.get(BASE)
    return f"{tag.partition('@')[0]}@{digest}, {f'built from {base}' if base else 'not built here'}"


def lacking(client: DockerClient, wanted: Sources | None = None) -> list[str]:
    """The Debian packages that this machine lacks to build our images; none if the bases exist, or a registry
    answers."""
    wanted = wanted or sources()
    if base_there(client, wanted):
        return []
    try:
        chosen(client, wanted)
    except EnvironmentLacks:
        return lacking_to_make() if Source.BUILD in wanted.allowed else []
    return []


def base_there(client: DockerClient, wanted: Sources) -> str:
    """What the bases of our images were built from, if this engine has all of them, from a ``wanted`` source, as built
    from the present recipes; empty if it has not."""
    bases = [_found(client, f"{recipe}:{SUITE}", _digest_of_base(recipe), wanted) for recipe in ("java", "toolbox")]
    labels = [str(client.images.get(built.tag).labels.get(BASE, built.tag)) for built in bases if built]
    return " and ".join(dict.fromkeys(labels)) if all(bases) else ""


def java_image(client: DockerClient, wanted: Sources | None = None) -> str:
    """The tag of the base of Kafka's images. It is built if it is not cached. Raises EnvironmentLacks."""
    return _base(client, "java", wanted or sources()).tag


def _base(client: DockerClient, recipe: str, wanted: Sources, tell: Tell = _nobody) -> Built:
    packages = recipes() / recipe / "packages"

    def make(name: Callable[[Source], str]) -> Built:
        debian = chosen(client, wanted)
        if debian is not None:
            built = Built(name(Source.REGISTRY), Source.REGISTRY)
            _build(client, recipes() / recipe, built.tag, {"BASE": debian}, recipes() / "Dockerfile", {BASE: debian})
            return built
        tag = name(Source.BUILD)
        with tempfile.TemporaryDirectory(prefix="kafka-trial-") as scratch:
            archive = Path(scratch, "root.tar")
            included = packages.read_text(encoding="utf-8").split()
            make_base(client, included, SUITE, archive, root=geteuid() == 0)
            repository, version = tag.split(":")
            label = f'LABEL {BASE}="Debian {SUITE} by mmdebstrap"'
            client.api.import_image_from_file(str(archive), repository, version, [label])
        return Built(tag, Source.BUILD)

    return _cached_or_made(client, f"{recipe}:{SUITE}", _digest_of_base(recipe), wanted, make, tell)


def _cached_or_made(
    client: DockerClient,
    name: str,
    digest: str,
    wanted: Sources,
    make: Callable[[Callable[[Source], str]], Built],
    tell: Tell,
) -> Built:
    """One of our images from a ``wanted`` source. Two runs that need it wait for each other.

    ``make`` gets the tag for each source, and builds the image from one of the sources.
    """
    with one_at_a_time(f"{name}-{digest}".replace(":", "_")):
        found = _found(client, name, digest, wanted)
        if found is not None:
            return found
        tell(f"building the image {name}, which is kept: it takes a minute or more")
        return make(lambda source: _tag(name, source, digest, wanted))


def _found(client: DockerClient, name: str, digest: str, wanted: Sources) -> Built | None:
    tags = (Built(_tag(name, source, digest, wanted), source) for source in wanted.allowed)
    return next((built for built in tags if image_of(client, built.tag)), None)


def _tag(name: str, source: Source, digest: str, wanted: Sources) -> str:
    """The tag of an image of ours. Another mirror may have another base: then it is another image."""
    if source is Source.REGISTRY and wanted.mirror:
        digest = hashlib.sha256(f"{digest} {wanted.mirror}".encode()).hexdigest()[: len(digest)]
    return f"kafka-trial/{name}-{source}-{digest}"


def build_kafka(client: DockerClient, tag: str, version: str, base: str, maven: bool) -> None:
    """Build an image of Kafka's server on a base with Java. Raises EnvironmentLacks.

    ``maven``: this machine's Maven downloads the jars; otherwise one in a stage of the image does.
    """
    with tempfile.TemporaryDirectory(prefix="kafka-trial-") as scratch:
        context = Path(scratch)
        for file in (recipes() / "kafka").iterdir():
            shutil.copy(file, context)
        (context / "certificates.pem").write_bytes(_trusted())
        project = pom(version)
        if maven:
            fetch_jars(version, project, context)
        else:
            (context / "pom.xml").write_text(project, encoding="utf-8")
        _build(client, context, tag, {"BASE": base, "MAVEN": "no" if maven else "yes"})


def _build(
    client: DockerClient,
    context: Path,
    tag: str,
    arguments: Mapping[str, str],
    dockerfile: Path | None = None,
    labels: Mapping[str, str] | None = None,
) -> None:
    proxies = {name: environ[name] for name in _PROXIES if name in environ}
    try:
        client.images.build(
            path=str(context),
            dockerfile=str(dockerfile) if dockerfile else None,
            tag=tag,
            buildargs={**proxies, **arguments},
            labels=dict(labels or {}),
            rm=True,
        )
    except BuildError as exc:
        lines = [line.strip() for part in exc.build_log for line in str(part.get("stream", "")).splitlines()]
        errors = [line for line in lines if line.startswith("E: ") or "ERROR" in line]
        raise EnvironmentLacks(f"image {tag} could not be built: {errors[0] if errors else exc}") from exc
    except DockerException as exc:
        raise EnvironmentLacks(f"image {tag} could not be built: {exc}") from exc


def _trusted() -> bytes:
    """The certificates that this machine trusts. It may trust more than the base image does, such as a company's."""
    bundle = ssl.get_default_verify_paths().cafile
    return Path(bundle).read_bytes() if bundle else b""


def image_of(client: DockerClient, tag: str) -> Image | None:
    """An image of this engine; None if it does not have it, or the tag is not a valid one."""
    try:
        return client.images.get(tag)
    except APIError as exc:
        if not exc.is_client_error():
            raise
        return None


def _digest_of_base(recipe: str) -> str:
    return _digest(recipes() / recipe, extra=(recipes() / "Dockerfile").read_text(encoding="utf-8"))


def _digest(*folders: Path, extra: str = "") -> str:
    """Eight digits that change if any file of the recipes changes."""
    found = hashlib.sha256(extra.encode())
    for file in sorted(file for folder in folders for file in folder.rglob("*") if file.is_file()):
        found.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return found.hexdigest()[:8]
