"""What the shell of containers reads from the engine's answers."""

from typing import Any, cast

import pytest
from docker import DockerClient
from docker.errors import APIError, NotFound

from harness.core.errors import ClusterError
from harness.core.topology import Node, Role, Topology
from harness.providers.docker.shell import DockerShell

B1 = Node("b1", Role.BROKER, 1, "10.0.0.1")
TOPOLOGY = Topology((B1,), Node("clients", Role.CLIENTS, 0, "10.0.0.254"))


class Engine:
    """An engine that has one container, or answers with an error."""

    def __init__(self, answer: dict[str, Any] | Exception) -> None:
        self.containers = self
        self.attrs = answer
        self.asked: list[str] = []

    def get(self, name: str) -> "Engine":
        self.asked.append(name)
        if isinstance(self.attrs, Exception):
            raise self.attrs
        return self


def shell_of(engine: Engine) -> DockerShell:
    return DockerShell(TOPOLOGY, {"b1": "run-b1"}, "toolbox", {}, cast(DockerClient, engine))


@pytest.mark.parametrize(
    ("answer", "runs"),
    [({"State": {"Running": True}}, True), ({"State": {"Running": False}}, False), (NotFound("no such"), False)],
    ids=["running", "exited", "none"],
)
def test_a_helper_runs_if_its_container_runs(answer: dict[str, Any] | Exception, runs: bool) -> None:
    engine = Engine(answer)
    assert shell_of(engine).helper_runs(B1, "ab12") is runs
    assert engine.asked == ["run-b1-ab12"]


def test_an_engine_that_fails_is_no_answer_about_a_helper() -> None:
    with pytest.raises(ClusterError, match="b1: look at helper ab12 failed: it is broken"):
        shell_of(Engine(APIError("it is broken"))).helper_runs(B1, "ab12")
