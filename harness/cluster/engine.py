"""The Docker engine and Compose of this machine."""

import shutil
import subprocess
from functools import cache
from pathlib import Path

import docker
from docker import DockerClient
from docker.errors import DockerException

from harness.core.errors import ClusterError, EnvironmentLacks


def connect() -> DockerClient:
    """A client of an engine that answers. Raises EnvironmentLacks."""
    try:
        client = docker.from_env(timeout=120)
        client.ping()
    except DockerException as exc:
        raise EnvironmentLacks(
            f"no Docker engine answers ({_short(exc)}): start one, or run scripts/setup on Debian or Ubuntu"
        ) from exc
    return client


@cache
def compose_command() -> tuple[str, ...]:
    """``docker compose`` where the plugin is, else ``docker-compose``. Raises EnvironmentLacks."""
    plugin = ("docker", "compose")
    if shutil.which(plugin[0]):
        answer = subprocess.run([*plugin, "version"], capture_output=True, check=False)
        if answer.returncode == 0:
            return plugin
    if shutil.which("docker-compose"):
        return ("docker-compose",)
    raise EnvironmentLacks("no Docker Compose found: install the plugin or docker-compose, or run scripts/setup")


def compose(directory: Path, project: str, *arguments: str) -> None:
    """Run Compose on ``directory/compose.yaml``. Raises ClusterError with what it said."""
    command = [*compose_command(), "-f", str(directory / "compose.yaml"), "-p", project, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in said if "error" in line.lower()]
        raise ClusterError(f"compose {arguments[0]} failed: {(errors or said or ['no word why'])[-1]}")


def _short(exc: Exception) -> str:
    return str(exc).split("(Caused by")[0].strip().rstrip(":") or type(exc).__name__
