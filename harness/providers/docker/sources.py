"""Where images come from: a public Debian base from a registry, or one that is made here."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from docker import DockerClient
from docker.errors import DockerException
from requests.exceptions import RequestException

from harness.core.errors import EnvironmentLacks, ScenarioError
from harness.providers.docker.bootstrap import lacking_to_make

SUITE = "bookworm"

#: The Debian base, as Docker Hub names it.
DEBIAN = f"library/debian:{SUITE}-slim"

#: The environment variables that say where images come from.
IMAGES = "KAFKA_TRIAL_IMAGES"
REGISTRY = "KAFKA_TRIAL_REGISTRY"


class Source(StrEnum):
    """``registry``: built by Docker from a Debian base of a registry. ``build``: by mmdebstrap, without a registry."""

    REGISTRY = "registry"
    BUILD = "build"


@dataclass(frozen=True)
class Sources:
    """The allowed sources, of which the first possible one is used, and the mirror of Docker Hub (``host:port``), if
    any."""

    allowed: tuple[Source, ...] = tuple(Source)
    mirror: str | None = None

    def reference(self, name: str) -> str:
        """The full name of an image of Docker Hub."""
        return f"{self.mirror}/{name}" if self.mirror else name


def sources(wanted: str | None = None, environment: Mapping[str, str] = os.environ) -> Sources:
    """The sources that a scenario wants, else those of the environment. Raises ScenarioError."""
    source = wanted or environment.get(IMAGES)
    if source and source not in set(Source):
        raise ScenarioError(f"{IMAGES} is {source}: set it to {' or '.join(Source)}, or unset it")
    mirror = environment.get(REGISTRY)
    if mirror and not re.fullmatch(r"[\w.\-\[\]:]+(/[\w.\-]+)*", mirror):
        raise ScenarioError(f"{REGISTRY} is {mirror}: set it to host:port, without http:// and without a / at its end")
    return Sources((Source(source),) if source else tuple(Source), mirror or None)


def debian(client: DockerClient, wanted: Sources) -> str:
    """The Debian base of the registry, by its digest. It is not downloaded. Raises EnvironmentLacks."""
    reference = wanted.reference(DEBIAN)
    try:
        return f"{reference}@{client.images.get_registry_data(reference).id}"
    except (DockerException, RequestException) as exc:
        raise EnvironmentLacks(f"no registry answers for {reference} ({_short(exc)})") from exc


def chosen(client: DockerClient, wanted: Sources, missing: Sequence[str] | None = None) -> str | None:
    """The Debian base of the registry, by its digest, if one answers; None if a base has to be made here.

    ``missing``: the packages that this machine lacks for making one. Raises EnvironmentLacks if both are impossible,
    with what would help.
    """
    try:
        if Source.REGISTRY in wanted.allowed:
            return debian(client, wanted)
        why = f"{Source.BUILD} is asked for"
    except EnvironmentLacks as exc:
        why = str(exc)
    cure = f"name a mirror of Docker Hub by {REGISTRY}"
    if Source.BUILD not in wanted.allowed:
        raise EnvironmentLacks(f"{why}: {cure}, or ask for {Source.BUILD}")
    missing = lacking_to_make() if missing is None else missing
    if missing:
        raise EnvironmentLacks(
            f"{why}, and to make a base here {' and '.join(missing)} is missing: {cure}, or install it"
        )
    return None


def _short(exc: Exception) -> str:
    """The reason: the end of the engine's message."""
    text = str(getattr(exc, "explanation", None) or exc).splitlines()[0]
    return text.removeprefix("errors:").strip()[-160:]
