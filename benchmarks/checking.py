"""How long judging takes, and in how much memory: ``python -m benchmarks.checking [--records N,N…] [--live]``.

Each history is judged in a fresh process under a set driver memory, once more when that is warm, and then by the family
delivery alone; in another process, cold, by delivery and availability (first s). Beside it DuckDB answers the heart of
delivery, one join, from the same Parquet. Prints one line for each history, with the ratio to the one before; CPU s are
those of the Java process of the cold judgement, and hold for slower hours too.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import psutil

from benchmarks.histories import write_run
from benchmarks.machine import at_the_moment

_DELIVERY = """
    select count(*) filter (s.outcome = 'ok' and r.record_id is null), count(*) filter (s.record_id is null)
    from '{run}/history/sends/*.parquet' s
    full outer join (select record_id from '{run}/history/reads/*.parquet' where phase = 'final') r using (record_id)
"""


def measure(run: Path, memory: str) -> dict[str, float]:
    """Seconds of a cold judgement of ``run`` (wall, CPU), of its second one, and of the family delivery alone then; and
    the Java process's peak in MiB."""
    from checkers.catalogue import DELIVERY
    from checkers.evaluate import judge, records
    from checkers.session import session
    from checkers.tables import History, rows

    began = time.monotonic()
    spark = session(conf={"spark.driver.memory": memory}, rows=[rows(run)])
    java = psutil.Process(spark.sparkContext._gateway.proc.pid)  # type: ignore[union-attr]
    judge(run, spark)
    cold, cpu = time.monotonic() - began, sum(java.cpu_times()[:2])
    judge(run, spark)
    warm = time.monotonic() - began - cold
    records(History.read(run, spark), DELIVERY)
    delivery = time.monotonic() - began - cold - warm
    peak = next(line for line in Path(f"/proc/{java.pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
    seconds = {"cold_s": cold, "cpu_s": cpu, "warm_s": warm, "delivery_s": delivery}
    return {**seconds, "peak_mib": int(peak.split()[1]) / 1024}


def measure_first(run: Path, memory: str) -> dict[str, float]:
    """Seconds until ``run`` was judged, cold, by the families delivery and availability alone."""
    from checkers.availability import availability
    from checkers.catalogue import DELIVERY
    from checkers.evaluate import records
    from checkers.session import session
    from checkers.tables import History, rows

    began = time.monotonic()
    history = History.read(run, session(conf={"spark.driver.memory": memory}, rows=[rows(run)]))
    records(history, DELIVERY)
    availability(history)
    return {"first_s": time.monotonic() - began}


#: What is measured, each in a process of its own.
MEASURES = {"all": measure, "first": measure_first}


def in_a_process(measured: str, run: Path, memory: str) -> dict[str, float]:
    """What one of MEASURES says, in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.checking", "--measure", measured, str(run), "--memory", memory]
    told: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return told


def duckdb_seconds(run: Path, memory: str) -> float:
    """Seconds that DuckDB takes for the delivery join alone."""
    began = time.monotonic()
    with duckdb.connect(config={"memory_limit": memory.upper() + "B"}) as connection:
        connection.execute(_DELIVERY.format(run=run)).fetchall()
    return time.monotonic() - began


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", default="100000,1000000,10000000", help="sizes: sends of each history")
    parser.add_argument("--memory", default="6g", help="heap of the Spark driver")
    parser.add_argument("--live", action="store_true", help="with a reader of all partitions during the run, too")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        measured, place = asked.measure
        print(json.dumps(MEASURES[measured](Path(place), asked.memory)))
        return
    print(at_the_moment())
    columns = {"records": 12, "cold s": 8, "CPU s": 6, "warm s": 8, "ratio": 6, "peak MiB": 9}
    columns |= {"first s": 8, "delivery s": 11, "duckdb s": 9, "delivery/duckdb": 15}
    print(*(f"{name:>{width}}" for name, width in columns.items()), flush=True)
    before: float | None = None
    for records in (int(text) for text in asked.records.split(",")):
        with tempfile.TemporaryDirectory(prefix="kafka-trial-bench-") as scratch:
            run = write_run(Path(scratch), records, live=asked.live)
            told = in_a_process("all", run, asked.memory) | in_a_process("first", run, asked.memory)
            duck = duckdb_seconds(run, asked.memory)
        ratio = f"{told['cold_s'] / before:.1f}" if before else ""
        before = told["cold_s"]
        print(
            f"{records:>12} {told['cold_s']:>8.1f} {told['cpu_s']:>6.0f} {told['warm_s']:>8.1f} {ratio:>6} "
            f"{told['peak_mib']:>9.0f} {told['first_s']:>8.1f} {told['delivery_s']:>11.1f} {duck:>9.2f} "
            f"{told['delivery_s'] / duck:>15.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
