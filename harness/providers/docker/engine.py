"""The Docker engine and Compose of this machine."""

import hashlib
import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import docker
from docker import DockerClient
from docker.errors import DockerException
from requests.exceptions import RequestException
from urllib3.exceptions import HTTPError

from harness.core.errors import ClusterError, EnvironmentLacks

#: The errors of the engine's client, and those of urllib3 for an answer that is read in pieces, such as a log.
ENGINE_FAILS = (DockerException, RequestException, HTTPError)

#: Seconds to wait for an answer of the engine. A choice, twice its client's default: under load it answers late.
_ANSWER_S = 120

_ON_THIS_MACHINE = "an engine on this machine is needed, at unix://…"


def connect(environment: Mapping[str, str] = os.environ) -> DockerClient:
    """A client of the engine that the ``docker`` command would use (``endpoint``). The engine answers.

    Raises EnvironmentLacks.
    """
    try:
        with ExitStack() as stack:
            where = endpoint(environment)
            if where is None:
                client = docker.from_env(timeout=_ANSWER_S, environment=environment)
            else:
                client = DockerClient(base_url=where, timeout=_ANSWER_S)
            stack.callback(client.close)
            client.ping()
            stack.pop_all()
    except (DockerException, ValueError) as exc:
        # (urllib raises ValueError if a port is not a number, or a bracket is not closed.)
        host = environment.get("DOCKER_HOST")
        if "Permission denied" in str(exc):
            raise EnvironmentLacks(
                f"this user may not talk to the Docker engine{f' at DOCKER_HOST={host}' if host else ''}: `sudo usermod"
                " -aG docker $USER`, and log in again, or use rootless Docker"
            ) from exc
        at, cure = (f" at DOCKER_HOST={host}", "correct or unset it, or start") if host else ("", "start")
        raise EnvironmentLacks(
            f"no Docker engine answers{at} ({_short(exc)}): {cure} one, or run scripts/setup on Debian or Ubuntu"
        ) from exc
    return client


@contextmanager
def answering(doing: str) -> Iterator[None]:
    """Turn errors of the engine's client into a ClusterError of one line."""
    try:
        yield
    except ENGINE_FAILS as exc:
        why = str(getattr(exc, "explanation", None) or exc).strip().splitlines() or [type(exc).__name__]
        raise ClusterError(f"{doing}: the Docker engine failed ({why[0]})") from exc


def endpoint(environment: Mapping[str, str]) -> str | None:
    """The address of the current Docker context's engine; None if DOCKER_HOST or the default decides.

    The order is that of the ``docker`` command: DOCKER_HOST, then DOCKER_CONTEXT, then ``docker context use``
    (docs.docker.com, Docker contexts). Raises EnvironmentLacks if the context does not exist, or its engine is on
    another machine: we reach nodes by their addresses, and mount files of this machine.
    """
    if host := environment.get("DOCKER_HOST"):
        if host.startswith("ssh://") or _elsewhere(host):
            raise EnvironmentLacks(f"DOCKER_HOST is {host}: {_ON_THIS_MACHINE}")
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
        raise EnvironmentLacks(f"Docker context {name} is at {host}: {_ON_THIS_MACHINE}")
    return host


def _elsewhere(host: str) -> bool:
    """Whether a DOCKER_HOST is an address of another machine: no socket can be bound to it here. False if its name
    cannot be resolved."""
    try:
        name = urlsplit(host).hostname if host.startswith(("tcp://", "http://", "https://")) else None
        found = socket.getaddrinfo(name, None, type=socket.SOCK_DGRAM) if name else []
    except (OSError, ValueError):
        return False
    return bool(found) and not any(_bound(family, address[0]) for family, _, _, _, address in found)


def _bound(family: int, address: str | int) -> bool:
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True


def _read(path: Path) -> dict[str, Any]:
    """A file of the ``docker`` command; empty if there is none. Raises EnvironmentLacks if it is not JSON."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as exc:
        raise EnvironmentLacks(f"{path}: not a file of Docker's ({exc}): repair it, or set DOCKER_HOST") from exc
    return found if isinstance(found, dict) else {}


@cache
def compose_command() -> tuple[str, ...]:
    """``docker compose`` if the plugin runs, else ``docker-compose``. Raises EnvironmentLacks if neither runs."""
    for command in (("docker", "compose"), ("docker-compose",)):
        if not shutil.which(command[0]):
            continue
        if subprocess.run([*command, "version"], capture_output=True, env=_environment(), check=False).returncode == 0:
            return command
    raise EnvironmentLacks(
        "no Docker Compose that runs: install the plugin (docker-compose-v2 on Ubuntu) or docker-compose,"
        " or run scripts/setup"
    )


def _environment() -> dict[str, str]:
    """Our environment for Compose, without our Python path: Compose may be a Python program with its own libraries."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def compose(directory: Path, project: str, *arguments: str) -> None:
    """Run Compose on ``directory/compose.yaml``. Raises ClusterError with Compose's message."""
    from harness.history.paths import COMPOSE_FILE  # (It imports pyarrow: images are built without.)

    command = [*compose_command(), "-f", str(directory / COMPOSE_FILE), "-p", project, *arguments]
    done = subprocess.run(
        command,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
        stdin=subprocess.DEVNULL,
        env=_environment(),
    )
    if done.returncode != 0:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line.lower()]
        raise ClusterError(f"compose {arguments[0]} failed: {(errors or lines or ['it gives no reason'])[-1]}")


def _short(exc: Exception) -> str:
    return str(exc).split("(Caused by")[0].strip().rstrip(":") or type(exc).__name__
