"""Kafka's jars, from Maven Central, on this machine."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from harness.core.errors import EnvironmentLacks

_PACKAGES = {"mvn": "maven", "mmdebstrap": "mmdebstrap"}


def fetch_jars(version: str, project: str, directory: Path) -> Path:
    """Put what a Maven project depends on at run time into a folder of ``directory``, and return that.

    ``project`` is the text of ``distribution.pom``. Raises EnvironmentLacks.
    """
    (directory / "pom.xml").write_text(project, encoding="utf-8")
    libraries = directory / "libs"
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={libraries}", "-DincludeScope=runtime"]
    run_tool(["mvn", "-q", "-B", "-f", str(directory / "pom.xml"), *goal], f"Kafka {version}")
    return libraries


def run_tool(command: Sequence[str], wanted: str) -> None:
    """Run a program that builds or fetches what is ``wanted``. Raises EnvironmentLacks: the line that says why not."""
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError as exc:
        raise EnvironmentLacks(
            f"{wanted} is got with {command[0]}, not found: install it (Debian: {_PACKAGES[command[0]]})"
        ) from exc
    except subprocess.CalledProcessError as exc:
        said = [line for line in (exc.stdout + exc.stderr).splitlines() if "ERROR" in line or line.startswith("E:")]
        raise EnvironmentLacks(f"{wanted} cannot be downloaded or built: {said[0] if said else exc}") from exc
