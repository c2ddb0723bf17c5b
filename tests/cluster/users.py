"""A user who is not root, with a clone of his own."""

import os
import pwd
import shlex
import shutil
import subprocess
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil

from harness.core.waiting import wait_for

REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True)
class User:
    """Somebody in the group of Docker, who logs in for each command; ``clone`` is his clone of this repository."""

    name: str
    clone: Path

    def run(self, command: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """Run a command in the clone, as CI does: ``bash -e``, without a terminal."""
        words = ["env", *(f"{key}={value}" for key, value in environment.items()), "bash", "-e", "-c", command]
        script = f"cd {shlex.quote(str(self.clone))} && exec {shlex.join(words)}"
        login = ["su", "-", self.name, "-c", script] if self.name != _me() else ["bash", "-l", "-c", script]
        return subprocess.run(
            login, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=1200, check=False
        )


@contextmanager
def plain_user(directory: Path) -> Iterator[User]:
    """A new user where this process is root, and none who has installed anything; else the one whose process it is."""
    if os.geteuid() != 0:
        yield User(_me(), _cloned(directory))
        return
    name = f"kt-{uuid.uuid4().hex[:8]}"
    subprocess.run(["useradd", "--create-home", "--shell", "/bin/bash", "--groups", "docker", name], check=True)
    home = Path(pwd.getpwnam(name).pw_dir)
    try:
        clone = _cloned(home)
        subprocess.run(["chown", "-R", f"{name}:", str(clone)], check=True)
        yield User(name, clone)
    finally:
        # Spark's Java process ends a moment after the program that started it.
        wait_for(partial(_processes, name), f"the end of what {name} started", within=60, good=lambda left: not left)
        subprocess.run(["userdel", name], check=True)
        shutil.rmtree(home)


def _cloned(directory: Path) -> Path:
    clone = directory / "kafka-trial"
    subprocess.run(["git", "clone", "-q", str(REPOSITORY), str(clone)], check=True)
    return clone


def _processes(name: str) -> list[str]:
    return [process.name() for process in psutil.process_iter(["username"]) if process.info["username"] == name]


def _me() -> str:
    return pwd.getpwuid(os.geteuid()).pw_name
