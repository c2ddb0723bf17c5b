"""Fixtures that every folder of tests may use."""

import signal
import sys
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING

import hypothesis
import pytest

from harness.cli.backends import Backends
from harness.cli.main import invoke
from tests.command import Done, Invoke

if TYPE_CHECKING:
    # (Most parts of the tests never import Spark, which takes them a second.)
    from pyspark.sql import SparkSession

    from tests.golden.sample import Judged

# No deadline: on a busy machine an example may take long, whatever the code does.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


def pytest_configure() -> None:
    """Handle SIGINT also if the tests were started in the background by a shell without job control, which ignores it:
    the tests of Ctrl-C would wait for ever."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> "SparkSession":
    """The one Spark session of the whole test run; it ends with the process. It judges tiny runs; with a proof among
    the tests, also larger ones."""
    from checkers.spark.session import session

    proof = any(item.get_closest_marker("proof") for item in request.session.items)
    return session(rows=[] if proof else [1])


@pytest.fixture(scope="session")
def of_corpus(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> "Callable[[str], Judged]":
    """A history of the golden corpus by its name, judged once for all tests that look at its results."""
    from tests.golden.corpus import samples
    from tests.golden.sample import judged

    every = {sample.name: sample for sample in samples()}
    return cache(lambda name: judged(every[name], tmp_path_factory.mktemp("judged"), spark))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that need Spark. They all run in one process, because a second session costs more than it saves."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(autouse=True)
def no_spark_unasked(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that starts Spark in its own process must use the ``spark`` fixture."""
    before = _active_context()
    yield
    assert "spark" in request.fixturenames or _active_context() is before, "ask for the fixture spark"


def _active_context() -> object:
    return sys.modules["pyspark"].SparkContext._active_spark_context if "pyspark" in sys.modules else None


@pytest.fixture
def kafka_trial(capsys: pytest.CaptureFixture[str]) -> Invoke:
    """Runs a command line in the test's own process: ``kafka_trial("run", "x", backends=…)``."""

    def run(*arguments: object, backends: Backends | None = None) -> Done:
        code = invoke([str(argument) for argument in arguments], backends)
        said = capsys.readouterr()
        return Done(code, said.out, said.err)

    return run
