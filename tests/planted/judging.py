"""The kinds of planted histories, each stored as one run and judged at once, and what is found in it."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from checkers.catalogue import checkers_of
from checkers.checker import Checker
from checkers.history import History
from checkers.screening import records
from harness.core.guarantees import Configuration
from harness.history.paths import ANOMALIES, write_table
from harness.history.run_file import Origin, RunFile, State
from harness.history.schema import TABLES
from tests.planted import plots, transactional
from tests.planted.generator import WORKERS_OF_A_SEED, Identity, Planted

#: Rows found, by anomaly: of which history, and of what in it.
Findings = dict[str, Counter[tuple[str, Identity]]]


@dataclass(frozen=True, eq=False)
class Kind:
    """Histories that are judged under one configuration, and all that is planted in each of them."""

    name: str
    plant: Callable[[str, int, Random], Planted]
    plots: tuple[plots.Plot | transactional.Plot, ...]
    configuration: Mapping[str, Any]
    of_run: Mapping[str, Any] = field(default_factory=dict)


KINDS = (
    Kind(
        "single records, read by a group",
        plots.plant,
        (*plots.PLOTS, *plots.PARTLY_READ, plots.DELETED, plots.NOT_READ),
        {"grouped": True},
    ),
    Kind(
        "transactions, read_committed",
        transactional.plant_transactions,
        (
            *transactional.PLOTS,
            *(transactional.HANGING, transactional.LONG, transactional.PLAIN_LOST),
            *(transactional.DELETED, transactional.NOT_READ, *transactional.READING),
        ),
        {"isolation_level": "read_committed"},
        {"clients": transactional.CLIENTS},
    ),
    Kind("single records, read by a group that commits", plots.plant_committed, plots.COMMITTED, {"grouped": True}),
    Kind(
        "no final read, as imported",
        plots.plant_imported,
        (*plots.IMPORTED, plots.BEYOND),
        {},
        {"origin": Origin.JEPSEN},
    ),
)


def plant(kind: Kind, seeds: range) -> list[Planted]:
    """One history for each seed."""
    return [kind.plant(f"seed-{seed}", seed * WORKERS_OF_A_SEED, Random(seed)) for seed in seeds]


def write(run: Path, kind: Kind, planted: list[Planted]) -> RunFile:
    """Store histories as one sealed run, each a topic and workers of its own."""
    for table, schema in TABLES.items():
        rows = [row for history in planted for row in history.tables.get(table, [])]
        write_table(run, table, pa.Table.from_pylist(rows, schema))
    file = RunFile(
        run="planted/1",
        scenario_name="planted",
        scenario={},
        configuration=Configuration(version="4.3.1", **kind.configuration),
        state=State.RECORDED,
        **kind.of_run,
    )
    file.write(run)
    return file


def judge(
    run: Path, spark: SparkSession, checkers: tuple[Checker, ...] | None = None, one_task: bool | None = None
) -> Findings:
    """What ``checkers``, or else all that are asked of such a run, find in the run stored there."""
    history = History.read(run, spark, one_task=one_task)
    records(history, checkers_of(history.run_file) if checkers is None else checkers)
    return found_in(run)


def found_in(run: Path) -> Findings:
    """The rows that were kept of each anomaly."""
    return {
        kept.name: Counter((row["topic"], _identity(row)) for row in pq.read_table(kept).to_pylist())
        for kept in (run / ANOMALIES).glob("*")
    }


def expected(planted: list[Planted]) -> Findings:
    """What is to be found in histories: that, and nothing else."""
    findings: Findings = {}
    for history in planted:
        for (_, anomaly, identity), times in history.expected.items():
            findings.setdefault(anomaly, Counter())[history.topic, identity] += times
    return findings


def _identity(row: dict[str, Any]) -> Identity:
    return (row["partition"], row["offset"]) if row["record_id"] is None else row["record_id"]
