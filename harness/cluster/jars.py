"""Kafka's jars, from Maven Central, on this machine."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

from harness.core.errors import EnvironmentLacks

_EMPTY = "<settings/>"
_PACKAGES = {"mvn": "maven", "mmdebstrap": "mmdebstrap"}
#: Maven's colours, which it prints even to a pipe at some places.
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def fetch_jars(version: str, project: str, directory: Path) -> Path:
    """Put the run-time dependencies of a Maven project into a folder of ``directory``, and return its path.

    ``project`` is the text of ``distribution.pom``. Raises EnvironmentLacks.
    """
    (directory / "pom.xml").write_text(project, encoding="utf-8")
    libraries = directory / "libs"
    goal = [
        "org.apache.maven.plugins:maven-dependency-plugin:copy-dependencies",
        f"-DoutputDirectory={libraries}",
        "-DincludeScope=runtime",
    ]
    with _proxy_options() as options:
        run_tool(["mvn", "-q", "-B", "-f", str(directory / "pom.xml"), *options, *goal], f"Kafka {version}")
    return libraries


@contextmanager
def _proxy_options() -> Iterator[list[str]]:
    """The options by which Maven uses the environment's proxy. They show a password neither on the command line nor to
    other users."""
    settings = with_proxies(os.environ, _installed_settings())
    if settings is None:
        yield []
        return
    with tempfile.NamedTemporaryFile("w", prefix="kafka-trial-", suffix=".xml", encoding="utf-8") as file:
        file.write(settings)
        file.flush()
        # Maven 3.9 sends a proxy's password only on the first connection: use one.
        yield ["-gs", file.name, "-Dmaven.artifact.threads=1"]


def _installed_settings() -> str:
    """The settings of this machine's Maven for all users. ``-gs`` replaces them."""
    program = shutil.which("mvn")
    if program is None:
        return _EMPTY
    file = Path(program).resolve().parent.parent / "conf" / "settings.xml"
    return file.read_text(encoding="utf-8") if file.is_file() else _EMPTY


def with_proxies(environment: Mapping[str, str], settings: str = _EMPTY) -> str | None:
    """Maven's settings with the proxy of ``http_proxy``, ``https_proxy`` and ``no_proxy``, which Maven does not read;
    None without a proxy. (``docker/kafka/settings`` does the same in the build of an image.)

    Raises EnvironmentLacks if a variable is not a proxy.
    """
    proxies = [_proxy(scheme, environment) for scheme in ("http", "https")]
    if not any(proxies):
        return None
    root = ElementTree.fromstring(settings)
    space = root.tag.removesuffix("settings")
    ElementTree.register_namespace("", space.strip("{}"))
    all_ = root.find(f"{space}proxies")
    if all_ is None:
        all_ = ElementTree.SubElement(root, f"{space}proxies")
    for proxy in filter(None, proxies):
        row = ElementTree.SubElement(all_, f"{space}proxy")
        for name, value in proxy.items():
            ElementTree.SubElement(row, f"{space}{name}").text = value
    return ElementTree.tostring(root, encoding="unicode")


def _proxy(scheme: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The parts of a proxy by Maven's names; empty without a proxy."""
    named = _either(environment, f"{scheme}_proxy")
    try:
        proxy = urlsplit(named if "://" in named else f"//{named}")
        host, port = proxy.hostname, proxy.port or (443 if proxy.scheme == "https" else 80)
    except ValueError as exc:
        raise EnvironmentLacks(
            f"{scheme}_proxy is no proxy: set it to http://host:port, or to http://user:password@host:port where / is"
            " written %2F and # is written %23, or unset it"
        ) from exc
    if not host:
        return {}
    parts = {"id": f"kafka-trial-{scheme}", "protocol": scheme, "host": host, "port": str(port)}
    if proxy.username is not None:
        parts |= {"username": unquote(proxy.username), "password": unquote(proxy.password or "")}
    direct = [host.strip().lstrip("*") for host in _either(environment, "no_proxy").split(",") if host.strip()]
    if direct:
        hosts = (f"*{host}" if host.startswith(".") or not host else f"{host}|*.{host}" for host in direct)
        parts["nonProxyHosts"] = "|".join(hosts)
    return parts


def _either(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name) or environment.get(name.upper()) or ""


def run_tool(command: Sequence[str], wanted: str) -> None:
    """Run a program that builds or fetches what is ``wanted``. Raises EnvironmentLacks with the reason, in one line."""
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError as exc:
        raise EnvironmentLacks(
            f"{wanted} needs {command[0]}, which is not found: install it (Debian: {_PACKAGES[command[0]]})"
        ) from exc
    except subprocess.CalledProcessError as exc:
        lines = _COLOUR.sub("", exc.stdout + exc.stderr).splitlines()
        errors = [line.removeprefix("[ERROR]").strip() for line in lines if "ERROR" in line or line.startswith("E:")]
        why = " ".join(errors[:2] if errors and errors[0].endswith(":") else errors[:1]).removesuffix(" -> [Help 1]")
        raise EnvironmentLacks(f"{wanted} cannot be downloaded or built: {why or exc}") from exc
