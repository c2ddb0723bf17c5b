"""The Docker engine and Compose of this machine."""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import docker
from docker import DockerClient
from docker.errors import DockerException

from harness.core.errors import ClusterError, EnvironmentLacks


def connect(environment: Mapping[str, str] = os.environ) -> DockerClient:
    """A client of the engine that Docker's own command would ask (``endpoint``), and that answers.

    Raises EnvironmentLacks.
    """
    try:
        with ExitStack() as stack:
            where = endpoint(environment)
            client = docker.from_env(timeout=120) if where is None else DockerClient(base_url=where, timeout=120)
            stack.callback(client.close)
            client.ping()
            stack.pop_all()
    except (DockerException, ValueError) as exc:
        # (A port that is no number, a bracket that is not closed: ValueError of urllib.)
        raise EnvironmentLacks(
            f"no Docker engine answers ({_short(exc)}): start one, or run scripts/setup on Debian or Ubuntu"
        ) from exc
    return client


def endpoint(environment: Mapping[str, str]) -> str | None:
    """Where the engine of the current Docker context is; None where DOCKER_HOST, or the default, holds.

    As the command chooses it: DOCKER_HOST, then DOCKER_CONTEXT, then ``docker context use`` (docs.docker.com, Docker
    contexts). Raises EnvironmentLacks where there is no such context, or its engine is on another machine: nodes are
    reached by their addresses, and their settings are files of this machine.
    """
    if environment.get("DOCKER_HOST"):
        return None
    folder = Path(environment.get("DOCKER_CONFIG") or Path(environment.get("HOME", "/"), ".docker"))
    name = environment.get("DOCKER_CONTEXT") or _read(folder / "config.json").get("currentContext")
    if name in {None, "", "default"}:
        return None
    meta = folder / "contexts" / "meta" / hashlib.sha256(str(name).encode()).hexdigest() / "meta.json"
    found = _read(meta)
    if not found:
        raise EnvironmentLacks(f"there is no Docker context {name}: `docker context ls` lists them")
    host = str(found.get("Endpoints", {}).get("docker", {}).get("Host", "no engine"))
    if not host.startswith("unix://"):
        raise EnvironmentLacks(f"Docker context {name} is at {host}: an engine on this machine is needed, at unix://…")
    return host


def _read(path: Path) -> dict[str, Any]:
    """A file of Docker's own command; empty where there is none. Raises EnvironmentLacks where it is no JSON."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as exc:
        raise EnvironmentLacks(f"{path}: not a file of Docker's ({exc}): mend it, or set DOCKER_HOST") from exc
    return found if isinstance(found, dict) else {}


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
    done = subprocess.run(
        command, capture_output=True, encoding="utf-8", errors="replace", check=False, stdin=subprocess.DEVNULL
    )
    if done.returncode != 0:
        said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in said if "error" in line.lower()]
        raise ClusterError(f"compose {arguments[0]} failed: {(errors or said or ['no word why'])[-1]}")


def _short(exc: Exception) -> str:
    return str(exc).split("(Caused by")[0].strip().rstrip(":") or type(exc).__name__
