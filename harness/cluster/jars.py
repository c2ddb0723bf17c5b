"""Kafka's jars, from Maven Central, on this machine."""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from harness.core.errors import EnvironmentLacks

_PACKAGES = {"mvn": "maven", "mmdebstrap": "mmdebstrap"}
#: Maven's colours, which it does not leave out everywhere.
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def fetch_jars(version: str, project: str, directory: Path) -> Path:
    """Put what a Maven project depends on at run time into a folder of ``directory``, and return that.

    ``project`` is the text of ``distribution.pom``. Raises EnvironmentLacks.
    """
    (directory / "pom.xml").write_text(project, encoding="utf-8")
    libraries = directory / "libs"
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={libraries}", "-DincludeScope=runtime"]
    proxies = by_proxy(os.environ)
    run_tool(["mvn", "-q", "-B", "-f", str(directory / "pom.xml"), *proxies, *goal], f"Kafka {version}")
    return libraries


def by_proxy(environment: Mapping[str, str]) -> list[str]:
    """The options by which Java takes the proxy that others take from ``http_proxy``, ``https_proxy`` and ``no_proxy``:
    it does not read them. Raises EnvironmentLacks where one is none."""
    options = [option for scheme in ("http", "https") for option in _proxy(scheme, environment)]
    but = [host.strip().lstrip("*") for host in _either(environment, "no_proxy").split(",") if host.strip()]
    if options and but:
        hosts = (f"*{host}" if host.startswith(".") or not host else f"{host}|*.{host}" for host in but)
        options.append(f"-Dhttp.nonProxyHosts={'|'.join(hosts)}")
    return options


def _proxy(scheme: str, environment: Mapping[str, str]) -> Iterator[str]:
    named = _either(environment, f"{scheme}_proxy")
    try:
        proxy = urlsplit(named if "://" in named else f"//{named}")
        host, port = proxy.hostname, proxy.port or (443 if proxy.scheme == "https" else 80)
    except ValueError as exc:
        raise EnvironmentLacks(f"{scheme}_proxy is no proxy ({exc}): set it to http://host:port, or unset it") from exc
    if host:
        yield f"-D{scheme}.proxyHost={host}"
        yield f"-D{scheme}.proxyPort={port}"


def _either(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name) or environment.get(name.upper()) or ""


def run_tool(command: Sequence[str], wanted: str) -> None:
    """Run a program that builds or fetches what is ``wanted``. Raises EnvironmentLacks: the line that says why not."""
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError as exc:
        raise EnvironmentLacks(
            f"{wanted} is got with {command[0]}, not found: install it (Debian: {_PACKAGES[command[0]]})"
        ) from exc
    except subprocess.CalledProcessError as exc:
        lines = _COLOUR.sub("", exc.stdout + exc.stderr).splitlines()
        said = [line.removeprefix("[ERROR] ") for line in lines if "ERROR" in line or line.startswith("E:")]
        raise EnvironmentLacks(f"{wanted} cannot be downloaded or built: {said[0] if said else exc}") from exc
