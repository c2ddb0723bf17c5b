"""Checks, before anything starts, whether kafka-trial can work in this process."""

import os
import pwd
import re
import shutil
import subprocess
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from harness.core import java
from harness.core.errors import EnvironmentLacks


def look_at_directory(current: Callable[[], str] = os.getcwd) -> None:
    """Raises EnvironmentLacks if the current directory is gone: neither paths nor Java work without it."""
    try:
        current()
    except OSError as exc:
        raise EnvironmentLacks(f"the current directory cannot be used ({exc.strerror}): change to another") from exc


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def look_at_spark(user: int | None = None, imported: Path | None = None) -> None:
    """Raises EnvironmentLacks if ``imported`` is another pyspark than the one installed with kafka-trial, or if Spark
    could not start for ``user``. By default: what this process would import, and its user."""
    installed, found = _installed(), imported or _found()
    if installed is not None and found is not None and found.resolve() != installed.resolve():
        raise EnvironmentLacks(
            f"pyspark would be imported from {found}, but {installed} is installed: remove the former from PYTHONPATH"
        )
    number = os.getuid() if user is None else user
    try:
        pwd.getpwuid(number)
    except KeyError as exc:
        raise EnvironmentLacks(
            f"user {number} has no name on this machine, and Spark starts for none without: add one to /etc/passwd, or"
            " run as a user that has one"
        ) from exc


def look_at_java() -> str:
    """The version of the Java that Spark would start. Raises EnvironmentLacks if there is none, or it is too old."""
    home = os.environ.get("JAVA_HOME")
    command = f"{home}/bin/java" if home else "java"
    wanted = f"Spark needs Java {java.OLDEST} or later: install a JRE (Debian: {java.PACKAGE}), or set JAVA_HOME"
    if not shutil.which(command):
        raise EnvironmentLacks(f"no {command}; {wanted}")
    said = subprocess.run([command, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)([^"]*)"', said)
    if found is None or int(found[1]) < java.OLDEST:
        raise EnvironmentLacks(f"{command} is {found[1] + found[2] if found else 'no Java'}; {wanted}")
    return found[1] + found[2]


def _installed() -> Path | None:
    """The pyspark next to the installed kafka-trial; None if it is elsewhere."""
    try:
        beside = Path(str(distribution("kafka-trial").locate_file("pyspark")))
    except PackageNotFoundError:
        return None
    return beside if beside.is_dir() else None


def _found() -> Path | None:
    spec = find_spec("pyspark")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent
