"""Which Docker engine is asked: the one that Docker's own command would ask, if it is on this machine."""

import gc
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.core.errors import EnvironmentLacks
from harness.providers.docker.engine import compose, compose_command, connect, endpoint


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of Docker's own command, with a context on this machine and one elsewhere."""
    for name, host in (("rootless", "unix:///run/user/1/docker.sock"), ("far", "ssh://me@far")):
        meta = tmp_path / "contexts" / "meta" / hashlib.sha256(name.encode()).hexdigest()
        meta.mkdir(parents=True)
        reported = {"Name": name, "Metadata": {}, "Endpoints": {"docker": {"Host": host, "SkipTLSVerify": False}}}
        (meta / "meta.json").write_text(json.dumps(reported))
    return tmp_path


@pytest.mark.parametrize(
    ("environment", "where"),
    [
        ({}, None),
        ({"DOCKER_CONTEXT": "default"}, None),
        ({"DOCKER_CONTEXT": "rootless"}, "unix:///run/user/1/docker.sock"),
        ({"DOCKER_CONTEXT": "rootless", "DOCKER_HOST": "unix:///other.sock"}, None),
        ({"DOCKER_CONTEXT": "no-such", "DOCKER_HOST": "unix:///other.sock"}, None),
    ],
)
def test_a_context_is_honoured_where_no_host_is_set(
    environment: dict[str, str], where: str | None, folder: Path
) -> None:
    assert endpoint({**environment, "DOCKER_CONFIG": str(folder)}) == where


@pytest.mark.parametrize(
    ("name", "says"), [("far", "far is at ssh://me@far"), ("no-such", "no Docker context no-such")]
)
def test_a_context_that_cannot_serve_is_refused(name: str, says: str, folder: Path) -> None:
    with pytest.raises(EnvironmentLacks, match=says):
        endpoint({"DOCKER_CONTEXT": name, "DOCKER_CONFIG": str(folder)})


@pytest.fixture
def nobody() -> Iterator[None]:
    """What follows is done by a user who may do nothing, where the tests are root's."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65_534)
    yield
    if root:
        os.seteuid(0)


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # of Docker's own client
def test_a_user_who_may_not_talk_to_the_engine_is_reported(tmp_path: Path, nobody: None) -> None:
    """It runs, and need not be started."""
    host = f"unix://{tmp_path}/closed/docker.sock"
    with pytest.raises(EnvironmentLacks) as raised:
        connect({"DOCKER_HOST": host})
    assert str(raised.value).startswith(
        f"this user may not talk to the Docker engine at DOCKER_HOST={host}: `sudo usermod"
    )
    del raised
    gc.collect()


@pytest.mark.parametrize("host", ["tcp://127.0.0.1:1", "tcp://x:y", "nonsense"])
def test_an_engine_that_does_not_answer_is_named_with_the_setting_that_chose_it(host: str) -> None:
    with pytest.raises(EnvironmentLacks) as lacks:
        connect({"DOCKER_HOST": host})
    assert str(lacks.value).startswith(f"no Docker engine answers at DOCKER_HOST={host} (")
    assert "correct or unset it" in str(lacks.value)


@pytest.mark.parametrize("host", ["ssh://me@far", "tcp://192.0.2.1:2375", "https://192.0.2.1:2376"])
def test_an_engine_elsewhere_is_refused(host: str) -> None:
    with pytest.raises(EnvironmentLacks, match=rf"^DOCKER_HOST is {host}: an engine on this machine is needed"):
        connect({"DOCKER_HOST": host})


def test_the_context_in_use_is_honoured(folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps({"currentContext": "rootless"}))
    assert endpoint({"DOCKER_CONFIG": str(folder)}) == "unix:///run/user/1/docker.sock"


def test_a_broken_file_of_dockers_is_reported(folder: Path) -> None:
    (folder / "config.json").write_text("{")
    with pytest.raises(EnvironmentLacks, match=r"config\.json: not a file of Docker's"):
        endpoint({"DOCKER_CONFIG": str(folder)})


def test_compose_is_not_given_the_libraries_of_this_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Debian's docker-compose is a Python program: with our libraries on its path it dies."""
    program = tmp_path / "docker"
    program.write_text(f'#!/bin/sh\n[ "$2" = version ] || env > {tmp_path}/seen\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("PYTHONPATH", "/ours")
    monkeypatch.setenv("DOCKER_HOST", "unix:///theirs")
    compose_command.cache_clear()
    try:
        compose(tmp_path, "project", "up")
    finally:
        compose_command.cache_clear()
    seen = (tmp_path / "seen").read_text().splitlines()
    assert "DOCKER_HOST=unix:///theirs" in seen
    assert not any(line.startswith("PYTHON") for line in seen)
