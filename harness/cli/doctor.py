"""``kafka-trial doctor``: what this machine can run."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from harness.cli import codes
from harness.cli.deeds import Deeds
from harness.core.errors import EnvironmentLacks

if TYPE_CHECKING:
    from docker import DockerClient

_JAVA = 17


@dataclass(frozen=True)
class Finding:
    """One thing looked at. ``needed``: without it nothing can be run; else only some faults cannot."""

    name: str
    good: bool
    told: str
    needed: bool = True


@click.command()
@click.pass_obj
def doctor(deeds: Deeds) -> int:
    """Say what this machine can run.

    Looks for Docker, Compose and Java, and tries the faults that its kernel must know.
    Exits with 3 where something is missing that every run needs.
    """
    findings = []
    for finding in examined(deeds):
        findings.append(finding)
        mark = "ok" if finding.good else "MISSING" if finding.needed else "cannot"
        click.echo(f"{mark:8}{finding.name:12}{finding.told}".rstrip())
    return codes.MET if all(f.good for f in findings if f.needed) else codes.CANNOT_RUN


def examined(deeds: Deeds) -> Iterator[Finding]:
    """Everything that is looked at, as it is found."""
    yield _found("java", java)
    yield _found("compose", compose)
    try:
        client = deeds.connect()
    except EnvironmentLacks as exc:
        yield Finding("docker", False, str(exc))
        return
    yield Finding("docker", True, f"engine {client.version()['Version']}")
    yield from images(client)
    yield from faults(client)


def _found(name: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(name, True, look())
    except EnvironmentLacks as exc:
        return Finding(name, False, str(exc))


def java() -> str:
    """The version of the Java that Spark would start. Raises EnvironmentLacks where there is none, or an old one."""
    home = os.environ.get("JAVA_HOME")
    command = f"{home}/bin/java" if home else "java"
    wanted = f"Spark needs Java {_JAVA} or later: install a JRE (Debian: openjdk-17-jre-headless), or set JAVA_HOME"
    if not shutil.which(command):
        raise EnvironmentLacks(f"no {command}; {wanted}")
    said = subprocess.run([command, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)([^"]*)"', said)
    if found is None or int(found[1]) < _JAVA:
        raise EnvironmentLacks(f"{command} is {found[1] + found[2] if found else 'no Java'}; {wanted}")
    return found[1] + found[2]


def compose() -> str:
    """The command that Compose is here. Raises EnvironmentLacks."""
    from harness.providers.docker.engine import compose_command

    return " ".join(compose_command())


def images(client: "DockerClient") -> Iterator[Finding]:
    """The images that are built already: the others are, when they are first needed."""
    from harness.providers.docker.images import cached

    tags = cached(client)
    yield Finding("images", True, " ".join(tags) if tags else "none yet: built when they are first needed")


def faults(client: "DockerClient") -> Iterator[Finding]:
    """Every fault of the catalogue, and what the kernel lacks for it (in its simplest form)."""
    from harness.providers.docker.images import toolbox_image
    from harness.providers.docker.shell import labels_of_no_run, without_network
    from nemesis.catalogue import FAULTS
    from nemesis.preflight import lacking

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
