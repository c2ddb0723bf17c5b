"""Fixtures that every folder of tests may use."""

import pytest
from pyspark.sql import SparkSession

from checkers.session import session
from harness.cli.deeds import Deeds
from harness.cli.main import invoke
from tests.command import Done, Invoke


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """The one Spark session of the whole test run; it ends with the process."""
    return session()


@pytest.fixture
def kafka_trial(capsys: pytest.CaptureFixture[str]) -> Invoke:
    """A command line in the test's own process: ``kafka_trial("run", "x", deeds=…)``."""

    def run(*arguments: object, deeds: Deeds | None = None) -> Done:
        code = invoke([str(argument) for argument in arguments], deeds)
        said = capsys.readouterr()
        return Done(code, said.out, said.err)

    return run
