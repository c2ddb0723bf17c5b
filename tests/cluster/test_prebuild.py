"""Images that are built before a run needs them."""

import pytest
from docker import DockerClient

from harness.core.errors import EnvironmentLacks
from harness.providers.docker.prebuild import main


def no_engine() -> DockerClient:
    raise EnvironmentLacks("no Docker engine answers: start one")


def test_without_an_engine_it_says_so_in_one_line_and_exits_3(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(no_engine) == 3
    assert capsys.readouterr().err == "images: no Docker engine answers: start one\n"


@pytest.mark.cluster
def test_prebuild_names_images_that_are_already_built(capsys: pytest.CaptureFixture[str]) -> None:
    assert main() == 0
    assert main() == 0
    said = capsys.readouterr().err
    assert said.count("is there") == 4
    assert "kafka-trial/toolbox:" in said
