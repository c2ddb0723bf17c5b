"""How clients reach nodes is found out by trying."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from docker import DockerClient

from harness.core.verdict import Judgement
from harness.history.run_file import RunFile
from harness.providers.catalogue import ProviderRow
from harness.providers.docker.provider import Docker
from harness.providers.docker.reaching import reaches_containers
from harness.providers.docker.spec import DockerSpec
from harness.run.display import for_terminal
from harness.run.lifecycle import run
from harness.scenario.loading import load
from tests.cluster.test_breaking_off import QUICK

pytestmark = pytest.mark.cluster

TRY = """
import sys, docker
from harness.providers.docker.reaching import reaches_containers
print(reaches_containers(docker.from_env(), sys.argv[1]))
"""


def test_this_machine_reaches_containers(engine: DockerClient, toolbox: str) -> None:
    assert reaches_containers(engine, toolbox)


def test_a_machine_that_has_no_route_to_containers_does_not(toolbox: str) -> None:
    """In a network namespace of its own: the engine answers there, at its socket, and no container does."""
    apart = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--map-root-user"]
    done = subprocess.run(
        [*apart, sys.executable, "-c", TRY, toolbox], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.stdout, done.returncode) == ("False\n", 0), done.stderr


@pytest.mark.usefixtures("spark")
def test_clients_use_published_ports_if_the_addresses_are_out_of_reach(tmp_path: Path) -> None:
    story = tmp_path / "story.yaml"
    story.write_text(yaml.safe_dump(QUICK))
    apart = {"docker": ProviderRow(DockerSpec, lambda: Docker(reaches=lambda _client, _toolbox: False))}
    with for_terminal(sys.stderr) as display:
        directory, verdict = run(load(str(story)), tmp_path / "store", 1, display, providers=apart)
    assert verdict.verdict is Judgement.VALID
    file = RunFile.read(directory)
    assert file.versions["clients"] == "published"
    assert {client["bootstrap.servers"].split(":")[0] for client in file.clients.values()} == {"127.0.0.1"}
