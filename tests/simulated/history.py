"""Simulated histories as one stored run: the tables and run.json that a recorder would have written."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from harness.history.paths import write_table
from harness.history.run_file import NodeAddress, RunFile, State
from harness.history.schema import TABLES
from tests.simulated.play import PRODUCERS, Played


def write(run: Path, histories: Sequence[Played]) -> RunFile:
    """Store histories of the same settings as one run: topics, brokers, workers and readers are each history's own."""
    settings = histories[0].settings
    assert all(one.settings == settings for one in histories)
    for table, schema in TABLES.items():
        rows = [row for one in histories for row in one.tables.get(table, [])]
        write_table(run, table, pa.Table.from_pylist(rows, schema))
    brokers = [broker for one in histories for broker in one.brokers]
    first = [broker - 1 for one in histories for broker in one.brokers[:1]]
    file = RunFile(
        run=f"simulated/{settings.name}",
        scenario_name=f"simulated/{settings.name}",
        scenario=settings.scenario,
        configuration=settings.configuration,
        watch_topic=histories[0].topic,
        state=State.RECORDED,
        versions={"kafka": settings.version},
        features={"eligible.leader.replicas.version": 1} if settings.elr else {},
        clients={
            **{f"producer {n + own}": {"acks": settings.acks} for n in first for own in range(PRODUCERS)},
            **{f"consumer {n + PRODUCERS}": {"isolation.level": "read_uncommitted"} for n in first},
        },
        nodes=[
            NodeAddress(name=f"b{n}", role="broker", id=n, address=f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}")
            for n in brokers
        ],
    )
    file.write(run)
    return file
