"""Writes large histories of a known shape as sealed runs, to measure the checkers."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from harness.core.guarantees import Configuration
from harness.history.paths import write_table
from harness.history.run_file import RunFile, State
from harness.history.schema import FAULTS, LOG_ENDS, OBSERVATIONS, POSITIONS, READS, SENDS, record_id

_TOPIC = "trial"
_RATE_NS = 100_000
_POLL = 500


def write_run(
    run: Path,
    records: int,
    workers: int = 4,
    partitions: int = 4,
    lost: float = 0.001,
    live: bool = False,
    samples: int = 1000,
    terms: int = 1,
) -> Path:
    """Write a run of ``records`` sends and about as many final reads, of which a fraction ``lost`` is missing. Returns
    ``run``.

    Worker w sends its nth record to partition n mod ``partitions``. One in a thousand times out, and half of those are
    in the log, at the offsets that the acknowledged ones leave free. With ``live``, a reader of each partition gets all
    its records during the run, 500 at a time. Each worker's sends are one part, and so is each reader's partition.
    Three brokers report each partition ``samples`` times, and it has ``terms`` leaders, one after the other.
    """
    random = np.random.default_rng(records)
    each = records // workers
    sequences = np.arange(each, dtype=np.int64)
    survivors = []
    for worker in range(workers):
        draw = random.random(each)
        outcome = np.where(draw < 0.001, "info", "ok")
        present = (draw >= 0.0005) & (random.random(each) >= lost)
        ids = sequences + record_id(worker, 0)
        invoked = sequences * _RATE_NS + worker
        offsets = (sequences // partitions) * workers + worker
        survivors.append(np.stack([ids[present], invoked[present], sequences[present] % partitions, offsets[present]]))
        table = pa.table(
            {
                "worker": np.full(each, worker, np.int32),
                "incarnation": np.zeros(each, np.int32),
                "sequence": sequences,
                "topic": _constant(_TOPIC, each),
                "partition": (sequences % partitions).astype(np.int32),
                "record_id": ids,
                "key": pa.nulls(each, pa.string()),
                "invoked_ns": invoked,
                "completed_ns": invoked + random.integers(1_000_000, 9_000_000, each),
                "outcome": outcome,
                "error": pa.nulls(each, pa.string()),
                "offset": pa.array(offsets, mask=outcome != "ok"),
                "transaction": pa.nulls(each, pa.int64()),
            }
        )
        write_table(run, "sends", table.cast(SENDS), f"producer-{worker}")
    found = np.concatenate(survivors, axis=1)
    ends = []
    for partition in range(partitions):
        rows = found[:, found[2] == partition]
        rows = rows[:, np.argsort(rows[3], kind="stable")]
        ends.append(int(rows[3][-1]) + 1 if rows.shape[1] else 0)
        write_table(run, "reads", _reads(100, "final", partition, rows, rows[1] + 10_000_000_000), f"final-{partition}")
        if live:
            polled = rows[1, np.minimum(np.arange(rows.shape[1]) // _POLL * _POLL + _POLL - 1, rows.shape[1] - 1)]
            reads = _reads(200 + partition, "live", partition, rows, polled + 20_000_000)
            write_table(run, "reads", reads, f"live-{partition}")
    if live:
        write_table(run, "positions", _assigned(partitions))
    write_table(run, "log_ends", _log_ends(ends))
    write_table(run, "observations", _observations(partitions, each * _RATE_NS, samples, terms))
    write_table(run, "faults", _faults(each * _RATE_NS))
    RunFile(
        run=f"benchmark/{records}",
        scenario_name="benchmark",
        scenario={},
        configuration=Configuration(version="4.3.1"),
        state=State.RECORDED,
    ).write(run)
    return run


def _reads(reader: int, phase: str, partition: int, here: np.ndarray, read_ns: np.ndarray) -> pa.Table:
    """Deliveries of ``here``: rows of record ids, times of sends, partitions and offsets."""
    count = here.shape[1]
    table = pa.table(
        {
            "reader": np.full(count, reader, np.int32),
            "incarnation": np.zeros(count, np.int32),
            "phase": _constant(phase, count),
            "topic": _constant(_TOPIC, count),
            "partition": np.full(count, partition, np.int32),
            "offset": here[3],
            "leader_epoch": np.zeros(count, np.int32),
            "record_id": here[0],
            "key": pa.nulls(count, pa.string()),
            "intact": np.ones(count, bool),
            "read_ns": read_ns,
            "poll": pa.nulls(count, pa.int64()),
            "transaction": pa.nulls(count, pa.int64()),
        }
    )
    return table.cast(READS)


def _assigned(partitions: int) -> pa.Table:
    begun = {"incarnation": 0, "at_ns": 0, "event": "assign", "topic": _TOPIC, "offset": 0}
    rows = [{**begun, "reader": 200 + p, "partition": p} for p in range(partitions)]
    return pa.Table.from_pylist(rows, POSITIONS)


def _constant(text: str, count: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), [text]).cast(pa.string())


def _log_ends(ends: list[int]) -> pa.Table:
    rows = [
        {"topic": _TOPIC, "partition": p, "log_start": 0, "log_end": end, "read_to": end, "complete": True}
        for p, end in enumerate(ends)
    ]
    return pa.Table.from_pylist(rows, LOG_ENDS)


def _observations(partitions: int, duration_ns: int, samples: int, terms: int) -> pa.Table:
    rows = [
        {
            "observer": f"b{broker}",
            "at_ns": at,
            "topic": _TOPIC,
            "partition": partition,
            "leader": (partition + at * terms // duration_ns) % 3 + 1,
            "leader_epoch": at * terms // duration_ns,
            "replicas": [1, 2, 3],
            "isr": [1, 2, 3],
            "high": 0,
        }
        for at in range(0, duration_ns, max(duration_ns // samples, 1))
        for partition in range(partitions)
        for broker in (1, 2, 3)
    ]
    return pa.Table.from_pylist(rows, OBSERVATIONS)


def _faults(duration_ns: int) -> pa.Table:
    row = {
        "fault": "pause-1",
        "kind": "pause",
        "nodes": ["b1"],
        "injecting_ns": duration_ns // 3,
        "injected_ns": duration_ns // 3,
        "healing_ns": duration_ns // 2,
        "healed_ns": duration_ns // 2,
        "effective": True,
        "evidence": "{}",
    }
    return pa.Table.from_pylist([row], FAULTS)
