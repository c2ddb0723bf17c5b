"""``kafka-trial doctor``: what this machine can run."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from harness.cli import codes
from harness.cli.deeds import Deeds
from harness.core.errors import EnvironmentLacks

if TYPE_CHECKING:
    from harness.cluster.provider import Finding

_JAVA = 17


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
        click.echo(f"{mark:8}{finding.name:12}{finding.detail}".rstrip())
    return codes.MET if all(f.good for f in findings if f.needed) else codes.CANNOT_RUN


def examined(deeds: Deeds) -> "Iterator[Finding]":
    """Everything that is looked at, as it is found."""
    yield _java()
    for row in deeds.providers().values():
        yield from row.get().doctor()


def _java() -> "Finding":
    from harness.cluster.provider import Finding

    try:
        return Finding("java", True, java())
    except EnvironmentLacks as exc:
        return Finding("java", False, str(exc))


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
