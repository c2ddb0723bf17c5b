"""What the benchmark of checking sets beside the family delivery answers the same questions."""

from collections import Counter
from collections.abc import Iterator

import duckdb
import pytest

from benchmarks.checking import FAMILY
from checkers.catalogue import DELIVERY
from checkers.kept import pieces, place
from tests.planted.conftest import Judged
from tests.planted.judging import KINDS

COLUMNS = ["topic", "partition", "record_id"]


@pytest.fixture(scope="module")
def asked(judged: dict[str, Judged]) -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB, with what it found in the planted histories of a queue."""
    with duckdb.connect() as connection:
        connection.execute(FAMILY.format(run=judged[KINDS[0].name].run))
        yield connection


@pytest.mark.parametrize("anomaly", [checker.anomaly for checker in DELIVERY])
def test_duckdb_finds_the_same(anomaly: str, asked: duckdb.DuckDBPyConnection, judged: dict[str, Judged]) -> None:
    run = judged[KINDS[0].name].run
    kept = Counter(tuple(row.values()) for p in pieces(place(run, anomaly)) for row in p.select(COLUMNS).to_pylist())
    assert kept
    assert Counter(asked.execute(f"select {', '.join(COLUMNS)} from {anomaly}").fetchall()) == kept
