"""Images that are built before a run needs them."""

from concurrent.futures import Future

import pytest
from docker import DockerClient

from harness.core.errors import EnvironmentLacks, ScenarioError
from harness.providers.docker.prebuild import await_all, main


def no_engine() -> DockerClient:
    raise EnvironmentLacks("no Docker engine answers: start one")


def test_without_an_engine_it_says_so_in_one_line_and_exits_3(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(no_engine) == 3
    assert capsys.readouterr().err == "images: no Docker engine answers: start one\n"


def test_it_says_which_images_are_still_being_built_and_names_an_error_when_none_is() -> None:
    said: list[str] = []
    toolbox, kafka = Future[None](), Future[None]()
    toolbox.set_exception(ScenarioError("no room"))

    def say(line: str) -> None:
        said.append(line)
        if len(said) == 2:
            kafka.set_result(None)

    with pytest.raises(ScenarioError, match="no room"):
        await_all({toolbox: "the toolbox", kafka: "Kafka"}, say, every_s=0.01)
    assert said == ["still waiting for Kafka"] * 2


@pytest.mark.cluster
def test_prebuild_names_images_that_are_already_built(capsys: pytest.CaptureFixture[str]) -> None:
    assert main() == 0
    assert main() == 0
    said = capsys.readouterr().err
    assert said.count("is there") == 4
    assert "kafka-trial/toolbox:" in said
