"""Every kind of planted history, judged once for all tests; what was found is printed at the end of the test run."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from checkers.catalogue import checkers_of
from tests.planted import judging, matrix
from tests.planted.generator import Planted
from tests.planted.judging import KINDS, Findings, Kind

_HERE = Path(__file__).parent

#: What the core leaves out: most random histories; more seeds of planted ones, and some once more, as a large run is
#: judged; checkers that are wrong; and more ways in which what a permission excuses misses a record, and the plants
#: of permissions that are each a run, once more, or are of another anomaly.
_WHOLE_PROOF = frozenset(
    {
        "test_both_find_the_same",
        "test_of_hundreds_of_histories_it_contradicts_none",
        "test_each_anomaly_comes_about",
        "test_of_more_seeds_it_is_found_too",
        "test_in_many_tasks_it_is_found_too",
        "test_a_checker_that_is_wrong_is_found_out",
        "test_a_checker_that_only_has_another_name_is_not",
        "test_a_row_excuses_nothing_that_it_missed_in_more_ways",
        "test_in_many_tasks_a_plant_is_judged_the_same",
        "test_whatever_shows_that_a_record_is_gone_is_judged_as_its_loss",
        "test_it_is_so_in_the_ways_that_are_still_open",
    }
)

SEEDS = range(50)

_TABLES = pytest.StashKey[list[str]]()


@dataclass(frozen=True)
class Judged:
    """All histories of one kind, where they are stored as one run, what its checkers are, and what those found."""

    kind: Kind
    run: Path
    planted: list[Planted]
    asked: list[str]
    found: Findings


@pytest.fixture(scope="session")
def judged(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> dict[str, Judged]:
    """Each kind's histories of all seeds, judged as one run."""
    done = {}
    tables = pytestconfig.stash.setdefault(_TABLES, [])
    for kind in KINDS:
        run = tmp_path_factory.mktemp("planted")
        planted = judging.plant(kind, SEEDS)
        asked = [checker.anomaly.name for checker in checkers_of(judging.write(run, kind, planted))]
        found = judging.judge(run, spark)
        done[kind.name] = Judged(kind, run, planted, asked, found)
        tables += ["", *matrix.lines(kind, planted, found, asked)]
    return done


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All that is tried on planted and random histories is the proof, and most of it the proof's core."""
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker("proof")
            if getattr(item, "originalname", None) not in _WHOLE_PROOF:
                item.add_marker("core")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print what was planted against what was found."""
    tables = config.stash.get(_TABLES, [])
    if tables:
        terminalreporter.section("planted anomalies, and what was found")
        for line in tables:
            terminalreporter.write_line(line)
