"""Every checker finds exactly what was planted, in histories that are otherwise legal: recall and precision 1.0."""

from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from checkers.catalogue import DELIVERY, LOG_ORDER_READER
from checkers.evaluate import records
from checkers.tables import History
from harness.core.guarantees import Configuration
from harness.core.history import TABLES
from harness.core.layout import ANOMALIES as KEPT
from harness.core.layout import write_table
from harness.core.run_file import RunFile, State
from tests.planted.generator import ANOMALIES, Planted, plant

SEEDS = range(40)
_WORKERS_OF_A_SEED = 16


def write(run: Path, planted: list[Planted]) -> None:
    rows = {
        "sends": [row for history in planted for row in history.sends],
        "reads": [row for history in planted for row in history.reads],
        "positions": [row for history in planted for row in history.positions],
        "log_ends": [row for history in planted for row in history.log_ends],
    }
    for table, schema in TABLES.items():
        write_table(run, table, pa.Table.from_pylist(rows.get(table, []), schema))
    RunFile(
        run="planted/1",
        scenario_name="planted",
        scenario={},
        configuration=Configuration(version="4.3.1", grouped=True),
        state=State.RECORDED,
    ).write(run)


@pytest.fixture(scope="module")
def planted() -> list[Planted]:
    return [plant(f"seed-{seed}", seed * _WORKERS_OF_A_SEED, Random(seed)) for seed in SEEDS]


@pytest.fixture(scope="module")
def found(spark: SparkSession, planted: list[Planted], tmp_path_factory: pytest.TempPathFactory) -> dict[str, set]:
    """All seeds judged in one job: the (topic, record id) of each anomaly."""
    run = tmp_path_factory.mktemp("planted")
    write(run, planted)
    records(History.read(run, spark))
    return {
        kept.name: {(row["topic"], row["record_id"]) for row in pq.read_table(kept).to_pylist()}
        for kept in (run / KEPT).glob("*")
    }


@pytest.mark.parametrize("anomaly", ANOMALIES)
def test_what_was_planted_is_found_and_nothing_else(
    anomaly: str, found: dict[str, set], planted: list[Planted]
) -> None:
    assert found[anomaly] == {(history.topic, record) for history in planted for record in history.ids[anomaly]}


def test_every_checker_is_planted_for() -> None:
    assert {checker.anomaly for checker in (*DELIVERY, *LOG_ORDER_READER)} == set(ANOMALIES)


def test_the_same_seed_plants_the_same() -> None:
    assert plant("t", 0, Random(7)) == plant("t", 0, Random(7))


def test_what_is_legal_though_suspicious_is_there(planted: list[Planted]) -> None:
    for history in planted:
        in_log = {row["record_id"] for row in history.reads if row["phase"] == "final"}
        undecided = {row["record_id"] for row in history.sends if row["outcome"] == "info"}
        assert undecided & in_log - history.ids["misplaced"]
        assert undecided - in_log - history.ids["vanished"]
        assert len({(r["partition"], r["offset"], r["phase"]) for r in history.reads}) < len(history.reads)
