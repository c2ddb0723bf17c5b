"""A real registry on loopback, and images put into it."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zlib import crc32

from docker import DockerClient
from docker.errors import APIError

from harness.core.waiting import wait_for
from harness.providers.docker.images import BASE, cached
from harness.providers.docker.subnets import free_ports

_CONFIG = """
version: 0.1
storage: {{filesystem: {{rootdirectory: {directory}/data}}}}
http: {{addr: "127.0.0.1:{port}"}}
"""


@contextmanager
def registry(directory: Path) -> Iterator[str]:
    """An empty registry, until the block ends; yields its ``host:port``."""
    # (Another address for each registry of a process: what was built from another is not built again.)
    port = next(free_ports([], start=crc32(os.fsencode(directory))))
    config = directory / "registry.yml"
    config.write_text(_CONFIG.format(directory=directory, port=port))
    with (directory / "registry.log").open("wb") as log:
        served = subprocess.Popen([_program(directory), "serve", str(config)], stdout=log, stderr=log)
        try:
            yield f"127.0.0.1:{port}"
        finally:
            served.terminate()
            served.wait()


def forget(engine: DockerClient, at: str) -> None:
    """Remove our images that were built from a base of this registry."""
    for tag in cached(engine):
        if engine.images.get(tag).labels.get(BASE, "").startswith(f"{at}/"):
            engine.images.remove(tag, force=True)


def _program(directory: Path) -> str:
    """docker-registry, unpacked from Debian's package where it is not installed: nothing is changed outside."""
    found = shutil.which("docker-registry")
    if found is None:
        subprocess.run(["apt-get", "download", "-qq", "docker-registry"], cwd=directory, check=True)
        (package,) = directory.glob("docker-registry_*.deb")
        subprocess.run(["dpkg-deb", "--extract", str(package), str(directory)], check=True)
        found = str(directory / "usr/bin/docker-registry")
    return found


def put(engine: DockerClient, image: str, at: str, name: str) -> str:
    """Push an image under another name, and forget that name here; returns its digest."""
    repository, tag = f"{at}/{name}".rsplit(":", 1)
    engine.images.get(image).tag(repository, tag)

    def push() -> str:
        try:
            said = engine.images.push(repository, tag)
        except APIError as exc:
            return str(exc)
        return "" if "error" not in said else said

    # The registry may not listen yet.
    wait_for(push, f"{name} in the registry", within=60, good=lambda error: not error, describe=str)
    digest = str(engine.images.get_registry_data(f"{repository}:{tag}").id)
    engine.images.remove(f"{repository}:{tag}")
    return digest
