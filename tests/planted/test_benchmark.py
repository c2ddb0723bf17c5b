"""The benchmark compares the family delivery with queries that answer the same questions."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession

from benchmarks.checking import FAMILY, JOIN, JOINED
from benchmarks.histories import write_run
from checkers.catalogue import DELIVERY
from checkers.evidence.store import AnomalyStore
from checkers.history import History
from checkers.scan.record_bits import record_bits
from checkers.scans import count
from tests.planted.conftest import Judged
from tests.planted.judging import KINDS

COLUMNS = ["topic", "partition", "record_id"]


@pytest.fixture(scope="module")
def asked(judged: dict[str, Judged]) -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB, with its findings in the planted histories of a queue."""
    with duckdb.connect() as connection:
        connection.execute(FAMILY.format(run=judged[KINDS[0].name].run))
        yield connection


@pytest.mark.parametrize("anomaly", [checker.anomaly.name for checker in DELIVERY])
def test_duckdb_finds_the_same(anomaly: str, asked: duckdb.DuckDBPyConnection, judged: dict[str, Judged]) -> None:
    run = judged[KINDS[0].name].run
    stored = AnomalyStore.read(run).rows[anomaly].pieces()
    found = Counter(tuple(row.values()) for piece in stored for row in piece.select(COLUMNS).to_pylist())
    assert found
    assert Counter(asked.execute(f"select {', '.join(COLUMNS)} from {anomaly}").fetchall()) == found


def test_its_join_counts_the_same(spark: SparkSession, tmp_path: Path) -> None:
    run = write_run(tmp_path, 5_000)
    with duckdb.connect() as connection:
        [counted] = connection.execute(JOIN.format(run=run)).fetchall()
    assert tuple(count(record_bits(History.read(run, spark)), JOINED).values()) == counted
    assert counted[0] > 0
